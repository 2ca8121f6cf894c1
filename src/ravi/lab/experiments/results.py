"""A folder of results, opened for reading: tables, SQL, NumPy arrays, and what is wrong with it.

Opening takes a snapshot of the parts that are whole, each compared with the hash in its name; others may go on writing.
A run that is there twice counts once (`ravi.lab.experiments.parts`). Nothing is ever written into the folder.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ravi import validation
from ravi.core import Floats, Ints
from ravi.display import html
from ravi.display.printable import ENDLESS, columns, counted, printable, titled
from ravi.lab.experiments import queries
from ravi.lab.experiments.manifest import differing
from ravi.lab.experiments.parts import ORDER, curves_of, dataset_of, distinct
from ravi.lab.experiments.rows import CURVES, SCALARS, SCHEMA
from ravi.lab.experiments.store import Store, Trouble
from ravi.measures.curve import grid
from ravi.runtime.result import setting_columns
from ravi.statistics.scores import Line, lines
from ravi.validation import InputError, did_you_mean, must_be, require_pandas

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pandas import DataFrame

    from ravi.lab.experiments.plan import Planned
    from ravi.lab.experiments.suite import Entry, Suite

NAMES = {"regret": "regret_curve", "reward": "reward_curve", "trajectory": "trajectory_curve"}  # of `Results.curves`
LISTED = 12  # names, and choices, in a message
HEAD = ("section", "MDP", "learner", "column", "T", "seeds", "failed", "mean regret")


class DamagedWarning(UserWarning):
    """Files of a folder of results are damaged or foreign; they are left out."""


class ConflictWarning(UserWarning):
    """A run is there twice, with different bits."""


class Counts(NamedTuple):
    planned: int  # runs that the entries of the suite ask for
    done: int  # of them, without a failure
    failed: int  # of them
    others: int  # runs that no entry asks for: those of tuning


def results(folder: str | os.PathLike[str]) -> Results:
    """Open a folder of results, to which a suite may still be writing.

    Parameters
    ----------
    folder
        What `ravi.run_suite` wrote.

    Returns
    -------
    Results
        A snapshot: its runs as an Arrow table, curves, queries in SQL.

    Examples
    --------
    >>> import tempfile
    >>> import ravi
    >>> suite = {"steps": 200, "seeds": 2, "sections": [{"name": "a", "mdps": ["riverswim/3"], "learners": ["psrl"]}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = ravi.run_suite(suite, folder, workers=1)
    ...     ravi.results(folder).runs.num_rows
    2
    """
    return Results(validation.path(folder, "folder"))


class Results:
    """A snapshot of a folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; ravi suite run SUITE --out {folder} makes one")
        if not (folder / "specification.json").exists() and not (folder / "parts").is_dir():
            raise InputError(f"{folder} is no folder of results: it has neither specification.json nor parts")
        store = Store(self.folder)
        self.troubles: list[Trouble] = store.troubles
        tables = store.read(SCALARS)
        self.parts = [*tables]  # the names of those that are whole
        self.manifests: dict[str, dict[str, Any]] = store.manifests()  # after the parts, which are written after them
        records = store.tuning()
        self.tuning: dict[str, dict[str, Any]] = {name: record for name, record in records.items() if _sound(record)}
        foreign = [name for name in records if name not in self.tuning]
        self.troubles += [Trouble(f"tuning/{name}.json", "foreign: it is no record of tuning") for name in foreign]
        self.runs, self._place, self.conflicts = distinct(tables)
        self._sizes = [table.num_rows for table in tables.values()]
        del tables
        pa.default_memory_pool().release_unused()
        launches = pc.unique(self.runs["launch"]).to_pylist()
        known = {*self.manifests, *(Path(trouble.name).stem for trouble in self.troubles)}
        for launch in sorted(name for name in launches if name is not None and name not in known):
            self.troubles.append(Trouble(f"manifests/{launch}.json", "absent, though there are runs of this launch"))
        self._warn()

    def _warn(self) -> None:
        where = printable(str(self.folder))
        if self.troubles:
            named = _listed([printable(str(trouble)) for trouble in self.troubles])
            warnings.warn(f"{where}: left out what is damaged or foreign: {named}", DamagedWarning, stacklevel=4)
        if self.conflicts:
            launches = list(dict.fromkeys(launch for conflict in self.conflicts for launch in conflict.launches))
            made = [self.manifests[launch] for launch in launches if launch in self.manifests]
            lines = list(dict.fromkeys(line for other in made[1:] for line in differing(made[0], other)))
            why = (
                f"; their launches differ in {'; '.join(lines)}" if lines else "; their launches name the same versions"
            )
            warnings.warn(
                f"{where}: {len(self.conflicts)} runs were made twice, with different bits: "
                f"{_listed([str(conflict) for conflict in self.conflicts])}{why}",
                ConflictWarning,
                stacklevel=4,
            )

    # What was asked for.

    @cached_property
    def specification(self) -> dict[str, Any]:
        """The suite as plain data, frozen as it was launched."""
        return dict(self._frozen["suite"])

    @cached_property
    def _frozen(self) -> dict[str, Any]:
        held = Store(self.folder).specification()
        if held is None:
            raise InputError(f"{self.folder} has no specification.json")
        return held

    @cached_property
    def suite(self) -> Suite:
        from ravi.lab.experiments.reading import specify

        return specify(self.specification, build=False)

    @cached_property
    def _planned(self) -> list[Planned]:
        from ravi.lab.experiments import plan

        return plan.planned(self.suite, plan.facts_from(self._frozen), self.tuning)

    @cached_property
    def entries(self) -> pa.Table:
        """One row for every entry of the suite, with the setting by which it is scored."""
        rows = [{**one.entry._asdict(), "setting": one.setting and one.setting.digest} for one in self._planned]
        return pa.Table.from_pylist(rows, schema=queries.ENTRIES)

    @cached_property
    def untuned(self) -> dict[tuple[Any, ...], str]:
        """Why tuning has not chosen for an entry, where it has not, by section, mdp, steps, label and column."""
        from ravi.lab.experiments.tuning import lacking

        return {
            _key(one.entry): lacking(self.tuning.get(one.subject.digest))
            for one in self._planned
            if one.setting is None and one.subject is not None
        }

    @cached_property
    def counts(self) -> Counts:
        """How many runs the suite asks for, and how many there are."""
        from ravi.lab.experiments.plan import asked

        known, waiting = asked(self._planned)
        rows = zip(*(self.runs[name].to_pylist() for name in ("setting", "seed", "failure")), strict=True)
        failed = [failure is not None for *run, failure in rows if tuple(run) in known]
        return Counts(len(known) + waiting, failed.count(False), failed.count(True), self.runs.num_rows - len(failed))

    def unfinished(self) -> list[str]:
        """The tunings that are not final, and why: trials are missing."""
        from ravi.lab.experiments.tuning import lacking

        return [
            printable(f"{record.get('learner')} on {record.get('mdp')}, T = {record.get('steps')}: {lacking(record)}")
            for record in self.tuning.values()
            if record.get("missing")
        ]

    # Tables.

    def table(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        """These columns (all, curves too, unless named) of the runs for which an SQL condition holds."""
        known = ["run", *SCHEMA.names]
        for name in columns or ():
            must_be(name, known, "column")
        chosen = ", ".join(known if columns is None else columns)
        condition = "" if where is None else f" WHERE ({where}\n)"
        return self.sql(f"SELECT {chosen} FROM all_runs{condition} ORDER BY {', '.join(ORDER)}")

    def to_pandas(self) -> DataFrame:
        """The runs that entries report as a tidy pandas DataFrame: a row for every entry and seed, with all columns of
        the view `results` but the curves, and one for every setting of the learners (`scale`, ...)."""
        pandas = require_pandas("results.to_pandas()", "results.sql(query) gives an Arrow table; results.regret(...)")
        left_out = ", ".join((*CURVES, "traceback"))
        rows = self.sql(f"SELECT * EXCLUDE ({left_out}) FROM results ORDER BY ALL").to_pylist()
        for row in rows:
            settings = json.loads(row.pop("constants") or "{}")
            row |= setting_columns(settings, tuple(row))
        return pandas.DataFrame(rows)

    def sql(self, query: str) -> pa.Table:
        """The answer to a query over the views `results`, `runs` (those that entries report, each once), `all_runs` (of
        tuning too), `entries`, `tuning` and `failures` (DuckDB's SQL)."""
        return queries.answer(query, self._dataset, queries.tried(self.tuning), lambda: self.entries)

    @cached_property
    def _dataset(self) -> ds.Dataset:
        return dataset_of(self._paths, self._place, self._sizes)

    @property
    def _paths(self) -> list[Path]:
        return [self.folder / "parts" / part for part in self.parts]

    # Arrays.

    def regret(self, **which: Any) -> tuple[Ints, Floats]:
        """The seeds (n,) and the regret at T (n,) of one entry, named by mdp, learner, section, column, label, steps.

        Runs that failed, or are not done, are not among them.
        """
        chosen = self._rows(self._entry(which))
        return self.runs["seed"].to_numpy()[chosen], self.runs["regret"].to_numpy()[chosen]

    def curves(self, name: str = "regret", **which: Any) -> tuple[Ints, Ints, Floats]:
        """The times (P,), the seeds (n,) and the curves (n, P) of one entry; name: regret, reward or trajectory."""
        must_be(name, NAMES, "curve")
        entry = self._entry(which)
        chosen = self._rows(entry)
        times = grid(self._planned[entry].entry.steps, self._planned[entry].entry.points)
        try:
            found = dict(self.curves_of([chosen], name))
        except InputError:
            raise InputError(f"{name} was not recorded for {self._said(entry)}") from None
        return times, self.runs["seed"].to_numpy()[chosen], found.get(0, np.empty((0, len(times))))

    def curves_of(self, lines: Sequence[np.ndarray], name: str = "regret") -> Iterator[tuple[int, Floats]]:
        """The curves (n, P) of some lines, each given as its rows of `runs`: which line it is, and its curves.

        They come in the order in which they are stored, and few are held at a time.
        """
        points = self.runs["points"].to_numpy()
        most = [int(points[rows].max(initial=0)) for rows in lines]
        return curves_of(self._paths, [self._place[rows] for rows in lines], most, NAMES[name])

    def _entry(self, which: dict[str, Any]) -> int:
        """The index of the one entry that these values select."""
        for key in which:
            if key not in self._named:
                meant = did_you_mean(key, self._named)
                raise InputError(f"an entry has no {key!r}.{meant} Known: {', '.join(self._named)}.")
        left = list(range(self.entries.num_rows))
        for key, value in which.items():
            held = self._named[key]
            left = [place for place in left if value is None or held[place] == value]
            if not left:
                choices = list(dict.fromkeys(str(one) for one in held))
                meant = did_you_mean(str(value), choices)
                raise InputError(f"no entry has {_given(which)}.{meant} {key} may be: {_listed(choices)}")
        if len(left) != 1:
            choices = [self._said(place) for place in left]
            raise InputError(f"{len(left)} entries have {_given(which) or 'nothing said of them'}: {_listed(choices)}")
        return left[0]

    @cached_property
    def _named(self) -> dict[str, list[Any]]:
        """The columns by which an entry can be selected."""
        return {
            name: self.entries[name].to_pylist() for name in queries.ENTRIES.names if name not in ("setting", "seeds")
        }

    def _rows(self, entry: int) -> np.ndarray:
        """Which rows of `runs` an entry has that succeeded, by seed."""
        line = self._lines[entry]
        if line.setting is None:
            raise InputError(f"{self._said(entry)} is not tuned yet")
        return np.concatenate([line.rows, line.unrecorded])

    @cached_property
    def _lines(self) -> list[Line]:
        return lines(self)

    @cached_property
    def by_setting(self) -> dict[str, np.ndarray]:
        """Which rows of `runs` every setting has, failures too, by seed."""
        names = self.runs["setting"].combine_chunks().dictionary_encode()
        codes = names.indices.to_numpy()
        order = np.lexsort((self.runs["seed"].to_numpy(), codes))
        groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []
        return {names.dictionary[int(codes[rows[0]])].as_py(): rows for rows in groups}

    def _said(self, entry: int) -> str:
        section, column, label, mdp, learner, steps, *_ = self._planned[entry].entry
        return f"{section}: {label} ({learner}) on {mdp}, {column}, T = {steps:,}"

    def summary(self, width: int = ENDLESS) -> str:
        """The mean regret at T of every entry, with the number of seeds, as text of at most `width` columns."""
        return "\n".join(columns([HEAD, *self._means()], "llllrrrr", width))

    def _means(self) -> list[tuple[str, ...]]:
        """The rows of the summary."""
        table = []
        for line in self._lines:
            mean = f"{line.values.mean():,.2f}" if len(line.seeds) else "-"
            mean = self.untuned[_key(line)] if line.setting is None else mean
            names = map(printable, (line.section, titled(line.mdp), line.label, line.column))
            seeds = f"{len(line.seeds) + len(line.unrecorded)} of {line.asked}"
            table.append((*names, f"{line.steps:,}", seeds, str(line.failed), mean))
        return table

    def _facts(self) -> tuple[str, list[tuple[str, str]]]:
        """A title, and the facts that are shown below it, by name."""
        failed = self.runs.num_rows - self.runs["failure"].null_count
        try:
            name, counts = self.suite.name, self.counts
        except InputError as error:
            head, runs = f"({error})", f"{counted(self.runs.num_rows, 'run')}, {failed:,} failed"
        else:
            head = f"of {printable(name)}"
            runs = f"{counts.done:,} of {counts.planned:,} done, {counts.failed:,} failed"
            runs += f"; {counts.others:,} more, for tuning or of other suites" if counts.others else ""
        launches = f"{len(self.manifests)} launch{'es' if len(self.manifests) != 1 else ''}"
        found = [("runs", f"{runs}; {launches}")]
        if unfinished := self.unfinished():
            found.append(("TUNING", f"{_listed(unfinished)}; the command that made it tries them again"))
        if self.troubles:
            found.append(("troubles", _listed([printable(str(trouble)) for trouble in self.troubles])))
        if self.conflicts:
            found.append(("CONFLICTS", _listed([str(conflict) for conflict in self.conflicts])))
        return f"Results {head} in {printable(str(self.folder))}", found

    def _repr_html_(self) -> str:  # what a notebook shows
        title, facts = self._facts()
        try:
            rows = self._means()
        except InputError:  # no suite that can be read
            return html.summary(title, facts)
        return html.summary(title, facts, html.table(HEAD, rows, 4, most=len(rows)))

    def __repr__(self) -> str:
        title, facts = self._facts()
        return f"<{title}: {facts[0][1]}>"

    def __str__(self) -> str:
        title, facts = self._facts()
        return "\n".join([title, *(f"  {name:10} {words}" for name, words in facts)])


def _key(one: Entry | Line) -> tuple[Any, ...]:
    """Which entry."""
    return one.section, one.mdp, one.steps, one.label, one.column


def _listed(names: Iterable[str]) -> str:
    """Names, each on its line where there are several; the first dozen."""
    lines = list(names)
    more = [f"and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return lines[0] if len(lines) == 1 else "\n    " + "\n    ".join([*lines[:LISTED], *more])


def _sound(record: dict[str, Any]) -> bool:
    """Whether this is a record of tuning, as far as it is read here."""
    tried, chosen = record.get("configurations"), record.get("chosen")
    if not isinstance(tried, list) or not all(isinstance(one, dict) and "learner" in one for one in tried):
        return False
    return chosen is None or (isinstance(chosen, int) and 0 <= chosen < len(tried))


def _given(which: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value!r}" for key, value in which.items() if value is not None)
