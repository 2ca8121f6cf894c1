"""Estimates and bonuses that the parts of a variant should give, from the observer's books."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from scipy.special import gammaln, xlogy

from ravi.core import MDP, Array
from ravi.optimism.supported import outcomes
from ravi.theory import Bound, constants, generic, kl, mixture, tabular, unknown_rewards
from ravi.verify.books import Books
from ravi.verify.distance import growth, in_norm, solved
from ravi.verify.scene import B_phi, B_theta, Scene, beta_of, delta_of, lam, plain
from ravi.verify.walks import standardised


def has(scene: Scene, part: str) -> bool:
    return part in (scene.stated.on or ())


def learned(scene: Scene) -> bool:
    """Whether rewards are not known."""
    return scene.told.rewards is not None


def estimate(scene: Scene, books: Books, V: Array) -> Array:
    """P_hat V   (n, X, A)."""
    if has(scene, "sets"):
        low, high = _of_sets(scene, books, V)
        return (low + high) / 2
    middle, sigma = (part[:, None, None] for part in standardised(scene, V))
    U = (V - middle[..., 0]) / sigma[..., 0]
    if scene.dimension:
        known = np.einsum("nxad,nd->nxa", scene.phi(U), solved(books.covariance, books.response))
    else:
        known = np.einsum("nxay,ny->nxa", books.moves, U) / (1 + books.moves.sum(-1))
    PV = middle + sigma * known
    low, high = (part[:, None, None] for part in (V.min(-1), V.max(-1)))
    return np.clip(PV, low, high) if has(scene, "clip") else PV


def bonus(scene: Scene, books: Books, V: Array) -> Array:
    """CB   (n, X, A)."""
    if has(scene, "sets"):
        low, high = _of_sets(scene, books, V)
        return times(scene) * (high - low) / 2
    spread, scale = np.ptp(V, axis=-1)[:, None, None], _scale(scene)
    if scene.dimension:
        CB = scale * radius(scene, books)[:, None, None] * norms(scene, books, V)
    elif has(scene, "centre"):
        mdp, n = scene.mdp, books.moves.sum(-1)
        L = mdp.states * log(2) + log(mdp.states * mdp.actions * scene.steps / delta_of(scene))
        near = scale * (n * np.sqrt(2 * L / np.maximum(n, 1)) + 1) / (n + 1)  # n/(n+1) ||p_n - P||_1 + 1/(n+1)
        CB = (spread if has(scene, "span") else scene.H) / 2 * np.minimum(1 + n / (n + 1), near)
    else:
        CB = scale * _closed(scene) / np.sqrt(1 + books.moves.sum(-1))
    CB = np.minimum(CB, spread) if has(scene, "clip") else CB
    return times(scene) * CB


def envelope(scene: Scene, books: Books, V: Array) -> Array:
    """An upper bound on CB for these and all later data: the closed beta times a width, which only falls."""
    scale = _scale(scene)
    if scene.dimension:
        return times(scene) * scale * _closed(scene) * norms(scene, books, V)
    return times(scene) * max(scale, 1.0) * _closed(scene) / np.sqrt(1 + books.moves.sum(-1))


def _of_sets(scene: Scene, books: Books, V: Array) -> tuple[Array, Array]:
    """L = min_C <q, V> and U = max_C <q, V>, for C of the radius that holds for all V   (n, X, A) each."""
    mdp = scene.mdp
    moves = scene.stored(books.moves)
    n, m = moves.sum(-1), outcomes(mdp, scene.told.support)
    likely = xlogy(moves, moves / np.maximum(n, 1)[..., None]).sum(-1)
    mixed = (gammaln(moves + 0.5) - gammaln(0.5)).sum(-1) - gammaln(n + m / 2) + gammaln(m / 2)
    rho = _scale(scene) * (log(mdp.states * mdp.actions / delta_of(scene)) + likely - mixed)
    support = scene.told.support
    return -by_dual(mdp, moves, rho, support, -V), by_dual(mdp, moves, rho, support, V)


def by_dual(mdp: MDP, moves: Array, rho: Array, support: bool, V: Array) -> Array:
    """max {<q, V> : n KL(p_hat || q) <= rho} = min_{nu >= max V} {nu - exp(<p_hat, ln(nu - V)> - rho / n)}, which is
    convex in nu, by ternary search in ln(nu - max V)   (n, X, A)."""
    n = moves.sum(-1)
    v = V[:, mdp.successors]
    top = np.where(mdp.support, v, -np.inf).max(-1) if support else np.broadcast_to(V.max(-1)[:, None, None], n.shape)
    p, away = moves / np.maximum(n, 1)[..., None], top[..., None] - v
    spread = np.maximum(np.where(moves > 0, away, 0).max(-1), 1e-300)
    d = rho / np.maximum(n, 1)

    def at(t: Array) -> Array:
        inside = np.where(moves > 0, np.log(np.maximum(away / spread[..., None] + t[..., None], 1e-300)), 0.0)
        return t - np.exp((p * inside).sum(-1) - d)

    low, high = np.full(n.shape, -60.0), np.full(n.shape, 25.0)
    for _ in range(160):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        nearer = at(np.exp(left)) <= at(np.exp(right))
        low, high = np.where(nearer, low, left), np.where(nearer, right, high)
    least = np.minimum(at(np.exp((low + high) / 2)), at(np.zeros(n.shape)))
    return np.where(n > 0, top + spread * np.minimum(least, 0.0), top)


def times(scene: Scene) -> float:
    return scene.mdp.discount if has(scene, "gamma") else 1.0


def norms(scene: Scene, books: Books, V: Array) -> Array:
    """sigma ||phi_U||_{Lambda^-1}   (n, X, A)."""
    middle, sigma = standardised(scene, V)
    phi = scene.phi((V - middle[:, None]) / sigma[:, None])
    return sigma[:, None, None] * in_norm(books.covariance, phi)


def radius(scene: Scene, books: Books) -> Array:
    """beta   (n,): of the determinant at hand, or of its bound."""
    if not has(scene, "radius"):
        return np.full(len(books.covariance), _closed(scene))
    grown = growth(books.covariance, lam(scene))
    return _noise(scene) * np.sqrt(grown + 2 * log(1 / delta_of(scene))) + sqrt(lam(scene)) * B_theta(scene)


def _noise(scene: Scene) -> float:
    return 1.0 if has(scene, "span") else scene.H / 2


def _size(scene: Scene) -> float:
    """||phi_U|| at most."""
    return B_phi(scene) * (2.0 if has(scene, "span") else scene.H)


def _scale(scene: Scene) -> float:
    return 1.0 if scene.stated.beta is not None else float(scene.stated.scale)


def _closed(scene: Scene) -> float:
    """beta, before the run: the learner's, which its scale is part of, or that of the statement."""
    return _proven(scene) if scene.stated.beta is None else beta_of(scene)


