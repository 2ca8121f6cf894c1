"""Playing a policy: in cycles on a stream that numbers states and actions as the policy does, or in whole episodes.

An episode ends where the environment terminates or truncates it, by its own time limit; the discount ends none. It may
be shown as text, or kept as a video. What a discounted problem asks is played in cycles. A cycle goes from a reset to
the next, which follows each step with probability 1 - gamma. Step j of cycle c of a seed uses the block
(c + 1) CYCLE + j of its numbers (`ravi.random`): whether a reset follows, and the action. So a cycle does not depend on
those before it, and its reset is the same for every policy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi.core import MDP, Playable
from ravi.live.encoders import Encoder, encoder_from, encoder_of
from ravi.live.environment import Environment, seed_of, world_of
from ravi.mdps import environments
from ravi.random import CYCLE, block
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.policies.policy import Policy


SHOWN = ("human", "ansi")  # a window, and text


class Play(NamedTuple):
    """One step of a policy, in the numbers of the environment and the units of its rewards."""

    cycle: int
    age: int  # steps since the reset
    state: int
    action: int
    reward: float
    successor: int
    end: str  # of the cycle: "reset", "terminated", "truncated"; nothing while it goes on
    known: bool  # whether the policy has a row for the state; where not, the action is a uniform one


def play(
    policy: Policy,
    env: Playable | MDP | str | None = None,
    cycles: int = 1,
    *,
    seed: int = 0,
    termination: str | None = None,
    allow_code: bool = False,
) -> Iterator[Play]:
    """Play `policy` on `env`, given as for `evaluate`, step by step.

    A cycle ends at a reset, in the absorbing state, where nothing more is earned, or where it is truncated.
    """
    with stream_of(policy, env, termination=termination, seed=seed, allow_code=allow_code) as stream:
        yield from play_cycles(policy, stream, validation.whole(cycles, "cycles"), seed)


def play_cycles(
    policy: Policy, stream: Environment, cycles: int, seed: int, length: int | None = None
) -> Iterator[Play]:
    """Play cycles, from reset to reset; with a `length`, from which they are cut, no reset is drawn."""
    key, restart = np.uint64(validation.whole(seed, "seed", 0, 2**63 - 1)), 1 - policy.discount
    rows, A = _rows(policy), stream.actions
    for cycle in range(cycles):
        x, age, end = stream.reset(), 0, ""
        while not end:
            u_reset, u_action, _, _ = block(key, (cycle + 1) * CYCLE + age, 0)
            row = rows(x)
            a = int(A * u_action) if row is None else policy.action(row, age, u_action)
            y, reward, cut = stream.step(a)
            if u_reset < restart and length is None:
                end = "reset"
            elif y == stream.terminal:
                end = "terminated"
            elif cut or age + 1 == length:
                end = "truncated"
            yield Play(cycle, age, x, a, reward, y, end, row is not None)
            x, age = y, age + 1


@contextmanager
def stream_of(
    policy: Policy,
    env: Playable | MDP | str | None = None,
    *,
    termination: str | None = None,
    seed: int = 0,
    allow_code: bool = False,
) -> Iterator[Environment]:
    """The stream that a policy is played on, numbered as the policy is; closed at the end if it was opened here.

    `env` is an `Environment`, one of Gymnasium, its id, or None for the one that the policy was learned in. What an id
    makes has no time limit, and the options that the policy was learned with, if it is the same id. allow_code: the
    policy may name a module, `module:Env-v0`, whose code is then run (docs/guides/security.md).
    """
    learned, world = policy.environment, env
    if isinstance(env, Environment):
        if termination not in (None, env.termination):
            raise InputError(f"termination is {termination!r}, but the stream {env!r} has its own")
        stream = env
        _check_space(policy, stream.name, "observations", stream.observation_space)
        _check_space(policy, stream.name, "actions", stream.action_space)
    else:
        if env is None or isinstance(env, str):
            world = world_of(*origin_of(learned, env, allow_code=allow_code))
        _check_spaces(policy, world)
        numbering = learned.get("observations", {})
        stream = Environment(
            world, termination=termination or learned.get("termination", "absorb"), grid=grid_of(numbering),
            seed=seed_apart(seed), discover=numbering.get("kind") == "labels",
            levels=learned.get("actions", {}).get("kind") == "grid",
        )  # fmt: skip
        if stream.discovered:  # what was met has the numbers that it had
            stream.restore(stream.plain() | {"observations": numbering})
    if stream.discovered and stream.termination != learned.get("termination"):
        kept = learned.get("termination")
        raise InputError(f"the states were discovered with termination {kept!r}; play it with that")
    check_size(policy, stream.states, stream.actions, stream.name)
    try:
        yield stream
    finally:
        if world is not env:
            stream.close()


def check_render(world: Any, render: str | None, name: str = "render") -> Any:
    """An environment that was made to show itself so; an error if it does not offer that. name: of the argument."""
    offered = [each for each in world.metadata.get("render_modes", []) if each in SHOWN]
    if render is None or render in offered:
        return world
    world.close()
    words = " and ".join(offered) or f"neither {' nor '.join(SHOWN)}"
    raise InputError(f"{name} is {render!r}; {environments.name_of(world)} offers {words}")


def origin_of(
    learned: Mapping[str, Any],
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    allow_code: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The id and the options of an environment: of this id, or where a policy was learned (`Policy.environment`).

    Its options are those that the policy was learned with, if it is the same environment; `options` win. They may be
    what a file says: they name no module, unless the user allows it.
    """
    identity, known, code = learned.get("id"), learned.get("options"), name is None
    if name is None:
        if not learned:
            raise InputError("the policy does not say where it was learned: name an environment or an MDP")
        if identity is None or (known is None and not options):
            raise InputError(
                f"the policy does not say with which options {learned.get('name')} was made: give the environment, as "
                "in policy.play(env) or ravi play FILE ENV"
            )
        name = str(identity)
    elif name.rpartition(":")[2] not in [str(each).rpartition(":")[2] for each in (identity, learned.get("name"))]:
        known = None
    found = environments.code_in(name if code else "", known or {})
    if found is not None and not allow_code:
        raise ids.untrusted_code(found, name if code else found, "the policy")
    return name, {**(known or {}), **(options or {})}


