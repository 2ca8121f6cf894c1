"""Gymnasium's environments that ship their table, by id; `ravi.gymnasium` says how they are read."""

from __future__ import annotations

from ravi.core import MDP


def gymnasium(
    env: str = "FrozenLake-v1", discount: float = 0.99, termination: str = "absorb", options: str = ""
) -> MDP:
    """Gymnasium's environments with a table, without time limits; options=map_name:8x8;is_slippery:false

    Terminated transitions enter one more state that is never left (`absorb`), or lead to nu_0 (`restart`).
    """
    from ravi.mdps.from_gymnasium import by_id

    return by_id(env, discount, termination, options)
