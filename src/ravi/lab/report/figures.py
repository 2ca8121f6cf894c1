"""The figures of a folder of results, or of a run, of the kinds that are asked for, written into a folder with a page.

From results, for every section, MDP, T and column: the ranks, the regret (linear, and logarithmic with the theory
behind), the gap, and regret against computing time; for every section and column the comparisons; for every MDP the
tuning. From a run: the regret, the gap, the maps of its last state, and its ellipsoid. What the data do not hold is
left out. Figures of results are drawn by several processes where that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from html import escape
from multiprocessing import get_context
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from ravi import validation
from ravi.display.printable import titled
from ravi.display.style import Drawn, known_formats, library, slug
from ravi.lab.report.curves import Curves, gap_curves, gap_of, mean_gap, regret_curves, regret_of
from ravi.lab.report.summary import Panel, Row, curves, panels, summary
from ravi.runtime import archive
from ravi.runtime.result import Run
from ravi.statistics.scores import scores
from ravi.validation import InputError, must_be

if TYPE_CHECKING:
    from ravi.core import MDP
    from ravi.lab.experiments.results import Results

POINTS = 60  # of a line of the theory
EACH = 4  # figures that a process has to draw at least: it takes about as long to start
KINDS = {  # in the order of the page
    "ranks": "Who wins, by how much (★ the smallest mean, ≈ not significantly different from it)",
    "regret-log": "How regret grows, on logarithmic axes, with the bounds of the theory",
    "gap": "How good the current policy is",
    "pareto": "What less regret costs in computing time",
    "improvement": "Who beats whom, and how surely",
    "regret": "How regret grows, on linear axes",
    "differences": "By how much, on one MDP, paired by seed",
    "profiles": "How often a learner is good, across MDPs",
    "tuning": "What was tried in tuning, and chosen",
    "maps": "Value, bonus, visits and policy over the states",
    "theta": "What is known of theta",
}
MARKS, KERNEL = {"best": "★", "tie": "≈"}, "(knows the kernel)"  # behind the names of ranks
STORY = tuple(KINDS)[:5]  # what is drawn of results unless something else is asked for
SHOWN = (".svg", ".png")  # what a browser shows in a page, the better first
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Figures – ravi</title><style>{style}</style></head><body><main><h1>Figures</h1>
{body}
</main></body></html>
"""
STYLE = """:root { color-scheme: light dark; } body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem; }
h1, h2 { grid-column: 1 / -1; margin: 0; line-height: 1.25; } figure { margin: 0; }
img { width: 100%; background: #fff; border-radius: 6px; } figcaption { font-size: .85rem; overflow-wrap: anywhere; }"""


class Group(NamedTuple):
    """What is compared in one figure: the rows of a panel and a column that have runs, and their curves, by label."""

    panel: Panel
    column: str
    rows: dict[str, Row]
    curves: dict[str, Curves]

    @property
    def title(self) -> str:
        return _titled(self.panel.task, self.column)

    @property
    def remarks(self) -> dict[str, str]:
        """What stands behind the names of ranks."""
        return {label: KERNEL if row.oracle else MARKS.get(row.rank, "") for label, row in self.rows.items()}

    @property
    def name(self) -> str:
        return slug(self.panel.section, self.panel.mdp, f"T{self.panel.steps}", self.column)


