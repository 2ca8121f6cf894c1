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

A learner that is told the support S(x, a) (support=on) has p over these, and its Q is cut by what the best of
them is worth, with or without visits:

    Q(x, a) = r(x, a) + gamma max_{S(x, a)} V                                              where n < least
    Q(x, a) = min{H, r + min{beta / sqrt(n) + gamma max <p, V>, gamma max_{S(x, a)} V}}    elsewhere

Both are gamma-contractions, and no more than the cut is true of any kernel on S(x, a).

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
from ravi.core import Array, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, tallies
from ravi.learners.options import Confidence
from ravi.optimism.sets import top_of
from ravi.optimism.supported import is_told, known, recorded
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


class Options(NamedTuple):
    """What may be said of a learner of this family (`ravi.learners.options.takes`)."""

    scale: float = 1.0
    delta: float = None  # type: ignore[assignment]  # 1/T unless given: a number once it is checked
    accuracy: float = 0.1  # eps, in parts of H
    m: int | None = None  # visits of a pair; what it may be depends on the learner
    tolerance: float = 1e-4  # of V, after every step
    support: str = "off"

    def checked(self, T: int) -> Options:
        scale, delta = Confidence(self.scale, self.delta).checked(T)
        accuracy, tolerance = (
            validation.positive(self.accuracy, "accuracy"),
            validation.positive(self.tolerance, "tolerance"),
        )
        return Options(scale, delta, accuracy, self.m, tolerance, "on" if is_told(self.support) else "off")


def optimistic(
    name: str, problem: Problem, o: Options, settings: dict[str, Any], *, beta: float = 0.0, radius: float = 0.0,
    least: int = 1, most: int = UNLIMITED,
) -> Learner:  # fmt: skip
    """The learner of these equations; `radius` is c."""
    told = is_told(o.support)
    problem = known(problem, told)
    X, A, r = problem.states, problem.actions, problem.rewards
    gamma, H = problem.discount, problem.horizon
    theta = max(o.tolerance / (gamma * H), GRAIN * H)
    constants = gamma, H, beta, radius, min(least, UNLIMITED), told, theta

    def init(keys: Array) -> State:
        n = len(keys)
        alike = (np.tile(array, (n, *[1] * array.ndim)) for array in _unplayed(r, problem.successors, *constants))
        Q, V, best, known = alike
        return State(tallies(problem, n), Q, V, best, known, np.full((n, X, A), 1 / A))

    start, entries = entries_of(problem.successors)
    index = np.concatenate([np.arange(X * A, dtype=start.dtype), start, entries])
    rows = problem.successors.reshape(X * A, -1)  # a pair is x A + a

    def own(s: State, teams: int) -> tuple[Any, ...]:
        n, pairs = len(s.policy), X * A
        visits, moves, Q = s.data.visits.reshape(n, pairs), s.data.moves.reshape(n, pairs, -1), s.Q.reshape(n, pairs)
        told_of, seeds = (r.reshape(pairs), rows, index, min(most, UNLIMITED)), (visits, moves, Q, s.V, s.known)
        return (s.best, s.policy), *told_of, *constants, *seeds, *_room(teams, X)

    made = settings | {"tolerance": gamma * H * theta} | recorded(told)
    form = Seedwise(one_hot, _learn, own, reset=False, changes=True)
    return compiled_learner(name, init, form, made, side_information=SideInformation(told))


def _room(teams: int, X: int) -> tuple[Array, Array]:
    """What `_parted` parts, of every team. Two arrays: a step of a stream pays for each that it passes."""
    return np.zeros((teams, 2 * X), np.int32), np.empty((teams, 2 * X))


@compiled
def _parted(whole, real, X):  # type: ignore[no-untyped-def]
    """The pairs of the greedy policy, their backups, and the changes of the last sweep (X,); the queue of `_spread`,
    and whether a state is in it (X,)."""
    return whole[:X], real[:X], real[X:], (whole[:X], whole[X:])


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
    ((best, policy), rewards, rows, index, most, gamma, H, beta, radius, least, told, theta, visits, moves, Q, V, known,
     whole, real) = own  # fmt: skip
    p, k = x * policy.shape[2] + a, team()
    if visits[i, p] >= most:
        return False
    visits[i, p] += 1
    moves[i, p, slot] += 1
    if visits[i, p] < least:
        return False
    differing = _settle(
        rewards, rows, gamma, H, beta, radius, least, told, theta, visits[i], moves[i], Q[i], V[i], best[i], known[i],
        policy[i], p, t, index, whole[k], real[k],
    )  # fmt: skip
    return differing > 0


@compiled
def _unplayed(rewards, successors, gamma, H, beta, radius, least, told, theta):  # type: ignore[no-untyped-def]
    """Q, V, the best actions and the V that Q is the backup of, before the first step."""
    X, A, B = successors.shape
    visits, moves, policy = np.zeros(X * A, np.int32), np.zeros((X * A, B), np.int32), np.zeros((X, A))
    Q, V, best, known = np.full(X * A, H), np.full(X, H), np.zeros(X, np.int32), np.full(X, H)
    room = _parted(np.empty(2 * X, np.int32), np.empty(2 * X), X)
    every = np.arange(X * A).astype(np.int32)
    _converge(
        rewards.copy().reshape(X * A), successors.copy().reshape(X * A, B), gamma, H, beta, radius, least, told, theta,
        visits, moves, Q, V, best, known, policy, np.inf, every, room,
    )  # fmt: skip
    return Q.reshape(X, A), V, best, known


