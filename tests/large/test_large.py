"""A run in a large world is the run of a table, as long as both can be had; beyond, it costs what was met."""

import tracemalloc

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.large import grid, procedural, snapshot
from ravi.large.memory import KINDS, MOVES, ROWS, SHADOWS, SLOTS, bucket_of, empty_memory, with_room
from tests.large.seen import run_large

MDPS = (
    "riverswim/6,discount=0.9",
    "garnet/60,3,4,discount=0.9",
    "deep-sea/6,discount=0.9",
    "garnet/300,2,5,discount=0.8",
    "garnet/40,3,4,discount=0.2",  # H = 1.25: r + CB is just below H for long
)
LEARNERS = (
    "ravi-ucb",  # all are settled
    "ravi-ucb,beta=30,eta=0.1",  # settled at first
    "ravi-ucb,beta=12,step_scale=30",
    "ravi-ucb,beta=1,eta=0.05",  # rows that move from the start
    "ravi-ucb,beta=0.1,eta=2,initial_value=0.7",
    "ravi-ucb+,scale=0.1,inner=3,centre=off,span=off,clip=off,step_scale=0.01",
    "ravi-ucb+,scale=0.02,inner=4,fresh=off,centre=off,span=off,clip=off,gamma=off,step_scale=0.003",
    "ravi-ucb+,scale=0.02,inner=3,pick=last,balance=off,centre=off,span=off,clip=off",
)


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_it_is_the_run_of_a_table_bit_for_bit(mdp, learner):
    T = 1500
    table = ravi.run(learner, mdp, T, [5, 8])
    for i, seed in enumerate((5, 8)):
        large = run_large(mdp, T, seed, learner=learner)
        np.testing.assert_array_equal(large.last.table(), table.batch.state.policy[i])
        np.testing.assert_array_equal(large.output.table(), table.results["output_policy"][i])
        np.testing.assert_array_equal(large.reward, table.results["reward"][i])
        assert large.earned == table.results["reward_total"][i]
        assert large.epochs == len(table.T_k[i])
        assert large.output_index == table.results["output_index"][i]
        assert large.run.settings["eta"] == table.settings["eta"]


@pytest.mark.parametrize("mdp", MDPS[1:])
@pytest.mark.parametrize("learner", LEARNERS[3:])
def test_the_closed_form_is_the_same_to_rounding(mdp, learner):
    """The walks agree (an action would differ with a chance of 1e-10), and policies to 1e-12."""
    T = 1500
    exact, closed = (run_large(mdp, T, 5, learner=learner, unvisited=way) for way in ("iterated", "closed"))
    assert closed.earned == exact.earned
    np.testing.assert_array_equal(closed.last.met, exact.last.met)
    for one, other in ((closed.last, exact.last), (closed.output, exact.output)):
        np.testing.assert_allclose(one.table(), other.table(), rtol=0, atol=1e-12)


def test_states_that_were_never_met_have_the_policy_of_their_own_recursion():
    """In a garnet of 2,000 states, 300 plays leave most of them unmet: k - 1 mirror steps with q = r + beta."""
    mdp = ids.mdp("garnet/2000,3,4,discount=0.9")
    for way in ("iterated", "closed"):
        large = run_large(mdp, 300, 1, learner="ravi-ucb,beta=1,eta=0.05", unvisited=way)
        unmet = np.setdiff1d(np.arange(2000), large.last.met)
        assert len(unmet) > 1000
        weight = np.exp(0.05 * (large.epochs - 1) * (mdp.rewards[unmet] + 1.0))
        weight /= weight.sum(-1, keepdims=True)
        np.testing.assert_allclose(large.last.rows(unmet), weight, atol=1e-12)


def ring_world(states, **changes):
    """A walk on a ring: forward or back, with a slip; the reward is at one place."""

    def reward(x, a):
        return 1.0 if x == 3 else 0.1 * a

    def successor(x, a, u):
        step = 1 if (a == 1) == (u < 0.9) else states - 1
        return (x + step) % states

    def initial(u):
        return int(4 * u)

    given = {"reward": reward, "successor": successor, "initial": initial} | changes
    return procedural(**given, states=states, actions=2, discount=0.9, name="ring")


