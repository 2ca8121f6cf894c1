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
                   rho = ln(X A / delta) + ln p_hat(y^n) / KT(y^n), delta = 1/T, for all V at once.
    plan=greedy    the policy that is greedy for V = max_a {r + gamma max_C <q, V>}, until a reset, or until the plays of
                   a pair within the epoch reach those before. rho = ln(X / delta_t) + kappa(n): it needs to hold at V*
                   only, where it holds with probability 1 - delta_t for all n at once.
                   delta_t = min{1, sqrt(H X A / t)}: T is not used.
    plan=slack     the same sets, but another policy is played where it is nearly as optimistic: a candidate, if
                   (1 - gamma) <nu_0, V_own> of its own best kernels is at least U - eps_t, eps_t = slack sqrt(H X A / t).
                   candidate=half: the policy of plan=greedy at rho / 2. candidate=posterior: the optimal policy of a
                   kernel drawn from Dirichlet(1, ..., 1) posteriors on S: that of PSRL, held to the same bound.

Constants: those above; in delta_t and in the sets, t is rounded up to a power of two, so that sets whose counts did not
move are as they were. `scale` multiplies rho (like a squared distance), `slack` is c of eps_t, 0.3 unless given.
Plans end at span(L u - u) <= 0.1 / sqrt(t).
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.core import Array, Learner, Path, Problem
from ravi.estimators.counts import Counts, counts, tallies, tally
from ravi.learners import ravi_ucb_plus
from ravi.optimism.bonuses import multiple_of_width
from ravi.optimism.relative_entropy import ends, of_all_values, of_one_value
from ravi.planning.inner import of_sets
from ravi.planning.plausible import Plan, Warm, cold
from ravi.planning.plausible import plan as best_policy
from ravi.schedules import reset_or_doubling
from ravi.theory import constants
from ravi.theory import kl as theory
from ravi.theory import tabular as of_tables

PLANS = ("mirror", "greedy", "slack")
CANDIDATES = ("half", "posterior")
SLACK = 0.3  # c of eps_t = c sqrt(H X A / t)
TOLERANCE = 0.1  # plans end at a span of this / sqrt(t)


class State(NamedTuple):
    data: Counts
    best: Warm  # of the most optimistic policy
    candidate: Any  # of the candidate; () where there is none
    own: Array  # V of the candidate's own best kernels, less its least   (n, X)
    stage: Array  # t is at most 2^stage; the level of the sets   (n,)
    policy: Array  #                                             (n, X, A)


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
    eta: float | None = None,
    step_scale: float | None = None,
) -> Learner:
    """RAVI-KL on counts. `slack` and `candidate` are of plan=slack; `delta`, `inner` (M, by default H rounded up),
    `eta` and `step_scale` of plan=mirror.

    Setting: discounted with resets, tabular.
    Guarantee: expected regret O~(min{H sqrt(B X A T), sqrt(H B X A T) + H B X A}) for greedy and slack, T unknown;
    O~(H sqrt(B X A T) + H^(7/4) sqrt(T ln A / M)) for mirror, B the stored successors of a pair (X where support=off
    and plan=mirror). docs/kl.md, Theorems 1 to 3.
    Composition: counts x relative-entropy balls on the support x policy iteration on sets (or M mirror steps) x at
    resets and doublings (or at resets).
    Cost: O(1) per step; a few logarithms for each of the X A B entries per plan, less where counts did not move;
    T / H + X A log2(T / X A) plans at most.
    """
    checks.one_of(plan, PLANS, "plan")
    told = checks.one_of(support, ("on", "off"), "support") == "on"
    scale = checks.nonnegative(scale, "scale")
    _refuse(plan, "mirror", delta=delta, inner=inner, eta=eta, step_scale=step_scale)
    _refuse(plan, "slack", slack=slack, candidate=candidate)
    if plan == "mirror":
        return mirror(
            problem, steps, told, scale, delta=delta, inner=inner, eta=eta,
            step_scale=1.0 if step_scale is None else step_scale,
        )  # fmt: skip
    checks.steps(steps)
    if plan == "greedy":
        return optimistic(problem, told, scale)
    c = SLACK if slack is None else checks.nonnegative(slack, "slack")
    kind = "half" if candidate is None else checks.one_of(candidate, CANDIDATES, "candidate")
    return optimistic(problem, told, scale, c, kind)


