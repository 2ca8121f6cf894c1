"""What do the variants with several backups an epoch claim? The paper's lemmas for every one of them (RAVI-UCB+).

Backup i leads from V_i to Q_{i+1}, with i = 0 at V_0 and pi_0; a mirror step to V_{i+1} and pi_{i+1}
(`ravi.verify.inner`). The claims of the paper about walks, laws and occupancies are held against the policies that
were played, as they are for RAVI-UCB; SHARED names them.
"""

from __future__ import annotations

import numpy as np

from ravi.core import Array
from ravi.planning.entropy import relative_entropy
from ravi.planning.occupancies import occupancy
from ravi.theory import constants
from ravi.verify import off, stated
from ravi.verify.books import Scene
from ravi.verify.chance import Interval, bernstein
from ravi.verify.claim import Registry
from ravi.verify.evidence import Evidence
from ravi.verify.inner import Inner, Seen, Totals
from ravi.verify.ladder import Ladder
from ravi.verify.preliminaries import drawn, worst

SHARED = (
    "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "S5", "S6a", "S6b", "S7", "S9a", "S9b", "S9c", "S10", "A2", "A16",
    "A17", "A19", "M12", "T2",
)  # fmt: skip

registry = Registry()
claim = registry.claim


def nil(s: Seen) -> Array:
    return np.zeros(len(s.at.V))


def exact(s: Seen) -> Array:
    """r + gamma P V_i."""
    return s.scene.mdp.rewards + s.scene.mdp.discount * s.backup.PV


# ---- the backups


@claim("V1a", "V_1 = V_0, pi_1 = pi_0, where Q_1 = E V_0", "Algorithm 1", phase="begin")
def beginning(s: Seen) -> tuple[Array, Array]:
    parts = s.scene.parts
    return worst(np.abs(s.after.V - parts.initial_value), np.abs(s.after.policy - parts.initial_policy)), nil(s)


@claim("V1b", "Q_{i+1} = Pi_H[r + CB_i + gamma P_hat V_i], for each of the M", "RAVI-UCB+", phase="backup")
def backup(s: Seen) -> tuple[Array, Array]:
    b, mdp = s.backup, s.scene.mdp
    return worst(np.abs(b.Q - np.clip(mdp.rewards + b.CB + mdp.discount * b.PV_hat, 0, s.scene.H))), nil(s)


@claim("V1c", "V_{i+1}, pi_{i+1} are the mirror step from pi_i by Q_{i+1}", "Algorithm 1", phase="step")
def mirror(s: Seen) -> tuple[Array, Array]:
    a = s.after
    return off.mirror_step(s.backup.Q, s.at.policy, s.scene.parts.eta, a.V, a.policy, a.improper), nil(s)


@claim("V1d", "0 <= Q_i <= H,  min_a Q_i <= V_i <= max_a Q_i", "Section 3", phase="step")
def ranges(s: Seen) -> tuple[Array, Array]:
    Q, V = s.backup.Q, s.after.V
    return worst(-Q, Q - s.scene.H, Q.min(-1) - V, V - Q.max(-1)), nil(s)


@claim("V2a", "N and N' are of what was played", "Algorithm 2", phase="data", setting="tabular")
def counts(s: Seen) -> tuple[Array, Array]:
    return off.counts(s.data, s.books.moves, s.scene.mdp), nil(s)


@claim(
    "V2b", "Lambda and b are of what was played, with the V_m that was played", "RAVI-UCB+", phase="data",
    setting="mixture",
)  # fmt: skip
def regression(s: Seen) -> tuple[Array, Array]:
    return off.regression(s.data, s.books.covariance, s.books.response), nil(s)


@claim("V2c", "P_hat V_i is what the parts say of these data", "RAVI-UCB+", phase="backup", setting="parts")
def estimated(s: Seen) -> tuple[Array, Array]:
    return worst(np.abs(s.backup.PV_hat - stated.estimate(s.scene, s.books, s.at.V))), nil(s)


@claim("V2d", "CB_i is what the parts say of these data", "RAVI-UCB+", phase="backup", setting="parts")
def bonuses(s: Seen) -> tuple[Array, Array]:
    right = stated.bonus(s.scene, s.books, s.at.V)
    return worst(np.abs(s.backup.CB - right) / (1 + right)), nil(s)


