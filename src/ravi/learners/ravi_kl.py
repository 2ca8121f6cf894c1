"""RAVI-KL: RAVI-UCB with sets of kernels in place of bonuses; nothing is tuned.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: Algorithm 1, with another
BONUS; the sets are those of Filippi, Cappe and Garivier (2010), with radii from mixtures and from betting.
Trust: DERIVED: the radii, the planning and the regret bounds are this library's; docs/kl.md has the proofs.

Of a pair (x, a) with n plays and the frequencies p_hat of their successors, the plausible kernels are

    C(x, a) = {q on S(x, a) : n KL(p_hat || q) <= rho},

S(x, a) its stored successors (support=on), or all states (support=off). Every form plans with max_{q in C} <q, V>.

    plan=mirror    Algorithm 1: M mirror steps an epoch from Q = Pi_H[r + gamma max_C <q, V>], one of their policies
                   drawn uniformly, until the next reset. With L = min_C <q, V> and U = max_C <q, V> it is
                   TRANSITION-ESTIMATE (L + U) / 2 and BONUS gamma (U - L) / 2: valid wherever P is in C.
                   rho = ln(X A / delta) + ln p_hat(y^n) / KT(y^n), delta = 1/T: P is in C for all n at once.
    plan=greedy    the policy that is greedy for V = max_a {r + gamma max_C <q, V>}, until a reset, or until the plays
                   of a pair within the epoch reach those before. rho = ln(X / delta_t) + kappa(n): it need hold at V*
                   only, and does with probability 1 - delta_t, for all n at once.
                   delta_t = min{1, sqrt(H X A / t)}: T is not used.
    plan=slack     the same sets, but another policy is played where it is nearly as optimistic: a candidate, if its
                   own optimistic return, with the best kernels of its actions, is at least U - eps_t, where U is the
                   largest and eps_t = slack sqrt(H X A / t).
                   candidate=half: the policy of plan=greedy at rho / 2. candidate=posterior: the optimal policy of a
                   kernel drawn from the posterior of a Dirichlet(1, ..., 1) on S: that of PSRL, under the same bound.

Where rewards are not known, r is their upper confidence bound max {m : n kl(r_hat, m) <= rho} in greedy and slack, with
2 X for X in both radii; mirror has the bonus of `ravi.learners.unknown_rewards`.

Constants: those above; in delta_t, t is rounded up to a power of two, so that sets whose counts did not move are as
they were. `scale` multiplies rho (which is like a squared distance), `slack` is 0.3 unless given. Plans end at
span(L u - u) <= 0.1 / sqrt(t).
Deviations: of mirror from Algorithm 1, those of RAVI-UCB+ with `fresh` and `inner`.
"""

from __future__ import annotations

from math import log
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import EVERY_PLAY, Counts, counts, tallies, tally
from ravi.estimators.rewarded import KINDS, Rewarded, earn
from ravi.learners import ravi_ucb_plus
from ravi.learners.psrl import goal_of, sampled, usual_prior
from ravi.learners.unknown_rewards import unknown
from ravi.optimism.bonuses import multiple_of_width
from ravi.optimism.relative_entropy import ends, highest_rewards, of_all_values, of_one_value
from ravi.optimism.supported import is_told
from ravi.planning.inner import of_sets
from ravi.planning.plausible import Plan, Sets, Warm, cold
from ravi.planning.plausible import plan as best_policy
from ravi.ranges import Fixed, Policy, Range, Value
from ravi.schedules import reset_or_doubling
from ravi.theory import constants
from ravi.theory import kl as theory
from ravi.theory import tabular as of_tables

PLANS = ("mirror", "greedy", "slack")
CANDIDATES = ("half", "posterior")
SLACK = 0.3  # c of eps_t = c sqrt(H X A / t)
TOLERANCE = 0.1  # plans end at a span of this / sqrt(t)
STAGE = Range(lambda k, f, _: (k >= -1) & (k <= theory.stage(1 + f.time)), "a stage that has begun, or -1 for none")


class Drawn(NamedTuple):
    """Of a posterior draw."""

    key: Fixed  # (n,)
    u: Value  # V of the last draw, less its least   (n, X)
    policy: Policy  # its optimal policy              (n, X, A)


class State(NamedTuple):
    data: Annotated[Counts, EVERY_PLAY]
    earned: Any  # Rewarded, of rewards that are not known; else ()
    best: Warm  # of the most optimistic policy
    candidate: Any  # what the candidate is made of: Warm, or Drawn; () where there is none
    own: Value  # V of the candidate's own best kernels, less its least   (n, X)
    stage: Annotated[Array, STAGE]  # the least k with t <= 2^k, of the last plan   (n,)
    policy: Policy  #                                                       (n, X, A)


