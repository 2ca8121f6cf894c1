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
from tests.verify.mutations import Mistakes, Setting, changed, in_millionths, made, put, replaced
from tests.verify.mutations.sets import another_action, around, times

GREEDY = Setting("two-ends/4,discount=0.8", "ravi-kl/mixture,plan=greedy", 120, 2)
SLACK = Setting("two-ends/3,discount=0.8", "ravi-kl/mixture,slack=0.02", 100, 2)
VERTICES = Setting("riverswim/mixture/3,discount=0.8", "ravi-kl/mixture,plan=greedy", 80, 2)  # not a list of kernels
LONG = Setting("fork/2,discount=0.97", "ravi-kl/mixture,plan=greedy", 60, 2)  # phases end by doubling
DRAWN = Setting("fork/2,discount=0.8", "ravi-kl/mixture,slack=0.005,candidate=posterior", 100, 3)
SMALL = Setting("fork/2,discount=0.8", "ravi-kl/mixture,plan=greedy", 60, 6)
NAMES = {GREEDY: "greedy mixture", SLACK: "slack mixture", VERTICES: "vertices", LONG: "long phases, mixture",
         DRAWN: "posterior mixture", SMALL: "small mixture"}  # fmt: skip


def too_narrow(patch, setting):
    def narrow(at, part):
        p = at.rows @ at.theta
        return (at.rows * (4 * at.counts / p**2)[:, None]).T @ at.rows / (2 * (part * at.rho + at.gap)) + 1e-9

    for module in (learners, claims):
        patch.setattr(module, "shape", narrow)
    return setting.build()


def pointed(patch, setting):
    was = learners.shape
    for module in (learners, claims):
        patch.setattr(module, "shape", lambda at, part: 1e6 * (was(at, part) + np.eye(len(at.theta))))
    return setting.build()


def heavy_guard(patch, setting):
    learner = setting.build()

    def plan(state):
        with patch.context() as inner:
            inner.setattr(theory, "mixture_radius", lambda d, t, rho: 0.01)
            return learner.plan(state)

    return around(learner, plan)


def forgotten(patch, setting):
    learner = setting.build()

    def plan(state):
        state = learner.plan(state)
        state.gram.covariance[:] = np.eye(state.gram.covariance.shape[-1])
        return state

    return around(learner, plan)


def every_candidate(learner, state):
    state = learner.plan(state)
    state.policy[:] = state.candidate.policy
    return state


def wrong_place(patch, setting):
    learner = setting.build()
    return around(learner, add=lambda state, path: learner.add(state, path._replace(slot=np.zeros_like(path.slot))))


def resets_only(patch, setting):
    learner = setting.build()

    def on(world, s, walkers, path, over, until, steps):
        done = walk(world, s, walkers, path, over, until, steps)
        for i in range(len(path.length)):
            rows = s.phi[i, path.state[i], path.action[i]][: path.length[i]]
            s.gram.covariance[i] += rows.T @ rows
        return done

    return learner._replace(until=at_reset(), walk=on)


ROWS = [
    ("rho is halved", "KM4", GREEDY, changed(learners, "shape", lambda was, at, part: was(at, part / 2))),
    ("rho has no redundancy C_d(m)", "KM4", GREEDY, put(likelihood, "worst_redundancy", lambda plays, d: 0.0)),
    ("Lambda is four times too large and has p_c for m_c, to learner and observer", "KM3", GREEDY, too_narrow),
    ("Lambda is a million times too large, to learner and observer", "KM3 KM7", SMALL, pointed),
    ("G stands still, to the observer", "KM1 KM6c", SMALL, put(claims, "added", lambda G, rows: G)),
    ("optimistic values count a thousand times, to the observer", "KM4 KM5", SMALL, made(times, 1000, claims)),
    ("rho* is in millionths", "KM8", SMALL, in_millionths),
    ("theta_hat is never moved", "KM2", GREEDY, put(likelihood, "ROUNDS", 0)),
    ("the second ellipsoid has beta^2 = 0.01", "KM4", GREEDY, heavy_guard),
    ("G is forgotten at every plan", "KM1", GREEDY, forgotten),
    (
        "plans end a hundred times too early",
        "KM4",
        SLACK,
        changed(
            learners,
            "on_simplex",
            lambda was, common, B, V, on, span, tol: was(common, B, V, on, span, 100 * tol + 5),
        ),
    ),
    ("the least optimistic action is played", "K4 K5", GREEDY, lambda patch, setting: another_action(setting.build())),
    ("every candidate is played", "K4", DRAWN, replaced(plan=every_candidate)),
    ("moves are counted in the wrong place", "K1", VERTICES, wrong_place),
    ("phases end at resets only", "KM6a K9a", LONG, resets_only),
    (
        "a phase ends with every step",
        "KM6b",
        LONG,
        lambda patch, setting: setting.build()._replace(until=lambda state, time: Until(reset=True, deadline=time + 1)),
    ),
]
mutation = Mistakes(NAMES, ROWS, ", mixtures")