def _proven(scene: Scene) -> float:
    """beta that is proven to be valid."""
    mdp, T, delta = scene.mdp, scene.steps, delta_of(scene)
    if has(scene, "sets"):
        return kl.beta_mirror(scene.H, mdp.states, mdp.actions, outcomes(mdp, scene.told.support), T, delta)
    if not scene.dimension:
        return constants.beta_tabular_l1(scene.H, mdp.states, mdp.actions, T, delta)
    grown = mdp.dimension * log(1 + T * _size(scene) ** 2 / (lam(scene) * mdp.dimension))
    return _noise(scene) * sqrt(grown + 2 * log(1 / delta)) + sqrt(lam(scene)) * B_theta(scene)


def bonus_sum(scene: Scene, plays: int | None = None) -> float:
    """S >= E[sum_{t <= T+} min(2 CB, H)], CB of the kernel; infinite where it is larger than the theorem's. `plays`: in
    place of T, where the sum is over fewer than its beta allows for."""
    mdp, T, H = scene.mdp, scene.steps if plays is None else plays, scene.H
    if scene.setting == "generic" or _scale(scene) > 1:
        return np.inf
    if not scene.dimension:
        return tabular.clipped_bonus_sum(H, mdp.states, mdp.actions, T, times(scene) * _closed(scene))
    beta = times(scene) * _closed(scene) * (H / 2 if has(scene, "span") else 1.0)
    return mixture.clipped_bonus_sum(H, mdp.dimension, T, beta, bound=_size(scene) / H, regularization=lam(scene))


