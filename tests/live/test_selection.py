"""Best-policy selection: the law of what is averaged, its failure rates, in MDPs and in environments."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import ravi
from ravi.live.policies import Policy
from ravi.live.selection import candidates, select
from ravi.mdps import garnet, riverswim
from ravi.planning.evaluation import staged_values
from ravi.random import uniform
from ravi.theory import selection as theory
from ravi.validation import StreamError
from tests.helpers import refuses, spy

gym = pytest.importorskip("gymnasium")

MOVING = "ravi-ucb,scale=0.003,eta=0.5"


def coin(p=0.5, discount=0.8):
    """Half of the pairs earn 1, and a uniform policy's last pair is one of them with probability p."""
    mdp = garnet(6, 2, 3, 1, discount)
    return replace(mdp, rewards=np.tile([1.0, 0.0], (6, 1))), np.tile([p, 1 - p], (6, 1))


def test_candidates_are_the_policies_of_their_times():
    mdp, T, delta = riverswim(5, 0.9), 600, 0.1
    seen = []
    made = ravi.run(MOVING, mdp, T, 4, measures=[candidates(mdp.problem, T, delta), spy(seen)])
    J = theory.candidates(delta)
    index, policy = made.results["candidate_index"], made.results["candidate_policy"]
    assert policy.shape == (4, J, 5, 2)
    for row in range(4):
        for j in range(J):
            assert index[row, j] == 1 + int(T * uniform(row, 0, 4 + j))
            epoch = np.searchsorted(made.T_k[row], index[row, j], "right") - 1
            assert (policy[row, j] == seen[epoch][0].policy[row]).all()


def test_times_are_uniform():
    """Kolmogorov and Smirnov at 1e-6 on 2,000 seeds."""
    index = candidates(riverswim(3).problem, 10**6, 0.5).init(np.arange(2000, dtype=np.uint64)).index
    assert stats.kstest(index.ravel() / 10**6, "uniform").pvalue > 1e-6


def test_a_mean_is_that_of_independent_last_rewards():
    """Rewards of 0 and 1 make W times the mean binomial(W, return): chi-square over 2,000 seeds at 1e-6."""
    mdp, policy = coin(0.3)
    found = [select([policy], mdp, 0.5, 0.1, seed=seed) for seed in range(2000)]
    W = found[0].rollouts
    assert int(np.ceil(8 * np.log(2 / 0.1))) == W
    ones = np.rint([W * one.estimates[0] for one in found]).astype(int)
    edges = [-1, *range(4, 12), W]
    wanted = 2000 * np.diff(stats.binom.cdf(edges, W, 0.3))
    counted = np.histogram(ones, np.array(edges) + 0.5)[0]
    assert stats.chisquare(counted, wanted).pvalue > 1e-6
    plays = np.mean([one.plays for one in found])
    assert plays / W == pytest.approx(5.0, abs=5 * np.sqrt(20 / (2000 * W)))  # H, and a geometric variance


def test_a_mean_is_the_normalised_return():
    """Within 5 deviations, for stationary policies and for policies by age."""
    mdp, rng = garnet(6, 3, 3, 2, 0.9), np.random.default_rng(0)
    stationary, best = rng.dirichlet([0.5] * 3, 6), ravi.solve(mdp).policy
    by_age = np.array([ravi.solve(replace(mdp, rewards=1 - mdp.rewards)).policy] * 3 + [best])
    made = select([stationary], mdp, 0.02, 0.1)
    assert abs(made.estimates[0] - ravi.return_of(mdp, stationary)) <= 5 * 0.5 / np.sqrt(made.rollouts)
    made = select([by_age], mdp, 0.02, 0.1)
    wanted = staged_values(mdp, by_age[None], 1e-10)[1][0]
    assert abs(made.estimates[0] - wanted) <= 5 * 0.5 / np.sqrt(made.rollouts)
    assert abs(wanted - ravi.return_of(mdp, best)) > 10 * 0.5 / np.sqrt(made.rollouts)  # ages matter


def test_the_failure_rate_of_a_run_is_below_delta():
    """gap > 2 regret / T + epsilon, over 400 seeds, delta = 0.2: 80 failures are allowed in the mean."""
    mdp, T, eps, delta = riverswim(4, 0.9), 1500, 0.08, 0.2
    made = ravi.run(MOVING, mdp, T, 400, measures=[candidates(mdp.problem, T, delta)])
    assert select(made, mdp, eps, delta).rollouts == theory.rollouts(eps, delta)
    gaps = np.array([select(made, mdp, eps, delta, which=row).policy for row in range(400)])
    gaps = made.optimum - np.array([ravi.return_of(mdp, policy) for policy in gaps])
    failures = (gaps > 2 * made.regret / T + eps).mean()
    assert failures <= delta
    drawn = made.optimum - np.array([ravi.return_of(mdp, policy) for policy in made.output_policy])
    assert gaps.mean() < 0.7 * drawn.mean()  # better than one policy at random, whose mean gap is regret / T


