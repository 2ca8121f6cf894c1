"""The runs of a folder are made again, and their bits compared."""

import os
import tempfile
from collections.abc import Callable, Collection
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi.lab.experiments import plan
from ravi.lab.experiments.driver import Status
from ravi.lab.experiments.freezing import vetted
from ravi.lab.experiments.manifest import differing
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.results import Results, results
from ravi.lab.experiments.rows import digests as hashes
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.suite import Section, Suite
from ravi.lab.experiments.tuning import best
from ravi.runtime.result import versions
from ravi.runtime.world import find_world
from ravi.validation import InputError


class Reproduction(NamedTuple):
    folder: str
    stored: int  # runs that the folder holds
    compared: int
    different: list[str]  # ids of runs that came out with other bits
    altered: list[str]  # ids of runs whose rows do not have the hash that they name: they were changed since
    failed: list[str]  # ids of runs that failed this time
    changed: list[str]  # what can no longer be made as it was, and why
    versions: list[str]  # which differ from those of the folder

    @property
    def status(self) -> int:
        return int(bool(self.different or self.altered or self.failed or self.changed))

    def json(self) -> dict[str, Any]:
        return self._asdict() | {"reproduced": self.status == 0}

    def text(self) -> str:
        lines = [f"{self.folder}: {self.compared:,} of {self.stored:,} runs made again"]
        lines += [f"  versions differ: {line}" for line in self.versions]
        lines += [f"  cannot be compared: {line}" for line in self.changed]
        kinds = {"with other bits": self.different, "altered since they were stored": self.altered}
        for what, runs in (kinds | {"failed this time": self.failed}).items():
            lines += (
                [f"  {len(runs):,} {what}: {', '.join(runs[:5])}{', ...' if len(runs) > 5 else ''}"] if runs else []
            )
        lines += ["  every bit of them is the same"] if self.status == 0 else []
        return "\n".join(lines)


def reproduce(
    folder: str | os.PathLike[str],
    *,
    runs: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    allow_code: bool = False,
    progress: Callable[[Status], None] | None = None,
) -> Reproduction:
    """Make the runs of a folder again in another folder (all, or a number of them, chosen by their ids), and compare.

    What is compared are the numbers that are stored: a row must have the hash that it names, and the run must come out
    with that hash. Tuning must choose again what its record says. allow_code: the folder may name modules, which are
    then run (docs/guides/security.md).
    """
    held = results(folder)
    rows = held.table(["run", "setting", "seed", "digest"], where="failure IS NULL").to_pylist()
    if runs is not None:
        n = validation.whole(runs, "runs", 1)
        rows = sorted(rows, key=lambda row: sha256(row["run"].encode()).digest())[:n]
    if not rows:
        raise InputError(f"{folder} holds no run that succeeded: there is nothing to reproduce")
    vetted(held.suite, Store(held.folder), allow_code)
    now = {"versions": versions()}
    other = list(dict.fromkeys(line for made in held.manifests.values() for line in differing(made, now)))
    known, changed = _settings(held)
    changed += _other_choices(held)
    seeds: dict[str, list[int]] = {}
    digests: dict[str, str] = {}  # run -> what came out at first
    for row in rows:
        if row["setting"] in known:
            seeds.setdefault(row["setting"], []).append(row["seed"])
            digests[row["run"]] = row["digest"]
    if len(digests) < len(rows):
        changed.append(f"{len(rows) - len(digests):,} runs are not of the folder's suite and tuning as they are now")
    found: dict[str, str | None] = {}
    stopped: list[Status] = []

    def tell(status: Status) -> None:
        stopped[:] = [status] if status.stopping else []
        if progress is not None:
            progress(status)

    if seeds:
        sections = tuple(
            Section(
                name, (known[name].mdp,), {known[name].learner: known[name].learner}, (known[name].steps,),
                tuple(sorted(some)), points=known[name].points, record=known[name].record,
            )
            for name, some in seeds.items()
        )  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="ravi-reproduce-") as place:
            suite = Suite("reproduction", sections, device=held.suite.device)
            again = run_suite(suite, place, workers=workers, cluster=cluster, progress=tell).runs
            found = dict(zip(again["run"].to_pylist(), again["digest"].to_pylist(), strict=True))
    if stopped:
        raise KeyboardInterrupt("stopped before all runs were made again")
    different = [run for run, digest in digests.items() if found.get(run) not in (None, digest)]
    failed = [run for run in digests if found.get(run) is None]
    compared, wrong = len(digests) - len(failed), altered(held, {row["run"] for row in rows})
    return Reproduction(str(folder), len(held.runs), compared, different, wrong, failed, changed, other)


def altered(held: Results, runs: Collection[str] | None = None) -> list[str]:
    """The runs (of these, or all) whose stored numbers do not have the hash that their row names."""
    found = []
    every = held.runs["run"].to_pylist() if runs is None else runs
    for setting in sorted({run.rpartition("-")[0] for run in every}):
        rows = held.table(where=f"setting = '{setting}'")
        for run, named, true in zip(rows["run"].to_pylist(), rows["digest"].to_pylist(), hashes(rows), strict=True):
            if named != true and (runs is None or run in runs):
                found.append(run)
    return found


def _other_choices(held: Results) -> list[str]:
    """Tuning records that do not follow from the runs that they are about."""
    rows = held.runs.select(["setting", "seed", "regret"]).to_pylist()
    regrets = {(row["setting"], row["seed"]): inf if row["regret"] is None else row["regret"] for row in rows}
    lines = []
    for subject, record in held.tuning.items():
        if record.get("missing"):  # it has chosen nothing yet
            continue
        tried, seeds = record["configurations"], record["seeds"]
        means = [float(np.mean([regrets.get((one["setting"], s), inf) for s in seeds])) for one in tried]
        said = [inf if one["regret"] is None else one["regret"] for one in tried]
        if best(means) != record["chosen"] or not np.array_equal(means, said):
            lines.append(
                f"tuning/{subject}.json does not follow from its runs ({record['learner']} on {record['mdp']})"
            )
    return lines


def _settings(held: Results) -> tuple[dict[str, Setting], list[str]]:
    """Every setting of the folder's suite and its tuning, with its MDP where it can be found; what has changed."""
    store = Store(held.folder)
    frozen = plan.facts_from(store.specification() or {})
    changed: dict[str, str] = {}  # MDP or learner -> why it cannot be made as it was
    places = {}
    for name, digest in frozen.mdps.items():
        kept = store.mdp(digest)
        places[name] = name if kept is None else str(kept)
        try:
            if plan.digest_of(name, find_world(places[name])) != digest:
                changed[digest] = f"{name} is another MDP now"
        except InputError as error:
            changed[digest] = f"{name}: {error}"
    for name, fact in frozen.learners.items():
        try:
            if ids.source_of(name) != fact["source"]:
                changed[fact["source"]] = f"{name} is another learner now: its file has changed"
        except InputError as error:
            changed[fact["source"]] = f"{name}: {error}"
    sources = {fact["id"]: fact["source"] for fact in frozen.learners.values()}
    found = [one.setting for one in plan.planned(held.suite, frozen, held.tuning) if one.setting is not None]
    found += [
        Setting(record["mdp"], record["mdp_digest"], tried["learner"], sources[record["learner"]], record["steps"], 1)
        for record in held.tuning.values()
        for tried in record["configurations"]
        if record["learner"] in sources
    ]
    sound = {
        setting.digest: replace(setting, mdp=places.get(setting.mdp, setting.mdp))
        for setting in found
        if setting.mdp_digest not in changed and setting.source not in changed
    }
    return sound, list(changed.values())
