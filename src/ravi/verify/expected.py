"""Estimates and bonuses that the parts of a variant should give, from the observer's books."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from scipy.special import gammaln, xlogy

from ravi.core import MDP, Array
from ravi.optimism.known_support import outcomes
from ravi.theory import Bound, constants, generic, kl, mixture, tabular, unknown_rewards
from ravi.verify.distance import growth, in_norm, solved
from ravi.verify.record import Books, standardised
from ravi.verify.setting import RunSetting


def estimate(setting: RunSetting, books: Books, V: Array) -> Array:
    """P_hat V   (n, X, A)."""
    if setting.has("sets"):
        low, high = _of_sets(setting, books, V)
        return (low + high) / 2
    middle, sigma = (part[:, None, None] for part in standardised(setting, V))
    U = (V - middle[..., 0]) / sigma[..., 0]
    if setting.dimension:
        known = np.einsum("nxad,nd->nxa", setting.phi(U), solved(books.covariance, books.response))
    else:
        known = (books.moves * U[:, setting.mdp.successors]).sum(-1) / (1 + books.visits)
    PV = middle + sigma * known
    low, high = (part[:, None, None] for part in (V.min(-1), V.max(-1)))
    return np.clip(PV, low, high) if setting.has("clip") else PV


def bonus(setting: RunSetting, books: Books, V: Array) -> Array:
    """CB   (n, X, A)."""
    if setting.has("sets"):
        low, high = _of_sets(setting, books, V)
        return times(setting) * (high - low) / 2
    spread, scale = np.ptp(V, axis=-1)[:, None, None], _scale(setting)
    if setting.dimension:
        CB = scale * radius(setting, books)[:, None, None] * norms(setting, books, V)
    elif setting.has("centre"):
        mdp, n = setting.mdp, books.visits
        L = mdp.states * log(2) + log(mdp.states * mdp.actions * setting.steps / setting.delta)
        near = scale * (n * np.sqrt(2 * L / np.maximum(n, 1)) + 1) / (n + 1)  # n/(n+1) ||p_n - P||_1 + 1/(n+1)
        CB = (spread if setting.has("span") else setting.H) / 2 * np.minimum(1 + n / (n + 1), near)
    else:
        CB = scale * _closed(setting) / np.sqrt(1 + books.visits)
    CB = np.minimum(CB, spread) if setting.has("clip") else CB
    return times(setting) * CB


def envelope(setting: RunSetting, books: Books, V: Array) -> Array:
    """An upper bound on CB for these and all later data: the closed beta times a width, which only falls."""
    scale = _scale(setting)
    if setting.dimension:
        return times(setting) * scale * _closed(setting) * norms(setting, books, V)
    return times(setting) * max(scale, 1.0) * _closed(setting) / np.sqrt(1 + books.visits)


def _of_sets(setting: RunSetting, books: Books, V: Array) -> tuple[Array, Array]:
    """L = min_C <q, V> and U = max_C <q, V>, for C of the radius that holds for all V   (n, X, A) each."""
    mdp = setting.mdp
    moves = books.moves
    n, m = moves.sum(-1), outcomes(mdp, setting.side.support)
    likely = xlogy(moves, moves / np.maximum(n, 1)[..., None]).sum(-1)
    mixed = (gammaln(moves + 0.5) - gammaln(0.5)).sum(-1) - gammaln(n + m / 2) + gammaln(m / 2)
    rho = _scale(setting) * (log(mdp.states * mdp.actions / setting.delta) + likely - mixed)
    support = setting.side.support
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


def times(setting: RunSetting) -> float:
    return setting.gamma if setting.has("gamma") else 1.0


def norms(setting: RunSetting, books: Books, V: Array) -> Array:
    """sigma ||phi_U||_{Lambda^-1}   (n, X, A)."""
    middle, sigma = standardised(setting, V)
    phi = setting.phi((V - middle[:, None]) / sigma[:, None])
    return sigma[:, None, None] * in_norm(books.covariance, phi)


def radius(setting: RunSetting, books: Books) -> Array:
    """beta   (n,): of the determinant at hand, or of its bound."""
    if not setting.has("radius"):
        return np.full(len(books.covariance), _closed(setting))
    grown = growth(books.covariance, setting.lam)
    return _noise(setting) * np.sqrt(grown + 2 * setting.log_inverse_delta) + sqrt(setting.lam) * setting.B_theta


def _noise(setting: RunSetting) -> float:
    return 1.0 if setting.has("span") else setting.H / 2


def _size(setting: RunSetting) -> float:
    """||phi_U|| at most."""
    return setting.B_phi * (2.0 if setting.has("span") else setting.H)


def _scale(setting: RunSetting) -> float:
    return 1.0 if setting.stated.beta is not None else float(setting.stated.scale)


def _closed(setting: RunSetting) -> float:
    """beta, before the run: the learner's, which its scale is part of, or that of the statement."""
    return _proven(setting) if setting.stated.beta is None else setting.beta


