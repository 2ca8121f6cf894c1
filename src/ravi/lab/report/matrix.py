"""Figures of comparisons: probabilities of improvement and paired differences as a matrix, performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.display.numbers import brief
from ravi.display.style import SINGLE, Drawn, canvas, legend_below, line, looks, short
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.statistics.scores import Scores

DIVERGING = "PuOr"  # orange to purple, white in the middle: told apart by every kind of colour vision; both ends dark

SPAN = 1e-6, 1e2  # of thresholds, unless they are given; the axis shows the part where shares differ


def improvements(scores: Scores, *, title: str = "", **how: Any) -> Drawn:
    """P(a run of the row beats one of the column), in %, over the MDPs that both have.

    A star where 1/2 is outside its interval.
    """
    from ravi.statistics.winning import improvement

    names = list(scores.learners)
    found = _pairs(names, lambda first, second: improvement(scores, first, second, **how))
    values, sure = _tables(names, found, 0.5)
    texts = np.vectorize(lambda v, s: _cell(f"{100 * v:.0f}", s, v), otypes=[object])(values, sure)
    figure = _matrix(
        names, values, texts, (0.0, 0.5, 1.0), "P(row beats column)", title or "probability of improvement"
    )
    return Drawn(figure, {"learners": names, "values": values, "sure": sure, "intervals": found})


def differences(scores: Scores, mdp: str, *, title: str = "", **how: Any) -> Drawn:
    """How much less regret the row has than the column on an MDP, paired by seed; * where 0 is outside its interval."""
    from ravi.statistics.comparisons import compare

    names = [name for name in scores.learners if mdp in scores.values[name]]
    if not names:
        raise InputError(f"there is no run on {mdp}")
    found = _pairs(names, lambda first, second: compare(scores, first, second, mdp, **how).difference)
    values, sure = _tables(names, found, 0.0)
    most = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    texts = np.vectorize(lambda v, s: _cell("" if np.isnan(v) else brief(v).replace("-", "−"), s, v), otypes=[object])(
        values, sure
    )
    ends = (-(most or 1.0), 0.0, most or 1.0)
    figure = _matrix(names, values, texts, ends, f"{scores.value}: column − row", title or f"paired differences, {mdp}")
    return Drawn(figure, {"learners": names, "values": values, "sure": sure, "intervals": found})


def profile_figure(scores: Scores, *, thresholds: Any = None, title: str = "", **how: Any) -> Drawn:
    """The share of runs whose normalised score is at most tau, each MDP counting the same, with bands.

    Only learners that ran on every MDP are in it.
    """
    from ravi.statistics.comparisons import profiles

    found = profiles(scores, thresholds=np.geomspace(*SPAN, 241) if thresholds is None else thresholds, **how)
    names = list(found.share)
    with canvas(SINGLE, 0.66 * SINGLE) as (figure, ax):
        for name, one in looks(scores.learners).items():  # each looks as in the figures that have them all
            if name not in found.share:
                continue
            line(ax, found.thresholds, found.share[name], name, one, low=found.low[name], high=found.high[name])
        ax.set(xlabel=_normalised(found.normalised), ylabel="share of runs at most τ", ylim=(-0.02, 1.04), title=title)
        ax.margins(x=0)
        if thresholds is None:
            shares = np.array([found.share[name] for name in names])
            inside = np.flatnonzero((shares > 0).any(axis=0) & (shares < 1).any(axis=0))
            low, high = (inside[0], inside[-1] + 1) if len(inside) else (0, len(found.thresholds) - 1)
            last = len(found.thresholds) - 1
            ax.set(xscale="log", xlim=(found.thresholds[max(low - 4, 0)], found.thresholds[min(high + 4, last)]))
        legend_below(figure, ax)
    return Drawn(figure, {"profiles": found, "learners": names})


def _normalised(words: str) -> str:
    """τ in a few words: what stands between "by" and "on the MDP"."""
    by = words.split(" by ", 1)[-1].split(" on ", 1)[0].removeprefix("the ")
    return f"τ: {words.split(' ', 1)[0]} / {by}"


def _pairs(names: Sequence[str], found: Any) -> dict[tuple[str, str], Any]:
    """By first and second; nothing where they have nothing in common."""
    pairs = {}
    for first in names:
        for second in names:
            if first != second:
                try:
                    pairs[first, second] = found(first, second)
                except InputError:
                    continue
    return pairs


def _tables(names: Sequence[str], found: dict[tuple[str, str], Any], middle: float) -> tuple[np.ndarray, np.ndarray]:
    values, sure = np.full((len(names), len(names)), np.nan), np.zeros((len(names), len(names)), bool)
    for (first, second), one in found.items():
        place = names.index(first), names.index(second)
        values[place] = one.estimate
        sure[place] = one.low > middle or one.high < middle
    return values, sure


def _cell(text: str, sure: bool, value: float) -> str:
    return "" if np.isnan(value) else f"{text}*" if sure else text


def _matrix(names: list[str], values: np.ndarray, texts: Any, ends: Any, label: str, title: str) -> Any:
    from matplotlib.colors import TwoSlopeNorm

    labels = [short(name, 24) for name in names]
    margin = 0.066 * max(map(len, labels)) + 0.1  # inches that a row's name takes
    cell = 0.36
    width = max(SINGLE, cell * len(names) + margin + 0.9)
    size = min(cell, (width - margin - 0.9) / max(len(names), 1)) if len(names) > 3 else cell
    with canvas(width, size * len(names) + margin * 0.75 + 0.45) as (figure, ax):
        image = ax.imshow(values, cmap=DIVERGING, norm=TwoSlopeNorm(ends[1], ends[0], ends[2]), interpolation="nearest")
        for (row, column), value in np.ndenumerate(values):
            if texts[row][column]:
                strong = abs(value - ends[1]) > 0.62 * (ends[2] - ends[1])
                ax.text(column, row, texts[row][column], ha="center", va="center", fontsize=7,
                        color="white" if strong else "black")  # fmt: skip
        ax.set_xticks(range(len(names)), labels, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(names)), labels)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, pad=0.02, fraction=0.06)
        bar.set_label(label)
        bar.outline.set_linewidth(0.4)
        figure.suptitle(title, fontsize=9)
    return figure
