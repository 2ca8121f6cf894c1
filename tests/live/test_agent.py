"""An agent on a stream: what `ravi.runtime.api` does, turned inside out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ravi import ids
from ravi.core import Problem
from ravi.live.agent import Agent, agent
from ravi.live.agent_file import agent_state
from ravi.live.table import unknown_problem
from ravi.planning.evaluation import return_of
from ravi.planning.solver import solve
from ravi.runtime import archive, tree
from ravi.runtime.api import run
from ravi.testing import MDPS
from ravi.validation import InputError, StreamError
from tests.helpers import dense, refuses
from tests.support.learners import LEARNERS

T = 400


def fed(learner, world, made, upto=T, live=None):
    """An agent that was fed the stream of a run."""
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    live = live or agent(learner, world, T, seed=made.seeds[0])
    for t in range(live.plays, upto):
        assert live.act(x[t]) == a[t], t
        assert live.observe(x[t], a[t], y[t], world.rewards[x[t], a[t]]) == reset[t], t
    if upto == T:
        live.end(int(made.batch.walkers.state[0]))
    return live


TABULAR = [learner for learner in LEARNERS if learner.split(",")[0] not in ("optimum", "ravi-ucb/known")]


def needs_features(learner):
    """Whether a learner is for mixtures only."""
    try:
        ids.learner(learner, unknown_problem(3, 2, 0.5, (0.0, 1.0), "nothing"), 10)
    except InputError as error:
        if "has no features" not in str(error):
            raise
        return True
    return False


def is_told(learner):
    """Whether a tabular learner is told the successors of every pair."""
    made = ids.learner(learner, unknown_problem(3, 2, 0.5, (0.0, 1.0), "nothing"), 10)
    return made.side_information.support


UNTOLD = [
    one
    for one in TABULAR
    if not (needs_features(one) or one.split(",")[0].endswith("/unknown-rewards") or is_told(one))
]


def world_of(live, mdp, plays, seed=0):
    """Feed an agent by an MDP whose randomness is its own, from the agent's time on."""
    rng = np.random.default_rng([seed, live.plays])
    x = int(rng.choice(mdp.states, p=mdp.initial))
    for _ in range(plays):
        a = live.act(x)
        y = int(rng.choice(mdp.successors[x, a], p=mdp.transitions[x, a]))
        reset = live.observe(x, a, y, mdp.in_units(mdp.rewards[x, a]))
        x = int(rng.choice(mdp.states, p=mdp.initial)) if reset else y
    return live


def everything(live):
    """All that an agent carries, as bits."""
    live._add()
    header = (live.time, live._pending, live.cycle, live.length, live.cycles, live.cuts, live.plans, live._restarted)
    arrays = dict(tree.leaves(agent_state(live))) | {"rewards": live.table.rewards, "initial": live.table.initial}
    return header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("learner", TABULAR)
def test_a_stream_goes_on_from_a_file_bit_for_bit(learner, tmp_path):
    world = ids.mdp(MDPS[1])
    made = run(learner, world, T, [3], record=["stream"])
    live = None
    for cut in (0, 1, 137, 399):  # in the middle of epochs too
        fed(learner, world.problem, made, cut, live).save(tmp_path / "half.agent")
        live = Agent.load(tmp_path / "half.agent")
    assert everything(fed(learner, world.problem, made, live=live)) == everything(fed(learner, world.problem, made))


@pytest.mark.parametrize("learner", UNTOLD)
def test_learning_from_nothing_goes_on_from_a_file_bit_for_bit(learner, tmp_path):
    """Rewards, the start and the successors are learned: what is kept is all of it."""
    world = ids.mdp("garnet/9,3,3,discount=0.8")
    given = {"states": 9, "actions": 3, "discount": 0.8, "seed": 4}
    for plays in (1, 60):
        one = world_of(agent(learner, None, T, **given), world, plays)
        one.save(tmp_path / "one.agent")
        two = Agent.load(tmp_path / "one.agent")
        one._pending = two._pending = None if one._pending is None else (*one._pending[:4], True, False)  # a reset
        assert everything(world_of(one, world, 80)) == everything(world_of(two, world, 80))


