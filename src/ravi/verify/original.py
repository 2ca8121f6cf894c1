"""How is Algorithm 1 held against the paper? Every claim on every epoch of a run, and on the run as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ravi.core import Learner
from ravi.engine import Progress, run
from ravi.verify import kinds
from ravi.verify.audit import audit, finish
from ravi.verify.books import Check, Scene
from ravi.verify.claim import Claim
from ravi.verify.evidence import Evidence
from ravi.verify.ladder import ladder
from ravi.verify.report import Report, Row, judged, worst_case


def report(
    learner: Learner, scene: Scene, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | None
) -> Report:
    """The claims of the paper, and those about an estimator of a kind of its own."""
    theirs = [claim for claim in chosen if claim in kinds.CLAIMS]
    papers = [claim for claim in chosen if claim not in theirs]
    along = [claim for claim in papers if claim.phase != "run"]
    tests = [Check(claim.phase, claim.conditional, claim.measure) for claim in along]
    with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
        measures = [*kinds.observers(scene, theirs), audit(scene, tests)]
        made = run(learner, scene.mdp, scene.steps, seeds, measures=measures, pad=True, progress=progress)
        found = finish(scene, tests, made.batch.records[-1], made.state)
        evidence = Evidence(scene, found, made)
        rows: list[Row] = []
        for claim in papers:
            if claim.phase == "run":
                rows.append(judged(claim, scene, evidence, *claim.measure(evidence)))
            else:
                rows.append(worst_case(claim, scene, evidence, found.worst, along.index(claim)))
        if theirs:
            rows += kinds.rows(scene, theirs, evidence, made.batch.records[-2])
        return Report(rows, kinds.with_bound(scene, ladder(evidence)), made, found.invalid_at)
