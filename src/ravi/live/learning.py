"""Learning in an environment of Gymnasium: `ravi.learn(env, steps=...)`.

The learner resets the environment with probability 1 - gamma after each step, as in the paper: that is what makes a
stream of experience a discounted problem. What the environment's own ends stand for is said by `termination`.

Nothing is lost: where the environment raises, or gives what it must not, the agent is kept as it was before that step
(`Broken.learned`, and in the checkpoint), and the same call goes on, from a reset. A checkpoint that cannot be written
breaks off a stream too. Ctrl-C goes on to the next reset and stops there; a second one stops after the step, also where
the environment does not answer; a third one at once, the checkpoint as it was written last. Checkpoints are written
at resets, so that an environment made anew goes on bit for bit, if all its randomness comes from the seed of its reset.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ravi import validation
from ravi._jit.functions import effort
from ravi.core import Ints, Problem
from ravi.display.progress import Progress, telling, wanted
from ravi.live import defaults
from ravi.live.agent import Agent, agent
from ravi.live.boxes import Smooth
from ravi.live.discovery import FIRST
from ravi.live.environment import Environment, made
from ravi.live.estimates import Estimate
from ravi.live.focus import focus
from ravi.live.given import problem_of, range_of
from ravi.live.grid import Grid
from ravi.live.learned import Learned
from ravi.live.rewards import UNSEEN
from ravi.live.spaces import kind_of
from ravi.live.stretches import Stretch
from ravi.live.table import FEW
from ravi.live.until import Until, check_bounded
from ravi.live.warm_up import chosen_by, whole
from ravi.runtime import archive
from ravi.runtime.api import Look, interrupts
from ravi.runtime.archive import Unwritable
from ravi.validation import InputError, StreamError, require_table

LOG = logging.getLogger("ravi")
PACE = 10.0  # seconds between two checkpoints
TELL = 0.1  # seconds between two tellings of progress
STEPS = 100_000  # plays, unless given
IN_LEARNED = "what was learned is in .learned"

Callback = Callable[[Look], None]


class Broken(StreamError):
    """A stream broke off: `learned` holds what was learned before, and the same call goes on from the checkpoint."""

    def __init__(self, message: str, learned: Learned) -> None:
        super().__init__(message)
        self.learned = learned


class Halted(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM: `learned` holds what was learned, and the same call goes on from the checkpoint."""

    def __init__(self, learned: Learned) -> None:
        super().__init__(f"stopped; {IN_LEARNED}")
        self.learned = learned