def ring_mdp(states):
    x = np.arange(states)
    P = np.zeros((states, 2, states))
    for a, ahead in ((0, 0.1), (1, 0.9)):
        P[x, a, (x + 1) % states] += ahead
        P[x, a, (x - 1) % states] += 1 - ahead
    r = np.stack([np.where(x == 3, 1.0, 0.0), np.where(x == 3, 1.0, 0.1)], axis=1)
    nu0 = np.zeros(states)
    nu0[:4] = 0.25
    return ravi.MDP.from_dense(P, r, 0.9, nu0)


def test_functions_and_an_MDP_of_the_same_kernel_earn_alike():
    """The draws differ (a function makes of u what it likes), the laws do not: 30 seeds each, paired by resets. The
    means of what is earned in 2,000 plays differ by less than five standard errors: false alarm below 1e-5."""
    world, mdp = ring_world(12), ring_mdp(12)
    learner = "ravi-ucb,beta=1,eta=0.5"
    ours = np.array([run_large(world, 2000, seed, learner=learner).earned for seed in range(30)])
    table = ravi.run(learner, mdp, 2000, 30).results["reward_total"]
    error = (ours.var() / 30 + table.var() / 30) ** 0.5
    assert abs(ours.mean() - table.mean()) < 5 * error
    assert ours.mean() > 1.2 * ravi.run("uniform", mdp, 2000, 30).results["reward_total"].mean()


def test_memory_goes_with_what_was_met_not_with_X():
    small, huge = (run_large(ring_world(X), 5000, 0, learner="ravi-ucb,beta=1,eta=0.5") for X in (10**4, 10**12))
    assert huge.met == small.met
    assert huge.nbytes == small.nbytes
    tracemalloc.start()
    run_large(ring_world(10**12), 5000, 0, learner="ravi-ucb,beta=1,eta=0.5")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * huge.nbytes + 4e6  # arrays double, and a world is compiled


def test_memory_grows_and_keeps_what_it_holds():
    memory = empty_memory(2, room=4)
    memory.ids[:3] = [7, 10**15, 3]
    memory.V[:3] = [1.0, 2.0, 3.0]
    memory.used[SLOTS] = 3
    more = with_room(memory)
    assert len(more.ids) == 8 == len(more.V)
    assert len(more.owner) == len(memory.owner)  # what is not short stays
    for s, x in enumerate((7, 10**15, 3)):
        assert more.place[bucket_of(more.place, more.ids, x)] == s + 1
    assert more.place[bucket_of(more.place, more.ids, 8)] == 0
    np.testing.assert_array_equal(more.V[:3], memory.V[:3])
    assert set(KINDS) == {SLOTS, ROWS, MOVES, SHADOWS}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": lambda x, a: 1.5 if x == 2 else 0.0}, r"ring: reward\(2, 0\) is 1.5, not in \[0, 1\]"),
        ({"successor": lambda x, a, u: -1 - x}, r"ring: successor\(\d, \d, u\) gives -\d; states are 0 to 49"),
        ({"initial": lambda u: 50}, "ring: initial gives 50, but states are 0 to 49"),
    ],
)
def test_a_world_that_errs_is_told_where(changes, message):
    with pytest.raises(ravi.InputError, match=message):
        run_large(ring_world(50, **changes), 1000)


@pytest.mark.parametrize("gamma", [0.9, 0.95, 0.97])  # 1 / (1 - 0.9) is a little above 10 in floating point
def test_the_number_of_inner_steps_is_that_of_a_table_unless_given(gamma):
    mdp, learner = ravi.mdp(f"riverswim/6,discount={gamma}"), "ravi-ucb+,centre=off,span=off,clip=off,scale=0.01"
    large, table = run_large(mdp, 600, seed=3, learner=learner), ravi.run(learner, mdp, 600, [3])
    assert large.run.settings["inner"] == table.settings["inner"] == round(1 / (1 - gamma) + 0.49)
    assert (large.last.table() == table.state.policy[0]).all()


