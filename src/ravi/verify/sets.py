"""Claims about the optimistic plans of RAVI-KL (greedy, slack): the lemmas of docs/explanation/kl.md, on every plan.

The radii are made from the record's counts by their formulas, the fixed points by plain value iteration, and what is
played is held against them. Epochs are the phases of the run. No padding is played.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, rel_entr

from ravi.core import MDP, Array
from ravi.estimators.counts import Counts
from ravi.optimism.known_support import on_support, outcomes
from ravi.optimism.relative_entropy import highest_rewards, largest
from ravi.theory import kl as theory
from ravi.verify import lemmas
from ravi.verify.claim import Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.expected import by_dual
from ravi.verify.record import Played, values
from ravi.verify.setting import RunSetting

CLOSE = 1e-11  # of H: value iteration ends at moves of this size

registry = Registry()
claim = registry.claim


class Plan(NamedTuple):
    """The plans of a seed, each as it was made."""

    time: Array  # t                                                    (K,)
    earned: Array  # plays whose rewards were counted                   (K, X, A)
    V: Array  # of the fixed point of L_C                               (K, X)
    own: Array  # V_k, of the played policy with its best kernels       (K, X)
    U: Array  # (1 - gamma) <nu_0, V>                                   (K,)
    U_own: Array  # of V_k                                              (K,)
    gap: Array  # of the played policy                                  (K,)
    lead: Array  # (1 - gamma) <nu_0, V_k - V^{pi_k}>                   (K,)
    valid: Array  # max_C <q, V*> >= P V* at (x, pi*(x)), for all x     (K,)
    g: Array  # V_k - r - gamma P V_k at the played action              (K, X)
    variance: Array  # of V_k under P there                             (K, X)
    plays: Array  # n there                                             (K, X)
    eps: Array  # slack (U(rho) - U(rho / 2)); of a mixture eps_t        (K,)
    tol: Array  # what the plan's tolerance costs                       (K,)
    made: Any  # what else its sets are made of: `Radii`; of a mixture `mixtures.Likely`

    @property
    def charge(self) -> Array:
        """What Theorem 1 charges a step under each with   (K,)."""
        return ~self.valid + self.eps + self.tol + self.lead


class Radii(NamedTuple):
    rho: Array  # by their formula                                      (K, X, A)
    rewards: Array  # r, or their upper bounds                          (K, X, A)
    near: Array  # n KL(p_hat || P) <= ln(X A T) + C_B(n), all pairs    (K,)


# ---- every plan


@claim("K1", "n and N' are of what was played, and so are the visits whose rewards were counted",
       "docs/explanation/kl.md")  # fmt: skip
def counts(s: Played) -> Measured:
    D, n = s.data, s.books.visits
    return worst(np.abs(D.moves - s.books.moves), np.abs(D.visits - n), np.abs(s.plan.earned - n)), 0.0


@claim("K2", "max_C <q, V> is the minimum of its dual", "docs/explanation/kl.md")
def duality(s: Played) -> Measured:
    mdp, support, p, moves = s.mdp, s.setting.side.support, s.plan, s.books.moves
    found = largest(on_support(mdp, support).successors, Counts(moves.sum(-1), moves), p.made.rho, support, p.V)
    return worst(np.abs(found - by_dual(mdp, moves, p.made.rho, support, p.V))), 0.0


@claim("K3", "r <= their upper confidence bounds at pi*, and P V* <= max_C <q, V*>, where valid: V >= V*", "Lemma 4")
def optimism(s: Played) -> Measured:
    below = (s.setting.solution.V - s.plan.V).max(-1)
    return np.where(s.plan.valid, below, -np.inf), s.setting.solution.error


@claim("K4", "the played policy's own optimistic return >= U - eps - (1 + slack) gamma tol_t", "Corollary")
def nearly_the_most_optimistic(s: Played) -> Measured:
    return s.plan.U - s.plan.U_own, s.plan.eps + s.plan.tol


@claim(
    "K5", "gap(pi_k) <= 1{invalid} + eps + (1 + slack) gamma tol_t + (1 - gamma) <nu_0, V_k - V^{pi_k}>", "Theorem 1"
)
def certificate(s: Played) -> Measured:
    return s.plan.gap, s.plan.charge


@claim("K6", "n KL(p_hat || P) <= ln(X A T) + C_B(n), for all pairs", "Lemma 2", kind="P")
def near(s: Played) -> Measured:
    return (~s.plan.made.near).astype(float), 0.0


def deviation(s: Played) -> tuple[Array, Array, Array]:
    """gamma (q_k - P) V_k = V_k - r_up - gamma P V_k, rho / n and rho_G / n, at the played actions   (K, X) each."""
    p, chosen = s.plan, s.at.policy.argmax(-1)[..., None]
    surplus = p.made.rewards - s.mdp.rewards
    rho, surplus = (np.take_along_axis(part, chosen, 2)[..., 0] for part in (p.made.rho, surplus))
    n = np.maximum(p.plays, 1)
    return p.g - surplus, rho / n, radius_of_truth(s.setting, n) / n


def where_near(s: Played, over: Array) -> Measured:
    return np.where(s.plan.made.near, np.where(s.plan.plays > 0, over, -np.inf).max(-1), -np.inf), 0.0


@claim("K7", "gamma (q_k - P) V_k <= gamma H (sqrt(rho / 2n) + sqrt(rho_G / 2n)), where P is near p_hat", "Theorem 1")
def by_range(s: Played) -> Measured:
    off, rho, rho_G = deviation(s)
    return where_near(s, off - s.gamma * s.H * (np.sqrt(rho / 2) + np.sqrt(rho_G / 2)))


@claim("K8", "gamma |(q_k - P) V_k| <= gamma (a sqrt(rho Var_P(V_k) / n) + b H rho / n), where P is near p_hat",
       "Theorem 2")  # fmt: skip
def by_variance(s: Played) -> Measured:
    off, *radii = deviation(s)
    rho, a, b = np.maximum(*radii), sqrt(2) + sqrt(6), 2 / 3 + sqrt(32 / 3)
    return where_near(s, np.abs(off) - s.gamma * (a * np.sqrt(rho * s.plan.variance) + b * s.H * rho))


# ---- the whole run


def along(s: Played, f: Array) -> Array:
    """f_k(x_t) of f (K, X), step by step   (T,)."""
    return f[s.epoch, s.x]


@claim("K9a", "a plan in force at t was made at s >= (t + 1) / 2", "Theorem 1", per="run")
def plans_are_young(s: Played) -> Measured:
    return (s.lengths - s.starts).max(), 0.0


@claim("K9b", "sum n^{-1/2} <= (1 + sqrt 2) sqrt(X A T), over steps with n >= 1", "Theorem 1", per="run")
def roots(s: Played) -> Measured:
    n, mdp = along(s, s.plan.plays), s.mdp
    return (n[n > 0] ** -0.5).sum(), (1 + sqrt(2)) * sqrt(mdp.states * mdp.actions * s.T)


@claim("K9c", "sum 1 / n <= 2 X A ln(1 + T / X A) over them, and at most X A steps have n = 0", "Theorem 2",
       per="run")  # fmt: skip
def inverses(s: Played) -> Measured:
    n, pairs = along(s, s.plan.plays), s.mdp.states * s.mdp.actions
    over = (1 / n[n > 0]).sum() - 2 * pairs * log(1 + s.T / pairs)
    return max(over, (n == 0).sum() - pairs), 0.0


def at_resets(s: Played) -> Array:
    """Whether each phase began with the run or after a reset   (K,)."""
    return np.append(True, s.reset[s.starts[1:] - 2])


def by_doubling(s: Played) -> int:
    """How many phases ended without a reset, before T."""
    return int((~at_resets(s)).sum())


@claim("K9d", "at most D = min{T, X A (1 + log2 max{1, T / X A})} phases end by doubling", "Theorem 1", per="run")
def doublings(s: Played) -> Measured:
    return by_doubling(s), theory.doublings(s.mdp.states, s.mdp.actions, s.T)


@claim("K10", "E steps under invalid plans <= sum of the levels that allow for them", "Lemma 1", kind="E")
def invalid(s: Played) -> Measured:
    mdp = s.mdp
    levels = theory.levels(mdp.horizon, mdp.states, mdp.actions, theory.stage(made_at(s)))
    return s.invalid_steps, levels.sum()


def made_at(s: Played) -> Array:
    """The earliest time at which the plan in force at t may have been made, for t = 1, ..., T (K9a): the chance that
    it is invalid is at most the level of that time."""
    return np.arange(2, s.T + 2) / 2


def irregular(s: Played) -> int:
    """Phases that do not begin and end at resets: those before the last, and the one in which T falls."""
    reset = at_resets(s)
    return int((~(reset[:-1] & reset[1:])).sum()) + 1


@claim("K11", "E sum ((1 - gamma) <nu_0, V_k - V^{pi_k}> - g_t) <= 2 H E phases that do not begin and end at resets",
       "Theorem 1", kind="E")  # fmt: skip
def telescoped(s: Played) -> Measured:
    return (s.lengths * s.plan.lead).sum() - along(s, s.plan.g).sum() - 2 * s.H * irregular(s), 0.0


@claim("K12", "gamma E sum Var_P(V_k) <= E (2 H T + 2 H sum |g_t| + H^2 phases as in K11)", "Theorem 2", kind="E")
def variances(s: Played) -> Measured:
    H, variance, size = s.H, along(s, s.plan.variance).sum(), np.abs(along(s, s.plan.g)).sum()
    return s.gamma * variance - 2 * H * s.T - 2 * H * size - H**2 * irregular(s), 0.0


def explicit(setting: RunSetting, form: Any = theory.regret) -> float:
    """Infinite where the radii are not the theorem's."""
    mdp, given = setting.mdp, setting.sets
    if given.scale != 1 or setting.side.reward_scale != 1:
        return np.inf
    X, A, unknown = mdp.states, mdp.actions, setting.unknown_rewards
    more = {"slack": given.slack, "tolerance": theory.TOLERANCE, "unknown_rewards": unknown}
    return float(form(setting.H, X, A, outcomes(mdp, True), setting.steps, **more))


