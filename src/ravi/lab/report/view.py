"""The progress of a folder of results, read as runs arrive while others write into it; nothing is written.

Parts are read once, as they come. What is known of a learner is the mean regret of the runs that are there, which may
still move: seeds that take long come last.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.validation import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from ravi.lab.experiments.schedule.plan import Facts
    from ravi.lab.experiments.schedule.settings import Setting
    from ravi.lab.experiments.store import Store
    from ravi.lab.experiments.suite_file.specification import Entry, Suite
    from ravi.statistics import Interval

COLUMNS = ("setting", "seed", "failure", "error", "regret", "seconds", "mdp", "learner", "launch")
MEMORY, ENOUGH = 120.0, 5.0  # seconds over which the speed is measured, at most and at least
FAILURES = 5  # that are told, the last ones


class Failure(NamedTuple):
    mdp: str
    learner: str
    seed: int
    error: str


class Runs:
    """The runs of one setting that are there: 17 bytes for each."""

    def __init__(self) -> None:
        self.seeds = np.empty(0, np.int64)  # ascending
        self.failed = np.empty(0, bool)
        self.regrets = np.empty(0)
        self.seconds = 0.0  # of computing, of all rows
        self.rows = 0

    def add(self, seeds: np.ndarray, failed: np.ndarray, regrets: np.ndarray, seconds: np.ndarray) -> None:
        """More rows. A run that is there twice counts once, and as a success if either is."""
        held = (self.seeds, self.failed, self.regrets)
        new = zip(held, (seeds, failed, regrets), strict=True)
        every = [np.concatenate(pair) for pair in new]
        order = np.lexsort((every[1], every[0]))
        _, first = np.unique(every[0][order], return_index=True)
        self.seeds, self.failed, self.regrets = (array[order][first] for array in every)
        self.seconds += float(np.nansum(seconds))
        self.rows += int((~failed).sum())

    def of(self, seeds: np.ndarray) -> tuple[np.ndarray, int]:
        """The regrets of these seeds that succeeded, and how many of them failed."""
        mine = np.isin(self.seeds, seeds)
        return self.regrets[mine & ~self.failed], int((mine & self.failed).sum())


class Line(NamedTuple):
    """How far one entry of the suite is."""

    entry: Entry
    setting: Setting | None  # None: tuning has not chosen
    untuned: str  # why tuning has not chosen, where it has not
    hopeless: bool  # it has tried everything, and all of it failed
    done: int
    failed: int
    mean: Interval | None

    @property
    def planned(self) -> int:
        return len(self.entry.seeds)

    @property
    def left(self) -> int:
        return 0 if self.hopeless else self.planned - self.done - self.failed


class View:
    """What a folder has held so far. `look` reads what is new."""

    def __init__(self, folder: Path) -> None:
        from ravi.lab.experiments.store import Store

        self.folder = folder
        self.store: Store = Store(folder)
        self.suite: Suite | None = None
        self.waiting = ""  # what for
        self.lines: list[Line] = []
        self.runs: dict[str, Runs] = {}  # by setting
        self.parts = 0
        self.failures: deque[Failure] = deque(maxlen=FAILURES)
        self.alive: list[str] = []
        self.launches: dict[str, dict[str, Any]] = {}
        self.made: dict[str, int] = {}  # launch -> rows
        self.checkpoints: list[tuple[str, str]] = []  # setting, name
        self.troubles: list[str] = []
        self.tuning = (0, 0)  # subjects that have chosen, of so many
        self.trials = (0, 0)  # runs for tuning, of at most so many
        self._facts: Facts | None = None
        self._frozen = b""
        self._records: dict[str, dict[str, Any]] = {}  # of tuning
        self._names: dict[str, set[tuple[str, int, int]]] = {}  # of files that were read
        self._means: dict[tuple[str, int, int], Interval] = {}  # setting, runs there, entry -> mean
        self._marks: deque[tuple[float, float, int]] = deque()  # time, seconds of computing, runs

    # Reading.

    def look(self, now: float) -> bool:
        """Read what has come since the last look; whether runs have."""
        if not self._specified():
            return False
        before = self.parts
        for table in self.store.read(COLUMNS):
            self.parts += 1
            self._take(table)
        chosen = self._new("tuning")
        if chosen:
            self._records = self.store.tuning()
        self._others()
        if chosen or self.parts > before or not self.lines:
            self._plan()
        self._marks.append((now, sum(runs.seconds for runs in self.runs.values()), self.arrived))
        while self._marks[-1][0] - self._marks[0][0] > MEMORY:
            self._marks.popleft()
        return self.parts > before

    def _specified(self) -> bool:
        """Whether the folder says what is to be run; a suite that was extended is read again."""
        from ravi.lab.experiments.schedule.plan import facts_from
        from ravi.lab.experiments.suite_file.specify import specify

        path = self.folder / "specification.json"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            self.waiting = "it is not there yet" if not self.folder.exists() else "it has no specification.json yet"
            return False
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        if content != self._frozen:
            held = self.store.specification()
            if held is None:
                return False
            self.suite, self._facts, self._frozen = specify(held["suite"], build=False), facts_from(held), content
            self.lines = []
        self.waiting = ""
        return True

    def _take(self, table: pa.Table) -> None:
        names = table["setting"].combine_chunks().dictionary_encode()
        which = names.indices.to_numpy()
        columns = {name: table[name].to_numpy() for name in ("seed", "regret", "seconds")}
        failed = table["failure"].is_valid().to_numpy()
        for code, name in enumerate(names.dictionary.to_pylist()):
            mine = which == code
            rows = (columns["seed"][mine], failed[mine], columns["regret"][mine], columns["seconds"][mine])
            self.runs.setdefault(name, Runs()).add(*(np.asarray(array) for array in rows))
        for launch in table["launch"].to_pylist():
            self.made[launch] = self.made.get(launch, 0) + 1
        for row in table.filter(table["failure"].is_valid()).to_pylist() if failed.any() else ():
            self.failures.append(Failure(row["mdp"], row["learner"], row["seed"], row["error"] or row["failure"]))

    def _others(self) -> None:
        """Read again what is small: manifests, names of checkpoints, troubles."""
        self.alive = self.store.others("")
        if self._new("manifests"):
            self.launches = self.store.manifests()
        paths = sorted((self.folder / "checkpoints").glob("*.run"))
        self.checkpoints = [(path.name.split("-")[0], path.name) for path in paths]
        self.troubles = list(dict.fromkeys(map(str, self.store.troubles)))

    def _new(self, name: str) -> bool:
        """Whether JSON files have come into this folder, or have been replaced by others."""
        found = {_state(path) for path in (self.folder / name).glob("*.json")}
        before, self._names[name] = self._names.get(name, set()), found
        return found != before

    def _plan(self) -> None:
        """Which setting scores every entry, as tuning has chosen by now, and how far it is."""
        from ravi.lab.experiments.schedule import plan

        assert self.suite is not None
        assert self._facts is not None
        records = self._records
        found = plan.settings(self.suite, self._facts, records)
        subjects = {}
        self.lines = []
        for place, (entry, setting) in enumerate(zip(self.suite.entries, found, strict=True)):
            subject = plan.subject_of(entry, self._facts, self.suite.tuning)
            if subject is not None:
                subjects[subject.digest] = subject
            record = None if subject is None else records.get(subject.digest)
            self.lines.append(self._line(place, entry, setting, record))
        tuning = self.suite.tuning
        final = [digest for digest in subjects if digest in records and not records[digest].get("missing")]
        self.tuning = (len(final), len(subjects))
        scored = {setting.digest for setting in found if setting is not None}
        trials = sum(len(runs.seeds) for name, runs in self.runs.items() if name not in scored)
        self.trials = (trials, len(subjects) * tuning.budget * len(tuning.seeds))

    def _line(self, place: int, entry: Entry, setting: Setting | None, record: dict[str, Any] | None) -> Line:
        from ravi.lab.experiments.schedule.tuning import lacking
        from ravi.statistics import interval

        untuned = "" if setting is not None else "being tuned" if record is None else lacking(record)
        hopeless = setting is None and record is not None and not record.get("missing")
        runs = None if setting is None else self.runs.get(setting.digest)
        if setting is None or runs is None:
            return Line(entry, setting, untuned, hopeless, 0, 0, None)
        regrets, failed = runs.of(np.array(entry.seeds, np.int64))
        key = (setting.digest, len(regrets), place)
        if len(regrets) and key not in self._means and np.isfinite(regrets).all():  # a large world has none
            self._means[key] = interval(regrets)
        return Line(entry, setting, untuned, hopeless, len(regrets), failed, self._means.get(key))

    # What it comes to.

    @property
    def arrived(self) -> int:
        return sum(len(runs.seeds) for runs in self.runs.values())

    @property
    def finished(self) -> bool:
        """Whether nothing is left that the suite asks for."""
        return bool(self.lines) and not any(line.left for line in self.lines)

    @property
    def totals(self) -> tuple[int, int, int]:
        """Runs done, failed and planned; a run that several entries ask for counts once."""
        asked: dict[Any, set[int]] = {}
        for line in self.lines:
            entry = line.entry
            alike = (entry.mdp, entry.learner, entry.steps, entry.points, entry.record)
            asked.setdefault(alike if line.setting is None else line.setting.digest, set()).update(entry.seeds)
        done = failed = 0
        for name, seeds in asked.items():
            if name in self.runs:
                regrets, bad = self.runs[name].of(np.array(sorted(seeds), np.int64))
                done, failed = done + len(regrets), failed + bad
        return done, failed, sum(map(len, asked.values()))

    @property
    def rate(self) -> float | None:
        """Runs a second over the last minutes; None as long as none has arrived under these eyes."""
        (first, _, before), (last, _, after) = self._marks[0], self._marks[-1]
        return (after - before) / (last - first) if last - first >= ENOUGH and after > before else None

    @property
    def work_left(self) -> float | None:
        """Seconds of computing, by the times seen of each setting, and by the step where there are none."""
        timed = [(runs, line) for line in self.lines if (runs := self._timed(line)) is not None]
        steps = sum(runs.rows * line.entry.steps for runs, line in timed)
        if not steps:
            return None
        each = sum(runs.seconds for runs, _ in timed) / steps
        left = 0.0
        for line in self.lines:
            runs = self._timed(line)
            left += line.left * (each * line.entry.steps if runs is None else runs.seconds / runs.rows)
        if self.suite is not None and self.tuning[0] < self.tuning[1]:
            trials = max(0, self.trials[1] - self.trials[0])
            left += trials * each * sum(line.entry.steps for line in self.lines) / len(self.lines)
        return left

    def _timed(self, line: Line) -> Runs | None:
        runs = None if line.setting is None else self.runs.get(line.setting.digest)
        return runs if runs is not None and runs.rows else None

    @property
    def time_left(self) -> float | None:
        """Seconds, if it goes on as over the last minutes."""
        work = self.work_left
        (first, before, _), (last, after, _) = self._marks[0], self._marks[-1]
        if work is None or last - first < ENOUGH or after <= before:
            return None
        return work * (last - first) / (after - before)


def _state(path: Path) -> tuple[str, int, int]:
    """What changes when a file is replaced: its inode and time, beside its name."""
    with suppress(OSError):  # it was replaced just now
        found = path.stat()
        return path.name, found.st_ino, found.st_mtime_ns
    return path.name, 0, 0
