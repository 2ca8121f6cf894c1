"""Which claims are about the estimator of a learner, where it is of a kind of its own? By the name that it gives it.

For these the observer keeps books of that kind besides (`Keeper`). When an epoch opens, the claims see them beside D,
and what the learner makes of its V: P_hat V and CB, with the true P V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ravi.verify import linear, sampled, variance
from ravi.verify.books import Keeper
from ravi.verify.claim import Claim
from ravi.verify.scene import Scene


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
