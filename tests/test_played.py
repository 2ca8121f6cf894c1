"""Rows of one's own learner that miss the sum one: what is played is what is scored; what is no policy is refused."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi import InputError
from ravi.core import Array, Learner
from ravi.live.agent import agent
from ravi.live.policies import Policy, evaluate
from ravi.mdps import garnet, riverswim
from ravi.mdps.changing_rewards import changing
from ravi.measures.gap import follow, target_of, track
from ravi.measures.hindsight import hindsight
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.runtime.walk import draw, empty_path, normalised
from ravi.schedules import at_reset
from tests.helpers import dense, spy


def literally(rows):
    """What is played by rows (..., A): the lengths of the intervals of u that give each action, by their ends."""
    out = []
    for row in np.asarray(rows, np.float64).reshape(-1, np.shape(rows)[-1]):
        ends, mass = [], 0.0
        for p in row:
            mass += float(p)
            ends.append(min(Fraction(mass), Fraction(1)))
        last = max(b for b, p in enumerate(row) if p > 0)
        ends[last:] = [Fraction(1)] * (len(row) - last)
        out.append([float(end - begin) for begin, end in zip([Fraction(0), *ends], ends, strict=False)])
    return np.array(out).reshape(np.shape(rows))


def dense_values(mdp, pi):
    M = np.eye(mdp.states) - mdp.discount * np.einsum("xa,xay->xy", pi, dense(mdp))
    return np.linalg.solve(M, (pi * mdp.rewards).sum(-1))


def dense_return(mdp, pi):
    """pi is (X, A), or (S, X, A) by age."""
    stages = pi if pi.ndim == 3 else pi[None]
    V = dense_values(mdp, stages[-1])
    for stage in stages[-2::-1]:
        V = (stage * (mdp.rewards + mdp.discount * dense(mdp) @ V)).sum(-1)
    return (1 - mdp.discount) * mdp.initial @ V


class State(NamedTuple):
    policy: Array  # (n, X, A) or (n, S, X, A)
    plays: Array
    age: Array


def own(made, stages=0):
    """A learner of one's own, which plays what it has played least; `made` turns its rows into what it says."""

    def build(problem, steps):
        X, A = problem.states, problem.actions

        def init(keys):
            n = len(keys)
            shape = (n, stages, X, A) if stages else (n, X, A)
            return State(made(np.full(shape, 1 / A)), np.zeros((n, X, A)), np.zeros(n, np.int64))

        def plan(s):
            share = 1 / (1 + s.plays)
            if stages:
                share = share[:, None] ** np.arange(1, stages + 1)[:, None, None]
            return s._replace(policy=made(share / share.sum(-1, keepdims=True)))

        def add(s, path):
            for i, n in enumerate(path.length):
                np.add.at(s.plays[i], (path.state[i, :n], path.action[i, :n]), 1)
            return s

        return Learner("own", init, plan, add, at_reset(), {}, stages=stages)

    return build


MADE = {
    "float32": lambda rows: rows.astype(np.float32),
    "a little less": lambda rows: rows * (1 - 9.9e-13),
    "a little more": lambda rows: rows * (1 + 9.9e-6),
}


@settings(deadline=None, derandomize=True, max_examples=60)
@given(A=st.integers(1, 12), miss=st.sampled_from([0.0, 1e-15, -1e-12, 1e-9, -9e-6, 9e-6]), seed=st.integers(0, 10**6))
def test_what_is_played_is_what_a_draw_gives(A, miss, seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(A), 5) * (1 + miss) * rng.choice([0.0, 1.0], (5, A), p=[0.2, 0.8])
    rows[rows.sum(-1) == 0, 0] = 1
    if rng.integers(2):
        rows = rows.astype(np.float32)
    q = normalised(rows)
    assert np.abs(q - literally(rows)).max() <= 2.0**-52 * 2 * A
    assert np.abs(q.sum(-1) - 1).max() <= 2.0**-52 * A
    for row, law in zip(rows, literally(rows), strict=True):
        ends = np.cumsum(law)
        for u in rng.uniform(size=20):
            if np.abs(u - ends).min() > 1e-14:
                assert draw(row, u) == np.searchsorted(ends, u, side="right")
    assert (normalised(q) == q).all()


