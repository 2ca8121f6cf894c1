"""An optimistic fixed point after every step: what R-MAX, MBIE, MBIE-EB and the certainty-equivalent learner share.

With n the visits of a pair and p_hat = N' / n, all of them play the greedy policy (ties: the first action) of

    Q(x, a) = H                                                                            where n < least
    Q(x, a) = min{H, r(x, a) + beta / sqrt(n) + gamma max <p, V>}, ||p - p_hat||_1 <= c / sqrt(n),   elsewhere
    V(x)    = max_a Q(x, a),

p over all X states, where a pair is counted up to its first `most` visits and then is frozen:

    r-max                  beta = c = 0       least = most = m
    mbie                   beta = 0           least = 1, most = m
    mbie-eb                c = 0              least = 1, most = m
    certainty-equivalent   beta = c = 0       least = 1, most without limit

The papers plan anew after every step; so does this, in the walk, from where the last plan ended. Q is always the
backup of `known`, a V of before; a step changes one row of p_hat, so one entry of Q. Where |max_a Q - known| <= theta
at every state, the plan is over. Otherwise, of many states, `known` becomes V at the state that was left, the pairs
that lead to it are backed up, and so on with the states where that changes V by more than theta (`_spread`; without
balls, where a backup needs only what the pair has led to). Where that goes far, or states are few, `known` is swept
with the greedy policy until it moves by at most theta / 2, Q is backed up from it, and so on: modified policy
iteration. Since the backup is a gamma-contraction, after every step

    |V - V_fixed| <= gamma theta / (1 - gamma) = tolerance        at every state,

and a greedy policy is within 2 tolerance H of optimal in the optimistic model: 2 tolerance in units of the gap. The
cut at H does not move constants along, so bounds by spans do not hold here. What they save, an extrapolation does:
where the changes c, c' of two sweeps are nearly proportional, c' = lambda c + e with |e| <= 0.3 (1 - lambda) |c'|, the
sweeps to come would add about c' lambda / (1 - lambda), and that is added at once. The certificate above does not
depend on it.

Rounding keeps theta from being less than 2^-44 H. So where gamma is close to 1, a `tolerance` below 2^-44 gamma H^2 is
raised to that (6e-6 at H = 10^4, 0.06 at H = 10^6); the one in force is among the settings.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import each, team
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.estimators.counts import Counts, tallies
from ravi.learners.options import Confidence
from ravi.planning.bellman import entries_of
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Action, Policy, Value
from ravi.runtime.seedwise import compiled_learner
from ravi.schedules import seed_never

GRAIN = 2.0**-44  # of H: theta is not below it, so that rounding keeps no plan going
SHARE = 2  # `_spread` looks at one in so many of the successors of all pairs, at most
FRONT = 16  # and its changes stand at one state in so many
CHECKED = 128  # one pair in so many is held against its backup before it
MANY = 64  # states, from which on it pays
UNLIMITED = 2**31 - 1  # visits of a pair that no run reaches


class State(NamedTuple):
    data: Counts  # of the first `most` visits of every pair
    Q: Value  # (n, X, A)
    V: Value  # max_a Q                                         (n, X)
    best: Action  # the first of the best actions               (n, X)
    known: Value  # the V that Q is the backup of               (n, X)
    policy: Policy  # (n, X, A)


class Model(NamedTuple):
    """What backups are made of; a pair is x A + a."""

    rewards: Array  # (X A,)
    successors: Array  # (X A, B)
    discount: float
    horizon: float
    beta: float
    radius: float  # c
    least: int
    theta: float


class Plan(NamedTuple):
    """The arrays of one seed, written in place."""

    visits: Array  # (X A,)
    moves: Array  # (X A, B)
    Q: Array  # (X A,)
    V: Array  # (X,)
    best: Array  # (X,)
    known: Array  # (X,)
    policy: Array  # (X, A)


class Options(NamedTuple):
    """What may be said of a learner of this family (`ravi.learners.options.takes`)."""

    scale: float = 1.0
    delta: float = None  # type: ignore[assignment]  # 1/T unless given: a number once it is checked
    accuracy: float = 0.1  # eps, in parts of H
    m: int | None = None  # visits of a pair; what it may be depends on the learner
    tolerance: float = 1e-4  # of V, after every step

    def checked(self, T: int) -> Options:
        accuracy, tolerance = (validation.positive(getattr(self, name), name) for name in ("accuracy", "tolerance"))
        return Options(*Confidence(self.scale, self.delta).checked(T), accuracy, self.m, tolerance)


def optimistic(
    name: str, problem: Problem, o: Options, settings: dict[str, Any], *, beta: float = 0.0, radius: float = 0.0,
    least: int = 1, most: int = UNLIMITED,
) -> Learner:  # fmt: skip
    """The learner of these equations; `radius` is c."""
    X, A, gamma, H = problem.states, problem.actions, problem.discount, problem.horizon
    pairs, theta = X * A, max(o.tolerance / (gamma * H), GRAIN * H)
    rows = problem.rewards.reshape(pairs), problem.successors.reshape(pairs, -1)
    model = Model(*rows, gamma, H, beta, radius, min(least, UNLIMITED), theta)

    def init(keys: Array) -> State:
        n = len(keys)
        Q, V, best, known = (np.tile(array, (n, *[1] * array.ndim)) for array in _unplayed(model, A))
        return State(tallies(problem, n), Q, V, best, known, np.full((n, X, A), 1 / A))

    start, entries = entries_of(problem.successors)
    index = np.concatenate([np.arange(pairs, dtype=start.dtype), start, entries])

    def own(s: State, teams: int) -> tuple[Any, ...]:
        n = len(s.policy)
        visits, moves, Q = s.data.visits.reshape(n, pairs), s.data.moves.reshape(n, pairs, -1), s.Q.reshape(n, pairs)
        places = X * problem.branching
        whole, real = np.zeros((teams, 3 * X + 1 + places), np.int32), np.empty((teams, 4 * X + places))  # of `_parted`
        return (s.best, s.policy), model, index, min(most, UNLIMITED), visits, moves, Q, s.V, s.known, whole, real

    form = Seedwise(one_hot, _learn, own, reset=False, changes=True)
    return compiled_learner(name, init, form, settings | {"tolerance": gamma * H * theta})


@compiled
def _parted(whole, real, X):  # type: ignore[no-untyped-def]
    """The pairs of the greedy policy, their backups, and the changes of the last sweep (X,); these pairs as `_lay_out`
    writes them; the queue of `_spread`, and whether a state is in it (X,)."""
    entries = real[2 * X : 3 * X], real[3 * X : 4 * X], whole[2 * X : 3 * X + 1], whole[3 * X + 1 :], real[4 * X :]
    return whole[:X], real[:X], real[X : 2 * X], entries, (whole[:X], whole[X : 2 * X])


@compiled
def one_hot(own, i, t):  # type: ignore[no-untyped-def]
    """The policy that plays `best`: the rows that do not yet; `own` begins with (best, policy). A team's."""
    best, policy = own[0]
    for x in each(best.shape[1]):
        if policy[i, x, best[i, x]] != 1.0:
            for a in range(policy.shape[2]):
                policy[i, x, a] = 0.0
            policy[i, x, best[i, x]] = 1.0
    return seed_never(own, i, t)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """A plan after every step; whether the policy is another one."""
    (best, policy), model, index, most, visits, moves, Q, V, known, whole, real = own
    p, k = x * policy.shape[2] + a, team()
    if visits[i, p] >= most:
        return False
    visits[i, p] += 1
    moves[i, p, slot] += 1
    if visits[i, p] < model.least:
        return False
    plan = Plan(visits[i], moves[i], Q[i], V[i], best[i], known[i], policy[i])
    return _settle(model, plan, p, t, index, whole[k], real[k]) > 0


