"""PSRL on theta: draws have the posterior's law, policies are optimal for them, and regret is what it should be."""

import numpy as np
import pytest
from scipy import integrate, stats

import ravi
from ravi.learners.posterior.mixture import draw_weights
from ravi.optimism.likelihood import Likelihood, likeliest, simulators


def drawn(rows, counts, many, key=7):
    """A chain of draws from where the likelihood is largest   (many, d)."""
    theta, gap = likeliest(counts, rows, np.full(rows.shape[1], 1 / rows.shape[1]))
    at = Likelihood(rows, counts, theta, gap, 0.0)
    now = (theta + 1 / len(theta)) / 2
    out = np.empty((many, len(theta)))
    for t in range(1, many + 1):
        draw_weights(at, now, np.uint64(key), t)
        out[t - 1] = now
    return out[many // 20 :]


@pytest.mark.parametrize("counts", [(3, 1, 8), (40, 2, 300)])
def test_where_moves_tell_kernels_for_certain_draws_are_dirichlet(counts):
    """Kolmogorov and Smirnov on every tenth draw: false alarms below 1e-4 each, were they independent."""
    N = np.array(counts, float)
    out, a = drawn(np.eye(3), N, 6000)[::10], 1 + N
    for j in range(3):
        assert stats.kstest(out[:, j], stats.beta(a[j], a.sum() - a[j]).cdf).pvalue > 1e-4
    np.testing.assert_allclose(out.sum(1), 1, atol=1e-12)


def test_draws_of_two_kernels_have_the_law_of_the_density():
    rows, N = np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([30.0, 25.0])

    def density(x):
        return np.exp((N * np.log(rows @ (x, 1 - x))).sum() + 38)

    whole = integrate.quad(density, 0, 1)[0]
    out = drawn(rows, N, 4000)[::5, 0]
    for point in (0.2, 0.4, 0.6):
        share = integrate.quad(density, 0, point)[0] / whole
        assert abs((out < point).mean() - share) < 5 * np.sqrt(share * (1 - share) / len(out))


@pytest.mark.parametrize("id", ["ensemble/3,5,2,2,discount=0.8", "riverswim/mixture/4,discount=0.8"])
def test_every_policy_is_optimal_for_its_draw(id):
    mdp = ravi.mdp(id)
    state = ravi.run("psrl/mixture", mdp, 400, 3).state
    X, r, gamma = mdp.states, mdp.rewards, mdp.discount
    for theta, policy in zip(state.drawn.theta, state.policy, strict=True):
        P = np.zeros((X, mdp.actions, X))
        np.put_along_axis(P, mdp.successors.astype(np.int64), simulators(mdp.problem) @ theta, axis=2)
        pi = policy.argmax(-1)
        value = np.linalg.solve(np.eye(X) - gamma * P[np.arange(X), pi], r[np.arange(X), pi])
        assert (r + gamma * P @ value <= value[:, None] + 1e-5).all()
