"""How far the policy of a learner of RAVI-UCB's form moves in every epoch, and whether its bonuses hold.

    H(pi_k || pi_{k-1})                                   how far the policy moves, under its own occupancy
    s_k = max_x span_a log(pi_k / pi_{k-1})(a | x)        the effective step: eta times the largest span of Q_k
    CB_k - gamma |(P - P_hat_k) V_k|                      the margin of validity; bonuses hold where none is negative

Since log(pi_k / pi_{k-1}) = eta (Q_k - V_k) and Q_k is in [0, H], s_k is at most eta H, and every KL(pi_k || pi_{k-1})
at most s_k^2 / 8 (the variance of what has span s is at most s^2 / 4, along the whole way from one policy to the next).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Learner
from ravi.display.style import DOUBLE, GREY, Drawn, legend_below, line, look, panels, styled
from ravi.planning.occupancies import relative_entropy
from ravi.planning.solver import solve
from ravi.runtime.api import resolved
from ravi.statistics.intervals import band
from ravi.validation import InputError
from ravi.verify.record import Played, run_recorded, under
from ravi.verify.setting import setting_of

NEAR = 0.01  # of the largest margin: within this of zero the axis is linear
POINTS = 120  # of a line; epochs in between are put together


class Watched(NamedTuple):
    """What was recorded of every epoch k, up to the last that all seeds have   (n, K)."""

    start: np.ndarray  # T_k
    entropy: np.ndarray  # H(pi_k || pi_{k-1}), in nats
    largest: np.ndarray  # max_x KL(pi_k || pi_{k-1})(x), likewise
    step: np.ndarray  # s_k
    bonus: np.ndarray  # <mu^{pi_k}, CB_k>
    error: np.ndarray  # <mu^{pi_k}, gamma |(P - P_hat_k) V_k|>
    margin: np.ndarray  # min_{x, a} of the margin of validity
    eta: float
    horizon: float
    learner: str
    mdp: str

    @property
    def epochs(self) -> int:
        return int(self.start.shape[1])


def watched(learner: Learner | str, mdp: MDP | str, steps: int, seeds: int | Iterable[int] = 1) -> Watched:
    """Run a learner and watch every epoch."""
    mdp, learner = resolved(mdp, learner, steps)
    if learner.parts is None:
        raise InputError(f"{learner.name} has no parts to record: only learners of RAVI-UCB's form have them")
    setting = setting_of(learner, mdp, steps, solve(mdp))
    found = [_epochs(s) for s in run_recorded(setting, learner, seeds, False)[1]]
    K = min(len(start) for start, *_ in found)  # epochs that every seed has
    kept: Any = [np.array([values[:K] for values in parts]) for parts in zip(*found, strict=True)]
    return Watched._make([*kept, setting.eta, setting.H, learner.name, mdp.name])


def _epochs(s: Played) -> tuple[Array, ...]:
    """The first seven fields of `Watched`, of one seed   (K,) each."""
    policy, before = s.at.policy, np.concatenate([s.setting.parts.initial_policy[None], s.at.policy[:-1]])
    apart, off = relative_entropy(policy, before), s.gamma * np.abs(s.PV - s.PV_hat)
    with np.errstate(divide="ignore", invalid="ignore"):
        span = np.ptp(np.log(policy) - np.log(before), axis=-1)
    return (
        s.starts, (s.at.nu * apart).sum(-1), apart.max(-1), span.max(-1), under(s.at.mu, s.CB), under(s.at.mu, off),
        (s.CB - off).min((1, 2)),
    )  # fmt: skip


def policy_steps(record: Watched, *, title: str = "") -> Drawn:
    """How far the policy moves from epoch to epoch: relative entropies, and the effective step beside eta H."""
    k, most = _edges(record.epochs), record.eta * record.horizon
    shown = {
        "mean over states": _means(record.entropy, k),
        "largest of a state": _means(record.largest, k),
        "effective step": _means(record.step, k),
    }
    with _pair(title) as (figure, left, right):
        for place, name in enumerate(("mean over states", "largest of a state")):
            _band(left, k, shown[name], name, place)
        left.axhline(most**2 / 8, color=GREY, linestyle=(0, (1, 1)), linewidth=1, label="(ηH)²/8: never above")
        left.set(ylabel="KL(πₖ ‖ πₖ₋₁) (nats)", yscale="log")
        _band(right, k, shown["effective step"], "effective step sₖ", 2)
        right.axhline(most, color=GREY, linestyle="--", linewidth=1, label="ηH: never above")
        right.set(ylabel="step (nats)", yscale="log", title=f"η = {record.eta:.3g}, H = {record.horizon:g}")
    return Drawn(figure, {"epochs": k[1:] - 1, "curves": shown, "eta": record.eta, "ceiling": most**2 / 8})


def validity(record: Watched, *, title: str = "") -> Drawn:
    """Bonus and true error from epoch to epoch, and the least margin of any pair: below zero the bonus is invalid.

    Of the epochs that one point stands for, the means are averaged and the least margin is the least. "Invalid" counts
    the epochs of all seeds.
    """
    k = _edges(record.epochs)
    shown = {"bonus": _means(record.bonus, k), "true error": _means(record.error, k)}
    worst = np.minimum.reduceat(record.margin, k[:-1] - 1, axis=1).min(axis=0)
    invalid = float((record.margin < 0).mean())
    with _pair(title) as (figure, left, right):
        for place, (name, one) in enumerate(shown.items()):
            _band(left, k, one, f"{name}, mean under the policy", place)
        positive = any((one[0] > 0).any() for one in shown.values())
        left.set(ylabel="value (reward)", yscale="log" if positive else "linear")
        line(right, k[1:] - 1, worst, "least margin, all pairs and seeds", look(6))
        most = float(np.abs(worst).max()) or 1.0
        low, high = min(1.5 * float(worst.min()), -NEAR * most), max(1.5 * float(worst.max()), NEAR * most)
        right.set_yscale("symlog", linthresh=NEAR * most, linscale=0.5)
        right.axhline(0, color=GREY, linewidth=0.8)
        right.axhspan(low, 0, color=look(1).colour, alpha=0.15, linewidth=0, label="invalid")
        right.set(
            ylabel="bonus − error (reward)", title=f"invalid in {100 * invalid:.3g} % of epochs", ylim=(low, high)
        )
    return Drawn(figure, {"epochs": k[1:] - 1, "curves": shown, "margin": worst, "invalid": invalid})


@contextmanager
def _pair(title: str) -> Iterator[tuple[Any, Any, Any]]:
    """A figure of two axes over epochs, to be drawn on within."""
    figure, axes = panels(1, 2, width=DOUBLE, height=0.36 * DOUBLE, title=title)
    with styled():
        yield figure, *axes[0]
        for ax in axes[0]:
            ax.set(xscale="log", xlabel="epoch k")
            ax.margins(x=0)
        legend_below(figure, axes)


def _edges(epochs: int) -> np.ndarray:
    """1 = e_0 < e_1 < ... = K + 1: point j stands for the epochs e_j, ..., e_{j+1} - 1, evenly spread by logarithm."""
    if epochs < 1:
        raise InputError("there is no epoch that every seed has")
    return np.unique(np.rint(np.geomspace(1, epochs + 1, min(epochs, POINTS) + 1)).astype(np.int64))


def _means(values: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean over seeds, with its interval, of the means between edges."""
    return band(np.add.reduceat(values, edges[:-1] - 1, axis=1) / np.diff(edges))


def _band(axes: Any, k: np.ndarray, shown: tuple[np.ndarray, np.ndarray, np.ndarray], label: str, place: int) -> None:
    mean, low, high = shown
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(low), np.maximum(low, mean / 10), low)  # a logarithmic axis has no zero
    line(axes, k[1:] - 1, np.where(mean > 0, mean, np.nan), label, look(place), low=low, high=high)
