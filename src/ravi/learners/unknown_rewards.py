"""RAVI-UCB and RAVI-UCB+ where rewards are not known: they are learned from what plays earn, with a bonus of their own.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023.
Trust: DERIVED: the paper knows its rewards, and says that not to costs a constant factor; the bonus is Hoeffding's.

    r_hat(x, a) = mean of what (x, a) earned
    b(x, a)     = sqrt(ln(2 X A T / delta) / (2 n(x, a))), at most 1; 1 where n = 0
    Q_{k+1}     = Pi_H[min{r_hat + b, 1} + CB_k + gamma P_hat_k V_k]

and all else as it was. With probability 1 - 2 delta both bonuses are valid, and then Lemma 4.2 has 2 (CB + b):

    r + gamma P V_k <= Q_{k+1} <= r + 2 (CB_k + b_k) + gamma P V_k.

Lemma 4.3 asks for no more. The bound gains 2 E[sum b_k(X_t, A_t)], to which Lemma 5.2 applies with sqrt(2) b sqrt(n)
for beta (1 / sqrt(n) <= sqrt(2 / N), and b <= 1 where n = 0), some 8 H sqrt(X) times smaller than that of the kernel;
and delta T once more.

Constants: those of the learner it is made of, and its delta for the second event too; `reward_scale` multiplies b.
Deviations: a play earns 1 with probability r(x, a), else 0, from its key (rewards=bernoulli), or r(x, a) itself
(rewards=deterministic). The table of rewards is read at the pairs that are played only. What the run reports as earned
is the mean r(x_t, a_t). On a live stream, `ravi.agent` learns rewards for any learner; give it `ravi-ucb` there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ravi import checks
from ravi.core import Array, Bonus, Embedding, Learner, Problem, told
from ravi.estimators.rewarded import KINDS, Rewarded, rewarded
from ravi.learners import ravi_ucb, ravi_ucb_plus
from ravi.optimism.rewards import optimistic_rewards, reward_spread


def tabular(
    problem: Problem,
    steps: int,
    *,
    rewards: str = "bernoulli",
    reward_scale: float = 1.0,
    scale: float = 1.0,
    step_scale: float = 1.0,
    eta: float | None = None,
    beta: float | None = None,
    delta: float | None = None,
) -> Learner:
    """RAVI-UCB (Algorithm 2) with unknown rewards.

    Setting: discounted with resets, tabular; rewards unknown.
    Guarantee: that of RAVI-UCB, and sqrt(X A T ln(X A T)) more: expected regret
    O(X H sqrt(A T) + H^2 sqrt(T ln A)) up to logarithms.
    Composition: counts from 1, and mean rewards x beta / sqrt(N) and Hoeffding's width x one mirror step and one backup
    x at resets.
    Cost: O(A) per step; X A B per plan, B the successors stored per pair; T / H plans.
    """
    base = ravi_ucb.tabular(problem, steps, scale=scale, step_scale=step_scale, eta=eta, beta=beta, delta=delta)
    return unknown(base, problem, steps, rewards=rewards, reward_scale=reward_scale)


def plus(
    problem: Problem,
    steps: int,
    *,
    rewards: str = "bernoulli",
    reward_scale: float = 1.0,
    inner: int | None = None,
    fresh: str = "on",
    centre: str = "on",
    span: str = "on",
    clip: str = "on",
    gamma: str = "on",
    balance: str = "on",
    scale: float = 1.0,
    step_scale: float = 1.0,
    eta: float | None = None,
    delta: float | None = None,
) -> Learner:
    """RAVI-UCB+ on counts with unknown rewards.

    Setting: discounted with resets, tabular; rewards unknown.
    Guarantee: that of RAVI-UCB+, and sqrt(X A T ln(X A T)) more: expected regret
    O(X H sqrt(A T) + H^(7/4) sqrt(T ln A / M)) up to logarithms.
    Composition: counts from 1, centred, and mean rewards x a bonus by the span of V and Hoeffding's width x M mirror
    steps and backups x at resets.
    Cost: O(A) per step; M X A B per plan, B the successors stored per pair; T / H plans.
    """
    base = ravi_ucb_plus.tabular(
        problem, steps, inner=inner, fresh=fresh, centre=centre, span=span, clip=clip, gamma=gamma, balance=balance,
        scale=scale, step_scale=step_scale, eta=eta, delta=delta,
    )  # fmt: skip
    return unknown(base, problem, steps, rewards=rewards, reward_scale=reward_scale)


def unknown(
    base: Learner, problem: Problem, steps: int, *, rewards: str = "bernoulli", reward_scale: float = 1.0
) -> Learner:
    """A learner of `ravi_ucb` or `ravi_ucb_plus`, on counts or on a regression, that is not told its rewards."""
    assert base.parts is not None
    T, X, A = checks.steps(steps), problem.states, problem.actions
    kind = checks.one_of(rewards, KINDS, "rewards")
    reward_scale = checks.nonnegative(reward_scale, "reward_scale")
    spread = reward_scale * reward_spread(X, A, T, base.settings["delta"])
    own = {"rewards": kind, "reward_scale": reward_scale}
    common: dict[str, Any] = {
        "name": f"{base.name}/unknown-rewards",
        "settings": base.settings | own,
        "initial_value": base.parts.initial_value,
        "initial_policy": base.parts.initial_policy,
    }
    estimator, bonus = rewarded(base.parts.estimator, problem.rewards, kind), with_rewards(base.parts.bonus, spread)
    unpaid = without_rewards(problem)
    if "inner" in base.settings:
        several = {name: base.settings[name] for name in ("inner", "fresh", "pick")}
        made = ravi_ucb_plus.generic(unpaid, estimator, bonus, base.parts.eta, **several, **common)
    else:
        made = ravi_ucb.generic(unpaid, estimator, bonus, base.parts.eta, **common)

    def init(keys: Array) -> Any:
        state = made.init(keys)
        state.data.key[:] = keys
        return state

    settings = made.settings | base.settings | own
    # Its bonus stands for rewards too: claims about CB are not about it.
    return made._replace(init=init, parts=None, settings=settings)


def with_rewards(bonus: Bonus, spread: float) -> Bonus:
    """min{r_hat + b, 1} + CB: a backup that is told the rewards 0 has them from here."""

    def both(D: Rewarded, phi: Embedding) -> Array:
        return optimistic_rewards(D.plays, D.total, spread) + bonus(D.inner, phi)

    return both


def without_rewards(problem: Problem) -> Problem:
    """The problem, all its rewards 0; its other arrays are the same ones."""
    return told(problem, Problem, rewards=np.zeros(problem.rewards.shape))
