"""RAVI-KL: RAVI-UCB with sets of kernels in place of bonuses, and the radii of its proofs.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: Algorithm 1, with another
BONUS; the sets are those of Filippi, Cappe and Garivier (2010), with radii from mixtures and from betting.
Trust: DERIVED: the radii, the planning and the regret bounds are this library's; docs/explanation/kl.md has the proofs.

Of a pair (x, a) with n visits and the frequencies p_hat of their successors, the plausible kernels are

    C(x, a) = {q on S(x, a) : n KL(p_hat || q) <= rho},

S(x, a) its support (support=on), or all states (support=off). Every form plans with max_{q in C} <q, V>.

    plan=mirror    Algorithm 1: M mirror steps an epoch from Q = Pi_H[r + gamma max_C <q, V>], one of their policies
                   drawn uniformly, until the next reset. With L = min_C <q, V> and U = max_C <q, V> it is
                   TRANSITION-ESTIMATE (L + U) / 2 and BONUS gamma (U - L) / 2: valid wherever P is in C.
                   rho = ln(X A / delta) + ln p_hat(y^n) / KT(y^n), delta = 1/T: P is in C for all n at once.
    plan=greedy    the policy that is greedy for V = max_a {r + gamma max_C <q, V>}, until a reset, or until the visits
                   of a pair within the epoch reach those before. rho = ln(X / delta_t) + kappa(n): it need hold at V*
                   only, and does with probability 1 - delta_t, for all n at once.
                   delta_t = min{1, sqrt(H X A / t)}: T is not used.
    plan=slack     the same sets, but another policy is played where it is nearly as optimistic: a candidate, if its
                   own optimistic return, with the best kernels of its actions, is at least U(rho) - eps. U is the
                   largest, and eps = slack (U(rho) - U(rho / 2)) is small where the radii matter little.
                   candidate=half: the policy of U(rho / 2). candidate=posterior: the optimal policy of a kernel drawn
                   from the posterior of a Dirichlet(1, ..., 1) on S: that of PSRL, under the same bound.

In the average reward gamma is 1, U the optimistic gain, and nothing resets. rho = ln(X (X + 1) / delta_t) + kappa(n)
with delta_t = min{1, sqrt(X A / t)} holds at the bias h* and at the least times to reach each state, which makes the
span of the optimistic bias at most the diameter D; a candidate is played only where the spans of its own optimistic
biases are at most twice that of the most optimistic one.

Where rewards are not known, r is their upper confidence bound max {m : n kl(r_hat, m) <= rho} in greedy and slack, with
2 X for X in both radii, X (X + 2) for X (X + 1); mirror has the bonus of `ravi.learners.ravi_ucb.unknown_rewards`.

Constants: those above; in delta_t, t is rounded up to a power of two, so that sets whose counts did not move are as
they were. `scale` multiplies rho (which is like a squared distance), `slack` is 1/2 unless given. Plans end at
span(L u - u) <= 0.1 / sqrt(t).
Deviations: of mirror from Algorithm 1, those of RAVI-UCB+ with `fresh` and `inner`.
"""

from __future__ import annotations

from math import log
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, KernelSets, Learner, Problem, Seedwise, SideInformation, TheoryConstants
from ravi.estimators.counts import Counts, counts, tallies
from ravi.estimators.rewarded import NOTHING, Earned, Rewarded, law_of
from ravi.learners import wrappers
from ravi.learners.options import takes
from ravi.learners.ravi_kl.in_episodes import kl_in_episodes
from ravi.learners.ravi_kl.inner_sets import OfSets
from ravi.learners.ravi_kl.nearly_optimistic import Numbers, Own, plan_with, scratch, seed_learn
from ravi.learners.ravi_kl.plausible import Warm, cold
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb.unknown_rewards import unknown
from ravi.optimism.bonuses import multiple_of_width
from ravi.optimism.known_support import on_support, outcomes, uses_support
from ravi.optimism.relative_entropy import ends, of_all_values
from ravi.runtime.ranges import Fixed, Policy, Range, Value
from ravi.runtime.seedwise import compiled_learner
from ravi.theory import constants
from ravi.theory import kl as theory
from ravi.theory import tabular as of_tables

PLANS = ("mirror", "greedy", "slack")
CANDIDATES = ("half", "posterior")
SLACK = 0.5  # of eps = slack (U(rho) - U(rho / 2))
STAGE = Range(lambda k, f, *_: (k >= -1) & (k <= theory.stage(1 + f.time)), "a stage that has begun, or -1 for none")


class Drawn(NamedTuple):
    """The last draw from the posterior."""

    key: Fixed  # (n,)
    u: Value  # V of the last draw, less its least   (n, X)
    policy: Policy  # its optimal policy              (n, X, A)


class State(NamedTuple):
    data: Counts
    earned: Any  # Rewarded, of rewards that are not known; else ()
    best: Warm  # of the most optimistic policy
    half: Any  # of the most optimistic policy at half the radii: Warm; () where there is no candidate
    drawn: Any  # of a candidate from the posterior: Drawn; else ()
    own: Value  # V of the candidate's own best kernels, less its least   (n, X)
    stage: Annotated[Array, STAGE]  # the least k with t <= 2^k, of the last plan   (n,)
    policy: Policy  #                                                       (n, X, A)


