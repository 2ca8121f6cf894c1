"""Extended value iteration finds the best plausible kernel: against brute force, to a certified error."""

from math import inf

import numpy as np
import pytest

from ravi.estimators.counts import Counts
from ravi.optimism import extended_value_iteration as optimistic
from ravi.optimism import sets
from ravi.optimism.extended_value_iteration import greedy
from tests.literal.extended import inner_box, inner_kl, inner_l1
from tests.support.plans import backup_of, iterate, values

KINDS = ["l1", "bernstein", "kl"]
X, A, B = 6, 3, 3


def draws(seed, n=4, most=40):
    rng = np.random.default_rng(seed)
    successors = np.stack([np.sort(rng.choice(X, B, replace=False)) for _ in range(X * A)]).reshape(X, A, B)
    visits = rng.integers(0, most, (n, X, A)).astype(np.int32)
    shares = rng.dirichlet(np.full(B, 0.7), visits.size)
    moves = np.stack([rng.multinomial(v, s) for v, s in zip(visits.ravel(), shares, strict=True)])
    D = Counts(visits, moves.reshape(n, X, A, B).astype(np.int32))
    return rng.random((1, X, A)), successors.astype(np.int32), D, rng.uniform(0.05, 0.6, (n, X, A))


def made(kind, r, successors, gamma, D, radius):
    if kind == "l1":
        return backup_of(sets.l1, r, successors, gamma, D, radius)
    if kind == "kl":
        return backup_of(sets.kl, r, successors, gamma, D, radius / 4)
    return backup_of(sets.bernstein, r, successors, gamma, D, radius, radius / 5)


def inner(kind, p, radius, u):
    if kind == "l1":
        return inner_l1(p, radius, u)
    if kind == "kl":
        return inner_kl(p, radius / 4, u)
    return inner_box(p, [radius * np.sqrt(q * (1 - q)) + radius / 5 for q in p], u)


def most(kind, successors, D, radius, i, x, a, u):
    """max <p, u>, by the literal maximum over dense rows."""
    if D.visits[i, x, a] == 0:
        return max(u)
    p = np.zeros(X)
    p[successors[x, a]] = D.moves[i, x, a] / D.visits[i, x, a]
    return float(np.dot(inner(kind, p.tolist(), float(radius[i, x, a]), list(u)), u))


def brute(kind, r, successors, gamma, D, radius, i, c=inf):
    """V = T_c L V, iterated until nothing moves."""
    V = np.zeros(X)
    for _ in range(400):
        Q = [[r[0, x, a] + gamma * most(kind, successors, D, radius, i, x, a, V) for a in range(A)] for x in range(X)]
        L = np.max(Q, axis=1)
        new = np.minimum(L, L.min() + c)
        if np.abs(new - V).max() < 1e-12:
            return new
        V = new
    raise AssertionError("brute force did not end")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("c", [inf, 0.7])
def test_values_are_within_their_bound_of_the_fixed_point(kind, c):
    gamma = 0.8
    H = 1 / (1 - gamma)
    r, successors, D, radius = draws(1)
    backup = made(kind, r, successors, gamma, D, radius)
    want = np.stack([brute(kind, r, successors, gamma, D, radius, i, c) for i in range(4)])
    cut = np.ptp(want, axis=1)
    assert (cut > 0.69).all()  # the bound binds
    for tol in (0.3, 1e-2, 1e-4, 1e-11):
        plan = iterate(backup, np.zeros((4, X)), A, np.full(4, tol), span=c)
        assert (plan.high - plan.low <= tol).all()
        assert np.abs(values(plan, gamma) - want).max() <= gamma * H * tol / 2 + 1e-9
        width = gamma * H * (plan.high - plan.low)[:, None] / 2
        assert (np.abs(values(plan, gamma) - want) <= width + 1e-9).all()
        assert (plan.u.min(1) == 0).all()
        assert (np.ptp(plan.u, axis=1) <= c * (1 + 1e-12)).all()


def test_a_blind_plan_finds_the_gain_of_a_periodic_chain():
    """Two states in turn, rewards 1 and 0: gain 1/2. Without mixing the iteration would never end."""
    D = Counts(np.full((1, 2, 1), 10, np.int32), np.array([[[[0, 10]], [[10, 0]]]], np.int32))
    successors = np.array([[[0, 1]], [[0, 1]]], np.int32)
    backup = backup_of(sets.plain, np.array([[[1.0], [0.0]]]), successors, 1.0, D)
    plan = iterate(backup, np.zeros((1, 2)), 1, np.full(1, 1e-10), mixing=0.9)
    assert (plan.low + plan.high)[0] / 2 / 0.9 == pytest.approx(0.5, abs=1e-10)


def test_a_plan_that_does_not_end_is_cut(monkeypatch):
    monkeypatch.setattr(optimistic, "MOST", 50)
    D = Counts(np.full((1, 2, 1), 10, np.int32), np.array([[[[0, 10]], [[10, 0]]]], np.int32))
    backup = backup_of(sets.plain, np.array([[[1.0], [0.0]]]), np.array([[[0, 1]], [[0, 1]]], np.int32), 1.0, D)
    assert iterate(backup, np.zeros((1, 2)), 1, np.full(1, 1e-10)).sweeps[0] == 50


def test_ties_go_to_the_first_action():
    Q = np.array([[[1.0, 1.0, 0.0], [0.0, -0.0, -1.0], [0.0, 2.0, 2.0]]])
    np.testing.assert_array_equal(greedy(Q)[0], np.eye(3)[[0, 0, 1]])
