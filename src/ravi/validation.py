"""Validation of all that comes from outside: numbers, arrays, MDPs, and the memory that they need.

Every border of the library asks here, and every error names the entry.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from ravi.core import MDP, Problem

T = TypeVar("T")

SUM_TOLERANCE = 1e-9  # a row of float64 probabilities that was normalised once is within about 1e-16 * B
LEAST, MOST = 1e-307, 1e308  # of a positive number: beyond, float64 loses digits, and then the number
MOST_SEEDS, LAST_SEED = 10**6, 2**63 - 1  # how many there are in one run, and which is the last
LONGEST = 10**6  # of a range that stands for an array
LONGEST_NAME = 255  # of a file
LEAST_DELTA = 1e-100  # of a failure probability: X A T / delta and the like are finite
# What Python or NumPy would make a number of, and is none: the mistake would go unseen.
NO_NUMBER = (bool, np.bool_, bytes, bytearray, complex, np.complexfloating, np.datetime64, np.timedelta64)
HELD = {"U": "texts", "S": "bytes", "M": "dates", "m": "spans of time", "V": "records"}  # by kinds of dtype
SYNONYMS = {"cuda": "gpu"}  # of other libraries
SHOWN = Repr()  # of values in messages: the beginning of long ones
SHOWN.maxstring = SHOWN.maxother = SHOWN.maxlong = 80


class InputError(ValueError):
    """An invalid argument or file; the message names the entry and what is wrong with it.

    Examples
    --------
    >>> import ravi
    >>> ravi.mdp("riverswin/6")
    Traceback (most recent call last):
    ...
    ravi.validation.InputError: ...riverswim...
    """


class StreamError(InputError):
    """An impossible observation on a stream; the message names the step and the value.

    Examples
    --------
    >>> import ravi
    >>> agent = ravi.agent("psrl", states=2, actions=1, discount=0.9, steps=10)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 1, reward=7.0)
    Traceback (most recent call last):
    ...
    ravi.validation.StreamError: ...
    """


def at(name: str, index: Iterable[Any]) -> str:
    """`transitions[3, 1]`: how errors point to an entry."""
    inside = ", ".join(str(int(i)) for i in index)
    return f"{name}[{inside}]" if inside else name


def first(mask: np.ndarray) -> tuple[int, ...]:
    """The index of the first true entry."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    words, meant = list(known), SYNONYMS.get(word.lower(), word.lower())
    close = [meant] if meant in words else difflib.get_close_matches(word, words, n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def shown(value: Any) -> str:
    """A value as a message can hold it: on one line."""
    try:
        return " ".join(line.strip() for line in SHOWN.repr(value).splitlines())
    except Exception:  # a number of more digits than Python writes, or an object that cannot be written
        return f"a {type(value).__name__} that cannot be shown"


def number(value: Any, name: str) -> float:
    """A finite number, or a text of one; of what is no number, neither a flag nor a date is taken for one."""
    value = _alone(value, name)
    try:
        result = None if isinstance(value, NO_NUMBER) else float(value)
    except Exception:  # whatever an object says that is asked to be a number
        result = None
    if result is None:
        raise InputError(f"{name} is {shown(value)}, not a number")
    if not math.isfinite(result):
        raise InputError(f"{name} is {result}, not a finite number")
    return result


def _alone(value: Any, name: str) -> Any:
    """The one number of an array without axes; anything but an array is left as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim or _masked(value):
        raise InputError(f"{name} is {shown(value)}, not a number")
    return value.item()


def positive(value: Any, name: str) -> float:
    result = number(value, name)
    if result <= 0:
        raise InputError(f"{name} is {result:g}; it must be positive")
    return _in_reach(result, name, LEAST)


def nonnegative(value: Any, name: str) -> float:
    result = number(value, name)
    if result < 0:
        raise InputError(f"{name} is {result:g}; it must not be negative")
    return _in_reach(abs(result), name, 0.0)  # -0. is 0.


def _in_reach(value: float, name: str, least: float) -> float:
    if value < least:
        raise InputError(f"{name} is {value:g}; it must be at least {least:g}")
    if value > MOST:
        raise InputError(f"{name} is {value:g}; it must be at most {MOST:g}")
    return value


def finite_result(formula: Callable[[], float], name: str, **options: float | None) -> float:
    """A number that is computed from options; where it is not finite, the error names them."""
    try:
        result = float(formula())
    except (OverflowError, ZeroDivisionError):
        result = math.inf
    if not math.isfinite(result):
        given = " and ".join(f"{option} = {float(value):g}" for option, value in options.items() if value is not None)
        raise InputError(f"{name} is not a finite number with {given}")
    return result


def whole(value: Any, name: str, least: int = 1, most: int = 2**62) -> int:
    """A whole number given as int, as a float such as 1e6, or as a text of either; to the last digit."""
    value = _alone(value, name)
    exact = int if isinstance(value, str) else operator.index
    try:
        result = None if isinstance(value, NO_NUMBER) else exact(value)
    except (TypeError, ValueError):
        result = None
    if result is None:
        given = number(value, name)
        if given != int(given):
            raise InputError(f"{name} is {given:g}, not a whole number")
        result = int(given)
    if not least <= result <= most:
        where = f"at least {least}" if result < least else f"at most {most}"
        raise InputError(f"{name} is {shown(result)}; it must be {where}")
    return result


def flag(value: Any, name: str) -> bool:
    """Yes or no; a text such as "no" is neither."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} is {shown(value)}, neither True nor False")
    return bool(value)


