"""O-REPS: its step is feasible and optimal, by duality, by its conditions and by its limits; and how it learns."""

from itertools import pairwise

import numpy as np
import pytest

from ravi.core import MDP
from ravi.learners.contrib.o_reps import o_reps
from ravi.mdps import garnet, riverswim
from ravi.planning import occupancy, solve
from ravi.planning.methods import optimal_occupancy
from ravi.planning.occupancies import relative_entropy
from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.planning.exact import cycle, random_mdp, random_policies
from tests.support.occupancy_step import o_reps_step

MDPS = {
    "riverswim": lambda: riverswim(6, 0.95),
    "garnet": lambda: garnet(12, 3, 4, 2, 0.9),
    "some successors of probability 0": lambda: random_mdp(4, 9, 3, 4, 0.85),
    "a cycle": lambda: cycle(7, 0.9, 2),
    "far": lambda: riverswim(5, 0.995),
}
ETAS = [1e-3, 0.3, 3.0, 100.0]


@pytest.fixture(params=MDPS)
def mdp(request):
    return MDPS[request.param]()


def uniform(mdp):
    return np.full((mdp.states, mdp.actions), 1 / mdp.actions)


@pytest.mark.parametrize("eta", ETAS)
def test_the_step_is_an_occupancy_and_nothing_is_better(mdp, eta):
    """Primal feasibility, and a duality gap of rounding: a certificate that needs no other solver."""
    for policy in (uniform(mdp), random_policies(3, mdp)):
        made = o_reps_step(mdp, policy, eta)
        assert made.flow <= 1e-12
        inflow = mdp.discount * np.einsum("xa,xay->y", made.mu, dense(mdp)) + (1 - mdp.discount) * mdp.initial
        assert np.abs(made.mu.sum(-1) - inflow).sum() <= 1e-12
        np.testing.assert_allclose(made.mu, occupancy(mdp, made.policy).mu, rtol=0, atol=1e-10 * mdp.horizon)
        assert -1e-13 - 1e-15 / eta <= made.gap <= 1e-12 + 1e-14 / eta


def test_a_large_step_is_the_linear_program(mdp):
    """<mu, r> >= rho* - KL(mu* || mu_k) / eta."""
    star = solve(mdp, tol=1e-12).optimum
    before = occupancy(mdp, uniform(mdp)).mu.ravel()
    best = optimal_occupancy(mdp).ravel()
    apart = relative_entropy(best / best.sum(), before)
    for eta in (10.0, 1e3, 1e5):
        made = o_reps_step(mdp, uniform(mdp), eta)
        assert star - apart / eta - 1e-9 <= (made.mu * mdp.rewards).sum() <= star + 1e-9
    assert (made.mu * mdp.rewards).sum() == pytest.approx(star, abs=1e-3)
    assert (1 - mdp.discount) * mdp.initial @ made.V == pytest.approx(star, abs=1e-3)


def test_states_out_of_reach_keep_their_policy_and_do_no_harm():
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 0] = P[1, :, 0] = P[2, :, 3] = P[3, :, 0] = 1  # nothing leads to 2, and 3 only from there
    mdp = MDP.from_dense(P, [[0, 0.1], [1, 0.5], [1, 0], [0, 1]], 0.9, 0)
    policy = np.array([[0.5, 0.5], [0.5, 0.5], [0.3, 0.7], [0.2, 0.8]])
    made = o_reps_step(mdp, policy, 5.0)
    assert (made.policy[2:] == policy[2:]).all()
    assert (made.mu[2:] == 0).all()
    assert made.flow <= 1e-12
    assert abs(made.gap) <= 1e-12
    assert np.isfinite(made.V).all()
    small = o_reps_step(MDP.from_dense(P[:2, :, :2], mdp.rewards[:2], 0.9, 0), policy[:2], 5.0)
    np.testing.assert_allclose(made.policy[:2], small.policy, rtol=1e-10)


# The learner.


def test_a_plan_is_the_planners_step_in_the_estimated_mdp():
    """The MDP of the counts, built with the library's own tables, where the self-loops need successors of their own."""
    mdp = garnet(12, 3, 2, 3, 0.9)
    learner = o_reps(mdp.problem, 500, step_scale=2)
    eta = learner.settings["eta"]
    seen = []
    run(learner, mdp, 500, [1], measures=[spy(seen)])
    checked = 0
    for (before, _), (after, _) in pairwise(seen):
        n, moves = after.data.visits[0], after.data.moves[0]
        P = np.zeros((12, 3, 12))
        np.put_along_axis(P, mdp.successors.astype(np.int64), moves / np.maximum(n, 1)[..., None], axis=2)
        P[n == 0] = np.repeat(np.eye(12)[:, None], 3, axis=1)[n == 0]
        estimated = MDP.from_dense(P, np.where(n > 0, mdp.rewards, 1), 0.9, mdp.initial)
        made = o_reps_step(estimated, before.policy[0], eta)
        assert abs(made.gap) < 1e-12
        np.testing.assert_allclose(after.policy[0], made.policy, rtol=0, atol=1e-9)
        checked += (n == 0).any() and (n > 0).any()
    assert checked > 3


@pytest.mark.parametrize(
    ("learner", "mdp", "steps"),
    [("o-reps,step_scale=30", "deep-sea/5,discount=0.9", 40_000), ("o-reps,step_scale=25000", "riverswim/6", 500)],
)
def test_policies_that_are_all_but_certain_are_planned_with_like_any_other(learner, mdp, steps):
    """Off their way states have next to no mass, and Newton's equations next to no determinant."""
    made = run(learner, mdp, steps, 2)
    assert (made.state.unfinished == 0).all()
    np.testing.assert_allclose(made.last_policy.sum(-1), 1, atol=1e-12)


def test_plans_whose_flow_is_off_are_counted_seed_by_seed(monkeypatch):
    mdp = riverswim(4, 0.9)
    learner, flows = o_reps(mdp.problem, 100), np.array([0.0, 1e-10, np.inf])
    monkeypatch.setattr("ravi.learners.contrib.o_reps.step", lambda *given: (given[-1], flows))
    s = learner.init(np.arange(3, dtype=np.uint64))
    for k in range(1, 4):
        s = learner.plan(s)
        np.testing.assert_array_equal(s.unfinished, [0, k, k])


@pytest.mark.parametrize("eta", [1e6, 1e12, 1e50])
def test_rows_sum_to_one_however_large_the_step(eta):
    seen = []
    run(o_reps(riverswim(4, 0.9).problem, 100, step_scale=eta), riverswim(4, 0.9), 100, 2, measures=[spy(seen)])
    for state, _ in seen:
        np.testing.assert_allclose(state.policy.sum(-1), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.exp(state.log_policy), state.policy, rtol=1e-12, atol=0)
