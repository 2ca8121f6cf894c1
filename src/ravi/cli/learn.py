"""The command `ravi learn`: learning in an environment of Gymnasium."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.cli import completion
from ravi.cli.common import (
    CRITERION,
    JSON,
    OPTION,
    SEED,
    SHORT,
    allow_typed_modules,
    options,
    progress_bar,
    say,
    say_json,
    stopped_early,
    with_options,
)
from ravi.display.printable import counted, with_rows
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.learned import Learned
    from ravi.live.learning import Broken
    from ravi.live.policies import Policy

GRID = "A continuous observation space"


def learn(
    env: str,
    chosen: Annotated[str | None, typer.Argument(metavar="learner", autocompletion=completion.learners)] = None,
    *,
    learner: Annotated[str | None, typer.Option(autocompletion=completion.learners)] = None,
    discount: float | None = None,
    criterion: CRITERION = None,
    steps: str = "1e5",
    termination: str = "absorb",
    option: OPTION = None,
    rewards: str = "unknown",
    memory: float | None = None,
    reward_range: Annotated[tuple[float, float] | None, typer.Option(metavar="LOW HIGH")] = None,
    reward_scale: float | None = None,
    bins: Annotated[str | None, typer.Option(rich_help_panel=GRID)] = None,
    low: Annotated[str | None, typer.Option(rich_help_panel=GRID)] = None,
    high: Annotated[str | None, typer.Option(rich_help_panel=GRID)] = None,
    outside: Annotated[str, typer.Option(rich_help_panel=GRID)] = "error",
    discover: bool = False,
    until_gap: float | None = None,
    assume: str = "nothing",
    evaluate: int | None = None,
    seed: SEED = 0,
    save: Path | None = None,
    checkpoint: Path | None = None,
    policy: str | None = None,
    as_json: JSON = False,
) -> None:
    """Learn a policy in a Gymnasium environment or an MDP. After Ctrl-C the same command goes on from the checkpoint.

    The environment's time limit is removed, since the discount sets the horizon. An MDP has its own discount.

    Parameters
    ----------
    env
        The id of a Gymnasium environment, such as FrozenLake-v1; or an MDP, by its id or its file.
    chosen
        A learner's id (see ravi list). By default one is chosen for the environment.
    learner
        The learner, as an option.
    discount
        gamma; after each step a reset has probability 1 - gamma. Default 0.99, for a Box 0.998.
    steps
        The number of steps.
    termination
        What a termination means: absorb (no further reward) or restart.
    rewards
        unknown (learned), known (read from its table) or changing.
    memory
        For changing rewards: the weight of an observation falls by a factor e in so many steps.
    reward_range
        The smallest and the largest reward of a step, such as --reward-range -1 1; by default those of its table,
        or those observed.
    reward_scale
        A multiplier of the bonus for learned rewards. Default 1; 0 without --learner.
    bins
        The number of cells in each coordinate, such as 20,20. By default they are chosen.
    low
        Lower bounds of the grid; by default those of the space.
    high
        Upper bounds of the grid; by default those of the space.
    outside
        For observations outside the grid: error, or clip to the nearest cell.
    discover
        Number the observations as they occur; integers, strings, or tuples of them.
    until_gap
        Stop when the policy is within this distance of the optimum, with probability 0.95; it needs a range of
        rewards.
    assume
        What bounds assume besides the range of rewards: nothing, or seen (pairs that were played often do only what
        they did).
    evaluate
        The number of further steps, in which the policy is played without learning. Default a tenth.
    save
        Save the policy to this file.
    checkpoint
        Save the learner's progress to this file; if the file exists, continue from it.
    policy
        Which policy: last, output (of a uniformly drawn time), or planned (optimal for the observed data). Default
        last; planned without --learner.
    """
    from ravi import ids, validation
    from ravi._jit.functions import sparing
    from ravi.live.environment import world_of
    from ravi.live.learned import POLICIES
    from ravi.live.learning import Broken, Halted, learn
    from ravi.runtime import archive

    if chosen is not None and learner is not None:
        raise InputError(f"the learner is given twice: {chosen} and --learner {learner}")
    learner = chosen or learner
    T, given, limits = validation.steps(steps), options(option), reward_range
    if policy is not None:
        validation.one_of(policy, POLICIES, "--policy")
    if limits is not None and termination == "absorb" and not min(limits) <= 0 <= max(limits):
        raise InputError(
            f"--reward-range {limits[0]:g} {limits[1]:g} leaves out 0, which is earned after a termination"
        )
    allow_typed_modules(env, learner)
    if save is not None:
        archive.check_place(save)  # told before the work, not after
    before = 0
    if checkpoint is not None and checkpoint.exists():
        header, _ = archive.read(checkpoint, "agent")
        before = header["time"] + (header["pending"] is not None) + header["extra"]["environment"].get("looked", 0)
    mdp = ids.names_an_mdp(env)
    if mdp:
        env = with_options(env, None, criterion)
    elif criterion not in (None, "discounted"):
        raise InputError(f"--criterion is {criterion}: {env} is an environment, which is learned for a discount")
    with closing(world_of(env, given, discount=discount if mdp else None)) as world:
        short = sparing(4.0) if T <= SHORT else nullcontext()
        with progress_bar(f"{learner or 'learning'} in {env}") as progress, short:
            try:
                found = learn(
                    env if mdp else world, learner, T, discount=discount, termination=termination,
                    grid=_grid(world.observation_space, bins, low, high, outside), discover=discover or None,
                    rewards=rewards, reward_range=limits, reward_scale=reward_scale, memory=memory, seed=seed,
                    until_gap=until_gap, assume=assume, evaluate=evaluate, checkpoint=checkpoint, progress=progress,
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
    if as_json:
        facts = {"plays_before": before, "time_limit_taken_off": limit, "policy": which}
        say_json(_summary(found, kept, which, before) | facts | {"saved": None if save is None else str(save)})
    else:
        words = "the step that draws it is not reached" if which != asked else "use --save FILE"
        _print(found, which, before, limit, save, f"not saved: {words}")
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


def _grid(space: Any, bins: str | None, low: str | None, high: str | None, outside: str) -> Any:
    """The grid of a continuous observation space, if one is given; its ends are the space's own unless given."""
    import numpy as np

    from ravi import validation
    from ravi.live.grid import Grid

    if bins is None:
        if (low, high, outside) != (None, None, "error"):
            raise InputError("--low, --high and --outside are for a grid: give --bins")
        return None
    if type(space).__name__ != "Box":
        raise InputError(f"--bins is for a continuous observation space, and this is {space}")
    size = int(np.prod(space.shape))
    cells, ends = _numbers(bins, "--bins", size, lambda part, name: validation.whole(part, name)), {}
    for name, given, own in (("--low", low, space.low), ("--high", high, space.high)):
        ends[name] = own.ravel().tolist() if given is None else _numbers(given, name, size, validation.number)
        for i, end in enumerate(ends[name]):
            if not np.isfinite(end):
                raise InputError(f"coordinate {i} of {space} has no end: give {name}")
    lows, highs, counts = (np.reshape(each, space.shape) for each in (ends["--low"], ends["--high"], cells))
    return Grid(lows, highs, counts, outside)


