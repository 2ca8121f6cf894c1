"""The commands about a policy in a file: `evaluate` and `play`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ravi.cli.common import (
    ALLOW_CODE,
    CRITERION,
    DISCOUNT,
    JSON,
    OPTION,
    SEED,
    allow_typed_modules,
    options,
    progress_bar,
    say,
    say_json,
    with_options,
)  # fmt: skip
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.core import MDP
    from ravi.live.policies import Play, Policy

POLICY = Annotated[Path, typer.Argument(help="The file of a policy, written by ravi learn --save.")]
CYCLES = Annotated[str, typer.Option(help="The number of cycles to play, each from one reset to the next.")]
TERMINATION = Annotated[
    str | None,
    typer.Option(
        help="What a termination means: absorb (no further reward) or restart. By default as the policy was learned."
    ),
]


def evaluate(
    policy: POLICY,
    env: str | None = None,
    *,
    cycles: CYCLES = "1000",
    confidence: float = 0.95,
    termination: TERMINATION = None,
    option: OPTION = None,
    discount: DISCOUNT = None,
    criterion: CRITERION = None,
    seed: SEED = 0,
    allow_code: ALLOW_CODE = False,
    as_json: JSON = False,
) -> None:
    """Evaluate a policy, in the units of its rewards: exactly if there is a transition table, and by sampling.

    Parameters
    ----------
    env
        The id of an environment or an MDP; by default the environment it was learned in.
    confidence
        The confidence level of the interval.
    """
    from ravi import ids, validation
    from ravi.live.policies import Policy, evaluate
    from ravi.planning import evaluation as tables

    allow_typed_modules(env)
    kept, n = Policy.load(policy), validation.whole(cycles, "--cycles")
    facts: dict[str, Any] = {"cycles": n, "confidence": confidence, "termination": termination, "seed": seed}
    if env is not None and ids.names_an_mdp(env):
        env = with_options(env, discount, criterion)
        if option:
            raise InputError("--option is for an environment; an MDP's options are in its id")
        mdp = ids.mdp(env)
        if mdp.criterion != "discounted":
            _say_numbers(policy, mdp, tables.evaluate(mdp, kept.table), as_json)
            return
        found = evaluate(kept, mdp, **facts)
    elif discount is not None or criterion is not None:
        name = "--criterion" if discount is None else "--discount"
        raise InputError(f"{name} is for an MDP; in an environment the discount is that of the policy")
    else:
        world = _environment(kept, env, option, allow_code)
        with closing(world), progress_bar(f"playing {policy}") as progress:
            found = evaluate(kept, world, progress=progress, **facts)
    say_json({"file": str(policy), **found.json()}) if as_json else say(found)


def _say_numbers(policy: Path, mdp: MDP, found: Any, as_json: bool) -> None:
    """The value of a policy in the average reward, or in episodes."""
    if as_json:
        numbers = {name: getattr(value, "tolist", lambda value=value: value)() for name, value in vars(found).items()}
        say_json({"file": str(policy), "on": mdp.name, **numbers})
    else:
        say(f"policy {policy} on {mdp!r}\n  {repr(found)[1:-1]}")


def play(
    policy: POLICY,
    env: str | None = None,
    *,
    cycles: CYCLES = "1",
    episodes: str | None = None,
    video: Path | None = None,
    render: str | None = None,
    termination: TERMINATION = None,
    option: OPTION = None,
    seed: SEED = 0,
    allow_code: ALLOW_CODE = False,
    as_json: JSON = False,
) -> None:
    """Play a policy and print every step and the sum of every cycle; or show or record whole episodes.

    Parameters
    ----------
    env
        The id of an environment; by default the one it was learned in.
    episodes
        Play this many episodes of the environment instead of cycles.
    video
        Record every episode as a video in this folder (needs MoviePy).
    render
        How to show the environment: human (a window) or ansi (text).
    """
    from ravi import validation
    from ravi.live.policies import Policy, play
    from ravi.mdps.environments import gymnasium_module

    allow_typed_modules(env)
    kept, n = Policy.load(policy), validation.whole(cycles, "--cycles")
    if render is not None and as_json:
        raise InputError("--render and --json do not go together")
    if episodes is not None or video is not None:
        if cycles != "1" or termination is not None:
            raise InputError("--cycles and --termination are for cycles; an episode ends as the environment ends it")
        number = validation.whole(episodes or "1", "--episodes")
        given: dict[str, Any] = {"options": options(option), "seed": seed, "allow_code": allow_code}
        with _rendered(render or "rgb_array"):
            played = kept.play(env, number, render=render, video=video, **given)
        if as_json:
            say_json({"file": str(policy), "episodes": [each._asdict() for each in played]})
        for number, each in enumerate(played if not as_json else [], 1):
            say(f"episode {number}: {each}")
        return
    with closing(_environment(kept, env, option, allow_code, render)) as world, _rendered(render):
        text = gymnasium_module().wrappers.RenderCollection(world, reset_clean=False) if render == "ansi" else None
        plays = play(kept, world if text is None else text, n, seed=seed, termination=termination)
        if as_json:
            say_json({"file": str(policy), "plays": [each._asdict() for each in plays]})
            return
        _print(plays, (list) if text is None else text.render)


def _print(plays: Iterator[Play], frames: Callable[[], list[str]]) -> None:
    """Every play on a line, between what the environment showed before and after it."""
    total = 0.0
    for each in plays:
        shown = frames()
        if each.age == 0:
            say(f"cycle {each.cycle + 1}")
            total = 0.0
            _print_frames(shown[:1])
        total += each.reward
        say(f"  step {each.age + 1}: state {each.state}, action {each.action}, reward {each.reward:g}, "
            f"then {each.successor}")  # fmt: skip
        _print_frames(shown[each.age == 0 :])
        if each.end:
            say(f"  {each.end} after {each.age + 1} steps, which earned {total:g}")


def _print_frames(frames: list[str]) -> None:
    for frame in frames:
        print(str(frame).strip("\n"))  # as the environment draws it


def _environment(
    policy: Policy, name: str | None, option: list[str] | None, allow_code: bool, render: str | None = None
) -> Any:
    """The environment to play in: that of an id, or the one where the policy was learned; options given here win."""
    from ravi.live.environment import world_of
    from ravi.live.policies.playing import check_render, origin_of

    origin = origin_of(policy.environment, name, options(option), allow_code=allow_code)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not offered is told below
        world = world_of(*origin, render)
    return check_render(world, render, "--render")


@contextmanager
def _rendered(render: str | None) -> Iterator[None]:
    """Report what Gymnasium lacks for rendering as an error of one line."""
    from ravi.mdps.environments import gymnasium_module

    try:
        yield
    except gymnasium_module().error.Error as error:
        if render is None:
            raise
        raise InputError(f"--render {render}: {error}") from None
