"""Linear MDPs, P(x' | x, a) = <phi(x, a), m(x')> and r(x, a) = <phi(x, a), theta> with phi known; and the hypercube.

Jin, Yang, Wang and Jordan (2020), Provably efficient reinforcement learning with linear function approximation. Where
phi(x, a) lies on the simplex and m_1, ..., m_d are distributions, P is a kernel whatever they are: a pair is a mixture
of d anchors. Three families, all with ||phi(x, a)||_2 <= 1:

    linear              phi(x, a) ~ Dirichlet(1, ..., 1): every pair is a mixture of all anchors
    linear/aggregated   phi(x, a) = e_{g(x), a}: states of a group are the same to every action; d = groups * actions
    hypercube/linear    the kernel of `hypercube`, with phi(x0, a) = (alpha a, beta, 0) and phi(x1, a) = (0, ..., 0, 1)

m_j ~ Dirichlet(1, ..., 1) on the states, theta uniform on [0, 1]^d, nu_0 uniform in the first two. A Dirichlet draw is
a row of exponentials, -log of uniforms, normalised: the last digit of a logarithm may differ between machines.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import instance_name, uniforms
from ravi.mdps.tables import ROUNDING, from_features, from_linear
from ravi.validation import require_memory, require_table

LARGEST = 20  # 2^19 actions


def hypercube(dimension: int = 5, discount: float = 0.9, margin: float | None = None, seed: int = 0) -> MDP:
    """One of 2^(d - 1) actions is best by a small `margin`: a lower-bound instance for linear mixtures.

    `margin` is Delta, by default (1 - gamma) / 2; the seed draws the signs of theta. Action number a has +1 at
    coordinate i where bit i of a is set.

    What is hard for a linear mixture: 2^(d-1) actions, told apart by a small inner product.

    After the lower bound of Zhou, He and Gu (2021), Provably efficient reinforcement learning for discounted MDPs with
    feature mapping. States x0 (r = 0, the start) and x1 (r = 1), actions a in {-1, 1}^(d-1), a hidden theta in {-Delta
    / (d-1), Delta / (d-1)}^(d-1), delta = 1 - gamma:

        P(x1 | x0, a) = delta + <a, theta>,      P(x0 | x1, a) = delta.

    With alpha = sqrt(Delta / ((d-1) (1 + Delta))) and beta = sqrt(1 / (1 + Delta)) the features are

        psi(x0, a, x0) = (-alpha a, beta (1 - delta)),   psi(x0, a, x1) = (alpha a, beta delta),
        psi(x1, a, x0) = (0, beta delta),                psi(x1, a, x1) = (0, beta (1 - delta)),

    and the parameter is (theta / alpha, 1 / beta), of norm 1 + Delta exactly: B_theta = 1 + Delta, B_phi = 1. (The
    largest ||phi_V|| / H is beta, at V = H.) A policy with <E a, theta> = m at x0 has, with p = delta + m and c = 1 -
    gamma + gamma (delta + p),

        rho = gamma p / c,   V(x0) = gamma p / ((1 - gamma) c),   V(x1) = (1 - gamma + gamma p) / ((1 - gamma) c);

    the best action is sign(theta), with m = Delta.
    """
    d = validation.whole(dimension, "dimension", 2, LARGEST)
    gamma = validation.probability(discount, "discount")
    delta = 1 - gamma
    Delta = delta / 2 if margin is None else validation.positive(margin, "margin")
    most = min(delta, gamma)  # probabilities delta - Delta >= 0 and delta + Delta <= 1
    if Delta > most + ROUNDING:
        raise validation.InputError(
            f"margin is {Delta:g}; with discount {gamma:g} it must be at most min(1 - gamma, gamma) = {most:g}"
        )
    seed = validation.whole(seed, "seed", 0)
    sign = np.where(uniforms(seed)(d - 1) < 0.5, 1.0, -1.0)
    A = 2 ** (d - 1)
    name = instance_name("hypercube", d, margin=(margin, None), seed=(seed, 0))
    require_table(name, "dimension", 2, A, 2, d, scattered=False)
    a = np.where(np.arange(A)[:, None] >> np.arange(d - 1) & 1, 1.0, -1.0)  # (A, d-1)
    alpha, beta = np.sqrt(Delta / ((d - 1) * (1 + Delta))), np.sqrt(1 / (1 + Delta))
    psi = np.zeros((2, A, 2, d))
    psi[0, :, 0, :-1], psi[0, :, 1, :-1] = -alpha * a, alpha * a
    psi[0, :, :, -1] = beta * (1 - delta), beta * delta
    psi[1, :, :, -1] = beta * delta, beta * (1 - delta)
    r = np.zeros((2, A))
    r[1] = 1
    return from_features(
        psi, [*(sign * (Delta / (d - 1) / alpha)), 1 / beta], np.broadcast_to(np.arange(2), (2, A, 2)), r, gamma, 0,
        parameter_bound=1 + Delta, feature_bound=1.0, name=name,
    )  # fmt: skip


def linear(states: int = 50, actions: int = 4, dimension: int = 5, seed: int = 0, discount: float = 0.9) -> MDP:
    """Every pair of a random linear MDP is a mixture of d distributions, with known weights."""
    X, A, d = _sizes(states, actions, dimension, "dimension")
    seed = validation.whole(seed, "seed", 0)
    draw, name = uniforms(seed), instance_name("linear", X, A, d, seed=(seed, 0))
    _require_room(name, "dimension", X, A, d)
    phi, m, theta = _simplex(draw, X, A, d), _simplex(draw, d, X), draw(d)
    return from_linear(phi, m, theta, discount, np.full(X, 1 / X), name=name)


def aggregated(states: int = 50, actions: int = 4, groups: int = 5, seed: int = 0, discount: float = 0.9) -> MDP:
    """States of a group have the same kernel and rewards, which makes the MDP linear.

    Groups are neighbours, of sizes as equal as possible: x belongs to group x * groups // X.
    """
    X, A, G = _sizes(states, actions, groups, "groups")
    if G > X:
        raise validation.InputError(f"groups is {G}; there are only {X} states to put into them")
    seed = validation.whole(seed, "seed", 0)
    draw, name = uniforms(seed), instance_name("linear/aggregated", X, A, G, seed=(seed, 0))
    _require_room(name, "groups", X, A, G * A)
    m, theta = _simplex(draw, G * A, X), draw(G * A)
    phi = np.eye(G * A).reshape(G, A, G * A)[np.arange(X) * G // X]
    return from_linear(phi, m, theta, discount, np.full(X, 1 / X), name=name)


def hypercube_linear(dimension: int = 5, discount: float = 0.9, margin: float | None = None, seed: int = 0) -> MDP:
    """The MDP of `hypercube` has features of state-action pairs too, so that it is also a linear MDP.

    Its other numbers are those of `hypercube`, to the bit. phi has one coordinate more than psi: d + 1. With (theta /
    alpha, 1 / beta) the parameter of the mixture and delta = 1 - gamma, m(x0) = (-theta / alpha, (1 - delta) / beta,
    delta), m(x1) = (theta / alpha, delta / beta, 1 - delta). ||phi(x, a)|| = 1.
    """
    mixture = hypercube(dimension, discount, margin, seed)
    psi = mixture.features
    assert psi is not None
    d = mixture.dimension
    phi = np.zeros((2, mixture.actions, d + 1))
    phi[0, :, : d - 1] = psi[0, :, 1, : d - 1]  # alpha a
    phi[0, :, d - 1] = psi[0, :, :, d - 1].sum(-1)  # beta (1 - delta) + beta delta
    phi[1, :, d] = 1
    return replace(mixture, pair_features=phi, name=mixture.name.replace("hypercube", "hypercube/linear", 1))


def _sizes(states: int, actions: int, third: int, name: str) -> tuple[int, int, int]:
    X = validation.whole(states, "states")
    return X, validation.whole(actions, "actions", 1), validation.whole(third, name, 1)


def _require_room(name: str, third: str, X: int, A: int, d: int) -> None:
    """Its kernel is dense; phi is (X, A, d), m is (d, X), and both are copied a few times on the way."""
    require_table(name, "states or actions", X, A, X)
    require_memory(40 * d * X * (A + 1), f"the features of {name}", f"states, actions or {third}")


def _simplex(draw: Callable[..., np.ndarray], *shape: int) -> np.ndarray:
    """Dirichlet(1, ..., 1) along the last axis."""
    exponentials = -np.log1p(-draw(*shape))  # of 1 - u, which is never 0
    return exponentials / exponentials.sum(-1, keepdims=True)
