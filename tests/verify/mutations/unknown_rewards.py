"""Mistakes of a learner that does not know its rewards, each with the claims that must catch it.

As in `variants.py`; what plays earn is broken in `ravi.estimators.rewarded`, what is made of it where the
learner finds it (the names in `ravi.learners.ravi_ucb.unknown_rewards`), so that the observer, who has its own, stays
sound.
"""

import numpy as np

from ravi.estimators import rewarded
from ravi.learners.ravi_ucb import unknown_rewards
from ravi.random import REWARD, SUCCESSOR, uniform
from ravi.runtime import tree
from tests.verify.mutations import Mistakes, Setting, by, changed, put, replaced

ONE = Setting("garnet/3,2,3,discount=0.5", "ravi-ucb/unknown-rewards,scale=0.03,step_scale=60", 400, 6)
SEVERAL = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb+/unknown-rewards,inner=3,eta=0.5", 250, 6)
# Where H is next to 1, the bounds are below T soon enough for a mistake to exceed them.
SHORT = Setting("trap,discount=0.01", "ravi-ucb+/unknown-rewards,inner=1", 1500, 6, only=("U6", "U7", "U8"))
NAMES = {SEVERAL: "several", ONE: "one backup", SHORT: "short"}


# ---- what plays earn


def earning(patch, rule):
    """Plays that earn rule(r, u, key, t): r = r(x, a), u = number REWARD of step t."""

    def earn(plays, total, key, rewards, random, state, action, length, first):
        for i in range(len(state)):
            for l in range(length[i]):
                x, a, t = state[i, l], action[i, l], first[i] + l
                plays[i, x, a] += 1
                total[i, x, a] += rule(rewards[x, a], uniform(key[i], t, REWARD), key[i], t)

    patch.setattr(rewarded, "_earn", earn)


def added(learner, change):
    """A learner whose plays and totals are change(before, after) of every stretch, in place."""

    def add(state, path):
        before = tree.copy(state.data)
        done = learner.add(state, path)
        change(before, done.data, path)
        return done

    return learner._replace(add=add)


def from_one(learner, keys):
    state = learner.init(keys)
    state.data.plays[:] += 1
    return state


def forgetful(patch, setting):
    def change(before, after, path):
        after.plays[:] -= before.plays
        after.total[:] -= before.total

    return added(setting.build(), change)


def shared(patch, setting):
    def change(before, after, path):
        after.total[:] = after.total.mean(0)

    return added(setting.build(), change)


def unlearned(patch, setting):
    def add(state, path):
        state.time[:] += path.length
        return state

    return setting.build()._replace(add=add)


# ---- what is made of it


def planned_with(patch, table, setting):
    """A learner that plans with table(plays, total, spread) in place of min{r_hat + b, 1}."""
    patch.setattr(unknown_rewards, "optimistic_rewards", table)
    return setting.build()


def mean(plays, total):
    return np.where(plays > 0, total / np.maximum(plays, 1), 0.0)


def width(plays, spread, none=1.0):
    return np.where(plays > 0, np.minimum(spread / np.sqrt(np.maximum(plays, 1)), 1), none)


def too_small(patch, setting):
    sound = unknown_rewards.optimistic_rewards
    return planned_with(patch, lambda n, total, spread: sound(n, total, spread / 50), setting)


ROWS = [
    ("a step earns 1 with probability 1 - r", "U1 U3a", SEVERAL, by(earning, lambda r, u, key, t: float(u >= r))),
    (
        "a step earns 1 with probability 1 - r, and that is learned",
        "U8 U8s",
        SHORT,
        by(earning, lambda r, u, key, t: float(u >= r)),
    ),
    (
        "rewards are drawn by the number that draws successors",
        "U1",
        SEVERAL,
        by(earning, lambda r, u, key, t: float(uniform(key, t, SUCCESSOR) < r)),
    ),
    ("a step earns r itself, though rewards are random", "U1", SEVERAL, by(earning, lambda r, u, key, t: r)),
    ("visits are counted from 1, as those of the kernel are", "U1", SEVERAL, replaced(init=from_one)),
    ("visits and totals begin anew with every stretch", "U1 U5", ONE, forgetful),
    ("seeds share what they earn", "U1", SEVERAL, shared),
    ("nothing is learned", "U6 U7 V2a", SHORT, unlearned),
    (
        "the event is for one number of visits only: no T in the logarithm",
        "U2 V2c",
        SEVERAL,
        changed(unknown_rewards, "reward_spread", lambda spread, X, A, T, delta: spread(X, A, 1, 1.0)),
    ),
    ("b is a fiftieth", "U2 U4", ONE, too_small),
    (
        "b is three times what it says",
        "U2 U4",
        SEVERAL,
        lambda patch, setting: planned_with(
            patch, lambda n, total, spread: mean(n, total) + 3 * width(n, spread), setting
        ),
    ),
    (
        "r_hat + b is not cut at 1",
        "U2",
        SEVERAL,
        lambda patch, setting: planned_with(patch, lambda n, total, spread: mean(n, total) + width(n, spread), setting),
    ),
    (
        "what was never played is thought to earn 0",
        "U2 U4",
        SEVERAL,
        lambda patch, setting: planned_with(
            patch, lambda n, total, spread: np.minimum(mean(n, total) + width(n, spread, none=0.0), 1), setting
        ),
    ),
    (
        "rewards are added that were not to be known",
        "V1b",
        SEVERAL,
        put(unknown_rewards, "without_rewards", lambda problem: problem),
    ),
    (
        "rewards have a bonus, and the kernel has none",
        "U2 U3b V3 V4",
        ONE,
        changed(
            unknown_rewards,
            "with_rewards",
            lambda sound, bonus, spread: sound(lambda D, phi: 0 * bonus(D, phi), spread),
        ),
    ),
]
mutation = Mistakes(NAMES, ROWS, ", where rewards are not known")
