"""R-MAX, MBIE, MBIE-EB and UCBVI-gamma from their papers' pseudo-code, in scalars and lists: slow, plain, independent.

Each yields (t, x_t, a_t, Q_{t+1}) for t = 1, ..., T. Step t draws from uniform(key, t, .) the reset (0), the action
(1; the policies are deterministic, so it is not used), the successor (2), the state after a reset (3).

A learner that is told where a pair may lead, rows[x][a], knows that its value is at most r + gamma max V there.
"""

from math import log, sqrt

from tests.literal.algorithms import draw
from tests.literal.philox import uniform


def play(P, r, gamma, nu0, T, key, Q, learn):
    """a_t = argmax_a Q_t(x_t, a), the first; Q_{t+1} = learn(t, x_t, a_t, y_t, Q_t)."""
    x = draw(nu0, uniform(key, 0, 3))
    for t in range(1, T + 1):
        a = Q[x].index(max(Q[x]))
        y = draw(P[x][a], uniform(key, t, 2))
        Q = learn(t, x, a, y, Q)
        yield t, x, a, Q
        x = draw(nu0, uniform(key, t, 3)) if uniform(key, t, 0) < 1 - gamma else y


def fixed_point(X, A, H, gamma, backup):
    """Value iteration from H until nothing moves by more than 1e-13 / H."""
    V = [H] * X
    while True:
        Q = [[backup(x, a, V) for a in range(A)] for x in range(X)]
        new = [max(row) for row in Q]
        if max(abs(v - w) for v, w in zip(V, new, strict=True)) <= 1e-13 / H:
            return Q
        V = new


def counted(X, A):
    return [[0] * A for _ in range(X)], [[[0] * X for _ in range(A)] for _ in range(X)]


def mean(counts, n, V):
    return sum(c / n * v for c, v in zip(counts, V, strict=True))


def r_max(P, r, gamma, nu0, T, m, key):
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    n, N = counted(X, A)

    def backup(x, a, V):
        # U(s,a) = Vmax where n < m; otherwise R + gamma sum_s' T_hat U
        return H if n[x][a] < m else r[x][a] + gamma * mean(N[x][a], n[x][a], V)

    def learn(t, x, a, y, Q):
        # if n(s,a) < m: count; if n(s,a) = m: solve
        if n[x][a] < m:
            n[x][a] += 1
            N[x][a][y] += 1
            if n[x][a] == m:
                return fixed_point(X, A, H, gamma, backup)
        return Q

    yield from play(P, r, gamma, nu0, T, key, [[H] * A for _ in range(X)], learn)


def limit(r, gamma, H, rows, V, x, a):
    """What (x, a) is worth at most."""
    return H if rows is None else min(H, r[x][a] + gamma * max(V[y] for y in rows[x][a]))


def mbie(P, r, gamma, nu0, T, m, delta, scale, key, rows=None):
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    n, N = counted(X, A)
    delta_T = delta / (2 * X * A * m)
    outcomes = X if rows is None else max(len(row) for rows_of_x in rows for row in rows_of_x)

    def backup(x, a, V):
        if n[x][a] == 0:
            return limit(r, gamma, H, rows, V, x, a)
        # the distribution of the L1 ball that maximises sum_s' T(s') V(s'): raise the best state, lower the worst ones
        d = scale * sqrt(2 * (log(2**outcomes - 2) - log(delta_T)) / n[x][a])
        order = sorted(range(X) if rows is None else rows[x][a], key=lambda y: V[y])
        p = [c / n[x][a] for c in N[x][a]]
        p[order[-1]] = min(1.0, p[order[-1]] + d / 2)
        for y in order:
            excess = sum(p) - 1
            if excess > 0:
                p[y] = max(0.0, p[y] - excess)
        return r[x][a] + gamma * sum(q * v for q, v in zip(p, V, strict=True))

    def learn(t, x, a, y, Q):
        if n[x][a] < m:
            n[x][a] += 1
            N[x][a][y] += 1
        return fixed_point(X, A, H, gamma, backup)

    yield from play(P, r, gamma, nu0, T, key, fixed_point(X, A, H, gamma, backup), learn)


def mbie_eb(P, r, gamma, nu0, T, m, delta, scale, key, rows=None):
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    n, N = counted(X, A)
    beta = scale * H * sqrt(log(2 * X * A * m / delta) / 2)

    def backup(x, a, V):
        # Q(s,a) = R_hat + gamma sum_s' T_hat max Q + beta / sqrt(n)
        most = limit(r, gamma, H, rows, V, x, a)
        return most if n[x][a] == 0 else min(most, r[x][a] + gamma * mean(N[x][a], n[x][a], V) + beta / sqrt(n[x][a]))

    def learn(t, x, a, y, Q):
        if n[x][a] < m:
            n[x][a] += 1
            N[x][a][y] += 1
        return fixed_point(X, A, H, gamma, backup)

    yield from play(P, r, gamma, nu0, T, key, fixed_point(X, A, H, gamma, backup), learn)


def ucbvi_gamma(P, r, gamma, nu0, T, delta, scale, third, beta, key, rows=None):
    X, A = len(r), len(r[0])
    n, N = counted(X, A)
    n_x = [0] * X
    U = log(40 * X * A * T**3 * log(T) ** 2 / (delta * (1 - gamma) ** 2))
    beta = X**2 * A**2 * U**5 if beta is None else beta

    def learn(t, x, a, y, Q):
        n[x][a] += 1
        N[x][a][y] += 1
        n_x[x] += 1
        V = [max(row) for row in Q]
        new = []
        for s in range(X):
            new.append([])
            for b in range(A):
                k = max(n[s][b], 1)
                p = [c / k for c in N[s][b]]
                PV = sum(q * v for q, v in zip(p, V, strict=True))
                variance = sum(q * (v - PV) ** 2 for q, v in zip(p, V, strict=True))
                UCB = sqrt(8 * U * variance / k) + 8 * U / ((1 - gamma) * k)
                if third:
                    B = [beta / ((1 - gamma) ** 5 * max(n_x[z], 1)) for z in range(X)]
                    UCB += sqrt(8 * sum(p[z] * min(100 * B[z], 1 / (1 - gamma) ** 2) for z in range(X)) / k)
                most = min(Q[s][b], limit(r, gamma, 1 / (1 - gamma), rows, V, s, b))
                told = rows is not None and n[s][b] == 0  # of such a pair it knows no more
                new[s].append(most if told else min(most, r[s][b] + gamma * PV + gamma * scale * UCB))
        return new

    yield from play(P, r, gamma, nu0, T, key, [[1 / (1 - gamma)] * A for _ in range(X)], learn)
