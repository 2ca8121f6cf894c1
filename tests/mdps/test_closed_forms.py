"""The constructions have the closed forms that they are chosen for."""

import itertools

import numpy as np
import pytest

from ravi.mdps import bandit, bandit_of, deep_sea, hypercube, one_state, one_state_of, ring, six_arms, trap, two_cycle
from tests.mdps.oracle import dense, largest_phi, optimum, rho, uniform, value


@pytest.mark.parametrize(("n", "discount", "known"), [(5, 0.9, 0.160216), (8, 0.95, 0.103740), (10, 0.95, 0.078533)])
def test_deep_sea_has_its_closed_form_return(n, discount, known):
    mdp = deep_sea(n, discount)
    closed = (1 - discount) * discount ** (n - 1) / (1 - discount**n)
    assert optimum(mdp).rho == pytest.approx(closed, rel=1e-12)
    assert closed == pytest.approx(known, abs=5e-7)
    assert rho(mdp, np.zeros(n * n, int)) == pytest.approx(0.01 / n, rel=1e-12)


def test_deep_sea_is_not_worth_its_treasure_at_a_short_horizon():
    mdp = deep_sea(10, 0.5)
    assert optimum(mdp).rho == pytest.approx(
        0.001, rel=1e-12
    )  # always left, above (1 - gamma) gamma^9 / (1 - gamma^10)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_a_uniform_pass_through_deep_sea_finds_the_treasure_once_in_two_to_the_n(n):
    mdp = deep_sea(n)
    P = dense(mdp).mean(1)
    reach = np.linalg.matrix_power(P, n - 1)[0, n * n - 1]  # at the last cell after n - 1 steps
    assert reach / 2 == 2.0**-n


