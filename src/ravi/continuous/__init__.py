"""Continuous states: mixtures of d simulators with densities on a box, planned on quadrature nodes."""

from ravi.continuous.beta import level
from ravi.continuous.core import ContinuousMDP, ContinuousProblem
from ravi.continuous.exact import optimal, reference, return_of, value_of
from ravi.continuous.learner import planner_of, ravi_ucb, ravi_ucb_plus
from ravi.continuous.quadrature import grid
from ravi.continuous.running import box
from ravi.continuous.swing_up import pendulum

__all__ = [
    "ContinuousMDP", "ContinuousProblem", "box", "grid", "level", "optimal", "pendulum", "planner_of", "ravi_ucb",
    "ravi_ucb_plus", "reference", "return_of", "value_of",
]  # fmt: skip