@compiled
def _settle(  # type: ignore[no-untyped-def]
    rewards, successors, gamma, H, beta, radius, least, told, theta, visits, moves, Q, V, best, known, policy,
    p, t, index, whole, real,
):  # fmt: skip
    """Plan after the row of the pair p has changed at step t; in how many more states `policy` is now left."""
    x, one, every = p // policy.shape[1], slice(p, p + 1), index[: Q.shape[0]]
    backups(rewards, successors, gamma, H, beta, radius, least, visits, moves, known, every[one], Q[one], told)
    differing, far = _refresh(Q, V, best, policy, x), abs(V[x] - known[x])
    if far <= theta:
        return differing
    room = _parted(whole, real, V.shape[0])
    if V.shape[0] >= MANY and radius == 0.0 and not told:
        plain = rewards, successors, gamma, H, beta, least, visits, moves, known
        if _intact(plain, Q, t):
            more, far = _spread(plain, theta, Q, V, best, policy, x, index[Q.shape[0] :], room[3])
            differing += more
    return differing + _converge(
        rewards, successors, gamma, H, beta, radius, least, told, theta, visits, moves, Q, V, best, known, policy,
        far, every, room,
    )  # fmt: skip


@compiled
def _intact(plain, Q, t):  # type: ignore[no-untyped-def]
    """Whether Q is the backup of `known`, as far as some pairs tell, which are others at every step. It is, unless
    rewards or constants have changed, as they do on streams."""
    intact = True
    for p in range(t % CHECKED, Q.shape[0], CHECKED):
        intact &= Q[p] == _plain_backup(*plain, np.uint32(p))
    return intact


@compiled
def _spread(plain, theta, Q, V, best, policy, x, places, queued):  # type: ignore[no-untyped-def]
    """Follow the change of V(x) backwards: `known` to V at a state where they are more than theta apart, back up the
    pairs that have led to it, and so on, first come, first served. In how many more states `policy` is now left; and,
    where that became too much, how far V is from `known` still."""
    (queue, waits), known, moves = queued, plain[8], plain[7]
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
                    z, value = p // A, _plain_backup(*plain, p)
                    shown = value != Q[p] and (value >= V[z] or p == z * A + best[z])
                    Q[p] = value
                    if shown:
                        differing += _refresh(Q, V, best, policy, z)
                        if abs(V[z] - known[z]) > theta and waits[z] == 0:
                            queue[head + size if head + size < X else head + size - X], waits[z] = z, 1
                            size += 1
    return differing, far


@compiled
def _converge(  # type: ignore[no-untyped-def]
    rewards, successors, gamma, H, beta, radius, least, told, theta, visits, moves, Q, V, best, known, policy,
    far, every, room,
):  # fmt: skip
    """Modified policy iteration while V is more than theta from `known`, as it is by `far`; see `_settle`."""
    X, A = policy.shape
    chosen, change, old, _ = room
    differing = 0
    while far > theta:
        for y in range(X):
            known[y], old[y], chosen[y] = V[y], 0.0, y * A + best[y]
        moved = np.inf
        while moved > theta / 2:  # sweeps of the greedy policy
            backups(rewards, successors, gamma, H, beta, radius, least, visits, moves, known, chosen, change, told)
            moved = _advance(known, change, old, gamma, H)
        backups(rewards, successors, gamma, H, beta, radius, least, visits, moves, known, every, Q, told)
        far = 0.0
        for y in range(X):
            differing += _refresh(Q, V, best, policy, y)
            far = max(far, abs(V[y] - known[y]))
    return differing


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
def _refresh(Q, V, best, policy, x):  # type: ignore[no-untyped-def]
    """V(x) and its action from Q(x, .); whether the state now differs from `policy`, less whether it did before."""
    A = policy.shape[1]
    b, value = 0, Q[x * A]
    for a in range(1, A):
        if Q[x * A + a] > value:
            b, value = a, Q[x * A + a]
    change = int(policy[x, b] != 1.0) - int(policy[x, best[x]] != 1.0)
    V[x], best[x] = value, b
    return change


@compiled
def backups(  # type: ignore[no-untyped-def]
    rewards, successors, gamma, H, beta, radius, least, visits, moves, V, pairs, out, told=False
):
    """out = Q of these pairs from V. In a ball, half the radius moves from the worst successors to the best state: the
    best of all, or of those that are stored if it is `told` them."""
    wide, top = beta > 0.0 or radius > 0.0, highest(V) if radius > 0.0 else 0.0
    for q in range(pairs.shape[0]):
        p = np.uint32(pairs[q])
        plays, most = visits[p], H
        if told:
            top = top_of(successors[p], V)
            most = min(H, rewards[p] + gamma * top)
        if plays < least:
            out[q] = most
            continue
        mean, bonus = _sum(moves, successors, p, V) / plays, 0.0
        if wide:
            root = sqrt(plays)
            bonus = beta / root
            if radius > 0.0:
                mean = _moved(moves[p], successors[p], V, plays, radius / root, mean, top)
        out[q] = min(most, rewards[p] + bonus + gamma * mean)


@compiled
def _plain_backup(rewards, successors, gamma, H, beta, least, visits, moves, V, p):  # type: ignore[no-untyped-def]
    """What `backups` gives of one pair without a ball, untold, with the same bits."""
    plays = visits[p]
    if plays < least:
        return H
    return min(H, rewards[p] + beta / sqrt(plays) + gamma * (_sum(moves, successors, p, V) / plays))


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
