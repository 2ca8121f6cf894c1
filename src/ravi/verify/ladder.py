"""How far is each bound from the regret? The ladder: measured, certified, bounded with measured bonuses, explicit.

All rungs are means over seeds, on the scale of regret: sums over epochs are multiplied by H, the mean length of an
epoch (E sum_{t <= T+} gap_t = H E sum_k gap_k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi.theory import per_run
from ravi.verify.constants import explicit
from ravi.verify.evidence import Evidence


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
    )  # of the rungs that there are: one that is nan is not

    def rungs(self) -> list[tuple[str, float]]:
        values = (self.regret, self.epochs, self.certificate, self.lemma, self.explicit)
        there = values if len(self.labels) == len(values) else [value for value in values if not np.isnan(value)]
        return list(zip(self.labels, there, strict=True))

    def __str__(self) -> str:
        lines = [f"{'The ladder':32} {'value':>14} {'x regret':>12}"]
        for label, value in self.rungs():
            lines.append(f"{label:32} {value:14.6g} {value / self.regret if self.regret > 0 else np.nan:12.4g}")
        return "\n".join([*lines, f"{'(T x optimum)':32} {self.optimum:14.6g}"])


def ladder(e: Evidence) -> Ladder:
    H, s, scene = e.scene.H, e.audit.sums, e.scene
    star = scene.mu_star.sum(-1)
    V_first = scene.parts.initial_value
    # `last` is about epoch K + 1, K the epochs before the first invalid one
    ends = e.audit.last_V @ star - e.audit.last_value - (V_first @ star - e.audit.first)
    certificate = 2 * s.bonuses + ends + scene.entropy / scene.parts.eta + s.moves
    lemma = [
        per_run.printed(H, int(K), float(bonus), scene.entropy, scene.parts.eta).total if np.isfinite(bonus) else np.inf
        for K, bonus in zip(s.epochs, s.bonuses, strict=True)
    ]
    return Ladder(
        float(e.run.regret.mean()),
        float(H * s.gaps.mean()),
        float(H * certificate.mean()),
        float(H * np.mean(lemma)),
        float(explicit(scene)),
        float(e.run.steps * scene.solution.optimum),
    )
