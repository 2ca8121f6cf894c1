"""The choices of `ravi.learn`: what it learns with, given by the user or chosen where nothing is said.

Without a learner, it is PSRL whose prior is learned (`ravi.learners.posterior.psrl_pooled`), without a bonus for
rewards; gamma is 0.99; steps after an end, which show nothing new, are left out but for the first; and the policy is
`planned`, the best for what is expected by what was seen. Of a Box that a grid cuts into cells, it is how observations
move (`ravi.live.local_linear`), and gamma is 0.998; where no grid is given or known, one is chosen by a warm-up
(`ravi.live.grid_choice`), with the range of rewards. benchmarks/environments.md and benchmarks/grids.md have the
measurements that decided it. Of a few environments of Gymnasium that have no table, the range of rewards and a grid are
known here too; all can be given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, pi
from pathlib import Path
from typing import Any

from ravi import ids, validation
from ravi.core import MDP, Problem, a_problem
from ravi.gymnasium import changed_by
from ravi.live.agent import Agent, agent
from ravi.live.discovery import FIRST
from ravi.live.encoders import Encoder, count_of, encoder_from, kind_of
from ravi.live.environment import Environment
from ravi.live.grid import Grid
from ravi.live.grid_choice import FoundGrid, choose_grid, one_cell
from ravi.live.local_linear import LocalLinear
from ravi.live.rewards import MODES, UNSEEN
from ravi.live.table import FEW
from ravi.validation import InputError, require_table

DISCOUNT = 0.99
DISCOUNT_OF_A_GRID = 0.998  # a Box moves little in a step: what matters is some hundred steps ahead
MANY = 1000  # observations
LARGEST = 10_000  # reward of what was never played, in parts of the range of those that were observed
RANGES = {"Blackjack": (-1.0, 1.0), "CartPole": (0.0, 1.0), "MountainCar": (-1.0, 0.0), "Acrobot": (-1.0, 0.0)}
NATURAL = (-1.0, 1.5)  # of Blackjack with natural=True, which counts for nothing where sab=True
SUTTON_BARTO = (-1.0, 0.0)  # of CartPole with sutton_barto_reward=True
BOXES: dict[str, dict[str, Any]] = {  # what is outside is clipped
    "CartPole": {"low": [-2.6, -2.0, -0.23, -2.0], "high": [2.6, 2.0, 0.23, 2.0], "bins": [15, 11, 11, 11]},
    "MountainCar": {"low": [-1.2, -0.07], "high": [0.6, 0.07], "bins": [60, 60]},
    "Acrobot": {"low": [-pi, -pi, -6.0, -10.0], "high": [pi, pi, 6.0, 10.0], "bins": [15, 15, 11, 13], "angles": 2},
}
OBSERVED = "those observed, and 0"
OF_TABLE = "its transition table"
NO_GAP = "until_gap asks for an interval, but "
NO_RANGE = "the range of rewards is not known; reward_range=(least, largest) of a step gives bounds"


@dataclass(frozen=True, eq=False)
class Choices:
    """What a call of `ravi.learn` was given, and what it chose. Made by `start`.

    Attributes
    ----------
    default
        Whether the learner was chosen: then the usual policy is the planned one, and learning takes turns with policies
        that shorten the interval (`ravi.live.stopping_rule`).
    range_from
        How the range of rewards is known, in words.
    grid
        What a warm-up found, for a Box; None of others.
    given
        The names of what the user gave.
    """

    default: bool
    range_from: str
    grid: FoundGrid | None
    given: tuple[str, ...]

    def words(self, environment: Mapping[str, Any], live: Agent) -> list[tuple[str, str]]:
        """The choices by name, as text: of this stream, and of an agent with its range of rewards as it is now."""
        observations, rewards = environment["observations"], live.range
        grid = grid_words(observations) if "looked" in environment else None
        if grid is None and observations["kind"] == "grid":
            grid = f"{' x '.join(map(str, observations['bins']))} cells"
        ends = f"from {rewards.low:.6g} to {rewards.high:.6g} ({self.range_from})"
        found = [
            ("learner", live.name), ("discount", f"{live.table.problem.discount:.10g}"), ("grid", grid),
            ("actions", level_words(environment["actions"])),
            ("rewards", "none but 0 was observed" if rewards.unseen else ends),
        ]  # fmt: skip
        return [(what, words) for what, words in found if words is not None]


def start(
    world: Any,
    learner: str | Callable[..., Any] | None,
    steps: int,
    *,
    discount: float | None,
    problem: Problem | None,
    termination: str,
    grid: Grid | Mapping[Any, Grid] | None,
    discover: bool | None,
    rewards: str | None,
    reward_range: tuple[float, float] | None,
    reward_scale: float | None,
    memory: float | None,
    seed: int,
    checkpoint: Path | None,
    bounded: bool,
) -> tuple[Environment, Agent, Choices]:
    """The stream of an environment, an agent at its start, and what was chosen. bounded: whether the policy is to have
    an interval; an error, before the first step is made, where it cannot."""
    if isinstance(learner, str):
        ids.given_options(learner)
    values = {"learner": learner, "discount": discount, "grid": grid, "reward_range": reward_range}
    given, usual, found = tuple(name for name, value in values.items() if value is not None), learner is None, None
    if usual and grid is None and not discover:
        grid = known_grid(world)
    if discover is None:
        discover = usual and grid is None and needs_discovery(world.observation_space)
    warms_up = usual and grid is None and not discover and kind_of(world.observation_space) == "Box"
    stream = Environment(
        world, termination=termination, grid=one_cell(world.observation_space) if warms_up else grid, seed=seed,
        discover=discover, skip=usual, levels=usual,
    )  # fmt: skip
    range_from = "given"
    if usual and not warms_up and reward_range is None:
        reward_range, range_from = known_range(stream.env), "known of it"
    if reward_range is None and (problem is not None or rewards == "known"):
        range_from = "those of the problem" if problem is not None else OF_TABLE
    elif reward_range is None:
        reward_range, range_from = _range_of_table(stream), OF_TABLE
    follows = usual and reward_range is None and problem is None and rewards != "known"
    if learner is None and not warms_up:
        learner = default_learner(stream.observation_space, stream.terminal, bounded=not follows)
    cells = warms_up or isinstance(learner, LocalLinear)
    if bounded and (why := no_interval(None, discovered=bool(discover), cells=cells)):
        raise InputError(f"{NO_GAP}{why}")
    if warms_up:
        found = choose_grid(stream, validation.steps(steps), checkpoint)
        learner, steps = LocalLinear(found.grid, found.bounds), validation.steps(steps) - stream.looked
    assert learner is not None
    if follows:
        reward_range, range_from = UNSEEN if found is None else found.rewards, OBSERVED
    if discount is None and problem is None:
        discount = DISCOUNT_OF_A_GRID if isinstance(learner, LocalLinear) else DISCOUNT
    known, sizes = _known_problem(stream, problem, discount, rewards, reward_range), dict[str, Any]()
    if known is None:
        if reward_range is None:
            raise InputError(
                f"reward_range is missing: {stream.name} has no table to take it from; say the least and the largest "
                "reward of a step, for instance (-1, 0) or --reward-range -1 0, or leave out the learner: the default "
                "learns them"
            )
        sizes = {"states": FIRST if discover else stream.states, "actions": stream.actions, "discount": discount}
        lower = "their number (a coarser grid); discover=True has room for the states that are met"
        require_table(stream.name, "the number of actions" if discover else lower, sizes["states"], stream.actions, FEW)
        sizes |= {"reward_range": reward_range, "name": stream.name}
    if reward_scale is None:
        reward_scale = 0.0 if usual else 1.0  # of a reward that is always the same, one step shows all
    live = agent(
        learner, known, steps, rewards=rewards, reward_scale=reward_scale, memory=memory, seed=seed, **sizes
    )  # fmt: skip
    live.follows = follows
    if bounded and (why := no_interval(live, discovered=stream.discovered, cells=False)):
        raise InputError(f"{NO_GAP}{why}")
    return stream, live, Choices(usual, range_from, found, given)


# The defaults.


def default_learner(encoder: Encoder, end: int | None, *, bounded: bool) -> str | LocalLinear:
    """The learner: of a grid whose episodes end in a state, how it moves; else an id. end: that state, if there is;
    bounded: whether the range of rewards is known."""
    if isinstance(encoder, Grid) and end is not None and LocalLinear.fits(encoder):
        return LocalLinear(encoder)
    return "psrl/pooled" + ("" if end is None else f",end={end}") + ("" if bounded else f",largest={LARGEST:g}")


def needs_discovery(space: Any) -> bool:
    """Whether observations get numbers as they are met: where they cannot be listed (texts, arrays of whole numbers),
    or are more than MANY combinations, of which most may be impossible."""
    return kind_of(space) != "Discrete" and count_of(space) > MANY


def known_range(env: Any) -> tuple[float, float] | None:
    """The least and the largest reward of an environment that is known here."""
    options, name = getattr(getattr(env, "spec", None), "kwargs", {}), _name(env)
    if name == "Blackjack" and options.get("natural") and not options.get("sab"):
        return NATURAL
    return SUTTON_BARTO if name == "CartPole" and options.get("sutton_barto_reward") else RANGES.get(name)


def known_grid(env: Any) -> Grid | None:
    """The cells of an environment that is known here."""
    box = BOXES.get(_name(env))
    return None if box is None else Grid(**box, outside="clip")


def _name(env: Any) -> str:
    """The name in an environment's id, without its version; none where a wrapper changes what is known of it."""
    return "" if changed_by(env) is not None else str(getattr(getattr(env, "spec", None), "id", "")).rpartition("-v")[0]


