"""Maxima over sets of kernels, against linear programs, a dual search, and optimality conditions."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.optimize import linprog

from ravi.estimators.counts import Counts
from ravi.optimism import known_support, sets
from ravi.optimism.kl_dual import NARROW
from tests.support.plans import backup_of

GAMMA = 0.9


def rows(seed, *, X=9, A=3, B=4, n=3, most=30):
    """Random storage, counts and values: sparse rows, rows of one successor, pairs never played, ties in V."""
    rng = np.random.default_rng(seed)
    successors = np.stack([np.sort(rng.choice(X, B, replace=False)) for _ in range(X * A)]).reshape(X, A, B)
    visits = rng.integers(0, most, (n, X, A)).astype(np.int32)
    shares = rng.dirichlet(np.full(B, 0.4), (n, X, A))
    shares[:, 0] = np.eye(B)[0]  # one successor only
    moves = np.stack([rng.multinomial(v, s) for v, s in zip(visits.ravel(), shares.reshape(-1, B), strict=True)])
    V = rng.random((n, X)) * 10.0 ** rng.integers(-3, 3, (n, 1))
    V[0] = np.round(V[0] / V[0].max() * 3)  # ties
    D = Counts(visits, moves.reshape(n, X, A, B).astype(np.int32))
    return successors.astype(np.int32), D, V, rng


def backed(backup, V, A=3):
    Q = np.full((*V.shape, A), np.nan)
    backup(V, np.ones(len(V), np.bool_), Q)
    return Q


def p_hat(successors, D, i, x, a, X):
    p = np.zeros(X)
    p[successors[x, a]] = D.moves[i, x, a] / max(1, D.visits[i, x, a])
    return p


def pairs(D):
    return np.ndindex(*D.visits.shape)


def dual(p, v, d):
    """min over nu >= max V of nu - exp(sum p ln(nu - V) - d), by golden section on ln(nu - max V)."""
    top, s = v.max(), max(float(np.ptp(v)), 1e-300)
    seen = p > 0

    def g(z):
        t = math.exp(z)
        gap = t + (top - v[seen]) / s
        return t - math.exp(min(float(p[seen] @ np.log(gap)) - d, 700.0))

    low, high = -700.0, 9.0  # flat to the left of the least, where t is less than rounding
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, two) if g(one) < g(two) else (one, high)
    return top + s * min(g((low + high) / 2), g(-700.0))


@pytest.mark.parametrize(
    ("counts", "v", "d", "want"),
    [
        ([5, 5, 0], [0.0, 1.0, 0.5], 0.0, 0.5),  # a point
        ([5, 5, 0], [0.0, 1.0, 0.5], 1e3, 1.0),  # everything
        ([5, 5, 0], [2.0, 2.0, 2.0], 0.3, 2.0),  # constant V
        ([7, 0, 0], [1.0, 0.0, 0.0], 0.3, 1.0),  # one successor, the best
        ([7, 0, 0], [0.0, 1.0, 0.0], 0.3, 1 - math.exp(-0.3)),  # one successor; -ln p = d
        ([3, 4, 0], [0.0, 0.0, 1.0], 0.3, 1 - math.exp(-0.3)),  # ties below an unseen best
        ([5, 5, 0], [0.0, 1e-300, 0.0], 0.0, 5e-301),  # tiny differences
        ([1, 1, 0], [0.0, 1.0, 0.0], 0.2, (1 + math.sqrt(1 - math.exp(-0.4))) / 2),  # -ln(4 p (1 - p)) / 2 = d
        ([1, 1, 0], [5.0, 5.0 + 1e-9, 5.0], 0.2, 5 + 1e-9 * (1 + math.sqrt(1 - math.exp(-0.4))) / 2),
        ([10**9 - 1, 1, 0], [0.0, 1.0, 0.0], 1e-12, None),  # a rare successor
        ([1, 10**9 - 1, 0], [0.0, 1.0, 0.0], 30.0, None),
        ([1, 1, 1], [0.0, 1.0, 1.0 - 1e-14], 1.0, None),  # nearly the best
        ([1, 1, 0], [0.0, 1.0 - 1e-14, 1.0], 1.0, None),
    ],
)
def test_edges_of_the_kl_ball(counts, v, d, want):
    D = Counts(np.array([[[sum(counts)]]], np.int32), np.array(counts, np.int32)[None, None, None])
    Q, v, successors = np.empty((1, 1, 1)), np.array(v), np.arange(3, dtype=np.int32)[None, None]
    backup = backup_of(sets.kl, np.zeros((1, 1, 1)), successors, 1.0, D, np.full((1, 1, 1), d))
    for _ in range(2):  # the second from where the first ended
        backup(v[None], np.ones(1, np.bool_), Q)
        if want is None:
            assert Q[0, 0, 0] == pytest.approx(dual(np.array(counts) / sum(counts), v, d), abs=1e-10)
        else:
            assert Q[0, 0, 0] == pytest.approx(want, rel=1e-12, abs=1e-302)


@pytest.mark.parametrize("seen", [1, 2, 5, 7])
def test_a_narrow_kl_ball_is_resolved_to_twelve_digits(seen):
    """Two successors: q ln(q / p) + (1 - q) ln((1 - q) / (1 - p)) = d, solved for p in decimal numbers; on both sides
    of where the series takes over from Newton, and farther off."""
    getcontext().prec = 60
    q = Decimal(seen) / 8
    D = Counts(np.array([[[8]]], np.int32), np.array([[[[seen, 8 - seen]]]], np.int32))
    for factor in (1e-6, 0.01, 0.9, 1.1, 100.0, 0.9e4, 1.1e4, 1e6):
        d = factor * NARROW**2 * float(q * (1 - q)) / 2
        low, high = q, Decimal(1) - Decimal(10) ** -30
        for _ in range(120):
            p = (low + high) / 2
            kl = q * (q / p).ln() + (1 - q) * ((1 - q) / (1 - p)).ln()
            low, high = (p, high) if kl < Decimal(d) else (low, p)
        Q, successors = np.empty((1, 1, 1)), np.arange(2, dtype=np.int32)[None, None]
        backup = backup_of(sets.kl, np.zeros((1, 1, 1)), successors, 1.0, D, np.full((1, 1, 1), d))
        backup(np.array([[1.0, 0.0]]), np.ones(1, np.bool_), Q)
        assert Q[0, 0, 0] == pytest.approx(float(low), abs=2e-12)


KINDS = ["plain", "smoothed", "l1", "bernstein", "kl"]  # on all states
FORMS = [*((sets, kind) for kind in KINDS), *((known_support, kind) for kind in KINDS[2:])]
SHAPES = [{}, {"X": 6, "B": 6}, {"X": 40, "B": 30, "most": 400}, {"X": 12, "B": 1}]
every_form = pytest.mark.parametrize(("where", "kind"), FORMS, ids=[f"{w.__name__[14:]}-{k}" for w, k in FORMS])
every_shape = pytest.mark.parametrize("shape", SHAPES)


def made(where, kind, r, successors, D, radius, gamma=GAMMA):
    """A backup of each kind, on all states (`sets`) or on those that are stored (`known_support`)."""
    radii = {"l1": [radius], "bernstein": [radius, radius / 9], "kl": [radius]}.get(kind, [])
    return backup_of(getattr(where, kind), r, successors, gamma, D, *radii, reference=2 if kind == "smoothed" else 0)


def radii(D, rng):
    """Some of 0, some beyond all."""
    return rng.choice([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.7, 2.0, 60.0], D.visits.shape)


@every_shape
@pytest.mark.parametrize(("where", "kind"), FORMS[2:])
def test_the_maximum_is_that_of_a_program(where, kind, shape):
    successors, D, V, rng = rows(1, **shape, n=2)
    X, radius = V.shape[1], radii(D, rng)
    Q = backed(made(where, kind, np.zeros((1, X, 3)), successors, D, radius, 1.0), V)
    for i, x, a in pairs(D):
        states = successors[x, a] if where is known_support else np.arange(X)
        p, v = p_hat(successors, D, i, x, a, X)[states], V[i, states] / V[i].max()  # programs are solved to 1e-7
        d, B, one = radius[i, x, a], len(states), np.ones((1, len(states)))
        if D.visits[i, x, a] == 0:
            want = v.max()  # every distribution on them is plausible
        elif kind == "l1":  # p = p_hat + up - down, sum(up + down) <= d
            sides = np.vstack([np.c_[one, one], np.c_[-np.eye(B), np.eye(B)]])
            found = linprog(np.r_[-v, v], A_ub=sides, b_ub=np.r_[d, p], A_eq=np.c_[one, -one], b_eq=[0.0])
            want = p @ v - found.fun
        elif kind == "bernstein":
            beta = d * np.sqrt(p * (1 - p)) + d / 9
            box = np.c_[np.maximum(0, p - beta), np.minimum(1, p + beta)]
            found = linprog(-v, A_eq=one, b_eq=[1.0], bounds=box)
            want = -found.fun if found.status == 0 else p @ v  # a box that is one point, to rounding
            assert found.status == 0 or d < 1e-5
        else:
            want = dual(p, v, d) if d > 0 else p @ v
        assert Q[i, x, a] == pytest.approx(want * V[i].max(), abs=(1e-9 if kind == "kl" else 3e-7) * V[i].max())


@every_form
def test_neither_batches_nor_sweeps_before_leave_a_trace_and_nothing_else_is_written(where, kind):
    """What a backup keeps from one sweep to the next only makes it faster."""
    successors, D, V, rng = rows(7)
    r, radius = rng.random(D.visits.shape), rng.uniform(0, 1.5, D.visits.shape)

    def one(part, history, value=lambda V: V):
        backup = made(where, kind, r[part], successors, Counts(D.visits[part], D.moves[part]), radius[part])
        for k in range(history):
            backed(backup, np.cos(V[part] * (3 + k)))
        Q = np.full((*V[part].shape, 3), 99.0)
        for step in (1e-3, 0.0):
            backup(value(V[part]) + step, np.arange(len(V[part])) != 1, Q)
        return Q

    before = [array.tobytes() for array in (*D, V, successors)]
    batch = one(slice(0, 3), 2)
    assert (batch[1] == 99).all()  # a seed that is not active
    for i in (0, 2):
        np.testing.assert_array_equal(one(slice(i, i + 1), 2), batch[i : i + 1])
        np.testing.assert_allclose(one(slice(i, i + 1), 0), batch[i : i + 1], rtol=0, atol=1e-11 * (1 + V.max()))
    assert before == [array.tobytes() for array in (*D, V, successors)]
