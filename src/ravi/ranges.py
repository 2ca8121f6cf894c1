"""What may an array of a run hold? The type of its field says so, and a file that is loaded is checked against it.

    class State(NamedTuple):
        data: Counts  # a tuple whose fields say it themselves
        best: Action  # 0 to A - 1                 (n, X)
        plays: Plays  # as many as were made       (n,)
        policy: Policy  # rows that sum to one     (n, X, A)

Compiled loops believe what they are given: an index out of range is memory of others, a nan may be a loop without end.
What a learner or a measure made itself needs no look, what a file says does. Shapes and dtypes are those of a run that
begins (`ravi.tree.fill`); ranges are these. Where arrays must belong together, their tuple has a method

    def agrees(self, facts: Facts) -> dict[str, Array | bool]   # what must be, in words -> where it is

A field of type Array says nothing, and is believed: so a learner of one's own goes on from a file too. It should say
which of its arrays are indices.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np

from ravi.checks import InputError, at, first

Array: TypeAlias = Any
LARGEST = 1e100  # of a number: its square, and sums of these, are numbers too
SLACK = 1e-6  # of a value, in parts of H, and of a logarithm
NEAR = 1e-3  # of what is computed in two ways: rounding, and of Lambda^{-1} what has gathered
TINY = 1e-300  # probabilities below it have few digits, or are 0
PLAYABLE = 1e-5  # |row sum - 1| of what is a policy; rows normalised in float32 are within 6e-8 A


class Facts(NamedTuple):
    """What a range may speak of."""

    states: int  # X
    actions: int  # A
    horizon: float  # H
    steps: int  # T
    time: Array  # steps made by each seed, at most T      (n,)
    walked: Array  # the same, with those of padding       (n,)
    most: int  # as many as can be: T, and padding where there is some


class Range(NamedTuple):
    """What a field may hold: `right` says where (array, facts, the same array of a run that begins)."""

    right: Callable[[Any, Facts, Any], Array | bool]
    words: str  # in which {states}, {most} and the like are the facts


def per_seed(values: Array, like: Array) -> Array:
    """One number per seed (n,), to compare with an array whose seeds come first."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _rows(policy: Array) -> Array:
    """Which rows are distributions."""
    return (policy >= 0).all(-1) & (np.abs(policy.sum(-1) - 1) <= PLAYABLE)


def _definite(a: Array, low: Array | float, high: Array | float) -> Array:
    """Which rows can be of a positive definite matrix, whose diagonal is between those of `low` and `high`."""
    diagonal, low, high = (np.diagonal(np.atleast_2d(each), axis1=-2, axis2=-1) for each in (a, low, high))
    most = np.sqrt(diagonal[..., None, :] * diagonal[..., None])
    even = (np.abs(a) <= (1 + NEAR) * most) & (np.abs(a - a.swapaxes(-1, -2)) <= NEAR * most)
    return even.all(-1) & (diagonal >= (1 - NEAR) * low) & (diagonal <= (1 + NEAR) * high)


def logarithms(log_policy: Array, policy: Array) -> Array:
    """Where the one holds the logarithms of the other, also of what has underflown."""
    least = np.log(np.maximum(policy, TINY))
    near = np.abs(log_policy - least) <= SLACK * (1 + np.abs(least))
    return np.where(policy > TINY, near, log_policy <= least + 1)


def between(low: float, high: Callable[[Facts], Any], words: str) -> Range:
    """From `low` to what the facts say."""
    return Range(lambda a, f, _: (a >= low) & (a <= high(f)), words)


def _until_now(low: int, more: int, words: str) -> Range:
    """Up to the steps of the seed, or to one more."""
    return Range(lambda a, f, _: (a >= low) & (a <= per_seed(f.time + more, a)), words)


