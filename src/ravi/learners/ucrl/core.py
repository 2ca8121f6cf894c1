"""Phases of doubled visits with extended value iteration in each: what UCRL2 and its kin share.

At the start t_k of a phase the learner takes every kernel that is plausible, given its counts, together with the policy
that does best in the best of them, found by u <- max_a {r + max_p <p, u>} (`ravi.optimism.extended_value_iteration`),
and plays that policy until the visits of some pair in the phase reach max(1, n), n its visits before.

These are average-reward methods. In the average reward (`criterion=average`) they plan for the gain, without resets,
with u mixed with L u against periods; with a discount they are scored on the reset chain P~ = gamma P + (1 - gamma) 1
nu_0^T, where the average reward of a policy is its discounted return rho exactly
(`ravi.optimism.extended_value_iteration`).

    aware   the learner knows gamma and nu_0, learns P from y_t, and plans on the reset chain of the plausible kernels
    blind   it knows of no resets, and learns P~ itself from x_{t+1}

    support=off  any state may follow any other: p lives on all X states
    support=on   the learner is told the support of each pair, and p lives on it (aware only)

A plan stops at span(u' - u) <= 1 / sqrt(t_k), the rule of UCRL2: the gain is known to that accuracy. u starts where the
last phase ended, not at 0: a fixed point does not depend on it. Ties go to the first action.

With a bound c on the span (SCAL, SCAL+) the iteration is u <- min(L u, min L u + c), and the policy mixes the greedy
action with one without reward where it cuts (`ravi.optimism.extended_value_iteration.act`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import bound, compiled
from ravi._jit.teams import NEVER, Buffer, each, first, sync, team, team_sum
from ravi.core import Array, KernelSets, Learner, Problem, Seedwise, SideInformation
from ravi.estimators.counts import Counts, all_states, next_time, reset_tallies, tallies
from ravi.learners.options import Confidence
from ravi.optimism import extended_value_iteration as optimistic
from ravi.optimism.extended_value_iteration import Sets, act, cut, given, worth
from ravi.optimism.known_support import on_support, support_setting, uses_support
from ravi.runtime.ranges import Number, Policy, Whole
from ravi.runtime.seedwise import compiled_learner

MIXING = 0.9  # of L u with u, against periods, where no resets are known to break them


class State(NamedTuple):
    data: Counts
    u: Number  # relative values, min 0             (n, X)
    gain: Number  # of the best plausible kernel    (n,)
    policy: Policy  #                               (n, X, A)
    unfinished: Whole  # plans that did not come to their accuracy   (n,)


@compiled
def never(given, i, k, v, Q):  # type: ignore[no-untyped-def]
    """What actions are worth that earn nothing, where nothing is cut."""


class Plausible(NamedTuple):
    """Which kernels are plausible: compiled functions, a team's, in files that import this one."""

    radii: Callable[..., Any]  # constants, visits (X A,), t_k, radius (X A,), constant (X A,): writes these two
    constants: tuple[Any, ...]
    sets: Sets
    worth: Callable[..., Any] = worth
    idle: Callable[..., Any] = never  # what actions are worth that earn nothing, as `most` of `Sets`; may change V


def radii_of(radii: Callable[..., Any], constants: tuple[Any, ...], visits: Array, t: Array) -> tuple[Array, Array]:
    """The radii of all seeds at times t (n,), (n, X, A) each."""
    flat = visits.reshape(len(visits), -1)
    both = np.empty((2, *flat.shape))
    for i in range(len(visits)):
        radii(constants, flat[i], t[i], both[0, i], both[1, i])
    return both[0].reshape(visits.shape), both[1].reshape(visits.shape)


def reference(problem: Problem) -> int:
    """x_bar of SCAL+: the mode of nu_0, the first if there are several."""
    return int(np.argmax(problem.initial))


class Own(NamedTuple):
    """What `_plan` and `learn` are given."""

    given: Any  # optimistic.Given
    constants: Any
    initial: Array  # nu_0    (X,)
    span: float
    mixing: float
    limit: int
    u: Array
    gain: Array
    policy: Array
    unfinished: Array
    left: Any  # visits of each pair until the phase ends   (n, X A)
    before: Any  # scratch by team, as are
    Lu: Any
    Q: Any
    idle: Any


