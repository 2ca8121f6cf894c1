"""The checks of `ravi doctor`: of the installation, the machine, and a folder of results.

The installation: versions, the compile cache, random numbers, and runs against known answers. The machine: cores,
memory, a GPU, and a disk that keeps files as a store needs it. A folder: everything is there, undamaged, and made by
the versions installed here. Nothing is repaired or fetched, and nothing heavy is imported that is not there. A file
that tries the disk is removed again.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from ravi.display.printable import counted
from ravi.validation import InputError, install_command

OK, WARNING, BROKEN, ABSENT = "ok", "warning", "broken", "absent"
PATIENCE = 120  # seconds that another process is given
LITTLE_DISK, LITTLE_MEMORY = 2**30, 2**30  # bytes, below which there is a warning
PYTHON = "3.11"
ONES = 2**64 - 1
# Philox4x64-10, published with its reference implementation (Random123): counter, key, words.
RANDOM = [
    ((0, 0, 0, 0), (0, 0), (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)),
    ((ONES,) * 4, (ONES,) * 2, (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)),
]


class Check(NamedTuple):
    name: str
    verdict: str  # ok, warning, broken or absent
    seen: str
    advice: str = ""  # what to do


class DoctorReport(NamedTuple):
    checks: list[Check]

    @property
    def status(self) -> int:
        """The exit status of the command: 1 if anything is broken."""
        return int(any(check.verdict == BROKEN for check in self.checks))

    def text(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for name, verdict, seen, advice in self.checks:
            lines.append(f"{verdict:8} {name:{width}}  {seen}")
            lines += [f"{'':8} {'':{width}}  -> {advice}"] if advice else []
        count = {verdict: sum(check.verdict == verdict for check in self.checks) for verdict in (BROKEN, WARNING)}
        warned = counted(count[WARNING], "warning")
        lines.append(f"{counted(len(self.checks), 'check')}: {count[BROKEN]} broken, {warned}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"status": self.status, "checks": [check._asdict() for check in self.checks]}


def judged(name: str, good: bool, seen: str, advice: str, bad: str = BROKEN) -> Check:
    """A check, with advice where it is not good."""
    return Check(name, OK, seen) if good else Check(name, bad, seen, advice)


# The installation.


def python() -> Iterator[Check]:
    version = f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"
    new = not older(platform.python_version(), PYTHON)
    yield judged("python", new, version, f"ravi needs Python {PYTHON} or newer")


def packages() -> Iterator[Check]:
    for needed in requirements()[""]:
        yield _package(needed.name, needed, missing=BROKEN, command=f"pip install '{needed.name}{needed.specifier}'")


def extras() -> Iterator[Check]:
    for extra, asked in requirements().items():
        for needed in asked if extra else ():
            yield _package(f"extra {extra}", needed, missing=ABSENT, command=install_command(extra))


def requirements() -> dict[str, list[Requirement]]:
    """The requirements by extra, "" for those that are always needed; an extra lists only what it adds to others."""
    asked = [Requirement(line) for line in metadata.requires("ravi") or ()]
    extras = metadata.metadata("ravi").get_all("Provides-Extra") or ()
    whole = {extra: {one for one in asked if one.marker and one.marker.evaluate({"extra": extra})} for extra in extras}
    named = {extra: {one.name for one in of} for extra, of in whole.items()}
    found = {"": [one for one in asked if one.marker is None]}
    for extra in extras:
        within = set[str]().union(*(names for names in named.values() if names < named[extra]))
        found[extra] = sorted((one for one in whole[extra] if one.name not in within), key=str)
    return found


def _package(check: str, needed: Requirement, missing: str, command: str) -> Check:
    try:
        found = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return Check(check, missing, f"{needed.name} is not installed", command)
    fits = needed.specifier.contains(Version(found).base_version)
    words = f"{needed.name} {found}" + ("" if fits else f", not {needed.specifier}")
    return judged(check, fits, words, command, missing)  # one that an extra wants may be there for something else


def older(version: str, least: str) -> bool:
    """Whether a version is before another; one in preparation counts as what it prepares."""
    return Version(Version(version).base_version) < Version(least)


def cache() -> Iterator[Check]:
    """Where compiled functions are kept, and whether one of them does what its plain form does."""
    import numpy as np

    from ravi._jit.cache import cache_folder
    from ravi.measures import curve

    folder = cache_folder()
    if folder is None:
        advice = "set RAVI_CACHE_DIR to a folder that is yours alone; until then every process compiles anew"
        yield Check("compile cache", WARNING, "no folder for it is the user's alone and can be written", advice)
    else:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield Check("compile cache", OK, f"{folder}, {size / 2**20:.1f} MiB")

    plain = getattr(curve.add_steps, "py_func", None)
    if plain is None:
        yield Check("compiler", WARNING, "Numba compiles nothing here", "unset NUMBA_DISABLE_JIT")
        return
    outcomes = []
    for function in (curve.add_steps, plain):
        times, none = curve.grid(7, 3), np.zeros((1, 7), np.int32)
        arrays, zero = curve.curve(1, times), np.zeros(1, np.uint64)
        path = none, none, none, none, none, np.full(1, 7), np.ones(1, np.int64), none
        function(0, times, arrays, np.array([[0.1]]), 0, zero, path)
        outcomes.append([array.tobytes() for array in arrays])
    same = outcomes[0] == outcomes[1]
    words = "a compiled function " + ("gives the bits of its plain form" if same else "and its plain form differ")
    yield judged("compiler", same, words, _emptied(folder))


def _emptied(folder: Path | None) -> str:
    return "reinstall numba" if folder is None else f"remove {folder} (it will be rebuilt), or reinstall numba"


def random_numbers() -> Iterator[Check]:
    import numpy as np

    from ravi.random import philox

    wrong = [
        counter
        for counter, key, words in RANDOM
        if tuple(int(word) for word in philox(*(np.uint64(word) for word in (*counter, *key)))) != words
    ]
    finding = (
        f"Philox does not give its published answer at {wrong[0]}" if wrong else "Philox gives its published answers"
    )
    yield judged("random numbers", not wrong, finding, _emptied(None))


def known_answer() -> Iterator[Check]:
    """RAVI-UCB on one state, with P known: pi_k(a) is proportional to exp(eta (k - 1) r(a)), a closed form."""
    import numpy as np

    import ravi
    from ravi.mdps import one_state_of

    r, eta = np.array([0.2, 0.9, 0.4]), 0.5
    gaps = ravi.run(f"ravi-ucb/known,eta={eta}", one_state_of(r, 0.8), steps=50, seeds=1).gap_k[0]
    weights = np.exp(eta * np.arange(len(gaps))[:, None] * r)
    expected = r.max() - weights @ r / weights.sum(1)
    error = float(np.abs(gaps - expected).max())
    words = f"a run of {len(gaps)} epochs is {error:.1e} from its closed form"
    yield judged("known answer", error < 1e-12, words, _emptied(None))


def fingerprint() -> str:
    """A hash of the bits of a small run."""
    import ravi

    done = ravi.run("ravi-ucb,scale=0.01", "riverswim/4", steps=500, seeds=2, points=20)
    return sha256(done.regret_curve.tobytes() + done.regret_error.tobytes() + done.last_policy.tobytes()).hexdigest()


def same_bits() -> Iterator[Check]:
    """The same run in this process and in a fresh one."""
    code = "from ravi.cli.doctor import fingerprint; print(fingerprint())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        yield Check("same bits", BROKEN, f"a fresh process cannot be run: {error}", "workers need to be started")
        return
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        yield Check("same bits", BROKEN, f"a fresh process fails: {reason}", "is ravi installed in this Python?")
    else:
        same = done.stdout.strip() == fingerprint()
        words = f"a fresh process gives {'the bits of this one' if same else 'other bits than this one'}"
        yield judged("same bits", same, words, _emptied(None))


# The machine.


def cores_and_memory() -> Iterator[Check]:
    from ravi.machine import blas, cores, cpu, memory, quota
    from ravi.machine import free_memory as available

    usable, present, share = cores(), os.cpu_count() or 1, quota()
    limit = f", a control group allows {share:g}" if share is not None else ""
    yield Check("cores", OK, f"{usable} of {present} to be used{limit} ({cpu() or 'unknown processor'})")

    total, free = memory(), available()
    sizes = ", ".join(f"{size / 2**30:.1f} GiB {what}" for size, what in ((total, "in all"), (free, "free")) if size)
    yield judged("memory", free is None or free >= LITTLE_MEMORY, sizes or "unknown", "use fewer workers", WARNING)

    held = blas()
    words = [f"{name}={value}" for name, value in held["environment"].items()]
    words += [f"{pool.get('internal_api')} x{pool.get('num_threads')}" for pool in held.get("loaded", ())]
    threads = ", ".join(words) or "threads as the library chooses"
    yield Check("BLAS", OK, f"{held['library']} {held['version']}; {threads}")


def graphics() -> Iterator[Check]:
    from ravi.machine import gpu

    names, command = gpu(), shutil.which("nvidia-smi")
    if command is not None:
        done = _called(command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
        if done is None or done.returncode:
            yield Check("GPU", WARNING, "nvidia-smi does not answer", "is the driver loaded? ravi runs without a GPU")
            return
        names = done.stdout.strip().splitlines()
    missing = [name for module, name in (("cupy", "CuPy"), ("numba_cuda", "numba-cuda")) if find_spec(module) is None]
    if not names:
        yield Check("GPU", ABSENT, "none; none is needed")
    elif missing:
        finding = f"{'; '.join(names)}; {' and '.join(missing)} not installed"
        yield Check("GPU", ABSENT, finding, f"for device=gpu: {install_command('gpu')}")
    else:
        yield _usable("; ".join(names))


def _called(*words: str) -> subprocess.CompletedProcess[str] | None:
    """What a command answers; None where it cannot be called, or takes too long."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return None


