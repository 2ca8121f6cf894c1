"""How does a learner act in the world? `act(x)` gives an action, `observe(x, a, y, reward)` says whether to reset.

    agent = ravi.agent("ravi-ucb,scale=0.01", states=64, actions=4, discount=0.95, steps=100_000)
    x = ...                                           # the stream begins
    while not agent.done:
        a = agent.act(x)
        y, reward = ...                               # the world answers
        x = ... if agent.observe(x, a, y, reward) else y   # start again where it says so

It is the loop of `ravi.runtime.api` turned inside out: same plans, same epochs, same random numbers. A learner that is
fed the stream of a simulated run comes to the same state, bit for bit. The actions and the resets are those of its key:
number t of both is a pure function of (seed, t). What a step led to is known when the next one begins, after a possible
reset; a step is therefore taken in by the next `act`, or by `end`.

An error leaves the agent as it was before the call that raised it.
"""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from os import PathLike
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Floats, Ints, Learner, Problem, a_problem
from ravi.live import keeping
from ravi.live.boxes import Smooth
from ravi.live.epochs import Builder, Epochs
from ravi.live.estimates import Estimate, of_cycles, optimistic_value, seen
from ravi.live.rewards import MODES, Outside
from ravi.live.table import blank
from ravi.validation import InputError, StreamError


def agent(
    learner: str | Builder | Learner,
    problem: Problem | None = None,
    steps: int | None = None,
    *,
    states: int | None = None,
    actions: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    rewards: str | None = None,
    reward_scale: float = 1.0,
    memory: float | None = None,
    seed: int = 0,
    name: str = "stream",
) -> Agent:
    """A learner (its id, or a function of problem and steps) at the start of a stream of `steps` steps.

    Parameters
    ----------
    learner : its id, or a function of problem and steps
    problem : what is known: an MDP's `.problem`, or a mixture of simulators
    steps : T
    states, actions, discount : without a problem, the numbers of states and actions, and gamma; the rest is learned
    reward_range : the least and the largest reward, in your units; (0, 1) unless the problem says otherwise
    rewards : "known" (the problem's; the default with a problem), "unknown" (learned with a bonus; the default without
        one) or "changing" (those of about the last `memory` steps)
    reward_scale : of that bonus
    memory : of changing rewards
    seed : of the learner's own random numbers
    name : the name of the stream

    Returns
    -------
    Agent
        `act(x)` gives an action, `observe(x, a, y, reward)` records its outcome and returns whether to reset.

    Examples
    --------
    >>> import ravi
    >>> agent = ravi.agent("psrl", states=2, actions=2, discount=0.9, steps=100)
    >>> x = 0
    >>> for _ in range(100):
    ...     a = agent.act(x)
    ...     reset = agent.observe(x, a, y=a, reward=float(a))  # here action a leads to state a and earns a
    ...     x = 0 if reset else a
    >>> agent.done
    True
    """
    if steps is None:
        raise InputError("steps is missing: the steps that the learner is to make")
    T = validation.steps(steps)
    usual = "unknown" if problem is None else "known"
    mode = usual if rewards is None else validation.one_of(rewards, MODES, "rewards")
    sizes: dict[str, Any] = {"states": states, "actions": actions, "discount": discount}
    given = [key for key, value in sizes.items() if value is not None]
    if problem is None:
        if missing := [key for key in sizes if key not in given]:
            raise InputError(f"{' and '.join(missing)} missing: without a problem, its size must be said")
        units = (0.0, 1.0) if reward_range is None else validation.units(reward_range, "reward_range")
        told = blank(sizes["states"], sizes["actions"], sizes["discount"], units, name)
    else:
        a_problem(problem)
        if given:
            raise InputError(f"{given[0]} is given twice: {problem.name} has it")
        if reward_range is not None and validation.units(reward_range, "reward_range") != tuple(problem.units):
            raise InputError(f"reward_range is {reward_range}, but {problem.name} has units {problem.units}")
        told = problem
    if problem is None and mode == "known":
        raise InputError("rewards='known' needs a problem that has them")
    return Agent(
        learner, told, T, mode, reward_scale, memory, validation.whole(seed, "seed", 0, 2**63 - 1), problem is not None
    )