def grid_of(plain: Mapping[str, Any]) -> Any:
    """The grids that a space was cut with: one, or by part; None where there is none."""
    if plain.get("kind") == "grid":
        return encoder_from(plain)
    if plain.get("kind") != "parts":
        return None
    try:
        keys = plain["keys"] or range(len(plain["spaces"]))
        grids = {key: grid_of(part) for key, part in zip(keys, plain["spaces"], strict=True)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the policy says of its observations what is no space: {validation.shown(plain)} ({error})"
        ) from None
    return {key: grid for key, grid in grids.items() if grid is not None} or None


def _check_spaces(policy: Policy, world: Any) -> None:
    """An error, before anything is played, if the spaces of an environment are not those of the policy."""
    for fact, space in (("observations", world.observation_space), ("actions", world.action_space)):
        was = policy.environment.get(fact)
        if was is None or (fact == "observations" and was.get("kind") == "labels"):  # of discovered states
            continue
        try:
            found = encoder_of(space, grid_of(was))
        except InputError:
            where = policy.environment.get("name", "another environment")
            raise InputError(
                f"the policy was learned in {where}, and {environments.name_of(world)} has other {fact}: {space}, "
                f"not {encoder_from(was)!r}"
            ) from None
        _check_space(policy, environments.name_of(world), fact, found)


def _check_space(policy: Policy, name: str, fact: str, space: Encoder) -> None:
    was = policy.environment.get(fact)
    if was is not None and was != space.plain():
        where = policy.environment.get("name", "another environment")
        raise InputError(
            f"the policy was learned in {where}, and {name} has other {fact}: {space!r}, not {encoder_from(was)!r}"
        )


