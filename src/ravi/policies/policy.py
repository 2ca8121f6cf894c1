"""What did a learner leave behind? A policy by itself, in one small file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import fspath
from typing import TYPE_CHECKING, Any

from ravi import checks, headers
from ravi.checks import InputError
from ravi.core import Array

if TYPE_CHECKING:
    from ravi.files import Place

ENVIRONMENT: dict[str, Any] = {
    "name": str, "id": str | None, "options": dict[str, Any] | None, "termination": str,
    "observations": dict[str, Any], "actions": dict[str, Any], "seed": int,
}  # what is read of it  # fmt: skip
SPACE: dict[str, Any] = {"kind": str, "labels": list[Any], "keys": list[Any] | None, "spaces": list[dict[str, Any]]}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Policy:
    """A policy by itself: all that is needed to play it, and where it came from. docs/policies.md has the file."""

    table: Array  # pi(a | x), or by age, the plays since the reset; the last stage serves on   (X, A) or (S, X, A)
    discount: float  # gamma, which it was learned for
    units: tuple[float, float] = (0.0, 1.0)  # what the learner's rewards 0 and 1 stand for
    learner: str = ""
    steps: int = 0  # plays that it was learned from
    seed: int = 0
    environment: dict[str, Any] = field(default_factory=dict)  # `Environment.plain()`; nothing for an MDP
    states: list[Any] | None = None  # what rows stand for, where states were discovered: labels, as JSON   (X,)
    actions: list[Any] | None = None  # likewise   (A,)

    def __post_init__(self) -> None:
        for name, value in _checked(self).items():
            object.__setattr__(self, name, value)

    @property
    def stages(self) -> int:
        return 1 if self.table.ndim == 2 else int(self.table.shape[0])

    @property
    def origin(self) -> str:
        """Who learned it, where, and from how many plays."""
        where = self.environment.get("name", "")
        made = f"of {self.learner}" if self.learner else "of one's own"
        return made + (f" on {where}" if where else "") + (f", {self.steps:,} plays" if self.steps else "")

    def probabilities(self, x: int, age: int = 0) -> Array:
        """pi(. | x) at this age   (A,)."""
        X = self.table.shape[-2]
        if not 0 <= x < X:
            raise InputError(f"x is {x}, but the policy's states are 0 to {X - 1}")
        return self.table[x] if self.table.ndim == 2 else self.table[min(age, self.stages - 1), x]

    def action(self, x: int, age: int, u: float) -> int:
        """The action that a number u in [0, 1) draws in state x, `age` plays after the reset; as a run draws it."""
        from ravi.walk import draw

        return int(draw(self.probabilities(x, age), u))

    def save(self, path: Place) -> None:
        """Write one small file; `Policy.load` gives the same bits back."""
        from ravi.files import write

        header = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "table"}
        write(path, "policy", header, {"table": self.table})

    @staticmethod
    def load(path: Place) -> Policy:
        """Read a policy and check it as if it had just been made."""
        from ravi.files import read

        header, arrays = read(path, "policy")
        where = fspath(path) if isinstance(path, str) or hasattr(path, "__fspath__") else "the content"
        values = {each.name: (header | arrays).get(each.name, ...) for each in fields(Policy)}
        missing = [name for name, value in values.items() if value is ...]
        if missing:
            raise InputError(f"{where} is damaged: it has no {', '.join(missing)}")
        try:
            return Policy(**values)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def __repr__(self) -> str:
        X, A = self.table.shape[-2:]
        stages = f", S={self.stages}" if self.table.ndim == 3 else ""
        return f"<Policy {self.origin}: X={X}, A={A}{stages}, gamma={self.discount:.10g}>"


def _checked(self: Policy) -> dict[str, Any]:
    """The fields of a policy, checked, in the types that are played and saved."""
    table = checks.finite(self.table, "table")
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise InputError(f"table has shape {table.shape}; it must be (X, A) or, by age, (S, X, A), all at least 1")
    checks.sums_to_one(table, "table")
    if not isinstance(self.learner, str):
        raise InputError(f"learner is {checks.shown(self.learner)}, not a text")
    if not isinstance(self.environment, Mapping):
        raise InputError(f"environment is {checks.shown(self.environment)}, not what Environment.plain() gives")
    headers.checked(self.environment, ENVIRONMENT, within="environment", partial=True)
    for name in ("observations", "actions"):
        headers.checked(self.environment.get(name, {}), SPACE, within=f"environment.{name}", partial=True)
    return {
        "table": checks.sealed(table),
        "discount": checks.probability(self.discount, "discount"),
        "units": checks.units(self.units),
        "steps": checks.whole(self.steps, "steps", 0),
        "seed": checks.whole(self.seed, "seed", 0, 2**63 - 1),
        "environment": _plain(dict(self.environment), "environment"),
        "states": _labels(self.states, table.shape[-2], "states"),
        "actions": _labels(self.actions, table.shape[-1], "actions"),
    }


def _labels(labels: Any, size: int, name: str) -> list[Any] | None:
    if labels is None:
        return None
    if not isinstance(labels, (list, tuple)) or len(labels) != size:
        raise InputError(f"{name} is {checks.shown(labels)}, not a list of {size} labels")
    seen: dict[str, int] = {}
    for place, label in enumerate(labels):
        text = json.dumps(_plain(label, checks.at(name, [place])), sort_keys=True)
        if text in seen:
            raise InputError(f"{checks.at(name, [place])} is {label!r}, as is {checks.at(name, [seen[text]])}")
        seen[text] = place
    return _plain(list(labels), name)


def _plain(value: Any, name: str) -> Any:
    """The value as a file gives it back."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not JSON ({error})") from None
