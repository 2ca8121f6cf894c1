"""What does a run look like? Figures (matplotlib, the extra `figures`), drawn from runs and from nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from typing import Any

import numpy as np

from ravi.checks import InputError
from ravi.runs import Run

# Okabe and Ito's colours, told apart by every kind of colour vision, in an order that also differs in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """matplotlib without a screen, or an error that says how to get it."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise InputError("figures need matplotlib: pip install 'ravi[figures]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def regret_figure(
    runs: Mapping[str, Run], path: str | PathLike[str], *, title: str = "", yardsticks: Collection[str] = ()
) -> None:
    """Regret against time, the mean over seeds with a band from the least to the largest; yardsticks in grey behind."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 4.0), constrained_layout=True)
    learners = [label for label in runs if label not in yardsticks]
    for label, run in runs.items():
        times, curve = run.times, run.regret_curve
        there = ~np.isnan(curve).any(axis=0)  # a stopped run has not come to the later times
        times, curve = times[there], curve[:, there]
        if label in yardsticks:
            axes.plot(times, curve.mean(0), color="#BBBBBB", linewidth=5, solid_capstyle="butt", label=label, zorder=1)
            continue
        index = learners.index(label)
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        axes.plot(times, curve.mean(0), color=colour, linestyle=dash, linewidth=1.8, label=label, zorder=3)
        axes.fill_between(times, curve.min(0), curve.max(0), color=colour, alpha=0.2, linewidth=0, zorder=2)
    axes.set(xlabel="step t", ylabel="regret (exact; mean and range over seeds)", title=title)
    axes.margins(x=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    written(figure, path)


def written(figure: Any, path: str | PathLike[str]) -> None:
    """Save the figure in the format that its name asks for."""
    try:
        figure.savefig(path, dpi=160)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write the figure {path}: {error}") from None
    finally:
        pyplot().close(figure)
