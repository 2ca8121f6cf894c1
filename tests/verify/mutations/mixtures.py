"""Mistakes of RAVI-KL for mixtures: each a small change, with the claims that must catch it.

The learner is broken where it finds its parts (the names in `ravi.learners.ravi_kl.mixture`), or around its plan.
"""

import numpy as np

from ravi.core import Until
from ravi.learners.ravi_kl import mixture as learners
from ravi.optimism import likelihood
from ravi.runtime.walk import walk
from ravi.schedules import at_reset
from ravi.theory import kl as theory
from ravi.verify import mixtures as claims
from tests.verify.mutations import Mistakes, Setting, in_millionths
from tests.verify.mutations.sets import another_action, around, times

GREEDY = Setting("two-ends/4,discount=0.8", "ravi-kl/mixture,plan=greedy", 120, 2)
SLACK = Setting("two-ends/3,discount=0.8", "ravi-kl/mixture,slack=0.02", 100, 2)
VERTICES = Setting("riverswim/mixture/3,discount=0.8", "ravi-kl/mixture,plan=greedy", 80, 2)  # not a list of kernels
LONG = Setting("fork/2,discount=0.97", "ravi-kl/mixture,plan=greedy", 60, 2)  # phases end by doubling
DRAWN = Setting("fork/2,discount=0.8", "ravi-kl/mixture,slack=0.005,candidate=posterior", 100, 3)
SMALL = Setting("fork/2,discount=0.8", "ravi-kl/mixture,plan=greedy", 60, 6)
NAMES = {GREEDY: "greedy mixture", SLACK: "slack mixture", VERTICES: "vertices", LONG: "long phases, mixture",
         DRAWN: "posterior mixture", SMALL: "small mixture"}  # fmt: skip

mutation = Mistakes(NAMES, ", mixtures")
MUTATIONS = mutation.all


@mutation("rho is halved", "KM4")
def half_the_radius(patch, setting):
    was = learners.shape
    patch.setattr(learners, "shape", lambda at, part: was(at, part / 2))
    return setting.build()


@mutation("rho has no redundancy C_d(m)", "KM4")
def no_redundancy(patch, setting):
    patch.setattr(likelihood, "worst_redundancy", lambda plays, d: 0.0)
    return setting.build()


@mutation("Lambda is four times too large and has p_c for m_c, to learner and observer", "KM3")
def too_narrow(patch, setting):
    def narrow(at, part):
        p = at.rows @ at.theta
        return (at.rows * (4 * at.counts / p**2)[:, None]).T @ at.rows / (2 * (part * at.rho + at.gap)) + 1e-9

    for module in (learners, claims):
        patch.setattr(module, "shape", narrow)
    return setting.build()


@mutation("Lambda is a million times too large, to learner and observer", "KM3", "KM7", setting=SMALL)
def pointed(patch, setting):
    was = learners.shape
    for module in (learners, claims):
        patch.setattr(module, "shape", lambda at, part: 1e6 * (was(at, part) + np.eye(len(at.theta))))
    return setting.build()


@mutation("G stands still, to the observer", "KM1", "KM6c", setting=SMALL)
def still(patch, setting):
    patch.setattr(claims, "added", lambda G, rows: G)
    return setting.build()


@mutation("optimistic values count a thousand times, to the observer", "KM4", "KM5", setting=SMALL)
def other_units(patch, setting):
    return times(patch, setting, 1000, claims)


@mutation("rho* is in millionths", "KM8", setting=SMALL)
def millionths(patch, setting):
    return in_millionths(patch, setting)


@mutation("theta_hat is never moved", "KM2")
def lazy(patch, setting):
    patch.setattr(likelihood, "ROUNDS", 0)
    return setting.build()


@mutation("the second ellipsoid has beta^2 = 0.01", "KM4")
def heavy_guard(patch, setting):
    learner = setting.build()

    def plan(state):
        with patch.context() as inner:
            inner.setattr(theory, "mixture_radius", lambda d, t, rho: 0.01)
            return learner.plan(state)

    return around(learner, plan)


@mutation("G is forgotten at every plan", "KM1")
def forgotten(patch, setting):
    learner = setting.build()

    def plan(state):
        state = learner.plan(state)
        state.gram.covariance[:] = np.eye(state.gram.covariance.shape[-1])
        return state

    return around(learner, plan)


@mutation("plans end a hundred times too early", "KM4", setting=SLACK)
def early(patch, setting):
    was = learners.on_simplex
    patch.setattr(
        learners, "on_simplex", lambda common, B, V, on, span, tol: was(common, B, V, on, span, 100 * tol + 5)
    )
    return setting.build()


@mutation("the least optimistic action is played", "K4", "K5")
def least(patch, setting):
    return another_action(setting.build())


@mutation("every candidate is played", "K4", setting=DRAWN)
def every_candidate(patch, setting):
    learner = setting.build()

    def plan(state):
        state = learner.plan(state)
        state.policy[:] = state.candidate.policy
        return state

    return around(learner, plan)


@mutation("moves are counted in the wrong place", "K1", setting=VERTICES)
def wrong_place(patch, setting):
    learner = setting.build()
    return around(learner, add=lambda state, path: learner.add(state, path._replace(slot=np.zeros_like(path.slot))))


@mutation("phases end at resets only", "KM6a", "K9a", setting=LONG)
def resets_only(patch, setting):
    learner = setting.build()

    def on(world, s, walkers, path, over, until, steps):
        done = walk(world, s, walkers, path, over, until, steps)
        for i in range(len(path.length)):
            rows = s.phi[i, path.state[i], path.action[i]][: path.length[i]]
            s.gram.covariance[i] += rows.T @ rows
        return done

    return learner._replace(until=at_reset(), walk=on)


@mutation("a phase ends with every step", "KM6b", setting=LONG)
def every_play(patch, setting):
    return setting.build()._replace(until=lambda state, time: Until(reset=True, deadline=time + 1))
