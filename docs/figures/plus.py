"""The worth of RAVI-UCB+: the tables and the figures of docs/explanation/plus.md, from the suite `plus`.

python docs/figures/plus.py FOLDER    runs what FOLDER lacks of the suite, draws, and writes the tables
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ravi
from ravi.display.style import DOUBLE, Drawn, legend_below, line, looks, panels, styled
from ravi.lab.report.tables import table
from ravi.statistics import compare, interval, scores

HERE = Path(__file__).parent
PAGE = HERE.parent / "explanation" / "plus.md"
SECTIONS = ("provable", "provable-elsewhere", "provable-long", "tuned", "tuned-mixture", "parts", "parts-mixture")
PROVABLE, TUNED = SECTIONS[:3], SECTIONS[3:5]
PLUS, BASE = "ravi-ucb+", "ravi-ucb"
SMALLER, SAME, LARGER = "smaller", "not significantly different", "larger"
# Learners that have a theorem for the MDP at hand, in the form that is run here: about regret, about the regret along
# the trajectory, or about the number of bad steps. Not among them: PSRL (on average over a prior), MD-MPI without
# sweeps, NPG, POLITEX, MDP-E and O-REPS (known or mixing kernels), Liu and Su's (a reconstruction), and yardsticks.
BOUNDED = (
    PLUS, BASE, "ucrl2", "ucrl2b", "kl-ucrl", "scal", "scal+", "mbie", "mbie-eb", "ucbvi-gamma", "r-max", "delayed-q",
    "ucb-q",
)  # fmt: skip


class Cell(NamedTuple):
    """A mean of a table on the page."""

    text: str  # as it stands there
    value: float


def held(page: str, name: str) -> str:
    """What stands in a place of the page."""
    found = re.search(rf"<!-- {re.escape(name)} -->\n(.*?)<!-- end -->", page, re.DOTALL)
    if not found:
        raise SystemExit(f"{PAGE} has no place for {name}")
    return found[1]


def means(page: str, section: str) -> dict[tuple[str, str], dict[str, Cell]]:
    """The means of a section's table as the page shows them: by MDP and column, then by learner."""
    rows = [line.strip("| ").split(" | ") for line in held(page, section).splitlines() if line.startswith("| ")]
    head, _, *body = rows
    places = [tuple(name.rsplit(", ", 1)) for name in head[1:]]
    shown = [(row[0], [cell.split()[0].strip("*†") for cell in row[1:]]) for row in body]
    return {
        place: {learner: Cell(cells[i], float(cells[i].replace(",", ""))) for learner, cells in shown}
        for i, place in enumerate(places)
    }


def smallest(page: str) -> str:
    """Who has the smallest regret of the learners with a bound, from the tables of the page, in Markdown."""
    rows = []
    where: dict[bool, dict[str, None]] = {True: {}, False: {}}  # the MDPs where it is RAVI-UCB+ alone, and the others
    for section in PROVABLE:
        T = re.search(r"T = ([\d,]+)", held(page, section))[1]
        for (mdp, _), cells in means(page, section).items():
            rivals = {name: cells[name] for name in BOUNDED if name in cells}
            least = min(cell.value for cell in rivals.values())
            first = [name for name, cell in rivals.items() if cell.value == least]
            where[first == [PLUS]][mdp] = None
            rows.append(f"| {mdp} | {T} | {', '.join(first)} | {rivals[first[0]].text} | {rivals[PLUS].text} |")
    if where[True].keys() & where[False].keys():
        raise SystemExit("who has the smallest regret changes with T: say so in `smallest`")
    yes, no = ("; ".join(f"`{mdp}`" for mdp in where[which]) for which in (True, False))
    said = f"Of the learners here with a bound, RAVI-UCB+ has the smallest mean regret on {yes}. It does not on {no}."
    head = "| MDP | T | smallest of those with a bound | its regret | RAVI-UCB+ |\n|---|---|---|---|---|"
    return "\n".join([said, "", head, *rows])


def gains(page: str) -> str:
    """By what factors RAVI-UCB+ has less regret than RAVI-UCB, both tuned, from the tables of the page."""
    found = {}
    for section in TUNED:
        for (mdp, column), cells in means(page, section).items():
            if column == "tuned":
                ours = next(name for name in cells if name.startswith(PLUS))
                found[mdp] = cells[ours.replace(PLUS, BASE)].value / cells[ours].value
    shown = {mdp: f"{factor:.1f}" if factor < 10 else f"{factor:.0f}" for mdp, factor in found.items()}
    order = sorted(found, key=lambda mdp: found[mdp])
    told = "; ".join(f"{shown[mdp]} on `{mdp}`" for mdp in order)
    ends = f"{shown[order[0]]} to {shown[order[-1]]}"
    return f"RAVI-UCB+ gains a factor of {ends} over RAVI-UCB with the same tuning budget: {told}."