claim("K13", "R_T <= the bound of Theorem 1", "Theorem 1",
      kind="E")(lemmas.regret(lambda setting: explicit(setting, theory.optimism)))  # fmt: skip
claim("K14", "R_T <= the bound of Theorem 2", "Theorem 2",
      kind="E")(lemmas.regret(lambda setting: explicit(setting, theory.variance)))  # fmt: skip

# ---- the plans


def worst_redundancy(n: Array, B: int) -> Array:
    """C_B(n)."""
    return gammaln(0.5) + gammaln(n + B / 2) - gammaln(B / 2) - gammaln(n + 0.5)


def radius_of_truth(setting: RunSetting, n: Array) -> Array:
    """rho_G: what n KL(p_hat || P) is at most, for all pairs at all times with probability 1 - 1 / T."""
    mdp = setting.mdp
    pairs = mdp.states * mdp.actions * (1 + setting.unknown_rewards)
    return log(pairs * setting.steps) + worst_redundancy(n, outcomes(mdp, True))


def fixed_point(
    mdp: MDP, r: Array, most: Callable[[Array], Array], V: Array, policy: Array | None = None, close: float = CLOSE
) -> Array:
    """V = max_a {r + gamma most(V)}, or of the actions of a policy, by value iteration from V   (..., X)."""
    for _ in range(int(50 * mdp.horizon) + 50):  # moves shrink by gamma in each
        Q = r + mdp.discount * most(V)
        new = Q.max(-1) if policy is None else (policy * Q).sum(-1)
        moved, V = np.abs(new - V).max(), new
        if moved <= close * mdp.horizon:
            break
    return V


