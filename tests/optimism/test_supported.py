"""Maxima over kernels on the stored successors, against programs on those entries, and limits."""

import numpy as np
import pytest
from scipy.optimize import linprog

from ravi._jit.teams import made as made_room
from ravi.estimators.counts import Counts
from ravi.optimism import sets, supported
from ravi.optimism.extended_value_iteration import given
from tests.optimism.test_sets import GAMMA, SHAPES, backed, dual, pairs, rows
from tests.support.plans import backup_of
from tests.support.plans import least as least_of

KINDS = ["l1", "bernstein", "kl"]
WIDE = [*SHAPES, {"X": 12, "B": 1}]  # among them rows that are put in order by a walk over all states


def made(where, kind, r, successors, D, rng, gamma=GAMMA):
    """A backup of each kind, of `sets` or of `supported`, with random radii, some beyond all."""
    radius = rng.choice([0.0, 1e-3, 0.1, 0.5, 1.0, 1.7, 2.0, 60.0], D.visits.shape)
    radii = {"l1": [radius], "bernstein": [radius, radius / 9], "kl": [radius]}[kind]
    return backup_of(getattr(where, kind), r, successors, gamma, D, *radii), radius


def entries(successors, D, V, i, x, a):
    """p_hat and V on the stored successors of a pair, V in parts of its greatest."""
    return D.moves[i, x, a] / max(1, D.visits[i, x, a]), V[i, successors[x, a]] / V[i].max()


@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_the_maximum_is_that_of_a_program_on_the_stored_successors(kind, shape):
    successors, D, V, rng = rows(1, **shape, n=2)
    X, B = V.shape[1], successors.shape[2]
    backup, radius = made(supported, kind, np.zeros((1, X, 3)), successors, D, rng, 1.0)
    Q = backed(backup, V)
    for i, x, a in pairs(D):
        p, v = entries(successors, D, V, i, x, a)
        d, one = radius[i, x, a], np.ones((1, B))
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
            assert found.status == 0 or d == 0
        else:
            want = dual(p, v, d) if d > 0 else p @ v
        assert Q[i, x, a] == pytest.approx(want * V[i].max(), abs=3e-7 * V[i].max())


@pytest.mark.parametrize("X", [6, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_where_all_states_are_stored_it_is_the_set_on_all_states(kind, X):
    successors, D, V, rng = rows(1, X=X, B=X, most=60)
    r = rng.random((1, X, 3))
    state = rng.bit_generator.state
    one, _ = made(supported, kind, r, successors, D, rng)
    rng.bit_generator.state = state
    two, _ = made(sets, kind, r, successors, D, rng)
    for _ in range(3):
        np.testing.assert_allclose(backed(one, V), backed(two, V), rtol=0, atol=1e-12 * (1 + V.max()))
        V = V + rng.random(V.shape) * V.max()


@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_backups_are_monotone_move_constants_along_and_lie_between_the_counts_and_all_states(kind, shape):
    successors, D, V, rng = rows(3, **shape)
    r = rng.random((1, *D.visits.shape[1:]))
    state = rng.bit_generator.state
    backup, _ = made(supported, kind, r, successors, D, rng)
    rng.bit_generator.state = state
    anywhere, _ = made(sets, kind, r, successors, D, rng)
    Q, tiny = backed(backup, V), 1e-11 * (1 + np.ptp(V, axis=1)[:, None, None])
    assert (backed(backup, V + rng.random(V.shape)) >= Q - tiny).all()
    np.testing.assert_allclose(backed(backup, V + 7), Q + GAMMA * 7, rtol=0, atol=1e-10)
    assert (backed(anywhere, V) >= Q - tiny).all()
    stored = V[:, successors]
    assert (r + GAMMA * stored.max(-1) + tiny >= Q).all()
    assert (r + GAMMA * stored.min(-1) - tiny <= Q).all()
    played = D.visits > 0
    assert (Q - backed(backup_of(sets.plain, r, successors, GAMMA, D), V) >= -tiny)[played].all()
    least = backed(least_of(backup), V)
    assert (least + r >= GAMMA * stored.min(-1) - tiny).all()
    np.testing.assert_allclose((least + r)[~played], GAMMA * stored.min(-1)[~played], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_neither_batches_nor_sweeps_before_leave_a_trace_and_nothing_else_is_written(kind):
    successors, D, V, rng = rows(7)
    r, radius = rng.random(D.visits.shape), rng.uniform(0, 1.5, D.visits.shape)

    def one(part, history):
        counts, radii = Counts(D.visits[part], D.moves[part]), [radius[part], radius[part] / 9]
        radii = radii[: 2 if kind == "bernstein" else 1]
        backup = backup_of(getattr(supported, kind), r[part], successors, GAMMA, counts, *radii)
        for _ in range(history):
            backed(backup, np.cos(V[part] * 3))
        Q = np.full((*V[part].shape, 3), 99.0)
        backup(V[part], np.arange(len(V[part])) != 1, Q)
        return Q

    before = [array.tobytes() for array in (*D, V, successors)]
    batch = one(slice(0, 3), 2)
    assert (batch[1] == 99).all()  # a seed that is not active
    for i in (0, 2):
        np.testing.assert_array_equal(one(slice(i, i + 1), 2), batch[i : i + 1])
        np.testing.assert_allclose(one(slice(i, i + 1), 0), batch[i : i + 1], rtol=0, atol=1e-11 * (1 + V.max()))
    assert before == [array.tobytes() for array in (*D, V, successors)]


def test_a_bonus_is_cut_by_the_best_stored_successor():
    successors, D, V, rng = rows(9)
    r = rng.random((1, *D.visits.shape[1:]))
    bonus = backup_of(sets.smoothed, r + 5 * rng.random(D.visits.shape), successors, GAMMA, D, reference=2)
    Q, own = backed(bonus, V), made_room(given(r, successors, GAMMA, D, 1))
    for i in range(len(V)):
        supported.capped(own, i, V[i], Q[i].reshape(-1))  # a view
    want = np.minimum(backed(bonus, V), r + GAMMA * V[:, successors].max(-1))
    np.testing.assert_array_equal(Q, want)
    assert 0 < (backed(bonus, V) > Q).mean() < 1
