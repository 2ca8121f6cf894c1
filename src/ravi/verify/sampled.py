"""Claims of RAVI-UCB with sampled features: its draws, its data, what sampling costs, and its bound.

U = V, or V less its middle where it is centred. phi is of all successors, phi~ of those that were drawn, both written
out here from psi and the numbers that the learner drew by; eps_k is the learner's own bound on ||phi - phi~|| at V_k.
With z_i = <theta, phi_i - phi~_i> and n_i = V_i(y_i) - P V_i, a target U_i(y_i) is <theta, phi~_i> + z_i + n_i, hence

    P_hat V - P V = <phi~, Lambda^{-1} (sum phi~_i n_i + sum phi~_i z_i - lambda theta)> - <theta, phi - phi~>.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Path
from ravi.estimators.sampled import deviation, draw
from ravi.mdps.building import uniforms
from ravi.theory import sampled as theory
from ravi.verify import lemmas
from ravi.verify.books import Audit, Evidence, Keeper, Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import in_norm, nil, relative, solved, worst
from ravi.verify.expected import has
from ravi.verify.scene import B_theta, Scene, delta_of, lam, mixture_beta, of_theorem_4_1, theta_of

registry = Registry("sampled")
claim = registry.claim


class Books(NamedTuple):
    covariance: Array  # Lambda = lambda I + sum phi~ phi~^T   (n, d, d)
    response: Array  # b = sum phi~ U(y)                       (n, d)
    bias: Array  # sum eps^2                                   (n,)
    noise: Array  # sum phi~ n                                 (n, d)
    shift: Array  # sum phi~ z                                 (n, d)


class Drawn(NamedTuple):
    """What the draws leave of psi."""

    features: Array  # psi~                  (X, A, B, d)
    errors: Array  # e(x, a)                 (X, A)
    bound: float  # B, for ||theta|| and ||phi~|| / H


def drawn(scene: Scene) -> Drawn:
    return _drawn(scene.mdp, scene.stated.samples, scene.stated.draws, has(scene, "centre"))


@lru_cache(maxsize=4)
def _drawn(mdp: MDP, m: int, seed: int, centre: bool) -> Drawn:
    """psi~ = c / (m q) psi, q in proportion to sum_c |psi_c|, the j-th draw by a number in [(j - 1)/m, j/m)."""
    psi: Any = mdp.features
    X, A, B, _ = psi.shape
    u = uniforms(seed)(X * A, m).reshape(X, A, m)
    weight = np.ones((X, A, B))
    for x, a in np.ndindex(X, A):
        q = np.abs(psi[x, a]).sum(-1)
        if (q > 0).sum() > m:
            mass = np.cumsum(q)
            chosen = np.searchsorted(mass, (np.arange(m) + u[x, a]) / m * mass[-1], side="right")
            times = np.bincount(np.minimum(chosen, B - 1), minlength=B)
            weight[x, a] = times * mass[-1] / (m * np.where(q > 0, q, 1))
    off = (1 - weight)[..., None] * psi
    plus, minus = np.where(off > 0, off, 0).sum(2), np.where(off < 0, -off, 0).sum(2)
    errors = np.sqrt(((plus + minus if centre else np.maximum(plus, minus)) ** 2).sum(-1))
    assert mdp.feature_bound is not None
    assert mdp.parameter_bound is not None
    bound = max(mdp.parameter_bound, mdp.feature_bound + float(errors.max()) * (0.5 if centre else 1.0))
    return Drawn(weight[..., None] * psi, errors, bound)


def split(scene: Scene, V: Array) -> tuple[Array, Array, Array]:
    """U (n, X), its c (n,) and max |U| (n,)."""
    low, high = V.min(-1), V.max(-1)
    if not has(scene, "centre"):
        return V, np.zeros(len(V)), high
    return V - ((low + high) / 2)[:, None], (low + high) / 2, (high - low) / 2


def phi_of(scene: Scene, U: Array) -> Array:
    """phi~_U   (n, X, A, d)."""
    return np.einsum("xajd,nxaj->nxad", drawn(scene).features, U[:, scene.mdp.successors])


def keeper(scene: Scene) -> Keeper:
    d, theta = scene.mdp.dimension, theta_of(scene)

    def init(keys: Array) -> Books:
        n = len(keys)
        first = lam(scene) * np.tile(np.eye(d), (n, 1, 1))
        return Books(first, np.zeros((n, d)), np.zeros(n), np.zeros((n, d)), np.zeros((n, d)))

    def follow(m: Audit, path: Path, learned: Array) -> None:
        books, V = m.own, m.played.V
        rows, cols = np.nonzero(learned)
        if not len(rows):
            return
        x, a, y = path.state[rows, cols], path.action[rows, cols], path.successor[rows, cols]
        U, _, size = split(scene, V)
        phi, missed = phi_of(scene, U)[rows, x, a], (scene.phi(U) - phi_of(scene, U))[rows, x, a]
        noise = U[rows, y] - np.einsum("iy,iy->i", scene.P[x, a], U[rows])
        np.add.at(books.covariance, rows, phi[:, :, None] * phi[:, None, :])
        for total, term in ((books.response, U[rows, y]), (books.noise, noise), (books.shift, missed @ theta)):
            np.add.at(total, rows, phi * term[:, None])
        np.add.at(books.bias, rows, (size[rows] * drawn(scene).errors[x, a]) ** 2)

    return Keeper(init, follow)


def embedded(s: Seen) -> Any:
    """phi~ of V_k, as the learner has it."""
    return s.scene.parts.estimator.embed(s.after.V)


# ---- features and data


@claim("N1a", "phi~_k = sum_x' (c / (m q)) psi U_k, with the m draws that it names", "sampled features")
def features(s: Seen) -> tuple[Array, Array]:
    U, middle, _ = split(s.scene, s.after.V)
    found = embedded(s)
    return worst(np.abs(found.phi - phi_of(s.scene, U)), np.abs(found.middle - middle[:, None, None])), nil(s)


@claim("N1b", "||phi - phi~|| <= eps, at V_k and at a corner of [0, H]^X", "sampled features")
def error_is_covered(s: Seen) -> tuple[Array, Array]:
    """phi from the truth, phi~ and eps from the learner."""
    corner = np.random.default_rng(s.k).integers(0, 2, size=(1, s.scene.mdp.states)) * s.scene.H  # for all seeds
    found = []
    for V, known in ((s.after.V, embedded(s)), (corner, s.scene.parts.estimator.embed(corner))):
        missed = np.linalg.norm(s.scene.phi(split(s.scene, V)[0]) - known.phi, axis=-1)
        found.append(worst(missed - known.error))
    return np.maximum(*found), nil(s)


@claim("N1c", "||phi~_k|| <= B H, B for phi~", "Assumption 5.3")
def features_are_bounded(s: Seen) -> tuple[Array, Array]:
    return worst(np.linalg.norm(embedded(s).phi, axis=-1)), nil(s) + drawn(s.scene).bound * s.scene.H


claim("N2a", "Lambda = lambda I + sum phi~ phi~^T, b = sum phi~ U(y), over t < T_k", "Algorithm 3",
      phase="data")(lambda s: lemmas.regression(s, s.own))  # fmt: skip


@claim("N2b", "the bias is sum eps_t(x_t, a_t)^2, over t < T_k", "sampled features", phase="data")
def squares(s: Seen) -> tuple[Array, Array]:
    return relative(s.data.bias[:, None], s.own.bias[:, None]), nil(s)


@claim("N2c", "P_hat V_k = c + <phi~_k, Lambda^-1 b>", "Algorithm 3")
def estimate(s: Seen) -> tuple[Array, Array]:
    U, middle, _ = split(s.scene, s.after.V)
    theta = solved(s.own.covariance, s.own.response)
    right = middle[:, None, None] + np.einsum("nxad,nd->nxa", phi_of(s.scene, U), theta)
    return lemmas.estimate(s, right)


def bonus(s: Seen, scale: float) -> Array:
    """The bonus that is proved to be valid, times `scale`   (n, X, A)."""
    U, _, size = split(s.scene, s.after.V)
    B, eps = B_theta(s.scene), size[:, None, None] * drawn(s.scene).errors
    radius = mixture_beta(s.scene, drawn(s.scene).bound) + B * np.sqrt(s.own.bias)
    return scale * (radius[:, None, None] * in_norm(s.own.covariance, phi_of(s.scene, U)) + B * eps)


@claim("N2d", "CB_k = (beta + B_theta sqrt(sum eps_t^2)) ||phi~_k|| + B_theta eps_k", "sampled features")
def bonuses(s: Seen) -> tuple[Array, Array]:
    return lemmas.bonus(s, bonus(s, float(s.scene.stated.scale)))


# ---- why it is valid


@claim("N3", "P_hat V_k - P V_k by noise, shift, lambda theta and <theta, phi - phi~>", "Appendix A.2")
def error_identity(s: Seen) -> tuple[Array, Array]:
    U, theta, b = split(s.scene, s.after.V)[0], theta_of(s.scene), s.own
    by = solved(b.covariance, b.noise + b.shift - lam(s.scene) * theta)
    phi = phi_of(s.scene, U)
    return lemmas.error(s, np.einsum("nxad,nd->nxa", phi, by) - (s.scene.phi(U) - phi) @ theta)


@claim("N4", "||sum phi~_i z_i|| <= B_theta sqrt(bias)", "sampled features", phase="data")
def shift_is_covered(s: Seen) -> tuple[Array, Array]:
    """The shift from the truth, the bias from the learner."""
    return in_norm(s.own.covariance, s.own.shift), B_theta(s.scene) * np.sqrt(s.data.bias)


@claim("N5", "||sum phi~_i n_i|| <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta))", "Theorem C.2", kind="P",
       phase="data")  # fmt: skip
def self_normalised(s: Seen) -> tuple[Array, Array]:
    return lemmas.self_normalised(s, s.own.covariance, s.own.noise)


@claim("N6", "|(P - P_hat) V_k| <= CB_k of scale 1, whatever the scale", "Lemma 5.4", kind="P")
def validity(s: Seen) -> tuple[Array, Array]:
    return lemmas.within(s, bonus(s, 1.0))


@claim("N7", "e <= S (sqrt(s / m) + sqrt(2 ln(X A / delta) / m)), for draws by the run's seeds", "McDiarmid", kind="P",
       phase="run")  # fmt: skip
def deviations(e: Evidence) -> tuple[Array, Array]:
    """With probability 1 - delta over the draws: made once more by each seed, with the library's own `draw`."""
    problem, m = e.scene.mdp.problem, e.scene.stated.samples
    limit = deviation(problem, m, delta_of(e.scene))
    found = [draw(problem, m, seed, centre=has(e.scene, "centre")).errors for seed in e.run.seeds]
    return np.array([(errors - limit).max() for errors in found]), np.zeros(e.n)