class Agent(Epochs):
    """A learner with its state, on a stream. Made by `ravi.agent`.

    Examples
    --------
    >>> import ravi
    >>> agent = ravi.agent("uniform", states=3, actions=2, discount=0.9, steps=10)
    >>> agent.act(0) in (0, 1)
    True
    """

    # The protocol.

    @property
    def plays(self) -> int:
        """Steps that were observed."""
        return self.time + (self._pending is not None)

    @property
    def done(self) -> bool:
        """Whether all its steps are made."""
        return self.time + (self._pending is not None) >= self.steps

    def act(self, x: int) -> int:
        """The action to take in state x."""
        if self._acted is not None:
            raise StreamError(f"step {self.time + 1}: act was called twice; observe comes between")
        if type(x) is not int or not 0 <= x < self.table.states:
            x = self._state(x, "the state")
        play = self._pending
        if self.time + (play is not None) >= self.steps:
            raise StreamError(f"all {self.steps} steps are made")
        if play is not None:
            if x != play[2] and not play[4]:
                raise StreamError(
                    f"step {self.time + 2}: the state is {x}, but the step before led to {play[2]}, without a reset"
                )
            self._take_in(play, x)
        if self._restarted:
            self._started(x)
        if self._over[0]:
            self._plan()
        self._to_reset, to_act = self._numbers(self.time + 1)
        a = self._actions[x]
        if a < 0:
            a = bisect_right(self._rows.get(x) or self._row(x), to_act)
        self._acted = (x, a)
        return a

    def observe(self, x: int, a: int, y: int, reward: float, *, cut: bool = False, end: bool = False) -> bool:
        """(x, a) led to y and earned `reward`: whether to reset now. cut: the stream itself ends here; end: it
        does where nothing more could be earned, so that what was earned since the last reset is all."""
        t = self.time + 1
        if type(cut) is not bool or type(end) is not bool:
            cut, end = validation.flag(cut, "cut"), validation.flag(end, "end")
        if self._acted is None:
            raise StreamError(f"step {t}: observe was called, but there is no step under way: act comes first")
        if type(x) is not int or type(a) is not int:
            x, a = self._state(x, "the state"), validation.whole(a, f"step {t}: the action", 0)
        if (x, a) != self._acted:
            raise StreamError(
                f"step {t}: observed state {x} and action {a}, but the agent chose action {self._acted[1]} in state "
                f"{self._acted[0]}"
            )
        x, a = self._acted
        if type(y) is not int or not 0 <= y < self.table.states:
            y = self._state(y, "the successor")
        try:
            part = self.range.part(reward)
        except InputError as error:
            if not (self.follows and isinstance(error, Outside)):
                raise StreamError(f"step {t}: the reward of state {x} and action {a} {error}") from None
            self._widen(reward)
            part = self.range.part(reward)
        if self.table.closed and self.table.rules_out(x, a, y):
            raise StreamError(f"step {t}: state {x} and action {a} led to {y}, which {self.table.told.name} rules out")
        reset = self._to_reset < self._restart
        self._pending = (x, a, y, part, reset or cut, cut and not reset and not end)
        self._acted = None
        return reset or cut

    def end(self, x: int | None = None) -> None:
        """Take in the last step. x: the state after it, if a reset followed and it is known."""
        if self._pending is not None:
            self._take_in(self._pending, self._pending[2] if x is None else self._state(x, "the state"))
        self._add()

    def interrupt(self) -> None:
        """The stream broke off where it stood: what it does next begins with a reset. A step without an answer is not
        counted; the next `act` makes it anew."""
        if self._pending is not None and not self._pending[4]:
            self._pending = (*self._pending[:4], True, True)
        elif self._pending is None and self.time and not self._restarted:
            self._restarted, self.whole = True, False
            self.cuts += 1
            if self._until.reset:
                self._over[0] = 1
            if self.learner.stages:
                self.state.age[0] = 0
        self._acted = None

    def follow(self, policy: Floats | None) -> None:
        """Play this policy (X, A) from now on, and learn from what comes of it; None: play the learner's own again. For
        learners that do not learn at every step."""
        if policy is not self._followed:
            self._followed = policy
            self._read()

    # What it knows.

    @property
    def visits(self) -> Ints:
        """How often each pair was played: (X, A)."""
        return self._counted()[0].moves.sum(-1)

    @property
    def optimistic(self) -> float | None:
        """(1 - gamma) <nu_0, V_k> of the last plan, in the user's units; None for a learner that keeps no values."""
        value = optimistic_value(self.state, self.table.initial, self.table.told.discount)
        return None if value is None else self.table.told.in_units(value)

    @property
    def earned(self) -> Estimate | None:
        """(1 - gamma) times what a cycle from reset to reset earned, over the later half of the cycles, with its
        t-interval: an estimate of the return (1 - gamma) <nu_0, V^pi> of the policies played, in the user's units."""
        return of_cycles(self.cycles[len(self.cycles) // 2 :], self.table.told.discount)

    def model(self) -> MDP:
        """The MDP of what was seen: frequencies and mean rewards, or what the learner expects by them (`psrl/pooled`).
        A pair that was never played stays where it is, and earns the least. Of a Box, see `ravi.live.boxes`."""
        if isinstance(self.given, Smooth):
            return self.given.model(self.state, self.problem)
        table, rewards = self._counted()
        mean = rewards.mean()
        if hasattr(self.state, "expected"):
            table.moves, mean = self.state.expected(table.moves, mean)
        return seen(table, mean, self.table.initial)

    def reveal(self, rewards: Any) -> None:
        """From now on the rewards are these, (X, A) in the user's units: for worlds that show them."""
        shape = self.table.rewards.shape
        table = validation.shaped(validation.finite(rewards, "rewards"), shape, "rewards", "(X, A)")
        low, high = self.table.told.units
        self.rewards.reveal((validation.between(table, low, high, "rewards") - low) / (high - low))

    def renumber(self, to: Ints) -> None:
        """States have other numbers from now on, after a reset: `to`. The policy has them; plays keep theirs."""
        self.starts[:] = starts = np.bincount(to, self.starts[: len(to)], len(self.starts)).astype(np.int64)
        self.table.initial[:] = starts / max(starts.sum(), 1)
        self._over[0] = 1
        self._read()

    def grow(self, states: int, actions: int) -> None:
        """Room for more states and actions. What was seen and planned stays; the learner's constants are those of the
        larger table."""
        X, A, _ = self.table.sizes
        states, actions = validation.whole(states, "states", X), validation.whole(actions, "actions", A)
        if self.learner.told.support:
            raise InputError(
                f"{self.learner.name} is told the successors (support=on), and those of new states are not"
            )
        self._add()
        kept = vars(self) | {"table": copy(self.table), "rewards": copy(self.rewards)}
        try:
            self._grow(states, actions)
        except BaseException:
            vars(self).update(kept)
            raise

    def _state(self, x: Any, what: str) -> int:
        """A state that is one."""
        if type(x) is not int:
            if isinstance(x, bool) or not isinstance(x, (int, np.integer)):
                raise StreamError(f"step {self.time + 1}: {what} is {validation.shown(x)}, not the number of a state")
            x = int(x)
        if not 0 <= x < self.table.successors.shape[0]:
            raise StreamError(
                f"step {self.time + 1}: {what} is {x}, but states are 0 to {self.table.successors.shape[0] - 1}"
            )
        return x

    # How it is kept.

    def save(self, path: str | PathLike[str], extra: dict[str, Any] | None = None) -> None:
        """Write a file to `path` from which `Agent.load` goes on, bit for bit. A step under way, without its answer, is
        not in it: act gives it again. extra: more to keep, as JSON."""
        if self._walk is not None:  # it has learned from what waits
            self._add()
        keeping.save(self, path, extra or {})

    @staticmethod
    def load(
        path: str | PathLike[str], learner: str | Builder | Learner | None = None, *, allow_code: bool = False
    ) -> Agent:
        """Go on from the file at `path`; a learner that had no id must be given again. `extra` is what it kept.

        A file that names a module, `module:function`, needs its id again, or allow_code (docs/guides/security.md).
        """
        return keeping.load(Agent, path, learner, allow_code)
