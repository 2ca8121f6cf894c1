"""OPPO: its limits, and what its evaluation promises."""

from itertools import pairwise

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP, Path
from ravi.learners.regularised.oppo import oppo
from ravi.mdps import garnets, riverswim, riverswim_mixture
from ravi.planning.evaluation import staged_values
from ravi.runtime import tree
from ravi.runtime.api import run
from tests.helpers import spy
from tests.learners.test_literal import MIXTURES


@pytest.mark.parametrize("mdp", [riverswim_mixture(4, 0.8), garnets(3, 6, 3, 3, 2, 0.8)])
def test_an_evaluation_whose_ellipsoid_covers_theta_is_optimistic(mdp):
    """Surely: V_0 >= W_0 - gamma^S H, W the values by age of the policy that is played."""
    T, seen = 2000, []
    learner = oppo(mdp.problem, T, scale=0.05, step_scale=10.0)
    run(learner, mdp, T, 3, measures=[spy(seen)])
    covered, close = 0, 0
    for state, _ in seen:
        error = mdp.parameter - state.theta
        W, _, _ = staged_values(mdp, state.policy)
        for i in range(3):
            if error[i] @ state.data.covariance[i] @ error[i] <= state.beta[i] ** 2:
                assert (state.V[i, 0] >= W[i, 0] - mdp.discount**learner.stages * mdp.horizon - 1e-9).all()
                covered += 1
                close += (state.V[i, 0] - W[i, 0]).min() < 0.1 * mdp.horizon
    assert covered > 500
    assert close > 250  # where a bonus that is a little too small would be seen


@pytest.mark.parametrize("mdp", MIXTURES)
def test_stretches_of_an_epoch_do_not_change_what_is_learned(mdp):
    seen, pieces = [], 0
    learner = ids.learner("oppo,scale=0.03,step_scale=30", ids.mdp(mdp), 400)
    run(learner, mdp, 400, [5], measures=[spy(seen)])
    for (state, path), (after, _) in pairwise(seen):
        s, length = tree.copy(state), int(path.length[0])
        s.age[:] = s.began[:] = 0
        for begin in range(0, length, 3):
            size = min(3, length - begin)
            arrays = [array[:, begin : begin + size] for array in path[:5]]
            s.age[:] = 0 if begin + size == length else begin + size  # as the walk leaves it
            s = learner.add(s, Path(*arrays, np.array([size]), path.time + begin, path.after))
            pieces += begin > 0
        assert learner.plan(s).policy.tobytes() == after.policy.tobytes()
    assert pieces > 30


def test_one_action_leaves_nothing_to_choose():
    plain = riverswim(3, 0.8)
    psi = plain.transitions[:, 1:, :, None]
    mdp = MDP.from_features(psi, [1.0], plain.successors[:, 1:], plain.rewards[:, 1:], 0.8, plain.initial)
    assert run(oppo(mdp.problem, 100), mdp, 100, 1).regret[0] == pytest.approx(0.0, abs=1e-8)