@compiled
def _unplayed(model, A):  # type: ignore[no-untyped-def]
    """Q, V, the best actions and the V that Q is the backup of, before the first step."""
    (pairs, B), H = model.successors.shape, model.horizon
    X = pairs // A
    Q, V, best, known = np.full(pairs, H), np.full(X, H), np.zeros(X, np.int32), np.full(X, H)
    plan = Plan(np.zeros(pairs, np.int32), np.zeros((pairs, B), np.int32), Q, V, best, known, np.zeros((X, A)))
    room = _parted(np.empty(3 * X + 1 + X * B, np.int32), np.empty(4 * X + X * B), X)
    _converge(model, plan, np.inf, np.arange(pairs).astype(np.int32), room)
    return Q.reshape(X, A), V, best, known


@compiled
def _settle(model, plan, p, t, index, whole, real):  # type: ignore[no-untyped-def]
    """Plan after the row of the pair p has changed at step t; in how many more states `policy` is now left."""
    X, A = plan.policy.shape
    x, one, every = p // A, slice(p, p + 1), index[: X * A]
    backups(model, plan.visits, plan.moves, plan.known, every[one], plan.Q[one])
    differing, far = _refresh(plan, x), abs(plan.V[x] - plan.known[x])
    if far <= model.theta:
        return differing
    room = _parted(whole, real, X)
    if X >= MANY and model.radius == 0.0 and _intact(model, plan, t):
        more, far = _spread(model, plan, x, index[X * A :], room[4])
        differing += more
    return differing + _converge(model, plan, far, every, room)


