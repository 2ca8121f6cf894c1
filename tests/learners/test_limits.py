"""RAVI-UCB where it must become something else: a closed form, its planner, a frozen policy."""

import numpy as np
import pytest

from ravi.estimators.counts import known
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, one_state_of, riverswim
from ravi.optimism.bonuses import multiple_of_width
from ravi.runtime.api import run
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


def test_with_beta_at_H_and_much_data_it_finds_the_optimum_and_below_it_may_not():
    """An unvisited row of P_hat is zero, so its Q is r + beta: below gamma V*, nobody would try it."""
    mdp = garnet(5, 2, 2, 0, 0.8)
    optimistic = run(ravi_ucb.tabular(mdp.problem, 100_000, beta=mdp.horizon, eta=0.5), mdp, 100_000, 8)
    assert (optimistic.gap < 0.01).all()
    pessimistic = run(ravi_ucb.tabular(mdp.problem, 100_000, beta=0.4 * mdp.horizon, eta=0.5), mdp, 100_000, 8)
    assert (pessimistic.gap > 0.02).any()


def test_it_begins_with_the_value_and_the_policy_that_are_given():
    """V_1 = V_0 and pi_1 = pi_0."""
    problem, rng = riverswim(5, 0.9).problem, np.random.default_rng(3)
    V0, pi0 = rng.uniform(0, problem.horizon, 5), rng.dirichlet([1, 1], 5)
    learner = ravi_ucb.tabular(problem, 200, initial_value=V0, initial_policy=pi0)
    state = learner.plan(learner.init(np.zeros(1, np.uint64)))
    np.testing.assert_allclose(state.V[0], V0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(state.policy[0], pi0, rtol=0, atol=1e-12)
