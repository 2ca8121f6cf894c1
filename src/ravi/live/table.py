"""`StreamTable`: what is known of a problem whose kernel is out in the world. It grows as the stream is seen.

A learner is built from a `Problem`. Here its arrays are read-only views of the table's own: the rewards and the start
are written as they become known, and a learner reads them anew whenever it plans. Successors are storage, not
knowledge: a successor that is met for the first time takes the place of one that was never met, in ascending order; the
learner is then built anew on the table, and its state laid out like it. Sizes that grow keep what was there: new rows
of a state are as the learner begins them.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, Array, Path, Problem, restrict
from ravi.runtime import tree
from ravi.validation import InputError, require_table

FEW = 4  # successors that a pair has room for, at first
COUNTED = ("moves", "earned", "least", "most")  # by pair and successor


class Exchange(NamedTuple):
    """A successor of (x, a) that was met for the first time took the place of one that never was."""

    x: int
    a: int
    gone: int  # the place of that one
    come: int  # and of the new one, in ascending order

    def lay_out(self, counts: Array, new: int = 0) -> Array:
        """Counts of successors (X, A, B) as they lie now, in place; `new` is that of the new one."""
        row, gone, come = counts[self.x, self.a], self.gone, self.come
        if gone < come:
            row[gone:come] = row[gone + 1 : come + 1]
        else:
            row[come + 1 : gone + 1] = row[come:gone]
        row[come] = new
        return counts


class Widening(NamedTuple):
    """All pairs have more successors than before, since one of them had no room for another."""

    before: Array  # (X, A, B)
    after: Array

    def lay_out(self, counts: Array) -> Array:
        """Counts of successors as they lie now."""
        return move_counts(counts, self.before, self.after)


class StreamTable:
    def __init__(self, problem: Problem, *, closed: bool) -> None:
        self.closed = closed  # whether a successor that is not stored is impossible
        self.exact = False  # and one that is stored at probability 0, too
        self.problem, self.support = problem, problem.support
        self.rewards, self.successors, self.initial = (
            np.array(array) for array in (problem.rewards, problem.successors, problem.initial)
        )
        self.moves = np.zeros(self.successors.shape, np.int64)  # how often each successor was met
        self.earned, self.least, self.most = np.zeros((3, *self.successors.shape))  # what was earned then
        self.late = np.zeros(self.rewards.shape, np.int64)  # plays of a pair before it last showed something new
        self._index()

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.states, self.actions, self.successors.shape[2]

    def view(self) -> Problem:
        """The problem as it is known: views of the table's arrays."""
        views = {name: getattr(self, name).view() for name in ("rewards", "successors", "initial", "support")}
        for view in views.values():
            view.setflags(write=False)
        return restrict(self.problem, MDP if isinstance(self.problem, MDP) else Problem, **views)

    def slot(self, x: int, a: int, y: int) -> int:
        """The place of y among the successors of (x, a); -1 where it has none yet."""
        key = (x * self.actions + a) * self.states + y
        found = self.known.get(key)
        if found is None:
            row = self.successors[x, a]
            found = int(np.searchsorted(row, y))
            if found == len(row) or row[found] != y:
                return -1
            self.known[key] = found
        return found

    def rules_out(self, x: int, a: int, y: int) -> bool:
        """Whether (x, a) cannot lead to y, of a table that is closed."""
        slot = self.slot(x, a, y)
        return slot < 0 or (self.exact and not self.support[x, a, slot])

    def count(self, path: Path, rewards: Array) -> None:
        """Count the successors and rewards of a path."""
        of = (self.moves, self.earned, self.least, self.most, self.late)
        _count(*of, path.state, path.action, path.slot, rewards, path.length[0])

    def copied(self) -> StreamTable:
        """A copy that has its own counts."""
        made = copy(self)
        for name in (*COUNTED, "late"):
            setattr(made, name, getattr(self, name).copy())
        return made

    def add_successor(self, x: int, a: int, y: int) -> Exchange | Widening | None:
        """Make a place for y among the successors of (x, a), for the first time. None: it is the first that the pair
        led to, and there are no counts to lay out."""
        X, A, B = self.sizes
        layout: Exchange | Widening
        unmet = [j for j, count in enumerate(self.moves[x, a].tolist()) if count == 0]
        if unmet:
            row, gone = self.successors[x, a], unmet[-1]
            states = row.tolist()
            for z in states:
                self.known.pop((x * A + a) * X + z, None)
            before = bisect_left(states, y)
            layout = Exchange(x, a, gone, before - (gone < before))
            layout.lay_out(self.successors, y)
            if len(unmet) == B:
                return None
        else:
            layout = Widening(self.successors, _wider(self.successors, min(X, 2 * B), x, a, y))
            self.successors = layout.after
            self._index()
        for name in COUNTED:
            setattr(self, name, layout.lay_out(getattr(self, name)))
        return layout

    def grow(self, states: int, actions: int) -> None:
        """Enlarge the table to these numbers of states and actions; what it holds stays."""
        if self.problem.features is not None or self.problem.pair_features is not None:
            raise InputError(f"{self.problem.name} has features; a table with features cannot grow")
        X, A, B = self.sizes
        require_table(self.problem.name, "the number of states that are met", states, actions, B)
        successors = first_states(states, actions, B)
        successors[:X, :A] = self.successors
        self.successors = successors
        for name in COUNTED:
            was = getattr(self, name)
            setattr(self, name, corner(np.zeros((states, actions, B), was.dtype), was))
        self.late = corner(np.zeros((states, actions), np.int64), self.late)
        self.rewards = corner(np.ones((states, actions)), self.rewards)
        self.initial = corner(np.zeros(states), self.initial)
        self._index()

    def _index(self) -> None:
        """Set the sizes; slots are looked up again when they are needed."""
        if self.support.shape != self.successors.shape:
            self.support = np.broadcast_to(np.True_, self.successors.shape)
        self.states, self.actions, _ = self.successors.shape
        self.known: dict[int, int] = {}  # slots that were asked for, by (x A + a) X + y


