"""POLITEX: its literal transcription, what its returns estimate, and where plain policy iteration cycles."""

from math import log, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from ravi import ids
from ravi.core import MDP, Path
from ravi.learners.regularised.politex import politex, weigh
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.literal import model_free as literal


@pytest.mark.parametrize("mdp", ["riverswim/6,discount=0.9", "garnet/7,3,3,seed=4,discount=0.8"])
@pytest.mark.parametrize("options", ["", ",phase=1,step_scale=20", ",phase=7,step_scale=5,unvisited=optimistic"])
def test_a_run_is_its_literal_transcription_epoch_by_epoch(options, mdp):
    world, seen, T = ids.mdp(mdp), [], 3000
    made = run("politex" + options, world, T, [3], record=["stream"], measures=[spy(seen)])
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    s, stream = made.settings, list(zip(x, a, y, strict=True))
    unvisited = {"zero": 0.0, "optimistic": world.horizon}[s["unvisited"]]
    followed = literal.politex(stream, reset, world.rewards.tolist(), world.discount, s["phase"], s["eta"], unvisited)
    for (state, _), (policy, total) in zip(seen, followed, strict=True):
        np.testing.assert_allclose(state.policy[0], policy, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.total[0], total, rtol=1e-12, atol=1e-11)
    assert np.ptp(seen[-1][0].policy[0], axis=-1).max() > 0.001  # it has moved


def test_the_constants():
    """J is a phase of about sqrt(T) plays; eta = (1 - gamma) sqrt(8 ln A / K), K phases in T."""
    s = ids.learner("politex", ids.mdp("garnet/5,3,2,discount=0.95"), 40_000).settings
    assert s["phase"] == 10  # 0.05 * 200
    assert s["phases"] == 200  # 40000 / (20 * 10)
    assert s["eta"] == pytest.approx(0.05 * sqrt(8 * log(3) / 200))
    assert ids.learner("politex", ids.mdp("riverswim/3"), 1).settings["phase"] == 1


