"""What this machine offers: cores, memory, a GPU, and a disk that keeps files as a store needs it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ravi.cli.doctor.report import ABSENT, BROKEN, OK, PATIENCE, WARNING, Check
from ravi.validation import InputError, install_command

LITTLE_DISK, LITTLE_MEMORY = 2**30, 2**30  # bytes, below which there is a warning


def cores_and_memory() -> Iterator[Check]:
    from ravi.machine import blas, cores, cpu, memory, quota
    from ravi.machine import free_memory as available

    usable, present, share = cores(), os.cpu_count() or 1, quota()
    limit = f", a control group allows {share:g}" if share is not None else ""
    yield Check("cores", OK, f"{usable} of {present} to be used{limit} ({cpu() or 'unknown processor'})")

    total, free = memory(), available()
    sizes = ", ".join(f"{size / 2**30:.1f} GiB {what}" for size, what in ((total, "in all"), (free, "free")) if size)
    if free is not None and free < LITTLE_MEMORY:
        yield Check("memory", WARNING, sizes, "use fewer workers")
    else:
        yield Check("memory", OK, sizes or "unknown")

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
        return Check("GPU", WARNING, f"{names}; CuPy does not answer", "is CuPy that of the installed CUDA?")
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        return Check("GPU", WARNING, f"{names}; CuPy finds none: {why}", "is CuPy that of the installed CUDA?")
    version, free = done.stdout.split()
    return Check("GPU", OK, f"{names}; CuPy {version}, {free} GiB free: device=gpu can be used")


def disk(folder: Path) -> Iterator[Check]:
    """Whether files can be kept here as a store keeps them: flushed, renamed, locked."""
    free = shutil.disk_usage(folder).free
    finding = f"{free / 2**30:.1f} GiB free in {folder}"
    yield Check("disk", WARNING, finding, "free some space") if free < LITTLE_DISK else Check("disk", OK, finding)

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
    if _locks(folder / "file"):
        yield Check("files", OK, "flushed, renamed and locked")
    else:
        advice = "launches that share a folder here cannot tell each other; their results are still right"
        yield Check("files", WARNING, "flushed and renamed, but locks do not hold", advice)


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
