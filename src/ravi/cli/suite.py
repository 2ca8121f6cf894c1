"""What can be typed about suites and folders of results? `demo`, `run SUITE`, `suites`, `results`, `reproduce`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.checks import InputError
from ravi.cli.common import ALLOW_CODE, JSON, progress_bar, say
from ravi.cli.run import run_one
from ravi.printable import printable

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results
    from ravi.lab.experiments.runner import Status

ONE, MANY = "One run: ravi run MDP LEARNER", "A suite: ravi run SUITE --out FOLDER"
WORKERS = Annotated[int | None, typer.Option(help="Processes; by default one per core.", rich_help_panel=MANY)]
CLUSTER = Annotated[
    str | None, typer.Option(help="The address of a Ray cluster instead, or local.", rich_help_panel=MANY)
]


def demo(
    out: Annotated[Path, typer.Option(help="The folder for results, figure and page.")] = Path("demo"),
    steps: Annotated[str, typer.Option(help="T.")] = "1e5",
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 32,
) -> None:
    """RAVI-UCB, tabular and mixture, beside others on RiverSwim: a table, a figure and a page."""
    from ravi import checks
    from ravi.lab import demo
    from ravi.lab.experiments.runner import status_bar

    with status_bar(None, "demo", patience=0) as show:
        say(demo.demo(out, checks.steps(steps), checks.whole(seeds, "seeds"), show))


def run(
    what: Annotated[
        str, typer.Argument(help="A suite (see ravi suites), its TOML file, or a folder of results; or an MDP.")
    ],
    learner: Annotated[
        str | None, typer.Argument(help="After an MDP: a learner, such as ravi-ucb,scale=0.03 or ravi-ucb/mixture.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds, from 0 on; or which: 5-8 or 1,7,9. One run: 16.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or gpu, in place of what a suite says; else the cpu.")] = None,
    as_json: JSON = False,
    out: Annotated[Path | None, typer.Option(help="The folder of the results.", rich_help_panel=MANY)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would run, and how long it would take.", rich_help_panel=MANY)
    ] = False,
    workers: WORKERS = None,
    cluster: CLUSTER = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: the i-th of n parts of the work, as in an array job.", rich_help_panel=MANY)
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed.", rich_help_panel=MANY)] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Let a folder take this suite in place of its own.", rich_help_panel=MANY)
    ] = False,
    mix_versions: Annotated[
        bool,
        typer.Option(
            "--mix-versions", help="Go on with other versions than the folder was made with.", rich_help_panel=MANY
        ),
    ] = False,
    slice: Annotated[
        float | None, typer.Option(help="Seconds between checkpoints of a long run: 30.", rich_help_panel=MANY)
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code", help="Import and run the modules that a folder of results names.", rich_help_panel=MANY
        ),
    ] = False,
    steps: Annotated[str | None, typer.Option(help="T: 1e5 unless given.", rich_help_panel=ONE)] = None,
    points: Annotated[int | None, typer.Option(help="Points of the curves: 500.", rich_help_panel=ONE)] = None,
    trajectory: Annotated[
        bool, typer.Option(help="Record the trajectory regret of the earlier literature too.", rich_help_panel=ONE)
    ] = False,
    pad: Annotated[bool, typer.Option(help="Play the last epoch to its end (T+).", rich_help_panel=ONE)] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Keep the run in this file; if it holds a stopped run, go on.", rich_help_panel=ONE),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the regret into this file (png, pdf, svg).", rich_help_panel=ONE)
    ] = None,
) -> None:
    """Run a suite into a folder; the same command goes on where it stopped. Or run one learner on one MDP.

    Regret is exact. Ctrl-C stops in good order. Exit status 1 when runs failed, 130 when stopped.
    """
    one: dict[str, Any] = {
        "--steps": steps,
        "--points": points,
        "--trajectory": trajectory,
        "--pad": pad,
        "--save": save,
    }
    one["--figure"] = figure
    many: dict[str, Any] = {
        "--out": out,
        "--dry-run": dry_run,
        "--workers": workers,
        "--cluster": cluster,
        "--shard": shard,
    }
    many |= {"--retry": retry, "--adopt": adopt, "--mix-versions": mix_versions, "--slice": slice}
    many |= {"--allow-code": allow_code}
    if learner is not None:
        _none_of(many, "a suite, and this is one run")
        run_one(
            what, learner, steps="1e5" if steps is None else steps, seeds="16" if seeds is None else seeds,
            points=500 if points is None else points,
            trajectory=trajectory, pad=pad, save=save, figure=figure, as_json=as_json,
            device="cpu" if device is None else device,
        )  # fmt: skip
        return
    _none_of(one, "one run of a learner on an MDP, and this is a suite")
    if out is None and os.path.isfile(Path(what) / "specification.json"):
        out = Path(what)  # a folder goes on by itself
    if dry_run and device == "gpu":
        raise InputError("--dry-run tries runs on the CPU, and does not know a GPU's times: leave out --device")
    if dry_run:
        from ravi.lab.experiments.forecast import forecast

        with progress_bar(f"trying {what}") as progress:
            told = forecast(
                what, out, seeds=seeds, workers=workers, shard=shard, adopt=adopt, retry=retry,
                mix_versions=mix_versions, allow_code=allow_code, progress=progress,
            )  # fmt: skip
        say(_json(told.json()) if as_json else told.text())
        return
    if out is None:
        raise InputError("a suite needs --out FOLDER for its results (one run of a learner is ravi run MDP LEARNER)")
    from ravi.lab.experiments.runner import run_suite, status_bar

    last: list[Status] = []
    with status_bar(None, what, patience=0) as show:

        def tell(status: Status) -> None:
            last[:] = [status]
            if show is not None:
                show(status)

        made = run_suite(
            what, out, seeds=seeds, workers=workers, cluster=cluster, shard=shard, retry=retry, adopt=adopt,
            mix_versions=mix_versions, slice=30.0 if slice is None else slice, allow_code=allow_code, progress=tell,
            device=device, command=["ravi", *sys.argv[1:]],
        )  # fmt: skip
    stopped = bool(last) and last[0].stopping
    _print_results(made, as_json, stopped=stopped)
    if stopped:
        say("ravi: stopped; the same command goes on", error=True)
        raise typer.Exit(130)
    failed = len(made.runs) - made.runs["failure"].null_count
    if failed:
        say(f"ravi: {failed} runs failed; ravi results {out} --sql 'select * from failures' says how", error=True)
    for line in made.unfinished():
        say(f"ravi: {line}; the same command tries them again", error=True)
    raise typer.Exit(1 if failed else 0)


def suites(as_json: JSON = False) -> None:
    """List the suites that come with the library."""
    from ravi.lab.experiments.schedule import plan
    from ravi.lab.experiments.suite_file.specification import shipped

    found = shipped()
    runs = {name: plan.asked(suite, plan.facts_of(suite, {}), {}).runs for name, suite in found.items()}
    if as_json:
        told = {
            name: {"title": suite.title, "sections": [section.name for section in suite.sections], "runs": runs[name]}
            for name, suite in found.items()
        }
        say(json.dumps(told))
        return
    for name, suite in found.items():
        tuned = any("tuned" in section.columns for section in suite.sections)
        counted = f"{runs[name]:,} runs{', and their tuning' if tuned else ''}"
        say(f"{name:10} {suite.title}\n{'':10} {len(suite.sections)} sections, {counted}")
    say("\nravi run NAME --dry-run tells what one would run; ravi run NAME --out FOLDER runs it.")


def results(
    folder: Annotated[Path, typer.Argument(help="A folder of results; others may be writing into it.")],
    sql: Annotated[
        str | None, typer.Option(help="A query over the views results, runs, entries, tuning, failures.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Print what a folder holds: mean regret by learner, or the answer to a query."""
    from ravi.lab.experiments.results import results

    found = results(folder)
    if sql is None:
        _print_results(found, as_json)
        return
    answer = found.sql(sql)
    names = answer.column_names
    columns = [_values(name, column) for name, column in zip(names, answer.columns, strict=True)]
    if as_json:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"--sql: two columns are called {twice}; name them apart (AS)")
        say(_json({"rows": [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]}))
        return
    _print_table(list(map(printable, names)), [list(map(_cell, row)) for row in zip(*columns, strict=True)])


