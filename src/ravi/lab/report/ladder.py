"""How far is a run's regret from the bounds that were proved of it? The ladder of `ravi.verify`, drawn."""

import numpy as np

from ravi.display.style import COLOURS, panels, written
from ravi.verify.ladder import Ladder


def ladder_figure(rungs: Ladder, path: str) -> None:
    """The ladder as points on a logarithmic scale, beside what any policy's regret is below."""
    shown = [(label, value) for label, value in rungs.rungs() if np.isfinite(value) and value > 0]
    figure, grid = panels(width=6.4, height=2.6)
    axes = grid[0, 0]
    labels = [label for label, _ in shown][::-1]
    values = [value for _, value in shown][::-1]
    axes.plot(values, labels, "o", color=COLOURS[0])
    for value, label in zip(values, labels, strict=True):
        axes.annotate(
            f"{value:,.0f}", (value, label), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8
        )
    axes.axvline(rungs.optimum, color="#888888", linestyle="--", linewidth=1)
    axes.annotate("T × optimum", (rungs.optimum, -0.45), xytext=(3, 0), textcoords="offset points", fontsize=8)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.grid(axis="y", color="#dddddd")
    axes.set(xscale="log", xlabel="regret and its bounds")
    axes.spines[["top", "right"]].set_visible(False)
    written(figure, path)
