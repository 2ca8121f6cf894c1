"""Policies by age are walked and scored as what they are."""

from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP, Array, Learner, Until
from ravi.planning.evaluation import evaluate, staged_values
from ravi.runtime.api import run
from ravi.schedules import at_reset
from tests.helpers import dense

T, S = 400, 4
WORLD = ids.mdp("garnet/6,3,3,discount=0.8")


def every_play(state, time):
    return Until(reset=False, deadline=time + 1)


class Staged(NamedTuple):
    policy: Array  # (n, S, X, A)
    age: Array
    epochs: Array


def draws(seed, n=1):
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.full(WORLD.actions, 0.5), (n, S, WORLD.states))
    return policy / policy.sum(-1, keepdims=True)


def staged(until, change=True):
    """Another staged policy in every epoch: k of them, in turn."""
    policies = draws(1, 5)

    def init(keys):
        n = len(keys)
        return Staged(np.tile(policies[0], (n, 1, 1, 1)), np.zeros(n, np.int32), np.zeros(n, np.int64))

    def plan(s):
        for i, k in enumerate(s.epochs):
            s.policy[i] = policies[k % 5 if change else 0]
        return s._replace(epochs=s.epochs + 1)

    return Learner("staged", init, plan, lambda s, path: s, until, {}, stages=S)


def literal_values(policy):
    """W_j by unrolling 2,000 more stages of the last one."""
    P, W = dense(WORLD), np.zeros(WORLD.states)
    values = []
    for j in range(2000 + S - 1, -1, -1):
        pi = policy[min(j, S - 1)]
        W = (pi * (WORLD.rewards + WORLD.discount * P @ W)).sum(-1)
        if j < S:
            values.insert(0, W)
    return np.array(values)


def test_the_value_by_age_is_that_of_the_unrolled_policy():
    for seed in range(20):
        policy = draws(seed)
        W, returns, error = staged_values(WORLD, policy)
        expected = literal_values(policy[0])
        np.testing.assert_allclose(W[0], expected, atol=1e-12)
        exact = (1 - WORLD.discount) * WORLD.initial @ expected[0]
        assert abs(returns[0] - exact) <= error[0]
        assert error[0] < 1e-10


@pytest.mark.parametrize(("gamma", "S"), [(0.999, 8000), (0.9999, 20_000)])
def test_the_error_of_a_long_plan_is_covered_and_not_overstated(gamma, S):
    """Against 50 digits. Probabilities are multiples of 1/64: those of the arrays are those that are meant."""
    with localcontext(prec=50):
        rng, off, bounds = np.random.default_rng(4), [], []
        for _ in range(3):
            P = rng.multinomial(64, np.ones(2) / 2, (2, 2)) / 64
            mdp = MDP.from_dense(P, rng.uniform(size=(2, 2)), gamma, [0.25, 0.75])
            policy = rng.multinomial(64, np.ones(2) / 2, (1, S, 2)) / 64
            _, returns, error = staged_values(mdp, policy)
            r, g = [[Decimal(z) for z in row] for row in mdp.rewards.tolist()], Decimal(gamma)
            kernel = [[[Decimal(z) for z in row] for row in rows] for rows in dense(mdp).tolist()]

            def mixed(pi, x, r=r, kernel=kernel):
                weights = [Decimal(z) for z in pi[x]]
                moves = [sum(w * kernel[x][a][y] for a, w in enumerate(weights)) for y in range(2)]
                return sum(w * r[x][a] for a, w in enumerate(weights)), moves

            stages = policy[0].tolist()
            (c0, p0), (c1, p1) = mixed(stages[-1], 0), mixed(stages[-1], 1)  # (I - gamma P) W = c, by Cramer's rule
            a, b, c, d = 1 - g * p0[0], -g * p0[1], -g * p1[0], 1 - g * p1[1]
            W = [(c0 * d - b * c1) / (a * d - b * c), (a * c1 - c * c0) / (a * d - b * c)]
            for pi in reversed(stages[:-1]):
                both = [mixed(pi, x) for x in range(2)]
                W = [cost + g * (move[0] * W[0] + move[1] * W[1]) for cost, move in both]
            exact = (1 - g) * (W[0] / 4 + 3 * W[1] / 4)
            off.append(abs(float(Decimal(float(returns[0])) - exact)))
            bounds.append(float(error[0]))
            assert off[-1] <= bounds[-1]
    assert max(bounds) <= 1e3 * max(off)


@pytest.mark.parametrize("until", [at_reset(), every_play])
def test_regret_and_trajectory_regret_are_those_of_the_values_by_age(until):
    made = run(staged(until), WORLD, T, 2, record=["stream", "trajectory"])
    values = [literal_values(policy) for policy in draws(1, 5)]
    V = ids.learner("optimum", WORLD, T).init(np.zeros(1, np.uint64)).policy[0]
    best = evaluate(WORLD, V).V
    for seed in range(2):
        regret, along, age = 0.0, 0.0, 0
        starts = made.T_k[seed]
        for t in range(1, T + 1):
            W = values[(np.searchsorted(starts, t, side="right") - 1) % 5]
            x = made.results["stream_state"][seed, t - 1]
            regret += made.optimum - (1 - WORLD.discount) * WORLD.initial @ W[0]
            along += best[x] - W[min(age, S - 1), x]
            age = 0 if made.results["stream_reset"][seed, t - 1] else age + 1
        assert made.regret[seed] == pytest.approx(regret, abs=1e-8)
        assert made.results["trajectory_regret_total"][seed] == pytest.approx(along, abs=1e-7)
    assert made.output_policy.shape == (2, S, WORLD.states, WORLD.actions)
