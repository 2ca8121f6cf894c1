"""Figures of points: ranks, regret against computing time, and regret against what was tried in tuning."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ravi.display.numbers import number
from ravi.display.style import GREY, PALE, SINGLE, Drawn, canvas, legend_below, looks, short
from ravi.validation import InputError

SAME = 1e-9  # relative: values nearer to each other differ by rounding


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Those that no other beats in one coordinate without losing in the other, by the first coordinate."""
    ordered = sorted(points, key=lambda name: points[name])
    kept: list[str] = []
    for name in ordered:
        if not kept or points[name][1] < points[kept[-1]][1]:
            kept.append(name)
    return kept


def ranks(regret: Mapping[str, Any], *, level: float = 0.95, title: str = "") -> Drawn:
    """Mean regret at T with its interval by learner, regret (n,) each, the least on top, and in multiples of the least.

    The axis is logarithmic; a mean that is not positive has a name and no point.
    """
    from ravi.statistics.intervals import interval

    if not regret:
        raise InputError("there is no learner to draw")
    found = {name: interval(runs, level=level) for name, runs in regret.items()}
    order = sorted(found, key=lambda name: found[name].estimate)
    every, least = looks(found), found[order[0]].estimate
    with canvas(SINGLE, 0.55 + 0.19 * len(order)) as (figure, ax):
        for row, name in enumerate(order):
            one, style = found[name], every[name]
            if one.estimate > 0:
                low, high = (max(end, one.estimate / 10) if np.isfinite(end) else one.estimate for end in one[1:3])
                ax.plot([low, high], [row, row], color=style.colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
                ax.plot(one.estimate, row, color=style.colour, marker=style.marker, markersize=5, zorder=3)
            ratio = one.estimate / least if row and least > 0 else 0.0
            times = f"  ×{number(ratio, 2 if ratio < 10 else None)}" if ratio else ""
            ax.annotate(f"{number(one.estimate)}{times}", (1.02, row), xycoords=("axes fraction", "data"), va="center",
                        fontsize=7, annotation_clip=False)  # fmt: skip
        ends = {float(end) for line in ax.lines for end in line.get_xdata()}
        if ends and max(ends) < (1 + 1e-6) * min(ends):  # one point, to rounding, has no range of its own
            ax.set_xlim(min(ends) / 2, 2 * min(ends))
        if any(one.estimate > 0 for one in found.values()):
            ax.set_xscale("log")
        ax.margins(x=0.08)
        ax.set_yticks(range(len(order)), [short(name) for name in order])
        ax.set(xlabel="mean regret at T", ylim=(len(order) - 0.5, -0.5), title=title)
        ax.grid(color=PALE, linewidth=0.4)
        ax.set_axisbelow(True)
        _few_ticks(ax, narrow=10, most=3)
    return Drawn(figure, {"order": order, "intervals": found})


def pareto(runs: Mapping[str, tuple[Any, Any]], *, level: float = 0.95, title: str = "") -> Drawn:
    """Regret against seconds of computing per run, (seconds (n,), regret (n,)) by learner; means with intervals.

    The line is the frontier: what it passes through is beaten by none in both. Seconds are of one machine.
    """
    from ravi.statistics.intervals import interval

    if not runs:
        raise InputError("there is no learner to draw")
    both = {
        name: (interval(seconds, level=level), interval(regret, level=level))
        for name, (seconds, regret) in runs.items()
    }
    best = frontier({name: (s.estimate, r.estimate) for name, (s, r) in both.items()})
    with canvas(SINGLE, 0.72 * SINGLE) as (figure, ax):
        every = looks(both)
        corner = [(both[name][0].estimate, both[name][1].estimate) for name in best]
        ax.step(*np.array(corner).T, where="post", color=GREY, linewidth=0.9, label="frontier", zorder=1)
        for name, (s, r) in both.items():
            ax.errorbar(
                s.estimate, r.estimate, xerr=_arms(s), yerr=_arms(r), color=every[name].colour,
                marker=every[name].marker, markersize=5.5 if name in best else 4, linestyle="none", elinewidth=0.7,
                label=name, markerfacecolor=every[name].colour if name in best else "white",
            )  # fmt: skip
        if min(s.estimate for s, _ in both.values()) > 0:
            ax.set_xscale("log")
        if min(r.estimate for _, r in both.values()) > 0:
            ax.set_yscale("log")
        ax.margins(0.12)
        ax.set(xlabel="computing time per run (s)", ylabel="regret at T (sum of gaps)", title=title)
        _few_ticks(ax)
        legend_below(figure, ax)
    return Drawn(figure, {"points": both, "frontier": best})


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
    every = looks(dict.fromkeys([*order, *found]))
    found = {name: found[name] for name in every if name in found}
    shown, chosen = {}, {}
    with canvas(SINGLE, 0.72 * SINGLE) as (figure, ax):
        for name in found:
            colour, dash, marker = every[name]
            tried = sorted(found[name], key=lambda row: row["scale"])
            x, y = np.array([[row["scale"], row["regret"]] for row in tried], float).T
            bars = np.array([row["standard_error"] or 0.0 for row in tried])
            alone = len({row["step_scale"] for row in tried}) == 1
            ax.errorbar(x, y, yerr=np.nan_to_num(bars), color=colour, linestyle=dash if alone else "none",
                        marker=marker, linewidth=0.9, elinewidth=0.6, label=name, markeredgecolor="white",
                        markeredgewidth=0.3)  # fmt: skip
            shown[name] = np.stack([x, y], axis=1)
            for row in tried:
                if row["chosen"]:
                    chosen[name] = (float(row["scale"]), float(row["regret"]))
        if chosen:
            ax.plot(*np.array(list(chosen.values())).T, marker="o", markersize=9, color="black", linestyle="none",
                    markerfacecolor="none", markeredgewidth=0.9, label="chosen", zorder=5)  # fmt: skip
        ax.set_xscale("log")
        if min(values[:, 1].min() for values in shown.values()) > 0:
            ax.set_yscale("log")
        ax.set(xlabel="multiplier of bonus or radius (scale)", ylabel="mean regret, tuning seeds", title=title)
        _few_ticks(ax)
        legend_below(figure, ax)
    return Drawn(figure, {"points": shown, "chosen": chosen})


def _arms(found: Any) -> Any:
    """The arms of an error bar, (2, 1); none where there is no interval. On logarithmic axes they end before zero."""
    if not np.isfinite([found.low, found.high]).all():
        return None
    low = max(found.low, found.estimate / 10) if found.estimate > 0 else found.low
    return np.array([[max(found.estimate - low, 0.0)], [max(found.high - found.estimate, 0.0)]])


def _few_ticks(ax: Any, narrow: float = 3, most: int = 5) -> None:
    """A logarithmic axis that spans few decades has ticks between them too; minor ticks have no names.

    narrow: where the ends are less than this factor apart, there are at most so many ticks, evenly spaced in value.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    low, high = ax.dataLim.get_points()
    same = (low > 0) & (high < low * (1 + SAME))  # matplotlib would zoom into rounding, and warn
    ax.update_datalim(np.where(same, [low / 1.1, high * 1.1], [low, high]))
    for axis, scale in ((ax.xaxis, ax.get_xscale()), (ax.yaxis, ax.get_yscale())):
        if scale != "log":
            continue
        low, high = axis.get_view_interval()
        if high < narrow * low:
            axis.set_major_locator(MaxNLocator(most, steps=(1, 2, 5, 10)))
            axis.set_minor_locator(NullLocator())
        elif high < 100 * low and most > 3:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1, 3)))
        if high < 100 * low and (most > 3 or high < narrow * low):
            axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 100 else f"{x:g}"))
        axis.set_minor_formatter(NullFormatter())
