"""What was earned? The realised reward sum_t r(x_t, a_t), for the record; the headline is the exact regret."""

from __future__ import annotations

from typing import Any

from ravi.core import MDP, Array, Measure, Path
from ravi.measures.curve import Curve, OnGrid, add_steps, curve, grid


def rewards(mdp: MDP, steps: int, points: int) -> Measure:
    times = grid(steps, points)

    def record(m: Curve, state: Any, path: Path, opening: bool) -> Curve:
        add_steps(times, *m, mdp.rewards, path.time, path.length, path.state, path.action)
        return m

    def results(m: Curve) -> dict[str, Array]:
        return {"reward": m.values, "reward_total": m.total}

    return Measure("rewards", lambda keys: OnGrid(*curve(len(keys), times)), record, results)
