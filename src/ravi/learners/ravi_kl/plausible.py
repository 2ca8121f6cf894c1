"""Policy iteration on sets of kernels: the best policy under the best kernel of a set, and what it would return.

    (L V)(x) = max_a {r(x, a) + gamma max_{q in C(x, a)} <q, V>}

for the sets C of `ravi.optimism.relative_entropy`: L is monotone, moves constants along with gamma, and is a
contraction. With delta = L u - u its fixed point lies within gamma H span(delta) / 2 of

    V = L u + gamma H (min delta + max delta) / 2,          U = (1 - gamma) <nu_0, V>,

and the greedy policy, with a kernel of the sets, returns at most gamma span(delta) less than the fixed point
(docs/explanation/kl.md, Lemma 4). A plan ends when span(delta) <= tol. With `fixed`, the maximum over a is that of a
given policy: then U is what this policy would return under its best kernel.

In the average reward gamma is 1: u is mixed with L u, against periods, and every gain lies between min delta and max
delta, so that U is the middle of these. A policy with recurrent classes of different gains has no U, and gets -inf.

Between two backups of all pairs the actions and kernels just chosen are kept for sweeps that cost X B each. Where
values have far to go, as along the corridors of a grid, a sweep moves them by one state only; then one in place, which
takes every state after the one that it most likely leads to, moves them all the way (`_follow`). The certificate does
not depend on how u was found.

With P_u(x, a) = max_{q in C(x, a)} <q, u>, P_u' <= P_u + max(u' - u): gamma P of an earlier u bounds that of now, and
an action whose bound is below the best of its state is not looked at. The bounds hold from plan to plan for pairs whose
set is as it was, whatever their rewards are. `dual` is where Newton's method for the pair ended last.

States are a team's (`ravi._jit.teams`): within a backup, and within a sweep, none reads what another writes. A sweep in
place is its first thread's, which takes long on a GPU: so it is for many states only.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, each, first, sync, team, team_max, team_min, team_sum
from ravi.core import Array, Problem
from ravi.optimism.kl_dual import shortfall
from ravi.optimism.relative_entropy import kappa, seen
from ravi.optimism.sets import top_of
from ravi.runtime.ranges import SLACK, Action, CountOrNone, Range, Value

SHRINK = 0.1  # of the span, by sweeps of kept kernels between two backups
ROOM = 1e-12  # of H: rounding of a bound
SLOW = 0.5  # of the span, after a sweep: more is little progress
MANY = 400  # states, from which on values may have far to go
HELP = 0.7  # of the span, after `_follow` and a sweep: more is no help
NEAR = 1e-7  # of H: a span that is below it is closed by backups alone, for a kernel is known to the root of rounding
MOST = 100_000  # backups of one plan
FEW = 1_000  # of the plan of a given policy, in the average reward
MIXING = 0.9  # of L u with u, in the average reward
SWEEPS = 100  # between two backups at most, in the average reward: kept kernels may have several recurrent classes


LOGARITHM = Range(lambda z, *_: (z >= -500) & (z <= 100) | np.isnan(z), "ln t from -500 to 100, or nan for none")
WORTH = Range(lambda a, f, *_: a >= -SLACK * f.horizon, "a bound on what is not negative")


class Warm(NamedTuple):
    """What a plan leaves for the next one. Nothing of it changes what a plan is, to its tolerance; in place."""

    u: Value  # V of the last plan, less its least                                      (n, X)
    dual: Annotated[Array, LOGARITHM]  # ln t of the pair's last maximum; nan at first  (n, X, A)
    bound: Annotated[Array, WORTH]  # at least gamma max_C <q, u>                      (n, X, A)
    visits: CountOrNone  # visits of the pair when its bound was made; -1 for none       (n, X, A)
    choice: Action  # the action of the last plan                                       (n, X)


class Sets(NamedTuple):
    """What is plausible: rewards, and kernels near the frequencies of steps, n KL(p_hat || q) <= rho with
    rho = scale (level + kappa(n))."""

    rewards: Array  # at most                                     (n or 1, X, A)
    visits: Array  # from zero                                    (n, X, A)
    moves: Array  #                                               (n, X, A, B)
    level: float
    scale: float
    support: bool  # whether q is on the support only


class Scratch(NamedTuple):
    """Of a plan, by team. What is known of a pair is laid out when the pair is first looked at."""

    size: Any  # of its successors that were seen; -1: not laid out   (teams, X, A)
    to: Any  # which                                              (teams, X, A, B)
    p: Any  # and their frequencies                               (teams, X, A, B)
    radius: Any  # rho / n; where one was seen, exp(-rho / n)      (teams, X, A)
    targets: Any  # states of the best kernel, how many           (teams, X)
    target: Any  # which                                          (teams, X, B + 1)
    q: Any  # and their masses; before, the y of `shortfall`      (teams, X, B + 1)
    values: Any  # L u, max_C <q, u>, and one of `_settle`        (teams, 3, X)
    walk: Any  # of `_follow`                                     (teams, 3, X)


def scratch(problem: Problem, teams: int) -> Scratch:
    X, A, B = problem.successors.shape
    pairs, more = (teams, X, A), (teams, X, B + 1)
    return Scratch(
        Buffer(pairs, np.int32), Buffer((*pairs, B), np.int32), Buffer((*pairs, B)), Buffer(pairs),
        Buffer((teams, X), np.int32), Buffer(more, np.int32), Buffer(more), Buffer((teams, 3, X)),
        Buffer((teams, 3, X), np.int32),
    )  # fmt: skip


def cold(problem: Problem, n: int) -> Warm:
    X, A = problem.states, problem.actions
    return Warm(
        np.zeros((n, X)), np.full((n, X, A), np.nan), np.zeros((n, X, A)), np.full((n, X, A), -1, np.int32),
        np.zeros((n, X), np.int64),
    )  # fmt: skip


@compiled
def plan(i, successors, nu0, gamma, sets, share, tol, warm, choice, fixed, scratch):  # type: ignore[no-untyped-def]
    """The policy of seed i that is best under the best kernel of the sets, at `share` of their radii, to `tol`, into
    `choice` (n, X), and U; or what `choice`, the actions of a policy, returns, where it is `fixed`. u, dual, bound and
    visits of `warm` are written to; its bounds must be of sets that differ from these only where the visits of a pair
    do. A team's."""
    r, visits, moves, level, scale, support = sets
    u, dual, bound, planned = warm
    sizes, tos, ps, radii, counts, targets, qs, values, walks = scratch
    _, X, A, B = moves.shape
    k, returns, span, inverse = team(), 0.0, np.inf, 1 - gamma
    size, to, p, radius, count, target, q, Lu, worth = (
        sizes[k], tos[k], ps[k], radii[k], counts[k], targets[k], qs[k], values[k, 0], values[k, 1],
    )  # fmt: skip
    v, z, most, earned, chosen = u[i], dual[i], bound[i], r[i if r.shape[0] > 1 else 0], choice[i]
    for x in each(X):
        for a in range(A):
            size[x, a] = -1
            if not fixed and planned[i, x, a] != visits[i, x, a]:
                most[x, a] = np.inf
                planned[i, x, a] = visits[i, x, a]
    limit = FEW if fixed and gamma == 1.0 else MOST
    for backups in range(limit):
        if gamma == 1.0:  # values are at most max u + 1
            inverse = 1 / (1 + _highest(v)[0])
        room = ROOM / inverse
        top, peak = 0.0, 0
        if not support:
            top, peak = _highest(v)
        least, greatest, base, mean = np.inf, -np.inf, np.inf, 0.0
        for x in each(X):
            was = chosen[x]
            best, b = -np.inf, was
            for j in range(-1, 0 if fixed else A):
                a = was if j < 0 else j
                if j == was or (j >= 0 and earned[x, a] + most[x, a] + room < best):
                    continue
                K = size[x, a]
                if K < 0:
                    n = visits[i, x, a]
                    rho = share * (scale * (level + kappa(n)))
                    K = size[x, a] = seen(successors[x, a], moves[i, x, a], n, rho, to[x, a], p[x, a])
                    radius[x, a] = math.exp(-rho / n) if K == 1 else rho / max(n, 1)
                value = top
                if support:
                    value = top_of(successors[x, a], v)
                if K == 1:
                    value -= (value - v[to[x, a, 0]]) * radius[x, a]
                elif K > 1:
                    below, z[x, a] = shortfall(K, to[x, a], p[x, a], radius[x, a], v, value, z[x, a], q[x])
                    value -= below
                if not fixed:
                    most[x, a] = gamma * value
                total = earned[x, a] + gamma * value
                if total > best or (total == best and a < b):
                    best, b, worth[x] = total, a, value
            Lu[x], chosen[x] = best, b
            least, greatest, base = min(least, best - v[x]), max(greatest, best - v[x]), min(base, best)
            mean += nu0[x] * best
        least, greatest, base, mean = team_min(least), team_max(greatest), team_min(base), team_sum(mean)
        span = greatest - least
        done = span <= tol or backups + 1 == limit
        if done:
            returns = (1 - gamma) * mean + gamma * (least + greatest) / 2
        for x in each(X):
            Lu[x] -= base
            if not done:
                if gamma == 1.0:
                    Lu[x] = MIXING * Lu[x] + (1 - MIXING) * v[x]
                a = chosen[x]
                y = np.int32(peak)
                if support:
                    y = _best_of(successors[x, a], v)
                count[x] = _kernel(
                    size[x, a], to[x, a], p[x, a], radius[x, a], v, y, v[y] - worth[x], z[x, a], target[x], q[x]
                )
        sync()
        if not done and span > NEAR / inverse:
            goal = max(SHRINK * span, 0.5 * tol)
            _settle(earned, gamma, chosen, (count, target, q), values[k], walks[k], span, goal)
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
    return returns if span <= tol or gamma < 1.0 else -np.inf


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
def _best_of(successors, v):  # type: ignore[no-untyped-def]
    """The first of the stored successors of a pair that has their max v."""
    best = successors[0]
    for j in range(1, successors.shape[0]):
        if v[successors[j]] > v[best]:
            best = successors[j]
    return best


