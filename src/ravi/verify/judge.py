"""The judge: a run is recorded, every claim is measured on the record of each seed, and gets a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Learner
from ravi.display.progress import Progress
from ravi.theory import doubling
from ravi.verify import chance, lemmas
from ravi.verify.claim import Claim
from ravi.verify.record import Backups, Played, run_recorded
from ravi.verify.report import Ladder, Report, Row
from ravi.verify.setting import RunSetting

ALARM = 1e-6  # the false-alarm probability of one statistical claim
OF_BACKUPS = ("backup", "step", "prefix", "plan")  # what `Claim.per` may be where the record is `Backups`


class Worst(NamedTuple):
    """The row with the least room, of one seed or of one phase of it."""

    margin: float = math.inf
    measured: float = math.nan
    bound: float = math.nan
    epoch: int | None = None  # 0 after the last; None where it is of no epoch
    phase: int = 0

    @property
    def reached(self) -> bool:
        return not (math.isnan(self.measured) and self.margin == math.inf)


class Form(NamedTuple):
    """What a learner on an MDP is held against, and how."""

    learner: Learner
    setting: RunSetting
    claims: list[Claim]
    bound: float  # of its regret; infinite where none is proven
    rungs: tuple[Callable[[Backups], Array], Callable[[Backups], Array]] = (lemmas.certificate, lemmas.right_side)
    plan_of: Callable[[Played], Any] | None = None  # where plans are on sets of kernels

    def report(
        self, chosen: Sequence[Claim], seeds: int | Iterable[int], progress: Progress | bool | None = None
    ) -> Report:
        """The chosen claims, on these seeds."""
        setting = self.setting
        with np.errstate(all="ignore"):  # a broken learner brings inf and nan: violated claims, not warnings
            once = {claim.id: [[worst(*claim.measure(setting))]] for claim in chosen if claim.per == "once"}
            made, records = run_recorded(setting, self.learner, seeds, progress, self.plan_of)
            found: list[list[Any]] = [[] for _ in chosen]
            invalid_at, rungs, epochs = [], [], 1
            for s in records:
                for claim, by_seed in zip(chosen, found, strict=True):
                    if claim.per != "once":
                        by_seed.append(claim.measure(s) if claim.kind == "E" else in_phases(claim, s))
                invalid_at.append(first_invalid(s))
                rungs.append(self._rungs(s))
                epochs = max(epochs, s.K)
            rows = [
                in_mean(claim, setting, by_seed) if claim.kind == "E"
                else in_rows(claim, setting, once.get(claim.id, by_seed), epochs)
                for claim, by_seed in zip(chosen, found, strict=True)
            ]  # fmt: skip
        return Report(rows, self._ladder(np.mean(rungs, axis=0)), made, np.array(invalid_at))

    def _rungs(self, s: Played) -> list[float]:
        """Regret, gaps, certificate and lemma of a seed: of the first comparator, summed over phases."""
        setting, certified = self.setting, np.zeros(3)
        if setting.undiscounted:
            return [s.regret, math.nan, s.invalid_steps if setting.sets else math.nan, math.nan]
        if setting.sets is not None:
            return [s.regret, math.nan, float((s.lengths * s.plan.charge).sum()), math.nan]
        for one in s.sequences:
            v = int(one.valid.sum())
            certified += [part(one)[v, 0] for part in (lemmas.gaps, *self.rungs)]
        certified *= setting.H / setting.parts.inner  # one of M is played
        return [float(s.lost[: setting.steps, 0].sum()) if setting.world else s.regret, *certified]

    def _ladder(self, rungs: Array) -> Ladder:
        setting, T = self.setting, self.setting.steps
        best: Any = setting.solution
        optimum = T * (best.optimum if setting.average is None else best.gain)
        if setting.world is not None:
            optimum = setting.world.expected(T) @ setting.against.rho[0]
        ladder = Ladder(*(float(rung) for rung in (*rungs, self.bound, optimum)))  # type: ignore[arg-type]
        if setting.sets is None and not setting.undiscounted:
            return ladder
        middle = "steps under invalid plans" if setting.undiscounted else "what K5 charges its plays with"
        return ladder._replace(labels=("measured regret", middle, "explicit bound"))


def first_invalid(s: Played) -> int:
    """The first epoch with an invalid bonus, or plan; 0 for none."""
    if s.setting.undiscounted and s.setting.sets is None:
        return 0
    if s.setting.sets is not None:
        return 0 if s.plan.valid.all() else int(s.plan.valid.argmin()) + 1
    for one in s.sequences:
        if not one.valid.all():
            return int(one.k[one.valid.argmin()]) or s.K + 1
    return 0


# ---- what is measured


def in_phases(claim: Claim, s: Played) -> list[Worst]:
    """The worst row of a seed; of claims about backups, of every phase that it reached."""
    if claim.per == "run":
        return [worst(*claim.measure(s))]
    if claim.per not in OF_BACKUPS:
        first = 1 if claim.per == "epoch" else 2
        return [worst(*claim.measure(s), epochs=[*range(first, s.K + 1), 0])]
    found = []
    for one in s.sequences:
        in_epochs = one.epochs.start + 1 + np.arange(one.epochs.stop)
        epochs = {"backup": one.k, "plan": in_epochs}.get(claim.per, one.k_after)
        valid = one.valid if claim.conditional else None
        found.append(worst(*claim.measure(one), epochs=epochs, valid=valid)._replace(phase=one.setting.phase))
    return found


def worst(
    measured: Any, bound: Any, *, epochs: Sequence[int] | Array | None = None, valid: Array | None = None
) -> Worst:
    measured, bound = np.broadcast_arrays(np.atleast_1d(np.asarray(measured, float)), bound)
    margin = bound - measured if valid is None else np.where(valid, bound - measured, np.inf)
    if not len(margin):
        return Worst()
    index = int(np.argmin(np.where(np.isnan(margin), -np.inf, margin)))
    if epochs is not None and margin[index] == np.inf:
        return Worst()
    epoch = None if epochs is None else int(epochs[index])
    return Worst(float(margin[index]), float(measured[index]), float(bound[index]), epoch)


# ---- verdicts


def in_rows(claim: Claim, setting: RunSetting, found: Sequence[Sequence[Worst]], epochs: int = 1) -> Row:
    """The verdict on a claim about every row (D, P), from the worst of each seed and phase.

    Where there are phases, a claim of probability about backups fails in phase i with probability delta_i = 1 / l_i at
    most; with l = 1 these add up to more than 1, so it is not judged for a run as a whole: it is rejected where, for
    some phase, so many of the n seeds fail in it that Binomial(n, delta_i) does with probability below ALARM, divided
    by the number of phases.
    """
    tolerance = 1e-8 * epochs if claim.per == "prefix" else setting.atol
    seeds = [one for one in (min(phases, key=_room) for phases in found) if one.reached]
    if not seeds:
        why = "no epoch has valid bonuses" if claim.conditional else "nothing to measure"
        return Row(*claim[:4], math.nan, math.nan, math.nan, "not reached", why)
    least, failed = min(seeds, key=_room), [_fails(one, tolerance) for one in seeds]
    violated, where = any(failed), ""
    if claim.kind == "P" and setting.of is not None and claim.per in OF_BACKUPS:
        fails = [{one.phase for one in phases if _fails(one, tolerance)} for phases in found]
        count = len(setting.phases)
        lost = [sum(i in phases for phases in fails) for i in range(count)]
        tails = [tail(lost[i], len(found), 1 / doubling.length(i, setting.first)) for i in range(count)]
        worst_phase = int(np.argmin(tails))
        where = f"{lost[worst_phase]} of {len(found)} seeds fail in phase {worst_phase}" if any(lost) else ""
        violated = tails[worst_phase] < ALARM / count
    elif claim.kind == "P":
        where = f"{sum(failed)} of {len(failed)} seeds fail" if any(failed) else ""
        violated = tail(sum(failed), len(failed), min(claim.events * setting.delta, 1.0)) < ALARM
    epoch = "" if least.epoch is None else f"epoch {least.epoch}" if least.epoch else "last epoch"
    verdict = "violated" if violated else "holds"
    return Row(*claim[:4], least.measured, least.bound, least.margin, verdict, where or epoch, tolerance)


def _room(one: Worst) -> float:
    """A nan has the least."""
    return -math.inf if math.isnan(one.margin) else one.margin


def _fails(one: Worst, tolerance: float) -> bool:
    return not one.margin >= -tolerance  # a nan fails


def tail(failed: int, n: int, delta: float) -> float:
    """The probability that as many of n seeds fail, where each does with probability delta."""
    from scipy.stats import binom

    return float(binom.sf(failed - 1, n, delta)) if failed else 1.0


def in_mean(claim: Claim, setting: RunSetting, found: Sequence[Any]) -> Row:
    """The verdict on a claim in expectation, from the value of each seed, the bound of their mean and what is known of
    chance; of several means, on the one with the least room."""
    values, bound = np.array([one[0] for one in found], float), float(found[0][1])
    n, means = len(values), values.mean(0)
    if bound == math.inf:
        why = "constants are not the theorem's"
        return Row(*claim[:4], float(values.mean()), bound, math.inf, "not applicable", why)
    known = [one[2] if len(one) > 2 else None for one in found]
    if known[0] is None and n < 3:
        return Row(*claim[:4], float(means), bound, math.nan, "too few seeds", "")
    low, high = chance.law(known, values, bound)(ALARM / means.size)
    rooms = np.ravel(np.minimum(means - low, high - means))
    index = int(np.argmin(np.where(np.isnan(rooms), -np.inf, rooms)))
    mean, room = float(np.ravel(means)[index]), float(rooms[index])
    verdict = "holds" if room >= -setting.atol else "violated"  # a nan is a violation
    error = f"± {float(values.reshape(n, -1)[:, index].std(ddof=1)) / math.sqrt(n):.3g}" if n > 1 else ""
    return Row(*claim[:4], mean, bound, room if claim.equality else bound - mean, verdict, error)
