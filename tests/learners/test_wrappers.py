"""Learners that do not know the rewards, or T, made of others (`ravi.learners.wrappers`)."""

from dataclasses import replace

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.core import restrict
from ravi.random import earned
from ravi.runtime import tree
from ravi.validation import LAWS, InputError
from tests.support.learners import REFUSED, WRAPPED

WORLD = ids.mdp("riverswim/mixture/5,discount=0.9")


@pytest.mark.parametrize(
    ("wrapper", "name", "why"), [(wrapper, *row) for wrapper, rows in REFUSED.items() for row in rows.items()]
)
def test_what_a_wrapper_does_not_take_is_refused_by_name(wrapper, name, why):
    with pytest.raises(InputError, match=name.replace("+", r"\+")) as error:
        ravi.run(f"{name}/{wrapper}", WORLD, 100)
    assert why in str(error.value)


def test_no_learner_is_wrapped_twice_in_the_same():
    for text in ("psrl/unknown-rewards/unknown-rewards", "ravi-ucb/doubling/doubling"):
        with pytest.raises(InputError, match="twice"):
            ids.learner(text, WORLD, 100)


def test_an_id_gives_options_to_both():
    made = ids.learner("ucrl2/unknown-rewards/doubling,scale=0.2,first=7,rewards=deterministic", WORLD, 100)
    assert made.name == "ucrl2/unknown-rewards/doubling"
    assert (made.settings["first"], made.settings["scale"], made.settings["rewards"]) == (7, 0.2, "deterministic")
    assert ids.canonical("psrl/unknown-rewards,reward_scale=1,support=on") == "psrl/unknown-rewards,support=on"
    with pytest.raises(InputError, match=r"no option 'frist'.*first"):
        ids.learner("ucrl2/doubling,frist=7", WORLD, 100)


NAMES = [name.removesuffix("/unknown-rewards") for name in WRAPPED if name.endswith("/unknown-rewards")]


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_reads_the_rewards_anew_at_every_plan(name):
    problem, keys = WORLD.problem, np.arange(2, dtype=np.uint64)
    table = np.ones(problem.rewards.shape)
    late, early = (
        ids.learner(name, restrict(problem, type(problem), rewards=rewards), 100)
        for rewards in (table, problem.rewards)
    )
    states = late.init(keys), early.init(keys)
    table[:] = problem.rewards
    planned = [dict(tree.leaves(made.plan(s))) for made, s in zip((late, early), states, strict=True)]
    for key in planned[0]:
        assert np.asarray(planned[0][key]).tobytes() == np.asarray(planned[1][key]).tobytes(), key


@pytest.mark.parametrize("name", ["psrl", "ucrl2,scale=0.1", "mbie,scale=0.1", "q-learning", "ucbvi-gamma,scale=0.01"])
def test_it_plays_as_an_agent_that_is_told_what_it_earned(name):
    head, comma, options = name.partition(",")
    made = ravi.run(f"{head}/unknown-rewards{comma}{options}", WORLD, 400, [4], record=["stream"], progress=False)
    agent = ravi.agent(name, WORLD.problem, 400, rewards="unknown", seed=4)
    stream = zip(
        *(made.results[f"stream_{part}"][0].tolist() for part in ("state", "action", "successor")), strict=True
    )
    for t, (x, a, y) in enumerate(stream, 1):
        assert agent.act(x) == a, t
        agent.observe(x, a, y, earned(LAWS["bernoulli"], np.uint64(4), t, WORLD.rewards[x, a]))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ["psrl/unknown-rewards", "ravi-ucb/unknown-rewards", "ravi-kl/unknown-rewards"])
