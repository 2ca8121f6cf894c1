"""Maps of values and policies over the states of an MDP, drawn where the states lie.

`layout` is the one place that knows which family of MDPs lies how, and what its actions mean.
"""

import re
from collections.abc import Mapping
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from ravi.display.style import COLOURS, DOUBLE, GREY, MAP, SINGLE, Drawn, label_ticks, library, panels, styled
from ravi.validation import InputError

LEFT, RIGHT = (-1.0, 0.0), (1.0, 0.0)
UP, DOWN = (0.0, 1.0), (0.0, -1.0)
TILES = {  # of Gymnasium: columns (0: as many as rows), where actions lead, what they mean
    "FrozenLake": (0, (LEFT, DOWN, RIGHT, UP), ("left", "down", "right", "up")),
    "CliffWalking": (12, (UP, RIGHT, DOWN, LEFT), ("up", "right", "down", "left")),
}
APART = 0.4  # of a short scale, between its two ends
NUMBERED = 30  # cells in a strip up to which actions are written into it


class Layout(NamedTuple):
    rows: int
    columns: int
    actions: tuple[str, ...]  # what they mean
    moves: tuple[tuple[float, float], ...] | None  # where they lead, (right, up); None: nowhere in particular
    across: str = "state x"
    down: str = ""
    beyond: int = 0  # states that have no place: the end of an environment, the last one

    @property
    def strip(self) -> bool:
        return self.rows == 1


def layout(name: str, states: int, actions: int) -> Layout:
    """Where the states of an MDP lie and what its actions mean, by the family in its name; else a strip."""
    family = re.split(r"/\d", name)[0]
    for environment, (columns, around, meant) in TILES.items():
        rows, beyond = divmod(states, columns or isqrt(states))
        if environment in name and actions == 4 and beyond <= 1 and (columns or rows == isqrt(states)):
            return Layout(rows, columns or rows, meant, around, "column j", "row i", beyond)
    side = isqrt(states)
    if family == "deep-sea" and side * side == states and actions == 2:
        return Layout(side, side, ("left", "right"), ((-1.0, -1.0), (1.0, -1.0)), "column j", "row i")
    if family in ("terrain", "winds") and side * side == states and actions == 4:
        return Layout(side, side, ("up", "right", "down", "left"), (UP, RIGHT, DOWN, LEFT), "column j", "row i")
    if family in ("riverswim", "riverswim/mixture") and actions == 2:
        return Layout(1, states, ("left", "right"), (LEFT, RIGHT))
    if family == "queue":
        return Layout(1, states, tuple(f"speed {a + 1}" for a in range(actions)), None, "length x of the queue")
    return Layout(1, states, tuple(f"action {a}" for a in range(actions)), None)


def map_figure(where: Layout, fields: Mapping[str, Any], policy: Any = None, *, title: str = "") -> Drawn:
    """Heat maps of fields (X,) and a map of the policy (X, A): arrows where actions lead somewhere, else colours."""
    X = where.rows * where.columns + where.beyond
    arrays = {name: np.asarray(values, float) for name, values in fields.items()}
    for name, values in arrays.items():
        if values.shape != (X,):
            raise InputError(f"{name} has shape {values.shape}, not ({X},)")
    names = [*arrays, *(["policy"] if policy is not None else [])]
    if not names:
        raise InputError("there is nothing to draw: neither fields nor a policy")
    count = len(names)
    if where.strip:
        figure, axes = panels(count, 1, width=DOUBLE, height=0.66 * count + 0.4, title=title, sharex=True)
        places = list(axes[:, 0])
    else:
        columns = min(count, 2)
        rows = -(-count // columns)
        width = DOUBLE if count > 1 else SINGLE
        figure, axes = panels(rows, columns, width=width, height=rows * 0.8 * width / columns, title=title)
        places = list(axes.ravel()[:count])
        for empty in axes.ravel()[count:]:
            empty.set_visible(False)
    drawn = {name: values[: X - where.beyond].reshape(where.rows, where.columns) for name, values in arrays.items()}
    with styled():
        for ax, (name, grid) in zip(places, drawn.items(), strict=False):
            image = ax.imshow(grid, cmap=MAP, aspect="auto" if where.strip else "equal", interpolation="nearest",
                              norm=_norm(name, grid))  # fmt: skip
            _bar(figure, ax, image, where, np.array([grid.min(), grid.max()]) if where.strip else None)
            _dress(ax, where, _units(name), last=ax is places[-1])
        best = None
        if policy is not None:
            best = _policy(figure, places[-1], where, np.asarray(policy, float)[: X - where.beyond])
            shaded = where.strip and where.moves is not None
            name = "most probable action (shade: its probability)" if shaded else "most probable action"
            _dress(places[-1], where, name, last=True)
    return Drawn(figure, {"fields": drawn, "policy": policy, "best": best, "layout": where})


def _units(name: str) -> str:
    told = {"value V": "value V (sum of rewards)", "visits": "visits (steps)", "largest reward": "largest reward"}
    return told.get(name, f"{name} (sum of rewards)")


def _norm(name: str, grid: np.ndarray) -> Any:
    """Visits span decades: logarithmic above one."""
    library()
    from matplotlib.colors import Normalize, SymLogNorm

    low, high = float(grid.min()), float(grid.max())
    if name == "visits" and high > 100:
        return SymLogNorm(1, vmin=0, vmax=high)
    return Normalize(low, high if high > low else low + 1)


def _dress(ax: Any, where: Layout, name: str, *, last: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_title(name, fontsize=8, pad=3, loc="left" if where.strip else "center")
    ax.spines[:].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12 if where.strip else 6))
    if where.strip:
        ax.set_yticks([])
    else:
        ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        ax.set_ylabel(where.down)
    if last or not where.strip:
        ax.set_xlabel(where.across)


