"""Learners over the rows of a batch: compiled learners over all seeds, and several settings of one learner.

A compiled learner is written once: `init`, the `plan` of one seed, the `learn` of one step. A run by
`ravi.runtime.compiled`, on a CPU or a GPU, calls these as they are. A stream, and a run with measures in Python, call
the `plan`, `add`, `until` and `walk` of a learner, which are made here.

A batch of several settings has the leading axis (setting, seed), settings first. Numbers of bonus and step size (what
`scale`, `step_scale`, `eta` and `beta` make) may be one of every row; a row is the same alone and in a batch, so every
setting comes out as by itself. Learners are built one by one, each with all checks of its own; what they have in common
is built once more, by `SettingsBatch.of`, with those numbers as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from ravi import validation
from ravi._jit.functions import instance, uncounted
from ravi._jit.teams import Buffer, allocate, map_leaves
from ravi.core import Array, Learner, Path, Seedwise, SettingsBatch, Until
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
    planning = _Planning(form)
    found = learner._replace(plan=planning.plan, add=planning.add, until=planning.until, walk=None)
    if form.changes:
        walk = walking(form.learn, lambda state, walkers: allocate(form.of(state, 1, walkers.key)))
        found = found._replace(add=keep, until=whenever(), walk=walk)
    return found.derived_from(form)


class _Planning:
    """Plans and learning of all seeds, in place, with scratch that serves one call at a time."""

    def __init__(self, form: Seedwise) -> None:
        self.form, self.buffers = form, dict[Any, Array]()
        self.end = Until(form.reset)  # of the epoch that was planned last

    def _own(self, state: Any, new: bool) -> Any:
        """What `plan` and `learn` are given. new: with a new array of the visits that are left, which the epoch counts
        down; else with arrays of which nothing is read."""
        given, places = self.form.of(state, 1, None), count()
        left = None if self.form.left is None else self.form.left(given)

        def allocated(leaf: Any) -> Any:
            if not isinstance(leaf, Buffer):
                return leaf
            key = next(places), leaf, leaf is left and not new
            if key not in self.buffers or (leaf is left and new):
                self.buffers[key] = np.empty(leaf.shape, leaf.dtype)
            return self.buffers[key]

        return map_leaves(allocated, given)

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


VARIED = ("scale", "step_scale", "eta", "beta")  # options that may be another in every row


def of_rows(build: Callable[..., Learner], numbers: tuple[float, ...], *same: Any) -> Learner:
    """The learner `build(*numbers)`, which can go with others. build: takes each as a number, or as one of every row
    (n,); nothing but `plan` and `seedwise` may depend on them. same: see `ravi.core.SettingsBatch`."""
    learner = build(*numbers)
    return learner._replace(rows=SettingsBatch(learner, numbers, same, build))


def alike(learners: Sequence[Learner]) -> bool:
    """Whether they go as one batch."""
    common = [_common(one) for one in learners]
    return common[0] is not None and all(other == common[0] for other in common)


def learner_of(learners: Sequence[Learner], n: int, rows: Array | None = None) -> Learner:
    """The learner of these rows (or of all) of a batch with n seeds of each setting."""
    if len(learners) == 1:
        return learners[0]
    numbers = np.array([one.rows.numbers for one in learners if one.rows is not None], np.float64)
    by_row = np.repeat(numbers, n, axis=0)
    batch = learners[0].rows
    assert batch is not None
    return batch.of(*np.ascontiguousarray((by_row if rows is None else by_row[rows]).T))


def positive(number: float | Array, name: str) -> Any:
    """A positive number; those of rows were checked one by one."""
    return number if isinstance(number, np.ndarray) else validation.positive(number, name)


def by_pair(number: float | Array) -> float | Array:
    """A number as it multiplies arrays (n, X, A): itself, or one of every row as (n, 1, 1)."""
    return number[:, None, None] if isinstance(number, np.ndarray) else number


def _common(learner: Learner) -> tuple[Any, ...] | None:
    """What a learner must share with those that go with it; None where it goes alone."""
    rows = learner.rows
    if rows is None or any(now is not built for now, built in zip(learner[:-1], rows.built[:-1], strict=True)):
        return None
    of = learner.parts
    assert of is not None
    stated = of.stated._replace(beta=None, scale=1.0, step_scale=1.0)  # which may be another in every row, like eta
    begins = of.initial_value.tobytes(), of.initial_policy.tobytes()
    return learner.name, rows.same, learner.side_information, stated, (of.inner, of.fresh, of.pick), begins
