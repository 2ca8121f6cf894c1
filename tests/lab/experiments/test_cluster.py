"""Ray: the same bits as in the driver, and nothing is lost with a machine. A start of Ray takes seconds: slow tests."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from ravi.lab.experiments.cluster import Cluster, _files, _join
from ravi.lab.experiments.executors import Lost
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.work import Outcome, work
from ravi.validation import InputError
from tests.lab.experiments import small
from tests.lab.experiments.tasks import bits, drive, gone, task, through, wait_for, write_learners

ROOT = Path(__file__).parents[3]

# Ray's own: files and processes that it leaves to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def mine(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        write_learners(tmp_path_factory.mktemp("learners"), patch)
        yield


@pytest.fixture(scope="module")
def pool(mine):
    pytest.importorskip("ray")
    with Cluster("local", 2) as shared:
        yield shared


def told(script):
    """The words that a script prints, in a process group that is ended with it."""
    command, env = [sys.executable, "-c", script], os.environ | {"RAY_USAGE_STATS_ENABLED": "0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=env) as process:
        try:
            said = process.communicate(timeout=900)[0]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    return said.split()


def test_without_ray_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'ravi\[ray\]'"):
        Cluster("local", 1)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda signum, frame: None])
def test_what_the_caller_does_with_sigterm_is_as_before_ray(handler):
    """Ray puts a handler of its own in its place."""
    ray = SimpleNamespace(init=lambda **_: signal.signal(signal.SIGTERM, signal.default_int_handler))
    before = signal.signal(signal.SIGTERM, handler)
    try:
        _join(ray, "auto", None)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("address", ["nonsense", "host:", ":6379", "ray://host:10001", "host:port"])
def test_an_address_that_is_none_is_refused(address):
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="is no address of a Ray cluster"):
        Cluster(address, None)


def test_a_cluster_that_is_not_there_is_an_error_at_once():
    """Ray itself would try for minutes."""
    pytest.importorskip("ray")
    with pytest.raises(InputError, match=r"there is no Ray cluster at 127\.0\.0\.1:1: "):
        Cluster("127.0.0.1:1", None)


@pytest.mark.slow
def test_ray_gives_the_bits_that_the_driver_would(pool):
    tasks = [task(seeds=(seed, seed + 1)) for seed in (0, 5)] + [task("ucrl2"), task("psrl", seeds=range(5))]
    for one, outcome in zip(tasks, drive(pool, tasks), strict=True):
        assert bits(outcome.rows) == bits(work(one).rows)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_a_suite_on_ray_gives_the_same_bits(pool, tmp_path):
    """On the Ray that is there."""
    run_suite(small.SMALL, tmp_path / "here", workers=1)
    run_suite(small.SMALL, tmp_path / "ray", workers=2, cluster="local")
    assert small.bits(tmp_path / "ray") == small.bits(tmp_path / "here")


@pytest.mark.slow
def test_a_ray_of_ones_own_listens_to_this_machine_only(pool):
    """Whoever reaches it could run code on it."""
    import ray

    drive(pool, [task()])  # a worker, too
    sys.path.append(os.path.join(os.path.dirname(ray.__file__), "thirdparty_files"))
    import psutil  # Ray brings it along

    me = psutil.Process()
    heard = [
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(heard) > 3
    assert {ip.removeprefix("::ffff:") for ip in heard} == {"127.0.0.1"}
    assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ


@pytest.mark.slow
def test_ray_takes_two_tasks_for_every_cpu(pool):
    assert pool.workers == 2
    assert pool.free() == 4
    pool.submit(0, task())
    assert pool.free() == 3
    while not (back := pool.collect(10)):
        pass
    assert [number for number, _ in back] == [0]
    assert pool.free() == 4
    assert pool.collect(0.01) == []


@pytest.mark.slow
def test_slices_on_ray_end_with_the_same_bits(pool):
    rows, slices = through(pool, task(steps=100, slice=0.0))
    assert slices > 3
    assert bits(rows) == bits(work(task(steps=100)).rows)


@pytest.mark.slow
def test_on_ray_learners_of_ones_own_are_found_and_compute_with_one_thread(pool):
    (outcome,) = drive(pool, [task("misbehaving:threads", seeds=(0,))])
    assert bits(outcome.rows)[0]["error"] == "ArithmeticError: 1 1 1 1"


@pytest.mark.slow
def test_modules_of_ones_own_are_sent_to_machines_that_do_not_have_them():
    pytest.importorskip("ray")
    folder = next(path for path in sys.path if os.path.exists(os.path.join(path, "misbehaving.py")))
    script = f"""
import sys
sys.path[:0] = {[str(ROOT), str(ROOT / "src"), folder]}
from ravi.lab.experiments.cluster import Cluster
from tests.lab.experiments.tasks import bits, drive, task
with Cluster("local", 1, ["misbehaving", "numpy"]) as pool:
    pool._path = {[str(ROOT), str(ROOT / "src")]}
    (outcome,) = drive(pool, [task("misbehaving:slow,seconds=0", seeds=(0,), steps=100)])
