"""UCBVI-gamma: one optimistic sweep after every step, with Bernstein bonuses, and a Q that never grows.

Paper: J. He, D. Zhou, Q. Gu, "Nearly minimax optimal reinforcement learning for discounted MDPs", NeurIPS 2021.
Setting: discounted, tabular; regret along the trajectory.
Trust: CHECKED against the paper's text (Algorithm 1, Theorem 4.3): the start, what is counted when, the sweep with its
minimum, known rewards, U and beta. The displays of the bonus could not be read: UCB_t and B_t are recalled (MEM-H);
their three terms are those of the bonus that the text says it follows, UCBVI-BF (Azar, Osband, Munos, ICML 2017,
Algorithm 4: 8, 8, and no logarithm in the third). Compared with an independent transcription at every step of runs.

Q_1 = V_1 = H. At step t, with n, n(x') and P_t = N' / max(n, 1) including step t:

    a_t           = argmax_a Q_t(x_t, a)                                                     the first of the best
    UCB_t(x, a)   = sqrt(8 U Var_{P_t}(V_t) / n) + 8 U H / n + sqrt(8 sum_x' P_t(x') min{100 B_t(x'), H^2} / n)
    B_t(x')       = beta H^5 / n(x')                                                         every n is max(n, 1)
    Q_{t+1}(x, a) = min{Q_t(x, a), r(x, a) + gamma (P_t V_t)(x, a) + gamma UCB_t(x, a)}      for all pairs at once
    V_{t+1}(x)    = max_a Q_{t+1}(x, a)

Constants: U = ln(40 X A T^3 ln^2 T / (delta (1 - gamma)^2)), beta = X^2 A^2 U^5 unless given, delta = 1/T (ln T is
taken as 1 for T < 3). `scale` multiplies UCB_t. third_term=off leaves out the last term, which at any T in reach is
sqrt(8 / n) H because 100 B_t exceeds H^2. Where scale is below about 1 / (8 U), pairs that were never played are
pessimistic, since their row of P_t is 0: they may never be tried.
Guarantee: trajectory regret O~(sqrt(X A T) H^1.5), with probability 1 - delta.
Composition: counts from 0 x Bernstein bonus x one sweep per step x epochs end when the policy changes.
Cost: per step, B + A per pair whose backup can have changed: the pair played, and those with a successor seen
whose V (or whose B_t) changed at the last step. The rest of the sweep would change nothing: Q is
bit-identical to that of full sweeps.
Deviations: none known; rewards are known in the paper too.
"""

from math import log, sqrt
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import team
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.estimators.counts import Counts, tallies
from ravi.learners.options import Confidence, takes
from ravi.learners.pac.core import one_hot
from ravi.planning.bellman import predecessors
from ravi.runtime.ranges import Action, Count, Place, Policy, Positive, Value, between
from ravi.runtime.seedwise import compiled_learner

ALL = -1  # as the number of changed states: every pair is to be backed up
SPARSE = 3  # with fewer than one changed state in so many, pairs are found from them
STATES = between(ALL, lambda f: f.states, "a number of states, or -1")


class State(NamedTuple):
    data: Counts
    Q: Value  # Q_t                                                         (n, X, A)
    V: Value  # V_t                                                         (n, X)
    best: Action  # the first of the best actions                           (n, X)
    plays: Count  # n(x)                                                    (n, X)
    spread: Positive  # min{100 B_t, H^2}, or 0 without the third term   (n, X)
    changed: Place  # the states whose V the last sweep changed: the first `many` entries   (n, X)
    many: Annotated[Array, STATES]  # how many; ALL before the first sweep  (n,)
    policy: Policy  # (n, X, A)


