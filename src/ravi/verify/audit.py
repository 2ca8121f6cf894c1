"""The observer of a run: every backup, the policies before and after it, what was played, and sums.

An observer goes through the backups of each epoch beside the learner: RAVI-UCB's one as it stands in its state, the M
of a variant from where its plan of the epoch before ended. It recomputes what the analysis speaks of: the true P V_i
beside the estimate, the bonus, the exact occupancies of pi_i. It keeps books of its own on what was played, so that
data and laws are checked too, not taken from the learner. It hands all that to claims and keeps, of each claim, only
the worst case so far, and of the run only sums: memory in proportion to claims and to one epoch, not to epochs.

Where T is not known, each phase is a sequence of its own, from V_0 and pi_0, with a scene of its own: sums, and whether
bonuses were valid so far, begin anew, and the worst case of each claim is kept for each. Books go on: data are kept.
Which phase an epoch is in is found from T_k alone. Where a phase ends, so does its sequence: a mirror step leads from
its last backup to a policy that is never played. Where Q is fresh, that backup is made with the data with which its
last epoch began. That is what the proof sums: at the data of the next phase there would be more steps than beta_i
allows for.

Where rewards change, Q_{k+1} is made when epoch k + 1 is planned, from r_k, the table of epoch k's last step (or of
epoch k): backup k is complete only then.

What the claims of one kind of learner need besides, a keeper keeps beside the books; plans on sets of kernels, which
are no backups, are seen by theirs (`sets`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ravi.core import Array, Measure, Path
from ravi.planning.bellman import expect
from ravi.planning.mirror import mirror_step
from ravi.planning.occupancies import divergence
from ravi.random import PICK, uniform
from ravi.runtime import tree
from ravi.theory import doubling
from ravi.verify import walks
from ravi.verify.books import Audit, Backup, Iterate, Keeper, Plan, Planned, Seen, Totals, Worst, begin, ends, iterate
from ravi.verify.claim import Claim
from ravi.verify.scene import Scene

RESTARTED = ("valid", "at", "backup", "log_policy", "totals", "total_V", "total_Q")  # with every phase


def audit(scene: Scene, claims: Sequence[Claim], keeper: Keeper | None = None) -> Measure:
    """The observer; `claims` are those that are not about a run as a whole."""

    def init(keys: Array) -> Audit:
        return begin(scene, len(keys), len(claims))._replace(own=keeper.init(keys) if keeper else ())

    def record(m: Audit, state: Any, path: Path, opening: bool) -> Audit:
        if opening:
            walks.close(scene, m, path.length > 0)
            if keeper and keeper.look:
                own = keeper.look(m, state, path)
                m = _of_rows(m, path.length > 0, lambda m, rows: m._replace(own=_rows(own, rows)))
            m = _open(scene, claims, m, state, path)
        walks.follow(scene, m, path)
        if keeper:
            columns = np.arange(path.state.shape[1])
            inside = columns < path.length[:, None]
            keeper.follow(m, path, inside & (path.time[:, None] + columns <= scene.steps))
        return m

    return Measure("audit", init, record, lambda m: {})


# ---- an epoch opens


def _open(scene: Scene, claims: Sequence[Claim], m: Audit, state: Any, path: Path) -> Audit:
    active, k = path.length > 0, int(m.seen.max()) + 1
    due = np.zeros(len(active), np.int64)
    if scene.of:
        due = np.array([doubling.phases(int(t), scene.first) - 1 for t in path.time])
    anew = active & (due != m.phase)
    over = anew & (m.phase >= 0)
    for i in np.unique(m.phase[over]):
        m = _of_rows(m, over & (m.phase == i), lambda m, rows: _ended(scene, claims, m, _rows(state, rows), k - 1))
    for i in np.unique(due[active]):
        for begins in (False, True):
            rows = active & (due == i) & (anew == begins)

            def opened(m: Audit, rows: Array, i: int = int(i), begins: bool = begins) -> Audit:
                if begins:
                    start = begin(scene, len(m.seen), 0)
                    m = m._replace(phase=np.full_like(m.phase, i), **{name: getattr(start, name) for name in RESTARTED})
                return _opened(scene, claims, m, _rows(state, rows), path.time[rows], k, begins)

            m = _of_rows(m, rows, opened)
    return m


def _rows(state: Any, rows: Array) -> Any:
    return state if rows.all() else tree.take(state, rows)


def _of_rows(m: Audit, rows: Array, change: Callable[[Audit, Array], Audit]) -> Audit:
    """The audit with `change` applied to these seeds."""
    if rows.all() or not rows.any():
        return change(m, rows) if rows.any() else m
    _put(m, change(tree.take(m, rows), rows), rows)
    return m


def _put(to: Any, what: Any, rows: Array) -> None:
    """to[rows] = what, in every array."""
    if not isinstance(to, tuple):
        to[rows] = what
        return
    for own, part in zip(to, what, strict=True):
        _put(own, part, rows)


def _opened(whole: Scene, claims: Sequence[Claim], m: Audit, state: Any, time: Array, k: int, begins: bool) -> Audit:
    """The plan of epoch k, backup by backup, and what is played."""
    scene, D = _in_phase(whole, m), state.data
    if scene.sets is not None:
        return _optimistic(scene, claims, m, state, k)
    made, backups = _planned(scene, state), scene.parts.backups
    iterates, planned = [], made
    # One backup an epoch is as the state has it; several are made again, from where the observer stands.
    for j, after in enumerate([state] if backups is None else backups(_standing(m, state))):
        planned = _planned(scene, after)
        m = _step(scene, claims, m, planned, D, k, first=begins and j == 0)
        iterates.append(m.at)
        if j == 0 and backups is not None:  # the policies from here on are of this epoch
            m = m._replace(older=tree.copy(m.books))
    M, rows = scene.parts.inner, np.arange(len(m.seen))
    chosen = np.full(len(rows), M - 1)  # m - 1
    if scene.parts.pick != "last" and M > 1:
        chosen = np.array([int(M * uniform(one, t, PICK)) for one, t in zip(state.key, time, strict=True)])
    V, policy = np.array([e.V for e in iterates]), np.array([e.policy for e in iterates])  # (M, n, ...)
    gaps = np.array([walks.gap(scene, e) for e in iterates])
    before, m = m.played, _playing(scene, m, state)
    plan = Plan(state, made, planned, V[chosen, rows], policy[chosen, rows])
    seen = Seen(scene, k, before, m.there, m.played, m, D, plan, begins and k > 1)
    _check(claims, "data", seen)
    _check(claims, "plan", seen)
    for phase in ("epoch", "pair") if k > 1 else ("epoch",):
        _check(claims, phase, seen._replace(scene=whole))
    off = np.abs(policy - state.policy).max((2, 3)) + np.abs(V - state.V).max(2)  # which of the M is it that is played?
    nearest = np.where(off[chosen, rows] <= off.min(0), chosen, off.argmin(0))
    m.drawn.times[rows, nearest] += 1
    m.drawn.lead[:] += gaps[nearest, rows] - gaps.mean(0)
    m.drawn.variance[:] += gaps.var(0)
    return m._replace(seen=m.seen + 1, length=0 * m.length, data=tree.copy(D) if whole.of else ())


def _optimistic(scene: Scene, claims: Sequence[Claim], m: Audit, state: Any, k: int) -> Audit:
    """A plan on a set of kernels is no backup: what there is to see of it, its keeper has seen."""
    plan, before = m.own.plan, m.played
    m = _valid(m, plan.valid, k)._replace(played=iterate(scene, plan.own, state.policy))
    _check(claims, "epoch", Seen(scene, k, before, m.there, m.played, m, state.data))
    return m._replace(seen=m.seen + 1, length=0 * m.length)


def _valid(m: Audit, valid: Array, k: int) -> Audit:
    """The audit with the seeds marked whose plan of epoch k is invalid."""
    first = m.valid & ~valid & (m.invalid_at == 0)
    return m._replace(invalid_at=np.where(first, k or m.seen + 1, m.invalid_at), valid=m.valid & valid)


def _in_phase(scene: Scene, m: Audit) -> Scene:
    return scene.of(int(m.phase[0])) if scene.of else scene


def _planned(scene: Scene, state: Any) -> Planned:
    if scene.parts.backups is None:
        return Planned(state.V, state.Q, state.log_policy, state.policy)
    return Planned(state.V_last, state.Q, state.log_policy, state.last_policy)


def _standing(m: Audit, state: Any) -> Any:
    """The learner's state with the observer's own V, Q and policy."""
    return state._replace(V_last=m.at.V, last_policy=m.at.policy, Q=m.backup.Q, log_policy=m.log_policy)


def _playing(scene: Scene, m: Audit, state: Any) -> Audit:
    """The audit with V and pi of this epoch and the backup of that V; reused where both were computed already."""
    if not scene.parts.fresh and (m.at.V == state.V).all() and (m.at.policy == state.policy).all():
        return m._replace(played=tree.copy(m.at), there=tree.copy(m.backup))
    there = _backup(scene, state.V, state.Q, state.data)
    return m._replace(played=iterate(scene, state.V, state.policy), there=there)


def _backup(scene: Scene, V: Array, Q: Array, D: Any) -> Backup:
    estimator, r = scene.parts.estimator, np.repeat(scene.mdp.rewards[None], len(V), 0)
    phi = estimator.embed(V)
    made = expect(scene.mdp, V), estimator.expect(D, phi), scene.parts.bonus(D, phi), estimator.width(D, phi)
    parts = np.empty((len(made), *Q.shape))
    for own, part in zip(parts, made, strict=True):
        own[...] = part
    return Backup(Q.copy(), r, *parts)


def _step(scene: Scene, claims: Sequence[Claim], m: Audit, s: Planned, D: Any, k: int, *, first: bool) -> Audit:
    """One backup and one mirror step, in the learner's order."""
    fresh = scene.parts.fresh
    if fresh:
        m = _backed_up(scene, claims, m, s.Q, D, k)
    elif scene.world is not None and not first:
        m = m._replace(backup=m.backup._replace(Q=s.Q.copy(), r=scene.world.tables[m.turned.last]))
    after = iterate(scene, s.V, s.policy)
    # A Q that is not fresh begins with Q_1 = E V_0, which no backup made: its mirror step leads back to V_0, pi_0.
    if first and not fresh:
        own, end = ends(scene, after)
        m = m._replace(
            totals=m.totals._replace(first=own, end=end), total_V=after.V.copy(), total_Q=after.V[..., None] + 0 * s.Q
        )
        _check(claims, "begin", Seen(scene, k, m.at, m.backup, after, m, D))
    else:
        m = _mirrored(scene, claims, m, after, D, k)
    m = m._replace(at=after, log_policy=s.log_policy.copy())
    if scene.world is not None:
        m.turned.rho[:] = np.einsum("nxa,jxa->nj", after.mu, scene.world.tables)
    return m if fresh else _backed_up(scene, claims, m, s.Q, D, k)


