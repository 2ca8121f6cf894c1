"""The confidence ellipsoid of a mixture learner around theta, at several times.

    {theta : ||theta - theta_hat||_Lambda <= beta}       (Lemma 5.4)

on coordinates i and j is an ellipse: its points are theta_hat + beta L u, |u| <= 1, where L L^T is the block of
Lambda^{-1} that belongs to them. It is the shadow of the ellipsoid, not a cut through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.core import MDP, Learner
from ravi.display.style import SINGLE, Drawn, canvas, legend_below, look
from ravi.runtime import tree
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.runtime.result import Run

CORNERS = 200  # of a drawn ellipse


class Ellipsoid(NamedTuple):
    time: int  # steps made
    centre: np.ndarray  # theta_hat   (d,)
    covariance: np.ndarray  # Lambda  (d, d)
    radius: float  # beta

    def shadow(self, coordinates: tuple[int, int]) -> np.ndarray:
        """The boundary of its projection on two coordinates   (CORNERS, 2)."""
        both = list(coordinates)
        block = np.linalg.inv(self.covariance)[np.ix_(both, both)]
        angle = np.linspace(0, 2 * np.pi, CORNERS)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        return self.centre[both] + self.radius * (np.linalg.cholesky(block) @ circle).T

    def holds(self, theta: np.ndarray) -> bool:
        """Whether theta is in the ellipsoid (all coordinates)."""
        apart = np.asarray(theta) - self.centre
        return bool(np.sqrt(apart @ self.covariance @ apart) <= self.radius)


def leaves(run: Run) -> Mapping[str, Any]:
    """The arrays of the learner's last state by dotted name, also of a run that was read from a file."""
    return run.state if isinstance(run.state, dict) else dict(tree.leaves(run.state))


def ellipsoid_of(run: Run) -> Ellipsoid:
    """The ellipsoid of the last state of a run's first seed."""
    held = leaves(run)
    names = ("data.covariance", "data.response")
    if "beta" not in run.settings or not all(name in held for name in names):
        raise InputError(
            f"{run.learner} keeps no ellipsoid of parameters with a fixed radius beta (ravi-ucb/mixture does)"
        )
    covariance, response = (np.array(held[name][0]) for name in names)
    return Ellipsoid(int(run.plays[0]), np.linalg.solve(covariance, response), covariance, float(run.settings["beta"]))


def ellipsoids(learner: Learner | str, mdp: MDP | str, steps: int, times: Iterable[int]) -> list[Ellipsoid]:
    """Run a mixture learner and keep its ellipsoid after the epochs in which it makes these many steps."""
    from ravi.runtime.api import resolved, resume, run

    mdp, learner = resolved(mdp, learner, steps)
    asked = sorted(set(times))
    if not asked or asked[0] < 1 or asked[-1] > steps:
        raise InputError(f"times must be among 1, ..., {steps}, not {asked}")
    part: Run | None = None
    found: list[Ellipsoid] = []
    for time in asked:
        if part is None:
            part = run(learner, mdp, steps, [0], pause=time, measured=False, keep_epochs=False, progress=False)
        elif part.plays[0] < time:
            part = resume(part, learner, mdp, pause=time)
        if not found or part.plays[0] > found[-1].time:
            found.append(ellipsoid_of(part))
    return found


def parameter_figure(
    found: Sequence[Ellipsoid], theta: Any = None, *, coordinates: tuple[int, int] = (0, 1), title: str = ""
) -> Drawn:
    """The shadows of ellipsoids on two coordinates, with their centres and the true theta.

    The legend says of each whether it holds the true theta, in all coordinates.
    """
    if not found:
        raise InputError("there is no ellipsoid to draw")
    d = len(found[0].centre)
    if len(set(coordinates)) != 2 or not all(0 <= c < d for c in coordinates):
        raise InputError(f"coordinates must be two different ones of 0, ..., {d - 1}, not {coordinates}")
    i, j = coordinates
    shadows = {one.time: one.shadow(coordinates) for one in found}
    with canvas(SINGLE, 0.85 * SINGLE, title) as (figure, ax):
        for place, one in enumerate(found):
            colour, dash, marker = look(place)
            remark = "" if theta is None or one.holds(theta) else ", θ outside"
            ax.plot(*shadows[one.time].T, color=colour, linestyle=dash, label=f"t = {one.time:,}{remark}")
            ax.plot(one.centre[i], one.centre[j], marker=marker, color=colour, linestyle="none",
                    markeredgecolor="white", markeredgewidth=0.3)  # fmt: skip
        if theta is not None:
            ax.plot(
                theta[i], theta[j], marker="*", markersize=9, color="black", linestyle="none", label="true θ", zorder=5
            )
        ax.set(xlabel=f"θ[{i}]", ylabel=f"θ[{j}]")
        legend_below(figure, ax)
    centres = {one.time: one.centre[[i, j]] for one in found}
    true = None if theta is None else np.asarray(theta, float)[[i, j]]
    return Drawn(figure, {"shadows": shadows, "centres": centres, "theta": true, "coordinates": coordinates})
