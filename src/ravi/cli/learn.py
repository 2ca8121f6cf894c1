"""The command `ravi learn`: learning in an environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.cli import completion
from ravi.cli.common import (
    JSON,
    OPTION,
    SEED,
    SHORT,
    options,
    progress_bar,
    say,
    say_json,
    stopped_early,
    typed,
)
from ravi.display.printable import counted
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.estimates import Estimate
    from ravi.live.learned import Learned
    from ravi.live.learning import Broken
    from ravi.live.policies import Policy

GRID = "A continuous observation space"


def learn(
    env: Annotated[str, typer.Argument(help="The id of a Gymnasium environment: FrozenLake-v1.")],
    learner: Annotated[
        str | None,
        typer.Option(
            help="A learner's id (see ravi list). By default chosen for the environment.",
            autocompletion=completion.learners,
        ),
    ] = None,
    discount: Annotated[
        float | None,
        typer.Option(help="gamma; after each step a reset has probability 1 - gamma. Default 0.99, for a Box 0.998."),
    ] = None,
    steps: Annotated[str, typer.Option(help="The number of steps.")] = "1e5",
    termination: Annotated[
        str, typer.Option(help="What a termination means: absorb (no further reward) or restart.")
    ] = "absorb",
    option: OPTION = None,
    rewards: Annotated[
        str, typer.Option(help="unknown (learned), known (read from its table) or changing.")
    ] = "unknown",
    memory: Annotated[
        float | None,
        typer.Option(help="For changing rewards: the weight of an observation falls by a factor e in so many steps."),
    ] = None,
    reward_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="The smallest and the largest reward of a step, such as --reward-range -1 1; by default those of its "
            "table, or those observed.",
        ),
    ] = None,
    reward_scale: Annotated[
        float | None,
        typer.Option(help="A multiplier of the bonus for learned rewards. Default 1; 0 without --learner."),
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(
            help="The number of cells in each coordinate, such as 20,20. By default they are chosen.",
            rich_help_panel=GRID,
        ),
    ] = None,
    low: Annotated[
        str | None, typer.Option(help="Lower bounds of the grid; by default those of the space.", rich_help_panel=GRID)
    ] = None,
    high: Annotated[
        str | None, typer.Option(help="Upper bounds of the grid; by default those of the space.", rich_help_panel=GRID)
    ] = None,
    outside: Annotated[
        str,
        typer.Option(
            help="For observations outside the grid: error, or clip to the nearest cell.", rich_help_panel=GRID
        ),
    ] = "error",
    discover: Annotated[
        bool,
        typer.Option("--discover", help="Number the observations as they occur; integers, strings, or tuples of them."),
    ] = False,
    until_gap: Annotated[
        float | None,
        typer.Option(
            help="Stop when the policy is within this distance of the optimum, with probability 0.95; it needs a range "
            "of rewards."
        ),
    ] = None,
    assume: Annotated[
        str,
        typer.Option(
            help="What bounds assume besides the range of rewards: nothing, or seen (pairs that were played often do "
            "only what they did)."
        ),
    ] = "nothing",
    evaluate: Annotated[
        int | None,
        typer.Option(
            help="The number of further steps, in which the policy is played without learning. Default a tenth."
        ),
    ] = None,
    seed: SEED = 0,
    save: Annotated[Path | None, typer.Option(help="Save the policy to this file.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Save the learner's progress to this file; if the file exists, continue from it."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Which policy: last, output (of a uniformly drawn time), or planned (optimal for the observed data). "
            "Default last; planned without --learner."
        ),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Learn a policy in a Gymnasium environment. After Ctrl-C, the same command continues from the checkpoint.

    The environment's time limit is removed, since the discount sets the horizon.
    """
    from ravi import ids, validation
    from ravi._jit.functions import sparing
    from ravi.live.choices import grid_words, level_words
    from ravi.live.environment import world_of
    from ravi.live.learned import POLICIES
    from ravi.live.learning import Broken, Halted, learn
    from ravi.live.rewards import MODES
    from ravi.mdps.from_gymnasium import TERMINATIONS
    from ravi.runtime import archive

    T, given = validation.steps(steps), options(option)
    if policy is not None:
        validation.one_of(policy, POLICIES, "--policy")
    if discount is not None:
        validation.probability(discount, "--discount")
    validation.one_of(termination, TERMINATIONS, "--termination")
    validation.one_of(rewards, MODES, "--rewards")
    typed(env, learner)
    if learner is not None:
        ids.given_options(learner)
    if save is not None:
        archive.check_place(save)  # told before the work, not after
    before = 0
    if checkpoint is not None and checkpoint.exists():
        header, _ = archive.read(checkpoint, "agent")
        before = header["time"] + (header["pending"] is not None) + header["extra"]["environment"].get("looked", 0)
    mdp = ids.names_an_mdp(env)
    with closing(world_of(env, given, discount=discount if mdp else None)) as world:
        grid = _grid(world, bins, low, high, outside, discover, learner)
        limits = _reward_range(world, learner, termination, rewards, reward_range)
        short = sparing(4.0) if T <= SHORT else nullcontext()
        with progress_bar(f"{learner or 'learning'} in {env}") as progress, short:
            try:
                found = learn(
                    env if mdp else world, learner, T, discount=discount, termination=termination, grid=grid,
                    discover=discover or None, rewards=rewards, reward_range=limits, reward_scale=reward_scale,
                    memory=memory, seed=seed, until_gap=until_gap, assume=assume, evaluate=evaluate,
                    checkpoint=checkpoint, progress=progress,
                )  # fmt: skip
                halted = False
            except Halted as stop:
                found, halted = stop.learned, True
            except Broken as error:
                raise InputError(_broken(error, policy, save)) from None
        limit = None if "max_episode_steps" in given else _time_limit(world)
    which = asked = found.usual if policy is None else policy
    if halted and which == "output" and found.agent.output is None:
        which, save = "last", None  # the time of the output policy is still to come
    kept = found.policy(which)
    if save is not None:
        kept.save(save)
    facts = (
        _summary(found, kept)
        | _known(found, which)
        | {
            "plays_before": before,
            "plays_per_second": (found.plays - before) / max(found.seconds, 1e-9),
            "time_limit_taken_off": limit,
            "reward_range_from": found.choices.range_from,
            "grid_chosen": grid_words(found.environment["observations"]) if "looked" in found.environment else None,
            "action_levels": level_words(found.environment["actions"]),
            "policy": which,
            "saved": None if save is None else str(save),
        }
    )
    say_json(facts) if as_json else say("\n".join(_lines(facts, early=which != asked)))
    if halted:
        raise stopped_early(checkpoint)


