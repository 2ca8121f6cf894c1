"""The machine at hand: its processor, cores, memory, GPUs and BLAS, as far as they can be found out."""

import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """The machine; None for what cannot be found out."""
    return {
        "system": platform.system(), "release": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip() or None, "cpu": cpu(), "cores": cores(),
        "cores_present": os.cpu_count(), "memory": memory(), "gpu": gpu(),
    }  # fmt: skip


def cpu() -> str | None:
    """The model of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Processor", "cpu model") and value.strip():
                return value.strip()
    return platform.processor() or None


def cores() -> int:
    """How many cores this process may use: by affinity, and by the limit of its control group."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = quota()
    return usable if share is None else max(1, min(usable, int(share + 0.5)))


def quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """How many cores' time the control group allows; None without a limit."""
    with suppress(OSError, ValueError, ZeroDivisionError):  # version 2
        most, period = (root / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    with suppress(OSError, ValueError, ZeroDivisionError):  # version 1
        spent = int((root / "cpu" / "cpu.cfs_quota_us").read_text())
        return None if spent < 0 else spent / int((root / "cpu" / "cpu.cfs_period_us").read_text())
    return None


def memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How many bytes there are, or the control group allows."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max": no limit
            found.append(int((root / name).read_text()))
    return min(found, default=None)


def gpu(root: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """The names of the GPUs that the driver tells of; nothing is started to find out."""
    found = []
    with suppress(OSError):
        for card in sorted(root.iterdir()):
            with suppress(OSError):
                for line in (card / "information").read_text().splitlines():
                    if line.startswith("Model:"):
                        found.append(line.partition(":")[2].strip())
    return found


def blas() -> dict[str, Any]:
    """The library that NumPy multiplies matrices with, as built and as loaded, and the threads that it may use."""
    import numpy as np

    built = np.show_config(mode="dicts") or {}
    blas = built.get("Build Dependencies", {}).get("blas", {})
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    found: dict[str, Any] = {
        "library": blas.get("name"),
        "version": blas.get("version"),
        "environment": {name: os.environ[name] for name in names if name in os.environ},
    }
    with suppress(ImportError):
        pools = import_module("threadpoolctl").threadpool_info()
        kept = ("internal_api", "version", "num_threads", "architecture", "threading_layer")
        found["loaded"] = [{key: pool[key] for key in kept if key in pool} for pool in pools]
    return found


UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def readable_size(size: float) -> str:
    """Bytes as people read them: 72 GB."""
    power = 0
    while size >= 999.5 and power < len(UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {UNITS[power]}"


def free_memory() -> int | None:
    """Bytes that this process may still take: of the machine, its control groups and its limits; None: not known."""
    known = [size for size in (_of_machine(), *_of_groups(), _of_limit()) if size is not None]
    return max(0, min(known)) if known else None


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_groups() -> Iterator[int]:
    """What each control group of the process, and those above it, have left; files that they could drop count as free.

    The files are those of version 2, then of version 1.
    """
    for folder in _groups():
        for most, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            with suppress(OSError, ValueError):  # the word max, too: no limit
                limit = int((folder / most).read_text())
                yield limit - int((folder / used).read_text()) + _droppable(folder)


def _droppable(folder: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return int(line.split()[1])
    return 0


@cache
def _groups() -> tuple[Path, ...]:
    """The folders of the memory's control groups that this process is in, as far as they set limits."""
    found: list[Path] = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers in ("", "memory"):
                top = Path("/sys/fs/cgroup", controllers)
                inner = top / group.lstrip("/")
                found += [inner, *(one for one in inner.parents if one.is_relative_to(top))]
    names = ("memory.max", "memory.limit_in_bytes")
    return tuple(one for one in dict.fromkeys(found) if any((one / name).is_file() for name in names))


def _of_limit() -> int | None:
    """What RLIMIT_AS leaves, where it is set."""
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * resource.getpagesize()
    return None
