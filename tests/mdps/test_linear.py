"""Linear MDPs are linear, with features of norm one at most, and the same for ever."""

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.mdps import aggregated, hypercube, hypercube_linear, linear
from ravi.validation import InputError
from tests.helpers import dense

ALL = ("linear", "linear/20,3,4,seed=2", "linear/aggregated/9,2,4", "hypercube/linear/4", "hypercube/linear/3,seed=5")


def fitted(mdp):
    """m (d, X) and theta (d,) by least squares, with what they miss."""
    rows = mdp.pair_features.reshape(mdp.states * mdp.actions, -1)
    wanted = np.concatenate([dense(mdp), mdp.rewards[..., None]], axis=2).reshape(len(rows), -1)
    found = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return found[:, :-1], found[:, -1], np.abs(rows @ found - wanted).max()


@pytest.mark.parametrize("text", ALL)
def test_kernel_and_rewards_are_linear_in_features_of_norm_one_at_most(text):
    mdp = ids.mdp(text)
    P = dense(mdp)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(-1), 1, atol=1e-12)
    assert (np.linalg.norm(mdp.pair_features, axis=-1) <= 1 + 1e-12).all()
    assert fitted(mdp)[2] < 1e-12


def test_states_of_a_group_are_the_same_to_every_action():
    mdp = aggregated(10, 3, 4)
    group = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert mdp.pair_features.shape == (10, 3, 12)
    for x in range(10):
        for a in range(3):
            assert mdp.pair_features[x, a].tolist() == [float(j == group[x] * 3 + a) for j in range(12)]
    P, first = dense(mdp), [group.index(g) for g in group]
    np.testing.assert_array_equal(P, P[first])
    np.testing.assert_array_equal(mdp.rewards, mdp.rewards[first])
    assert len(np.unique(mdp.rewards)) == 12


@pytest.mark.parametrize("options", [{}, {"dimension": 3, "discount": 0.8, "margin": 0.05, "seed": 4}])
def test_the_linear_hypercube_is_the_hypercube(options):
    mdp, other = hypercube_linear(**options), hypercube(**options)
    for field in ("rewards", "successors", "transitions", "initial", "features", "parameter"):
        np.testing.assert_array_equal(getattr(mdp, field), getattr(other, field))
    d, delta = other.dimension, 1 - other.discount
    assert mdp.pair_features.shape == (2, other.actions, d + 1)
    np.testing.assert_allclose(np.linalg.norm(mdp.pair_features, axis=-1), 1, atol=1e-15)
    theta, last = other.parameter[:-1], other.parameter[-1]  # theta / alpha and 1 / beta
    m = np.array([[*-theta, (1 - delta) * last, delta], [*theta, delta * last, 1 - delta]]).T
    np.testing.assert_allclose(mdp.pair_features @ m, dense(other), atol=1e-15)
    np.testing.assert_array_equal(mdp.pair_features[1], np.eye(d + 1)[[d] * other.actions])


@pytest.mark.parametrize("text", ALL)
def test_a_file_keeps_the_features(text, tmp_path):
    mdp = ids.mdp(text)
    mdp.save(tmp_path / "mdp")
    again = MDP.load(tmp_path / "mdp")
    assert again.digest == mdp.digest
    assert again.pair_features.tobytes() == mdp.pair_features.tobytes()
    assert not again.pair_features.flags.writeable
    assert (again.problem.pair_features == mdp.pair_features).all()


def test_the_digest_tells_features_apart():
    mdp, other = hypercube_linear(), hypercube()
    assert mdp.digest != other.digest
    turned = MDP(
        rewards=mdp.rewards, successors=mdp.successors, transitions=mdp.transitions, initial=mdp.initial,
        discount=mdp.discount, features=mdp.features, parameter=mdp.parameter, parameter_bound=mdp.parameter_bound,
        feature_bound=mdp.feature_bound, pair_features=mdp.pair_features[..., ::-1],
    )  # fmt: skip
    assert turned.digest != mdp.digest


def test_seeds_and_features():
    assert ids.mdp("linear").discount == 0.9
    assert ids.mdp("hypercube/4").pair_features is None
    assert len({linear(6, 2, 3, seed).digest for seed in range(10)}) == 10
    assert linear(6, 2, 3, 4).digest == linear(6, 2, 3, 4).digest


def test_features_longer_than_one_are_refused():
    mdp = linear(6, 2, 3)
    with pytest.raises(InputError, match=r"pair_features\[0, 0\] has norm"):
        MDP.from_linear(2 * mdp.pair_features, np.full((3, 6), 1 / 12), mdp.rewards, 0.9, 0)
