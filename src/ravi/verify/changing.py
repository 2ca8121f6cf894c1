"""What does RAVI-UCB claim where rewards change? The paper's lemmas with r_k, the table revealed after epoch k, for r.

Lemma 4.3 holds against every fixed policy. It is held, after every number of epochs, against several at once: the best
for as long as each table is in force on average, pi_0, the best of the mean table and of each table by itself; and at
the end, for each seed, against the best for the tables that were revealed to it. What is claimed in expectation is
derived in `ravi.theory.changing_rewards`. The claims of the paper about walks, laws and occupancies are held against
the policies that were played, with the mean table for r; `variants.SHARED` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ravi import checks
from ravi.core import Array, Learner
from ravi.engine import Progress, run
from ravi.learners.ravi_ucb.changing_rewards import changing, marks
from ravi.mdps.changing_rewards import Changing
from ravi.measures.hindsight import best_fixed
from ravi.planning.entropy import relative_entropy
from ravi.planning.solver import solve
from ravi.theory import Bound, constants
from ravi.theory import changing_rewards as theory
from ravi.verify import audit, off, preliminaries, stated
from ravi.verify.books import Check, Scene
from ravi.verify.chance import Interval, bernstein
from ravi.verify.claim import Claim, Registry
from ravi.verify.constants import delta_of
from ravi.verify.evidence import Evidence
from ravi.verify.ladder import Ladder
from ravi.verify.preliminaries import worst
from ravi.verify.report import Report, Row, judged, worst_case
from ravi.verify.revealed import Comparators, Revealed, Seen, Stage, Sums, comparators, finish, revealed, stage_of
from ravi.verify.variants import SHARED

MOST_TABLES = 16  # whose best policies are comparators
BEST = 0  # of the comparators

registry = Registry()
claim = registry.claim


def nil(s: Seen) -> Array:
    return np.zeros(len(s.epoch.V))


def exact(s: Seen) -> Array:
    """r_k + gamma P V_k."""
    return s.r + s.scene.mdp.discount * s.before.PV


# ---- Algorithm 1, with r_k


claim("R1a", "V_1 = V_0,  pi_1 = pi_0", "Algorithm 1")(preliminaries.first_epoch)


@claim(
    "R1b", "Q_{k+1} = Pi_H[r_k + CB_k + gamma P_hat_k V_k], r_k the table of epoch k's last play, or of epoch k",
    "Discussion", phase="pair",
)  # fmt: skip
def backup(s: Seen) -> tuple[Array, Array]:
    e = s.before
    right = np.clip(s.r + e.CB + s.scene.mdp.discount * e.PV_hat, 0, s.scene.H)
    return worst(np.abs(e.Q - right)), nil(s)


@claim("R1c", "V_{k+1}, pi_{k+1} are the mirror step from pi_k by Q_{k+1}", "Algorithm 1", phase="pair")
def mirror(s: Seen) -> tuple[Array, Array]:
    e = s.epoch
    return off.mirror_step(s.before.Q, s.before.policy, s.scene.parts.eta, e.V, e.policy, e.improper), nil(s)


claim("R1d", "0 <= Q_k <= H,  min_a Q_k <= V_k <= max_a Q_k", "Section 3", phase="pair")(preliminaries.ranges)


# ---- Algorithms 2 and 3


@claim("R2a", "N and N' are of what was played", "Algorithm 2", phase="data", setting="tabular")
def counts(s: Seen) -> tuple[Array, Array]:
    return off.counts(s.data, s.books.moves, s.scene.mdp), nil(s)


@claim("R2b", "Lambda and b are of what was played, with its V_k", "Algorithm 3", phase="data", setting="mixture")
def regression(s: Seen) -> tuple[Array, Array]:
    return off.regression(s.data, s.books.covariance, s.books.response), nil(s)


@claim("R2c", "P_hat_k V_k is what Algorithm 2 or 3 says of these data", "Algorithms 2, 3", setting="parts")
def estimated(s: Seen) -> tuple[Array, Array]:
    return worst(np.abs(s.epoch.PV_hat - stated.estimate(s.scene, s.books, s.epoch.V))), nil(s)


@claim("R2d", "CB_k is what Equation (8) or (9) says of these data", "Equations (8), (9)", setting="parts")
def bonuses(s: Seen) -> tuple[Array, Array]:
    right = stated.bonus(s.scene, s.books, s.epoch.V)
    return worst(np.abs(s.epoch.CB - right) / (1 + right)), nil(s)


# ---- the lemmas, with r_k


claim("R3", "gamma |(P - P_hat_k) V_k| <= CB_k", "Equation (2)", kind="P")(preliminaries.validity)


@claim("R4a", "r_k + gamma P V_k <= Q_{k+1}", "Lemma 4.2", phase="pair", conditional=True)
def optimistic(s: Seen) -> tuple[Array, Array]:
    return worst(exact(s) - s.before.Q), nil(s)


@claim("R4b", "Q_{k+1} <= r_k + gamma P V_k + min(2 CB_k, H)", "Lemma 4.2", phase="pair", conditional=True)
def not_too_optimistic(s: Seen) -> tuple[Array, Array]:
    return worst(s.before.Q - exact(s) - np.minimum(2 * s.before.CB, s.scene.H)), nil(s)


@claim("R4", "both, whether bonuses are valid or not", "Lemma 4.2", kind="P", phase="pair")
def lemma_4_2(s: Seen) -> tuple[Array, Array]:
    e = s.before
    return worst(exact(s) - e.Q, e.Q - exact(s) - np.minimum(2 * e.CB, s.scene.H)), nil(s)


@claim("R5a", "KL(pi_{k+1} || pi_k)(x) <= eta^2 H^2 / 8", "Hoeffding", phase="pair")
def small_steps(s: Seen) -> tuple[Array, Array]:
    moved = relative_entropy(s.epoch.policy, s.before.policy)
    return worst(moved), nil(s) + (s.scene.parts.eta * s.scene.H) ** 2 / 8


@claim("R5b", "<mu_{k+1} - mu_k, Q_{k+1}> - H(pi_{k+1}||pi_k) / eta <= eta kappa(H)", "erratum 12", phase="pair")
def fenchel_young(s: Seen) -> tuple[Array, Array]:
    return audit.optimisation(s.scene, s.before, s.epoch), nil(s) + s.scene.parts.eta * constants.kappa(s.scene.H)


def tightest(measured: Array, bound: Array) -> tuple[Array, Array]:
    """The comparator with the least room, of each seed; both (n, C)."""
    measured, bound = np.broadcast_arrays(measured, bound)
    index = np.argmin(bound - measured, axis=1)[:, None]  # a nan comes first
    return np.take_along_axis(measured, index, 1)[:, 0], np.take_along_axis(bound, index, 1)[:, 0]


@claim(
    "R6a", "sum <mu*, r_k> - (1 - gamma) <nu_0, V_k> <= H(pi*||pi_0) / eta + <mu*, E (V_{K+1} - V_0)>, for each pi*",
    "Equation (5)", phase="prefix", conditional=True,
)  # fmt: skip
def sum_above(s: Seen) -> tuple[Array, Array]:
    c, parts = s.stage.against, s.scene.parts
    rise = (s.epoch.V - parts.initial_value) @ c.nu.T
    return tightest(s.sums.tables @ c.rho.T - s.sums.hoped[:, None], c.entropy / parts.eta + rise)


@claim(
    "R6b", "sum (1 - gamma) <nu_0, V_k> - <mu_k, r_k> <= <mu_1, E V_1> - <mu_{K+1}, E V_{K+1}> + eta kappa K + "
    "sum <mu_k, min(2 CB_k, H)>", "Equation (7)", phase="prefix", conditional=True,
)  # fmt: skip
def sum_below(s: Seen) -> tuple[Array, Array]:
    steps = s.scene.parts.eta * constants.kappa(s.scene.H) * s.sums.epochs
    return s.sums.hoped - s.sums.earned, s.first - (s.epoch.nu * s.epoch.V).sum(-1) + steps + s.sums.capped


def gaps(c: Comparators, s: Sums) -> Array:
    """sum_k <mu* - mu^{pi_k}, r_k>   (n, C)."""
    return s.tables @ c.rho.T - s.earned[:, None]


def lemma(scene: Scene, c: Comparators, s: Sums) -> Array:
    """The right side of Lemma 4.3   (n, C); its ends are worth H where V_0 is constant."""
    eta, ends = scene.parts.eta, scene.H * (1 if np.ptp(scene.parts.initial_value) == 0 else 2)
    return (s.capped + ends + eta * constants.kappa(scene.H) * s.epochs)[:, None] + c.entropy / eta


@claim(
    "R6", "sum <mu* - mu_k, r_k> <= sum <mu_k, min(2 CB_k, H)> + H + H(pi*||pi_0) / eta + eta kappa K, for each pi*",
    "Lemma 4.3", phase="prefix", conditional=True,
)  # fmt: skip
def lemma_4_3(s: Seen) -> tuple[Array, Array]:
    return tightest(gaps(s.stage.against, s.sums), lemma(s.scene, s.stage.against, s.sums))


@claim(
    "R6c", "... <= the exact certificate: nothing of Lemma 4.3 bounded", "proof of Lemma 4.3", phase="prefix",
    conditional=True,
)  # fmt: skip
def exact_certificate(s: Seen) -> tuple[Array, Array]:
    c, V = s.stage.against, s.epoch.V
    ends = V @ c.nu.T - (s.epoch.nu * V).sum(-1)[:, None]
    return tightest(gaps(c, s.sums), certificate(s.scene, c, s.sums, s.first, ends))


def certificate(scene: Scene, c: Comparators, s: Sums, first: Array, ends: Array) -> Array:
    """The right side of Lemma 4.3 before anything is bounded   (n, C); `ends` is <mu* - mu_{K+1}, E V_{K+1}>."""
    begins = c.nu @ scene.parts.initial_value - first[:, None]
    return (s.capped + s.moves)[:, None] + ends - begins + c.entropy / scene.parts.eta


@claim(
    "R6d", "Lemma 4.3 at the end, against the best fixed policy for the tables revealed to each seed", "Lemma 4.3",
    phase="prefix", conditional=True,
)  # fmt: skip
def lemma_in_hindsight(s: Seen) -> tuple[Array, Array]:
    if s.k:
        return nil(s), nil(s) + np.inf
    kinds, which = np.unique(s.sums.tables, axis=0, return_inverse=True)
    world, which = s.stage.world, which.reshape(-1)
    c = comparators(s.scene, world, np.array([best_fixed(world, counts).policy for counts in kinds]))
    rows = np.arange(len(which))
    return gaps(c, s.sums)[rows, which], lemma(s.scene, c, s.sums)[rows, which]


# ---- in expectation


@claim(
    "R7", "E sum_{t<=T+} <mu* - mu_t, r_t> = H E sum_{k<=K(T)} <mu* - mu_k, r_k>, for each pi*", "Discussion",
    kind="E", phase="run", equality=True,
)  # fmt: skip
def last_plays_stand_for_all(e: Evidence, m: Revealed) -> tuple[Array, Array, Interval]:
    """A martingale by plays. With f = f_t, a play adds f to the left side, and with probability 1 - gamma ends the
    epoch and adds H f to the right side: the difference has the mean 0 and the variance gamma f^2 + (1 - gamma)
    (gamma H f)^2 = gamma H f^2, and its size is at most H, since |f| <= 1."""
    return m.played.drift, np.array(0.0), bernstein(m.played.variance.sum(0), e.scene.H / 3, e.n)


@claim(
    "R8", "E sum_{t<=T+} min(2 CB_t, H) <= S, of counts or of a regression", "Lemmas 5.2, 5.5", kind="E", phase="run"
)
def bonuses_add_up(e: Evidence, m: Revealed) -> tuple[Array, Array]:
    return m.played.bonus, np.array(stated.bonus_sum(e.scene))


@claim(
    "R9a", "E sum_{t<=T+} (<mu* - mu_t, r_t> - min(2 CB_t, H)) <= H (log A / eta + eta kappa E K) + H^2, up to the "
    "first invalid epoch, for the best pi*", "Theorem 4.1", kind="E", phase="run",
)  # fmt: skip
def theorem_with_measured_bonuses(e: Evidence, m: Revealed) -> tuple[Array, Array]:
    """Nothing is asked of the bonuses: {k < tau} is known when epoch k begins."""
    scene = e.scene
    bound = theory.sharp(scene.H, scene.mdp.actions, scene.steps, 0.0, eta=scene.parts.eta)
    rest = bound.optimisation + scene.H**2
    return m.played.lead[:, BEST] - m.played.paid, np.array(rest if begins_plainly(scene) else np.inf)


@claim(
    "R9", "max_pi* E sum_{t<=T} <mu* - mu_t, r_t> <= S + H (log A / eta + eta kappa E K) + H^2 + gamma H + delta T",
    "Theorem 4.1", kind="E", phase="run",
)  # fmt: skip
def theorem(e: Evidence, m: Revealed) -> tuple[Array, Array]:
    """The best pi* is the one for as long as each table is in force on average: no other earns more up to T."""
    bound = regret(e.scene)
    return m.played.regret[:, BEST], np.array(np.inf if bound is None else bound.total)


def begins_plainly(scene: Scene) -> bool:
    """pi_0 is uniform and V_0 constant: then log A and one H are enough."""
    return bool(np.ptp(scene.parts.initial_policy) <= 1e-12 and np.ptp(scene.parts.initial_value) == 0)


def regret(scene: Scene) -> Bound | None:
    """The bound with the eta and beta of the run; None where bonuses are not known to be valid."""
    if scene.setting == "generic" or not stated.valid(scene) or not begins_plainly(scene):
        return None
    S, eta, delta = stated.bonus_sum(scene), scene.parts.eta, delta_of(scene)
    return theory.sharp(scene.H, scene.mdp.actions, scene.steps, S, delta=delta, eta=eta)


# ---- the table


def stage(learner: Learner, world: Changing, steps: int) -> tuple[Learner, Stage]:
    """The learner on this world (made for it already, or for its kernel), and what it is held against."""
    made = changing(learner, world) if learner.told.world is None else learner
    for (name, was), now in zip(marks(made.told.world).items(), marks(world).values(), strict=True):
        if was != now:
            raise checks.InputError(f"{made.name} was made with {name} {was}, not {now}")
    scene = audit.scene_of(made, world.mdp, steps, solve(world.mdp, tol=1e-12))
    J = len(world.tables)
    turns = [world.expected(steps), np.ones(J), *np.eye(J)[:MOST_TABLES]]
    best = [best_fixed(world, counts).policy for counts in turns]
    return made, stage_of(scene, world, np.array([*best, scene.parts.initial_policy]))


def report(
    learner: Learner, at: Stage, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | None
) -> Report:
    """Run, and hold the chosen claims against it."""
    scene = at.scene
    walks = [claim for claim in chosen if claim.id in SHARED and claim.phase != "run"]
    tables = [claim for claim in chosen if claim.id not in SHARED and claim.phase != "run"]
    on_walks, on_tables = ([Check(c.phase, c.conditional, c.measure) for c in group] for group in (walks, tables))
    with np.errstate(all="ignore"):
        measures = [audit.audit(scene, on_walks), revealed(at, on_tables)]
        made = run(learner, scene.mdp, scene.steps, seeds, measures=measures, pad=True, progress=progress)
        *_, played, seen = made.batch.records
        played = audit.finish(scene, on_walks, played, made.state)
        seen = finish(at, on_tables, seen, made.state)
        evidence = Evidence(scene, played, made)
        rows: list[Row] = []
        for claim in chosen:
            if claim.phase == "run":
                about = (evidence,) if claim.id in SHARED else (evidence, seen)
                rows.append(judged(claim, scene, evidence, *claim.measure(*about)))
                continue
            group, worst = (walks, played.worst) if claim in walks else (tables, seen.worst)
            rows.append(worst_case(claim, scene, evidence, worst, group.index(claim)))
        return Report(rows, ladder(at, evidence, seen), made, seen.invalid_at)


def ladder(at: Stage, e: Evidence, m: Revealed) -> Ladder:
    """The same rungs, against the best fixed policy; regret, and what epochs add up to, may be negative."""
    scene, s, bound = at.scene, m.sums, regret(at.scene)
    c = Comparators(*(part[: BEST + 1] for part in at.against))
    exact = certificate(scene, c, s, m.first, m.ends[:, : BEST + 1])
    return Ladder(
        float(m.played.regret[:, BEST].mean()),
        float(scene.H * gaps(c, s).mean()),
        float(scene.H * exact.mean()),
        float(scene.H * lemma(scene, c, s).mean()),
        np.inf if bound is None else bound.total,
        float(at.world.expected(scene.steps) @ c.rho[BEST]),
    )
