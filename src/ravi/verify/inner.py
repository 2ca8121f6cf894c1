"""What do claims about several backups an epoch need to see? Every backup, the policies before and after it, and sums.

Let V_0, pi_0 be where a learner begins, and V_i, pi_i what its i-th mirror step makes; backup i leads from V_i to
Q_{i+1}, which makes V_{i+1} and pi_{i+1}. An observer goes through the backups of each epoch beside the learner, from
where its plan of the epoch before ended: it recomputes P V_i, occupancies and gaps, keeps books of its own on what was
played, and hands all that to claims, of which it keeps the worst case. At the end it sees whether the learner's own
plan came to the same, and played the policy that was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi import tree
from ravi.core import Array, Measure, Path
from ravi.planning.bellman import expect
from ravi.planning.entropy import relative_entropy
from ravi.planning.occupancies import occupancy
from ravi.random import PICK, uniform
from ravi.verify.audit import merged, note, proper
from ravi.verify.books import Scene, Worst
from ravi.verify.constants import lam


class Iterate(NamedTuple):
    V: Array  # V_i               (n, X)
    policy: Array  # pi_i         (n, X, A)
    nu: Array  # of pi_i          (n, X)
    mu: Array  # of pi_i          (n, X, A)
    improper: Array  # how far the learner's pi_i is from a policy   (n,)


class Backup(NamedTuple):
    """From V_i to Q_{i+1}   (n, X, A)."""

    Q: Array  # Q_{i+1}
    PV: Array  # P V_i, the truth
    PV_hat: Array  # its estimate
    CB: Array


class Books(NamedTuple):
    """What was played before an epoch, by the observer."""

    moves: Array  # (x_t, a_t, y_t)                            (n, X, A, X)
    covariance: Array  # Lambda, with the V that was played    (n, d, d)
    response: Array  # b, likewise                             (n, d)


class Totals(NamedTuple):
    """Over backups 0 to i, all before the first invalid one   (n,)."""

    backups: Array  # how many
    gaps: Array  # sum gap(pi_i)
    above: Array  # sum Delta*_i = rho* - (1 - gamma) <nu_0, V_i>
    below: Array  # sum Delta_i = (1 - gamma) <nu_0, V_i> - rho(pi_i)
    capped: Array  # sum <mu^{pi_i}, min(2 CB_i, H)>
    moves: Array  # sum <mu^{pi_{i+1}} - mu^{pi_i}, Q_{i+1}> - H(pi_{i+1} || pi_i) / eta
    end: Array  # <mu* - mu^{pi_{i+1}}, E V_{i+1}>, no sum


class Drawn(NamedTuple):
    """Of the policies that were played."""

    times: Array  # how often each of the M    (n, M)
    lead: Array  # sum of gap(pi_m) less the mean gap of the M   (n,)
    variance: Array  # of that, given the M    (n,)
    bonus: Array  # sum_{t <= T+} min(2 CB(x_t, a_t), H), CB of V_m and of the data when the epoch began   (n,)


class Inner(NamedTuple):
    seen: Array  # epochs         (n,)
    made: Array  # mirror steps   (n,)
    valid: Array  # no invalid bonus yet   (n,)
    invalid_at: Array  # the epoch of the first, 0 for none   (n,)
    at: Iterate
    backup: Backup  # the last that was made
    Q: Array  # as the learner holds it          (n, X, A)
    log_policy: Array  # likewise                (n, X, A)
    totals: Totals
    books: Books
    older: Books  # when the epoch before began
    V: Array  # that was played                  (n, X)
    capped: Array  # min(2 CB, H) of this epoch  (n, X, A)
    drawn: Drawn
    worst: Worst


class Seen(NamedTuple):
    """What a check is given: a backup as it is made, or with what its mirror step made, or a whole plan."""

    scene: Scene
    k: int
    first: bool  # whether i = 0
    at: Iterate  # V_i, pi_i
    backup: Backup
    after: Iterate  # V_{i+1}, pi_{i+1}; the same as `at` where they are not made yet
    totals: Totals
    books: Books
    older: Books  # of the epoch that pi_i belongs to
    data: Any  # D
    state: Any  # after the learner's own plan
    planned: Any  # after the observer's
    V: Array  # V_m and pi_m, by the observer
    policy: Array
    anew: bool = False  # whether the sequence began with this epoch, and not with the run


class Check(NamedTuple):
    phase: str  # "begin": V_1 = V_0; "data", "plan": each epoch; "backup": as it is made; "step", "prefix": then
    conditional: bool  # on valid bonuses so far
    measure: Callable[[Seen], tuple[Array, Array]]


def inner(scene: Scene, checks: Sequence[Check]) -> Measure:
    X, A, d = scene.mdp.states, scene.mdp.actions, scene.dimension
    parts, M = scene.parts, scene.parts.inner

    def init(keys: Array) -> Inner:
        n, C = len(keys), len(checks)

        def zeros(*shape: int) -> Array:
            return np.zeros((n, *shape))

        V, policy = parts.initial_value + zeros(X), parts.initial_policy + zeros(X, A)
        start = _iterate(scene, V, policy)
        books = Books(zeros(X, A, X), lam(scene) * np.tile(np.eye(d), (n, 1, 1)), zeros(d))
        drawn = Drawn(zeros(M), *(zeros() for _ in range(3)))
        worst = Worst(np.full((n, C), np.inf), zeros(C), zeros(C), zeros(C))
        whole = np.zeros(n, np.int64)
        return Inner(
            whole, whole.copy(), np.ones(n, bool), whole.copy(), start, Backup(*(zeros(X, A) for _ in range(4))),
            np.repeat(V[..., None], A, -1), np.log(policy), Totals(*(zeros() for _ in Totals._fields)), books,
            tree.copy(books), V.copy(), zeros(X, A), drawn, worst,
        )  # fmt: skip

    def record(m: Inner, state: Any, path: Path, opening: bool) -> Inner:
        if opening:
            m = open_epoch(scene, checks, M, m, state, path)
        follow(scene, m, path)
        return m

    return Measure("inner", init, record, lambda m: {})


def _iterate(scene: Scene, V: Array, policy: Array) -> Iterate:
    made, improper = proper(policy)
    found = occupancy(scene.mdp, made)
    return Iterate(V.copy(), made, found.nu, found.mu, improper)


def gap(scene: Scene, at: Iterate) -> Array:
    return scene.solution.optimum - (at.mu * scene.mdp.rewards).sum((1, 2))


def open_epoch(
    scene: Scene, checks: Sequence[Check], M: int, m: Inner, state: Any, path: Path, *, anew: bool = False
) -> Inner:
    """The plan of epoch k, backup by backup."""
    assert scene.parts.backups is not None
    active, k = path.length > 0, int(m.seen.max()) + 1
    chosen = _chosen(scene, M, state.key, path.time)
    before = state._replace(V_last=m.at.V, last_policy=m.at.policy, Q=m.Q, log_policy=m.log_policy)
    values: list[Array] = []
    policies: list[Array] = []
    gaps: list[Array] = []
    planned = before
    for j, planned in enumerate(scene.parts.backups(before)):
        m = _step(scene, checks, m, planned, state.data, active, k)
        for kept, what in ((values, m.at.V), (policies, m.at.policy), (gaps, gap(scene, m.at))):
            kept.append(what)
        if j == 0:  # the policies from here on are of this epoch
            m = m._replace(older=merged(active, tree.copy(m.books), m.older))
    V, policy, found = np.array(values), np.array(policies), np.array(gaps)  # (M, n, ...)
    rows = np.arange(len(chosen))
    seen = _seen(scene, m, k, state.data)._replace(
        state=state, planned=planned, V=V[chosen, rows], policy=policy[chosen, rows], anew=anew
    )
    _checked(checks, "data", m, seen, active, k)
    _checked(checks, "plan", m, seen, active, k)
    off = np.abs(policy - state.policy).max((2, 3)) + np.abs(V - state.V).max(2)  # which of the M is it that is played?
    nearest = np.where(off[chosen, rows] <= off.min(0), chosen, off.argmin(0))
    np.add.at(m.drawn.times, (rows[active], nearest[active]), 1.0)
    lead = found[nearest, rows] - found.mean(0)
    phi = scene.parts.estimator.embed(state.V)
    m.drawn.lead[:] += np.where(active, lead, 0)
    m.drawn.variance[:] += np.where(active, found.var(0), 0)
    return m._replace(
        seen=m.seen + active,
        V=np.where(active[:, None], state.V, m.V),
        capped=merged(active, np.minimum(2 * scene.parts.bonus(state.data, phi), scene.H), m.capped),
    )


def _chosen(scene: Scene, M: int, key: Array, time: Array) -> Array:
    """m - 1 of every seed."""
    if scene.parts.pick == "last":
        return np.full(len(key), M - 1)
    return np.array([int(M * uniform(one, t, PICK)) for one, t in zip(key, time, strict=True)])


def _step(scene: Scene, checks: Sequence[Check], m: Inner, s: Any, D: Any, active: Array, k: int) -> Inner:
    """One backup and one mirror step, in the learner's order."""
    fresh, first = scene.parts.fresh, int(m.made.max()) == 0
    if fresh:
        m = _backed_up(scene, checks, m, m.at, s.Q, D, active, k)
    after = _iterate(scene, s.V_last, s.last_policy)
    # A Q that is not fresh begins with Q_1 = E V_0, which no backup made: its mirror step leads back to V_0, pi_0.
    if fresh or not first:
        m = _mirrored(scene, checks, m, after, active, k)
    else:
        seen = _seen(scene, m, k, D)._replace(after=after, first=True)
        _checked(checks, "begin", m, seen, active, k)
    m = m._replace(
        made=m.made + active, at=merged(active, after, m.at), log_policy=merged(active, s.log_policy, m.log_policy),
        Q=merged(active, s.Q, m.Q),
    )  # fmt: skip
    return m if fresh else _backed_up(scene, checks, m, m.at, s.Q, D, active, k)


