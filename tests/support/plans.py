"""Extended value iteration of all seeds, as arrays: around the compiled functions of one seed that learners plan by."""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound
from ravi._jit.teams import allocate
from ravi.optimism import extended_value_iteration as optimistic
from ravi.theory.kl import kappa


class Backup(NamedTuple):
    """Q = rewards + gamma max <p, V>, of every seed."""

    sets: Any
    own: Any

    def __call__(self, V, active, Q):
        """V (n, X), active (n,), Q (n, X, A): writes Q where active."""
        for i in np.flatnonzero(active):
            out = np.empty(self.own.visits.shape[1])
            self.sets.most(self.own, i, i, V[i], out)
            optimistic.worth(self.own, i, i, V[i], out)
            Q[i] = out.reshape(Q.shape[1:])


def backup_of(sets, rewards, successors, discount, D, *radii, reference=0):
    """The backups of all seeds, with these radii (n, X, A)."""
    rewards, successors = rewards.view(), successors.view()
    rewards.flags.writeable = successors.flags.writeable = False  # as those of a problem are: both are compiled once
    own = allocate(optimistic.given(rewards, successors, discount, D, len(D.visits), reference=reference))
    for room, array in zip((own.radius, own.constant), radii, strict=False):
        room[:] = array.reshape(room.shape)
    for i in range(len(D.visits)):
        sets.prepare(own, i, i)
    return Backup(sets, own)


class Plan(NamedTuple):
    u: Any  # L u less its least, of the last sweep          (n, X)
    before: Any  # the u of the last sweep                   (n, X)
    Q: Any  # its backup                                     (n, X, A)
    low: Any  # min of L u - u at the end                    (n,)
    high: Any  # max of L u - u at the end                   (n,)
    least: Any  # what was taken from L u                    (n,)
    sweeps: Any  # how many; MOST where a plan did not end   (n,)


def iterate(backup, u, actions, tol, *, span=np.inf, mixing=1.0):
    """Sweep every seed until its own span(L u - u) <= tol (n,), from `u` (n, X), which is not changed."""
    n, X = u.shape
    u, before, Q, Lu = u.copy(), np.empty((n, X)), np.empty((n, X * actions)), np.empty(X)
    goal, loop = np.asarray(tol, np.float64) + np.zeros(n), bound(optimistic._iterate, most=backup.sets.most)
    most = optimistic.MOST
    ends = [loop(backup.own, i, i, u[i], before[i], Lu, Q[i], goal[i], span, mixing, most) for i in range(n)]
    low, high, least, sweeps = (np.array(end) for end in zip(*ends, strict=True))
    return Plan(u, before, Q.reshape(n, X, actions), low, high, least, sweeps)


def of_one_value(visits, log_inverse_level):
    """The radii of relative entropy for one V, of every seed   (n, X, A)."""
    values, which = np.unique(visits, return_inverse=True)
    return log_inverse_level[:, None, None] + np.array([kappa(n) for n in values])[which].reshape(visits.shape)


def values(plan, discount):
    """V = L u + gamma H (low + high) / 2, for gamma < 1   (n, X)."""
    shift = plan.least + discount / (1 - discount) * (plan.low + plan.high) / 2
    return plan.u + shift[:, None]


def least(backup):
    """The minimum over the same sets: Q = -rewards + gamma min <p, V>."""
    own, loop = backup.own, bound(optimistic._least, most=backup.sets.most, prepare=backup.sets.prepare)

    def pessimistic(V, active, Q):
        for i in np.flatnonzero(active):
            out = np.empty(own.visits.shape[1])
            loop(own, i, i, V[i].copy(), out)
            Q[i] = (out - own.rewards[i if len(own.rewards) > 1 else 0]).reshape(Q.shape[1:])

    return pessimistic


def truncated(plan, span, idle):
    """The policy of min(L u, min L u + span); `idle` is the backup of the duplicates without reward   (n, X, A)."""
    n, X, A = plan.Q.shape
    policy, Lu, other = np.full((n, X, A), np.nan), np.empty(X), np.empty((n, X, A))
    for i in range(n):
        Q = plan.Q[i].ravel()
        ceiling, over = optimistic.cut(Q, Lu, span)
        if over:
            idle(plan.before, np.arange(n) == i, other)
        optimistic.act(Q, Lu, ceiling, over, other[i].ravel(), policy[i])
    return policy
