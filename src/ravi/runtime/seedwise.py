"""The form of a compiled learner over all seeds, derived from its functions of one seed (`ravi.core.Seedwise`).

A compiled learner is written once: `init`, the `plan` of one seed, the `learn` of one step. A run by
`ravi.runtime.compiled`, on a CPU or a GPU, calls these as they are. A stream, and a run with measures in Python, call
the `plan`, `add`, `until` and `walk` of a learner, which are made here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ravi._jit.functions import instance, uncounted
from ravi._jit.teams import Buffer, made, mapped
from ravi.core import Array, Learner, Path, Seedwise, Until
from ravi.runtime.walk import keep, learn, walking
from ravi.schedules import whenever

plan = learn  # `bound` puts those of a learner here


def _plan_seeds(own, times, ends):  # type: ignore[no-untyped-def]
    """Plan for every seed; the step that ends its epoch at the latest, by seed."""
    for i in range(times.shape[0]):
        ends[i] = plan(own, i, times[i])


def _learn_paths(own, state, action, successor, slot, reset, length, time, after):  # type: ignore[no-untyped-def]
    """Learn from every step of every path."""
    for i in range(length.shape[0]):
        for l in range(length[i]):
            to = state[i, l + 1] if l + 1 < length[i] else after[i]
            learn(own, i, time[i] + l, state[i, l], action[i, l], successor[i, l], slot[i, l], reset[i, l], to)


def compiled_learner(
    name: str, init: Callable[[Array], Any], form: Seedwise, settings: dict[str, Any], **more: Any
) -> Learner:
    """The learner that plans and learns by `form`. more: further fields of `ravi.core.Learner`."""
    return over_all_seeds(Learner(name, init, keep, keep, whenever(), settings, **more), form)  # type: ignore[arg-type]


def over_all_seeds(learner: Learner, form: Seedwise) -> Learner:
    """`learner` with the plan, add, until and walk that `form` says."""
    if form.changes:
        walk = walking(form.learn, lambda state, walkers: made(form.of(state, 1, walkers.key)))
        found = learner._replace(plan=_Planning(form).plan, add=keep, until=whenever(), walk=walk)
    else:
        planning = _Planning(form)
        found = learner._replace(plan=planning.plan, add=planning.add, until=planning.until, walk=None)
    return found.derived_from(form)


class _Planning:
    """Plans and learning of all seeds, in place, with scratch that serves one call at a time."""

    def __init__(self, form: Seedwise) -> None:
        self.form, self.rooms = form, dict[Any, Array]()
        self.end = Until(form.reset)  # of the epoch that was planned last

    def _own(self, state: Any, new: bool) -> Any:
        """What `plan` and `learn` are given. new: with new room for the visits that are left, which the epoch counts
        down; else with room for nothing that is read."""
        given, places = self.form.of(state, 1, None), count()
        left = None if self.form.left is None else self.form.left(given)

        def held(leaf: Any) -> Any:
            if not isinstance(leaf, Buffer):
                return leaf
            key = next(places), leaf, leaf is left and not new
            if key not in self.rooms or (leaf is left and new):
                self.rooms[key] = np.empty(leaf.shape, leaf.dtype)
            return self.rooms[key]

        return mapped(held, given)

    def plan(self, state: Any) -> Any:
        form, n = self.form, len(state.policy)
        own, ends = self._own(state, True), np.empty(n, np.int64)
        times = np.ones(n, np.int64) if form.time is None else form.time(state)
        _of_all(_plan_seeds, plan=form.plan)(own, times, ends)
        visits = None if form.left is None else form.left(own).reshape(state.policy.shape)
        self.end = Until(form.reset, ends, visits)
        return state

    def until(self, state: Any, time: Array) -> Until:
        return self.end

    def add(self, state: Any, path: Path) -> Any:
        _of_all(_learn_paths, learn=self.form.learn)(self._own(state, False), *path)
        return state


@cache
def _of_all(frame: Callable[..., Any], **names: Any) -> Any:
    """`frame` with this function bound, compiled."""
    return uncounted(instance(frame, **names))
