"""The common form of models of others: transitions as one list, rewards in [0, 1], labels; and the lines of files.

Every format ends here, in entries (x, a, x', probability, reward). What they may leave open is closed in one way:

- a state that is never left is an end: all actions stay there, and earn 0; a format whose tables have a row for every
  pair gives its `pairs`, and a row without transitions is an error
- where a state has fewer actions than others, the missing ones stand for those that it has (`stands_for`), which
  changes no value; `ravi.Policy.of(model, table)` plays those that there are
- rewards outside [0, 1] are shifted and scaled, and `MDP.units` leads back
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Array
from ravi.mdps.tables import RENORMALISED, reward_units, table_of
from ravi.validation import InputError, policy_table, require_memory


@dataclass(frozen=True, eq=False)
class Imported:
    """A model of others: the MDP, and what its numbers are called there.

    Attributes
    ----------
    mdp
        The MDP.
    states, actions
        Their labels, where they have others than numbers   (X,), (A,).
    stands_for
        The action that an action is, where a state has fewer   (X, A).

    Examples
    --------
    >>> import ravi
    >>> moves = {
    ...     "state": ["a", "b"],
    ...     "action": ["go"] * 2,
    ...     "next": ["b", "a"],
    ...     "probability": [1] * 2,
    ...     "reward": [0, 1],
    ... }
    >>> ravi.importers.table(moves, discount=0.5).states
    ['a', 'b']
    """

    mdp: MDP
    states: list[Any] | None
    actions: list[Any] | None
    stands_for: Array

    def played(self, table: Any) -> Array:
        """A policy of the MDP (X, A) by the actions that there are; `ravi.Policy.of(model, table)` has the labels."""
        given = policy_table(table, self.mdp.problem, "table")
        found = np.zeros_like(given)
        np.add.at(found, (np.arange(self.mdp.states)[:, None], self.stands_for), given)
        return found

    def __repr__(self) -> str:
        return repr(self.mdp).replace("<MDP", "<Imported", 1)


def mdp_of_entries(
    entries: Sequence[Any], X: int, A: int, discount: float, initial: Any, *, name: str,
    states: Sequence[Any] | None = None, actions: Sequence[Any] | None = None, renormalise: bool = False,
    pairs: Array | None = None,
    where: Callable[[int, int], str] = lambda x, a: f"state {x}, action {a}",
) -> Imported:  # fmt: skip
    """The MDP of entries, columns x, a, x', probability and reward (in the units of the source) in any order; several
    of one (x, a, x') are added up.

    `pairs` are those that must have some (X, A), those that have any unless given; `where` says of a pair how its
    source calls it, and where it stands there.
    """
    gamma = validation.probability(discount, "discount")
    n = len(entries[0])
    require_memory(200 * n, f"{name} with {n:,} transitions", "their number")
    x, a, y = (np.asarray(each, np.int64) for each in entries[:3])
    p, r = (np.asarray(each, float) for each in entries[3:])
    _check_numbers(x, a, y, p, r, states, where)
    pair = x * A + a
    total = np.bincount(pair, weights=p, minlength=X * A).reshape(X, A)
    there = np.bincount(pair, minlength=X * A).reshape(X, A) > 0 if pairs is None else pairs
    _check_sums(total, there, renormalise, where)
    p = p / total[x, a] if renormalise else p
    ends = np.asarray(~there.any(1))
    stands_for = np.maximum.accumulate(np.where(there, np.arange(A), -1), axis=1)
    stands_for = np.where(stands_for < 0, there.argmax(1)[:, None], stands_for)
    stands_for[ends] = np.arange(A)
    low, high = reward_units(r[p > 0], zero=bool(ends.any()))
    one, distance = np.zeros((X, A)), np.zeros((X, A))  # a reward of the pair, and the mean distance from it:
    one[x, a] = r
    np.add.at(distance, (x, a), p * (r - one[x, a]))  # exact where all are the same
    earned = one + distance
    rewards = np.take_along_axis(earned, stands_for, 1)
    led, r = _transitions(x, a, y, p, ends, there, stands_for), np.clip((rewards - low) / (high - low), 0.0, 1.0)
    mdp = table_of(led, r, gamma, initial, name=name, units=(low, high))
    named = [None if each is None else list(each) for each in (states, actions)]
    return Imported(mdp, named[0], named[1], validation.read_only_copy(stands_for))


def _check_numbers(
    x: Array, a: Array, y: Array, p: Array, r: Array, states: Sequence[Any] | None, where: Callable[[int, int], str]
) -> None:
    """An error at the first probability, or reward, that is none."""
    for wrong, what, values in (
        (~((p >= 0) & (p < np.inf)), "the probability of a move to state {} is {:g}, not between 0 and 1", p),
        (~np.isfinite(r), "the reward of a move to state {} is {:g}, not a finite number", r),
    ):
        if wrong.any():
            i = int(wrong.argmax())
            message = what.format(y[i] if states is None else repr(states[y[i]]), values[i])
            raise InputError(f"{where(int(x[i]), int(a[i]))}: {message}")


def _check_sums(total: Array, there: Array, renormalise: bool, where: Callable[[int, int], str]) -> None:
    off = np.where(there, np.abs(total - 1), 0.0)
    wrong = off > (RENORMALISED if validation.flag(renormalise, "renormalise") else validation.SUM_TOLERANCE)
    if wrong.any():
        x, a = validation.first(wrong)
        hint = "" if off[x, a] > RENORMALISED or renormalise else "; renormalise=True rescales such rows"
        raise InputError(f"{where(x, a)}: the probabilities sum to {total[x, a]:.10g}, not 1{hint}")


def _transitions(x: Array, a: Array, y: Array, p: Array, ends: Array, there: Array, stands_for: Array) -> Any:
    """The entries of the kernel: those given, those of actions that repeat another, and those of ends."""
    A = there.shape[1]
    yield x, a, y, p
    if ends.any():
        last = np.flatnonzero(ends)[:, None]
        yield last, np.arange(A), last, 1.0
    for b in range(A):  # copies of what action b stands for, where it is not there itself
        missing = ~there[:, b] & ~ends
        of = missing[x] & (a == stands_for[x, b])
        if of.any():
            yield x[of], b, y[of], p[of]


def is_whole(word: str) -> bool:
    """Whether a word is a whole number: digits that Python reads, and no others."""
    return re.fullmatch("[0-9]{1,4000}", word) is not None


class Places:
    """Values by the place where they stand, a line of a file or a row of a table: errors begin with it."""

    def __init__(self, where: Callable[[int], str]) -> None:
        self.where = where

    def wrong(self, place: int, what: str) -> InputError:
        return InputError(f"{self.where(place)}: {what}")

    def checked(self, place: int, check: Callable[..., Any], *given: Any) -> Any:
        """The value of a check."""
        try:
            return check(*given)
        except InputError as error:
            raise self.wrong(place, str(error)) from None

    def whole(self, place: int, value: Any, name: str, least: int = 0, most: int = 2**62) -> int:
        return self.checked(place, validation.whole, value, name, least, most)

    def number(self, place: int, value: Any, name: str) -> float:
        return self.checked(place, validation.number, value, name)

    def probability(self, place: int, value: Any) -> float:
        found = self.number(place, value, "the probability")
        if not 0 <= found <= 1:
            raise self.wrong(place, f"the probability is {found:g}, not between 0 and 1")
        return found


class Lines(Places):
    """The lines of a file that hold something, each with its number."""

    def __init__(self, path: str | os.PathLike[str], comment: str | None = "#") -> None:
        self.path = validation.path(path, "the file")
        super().__init__(lambda line: f"{self.path}, line {line}")
        try:
            require_memory(10 * self.path.stat().st_size, f"the text of {self.path}", "its size")
            text = self.path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"there is no file {self.path}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} cannot be read as a text: {error}") from None
        self.rows: list[tuple[int, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            held = (line if comment is None else line.partition(comment)[0]).strip()
            if held:
                self.rows.append((number, held))
