"""What is RAVI-UCB+ worth? The tables and the figures of docs/plus.md, from the suite `plus`.

python docs/figures/plus.py FOLDER    runs what FOLDER lacks of the suite, draws, and writes the tables
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import ravi
from ravi.report.style import DOUBLE, Drawn, legend_below, line, looks, panels, styled
from ravi.report.tables import table
from ravi.statistics import compare, interval, scores

HERE = Path(__file__).parent
PAGE = HERE.parent / "plus.md"
SECTIONS = ("provable", "provable-long", "tuned", "tuned-mixture", "parts", "parts-mixture")


def written(page: str, name: str, text: str) -> str:
    """The page with a table in its place."""
    place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if not place.search(page):
        raise SystemExit(f"{PAGE} has no place for {name}")
    return place.sub(lambda _: text.rstrip() + "\n", page, count=1)


def against(results: ravi.Results, section: str, first: str) -> str:
    """How far behind `first` every other learner is, paired by seed, in Markdown."""
    found = scores(results, section=section)
    rows = []
    for mdp in found.mdps:
        gaps = {other: compare(found, first, other, mdp) for other in found.learners if other != first}
        for other, gap in sorted(gaps.items(), key=lambda pair: pair[1].difference.estimate):
            one = gap.difference
            verdict = "behind" if one.low > 0 else "ahead" if one.high < 0 else "tied"
            rows.append(f"| {mdp} | {other} | {one.estimate:,.0f} | {one.low:,.0f} to {one.high:,.0f} | {verdict} |")
    head = f"| MDP | learner | its regret less that of {first} | 95 % interval, paired | |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


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
    page = written(page, "provable, paired", against(results, "provable", "ravi-ucb+"))
    page = written(page, "provable-long, paired", against(results, "provable-long", "ravi-ucb+"))
    PAGE.write_text(page, encoding="utf-8")
    growth(results).save(HERE / "plus-growth", ("png",))


if __name__ == "__main__":
    main()