class Options(NamedTuple):
    """What may be said of RAVI-KL (`ravi.learners.options.takes`)."""

    plan: str = "slack"
    support: str = "on"
    scale: float = 1.0
    slack: float | None = None  # of plan=slack, as is
    candidate: str | None = None
    delta: float | None = None  # of plan=mirror, as are
    inner: int | None = None
    fresh: str | None = None
    eta: float | None = None

    def checked(self, T: int) -> Options:
        validation.one_of(self.plan, PLANS, "plan")
        uses_support(self.support)
        for of, names in (("mirror", ("delta", "inner", "fresh", "eta")), ("slack", ("slack", "candidate"))):
            for name in names:
                if getattr(self, name) is not None and self.plan != of:
                    raise validation.InputError(f"{name} is an option of plan={of}, not of plan={self.plan}")
        o = self._replace(scale=validation.nonnegative(self.scale, "scale"))
        if self.plan == "slack":
            c = None if self.slack is None else validation.nonnegative(self.slack, "slack")
            return o._replace(slack=c, candidate=validation.one_of(self.candidate or "half", CANDIDATES, "candidate"))
        if self.plan == "greedy":
            return o
        inner = None if self.inner is None else validation.whole(self.inner, "inner")
        fresh = validation.one_of(self.fresh or "on", ("on", "off"), "fresh")
        return o._replace(delta=validation.delta(self.delta, T), inner=inner, fresh=fresh)


