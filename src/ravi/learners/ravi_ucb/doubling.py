"""RAVI-UCB and RAVI-UCB+ without knowing T: phases of doubling length, each with its own constants, on all data.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023.
Trust: DERIVED: the paper takes T as known (in eta, beta and delta); doubling is the usual way out.

Phase i = 0, 1, ... is for l_i = 2^i l plays, after S_i = (2^i - 1) l; it is the learner for T known with

    eta_i = eta of l_i plays,    beta_i = beta of S_{i+1} plays at delta_i = 1 / l_i

from V_0 and pi_0 on, with the data of all phases before: so many steps may stand behind a bonus, hence S_{i+1}. On
counts (Algorithm 2) that is eta_i = sqrt(2 ln A / (H^2 l_i)) and beta_i = 8 H sqrt(X ln(X A S_{i+1} / delta_i)). A
phase gives way at the first reset after its end, and an epoch belongs to the phase that its first step is in: phases
that an epoch passes over are skipped. In phase 0 it is the learner for T = l, bit for bit.

What an estimator keeps must not depend on T: counts and regressions with a fixed lambda do not, whatever their samples
are divided by (`ravi.estimators.centred`). Weights by variance would: their radii grow with T, and samples that were
weighted under one phase's would be of the wrong weight in the next. They are left out.

Constants: l = `first` = 1; those of the learner for T known in every phase.
Deviations: V and pi begin anew with a phase. Were pi to go on under another eta, H(pi* || pi) would take the place of
ln A, and it may be as large as it likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import bound, compiled
from ravi._jit.teams import Buffer, each, over_seeds, sync
from ravi._jit.teams import first as first_thread
from ravi.core import Array, Data, Learner, Problem, Seedwise, SettingsBatch
from ravi.learners.options import ALL, Options, takes
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.inner import Form, counted_by, seed_learn
from ravi.runtime.ranges import Fixed, LogPolicy, NextPlay, Policy, Range, Value
from ravi.runtime.seedwise import over_all_seeds
from ravi.schedules import at_reset
from ravi.theory import doubling as theory

MOST = 2**60  # plays of a first phase
LONGEST = 2**31 - 2  # plays of any run, since counts are 32-bit: a union bound need not be over more
PAPERS = partial(ravi_ucb_plus.generic, fresh=False)  # Algorithm 1, with the State of RAVI-UCB+
OF_A_PHASE = ("eta", "beta", "delta")  # settings that are not the same in all


Build = Callable[[Problem, int, Options], Learner]
BEGUN = Range(lambda i, f, *_: (i >= 0) & (i <= np.log2(1.0 + f.time)), "a phase that has begun")


class State(NamedTuple):
    """The state of RAVI-UCB+, and the phase."""

    data: Data  # D
    V: Value  # V_m, of the policy that is played   (n, X)
    policy: Policy  # pi_m                          (n, X, A)
    V_last: Value  # V_j of the last backup         (n, X)
    Q: Value  # Q of the next, where it is not fresh   (n, X, A)
    log_policy: LogPolicy  # log pi_j               (n, X, A)
    last_policy: Policy  # pi_j                     (n, X, A)
    key: Fixed  #                                   (n,)
    time: NextPlay  # t of the next step            (n,)
    phase: Annotated[Array, BEGUN]  # i             (n,)


@dataclass(frozen=True)
class Phases:
    """The plan of every seed by the learner of its phase; `ravi verify` reads those learners from it.

    Phases differ in `ravi.core.SettingsBatch.numbers` alone: on arrays, the learner whose rows have the numbers of
    their phases plans for all seeds.
    """

    first: int  # l
    learner: Callable[[int], Learner]  # of phase i
    compiled: Callable[[Any], Any] | None = None  # the plan of all seeds, where it is compiled

    def __call__(self, s: State) -> State:
        planned: State = self.on_arrays(s) if self.compiled is None else self.compiled(s)
        return planned

    def on_arrays(self, s: State) -> State:
        begin(self, s)
        made, rows = self._of_seeds(len(s.phase))
        # A GPU is not asked which phases there are.
        phases = int(s.phase.max()) + 1 if isinstance(s.phase, np.ndarray) else theory.phases(LONGEST, self.first)
        over_seeds(_of_phase, s.phase, s.phase, self._numbers(phases), rows)
        return State._make((*made.plan(s)[: len(State._fields) - 1], s.phase))

    @cached_property
    def fresh(self) -> tuple[Array, ...]:
        """What a phase begins from: `iterates` of one seed."""
        return iterates(self.learner(0).init(np.zeros(1, np.uint64)))

    def _rows(self, i: int) -> SettingsBatch:
        rows = self.learner(i).rows
        assert rows is not None
        return rows

    @cache  # noqa: B019 - a learner has one, which lives as long
    def _numbers(self, phases: int) -> Array:
        return np.array([self._rows(i).numbers for i in range(phases)])

    @cache  # noqa: B019
    def _of_seeds(self, n: int) -> tuple[Learner, tuple[Array, ...]]:
        """The learner of n rows, and their numbers, which are those of the plan under way."""
        rows = tuple(np.ones(n) for _ in self._rows(0).numbers)
        return self._rows(0).of(*rows), rows


def iterates(s: Any) -> tuple[Array, ...]:
    """The fields that a new phase starts afresh."""
    return s.V_last, s.Q, s.log_policy, s.last_policy


def begin(phases: Phases, s: State) -> None:
    """Seeds whose phase is over go on in the one that time is in, from V_0 and pi_0; in place."""
    over_seeds(_begin, s.phase, phases.first, s.time, s.phase, phases.fresh, iterates(s))


@compiled
def _begin(low, high, l, time, phase, fresh, at):  # type: ignore[no-untyped-def]
    """`begin` of seeds low, ..., high - 1; a team's."""
    V_0, Q_1, log_pi_0, pi_0 = fresh
    V, Q, log_policy, policy = at
    for i in range(low, high):
        k, t = phase[i], time[i]
        sync()  # all have read the phase
        if t > (l << (k + 1)) - l:  # S_{k+1} steps were made
            k, lengths = 0, (t - 1) // l + 1
            while lengths > 1:  # `theory.phases` less one
                k, lengths = k + 1, lengths >> 1
            if first_thread():
                phase[i] = k
            for x in each(Q.shape[1]):
                V[i, x] = V_0[0, x]
                for a in range(Q.shape[2]):
                    Q[i, x, a], log_policy[i, x, a], policy[i, x, a] = Q_1[0, x, a], log_pi_0[0, x, a], pi_0[0, x, a]
        sync()


