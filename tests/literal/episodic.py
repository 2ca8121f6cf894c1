"""Learners in episodes from their papers' pseudo-code, in plain NumPy: slow, and independent of the library.

As in `tests.literal.tabular`; stages count from 0, and S is the length of an episode.
"""

from math import lgamma, log, pi, sqrt

import numpy as np

from tests.literal.extended import inner_kl


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


def optimistic_q(c):
    """Of the episodes in which one policy is played: the first step, Q before, Q and V after."""
    S, scale, iota = c.mdp.episode, c.settings["scale"], log(c.X * c.A * c.T / c.settings["delta"])
    Q, V = np.full((S, c.X, c.A), float(S)), np.full((S + 1, c.X), float(S))
    V[S] = 0
    seen = {}  # V_{h+1}(y) of every (h, x, a)
    t_k, before = 1, Q.copy()
    for start, plays in c.epochs():
        if (Q.argmax(-1) != before.argmax(-1)).any():
            yield {"t": t_k, "greedy": before, "raw": Q.copy(), "V": V.copy()}
            t_k, before = start, Q.copy()
        for h, (x, a, y, _) in enumerate(plays):
            values = seen.setdefault((h, x, a), [])
            values.append(V[h + 1, y])
            t = len(values)
            alpha = (S + 1) / (S + t)

            def beta(t, values=values):
                if t == 0:
                    return 0.0
                wide = sqrt(S**3 * iota / t)
                return min(sqrt(S / t * (np.var(values[:t]) + S) * iota) + sqrt(S**7 * c.X * c.A) * iota / t, wide)

            b = sqrt(S**3 * iota / t)
            if c.settings["bonus"] == "bernstein":
                b = (beta(t) - (1 - alpha) * beta(t - 1)) / (2 * alpha)
            Q[h, x, a] = (1 - alpha) * Q[h, x, a] + alpha * (c.r[x, a] + V[h + 1, y] + scale * b)
            V[h, x] = min(S, Q[h, x].max())
    yield {"t": t_k, "greedy": before, "raw": Q, "V": V}


def ravi_ucb(c):
    """Q_h = clip(r + CB + P_hat V_{h+1}), V_h and pi_h by the soft maximum, in logarithms."""
    S, eta, beta = c.mdp.episode, c.settings["eta"], c.settings["beta"]
    N, moved = np.ones((c.X, c.A)), np.zeros((c.X, c.A, c.X))
    log_pi = np.full((S, c.X, c.A), -log(c.A))
    for start, plays in c.epochs():
        V, Q = np.zeros((S + 1, c.X)), np.zeros(log_pi.shape)
        for h in reversed(range(S)):
            Q[h] = np.clip(c.r + beta / np.sqrt(N) + moved @ V[h + 1] / N, 0, S - h)
            V[h] = np.logaddexp.reduce(log_pi[h] + eta * Q[h], axis=-1) / eta
            log_pi[h] += eta * (Q[h] - V[h][:, None])
        yield {"t": start, "Q": Q, "V": V[:S], "policy": np.exp(log_pi)}
        for x, a, y, _ in plays:
            N[x, a] += 1
            moved[x, a, y] += 1


def ravi_ucb_mixture(c):
    """The same with P_hat V = <phi_V, theta_hat> and the width ||phi_V|| at the inverse of Lambda."""
    s, S, d = c.settings, c.mdp.episode, c.psi.shape[-1]
    M, w, log_pi = s["regularization"] * np.eye(d), np.zeros(d), np.full((S, c.X, c.A), -log(c.A))
    for start, plays in c.epochs():
        V, Q = np.zeros((S + 1, c.X)), np.zeros(log_pi.shape)
        for h in reversed(range(S)):
            X_h = np.einsum("xayj,y->xaj", c.psi, V[h + 1])
            wide = np.sqrt(np.maximum(np.einsum("xai,ij,xaj->xa", X_h, np.linalg.inv(M), X_h), 0))
            Q[h] = np.clip(c.r + s["beta"] * wide + X_h @ np.linalg.solve(M, w), 0, S - h)
            V[h] = np.logaddexp.reduce(log_pi[h] + s["eta"] * Q[h], axis=-1) / s["eta"]
            log_pi[h] += s["eta"] * (Q[h] - V[h][:, None])
        yield {"t": start, "Q": Q, "V": V, "policy": np.exp(log_pi)}
        for h, (x, a, y, _) in enumerate(plays):
            f = V[h + 1] @ c.psi[x, a]
            M = M + np.outer(f, f)
            w = w + V[h + 1][y] * f


def ravi_kl(c):
    """max {<q, V>: n KL(p_hat || q) <= rho} on the support, or on all states."""
    S, s, N = c.mdp.episode, c.settings, np.zeros((c.X, c.A, c.X))
    for start, plays in c.epochs():
        level = log(c.X * S / min(1, sqrt(S * c.X * c.A / start)))

        def induced(share, actions=None, N=N, level=level):
            """V and Q by stage, of the best actions or of those that are given."""
            V, Q = np.zeros((S + 1, c.X)), np.zeros((S, c.X, c.A))
            for h in reversed(range(S)):
                for x in range(c.X):
                    for a in range(c.A):
                        there = c.rows[x][a] if c.knows_support else np.arange(c.X)
                        n, u = N[x, a].sum(), V[h + 1][there]
                        rho = share * s["scale"] * (level + log(pi) / 2 + lgamma(n + 1) - lgamma(n + 0.5))
                        best = u.max() if n == 0 else inner_kl(N[x, a][there] / n, rho / n, u) @ u
                        Q[h, x, a] = c.r[x, a] + best
                V[h] = Q[h].max(-1) if actions is None else Q[h][np.arange(c.X), actions[h]]
            return V, Q

        V, Q = induced(1)
        if s["plan"] == "slack":
            V_half, Q_half = induced(0.5)
            own, _ = induced(1, Q_half.argmax(-1))
            if c.nu0 @ own[0] >= c.nu0 @ V[0] - s["slack"] * (c.nu0 @ (V[0] - V_half[0])) - 1e-12:
                Q = Q_half
        yield {"t": start, "greedy": Q, "V": V}
        for x, a, y, _ in plays:
            N[x, a, y] += 1
