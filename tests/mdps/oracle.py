"""The truth about a small MDP, by dense arrays and direct solves, with nothing of the library's planning."""

from typing import NamedTuple

import numpy as np

from tests.helpers import dense


def dense_features(mdp):
    """psi[x, a, x', i]."""
    psi = np.zeros((mdp.states, mdp.actions, mdp.states, mdp.dimension))
    for x, a, j in np.ndindex(mdp.transitions.shape):
        psi[x, a, mdp.successors[x, a, j]] += mdp.features[x, a, j]
    return psi


def value(mdp, policy):
    """V^pi = (I - gamma P_pi)^-1 r_pi for a policy (X, A), or one action per state."""
    pi = table(mdp, policy)
    P, r = np.einsum("xa,xay->xy", pi, dense(mdp)), (pi * mdp.rewards).sum(1)
    return np.linalg.solve(np.eye(mdp.states) - mdp.discount * P, r)


def rho(mdp, policy):
    return (1 - mdp.discount) * mdp.initial @ value(mdp, policy)


def table(mdp, policy):
    policy = np.asarray(policy)
    return policy if policy.ndim == 2 else np.eye(mdp.actions)[policy]


def uniform(mdp):
    return np.full((mdp.states, mdp.actions), 1 / mdp.actions)


class Optimum(NamedTuple):
    V: np.ndarray
    policy: np.ndarray  # one action per state
    rho: float


def optimum(mdp):
    """Policy iteration; an action is replaced only where another is better by more than rounding."""
    P, policy = dense(mdp), np.zeros(mdp.states, dtype=int)
    for _ in range(1000):
        V = value(mdp, policy)
        Q = mdp.rewards + mdp.discount * P @ V
        better = Q.max(1) > Q[np.arange(mdp.states), policy] + 1e-12
        if not better.any():
            return Optimum(V, policy, (1 - mdp.discount) * mdp.initial @ V)
        policy = np.where(better, Q.argmax(1), policy)
    raise AssertionError("policy iteration did not settle")


def largest_phi(mdp):
    """max over (x, a) and V in {0, 1}^X of ||phi_V(x, a)||, by brute force over every vertex."""
    psi, best = dense_features(mdp), 0.0
    for vertex in range(2**mdp.states):
        V = np.array([vertex >> x & 1 for x in range(mdp.states)], float)
        best = max(best, np.linalg.norm(np.einsum("xayi,y->xai", psi, V), axis=-1).max())
    return best
