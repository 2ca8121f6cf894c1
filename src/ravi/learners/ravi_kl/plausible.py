"""What is the best policy under the best kernel of a set, and what would it return? Policy iteration on sets.

    (L V)(x) = max_a {r(x, a) + gamma max_{q in C(x, a)} <q, V>}

for the sets C of `ravi.optimism.relative_entropy`: L is monotone, moves constants along with gamma, and is a
contraction. With delta = L u - u its fixed point lies within gamma H span(delta) / 2 of

    V = L u + gamma H (min delta + max delta) / 2,          U = (1 - gamma) <nu_0, V>,

and the greedy policy, with a kernel of the sets, returns at most gamma span(delta) less than the fixed point
(docs/explanation/kl.md, Lemma 4). A plan ends when span(delta) <= tol. With `fixed`, the maximum over a is that of a
given policy: then U is what this policy would return under its best kernel.

Between two backups of all pairs the actions and kernels just chosen are kept for sweeps that cost X B each. What an
action was worth at an earlier u bounds what it is worth now, Q(u') <= Q(u) + gamma max(u' - u): an action whose bound
is below the best of its state is not looked at. The bounds hold from plan to plan for pairs whose set is as it was.
`dual` is where Newton's method for the pair ended last.

States are a team's (`ravi.teams`): within a backup, and within a sweep, none reads what another writes.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import Array, Problem
from ravi.optimism.kl_dual import shortfall
from ravi.optimism.relative_entropy import seen
from ravi.optimism.sets import top_of
from ravi.ranges import SLACK, Action, CountOrNone, Range, Value
from ravi.teams import Room, each, sync, team, team_max, team_min, team_sum

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
    visits: CountOrNone  # visits of the pair when its bound was made; -1 for none       (n, X, A)
    choice: Action  # the action of the last plan                                       (n, X)


class Sets(NamedTuple):
    """What is plausible: rewards, and kernels near the frequencies of steps."""

    rewards: Array  # at most                                     (n or 1, X, A)
    visits: Array  # from zero                                    (n, X, A)
    moves: Array  #                                               (n, X, A, B)
    rho: Array  # of n KL(p_hat || q) <= rho                      (n, X, A)
    support: bool  # whether q is on the stored successors only


class Scratch(NamedTuple):
    """Of a plan, by team."""

    size: Any  # of the successors of a pair that were seen       (teams, X, A)
    to: Any  # which                                              (teams, X, A, B)
    p: Any  # and their frequencies                               (teams, X, A, B)
    radius: Any  # rho / n                                        (teams, X, A)
    targets: Any  # states of the best kernel, how many           (teams, X)
    target: Any  # which                                          (teams, X, B + 1)
    q: Any  # and their masses; before, the y of `shortfall`      (teams, X, B + 1)
    Lu: Any  #                                                    (teams, X)
    new: Any  # of a sweep                                        (teams, X)


def scratch(problem: Problem, teams: int) -> Scratch:
    X, A, B = problem.successors.shape
    pairs, states, more = (teams, X, A), (teams, X), (teams, X, B + 1)
    return Scratch(
        Room(pairs, np.int32), Room((*pairs, B), np.int32), Room((*pairs, B)), Room(pairs), Room(states, np.int32),
        Room(more, np.int32), Room(more), Room(states), Room(states),
    )  # fmt: skip


def cold(problem: Problem, n: int) -> Warm:
    X, A = problem.states, problem.actions
    return Warm(
        np.zeros((n, X)), np.full((n, X, A), np.nan), np.zeros((n, X, A)), np.full((n, X, A), -1, np.int32),
        np.zeros((n, X), np.int64),
    )  # fmt: skip


@compiled
def plan(  # type: ignore[no-untyped-def]
    low, high, successors, nu0, gamma, sets, share, tol, warm, choice, fixed, active, returns, scratch
):
    """The policy that is best under the best kernel of the sets, at `share` of their radii, to tol (n,), into `choice`
    (n, X), and U into `returns` (n,); or what `choice`, the actions of a policy, returns, where it is `fixed`. Of seeds
    low, ..., high - 1 that are `active` (n,). u, dual, bound and visits of `warm` are written to; its bounds must be of
    sets that differ from these only where the visits of a pair do. A team's."""
    r, visits, moves, rho, support = sets
    u, dual, bound, planned = warm
    sizes, tos, ps, radii, counts, targets, qs, Lus, news = scratch
    _, X, A, B = moves.shape
    k, room = team(), ROOM / (1 - gamma)
    size, to, p, radius, count, target, q, Lu = (
        sizes[k], tos[k], ps[k], radii[k], counts[k], targets[k], qs[k], Lus[k],
    )  # fmt: skip
    for i in range(low, high):
        if not active[i]:
            continue
        v, z, most, earned, chosen = u[i], dual[i], bound[i], r[i if r.shape[0] > 1 else 0], choice[i]
        for x in each(X):
            for a in range(A):
                if fixed and a != chosen[x]:
                    continue
                n, rho_n = visits[i, x, a], share * rho[i, x, a]
                size[x, a] = seen(successors[x, a], moves[i, x, a], n, rho_n, to[x, a], p[x, a])
                radius[x, a] = rho_n / max(n, 1)
                if not fixed and planned[i, x, a] != n:
                    most[x, a] = np.inf
                    planned[i, x, a] = n
        for backups in range(MOST):
            top, peak = 0.0, 0
            if not support:
                top, peak = _highest(v)
            least, greatest, base, mean = np.inf, -np.inf, np.inf, 0.0
            for x in each(X):
                was = chosen[x]
                best, b = -np.inf, was
                for j in range(-1, 0 if fixed else A):
                    a = was if j < 0 else j
                    if j == was or (j >= 0 and most[x, a] + room < best):
                        continue
                    value = top
                    if support:
                        value = top_of(successors[x, a], v)
                    K = size[x, a]
                    if K > 0:
                        below, z[x, a] = shortfall(K, to[x, a], p[x, a], radius[x, a], v, value, z[x, a], q[x])
                        value -= below
                    value = earned[x, a] + gamma * value
                    if not fixed:
                        most[x, a] = value
                    if value > best or (value == best and a < b):
                        best, b = value, a
                Lu[x], chosen[x] = best, b
                least, greatest, base = min(least, best - v[x]), max(greatest, best - v[x]), min(base, best)
                mean += nu0[x] * best
            least, greatest, base, mean = team_min(least), team_max(greatest), team_min(base), team_sum(mean)
            done = greatest - least <= tol[i] or backups + 1 == MOST
            if done:
                returns[i] = (1 - gamma) * mean + gamma * (least + greatest) / 2
            for x in each(X):
                Lu[x] -= base
                if not done:
                    a = chosen[x]
                    count[x] = _kernel(
                        size[x, a], to[x, a], p[x, a], radius[x, a], v, successors[x, a], support, peak, z[x, a],
                        target[x], q[x],
                    )  # fmt: skip
            sync()
            if not done and greatest - least > NEAR / (1 - gamma):
                goal = max(SHRINK * (greatest - least), 0.5 * tol[i])
                _sweep(earned, gamma, chosen, count, target, q, Lu, news[k], goal)
            rise = -np.inf
            for x in each(X):
                rise = max(rise, Lu[x] - v[x])
                v[x] = Lu[x]
            rise = team_max(rise)
            if not fixed:
                for x in each(X):
                    for a in range(A):
                        most[x, a] += gamma * rise
            sync()
            if done:
                break