def _policy(figure: Any, ax: Any, where: Layout, policy: np.ndarray) -> np.ndarray:
    """The most probable action of every state, (rows, columns); the first one where several are."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    A = policy.shape[1]
    best = policy.argmax(-1).reshape(where.rows, where.columns)
    sure = policy.max(-1).reshape(where.rows, where.columns)
    aspect = "auto" if where.strip else "equal"
    if where.moves is not None:
        image = ax.imshow(sure, cmap="Greys", vmin=1 / A, vmax=1.6, aspect=aspect, interpolation="nearest")
        y, x = np.mgrid[: where.rows, : where.columns]
        u, v = np.array(where.moves)[best].transpose(2, 0, 1)
        ax.quiver(x, y, u, v, pivot="mid", color=COLOURS[0], angles="uv", scale_units="height" if where.strip else "x",
                  scale=2.2 if where.strip else 2.4 if abs(u * v).any() else 1.6, width=0.004 if where.strip else 0.012,
                  headwidth=4)  # fmt: skip
        bar = _bar(figure, ax, image, where, np.array([1 / A, 1]), boundaries=np.linspace(1 / A, 1, 100))
        if not where.strip:
            bar.set_label("its probability")
        return best
    shades = [COLOURS[a % len(COLOURS)] for a in range(A)] if len(COLOURS) >= A else None
    colours = ListedColormap(shades or [library().colormaps[MAP](a / (A - 1)) for a in range(A)])
    image = ax.imshow(best, cmap=colours, norm=BoundaryNorm(np.arange(A + 1) - 0.5, A), aspect=aspect, alpha=0.75)
    if where.columns <= NUMBERED and A <= 10:
        for (row, column), action in np.ndenumerate(best):
            ax.text(column, row, str(action), ha="center", va="center", fontsize=7, color="black")
    else:
        ax.set_facecolor(GREY)
    ticks = np.arange(A) if A <= 3 else np.array([0, A - 1])
    bar = _bar(figure, ax, image, where, ticks)
    bar.ax.set_yticklabels([f"{a}: {where.actions[a]}" if where.actions[a] != f"action {a}" else f"{a}" for a in ticks])
    return best


def _bar(figure: Any, ax: Any, image: Any, where: Layout, ticks: Any = None, **more: Any) -> Any:
    """The scale beside a map; beside a strip it is short, and names both ends."""
    shape = {"pad": 0.01, "fraction": 0.02, "aspect": 3} if where.strip else {"pad": 0.02, "fraction": 0.05}
    if where.strip and ticks is not None and len(ticks) == 2 and np.ptp(image.norm(ticks)) < APART:
        ticks = np.array([image.norm.vmin, ticks[1]])  # the least would be written over the largest
    bar = figure.colorbar(image, ax=ax, ticks=ticks, **shape, **more)
    label_ticks(bar.ax)
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_linewidth(0.4)
    return bar
