"""Tuning of multipliers: equally many configurations for every learner, on other seeds than are reported.

Every learner gets the same list of pairs (scale, step_scale), and ignores what it has not. The list is a lattice in
the logarithms: the bonus multiplier goes down from the top of its range in equal steps, the step-size multiplier goes
through its own by the golden ratio, so that both are spread out alone and together. The first pair is the top of the
one range and the bottom of the other: the published constants, where the ranges are [.., 1] and [1, ..]. With the
sampler `optuna` the pairs after the first are instead chosen one by one by a tree-structured Parzen estimator, seeded
by what is tuned, so that the same results lead to the same choices.

The best is the pair with the smallest mean regret at T over the tuning seeds; the first of equals; a pair under which
any seed failed is out. Where a trial was lost (its worker died, the machine failed it) nothing is chosen: the record
says how many trials are missing, and the same command tries them again.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from math import inf, isclose, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.lab.experiments.suite import Tuning
from ravi.validation import InputError, install_command

if TYPE_CHECKING:
    from ravi.lab.experiments.agenda import Runs
    from ravi.lab.experiments.plan import Subject

GOLDEN = (5**0.5 - 1) / 2


class Configuration(NamedTuple):
    scale: float | None
    step_scale: float | None


Search = Generator[list[Configuration], list[float], None]  # what to try next, for the mean regrets of that before


def lattice(tuning: Tuning) -> list[Configuration]:
    """The pairs of a budget, each to three digits."""
    B = tuning.budget
    pairs = []
    for i in range(B):
        scale = _between(tuning.scale[1], tuning.scale[0], i / max(B - 1, 1))
        pairs.append(Configuration(scale, _between(*tuning.step_scale, i * GOLDEN % 1)))
    return pairs


def by_lattice(tuning: Tuning, multipliers: tuple[str, ...], subject: str) -> Search:
    """All pairs at once."""
    absent = dict.fromkeys(name for name in Configuration._fields if name not in multipliers)
    yield [pair._replace(**absent) for pair in lattice(tuning)]


def by_optuna(tuning: Tuning, multipliers: tuple[str, ...], subject: str) -> Search:
    """One pair after the other, by Optuna's tree-structured Parzen estimator."""
    optuna = _optuna()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=int(subject[:8], 16)))
    ranges = {"scale": tuning.scale, "step_scale": tuning.step_scale}
    first = {"scale": tuning.scale[1], "step_scale": tuning.step_scale[0]}
    study.enqueue_trial({name: first[name] for name in multipliers})
    for _ in range(tuning.budget):
        trial, given = study.ask(), dict.fromkeys(Configuration._fields)
        for name in multipliers:
            low, high = ranges[name]
            value = float(trial.suggest_float(name, low, high, log=True)) if low < high else low
            given[name] = _within(value, ranges[name])
        (regret,) = yield [Configuration(**given)]
        if isfinite(regret):
            study.tell(trial, regret)
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)


SAMPLERS = {"lattice": by_lattice, "optuna": by_optuna}


class Trials:
    """What is tried for one subject: configurations, each with its runs, in the order of trying."""

    def __init__(self, subject: Subject, tuning: Tuning) -> None:
        self.subject, self.tuning = subject, tuning
        self.search = SAMPLERS[tuning.sampler](tuning, subject.multipliers, subject.digest)
        self.tried: list[tuple[Configuration, Runs]] = []
        self.regrets: list[float] = []  # of the first of them

    def ask(self) -> list[Configuration] | None:
        """What to try next; nothing once the budget is spent, and None while some of what was tried is not settled."""
        late = [runs for _, runs in self.tried[len(self.regrets) :]]
        if any(runs.known(self.tuning.seeds) < len(self.tuning.seeds) for runs in late):
            return None
        regrets = [float(self._seen(runs).mean()) for runs in late]
        self.regrets += regrets
        try:
            return self.search.send(regrets) if regrets else next(self.search)
        except StopIteration:
            return []

    @property
    def lost(self) -> int:
        """Trials that were begun and came to nothing, by no fault of the learner."""
        return sum(runs.lost(self.tuning.seeds) for _, runs in self.tried)

    def _seen(self, runs: Runs) -> Array:
        """The regret under every tuning seed; inf where it failed, nan where it is missing."""
        return runs.regrets[runs.places(self.tuning.seeds)]

    def record(self) -> dict[str, Any]:
        """The tuning record: everything that was tried, and which is chosen, if no trial is missing."""
        base, seeds = self.subject.base, self.tuning.seeds
        missing = self.tuning.budget * len(seeds) - sum(runs.known(seeds) for _, runs in self.tried)
        tried = []
        for configuration, runs in self.tried:
            seen = self._seen(runs)
            n, sound = len(seen), bool(np.isfinite(seen).all())
            tried.append(
                configuration._asdict()
                | {
                    "learner": runs.setting.learner,
                    "setting": runs.setting.digest,
                    "regret": float(seen.mean()) if sound else None,
                    "standard_error": float(seen.std(ddof=1) / n**0.5) if sound and n > 1 else None,
                    "failed": int(np.isinf(seen).sum()),
                    "missing": int(np.isnan(seen).sum()),
                }
            )
        return {
            "subject": self.subject.digest, "mdp": base.mdp, "mdp_digest": base.mdp_digest, "learner": base.learner,
            "steps": base.steps, "sampler": self.tuning.sampler, "budget": self.tuning.budget,
            "ranges": {"scale": list(self.tuning.scale), "step_scale": list(self.tuning.step_scale)},
            "seeds": list(seeds), "configurations": tried, "missing": missing,
            "chosen": None if missing else best(self.regrets),
        }  # fmt: skip


def lacking(record: Mapping[str, Any] | None) -> str:
    """Why tuning has chosen nothing; nothing to say of a record that has."""
    if record is None:
        return "not tuned yet"
    if missing := record.get("missing"):
        trials = len(record.get("seeds") or ()) * (record.get("budget") or 0)
        return f"tuning incomplete: {missing} of {trials} trials missing"
    return "tuning failed" if record.get("chosen") is None else ""


def best(regrets: list[float]) -> int | None:
    """Which configuration is chosen; None where all failed."""
    least = min(regrets, default=inf)
    return regrets.index(least) if isfinite(least) else None


def at_edge(record: dict[str, Any]) -> list[str]:
    """The multipliers of a tuning record that were chosen at an end of their range, to three digits."""
    if record.get("chosen") is None:
        return []
    chosen = record["configurations"][record["chosen"]]
    ranges = {name: ends for name, ends in (record.get("ranges") or {}).items() if chosen.get(name) is not None}
    return [name for name, ends in ranges.items() if any(isclose(chosen[name], end, rel_tol=1e-3) for end in ends)]


def _between(start: float, end: float, share: float) -> float:
    return _within(start * (end / start) ** share, (min(start, end), max(start, end)))


def _within(value: float, ends: tuple[float, float]) -> float:
    """To three digits, and not beyond the ends."""
    return min(max(float(f"{value:.3g}"), ends[0]), ends[1])


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError(f"the sampler optuna needs Optuna: {install_command('tuning')}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