@compiled
def _of_phase(low, high, phase, numbers, rows):  # type: ignore[no-untyped-def]
    """Give seeds low, ..., high - 1 the numbers of their phases, (phases, count); rows: (n,) of each. A team's."""
    for i in range(low, high):
        if first_thread():
            k = min(phase[i], numbers.shape[0] - 1)  # a GPU goes on with seeds that have ended, in vain
            for j in range(len(rows)):
                rows[j][i] = numbers[k, j]
    sync()


class InPhases(NamedTuple):
    """The buffers of `_plan` and `_learn`."""

    counted: Any  # of `ravi.learners.ravi_ucb.inner`; eta and the varied constants of a seed are those of its phase
    phase: Array  # (n,)
    first: int  # l
    fresh: Any
    numbers: Array  # eta and the varied constants by phase   (phases, k)


put: Any = sync  # `bound` puts those of the form here
plan_phase: Any = sync


def _plan(own, i, t):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    counted, numbers = own.counted, own.numbers
    V, Q, _, log_policy, policy, _, _ = counted.iterates
    _begin(i, i + 1, own.first, counted.time, own.phase, own.fresh, (V, Q, log_policy, policy))
    if first_thread():
        put(counted, i, numbers[min(own.phase[i], numbers.shape[0] - 1)])
    sync()
    return plan_phase(counted, i, t)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    return seed_learn(own.counted, i, t, x, a, y, slot, reset, after)


def _in_phases(phases: Phases, form: Form) -> Seedwise:
    """The epoch of one seed, where every phase is made of counts."""

    def own(s: State, teams: int) -> InPhases:
        of = [one for i in range(theory.phases(LONGEST, phases.first)) if (one := counted_by(phases.learner(i)))]
        varied, room = of[0].constants.varied, Buffer((len(s.phase),))
        numbers = [[one.eta[0], *(getattr(one.constants, name)[0] for name in varied)] for one in of]
        counted = of[0](s, teams)
        counted = counted._replace(eta=room, constants=counted.constants._replace(**dict.fromkeys(varied, room)))
        return InPhases(counted, s.phase, phases.first, phases.fresh, np.array(numbers))

    return Seedwise(bound(_plan, plan_phase=form.plan, put=form.put), _learn, own, time=lambda s: s.time)


def doubling(name: str, first: int, build: Callable[[int], Learner]) -> Learner:
    """The learner whose phase i is build(i); all are of `ravi_ucb_plus.generic`, on data of one layout."""
    phases = Phases(first, cache(build))
    base = phases.learner(0)
    counted = counted_by(base)

    def init(keys: Array) -> State:
        return State(*(*base.init(keys), np.zeros(len(keys), np.int64)))

    settings = {"first": first} | {name: value for name, value in base.settings.items() if name not in OF_A_PHASE}
    learner = Learner(name, init, phases, base.add, at_reset(), settings, seedwise=base.seedwise)
    if counted is None:
        return learner
    form = _in_phases(phases, counted.form)
    learner = over_all_seeds(learner, form)
    return learner._replace(plan=replace(phases, compiled=learner.plan)).derived_from(form)


