"""Learners in the average reward, in plain NumPy: linear solves, no eliminations. As in `tests.literal.tabular`."""

from math import sqrt

import numpy as np


def rounds(c, J):
    """The first step and the plays of every round of J steps."""
    for start in range(0, c.T, J):
        yield start + 1, c.stream[start : start + J]


def weights(S, eta):
    pi = np.exp(eta * (S - S.max(-1, keepdims=True)))
    return pi / pi.sum(-1, keepdims=True)


def politex(c):
    """v by least squares of r - lambda = v(x) - v(y), the equation of the last state left out."""
    eta, sp, S = c.settings["eta"], c.settings["span"], np.zeros((c.X, c.A))
    for start, plays in rounds(c, c.settings["phase"]):
        yield {"t": start, "total": S.copy(), "policy": weights(S, eta)}
        gain, end = np.mean([c.r[x, a] for x, a, _, _ in plays]), plays[-1][2]
        M, b = np.zeros((c.X, c.X)), np.zeros(c.X)
        for x, a, y, _ in plays:
            M[x, x] += 1
            M[x, y] -= 1
            b[x] += c.r[x, a] - gain
        M[end], b[end] = np.eye(c.X)[end], 0
        v = np.linalg.lstsq(M, b, rcond=None)[0]
        q = {}
        for x, a, y, _ in plays:
            q.setdefault((x, a), []).append(c.r[x, a] - gain + v[y])
        for (x, a), values in q.items():
            S[x, a] += np.clip(np.mean(values) - v[x], -sp, sp)


def mdp_e(c):
    """g + v = r_pi + P_pi v, v(x') = 0, on the states that were met."""
    eta, S, N = c.settings["eta"], np.zeros((c.X, c.A)), np.zeros((c.X, c.A, c.X))
    for start, plays in rounds(c, c.settings["phase"]):
        pi = weights(S, eta)
        yield {"t": start, "total": S.copy(), "policy": pi}
        for x, a, y, _ in plays:
            N[x, a, y] += 1
        n, end = N.sum(-1), plays[-1][2]
        P = np.where(n[..., None] > 0, N / np.maximum(n, 1)[..., None], np.eye(c.X)[:, None])
        r = np.where(n > 0, c.r, 1.0)
        met = sorted({x for x in range(c.X) if n[x].any()} | {end})
        P_pi, r_pi = np.einsum("xa,xay->xy", pi, P)[np.ix_(met, met)], (pi * r).sum(-1)[met]
        M = np.eye(len(met)) - P_pi
        M[:, met.index(end)] = 1  # the column of v(x') is that of g
        solved, v = np.linalg.solve(M, r_pi), np.zeros(c.X)
        gain, v[met] = solved[met.index(end)], solved
        v[end] = 0
        S = S + np.where(n > 0, r - gain + P @ v - v[:, None], 1 - gain)


def ravi_ucb(c):
    """One backup a step, of V less its least, cut to twice the span."""
    s, eta, N, moved = c.settings, c.settings["eta"], np.ones((c.X, c.A)), np.zeros((c.X, c.A, c.X))
    gamma = 1 - 1 / sqrt(c.T)
    Q, log_pi = np.zeros((c.X, c.A)), np.full((c.X, c.A), -np.log(c.A))
    for start, plays in rounds(c, 1):
        V = np.logaddexp.reduce(log_pi + eta * Q, axis=-1) / eta
        log_pi = log_pi + eta * (Q - V[:, None])
        V = np.minimum(V, V.min() + 2 * s["span"])
        U = V - V.min()
        Q = np.clip(c.r + s["beta"] / np.sqrt(N) + gamma * (V.min() + moved @ U / N), 0, 1 / (1 - gamma))
        yield {"t": start, "V": V, "Q": Q, "policy": np.exp(log_pi)}
        ((x, a, y, _),) = plays
        N[x, a] += 1
        moved[x, a, y] += 1