@pytest.mark.parametrize("learner", UNTOLD)
def test_successors_that_are_met_on_the_way_are_as_good_as_known_ones(learner):
    """With nothing told but sizes, or with all successors stored from the start: the same actions."""
    world = ids.mdp("garnet/9,3,6,discount=0.8")
    told = Problem(
        rewards=world.rewards,
        successors=np.broadcast_to(np.arange(9, dtype=np.int32), (9, 3, 9)),
        initial=world.initial,
        discount=0.8,
    )
    few = Problem(
        rewards=world.rewards,
        successors=np.broadcast_to(np.arange(2, dtype=np.int32), (9, 3, 2)),
        initial=world.initial,
        discount=0.8,
    )
    known, met = (agent(learner, problem, T, seed=1) for problem in (told, few))
    rng, x = np.random.default_rng(0), 0
    for _ in range(T):
        a = known.act(x)
        assert met.act(x) == a
        y = int(rng.choice(world.successors[x, a], p=world.transitions[x, a]))
        resets = [live.observe(x, a, y, world.rewards[x, a]) for live in (known, met)]
        assert resets[0] == resets[1]
        x = int(rng.choice(9, p=world.initial)) if resets[0] else y
    assert met.table.sizes[2] > 2
    assert (known.visits == met.visits).all()
    np.testing.assert_allclose(known.policy, met.policy, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learner", UNTOLD)
def test_a_learner_reads_rewards_and_start_anew_at_every_plan(learner):
    """What is written into the table is what a learner that is built on it plans with."""
    world = ids.mdp("garnet/6,2,3,discount=0.8")
    live = world_of(agent(learner, None, T, states=6, actions=2, discount=0.8), world, 100)
    live._add()
    built = ids.learner(learner, live.table.view(), T)  # anew, with what is known now
    states = [tree.copy(live.state), tree.copy(live.state)]
    plans = [dict(tree.leaves(one.plan(state))) for one, state in zip((live.learner, built), states, strict=True)]
    for name, leaf in plans[0].items():
        assert leaf.tobytes() == plans[1][name].tobytes(), name


@pytest.mark.parametrize("learner", UNTOLD)
def test_a_table_that_grows_keeps_what_was_seen(learner):
    world = ids.mdp("garnet/9,3,3,discount=0.8")
    live = world_of(agent(learner, None, T, states=9, actions=3, discount=0.8), world, 100)
    live._add()
    before, moves = live.visits.copy(), live.table.moves.copy()
    live.grow(20, 5)
    assert (live.visits[:9, :3] == before).all()
    assert live.visits.sum() == before.sum()
    assert (live.table.moves[:9, :3, : moves.shape[2]] == moves).all()
    np.testing.assert_allclose(live.policy.sum(-1), 1, rtol=0, atol=1e-12)
    large = ids.mdp("garnet/20,5,3,discount=0.8")
    live._pending = (*live._pending[:4], True, False)  # a reset
    world_of(live, large, 200)
    assert live.visits.sum() == 300 - 1
    np.testing.assert_allclose(live.policy.sum(-1), 1, rtol=0, atol=1e-12)


def test_axes_of_pairs_grow_by_pairs():
    """One-hot features of a linear learner count pairs x A + a: what was learned of a pair stays that of the pair."""
    world = ids.mdp("garnet/4,2,3,discount=0.8")
    live = world_of(agent("lsvi-ucb,scale=0.01", None, T, states=4, actions=2, discount=0.8), world, 200)
    live.end()
    live.grow(7, 3)
    plays = np.zeros((7, 3))
    plays[:4, :2] = live.visits[:4, :2]
    covariance = live.state.data.covariance[0]
    np.testing.assert_allclose(np.diag(covariance).reshape(7, 3) - covariance[-1, -1], plays)
    assert live.visits[:4, :2].sum() == 200


def test_growing_without_more_is_no_change():
    world = ids.mdp("garnet/9,3,3,discount=0.8")
    given = {"states": 9, "actions": 3, "discount": 0.8}
    one, two = (world_of(agent("ravi-ucb,scale=0.003,eta=1", None, T, **given), world, 100) for _ in range(2))
    two.grow(9, 3)
    assert everything(one) == everything(two)


def small(**more):
    return agent("ravi-ucb,scale=0.01", None, 50, **({"states": 3, "actions": 2, "discount": 0.5} | more))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda live: live.act(3), "step 1: the state is 3, but states are 0 to 2"),
        (lambda live: live.act(-1), "the state is -1"),
        (lambda live: live.act(1.0), "the state is 1.0, not the number of a state"),
        (lambda live: live.act(True), "the state is True"),
        (lambda live: live.observe(0, 0, 0, 0.5), "act comes first"),
        (lambda live: (live.act(0), live.act(0)), "act was called twice"),
        (lambda live: live.observe(0, 1 - live.act(0), 1, 0.5), "but the agent chose action"),
        (lambda live: live.observe(1, live.act(0), 1, 0.5), "observed state 1"),
        (lambda live: live.observe(0, live.act(0), 7, 0.5), "the successor is 7, but states are 0 to 2"),
        (lambda live: live.observe(0, live.act(0), 1, np.nan), "is nan"),
        (lambda live: live.observe(0, live.act(0), 1, np.inf), "is inf, outside its range"),
        (lambda live: live.observe(0, live.act(0), 1, 1.1), "is 1.1, outside its range from 0 to 1"),
        (lambda live: live.observe(0, live.act(0), 1, "much"), "is 'much', not a number"),
        (lambda live: live.observe(0, live.act(0), 1, None), "is None, not a number"),
    ],
)
def test_a_bad_stream_is_told_and_changes_nothing(call, message):
    live, other = small(), small()
    refuses(re.escape(message), call, live, by=StreamError)
    for one in (live, other):
        a = one._acted[1] if one._acted else one.act(0)
        one.observe(0, a, 1, 0.5, cut=True)
    world = ids.mdp("garnet/3,2,2,discount=0.5")
    assert everything(world_of(live, world, 30)) == everything(world_of(other, world, 30))


