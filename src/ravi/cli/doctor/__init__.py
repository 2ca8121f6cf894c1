"""The checks of an installation, and of a folder of results, with plain verdicts.

Nothing is repaired, nothing is fetched, and nothing heavy is imported that is not there. What is written to try the
disk is removed again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ravi.cli.doctor import installation, machine, results
from ravi.cli.doctor.report import BROKEN, Check, Report
from ravi.validation import InputError


def doctor(folder: str | os.PathLike[str] | None = None) -> Report:
    """Check the installation and this machine; with a folder of results, that too."""
    place = Path.cwd() if folder is None else Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {place}")
    steps: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", installation.python),
        ("packages", installation.packages),
        ("extras", installation.extras),
        ("compile cache", installation.cache),
        ("random numbers", installation.random_numbers),
        ("known answer", installation.known_answer),
        ("same bits", installation.same_bits),
        ("machine", machine.cores_and_memory),
        ("gpu", machine.graphics),
        ("disk", lambda: machine.disk(place)),
    ]
    if folder is not None:
        steps.append(("results", lambda: results.store(place)))
    checks: list[Check] = []
    for name, step in steps:
        try:
            checks.extend(step())
        except Exception as error:  # a check that fails is a finding, and the others go on
            checks.append(Check(name, BROKEN, f"{type(error).__name__}: {error}", "reinstall ravi, or report this"))
    return Report(checks)
