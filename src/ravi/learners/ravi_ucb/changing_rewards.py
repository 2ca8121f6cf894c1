"""RAVI-UCB where rewards change: the table r_k of an epoch is revealed when it has ended, and used from then on.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: the Discussion's
adversarial rewards.

    Q_{k+1} = Pi_H[r_k + CB_k + gamma P_hat_k V_k],

and all else as in Algorithm 1. Lemma 4.2 holds with r_k in place of r, and with it Lemma 4.3, for every policy pi*:
with valid bonuses,

    sum_k <mu* - mu^{pi_k}, r_k> <= 2 sum_k <mu^{pi_k}, CB_k> + H(pi* || pi_0) / eta + K eta H^3 / 2 + 2 H.

Where rewards change with every step, r_k is the table of the epoch's last step. An epoch reaches its i-th step
(i = 0, 1, ...) with probability gamma^i and ends with it with probability (1 - gamma) gamma^i, so for tables that were
chosen in advance, and f_t = <mu* - mu^{pi_k}, r_t>, the sum of f_t over the epoch has the mean H E[f of the last step].
The expected regret against every fixed policy is then bounded as in Theorem 4.1, with gamma H more: its sum goes on to
T+, and what is lost after T, gamma H steps on average, may be negative here, -1 a step at least. (The mean table of an
epoch will not do: short epochs would count too much.)

RAVI-UCB+ is not covered where it makes several backups an epoch: its policies would answer to the rewards of the epoch
before.
"""

from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array, Data, Learner, Path
from ravi.learners.options import recorded
from ravi.mdps.changing_rewards import Changing
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step
from ravi.runtime.ranges import LogPolicy, Next, Number, Plays, Policy, Positive, Value
from ravi.schedules import at_reset


class State(NamedTuple):
    data: Data  # D
    V: Value  # V_k                    (n, X)
    Q: Value  # Q_k                    (n, X, A)
    log_policy: LogPolicy  # log pi_k  (n, X, A)
    policy: Policy  # pi_k             (n, X, A)
    CB: Positive  # CB_k               (n, X, A)
    PV: Number  # P_hat_k V_k          (n, X, A)
    epoch: Next  # k                   (n,)
    time: Plays  # steps made          (n,)


def changing(base: Learner, world: Changing) -> Learner:
    """RAVI-UCB `base`, made for `world.mdp`, on the world itself."""
    of = base.parts
    if of is None or of.inner != 1 or of.fresh or base.side_information.rewards is not None:  # backups of another form
        raise validation.InputError(f"{base.name} has no form for changing rewards: ravi-ucb and ravi-ucb/mixture have")
    estimator, bonus, eta, gamma, H = of.estimator, of.bonus, of.eta, world.mdp.discount, world.mdp.horizon

    def init(keys: Array) -> State:
        s, zeros = base.init(keys), np.zeros(len(keys), np.int64)
        CB, PV = np.zeros(s.Q.shape), np.zeros(s.Q.shape)
        return State(s.data, s.V, s.Q, s.log_policy, s.policy, CB, PV, zeros, zeros.copy())

    def revealed(s: State) -> Array:
        """Q_{k+1}, from the table r_k of the epoch that has ended; Q_1 where none has."""
        Q = s.Q.copy()
        clock = s.time if world.clock == "plays" else s.epoch  # the last step, or k
        number = np.where(s.epoch > 0, world.number(clock), -1)
        for j in np.unique(number[number >= 0]):
            rows = number == j
            Q[rows] = backup(world.tables[j], s.CB[rows], gamma, s.PV[rows], H)
        return Q

    def plan(s: State) -> State:
        Q = revealed(s)
        V, log_policy, policy = mirror_step(s.log_policy, s.policy, Q, eta, in_place=True)  # V_k, pi_k
        phi = estimator.embed(V)
        PV = estimator.expect(s.data, phi)  # TRANSITION-ESTIMATE
        CB = bonus(s.data, phi)  # BONUS
        return State(s.data, V, Q, log_policy, policy, CB, PV, s.epoch + 1, s.time)

    def add(s: State, path: Path) -> State:
        estimator.add(s.data, s.V, path)  # ADD, in place
        s.time[:] += path.length
        return s

    settings, told = base.settings | marks(world), base.side_information._replace(world=world)
    return Learner(f"{base.name}/changing", init, plan, add, at_reset(), settings, of, side_information=told)


def marks(world: Changing) -> dict[str, int | float | str]:
    """What distinguishes two with the same kernel, for the record."""
    return {"block": world.block, "clock": world.clock, "tables": recorded(world.tables)}