def test_after_a_bad_answer_the_right_one_is_taken():
    live = small()
    a = live.act(0)
    with pytest.raises(StreamError):
        live.observe(0, a, 1, 2.0)
    live.observe(0, a, 1, 0.25)
    live.end()
    assert live.visits[0, a] == 1
    assert live.rewards.sums.total[0, a] == 0.25


def test_a_jump_without_a_reset_is_told():
    live = small(discount=0.999)
    live.observe(0, live.act(0), 1, 0.5)
    refuses("the state is 2, but the step before led to 1, without a reset", live.act, 2, by=StreamError)
    live.act(1)


def test_no_more_plays_than_were_asked_for():
    live = world_of(small(), ids.mdp("garnet/3,2,2,discount=0.5"), 50)
    assert live.done
    refuses("all 50 steps are made", live.act, 0, by=StreamError)


def test_a_mixture_rules_out_what_no_simulator_allows():
    world = ids.mdp("riverswim/mixture/5,discount=0.9")
    live = agent("ravi-ucb/mixture", world.problem, 50)
    with pytest.raises(StreamError, match="led to 4, which riverswim/mixture/5 rules out"):
        live.observe(0, live.act(0), 4, 0.0)


def test_a_cut_ends_the_epoch_and_is_counted():
    live = small(discount=0.999)
    assert not live.observe(0, live.act(0), 1, 0.5)
    assert live.observe(1, live.act(1), 2, 0.5, cut=True)
    live.act(0)
    assert (live.cuts, live.cycles, live.plans) == (1, [], 2)
    assert live.starts.tolist() == [2, 0, 0]


def test_an_interrupted_stream_begins_anew():
    live = small(discount=0.999)
    live.observe(0, live.act(0), 1, 0.5)
    live.act(1)
    live.interrupt()  # no answer came
    live.act(2)  # not 1: a new start
    live.end()
    assert live.visits.sum() == 1
    assert (live.cuts, live.plans) == (1, 2)
    live._acted = None
    live.interrupt()
    live.interrupt()
    assert live.cuts == 2


