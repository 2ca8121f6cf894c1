"""Claims of learners that do not know their rewards: those of a variant, with a bonus for rewards too.

With lo = max{r_hat - b, 0}, hi = min{r_hat + b, 1}, c = (lo + hi) / 2 and h = (hi - lo) / 2, the learner's backup is

    hi + CB + gamma P_hat V = r + (CB + h) + gamma (P_hat V + (c - r) / gamma),

so that to an observer, who knows r, it is that of a variant with the bonus CB + h: the claims of `variants` hold as
they stand, V3 and V4 with probability 1 - 2 delta. Claims about the kernel alone see CB and P_hat V, which are what is
left when h and (c - r) / gamma are taken off. What plays earn is drawn again, for books of the observer's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ravi.core import Array
from ravi.random import REWARD, uniform
from ravi.verify import expected, lemmas
from ravi.verify.claim import Claim, Measured, Registry
from ravi.verify.distance import worst
from ravi.verify.record import Backups, Estimates, Played, before
from ravi.verify.setting import RunSetting

Same = TypeVar("Same", bound=Estimates)
REPLACED = ("V2d", "V2e", "V8", "V9", "V9s")  # by claims of this file
OF_THE_KERNEL = ("T2", "V2c")
OF_THE_DATA = ("V2a", "V2b")
TWICE = ("V3", "V4")  # two events, each of probability 1 - delta
RESTATED = {
    "V1b": "Q_{i+1} = Pi_H[min{r_hat + b, 1} + CB_i + gamma P_hat V_i], for each of the M",
    "V3": "|r - c + gamma (P - P_hat) V_i| <= CB_i + h_i, for every backup, with probability 1 - 2 delta",
    "V4b": "Q_{i+1} <= r + gamma P V_i + min(2 (CB_i + h_i), H)",
    "V4": "both, whether bonuses are valid or not, with probability 1 - 2 delta",
    "V6b": "sum Delta_i <= <mu_0, E V_0> - <mu_{i+1}, E V_{i+1}> + eta kappa (i + 1) + sum <mu_i, min(2 (CB + h), H)>",
    "V6": "sum gap_i <= sum <mu_i, min(2 (CB_i + h_i), H)> + H + H(pi*||pi_0) / eta + eta kappa (i + 1)",
}

registry = Registry()
claim = registry.claim


def claims_of(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims of a variant as they are where rewards are not known, and those of this file."""
    return (*(_restated(one) for one in claims if one.id not in REPLACED), *registry.claims)


def _restated(one: Claim) -> Claim:
    measure = one.measure
    if one.id in OF_THE_KERNEL:
        measure = lambda s: one.measure(kernel(s))  # noqa: E731
    if one.id in OF_THE_DATA:
        measure = lambda s: one.measure(s.replaced(learned=kernel(s.learned)))  # noqa: E731
    events = 2 if one.id in TWICE else 1
    return one._replace(measure=measure, statement=RESTATED.get(one.id, one.statement), events=events)


# ---- what data say of rewards


class Reading(NamedTuple):
    """(n, X, A)."""

    mean: Array  # r_hat, 0 where n = 0
    b: Array
    low: Array
    high: Array

    @property
    def middle(self) -> Array:
        return (self.low + self.high) / 2  # c

    @property
    def half(self) -> Array:
        return (self.high - self.low) / 2  # h


def widths(setting: RunSetting, plays: Array) -> Array:
    """b = s / sqrt(n), at most 1; 1 where n = 0."""
    s = setting.side.reward_scale * expected.reward_spread(setting)
    return np.where(plays > 0, np.minimum(s / np.sqrt(np.maximum(plays, 1)), 1), 1.0)


def reading(setting: RunSetting, D: Any) -> Reading:
    mean, b = np.where(D.plays > 0, D.total / np.maximum(D.plays, 1), 0.0), widths(setting, D.plays)
    return Reading(mean, b, np.maximum(mean - b, 0), np.minimum(mean + b, 1))


def kernel(s: Same) -> Same:
    """A record less what stands for rewards: P_hat V, CB, and the data that they are made of."""
    found, r = reading(s.setting, s.data), s.mdp.rewards
    return s.replaced(data=s.data.inner, PV_hat=s.PV_hat - (found.middle - r) / s.gamma, CB=s.CB - found.half)


