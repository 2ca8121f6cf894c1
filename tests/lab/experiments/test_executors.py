"""Worker processes: the same bits as in the driver, whatever dies, prints or is interrupted; and nothing is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from ravi.lab.experiments import executors
from ravi.lab.experiments.executors import Lost, Processes
from ravi.lab.experiments.work import Outcome, work
from ravi.validation import InputError
from tests.lab.experiments.tasks import LEARNERS, bits, drive, gone, task, through, wait_for, write_learners

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", autouse=True)
def mine(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        write_learners(tmp_path_factory.mktemp("learners"), patch)
        patch.setenv("PYTHONWARNINGS", "error")  # for workers too
        yield


@pytest.fixture(scope="module")
def pool(mine):
    """For tests that leave their workers alive."""
    with Processes(2) as shared:
        yield shared


def pids(pool):
    return [worker.pid.result(60) for worker in pool._team]


def fds():
    return sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []


def begin(pool, place):
    """Have the workers of a pool begin long tasks, one each."""
    for number in range(pool.workers):
        pool.submit(number, task(f"misbehaving:slow,seconds=0.02,place={place}", seeds=(0,), steps=1_000))
    while len(set(place.read_text().split()) if place.exists() else ()) < pool.workers:
        assert pool.collect(0.05) == []


# The same bits.


def test_workers_give_the_bits_that_the_driver_would(pool):
    tasks = [
        task(seeds=(seed, seed + 1), mdp=mdp)
        for seed in (0, 5)
        for mdp in ("riverswim/5,discount=0.9", "riverswim/6,discount=0.95")
    ]
    tasks += [task("ucrl2"), task("psrl", seeds=range(5))]
    for one, outcome in zip(tasks, drive(pool, tasks), strict=True):
        assert bits(outcome.rows) == bits(work(one).rows)


def test_a_task_in_tiny_slices_ends_with_the_same_bits(pool):
    one = task(steps=300, slice=0.0)
    rows, slices = through(pool, one)
    assert slices > 10
    assert bits(rows) == bits(work(task(steps=300)).rows)


def test_workers_compute_with_one_thread(pool):
    (outcome,) = drive(pool, [task("misbehaving:threads", seeds=(0,))])
    assert bits(outcome.rows)[0]["error"] == "ArithmeticError: 1 1 1 1"


# What learners do.


def test_what_a_learner_prints_does_no_harm(pool):
    alive = pids(pool)
    one = task("misbehaving:prints", seeds=(0,))
    outcomes = drive(pool, [one] * 4)  # about half a MB each, on every way out
    assert len({str(bits(outcome.rows)) for outcome in outcomes}) == 1
    assert bits(outcomes[0].rows)[0]["failure"] is None
    assert pids(pool) == alive


@pytest.mark.parametrize(
    ("learner", "why"), [("leaves,status=3", "exited with status 3"), ("crashes", "was killed by SIGSEGV\n")]
)
def test_a_learner_that_takes_its_worker_along_is_lost_alone(pool, learner, why):
    good, bad = task(), task(f"misbehaving:{learner}")
    outcomes = drive(pool, [good, bad, good, good])
    assert isinstance(outcomes[1], Lost)
    assert outcomes[1].started
    assert why in outcomes[1].why
    for outcome in (outcomes[0], *outcomes[2:], *drive(pool, [good, good])):
        assert bits(outcome.rows) == bits(work(good).rows)


def test_a_segfault_says_where_it_was_after_what_the_learner_printed_and_no_other():
    with Processes(1) as pool:
        (pid,) = pids(pool)
        _, lost = drive(pool, [task("misbehaving:prints"), task("misbehaving:crashes")])
    assert lost.why.startswith(f"worker {pid} was killed by SIGSEGV\nFatal Python error: Segmentation fault")
    assert "misbehaving.py" in lost.why


# Who dies.


def test_a_killed_worker_is_replaced_and_the_others_go_on(tmp_path):
    with Processes(2) as pool:
        begin(pool, tmp_path / "marks")
        before = pids(pool)
        os.kill(before[0], signal.SIGKILL)
        back = {}
        while len(back) < 2:
            back |= dict(pool.collect(1.0))
        assert back[0] == Lost(True, f"worker {before[0]} was killed by SIGKILL")
        assert isinstance(back[1], Outcome)
        assert pids(pool)[1] == before[1]
        assert pids(pool)[0] not in before
        assert pool.free() == 2
        assert isinstance(drive(pool, [task()])[0], Outcome)


def test_a_worker_that_dies_while_it_has_nothing_to_do_loses_nothing():
    with Processes(1) as pool:
        os.kill(pids(pool)[0], signal.SIGKILL)
        (outcome,) = drive(pool, [task()])
        assert isinstance(outcome, Outcome) or outcome.why.endswith("SIGKILL")  # it was given away just before


def test_nothing_is_left_when_a_pool_is_closed(tmp_path):
    before = fds()
    with Processes(2) as pool:
        pool.submit(0, task(f"misbehaving:stuck,place={tmp_path / 'pids'}"))
        left = wait_for(tmp_path / "pids", 2) + pids(pool)
    assert all(gone(pid) for pid in left)
    assert fds() == before
    pool.close()  # again


def insist(pool):
    with pool:
        while True:
            assert drive(pool, [task()])[0].started is False


def test_workers_that_cannot_start_are_an_error_that_says_why(monkeypatch):
    monkeypatch.setattr(executors, "PAUSE", 0.0)
    monkeypatch.setattr(executors, "_begin", executors._end)  # which takes no such arguments
    before = fds()
    with pytest.raises(InputError, match=r"workers do not start: the last worker \d+ exited with status \d"):
        insist(Processes(2))
    assert fds() == before


def test_a_python_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(executors, "PAUSE", 0.0)
    context, before = multiprocessing.get_context("spawn"), fds()
    context.set_executable("/nowhere/python")
    try:
        with pytest.raises(InputError, match="workers do not start"):
            insist(Processes(1))
    finally:
        context.set_executable(sys.executable)
    assert fds() == before


@pytest.mark.parametrize("workers", [0, -1, 1.5, "many"])
def test_a_pool_has_a_whole_number_of_workers(workers):
    with pytest.raises(InputError, match="workers"):
        Processes(workers)


# Interrupts.


def test_an_interrupted_task_goes_on_with_the_same_bits(tmp_path):
    one = task(f"misbehaving:slow,seconds=0.005,place={tmp_path / 'marks'}", seeds=(0, 1))
    with Processes(1) as pool:
        pool.submit(0, one)
        wait_for(tmp_path / "marks", 10)
        pool.interrupt()
        assert pool.free() == 0
        with pytest.raises(InputError, match="no worker is free"):
            pool.submit(2, one)
        while not (back := dict(pool.collect(30))):
            pass
    assert back[0].rows is None
    again = work(one._replace(checkpoints=back[0].checkpoints))
    assert bits(again.rows) == bits(work(one).rows)


def test_an_interrupt_while_workers_start_brings_everything_back():
    with Processes(2) as pool:
        for number in range(2):
            pool.submit(number, task(steps=10**7, checkpoints={"a": b"as given"}))
        pool.interrupt()
        back = {}
        while len(back) < 2:
            back |= dict(pool.collect(30))
    assert all((outcome.rows, outcome.checkpoints) == (None, {"a": b"as given"}) for outcome in back.values())


def test_an_interrupt_that_is_not_the_drivers_is_not_heard(pool):
    for pid in pids(pool):
        os.kill(pid, signal.SIGINT)
    before = pids(pool)
    assert all(outcome.rows is not None for outcome in drive(pool, [task(steps=10)] * 4))
    assert pids(pool) == before


def test_the_interrupt_of_a_terminal_does_not_reach_workers(pool):
    drive(pool, [task()])
    assert all(os.getpgid(pid) == pid != os.getpgid(0) for pid in pids(pool))


# Drivers.

DRIVER = """
import sys
sys.path[:0] = {places}
from ravi.lab.experiments.executors import Processes
from tests.lab.experiments.tasks import bits, drive, task
with Processes(1) as pool:
    outcomes = drive(pool, [task(), {other}])
