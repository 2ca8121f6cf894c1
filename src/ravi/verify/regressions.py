"""What do claims about a regression of another kind than Algorithm 3's need to see? Its data as an observer keeps them.

Beside the learner runs an observer with books of its own: a NamedTuple of arrays, seeds first, which a `Keeper` begins
and follows play by play, from definitions. When an epoch opens, the claims see these books beside D, and what the
learner makes of its V: phi, P_hat V and CB, with the true P V. Of each claim the worst case of each seed is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Measure, Path
from ravi.planning.bellman import expect
from ravi.verify.audit import note
from ravi.verify.books import Check, Scene, Worst


class Keeper(NamedTuple):
    """How one kind of regression is followed."""

    init: Callable[[int], Any]  # n -> books before the first play
    follow: Callable[
        [Any, Array, Path, Array], None
    ]  # books, V of the epoch, path, which plays are learned from (n, L)


class Observed(NamedTuple):
    seen: Array  # epochs                    (n,)
    V: Array  # of the epoch, as it is played   (n, X)
    books: Any
    worst: Worst


class Seen(NamedTuple):
    """What a check is given. At the end of a run there is data and books, and no epoch: V is the last one's."""

    scene: Scene
    k: int
    V: Array  # V_k, of the policy that is played   (n, X)
    phi: Any  # as the learner embeds it
    PV: Array  # P V_k, the truth                  (n, X, A)
    PV_hat: Array  #                               (n, X, A)
    CB: Array  #                                   (n, X, A)
    books: Any
    data: Any  # D


def observer(scene: Scene, keeper: Keeper, checks: Sequence[Check]) -> Measure:
    """Checks of phase "epoch" are made as an epoch opens, those of phase "data" also when the run is over."""

    def init(keys: Array) -> Observed:
        n, C = len(keys), len(checks)
        worst = Worst(np.full((n, C), np.inf), np.zeros((n, C)), np.zeros((n, C)), np.zeros((n, C)))
        return Observed(np.zeros(n, np.int64), np.zeros((n, scene.mdp.states)), keeper.init(n), worst)

    def record(m: Observed, state: Any, path: Path, opening: bool) -> Observed:
        if opening:
            active = path.length > 0
            _put(scene, checks, m, state.V, state.data, active, int(m.seen.max()) + 1, ("epoch", "data"))
            m = m._replace(seen=m.seen + active, V=np.where(active[:, None], state.V, m.V))
        columns = np.arange(path.state.shape[1])
        inside = columns < path.length[:, None]
        keeper.follow(m.books, m.V, path, inside & (path.time[:, None] + columns <= scene.steps))
        return m

    return Measure("regressions", init, record, lambda m: {})


def finish(scene: Scene, checks: Sequence[Check], m: Observed, state: Any) -> Observed:
    """After the run: the data of all plays."""
    _put(scene, checks, m, m.V, state.data, np.ones(len(m.seen), bool), 0, ("data",))
    return m


def _put(
    scene: Scene, checks: Sequence[Check], m: Observed, V: Array, D: Any, active: Array, k: int, phases: tuple[str, ...]
) -> None:
    parts = scene.parts
    phi = parts.estimator.embed(V)
    found = expect(scene.mdp, V), parts.estimator.expect(D, phi), parts.bonus(D, phi)
    seen = Seen(scene, k, V, phi, *found, m.books, D)
    for index, check in enumerate(checks):
        if check.phase in phases:
            note(m.worst, index, active, k, *check.measure(seen))