# What is known beforehand.


def _known_problem(
    stream: Environment,
    problem: Problem | None,
    discount: float | None,
    rewards: str | None,
    reward_range: tuple[float, float] | None,
) -> Problem | None:
    """The problem that is given, or the environment's own table where rewards are known; checked against the stream."""
    units = None if reward_range is None else validation.units(reward_range, "reward_range")
    if problem is None:
        assert discount is not None
        if rewards is None or validation.one_of(rewards, MODES, "rewards") != "known":
            return None
        if stream.discovered:
            raise InputError("rewards='known' are those of a table, and discovered states have numbers of their own")
        known = _table_of(stream, discount).problem
        if units not in (None, known.units):
            raise InputError(f"reward_range is {reward_range}, but the table of {stream.name} has {known.units}")
        return known
    problem = a_problem(problem)
    if discount is not None and not isclose(validation.probability(discount, "discount"), problem.discount):
        raise InputError(f"discount is {discount:g}, but {problem.name} has {problem.discount:g}")
    if units not in (None, problem.units):
        raise InputError(f"reward_range is {reward_range}, but {problem.name} has {problem.units}")
    if stream.discovered:
        raise InputError(f"{problem.name} numbers its states, and discovered states have numbers of their own")
    if (stream.states, stream.actions) != (problem.states, problem.actions):
        raise InputError(
            f"{stream.name} has {stream.states} states and {stream.actions} actions ({stream.termination}), but "
            f"{problem.name} has {problem.states} and {problem.actions}"
        )
    return problem


