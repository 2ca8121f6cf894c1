"""The compiled driver: the bits of the Python driver, whatever the threads, calls, pauses and stops."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.runtime import compiled as compiled_driver
from ravi.runtime.world import Tabular
from ravi.testing import spy
from tests.helpers import assert_same_bits, bits

LEARNER, WORLD = "ravi-ucb,beta=0.5,eta=0.2", ids.mdp("riverswim/3,discount=0.9")
OPTIONS = {"pad": True, "points": 7, "record": ["stream", "trajectory"], "progress": False}


@pytest.mark.parametrize("text", [LEARNER, "psrl", "ucrl2,scale=0.1", "q-learning", "uniform"])
@pytest.mark.parametrize("world", ["riverswim/3,discount=0.9", "garnet/18,2,3,discount=0.9"])
def test_both_drivers_and_all_numbers_of_threads_give_the_same_bits(text, world):
    python = ravi.run(text, world, 700, 5, measures=[spy([])], **OPTIONS)
    for threads in (1, 2, 5, 9):
        made = ravi.run(text, world, 700, 5, threads=threads, **OPTIONS)
        for row in range(5):
            assert_same_bits(bits(python, row), bits(made, row))


def test_a_pause_is_at_the_end_of_an_epoch_of_each_seed_and_a_resumed_run_has_the_same_bits():
    whole = ravi.run(LEARNER, WORLD, 5000, 3, threads=1, **OPTIONS)
    half = ravi.run(LEARNER, WORLD, 5000, 3, threads=2, pause=2000, **OPTIONS)
    for plays, starts in zip(half.plays, whole.T_k, strict=True):
        assert plays + 1 == min(t for t in starts if t > 2000)
    assert_same_bits(ravi.resume(half, LEARNER, WORLD, progress=False, threads=3).results, whole.results)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_run_between_two_calls(threads):
    T, begun = 200_000, []

    def interrupt(done, total):
        if not begun:
            begun.append(done)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(ravi.Stopped) as caught:
        ravi.run(LEARNER, WORLD, T, 4, threads=threads, **OPTIONS | {"progress": interrupt})
    half = caught.value.run
    assert 0 < half.plays.max() < T
    made = ravi.resume(half, LEARNER, WORLD, progress=False, threads=threads)
    assert_same_bits(made.results, ravi.run(LEARNER, WORLD, T, 4, threads=1, **OPTIONS).results)


def test_a_call_takes_about_the_seconds_that_it_should(monkeypatch):
    """By a clock that gives every epoch a hundredth of a second: calls grow to ten epochs, and stay so."""
    clock, asked = [0.0], []
    plain = compiled_driver.OnCpu.run

    def run(target, epochs):
        asked.append(epochs)
        clock[0] += epochs / 100
        plain(target, epochs)

    monkeypatch.setattr(compiled_driver.OnCpu, "run", run)
    monkeypatch.setattr(compiled_driver.time, "perf_counter", lambda: clock[0])
    ravi.run(LEARNER, WORLD, 3000, 1, measured=False, progress=False)
    assert asked[:3] == [2, 8, 10]
    assert set(asked[3:]) <= {9, 10}


def test_a_learner_whose_plan_was_replaced_plans_by_that():
    learner, calls = ids.learner(LEARNER, WORLD, 500), []
    other = learner._replace(plan=lambda s: (calls.append(1), learner.plan(s))[1])
    made = ravi.run(other, WORLD, 500, 2, **OPTIONS)
    assert len(calls) == max(map(len, made.T_k))
    assert_same_bits(made.results, ravi.run(learner, WORLD, 500, 2, **OPTIONS).results)


@pytest.mark.parametrize(
    ("text", "record", "options", "compiled"),
    [
        (LEARNER, [], {}, True),
        (LEARNER, ["trajectory", "stream"], {}, True),
        (LEARNER, [], {"measures": [spy([])]}, False),
        ("o-reps", [], {}, False),
        ("gamma-lscvi-ucb", [], {}, False),
    ],
)
def test_which_runs_are_compiled(text, record, options, compiled):
    world = ids.mdp("linear/5,2,3,discount=0.9") if "lscvi" in text else WORLD
    learner = ids.learner(text, world, 100)
    given = {"record": record, "points": 5, "pad": False, "keep_epochs": True, "measured": True}
    measures = [*Tabular(world).scores(learner, 100, given).measures, *options.get("measures", [])]
    assert compiled_driver.is_compiled(learner, measures) == compiled


@pytest.mark.parametrize("world", ["riverswim/6,discount=0.9", "garnet/18,2,3,discount=0.9"])
def test_what_a_run_compiles_serves_a_stream_and_the_other_way_round(world, tmp_path):
    """In a new process, with an empty cache: what the run calls may allocate, and what it returns is counted."""
    code = (
        "import ravi\n"
        f"mdp, text = ravi.mdp({world!r}), 'ravi-kl,plan=greedy'\n"
        "made = ravi.run(text, mdp, 300, 2, record=['stream'], progress=False)\n"
        "agent, stream = ravi.agent(text, mdp.problem, 300), made.results\n"
        "for x, a, y in zip(*(stream[f'stream_{name}'][0].tolist() for name in ('state', 'action', 'successor'))):\n"
        "    assert agent.act(x) == a\n"
        "    agent.observe(x, a, y, mdp.rewards[x, a])\n"
        "print(made.regret.sum())\n"
    )
    environment = {"RAVI_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
    made = ravi.run("ravi-kl,plan=greedy", world, 300, 2, progress=False)
    assert float(done.stdout) == np.float64(made.regret.sum())
