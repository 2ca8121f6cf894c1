"""What do the paper's claims need to see of a run? Every epoch as it opens, its neighbour, and sums over both.

An audit recomputes, for each epoch and all seeds at once, what the analysis speaks of: the true P V_k beside the
estimate, the bonus, the exact occupancies of pi_k. It keeps books of its own on what was played (visits and moves,
Lambda and b, what the walk drew), so that data and laws are checked too, not taken from the learner. It hands all that
to claims and keeps, of each claim, only the worst case so far, and of the run only sums: memory in proportion to claims
and to one epoch, not to epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ravi.core import MDP, Array, Learner, Measure, Path
from ravi.planning.bellman import expect
from ravi.planning.entropy import relative_entropy
from ravi.planning.mirror import mirror_step
from ravi.planning.occupancies import occupancy
from ravi.planning.solver import Solution
from ravi.verify.books import Audit, Check, Epoch, Matrices, Scene, Seen, Sums, Tables, Walked, Worst
from ravi.verify.constants import lam


def scene_of(learner: Learner, mdp: MDP, steps: int, solution: Solution) -> Scene:
    assert learner.parts is not None
    star = occupancy(mdp, solution.policy)
    apart = relative_entropy(solution.policy, learner.parts.initial_policy)
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    entropy = float(star.nu @ apart)
    return Scene(mdp, learner.parts, learner.told, steps, solution, star.mu, solution.policy, entropy, P)


def audit(scene: Scene, checks: Sequence[Check]) -> Measure:
    X, A, d = scene.mdp.states, scene.mdp.actions, scene.dimension

    def init(keys: Array) -> Audit:
        n = len(keys)

        def zeros(*shape: int) -> Array:
            return np.zeros((n, *shape))

        Q, policy, mu, PV, PV_hat, CB, width = (zeros(X, A) for _ in range(7))
        first = Epoch(zeros(X), Q, policy, zeros(X), mu, PV, PV_hat, CB, width, zeros())
        eye = lam(scene) * np.tile(np.eye(d), (n, 1, 1))
        books = zeros(X, A), zeros(X, A), zeros(X, A, X), zeros(X, A), zeros(X), zeros(X, A), zeros(X, A)
        rest = (zeros() for _ in range(len(Walked._fields) - len(books) - 1))
        walked = Walked(*books, np.zeros(n, bool), *rest)
        C = len(checks)
        worst = Worst(np.full((n, C), np.inf), zeros(C), zeros(C), zeros(C))
        return Audit(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.ones(n, bool), np.zeros(n, np.int64), first,
            Sums(*(zeros() for _ in Sums._fields)), walked,
            Matrices(zeros(d), eye, zeros(d), eye.copy(), eye.copy(), zeros(), zeros()),
            Tables(zeros(), zeros(X, A)), zeros(), zeros(X), zeros(), zeros(X), zeros(X, A), np.full(n, -1), worst,
        )  # fmt: skip

    def record(m: Audit, state: Any, path: Path, opening: bool) -> Audit:
        if opening:
            active = path.length > 0
            m = _close(scene, m, active)
            m = _open(scene, checks, m, state, path, active)
        _follow(scene, m, path)
        return m

    def results(m: Audit) -> dict[str, Array]:
        return {}

    return Measure("audit", init, record, results)


def merged(active: Array, new: Any, old: Any) -> Any:
    """Rows of seeds that go on from `new`, of seeds that have ended from `old`."""
    if isinstance(new, tuple):
        return type(new)(*(merged(active, a, b) for a, b in zip(new, old, strict=True)))
    return np.where(active.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def _open(scene: Scene, checks: Sequence[Check], m: Audit, state: Any, path: Path, active: Array) -> Audit:
    """Epoch k as it opens: recompute what it stands on, and put it before the claims."""
    mdp, parts, gamma = scene.mdp, scene.parts, scene.mdp.discount
    phi = parts.estimator.embed(state.V)
    width = parts.estimator.width(state.data, phi)
    policy, improper = proper(state.policy)
    mu = occupancy(mdp, policy)
    epoch = Epoch(
        state.V.copy(), state.Q.copy(), policy, mu.nu, mu.mu, expect(mdp, state.V),
        parts.estimator.expect(state.data, phi), parts.bonus(state.data, phi), width, improper,
    )  # fmt: skip
    k = int(m.seen.max()) + 1
    before = m.valid  # up to epoch k - 1
    invalid = active & ~(gamma * np.abs(epoch.PV - epoch.PV_hat) <= epoch.CB + scene.atol).all((1, 2))
    valid = m.valid & ~invalid
    m = m._replace(
        valid=np.where(active, valid, m.valid),
        invalid_at=np.where(m.valid & invalid, k, m.invalid_at),
        last_V=np.where((m.valid & invalid)[:, None], epoch.V, m.last_V),
        last_value=np.where(m.valid & invalid, (epoch.nu * epoch.V).sum(-1), m.last_value),
        first=(epoch.nu * epoch.V).sum(-1) if k == 1 else m.first,
        total_V=m.total_V + np.where(active[:, None], epoch.V, 0),
        total_Q=m.total_Q + np.where(active[:, None, None], m.epoch.Q if k > 1 else epoch.V[..., None], 0),
    )
    if k > 1:
        m = m._replace(sums=merged(active & before, _moved(scene, m.sums, m.epoch, epoch), m.sums))
    seen = Seen(scene, k, m.epoch, epoch, m.sums, m, state.data, path)
    for index, check in enumerate(checks):
        if check.phase == "epoch" or k > 1:
            sound = (m.valid if check.phase == "epoch" else before) if check.conditional else True
            note(m.worst, index, active & sound, k, *check.measure(seen))
    m = m._replace(sums=merged(active & m.valid, _added(scene, m.sums, epoch), m.sums))
    return m._replace(
        epoch=merged(active, epoch, m.epoch),
        seen=m.seen + active,
        length=np.where(active, 0, m.length),
    )


def proper(policy: Array) -> tuple[Array, Array]:
    """A broken learner's policy made a policy, and the largest change (n,): so that it is reported, not refused."""
    total = policy.sum(-1, keepdims=True)
    if (policy >= 0).all() and (np.abs(total - 1) < 1e-12).all():
        return policy.copy(), np.zeros(len(policy))
    weights = np.where(policy >= 0, policy, 0.0)  # a nan counts as 0
    weights = np.where(weights.sum(-1, keepdims=True) > 0, weights, 1.0)
    made = weights / weights.sum(-1, keepdims=True)
    return made, np.abs(made - policy).reshape(len(policy), -1).max(-1)


