"""What do UCRL2 and its kin share? Phases of doubled visits, and extended value iteration in each.

At the start t_k of a phase the learner takes every kernel that is plausible, given its counts, together with the policy
that does best in the best of them, found by u <- max_a {r + max_p <p, u>} (`ravi.planning.optimistic`), and plays that
policy until the plays of some pair in the phase reach max(1, n), n its plays before.

These are average-reward methods; here they are scored on the reset chain P~ = gamma P + (1 - gamma) 1 nu_0^T, where the
average reward of a policy is its discounted return rho exactly (`ravi.planning.optimistic`).

    aware   the learner knows gamma and nu_0, learns P from y_t, and plans on the reset chain of the plausible kernels
    blind   it knows of no resets, and learns P~ itself from x_{t+1}

    average      stop at span(u' - u) <= 1 / sqrt(t_k), the rule of UCRL2: the gain is known to that accuracy
    discounted   stop at gamma H span(u' - u) <= 1 / sqrt(t_k): every value V(x) is (aware only)

    support=off  any state may follow any other: p lives on all X states
    support=on   the learner is told the stored successors, and p lives on them (`ravi.optimism.supported`; aware only)

Both ways of planning run the same iteration and differ in when it stops. u starts where the last phase ended, not at 0:
a fixed point does not depend on it. Ties go to the first action.

With a bound c on the span (SCAL, SCAL+) the iteration is u <- min(L u, min L u + c), and the policy mixes the greedy
action with one without reward where it cuts (`ravi.planning.optimistic.truncated`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import EVERY_PLAY, Counts, tallies, tally
from ravi.estimators.reset_counts import all_states, reset_tallies, tally_resets
from ravi.optimism.sets import Backup
from ravi.optimism.supported import recorded
from ravi.planning.optimistic import MOST, greedy, iterate, truncated, values
from ravi.ranges import SLACK, Facts, Number, Policy, Whole
from ravi.schedules import doubling

Plausible = Callable[[Array, Array, float, Counts, Array], Backup]  # r, successors, gamma, D, t_k -> Backup

MIXING = 0.9  # of L u with u, against periods, where no resets are known to break them


class State(NamedTuple):
    data: Annotated[Counts, EVERY_PLAY]
    u: Number  # relative values, min 0             (n, X)
    gain: Number  # of the best plausible kernel    (n,)
    policy: Policy  #                               (n, X, A)
    unfinished: Whole  # plans that did not come to their accuracy   (n,)

    def agrees(self, facts: Facts) -> dict[str, Array]:
        return {"the least of u is 0": np.abs(self.u.min(-1)) <= SLACK}


def extended(
    problem: Problem,
    plausible: Plausible,
    *,
    name: str,
    mode: str,
    planning: str,
    told: bool,
    settings: dict[str, Any],
    span: float = np.inf,
    idle: Plausible | None = None,
) -> Learner:
    """The learner whose plausible kernels are those of `plausible`; `told`: on the stored successors; with a span
    bound, `idle` is what actions are worth that earn nothing."""
    checks.one_of(mode, ("aware", "blind"), "mode")
    checks.one_of(planning, ("average", "discounted"), "planning")
    if mode == "blind" and planning == "discounted":
        raise checks.InputError("planning=discounted needs mode=aware: a blind learner knows of no discount")
    if mode == "blind" and told:
        raise checks.InputError(
            "support=on needs mode=aware: a blind learner counts x_{t+1}, and resets lead beyond the stored successors"
        )
    X, A, nu0 = problem.states, problem.actions, problem.initial
    blind = mode == "blind"
    r = problem.rewards[None]
    successors = all_states(X, A) if blind else problem.successors
    gamma, mixing = (1.0, MIXING) if blind else (problem.discount, 1.0)
    accuracy = 1.0 if planning == "average" else (1 - gamma) / gamma

    def init(keys: Array) -> State:
        n = len(keys)
        data = reset_tallies(problem, n) if blind else tallies(problem, n)
        uniform = np.full((n, X, A), 1 / A)
        return State(data, np.zeros((n, X)), np.ones(n), uniform, np.zeros(n, np.int64))

    def plan(s: State) -> State:
        t = 1 + s.data.visits.sum((1, 2))  # t_k
        given = (r, successors, gamma, s.data, t)
        found = iterate(plausible(*given), s.u, A, accuracy / np.sqrt(t), span=span, mixing=mixing)
        gain = (found.low + found.high) / (2 * mixing) if blind else (1 - gamma) * (values(found, gamma) * nu0).sum(-1)
        policy = greedy(found.Q) if idle is None else truncated(found, span, idle(*given))
        return State(s.data, found.u, gain, policy, s.unfinished + (found.sweeps >= MOST))

    def add(s: State, path: Path) -> State:
        (tally_resets if blind else tally)(s.data, path)
        return s

    made = settings | {"mode": mode, "planning": planning} | recorded(told)
    return Learner(name, init, plan, add, doubling(), made)
