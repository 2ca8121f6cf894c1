"""Delayed Q-learning, UCB-Q, Liu and Su's learner and Q-learning do what their theory says."""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom, norm

from ravi import ids
from ravi.planning.solver import solve
from ravi.runtime.api import run
from tests.helpers import spy


@pytest.mark.parametrize("learner", ["ucb-q", "liu-su"])
def test_without_a_bonus_a_deterministic_mdp_is_solved_and_never_underrated(learner):
    world = ids.mdp("garnet/8,3,1,seed=2,discount=0.8")
    best, seen = solve(world), []
    made = run(f"{learner},scale=0", world, 100_000, 4, measures=[spy(seen)])
    for state, _ in seen:
        assert (state.Q_hat >= best.Q - 1e-9).all()
    last = made.batch.state
    assert (made.results["gap"] < 1e-6).all()
    for i in range(4):
        lower = last.Q_hat[i] if learner == "ucb-q" else last.Q[i]
        x = int(world.initial.argmax())
        for _ in range(20):  # along the greedy path the values are those of Q*
            a = int(last.policy[i, x].argmax())
            assert lower[x, a] == pytest.approx(best.V[x], abs=1e-3)
            x = int(world.successors[x, a, 0])


SHORT = "bandit/2,best=0.5,other=0.4,discount=0.5"  # values 0 and H: as noisy as can be
SHARP = 0.5 / (4 * sqrt(2))  # scale at which c_2 = gamma
EPS1, H, XA, DELTA = 0.1, 2.0, 6, 0.1
TRIES = XA * (1 + XA * H / EPS1)  # updates that delayed Q-learning attempts, at most; Hoeffding bounds each
M = int(np.ceil(H * H * log(TRIES / DELTA) / (2 * EPS1**2)))


@pytest.mark.parametrize(
    ("learner", "narrow", "failures"),
    [
        (f"ucb-q,scale={SHARP},delta=0.2", f"ucb-q,scale={SHARP / 10},delta=0.2", 0.1),
        (f"liu-su,scale={SHARP},delta=0.2", f"liu-su,scale={SHARP / 10},delta=0.2", 0.2),  # two tables
        (f"delayed-q,accuracy=0.9,m={M}", "delayed-q,accuracy=0.9,m=3", DELTA),
    ],
)
def test_the_tables_stay_optimistic_with_the_stated_frequency(learner, narrow, failures):
    """At c_2 = gamma, or with the samples of the theorem, no more seeds fail than stated (false alarm: 1e-6), and more
    at a tenth of it. Values only fall: the last one is the least."""
    assert TRIES * exp(-2 * M * (EPS1 / H) ** 2) <= DELTA
    world, seeds = ids.mdp(SHORT), 150
    most = binom.isf(1e-6, seeds, failures)
    for text, steps, fails in ((learner, 200_000 if "delayed" in learner else 20_000, False), (narrow, 20_000, True)):
        state = run(text, world, steps, seeds, measured=False).batch.state
        table = (state.Q if "delayed" in text else state.Q_hat).reshape(seeds, -1, world.states, world.actions)
        assert ((table < solve(world).Q - 1e-9).any((1, 2, 3)).sum() > most) == fails


@pytest.mark.parametrize("m", [1, 4])
def test_delayed_q_only_falls_by_eps1_at_least_and_so_seldom(m):
    world, seen = ids.mdp("riverswim/6,discount=0.9"), []
    made = run(f"delayed-q,accuracy=0.5,m={m}", world, 20_000, [3], measures=[spy(seen)])
    eps1, H, (X, A) = made.settings["eps1"], world.horizon, world.rewards.shape
    tables = np.array([np.full((X, A), H), *(state.Q[0] for state, _ in seen)])
    drops = -np.diff(tables, axis=0)
    assert ((drops == 0) | (drops >= eps1 * (1 - 1e-9))).all()
    assert 10 < (drops > 0).sum() <= X * A * H / eps1


def test_liu_su_flips_a_fair_coin_of_its_own():
    """z test over 2^18 plays; false alarm 1e-6. The coin is not one of the four numbers of the step."""
    made = run("liu-su", "garnet/4,2,2", 2**14, 16, measured=False)
    by_table = made.batch.state.visits.sum((0, 2, 3))
    assert by_table.sum() == 2**18
    assert abs(by_table[1] - 2**17) / sqrt(2**18 / 4) < norm.isf(0.5e-6)


@pytest.mark.parametrize("initial", ["zero", "optimistic"])
def test_q_learning_finds_q_star_under_uniform_play(initial):
    """epsilon = 1 plays every pair for ever; after 2 10^5 plays ||Q - Q*|| < 0.02 of H = 3.3 (found: 0.008)."""
    world = ids.mdp("garnet/5,2,3,seed=1,discount=0.7")
    made = run(f"q-learning,scale=1e9,initial={initial}", world, 200_000, 4, measured=False)
    assert (made.batch.state.epsilon == 1).all()
    assert np.abs(made.batch.state.Q - solve(world).Q).max() < 0.02
