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


class Ladder(NamedTuple):
    """The ladder of bounds on the regret, means over seeds; sums over epochs are multiplied by H, the mean length of an
    epoch (E sum_{t <= T+} gap_t = H E sum_k gap_k), and divided by M where M backups make an epoch."""

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
        gamma = f" (gamma {run.discount:g})" if run.discount < 1 else ""
        return (
            f"{run.learner} on {run.mdp}{gamma}, {run.steps:,} steps, "
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