def tabular(
    problem: Problem,
    steps: int,
    *,
    plan: str = "slack",
    support: str = "on",
    scale: float = 1.0,
    slack: float | None = None,
    candidate: str | None = None,
    delta: float | None = None,
    inner: int | None = None,
    fresh: str | None = None,
    eta: float | None = None,
) -> Learner:
    """RAVI-KL on counts. `slack` and `candidate` are of plan=slack; `delta`, `inner` (M, by default H rounded up),
    `fresh` (on, or off as in Algorithm 1) and `eta` of plan=mirror.

    Setting: discounted with resets, tabular.
    Guarantee: expected regret O~(H sqrt(B X A T)), and O~(sqrt(H B X A T)) up to terms without sqrt(T), for greedy and
    slack, with no T to know; O~(H sqrt(B X A T) + H^(7/4) sqrt(T ln A / M)) for mirror; B the stored successors of a
    pair (of mirror with support=off, X). docs/kl.md, Theorems 1 to 3.
    Composition: counts x relative-entropy balls on the support x policy iteration on sets (or M mirror steps) x at
    resets and doublings (or at resets).
    Cost: O(1) per step; per plan a few logarithms for each of the X A B entries, fewer where counts did not move; at
    most T / H + X A log2(2 T / X A) plans.
    """
    form = _form(plan, support, scale, slack, candidate, delta, inner, fresh, eta)
    if plan != "mirror":
        checks.steps(steps)
        return optimistic(problem, form)
    return mirror(problem, steps, form, delta=delta, inner=inner, fresh=fresh, eta=eta)


def unknown_rewards(
    problem: Problem,
    steps: int,
    *,
    plan: str = "slack",
    support: str = "on",
    rewards: str = "bernoulli",
    reward_scale: float = 1.0,
    scale: float = 1.0,
    slack: float | None = None,
    candidate: str | None = None,
    delta: float | None = None,
    inner: int | None = None,
    fresh: str | None = None,
    eta: float | None = None,
) -> Learner:
    """RAVI-KL on counts that is not told its rewards: what a play earns is 1 with probability r(x, a) and else 0
    (rewards=bernoulli), or r(x, a) (rewards=deterministic). `reward_scale` multiplies the radius of rewards, or their
    bonus (plan=mirror).

    Setting: discounted with resets, tabular; rewards unknown.
    Guarantee: that of RAVI-KL, and sqrt(X A T ln(X A T)) more.
    Composition: counts, and mean rewards x relative-entropy balls and those of coins x policy iteration on sets (or M
    mirror steps) x at resets and doublings (or at resets).
    Cost: that of RAVI-KL.
    """
    form = _form(plan, support, scale, slack, candidate, delta, inner, fresh, eta)
    kind = checks.one_of(rewards, KINDS, "rewards")
    reward_scale = checks.nonnegative(reward_scale, "reward_scale")
    if plan != "mirror":
        checks.steps(steps)
        return optimistic(problem, form, kind, reward_scale)
    base = mirror(problem, steps, form, delta=delta, inner=inner, fresh=fresh, eta=eta)
    return unknown(base, problem, steps, rewards=kind, reward_scale=reward_scale)


class Form(NamedTuple):
    """What makes a RAVI-KL."""

    support: bool
    scale: float
    slack: float | None  # None: greedy
    candidate: str | None


def _form(plan: str, support: str, scale: float, slack: float | None, candidate: str | None, *of_mirror: Any) -> Form:
    checks.one_of(plan, PLANS, "plan")
    told = is_told(support)
    mirrors = dict(zip(("delta", "inner", "fresh", "eta"), of_mirror, strict=True))
    for of, options in (("mirror", mirrors), ("slack", {"slack": slack, "candidate": candidate})):
        for name, value in options.items():
            if value is not None and plan != of:
                raise checks.InputError(f"{name} is an option of plan={of}, not of plan={plan}")
    scale = checks.nonnegative(scale, "scale")
    if plan != "slack":
        return Form(told, scale, None, None)
    c = SLACK if slack is None else checks.nonnegative(slack, "slack")
    return Form(told, scale, c, checks.one_of(candidate or "half", CANDIDATES, "candidate"))