def instance(value: Any, kind: type[T] | tuple[type[T], ...], name: str, wanted: str) -> T:
    """A value of this type; `wanted` says in words what is taken."""
    if not isinstance(value, kind):
        raise InputError(f"{name} is {shown(value)}, not {wanted}")
    return value


def several(value: Any, name: str, wanted: str) -> Iterator[Any]:
    """The values of a list, or of anything else that gives one after the other; `wanted` says of what it is to be."""
    one = isinstance(value, (str, bytes, bytearray, Mapping)) or hasattr(value, "tocoo")
    if one or not isinstance(value, Iterable) or getattr(value, "shape", None) == ():
        raise InputError(f"{name} is {shown(value)}, not {wanted}")
    return iter(value)


def path(value: Any, name: str) -> Path:
    """A place on disk, as a text or as a path of Python's."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else b""
    if not isinstance(text, str) or "\0" in text or any(len(part) > LONGEST_NAME for part in Path(text).parts):
        raise InputError(f"{name} is {shown(value)}, not a path")
    return Path(text)


def function(value: Any, name: str) -> Any:
    """A function, or None for none."""
    if value is not None and not callable(value):
        raise InputError(f"{name} is {shown(value)}, not a function")
    return value


def probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    result = number(value, name)
    if not 0 < result < 1:
        raise InputError(f"{name} is {result:g}; it must lie strictly between 0 and 1")
    return _in_reach(result, name, LEAST)


CRITERIA = ("discounted", "average", "episodic")
DEVICES = ("cpu", "gpu")
OF_CRITERION = {"average": "of the average reward", "episodic": "in episodes"}  # what an MDP without a discount is
LEARNERS_OF = {  # where the learners of a criterion are listed
    "discounted": "docs/guides/choose.md",
    "average": "docs/guides/average_reward.md",
    "episodic": "docs/guides/episodes.md",
}
LAWS = {"deterministic": 0, "bernoulli": 1, "beta": 2}  # of what plays earn (`ravi.random.earned`)


def criterion_of(criterion: Any, discount: Any, episode: Any = None) -> tuple[float, int | None]:
    """gamma and the length of an episode: what is given, or 1 and None where the criterion has none."""
    if one_of(criterion, CRITERIA, "criterion") != "episodic" and episode is not None:
        raise InputError(f"episode is {shown(episode)}, but criterion={criterion!r} has none: say criterion='episodic'")
    if criterion == "discounted":
        if discount is None:
            raise InputError("discount is missing; criterion='average' has none")
        return probability(discount, "discount"), None
    if discount is not None:
        raise InputError(f"discount is {shown(discount)}, but criterion={criterion!r} has none: leave out one of them")
    if criterion == "episodic" and episode is None:
        raise InputError("episode is missing: criterion='episodic' goes with its length in steps, such as episode=10")
    return 1.0, None if episode is None else whole(episode, "episode", 1, MOST_STATES)


def chance(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    result = number(value, name)
    if not 0 <= result <= 1:
        raise InputError(f"{name} is {result:g}, outside [0, 1]")
    return result


def delta(value: Any, T: int) -> float:
    """The failure probability of a guarantee: 1/T unless given."""
    return 1 / T if value is None else _in_reach(probability(value, "delta"), "delta", LEAST_DELTA)


def step_size(eta: float | None, step_scale: float, published: float) -> float:
    """eta, `published` unless given, times `step_scale`."""
    step = published if eta is None else positive(eta, "eta")
    return positive(step * positive(step_scale, "step_scale"), "step_scale * eta")


def one_of(value: Any, known: Iterable[str], name: str) -> str:
    """One of a few words."""
    words = list(known)
    if not isinstance(value, str) or value not in words:
        near = did_you_mean(value, words) if isinstance(value, str) else ""
        raise InputError(f"{name} is {shown(value)}, not one of {', '.join(words)}.{near}")
    return value


def must_be(value: Any, known: Iterable[str], what: str) -> None:
    """Raise unless there is one of this name."""
    words = list(known)
    if not isinstance(value, str) or value not in words:
        raise InputError(
            f"there is no {what} {shown(value)}.{did_you_mean(str(value), words)} Known: {', '.join(words)}."
        )


def steps(value: Any) -> int:
    """T, the number of steps; counts are 32-bit."""
    return whole(value, "steps (T)", 1, 2**31 - 2)


def seeds(value: Any, name: str = "seeds") -> list[int]:
    """Which seeds: 64 is 0 to 63; the text 5-8 is 5, 6, 7, 8, and 1,7,9 are these, as is a list of them."""
    chosen: list[int] = []
    if isinstance(value, str) and ("," in value or "-" in value):
        for part in value.split(","):
            low, dash, high = part.partition("-")
            first = whole(low, name, 0, LAST_SEED)
            if dash and whole(high, name, 0, LAST_SEED) < first:
                raise InputError(f"{name} is {shown(part)}; a range goes upwards: {high.strip()}-{low.strip()}")
            last = whole(high, name, first, min(first + MOST_SEEDS, LAST_SEED)) if dash else first
            chosen += range(first, last + 1)
            if len(chosen) > MOST_SEEDS:
                break
    elif isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "shape", None) != ():
        some = islice(several(value, name, "a number of seeds, a text such as 5-8 or a list"), MOST_SEEDS + 1)
        chosen = [whole(seed, at(name, [i]), 0, LAST_SEED) for i, seed in enumerate(some)]
    else:
        chosen = list(range(whole(value, name, 1, MOST_SEEDS)))
    if not chosen:
        raise InputError(f"{name} is empty; at least one seed is needed")
    if len(chosen) > MOST_SEEDS:
        raise InputError(f"{name} names more than {MOST_SEEDS:,} seeds, and so many are the most")
    if len(set(chosen)) < len(chosen):
        twice = next(seed for seed, times in Counter(chosen).items() if times > 1)
        raise InputError(f"{name} names seed {twice} twice")
    return chosen


def array(value: Any, name: str) -> np.ndarray:
    """An array of real numbers, of the type that it has; what only looks like one is refused by name."""
    if hasattr(value, "tocoo"):
        raise InputError(f"{name} is a sparse matrix, not an array of numbers: {name}.toarray() is one")
    if isinstance(value, range) and len(value) > LONGEST:
        raise InputError(f"{name} is {value}, not an array of numbers")
    try:
        found = np.asarray(value)
    except Exception:  # whatever an object says that is asked to be an array
        raise InputError(f"{name} is not an array of numbers") from None
    if _masked(value):
        raise InputError(f"{name} is a masked array, and what its mask hides is no number: {name}.filled(...) says it")
    kind = found.dtype.kind
    if kind == "c":
        raise InputError(f"{name} holds complex numbers")
    if kind == "O":
        return _by_entry(found, name)
    if kind not in "biuf":
        raise InputError(f"{name} is not an array of numbers: it holds {HELD.get(kind, found.dtype)}")
    return found


def _masked(value: Any) -> bool:
    """Whether anything in an array, or in nested lists of arrays, is hidden by a mask."""
    if isinstance(value, np.ma.MaskedArray):
        return value.dtype.names is not None or bool(np.ma.getmaskarray(value).any())
    held = (list, tuple, np.ma.MaskedArray)
    return isinstance(value, (list, tuple)) and any(isinstance(one, held) and _masked(one) for one in value)


def _by_entry(objects: np.ndarray, name: str) -> np.ndarray:
    """Python's own numbers, such as fractions, as float64."""
    found = np.empty(objects.shape)
    for place in np.ndindex(objects.shape):
        try:
            found[place] = number(None if isinstance(objects[place], str) else objects[place], at(name, place))
        except InputError:
            wrong = f"{at(name, place)} is {shown(objects[place])}"
            raise InputError(f"{name} is not an array of numbers: {wrong}") from None
    return found