@takes()
def ucbvi_gamma(problem: Problem, T: int, o: Confidence, third_term: str = "on", beta: float | None = None) -> Learner:
    """UCBVI-gamma with its published bonus; `scale` multiplies it."""
    scale, delta = o
    validation.one_of(third_term, ("on", "off"), "third_term")
    X, A, r = problem.states, problem.actions, problem.rewards
    gamma, H = problem.discount, problem.horizon
    U = log(40 * X * A * float(T) ** 3 * max(log(T), 1.0) ** 2 * H**2 / delta)
    beta = X**2 * A**2 * U**5 if beta is None else validation.nonnegative(beta, "beta")
    far = 100 * beta * H**5 if third_term == "on" else 0.0  # 100 B_t(x') n(x')
    before, rows = predecessors(problem.successors), problem.successors.reshape(X * A, -1)

    def init(keys: Array) -> State:
        n = len(keys)
        first, none = np.zeros((n, X), np.int32), np.zeros((n, X), np.int32)
        V, spread = np.full((n, X), H), np.full((n, X), min(far, H**2))
        Q, policy = np.full((n, X, A), H), np.full((n, X, A), 1 / A)
        return State(tallies(problem, n), Q, V, first, none, spread, none.copy(), np.full(n, ALL, np.int64), policy)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        n, pairs = len(s.policy), X * A  # a pair is x A + a
        visits, moves, Q = s.data.visits.reshape(n, pairs), s.data.moves.reshape(n, pairs, -1), s.Q.reshape(n, pairs)
        stamps = [np.zeros((teams, size), np.int64) for size in (pairs, X, 1)]
        constants = gamma, H, U, scale, far
        todo, seeds = np.empty((teams, pairs), np.int32), (visits, moves, Q, s.V, s.plays, s.spread, s.changed, s.many)
        return (s.best, s.policy), r.reshape(pairs), rows, *before, *constants, *seeds, *stamps, todo

    made = {"scale": scale, "delta": delta, "third_term": third_term, "U": U, "beta": beta}
    return compiled_learner("ucbvi-gamma", init, Seedwise(one_hot, _learn, own, reset=False, changes=True), made)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """A sweep after every step; whether the policy is another one."""
    ((best, policy), rewards, rows, start, pairs, places, gamma, H, U, scale, far, visits, moves, Q, V, plays, spread,
      changed, many, listed, touched, stamps, todo) = own  # fmt: skip
    k = team()
    played = x * policy.shape[2] + a
    visits[i, played] += 1
    moves[i, played, slot] += 1
    plays[i, x] += 1
    now = min(far / plays[i, x], H * H)
    if now != spread[i, x]:
        spread[i, x] = now
        many[i] = ALL
    stamps[k, 0] += 1
    visits, moves, Q, V, spread, changed = visits[i], moves[i], Q[i], V[i], spread[i], changed[i]
    best, policy, stamp = best[i], policy[i], stamps[k, 0]
    A, B = policy.shape[1], moves.shape[1]
    size = _stale(start, pairs, places, moves, changed, many[i], played, listed, todo, k, stamp)
    height, third = 8.0 * U * H, far > 0.0
    count = 0
    for q in range(size):
        p = np.uint32(todo[k, q])
        row, to, share = moves[p], rows[p], 1.0 / max(visits[p], 1)
        total = 0.0
        for j in range(B):
            total += row[j] * V[np.uint32(to[j])]
        mean, bonus = total * share, height * share
        if rewards[p] + gamma * (mean + scale * bonus) >= Q[p]:  # what is still to be added is not negative
            continue
        squares = 0.0
        for j in range(B):
            squares += row[j] * (V[np.uint32(to[j])] - mean) ** 2
        bonus += sqrt(8.0 * U * squares) * share  # sqrt(8 U Var / n)
        if third:
            wide = 0.0
            for j in range(B):
                wide += row[j] * spread[np.uint32(to[j])]
            bonus += sqrt(8.0 * wide) * share
        value = rewards[p] + gamma * (mean + scale * bonus)
        if value < Q[p]:
            Q[p] = value
            z = p // A
            if touched[k, z] != stamp:
                touched[k, z] = stamp
                changed[count] = z
                count += 1
    differs, kept = False, 0
    for c in range(count):  # V_{t+1}, after all of Q_{t+1}
        z = changed[c]
        b, value = 0, Q[z * A]
        for d in range(1, A):
            if Q[z * A + d] > value:
                b, value = d, Q[z * A + d]
        best[z] = b
        differs = differs or policy[z, b] != 1.0
        if value < V[z]:
            V[z] = value
            changed[kept] = z
            kept += 1
    many[i] = kept
    return differs


@compiled
def _stale(start, pairs, places, moves, changed, many, played, listed, todo, k, stamp):  # type: ignore[no-untyped-def]
    """List in `todo` the pairs whose backup can have changed: how many."""
    if many == ALL or many * SPARSE >= changed.shape[0]:
        for p in range(todo.shape[1]):
            todo[k, p] = p
        return todo.shape[1]
    todo[k, 0], listed[k, played], size = played, stamp, 1
    for c in range(many):
        for j in range(start[changed[c]], start[changed[c] + 1]):
            p = pairs[j]
            if listed[k, p] != stamp and moves[p, places[j]] > 0:
                listed[k, p] = stamp
                todo[k, size] = p
                size += 1
    return size