@compiled
def _kernel(K, to, p, d, v, best, below, z, target, q):  # type: ignore[no-untyped-def]
    """The q of the set that is best for v: its states and their masses; how many. `best` is the best state that there
    is, and the maximum is so much `below`, at z = ln t of its dual (`ravi.optimism.kl_dual`)."""
    if K == 0:
        target[0], q[0] = best, 1.0
        return 1
    if K == 1:
        target[0], q[0], target[1], q[1] = to[0], d, best, 1.0 - d
        return 2
    top, span, nearest = v[best], 0.0, np.inf
    for j in range(K):
        target[j], q[j] = to[j], p[j]
        span, nearest = max(span, top - v[to[j]]), min(nearest, top - v[to[j]])
    if span == 0.0:
        return K
    if nearest > 0.0:  # the best state was not seen: t = 0, where that leaves mass for it
        left = 1.0
        for j in range(K):
            left -= below * p[j] / (top - v[to[j]])
        if left > -ROOM:
            for j in range(K):
                q[j] = below * p[j] / (top - v[to[j]])
            target[K], q[K] = best, max(left, 0.0)
            return K + 1
    t = math.exp(z) if math.isfinite(z) else np.inf
    Z = 0.0
    for j in range(K):
        q[j] = p[j] / (1.0 + (top - v[to[j]]) / (span * t))
        Z += q[j]
    for j in range(K):
        q[j] /= Z
    return K


