"""RAVI-UCB for linear MDPs: a literal transcription that stores all samples, and its tabular limit."""

from math import log, sqrt

import numpy as np
import pytest

from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.features import ravi_ucb_linear
from ravi.mdps import linear, riverswim
from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.literal.algorithms import dot, norm, solve
from tests.literal.algorithms import ravi_ucb as algorithm_1


def literal(mdp, T, eta, beta, lam, key):
    """Algorithm 1; D is the list of all samples."""
    phi, X, A = mdp.pair_features.tolist(), mdp.states, mdp.actions
    d = len(phi[0][0])

    def gram(D):
        rows = [[lam if i == j else 0.0 for j in range(d)] for i in range(d)]
        for x, a, _ in D:
            rows = [[rows[i][j] + phi[x][a][i] * phi[x][a][j] for j in range(d)] for i in range(d)]
        return rows

    def estimate(D, V):
        right = [sum(phi[x][a][i] * V[y] for x, a, y in D) for i in range(d)]  # targets of the V at hand
        theta = solve(gram(D), right)
        return [[dot(phi[x][a], theta) for a in range(A)] for x in range(X)]

    def bonus(D, V):
        Lam = gram(D)
        return [[beta * norm(Lam, phi[x][a]) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        return [*D, (x, a, y)]

    return algorithm_1(
        dense(mdp).tolist(), mdp.rewards.tolist(), mdp.discount, mdp.initial.tolist(), T, eta, [0.0] * X,
        [[1 / A] * A] * X, key, estimate, bonus, add, [],
    )  # fmt: skip


@pytest.mark.parametrize(("scale", "lam"), [(1.0, 1.0), (0.02, 0.5)])
def test_it_is_algorithm_1_with_targets_of_the_v_at_hand(scale, lam):
    mdp, T, seen = linear(7, 3, 3, 0, 0.85), 150, []
    learner = ravi_ucb_linear(mdp.problem, T, scale=scale, eta=0.2, regularization=lam)
    assert learner.settings["beta"] == pytest.approx(scale * 3 * mdp.horizon * sqrt(log(6 * T * T)), rel=1e-12)
    made = run(learner, mdp, T, [5], record=["stream"], measures=[spy(seen)])
    epochs = list(literal(mdp, T, 0.2, learner.settings["beta"], lam, 5))
    stream = list(zip(*(made.results[f"stream_{name}"][0] for name in ("state", "action", "successor")), strict=True))
    assert stream == [triple for epoch in epochs for triple in epoch[5]]
    for (state, _), (_, V, pi, _, Q, _) in zip(seen, epochs, strict=True):
        for one, other in ((state.V, V), (state.policy, pi), (state.Q, Q)):
            np.testing.assert_allclose(one[0], other, rtol=0, atol=1e-10)
    if scale < 1:
        assert np.ptp(epochs[-1][2], axis=1).max() > 0.05


def test_one_coordinate_for_every_pair_is_tabular_ravi_ucb():
    """Lambda = diag(N) for lambda = 1: P_hat = N'/N and widths 1 / sqrt(N)."""
    mdp, T = riverswim(5, 0.9), 400
    one = ravi_ucb_linear(mdp.problem, T, scale=0.01, eta=0.3)
    other = ravi_ucb.tabular(mdp.problem, T, beta=one.settings["beta"], eta=0.3)
    made, again = (run(learner, mdp, T, 3) for learner in (one, other))
    np.testing.assert_allclose(made.regret, again.regret, rtol=1e-10)
    np.testing.assert_allclose(made.state.policy, again.state.policy, atol=1e-11)
    assert np.ptp(made.state.policy, axis=-1).max() > 0.1
