"""What is the best policy under the best kernel of a set, and what would it return? Policy iteration on sets.

    (L V)(x) = max_a {r(x, a) + gamma max_{q in C(x, a)} <q, V>}

for the sets C of `ravi.optimism.relative_entropy`: L is monotone, moves constants along with gamma, and is a
contraction. With delta = L u - u its fixed point lies within gamma H span(delta) / 2 of

    V = L u + gamma H (min delta + max delta) / 2,          U = (1 - gamma) <nu_0, V>,

and the greedy policy, with a kernel of the sets, returns at most gamma span(delta) less than the fixed point
(docs/kl.md, Lemma 4). A plan ends when span(delta) <= tol. With `fixed`, the maximum over a is that of a given policy:
then U is what this policy would return under its best kernel.

Between two backups of all pairs the actions and kernels just chosen are kept for sweeps that cost X B each. What an
action was worth at an earlier u bounds what it is worth now, Q(u') <= Q(u) + gamma max(u' - u): an action whose bound
is below the best of its state is not looked at. The bounds hold from plan to plan for pairs whose set is as it was.
`dual` is where Newton's method for the pair ended last.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.estimators.counts import Counts
from ravi.optimism.relative_entropy import seen, top_of
from ravi.optimism.sets import shortfall
from ravi.ranges import SLACK, Action, CountOrNone, Range, Value

SHRINK = 0.1  # of the span, by sweeps of kept kernels between two backups
ROOM = 1e-12  # of H: rounding of a bound
NEAR = 1e-7  # of H: a span that is below it is closed by backups alone, for a kernel is known to the root of rounding
MOST = 100_000  # backups of one plan


LOGARITHM = Range(lambda z, f, _: (z >= -500) & (z <= 100) | np.isnan(z), "ln t from -500 to 100, or nan for none")
WORTH = Range(lambda a, f, _: a >= -SLACK * f.horizon, "a bound on what is not negative")


class Warm(NamedTuple):
    """What a plan leaves for the next one. Nothing of it changes what a plan is, to its tolerance; in place."""

    u: Value  # V of the last plan, less its least                                      (n, X)
    dual: Annotated[Array, LOGARITHM]  # ln t of the pair's last maximum; nan at first  (n, X, A)
    bound: Annotated[Array, WORTH]  # at least what the pair is worth at u              (n, X, A)
    visits: CountOrNone  # plays of the pair when its bound was made; -1 for none       (n, X, A)
    choice: Action  # the action of the last plan                                       (n, X)


class Sets(NamedTuple):
    """What is plausible: rewards, and kernels near the frequencies of the data."""

    rewards: Array  # at most                                     (n or 1, X, A)
    data: Counts  # plays from zero
    rho: Array  # of n KL(p_hat || q) <= rho                      (n, X, A)
    support: bool  # whether q is on the stored successors only


class Plan(NamedTuple):
    choice: Array  # the action of every state      (n, X)
    returns: Array  # U, to within gamma tol / 2     (n,)


def cold(problem: Problem, n: int) -> Warm:
    X, A = problem.states, problem.actions
    return Warm(
        np.zeros((n, X)), np.full((n, X, A), np.nan), np.zeros((n, X, A)), np.full((n, X, A), -1, np.int32),
        np.zeros((n, X), np.int64),
    )  # fmt: skip


def plan(
    problem: Problem,
    sets: Sets,
    tol: Array,
    warm: Warm,
    *,
    fixed: Array | None = None,
    active: Array | None = None,
) -> Plan:
    """The policy that is best under the best kernel, to tol (n,); or what `fixed` (n, X), the actions of a policy,
    returns. Of `active` (n,) seeds, or of all. `warm` is written to; its bounds must be of sets that differ from these
    only where the plays of a pair do."""
    n = len(tol)
    returns, is_fixed = np.zeros(n), fixed is not None
    choice = warm.choice.copy() if fixed is None else fixed.copy()
    active = np.ones(n, np.bool_) if active is None else active
    _plan(
        sets.rewards, problem.successors, problem.initial, problem.discount, sets.support, *sets.data, sets.rho, tol,
        *warm[:4], choice, is_fixed, active, returns,
    )  # fmt: skip
    if not is_fixed:
        warm.choice[:] = choice
    return Plan(choice, returns)


@compiled
def _plan(  # type: ignore[no-untyped-def]
    r, successors, nu0, gamma, support, visits, moves, rho, tol, u, dual, bound, planned, choice, fixed, active,
    returns,
):  # fmt: skip
    n, X, A, B = moves.shape
    size, to, p = np.zeros((X, A), np.int32), np.empty((X, A, B), np.int32), np.empty((X, A, B))
    count, target, q = np.zeros(X, np.int32), np.empty((X, B + 1), np.int32), np.empty((X, B + 1))
    Lu, y = np.empty(X), np.empty(B)
    room = ROOM / (1 - gamma)
    for i in range(n):
        if not active[i]:
            continue
        v, z, most, earned = u[i], dual[i], bound[i], r[i if r.shape[0] > 1 else 0]
        for x in range(X):
            for a in range(A):
                if fixed and a != choice[i, x]:
                    continue
                size[x, a] = seen(successors[x, a], moves[i, x, a], visits[i, x, a], rho[i, x, a], to[x, a], p[x, a])
                if not fixed and planned[i, x, a] != visits[i, x, a]:
                    most[x, a] = np.inf
                    planned[i, x, a] = visits[i, x, a]
        for backups in range(MOST):
            highest = v.max()
            low, high, base, mean = np.inf, -np.inf, np.inf, 0.0
            for x in range(X):
                first = choice[i, x]
                best, b = -np.inf, first
                for k in range(-1, 0 if fixed else A):
                    a = first if k < 0 else k
                    if k == first or (k >= 0 and most[x, a] + room < best):
                        continue
                    value = highest
                    if support:
                        value = top_of(successors[x, a], v)
                    K = size[x, a]
                    if K > 0:
                        below, z[x, a] = shortfall(
                            K, to[x, a], p[x, a], rho[i, x, a] / visits[i, x, a], v, value, z[x, a], y
                        )
                        value -= below
                    value = earned[x, a] + gamma * value
                    if not fixed:
                        most[x, a] = value
                    if value > best or (value == best and a < b):
                        best, b = value, a
                Lu[x], choice[i, x] = best, b
                low, high, base = min(low, best - v[x]), max(high, best - v[x]), min(base, best)
                mean += nu0[x] * best
            done = high - low <= tol[i] or backups + 1 == MOST
            if done:
                returns[i] = (1 - gamma) * mean + gamma * (low + high) / 2
            else:
                for x in range(X):
                    a = choice[i, x]
                    d = rho[i, x, a] / max(visits[i, x, a], 1)
                    count[x] = _kernel(
                        size[x, a], to[x, a], p[x, a], d, v, successors[x, a], support, z[x, a], target[x], q[x]
                    )
            rise = -np.inf
            for x in range(X):
                Lu[x] -= base
            if not done and high - low > NEAR / (1 - gamma):
                _sweep(earned, gamma, choice[i], count, target, q, Lu, max(SHRINK * (high - low), 0.5 * tol[i]))
            for x in range(X):
                rise = max(rise, Lu[x] - v[x])
                v[x] = Lu[x]
            if not fixed:
                for x in range(X):
                    for a in range(A):
                        most[x, a] += gamma * rise
            if done:
                break


@compiled
def _kernel(K, to, p, d, v, successors, support, z, target, q):  # type: ignore[no-untyped-def]
    """The q of the set that is best for v, given ln t of its maximum: its states and their masses; how many."""
    B = successors.shape[0]
    if support:
        best = successors[0]
        for j in range(1, B):
            if v[successors[j]] > v[best]:
                best = successors[j]
    else:
        best = np.int32(v.argmax())
    if K == 0:
        target[0], q[0] = best, 1.0
        return 1
    top, span = v[best], 0.0
    for j in range(K):
        span = max(span, top - v[to[j]])
    if span == 0.0:
        for j in range(K):
            target[j], q[j] = to[j], p[j]
        return K
    logs, nearest = 0.0, np.inf
    for j in range(K):
        away = (top - v[to[j]]) / span
        nearest = min(nearest, away)
        if away > 0.0:
            logs += p[j] * math.log(away)
    if nearest > 0.0:  # the best state was not seen: nu = max V, unless f(0) > d
        Z = 0.0
        for j in range(K):
            Z += p[j] * span / (top - v[to[j]])
        if logs + math.log(Z) <= d:
            left = 1.0
            for j in range(K):
                target[j] = to[j]
                q[j] = math.exp(logs - d) * p[j] * span / (top - v[to[j]])
                left -= q[j]
            target[K], q[K] = best, max(left, 0.0)
            return K + 1
    t = math.exp(z) if math.isfinite(z) else np.inf
    Z = 0.0
    for j in range(K):
        target[j] = to[j]
        q[j] = p[j] / (1.0 + (top - v[to[j]]) / (span * t))
        Z += q[j]
    for j in range(K):
        q[j] /= Z
    return K


@compiled
def _sweep(r, gamma, choice, count, target, q, v, goal):  # type: ignore[no-untyped-def]
    """v <- sweeps with these actions and kernels, less its least, until the span of a move is at most `goal`."""
    X = v.shape[0]
    new = np.empty(X)
    while True:
        low, high, base = np.inf, -np.inf, np.inf
        for x in range(X):
            total = 0.0
            for j in range(count[x]):
                total += q[x, j] * v[np.uint32(target[x, j])]
            new[x] = r[x, choice[x]] + gamma * total
            low, high, base = min(low, new[x] - v[x]), max(high, new[x] - v[x]), min(base, new[x])
        for x in range(X):
            v[x] = new[x] - base
        if high - low <= goal:
            return
