"""A run in a large world that was stopped anywhere, kept in a file and taken up again is the run that never stopped."""

import io
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.large import procedural, snapshot
from ravi.runtime import compiled, tree
from tests.large.seen import Seen, run_large, world_of
from tests.large.test_large import ring_world

T = 1500
RUNS = (
    ("garnet/60,3,4,discount=0.9", "ravi-ucb,beta=30,eta=0.1", "iterated"),  # settled at first
    ("garnet/300,2,5,discount=0.8", "ravi-ucb,beta=1,eta=0.05", "iterated"),  # rows that move, states met late
    ("garnet/300,2,5,discount=0.8", "ravi-ucb,beta=1,eta=0.05", "closed"),
    ("riverswim/6,discount=0.9", "ravi-ucb+,scale=0.1,inner=3,centre=off,span=off,clip=off", "iterated"),
    ("deep-sea/6,discount=0.9", "ravi-ucb+,scale=0.02,inner=4,fresh=off,centre=off,span=off,clip=off", "iterated"),
)


def saved(run):
    place = io.BytesIO()
    run.save(place)
    place.seek(0)
    return place


def stored(seen):
    """Through a file."""
    return ravi.Run.load(saved(getattr(seen, "run", seen)))


def resume(stopped, world, learner, **options):
    """A run, also one that was seen, goes on."""
    given = world_of(world) if isinstance(world, (str, ravi.MDP)) else world
    return Seen(ravi.resume(getattr(stopped, "run", stopped), learner, given, **options), given)


def assert_same(one, other):
    held, wanted = (tree.stored(each.run.batch) for each in (one, other))
    assert held.keys() == wanted.keys()
    for name, array in held.items():
        assert array.dtype == wanted[name].dtype
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)
    assert (one.earned, one.epochs, one.nbytes) == (other.earned, other.epochs, other.nbytes)
    assert (one.run.learner, one.run.settings, one.run.options) == (
        other.run.learner, other.run.settings, other.run.options,
    )  # fmt: skip
    np.testing.assert_array_equal(one.run.times, other.run.times)
    np.testing.assert_array_equal(one.reward, other.reward)
    for a, b in ((one.last, other.last), (one.output, other.output)):
        assert (a.epoch, a.mirror_steps) == (b.epoch, b.mirror_steps)
        np.testing.assert_array_equal(a.table(), b.table())


@pytest.mark.parametrize(("mdp", "learner", "unvisited"), RUNS)
def test_a_resumed_run_equals_an_uninterrupted_one(mdp, learner, unvisited):
    whole = run_large(mdp, T, 5, learner=learner, unvisited=unvisited)
    I = whole.output_index
    for pause in (0, 1, 7, I - 1, I, I + 1, 900, T - 1):
        part = run_large(mdp, T, 5, learner=learner, unvisited=unvisited, pause=pause)
        assert pause <= part.plays <= T
        world = world_of(mdp, unvisited)
        assert_same(resume(part, world, learner), whole)
        assert_same(resume(stored(part), world, learner), whole)


def test_how_many_epochs_a_call_has_changes_no_bit(monkeypatch):
    whole = run_large(*RUNS[1][:1], T, 5, learner=RUNS[1][1])
    for epochs in (1, 7):
        monkeypatch.setattr(compiled, "MOST", epochs)
        assert_same(run_large(*RUNS[1][:1], T, 5, learner=RUNS[1][1]), whole)


def test_worlds_of_functions_are_given_again():
    learner = "ravi-ucb,beta=1,eta=0.5"
    whole = run_large(ring_world(10**9), 2000, 3, learner=learner)
    read = stored(run_large(ring_world(10**9), 2000, 3, learner=learner, pause=700))
    done = resume(read, ring_world(10**9), learner)
    assert done.earned == whole.earned
    np.testing.assert_array_equal(done.reward, whole.reward)
    np.testing.assert_array_equal(done.output.policy, whole.output.policy)
    np.testing.assert_array_equal(done.last.rows([0, 5, 10**8]), whole.last.rows([0, 5, 10**8]))
    seen = snapshot(read, ring_world(10**9))
    assert seen.rows(seen.met).shape == (read.results["met"][0], 2)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (lambda: ring_world(10**8), "made with an MDP of digest X=1000000000, A=2, not X=100000000, A=2"),
        (lambda: replace(ring_world(10**9), discount=0.8), "made with discount 0.9, not 0.8"),
        (lambda: ring_world(10**9, reward=lambda x, a: 0.2 * a), r"whose reward\(\d+, \d\) is .*; that of this one"),
        (lambda: ids.mdp("riverswim/6,discount=0.9"), "made with MDP ring, not riverswim"),
    ],
)
def test_another_world_is_refused(world, message):
    read = stored(run_large(ring_world(10**9), 500, 3, learner="ravi-ucb,beta=1,eta=0.5", pause=100))
    with pytest.raises(ravi.InputError, match=message):
        resume(read, world(), "ravi-ucb,beta=1,eta=0.5")


