"""The O-REPS learner: against a transcription that a generic solver plans for, and what it does with the unknown."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from ravi import ids
from ravi.core import MDP
from ravi.learners.contrib.o_reps import o_reps
from ravi.mdps import garnet, one_state_of, riverswim
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.literal.algorithms import draw
from tests.literal.philox import uniform
from tests.support.occupancy_step import o_reps_step


def literal(P, r, gamma, nu0, T, eta, key):
    """Epoch by epoch: estimate, minimise the dual, play. Yields T_k, pi_k and the triples."""
    X, A = r.shape
    M, pi = np.zeros((X, A, X)), np.full((X, A), 1 / A)
    t, x = 1, draw(nu0, uniform(key, 0, 3))
    while t <= T:
        n = M.sum(-1)
        # P_hat = N' / n; a pair that was never played stays where it is, with reward 1
        P_hat = np.where(n[..., None] > 0, M / np.maximum(n, 1)[..., None], np.eye(X)[:, None])
        reward = np.where(n > 0, r, 1.0)
        # mu' = the occupancy of pi_{k-1} under P_hat
        nu = np.linalg.solve(np.eye(X) - gamma * np.einsum("xa,xay->yx", pi, P_hat), (1 - gamma) * nu0)
        some = nu > 1e-15
        log_mu = np.log(nu[some])[:, None] + np.log(pi[some])

        def dual(V, log_mu=log_mu, reward=reward, P_hat=P_hat, some=some):
            z = log_mu + eta * (reward + gamma * P_hat @ V - V[:, None])[some]
            w = np.zeros((X, A))
            w[some] = np.exp(z - logsumexp(z))
            flow = gamma * np.einsum("xa,xay->y", w, P_hat) - w.sum(-1) + (1 - gamma) * nu0
            return logsumexp(z) / eta + (1 - gamma) * nu0 @ V, flow

        found = minimize(dual, np.zeros(X), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 5000})
        # pi_k ~ mu_k, where mu' reaches
        tilted = np.log(pi) + eta * (reward + gamma * P_hat @ found.x)
        pi = np.where(some[:, None], np.exp(tilted - logsumexp(tilted, axis=-1, keepdims=True)), pi)
        T_k, triples = t, []
        while True:
            a = draw(pi[x], uniform(key, t, 1))
            y = draw(P[x, a], uniform(key, t, 2))
            M[x, a, y] += 1
            triples.append((x, a, y))
            reset = uniform(key, t, 0) < 1 - gamma
            x = draw(nu0, uniform(key, t, 3)) if reset else y
            t += 1
            if reset or t > T:
                break
        yield T_k, pi, triples


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("eta", [0.1, 0.6])
@pytest.mark.parametrize("mdp", [riverswim(5, 0.9), garnet(6, 3, 3, 1, 0.85)], ids=lambda mdp: mdp.name)
def test_it_is_the_literal_transcription(mdp, eta):
    T, seed = 250, 4
    seen = []
    made = run(o_reps(mdp.problem, T, eta=eta), mdp, T, [seed], record=["stream"], measures=[spy(seen)])
    stream = list(zip(*(made.results[f"stream_{name}"][0] for name in ("state", "action", "successor")), strict=True))
    epochs = list(literal(dense(mdp), mdp.rewards, mdp.discount, mdp.initial, T, eta, seed))
    assert made.T_k[0].tolist() == [T_k for T_k, _, _ in epochs]
    assert stream == [triple for _, _, triples in epochs for triple in triples]
    for (state, _), (_, pi, _) in zip(seen, epochs, strict=True):
        np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-5)
    assert np.ptp(epochs[-1][1], axis=-1).max() > 0.3


@pytest.mark.parametrize("options", ["", ",step_scale=10", ",step_scale=300"])
def test_every_plan_is_finished(options):
    for mdp in (riverswim(6, 0.95), garnet(20, 3, 4, 0, 0.9)):
        assert (run("o-reps" + options, mdp, 3000, 4).batch.state.unfinished == 0).all()


def test_a_plan_is_the_planners_step_in_the_estimated_mdp():
    """The MDP of the counts, built with the library's own tables, where the self-loops need successors of their own."""
    mdp, eta = garnet(12, 3, 2, 3, 0.9), 0.8
    learner = o_reps(mdp.problem, 500, eta=eta)
    seen = []
    run(learner, mdp, 500, [1], measures=[spy(seen)])
    checked = 0
    for (before, _), (after, _) in pairwise(seen):
        n, moves = after.data.visits[0], after.data.moves[0]
        P = np.zeros((12, 3, 12))
        np.put_along_axis(P, mdp.successors.astype(np.int64), moves / np.maximum(n, 1)[..., None], axis=2)
        P[n == 0] = np.repeat(np.eye(12)[:, None], 3, axis=1)[n == 0]
        estimated = MDP.from_dense(P, np.where(n > 0, mdp.rewards, 1), 0.9, mdp.initial)
        made = o_reps_step(estimated, before.policy[0], eta)
        assert abs(made.gap) < 1e-12
        np.testing.assert_allclose(after.policy[0], made.policy, rtol=0, atol=1e-9)
        checked += (n == 0).any() and (n > 0).any()
    assert checked > 3


