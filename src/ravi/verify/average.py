"""Claims about runs in the average reward: the identity behind the regret; and RAVI-KL's plans (Lemma 6, Theorem 6).

Optimistic gains and biases are made from the record's counts by plain relative value iteration, u <- .9 L u + .1 u.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Learner
from ravi.measures.average import bellman_gaps
from ravi.optimism.known_support import outcomes
from ravi.planning.hardness import hardness
from ravi.planning.solver import solve
from ravi.theory import kl as theory
from ravi.verify import sets
from ravi.verify import setting as settings
from ravi.verify.claim import Measured, Registry
from ravi.verify.record import Played
from ravi.verify.setting import RunSetting

SWEEPS, CLOSE = 100_000, 1e-10  # of relative value iteration: at most, and the span of a move at which it ends

registry, of_sets = Registry(), Registry()
claim, of_plan = registry.claim, of_sets.claim


class Truth(NamedTuple):
    """What the average reward of an MDP is held against."""

    diameter: float
    times: Array  # tau_s(x), the least expected steps from x to s   (X, X): s, x
    fastest: Array  # the actions that attain them                     (X, X)
    ucrl2: float  # the bound on the regret of UCRL2; infinite of others


class Plan(NamedTuple):
    """The plans of RAVI-KL for a seed, each as it was made."""

    U: Array  # the optimistic gain                                      (K,)
    U_own: Array  # of the played policy                                 (K,)
    span: Array  # of the optimistic bias                                (K,)
    valid: Array  # the bounds of Lemma 6 at h* and at the times to all states   (K,)
    near: Array  # n KL(p_hat || P) <= ln(X A T) + C_B(n), all pairs     (K,)
    g: Array  # (q_k - P) u_k at the played action                       (K, X)
    own_span: Array  # of u_k, the played policy's optimistic bias       (K,)
    rho: Array  # there                                                  (K, X)
    plays: Array  # n there                                              (K, X)
    earned: Array  # plays whose rewards were counted                    (K, X, A)
    eps: Array  # slack (U(rho) - U(rho / 2))                            (K,)
    tol: Array  # what the plan's tolerance costs                        (K,)


# ---- every learner


@claim("G1", "T g* - sum r = sum Delta + h(x_{T+1}) - h(x_1) + sum ((P h)(x_t, a_t) - h(x_{t+1})), sum Delta = R_T",
       "docs/guides/average_reward.md", per="run")  # fmt: skip
def identity(s: Played) -> Measured:
    mdp, best = s.setting.mdp, solution_of(s.setting)
    h, gaps = best.bias, bellman_gaps(mdp, best)[s.x, s.a].sum()
    ahead = (s.setting.P @ h)[s.x, s.a]
    lost = len(s.x) * (best.gain + best.gain_error) - mdp.rewards[s.x, s.a].sum()
    return max(abs(lost - gaps - (h[s.y[-1]] - h[s.x[0]]) - (ahead - h[s.y]).sum()), abs(gaps - s.regret)), 0.0


@claim("G2", "R_T <= 34 D X sqrt(A T ln(T / delta)), of UCRL2", "Jaksch et al., Theorem 2", kind="P", per="run")
def of_ucrl2(s: Played) -> Measured:
    return s.regret, s.setting.average.ucrl2


# ---- RAVI-KL


@of_plan("G3", "hi >= g* where the bounds at h* hold", "Lemma 6")
def optimism(s: Played) -> Measured:
    best = solution_of(s.setting)
    return np.where(s.plan.valid, best.gain - s.plan.U, -np.inf), best.gain_error + CLOSE


@of_plan("G4", "span(u) <= D hi where they hold at the times to reach each state", "Lemma 6")
def spans(s: Played) -> Measured:
    return np.where(s.plan.valid, s.plan.span - s.setting.average.diameter * (s.plan.U + CLOSE), -np.inf), 0.0


@of_plan("G5", "the played policy's own optimistic gain >= U - eps - (1 + slack) tol_t", "Theorem 6, Corollary")
def nearly_the_most_optimistic(s: Played) -> Measured:
    return s.plan.U - s.plan.U_own, s.plan.eps + s.plan.tol + CLOSE


@of_plan("G6", "(q_k - P) u_k <= span(u_k) (sqrt(rho / 2n) + sqrt(rho_G / 2n)), where P is near p_hat", "Theorem 6")
def deviations(s: Played) -> Measured:
    n = np.maximum(s.plan.plays, 1)
    radius = np.sqrt(s.plan.rho / (2 * n)) + np.sqrt(sets.radius_of_truth(s.setting, n) / (2 * n))
    over = np.where(s.plan.plays > 0, s.plan.g - s.plan.own_span[:, None] * radius, -np.inf).max(-1)
    return np.where(s.plan.near, over, -np.inf), 1e-7


@of_plan("G7", "E steps under invalid plans <= sum of the levels that allow for them", "Lemma 6", kind="E")
def invalid(s: Played) -> Measured:
    mdp = s.setting.mdp
    return s.invalid_steps, theory.levels(1.0, mdp.states, mdp.actions, theory.stage(sets.made_at(s))).sum()


@of_plan("G8", "R_T <= the bound of Theorems 6 and 7, and D", "Theorems 6, 7", kind="E")
def of_theorem(s: Played) -> Measured:
    return s.regret, explicit(s.setting)


SHARED = ("K1", "K9a", "K9b", "K9c", "K9d")  # of `sets`: counts, and sums of widths


def explicit(setting: RunSetting) -> float:
    """Infinite where the radii are not the theorem's."""
    mdp, given = setting.mdp, setting.sets
    if given.scale != 1 or setting.side.reward_scale != 1:
        return np.inf
    D, X, A, unknown = setting.average.diameter, mdp.states, mdp.actions, setting.unknown_rewards
    found = theory.average(
        D, X, A, outcomes(mdp, True), setting.steps, slack=given.slack, tolerance=theory.TOLERANCE,
        unknown_rewards=unknown,
    )  # fmt: skip
    return float(found) + D