@pytest.mark.parametrize("changed", ["successor", "initial"])
def test_functions_that_move_otherwise_are_refused_though_their_rewards_are_the_same(changed):
    def world(slip, start):
        return procedural(
            lambda x, a: 0.5 * a,
            lambda x, a, u: (x + a + (1 if u < slip else 0)) % 1000,
            lambda u: start,
            states=1000, actions=2, discount=0.9, name="steps",
        )  # fmt: skip

    part = run_large(world(0.5, 0), 300, 3, learner="ravi-ucb,beta=1,eta=0.5", pause=100)
    other = world(0.51, 0) if changed == "successor" else world(0.5, 500)
    for stopped in (part, stored(part), stored(stored(part))):
        assert resume(stopped, world(0.5, 0), "ravi-ucb,beta=1,eta=0.5").complete
        with pytest.raises(ravi.InputError, match="made with a steps of other successors or another initial"):
            resume(stopped, other, "ravi-ucb,beta=1,eta=0.5")


def test_constants_that_are_no_longer_those_of_the_id_are_refused():
    """As after a change of the package: to go on with others would be another learner."""
    part = run_large("riverswim/4", 50, pause=10)
    with pytest.raises(ravi.InputError, match=r"made with settings .*'eta': 7"):
        resume(replace(part.run, settings=part.run.settings | {"eta": 7.0}), "riverswim/4", "ravi-ucb")
    with pytest.raises(ravi.InputError, match="made with learner ravi-ucb, not ravi-ucb,beta=2"):
        resume(part, "riverswim/4", "ravi-ucb,beta=2")
    closed = world_of("riverswim/4", "closed")
    with pytest.raises(ravi.InputError, match=r"made with settings .*, not .*'unvisited': 'closed'"):
        resume(part, closed, "ravi-ucb")


def broken(part, name, change):
    """The run of a file one of whose arrays is another."""
    held = dict(stored(part).batch)
    held[name] = change(held[name])
    return replace(part.run, batch=held)


def test_what_is_not_a_run_in_a_large_world_is_refused():
    tabular = ravi.run("ravi-ucb", "riverswim/4", 50, pause=10)
    with pytest.raises(ravi.InputError, match="made with settings"):
        resume(stored(tabular), "riverswim/4", "ravi-ucb")
    part = run_large("riverswim/4", 50, pause=10)
    for name, change in (
        ("state.memory.V", lambda a: a[:-1]),
        ("state.memory.V.lengths", lambda a: a - 1),
        ("state.memory.V.lengths", lambda a: -a),
        ("state.memory.visits", lambda a: a.astype(float)),
        ("state.memory.used", lambda a: a + 10**6),
        ("records.0.curve", lambda a: a[:, :-1]),
        ("records.0.output.epoch", lambda a: a[:0]),
        ("records.0.output.met", lambda a: np.zeros(99, np.int64)),
    ):
        said = r"rooms of ids do not agree" if name.endswith("used") else name.removesuffix(".lengths").split(".")[-1]
        with pytest.raises(ravi.InputError, match=said):
            resume(broken(part, name, change), "riverswim/4", "ravi-ucb")


@pytest.mark.parametrize(
    "name",
    ["place", "ids", "visits", "first", "row", "owner", "to", "after", "shadow_place"],
)
def test_places_that_are_not_there_are_refused_before_compiled_code_goes_to_them(name):
    """Else it would read beyond its arrays, or look for ever."""
    part = run_large(RUNS[1][0], 500, 5, learner=RUNS[1][1], pause=300)
    for wrong in (-5, 10**6):

        def put(array, wrong=wrong):
            array = array.copy()
            array[0] = wrong
            return array

        if (name, wrong) != ("visits", 10**6):
            with pytest.raises(ravi.InputError, match=r"batch\.state\.memory"):
                resume(broken(part, f"state.memory.{name}", put), *RUNS[1][:2])


def test_a_list_of_moves_that_is_a_circle_is_refused():
    part = run_large(RUNS[1][0], 500, 5, learner=RUNS[1][1], pause=300)
    circle = broken(part, "state.memory.after", lambda a: np.concatenate([[0], a[1:]]).astype(a.dtype))
    with pytest.raises(ravi.InputError, match=r"state\.memory\.after\[0\] is 0, not a move to a later successor"):
        resume(circle, *RUNS[1][:2])


def test_the_output_policy_of_a_run_that_has_not_come_to_it_is_not_there():
    part = run_large("riverswim/4", 500, pause=0)
    with pytest.raises(ravi.InputError, match=r"is that of play .*, and the run was stopped after 0"):
        part.output  # noqa: B018
    assert np.isnan(part.reward).all()
    assert part.last.table().shape == (4, 2)


def test_ctrl_c_carries_what_was_played(monkeypatch):
    monkeypatch.setattr(compiled, "MOST", 8)  # epochs of a call
    monkeypatch.setattr(compiled, "CALL", 0)  # seconds between which progress is said
    mdp, learner = RUNS[1][:2]
    calls = []

    def tell(done, total):
        calls.append((done, total))
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(ravi.Stopped) as caught:
        run_large(mdp, T, 5, learner=learner, progress=tell)
    part = Seen(caught.value.run, world_of(mdp))
    assert 0 < part.plays < T
    assert calls[3:] == 2 * [(part.plays, T)]  # the signal, and the end
    assert_same(resume(part, mdp, learner), run_large(mdp, T, 5, learner=learner))
