"""The lower bound: every step of its proof is held against exact values, and every learner against the whole."""

from math import sqrt

import numpy as np
import pytest

import ravi
from ravi.mdps.small import ring
from ravi.planning.evaluation import return_of
from ravi.planning.occupancies import occupancy
from ravi.planning.solver import solve
from ravi.theory import lower
from ravi.validation import InputError


def policies(mdp, many=40):
    """Policies that are spread out and ones that are nearly deterministic, (X, A) each."""
    draws = np.random.default_rng(3)
    X, A = mdp.rewards.shape
    return [draws.dirichlet(np.full(A, size), size=X) for size in (0.05, 1.0) for _ in range(many // 2)]


@pytest.mark.parametrize(("gamma", "gadgets", "actions"), [(0.7, 1, 2), (0.9, 3, 2), (0.97, 5, 4)])
def test_each_step_of_the_proof(gamma, gadgets, actions):
    H, q = 1 / (1 - gamma), 1 - gamma
    T = int(4 * H * gadgets * actions)
    made = lower.ring(H, gadgets, actions, T)
    eps, p = made.gap, q + made.gap
    mdp = ring(gadgets, made.gap, gamma, actions)
    best = solve(mdp)
    D = 1 / (1 - gamma**2 + gamma * p)
    np.testing.assert_allclose(best.V[1::2] - best.V[::2], D, rtol=1e-8)
    assert D >= 2 * H / 7
    loss = best.V[:, None] - best.Q  # of each action
    right = loss.argmin(1)
    np.testing.assert_allclose(loss[::2], gamma * eps * D * (np.arange(actions) != right[::2, None]), atol=1e-9 * H)
    for pi in policies(mdp):
        low = occupancy(mdp, pi).nu[::2]
        wrong = 1 - pi[np.arange(0, 2 * gadgets, 2), right[::2]]
        assert best.optimum - return_of(mdp, pi) == pytest.approx(gamma * eps * D * (low * wrong).sum(), abs=1e-9)
        assert (low >= 2 / (5 * gadgets)).all()
        assert (low <= 1 / gadgets).all()  # plays of an epoch, over its length H
    assert q * np.log(q / p) + gamma * np.log(gamma / (1 - p)) <= 2 * H * eps**2


def test_the_bound_is_what_it_says():
    for H, S, A, T in [(3, 1, 2, 3), (20, 4, 2, 20_000), (100, 8, 5, 10**6)]:
        made = lower.ring(H, S, A, T)
        assert made.gap <= 1 / (2 * H) * (1 + 1e-12)
        assert float(made) == pytest.approx(2 / 3 * 2 * H / 7 * made.gap * T / 10)
        assert float(made) >= sqrt(H * 2 * S * A * T) / 420


@pytest.mark.parametrize(
    "learner", ["ravi-kl", "ravi-kl,plan=greedy", "psrl,support=on", "ucrl2b,support=on", "uniform"]
)
def test_no_learner_is_below_it(learner):
    H, S, A, T = 4.0, 2, 2, 2_000
    made = lower.ring(H, S, A, T)
    regrets = [ravi.run(learner, ring(S, made.gap, 1 - 1 / H, A, seed), T, 2).regret.mean() for seed in range(8)]
    assert np.mean(regrets) >= float(made)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ((2, 1, 2, 100), "needs H >= 3"),
        ((10, 1, 1, 100), "two actions"),
        ((10, 1, 2, 9), "needs T >= H"),
        ((10, 40, 4, 100), "H S A / 4 = 400"),
        ((10, 0, 2, 100), "gadgets"),
    ],
)
def test_what_it_does_not_hold_for_is_named(wrong, says):
    with pytest.raises(InputError, match=says):
        lower.ring(*wrong)
