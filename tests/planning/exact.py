"""Planning in exact arithmetic, and MDPs to plan in.

The numbers of an MDP are taken as they are stored, each a dyadic fraction; rows stand for the distributions that are
proportional to them.
"""

from fractions import Fraction

import numpy as np

from ravi.core import MDP
from tests.helpers import dense


def random_mdp(seed, X, A, B, discount, *, tied=False):
    """B successors each, some with probability 0; half of the rewards 0, and, where `tied`, all of them 0, 1/2 or 1."""
    rng = np.random.default_rng(seed)
    successors = np.sort(rng.permuted(np.tile(np.arange(X), (X, A, 1)), axis=-1)[..., :B], axis=-1)
    P = rng.dirichlet(np.full(B, rng.choice([0.1, 1.0])), size=(X, A))
    P[P < 1e-3] = 0
    P /= P.sum(-1, keepdims=True)
    r = rng.uniform(size=(X, A)) * (rng.uniform(size=(X, A)) > 0.5)
    r = np.round(2 * r) / 2 if tied else r
    initial = rng.dirichlet(np.ones(X))
    return MDP(rewards=r, successors=successors, transitions=P, initial=initial, discount=discount)


def random_policies(seed, mdp, n=None):
    """Policies that range from uniform to deterministic."""
    rng = np.random.default_rng(seed)
    shape = (mdp.states,) if n is None else (n, mdp.states)
    policy = rng.dirichlet(np.full(mdp.actions, rng.choice([0.05, 1.0])), size=shape)
    policy[policy < 1e-12] = 0
    return policy / policy.sum(-1, keepdims=True)


def cycle(X, discount, actions=1):
    """0 -> 1 -> ... -> X - 1 -> 0, with one reward: nothing mixes."""
    r = np.zeros((X, actions))
    r[X // 2] = 1
    following = np.broadcast_to(((np.arange(X) + 1) % X)[:, None, None], (X, actions, 1))
    return MDP(rewards=r, successors=following, transitions=np.ones((X, actions, 1)), initial=0, discount=discount)


def frozen_lake(discount):
    """FrozenLake 4 x 4, slippery, its holes and its goal absorbing."""
    tiles = "SFFFFHFHFFFHHFFG"
    P, r = np.zeros((16, 4, 16)), np.zeros((16, 4))
    moves = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up
    for x in range(16):
        for a in range(4):
            if tiles[x] in "HG":
                P[x, a, x] = 1
                continue
            for d in (a - 1, a, a + 1):
                i, j = x // 4 + moves[d % 4][0], x % 4 + moves[d % 4][1]
                y = 4 * min(max(i, 0), 3) + min(max(j, 0), 3)
                P[x, a, y] += 1 / 3
                r[x, a] += (tiles[y] == "G") / 3
    return MDP.from_dense(P, r, discount, 0)


def fractions(mdp):
    """r, P (dense rows, normalised), nu_0 and gamma, exactly."""
    X, A, B = mdp.transitions.shape
    r = [[Fraction(float(mdp.rewards[x, a])) for a in range(A)] for x in range(X)]
    P = [[[Fraction(0)] * X for _ in range(A)] for _ in range(X)]
    for x in range(X):
        for a in range(A):
            row = [Fraction(float(p)) for p in mdp.transitions[x, a]]
            for j in range(B):
                P[x][a][int(mdp.successors[x, a, j])] += row[j] / sum(row)
    nu0 = [Fraction(float(p)) for p in mdp.initial]
    return r, P, [p / sum(nu0) for p in nu0], Fraction(mdp.discount)


def solve_linear(M, b):
    """M^-1 b by elimination."""
    X = len(b)
    M = [[*row, value] for row, value in zip(M, b, strict=True)]
    for k in range(X):
        pivot = next(i for i in range(k, X) if M[i][k] != 0)
        M[k], M[pivot] = M[pivot], M[k]
        for i in range(X):
            if i != k and M[i][k] != 0:
                factor = M[i][k] / M[k][k]
                M[i] = [one - factor * other for one, other in zip(M[i], M[k], strict=True)]
    return [M[k][X] / M[k][k] for k in range(X)]


def chain_of(mdp, policy):
    """r_pi and P_pi, exactly, of the normalised policy."""
    r, P, _, _ = fractions(mdp)
    X, A = mdp.rewards.shape
    rows = [[Fraction(float(p)) for p in policy[x]] for x in range(X)]
    pi = [[p / sum(row) for p in row] for row in rows]
    r_pi = [sum(pi[x][a] * r[x][a] for a in range(A)) for x in range(X)]
    P_pi = [[sum(pi[x][a] * P[x][a][y] for a in range(A)) for y in range(X)] for x in range(X)]
    return r_pi, P_pi, pi


def exact_values(mdp, policy):
    """V^pi."""
    r_pi, P_pi, _ = chain_of(mdp, policy)
    gamma, X = Fraction(mdp.discount), mdp.states
    return solve_linear([[(x == y) - gamma * P_pi[x][y] for y in range(X)] for x in range(X)], r_pi)


def exact_occupancy(mdp, policy):
    """nu^pi and mu^pi."""
    _, P_pi, pi = chain_of(mdp, policy)
    _, _, nu0, gamma = fractions(mdp)
    X = mdp.states
    source = [(1 - gamma) * p for p in nu0]
    nu = solve_linear([[(x == y) - gamma * P_pi[y][x] for y in range(X)] for x in range(X)], source)
    return nu, [[nu[x] * p for p in pi[x]] for x in range(X)]


def backed_up(mdp, V):
    """r + gamma P V."""
    r, P, _, gamma = fractions(mdp)
    X, A = mdp.rewards.shape
    return [[r[x][a] + gamma * sum(P[x][a][y] * V[y] for y in range(X)) for a in range(A)] for x in range(X)]


def exact_optimum(mdp):
    """V*, Q* and rho* by policy iteration."""
    X, A = mdp.rewards.shape
    actions = [0] * X
    while True:
        V = exact_values(mdp, np.eye(A)[actions])
        Q = backed_up(mdp, V)
        better = [max(range(A), key=lambda a, x=x: Q[x][a]) for x in range(X)]
        if all(Q[x][better[x]] == Q[x][actions[x]] for x in range(X)):
            return V, Q, exact_return(mdp, V)
        actions = [b if Q[x][b] > Q[x][actions[x]] else actions[x] for x, b in enumerate(better)]


def exact_return(mdp, V):
    """(1 - gamma) <nu_0, V>."""
    _, _, nu0, gamma = fractions(mdp)
    return (1 - gamma) * sum(p * v for p, v in zip(nu0, V, strict=True))


def distance(approximate, exact):
    """The largest |difference|, exactly; nested lists of Fractions against an array."""
    if isinstance(exact, list):
        return max(distance(one, other) for one, other in zip(approximate, exact, strict=True))
    return abs(Fraction(float(approximate)) - exact)


def distance_in_l1(approximate, exact):
    if isinstance(exact, list):
        return sum(distance_in_l1(one, other) for one, other in zip(approximate, exact, strict=True))
    return abs(Fraction(float(approximate)) - exact)


def by_dense_solve(mdp, policy):
    """V^pi, nu^pi and rho(pi), by floating-point systems of all states."""
    M = np.eye(mdp.states) - mdp.discount * np.einsum("xa,xay->xy", policy, dense(mdp))
    nu = np.linalg.solve(M.T, (1 - mdp.discount) * mdp.initial)
    V = np.linalg.solve(M, (policy * mdp.rewards).sum(-1))
    return V, nu, (1 - mdp.discount) * mdp.initial @ V