def _broken(error: Broken, which: str | None, save: Path | None) -> str:
    """What broke a stream off, and where what was learned before is: saved, as after Ctrl-C."""
    from ravi.live.learning import IN_LEARNED

    message, found = str(error), error.learned
    if save is None or not found.plays:
        options = "with --save FILE the policy is kept, with --checkpoint FILE the same command goes on"
        return message.replace(IN_LEARNED, options) if found.plays else message.removesuffix(f"; {IN_LEARNED}")
    try:
        found.policy(which).save(save)
        kept = f"the policy of the {counted(found.plays, 'step')} before is in {save}"
    except InputError as unsaved:
        kept = f"the policy is not saved: {unsaved}"
    return f"{message.removesuffix(f'; {IN_LEARNED}')}; {kept}"


def _grid(
    world: Any, bins: str | None, low: str | None, high: str | None, outside: str, discover: bool, learner: str | None
) -> Any:
    """The grid of a continuous observation space, if one is given; its ends are the space's own unless given.

    A space that no learner can be given is an error that says which option would help.
    """
    import numpy as np

    from ravi import validation
    from ravi.live.grid import Grid

    space = world.observation_space
    if type(world.action_space).__name__ == "Box" and learner is not None:
        raise InputError(
            f"the action space {world.action_space} is continuous; learners here choose among finitely many"
        )
    box = type(space).__name__ == "Box"
    if bins is None:
        if box and not discover and learner is not None:
            raise InputError(f"{space} is continuous: say into how many cells to cut each coordinate, --bins 10,10,...")
        if (low, high, outside) != (None, None, "error"):
            raise InputError("--low, --high and --outside are for a grid: give --bins")
        return None
    if not box:
        raise InputError(f"--bins is for a continuous observation space, and this is {space}")
    size = int(np.prod(space.shape))
    cells = _numbers(bins, "--bins", size, lambda part, name: validation.whole(part, name))
    ends = {}
    for name, given, own in (("--low", low, space.low), ("--high", high, space.high)):
        ends[name] = own.ravel().tolist() if given is None else _numbers(given, name, size, validation.number)
        for i, end in enumerate(ends[name]):
            if not np.isfinite(end):
                raise InputError(f"coordinate {i} of {space} has no end: give {name}")
    lows, highs, counts = (np.reshape(each, space.shape) for each in (ends["--low"], ends["--high"], cells))
    return Grid(lows, highs, counts, outside)