def written(page: str, name: str, text: str) -> str:
    """The page with a text in its place."""
    return page.replace(f"<!-- {name} -->\n{held(page, name)}", f"<!-- {name} -->\n{text.rstrip()}\n", 1)


def against(results: ravi.Results, section: str, told: tuple[str, ...] = (SMALLER, SAME, LARGER)) -> str:
    """The regret of the other learners minus that of RAVI-UCB+, paired by seed, in Markdown; only these verdicts."""
    first = PLUS
    found = scores(results, section=section)
    rows = []
    for mdp in found.mdps:
        gaps = {other: compare(found, first, other, mdp) for other in found.learners if other != first}
        for other, gap in sorted(gaps.items(), key=lambda pair: pair[1].difference.estimate):
            one = gap.difference
            verdict = LARGER if one.low > 0 else SMALLER if one.high < 0 else SAME
            if verdict in told:
                ends = f"{one.low:,.0f} to {one.high:,.0f}"
                rows.append(f"| {mdp} | {other} | {one.estimate:,.0f} | {ends} | {verdict} |")
    head = f"| MDP | learner | its regret minus that of {first} | 95 % interval, paired | its regret is |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def growth(results: ravi.Results) -> Drawn:
    """Regret against M, H, d and X."""
    told = {
        "inner-steps": ("M, backups an epoch", lambda row: float(re.search(r"inner=(\d+)", row["label"])[1])),
        "horizon": ("H", lambda row: 1 / (1 - float(re.search(r"discount=([\d.]+)", row["mdp"])[1]))),
        "dimension": ("d", lambda row: float(re.search(r"simulators=(\d+)", row["mdp"])[1])),
        "states": ("X", lambda row: float(re.search(r"states=(\d+)", row["mdp"])[1])),
    }
    figure, axes = panels(1, 4, width=DOUBLE, height=2.2)
    lines: dict[tuple[str, str], dict[float, np.ndarray]] = {}
    for section, (_, where) in told.items():
        for row in results.entries.to_pylist():
            if row["section"] == section:
                which = {key: row[key] for key in ("section", "column", "label", "mdp", "steps")}
                _, _, curves = results.curves(**which)
                name = row["learner"].split(",")[0]
                lines.setdefault((section, name), {})[where(row)] = curves[:, -1]
    styles = looks(list(dict.fromkeys(name for _, name in lines)))
    data = {}
    with styled():
        for ax, (section, (label, _)) in zip(axes[0], told.items(), strict=True):
            for (there, name), values in lines.items():
                if there != section:
                    continue
                at = sorted(values)
                found = [interval(values[x]) for x in at]
                low, middle, high = (
                    np.array([getattr(one, part) for one in found]) for part in ("low", "estimate", "high")
                )
                line(ax, np.array(at), middle, name, styles[name], low=low, high=high)
                data[f"{section}: {name}"] = (np.array(at), low, middle, high)
            ax.set(xscale="log", yscale="log", xlabel=label)
            ticks = sorted({x for (there, _), values in lines.items() if there == section for x in values})
            ticks = ticks if len(ticks) <= 5 else [1, 10, 100]
            ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
            ax.xaxis.set_tick_params(which="minor", bottom=False, labelbottom=False)
        axes[0, 0].set_ylabel("regret")
        legend_below(figure, axes)
    return Drawn(figure, data)


def main() -> None:
    folder = Path(sys.argv[1])
    results = ravi.run_suite("plus", folder)
    page = PAGE.read_text(encoding="utf-8")
    for section in SECTIONS:
        page = written(page, section, table(results, section=section).markdown())
    page = written(page, "provable, paired", against(results, "provable"))
    page = written(page, "provable-elsewhere, paired", against(results, "provable-elsewhere", (SMALLER, SAME)))
    page = written(page, "provable-long, paired", against(results, "provable-long"))
    page = written(page, "smallest", smallest(page))
    page = written(page, "gains", gains(page))
    PAGE.write_text(page, encoding="utf-8")
    growth(results).save(HERE / "plus-growth", ("png",))


if __name__ == "__main__":
    main()