def labels_of(policy: Policy) -> list[Any] | None:
    """The labels of the rows if states were discovered; further rows have none."""
    if policy.states is not None:
        return policy.states
    labels = policy.environment.get("observations", {}).get("labels")
    return None if labels is None else labels[: policy.table.shape[-2]]


def _rows(policy: Policy) -> Callable[[int], int | None]:
    """The row of a state of the stream; None where there is none."""
    if policy.states is not None:
        return {label: row for row, label in enumerate(policy.states) if type(label) is int}.get
    labels = labels_of(policy)
    if labels is None:
        return lambda x: x
    met = len(labels)  # the stream numbers them in this order
    return lambda x: x if x < met else None


def check_size(policy: Policy, X: int, A: int, name: str) -> None:
    """The policy has a row for every state, or labels that say which it has, and a column for every action."""
    has, wanted = policy.table.shape[-2:], (X, A)
    if (labels_of(policy) is None and has[0] != wanted[0]) or has[1] != wanted[1]:
        raise InputError(
            f"the policy has {has[0]} states and {has[1]} actions, but {name} has {wanted[0]} and {wanted[1]}"
        )


def seed_apart(seed: int) -> int:
    """The seed of an environment that a policy is evaluated in: apart from that of one that it is learned in."""
    chosen = validation.whole(seed, "seed", 0, 2**63 - 1)
    return int.from_bytes(sha256(f"evaluate {chosen}".encode()).digest()[:8], "big") >> 2


# Episodes.


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
    env: Playable | str | None,
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
    world = _open_world(policy, env, mode, video is not None, options or {}, allow_code)
    _check_spaces(policy, world)
    text = getattr(world, "render_mode", None) == "ansi"
    world = _record_video(world, video)
    try:
        return [_episode(policy, world, k, seed, rng, deterministic, most, text) for k in range(count)]
    finally:
        if ours or video is not None:  # a video is written when its environment is closed
            world.close()


def _episode(
    policy: Policy, world: Any, number: int, seed: int, rng: Any, deterministic: bool, limit: int, text: bool
) -> Episode:
    observation, _ = world.reset(seed=seed_of(seed_apart(seed), number))
    total = discounted = 0.0
    steps = unknown = 0
    end = ""
    _show_text(world, text)
    while not end:
        row = policy.observations.row(observation)
        action = policy.observations.action(policy.chosen(row, steps, deterministic, rng))
        observation, reward, terminated, truncated, _ = world.step(action)
        total, discounted = total + float(reward), discounted + policy.discount**steps * float(reward)
        steps, unknown = steps + 1, unknown + (row is None)
        end = "terminated" if terminated else "truncated" if truncated else "cut" if steps == limit else ""
        _show_text(world, text)
    return Episode(total, discounted, steps, end, unknown)


def _show_text(world: Any, text: bool) -> None:
    if text:
        print(str(world.render()).strip("\n"))


def _open_world(
    policy: Policy, env: Any, render: str | None, video: bool, options: Mapping[str, Any], allow_code: bool
) -> Any:
    """The environment, that of an id, or the one that the policy was learned in; with its own time limit."""
    if not (env is None or isinstance(env, str)):
        mode = getattr(env, "render_mode", None)
        if render not in (None, mode):
            raise InputError(
                f"{env!r} was made with render_mode={mode!r}: make it with render_mode={render!r}, or give its id"
            )
        return world_of(env, options)
    name, given = origin_of(policy.environment, env, options, allow_code=allow_code)
    with warnings.catch_warnings():
        if render is not None and not video:
            warnings.simplefilter("ignore")  # what is not offered is told here
        return check_render(world_of(name, given, render, limited=True), None if video else render)


def _record_video(world: Any, video: str | os.PathLike[str] | None) -> Any:
    """The environment, every episode of which becomes a file in the folder `video`."""
    if video is None:
        return world
    folder = str(validation.path(video, "video"))
    return environments.gymnasium_module().wrappers.RecordVideo(
        world, folder, episode_trigger=lambda _: True, disable_logger=True
    )