def test_what_was_earned_is_told_in_the_units_of_the_user():
    world = ids.mdp("garnet/3,2,2,discount=0.5")
    scaled = replace(world, units=(-10.0, 30.0))
    live = agent("uniform", scaled, 20_000, seed=2)
    world_of(live, scaled, 20_000)
    wanted = scaled.in_units(return_of(scaled, np.full((3, 2), 0.5)))
    assert live.earned.low < wanted < live.earned.high
    assert 0.3 < live.earned.high - live.earned.low < 3
    assert live.earned.sample == pytest.approx(5_000, rel=0.1)


@pytest.mark.parametrize("learner", ["ravi-ucb", "ucrl2", "mbie-eb", "uclk", "lsvi-ucb", "oppo", "q-learning", "psrl"])
def test_optimism_is_at_least_the_optimum_with_the_constants_of_the_theory(learner):
    world = ids.mdp("riverswim/mixture/5,discount=0.9")
    live = world_of(agent(learner, world.problem, T), world, T - 1)
    if learner == "psrl":  # a sample is no bound
        assert live.optimistic is None
    elif learner == "q-learning":
        assert 0 <= live.optimistic <= 1
    else:
        assert live.optimistic >= solve(world).optimum


def test_the_model_of_what_was_seen():
    world = ids.mdp("garnet/6,2,3,discount=0.8")
    live = world_of(agent("uniform", None, 60_000, states=6, actions=2, discount=0.8), world, 60_000)
    model = live.model()
    P, Q = dense(world), dense(model)
    assert np.abs(P - Q).max() < 0.03
    np.testing.assert_allclose(model.rewards, world.rewards, atol=1e-12)
    np.testing.assert_allclose(model.initial, world.initial, atol=0.02)
    fresh = agent("uniform", None, 10, states=6, actions=2, discount=0.8)
    world_of(fresh, world, 1)
    fresh.end()
    stays = fresh.model()
    unplayed = fresh.visits == 0
    assert unplayed.sum() == 11
    assert (dense(stays)[unplayed] == np.eye(6)[np.nonzero(unplayed)[0]]).all()
    assert (stays.rewards[unplayed] == 0).all()


def test_a_learner_of_ones_own_goes_on_if_it_is_given_again(tmp_path):
    world = ids.mdp("garnet/3,2,2,discount=0.5")

    def mine(problem, steps):
        return ids.learner("ravi-ucb,scale=0.02", problem, steps)

    live = world_of(agent(mine, None, 50, states=3, actions=2, discount=0.5), world, 20)
    live.save(tmp_path / "mine.agent")
    refuses("has no id: give the learner itself", Agent.load, tmp_path / "mine.agent")
    assert everything(Agent.load(tmp_path / "mine.agent", mine)) == everything(live)
    with pytest.raises(InputError, match="it is of ravi-ucb, not of psrl"):
        Agent.load(tmp_path / "mine.agent", lambda problem, steps: ids.learner("psrl", problem, steps))


def test_what_cannot_be_built_is_told():
    world = ids.mdp("garnet/3,2,2,discount=0.5")
    for given, message in [
        ({"states": 3, "actions": 2}, "discount missing"),
        ({"problem": world.problem, "states": 3}, "states is given twice"),
        ({"states": 3, "actions": 2, "discount": 0.5, "rewards": "known"}, "rewards='known' needs a problem"),
        ({"states": 3, "actions": 2, "discount": 0.5, "rewards": "changing"}, "which needs it"),
        ({"states": 3, "actions": 2, "discount": 0.5, "memory": 5}, "memory is for rewards='changing'"),
        ({"states": 3, "actions": 2, "discount": 0.5, "reward_range": (1, 0)}, "reward_range is 1 to 0: the least"),
        ({"states": 3, "actions": 2, "discount": 0.5, "reward_range": 5}, "reward_range has shape (), not (low, high)"),
        ({"problem": world.problem, "reward_range": (0, 2)}, "reward_range is (0, 2)"),
    ]:
        with pytest.raises(InputError, match=re.escape(message)):
            agent("ravi-ucb", given.pop("problem", None), 10, **given)
    refuses("kernel nobody knows", agent, "optimum", world.problem, 10)
    refuses("has no features", agent, "ravi-ucb/mixture", None, 10, states=3, actions=2, discount=0.5)
    refuses(
        "simulates rewards that are unknown, and on a stream they are unknown",
        agent,
        "ravi-ucb/unknown-rewards",
        None,
        10,
        states=3,
        actions=2,
        discount=0.5,
    )


