"""The paper's equations and lemmas on real runs whose bonuses are valid and whose policies move.

Numbers are those of the compiled paper. Deterministic claims must hold in every epoch; claims in expectation state
their false-alarm rate. Occupancies are dense solves, independent of the library's planning.
"""

from typing import NamedTuple

import numpy as np
import pytest

from ravi.estimators.counts import counts
from ravi.estimators.ridge import parameter, ridge
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, garnets
from ravi.runtime.api import run
from tests.helpers import dense, spy

ATOL = 1e-9


class Epoch(NamedTuple):
    V: np.ndarray  # V_k
    Q: np.ndarray  # Q_{k+1}
    pi: np.ndarray  # pi_k
    CB: np.ndarray  # CB_k
    PV_hat: np.ndarray  # P_hat_k V_k
    nu: np.ndarray
    mu: np.ndarray
    data: object
    steps: list  # (x_t, a_t, y_t)


class Case(NamedTuple):
    mdp: object
    P: np.ndarray
    eta: float
    mu_star: np.ndarray
    pi_star: np.ndarray
    optimum: float
    epochs: list
    lam: float


def occupancies(mdp, P, pi):
    M = np.eye(mdp.states) - mdp.discount * np.einsum("xa,xay->xy", pi, P)
    nu = (1 - mdp.discount) * np.linalg.solve(M.T, mdp.initial)
    return nu, nu[:, None] * pi


def case(mdp, learner, estimator, T, seed):
    P, seen = dense(mdp), []
    made = run(learner, mdp, T, [seed], record=["stream"], measures=[spy(seen)])
    x, a, y = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor"))
    epochs = []
    for (state, path), start in zip(seen, made.T_k[0], strict=True):
        phi = estimator.embed(state.V)
        rows = range(start - 1, start - 1 + path.length[0])
        epochs.append(
            Epoch(
                state.V[0],
                state.Q[0],
                state.policy[0],
                learner.settings["beta"] * estimator.width(state.data, phi)[0],
                estimator.expect(state.data, phi)[0],
                *occupancies(mdp, P, state.policy[0]),
                state.data,
                [(x[t], a[t], y[t]) for t in rows],
            )
        )
    V = np.zeros(mdp.states)
    for _ in range(3000):
        Q = mdp.rewards + mdp.discount * P @ V
        V = Q.max(-1)
    pi_star = np.eye(mdp.actions)[Q.argmax(-1)]
    mu_star = occupancies(mdp, P, pi_star)[1]
    lam = learner.settings.get("regularization", 1.0)
    return Case(mdp, P, learner.settings["eta"], mu_star, pi_star, (mu_star * mdp.rewards).sum(), epochs, lam)


@pytest.fixture(scope="module", params=["tabular", "mixture"])
def valid(request):
    T = 3000
    if request.param == "tabular":
        mdp = garnet(5, 2, 2, 3, 0.8)
        learner = ravi_ucb.tabular(mdp.problem, T, beta=2 * mdp.horizon, eta=0.05)
        return case(mdp, learner, counts(mdp.problem), T, 1)
    mdp = garnets(3, 6, 2, 2, 1, 0.8)
    learner = ravi_ucb.linear_mixture(mdp.problem, T, scale=0.5, eta=0.05)
    return case(mdp, learner, ridge(mdp.problem), T, 1)


def relative_entropy(p, q):
    return (p * np.log(np.where(p > 0, p, 1) / q)).sum(-1)


def test_the_runs_are_worth_checking(valid):
    assert len(valid.epochs) > 400
    moved = np.abs(valid.epochs[-1].pi - valid.epochs[0].pi).max()
    assert moved > 0.2
    assert (valid.mdp.horizon - 0.1 > valid.epochs[-1].Q).any()


