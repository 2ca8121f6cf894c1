"""Policy iteration on sets: it finds the fixed point, whatever it starts from, and what a policy would return."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import ravi
from ravi._jit.teams import allocate
from ravi.estimators.counts import Counts, tallies
from ravi.learners.ravi_kl import plausible
from ravi.learners.ravi_kl.plausible import Sets, cold, scratch
from ravi.optimism.relative_entropy import ends
from tests.support.plans import of_one_value

TOL = 1e-9


class Plan(NamedTuple):
    choice: np.ndarray  # (n, X)
    returns: np.ndarray  # (n,)


def plan(problem, sets, tol, warm, *, fixed=None):
    """The best policy of all seeds, or what `fixed` returns; `warm` is written to."""
    choice, room = warm.choice if fixed is None else fixed.copy(), allocate(scratch(problem, 1))
    returns = [
        plausible.plan(
            i, problem.successors, problem.initial, problem.discount, sets, 1.0, tol[i], warm[:4], choice,
            fixed is not None, room,
        )
        for i in range(len(tol))
    ]  # fmt: skip
    return Plan(choice.copy(), np.array(returns))


def played(mdp, seed, plays, seeds=3):
    """Counts of random plays: some pairs many, some none."""
    rng = np.random.default_rng(seed)
    D = tallies(mdp.problem, seeds)
    for i in range(seeds):
        often = rng.integers(0, plays, (mdp.states, mdp.actions)) * (rng.random((mdp.states, mdp.actions)) < 0.8)
        for x in range(mdp.states):
            for a in range(mdp.actions):
                D.moves[i, x, a] = rng.multinomial(often[x, a], mdp.transitions[x, a])
    D.visits[:] = D.moves.sum(-1)
    return D


def sets_of(mdp, D, *, support=True, level=0.1):
    return Sets(mdp.rewards[None].copy(), *D, math.log(1 / level), 1.0, support)  # as learners have them


def swept(mdp, sets, fixed=None, V=None):
    """V of the fixed point by plain value iteration from V, and Q there."""
    V = np.zeros((len(sets.visits), mdp.states)) if V is None else V
    rho = sets.scale * of_one_value(sets.visits, np.full(len(V), sets.level))
    while True:
        _, high = ends(mdp.successors, Counts(sets.visits, sets.moves), rho, sets.support, V)
        Q = sets.rewards + mdp.discount * high
        new = Q.max(-1) if fixed is None else np.take_along_axis(Q, fixed[..., None], 2)[..., 0]
        if np.abs(new - V).max() < 1e-11:
            return new, Q
        V = new


MDPS = (
    "riverswim/5,discount=0.9",
    "garnet/7,3,3,discount=0.8",
    "deep-sea/4,discount=0.9",
    "garnet/4,2,4,discount=0.95",
    "riverswim/400,discount=0.97",  # far to go
)


@pytest.mark.parametrize("support", [True, False])
@pytest.mark.parametrize("id", MDPS)
def test_the_plan_is_the_fixed_point(id, support):
    mdp = ravi.mdp(id)
    sets = sets_of(mdp, played(mdp, 1, 30), support=support)
    V, Q = swept(mdp, sets)
    found = plan(mdp.problem, sets, np.full(3, TOL), cold(mdp.problem, 3))
    np.testing.assert_allclose(found.returns, (1 - mdp.discount) * V @ mdp.initial, atol=TOL)
    chosen = np.take_along_axis(Q, found.choice[..., None], 2)[..., 0]
    np.testing.assert_allclose(chosen, Q.max(-1), atol=1e-7)


@pytest.mark.parametrize("id", MDPS)
def test_what_a_policy_returns_is_its_own_fixed_point(id):
    mdp = ravi.mdp(id)
    sets = sets_of(mdp, played(mdp, 2, 30))
    fixed = np.random.default_rng(3).integers(0, mdp.actions, (3, mdp.states))
    V, _ = swept(mdp, sets, fixed)
    warm = cold(mdp.problem, 3)
    found = plan(mdp.problem, sets, np.full(3, TOL), warm, fixed=fixed)
    np.testing.assert_allclose(found.returns, (1 - mdp.discount) * V @ mdp.initial, atol=TOL)
    assert (found.choice == fixed).all()
    assert (warm.choice == 0).all()  # nothing is left of a policy that was only asked about
    assert (warm.visits == -1).all()


@pytest.mark.parametrize("id", MDPS)
def test_a_warm_plan_is_a_cold_plan(id):
    """Data come in, few at a time: bounds of pairs whose counts did not move are kept, and nothing else."""
    mdp = ravi.mdp(id)
    rng = np.random.default_rng(4)
    D, warm, V = played(mdp, 5, 6, seeds=2), cold(mdp.problem, 2), None
    for _ in range(40):
        x, a = rng.integers(mdp.states), rng.integers(mdp.actions)
        D.moves[:, x, a] += rng.multinomial(rng.integers(1, 40), mdp.transitions[x, a])
        D.visits[:] = D.moves.sum(-1)
        sets = sets_of(mdp, D)
        one = plan(mdp.problem, sets, np.full(2, TOL), warm)
        other = plan(mdp.problem, sets, np.full(2, TOL), cold(mdp.problem, 2))
        np.testing.assert_allclose(one.returns, other.returns, atol=TOL)
        V, Q = swept(mdp, sets, V=V)
        chosen = np.take_along_axis(Q, one.choice[..., None], 2)[..., 0]
        np.testing.assert_allclose(chosen, Q.max(-1), atol=1e-7)


def test_where_states_lead_to_one_other_and_the_best_one_a_sweep_in_place_is_exact():
    """Chains and circles of them: V = r + gamma P V, whatever it starts from below the best state."""
    X, gamma, rng = 40, 0.99, np.random.default_rng(10)
    for peak in range(5):
        target = np.stack([rng.integers(0, X, X), np.full(X, peak)], 1).astype(np.int32)
        stay = rng.uniform(0.6, 1.0, X)
        stay[peak], target[peak, 0] = 1.0, peak
        q, count = np.stack([stay, 1 - stay], 1), np.full(X, 2, np.int32)
        r, choice, v = rng.random((X, 1)), np.zeros(X, np.int64), rng.random(X)
        v[peak] = 2.0
        P = np.zeros((X, X))
        np.add.at(P, (np.arange(X)[:, None], target), q)
        plausible._follow(r, gamma, choice, (count, target, q), v, np.empty((3, X), np.int32))
        np.testing.assert_allclose(v, np.linalg.solve(np.eye(X) - gamma * P, r[:, 0]), rtol=1e-12)


def test_ties_go_to_the_first_action_also_where_another_was_chosen_before():
    mdp = ravi.MDP.from_dense(np.full((2, 3, 2), 0.5), np.full((2, 3), 0.5), 0.9, 0)
    D, warm = tallies(mdp.problem, 1), cold(mdp.problem, 1)
    warm.choice[:] = 2
    assert (plan(mdp.problem, sets_of(mdp, D), np.full(1, TOL), warm).choice == 0).all()