def mirror(
    problem: Problem, steps: int, support: bool, scale: float, *, delta: float | None, inner: int | None,
    eta: float | None, step_scale: float,
) -> Learner:  # fmt: skip
    """Algorithm 1 with sets: estimate (L + U) / 2, bonus gamma (U - L) / 2."""
    T = checks.steps(steps)
    delta = checks.delta(delta, T)
    H, X, A, gamma = problem.horizon, problem.states, problem.actions, problem.discount
    symbols = problem.branching if support else X
    M = constants.inner_steps(H) if inner is None else checks.whole(inner, "inner")
    S = of_tables.clipped_bonus_sum(H, X, A, T, gamma * theory.beta_mirror(H, X, A, symbols, T, delta))
    step = checks.step_size(eta, step_scale, constants.eta_balanced(H, A, T, S, M))
    base = counts(problem)
    level = log(X * A / delta)

    def radius(D: Counts) -> Array:
        return scale * of_all_values(D._replace(visits=D.visits - 1), level, symbols)

    def between(D: Counts, V: Array) -> tuple[Array, Array]:
        return ends(problem.successors, D._replace(visits=D.visits - 1), radius(D), support, V)

    def expect(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (low + high) / 2

    def width(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (high - low) / 2

    estimator = base._replace(expect=expect, width=width)
    return ravi_ucb_plus.generic(
        problem,
        estimator,
        multiple_of_width(gamma, estimator),
        step,
        inner=M,
        fresh=True,
        name="ravi-kl",
        settings={
            "plan": "mirror", "support": support, "scale": scale, "step_scale": step_scale, "delta": delta,
            "parts": ["fresh", "gamma", "balance", "sets"],
        },
        backups=of_sets(problem, radius, support, step),
    )  # fmt: skip


def optimistic(
    problem: Problem, support: bool, scale: float, slack: float | None = None, candidate: str | None = None
) -> Learner:
    """The most optimistic policy, or with `slack` a candidate that is nearly as optimistic."""
    X, A, H = problem.states, problem.actions, problem.horizon

    def init(keys: Array) -> State:
        n = len(keys)
        other = () if candidate is None else cold(problem, n)
        stage = np.full(n, -1, np.int64)
        return State(tallies(problem, n), cold(problem, n), other, np.zeros((n, X)), stage, np.full((n, X, A), 1 / A))

    def planned(s: State) -> State:
        t = 1 + s.data.visits.sum((1, 2), dtype=np.int64)
        stage = theory.stage(t)
        renewed(s, stage)
        rho = scale * of_one_value(s.data.visits, np.log(X / theory.levels(H, X, A, stage)))
        tol = TOLERANCE / np.sqrt(t)
        best = best_policy(problem, s.data, rho, tol, s.best, support=support)
        choice = best.choice
        if candidate is not None:
            choice = accepted(problem, s, rho, tol, best, slack * np.sqrt(H * X * A / t), support)
        s.policy[:] = 0.0
        np.put_along_axis(s.policy, choice[..., None], 1.0, axis=2)
        return s

    def add(s: State, path: Path) -> State:
        tally(s.data, path)
        return s

    form = {"plan": "greedy"} if slack is None else {"plan": "slack", "slack": slack, "candidate": candidate}
    return Learner("ravi-kl", init, planned, add, reset_or_doubling(), form | {"support": support, "scale": scale})


def accepted(problem: Problem, s: State, rho: Array, tol: Array, best: Plan, eps: Array, support: bool) -> Array:
    """The candidate's actions where its own optimistic return is at least U - eps, else those of `best`   (n, X)."""
    other = best_policy(problem, s.data, rho / 2, tol, s.candidate, support=support)
    differ = (other.choice != best.choice).any(1)
    if not differ.any():
        return best.choice
    warm = s.best._replace(u=s.own)
    own = best_policy(problem, s.data, rho, tol, warm, support=support, fixed=other.choice, active=differ)
    taken = ~differ | (own.returns >= best.returns - eps)
    return np.where(taken[:, None], other.choice, best.choice)


def renewed(s: State, stage: Array) -> None:
    """Sets of another level: no bound on what a pair is worth holds on."""
    new = stage != s.stage
    if new.any():
        for warm in (s.best, *((s.candidate,) if s.candidate else ())):
            warm.visits[new] = -1
        s.stage[:] = stage


def _refuse(plan: str, of: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and plan != of:
            raise checks.InputError(f"{name} is an option of plan={of}, and has no place in plan={plan}")
