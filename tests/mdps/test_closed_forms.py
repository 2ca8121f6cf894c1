"""The constructions have the closed forms that they are chosen for."""

import itertools

import numpy as np
import pytest

from ravi.mdps import bandit_of, deep_sea, hypercube, ring, riverswim, riverswim_mixture, six_arms, trap, two_cycle
from tests.helpers import dense
from tests.mdps.oracle import largest_phi, optimum, rho, uniform, value


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


def test_the_two_cycle_has_its_known_values():
    mdp = two_cycle()
    V, policy, top = optimum(mdp)
    np.testing.assert_allclose(V, (10, 90 / 11, 10), rtol=1e-12)
    np.testing.assert_array_equal(policy, (1, 0, 0))
    assert top == pytest.approx(0.939394, abs=5e-7)
    np.testing.assert_array_equal(mdp.parameter, (0.5, 0.5))
    assert (mdp.parameter_bound, mdp.feature_bound) == (1, np.sqrt(2))
    assert largest_phi(mdp) == pytest.approx(np.sqrt(2), rel=1e-15)


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


RIGHT_EVERYWHERE = {4: 0.3498, 5: 0.5068, 6: 0.6143, 8: 0.7403, 10: 0.8077}  # the discount from which it is optimal


@pytest.mark.parametrize(("n", "threshold"), RIGHT_EVERYWHERE.items())
def test_right_everywhere_is_optimal_from_the_start_above_its_threshold(n, threshold):
    for discount, optimal in ((threshold - 2e-4, False), (threshold + 2e-4, True)):
        mdp = riverswim(n, discount)
        right = value(mdp, np.ones(n, int))[0]
        assert (right >= optimum(mdp).V[0] - 1e-12) == optimal


def test_the_smallest_river_has_two_banks():
    P = dense(riverswim(2))
    np.testing.assert_array_equal(P, [[[1, 0], [0.4, 0.6]], [[1, 0], [0.4, 0.6]]])


def test_the_mixture_has_its_known_return_and_bounds():
    mdp = riverswim_mixture(6, 0.9)
    assert optimum(mdp).rho == pytest.approx(0.201982, abs=5e-7)
    np.testing.assert_array_equal(mdp.parameter, (0.35, 0.6, 0.05))
    assert mdp.parameter_bound == 1
    assert mdp.feature_bound == pytest.approx(np.sqrt(3), rel=1e-15) == largest_phi(mdp)
    assert mdp.branching == 3


def test_the_mixture_is_riverswim_away_from_the_ends():
    np.testing.assert_allclose(dense(riverswim_mixture(6))[1:-1], dense(riverswim(6))[1:-1], atol=1e-15)
