"""Books on every step, and on every epoch when it has ended, for claims about steps."""

from __future__ import annotations

import numpy as np

from ravi.core import Array, Path
from ravi.planning.bellman import expect
from ravi.verify.books import Audit, Iterate
from ravi.verify.scene import Scene


def follow(scene: Scene, m: Audit, path: Path) -> None:
    """A stretch of the current epoch, step by step in place."""
    T, w, b = scene.steps, m.walked, m.there
    n, L = path.state.shape
    steps = np.arange(L) < path.length[:, None]
    rows, cols = np.nonzero(steps)
    x, a, y, t = path.state[rows, cols], path.action[rows, cols], path.successor[rows, cols], path.time[rows] + cols
    np.add.at(w.visits, (rows, x, a), 1.0)
    np.add.at(w.resets, (rows, x, a), path.reset[rows, cols].astype(float))
    capped = np.minimum(2 * b.CB[rows, x, a], scene.H)
    np.add.at(w.capped, rows, capped)
    wide = np.zeros((n, L), bool)
    wide[rows, cols] = b.width[rows, x, a] >= 1
    bad_now = np.logical_or.accumulate(wide, axis=1) | w.bad[:, None]
    w.after_bad[:] += (bad_now & steps).sum(1)
    w.bad[:] |= wide.any(1)
    real = np.clip(T + 1 - path.time, 0, path.length)
    w.under_mu[:] += real * (m.played.mu * b.CB).sum((1, 2))
    w.regret[:] += real * gap(scene, m.played)
    m.length[:] += path.length
    w.visited[:] += path.length
    started = (path.length > 0) & (m.state >= 0) & (path.state[:, 0] != m.state)
    inside = steps[:, 1:] & ~path.reset[:, :-1] & (path.state[:, 1:] != path.successor[:, :-1])
    w.shortfall[:] += started + inside.sum(1)
    fresh = steps.copy()
    fresh[:, 1:] &= path.reset[:, :-1]
    fresh[:, 0] = (path.length > 0) & (m.state < 0)
    np.add.at(w.starts, (np.nonzero(fresh)[0], path.state[fresh]), 1.0)
    end = np.arange(n), np.maximum(path.length - 1, 0)
    m.state[:] = np.where(path.length > 0, np.where(path.reset[end], -1, path.successor[end]), m.state)
    if scene.world is not None:
        _turn(scene, m, rows, t, capped)
    learned = t <= T  # padding is not learned from
    _learn(scene, m, *(part[learned] for part in (rows, x, a, y)))


def _learn(scene: Scene, m: Audit, rows: Array, x: Array, a: Array, y: Array) -> None:
    b, V = m.books, m.played.V
    np.add.at(b.moves, (rows, x, a, y), 1.0)
    if not scene.dimension:
        return
    middle, sigma = standardised(scene, V)
    U = (V - middle[:, None]) / sigma[:, None]
    phi, PU = scene.phi(U), expect(scene.mdp, U)
    times, targets, residual = (np.zeros_like(PU) for _ in range(3))
    for total, term in ((times, 1.0), (targets, U[rows, y]), (residual, U[rows, y] - PU[rows, x, a])):
        np.add.at(total, (rows, x, a), term)
    b.covariance[:] += np.einsum("nxa,nxad,nxae->nde", times, phi, phi)
    b.response[:] += np.einsum("nxa,nxad->nd", targets, phi)
    b.noise[:] += np.einsum("nxa,nxad->nd", residual, phi)


def standardised(scene: Scene, V: Array) -> tuple[Array, Array]:
    """c and sigma   (n,), by the parts that the learner says it has."""
    on = scene.stated.on or ()
    low, high = V.min(-1), V.max(-1)
    middle = (low + high) / 2 if "centre" in on else np.zeros(len(V))
    return middle, np.maximum((high - low) / 2, 1e-6) if "span" in on and scene.dimension else np.ones(len(V))