@takes()
def tabular(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-KL on counts. `slack` and `candidate` are of plan=slack; `delta`, `inner` (M, by default H rounded up),
    `fresh` (on, or off as in Algorithm 1) and `eta` of plan=mirror.

    Setting: discounted with resets, average reward or episodes (both plan=slack with candidate=half, or plan=greedy);
    tabular.
    Guarantee: expected regret O~(H sqrt(B X A T)) for T >= X A, and O~(sqrt(H B X A T) + H B X A), for plan=slack and
    plan=greedy, which do not use T; O~(H sqrt(B X A T) + H^(7/4) sqrt(T ln A / M)) for plan=mirror. B is the number of
    states of the largest support (X for plan=mirror with support=off). In the average reward O~(D sqrt(B X A T)) and
    O~(sqrt(D B X A T) + D B X A), D the diameter. In episodes of S steps O~(S sqrt(B X A T) + S^2 sqrt(B) X A), with
    its proof in `ravi.learners.ravi_kl.in_episodes`. docs/explanation/kl.md, Theorems 1 to 3, 6 and 7.
    Composition: counts x relative-entropy balls on the support x policy iteration on sets (or M mirror steps) x at
    resets and doublings (or at resets).
    Cost: O(1) per step; per plan a few logarithms for each of the X A B entries, fewer where counts did not move; at
    most 1 + T / H + X A log2(2 T / X A) plans on average, for T >= X A.
    """
    if problem.criterion == "episodic":
        if o.plan == "mirror" or o.candidate == "posterior":
            which = "plan is mirror" if o.plan == "mirror" else "candidate is posterior"
            raise validation.InputError(
                f"{which}, which is of the discounted criterion: in episodes take greedy or slack"
            )
        slack = SLACK if o.slack is None and o.plan == "slack" else o.slack
        return kl_in_episodes(problem, uses_support(o.support), o.scale, slack)
    return mirror(problem, T, o) if o.plan == "mirror" else optimistic(problem, o)


@takes()
def unknown_rewards(
    problem: Problem, T: int, o: Options, rewards: str | None = None, reward_scale: float = 1.0
) -> Learner:
    """RAVI-KL on counts that does not know its rewards. A step earns 1 with probability r(x, a) and else 0
    (rewards=bernoulli, unless the MDP has another law), r(x, a) (rewards=deterministic), or a beta variate of that mean
    (rewards=beta). `reward_scale` multiplies the radius of rewards, or their bonus (plan=mirror, and in episodes, where
    it is `ravi-kl` on the optimistic rewards of `ravi.learners.wrappers`).

    Setting: discounted with resets, average reward or episodes (as RAVI-KL); tabular; rewards unknown.
    Guarantee: that of RAVI-KL, and sqrt(X A T ln(X A T)) more.
    Composition: counts, and mean rewards x relative-entropy balls and those of coins x policy iteration on sets (or M
    mirror steps) x at resets and doublings (or at resets).
    Cost: that of RAVI-KL.
    """
    if problem.criterion == "episodic":
        known = {name: getattr(o, name) for name in tabular.names}
        return wrappers.unknown_rewards(tabular)(problem, T, rewards=rewards, reward_scale=reward_scale, **known)
    kind = law_of(problem, rewards)
    reward_scale = validation.nonnegative(reward_scale, "reward_scale")
    if o.plan != "mirror":
        return optimistic(problem, o, kind, reward_scale)
    return unknown(mirror(problem, T, o), problem, T, rewards=kind, reward_scale=reward_scale)


def mirror(problem: Problem, T: int, o: Options) -> Learner:
    """Algorithm 1 with sets: the estimate (L + U) / 2 and the bonus gamma (U - L) / 2."""
    if problem.criterion == "average":
        raise validation.InputError("plan is mirror, which is of the discounted criterion: take greedy or slack")
    scale, knows_support, delta, anew = o.scale, uses_support(o.support), validation.delta(o.delta, T), o.fresh == "on"
    H, X, A, gamma = problem.horizon, problem.states, problem.actions, problem.discount
    problem, symbols = on_support(problem, knows_support), outcomes(problem, knows_support)
    M = constants.inner_steps(H) if o.inner is None else o.inner
    S = of_tables.clipped_bonus_sum(H, X, A, T, gamma * theory.beta_mirror(H, X, A, symbols, T, delta))
    step = validation.step_size(o.eta, 1.0, constants.eta_balanced(H, A, T, S, M))
    level = log(X * A / delta)

    def radius(D: Counts) -> Array:
        return scale * of_all_values(D._replace(visits=D.visits - 1), level, symbols)

    def between(D: Counts, V: Array) -> tuple[Array, Array]:
        return ends(problem.successors, D._replace(visits=D.visits - 1), radius(D), knows_support, V)  # L, U

    def expect(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (low + high) / 2

    def width(D: Counts, V: Array) -> Array:
        low, high = between(D, V)
        return (high - low) / 2

    estimator = counts(problem)._replace(expect=expect, width=width)
    on = (*(["fresh"] if anew else []), "gamma", "balance", "sets")
    learner = ravi_ucb_plus.generic(
        problem, estimator, multiple_of_width(gamma, estimator), step, inner=M, fresh=anew, name="ravi-kl",
        stated=TheoryConstants("tabular", None, scale, delta=delta, on=on),
        settings={"plan": "mirror", "support": o.support, "scale": scale, "delta": delta, "parts": list(on)},
        numbers=OfSets(np.array([level]), symbols, scale, knows_support),
    )  # fmt: skip
    return learner._replace(side_information=SideInformation(knows_support))


def optimistic(problem: Problem, o: Options, rewards: str | None = None, reward_scale: float = 1.0) -> Learner:
    """The most optimistic policy, or with slack a candidate that is nearly as optimistic. rewards: how they are drawn,
    where they are not known."""
    knows_support = uses_support(o.support)
    if problem.criterion == "average" and o.candidate == "posterior":
        raise validation.InputError("candidate is posterior, which is of the discounted criterion: take half")
    problem = on_support(problem, knows_support)
    X, A = problem.states, problem.actions
    if o.plan == "slack" and o.slack is None:
        o = o._replace(slack=SLACK)
    numbers = numbers_of(problem, o, rewards is not None, reward_scale)

    def init(keys: Array) -> State:
        n = len(keys)
        shape = (n, X, A)
        earned: Any = ()
        if rewards is not None:
            earned = Rewarded((), np.zeros(shape, np.int64), np.zeros(shape), np.array(keys, np.uint64))
        stage, policy = np.full(n, -1, np.int64), np.full(shape, 1 / A)
        half: Any = () if o.candidate is None else cold(problem, n)
        drawn: Any = Drawn(keys, np.zeros((n, X)), policy.copy()) if o.candidate == "posterior" else ()
        return State(tallies(problem, n), earned, cold(problem, n), half, drawn, np.zeros((n, X)), stage, policy)

    def own(s: State, teams: int) -> Own:
        earned = NOTHING
        if rewards is not None:
            _, plays, total, key = s.earned
            earned = Earned(plays, total, key, problem.rewards, validation.LAWS[rewards])
        room = scratch(problem, knows_support, o.candidate == "posterior", rewards is not None, len(s.stage), teams)
        return Own._make((problem.successors, problem.initial, numbers, *s.data, earned, *s[2:], room))

    kept: dict[str, Any] = {"plan": "greedy"}
    if o.slack is not None:
        kept = {"plan": "slack", "slack": o.slack, "candidate": o.candidate}
    kept |= {"support": o.support, "scale": o.scale}
    name = "ravi-kl"
    if rewards is not None:
        name, kept = "ravi-kl/unknown-rewards", kept | {"rewards": rewards, "reward_scale": reward_scale}
    form = Seedwise(plan_with(o.candidate), seed_learn, own, left=lambda own: own.room.left)
    return compiled_learner(
        name,
        init,
        form,
        kept,
        side_information=SideInformation(knows_support, rewards, reward_scale),
        sets=KernelSets(o.scale, o.slack or 0.0),
    )


def numbers_of(problem: Problem, o: Options, unknown: bool, reward_scale: float) -> Numbers:
    """Of the plans of `ravi.learners.ravi_kl.nearly_optimistic`."""
    X, A, H = problem.states, problem.actions, problem.horizon
    bounds, size = (X, H * X * A) if problem.criterion == "discounted" else (X * (X + 1), X * A)
    return Numbers(
        problem.discount, bounds + X * unknown, size, o.scale, reward_scale, theory.TOLERANCE, o.slack or 0.0,
        uses_support(o.support),
    )  # fmt: skip
