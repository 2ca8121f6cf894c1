"""Claims about runs in episodes: the regret, optimism, what optimism costs, sums of widths, and bounds.

The optimum, and the values of policies, are made by plain backward induction. An epoch is a whole number of episodes.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from ravi.core import MDP, Array, Learner
from ravi.learners.episodic.ucbvi import BONUSES
from ravi.optimism.known_support import outcomes
from ravi.planning.solver import solve
from ravi.theory import episodes as theory
from ravi.verify import sets
from ravi.verify import setting as settings
from ravi.verify.chance import Martingale
from ravi.verify.claim import Claim, Measured, Registry
from ravi.verify.record import Played
from ravi.verify.setting import RunSetting, dense, papers_beta

registry, of_counts, of_sets, of_ravi_ucb, of_ucbvi = (Registry() for _ in range(5))


class Truth(NamedTuple):
    """The optimum by stage, and the policy that attains it."""

    Q: Array  # (S, X, A)
    V: Array  # (S + 1, X)
    policy: Array  # (S, X, A)


class Plan(NamedTuple):
    """The plans of RAVI-KL for a seed, each as it was made."""

    valid: Array  # max_C <q, V*_{h+1}> >= P V*_{h+1} at (x, pi*_h(x)), all h and x   (K,)
    near: Array  # n KL(p_hat || P) <= ln(X A T) + C_B(n), all pairs                 (K,)
    U: Array  # <nu_0, V_0>, of the best actions                                     (K,)
    U_own: Array  # of the played ones                                               (K,)
    eps: Array  # slack (U - U_half)                                                 (K,)
    g: Array  # (q_h - P) V_{h+1} at the played actions, of their own V              (K, S, X)
    radius: Array  # sqrt(rho / 2n) + sqrt(rho_G / 2n) there; infinite where n = 0   (K, S, X)


# ---- every learner


@registry.claim("E1", "R_T = sum_k <nu_0, V*_0 - V^{pi_k}_0>, episodes by the share of their steps",
                "docs/guides/episodes.md", per="run")  # fmt: skip
def regret(s: Played) -> Measured:
    return abs(gaps(s) @ s.lengths / stages(s) - s.regret), 0.0


@registry.claim("E2", "E sum_t (V*_h - Q*_h)(x_t, a_t) = sum of the gaps of whole episodes", "docs/guides/episodes.md",
                kind="E", equality=True)  # fmt: skip
def along_the_path(s: Played) -> Measured:
    S, best = stages(s), truth(s)
    loss, whole = best.V[:S, :, None] - best.Q, (s.t - 1) // S < len(s.t) // S
    lost = loss[(s.t - 1) % S, s.x, s.a][whole].sum()
    number = np.bincount(s.epoch[whole], minlength=s.K) / S
    mean, square = np.zeros((2, s.K, s.mdp.states))  # of the losses from a stage on, and of their square
    for h in range(S - 1, -1, -1):
        ahead, further = (np.einsum("xay,ky->kxa", s.P, part) for part in (mean, square))
        pi = policies(s)[:, h]
        square = (pi * (loss[h] ** 2 + 2 * loss[h] * ahead + further)).sum(-1)
        mean = (pi * (loss[h] + ahead)).sum(-1)
    variance = np.maximum(square @ s.mdp.initial - (mean @ s.mdp.initial) ** 2, 0.0)
    return lost - gaps(s) @ number, 0.0, Martingale(variance @ number, S * (S + 1) / 6)


@of_counts.claim("E3", "n is what was played before the episode", "docs/guides/episodes.md")
def counts(s: Played) -> Measured:
    return np.abs(plays(s) - s.books.visits).max((1, 2)), 0.0


@of_counts.claim("E4", "sum_t 1 / sqrt(n(x_t, a_t)) <= 2 sqrt(2 X A T) + 2 S X A, where n >= 1",
                 "`ravi.theory.episodes.widths`", per="run")  # fmt: skip
def widths(s: Played) -> Measured:
    n, mdp = s.along(plays(s)), s.mdp
    return (1 / np.sqrt(n[n > 0])).sum(), theory.widths(stages(s), mdp.states, mdp.actions, len(n))


# ---- UCBVI


@of_ucbvi.claim("E5", "V_h >= V*_h", "Azar, Osband, Munos (2017)", kind="P")
def optimism_of_ucbvi(s: Played) -> Measured:
    return (truth(s).V - s.states.V).max((1, 2)), 0.0


@of_ucbvi.claim("E6", "R_T <= the bound of its paper", "Azar, Osband, Munos (2017)", kind="P", per="run")
def bound_of_ucbvi(s: Played) -> Measured:
    return s.regret, explicit(s.setting)


# ---- RAVI-UCB


@of_ravi_ucb.claim(
    "E7", "<nu_0, V*_0 - V_0^k> <= sum_h E_pi* [KL(pi* || pi^{k-1}) - KL(pi* || pi^k)] / eta, where bonuses are valid",
    "docs/reference/learners/ravi_ucb.md",
)  # fmt: skip
def optimism_of_ravi_ucb(s: Played) -> Measured:
    best, now = truth(s), policies(s)
    before = np.concatenate([np.broadcast_to(s.setting.parts.initial_policy, now[:1].shape), now[:-1]])
    nu, moved = s.mdp.initial, np.zeros(s.K)
    for h, star in enumerate(best.policy):
        apart = [np.log(np.maximum(pi[:, h], 1e-300)) for pi in (now, before)]
        moved += ((star * (apart[0] - apart[1])).sum(-1) @ nu) / s.eta
        nu = np.einsum("x,xa,xay->y", nu, star, s.P)
    return np.where(valid_bonuses(s), (best.V[0] - s.states.V[:, 0]) @ s.mdp.initial - moved, -np.inf), 0.0


@of_ravi_ucb.claim("E8", "<nu_0, V_0^k - V^{pi_k}_0> <= 2 E_{pi_k} sum_h CB, where bonuses are valid",
                   "docs/reference/learners/ravi_ucb.md")  # fmt: skip
def surplus_of_ravi_ucb(s: Played) -> Measured:
    value, cost = (values(s, part[:, None]) @ s.mdp.initial for part in (s.mdp.rewards + 0 * bonuses(s), bonuses(s)))
    return np.where(valid_bonuses(s), s.states.V[:, 0] @ s.mdp.initial - value - 2 * cost, -np.inf), 0.0


@of_ravi_ucb.claim("E9", "R_T <= the bound of its theorem", "docs/reference/learners/ravi_ucb.md", kind="E")
def bound_of_ravi_ucb(s: Played) -> Measured:
    return s.regret, explicit(s.setting)


# ---- RAVI-KL


@of_sets.claim("E10", "V_h >= V*_h, where the sets hold at V*", "docs/explanation/kl.md")
def optimism_of_ravi_kl(s: Played) -> Measured:
    return np.where(s.plan.valid, (truth(s).V - s.states.V).max((1, 2)), -np.inf), 0.0


@of_sets.claim("E11", "the played policy's own optimistic value >= U - slack (U - U_half)", "docs/explanation/kl.md")
def nearly_the_most_optimistic(s: Played) -> Measured:
    return s.plan.U - s.plan.U_own, s.plan.eps


@of_sets.claim("E12", "(q_h - P) V_{h+1} <= (S - h - 1) (sqrt(rho / 2n) + sqrt(rho_G / 2n)), where P is near p_hat",
               "docs/explanation/kl.md")  # fmt: skip
def deviations(s: Played) -> Measured:
    ahead = np.arange(stages(s) - 1, -1, -1)[:, None]
    over = s.plan.g - ahead * np.where(ahead > 0, s.plan.radius, 0.0)
    return np.where(s.plan.near, over.max((1, 2)), -np.inf), 1e-7


@of_sets.claim("E13", "E steps under sets that do not hold at V* <= the sum of their levels", "docs/explanation/kl.md",
               kind="E")  # fmt: skip
def invalid(s: Played) -> Measured:
    mdp, S = s.mdp, stages(s)
    of = [theory.level(S, mdp.states, mdp.actions, t) for t in s.starts]
    return s.invalid_steps, float(s.lengths @ of)


@of_sets.claim("E14", "R_T <= the bound of its theorem", "docs/explanation/kl.md", kind="E")
def bound_of_ravi_kl(s: Played) -> Measured:
    return s.regret, explicit(s.setting)


# ---- what claims are made of


def stages(s: Played) -> int:
    return int(s.mdp.episode or 0)


def truth(s: Played) -> Truth:
    found: Truth = s.setting.episodes
    return found


def policies(s: Played) -> Array:
    """By stage   (K, S, X, A)."""
    policy = s.states.policy
    return policy if policy.ndim == 4 else np.repeat(policy[:, None], stages(s), axis=1)


def values(s: Played, r: Array) -> Array:
    """The expected sum of r (K, 1, X, A) or (X, A) from stage 0 under each policy   (K, X)."""
    V, r = np.zeros((s.K, s.mdp.states)), np.broadcast_to(r, (s.K, 1, *s.mdp.rewards.shape))[:, 0]
    for h in range(stages(s) - 1, -1, -1):
        V = (policies(s)[:, h] * (r + np.einsum("xay,ky->kxa", s.P, V))).sum(-1)
    return V


def gaps(s: Played) -> Array:
    """<nu_0, V*_0 - V^{pi_k}_0>   (K,)."""
    return (truth(s).V[0] - values(s, s.mdp.rewards)) @ s.mdp.initial


def plays(s: Played) -> Array:
    """n of the learner as an epoch opens, from zero   (K, X, A)."""
    of_tables = s.setting.parts.stated.kind == "tabular"  # where counts begin at one
    return np.asarray(s.states.data.visits) - of_tables


def bonuses(s: Played) -> Array:
    """CB   (K, X, A)."""
    return s.setting.beta / np.sqrt(1.0 + s.books.visits)


def valid_bonuses(s: Played) -> Array:
    """Whether |(P_hat - P) V_{h+1}| <= CB at all pairs and stages   (K,)."""
    P_hat = dense(s.mdp, s.books.moves / (1.0 + s.books.visits)[..., None])
    off = np.abs(np.einsum("kxay,khy->khxa", P_hat - s.P, s.states.V[:, 1:]))
    return (off <= bonuses(s)[:, None] + s.setting.atol).all((1, 2, 3))


def plan_of(s: Played) -> Plan:
    setting, mdp, S = s.setting, s.mdp, stages(s)
    n, best, slack = s.books.visits, truth(s), setting.sets.slack
    level = np.array([log(mdp.states * S / theory.level(S, mdp.states, mdp.actions, t)) for t in s.starts])
    (rho, _, near), _, most = sets.bounds_of(s, level)

    def induced(share: float, policy: Array | None) -> tuple[Array, Array]:
        """<nu_0, V_0> (K,) and (q_h - P) V_{h+1} (K, S, X, A), of the best actions or of a policy."""
        V, g = np.zeros((s.K, mdp.states)), np.empty((s.K, S, *mdp.rewards.shape))
        for h in range(S - 1, -1, -1):
            ahead = most(V, share)
            g[:, h] = ahead - np.einsum("xay,ky->kxa", setting.P, V)
            Q = mdp.rewards + ahead
            V = Q.max(-1) if policy is None else (policy[:, h] * Q).sum(-1)
        return V @ mdp.initial, g

    star, valid = best.policy.argmax(-1), np.ones(s.K, bool)
    for h in range(S):
        true = np.einsum("xay,y->xa", setting.P, best.V[h + 1])
        valid &= (most(best.V[h + 1]) - true >= -setting.atol)[:, np.arange(mdp.states), star[h]].all(-1)
    rho_G = sets.radius_of_truth(setting, n)
    radius = np.where(n > 0, (np.sqrt(rho) + np.sqrt(rho_G)) / np.sqrt(2 * np.maximum(n, 1)), np.inf)
    U, (U_own, g) = induced(1.0, None)[0], induced(1.0, policies(s))
    chosen = policies(s).argmax(-1)
    return Plan(
        valid, near, U, U_own, slack * (U - induced(0.5, None)[0]),
        np.take_along_axis(g, chosen[..., None], -1)[..., 0],
        np.take_along_axis(np.repeat(radius[:, None], S, 1), chosen[..., None], -1)[..., 0],
    )  # fmt: skip


# ---- the setting


def claims_of(learner: Learner) -> list[Claim]:
    """The claims about a learner."""
    own = {"sets": of_sets, "tabular": of_ravi_ucb} | dict.fromkeys(BONUSES, of_ucbvi)
    kind = "sets" if learner.sets is not None else learner.parts.stated.kind if learner.parts is not None else ""
    return [*registry.claims, *(of_counts.claims + own[kind].claims if kind in own else [])]


def explicit(setting: RunSetting) -> float:
    """The bound on the regret; infinite where there is none."""
    mdp, T, stated = setting.mdp, setting.steps, setting.stated
    size = int(mdp.episode or 0), mdp.states, mdp.actions
    if setting.sets is not None:
        return theory.ravi_kl(*size, outcomes(mdp, True), T, setting.sets.slack) if setting.sets.scale == 1 else np.inf
    if stated.kind in BONUSES:
        return theory.ucbvi(*size, T, setting.delta, stated.kind) if stated.scale == 1 else np.inf
    if stated.kind == "tabular" and setting.beta >= papers_beta(setting) * (1 - 1e-9) and setting.uniform:
        return theory.ravi_ucb(*size, T, setting.beta, setting.eta, setting.delta)
    return np.inf


def setting_of(learner: Learner, mdp: MDP, steps: int) -> RunSetting:
    setting, S = settings.setting_of(learner, mdp, steps, solve(mdp)), int(mdp.episode or 0)
    Q, V = np.empty((S, *mdp.rewards.shape)), np.zeros((S + 1, mdp.states))
    for h in range(S - 1, -1, -1):
        Q[h] = mdp.rewards + setting.P @ V[h + 1]
        V[h] = Q[h].max(-1)
    return setting._replace(episodes=Truth(Q, V, np.eye(mdp.actions)[Q.argmax(-1)]))
