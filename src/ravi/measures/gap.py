"""The gap rho* - rho(pi) of many slowly changing policies, each to a certified error.

Only the scalar <nu_0, V^pi> is wanted, so solving for V^pi would be more than is needed. Let M = I - gamma P_pi, and
keep from one policy to the next an approximate value V and an approximate dual d ~ M^{-T} nu_0 (the unnormalised
occupancy). With the residuals rho_V = r_pi - M V and rho_d = nu_0 - M^T d,

    <nu_0, V^pi> = <nu_0, V> + <d, rho_V> + rho_d^T M^{-1} rho_V                              (exact)

and with c the mid-range of rho_V the last term is c sum(rho_d) / (1 - gamma), up to at most
||rho_d||_1 span(rho_V) / (2 (1 - gamma)), because M^{-1} maps constants to constants / (1 - gamma). Times 1 - gamma:

    |rho(pi) - estimate| <= ||rho_d||_1 span(rho_V) / 2  + rounding,

a product of two small residuals. Where it is too large, V += rho_V and d += rho_d contract both. The first try starts
from a linear extrapolation of the last two policies' V and d, brought back to where V^pi and M^{-T} nu_0 are: V in
[0, H], d >= 0 and sum(d) <= H. Sweeps do not leave these sets. (Without that, V runs away where d is exact, on
deterministic chains: no V is too bad then for a bound of zero.) Small chains, and those that mix too slowly for sweeps,
are solved for V instead, and certified by its residual (the formula with d = 0).

Rounding: with the `grain` of `ravi.planning.certificates`, each entry of rho_V is computed to within grain (1 + H), if
A is small, and that is passed on as it is by (1 - gamma) M^{-T} nu_0, of sum one. (The true rho_V is R + delta, R what
is computed: <nu_0, V^pi> = <nu_0, V> + <d, R> + rho_d^T M^{-1} R + <M^{-T} nu_0, delta>.) As much again is kept for A.
rho_d has at most X A + B + 12 roundings an entry, so that its sum and its norm are off by (X A + B + 12) eps (1 + H),
times m = max |rho_V| in the estimate and its bound; the sums of X terms, of size 1 + m, add (X + 8) eps (1 + m). So

    rounding = 2 grain (1 + H) + (X + 8) eps + m eps ((X A + B + 12) (1 + H) + X + 8) + many (1 + H) (1 + m).

Of the actions: T_pi sums A terms, eps A / 2; a row that misses the sum one by at most eps A is scored as it is, and
plays a policy at most 3 eps A / 2 away in L1 (`ravi.runtime.walk`), which moves rho_V by 3 eps A H / 2 and rho_d by
as much. Of 2 grain, at least eps (B + 23) is not needed for V, of the roundings of rho_d eps (B + 21) / 2; so many =
eps max(2 A - 12, 0) is enough. A row that misses by more is scored as the row that is played: nothing is lost.
"""

from functools import partial
from math import fsum
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import bound as bound_to
from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, allocate, alone, each, first, sync, team, team_max, team_min, team_sum
from ravi.core import MDP, Array
from ravi.planning.bellman import predecessors
from ravi.planning.certificates import EPS, Tables, tables
from ravi.planning.chains import relative_values, values_of_small
from ravi.runtime.ranges import Number, PolicyOrNan, Positive
from ravi.runtime.walk import normalise_row

PATIENCE = 300  # sweeps, then V is solved for; a policy that moves by little needs one to ten
SMALL = 16  # states up to which a chain is solved by elimination
APART = 32  # of the entries of `Entries`


class Tracked(NamedTuple):
    """What is kept of a policy to evaluate the next one."""

    value: Number  # V                       (n, X)
    dual: Number  # d                        (n, X)
    value_step: Number  # V minus the V before   (n, X)
    dual_step: Number  # d minus the d before    (n, X)
    policy: PolicyOrNan  # the policy that they belong to   (n, X, A)
    returns: Number  # its rho               (n,)
    error: Positive  # certified bound on the error of rho   (n,)


