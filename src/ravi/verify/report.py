"""The report of `ravi verify`: claim, where, kind, measured, bound, margin, verdict."""

from __future__ import annotations

import html
import json
import math
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array
from ravi.display import html as display
from ravi.display.printable import counted
from ravi.runtime.result import Run
from ravi.theory import doubling
from ravi.verify.books import Evidence, Worst
from ravi.verify.chance import Interval, student
from ravi.verify.claim import Claim
from ravi.verify.ladder import Ladder
from ravi.verify.scene import Scene, delta_of

ALARM = 1e-6  # the false-alarm probability of one statistical claim


class Row(NamedTuple):
    """A line of the table: a claim, and what was found."""

    id: str
    statement: str
    where: str
    kind: str
    measured: float
    bound: float
    margin: float  # bound - measured; of an equality, the room that is left
    verdict: str  # "holds", "violated", or why it was not measured
    note: str
    tolerance: float = 0.0  # what rounding, or chance, is granted

    @property
    def holds(self) -> bool:
        return self.verdict != "violated"

    def shown(self) -> tuple[float, float, float]:
        """Measured, bound and margin as the table shows them: with what rounding is granted."""
        return self.measured, self.bound + self.tolerance, self.margin + self.tolerance


def judged(
    claim: Claim, scene: Scene, evidence: Evidence, measured: Array, bound: Array, law: Interval | None = None, *,
    epochs: Array | None = None, reached: Array | None = None,
) -> Row:  # fmt: skip
    """The verdict on a claim, from the worst case of each seed (D, P) or from the value of each seed (E)."""
    measured, bound = np.asarray(measured, float), np.asarray(bound, float)
    if reached is not None and not reached.any():
        why = "no epoch has valid bonuses" if claim.conditional else "nothing to measure"
        return Row(*claim[:4], math.nan, math.nan, math.nan, "not reached", why)
    if claim.kind == "E":
        return _expectation(claim, scene, measured, float(bound), law)
    rows = slice(None) if reached is None else reached
    margins = (bound - measured)[rows]
    tolerance = 1e-8 * max(float(evidence.audit.seen.max()), 1.0) if claim.phase == "prefix" else scene.atol
    failed = ~(margins >= -tolerance)  # a nan fails
    index = int(np.argmin(np.where(np.isnan(margins), -np.inf, margins)))
    note = "" if epochs is None else f"epoch {int(epochs[rows][index])}" if epochs[rows][index] else "last epoch"
    worst = (float(measured[rows][index]), float(bound[rows][index]), float(margins[index]))
    if claim.kind == "P":
        tail = _tail(failed, min(claim.events * delta_of(scene), 1.0))
        note = f"{int(failed.sum())} of {len(failed)} seeds fail" if failed.any() else note
        return Row(*claim[:4], *worst, "violated" if tail < ALARM else "holds", note, tolerance)
    return Row(*claim[:4], *worst, "violated" if failed.any() else "holds", note, tolerance)


def worst_case(claim: Claim, scene: Scene, evidence: Evidence, worst: Worst, index: int) -> Row:
    """The verdict on a claim that was measured as the run went on: the `index`-th of those in `worst`.

    Where there are phases, from the worst case in any. A claim of probability about backups fails in phase i with
    probability delta_i = 1 / l_i at most; with l = 1 these add up to more than 1, so it is not judged for a run as a
    whole: it is rejected where, for some phase, so many of the n seeds fail in it that Binomial(n, delta_i) does with
    probability below ALARM, divided by the number of phases.
    """
    margin, *rest = (part[..., index] for part in worst)  # (n, phases)
    order = np.where(np.isnan(margin), -np.inf, margin).argmin(1)[:, None]  # the phase with the least room
    measured, bound, epoch = (np.take_along_axis(part, order, 1)[:, 0] for part in rest)
    reached = (margin != math.inf).any(1)  # what it starts at; a nan was reached
    one = claim.kind != "P" or scene.of is None or claim.phase in ("epoch", "pair")
    known = claim if one else claim._replace(kind="D")
    row = judged(known, scene, evidence, measured, bound, epochs=epoch, reached=reached)._replace(kind=claim.kind)
    if one or not reached.any():
        return row
    failed = ~(margin >= -scene.atol)  # a nan fails
    n, count = failed.shape
    tails = [_tail(failed[:, i], 1 / doubling.length(i, scene.first)) for i in range(count)]
    i = int(np.argmin(tails))
    note = f"{int(failed[:, i].sum())} of {n} seeds fail in phase {i}" if failed.any() else row.note
    return row._replace(verdict="violated" if tails[i] < ALARM / count else "holds", note=note)


def _tail(failed: Array, delta: float) -> float:
    """The probability that as many seeds fail, where each does with probability delta."""
    from scipy.stats import binom

    return float(binom.sf(failed.sum() - 1, len(failed), delta)) if failed.any() else 1.0


def _expectation(claim: Claim, scene: Scene, values: Array, bound: float, law: Interval | None) -> Row:
    """From the mean of the seeds; of several means, the one with the least room."""
    if bound == math.inf:
        return Row(
            *claim[:4], float(values.mean()), bound, math.inf, "not applicable", "constants are not the theorem's"
        )
    n, means = len(values), values.mean(0)
    if law is None and n < 3:
        return Row(*claim[:4], float(means), bound, math.nan, "too few seeds", "")
    low, high = (law or student(values, bound))(ALARM / means.size)
    rooms = np.ravel(np.minimum(means - low, high - means))
    index = int(np.argmin(np.where(np.isnan(rooms), -np.inf, rooms)))
    mean, room = float(np.ravel(means)[index]), float(rooms[index])
    verdict = "holds" if room >= -scene.atol else "violated"  # a nan is a violation
    error = f"± {float(values.reshape(n, -1)[:, index].std(ddof=1)) / math.sqrt(n):.3g}" if n > 1 else ""
    return Row(*claim[:4], mean, bound, room if claim.equality else bound - mean, verdict, error)