def finite(value: Any, name: str) -> np.ndarray:
    """A float64 array without nan or inf."""
    given = array(value, name)
    once = given[tuple(slice(0, 1 if step == 0 else None) for step in given.strides)]  # a view repeats at no cost
    with np.errstate(over="ignore"):  # a number that float64 has not is inf
        once = once.astype(np.float64, copy=False)
    wrong = ~np.isfinite(once)
    if wrong.any():
        raise InputError(f"{at(name, first(wrong))} is {once[first(wrong)]}, not a finite number")
    return once if once.shape == given.shape else np.broadcast_to(once, given.shape)


def check_shape(array: np.ndarray, shape: tuple[int, ...], name: str, meaning: str) -> np.ndarray:
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, not {meaning} = {shape}")
    return array


def between(array: np.ndarray, low: float, high: float, name: str) -> np.ndarray:
    outside = (array < low) | (array > high)
    if outside.any():
        index = first(outside)
        raise InputError(f"{at(name, index)} is {array[index]:g}, outside [{low:g}, {high:g}]")
    return array


def sums_to_one(array: np.ndarray, name: str) -> np.ndarray:
    """Rows along the last axis are distributions."""
    if (array < 0).any():
        index = first(array < 0)
        raise InputError(f"{at(name, index)} is {array[index]:g}, a negative probability")
    total = array.sum(-1)
    wrong = np.abs(total - 1) > SUM_TOLERANCE
    if wrong.any():
        index = first(np.atleast_1d(wrong))
        where = at(name, index) if array.ndim > 1 else name
        raise InputError(f"{where} sums to {np.atleast_1d(total)[index]:.10g}, not 1")
    return array


