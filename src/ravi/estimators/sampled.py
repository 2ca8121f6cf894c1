"""Ridge regression on features that are integrated by sampling m successors, with a known error.

phi_V(x, a) = sum_x' psi(x, a, x') V(x') costs as much as the support is large. Here m successors are drawn once for
each pair, from q(. | x, a) in proportion to sum_c |psi_c|, and kept: with c(x') how often x' was drawn,

    phi~_V(x, a) = sum_x' psi~(x, a, x') V(x'),    psi~ = c / (m q) psi,

which is linear in V, the same at every call, and unbiased over the draws. (Fresh draws at every call would give the
bonus and the regression different features.) For d simulators q is the uniform mixture of their kernels. Draws are
stratified: the j-th uses a number in [(j - 1)/m, j/m). A pair with at most m successors is kept whole, psi~ = psi.

The error. With D = psi - psi~, and D_c^+, D_c^- the sums over x' of its positive and negative parts,

    ||phi_V - phi~_V||_2 <= max V e(x, a),             e = || (max(D_c^+, D_c^-))_c ||_2      for V >= 0
    ||phi_U - phi~_U||_2 <= (sp(V) / 2) e(x, a),       e = || (D_c^+ + D_c^-)_c ||_2          for U = V - c, centred

for every V at once: each coordinate is at its own extreme. e is computed, once, from psi. Where psi cannot be summed,
the draws have it, with S = sum_{x', c} |psi_c| (d for simulators) and s the support, for all pairs at once with
probability 1 - delta:

    e(x, a) <= S (sqrt(s / m) + sqrt(2 ln(X A / delta) / m)).                                  (`deviation`)

Proof. |psi_c| <= S q, so E[D_c(x')^2] <= psi_c^2 / (m q) <= S |psi_c| / m (strata only lessen the variance), and
E[e]^2 <= sum_c E[(sum_x' |D_c|)^2] <= s sum_{c, x'} E[D_c^2] <= s S^2 / m. A draw that is replaced moves the vector by
at most 2 S / m in norm: McDiarmid. The root of s is the price of a supremum over V, which V_k needs, since it depends
on the draws; for one V that was chosen before them it would not be there. So m must be of the order of s to say much.

Misspecification. A target is V_i(y) = <theta, phi~_i> + noise + z_i, |z_i| <= B eps_i, B >= ||theta||, with eps_i the
right side above at (x_i, a_i) and V_i. Since Phi (lambda I + Phi^T Phi)^{-1} Phi^T <= I, ||sum phi~_i z_i||_{Lambda^-1}
is at most sqrt(sum z_i^2), and so

    |(P V - P_hat V)(x, a)| <= (beta + B sqrt(sum_i eps_i^2)) ||phi~_V(x, a)||_{Lambda^{-1}} + B eps(x, a),

beta that of Lemma 5.4 for features of the norm of phi~. The sum is over the steps so far: `bias`.

Centred: P V = c + P (V - c) since rows have mass 1, so <theta, phi_{V-c}> = P V - c, and all holds with U = V - c in
place of V, c = (max V + min V) / 2. The error is then in parts of the span of V, and a constant V is backed up exactly.
"""

from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import beside, first, over_seeds
from ravi.core import Array, Data, Estimator, Path, Problem
from ravi.estimators.centred import standard
from ravi.estimators.ridge import Regression, ridge
from ravi.mdps.building import uniforms
from ravi.runtime.ranges import Number, Positive


class Draws(NamedTuple):
    """Features of the successors that were drawn, and how far off they are."""

    problem: Problem  # with psi~ in place of psi, on at most m successors
    errors: Array  # e(x, a)                                    (X, A)
    feature_bound: float  # >= ||phi~|| / H
    centre: bool  # whether it is V less its middle that is regressed


class Embedded(NamedTuple):
    """V as it is estimated."""

    phi: Array  # phi~ of U             (n, X, A, d)
    middle: Array  # c, or 0            (n, 1, 1)
    size: Array  # max |U|              (n, 1, 1)
    error: Array  # eps >= ||phi - phi~||   (n, X, A)


class Sampled(NamedTuple):
    covariance: Number  # Lambda   (n, d, d)
    response: Number  # b              (n, d)
    root: Number  # R, upper triangular, Lambda^{-1} = R R^T   (n, d, d)
    bias: Positive  # sum of eps_i^2 over the steps              (n,)