class Report:
    """The table of one run. Prints itself, filters, exports; `holds` and `status` sum it up."""

    def __init__(self, rows: list[Row], ladder: Ladder, run: Run, invalid_at: Array) -> None:
        self.rows, self.ladder, self.run, self.invalid_at = rows, ladder, run, invalid_at

    @property
    def measured(self) -> int:
        """The number of claims that were measured."""
        return sum(row.verdict in ("holds", "violated") for row in self.rows)

    @property
    def holds(self) -> bool:
        """Whether claims were measured, and none of them is violated."""
        return self.measured > 0 and not self.failed()

    @property
    def status(self) -> int:
        """0 when every claim that was measured holds, 1 when one is violated, 2 when none was measured."""
        return 0 if self.holds else 1 if self.measured else 2

    def failed(self) -> list[Row]:
        return [row for row in self.rows if not row.holds]

    def __getitem__(self, id: str) -> Row:
        for row in self.rows:
            if row.id == id:
                return row
        raise KeyError(id)

    def text(self, *, failed: bool = False) -> str:
        rows = self.failed() if failed else self.rows
        lines = [self._head(), ""]
        lines.append(f"{'':2}{'claim':6} kind {'measured':>11} {'bound':>11} {'margin':>11}  verdict")
        for row in rows:
            numbers = " ".join(f"{value:11.4g}" for value in row.shown())
            note = f" ({row.note})" if row.note else ""
            mark = "  " if row.holds else "! "
            lines.append(f"{mark}{row.id:6} {row.kind:4} {numbers}  {row.verdict}{note}")
            lines.append(f"{'':9}{row.where}: {row.statement}")
        return "\n".join([*lines, "", str(self.ladder), "", self.summary()])

    def summary(self) -> str:
        bad, measured = self.failed(), self.measured
        first = self.invalid_at[self.invalid_at > 0]
        where = f"{counted(len(first), 'seed')}, first in epoch {int(first.min())}" if len(first) else ""
        stop = f" Bonuses were invalid in {where}." if where else ""
        if not measured:
            return f"Nothing was measured: {counted(len(self.rows), 'claim')} not measured.{stop}"
        if not bad:
            hold = "The claim holds" if measured == 1 else f"All {measured} claims hold"
            return f"{hold} ({len(self.rows) - measured} not measured).{stop}"
        return f"{len(bad)} of {measured} claims are violated: {', '.join(row.id for row in bad)}.{stop}"

    def _head(self) -> str:
        run = self.run
        return (
            f"{run.learner} on {run.mdp} (gamma {run.discount:g}), {run.steps:,} steps, "
            f"{counted(len(run.seeds), 'seed')}; D deterministic, P with probability 1 - delta, E in expectation"
        )

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:  # what a notebook shows
        head = ("claim", "where", "statement", "kind", "verdict", "measured", "bound", "margin")
        rows = [
            (row.id, row.where, row.statement, row.kind, row.verdict, *(f"{value:.4g}" for value in row.shown()))
            for row in self.rows
        ]
        words = f"<div>{html.escape(self._head())}</div>"
        return display.summary(self.summary(), (), words, display.table(head, rows, 5, most=len(rows)))

    def json(self) -> dict[str, Any]:
        """As data; numbers that JSON has no word for are None."""

        def clean(value: Any) -> Any:
            return None if isinstance(value, float) and not math.isfinite(value) else value

        run = self.run
        return {
            "mdp": run.mdp, "learner": run.learner, "discount": run.discount, "steps": run.steps, "seeds": run.seeds,
            "settings": run.settings, "versions": run.versions, "holds": self.holds,
            "invalid_at": [int(k) for k in self.invalid_at],
            "claims": [{key: clean(value) for key, value in row._asdict().items()} for row in self.rows],
            "ladder": {key: clean(value) for key, value in self.ladder._asdict().items()},
        }  # fmt: skip

    def html(self) -> str:
        """The table as a page of its own."""
        cells = "\n".join(
            f"<tr class='{'ok' if row.holds else 'bad'}'><th scope='row'>{html.escape(row.id)}</th>"
            f"<td>{html.escape(row.statement)}</td><td>{html.escape(row.where)}</td><td>{row.kind}</td>"
            + "".join(f"<td class='number'>{value:.4g}</td>" for value in row.shown())
            + f"<td>{html.escape(row.verdict)} {html.escape(row.note)}</td></tr>"
            for row in self.rows
        )
        names = ("claim", "statement", "where", "kind", "measured", "bound", "margin", "verdict")
        header = "".join(f"<th scope='col'>{name}</th>" for name in names)
        return PAGE.format(
            title=html.escape(self._head()), header=header, rows=cells,
            ladder=html.escape(str(self.ladder)), summary=html.escape(self.summary()),
            data=json.dumps(self.json()).replace("<", "\\u003c"),
        )  # fmt: skip


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>ravi verify</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.bad td, .bad th {{ background: #d5520033; font-weight: 600; }}
pre {{ overflow-x: auto; }}
</style></head><body>
<h1>ravi verify</h1><p>{title}</p><p><strong>{summary}</strong></p>
<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>
{rows}
</tbody></table></div>
<h2>The ladder</h2><pre>{ladder}</pre>
<script type="application/json" id="data">{data}</script>
</body></html>
"""