def read_only_copy(array: np.ndarray) -> np.ndarray:
    """A contiguous array of our own that nobody can write into."""
    array = np.array(array, order="C", copy=True)
    array.setflags(write=False)
    return array


def distribution(initial: Any, states: int, name: str = "initial") -> np.ndarray:
    """nu_0 from a vector, or from the one state that it is concentrated on."""
    if initial is None:
        raise InputError(f"{name} is missing: the state where play begins, such as initial=0, or a probability of each")
    if isinstance(initial, (int, np.integer)) and not isinstance(initial, NO_NUMBER):
        if not 0 <= initial < states:
            raise InputError(f"{name} is state {shown(initial)}, but states are 0 to {states - 1}")
        return np.eye(1, states, int(initial))[0]
    array = finite(initial, name)
    return sums_to_one(check_shape(array, (states,), name, "(X,)"), name)


def units(value: Any, name: str = "units") -> tuple[float, float]:
    """Two rewards, the least and the largest, in the user's units."""
    low, high = check_shape(finite(value, name), (2,), name, "(low, high)").tolist()
    if low >= high:
        raise InputError(f"{name} is {low:g} to {high:g}: the least reward must be below the largest")
    if not math.isfinite(high - low):
        raise InputError(f"{name} is {low:g} to {high:g}, a range that is not a finite number")
    return low, high


