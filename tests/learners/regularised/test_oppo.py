"""OPPO: its limits, and what its evaluation promises."""

from itertools import pairwise

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP, Path
from ravi.learners.regularised.oppo import oppo
from ravi.mdps import garnets, riverswim, riverswim_mixture
from ravi.planning.backward import lists, policy_pass
from ravi.planning.evaluation import staged_values
from ravi.runtime import tree
from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.learners.test_literal import MIXTURES


def one_hot(mdp):
    """The same MDP as a mixture with a coordinate for every (x, a, x'): theta = P."""
    X, A, P = mdp.states, mdp.actions, dense(mdp)
    psi = np.eye(X * A * X).reshape(X, A, X, X * A * X)
    everywhere = np.broadcast_to(np.arange(X), (X, A, X))
    return MDP.from_features(psi, P.ravel(), everywhere, mdp.rewards, mdp.discount, mdp.initial, name="one-hot")


def test_one_hot_features_are_a_tabular_learner():
    """A regression for every pair, of its own; the policy by the sum of all Q so far."""
    mdp, T, scale = riverswim(4, 0.8), 400, 0.05
    mixture, seen = one_hot(mdp), []
    learner = oppo(mixture.problem, T, scale=scale, step_scale=10.0)
    run(learner, mixture, T, [3], measures=[spy(seen)])
    X, A, H, gamma, S = mdp.states, mdp.actions, mdp.horizon, mdp.discount, learner.stages
    Lam, b, total = np.tile(np.eye(X), (X, A, 1, 1)), np.zeros((X, A, X)), np.zeros((S, X, A))
    for state, path in seen:
        weights = np.exp(learner.settings["alpha"] * (total - total.max(-1, keepdims=True)))
        pi = weights / weights.sum(-1, keepdims=True)
        P_hat = np.linalg.solve(Lam, b[..., None])[..., 0]
        beta = scale * (H / 2 * np.sqrt(np.linalg.slogdet(Lam)[1].sum() + 2 * np.log(T)) + mixture.parameter_bound)
        V = np.zeros((S + 1, X))
        for h in range(S - 1, -1, -1):
            width = np.sqrt(np.einsum("y,xayz,z->xa", V[h + 1], np.linalg.inv(Lam), V[h + 1]))
            Q = np.clip(mdp.rewards + gamma * (P_hat @ V[h + 1] + beta * width), 0, H)
            V[h] = (pi[h] * Q).sum(-1)
            total[h] += Q
        np.testing.assert_allclose(state.policy[0], pi, atol=1e-9)
        np.testing.assert_allclose(state.V[0], V, atol=1e-9)
        for age in range(path.length[0]):
            x, a, y = (int(part[0, age]) for part in (path.state, path.action, path.successor))
            v = V[min(age, S - 1) + 1]
            Lam[x, a] += np.outer(v, v)
            b[x, a] += v * v[y]
    assert np.ptp(pi, axis=-1).max() > 0.5


def test_with_huge_steps_the_policy_is_greedy_in_the_sum_of_all_values():
    mdp, seen = garnets(3, 6, 3, 3, 2, 0.8), []
    learner = oppo(mdp.problem, 300, scale=0.1, step_scale=1e9)
    run(learner, mdp, 300, [2], measures=[spy(seen)])
    total, compared = np.zeros_like(seen[0][0].Q[0]), 0
    for k, (state, _) in enumerate(seen):
        ranked = np.sort(total, axis=-1)
        clear = ranked[..., -1] - ranked[..., -2] > 1e-3
        np.testing.assert_allclose(
            state.policy[0][clear], np.eye(3)[total.argmax(-1)][clear], rtol=0, atol=1e-12, err_msg=str(k)
        )
        compared += clear.sum()
        total += state.Q[0]
    assert compared > 1000