def each_written(
    source: Results | Run | str | PathLike[str],
    folder: str | PathLike[str],
    formats: Sequence[str] = ("pdf", "png"),
    kinds: Sequence[str] | None = None,
    *,
    workers: int = 1,
) -> Iterator[Path]:
    """Draw figures of a folder of results, or of a run, into `folder`: the files, one after the other as they are
    written. What cannot be drawn from the data is left out.

    kinds: as in `KINDS`, or "all"; unless given, those of `STORY` of results, and all of a run.
    """
    from ravi.lab.experiments.results import results

    known_formats(formats)
    asked = None if kinds is None else known_kinds(kinds)
    library()
    opened: Any = source
    if isinstance(source, str | PathLike):
        opened = Run.load(source) if Path(source).is_file() else results(source)
    into = Path(folder)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into {into}: {error.strerror}") from None
    single = isinstance(opened, Run)
    wanted = asked or (tuple(KINDS) if single else STORY)
    tasks = [(draw, into / name, formats) for name, draw in drawn(opened) if kind_of(name) in wanted]
    workers = 1 if single else min(workers, len(tasks) // EACH)
    if workers < 2:
        for task in tasks:
            yield from _saved(*task)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for job in [pool.submit(_saved, *task) for task in tasks]:
            yield from job.result()


def _saved(draw: Callable[[], Drawn], stem: Path, formats: Sequence[str]) -> list[Path]:
    """The files of a figure; none where the data do not hold it."""
    try:
        figure = draw()
    except InputError:
        return []
    return figure.save(stem, formats)


def drawn(source: Results | Run) -> Iterator[tuple[str, Callable[[], Drawn]]]:
    """The name of every figure, and how to draw it."""
    yield from _of_run(source) if isinstance(source, Run) else _of_results(source)


def _of_results(results: Results) -> Iterator[tuple[str, Callable[[], Drawn]]]:
    from ravi.lab.report.scatter import pareto, ranks

    for group in groups(results):
        means = {label: row.mean for label, row in group.rows.items()}
        yield f"ranks-{group.name}", partial(ranks, means, remarks=group.remarks, title=group.title)
        regret = partial(regret_curves, group.curves, bounds=theory(group), title=group.title)
        yield f"regret-{group.name}", regret
        yield f"regret-log-{group.name}", partial(regret, logarithmic=True)
        gaps = {label: mean_gap(held) for label, held in group.curves.items()}
        yield f"gap-{group.name}", partial(gap_curves, gaps, title=group.title)
        spent = {label: (row.seconds, row.mean) for label, row in group.rows.items()}
        yield f"pareto-{group.name}", partial(pareto, spent, title=group.title)
    yield from _comparisons(results)
    yield from _tuning(results)


def _comparisons(results: Results) -> Iterator[tuple[str, Callable[[], Drawn]]]:
    from ravi.lab.report.matrix import differences, improvements, profile_figure

    asked = (results.entries[name].to_pylist() for name in ("section", "column"))
    for section, column in dict.fromkeys(zip(*asked, strict=True)):
        try:
            found = scores(results, section=section, column=column)
        except InputError:  # nothing has been found yet
            continue
        name = slug(section, column)
        if len(found.learners) > 1:
            yield f"improvement-{name}", partial(improvements, found, title=_titled(section, column))
            for mdp in found.mdps:
                yield f"differences-{name}-{slug(mdp)}", partial(differences, found, mdp, title=_titled(mdp, column))
        if len(found.mdps) > 1 and all(
            max(held[mdp].mean() for held in found.values.values() if mdp in held) > 0 for mdp in found.mdps
        ):
            yield f"profiles-{name}", partial(profile_figure, found, title=_titled(section, column))


def _titled(what: str, column: str) -> str:
    return titled(what) if column == "given" else f"{titled(what)}, {column}"


def _tuning(results: Results) -> Iterator[tuple[str, Callable[[], Drawn]]]:
    from ravi.lab.report.scatter import tuning

    asked = results.entries.to_pylist()
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in results.sql("SELECT * FROM tuning ORDER BY mdp, steps, learner, configuration").to_pylist():
        groups.setdefault((row["mdp"], row["steps"]), []).append(row)
    for (mdp, steps), rows in groups.items():
        order = [row["learner"] for row in asked if (row["mdp"], row["steps"]) == (mdp, steps)]
        yield f"tuning-{slug(mdp, f'T{steps}')}", partial(tuning, rows, order=order, title=mdp)


def groups(results: Results) -> list[Group]:
    """What was found, by section, MDP, T and column; what has no run with a regret is left out."""
    rows = summary(results)
    held = {row.key: Curves(times, found) for row, times, found in curves(results, rows)}
    split = ((panel, column, panel.of(column)) for panel in panels(rows) for column in panel.columns)
    return [
        Group(panel, column, {row.line.label: row for row in some}, {row.line.label: held[row.key] for row in some})
        for panel, column, some in split
        if some
    ]


def theory(group: Group) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the regret is below: t rho* for any learner and, where RAVI-UCB has the paper's constants, its bounds.

    The bound at t is that of a learner that is told T = t; of the one that was run it is a bound at T alone.
    """
    from ravi.theory import mixture, tabular

    label, row = next(iter(group.rows.items()))
    facts = row.facts
    if facts["optimum_error"] is None or facts["discount"] == 1:  # it is no MDP, or has no discount
        return {}
    times = np.unique(np.rint(np.geomspace(group.curves[label].times[0], group.panel.steps, POINTS)))
    found = {"t × optimum": times * facts["optimum"]}
    H, X, A, d = 1 / (1 - facts["discount"]), facts["states"], facts["actions"], facts["dimension"]
    for row in group.rows.values() if group.column != "tuned" else ():
        if row.line.learner == "ravi-ucb":
            found["tabular bound"] = np.array([tabular.corrected(H, X, A, int(t)).total for t in times])
        elif row.line.learner == "ravi-ucb/mixture":
            B = validation.positive(_constants(row).get("bound"), "bound")
            found["mixture bound"] = np.array([mixture.corrected(H, d, A, int(t), bound=B).total for t in times])
    return {name: (times, values) for name, values in found.items()}


def _constants(row: Row) -> dict[str, Any]:
    """A learner's constants, as its runs hold them."""
    try:
        found = json.loads(row.facts["constants"] or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{row.line.label} has constants that are not JSON: {error}") from None
    return found if isinstance(found, dict) else {}


def _of_run(run: Run) -> Iterator[tuple[str, Callable[[], Drawn]]]:
    from ravi.lab.report.grids import maps
    from ravi.lab.report.parameters import ellipsoid_of, leaves, parameter_figure

    name, mdp, label = slug(run.mdp, run.learner), mdp_of(run), run.learner
    title = f"{label} on {run.mdp}"
    if run.options["measured"] and run.plays.min() >= run.times[0]:
        regret = partial(regret_curves, {label: regret_of(run)}, title=run.mdp)
        yield f"regret-{name}", regret
        yield f"regret-log-{name}", partial(regret, logarithmic=True)
        gaps = gap_of(run) if run.options["keep_epochs"] else mean_gap(regret_of(run))
        yield f"gap-{name}", partial(gap_curves, {label: gaps}, title=run.mdp)
    when = f"seed {run.seeds[0]}, t = {int(run.plays[0]):,}"
    yield f"maps-{name}", partial(maps, run, mdp, title=f"{title}, {when}")
    held = leaves(run)
    if "beta" in run.settings and "data.response" in held and held["data.response"].shape[-1] > 1:
        theta = None if mdp is None else mdp.parameter
        yield f"theta-{name}", partial(parameter_figure, [ellipsoid_of(run)], theta, title=title)


def mdp_of(run: Run) -> MDP | None:
    """The MDP that a run was made on, where its name builds it; None where it does not, or builds another.

    A name is what a file says: one that would run other code than this library's builds nothing.
    """
    from ravi import ids

    for text in (f"{run.mdp}{',' if '/' in run.mdp else '/'}discount={run.discount!r}", run.mdp):
        try:
            mdp = ids.mdp(ids.check_trust(text, "the run"))
        except (InputError, OSError):
            continue
        if mdp.digest == run.mdp_digest:
            return mdp
    return None


def known_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds of figures by name; `all` is every one."""
    chosen = tuple(kinds)
    for kind in chosen:
        must_be(kind, (*KINDS, "all"), "figure")
    return tuple(KINDS) if "all" in chosen else chosen


def kind_of(name: str) -> str:
    """The kind of a figure, with which its name begins."""
    return max((kind for kind in KINDS if name.startswith(f"{kind}-")), key=len)


def index_page(folder: Path, written: Iterable[Path]) -> Path:
    """Write FOLDER/index.html, which shows the figures that were written into the folder, and links every file."""
    held: dict[str, dict[str, list[Path]]] = {kind: {} for kind in KINDS}
    for path in written:
        held[kind_of(path.stem)].setdefault(path.stem, []).append(path)
    lines = []
    for kind, figures in held.items():
        lines += [f"<h2>{escape(KINDS[kind])}</h2>"] if figures else []
        for stem, paths in figures.items():
            links = ", ".join(f'<a href="{quote(path.name)}">{path.suffix[1:]}</a>' for path in paths)
            shown = sorted((path for path in paths if path.suffix in SHOWN), key=lambda path: SHOWN.index(path.suffix))
            image = f'<img src="{quote(shown[0].name)}" alt="{escape(stem)}" loading="lazy">' if shown else ""
            lines.append(f"<figure>{image}<figcaption>{escape(stem)}: {links}</figcaption></figure>")
    place = folder / "index.html"
    archive.write_text_file(place, PAGE.format(style=STYLE, body="\n".join(lines)))
    return place
