"""The checks of an installation, of this machine and of a folder of results, with plain verdicts.

Nothing is repaired, nothing is fetched, and nothing heavy is imported that is not there. A file that tries the disk is
removed again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ravi.cli import checks
from ravi.cli.checks import BROKEN, WARNING, Check
from ravi.display.printable import counted
from ravi.validation import InputError


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


def doctor(folder: str | os.PathLike[str] | None = None) -> DoctorReport:
    """Check the installation and this machine; with a folder of results, that too."""
    place = Path.cwd() if folder is None else Path(folder)
    if not place.is_dir():
        raise InputError(f"there is no folder {place}")
    steps: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", checks.python),
        ("packages", checks.packages),
        ("extras", checks.extras),
        ("compile cache", checks.cache),
        ("random numbers", checks.random_numbers),
        ("known answer", checks.known_answer),
        ("same bits", checks.same_bits),
        ("machine", checks.cores_and_memory),
        ("gpu", checks.graphics),
        ("disk", lambda: checks.disk(place)),
    ]
    if folder is not None:
        steps.append(("results", lambda: checks.store(place)))
    found: list[Check] = []
    for name, step in steps:
        try:
            found.extend(step())
        except Exception as error:  # a check that fails is a finding, and the others go on
            found.append(Check(name, BROKEN, f"{type(error).__name__}: {error}", "reinstall ravi, or report this"))
    return DoctorReport(found)