print(bits(outcomes[0].rows)[0]["digest"])
"""


def driver(folder, other="task('misbehaving:prints')"):
    (folder / "misbehaving.py").write_text(LEARNERS)
    return textwrap.dedent(DRIVER).format(places=[str(folder), str(ROOT), str(ROOT / "src")], other=other)


def test_a_script_needs_no_guard_and_may_come_from_a_pipe(tmp_path):
    (tmp_path / "script.py").write_text(driver(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "random.py").write_text("raise ImportError('not what was meant')")
    digest = bits(work(task()).rows)[0]["digest"]
    for command, given in (("../script.py", ""), ("-P -", driver(tmp_path))):
        done = subprocess.run(
            [sys.executable, *command.split()], input=given, capture_output=True, text=True, cwd=folder, check=False
        )
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, digest, "")


def test_a_notebook_can_drive(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(driver(tmp_path))])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "", "language": "python"}
    code = f"import nbclient, nbformat; n = nbformat.reads({nbformat.writes(notebook)!r}, 4)\n"
    code += "nbclient.NotebookClient(n, timeout=600).execute(); print(n.cells[0].outputs[0].text)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
    )  # fmt: skip
    assert nbclient
    assert done.stdout.strip() == bits(work(task()).rows)[0]["digest"], done.stderr


def test_a_thread_can_drive():
    found = []

    def run():
        with Processes(1) as pool:
            found.extend(drive(pool, [task()]))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert bits(found[0].rows) == bits(work(task()).rows)


@pytest.mark.parametrize("learner", ["stuck", "slow,seconds=0.01"])
def test_workers_die_with_their_driver_in_the_midst_of_computing(tmp_path, learner):
    """Even where a learner holds Python's lock; and so does what it has started."""
    other = f"task('misbehaving:{learner},place={tmp_path / 'pids'}', steps=10**6)"
    script = subprocess.Popen([sys.executable, "-c", driver(tmp_path, other)], cwd=tmp_path)
    left = wait_for(tmp_path / "pids", 2)
    script.kill()
    script.wait()
    assert all(gone(pid) for pid in left)
