"""The runs that a suite would make, counted exactly, and their time, estimated by short pilots."""

import os
import time
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from ravi import validation
from ravi.display.printable import ENDLESS, columns, counted, printable, titled
from ravi.display.progress import Progress
from ravi.lab.experiments import plan
from ravi.lab.experiments.agenda import GUESS, Agenda
from ravi.lab.experiments.driver import settled
from ravi.lab.experiments.freezing import chosen, compared
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.runner import shard_of
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.suite import Entry
from ravi.lab.experiments.work import briefly, until
from ravi.machine import cores
from ravi.runtime import api as engine
from ravi.runtime.world import World

PILOT_STEPS, PILOT_SEEDS = 2000, 64  # at most
PILOT_SECONDS, PILOT_MOST = 30.0, 2.0  # for all pilots, and for one; the rest is reckoned by the mean of those made

Pair = tuple[str, str]  # the MDP's digest and the learner's name, whatever its options


class Line(NamedTuple):
    """The runs of one learner on one MDP."""

    section: str
    mdp: str
    label: str
    column: str
    steps: int
    runs: int  # that are reported
    tuning: int  # that come before
    seconds: float  # of computing, for all of them


class Forecast(NamedTuple):
    suite: str
    lines: list[Line]
    runs: int  # in all, tuning among them; every run counts once
    reported: int  # of which are no tuning
    stored: int  # of which are in the folder
    seconds: float  # of computing, for the rest
    workers: int
    pilots: int  # pairs of MDP and learner that were timed
    pairs: int  # of MDP and learner in all

    def json(self) -> dict[str, Any]:
        found = self._asdict() | {"lines": [line._asdict() for line in self.lines]}
        return found | {"wall_seconds": self.seconds / self.workers}

    def text(self, width: int = ENDLESS) -> str:
        rows: list[tuple[str, ...]] = [("section", "MDP", "learner", "column", "T", "runs", "tuning", "seconds")]
        for line in self.lines:
            names = map(printable, (line.section, titled(line.mdp), line.label, line.column))
            rows.append((*names, *(f"{n:,}" for n in (line.steps, line.runs, line.tuning)), f"{line.seconds:,.1f}"))
        lines = columns(rows, "llllrrrr", width)
        minutes = self.seconds / self.workers / 60
        wall = f"{minutes * 60:,.0f} s" if minutes < 2 else f"{minutes:,.0f} min" if minutes < 120 else ""
        wall = wall or f"{minutes / 60:,.1f} h"
        lines += [
            "",
            f"{self.suite}: {runs_of(self.reported, self.runs)}, {self.stored:,} of them stored already; "
            f"about {wall} on {counted(self.workers, 'worker')}.",
            f"Reckoned from pilots of up to {PILOT_STEPS:,} steps of {self.pilots} of {self.pairs} pairs of MDP "
            "and learner; expect it to be out by a factor of two.",
        ]
        return "\n".join(lines)


def forecast(
    suite: str | os.PathLike[str] | Mapping[str, Any],
    folder: str | os.PathLike[str] | None = None,
    *,
    seeds: Any = None,
    workers: int | None = None,
    shard: str | None = None,
    adopt: bool = False,
    retry: bool = False,
    mix_versions: bool = False,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> Forecast:
    """Say what `run_suite` would do. Nothing is written."""
    wanted, own = chosen(suite, seeds, allow_code)
    mdps: dict[str, World] = {}
    store = None if folder is None else Store(Path(folder))
    if store is None:
        facts = plan.facts_of(wanted, mdps)
    else:  # what `run_suite` would refuse is refused
        facts, mdps = compared(wanted, store, own, adopt, mix_versions)
    agenda = Agenda(wanted, facts, shard_of(shard), keep=lambda subject, record: None)
    for table in settled(store, retry) if store is not None else ():
        agenda.settle(table)
    agenda.advance()
    n = cores() if workers is None else validation.whole(workers, "workers")
    pairs: dict[Pair, tuple[Entry, int]] = {}  # an entry of each, and its largest T
    for entry in wanted.entries:
        pair = _pair(plan.setting_of(entry, facts))
        pairs[pair] = (entry, max(entry.steps, pairs.get(pair, (entry, 0))[1]))
    speeds = _pilots(pairs, mdps, ceil(n / max(1, len(pairs))), progress)
    mean = sum(speeds.values()) / len(speeds) if speeds else GUESS
    for one in agenda.runs.values():
        one.pace = speeds.get(_pair(one.setting), mean)
    lines = []
    for entry in wanted.entries:
        setting, tuned = plan.setting_of(entry, facts), plan.subject_of(entry, facts, wanted.tuning) is not None
        tuning = wanted.tuning.budget * len(wanted.tuning.seeds) if tuned else 0
        seconds = (len(entry.seeds) + tuning) * entry.steps * speeds.get(_pair(setting), mean)
        runs = len(entry.seeds)
        lines.append(Line(entry.section, entry.mdp, entry.label, entry.column, entry.steps, runs, tuning, seconds))
    left = agenda.seconds_left
    known, waiting = plan.asked(plan.planned(wanted, facts, {}))
    reported = len(known) + waiting
    return Forecast(wanted.name, lines, agenda.total, reported, agenda.done, left, n, len(speeds), len(pairs))


def runs_of(reported: int, every: int) -> str:
    """How many runs a suite is: those that it reports, and those of tuning."""
    parts = f" ({reported:,} reported, {every - reported:,} for tuning)" if every > reported else ""
    return counted(every, "run") + parts


def _pair(setting: Setting) -> Pair:
    return setting.mdp_digest, setting.learner.split(",")[0]


def _pilots(
    pairs: dict[Pair, tuple[Entry, int]], mdps: dict[str, World], parts: int, progress: Progress | None
) -> dict[Pair, float]:
    """Seconds a step and seed of every learner on every MDP, as far as the time for pilots goes.

    As many seeds go side by side as in a run, whose seeds are dealt out in so many parts.
    """
    began, speeds = time.monotonic(), {}
    for number, (pair, (entry, T)) in enumerate(pairs.items()):
        if time.monotonic() - began > PILOT_SECONDS:
            break
        if progress is not None:
            progress(number, len(pairs))
        steps, seeds = min(T, PILOT_STEPS), min(ceil(len(entry.seeds) / parts), PILOT_SEEDS)
        mdp = mdps[entry.mdp]
        try:
            learner = briefly(mdp.learner(entry.learner, T), mdp, entry.learner)
            engine.run(learner, mdp, 1, 1, keep_epochs=False, progress=False, threads=1)  # compiles
            stop = until(time.perf_counter() + PILOT_MOST)
            made = engine.run(
                learner, mdp, steps, seeds, points=1, keep_epochs=False, stop=stop, progress=False, threads=1
            )
        except Exception:  # it will fail in its run too, and be a row there
            continue
        speeds[pair] = made.seconds / int(made.plays.sum())
    return speeds
