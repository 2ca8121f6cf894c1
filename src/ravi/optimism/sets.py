"""The maximum of <p, V> over the kernels p of a set around p_hat, for every pair: one optimistic backup.

    Q(x, a) = rewards(x, a) + gamma max_{p in C(x, a)} <p, V>

for sets C(x, a) of distributions over all X states:

    plain       {p_hat}, or nothing known (n = 0): every distribution
    smoothed    {(n p_hat + e) / (n + 1)}, e at one reference state                             (SCAL+)
    l1          ||p - p_hat||_1 <= d                                                            (UCRL2, MBIE)
    bernstein   |p(x') - p_hat(x')| <= f sqrt(p_hat(x') (1 - p_hat(x'))) + d for every x'       (UCRL2B, SCAL)
    kl          KL(p_hat || p) <= d                                                             (KL-UCRL)

p_hat = N' / n is zero beyond the stored successors, and p need not be: a pair that was never played may lead anywhere.
(For a learner that is told the successors, `ravi.optimism.known_support` has the sets on them.)
Each is two compiled functions of one seed, a team's (`ravi._jit.teams`): what does not depend on V is prepared once,
and a sweep reads the counts and writes the maxima only (`ravi.optimism.extended_value_iteration.Sets`). With V negated
and the result too, it is the minimum over the set.

In `l1` and `bernstein` the best p depends on V through the order of the states alone. A sweep that finds the order as
it was keeps p: it costs a product p V. Otherwise p is made anew by one walk down the successors that were seen, from
the best; states that were not seen all have the same room d, so those between two that were are filled at once, by the
sums W_k of the k best values:

    max <p, V> = sum_seen w(x') V(x') + d W_k + rest V(k-th best),

k states filled. In `kl` it is the dual of `ravi.optimism.kl_dual`, from where the last sweep ended.
"""

import math

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import alone, each, first, sync, team_max
from ravi.optimism.extended_value_iteration import LANES, Sets
from ravi.optimism.kl_dual import CERTAIN, shortfall

ABSENT = -1.0  # the probability of a state that is no successor
COUNTED = 1_000  # states, up to which several threads sort by counting


@compiled
def nothing(own, i, k):  # type: ignore[no-untyped-def]
    """For sets that need no preparation."""


@compiled
def most_plain(own, i, k, v, out):  # type: ignore[no-untyped-def]
    top = highest(v)
    successors, visits, moves = own.successors, own.visits[i], own.moves[i]
    for q in each(out.shape[0]):
        out[q] = top if visits[q] == 0 else total(moves[q], successors[q], v, 0.0) / visits[q]


@compiled
def most_smoothed(own, i, k, v, out):  # type: ignore[no-untyped-def]
    successors, visits, moves, start = own.successors, own.visits[i], own.moves[i], v[own.reference]
    for q in each(out.shape[0]):
        out[q] = total(moves[q], successors[q], v, start) / (visits[q] + 1.0)


@compiled
def total(row, to, v, start):  # type: ignore[no-untyped-def]
    """start + sum_j row(j) v(to(j))."""
    for j in range(row.shape[0]):
        start += row[j] * v[np.uint32(to[j])]
    return start


@compiled
def highest(v):  # type: ignore[no-untyped-def]
    """max V; a team's."""
    top = v[0]
    for x in each(v.shape[0]):
        top = max(top, v[x])
    return team_max(top)


@compiled
def _seen(own, i, k, radius, all_from):  # type: ignore[no-untyped-def]
    """Which successors were seen, and their p_hat: none without visits, or where the radius is so great that anything
    is plausible; a team's."""
    successors, visits, moves = own.successors, own.visits[i], own.moves[i]
    size, to, p = own.size[k], own.to[k], own.p[k]
    for q in each(size.shape[0]):
        many = 0
        if visits[q] > 0 and radius[q] < all_from:
            for j in range(moves.shape[1]):
                if moves[q, j] > 0:
                    to[q, many], p[q, many] = successors[q, j], moves[q, j] / visits[q]
                    many += 1
        size[q] = many


@compiled
def top_of(successors, v):  # type: ignore[no-untyped-def]
    """max V over the stored successors of a pair."""
    top = v[np.uint32(successors[0])]
    for j in range(1, successors.shape[0]):
        top = max(top, v[np.uint32(successors[j])])
    return top


@compiled
def _nothing_chosen(filled, rest):  # type: ignore[no-untyped-def]
    """All of the mass to the best state, as it stays where anything is plausible."""
    for q in each(rest.shape[0]):
        filled[q], rest[q] = 0, 1.0


@compiled
def prepare_l1(own, i, k):  # type: ignore[no-untyped-def]
    _seen(own, i, k, own.radius[k], 2.0)
    _nothing_chosen(own.filled[k], own.rest[k])
    unranked(own, k)


