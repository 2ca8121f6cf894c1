"""MD-MPI: the recursion in the paper's index, its limits, its two types, and its rate."""

from itertools import islice, pairwise

import numpy as np
import pytest

from ravi.mdps import garnet, one_state_of, riverswim
from ravi.planning import evaluate, md_mpi, solve
from ravi.planning.bellman import expect
from ravi.planning.mirror_descent import md_mpi_iterates
from ravi.planning.occupancies import relative_entropy
from ravi.validation import InputError
from tests.planning.exact import frozen_lake, random_mdp


@pytest.mark.parametrize(
    ("mdp", "eta", "K", "value", "value_of_policy", "tol"),
    [
        (riverswim(6, 0.9), 0.5, 100, 1.3033368608955852, 1.3036274456371255, 1e-14),
        (riverswim(6, 0.95), 0.1, 500, 4.6692938678826755, 4.6692941175114909, 1e-13),
        (frozen_lake(0.9), 0.1, 200, 0.011277281690517847, 0.011505248065359912, 1e-15),
        (frozen_lake(0.9), 0.01, 50, 0.0046516840655409798, 0.0046935121965410831, 1e-15),
    ],
)
def test_iterate_K_is_what_forty_digits_give(mdp, eta, K, value, value_of_policy, tol):
    iterate = md_mpi(mdp, eta, K)
    assert iterate.V[0] == pytest.approx(value, abs=tol)
    assert evaluate(mdp, iterate.policy).V[0] == pytest.approx(value_of_policy, abs=tol)


def test_the_first_iterate_is_the_start():
    """S1: V_1 = V_0 and pi_1 = pi_0."""
    mdp = riverswim(4, 0.9)
    pi0 = np.random.default_rng(0).dirichlet(np.ones(2), size=4)
    start = md_mpi(mdp, 0.5, 1, initial_value=[1, 2, 3, 4], initial_policy=pi0)
    assert (start.V == [1, 2, 3, 4]).all()
    assert (start.Q == [[1, 1], [2, 2], [3, 3], [4, 4]]).all()
    assert (start.policy == pi0).all()
    assert (md_mpi(mdp, 0.5, 1).V == 0).all()


def test_the_one_state_mdp_has_its_closed_form():
    """pi_k(a) ~ exp(eta (k - 1) r(a)): an index that is off by one shows at once."""
    r, eta = np.array([0.1, 0.5, 0.9]), 0.7
    for k, iterate in enumerate(islice(md_mpi_iterates(one_state_of(r, 0.8), eta), 30), start=1):
        weights = np.exp(eta * (k - 1) * r)
        np.testing.assert_allclose(iterate.policy[0], weights / weights.sum(), rtol=1e-12)


def test_values_sum_to_the_log_sum_exp_of_summed_action_values():
    """C2: sum_{i <= k} V_i = (1 / eta) log sum_a pi_0 exp(eta sum_i Q_i)."""
    mdp, eta = garnet(8, 3, 3, 1, 0.9), 0.4
    values, action_values = np.zeros(8), np.zeros((8, 3))
    for iterate in islice(md_mpi_iterates(mdp, eta), 40):
        values, action_values = values + iterate.V, action_values + iterate.Q
        np.testing.assert_allclose(values, np.log(np.exp(eta * action_values).mean(-1)) / eta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sweeps", [1, 2, 5])
@pytest.mark.parametrize("regularised", [True, False])
def test_evaluation_sweeps_are_those_of_the_paper(sweeps, regularised):
    """V_k = (T_k)^m V_{k-1}, T_k V = <pi_k, r + gamma P V> [- KL(pi_k || pi_{k-1}) / eta], written out; and C1."""
    mdp, eta = random_mdp(2, 7, 3, 3, 0.9), 0.8
    iterates = list(islice(md_mpi_iterates(mdp, eta, sweeps=sweeps, regularised_evaluation=regularised), 12))
    for before, now in pairwise(iterates):
        penalty = relative_entropy(now.policy, before.policy) / eta if regularised else 0
        V = before.V
        for _ in range(sweeps):
            V = (now.policy * (mdp.rewards + 0.9 * expect(mdp, V))).sum(-1) - penalty
        np.testing.assert_allclose(now.V, V, rtol=0, atol=1e-12)
        objective = (now.policy * now.Q).sum(-1) - relative_entropy(now.policy, before.policy) / eta
        for other in np.random.default_rng(0).dirichlet(np.ones(3), size=(50, 7)):
            assert (objective >= (other * now.Q).sum(-1) - relative_entropy(other, before.policy) / eta - 1e-12).all()


def test_many_sweeps_are_policy_iteration_in_the_limit():
    """With m and eta large, type 2 evaluates its policies, and finds the optimum in a few steps."""
    mdp = garnet(10, 3, 3, 4, 0.9)
    iterate = md_mpi(mdp, 1e6, 30, sweeps=300, regularised_evaluation=False)
    np.testing.assert_allclose(iterate.V, solve(mdp).V, rtol=0, atol=1e-6)


@pytest.mark.parametrize("eta", [0.01, 0.5, 5.0])
def test_policies_converge_at_the_rate_of_one_over_k(eta):
    """D2: k ||Q* - Q^{pi_k}|| <= 8 H^2 (1 + ln A / eta), for every k."""
    mdp = random_mdp(3, 8, 3, 3, 0.9)
    Q = solve(mdp).Q
    bound = 8 * mdp.horizon**2 * (1 + np.log(3) / eta)
    iterates = list(islice(md_mpi_iterates(mdp, eta), 300))
    evaluations = evaluate(mdp, np.stack([iterate.policy for iterate in iterates]))
    gaps = np.abs(Q - evaluations.Q).max((-1, -2))
    assert (np.arange(1, 301) * gaps <= bound).all()
    assert gaps[-1] < gaps[0] / 2


def test_a_batch_does_not_change_a_start():
    mdp = garnet(7, 3, 3, 5, 0.9)
    starts = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 7))
    together = md_mpi(mdp, 0.3, 20, sweeps=2, initial_policy=starts)
    assert together.V.shape == (4, 7)
    for i, start in enumerate(starts):
        alone = md_mpi(mdp, 0.3, 20, sweeps=2, initial_policy=start)
        assert all((one == other[i]).all() for one, other in zip(alone, together, strict=True))


def test_bad_input_is_named_before_the_first_iterate():
    mdp = riverswim(4, 0.9)
    with pytest.raises(InputError, match="eta is 0; it must be positive"):
        md_mpi_iterates(mdp, 0)
    with pytest.raises(InputError, match="iterations is 0; it must be at least 1"):
        md_mpi(mdp, 1.0, 0)
    with pytest.raises(InputError, match=r"sweeps is 1\.5, not a whole number"):
        md_mpi(mdp, 1.0, 5, sweeps=1.5)
    with pytest.raises(InputError, match=r"initial_value has shape \(3,\)"):
        md_mpi(mdp, 1.0, 5, initial_value=np.zeros(3))
    with pytest.raises(InputError, match=r"initial_policy\[0, 1\] is 0; every action needs a positive probability"):
        md_mpi(mdp, 1.0, 5, initial_policy=[[1, 0]] + [[0.5, 0.5]] * 3)
