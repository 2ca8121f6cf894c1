"""The numbers that are compared: one per run, by learner, MDP and seed, from a folder of results or any table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.statistics.intervals import finite
from ravi.validation import InputError, did_you_mean, must_be

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

LARGER = ("reward",)  # the values of results of which more is better


class Line(NamedTuple):
    """The runs of one entry of a suite that have a value, by seed.

    Attributes
    ----------
    section, column, label, mdp, learner, steps
        The entry.
    setting
        The digest of the setting that scores it; None while tuning has not chosen.
    asked
        The number of seeds that the suite asks for.
    failed
        The number of them whose run failed.
    unrecorded
        The rows of `Results.runs` of runs that succeeded without this value.
    rows, seeds, values
        The others: their rows of `Results.runs`, their seeds, ascending, and the value   (n,).
    errors
        How far each value may be off; 0 where that is not known   (n,).
    certified
        Whether it is known of all.
    """

    section: str
    column: str
    label: str
    mdp: str
    learner: str
    steps: int
    setting: str | None
    asked: int
    failed: int
    unrecorded: np.ndarray
    rows: np.ndarray
    seeds: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    certified: bool


@dataclass(frozen=True)
class Scores:
    """One number per run; the smaller the better unless `larger_is_better`. A seed is a run.

    Attributes
    ----------
    values, seeds, errors
        learner -> MDP -> array (n,), by ascending seed; an error is how far a value may be off at most, and exact
        values have none.
    learners, mdps
        Their names, in order of appearance.
    value
        What the numbers are.
    missing
        learner -> MDP -> the number of runs that failed or are not done.
    """

    values: dict[str, dict[str, np.ndarray]]
    seeds: dict[str, dict[str, np.ndarray]]
    learners: tuple[str, ...]
    mdps: tuple[str, ...]
    value: str = "regret"
    larger_is_better: bool = False
    missing: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def of(self, learner: str, mdp: str) -> tuple[np.ndarray, np.ndarray]:
        """The seeds (n,) and the values (n,) of a learner on an MDP."""
        self.known(learner, mdp)
        if mdp not in self.values[learner]:
            raise InputError(f"there is no run of {learner} on {mdp}")
        return self.seeds[learner][mdp], self.values[learner][mdp]

    def error(self, learner: str, mdp: str) -> np.ndarray:
        """How far each of the values (n,) of a learner on an MDP may be off: smaller differences are none."""
        _, values = self.of(learner, mdp)
        return self.errors.get(learner, {}).get(mdp, np.zeros(len(values)))

    def known(self, learner: str, *mdps: str) -> None:
        """Raise unless there are runs of this learner, and on these MDPs."""
        must_be(learner, self.learners, "learner")
        for mdp in mdps:
            must_be(mdp, self.mdps, "MDP")


def from_table(
    table: Any,
    *,
    learner: str = "learner",
    mdp: str = "mdp",
    seed: str = "seed",
    value: str = "regret",
    error: str | None = None,
    larger_is_better: bool = False,
) -> Scores:
    """The scores of any table of runs: Arrow, pandas, a dict of columns or a list of dicts, with columns so named.

    error: the column that says how far each value may be off; values are exact unless it is given.
    """
    names = (learner, mdp, seed, value) if error is None else (learner, mdp, seed, value, error)
    columns = [_column(table, name) for name in names]
    sizes = {len(held) for held in columns}
    if len(sizes) != 1:
        raise InputError(f"the columns {', '.join(names)} have different lengths: {sorted(sizes)}")
    if error is None:
        columns.append([0.0] * len(columns[0]))
    return _gathered(zip(*columns, strict=True), value, larger_is_better)


def lines(
    results: Results,
    value: str = "regret",
    *,
    section: str | None = None,
    column: str | None = None,
    steps: int | None = None,
) -> list[Line]:
    """The runs of every entry of a suite, or of those of one section, column or T, in the order of the suite."""
    runs = results.runs
    if value not in runs.column_names:
        known = runs.column_names
        raise InputError(f"results have no {value!r}.{did_you_mean(value, known)} Known: {', '.join(known)}.")
    seeds, values = runs["seed"].to_numpy(), runs[value].to_numpy()
    bound = f"{value}_error"
    errors = runs[bound].to_numpy() if bound in runs.column_names else np.zeros(len(seeds))
    failed, there = runs["failure"].is_valid().to_numpy(), runs[value].is_valid().to_numpy()
    found = []
    for entry in _entries(results, section, column, steps):
        asked = entry.pop("seeds")
        rows = results.by_setting.get(entry["setting"], np.zeros(0, int))
        rows = rows[np.isin(seeds[rows], asked)]
        done = rows[~failed[rows]]
        mine = done[there[done]]
        off = errors[mine].astype(float)
        found.append(
            Line(
                **entry, asked=len(asked), failed=len(rows) - len(done), unrecorded=done[~there[done]], rows=mine,
                seeds=seeds[mine], values=values[mine], errors=np.nan_to_num(off), certified=not np.isnan(off).any(),
            )
        )  # fmt: skip
    return found


def scores(
    results: Results,
    *,
    section: str | None = None,
    column: str | None = None,
    steps: int | None = None,
    value: str = "regret",
) -> Scores:
    """The scores of a folder of results, of all that is there or of one section, column or T.

    A learner goes by its label, with the column behind it where there are several; an MDP by its id, with T where there
    are several. Runs that failed or are not done are counted in `missing`. Certified errors come along, where the
    results have them for this value.
    """
    asked = lines(results, value, section=section, column=column, steps=steps)
    columns, times = ({getattr(line, key) for line in asked} for key in ("column", "steps"))
    named: dict[tuple[str, str], list[Line]] = {}
    missing: dict[str, dict[str, int]] = {}
    for line in asked:
        learner = f"{line.label} ({line.column})" if len(columns) > 1 else line.label
        mdp = f"{line.mdp}, T = {line.steps:,}" if len(times) > 1 else line.mdp
        alike = named.setdefault((learner, mdp), [])
        alike.append(line)
        if alike[0].setting != line.setting:
            raise InputError(
                f"{learner} on {mdp} means different runs in the sections {alike[0].section!r} and {line.section!r}: "
                "name one, section=..."
            )
        if line.asked > len(line.seeds):
            missing.setdefault(learner, {})[mdp] = line.asked - len(line.seeds)
    found = scores_of(((*key, line) for key, alike in named.items() for line in alike), value)
    return replace(found, missing=missing, larger_is_better=value in LARGER)


def scores_of(named: Iterable[tuple[str, str, Line]], value: str = "regret") -> Scores:
    """The scores of lines, each under the name of a learner and of an MDP; those without runs are left out.

    Lines of the same name are of the same setting: a seed is one run.
    """
    held: dict[str, dict[str, tuple[np.ndarray, ...]]] = {}
    mdps: dict[str, None] = {}
    for learner, mdp, line in named:
        if len(line.seeds):
            mdps.setdefault(mdp)
            before = held.setdefault(learner, {}).get(mdp, ())
            arrays = line.seeds, finite(line.values, f"{learner} on {mdp}: {value}", 1), line.errors
            both = [np.concatenate(pair) for pair in zip(before, arrays, strict=True)] if before else arrays
            _, first = np.unique(both[0], return_index=True)
            held[learner][mdp] = tuple(array[first] for array in both)
    return _scores(held, mdps, value)


def _scores(
    held: Mapping[str, Mapping[str, tuple[np.ndarray, ...]]], mdps: Iterable[str], value: str, larger: bool = False
) -> Scores:
    """The scores of arrays by learner and MDP: seeds, ascending, with their values and errors."""
    if not held:
        raise InputError("there are no runs to compare")
    seeds, values, errors = (
        {learner: {mdp: arrays[place] for mdp, arrays in some.items()} for learner, some in held.items()}
        for place in range(3)
    )
    return Scores(values, seeds, tuple(held), tuple(mdps), value, larger, errors=errors)


def _entries(results: Results, section: str | None, column: str | None, steps: int | None) -> list[dict[str, Any]]:
    """The entries of the suite that are meant."""
    rows: list[dict[str, Any]] = results.entries.to_pylist()
    which = {"section": section, "column": column, "steps": None if steps is None else validation.steps(steps)}
    for key, wanted in which.items():
        if wanted is not None:
            known = list(dict.fromkeys(str(row[key]) for row in rows))
            rows = [row for row in rows if row[key] == wanted]
            if not rows:
                raise InputError(
                    f"no entry has {key} = {wanted!r}.{did_you_mean(str(wanted), known)} Known: {', '.join(known)}."
                )
    return rows


def _column(table: Any, name: str) -> list[Any]:
    """A column as a list, whatever the table is."""
    if isinstance(table, list | tuple):
        if not all(isinstance(row, Mapping) for row in table):
            raise InputError("a list must hold dicts, one per run")
        for place, row in enumerate(table):
            if name not in row:
                words = [str(key) for key in row]
                meant = did_you_mean(name, words)
                raise InputError(f"table[{place}] has no {name!r}.{meant} It has: {', '.join(words)}.")
        return [row[name] for row in table]
    if isinstance(table, Mapping):
        known = list(table)
    elif hasattr(table, "column_names"):  # Arrow
        known = list(table.column_names)
    elif hasattr(table, "columns"):  # pandas, and those like it
        known = list(table.columns)
    else:
        kinds = "an Arrow table, a pandas frame, a dict of columns or a list of dicts"
        raise InputError(f"a table is {kinds}, not {type(table).__name__}")
    if name not in known:
        words = [str(key) for key in known]
        raise InputError(f"the table has no column {name!r}.{did_you_mean(name, words)} It has: {', '.join(words)}.")
    held = table[name]
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(held, method):
            return list(getattr(held, method)())
    return list(held)


def _gathered(rows: Iterable[tuple[Any, ...]], value: str, larger_is_better: bool) -> Scores:
    found: dict[str, dict[str, dict[int, tuple[int, float, float]]]] = {}
    mdps: dict[str, None] = {}
    for learner, mdp, seed, score, error in rows:
        name, where = str(learner), f"{learner} on {mdp}, seed {seed}"
        try:
            number, whole, off = float(score), int(seed), float(error)
        except (TypeError, ValueError, OverflowError):
            message = f"{value} is {score!r}, its error {error!r}"
            raise InputError(f"{where}: {message}; they must be numbers, and a seed a whole one") from None
        if not np.isfinite(number):
            raise InputError(f"{where}: {value} is {number}, not a finite number")
        if not 0 <= off < np.inf:
            raise InputError(f"{where}: the error of {value} is {off}; it must be finite, and not negative")
        if whole != (float(seed) if isinstance(seed, (str, bytes)) else seed):
            raise InputError(f"{where}: a seed is a whole number")
        runs = found.setdefault(name, {}).setdefault(str(mdp), {})
        if whole in runs:
            raise InputError(f"{learner} on {mdp} has seed {seed} twice")
        runs[whole] = (whole, number, off)
        mdps.setdefault(str(mdp))
    held = {
        name: {
            mdp: tuple(np.array([run[place] for run in sorted(runs.values())]) for place in range(3))
            for mdp, runs in some.items()
        }
        for name, some in found.items()
    }
    return _scores(held, mdps, value, larger_is_better)