@compiled
def _highest(v):  # type: ignore[no-untyped-def]
    """max v, and the first state that has it."""
    top, peak = -np.inf, 0
    for x in each(v.shape[0]):
        if v[x] > top:
            top, peak = v[x], x
    most = team_max(top)
    return most, team_min(peak if top == most else v.shape[0])


@compiled
def _kernel(K, to, p, d, v, successors, support, peak, z, target, q):  # type: ignore[no-untyped-def]
    """The q of the set that is best for v, given ln t of its maximum: its states and their masses; how many. `peak` is
    the state of max v."""
    best = np.int32(peak)
    if support:
        best = successors[0]
        for j in range(1, successors.shape[0]):
            if v[successors[j]] > v[best]:
                best = successors[j]
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
def _sweep(r, gamma, choice, count, target, q, v, new, goal):  # type: ignore[no-untyped-def]
    """v <- sweeps with these actions and kernels, less its least, until the span of a move is at most `goal`."""
    X = v.shape[0]
    while True:
        low, high, base = np.inf, -np.inf, np.inf
        for x in each(X):
            total = 0.0
            for j in range(count[x]):
                total += q[x, j] * v[np.uint32(target[x, j])]
            new[x] = r[x, choice[x]] + gamma * total
            low, high, base = min(low, new[x] - v[x]), max(high, new[x] - v[x]), min(base, new[x])
        low, high, base = team_min(low), team_max(high), team_min(base)
        sync()  # all have read v
        for x in each(X):
            v[x] = new[x] - base
        sync()
        if high - low <= goal:
            return
