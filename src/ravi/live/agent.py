"""An agent acts in the world: `act(x)` gives an action, `observe(x, a, y, reward)` returns whether to reset.

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

`Agent._steps` is the one loop over steps. `act` asks it for one action; `play` lets an environment answer, for many
steps in a row. The table grows as the stream is seen, and the learner is built anew on it where that changes shapes.

An error leaves the agent as it was before the call that raised it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from itertools import accumulate
from math import inf
from os import PathLike
from typing import Any

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, AnyMDP, Floats, Ints, Learner, Path, Problem, Until, Walkers, a_problem
from ravi.live import agent_file
from ravi.live.agent_file import BUFFER, Pending
from ravi.live.estimates import Estimate, empirical_mdp, of_cycles, optimistic_value
from ravi.live.local_linear import LocalLinear
from ravi.live.rewards import MODES, Outside, RewardRange, Rewards
from ravi.live.table import StreamTable, Widening, enlarge_state, lay_out_state, unknown_problem
from ravi.random import ACTION, OUTPUT, RESET, block, uniform
from ravi.runtime.ranges import PLAYABLE
from ravi.runtime.walk import TYPES, Walking, check_policies, empty_path, keep
from ravi.schedules import STRETCH, after_a_stretch
from ravi.validation import InputError, StreamError

NOT_OVER = np.zeros(1, np.bool_)
ENDLESS = Until(reset=False)  # but for its deadline
AHEAD = 256  # steps whose random numbers are drawn at once
ROWS = 32  # of a policy, that are compared at once

Builder = Callable[[Problem, int], Learner]
Step = Callable[[int], tuple[int, float, bool]]  # of an action: the successor, the reward, whether the stream is cut


def agent(
    learner: str | Builder | Learner,
    problem: Problem | AnyMDP | None = None,
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
    learner
        Its id, or a function of problem and steps.
    problem
        What is known: an MDP, its id or its file, its `.problem`, or a mixture of simulators.
    steps
        T.
    states, actions, discount
        Without a problem, the numbers of states and actions, and gamma; the rest is learned.
    reward_range
        The least and the largest reward, in your units; (0, 1) unless the problem says otherwise.
    rewards
        "known" (the problem's; the default with a problem), "unknown" (learned with a bonus; the default without one)
        or "changing" (those of about the last `memory` steps).
    reward_scale
        Of that bonus.
    memory
        Of changing rewards.
    seed
        Of the learner's own random numbers.
    name
        The name of the stream.

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
            raise InputError(f"{', '.join(missing)} missing: without a problem, give states, actions and discount")
        units = (0.0, 1.0) if reward_range is None else validation.units(reward_range, "reward_range")
        known = unknown_problem(sizes["states"], sizes["actions"], sizes["discount"], units, name)
    else:
        known = a_problem(problem)
        if given:
            raise InputError(f"{given[0]} is given twice: {known.name} has it")
        if reward_range is not None and validation.units(reward_range, "reward_range") != tuple(known.units):
            raise InputError(f"reward_range is {reward_range}, but {known.name} has units {known.units}")
    if problem is None and mode == "known":
        raise InputError("rewards='known' needs a problem that has them")
    return Agent(
        learner, known, T, mode, reward_scale, memory, validation.whole(seed, "seed", 0, 2**63 - 1), problem is not None
    )


class Agent:
    """A learner with its state, on a stream. Made by `ravi.agent`.

    Attributes
    ----------
    source
        The id of the learner, or the function that builds it, or itself.
    learner
        The `ravi.Learner`, on the table as it is.
    state
        The learner's state, with a seed axis of one.
    table
        What is known of the problem, and the counts.
    time
        Steps taken in; `plays` counts the one that waits, too.
    starts
        How often a stretch began where: (X,).
    cycles
        What was earned from reset to reset, in the user's units.
    cuts
        Resets that were not the learner's.
    output
        The policy of a time drawn uniformly beforehand, `index`; None before.
    plans
        How many epochs began.
    extra
        What was kept beside it in its file.

    Examples
    --------
    >>> import ravi
    >>> agent = ravi.agent("uniform", states=3, actions=2, discount=0.9, steps=10)
    >>> agent.act(0) in (0, 1)
    True
    """

    def __init__(
        self,
        learner: str | Builder | Learner,
        problem: Problem,
        steps: int,
        rewards: str,
        reward_scale: float,
        memory: float | None,
        seed: int,
        start_known: bool,
    ) -> None:
        self.source, self.steps, self.seed, self.start_known = learner, steps, seed, start_known
        self.table = StreamTable(
            problem, closed=problem.features is not None or isinstance(problem, MDP) or isinstance(learner, Learner)
        )
        self.rewards = Rewards(rewards, reward_scale, memory, steps)
        if isinstance(learner, Learner) and rewards != "known":
            raise InputError(
                f"{learner.name} is built already: where rewards are {rewards}, give its id or its builder"
            )
        self.range = RewardRange(*problem.units)
        self.follows = False  # whether the range grows to hold what is earned, for a learner that can be rescaled
        self.time = 0  # steps taken in
        self._pending: Pending | None = None
        self._acted: tuple[int, int] | None = None  # the state and the action of the step under way
        self._to_reset = 0.0  # and the number that says whether a reset follows
        self._numbers: tuple[int, list[float], list[float]] = (-AHEAD, [], [])  # from which step on, and theirs
        self._restart = 1 - problem.discount
        self._episode = problem.episode or 0  # its length in steps
        self.starts = np.zeros(problem.states, np.int64)  # how often a stretch began where
        self.late_start = np.zeros(1, np.int64)  # and how often one had, when one last began where none had
        self.cycles: list[float] = []  # what was earned from reset to reset, in the user's units
        self.cycle, self.length = 0.0, 0  # what this one earned so far, in parts of [0, 1], and its steps
        self.whole = True  # whether it began with a reset
        self.cuts = 0  # resets that were not the learner's
        self.index = 1 + int(steps * uniform(seed, 0, OUTPUT))  # I, the time of the output policy
        self.output: Floats | None = None
        self.rewards.open(self.table.rewards)
        self._make: Builder | None = None  # what an id says
        self._walk: Walking | None
        self._light: bool
        self._own: tuple[Any, ...] | None  # what its `learn` is given, of this state
        self._own_of: Any = None
        self._build()
        keys = np.array([seed], np.uint64)
        self.state = self.learner.init(keys)
        self._check_sizes()
        self._walkers = Walkers(np.zeros(1, np.int32), np.zeros(1, np.int64), keys)
        self._over = np.ones(1, np.uint8)
        self._opened(Until(True), 0)
        self._path, self._parts = empty_path(1, BUFFER), np.zeros((1, BUFFER))  # steps to add, and what they earned
        self._columns = tuple(column[0].data for column in (*self._path[:5], self._parts))
        self._waiting = 0  # how many they are
        self._after = 0  # the state after them
        self._only = np.full(problem.states, -1, np.int32)  # by state: its action, where it has no other
        self._before = np.full((problem.states, problem.actions), np.nan)  # the policy, when it was read last
        self._actions = self._only.data
        self._rows: dict[int, list[float]] = {}  # of others, by state: the thresholds of all
        self._followed: Floats | None = None
        self.plans = 0
        self._restarted = True  # whether the next state is a start
        self.outside = False  # whether the environment has the word, so that an interruption finds the agent whole
        self.extra: dict[str, Any] = {}  # what was kept beside it

    def __repr__(self) -> str:
        return f"<Agent {self.learner.name} on {self.problem.name}: {self.plays:,} of {self.steps:,} steps>"

    # The protocol.

    @property
    def plays(self) -> int:
        """Steps that were observed."""
        return self.time + (self._pending is not None)

    @property
    def name(self) -> str:
        """The learner's id, or its name where it has none."""
        return self.source if isinstance(self.source, str) else self.learner.name

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
        if play is not None and x != play[2] and not play[4]:
            raise StreamError(
                f"step {self.time + 2}: the state is {x}, but the step before led to {play[2]}, without a reset"
            )
        a: int = self._steps(x)
        return a

    def play(self, x: int, step: Step, *, single: bool = False) -> tuple[int, int, int, float, bool]:
        """Play from state x on, `step` answering every action, and return the first step that is to be observed: its
        state, action, successor, reward and whether the stream is cut. single: every step is to be observed."""
        played: tuple[int, int, int, float, bool] = self._steps(x, step, single=single)
        return played

    def _steps(self, x: int, step: Step | None = None, *, single: bool = False, choose: bool = True) -> Any:
        """The loop over steps: take in the step that waits, which led to x; plan where the epoch is over; choose an
        action; let `step` answer it, and take that in. It returns the action where nobody answers, else the first
        step that is to be observed: after it the stream is reset or cut, its pair leads where it never led, or its
        reward is out of range. choose: if not, the step that waits is taken in, and that is all."""
        waits, slot, reset, cut = self._pending is not None, 0, False, False
        if self._pending is not None:
            before, a, y, part, reset, cut = self._pending
            slot = self.table.slot(before, a, y)
            if slot < 0:
                self._add_successor(before, a, y)
                slot = self.table.slot(before, a, y)
            self._pending = None
        while True:
            if not waits:
                if self._restarted:
                    self._started(x)
                if self._over[0]:
                    self._plan()
            table, until, deadline, left = self.table, self._until, self._deadline, self._left
            known, X, A, low, width = table.known, table.states, table.actions, self.range.low, self.range.width
            if single:
                known = {}
            states, actions, successors, slots, resets, rewards = self._columns
            first, to_resets, to_acts = self._numbers
            only, rows, restart, index, last = self._actions, self._rows, self._restart, self.index, self.steps - 1
            episode = self._episode
            learn, own = (None, ()) if self._walk is None else (self._walk.learn, self._own_now())
            stages, over = self.learner.stages, self._over[0] != 0
            t, n, cycle, length = self.time, self._waiting, self.cycle, self.length
            while True:
                if waits:
                    t += 1
                    if t == index:
                        self.output = self.policy
                    cycle += part
                    length += 1
                    states[n], actions[n], successors[n] = before, a, y
                    slots[n], resets[n], rewards[n] = slot, reset, part
                    n += 1
                    if learn is not None:
                        self.rewards.observe_one(before, a, part, t)
                        over = learn(own, 0, t, before, a, y, slot, reset, x) or over
                    if stages:
                        self.state.age[0] = 0 if reset else self.state.age[0] + 1
                    if left is not None:
                        left[0, before, a] = remaining = left[0, before, a] - 1
                        over = over or remaining <= 0
                    if t >= deadline or (reset and until.reset):
                        over = True
                    if reset or over or n == BUFFER or not choose:
                        break
                i = t + 1 - first
                if not 0 <= i < AHEAD:
                    first, (to_resets, to_acts), i = t + 1, _numbers(np.uint64(self.seed), t + 1, AHEAD).tolist(), 0
                    self._numbers = first, to_resets, to_acts
                a = only[x]
                if a < 0:
                    a = bisect_right(rows.get(x) or self._row(x), to_acts[i])
                if step is None:
                    self._stand(t, n, x, cycle, length, a, to_resets[i])
                    return a
                try:
                    y, reward, cut = step(a)
                except BaseException:
                    self.outside = True
                    self._stand(t, n, x, cycle, length, a, to_resets[i])
                    raise
                found, part = known.get((x * A + a) * X + y), (reward - low) / width
                ends = to_resets[i] < restart or length + 1 == episode
                if found is None or cut or ends or t == last or y >= X or not 0.0 <= part <= 1.0:
                    self._stand(t, n, x, cycle, length, a, to_resets[i])
                    return x, a, y, reward, cut
                before, x, slot, waits, reset = x, y, found, True, False
            self.time, self._waiting, self._after, self.cycle, self.length = t, n, x, cycle, length
            self._over[0] = over
            if reset:
                self._end_cycle(cut)
            if n == BUFFER:
                self._add()
            if not choose:
                return None
            waits = False

    def _stand(self, t: int, n: int, x: int, cycle: float, length: int, a: int, to_reset: float) -> None:
        """Where the loop leaves off: action a is under way in state x."""
        if n != self._waiting:
            self._after = x
        self.time, self._waiting, self.cycle, self.length = t, n, cycle, length
        self._acted, self._to_reset = (x, a), to_reset

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
            raise StreamError(
                f"step {t}: state {x} and action {a} led to {y}, which {self.table.problem.name} rules out"
            )
        reset = self._to_reset < self._restart or self.length + 1 == self._episode
        self._pending = (x, a, y, part, reset or cut, cut and not reset and not end)
        self._acted = None
        return reset or cut

    def end(self, x: int | None = None) -> None:
        """Take in the last step. x: the state after it, if a reset followed and it is known."""
        if self._pending is not None:
            self._steps(self._pending[2] if x is None else self._state(x, "the state"), choose=False)
        self._add()

    def interrupt(self) -> None:
        """Take in that the stream broke off: what follows begins with a reset. A step without an answer is not counted;
        the next `act` makes it anew."""
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
    def policy(self) -> Floats:
        """What it plays now: (X, A), or (S, X, A) by age."""
        return self.state.policy[0].copy()

    @property
    def visits(self) -> Ints:
        """How often each pair was played: (X, A)."""
        return self._counted()[0].moves.sum(-1)

    @property
    def optimistic(self) -> float | None:
        """(1 - gamma) <nu_0, V_k> of the last plan, in the user's units; None for a learner that keeps no values."""
        value = optimistic_value(self.state, self.table.initial, self._share)
        return None if value is None else self.table.problem.in_units(value)

    @property
    def earned(self) -> Estimate | None:
        """(1 - gamma) times what a cycle from reset to reset earned (of episodes, what a step earned), over the later
        half of the cycles, with its t-interval: an estimate of the return (1 - gamma) <nu_0, V^pi> of the policies
        played, in the user's units."""
        return of_cycles(self.cycles[len(self.cycles) // 2 :], self._share)

    @property
    def _share(self) -> float:
        """Of a value, what is its return: 1 - gamma, or 1 by the length of an episode."""
        problem = self.table.problem
        return 1 - problem.discount if problem.episode is None else 1 / problem.episode

    def model(self) -> MDP:
        """The MDP of what was seen: frequencies and mean rewards, or what the learner expects by them (`psrl/pooled`).
        A pair that was never played stays where it is, and earns the least. Of a Box, see `ravi.live.local_linear`."""
        if isinstance(self.source, LocalLinear):
            return self.source.model(self.state, self.problem)
        table, rewards = self._counted()
        mean = rewards.mean()
        if hasattr(self.state, "expected"):
            table.moves, mean = self.state.expected(table.moves, mean)
        return empirical_mdp(table, mean, self.table.initial)

    def reveal(self, rewards: Any) -> None:
        """Set the rewards from now on, (X, A) in the user's units: for worlds that show them."""
        shape = self.table.rewards.shape
        table = validation.check_shape(validation.finite(rewards, "rewards"), shape, "rewards", "(X, A)")
        low, high = self.table.problem.units
        self.rewards.reveal((validation.between(table, low, high, "rewards") - low) / (high - low))

    def renumber(self, to: Ints) -> None:
        """Renumber the states after a reset: x becomes to[x]. The policy has the new numbers, plays keep theirs."""
        self.starts[:] = starts = np.bincount(to, self.starts[: len(to)], len(self.starts)).astype(np.int64)
        self.table.initial[:] = starts / max(starts.sum(), 1)
        self._over[0] = 1
        self._read()

    def grow(self, states: int, actions: int) -> None:
        """Enlarge the table to these numbers of states and actions. What it holds and what was planned stay; the
        learner's constants are those of the larger table."""
        X, A, _ = self.table.sizes
        states, actions = validation.whole(states, "states", X), validation.whole(actions, "actions", A)
        if self.learner.side_information.support:
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

    def reserve(self, states: int, actions: int = 1) -> None:
        """Enlarge the table, where it is smaller, to so many states and actions at least; states are doubled."""
        X, A = self.table.states, self.table.actions
        if states > X or actions > A:
            self.grow(X if states <= X else max(states, 2 * X), max(actions, A))

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

    # The learner, on the table as it is.

    def _build(self) -> None:
        """The learner on the table as it is now."""
        from ravi import ids

        self.problem, self._stale = self.table.view(), False
        if isinstance(self.source, str):
            if self._make is None:
                self._make = ids.learner_builder(self.source)
            self.learner = self._make(self.problem, self.steps)
        elif isinstance(self.source, Learner):
            self.learner = self.source
        elif callable(self.source):
            built = self.source(self.problem, self.steps)
            self.learner = validation.instance(built, Learner, "what the builder makes", "a ravi.Learner")
        else:
            raise InputError(
                f"learner is {validation.shown(self.source)}, not an id, a ravi.Learner or a function of them"
            )
        if self.learner.side_information.rewards is not None and self.rewards.mode != "known":
            raise InputError(
                f"{self.learner.name} simulates rewards that are unknown, and on a stream they are unknown: take the "
                f"learner without that wrapper, which learns them with rewards={self.rewards.mode!r}"
            )
        if self.learner.side_information.support:
            if not self.start_known:
                raise InputError(
                    f"{self.learner.name} is told the successors of every pair (support=on), and a stream shows them "
                    "one by one: give a problem that has them all, or support=off"
                )
            self.table.closed = self.table.exact = True
        if self.learner.walk is not None and not isinstance(self.learner.walk, Walking):
            raise InputError(
                f"{self.learner.name} walks by itself: on a stream, its walk is of `ravi.runtime.walk.walking`"
            )
        self._walk, self._own = self.learner.walk, None  # of a learner that learns at every step
        self._light = (  # whether it learns nothing from paths, and ends its epochs itself: then a plan is its `plan`
            self._walk is not None and self.learner.add is keep and self.learner.until is after_a_stretch
        )

    def _check_sizes(self) -> None:
        built, wanted = self.state.policy.shape[-2:], self.table.sizes[:2]
        if built != wanted:
            raise InputError(
                f"{self.learner.name} was built for {built[0]} states and {built[1]} actions, "
                f"not {wanted[0]} and {wanted[1]}"
            )

    def _grow(self, states: int, actions: int) -> None:
        X, A, _ = self.table.sizes
        self.table.grow(states, actions)
        self.rewards.open(self.table.rewards, self.time)
        self.starts = np.concatenate([self.starts, np.zeros(states - X, np.int64)])
        self._build()
        self.state = enlarge_state(self.state, self.learner.init(self._walkers.key))
        self._check_sizes()
        if self._until.visits is not None:
            more = np.ones((1, states, actions), self._until.visits.dtype)
            more[:, :X, :A] = self._until.visits
            self._opened(self._until._replace(visits=more), self._deadline)
        self._only, self._before = np.full(states, -1, np.int32), np.full((states, actions), np.nan)
        self._actions = self._only.data
        self._read()

    def _widen(self, reward: float) -> None:
        """The range of rewards holds this one too, from now on."""
        self._add()
        was, now = self.range, self.range.wider(reward)
        scale, shift = (was.high - was.low) / (now.high - now.low), (was.low - now.low) / (now.high - now.low)
        table, (weight, total, _) = self.table, self.rewards.sums
        met = table.moves > 0
        for parts, counts in ((table.earned, table.moves), (table.least, met), (table.most, met), (total, weight)):
            parts[:] = np.minimum(parts * scale + shift * counts, counts)
        self.cycle = self.cycle * scale + shift * self.length
        self.state.rescale(scale, shift)
        self.range, table.problem = now, replace(table.problem, units=(now.low, now.high))
        self.rewards.renew(self.time)
        self._build()

    # Epochs.

    def _started(self, x: int) -> None:
        """A stretch begins at x."""
        self._restarted = False
        begin(self.starts, self.late_start, x, self.table.initial[: 0 if self.start_known else None])

    def _plan(self) -> None:
        """Open an epoch."""
        if not self._light:
            self._add()
        if self._stale:
            self._build()
        if self.rewards.memory is not None:
            self.rewards.renew(self.time)
        self.state = self.learner.plan(self.state)
        if not self._read() or self._followed is not None:
            check_policies(self.learner.name, self.state.policy, self._walkers.key, NOT_OVER)
        if self._light:
            self._opened(ENDLESS, min(self.steps, self.time + STRETCH))
        else:
            until = self.learner.until(self.state, self._walkers.time)
            self._opened(until, self.steps if until.deadline is None else min(self.steps, int(until.deadline[0])))
        self._over[0] = 0
        self.plans += 1

    def _opened(self, until: Until, deadline: int) -> None:
        """The epoch lasts until this, or until the deadline; of its visits, if they count, `_left` says how many are
        left."""
        self._until, self._deadline = until, deadline
        self._left = None if until.visits is None else until.visits.data

    def _read(self) -> bool:
        """The policy may be another one; whether it is known to be one."""
        policy = self.state.policy[0] if self._followed is None else self._followed
        sound, other = False, True
        if policy.ndim == 2 and policy.dtype.char in TYPES:
            sound, other = only_actions(policy, self._only, self._before)
        else:
            self._only[:], self._before[:] = -1, np.nan
        if other:
            self._rows.clear()
        return bool(sound)

    def _row(self, x: int) -> list[float]:
        """The thresholds of all actions in x; kept as long as the policy is the same, where it is not by age."""
        policy = self.state.policy[0] if self._followed is None else self._followed
        if policy.ndim == 3:
            return thresholds(policy[min(int(self.state.age[0]), len(policy) - 1), x].tolist())
        self._rows[x] = row = thresholds(policy[x].tolist())
        return row

    # What waits.

    def _own_now(self) -> tuple[Any, ...]:
        """What a learner that learns at every step is given of its state."""
        assert self._walk is not None
        if self._own is None or self._own_of is not self.state:
            self._own, self._own_of = self._walk.own(self.state, self._walkers), self.state
        return self._own

    def _add(self) -> None:
        """What waits, into the learner: ADD."""
        if self._waiting:
            path = self._waiting_path()
            self._walkers.state[0], self._walkers.time[0] = self._after, self.time
            self._count(path, self.table, self.rewards)
            self._waiting = 0
            self.state = self.learner.add(self.state, path)

    def _waiting_path(self) -> Path:
        """What waits, as a path."""
        path, n = self._path, self._waiting
        path.length[0], path.time[0], path.after[0] = n, self.time - n + 1, self._after
        return path

    def _count(self, path: Path, table: StreamTable, rewards: Rewards) -> None:
        table.count(path, self._parts)
        if self._walk is None:  # else they were observed step by step
            rewards.observe(path, self._parts, int(path.time[0]))

    def _counted(self) -> tuple[StreamTable, Rewards]:
        """Copies of the table and the rewards with the steps that wait, so that a look at an agent changes nothing.

        A learner may read rewards when it adds: when that is must not depend on who looked.
        """
        table, rewards = self.table.copied(), deepcopy(self.rewards)
        if self._waiting:
            self._count(self._waiting_path(), table, rewards)
        return table, rewards

    def _add_successor(self, x: int, a: int, y: int) -> None:
        """A successor was met for the first time: the learner's state in the new layout, and the learner anew, unless
        it reads the table at every plan. ADD needs states and slots only, so that one that learns from paths is built
        when it plans next."""
        self._add()
        sizes = self.table.sizes
        layout = self.table.add_successor(x, a, y)
        if layout is not None and sizes[2] < sizes[0]:
            self.state = lay_out_state(self.state, layout, sizes)
        self._stale |= not self.learner.side_information.reads_anew
        if self._walk is not None or isinstance(layout, Widening):
            self._build()

    def _end_cycle(self, cut: bool) -> None:
        """What was earned since the last reset counts, unless the stream was cut before the next one."""
        low, high = self.table.problem.units
        if self.whole and not cut:
            self.cycles.append(low * self.length + (high - low) * self.cycle)
        self.cuts += cut
        self._restarted, self.whole, self.cycle, self.length = True, True, 0.0, 0

    # How it is kept.

    def save(self, path: str | PathLike[str], extra: dict[str, Any] | None = None) -> None:
        """Write a file to `path` from which `Agent.load` goes on, bit for bit. A step under way, without its answer, is
        not in it: act gives it again. extra: more to keep, as JSON."""
        if self._walk is not None:  # it has learned from what waits
            self._add()
        agent_file.save(self, path, extra or {})

    @staticmethod
    def load(
        path: str | PathLike[str], learner: str | Builder | Learner | None = None, *, allow_code: bool = False
    ) -> Agent:
        """Go on from the file at `path`; a learner that had no id must be given again. `extra` is what it kept.

        A file that names a module, `module:function`, needs its id again, or allow_code (docs/guides/security.md).
        """
        return agent_file.load(Agent, path, learner, allow_code)


@compiled
def _numbers(key, first, many):  # type: ignore[no-untyped-def]
    """The numbers of the resets and the actions of steps first, first + 1, ...: (2, many)."""
    numbers = np.empty((2, many))
    for i in range(many):
        drawn = block(key, first + i, 0)
        numbers[0, i], numbers[1, i] = drawn[RESET], drawn[ACTION]
    return numbers


@compiled
def only_actions(policy, actions, before):  # type: ignore[no-untyped-def]
    """The action of every state whose row of a policy (X, A) has no other, in place; -1 of all others. Whether all rows
    are distributions, and whether any is another than `before` (X, A), which is written. Rows that are as before are
    not read again: a row of `before` is a distribution, or has a nan, which no row is as."""
    X, A = policy.shape
    sound, other, new, old = True, False, policy.ravel(), before.ravel()
    for first in range(0, X, ROWS):
        last, differing = min(first + ROWS, X), 0
        for e in range(np.uint64(first * A), np.uint64(last * A)):  # at once: one after the other would take five times
            differing += np.float64(new[e]) != old[e]
        if differing > 0:
            other = True
            for x in range(first, last):
                if not _as_before(policy[x], before[x]):
                    actions[x] = _only_action(policy[x], before[x])
                    sound &= before[x, 0] == before[x, 0]
    return sound, other


@compiled
def _as_before(row, before):  # type: ignore[no-untyped-def]
    same = True
    for a in range(row.shape[0]):
        same &= np.float64(row[a]) == before[a]
    return same


@compiled
def _only_action(row, before):  # type: ignore[no-untyped-def]
    """The action of a row that has no other, else -1. `before` becomes the row, or begins with nan if it is no
    distribution."""
    many, only, mass, least = 0, 0, 0.0, 0.0
    for a in range(row.shape[0]):
        p = before[a] = np.float64(row[a])
        mass += p
        least = min(least, p)
        if p != 0.0:
            many += 1
            only = a
    if not (abs(mass - 1.0) <= PLAYABLE and least >= 0.0):  # a nan neither
        before[0] = np.nan
    return only if many == 1 else -1


@compiled
def begin(starts, late, x, initial):  # type: ignore[no-untyped-def]
    """Count a start at x, in place: starts (X,) by state; late, the number of starts before the last one at a state
    that was new; `initial`, the share of every state, empty if it is known."""
    before = starts.sum()
    if starts[x] == 0:
        late[0] = before
    starts[x] += 1
    for z in range(initial.shape[0]):
        initial[z] = starts[z] / (before + 1)


def thresholds(row: list[float]) -> list[float]:
    """Of the actions with these probabilities: `bisect_right` of u is the one that `ravi.runtime.walk.draw` draws."""
    sums = [*accumulate(row)]
    last = max(a for a, p in enumerate(row) if p > 0.0)
    return [*sums[:last], inf]