def _moved(scene: Scene, s: Sums, e: Epoch, following: Epoch) -> Sums:
    """The sums with the optimisation term of epochs k and k + 1 added."""
    return s._replace(moves=s.moves + optimisation(scene, e, following))


def optimisation(scene: Scene, e: Epoch, following: Epoch) -> Array:
    """<mu^{pi_{k+1}} - mu^{pi_k}, Q_{k+1}> - H(pi_{k+1} || pi_k) / eta   (n,)."""
    entropy = (following.nu * relative_entropy(following.policy, e.policy)).sum(-1)
    return ((following.mu - e.mu) * e.Q).sum((1, 2)) - entropy / scene.parts.eta


def _added(scene: Scene, s: Sums, e: Epoch) -> Sums:
    """The sums with epoch k added; what needs epoch k + 1 comes with that."""
    mdp, gamma = scene.mdp, scene.mdp.discount
    returns = (e.mu * mdp.rewards).sum((1, 2))
    optimistic = (1 - gamma) * e.V @ mdp.initial
    return s._replace(
        epochs=s.epochs + 1,
        gaps=s.gaps + scene.solution.optimum - returns,
        above=s.above + scene.solution.optimum - optimistic,
        below=s.below + optimistic - returns,
        bonuses=s.bonuses + (e.mu * e.CB).sum((1, 2)),
        capped=s.capped + (e.mu * np.minimum(2 * e.CB, scene.H)).sum((1, 2)),
    )