def learn(
    env: Any,
    learner: str | Callable[..., Any] | None = None,
    steps: int = STEPS,
    *,
    discount: float | None = None,
    problem: Problem | None = None,
    termination: str = "absorb",
    grid: Grid | Mapping[Any, Grid] | None = None,
    discover: bool | None = None,
    rewards: str | None = None,
    reward_range: tuple[float, float] | None = None,
    reward_scale: float | None = None,
    memory: float | None = None,
    seed: int = 0,
    until_gap: float | None = None,
    assume: str = "nothing",
    evaluate: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    callback: Callback | None = None,
) -> Learned:
    """Learn a policy in `env` (an environment, or its id) with `learner` (its id, or a function) in `steps` steps.

    Without a learner, one is chosen, and so is whatever else is not given (`ravi.live.defaults`).

    Parameters
    ----------
    env : a Gymnasium environment, or its id
    learner : its id, or a function of problem and steps
    steps : T, by default 100,000
    discount : gamma; by default 0.99, and 0.998 where a grid is chosen for a Box
    problem : what is known, for instance `ravi.ensemble` of simulators; it has the discount
    termination : what a termination means: "absorb" (no further reward) or "restart"
    grid : how observations of a Box are divided into states; without a learner it is chosen from observations
    discover : number observations as they occur; without a learner, by default where they are texts, arrays of whole
        numbers, or combinations of which there are more than 1,000
    rewards : "unknown", "changing" (with memory) or "known": the problem's, or those of the environment's own table
    reward_range : the least and the largest reward of a step; by default those of the environment's table. Where there
        is none, the default learner takes those that it observes, and 0
    reward_scale, memory, seed : as for `ravi.agent`
    until_gap : stop as soon as the policy is within this distance of the optimum, with probability 0.95
        (`Learned.interval`), and every pair was played that the observed moves lead to; it needs a range of rewards
    assume : what bounds on the policy rest on: "nothing" but the range of rewards and the Markov property, or "seen":
        pairs that were played often do only what they did, which rare events break (`ravi.live.plausible`)
    evaluate : about how many steps more the policy is played without learning, for `Learned.estimate`; by default a
        tenth of the steps that were learned from
    checkpoint : a file that is written about every ten seconds, at the end, and when it is interrupted; if it exists,
        the same call continues from it
    progress : called now and then with the number of steps made, and in all; None for a bar on a terminal or in a
        notebook, False for none
    callback : called with a `ravi.runtime.api.Look` ten times a second at most, and at the end: the optimistic
        value
        and what was earned, per step

    Returns
    -------
    Learned
        The policy, its interval, and the agent that learned it.

    Examples
    --------
    >>> import ravi
    >>> found = ravi.learn("FrozenLake-v1", steps=500)
    >>> found.plays
    500
    """
    wanted(progress)
    validation.function(callback, "callback")
    usual = learner is None
    world, found = made(env), None
    if usual and grid is None and not discover:
        grid = defaults.grid(world)
    if discover is None:
        discover = usual and grid is None and defaults.discovers(world.observation_space)
    chooses = usual and grid is None and not discover and kind_of(world.observation_space) == "Box"
    stream = Environment(
        world, termination=termination, grid=whole(world.observation_space) if chooses else grid, seed=seed,
        discover=discover, skip=usual, levels=usual,
    )  # fmt: skip
    if usual and not chooses and reward_range is None:
        reward_range = defaults.reward_range(stream.env)
    follows = False
    if reward_range is None and problem is None and rewards != "known":
        reward_range = range_of(stream)
        follows = reward_range is None and usual
    if learner is None and not chooses:
        learner = defaults.learner(stream.observation_space, stream.terminal, bounded=not follows)
    if until_gap is not None:
        check_bounded(None, discovered=discover, cells=chooses or isinstance(learner, Smooth))
    if evaluate is not None:
        validation.whole(evaluate, "evaluate", 0)
    if chooses:
        found = chosen_by(stream, validation.steps(steps), checkpoint)
        learner, steps = Smooth(found.grid, found.bounds), validation.steps(steps) - stream.looked
    assert learner is not None
    if follows:
        reward_range = UNSEEN if found is None else found.rewards
    if discount is None and problem is None:
        discount = defaults.DISCOUNT_OF_A_GRID if isinstance(learner, Smooth) else defaults.DISCOUNT
    if reward_scale is None:
        reward_scale = defaults.REWARD_SCALE if usual else 1.0
    given: dict[str, Any] = {"rewards": rewards, "reward_scale": reward_scale, "memory": memory, "seed": seed}
    try:
        live, path = _begun(stream, learner, steps, problem, discount, reward_range, follows, checkpoint, given)
        if until_gap is not None:
            check_bounded(live, discovered=discover, cells=False)
        if found is not None and isinstance(learner, Smooth):
            found.tell(learner, live)
        with telling(progress, f"{live.learner.name} in {stream.name}") as tell:
            told = Told(live, tell, callback)
            until = Until(live, until_gap, assume, explore=usual)
            return _go_on(live, stream, path, told, defaults.POLICY if usual else "last", until, evaluate)
    finally:
        if isinstance(env, str):  # made here
            with suppress(Exception):  # what was learned is worth more
                stream.close()


def _begun(
    stream: Environment,
    learner: str | Callable[..., Any],
    steps: int,
    problem: Problem | None,
    discount: float | None,
    reward_range: tuple[float, float] | None,
    follows: bool,
    checkpoint: str | os.PathLike[str] | None,
    given: dict[str, Any],
) -> tuple[Agent, Path | None]:
    """The agent, new or of its checkpoint."""
    path = None if checkpoint is None else validation.path(checkpoint, "checkpoint")
    if path is not None:
        archive.check_place(path)
    told = problem_of(stream, problem, discount, given["rewards"], reward_range)
    if told is None:
        given |= {"states": FIRST if stream.discovered else stream.states, "actions": stream.actions}
        if reward_range is None:
            raise InputError(
                f"reward_range is missing: {stream.name} has no table to take it from; say the least and the largest "
                "reward of a step, for instance (-1, 0), or leave out the learner: the default learns them"
            )
        given |= {"reward_range": reward_range, "discount": discount, "name": stream.name}
        lower = "their number (a coarser grid); discover=True has room for the states that are met"
        require_table(
            stream.name, "the number of actions" if stream.discovered else lower, given["states"], stream.actions, FEW
        )
    live = agent(learner, told, steps, **given)
    live.follows = follows
    if path is not None and path.exists():
        live = _resumed(path, live, stream)
    return live, path


