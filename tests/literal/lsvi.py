"""Least-squares value iteration, line by line, in scalars and lists: all samples are stored, and at every plan Lambda
and all targets are summed up anew.

Each follows a stream that a run has recorded, (x_t, a_t, y_t) and whether a reset followed, and yields before every
step Q_h and V_h of all stages, the stage of this step, and whether it has just planned. phi[x][a] is a list of d
numbers. That a determinant has more than doubled is said with a margin of 1e-10, since one-hot features double exactly.
"""

from math import ceil, cos, log, pi, sin, sqrt

from tests.literal.algorithms import dot, norm, solve
from tests.literal.philox import uniform


def gram(samples, phi, lam):
    """lambda I + sum phi phi^T."""
    d = len(phi[0][0])
    Lam = [[lam * (i == j) for j in range(d)] for i in range(d)]
    for x, a, _ in samples:
        f = phi[x][a]
        for i in range(d):
            for j in range(d):
                Lam[i][j] += f[i] * f[j]
    return Lam


def determinant(matrix):
    """By elimination; the matrix is positive definite."""
    rows, product = [list(row) for row in matrix], 1.0
    for k in range(len(rows)):
        product *= rows[k][k]
        for i in range(k + 1, len(rows)):
            f = rows[i][k] / rows[k][k]
            rows[i] = [a - f * b for a, b in zip(rows[i], rows[k], strict=True)]
    return product


def regress(samples, phi, Lam, target):
    """Lambda^{-1} sum phi target(y)."""
    right = [0.0] * len(Lam)
    for x, a, y in samples:
        right = [b + f * target(y) for b, f in zip(right, phi[x][a], strict=True)]
    return solve(Lam, right)


def clip(value, low, high):
    return min(max(value, low), high)


def stages(gamma, truncation=0.01):
    return ceil(log(1 / (1 - gamma) / truncation) / log(1 / gamma))


def optimistic_plan(samples, r, phi, gamma, S, cap, beta, lam):
    """LSVI-UCB: Q_0, ..., Q_{S-1}, and V_0, ..., V_{S-1}."""
    X, A = len(r), len(r[0])
    Lam = gram(samples, phi, lam)
    bonus = [[beta * norm(Lam, phi[x][a]) for a in range(A)] for x in range(X)]
    V, Q, Vs = [0.0] * X, [], []
    for _ in range(S):
        w = regress(samples, phi, Lam, lambda y, V=V: V[y])
        table = [
            [clip(r[x][a] + gamma * dot(phi[x][a], w) + bonus[x][a], 0.0, cap) for a in range(A)] for x in range(X)
        ]
        V = [max(row) for row in table]
        Q.insert(0, table)
        Vs.insert(0, V)
    return Q, Vs


def lsvi_ucb(stream, resets, r, phi, gamma, T, delta, scale, lam, replan):
    d, H, S = len(phi[0][0]), 1 / (1 - gamma), stages(gamma)
    beta = scale * d * H * sqrt(log(2 * d * T / delta))
    samples, age, due, base = [], 0, True, None
    for (x, a, y), reset in zip(stream, resets, strict=True):
        if due:
            Q, Vs = optimistic_plan(samples, r, phi, gamma, S, H, beta, lam)
            base = determinant(gram(samples, phi, lam))
        yield Q, Vs, min(age, S - 1), due
        samples.append((x, a, y))
        age = 0 if reset else age + 1
        due = reset if replan == "reset" else determinant(gram(samples, phi, lam)) > 2 * base * (1 + 1e-10)


def olsvi_fh(stream, resets, r, phi, gamma, T, delta, scale, lam, span, discounted):
    d, S = len(phi[0][0]), stages(gamma)
    B = ceil(max(span**0.5 * T**0.25 * d**-0.75, (span * T / d / d) ** (1 / 3)))
    B = min(B, S)
    factor = gamma if discounted else 1.0
    most = (1 - gamma**B) / (1 - gamma) if discounted else float(B)
    beta = scale * 40 * d * most * sqrt(log(T / delta))
    samples, played, age = [], 0, 0  # plays made in this block, and since the reset
    ages = B * ceil(S / B)  # from then on the last stage is played
    for (x, a, y), reset in zip(stream, resets, strict=True):
        if played == 0:
            Q, Vs = optimistic_plan(samples, r, phi, factor, B, most, beta, lam)
        yield Q, Vs, played if age < ages else B - 1, played == 0
        samples.append((x, a, y))
        age = 0 if reset else age + 1
        played = 0 if reset or played + 1 == B else played + 1