def _backed_up(scene: Scene, claims: Sequence[Claim], m: Audit, Q: Array, D: Any, k: int) -> Audit:
    """Backup i as it is made."""
    made = _backup(scene, m.at.V, Q, D)
    off = scene.mdp.discount * np.abs(made.PV - made.PV_hat)
    m = _valid(m, (off <= made.CB + scene.atol).all((1, 2)), k)._replace(backup=made)
    _check(claims, "backup", Seen(scene, k, m.at, m.backup, m.at, m, D))
    return m


def _mirrored(scene: Scene, claims: Sequence[Claim], m: Audit, after: Iterate, D: Any, k: int) -> Audit:
    """Backup i with what its mirror step made."""
    mdp, e, b, s, last = scene.mdp, m.at, m.backup, m.totals, m.turned.last
    rows = np.arange(len(m.seen))
    if scene.world is not None:
        f = scene.against.rho[:, last].T - m.turned.rho[rows, last][:, None]  # <mu* - mu^{pi_k}, r_k>   (n, C)
        m.turned.drift[:] -= scene.H * f
    tables = s.tables.copy()
    tables[rows, last] += 1
    added = Totals(
        tables,
        s.earned + (e.mu * b.r).sum((1, 2)),
        s.hoped + (1 - mdp.discount) * e.V @ mdp.initial,
        s.bonuses + (e.mu * b.CB).sum((1, 2)),
        s.capped + (e.mu * np.minimum(2 * b.CB, scene.H)).sum((1, 2)),
        s.moves + optimisation(scene, e, b, after),
        s.first,
        ends(scene, after)[1],
    )
    for new, old in zip(added, s, strict=True) if not m.valid.all() else ():
        new[~m.valid] = old[~m.valid]
    m = m._replace(totals=added, total_V=m.total_V + after.V, total_Q=m.total_Q + b.Q)
    for phase in ("step", "prefix"):
        _check(claims, phase, Seen(scene, k, e, b, after, m, D))
    return m


