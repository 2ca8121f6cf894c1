"""Least-squares value iteration for linear MDPs, by backward passes: LSVI-UCB, OLSVI.FH, gamma-LSCVI-UCB and RLSVI."""

from math import ceil, cos, log, log1p, sin, sqrt

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.estimators.linear import features_of, width
from ravi.estimators.ridge import invert_root
from ravi.learners.linear.least_squares import Backups, State, backward, least_squares, lists
from ravi.learners.options import Regression, bias_span, nearly_average, takes
from ravi.planning.evaluation import effective_horizon
from ravi.random import block


@takes()
def lsvi_ucb(problem: Problem, T: int, o: Regression, truncation: float = 0.01, replan: str = "reset") -> Learner:
    """LSVI-UCB: least-squares value iteration with an elliptic bonus.

    Paper: C. Jin, Z. Yang, Z. Wang, M. I. Jordan, "Provably efficient reinforcement learning with linear function
    approximation", COLT 2020.
    Setting: episodes, or discounted; linear MDP of dimension d.
    Trust: CHECKED: recursion, lambda and beta against public transcriptions of the paper's Algorithm 1 and Theorem 3.1
    (the proceedings have an abstract only); the regression agrees with public code on the same samples
    (docs/explanation/trust.md). Compared with a literal transcription that stores all samples.

    At every reset, with V_S = 0, for h = S - 1, ..., 0:

        Lambda = lambda I + sum_t phi_t phi_t^T,   w_h = Lambda^{-1} sum_t phi_t V_{h+1}(y_t)
        Q_h(x, a) = Pi_[0, H][r(x, a) + gamma <phi(x, a), w_h> + beta ||phi(x, a)||_{Lambda^{-1}}],   V_h(x) = max_a Q_h

    and at age h, h plays after the reset, argmax_a Q_h(x, a) is played.

    Constants: beta = scale d H sqrt(ln(2 d T / delta)), lambda = 1, delta = 1/T. The paper has an absolute constant c
    before d that it does not specify; here c = 1. S is the least with gamma^S H <= `truncation` (0.01): the values of S
    stages miss no more than that of the discounted ones, and the last stage is played at all later ages.
    Guarantee: regret O(sqrt(d^3 H^3 T)) up to logarithms, H the horizon, in the finite-horizon setting.
    Composition: least squares for any target x beta ||phi||_{Lambda^-1} x backward pass x at resets (or determinant).
    Cost: d^2 per step, d with one-hot features; d^3 + S (nnz(K) + nnz(phi) + X A) per plan, K the d x X matrix of
    `ravi.learners.linear.least_squares`; T / H plans, or (d / ln 2) ln(1 + T / (lambda d)) with replan=determinant.
    Deviations: in episodes (`criterion=episodic`) S is their length, H is S, and gamma = 1, as in the paper; with a
    discount, stages are discounted, and an episode is what lies between two resets. The kernel is the same at every
    stage, so one regression serves all (the paper has one for each). Rewards are known: only V is regressed on. Q is
    clipped at 0 too. replan=determinant plans only when det Lambda has doubled, as low-switching versions of the method
    do, and not in episodes, where policies last. Ridge regression shrinks to 0: what was never played is worth r + beta
    / sqrt(lambda) ||phi||, so that with a small scale it is pessimistic until others are known worse.

    LSVI-UCB with c = 1; `scale` multiplies beta; `replan` is "reset" or "determinant".
    """
    scale, delta, lam = o
    if validation.one_of(replan, ("reset", "determinant"), "replan") == "determinant" and problem.episode is not None:
        raise validation.InputError("replan is 'determinant', which plans within episodes: in episodes it is 'reset'")
    r, gamma, H, phi = problem.rewards, problem.discount, float(problem.largest_value), features_of(problem)
    S = effective_horizon(problem, truncation)
    beta = scale * bonus_factor(H, phi.shape[-1], T, delta)
    pairs, backups = lists(phi), Backups(gamma, cap=H, last=0.0)

    def make(s: State) -> None:
        CB = beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_h, V_h

    settings = {"beta": beta, "scale": scale, "delta": delta, "truncation": truncation}
    return least_squares(
        problem, make, name="lsvi-ucb", stages=S, ages=S, regularization=lam, replan=replan, settings=settings
    )


def bonus_factor(H: float, d: int, T: int, delta: float) -> float:
    """beta / scale for values in [0, H]."""
    return d * H * sqrt(log(2 * d * T / delta))


