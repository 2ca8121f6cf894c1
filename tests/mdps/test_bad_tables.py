"""Wrong input is refused by an error that names the entry in the user's own array."""

import numpy as np
import pytest
import scipy.sparse as sp

from ravi.mdps import from_dense, from_features, from_sparse
from ravi.validation import InputError

X, A = 4, 2
NAN, INF = float("nan"), float("inf")


def table():
    P = np.zeros((X, A, X))
    P[:, 0] = 0.25
    P[:, 1, :2] = 0.5
    return {"P": P, "r": np.full((X, A), 0.5), "discount": 0.9, "initial": np.full(X, 0.25)}


def entry(name, index, value):
    def change(t):
        t[name][index] = value

    return change


def whole(name, value):
    def change(t):
        t[name] = value

    return change


SHARED = [
    (whole("reward_range", (0.0, 0.25)), r"r\[\d, \d\] is .*, outside \[0, 0.25\]"),
    (whole("reward_range", (1, 0)), "reward_range is 1 to 0: the least reward must be below the largest"),
    (entry("r", (3, 0), NAN), r"r\[3, 0\] is nan, not a finite number"),
    (whole("r", np.zeros((A, X))), r"r has shape \(2, 4\), not \(X,\) or \(X, A\) = \(4, 2\)"),
    (whole("r", [[0, 1], [0]]), "r is not an array of numbers"),
    (whole("r", np.zeros((X, A), complex)), "r holds complex numbers"),
    (whole("discount", 0), "discount is 0; it must lie strictly between 0 and 1"),
    (whole("discount", "high"), "discount is 'high', not a number"),
    (whole("initial", np.full(X, 0.2)), "initial sums to 0.8, not 1"),
    (whole("initial", np.full(3, 1 / 3)), r"initial has shape \(3,\), not \(X,\) = \(4,\)"),
    (whole("initial", [1.5, -0.5, 0, 0]), r"initial\[1\] is -0.5, a negative probability"),
    (whole("initial", 4), "initial is state 4, but states are 0 to 3"),
    (whole("initial", None), "initial is missing: the state where play begins, such as initial=0"),
    (entry("r", (1, 1), -np.inf), r"r\[1, 1\] is -inf; an action that a state does not have is given the row and the"),
    (entry("P", (3, 1, 0), 0.4), r"transitions\[3, 1\] sums to 0.9, not 1$"),
    (entry("P", (3, 1, 0), 0.5 + 1e-8), r"transitions\[3, 1\] sums to 1.00000001, not 1; renormalise=True"),
]

DENSE = [
    (entry("P", (3, 1, 2), -0.1), r"P\[3, 1, 2\] is -0.1, a negative probability"),
    (entry("P", (3, 1, 2), NAN), r"P\[3, 1, 2\] is nan, not a finite number"),
    (whole("P", np.full((A, X, X), 0.25)), r"P has shape \(2, 4, 4\), not \(X, A, X\); np.moveaxis\(P, 0, 1\)"),
    (whole("P", np.full((X, X), 0.25)), r"P has shape \(4, 4\), not \(X, A, X\)$"),
    (whole("P", [[[1]], [[0, 1]]]), "P is not an array of numbers"),
    (whole("P", [[[10**400]]]), "P is not an array of numbers"),
]

SPARSE = [
    (entry("P", (3, 1, 2), -0.1), r"P\[7, 2\] is -0.1, a negative probability"),
    (entry("P", (3, 1, 2), NAN), r"P\[7, 2\] is nan, not a finite number"),
    (whole("P", sp.csr_array(np.eye(4)[:3])), r"P has shape \(3, 4\), not \(X \* A, X\)"),
    (whole("P", sp.csr_array(np.eye(4), dtype=complex)), "P holds complex128, not real numbers"),
    (whole("P", np.eye(4)), "P is ndarray, not a sparse matrix or a sequence of them; from_dense takes arrays"),
    (whole("P", []), "P is list, not a sparse matrix"),
]

