"""Lambda, its inverse and its determinant follow the plays; epochs end where the determinant doubles."""

from typing import NamedTuple

import numpy as np
import pytest

from ravi import ids
from ravi.core import Array, Learner
from ravi.estimators.gram import Gram, gram, gram_walk, renew
from ravi.runtime.api import run
from ravi.schedules import whenever
from ravi.validation import InputError

T, D, LAM = 500, 4, 0.5
WORLD = ids.mdp("garnet/6,3,3,discount=0.8")
PHI = np.random.default_rng(5).normal(size=(1, WORLD.states, WORLD.actions, D)) / 3
V = np.random.default_rng(6).uniform(0, 5, WORLD.states)


class Seeing(NamedTuple):
    data: Gram
    policy: Array


def seeing(moves):
    """The uniform policy, which sees features."""
    X, A = WORLD.states, WORLD.actions

    def init(keys):
        n = len(keys)
        return Seeing(gram(n, D, LAM, X, moves=moves), np.full((n, X, A), 1 / A))

    def plan(s):
        return s._replace(data=renew(s.data))

    walk = gram_walk(lambda s: (s.data, PHI, None if moves else np.tile(V, (len(s.policy), 1))))
    return Learner("seeing", init, plan, lambda s, path: s, whenever(), {}, walk=walk)


@pytest.mark.parametrize("moves", [False, True])
def test_everything_is_the_sum_over_the_plays(moves):
    made = run(seeing(moves), WORLD, T, 3, record=["stream"])
    for seed in range(3):
        x, a, y = (made.results[f"stream_{name}"][seed] for name in ("state", "action", "successor"))
        phi = PHI[0, x, a]
        Lam = LAM * np.eye(D) + phi.T @ phi
        data = made.state.data
        np.testing.assert_allclose(data.covariance[seed], Lam, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(data.inverse[seed], np.linalg.inv(Lam), rtol=1e-9, atol=1e-12)
        assert data.log_det[seed] == pytest.approx(np.linalg.slogdet(Lam)[1], abs=1e-10)
        if moves:
            np.testing.assert_allclose(data.moves[seed], phi.T @ np.eye(WORLD.states)[y], rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_allclose(data.response[seed], phi.T @ V[y], rtol=1e-12, atol=1e-12)


def test_an_epoch_ends_at_the_play_that_doubles_the_determinant():
    made = run(seeing(True), WORLD, T, 3, record=["stream"])
    for seed in range(3):
        starts, Lam = [1], LAM * np.eye(D)
        base = np.linalg.slogdet(Lam)[1]
        for t in range(1, T + 1):
            phi = PHI[0, made.results["stream_state"][seed, t - 1], made.results["stream_action"][seed, t - 1]]
            Lam = Lam + np.outer(phi, phi)
            now = np.linalg.slogdet(Lam)[1]
            if now > base + np.log(2) and t < T:
                starts.append(t + 1)
                base = now
        assert made.T_k[seed].tolist() == starts
        assert len(starts) > 5


def test_a_covariance_that_is_no_longer_definite_is_refused():
    data = gram(1, D, LAM, WORLD.states, moves=True)
    data.covariance[0, 1, 1] = -1.0
    with pytest.raises(InputError, match="positive definite"):
        renew(data)