@takes()
def olsvi_fh(problem: Problem, T: int, o: Regression, span: float | None = None, truncation: float = 0.01) -> Learner:
    """OLSVI.FH: least-squares value iteration on blocks of steps, each taken for an episode of its own.

    Paper: C.-Y. Wei, M. Jafarnia-Jahromi, H. Luo, R. Jain, "Learning infinite-horizon average-reward MDPs with linear
    function approximation", AISTATS 2021.
    Setting: average reward, linear MDP of dimension d, span of the optimal bias known.
    Trust: CHECKED against the proceedings (Algorithm 2): the length of a block, lambda, beta with its 40, and one
    regression for all stages, as here. Compared with a literal transcription.

    Blocks of B = max{sqrt(sp) T^{1/4} / d^{3/4}, (sp T / d^2)^{1/3}} plays, sp the span of the optimal bias. At the
    start of every block, with V_B = 0, for h = B - 1, ..., 0:

        w_h = Lambda^{-1} sum_t phi_t V_{h+1}(y_t)
        Q_h(x, a) = Pi_[0, H_B][r(x, a) + gamma <phi(x, a), w_h> + beta ||phi(x, a)||_{Lambda^{-1}}],
        V_h(x)    = max_a Q_h

    and at step h of the block argmax_a Q_h(x, a) is played. H_B = sum_{h < B} gamma^h is what a block can be worth.

    Constants: beta = scale 40 d H_B sqrt(ln(T / delta)), the paper's, with the range H_B of a block's values for its
    length; lambda = 1, delta = 1/T; sp = H unless `span` is given (the span of V* is at most H); B is rounded up, and
    is at most the S of `truncation`: gamma^S H <= 0.01.
    Guarantee: regret O(sqrt(sp) (d T)^{3/4} + (sp d T)^{2/3}) up to logarithms, for the average reward.
    Composition: least squares for any target x beta ||phi||_{Lambda^-1} x backward pass of B stages x at blocks.
    Cost: d^2 per step, d with one-hot features; d^3 + B (nnz(K) + nnz(phi) + X A) per plan; a plan for each block.
    Deviations: a block ends at a reset too, since steps after it do not follow from steps before. A block then begins
    at every age that is a multiple of B, so the plan repeated, stage (age mod B) at every age, is what would be played
    from a fresh reset if learning stopped; it is played and scored as that for ages up to the least multiple of B that
    is at least S, and the last stage from there on, which matters with probability gamma^S <= truncation / H. With
    resets the expected reward of a block is its sum discounted by gamma; the paper has gamma = 1,
    H_B = B. Rewards are known; Q is clipped at 0 too.

    OLSVI.FH; `scale` multiplies beta; `span` is sp, H unless given.
    """
    scale, delta, lam = o
    r, gamma, phi = problem.rewards, problem.discount, features_of(problem)
    sp = problem.horizon if span is None else validation.positive(span, "span")
    S = effective_horizon(problem, truncation)
    B = min(block_length(sp, phi.shape[-1], T), S)
    H_B = sum(gamma**h for h in range(B))
    beta = scale * 40 * phi.shape[-1] * H_B * sqrt(log(T / delta))
    pairs, backups = lists(phi), Backups(gamma, cap=H_B, last=0.0)

    def make(s: State) -> None:
        CB = beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_h, V_h

    settings = {"beta": beta, "scale": scale, "delta": delta, "span": sp, "truncation": truncation}
    ages = B * ceil(S / B)
    return least_squares(
        problem, make, name="olsvi-fh", stages=B, ages=ages, regularization=lam, replan="block", settings=settings
    )


def block_length(span: float, d: int, T: int) -> int:
    """The paper's number of steps in a block, rounded up; of a span that is too large for a number, any large one."""
    return ceil(min(max(sqrt(span) * T**0.25 / d**0.75, (span * T / d**2) ** (1 / 3)), validation.MOST))