def earned(s: Played) -> tuple[Array, Array]:
    """Plays t <= T and what they earned, when each epoch opens and at the end   (K + 1, X, A) each."""
    setting = s.setting
    at = tuple(part[: setting.steps] for part in (s.epoch, s.x, s.a))
    reward = setting.mdp.rewards[at[1:]]
    if setting.side.rewards == "bernoulli":
        key = np.uint64(s.seed)
        drawn = np.array([uniform(key, t, REWARD) for t in range(1, setting.steps + 1)])
        reward = (drawn < reward).astype(float)
    plays, total = np.zeros((s.K, *setting.mdp.rewards.shape)), np.zeros((s.K, *setting.mdp.rewards.shape))
    np.add.at(plays, at, 1.0)
    np.add.at(total, at, reward)
    return before(plays), before(total)


# ---- the claims


@claim("U1", "n and sum of rewards are of what was played and earned: number 5 of step t", "unknown rewards",
       per="run")  # fmt: skip
def data(s: Played) -> Measured:
    D, (plays, total) = s.learned.data, earned(s)
    return worst(np.abs(D.plays - plays), np.abs(D.total - total) / np.maximum(total, 1)), 0.0


@claim("U2", "min{r_hat + b, 1} + CB_i is what the statements say of these data", "unknown rewards", per="backup",
       about="parts")  # fmt: skip
def bonuses(s: Backups) -> Measured:
    found = reading(s.setting, s.data)
    right = found.high + expected.bonus(s.setting, s.books, s.V)
    return worst(np.abs(s.CB + found.middle - right) / (1 + right)), 0.0


@claim("U3a", "|r - r_hat| <= b, for all pairs and all n", "Hoeffding", kind="P")
def reward_event(s: Played) -> Measured:
    D, r = s.learned.data, s.mdp.rewards
    found = reading(s.setting, D)
    return worst(np.where(D.plays > 0, np.abs(r - found.mean) - found.b, -np.inf)), 0.0


@claim("U3b", "gamma |(P - P_hat) V_i| <= CB_i, for every backup", "Equation (2)", kind="P", per="backup")
def kernel_event(s: Backups) -> Measured:
    return lemmas.validity(kernel(s))


@claim("U4", "r <= min{r_hat + b, 1} <= r + 2 b, where |r - r_hat| <= b", "unknown rewards", per="backup",
       about="parts")  # fmt: skip
def optimistic(s: Backups) -> Measured:
    """The table that the learner plans with: what its backup has beside CB_i."""
    found, r = reading(s.setting, s.data), s.mdp.rewards
    table = s.CB + found.middle - expected.bonus(s.setting, s.books, s.V)
    sound = (np.abs(r - found.mean) <= found.b) | (s.data.plays == 0)
    return worst(np.where(sound, np.maximum(r - table, table - r - 2 * found.b), -np.inf)), 0.0


@claim("U5", "CB_i + h_i <= its envelope, with b in place of h, when the epoch of pi_i began", "unknown rewards",
       per="backup", about="parts")  # fmt: skip
def enveloped(s: Backups) -> Measured:
    most = expected.envelope(s.setting, s.older, s.V) + widths(s.setting, s.older.visits)
    return worst(s.CB - most), 0.0


@claim("U6", "E sum_{t<=T+} b_t <= 2 sqrt2 s sqrt(X A (T + gamma H)) + X A H (1 + sum_i min(1, s / sqrt(2^i - 1)))",
       "Lemma 5.2", kind="E")  # fmt: skip
def reward_sum(s: Played) -> Measured:
    return s.along(widths(s.setting, s.data.plays)).sum(), expected.reward_sum(s.setting)


claim("U7", "E sum_{t<=T+} min(2 (CB_t + h_t), H) <= S + 2 times that", "Lemmas 5.2, 5.5", kind="E")(
    lemmas.capped_bonus_sum(lambda setting: expected.bonus_sum(setting) + 2 * expected.reward_sum(setting))
)
claim("U8", "R_T <= S + 2 E sum b + H (log A / (M eta) + eta kappa E K) + H^2 / M + 2 delta T", "Theorem 4.1",
      kind="E")(lemmas.regret(expected.explicit))  # fmt: skip
claim("U8s", "R_T <= S + 2 E sum b + max(S, s) + s + ..., s = H sqrt(kappa log A E K / M), where eta is balanced",
      "Theorem 4.1", kind="E")(lemmas.regret(expected.doubled))  # fmt: skip
