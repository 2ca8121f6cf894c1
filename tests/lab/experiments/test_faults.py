"""Whatever happens to a run, what was acknowledged is there, and the same command brings out the same bits."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ravi
from ravi.lab.experiments import agenda as jobs
from ravi.lab.experiments import driver as loop
from ravi.lab.experiments import freezing
from ravi.lab.experiments.manifest import manifest
from ravi.lab.experiments.results import DamagedWarning
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.runtime import archive
from ravi.validation import InputError
from tests.lab.experiments.small import SMALL, bits

pytestmark = pytest.mark.usefixtures("in_this_process")

# A driver as a program of its own, which tells how many runs it holds for done. Its third argument is run first.
DRIVER = """
import json, sys
suite, folder, first, workers = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
exec(first)
from ravi.lab.experiments import driver
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments import agenda as jobs
driver.TELL = driver.FLUSH = 0.0  # at every turn
jobs.FEW = jobs.LEAST = 1  # more jobs, of fewer runs
run_suite(suite, folder, workers=workers, progress=lambda status: print(status.done, flush=True))
"""

# Die in the middle of writing the second part: its bytes are on disk, under their temporary name.
DIE_BEFORE_THE_RENAME = """
import os, signal
rename, parts = os.replace, []
def replace(source, target):
    parts.append(target) if target.endswith(".parquet") else None
    if len(parts) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = replace
"""
DIE_WITH_HALF_A_PART = """
import io, os, signal
from ravi.runtime import archive
put, parts = archive.write_file, []
def half(path, fill):
    parts.append(path) if str(path).endswith(".parquet") else None
    def die(file):
        whole = io.BytesIO()
        fill(whole)
        file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    put(path, die if len(parts) == 2 else fill)
