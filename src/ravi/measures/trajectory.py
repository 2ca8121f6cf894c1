"""The regret of the earlier literature: sum_t (V*(x_t) - V^{pi_t}(x_t)), along the states of the run.

The criterion of Liu and Su, of He, Zhou and Gu and of Zhou, He and Gu, on the value scale [0, H]. Section 6 of the
paper tells why it is not the objective here: a policy that falls into a trap at once pays at most H, once. It is
measured along the stream with resets, with V^{pi_t} exact to a certified error. Of a policy by age it is the value
from the age on at which x_t is met.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi._jit.teams import Buffer, each, first, sync, team, team_max, team_min
from ravi.core import MDP, Array, Measure, Path, Recorder
from ravi.measures.curve import Curve, curve, grid
from ravi.measures.recording import compiled_measure, take_over
from ravi.planning.bands import LONG
from ravi.planning.certificates import EPS, half_width, span_goal, sweep_limit, tables
from ravi.planning.evaluation import _evaluate, evaluate, staged_values
from ravi.planning.solver import Solution
from ravi.runtime.ranges import Age, Number, Past, PolicyOrNan, Positive
from ravi.runtime.walk import normalise_row, normalised

TOLERANCE = 1e-10  # of V^pi, as `evaluate` has it


class Trajectory(NamedTuple):
    policy: PolicyOrNan  # the policy that `loss` belongs to  (n, X, A), or (n, S, X, A)
    loss: Number  # V* - V^pi, by age                         (n, S or 1, X)
    age: Age  # steps since the last reset                    (n,)
    loss_error: Positive  # certified bound on its error      (n,)
    regret: Curve
    error: Positive  # certified bound on the error of the sum so far   (n,)
    opened: Past  # the step before the epoch    (n,)
    base_error: Positive  # `error` then             (n,)


def trajectory(mdp: MDP, steps: int, points: int, solution: Solution, stages: int = 0) -> Measure:
    times = grid(steps, points)
    shape = ((stages,) if stages else ()) + (mdp.states, mdp.actions)

    def init(keys: Array) -> Trajectory:
        n = len(keys)
        policy, age = np.full((n, *shape), np.nan), np.zeros(n, np.int64)
        loss, loss_error, error = np.zeros((n, max(stages, 1), mdp.states)), np.zeros(n), np.zeros(n)
        return Trajectory(policy, loss, age, loss_error, curve(n, times), error, np.zeros(n, np.int64), np.zeros(n))

    def values(policies: Array) -> tuple[Array, Array]:
        if stages:
            W, _, error = staged_values(mdp, policies)
            return W, error * mdp.horizon
        evaluation = evaluate(mdp, normalised(policies))
        return evaluation.V[:, None], np.asarray(evaluation.error)

    def bring(m: Trajectory, state: Any, path: Path, opening: bool) -> None:
        if opening and (changed := take_over(m.policy, state.policy, path)).any():
            V, error = values(m.policy[changed])
            m.loss[changed] = solution.V - V
            m.loss_error[changed] = solution.error + error

    def results(m: Trajectory) -> dict[str, Array]:
        rounding = EPS * steps * np.abs(m.regret.total)  # of the sum, term by term
        return {
            "trajectory_regret": m.regret.values,
            "trajectory_regret_total": m.regret.total,
            "trajectory_regret_error": m.error + rounding,
        }

    def own(m: Trajectory, teams: int, rows: int) -> tuple[Any, ...]:
        X, A = mdp.states, mdp.actions
        scratch = Buffer((teams, X)), Buffer((teams, X)), Buffer((teams, X, A))
        limit = sweep_limit(mdp.discount, EPS)
        return m, times, (solution.V, solution.error, tables(mdp), TOLERANCE, limit), scratch

    def own_here(m: Trajectory, teams: int, rows: int) -> tuple[Any, ...]:
        against = solution.V, solution.error, tables(mdp), TOLERANCE, mdp.initial
        return m, times, against, Buffer((teams, 1, mdp.states, mdp.actions))

    there = Recorder(_RECORD, own, exact=False)  # by sweeps
    if stages or mdp.states >= LONG:  # from there on a band is looked for
        lost = Recorder(_RECORD_LOST, lambda m, teams, rows: (m, times, (), ()))
        measure = compiled_measure("trajectory", init, results, lost, before=bring)
        return measure._replace(recorder=None if stages else there)
    here = Recorder(_RECORD_HERE, own_here)
    return compiled_measure("trajectory", init, results, there._replace(here=here))


def _record(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    (before, loss, age, loss_error, curve, error, opened, base_error), times, against, scratch = own
    _, _, _, _, _, lengths, firsts, _ = path
    if opening:
        update_loss(i, policy, before, loss, loss_error, against, scratch)
    if first():
        if opening:
            opened[i], base_error[i] = firsts[i] - 1, error[i]
        add_losses(i, times, curve, loss, age, path)
        last = min(firsts[i] - 1 + lengths[i], times[times.shape[0] - 1])
        error[i] = base_error[i] + max(last - opened[i], 0) * loss_error[i]


@compiled
def loss_by_sweeps(i, policy, before, loss, loss_error, against, scratch):  # type: ignore[no-untyped-def]
    """V* - V^pi of the policy of a seed, where it is another one than before; V^pi by sweeps, certified; a team's."""
    optimum, optimum_error, tables, tol, limit = against
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = P.shape
    W, TW, pi = scratch[0][team()], scratch[1][team()], scratch[2][team()]
    moved, off = 0, 0.0
    for x in each(X):
        for a in range(A):
            if before[i, x, a] != policy[i, x, a]:
                moved = 1
                before[i, x, a] = policy[i, x, a]
        normalise_row(before[i, x], pi[x])
        mass = 0.0
        for a in range(A):
            mass += pi[x, a]
        off = max(off, abs(mass - 1.0))
        W[x] = (optimum[x] - loss[i, 0, x]) - (optimum[0] - loss[i, 0, 0])  # V of the policy before, up to a constant
    moved, off = team_max(moved), team_max(off)
    if moved > 0:
        grain = tables.grain + EPS * A + off
        low, high, size, sweeps, done = 0.0, 0.0, 0.0, 0, False
        while not done:
            low, high, size = np.inf, -np.inf, 0.0
            for x in each(X):
                value = 0.0
                for a in range(A):
                    mean = 0.0
                    for j in range(B):
                        mean += P[x, a, j] * W[successors[x, a, j]]
                    value += pi[x, a] * (r[x, a] + gamma * mean)
                TW[x] = value
                low, high, size = min(low, value - W[x]), max(high, value - W[x]), max(size, abs(W[x]))
            low, high, size = team_min(low), team_max(high), team_max(size)
            sweeps += 1
            done = high - low <= span_goal(tol, size, gamma, grain) or sweeps >= limit
            if not done:
                for x in each(X):
                    W[x] = TW[x] - (low + high) / 2
                sync()
        shift = gamma / (1.0 - gamma) * (low + high) / 2  # to the middle of the bounds
        for x in each(X):
            loss[i, 0, x] = optimum[x] - (TW[x] + shift)
        if first():
            loss_error[i] = optimum_error + half_width(low, high, size, gamma, grain)
    sync()