def gamma_lscvi_ucb(stream, resets, r, phi, gamma, T, delta, scale, lam, span, staged):
    X, A, d, H, U = len(r), len(r[0]), len(phi[0][0]), 1 / (1 - gamma), stages(gamma)
    beta = 2 * scale * span * d * sqrt(log(d * T / delta))
    samples, age, due, base = [], 0, True, None
    for (x, a, y), reset in zip(stream, resets, strict=True):
        if due:
            Lam = gram(samples, phi, lam)
            base = determinant(Lam)
            bonus = [[beta * norm(Lam, phi[s][b]) for b in range(A)] for s in range(X)]
            V, Q, Vs = [H] * X, [], []
            for _ in range(U):
                m = min(V)
                w = regress(samples, phi, Lam, lambda y, V=V, m=m: V[y] - m)
                table = [
                    [clip(r[s][b] + gamma * (dot(phi[s][b], w) + m + bonus[s][b]), 0.0, H) for b in range(A)]
                    for s in range(X)
                ]
                V = [max(row) for row in table]
                V = [min(v, min(V) + 2 * span) for v in V]
                Q.insert(0, table)
                Vs.insert(0, V)
        yield Q, Vs, min(age, U - 1) if staged else 0, due
        samples.append((x, a, y))
        age = 0 if reset else age + 1
        due = determinant(gram(samples, phi, lam)) > 2 * base * (1 + 1e-10)


def upper_root(Lam):
    """U, upper triangular with Lambda = U^T U."""
    d = len(Lam)
    U = [[0.0] * d for _ in range(d)]
    for i in range(d):
        for j in range(i, d):
            rest = Lam[i][j] - sum(U[k][i] * U[k][j] for k in range(i))
            U[i][j] = sqrt(rest) if i == j else rest / U[i][i]
    return U


def gaussian(key, t, i):
    """Number i of the Gaussians of time t: Box and Muller on the uniform numbers 4, 5, ..., two by two."""
    u, v = uniform(key, t, 4 + i - i % 2), uniform(key, t, 5 + i - i % 2)
    return sqrt(-2 * log(1 - u)) * (cos, sin)[i % 2](2 * pi * v)


def rlsvi(stream, resets, key, r, phi, gamma, scale, lam):
    X, A, d, H, S = len(r), len(r[0]), len(phi[0][0]), 1 / (1 - gamma), stages(gamma)
    sigma = scale * H * sqrt(d)
    samples, age = [], 0
    for t, ((x, a, y), reset) in enumerate(zip(stream, resets, strict=True), start=1):
        due = age == 0
        if due:
            Lam = gram(samples, phi, lam)
            U = upper_root(Lam)
            V, Q, Vs = [0.0] * X, [], []
            for h in range(S - 1, -1, -1):
                w = regress(samples, phi, Lam, lambda y, V=V: gamma * V[y])
                xi = [sigma * gaussian(key, t, h * d + j) for j in range(d)]  # z; then U xi = z, from the bottom
                for i in range(d - 1, -1, -1):
                    xi[i] = (xi[i] - sum(U[i][j] * xi[j] for j in range(i + 1, d))) / U[i][i]
                w = [u + v for u, v in zip(w, xi, strict=True)]
                table = [[clip(r[s][b] + dot(phi[s][b], w), 0.0, H) for b in range(A)] for s in range(X)]
                V = [max(row) for row in table]
                Q.insert(0, table)
                Vs.insert(0, V)
        yield Q, Vs, min(age, S - 1), due
        samples.append((x, a, y))
        age = 0 if reset else age + 1
