"""Figures of comparisons: probabilities of improvement and paired differences as a matrix, performance profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.display.numbers import brief
from ravi.display.style import LETTER, LINE, SINGLE, Drawn, canvas, chart, label_ticks, line, looks, wrapped
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.statistics.intervals import Interval
    from ravi.statistics.scores import Scores

DIVERGING = "PuOr"  # orange to purple, white in the middle: told apart by every kind of colour vision; both ends dark

CELL, NAMES, SCALE = 0.36, 1.2, 1.3  # inches: of a cell, of names at most, of the scale's own name
SPAN = 1e-6, 1e2  # of thresholds; the axis shows the part where shares differ


def improvements(scores: Scores, *, title: str = "") -> Drawn:
    """P(a run of the row beats one of the column), in %, over the MDPs that both have.

    A star where 1/2 is outside its interval.
    """
    from ravi.statistics.winning import improvement

    return _matrix(
        scores.learners, lambda first, second: improvement(scores, first, second), lambda p: f"{100 * p:.0f}",
        (0.0, 0.5, 1.0), "P(row beats column)", title or "probability of improvement",
    )  # fmt: skip


def differences(scores: Scores, mdp: str, *, title: str = "") -> Drawn:
    """How much less regret the row has than the column on an MDP, paired by seed; * where 0 is outside its interval."""
    from ravi.statistics.comparisons import compare

    names = [name for name in scores.learners if mdp in scores.values[name]]
    if not names:
        raise InputError(f"there is no run on {mdp}")
    return _matrix(
        names, lambda first, second: compare(scores, first, second, mdp).difference,
        lambda value: brief(value).replace("-", "−"), None, f"{scores.value}: column − row",
        title or f"paired differences, {mdp}",
    )  # fmt: skip


def profile_figure(scores: Scores, *, title: str = "") -> Drawn:
    """The share of runs whose normalised score is at most tau, each MDP counting the same, with bands.

    Only learners that ran on every MDP are in it.
    """
    from ravi.statistics.comparisons import profiles

    found = profiles(scores, np.geomspace(*SPAN, 241))
    names = list(found.share)
    with chart(title) as ax:
        for name, one in looks(scores.learners).items():  # each looks as in the figures that have them all
            if name not in found.share:
                continue
            line(ax, found.thresholds, found.share[name], name, one, low=found.low[name], high=found.high[name])
        ax.set(xlabel=_normalised(found.normalised), ylabel="share of runs at most τ", ylim=(-0.02, 1.04))
        ax.margins(x=0)
        shares = np.array([found.share[name] for name in names])
        inside = np.flatnonzero((shares > 0).any(axis=0) & (shares < 1).any(axis=0))
        last = len(found.thresholds) - 1
        low, high = (inside[0], inside[-1] + 1) if len(inside) else (0, last)
        ax.set(xscale="log", xlim=(found.thresholds[max(low - 4, 0)], found.thresholds[min(high + 4, last)]))
    return Drawn(ax.figure, {"profiles": found, "learners": names})


def _normalised(words: str) -> str:
    """τ in a few words: what stands between "by" and "on the MDP"."""
    by = words.split(" by ", 1)[-1].split(" on ", 1)[0].removeprefix("the ")
    return f"τ: {words.split(' ', 1)[0]} / {by}"


def _matrix(
    names: Sequence[str],
    compared: Callable[[str, str], Interval],
    text: Callable[[float], str],
    scale: tuple[float, float, float] | None,
    label: str,
    title: str,
) -> Drawn:
    """A cell for every pair that has something in common, with a star where its interval excludes the middle.

    scale: the least value, the middle and the largest; None: around 0, as far as the values go.
    """
    found = {}
    for pair in permutations(names, 2):
        with suppress(InputError):
            found[pair] = compared(*pair)
    values, sure = np.full((len(names), len(names)), np.nan), np.zeros((len(names), len(names)), bool)
    most = max((abs(one.estimate) for one in found.values()), default=0.0) or 1.0
    low, middle, high = scale or (-most, 0.0, most)
    texts = {}
    for (first, second), one in found.items():
        place = names.index(first), names.index(second)
        values[place], sure[place] = one.estimate, one.low > middle or one.high < middle
        texts[place] = text(one.estimate) + ("*" if sure[place] else "")
    figure = _cells(names, values, texts, (low, middle, high), label, title)
    return Drawn(figure, {"learners": [*names], "values": values, "sure": sure, "intervals": found})


def _cells(names: Sequence[str], values: np.ndarray, texts: Any, scale: Any, label: str, title: str) -> Any:
    """Rows have names and numbers, columns the numbers: names of any length leave room for the cells."""
    from matplotlib.colors import TwoSlopeNorm

    rows = [wrapped(f"{name}  {k}", NAMES) for k, name in enumerate(names, 1)]
    margin = LETTER * max(len(line) for row in rows for line in row.split("\n")) + 0.9  # of names and the scale
    width = max(SINGLE, CELL * len(names) + margin)
    height = max(CELL, LINE * max(1 + row.count("\n") for row in rows))
    low, middle, high = scale
    with canvas(width, max(height * len(names), SCALE) + 0.6, title) as (figure, ax):
        image = ax.imshow(values, cmap=DIVERGING, norm=TwoSlopeNorm(middle, low, high), aspect="auto")
        for (row, column), text in texts.items():
            strong = abs(values[row, column] - middle) > 0.62 * (high - middle)
            ax.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if strong else "black")
        ax.set_xticks(range(len(names)), range(1, len(names) + 1))
        ax.set_yticks(range(len(names)), rows)
        ax.tick_params(length=0, labeltop=True, labelbottom=False)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, pad=0.02, fraction=0.06)
        bar.set_label(label)
        label_ticks(bar.ax)
        bar.outline.set_linewidth(0.4)
    return figure
