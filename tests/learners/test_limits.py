"""RAVI-UCB where it must become something else: a closed form, its planner, a frozen policy."""

import numpy as np
import pytest

from ravi.estimators.counts import known
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, one_state_of, riverswim, riverswim_mixture
from ravi.optimism.bonuses import multiple_of_width
from ravi.runtime.api import run
from ravi.theory import constants
from tests.helpers import spy


def with_known_kernel(mdp, eta):
    estimator = known(mdp)
    return ravi_ucb.generic(mdp.problem, estimator, multiple_of_width(0.0, estimator), eta)


@pytest.mark.parametrize("eta", [0.01, 1.0])
def test_the_one_state_mdp_has_its_closed_form_in_every_epoch(eta):
    """pi_k(a) ~ exp(eta (k - 1) r(a)); S_{k+1} = S_k + r + gamma V_k; sum_{i<=k} V_i = ln mean_a exp(eta S_k) / eta."""
    r, gamma = np.array([0.1, 0.5, 0.9]), 0.8
    mdp = one_state_of(r, gamma)
    seen = []
    made = run(with_known_kernel(mdp, eta), mdp, 400, [2], measures=[spy(seen)])
    S, total = np.zeros(3), 0.0
    for k, (state, _) in enumerate(seen, start=1):
        weights = np.exp(eta * (k - 1) * (r - r.max()))
        pi = weights / weights.sum()
        np.testing.assert_allclose(state.policy[0, 0], pi, rtol=1e-9, atol=1e-13)
        assert made.gap_k[0][k - 1] == pytest.approx(r.max() - pi @ r, abs=1e-10)
        total += state.V[0, 0]
        top = (eta * S).max()
        assert total == pytest.approx((top + np.log(np.exp(eta * S - top).mean())) / eta, rel=1e-10, abs=1e-10)
        S = S + r + gamma * state.V[0, 0]
    assert len(seen) > 50


@pytest.mark.parametrize("eta", [0.05, 2.0])
def test_with_the_true_kernel_and_no_bonus_it_is_md_mpi(eta):
    from ravi import md_mpi

    mdp = garnet(9, 3, 3, 4, 0.9)
    seen = []
    run(with_known_kernel(mdp, eta), mdp, 300, [0], measures=[spy(seen)])
    for k in (1, 2, 3, len(seen)):
        state = seen[k - 1][0]
        planned = md_mpi(mdp, eta, k)
        np.testing.assert_allclose(state.V[0], planned.V, rtol=0, atol=1e-11)
        np.testing.assert_allclose(state.policy[0], planned.policy, rtol=0, atol=1e-11)


def test_with_beta_at_H_and_much_data_it_finds_the_optimum_and_below_it_may_not():
    """An unvisited row of P_hat is zero, so its Q is r + beta: below gamma V*, nobody would try it."""
    mdp = garnet(5, 2, 2, 0, 0.8)
    optimistic = run(ravi_ucb.tabular(mdp.problem, 100_000, beta=mdp.horizon, eta=0.5), mdp, 100_000, 8)
    assert (optimistic.gap < 0.01).all()
    pessimistic = run(ravi_ucb.tabular(mdp.problem, 100_000, beta=0.4 * mdp.horizon, eta=0.5), mdp, 100_000, 8)
    assert (pessimistic.gap > 0.02).any()


def test_under_the_papers_constants_the_policy_stays_uniform_for_long():
    """Every Q stays at H until a pair has about 64 X ln(X A T^2) visits: never here, so the policy is uniform."""
    mdp = riverswim(6, 0.9)
    seen = []
    run("ravi-ucb", mdp, 5000, [0], measures=[spy(seen)])
    assert (seen[-1][0].policy == 0.5).all()


def test_the_mixture_learner_learns_nothing_in_epoch_one():
    """V_1 = 0 makes phi_1 = 0: Q_2 = r, and Lambda does not move."""
    mdp = riverswim_mixture(5, 0.9)
    seen = []
    run("ravi-ucb/mixture", mdp, 200, [1], measures=[spy(seen)])
    np.testing.assert_array_equal(seen[0][0].Q[0], mdp.rewards)
    assert (seen[1][0].data.covariance[0] == np.eye(3)).all()
    assert (seen[2][0].data.covariance[0] != np.eye(3)).any()


def test_constants_are_the_papers():
    mdp, T = riverswim_mixture(6, 0.9), 10_000
    H, X, A, d, B = 10.0, 6, 2, 3, np.sqrt(3)
    tabular = ravi_ucb.tabular(mdp.problem, T).settings
    assert tabular["eta"] == pytest.approx(np.sqrt(2 * np.log(A) / (H**2 * T)), rel=1e-12)
    assert tabular["beta"] == pytest.approx(8 * H * np.sqrt(X * np.log(X * A * T * T)), rel=1e-12)
    mixture = ravi_ucb.linear_mixture(mdp.problem, T).settings
    assert mixture["bound"] == pytest.approx(B, rel=1e-12)
    by_hand = H * np.sqrt(2 * (d / 2 * np.log(1 + T * B**2 * H**2 / d) + np.log(T))) + B
    assert mixture["beta"] == pytest.approx(by_hand, rel=1e-12)
    assert mixture["regularization"] == 1
    assert mixture["delta"] == 1 / T
    assert ravi_ucb.tabular(mdp.problem, T, scale=0.1).settings["beta"] == pytest.approx(0.1 * tabular["beta"])
    assert ravi_ucb.tabular(mdp.problem, T, step_scale=7).settings["eta"] == pytest.approx(7 * tabular["eta"])
    ridge = ravi_ucb.linear_mixture(mdp.problem, T, regularization=4.0, delta=0.01).settings
    by_hand = H * np.sqrt(d * np.log(1 + T * B**2 * H**2 / (4 * d)) + 2 * np.log(100)) + 2 * B
    assert ridge["beta"] == pytest.approx(by_hand, rel=1e-12)
    lam = constants.beta_mixture(H, d, T, 0.01, parameter_bound=1.0, feature_bound=B, regularization=4.0)
    assert lam == pytest.approx(H * np.sqrt(d * np.log(1 + T * 3 * 100 / 12) + 2 * np.log(100)) + 2, rel=1e-12)


def test_the_example_of_the_bound_has_its_value():
    """T = 10^6, d = 3, gamma = .9, B = sqrt 3: beta = 92.8."""
    beta = constants.beta_mixture(10.0, 3, 10**6, 1e-6, parameter_bound=3**0.5, feature_bound=3**0.5)
    assert beta == pytest.approx(92.8, abs=0.05)