# ---- the setting and the plans


def solution_of(setting: RunSetting) -> Any:
    """An `AverageSolution`."""
    return setting.solution


def setting_of(learner: Learner, mdp: MDP, steps: int) -> RunSetting:
    setting = settings.setting_of(learner, mdp, steps, solve(mdp, tol=1e-12))
    D, given, bound = hardness(mdp).diameter, setting.sets, np.inf
    if given is not None and given.delta is not None:
        if given.scale == 1 and not setting.side.support:
            bound = 34 * D * mdp.states * sqrt(mdp.actions * steps * log(steps / given.delta))
        given = None
    return setting._replace(sets=given, average=Truth(D, *hitting_times(setting.P), bound))


def hitting_times(P: Array) -> tuple[Array, Array]:
    """tau_s(x) and actions that attain them, by value iteration from below."""
    X = len(P)
    tau, moved = np.zeros((X, X)), 1.0
    while moved > CLOSE:
        Q = 1 + np.einsum("xay,sy->sxa", P, tau)
        new = np.where(np.eye(X, dtype=bool), 0.0, Q.min(-1))
        moved, tau = np.abs(new - tau).max(), new
    return tau, Q.argmin(-1)


def plan_of(s: Played) -> Plan:
    setting, mdp, n, time = s.setting, s.mdp, s.books.visits, s.starts.astype(float)
    slack, policy, X, best = setting.sets.slack, s.states.policy, mdp.states, solution_of(setting)
    bounds = X * (X + 1) + X * setting.unknown_rewards
    levels = theory.levels(1.0, X, mdp.actions, theory.stage(np.maximum(time, 1)))
    (rho, r, near), earned, most = sets.bounds_of(s, np.log(bounds / levels))

    def gain(share: float = 1.0, policy: Array | None = None) -> tuple[Array, Array]:
        """The least gain, and the bias: of the best policy, or of one, at a share of the radii."""
        u = np.zeros((s.K, X))
        for _ in range(SWEEPS if policy is None else SWEEPS // 20):
            Q = r + most(u, share)
            delta = (Q.max(-1) if policy is None else (policy * Q).sum(-1)) - u
            if np.ptp(delta, axis=-1).max() <= CLOSE:
                break
            u = u + 0.9 * (delta - delta.min(-1, keepdims=True))
        return delta.min(-1), u

    x, star, atol = np.arange(X), best.policy.argmax(-1), setting.atol
    valid = (most(best.bias)[:, x, star] >= (setting.P @ best.bias)[x, star] - atol).all(-1)
    valid &= (r[:, x, star] >= mdp.rewards[x, star] - atol).all(-1)
    for to, (tau, fast) in enumerate(zip(setting.average.times, setting.average.fastest, strict=True)):
        valid &= ((-most(-tau)[:, x, fast] <= tau - 1 + 1e-7) | (x == to)).all(-1)
    U, u = gain()
    U_own, own = gain(policy=policy)
    excess = U - gain(0.5)[0] if slack > 0 else np.zeros(s.K)
    g = most(own) - np.einsum("xay,ky->kxa", setting.P, own)
    g, rho, plays = (np.take_along_axis(part, policy.argmax(-1)[..., None], 2)[..., 0] for part in (g, rho, n))
    return Plan(
        U, U_own, np.ptp(u, axis=-1), valid, near, g, np.ptp(own, axis=-1), rho, plays, earned, slack * excess,
        (1 + slack) * theory.TOLERANCE / np.sqrt(time),
    )  # fmt: skip
