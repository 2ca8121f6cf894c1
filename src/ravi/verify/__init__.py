"""Does a run obey the paper? Every equation, lemma, theorem and corollary as a claim that is measured on it.

    from ravi.verify import verify
    report = verify("ravi-ucb", "riverswim/4,discount=0.8", steps=5000, seeds=16)
    print(report)            # claim, where, kind, measured, bound, margin, verdict
    report.holds             # whether every claim holds

Deterministic claims (D) must hold in every epoch of every seed, up to rounding: 1e-9 H for an identity, 1e-8 K for a
sum over K epochs. A claim of probability 1 - delta (P) is rejected when the number of seeds that fail has, under
Binomial(n, delta), an upper tail below 1e-6. A claim in expectation (E) is rejected when the mean of the seeds leaves
an interval that chance keeps it in with probability 1 - 1e-6: by Chernoff's or Bernstein's bound for the laws of resets
and draws, for every equality and for Lemma 4.4; by Student's t for the other inequalities, which hold with much room.
With fewer than fifty statistical claims, a whole table raises a false alarm with probability below 1e-4. Claims that
are conditional on valid bonuses are measured up to the first epoch with an invalid one. docs/verify.md has more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ravi import checks, ids
from ravi.core import MDP, Learner
from ravi.engine import Progress, resolved, run
from ravi.learners.doubling import Phases
from ravi.mdps.changing import Changing
from ravi.measures import inner
from ravi.measures.audit import audit, finish, scene_of
from ravi.measures.books import Check, Scene
from ravi.planning.solver import solve
from ravi.verify import (
    analysis,
    changing,
    discussion,
    doubling,
    kinds,
    preliminaries,
    regression,
    tables,
    unknown,
    variants,
)
from ravi.verify.claim import Claim
from ravi.verify.evidence import Evidence
from ravi.verify.ladder import ladder
from ravi.verify.report import Report, Row, judged
from ravi.verify.stated import learned

# What `ravi verify` runs when nothing is named: small, with the paper's constants. Under these every tabular Q_k is at
# H and policies stay uniform, so that many a mistake would not show: hence also a tenth of the bonus, which is valid
# too (beta' of T1s is smaller), and larger steps.
DEFAULT = (
    ("garnet/2,2,2,discount=0.8", "ravi-ucb", 20_000),
    ("garnet/2,2,2,discount=0.8", "ravi-ucb,scale=0.1,step_scale=30", 5_000),
    ("ensemble/2,4,2,2,discount=0.8", "ravi-ucb/mixture", 10_000),
)
MOST_STATES = 400  # an audit solves dense systems at every epoch

CLAIMS: tuple[Claim, ...] = tuple(
    claim for part in (preliminaries, analysis, tables, regression, discussion) for claim in part.registry.claims
)
VARIANTS: tuple[Claim, ...] = (
    *(claim for claim in CLAIMS if claim.id in variants.SHARED),
    *variants.registry.claims,
)  # of learners with several backups an epoch
CHANGING: tuple[Claim, ...] = (
    *(claim for claim in CLAIMS if claim.id in variants.SHARED),
    *changing.registry.claims,
)  # where rewards change
UNKNOWN: tuple[Claim, ...] = unknown.claims_of(VARIANTS)  # of those that are not told their rewards
DOUBLING: tuple[Claim, ...] = (
    *(claim for claim in VARIANTS if claim.id not in doubling.REPLACED),
    *doubling.registry.claims,
)  # of those that do not know T
KINDS: tuple[Claim, ...] = kinds.CLAIMS  # of estimators of other kinds, besides those of any learner


def verify(
    learner: Learner | str,
    mdp: MDP | Changing | str,
    steps: int,
    seeds: int | Iterable[int] = 16,
    *,
    only: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Run `learner` on `mdp`, with the last epoch played to its end, and hold every claim against it."""
    T = checks.steps(steps)
    world = (ids.changing(mdp) or mdp) if isinstance(mdp, str) else mdp
    if isinstance(world, Changing):
        return _changing(learner, world, T, seeds, only, progress)
    mdp, learner = resolved(world, learner, T)
    if isinstance(learner.plan, Phases):
        return _doubling(learner, mdp, T, seeds, only, progress)
    if learner.parts is None:
        raise checks.InputError(f"{learner.name} is not of RAVI-UCB's form: the paper's claims are not about it")
    if mdp.states > MOST_STATES:
        raise checks.InputError(f"{mdp.name} has {mdp.states} states; verify takes at most {MOST_STATES}")
    scene = scene_of(learner, mdp, T, solve(mdp, tol=1e-12))
    if learner.parts.backups is not None:
        return _variant(learner, scene, seeds, only, progress)
    chosen = [claim for claim in CLAIMS if claim.setting in ("any", scene.setting) and wanted(claim, only)]
    theirs = [claim for claim in kinds.claims_of(scene) if wanted(claim, only)]
    if not chosen and not theirs:
        raise checks.InputError(f"{', '.join(only)} is not about {learner.name}")
    along = [claim for claim in chosen if claim.phase != "run"]
    tests = [Check(claim.phase, claim.conditional, claim.measure) for claim in along]
    with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
        measures = [*kinds.observers(scene, theirs), audit(scene, tests)]
        made = run(learner, mdp, T, seeds, measures=measures, pad=True, progress=progress)
        found = finish(scene, tests, made.batch.records[-1], made.state)
        evidence = Evidence(scene, found, made)
        rows: list[Row] = []
        for claim in chosen:
            if claim.phase == "run":
                rows.append(judged(claim, scene, evidence, *claim.measure(evidence)))
            else:
                index = along.index(claim)
                worst = found.worst
                reached = worst.margin[:, index] != np.inf  # what it starts at; a nan was reached
                values = worst.measured[:, index], worst.bound[:, index]
                rows.append(judged(claim, scene, evidence, *values, epochs=worst.epoch[:, index], reached=reached))
        if theirs:
            rows += kinds.rows(scene, theirs, evidence, made.batch.records[-2])
        return Report(rows, kinds.with_bound(scene, ladder(evidence)), made, found.invalid_at)