def _backed_up(
    scene: Scene, checks: Sequence[Check], m: Inner, at: Iterate, Q: Array, D: Any, active: Array, k: int
) -> Inner:
    """Backup i as it is made."""
    phi = scene.parts.estimator.embed(at.V)
    made = Backup(Q.copy(), expect(scene.mdp, at.V), scene.parts.estimator.expect(D, phi), scene.parts.bonus(D, phi))
    off = scene.mdp.discount * np.abs(made.PV - made.PV_hat)
    invalid = active & ~(off <= made.CB + scene.atol).all((1, 2))
    m = m._replace(
        backup=merged(active, made, m.backup),
        invalid_at=np.where(m.valid & invalid, k or m.seen + 1, m.invalid_at),
        valid=m.valid & ~invalid,
    )
    _checked(checks, "backup", m, _seen(scene, m, k, D), active, k)
    return m


def _mirrored(scene: Scene, checks: Sequence[Check], m: Inner, after: Iterate, active: Array, k: int) -> Inner:
    """Backup i with what its mirror step made."""
    mdp, e, b, s = scene.mdp, m.at, m.backup, m.totals
    returns, optimistic = (e.mu * mdp.rewards).sum((1, 2)), (1 - mdp.discount) * e.V @ mdp.initial
    entropy = (after.nu * relative_entropy(after.policy, e.policy)).sum(-1)
    added = Totals(
        s.backups + 1,
        s.gaps + scene.solution.optimum - returns,
        s.above + scene.solution.optimum - optimistic,
        s.below + optimistic - returns,
        s.capped + (e.mu * np.minimum(2 * b.CB, scene.H)).sum((1, 2)),
        s.moves + ((after.mu - e.mu) * b.Q).sum((1, 2)) - entropy / scene.parts.eta,
        after.V @ scene.mu_star.sum(-1) - (after.nu * after.V).sum(-1),
    )
    m = m._replace(totals=merged(active & m.valid, added, s))
    seen = _seen(scene, m, k, None)._replace(after=after)
    for phase in ("step", "prefix"):
        _checked(checks, phase, m, seen, active, k)
    return m


