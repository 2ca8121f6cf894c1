"""An executor on many machines: calls on a Ray cluster, which may grow, shrink and lose machines meanwhile.

Ray is an extra (`pip install 'ravi[ray]'`), and ravi must be installed, in the same version, on every machine; modules
of the user's that a suite names are sent along. A task is a call that takes one CPU and computes with one thread. If
its machine is lost or its worker dies, Ray makes the call again, up to RETRIES times: a task gives the same bits
wherever it is done, so nothing can be counted twice. Only then is it lost. Outcomes say by which versions they were
computed: the driver compares them with its own.

To interrupt, calls are cancelled. Ray drops those that wait (they come back undone) and raises SIGINT in those that
have begun: there it sets a flag, and the run comes back as a checkpoint after its epoch. Where it cannot be delivered
(the machine was lost just then) the task comes back with the checkpoint that it was given.
"""

from __future__ import annotations

import importlib.util
import signal
import socket
import sys
import sysconfig
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ravi import validation
from ravi.lab.experiments.executors import ONE_THREAD, Executor, Lost, environment, search_path
from ravi.lab.experiments.work import Outcome, Task, undone, work
from ravi.runtime.result import versions
from ravi.validation import InputError, install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AHEAD = 2  # tasks for every CPU: the one that it does, and the next, so that it never waits for it
OWN = "local"  # the address of a Ray that this process starts for itself
LOOPBACK = "127.0.0.1"  # which nobody else can reach
RETRIES = 3
PATIENCE = 10.0  # seconds that the head of a cluster has to answer
FRESH = 1.0  # seconds for which the number of CPUs is taken to be what it was


class Cluster(Executor):
    """An executor (`ravi.lab.experiments.executors.Executor`) of the CPUs of a Ray cluster.

    address: "local" starts a Ray on this machine with so many CPUs (all, for None), which ends with the pool and
    listens to this machine only: whoever reaches a Ray can run code on it; "auto" or
    "host:port" joins one that is there, and leaves it there. A connection that this process has already is used as it
    is. workers: at most so many tasks at a time; None for as many as there are CPUs. modules: of the user's, by name;
    their files are sent to every machine, but for those that are installed, unless the connection was there already.
    """

    def __init__(self, address: str, workers: int | None = None, modules: Sequence[str] = ()) -> None:
        self._most = None if workers is None else validation.whole(workers, "workers", 1)
        self._ray = _ray()
        self._flying: dict[Any, tuple[int, Task]] = {}  # call -> number, and what is to be done
        self._counted: tuple[float, int] | None = None  # when, and how many CPUs
        self._interrupted = False
        self._joined = not self._ray.is_initialized()
        if self._joined:
            _join(self._ray, address, self._most, _files(modules))
        self._call = self._ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env={"env_vars": ONE_THREAD})(_work)
        self._path = search_path()

    @property
    def workers(self) -> int:
        now = time.monotonic()
        if self._counted is None or now - self._counted[0] > FRESH:
            with _plainly("the Ray cluster does not answer"):
                self._counted = now, int(self._ray.cluster_resources().get("CPU", 0))
        # Where there is none yet, a task that waits makes a cluster grow.
        return max(1, min(self._counted[1], self._most or self._counted[1]))

    def free(self) -> int:
        return 0 if self._interrupted else max(0, AHEAD * self.workers - len(self._flying))

    def submit(self, number: int, task: Task) -> None:
        if self._interrupted:
            raise InputError("no tasks are taken after an interrupt")
        with _plainly("the Ray cluster takes no task"):
            self._flying[self._call.remote(task, self._path)] = number, task

    def collect(self, seconds: float) -> list[tuple[int, Outcome | Lost]]:
        if not self._flying:
            time.sleep(seconds)
            return []
        with _plainly("the Ray cluster does not answer"):
            done, _ = self._ray.wait(list(self._flying), timeout=seconds)
            if done:  # and whatever else has come
                done, _ = self._ray.wait(list(self._flying), num_returns=len(self._flying), timeout=0)
        return [self._fetched(call) for call in done]

    def interrupt(self) -> None:
        self._interrupted = True
        for call in reversed(list(self._flying)):  # those that wait first, so that they do not begin
            self._ray.cancel(call)

    def close(self) -> None:
        if self._ray.is_initialized():
            for call in self._flying:
                with suppress(Exception):
                    self._ray.cancel(call, force=True)
            self._flying.clear()
            if self._joined:
                self._ray.shutdown()  # ends a Ray of one's own, and leaves any other

    def _fetched(self, call: Any) -> tuple[int, Outcome | Lost]:
        """The result of a call; Ray may then free it."""
        number, task = self._flying.pop(call)
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(call)
            return number, outcome
        except errors.TaskCancelledError:
            return number, undone(task)
        except errors.RayTaskError as error:  # not a learner's: `work` makes rows of those
            why = f"a task cannot be done on the Ray cluster: {_line(error.cause)}"
            raise InputError(f"{why}; is ravi {versions()['ravi']} installed on every machine of it?") from None
        except errors.RuntimeEnvSetupError as error:
            raise InputError(f"the Ray cluster cannot set up workers: {_line(error)}") from None
        except errors.RayError as error:  # a result that was lost with its machine is not the fault of the task
            return number, Lost(not isinstance(error, errors.ObjectLostError), f"Ray gave up: {_line(error)}")


