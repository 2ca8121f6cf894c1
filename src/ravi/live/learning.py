"""Learning in an environment of Gymnasium: `ravi.learn(env, steps=...)`.

The learner resets the environment with probability 1 - gamma after each step, as in the paper: that is what makes a
stream of experience a discounted problem. What the environment's own ends stand for is said by `termination`.

Nothing is lost: where the environment raises, or gives what it must not, the agent is kept as it was before that step
(`Broken.learned`, and in the checkpoint), and the same call goes on, from a reset. A checkpoint that cannot be written
breaks off a stream too. Ctrl-C goes on to the next reset and stops there. A second one interrupts at once: where the
environment does not answer, the agent is whole and is kept; in the middle of a plan it is not, and the checkpoint is as
it was written last. Checkpoints are written at resets, so that an environment made anew goes on bit for bit, if all its
randomness comes from the seed of its reset.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import effort
from ravi.core import AnyMDP, Ints, Playable, Problem
from ravi.display.progress import Progress, telling, wanted
from ravi.live.agent import Agent
from ravi.live.choices import Choices, start
from ravi.live.environment import Environment, is_an_mdp, opened_world
from ravi.live.estimates import Estimate
from ravi.live.grid import Grid
from ravi.live.grid_choice import focus
from ravi.live.learned import Learned
from ravi.live.local_linear import LocalLinear
from ravi.live.stopping_rule import StoppingRule
from ravi.runtime import archive
from ravi.runtime.api import Look, interrupts
from ravi.runtime.archive import Unwritable
from ravi.validation import InputError, StreamError

LOG = logging.getLogger("ravi")
PACE = 10.0  # seconds between two checkpoints
TELL = 0.1  # seconds between two reports of progress
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
    env: Playable | AnyMDP,
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
    """Learn a policy in `env` (an environment or an MDP, or its id) with `learner` (its id, or a function).

    Without a learner, one is chosen, and so is whatever else is not given (`ravi.live.choices`).

    Parameters
    ----------
    env
        A Gymnasium environment or its id, or an MDP, its id or its file: then the discount is that of the MDP. A
        function of no arguments that gives one, or the class of an environment, is called.
    learner
        Its id, or a function of problem and steps.
    steps
        T, by default 100,000.
    discount
        gamma; by default 0.99, and 0.998 where a grid is chosen for a Box.
    problem
        What is known, for instance `ravi.ensemble` of simulators; it has the discount.
    termination
        What a termination means: "absorb" (no further reward) or "restart".
    grid
        How observations of a Box are divided into states; without a learner it is chosen from observations.
    discover
        Number observations as they occur; without a learner, by default where they are texts, arrays of whole numbers,
        or combinations of which there are more than 1,000.
    rewards
        "unknown", "changing" (with memory) or "known": the problem's, or those of the environment's own table.
    reward_range
        The least and the largest reward of a step; by default those of the environment's table. Where there is none,
        the default learner takes those that it observes, and 0.
    reward_scale, memory, seed
        As for `ravi.agent`.
    until_gap
        Stop as soon as the policy is within this distance of the optimum, with probability 0.95 (`Learned.interval`),
        and every pair was played that the observed moves lead to; it needs a range of rewards.
    assume
        What bounds on the policy rest on: "nothing" but the range of rewards and the Markov property, or "seen": pairs
        that were played often do only what they did, which rare events break (`ravi.live.confidence_sets`).
    evaluate
        About how many steps more the policy is played without learning, for `Learned.estimate`; by default a tenth of
        the steps that were learned from.
    checkpoint
        A file that is written about every ten seconds, at the end, and when it is interrupted; if it exists, the same
        call continues from it.
    progress
        Called now and then with the number of steps made, and in all; None for a bar on a terminal or in a notebook,
        False for none.
    callback
        Called with a `ravi.runtime.api.Look` ten times a second at most, and at the end: the optimistic value and what
        was earned, per step.

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
    if isinstance(learner, int):
        raise InputError(f"learner is {learner!r}, not the id of one; a number of steps is given as steps={learner!r}")
    if evaluate is not None:
        validation.whole(evaluate, "evaluate", 0)

    env = os.fspath(env) if isinstance(env, os.PathLike) else ids.called(env)
    mdp = is_an_mdp(env)
    with opened_world(env, discount if mdp else None) as world:
        if mdp and world.mdp.criterion != "discounted":
            raise InputError(
                f"{world.mdp.name} is {validation.OF_CRITERION[world.mdp.criterion]}, and ravi.learn is for a "
                "discount: take ravi.run, or ravi.agent for a stream"
            )
        if mdp:  # which has a discount, and no end
            termination, discount = "restart", world.mdp.discount
        path = None if checkpoint is None else validation.path(checkpoint, "checkpoint")
        if path is not None:
            archive.check_place(path)
        stream, live, choices = start(
            world, learner, steps, discount=discount, problem=problem, termination=termination, grid=grid,
            discover=discover, rewards=rewards, reward_range=reward_range, reward_scale=reward_scale, memory=memory,
            seed=seed, checkpoint=path, bounded=until_gap is not None,
        )  # fmt: skip
        if path is not None and path.exists():
            live = _resume_agent(path, live, stream)
        if choices.grid is not None:
            choices.grid.add_to(live)
        with telling(progress, f"{live.learner.name} in {stream.name}") as tell:
            rule = StoppingRule(live, until_gap, assume, explore=choices.default)
            return _Session(live, stream, choices, path, rule, Reports(live, tell, callback)).run(evaluate)


