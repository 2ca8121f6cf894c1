"""Which row of a policy has an observation of its environment, and which action is a column?

A policy is a table over numbers. Its environment says which number an observation has (`ravi.live.numberings`), or
which observations were met (`ravi.live.labels`). A policy of an MDP is asked with the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.core import Array
from ravi.live.grid import Grid
from ravi.live.labels import Labels, named
from ravi.live.numberings import Digits, Discrete, Parts, Space
from ravi.live.spaces import space_from
from ravi.validation import InputError, require_pandas

if TYPE_CHECKING:
    from ravi.live.policies.policy import Policy


class Observations:
    """The observations and the actions of a policy's environment, as its rows and columns."""

    def __init__(self, policy: Policy) -> None:
        (self.X, A), at = policy.table.shape[-2:], policy.environment
        self.states = _space(at.get("observations"), policy.states, self.X)
        self.actions = _space(at.get("actions"), policy.actions, A)
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


def _space(plain: Any, labels: list[Any] | None, size: int) -> Space:
    if labels is not None:
        return Labels([named(label) for label in labels])
    if not plain:
        return Discrete(size)
    return Labels.of(plain) if plain.get("kind") == "labels" else space_from(plain)


def _several(space: Space, observation: Any) -> list[Any] | None:
    if isinstance(space, (Discrete, Digits, Grid)):
        axes = 0 if isinstance(space, Discrete) else len(space.shape)
        return list(observation) if np.ndim(observation) == axes + 1 else None
    if not isinstance(space, Parts):
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
