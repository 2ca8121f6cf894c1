"""What has a learner made of the state space? Values, bonuses, visits and the policy, drawn where the states are.

`layout` is the one place that knows which family of MDPs lies how, and what its actions mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.checks import InputError
from ravi.core import MDP
from ravi.lab.report.parameters import leaves
from ravi.lab.report.style import COLOURS, DOUBLE, GREY, MAP, SINGLE, Drawn, library, panels, styled

if TYPE_CHECKING:
    from ravi.runs import Run

LEFT, RIGHT = (-1.0, 0.0), (1.0, 0.0)
NUMBERED = 30  # cells in a strip up to which actions are written into it


class Layout(NamedTuple):
    rows: int
    columns: int
    actions: tuple[str, ...]  # what they mean
    moves: tuple[tuple[float, float], ...] | None  # where they lead, (right, up); None: nowhere in particular
    across: str = "state x"
    down: str = ""

    @property
    def strip(self) -> bool:
        return self.rows == 1


def layout(name: str, states: int, actions: int) -> Layout:
    """Where the states of an MDP lie and what its actions mean, by the family in its name; else a strip."""
    family = re.split(r"/\d", name)[0]
    side = isqrt(states)
    if family == "deep-sea" and side * side == states and actions == 2:
        return Layout(side, side, ("left", "right"), ((-1.0, -1.0), (1.0, -1.0)), "column j", "row i")
    if family in ("terrain", "winds") and side * side == states and actions == 4:
        moves = ((0.0, 1.0), RIGHT, (0.0, -1.0), LEFT)
        return Layout(side, side, ("up", "right", "down", "left"), moves, "column j", "row i")
    if family in ("riverswim", "riverswim/mixture") and actions == 2:
        return Layout(1, states, ("left", "right"), (LEFT, RIGHT))
    if family == "queue":
        return Layout(1, states, tuple(f"speed {a + 1}" for a in range(actions)), None, "length x of the queue")
    return Layout(1, states, tuple(f"action {a}" for a in range(actions)), None)


def fields_of(run: Run, mdp: MDP | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """What the last state of a run holds about states, each (X,): value, visits and bonus as far as it has them.

    The bonus is what the next epoch would begin with, of the action for which it is largest; it needs the MDP where the
    learner is a mixture learner.
    """
    held = leaves(run)
    found: dict[str, np.ndarray] = {}
    X = run.last_policy.shape[-2]
    if "V" in held and held["V"].shape[1:] == (X,):
        found["value V"] = np.array(held["V"][seed], float)
    bonus = _bonus(run, held, mdp, seed)
    if bonus is not None:
        found["largest bonus"] = bonus.max(-1)
    moves = held.get("data.moves")  # N', which starts at zero wherever N does
    if moves is not None and moves.ndim == 4 and moves.shape[1] == X:
        found["visits"] = np.array(moves[seed], float).sum((1, 2))
    return found


def _bonus(run: Run, held: Mapping[str, Any], mdp: MDP | None, seed: int) -> np.ndarray | None:
    """CB(x, a) of RAVI-UCB's two forms   (X, A)."""
    if run.learner == "ravi-ucb":
        return np.asarray(run.settings["beta"] / np.sqrt(held["data.visits"][seed].astype(float)))
    if run.learner == "ravi-ucb/mixture" and mdp is not None and mdp.features is not None:
        from ravi.learners.mixture.ellipsoid import embedding_of

        phi = embedding_of(mdp.successors, mdp.features)(held["V"][seed][None])[0]  # (X, A, d)
        return np.asarray(run.settings["beta"] * np.linalg.norm(phi @ held["data.root"][seed], axis=-1))
    return None


def maps(run: Run, mdp: MDP | None = None, *, seed: int = 0, title: str = "", width: float | None = None) -> Drawn:
    """The last state of one seed of a run; `seed` counts the run's seeds from 0."""
    policy = run.last_policy[seed]
    policy = policy[0] if policy.ndim == 3 else policy  # by age: what is played right after a reset
    where = layout(run.mdp, *policy.shape)
    return map_figure(where, fields_of(run, mdp, seed), policy, title=title, width=width)


def map_figure(
    where: Layout, fields: Mapping[str, Any], policy: Any = None, *, title: str = "", width: float | None = None
) -> Drawn:
    """Heat maps of fields (X,) and a map of the policy (X, A): arrows where actions lead somewhere, else colours."""
    X = where.rows * where.columns
    arrays = {name: np.asarray(values, float) for name, values in fields.items()}
    for name, values in arrays.items():
        if values.shape != (X,):
            raise InputError(f"{name} has shape {values.shape}, not ({X},)")
    names = [*arrays, *(["policy"] if policy is not None else [])]
    if not names:
        raise InputError("there is nothing to draw: neither fields nor a policy")
    count = len(names)
    if where.strip:
        width = DOUBLE if width is None else width
        figure, axes = panels(count, 1, width=width, height=0.66 * count + 0.4, sharex=True)
        places = list(axes[:, 0])
    else:
        columns = min(count, 2)
        rows = -(-count // columns)
        width = (DOUBLE if count > 1 else SINGLE) if width is None else width
        figure, axes = panels(rows, columns, width=width, height=rows * 0.8 * width / columns)
        places = list(axes.ravel()[:count])
        for empty in axes.ravel()[count:]:
            empty.set_visible(False)
    drawn = {name: values.reshape(where.rows, where.columns) for name, values in arrays.items()}
    with styled():
        for ax, (name, grid) in zip(places, drawn.items(), strict=False):
            image = ax.imshow(grid, cmap=MAP, aspect="auto" if where.strip else "equal", interpolation="nearest",
                              norm=_norm(name, grid))  # fmt: skip
            _bar(figure, ax, image, where, np.array([grid.min(), grid.max()]) if where.strip else None)
            _dress(ax, where, _units(name), last=ax is places[-1])
        best = None
        if policy is not None:
            best = _policy(figure, places[-1], where, np.asarray(policy, float))
            shaded = where.strip and where.moves is not None
            name = "most probable action (shade: its probability)" if shaded else "most probable action"
            _dress(places[-1], where, name, last=True)
        if title:
            figure.suptitle(title, fontsize=9)
    return Drawn(figure, {"fields": drawn, "policy": policy, "best": best, "layout": where})


def _units(name: str) -> str:
    return {"value V": "value V (sum of rewards)", "visits": "visits (steps)"}.get(name, f"{name} (sum of rewards)")


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
    bar = figure.colorbar(image, ax=ax, ticks=ticks, **shape, **more)
    if ticks is not None:
        bar.ax.set_yticklabels([f"{tick:,.0f}" if abs(tick) >= 100 else f"{tick:.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_linewidth(0.4)
    return bar
