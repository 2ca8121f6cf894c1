"""The file of an agent: what it knew beforehand, the learner's state, and where its stream stands.

An agent goes on from its file bit for bit. Compiled loops do not check what they are given, so every array that is read
has the shape and dtype of that of an agent that begins, and is within the range that its field declares
(`ravi.runtime.ranges`); numbers of the header and plays that wait are checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Learner, Problem, Until, Walkers
from ravi.live.rewards import RewardSums
from ravi.live.table import COUNTED
from ravi.runtime import archive, ranges, tree
from ravi.runtime.ranges import Action, Age, Count, Facts, Flag, Number, Place, Policy, Positive, Probability, Whole
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.live.agent import Agent, Builder

BUFFER = 1024  # plays that wait to be added, at most
OPTIONAL = ("rewards.", "visits", "output", "waiting.")  # arrays that are in a file only if they hold something
Pending = tuple[int, int, int, float, bool, bool]  # x, a, y, reward in [0, 1], whether a reset follows, and not its own
NUMBERS: dict[str, Any] = {  # of the file's header: attributes of the agent that go on, `_` before them or not
    "time": int, "_pending": Pending | None, "_restarted": bool, "whole": bool, "cycle": float, "length": int,
    "cuts": int, "_after": int, "plans": int, "follows": bool, "extra": dict[str, Any],
}  # fmt: skip
HEADER: dict[str, Any] = {
    "learner": str | None, "learner_name": str, "problem": dict[str, Any], "truth": bool,
    "rewards": tuple[str, float, float | None], "steps": int, "seed": int, "start_known": bool, "until_reset": bool,
} | {name.strip("_"): kind for name, kind in NUMBERS.items()}  # fmt: skip


class Waiting(NamedTuple):
    """Plays that wait to be added."""

    state: Place  # (m,)
    action: Action  # (m,)
    successor: Place  # (m,)
    slot: Place  # of the successor                      (m,)
    reset: Flag  # whether one followed                  (m,)
    reward: Probability  # in [0, 1]                     (m,)


class AgentState(NamedTuple):
    """All that an agent carries from one play to the next, but for single numbers. What is not there is empty."""

    state: Any
    walkers: Walkers
    rewards: RewardSums
    moves: Count  # how often each successor was met    (X, A, B)
    earned: Positive  # what was earned then, in [0, 1]  (X, A, B)
    least: Probability  # and the least of it            (X, A, B)
    most: Probability  # and the most               (X, A, B)
    late: Count  # plays of a pair before it last showed something new   (X, A)
    starts: Whole  # how often a stretch began where    (X,)
    late_start: Whole  # stretches before one last began at a new place   (1,)
    over: Flag  # whether the epoch is                  (1,)
    deadline: Age  # of the epoch                       (1,)
    visits: Whole  # that are left to it                (1, X, A), or empty
    output: Policy  # pi_I, of the table as it was then   (X, A), (S, X, A), or empty
    cycles: Number  # what each earned                   (C,)
    waiting: Waiting


def agent_state(agent: Agent) -> AgentState:
    (X, A, _), until = agent.table.sizes, agent._until
    return AgentState(
        state=agent.state,
        walkers=agent._walkers,
        rewards=agent.rewards.sums,
        **{name: getattr(agent.table, name) for name in COUNTED},
        late=agent.table.late,
        starts=agent.starts,
        late_start=agent.late_start,
        over=agent._over,
        deadline=np.array([agent._deadline], np.int64),
        visits=np.zeros((0, X, A), np.int64) if until.visits is None else until.visits.astype(np.int64),
        output=np.zeros((0, A)) if agent.output is None else agent.output,
        cycles=np.array(agent.cycles, np.float64),
        waiting=Waiting(*(column[0, : agent._waiting] for column in (*agent._path[:5], agent._parts))),
    )


def save(agent: Agent, path: str | PathLike[str], extra: Mapping[str, Any]) -> None:
    """Write the file of an agent."""
    problem = agent.table.problem
    facts = {field.name: getattr(problem, field.name) for field in fields(problem) if field.init}
    facts |= {name: getattr(agent.table, name) for name in ("rewards", "successors", "initial")}
    if "support" in facts:
        facts["support"] = agent.table.support if agent.table.exact else None
    arrays = {f"problem.{name}": value for name, value in facts.items() if isinstance(value, np.ndarray)}
    arrays |= {
        name: leaf for name, leaf in tree.leaves(agent_state(agent)) if leaf.size or not name.startswith(OPTIONAL)
    }
    header = {
        "learner": agent.source if isinstance(agent.source, str) else None,
        "learner_name": agent.learner.name,
        "problem": {name: value for name, value in facts.items() if not isinstance(value, np.ndarray)},
        "truth": isinstance(problem, MDP),
        "rewards": [agent.rewards.mode, agent.rewards.scale, agent.rewards.memory],
        "steps": agent.steps,
        "seed": agent.seed,
        "start_known": agent.start_known,
        "until_reset": agent._until.reset,
    }
    header |= {name.strip("_"): getattr(agent, name) for name in NUMBERS} | {"extra": extra}
    archive.write(path, "agent", header, arrays)


def load(
    kind: type[Agent], path: str | PathLike[str], learner: str | Builder | Learner | None, allow_code: bool
) -> Agent:
    """The agent of a file, of this class."""
    header, arrays = archive.read(path, "agent")
    try:
        archive.typed(header, HEADER)
        agent = _agent_at_start(kind, header, arrays, learner, allow_code)
        held = _checked_arrays(
            agent, {name: array for name, array in arrays.items() if not name.startswith("problem.")}
        )
        _check_numbers(header, agent, held)
        _restore(agent, header, held)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, InputError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise InputError(f"cannot go on from {path}: {why}") from None
    return agent


def _agent_at_start(
    kind: type[Agent],
    header: dict[str, Any],
    arrays: dict[str, Array],
    learner: str | Builder | Learner | None,
    allow_code: bool,
) -> Agent:
    """The agent as it began, on the table as it is now."""
    from ravi import ids

    given = header["learner"] if learner is None else learner
    if given is None:
        raise InputError(f"{header['learner_name']} has no id: give the learner itself")
    if isinstance(given, str):
        if given != header["learner"]:
            raise InputError(f"it was made with learner {header['learner'] or header['learner_name']}, not {given}")
        if learner is None:
            ids.check_trust(given, "it", allow_code)
    facts = header["problem"] | {name[8:]: array for name, array in arrays.items() if name.startswith("problem.")}
    problem = (MDP if header["truth"] else Problem)(**facts)
    mode, scale, memory = header["rewards"]
    seed = validation.whole(header["seed"], "seed", 0, 2**63 - 1)
    agent = kind(given, problem, validation.steps(header["steps"]), mode, scale, memory, seed, header["start_known"])
    if agent.learner.name != header["learner_name"]:
        raise InputError(f"it is of {header['learner_name']}, not of {agent.learner.name}")
    agent.table.rewards[:] = problem.rewards  # the learner's own, also where a bonus is in it
    return agent


def _checked_arrays(agent: Agent, arrays: dict[str, Array]) -> AgentState:
    """The arrays of a file in their places, held against what is declared of them."""
    begun, (X, A, _) = agent_state(agent), agent.table.sizes
    waiting = len(arrays.get("waiting.state", ()))
    if waiting >= (1 if agent.learner.walk is not None else BUFFER):
        raise InputError(f"{waiting} steps wait, more than can")
    most, kept = agent.state.policy.shape[1:], arrays["output"].shape if "output" in arrays else ()
    shapes: dict[str, Any] = {
        "visits": (1, X, A), "output": tuple(map(min, most, kept)) if len(kept) == len(most) else most,
        "cycles": (arrays["cycles"].size,),
    }  # fmt: skip
    there: dict[str, Any] = {
        name: np.empty(shape, getattr(begun, name).dtype) for name, shape in shapes.items() if name in arrays
    }
    like = begun._replace(**there, waiting=Waiting(*(np.empty(waiting, each.dtype) for each in begun.waiting)))
    held: AgentState = tree.fill(like, {name: leaf for name, leaf in tree.leaves(begun) if not leaf.size} | arrays)
    time = held.walkers.time
    ranges.check(held, like, Facts(X, A, agent.table.problem.horizon, agent.steps, time, time, agent.steps))
    return held


def _check_numbers(header: dict[str, Any], agent: Agent, held: AgentState) -> None:
    """Check the numbers of the header, and that what waits is of successors that the table has."""
    X, A, _ = agent.table.sizes
    ranges = {"time": (header["time"], agent.steps), "after": (header["after"], X - 1)}
    ranges |= {"length": (header["length"], header["time"])}
    ranges |= {name: (header[name], 2**62) for name in ("plans", "cuts")}
    pending = () if header["pending"] is None else header["pending"]
    if pending:
        x, a, y, reward, *_ = pending
        ranges |= {"pending state": (x, X - 1), "pending action": (a, A - 1), "pending successor": (y, X - 1)}
        ranges |= {"pending reward": (reward, 1)}
    for name, (value, most) in ranges.items():
        if not 0 <= value <= most:
            raise InputError(f"its {name} is {value}, not from 0 to {most}")
    for i, (x, a, y, slot) in enumerate(zip(*(column.tolist() for column in held.waiting[:4]), strict=True)):
        if agent.table.slot(x, a, y) != slot:
            raise InputError(
                f"its waiting.slot[{i}] is {slot}, which is not the place of {y} after state {x}, action {a}"
            )
    if pending and agent.table.closed and agent.table.rules_out(*pending[:3]):
        raise InputError(f"its pending successor is {pending[2]}, which {agent.table.problem.name} rules out")
    added, waiting = held.walkers.time[0], len(held.waiting.state)
    if header["time"] != added + waiting:
        raise InputError(f"its time is {header['time']}, but {added} steps were added and {waiting} wait")


def _restore(agent: Agent, header: dict[str, Any], held: AgentState) -> None:
    """Put a new agent into the state that a file holds."""
    for name in NUMBERS:
        setattr(agent, name, header[name.strip("_")])
    agent._pending = agent._pending and tuple(agent._pending)  # type: ignore[assignment]
    agent.state, agent._walkers, agent._over, agent.starts = held.state, held.walkers, held.over, held.starts
    agent.late_start, agent.cycles = held.late_start, held.cycles.tolist()
    for name in (*COUNTED, "late"):
        getattr(agent.table, name)[:] = getattr(held, name)
    agent.rewards.sums = held.rewards
    until = Until(header["until_reset"], visits=held.visits if held.visits.size else None)
    agent._opened(until, int(held.deadline[0]))
    agent.output = held.output if held.output.size else None
    agent._waiting = len(held.waiting.state)
    for column, plays in zip((*agent._path[:5], agent._parts), held.waiting, strict=True):
        column[0, : agent._waiting] = plays
