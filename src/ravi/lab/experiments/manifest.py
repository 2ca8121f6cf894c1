"""What made these results? A manifest of every launch: versions, the state of the source, the machine, the command."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import ravi

FORMAT = 1
PACKAGES = ("pyarrow", "duckdb", "ray", "optuna", "llvmlite", "threadpoolctl")  # besides those that `versions` names
PATIENCE = 10  # seconds that git, or a driver, is given to answer


def manifest(command: Sequence[str] | None, suite: dict[str, Any], device: str = "cpu") -> dict[str, Any]:
    """All that a launch was made by, as JSON. `command` is how it was called: that of this process, unless given.
    device: where its runs were made."""
    from ravi.runs import versions

    return {
        "format": FORMAT,
        "versions": versions() | installed(PACKAGES),
        "git": git(Path(ravi.__file__).parent),
        "machine": machine(),
        "blas": blas(),
        "command": [str(word) for word in (sys.argv if command is None else command)],
        "folder": os.getcwd(),
        "device": device,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),  # for people: nothing is decided by it
        "suite": suite,
    }


def differing(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The differences between two manifests on which bits may depend, one line each.

    The versions that every run carries are always compared; the compiler's back end, the processor and BLAS where both
    manifests name them.
    """
    from ravi.runs import versions

    lines = []
    for name in versions():
        old, new = (held.get("versions", {}).get(name) or "unknown" for held in (was, now))
        lines += [f"{name}: {old}, then {new}"] if old != new else []
    for name, found in (
        ("llvmlite", lambda held: held.get("versions", {}).get("llvmlite")),
        ("cpu", lambda held: held.get("machine", {}).get("cpu")),
        ("BLAS", _blas),
    ):
        old, new = found(was), found(now)
        lines += [f"{name}: {old}, then {new}"] if old and new and old != new else []
    return lines


def installed(names: Sequence[str]) -> dict[str, str]:
    """The versions of those packages that are installed; none is imported."""
    found = {}
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def git(inside: Path) -> dict[str, Any] | None:
    """The commit of the checkout that a folder is in, and whether it differs from it; None where there is none."""

    def ask(*words: str) -> str | None:
        alone = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        alone |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                ["git", "-C", str(inside), *words], capture_output=True, timeout=PATIENCE, env=alone, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.decode(errors="replace").strip()

    top = ask("rev-parse", "--show-toplevel")
    if top is None or ask("ls-files", "--error-unmatch", "__init__.py") is None:  # installed inside a foreign checkout
        return None
    changes = ask("status", "--porcelain", "--untracked-files=normal", "--", ".")
    return {"commit": ask("rev-parse", "--verify", "HEAD"), "dirty": None if changes is None else bool(changes)}


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
    told = built.get("Build Dependencies", {}).get("blas", {})
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    found: dict[str, Any] = {
        "library": told.get("name"),
        "version": told.get("version"),
        "environment": {name: os.environ[name] for name in names if name in os.environ},
    }
    with suppress(ImportError):
        pools = import_module("threadpoolctl").threadpool_info()
        kept = ("internal_api", "version", "num_threads", "architecture", "threading_layer")
        found["loaded"] = [{key: pool[key] for key in kept if key in pool} for pool in pools]
    return found


def _blas(held: dict[str, Any]) -> str | None:
    """What bits may depend on in BLAS: the library, its version, its kernels and its threads."""
    told = held.get("blas", {})
    loaded = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')} x{pool.get('num_threads')}"
        for pool in told.get("loaded", ())
        if pool.get("internal_api") not in (None, "openmp")
    }
    return ", ".join([f"{told.get('library')} {told.get('version')}", *sorted(loaded)]) if told else None
