"""`Policy`: what a learner leaves behind, in one small file, that answers to observations.

A policy is a table over numbers. Its environment says which number an observation has (`ravi.live.encoders`), or which
observations were met (`Labels`). A policy of an MDP is asked with the numbers themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Floats, Playable
from ravi.live.encoders import Composite, Digits, Discrete, Encoder, Labels, encoder_from, label_of
from ravi.live.grid import Grid
from ravi.runtime import archive
from ravi.validation import InputError, require_pandas

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ravi.importers.imported import Imported
    from ravi.live.policies.playing import Episode
    from ravi.runtime.archive import Place

ENVIRONMENT: dict[str, Any] = {
    "name": str, "id": str | None, "options": dict[str, Any] | None, "termination": str,
    "observations": dict[str, Any], "actions": dict[str, Any], "seed": int,
}  # what is read of it  # fmt: skip
SPACE: dict[str, Any] = {"kind": str, "labels": list[Any], "keys": list[Any] | None, "spaces": list[dict[str, Any]]}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Policy:
    """A policy with all that is needed to play it, and a record of its origin. docs/guides/policies.md has the file.

    `policy(observation)` is an action of the environment that it was learned in.

    Attributes
    ----------
    table
        pi(a | x), of shape (X, A); or by age, the steps since the reset, of shape (S, X, A): the last stage serves on.
    discount
        gamma, which it was learned for.
    units
        What the learner's rewards 0 and 1 stand for.
    learner
        The id of the learner.
    steps
        The number of plays that it was learned from.
    seed
        The learner's seed.
    environment
        `Environment.plain()`; empty for an MDP.
    states
        What rows stand for, where states were discovered: labels, as JSON, of shape (X,).
    actions
        What columns stand for, likewise, of shape (A,).

    Examples
    --------
    >>> import ravi
    >>> best = ravi.solve(ravi.mdp("riverswim/3"))
    >>> policy = ravi.Policy(table=best.policy, discount=0.95)
    >>> policy.probabilities(0)
    array([0., 1.])
    """

    table: Floats
    discount: float
    units: tuple[float, float] = (0.0, 1.0)
    learner: str = ""
    steps: int = 0
    seed: int = 0
    environment: dict[str, Any] = field(default_factory=dict)
    states: list[Any] | None = None
    actions: list[Any] | None = None

    def __post_init__(self) -> None:
        for name, value in _checked(self).items():
            object.__setattr__(self, name, value)

    @property
    def stages(self) -> int:
        """The number of steps after a reset that have a policy of their own; 1 where one policy serves all."""
        return 1 if self.table.ndim == 2 else int(self.table.shape[0])

    @property
    def origin(self) -> str:
        """The learner, the environment and the number of steps that it was learned from."""
        where = self.environment.get("name", "")
        made = f"of {self.learner}" if self.learner else "of one's own"
        return made + (f" on {where}" if where else "") + (f", {self.steps:,} steps" if self.steps else "")

    def probabilities(self, x: int, age: int = 0) -> Floats:
        """pi(. | x) at this age   (A,)."""
        X = self.table.shape[-2]
        if not 0 <= x < X:
            raise InputError(f"x is {x}, but the policy's states are 0 to {X - 1}")
        return self.table[x] if self.table.ndim == 2 else self.table[min(age, self.stages - 1), x]

    def action(self, x: int, age: int, u: float) -> int:
        """The action that a number u in [0, 1) draws in state x, `age` steps after the reset; as a run draws it."""
        from ravi.runtime.walk import draw

        return int(draw(self.probabilities(x, age), u))

    @staticmethod
    def of(
        where: Playable | MDP | Imported | str,
        table: Any,
        discount: float | None = None,
        *,
        termination: str = "absorb",
        learner: str = "",
    ) -> Policy:
        """The policy of a table (X, A), of one action per state (X,), or of `ravi.solve(mdp)`; (S, X, A) is by the
        steps since a reset. The state after the end of an environment may be left out.

        where: an environment of Gymnasium, an MDP, or the id of one, or a model of `ravi.importers`, whose labels it is
        asked by. discount: gamma; of an environment it must be given. termination: what a terminal state is, "absorb"
        or "restart". learner: who found it, for the record.
        """
        from ravi.importers.imported import Imported
        from ravi.live.environment import Environment, is_an_mdp, opened_world

        if isinstance(where, Imported):
            mdp, played = where.mdp, where.played(table)
            return Policy(table=played, discount=mdp.discount, units=mdp.units, learner=learner,
                          states=where.states, actions=where.actions)  # fmt: skip
        facts = dict[str, Any](discount=discount, learner=learner)
        with opened_world(where) as world:
            if is_an_mdp(where):  # which never ends
                termination, facts = "restart", facts | {"discount": world.mdp.discount, "units": world.mdp.units}
            stream = Environment(world, termination=termination)
            facts["environment"] = stream.plain()
        rows = np.asarray(validation.of_actions(table, stream.actions, "table"))
        if rows.shape[-2:-1] == (stream.terminal,):  # the end, where no action matters, has no row
            rows = np.concatenate([rows, np.full_like(rows[..., :1, :], 1 / rows.shape[-1])], axis=-2)
        policy = Policy(table=rows, **facts)
        (X, A), (states, actions) = policy.table.shape[-2:], (stream.states, stream.actions)
        if (states, actions) != (X, A):
            end = "" if stream.terminal is None else ", the end among them"
            raise InputError(
                f"table is for {X} states and {A} actions, but {stream.name} has {states} states{end}, "
                f"and {actions} actions"
            )
        return policy

    @cached_property
    def observations(self) -> Observations:
        """Which row an observation has, and which action is a column."""
        return Observations(self)

    @cached_property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def chosen(self, row: int | None, age: int, deterministic: bool, rng: np.random.Generator) -> int:
        """The number of an action in state `row` (uniform where that is None), `age` steps after a reset: drawn by
        `rng`, or (`deterministic`) the likeliest."""
        if row is None:
            return int(rng.integers(self.table.shape[-1]))
        return int(self.probabilities(row, age).argmax()) if deterministic else self.action(row, age, rng.random())

    def __call__(self, observation: Any, *, deterministic: bool = False) -> Any:
        """An action for an observation, each as the environment has it; `predict` without its state."""
        action = self.predict(observation, deterministic=deterministic)[0]
        return action.item() if isinstance(action, np.int64) else action

    def predict(
        self,
        observation: Any,
        state: ArrayLike | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The action for an observation and the state of the policy, as Stable-Baselines3's `predict` has them.

        An observation is one of the environment that the policy was learned in, before any grid; several of a vector of
        environments, with one more axis in front, give several actions. A policy by age has a state, the steps since
        `episode_start`; any other has none. deterministic: the likeliest action. Else it is drawn, by numbers that
        follow from the policy's seed; where an observation was never met, uniformly. An action that is a number is
        NumPy's, `np.int64`.
        """
        several = self.observations.several(observation)
        each = [observation] if several is None else several
        likeliest = validation.flag(deterministic, "deterministic")
        ages = _of_each(0 if state is None else state, len(each), "state")
        ages = ages * (_of_each(0 if episode_start is None else episode_start, len(each), "episode_start") == 0)
        rows = zip(map(self.observations.row, each), ages.tolist(), strict=True)
        actions = [self.observations.action(self.chosen(row, age, likeliest, self._rng)) for row, age in rows]
        after = None if self.stages == 1 else ages + 1
        if several is None:
            action = np.int64(actions[0]) if type(actions[0]) is int else actions[0]
            return action, None if after is None else int(after[0])
        return np.array(actions), after

    def play(
        self,
        env: Playable | str | None = None,
        episodes: int = 1,
        *,
        render: str | None = None,
        video: str | PathLike[str] | None = None,
        seed: int = 0,
        deterministic: bool = False,
        limit: int = 10_000,
        options: Mapping[str, Any] | None = None,
        allow_code: bool = False,
    ) -> list[Episode]:
        """Play whole episodes of an environment (itself, its id, or None for that of the policy), and what they earned.

        render: "ansi" prints what the environment shows, "human" opens its window. video: a folder, in which every
        episode becomes a file (`RecordVideo`). Both are how an id is made; an environment shows itself as it was made.
        limit: the steps after which an episode is cut that the environment does not end. options: those of an id. seed:
        of the environment, and of the actions that are drawn. deterministic: the likeliest action, none is drawn.
        allow_code: the policy may name a module, whose code is then run (docs/guides/security.md).
        """
        from ravi.live.policies.playing import episodes as played

        return played(
            self, env, episodes, render=render, video=video, seed=seed, deterministic=deterministic, limit=limit,
            options=options, allow_code=allow_code,
        )  # fmt: skip

    def frame(self) -> Any:
        """The table as a pandas DataFrame: a row for each observation, a column for each action, as they are called."""
        return self.observations.frame(self.table)

    def save(self, path: Place) -> None:
        """Write one small file to `path`; `Policy.load` gives the same bits back."""
        archive.write_fields(path, "policy", self)

    @staticmethod
    def load(path: Place) -> Policy:
        """Read a policy and check it as if it had just been made. `ravi.load_policy` is this.

        Parameters
        ----------
        path
            The file that `save` wrote, or an open one.

        Returns
        -------
        Policy
            The same bits, and all that is needed to play it.

        Examples
        --------
        >>> import tempfile
        >>> import ravi
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ravi.Policy(table=[[0, 1], [1, 0]], discount=0.9).save(f"{folder}/it.policy")
        ...     policy = ravi.load_policy(f"{folder}/it.policy")
        >>> policy(0), policy(1)
        (1, 0)
        """
        return archive.read_fields(path, "policy", Policy)

    def _repr_html_(self) -> str:  # what a notebook shows
        from ravi.display.html import of_policy

        return of_policy(self)

    def __repr__(self) -> str:
        X, A = self.table.shape[-2:]
        stages = f", S={self.stages}" if self.table.ndim == 3 else ""
        return f"<Policy {self.origin}: X={X}, A={A}{stages}, gamma={self.discount:.10g}>"


