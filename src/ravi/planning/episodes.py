"""Episodes of a fixed length: the optimum and the value of a policy by stage, certified, and what states are visited.

An episode has stages h = 0, ..., S - 1, a step each, begins in nu_0, and has no discount. With V_S = 0, backwards,

    Q_h = r + P V_{h+1},    V*_h = max_a Q_h,    V^pi_h = sum_a pi_h(a | .) Q_h(., a),    rho = <nu_0, V_0> / S

and rho is the expected reward per step. Values are sums of at most S rewards, so nothing has to be cut off.

Rounding. A backup errs by at most grain (1 + max |V_{h+1}|) (`ravi.planning.certificates`), |V_{h+1}| is at most
S - h - 1, and what came before is passed on times 1 + grain at most. So every V_h and Q_h is known to

    error = grain S (S + 1) / 2 exp(S grain),

rho to error / S + 4 2^-52, and the policy that is greedy in the computed Q loses at most 2 error in an episode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Floats
from ravi.planning.bellman import flow
from ravi.planning.certificates import EPS, distributions, mean, miss, tables
from ravi.planning.sweeps import bellman_sweep, policy_sweep


@dataclass(frozen=True, eq=False, repr=False)
class EpisodicEvaluation:
    """The values of a policy by stage, in episodes.

    Attributes
    ----------
    V
        V^pi_h(x), what is earned from stage h on, of shape (S, X).
    Q
        Q^pi_h(x, a), of shape (S, X, A).
    value
        <nu_0, V^pi_0>, the expected reward of an episode.
    returns
        The same per step, in [0, 1].
    error
        A bound on the error of V, Q and `value`; that of `returns` is error / S + 1e-15.
    """

    V: Floats
    Q: Floats
    value: float
    returns: float
    error: float

    def __repr__(self) -> str:
        return f"<EpisodicEvaluation: {self.value:.12g} an episode of {len(self.V)}, V and Q ± {self.error:.1g}>"


@dataclass(frozen=True, eq=False, repr=False)
class EpisodicSolution:
    """The optimum in episodes, by stage.

    Attributes
    ----------
    V
        V*_h(x), the most that can be earned from stage h on, of shape (S, X).
    Q
        Q*_h(x, a), of shape (S, X, A).
    policy
        An optimal policy by stage, deterministic, of shape (S, X, A).
    value
        <nu_0, V*_0>, the most that an episode earns.
    optimum
        The same per step, rho*.
    error
        A bound on the error of V, Q and `value`.
    optimum_error
        That of `optimum`.
    policy_error
        At least rho* - rho(policy).
    name
        The name of the MDP.
    """

    V: Floats
    Q: Floats
    policy: Floats
    value: float
    optimum: float
    error: float
    optimum_error: float
    policy_error: float
    name: str

    def __repr__(self) -> str:
        return (
            f"<EpisodicSolution of {self.name}: {self.value:.12g} an episode, V and Q ± {self.error:.1g}, "
            f"policy within {self.policy_error:.1g} a step of optimal>"
        )


def backup_error(grain: float, episode: int) -> float:
    """The error of a value after so many backups."""
    return grain * episode * (episode + 1) / 2 * math.exp(episode * grain)


def policy_grain(mdp: MDP) -> float:
    """The grain of backups under a policy whose rows miss the sum one by rounding only."""
    return tables(mdp, average=True).grain + 2 * EPS * mdp.actions


def solve_episodes(mdp: MDP) -> EpisodicSolution:
    """The optimum of an MDP in episodes.

    Examples
    --------
    >>> import ravi
    >>> ravi.solve(ravi.mdp("deep-sea/4,criterion=episodic,episode=4"))
    <EpisodicSolution of deep-sea/4,criterion=episodic,episode=4: 1 an episode, V and Q ± ...>
    """
    arrays, S, X, A = tables(mdp, average=True), mdp.episode or 0, mdp.states, mdp.actions
    validation.require_memory(8 * S * X * (2 * A + 3), f"the values of {S} stages of {mdp.name}", "episode")
    V, Q, greedy = np.zeros((S + 1, X)), np.empty((S, X, A)), np.empty((S, X), np.int64)
    for h in range(S - 1, -1, -1):
        bellman_sweep(0, X, arrays, V[h + 1], Q[h], V[h], greedy[h])
    policy = np.zeros((S, X, A))
    np.put_along_axis(policy, greedy[..., None], 1.0, -1)
    value, error = float(mean(mdp.initial, V[0])), backup_error(arrays.grain, S)
    return EpisodicSolution(
        V=V[:S], Q=Q, policy=policy, value=value, optimum=value / S, error=error, optimum_error=error / S + 4 * EPS,
        policy_error=(error + backup_error(policy_grain(mdp), S)) / S, name=mdp.name,
    )  # fmt: skip


def stages_of(mdp: MDP, policy: Any) -> Array:
    """A policy by stage (S, X, A), of one table (X, A) or of an action per state for all stages; a view, checked."""
    table, S = validation.of_actions(policy, mdp.actions), mdp.episode or 0
    shape = (mdp.states, mdp.actions)
    if table.shape not in (shape, (S, *shape)):
        raise validation.InputError(
            f"policy has shape {table.shape}; in episodes it is one table (X, A) = {shape} or a stage for every step, "
            f"(S, X, A) = {(S, *shape)}"
        )
    validation.sums_to_one(table, "policy")
    return np.broadcast_to(distributions(table), (S, *shape))


def evaluate_episodes(mdp: MDP, policy: Any) -> EpisodicEvaluation:
    """The values of a policy in episodes: one table (X, A), or one by stage (S, X, A).

    Examples
    --------
    >>> import numpy as np
    >>> import ravi
    >>> ravi.evaluate(ravi.mdp("deep-sea/4,criterion=episodic,episode=4"), np.full((16, 2), 0.5))
    <EpisodicEvaluation: 0.0... an episode of 4, V and Q ± ...>
    """
    pi = stages_of(mdp, policy)
    arrays, (S, X, A) = tables(mdp, average=True), pi.shape
    V, Q = np.zeros((S + 1, X)), np.empty((S, X, A))
    for h in range(S - 1, -1, -1):
        policy_sweep(arrays, np.ascontiguousarray(pi[h]), V[h + 1], Q[h], V[h])
    value = float(mean(mdp.initial, V[0]))
    error = backup_error(arrays.grain + EPS * A + miss(pi), S)
    return EpisodicEvaluation(V[:S], Q, value, value / S, error)


def occupancy_by_stage(mdp: MDP, policy: Any) -> tuple[Array, float]:
    """mu_h(x, a) = P(x_h = x, a_h = a), of shape (S, X, A), and a bound on the error of each stage in L1.

    The flow into a state is a sum of n terms, of which 2^-53 (n + A + 4) goes wrong in relative terms; rows that miss
    the sum one by d move a flow by d. Stages add these up.
    """
    pi = stages_of(mdp, policy)
    mu, nu = np.empty(pi.shape), mdp.initial / math.fsum(mdp.initial)
    for h, stage in enumerate(pi):
        mu[h] = nu[:, None] * stage
        nu = flow(mdp, mu[h])
    terms = int(np.bincount(mdp.successors[mdp.transitions > 0]).max())
    off = miss(mdp.transitions) + miss(pi)
    error = len(pi) * (EPS * (terms + mdp.actions + 4) + off)
    return mu, error * math.exp(error)