def _reward_range(
    world: Any, learner: str | None, termination: str, rewards: str, given: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The least and the largest reward that are given; an error where they must be."""
    from ravi import validation

    if given is not None:
        if rewards == "known":
            raise InputError("--reward-range and --rewards known do not go together: a table has the range too")
        low, high = (validation.number(end, "--reward-range") for end in given)
        if not low < high:
            raise InputError(f"--reward-range is {low:g} {high:g}; the least reward comes first")
        if termination == "absorb" and not low <= 0 <= high:
            raise InputError(f"--reward-range {low:g} {high:g} leaves out 0, which is earned after a termination")
        return low, high
    if learner is not None and rewards != "known" and not hasattr(world.unwrapped, "P"):
        raise InputError(
            f"the range of rewards is not known ({world.spec.id} has no transition table): give --reward-range LOW "
            "HIGH, of a single step, or leave out --learner"
        )
    return None


def _time_limit(world: Any) -> int | None:
    """The time limit that the environment of an id comes with."""
    from ravi.mdps.environments import imported

    registered = imported().registry.get(world.spec.id) if world.spec is not None else None
    return None if registered is None else registered.max_episode_steps


def _summary(found: Learned, kept: Policy) -> dict[str, Any]:
    """What `--json` prints. Values are sums of discounted rewards, as `ravi evaluate` gives them."""
    H, earned, at = 1 / (1 - kept.discount), found.earned, found.environment
    return {
        "environment": kept.environment["id"],
        "options": kept.environment["options"],
        "learner": kept.learner,
        "discount": kept.discount,
        "seed": kept.seed,
        "plays": found.plays,
        "complete": found.agent.done,
        "gap_missed": found.missed,
        **{fact: at[fact] for fact in ("termination", "steps", "resets", "terminations", "truncations")},
        "reward_range": [0.0, 0.0] if found.agent.range.unseen else list(kept.units),
        "optimistic": None if found.optimistic is None else H * found.optimistic,
        **_earned(None if earned is None else earned.times(H)),
        "seconds": found.seconds,
    }


def _earned(estimate: Estimate | None) -> dict[str, Any]:
    """What was earned while learning, as numbers and in words."""
    names = {"earned": "value", "earned_low": "low", "earned_high": "high", "earned_cycles": "sample"}
    fields = dict.fromkeys(names.values()) if estimate is None else estimate.json()
    words = None if estimate is None else str(estimate)
    return {name: fields[field] for name, field in names.items()} | {"earned_words": words}


def _known(found: Learned, which: str) -> dict[str, Any]:
    """The interval of a policy and the estimate of its return; None where there is none."""
    known, estimate = found.interval(which), found.estimate if which == found.usual else None
    return {
        "estimate": None if estimate is None else estimate.json(),
        "interval": None if known is None else known._asdict() | {"informative": known.informative},
        "claims": dict(found.claims(which)),
    }


def _lines(facts: dict[str, Any], early: bool) -> Iterator[str]:
    """The same, for people. early: the time of the policy that was asked for is still to come."""
    from ravi.live.learned import CUT

    options = "".join(f", {key}={value}" for key, value in facts["options"].items())
    where = f"{facts['environment']}{options} (gamma {facts['discount']:.10g})"
    ended = ", gap not reached" if facts["gap_missed"] is not None else "" if facts["complete"] else ", stopped"
    yield f"{facts['learner']} in {where}: {counted(facts['plays'], 'step')}{ended}"
    yield (
        f"  environment      {counted(facts['steps'], 'step')}, {counted(facts['resets'], 'reset')}, "
        f"{counted(facts['terminations'], 'termination')} ({facts['termination']}), "
        f"{counted(facts['truncations'], 'truncation')}"
    )
    if facts["time_limit_taken_off"] is not None:
        yield f"  time limit       of {facts['time_limit_taken_off']:,} steps, removed: the discount sets the horizon"
    if facts["grid_chosen"] is not None:
        yield f"  grid             {facts['grid_chosen']}"
    if facts["action_levels"] is not None:
        yield f"  actions          {facts['action_levels']}"
    low, high = facts["reward_range"]
    limits = f"from {low:g} to {high:g} ({facts['reward_range_from']})"
    yield f"  rewards          {'none but 0 was observed' if low == high else limits}"
    if facts["optimistic"] is not None:
        yield f"  optimistic value {facts['optimistic']:.6g}, of the last plan"
    if facts["earned"] is not None:
        yield f"  earned           {facts['earned_words']}, the later half"
    elif facts["truncations"]:
        yield f"  earned           {CUT.format(facts['truncations'])}"
    for name, words in facts["claims"].items():
        yield f"  {name.removeprefix('the '):16} {words}"
    if facts["plays_before"] == facts["plays"]:
        yield "  made             before: the checkpoint has all steps already"
    else:
        yield f"  made in          {facts['seconds']:.2f} s, {facts['plays_per_second']:,.0f} steps per second"
    if facts["saved"] is None:
        yield f"  policy           not saved: {'the step that draws it is not reached' if early else 'use --save FILE'}"
    else:
        yield f"  policy           the {facts['policy']} one, in {facts['saved']}"
        world = f" {facts['environment']}" if ":" in facts["environment"] else ""  # its code runs where it is named
        yield f"  next             ravi evaluate {facts['saved']}{world}; ravi play {facts['saved']}{world}"


def _numbers(text: str, name: str, size: int, read: Any) -> list[Any]:
    """Numbers with commas between them; one holds for all."""
    numbers = [read(part.strip(), name) for part in text.split(",")]
    if len(numbers) not in (1, size):
        raise InputError(f"{name} has {len(numbers)} numbers, but the observation space has {size} coordinates")
    return numbers * size if len(numbers) == 1 else numbers