def _of_each(value: Any, many: int, name: str) -> Any:
    """A whole number, or one for each of several observations   (many,)."""
    found = validation.finite(np.asarray(value, dtype=int) if isinstance(value, (bool, np.bool_)) else value, name)
    if found.shape not in ((), (many,)):
        raise InputError(f"{name} has shape {found.shape}, but there are {many} observations")
    return np.broadcast_to(found, many).astype(int)


def _checked(self: Policy) -> dict[str, Any]:
    """The fields of a policy, checked, in the types that are played and saved."""
    table = validation.finite(self.table, "table")
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise InputError(f"table has shape {table.shape}; it must be (X, A) or, by age, (S, X, A), all at least 1")
    validation.sums_to_one(table, "table")
    if not isinstance(self.learner, str):
        raise InputError(f"learner is {validation.shown(self.learner)}, not a text")
    if not isinstance(self.environment, Mapping):
        raise InputError(f"environment is {validation.shown(self.environment)}, not what Environment.plain() gives")
    archive.typed(self.environment, ENVIRONMENT, within="environment", partial=True)
    for name in ("observations", "actions"):
        archive.typed(self.environment.get(name, {}), SPACE, within=f"environment.{name}", partial=True)
    return {
        "table": validation.read_only_copy(table),
        "discount": validation.probability(self.discount, "discount"),
        "units": validation.units(self.units),
        "steps": validation.whole(self.steps, "steps", 0),
        "seed": validation.whole(self.seed, "seed", 0, 2**63 - 1),
        "environment": _plain(dict(self.environment), "environment"),
        "states": _labels(self.states, table.shape[-2], "states"),
        "actions": _labels(self.actions, table.shape[-1], "actions"),
    }


