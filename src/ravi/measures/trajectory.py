"""What is the regret of the earlier literature? sum_t (V*(x_t) - V^{pi_t}(x_t)), along the states that are met.

The criterion of Liu and Su, of He, Zhou and Gu and of Zhou, He and Gu, on the value scale [0, H]. Section 6 of the
paper tells why it is not the objective here: a policy that falls into a trap at once pays at most H, once. It is
measured along the stream with resets, with V^{pi_t} exact to a certified error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Measure, Path
from ravi.measures.curve import Curve, add_steps, curve, grid
from ravi.planning.certificates import EPS
from ravi.planning.evaluation import evaluate
from ravi.planning.solver import Solution


class Trajectory(NamedTuple):
    policy: Array  # the policy that `loss` belongs to    (n, X, A)
    loss: Array  # V* - V^pi                              (n, X)
    loss_error: Array  # certified bound on its error     (n,)
    regret: Curve
    error: Array  # certified bound on the error of the sum so far   (n,)
    opened: Array  # the play before the epoch    (n,)
    base_error: Array  # `error` then             (n,)


def trajectory(mdp: MDP, steps: int, points: int, solution: Solution) -> Measure:
    times = grid(steps, points)

    def init(keys: Array) -> Trajectory:
        n = len(keys)
        policy = np.full((n, mdp.states, mdp.actions), np.nan)
        loss, loss_error, error = np.zeros((n, mdp.states)), np.zeros(n), np.zeros(n)
        return Trajectory(policy, loss, loss_error, curve(n, times), error, np.zeros(n, np.int64), np.zeros(n))

    def record(m: Trajectory, state: Any, path: Path, opening: bool) -> Trajectory:
        if opening:
            m.opened[:], m.base_error[:] = path.time - 1, m.error
            for i in np.flatnonzero(path.length):
                if not np.array_equal(m.policy[i], state.policy[i]):
                    m.policy[i] = state.policy[i]
                    evaluation = evaluate(mdp, state.policy[i])
                    m.loss[i] = solution.V - evaluation.V
                    m.loss_error[i] = solution.error + evaluation.error
        add_steps(times, *m.regret, m.loss[:, :, None], path.time, path.length, path.state, path.action)
        last = np.minimum(path.time - 1 + path.length, steps)
        m.error[:] = m.base_error + np.maximum(last - m.opened, 0) * m.loss_error
        return m

    def results(m: Trajectory) -> dict[str, Array]:
        rounding = EPS * steps * np.abs(m.regret.total)  # of the sum, term by term
        return {
            "trajectory_regret": m.regret.values,
            "trajectory_regret_total": m.regret.total,
            "trajectory_regret_error": m.error + rounding,
        }

    return Measure("trajectory", init, record, results)
