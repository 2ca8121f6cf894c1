"""Figures of curves: regret and gap against time, with bands and bounds; and the ladder of bounds on one run."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.display.numbers import number
from ravi.display.pictures import of_run
from ravi.display.style import (
    COLOURS,
    GREY,
    PALE,
    SINGLE,
    Drawn,
    Look,
    canvas,
    chart,
    label_ticks,
    legend_below,
    line,
    looks,
    panels,
    written,
)  # fmt: skip
from ravi.statistics.intervals import band
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.runtime.result import Run
    from ravi.verify.report import Ladder

FLOOR = 1e-5  # of the largest gap: where a logarithmic axis of gaps ends
APART = 0.052  # of the height of the axes, between names at the ends of lines
CERTAIN = 1e-10  # below this a gap is not certified to differ from zero (`ravi.measures.regret.TOLERANCE`)


class Curves(NamedTuple):
    times: np.ndarray  # (P,)
    values: np.ndarray  # (n, P), a row per seed


class Band(NamedTuple):
    """What is drawn of a learner: the mean over seeds, and the ends of its interval at each time."""

    times: np.ndarray
    mean: np.ndarray
    low: np.ndarray  # -inf where there is no interval: one seed
    high: np.ndarray
    seeds: int


def regret_of(run: Run) -> Curves:
    return Curves(run.times, run.regret_curve)


def gap_of(run: Run) -> Curves:
    """The gap of the policy of time t, exactly, from the epochs that a run kept."""
    values = np.full(run.regret_curve.shape, np.nan)
    for row, starts, gaps, plays in zip(values, run.T_k, run.gap_k, run.plays, strict=True):
        reached = run.times <= plays
        row[reached] = gaps[np.searchsorted(starts, run.times[reached], side="right") - 1]
    return Curves(run.times, values)


def spread(P: int, most: int) -> np.ndarray:
    """As many of P places as are wanted, evenly spread, the last among them."""
    return np.unique(np.ceil(np.linspace(0, P, min(most, P) + 1)[1:]).astype(int)) - 1


def mean_gap(regret: Curves, points: int = 60) -> Curves:
    """The mean gap between at most `points` times of a regret curve, from t = 0 on, at the later time of each two."""
    kept = spread(len(regret.times), points)
    times, values = regret.times[kept], regret.values[:, kept]
    return Curves(times, np.diff(values, prepend=0.0, axis=1) / np.diff(times, prepend=0))


def regret_curves(
    curves: Mapping[str, Curves],
    *,
    bounds: Mapping[str, Curves | tuple[Any, Any]] | None = None,
    logarithmic: bool = False,
    named: bool = False,
    styles: Mapping[str, Look] | None = None,
    title: str = "",
    width: float = SINGLE,
) -> Drawn:
    """Regret against time: the mean over seeds, with an interval at every time.

    named: every line has its name and its last value at its end, in place of a legend. styles: the look of every line,
    where it is not to be chosen. bounds: grey lines behind, (times, values) by name. On linear axes only the bounds
    that are within reach of the curves are drawn, on logarithmic ones from the first time of a curve on;
    `data["bounds"]` has what is drawn. A regret that is zero throughout has no logarithm: its axes are linear.
    """
    shown, positive = _bands(curves)
    logarithmic = logarithmic and positive
    top = max((float(np.where(np.isfinite(one.high), one.high, one.mean).max()) for one in shown.values()), default=1.0)
    begin = min((float(one.times[0]) for one in shown.values()), default=0.0) if logarithmic else 0.0
    behind = {}
    for name, held in (bounds or {}).items():
        t, v = (np.asarray(part, float) for part in held)
        t, v = t[t >= begin], v[t >= begin]
        if len(v) and (logarithmic or v.max() <= 3 * top):
            behind[name] = t, v
    with canvas(width, 0.66 * width, title) as (figure, ax):
        for place, (name, (times, values)) in enumerate(behind.items()):
            ax.plot(times, values, color=GREY, linewidth=0.8 + 0.9 * (place % 3), alpha=0.6, label=name, zorder=1,
                    linestyle=("-", "--", ":")[place % 3])  # fmt: skip
        _lines(ax, shown, logarithmic, styles)
        if logarithmic:
            first, last = min(one.times[0] for one in shown.values()), max(one.times[-1] for one in shown.values())
            ax.set(xscale="log", yscale="log", xlim=(first, max(last, 2 * first)))
        else:
            ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        ax.margins(x=0)
        ax.set(xlabel="step t", ylabel="regret (sum of gaps)")
        label_ticks(ax)
        _named(ax) if named else legend_below(figure, ax)
    return Drawn(figure, {"curves": shown, "bounds": behind})


def gap_curves(curves: Mapping[str, Curves], *, title: str = "") -> Drawn:
    """The gap of the current policy against time, with an interval at every time; from `gap_of` or `mean_gap`."""
    shown, positive = _bands(curves)
    with chart(title) as ax:
        _lines(ax, shown, positive)
        if positive:
            means = np.concatenate([one.mean for one in shown.values()])
            least, top = float(means[means > 0].min()), float(means.max())
            ax.set(yscale="log", ylim=(max(FLOOR * top, CERTAIN, least / 2), 2 * top))  # lines leave at the bottom
        ax.margins(x=0)
        ax.set(xlabel="step t", ylabel="gap (reward per step)")
    return Drawn(ax.figure, {"curves": shown})


def _bands(curves: Mapping[str, Curves]) -> tuple[dict[str, Band], bool]:
    """What is drawn of every learner, and whether any mean is positive."""
    shown = {}
    for label, held in curves.items():
        times, values = np.asarray(held[0]), np.atleast_2d(np.asarray(held[1], float))
        if not len(values) or values.shape[1] != len(times):
            raise InputError(f"the curves of {label!r} have shape {values.shape}, not (n, {len(times)}) with n >= 1")
        there = ~np.isnan(values).any(axis=0)  # a stopped run has not come to the later times
        if not there.any():
            raise InputError(f"the curves of {label!r} have no time that every seed has reached")
        shown[label] = Band(times[there], *band(values[:, there]), len(values))
    return shown, any((one.mean > 0).any() for one in shown.values())


def _lines(axes: Any, shown: Mapping[str, Band], logarithmic: bool, styles: Mapping[str, Look] | None = None) -> None:
    """Every learner; on a logarithmic axis what is not positive is left out, and a band ends at the axis."""
    every = styles or looks(shown)
    least = min((float(one.mean[one.mean > 0].min()) for one in shown.values() if (one.mean > 0).any()), default=1.0)
    for label, (times, mean, low, high, _) in shown.items():
        if logarithmic:
            low, mean = np.where(np.isfinite(low), np.maximum(low, least / 3), low), np.where(mean > 0, mean, np.nan)
        line(axes, times, mean, label, every[label], low=low, high=high)


def _named(axes: Any) -> None:
    """The name of every line and its last value, beside its end, as near as other names leave room for."""
    bottom, top = axes.get_ylim()
    held = [(float(one.get_ydata()[-1]), one) for one in axes.get_lines()]
    ends = sorted(((value, one) for value, one in held if value > bottom), key=lambda end: end[0])
    share = [float(axes.transLimits.transform(axes.transScale.transform((1, y)))[1]) for y, _ in ends]
    places = list(share)
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + APART)
    places[-1:] = [min(places[-1], 1.0)] if places else []
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - APART)
    for (value, one), at, place in zip(ends, share, places, strict=True):
        colour = one.get_color()
        axes.annotate(
            f"{one.get_label()}  {number(value)}", (1.0, at), (1.035, place), "axes fraction", "axes fraction",
            va="center", color=colour, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5), "shrinkB": 0},
        )  # fmt: skip
    axes.set_ylim(bottom, top)


def regret_figure(runs: Mapping[str, Run], path: str | PathLike[str], *, title: str = "") -> None:
    """Regret against time, the mean over seeds with a band from the least to the largest."""
    figure, ((axes,),) = panels(width=1.35 * SINGLE, title=title)
    for label, run in runs.items():
        of_run(run, axes=axes, label=label)
    axes.set(xlabel="step t", ylabel="regret (exact; mean and range over seeds)")
    axes.margins(x=0)
    axes.grid(axis="y", color=PALE, linewidth=0.4)
    written(figure, path)


def ladder_figure(rungs: Ladder, path: str) -> None:
    """The ladder as points on a logarithmic scale, beside what any policy's regret is below."""
    shown = [(label, value) for label, value in rungs.rungs() if np.isfinite(value) and value > 0][::-1]
    with canvas(6.4, 2.6) as (figure, axes):
        axes.plot([value for _, value in shown], [label for label, _ in shown], "o", color=COLOURS[0])
        for label, value in shown:
            axes.annotate(number(value), (value, label), (0, 6), textcoords="offset points", ha="center")
        axes.axvline(rungs.optimum, color=GREY, linestyle="--", linewidth=1)
        axes.annotate("T × optimum", (rungs.optimum, -0.45), (3, 0), textcoords="offset points")
        axes.set(xscale="log", xlabel="regret and its bounds", ylim=(-0.6, len(shown) - 0.4))
        axes.grid(axis="y", color=PALE)
    written(figure, path)