def _go_on(
    live: Agent, stream: Environment, path: Path | None, tell: Told, usual: str, until: Until, evaluate: int | None
) -> Learned:
    began, saved = time.perf_counter() - effort.seconds, time.monotonic()
    ended, end = live.done, stream.terminal
    smooth = live.given if isinstance(live.given, Smooth) else None
    chosen = smooth if smooth is not None and smooth.bounds is not None else None
    stretch = Stretch(live, stream, single=smooth is not None)

    def learned(missed: float | None = None) -> Learned:
        seconds = time.perf_counter() - effort.seconds - began  # without compiling
        return Learned(live, stream.plain(), seconds, usual, missed, until.assume)

    def keep(estimate: Estimate | None = None) -> None:
        if path is not None:
            more: dict[str, Any] = {} if chosen is None else {"grid": [chosen.close, chosen.settled, chosen.planned]}
            more |= {} if estimate is None else {"estimate": estimate.json()}
            live.save(path, {"environment": stream.plain()} | until.plain() | more)

    with interrupts(signal.SIGTERM, at_once=stretch.at_once) as stopped:
        try:
            while not live.done and not until.enough(learned):
                live.follow(until.policy(stream.resets))
                if chosen is not None:
                    _cut(live, stream, chosen.reach(live.state))
                stretch.abroad = True
                x = stream.reset()
                stretch.abroad = False
                _room(live, x)
                reset = False
                while not reset and not live.done and not stretch.hurried:
                    x, a, y, reward, cut = stretch.ahead(x)
                    if y >= live.table.states:
                        _room(live, y)
                    if chosen is not None:
                        cut = cut or (y != end and chosen.astray(stream.after))
                    reset = live.observe(x, a, y, reward, cut=cut, end=cut and y == end)
                    if smooth is not None and x != end:
                        smooth.tell(live.state, stream.before, a, stream.after, live.range.part(reward), y == end)
                    x = y
                now = time.monotonic()
                stretch.abroad = True
                tell(now)
                stretch.abroad = False
                if stopped() and not live.done:
                    live.interrupt()  # no change after a reset
                    keep()
                    raise Halted(learned())
                if now - saved > PACE:
                    keep()
                    saved = now
        except Halted:
            raise
        except (Exception, KeyboardInterrupt) as error:
            if not stretch.abroad and not isinstance(error, InputError):
                raise  # out of the middle of a plan: the checkpoint is that of before
            live.interrupt()
            where = f"the same call goes on from {path}" if path is not None else IN_LEARNED
            try:
                keep()
            except InputError as unwritten:
                where = IN_LEARNED
                if not isinstance(error, Unwritable):
                    where = f"{unwritten}; {where}"
            if isinstance(error, KeyboardInterrupt):
                raise Halted(learned()) from None
            raise Broken(f"{_said(error, stream, live)}; {where}", learned()) from error
    live.end()
    if chosen is not None and not ended:
        focus(chosen, live, lambda box: _cut(live, stream, chosen.relaid(live.state, *box)))
    tell(inf)
    try:
        keep()
    except InputError as error:
        raise Broken(f"{error}; {IN_LEARNED}", learned()) from None
    found = learned(until.missed(learned))
    LOG.info("%s, in %.2f s", found.title, found.seconds)
    if ended and evaluate is None and "estimate" in live.extra:
        return replace(found, estimate=Estimate.load(live.extra["estimate"]))
    try:
        estimate = _estimate(found, stream, found.plays // 10 if evaluate is None else evaluate)
        keep(estimate)
        return replace(found, estimate=estimate)
    except KeyboardInterrupt:
        raise Halted(found) from None
    except Exception as error:
        said = error if isinstance(error, InputError) else f"{stream.name} raised {type(error).__name__}: {error}"
        raise Broken(f"{said}, while the policy was evaluated; {IN_LEARNED}", found) from error


def _estimate(found: Learned, stream: Environment, steps: int) -> Estimate | None:
    """What the policy earns in so many steps that it does not learn from."""
    from ravi.live.policies.evaluation import held_out

    live = found.agent
    return held_out(found.policy(), stream.env, steps, None if live.follows else live.table.told.units)


def _cut(live: Agent, stream: Environment, to: Ints | None) -> None:
    """The grid of a stream was laid anew: its cells before lie where `to` says. None: it was not."""
    if to is not None:
        assert isinstance(live.given, Smooth)
        stream.cut(live.given.grid)
        live.renumber(to)


class Told:
    """Who is told how an agent stands, ten times a second at most."""

    def __init__(self, live: Agent, progress: Progress | None, callback: Callback | None) -> None:
        self.live, self.progress, self.callback, self.last = live, progress, callback, time.monotonic()

    def __call__(self, now: float) -> None:
        """now: inf at the end."""
        live = self.live
        if now - self.last <= TELL:
            return
        self.last = now
        if self.progress is not None:
            self.progress(live.plays, live.steps)
        if self.callback is not None:
            earned = live.earned
            numbers = {"optimistic": live.optimistic, "earned": None if earned is None else earned.value}
            known = {name: np.array([value]) for name, value in numbers.items() if value is not None}
            self.callback(Look(np.array([live.seed]), np.array([live.plays]), known))


def _said(error: Exception, stream: Environment, live: Agent) -> str:
    """What went wrong, where, and at which step."""
    if not isinstance(error, InputError):
        return f"{stream.name}, step {live.plays + 1}: it raised {type(error).__name__}: {error}"
    told = str(error)
    if not live.range.low <= 0 <= live.range.high and f"state {stream.terminal} " in told:
        told += " (a terminated step leads to a state that earns 0: a range with 0 in it, or termination='restart')"
    return told if told.startswith(stream.name) or isinstance(error, Unwritable) else f"{stream.name}, {told}"


def _room(live: Agent, x: int) -> None:
    """A table that has room for x: one that is discovered doubles."""
    if x >= live.table.states:
        live.grow(max(2 * live.table.states, x + 1), live.table.actions)


def _resumed(path: Path, live: Agent, stream: Environment) -> Agent:
    """The agent of a checkpoint, if it is of this call."""
    kept = Agent.load(path, live.given)
    if isinstance(kept.given, Smooth) and "grid" in kept.extra:
        kept.given.close, kept.given.settled, kept.given.planned = kept.extra["grid"]
    pairs = [
        ("learner", kept.given if isinstance(kept.given, str) else kept.learner.name,
         live.given if isinstance(live.given, str) else live.learner.name),
        ("steps", kept.steps, live.steps),
        ("seed", kept.seed, live.seed),
        ("discount", kept.table.told.discount, live.table.told.discount),
        ("reward_range", *("observed" if each.follows else each.table.told.units for each in (kept, live))),
        ("rewards", (kept.rewards.mode, kept.rewards.scale, kept.rewards.memory),
         (live.rewards.mode, live.rewards.scale, live.rewards.memory)),
    ]  # fmt: skip
    for what, was, now in pairs:
        if was != now:
            raise InputError(f"{path} was made with {what} {was}, not {now}: another file, or the same call")
    if not _same_problem(kept, live):
        raise InputError(f"{path} was made with another problem: another file, or the same call")
    stream.restore(kept.extra.get("environment", {}))
    return kept


def _same_problem(one: Agent, other: Agent) -> bool:
    """Whether two agents were told the same: what is not learned."""
    fixed = ["features", "pair_features"]
    fixed += ["rewards"] if one.rewards.mode == "known" else []
    fixed += ["initial"] if one.start_known else []
    pairs = [(getattr(one.table.told, name), getattr(other.table.told, name)) for name in fixed]
    return one.start_known == other.start_known and all(
        (was is None) == (now is None) and (was is None or np.array_equal(was, now)) for was, now in pairs
    )