@compiled
def most_l1(own, i, k, v, out):  # type: ignore[no-untyped-def]
    """Half the radius moves from the worst successors to the best state of all (Jaksch et al. 2010, Figure 2)."""
    anew, order, rank = reranked(own, k, v), own.order[k], own.rank[k]
    scratch = own.scratch[k]
    radius, size, to, p, w, rest = own.radius[k], own.size[k], own.to[k], own.p[k], own.w[k], own.rest[k]
    top = v[order[0]]
    for q in each(out.shape[0]):
        K = size[q]
        if anew and K > 0:
            arrange(order, rank, K, to[q], p[q], scratch)
            half = radius[q] / 2
            mass = half
            for j in range(K - 1, -1, -1):  # from the worst
                moved = min(mass, p[q, j])
                w[q, j] = p[q, j] - moved
                mass -= moved
            rest[q] = half - mass
        out[q] = _product(K, to[q], w[q], v) + rest[q] * top


@compiled
def prepare_box(own, i, k):  # type: ignore[no-untyped-def]
    _seen(own, i, k, own.constant[k], 1.0)
    _nothing_chosen(own.filled[k], own.rest[k])
    unranked(own, k)


@compiled
def most_in_box(own, i, k, v, out):  # type: ignore[no-untyped-def]
    """The least of every state, and what is left of the mass to the best states, each up to its most."""
    anew, order, rank, sums = reranked(own, k, v), own.order[k], own.rank[k], own.sums[k]
    scratch, factor, constant = own.scratch[k], own.radius[k], own.constant[k]
    size, to, p, w, filled, rest = own.size[k], own.to[k], own.p[k], own.w[k], own.filled[k], own.rest[k]
    X = v.shape[0]
    if first():
        best = 0.0
        for j in range(X):
            best += v[order[j]]
            sums[j + 1] = best
    sync()
    for q in each(out.shape[0]):
        K, d = size[q], constant[q]
        if anew and K > 0:
            arrange(order, rank, K, to[q], p[q], scratch)
            filled[q], rest[q] = _fill(K, to[q], p[q], factor[q], d, rank, w[q])
        many = filled[q]
        mean = _product(K, to[q], w[q], v) + rest[q] * v[order[min(many, X - 1)]]
        if many > 0:
            mean += d * sums[many]
        out[q] = mean


@compiled
def _fill(K, to, p, factor, d, rank, w):  # type: ignore[no-untyped-def]
    """w of the box; how many of the best states it fills, and what goes to the next."""
    X = rank.shape[0]
    mass = 1.0
    for j in range(K):
        w[j] = max(0.0, p[j] - (factor * math.sqrt(p[j] * (1.0 - p[j])) + d))
        mass -= w[j]
    k = 0
    for j in range(K):  # from the best
        place = rank[to[j]]
        between = (place - k) * d
        if mass <= between:
            break
        mass -= between
        most = min(1.0, p[j] + (factor * math.sqrt(p[j] * (1.0 - p[j])) + d))
        taken = min(mass, most - w[j])
        w[j] += taken - d  # d comes back with the sum of the k best
        mass -= taken
        k = place + 1
    if mass <= 0.0 or d <= 0.0:
        return k, 0.0
    more = min(int(mass / d), X - k)
    return k + more, max(0.0, mass - more * d) if k + more < X else 0.0


@compiled
def unranked(own, k):  # type: ignore[no-untyped-def]
    """The states in their own order, for no V."""
    order, rank, scratch = own.order[k], own.rank[k], own.scratch[k]
    for x in each(order.shape[0]):
        order[x], rank[x] = x, x
        for lane in range(scratch.shape[0]):
            scratch[lane, x] = ABSENT
    if first():
        own.ranked[k] = False
    sync()


@compiled
def reranked(own, k, v):  # type: ignore[no-untyped-def]
    """Sort the states by falling v, ties as they were; whether p is to be chosen anew. Of few states, several threads
    count for each how many come before it."""
    order, rank, anew, falls = own.order[k], own.rank[k], not own.ranked[k], 0
    X = v.shape[0]
    for j in each(X - 1):
        if v[order[j]] < v[order[j + 1]]:
            falls = 1
    changed, counted = team_max(falls) == 1, not alone() and X <= COUNTED
    sync()
    if first():
        own.ranked[k] = True
        if changed and not counted:
            _sort(v, order)
    if changed and counted:
        for x in each(X):
            before, mine, place = 0, v[x], rank[x]
            for y in range(X):
                before += v[y] > mine or (v[y] == mine and rank[y] < place)
            order[x] = before
        sync()  # all have read the ranks
        for x in each(X):
            rank[x] = order[x]
        sync()
        for x in each(X):
            order[rank[x]] = x
    sync()
    if changed and not counted:
        for j in each(X):
            rank[order[j]] = j
        sync()
    return changed or anew