def _usable(names: str) -> Check:
    """Whether a run could go to the GPU: what CuPy finds, in a process of its own, since it may fail in its own way."""
    asked = "import cupy; free, total = cupy.cuda.runtime.memGetInfo(); print(cupy.__version__, free // 2**30)"
    done = _called(sys.executable, "-c", asked)
    if done is None:
        return Check("GPU", WARNING, f"{names}; CuPy does not answer", "does CuPy match the installed CUDA?")
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        return Check("GPU", WARNING, f"{names}; CuPy finds none: {why}", "does CuPy match the installed CUDA?")
    version, free = done.stdout.split()
    return Check("GPU", OK, f"{names}; CuPy {version}, {free} GiB free: device=gpu can be used")


def disk(folder: Path) -> Iterator[Check]:
    """Whether files can be kept here as a store keeps them: flushed, renamed, locked."""
    free = shutil.disk_usage(folder).free
    yield judged("disk", free >= LITTLE_DISK, f"{free / 2**30:.1f} GiB free in {folder}", "free some space", WARNING)

    try:
        inside = tempfile.mkdtemp(prefix=".ravi-doctor-", dir=folder)
    except OSError as error:
        finding = f"{folder} cannot be written: {error.strerror}"
        yield Check("files", WARNING, finding, "results can be read here, but not made")
        return
    try:
        yield from _files(Path(inside))
    finally:
        shutil.rmtree(inside, ignore_errors=True)


