"""UCRL-VTR and OPPO, line by line, in scalars and lists: slow, plain, and independent of the library.

Episodes are epochs between resets, rewards to go are discounted, the age is capped at S - 1, and one regression serves
all stages; otherwise the papers' lines, as comments over the code that does them. Random numbers as in
`tests.literal.algorithms`.
"""

from math import exp, log, sqrt

from tests.literal.algorithms import dot, draw
from tests.literal.philox import uniform


def inverse_and_log_det(matrix):
    """By Gauss and Jordan, with the largest pivot."""
    d = len(matrix)
    rows = [list(row) + [1.0 if i == j else 0.0 for j in range(d)] for i, row in enumerate(matrix)]
    log_det = 0.0
    for c in range(d):
        best = max(range(c, d), key=lambda i: abs(rows[i][c]))
        rows[c], rows[best] = rows[best], rows[c]
        pivot = rows[c][c]
        log_det += log(abs(pivot))
        rows[c] = [value / pivot for value in rows[c]]
        for i in range(d):
            if i != c:
                factor = rows[i][c]
                rows[i] = [p - factor * q for p, q in zip(rows[i], rows[c], strict=True)]
    return [row[d:] for row in rows], log_det


class Regression:
    """M_1 = lambda I, w_1 = 0."""

    def __init__(self, psi, d, lam):
        self.psi, self.d, self.lam = psi, d, lam
        self.M = [[lam if i == j else 0.0 for j in range(d)] for i in range(d)]
        self.w = [0.0] * d

    def X(self, V, x, a):
        # X_{h,k} = sum_s' V_{h+1,k}(s') P_j(s'|s,a), j = 1, ..., d
        return [sum(self.psi[x][a][y][j] * V[y] for y in range(len(V))) for j in range(self.d)]

    def add(self, V, x, a, y):
        # y_{h,k} = V_{h+1,k}(s_{h+1}^k);  M += X X^T;  w += y X
        f = self.X(V, x, a)
        for i in range(self.d):
            self.w[i] += V[y] * f[i]
            for j in range(self.d):
                self.M[i][j] += f[i] * f[j]

    def solve(self, H, delta, bound):
        # theta_k = M^{-1} w;  beta by the self-normalised bound
        inverse, log_det = inverse_and_log_det(self.M)
        theta = [dot(row, self.w) for row in inverse]
        beta = H / 2 * sqrt(log_det - self.d * log(self.lam) + 2 * log(1 / delta)) + sqrt(self.lam) * bound
        return theta, beta, inverse, log_det

    def future(self, theta, beta, inverse, V, x, a):
        # X^T theta + beta sqrt(X^T M^{-1} X)
        f = self.X(V, x, a)
        return dot(f, theta) + beta * sqrt(max(dot(f, [dot(row, f) for row in inverse]), 0.0))


def epoch(data, P, nu0, gamma, pi, V, x, t, T, key):
    """Play pi_age, learn from V_{age+1}, until a reset or T. The triples, the next state and time."""
    age, triples, last = 0, [], len(pi) - 1
    while True:
        h = min(age, last)
        a = draw(pi[h][x], uniform(key, t, 1))
        y = draw(P[x][a], uniform(key, t, 2))
        data.add(V[h + 1], x, a, y)
        triples.append((x, a, y))
        reset = uniform(key, t, 0) < 1 - gamma
        x = draw(nu0, uniform(key, t, 3)) if reset else y
        t, age = t + 1, age + 1
        if reset or t > T:
            return triples, x, t


def ucrl_vtr(psi, theta, r, gamma, nu0, T, S, scale, delta, lam, bound, key, rarely=False):
    """Yields (t of the epoch, theta_hat, beta, V_0..V_S, pi, triples)."""
    X, A, d, H = len(r), len(r[0]), len(theta), 1 / (1 - gamma)
    P = [[[dot(theta, psi[x][a][y]) for y in range(X)] for a in range(A)] for x in range(X)]
    data = Regression(psi, d, lam)
    x, t, planned = draw(nu0, uniform(key, 0, 3)), 1, None
    while t <= T:
        theta_hat, beta, inverse, log_det = data.solve(H, delta, bound)
        if not rarely or planned is None or log_det > planned + log(2):
            planned, now = log_det, (theta_hat, scale * beta)
            # V_{H+1,k} = 0;  for h = H, ..., 1:
            # Q_{h,k} = Pi_[0,H][r + X^T theta + beta ||X||],  V_{h,k} = max_a Q_{h,k}
            V, pi = [[0.0] * X], []
            for _ in range(S):
                Q = [
                    [min(max(r[z][a] + gamma * data.future(*now, inverse, V[0], z, a), 0.0), H) for a in range(A)]
                    for z in range(X)
                ]
                V.insert(0, [max(row) for row in Q])
                pi.insert(0, [[1.0 if a == row.index(max(row)) else 0.0 for a in range(A)] for row in Q])
        began = t
        triples, x, t = epoch(data, P, nu0, gamma, pi, V, x, t, T, key)
        yield began, *now, V, pi, triples


def oppo(psi, theta, r, gamma, nu0, T, S, alpha, scale, delta, lam, bound, key):
    """Yields (t of the epoch, theta_hat, beta, V_0..V_S, pi^k, triples, Q^k)."""
    X, A, d, H = len(r), len(r[0]), len(theta), 1 / (1 - gamma)
    P = [[[dot(theta, psi[x][a][y]) for y in range(X)] for a in range(A)] for x in range(X)]
    data = Regression(psi, d, lam)
    # pi_h^0 uniform, Q_h^0 = 0
    pi = [[[1 / A] * A for _ in range(X)] for _ in range(S)]
    Q = [[[0.0] * A for _ in range(X)] for _ in range(S)]
    x, t = draw(nu0, uniform(key, 0, 3)), 1
    while t <= T:
        # pi_h^k(.|x) proportional to pi_h^{k-1}(.|x) exp(alpha Q_h^{k-1}(x, .))
        for h in range(S):
            for z in range(X):
                top = max(Q[h][z])
                weights = [p * exp(alpha * (q - top)) for p, q in zip(pi[h][z], Q[h][z], strict=True)]
                pi[h][z] = [weight / sum(weights) for weight in weights]
        # Lambda, w from the episodes before k;  for h = H, ..., 1:  Gamma, Q_h^k, V_h^k = <Q_h^k, pi_h^k>
        theta_hat, beta, inverse, _ = data.solve(H, delta, bound)
        V, Q = [[0.0] * X], []
        for h in range(S - 1, -1, -1):
            stage = [
                [
                    min(max(r[z][a] + gamma * data.future(theta_hat, scale * beta, inverse, V[0], z, a), 0.0), H)
                    for a in range(A)
                ]
                for z in range(X)
            ]
            Q.insert(0, stage)
            V.insert(0, [dot(p, q) for p, q in zip(pi[h], stage, strict=True)])
        began = t
        triples, x, t = epoch(data, P, nu0, gamma, pi, V, x, t, T, key)
        yield began, theta_hat, scale * beta, V, [[list(row) for row in stage] for stage in pi], triples, Q