def test_an_id_names_a_large_world_and_several_seeds_are_each_as_alone(tmp_path):
    learner = "ravi-ucb,beta=3,eta=2"
    both = ravi.run(learner, "large/grid,1000", 2000, [1, 4], points=20)
    assert (both.world, both.mdp, both.complete) == ("large", "grid/1000", True)
    assert "states" in str(both)
    for row, seed in enumerate((1, 4)):
        alone = ravi.run(learner, grid(1000), 2000, [seed], points=20)
        for name, found in both.results.items():
            np.testing.assert_array_equal(found[row], alone.results[name][0], err_msg=name)
        one, other = snapshot(both, "large/grid,1000", row), snapshot(alone, grid(1000))
        np.testing.assert_array_equal(one.met, other.met)
        np.testing.assert_array_equal(one.policy, other.policy)
    table = ravi.run("ravi-ucb,beta=1,eta=0.05", "garnet/60,3,4", 300, [3])
    same = ravi.run("ravi-ucb,beta=1,eta=0.05", "large/garnet/60,3,4", 300, [3])
    np.testing.assert_array_equal(same.reward_curve, table.reward_curve)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run_large("riverswim/6", 9, learner="ucrl2"), "a large world has ravi-ucb and ravi-ucb"),
        (lambda: run_large("riverswim/6", 9, learner="ravi-ucb+,clip=off"), "needs centre=off,span=off"),
        (lambda: run_large("riverswim/6", 9, learner="ravi-ucb,eta=-1"), "eta"),
        (lambda: run_large("riverswim/6", 9, learner="ravi-ucb,span=2"), "span is given, and it is for the average"),
        (lambda: run_large("riverswim/6", 9, unvisited="guessed"), "unvisited"),
        (lambda: run_large("riverswim/6", 0), "steps"),
        (lambda: run_large("riverswim/6", 9, seed=-1), "seed"),
        (lambda: run_large("riverswim/6", 9).last.rows([0, 6]), "states are 0 to 5"),
        (lambda: run_large(ring_world(12), 9).last.return_of(), "needs its MDP"),
        (
            lambda: ravi.mdp("large/grid,50"),
            "large/grid,50 is no MDP, but a problem of another kind: a grid of any size",
        ),
        (lambda: ravi.mdp("large/riverswim/6"), "large/riverswim/6 is no MDP, but a problem of another kind"),
        (lambda: ravi.run("ravi-ucb", "large/nowhere", 10), "there is no MDP 'nowhere'"),
        (lambda: ravi.run("ravi-ucb", "large/grid,size=5", 10), "there is no option 'size'"),
        (lambda: ravi.run("ravi-ucb", "large/grid,5", 10), "width is 5"),
        (lambda: ravi.run("ravi-ucb", grid(9), 10, record=["stream"]), "record names 'stream': in a large world"),
        (lambda: ravi.run("ravi-ucb", grid(9), 10, pad=True), "pad is true: in a large world"),
        (lambda: ravi.run("ravi-ucb", grid(9), 10, device="gpu"), "ravi-ucb does not run there"),
        (
            lambda: ravi.run("ravi-ucb", grid(9), 10, measures=[ravi.candidates(ravi.mdp("riverswim/6"), 10, 0.1)]),
            "measures: grid/9 is a large world, walked by a loop that no measure sees",
        ),
        (
            lambda: ravi.run(ids.learner("ravi-ucb", ids.mdp("riverswim/6"), 10), grid(9), 10),
            "ravi-ucb is a learner of tables: in a large world it is named by its id",
        ),
        (
            lambda: snapshot(ravi.run("ravi-ucb", "riverswim/6", 10), "riverswim/6"),
            "made in a world that is tabular: its last_policy is a table",
        ),
    ],
)
def test_what_a_large_world_does_not_have_is_said(call, message):
    with pytest.raises(ravi.InputError, match=message):
        call()