def _seen(scene: Scene, m: Inner, k: int, D: Any) -> Seen:
    first = int(m.made.max()) == 0
    return Seen(scene, k, first, m.at, m.backup, m.at, m.totals, m.books, m.older, D, None, None, m.V, m.at.policy)


def _checked(checks: Sequence[Check], phase: str, m: Inner, seen: Seen, active: Array, k: int) -> None:
    for index, check in enumerate(checks):
        if check.phase == phase:
            note(m.worst, index, active & m.valid if check.conditional else active, k, *check.measure(seen))


def follow(scene: Scene, m: Inner, path: Path) -> None:
    """A stretch of the current epoch, in place."""
    rows, cols = np.nonzero(np.arange(path.state.shape[1]) < path.length[:, None])
    x, a, y = path.state[rows, cols], path.action[rows, cols], path.successor[rows, cols]
    np.add.at(m.drawn.bonus, rows, m.capped[rows, x, a])
    learned = path.time[rows] + cols <= scene.steps  # padding is not learned from
    rows, x, a, y = rows[learned], x[learned], a[learned], y[learned]
    np.add.at(m.books.moves, (rows, x, a, y), 1.0)
    if scene.dimension:
        middle, sigma = standardised(scene, m.V)
        U = (m.V - middle[:, None]) / sigma[:, None]
        phi = scene.phi(U)[rows, x, a]
        np.add.at(m.books.covariance, rows, phi[:, :, None] * phi[:, None, :])
        np.add.at(m.books.response, rows, phi * U[rows, y][:, None])


def standardised(scene: Scene, V: Array) -> tuple[Array, Array]:
    """c and sigma   (n,), by the parts that the learner says it has."""
    on = scene.stated.on or ()
    low, high = V.min(-1), V.max(-1)
    middle = (low + high) / 2 if "centre" in on else np.zeros(len(V))
    return middle, np.maximum((high - low) / 2, 1e-6) if "span" in on and scene.dimension else np.ones(len(V))


def finish(scene: Scene, checks: Sequence[Check], m: Inner, state: Any) -> Inner:
    """After the run: the mirror step that the last backup leads to, and for a fresh Q that backup too."""
    everyone = np.ones(len(m.seen), bool)
    look_at_data(scene, checks, m, state)
    return close(scene, checks, m, state, everyone, 0)


def look_at_data(scene: Scene, checks: Sequence[Check], m: Inner, state: Any) -> None:
    """What the learner ends with, against the books."""
    _checked(checks, "data", m, _seen(scene, m, 0, state.data), np.ones(len(m.seen), bool), 0)


def close(scene: Scene, checks: Sequence[Check], m: Inner, state: Any, active: Array, k: int) -> Inner:
    """The end of a sequence: a mirror step more, for a fresh Q after a backup with the data of `state`."""
    assert scene.parts.backups is not None
    following = next(iter(scene.parts.backups(state)))
    if scene.parts.fresh:
        m = _backed_up(scene, checks, m, m.at, following.Q, state.data, active, k)
    return _mirrored(scene, checks, m, _iterate(scene, following.V_last, following.last_policy), active, k)
