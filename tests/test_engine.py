"""The engine: stopping, resuming, padding, deadlines, threads and stretches leave every bit where it was."""

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.core import MDP, Until
from ravi.mdps import riverswim
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import python as python_driver
from ravi.runtime import tree
from ravi.runtime.api import resume, run
from ravi.runtime.result import Run
from ravi.runtime.walk import empty_path
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits

WORLD = riverswim(5, 0.9)
LEARNER = "ravi-ucb,scale=0.003,step_scale=30"


def test_a_pause_is_kept_to_the_play():
    """It stops as soon as every seed has made that many plays, not one epoch later."""
    starts = run(LEARNER, WORLD, 500, [3]).T_k[0]
    for k in (1, 4, 9):
        stopped = run(LEARNER, WORLD, 500, [3], pause=int(starts[k]) - 1)
        assert stopped.plays[0] == starts[k] - 1
        assert len(stopped.T_k[0]) == k


def test_resuming_leaves_the_stopped_run_alone():
    stopped = run(LEARNER, WORLD, 500, 2, pause=100)
    before = [bits(stopped, row) for row in range(2)]
    resume(stopped, LEARNER, WORLD)
    for row in range(2):
        assert_same_bits(before[row], bits(stopped, row))


@pytest.mark.parametrize("pause", [0, 190, 197, 199, 200, 10**6])
def test_a_run_stopped_near_its_end_goes_on_where_it_was(pause):
    """Some seeds have ended then, and others not."""
    whole = run(LEARNER, WORLD, 200, 8)
    again = resume(run(LEARNER, WORLD, 200, 8, pause=pause), LEARNER, WORLD)
    for row in range(8):
        assert_same_bits(bits(whole, row), bits(again, row))


def test_the_time_of_a_resumed_run_is_the_sum():
    stopped = run(LEARNER, WORLD, 20_000, 2, pause=10_000)
    assert resume(stopped, LEARNER, WORLD).seconds > stopped.seconds > 0


def test_resume_refuses_an_mdp_with_other_numbers_under_the_same_name():
    stopped = run(LEARNER, WORLD, 500, 1, pause=100)
    transitions = WORLD.transitions.copy()
    transitions[1, 1] = [0.1, 0.6, 0.3]
    other = MDP(
        rewards=WORLD.rewards, successors=WORLD.successors, transitions=transitions, initial=WORLD.initial,
        discount=WORLD.discount, name=WORLD.name,
    )  # fmt: skip
    with pytest.raises(ravi.InputError, match="digest"):
        resume(stopped, LEARNER, other)


def test_padding_is_nothing_where_a_reset_falls_on_T_and_opens_no_epoch():
    """Of 300 seeds about thirty have their reset at T itself."""
    T = 50
    plain = run(LEARNER, WORLD, T, 300, record=["stream"])
    padded = run(LEARNER, WORLD, T, 300, record=["stream"], pad=True)
    at_T = plain.results["stream_reset"][:, T - 1]
    assert at_T.sum() > 10
    assert (padded.padding[at_T] == 0).all()
    assert (padded.padding[~at_T] > 0).all()
    for one, other in zip(plain.T_k, padded.T_k, strict=True):
        assert one.tolist() == other.tolist()


def test_an_epoch_ends_at_the_learners_deadline():
    """A learner that plans every seven plays, whatever the resets."""
    base = ravi.learner(LEARNER, WORLD, 100)
    every = base._replace(until=lambda state, time: Until(reset=False, deadline=time + 7))
    made = run(every, WORLD, 100, 3)
    assert (made.plays == 100).all()
    for starts in made.T_k:
        assert starts.tolist() == list(range(1, 101, 7))


@pytest.mark.parametrize("learner", [LEARNER, "uniform", "ravi-ucb/mixture,scale=0.02,step_scale=30"])
def test_the_length_of_a_stretch_and_the_number_of_threads_change_nothing(learner, monkeypatch):
    mdp = "riverswim/mixture/5,discount=0.95"
    options = {"record": ["stream", "trajectory"], "pad": True}
    plain = run(learner, mdp, 300, 6, **options)
    for driver in (compiled_driver, python_driver):
        monkeypatch.setattr(driver, "empty_path", lambda n, length: empty_path(n, 3))
    for threads in (1, 4):
        short = run(learner, mdp, 300, 6, threads=threads, **options)
        for row in range(6):
            assert_same_bits(bits(plain, row), bits(short, row))


def test_ctrl_c_in_a_run_carries_what_was_computed():
    import signal

    plays, before = [], signal.getsignal(signal.SIGINT)

    def interrupt(done, total):
        plays.append(done)
        if len(plays) == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(ravi.Stopped) as stop:
        run(LEARNER, WORLD, 3_000_000, 2, progress=interrupt, keep_epochs=False)
    stopped = stop.value.run
    assert isinstance(stop.value, KeyboardInterrupt)
    assert 0 < stopped.plays.min() < 3_000_000
    assert not stopped.complete
    assert signal.getsignal(signal.SIGINT) is before


def test_trees_are_taken_joined_and_filled_back():
    made = run(LEARNER, WORLD, 100, 5)
    rows = [np.array([0, 1]), np.array([2, 3, 4])]
    again = tree.join([tree.take(made.batch, part) for part in rows])
    stored = {name: leaf if isinstance(leaf, np.ndarray) else leaf.table for name, leaf in tree.leaves(made.batch)}
    filled = tree.fill(made.batch, stored)
    for other in (again, filled):
        for (name, one), (_, two) in zip(tree.leaves(made.batch), tree.leaves(other), strict=True):
            one, two = (leaf if isinstance(leaf, np.ndarray) else leaf.table for leaf in (one, two))
            assert one.tobytes() == two.tobytes(), name


def test_settings_are_plain_and_an_infinite_one_is_a_text(tmp_path):
    learner = ids.learner(LEARNER, WORLD, 50)
    odd = {"a": np.int64(3), "b": np.bool_(True), "c": -np.inf, "d": np.float64(np.inf), "e": (np.float32(0.5), "x")}
    plain = {"a": 3, "b": True, "c": "-inf", "d": "inf", "e": [0.5, "x"]}
    stopped = run(learner._replace(settings=odd), WORLD, 50, 1, pause=10)
    assert repr(stopped.settings) == repr(plain)
    stopped.save(tmp_path / "half.run")
    assert resume(Run.load(tmp_path / "half.run"), learner._replace(settings=odd), WORLD).complete
    with pytest.raises(InputError, match="settings"):
        resume(Run.load(tmp_path / "half.run"), learner._replace(settings=odd | {"a": 4}), WORLD)
    for wrong in (np.nan, np.float32(np.nan), [1.0, np.nan]):
        with pytest.raises(InputError, match="ravi-ucb has the setting eta = nan"):
            run(learner._replace(settings={"eta": wrong}), WORLD, 50, 1)


def test_the_yardsticks_check_the_number_of_steps():
    for name in ("uniform", "optimum"):
        for wrong in (0, -1, 1.5, "word", 2**31, float("nan"), None):
            with pytest.raises(InputError, match=r"steps \(T\)"):
                ids.learner(name, WORLD, wrong)
