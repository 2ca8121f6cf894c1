"""Which runs does the page stand on? A folder of results as sections, panels (an MDP and a T) and lines of runs.

All but the curves is in memory since the folder was opened; of the curves, `shapes` keeps what is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.report.page.shapes import Shape, shapes
from ravi.learners import knows_the_kernel
from ravi.measures.curve import grid

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

FACTS = ("discount", "states", "actions", "dimension", "optimum")  # of an MDP, as its runs tell them
KEPT = ("seed", "regret", "regret_error", "seconds")  # of every run, besides its curve


class Line(NamedTuple):
    """A learner on an MDP in a column: one entry of the suite, with those of its runs that have a regret."""

    label: str
    column: str
    learner: str  # as the suite says
    configured: str  # with the multipliers that tuning chose; empty where nothing has run
    setting: str  # empty while tuning has not chosen
    asked: int  # how many seeds the suite asks for
    failed: int
    seeds: Array  # (n,), ascending
    regret: Array  # (n,), at T
    error: Array  # (n,), a certified bound on its error
    seconds: Array  # (n,), of computing
    rows: Array  # (n,), of the table of runs
    times: Array  # (P,), of the curves
    earned: Array = np.zeros(0)  # (m,), the rewards of runs that have no regret: those of a large world
    certified: bool = True  # whether the error is known; else it stands as 0: on continuous states
    shape: Shape | None = None  # of the curves; None where there is no run

    @property
    def multipliers(self) -> str:
        """The multipliers that tuning chose."""
        return ", ".join(re.findall(r"(?<=,)(?:step_)?scale=[^,]+", self.configured))

    @property
    def oracle(self) -> bool:
        """Whether it is told the kernel, and so is no rival of those that must learn it."""
        return knows_the_kernel(self.learner)

    @property
    def ours(self) -> bool:
        return not self.oracle and any(_named(self.learner, name) for name in ("ravi-ucb", "ravi-ucb/mixture"))

    @property
    def nothing(self) -> bool:
        """Whether its mean regret is 0, to what it may be off; exact regret never falls, so all of its curve is."""
        return len(self.seeds) > 0 and bool(abs(self.regret.mean()) <= self.error.mean())

    @property
    def without(self) -> str:
        """Why it has no run that succeeded; empty where it has."""
        if len(self.seeds):
            return ""
        if len(self.earned):
            return f"no regret; mean reward {self.earned.mean():,.6g} of {len(self.earned)} runs"
        missing = self.asked - self.failed
        if not self.failed:
            return "not run yet" if self.setting else "waits for tuning"
        return f"failed ({self.failed} of {self.asked})" + (f", {missing} not run yet" if missing else "")

    @property
    def uniform(self) -> bool:
        return _named(self.learner, "uniform")


class Panel(NamedTuple):
    """All learners of a section on one MDP for one T."""

    anchor: str
    task: str  # the MDP's id, and T where the section has several
    mdp: str
    steps: int
    lines: tuple[Line, ...]
    facts: dict[str, float]  # of the MDP: see FACTS; empty where nothing has run

    def of(self, column: str, *, rivals: bool = False) -> list[Line]:
        """The lines of a column that have runs; rivals: those that must learn the kernel."""
        return [one for one in self.lines if one.column == column and len(one.seeds) and not (rivals and one.oracle)]


class Part(NamedTuple):
    """A section of the suite."""

    anchor: str
    name: str
    remark: str
    columns: tuple[str, ...]
    panels: tuple[Panel, ...]


def parts(found: Results) -> tuple[Part, ...]:
    """The sections of the suite in order, each with its runs; curves are read once."""
    held = _runs(found)
    entries: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for entry in found.entries.to_pylist():
        entries.setdefault((entry["section"], entry["mdp"], entry["steps"]), []).append(entry)
    lines = {place: [_line(entry, held) for entry in some] for place, some in entries.items()}
    shape = shapes(found, [line for some in lines.values() for line in some])
    made = []
    for i, section in enumerate(found.suite.sections, 1):
        panels: list[Panel] = []
        for mdp in section.mdps:
            for T in section.steps:
                here = tuple(
                    line._replace(shape=shape.get(line.rows.tobytes())) for line in lines[section.name, mdp, T]
                )
                task = mdp if len(section.steps) == 1 else f"{mdp}, T = {T:,}"
                ran = [held[line.setting] for line in here if len(line.seeds)]
                facts = {name: float(ran[0][name]) for name in FACTS} if ran else {}
                panels.append(Panel(f"section-{i}-mdp-{len(panels) + 1}", task, mdp, T, here, facts))
        made.append(Part(f"section-{i}", section.name, section.remark, section.columns, tuple(panels)))
    return tuple(made)


def _line(entry: dict[str, Any], held: dict[str, dict[str, Any]]) -> Line:
    setting = entry["setting"] or ""
    names = (entry["label"], entry["column"], entry["learner"])
    if setting not in held:
        none, whole = np.zeros(0), np.zeros(0, int)
        return Line(*names, "", setting, len(entry["seeds"]), 0, whole, none, none, none, whole, none)
    runs = held[setting]
    asked = np.isin(runs["seed"], entry["seeds"])
    done = asked & ~runs["failed"]
    mine = done & runs["scored"]
    seeds, regret, error, seconds, rows = (runs[name][mine] for name in (*KEPT, "rows"))
    return Line(
        *names, runs["learner"], setting, len(entry["seeds"]), int((asked & runs["failed"]).sum()),
        seeds, regret, np.nan_to_num(error), seconds, rows, grid(entry["steps"], runs["points"]),
        runs["reward"][done & ~mine], not np.isnan(error).any(),
    )  # fmt: skip


def _runs(found: Results) -> dict[str, dict[str, Any]]:
    """The runs of every setting that an entry is scored by, ordered by seed, as arrays."""
    runs = found.runs
    column = {name: runs[name].to_numpy() for name in (*KEPT, "reward")}
    column |= {"failed": runs["failure"].is_valid().to_numpy(), "scored": runs["regret"].is_valid().to_numpy()}
    held = {}
    for setting in set(found.entries["setting"].to_pylist()) & found.by_setting.keys():
        rows = found.by_setting[setting]
        told = int(rows[np.argmin(column["failed"][rows])])  # a run that succeeded, where there is one
        facts = {name: runs[name][told].as_py() or 0.0 for name in FACTS}
        said = {name: runs[name][told].as_py() for name in ("points", "learner")}
        held[setting] = {name: values[rows] for name, values in column.items()} | facts | said | {"rows": rows}
    return held


def _named(id: str, name: str) -> bool:
    return id == name or id.startswith(f"{name},")