def _proven(setting: RunSetting) -> float:
    """beta that is proven to be valid."""
    mdp, T, delta = setting.mdp, setting.steps, setting.delta
    if setting.has("sets"):
        return kl.beta_mirror(setting.H, mdp.states, mdp.actions, outcomes(mdp, setting.side.support), T, delta)
    if not setting.dimension:
        return constants.beta_tabular_l1(setting.H, mdp.states, mdp.actions, T, delta)
    grown = mdp.dimension * log(1 + T * _size(setting) ** 2 / (setting.lam * mdp.dimension))
    return _noise(setting) * sqrt(grown + 2 * log(1 / delta)) + sqrt(setting.lam) * setting.B_theta


def bonus_sum(setting: RunSetting, plays: int | None = None) -> float:
    """S >= E[sum_{t <= T+} min(2 CB, H)], CB of the kernel; infinite where it is larger than the theorem's. `plays`: in
    place of T, where the sum is over fewer than its beta allows for."""
    mdp, T, H = setting.mdp, setting.steps if plays is None else plays, setting.H
    if setting.kind == "generic" or _scale(setting) > 1:
        return np.inf
    if not setting.dimension:
        return tabular.clipped_bonus_sum(H, mdp.states, mdp.actions, T, times(setting) * _closed(setting))
    beta = times(setting) * _closed(setting) * (H / 2 if setting.has("span") else 1.0)
    return mixture.clipped_bonus_sum(H, mdp.dimension, T, beta, bound=_size(setting) / H, regularization=setting.lam)


def reward_spread(setting: RunSetting) -> float:
    """b sqrt(n), of scale 1."""
    return constants.reward_spread(setting.mdp.states, setting.mdp.actions, setting.steps, setting.delta)


def reward_sum(setting: RunSetting) -> float:
    """E[sum_{t <= T+} b], at most. A smaller reward_scale than 1 is held against the bound of 1: that of 0 is met with
    equality by one pair that is played once, and Student's t needs room."""
    mdp, s = setting.mdp, max(setting.side.reward_scale, 1.0) * reward_spread(setting)
    return unknown_rewards.bonus_sum(setting.H, mdp.states, mdp.actions, setting.steps, s)


def valid(setting: RunSetting) -> bool:
    """Whether bonuses are at least those that are proven to be valid; of RAVI-UCB+, those themselves."""
    if setting.unknown_rewards and setting.side.reward_scale < 1:
        return False
    if setting.stated.beta is not None:
        return setting.beta >= setting.gamma * _proven(setting)
    return bool(setting.stated.scale == 1)


def regret(setting: RunSetting, S: float | None = None) -> Bound | None:
    """The bound with the eta of the run; None where the constants are not the theorem's. `S`: where these parts do not
    say it."""
    M, known = setting.parts.inner, S is not None or setting.kind != "generic"
    if not known or not valid(setting) or not setting.plain or (setting.parts.pick != "uniform" and M > 1):
        return None
    S = bonus_sum(setting) if S is None else S
    H, A, eta, delta = setting.H, setting.mdp.actions, setting.eta, setting.delta
    made = generic.sharp(H, A, setting.steps, S, delta=delta, eta=eta, inner_steps=M)
    if setting.unknown_rewards:  # the first Q_1 is the same for all pairs: rewards are 1 where nothing was seen
        return tabular.learned_rewards(made, reward_sum(setting), made.failure)
    more = H / M if setting.parts.fresh else 0.0  # <mu^{pi_1}, E V_1> - <mu*, Q_1> <= 1: the first Q_1
    return made.plus(more)


def total(bound: Bound | None) -> float:
    """Infinite where there is none."""
    return np.inf if bound is None else bound.total


def explicit(setting: RunSetting) -> float:
    return total(regret(setting))


def doubled(setting: RunSetting) -> float:
    """2 S + H sqrt(kappa ln A E K / M) + ... where eta balances both; infinite elsewhere."""
    found, H, M = regret(setting), setting.H, setting.parts.inner
    if found is None or not setting.has("balance"):
        return np.inf
    mdp, S = setting.mdp, bonus_sum(setting)
    balanced = constants.eta_balanced(H, mdp.actions, setting.steps, S, M)
    if not np.isclose(setting.eta, balanced, rtol=1e-9):
        return np.inf
    s = slow(setting, setting.steps)
    return found.bonus + max(S, s) + s + found.boundary + found.failure


def slow(setting: RunSetting, plays: int) -> float:
    """s = H sqrt(kappa log A E K / M) = H log A / (M eta_sharp) = H eta_sharp kappa E K, in so many plays."""
    K = constants.expected_epochs(setting.H, plays)
    return setting.H * sqrt(constants.kappa(setting.H) * log(setting.mdp.actions) * K / setting.parts.inner)