def note(worst: Worst, index: int, rows: Array, k: int, measured: Array, bound: Array) -> None:
    """Keep the worst case of a claim, of these rows; in place."""
    margin = bound - measured
    rows = rows & ~(margin >= worst.margin[:, index])  # also where it is nan: a nan is a violation,
    rows &= ~np.isnan(worst.margin[:, index])  # and stays one
    for part, value in zip(worst, (margin, measured, bound, np.full(len(rows), k)), strict=True):
        part[rows, index] = np.broadcast_to(value, rows.shape)[rows]


def _follow(scene: Scene, m: Audit, path: Path) -> None:
    """A stretch of the current epoch, step by step in place."""
    T, e, w = scene.steps, m.epoch, m.walked
    n, L = path.state.shape
    steps = np.arange(L) < path.length[:, None]
    rows, cols = np.nonzero(steps)
    x, a, y = path.state[rows, cols], path.action[rows, cols], path.successor[rows, cols]
    np.add.at(w.visits, (rows, x, a), 1.0)
    np.add.at(w.resets, (rows, x, a), path.reset[rows, cols].astype(float))
    wide = np.zeros((n, L), bool)
    wide[rows, cols] = e.width[rows, x, a] >= 1
    bad_now = np.logical_or.accumulate(wide, axis=1) | w.bad[:, None]
    w.after_bad[:] += (bad_now & steps).sum(1)
    w.bad[:] |= wide.any(1)
    real = np.clip(T + 1 - path.time, 0, path.length)
    w.under_mu[:] += real * (e.mu * e.CB).sum((1, 2))
    w.regret[:] += real * _gap(scene, e)
    learned = path.time[rows] + cols <= T  # padding is not learned from
    np.add.at(w.moves, (rows[learned], x[learned], a[learned], y[learned]), 1.0)
    m.length[:] += path.length
    w.visited[:] += path.length
    first = np.take_along_axis(path.state, np.zeros((n, 1), int), axis=1)[:, 0]
    started = (path.length > 0) & (m.state >= 0) & (first != m.state)
    inside = steps[:, 1:] & ~path.reset[:, :-1] & (path.state[:, 1:] != path.successor[:, :-1])
    w.shortfall[:] += started + inside.sum(1)
    fresh = steps & np.pad(path.reset[:, :-1], ((0, 0), (1, 0)))
    fresh[:, 0] = (path.length > 0) & (m.state < 0)
    np.add.at(w.starts, (np.nonzero(fresh)[0], path.state[fresh]), 1.0)
    end = np.maximum(path.length - 1, 0)[:, None]
    last_y = np.take_along_axis(path.successor, end, 1)[:, 0]
    last_reset = np.take_along_axis(path.reset, end, 1)[:, 0]
    m.state[:] = np.where(path.length > 0, np.where(last_reset, -1, last_y), m.state)
    if scene.dimension:
        M, phi = m.matrices, scene.phi(e.V)
        times, targets, residual = np.zeros_like(e.PV), np.zeros_like(e.PV), np.zeros_like(e.PV)
        where = rows[learned], x[learned], a[learned]
        for total, term in (
            (times, 1.0), (targets, e.V[rows, y][learned]), (residual, (e.V[rows, y] - e.PV[rows, x, a])[learned])
        ):  # fmt: skip
            np.add.at(total, where, term)
        M.covariance[:] += np.einsum("nxa,nxad,nxae->nde", times, phi, phi)
        M.response[:] += np.einsum("nxa,nxad->nd", targets, phi)
        M.noise[:] += np.einsum("nxa,nxad->nd", residual, phi)