@takes()
def gamma_lscvi_ucb(
    problem: Problem, T: int, o: Regression, span: float | None = None, truncation: float = 0.01
) -> Learner:
    """gamma-LSCVI-UCB: least-squares value iteration, centred and clipped to a span.

    Paper: K. Hong, W. Chae, Y. Zhang, D. Lee, A. Tewari, "Reinforcement learning for infinite-horizon average-reward
    linear MDPs via approximation by discounted-reward MDPs", AISTATS 2025.
    Setting: average reward, linear MDP of dimension d, a bound on the span known; solved by discounting.
    Trust: CHECKED against the proceedings (Algorithm 2, Theorem 5): the iteration, phases, centring, clipping, lambda,
    beta and H_c; its constant c_beta is left open there. Compared with a literal transcription.

    In the phase that starts at t_k, with V_U = H, for u = U - 1, ..., 0:

        m = min_x V_{u+1}(x),   w_u = Lambda^{-1} sum_{t < t_k} phi_t (V_{u+1}(y_t) - m)
        Q_u(x, a) = Pi_[0, H][r(x, a) + gamma (<phi(x, a), w_u> + m + beta ||phi(x, a)||_{Lambda^{-1}})]
        V~_u(x) = max_a Q_u(x, a),   V_u(x) = min{V~_u(x), min V~_u + H_c}

    then argmax_a Q_0(x, a) is played until det Lambda has doubled.

    Constants: beta = 2 scale sp d sqrt(ln(d T / delta)), the paper's constant c_beta taken as 1; H_c = 2 sp. With
    `span` given, sp is it; else H_c = H, of which every value function is capable, and sp = H / 2. lambda = 1, delta =
    1/T.
    Guarantee: regret O(sp sqrt(d^3 T)) up to logarithms, for the average reward.
    Composition: least squares for any target x beta ||phi||_{Lambda^-1} x centred, clipped backward pass x determinant.
    Cost: d^2 per step; d^3 + U (nnz(K) + nnz(phi) + X A) per plan; at most (d / ln 2) ln(1 + T / (lambda d)) plans.
    In the average reward, with sp >= span(h*) given as `span`, gamma = 1 - 1 / sqrt(T): the order of the paper's
    choice, up to logarithms (recalled, MEM-M).
    Deviations: with a discount, gamma is the MDP's. The paper makes T - t_k + 1 backups and plays Q_u at
    time u. Here U is the least number with gamma^U H <= `truncation` (0.01), after which backups from H have converged
    to that (where they converge), and the last, Q_0, is played throughout. Rewards are known; Q is
    clipped at 0 too.

    gamma-LSCVI-UCB with c_beta = 1; `scale` multiplies beta; `span` is sp.
    """
    scale, delta, lam = o
    sp = bias_span(problem, span, problem.horizon / 2)
    problem = nearly_average(problem, 1 / sqrt(T))
    r, gamma, H, phi = problem.rewards, problem.discount, problem.horizon, features_of(problem)
    U = effective_horizon(problem, truncation)
    beta = scale * centred_bonus_factor(sp, phi.shape[-1], T, delta)
    pairs, backups = lists(phi), Backups(gamma, cap=H, last=H, span=2 * sp, centred=True)

    def make(s: State) -> None:
        CB = gamma * beta * width(s.data, phi)
        backward(r, pairs, s.data, CB, backups, s.values, s.policy)  # Q_u, V_u

    settings = {
        "beta": beta, "scale": scale, "delta": delta, "span": sp, "discount": gamma, "truncation": truncation,
    }  # fmt: skip
    return least_squares(
        problem, make, name="gamma-lscvi-ucb", stages=U, ages=0, regularization=lam, replan="determinant",
        settings=settings,
    )  # fmt: skip


def centred_bonus_factor(span: float, d: int, T: int, delta: float) -> float:
    """beta / scale."""
    return 2 * span * d * sqrt(log(d * T / delta))


@takes()
def rlsvi(problem: Problem, T: int, o: Regression, truncation: float = 0.01) -> Learner:
    """RLSVI: randomised least-squares value iteration. Noise in the weights takes the place of a bonus.

    Paper: I. Osband, B. Van Roy, Z. Wen, "Generalization and exploration via randomized value functions", ICML 2016.
    Setting: episodes, or discounted; values linear in features of dimension d.
    Trust: CHECKED against the proceedings (Algorithms 1 and 2, Theorem 1): the posterior of the weights, stage by
    stage, and who is greedy in what. Compared with a literal transcription that stores all samples and draws the same
    noise.

    At every reset, with V_S = 0, for h = S - 1, ..., 0:

        Lambda = lambda I + sum_t phi_t phi_t^T
        w_h ~ N(Lambda^{-1} sum_t phi_t gamma V_{h+1}(y_t), sigma^2 Lambda^{-1}),   independently of each other
        Q_h(x, a) = Pi_[0, H][r(x, a) + <phi(x, a), w_h>],   V_h(x) = max_a Q_h(x, a)

    and at age h argmax_a Q_h(x, a) is played.

    Constants: sigma = scale H sqrt(d), lambda = 1. The paper takes sigma as given, at least sqrt(H^2 + 1) in its
    theorem; the noise of a target is at most H / 2 here; sqrt(d) is what analyses of the worst case pay for optimism
    with constant probability, logarithms left out. S as in LSVI-UCB: gamma^S H <= `truncation` (0.01).
    Guarantee: expected regret sqrt(X A S^3 T) up to logarithms, averaged over a prior with one-hot features (the
    paper); in the worst case O(d^2 H^2 sqrt(T)) for versions with more noise and truncation (Zanette et al., 2020).
    Composition: least squares for any target x Gaussian noise x backward pass x at resets.
    Cost: d^2 per step, d with one-hot features; d^3 + S (d^2 + nnz(K) + nnz(phi) + X A) and S d Gaussians per plan; T /
    H plans.
    Deviations: in episodes S is their length, H is S, and gamma = 1, as in the paper; with a discount, episodes are
    what lies between resets. Rewards are known, so gamma P_hat V alone is perturbed. The paper's lambda, of its prior,
    is lambda / sigma^2 here. Q is clipped to [0, H] (the paper's is not). One regression serves all stages, each with
    noise of its own. Gaussians come by Box and Muller's formula from the numbers i >= 4 of the time of the next step.
    `delta` has no part in it.

    RLSVI with sigma = scale H sqrt(d).
    """
    scale, delta, lam = o
    r, gamma, H, phi = problem.rewards, problem.discount, float(problem.largest_value), features_of(problem)
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
