"""What do claims about phases need to see? The backups of each as a sequence of its own, with its own constants.

A learner that does not know T begins anew, from V_0 and pi_0, with every phase (`ravi.learners.ravi_ucb.doubling`). The
observer of `ravi.verify.inner` is put to the seeds of each phase, with a scene of that phase's; its sums, and whether
bonuses were valid so far, begin anew with the phase, and the worst case of each claim is kept for each. Books on what
was played go on: data are kept. Which phase an epoch is in is found from T_k alone.

Where a phase ends, so does its sequence: a mirror step leads from its last backup to a policy that is never played.
Where Q is fresh, that backup is made with the data with which its last epoch began. That is what the proof sums: at the
data of the next phase there would be more plays than beta_i allows for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi import tree
from ravi.core import Array, Data, Measure, Path
from ravi.theory import doubling
from ravi.verify import inner
from ravi.verify.books import Scene, Worst
from ravi.verify.inner import Check, Inner, Totals

RESTARTED = ("made", "valid", "at", "backup", "Q", "log_policy", "totals", "worst")  # with every phase


class Stage(NamedTuple):
    """Every phase as a scene: steps are the S_{i+1} that its beta allows for, its parts its own."""

    whole: Scene  # of the run; its constants are those of no phase
    first: int  # l
    of: Callable[[int], Scene]


class Ended(NamedTuple):
    """Sums over phases that have ended   (n,)."""

    gaps: Array
    certificate: Array  # the right side of Lemma 4.3 before anything is bounded
    lemma: Array  # that of Lemma 4.3


class Phased(NamedTuple):
    inner: Inner  # of the phase in force
    phase: Array  # which one, -1 before the first   (n,)
    invalid_at: Array  # the first epoch with an invalid bonus in any phase, 0 for none   (n,)
    data: Data  # when the epoch began
    worst: Worst  # of every phase   (n, phases, claims)
    ended: Ended


Sums = Callable[[Scene, Totals], tuple[Array, Array]]  # the certificate, and Lemma 4.3


def phases(stage: Stage, checks: Sequence[Check], sums: Sums) -> Measure:
    zero, most = stage.of(0), doubling.phases(stage.whole.steps, stage.first)
    M = zero.parts.inner
    base = inner.inner(zero, checks)

    def init(keys: Array) -> Phased:
        n, C = len(keys), len(checks)
        worst = Worst(np.full((n, most, C), np.inf), *(np.zeros((n, most, C)) for _ in range(3)))
        nothing = Ended(*(np.zeros(n) for _ in Ended._fields))
        data = zero.parts.estimator.init(n)
        return Phased(base.init(keys), np.full(n, -1), np.zeros(n, np.int64), data, worst, nothing)

    def record(m: Phased, state: Any, path: Path, opening: bool) -> Phased:
        if opening:
            m = _open(m, state, path)
        inner.follow(stage.whole, m.inner, path)
        return m

    def _open(m: Phased, state: Any, path: Path) -> Phased:
        active = path.length > 0
        due = np.array([doubling.phases(int(t), stage.first) - 1 for t in path.time])
        anew = active & (due != m.phase)
        _end(stage, checks, sums, m, state, anew & (m.phase >= 0), int(m.inner.seen.max()))
        if anew.any():
            start = base.init(state.key)
            for name in RESTARTED:
                _put(getattr(m.inner, name), tree.take(getattr(start, name), anew), anew)
            m.phase[anew] = due[anew]
        for i in np.unique(due[active]):
            for begins in (False, True):
                rows = np.flatnonzero(active & (due == i) & (anew == begins))
                if len(rows):
                    here = tree.take(m.inner, rows)
                    later = begins and bool(here.seen.max() > 0)
                    here = inner.open_epoch(
                        stage.of(int(i)), checks, M, here, tree.take(state, rows), tree.take(path, rows), anew=later
                    )
                    _put(m.inner, here, rows)
        _note_invalid(m)
        _put(m.data, tree.take(state.data, active), active)
        return m

    return Measure("phases", init, record, lambda m: {})


def finish(stage: Stage, checks: Sequence[Check], sums: Sums, m: Phased, state: Any) -> Phased:
    """After the run: what the learner ends with, and the end of every seed's last phase."""
    inner.look_at_data(stage.whole, checks, m.inner, state)
    _end(stage, checks, sums, m, state, np.ones(len(m.phase), bool), 0)
    return m


def _end(stage: Stage, checks: Sequence[Check], sums: Sums, m: Phased, state: Any, over: Array, k: int) -> None:
    """The phases of these seeds end, after epoch k; their sums and worst cases are put aside, in place."""
    for i in np.unique(m.phase[over]):
        rows = np.flatnonzero(over & (m.phase == i))
        scene, here = stage.of(int(i)), tree.take(m.inner, rows)
        before = tree.take(state, rows)._replace(
            data=tree.take(m.data, rows), V_last=here.at.V, last_policy=here.at.policy, Q=here.Q,
            log_policy=here.log_policy,
        )  # fmt: skip
        made = inner.close(scene, checks, here._replace(books=here.older), before, np.ones(len(rows), bool), k)
        _put(m.inner, made._replace(books=here.books), rows)
        _put(m.ended, Ended(*(e[rows] + s for e, s in zip(m.ended, _sums(scene, sums, made), strict=True))), rows)
        for kept, found in zip(m.worst, made.worst, strict=True):
            kept[rows, i] = found
    _note_invalid(m)


def _note_invalid(m: Phased) -> None:
    """The first invalid epoch of a run is that of the first phase that has one."""
    m.invalid_at[:] = np.where((m.invalid_at == 0) & ~m.inner.valid, m.inner.invalid_at, m.invalid_at)


def _sums(scene: Scene, sums: Sums, made: Inner) -> tuple[Array, Array, Array]:
    return made.totals.gaps, *sums(scene, made.totals)


def _put(target: Any, source: Any, rows: Array) -> None:
    """target[rows] = source in every array; `source` has these rows only."""
    for (_, to), (_, what) in zip(tree.leaves(target), tree.leaves(source), strict=True):
        to[rows] = what
