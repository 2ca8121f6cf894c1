"""The regret by gains: sum_t (g* - g^{pi_t}(x_t)), by the state that each step is in.

A policy may have several recurrent classes, and its gain then depends on the state: the least gain over classes is not
what is played. Gains are exact up to rounding: states are taken out of the chain of pi one by one, by sums of numbers
that are not negative (Grassmann, Taksar and Heyman 1985), transient states first. What a step of it rounds off is a
relative change of the entries of a chain of X states, of at most (X + 4) eps, and such a change of size d changes a
gain by at most 2 X d of it (C. O'Cinneide, "Entrywise perturbation theory and error analysis for Markov chains",
Numerische Mathematik 65, 1993): 2 X (X + 1) (X + 4) eps for X steps, doubled here for what the rewards collect and for
the rows of P and pi, which sum to 1 but for rounding.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, first, sync, team
from ravi.core import MDP, Array, Measure, Recorder
from ravi.measures.curve import Curve, add_steps, curve, grid
from ravi.measures.recording import compiled_measure
from ravi.planning.average import AverageSolution
from ravi.planning.certificates import EPS, tables
from ravi.runtime.ranges import Fixed, Number, Past, PolicyOrNan
from ravi.runtime.walk import normalise_row
from ravi.validation import InputError

MOST = 2_000  # states: a policy costs X^3


class Lost(NamedTuple):
    policy: PolicyOrNan  # the policy that `loss` belongs to   (n, X, A)
    loss: Number  # g* - g^pi, the same for every action       (n, X, A)
    key: Fixed  # (n,)
    regret: Curve
    plays: Past  # t   (n,)


def gain_regret(mdp: MDP, steps: int, points: int, solution: AverageSolution) -> Measure:
    """The curve of the sum of differences of gains, and its error."""
    times, (X, A) = grid(steps, points), mdp.rewards.shape
    if X > MOST:
        raise InputError(f"record names 'gain', which takes X^3 a policy: {mdp.name} has {X} states, at most {MOST} do")
    arrays = tables(mdp, average=True)
    error = solution.gain_error + 4 * (X + 4) ** 3 * EPS + 2 * X * arrays.grain

    def init(keys: Array) -> Lost:
        n = len(keys)
        none, key = np.full((n, X, A), np.nan), np.array(keys, np.uint64)
        return Lost(none, np.zeros((n, X, A)), key, curve(n, times), np.zeros(n, np.int64))

    def results(m: Lost) -> dict[str, Array]:
        total = m.regret.total
        off = m.plays * (error + EPS * np.abs(total))
        return {"gain_regret": m.regret.values, "gain_regret_total": total, "gain_regret_error": off}

    def own(m: Lost, teams: int, rows: int) -> tuple[Any, ...]:
        scratch = Buffer((teams, X, X)), Buffer((teams, X, X), np.bool_), Buffer((teams, 4, X)), Buffer((teams, A))
        return m, times, solution.gain, arrays, scratch

    return compiled_measure("gain", init, results, Recorder(_record, own, reads=1))


@compiled
def _record(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """An epoch of one seed; one thread's."""
    (before, loss, key, regret, plays), times, optimum, arrays, scratch = own
    _, _, _, _, _, lengths, firsts, _ = path
    if first():
        if opening:
            moved, X, A = False, policy.shape[1], policy.shape[2]
            for x in range(X):
                for a in range(A):
                    moved |= before[i, x, a] != policy[i, x, a]
                    before[i, x, a] = policy[i, x, a]
            if moved:
                k = team()
                G, reach, numbers, pi = scratch[0][k], scratch[1][k], scratch[2][k], scratch[3][k]
                gains(arrays.rewards, arrays.successors, arrays.transitions, before[i], G, reach, numbers, pi)
                for x in range(X):
                    for a in range(A):
                        loss[i, x, a] = optimum - numbers[3, x]
        plays[i] = max(plays[i], firsts[i] + lengths[i] - 1)
        add_steps(i, times, regret, loss[i], 0, key, path)
    sync()


@compiled
def gains(r, successors, P, policy, G, reach, numbers, pi):  # type: ignore[no-untyped-def]
    """The gain of a policy by state, into numbers[3]; G and reach (X, X), numbers (4, X) and pi (A,) are scratch."""
    X, A, B = P.shape
    earned, steps, leave, gain = numbers[0], numbers[1], numbers[2], numbers[3]
    for x in range(X):
        normalise_row(policy[x], pi)
        earned[x], steps[x], leave[x] = 0.0, 1.0, 1.0
        for y in range(X):
            G[x, y], reach[x, y] = 0.0, x == y
        for a in range(A):
            earned[x] += pi[a] * r[x, a]
            for j in range(B):
                if pi[a] * P[x, a, j] > 0.0:
                    G[x, successors[x, a, j]] += pi[a] * P[x, a, j]
                    reach[x, successors[x, a, j]] = True
    for k in range(X):
        for x in range(X):
            if reach[x, k]:
                for y in range(X):
                    reach[x, y] |= reach[k, y]
    for x in range(X):  # the first state of the recurrent class, or -1 of a transient state
        gain[x] = -1.0
        for y in range(X - 1, -1, -1):
            if reach[x, y]:
                gain[x] = y if reach[y, x] else gain[x]
        for y in range(X):
            if reach[x, y] and not reach[y, x]:
                gain[x] = -1.0
    for transient in (True, False):
        for k in range(X):
            if (gain[k] < 0.0) == transient and gain[k] != k:
                _eliminate(k, G, earned, steps, leave)
    for k in range(X):
        if gain[k] == k:  # nothing is left of its class
            earned[k] /= steps[k]
    for k in range(X):
        gain[k] = earned[np.int64(gain[k])] if gain[k] >= 0.0 else gain[k]
    for k in range(X - 1, -1, -1):  # those that were taken out last first: they lead to what was left then
        if gain[k] < 0.0:
            total = 0.0
            for y in range(X):
                if gain[y] >= 0.0:
                    total += G[k, y] * gain[y]
            gain[k] = total / leave[k]


@compiled
def _eliminate(k, G, earned, steps, leave):  # type: ignore[no-untyped-def]
    """State k leaves the chain; steps[k] becomes 0, which says so."""
    X, out = G.shape[0], 0.0
    for y in range(X):
        if y != k and steps[y] > 0.0:
            out += G[k, y]
    leave[k] = out
    for x in range(X):
        if x != k and steps[x] > 0.0 and G[x, k] > 0.0:
            share = G[x, k] / out
            earned[x] += share * earned[k]
            steps[x] += share * steps[k]
            for y in range(X):
                if y != k and steps[y] > 0.0:
                    G[x, y] += share * G[k, y]
    steps[k] = 0.0
