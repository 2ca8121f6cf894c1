"""MD-MPI: the recursion in the paper's index, its limits, its two types, and its rate."""

from itertools import islice, pairwise

import numpy as np
import pytest

from ravi.mdps import riverswim
from ravi.planning import evaluate, md_mpi
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
