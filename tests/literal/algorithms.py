"""The paper's three algorithms, line by line, in scalars and lists: slow, plain, and independent of the library.

Every line of the pseudo-code stands as a comment over the code that does it. Three repairs, and no more: the first
state is x_1 ~ nu_0; exactly T plays are made; the sample keeps the true successor where the reset overwrites x_t.
Random numbers: step t draws from uniform(key, t, .) the reset (0), the action (1), the successor (2), the state after
a reset (3); the first state is uniform(key, 0, 3).
"""

from math import exp, log, sqrt

from tests.literal.philox import uniform


def draw(probabilities, u):
    """The first index at which the partial sums exceed u; what rounding leaves goes to the last of positive mass."""
    total, chosen = 0.0, None
    for index, p in enumerate(probabilities):
        if p > 0:
            total += p
            chosen = index
            if u < total:
                break
    return chosen


def ravi_ucb(P, r, gamma, nu0, T, eta, V0, pi0, key, transition_estimate, bonus, add, empty):
    """Algorithm 1. Yields (T_k, V_k, pi_k, CB_k, Q_{k+1}, the epoch's triples)."""
    X, A = len(r), len(r[0])
    states, actions = range(X), range(A)
    H = 1 / (1 - gamma)
    # Initialize: t = 1, Q_1 = E V_0, D_1 = empty
    t = 1
    Q = [[V0[x] for a in actions] for x in states]
    pi = [list(row) for row in pi0]
    D = empty
    x_t = draw(nu0, uniform(key, 0, 3))
    # for k = 1, ...
    while t <= T:
        # T_k = t
        T_k = t
        # V_k(x) = 1/eta log sum_a pi_{k-1}(a|x) e^{eta Q_k(x,a)}
        V = [log(sum(pi[x][a] * exp(eta * Q[x][a]) for a in actions)) / eta for x in states]
        # pi_k(a|x) = pi_{k-1}(a|x) e^{eta (Q_k(x,a) - V_k(x))}
        pi = [[pi[x][a] * exp(eta * (Q[x][a] - V[x])) for a in actions] for x in states]
        # P_hat_k = TRANSITION-ESTIMATE(D_{T_k}), here already applied to V_k
        PV = transition_estimate(D, V)
        # CB_k = BONUS(D_{T_k})
        CB = bonus(D, V)
        # Q_{k+1} = Pi_H[r + CB_k + gamma P_hat_k V_k]
        Q = [[max(min(r[x][a] + CB[x][a] + gamma * PV[x][a], H), 0.0) for a in actions] for x in states]
        triples = []
        # repeat
        while True:
            # Play a_t ~ pi_k(.|x_t)
            a_t = draw(pi[x_t], uniform(key, t, 1))
            # Observe x_{t+1}
            y_t = draw(P[x_t][a_t], uniform(key, t, 2))
            # Update D_{t+1} = ADD(D_t, {(x_t, a_t, x_{t+1})})
            D = add(D, V, x_t, a_t, y_t)
            triples.append((x_t, a_t, y_t))
            # t = t + 1; with probability 1 - gamma, reset to initial distribution: x_t ~ nu_0 and break
            reset = uniform(key, t, 0) < 1 - gamma
            x_t = draw(nu0, uniform(key, t, 3)) if reset else y_t
            t = t + 1
            # until t = T
            if reset or t > T:
                break
        yield T_k, V, pi, CB, Q, triples


def tabular(P, r, gamma, nu0, T, eta, beta, V0, pi0, key):
    """Algorithm 2."""
    X, A = len(r), len(r[0])
    # Initialize: N'_1 = 0, N_1 = 1
    moves = [[[0] * X for _ in range(A)] for _ in range(X)]
    visits = [[1] * A for _ in range(X)]

    def transition_estimate(D, V):
        # P_hat_k(x'|x,a) = N'_{T_k}(x,a,x') / N_{T_k}(x,a)
        N, M = D
        return [[sum(M[x][a][y] / N[x][a] * V[y] for y in range(X)) for a in range(A)] for x in range(X)]

    def bonus(D, V):
        # CB_k(x,a) = beta / sqrt(N_{T_k}(x,a))
        N, _ = D
        return [[beta / sqrt(N[x][a]) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        # Update N'_{t+1}(x_t,a_t,x_{t+1}) = N'_t(x_t,a_t,x_{t+1}) + 1, and N_{t+1}(x_t,a_t) = N_t(x_t,a_t) + 1
        N, M = D
        M[x][a][y] += 1
        N[x][a] += 1
        return N, M

    D = (visits, moves)
    yield from ravi_ucb(P, r, gamma, nu0, T, eta, V0, pi0, key, transition_estimate, bonus, add, D)


def linear_mixture(psi, theta, r, gamma, nu0, T, eta, beta, lam, V0, pi0, key):
    """Algorithm 3; psi[x][a][y] is a list of d numbers."""
    X, A, d = len(r), len(r[0]), len(theta)
    P = [[[dot(theta, psi[x][a][y]) for y in range(X)] for a in range(A)] for x in range(X)]

    def phi(V, x, a):
        # phi_k(x,a) = sum_x' psi(x,a,x') V_k(x')
        return [sum(psi[x][a][y][i] * V[y] for y in range(X)) for i in range(d)]

    def transition_estimate(D, V):
        # theta_hat_k = Lambda_{T_k}^{-1} b_{T_k};  P_hat_k = sum_i theta_hat_{k,i} psi_i
        Lam, b = D
        theta_hat = solve(Lam, b)
        return [[dot(theta_hat, phi(V, x, a)) for a in range(A)] for x in range(X)]

    def bonus(D, V):
        # CB_k(x,a) = beta ||phi_k(x,a)||_{Lambda_{T_k}^{-1}}
        Lam, _ = D
        return [[beta * norm(Lam, phi(V, x, a)) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        # Update Lambda_{t+1} = Lambda_t + phi_k phi_k^T, and b_{t+1} = b_t + phi_k V_k(x_{t+1})
        Lam, b = D
        f = phi(V, x, a)
        Lam = [[Lam[i][j] + f[i] * f[j] for j in range(d)] for i in range(d)]
        return Lam, [b[i] + f[i] * V[y] for i in range(d)]

    # Initialize: Lambda_1 = lambda I, b_1 = 0
    D = ([[lam if i == j else 0.0 for j in range(d)] for i in range(d)], [0.0] * d)
    yield from ravi_ucb(P, r, gamma, nu0, T, eta, V0, pi0, key, transition_estimate, bonus, add, D)


def dot(u, v):
    return sum(p * q for p, q in zip(u, v, strict=True))


def norm(Lam, f):
    """||f||_{Lambda^{-1}}"""
    return sqrt(max(dot(f, solve(Lam, f)), 0.0))


def solve(matrix, right):
    """Gaussian elimination with partial pivoting."""
    d = len(right)
    M = [[*row, right[i]] for i, row in enumerate(matrix)]
    for k in range(d):
        pivot = max(range(k, d), key=lambda i: abs(M[i][k]))
        M[k], M[pivot] = M[pivot], M[k]
        for i in range(k + 1, d):
            f = M[i][k] / M[k][k]
            for j in range(k, d + 1):
                M[i][j] -= f * M[k][j]
    x = [0.0] * d
    for k in reversed(range(d)):
        x[k] = (M[k][d] - sum(M[k][j] * x[j] for j in range(k + 1, d))) / M[k][k]
    return x
