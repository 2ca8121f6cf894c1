"""Schedules, which say when an epoch ends: (state, time) -> Until.

at_reset       at the next reset
never          at none: for policies that do not change
doubling       when the visits of a pair in this epoch reach the visits before it (UCRL2)
reset_or_doubling  whichever comes first (RAVI-KL)
whenever       when the policy changes: for learners that learn at every step
"""

from typing import Any

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Schedule, Until

STRETCH = 2**20  # plays after which a run can be stopped


def at_reset() -> Schedule:
    """At the next reset: epochs of geometric length with mean H (Algorithm 1).

    Returns
    -------
    Schedule

    Examples
    --------
    >>> at_reset()(None, np.array([0])).reset
    True
    """
    until = Until(reset=True)

    def schedule(state: Any, time: Array) -> Until:
        return until

    return schedule


def never() -> Schedule:
    """At no reset, for policies that do not change; long runs are cut, so that they can be stopped in between.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> never()(None, np.array([0, 100])).deadline - STRETCH
    array([  0, 100])
    """
    return after_a_stretch


def after_a_stretch(state: Any, time: Array) -> Until:
    """The schedule of `never`. It says the same of all states."""
    return Until(reset=False, deadline=time + STRETCH)


@compiled
def seed_never(own, i, t):  # type: ignore[no-untyped-def]
    """The deadline of `never`, of a seed whose next step is t: a plan of nothing (`ravi.core.Seedwise`)."""
    return t - 1 + STRETCH


def whenever() -> Schedule:
    """At no reset; the learner's own `learn` ends the epoch, when the policy changes.

    Returns
    -------
    Schedule

    Examples
    --------
    >>> whenever()(None, np.array([0])).reset
    False
    """
    return never()


def doubling() -> Schedule:
    """When the visits of some pair within the epoch reach max(1, n), n its visits before (UCRL2).

    Returns
    -------
    Schedule
        It reads `state.data.visits`, of shape (n, X, A).

    Examples
    --------
    >>> from types import SimpleNamespace as Namespace
    >>> state = Namespace(data=Namespace(visits=np.array([[[0, 3]]])))
    >>> doubling()(state, np.array([0])).visits
    array([[[1, 3]]])
    """

    def schedule(state: Any, time: Array) -> Until:
        return Until(reset=False, visits=np.maximum(state.data.visits, 1))

    return schedule


def reset_or_doubling() -> Schedule:
    """At the next reset, or when the visits of some pair within the epoch reach max(1, n), whichever comes first.

    Returns
    -------
    Schedule
        It reads `state.data.visits`, of shape (n, X, A).

    Examples
    --------
    >>> from types import SimpleNamespace as Namespace
    >>> until = reset_or_doubling()(Namespace(data=Namespace(visits=np.array([[[0, 3]]]))), np.array([0]))
    >>> until.reset, until.visits.tolist()
    (True, [[[1, 3]]])
    """

    def schedule(state: Any, time: Array) -> Until:
        return Until(reset=True, visits=np.maximum(state.data.visits, 1))

    return schedule