def test_equation_1_the_bellman_flow(valid):
    """E^T mu = gamma P^T mu + (1 - gamma) nu_0."""
    for e in valid.epochs[::37]:
        flow = valid.mdp.discount * np.einsum("xa,xay->y", e.mu, valid.P) + (1 - valid.mdp.discount) * valid.mdp.initial
        np.testing.assert_allclose(e.mu.sum(-1), flow, atol=1e-12)


def test_equation_2_the_bonuses_are_valid(valid):
    """|gamma <P - P_hat_k, V_k>| <= CB_k for all (x, a) and k: what the other tests are conditional on."""
    for e in valid.epochs:
        assert (valid.mdp.discount * np.abs(valid.P @ e.V - e.PV_hat) <= e.CB + ATOL).all()


def test_equation_3_truncation_keeps_optimism(valid):
    H, gamma = valid.mdp.horizon, valid.mdp.discount
    assert pytest.approx(H) == 1 + gamma * H
    for e in valid.epochs:
        at_top = e.Q == H
        assert (e.Q[at_top] >= (valid.mdp.rewards + gamma * valid.P @ e.V)[at_top] - ATOL).all()


def test_lemma_4_2_both_bounds_on_the_iterates(valid):
    for e in valid.epochs:
        backup = valid.mdp.rewards + valid.mdp.discount * valid.P @ e.V
        assert (backup <= e.Q + ATOL).all()
        assert (backup + 2 * e.CB + ATOL >= e.Q).all()


def test_equations_4_and_5_the_optimistic_part(valid):
    mdp, gamma = valid.mdp, valid.mdp.discount
    entropy = (valid.mu_star.sum(-1) * relative_entropy(valid.pi_star, np.full_like(valid.pi_star, 0.5))).sum()
    total = 0.0
    for e, following in zip(valid.epochs, valid.epochs[1:], strict=False):
        delta = valid.optimum - (1 - gamma) * mdp.initial @ e.V
        backup = mdp.rewards + gamma * valid.P @ e.V
        assert delta == pytest.approx((valid.mu_star * (backup - e.V[:, None])).sum(), abs=ATOL)  # (4)
        total += delta
        assert total <= entropy / valid.eta + valid.mu_star.sum(-1) @ following.V + ATOL  # (5), for every K
    assert entropy <= np.log(mdp.actions) + ATOL


def optimisation_term(valid, e, following):
    """<mu^{pi_{k+1}} - mu^{pi_k}, Q_{k+1}> - H(pi_{k+1} || pi_k) / eta, and H(pi_{k+1} || pi_k)."""
    entropy = following.nu @ relative_entropy(following.pi, e.pi)
    return ((following.mu - e.mu) * e.Q).sum() - entropy / valid.eta, entropy


def test_equations_6_and_7_the_part_of_the_policy_and_lemma_4_3(valid):
    mdp, H = valid.mdp, valid.mdp.horizon
    gamma, eta = mdp.discount, valid.eta
    entropy_star = (valid.mu_star.sum(-1) * relative_entropy(valid.pi_star, np.full_like(valid.pi_star, 0.5))).sum()
    total = bonuses = regret = 0.0
    for k, (e, following) in enumerate(zip(valid.epochs, valid.epochs[1:], strict=False), start=1):
        delta = (1 - gamma) * mdp.initial @ e.V - (e.mu * mdp.rewards).sum()
        opt, _ = optimisation_term(valid, e, following)
        step = e.nu @ e.V - following.nu @ following.V + opt + 2 * (e.mu * e.CB).sum()
        assert delta <= step + ATOL  # (6)
        assert opt <= eta * H**3 / 2 + ATOL  # Fenchel-Young
        total, bonuses = total + delta, bonuses + 2 * (e.mu * e.CB).sum()
        assert total <= -following.nu @ following.V + eta * H**3 / 2 * k + bonuses + ATOL * k  # (7)
        regret += valid.optimum - (e.mu * mdp.rewards).sum()
        assert regret <= bonuses + 2 * H + entropy_star / eta + eta * H**3 * k / 2  # Lemma 4.3