@compiled
def _settle(r, gamma, choice, kernels, values, walk, before, goal):  # type: ignore[no-untyped-def]
    """values[0] <- what these actions and kernels are worth, less its least, until the span of a sweep's move is at
    most `goal`. `before` is that of the last one.

    Where a sweep shrinks the span little, values have far to go. Then states are brought to the values of those that
    they lead to one after another (`_follow`), unless that does not help. In the average reward, `SWEEPS` at most.
    """
    v, kept, sweeps = values[0], values[2], 0
    span, follows = _sweep(r, gamma, choice, kernels, values), values.shape[1] >= MANY and gamma < 1.0
    while span > goal and (gamma < 1.0 or sweeps < SWEEPS):
        if not follows or span <= SLOW * before:
            before, span = span, _sweep(r, gamma, choice, kernels, values)
            sweeps += 1
            continue
        for x in each(v.shape[0]):
            kept[x] = v[x]
        sync()
        before, last = span, np.inf
        while True:
            if first():
                _follow(r, gamma, choice, kernels, v, walk)
            sync()
            span = _sweep(r, gamma, choice, kernels, values)
            if span <= goal or not span <= HELP * last:
                break
            last = span
        follows = span <= max(SLOW * before, goal)
        if not span <= before:
            for x in each(v.shape[0]):
                v[x] = kept[x]
            sync()
            span = before