def track(mdp: MDP, n: int) -> Tracked:
    shape = (n, mdp.states)
    return Tracked(
        np.zeros(shape), np.tile(mdp.initial * mdp.horizon, (n, 1)), np.zeros(shape), np.zeros(shape),
        np.full((n, mdp.states, mdp.actions), np.nan), np.zeros(n), np.zeros(n),
    )  # fmt: skip


def scratch(X: int, A: int, teams: int) -> tuple[Buffer, ...]:
    """What teams write while they follow: rho_V (teams, X) and rho_d, V and d of the policy before (teams, X, 2), the
    policy that is played (teams, X, A), gamma d pi of every pair (teams, A X); and for elimination (teams, X, X)."""
    few = X if X <= SMALL else 1
    return tuple(Buffer((teams, *shape)) for shape in ((X,), (X,), (X, 2), (X, A), (A * X,), (few, few)))


class Entries(NamedTuple):
    """P by where it leads: the many[y] entries of state y are start[y], start[y] + APART, ..., in the order of pairs.
    So threads that gather for neighbouring states read neighbouring entries."""

    start: Array  # (X,)
    many: Array  # (X,)
    pair: Array  # a X + x
    weight: Array  # P(y | x, a)


def entries(tables: Tables) -> Entries:
    """Those of positive probability."""
    X, A, B = tables.transitions.shape
    before = predecessors(tables.successors)
    weight = tables.transitions.reshape(X * A, B)[before.pair, before.slot]
    there = weight > 0
    first, y = np.concatenate([[0], np.cumsum(there)])[before.start], np.arange(X)  # those of y are from first[y] on
    many = np.diff(first)
    rows = np.maximum.reduceat(many, y[::APART])  # of the lists of APART states side by side
    start = (APART * (np.cumsum(rows) - rows))[y // APART] + y % APART
    place = np.repeat(start, many) + APART * (np.arange(first[-1]) - np.repeat(first[:-1], many))
    pair, entry = np.zeros((2, APART * rows.sum()))
    pair[place], entry[place] = before.pair[there] % A * X + before.pair[there] // A, weight[there]
    return Entries(start.astype(np.uint32), many.astype(np.uint32), pair.astype(np.uint32), entry)


class Target(NamedTuple):
    """What policies are scored against."""

    tables: Tables
    into: Entries
    initial: Array  # nu_0, its sum one up to rounding   (X,)
    tol: float  # of rho
    patience: int  # sweeps, then V is solved for


def target_of(mdp: MDP, tol: float, patience: int = PATIENCE, *, shared: bool = False) -> Target:
    """shared: by teams of several threads, which alone read the predecessors of a state (`residuals`)."""
    made, none = tables(mdp), np.zeros(0, np.uint32)
    into = entries(made) if shared else Entries(none, none, none, np.zeros(0))
    return Target(made, into, mdp.initial / fsum(mdp.initial), tol, patience)


def follow(target: Target, tracked: Tracked, policy: Array, wanted: Array) -> None:
    """Bring `returns` and `error` to the policy that is played by the rows `policy` (n, X, A), for the seeds with
    wanted > 0; in place."""
    room = allocate(scratch(policy.shape[1], policy.shape[2], 1))
    (FOLLOW if policy.shape[1] > SMALL else FOLLOW_SMALL)(0, len(wanted), *target, policy, wanted, *tracked, *room)


@partial(compiled, _nrt=True)  # it copies V, also where what calls it allocates nothing
def solve_values(tables, pi, V, rho_V, tol):  # type: ignore[no-untyped-def]
    """V <- V^pi up to a constant, as planners find it; whether it did."""
    W, _ = relative_values(tables, pi, V.copy(), 2 * tol)
    for x in range(V.shape[0]):
        V[x] = W[x]
    return True


@compiled
def keep_values(tables, pi, V, rho_V, tol):  # type: ignore[no-untyped-def]
    """Where nothing can be allocated: V stays as sweeps left it, and is certified as it is."""
    return False


def _sweep_both(  # type: ignore[no-untyped-def]
    tables, into, nu0, tol, patience, pi, V, d, value_step, dual_step, rho_V, rho_d, old, share, rounding
):  # fmt: skip
    """V and d, swept; whether that was enough, its bound, min rho_V and max rho_V. A team's."""
    X, H, total = V.shape[0], 1 / (1 - tables.discount), 0.0
    for x in each(X):
        old[x, 0], old[x, 1] = V[x], d[x]
        V[x] = min(max(V[x] + value_step[x], 0.0), H)
        d[x] = max(d[x] + dual_step[x], 0.0)
        total += d[x]
    total = team_sum(total)
    if total > H:
        for x in each(X):
            d[x] *= H / total
    bound, last, low, high, size, sweeps, done = np.inf, np.inf, 0.0, 0.0, 0.0, 0, False
    while not done and sweeps < patience:
        for x in each(X if sweeps > 0 else 0):
            V[x] += rho_V[x]
            d[x] += rho_d[x]
        sync()
        low, high, size = residuals(tables, into, nu0, pi, V, d, rho_V, rho_d, share)
        bound, sweeps = size * (high - low) / 2, sweeps + 1
        done = bound <= tol or bound >= last  # accurate enough, or at the rounding floor
        last = bound if bound < rounding else last  # one more sweep is welcome, as long as it helps
    swept = done or not solve_values(tables, pi, V, rho_V, tol)  # else the chain mixes too slowly for sweeps
    if not swept:
        for x in each(X):
            value_step[x], dual_step[x] = 0.0, 0.0
    return swept, bound, low, high


@compiled
def sweep_both(*_):  # type: ignore[no-untyped-def]
    """In place of `_sweep_both` where there are few states, which are eliminated: less to compile."""
    return False, 0.0, 0.0, 0.0


def _follow(  # type: ignore[no-untyped-def]
    low_seed, high_seed, tables, into, nu0, tol, patience, policy, wanted,
    value, dual, value_step, dual_step, before, returns, error, values, duals, olds, drawn, shares, small,
):  # fmt: skip
    """`follow` for seeds low_seed, ..., high_seed - 1; a team's."""
    _, X, A = policy.shape
    gamma = tables.discount
    H = 1 / (1 - gamma)
    many = EPS * max(2 * A - 12, 0) * (1 + H)
    rounding = 2 * tables.grain * (1 + H) + (X + 8) * EPS + many
    coarse = EPS * ((X * A + tables.transitions.shape[2] + 12) * (1 + H) + X + 8) + many  # times m
    k = team()
    rho_V, rho_d, old, share = values[k], duals[k], olds[k], shares[k]
    for i in range(low_seed, high_seed):
        if wanted[i] <= 0:
            continue
        moved, loose, bad = 0, 0, 0
        for x in each(X):
            mass, least = 0.0, 0.0
            for a in range(A):
                p = policy[i, x, a]
                mass += p
                least = min(least, p)
                if before[i, x, a] != p:
                    moved = 1
                    before[i, x, a] = p
            if not abs(mass - 1.0) <= EPS * A:
                loose = 1
                if not mass >= 0.0:  # a nan
                    bad = 1
            if least < 0.0:
                bad = 1
        moved, loose, bad = team_max(moved), team_max(loose), team_max(bad)
        if bad > 0:  # nothing is certified of that
            if first():
                returns[i], error[i] = np.nan, np.inf
        elif moved > 0:
            V, d, pi = value[i], dual[i], before[i]
            if loose > 0:
                pi = drawn[k]
                for x in each(X):
                    normalise_row(before[i, x], pi[x])
                sync()
            swept = X > SMALL
            if swept:
                swept, bound, low, high = sweep_both(
                    tables, into, nu0, tol, patience, pi, V, d, value_step[i], dual_step[i], rho_V, rho_d, old, share,
                    rounding,
                )  # fmt: skip
            else:
                values_of_small(tables, pi, small[k], rho_V, rho_d, V)
            J, mass = 0.0, 0.0
            if swept:
                for x in each(X):
                    J += nu0[x] * V[x] + d[x] * rho_V[x]
                    mass += rho_d[x]
                J, mass = team_sum(J), team_sum(mass)
                if first():
                    returns[i] = (1 - gamma) * J + (low + high) / 2 * mass
                    error[i] = bound + rounding + coarse * max(abs(low), abs(high))
                for x in each(X):
                    V[x] += rho_V[x]
                    d[x] += rho_d[x]
                    value_step[i, x] = V[x] - old[x, 0]
                    dual_step[i, x] = d[x] - old[x, 1]
            else:  # from V alone: the formula with d = 0
                low, high = value_residual(tables, pi, V, d, rho_V, share)
                for x in each(X):
                    J += nu0[x] * V[x]
                J = team_sum(J)
                if first():
                    returns[i] = (1 - gamma) * J + (low + high) / 2
                    error[i] = (high - low) / 2 + rounding
            sync()


@compiled
def residuals(tables, into, nu0, pi, V, d, rho_V, rho_d, share):  # type: ignore[no-untyped-def]
    """rho_V and rho_d; min rho_V, max rho_V, ||rho_d||_1. What a pair adds to rho_d is scattered to its successors by
    one thread, and gathered from the pairs before a state by several: in the same order, with the same bits."""
    r, successors, transitions, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = transitions.shape
    low, high, size = np.inf, -np.inf, 0.0
    if alone():
        for x in range(X):
            rho_d[x] = nu0[x] - d[x]
        for x in range(X):
            total, mass = -V[x], gamma * d[x]
            for a in range(A):
                p = pi[x, a]
                if p > 0.0:
                    mean, part = 0.0, p * mass
                    to, row = successors[x, a], transitions[x, a]
                    for j in range(B):
                        y, q = to[j], row[j]
                        mean += q * V[y]
                        rho_d[y] += q * part
                    total += p * (r[x, a] + gamma * mean)
            rho_V[x] = total
            low, high = min(low, total), max(high, total)
        for x in range(X):
            size += abs(rho_d[x])
    else:
        low, high = value_residual(tables, pi, V, d, rho_V, share)
        start, many, pair, weight = into
        for y in each(X):
            total = nu0[y] - d[y]
            for e in range(start[y], start[y] + APART * many[y], APART):
                total += weight[e] * share[pair[e]]
            rho_d[y] = total
            size += abs(total)
        size = team_sum(size)
    return low, high, size


@compiled
def value_residual(tables, pi, V, d, rho_V, share):  # type: ignore[no-untyped-def]
    """rho_V; its least and its greatest. And gamma d pi of every pair, for its successors."""
    r, successors, transitions, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = transitions.shape
    low, high = np.inf, -np.inf
    for x in each(X):
        total, mass = -V[x], gamma * d[x]
        for a in range(A):
            p = pi[x, a]
            share[a * X + x] = p * mass
            if p > 0.0:
                mean = 0.0
                to, row = successors[x, a], transitions[x, a]
                for j in range(B):
                    mean += row[j] * V[to[j]]
                total += p * (r[x, a] + gamma * mean)
        rho_V[x] = total
        low, high = min(low, total), max(high, total)
    return team_min(low), team_max(high)


FOLLOW = bound_to(_follow, sweep_both=bound_to(_sweep_both, solve_values=solve_values))
FOLLOW_SWEEPING = bound_to(_follow, sweep_both=bound_to(_sweep_both, solve_values=keep_values))  # allocates nothing
FOLLOW_SMALL = bound_to(_follow, sweep_both=sweep_both)