@partial(compiled, _nrt=True)  # it allocates, also where what calls it does not
def loss_by_evaluation(i, policy, before, loss, loss_error, against, pi):  # type: ignore[no-untyped-def]
    """`loss_by_sweeps` with V^pi as `evaluate` has it, of one thread."""
    optimum, optimum_error, tables, tol, initial = against
    moved = False
    for x in range(policy.shape[1]):
        for a in range(policy.shape[2]):
            moved |= before[i, x, a] != policy[i, x, a]
            before[i, x, a] = policy[i, x, a]
        normalise_row(before[i, x], pi[0, 0, x])
    if moved:
        V, _, _, error = _evaluate(tables, pi[0], initial, tol, np.zeros((1, policy.shape[1])))
        for x in range(policy.shape[1]):
            loss[i, 0, x] = optimum[x] - V[0, x]
        loss_error[i] = optimum_error + error[0]


@compiled
def keep_loss(i, policy, before, loss, loss_error, against, scratch):  # type: ignore[no-untyped-def]
    """In place of `loss_by_sweeps`, where Python has done so."""


update_loss = loss_by_sweeps  # `bound` puts that of a target here


@compiled
def add_losses(i, times, kept, loss, age, path):  # type: ignore[no-untyped-def]
    """Step t of seed i adds the loss of x_t at its age."""
    (total, cursor, values), (state, _, _, _, reset, length, first, _) = kept, path
    end, last = times[times.shape[0] - 1], loss.shape[1] - 1
    for l in range(length[i]):
        t = first[i] + l
        if t > end:  # padding
            break
        total[i] += loss[i, min(age[i], last), state[i, l]]
        age[i] = 0 if reset[i, l] else age[i] + 1
        if times[cursor[i]] == t:
            values[i, cursor[i]] = total[i]
            cursor[i] += 1


_RECORD, _RECORD_HERE, _RECORD_LOST = (
    bound(_record, update_loss=one) for one in (loss_by_sweeps, loss_by_evaluation, keep_loss)
)
