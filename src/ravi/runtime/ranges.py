"""The declared ranges of arrays: the type of a field says what its array may hold, and a file is checked against it.

    class State(NamedTuple):
        data: Counts  # a tuple, whose fields declare their own ranges
        best: Action  # 0 to A - 1                 (n, X)
        plays: Plays  # as many as were made       (n,)
        policy: Policy  # rows that sum to one     (n, X, A)

Compiled code does not check its indices: one that is out of range reads or writes other memory, and a nan may make a
loop endless. What a learner or a measure computed is in range; what stands in a file need not be. Shapes and dtypes
are those of a run that begins (`ravi.runtime.tree.fill`), and ranges are checked here. That a value is within its range
does not make it the value of that run: a file that was changed within the ranges gives another answer.

A field of type Array declares nothing and is not checked, so a learner of one's own can be resumed too. It should
declare which of its arrays are indices.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np

from ravi.validation import InputError, at, first

Array: TypeAlias = Any
LARGEST = 1e100  # of a number: its square, and sums of these, are numbers too
SLACK = 1e-6  # of a value, in parts of H, and of a logarithm
PLAYABLE = 1e-5  # |row sum - 1| of what is a policy; rows normalised in float32 are within 6e-8 A


class Facts(NamedTuple):
    """What a range may depend on."""

    states: int  # X
    actions: int  # A
    horizon: float  # H
    steps: int  # T
    time: Array  # steps made by each seed, at most T      (n,)
    walked: Array  # the same, with those of padding       (n,)
    most: int  # the largest possible: T, and padding where there is some


class Range(NamedTuple):
    """What a field may hold.

    Attributes
    ----------
    right : where the array is in range: a function of the array, the facts, the same array of a run that begins, and
        the tuple that the array is a field of, for an index into another field
    words : the range in words, in which {states}, {most} and the like are the facts
    """

    right: Callable[[Any, Facts, Any, Any], Array | bool]
    words: str


def between(low: float, high: Callable[[Facts], Any], words: str) -> Range:
    """The range from `low` to what the facts say."""
    return Range(lambda a, f, *_: (a >= low) & (a <= high(f)), words)


def index_of(name: str, words: str, low: int = 0) -> Range:
    """The range of an index into the field `name` of the same tuple, by its first axis; from `low`."""
    return Range(lambda a, f, begun, held: (a >= low) & (a < len(getattr(held, name))), words)


def _per_seed(values: Array, like: Array) -> Array:
    """One number per seed (n,), to compare with an array whose seeds come first."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _until_now(low: int, more: int, words: str) -> Range:
    """The range up to the steps of the seed, or to one more."""
    return Range(lambda a, f, *_: (a >= low) & (a <= _per_seed(f.time + more, a)), words)


def _rows(policy: Array) -> Array:
    """Which rows are distributions."""
    return (policy >= 0).all(-1) & (np.abs(policy.sum(-1) - 1) <= PLAYABLE)


Number: TypeAlias = Annotated[Array, Range(lambda a, *_: np.abs(a) <= LARGEST, "a number")]
NumberOrNan: TypeAlias = Annotated[Array, Range(lambda a, *_: ~(np.abs(a) > LARGEST), "a number, or nan for none")]
NumberOrNone: TypeAlias = Annotated[
    Array, Range(lambda a, *_: (np.abs(a) <= LARGEST) | np.isinf(a), "a number, or infinite for none")
]
Positive: TypeAlias = Annotated[Array, between(0, lambda f: LARGEST, "a number that is not negative")]
Probability: TypeAlias = Annotated[Array, between(0, lambda f: 1 + SLACK, "a probability")]
VALUE = Range(lambda a, f, *_: np.abs(a - f.horizon / 2) <= f.horizon * (0.5 + SLACK), "a value from 0 to {horizon}")
Value: TypeAlias = Annotated[Array, VALUE]
Policy: TypeAlias = Annotated[Array, Range(lambda a, *_: _rows(a), "a row of probabilities that sum to 1")]
PolicyOrNan: TypeAlias = Annotated[
    Array, Range(lambda a, *_: _rows(a) | np.isnan(a).all(-1), "a row of probabilities, or nan while there is none")
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
    Array, Range(lambda a, f, *_: a == _per_seed(f.time, a), "the number of plays made, which the walker says")
]
NextPlay: TypeAlias = Annotated[
    Array, Range(lambda a, f, *_: a == _per_seed(f.time + 1, a), "the next play after those that the walker says")
]
Fixed: TypeAlias = Annotated[Array, Range(lambda a, f, begun, _: a == begun, "what a run of its seed begins with")]


def check(held: Any, begun: Any, facts: Facts, name: str = "") -> None:
    """Check a tree of arrays from a file against the ranges that its fields declare.

    Parameters
    ----------
    held
        The tree.
    begun
        The same tree of a run that begins.
    facts
        What ranges depend on; a tuple may say what those of the tuples in it do (`facts_within`).
    name
        Where the tree is, for the error.
    """
    within = held.facts_within(facts) if hasattr(held, "facts_within") else facts
    labels = held._fields if hasattr(held, "_fields") else tuple(str(i) for i in range(len(held)))
    kind: Any = type(held)
    declared = _declared(kind)
    for label, part, start in zip(labels, held, begun, strict=True):
        where = f"{name}.{label}" if name else label
        if isinstance(part, tuple):
            check(part, start, within, where)
        else:
            for rule in declared.get(label, ()):
                check_array(rule, part, facts, where, start, held)


def check_array(rule: Range, array: Array, facts: Facts, name: str, begun: Any = None, held: Any = None) -> None:
    """Check one array, or log, against a range; the error names the first entry that is out of it."""
    with np.errstate(all="ignore"):
        right = np.asarray(rule.right(array, facts, begun, held))
    if not right.all():
        index = first(~right)
        value = f" {array[index]}," if index and isinstance(array, np.ndarray) else ""
        raise InputError(f"{at(name, index)} is{value} not {rule.words.format(**facts._asdict())}")


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
