"""How is a learner with several backups an epoch held against its claims? Each on every backup.

Those that it shares with the paper, about walks and laws, are held against the policies that were played.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ravi.core import Learner
from ravi.engine import Progress, run
from ravi.verify import inner, kinds, unknown, variants
from ravi.verify.audit import audit, finish
from ravi.verify.books import Check, Scene
from ravi.verify.claim import Claim
from ravi.verify.evidence import Evidence
from ravi.verify.report import Report, Row, judged, worst_case


def report(
    learner: Learner, scene: Scene, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | None
) -> Report:
    """The claims about backups, and those about rewards or an estimator of a kind of its own."""
    theirs = [claim for claim in chosen if claim in kinds.CLAIMS]
    rest = [claim for claim in chosen if claim not in theirs]
    walks = [claim for claim in rest if claim.id in variants.SHARED and claim.phase != "run"]
    backups = [claim for claim in rest if claim.id not in variants.SHARED and claim.phase != "run"]
    on_walks = [Check(claim.phase, claim.conditional, claim.measure) for claim in walks]
    on_backups = [inner.Check(claim.phase, claim.conditional, claim.measure) for claim in backups]
    with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
        measures = [*kinds.observers(scene, theirs), audit(scene, on_walks), inner.inner(scene, on_backups)]
        measures = [*unknown.observers(scene), *measures]
        made = run(learner, scene.mdp, scene.steps, seeds, measures=measures, pad=True, progress=progress)
        *_, played, seen = made.batch.records
        played = finish(scene, on_walks, played, made.state._replace(policy=made.state.last_policy))
        seen = inner.finish(scene, on_backups, seen, made.state)
        evidence = Evidence(scene, played, made)
        rows: list[Row] = []
        for claim in rest:
            if claim.phase == "run":
                about = (evidence,) if claim.id in variants.SHARED else (evidence, seen)
                rows.append(judged(claim, scene, evidence, *claim.measure(*about)))
                continue
            group, worst = (walks, played.worst) if claim in walks else (backups, seen.worst)
            rows.append(worst_case(claim, unknown.judging(claim, scene), evidence, worst, group.index(claim)))
        if theirs:
            rows += kinds.rows(scene, theirs, evidence, made.batch.records[-3], seen)
        return Report(rows, kinds.with_bound(scene, variants.ladder(evidence, seen)), made, seen.invalid_at)
