"""The commands about one run or one MDP: `run`, `solve`, `verify`."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.cli import completion
from ravi.cli.common import (
    CRITERION,
    DISCOUNT,
    JSON,
    SEEDS,
    SHORT,
    allow_typed_modules,
    progress_bar,
    say,
    say_json,
    stopped_early,
    with_options,
)  # fmt: skip
from ravi.display.printable import columns, with_rows
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.importers.imported import Imported
    from ravi.runtime.result import Run

MDP = Annotated[
    str,
    typer.Argument(
        help="An MDP: an id such as riverswim/6 or garnet/100,4,4,seed=3, or a file.", autocompletion=completion.mdps
    ),
]


def run(
    mdp: MDP,
    learner: Annotated[str, typer.Argument(autocompletion=completion.learners)],
    *,
    steps: str = "1e5",
    seeds: Annotated[str, SEEDS] = "16",
    points: int = 500,
    trajectory: bool = False,
    pad: bool = False,
    save: Path | None = None,
    figure: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    as_json: JSON = False,
) -> None:
    """Run a learner on an MDP and print its exact regret. Ctrl-C stops the run, prints and saves it.

    For a suite of runs use ravi suite run; ravi run SUITE is the same.

    Parameters
    ----------
    learner
        A learner's id, such as ravi-ucb,scale=0.03 (see ravi list).
    steps
        T, the number of steps of each seed.
    points
        The number of points of each curve.
    trajectory
        Also record the trajectory regret of the earlier literature.
    pad
        Go on after T until the last epoch ends, without learning (T+).
    save
        Save the run to this file; if it holds a stopped run, continue it.
    figure
        Draw the regret into this file (png, pdf, svg).
    device
        cpu or gpu.
    threads
        The number of threads; all cores by default.
    """
    from ravi import ids, validation
    from ravi._jit.functions import effort, sparing
    from ravi.runtime import api as engine
    from ravi.runtime import archive
    from ravi.runtime.result import Run
    from ravi.runtime.world import Tabular, find_world

    T, chosen = validation.steps(steps), validation.seeds(seeds, "--seeds")
    mdp = with_options(mdp, discount, criterion)
    allow_typed_modules(mdp, learner)
    model = None if mdp.startswith(ids.LARGE) else ids.model_of_file(mdp)
    world = find_world(mdp if model is None else model.mdp)
    with sparing():
        agent = world.learner(learner, T)
    if save is not None:
        archive.check_place(save)  # told before the work, not after
    if figure is not None and world.kind == "large":
        raise InputError(f"--figure draws the regret, and none is computed in the large world {world.name}")
    _check_figure(figure)
    stopped = Run.load(save) if save is not None and save.exists() else None
    wanted = ["trajectory"] if trajectory else []
    if stopped is not None and (stopped.steps, stopped.seeds) != (T, chosen):
        raise InputError(
            f"{save} holds a run of {stopped.steps} steps on {len(stopped.seeds)} seeds, which is another run"
        )
    if stopped is not None and [stopped.options[key] for key in ("record", "points", "pad")] != [wanted, points, pad]:
        raise InputError(f"{save} holds a run with another --trajectory, --points or --pad")
    short = T * len(chosen) <= SHORT
    with progress_bar(f"{agent.name} on {world.name}") as progress, sparing(4.0) if short else nullcontext():
        if device == "gpu":  # whose kernels are compiled: the speed is that of the run
            engine.run(agent, world, 1, 1, record=wanted, device=device, progress=False)
        try:
            if stopped is not None:
                result = engine.resume(stopped, agent, world, progress=progress, device=device, threads=threads)
            else:
                result = engine.run(
                    agent, world, T, chosen, record=wanted, points=points, pad=pad, keep_epochs=save is not None,
                    progress=progress, device=device, threads=threads,
                )  # fmt: skip
            interrupted = False
        except engine.Stopped as stop:
            result, interrupted = stop.run, True
    if save is not None:
        result.save(save)
    uniform = _uniform(world.mdp, model) if isinstance(world, Tabular) and world.kind == "tabular" else None
    say_json(_summary(result, uniform)) if as_json else say(f"{result}{_against_uniform(result, uniform)}")
    if effort.interpreted > result.seconds / 2 and short and sys.stderr.isatty():
        say("ravi: a run so short is interpreted, not compiled; longer runs are faster", error=True)
    if figure is not None:
        from ravi.lab.report.curves import regret_figure

        regret_figure({result.learner: result}, figure, title=world.name)
    if interrupted:
        raise stopped_early(save)


def compare(
    mdp: MDP,
    learners: Annotated[list[str], typer.Argument(autocompletion=completion.learners)],
    *,
    steps: str = "1e5",
    seeds: Annotated[str, SEEDS] = "16",
    level: float = 0.95,
    figure: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    as_json: JSON = False,
) -> None:
    """Compare learners on an MDP, on the same seeds: exact regret with intervals, upper quantiles, and who is behind.

    For many MDPs, tuning, or runs of hours use a suite: ravi suite run.

    Parameters
    ----------
    learners
        Ids of learners, such as psrl ravi-ucb,scale=0.03 (see ravi list).
    steps
        T, the number of steps of each seed.
    level
        The confidence level of the intervals.
    figure
        Draw the regret into this file (png, pdf, svg).
    device
        cpu or gpu.
    threads
        The number of threads; all cores by default.
    """
    from ravi import validation
    from ravi.comparison import compare

    mdp = with_options(mdp, discount, criterion)
    allow_typed_modules(mdp, *learners)
    _check_figure(figure)
    with progress_bar(f"comparing on {mdp}") as progress:
        found = compare(
            learners, mdp, validation.steps(steps), validation.seeds(seeds, "--seeds"), level=level, progress=progress,
            device=device, threads=threads,
        )  # fmt: skip
    say_json(found.json()) if as_json else say(found, whole=True)
    if figure is not None:
        from ravi.display.style import written

        written(found.plot().figure, figure)


def solve(
    mdp: MDP,
    *,
    method: str = "modified_policy_iteration",
    tol: float = 1e-10,
    device: str = "cpu",
    save: Path | None = None,
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    as_json: JSON = False,
) -> None:
    """Solve an MDP exactly: the optimum, an optimal policy, and a certified bound on the error.

    Parameters
    ----------
    method
        modified_policy_iteration, policy_iteration, value_iteration or linear_program.
    tol
        The required accuracy of V*.
    device
        cpu or gpu.
    save
        Save the MDP to this file.
    """
    import time

    from ravi._jit.functions import effort, sparing
    from ravi.planning.solver import solve

    model, world = _model(mdp, discount, criterion)
    if save is not None:
        world.save(save)
    with progress_bar(f"solving {world.name}"), sparing():
        began = time.perf_counter() - effort.seconds
        solution = solve(world, method=method, tol=tol, device=device)
        seconds = time.perf_counter() - effort.seconds - began  # without compiling
        uniform = _uniform(world, model) if world.discount < 1 else 0.0
    if world.discount == 1:
        if world.episode is None:
            _say_average(world, model, solution, as_json)
        else:
            _say_episodes(world, solution, as_json)
        return
    actions = (solution.policy if model is None else model.played(solution.policy)).argmax(-1)
    if as_json:
        found = {
            "mdp": world.name, "discount": world.discount, "states": world.states, "actions": world.actions,
            "optimum": solution.optimum, "optimum_error": solution.optimum_error, "uniform": uniform,
            "value_error": solution.error, "policy_error": solution.policy_error, "sweeps": solution.sweeps,
            "tolerance": solution.tol, "rounding": solution.rounding,
            "method": solution.method, "seconds": seconds, "value": solution.V.tolist(), "policy": actions.tolist(),
            "state_labels": None if model is None else model.states,
            "action_labels": None if model is None else model.actions,
            "units": world.units, "return_in_units": world.horizon * world.in_units(solution.optimum),
        }  # fmt: skip
        say_json(found)
        return
    rows = [("optimum rho*", f"{solution.optimum:.12g}  (error at most {solution.optimum_error:.1e})")]
    rows.append(("uniform policy", f"{uniform:.12g}"))
    if world.units != (0.0, 1.0):
        low, high = world.units
        start = world.horizon * world.in_units(solution.optimum)
        rows.append(("in its units", f"<nu_0, V*> = {start:.12g}  (rewards from {low:g} to {high:g})"))
    loses = f"V* to within {solution.error:.1e}; the policy loses at most {solution.policy_error:.1e}"
    rows += [("value", loses), *([("", solution.missed)] if solution.missed else [])]
    rows.append(("found by", f"{solution.method}, {solution.sweeps} sweeps, {seconds:.3f} s"))
    lines = _by_state(world, model, actions, solution.V) if world.states <= 20 else []
    say("\n".join([with_rows(f"{world!r}", rows), *lines]))


def _say_episodes(world: Any, solution: Any, as_json: bool) -> None:
    """What `ravi solve` says of episodes: values and actions by stage."""
    if as_json:
        names = ("optimum", "optimum_error", "policy_error")
        found = {"mdp": world.name, "episode": world.episode, **{name: getattr(solution, name) for name in names}}
        by_stage = {"value": solution.V.tolist(), "policy": solution.policy.argmax(-1).tolist(), "units": world.units}
        say_json(found | {"value_error": solution.error} | by_stage)
        return
    rows = [("optimum rho*", f"{solution.optimum:.12g} a step  (error at most {solution.optimum_error:.1e})")]
    rows.append(("an episode", f"<nu_0, V*> = {solution.value:.12g}  (error at most {solution.error:.1e})"))
    if world.units != (0.0, 1.0):
        rows.append(("in its units", f"{world.episode * world.in_units(solution.optimum):.12g} an episode"))
    rows.append(("the policy", f"loses at most {solution.policy_error:.1e} a step"))
    say(with_rows(f"{world!r}", rows))


def _say_average(world: Any, model: Imported | None, solution: Any, as_json: bool) -> None:
    """What `ravi solve` says of the average reward."""
    actions = (solution.policy if model is None else model.played(solution.policy)).argmax(-1).tolist()
    if as_json:
        found = {name: getattr(solution, name) for name in ("gain", "gain_error", "policy_error", "undetermined")}
        say_json({"mdp": world.name, **found, "bias": solution.bias.tolist(), "policy": actions, "units": world.units})
        return
    rows = [("gain g*", f"{solution.gain:.12g}  (error at most {solution.gain_error:.1e})")]
    if world.units != (0.0, 1.0):
        rows.append(("in its units", f"{world.in_units(solution.gain):.12g} a step"))
    rows.append(("the policy", f"earns at most {solution.policy_error:.1e} a step less"))
    lines = [f"  {solution.undetermined}"] if solution.undetermined else []
    lines += _by_state(world, model, actions, solution.bias) if world.states <= 20 else []
    say("\n".join([with_rows(f"{world!r}", rows), *lines]))


def hardness(
    mdp: MDP,
    *,
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    as_json: JSON = False,
) -> None:
    """How hard an MDP is to learn without resets: its diameter, the span of its bias, value norm, smallest gap."""
    from dataclasses import asdict

    from ravi._jit.functions import sparing
    from ravi.planning.hardness import hardness

    _, world = _model(mdp, discount, criterion)
    with progress_bar(f"solving {world.name}"), sparing():
        found = hardness(world)
    if as_json:
        low, high = found.smallest_gap
        say_json(asdict(found) | {"smallest_gap": low, "smallest_gap_at_most": high})
        return
    say(found)


def verify(
    mdp: Annotated[str | None, typer.Argument(autocompletion=completion.mdps)] = None,
    learner: Annotated[str, typer.Argument(autocompletion=completion.learners)] = "ravi-ucb",
    *,
    steps: str | None = None,
    seeds: Annotated[str, SEEDS] = "16",
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    variants: bool = False,
    only: str = "",
    failed: bool = False,
    json_file: Annotated[Path | None, typer.Option("--json")] = None,
    html_file: Annotated[Path | None, typer.Option("--html")] = None,
    figure: Path | None = None,
) -> None:
    """Check every claim of the paper on a run.

    Exit status 0 if all that are measured hold, 1 if one is violated, 2 if none is measured.

    Parameters
    ----------
    mdp
        An MDP; by default three small tabular and mixture runs.
    learner
        ravi-ucb, ravi-ucb+, ravi-kl or a variant.
    steps
        T, the number of steps of each seed. Default 2e4.
    variants
        Check small runs of every variant, one line for each.
    only
        Only these claims, such as A1,A15.
    failed
        Print violated claims only.
    json_file
        Write all results to this file as JSON.
    html_file
        Write the table to this file as HTML.
    figure
        Draw the bounds against the regret into this file.
    """
    from ravi import validation
    from ravi.runtime import archive
    from ravi.verify import DEFAULT, EVERY, form_of, verify, wanted

    mdp = mdp if mdp is None else with_options(mdp, discount, criterion)
    allow_typed_modules(mdp, learner)
    chosen = [name.strip() for name in only.split(",") if name.strip()]
    if variants and mdp is not None:
        raise InputError(f"--variants chooses its own MDPs: leave out {mdp}, or --variants")
    if mdp is None and any(one is not None for one in (html_file, figure, steps, discount, criterion)):
        raise InputError("--html, --figure, --steps, --discount and --criterion are of one run: name an MDP")
    for path in filter(None, (json_file, html_file)):
        archive.check_place(path)  # told before the work, not after
    _check_figure(figure)
    ours = [
        (world, agent, length)
        for world, agent, length in (EVERY if variants else DEFAULT)
        if mdp is None and (not chosen or any(wanted(claim, chosen) for claim in form_of(agent, world, length).claims))
    ]
    if mdp is None and not ours:
        more = "" if variants else ", or --variants"
        raise InputError(f"{', '.join(chosen)} is about none of these runs: name an MDP and a learner{more}")
    cases = ours if mdp is None else [(mdp, learner, validation.steps("2e4" if steps is None else steps))]
    reports = []
    for world, agent, length in cases:
        with progress_bar(f"verifying {agent} on {world}") as progress:
            keys = validation.seeds(seeds, "--seeds")
            reports.append(verify(agent, world, length, keys, only=chosen, progress=progress))
        last = reports[-1]
        if variants:
            say(f"{agent} on {world}: {last.summary()}")
        if not variants or last.failed():
            say(last.text(failed=failed or variants) + "\n")
    if json_file is not None:
        found = [report.json() for report in reports]
        archive.write_text_file(json_file, json.dumps(found[0] if mdp is not None else found, indent=1))
    if html_file is not None:
        archive.write_text_file(html_file, reports[0].html())
    if figure is not None:
        from ravi.lab.report.curves import ladder_figure

        ladder_figure(reports[0].ladder, str(figure))
    statuses = {report.status for report in reports}
    raise typer.Exit(1 if 1 in statuses else min(statuses))


def _check_figure(figure: Path | None) -> None:
    """Whether a figure can be drawn into a file; told before the work, not after."""
    if figure is not None:
        from ravi.display.style import library
        from ravi.runtime import archive

        archive.check_place(figure, "the figure")
        library()


def _model(mdp: str, discount: float | None, criterion: str | None) -> tuple[Imported | None, Any]:
    """The MDP of an id or a file; with its labels, where the file is of another format."""
    from ravi import ids

    mdp = with_options(mdp, discount, criterion)
    allow_typed_modules(mdp)
    model = ids.model_of_file(mdp)
    return model, ids.mdp(mdp) if model is None else model.mdp


def _by_state(world: Any, model: Imported | None, actions: Any, V: Any) -> list[str]:
    """A table of states, what is played there, and its value or bias; where they have no names, by their numbers."""
    states = range(world.states) if model is None or model.states is None else model.states
    names = actions if model is None or model.actions is None else [model.actions[a] for a in actions]
    own, what = world.units != (0.0, 1.0) and world.discount < 1, "V*" if world.discount < 1 else "h*"
    rows = [("state", "action", f"{what}{'        in its units' if own else ''}")]
    for state, action, value in zip(states, names, V, strict=True):
        more = f"  {world.horizon * world.in_units((1 - world.discount) * value):.6f}" if own else ""
        rows.append((str(state), str(action), f"{value:.6f}{more}"))
    return [f"  {line}" for line in columns(rows, "rrl")]


def _uniform(world: Any, model: Imported | None) -> float:
    """The return of the policy that is uniform over the actions that a state has; a model says where they are fewer."""
    import numpy as np

    from ravi._jit.functions import sparing
    from ravi.planning.evaluation import return_of

    own = np.ones(world.rewards.shape) if model is None else model.stands_for == np.arange(world.actions)
    with sparing():
        return float(return_of(world, own / own.sum(-1, keepdims=True)))


def _against_uniform(result: Run, uniform: float | None) -> str:
    if uniform is None or result.optimum is None:
        return ""
    would = float(result.plays.mean()) * (result.optimum - uniform)
    share = f", of which this is {result.regret.mean() / would:.1%}" if would > 1e-6 else ""
    return f"\n  uniform policy   would have had regret {would:,.2f}{share}"


FACTS = (
    "mdp", "world", "learner", "discount", "steps", "seeds", "complete", "optimum", "optimum_error", "seconds",
    "steps_per_second", "settings", "units", "versions",
)  # fmt: skip


def _summary(result: Run, uniform: float | None) -> dict[str, Any]:
    """What `--json` prints: numbers, no curves."""
    n = len(result.seeds)
    more: dict[str, Any] = {}
    if result.world == "tabular":
        more["uniform"] = uniform
        more["reward"] = float(result.results["reward_total"].mean())
        more["gap"] = float(result.gap.mean())
    else:
        more |= {f"{name}_by_seed": found.tolist() for name, found in result.results.items() if found.shape == (n,)}
    if "regret_total" in result.results:
        more["regret"] = float(result.regret.mean())
        more["regret_standard_error"] = float(result.regret.std(ddof=1) / n**0.5) if n > 1 else None
        more["regret_error"] = float(result.regret_error.mean())
        more["regret_by_seed"] = result.regret.tolist()
    if "trajectory_regret" in result.results:
        more["trajectory_regret"] = float(result.results["trajectory_regret_total"].mean())
        more["trajectory_regret_error"] = float(result.results["trajectory_regret_error"].mean())
    if result.options["pad"]:
        more["padding"] = result.padding.tolist()
    return {
        **{name: getattr(result, name) for name in FACTS}, "plays": result.plays.tolist(), **more
    }  # fmt: skip