class _Session:
    """An agent in an environment, from the first step of a call to the last."""

    def __init__(
        self, live: Agent, stream: Environment, choices: Choices, path: Path | None, rule: StoppingRule, report: Reports
    ) -> None:
        self.live, self.stream, self.choices, self.path, self.rule, self.report = (
            live, stream, choices, path, rule, report
        )  # fmt: skip
        self.began, self.saved = time.perf_counter() - effort.seconds, time.monotonic()
        self.cells = live.source if isinstance(live.source, LocalLinear) else None
        self.chosen = self.cells if self.cells is not None and self.cells.bounds is not None else None

    def learned(self) -> Learned:
        seconds = time.perf_counter() - effort.seconds - self.began  # without compiling
        return Learned(self.live, self.stream.plain(), seconds, self.choices, None, self.rule.assume)

    def keep(self, estimate: Estimate | None = None) -> None:
        """Write the checkpoint, if there is one."""
        if self.path is not None:
            of = self.chosen
            more: dict[str, Any] = {} if of is None else {"grid": [of.close, of.settled, of.planned]}
            more |= {} if estimate is None else {"estimate": estimate.json()}
            self.live.save(self.path, {"environment": self.stream.plain()} | self.rule.plain() | more)
            self.saved = time.monotonic()

    def run(self, evaluate: int | None) -> Learned:
        """Learn until all steps are made, or the rule stops it, and play the policy."""
        live, ended = self.live, self.live.done
        with interrupts(signal.SIGTERM) as stopped:
            try:
                while not live.done and not self.rule.enough(self.learned):
                    self._stretch()
                    live.outside = True
                    self.report(time.monotonic())
                    live.outside = False
                    if stopped() and not live.done:
                        live.interrupt()  # no change after a reset
                        self.keep()
                        raise Halted(self.learned())
                    if time.monotonic() - self.saved > PACE:
                        self.keep()
            except Halted:
                raise
            except (Exception, KeyboardInterrupt) as error:
                self._break_off(error)
        live.end()
        if (chosen := self.chosen) is not None and not ended:
            focus(chosen, live, lambda box: self._cut(chosen.resized(live.state, *box)))
        self.report(inf)
        try:
            self.keep()
        except InputError as error:
            raise Broken(f"{error}; {IN_LEARNED}", self.learned()) from None
        found = self.learned()
        found = replace(found, missed=self.rule.missed(found))
        LOG.info("%s, in %.2f s", found.title, found.seconds)
        if ended and evaluate is None and "estimate" in live.extra:
            return replace(found, estimate=Estimate.load(live.extra["estimate"]))
        return self._evaluated(found, found.plays // 10 if evaluate is None else evaluate)

    def _stretch(self) -> None:
        """The steps from a reset to the next."""
        live, stream, end = self.live, self.stream, self.stream.terminal
        live.follow(self.rule.policy(stream.resets))
        if self.chosen is not None:
            self._cut(self.chosen.grown(live.state))
            end = stream.terminal
        live.outside = True
        x = stream.reset()
        live.outside = False
        live.reserve(x + 1)
        reset = False
        while not reset and not live.done:
            x, a, y, reward, cut = live.play(x, stream.step, single=self.cells is not None)
            live.reserve(y + 1)
            if self.chosen is not None:
                cut = cut or (y != end and self.chosen.leaves(stream.after))
            reset = live.observe(x, a, y, reward, cut=cut, end=cut and y == end)
            if self.cells is not None and x != end:
                self.cells.add_step(live.state, stream.before, a, stream.after, live.range.part(reward), y == end)
            x = y

    def _cut(self, to: Ints | None) -> None:
        """The grid was laid anew: its cells before lie where `to` says. None: it was not."""
        if to is not None:
            assert self.cells is not None
            self.stream.cut(self.cells.grid)
            self.live.renumber(to)

    def _break_off(self, error: BaseException) -> None:
        """Keep what was learned, and raise what says so; the error itself where the agent is not whole."""
        live = self.live
        if not live.outside and not isinstance(error, InputError):
            raise error  # out of the middle of a plan: the checkpoint is that of before
        live.outside = False
        live.interrupt()
        where = f"the same call goes on from {self.path}" if self.path is not None else IN_LEARNED
        try:
            self.keep()
        except InputError as unwritten:
            where = IN_LEARNED if isinstance(error, Unwritable) else f"{unwritten}; {IN_LEARNED}"
        if isinstance(error, KeyboardInterrupt):
            raise Halted(self.learned()) from None
        raise Broken(f"{self._cause(error)}; {where}", self.learned()) from error

    def _cause(self, error: BaseException) -> str:
        """What went wrong, where, and at which step."""
        live, stream = self.live, self.stream
        if not isinstance(error, InputError):
            return f"{stream.name}, step {live.plays + 1}: it raised {type(error).__name__}: {error}"
        text = str(error)
        if not live.range.low <= 0 <= live.range.high and f"state {stream.terminal} " in text:
            text += " (a terminated step leads to a state that earns 0: a range with 0 in it, or termination='restart')"
        return text if text.startswith(stream.name) or isinstance(error, Unwritable) else f"{stream.name}, {text}"

    def _evaluated(self, found: Learned, steps: int) -> Learned:
        """With what the policy earns in so many steps that it does not learn from."""
        from ravi.live.policies.evaluation import estimate_by_episodes

        try:
            limits = None if self.live.follows else self.live.table.problem.units
            estimate = estimate_by_episodes(found.policy(), self.stream.env, steps, limits)
            self.keep(estimate)
            return replace(found, estimate=estimate)
        except KeyboardInterrupt:
            raise Halted(found) from None
        except Exception as error:
            name = self.stream.name
            said = error if isinstance(error, InputError) else f"{name} raised {type(error).__name__}: {error}"
            raise Broken(f"{said}, while the policy was evaluated; {IN_LEARNED}", found) from error


class Reports:
    """How an agent stands, for progress bars and callbacks, ten times a second at most."""

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


def _resume_agent(path: Path, live: Agent, stream: Environment) -> Agent:
    """The agent of a checkpoint, if it is of this call."""
    kept = Agent.load(path, live.source)
    if isinstance(kept.source, LocalLinear) and "grid" in kept.extra:
        kept.source.close, kept.source.settled, kept.source.planned = kept.extra["grid"]
    pairs = [
        ("learner", kept.name, live.name),
        ("steps", kept.steps, live.steps),
        ("seed", kept.seed, live.seed),
        ("discount", kept.table.problem.discount, live.table.problem.discount),
        ("reward_range", *("observed" if each.follows else each.table.problem.units for each in (kept, live))),
        ("rewards", (kept.rewards.mode, kept.rewards.scale, kept.rewards.memory),
         (live.rewards.mode, live.rewards.scale, live.rewards.memory)),
    ]  # fmt: skip
    for what, was, now in pairs:
        if was != now:
            raise InputError(f"{path} was made with {what} {was}, not {now}: another file, or the same call")
    if _beforehand(kept) != _beforehand(live):
        raise InputError(f"{path} was made with another problem: another file, or the same call")
    stream.restore(kept.extra.get("environment", {}))
    return kept


def _beforehand(agent: Agent) -> list[Any]:
    """What an agent knows beforehand: what is not learned."""
    names = ["features", "pair_features"] + ["rewards"] * (agent.rewards.mode == "known")
    arrays = [getattr(agent.table.problem, name) for name in names + ["initial"] * agent.start_known]
    return [None if array is None else array.tolist() for array in arrays]
