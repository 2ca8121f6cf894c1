"""Extended value iteration: u <- L u, L a backup followed by max_a, until the span of L u - u is small.

For every backup that is monotone and moves constants along with gamma (`ravi.optimism.sets`), delta = L u - u bounds
the fixed point as in `ravi.planning.certificates`: for gamma < 1,

    V = L u + gamma H (min delta + max delta) / 2     is within     gamma H span(delta) / 2     of V = L V,

whatever constant was added to u: so u is kept small, with min u = 0. On the reset chain gamma P + (1 - gamma) 1 nu_0^T
the average-reward recursion u <- max_a {r + gamma <p, u>} + (1 - gamma) <nu_0, u> differs from this by constants only:
it is the same iteration, and its gain lies between (1 - gamma) <nu_0, V> at the two ends. So "discounted" and "average
reward" planning differ in when they stop. The span shrinks by gamma at every sweep: from u = 0 it takes at most
1 + ln(tol) / ln(gamma) sweeps, for rewards of span 1. With gamma = 1 (a learner that is blind to resets), u is mixed
with L u, against periods, and delta / mixing bounds the gain itself.

With a span bound c, L is followed by min(., min + c): the operator of ScOpt (SCAL). It too is monotone, moves constants
along, and shrinks spans by gamma, so all of the above holds of it. Its policy (`act`) reaches min L u + c where
L u is more, by mixing the greedy action with one that earns nothing: the optimistic MDP is enlarged by a duplicate of
every action with reward 0, and may choose any plausible kernel for it. That there is a mixture needs no assumption:
every u of the iteration has span(u) <= c, so a duplicate is worth at most gamma max u <= gamma min u + c <= min L u +
c, because rewards are not negative.

One loop, of one seed (`_iterate`), bound to the functions of each kind of sets: a team's (`ravi._jit.teams`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import Buffer, each, sync, team_max, team_min
from ravi.core import Array
from ravi.estimators.counts import Counts

MOST = 100_000  # sweeps of one plan: enough for rewards of span 1 where gamma <= 0.999; near gamma = 1 it may not be
LANES = 32  # threads of a team, at most


class Given(NamedTuple):
    """What sets of kernels are made of, by pairs p = x A + a, and scratch: in parts, one for each plan under way."""

    rewards: Array  # (n, X A), or of all seeds (1, X A)
    successors: Array  # (X A, B)
    discount: float
    visits: Array  # (n, X A)
    moves: Array  # (n, X A, B)
    reference: int  # the state that `ravi.optimism.sets.smoothed` adds
    radius: Any  # of the sets, or a bonus            (parts, X A)
    constant: Any  # a second one                     (parts, X A)
    size: Any  # successors that were seen            (parts, X A)
    to: Any  # which                                  (parts, X A, B)
    p: Any  # their p_hat                             (parts, X A, B)
    w: Any  # of the best p                           (parts, X A, B)
    filled: Any  # states up to their most            (parts, X A)
    rest: Any  # what is left for the next            (parts, X A)
    order: Any  # the states by falling V             (parts, X)
    rank: Any  # their places in it                   (parts, X)
    sums: Any  # of the best values                   (parts, X + 1)
    ranked: Any  # whether p has been chosen          (parts,)
    scratch: Any  # where rows are long               (parts, LANES or 0, X)


def given(rewards: Array, successors: Array, discount: float, D: Counts, parts: int, *, reference: int = 0) -> Given:
    """With room for `parts` plans. rewards: (n or 1, X, A)."""
    X, A, B = successors.shape
    by_pair, by_move, whole = (parts, X * A), (parts, X * A, B), np.int32
    return Given(
        rewards.reshape(-1, X * A), successors.reshape(X * A, B), discount, D.visits.reshape(-1, X * A),
        D.moves.reshape(-1, X * A, B), reference, Buffer(by_pair), Buffer(by_pair), Buffer(by_pair, whole),
        Buffer(by_move, whole), Buffer(by_move), Buffer(by_move), Buffer(by_pair, whole), Buffer(by_pair),
        Buffer((parts, X), whole), Buffer((parts, X), whole), Buffer((parts, X + 1)), Buffer((parts,), np.bool_),
        Buffer((parts, LANES if B * B > 4 * X else 0, X)),
    )  # fmt: skip


class Sets(NamedTuple):
    """A kind of sets, as compiled functions of seed i that use part k of the scratch; a team's."""

    prepare: Callable[..., Any]  # given, i, k: what does not depend on V, where the radii are there
    most: Callable[..., Any]  # given, i, k, V (X,), out (X A,): max <p, V> of every pair


