"""Learners for linear MDPs, line by line, in scalars and lists: slow, plain, and independent of the library.

Each follows a stream that a run has recorded, (x_t, a_t, y_t) and whether a reset followed, and says at the start of
every epoch, or phase, what it would play. Ties go to the first action.
"""

from itertools import product
from math import exp, log, sqrt


def dot(u, v):
    return sum(p * q for p, q in zip(u, v, strict=True))


def apply(matrix, v):
    return [dot(row, v) for row in matrix]


def identity(d, value=1.0):
    return [[value if j == k else 0.0 for k in range(d)] for j in range(d)]


def solved(matrix, sides):
    """matrix^{-1} sides, for a list of rows of sides, and the determinant."""
    n = len(matrix)
    rows = [[*matrix[j], *sides[j]] for j in range(n)]
    det = 1.0
    for k in range(n):
        pivot = max(range(k, n), key=lambda j: abs(rows[j][k]))
        if pivot != k:
            rows[k], rows[pivot] = rows[pivot], rows[k]
            det = -det
        det *= rows[k][k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for j in range(n):
            if j != k:
                rows[j] = [p - rows[j][k] * q for p, q in zip(rows[j], rows[k], strict=True)]
    return [row[n:] for row in rows], det


class Regression:
    """Lambda, sum phi e_y^T, and the determinant that a phase began with."""

    def __init__(self, phi, X, lam):
        d = len(phi[0][0])
        self.phi, self.Lam, self.M = phi, identity(d, lam), [[0.0] * X for _ in range(d)]
        self.begin()

    def begin(self):
        self.inverse, self.base = solved(self.Lam, identity(len(self.Lam)))
        columns = [apply(self.inverse, [row[y] for row in self.M]) for y in range(len(self.M[0]))]
        self.m = [list(row) for row in zip(*columns, strict=True)]

    def add(self, x, a, y):
        """Whether the determinant has doubled."""
        f = self.phi[x][a]
        for j in range(len(f)):
            self.M[j][y] += f[j]
            for k in range(len(f)):
                self.Lam[j][k] += f[j] * f[k]
        return solved(self.Lam, identity(len(f)))[1] > 2 * self.base

    def width(self, x, a):
        return sqrt(dot(self.phi[x][a], apply(self.inverse, self.phi[x][a])))


def rmax_ravi_ucb(stream, resets, r, gamma, phi, lam, beta, eta, omega, sharp):
    """Yields pi_k, V_k and Q_{k+1} as every epoch begins. `sharp` is ln T, or None for the hard threshold."""
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    D = Regression(phi, X, lam)
    fresh, going = True, False
    for t, (x, a, y) in enumerate(stream):
        if fresh:  # a phase: freeze Lambda and M; pi = uniform, V = 0
            D.begin()
            CB = [[beta * D.width(z, b) for b in range(A)] for z in range(X)]
            if sharp is None:
                up = [[1.0 if CB[z][b] > omega else 0.0 for b in range(A)] for z in range(X)]
            else:
                up = [[1 / (1 + exp(-sharp * (CB[z][b] / omega - 1))) for b in range(A)] for z in range(X)]
            pi = [[1 / A] * A for _ in range(X)]
            Q = [[0.0] * A for _ in range(X)]
            fresh = False
        if not going:  # an epoch
            V = [log(sum(pi[z][b] * exp(eta * Q[z][b]) for b in range(A))) / eta for z in range(X)]
            pi = [[pi[z][b] * exp(eta * (Q[z][b] - V[z])) for b in range(A)] for z in range(X)]
            theta = apply(D.m, V)
            Q = [
                [(1 - up[z][b]) * (r[z][b] + CB[z][b] + gamma * dot(phi[z][b], theta)) + up[z][b] * H for b in range(A)]
                for z in range(X)
            ]
            yield pi, V, Q
            going = True
        fresh = D.add(x, a, y)
        going = not (fresh or resets[t])


def fixed_point_lsvi(stream, r, gamma, phi, lam, alpha, rounds, tol):
    """Yields the policy, J and whether the rounds settled, as every phase begins."""
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    D = Regression(phi, X, lam)
    fresh = True
    for x, a, y in stream:
        if fresh:
            D.begin()
            J, settled, u = [0.0] * X, False, 0
            CB = [[alpha * D.width(z, b) for b in range(A)] for z in range(X)]
            while not settled and u < rounds:
                w = apply(D.m, J)
                G = [[1 - r[z][b] + gamma * dot(phi[z][b], w) - CB[z][b] for b in range(A)] for z in range(X)]
                then = [min(max(min(row), 0.0), H) for row in G]
                settled = max(abs(p - q) for p, q in zip(then, J, strict=True)) <= tol
                J, u = then, u + 1
            yield [[1.0 if row.index(min(row)) == b else 0.0 for b in range(A)] for row in G], J, settled
        fresh = D.add(x, a, y)


def mdp_exp2(stream, resets, r, phi, lam, eta, L):
    """Yields the policy as every epoch begins."""
    X, A, d = len(r), len(r[0]), len(phi[0][0])
    total, epochs, episode, samples = [0.0] * d, 0, [], []
    for (x, a, _), reset in zip(stream, resets, strict=True):
        if not episode:
            if epochs == L:
                C, c = identity(d, lam), [0.0] * d
                for f, G in samples:
                    for j in range(d):
                        c[j] += f[j] * G
                        for k in range(d):
                            C[j][k] += f[j] * f[k]
                w = solved(C, [[value] for value in c])[0]
                total = [p + q[0] for p, q in zip(total, w, strict=True)]
                epochs, samples = 0, []
            weights = [[exp(eta * dot(phi[z][b], total)) for b in range(A)] for z in range(X)]
            yield [[value / sum(row) for value in row] for row in weights]
        episode.append((x, a))
        if reset:
            for i, (z, b) in enumerate(episode):
                samples.append((phi[z][b], sum(r[p][q] for p, q in episode[i:])))
            episode, epochs = [], epochs + 1


def fopo(stream, r, gamma, nu0, phi, lam, beta):
    """Yields the policy, J, w and b as every phase begins: where P_hat is a kernel and no other bound is reached."""
    X, A = len(r), len(r[0])
    D = Regression(phi, X, lam)
    fresh = True
    for x, a, y in stream:
        if fresh:
            D.begin()
            columns = list(zip(*D.m, strict=True))
            K = [[[dot(phi[z][b], column) for column in columns] for b in range(A)] for z in range(X)]
            top, best = -1.0, None
            for pi in product(range(A), repeat=X):  # F(pi) = <y, r_pi> + beta gamma ||phi_pi^T y||
                turned = [[(z == s) - gamma * K[s][pi[s]][z] for s in range(X)] for z in range(X)]
                mass = [row[0] for row in solved(turned, [[p] for p in nu0])[0]]
                mass = [p / sum(mass) for p in mass]
                g = [sum(mass[s] * phi[s][pi[s]][j] for s in range(X)) for j in range(len(D.m))]
                size = sqrt(dot(g, apply(D.inverse, g)))
                F = sum(mass[s] * r[s][pi[s]] for s in range(X)) + beta * gamma * size
                if top + 1e-12 < F:
                    top, best = F, [beta * value / size for value in apply(D.inverse, g)]
            b, v = best, [0.0] * X
            for _ in range(2000):  # relative value iteration
                Q = [[r[s][q] + gamma * (dot(K[s][q], v) + dot(phi[s][q], b)) for q in range(A)] for s in range(X)]
                v = [max(row) for row in Q]
                J = dot(nu0, v)
                v = [value - J for value in v]
            w = [p + q for p, q in zip(apply(D.m, v), b, strict=True)]
            yield Q, J, w, b, top
        fresh = D.add(x, a, y)
