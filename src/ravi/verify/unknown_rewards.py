"""Claims of learners that do not know their rewards: those of a variant, with a bonus for rewards too.

With lo = max{r_hat - b, 0}, hi = min{r_hat + b, 1}, c = (lo + hi) / 2 and h = (hi - lo) / 2, the learner's backup is

    hi + CB + gamma P_hat V = r + (CB + h) + gamma (P_hat V + (c - r) / gamma),

so that to an observer, who knows r, it is that of a variant with the bonus CB + h: the claims of `variants` hold as
they stand, V3 and V4 with probability 1 - 2 delta. Claims about the kernel alone see CB and P_hat V, which are what is
left when h and (c - r) / gamma are taken off. What plays earn is drawn again, for books of the observer's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Path
from ravi.random import REWARD, uniform
from ravi.verify import expected, lemmas
from ravi.verify.books import Audit, Evidence, Keeper, Seen
from ravi.verify.claim import Claim, Registry
from ravi.verify.distance import nil, worst
from ravi.verify.scene import Scene

REPLACED = ("V2d", "V2e", "V8", "V9", "V9s")  # by claims of this file
OF_THE_KERNEL = ("T2", "V2a", "V2b", "V2c")
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


def claims_of(told: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims of a variant as they are where rewards are not known, and those of this file."""
    return (*(_restated(one) for one in told if one.id not in REPLACED), *registry.claims)


def _restated(one: Claim) -> Claim:
    measure = (lambda s: one.measure(kernel(s))) if one.id in OF_THE_KERNEL else one.measure
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


def widths(scene: Scene, plays: Array) -> Array:
    """b = s / sqrt(n), at most 1; 1 where n = 0."""
    s = scene.told.reward_scale * expected.reward_spread(scene)
    return np.where(plays > 0, np.minimum(s / np.sqrt(np.maximum(plays, 1)), 1), 1.0)


def reading(scene: Scene, D: Any) -> Reading:
    mean, b = np.where(D.plays > 0, D.total / np.maximum(D.plays, 1), 0.0), widths(scene, D.plays)
    return Reading(mean, b, np.maximum(mean - b, 0), np.minimum(mean + b, 1))


def kernel(s: Seen) -> Seen:
    """A backup less what stands for rewards: P_hat V_i, CB_i, and the data that they are made of."""
    found, mdp = reading(s.scene, s.data), s.scene.mdp
    PV_hat = s.backup.PV_hat - (found.middle - mdp.rewards) / mdp.discount
    return s._replace(data=s.data.inner, backup=s.backup._replace(PV_hat=PV_hat, CB=s.backup.CB - found.half))


class Earned(NamedTuple):
    """The observer's books, and the bonuses of rewards along the steps."""

    key: Array  # (n,)
    plays: Array  # of all steps t <= T so far           (n, X, A)
    total: Array  # what they earned                     (n, X, A)
    b: Array  # of this epoch, by the learner's plays    (n, X, A)
    off: Array  # how far the learner's books are from these, at most   (n,)
    met: Array  # sum_{t <= T+} b(x_t, a_t)              (n,)


def keeper(scene: Scene) -> Keeper:
    r, random = scene.mdp.rewards, scene.told.rewards == "bernoulli"

    def init(keys: Array) -> Earned:
        pairs, one = (np.zeros((len(keys), *r.shape)) for _ in range(3)), (np.zeros(len(keys)) for _ in range(2))
        return Earned(np.array(keys, np.uint64), *pairs, *one)

    def look(m: Audit, state: Any, path: Path) -> Earned:
        return m.own._replace(off=np.maximum(m.own.off, _apart(m.own, state.data)), b=widths(scene, state.data.plays))

    def follow(m: Audit, path: Path, learned: Array) -> None:
        kept = m.own
        rows, cols = np.nonzero(np.arange(path.state.shape[1]) < path.length[:, None])
        np.add.at(kept.met, rows, kept.b[rows, path.state[rows, cols], path.action[rows, cols]])
        rows, cols = np.nonzero(learned)
        x, a, t = path.state[rows, cols], path.action[rows, cols], path.time[rows] + cols
        reward = r[x, a]
        if random:
            drawn = [uniform(key, step, REWARD) for key, step in zip(kept.key[rows], t, strict=True)]
            reward = (np.array(drawn) < reward).astype(float)
        np.add.at(kept.plays, (rows, x, a), 1.0)
        np.add.at(kept.total, (rows, x, a), reward)

    return Keeper(init, follow, look)