def _labels(labels: Any, size: int, name: str) -> list[Any] | None:
    if labels is None:
        return None
    if not isinstance(labels, (list, tuple)) or len(labels) != size:
        raise InputError(f"{name} is {validation.shown(labels)}, not a list of {size} labels")
    seen: dict[str, int] = {}
    for place, label in enumerate(labels):
        text = json.dumps(_plain(label, validation.at(name, [place])), sort_keys=True)
        if text in seen:
            raise InputError(f"{validation.at(name, [place])} is {label!r}, as is {validation.at(name, [seen[text]])}")
        seen[text] = place
    return _plain(list(labels), name)


def _plain(value: Any, name: str) -> Any:
    """The value as a file gives it back."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not JSON ({error})") from None


class Observations:
    """The observations and the actions of a policy's environment, as its rows and columns."""

    def __init__(self, policy: Policy) -> None:
        (self.X, A), at = policy.table.shape[-2:], policy.environment
        self.states = _encoder(at.get("observations"), policy.states, self.X)
        self.actions = _encoder(at.get("actions"), policy.actions, A)
        if self.actions.size != A:
            raise InputError(f"the policy has {A} columns, but its environment {self.actions.size} actions")

    def row(self, observation: Any) -> int | None:
        """The row of an observation; None for one that was not met when the policy was learned."""
        if isinstance(self.states, Labels) and observation not in self.states:
            return None
        number = self.states.number(observation)
        return number if number < self.X else None

    def action(self, number: int) -> Any:
        """What the environment's `step` takes."""
        return self.actions.observation(number)

    def several(self, observation: Any) -> list[Any] | None:
        """The observations of a vector of environments, one by one; None for a single one."""
        return _several(self.states, observation)

    def frame(self, table: Array) -> Any:
        """The table as a pandas DataFrame; its index are observations (of a grid, the centres of its cells)."""
        pandas = require_pandas("policy.frame()", "policy.table")
        rows = [_label(self.states.observation(x)) for x in range(min(self.X, self.states.size))]
        if len(rows) < self.X and not isinstance(self.states, Labels):
            rows.append("terminal")  # the absorbing state, beyond all observations
        parts = max(len(row) if isinstance(row, tuple) else 1 for row in rows)
        if parts > 1:  # an index of tuples has them all of a length
            rows = [((*row, *[""] * parts) if isinstance(row, tuple) else (row, *[""] * parts))[:parts] for row in rows]
        index = pandas.Index(rows, name=None if parts > 1 else "state")
        actions = [_label(self.actions.observation(a)) for a in range(table.shape[-1])]
        columns = pandas.Index(actions, name="action", tupleize_cols=False)
        if table.ndim == 2:
            return pandas.DataFrame(table[: len(rows)], index, columns)
        stages = [pandas.DataFrame(stage[: len(rows)], index, columns) for stage in table]
        return pandas.concat(stages, keys=range(len(table)), names=["age"])