@claim("V2e", "CB_i <= its envelope when the epoch of pi_i began", "RAVI-UCB+", phase="backup", setting="parts")
def enveloped(s: Seen) -> tuple[Array, Array]:
    return worst(s.backup.CB - stated.envelope(s.scene, s.older, s.at.V)), nil(s)


# ---- the lemmas, for every backup


@claim("V3", "gamma |(P - P_hat) V_i| <= CB_i, for every backup", "Equation (2)", kind="P", phase="backup")
def validity(s: Seen) -> tuple[Array, Array]:
    b = s.backup
    return worst(s.scene.mdp.discount * np.abs(b.PV - b.PV_hat) - b.CB), nil(s)


@claim("V4a", "r + gamma P V_i <= Q_{i+1}", "Lemma 4.2", phase="backup", conditional=True)
def optimistic(s: Seen) -> tuple[Array, Array]:
    return worst(exact(s) - s.backup.Q), nil(s)


@claim("V4b", "Q_{i+1} <= r + gamma P V_i + min(2 CB_i, H)", "Lemma 4.2", phase="backup", conditional=True)
def not_too_optimistic(s: Seen) -> tuple[Array, Array]:
    return worst(s.backup.Q - exact(s) - np.minimum(2 * s.backup.CB, s.scene.H)), nil(s)


@claim("V4", "both, whether bonuses are valid or not", "Lemma 4.2", kind="P", phase="backup")
def lemma_4_2(s: Seen) -> tuple[Array, Array]:
    b = s.backup
    return worst(exact(s) - b.Q, b.Q - exact(s) - np.minimum(2 * b.CB, s.scene.H)), nil(s)


def moved(s: Seen) -> Array:
    return relative_entropy(s.after.policy, s.at.policy)


@claim("V5a", "KL(pi_{i+1} || pi_i)(x) <= eta^2 H^2 / 8", "Hoeffding", phase="step")
def small_steps(s: Seen) -> tuple[Array, Array]:
    return worst(moved(s)), nil(s) + (s.scene.parts.eta * s.scene.H) ** 2 / 8


@claim("V5b", "<mu_{i+1} - mu_i, Q_{i+1}> - H(pi_{i+1}||pi_i) / eta <= eta kappa(H)", "erratum 12", phase="step")
def fenchel_young(s: Seen) -> tuple[Array, Array]:
    gained = ((s.after.mu - s.at.mu) * s.backup.Q).sum((1, 2))
    cost = (s.after.nu * moved(s)).sum(-1) / s.scene.parts.eta
    return gained - cost, nil(s) + s.scene.parts.eta * constants.kappa(s.scene.H)


@claim(
    "V6a", "sum Delta*_i <= H(pi*||pi_0) / eta + <mu*, E (V_{i+1} - V_0)>", "Equation (5)", phase="prefix",
    conditional=True,
)  # fmt: skip
def sum_above(s: Seen) -> tuple[Array, Array]:
    rise = (s.after.V - s.scene.parts.initial_value) @ s.scene.mu_star.sum(-1)
    return s.totals.above, s.scene.entropy / s.scene.parts.eta + rise


@claim(
    "V6b", "sum Delta_i <= <mu_0, E V_0> - <mu_{i+1}, E V_{i+1}> + eta kappa (i + 1) + sum <mu_i, min(2 CB_i, H)>",
    "Equation (7)", phase="prefix", conditional=True,
)  # fmt: skip
def sum_below(s: Seen) -> tuple[Array, Array]:
    steps = s.scene.parts.eta * constants.kappa(s.scene.H) * s.totals.backups
    return s.totals.below, _first(s.scene) - (s.after.nu * s.after.V).sum(-1) + steps + s.totals.capped


def _first(scene: Scene) -> float:
    """<mu^{pi_0}, E V_0>."""
    return float(occupancy(scene.mdp, scene.parts.initial_policy).nu @ scene.parts.initial_value)


@claim(
    "V6", "sum gap_i <= sum <mu_i, min(2 CB_i, H)> + H + H(pi*||pi_0) / eta + eta kappa (i + 1), over all M K backups",
    "Lemma 4.3", phase="prefix", conditional=True,
)  # fmt: skip
def lemma_4_3(s: Seen) -> tuple[Array, Array]:
    return s.totals.gaps, lemma(s.scene, s.totals)


