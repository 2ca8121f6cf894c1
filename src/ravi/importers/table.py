"""A table of transitions: a CSV file or a DataFrame with the columns state, action, next, probability and reward.

    state,action,next,probability,reward
    low,wait,low,0.7,2
    low,wait,empty,0.3,-1

One line for each transition, in any order; states and actions are called as the table calls them, and are numbered as
they come, or by size where all are whole numbers (1.0 is 1, but 01 is a text). Columns may stand in any order, and
others beside them. A state that is never left is an end.
"""

import csv
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ravi import validation
from ravi.importers.imported import Imported, Lines, Places, mdp_of_entries
from ravi.validation import InputError

COLUMNS = {  # what each may be called
    "state": ("state", "s", "x", "observation", "observations", "obs"),
    "action": ("action", "a", "actions"),
    "next": ("next", "next_state", "successor", "s'", "y", "next_observation", "next_observations", "next_obs"),
    "probability": ("probability", "prob", "p"),
    "reward": ("reward", "r", "rewards"),
    "end": ("end", "terminated", "done", "terminal", "terminals"),
}


WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,4000})(?:\.0*)?")  # a text of a whole number, without zeros before it
MEANT = "the label of a state, or a dict of labels and probabilities"


class TableRows(Places):
    """The columns of a table by their names here, and how an error calls one of its rows."""

    def __init__(self, columns: dict[str, list[Any]], where: Callable[[int], str], name: str) -> None:
        super().__init__(where)
        self.columns, self.name = columns, name


def table(
    source: Any, discount: float, *, initial: Any = None, renormalise: bool = False, name: str | None = None
) -> Imported:
    """The MDP of a CSV file (its path), or of a DataFrame (pandas, Polars, pyarrow, or a dict of columns).

    `initial` is one state by its label, or {label: probability}; the first state of the table unless given.
    """
    rows = read_rows(source, ("state", "action", "next", "probability", "reward"))
    of = rows.columns
    states, numbers = number_labels(rows, "state", "next")
    actions, chosen = number_labels(rows, "action")
    n = len(of["state"])
    x, y, a = numbers[:n], numbers[n:], chosen
    at: dict[tuple[int, int], int] = {}
    for row, pair in enumerate(zip(x, a, strict=True)):
        at.setdefault(pair, row)
    p = [rows.probability(i, value) for i, value in enumerate(of["probability"])]
    r = [rows.number(i, value, "the reward") for i, value in enumerate(of["reward"])]
    return mdp_of_entries(
        (x, a, y, p, r), len(states), len(actions), discount, start_of(initial, states, rows.name),
        name=rows.name if name is None else name, states=states, actions=actions, renormalise=renormalise,
        where=lambda x, a: f"{rows.where(at[x, a])}, state {states[x]!r} and action {actions[a]!r}",
    )  # fmt: skip


def read_rows(source: Any, wanted: Iterable[str], maybe: Iterable[str] = ()) -> TableRows:
    """The wanted columns of a file or a frame, and those that may be there."""
    source = source.to_pydict() if hasattr(source, "to_pydict") else source  # a table of pyarrow
    if isinstance(source, (str, os.PathLike)):
        found, where, name = _of_csv(source)
    elif isinstance(source, dict) or hasattr(source, "columns"):
        names = list(source if isinstance(source, dict) else source.columns)
        found = {
            str(each): list(validation.several(source[each], f"column {each}", "one value for each row"))
            for each in names
        }
        where, name = (lambda i: f"row {i}"), "table"
    else:
        raise InputError(f"the table is {validation.shown(source)}, not the path of a CSV file, a DataFrame or a dict")
    columns: dict[str, list[Any]] = {}
    for column in (*wanted, *maybe):
        known = COLUMNS.get(column, (column,))
        match = [each for each in found if each.strip().lower() in known]
        if len(match) > 1:
            raise InputError(f"{name} has the columns {' and '.join(match)}, which both mean {column}")
        if match:
            columns[column] = found[match[0]]
    missing = [column for column in wanted if column not in columns]
    if missing:
        hint = ". A log of plays is read by ravi.importers.plays" if missing == ["probability"] else ""
        missed = ", ".join(f"{column} (or {', '.join(COLUMNS[column][1:])})" for column in missing)
        raise InputError(f"{name} has no column {missed}; it has {', '.join(found)}{hint}")
    if not columns["state"]:
        raise InputError(f"{name} has no rows")
    if len({len(values) for values in columns.values()}) > 1:
        raise InputError(f"{name} has columns of different lengths")
    return TableRows(columns, where, name)


def _of_csv(path: Any) -> tuple[dict[str, list[Any]], Callable[[int], str], str]:
    lines = Lines(path, comment=None)
    if not lines.rows:
        raise InputError(f"{lines.path} is empty; its first line has the names of its columns")
    parsed = []
    for number, text in lines.rows:
        try:
            parsed.append(next(csv.reader([text], skipinitialspace=True, strict=True)))
        except csv.Error as error:
            raise lines.wrong(number, f"{text!r} is not a line of CSV ({error})") from None
    head = parsed[0]
    if len(set(head)) < len(head):
        raise lines.wrong(lines.rows[0][0], "a column stands twice")
    for (number, text), row in zip(lines.rows[1:], parsed[1:], strict=True):
        if len(row) != len(head):
            raise lines.wrong(number, f"{text!r} has {len(row)} values, but there are {len(head)} columns")
    columns = {name: [row[i].strip() for row in parsed[1:]] for i, name in enumerate(head)}
    return columns, lambda i: lines.where(lines.rows[i + 1][0]), lines.path.name


def number_labels(rows: TableRows, *names: str) -> tuple[list[Any], list[int]]:
    """The distinct labels of columns as they come, or whole numbers in their order, and the number of each label."""
    plain: list[Any] = []
    for name in names:
        for i, given in enumerate(rows.columns[name]):
            label = given.item() if isinstance(given, np.generic) else given
            if not isinstance(label, (str, int)) and not (isinstance(label, float) and label.is_integer()):
                raise rows.wrong(i, f"{name} is {validation.shown(given)}, not a text or a whole number")
            if isinstance(label, str) and not label.strip():
                raise rows.wrong(i, f"{name} is empty, not a text or a whole number")
            plain.append(label)
    whole = [_whole(label) for label in plain]
    if None in whole:
        distinct = list(dict.fromkeys(plain))
    else:
        distinct, plain = sorted(set(whole)), whole
    place = {label: i for i, label in enumerate(distinct)}
    return distinct, [place[label] for label in plain]


def _whole(label: Any) -> Any:
    """The whole number that a label is, or None."""
    if isinstance(label, str):
        found = WHOLE.fullmatch(label)
        return int(found[1]) if found else None
    return None if isinstance(label, bool) else int(label)


def start_of(initial: Any, states: list[Any], name: str) -> Any:
    """nu_0 from a label, or from labels with their probabilities."""
    if initial is None:
        return 0
    initial = initial.item() if isinstance(initial, np.generic) else initial
    given = initial if isinstance(initial, dict) else {validation.instance(initial, (str, int), "initial", MEANT): 1.0}
    nu0 = np.zeros(len(states))
    for label, probability in given.items():
        if label not in states:
            raise InputError(f"initial is {label!r}, which is no state of {name}")
        nu0[states.index(label)] += validation.chance(probability, f"initial[{label!r}]")
    return nu0
