"""Checks of the installation: versions, the compile cache, random numbers, and runs against known answers."""

import platform
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from ravi.cli.doctor.report import ABSENT, BROKEN, OK, PATIENCE, WARNING, Check
from ravi.validation import install_command

PYTHON = "3.11"
ONES = 2**64 - 1
# Philox4x64-10, published with its reference implementation (Random123): counter, key, words.
RANDOM = [
    ((0, 0, 0, 0), (0, 0), (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)),
    ((ONES,) * 4, (ONES,) * 2, (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)),
]


def python() -> Iterator[Check]:
    version = f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"
    old = older(platform.python_version(), PYTHON)
    yield (
        Check("python", BROKEN, version, f"ravi needs Python {PYTHON} or newer")
        if old
        else Check("python", OK, version)
    )


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
    (least,) = (one.version for one in needed.specifier)
    if older(found, least):
        return Check(check, BROKEN, f"{needed.name} {found}, older than {least}", command)
    return Check(check, OK, f"{needed.name} {found}")


def older(version: str, least: str) -> bool:
    """Whether a version is before another; one in preparation counts as what it prepares."""
    return Version(Version(version).base_version) < Version(least)


def cache() -> Iterator[Check]:
    """Where compiled functions are kept, and whether one of them does what its plain form does."""
    import numpy as np

    from ravi._jit import cache as compile_cache
    from ravi.measures import curve

    folder = compile_cache.cache_folder(Path(curve.__file__))
    if folder is None:
        advice = "set RAVI_CACHE_DIR to a folder that is yours alone; until then every process compiles anew"
        yield Check("compile cache", WARNING, "no folder for it is safe and can be written", advice)
    else:
        size = sum(file.stat().st_size for file in folder.parent.rglob("*") if file.is_file())
        yield Check("compile cache", OK, f"{folder.parent}, {size / 2**20:.1f} MiB")

    plain = getattr(curve.add_steps, "py_func", None)
    if plain is None:
        yield Check("compiler", WARNING, "Numba compiles nothing here", "unset NUMBA_DISABLE_JIT")
        return
    outcomes = []
    for function in (curve.add_steps, plain):
        arrays = curve.curve(2, curve.grid(7, 3))
        zeros, table = np.zeros((2, 7), np.int32), np.array([[0.1]])
        function(0, 2, curve.grid(7, 3), *arrays, table, np.ones(2, np.int64), np.full(2, 7), zeros, zeros)
        outcomes.append([array.tobytes() for array in arrays])
    if outcomes[0] == outcomes[1]:
        yield Check("compiler", OK, "a compiled function gives the bits of its plain form")
    else:
        yield Check("compiler", BROKEN, "a compiled function and its plain form differ", _emptied(folder))


def _emptied(folder: Path | None) -> str:
    return "reinstall numba" if folder is None else f"remove {folder.parent} (it will be rebuilt), or reinstall numba"


def random_numbers() -> Iterator[Check]:
    import numpy as np

    from ravi.random import philox

    wrong = [
        counter
        for counter, key, words in RANDOM
        if tuple(int(word) for word in philox(*(np.uint64(word) for word in (*counter, *key)))) != words
    ]
    if wrong:
        finding = f"Philox does not give its published answer at {wrong[0]}"
        yield Check("random numbers", BROKEN, finding, _emptied(None))
    else:
        yield Check("random numbers", OK, "Philox gives its published answers")


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
    if error < 1e-12:
        yield Check("known answer", OK, f"a run of {len(gaps)} epochs is within {error:.0e} of its closed form")
    else:
        yield Check("known answer", BROKEN, f"a run is {error:.1e} from its closed form", _emptied(None))


def fingerprint() -> str:
    """A hash of the bits of a small run."""
    import ravi

    done = ravi.run("ravi-ucb,scale=0.01", "riverswim/4", steps=500, seeds=2, points=20)
    return sha256(done.regret_curve.tobytes() + done.regret_error.tobytes() + done.last_policy.tobytes()).hexdigest()


def same_bits() -> Iterator[Check]:
    """The same run in this process and in a fresh one."""
    code = "from ravi.cli.doctor.installation import fingerprint; print(fingerprint())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        yield Check("same bits", BROKEN, f"a fresh process cannot be run: {error}", "workers need to be started")
        return
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        yield Check("same bits", BROKEN, f"a fresh process fails: {reason}", "is ravi installed in this Python?")
    elif done.stdout.strip() != fingerprint():
        yield Check("same bits", BROKEN, "a fresh process gives other bits than this one", _emptied(None))
    else:
        yield Check("same bits", OK, "a fresh process gives the bits of this one")