def mirror(
    problem: Problem,
    steps: int,
    form: Form,
    *,
    delta: float | None,
    inner: int | None,
    fresh: str | None,
    eta: float | None,
) -> Learner:
    """Algorithm 1 with sets: the estimate (L + U) / 2 and the bonus gamma (U - L) / 2."""
    T = checks.steps(steps)
    delta = checks.delta(delta, T)
    H, X, A, gamma = problem.horizon, problem.states, problem.actions, problem.discount
    symbols = problem.branching if form.support else X
    M = constants.inner_steps(H) if inner is None else checks.whole(inner, "inner")
    anew = checks.one_of(fresh or "on", ("on", "off"), "fresh") == "on"
    S = of_tables.clipped_bonus_sum(H, X, A, T, gamma * theory.beta_mirror(H, X, A, symbols, T, delta))
    step = checks.step_size(eta, 1.0, constants.eta_balanced(H, A, T, S, M))
    level = log(X * A / delta)

    def radius(D: Counts) -> Array:
        return form.scale * of_all_values(D._replace(visits=D.visits - 1), level, symbols)

    def between(D: Counts, V: Array) -> tuple[Array, Array]:
        return ends(problem.successors, D._replace(visits=D.visits - 1), radius(D), form.support, V)  # L, U

    def expect(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (low + high) / 2

    def width(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (high - low) / 2

    estimator = counts(problem)._replace(expect=expect, width=width)
    return ravi_ucb_plus.generic(
        problem,
        estimator,
        multiple_of_width(gamma, estimator),
        step,
        inner=M,
        fresh=anew,
        name="ravi-kl",
        settings={
            "plan": "mirror", "support": "on" if form.support else "off", "scale": form.scale,
            "delta": delta, "parts": [*(["fresh"] if anew else []), "gamma", "balance", "sets"],
        },
        backups=of_sets(problem, radius, form.support, step) if anew else None,
    )  # fmt: skip


def optimistic(problem: Problem, form: Form, rewards: str | None = None, reward_scale: float = 1.0) -> Learner:
    """The most optimistic policy, or with slack a candidate that is nearly as optimistic. rewards: how they are drawn,
    where they are not known."""
    X, A, H = problem.states, problem.actions, problem.horizon
    pairs = X if rewards is None else 2 * X  # whose bounds must hold

    def init(keys: Array) -> State:
        n = len(keys)
        shape = (n, X, A)
        earned = (
            ()
            if rewards is None
            else Rewarded((), np.zeros(shape, np.int64), np.zeros(shape), np.array(keys, np.uint64))
        )
        stage, policy = np.full(n, -1, np.int64), np.full(shape, 1 / A)
        other: Any = () if form.candidate is None else cold(problem, n)
        if form.candidate == "posterior":
            other = Drawn(keys, np.zeros((n, X)), policy.copy())
        return State(tallies(problem, n), earned, cold(problem, n), other, np.zeros((n, X)), stage, policy)

    def plausible(s: State, stage: Array) -> Sets:
        log_inverse = np.log(pairs / theory.levels(H, X, A, stage))
        rho = form.scale * of_one_value(s.data.visits, log_inverse)
        r = problem.rewards[None]
        if s.earned:
            r = highest_rewards(s.earned.plays, s.earned.total, log_inverse, reward_scale)
        return Sets(r, s.data, rho, form.support)

    draw = sampled(problem, form.support, usual_prior(problem, form.support), goal_of(problem))

    def other(s: State, sets: Sets, tol: Array, t: Array) -> Plan:
        """The candidate, and what it returns under some kernel of the sets, at least."""
        if form.candidate == "half":  # half the sets are in the sets; its policy returns gamma tol less than U, or more
            half = best_policy(problem, sets._replace(rho=sets.rho / 2), tol, s.candidate)
            return half._replace(returns=half.returns - 1.5 * problem.discount * tol)
        draw(sets.rewards, s.data, s.candidate.key, t, s.candidate.u, s.candidate.policy)
        return Plan(s.candidate.policy.argmax(-1), np.zeros(len(t)))

    def planned(s: State) -> State:
        t = 1 + s.data.visits.sum((1, 2), dtype=np.int64)
        stage = theory.stage(t)
        _renew(s, stage)
        sets, tol = plausible(s, stage), TOLERANCE / np.sqrt(t)
        best = best_policy(problem, sets, tol, s.best)
        choice = best.choice
        if form.slack is not None:
            choice = accepted(problem, s, sets, tol, best, form.slack * np.sqrt(H * X * A / t), other(s, sets, tol, t))
        s.policy[:] = 0.0
        np.put_along_axis(s.policy, choice[..., None], 1.0, axis=2)
        return s

    def add(s: State, path: Path) -> State:
        tally(s.data, path)
        if rewards is not None:
            earn(s.earned, problem.rewards, rewards, path)
        return s

    made: dict[str, Any] = {"plan": "greedy"}
    if form.slack is not None:
        made = {"plan": "slack", "slack": form.slack, "candidate": form.candidate}
    made |= {"support": "on" if form.support else "off", "scale": form.scale}
    name = "ravi-kl"
    if rewards is not None:
        name, made = "ravi-kl/unknown-rewards", made | {"rewards": rewards, "reward_scale": reward_scale}
    return Learner(name, init, planned, add, reset_or_doubling(), made)


def accepted(problem: Problem, s: State, sets: Sets, tol: Array, best: Plan, eps: Array, other: Plan) -> Array:
    """The actions of `other` where its own optimistic return is at least U - eps, else those of `best`   (n, X).

    That return is computed only where neither the choices nor what `other` returns at least settle it.
    """
    taken = other.returns >= best.returns - eps + problem.discount * tol / 2
    open = ~taken & (other.choice != best.choice).any(1)
    if open.any():
        own = best_policy(problem, sets, tol, s.best._replace(u=s.own), fixed=other.choice, active=open)
        taken |= open & (own.returns >= best.returns - eps)
    return np.where(taken[:, None], other.choice, best.choice)


def _renew(s: State, stage: Array) -> None:
    """Where the level of the sets is another one, no bound on what a pair is worth holds on."""
    new = stage != s.stage
    if new.any():
        s.best.visits[new] = -1
        if isinstance(s.candidate, Warm):
            s.candidate.visits[new] = -1
        s.stage[:] = stage
