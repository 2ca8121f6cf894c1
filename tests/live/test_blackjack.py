"""The table of Blackjack in benchmarks/blackjack.py is that of the environment; its rewards are known by default."""

import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from scipy.stats import chi2

import ravi
from ravi.live import choices
from ravi.live.encoders import encoder_of

ALARM, PLAYS, OFTEN = 1e-6, 60_000, 5  # of each test; plays; how often an outcome must be expected, to be counted
END, STATES = 704, 715


def table(env):
    place = Path(__file__).parents[2] / "benchmarks" / "blackjack.py"
    spec = importlib.util.spec_from_file_location("blackjack", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.blackjack(env, 0.99)


def played(env):
    """Plays at random: how often (x, a) led to y, (X, A, X); how often which state was the first; what (x, a) earned
    and its squares, each as a sum."""
    moves, starts, earned, squares = np.zeros((STATES, 2, STATES)), *np.zeros((1, STATES)), *np.zeros((2, STATES, 2))
    number, rng, x = encoder_of(env.observation_space).number, np.random.default_rng(0), END
    env.reset(seed=0)
    for _ in range(PLAYS):
        if x == END:
            observation, _ = env.reset()
            natural = observation[0] == 21
            x = END + observation[1] if natural else number(observation)
            starts[x] += 1
        a = int(rng.random() < 0.5)
        observation, reward, ended, _, _ = env.step(a)
        y = END if ended else number(observation)
        moves[x, a, y] += 1
        earned[x, a] += reward
        squares[x, a] += reward**2
        x = y
    return moves, starts, earned, squares


def unlikely(counts, chances):
    """Whether rows of counts are not of these chances, by one chi-square test of all that were seen often enough."""
    means = counts.sum(-1, keepdims=True) * chances
    assert not counts[chances == 0].any()
    tested = ((means >= OFTEN) | (chances == 0)).all(-1)
    assert tested.any()
    counts, means, possible = counts[tested], means[tested], chances[tested] > 0
    statistic = ((counts - means)[possible] ** 2 / means[possible]).sum()
    return statistic > chi2.isf(ALARM, possible.sum() - len(counts))


@pytest.mark.parametrize("sab", [True, False])
def test_the_table_is_that_of_the_environment(sab):
    """Successors and starts by chi-square, rewards by the sum of squares of their standard scores: false alarms 1e-6
    each."""
    env = gymnasium.make("Blackjack-v1", sab=sab)
    mdp, sees = table(env)
    assert (mdp.states, len(sees)) == (STATES, STATES)
    moves, starts, earned, squares = played(env)
    x, a = np.ogrid[:STATES, :2]
    dense = np.zeros((STATES, 2, STATES))
    np.add.at(dense, (x[..., None], a[..., None], mdp.successors), mdp.transitions)
    assert not unlikely(moves, dense)
    assert not unlikely(starts[None], mdp.initial[None])

    def others(mdp):
        """Whether the rewards are not those of a table."""
        n, r = moves.sum(-1), 2 * mdp.rewards - 1
        often = n >= 50
        scores = (earned - n * r)[often] ** 2 / np.maximum(squares - 2 * r * earned + n * r**2, 1e-9)[often]
        return scores.sum() > chi2.isf(ALARM, often.sum())

    assert not others(mdp)
    assert not sab or others(table(gymnasium.make("Blackjack-v1", sab=False))[0])  # which differs in naturals only


@pytest.mark.parametrize(("options", "most"), [({}, 1), ({"sab": False}, 1), ({"sab": False, "natural": True}, 1.5)])
def test_it_is_learned_with_nothing_said(options, most):
    """A natural pays 1.5 where natural=True, unless sab=True, by which it is of no effect."""
    found = ravi.learn(gymnasium.make("Blackjack-v1", **options), steps=3000)
    assert found.agent.table.problem.units == (-1, most)
    assert choices.known_range(gymnasium.make("Blackjack-v1", natural=True)) == (-1, 1)
