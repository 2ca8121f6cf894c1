"""Wrappers: from any learner, one that does not know the rewards, and one that does not know T.

    unknown_rewards(build)    the ids NAME/unknown-rewards
    doubling(build)           the ids NAME/doubling

A wrapper takes a builder, problem, steps, options -> Learner, and gives another one with options of its own. It asks
nothing of the learner but to read the rewards of its problem anew at every plan, and at every step where it learns at
every step, as on a stream (`ravi.live.table`). Seeds are served one after the other, so that all of them can share one
table of rewards, and each can be in a phase of its own. Learners of RAVI-UCB's form have their own form of both
(`ravi.learners.ravi_ucb`), in one loop over all seeds, and keep their data from phase to phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled, instance, uncounted
from ravi._jit.teams import NEVER
from ravi.core import Array, Learner, Path, Problem, Until, Walkers, restrict
from ravi.estimators.rewarded import Rewarded, earn, earn_step, law_of
from ravi.optimism.rewards import optimistic_rewards, reward_spread
from ravi.runtime import tree
from ravi.runtime.ranges import Count, Facts, Fixed, Flag, Plays, Probability, Range
from ravi.runtime.walk import Walking, learn, steps_with
from ravi.theory.doubling import phases

Build = Callable[..., Learner]  # problem, steps, options
LONGEST = 2**31 - 2  # plays of any run, since counts are 32-bit
LATE = 20  # a phase in which constants are other than in phase 0, if they depend on T


def wrapper(wrap: Callable[..., Learner]) -> Callable[[Build], Build]:
    """A function of builders, from `wrap`: problem, steps -> Learner; problem, steps; options -> Learner. The builder
    that it gives takes the options of both."""
    types = get_type_hints(wrap)
    own = [one.replace(kind=Parameter.KEYWORD_ONLY, annotation=types[one.name]) for one in _options(wrap, 3)]

    @cache
    def wrapped(build: Build) -> Build:
        hints = get_type_hints(build)
        shape = signature(build)
        taken = [one.replace(annotation=hints.get(one.name, Any)) for one in shape.parameters.values()]
        names = {one.name for one in own}
        shape = shape.replace(parameters=[*taken, *own], return_annotation=Learner)

        @wraps(wrap)
        def builder(problem: Problem, steps: int, *values: Any, **options: Any) -> Learner:
            mine = {name: options.pop(name) for name in names & options.keys()}
            return wrap(lambda of, T: build(of, T, *values, **options), problem, validation.steps(steps), **mine)

        builder.__annotations__ = {one.name: one.annotation for one in (*taken, *own)} | {"return": Learner}
        vars(builder).update(__signature__=shape)
        return builder

    vars(wrapped).update(wrap=wrap)
    return wraps(wrap)(wrapped)


def _options(function: Callable[..., Any], skip: int) -> list[Parameter]:
    return list(signature(function).parameters.values())[skip:]


class BySeed:
    """Plan, add, until and walk of all seeds, from functions of one seed, whose arrays have a first axis of one."""

    def __init__(self, plan: Callable[[Any], tuple[Any, Until]], add: Callable[[Any, Path], Any]) -> None:
        self.one = plan, add
        self.ends: list[Until] = []  # of the epochs that were planned last, by seed

    def plan(self, s: Any) -> Any:
        planned = [self.one[0](tree.seed(s, i)) for i in range(len(s.time))]
        self.ends = [end for _, end in planned]
        return tree.join([row for row, _ in planned])

    def add(self, s: Any, path: Path) -> Any:
        return tree.join([self.one[1](tree.seed(s, i), tree.seed(path, i)) for i in range(len(s.time))])

    def until(self, s: Any, time: Array) -> Until:
        deadline = np.array([NEVER if end.deadline is None else end.deadline[0] for end in self.ends])
        return self.ends[0]._replace(deadline=deadline)  # of several seeds, `Walk` asks each for its resets and visits


@dataclass(frozen=True, eq=False)
class Walk(Walking):
    """The walk of all seeds, one after the other."""

    seeds: BySeed

    def __call__(
        self, world: Any, state: Any, walkers: Walkers, path: Path, over: Array, until: Until, steps: int
    ) -> tuple[int, int]:
        unfinished, ended = 0, 0
        for i, end in enumerate(self.seeds.ends):
            of, at, stretch = tree.seed(state, i), tree.seed(walkers, i), tree.seed(path, i)
            mine = end._replace(deadline=until.deadline[i : i + 1])  # type: ignore[index]
            left, last = super().__call__(world, of, at, stretch, over[i : i + 1], mine, steps)
            unfinished, ended = unfinished + left, ended + last
        return unfinished, ended


def _by_seed(
    base: Learner, name: str, init: Callable[[Array], Any], seeds: BySeed, step: Any, own: Any, **more: Any
) -> Learner:
    """A learner of seeds that are served one after the other. step: around what is learned at every step, by a learner
    that does; own: what it is given."""
    if base.walk is None:
        walk = Walk(learn, lambda state, walkers: (), uncounted(steps_with(learn)), seeds)
    elif isinstance(base.walk, Walking):
        both, loop = _around(step, base.walk.learn)
        walk = Walk(both, own, loop, seeds)
    else:
        raise validation.InputError(f"{base.name} walks by itself: its walk is not of `ravi.runtime.walk.walking`")
    return Learner(
        f"{base.name}/{name}", init, seeds.plan, seeds.add, seeds.until, walk=walk, stages=base.stages, **more
    )


@cache
def _around(step: Any, learn: Any) -> tuple[Any, Any]:
    """`step` with this `learn` in it, and the loop over steps with that."""
    both = compiled(instance(step, learn=learn))
    return both, uncounted(steps_with(both))


# Unknown rewards.


class Earning(NamedTuple):
    """The state of a learner that does not know the rewards."""

    learner: Any
    earned: Rewarded  # n(x, a), and what was earned
    rewards: Probability  # the rewards as the learner reads them   (n, X, A)
    time: Plays  # steps made                                       (n,)

    @property
    def policy(self) -> Array:
        return self.learner.policy

    @property
    def age(self) -> Array:
        return self.learner.age


class EarningStep(NamedTuple):
    """What `_earn_and_learn` is given."""

    own: Any  # of the learner
    earned: tuple[Array, Array, Array]  # plays, total, key
    rewards: Array  # as the learner reads them, in its state   (1, X, A)
    table: Array  # and in its problem                          (X, A)
    mean: Array  # r                                            (X, A)
    law: int
    spread: float


def _earn_and_learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    plays, total, key = own.earned
    earn_step(plays, total, key, own.mean, own.law, i, t, x, a)
    n = plays[i, x, a]
    own.rewards[i, x, a] = own.table[x, a] = min(total[i, x, a] / n + own.spread / np.sqrt(n), 1.0)
    return learn(own.own, i, t, x, a, y, slot, reset, after)


@wrapper
def unknown_rewards(
    build: Build, problem: Problem, steps: int, rewards: str | None = None, reward_scale: float = 1.0
) -> Learner:
    """A learner that is given the optimistic rewards min{r_hat + b, 1} of what it earned in place of the rewards.

    A play of (x, a) earns 1 with probability r(x, a) and else 0 (`rewards=bernoulli`, unless the MDP has another law),
    r(x, a) itself (`rewards=deterministic`), or a beta variate of that mean (`rewards=beta`). r_hat is the mean of what
    was earned, b = `reward_scale` sqrt(ln(2 X A T / delta) / (2 n)) with delta = 1/T. The learner reads these rewards
    as they were at its last plan or, if it learns at every step, as they are at that step. On a stream,
    `ravi.agent(..., rewards="unknown")` does the same.

    Paper: none for the wrapper; that of the learner.
    Setting: that of the learner; rewards unknown. Every learner but those that are given the MDP itself, or have a form
    of their own.
    Guarantee: where the learner is optimistic, r <= min{r_hat + b, 1} <= r + 2 b with probability 1 - delta: its bonus
    grows by 2 b at most, whose sum is O~(sqrt(X A T)); of other learners nothing is proven.
    Composition: the learner on min{r_hat + b, 1}.
    Constants: `reward_scale` = 1.
    Cost: that of the learner, one seed after the other; X A per plan more.
    Trust: DERIVED: Hoeffding's inequality for every pair and number of visits.

    Parameters
    ----------
    build
        Problem, steps, options -> Learner.
    problem, steps
        Of the builder that is given: what is known, and T.
    rewards
        How they are drawn: "bernoulli", "beta" or "deterministic"; unless given, by the law of the MDP.
    reward_scale
        Multiplies b.

    Returns
    -------
    A builder, with the options of `build`, `rewards` and `reward_scale`.

    Examples
    --------
    >>> import ravi
    >>> from ravi.learners.posterior.psrl import psrl
    >>> unknown_rewards(psrl)(ravi.mdp("riverswim/6").problem, 1000, rewards="deterministic").name
    'psrl/unknown-rewards'
    """
    X, A = problem.states, problem.actions
    kind, scale = law_of(problem, rewards), validation.nonnegative(reward_scale, "reward_scale")
    spread = scale * reward_spread(X, A, steps, validation.delta(None, steps))
    table = np.ones((X, A))  # which the learner reads, of the seed that is served
    base = build(restrict(problem, type(problem), rewards=table), steps)
    if base.side_information.rewards is not None:
        raise validation.InputError(f"{base.name} simulates unknown rewards already")

    def init(keys: Array) -> Earning:
        n = len(keys)
        earned = Rewarded((), np.zeros((n, X, A), np.int64), np.zeros((n, X, A)), np.array(keys, np.uint64))
        return Earning(base.init(keys), earned, np.ones((n, X, A)), np.zeros(n, np.int64))

    def plan(s: Earning) -> tuple[Earning, Until]:
        table[:] = s.rewards[0] = optimistic_rewards(s.earned.plays[0], s.earned.total[0], spread)
        planned = base.plan(s.learner)
        return s._replace(learner=planned), base.until(planned, s.time)

    def add(s: Earning, path: Path) -> Earning:
        table[:] = s.rewards[0]
        learned = base.add(s.learner, path)
        if base.walk is None:
            earn(s.earned, problem.rewards, kind, path)
        return s._replace(learner=learned, time=s.time + path.length)

    def own(s: Earning, walkers: Walkers) -> Any:
        table[:] = s.rewards[0]
        given = base.walk.own(s.learner, walkers)  # type: ignore[union-attr]
        return EarningStep(given, s.earned[1:], s.rewards, table, problem.rewards, validation.LAWS[kind], spread)

    return _by_seed(
        base, "unknown-rewards", init, BySeed(plan, add), _earn_and_learn, own,
        settings=base.settings | {"rewards": kind, "reward_scale": scale, "reward_spread": spread},
        side_information=base.side_information._replace(rewards=kind, reward_scale=scale),
    )  # fmt: skip


# An unknown T.

BEGUN = Range(lambda i, f, *_: (i >= 0) & (i <= np.log2(1.0 + f.time)), "a phase that has begun")


class Phased(NamedTuple):
    """The state of a learner in phases."""

    learner: Any  # of the phase
    key: Fixed  #                                                (n,)
    phase: Annotated[Array, BEGUN]  # i                          (n,)
    plays: Count  # that the learner made, at most l_i           (n,)
    reset: Flag  # whether a reset came before the next step     (n,)
    time: Plays  # steps made                                    (n,)

    @property
    def policy(self) -> Array:
        return self.learner.policy

    @property
    def age(self) -> Array:
        return self.learner.age

    def facts_within(self, facts: Facts) -> Facts:
        """What the ranges of the learner's arrays depend on: it knows of its own plays only."""
        return facts._replace(time=self.plays, walked=self.plays)


