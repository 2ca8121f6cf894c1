"""A run in a large world that was stopped anywhere, kept in a file and taken up again is the run that never stopped."""

import io
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

import ravi
from ravi import files, ids, tree
from ravi.large import Large, Stopped, procedural, resume, run_large, running
from tests.large.test_large import ring_world

T = 1500
RUNS = (
    ("garnet/60,3,4,discount=0.9", "ravi-ucb,beta=30,eta=0.1", "iterated"),  # settled at first
    ("garnet/300,2,5,discount=0.8", "ravi-ucb,beta=1,eta=0.05", "iterated"),  # rows that move, states met late
    ("garnet/300,2,5,discount=0.8", "ravi-ucb,beta=1,eta=0.05", "closed"),
    ("riverswim/6,discount=0.9", "ravi-ucb+,scale=0.1,inner=3,centre=off,span=off,clip=off", "iterated"),
    ("deep-sea/6,discount=0.9", "ravi-ucb+,scale=0.02,inner=4,fresh=off,centre=off,span=off,clip=off", "iterated"),
)


def stored(run, world=None):
    """Through a file."""
    place = io.BytesIO()
    run.save(place)
    place.seek(0)
    return Large.load(place, world)


def assert_same(one, other):
    for (name, a), (_, b) in zip(tree.leaves(one.batch), tree.leaves(other.batch), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert (one.earned, one.epochs, one.nbytes) == (other.earned, other.epochs, other.nbytes)
    assert (one.learner, one.settings, one.options) == (other.learner, other.settings, other.options)
    np.testing.assert_array_equal(one.times, other.times)
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
        assert_same(resume(part), whole)
        assert_same(resume(stored(part), mdp), whole)
        assert_same(resume(stored(part, mdp)), whole)


def test_a_run_that_stops_after_every_epoch_is_the_same():
    world = ids.mdp(RUNS[1][0])
    part = run_large(world, 300, 8, learner=RUNS[1][1], pause=0)
    stops = 0
    while not part.complete:
        part = resume(stored(part), world, pause=part.plays + 1)
        stops += 1
    assert stops == part.epochs > 30
    assert_same(part, run_large(world, 300, 8, learner=RUNS[1][1]))


def test_where_a_slice_ends_changes_no_bit(monkeypatch):
    whole = run_large(*RUNS[1][:1], T, 5, learner=RUNS[1][1])
    for plays in (1, 37, 10**6):
        monkeypatch.setattr(running, "SLICE", plays)
        assert_same(run_large(*RUNS[1][:1], T, 5, learner=RUNS[1][1]), whole)


def test_what_is_resumed_is_left_as_it_was():
    part = run_large(RUNS[1][0], T, 5, learner=RUNS[1][1], pause=400)
    before = tree.copy(part.batch)
    resume(part)
    for (name, a), (_, b) in zip(tree.leaves(part.batch), tree.leaves(before), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert part.plays < T
    assert not part.complete
    assert "stopped after" in repr(part)


def test_a_file_has_all_that_a_run_gives(tmp_path):
    run = run_large(RUNS[0][0], T, 5, learner=RUNS[0][1])
    run.save(tmp_path / "run.ravi")
    again = Large.load(tmp_path / "run.ravi", RUNS[0][0])
    assert_same(again, run)
    assert again.complete
    assert again.last.return_of() == run.last.return_of()
    first, second = io.BytesIO(), io.BytesIO()
    run.save(first)
    again.save(second)
    assert first.getvalue() == second.getvalue()


def test_worlds_of_functions_are_given_again():
    learner = "ravi-ucb,beta=1,eta=0.5"
    whole = run_large(ring_world(10**9), 2000, 3, learner=learner)
    read = stored(run_large(ring_world(10**9), 2000, 3, learner=learner, pause=700))
    done = resume(read, ring_world(10**9))
    assert done.earned == whole.earned
    np.testing.assert_array_equal(done.reward, whole.reward)
    np.testing.assert_array_equal(done.output.policy, whole.output.policy)
    np.testing.assert_array_equal(done.last.rows([0, 5, 10**8]), whole.last.rows([0, 5, 10**8]))
    np.testing.assert_array_equal(read.last.rows(read.last.met).shape, (read.met, 2))  # of states that were met
    with pytest.raises(ravi.InputError, match="state 100000000 was never met: its policy needs the world ring"):
        read.last.rows([10**8])
    with pytest.raises(ravi.InputError, match="needs its world, ring, again"):
        resume(read)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (lambda: ring_world(10**8), "made with X 1000000000, not 100000000"),
        (lambda: replace(ring_world(10**9), discount=0.8), "made with discount 0.9, not 0.8"),
        (lambda: ring_world(10**9, reward=lambda x, a: 0.2 * a), r"whose reward\(\d+, \d\) is .*; that of this one"),
        (lambda: ids.mdp("riverswim/6,discount=0.9"), "made with world ring, not riverswim"),
    ],
)
def test_another_world_is_refused(world, message):
    read = stored(run_large(ring_world(10**9), 500, 3, learner="ravi-ucb,beta=1,eta=0.5", pause=100))
    with pytest.raises(ravi.InputError, match=message):
        resume(read, world())


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
        assert resume(stopped, world(0.5, 0)).complete
        with pytest.raises(ravi.InputError, match="made with a steps of other successors or another initial"):
            resume(stopped, other)


def test_constants_that_are_no_longer_those_of_the_id_are_refused():
    """As after a change of the package: to go on with others would be another learner."""
    part = run_large("riverswim/4", 50, pause=10)
    with pytest.raises(ravi.InputError, match=r"made with settings .*'eta': 7"):
        stored(replace(part, settings=part.settings | {"eta": 7.0}))


