"""What does `ravi.learn(env, steps=...)` choose, when nothing is said? A learner, its constants, the policy to take.

The learner is PSRL whose prior is learned (`ravi.learners.posterior.psrl_pooled`), without a bonus for rewards; gamma
is 0.99; steps after an end, which show nothing new, are left out but for the first; and the policy is `planned`, the
best for what is expected by what was seen.
benchmarks/environments.md has the measurements that decided it. Of a few environments of Gymnasium that have no table,
the range of rewards and a grid are known here too; all can be given.
"""

from __future__ import annotations

from typing import Any

from ravi.live.spaces import Grid

DISCOUNT = 0.99
POLICY = "planned"
REWARD_SCALE = 0.0  # of a reward that is always the same, one step shows all
RANGES = {"Blackjack": (-1.0, 1.0), "CartPole": (0.0, 1.0), "MountainCar": (-1.0, 0.0), "Acrobot": (-1.0, 0.0)}
BOXES: dict[str, tuple[Any, Any, Any]] = {  # low, high and cells of each coordinate; what is outside is clipped
    "CartPole": ([-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0], [4, 5, 9, 9]),
    "MountainCar": ([-1.2, -0.07], [0.6, 0.07], [36, 28]),
    "Acrobot": ([-1.0, -1.0, -1.0, -1.0, -6.0, -9.0], [1.0, 1.0, 1.0, 1.0, 6.0, 9.0], [4, 4, 4, 4, 6, 6]),
}


def learner(end: int | None) -> str:
    """The learner's id; end: the state that an end of the environment leads to, if it does."""
    return "psrl/pooled" if end is None else f"psrl/pooled,end={end}"


def reward_range(env: Any) -> tuple[float, float] | None:
    """The least and the largest reward of an environment that is known here."""
    return RANGES.get(_name(env))


def grid(env: Any) -> Grid | None:
    """The cells of an environment that is known here."""
    box = BOXES.get(_name(env))
    return None if box is None else Grid(*box, outside="clip")


def _name(env: Any) -> str:
    """The name in an environment's id, without its version; a Blackjack with natural=True pays more, and is another."""
    spec = getattr(env, "spec", None)
    if spec is not None and spec.kwargs.get("natural"):
        return ""
    return str(env if isinstance(env, str) else getattr(spec, "id", "")).rpartition("-v")[0]