@compiled
def _intact(model, plan, t):  # type: ignore[no-untyped-def]
    """Whether Q is the backup of `known`, as far as some pairs tell, which are others at every step. It is, unless
    rewards or constants have changed, as they do on streams."""
    intact = True
    for p in range(t % CHECKED, plan.Q.shape[0], CHECKED):
        intact &= plan.Q[p] == _plain_backup(model, plan, np.uint32(p))
    return intact


@compiled
def _spread(model, plan, x, places, queued):  # type: ignore[no-untyped-def]
    """Follow the change of V(x) backwards: `known` to V at a state where they are more than theta apart, back up the
    pairs that have led to it, and so on, first come, first served. In how many more states `policy` is now left; and,
    where that became too much, how far V is from `known` still."""
    (queue, waits), (_, moves, Q, V, best, known, policy), theta = queued, plan, model.theta
    (X, A), B = policy.shape, moves.shape[1]
    start, entries, met = places[: X + 1], places[X + 1 :], moves.reshape(moves.size)
    queue[0], waits[x], head, size, differing = x, 1, 0, 1, 0
    work, far = moves.size // SHARE, 0.0
    while size > 0:
        y = np.uint32(queue[head])
        head, size, waits[y] = head + 1 if head + 1 < X else 0, size - 1, 0
        if work <= 0 or size > X // FRONT:
            work, far = 0, max(far, abs(V[y] - known[y]))
        elif abs(V[y] - known[y]) > theta:
            known[y] = V[y]
            work -= start[y + 1] - start[y]
            for k in range(start[y], start[y + 1]):
                if met[entries[k]] > 0:
                    work -= B
                    p = entries[k] // B
                    z, value = p // A, _plain_backup(model, plan, p)
                    shown = value != Q[p] and (value >= V[z] or p == z * A + best[z])
                    Q[p] = value
                    if shown:
                        differing += _refresh(plan, z)
                        if abs(V[z] - known[z]) > theta and waits[z] == 0:
                            queue[head + size if head + size < X else head + size - X], waits[z] = z, 1
                            size += 1
    return differing, far


@compiled
def _converge(model, plan, far, every, room):  # type: ignore[no-untyped-def]
    """Modified policy iteration while V is more than theta from `known`, as it is by `far`; see `_settle`."""
    visits, moves, Q, V, best, known, policy = plan
    X, A = policy.shape
    chosen, change, old, entries, _ = room
    plain, differing = model.radius == 0.0, 0
    while far > model.theta:
        for y in range(X):
            known[y], old[y], chosen[y] = V[y], 0.0, y * A + best[y]
        moved = np.inf
        if plain:
            _lay_out(model, plan, chosen, entries)
        while moved > model.theta / 2:  # sweeps of the greedy policy
            if plain:
                _sweep(model, known, entries, change)
            else:
                backups(model, visits, moves, known, chosen, change)
            moved = _advance(known, change, old, model.discount, model.horizon)
        backups(model, visits, moves, known, every, Q)
        far = 0.0
        for y in range(X):
            differing += _refresh(plan, y)
            far = max(far, abs(V[y] - known[y]))
    return differing


@compiled
def _lay_out(model, plan, pairs, entries):  # type: ignore[no-untyped-def]
    """What `_sweep` needs of these pairs: the plays of each, what it earns with its bonus, and, from first[q] to
    first[q + 1], the states that it led to, and how often. A pair that is not known earns H and leads nowhere."""
    plays, earns, first, to, times = entries
    visits, moves, size = plan.visits, plan.moves, 0
    first[0] = 0
    for q in range(pairs.shape[0]):
        p = np.uint32(pairs[q])
        if visits[p] < model.least:
            plays[q], earns[q] = 1.0, model.horizon
        else:
            plays[q], earns[q] = visits[p], model.rewards[p] + model.beta / sqrt(visits[p])
            for j in range(moves.shape[1]):
                if moves[p, j] > 0:
                    to[size], times[size] = model.successors[p, j], moves[p, j]
                    size += 1
        first[q + 1] = size


