"""A mixture of simulators is the same, however they are written, and every mistake gets its name."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from ravi.core import MDP, Problem
from ravi.mdps import ensemble, garnet
from ravi.validation import InputError
from tests.helpers import dense
from tests.mdps.oracle import dense_features

X, A = 5, 3
TOLD = garnet(X, A, 3, seed=1)
P = dense(TOLD)
Q = dense(garnet(X, A, 4, seed=2))
REST = {"rewards": TOLD.rewards, "discount": TOLD.discount, "initial": TOLD.initial}
THETA = (0.25, 0.75)


def function(P):
    return lambda x, a: {y: p for y, p in enumerate(P[x, a]) if p}


def table(P):
    return {x: {a: [(p, y, 0.5, False) for y, p in enumerate(P[x, a]) if p] for a in range(A)} for x in range(X)}


def lists(P):
    return [[[(p, y) for y, p in enumerate(P[x, a])] for a in range(A)] for x in range(X)]


def twice(P):
    """Every outcome in two halves."""
    return [[[(p / 2, y) for y, p in enumerate(P[x, a])] * 2 for a in range(A)] for x in range(X)]


def as_mdp(P):
    return MDP.from_dense(P, TOLD.rewards, TOLD.discount, TOLD.initial)


FORMS = {
    "MDP": as_mdp,
    "array": lambda P: P,
    "nested lists": lambda P: P.tolist(),
    "one sparse matrix": lambda P: sparse.csr_matrix(P.reshape(X * A, X)),
    "sparse matrices": lambda P: [sparse.coo_array(P[:, a]) for a in range(A)],
    "table": table,
    "table of lists": lists,
    "table with doubles": twice,
    "list of dictionaries": lambda P: [table(P)[x] for x in range(X)],
    "function": function,
    "function, all states": lambda P: lambda x, a: dict(enumerate(P[x, a].tolist())),
    "function, numpy's keys": lambda P: lambda x, a: {np.int32(y): P[x, a, y] for y in range(X)},
}


@pytest.mark.parametrize("second", FORMS)
@pytest.mark.parametrize("first", ["MDP", "array", "function"])
def test_a_mixture_does_not_depend_on_how_its_simulators_are_written(first, second):
    expected = ensemble([as_mdp(P), as_mdp(Q)], THETA)
    found = ensemble([FORMS[first](P), FORMS[second](Q)], THETA, **REST)
    assert found.digest == expected.digest
    np.testing.assert_array_equal(dense_features(found), np.stack([P, Q], axis=-1))


def test_rewards_may_be_a_function_and_the_start_one_state():
    known = REST | {"rewards": lambda x, a: TOLD.rewards[x, a], "initial": 3}
    mdp = ensemble([function(P), function(Q)], THETA, **known, states=X, actions=A)
    np.testing.assert_array_equal(mdp.rewards, TOLD.rewards)
    np.testing.assert_array_equal(mdp.initial, np.eye(X)[3])
    assert (mdp.states, mdp.actions, mdp.discount, mdp.name) == (X, A, TOLD.discount, "ensemble")


def test_without_weights_it_is_what_a_learner_is_told():
    """The problem of the MDP with weights, field by field; nothing in it knows theta, nor where it puts no mass."""
    problem = ensemble([function(P), Q], **REST, name="out there")
    assert type(problem) is Problem
    told = ensemble([function(P), Q], THETA, **REST, name="out there").problem
    assert problem.__dict__.keys() == told.__dict__.keys()
    for field, value in problem.__dict__.items():
        if field != "support":
            np.testing.assert_array_equal(value, getattr(told, field), err_msg=field)
    assert problem.support.all()
    assert (problem.parameter_bound, problem.feature_bound) == (1, np.sqrt(2))
    assert not hasattr(problem, "transitions")


def test_a_function_is_asked_once_for_every_pair_with_plain_numbers():
    asked = []

    def simulator(x, a):
        asked.append((x, a))
        return {0: 1}

    ensemble([simulator], rewards=TOLD.rewards, discount=0.9, initial=0)
    assert asked == [(x, a) for x in range(X) for a in range(A)]
    assert all(type(x) is int and type(a) is int for x, a in asked)


def test_fractions_are_probabilities():
    third = Fraction(1, 3)
    mdp = ensemble([lambda x, a: dict.fromkeys(range(3), third)], 0, rewards=np.zeros((3, 1)), discount=0.9, initial=0)
    np.testing.assert_array_equal(mdp.transitions, np.full((3, 1, 3), 1 / 3))


def test_successors_of_no_simulator_are_not_stored():
    stay, step = (lambda x, a: {x: 1, (x + 2) % 9: 0.0}), (lambda x, a: {(x + 1) % 9: 1})
    mdp = ensemble([stay, step], THETA, rewards=np.zeros((9, 1)), discount=0.9, initial=0)
    assert mdp.branching == 2
    np.testing.assert_array_equal(mdp.successors[4, 0], (4, 5))
    np.testing.assert_array_equal(mdp.transitions[4, 0], THETA)


def test_units_come_along():
    scaled = MDP(**{**vars_of(TOLD), "units": (-2.0, 3.0)})
    assert ensemble([scaled, Q]).units == (-2, 3)
    assert ensemble([scaled, Q], THETA, units=(-2, 3)).units == (-2, 3)
    assert ensemble([P, Q], THETA, **REST, units=(5, 10)).units == (5, 10)
    assert ensemble([P, Q], THETA, **REST).units == (0, 1)
    with pytest.raises(InputError, match=r"simulators\[1\] has units\[0\] = 0, but simulators\[0\] has -2"):
        ensemble([scaled, TOLD])
    with pytest.raises(InputError, match=r"simulators\[0\] has units\[1\] = 3, but the one given has 4"):
        ensemble([scaled, Q], units=(-2, 4))


def vars_of(mdp):
    names = ("rewards", "successors", "transitions", "initial", "discount")
    return {name: getattr(mdp, name) for name in names}


def broken(at, row):
    """A function that is right but for one pair."""
    return lambda x, a: row if (x, a) == at else {0: 1}


def spoiled(value):
    other = P.copy()
    other[2, 1, 3] = value
    return other


def cut(P):
    return [[[(p, y, 0.0, (x, a) == (2, 1)) for y, p in enumerate(P[x, a])] for a in range(A)] for x in range(X)]


SIMULATORS = [
    (broken((2, 1), {0: 0.5, 3: 0.4}), r"simulators\[1\]\(2, 1\) sums to 0\.9, not 1"),
    (broken((2, 1), {0: 1.5, 3: -0.5}), r"simulators\[1\]\(2, 1\), p\(3\) is -0.5, a negative probability"),
    (broken((2, 1), {0: 1, 4: np.inf}), r"simulators\[1\]\(2, 1\), p\(4\) is inf, not a finite number"),
    (broken((2, 1), {0: "half"}), r"simulators\[1\]\(2, 1\), p\(0\) is 'half', not a number"),
    (broken((2, 1), {5: 1}), r"simulators\[1\]\(2, 1\) leads to state 5, but states are 0 to 4"),
    (broken((2, 1), {True: 1}), r"simulators\[1\]\(2, 1\) leads to state True, but states are 0 to 4"),
    (broken((2, 1), {1.0: 1}), r"simulators\[1\]\(2, 1\) leads to 1\.0, not to the number of a state"),
    (broken((2, 1), 3), r"simulators\[1\]\(2, 1\) gives int, not \{y: p\}"),
    (spoiled(-0.5), r"simulators\[1\]: P\[2, 1, 3\] is -0.5, a negative probability"),
    (spoiled(P[2, 1, 3] + 7), r"simulators\[1\]: transitions\[2, 1\] sums to 8, not 1$"),
    (P * (1 + 1e-4), r"transitions\[0, 0\] sums to 1.0001, not 1; MDP.from_dense\(..., renormalise=True\) rescales"),
    ([sparse.csr_matrix(P[:, 0]), P[:, 1]], r"simulators\[1\]: P\[1\] is ndarray, not a sparse matrix"),
    (sparse.csr_matrix(np.ones((7, 5))), r"simulators\[1\]: P has shape \(7, 5\), not \(X \* A, X\)"),
    (np.moveaxis(P, 1, 0), r"simulators\[1\]: P has shape \(3, 5, 5\), not \(X, A, X\); np.moveaxis"),
    (
        P[:, :2],
        r"simulators\[1\] has \(X, A\) = \(5, 2\), but simulators\[0\] has \(5, 3\)",
    ),
    ([[0.5, 0.5], [1.0]], r"simulators\[1\] is not an array of numbers"),
    (3.0, r"simulators\[1\] is float, not an MDP, an array"),
    (TOLD.problem, r"simulators\[1\] is Problem, not an MDP"),
    (cut(P), r"simulators\[1\]\[2\]\[1\]\[0\] is \(.*True\), a termination: ravi.gymnasium.mdp makes an MDP"),
    ({0: {}}, r"simulators\[1\]\[0\] is empty"),
    ({0: 1}, r"simulators\[1\]\[0\] is int, not a dict or a list"),
    ({0: {0: [(1, 0)]}, 2: {0: [(1, 0)]}}, r"simulators\[1\] has 2 entries, but none for 1; they are numbered from 0"),
    (
        {0: {0: [(1, 0)], 1: [(1, 0)]}, 1: [[(1, 0)]]},
        r"simulators\[1\]\[1\] has 1 actions, but simulators\[1\]\[0\] has 2",
    ),
    ([{1: [(1, 0)]}], r"simulators\[1\]\[0\] has 1 entries, but none for 0; they are numbered from 0"),
    ({0: {0: 1.0}}, r"simulators\[1\]\[0\]\[0\] is float, not a list of \(p, y\)"),
    ({0: {0: [(1.0,)]}}, r"simulators\[1\]\[0\]\[0\]\[0\] is \(1.0,\), not \(p, y\)"),
    ({0: {0: [(0.5, 0), (0.4, 0)]}}, r"simulators\[1\]\[0\]\[0\] sums to 0.9, not 1"),
]


@pytest.mark.parametrize(("simulator", "message"), SIMULATORS, ids=[message[:60] for _, message in SIMULATORS])
def test_a_wrong_simulator_is_refused_by_its_number_pair_and_entry(simulator, message):
    with pytest.raises(InputError, match=message):
        ensemble([P, simulator], **REST)


def without(*words, **more):
    return {word: value for word, value in REST.items() if word not in words} | more


MISSING = "none of the simulators is an MDP"
CALLS = [
    (lambda: ensemble([P, Q], **without("rewards")), f"rewards is missing: {MISSING}"),
    (
        lambda: ensemble([function(P)], **without("rewards"), actions=A),
        "states is missing: simulators that are functions",
    ),
    (
        lambda: ensemble([function(P)], **without("rewards"), states=X),
        "actions is missing: simulators that are functions",
    ),
    (lambda: ensemble([P], **REST, states=6), r"states is 6, but simulators\[0\] has 5"),
    (lambda: ensemble([function(P)], **REST, actions=2), r"actions is 2, but rewards has 3"),
    (
        lambda: ensemble([P], **REST | {"rewards": np.zeros((X, 2))}),
        r"rewards has \(X, A\) = \(5, 2\), but simulators\[0\]",
    ),
    (lambda: ensemble([function(P)], **REST | {"rewards": [1.0]}), r"rewards has shape \(1,\), not \(X, A\)"),
    (lambda: ensemble([P], **REST | {"rewards": P[..., 0] + 1}), r"rewards\[0, 0\] is .*, outside \[0, 1\]"),
    (lambda: ensemble([P], **REST | {"rewards": lambda x, a: x}), r"rewards\(2, 0\) is 2, outside \[0, 1\]"),
    (
        lambda: ensemble([TOLD], rewards=np.zeros((X, A))),
        r"simulators\[0\] has rewards\[0, 1\] = 0\.923.*, but the one given has 0",
    ),
    (lambda: ensemble([TOLD], initial=0), r"simulators\[0\] has initial\[0\] = 0.2, but the one given has 1"),
    (lambda: ensemble([TOLD], units=(0, 1, 2)), r"units has shape \(3,\), not that of simulators\[0\]"),
    (lambda: ensemble(TOLD, [1.0]), "simulators is one MDP; a mixture is of a list of simulators"),
    (lambda: ensemble(function(P), [1.0]), "simulators is one function; a mixture is of a list of simulators"),
    (lambda: ensemble([P, Q], 2, **REST), "weights is 2, but simulators are 0 to 1"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message[:60] for _, message in CALLS])
def test_what_is_missing_or_at_odds_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_an_error_of_the_users_own_function_says_at_which_pair():
    def simulator(x, a):
        return {0: 1} if x < 2 else {0: 1 / 0}

    with pytest.raises(ZeroDivisionError) as caught:
        ensemble([P, simulator], **REST)
    assert caught.value.__notes__ == ["in simulators[1](2, 0)"]