@pytest.mark.parametrize("discount", [0.3, 0.8, 0.95, 0.999])
def test_six_arms_have_their_closed_form_returns(discount):
    mdp, gamma = six_arms(discount), discount
    p, r = np.array([1, 0.15, 0.1, 0.05, 0.03, 0.01]), np.array([50, 133, 300, 800, 1660, 6000]) / 6000
    closed = r * gamma * p / (1 - gamma + gamma * p)
    np.testing.assert_allclose([rho(mdp, np.full(7, a)) for a in range(6)], closed, rtol=1e-9)
    assert optimum(mdp).rho == pytest.approx(closed[5], rel=1e-9)
    assert closed.argmax() == 5
    P = dense(mdp)
    for i, a in np.ndindex(6, 6):  # the matching action stays and pays, and in state 1 every one but 4
        stays = a == i or (i == 0 and a != 4)
        assert (P[i + 1, a, i + 1], P[i + 1, a, 0]) == ((1, 0) if stays else (0, 1))
        assert mdp.rewards[i + 1, a] == (r[i] if stays else 0)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("eps", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("q", [0.0, 0.1, 1.0])
def test_the_trap_has_its_closed_form_gap(discount, eps, q):
    mdp = trap(discount, q)
    gap = optimum(mdp).rho - rho(mdp, np.array([[1 - eps, eps], [0.5, 0.5]]))
    assert optimum(mdp).rho == pytest.approx(1, rel=1e-12)
    assert gap == pytest.approx(eps * (1 + discount * q) / (1 - discount + discount * (eps + q)), rel=1e-10, abs=1e-12)
    if q == 0:
        assert gap == pytest.approx(eps / (1 - discount + discount * eps), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("probabilities", [(0.3,), (0.2, 0.9, 0.5), (0, 1), (0.5, 0.5, 0.5, 0.7)])
def test_the_bandit_has_its_closed_form_return_and_bounds(probabilities):
    mdp, p = bandit_of(probabilities, 0.9), np.array(probabilities)
    pi = np.random.default_rng(0).dirichlet(np.ones(len(p)), size=3)
    assert rho(mdp, pi) == pytest.approx(0.9 * pi[0] @ p, rel=1e-12, abs=1e-14)
    assert optimum(mdp).rho - rho(mdp, pi) == pytest.approx(0.9 * (p.max() - pi[0] @ p), abs=1e-13)
    assert mdp.dimension == len(p) + 1
    assert mdp.parameter_bound**2 == pytest.approx((p**2).sum() + 1, rel=1e-14)
    assert mdp.feature_bound == pytest.approx(np.sqrt(2), rel=1e-15) == largest_phi(mdp)


def test_the_best_arm_of_a_bandit_is_the_last():
    mdp = bandit(4, 0.8, 0.3, 0.9)
    np.testing.assert_allclose(dense(mdp)[0, :, 1], (0.3, 0.3, 0.3, 0.8), atol=1e-15)
    assert optimum(mdp).rho == pytest.approx(0.9 * 0.8, rel=1e-12)


@pytest.mark.parametrize("rewards", [(0.2, 0.9, 0.5), (1.0,), (0, 1)])
def test_one_state_has_its_closed_form_trajectory(rewards):
    mdp, eta, r = one_state_of(rewards, 0.9), 0.3, np.array(rewards, float)
    A, H = len(r), 10
    policy, Q, S, total = np.full(A, 1 / A), np.zeros(A), np.zeros(A), 0.0
    for k in range(1, 40):  # Algorithm 1 with P known, CB = 0, V_0 = 0
        V = np.log(policy @ np.exp(eta * Q)) / eta
        policy = policy * np.exp(eta * (Q - V))
        total += V
        closed = np.exp(eta * (k - 1) * r)
        np.testing.assert_allclose(policy, closed / closed.sum(), rtol=1e-10)
        assert total == pytest.approx(np.log(np.exp(eta * S).mean()) / eta, abs=1e-9)
        assert rho(mdp, policy[None]) == pytest.approx(policy @ r, rel=1e-12)
        Q = mdp.rewards[0] + 0.9 * V
        assert Q.min() >= 0
        assert Q.max() <= H  # nothing to truncate
        S = S + r + 0.9 * V


def test_one_state_spaces_its_rewards_up_to_one():
    np.testing.assert_array_equal(one_state(4).rewards, [[0.25, 0.5, 0.75, 1]])


@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize(("discount", "margin"), [(0.9, None), (0.9, 0.1), (0.95, 0.01), (0.5, 0.5)])
def test_the_hypercube_has_its_closed_forms(dimension, discount, margin):
    mdp = hypercube(dimension, discount, margin, seed=1)
    gamma, delta = discount, 1 - discount
    Delta = delta / 2 if margin is None else margin
    alpha = np.sqrt(Delta / ((dimension - 1) * (1 + Delta)))
    theta = mdp.parameter[:-1] * alpha
    np.testing.assert_allclose(np.abs(theta), Delta / (dimension - 1), rtol=1e-12)
    cube = np.array(list(itertools.product((-1, 1), repeat=dimension - 1)))[:, ::-1]  # action a, by its bits
    np.testing.assert_allclose(dense(mdp)[0, :, 1], delta + cube @ theta, atol=1e-15)

    def closed(m):
        p = delta + m
        c = 1 - gamma + gamma * (delta + p)
        V0, V1 = gamma * p / ((1 - gamma) * c), (1 - gamma + gamma * p) / ((1 - gamma) * c)
        return gamma * p / c, np.array([V0, V1])

    pi = np.random.default_rng(3).dirichlet(np.ones(mdp.actions), size=2)
    for policy, m in ((pi, pi[0] @ cube @ theta), (uniform(mdp), 0.0)):
        expected, V = closed(m)
        assert rho(mdp, policy) == pytest.approx(expected, rel=1e-11)
        np.testing.assert_allclose(value(mdp, policy), V, rtol=1e-11)
    assert optimum(mdp).rho == pytest.approx(closed(Delta)[0], rel=1e-11)
    np.testing.assert_array_equal(cube[optimum(mdp).policy[0]], np.sign(theta))


@pytest.mark.parametrize("dimension", [2, 4])
@pytest.mark.parametrize(("discount", "Delta"), [(0.9, 0.05), (0.9, 0.1), (0.5, 0.5), (0.99, 0.001)])
def test_the_hypercube_has_its_norms(dimension, discount, Delta):
    mdp = hypercube(dimension, discount, Delta)
    assert np.linalg.norm(mdp.parameter) == pytest.approx(1 + Delta, rel=1e-15)
    assert (mdp.parameter_bound, mdp.feature_bound) == (1 + Delta, 1)
    assert largest_phi(mdp) == pytest.approx(1 / np.sqrt(1 + Delta), rel=1e-14)  # at V = H, below the declared 1


def test_the_seed_signs_the_hypercube():
    signs = {tuple(np.sign(hypercube(6, seed=seed).parameter[:-1])) for seed in range(20)}
    assert len(signs) > 10


def test_the_two_cycle_has_its_known_values():
    mdp = two_cycle()
    V, policy, top = optimum(mdp)
    np.testing.assert_allclose(V, (10, 90 / 11, 10), rtol=1e-12)
    np.testing.assert_array_equal(policy, (1, 0, 0))
    assert top == pytest.approx(0.939394, abs=5e-7)
    np.testing.assert_array_equal(mdp.parameter, (0.5, 0.5))
    assert (mdp.parameter_bound, mdp.feature_bound) == (1, np.sqrt(2))
    assert largest_phi(mdp) == pytest.approx(np.sqrt(2), rel=1e-15)


def greedy_sweep(mdp, theta, V):
    """Truncated greedy value iteration under P_hat = <theta, psi>: V and the greedy policy."""
    PV = np.einsum("xab,xab->xa", mdp.features @ theta, V[mdp.successors])
    Q = np.clip(mdp.rewards + mdp.discount * PV, 0, mdp.horizon)
    return Q.max(1), Q.argmax(1)


def test_greedy_planning_with_an_estimate_that_is_no_kernel_ends_in_the_two_cycle():
    mdp, theta = two_cycle(), np.array([2.0, -1.0])
    np.testing.assert_array_equal((mdp.features @ theta).sum(-1), 1)
    assert (mdp.features @ theta).min() == -1
    V = np.array([0.0, 0, 10])
    for _ in range(2000):
        V, _ = greedy_sweep(mdp, theta, V)
    cycle = [greedy_sweep(mdp, theta, V)]
    cycle.append(greedy_sweep(mdp, theta, cycle[0][0]))
    np.testing.assert_allclose(cycle[1][0], V, rtol=1e-12)  # period two, not one
    known = {(0, 1, 0): ((8.5263, 9.4737, 10), 0.90606), (1, 0, 0): ((10, 9.4737, 8.6737), 0)}
    assert {tuple(policy) for _, policy in cycle} == set(known)
    for after, policy in cycle:
        values, gap = known[tuple(policy)]
        np.testing.assert_allclose(after, values, atol=5e-5)
        assert optimum(mdp).rho - rho(mdp, policy) == pytest.approx(gap, abs=5e-6)


def test_the_two_cycle_has_a_fixed_point_that_constant_starts_find():
    mdp = two_cycle()
    for start in (0.0, 5.0, 10.0):
        V = np.full(3, start)
        for _ in range(2000):
            V, _ = greedy_sweep(mdp, np.array([2.0, -1.0]), V)
        np.testing.assert_allclose(V, (10, 180 / 19, 10), rtol=1e-12)


@pytest.mark.parametrize(("eta", "mean_gap"), [(0.5, 0.004), (0.1, 0.026), (0.02, 0.173)])
def test_regularised_planning_does_not_follow_the_two_cycle(eta, mean_gap):
    mdp, theta = two_cycle(), np.array([2.0, -1.0])
    best, log_policy, Q, gaps = optimum(mdp).rho, np.log(uniform(mdp)), np.zeros((3, 2)), []
    for _ in range(1000):
        V = np.log(np.exp(log_policy + eta * Q).sum(1)) / eta
        log_policy = log_policy + eta * (Q - V[:, None])
        gaps.append(best - rho(mdp, np.exp(log_policy)))
        PV = np.einsum("xab,xab->xa", mdp.features @ theta, V[mdp.successors])
        Q = np.clip(mdp.rewards + mdp.discount * PV, 0, mdp.horizon)
    assert np.mean(gaps[:500]) == pytest.approx(mean_gap, abs=5e-4)
    assert gaps[-1] < 1e-3


@pytest.mark.parametrize(
    ("gadgets", "gap", "discount", "actions"), [(1, None, 0.9, 2), (5, 0.02, 0.95, 3), (3, 0, 0.5, 1)]
)
def test_the_ring_has_its_closed_form_return(gadgets, gap, discount, actions):
    mdp = ring(gadgets, gap, discount, actions, seed=2)
    eps = (1 - discount) / 2 if gap is None else gap

    def closed(m):
        p = 1 - discount + eps * m
        return discount * p / ((1 - discount) * (1 + discount) + discount * p)

    assert (mdp.states, mdp.actions, mdp.branching) == (2 * gadgets, actions, 2)
    assert optimum(mdp).rho == pytest.approx(closed(1), rel=1e-12)
    assert rho(mdp, uniform(mdp)) == pytest.approx(closed(1 / actions), rel=1e-12)
    low = optimum(mdp).V[::2]
    np.testing.assert_allclose(low, low[0], rtol=1e-12)


def test_the_seed_draws_the_best_actions_of_the_ring():
    mdp = ring(40, seed=1)
    best = dense(mdp)[::2, :, 1::2].sum(-1).argmax(1)
    assert set(best) == {0, 1}