def test_what_was_never_played_is_tried():
    """Reward 1 for ever: within a few epochs every pair of a state that is visited has been played."""
    mdp = riverswim(6, 0.95)
    data = run("o-reps", mdp, 4000, 8).batch.state.data
    played = data.visits > 0
    assert (played.all(-1) == played.any(-1)).all()


def test_the_first_policy_is_uniform():
    mdp = riverswim(5, 0.9)
    seen = []
    run("o-reps,step_scale=20", mdp, 100, [0], measures=[spy(seen)])
    np.testing.assert_allclose(seen[0][0].policy[0], 0.5, rtol=0, atol=1e-12)


def test_constants_are_derived_and_input_is_named():
    mdp, T = garnet(6, 3, 2, 0, 0.9), 10_000
    eta = o_reps(mdp.problem, T).settings["eta"]
    assert eta == pytest.approx(np.sqrt(2 * np.log(18) / (0.1 * T + 0.9)), rel=1e-12)
    assert o_reps(mdp.problem, T, step_scale=7).settings["eta"] == pytest.approx(7 * eta, rel=1e-12)
    with pytest.raises(InputError, match="eta is -1; it must be positive"):
        ids.learner("o-reps,eta=-1", mdp, T)
    with pytest.raises(InputError, match="step_scale is 0; it must be positive"):
        ids.learner("o-reps,step_scale=0", mdp, T)
    assert (run("o-reps", one_state_of([0.5], 0.8), 50, 2).regret == 0).all()


@pytest.mark.parametrize(
    ("learner", "mdp", "steps"),
    [("o-reps,step_scale=30", "deep-sea/5,discount=0.9", 40_000), ("o-reps,eta=10000", "riverswim/6", 500)],
)
def test_policies_that_are_all_but_certain_are_planned_with_like_any_other(learner, mdp, steps):
    """Off their way states have next to no mass, and Newton's equations next to no determinant."""
    made = run(learner, mdp, steps, 2)
    assert (made.state.unfinished == 0).all()
    np.testing.assert_allclose(made.last_policy.sum(-1), 1, atol=1e-12)


def test_plans_whose_flow_is_off_are_counted_seed_by_seed(monkeypatch):
    mdp = riverswim(4, 0.9)
    learner, flows = o_reps(mdp.problem, 100), np.array([0.0, 1e-10, np.inf])
    monkeypatch.setattr("ravi.learners.contrib.o_reps.step", lambda *given: (given[-1], flows))
    s = learner.init(np.arange(3, dtype=np.uint64))
    for k in range(1, 4):
        s = learner.plan(s)
        np.testing.assert_array_equal(s.unfinished, [0, k, k])


@pytest.mark.parametrize("eta", [1e6, 1e12, 1e50])
def test_rows_sum_to_one_however_large_the_step(eta):
    seen = []
    run(o_reps(riverswim(4, 0.9).problem, 100, eta=eta), riverswim(4, 0.9), 100, 2, measures=[spy(seen)])
    for state, _ in seen:
        np.testing.assert_allclose(state.policy.sum(-1), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.exp(state.log_policy), state.policy, rtol=1e-12, atol=0)
