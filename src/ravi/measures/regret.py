"""What is the regret? sum_t <mu* - mu^{pi_t}, r>, computed from the policies, not sampled (Section 2).

Every epoch's policy is scored by `gap`, to a certified error; a step of the epoch costs its gap. The regret of a seed
is then known to within T (error of rho*) + sum_t (error of rho(pi_t)), which is part of the result. No Monte Carlo.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Measure, Path
from ravi.measures.curve import Curve, add_constant, curve, grid
from ravi.measures.gap import Tracked, follow, track
from ravi.measures.log import Log
from ravi.planning.solve import Solution

TOLERANCE = 1e-10  # of rho(pi), per policy


class Regret(NamedTuple):
    tracked: Tracked
    regret: Curve
    error: Array  # certified bound on the error of the regret so far   (n,)
    starts: Log  # T_k, 0 where a seed has ended
    gaps: Log  # gap_k


def regret(mdp: MDP, steps: int, points: int, solution: Solution, *, keep_epochs: bool, tol: float = TOLERANCE) -> Measure:
    times = grid(steps, points)

    def init(n: int) -> Regret:
        return Regret(track(mdp, n), curve(n, times), np.zeros(n), Log(n, np.int64), Log(n, np.float64))

    def record(m: Regret, state: Any, path: Path, opening: bool) -> Regret:
        if opening:
            follow(mdp, m.tracked, state.policy, path.length, tol)
        gap = solution.optimum - m.tracked.returns
        if opening and keep_epochs:
            m.starts.append(np.where(path.length > 0, path.time, 0))
            m.gaps.append(gap)
        add_constant(times, *m.regret, path.time, path.length, gap)
        within = np.clip(steps + 1 - path.time, 0, path.length)  # padding costs nothing
        np.add(m.error, within * (m.tracked.error + solution.optimum_error), out=m.error)
        return m

    def results(m: Regret) -> dict[str, Array]:
        return {
            "regret": m.regret.values,
            "regret_total": m.regret.total,
            "regret_error": m.error,
            "gap": solution.optimum - m.tracked.returns,
            "T_k": m.starts.table,
            "gap_k": m.gaps.table,
        }

    return Measure("regret", init, record, results)