def bounds_of(s: Played, level: Array) -> tuple[Radii, Array, Callable[..., Array]]:
    """The radii at levels e^{-level} (K,), the plays whose rewards were counted, and max_C <q, V> of a V for each plan,
    or for all, at a share of the radii."""
    setting, mdp, moves, earned = s.setting, s.mdp, s.books.moves, s.books.visits
    n, support, side = moves.sum(-1), setting.side.support, setting.side
    D, successors = Counts(n.astype(np.int32), moves.astype(np.int32)), on_support(mdp, support).successors
    rho, r = setting.sets.scale * (level[:, None, None] + worst_redundancy(n, 2)), np.repeat(mdp.rewards[None], s.K, 0)
    if setting.unknown_rewards:
        earned = s.states.earned.plays
        r = highest_rewards(earned, s.states.earned.total, level, side.reward_scale)
    far = n * rel_entr(moves / np.maximum(n, 1)[..., None], mdp.transitions).sum(-1)

    def most(V: Array, share: float = 1.0) -> Array:
        return largest(successors, D, share * rho, support, np.broadcast_to(V, (s.K, mdp.states)).copy())

    return Radii(rho, r, (far <= radius_of_truth(setting, n)).all((1, 2))), earned, most


def plan_of(s: Played) -> Plan:
    setting, mdp, policy, time = s.setting, s.mdp, s.states.policy, s.starts.astype(float)
    slack, X, H, unknown = setting.sets.slack, mdp.states, mdp.horizon, setting.unknown_rewards
    levels = theory.levels(H, X, mdp.actions, theory.stage(np.maximum(time, 1)))
    made, earned, most = bounds_of(s, np.log((2 * X if unknown else X) / levels))
    r = made.rewards
    V = fixed_point(mdp, r, most, np.full((s.K, X), H))
    excess = V - fixed_point(mdp, r, partial(most, share=0.5), V) if slack > 0 else np.zeros_like(V)
    own = fixed_point(mdp, r, most, V, policy)
    x, star = np.arange(X), setting.solution.policy.argmax(-1)
    hoped = most(setting.solution.V)[:, x, star]
    valid = (hoped >= (setting.P @ setting.solution.V)[x, star] - setting.atol).all(-1)
    valid &= (r[:, x, star] >= mdp.rewards[x, star] - setting.atol).all(-1)
    return at_truth(
        setting, policy, own, time=time, earned=earned, V=V, valid=valid, plays=(policy * s.books.visits).sum(-1),
        eps=slack * (1 - mdp.discount) * excess @ mdp.initial,
        tol=(1 + slack) * mdp.discount * theory.TOLERANCE / np.sqrt(time), made=made,
    )  # fmt: skip


def at_truth(setting: RunSetting, policy: Array, own: Array, *, V: Array, **rest: Any) -> Plan:
    """What is seen of a plan, with what the truth makes of its policy and V_k."""
    mdp, gamma = setting.mdp, setting.mdp.discount
    P_pi = np.einsum("nxa,xay->nxy", policy, setting.P)
    r_pi = (policy * mdp.rewards).sum(-1)
    mean = (P_pi @ own[..., None])[..., 0]
    rho = (1 - gamma) * values(setting, policy, r_pi) @ mdp.initial
    U, U_own = ((1 - gamma) * part @ mdp.initial for part in (V, own))
    return Plan(
        V=V, own=own, U=U, U_own=U_own, gap=setting.solution.optimum - rho, lead=U_own - rho,
        g=own - r_pi - gamma * mean, variance=np.maximum((P_pi @ (own**2)[..., None])[..., 0] - mean**2, 0.0), **rest,
    )  # fmt: skip
