"""MD-MPI, NPG, MDP-E and RAVI-UCB with a known kernel: against the planner, their theorems, and each other."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from ravi.estimators.counts import known
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.regularised import md_mpi, npg
from ravi.mdps import garnet, one_state_of, riverswim
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning import evaluate
from ravi.planning.mirror_descent import md_mpi_iterates
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, dense, spy

MDPS = {
    "riverswim": lambda: riverswim(5, 0.9),
    "garnet": lambda: garnet(8, 3, 3, 1, 0.85),
    "long epochs": lambda: riverswim(4, 0.97),
}


@pytest.fixture(params=MDPS)
def mdp(request):
    return MDPS[request.param]()


def with_known_kernel(mdp, eta, sweeps, *, regularised):
    estimator = known(mdp)
    return md_mpi.generic(
        mdp.problem, estimator, multiple_of_width(0.0, estimator), eta, sweeps=sweeps, regularised=regularised,
        kernel=lambda D: mdp.transitions[None],
    )  # fmt: skip


def states_of(learner, mdp, T=400, seed=0):
    seen = []
    run(learner, mdp, T, [seed], measures=[spy(seen)])
    return [state for state, _ in seen]


# ---- MD-MPI


@pytest.mark.parametrize("options", ["", ",scale=0.003,step_scale=30", ",beta=3,eta=0.7,delta=0.01"])
def test_with_one_regularised_sweep_it_is_ravi_ucb_bit_for_bit(mdp, options):
    one = run("md-mpi" + options, mdp, 2000, [0, 5], record=["stream"])
    other = run("ravi-ucb" + options, mdp, 2000, [0, 5], record=["stream"])
    for row in range(2):
        assert_same_bits(bits(one, row), bits(other, row))
    if options:
        assert np.ptp(one.batch.state.policy, axis=-1).max() > 0.1


@pytest.mark.parametrize("sweeps", [1, 2, 5])
@pytest.mark.parametrize("regularised", [True, False])
@pytest.mark.parametrize("eta", [0.05, 0.8])
def test_with_the_true_kernel_it_is_the_planner(mdp, sweeps, regularised, eta):
    """From V_1 = (T_1)^{m-1} V_0: the first of the sweeps is in Q_k, and Q_1 = E V_0 has none."""
    states = states_of(with_known_kernel(mdp, eta, sweeps, regularised=regularised), mdp)
    V1, P = np.zeros(mdp.states), dense(mdp).mean(1)
    for _ in range(sweeps - 1):
        V1 = mdp.rewards.mean(-1) + mdp.discount * P @ V1
    planned = md_mpi_iterates(mdp, eta, sweeps=sweeps, regularised_evaluation=regularised, initial_value=V1)
    for state, iterate in zip(states, planned, strict=False):
        np.testing.assert_allclose(state.V[0], iterate.V, rtol=0, atol=1e-11)
        np.testing.assert_allclose(state.policy[0], iterate.policy, rtol=0, atol=1e-11)
    assert len(states) > 5


@pytest.mark.parametrize("sweeps", [2, 0])
def test_values_stay_in_range_where_penalties_would_take_them_out(sweeps):
    """A policy that turns round pays KL / eta = 50 / 3; what the kernel has to give is less, so sweeps end at 0."""
    mdp = riverswim(4, 0.95)
    learner = with_known_kernel(mdp, 3.0, sweeps, regularised=True)
    start = learner.init(np.zeros(1, np.uint64))
    start.log_policy[:] = [np.log1p(-np.exp(-50)), -50]
    start.policy[:] = np.exp(start.log_policy)
    start.Q[:] = [0, mdp.horizon]
    state = learner.plan(start)
    assert (state.policy[0, :, 1] > 0.99).all()
    assert (state.V[0] == 0).all()
    np.testing.assert_allclose(state.Q[0], mdp.rewards, rtol=0, atol=1e-15)


# ---- NPG


@pytest.mark.parametrize("eta", [0.02, 1.0])
def test_npg_with_the_true_kernel_is_exact_npg(mdp, eta):
    """pi_{k+1} ~ pi_k exp(eta Q^{pi_k}), with Q^pi from a linear system."""
    X, A, gamma, P = mdp.states, mdp.actions, mdp.discount, dense(mdp)
    pi = np.full((X, A), 1 / A)
    states = states_of(with_known_kernel(mdp, eta, 0, regularised=False), mdp)
    assert len(states) > 5
    for state in states:
        np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-10)
        V = np.linalg.solve(np.eye(X) - gamma * np.einsum("xa,xay->xy", pi, P), (pi * mdp.rewards).sum(-1))
        Q = mdp.rewards + gamma * P @ V
        np.testing.assert_allclose(state.V[0], V, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.Q[0], Q, rtol=0, atol=1e-10)
        pi = pi * np.exp(eta * (Q - Q.max(-1, keepdims=True)))
        pi /= pi.sum(-1, keepdims=True)


def test_npg_is_optimistic_where_its_bonus_is_valid():
    """|gamma (P - P_hat) V| <= CB for all V in [0, H] makes the Q of a policy at least its true Q."""
    mdp = garnet(4, 2, 2, 5, 0.8)
    H = mdp.horizon
    learner = npg.npg(mdp.problem, 20_000, beta=H * 2.5, eta=0.2)
    for state in states_of(learner, mdp, 20_000)[::50]:
        N = state.data.visits[0][..., None]
        off = np.abs(state.data.moves[0] / N - mdp.transitions).sum(-1) * H
        if (mdp.discount * off <= 2.5 * H / np.sqrt(N[..., 0])).all():
            assert (state.Q[0] >= evaluate(mdp, state.policy[0]).Q - 1e-9).all()
            assert (state.Q[0] <= H).all()


# ---- MDP-E


# ---- RAVI-UCB with a known kernel


@pytest.mark.parametrize("eta", [0.05, 2.0])
def test_ravi_ucb_with_a_known_kernel_is_md_mpi(mdp, eta):
    states = states_of(ravi_ucb.known_kernel(mdp, 400, eta=eta), mdp)
    for state, iterate in zip(states, islice(md_mpi_iterates(mdp, eta), len(states)), strict=True):
        np.testing.assert_allclose(state.V[0], iterate.V, rtol=0, atol=1e-11)
        np.testing.assert_allclose(state.policy[0], iterate.policy, rtol=0, atol=1e-11)


def test_one_action_is_no_trouble_and_a_fixed_point_needs_a_kernel():
    for name in ("md-mpi", "md-mpi,sweeps=0", "npg", "mdp-e", "ravi-ucb/known", "o-reps", "politex"):
        assert (np.abs(run(name, one_state_of([0.5], 0.8), 50, 2).regret) < 1e-6).all()
    mdp = riverswim(4, 0.9)
    with pytest.raises(InputError, match="no kernel is given"):
        md_mpi.generic(mdp.problem, known(mdp), multiple_of_width(0.0, known(mdp)), 1.0, sweeps=0)


@pytest.mark.parametrize("evaluation", ["regularised", "plain"])
def test_a_billion_sweeps_end_and_are_the_fixed_point(evaluation, mdp):
    states = {}
    for sweeps in (10**9, 4000, 0):
        learner = md_mpi.md_mpi(mdp.problem, 60, scale=0.01, step_scale=10, sweeps=sweeps, evaluation=evaluation)
        states[sweeps] = run(learner, mdp, 60, 2)
    for row in range(2):
        assert_same_bits(bits(states[10**9], row), bits(states[4000], row))
    np.testing.assert_allclose(states[10**9].state.V, states[0].state.V, rtol=0, atol=1e-7 * mdp.horizon)


def test_sweeps_that_come_round_are_counted_out():
    """A made-up backup that hands V on from state to state, in circles of three: m sweeps turn it m - 1 times."""
    mdp = replace(garnet(3, 2, 2, 0, 0.5), rewards=np.zeros((3, 2)))
    turning = known(mdp)._replace(expect=lambda D, V: np.repeat(2 * np.roll(V, 1, axis=-1)[..., None], 2, axis=-1))
    V = np.array([[0.5, 1.0, 1.5]])
    for m in (*range(1, 40), 10**9, 10**9 + 1, 10**9 + 2):
        learner = md_mpi.generic(
            mdp.problem, turning, multiple_of_width(0.0, turning), 1.0, sweeps=m, regularised=False
        )  # fmt: skip
        s = learner.init(np.zeros(1, np.uint64))
        s = learner.plan(s._replace(Q=np.repeat(V[..., None], 2, axis=-1)))
        np.testing.assert_array_equal(s.V, np.roll(V, (m - 1) % 3, axis=-1), str(m))
