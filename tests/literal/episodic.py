"""Learners in episodes from their papers' pseudo-code, in plain NumPy: slow, and independent of the library.

As in `tests.literal.tabular`; stages count from 0, and S is the length of an episode.
"""

from math import log, sqrt

import numpy as np


def ucbvi(c):
    S, delta, scale = c.mdp.episode, c.settings["delta"], c.settings["scale"]
    L = log(5 * c.X * c.A * c.T / delta)
    history, Q = [], np.full((S, c.X, c.A), float(S))  # of (h, x, a, y)
    for start, plays in c.epochs():
        N = np.zeros((c.X, c.A, c.X))
        met = np.zeros((S + 1, c.X))  # N'_{k,h}(x)
        for h, x, a, y in history:
            N[x, a, y] += 1
            met[h, x] += h == 0
            met[h + 1, y] += 1
        V = np.zeros((S + 1, c.X))
        for h in reversed(range(S)):
            for x in range(c.X):
                for a in range(c.A):
                    n = N[x, a].sum()
                    if n == 0:
                        Q[h, x, a] = S
                        continue
                    p = N[x, a] / n
                    if c.settings["bonus"] == "hoeffding":
                        b = 7 * S * L * sqrt(1 / n)
                    else:
                        variance = p @ V[h + 1] ** 2 - (p @ V[h + 1]) ** 2
                        with np.errstate(divide="ignore"):
                            others = np.minimum(100**2 * S**3 * c.X**2 * c.A * L**2 / met[h + 1], S**2)
                        b = sqrt(max(8 * L * variance / n, 0)) + 14 * S * L / (3 * n) + sqrt(8 * (p @ others) / n)
                    Q[h, x, a] = min(Q[h, x, a], S, c.r[x, a] + p @ V[h + 1] + scale * b)
                V[h, x] = Q[h, x].max()
        yield {"t": start, "greedy": Q.copy(), "Q": Q.copy(), "V": V}
        history += [(h, x, a, y) for h, (x, a, y, _) in enumerate(plays)]
