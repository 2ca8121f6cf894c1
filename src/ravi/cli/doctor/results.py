"""Checks of a folder of results: everything is there, undamaged, and made by the versions installed here."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ravi.cli.doctor.report import BROKEN, OK, WARNING, Check
from ravi.validation import InputError


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
        yield Check(
            "suite", WARNING if counts.failed else OK, finding, "see the view `failures`" if counts.failed else ""
        )
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
        finding = f"{len(under_way)} checkpoints of runs under way"
        yield Check(
            "checkpoints", OK if alive else WARNING, finding, "" if alive else "launch again to go on with them"
        )
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