def reward_spread(scene: Scene) -> float:
    """b sqrt(n), of scale 1."""
    return constants.reward_spread(scene.mdp.states, scene.mdp.actions, scene.steps, delta_of(scene))


def reward_sum(scene: Scene) -> float:
    """E[sum_{t <= T+} b], at most. A smaller reward_scale than 1 is held against the bound of 1: that of 0 is met with
    equality by one pair that is played once, and Student's t needs room."""
    mdp, s = scene.mdp, max(scene.told.reward_scale, 1.0) * reward_spread(scene)
    return unknown_rewards.bonus_sum(scene.H, mdp.states, mdp.actions, scene.steps, s)


def valid(scene: Scene) -> bool:
    """Whether bonuses are at least those that are proven to be valid; of RAVI-UCB+, those themselves."""
    if learned(scene) and scene.told.reward_scale < 1:
        return False
    if scene.stated.beta is not None:
        return beta_of(scene) >= scene.mdp.discount * _proven(scene)
    return bool(scene.stated.scale == 1)


def regret(scene: Scene, S: float | None = None) -> Bound | None:
    """The bound with the eta of the run; None where the constants are not the theorem's. `S`: where these parts do not
    say it."""
    M, known = scene.parts.inner, S is not None or scene.setting != "generic"
    if not known or not valid(scene) or not plain(scene) or (scene.parts.pick != "uniform" and M > 1):
        return None
    S = bonus_sum(scene) if S is None else S
    H, A, eta, delta = scene.H, scene.mdp.actions, scene.parts.eta, delta_of(scene)
    made = generic.sharp(H, A, scene.steps, S, delta=delta, eta=eta, inner_steps=M)
    if learned(scene):  # the first Q_1 is the same for all pairs: rewards are 1 where nothing was seen
        return tabular.learned_rewards(made, reward_sum(scene), made.failure)
    more = H / M if scene.parts.fresh else 0.0  # <mu^{pi_1}, E V_1> - <mu*, Q_1> <= 1: the first Q_1
    return made.plus(more)


def total(bound: Bound | None) -> float:
    """Infinite where there is none."""
    return np.inf if bound is None else bound.total


def explicit(scene: Scene) -> float:
    return total(regret(scene))


def doubled(scene: Scene) -> float:
    """2 S + H sqrt(kappa ln A E K / M) + ... where eta balances both; infinite elsewhere."""
    found, H, M = regret(scene), scene.H, scene.parts.inner
    if found is None or not has(scene, "balance"):
        return np.inf
    mdp, S = scene.mdp, bonus_sum(scene)
    balanced = constants.eta_balanced(H, mdp.actions, scene.steps, S, M)
    if not np.isclose(scene.parts.eta, balanced, rtol=1e-9):
        return np.inf
    return found.bonus + max(S, slow(scene, scene.steps)) + slow(scene, scene.steps) + found.boundary + found.failure


def slow(scene: Scene, plays: int) -> float:
    """s = H sqrt(kappa log A E K / M) = H log A / (M eta_sharp) = H eta_sharp kappa E K, in so many plays."""
    K = constants.expected_epochs(scene.H, plays)
    return scene.H * sqrt(constants.kappa(scene.H) * log(scene.mdp.actions) * K / scene.parts.inner)