def greedy(Q: Array) -> Array:
    """The policy that plays the first of the best actions   (n, X, A)."""
    policy = np.zeros(Q.shape)
    np.put_along_axis(policy, Q.argmax(-1)[..., None], 1.0, axis=-1)
    return policy


@compiled
def worth(own, i, k, v, Q):  # type: ignore[no-untyped-def]
    """From max <p, V> of every pair to rewards + gamma max <p, V>, in place."""
    r, gamma = own.rewards[i if own.rewards.shape[0] > 1 else 0], own.discount
    for p in each(Q.shape[0]):
        Q[p] = r[p] + gamma * Q[p]


most = prepare = worth  # `ravi._jit.functions.bound` puts those of the sets here


def _iterate(own, i, k, u, before, Lu, Q, tol, span, mixing, limit):  # type: ignore[no-untyped-def]
    """u <- L u less its least, in place, until span(L u - u) <= tol; the ends of L u - u, what was taken from L u at
    last, and how many sweeps that took. `before` is the last u, Q (X A,) its backup; `Lu` (X,) is scratch."""
    X, sweeps = u.shape[0], 0
    while True:
        most(own, i, k, u, Q)
        worth(own, i, k, u, Q)
        sync()
        bottom, _ = _best(Q, Lu)
        ceiling = team_min(bottom) + span
        down, up, base = np.inf, -np.inf, np.inf
        for x in each(X):
            value = mixing * min(Lu[x], ceiling) + (1 - mixing) * u[x]
            down, up, base = min(down, value - u[x]), max(up, value - u[x]), min(base, value)
            Lu[x] = value
        down, up, base = team_min(down), team_max(up), team_min(base)
        for x in each(X):
            before[x], u[x] = u[x], Lu[x] - base
        sync()
        sweeps += 1
        if up - down <= tol or sweeps >= limit:
            return down, up, base, sweeps


@compiled
def _best(Q, Lu):  # type: ignore[no-untyped-def]
    """L u of Q (X A,); the least and the largest that this thread has found."""
    X = Lu.shape[0]
    A = Q.shape[0] // X
    bottom, top = np.inf, -np.inf
    for x in each(X):
        best = Q[x * A]
        for a in range(1, A):
            best = max(best, Q[x * A + a])
        Lu[x] = best
        bottom, top = min(bottom, best), max(top, best)
    return bottom, top


@compiled
def cut(Q, Lu, span):  # type: ignore[no-untyped-def]
    """L u of Q (X A,), where it may rise to at most: min L u + span, and whether it does more anywhere."""
    bottom, top = _best(Q, Lu)
    ceiling = team_min(bottom) + span
    return ceiling, team_max(top) > ceiling


@compiled
def act(Q, Lu, ceiling, over, idle, policy):  # type: ignore[no-untyped-def]
    """The policy (X, A) of min(L u, ceiling): the first of the best actions, and where it is `over` the ceiling, mixed
    with the first that is worth least without reward, idle (X A,)."""
    X, A = policy.shape
    for x in each(X):
        best = 0
        for a in range(A):
            policy[x, a] = 0.0
            if Q[x * A + a] > Q[x * A + best]:
                best = a
        policy[x, best] = 1.0
        if over and Lu[x] > ceiling:
            low = 0
            for a in range(1, A):
                if idle[x * A + a] < idle[x * A + low]:
                    low = a
            least = idle[x * A + low]
            weight = min(max((ceiling - least) / (Lu[x] - least), 0.0), 1.0)
            policy[x, best] = weight
            policy[x, low] += 1 - weight


def _least(own, i, k, v, Q):  # type: ignore[no-untyped-def]
    """What duplicates without reward are worth, gamma min <p, V>: the maximum with V negated, which it is in place."""
    prepare(own, i, k)
    for x in each(v.shape[0]):
        v[x] = -v[x]
    sync()
    most(own, i, k, v, Q)
    for p in each(Q.shape[0]):
        Q[p] = -(own.discount * Q[p])
