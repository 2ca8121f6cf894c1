"""RAVI-UCB and RAVI-UCB+ where rewards are not known: they are learned from what steps earn, with a bonus of their own.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023.
Trust: DERIVED: the paper knows its rewards, and says that not to costs a constant factor; the bonus is Hoeffding's.

    r_hat(x, a) = mean of what (x, a) earned
    b(x, a)     = sqrt(ln(2 X A T / delta) / (2 n(x, a))), at most 1; 1 where n = 0
    Q_{k+1}     = Pi_H[min{r_hat + b, 1} + CB_k + gamma P_hat_k V_k]

and all else as it was. With lo = max{r_hat - b, 0}, hi = min{r_hat + b, 1}, c = (lo + hi) / 2 and h = (hi - lo) / 2,

    hi + CB + gamma P_hat V = r + (CB + h) + gamma (P_hat V + (c - r) / gamma):

to who knows r it is the backup of Algorithm 1, with the bonus CB + h and an estimate that is off by c - r too. With
probability 1 - 2 delta both |r - c| <= h and gamma |(P - P_hat) V| <= CB, so that this bonus is valid, and Lemma 4.2 is

    r + gamma P V_k <= Q_{k+1} <= r + 2 (CB_k + h_k) + gamma P V_k,   h <= b.

Lemma 4.3 asks for no more. The bound gains 2 E[sum b_k(X_t, A_t)], whose part in sqrt(T) is smaller than that of the
kernel, by a factor of some 11 H sqrt(X) for RAVI-UCB and of gamma H or more for RAVI-UCB+, and delta T once more
(`ravi.theory.unknown_rewards`). Where Q is fresh it gains nothing at its beginning: b is no larger at more data, and
Q_1, made of no data, is the same for all pairs.

Constants: those of the learner it is made of, and its delta for the second event too; `reward_scale` multiplies b.
Deviations: a step earns 1 with probability r(x, a), else 0, from its key (rewards=bernoulli), or r(x, a) itself
(rewards=deterministic). The table of rewards is read at the pairs that are played only. What the run reports as earned
is the mean r(x_t, a_t). On a live stream, `ravi.agent` learns rewards for any learner; give it `ravi-ucb` there.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import Array, Bonus, Embedding, Estimator, Learner, Problem, restrict
from ravi.estimators.rewarded import Rewarded, law_of, rewarded
from ravi.learners import wrappers
from ravi.learners.options import ALL, Options, takes
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.inner import counted_by
from ravi.optimism.rewards import middle_rewards, optimistic_rewards, reward_spread
from ravi.runtime.seedwise import alike, of_rows, over_all_seeds


@takes("scale", "step_scale", "eta", "beta", "delta")
def tabular(
    problem: Problem, T: int, rewards: str | None = None, reward_scale: float = 1.0, o: Options = ALL,
    span: float | None = None,
) -> Learner:  # fmt: skip
    """RAVI-UCB (Algorithm 2) with unknown rewards. In episodes and in the average reward (`span` as for `ravi-ucb`) it
    is `ravi-ucb` on the optimistic rewards min{r_hat + b, 1} (`ravi.learners.wrappers`).

    Setting: discounted with resets, episodes, or average reward; tabular; rewards unknown.
    Guarantee: that of RAVI-UCB, and sqrt(X A T ln(X A T)) more: expected regret
    O(X H sqrt(A T) + H^2 sqrt(T ln A)) up to logarithms.
    Composition: counts from 1, and mean rewards x beta / sqrt(N) and Hoeffding's width x one mirror step and one backup
    x at resets.
    Cost: O(A) per step; X A B per plan, B the successors stored per pair; T / H plans.
    """
    own: dict[str, Any] = {"rewards": rewards, "reward_scale": reward_scale}
    if problem.criterion != "discounted":
        known = {name: getattr(o, name) for name in tabular.names}
        return wrappers.unknown_rewards(ravi_ucb.tabular)(problem, T, span=span, **known, **own)
    return unknown(ravi_ucb.tabular.of(problem, T, o, span), problem, T, **own)


@takes(*ravi_ucb_plus.tabular.names, without=("pick",))
def plus(problem: Problem, T: int, rewards: str | None = None, reward_scale: float = 1.0, o: Options = ALL) -> Learner:
    """RAVI-UCB+ on counts with unknown rewards.

    Setting: discounted with resets, tabular; rewards unknown.
    Guarantee: that of RAVI-UCB+, and sqrt(X A T ln(X A T)) more: expected regret
    O(X H sqrt(A T) + H^(7/4) sqrt(T ln A / M)) up to logarithms.
    Composition: counts from 1, centred, and mean rewards x a bonus by the span of V and Hoeffding's width x M mirror
    steps and backups x at resets.
    Cost: O(A) per step; M X A B per plan, B the successors stored per pair; T / H plans.
    """
    return unknown(ravi_ucb_plus.tabular.of(problem, T, o), problem, T, rewards=rewards, reward_scale=reward_scale)


def unknown(
    base: Learner, problem: Problem, steps: int, *, rewards: str | None = None, reward_scale: float = 1.0
) -> Learner:
    """A learner of `ravi_ucb` or `ravi_ucb_plus`, on counts or on a regression, that is not told its rewards."""
    if base.parts is None or base.parts.stated.delta is None or base.side_information.rewards is not None:
        raise validation.InputError(f"{base.name} has no form for unknown rewards: ravi-ucb and ravi-ucb+ have")
    T, X, A = validation.steps(steps), problem.states, problem.actions
    kind = law_of(problem, rewards)
    reward_scale = validation.nonnegative(reward_scale, "reward_scale")
    spread = reward_scale * reward_spread(X, A, T, base.parts.stated.delta)

    def build(*numbers: float | Array) -> Learner:
        assert base.rows is not None
        return _unknown(base.rows.of(*numbers), problem, kind, reward_scale, spread)

    if base.rows is None or not alike([base]):  # one that was changed since it was built
        return _unknown(base, problem, kind, reward_scale, spread)
    return of_rows(build, base.rows.numbers, problem, T)


def _unknown(base: Learner, problem: Problem, kind: str, reward_scale: float, spread: float) -> Learner:
    of = base.parts
    assert of is not None
    own = {"rewards": kind, "reward_scale": reward_scale}
    estimator, bonus = rewarded(of.estimator, problem.rewards, kind), with_rewards(of.bonus, spread)
    without = without_rewards(problem)
    made = ravi_ucb_plus.generic(
        without, estimator, bonus, of.eta, inner=of.inner, fresh=of.fresh, pick=of.pick, initial_value=of.initial_value,
        initial_policy=of.initial_policy, name=f"{base.name}/unknown-rewards",
    )  # fmt: skip
    assert made.parts is not None

    def init(keys: Array) -> Any:
        state = made.init(keys)
        state.data.key[:] = keys
        return state

    parts = made.parts._replace(
        estimator=_estimate_to_observers(estimator, problem, spread), bonus=_bonus_to_observers(bonus, spread),
        stated=of.stated,
    )  # fmt: skip
    learner = made._replace(
        init=init, parts=parts, settings=made.settings | base.settings | own,
        side_information=base.side_information._replace(rewards=kind, reward_scale=reward_scale),
    )  # fmt: skip
    counted = counted_by(base)
    if counted is None:
        return learner
    paid = spread, validation.LAWS[kind]
    return over_all_seeds(learner, replace(counted, work=ravi_ucb_plus.work, paid=paid).seedwise)


def with_rewards(bonus: Bonus, spread: float) -> Bonus:
    """min{r_hat + b, 1} + CB: a backup that is told the rewards 0 has them from here."""

    def both(D: Rewarded, phi: Embedding) -> Array:
        return optimistic_rewards(D.plays, D.total, spread) + bonus(D.inner, phi)

    return both


def without_rewards(problem: Problem) -> Problem:
    """The problem, all its rewards 0; its other arrays are the same ones."""
    return restrict(problem, Problem, rewards=np.zeros(problem.rewards.shape))


# For observers, who know r: r + bonus + gamma estimate is what the learner backs up. It uses neither of these itself.


def _estimate_to_observers(estimator: Estimator, problem: Problem, spread: float) -> Estimator:
    """P_hat V + (c - r) / gamma."""

    def expect(D: Rewarded, phi: Embedding) -> Array:
        c = middle_rewards(D.plays, D.total, spread)
        return estimator.expect(D, phi) + (c - problem.rewards) / problem.discount

    return estimator._replace(expect=expect)


def _bonus_to_observers(bonus: Bonus, spread: float) -> Bonus:
    """hi + CB - c = CB + h."""

    def less(D: Rewarded, phi: Embedding) -> Array:
        return bonus(D, phi) - middle_rewards(D.plays, D.total, spread)

    return less
