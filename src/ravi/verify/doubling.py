"""What do learners that do not know T claim? Of every phase what its learner claims, of the phases their order and sum.

Phase i is a run of its own, from V_0 and pi_0, with the eta of l_i plays and the beta of S_{i+1} plays at
delta_i = 1 / l_i (`ravi.learners.ravi_ucb.doubling`). The claims of `variants` are held against each with these
constants, which are found anew here; that its data are kept is what V2a and V2b say, whose books are of the whole run.

A claim of probability fails in phase i with probability delta_i at most. With l = 1 these add up to more than 1, so it
is not judged for a run as a whole: it is rejected where, for some phase, so many of the n seeds fail in it that
Binomial(n, delta_i) does with probability below 1e-6, divided by the number of phases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from ravi.core import MDP, Array, Learner
from ravi.engine import Progress, run
from ravi.learners.ravi_ucb.doubling import Phases
from ravi.planning.solver import Solution
from ravi.theory import constants
from ravi.theory import doubling as theory
from ravi.theory.parts import Bound
from ravi.verify import inner, stated, variants
from ravi.verify.audit import audit, finish, scene_of
from ravi.verify.books import Check, Scene
from ravi.verify.books import Seen as Audited
from ravi.verify.claim import Claim, Registry
from ravi.verify.constants import bound_of, lam, papers_beta
from ravi.verify.evidence import Evidence
from ravi.verify.inner import Seen, Totals
from ravi.verify.ladder import Ladder
from ravi.verify.phases import Phased, Stage, phases
from ravi.verify.phases import finish as ended
from ravi.verify.report import ALARM, Report, Row, judged, worst_case

REPLACED = ("V8", "V9", "V9s")  # of `variants`: bounds for T known
WITHIN = ("P6",)  # about neighbours of one phase: where the next begins, KL to a policy without some action is infinite

registry = Registry()
claim = registry.claim


def stage_of(learner: Learner, mdp: MDP, steps: int, solution: Solution) -> Stage:
    """Every phase with the constants that it must have, whatever the learner says of them."""
    assert isinstance(learner.plan, Phases)
    plan = learner.plan

    @cache
    def of(i: int) -> Scene:
        made, l = plan.learner(i), theory.length(i, plan.first)
        scene = scene_of(made, mdp, theory.end(i, plan.first), solution)._replace(phase=i, length=l)
        scene = scene.stating(delta=1 / l)
        if scene.stated.beta is None:
            return scene
        return scene.stating(beta=float(scene.stated.scale) * papers_beta(scene))

    whole = of(0)._replace(steps=steps).stating(delta=1 / steps)
    return Stage(whole, plan.first, of)


# ---- the phases


@claim("B1", "the phase of epoch k is the one that T_k is in", "doubling", phase="plan")
def in_force(s: Seen) -> tuple[Array, Array]:
    return np.abs(s.state.phase - s.scene.phase).astype(float), variants.nil(s)


@claim("B2", "V and pi begin anew with a phase: its first plan is made from V_0, pi_0", "doubling", phase="plan")
def begun_anew(s: Seen) -> tuple[Array, Array]:
    off, nothing = variants.planned(s)
    return off if s.anew else nothing - np.inf, nothing


@claim("B3", "eta_i is that of l_i plays", "doubling", phase="plan")
def own_step(s: Seen) -> tuple[Array, Array]:
    right = s.scene.stated.step_scale * published_eta(s.scene)
    return variants.nil(s) + abs(s.scene.parts.eta / right - 1), variants.nil(s)


def published_eta(scene: Scene) -> float:
    """Of l_i plays: that of Theorem 4.1, or the balanced one, with the beta of as many plays."""
    H, A, l, M = scene.H, scene.mdp.actions, scene.length, scene.parts.inner
    if scene.stated.beta is not None:
        return constants.eta(H, A, l)
    alone = scene._replace(steps=l).stating(scale=1.0)
    return constants.eta_balanced(H, A, l, stated.bonus_sum(alone) if stated.has(scene, "balance") else 0.0, M)


# ---- the bounds


def scenes(stage: Stage) -> list[Scene]:
    """Of all phases that T reaches into."""
    return [stage.of(i) for i in range(theory.phases(stage.whole.steps, stage.first))]


def bonuses(stage: Stage) -> list[float]:
    """S_i of every phase: the beta of S_{i+1} plays, in a sum over l_i."""
    return [stated.bonus_sum(scene, scene.length) for scene in scenes(stage)]


def sharp(stage: Stage) -> Bound | None:
    """With the eta of every phase; None where the constants are not the theorem's."""
    scene, all_phases = stage.of(0), scenes(stage)
    M, fresh = scene.parts.inner, scene.parts.fresh
    if (scene.parts.pick != "uniform" and M > 1) or not all(stated.valid(each) for each in all_phases):
        return None
    alike = bool(scene.dimension) or stated.has(scene, "span") or stated.has(scene, "clip")  # CB = 0 at V_0 = 0
    return theory.sharp(
        scene.H, scene.mdp.actions, bonuses(stage), etas=[each.parts.eta for each in all_phases], inner_steps=M,
        first=stage.first, start=(1.0 if alike else scene.H) if fresh else 0.0,
    )  # fmt: skip