@pytest.mark.parametrize("name", MIXTURES)
def test_with_theta_known_the_evaluation_is_that_of_the_policy(name):
    """V_0 is what the S stages earn: W_0 less what lies beyond them, at most gamma^S H."""
    mdp, S = ids.mdp(name), 30
    policy = np.random.default_rng(1).dirichlet(np.ones(mdp.actions), (1, S, mdp.states))
    V, Q = np.zeros((1, S + 1, mdp.states)), np.zeros(policy.shape)
    known = mdp.parameter[None], np.eye(mdp.dimension)[None], np.zeros(1)
    policy_pass(lists(mdp.problem), mdp.rewards, mdp.discount, *known, policy, V, Q)
    expected, P = np.zeros(mdp.states), dense(mdp)
    for h in range(S - 1, -1, -1):
        both = mdp.rewards + mdp.discount * P @ expected
        np.testing.assert_allclose(Q[0, h], both, atol=1e-12)
        expected = (policy[0, h] * both).sum(-1)
        np.testing.assert_allclose(V[0, h], expected, atol=1e-12)
    W, _, _ = staged_values(mdp, policy / policy.sum(-1, keepdims=True))
    assert (V[0, 0] <= W[0, 0] + 1e-9).all()
    assert (V[0, 0] >= W[0, 0] - mdp.discount**S * mdp.horizon - 1e-9).all()


@pytest.mark.parametrize("mdp", [riverswim_mixture(4, 0.8), garnets(3, 6, 3, 3, 2, 0.8)])
def test_an_evaluation_whose_ellipsoid_covers_theta_is_optimistic(mdp):
    """Surely: V_0 >= W_0 - gamma^S H, W the values by age of the policy that is played."""
    T, seen = 2000, []
    learner = oppo(mdp.problem, T, scale=0.05, step_scale=10.0)
    run(learner, mdp, T, 3, measures=[spy(seen)])
    covered, close = 0, 0
    for state, _ in seen:
        error = mdp.parameter - state.theta
        W, _, _ = staged_values(mdp, state.policy)
        for i in range(3):
            if error[i] @ state.data.covariance[i] @ error[i] <= state.beta[i] ** 2:
                assert (state.V[i, 0] >= W[i, 0] - mdp.discount**learner.stages * mdp.horizon - 1e-9).all()
                covered += 1
                close += (state.V[i, 0] - W[i, 0]).min() < 0.1 * mdp.horizon
    assert covered > 500
    assert close > 250  # where a bonus that is a little too small would be seen


def test_nothing_grows_with_time():
    mdp = one_hot(riverswim(4, 0.8))
    short, long = (run(oppo(mdp.problem, T, scale=0.1), mdp, T, 2, measured=False) for T in (50, 3500))
    sizes = [{name: leaf.nbytes for name, leaf in tree.leaves(made.state)} for made in (short, long)]
    assert sizes[0] == sizes[1]
    for Lam, inverse in zip(long.state.data.covariance, long.state.data.inverse, strict=True):
        np.testing.assert_allclose(inverse, np.linalg.inv(Lam), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("mdp", MIXTURES)
def test_stretches_of_an_epoch_do_not_change_what_is_learned(mdp):
    seen, pieces = [], 0
    learner = ids.learner("oppo,scale=0.03,step_scale=30", ids.mdp(mdp), 400)
    run(learner, mdp, 400, [5], measures=[spy(seen)])
    for (state, path), (after, _) in pairwise(seen):
        s, length = tree.copy(state), int(path.length[0])
        s.age[:] = s.began[:] = 0
        for begin in range(0, length, 3):
            size = min(3, length - begin)
            arrays = [array[:, begin : begin + size] for array in path[:5]]
            s.age[:] = 0 if begin + size == length else begin + size  # as the walk leaves it
            s = learner.add(s, Path(*arrays, np.array([size]), path.time + begin, path.after))
            pieces += begin > 0
        assert learner.plan(s).policy.tobytes() == after.policy.tobytes()
    assert pieces > 30


def test_one_action_leaves_nothing_to_choose():
    plain = riverswim(3, 0.8)
    psi = plain.transitions[:, 1:, :, None]
    mdp = MDP.from_features(psi, [1.0], plain.successors[:, 1:], plain.rewards[:, 1:], 0.8, plain.initial)
    assert run(oppo(mdp.problem, 100), mdp, 100, 1).regret[0] == pytest.approx(0.0, abs=1e-8)