def test_a_learner_earns_by_the_law_of_the_mdp(name, law):
    """It plays as with the option, and earns what the law draws of the pairs that it plays."""
    noisy = replace(WORLD, reward_law=law)
    given = {"seeds": [4], "record": ["stream"], "progress": False}
    made, asked = ravi.run(name, noisy, 200, **given), ravi.run(f"{name},rewards={law}", WORLD, 200, **given)
    assert made.regret == asked.regret
    x, a = (made.results[f"stream_{part}"][0] for part in ("state", "action"))
    drawn = [earned(LAWS[law], np.uint64(4), t, WORLD.rewards[x[t - 1], a[t - 1]]) for t in range(1, 201)]
    assert made.results["reward_total"][0] == pytest.approx(sum(drawn), rel=1e-12)
    with pytest.raises(InputError, match=f"those of riverswim/mixture/5 are {law}"):
        ids.learner(f"{name},rewards={next(other for other in LAWS if other != law)}", noisy, 100)


def test_a_learner_that_knows_the_rewards_plays_the_same_under_every_law():
    plain, noisy = (ravi.run("psrl", mdp, 200, 2) for mdp in (WORLD, replace(WORLD, reward_law="beta")))
    assert (plain.regret == noisy.regret).all()
    assert (plain.results["reward_total"] != noisy.results["reward_total"]).all()


def test_unknown_rewards_in_the_average_reward():
    mdp = replace(ids.mdp("riverswim/4,criterion=average"), reward_law="bernoulli")
    made = ravi.run("ucrl2/unknown-rewards", mdp, 300, 2)
    assert (made.regret > 0).all()
    earned_whole = made.results["reward_total"]  # coins
    assert (earned_whole == np.round(earned_whole)).all()
    with pytest.raises(InputError, match="ucrl2/doubling is for the discounted criterion"):
        ids.learner("ucrl2/doubling", mdp, 100)


def test_rewards_are_read_where_pairs_are_played_only():
    text, options = "mbie/unknown-rewards,scale=0.1", {"seeds": [1], "record": ["stream"], "progress": False}
    made = ravi.run(text, WORLD, 20, **options)
    other, played = (
        np.full(WORLD.rewards.shape, 0.5),
        [made.results[f"stream_{part}"][0] for part in ("state", "action")],
    )
    other[tuple(played)] = WORLD.rewards[tuple(played)]
    assert (other != WORLD.rewards).any()
    again = ravi.run(text, replace(WORLD, rewards=other), 20, **options)
    assert (again.results["stream_action"] == made.results["stream_action"]).all()


@pytest.mark.parametrize("name", ["ucrl2", "mbie", "uclk", "delayed-q", "lsvi-ucb"])
def test_phase_0_is_the_learner_for_its_length(name):
    made = [ravi.run(text, WORLD, 100, 3, progress=False) for text in (name, f"{name}/doubling,first=100")]
    inner = dict(tree.leaves(made[1].state.learner))
    for key, leaf in tree.leaves(made[0].state):
        assert leaf.tobytes() == inner[key].tobytes(), key
    assert made[0].regret.tobytes() == made[1].regret.tobytes()


@pytest.mark.parametrize("name", ["ucrl2,scale=0.1", "mbie,scale=0.1", "ucbvi-gamma,scale=0.01"])
def test_a_phase_is_of_its_length_and_knows_its_own_plays_only(name):
    head, comma, options = name.partition(",")
    made = ravi.run(f"{head}/doubling,first=20{comma}{options}", WORLD, 500, [2, 9], record=["stream"], progress=False)
    for i in range(2):
        x, a, reset = (made.results[f"stream_{part}"][i] for part in ("state", "action", "reset"))
        phase, begun, t = 0, 0, 20 << 0
        while True:
            after = np.flatnonzero(reset[t - 1 :])  # the first reset from the last play of the phase on
            if len(after) == 0 or t + after[0] >= 500:
                break
            phase, begun = phase + 1, int(t + after[0])
            t = begun + (20 << phase)
            if t > 500:
                break
        last = min(begun + (20 << phase), 500)
        assert (made.state.phase[i], made.state.plays[i]) == (phase, last - begun)
        visits = np.zeros((WORLD.states, WORLD.actions), np.int64)
        np.add.at(visits, (x[begun:last], a[begun:last]), 1)
        assert (made.state.learner.data.visits[i] == visits).all()