def optimisation(scene: Scene, at: Iterate, backup: Backup, after: Iterate) -> Array:
    """<mu^{pi_{i+1}} - mu^{pi_i}, Q_{i+1}> - H(pi_{i+1} || pi_i) / eta   (n,)."""
    entropy = (after.nu * divergence(after.policy, at.policy)).sum(-1)
    return ((after.mu - at.mu) * backup.Q).sum((1, 2)) - entropy / scene.parts.eta


def _check(claims: Sequence[Claim], phase: str, seen: Seen) -> None:
    """Measure the claims of this phase, and keep their worst cases in place."""
    if all(claim.phase != phase for claim in claims):
        return
    m = seen.audit
    worst = Worst(*(part[:, m.phase[0]] for part in m.worst))
    for index, claim in enumerate(claims):
        if claim.phase == phase:
            rows = m.valid if claim.conditional else np.ones(len(m.valid), bool)
            note(worst, index, rows, seen.k, *claim.measure(seen))


def note(worst: Worst, index: int, rows: Array, k: int, measured: Array, bound: Array) -> None:
    """Keep the worst case of a claim, of these rows; in place."""
    margin = bound - measured
    rows = rows & ~(margin >= worst.margin[:, index])  # also where it is nan: a nan is a violation,
    rows &= ~np.isnan(worst.margin[:, index])  # and stays one
    if not rows.any():
        return
    found: tuple[Any, ...] = (margin, measured, bound, k)
    for part, value in zip(worst, found, strict=True):
        np.copyto(part[:, index], value, where=rows)