def _files(folder: Path) -> Iterator[Check]:
    from ravi.runtime import archive

    try:
        archive.write_file(folder / "file", lambda file: file.write(b"first"))
        archive.write_file(folder / "file", lambda file: file.write(b"second"))  # over the first
        if (folder / "file").read_bytes() != b"second":
            raise InputError("what was written is not what is read")
    except (InputError, OSError) as error:
        yield Check("files", BROKEN, f"no file can be flushed and renamed: {error}", "keep results on another disk")
        return
    hold = _locks(folder / "file")
    words = "flushed, renamed and locked" if hold else "flushed and renamed, but locks do not hold"
    advice = "launches that share a folder here do not see each other; their results are still right"
    yield judged("files", hold, words, advice, WARNING)


def _locks(path: Path) -> bool:
    import fcntl

    with open(path, "rb") as one, open(path, "rb") as other:
        try:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


# A folder of results.


def store(folder: Path) -> Iterator[Check]:
    """The checks of a folder of results: its files are there, and as they were written."""
    from ravi.lab.experiments.manifest import differing, manifest
    from ravi.lab.experiments.reproduce import altered
    from ravi.lab.experiments.results import results
    from ravi.lab.experiments.store import FOLDERS, Store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is said here
        held = results(folder)
    try:
        counts = held.counts
        finding = f"{held.suite.name}: {counts.done} of {counts.planned} runs done, {counts.failed} failed"
        yield judged("suite", not counts.failed, finding, "see the view `failures`", WARNING)
    except InputError as error:
        yield Check("suite", BROKEN, str(error), "launch the suite again into this folder")

    yield Check("parts", OK, f"{len(held.parts)} parts are whole, with {held.runs.num_rows} runs")
    for trouble in held.troubles:
        yield Check("trouble", BROKEN, str(trouble), "remove the file; launch again to make its runs anew")
    for run in altered(held):
        yield Check("altered", BROKEN, f"{run} does not have the hash that its row names", "it was changed by hand")
    for conflict in held.conflicts:
        yield Check("conflict", BROKEN, str(conflict), "find out which versions or machines made them: see manifests")

    reading = Store(folder)
    for path in sorted((folder / "mdps").glob("*.mdp")):
        why = _wrong_mdp(path)
        if why is not None:
            yield Check("trouble", BROKEN, f"mdps/{path.name}: {why}", "put the file of the MDP back")
    alive, under_way = reading.others(""), reading.checkpoints()
    if alive:
        yield Check("launches", OK, f"at work on it now: {', '.join(alive)}")
    if under_way:
        words = f"{len(under_way)} checkpoints of runs under way"
        yield judged("checkpoints", bool(alive), words, "launch again to go on with them", WARNING)
    for trouble in reading.troubles:
        yield Check("trouble", WARNING, str(trouble), "remove the file; its runs begin anew")

    left = [f"{name}/{file.name}" for name in FOLDERS for file in sorted((folder / name).glob(".ravi-*.tmp"))]
    left += [file.name for file in sorted(folder.glob(".ravi-*.tmp"))]
    if left and not alive:
        yield Check("leftovers", WARNING, f"half-written files: {', '.join(left)}", "the next launch removes them")

    now = manifest([], {})
    lines = dict.fromkeys(line for old in held.manifests.values() for line in differing(old, now))
    if lines:
        yield Check("versions", WARNING, "; ".join(lines), "runs made here may differ from these in the last bits")
    elif held.manifests:
        yield Check("versions", OK, "the versions installed here made the results")


def _wrong_mdp(path: Path) -> str | None:
    from ravi.core import MDP

    try:
        found: Any = MDP.load(path)
    except InputError as error:
        return str(error)
    return None if found.digest == path.stem else "damaged: it is not the MDP that its name says"


def doctor(folder: str | os.PathLike[str] | None = None) -> DoctorReport:
    """Check the installation and this machine; with a folder of results, that too."""
    place = Path.cwd() if folder is None else Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {place}")
    steps: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", python),
        ("packages", packages),
        ("extras", extras),
        ("compile cache", cache),
        ("random numbers", random_numbers),
        ("known answer", known_answer),
        ("same bits", same_bits),
        ("machine", cores_and_memory),
        ("gpu", graphics),
        ("disk", lambda: disk(place)),
    ]
    if folder is not None:
        steps.append(("results", lambda: store(place)))
    found: list[Check] = []
    for name, step in steps:
        try:
            found.extend(step())
        except Exception as error:  # a check that fails is a finding, and the others go on
            found.append(Check(name, BROKEN, f"{type(error).__name__}: {error}", "reinstall ravi, or report this"))
    return DoctorReport(found)