class Options(NamedTuple):
    """The options of a learner of this family (`ravi.learners.options.takes`)."""

    scale: float = 1.0  # of the radii
    delta: float = None  # type: ignore[assignment]  # 1/T unless given: a number once it is checked
    span: float | None = None  # c
    mode: str = "aware"
    support: str = "off"

    def checked(self, T: int) -> Options:
        validation.one_of(self.mode, ("aware", "blind"), "mode")
        if self.knows_support and self.mode == "blind":
            raise validation.InputError(
                "support=on needs mode=aware: a blind learner counts x_{t+1}, and resets lead beyond the stored "
                "successors"
            )
        scale, delta = Confidence(self.scale, self.delta).checked(T)
        return self._replace(scale=scale, delta=delta)

    @property
    def knows_support(self) -> bool:
        """Whether kernels are on the support only."""
        return uses_support(self.support)


def extended(
    name: str, problem: Problem, plausible: Plausible, o: Options, more: Mapping[str, Any] = {}, *,
    span: float = np.inf, checked: KernelSets | None = None,
) -> Learner:  # fmt: skip
    """The learner whose plausible kernels are those of `plausible`. more: for the record; checked: what `ravi verify`
    reads."""
    X, A = problem.states, problem.actions
    blind, knows_support = o.mode == "blind", o.knows_support
    successors = all_states(X, A) if blind else on_support(problem, knows_support).successors
    gamma, mixing = (1.0, MIXING) if blind or problem.discount == 1 else (problem.discount, 1.0)
    radii, constants, sets, worth, idle = plausible
    loop = bound(optimistic._iterate, radii=radii, most=sets.most, worth=worth)  # as if it stood where `radii` does

    def init(keys: Array) -> State:
        n = len(keys)
        data = reset_tallies(problem, n) if blind else tallies(problem, n)
        uniform = np.full((n, X, A), 1 / A)
        return State(data, np.zeros((n, X)), np.ones(n), uniform, np.zeros(n, np.int64))

    def own(s: State, teams: int) -> Own:
        by_pair = (teams, X * A)
        return Own(
            given(problem.rewards, successors, gamma, s.data, teams, reference=reference(problem)), constants,
            problem.initial, span, mixing, optimistic.MOST, *s[1:],
            Buffer((len(s.u), X * A), np.int32), Buffer((teams, X)), Buffer((teams, X)), Buffer(by_pair),
            Buffer(by_pair),
        )  # fmt: skip

    record = {"scale": o.scale, "delta": o.delta, **more, "mode": o.mode} | support_setting(knows_support)
    plan = bound(_plan, radii=radii, prepare=sets.prepare, iterate=loop, idle=idle)
    form = Seedwise(plan, learn_blind if blind else learn, own, reset=False, left=lambda own: own.left, time=next_time)
    return compiled_learner(name, init, form, record, side_information=SideInformation(knows_support), sets=checked)


radii = prepare = iterate = idle = never  # `bound` puts those of a learner here


def _plan(own, i, t):  # type: ignore[no-untyped-def]
    """The phase that starts at t, and how many visits of each pair end it; a team's."""
    given, k = own.given, team()
    before, Lu, Q, gamma, u = own.before[k], own.Lu[k], own.Q[k], own.given.discount, own.u[i]
    for p in each(own.left.shape[1]):
        own.left[i, p] = max(given.visits[i, p], 1)
    radii(own.constants, given.visits[i], t, given.radius[k], given.constant[k])
    prepare(given, i, k)
    sync()
    bottom, top, least, sweeps = iterate(
        given, i, k, u, before, Lu, Q, 1.0 / math.sqrt(t), own.span, own.mixing, own.limit
    )
    gain = (bottom + top) / (2 * own.mixing)
    if gamma < 1.0:  # (1 - gamma) <nu_0, V>
        shift, total = least + gamma / (1 - gamma) * (bottom + top) / 2, 0.0
        for x in each(u.shape[0]):
            total += (u[x] + shift) * own.initial[x]
        gain = (1 - gamma) * team_sum(total)
    ceiling, over = cut(Q, Lu, own.span)
    if over:
        idle(given, i, k, before, own.idle[k])
        sync()
    act(Q, Lu, ceiling, over, own.idle[k], own.policy[i])
    if first():
        own.gain[i] = gain
        own.unfinished[i] += sweeps >= own.limit
    sync()
    return NEVER


@compiled
def learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """Count the step, and down to the end of the phase; one thread's. All is read before any is written."""
    p = x * own.policy.shape[2] + a
    n, m, left = own.given.visits[i, p], own.given.moves[i, p, slot], own.left[i, p] - 1
    own.given.visits[i, p], own.given.moves[i, p, slot], own.left[i, p] = n + 1, m + 1, left
    return left <= 0


@compiled
def learn_blind(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """`learn` of a move to x_{t+1}, among all states; one thread's."""
    return learn(own, i, t, x, a, y, after, reset, after)