def unknown_problem(states: int, actions: int, discount: float, units: tuple[float, float], name: str) -> Problem:
    """A problem of which nothing is known but its size."""
    X, A = validation.whole(states, "states"), validation.whole(actions, "actions")
    require_table(name, "states or actions", X, A, min(X, FEW))
    return Problem(
        rewards=np.ones((X, A)),
        successors=first_states(X, A, min(X, FEW)),
        initial=np.full(X, 1 / X),
        discount=discount,
        units=units,
        name=name,
    )


def first_states(X: int, A: int, B: int) -> Array:
    """Rows of successors, none of which was met."""
    return np.ascontiguousarray(np.broadcast_to(np.arange(B, dtype=np.int32), (X, A, B)))


def lay_out_state(state: Any, layout: Exchange | Widening, sizes: tuple[int, int, int]) -> Any:
    """A learner's state in the new layout of its successors. Counts of successors are its arrays (n, X, A, B)."""

    def change(leaf: Array) -> Array:
        return layout.lay_out(leaf[0])[None] if leaf.ndim == 4 and leaf.shape[1:] == sizes else leaf

    return tree.map_leaves(change, state)


def move_counts(counts: Array, before: Array, after: Array) -> Array:
    """Counts on the successors `before`, on those of `after`, which has all that were ever counted."""
    wide = np.zeros((*after.shape[:-1], before.shape[-1] + after.shape[-1]), counts.dtype)
    place = (after[..., None, :] < before[..., :, None]).sum(-1)  # where each of `before` is, if it is there
    there = np.take_along_axis(after, np.minimum(place, after.shape[-1] - 1), -1) == before
    spare = after.shape[-1] + np.arange(before.shape[-1])  # those that are gone, beyond the end
    np.put_along_axis(wide, np.where(there, place, spare), counts, -1)
    return wide[..., : after.shape[-1]].copy()


def enlarge_state(old: Any, fresh: Any) -> Any:
    """The state of a learner on a larger table: what it was where it was, as it begins everywhere else.

    Actions that are new get their uniform share of every policy. Where an array of the larger table is smaller (a plan
    of fewer stages), it begins anew.
    """
    before, after = old.policy.shape[-2:], fresh.policy.shape[-2:]  # X, A
    parts = {}
    for (name, was), (_, new) in zip(tree.leaves(old), tree.leaves(fresh), strict=True):
        if any(here < there for here, there in zip(new.shape, was.shape, strict=True)):
            parts[name] = new
            continue
        if name.endswith("policy") and after[1] > before[1]:
            was = _shared(was, before[1] / after[1], log=name.startswith("log"))
            new[..., : before[0], before[1] :] = -np.log(after[1]) if name.startswith("log") else 1 / after[1]
        pairs = [sizes == (prod(before), prod(after)) for sizes in zip(was.shape, new.shape, strict=True)]
        large = new.reshape(_apart(new.shape, pairs, after))
        parts[name] = corner(large, was.reshape(_apart(was.shape, pairs, before))).reshape(new.shape)
    return tree.fill(fresh, parts)


def _shared(policy: Array, share: float, *, log: bool) -> Array:
    """A policy, or its logarithm, with this share of its mass: the rest is for actions that it did not have."""
    return policy + np.log(share) if log else policy * share


def _apart(shape: tuple[int, ...], pairs: list[bool], sizes: tuple[int, int]) -> list[int]:
    """A shape in which axes of pairs, x A + a, are two: states and actions."""
    return [n for size, of_pairs in zip(shape, pairs, strict=True) for n in (sizes if of_pairs else (size,))]


def corner(large: Array, small: Array) -> Array:
    """`large` with `small` in its corner, in place."""
    large[tuple(slice(0, size) for size in small.shape)] = small
    return large


@compiled
def _count(moves, earned, least, most, late, state, action, slot, rewards, length):  # type: ignore[no-untyped-def]
    for l in range(length):
        x, a, j, reward = state[0, l], action[0, l], slot[0, l], rewards[0, l]
        new, low, high = moves[x, a, j] == 0, least[x, a, j], most[x, a, j]
        if new:
            least[x, a, j] = most[x, a, j] = reward
        else:
            new = low == high and reward != low
            least[x, a, j], most[x, a, j] = min(low, reward), max(high, reward)
        if new:
            late[x, a] = moves[x, a].sum()
        moves[x, a, j] += 1
        earned[x, a, j] += reward


def _wider(successors: Array, B: int, x: int, a: int, y: int) -> Array:
    """Rows of B successors: those that are there, y for the pair (x, a), and the first states that are not."""
    X, A, few = successors.shape
    there = np.zeros((X, A, B + 1), np.bool_)
    np.put_along_axis(there, np.minimum(successors, B), True, -1)
    there[x, a, min(y, B)] = True
    first = np.argsort(there[..., :B], -1, kind="stable")[..., : B - few]
    wide = np.concatenate([successors, first], -1).astype(np.int32)
    wide[x, a, -1] = y
    return np.sort(wide, -1)
