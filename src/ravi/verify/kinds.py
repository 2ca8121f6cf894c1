"""Which claims are about the estimator of a learner, where it is of a kind of its own? By the name that it gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ravi.core import Measure
from ravi.verify import linear, regressions, sampled, weights
from ravi.verify.books import Check, Scene
from ravi.verify.claim import Claim
from ravi.verify.evidence import Evidence
from ravi.verify.ladder import Ladder
from ravi.verify.report import Row, judged, worst_case


class Kind(NamedTuple):
    claims: Sequence[Claim]
    keeper: Callable[[Scene], regressions.Keeper]
    explicit: Callable[[Scene], float]  # the regret bound; infinite where none is proven


KINDS = {
    "sampled": Kind(sampled.registry.claims, sampled.keeper, sampled.explicit),
    "linear": Kind(linear.registry.claims, linear.keeper, linear.explicit),
    "variance": Kind(weights.registry.claims, weights.keeper, weights.explicit),
}
CLAIMS: tuple[Claim, ...] = tuple(claim for kind in KINDS.values() for claim in kind.claims)


def kind_of(scene: Scene) -> Kind | None:
    return KINDS.get(scene.stated.kind)


def claims_of(scene: Scene) -> Sequence[Claim]:
    kind = kind_of(scene)
    return kind.claims if kind else ()


def observers(scene: Scene, claims: Sequence[Claim]) -> list[Measure]:
    """The measure that these claims need, if there are any."""
    kind = kind_of(scene)
    return [regressions.observer(scene, kind.keeper(scene), _checks(claims))] if kind and claims else []


def rows(scene: Scene, claims: Sequence[Claim], evidence: Evidence, record: Any, *more: Any) -> list[Row]:
    """The verdicts; `record` is that of the observer, `more` what claims about a whole run are given besides."""
    along = [claim for claim in claims if claim.phase != "run"]
    worst = regressions.finish(scene, _checks(claims), record, evidence.run.state).worst
    made = []
    for claim in claims:
        if claim.phase == "run":
            made.append(judged(claim, scene, evidence, *claim.measure(evidence, *more)))
            continue
        made.append(worst_case(claim, scene, evidence, worst, along.index(claim)))
    return made


def with_bound(scene: Scene, ladder: Ladder) -> Ladder:
    """With the regret bound of the kind, where it has one."""
    kind = kind_of(scene)
    return ladder._replace(explicit=float(kind.explicit(scene))) if kind else ladder


def _checks(claims: Sequence[Claim]) -> list[Check]:
    return [Check(claim.phase, claim.conditional, claim.measure) for claim in claims if claim.phase != "run"]
