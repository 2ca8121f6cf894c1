"""The live view: it shows what the store holds, sees what is new, reads nothing twice, writes nothing, and ends."""

import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from rich.console import Console

import ravi
from ravi.lab.experiments import results as reading
from ravi.lab.report.watch import View, duration, fitting, frame, headline, text, watch
from ravi.statistics import interval
from ravi.validation import InputError
from tests.lab.experiments.stores import created, failed, made, rows, setting
from tests.lab.experiments.test_results import tuned


@pytest.fixture
def store(tmp_path):
    return created(tmp_path / "results")


def looked(folder, now=0.0):
    view = View(folder)
    view.look(now)
    return view


def content(folder):
    """Every file with its bytes and times, and every folder with its times."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def counted(view):
    lines = [(row.line, row.done) for row in view.rows]
    return {(line.section, line.label, line.column): (done, line.failed) for line, done in lines}


def test_it_shows_what_the_store_holds(store):
    with store.launch({"format": 1, "command": ["ravi", "run"], "started": "today"}) as launch:
        store.write([rows(launch, "uniform", (0, 1, 2), regret=[1.0, 2.0, 4.0])])
        store.write([rows(launch, "ravi-ucb", (0,)), failed(launch, "ravi-ucb", (2,))])
        view = looked(store.folder)
        shown = text(view)
    assert counted(view) == {
        ("first", "uniform", "given"): (3, 0),
        ("first", "ours", "given"): (1, 1),
        ("second", "ours", "theory"): (1, 0),
        ("second", "ours", "tuned"): (0, 0),
    }
    counts = ravi.results(store.folder).counts
    assert view.counts == counts
    assert counts[:3] == (8, 4, 1)
    assert "4 of 8 runs done, 1 failed" in shown
    assert view.rows[0].mean == interval([1.0, 2.0, 4.0])
    assert "3 of 3" in shown
    assert "not tuned yet" in shown
    assert "one seed" in shown
    assert f"launch {launch} is alive, 5 runs stored, since today: ravi run" in shown
    assert "ravi-ucb on riverswim/4, seed 2: ValueError: no" in shown
    assert "no launch is alive: the command that began this goes on with it (1 before)" in text(looked(store.folder))


def test_it_sees_new_parts_and_opens_the_folder_only_for_them(store, monkeypatch):
    view = looked(store.folder)
    assert view.counts.done == 0
    opened, real = [], reading.results
    monkeypatch.setattr(reading, "results", lambda folder: opened.append(folder) or real(folder))
    assert not view.look(1.0), "nothing has come"
    with store.launch({"format": 1}) as launch:
        assert view.look(1.5), "a manifest"
        store.write([rows(launch, "uniform", (0, 1))])
        assert view.look(2.0)
        assert view.counts[1:3] == (2, 0)
        store.write([rows(launch, "uniform", (2,)), failed(launch, "ravi-ucb", (0, 1))])
        assert view.look(3.0)
        assert not view.look(4.0)
    assert view.counts[1:3] == (3, 2)
    assert len(opened) == 3


def test_a_run_that_is_there_twice_counts_once_and_as_a_success(store):
    with store.launch({"format": 1}) as launch:
        store.write([failed(launch, "uniform", (0, 1))])
        view = looked(store.folder)
        assert counted(view)["first", "uniform", "given"] == (0, 2)
        store.write([rows(launch, "uniform", (0, 2))])
        store.write([rows(launch, "uniform", (2,)), failed(launch, "uniform", (0,))])
        view.look(1.0)
    assert counted(view)["first", "uniform", "given"] == (2, 1)
    assert view.rows[0].line.values.tobytes() == made().regret[[0, 2]].tobytes()


def test_tuning_is_followed(store):
    view = looked(store.folder)
    assert view.tuning == (0, 1)
    tuned(store)
    view.look(0.5)
    assert view.tuning == (1, 1), "seen before any of its runs"
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "ravi-ucb,scale=0.1", (0, 1), regret=[3.0, 5.0])])
        view.look(1.0)
    assert view.tuning == (1, 1)
    assert counted(view)["second", "ours", "tuned"] == (2, 0)
    assert view.rows[-1].mean.estimate == 4.0
    assert not view.finished
    assert "tuning has chosen for 1 of 1" in headline(view)


def test_it_is_finished_when_nothing_is_left_failures_or_not(store):
    tuned(store)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), rows(launch, "ravi-ucb")])
        view = looked(store.folder)
        assert not view.finished
        store.write([rows(launch, "ravi-ucb,scale=0.1", (0,)), failed(launch, "ravi-ucb,scale=0.1", (1,))])
        view.look(1.0)
    assert view.finished
    assert "all is done, but for what failed" in text(view)


def test_tuning_that_failed_leaves_nothing_to_wait_for(store):
    tuned(store, chosen=None)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), rows(launch, "ravi-ucb")])
    view = looked(store.folder)
    assert view.finished
    assert "tuning failed" in text(view)


def test_the_time_left_is_the_work_left_at_the_speed_seen(store):
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "uniform", (0,), seconds=[10.0])])
        view = looked(store.folder, 100.0)
        assert view.rate is None
        assert view.time_left is None
        assert "of computing left" in headline(view)
        store.write([rows(launch, "uniform", (1,), seconds=[10.0])])
        view.look(110.0)  # 10 s of computing in 10 s
    assert view.rate == pytest.approx(0.1)
    trials = view.trials[1]
    left = 1 + 3 + 2 + 2 + trials  # entries that share runs count each; every step takes as long
    assert view.work_left == pytest.approx(10.0 * left)
    assert view.time_left == pytest.approx(view.work_left)


def test_damage_is_named_and_left_out(store):
    with store.launch({"format": 1}) as launch:
        path = store.write([rows(launch)])
    path.write_bytes(path.read_bytes()[:-1])
    (store.folder / "manifests" / "0123456789ab.json").write_text("{")
    view = looked(store.folder)
    for now in range(3):
        view.look(now + 1.0)
    assert len(view.results.troubles) == 2
    assert f"parts/{path.name}: damaged" in text(view)
    assert view.counts.done == 0


def test_checkpoints_are_named_by_their_learner(store):
    store.keep_checkpoint(setting("uniform").digest, "0" * 20, b"anything")
    assert "checkpoints: 1 under way (uniform on riverswim/4)" in text(looked(store.folder))


def test_it_never_writes(store):
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch)])
    tuned(store)
    before = content(store.folder)
    watch(store.folder, once=True)
    assert content(store.folder) == before
    absent = store.folder.parent / "absent"
    watch(absent, once=True)
    assert not absent.exists()


def test_a_folder_that_is_not_there_is_waited_for(tmp_path, capsys):
    watch(tmp_path / "later", once=True)
    assert f"waiting for {tmp_path / 'later'}: it is not there yet" in capsys.readouterr().out
    (tmp_path / "later").mkdir()
    view = looked(tmp_path / "later")
    assert "no specification.json yet" in headline(view)
    store = created(tmp_path / "later")
    view.look(1.0)
    assert view.waiting == ""
    assert view.counts.planned == 8
    assert store.folder == view.folder


def test_a_damaged_specification_is_an_error(store):
    (store.folder / "specification.json").write_text("{")
    with pytest.raises(InputError, match=r"specification\.json is damaged"):
        watch(store.folder, once=True)


@pytest.mark.parametrize("terminal", [True, False])
def test_it_ends_by_itself_when_all_is_done(tmp_path, terminal, capsys):
    """It begins before the folder is there, sees runs arrive, and ends with the last."""
    folder, sink = tmp_path / "results", io.StringIO()
    console = Console(file=sink, force_terminal=terminal, width=120, height=40)
    watcher = threading.Thread(target=watch, args=(folder,), kwargs={"every": 0.02, "console": console}, daemon=True)
    watcher.start()
    printed = ""

    def awaited(words):
        nonlocal printed
        until = time.monotonic() + 100
        while words not in printed:
            assert time.monotonic() < until, f"{words!r} is not in {printed!r}"
            time.sleep(0.02)
            printed += capsys.readouterr().out
            printed = sink.getvalue() if terminal else printed

    awaited("waiting for")
    store = created(folder)
    tuned(store)
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch)])
        awaited("3 of 8 runs done")
        store.write([rows(launch, "ravi-ucb")])
        awaited("6 of 8 runs done")
        assert watcher.is_alive()
        store.write([rows(launch, "ravi-ucb,scale=0.1", (0, 1))])
        awaited("8 of 8 runs done")
    watcher.join(100)
    assert not watcher.is_alive()


def test_ctrl_c_ends_it_quietly(store):
    code = f"import sys; from ravi.lab.report.watch import watch; watch({str(store.folder)!r}, every=0.05)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "0 of 8 runs done" in process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    _, wrong = process.communicate(timeout=200)
    assert process.returncode == 0
    assert wrong == ""


def test_what_is_under_way_is_shown_first_where_room_is_short(store):
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch), rows(launch, "ravi-ucb", (0,))])
    view = looked(store.folder)  # done, under way, under way, not begun
    assert [row.line.column for row in fitting(view, 3)] == ["given", "theory"]
    assert fitting(view, 4) == view.rows
    assert fitting(view, 2)[0].line.label == "ours"
    sink = io.StringIO()
    Console(file=sink, width=120, color_system=None).print(frame(view, height=1))
    assert "... and 2 more, 1 of them done" in sink.getvalue()


def test_durations_are_read_at_a_glance():
    assert [duration(s) for s in (0.4, 89, 600, 5400, 12_000)] == ["0 s", "89 s", "10 min", "1 h 30 min", "3 h 20 min"]