def test_rows_that_only_rounding_keeps_from_one_stay_as_they_are():
    rows = np.random.default_rng(0).dirichlet(np.ones(7), 1000)
    assert (rows.sum(-1) != 1).any()
    assert normalised(rows) is rows


@pytest.mark.parametrize("how", MADE)
@pytest.mark.parametrize(("X", "A", "discount"), [(5, 3, 0.9), (16, 2, 0.99), (17, 4, 0.99), (60, 40, 0.9999)])
def test_the_regret_of_rows_that_miss_one_is_that_of_the_policy_played(how, X, A, discount):
    """By dense solves of the very rows that are played: X up to 16 is eliminated, beyond it is swept."""
    mdp, T, seen = garnet(X, A, 3, 1, discount), 2000, []
    made = run(own(MADE[how])(mdp.problem, T), mdp, T, [4], measures=[spy(seen)])
    lengths = np.diff([*made.T_k[0], T + 1])
    returns = [dense_return(mdp, literally(state.policy[0])) for state, _ in seen]
    exact = sum(n * (made.optimum - rho) for n, rho in zip(lengths, returns, strict=True))
    assert abs(made.regret[0] - exact) <= made.regret_error[0] + 1e-13 * mdp.horizon * T
    assert made.regret_error[0] <= 2e-9 * T  # as good as with exact rows
    plain = [dense_return(mdp, np.float64(state.policy[0])) for state, _ in seen]
    if how != "a little less":  # and what the rows say as they stand is something else
        assert abs(sum(n * (made.optimum - rho) for n, rho in zip(lengths, plain, strict=True)) - exact) > 1e-5


def test_a_chain_that_mixes_slowly_is_solved_for_the_policy_played():
    n, discount = 40, 0.9999
    mdp = riverswim(n, discount)
    rows = np.full((1, n, 2), 0.5, np.float32)
    rows[..., 0] += np.float32(3e-7)
    tracked = track(mdp, 1)
    follow(target_of(mdp, 1e-12), tracked, rows, np.ones(1, np.int64))
    assert abs(tracked.returns[0] - dense_return(mdp, literally(rows[0]))) <= tracked.error[0] + 1e-13 * mdp.horizon
    assert tracked.error[0] < 1e-9


@pytest.mark.parametrize("how", MADE)
def test_policies_by_age_and_along_the_path_are_scored_as_played(how):
    mdp, T = garnet(20, 3, 3, 1, 0.95), 600
    for stages in (0, 4):
        seen = []
        options = {"record": ["trajectory", "stream"], "measures": [spy(seen)]}
        made = run(own(MADE[how], stages)(mdp.problem, T), mdp, T, [2], **options)
        x, reset = made.results["stream_state"][0], made.results["stream_reset"][0]
        age = np.zeros(T, int)
        for t in range(1, T):
            age[t] = 0 if reset[t - 1] else age[t - 1] + 1
        starts, exact, along = [*made.T_k[0], T + 1], 0.0, 0.0
        best = dense_values(mdp, solve(mdp).policy)
        for (state, _), first, end in zip(seen, starts, starts[1:], strict=False):
            pi = literally(state.policy[0])
            exact += (end - first) * (made.optimum - dense_return(mdp, pi))
            stack = pi if stages else pi[None]
            W = [dense_values(mdp, stack[-1])]
            for stage in stack[-2::-1]:
                W.insert(0, (stage * (mdp.rewards + mdp.discount * dense(mdp) @ W[0])).sum(-1))
            along += sum(best[x[t]] - W[min(age[t], len(W) - 1)][x[t]] for t in range(first - 1, end - 1))
        assert abs(made.regret[0] - exact) <= made.regret_error[0] + 1e-9
        total, error = (made.results[f"trajectory_regret_{name}"][0] for name in ("total", "error"))
        assert abs(total - along) <= error + 1e-9
        assert error < 1e-9 * mdp.horizon * T


