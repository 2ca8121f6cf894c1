"""The mirror step: against arithmetic of 60 digits, its variational meaning (Lemma C.1), and its limits."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.planning.mirror import STEEP, in_columns, in_rows, mirror_step, near_expm1, near_log1p, step_in_columns

getcontext().prec = 60


def exactly(log_pi, Q, eta):
    """V and log pi' of one state in 60 digits; pi is normalised first."""
    eta = Decimal(eta)
    weights = [Decimal(float(l)).exp() for l in log_pi]
    total = sum(weights)
    tilted = [w / total * (eta * Decimal(float(q))).exp() for w, q in zip(weights, Q, strict=True)]
    V = sum(tilted).ln() / eta
    return V, [t.ln() - eta * V for t in tilted]


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    A=st.integers(1, 5),
    eta=st.sampled_from([1e-9, 1e-5, 1e-3, 0.1, 1.0, 10.0, 300.0]),
    sharp=st.sampled_from([0.0, 1.0, 30.0, 200.0]),
    flat=st.sampled_from([0.0, 1e-9, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_a_step_has_all_its_digits(A, eta, sharp, flat, seed):
    """V to 1e-13 H whatever eta, log pi' to 1e-12 of its size: also where the mass is on the worst actions. What pi
    itself is rounded by, eps (1 + |log pi|), may enter V through the spread of eta Q, and no further."""
    rng = np.random.default_rng(seed)
    H = 100.0
    Q = H / 2 + flat * rng.uniform(-H / 2, H / 2, A)
    log_pi = -sharp * rng.uniform(0, 1, A)
    log_pi -= np.log(np.exp(log_pi).sum())
    V, log_new, new = mirror_step(log_pi[None, None], np.exp(log_pi)[None, None], Q[None, None], eta)
    V_exact, log_exact = exactly(log_pi, Q, eta)
    slack = 1e-13 * H + 1e-15 * (1 + sharp) * min(1, eta * flat * H) / eta
    assert abs(Decimal(float(V[0, 0])) - V_exact) <= Decimal(slack)
    for got, want, p in zip(log_new[0, 0], log_exact, new[0, 0], strict=True):
        size = 1 + abs(want)
        assert abs(Decimal(float(got)) - want) <= Decimal("1e-12") * size
        assert abs(Decimal(float(p)) - want.exp()) <= Decimal("1e-12") * size
    assert new.sum() == pytest.approx(1, abs=1e-14)


def test_polynomials_are_within_two_units_in_the_last_place():
    """With the functions of 60 digits, from the largest arguments to the smallest."""
    rng = np.random.default_rng(0)
    for near, exact, least in ((near_expm1, lambda z: z.exp() - 1, STEEP), (near_log1p, lambda s: (1 + s).ln(), -0.5)):
        at = [least, *(least * rng.uniform(0, 1, 500)), *(least * 10 ** rng.uniform(-20, 0, 500))]
        for z in map(float, at):
            want = exact(Decimal(z))
            assert abs(Decimal(near(z)) - want) <= 2 * Decimal(float(np.spacing(abs(float(want))))), z
        assert near(0.0) == 0.0


@pytest.mark.parametrize("range_of_q", [0.3, 3.0, 100.0])
def test_columns_are_rows_bit_for_bit(range_of_q):
    """Also where Q falls too far for a polynomial, and where probabilities underflow and come back."""
    rng = np.random.default_rng(3)
    X, A, eta = 70, 3, 2.0
    log_policy = np.zeros((1, X, A)) - np.log(A)
    policy = np.exp(log_policy)
    columns, before = np.ones((A, X + 5)), (log_policy[0].copy(), policy[0].copy())  # some more states than rows
    columns[:, :X] = np.vectorize(in_columns)(log_policy[0], policy[0]).T
    V_columns, tilted, rows = np.full(X + 5, -1.0), np.empty(columns.size), np.empty((3, X))
    better, woke = rng.uniform(0, 1, (X, A)), 0
    better[: X // 7] = better[: X // 7, :1]  # constant rows
    for k in range(4500):
        if k in (1500, 3000):
            better[:] = better[:, ::-1]  # what was best is worst
        Q = range_of_q * better[None] * (1 + (k % 5) / 50)
        slept = policy == 0
        V, log_policy, policy = mirror_step(log_policy, policy, Q, eta)
        q = np.zeros(columns.shape)
        q[:, :X] = Q[0].T
        step_in_columns(X, columns.reshape(-1), q.reshape(-1), q.max(0), eta, V_columns, tilted, *rows)
        assert V_columns[:X].tobytes() == V[0].tobytes()
        assert np.maximum(columns[:, :X].T, 0).tobytes() == policy[0].tobytes()
        if k % 100 == 0:
            for log_pi, of in zip(np.vectorize(in_rows)(*before, columns[:, :X].T), (log_policy, policy), strict=True):
                assert log_pi.tobytes() == of[0].tobytes()
        woke += (slept & (policy > 0)).sum()
    assert woke > 0
    assert (V_columns[X:] == -1).all()
    assert (columns[:, X:] == 1).all()


def test_a_probability_that_underflows_comes_back():
    log_policy = np.array([[[0.0, -2000.0]]])
    policy = np.exp(log_policy)
    assert policy[0, 0, 1] == 0
    for _ in range(3):
        _, log_policy, policy = mirror_step(log_policy, policy, np.array([[[0.0, 1000.0]]]), 1.0)
    assert policy[0, 0, 1] > 0.999


def test_a_constant_row_changes_nothing_and_costs_no_digits():
    pi = np.array([[[0.1, 0.2, 0.7]]])
    V, log_new, new = mirror_step(np.log(pi), pi, np.full((1, 1, 3), 1 / 3), 0.7)
    assert V[0, 0] == 1 / 3
    assert (new == pi).all()
    assert (log_new == np.log(pi)).all()


def test_a_step_leaves_its_input_alone_unless_told_otherwise():
    pi = np.full((1, 1, 2), 0.5)
    log_pi = np.log(pi)
    mirror_step(log_pi, pi, np.array([[[0.0, 1.0]]]), 1.0)
    assert (pi == 0.5).all()
    _, log_new, new = mirror_step(log_pi, pi, np.array([[[0.0, 1.0]]]), 1.0, in_place=True)
    assert new is pi
    assert log_new is log_pi
    assert pi[0, 0, 1] > 0.7