def draw(problem: Problem, samples: int, seed: int = 0, *, centre: bool = False) -> Draws:
    """m = `samples` successors of each pair."""
    if problem.features is None:
        raise validation.InputError(f"{problem.name} has no features: sampled regression needs a linear mixture MDP")
    assert problem.feature_bound is not None
    X, A, B = problem.successors.shape
    m = validation.whole(samples, "samples")
    psi = np.asarray(problem.features).reshape(X * A, B, -1)
    size = np.abs(psi).sum(-1)  # (X A, B)
    weights = _weights(np.ascontiguousarray(size), size > 0, uniforms(seed)(X * A, m))
    kept = np.argsort(weights == 0, axis=-1, kind="stable")[:, : min(m, B)]  # the drawn ones, then others
    kept.sort(axis=-1)
    drawn = np.take_along_axis(weights[..., None] * psi, kept[..., None], axis=1)
    successors = np.take_along_axis(problem.successors.reshape(X * A, B), kept, axis=1)
    errors = _largest((1 - weights)[..., None] * psi, centre).reshape(X, A)
    kept_problem = replace(
        problem,
        successors=successors.reshape(X, A, -1),
        support=None,
        features=drawn.reshape(X, A, kept.shape[1], -1),
        feature_bound=None,
    )
    most = float(errors.max()) / (2 if centre else 1)
    return Draws(kept_problem, errors, problem.feature_bound + most, centre)


def deviation(problem: Problem, samples: int, delta: float) -> Array:
    """A bound on e(x, a) for all pairs at once, with probability 1 - delta over the draws   (X, A)."""
    assert problem.features is not None
    size = np.abs(problem.features).sum(-1)  # (X, A, B)
    s, pairs = (size > 0).sum(-1), size.shape[0] * size.shape[1]
    bound = size.sum(-1) * (np.sqrt(s / samples) + np.sqrt(2 * log(pairs / delta) / samples))
    return np.where(s <= samples, 0.0, bound)


def sampled(draws: Draws, regularization: float = 1.0) -> Estimator:
    """Ridge regression on phi~, and the sum of the squared errors of what was played."""
    base, e = ridge(draws.problem, regularization), np.ascontiguousarray(draws.errors)
    inner = standard(base, centre=draws.centre, span=False, clip=False)

    def size(V: Array) -> Array:
        return (V.max(-1) - V.min(-1)) / 2 if draws.centre else V.max(-1)

    def init(n: int) -> Sampled:
        D = base.init(n)
        return Sampled(D.covariance, D.response, D.root, np.zeros(n))

    def embed(V: Array) -> Embedded:
        phi, most = inner.embed(V), size(V)[:, None, None]
        return Embedded(phi.inner, phi.middle, most, most * beside(e, most))

    def expect(D: Sampled, phi: Embedded) -> Array:
        return phi.middle + base.expect(D, phi.phi)

    def width(D: Sampled, phi: Embedded) -> Array:
        return base.width(D, phi.phi)

    def add(D: Sampled, V: Array, path: Path) -> Data:
        inner.add(Regression(*D[:3]), V, path)
        over_seeds(_add_squares, V, e, size(V), D.bias, path.state, path.action, path.length)
        return D

    return Estimator(init, embed, expect, width, add)


def _largest(D: Array, centre: bool) -> Array:
    """e: sup over V in [0, 1]^B, or over U in [-1, 1]^B, each coordinate at its own extreme   (pairs,)."""
    plus, minus = np.maximum(D, 0).sum(1), np.maximum(-D, 0).sum(1)
    return np.linalg.norm(plus + minus if centre else np.maximum(plus, minus), axis=-1)


@compiled
def _weights(q, support, u):  # type: ignore[no-untyped-def]
    """c / (m q), or 1 on a support of at most m successors; 0 elsewhere, so that the support is kept   (pairs, B)."""
    pairs, B = q.shape
    m = u.shape[1]
    weights = np.zeros((pairs, B))
    for p in range(pairs):
        if support[p].sum() <= m:
            weights[p] = np.where(support[p], 1.0, 0.0)
            continue
        total, j, mass = q[p].sum(), 0, q[p, 0]
        for i in range(m):
            level = (i + u[p, i]) / m * total
            while mass <= level and j < B - 1:
                j += 1
                mass += q[p, j]
            weights[p, j] += 1.0
        for j in range(B):
            if q[p, j] > 0.0:
                weights[p, j] *= total / (m * q[p, j])
    return weights


@compiled
def _add_squares(low, high, e, size, bias, state, action, length):  # type: ignore[no-untyped-def]
    """Add the squared errors of the steps of seeds low, ..., high - 1; a team's."""
    for i in range(low, high):
        if first():
            for l in range(length[i]):
                bias[i] += (size[i] * e[state[i, l], action[i, l]]) ** 2