def uniform_epochs(world, n, J, T):
    """Paths of J whole reset epochs of n seeds under the uniform policy, in T plays each."""
    made = run("uniform", world, T, n, record=["stream"])
    x, a, y, reset = (made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset"))
    resets = reset.cumsum(1)
    assert (resets[:, -1] >= J).all()
    length = (resets < J).sum(1) + 1
    none, first = np.zeros_like(x), np.ones(n, np.int64)
    return Path(x, a, y, none, reset, length, first, np.zeros(n, np.int32))


def test_returns_between_resets_estimate_q_without_bias():
    """E sum over visits of (return - Q^pi(x, a)) = 0 for every pair: a z test each, false alarm 1e-6 in all."""
    world, n, J = ids.mdp("garnet/5,2,3,seed=3,discount=0.7"), 4000, 4
    learner = politex(world.problem, 1000, phase=J + 1)
    state = learner.add(learner.init(np.arange(n)), uniform_epochs(world, n, J, 80))
    assert (state.epochs == J).all()
    assert not state.pending.any()
    P, r, gamma = dense(world), world.rewards, world.discount
    V = np.linalg.solve(np.eye(5) - gamma * P.mean(1), r.mean(1))
    Q = r + gamma * P @ V
    excess = state.returns - state.visits * Q
    z = excess.mean(0) / (excess.std(0) / sqrt(n))
    assert np.abs(z).max() < norm.isf(1e-6 / (2 * Q.size))
    wrong = state.returns - state.visits * (Q + 0.3)  # it can fail
    assert (np.abs(wrong.mean(0) / (wrong.std(0) / sqrt(n))) > norm.isf(1e-6 / (2 * Q.size))).all()


def test_an_epoch_may_come_in_stretches():
    world, n = ids.mdp("garnet/5,2,3,seed=3,discount=0.7"), 5
    learner = politex(world.problem, 1000, phase=100)
    path = uniform_epochs(world, n, 6, 80)
    whole, parts = learner.add(learner.init(np.arange(n)), path), learner.init(np.arange(n))
    for begin in range(0, 80, 3):
        piece = [array[:, begin : begin + 3] for array in path[:5]]
        parts = learner.add(parts, Path(*piece, np.clip(path.length - begin, 0, 3), path.time + begin, path.after))
    for one, other in zip(whole, parts, strict=True):
        assert one.tobytes() == other.tobytes()


def test_an_epoch_that_has_not_ended_does_not_count():
    world = ids.mdp("garnet/5,2,3,seed=3,discount=0.7")
    learner = politex(world.problem, 1000, phase=2)
    path = uniform_epochs(world, 3, 2, 80)
    state = learner.add(learner.init(np.arange(3)), path._replace(length=path.length - 1))
    assert (state.epochs == 1).all()
    before = state.policy.copy()
    assert (learner.plan(state).policy == before).all()


# Russo's instance, in the form of the lecture notes of Szepesvari and others: states u1, l1, u2, l2 in groups
# {u_i, l_i}; a1 stays in the group, a2 leaves it, both go to its l. Values are averaged over each group.
EPSILON, GAMMA = 0.1, 0.9
R_STAR = EPSILON + EPSILON / (2 * (1 - GAMMA))
GROUPS = np.array([0, 0, 1, 1])


def cycling():
    P, r = np.zeros((4, 2, 4)), np.zeros((4, 2))
    for x in range(4):
        i = GROUPS[x]
        P[x, 0, 2 * i + 1] = P[x, 1, 2 * (1 - i) + 1] = 1
        r[x, 0] = -R_STAR + (2 * EPSILON if x % 2 == 0 else 0)
    return MDP.from_dense(P, (r + R_STAR) / R_STAR, GAMMA, np.full(4, 0.25))  # rewards in [0, 1]


def evaluated(mdp, policy):
    """V^pi and the least-squares fit of Q^pi that is constant on the groups, in the units of the notes."""
    P, r, H = dense(mdp), mdp.rewards, mdp.horizon
    V = np.linalg.solve(np.eye(4) - GAMMA * np.einsum("xa,xay->xy", policy, P), (policy * r).sum(1))
    Q = r + GAMMA * P @ V
    fit = np.array([Q[g == GROUPS].mean(0) for g in range(2)])[GROUPS]
    return R_STAR * V - R_STAR * H, R_STAR * fit - R_STAR * H


def stays_in(group):
    return np.array([[1.0, 0.0] if g == group else [0.0, 1.0] for g in GROUPS])


def test_policy_iteration_with_aggregated_states_cycles_for_ever():
    """Greedy steps alternate between staying in one group and in the other, each at a loss of r*/(1 - gamma)."""
    mdp, policy = cycling(), stays_in(0)
    for k in range(200):
        assert (policy == stays_in(k % 2)).all()
        V, fit = evaluated(mdp, policy)
        assert -V.min() == pytest.approx(R_STAR / (1 - GAMMA), rel=1e-12)  # V* = 0: a2 everywhere
        assert -V.min() >= EPSILON / (2 * (1 - GAMMA) ** 2)
        policy = np.eye(2)[fit.argmax(1)]


@pytest.mark.parametrize("begin", [None, 0, 1])
def test_exponential_weights_on_the_same_estimates_do_not(begin):
    """Mean loss <= H b sqrt(2 ln A / K) + 2 epsilon H, b the range of Q; the policy comes to rest at the optimum."""
    mdp, K, H = cycling(), 4000, 1 / (1 - GAMMA)
    b = R_STAR * H
    eta = sqrt(2 * log(2) / K) / b
    policy = np.full((4, 2), 0.5) if begin is None else stays_in(begin)
    total, loss = np.zeros((4, 2)), []
    for _ in range(K):
        V, fit = evaluated(mdp, policy)
        loss.append(-V)
        total += fit
        policy = np.empty((4, 2))
        weigh(total, eta, policy)
    extra = 0.0 if begin is None else H * b / K  # one policy that the weights did not choose
    assert np.mean(loss, 0).max() <= H * b * sqrt(2 * log(2) / K) + 2 * EPSILON * H + extra
    assert loss[-1].max() < 0.01 * R_STAR / (1 - GAMMA)
    assert (np.diff(np.array(loss)[50:].max(1)) <= 1e-12).all()  # no alternation


def test_weights_of_great_sums_are_finite():
    total, policy = np.array([[0.0, 1e6], [5e5, 5e5]]), np.empty((2, 2))
    weigh(total, 10.0, policy)
    np.testing.assert_array_equal(policy, [[0.0, 1.0], [0.5, 0.5]])


def test_one_action_leaves_nothing_to_learn():
    assert (np.abs(run("politex", "garnet/4,1,2", 500, 2).regret) < 1e-6).all()


@pytest.mark.parametrize(
    ("text", "names"),
    [("politex,phase=0", "phase"), ("politex,step_scale=0", "step_scale"), ("politex,unvisited=no", "unvisited")],
)
def test_wrong_options_are_named(text, names):
    with pytest.raises(InputError, match=names):
        ids.learner(text, ids.mdp("riverswim/3"), 100)
