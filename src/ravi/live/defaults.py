"""What does `ravi.learn(env, steps=...)` choose, when nothing is said? A learner, its constants, the policy to take.

The learner is PSRL whose prior is learned (`ravi.learners.posterior.psrl_pooled`), without a bonus for rewards; gamma
is 0.99; steps after an end, which show nothing new, are left out but for the first; and the policy is `planned`, the
best for what is expected by what was seen.
Of a Box that a grid cuts into cells, it is how observations move (`ravi.live.boxes`), and gamma is 0.998; where no
grid is given or known, one is chosen by a warm-up (`ravi.live.warm_up`), with the range of rewards.
benchmarks/environments.md and benchmarks/grids.md have the measurements that decided it. Of a few environments of
Gymnasium that have no table, the range of rewards and a grid are known here too; all can be given.
"""

from __future__ import annotations

from math import pi
from typing import Any

from ravi.live.boxes import Smooth
from ravi.live.grid import Grid
from ravi.live.numberings import Space
from ravi.live.spaces import count_of, kind_of
from ravi.mdps.from_gymnasium import changed_by

DISCOUNT = 0.99
DISCOUNT_OF_A_GRID = 0.998  # a Box moves little in a step: what matters is some hundred steps ahead
POLICY = "planned"
MANY = 1000  # observations
REWARD_SCALE = 0.0  # of a reward that is always the same, one step shows all
LARGEST = 10_000  # reward of what was never played, in parts of the range of those that were observed
RANGES = {"Blackjack": (-1.0, 1.0), "CartPole": (0.0, 1.0), "MountainCar": (-1.0, 0.0), "Acrobot": (-1.0, 0.0)}
NATURAL = (-1.0, 1.5)  # of Blackjack with natural=True, which counts for nothing where sab=True
SUTTON_BARTO = (-1.0, 0.0)  # of CartPole with sutton_barto_reward=True
BOXES: dict[str, dict[str, Any]] = {  # what is outside is clipped
    "CartPole": {"low": [-2.6, -2.0, -0.23, -2.0], "high": [2.6, 2.0, 0.23, 2.0], "bins": [15, 11, 11, 11]},
    "MountainCar": {"low": [-1.2, -0.07], "high": [0.6, 0.07], "bins": [60, 60]},
    "Acrobot": {"low": [-pi, -pi, -6.0, -10.0], "high": [pi, pi, 6.0, 10.0], "bins": [15, 15, 11, 13], "angles": 2},
}


def learner(space: Space, end: int | None, *, bounded: bool) -> str | Smooth:
    """The learner: of a grid whose episodes end in a state, how it moves; else an id. end: that state, if there is;
    bounded: whether the range of rewards is known."""
    if isinstance(space, Grid) and end is not None and Smooth.fits(space):
        return Smooth(space)
    return "psrl/pooled" + ("" if end is None else f",end={end}") + ("" if bounded else f",largest={LARGEST:g}")


def discovers(space: Any) -> bool:
    """Whether observations get numbers as they are met: where they cannot be listed (texts, arrays of whole numbers),
    or are more than MANY combinations, of which most may be impossible."""
    return kind_of(space) != "Discrete" and count_of(space) > MANY


def reward_range(env: Any) -> tuple[float, float] | None:
    """The least and the largest reward of an environment that is known here."""
    options, name = getattr(getattr(env, "spec", None), "kwargs", {}), _name(env)
    if name == "Blackjack" and options.get("natural") and not options.get("sab"):
        return NATURAL
    return SUTTON_BARTO if name == "CartPole" and options.get("sutton_barto_reward") else RANGES.get(name)


def grid(env: Any) -> Grid | None:
    """The cells of an environment that is known here."""
    box = BOXES.get(_name(env))
    return None if box is None else Grid(**box, outside="clip")


def _name(env: Any) -> str:
    """The name in an environment's id, without its version; none where a wrapper changes what is known of it."""
    if changed_by(env) is not None:
        return ""
    return str(getattr(getattr(env, "spec", None), "id", "")).rpartition("-v")[0]
