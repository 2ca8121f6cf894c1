"""RAVI-UCB+, line by line, in scalars and lists: its parts written out, nothing of the library but random numbers.

Epoch k draws m uniformly from 1, ..., M by number 4 of step T_k, makes M backups and mirror steps on the data at hand,
plays pi_m, and adds what it sees with V_m.
"""

from math import exp, log, sqrt

from tests.literal.algorithms import dot, draw, norm, solve
from tests.literal.philox import uniform


def ravi_ucb_plus(P, r, gamma, nu0, T, eta, M, fresh, key, estimate, bonus, add, D):
    """Yields (T_k, V_m, pi_m, the V_j of all backups, the epoch's triples). V_0 = 0, pi_0 uniform."""
    X, A = len(r), len(r[0])
    H = 1 / (1 - gamma)
    V, pi = [0.0] * X, [[1 / A] * A for _ in range(X)]
    Q = [[0.0] * A for _ in range(X)]  # Q_1 = E V_0

    def backup(D, V):
        PV, CB = estimate(D, V), bonus(D, V)
        return [[max(min(r[x][a] + CB[x][a] + gamma * PV[x][a], H), 0.0) for a in range(A)] for x in range(X)]

    def mirror(pi, Q):
        V, new = [], []
        for row, q in zip(pi, Q, strict=True):
            top = max(q)
            weights = [p * exp(eta * (value - top)) for p, value in zip(row, q, strict=True)]
            V.append(top + log(sum(weights)) / eta)
            new.append([w / sum(weights) for w in weights])
        return V, new

    t, x_t = 1, draw(nu0, uniform(key, 0, 3))
    while t <= T:
        T_k, values = t, []
        m = 1 + int(M * uniform(key, T_k, 4)) if M > 1 else 1
        for j in range(1, M + 1):
            if fresh:
                Q = backup(D, V)
            V, pi = mirror(pi, Q)
            if not fresh:
                Q = backup(D, V)
            values.append(V)
            if j == m:
                V_m, pi_m = V, pi
        triples = []
        while True:
            a_t = draw(pi_m[x_t], uniform(key, t, 1))
            y_t = draw(P[x_t][a_t], uniform(key, t, 2))
            D = add(D, V_m, x_t, a_t, y_t)
            triples.append((x_t, a_t, y_t))
            reset = uniform(key, t, 0) < 1 - gamma
            x_t = draw(nu0, uniform(key, t, 3)) if reset else y_t
            t = t + 1
            if reset or t > T:
                break
        yield T_k, V_m, pi_m, values, triples


def clipped(value, V, parts):
    return min(max(value, min(V)), max(V)) if "clip" in parts else value


def finished(CB, V, gamma, parts):
    CB = min(CB, max(V) - min(V)) if "clip" in parts else CB
    return gamma * CB if "gamma" in parts else CB


def tabular(P, r, gamma, nu0, T, eta, M, parts, delta, key):
    X, A = len(r), len(r[0])
    H = 1 / (1 - gamma)
    L = X * log(2) + log(X * A * T / delta)
    beta = H * (sqrt(L / 2) + 1)

    def middle(V):
        return (max(V) + min(V)) / 2 if "centre" in parts else 0.0

    def estimate(D, V):
        n, moves = D
        c = middle(V)
        return [
            [clipped(c + sum(moves[x][a][y] / (n[x][a] + 1) * (V[y] - c) for y in range(X)), V, parts)
             for a in range(A)] for x in range(X)
        ]  # fmt: skip

    def bonus(D, V):
        n, _ = D

        def one(n):
            if "centre" not in parts:
                return beta / sqrt(n + 1)
            spread = max(V) - min(V) if "span" in parts else H
            return spread / 2 * min(1 + n / (n + 1), (sqrt(2 * L * n) + 1) / (n + 1))

        return [[finished(one(n[x][a]), V, gamma, parts) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        n, moves = D
        n[x][a] += 1
        moves[x][a][y] += 1
        return n, moves

    D = [[0] * A for _ in range(X)], [[[0] * X for _ in range(A)] for _ in range(X)]
    yield from ravi_ucb_plus(P, r, gamma, nu0, T, eta, M, "fresh" in parts, key, estimate, bonus, add, D)


def linear_mixture(psi, theta, r, gamma, nu0, T, eta, M, parts, delta, lam, B, B_phi, key):
    """B bounds ||theta||, B_phi the norm of phi_V / H."""
    X, A, d = len(r), len(r[0]), len(theta)
    H = 1 / (1 - gamma)
    P = [[[dot(theta, psi[x][a][y]) for y in range(X)] for a in range(A)] for x in range(X)]
    noise, size = (1.0, 2 * B_phi) if "span" in parts else (H / 2, B_phi * H)

    def standard(V):
        c = (max(V) + min(V)) / 2 if "centre" in parts else 0.0
        sigma = max((max(V) - min(V)) / 2, 1e-6) if "span" in parts else 1.0
        return c, sigma, [(v - c) / sigma for v in V]

    def phi(U, x, a):
        return [sum(psi[x][a][y][i] * U[y] for y in range(X)) for i in range(d)]

    def estimate(D, V):
        Lam, b = D
        c, sigma, U = standard(V)
        theta_hat = solve(Lam, b)
        return [[clipped(c + sigma * dot(phi(U, x, a), theta_hat), V, parts) for a in range(A)] for x in range(X)]

    def bonus(D, V):
        Lam, _ = D
        _, sigma, U = standard(V)
        grown = log_det(Lam) - d * log(lam) if "radius" in parts else d * log(1 + T * size**2 / (lam * d))
        beta = noise * sqrt(max(grown, 0.0) + 2 * log(1 / delta)) + sqrt(lam) * B
        return [[finished(beta * sigma * norm(Lam, phi(U, x, a)), V, gamma, parts) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        Lam, b = D
        _, _, U = standard(V)
        f = phi(U, x, a)
        return [[Lam[i][j] + f[i] * f[j] for j in range(d)] for i in range(d)], [b[i] + f[i] * U[y] for i in range(d)]

    D = [[lam if i == j else 0.0 for j in range(d)] for i in range(d)], [0.0] * d
    yield from ravi_ucb_plus(P, r, gamma, nu0, T, eta, M, "fresh" in parts, key, estimate, bonus, add, D)


def log_det(matrix):
    """By elimination; the matrix is positive definite."""
    rows, total = [list(row) for row in matrix], 0.0
    for k in range(len(rows)):
        total += log(rows[k][k])
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return total
