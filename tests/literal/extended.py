"""UCRL2 and its kin from their pseudo-code, in plain NumPy: slow, and independent of the library.

The average-reward algorithms on the reset chain gamma P + (1 - gamma) 1 nu_0^T: kernels are dense, u is never shifted
within a phase, and each set has its own maximum, as printed. Two departures from the papers, both the library's: a
phase starts from the u of the last one, and rewards are known. Of a learner that knows where a pair may lead
(support=on) sets have rows on those states alone, as if there were no others.
"""

from math import e, inf, log, sqrt

import numpy as np


def inner_l1(p, d, u):
    """Jaksch, Ortner, Auer (2010), Figure 2: the best state gains d / 2, the worst lose until the sum is one."""
    states, q = sorted(range(len(u)), key=lambda x: -u[x]), np.array(p, float)
    q[states[0]] = min(1.0, p[states[0]] + d / 2)
    for x in reversed(states[1:]):
        if q.sum() > 1 + 1e-15:
            q[x] = max(0.0, 1 - (q.sum() - q[x]))
    return q


def inner_box(p, beta, u):
    """Every state its least; the rest of the mass to the best states, each up to its most."""
    p, beta = np.asarray(p, float), np.asarray(beta)
    q = np.maximum(0.0, p - beta)
    for x in sorted(range(len(u)), key=lambda x: -u[x]):
        q[x] = min(q[x] + 1 - q.sum(), 1.0, p[x] + beta[x])
    return q


def inner_kl(p, d, u):
    """Filippi, Cappe, Garivier (2010), MaxKL, with a bisection for the Newton step."""
    p, u = np.asarray(p, float), np.asarray(u, float)
    seen, top = p > 0, max(u)
    if (u[seen] == top).all():
        return p

    def f(above):  # nu = top + above
        gap = above + (top - u[seen])
        return p[seen] @ np.log(gap) + log((p[seen] / gap).sum())

    def tilted(above, rest):
        weights = np.where(seen, p / np.where(seen, above + (top - u), 1.0), 0.0)
        return (1 - rest) * weights / weights.sum()

    unseen = np.flatnonzero(~seen & (u == top))
    if len(unseen) and (u[seen] < top).all() and f(0.0) < d:
        rest = 1 - np.exp(f(0.0) - d)
        return tilted(0.0, rest) + rest * np.eye(len(u))[unseen[0]]
    span, low, high = top - u[seen].min(), -300.0, 20.0
    while high - low > 1e-13:
        z = (low + high) / 2
        low, high = (z, high) if f(span * np.exp(z)) > d else (low, z)
    return tilted(span * np.exp(high), 0.0)


def ucrl2(c, m):
    """The best row at time t of a pair that was played n times, of m outcomes."""
    s = c.settings
    return lambda p, n, t, u: inner_l1(p, s["scale"] * sqrt(14 * m * log(2 * c.A * t / s["delta"]) / n), u)


def ucrl2b(c, m):
    s = c.settings

    def inner(p, n, t, u):
        l = log(6 * sqrt(c.X * m) * c.A * n / s["delta"])
        return inner_box(p, s["scale"] * (2 * np.sqrt(p * (1 - p) * l / n) + 6 * l / n), u)

    return inner


def kl_ucrl(c, m):
    lnT = log(c.T)
    B = log(2 * e * m * c.X * c.A * lnT / c.settings["delta"])
    C = c.settings["scale"] * m * (B + log(B + 1 / lnT) * (1 + 1 / (B + 1 / lnT)))
    return lambda p, n, t, u: inner_kl(p, C / n, u)


def scal_plus(c, m):
    """Not a set but one row, with one play more to x_bar, and a bonus."""
    s, start = c.settings, np.eye(c.X)[c.nu0.argmax()]

    def inner(p, n, t, u):
        return (n * p + start) / (n + 1)

    def bonus(n, t):
        beta = np.sqrt(7 * log(2 * c.X * c.A * t / s["delta"]) / np.maximum(1, n)) + 1 / (n + 1)
        return s["scale"] * s["span"] * np.minimum(beta, 2)

    inner.bonus = bonus
    return inner


def phases(c, rows):
    """Every phase: u, the gain, and the policy; `rows` gives one of the functions above."""
    inner, span = rows(c, c.mdp.branching if c.knows_support else c.X), c.settings.get("span", inf)
    mixing, bonus = 1.0 if c.gamma < 1 else 0.9, getattr(inner, "bonus", None)
    # Initialise: no plays
    plays, moves, u = np.zeros((c.X, c.A)), np.zeros((c.X, c.A, c.X)), np.zeros(c.X)
    before = None
    for t, (x_t, a_t, y_t, _) in enumerate(c.stream, start=1):
        if before is None:
            # t_k = t; n_k = plays before it
            before = plays.copy()

            def most(u, t_k=t, before=before, sign=1):
                """r + gamma max (or, with sign -1, gamma min) of <p, u> over the plausible p, and resets."""
                Q = np.zeros((c.X, c.A)) if sign == -1 else c.r + (0.0 if bonus is None else bonus(before, t_k))
                for x, a in np.ndindex(c.X, c.A):
                    row, n = c.rows[x][a] if c.knows_support else np.arange(c.X), before[x, a]
                    value = sign * u[row]
                    unknown = n == 0 and bonus is None
                    best = value.max() if unknown else inner(moves[x, a, row] / max(n, 1), n, t_k, value) @ value
                    Q[x, a] += c.gamma * sign * best
                return Q + (1 - c.gamma) * c.nu0 @ u

            # extended value iteration on the reset chain, until span(u' - u) <= 1 / sqrt(t_k); in the average reward
            # it is mixed with u, against periods
            while True:
                Q = most(u)
                L = Q.max(-1)
                ceiling = L.min() + span
                last, u = u, mixing * np.minimum(L, ceiling) + (1 - mixing) * u
                low, high = (u - last).min(), (u - last).max()
                if high - low <= 1 / sqrt(t):
                    break
            # pi_k greedy; where L u was cut, mixed with the action that is worth least when it earns nothing
            policy = np.eye(c.A)[Q.argmax(-1)]
            for x in np.flatnonzero(ceiling < L):
                idle = most(last, sign=-1)[x]
                w = (ceiling - idle.min()) / (L[x] - idle.min())
                assert 0 <= w < 1
                policy[x] = w * policy[x] + (1 - w) * np.eye(c.A)[np.argmax(idle <= idle.min() + 1e-9)]
            gap = (L[:, None] - Q)[L[:, None] > Q].min(initial=inf)
            u = u - u.min()
            middle, off = (low + high) / 2 / mixing, (high - low) / 2 * (1 - c.gamma if span == inf else 1.0) + 1e-7
            told = {"t": t, "u": u, "gain": (middle - off, middle + off)}
            yield told | ({"policy": policy} if gap > 1e-6 else {})
        # while v_k(x_t, a_t) < max(1, n_k(x_t, a_t)): play
        plays[x_t, a_t] += 1
        moves[x_t, a_t, y_t] += 1
        if plays[x_t, a_t] - before[x_t, a_t] >= max(1, before[x_t, a_t]):
            before = None
