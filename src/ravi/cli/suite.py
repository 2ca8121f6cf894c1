"""The commands about suites and folders of results: `demo`, `suite run`, `suites`, `results`, `reproduce`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.cli import completion
from ravi.cli.common import ALLOW_CODE, JSON, progress_bar, say, say_json
from ravi.display.printable import columns, counted, printable, room
from ravi.validation import InputError, require_extra

if TYPE_CHECKING:
    from ravi.lab.experiments.driver import Status
    from ravi.lab.experiments.results import Results

WORKERS = Annotated[int | None, typer.Option(help="The number of worker processes; by default one per core.")]


def _with_ray(address: str | None) -> str | None:
    if address is not None:
        require_extra("--cluster needs", "ray", "ray", "pyarrow", "duckdb")
    return address


CLUSTER = Annotated[str | None, typer.Option(help="Use a Ray cluster at this address, or local.", callback=_with_ray)]


def demo(
    *,
    out: Path = Path("demo"),
    steps: str = "1e5",
    seeds: int = 32,
) -> None:
    """Compare RAVI-UCB, tabular and mixture, with other learners on RiverSwim: a table, a figure and a page.

    Parameters
    ----------
    out
        The folder for the results, the figure and the page.
    steps
        T, the number of steps of each seed.
    seeds
        The number of seeds.
    """
    from ravi import validation
    from ravi.lab import demo
    from ravi.lab.experiments.runner import status_bar

    with status_bar(None, "demo", patience=0) as show:
        say(demo.demo(out, validation.steps(steps), validation.whole(seeds, "seeds"), show))


def run(
    suite: Annotated[str, typer.Argument(autocompletion=completion.suites)],
    *,
    out: Path | None = None,
    dry_run: bool = False,
    seeds: str | None = None,
    workers: WORKERS = None,
    cluster: CLUSTER = None,
    shard: str | None = None,
    retry: bool = False,
    adopt: bool = False,
    mix_versions: bool = False,
    slice: float = 30.0,
    device: str | None = None,
    leave: bool = False,
    allow_code: bool = False,
    as_json: JSON = False,
) -> None:
    """Run a suite into a folder; the same command continues where it stopped.

    Regret is exact. Ctrl-C stops cleanly. Exit status 1 if runs failed, 130 if stopped.

    Parameters
    ----------
    suite
        A suite (see ravi suites), a TOML file, or a folder of results.
    out
        The folder for the results; needed unless SUITE is such a folder.
    dry_run
        Show what would run, and estimate how long it would take.
    seeds
        In place of the suite's: a number, counted from 0, or a list such as 5-8 or 1,7,9.
    shard
        i/n: run the i-th of n parts of the work, for array jobs.
    retry
        Run failed runs again.
    adopt
        Accept a changed suite for an existing folder.
    mix_versions
        Continue with other versions than the folder was made with.
    slice
        Seconds between checkpoints of a long run.
    device
        cpu or gpu, in place of what the suite says.
    leave
        End when all that is left is being done by others at work on the folder.
    allow_code
        Allow importing the modules that a folder of results names; they can run any code.
    """
    if out is None and os.path.isfile(Path(suite) / "specification.json"):
        out = Path(suite)  # a folder goes on by itself
    if dry_run and device == "gpu":
        raise InputError("--dry-run tries runs on the CPU, and does not know a GPU's times: leave out --device")
    if dry_run:
        from ravi.lab.experiments.forecast import forecast

        with progress_bar(f"trying {suite}") as progress:
            plan = forecast(
                suite, out, seeds=seeds, workers=workers, shard=shard, adopt=adopt, retry=retry,
                mix_versions=mix_versions, allow_code=allow_code, progress=progress,
            )  # fmt: skip
        say_json(plan.json()) if as_json else say(plan.text(room()))
        return
    if out is None:
        from ravi import ids
        from ravi.lab.experiments.reading import specify
        from ravi.lab.suites import SUITES

        if suite not in SUITES and not suite.endswith(".toml") and ids.names_an_mdp(suite):
            if ids.is_file(suite):
                ids.mdp(suite)  # what is wrong with it is told first
            name = quote(suite)
            advice = f"ravi run {name} psrl runs PSRL there, and ravi advise {name} says which learners fit"
            raise InputError(f"{suite} is an MDP, and a run needs a learner too: {advice}")
        specify(suite, build=False)  # a suite that is not there is told first
        raise InputError("a suite needs --out FOLDER for its results (one run of a learner is ravi run MDP LEARNER)")
    from ravi.lab.experiments.runner import run_suite, status_bar

    last: list[Status] = []
    with status_bar(None, suite, patience=0) as show:

        def tell(status: Status) -> None:
            last[:] = [status]
            if show is not None:
                show(status)

        found = run_suite(
            suite, out, seeds=seeds, workers=workers, cluster=cluster, shard=shard, retry=retry, adopt=adopt,
            mix_versions=mix_versions, slice=slice, allow_code=allow_code, progress=tell,
            device=device, leave=leave, command=["ravi", *sys.argv[1:]],
        )  # fmt: skip
    stopped = bool(last) and last[0].stopping
    _print_results(found, as_json, stopped=stopped)
    if stopped:
        say("ravi: stopped; the same command goes on", error=True)
        raise typer.Exit(130)
    failed = len(found.runs) - found.runs["failure"].null_count
    if failed:
        say(
            f"ravi: {counted(failed, 'run')} failed; ravi results {out} --sql 'select * from failures' says how",
            error=True,
        )
    for line in found.unfinished():
        say(f"ravi: {line}; the same command tries them again", error=True)
    raise typer.Exit(1 if failed else 0)


def submit(
    suite: Annotated[str, typer.Argument(autocompletion=completion.suites)],
    *,
    out: Path,
    array: int,
    time: str,
    partition: str | None = None,
    cpus: int = 1,
    sbatch: str = "",
    seeds: str | None = None,
    allow_code: bool = False,
    dry_run: bool = False,
) -> None:
    """Submit a suite to Slurm: an array job whose tasks share the folder, and a report job that depends on it.

    Prints both scripts. A task that reaches its time limit stops in good order and is queued again.

    Parameters
    ----------
    suite
        A suite (see ravi suites), a TOML file, or a folder of results.
    out
        The folder for the results, on a disk that all nodes share.
    array
        The number of tasks.
    time
        The time limit of a task, such as 4:00:00.
    partition
        The partition of the jobs.
    cpus
        The number of cores, and of workers, of a task.
    sbatch
        Further options of sbatch, such as "--account=mine --mem-per-cpu=2G".
    seeds
        In place of the suite's: a number, counted from 0, or a list such as 5-8 or 1,7,9.
    allow_code
        Allow importing the modules that a folder of results names; they can run any code.
    dry_run
        Print the scripts; write and submit nothing.
    """
    from ravi.lab.experiments.slurm import submit

    say(
        submit(
            suite, out, array=array, time=time, partition=partition, cpus=cpus, options=sbatch.split(), seeds=seeds,
            allow_code=allow_code, dry_run=dry_run,
        ).text(),
        whole=True,
    )  # fmt: skip


def suites(
    *,
    as_json: JSON = False,
) -> None:
    """List the suites that come with the library."""
    from ravi.lab.experiments import plan
    from ravi.lab.experiments.agenda import Agenda, Shard
    from ravi.lab.experiments.forecast import runs_of
    from ravi.lab.experiments.reading import shipped

    listing: dict[str, Any] = {}
    for name, suite in shipped().items():
        sections = [section.name for section in suite.sections]
        listing[name] = {"title": suite.title, "sections": sections, "runs": None, "tuning": None}
        try:
            facts = plan.facts_of(suite, {})
            known, waiting = plan.asked(plan.planned(suite, facts, {}))
            runs = len(known) + waiting
            every = Agenda(suite, facts, Shard(), keep=lambda *_: None).total
            listing[name] |= {"runs": runs, "tuning": every - runs}
            counts = runs_of(runs, every)
        except InputError as error:  # an extra that its MDPs need is missing
            counts = str(error)
        if not as_json:
            say(f"{name:9}  {suite.title}\n{'':9}  {counted(len(sections), 'section')}, {counts}")
    if as_json:
        say_json(listing)
        return
    say("\nravi suite run NAME --dry-run shows what a suite would run; with --out FOLDER it is run.")


def results(
    folder: Path,
    *,
    sql: str | None = None,
    as_json: JSON = False,
) -> None:
    """Print the results in a folder: the mean regret of each learner, or the result of a query.

    Parameters
    ----------
    folder
        A folder of results; its suite may still be running.
    sql
        A SQL query over the views results, runs, all_runs, entries, tuning, failures.
    """
    from ravi.lab.experiments.results import results

    found = results(folder)
    if sql is None:
        _print_results(found, as_json)
        return
    answer = found.sql(sql)
    names = answer.column_names
    cells = [_values(name, column) for name, column in zip(names, answer.columns, strict=True)]
    if as_json:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"--sql: two columns are called {twice}; name them apart (AS)")
        say_json({"rows": [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]})
        return
    rows = [list(map(printable, names)), *(list(map(_cell, row)) for row in zip(*cells, strict=True))]
    say("\n".join(columns(rows, "l" * len(names), room(), lead=0)), whole=True)


def reproduce(
    folder: Path,
    *,
    runs: int | None = None,
    workers: WORKERS = None,
    cluster: CLUSTER = None,
    allow_code: ALLOW_CODE = False,
    as_json: JSON = False,
) -> None:
    """Repeat the runs of a folder and compare them bit for bit. Exit status 0 if all are equal.

    Parameters
    ----------
    folder
        A folder of results.
    runs
        Repeat only this many of its runs, chosen by their ids.
    """
    from ravi.lab.experiments.reproduce import reproduce
    from ravi.lab.experiments.runner import status_bar

    with status_bar(None, f"reproducing {folder}", patience=0) as show:
        report = reproduce(folder, runs=runs, workers=workers, cluster=cluster, allow_code=allow_code, progress=show)
    say_json(report.json()) if as_json else say(report.text())
    raise typer.Exit(report.status)


def _print_results(found: Results, as_json: bool, **more: Any) -> None:
    if not as_json:
        with suppress(InputError):  # its specification cannot be read: the rest says so
            say(f"{found.summary(room())}\n")
        say(found)
        return
    rows = found.sql(
        'SELECT section, mdp, steps, label, "column", configured, count(regret) AS seeds, count(failure) AS failed, '
        "avg(regret) AS regret, stddev_samp(regret) / sqrt(count(regret)) AS standard_error, "
        "sum(seconds) AS seconds FROM results GROUP BY ALL ORDER BY ALL"
    ).to_pylist()
    facts = {"folder": str(found.folder), "suite": found.suite.name} | found.counts._asdict() | more
    facts |= {"unfinished": found.unfinished()}
    facts |= {"troubles": [str(one) for one in found.troubles], "conflicts": [str(one) for one in found.conflicts]}
    say_json(facts | {"results": rows})


def _values(name: str, column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError) as error:
        advice = f'CAST("{name}" AS VARCHAR) is a text'
        raise InputError(
            f"--sql: {name} holds a date or a time that Python cannot represent ({error}): {advice}"
        ) from None


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else printable(str(value))
