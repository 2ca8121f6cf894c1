"""The two-dimensional example: a pendulum to be swung up, of unknown weight, length and friction.

State (angle, speed), angle 0 upright and periodic on [-pi, pi], speed in [-8, 8]. For DT = 0.25 seconds

    speed' = (g / l) sin(angle) + torque / (m l^2) - b speed,   angle' = speed    (five semi-implicit Euler steps)

then noise is added: N(0, 0.35^2) to the angle, wrapped, and N(0, 0.9^2) to the speed, which is cut to its range before
and stays in it after (the normal is conditioned on the range). A simulator is (m, l, b); in the truth, every step is
made by one of them, drawn from theta. Upright earns 1, hanging 0, by (1 + cos) / 2; fast motion and torque cost.
"""

import math
from typing import Any

import numpy as np

from ravi._jit.functions import compiled
from ravi.continuous import draws
from ravi.continuous.core import ContinuousMDP, ContinuousProblem
from ravi.core import Array

SIMULATORS = ((1.0, 1.0, 0.1), (2.0, 1.2, 0.1), (1.0, 1.0, 2.5))  # (m, l, b): light, heavy, sticky
TRUTH = (0.6, 0.2, 0.2)
TORQUE = 6.0  # actions: -TORQUE, 0, TORQUE
GRAVITY, DT, SUBSTEPS = 9.8, 0.25, 5
SPEED = 8.0
NOISE = (0.35, 0.9)  # standard deviations
START = (0.6, 0.8)  # of nu_0: hanging, at rest, with these deviations


def pendulum(weights: Any = TRUTH, *, discount: float = 0.9) -> ContinuousMDP:
    """The example; `weights` is theta."""
    problem = ContinuousProblem(
        low=np.array([-math.pi, -SPEED]), high=np.array([math.pi, SPEED]), periodic=(True, False), actions=3,
        simulators=len(SIMULATORS), discount=discount, constants=np.ravel(SIMULATORS), factor=_factor, draw=_draw,
        reward=_reward, initial=_initial, begin=_begin, name="pendulum",
    )  # fmt: skip
    return ContinuousMDP(problem, weights)


@compiled
def mean(constants, i, x, a):  # type: ignore[no-untyped-def]
    """Where the motion leads without noise: angle, not wrapped, and speed, cut to its range."""
    mass, length, friction = constants[3 * i], constants[3 * i + 1], constants[3 * i + 2]
    angle, speed, h = x[0], x[1], DT / SUBSTEPS
    for _ in range(SUBSTEPS):
        push = (a - 1) * TORQUE / (mass * length * length)
        speed += h * (GRAVITY / length * math.sin(angle) + push - friction * speed)
        angle += h * speed
    return angle, min(max(speed, -SPEED), SPEED)


@compiled
def wrapped(angle):  # type: ignore[no-untyped-def]
    """In [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@compiled
def around(centre, deviation, points, out):  # type: ignore[no-untyped-def]
    """The density of a wrapped normal angle; what is left out is below 1e-90 for deviations up to 0.6."""
    centre = wrapped(centre)
    for j in range(points.shape[0]):
        out[j] = 0.0
        for turn in range(-2, 3):
            z = (points[j] - centre + 2.0 * math.pi * turn) / deviation
            out[j] += math.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * deviation)


@compiled
def within(centre, deviation, points, out):  # type: ignore[no-untyped-def]
    """The density of a normal speed, conditioned on its range."""
    root = math.sqrt(2.0) * deviation
    mass = 0.5 * (math.erf((SPEED - centre) / root) + math.erf((SPEED + centre) / root))
    for j in range(points.shape[0]):
        z = (points[j] - centre) / deviation
        out[j] = math.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * deviation * mass)


def _factor(constants: Array, i: int, x: Array, a: int, c: int, points: Array, out: Array) -> None:
    angle, speed = mean(constants, i, x, a)
    if c == 0:
        around(angle, NOISE[0], points, out)
    else:
        within(speed, NOISE[1], points, out)


def _draw(constants: Array, i: int, x: Array, a: int, key: int, t: int, lane: int, out: Array) -> None:
    angle, speed = mean(constants, i, x, a)
    z, lane = draws.normal(key, t, lane)
    out[0] = wrapped(angle + NOISE[0] * z)
    out[1] = draws.normal_within(speed, NOISE[1], -SPEED, SPEED, key, t, lane)[0]


def _reward(constants: Array, x: Array, a: int) -> float:
    cost = 0.1 * (x[1] / SPEED) ** 2 + (0.05 if a != 1 else 0.0)
    return max(0.5 * (1.0 + math.cos(x[0])) - cost, 0.0)


def _initial(constants: Array, c: int, points: Array, out: Array) -> None:
    if c == 0:
        around(math.pi, START[0], points, out)
    else:
        within(0.0, START[1], points, out)


def _begin(constants: Array, key: int, t: int, lane: int, out: Array) -> None:
    z, lane = draws.normal(key, t, lane)
    out[0] = wrapped(math.pi + START[0] * z)
    out[1] = draws.normal_within(0.0, START[1], -SPEED, SPEED, key, t, lane)[0]