Number: TypeAlias = Annotated[Array, Range(lambda a, f, _: np.abs(a) <= LARGEST, "a number")]
NumberOrNan: TypeAlias = Annotated[Array, Range(lambda a, f, _: ~(np.abs(a) > LARGEST), "a number, or nan for none")]
NumberOrNone: TypeAlias = Annotated[
    Array, Range(lambda a, f, _: (np.abs(a) <= LARGEST) | np.isinf(a), "a number, or infinite for none")
]
Positive: TypeAlias = Annotated[Array, between(0, lambda f: LARGEST, "a number that is not negative")]
Covariance: TypeAlias = Annotated[
    Array, Range(lambda a, f, begun: _definite(a, begun, LARGEST), "a row of lambda I and a sum of phi phi^T")
]
Inverse: TypeAlias = Annotated[
    Array, Range(lambda a, f, begun: _definite(a, 0.0, begun), "a row of the inverse of such a sum")
]
Probability: TypeAlias = Annotated[Array, between(0, lambda f: 1 + SLACK, "a probability")]
VALUE = Range(lambda a, f, _: np.abs(a - f.horizon / 2) <= f.horizon * (0.5 + SLACK), "a value from 0 to {horizon}")
Value: TypeAlias = Annotated[Array, VALUE]
Policy: TypeAlias = Annotated[Array, Range(lambda a, f, _: _rows(a), "a row of probabilities that sum to 1")]
PolicyOrNan: TypeAlias = Annotated[
    Array, Range(lambda a, f, _: _rows(a) | np.isnan(a).all(-1), "a row of probabilities, or nan while there is none")
]
LogPolicy: TypeAlias = Annotated[Array, between(-LARGEST, lambda f: SLACK, "the logarithm of a probability")]
Action: TypeAlias = Annotated[Array, between(0, lambda f: f.actions - 1, "one of {actions} actions, from 0")]
ActionOrNone: TypeAlias = Annotated[Array, between(-1, lambda f: f.actions - 1, "one of {actions} actions, or -1")]
Place: TypeAlias = Annotated[Array, between(0, lambda f: f.states - 1, "one of {states} states, from 0")]
PlaceOrNone: TypeAlias = Annotated[Array, between(-1, lambda f: f.states - 1, "one of {states} states, or -1")]
Flag: TypeAlias = Annotated[Array, between(0, lambda f: 1, "0 or 1")]
Walked: TypeAlias = Annotated[Array, between(0, lambda f: f.most, "a number of plays that can be made, at most {most}")]
Whole: TypeAlias = Annotated[Array, between(0, lambda f: 2**62, "a whole number from 0")]
Count: TypeAlias = Annotated[Array, _until_now(0, 0, "a count of plays, at most of all that were made")]
CountOrNone: TypeAlias = Annotated[Array, _until_now(-1, 0, "a count of plays, or -1 for none")]
Past: TypeAlias = Annotated[Array, _until_now(0, 0, "a play that was made, or 0")]
Next: TypeAlias = Annotated[Array, _until_now(0, 1, "a play that was made, or the next")]
Age: TypeAlias = Annotated[Array, between(0, lambda f: f.steps, "a number of plays since a reset, at most {steps}")]
Plays: TypeAlias = Annotated[
    Array, Range(lambda a, f, _: a == per_seed(f.time, a), "the number of plays made, which the walker says")
]
NextPlay: TypeAlias = Annotated[
    Array, Range(lambda a, f, _: a == per_seed(f.time + 1, a), "the next play after those that the walker says")
]
Fixed: TypeAlias = Annotated[Array, Range(lambda a, f, begun: a == begun, "what a run of its seed begins with")]


def check(held: Any, begun: Any, facts: Facts, name: str = "") -> None:
    """Hold a tree of arrays, filled from a file, against what its fields say; `begun` is that of a run that begins."""
    kind: Any = type(held)
    declared = _declared(kind)
    for label, part, start in _parts(held, begun):
        where = f"{name}.{label}" if name else label
        for rule in declared.get(label, ()):
            hold(rule, part, facts, where, start)
        if isinstance(part, tuple):
            check(part, start, facts, where)
    if hasattr(held, "agrees"):
        with np.errstate(all="ignore"):
            wrong = [words for words, right in held.agrees(facts).items() if not np.all(right)]
        if wrong:
            raise InputError(f"{name}: it is not so that {wrong[0]}")


def hold(rule: Range, array: Array, facts: Facts, name: str, start: Any = None) -> None:
    """The same for one array."""
    with np.errstate(all="ignore"):
        right = np.asarray(rule.right(array, facts, start))
    if not right.all():
        index = first(~right)
        said = f" {array[index]}," if isinstance(array, np.ndarray) else ""
        raise InputError(f"{at(name, index)} is{said} not {rule.words.format(**facts._asdict())}")


@cache
def _declared(kind: Any) -> dict[str, tuple[Range, ...]]:
    """The ranges of every field that has some."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):  # a tuple of one's own whose annotations are only read
        return {}
    ranges = {name: tuple(_ranges(hint)) for name, hint in hints.items()}
    return {name: found for name, found in ranges.items() if found}


def _ranges(hint: Any) -> Iterator[Range]:
    return (extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Range))


def _parts(held: Any, begun: Any) -> Iterator[tuple[str, Any, Any]]:
    labels = held._fields if hasattr(held, "_fields") else tuple(str(i) for i in range(len(held)))
    return zip(labels, held, begun, strict=True)
