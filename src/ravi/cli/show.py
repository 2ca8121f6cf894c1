"""The commands that show what was found: `report`, `figures`, `table`, `watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ravi.cli.common import say
from ravi.display.printable import room
from ravi.validation import InputError, require_extra

FOLDER = Annotated[Path, typer.Argument(help="A folder of results; its suite may still be running.")]


def report(
    folder: FOLDER,
    *,
    out: Path | None = None,
    verify: Path | None = None,
) -> None:
    """Write a self-contained HTML report: summary, curves, comparisons, tuning, failures, manifest.

    Parameters
    ----------
    out
        The file to write; by default FOLDER/report.html.
    verify
        A file written by ravi verify --json; by default FOLDER/verify.json, if it exists.
    """
    require_extra("the page needs", "report", "pyarrow", "duckdb", "matplotlib", "plotly", "jinja2")
    from ravi.lab.report.page import report

    say(report(folder, out, verify=verify))


def figures(
    folder: Path,
    *,
    out: Path | None = None,
    formats: str = "pdf,png",
    kinds: str | None = None,
    workers: int | None = None,
) -> None:
    """Draw figures of a folder of results or of a run, sized for a two-column paper, and an index page.

    Parameters
    ----------
    folder
        A folder of results, or the file of one run.
    out
        The folder to write to; by default FOLDER/figures, or NAME-figures next to NAME.run.
    formats
        pdf, svg or png; several are separated by commas.
    kinds
        Kinds of figures, such as regret,tuning, or all; by default the five main ones.
    workers
        The number of processes; by default one per core.
    """
    from ravi import validation
    from ravi.display.style import library
    from ravi.machine import cores

    library()  # what is missing is told by the extra that has all of it
    from ravi.lab.report.figures import each_written, index_page

    beside = folder.with_name(f"{folder.stem}-figures") if folder.is_file() else folder / "figures"
    into = beside if out is None else out
    if out is None and into.is_symlink():
        raise InputError(f"{into} is a link to {into.readlink()}: name the folder that is meant (--out)")
    chosen = None if kinds is None else [name.strip() for name in kinds.split(",")]
    many = cores() if workers is None else validation.whole(workers, "--workers")
    written = []
    for path in each_written(folder, into, [name.strip() for name in formats.split(",")], chosen, workers=many):
        written.append(path)
        say(path)
    if written:
        say(index_page(into, written))


def table(
    folder: FOLDER,
    *,
    form: Annotated[str, typer.Option("--format")] = "text",
    section: str | None = None,
    column: str | None = None,
    steps: str | None = None,
    statistic: str = "mean",
    level: float = 0.95,
    out: Path | None = None,
) -> None:
    """Print a table of regret, learner x MDP, with intervals; the best and its ties are marked.

    Parameters
    ----------
    form
        text, latex, markdown or csv.
    section
        Only this section of the suite.
    column
        Only this column: theory, tuned or given.
    steps
        Only this T.
    statistic
        mean, median or iqm.
    level
        The confidence level of the intervals.
    out
        Write the table to this file.
    """
    from ravi import validation
    from ravi.lab.experiments.results import results
    from ravi.lab.report.tables import table
    from ravi.runtime import archive

    T = None if steps is None else validation.steps(steps)
    validation.one_of(form, ("text", "latex", "markdown", "csv"), "--format")
    found = table(results(folder), section=section, column=column, steps=T, statistic=statistic, level=level)
    if out is None:
        say((found.text(room()) if form == "text" else getattr(found, form)()).rstrip("\n"), whole=True)
        return
    archive.write_text_file(out, getattr(found, form)().rstrip("\n") + "\n")


def watch(
    folder: Path,
    *,
    once: bool = False,
) -> None:
    """Watch an experiment while it runs, until it is finished.

    Parameters
    ----------
    folder
        A folder of results; it need not exist yet.
    once
        Print one frame and exit.
    """
    from ravi.lab.report.watch import watch

    watch(folder, once)
