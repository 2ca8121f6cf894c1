"""What policies are worth in episodes, by backward induction.

A policy is fixed when an episode begins, so that the regret of an episode is <nu_0, V* - V^pi>. V^pi_h is computed anew
from the last stage whose policy is another one, or for which a later V is another one: the bits are those of a whole
pass. States that a stage cannot be in are left out: their V stays 0, and their rows are not kept. A pass costs S X B
products at most for a policy that is deterministic, S the steps of an episode; where a learner plans by a pass over all
actions, this is 1 / A of it.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, first, sync, team_max
from ravi.core import MDP, Array
from ravi.planning.certificates import EPS, mean, tables
from ravi.planning.episodes import backup_error, policy_grain
from ravi.runtime.ranges import Number, PolicyOrNan, Positive, Value


class Episodes(NamedTuple):
    """The policies that were scored last."""

    policy: PolicyOrNan  # of all stages; one stage where it is stationary   (n, S X, A), or (n, X, A)
    value: Value  # V^pi_0, ..., V^pi_{S-1}, and 0   (n, S + 1, X)
    returns: Number  # rho                           (n,)
    error: Positive  # certified bound on its error  (n,)


def initial_episodes(mdp: MDP, stages: int, n: int) -> Episodes:
    """Before any policy."""
    S, X, A = mdp.episode or 0, mdp.states, mdp.actions
    error = backup_error(policy_grain(mdp), S) / S + 4 * EPS
    none = np.full((n, max(stages, 1) * X, A), np.nan)
    return Episodes(none, np.zeros((n, S + 1, X)), np.zeros(n), np.full(n, error))


def scoring_tables(mdp: MDP) -> tuple[Any, ...]:
    """What `score_episodes` reads of an MDP: with the states that stage h can be in, state[start[h]:start[h + 1]]."""
    arrays, there, stages = tables(mdp, average=True), mdp.initial > 0, list[Array]()
    for _ in range(mdp.episode or 0):
        stages.append(np.flatnonzero(there))
        led = mdp.successors[there][mdp.support[there]]
        there = np.zeros(mdp.states, np.bool_)
        there[led] = True
    start = np.cumsum([0, *map(len, stages)])
    return arrays.rewards, arrays.successors, arrays.transitions, mdp.initial, start, np.concatenate(stages)


@compiled
def score_episodes(scored, i, policy, lengths):  # type: ignore[no-untyped-def]
    """The returns of the policy of seed i; a team's."""
    (r, successors, P, nu0, start, state), (kept, V, returns, _) = scored
    X, A, B = P.shape
    S, stages = V.shape[1] - 1, kept.shape[1] // X
    now, pi = policy[i], kept[i]
    moved, changed = 0, 0  # whether V_{h+1}, and the policy of the stage, are others than before
    for h in range(S - 1, -1, -1):
        begin, those = min(h, stages - 1) * X, state[start[h] : start[h + 1]]
        if h == S - 1 or h < stages - 1:  # else the last stage goes on
            shared = stages < S and h == S - 1
            changed = _renew(pi, now, begin, those, X if shared else len(those), shared)
        differs = 0
        if moved > 0 or changed > 0:
            after, values = V[i, h + 1], V[i, h]
            for k in each(len(those)):
                x = those[k]
                mass, value = 0.0, 0.0
                for a in range(A):
                    p = pi[begin + x, a]
                    if p > 0.0:
                        future = 0.0
                        for j in range(B):
                            future += P[x, a, j] * after[successors[x, a, j]]
                        mass += p
                        value += p * (r[x, a] + future)
                if abs(mass - 1.0) > EPS * A:
                    value = _value_as_drawn(r[x], successors[x], P[x], pi[begin + x], after)
                if value != values[x]:
                    values[x] = value
                    differs = 1
        moved = team_max(differs)
        sync()
    if first():
        returns[i] = mean(nu0, V[i, 0]) / S


@compiled
def _renew(pi, now, begin, those, many, every):  # type: ignore[no-untyped-def]
    """Whether the policy of these states, or of every one, is another one; it is copied."""
    changed = 0
    for k in each(many):
        row = begin + (k if every else those[k])
        for a in range(pi.shape[1]):
            if pi[row, a] != now[row, a]:
                pi[row, a] = now[row, a]
                changed = 1
    return team_max(changed)


@compiled
def _value_as_drawn(r, successors, P, policy, V):  # type: ignore[no-untyped-def]
    """sum_a pi(a) (r(a) + <P(a), V>) of the probabilities by which actions are drawn (`ravi.runtime.walk.draw`), of a
    row that misses the sum one."""
    A, B = P.shape
    last, mass, total = 0, 0.0, 0.0
    for a in range(A):
        if policy[a] > 0.0:
            last = a
    for a in range(last + 1):
        below = min(mass, 1.0)
        mass += policy[a]
        p = (min(mass, 1.0) if a < last else 1.0) - below
        if p > 0.0:
            future = 0.0
            for j in range(B):
                future += P[a, j] * V[successors[a, j]]
            total += p * (r[a] + future)
    return total