def _turn(scene: Scene, m: Audit, rows: Array, t: Array, capped: Array) -> None:
    """Regret against every comparator, with the table of each step: those of seeds `rows` at t."""
    s, number = m.turned, scene.world.number(t if scene.world.clock == "plays" else m.seen[rows])
    under, early = np.zeros_like(s.rho), np.zeros_like(s.rho)  # plays under each table; of these the ones with t <= T
    np.add.at(under, (rows, number), 1.0)
    np.add.at(early, (rows, number), (t <= scene.steps).astype(float))
    f = scene.against.rho - s.rho[:, None]  # (n, C, J)
    total = np.einsum("ncj,nj->nc", f, under)
    s.regret[:] += np.einsum("ncj,nj->nc", f, early)
    s.drift[:] += total
    s.variance[:] += scene.mdp.discount * scene.H * np.einsum("ncj,nj->nc", f**2, under)
    s.lead[:] += np.where(m.valid[:, None], total, 0)
    np.add.at(s.paid, rows, np.where(m.valid[rows], capped, 0))
    s.last[rows] = number  # rows are in order of time: the last step's stays


def close(scene: Scene, m: Audit, active: Array) -> None:
    """Epoch k has ended (the next one opens, or the run is over): add what needed its whole length, in place."""
    e, CB, width, w = m.played, m.there.CB, m.there.width, m.walked
    H, gamma, ended = scene.H, scene.mdp.discount, active & (m.seen > 0)
    if not ended.any():
        return
    L = np.where(ended, m.length, 1).astype(float)
    c = np.where(ended[:, None, None], w.visits, 0)
    mean = H * (e.mu * CB).sum((1, 2))
    bonus = (c * CB).sum((1, 2))
    V_f = values(scene, e.policy, (e.policy * CB).sum(-1))
    Q_f = CB + gamma * expect(scene.mdp, V_f)
    variance = H * (e.mu * (2 * CB * Q_f - CB**2)).sum((1, 2)) - mean**2
    f = CB - mean[:, None, None] / H
    spread = H * (e.mu * (2 * f * (Q_f - mean[:, None, None]) - f**2)).sum((1, 2))
    lost = gap(scene, e)
    bad = ended & w.bad
    for total, term in (
        (w.drift, bonus - mean), (w.variance, variance), (w.spread, spread), (w.bonus, bonus),
        (w.plain, (c * width).sum((1, 2))), (w.gap_steps, lost * L), (w.gap_epochs, lost), (w.gap_squares, lost**2),
        (w.epochs, 1.0),
    ):  # fmt: skip
        np.add(total, term, out=total, where=ended)
    for total, term in ((w.bad_epochs, 1.0), (w.bad_length, L), (w.bad_rest, w.after_bad)):
        np.add(total, term, out=total, where=bad)
    np.maximum(w.longest, L, out=w.longest, where=ended)
    np.maximum(w.largest, CB.max((1, 2)), out=w.largest, where=ended)
    here = c.sum(-1, keepdims=True)
    w.chosen[:] += c - here * e.policy
    w.choice[:] += here * e.policy * (1 - e.policy)
    if scene.dimension:
        phi, M = scene.phi(e.V), m.matrices
        square = width**2
        M.potential[:] += (c * np.log1p(L[:, None, None] * square)).sum((1, 2)) / L
        M.clipped[:] += (c * np.minimum(1, square)).sum((1, 2))
        M.full[:] += np.einsum("nxa,nxad,nxae->nde", c, phi, phi)
        M.G[:] += np.einsum("nxa,nxad,nxae->nde", c * (width >= 1), phi, phi)
    elif scene.setting == "tabular":
        N = np.rint(width**-2.0)
        w.good[:] += (np.minimum(c, N) * width).sum((1, 2))
        w.doublings[:] += c > N
    w.total[:] += c
    w.visits[ended] = 0
    w.bad[ended], w.after_bad[ended] = False, 0


def gap(scene: Scene, e: Iterate) -> Array:
    """rho* - rho(pi)   (n,)."""
    return scene.solution.optimum - (e.mu * scene.mdp.rewards).sum((1, 2))


def values(scene: Scene, policy: Array, source: Array) -> Array:
    """(I - gamma P_pi)^{-1} source, for every seed."""
    chain = np.einsum("nxa,xay->nxy", policy, scene.P)
    return np.linalg.solve(np.eye(scene.mdp.states) - scene.mdp.discount * chain, source[..., None])[..., 0]
