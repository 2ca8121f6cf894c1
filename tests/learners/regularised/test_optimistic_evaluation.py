"""The truncated fixed point: against sweeps without end, with few states and many, and seed by seed."""

import numpy as np
import pytest

from ravi.learners.regularised.optimistic_evaluation import ACCURACY, ELIMINATED, settle


def problem(seed, n, X, A=3, B=4, gamma=0.9, *, mass=1.0, bonus=0.0, penalty=0.0):
    """q, successors, P_hat, gamma, policy, penalty: rows of sum `mass`, or up to it."""
    rng = np.random.default_rng(seed)
    B = min(B, X)
    successors = np.sort(rng.permuted(np.tile(np.arange(X), (X, A, 1)), axis=-1)[..., :B], axis=-1).astype(np.int32)
    P = mass * rng.dirichlet(np.ones(B), size=(n, X, A))
    if mass < 1:
        P *= rng.uniform(size=(n, X, A, 1))
    q = rng.uniform(size=(n, X, A)) + bonus * rng.exponential(size=(n, X, A)) / (1 - gamma)
    policy = rng.dirichlet(np.ones(A), size=(n, X))
    successors.flags.writeable = False  # as those of a problem are: both are compiled once
    return q, successors, P, gamma, policy, penalty * rng.uniform(size=(n, X))


def by_sweeps(q, successors, P, gamma, policy, penalty):
    H, V = 1 / (1 - gamma), np.zeros(penalty.shape)
    for _ in range(int(40 * H)):
        Q = np.clip(q + gamma * np.einsum("nxaj,nxaj->nxa", P, V[:, successors]), 0, H)
        V = np.clip((policy * Q).sum(-1) - penalty, 0, H)
    return V, Q


CASES = {
    "nothing is truncated": {},
    "sub-probabilities": {"mass": 0.9},
    "much is truncated": {"mass": 0.9, "bonus": 0.3},
    "all is truncated": {"bonus": 1e6},
    "penalties": {"penalty": 3.0},
    "penalties that truncate": {"penalty": 30.0, "bonus": 0.2, "mass": 0.9},
    "gamma near one": {"gamma": 0.99, "bonus": 0.05},
}


@pytest.mark.parametrize("X", [1, 7, ELIMINATED, ELIMINATED + 1, 80])
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_fixed_point(case, X):
    told = problem(1, 5, X, **CASES[case])
    V, Q = settle(*told, np.random.default_rng(0).uniform(0, 10, (5, X)))
    V_star, Q_star = by_sweeps(*told)
    H = 1 / (1 - told[3])
    tol = 1e-12 if X <= ELIMINATED else ACCURACY
    np.testing.assert_allclose(V, V_star, rtol=0, atol=tol * H)
    np.testing.assert_allclose(Q, Q_star, rtol=0, atol=tol * H)
    if "truncate" in case and "nothing" not in case and X > 1:
        assert ((Q == 0) | (Q == H) | (V == 0)[..., None]).any()


@pytest.mark.parametrize("X", [6, 60])
def test_one_that_never_mixes_is_found_too(X):
    """A cycle, on which a constant is not what is slowest to go."""
    gamma = 0.95
    successors = ((np.arange(X) + 1) % X).astype(np.int32).reshape(X, 1, 1)
    q = np.where(np.arange(X) == X // 2, 1.0, 0.0).reshape(1, X, 1)
    told = (q, successors, np.ones((1, X, 1, 1)), gamma, np.ones((1, X, 1)), np.zeros((1, X)))
    V, _ = settle(*told, np.zeros((1, X)))
    away = (X // 2 - np.arange(X)) % X
    np.testing.assert_allclose(V[0], gamma**away / (1 - gamma**X), rtol=0, atol=ACCURACY / (1 - gamma))


@pytest.mark.parametrize("X", [8, 50])
def test_a_batch_does_not_change_a_seed(X):
    q, successors, P, gamma, policy, penalty = problem(3, 6, X, mass=0.95, bonus=0.2, penalty=2.0)
    V, Q = settle(q, successors, P, gamma, policy, penalty, np.zeros((6, X)))
    for i in range(6):
        row = slice(i, i + 1)
        alone = settle(q[row], successors, P[row], gamma, policy[row], penalty[row], np.zeros((1, X)))
        assert (alone[0][0] == V[i]).all()
        assert (alone[1][0] == Q[i]).all()