def reproduce(
    folder: Annotated[Path, typer.Argument(help="A folder of results.")],
    runs: Annotated[int | None, typer.Option(help="So many of its runs only, chosen by their ids.")] = None,
    workers: WORKERS = None,
    cluster: CLUSTER = None,
    allow_code: ALLOW_CODE = False,
    as_json: JSON = False,
) -> None:
    """Run again what a folder holds, and compare the bits. Exit status 0 when all are equal."""
    from ravi.lab.experiments.reproduce import reproduce
    from ravi.lab.experiments.runner import status_bar

    with status_bar(None, f"reproducing {folder}", patience=0) as show:
        report = reproduce(folder, runs=runs, workers=workers, cluster=cluster, allow_code=allow_code, progress=show)
    say(_json(report.json()) if as_json else report.text())
    raise typer.Exit(report.status)


def _none_of(options: dict[str, Any], meaning: str) -> None:
    given = [name for name, value in options.items() if value not in (None, False)]
    if given:
        raise InputError(f"{given[0]} is for {meaning}")


def _json(told: Any) -> str:
    """One JSON object; what is not a number is null there."""
    from decimal import Decimal
    from math import isfinite

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): plain(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        return None if isinstance(value, float) and not isfinite(value) else value

    return json.dumps(plain(told), default=str, allow_nan=False)


def _print_results(made: Results, as_json: bool, **more: Any) -> None:
    if not as_json:
        with suppress(InputError):  # its specification cannot be read: the rest says so
            say(f"{made.summary()}\n")
        say(repr(made))
        return
    rows = made.sql(
        'SELECT section, mdp, steps, label, "column", configured, count(regret) AS seeds, count(failure) AS failed, '
        "avg(regret) AS regret, stddev_samp(regret) / sqrt(count(regret)) AS standard_error, "
        "sum(seconds) AS seconds FROM results GROUP BY ALL ORDER BY ALL"
    ).to_pylist()
    told = {"folder": str(made.folder), "suite": made.suite.name} | made.counts._asdict() | more
    told |= {"unfinished": made.unfinished()}
    told |= {"troubles": [str(one) for one in made.troubles], "conflicts": [str(one) for one in made.conflicts]}
    say(_json(told | {"results": rows}))


def _values(name: str, column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError) as error:
        advice = f'CAST("{name}" AS VARCHAR) is a text'
        raise InputError(f"--sql: {name} holds a date or a time that Python has not ({error}): {advice}") from None


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else printable(str(value))


def _print_table(names: list[str], rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in [names, *rows]:
        say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