BY_ACTION = [
    (entry("P", (3, 1, 2), -0.1), r"P\[1\]\[3, 2\] is -0.1, a negative probability"),
    (entry("P", (3, 1, 2), NAN), r"P\[1\]\[3, 2\] is nan, not a finite number"),
    (whole("P", [sp.eye_array(4), sp.eye_array(3)]), r"P\[1\] has shape \(3, 3\), not \(X, X\) = \(4, 4\)"),
    (whole("P", [sp.eye_array(4), np.eye(4)]), r"P\[1\] is ndarray, not a sparse matrix"),
    (whole("P", [np.eye(4), np.eye(4)]), r"P\[0\] is ndarray, not a sparse matrix"),
]


def stacked(P):
    return sp.csr_matrix(P.reshape(X * A, X))


def by_action(P):
    return [sp.csr_array(P[:, a]) for a in range(A)]


@pytest.mark.parametrize(
    ("build", "stored", "cases"),
    [(from_dense, None, DENSE), (from_sparse, stacked, SPARSE), (from_sparse, by_action, BY_ACTION)],
    ids=["dense", "sparse", "by action"],
)
def test_a_wrong_table_is_refused(build, stored, cases):
    for change, message in SHARED + cases:
        t = table()
        change(t)
        if stored and isinstance(t["P"], np.ndarray) and t["P"].ndim == 3:
            t["P"] = stored(t["P"])
        with pytest.raises(InputError, match=message):
            build(**t)


def mixture():
    """X = 2, A = 1, d = 2: psi = the two unit kernels, theta = (.5, .5)."""
    features = np.zeros((2, 1, 2, 2))
    features[:, 0, 0, 0] = features[:, 0, 1, 1] = 1
    return {
        "features": features,
        "parameter": np.array([0.5, 0.5]),
        "successors": np.broadcast_to(np.arange(2), (2, 1, 2)).copy(),
        "rewards": np.zeros((2, 1)),
        "discount": 0.9,
        "initial": 0,
    }


MIXTURE = [
    (entry("parameter", 0, 0.6), r"features that do not make a kernel: .* transitions\[0, 0\] sums to 1.1, not 1"),
    (whole("parameter", (1.5, -0.5)), r"do not make a kernel: .* transitions\[0, 0, 1\] is -0.5, a negative prob"),
    (entry("features", (1, 0, 0, 0), 0.0), r"do not make a kernel: .* transitions\[1, 0\] sums to 0.5, not 1"),
    (entry("features", (1, 0, 0, 1), NAN), r"features\[1, 0, 0, 1\] is nan"),
    (whole("parameter", (1, 0, 0)), r"parameter has shape \(3,\), not \(D,\) = \(2,\)"),
    (whole("features", np.zeros((2, 1, 2))), r"features has shape \(2, 1, 2\), not \(X, A, B, D\)"),
    (whole("parameter_bound", 0.7), "parameter_bound is 0.7, but the parameter has norm 0.707107"),
    (whole("feature_bound", 1.4), r"feature_bound is 1.4, but at features\[0, 0\] some V .* = 1.41421 H"),
    (whole("feature_bound", 0), "feature_bound is 0; it must be positive"),
    (entry("successors", (1, 0), (1, 0)), r"successors\[1, 0\] is not in ascending order"),
    (entry("successors", (1, 0), (1, 1)), r"successors\[1, 0\] names state 1 twice"),
    (entry("successors", (1, 0, 1), 2), r"successors\[1, 0, 1\] is 2, but states are 0 to 1"),
    (whole("successors", np.zeros((2, 1, 1), int)), r"features has shape .*, not \(X, A, B, D\)"),
]


@pytest.mark.parametrize(("change", "message"), MIXTURE, ids=[message[:50] for _, message in MIXTURE])
def test_a_wrong_mixture_is_refused(change, message):
    t = mixture()
    change(t)
    with pytest.raises(InputError, match=message):
        from_features(**t)


def test_the_unchanged_tables_are_accepted():
    t = table()
    assert from_dense(**t).branching == from_sparse(**t | {"P": stacked(t["P"])}).branching == 4
    assert from_features(**mixture(), parameter_bound=0.7072, feature_bound=1.4143).dimension == 2
