"""An estimator that learns rewards too: how often each pair was played, and what it earned.

    n(x, a) = plays,   total(x, a) = their rewards,   r_hat = total / n

A play of (x, a) at time t earns what the law of the rewards draws with mean r(x, a) (`ravi.random.earned`). Rewards are
read where a pair is played, and nowhere else.
"""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Data, Embedding, Estimator, Path, Problem
from ravi.random import earned as draw
from ravi.runtime.ranges import Count, Fixed, Positive
from ravi.validation import LAWS, InputError, one_of


class Rewarded(NamedTuple):
    inner: Data  # of the estimator; () where there is none
    plays: Count  # n(x, a)            (n, X, A)
    total: Positive  # sum of rewards     (n, X, A)
    key: Fixed  # of the seed's random numbers; the learner's `init` writes it   (n,)


class Earned(NamedTuple):
    """Of rewards that are not known, as a learner's compiled functions are given them."""

    plays: Array  # (n, X, A)
    total: Array  # (n, X, A)
    key: Array  # (n,)
    table: Array  # what is earned   (X, A)
    law: int  # of rewards, a value of `ravi.validation.LAWS`


NO_TABLE = np.zeros((0, 0))
NO_TABLE.flags.writeable = False  # as that of a problem is: both are compiled once
NOTHING = Earned(np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0)), np.zeros(0, np.uint64), NO_TABLE, 0)


def law_of(problem: Problem, rewards: str | None) -> str:
    """How plays earn: by the law of the MDP, else by the option `rewards`; "bernoulli" where neither says."""
    law = problem.reward_law
    if rewards is not None and one_of(rewards, LAWS, "rewards") != (law or rewards):
        raise InputError(f"rewards is {rewards}, but those of {problem.name} are {law}")
    return law or rewards or "bernoulli"


def rewarded(estimator: Estimator, rewards: Array, kind: str) -> Estimator:
    """`estimator`, which learns r (X, A) as well."""

    def init(n: int) -> Rewarded:
        shape = (n, *rewards.shape)
        return Rewarded(estimator.init(n), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(n, np.uint64))

    def expect(D: Rewarded, phi: Embedding) -> Array:
        return estimator.expect(D.inner, phi)

    def width(D: Rewarded, phi: Embedding) -> Array:
        return estimator.width(D.inner, phi)

    def add(D: Rewarded, V: Array, path: Path) -> Rewarded:
        estimator.add(D.inner, V, path)
        earn(D, rewards, kind, path)
        return D

    return Estimator(init, estimator.embed, expect, width, add)


def earn(D: Rewarded, rewards: Array, kind: str, path: Path) -> None:
    """Count what the steps of a path earned, in place."""
    _earn(D.plays, D.total, D.key, rewards, LAWS[kind], path.state, path.action, path.length, path.time)


@compiled
def _earn(plays, total, key, rewards, law, state, action, length, first):  # type: ignore[no-untyped-def]
    for i in range(state.shape[0]):
        for l in range(length[i]):
            earn_step(plays, total, key, rewards, law, i, first[i] + l, state[i, l], action[i, l])


@compiled
def earn_step(plays, total, key, rewards, law, i, t, x, a):  # type: ignore[no-untyped-def]
    """Count what seed i earned at step t, by action a in state x."""
    plays[i, x, a] += 1
    total[i, x, a] += draw(law, key[i], t, rewards[x, a])
