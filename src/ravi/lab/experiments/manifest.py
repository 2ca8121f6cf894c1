"""A manifest of every launch: versions, the state of the source, the machine, the command."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import ravi
from ravi.machine import blas, machine

FORMAT = 1
PACKAGES = ("pyarrow", "duckdb", "ray", "optuna", "llvmlite", "threadpoolctl")  # besides those that `versions` names
PATIENCE = 10  # seconds that git, or a driver, is given to answer


def manifest(command: Sequence[str] | None, suite: dict[str, Any], device: str = "cpu") -> dict[str, Any]:
    """All that a launch was made by, as JSON. `command` is how it was called: that of this process, unless given.
    device: where its runs were made."""
    from ravi.runtime.result import versions

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
    from ravi.runtime.result import versions

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


def _blas(held: dict[str, Any]) -> str | None:
    """What bits may depend on in BLAS: the library, its version, its kernels and its threads."""
    told = held.get("blas", {})
    loaded = {
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')} x{pool.get('num_threads')}"
        for pool in told.get("loaded", ())
        if pool.get("internal_api") not in (None, "openmp")
    }
    return ", ".join([f"{told.get('library')} {told.get('version')}", *sorted(loaded)]) if told else None