# Memory, and optional packages.

SMALL = 2**24  # bytes that are taken without asking


class TooLarge(InputError, MemoryError):
    """More memory is asked for than there is: on a larger machine, the same input would do."""


def require_memory(size: float, what: str, lower: str) -> None:
    """An error, before anything is taken, where `what` needs `size` bytes and they are not free."""
    if size <= SMALL:
        return
    from ravi import machine

    left = machine.free_memory()
    if left is not None and size > left:
        needs, has = machine.readable_size(size), machine.readable_size(left)
        raise TooLarge(f"{what} would need {needs}; {has} are free: lower {lower}")


@contextmanager
def memory_errors(what: str, lower: str) -> Iterator[None]:
    """Where memory runs out though nobody reckoned it, an error that says for what."""
    try:
        yield
    except TooLarge:
        raise
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        raise TooLarge(f"{what} needs more memory than there is{why}: lower {lower}") from None


def install_command(extra: str) -> str:
    """The command that installs an extra of ravi, for an installed package and for a clone.

    >>> install_command("gymnasium")
    "pip install 'ravi[gymnasium]', or in a clone pip install -e '.[gymnasium]'"
    """
    return f"pip install 'ravi[{extra}]', or in a clone pip install -e '.[{extra}]'"


def require_extra(what: str, extra: str, *modules: str) -> None:
    """An error that names the extra, unless these modules, which come with it, are installed."""
    for module in modules:
        if find_spec(module) is None:
            raise InputError(f"{what} {module}: {install_command(extra)}")


def require_pandas(whose: str, instead: str) -> Any:
    """pandas, for what gives a frame; or an error that says how to have it, and which array serves without it."""
    try:
        import pandas
    except ImportError:
        raise InputError(f"{whose} needs pandas: pip install pandas; {instead} is a NumPy array") from None
    return pandas


# Problems and MDPs.

MOST_STATES = 2**31 - 1  # successors are 32-bit
# Bytes at the peak of making an MDP: for a pair; for each of its successors, in order or to be put in order; for each
# feature of a successor.
PAIR, ORDERED, SCATTERED, FEATURE = 40, 36, 90, 40
ENUMERATED = 12  # feature bounds are exact, by enumeration of {0, 1}^B, up to this many successors


def require_table(name: str, lower: str, X: int, A: int, B: int, D: int = 0, *, scattered: bool = True) -> None:
    """An error, before anything is taken, where the tables of an MDP of this size are too large.

    scattered: its entries come in any order, and are sorted.
    """
    if not isinstance(name, str):
        raise InputError(f"name is {shown(name)}, not a text")
    if X > MOST_STATES:
        raise InputError(f"{name} would have {shown(X)} states, and {MOST_STATES} are the most: lower {lower}")
    require_memory(_peak(X, A, B, D, SCATTERED if scattered else ORDERED), f"the tables of {name}", lower)


def _peak(X: int, A: int, B: int, D: int, successor: int = ORDERED) -> int:
    return X * A * (PAIR + B * (successor + FEATURE * D))