def test_the_failure_rate_among_given_policies_is_that_of_two_binomials():
    """Two policies whose returns differ by just over epsilon: the worse is chosen as often as its mean is larger."""
    mdp, good = coin(0.55)
    bad, eps, delta = np.tile([0.43, 0.57], (6, 1)), 0.11, 0.9
    n = 400
    wrong = np.array([select([bad, good], mdp, eps, delta, seed=seed).index == 0 for seed in range(n)])
    assert wrong.mean() <= delta
    W = select([bad, good], mdp, eps, delta).rollouts
    one = stats.binom.pmf(np.arange(W + 1), W, 0.43)
    independent = (one * stats.binom.cdf(np.arange(W + 1), W, 0.55)).sum()  # ties go to the first
    assert wrong.mean() <= independent + 4.5 * np.sqrt(independent / n)  # common numbers only help
    mirrored = [select([good, bad], mdp, eps, delta, seed=seed).index for seed in range(50)]
    assert np.mean(mirrored) < 0.1


class Coin(gym.Env):
    """One state; action 1 earns 3 with probability 0.6, action 0 earns -1; ends after a play with probability `end`."""

    observation_space, action_space = gym.spaces.Discrete(1), gym.spaces.Discrete(2)

    def __init__(self, end=0.0, cut=False):
        self.end, self.cut = end, cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        reward = 3.0 if action and self.np_random.random() < 0.6 else -1.0
        return 0, reward, self.np_random.random() < self.end, self.cut, {}


def table(p, states=1):
    return np.tile([1 - p, p], (states, 1))


def test_in_an_environment_rewards_are_in_parts_of_their_range():
    policies = [Policy(table=table(p), discount=0.8, units=(-1, 3)) for p in (0.2, 1.0, 0.0)]
    made = select(policies, Coin(), 0.1, 0.1, termination="restart")
    assert made.index == 1
    assert made.policy is policies[1]
    np.testing.assert_allclose(made.estimates, [0.12, 0.6, 0.0], rtol=0, atol=5 * 0.5 / np.sqrt(made.rollouts))
    assert made.estimates[2] == 0


def test_what_has_terminated_earns_nothing_until_its_reset():
    """With ends after a play with probability 1/2, the last play before a reset is in the absorbing state with
    probability 1 - 0.2 / (0.2 + 0.8 / 2) = 2/3; 0 is a quarter of the way from -1 to 3."""
    made = select([table(1.0, 2)], Coin(end=0.5), 0.05, 0.1, discount=0.8, reward_range=(-1, 3))
    assert made.estimates[0] == pytest.approx(0.6 / 3 + 0.25 * 2 / 3, abs=5 * 0.5 / np.sqrt(made.rollouts))


def test_an_environment_and_its_table_agree():
    lake = gym.make("FrozenLake-v1", max_episode_steps=-1, is_slippery=False)
    mdp = ravi.gymnasium.mdp(lake, 0.9)
    policies = [ravi.solve(mdp).policy, np.full((mdp.states, 4), 0.25)]
    for world, more in ((mdp, {}), (lake, {"discount": 0.9, "reward_range": (0, 1)})):
        made = select(policies, world, 0.1, 0.1, **more)
        for estimate, policy in zip(made.estimates, policies, strict=True):
            rho = ravi.return_of(mdp, policy)
            assert abs(estimate - rho) <= 5 * np.sqrt(rho * (1 - rho) / made.rollouts) + 1e-3
        assert made.index == 0


def test_a_run_is_selected_from_in_an_environment():
    lake = gym.make("FrozenLake-v1", max_episode_steps=-1, is_slippery=False)
    mdp, T = ravi.gymnasium.mdp(lake, 0.9), 2000
    made = ravi.run("ravi-ucb,scale=0.001,eta=0.5", mdp, T, 2, measures=[candidates(mdp.problem, T, 0.5)])
    one = select(made, lake, 0.2, 0.5, which=1)
    assert (one.policy == made.results["candidate_policy"][1, one.index]).all()
    assert one.times.tolist() == made.results["candidate_index"][1].tolist()


def test_what_cannot_be_is_refused():
    mdp = riverswim(4, 0.9)
    made = ravi.run("uniform", mdp, 50, 1)
    refuses("kept no candidates", select, made, mdp, 0.1)
    kept = ravi.run("uniform", mdp, 50, 1, measures=[candidates(mdp.problem, 50, 0.5)])
    refuses(r"kept 2 candidates; delta = 0\.01 needs 8", select, kept, mdp, 0.1, 0.01)
    refuses("policies is empty", select, [], mdp, 0.1)
    refuses("epsilon is 0", select, kept, mdp, 0)
    refuses("reward_range is 1 to 0", select, [table(0.5)], Coin(), 0.1, discount=0.8, reward_range=(1, 0))
    refuses("need discount and reward_range", select, [table(0.5)], Coin(), 0.1)
    facts = {"discount": 0.8, "termination": "restart"}
    refuses(
        "rollout 1 was truncated",
        select,
        [table(0.5)],
        Coin(cut=True),
        0.1,
        by=StreamError,
        reward_range=(-1, 3),
        **facts,
    )
    refuses(
        "outside its range from 0 to 1", select, [table(0.5)], Coin(), 0.1, by=StreamError, reward_range=(0, 1), **facts
    )
