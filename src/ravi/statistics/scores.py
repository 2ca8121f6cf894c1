"""Which numbers are compared? One number per run, by learner, MDP and seed: from a folder of results, or any table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi import validation
from ravi.validation import InputError, did_you_mean, must_be

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

LARGER = ("reward",)  # the values of results of which more is better


@dataclass(frozen=True)
class Scores:
    """One number per run; the smaller the better unless `larger_is_better`. A seed is a run."""

    values: dict[str, dict[str, np.ndarray]]  # learner -> MDP -> values (n,), ordered by seed
    seeds: dict[str, dict[str, np.ndarray]]  # learner -> MDP -> seeds (n,), ascending
    learners: tuple[str, ...]  # in order of appearance
    mdps: tuple[str, ...]
    value: str = "regret"  # what the numbers are
    larger_is_better: bool = False
    # learner -> MDP -> runs that failed, or are not done
    missing: dict[str, dict[str, int]] = field(default_factory=dict)
    # like values: how far each may be off at most; none where they are exact
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
    asked = entries_of(results, section, column, steps)
    several = {key: len({row[key] for row in asked}) > 1 for key in ("column", "steps")}
    held = results.runs.column_names
    if value not in held:
        raise InputError(f"results have no {value!r}.{did_you_mean(value, held)} Known: {', '.join(held)}.")
    bound = f"{value}_error" if f"{value}_error" in held else None
    runs = results.runs.select(["setting", "seed", value, "failure", *([bound] if bound else [])]).to_pylist()
    found = {(run["setting"], run["seed"]): run for run in runs if run["failure"] is None and run[value] is not None}

    rows: dict[tuple[str, str, int], tuple[float, float]] = {}
    scored: dict[tuple[str, str], tuple[Any, Any]] = {}  # by which setting, in which section
    missing: dict[str, dict[str, int]] = {}
    for row in asked:
        learner = f"{row['label']} ({row['column']})" if several["column"] else row["label"]
        mdp = f"{row['mdp']}, T = {row['steps']:,}" if several["steps"] else row["mdp"]
        before = scored.setdefault((learner, mdp), (row["setting"], row["section"]))
        if before[0] != row["setting"]:
            raise InputError(
                f"{learner} on {mdp} means different runs in the sections {before[1]!r} and {row['section']!r}: "
                "name one, section=..."
            )
        lost = 0
        for seed in row["seeds"]:
            if (run := found.get((row["setting"], seed))) is None:
                lost += 1
            else:
                rows[learner, mdp, seed] = (run[value], (run[bound] or 0.0) if bound else 0.0)
        if lost:
            missing.setdefault(learner, {})[mdp] = lost
    gathered = _gathered(((*key, *score) for key, score in rows.items()), value, value in LARGER)
    return replace(gathered, missing=missing)


def entries_of(results: Results, section: str | None, column: str | None, steps: int | None) -> list[dict[str, Any]]:
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
    found: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    mdps: dict[str, None] = {}
    for learner, mdp, seed, score, error in rows:
        name, where = str(learner), f"{learner} on {mdp}, seed {seed}"
        try:
            number, whole, off = float(score), int(seed), float(error)
        except (TypeError, ValueError, OverflowError):
            told = f"{value} is {score!r}, its error {error!r}"
            raise InputError(f"{where}: {told}; they must be numbers, and a seed a whole one") from None
        if not np.isfinite(number):
            raise InputError(f"{where}: {value} is {number}, not a finite number")
        if not 0 <= off < np.inf:
            raise InputError(f"{where}: the error of {value} is {off}; it must be finite, and not negative")
        if whole != (float(seed) if isinstance(seed, (str, bytes)) else seed):
            raise InputError(f"{where}: a seed is a whole number")
        runs = found.setdefault(name, {}).setdefault(str(mdp), {})
        if whole in runs:
            raise InputError(f"{learner} on {mdp} has seed {seed} twice")
        runs[whole] = (number, off)
        mdps.setdefault(str(mdp))
    if not found:
        raise InputError("there are no runs to compare")
    seeds = {name: {mdp: np.array(sorted(runs)) for mdp, runs in held.items()} for name, held in found.items()}
    values, errors = (
        {
            name: {mdp: np.array([runs[seed][place] for seed in sorted(runs)]) for mdp, runs in held.items()}
            for name, held in found.items()
        }
        for place in (0, 1)
    )
    return Scores(values, seeds, tuple(found), tuple(mdps), value, larger_is_better, errors=errors)