def lemma(scene: Scene, s: Totals) -> Array:
    """The right side of Lemma 4.3; its ends are worth H where V_0 is constant."""
    eta, ends = scene.parts.eta, scene.H * (1 if np.ptp(scene.parts.initial_value) == 0 else 2)
    return s.capped + ends + scene.entropy / eta + eta * constants.kappa(scene.H) * s.backups


@claim(
    "V6c", "sum gap_i <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", phase="prefix",
    conditional=True,
)  # fmt: skip
def exact_certificate(s: Seen) -> tuple[Array, Array]:
    return s.totals.gaps, certificate(s.scene, s.totals)


def certificate(scene: Scene, s: Totals) -> Array:
    """The right side of Lemma 4.3 before anything is bounded."""
    begin = scene.parts.initial_value @ scene.mu_star.sum(-1) - _first(scene)
    return s.capped + s.end - begin + scene.entropy / scene.parts.eta + s.moves


# ---- what is played


@claim("V7a", "the plan ends where its M backups lead", "RAVI-UCB+", phase="plan")
def planned(s: Seen) -> tuple[Array, Array]:
    pairs = [(getattr(s.state, name), getattr(s.planned, name)) for name in ("V_last", "Q", "last_policy")]
    return worst(*(np.abs(one - other) for one, other in pairs)), nil(s)


@claim("V7b", "pi_m is played, m drawn by number 4 of step T_k, and V_m goes into ADD", "RAVI-UCB+", phase="plan")
def played(s: Seen) -> tuple[Array, Array]:
    return worst(np.abs(s.state.policy - s.policy), np.abs(s.state.V - s.V)), nil(s)


@claim("V7c", "m is uniform: plays of each of the M less their mean", "RAVI-UCB+", kind="E", phase="run", equality=True)
def uniformly(e: Evidence, found: Inner) -> tuple[Array, Array, Interval]:
    times = found.drawn.times
    if e.scene.parts.pick != "uniform":
        return times, np.array(np.inf), bernstein(np.zeros(1), 1.0, e.n)
    K, M = times.sum(-1, keepdims=True), times.shape[1]
    return drawn(times - K / M, K / M * (1 - 1 / M) + 0 * times)


@claim("V7d", "E sum_k gap(pi_m) = E sum_k (1/M) sum_j gap(pi_j)", "Discussion", kind="E", phase="run", equality=True)
def on_average(e: Evidence, found: Inner) -> tuple[Array, Array, Interval]:
    bound = np.array(0.0 if e.scene.parts.pick == "uniform" else np.inf)
    return found.drawn.lead, bound, bernstein(found.drawn.variance.sum(), 1 / 3, e.n)


# ---- the bounds


@claim(
    "V8", "E sum_{t<=T+} min(2 CB_t, H) <= S, of counts or of a regression", "Lemmas 5.2, 5.5", kind="E", phase="run"
)
def bonus_sum(e: Evidence, found: Inner) -> tuple[Array, Array]:
    return found.drawn.bonus, np.array(stated.bonus_sum(e.scene))


@claim(
    "V9", "R_T <= S + H (log A / (M eta) + eta kappa E K) + H^2 / M + delta T, + H / M where fresh", "Theorem 4.1",
    kind="E", phase="run",
)  # fmt: skip
def theorem(e: Evidence, found: Inner) -> tuple[Array, Array]:
    bound = stated.regret(e.scene)
    return e.run.regret, np.array(np.inf if bound is None else bound.total)


@claim(
    "V9s", "R_T <= S + max(S, s) + s + ..., s = H sqrt(kappa log A E K / M), where eta is balanced", "Theorem 4.1",
    kind="E", phase="run",
)  # fmt: skip
def theorem_balanced(e: Evidence, found: Inner) -> tuple[Array, Array]:
    return e.run.regret, np.array(stated.doubled(e.scene))


def ladder(e: Evidence, found: Inner) -> Ladder:
    """The same rungs; sums over backups are divided by M, since one of M is played."""
    scene, s, share = e.scene, found.totals, e.scene.H / e.scene.parts.inner
    bound = stated.regret(scene)
    return Ladder(
        float(e.run.regret.mean()),
        float(share * s.gaps.mean()),
        float(share * certificate(scene, s).mean()),
        float(share * lemma(scene, s).mean()),
        np.inf if bound is None else bound.total,
        float(e.run.steps * scene.solution.optimum),
    )
