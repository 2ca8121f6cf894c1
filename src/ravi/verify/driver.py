"""The judge: a run is played with an observer beside it, and every claim is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ravi.core import Learner
from ravi.display.progress import Progress
from ravi.runtime.api import run
from ravi.verify import lemmas
from ravi.verify.audit import audit, finish
from ravi.verify.books import Evidence, Keeper
from ravi.verify.claim import Claim
from ravi.verify.ladder import Rung, ladder
from ravi.verify.report import Report, judged, worst_case
from ravi.verify.scene import Scene


class Form(NamedTuple):
    """What a learner on an MDP is held against, and how."""

    learner: Learner
    scene: Scene
    claims: list[Claim]
    bound: float  # of its regret; infinite where none is proven
    keeper: Keeper | None = None
    rungs: tuple[Rung, Rung] = (lemmas.certificate, lemmas.right_side)

    def report(
        self, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | bool | None = None
    ) -> Report:
        """The chosen claims, on these seeds."""
        scene, along = self.scene, [claim for claim in chosen if claim.phase != "run"]
        with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
            made = run(
                self.learner, scene.mdp, scene.steps, seeds, measures=[audit(scene, along, self.keeper)],
                pad=scene.sets is None, progress=progress,
            )  # fmt: skip
            found = finish(scene, along, made.batch.records[-1], made.state)
            evidence = Evidence(scene, found, made)
            rows = [
                judged(claim, scene, evidence, *claim.measure(evidence))
                if claim.phase == "run"
                else worst_case(claim, scene, evidence, found.worst, along.index(claim))
                for claim in chosen
            ]
            return Report(rows, ladder(evidence, self.bound, *self.rungs), made, found.invalid_at)
