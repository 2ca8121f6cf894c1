"""Which claims are about the estimator of a learner, where it is of a kind of its own? By the name that it gives it.

For these the observer keeps books of that kind besides (`Keeper`). When an epoch opens, the claims see them beside D,
and what the learner makes of its V: P_hat V and CB, with the true P V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ravi.verify import linear, sampled, variance
from ravi.verify.books import Keeper, Scene
from ravi.verify.claim import Claim


class Kind(NamedTuple):
    claims: Sequence[Claim]
    keeper: Callable[[Scene], Keeper] | None  # of books that the audit does not keep already
    explicit: Callable[[Scene], float]  # the regret bound; infinite where none is proven


KINDS = {
    "sampled": Kind(sampled.registry.claims, sampled.keeper, sampled.explicit),
    "linear": Kind(linear.registry.claims, None, linear.explicit),
    "variance": Kind(variance.registry.claims, variance.keeper, variance.explicit),
}
CLAIMS: tuple[Claim, ...] = tuple(claim for kind in KINDS.values() for claim in kind.claims)


def claims_of(scene: Scene) -> Sequence[Claim]:
    kind = KINDS.get(scene.stated.kind)
    return kind.claims if kind else ()


def keeper(scene: Scene, claims: Sequence[Claim]) -> Keeper | None:
    """Who keeps the books that these claims need, if any does."""
    kind = KINDS.get(scene.stated.kind)
    if kind is None or kind.keeper is None or not any(claim in kind.claims for claim in claims):
        return None
    return kind.keeper(scene)


def explicit(scene: Scene, otherwise: float) -> float:
    """The regret bound of the kind, where it has one."""
    kind = KINDS.get(scene.stated.kind)
    return kind.explicit(scene) if kind else otherwise