def test_a_policy_in_a_file_is_worth_what_it_plays():
    mdp = garnet(12, 2, 3, 0, 0.99)
    rows = np.full((12, 2), 0.5) * (1 - 9e-10)
    found = evaluate(Policy(table=rows, discount=0.99), mdp)
    worth = dense_return(mdp, literally(rows)) * mdp.horizon
    assert abs(found.exact - worth) <= found.exact_error + 1e-11
    assert abs(worth - dense_return(mdp, np.full((12, 2), 0.5)) * mdp.horizon) > 10 * found.exact_error


def test_what_is_no_policy_is_refused_by_seed_state_and_sum():
    mdp = garnet(20, 2, 2, 0, 0.9)

    def wrong(entry, value, seeds=(7, 9)):
        def made(rows):
            rows = rows.copy()
            rows[-1][entry] = value
            return rows

        for options in ({}, {"measured": False}):
            run(own(made)(mdp.problem, 50), mdp, 50, list(seeds), **options)

    for entry, value, said in [
        ((3,), [1.0, 0.5], r"own planned what is no policy: seed 9, state 3: the row \[1\. +0\.5\] sums to 1\.5"),
        ((5, 0), np.nan, r"seed 9, state 5: .* sums to nan"),
        ((4,), [1.5, -0.5], r"seed 9, state 4: the row \[ 1\.5 -0\.5\] has a negative probability"),
        ((0,), [0.0, 0.0], r"seed 9, state 0: .* sums to 0, not 1 \(to within 1e-05\)"),
        ((19,), [0.5, 0.5001], r"seed 9, state 19: .* sums to 1\.0001"),
    ]:
        with pytest.raises(InputError, match=said):
            wrong(entry, value)
    with pytest.raises(InputError, match="own has a policy of float16; it must be of float64 or float32"):
        run(own(lambda rows: rows.astype(np.float16))(mdp.problem, 50), mdp, 50, 1)


def test_what_is_no_policy_is_refused_by_age_and_live_too():
    mdp = garnet(6, 2, 2, 0, 0.9)

    def made(rows):
        rows = rows.copy()
        rows[..., 2, 4, :] = 0.75
        return rows

    with pytest.raises(InputError, match=r"seed 1, state 4 at age 2: .* sums to 1\.5"):
        run(own(made, stages=3)(mdp.problem, 50), mdp, 50, [1])
    live = agent(own(lambda rows: rows * 1.5), mdp.problem, 50, seed=3)
    with pytest.raises(InputError, match=r"seed 3, state 0: .* sums to 1\.5"):
        live.act(0)


def test_a_seed_that_has_ended_may_plan_what_it_likes():
    """It is not played: here a seed's rows are spoilt from its last play on."""
    mdp, T = garnet(4, 2, 2, 0, 0.5), 60

    def build(problem, steps):
        base = own(lambda rows: rows)(problem, steps)

        def plan(s):
            s = base.plan(s)
            s.policy[s.plays.sum((1, 2)) >= steps] = 9.0
            return s

        return base._replace(plan=plan)

    assert (run(build(mdp.problem, T), mdp, T, 8).plays == T).all()


def test_where_rewards_change_what_is_earned_is_that_of_the_policy_played():
    mdp = garnet(20, 3, 3, 1, 0.95)
    world, rows = changing(mdp, [mdp.rewards, mdp.rewards[:, ::-1]]), np.full((1, 20, 3), 1 / 3, np.float32)
    measure = hindsight(world, 10, 5)
    state = SimpleNamespace(policy=rows, CB=np.zeros((1, 20, 3)), V=np.zeros((1, 20)), PV=np.zeros((1, 20, 3)))
    path = empty_path(1, 10)
    path.length[0] = 10
    m = measure.record(measure.init(np.zeros(1, np.uint64)), state, path, True)
    for j, table in enumerate(world.tables):
        rho = dense_return(replace(mdp, rewards=table), literally(rows[0]))
        assert abs(m.rho[0, j] - rho) <= m.loose[0] + 1e-12
    assert m.loose[0] < 1e-9
