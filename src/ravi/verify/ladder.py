"""The ladder of bounds on the regret: measured, certified, bounded with measured bonuses, explicit.

All rungs are means over seeds, on the scale of regret: sums over epochs are multiplied by H, the mean length of an
epoch (E sum_{t <= T+} gap_t = H E sum_k gap_k).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ravi.core import Array
from ravi.verify import lemmas
from ravi.verify.books import Evidence, Totals
from ravi.verify.scene import Scene


class Ladder(NamedTuple):
    regret: float  # sum_{t <= T} gap_t
    epochs: float  # H sum_k gap_k
    certificate: float  # H times the exact right side of Lemma 4.3's proof (A15c)
    lemma: float  # H times the right side of Lemma 4.3 with the measured bonuses (A15)
    explicit: float  # the theorem, corrected; infinite where the constants are not its own
    optimum: float  # T rho*: what any policy's regret is below
    labels: tuple[str, ...] = (
        "measured regret",
        "H x sum of the epochs' gaps",
        "exact certificate (A15c)",
        "Lemma 4.3, measured bonuses",
        "explicit bound",
    )  # plans on sets of kernels have every other rung

    def rungs(self) -> list[tuple[str, float]]:
        values = (self.regret, self.epochs, self.certificate, self.lemma, self.explicit)
        return list(zip(self.labels, values if len(self.labels) == len(values) else values[::2], strict=True))

    def __str__(self) -> str:
        lines = [f"{'The ladder':32} {'value':>14} {'x regret':>12}"]
        for label, value in self.rungs():
            lines.append(f"{label:32} {value:14.6g} {value / self.regret if self.regret > 0 else np.nan:12.4g}")
        return "\n".join([*lines, f"{'(T x optimum)':32} {self.optimum:14.6g}"])


Rung = Callable[[Scene, Totals], Array]  # of one phase, against each comparator   (n, C)


def ladder(e: Evidence, explicit: float, certificate: Rung, lemma: Rung) -> Ladder:
    """Against the first comparator, summed over phases; sums over backups are divided by M: one of M is played."""
    scene, best = e.scene, 0
    if scene.sets is not None:
        values = float(e.run.regret.mean()), np.nan, float(e.audit.own.sums.certified.mean()), np.nan, explicit
        labels = ("measured regret", "what K5 charges its plays with", "explicit bound")
        return Ladder(*values, float(e.run.steps * scene.solution.optimum), labels)
    rungs = np.zeros((3, e.n))
    for i, phase in enumerate(scene.phases):
        totals = Totals(*(part[:, i] for part in e.audit.past))
        found = lemmas.gaps(phase.against, totals), certificate(phase, totals), lemma(phase, totals)
        rungs += np.where(e.audit.ended[:, i], [part[:, best] for part in found], 0.0)
    world, T = scene.world, e.run.steps
    gaps, certified, bounded = (float(scene.H / scene.parts.inner * rung.mean()) for rung in rungs)
    regret = float((e.run.regret if world is None else e.audit.turned.regret[:, best]).mean())
    optimum = T * scene.solution.optimum if world is None else world.expected(T) @ scene.against.rho[best]
    return Ladder(regret, gaps, certified, bounded, float(explicit), float(optimum))