def _apart(kept: Earned, D: Any) -> Array:
    return worst(np.abs(D.plays - kept.plays), np.abs(D.total - kept.total) / np.maximum(kept.total, 1))


# ---- the claims


@claim("U1", "n and sum of rewards are of what was played and earned: number 5 of step t", "unknown rewards",
       phase="run")  # fmt: skip
def data(e: Evidence) -> tuple[Array, Array]:
    return np.maximum(e.audit.own.off, _apart(e.audit.own, e.run.state.data)), np.zeros(e.n)


@claim("U2", "min{r_hat + b, 1} + CB_i is what the statements say of these data", "unknown rewards", phase="backup",
       setting="parts")  # fmt: skip
def bonuses(s: Seen) -> tuple[Array, Array]:
    found = reading(s.scene, s.data)
    right = found.high + expected.bonus(s.scene, s.books, s.at.V)
    return worst(np.abs(s.backup.CB + found.middle - right) / (1 + right)), nil(s)


@claim("U3a", "|r - r_hat| <= b, for all pairs and all n", "Hoeffding", kind="P", phase="data")
def reward_event(s: Seen) -> tuple[Array, Array]:
    found = reading(s.scene, s.data)
    return worst(np.where(s.data.plays > 0, np.abs(s.scene.mdp.rewards - found.mean) - found.b, -np.inf)), nil(s)


@claim("U3b", "gamma |(P - P_hat) V_i| <= CB_i, for every backup", "Equation (2)", kind="P", phase="backup")
def kernel_event(s: Seen) -> tuple[Array, Array]:
    return lemmas.validity(kernel(s))


@claim("U4", "r <= min{r_hat + b, 1} <= r + 2 b, where |r - r_hat| <= b", "unknown rewards", phase="backup",
       setting="parts")  # fmt: skip
def optimistic(s: Seen) -> tuple[Array, Array]:
    """The table that the learner plans with: what its backup has beside CB_i."""
    found, r = reading(s.scene, s.data), s.scene.mdp.rewards
    table = s.backup.CB + found.middle - expected.bonus(s.scene, s.books, s.at.V)
    sound = (np.abs(r - found.mean) <= found.b) | (s.data.plays == 0)
    return worst(np.where(sound, np.maximum(r - table, table - r - 2 * found.b), -np.inf)), nil(s)


@claim("U5", "CB_i + h_i <= its envelope, with b in place of h, when the epoch of pi_i began", "unknown rewards",
       phase="backup", setting="parts")  # fmt: skip
def enveloped(s: Seen) -> tuple[Array, Array]:
    most = expected.envelope(s.scene, s.audit.older, s.at.V) + widths(s.scene, s.audit.older.moves.sum(-1))
    return worst(s.backup.CB - most), nil(s)


@claim("U6", "E sum_{t<=T+} b_t <= 2 sqrt2 s sqrt(X A (T + gamma H)) + X A H (1 + sum_i min(1, s / sqrt(2^i - 1)))",
       "Lemma 5.2", kind="E")  # fmt: skip
def reward_sum(e: Evidence) -> tuple[Array, Array]:
    return e.audit.own.met, np.array(expected.reward_sum(e.scene))


claim("U7", "E sum_{t<=T+} min(2 (CB_t + h_t), H) <= S + 2 times that", "Lemmas 5.2, 5.5", kind="E")(
    lemmas.capped_bonus_sum(lambda scene: expected.bonus_sum(scene) + 2 * expected.reward_sum(scene))
)
claim("U8", "R_T <= S + 2 E sum b + H (log A / (M eta) + eta kappa E K) + H^2 / M + 2 delta T", "Theorem 4.1",
      kind="E")(lemmas.regret(expected.explicit))  # fmt: skip
claim("U8s", "R_T <= S + 2 E sum b + max(S, s) + s + ..., s = H sqrt(kappa log A E K / M), where eta is balanced",
      "Theorem 4.1", kind="E")(lemmas.regret(expected.doubled))  # fmt: skip