def _range_of_table(stream: Environment) -> tuple[float, float] | None:
    """The least and the largest reward, from the environment's own table, if it has one."""
    try:
        return _table_of(stream, 0.5).units
    except InputError:
        return None


def _table_of(stream: Environment, discount: float) -> MDP:
    """The environment's own table. Its time limit, if it has one, cuts the stream, and is no part of the problem."""
    from ravi.gymnasium import TimeLimitDropped, mdp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitDropped)
        return mdp(stream.env, discount, termination=stream.termination)


def no_interval(agent: Agent | None, *, discovered: bool, cells: bool) -> str:
    """Why no interval is given for a policy; nothing where one is. agent: None before there is one."""
    if discovered:
        return "states are discovered, and how many there are is not known"
    if cells:
        return "states are cells of a Box, and where one leads depends on the place in it"
    if agent is not None and agent.follows:
        return NO_RANGE
    if agent is not None and agent.rewards.mode == "changing":
        return "rewards change"
    if agent is not None and agent.learner.stages:
        return "the policy depends on the steps since a reset"
    return ""


# The choices in words.


def grid_words(grid: Mapping[str, Any]) -> str:
    """A grid that was chosen, with how to say another."""
    ends = ("[" + ", ".join(f"{end:.3g}" for end in grid[name]) + "]" for name in ("low", "high"))
    cells = " x ".join(map(str, grid["bins"]))
    return (
        f"{cells} cells from {' to '.join(ends)}, chosen by observations; grid= or --bins, --low and --high set others"
    )


def level_words(actions: Mapping[str, Any]) -> str | None:
    """The levels of actions that are a Box; None of other actions."""
    if actions["kind"] != "grid":
        return None
    grid = encoder_from(actions)
    ends = ("[" + ", ".join(f"{x:.3g}" for x in grid.observation(i).ravel()) + "]" for i in (0, grid.size - 1))
    return f"{' x '.join(map(str, actions['bins']))} levels from {' to '.join(ends)} of a Box; a wrapper can set others"
