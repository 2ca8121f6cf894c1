"""Worker processes: the same bits as in the driver, whatever dies, prints or is interrupted; and nothing is left."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from ravi.lab.experiments import processes
from ravi.lab.experiments.pools import Lost
from ravi.lab.experiments.processes import Processes
from ravi.lab.experiments.work import Outcome, work
from ravi.lab.experiments.worker import Messages, framed
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
    return [worker.process.pid for worker in pool._team]


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


def test_outcomes_and_tasks_larger_than_any_buffer_pass_each_other(pool):
    """Checkpoints of several MB in both directions at once, and more of them than workers."""
    big = task(mdp="garnet/4000,4,20,discount=0.9", seeds=(0,), steps=10**6, slice=0.0)
    first = drive(pool, [big] * 6)
    assert all(len(outcome.checkpoint) > 2**21 for outcome in first)
    again = drive(pool, [big._replace(checkpoint=outcome.checkpoint) for outcome in first])
    assert len({outcome.checkpoint for outcome in again} - {outcome.checkpoint for outcome in first}) > 0


def test_messages_come_out_whole_however_the_stream_is_cut():
    sent = [["a"], (1, b"x" * 1000), None]
    stream = b"".join(framed(message) for message in sent)
    for size in (1, 7, 1000, len(stream)):
        messages = Messages()
        pieces = [stream[k : k + size] for k in range(0, len(stream), size)]
        assert [message for piece in pieces for message in messages.within(piece)] == sent


def test_workers_compute_with_one_thread(pool):
    (outcome,) = drive(pool, [task("misbehaving:threads")])
    assert bits(outcome.rows)[0]["error"] == "ArithmeticError: 1 1 1 1"


# What learners do.


def test_a_failing_learner_gives_failed_rows_and_spoils_no_other_seed(pool):
    rows = bits(drive(pool, [task("misbehaving:refuses,seed=1", seeds=(0, 1, 2))])[0].rows)
    assert [row["failure"] for row in rows] == [None, "learner", None]


def test_a_task_that_was_withdrawn_too_late_is_not_taken_for_another_of_its_number(mine, tmp_path):
    good = task()
    with Processes(1) as pool:
        begin(pool, tmp_path / "begun")
        pool._team[0].tasks.clear()  # another worker has taken over task 0
        (outcome,) = drive(pool, [good])
    assert bits(outcome.rows) == bits(work(good).rows)


def test_what_a_learner_prints_does_no_harm(pool):
    alive = pids(pool)
    one = task("misbehaving:prints", seeds=(0,))
    outcomes = drive(pool, [one] * 4)  # about half a MB each, on every way out
    assert len({str(bits(outcome.rows)) for outcome in outcomes}) == 1
    assert bits(outcomes[0].rows)[0]["failure"] is None
    assert pids(pool) == alive


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        ("leaves,status=3", "exited with status 3"),
        ("exits", "exited with status 1\nno more of this"),
        ("crashes", "was killed by SIGSEGV\n"),
    ],
)
def test_a_learner_that_takes_its_worker_along_is_lost_alone(pool, learner, why):
    good, bad = task(), task(f"misbehaving:{learner}")
    outcomes = drive(pool, [good, bad, good, good])
    assert isinstance(outcomes[1], Lost)
    assert outcomes[1].started
    assert why in outcomes[1].why
    for outcome in (outcomes[0], *outcomes[2:]):
        if isinstance(outcome, Lost):  # it waited behind the bad one
            assert not outcome.started
        else:
            assert bits(outcome.rows) == bits(work(good).rows)
    while isinstance(outcome := drive(pool, [good])[0], Lost):  # another worker had the bad one too, withdrawn too late
        assert not outcome.started
    assert bits(outcome.rows) == bits(work(good).rows)


def test_the_last_words_of_a_worker_are_those_of_its_last_task():
    with Processes(1) as pool:
        (pid,) = pids(pool)
        _, lost = drive(pool, [task("misbehaving:prints"), task("misbehaving:exits")])
    assert lost.why == f"worker {pid} exited with status 1\nno more of this"


def test_a_segfault_says_where_it_was(pool):
    (lost,) = drive(pool, [task("misbehaving:crashes")])
    assert "misbehaving.py" in lost.why


def test_workers_are_spoken_to_over_sockets_that_have_no_address(pool):
    """Nobody else can reach them."""
    assert {worker.line.family for worker in pool._team} == {socket.AF_UNIX}
    assert {worker.line.getsockname() for worker in pool._team} == {""}


# Who dies.


def test_a_killed_worker_is_replaced_and_the_others_go_on(tmp_path):
    with Processes(2) as pool:
        begin(pool, tmp_path / "marks")
        before = pids(pool)
        pool.submit(2, task())
        pool.submit(3, task())
        queued = [list(worker.tasks) for worker in pool._team]
        os.kill(before[0], signal.SIGKILL)
        back = {}
        while len(back) < 4:
            back |= dict(pool.collect(1.0))
        running, waiting = queued[0]
        assert back[running] == Lost(True, f"worker {before[0]} was killed by SIGKILL")
        assert back[waiting] == Lost(False, f"worker {before[0]} was killed by SIGKILL")
        assert all(isinstance(back[number], Outcome) for number in queued[1])
        assert pids(pool)[0] == before[1]
        assert pids(pool)[1] not in before
        assert pool.free() == 4
        assert isinstance(drive(pool, [task()])[0], Outcome)


def test_a_worker_that_dies_before_it_has_begun_loses_nothing_that_was_started():
    with Processes(1) as pool:
        pool.submit(0, task())
        os.kill(pids(pool)[0], signal.SIGKILL)
        (back,) = pool.collect(60)
        assert back[1].started is False


def test_an_idle_worker_takes_over_what_waits_behind_a_long_task(tmp_path):
    with Processes(2) as pool:
        pool.submit(0, task(f"misbehaving:slow,seconds=10,place={tmp_path / 'marks'}"))
        wait_for(tmp_path / "marks")
        busy = next(worker for worker in pool._team if worker.tasks)
        pool._give(busy, 7, task(steps=10))
        assert [number for number, _ in pool.collect(60)] == [7]
        assert list(busy.tasks) == [0]


def test_nothing_is_left_when_a_pool_is_closed(tmp_path):
    before = fds()
    with Processes(2) as pool:
        pool.submit(0, task(f"misbehaving:stuck,place={tmp_path / 'pids'}"))
        left = wait_for(tmp_path / "pids", 2) + pids(pool)
    assert all(gone(pid) for pid in left)
    assert fds() == before
    pool.close()  # again


def test_workers_that_are_killed_as_they_start_are_replaced_with_patience(monkeypatch):
    """By whoever is short of memory; it is not their mistake."""
    monkeypatch.setattr(processes, "PAUSE", 0.01)
    with Processes(1) as pool:
        killed = set()
        while len(killed) < 2 * processes.STARTS:
            for pid in {*pids(pool)} - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            pool.collect(0.05)
        while not pool.free():  # what a driver does meanwhile
            pool.collect(0.05)
        assert isinstance(drive(pool, [task(steps=10)])[0], Outcome)
        assert (pool._failed, pool._killed) == (0, 0)


def test_killing_workers_as_they_start_is_an_error_at_last(monkeypatch):
    monkeypatch.setattr(processes, "PAUSE", 0.01)
    monkeypatch.setattr(processes, "KILLS", 2)

    def go_on(pool):
        for _ in range(1000):
            for pid in pids(pool):
                os.kill(pid, signal.SIGKILL)
            pool.collect(0.05)

    with Processes(1) as pool, pytest.raises(InputError, match=r"workers do not start: the last .* killed by SIGKILL"):
        go_on(pool)


def test_a_worker_that_cannot_be_started_just_now_is_started_later(monkeypatch):
    monkeypatch.setattr(processes, "PAUSE", 0.01)
    with Processes(1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", "/nowhere/python")
            os.kill(pids(pool)[0], signal.SIGKILL)
            while pool._killed < 3:
                pool.collect(0.05)
        while not pool.free():
            pool.collect(0.05)
        assert isinstance(drive(pool, [task(steps=10)])[0], Outcome)


def insist():
    with Processes(1) as pool:
        for _ in range(100):
            assert drive(pool, [task()])[0].started is False


def test_workers_that_cannot_start_are_an_error_that_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "ravi" / "lab" / "experiments"
    broken.mkdir(parents=True)
    for folder in (broken.parent.parent, broken.parent, broken):
        (folder / "__init__.py").touch()
    (broken / "work.py").write_text("raise ImportError('half an installation')")
    monkeypatch.setattr(processes, "search_path", lambda: [str(tmp_path), *sys.path])
    before = fds()
    with pytest.raises(InputError, match=r"workers do not start(.|\n)*half an installation"):
        insist()
    assert fds() == before


def test_a_python_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = fds()
    with pytest.raises(InputError, match="cannot start a worker: /nowhere/python"):
        Processes(1)
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
        pool.submit(1, task(checkpoint=b"as given"))
        wait_for(tmp_path / "marks", 10)
        pool.interrupt()
        assert pool.free() == 0
        with pytest.raises(InputError, match="no worker is free"):
            pool.submit(2, one)
        back = {}
        while len(back) < 2:
            back |= dict(pool.collect(30))
    assert (back[1].rows, back[1].checkpoint) == (None, b"as given")
    assert back[0].rows is None
    again = work(one._replace(checkpoint=back[0].checkpoint))
    assert bits(again.rows) == bits(work(one).rows)


def test_an_interrupt_while_workers_start_brings_everything_back():
    """Python has not yet been told what to do with SIGINT then."""
    with Processes(2) as pool:
        for number in range(4):
            pool.submit(number, task(steps=10**7))
        pool.interrupt()
        back = {}
        while len(back) < 4:
            back |= dict(pool.collect(30))
    assert all(isinstance(outcome, Outcome) and outcome.rows is None for outcome in back.values())


def test_an_interrupt_that_is_not_the_drivers_costs_a_checkpoint_and_no_more(tmp_path):
    """To a worker that waits, and to one that computes."""
    one = task(f"misbehaving:slow,seconds=0.005,place={tmp_path / 'marks'}", seeds=(0,), steps=500)
    with Processes(1) as pool:
        drive(pool, [task(steps=10)])
        (pid,) = pids(pool)
        os.kill(pid, signal.SIGINT)
        outcomes = [drive(pool, [task(steps=10)])[0] for _ in range(2)]
        assert outcomes[1].rows is not None
        pool.submit(0, one)
        wait_for(tmp_path / "marks", 10)
        os.kill(pid, signal.SIGINT)
        while not (back := pool.collect(10)):
            pass
        assert back[0][1].rows is None
        again, slices = through(pool, one._replace(checkpoint=back[0][1].checkpoint), times=4)
        assert pids(pool) == [pid]
    assert slices == 1
    assert bits(again) == bits(work(one).rows)


def test_the_interrupt_of_a_terminal_does_not_reach_workers(pool):
    drive(pool, [task()])
    assert all(os.getpgid(pid) == pid != os.getpgid(0) for pid in pids(pool))


# Drivers.

DRIVER = """
import sys
sys.path[:0] = {places}
from ravi.lab.experiments.processes import Processes
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