def in_phases(
    name: str, build: Build, problem: Problem, first: int, o: Options, most: int, step: Callable[..., float]
) -> Learner:
    """`build`'s learner, of RAVI-UCB+'s form, in phases: eta, `step(o, problem, T)`, is that of l_i steps, all else
    that of S_{i+1}."""
    l = validation.whole(first, "first", 1, most)

    def phase(i: int) -> Learner:
        length, end, delta = min(theory.length(i, l), most), min(theory.end(i, l), most), 1 / theory.length(i, l)
        eta = step(o._replace(step_scale=1.0, delta=delta), problem, length)
        return build(problem, end, o._replace(eta=eta, delta=delta))

    return doubling(name, l, phase)


@takes("scale", "step_scale")
def tabular(problem: Problem, T: int, first: int = 1, o: Options = ALL) -> Learner:
    """RAVI-UCB in phases; `first` is the length of the first, `scale` multiplies beta, `step_scale` eta. `steps` is not
    looked at: a run may be of any length.

    Setting: discounted with resets, tabular; T unknown.
    Guarantee: that of RAVI-UCB, its parts in sqrt(T) at most 1 / (1 - 2^(-1/2)) = 3.414... times as large (with
    ln(2 X A T^2) in place of ln(X A T^2)), and all else once in each of 1 + log2(T) phases at most (`theory.doubling`).
    Composition: counts from 1 x beta_i / sqrt(N) x one mirror step and one backup x at resets.
    Cost: O(A) per step; X A B per plan, B the successors stored per pair; T / H plans.
    """
    build = partial(ravi_ucb.on_counts, PAPERS)
    return in_phases("ravi-ucb/doubling", build, problem, first, o, MOST, ravi_ucb.theorem_step)


@takes("scale", "step_scale", "regularization", "bound")
def linear_mixture(problem: Problem, T: int, first: int = 1, o: Options = ALL) -> Learner:
    """RAVI-UCB for linear mixtures in phases; `first` is the length of the first, the other options are those of
    `ravi-ucb/mixture`. `steps` is not looked at: a run may be of any length.

    Setting: discounted with resets, linear mixture of dimension d; T unknown.
    Guarantee: that of RAVI-UCB (Theorem 5.6), its parts in sqrt(T) at most 1 / (1 - 2^(-1/2)) = 3.414... times as large
    (with beta of 2 T steps), and all else once in each of 1 + log2(T) phases at most (`theory.doubling`).
    Composition: ridge regression on values x beta_i ||phi||_{Lambda^-1} x one mirror step and one backup x at resets.
    Cost: O(d^2) per step; X A (B d + d^2) per plan; T / H plans.
    """
    build = partial(ravi_ucb.on_regression, PAPERS)
    return in_phases("ravi-ucb/mixture/doubling", build, problem, first, o, MOST, ravi_ucb.theorem_step)


@takes(*ravi_ucb_plus.tabular.names, without=("eta", "delta"))
def plus(problem: Problem, T: int, first: int = 1, o: Options = ALL) -> Learner:
    """RAVI-UCB+ on counts in phases; `first` is the length of the first, the other options are those of `ravi-ucb+`.
    `steps` is not looked at: a run may be of any length.

    Setting: discounted with resets, tabular; T unknown.
    Guarantee: that of RAVI-UCB+, its parts in sqrt(T) at most 1 / (1 - 2^(-1/2)) = 3.414... times as large (with
    ln(2 X A T^2) in place of ln(X A T^2)), and all else once in each of 1 + log2(T) phases at most (`theory.doubling`).
    Composition: counts from 1, centred x a bonus by the span of V x M mirror steps and backups x at resets.
    Cost: O(A) per step; M X A B per plan, B the successors stored per pair; T / H plans.
    """
    build = ravi_ucb_plus.tabular.of
    return in_phases("ravi-ucb+/doubling", build, problem, first, o, LONGEST, partial(_step, build))


@takes(*ravi_ucb_plus.linear_mixture.names, without=("weights", "eta", "delta"))
def plus_linear_mixture(problem: Problem, T: int, first: int = 1, o: Options = ALL) -> Learner:
    """RAVI-UCB+ on a regression in phases; `first` is the length of the first, the other options are those of
    `ravi-ucb+/mixture`. `steps` is not looked at: a run may be of any length.

    Setting: discounted with resets, linear mixture of dimension d; T unknown.
    Guarantee: that of RAVI-UCB+, its parts in sqrt(T) at most 1 / (1 - 2^(-1/2)) = 3.414... times as large (with beta
    of 2 T steps), and all else once in each of 1 + log2(T) phases at most (`theory.doubling`).
    Composition: ridge regression on values in parts of their span x the determinant's radius x M mirror steps and
    backups x at resets.
    Cost: O(d^2) per step; M X A (B d + d^2) per plan; T / H plans.
    """
    build = ravi_ucb_plus.linear_mixture.of
    return in_phases("ravi-ucb+/mixture/doubling", build, problem, first, o, LONGEST, partial(_step, build))


def _step(build: Build, o: Options, problem: Problem, T: int) -> float:
    """eta of RAVI-UCB+, which is balanced against its bonuses."""
    parts = build(problem, T, o).parts
    assert parts is not None
    return parts.eta
