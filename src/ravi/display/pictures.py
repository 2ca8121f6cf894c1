"""One figure of a run, an optimum and an MDP, in the style of all others; needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.display.maps import Layout, layout, map_figure
from ravi.display.numbers import percent
from ravi.display.style import (
    COLOURS,
    DOUBLE,
    GREY,
    MAP,
    SINGLE,
    Drawn,
    label_ticks,
    legend_below,
    library,
    line,
    look,
    panels,
    styled,
    wrapped,
)
from ravi.statistics.intervals import band
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.comparison import Comparison
    from ravi.core import MDP, Floats
    from ravi.runtime.result import Run

FEW = 30  # states of a graph, at most: more are drawn as a map


def of_run(
    run: Run, *, axes: Any = None, label: str | None = None, log: bool = False, level: float | None = None
) -> Drawn:
    """The mean regret over seeds, or what was earned where there is no regret, from the least seed to the largest;
    level: with the interval of the mean instead."""
    name = next((name for name in ("regret", "reward") if name in run.results), None)
    if name is None:
        raise InputError("this run recorded neither regret nor reward (it was made with measured=False)")
    figure, curves, times = None, run.results[name], run.times
    if axes is None:
        figure, ((axes,),) = panels(width=1.35 * SINGLE, title=run.mdp)
    with styled():
        style = look(len(axes.get_lines()))
        low, high = (curves.min(0), curves.max(0)) if level is None else band(curves, level=level)[1:]
        drawn = line(axes, times, curves.mean(0), label or run.learner, style, low=low, high=high)
        drawn.set_gid("mean")
        axes.set_xlabel("steps t")
        around = "mean, least and largest" if level is None else f"mean with {percent(level)} interval"
        axes.set_ylabel(f"{name}: {around} of {len(curves)} seeds" if len(curves) > 1 else name)
        if log and any((np.asarray(one.get_ydata()) > 0).any() for one in axes.get_lines()):
            axes.set(xscale="log", yscale="log")
        label_ticks(axes)
        axes.legend()
    return Drawn(axes.figure if figure is None else figure, {"times": times, name: curves})


def of_comparison(found: Comparison, *, log: bool = False) -> Drawn:
    """The mean regret of every learner with its interval; of several MDPs, a panel for each, in two columns."""
    mdps = found.mdps
    across = min(2, len(mdps))
    figure, axes = panels(-(-len(mdps) // across), across, width=DOUBLE if across > 1 else 1.35 * SINGLE)
    for mdp, one in zip(mdps, axes.ravel(), strict=False):
        for learner in found.learners:
            of_run(found.runs[learner, mdp], axes=one, label=learner, log=log, level=found.level)
        one.set_title(wrapped(mdp, 1.35 * SINGLE), fontsize=9)
        one.set_ylabel(f"regret (mean, {percent(found.level)} interval)")
        one.get_legend().remove()
    for empty in axes.ravel()[len(mdps) :]:
        empty.set_visible(False)
    with styled():
        legend_below(figure, axes)
    return Drawn(figure, {"curves": {key: run.regret_curve for key, run in found.runs.items()}})


def of_policy(name: str, policy: Floats, fields: dict[str, Any], *, end: bool = False) -> Drawn:
    """Values and the policy, where the states of an MDP of this name lie. end: the last is one that is never left."""
    policy = policy[0] if policy.ndim == 3 else policy  # by age: what is played right after a reset
    where = layout(name, *policy.shape)
    if end and where.strip:
        where = where._replace(columns=where.columns - 1, beyond=1)
    return map_figure(where, fields, policy, title=name)


def of_mdp(mdp: MDP) -> Drawn:
    """A map of the rewards where the states lie on a grid, or are many; else a graph."""
    where = layout(mdp.name, mdp.states, mdp.actions)
    if not where.strip or mdp.states > FEW:
        return map_figure(where, {"largest reward": mdp.rewards.max(-1)}, title=mdp.name)
    return _graph(mdp, where)


def _graph(mdp: MDP, where: Layout) -> Drawn:
    """States as nodes (on a line, where actions lead along it; else on a circle), moves as arrows, thick if likely."""
    library()
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, FancyArrowPatch

    X, A, along = mdp.states, mdp.actions, where.moves is not None or mdp.states == 2
    turn = np.pi / 2 - 2 * np.pi * np.arange(X) / X
    around = np.stack([np.cos(turn), np.sin(turn)], -1)
    at = np.stack([2.0 * np.arange(X), np.zeros(X)], -1) if along else around if X > 1 else 0 * around
    outside = np.tile([0.0, 1.0], (X, 1)) if along else around
    size = 0.42 if along else min(0.16, 2.2 / X)
    low, high = at.min(0) - 3.2 * size, at.max(0) + 3.2 * size
    width = min(DOUBLE, 1.15 * X) if along else 1.2 * SINGLE
    figure, ((axes,),) = panels(width=width, height=width * (high - low)[1] / (high - low)[0] + 0.5, title=mdp.name)
    radius = 72 * width * size / (high - low)[0]  # of a node, in points
    moves = [
        (x, a, int(y), float(p))
        for x, a in np.ndindex(X, A)
        for y, p in zip(mdp.successors[x, a], mdp.transitions[x, a], strict=True)
        if p > 0
    ]
    with styled():
        for x, value in enumerate(mdp.rewards.max(-1)):
            rim, thick = (COLOURS[1], 1.8) if mdp.initial[x] > 0 else (GREY, 1.0)
            shade = library().colormaps[MAP](float(value))
            axes.add_patch(Circle(at[x], size, facecolor=shade, edgecolor=rim, linewidth=thick, zorder=3))
            axes.text(*at[x], str(x), ha="center", va="center", zorder=4, color="white" if value < 0.5 else "black")
        for x, a, y, p in moves:
            how: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 5 + 3 * p, "color": COLOURS[a % len(COLOURS)]}
            how |= {"linewidth": 0.4 + 1.4 * p, "alpha": 0.3 + 0.7 * p, "zorder": 2}
            ends: Any
            if x != y:
                bend = (-1 if along else 1) * (0.2 + 0.15 * a)
                ends, how["shrinkA"], how["shrinkB"] = (at[x], at[y]), radius, radius
            else:  # a loop, outside, beside those of other actions
                beside = np.array([outside[x][1], -outside[x][0]]) * size
                foot = at[x] + 0.8 * size * outside[x] + 1.5 * (a - (A - 1) / 2) / A * beside
                ends, bend = (foot - 0.25 * beside, foot + 0.25 * beside), -2.5
            axes.add_patch(FancyArrowPatch(*ends, connectionstyle=f"arc3,rad={bend:.3f}", **how))
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        axes.axis("off")
        marks = [Line2D([], [], color=COLOURS[a % len(COLOURS)]) for a in range(min(A, len(COLOURS)))]
        marks.append(Line2D([], [], marker="o", linestyle="", markerfacecolor="none", markeredgecolor=COLOURS[1]))
        names = [name if name == f"action {a}" else f"{a}: {name}" for a, name in enumerate(where.actions)]
        figure.legend(marks, [*names[: len(marks) - 1], "start"], loc="outside lower center", ncols=4)
    return Drawn(figure, {"moves": moves, "rewards": mdp.rewards.max(-1)})
