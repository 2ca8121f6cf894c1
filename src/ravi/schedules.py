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


def never() -> Schedule:
    """Not before the run ends: for policies that do not change."""
    until = Until(reset=False)

    def schedule(state: Any, time: Array) -> Until:
        return until

    return schedule
