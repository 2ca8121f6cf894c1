"""Does a folder come out the same again? Its runs are made anew, and their bits compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ravi import checks, ids
from ravi.checks import InputError
from ravi.experiments import plan
from ravi.experiments.manifest import differing
from ravi.experiments.results import Results, results
from ravi.experiments.runner import Status, run_suite
from ravi.experiments.settings import Setting, run_id
from ravi.experiments.specification import Section, Suite, importable
from ravi.experiments.store import Store
from ravi.runs import versions


class Reproduction(NamedTuple):
    folder: str
    stored: int  # runs that the folder holds
    compared: int
    different: list[str]  # ids of runs that came out with other bits
    failed: list[str]  # ids of runs that failed this time
    changed: list[str]  # why some runs could not be made again: what they were made of has changed
    versions: list[str]  # which differ from those of the folder

    @property
    def status(self) -> int:
        return int(bool(self.different or self.failed or self.changed))

    def json(self) -> dict[str, Any]:
        return self._asdict() | {"reproduced": self.status == 0}

    def text(self) -> str:
        lines = [f"{self.folder}: {self.compared:,} of {self.stored:,} runs made again"]
        lines += [f"  versions differ: {line}" for line in self.versions]
        lines += [f"  cannot be made again: {line}" for line in self.changed]
        for what, runs in (("with other bits", self.different), ("failed this time", self.failed)):
            lines += (
                [f"  {len(runs):,} {what}: {', '.join(runs[:5])}{', ...' if len(runs) > 5 else ''}"] if runs else []
            )
        lines += ["  every bit is the same"] if self.status == 0 else []
        return "\n".join(lines)


def reproduce(
    folder: str | os.PathLike[str],
    *,
    runs: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[Status], None] | None = None,
) -> Reproduction:
    """Make the runs of a folder again (or so many of them, chosen by their ids), elsewhere, and compare."""
    held = results(folder)
    wanted = _chosen(held, runs)
    if not wanted:
        raise InputError(f"{folder} holds no run that succeeded: there is nothing to reproduce")
    now = {"versions": versions()}
    other = list(dict.fromkeys(line for made in held.manifests.values() for line in differing(made, now)))
    known, changed = _settings(held)
    sections: list[Section] = []
    digests: dict[str, str] = {}  # run -> what came out at first
    for setting, seeds in wanted.items():
        if setting in known:
            sections.append(_section(known[setting], sorted(seeds)))
            digests |= {run_id(setting, seed): digest for seed, digest in seeds.items()}
    if not sections:
        return Reproduction(str(folder), len(held.runs), 0, [], [], changed, other)
    with tempfile.TemporaryDirectory(prefix="ravi-reproduce-") as place:
        suite = Suite("reproduction", tuple(sections), folder=held.suite.folder)
        again = run_suite(suite, place, workers=workers, cluster=cluster, progress=progress)
        found = dict(
            zip(*(again.table(["run", "digest"])[name].to_pylist() for name in ("run", "digest")), strict=True)
        )
    different = [run for run, digest in digests.items() if found.get(run) not in (None, digest)]
    failed = [run for run in digests if found.get(run) is None]
    return Reproduction(str(folder), len(held.runs), len(digests) - len(failed), different, failed, changed, other)


def _chosen(held: Results, runs: int | None) -> dict[str, dict[int, str]]:
    """Setting -> seed -> digest, of runs that succeeded; the first so many by the hashes of their ids."""
    table = held.table(["setting", "seed", "digest", "failure"])
    rows = [row for row in table.to_pylist() if row["failure"] is None]
    if runs is not None:
        least = checks.whole(runs, "runs", 1)
        rows = sorted(rows, key=lambda row: sha256(run_id(row["setting"], row["seed"]).encode()).digest())[:least]
    wanted: dict[str, dict[int, str]] = {}
    for row in rows:
        wanted.setdefault(row["setting"], {})[row["seed"]] = row["digest"]
    return wanted


def _settings(held: Results) -> tuple[dict[str, Setting], list[str]]:
    """Every setting of the folder's suite and its tuning, with its MDP where it can be found; what has changed."""
    store, suite = Store(Path(held.folder)), held.suite
    frozen = plan.facts_from(store.specification() or {})
    importable(suite.folder)
    changed = []
    places = {name: str(store.mdp(digest) or name) for name, digest in frozen.mdps.items()}
    for name, digest in frozen.mdps.items():
        if ids.mdp(places[name]).digest != digest:
            changed.append(f"{name} is another MDP now")
    for name, fact in frozen.learners.items():
        if ids.source_of(name) != fact["source"]:
            changed.append(f"{name} is another learner now: its file has changed")
    found: dict[str, Setting] = {}
    for setting in plan.settings(suite, frozen, held.tuning):
        if setting is not None:
            found[setting.digest] = setting
    for record in held.tuning.values():
        for tried in record["configurations"]:
            source = next((f["source"] for f in frozen.learners.values() if f["id"] == record["learner"]), "")
            setting = Setting(record["mdp"], record["mdp_digest"], tried["learner"], source, record["steps"], 1)
            found[setting.digest] = setting
    return {
        digest: Setting(places.get(s.mdp, s.mdp), s.mdp_digest, s.learner, s.source, s.steps, s.points, s.record)
        for digest, s in found.items()
    }, changed


def _section(setting: Setting, seeds: list[int]) -> Section:
    return Section(
        name=setting.digest,
        mdps=(setting.mdp,),
        learners={setting.learner: setting.learner},
        steps=(setting.steps,),
        seeds=tuple(seeds),
        points=setting.points,
        record=setting.record,
    )