print(bits(outcome.rows)[0]["digest"])
"""
    one = task("misbehaving:slow,seconds=0", seeds=(0,), steps=100)
    assert told(script)[-1] == bits(work(one).rows)[0]["digest"]


def test_what_is_installed_is_not_sent():
    assert [Path(place).name for place in _files(["misbehaving", "numpy", "json", "tests"])] == [
        "misbehaving.py",
        "tests",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["leaves,status=3", "crashes"])
def test_a_learner_that_always_takes_its_worker_along_is_lost_alone(pool, learner, monkeypatch, capfd):
    monkeypatch.setattr(pool, "_call", pool._call.options(max_retries=1))
    good, bad = task(), task(f"misbehaving:{learner}")
    outcomes = drive(pool, [good, bad, good])
    assert isinstance(outcomes[1], Lost)
    assert outcomes[1].started
    assert outcomes[1].why.startswith("Ray gave up: WorkerCrashedError")
    assert bits(outcomes[0].rows) == bits(outcomes[2].rows) == bits(work(good).rows)


@pytest.mark.slow
def test_what_goes_wrong_outside_of_learners_is_an_error_in_plain_words(pool, monkeypatch):
    monkeypatch.setattr(pool, "_path", 0)
    with pytest.raises(InputError, match=r"a task cannot be done on the Ray cluster: TypeError(.*)is ravi"):
        drive(pool, [task()])


@pytest.mark.slow
def test_an_interrupt_brings_back_checkpoints_of_what_runs_and_the_rest_undone(pool, tmp_path):
    """The pool uses the connection that is there, and leaves it open."""
    with Cluster("auto", 1) as other:
        assert other.workers == 1
        one = task(f"misbehaving:slow,seconds=0.02,place={tmp_path / 'marks'}", steps=20_000)
        waiting = [one._replace(checkpoints={"a": b"as given"})] * 3  # more than there are CPUs, of which there are two
        other.submit(0, one)
        wait_for(tmp_path / "marks", 3)
        other.submit(1, task(f"misbehaving:slow,seconds=0.02,place={tmp_path / 'more'}", steps=20_000))
        wait_for(tmp_path / "more", 3)
        for number, two in enumerate(waiting, 2):
            other.submit(number, two)
        other.interrupt()
        assert other.free() == 0
        with pytest.raises(InputError, match="after an interrupt"):
            other.submit(9, one)
        back = {}
        while len(back) < 5:
            back |= dict(other.collect(10))
    assert all(outcome.rows is None for outcome in back.values())
    assert {"a": b"as given"} in [back[number].checkpoints for number in (2, 3, 4)]
    quick = task("misbehaving:slow,seconds=0", steps=20_000)
    assert bits(work(quick._replace(checkpoints=back[0].checkpoints)).rows) == bits(work(quick).rows)
    assert isinstance(drive(pool, [task()])[0], Outcome)


LOSES_A_MACHINE = """
import os, sys, time, warnings
sys.path[:0] = {places}
import ray
from ray.cluster_utils import Cluster as Machines
from ravi.lab.experiments.cluster import Cluster, _join
from tests.lab.experiments import small
from tests.lab.experiments.tasks import bits, drive, task, wait_for
from pathlib import Path
from types import SimpleNamespace
machines = Machines(initialize_head=True, head_node_args={{"num_cpus": 0, "include_dashboard": False}})
lost = machines.add_node(num_cpus=1)
tasks = [task("misbehaving:slow,seconds=0.01", seeds=(seed,), steps=500) for seed in range(1, 4)]
tasks.insert(0, task("misbehaving:hangs_once,place={place}", seeds=(0,), steps=500))
with Cluster(machines.address, None) as pool:
    assert pool.workers == 1, pool.workers
    pool.submit(0, tasks[0])
    wait_for(Path("{place}"))  # it runs where it will not end
    machines.add_node(num_cpus=1)
    for number in range(1, 4):
        while not pool.free():  # until it has noticed
            time.sleep(0.1)
        pool.submit(number, tasks[number])
    assert not pool.collect(0)
    machines.remove_node(lost, allow_graceful=False)  # SIGKILL to all of it
    back = {{}}
    while len(back) < 4:
        back |= dict(pool.collect(5))
for number in range(4):
    print(bits(back[number].rows)[0]["digest"])
print(ray.is_initialized())
machines.shutdown()
"""


@pytest.mark.slow
def test_nothing_is_lost_with_a_machine(tmp_path):
    """A cluster of three machines that are processes here; one is killed while it computes."""
    pytest.importorskip("ray")
    place = tmp_path / "marks"
    folder = next(path for path in sys.path if os.path.exists(os.path.join(path, "misbehaving.py")))
    script = LOSES_A_MACHINE.format(places=[folder, str(ROOT), str(ROOT / "src")], place=place)
    said = told(script)
    ours = [task("misbehaving:slow,seconds=0", seeds=(seed,), steps=500) for seed in range(4)]
    wanted = [bits(work(one).rows)[0]["digest"] for one in ours]
    assert said[-5:] == [*wanted, "False"]


@pytest.mark.slow
def test_a_ray_of_ones_own_is_gone_when_its_pool_is_closed(tmp_path):
    pytest.importorskip("ray")
    script = f"""
import os, sys
sys.path[:0] = {[str(ROOT), str(ROOT / "src")]}
from ravi.lab.experiments.cluster import Cluster, _join
from tests.lab.experiments.tasks import drive, task
with Cluster("local", 1) as pool:
    drive(pool, [task()])
    import ray
    sys.path.append(os.path.join(os.path.dirname(ray.__file__), "thirdparty_files"))
    import psutil  # Ray brings it along
    print(*[child.pid for child in psutil.Process().children(recursive=True)])
print(ray.is_initialized())
"""
    *left, connected = told(script)
    assert connected == "False"
    assert left
    assert all(gone(pid) for pid in left)
