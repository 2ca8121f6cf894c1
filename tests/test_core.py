"""An MDP is what it claims to be, and a learner sees no more of it than it may."""

import dataclasses

import numpy as np
import pytest

from ravi.core import MDP, Problem
from ravi.mdps import bandit, riverswim, two_cycle
from ravi.validation import ENUMERATED, InputError, feature_bound

NAN, INF = float("nan"), float("inf")


def fields():
    """X = 3, A = 2, B = 2, d = 1: a valid linear mixture, psi = P."""
    P = np.full((3, 2, 2), 0.5)
    return {
        "rewards": np.full((3, 2), 0.5),
        "successors": np.array([[[0, 1], [1, 2]]] * 3),
        "transitions": P,
        "initial": np.array([0.5, 0.25, 0.25]),
        "discount": 0.9,
        "features": P[..., None].copy(),
        "parameter": np.array([1.0]),
    }


def entry(name, index, value):
    def change(f):
        f[name][index] = value

    return change


def whole(name, value):
    def change(f):
        f[name] = value

    return change


def without(*names):
    def change(f):
        for name in names:
            del f[name]

    return change


BAD = [
    (entry("rewards", (1, 0), 1.5), r"rewards\[1, 0\] is 1.5, outside \[0, 1\]"),
    (entry("rewards", (1, 0), -0.5), r"rewards\[1, 0\] is -0.5, outside \[0, 1\]"),
    (entry("rewards", (1, 0), NAN), r"rewards\[1, 0\] is nan, not a finite number"),
    (whole("rewards", np.zeros(3)), r"rewards has shape \(3,\); it must be \(X, A\)"),
    (whole("rewards", np.zeros((0, 2))), r"rewards has shape \(0, 2\); it must be \(X, A\) with X and A at least 1"),
    (whole("rewards", [[1], [1, 2]]), "rewards is not an array of numbers"),
    (whole("rewards", NAN), "rewards is nan, not a finite number"),
    (whole("discount", 0), "discount is 0; it must lie strictly between 0 and 1"),
    (whole("discount", 1.5), "discount is 1.5; it must lie strictly between 0 and 1"),
    (whole("discount", -1), "discount is -1; it must lie strictly between 0 and 1"),
    (whole("discount", NAN), "discount is nan"),
    (whole("discount", 10**400), "discount is 1000.*, not a number"),
    (entry("initial", 0, 0.6), "initial sums to 1.1, not 1"),
    (entry("initial", 0, NAN), r"initial\[0\] is nan"),
    (whole("initial", [0.5, -0.5, 1]), r"initial\[1\] is -0.5, a negative probability"),
    (whole("initial", [0.5, 0.5]), r"initial has shape \(2,\), not \(X,\) = \(3,\)"),
    (whole("initial", 3), "initial is state 3, but states are 0 to 2"),
    (whole("initial", -1), "initial is state -1, but states are 0 to 2"),
    (entry("successors", (2, 1, 1), 3), r"successors\[2, 1, 1\] is 3, but states are 0 to 2"),
    (entry("successors", (2, 1, 0), -1), r"successors\[2, 1, 0\] is -1, but states are 0 to 2"),
    (entry("successors", (2, 1), (1, 1)), r"successors\[2, 1\] names state 1 twice"),
    (entry("successors", (2, 1), (2, 1)), r"successors\[2, 1\] is not in ascending order"),
    (whole("successors", np.zeros((3, 2, 1))), "successors holds float64, not whole numbers"),
    (whole("successors", np.zeros((3, 1, 1), int)), r"successors has shape \(3, 1, 1\), not \(X, A, B\)"),
    (whole("successors", np.zeros((3, 2, 0), int)), r"successors has shape \(3, 2, 0\), not \(X, A, B\)"),
    (whole("successors", [[[0], [0, 1]]] * 3), "successors is not an array of numbers"),
    (entry("transitions", (2, 0, 1), 0.4), r"transitions\[2, 0\] sums to 0.9, not 1"),
    (entry("transitions", (2, 0), (1.5, -0.5)), r"transitions\[2, 0, 1\] is -0.5, a negative probability"),
    (entry("transitions", (2, 0, 1), NAN), r"transitions\[2, 0, 1\] is nan"),
    (entry("transitions", (2, 0, 1), INF), r"transitions\[2, 0, 1\] is inf"),
    (whole("transitions", np.full((3, 2, 3), 1 / 3)), r"transitions has shape \(3, 2, 3\), not \(X, A, B\)"),
    (
        entry("transitions", (2, 0), (0.25, 0.75)),
        r"give transitions\[2, 0, 0\] = 0.5, not 0.25: they do not make this ke",
    ),
    (entry("features", (2, 0, 1, 0), 0.4), r"give transitions\[2, 0, 1\] = 0.4, not 0.5: they do not make this kernel"),
    (entry("features", (2, 0, 1, 0), NAN), r"features\[2, 0, 1, 0\] is nan"),
    (whole("features", np.full((3, 2, 2), 0.5)), r"features has shape \(3, 2, 2\), not \(X, A, B, D\)"),
    (without("features"), "parameter is given without features"),
    (without("parameter"), "features are given without the parameter"),
    (whole("parameter", [1.0, 0.0]), r"parameter has shape \(2,\), not \(D,\) = \(1,\)"),
    (whole("parameter", [INF]), r"parameter\[0\] is inf"),
    (whole("parameter_bound", 0.99), "parameter_bound is 0.99, but the parameter has norm 1"),
    (whole("feature_bound", 0.99), r"feature_bound is 0.99, but at features\[0, 0\] some V .* = 1 H"),
    (whole("parameter_bound", 0), "parameter_bound is 0; it must be positive"),
    (whole("feature_bound", NAN), "feature_bound is nan"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_a_wrong_field_is_refused_by_name(change, message):
    f = fields()
    change(f)
    with pytest.raises(InputError, match=message):
        MDP(**f)


def test_the_unchanged_fields_are_accepted_and_bounded():
    mdp = MDP(**fields())
    assert (mdp.states, mdp.actions, mdp.branching, mdp.dimension) == (3, 2, 2, 1)
    assert (mdp.parameter_bound, mdp.feature_bound, mdp.bound) == (1, 1, 1)
    assert mdp.horizon == pytest.approx(10)


def test_a_learner_is_told_everything_but_the_kernel_and_its_parameter():
    mdp = two_cycle()
    told = mdp.problem
    assert type(told) is Problem
    hidden = {f.name for f in dataclasses.fields(MDP)} - {f.name for f in dataclasses.fields(Problem)}
    assert hidden == {"transitions", "parameter"}
    assert not any(hasattr(told, name) for name in hidden)
    for field in dataclasses.fields(Problem):
        assert getattr(told, field.name) is getattr(mdp, field.name)
    assert told is mdp.problem
    assert (told.states, told.actions, told.dimension, told.bound) == (3, 2, 2, np.sqrt(2))


def test_nobody_can_write_into_an_mdp():
    f = fields()
    mdp = MDP(**f)
    for name in ("rewards", "successors", "transitions", "initial", "features", "parameter"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mdp, name)[...] = 0
        before = getattr(mdp, name).copy()
        f[name][...] = 0  # the caller's own array
        np.testing.assert_array_equal(getattr(mdp, name), before)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mdp.discount = 0.5


def test_an_mdp_computes_in_its_own_types():
    f = fields() | {"rewards": [[0, 1]] * 3, "successors": np.array([[[0, 1], [1, 2]]] * 3, np.uint8), "initial": 1}
    mdp = MDP(**f)
    assert mdp.rewards.dtype == mdp.transitions.dtype == mdp.initial.dtype == np.float64
    assert mdp.successors.dtype == np.int32
    assert mdp.successors.flags.c_contiguous
    np.testing.assert_array_equal(mdp.initial, (0, 1, 0))


def test_an_mdp_shows_its_sizes():
    assert repr(riverswim()) == "<MDP riverswim/6: X=6, A=2, B=3, gamma=0.95>"
    assert repr(two_cycle().problem) == "<Problem two-cycle: X=3, A=2, B=2, d=2, gamma=0.9>"


def test_only_a_mixture_has_a_bound():
    assert bandit(2).bound == pytest.approx(np.sqrt(1 + 0.25 + 0.81))
    assert riverswim().dimension == 0
    with pytest.raises(InputError, match="riverswim/6 has no features"):
        riverswim().bound  # noqa: B018


@pytest.mark.parametrize("B", [1, 3, 5, 12, 13])
def test_the_feature_bound_holds_and_is_exact_for_few_successors(B):
    """Against every vertex V in {0, 1}^B, for features of both signs and of one."""
    rng = np.random.default_rng(B)
    vertices = (np.arange(2**B)[:, None] >> np.arange(B) & 1).astype(float)
    for features in (rng.normal(size=(2, 2, B, 3)), rng.random((2, 2, B, 3)), -rng.random((2, 2, B, 3))):
        largest = np.linalg.norm(np.einsum("vb,xabd->vxad", vertices, features), axis=-1).max()
        bound = feature_bound(features)
        assert bound >= largest * (1 - 1e-12)
        if B <= ENUMERATED or (features > 0).all() or (features < 0).all():
            assert bound == pytest.approx(largest, rel=1e-12)
        with pytest.raises(InputError, match="feature_bound is"):
            feature_bound(features, largest * 0.95)
