"""What can be typed? The command `ravi`: demo, run, solve, list. It parses and prints; the library does the work."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi import __version__
from ravi.checks import InputError

if TYPE_CHECKING:
    from ravi.engine import Progress
    from ravi.runs import Run

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimistic planning and exploration in infinite-horizon discounted MDPs, with exact regret.",
)

MDP = Annotated[str, typer.Argument(help="An MDP: an id such as riverswim/6 or garnet/100,4,4,seed=3, or a file.")]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def main() -> None:
    """The entry point: bad input is one line and exit status 2, Ctrl-C is 130."""
    try:
        app(prog_name="ravi")
    except InputError as error:
        print(f"ravi: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("ravi: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ravi {__version__}")
        raise typer.Exit


@app.callback()
def ravi(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimistic planning and exploration in infinite-horizon discounted MDPs, with exact regret."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for the figure.")] = Path("demo"),
    steps: Annotated[str, typer.Option(help="T.")] = "1e5",
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 32,
) -> None:
    """RAVI-UCB, tabular and mixture, against the uniform policy and the optimum on RiverSwim."""
    from ravi import checks, demo

    with _progress("demo") as progress:
        print(demo.demo(out, checks.steps(steps), seeds, progress))


@app.command()
def run(
    mdp: MDP,
    learner: Annotated[str, typer.Argument(help="A learner: an id such as ravi-ucb,scale=0.03 or ravi-ucb/mixture.")],
    steps: Annotated[str, typer.Option(help="T, the number of steps of each seed, such as 100000 or 1e5.")] = "1e5",
    seeds: Annotated[str, typer.Option(help="How many seeds, from 0 on; or which: 5-8 or 1,7,9.")] = "16",
    points: Annotated[int, typer.Option(help="At how many times the curves are kept.")] = 500,
    trajectory: Annotated[
        bool, typer.Option(help="Record the trajectory regret of the earlier literature too.")
    ] = False,
    pad: Annotated[bool, typer.Option(help="Play the last epoch to its end, without learning (T+).")] = False,
    save: Annotated[
        Path | None, typer.Option(help="Keep the run in this file; if it holds a stopped run, go on with that.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the regret curve into this file (png, pdf, svg).")] = None,
    as_json: JSON = False,
) -> None:
    """Run a learner on an MDP and print its exact regret. Ctrl-C stops, prints and saves what there is."""
    from ravi import checks, engine, ids
    from ravi.runs import Run

    T, chosen = checks.steps(steps), _seeds(seeds)
    world = ids.mdp(mdp)
    agent = ids.learner(learner, world, T)
    if figure is not None:
        from ravi.report.figures import pyplot

        pyplot()  # a missing extra is told before the work, not after
    stopped = Run.load(save) if save is not None and save.exists() else None
    wanted = ["trajectory"] if trajectory else []
    if stopped is not None and (stopped.steps, stopped.seeds) != (T, chosen):
        raise InputError(
            f"{save} holds a run of {stopped.steps} steps on {len(stopped.seeds)} seeds: another run than this"
        )
    if stopped is not None and [stopped.options[key] for key in ("record", "points", "pad")] != [wanted, points, pad]:
        raise InputError(f"{save} holds a run with other --trajectory, --points or --pad than these")
    if save is not None and not save.parent.is_dir():
        raise InputError(f"cannot write {save}: there is no folder {save.parent}")  # told before the work, not after
    with _progress(f"{agent.name} on {world.name}") as progress:
        engine.run(agent, world, 1, 1, record=wanted)  # compiles, so that the speed is that of the run
        try:
            if stopped is not None:
                made = engine.resume(stopped, agent, world, progress=progress)
            else:
                made = engine.run(
                    agent, world, T, chosen, record=wanted, points=points, pad=pad, keep_epochs=save is not None,
                    progress=progress,
                )  # fmt: skip
            interrupted = False
        except engine.Stopped as stop:
            made, interrupted = stop.run, True
    if save is not None:
        made.save(save)
    print(json.dumps(_summary(made, world)) if as_json else f"{made!r}{_against_uniform(made, world)}")
    if figure is not None:
        from ravi.report.figures import regret_figure

        regret_figure({made.learner: made}, figure, title=world.name)
    if interrupted:
        where = f"; the same command goes on from {save}" if save is not None else ""
        print(f"ravi: stopped before the end{where}", file=sys.stderr)
        raise typer.Exit(130)


@app.command()
def solve(
    mdp: MDP,
    method: Annotated[
        str, typer.Option(help="modified_policy_iteration, policy_iteration, value_iteration or linear_program.")
    ] = "modified_policy_iteration",
    tol: Annotated[float, typer.Option(help="The accuracy of V* that is asked for.")] = 1e-10,
    save: Annotated[Path | None, typer.Option(help="Keep the MDP itself in this file.")] = None,
    as_json: JSON = False,
) -> None:
    """Solve an MDP exactly: the optimum, an optimal policy, and a certified bound on the error."""
    import time

    from ravi import ids
    from ravi.planning.solver import solve

    world = ids.mdp(mdp)
    if save is not None:
        world.save(save)
    began = time.perf_counter()
    with _progress(f"solving {world.name}"):
        solution = solve(world, method=method, tol=tol)
    seconds = time.perf_counter() - began
    uniform = _uniform(world)
    actions = solution.policy.argmax(-1)
    if as_json:
        found = {
            "mdp": world.name, "discount": world.discount, "states": world.states, "actions": world.actions,
            "optimum": solution.optimum, "optimum_error": solution.optimum_error, "uniform": uniform,
            "value_error": solution.error, "policy_error": solution.policy_error, "sweeps": solution.sweeps,
            "method": solution.method, "seconds": seconds, "value": solution.V.tolist(), "policy": actions.tolist(),
        }  # fmt: skip
        print(json.dumps(found))
        return
    print(f"{world!r}")
    print(f"  optimum rho*    {solution.optimum:.12g}  (error at most {solution.optimum_error:.1e})")
    print(f"  uniform policy  {uniform:.12g}")
    print(f"  value           V* to within {solution.error:.1e}; the policy loses at most {solution.policy_error:.1e}")
    print(f"  found by        {solution.method}, {solution.sweeps} sweeps, {seconds:.3f} s")
    if world.states <= 20:
        print("  state  action  V*")
        for x in range(world.states):
            print(f"  {x:5d}  {actions[x]:6d}  {solution.V[x]:.6f}")


@app.command()
def verify(
    mdp: Annotated[str | None, typer.Argument(help="An MDP; without one, small tabular and mixture runs.")] = None,
    learner: Annotated[str, typer.Argument(help="A learner of RAVI-UCB's form.")] = "ravi-ucb",
    steps: Annotated[str, typer.Option(help="T, the number of steps of each seed.")] = "2e4",
    seeds: Annotated[str, typer.Option(help="How many seeds, from 0 on; or which: 5-8 or 1,7,9.")] = "16",
    only: Annotated[str, typer.Option(help="These claims only: A1,A15.")] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Print violated claims only.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file as JSON.")] = None,
    html_file: Annotated[Path | None, typer.Option("--html", help="Write the table to this file as a page.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the ladder of bounds into this file.")] = None,
) -> None:
    """Hold every claim of the paper against a run. Exit status 0 when all hold, 1 when one is violated."""
    from ravi.verify import DEFAULT, verify
    from ravi.verify.ladder import ladder_figure

    chosen = [name.strip() for name in only.split(",") if name.strip()]
    cases = [(mdp, learner, steps)] if mdp is not None else list(DEFAULT)
    if mdp is None and (html_file is not None or figure is not None):
        raise InputError("--html and --figure are of one run: name an MDP")
    reports = []
    for world, agent, length in cases:
        with _progress(f"verifying {agent} on {world}") as progress:
            reports.append(verify(agent, world, _steps(length), _seeds(seeds), only=chosen, progress=progress))
        print(reports[-1].text(failed=failed) + "\n")
    if json_file is not None:
        found = [report.json() for report in reports]
        _written(json_file, json.dumps(found[0] if mdp is not None else found, indent=1))
    if html_file is not None:
        _written(html_file, reports[0].html())
    if figure is not None:
        ladder_figure(reports[0].ladder, str(figure))
    raise typer.Exit(max(report.status for report in reports))


def _written(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _steps(text: Any) -> int:
    from ravi import checks

    return checks.steps(text)


@app.command(name="list")
def list_(as_json: JSON = False) -> None:
    """List the ids of all MDPs and learners, with their options."""
    import inspect

    from ravi import ids
    from ravi.mdps import MDPS

    def shown(options: dict[str, Any]) -> dict[str, Any]:
        return {name: None if value is inspect.Parameter.empty else value for name, value in options.items()}

    mdps = {
        name: {"summary": _first_line(builder), "options": shown(ids.options_of(builder))}
        for name, builder in MDPS.items()
    }
    learners = {
        name: {"summary": known.summary, "options": shown(ids.options_of(ids.builder_of(known), skip=2))}
        for name, known in ids.LEARNERS.items()
    }
    if as_json:
        print(json.dumps({"mdps": mdps, "learners": learners}))
        return
    tables: dict[str, dict[str, dict[str, Any]]] = {"MDPs": mdps, "Learners": learners}
    for title, table in tables.items():
        print(title)
        for name, entry in table.items():
            options = ", ".join(k if v is None else f"{k}={v}" for k, v in entry["options"].items())
            print(f"  {name:18} {entry['summary']}\n  {'':18} {options or 'no options'}")


def _first_line(builder: Any) -> str:
    return (builder.__doc__ or "").strip().splitlines()[0]


def _seeds(text: str) -> list[int]:
    """`64` is 0 to 63; `5-8` is 5, 6, 7, 8; `1,7,9` are these."""
    from ravi import checks

    most = 10**6
    if "," not in text and "-" not in text:
        return list(range(checks.whole(text, "--seeds", 1, most)))
    chosen: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first = checks.whole(low, "--seeds", 0)
        chosen += range(first, (checks.whole(high, "--seeds", first, first + most) if dash else first) + 1)
    return chosen


def _uniform(world: Any) -> float:
    import numpy as np

    from ravi.planning.evaluation import return_of

    return float(return_of(world, np.full(world.rewards.shape, 1 / world.actions)))


def _against_uniform(made: Run, world: Any) -> str:
    would = float(made.plays.mean()) * ((made.optimum or 0.0) - _uniform(world))
    share = f", of which this is {made.regret.mean() / would:.1%}" if would > 1e-6 else ""
    return f"\n  uniform policy   would have had regret {would:,.2f}{share}"


def _summary(made: Run, world: Any) -> dict[str, Any]:
    """What `--json` prints: numbers, no curves."""
    n = len(made.seeds)
    more = {}
    if "trajectory_regret" in made.results:
        more["trajectory_regret"] = float(made.results["trajectory_regret_total"].mean())
        more["trajectory_regret_error"] = float(made.results["trajectory_regret_error"].mean())
    if made.options["pad"]:
        more["padding"] = made.padding.tolist()
    return {
        "mdp": made.mdp,
        "learner": made.learner,
        "discount": made.discount,
        "steps": made.steps,
        "seeds": made.seeds,
        "complete": made.complete,
        "optimum": made.optimum,
        "optimum_error": made.optimum_error,
        "uniform": _uniform(world),
        "regret": float(made.regret.mean()),
        "regret_standard_error": float(made.regret.std(ddof=1) / n**0.5) if n > 1 else None,
        "regret_error": float(made.regret_error.mean()),
        "regret_by_seed": made.regret.tolist(),
        "reward": float(made.results["reward_total"].mean()),
        "gap": float(made.gap.mean()),
        "plays": made.plays.tolist(),
        "seconds": made.seconds,
        "steps_per_second": made.steps_per_second,
        "settings": made.settings,
        "versions": made.versions,
        **more,
    }


@contextmanager
def _progress(label: str) -> Iterator[Progress | None]:
    """A bar on the terminal while the work lasts; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)  # no total yet: functions are loaded or compiled
        yield lambda done, total: bar.update(task, completed=done, total=total)


if __name__ == "__main__":
    main()