# ---- the bounds


def numbers(scene: Scene) -> dict[str, float]:
    made, most = drawn(scene), scene.H / 2 if has(scene, "centre") else scene.H
    return {
        "bound": made.bound, "parameter_bound": B_theta(scene), "error": most * float(made.errors.max()),
        "regularization": lam(scene), "delta": delta_of(scene),
    }  # fmt: skip


def bonus_sum(scene: Scene) -> float:
    """Infinite where bonuses are larger than the theorem's."""
    if scene.stated.scale > 1:
        return np.inf
    return theory.bonus_sum(scene.H, scene.mdp.dimension, scene.steps, **numbers(scene))


def explicit(scene: Scene) -> float:
    """Infinite where the constants are not the theorem's."""
    mdp, T = scene.mdp, scene.steps
    if scene.stated.scale != 1 or not of_theorem_4_1(scene):
        return np.inf
    return theory.corrected(scene.H, mdp.dimension, mdp.actions, T, **numbers(scene)).total


claim("N8", "E sum_{t<=T+} CB_t <= (beta + B_theta eps sqrt(T)) N + B_theta eps (T + gamma H)", "Lemma 5.5",
      kind="E")(lemmas.bonus_sum(bonus_sum))  # fmt: skip
claim("N9", "R_T <= 2 of that + sqrt(2 H^4 log A T) + gamma H^3 sqrt(log A / (2 T)) + 2 H^2 + delta T", "Theorem 5.6",
      kind="E")(lemmas.regret(explicit))  # fmt: skip