def _encoder(plain: Any, labels: list[Any] | None, size: int) -> Encoder:
    if labels is not None:
        return Labels([label_of(label) for label in labels])
    return encoder_from(plain) if plain else Discrete(size)


def _several(space: Encoder, observation: Any) -> list[Any] | None:
    if isinstance(space, (Discrete, Digits, Grid)):
        axes = 0 if isinstance(space, Discrete) else len(space.shape)
        return list(observation) if np.ndim(observation) == axes + 1 else None
    if not isinstance(space, Composite):
        return None
    try:
        given = space.parts(observation)
    except InputError:
        return None  # told when its number is asked for
    parts = [_several(part, one) for part, one in zip(space.spaces, given, strict=True)]
    if any(part is None for part in parts) or len({len(part) for part in parts if part is not None}) != 1:
        return None
    return [space.whole(one) for one in zip(*parts, strict=True)]


def _label(observation: Any) -> Any:
    """An observation as one entry of an index: a number, a text, or a tuple of them."""
    plain = observation.tolist() if hasattr(observation, "tolist") else observation
    if not isinstance(plain, (list, tuple, Mapping)):
        return plain
    parts = tuple(map(_label, plain.values() if isinstance(plain, Mapping) else plain))
    return parts[0] if len(parts) == 1 else parts