class PhaseStep(NamedTuple):
    """What `_learn_in_phase` is given."""

    own: Any  # of the learner
    before: int  # steps before the phase
    waits: bool  # for a reset, after the last of the phase


def _learn_in_phase(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    return (not own.waits) and learn(own.own, i, t - own.before, x, a, y, slot, reset, after)


def _shapes(learner: Learner) -> list[tuple[int, ...]]:
    """The shapes of the arrays of one seed."""
    return [leaf.shape for _, leaf in tree.leaves(learner.init(np.zeros(1, np.uint64))) if isinstance(leaf, np.ndarray)]


@wrapper
def doubling(build: Build, problem: Problem, steps: int, first: int = 1) -> Learner:
    """Phases of doubling length, in each of which the learner for T known begins anew.

    Phase i = 0, 1, ... is the learner for T = l_i = 2^i l, l = `first`. It makes l_i steps, and then plays its last
    policy to the next reset, without learning. What it learned is forgotten, since what a learner keeps of its data may
    depend on T; `ravi-ucb`, `ravi-ucb+` and both for mixtures keep them in phases of their own. In phase 0 it is the
    learner for T = l, bit for bit. `steps` changes nothing that is played.

    Paper: none for the wrapper; that of the learner.
    Setting: that of the learner; T unknown. Every learner whose settings depend on T, and the shapes of whose arrays do
    not.
    Guarantee: where regret is at most c sqrt(T) for T known, it is at most 3.414... c sqrt(T + l - 1) + gamma H
    (1 + log2(T / l + 1)) (`ravi.theory.doubling`), the last term for the steps up to the resets.
    Composition: the learner for T = l_i, from its beginning, in every phase.
    Constants: l = 1.
    Cost: that of the learner, one seed after the other.
    Trust: DERIVED: the doubling trick, with the steps up to resets counted.

    Parameters
    ----------
    build
        Problem, steps, options -> Learner.
    problem, steps
        Of the builder that is given: what is known, and T.
    first
        l, the steps of phase 0.

    Returns
    -------
    A builder, with the options of `build`, and `first`.

    Examples
    --------
    >>> import ravi
    >>> from ravi.learners.ucrl.ucrl import ucrl2
    >>> doubling(ucrl2)(ravi.mdp("riverswim/6").problem, 1000, first=10).settings["first"]
    10
    """
    l = validation.whole(first, "first", 1, LONGEST)

    def length(i: int) -> int:
        return min(l << i, LONGEST)

    @cache
    def of_phase(i: int) -> Learner:
        return build(problem, length(i))

    base, last = of_phase(0), of_phase(phases(steps, l) - 1)
    if base.settings == of_phase(LATE).settings:
        raise validation.InputError(f"{base.name} does not depend on T, and needs no phases: its settings do not")
    if _shapes(base) != _shapes(last):
        raise validation.InputError(f"{base.name} has no phases: the shapes of its arrays depend on T")

    def init(keys: Array) -> Phased:
        n = len(keys)
        phase, plays, time = np.zeros((3, n), np.int64)
        return Phased(base.init(keys), np.array(keys, np.uint64), phase, plays, np.ones(n, np.bool_), time)

    def ended(s: Phased) -> bool:
        return int(s.plays[0]) >= length(int(s.phase[0]))

    def plan(s: Phased) -> tuple[Phased, Until]:
        if ended(s) and s.reset[0]:
            phase = s.phase + 1
            s = s._replace(learner=of_phase(int(phase[0])).init(s.key), phase=phase, plays=np.zeros_like(s.plays))
        if ended(s):
            return s, Until(reset=True)
        now, before = of_phase(int(s.phase[0])), s.time - s.plays
        planned = now.plan(s.learner)
        end = now.until(planned, s.plays)
        most = np.array([length(int(s.phase[0]))])
        deadline = before + (most if end.deadline is None else np.minimum(end.deadline, most))
        return s._replace(learner=planned), end._replace(deadline=deadline)

    def add(s: Phased, path: Path) -> Phased:
        made = int(path.length[0])
        if made == 0:
            return s
        s = s._replace(reset=path.reset[:, made - 1].copy(), time=s.time + made)
        if ended(s):
            return s
        now, relative = of_phase(int(s.phase[0])), path._replace(time=s.plays + 1)
        return s._replace(learner=now.add(s.learner, relative), plays=s.plays + made)

    def own(s: Phased, walkers: Walkers) -> Any:
        given = of_phase(int(s.phase[0])).walk.own(s.learner, walkers)  # type: ignore[union-attr]
        return PhaseStep(given, int(s.time[0] - s.plays[0]), ended(s))

    common = {name: value for name, value in base.settings.items() if of_phase(LATE).settings[name] == value}
    return _by_seed(
        base, "doubling", init, BySeed(plan, add), _learn_in_phase, own,
        settings={"first": l} | common, side_information=base.side_information,
    )  # fmt: skip