def _close(scene: Scene, m: Audit, active: Array) -> Audit:
    """Epoch k has ended (the next one opens, or the run is over): add what needed its whole length."""
    e, w, H, gamma = m.epoch, m.walked, scene.H, scene.mdp.discount
    ended = active & (m.seen > 0)
    if not ended.any():
        return m
    L = np.where(ended, m.length, 1).astype(float)
    c = np.where(ended[:, None, None], w.visits, 0)
    mean = H * (e.mu * e.CB).sum((1, 2))
    bonus = (c * e.CB).sum((1, 2))
    P_pi_f = (e.policy * e.CB).sum(-1)
    V_f = _values(scene, e.policy, P_pi_f)
    Q_f = e.CB + gamma * expect(scene.mdp, V_f)
    variance = H * (e.mu * (2 * e.CB * Q_f - e.CB**2)).sum((1, 2)) - mean**2
    f = e.CB - mean[:, None, None] / H
    spread = H * (e.mu * (2 * f * (Q_f - mean[:, None, None]) - f**2)).sum((1, 2))
    gap = _gap(scene, e)
    bad = ended & w.bad
    for total, term in (
        (w.drift, bonus - mean), (w.variance, variance), (w.spread, spread), (w.bonus, bonus),
        (w.plain, (c * e.width).sum((1, 2))), (w.gap_steps, gap * L), (w.gap_epochs, gap), (w.gap_squares, gap**2),
        (w.epochs, 1.0),
    ):  # fmt: skip
        total[:] += np.where(ended, term, 0)
    for total, term in ((w.bad_epochs, 1.0), (w.bad_length, L), (w.bad_rest, w.after_bad)):
        total[:] += np.where(bad, term, 0)
    w.longest[:] = np.where(ended, np.maximum(w.longest, L), w.longest)
    w.largest[:] = np.where(ended, np.maximum(w.largest, e.CB.max((1, 2))), w.largest)
    here = c.sum(-1, keepdims=True)
    w.chosen[:] += c - here * e.policy
    w.choice[:] += here * e.policy * (1 - e.policy)
    if scene.dimension:
        phi, M = scene.phi(e.V), m.matrices
        square = e.width**2
        M.potential[:] += (c * np.log1p(L[:, None, None] * square)).sum((1, 2)) / L
        M.clipped[:] += (c * np.minimum(1, square)).sum((1, 2))
        M.full[:] += np.einsum("nxa,nxad,nxae->nde", c, phi, phi)
        M.G[:] += np.einsum("nxa,nxad,nxae->nde", c * (e.width >= 1), phi, phi)
    elif scene.setting == "tabular":
        N = np.rint(e.width**-2.0)
        m.tables.good[:] += (np.minimum(c, N) * e.width).sum((1, 2))
        m.tables.doublings[:] += c > N
    w.total[:] += c
    w.visits[ended] = 0
    w.bad[ended], w.after_bad[ended] = False, 0
    return m


def _gap(scene: Scene, e: Epoch) -> Array:
    """rho* - rho(pi_k)   (n,)."""
    return scene.solution.optimum - (e.mu * scene.mdp.rewards).sum((1, 2))


def _values(scene: Scene, policy: Array, source: Array) -> Array:
    """(I - gamma P_pi)^{-1} source, for every seed."""
    chain = np.einsum("nxa,xay->nxy", policy, scene.P)
    return np.linalg.solve(np.eye(scene.mdp.states) - scene.mdp.discount * chain, source[..., None])[..., 0]


def finish(scene: Scene, checks: Sequence[Check], m: Audit, state: Any) -> Audit:
    """After the run: close the last epoch, and put V_{K+1}, pi_{K+1} before the claims about neighbours."""
    everyone = np.ones(len(m.seen), bool)
    m = _close(scene, m, everyone)
    V, _, policy = mirror_step(state.log_policy, state.policy, state.Q, scene.parts.eta)
    policy, improper = proper(policy)
    mu = occupancy(scene.mdp, policy)
    nothing = np.zeros_like(m.epoch.Q)
    last = Epoch(V, nothing, policy, mu.nu, mu.mu, nothing, nothing, nothing, nothing, improper)
    m = m._replace(
        last_V=np.where(m.valid[:, None], V, m.last_V),
        last_value=np.where(m.valid, (mu.nu * V).sum(-1), m.last_value),
        total_V=m.total_V + V,
        total_Q=m.total_Q + m.epoch.Q,
        sums=merged(m.valid, _moved(scene, m.sums, m.epoch, last), m.sums),
    )
    # Seeds have different numbers of epochs: the claims of each are about its own last pair.
    seen = Seen(scene, 0, m.epoch, last, m.sums, m, state.data, None)
    for index, check in enumerate(checks):
        if check.phase != "epoch":
            note(m.worst, index, m.valid if check.conditional else everyone, 0, *check.measure(seen))
    return m