@compiled
def _sort(v, order):  # type: ignore[no-untyped-def]
    """By falling v. By insertion, since the order changes little between sweeps, ties as they were; where it changes
    much, by Shell's gaps, ties by state."""
    X, steps = v.shape[0], 0
    for j in range(1, X):
        state, k = order[j], j
        value = v[state]
        while k > 0 and v[order[k - 1]] < value:
            order[k] = order[k - 1]
            k -= 1
        order[k] = state
        steps += j - k
        if steps > 32 * X:
            break
    gap = 0
    while steps > 32 * X and 3 * gap + 1 < X // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for j in range(gap, X):
            state, k = order[j], j
            value = v[state]
            while k >= gap:
                other = order[k - gap]
                if v[other] > value or (v[other] == value and other < state):
                    break
                order[k] = other
                k -= gap
            order[k] = state
        gap //= 3


@compiled
def arrange(order, rank, K, to, p, scratch):  # type: ignore[no-untyped-def]
    """Put the K successors, with their p, into the order of the states: by insertion, or where they are many by a walk
    over all states. `scratch` (LANES, X), one row for each thread, is ABSENT, and is left so."""
    X = order.shape[0]
    if K * K > 4 * X:
        chance = scratch[_lane()]
        for j in range(K):
            chance[to[j]] = p[j]
        k = 0
        for j in range(X):
            state = order[j]
            if chance[state] != ABSENT:
                to[k], p[k] = state, chance[state]
                chance[state] = ABSENT
                k += 1
        return
    for j in range(1, K):
        state, share = to[j], p[j]
        place = rank[state]
        k = j
        while k > 0 and rank[to[k - 1]] > place:
            to[k], p[k] = to[k - 1], p[k - 1]
            k -= 1
        to[k], p[k] = state, share


@compiled
def _lane():  # type: ignore[no-untyped-def]
    """Which thread of its team this is: the first of its share of a loop."""
    for lane in each(LANES):
        return lane
    return 0


@compiled
def _product(K, to, w, v):  # type: ignore[no-untyped-def]
    """sum_j w(j) v(to(j)), in four sums."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    last = K - K % 4
    for j in range(0, last, 4):
        one += w[j] * v[np.uint32(to[j])]
        two += w[j + 1] * v[np.uint32(to[j + 1])]
        three += w[j + 2] * v[np.uint32(to[j + 2])]
        four += w[j + 3] * v[np.uint32(to[j + 3])]
    for j in range(last, K):
        one += w[j] * v[np.uint32(to[j])]
    return (one + two) + (three + four)


@compiled
def prepare_kl(own, i, k):  # type: ignore[no-untyped-def]
    _seen(own, i, k, own.radius[k], CERTAIN)
    start = own.rest[k]
    for q in each(start.shape[0]):
        start[q] = np.nan  # ln((nu - max V) / span) of the last sweep


@compiled
def best_in_ball(successors, stored, K, to, p, radius, v, top, z, y):  # type: ignore[no-untyped-def]
    """max <p, V> of one pair over the ball of K successors that were seen, on the stored ones or on all states, whose
    largest V is `top`; and ln of the dual, to start from next time (`ravi.optimism.kl_dual`)."""
    value, below = top, 0.0
    if stored:
        value = top_of(successors, v)
    if K > 0:
        below, z = shortfall(K, to, p, radius, v, value, z, y)
    return value - below, z


@compiled
def most_kl(own, i, k, v, out):  # type: ignore[no-untyped-def]
    _most_in_balls(own, k, v, highest(v), False, out)


@compiled
def most_stored_kl(own, i, k, v, out):  # type: ignore[no-untyped-def]
    _most_in_balls(own, k, v, 0.0, True, out)


@compiled
def _most_in_balls(own, k, v, top, stored, out):  # type: ignore[no-untyped-def]
    radius, size, to, p, y, start = own.radius[k], own.size[k], own.to[k], own.p[k], own.w[k], own.rest[k]
    for q in each(out.shape[0]):
        out[q], start[q] = best_in_ball(
            own.successors[q], stored, size[q], to[q], p[q], radius[q], v, top, start[q], y[q]
        )


plain = Sets(nothing, most_plain)  # without radii
smoothed = Sets(nothing, most_smoothed)  # likewise
l1 = Sets(prepare_l1, most_l1)  # radius: d
bernstein = Sets(prepare_box, most_in_box)  # radius: f, constant: d
kl = Sets(prepare_kl, most_kl)  # radius: d
