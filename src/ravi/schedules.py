"""When does an epoch end? Schedules: (state, time) -> Until."""

from __future__ import annotations

from typing import Any

from ravi.core import Array, Schedule, Until


def at_reset() -> Schedule:
    """At the next reset: epochs of geometric length with mean H (Algorithm 1)."""
    until = Until(reset=True)

    def schedule(state: Any, time: Array) -> Until:
        return until

    return schedule


STRETCH = 2**20  # plays after which a run can be stopped


def never() -> Schedule:
    """At no reset: for policies that do not change. (Long runs are cut, so that they can be stopped in between.)"""

    def schedule(state: Any, time: Array) -> Until:
        return Until(reset=False, deadline=time + STRETCH)

    return schedule