def table_size(problem: Problem) -> int:
    """Bytes of all its arrays."""
    return sum(value.nbytes for value in vars(problem).values() if isinstance(value, np.ndarray))


def problem_fields(self: Problem) -> dict[str, Any]:
    """The fields of a problem, checked, in the types that the library computes with."""
    one = type(self.discount) in (int, float) and self.discount == 1  # the average reward, or episodes
    discount = 1.0 if one else probability(self.discount, "discount")
    episode = None
    if self.episode is not None:
        _, episode = criterion_of("episodic", None if one else discount, self.episode)
    rewards = finite(self.rewards, "rewards")
    if rewards.ndim != 2 or 0 in rewards.shape:
        raise InputError(f"rewards has shape {rewards.shape}; it must be (X, A) with X and A at least 1")
    X, A = rewards.shape
    require_memory(PAIR * X * A, f"rewards of shape {rewards.shape}", "states or actions")
    between(rewards, 0, 1, "rewards")
    initial = distribution(self.initial, X)

    successors = array(self.successors, "successors")
    if not np.issubdtype(successors.dtype, np.integer):
        raise InputError(f"successors holds {successors.dtype}, not whole numbers")
    if successors.ndim != 3 or successors.shape[:2] != (X, A) or successors.shape[2] < 1:
        raise InputError(f"successors has shape {successors.shape}, not (X, A, B) = ({X}, {A}, B)")
    if not isinstance(self.name, str):
        raise InputError(f"name is {shown(self.name)}, not a text")
    features = None if self.features is None else finite(self.features, "features")
    D = 0 if features is None or features.ndim != 4 else features.shape[3]
    copies = _peak(X, A, successors.shape[2], D) // 2  # what is given is taken already
    require_memory(copies, f"a copy of the tables of {self.name}", "states, actions or successors")
    outside = (successors < 0) | (successors >= X)
    if outside.any():
        index = first(outside)
        raise InputError(f"{at('successors', index)} is {successors[index]}, but states are 0 to {X - 1}")
    if not (successors[..., 1:] > successors[..., :-1]).all():
        ordered = np.sort(successors, axis=-1)
        twice = ordered[..., 1:] == ordered[..., :-1]
        if twice.any():
            index = first(twice)
            raise InputError(f"{at('successors', index[:2])} names state {ordered[index]} twice")
        raise InputError(
            f"{at('successors', first((ordered != successors).any(-1)))} is not in ascending order; "
            "MDP.from_dense and MDP.from_sparse put successors in order"
        )

    fields: dict[str, Any] = {
        "discount": discount,
        "episode": episode,
        "rewards": read_only_copy(rewards),
        "successors": read_only_copy(successors.astype(np.int32)),
        "support": _support(self.support, successors.shape),
        "initial": read_only_copy(initial),
    }
    fields["units"] = units(self.units)
    if self.reward_law is not None:
        one_of(self.reward_law, LAWS, "reward_law")
    if self.pair_features is not None:
        fields["pair_features"] = read_only_copy(_pair_features(self.pair_features, X, A))
    if features is None:
        for bound in ("parameter_bound", "feature_bound"):
            if getattr(self, bound) is not None:
                raise InputError(f"{bound} is given without features")
        return fields
    if features.ndim != 4 or features.shape[:3] != successors.shape or features.shape[3] < 1:
        raise InputError(f"features has shape {features.shape}, not (X, A, B, D) = {(*successors.shape, 'D')}")
    fields["features"] = read_only_copy(features)
    fields["feature_bound"] = feature_bound(features, self.feature_bound)
    if self.parameter_bound is not None:
        fields["parameter_bound"] = positive(self.parameter_bound, "parameter_bound")
    return fields


