"""PRISM's explicit files, and Storm's: `model.tra` with `model.sta`, `.lab`, `.srew` and `.trew` beside it.

    prism model.nm -exportmodel model.tra,sta,lab,srew,trew

transitions   a first line of counts (states, choices, transitions; without choices for a chain), or of Storm a word
              (mdp, dtmc); then lines `state choice successor probability [action]`
states        a first line of variables, (x,y), then lines `0:(1,2)`
labels        of PRISM `0="init" 1="goal"`, then lines `3: 0 1`; of Storm #DECLARATION, names, #END, then `3 init goal`
rewards       of states `state reward`, of transitions `state choice successor reward`; a first line of counts may stand

A state without transitions is a deadlock: it stays, as PRISM makes it, and earns the reward of its state for ever.
An MDP begins in the states that are labelled init (each as often), or in state 0. A choice is an action by its number.
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Imported, Lines, is_whole, mdp_of_entries
from ravi.validation import InputError, require_memory

COUNTED = "states choices transitions"


def prism(path: str | os.PathLike[str], discount: float, *, initial: Any = None, renormalise: bool = False) -> Imported:
    """The MDP of a `.tra` file and of those beside it; `initial` is nu_0, or one state, where no label says it."""
    file = validation.path(path, "the file")
    lines = Lines(file)
    if not lines.rows:
        raise InputError(f"{file} is empty; its first line has the numbers of {COUNTED}, or of Storm the word mdp")
    x, a, y, p, line = _transitions(lines)
    X, A = _size(lines, x, y), max(a, default=0) + 1
    at = dict(zip(zip(x, a, strict=True), line, strict=True))  # of its last line
    require_memory(100 * X * A, f"{file} with {X:,} states and up to {A:,} choices", "their number")
    of_states, of_moves = _state_rewards(file.with_suffix(".srew"), X), _move_rewards(file.with_suffix(".trew"), X)
    if of_states is None and of_moves is None:
        raise InputError(
            f"there is no {file.with_suffix('.srew')} and no {file.with_suffix('.trew')}: rewards of states or of "
            "transitions are needed (prism ... -exportmodel model.tra,sta,lab,srew,trew)"
        )
    earned = np.zeros(len(x)) if of_states is None else of_states[np.asarray(x, int)]
    if of_moves is not None:
        moves = list(zip(x, a, y, strict=True))  # one may stand twice: both are paid
        earned = earned + np.array([of_moves.get(move, 0.0) for move in moves])
        others = of_moves.keys() - set(moves)
        if others:
            raise InputError(
                f"{file.with_suffix('.trew')} rewards {_move(min(others))}, a transition that {file} does not have"
            )
    never = np.setdiff1d(np.arange(X), x)  # deadlocks stay, as PRISM makes them, and earn what their state does
    loops = np.zeros(len(never), int)
    kept = np.zeros(len(never)) if of_states is None else of_states[never]
    entries = ([*x, *never], [*a, *loops], [*y, *never], [*p, *np.ones(len(never))], [*earned, *kept])
    labels = _labels(file.with_suffix(".lab"), X)
    first = labels.get("init") if initial is None else None
    if first:
        initial = np.bincount(first, minlength=X) / len(first)
    return mdp_of_entries(
        entries, X, A, discount, 0 if initial is None else initial, name=file.name, renormalise=renormalise,
        states=_states(file.with_suffix(".sta"), X),
        where=lambda x, a: f"{lines.where(at.get((x, a), 1))}, choice {a} of state {x}",
    )  # fmt: skip


def _transitions(lines: Lines) -> tuple[list[int], list[int], list[int], list[float], list[int]]:
    """State, choice, successor, probability, and the line of each."""
    number, head = lines.rows[0]
    words = head.split()
    if words[0].lower() in ("mdp", "dtmc"):
        chain = words[0].lower() == "dtmc"
    elif len(words) in (2, 3) and all(map(is_whole, words)):
        chain = len(words) == 2
        if int(words[-1]) != len(lines.rows) - 1:
            raise lines.wrong(number, f"it says {words[-1]} transitions, but {len(lines.rows) - 1} lines follow")
    else:
        raise lines.wrong(number, f"{head!r} is not the numbers of {COUNTED}, nor the word mdp or dtmc")
    form = "state successor probability" if chain else "state choice successor probability"
    most = int(words[0]) - 1 if is_whole(words[0]) else 2**31 - 2
    columns: tuple[Any, ...] = ([], [], [], [], [])
    for place, text in lines.rows[1:]:
        parts = text.split()
        if not len(form.split()) <= len(parts) <= len(form.split()) + 1:  # an action's name may follow
            raise lines.wrong(place, f"{text!r} is not `{form}`")
        state = lines.whole(place, parts[0], "the state", most=most)
        choice = 0 if chain else lines.whole(place, parts[1], "the choice", most=2**20)
        to, chance = parts[1:3] if chain else parts[2:4]
        successor = lines.whole(place, to, "the successor", most=most)
        row = state, choice, successor, lines.probability(place, chance), place
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def _size(lines: Lines, x: list[int], y: list[int]) -> int:
    head = lines.rows[0][1].split()[0]
    return int(head) if is_whole(head) else max([*x, *y], default=0) + 1


def _state_rewards(path: Path, X: int) -> Any:
    """Rewards of states (X,), if there is a file of them."""
    if not path.exists():
        return None
    lines, found = Lines(path), np.zeros(X)
    for place, text in _after_counts(lines, 2, X):
        parts = text.split()
        if len(parts) != 2:
            raise lines.wrong(place, f"{text!r} is not `state reward`")
        found[lines.whole(place, parts[0], "the state", most=X - 1)] = lines.number(place, parts[1], "the reward")
    return found


def _move_rewards(path: Path, X: int) -> dict[tuple[int, int, int], float] | None:
    """Rewards of transitions, if there is a file of them."""
    if not path.exists():
        return None
    lines, found = Lines(path), {}
    for place, text in _after_counts(lines, 3, X):
        parts = text.split()
        if len(parts) not in (3, 4):
            raise lines.wrong(place, f"{text!r} is not `state choice successor reward`")
        named = [*parts[:1], "0", parts[1]] if len(parts) == 3 else parts[:3]  # a chain has no choices
        x, a, y = (lines.whole(place, word, "a state or choice") for word in named)
        found[x, a, y] = lines.number(place, parts[-1], "the reward")
    return found


def _after_counts(lines: Lines, numbers: int, X: int) -> list[tuple[int, str]]:
    """The lines of rewards, without one of counts: from the number of states, that no state has, to how many follow."""
    held = lines.rows
    words = held[0][1].split() if held else []
    counts = 2 <= len(words) <= numbers and (words[0], words[-1]) == (str(X), str(len(held) - 1))
    return held[1:] if counts else held


def _labels(path: Path, X: int) -> dict[str, list[int]]:
    """Label -> its states; nothing where there is no file."""
    if not path.exists():
        return {}
    lines = Lines(path, comment=None)
    number, head = lines.rows[0] if lines.rows else (1, "")
    found: dict[str, list[int]] = {}
    names: dict[str, str] = dict(re.findall(r'(\d+)="([^"]*)"', head))
    storm = head.startswith("#DECLARATION")
    if not names and not storm:
        raise lines.wrong(number, f'{head!r} is not `0="init" 1="goal"`, nor #DECLARATION')
    rest = lines.rows[1:]
    if storm:
        ends = [i for i, (_, text) in enumerate(rest) if text == "#END"]
        if not ends:
            raise lines.wrong(number, "#DECLARATION is not followed by #END")
        names = {name: name for _, text in rest[: ends[0]] for name in text.split()}
        rest = rest[ends[0] + 1 :]
    for place, text in rest:
        state, *held = text.replace(":", " ", 1).split()
        x = lines.whole(place, state, "the state", most=X - 1)
        for label in held:
            if label not in names:
                raise lines.wrong(place, f"there is no label {label}; line {number} declares {', '.join(names)}")
            found.setdefault(names[label], []).append(x)
    return found


def _states(path: Path, X: int) -> list[str] | None:
    """The names of states: the values of their variables."""
    if not path.exists():
        return None
    lines = Lines(path)
    found: list[str | None] = [None] * X
    for place, text in lines.rows[1:]:
        number, colon, values = text.partition(":")
        if not colon:
            raise lines.wrong(place, f"{text!r} is not `state:(values)`")
        found[lines.whole(place, number, "the state", most=X - 1)] = values.strip()
    if None in found:
        raise InputError(f"{path} has no state {found.index(None)}, though there are {X}")
    return found  # type: ignore[return-value]


def _move(move: tuple[int, int, int]) -> str:
    return f"choice {move[1]} of state {move[0]} to {move[2]}"