@claim("B4", "E sum_{t<=T+} min(2 CB_t, H) <= sum_i S_i", "Lemmas 5.2, 5.5", kind="E", phase="run")
def bonus_sum(e: Evidence, found: Phased, stage: Stage) -> tuple[Array, Array]:
    return found.inner.drawn.bonus, np.array(sum(bonuses(stage)))


@claim(
    "B5",
    "R_T <= sum_i [S_i + H (log A / (M eta_i) + eta_i kappa E K(l_i)) + H^2 / M + H start / M + 1] + gamma H m",
    "Theorem 4.1", kind="E", phase="run",
)  # fmt: skip
def theorem(e: Evidence, found: Phased, stage: Stage) -> tuple[Array, Array]:
    """`start` is 0 where Q is not fresh, else 1, or H where CB is not 0 at V_0."""
    bound = sharp(stage)
    return e.run.regret, np.array(np.inf if bound is None else bound.total)


@claim(
    "B5s", "R_T <= the bound of the published constants, or that in which each balanced eta_i at most doubles S_i",
    "theory.doubling", kind="E", phase="run",
)  # fmt: skip
def theorem_published(e: Evidence, found: Phased, stage: Stage) -> tuple[Array, Array]:
    return e.run.regret, np.array(published(stage))


def published(stage: Stage) -> float:
    """The closed form of `theory.doubling`; infinite where scale or step_scale are not 1."""
    scene, mdp, made = stage.of(0), stage.whole.mdp, sharp(stage)
    H, A, T, l = scene.H, mdp.actions, stage.whole.steps, stage.first
    if made is None or scene.stated.scale != 1 or scene.stated.step_scale != 1:
        return np.inf
    if scene.stated.beta is None:
        return doubled(stage, made) if stated.has(scene, "balance") else np.inf
    if scene.dimension:
        B = bound_of(scene)
        return theory.linear_mixture(H, mdp.dimension, A, T, bound=B, regularization=lam(scene), first=l).total
    return theory.tabular(H, mdp.states, A, T, first=l).total


def doubled(stage: Stage, made: Bound) -> float:
    """sum_i [S_i + max(S_i, s_i) + s_i + ...], s_i = H sqrt(kappa log A E K(l_i) / M) = H eta_sharp kappa E K(l_i)."""
    H, A, total = stage.whole.H, stage.whole.mdp.actions, made.bonus + made.boundary + made.failure
    for scene, S in zip(scenes(stage), bonuses(stage), strict=True):
        K, M = constants.expected_epochs(H, scene.length), scene.parts.inner
        slow = H * math.sqrt(constants.kappa(H) * math.log(A) * K / M)
        total += max(S, slow) + slow
    return total


# ---- the report