def _support(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Which of the successors have a positive probability: all of them unless that is given."""
    if value is None:
        return np.broadcast_to(np.True_, shape)
    held = array(value, "support")
    if held.dtype != np.bool_:
        raise InputError(f"support holds {held.dtype}, not True or False")
    check_shape(held, shape, "support", "(X, A, B)")
    empty = np.all(~held, axis=-1)
    if empty.any():
        raise InputError(f"{at('support', first(empty))} has no successor")
    return read_only_copy(held)


def _pair_features(value: Any, X: int, A: int) -> np.ndarray:
    """phi(x, a) with ||phi(x, a)||_2 <= 1, which the constants of linear MDPs assume."""
    array = finite(value, "pair_features")
    if array.ndim != 3 or array.shape[:2] != (X, A) or array.shape[2] < 1:
        raise InputError(f"pair_features has shape {array.shape}, not (X, A, D) = ({X}, {A}, D)")
    norms = np.linalg.norm(array, axis=-1)
    if (norms > 1 + SUM_TOLERANCE).any():
        index = first(norms > 1 + SUM_TOLERANCE)
        raise InputError(f"{at('pair_features', index)} has norm {norms[index]:g}; in a linear MDP ||phi(x, a)|| <= 1")
    return array


def _check_linear(phi: np.ndarray, successors: np.ndarray, transitions: np.ndarray, rewards: np.ndarray) -> None:
    """P(x' | x, a) and r(x, a) are linear in phi(x, a)."""
    X, A, _ = successors.shape
    D = phi.shape[2]
    size = 8 * (X * A * (4 * (X + 1) + 3 * D) + 2 * D * (X + 1))
    require_memory(size, f"to hold pair_features ({X}, {A}, {D}) against their kernel", "states or dimensions")
    P = np.zeros((X, A, X))
    np.put_along_axis(P, successors.astype(np.int64), transitions, axis=2)
    rows, wanted = phi.reshape(X * A, -1), np.concatenate([P, rewards[..., None]], axis=2).reshape(X * A, X + 1)
    missed = np.abs(rows @ np.linalg.lstsq(rows, wanted, rcond=None)[0] - wanted).reshape(X, A, X + 1).max(-1)
    if missed.max() > SUM_TOLERANCE:
        index = first(missed == missed.max())
        raise InputError(
            f"pair_features do not make this MDP linear: at {at('pair_features', index)} no m and theta give its "
            f"probabilities and reward to better than {missed.max():.2g}"
        )


def kernel_fields(self: MDP) -> dict[str, Any]:
    """P is a kernel, and where there are features, it is theirs: P = <theta, psi> with ||theta|| <= B_theta."""
    transitions = finite(self.transitions, "transitions")
    check_shape(transitions, self.successors.shape, "transitions", "(X, A, B)")
    sums_to_one(transitions, "transitions")
    fields: dict[str, Any] = {"transitions": read_only_copy(transitions), "support": read_only_copy(transitions > 0)}
    if self.pair_features is not None:
        _check_linear(self.pair_features, self.successors, transitions, self.rewards)
    if self.features is None:
        if self.parameter is not None:
            raise InputError("parameter is given without features")
        return fields
    if self.parameter is None:
        raise InputError("features are given without the parameter theta that makes P = <theta, psi>")
    theta = check_shape(finite(self.parameter, "parameter"), (self.dimension,), "parameter", "(D,)")
    mixed = self.features @ theta
    wrong = np.abs(mixed - transitions) > SUM_TOLERANCE
    if wrong.any():
        index = first(wrong)
        raise InputError(
            f"features and parameter give {at('transitions', index)} = {mixed[index]:g}, not {transitions[index]:g}: "
            "they do not make this kernel"
        )
    norm = float(np.linalg.norm(theta))
    declared = self.parameter_bound
    if declared is not None and declared < norm * (1 - SUM_TOLERANCE):
        raise InputError(f"parameter_bound is {declared:g}, but the parameter has norm {norm:g} (Assumption 5.3)")
    return fields | {"parameter": read_only_copy(theta), "parameter_bound": norm if declared is None else declared}


def of_actions(value: Any, actions: int, name: str = "policy", states: int | None = None) -> np.ndarray:
    """A policy as numbers: that of a solution, or of one action per state (X,), as a table (X, A); a table as it is."""
    held = getattr(value, "policy", None)  # of what `ravi.solve` returns
    array = finite(held if isinstance(held, np.ndarray) else value, name)
    if array.ndim != 1:
        return array
    if states not in (None, len(array)):
        raise InputError(f"{name} has {len(array)} actions, not one for each of {states} states")
    wrong = (array != np.floor(array)) | (array < 0) | (array >= actions)
    if wrong.any():
        index = first(wrong)
        raise InputError(f"{at(name, index)} is {array[index]:g}; actions are whole numbers, 0 to {actions - 1}")
    return np.eye(actions)[array.astype(int)]


def policy_table(value: Any, problem: Problem, name: str = "policy", *, interior: bool = False) -> np.ndarray:
    """A policy (X, A) or a batch (n, X, A) whose rows sum to one, or an action per state; `interior`: no zeros."""
    array = of_actions(value, problem.actions, name, problem.states)
    shape = (problem.states, problem.actions)
    if array.ndim not in (2, 3) or array.shape[-2:] != shape:
        raise InputError(
            f"{name} has shape {np.shape(value) or array.shape}, not (X, A) = {shape} or a batch (n, X, A)"
        )
    require_memory(32 * array.size, f"{name} of shape {array.shape}", "their number")
    sums_to_one(array, name)
    if interior and (array == 0).any():
        raise InputError(f"{at(name, first(array == 0))} is 0; every action needs a positive probability")
    return array


def feature_bound(features: np.ndarray, declared: float | None = None) -> float:
    """B_phi >= max over (x, a) and V in [0, 1]^X of ||sum_x' psi(x, a, x') V(x')||  (Assumption 5.3).

    The norm is convex in V, so its maximum is at a vertex: exact for up to twelve successors by enumeration, and for
    features of one sign (where V = 1 or coordinatewise extremes meet). Beyond, each coordinate is maximised on its
    own, which can only be too large. A declared bound is checked against the exact value or, where that is out of
    reach, against vertices that a few ascent steps find.
    """
    X, A, B, D = features.shape
    rows = features.reshape(X * A, B, D)
    plus, minus = np.maximum(rows, 0).sum(1), np.maximum(-rows, 0).sum(1)  # (XA, D)
    ceiling = np.linalg.norm(np.maximum(plus, minus), axis=-1)  # each coordinate at its own extreme
    if B <= ENUMERATED:
        mixed = plus.any(1) & minus.any(1)  # where all entries have one sign, V = 1 attains the ceiling
        some, inner = rows[mixed], np.zeros(int(mixed.sum()))
        for vertex in range(1, 2**B if mixed.any() else 1):
            chosen = [j for j in range(B) if vertex >> j & 1]
            np.maximum(inner, np.linalg.norm(some[:, chosen].sum(1), axis=-1), out=inner)
        ceiling[mixed] = inner
        reached = ceiling
    else:
        reached = np.linalg.norm(rows.sum(1), axis=-1)
        V = np.ones((X * A, B))
        for _ in range(8):  # V <- vertex that maximises <V, psi phi_V>
            phi = np.einsum("pbd,pb->pd", rows, V)
            V = (np.einsum("pbd,pd->pb", rows, phi) > 0).astype(float)
            np.maximum(reached, np.linalg.norm(np.einsum("pbd,pb->pd", rows, V), axis=-1), out=reached)
    if declared is None:
        return float(ceiling.max())
    value = positive(declared, "feature_bound")
    if value < reached.max() * (1 - SUM_TOLERANCE):
        pair = np.unravel_index(int(reached.argmax()), (X, A))
        raise InputError(
            f"feature_bound is {value:g}, but at {at('features', pair)} some V in [0, H]^X has "
            f"||phi_V|| = {reached.max():g} H (Assumption 5.3)"
        )
    return value