def test_an_mdp_with_other_numbers_is_refused_by_its_digest():
    mdp = ids.mdp("garnet/60,3,4,discount=0.9")
    other = replace(mdp, rewards=mdp.rewards[::-1].copy())
    part = run_large(mdp, 500, 3, pause=100)
    with pytest.raises(ravi.InputError, match=f"made with an MDP of digest {mdp.digest}, not {other.digest}"):
        resume(stored(part), other)
    with pytest.raises(ravi.InputError, match="made with an MDP of digest"):
        Large.load(saved(part), other)


def saved(run):
    place = io.BytesIO()
    run.save(place)
    place.seek(0)
    return place


def test_what_is_not_a_run_in_a_large_world_is_refused(tmp_path):
    ravi.run("ravi-ucb", "riverswim/4", 50).save(tmp_path / "table.ravi")
    with pytest.raises(ravi.InputError, match="holds 'run', not 'large'"):
        Large.load(tmp_path / "table.ravi")
    part = run_large("riverswim/4", 50, pause=10)
    memory = part.batch.memory
    for wrong in (
        {"memory": memory._replace(V=memory.V[:-1])},
        {"memory": memory._replace(visits=memory.visits.astype(float))},
        {"memory": memory._replace(used=memory.used + 10**6)},
        {"curve": part.batch.curve[:-1]},
        {"output": part.batch.output._replace(epoch=part.batch.output.epoch[:0])},
        {"output": part.batch.output._replace(met=np.zeros(99, np.int64))},
    ):
        with pytest.raises(ravi.InputError, match="damaged"):
            stored(replace(part, batch=part.batch._replace(**wrong)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("world", None), ("world", {}), ("steps", "x"), ("steps", -1), ("seed", -1), ("seed", "x"), ("learner", 5),
        ("options", None), ("options", {}), ("options", {"points": -5, "unvisited": "iterated"}),
        ("options", {"points": 500, "unvisited": "x"}), ("settings", None),
        ("seconds", "x"),
    ],
)  # fmt: skip
def test_a_header_that_is_not_of_a_run_is_refused(name, value):
    header, arrays = files.read(saved(run_large("riverswim/4", 50, pause=10)), "large")
    place = io.BytesIO()
    files.write(place, "large", {k: v for k, v in header.items() if k not in files.RESERVED} | {name: value}, arrays)
    place.seek(0)
    with pytest.raises(ravi.InputError):
        Large.load(place)


@pytest.mark.parametrize(
    "name",
    ["place", "ids", "visits", "first", "row", "owner", "to", "after", "shadow_place"],
)
def test_places_that_are_not_there_are_refused_before_compiled_code_goes_to_them(name):
    """Else it would read beyond its arrays, or look for ever."""
    part = run_large(RUNS[1][0], 500, 5, learner=RUNS[1][1], pause=300)
    array = getattr(part.batch.memory, name).copy()
    for wrong in (-5, 10**6):
        array[0] = wrong
        if (name, wrong) != ("visits", 10**6):
            memory = part.batch.memory._replace(**{name: array})
            with pytest.raises(ravi.InputError, match="damaged"):
                stored(replace(part, batch=part.batch._replace(memory=memory)))


def test_a_list_of_moves_that_is_a_circle_is_refused():
    part = run_large(RUNS[1][0], 500, 5, learner=RUNS[1][1], pause=300)
    after = part.batch.memory.after.copy()
    after[0] = 0
    with pytest.raises(ravi.InputError, match="damaged: memory: it is not so that moves ascend"):
        stored(replace(part, batch=part.batch._replace(memory=part.batch.memory._replace(after=after))))


def test_what_is_of_another_kind_is_refused():
    with pytest.raises(ravi.InputError, match="a Run is not a run of run_large"):
        resume(ravi.run("ravi-ucb", "riverswim/4", 50, pause=10))
    with pytest.raises(ravi.InputError, match="the world is 5"):
        run_large(5, 10)


def test_the_output_policy_of_a_run_that_has_not_come_to_it_is_not_there():
    part = run_large("riverswim/4", 500, pause=0)
    with pytest.raises(ravi.InputError, match=r"is that of play .*, and the run was stopped after 0"):
        part.output  # noqa: B018
    assert np.isnan(part.reward).all()
    assert part.last.table().shape == (4, 2)


def test_ctrl_c_carries_what_was_played(monkeypatch):
    monkeypatch.setattr(running, "SLICE", 50)
    mdp, learner = RUNS[1][:2]
    calls = []

    def tell(done, total):
        calls.append((done, total))
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped) as caught:
        run_large(mdp, T, 5, learner=learner, progress=tell)
    part = caught.value.run
    assert isinstance(caught.value, ravi.Stopped)
    assert 0 < part.plays < T
    assert len(calls) == 4
    assert calls[-1] == (part.plays, T)
    assert_same(resume(part), run_large(mdp, T, 5, learner=learner))


def test_a_caller_that_brings_its_own_stop_gets_the_run():
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 1

    part = run_large(RUNS[1][0], 10**6, 5, learner=RUNS[1][1], stop=stop)
    assert 0 < part.plays < 10**6


def test_threads_may_run_too():
    found = []
    thread = threading.Thread(target=lambda: found.append(run_large("riverswim/4", 200, 1)))
    thread.start()
    thread.join()
    assert found[0].earned == run_large("riverswim/4", 200, 1).earned
