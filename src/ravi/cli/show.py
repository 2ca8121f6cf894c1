"""What can be typed to see what was found? `report`, `figures`, `table`, `watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ravi.checks import InputError
from ravi.cli.common import say
from ravi.printable import room

FOLDER = Annotated[Path, typer.Argument(help="A folder of results; others may be writing into it.")]


def report(
    folder: FOLDER,
    out: Annotated[Path | None, typer.Option(help="The page; by default FOLDER/report.html.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="What ravi verify --json wrote; by default FOLDER/verify.json, if there.")
    ] = None,
) -> None:
    """Write one page of HTML that needs nothing else: words, curves, comparisons, tuning, failures, manifest."""
    from ravi.lab.report.page import report

    say(report(folder, out, verify=verify))


def figures(
    folder: Annotated[Path, typer.Argument(help="A folder of results; or a file of one run.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to; by default FOLDER/figures, or NAME-figures beside NAME.run.")
    ] = None,
    formats: Annotated[str, typer.Option(help="pdf, svg, png: one or several, with commas.")] = "pdf,png",
    kinds: Annotated[
        str | None, typer.Option(help="Such as regret,tuning, or all; by default the five that tell the story.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one for every core.")] = None,
) -> None:
    """Draw figures of a folder of results or of a run, sized for a two-column paper, and a page that shows them."""
    from ravi import checks
    from ravi.lab.experiments.manifest import cores
    from ravi.lab.report.figures import each_written
    from ravi.lab.report.index import index_page

    beside = folder.with_name(f"{folder.stem}-figures") if folder.is_file() else folder / "figures"
    into = beside if out is None else out
    if out is None and into.is_symlink():
        raise InputError(f"{into} is a link to {into.readlink()}: name the folder that is meant (--out)")
    chosen = None if kinds is None else [name.strip() for name in kinds.split(",")]
    many = cores() if workers is None else checks.whole(workers, "--workers")
    written = []
    for path in each_written(folder, into, [name.strip() for name in formats.split(",")], chosen, workers=many):
        written.append(path)
        say(path)
    if written:
        say(index_page(into, written))


def table(
    folder: FOLDER,
    form: Annotated[str, typer.Option("--format", help="text, latex, markdown or csv.")] = "text",
    section: Annotated[str | None, typer.Option(help="This section of the suite only.")] = None,
    column: Annotated[str | None, typer.Option(help="theory, tuned or given only.")] = None,
    steps: Annotated[str | None, typer.Option(help="This T only.")] = None,
    statistic: Annotated[str, typer.Option(help="mean, median or iqm.")] = "mean",
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="Write it to this file.")] = None,
) -> None:
    """Print learner x MDP with intervals, the best marked with its ties."""
    from ravi import checks, files
    from ravi.lab.experiments.results import results
    from ravi.lab.report.tables import table

    T = None if steps is None else checks.steps(steps)
    checks.one_of(form, ("text", "latex", "markdown", "csv"), "--format")
    made = table(results(folder), section=section, column=column, steps=T, statistic=statistic, level=level)
    if out is None:
        say((made.text(room()) if form == "text" else getattr(made, form)()).rstrip("\n"), whole=True)
        return
    files.put_text(out, getattr(made, form)().rstrip("\n") + "\n")


def watch(
    folder: Annotated[Path, typer.Argument(help="A folder of results, also one that is not there yet.")],
    once: Annotated[bool, typer.Option("--once", help="Print one frame, and end.")] = False,
) -> None:
    """Watch an experiment as it runs; ends by itself when all is done."""
    from ravi.lab.report.watch import watch

    watch(folder, once)
