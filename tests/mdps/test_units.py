"""The user's units: kept, saved and shown, and no part of the problem itself."""

import io
import pickle
from dataclasses import replace

import numpy as np
import pytest

import ravi
from ravi import InputError
from ravi.mdps import riverswim

MDP = replace(riverswim(4, 0.9), units=(-3.0, 5.0))


def test_a_value_in_units_is_that_of_the_rewards_in_units():
    """r -> low + (high - low) r maps V to H low + (high - low) V, so (1 - gamma) <nu_0, V> like a reward."""
    assert (MDP.in_units(0.0), MDP.in_units(1.0), MDP.in_units(0.25)) == (-3.0, 5.0, -1.0)
    np.testing.assert_array_equal(MDP.in_units(np.array([0.0, 0.5])), [-3.0, 1.0])
    P = np.zeros((4, 2, 4))
    np.put_along_axis(P, MDP.successors.astype(np.int64), MDP.transitions, axis=2)
    policy = np.full((4, 2), 0.5)
    chain, earned = np.einsum("xay,xa->xy", P, policy), (policy * MDP.in_units(MDP.rewards)).sum(1)
    V = np.linalg.solve(np.eye(4) - 0.9 * chain, earned)
    assert MDP.horizon * MDP.in_units(float(ravi.return_of(MDP, policy))) == pytest.approx(MDP.initial @ V, rel=1e-12)


def test_units_are_no_number_of_the_problem():
    plain = riverswim(4, 0.9)
    assert plain.units == (0.0, 1.0)
    assert MDP.digest == plain.digest
    assert MDP.problem.units == (-3.0, 5.0)
    assert pickle.loads(pickle.dumps(MDP)).units == (-3.0, 5.0)
    assert "rewards from -3 to 5" in repr(MDP)
    assert "rewards" not in repr(plain)


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ((1, 1), "units is 1 to 1: the least reward must be below the largest"),
        ((2, 1), "units is 2 to 1"),
        ((0, np.inf), r"units\[1\] is inf"),
        ((np.nan, 1), r"units\[0\] is nan"),
        ((-1.7e308, 1.7e308), "a range that is not a finite number"),
        ((0, 1, 2), r"units has shape \(3,\)"),
        ("units", "units is not an array of numbers"),
    ],
)
def test_units_that_are_none_are_an_error(units, message):
    with pytest.raises(InputError, match=message):
        replace(MDP, units=units)


def test_an_mdp_keeps_its_units_in_a_file():
    saved = io.BytesIO()
    MDP.save(saved)
    assert ravi.MDP.load(io.BytesIO(saved.getvalue())).units == (-3.0, 5.0)


def test_a_run_keeps_and_shows_its_units():
    run = ravi.run("uniform", MDP, 50, 2)
    saved = io.BytesIO()
    run.save(saved)
    assert ravi.Run.load(io.BytesIO(saved.getvalue())).units == run.units == (-3.0, 5.0)
    assert f"regret {8 * run.regret.mean():,.2f}, " in str(run)
    assert f"optimum {MDP.in_units(run.optimum):.6g}, " in str(run)
    assert f"{MDP.in_units(run.results['reward_total'].mean() / 50):.6g} per step realised" in str(run)
    assert "(rewards from -3 to 5)" in str(run)


def test_tables_keep_any_bounded_rewards_in_their_units():
    """The value in units is that of the plain Bellman equations; data frames, sparse and nested lists are one MDP."""
    rng = np.random.default_rng(0)
    P, r = rng.dirichlet(np.ones(3), size=(3, 2)), rng.normal(size=(3, 2, 3))
    full = ravi.MDP.from_dense(P, r, discount=0.9, initial=0)
    assert full.units == (r.min(), r.max())
    policy = ravi.solve(full).policy
    chain, earned = np.einsum("xay,xa->xy", P, policy), (policy * (P * r).sum(-1)).sum(1)
    V = np.linalg.solve(np.eye(3) - 0.9 * chain, earned)
    assert ravi.evaluate(ravi.Policy(table=policy, discount=0.9), full).exact == pytest.approx(V[0], rel=1e-9)

    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    whole = rng.integers(-3, 8, size=(3, 2))
    dense = ravi.MDP.from_dense(P, whole, discount=0.9, initial=0)
    matrices = [sparse.csr_array(P[:, a]) for a in range(2)]
    for kernel, rewards in (
        (P.tolist(), pandas.DataFrame(whole)),
        (matrices, whole.tolist()),
        (matrices, sparse.csr_array(whole)),
    ):
        same = ravi.MDP.from_dense(kernel, rewards, discount=0.9, initial=0)
        assert (same.digest, same.units) == (dense.digest, dense.units) == (dense.digest, (whole.min(), whole.max()))


def test_rewards_in_the_unit_interval_stay_as_they_are_unless_a_range_is_given():
    P, r = np.ones((1, 2, 1)), np.array([[0.25, 0.5]])
    assert ravi.MDP.from_dense(P, r, discount=0.9, initial=0).rewards.tobytes() == r.tobytes()
    wide = ravi.MDP.from_dense(P, r, discount=0.9, initial=0, reward_range=(-1, 1))
    assert (wide.units, wide.rewards.tolist()) == ((-1.0, 1.0), [[0.625, 0.75]])
    by_state = ravi.MDP.from_dense(P, [0.5], discount=0.9, initial=0)
    assert by_state.rewards.tolist() == [[0.5, 0.5]]


def test_rewards_of_a_linear_mdp_are_scaled_and_stay_linear():
    phi, m = [[[1, 0]], [[0, 1]]], [[0.5, 0.5], [0, 1]]
    made = ravi.MDP.from_linear(phi, m, [2, 4], discount=0.9, initial=0)
    assert (made.units, made.rewards.tolist()) == ((0.0, 4.0), [[0.5], [1.0]])
    with pytest.raises(InputError, match=r"r\[0, 0\] is -2, outside \[0, 4\]"):
        ravi.MDP.from_linear(phi, m, [-2, 4], discount=0.9, initial=0)