def _variant(
    learner: Learner, scene: Scene, seeds: int | Iterable[int], only: Sequence[str], progress: Progress | None
) -> Report:
    """The claims about every one of the backups; those about walks and laws as they are for RAVI-UCB."""
    settings = ("any", scene.setting) if scene.setting == "generic" else ("any", scene.setting, "parts")
    told = not learned(scene)  # of rewards
    chosen = [c for c in (VARIANTS if told else UNKNOWN) if c.setting in settings and wanted(c, only)]
    theirs = [claim for claim in kinds.claims_of(scene) if told and wanted(claim, only)]
    if not chosen and not theirs:
        raise checks.InputError(f"{', '.join(only)} is not about {learner.name}")
    walks = [claim for claim in chosen if claim.id in variants.SHARED and claim.phase != "run"]
    backups = [claim for claim in chosen if claim.id not in variants.SHARED and claim.phase != "run"]
    on_walks = [Check(claim.phase, claim.conditional, claim.measure) for claim in walks]
    on_backups = [inner.Check(claim.phase, claim.conditional, claim.measure) for claim in backups]
    with np.errstate(all="ignore"):
        measures = [*kinds.observers(scene, theirs), audit(scene, on_walks), inner.inner(scene, on_backups)]
        measures = [*unknown.observers(scene), *measures]
        made = run(learner, scene.mdp, scene.steps, seeds, measures=measures, pad=True, progress=progress)
        *_, played, seen = made.batch.records
        played = finish(scene, on_walks, played, made.state._replace(policy=made.state.last_policy))
        seen = inner.finish(scene, on_backups, seen, made.state)
        evidence = Evidence(scene, played, made)
        rows: list[Row] = []
        for claim in chosen:
            if claim.phase == "run":
                about = (evidence,) if claim.id in variants.SHARED else (evidence, seen)
                rows.append(judged(claim, scene, evidence, *claim.measure(*about)))
                continue
            group, worst = (walks, played.worst) if claim in walks else (backups, seen.worst)
            index = group.index(claim)
            reached = worst.margin[:, index] != np.inf
            values = worst.measured[:, index], worst.bound[:, index]
            allowed = unknown.judging(claim, scene)
            rows.append(judged(claim, allowed, evidence, *values, epochs=worst.epoch[:, index], reached=reached))
        if theirs:
            rows += kinds.rows(scene, theirs, evidence, made.batch.records[-3], seen)
        return Report(rows, kinds.with_bound(scene, variants.ladder(evidence, seen)), made, seen.invalid_at)


def _changing(
    learner: Learner | str,
    world: Changing,
    steps: int,
    seeds: int | Iterable[int],
    only: Sequence[str],
    progress: Progress | None,
) -> Report:
    """The claims with the table that was revealed after each epoch; those about walks and laws as they are."""
    mdp, learner = resolved(world.mdp, learner, steps)
    if mdp.states > MOST_STATES:
        raise checks.InputError(f"{mdp.name} has {mdp.states} states; verify takes at most {MOST_STATES}")
    made, stage = changing.stage(learner, world, steps)
    setting = stage.scene.setting
    settings = ("any", setting) if setting == "generic" else ("any", setting, "parts")
    chosen = [claim for claim in CHANGING if claim.setting in settings and wanted(claim, only)]
    if not chosen:
        raise checks.InputError(f"{', '.join(only)} is not about {made.name}")
    return changing.report(made, stage, chosen, seeds, progress)


def _doubling(
    learner: Learner,
    mdp: MDP,
    steps: int,
    seeds: int | Iterable[int],
    only: Sequence[str],
    progress: Progress | None,
) -> Report:
    """The claims about every one of the backups, phase by phase; those about walks and laws as they are."""
    if mdp.states > MOST_STATES:
        raise checks.InputError(f"{mdp.name} has {mdp.states} states; verify takes at most {MOST_STATES}")
    stage = doubling.stage_of(learner, mdp, steps, solve(mdp, tol=1e-12))
    settings = ("any", stage.whole.setting, "parts")
    chosen = [claim for claim in DOUBLING if claim.setting in settings and wanted(claim, only)]
    if not chosen:
        raise checks.InputError(f"{', '.join(only)} is not about {learner.name}")
    return doubling.report(learner, stage, chosen, seeds, progress)


def wanted(claim: Claim, only: Sequence[str]) -> bool:
    known = {c.id: c for c in (*CLAIMS, *VARIANTS, *UNKNOWN, *CHANGING, *KINDS, *doubling.registry.claims)}.values()
    unknown = [name for name in only if not any(_names(c, name) for c in known)]
    if unknown:
        hint = checks.did_you_mean(unknown[0], [c.id for c in known])
        raise checks.InputError(f"there is no claim {unknown[0]!r}.{hint}")
    return not only or any(_names(claim, name) for name in only)


def _names(claim: Claim, name: str) -> bool:
    """A1 names A1a and A1b too."""
    return claim.id == name or (claim.id.startswith(name) and claim.id[len(name) :] in ("a", "b", "c", "d", "e", "s"))


__all__ = [
    "CHANGING",
    "CLAIMS",
    "DEFAULT",
    "DOUBLING",
    "KINDS",
    "UNKNOWN",
    "VARIANTS",
    "Claim",
    "Report",
    "Row",
    "verify",
]