def report(
    learner: Learner, stage: Stage, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | None
) -> Report:
    walks = [each for each in chosen if each.id in variants.SHARED and each.phase != "run"]
    backups = [each for each in chosen if each.id not in variants.SHARED and each.phase != "run"]
    on_walks = [
        Check(each.phase, each.conditional, _within(each, stage.first) if each.id in WITHIN else each.measure)
        for each in walks
    ]
    on_backups = [inner.Check(each.phase, each.conditional, each.measure) for each in backups]
    whole = stage.whole
    with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
        measures = [audit(whole, on_walks), phases(stage, on_backups, _sums)]
        made = run(learner, whole.mdp, whole.steps, seeds, measures=measures, pad=True, progress=progress)
        *_, played, seen = made.batch.records
        played = finish(whole, on_walks, played, made.state._replace(policy=made.state.last_policy))
        seen = ended(stage, on_backups, _sums, seen, made.state)
        evidence = Evidence(whole, played, made)
        rows: list[Row] = []
        for each in chosen:
            if each in backups:
                rows.append(_in_phases(each, stage, evidence, seen, backups.index(each)))
            elif each in walks:
                rows.append(worst_case(each, whole, evidence, played.worst, walks.index(each)))
            elif each.id in variants.SHARED:
                rows.append(judged(each, whole, evidence, *each.measure(evidence)))
            else:
                about = (seen, stage) if each in registry.claims else (seen.inner,)
                rows.append(judged(each, whole, evidence, *each.measure(evidence, *about)))
        return Report(rows, _ladder(evidence, seen, stage), made, seen.invalid_at)


def _within(claim: Claim, first: int) -> Callable[[Audited], tuple[Array, Array]]:
    """The claim about epochs k - 1 and k, where both are of one phase."""

    def measure(s: Audited) -> tuple[Array, Array]:
        off, bound = claim.measure(s)
        if s.path is None:
            return off, bound
        now, before = (
            np.array([theory.phases(max(int(t), 1), first) for t in times])
            for times in (s.path.time, s.path.time - s.audit.length)
        )
        return np.where(now == before, off, -np.inf), bound

    return measure


def _in_phases(claim: Claim, stage: Stage, evidence: Evidence, seen: Phased, index: int) -> Row:
    """The verdict from the worst case of every seed in every phase."""
    margin, measured, bound, epoch = (part[..., index] for part in seen.worst)  # (n, phases)
    order = np.where(np.isnan(margin), -np.inf, margin).argmin(1)[:, None]  # the phase with the least room
    measured, bound, epoch = (np.take_along_axis(part, order, 1)[:, 0] for part in (measured, bound, epoch))
    reached = (margin != np.inf).any(1)
    somewhere = claim._replace(kind="D")
    row = judged(somewhere, stage.whole, evidence, measured, bound, epochs=epoch, reached=reached)
    if claim.kind != "P" or not reached.any():
        return row._replace(kind=claim.kind)
    from scipy.stats import binom

    failed = ~(margin >= -stage.whole.atol)  # a nan fails
    n, count = failed.shape
    tails = [
        float(binom.sf(number - 1, n, 1 / theory.length(i, stage.first))) if number else 1.0
        for i, number in enumerate(failed.sum(0))
    ]
    i = int(np.argmin(tails))
    note = f"{int(failed[:, i].sum())} of {n} seeds fail in phase {i}" if failed.any() else ""
    verdict = "violated" if tails[i] < ALARM / count else "holds"
    return row._replace(kind="P", verdict=verdict, note=note or row.note)


def _sums(scene: Scene, s: Totals) -> tuple[Array, Array]:
    return variants.certificate(scene, s), variants.lemma(scene, s)


def _ladder(e: Evidence, found: Phased, stage: Stage) -> Ladder:
    """The same rungs, summed over phases; sums over backups are divided by M, since one of M is played."""
    share, bound = e.scene.H / stage.of(0).parts.inner, sharp(stage)
    gaps, certificate, lemma = (float(share * part.mean()) for part in found.ended)
    return Ladder(
        float(e.run.regret.mean()),
        gaps,
        certificate,
        lemma,
        np.inf if bound is None else bound.total,
        float(e.run.steps * e.scene.solution.optimum),
    )
