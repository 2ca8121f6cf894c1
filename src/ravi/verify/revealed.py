"""What do claims about rewards that change need to see? Every epoch, with the table that was revealed after it.

Q_{k+1} is made when epoch k + 1 is planned, from r_k, the table of epoch k's last play (or of epoch k). So an observer
keeps epoch k as it opened, with P V_k, P_hat_k V_k, CB_k and the occupancies of pi_k recomputed; follows the plays with
a clock and books of its own; and when epoch k + 1 opens puts Q_{k+1}, V_{k+1}, pi_{k+1} and r_k before the claims. Of
each claim it keeps the worst case. Regret is against several fixed policies at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Measure, Path
from ravi.mdps.changing_rewards import Changing
from ravi.planning.bellman import expect
from ravi.planning.entropy import relative_entropy
from ravi.planning.mirror import mirror_step
from ravi.planning.occupancies import occupancy
from ravi.verify.audit import merged, note, optimisation, proper
from ravi.verify.books import Check, Epoch, Scene, Worst
from ravi.verify.constants import lam
from ravi.verify.inner import Books, standardised


class Comparators(NamedTuple):
    """Fixed policies that a run is held against; each may be pi*."""

    nu: Array  # nu*                    (C, X)
    rho: Array  # <mu*, r_j>            (C, J)
    entropy: Array  # H(pi* || pi_0)    (C,)


class Stage(NamedTuple):
    """What does not change in a run, where rewards do."""

    scene: Scene  # of the kernel; its rewards, and its optimum, are those of the mean table
    world: Changing
    against: Comparators  # the first is the best for as long as each table is in force on average

    def revealed(self, number: Array) -> Array:
        """r_j of every seed   (n, X, A)."""
        return self.world.tables[number]


class Sums(NamedTuple):
    """Over the epochs closed so far, all before the first invalid one."""

    tables: Array  # how often r_k was each table        (n, J)
    earned: Array  # sum <mu^{pi_k}, r_k>                (n,)
    hoped: Array  # sum (1 - gamma) <nu_0, V_k>          (n,)
    capped: Array  # sum <mu^{pi_k}, min(2 CB_k, H)>     (n,)
    moves: Array  # sum <mu^{pi_{k+1}} - mu^{pi_k}, Q_{k+1}> - H(pi_{k+1} || pi_k) / eta   (n,)

    @property
    def epochs(self) -> Array:
        return self.tables.sum(-1)  # K


class Played(NamedTuple):
    """Over plays; f_t = <mu* - mu^{pi_t}, r_t> for each of the C comparators."""

    regret: Array  # sum_{t <= T} f_t                                          (n, C)
    drift: Array  # sum_{t <= T+} f_t - H sum_k <mu* - mu^{pi_k}, r_k>          (n, C)
    variance: Array  # of it: sum_{t <= T+} gamma H f_t^2                       (n, C)
    lead: Array  # sum f_t over t <= T+, before the first invalid epoch         (n, C)
    paid: Array  # sum min(2 CB_t(x_t, a_t), H) over the same                   (n,)
    bonus: Array  # sum_{t <= T+} min(2 CB_t(x_t, a_t), H)                      (n,)


class Revealed(NamedTuple):
    seen: Array  # epochs opened        (n,)
    valid: Array  # no invalid bonus yet   (n,)
    invalid_at: Array  # the first invalid epoch, 0 for none   (n,)
    epoch: Epoch  # epoch k; its Q is Q_k until epoch k + 1 opens
    rho: Array  # <mu^{pi_k}, r_j>      (n, J)
    last: Array  # the table of the last play, or of the epoch   (n,)
    first: Array  # <mu^{pi_1}, E V_1>  (n,)
    ends: Array  # <mu* - mu^{pi_{K+1}}, E V_{K+1}>, K the epochs of `sums`   (n, C)
    sums: Sums
    played: Played
    books: Books
    worst: Worst


class Seen(NamedTuple):
    """What a check is given."""

    stage: Stage
    k: int  # 0 at the end
    before: Epoch  # epoch k - 1, its Q the learner's Q_k (zeros when k = 1)
    r: Array  # r_{k-1}                 (n, X, A)
    epoch: Epoch  # epoch k
    sums: Sums  # over the epochs before k
    first: Array  # <mu^{pi_1}, E V_1>  (n,)
    books: Books  # what was played before epoch k
    data: Any  # D_{T_k}

    @property
    def scene(self) -> Scene:
        return self.stage.scene


def stage_of(scene: Scene, world: Changing, policies: Array) -> Stage:
    """`policies` (C, X, A) are the comparators."""
    return Stage(scene, world, comparators(scene, world, policies))


def comparators(scene: Scene, world: Changing, policies: Array) -> Comparators:
    found = occupancy(scene.mdp, policies)
    apart = relative_entropy(policies, np.broadcast_to(scene.parts.initial_policy, policies.shape))
    return Comparators(found.nu, np.einsum("cxa,jxa->cj", found.mu, world.tables), (found.nu * apart).sum(-1))


def revealed(stage: Stage, checks: Sequence[Check]) -> Measure:
    scene, J, C = stage.scene, len(stage.world.tables), len(stage.against.entropy)
    X, A, d = scene.mdp.states, scene.mdp.actions, scene.dimension

    def init(keys: Array) -> Revealed:
        n = len(keys)

        def zeros(*shape: int) -> Array:
            return np.zeros((n, *shape))

        Q, policy, mu, PV, PV_hat, CB, width = (zeros(X, A) for _ in range(7))
        eye = lam(scene) * np.tile(np.eye(d), (n, 1, 1))
        whole = np.zeros(n, np.int64)
        return Revealed(
            whole, np.ones(n, bool), whole.copy(),
            Epoch(zeros(X), Q, policy, zeros(X), mu, PV, PV_hat, CB, width, zeros()),
            zeros(J), whole.copy(), zeros(), zeros(C), Sums(zeros(J), *(zeros() for _ in range(4))),
            Played(zeros(C), zeros(C), zeros(C), zeros(C), zeros(), zeros()),
            Books(moves=zeros(X, A, X), covariance=eye, response=zeros(d)),
            Worst(np.full((n, len(checks)), np.inf), *(zeros(len(checks)) for _ in range(3))),
        )  # fmt: skip

    def record(m: Revealed, state: Any, path: Path, opening: bool) -> Revealed:
        if opening:
            m = _open(stage, checks, m, state, path.length > 0)
        return _follow(stage, m, path)

    return Measure("revealed", init, record, lambda m: {})


def _open(stage: Stage, checks: Sequence[Check], m: Revealed, state: Any, active: Array) -> Revealed:
    """Epoch k as it opens, and epoch k - 1 with what it led to."""
    scene, k = stage.scene, int(m.seen.max()) + 1
    phi = scene.parts.estimator.embed(state.V)
    policy, improper = proper(state.policy)
    mu = occupancy(scene.mdp, policy)
    epoch = Epoch(
        state.V.copy(), state.Q.copy(), policy, mu.nu, mu.mu, expect(scene.mdp, state.V),
        scene.parts.estimator.expect(state.data, phi), scene.parts.bonus(state.data, phi),
        scene.parts.estimator.width(state.data, phi), improper,
    )  # fmt: skip
    if k > 1:
        m = _close(stage, checks, m, state.Q.copy(), epoch, state.data, active, k)
    off = scene.mdp.discount * np.abs(epoch.PV - epoch.PV_hat)
    invalid = active & ~(off <= epoch.CB + scene.atol).all((1, 2))
    m = m._replace(
        invalid_at=np.where(m.valid & invalid, k, m.invalid_at),
        valid=m.valid & ~invalid,
        first=(epoch.nu * epoch.V).sum(-1) if k == 1 else m.first,
    )
    seen = Seen(stage, k, m.epoch, stage.revealed(m.last), epoch, m.sums, m.first, m.books, state.data)
    for phase in ("data", "epoch"):
        _checked(checks, phase, m, seen, active)
    return m._replace(
        epoch=merged(active, epoch, m.epoch),
        rho=merged(active, np.einsum("nxa,jxa->nj", epoch.mu, stage.world.tables, optimize=False), m.rho),
        seen=m.seen + active,
    )


def _close(
    stage: Stage, checks: Sequence[Check], m: Revealed, Q: Array, following: Epoch, data: Any, active: Array, k: int
) -> Revealed:
    """Epoch k - 1 with r_{k-1}, Q_k and epoch k."""
    scene, s, rows = stage.scene, m.sums, np.arange(len(m.seen))
    e = m.epoch._replace(Q=Q)
    f_last = stage.against.rho[:, m.last].T - m.rho[rows, m.last][:, None]  # <mu* - mu^{pi_k}, r_k>   (n, C)
    m.played.drift[:] -= np.where(active[:, None], scene.H * f_last, 0)
    tables = s.tables.copy()
    tables[rows, m.last] += 1
    added = Sums(
        tables,
        s.earned + m.rho[rows, m.last],
        s.hoped + (1 - scene.mdp.discount) * e.V @ scene.mdp.initial,
        s.capped + (e.mu * np.minimum(2 * e.CB, scene.H)).sum((1, 2)),
        s.moves + optimisation(scene, e, following),
    )
    ends = following.V @ stage.against.nu.T - (following.nu * following.V).sum(-1)[:, None]
    sound = active & m.valid
    m = m._replace(
        sums=merged(sound, added, s), ends=merged(sound, ends, m.ends), epoch=merged(active, e, m.epoch)
    )  # fmt: skip
    seen = Seen(stage, k, m.epoch, stage.revealed(m.last), following, m.sums, m.first, m.books, data)
    for phase in ("pair", "prefix"):
        _checked(checks, phase, m, seen, active)
    return m


def _checked(checks: Sequence[Check], phase: str, m: Revealed, seen: Seen, active: Array) -> None:
    for index, check in enumerate(checks):
        if check.phase == phase:
            note(m.worst, index, active & m.valid if check.conditional else active, seen.k, *check.measure(seen))


def _follow(stage: Stage, m: Revealed, path: Path) -> Revealed:
    """A stretch of the current epoch."""
    scene, (J, T) = stage.scene, (len(stage.world.tables), stage.scene.steps)
    n, e = len(path.length), m.epoch
    rows, cols = np.nonzero(np.arange(path.state.shape[1]) < path.length[:, None])
    x, a, y = path.state[rows, cols], path.action[rows, cols], path.successor[rows, cols]
    t = path.time[rows] + cols
    number = ((t if stage.world.clock == "plays" else m.seen[rows]) - 1) // stage.world.block % J
    plays, early = np.zeros((n, J)), np.zeros((n, J))  # under each table; and of these the ones with t <= T
    np.add.at(plays, (rows, number), 1.0)
    np.add.at(early, (rows, number), (t <= T).astype(float))
    f = stage.against.rho - m.rho[:, None]  # (n, C, J)
    total, p = np.einsum("ncj,nj->nc", f, plays), m.played
    p.regret[:] += np.einsum("ncj,nj->nc", f, early)
    p.drift[:] += total
    p.variance[:] += scene.mdp.discount * scene.H * np.einsum("ncj,nj->nc", f**2, plays)
    p.lead[:] += np.where(m.valid[:, None], total, 0)
    bonus = np.minimum(2 * e.CB[rows, x, a], scene.H)
    np.add.at(p.bonus, rows, bonus)
    np.add.at(p.paid, rows, np.where(m.valid[rows], bonus, 0))
    learned = t <= T  # padding is not learned from
    _learn(scene, m.books, e.V, rows[learned], x[learned], a[learned], y[learned])
    last = m.last.copy()
    last[rows] = number  # rows are in order of time: the last play's stays
    return m._replace(last=last)


def _learn(scene: Scene, books: Books, V: Array, rows: Array, x: Array, a: Array, y: Array) -> None:
    np.add.at(books.moves, (rows, x, a, y), 1.0)
    if scene.dimension:
        middle, sigma = standardised(scene, V)
        U = (V - middle[:, None]) / sigma[:, None]
        phi = scene.phi(U)[rows, x, a]
        np.add.at(books.covariance, rows, phi[:, :, None] * phi[:, None, :])
        np.add.at(books.response, rows, phi * U[rows, y][:, None])


def finish(stage: Stage, checks: Sequence[Check], m: Revealed, state: Any) -> Revealed:
    """After the run: the step that the last epoch, whose table is that of play T+, leads to. No learner makes it."""
    scene, everyone = stage.scene, np.ones(len(m.seen), bool)
    e, r = m.epoch, stage.revealed(m.last)
    Q = np.clip(r + e.CB + scene.mdp.discount * e.PV_hat, 0, scene.H)
    V, _, policy = mirror_step(state.log_policy, state.policy, Q, scene.parts.eta)
    policy, improper = proper(policy)
    mu, nothing = occupancy(scene.mdp, policy), np.zeros_like(Q)
    last = Epoch(V, nothing, policy, mu.nu, mu.mu, nothing, nothing, nothing, nothing, improper)
    seen = Seen(stage, 0, e, r, last, m.sums, m.first, m.books, state.data)
    _checked(checks, "data", m, seen, everyone)
    return _close(stage, checks, m, Q, last, state.data, everyone, 0)