@pytest.fixture(scope="module")
def mixture():
    mdp, T = garnets(3, 6, 2, 2, 1, 0.8), 3000
    learner = ravi_ucb.linear_mixture(mdp.problem, T, eta=0.05)  # the paper's beta
    return case(mdp, learner, ridge(mdp.problem), T, 2), learner.settings["beta"], T


def test_assumption_5_3_and_the_error_of_the_regression(mixture):
    """P = <theta, psi>; P_hat_k V_k - P V_k = <phi_k, Lambda^{-1} (sum phi_i (V_i(y) - P V_i) - lambda theta)>."""
    c, _, _ = mixture
    theta, lam = c.mdp.parameter, c.lam
    np.testing.assert_allclose(c.mdp.features @ theta, c.mdp.transitions, atol=1e-12)
    noise = np.zeros(3)
    for e in c.epochs:
        phi = np.einsum("xajd,xaj->xad", c.mdp.features, e.V[c.mdp.successors])
        assert (np.linalg.norm(phi, axis=-1) <= c.mdp.bound * c.mdp.horizon + ATOL).all()
        PV = c.P @ e.V
        error = phi @ np.linalg.solve(e.data.covariance[0], noise - lam * theta)
        np.testing.assert_allclose(e.PV_hat - PV, error, atol=1e-8)
        for x, a, y in e.steps:
            noise += phi[x, a] * (e.V[y] - PV[x, a])


def test_lemma_5_4_and_equation_10_the_confidence_ellipsoid(mixture):
    """||theta_hat_k - theta||_Lambda <= beta, with probability 1 - 1/T; det Lambda <= (lambda + T B^2 H^2 / d)^d."""
    c, beta, T = mixture
    B, H, d = c.mdp.bound, c.mdp.horizon, 3
    for k, e in enumerate(c.epochs):
        Lam = e.data.covariance[0]
        off = parameter(e.data)[0] - c.mdp.parameter
        assert np.sqrt(off @ Lam @ off) <= beta
        assert (np.abs(c.P @ e.V - e.PV_hat) <= e.CB + ATOL).all()
        before = sum(len(f.steps) for f in c.epochs[:k])
        assert np.linalg.det(Lam) <= (c.lam + before * B**2 * H**2 / d) ** d * (1 + 1e-9)


def test_lemmas_a_2_and_a_3_potentials_and_bad_epochs(mixture):
    c, _, T = mixture
    B, H, d, lam = c.mdp.bound, c.mdp.horizon, 3, c.lam
    potential, bad, G = 0.0, 0, lam * np.eye(d)
    for e in c.epochs:
        phi = np.einsum("xajd,xaj->xad", c.mdp.features, e.V[c.mdp.successors])
        inverse, length = np.linalg.inv(e.data.covariance[0]), len(e.steps)
        norms = [phi[x, a] @ inverse @ phi[x, a] for x, a, _ in e.steps]
        potential += sum(np.log1p(length * norm) for norm in norms) / length
        bad += max(norms) >= 1
        for (x, a, _), norm in zip(e.steps, norms, strict=True):
            if norm >= 1:
                G += np.outer(phi[x, a], phi[x, a])
    last = c.epochs[-1]
    Lam = last.data.covariance[0].copy()
    phi = np.einsum("xajd,xaj->xad", c.mdp.features, last.V[c.mdp.successors])
    for x, a, _ in last.steps:
        Lam += np.outer(phi[x, a], phi[x, a])
    growth = np.linalg.slogdet(Lam)[1] - d * np.log(lam)
    cap = d * np.log(1 + B**2 * H**2 * T / (lam * d))
    assert potential <= growth + ATOL <= cap + ATOL  # Lemma A.2
    assert bad <= (np.linalg.slogdet(G)[1] - d * np.log(lam)) / np.log(2) + ATOL <= cap / np.log(2) + ATOL  # Lemma A.3
    assert bad > 0