def _numbers(text: str, name: str, size: int, read: Any) -> list[Any]:
    """Numbers with commas between them; one holds for all."""
    numbers = [read(part.strip(), name) for part in text.split(",")]
    if len(numbers) not in (1, size):
        raise InputError(f"{name} has {len(numbers)} numbers, but the observation space has {size} coordinates")
    return numbers * size if len(numbers) == 1 else numbers


def _time_limit(world: Any) -> int | None:
    """The time limit that the environment of an id comes with."""
    from ravi.mdps.environments import gymnasium_module

    registered = gymnasium_module().registry.get(world.spec.id) if world.spec is not None else None
    return None if registered is None else registered.max_episode_steps


def _summary(found: Learned, kept: Policy, which: str, before: int) -> dict[str, Any]:
    """What `--json` prints. Values are sums of discounted rewards, as `ravi evaluate` gives them."""
    from ravi.live.choices import grid_words, level_words

    H, at, known = 1 / (1 - kept.discount), found.environment, found.interval(which)
    earned, estimate = found.earned, found.estimate if which == found.usual else None
    numbers = {} if earned is None else earned.times(H).json()
    names = {"earned": "value", "earned_low": "low", "earned_high": "high", "earned_cycles": "sample"}
    return {
        "environment": at["id"],
        "options": at["options"],
        "learner": kept.learner,
        "discount": kept.discount,
        "seed": kept.seed,
        "plays": found.plays,
        "complete": found.agent.done,
        "gap_missed": found.missed,
        **{fact: at[fact] for fact in ("termination", "steps", "resets", "terminations", "truncations")},
        "reward_range": [0.0, 0.0] if found.agent.range.unseen else list(kept.units),
        "reward_range_from": found.choices.range_from,
        "optimistic": None if found.optimistic is None else H * found.optimistic,
        **{name: numbers.get(field) for name, field in names.items()},
        "earned_words": None if earned is None else str(earned.times(H)),
        "estimate": None if estimate is None else estimate.json(),
        "interval": None if known is None else known._asdict() | {"informative": known.informative},
        "claims": dict(found.claims(which)),
        "grid_chosen": grid_words(at["observations"]) if "looked" in at else None,
        "action_levels": level_words(at["actions"]),
        "seconds": found.seconds,
        "plays_per_second": _speed(found, before),
    }


def _speed(found: Learned, before: int) -> float:
    return (found.plays - before) / max(found.seconds, 1e-9)


def _print(found: Learned, which: str, before: int, limit: int | None, save: Path | None, unsaved: str) -> None:
    """The same, for people."""
    at, made = found.environment, f"{found.seconds:.2f} s, {_speed(found, before):,.0f} steps per second"
    rows = [("learner", found.learner)]
    if at["options"]:
        rows.append(("options", ", ".join(f"{key}={value}" for key, value in at["options"].items())))
    if limit is not None:
        rows.append(("time limit", f"of {limit:,} steps, removed: the discount sets the horizon"))
    rows += [(name.removeprefix("the "), words) for name, words in found.facts(which)]
    rows.append(("made in", "no time: the checkpoint has all steps already" if before == found.plays else made))
    rows.append(("policy", unsaved if save is None else f"the {which} one, in {save}"))
    if save is not None:
        world = f" {at['id']}" if ":" in at["id"] else ""  # its code runs where it is named
        rows.append(("next", f"ravi evaluate {save}{world}; ravi play {save}{world}"))
    say(with_rows(found.title + ("" if found.agent.done or found.missed else ", stopped"), rows))
