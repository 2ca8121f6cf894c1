"""RLSVI: randomised least-squares value iteration. Noise in the weights takes the place of a bonus.

Paper: I. Osband, B. Van Roy, Z. Wen, "Generalization and exploration via randomized value functions", ICML 2016.
Setting: finite horizon, values linear in features of dimension d.
Trust: CHECKED against the proceedings (Algorithms 1 and 2, Theorem 1): the posterior of the weights, stage by stage,
and who is greedy in what. Compared with a literal transcription that stores all samples and draws the same noise.

At every reset, with V_S = 0, for h = S - 1, ..., 0:

    Lambda = lambda I + sum_t phi_t phi_t^T
    w_h ~ N(Lambda^{-1} sum_t phi_t gamma V_{h+1}(y_t), sigma^2 Lambda^{-1}),   independently of each other
    Q_h(x, a) = Pi_[0, H][r(x, a) + <phi(x, a), w_h>],   V_h(x) = max_a Q_h(x, a)

and at age h argmax_a Q_h(x, a) is played.

Constants: sigma = scale H sqrt(d), lambda = 1. The paper takes sigma as given, at least sqrt(H^2 + 1) in its theorem;
the noise of a target is at most H / 2 here; sqrt(d) is what analyses of the worst case pay for optimism with constant
probability, logarithms left out. S as in LSVI-UCB: gamma^S H <= `truncation` (0.01).
Guarantee: expected regret sqrt(X A S^3 T) up to logarithms, averaged over a prior with one-hot features (the paper);
in the worst case O(d^2 H^2 sqrt(T)) for versions with more noise and truncation (Zanette et al., 2020).
Composition: least squares for any target x Gaussian noise x backward pass x at resets.
Cost: d^2 per step, d with one-hot features; d^3 + S (d^2 + nnz(K) + nnz(phi) + X A) and S d Gaussians per plan; T / H
plans.
Deviations: rewards are known, so gamma P_hat V alone is perturbed. The paper's lambda, of its prior, is lambda /
sigma^2 here. Q is clipped to [0, H] (the paper's is not). One regression serves all stages, each with noise of its
own. Gaussians come by Box and Muller's formula from the numbers i >= 4 of the time of the next step. `delta` has no
part in it.
"""

from math import cos, log1p, sin, sqrt

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.estimators.linear import features_of
from ravi.estimators.ridge import invert_root
from ravi.learners.linear.core import State, least_squares
from ravi.learners.linear.least_squares import Backups, backward, lists
from ravi.learners.options import Regression, takes
from ravi.planning.evaluation import effective_horizon
from ravi.random import block


@takes()
def rlsvi(problem: Problem, T: int, o: Regression, truncation: float = 0.01) -> Learner:
    """RLSVI with sigma = scale H sqrt(d)."""
    scale, delta, lam = o
    r, gamma, H, phi = problem.rewards, problem.discount, problem.horizon, features_of(problem)
    S, d = effective_horizon(problem, truncation), phi.shape[-1]
    sigma = scale * H * sqrt(d)
    pairs, backups = lists(phi), Backups(gamma, cap=H, last=0.0)

    def make(s: State) -> None:
        xi = gaussians(s.data.covariance, sigma, S, s.key, s.time)
        none = np.zeros((len(xi), *r.shape))
        backward(r, pairs, s.data, none, backups, s.values, s.policy, xi)  # Q_h, V_h

    settings = {"sigma": sigma, "scale": scale, "truncation": truncation}
    return least_squares(
        problem, make, name="rlsvi", stages=S, ages=S, regularization=lam, replan="reset", settings=settings
    )


def gaussians(covariance: Array, sigma: float, stages: int, key: Array, time: Array) -> Array:
    """xi (n, S, d): independent draws of N(0, sigma^2 Lambda^{-1}) for every seed and stage."""
    n, d, _ = covariance.shape
    xi = np.empty((n, stages, d))
    _gaussians(covariance, sigma, key, time, xi)
    return xi


@compiled
def _gaussians(covariance, sigma, key, time, xi):  # type: ignore[no-untyped-def]
    n, S, d = xi.shape
    R, z, ends = np.empty((d, d)), np.empty(S * d + 3), np.empty(d, np.int64)
    for i in range(n):
        for part in range((S * d + 3) // 4):  # four uniform numbers make four Gaussians
            u0, u1, u2, u3 = block(key[i], time[i], part + 1)
            first, second = sigma * sqrt(-2 * log1p(-u0)), sigma * sqrt(-2 * log1p(-u2))
            z[4 * part], z[4 * part + 1] = first * cos(2 * np.pi * u1), first * sin(2 * np.pi * u1)
            z[4 * part + 2], z[4 * part + 3] = second * cos(2 * np.pi * u3), second * sin(2 * np.pi * u3)
        invert_root(covariance[i], R)  # Lambda^{-1} = R R^T, R upper triangular
        for j in range(d):  # where the entries of a row end; one-hot features have one
            ends[j] = d
            while R[j, ends[j] - 1] == 0.0:
                ends[j] -= 1
        for h in range(S):
            for j in range(d):
                total = 0.0
                for c in range(j, ends[j]):
                    total += R[j, c] * z[h * d + c]
                xi[i, h, j] = total