archive.write_file = half
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which SMALL was run; who harms it takes a copy."""
    folder = tmp_path_factory.mktemp("faults") / "undisturbed"
    run_suite(SMALL, folder, workers=2)
    return folder


@pytest.fixture(scope="module")
def undisturbed(finished):
    return bits(finished)


def driver(folder, first="", suite=SMALL, workers=1, **more):
    words = [sys.executable, "-c", DRIVER, json.dumps(suite), str(folder), first, str(workers)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def ended(process, seconds=600):
    """Its exit status, the last number of runs that it held for done, and what it complained of."""
    out, err = process.communicate(timeout=seconds)
    lines = out.split()
    return process.returncode, int(lines[-1]) if lines else 0, err


def held(folder):
    return bits(folder)[0]


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="children are found in /proc")


def children(pid):
    """The workers of a driver."""
    found = [
        int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]
    return [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def kill_workers(folder, most, monkeypatch):
    """Run SMALL in two workers, and kill one after the other, up to so many, whenever more runs are done."""
    monkeypatch.setattr(loop, "TELL", 0.0)  # progress is told, and what has come is stored, at every turn
    monkeypatch.setattr(loop, "FLUSH", 0.0)
    monkeypatch.setattr(jobs, "FEW", 1)
    monkeypatch.setattr(jobs, "LEAST", 1)
    killed, done = [], []

    def kill(status):
        workers = [pid for pid in children(os.getpid()) if pid not in killed]
        if status.running and status.done and status.done not in done and workers and len(killed) < most:
            done.append(status.done)
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    run_suite(SMALL, folder, workers=2, progress=kill)
    return len(killed)


@needs_proc
def test_kill_9_of_workers(undisturbed, tmp_path, monkeypatch):
    assert kill_workers(tmp_path / "killed", loop.TRIES - 1, monkeypatch) > 0  # no run can lose all its tries
    assert bits(tmp_path / "killed") == undisturbed


@needs_proc
def test_what_failed_with_its_workers_is_run_by_the_same_command(undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "killed"
    monkeypatch.setattr(loop, "TRIES", 1)  # a run that loses its worker once has failed
    assert kill_workers(folder, 4, monkeypatch) > 0
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == undisturbed  # and no more: tuning does not choose among what is left


@pytest.mark.parametrize("death", [DIE_BEFORE_THE_RENAME, DIE_WITH_HALF_A_PART], ids=["before the rename", "half"])
def test_kill_9_of_the_driver_in_the_middle_of_writing(undisturbed, tmp_path, death):
    folder = tmp_path / "out"
    status, acknowledged, _ = ended(driver(folder, death, workers=2))
    assert status == -signal.SIGKILL
    assert list((folder / "parts").glob(".ravi-*.tmp"))  # it did leave something behind
    assert 0 < acknowledged <= len(held(folder)) < len(undisturbed[0])
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == undisturbed
    assert not list((folder / "parts").glob(".ravi-*.tmp"))  # which was tidied up


@pytest.mark.slow
def test_kill_9_of_the_driver_again_and_again(undisturbed, tmp_path):
    folder, rounds, before = tmp_path / "out", 0, 0
    while True:
        process, rounds = driver(folder), rounds + 1
        first = int(process.stdout.readline() or -1)
        if first >= 0 and rounds < 8:
            time.sleep(0.05 * rounds)
            process.kill()
        rest, complaint = process.communicate(timeout=600)
        done = int(([str(first), *rest.split()])[-1])
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, complaint
        assert len(held(folder)) >= max(done, before)  # nothing acknowledged is lost, then or later
        before = len(held(folder))
    assert bits(folder) == undisturbed


def test_nothing_outlives_a_driver_that_is_killed(tmp_path):
    process = driver(tmp_path / "out", suite=SMALL | {"steps": 10**7}, workers=2)
    process.stdout.readline()
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 200
    while any(os.path.exists(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its driver"
        time.sleep(0.05)


def mounted(*mounts):
    """Whether these could be mounted, for this process alone."""
    libc, private = ctypes.CDLL(None, use_errno=True), (b"none", b"/", None, 0x4000 | 0x40000, None)  # recursively
    users, own = 0x10000000, 0x20000
    return libc.unshare(own if os.geteuid() == 0 else own | users) == 0 and all(
        libc.mount(*mount) == 0 for mount in (private, *mounts)
    )


def small_disk(place):
    """A file system of 300 kB, in a world of the child's own; where that is not allowed, files of 6 kB at most."""
    if not mounted((b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=300k")):
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


FULL = SMALL | {"seeds": 60, "points": 2000}  # 5 MB of curves


@pytest.mark.slow
def test_a_full_disk(tmp_path):
    """What could not be stored was not acknowledged; with room again, the same command goes on."""
    folder, inside = tmp_path / "out", tmp_path / "inside"
    inside.mkdir()
    copy = f"""
import atexit, shutil
atexit.register(lambda: shutil.copytree({str(inside)!r}, {str(folder)!r}))  # what the full disk holds
"""
    process = driver(inside / "out", copy, FULL, preexec_fn=lambda: small_disk(inside))
    status, acknowledged, complaint = ended(process)
    assert status == 1
    assert "What is stored is kept: with room to write, the same command goes on" in complaint
    assert "No space left on device" in complaint or "File too large" in complaint
    assert acknowledged <= len(held(folder / "out"))
    assert not list((folder / "out").rglob(".ravi-*.tmp"))
    run_suite(FULL, folder / "out", workers=1)
    run_suite(FULL, tmp_path / "whole", workers=1)
    assert bits(folder / "out") == bits(tmp_path / "whole")


@pytest.mark.parametrize("kind", [".parquet", "tuning"])
def test_the_disk_is_full_at_a_file_of_any_kind(undisturbed, tmp_path, monkeypatch, kind):
    """A part, or what tuning chose: the parts before it are kept, and nobody is left with half an answer."""
    put, folder = archive.write_file, tmp_path / "out"

    def full(path, fill):
        if kind in str(path.relative_to(tmp_path)):
            raise archive.Unwritable(f"cannot write {path}: No space left on device")
        put(path, fill)

    monkeypatch.setattr(archive, "write_file", full)
    with pytest.raises(InputError, match=r"No space left on device.* the same command goes on"):
        run_suite(SMALL, folder, workers=1)
    monkeypatch.undo()
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == undisturbed


def read_only(place):
    """Nothing can be written below `place`, by root either."""
    where, bind, remount_read_only = os.fsencode(place), 0x1000, 0x20 | 0x1
    mounted((where, where, None, bind, None), (where, where, None, bind | remount_read_only, None))
    os.chmod(place, 0o555) if os.access(place, os.W_OK) else None


def test_a_read_only_folder(undisturbed, tmp_path):
    folder = tmp_path / "out"
    run_suite(SMALL, folder, workers=1, shard="1/2")
    before = held(folder)
    process = driver(folder, preexec_fn=lambda: read_only(folder))
    status, _, complaint = ended(process)
    os.chmod(folder, 0o755)
    if os.geteuid() == 0 and status == 0:
        pytest.skip("root may write anywhere, and nothing can be mounted here")
    assert status == 1
    assert f"cannot write into {folder}" in complaint or f"cannot write {folder}" in complaint
    assert held(folder) == before
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == undisturbed


def test_two_drivers_share_a_folder_though_one_is_killed(undisturbed, tmp_path):
    folder = tmp_path / "out"
    drivers = [driver(folder) for _ in range(3)]
    drivers[0].stdout.readline()
    drivers[0].kill()
    assert [ended(process)[0] for process in drivers] == [-signal.SIGKILL, 0, 0]
    assert bits(folder) == undisturbed


def test_a_part_that_is_damaged_is_named_and_made_again(finished, undisturbed, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "out")
    part, removed, *_ = sorted((folder / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    removed.unlink()
    with pytest.warns(DamagedWarning, match=part.name):
        left = ravi.results(folder)
    assert [Path(trouble.name).name for trouble in left.troubles] == [part.name]
    with pytest.warns(DamagedWarning, match=part.name):
        run_suite(SMALL, folder, workers=1)
    part.unlink()
    assert bits(folder) == undisturbed


def test_a_damaged_tuning_record_is_made_again(finished, undisturbed, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "out")
    record = next((folder / "tuning").iterdir())
    record.write_text('{"subject": ')
    run_suite(SMALL, folder, workers=1)
    assert bits(folder) == undisturbed


TINY = {
    "name": "tiny", "steps": 50, "seeds": 4, "points": 5,
    "sections": [{"name": "a", "mdps": ["riverswim/4"], "learners": ["uniform"]}],
}  # fmt: skip


def launched(suite, folder):
    """What a launch does before its runs."""
    store, (wanted, own) = Store(folder), freezing.chosen(suite)
    freezing.freeze(wanted, store, own)
    with store.launch(manifest(["ravi"], wanted.plain())):
        pass


@pytest.mark.parametrize("content", ['{"format": 1', "", "[]", '{"format": 1}'])
def test_a_damaged_specification_is_named_and_made_again_by_the_suite_that_it_was_of(tmp_path, content):
    folder = tmp_path / "out"
    launched(TINY, folder)
    whole = (folder / "specification.json").read_text()
    (folder / "specification.json").write_text(content)
    with pytest.raises(InputError, match=rf"specification\.json is damaged(.*)ravi suite run SUITE --out {folder}"):
        launched(folder, folder)
    with pytest.raises(InputError, match=r"was of this suite: if it was this one, delete .*specification\.json"):
        launched(TINY | {"seeds": 5}, folder)
    assert (folder / "specification.json").read_text() == content
    launched(TINY, folder)
    assert (folder / "specification.json").read_text() == whole


def test_a_specification_of_a_later_version_is_left_alone(tmp_path):
    folder = tmp_path / "out"
    launched(TINY, folder)
    (folder / "specification.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="has format 99; this ravi reads 1"):
        launched(TINY, folder)
    assert (folder / "specification.json").read_text() == '{"format": 99}'


@pytest.mark.parametrize("harm", ["cut", "emptied", "another"])
def test_a_damaged_mdp_is_made_again_from_its_file(tmp_path, harm):
    folder, source = tmp_path / "out", tmp_path / "mine.mdp"
    ravi.mdp("riverswim/5").save(source)
    suite = TINY | {"sections": [{"name": "a", "mdps": [str(source)], "learners": ["uniform"]}]}
    launched(suite, folder)
    (kept,) = (folder / "mdps").iterdir()
    whole = kept.read_bytes()
    for wanted in (suite, folder):
        if harm == "another":
            ravi.mdp("riverswim/3").save(kept)
        else:
            kept.write_bytes(whole[:100] if harm == "cut" else b"")
        launched(wanted, folder)
        assert kept.read_bytes() == whole
    kept.write_bytes(b"")
    source.unlink()
    with pytest.raises(InputError, match=rf"mdps/{kept.name}(.*)put back {source}, from which it is made again"):
        launched(folder, folder)


def test_a_clock_that_jumps_changes_nothing(undisturbed, tmp_path):
    jump = "import time; jumps = iter(range(10**9)); time.time = lambda: 1e9 * (-1) ** next(jumps)"  # by sixty years
    folder = tmp_path / "out"
    process = driver(folder, jump)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 0
    for place in ("parts", "manifests", "tuning", "checkpoints"):
        for number, path in enumerate((folder / place).iterdir()):
            os.utime(path, (4e9 * (number % 2), 4e9 * (number % 2)))  # files from 1970 and 2096
    assert ended(driver(folder, jump))[0] == 0
    assert bits(folder) == undisturbed
