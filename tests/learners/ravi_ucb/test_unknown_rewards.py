"""Rewards that are learned: what enters Q, who reads what, and how often both bonuses hold."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

from ravi import testing
from ravi.learners.ravi_ucb import ravi_ucb, unknown_rewards
from ravi.learners.regularised import md_mpi
from ravi.mdps import garnet, riverswim
from ravi.optimism.rewards import optimistic_rewards, reward_bonus, reward_spread
from ravi.random import uniform
from ravi.runtime.api import run
from ravi.theory import tabular
from ravi.theory import unknown_rewards as theory
from ravi.validation import InputError
from tests.helpers import spy

T = 600


def epochs_of(learner, mdp, seeds, steps=T):
    seen = []
    made = run(learner, mdp, steps, seeds, record=["stream"], measures=[spy(seen)])
    return made, [state for state, _ in seen]


@pytest.mark.parametrize(("kind", "delta"), [("bernoulli", None), ("deterministic", None), ("deterministic", 0.2)])
def test_Q_is_the_clipped_backup_of_optimistic_rewards(kind, delta):
    """By plain loops over the stream: what each pair earned before the epoch, its mean, its width, and Algorithm 2."""
    mdp, seed = garnet(5, 2, 3, 4, 0.8), 3
    learner = unknown_rewards.tabular(
        mdp.problem, T, rewards=kind, scale=0.001, reward_scale=0.5, step_scale=20, delta=delta
    )
    made, states = epochs_of(learner, mdp, [seed])
    x, a, y = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor"))
    H, beta, L = 5.0, learner.settings["beta"], log(2 * 5 * 2 * T / (delta or 1 / T))
    n, total, moves = np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 2, 5))
    t = 0
    for start, state in zip(made.T_k[0].tolist(), states, strict=True):
        while t < start - 1:
            r = mdp.rewards[x[t], a[t]]
            if kind == "bernoulli":
                r = float(uniform(seed, t + 1, 5) < r)
            n[x[t], a[t]] += 1
            total[x[t], a[t]] += r
            moves[x[t], a[t], y[t]] += 1
            t += 1
        for i in range(5):
            for b in range(2):
                width = min(0.5 * sqrt(L / (2 * n[i, b])), 1) if n[i, b] else 1
                mean = total[i, b] / n[i, b] if n[i, b] else 0
                PV = moves[i, b] @ state.V[0] / (n[i, b] + 1)
                Q = min(mean + width, 1) + beta / sqrt(n[i, b] + 1) + 0.8 * PV
                assert state.Q[0, i, b] == pytest.approx(min(max(Q, 0), H), abs=1e-11)
    assert np.ptp(states[-1].policy[0], axis=1).max() > 0.1  # of policies that have moved


def test_optimistic_rewards_are_between_the_truth_and_twice_the_bonus_and_at_most_one():
    spread = reward_spread(3, 2, 100, 0.01)
    assert spread == pytest.approx(sqrt(log(2 * 3 * 2 * 100 / 0.01) / 2))
    n = np.array([0, 1, 5, 50, 5000])
    b = reward_bonus(n, spread)
    np.testing.assert_allclose(b, [1, 1, 1, spread / sqrt(50), spread / sqrt(5000)])
    for r in (0.0, 0.3, 1.0):
        for off in (-1, 0, 1):
            mean = np.clip(r + off * b, 0, 1)  # as wrong as can be
            table = optimistic_rewards(n, n * mean, spread)
            assert (table >= r - 1e-12).all()
            assert (table <= np.minimum(1, r + 2 * b) + 1e-12).all()


@pytest.mark.parametrize("builder", [unknown_rewards.tabular, unknown_rewards.plus])
@pytest.mark.parametrize("kind", ["bernoulli", "deterministic"])
def test_rewards_of_pairs_that_are_not_played_are_not_read(builder, kind):
    mdp, steps = garnet(12, 3, 3, 1, 0.8), 60

    def played(world):
        learner = builder(world.problem, steps, rewards=kind)
        made, states = epochs_of(learner, world, [5], steps)
        return made, states

    made, states = played(mdp)
    visited = np.zeros((12, 3), bool)
    visited[made.results["stream_state"][0], made.results["stream_action"][0]] = True
    assert 0 < visited.sum() < visited.size
    other, others = played(replace(mdp, rewards=np.where(visited, mdp.rewards, 1 - mdp.rewards)))
    for one, two in zip(states, others, strict=True):
        assert one.Q.tobytes() == two.Q.tobytes()
        assert one.policy.tobytes() == two.policy.tobytes()
    changed, _ = played(replace(mdp, rewards=np.where(visited, 1 - mdp.rewards, mdp.rewards)))
    assert changed.batch.state.data.total.tobytes() != made.batch.state.data.total.tobytes()


@pytest.mark.parametrize("kind", ["bernoulli", "deterministic"])
def test_to_observers_it_is_algorithm_1_with_a_bonus_that_covers_rewards_too(kind):
    """Q = Pi_H[r + bonus + gamma estimate]; where n = 0 the bonus is CB + 1/2, the estimate off by (1/2 - r)/gamma."""
    mdp = garnet(5, 2, 3, 4, 0.8)
    base = ravi_ucb.tabular(mdp.problem, T, scale=0.001, step_scale=20)
    learner = unknown_rewards.unknown(base, mdp.problem, T, rewards=kind)
    _, states = epochs_of(learner, mdp, [3])
    for state in states:
        phi, parts = learner.parts.estimator.embed(state.V), learner.parts
        PV, bonus = parts.estimator.expect(state.data, phi), parts.bonus(state.data, phi)
        np.testing.assert_allclose(state.Q, np.clip(mdp.rewards + bonus + 0.8 * PV, 0, 5), rtol=0, atol=1e-12)
        CB, exact = base.parts.bonus(state.data.inner, phi), base.parts.estimator.expect(state.data.inner, phi)
        b = reward_bonus(state.data.plays, reward_spread(5, 2, T, 1 / T))
        assert (bonus - CB <= b + 1e-12).all()
        never = state.data.plays == 0
        np.testing.assert_allclose((bonus - CB)[never], 0.5, atol=1e-12)
        np.testing.assert_allclose((PV - exact)[never], ((0.5 - mdp.rewards) / 0.8)[None][never], atol=1e-12)


def test_a_mixture_can_learn_its_rewards_too():
    def builder(problem, steps):
        base = ravi_ucb.linear_mixture(problem, steps, scale=0.02, step_scale=30)
        return unknown_rewards.unknown(base, problem, steps, reward_scale=0.3)

    testing.check(builder, testing.MDPS[:1])


def test_learners_of_another_form_and_those_that_learn_rewards_already_are_refused():
    problem = riverswim(3, 0.9).problem
    for base in (md_mpi.md_mpi(problem, T, sweeps=2), unknown_rewards.tabular(problem, T)):
        with pytest.raises(InputError, match="has no form for unknown rewards: ravi-ucb and ravi-ucb"):
            unknown_rewards.unknown(base, problem, T)


# ---- the bound


def test_the_bounds_add_twice_the_sum_and_one_more_failure():
    numbers = (4.0, 3, 2, 1000)
    R = theory.bonus_sum(*numbers, reward_spread(3, 2, 1000, 1 / 1000))
    late = 1 + sum(min(1, 2.0 / sqrt(2**i - 1)) for i in range(1, 200))
    assert theory.bonus_sum(*numbers, 2.0) == pytest.approx(2 * sqrt(2) * 2 * sqrt(6 * 1003) + 24 * late, rel=1e-8)
    for known, learned in ((tabular.corrected, theory.corrected), (tabular.sharp, theory.sharp)):
        one, other = known(*numbers), learned(*numbers)
        assert other.total - one.total == pytest.approx(2 * R + 1)
        assert other.failure == pytest.approx(2)
        assert learned(*numbers, delta=0.01).failure == pytest.approx(20)


@pytest.mark.parametrize(
    ("option", "message"), [("rewards=maybe", "rewards is 'maybe'"), ("reward_scale=-1", "reward_scale is -1")]
)
def test_what_cannot_be_is_refused(option, message):
    with pytest.raises(InputError, match=message):
        run(f"ravi-ucb/unknown-rewards,{option}", "riverswim/4", 10)
