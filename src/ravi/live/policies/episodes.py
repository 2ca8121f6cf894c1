"""How does a policy do in the environment's own episodes? Played to their ends, shown as text, or kept as videos.

An episode ends where the environment terminates or truncates it, by its own time limit; the discount ends none. What a
discounted problem asks, cycles that end at resets, is played by `ravi.live.policies.playing`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.policies.policy import Policy


class Episode(NamedTuple):
    """One episode of an environment, in the units of its rewards."""

    total: float  # the sum of its rewards
    discounted: float  # the sum of gamma^j r_j
    steps: int
    end: str  # "terminated", "truncated", or "cut" after so many steps
    unknown: int  # steps from observations that the policy has no row for, by uniform actions

    def __str__(self) -> str:
        unknown = f"; {self.unknown:,} steps from observations that were never met" if self.unknown else ""
        return f"{self.end} after {self.steps:,} steps, which earned {self.total:g}{unknown}"


def episodes(
    policy: Policy,
    env: Any,
    number: int,
    *,
    render: str | None,
    video: str | os.PathLike[str] | None,
    seed: int,
    deterministic: bool,
    limit: int,
    options: Mapping[str, Any] | None,
    allow_code: bool,
) -> list[Episode]:
    """What `Policy.play` does."""
    count, most = validation.whole(number, "episodes"), validation.whole(limit, "limit")
    validation.flag(deterministic, "deterministic")
    validation.instance(options, (Mapping, type(None)), "options", "a dict of options of the environment's id")
    rng = np.random.default_rng(validation.whole(seed, "seed", 0, 2**63 - 1))
    ours = env is None or isinstance(env, str)
    if video is not None and find_spec("moviepy") is None:
        raise InputError("videos are written by MoviePy: pip install moviepy")
    mode = render if video is None else "rgb_array"
    world = _opened(policy, env, mode, video is not None, options or {}, allow_code)
    _same_spaces(policy, world)
    text = getattr(world, "render_mode", None) == "ansi"
    world = _recorded(world, video)
    try:
        return [_episode(policy, world, k, seed, rng, deterministic, most, text) for k in range(count)]
    finally:
        if ours or video is not None:  # a video is written when its environment is closed
            world.close()


def _episode(
    policy: Policy, world: Any, number: int, seed: int, rng: Any, deterministic: bool, limit: int, text: bool
) -> Episode:
    from ravi.live.environment import seed_of
    from ravi.live.policies.playing import seed_apart

    observation, _ = world.reset(seed=seed_of(seed_apart(seed), number))
    total = discounted = 0.0
    steps = unknown = 0
    end = ""
    _shown(world, text)
    while not end:
        row = policy.observations.row(observation)
        action = policy.observations.action(policy.chosen(row, steps, deterministic, rng))
        observation, reward, terminated, truncated, _ = world.step(action)
        total, discounted = total + float(reward), discounted + policy.discount**steps * float(reward)
        steps, unknown = steps + 1, unknown + (row is None)
        end = "terminated" if terminated else "truncated" if truncated else "cut" if steps == limit else ""
        _shown(world, text)
    return Episode(total, discounted, steps, end, unknown)


def _shown(world: Any, text: bool) -> None:
    if text:
        print(str(world.render()).strip("\n"))


def _opened(
    policy: Policy, env: Any, render: str | None, video: bool, options: Mapping[str, Any], allow_code: bool
) -> Any:
    """The environment, that of an id, or the one that the policy was learned in; with its own time limit."""
    from ravi.live.policies.playing import learned_in, learned_options, showing
    from ravi.mdps.environments import opened

    if not (env is None or isinstance(env, str)):
        mode = getattr(env, "render_mode", None)
        if render not in (None, mode):
            raise InputError(
                f"{env!r} was made with render_mode={mode!r}: make it with render_mode={render!r}, or give its id"
            )
        return opened(env, options)
    learned = policy.environment
    name, made = learned_in(learned, allow_code, options) if env is None else (
        env, learned_options(learned, env, allow_code) | dict(options)
    )  # fmt: skip
    made |= {} if render is None else {"render_mode": render}
    if video or render is None:
        return opened(name, made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not offered is told here
        return showing(opened(name, made), render)


def _same_spaces(policy: Policy, world: Any) -> None:
    """An error, before anything is played, if the spaces of the environment are not those of the policy."""
    from ravi.live.policies.playing import grid_of, unlike
    from ravi.live.spaces import space_of

    learned = policy.environment
    for fact, space in (("observations", world.observation_space), ("actions", world.action_space)):
        was = learned.get(fact) or {}
        if not was or was.get("kind") == "labels":
            continue
        grid, now = grid_of(was), None
        try:
            now = space_of(space, grid).plain()
        except InputError:
            if fact == "observations":
                raise unlike(learned, space) from None
        if now != was:
            raise InputError(f"{world} has the {fact} {space}, but the policy was learned with {was}")


def _recorded(world: Any, video: str | os.PathLike[str] | None) -> Any:
    """The environment, every episode of which becomes a file in the folder `video`."""
    if video is None:
        return world
    from ravi.mdps.environments import imported

    folder = str(validation.path(video, "video"))
    return imported().wrappers.RecordVideo(world, folder, episode_trigger=lambda _: True, disable_logger=True)
