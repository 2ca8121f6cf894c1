"""The regret in the average reward: the sum of Bellman gaps along the path, a table look-up a step.

With the certified optimum lo <= g* <= hi and a bias h (`ravi.planning.average`),

    Delta(x, a) = hi + h(x) - r(x, a) - (P h)(x, a) >= 0
    T g* - sum_t r(x_t, a_t) = sum_t Delta(x_t, a_t) + h(x_{T+1}) - h(x_1) + a martingale - T (hi - g*)

for any h, so that the expected regret of the literature is that of sum_t Delta plus `boundary`, h(x_{T+1}) - h(x_1), to
within T (hi - lo). h is the one of the solution, that of a bias-optimal policy.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import first
from ravi.core import MDP, Array, Measure, Recorder
from ravi.measures.curve import Curve, add_steps, curve, grid
from ravi.measures.recording import compiled_measure
from ravi.planning.average import AverageSolution
from ravi.planning.bellman import expect
from ravi.planning.certificates import EPS, tables
from ravi.runtime.ranges import Fixed, Past, PlaceOrNone
from ravi.validation import InputError


class Gaps(NamedTuple):
    regret: Curve
    key: Fixed  # of the seed's random numbers     (n,)
    begun: PlaceOrNone  # x_1, -1 before it is known    (n,)
    last: PlaceOrNone  # x_{t+1}                        (n,)
    plays: Past  # t                                    (n,)


def bellman_gaps(mdp: MDP, solution: AverageSolution) -> Array:
    """Delta (X, A), with the upper end of the interval of g*."""
    h, high = solution.bias, solution.gain + solution.gain_error
    gaps: Array = np.maximum(high + h[:, None] - mdp.rewards - expect(mdp, h[None])[0], 0.0)
    return gaps


def average_regret(mdp: MDP, steps: int, points: int, solution: AverageSolution) -> Measure:
    """The curve of the regret, its error, and what stands beside it."""
    if solution.gain_error > 1e-3:
        raise InputError(f"{mdp.name} has no regret in the average reward: {solution.undetermined}")
    times, gaps, h = grid(steps, points), bellman_gaps(mdp, solution), solution.bias
    rho = tables(mdp, average=True).grain * (1 + float(np.abs(h).max()))

    def init(keys: Array) -> Gaps:
        n = len(keys)
        none = np.full(n, -1, np.int32)
        return Gaps(curve(n, times), np.array(keys, np.uint64), none, none.copy(), np.zeros(n, np.int64))

    def results(m: Gaps) -> dict[str, Array]:
        known = m.plays > 0
        return {
            "regret": m.regret.values,
            "regret_total": m.regret.total,
            "regret_error": m.plays * (2 * solution.gain_error + rho + EPS * m.regret.total),
            "boundary": np.where(known, h[m.last] - h[m.begun], 0.0),
        }

    def own(m: Gaps, teams: int, rows: int) -> tuple[Any, ...]:
        return m, times, gaps

    return compiled_measure("average", init, results, Recorder(_record, own, reads=1))


@compiled
def _record(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    if first():
        (regret, key, begun, last, plays), times, gaps = own
        xs, _, _, _, _, lengths, firsts, after = path
        if lengths[i] > 0:
            if begun[i] < 0:
                begun[i] = xs[i, 0]
            last[i], plays[i] = after[i], firsts[i] + lengths[i] - 1
        add_steps(i, times, regret, gaps, 0, key, path)