@pytest.mark.parametrize("learner", ["politex", "mdp-exp2", "ravi-ucb", "q-learning"])
def test_looking_at_an_agent_or_keeping_it_changes_nothing(learner, tmp_path):
    """Where rewards are learned, a learner that reads them as it adds must not add when it is looked at."""
    world = ids.mdp("garnet/7,2,3,discount=0.7")

    def after(look):
        live, rng, x = agent(learner, None, 80, states=7, actions=2, discount=0.7), np.random.default_rng(0), 0
        while not live.done:
            live = look(live)
            a = live.act(x)
            y = int(rng.choice(world.successors[x, a], p=world.transitions[x, a]))
            x = y if not live.observe(x, a, y, world.rewards[x, a], cut=rng.random() < 0.05) else int(rng.integers(7))
        return everything(live)

    def seen(live):
        assert live.visits.sum() == live.time
        live.model()
        return live

    def kept(live):
        live.save(tmp_path / "one.agent")
        return Agent.load(tmp_path / "one.agent")

    alone = after(lambda live: live)
    assert after(seen) == alone
    assert after(kept) == alone


def test_a_table_that_cannot_grow_stays_as_it_was():
    """fopo takes few states only: what is told leaves a table that goes on."""
    live = agent("fopo", None, 50, states=4, actions=2, discount=0.9)
    a = live.act(0)
    refuses("fopo searches over policies", live.grow, 400, 2)
    live.observe(0, a, 3, 0.5)
    live.act(3)
    assert live.table.sizes[:2] == (4, 2)
    assert live.rewards.sums.weight.shape == (4, 2) == live.policy.shape


def test_rewards_may_be_revealed_in_any_units():
    """The ends of the range are 0 and 1 exactly, whatever rounding does to their difference."""
    world = ids.mdp("garnet/5,2,2")
    for low, high in [(-0.1, 0.3), (-4.9, -1.3), (-3.7, 4.1), (0.7, 2.1), (-0.7, 0.1), (-4.7, 3.3)]:
        live = agent("ravi-ucb", replace(world.problem, units=(low, high)), 10)
        live.reveal(np.where(np.arange(10).reshape(5, 2) % 2, low, high))
        assert (live.table.rewards == [1.0, 0.0]).all()


def test_the_model_of_nothing_is_a_model():
    assert agent("ravi-ucb", None, 10, states=3, actions=2, discount=0.9).model().initial.tolist() == [1 / 3] * 3


def test_a_file_with_arrays_of_other_shapes_is_refused(tmp_path):
    """Compiled code trusts them."""
    live = agent("ravi-ucb", None, 10, states=3, actions=2, discount=0.9)
    live.observe(0, live.act(0), 1, 0.5)
    live.save(tmp_path / "one.agent")
    header, arrays = archive.read(tmp_path / "one.agent", "agent")
    told = {key: value for key, value in header.items() if key not in archive.RESERVED}
    for name in ("rewards.weight", "starts", "over", "deadline", "moves"):
        for wrong in (np.zeros(0), np.zeros((2, 2)), np.zeros(arrays[name].shape, np.float32)):
            archive.write(tmp_path / "two.agent", "agent", told, arrays | {name: wrong})
            refuses("cannot go on from", Agent.load, tmp_path / "two.agent")
    for seed in (None, -1, 10**30, "x"):
        archive.write(tmp_path / "two.agent", "agent", told | {"seed": seed}, arrays)
        refuses("seed", Agent.load, tmp_path / "two.agent")
