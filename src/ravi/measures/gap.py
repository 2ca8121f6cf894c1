"""How far is a policy from the optimum? rho* - rho(pi) for many slowly changing policies, each to a certified error.

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
plays a policy at most 3 eps A / 2 away in L1 (`ravi.played`), which moves rho_V by 3 eps A H / 2 and rho_d by as much.
Of 2 grain, at least eps (B + 23) is not needed for V, of the roundings of rho_d eps (B + 21) / 2; so
many = eps max(2 A - 12, 0) is enough. A row that misses by more is scored as the row that is played: nothing is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi.compiled import compiled
from ravi.core import MDP, Array
from ravi.planning.certificates import EPS, Tables
from ravi.planning.chains import eliminated_values, policy_chain
from ravi.planning.evaluation import relative_values
from ravi.played import as_drawn
from ravi.ranges import Number, PolicyOrNan, Positive

PATIENCE = 300  # sweeps, then V is solved for; a policy that moves by little needs one to ten
SMALL = 16  # states up to which a chain is solved by elimination


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
        np.zeros(shape),
        np.tile(mdp.initial * mdp.horizon, (n, 1)),
        np.zeros(shape),
        np.zeros(shape),
        np.full((n, mdp.states, mdp.actions), np.nan),
        np.zeros(n),
        np.zeros(n),
    )


def follow(tables: Tables, initial: Array, tracked: Tracked, policy: Array, wanted: Array, tol: float) -> None:
    """Bring `returns` and `error` to the policy that is played by the rows `policy` (n, X, A), for the seeds with
    wanted > 0; in place."""
    _follow(tables, initial, policy, wanted, tol, *tracked)


@compiled
def _follow(  # type: ignore[no-untyped-def]
    tables, nu0, policy, wanted, tol, value, dual, value_step, dual_step, before, returns, error
):
    n, X, A = policy.shape
    gamma = tables.discount
    H = 1 / (1 - gamma)
    many = EPS * max(2 * A - 12, 0) * (1 + H)
    rounding = 2 * tables.grain * (1 + H) + (X + 8) * EPS + many
    coarse = EPS * ((X * A + tables.transitions.shape[2] + 12) * (1 + H) + X + 8) + many  # times m
    rho_V, rho_d, old = np.empty(X), np.empty(X), np.empty((2, X))
    for i in range(n):
        if wanted[i] <= 0:
            continue
        same, exact, least = True, True, 0.0
        for x in range(X):
            mass = 0.0
            for a in range(A):
                p = policy[i, x, a]
                mass += p
                least = min(least, p)
                if before[i, x, a] != p:
                    same = False
                    before[i, x, a] = p
            if not abs(mass - 1.0) <= EPS * A:
                exact = False
                least = least if mass >= 0.0 else -1.0  # a nan
        if least < 0.0:  # nothing is certified of that
            returns[i], error[i] = np.nan, np.inf
            continue
        if same:
            continue
        V, d, pi = value[i], dual[i], before[i]
        if not exact:
            pi = as_drawn(pi)
        if X <= SMALL:
            V[:] = eliminated_values(policy_chain(tables, pi), gamma)
            returns[i], error[i] = _by_value(tables, nu0, pi, V, d, rho_V, rho_d)
            error[i] += rounding
            continue
        total = 0.0
        for x in range(X):
            old[0, x], old[1, x] = V[x], d[x]
            V[x] = min(max(V[x] + value_step[i, x], 0.0), H)
            d[x] = max(d[x] + dual_step[i, x], 0.0)
            total += d[x]
        if total > H:
            for x in range(X):
                d[x] *= H / total
        bound, last = np.inf, np.inf
        for _ in range(PATIENCE):
            low, high, size = _residuals(tables, nu0, pi, V, d, rho_V, rho_d)
            bound = size * (high - low) / 2
            if bound <= tol or bound >= last:  # accurate enough, or at the rounding floor
                break
            if bound < rounding:
                last = bound  # one more sweep is welcome, as long as it helps
            for x in range(X):
                V[x] += rho_V[x]
                d[x] += rho_d[x]
        else:  # the chain mixes too slowly for sweeps: solve for V as planners do
            V[:] = relative_values(tables, pi, V.copy(), 2 * tol)[0]
            value_step[i], dual_step[i] = 0.0, 0.0
            returns[i], error[i] = _by_value(tables, nu0, pi, V, d, rho_V, rho_d)
            error[i] += rounding
            continue
        J, mass, middle = 0.0, 0.0, (low + high) / 2
        for x in range(X):
            J += nu0[x] * V[x] + d[x] * rho_V[x]
            mass += rho_d[x]
        returns[i] = (1 - gamma) * J + middle * mass
        error[i] = bound + rounding + coarse * max(abs(low), abs(high))
        for x in range(X):
            V[x] += rho_V[x]
            d[x] += rho_d[x]
            value_step[i, x] = V[x] - old[0, x]
            dual_step[i, x] = d[x] - old[1, x]


@compiled
def _by_value(tables, nu0, pi, V, d, rho_V, rho_d):  # type: ignore[no-untyped-def]
    """rho(pi) and the bound on its error from V alone: the formula with d = 0."""
    low, high, _ = _residuals(tables, nu0, pi, V, d, rho_V, rho_d)
    J = 0.0
    for x in range(V.shape[0]):
        J += nu0[x] * V[x]
    return (1 - tables.discount) * J + (low + high) / 2, (high - low) / 2


@compiled
def _residuals(tables, nu0, pi, V, d, rho_V, rho_d):  # type: ignore[no-untyped-def]
    """rho_V and rho_d in one pass over P; min rho_V, max rho_V, ||rho_d||_1."""
    r, successors, transitions, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = transitions.shape
    for x in range(X):
        rho_d[x] = nu0[x] - d[x]
    low, high = np.inf, -np.inf
    for x in range(X):
        total, mass = -V[x], gamma * d[x]
        for a in range(A):
            p = pi[x, a]
            if p > 0.0:
                mean, share = 0.0, p * mass
                to, row = successors[x, a], transitions[x, a]
                for j in range(B):
                    y, q = to[j], row[j]
                    mean += q * V[y]
                    rho_d[y] += q * share
                total += p * (r[x, a] + gamma * mean)
        rho_V[x] = total
        low, high = min(low, total), max(high, total)
    size = 0.0
    for x in range(X):
        size += abs(rho_d[x])
    return low, high, size
