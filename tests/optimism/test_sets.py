"""Maxima over sets of kernels, against linear programs, a dual search, and optimality conditions."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from ravi.estimators.counts import Counts
from ravi.optimism import sets
from ravi.optimism.kl_dual import NARROW
from tests.support.plans import backup_of
from tests.support.plans import least as least_of

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


def test_the_l1_maximum_is_that_of_the_linear_program():
    for seed in range(4):
        successors, D, V, rng = rows(seed)
        X = V.shape[1]
        radius = rng.choice([0.0, 1e-9, 0.1, 0.5, 1.0, 1.7, 2.0, 3.0], D.visits.shape)
        Q = backed(backup_of(sets.l1, np.zeros((1, X, 3)), successors, 1.0, D, radius), V)
        for i, x, a in pairs(D):
            if D.visits[i, x, a] == 0:
                assert Q[i, x, a] == V[i].max()
                continue
            p, d, one = p_hat(successors, D, i, x, a, X), radius[i, x, a], np.ones((1, X))
            v = V[i] / V[i].max()  # the program is solved to 1e-7
            # p = p_hat + up - down, sum(up + down) <= d
            best = linprog(
                np.r_[-v, v],
                A_ub=np.vstack([np.c_[one, one], np.c_[-np.eye(X), np.eye(X)]]),
                b_ub=np.r_[d, p],
                A_eq=np.c_[one, -one],
                b_eq=[0.0],
                method="highs",
            )
            assert Q[i, x, a] == pytest.approx((p @ v - best.fun) * V[i].max(), abs=3e-7 * V[i].max())


@pytest.mark.parametrize("shape", [{}, {"X": 6, "B": 6}, {"X": 40, "B": 30, "most": 400}, {"X": 12, "B": 1}])
def test_the_bernstein_maximum_is_that_of_the_linear_program(shape):
    for seed in range(2):
        successors, D, V, rng = rows(seed, **shape, n=2)
        X = V.shape[1]
        factor = rng.choice([0.0, 0.1, 0.5, 2.0], D.visits.shape)
        constant = rng.choice([0.0, 1e-9, 0.01, 0.06, 0.3, 0.5, 1.0, 5.0], D.visits.shape)
        Q = backed(backup_of(sets.bernstein, np.zeros((1, X, 3)), successors, 1.0, D, factor, constant), V)
        for i, x, a in pairs(D):
            if D.visits[i, x, a] == 0:
                assert Q[i, x, a] == V[i].max()
                continue
            p = p_hat(successors, D, i, x, a, X)
            beta = factor[i, x, a] * np.sqrt(p * (1 - p)) + constant[i, x, a]
            box = np.c_[np.maximum(0, p - beta), np.minimum(1, p + beta)]
            v = V[i] / V[i].max()
            best = linprog(-v, A_eq=np.ones((1, X)), b_eq=[1.0], bounds=box, method="highs")
            if best.status == 2:  # a box that is one point, to rounding
                assert np.ptp(box, axis=1).max() < 1e-8
                best.fun = -p @ v
            assert Q[i, x, a] == pytest.approx(-best.fun * V[i].max(), abs=3e-7 * V[i].max())


def relative_entropy(p, q):
    seen = p > 0
    return float(np.sum(p[seen] * np.log(p[seen] / q[seen])))


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


@pytest.mark.parametrize("shape", [{}, {"X": 6, "B": 6}, {"X": 40, "B": 30, "most": 400}, {"X": 12, "B": 1}])
def test_the_kl_maximum_is_that_of_the_dual(shape):
    for seed in range(3):
        successors, D, V, rng = rows(seed, **shape)
        X = V.shape[1]
        radius = 10.0 ** rng.uniform(-7, 2, D.visits.shape)
        Q = backed(backup_of(sets.kl, np.zeros((1, X, 3)), successors, 1.0, D, radius), V)
        for i, x, a in pairs(D):
            if D.visits[i, x, a] == 0:
                assert Q[i, x, a] == V[i].max()
                continue
            want = dual(p_hat(successors, D, i, x, a, X), V[i], radius[i, x, a])
            assert Q[i, x, a] == pytest.approx(want, abs=1e-9 * np.ptp(V[i]))


def test_the_kl_maximum_is_reached_by_a_kernel_on_the_border():
    """Optimality conditions: p = p_hat / (lambda (nu - V)) has KL = d, or nu = max V and the rest on an unseen best."""
    successors, D, V, rng = rows(11, X=15, B=5, most=60)
    X = V.shape[1]
    for radius in (1e-3, 0.05, 0.7, 3.0):
        Q = backed(backup_of(sets.kl, np.zeros((1, X, 3)), successors, 1.0, D, np.full(D.visits.shape, radius)), V)
        for i, x, a in pairs(D):
            p, v = p_hat(successors, D, i, x, a, X), V[i]
            seen = p > 0
            if D.visits[i, x, a] == 0 or (np.ptp(v[seen]) == 0 and v[seen][0] == v.max()):
                assert Q[i, x, a] == v.max()
                continue
            # nu by bisection on p_nu V = the claimed maximum, then its KL must be the radius
            claimed, top = Q[i, x, a], v.max()

            def tilted(nu, p=p, v=v, seen=seen):
                q = np.zeros(len(p))
                q[seen] = p[seen] / (nu - v[seen])
                return q / q.sum()

            if v[seen].max() < top and tilted(top) @ v < claimed:  # mass on the unseen best state
                q = tilted(top)
                share = (claimed - q @ v) / (top - q @ v)
                q = (1 - share) * q
                q[v.argmax()] += share
            else:
                low, high = -30.0, 30.0
                for _ in range(200):
                    z = (low + high) / 2
                    low, high = (z, high) if tilted(top + math.exp(z) * np.ptp(v)) @ v > claimed else (low, z)
                q = tilted(top + math.exp(low) * np.ptp(v))
            assert q @ v == pytest.approx(claimed, abs=1e-9 * np.ptp(v))
            if top - claimed > 1e-6 * np.ptp(v):
                assert relative_entropy(p, q) == pytest.approx(radius, rel=1e-4)


def test_a_general_solver_finds_no_better_kernel_in_the_kl_ball():
    rng = np.random.default_rng(5)
    for _ in range(12):
        X = 5
        counts = rng.multinomial(rng.integers(2, 40), rng.dirichlet(np.ones(X)))
        v, d = rng.random(X), 10.0 ** rng.uniform(-2, 0.5)
        D = Counts(np.array([[[counts.sum()]]], np.int32), counts[None, None, None].astype(np.int32))
        successors = np.arange(X, dtype=np.int32)[None, None]
        Q = np.empty((1, 1, 1))
        backup = backup_of(sets.kl, np.zeros((1, 1, 1)), successors, 1.0, D, np.full((1, 1, 1), d))
        backup(v[None], np.ones(1, np.bool_), Q)
        p = counts / counts.sum()
        seen = p > 0
        found = minimize(
            lambda q, v=v: -q @ v,
            np.where(seen, 0.95 * p, 0) + 0.05 / X,
            jac=lambda q, v=v: -v,
            bounds=[(1e-12, 1)] * X,
            constraints=[
                {"type": "eq", "fun": lambda q: q.sum() - 1},
                {"type": "ineq", "fun": lambda q, p=p, s=seen, d=d: d - np.sum(p[s] * np.log(p[s] / q[s]))},
            ],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert Q[0, 0, 0] == pytest.approx(-found.fun, abs=2e-5)
        assert Q[0, 0, 0] >= -found.fun - 1e-6


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


@pytest.mark.parametrize("X", [1, 2, 5, 60, 400])
def test_states_are_sorted_by_falling_values_ties_as_they_were_or_by_state(X):
    rng = np.random.default_rng(X)
    order = np.arange(X, dtype=np.int32)
    for v in (rng.integers(0, 1 + X // 3, X).astype(float), rng.random(X), np.zeros(X)):  # 400: more than 32 X steps
        want = np.argsort(-v[order], kind="stable")
        want = np.argsort(-v, kind="stable") if X == 400 and np.ptp(v) > 0 else order[want]
        sets._sort(v, order)
        np.testing.assert_array_equal(order, want)


@pytest.mark.parametrize("K", [0, 1, 2, 9, 12, 130])
def test_successors_come_into_the_order_of_the_states_with_their_chances(K):
    rng = np.random.default_rng(K)
    order, scratch = rng.permutation(200).astype(np.int32), np.full((1, 200), sets.ABSENT)
    rank, to, p = np.argsort(order).astype(np.int32), rng.permutation(200)[: K + 1].astype(np.int32), rng.random(K + 1)
    chance, last = dict(zip(to.tolist(), p.tolist(), strict=True)), to[K]
    sets.arrange(order, rank, K, to, p, scratch)
    assert (np.diff(rank[to[:K]]) > 0).all()
    assert chance == dict(zip(to.tolist(), p.tolist(), strict=True))
    assert to[K] == last  # what lies beyond is left
    assert (scratch == sets.ABSENT).all()


def made(name, r, successors, gamma, D, rng):
    """A backup of each kind with random radii."""
    radius = rng.uniform(0, 1.5, D.visits.shape)
    return {
        "plain": lambda: backup_of(sets.plain, r, successors, gamma, D),
        "smoothed": lambda: backup_of(sets.smoothed, r, successors, gamma, D, reference=2),
        "l1": lambda: backup_of(sets.l1, r, successors, gamma, D, radius),
        "bernstein": lambda: backup_of(sets.bernstein, r, successors, gamma, D, radius, radius / 9),
        "kl": lambda: backup_of(sets.kl, r, successors, gamma, D, radius),
    }[name]()


KINDS = ["plain", "smoothed", "l1", "bernstein", "kl"]
SHAPES = [{}, {"X": 6, "B": 6}, {"X": 40, "B": 30, "most": 400}]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_backups_are_monotone_and_move_constants_along(kind, shape):
    successors, D, V, rng = rows(3, **shape)
    r = rng.random((1, *D.visits.shape[1:]))
    backup = made(kind, r, successors, GAMMA, D, rng)
    Q = backed(backup, V)
    tiny = 1e-11 * (1 + np.ptp(V, axis=1)[:, None, None])
    assert (backed(backup, V + rng.random(V.shape)) >= Q - tiny).all()
    np.testing.assert_allclose(backed(backup, V + 7), Q + GAMMA * 7, rtol=0, atol=1e-10)
    assert (Q - r - GAMMA * V.max(1)[:, None, None] <= tiny).all()
    assert (Q - r - GAMMA * V.min(1)[:, None, None] >= -tiny).all()
    if kind in ("l1", "bernstein", "kl"):  # a larger set promises more
        assert (Q - backed(backup_of(sets.plain, r, successors, GAMMA, D), V) >= -tiny).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_history_of_sweeps_leaves_no_trace(kind, shape):
    """What a backup keeps from one sweep to the next only makes it faster."""
    successors, D, V, rng = rows(4, **shape)
    r = rng.random((1, *D.visits.shape[1:]))
    state = rng.bit_generator.state
    used = made(kind, r, successors, GAMMA, D, rng)
    for _ in range(5):
        backed(used, rng.random(V.shape))
    for step in (0.0, 1e-3, 0.0, 1.0):
        V = V + step * rng.random(V.shape)
        fresh = np.random.default_rng()
        fresh.bit_generator.state = state
        once = backed(made(kind, r, successors, GAMMA, D, fresh), V)
        np.testing.assert_allclose(backed(used, V), once, rtol=0, atol=1e-11 * (1 + V.max()))


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_read_only(kind):
    successors, D, V, rng = rows(5)
    before = [array.tobytes() for array in (*D, V, successors)]
    backup = made(kind, np.zeros((1, *D.visits.shape[1:])), successors, GAMMA, D, rng)
    for _ in range(3):
        backed(backup, V)
    assert before == [array.tobytes() for array in (*D, V, successors)]


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_that_are_not_active_are_not_written(kind):
    successors, D, V, rng = rows(6)
    backup = made(kind, rng.random((3, *D.visits.shape[1:])), successors, GAMMA, D, rng)
    Q = np.full(D.visits.shape, 99.0)
    for either in (backup, least_of(backup)):
        either(V, np.array([True, False, True]), Q)
        assert (Q[1] == 99).all()
        assert (Q[[0, 2]] != 99).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_does_not_change_a_seed(kind):
    successors, D, V, rng = rows(7)
    radius, r = rng.uniform(0, 1.5, D.visits.shape), rng.random(D.visits.shape)

    def one(rows):
        part = Counts(D.visits[rows], D.moves[rows])
        given = r[rows], successors, GAMMA, part
        kinds = {
            "plain": lambda: backup_of(sets.plain, *given),
            "smoothed": lambda: backup_of(sets.smoothed, *given, reference=2),
            "l1": lambda: backup_of(sets.l1, *given, radius[rows]),
            "bernstein": lambda: backup_of(sets.bernstein, *given, radius[rows], radius[rows] / 9),
            "kl": lambda: backup_of(sets.kl, *given, radius[rows]),
        }
        backup = kinds[kind]()
        backed(backup, V[rows] ** 2)
        return backed(backup, V[rows])

    batch = one(slice(0, 3))
    for i in range(3):
        assert one(slice(i, i + 1)).tobytes() == batch[i : i + 1].tobytes()


@pytest.mark.parametrize("kind", ["l1", "bernstein", "kl"])
def test_a_point_set_is_the_plain_backup(kind):
    for shape in SHAPES:
        successors, D, V, rng = rows(8, **shape)
        r, none = rng.random((1, *D.visits.shape[1:])), np.zeros(D.visits.shape)
        build = {"l1": sets.l1, "bernstein": sets.bernstein, "kl": sets.kl}[kind]
        point = backup_of(build, r, successors, GAMMA, D, *([none, none] if kind == "bernstein" else [none]))
        plain, atol = backup_of(sets.plain, r, successors, GAMMA, D), 1e-12 * (1 + V.max())
        np.testing.assert_allclose(backed(point, V), backed(plain, V), rtol=0, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_is_the_most_of_the_negative(kind):
    successors, D, V, rng = rows(9)
    zero = np.zeros((1, *D.visits.shape[1:]))
    state = rng.bit_generator.state
    most = made(kind, zero, successors, GAMMA, D, rng)
    rng.bit_generator.state = state
    least = least_of(made(kind, zero, successors, GAMMA, D, rng))
    np.testing.assert_allclose(backed(least, V), -backed(most, -V), rtol=0, atol=1e-11)
    assert (backed(least, V) <= backed(most, V) + 1e-11 * (1 + V.max())).all()
    if kind == "l1":  # what is lost below is what is won above, when both ends are seen
        assert (backed(least, V) >= GAMMA * V.min(1)[:, None, None] - 1e-12).all()