def _work(task: Task, path: list[str]) -> Outcome:
    """The call, as it is made on some machine of the cluster."""
    sys.path += [place for place in path if place not in sys.path]
    interrupted: list[bool] = []
    before = signal.signal(signal.SIGINT, lambda signum, frame: interrupted.append(True))
    try:
        return work(task, lambda: bool(interrupted))
    finally:
        signal.signal(signal.SIGINT, before)


def _files(modules: Sequence[str]) -> list[str]:
    """The file or the folder of each module, unless it is installed."""
    installed = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    found = []
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        place = Path(spec.origin)
        place = place.parent if spec.submodule_search_locations else place
        if str(place.parent) not in installed:
            found.append(str(place))
    return found


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError(f"Ray cannot be imported ({error}): {install_command('ray')}") from None


def _join(ray: Any, address: str, workers: int | None, modules: Sequence[str] = ()) -> None:
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    quiet |= {"runtime_env": {"py_modules": list(modules)}} if modules else {}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with environment(RAY_USAGE_STATS_ENABLED="0"):  # nothing is reported to anyone
            if address == OWN:
                with _plainly("cannot start Ray on this machine"), _alone():
                    ray.init(address=OWN, num_cpus=workers, include_dashboard=False, **quiet)
                    if ray.util.get_node_ip_address() != LOOPBACK:
                        ray.shutdown()
                        raise InputError(f"Ray {ray.__version__} cannot be kept to this machine: give no --cluster")
            else:
                if address != "auto":
                    _answers(address)
                with _plainly(f"cannot join the Ray cluster at {address}"):
                    ray.init(address=address, **quiet)
    finally:
        if handler not in (None, signal.SIG_DFL) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has put its own in the place of the caller's


@contextmanager
def _alone() -> Iterator[None]:
    """Let a Ray that is started listen on the loopback only, as it does by itself where it supports no clusters.

    Its processes learn it from the environment, and this one, which may have imported it, from its constants.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    held, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        with environment(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0"):
            yield
    finally:
        constants.ENABLE_RAY_CLUSTER = held


def _answers(address: str) -> None:
    """Whether anything listens there: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise InputError(
            f"{address!r} is no address of a Ray cluster: give 'local', 'auto' or the host:port of its head"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"there is no Ray cluster at {address}: {error}") from None


@contextmanager
def _plainly(what: str) -> Iterator[None]:
    """Ray's errors in plain words."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what}: {_line(error)}") from None


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
