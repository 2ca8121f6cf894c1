"""Tables of simulators that only draw: frequencies, within the stated error, and ready for `ravi.ensemble`."""

import numpy as np
import pytest

import ravi
from ravi.mdps.simulators import sampled
from ravi.validation import InputError

CHANCES = np.random.default_rng(0).dirichlet(np.ones(4), (4, 2))  # (X, A, X)


def simulator(x, a, u):
    return int(np.searchsorted(np.cumsum(CHANCES[x, a])[:-1], u, side="right"))


def dense(table):
    P = np.zeros((4, 2, 4))
    for x, of_x in enumerate(table):
        for a, row in enumerate(of_x):
            for p, y in row:
                P[x, a, y] = p
    return P


@pytest.mark.parametrize("draws", [100, 10_000])
def test_the_table_is_within_its_error(draws):
    """Which fails with probability 0.01 over seeds; the seed is fixed."""
    found = sampled(simulator, 4, 2, draws)
    off = np.abs(dense(found.table) - CHANCES).sum(-1)
    assert off.max() <= found.error
    assert off.max() > found.error / 20  # it is not idle either
    assert found.error == pytest.approx(np.sqrt(2 * (4 * np.log(2) + np.log(8 / 0.01)) / draws))


def test_seeds_give_other_draws_and_the_same_seed_the_same():
    one, again, other = (sampled(simulator, 4, 2, 50, seed=seed).table for seed in (1, 1, 2))
    assert one == again != other


def test_an_ensemble_is_made_of_them():
    tables = [sampled(simulator, 4, 2, 500, seed=seed).table for seed in (1, 2)]
    mdp = ravi.ensemble(tables, [0.5, 0.5], rewards=np.eye(4)[:, :2], discount=0.9, initial=0)
    np.testing.assert_allclose(mdp.features.sum(2), 1)
    np.testing.assert_allclose(
        np.take_along_axis(dense(tables[0]) / 2 + dense(tables[1]) / 2, mdp.successors, 2), mdp.transitions
    )


def test_a_state_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"simulator\(0, 0, u\) leads to state 9, but states are 0 to 3"):
        sampled(lambda x, a, u: 9, 4, 2, 10)