# ---- a phase ends, or the run


def finish(scene: Scene, claims: Sequence[Claim], m: Audit, state: Any) -> Audit:
    """After the run: what the learner ends with, and the end of every seed's last phase."""
    walks.close(scene, m, np.ones(len(m.seen), bool))
    for i in np.unique(m.phase):

        def last(m: Audit, rows: Array) -> Audit:
            here = _rows(state, rows)
            _check(claims, "data", Seen(scene, 0, m.played, m.there, m.played, m, here.data))
            return _ended(scene, claims, m, here, 0) if scene.sets is None else m

        m = _of_rows(m, m.phase == i, last)
    return m


def _ended(whole: Scene, claims: Sequence[Claim], m: Audit, state: Any, k: int) -> Audit:
    """The sequence ends after epoch k: a mirror step more, for a fresh Q after a backup. Sums are put aside."""
    scene, books = _in_phase(whole, m), m.books
    if whole.of:
        m, state = m._replace(books=m.older), _standing(m, state)._replace(data=m.data)
    if scene.parts.backups is not None:
        following = _planned(scene, next(iter(scene.parts.backups(state))))
    else:
        if scene.world is not None:  # the table of step T+; no learner makes this step
            b, r = m.backup, scene.world.tables[m.turned.last]
            Q = np.clip(r + b.CB + scene.mdp.discount * b.PV_hat, 0, scene.H)
            m = m._replace(backup=b._replace(r=r, Q=Q))
        V, log_policy, policy = mirror_step(state.log_policy, state.policy, m.backup.Q, scene.parts.eta)
        following = Planned(V, m.backup.Q, log_policy, policy)
    if scene.parts.fresh:
        m = _backed_up(scene, claims, m, following.Q, state.data, k)
    after = iterate(scene, following.V, following.policy)
    m = _mirrored(scene, claims, m, after, state.data, k)
    if not k:
        _check(claims, "pair", Seen(whole, k, m.played, m.backup, after, m, state.data))
    i = m.phase[0]
    m.ended[:, i] = True
    for kept, found in zip(m.past, m.totals, strict=True):
        kept[:, i] = found
    return m._replace(books=books)
