"""Figures of points: ranks, regret against computing time, and regret against what was tried in tuning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ravi.display.numbers import number
from ravi.display.style import (
    GREY,
    LINE,
    PALE,
    SINGLE,
    Drawn,
    canvas,
    chart,
    label_ticks,
    looks,
    wrapped,
)  # fmt: skip
from ravi.statistics.intervals import Interval, interval
from ravi.validation import InputError

NUMBERS, GAP = 1.0, 0.19  # inches: a mean and its multiple of the least; between a name and the point above it


def ranks(regret: Mapping[str, Any], *, remarks: Mapping[str, str] | None = None, title: str = "") -> Drawn:
    """Mean regret at T with its interval by learner, the least on top, and in multiples of the least.

    regret: (n,) each, or its interval. remarks: what stands behind the names, as ★ for the best. The axis is
    logarithmic; a mean that is not positive has a name and no point.
    """
    found = {name: _estimated(runs) for name, runs in _some(regret).items()}
    order = sorted(found, key=lambda name: found[name].estimate)
    every, least = looks(found), found[order[0]].estimate
    names = {name: wrapped(f"{name} {(remarks or {}).get(name, '')}".strip(), SINGLE - NUMBERS) for name in order}
    heights = np.cumsum([(1 + names[name].count("\n")) * LINE + GAP for name in order])
    with canvas(SINGLE, 0.6 + heights[-1], title) as (figure, ax):
        for y, name in zip(heights, order, strict=True):
            one, style = found[name], every[name]
            if one.estimate > 0:
                left, right = _arms(one)
                ends = [one.estimate - left, one.estimate + right]
                ax.plot(ends, [y, y], color=style.colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
                ax.plot(one.estimate, y, color=style.colour, marker=style.marker, markersize=5, zorder=3)
            ratio = one.estimate / least if name != order[0] and least > 0 else 0.0
            times = f"  ×{number(ratio, 2 if ratio < 10 else 0)}" if ratio else ""
            for text, x, side in ((names[name], 0, "left"), (number(one.estimate) + times, 1, "right")):
                ax.annotate(text, (x, y), (0, 3.5), xycoords=ax.get_yaxis_transform(), textcoords="offset points",
                            ha=side, va="bottom", linespacing=1.1)  # fmt: skip
        if any(one.estimate > 0 for one in found.values()):
            ax.set_xscale("log")
        ax.margins(x=0.06)
        label_ticks(ax, narrow=10)  # before the limits: of one point, to rounding, matplotlib would warn
        ax.set(xlabel="mean regret at T", ylim=(heights[-1] + 0.1, 0), yticks=[])
        ax.spines["left"].set_visible(False)
        ax.grid(axis="x", color=PALE, linewidth=0.4)
        ax.set_axisbelow(True)
    return Drawn(figure, {"order": order, "intervals": found})


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those that no other beats in one coordinate without losing in the other, by the first coordinate."""
    kept: list[str] = []
    for name in sorted(points, key=lambda name: points[name]):
        if not kept or points[name][1] < points[kept[-1]][1]:
            kept.append(name)
    return kept


def pareto(runs: Mapping[str, tuple[Any, Any]], *, title: str = "") -> Drawn:
    """Regret against seconds of computing per run, (seconds, regret) by learner: (n,) each, or their intervals.

    The line is the frontier: what it passes through is beaten by none in both. Seconds are of one machine.
    """
    both = {name: tuple(_estimated(values) for values in pair) for name, pair in _some(runs).items()}
    means = {name: (seconds.estimate, regret.estimate) for name, (seconds, regret) in both.items()}
    best = frontier(means)
    with chart(title, 0.72) as ax:
        every = looks(both)
        ax.step(*np.array([means[name] for name in best]).T, where="post", color=GREY, linewidth=0.9, label="frontier",
                zorder=1)  # fmt: skip
        for name, (seconds, regret) in both.items():
            colour, first = every[name].colour, name in best
            arms = [np.reshape(_arms(one), (2, 1)) for one in (seconds, regret)]
            ax.errorbar(
                *means[name], xerr=arms[0], yerr=arms[1], color=colour, marker=every[name].marker, label=name,
                markersize=5.5 if first else 4, markerfacecolor=colour if first else "white", linestyle="none",
                elinewidth=0.7,
            )  # fmt: skip
        for place, axis in enumerate("xy"):
            if min(mean[place] for mean in means.values()) > 0:
                ax.set(**{f"{axis}scale": "log"})
        ax.margins(0.12)
        ax.set(xlabel="computing time per run (s)", ylabel="regret at T (sum of gaps)")
    return Drawn(ax.figure, {"points": both, "frontier": best})


def tuning(rows: Iterable[Mapping[str, Any]], *, order: Sequence[str] = (), title: str = "") -> Drawn:
    """Regret against the multiplier `scale`, for every learner that was tuned on an MDP; the chosen one is ringed.

    rows: of the view `tuning`. A line joins the points of a learner that has no step size; where there is one, it
    varies from point to point too. Bars are one standard error over the tuning seeds; what failed is left out.
    order: of the learners, those that were not tuned among them, so that each looks as in other figures.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["regret"] is not None and row["scale"] is not None:
            found.setdefault(str(row["learner"]), []).append(row)
    if not found:
        raise InputError("no configuration succeeded")
    shown: dict[str, np.ndarray] = {}
    chosen: dict[str, tuple[float, float]] = {}
    with chart(title, 0.72) as ax:
        for name, (colour, dash, marker) in looks(dict.fromkeys([*order, *found])).items():
            tried = sorted(found.get(name, ()), key=lambda row: row["scale"])
            if not tried:
                continue
            shown[name] = np.array([[row["scale"], row["regret"]] for row in tried], float)
            bars = np.nan_to_num([row["standard_error"] or 0.0 for row in tried])
            alone = len({row["step_scale"] for row in tried}) == 1
            ax.errorbar(*shown[name].T, yerr=bars, color=colour, linestyle=dash if alone else "none", marker=marker,
                        linewidth=0.9, elinewidth=0.6, label=name, markeredgecolor="white",
                        markeredgewidth=0.3)  # fmt: skip
            chosen |= {row["learner"]: (float(row["scale"]), float(row["regret"])) for row in tried if row["chosen"]}
        if chosen:
            ax.plot(*np.array(list(chosen.values())).T, marker="o", markersize=9, color="black", linestyle="none",
                    markerfacecolor="none", markeredgewidth=0.9, label="chosen", zorder=5)  # fmt: skip
        ax.set_xscale("log")
        if min(values[:, 1].min() for values in shown.values()) > 0:
            ax.set_yscale("log")
        ax.set(xlabel="multiplier of bonus or radius (scale)", ylabel="mean regret, tuning seeds")
    return Drawn(ax.figure, {"points": shown, "chosen": chosen})


def _some(found: Mapping[str, Any]) -> Mapping[str, Any]:
    if not found:
        raise InputError("there is no learner to draw")
    return found


def _estimated(values: Any) -> Interval:
    return values if isinstance(values, Interval) else interval(values)


def _arms(found: Interval) -> tuple[float, float]:
    """How far an error bar reaches down and up; nowhere without an interval. On a logarithmic axis it ends above 0."""
    estimate, low, high, _ = found
    if not np.isfinite([low, high]).all():
        return 0.0, 0.0
    low = max(low, estimate / 10) if estimate > 0 else low
    return max(estimate - low, 0.0), max(high - estimate, 0.0)