@compiled
def _sweep(model, V, entries, out):  # type: ignore[no-untyped-def]
    """`backups` of the pairs of these entries, with the same bits."""
    plays, earns, first, to, times = entries
    for q in range(plays.shape[0]):
        total = 0.0
        for e in range(np.uint32(first[q]), np.uint32(first[q + 1])):
            total += times[e] * V[np.uint32(to[e])]
        out[q] = min(model.horizon, earns[q] + model.discount * (total / plays[q]))


@compiled
def _advance(V, change, old, gamma, H):  # type: ignore[no-untyped-def]
    """V to `change`, its backup, and on to where changes in proportion would lead; the greatest change."""
    X = V.shape[0]
    moved, above, below = 0.0, 0.0, 0.0
    for x in range(X):
        change[x] -= V[x]
        moved = max(moved, abs(change[x]))
        above += change[x] * old[x]
        below += old[x] * old[x]
    rate = min(above / below, gamma) if above > 0.0 else 0.0
    error = 0.0
    for x in range(X):
        error = max(error, abs(change[x] - rate * old[x]))
    more = rate / (1 - rate) if error <= 0.3 * (1 - rate) * moved else 0.0
    for x in range(X):
        V[x] = min(H, max(0.0, V[x] + change[x] + more * change[x]))
        old[x] = change[x] if more == 0.0 else 0.0
    return moved


@compiled
def _refresh(plan, x):  # type: ignore[no-untyped-def]
    """V(x) and its action from Q(x, .); whether the state now differs from `policy`, less whether it did before."""
    _, _, Q, V, best, _, policy = plan
    A = policy.shape[1]
    b, value = 0, Q[x * A]
    for a in range(1, A):
        if Q[x * A + a] > value:
            b, value = a, Q[x * A + a]
    change = int(policy[x, b] != 1.0) - int(policy[x, best[x]] != 1.0)
    V[x], best[x] = value, b
    return change


@compiled
def backups(model, visits, moves, V, pairs, out):  # type: ignore[no-untyped-def]
    """out = Q of these pairs from V. In a ball, half the radius moves from the worst successors to the best
    state of all."""
    rewards, successors, gamma, H, beta, radius, least, _ = model
    wide, top = beta > 0.0 or radius > 0.0, highest(V) if radius > 0.0 else 0.0
    for q in range(pairs.shape[0]):
        p = np.uint32(pairs[q])
        plays = visits[p]
        if plays < least:
            out[q] = H
            continue
        mean, bonus = _sum(moves, successors, p, V) / plays, 0.0
        if wide:
            root = sqrt(plays)
            bonus = beta / root
            if radius > 0.0:
                mean = _moved(moves[p], successors[p], V, plays, radius / root, mean, top)
        out[q] = min(H, rewards[p] + bonus + gamma * mean)


@compiled
def _plain_backup(model, plan, p):  # type: ignore[no-untyped-def]
    """What `backups` gives of one pair from `known`, without a ball, with the same bits."""
    plays, H = plan.visits[p], model.horizon
    if plays < model.least:
        return H
    mean = _sum(plan.moves, model.successors, p, plan.known) / plays
    return min(H, model.rewards[p] + model.beta / sqrt(plays) + model.discount * mean)


@compiled
def _sum(moves, successors, p, V):  # type: ignore[no-untyped-def]
    """The sum of V over the states that pair p has led to; by index, since views of rows cost as much as the sum."""
    total = 0.0
    for j in range(moves.shape[1]):
        total += moves[p, j] * V[np.uint32(successors[p, j])]
    return total


@compiled
def _moved(row, to, V, plays, d, mean, top):  # type: ignore[no-untyped-def]
    """max <p, V> over ||p - p_hat||_1 <= d, from the mean under p_hat."""
    if d >= 2.0:
        return top
    mass, worst, last = d / 2, -np.inf, -1
    while mass > 0.0:
        value, k = np.inf, -1  # the next worst: the least (V, j) beyond (worst, last)
        for j in range(row.shape[0]):
            v = V[np.uint32(to[j])]
            if row[j] > 0 and v < value and (v > worst or (v == worst and j > last)):
                value, k = v, j
        if k < 0:
            break
        share = min(mass, row[k] / plays)
        mean += share * (top - value)
        mass -= share
        worst, last = value, k
    return mean
