"""Mistakes that RAVI-KL could make, each a small change of greedy or slack, with the claims that must catch it.

The learner is broken in the numbers that its plans are made of, or around its plan.
"""

import numpy as np

from ravi import ids
from ravi.core import Until, restrict
from ravi.learners.ravi_kl import ravi_kl
from ravi.schedules import at_reset
from ravi.verify import sets as claims
from tests.verify.mutations import Mistakes, Setting, changed, in_millionths, made, replaced
from tests.verify.mutations.paper import for_another_action

GREEDY = Setting("riverswim/5,discount=0.9", "ravi-kl,plan=greedy", 600, 3)
UNTOLD = Setting("riverswim/5,discount=0.9", "ravi-kl,plan=greedy,support=off", 600, 3)
SLACK = Setting("riverswim/5,discount=0.9", "ravi-kl,slack=0.02", 600, 3)
EARNED = Setting("riverswim/4,discount=0.9", "ravi-kl/unknown-rewards,slack=0.02", 600, 4)
LONG = Setting("riverswim/3,discount=0.97", "ravi-kl,plan=greedy,support=off", 150, 3)  # phases end by doubling
DRAWN = Setting("riverswim/5,discount=0.9", "ravi-kl,slack=0.02,candidate=posterior", 600, 3)
SMALL = Setting("riverswim/3,discount=0.8", "ravi-kl,plan=greedy,support=off", 200, 8)
NAMES = {
    GREEDY: "greedy", UNTOLD: "greedy, not told", SLACK: "slack", EARNED: "unknown rewards",
    LONG: "long phases", DRAWN: "posterior", SMALL: "small",
}  # fmt: skip


def around(learner, plan=None, add=None):
    return learner._replace(plan=plan or learner.plan, add=add or learner.add)


def with_numbers(patch, setting, **wrong):
    """The learner that plans with other numbers than it says."""
    was = ravi_kl.numbers_of
    patch.setattr(ravi_kl, "numbers_of", lambda *given: was(*given)._replace(**wrong))
    return setting.build()


def another_action(learner):
    """The learner that plays, in every state, the action after the one that it planned."""

    def plan(state):
        state = learner.plan(state)
        state.policy[:] = np.roll(state.policy, 1, axis=-1)
        return state

    return around(learner, plan)


def other_discount(patch, setting):
    problem = ids.mdp(setting.mdp).problem
    return setting.build(restrict(problem, type(problem), discount=0.9 * problem.discount))


def no_maximum(patch, setting):
    was = claims.largest

    def mean(successors, D, rho, support, V):
        most = was(successors, D, rho, support, V)
        known = (D.moves * V[:, successors]).sum(-1) / np.maximum(D.visits, 1)
        return np.where(D.visits > 0, known, most)

    patch.setattr(claims, "largest", mean)
    return setting.build()


def times(patch, setting, factor, module=claims):
    """A sound learner, whose optimistic values the observer takes for `factor` times what they are."""
    was = module.fixed_point
    patch.setattr(module, "fixed_point", lambda *given, **more: factor * was(*given, **more))
    return setting.build()


def large_gaps(patch, setting):
    was = claims.at_truth

    def at_truth(setting, *given, **more):
        seen = was(setting, *given, **more)
        return seen._replace(gap=seen.gap + setting.H, lead=seen.lead + setting.H)

    patch.setattr(claims, "at_truth", at_truth)
    return setting.build()


def wrong_place(learner, state, path):
    return learner.add(state, path._replace(slot=np.zeros_like(path.slot)))


def twice(patch, setting):
    learner = setting.build()
    return around(learner, add=lambda state, path: learner.add(learner.add(state, path), path))


def rewards_twice(learner, state, path):
    before = state.earned.plays.copy(), state.earned.total.copy()
    state = learner.add(state, path)
    for array, was in zip((state.earned.plays, state.earned.total), before, strict=True):
        array += array - was
    return state


ROWS = [
    ("the radius is halved", "K4", UNTOLD, made(with_numbers, scale=0.5)),
    ("the level is 1 at all times", "K4", UNTOLD, made(with_numbers, size=np.inf)),
    (
        "plans end ten times too early",
        "K4",
        GREEDY,
        lambda patch, setting: with_numbers(patch, setting, tolerance=3 * setting.steps**0.5),
    ),
    ("gamma is a tenth too small in the plan", "K4", UNTOLD, other_discount),
    ("the least optimistic action is played", "K4 K5", GREEDY, lambda patch, setting: another_action(setting.build())),
    ("supports are not used", "K4", GREEDY, made(with_numbers, support=False)),
    ("the maximum over a set is the mean of p_hat, to the observer", "K2", GREEDY, no_maximum),
    (
        "the maximum over a set is its minimum, to the observer",
        "K2 K10",
        SMALL,
        changed(claims, "largest", lambda was, successors, D, rho, support, V: -was(successors, D, rho, support, -V)),
    ),
    ("optimistic values are halved, to the observer", "K3", SMALL, made(times, 0.5)),
    ("optimistic values count a thousand times, to the observer", "K7 K8 K12", SMALL, made(times, 1000)),
    ("gaps are too large by H, to the observer", "K11", SMALL, large_gaps),
    ("rho* is in millionths", "K13 K14", SMALL, in_millionths),
    ("y_t is drawn for another action", "K6", SMALL, for_another_action),
    ("every candidate is played", "K4", DRAWN, made(with_numbers, slack=100.0)),
    ("successors are counted in the wrong place", "K1", GREEDY, replaced(add=wrong_place)),
    ("every path is counted twice", "K1", GREEDY, twice),
    ("phases end at resets only", "K9a", LONG, lambda patch, setting: setting.build()._replace(until=at_reset())),
    (
        "no phase ends after step 30",
        "K9a K9b K9c",
        SMALL,
        lambda patch, setting: setting.build()._replace(
            until=lambda state, time: Until(reset=False, deadline=np.where(time < 30, time + 3, setting.steps))
        ),
    ),
    (
        "a phase ends with every step",
        "K9d",
        LONG,
        lambda patch, setting: setting.build()._replace(until=lambda state, time: Until(reset=True, deadline=time + 1)),
    ),
    ("rewards have no radius", "K4", EARNED, made(with_numbers, reward_scale=0.0)),
    ("rewards are counted twice", "K1", EARNED, replaced(add=rewards_twice)),
]
mutation = Mistakes(NAMES, ROWS)