@compiled
def _sweep(r, gamma, choice, kernels, values):  # type: ignore[no-untyped-def]
    """A sweep of values[0] with these actions and kernels, less its least; the span of its move."""
    count, target, q = kernels
    v, new = values[0], values[1]
    X = v.shape[0]
    low, high, base = np.inf, -np.inf, np.inf
    for x in each(X):
        total = 0.0
        for j in range(count[x]):
            total += q[x, j] * v[np.uint32(target[x, j])]
        new[x] = r[x, choice[x]] + gamma * total
        if gamma == 1.0:
            new[x] = MIXING * new[x] + (1 - MIXING) * v[x]
        low, high, base = min(low, new[x] - v[x]), max(high, new[x] - v[x]), min(base, new[x])
    low, high, base = team_min(low), team_max(high), team_min(base)
    sync()  # all have read v
    for x in each(X):
        v[x] = new[x] - base
    sync()
    return high - low


@compiled
def _follow(r, gamma, choice, kernels, v, walk):  # type: ignore[no-untyped-def]
    """v <- a sweep in place, every state after the one that it most likely leads to; a circle of such states is solved
    for its values as a whole. One thread's.

    A sweep in place asks for V itself, where v is V less a constant: this is found first, from the circle that the best
    state leads to. walk: which of the targets of a state is the likeliest; whether the state is open (1) or done (2);
    the way here.
    """
    count, target, q = kernels
    main, mark, way = walk[0], walk[1], walk[2]
    X, peak = v.shape[0], 0
    for x in range(X):
        main[x], mark[x] = 0, 0
        for j in range(1, count[x]):
            if q[x, j] > q[x, main[x]]:
                main[x] = j
        if v[x] > v[peak]:
            peak = x
    for s in range(-1, X):
        x, length = peak if s < 0 else s, 0
        while mark[x] == 0:
            mark[x] = 1
            way[length] = x
            length += 1
            x = target[x, main[x]]
        if mark[x] == 1:  # v(x) = earned + returns v(x), once around, and to elsewhere v goes in with a weight
            earned, elsewhere, returns, y = 0.0, 0.0, 1.0, x
            while True:
                total, weight = 0.0, 0.0
                for j in range(count[y]):
                    if j != main[y]:
                        total += q[y, j] * v[target[y, j]]
                        weight += q[y, j]
                earned += returns * (r[y, choice[y]] + gamma * total)
                elsewhere += returns * gamma * weight
                returns *= gamma * q[y, main[y]]
                y = target[y, main[y]]
                if y == x:
                    break
            if s < 0:
                more = (earned - (1.0 - returns) * v[x]) / (1.0 - returns - elsewhere)
                for y in range(X):
                    v[y] += more
                earned += elsewhere * more
            v[x], mark[x] = earned / (1.0 - returns), 2
        for l in range(length - 1, -1, -1):
            y = way[l]
            if mark[y] == 1:
                total = 0.0
                for j in range(count[y]):
                    total += q[y, j] * v[target[y, j]]
                v[y], mark[y] = r[y, choice[y]] + gamma * total, 2
