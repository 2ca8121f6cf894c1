"""`Environment`: an environment of Gymnasium as a stream. States and actions are numbers, its ends stand for a choice.

An environment's termination is no property of a discounted problem; what it stands for is a choice. `absorb`: a
terminated transition leads to one more state, the last one, where every action stays and earns 0. `restart`: it leads
to where the environment begins anew. A truncation is neither: the true successor is reported, and the stream is cut.

Reset number k of the environment (k = 0, 1, ...) has the seed `seed_of(seed, k)`, a pure function. So an environment
that is made anew goes on, from a reset, as the one that was lost would have: nothing of it needs to be saved.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from ravi import ids, validation
from ravi.core import MDP
from ravi.gymnasium import TERMINATIONS
from ravi.live.encoders import Discrete, Encoder, Labels, encoder_of, kind_of, levels_of
from ravi.live.grid import Grid
from ravi.live.rewards import real_number
from ravi.mdps import MDPS
from ravi.mdps.environments import IDS, gymnasium_module, id_of, make, name_of, open_environment
from ravi.validation import InputError, StreamError

TERMINAL = ("terminal",)  # the label of the absorbing state, where states are discovered
Step = tuple[int, float, bool]  # successor; reward, in the environment's units; whether a reset must come next
CHECKED = 2  # steps that Gymnasium's own checks look at
COUNTERS = ("plays", "resets", "steps", "terminations", "truncations")


def world_of(
    env: Any,
    options: Mapping[str, Any] | None = None,
    render: str | None = None,
    *,
    discount: float | None = None,
    limited: bool = False,
) -> Any:
    """An environment: itself, that of an id, or that of an MDP or of the id or file of one.

    options, render: of an id of Gymnasium. discount: of an MDP in a file that has none. limited: with the time limit of
    the id; else without, since a truncation says nothing about a discounted problem.
    """
    if is_an_mdp(env):
        if options:
            raise InputError(f"{env} is an MDP, and options are for an environment; those of an MDP are in its id")
        world = make(ids.mdp(env, discount=discount))
        if isinstance(env, str):
            IDS[world] = env if discount is None else f"{env},discount={discount!r}"
        return world
    if not isinstance(env, str):
        return open_environment(env, options)
    given = ({} if limited else {"max_episode_steps": -1}) | dict(options or {})
    given |= {} if render is None else {"render_mode": render}
    try:
        return open_environment(env, given)
    except InputError as error:
        if ids.name_of(env, ids.LEARNERS) is not None:
            raise InputError(f"{env} is a learner, not an environment; the environment comes first") from None
        if env in gymnasium_module().registry:
            raise
        near = validation.did_you_mean(re.split("[/,]", env)[0], [*MDPS, *ids.WORLDS, *gymnasium_module().registry])
        if near and not re.search(r":|-v\d+$", env):
            raise InputError(f"there is no MDP, and no environment, {validation.shown(env)}.{near}") from None
        raise InputError(f"{error}{'' if 'Did you mean' in str(error) else near}") from None


@contextmanager
def opened_world(env: Any, discount: float | None = None) -> Iterator[Any]:
    """`world_of`, closed at the end if it was opened here: an error by then is worth less than what was done."""
    world = world_of(env, discount=discount)
    try:
        yield world
    finally:
        if isinstance(env, str):
            with suppress(Exception):
                world.close()


def is_an_mdp(env: Any) -> bool:
    """Whether this is an MDP, or the id or the file of one."""
    return isinstance(env, MDP) or (isinstance(env, (str, os.PathLike)) and ids.names_an_mdp(os.fspath(env)))


class Environment:
    """An environment as a stream; what `world_of` takes, it is made of."""

    def __init__(
        self,
        env: Any,
        *,
        termination: str = "absorb",
        grid: Grid | Mapping[Any, Grid] | None = None,
        seed: int = 0,
        discover: bool = False,
        skip: bool = False,
        levels: bool = False,
    ) -> None:
        self.env = world_of(env)
        self.termination = validation.one_of(termination, TERMINATIONS, "termination")
        self.seed = validation.whole(seed, "seed", 0)
        self.name = name_of(self.env)
        if validation.flag(discover, "discover") and grid is not None:
            raise InputError("discover and grid are both given: observations are discovered, or cut into cells")
        self.discovered = discover  # whether observations get numbers as they are met
        self.observation_space: Encoder = Labels() if discover else encoder_of(self.env.observation_space, grid)
        self.looked = 0  # steps of a warm-up, before the learner's
        self.levels = levels  # whether actions that are a Box are a few levels of it
        self._offered, self._offering = self.env.action_space, _inside(self.env, _asks)
        try:
            self.action_space: Encoder = self._actions()
        except InputError as error:
            raise InputError(f"the actions of {self.name}: {error}") from None
        self.actions = self.action_space.size
        self._step = self.env.step
        self.terminal: int | None = None  # the extra absorbing state
        if termination == "absorb":
            self.terminal = (
                self.observation_space.size if discover is False else self.observation_space.number(TERMINAL)
            )
        self.plays = 0  # calls of `step`
        self.resets = self.steps = 0  # of the environment: an absorbed play is no step of it
        self.terminations = self.truncations = 0
        self._absorbed, self._begun = False, False
        self.before = self.after = None  # the observations of the last step of the environment
        self.skip = skip  # whether plays after an end are left out, but for the first, which shows what it earns

    @property
    def states(self) -> int:
        """How many states there are, or were met so far."""
        return self.observation_space.size + (self.terminal is not None and not self.discovered)

    def reset(self) -> int:
        """Begin anew: the state that the environment's reset number `resets` leads to."""
        answer = self.env.reset(seed=seed_of(self.seed, self.resets))
        try:
            observation, _ = answer
        except (TypeError, ValueError):
            raise StreamError(f"{self._at_reset()}: it gave {answer!r}, not an observation and its info") from None
        try:
            state = self.observation_space.number(observation)
        except InputError as error:
            raise StreamError(f"{self._at_reset()}: the observation {error}") from None
        self._same_actions()
        self.resets += 1
        self._absorbed, self._begun, self.after = False, True, observation
        self._step = (_inside(self.env, _only_checks) if self.steps >= CHECKED else self.env).step
        return state

    def step(self, action: int) -> Step:
        """Play an action, by its number."""
        self.plays += 1
        if self._absorbed:
            assert self.terminal is not None
            return self.terminal, 0.0, self.skip and self.plays > self.steps
        if not self._begun:
            raise StreamError(f"{self._at()}: the environment must be reset first")
        if not 0 <= action < self.actions:
            raise StreamError(f"{self._at()}: action {action}, but actions are 0 to {self.actions - 1}")
        answer = self._step(self.action_space.observation(action))
        self.steps += 1
        try:
            observation, reward, terminated, truncated, _ = answer
        except (TypeError, ValueError):
            raise StreamError(f"{self._at()}: it gave {answer!r}, not the five values of a step") from None
        if type(terminated) is not bool or type(truncated) is not bool:
            terminated, truncated = self._flag(terminated, "terminated"), self._flag(truncated, "truncated")
        successor = -1
        if not (terminated and self.discovered):  # an end that is discovered is no state
            try:
                successor = self.observation_space.number(observation)
            except InputError as error:
                raise StreamError(f"{self._at()}: the observation {error}") from None
        self.before, self.after = self.after, observation
        if type(reward) is int and abs(reward) < 2**53:
            reward = float(reward)
        if type(reward) is not float or not math.isfinite(reward):
            try:
                reward = real_number(reward)
            except InputError as error:
                raise StreamError(f"{self._at()}: the reward {error}") from None
        if self._offering.action_space is not self._offered:
            self._same_actions()
        if terminated:
            self.terminations += 1
            if self.terminal is None:
                return self.reset(), reward, False
            self._absorbed = True
            return self.terminal, reward, self.skip and self.plays > self.steps
        if truncated:
            self.truncations += 1
            self._begun = False
            return successor, reward, True
        return successor, reward, False

    def cut(self, grid: Grid) -> None:
        """The observations are the cells of this grid from now on, which has as many as the states, or all is new."""
        self.observation_space = grid
        if self.terminal is not None:
            self.terminal = grid.size

    def plain(self) -> dict[str, Any]:
        """What made this stream, and how far it is, as JSON."""
        return {
            "name": self.name,
            **_origin(self.env),
            "termination": self.termination,
            "observations": self.observation_space.plain(),
            "actions": self.action_space.plain(),
            "seed": self.seed,
            **{counter: getattr(self, counter) for counter in COUNTERS},
            **({"looked": self.looked} if self.looked else {}),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Count on from where another stream of the same environment was; the next reset goes on as its would have."""
        mine = self.plain()
        observations = plain.get("observations")
        if self.discovered and isinstance(observations, dict) and observations.get("kind") == "labels":
            mine["observations"] = observations  # it knows them from there
        for fact in ("name", "options", "termination", "observations", "actions", "seed"):
            if plain.get(fact) != mine[fact]:
                raise InputError(f"this stream has {fact} {mine[fact]!r}, the one to go on from {plain.get(fact)!r}")
        counts = {counter: validation.whole(plain.get(counter), counter, 0) for counter in COUNTERS}
        self.looked = validation.whole(plain.get("looked", 0), "looked", 0)
        for counter, count in counts.items():
            setattr(self, counter, count)
        if self.discovered:
            self.observation_space = Labels.of(mine["observations"])
        self._absorbed = self._begun = False

    def close(self) -> None:
        self.env.close()

    def _actions(self) -> Encoder:
        space = self.env.action_space
        if kind_of(space) == "Box" and not self.levels:
            raise InputError(
                f"{space} is continuous; learners here choose among finitely many: a wrapper says which, or leave out "
                "the learner: the default takes a few levels"
            )
        return encoder_of(space, levels_of(space) if self.levels else None)

    def _flag(self, value: Any, name: str) -> bool:
        try:
            return validation.flag(value, name)
        except InputError as error:
            raise StreamError(f"{self._at()}: {error}") from None

    def _same_actions(self) -> None:
        space, known = self.env.action_space, self.action_space
        if space is self._offered and type(known) is Discrete and (space.n, space.start) == (known.size, known.start):
            return
        if (offered := self._actions()).plain() != known.plain():
            raise StreamError(
                f"{self._at()}: the actions were {known!r}, and now are {offered!r}; a problem has one action set"
            )
        self._offered, self._offering = space, _inside(self.env, _asks)

    def _at(self) -> str:
        return f"{self.name}, step {self.plays}"

    def _at_reset(self) -> str:
        return f"{self._at()}, reset {self.resets + 1}"

    def __repr__(self) -> str:
        return f"<Environment {self.name}: X={self.states}, A={self.actions}, {self.termination}, {self.plays} steps>"


def _inside(env: Any, passes: Callable[[Any, Any], bool]) -> Any:
    """The environment below those wrappers of Gymnasium that pass things on: each call of theirs takes time."""
    gymnasium = sys.modules.get("gymnasium")
    while gymnasium is not None and isinstance(env, gymnasium.Wrapper) and passes(gymnasium, env):
        env = env.env
    return env


def _asks(gymnasium: Any, env: Any) -> bool:
    """Whether a wrapper has no actions of its own."""
    return type(env).action_space is gymnasium.Wrapper.action_space and getattr(env, "_action_space", env) is None


def _only_checks(gymnasium: Any, env: Any) -> bool:
    """Whether a wrapper passes steps on, after the first ones, which it has checked."""
    checking = gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker
    return type(env) in checking and "step" not in vars(env)


def _origin(env: Any) -> dict[str, Any]:
    """How to make the environment again: its id and the options that it was made with, where a file can hold them."""
    if (identity := id_of(env)) is None:
        return {"id": None, "options": None}
    given = {} if env.spec is None else env.spec.kwargs
    options = {name: value for name, value in given.items() if name != "render_mode"}
    try:
        return {"id": identity, "options": json.loads(json.dumps(options))}
    except (TypeError, ValueError):
        return {"id": identity, "options": None}


def seed_of(seed: int, reset: int) -> int:
    """The seed of a reset: the upper 63 bits of SHA-256 of the text "seed reset"."""
    return int.from_bytes(sha256(f"{seed} {reset}".encode()).digest()[:8], "big") >> 1
