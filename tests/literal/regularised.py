"""MD-MPI on counts, with NPG and MDP-E as its limits, in scalars and lists: slow, plain, independent of the library.

Random numbers, resets and repairs are those of `tests.literal.algorithms`.
"""

from math import exp, log, sqrt

from tests.literal.algorithms import draw
from tests.literal.philox import uniform


def truncated(f, M):
    return max(min(f, M), 0.0)


def md_mpi(P, r, gamma, nu0, T, eta, key, *, sweeps, regularised, first_count, bonus):
    """V_k = (T_k)^m V_{k-1}; sweeps=0 sweeps until nothing changes. Yields (T_k, V_k, pi_k, None, Q_{k+1}, triples).

    first_count is N_1; bonus(N) is CB where the count is N.
    """
    X, A = len(r), len(r[0])
    states, actions = range(X), range(A)
    H = 1 / (1 - gamma)
    N = [[first_count] * A for _ in states]
    M = [[[0] * X for _ in actions] for _ in states]
    Q = [[0.0] * A for _ in states]
    log_pi = [[log(1 / A)] * A for _ in states]
    t, x_t = 1, draw(nu0, uniform(key, 0, 3))

    def backed_up(V):
        """Pi_H[r + CB + gamma P_hat V], with the data at hand."""
        out = [[0.0] * A for _ in states]
        for x in states:
            for a in actions:
                mean = sum(M[x][a][y] * V[y] for y in states) / max(N[x][a], 1)
                out[x][a] = truncated(r[x][a] + bonus(N[x][a]) + gamma * mean, H)
        return out

    while t <= T:
        T_k = t
        # pi_k ~ pi_{k-1} exp(eta Q_k)
        before = log_pi
        log_pi, KL = [], []
        for x in states:
            tilted = [before[x][a] + eta * Q[x][a] for a in actions]
            top = max(tilted)
            log_sum = top + log(sum(exp(z - top) for z in tilted))
            log_pi.append([z - log_sum for z in tilted])
            KL.append(sum(exp(log_pi[x][a]) * (log_pi[x][a] - before[x][a]) for a in actions))
        pi = [[exp(l) for l in row] for row in log_pi]
        penalty = [KL[x] / eta if regularised else 0.0 for x in states]

        def evaluated(Q, pi=pi, penalty=penalty):
            return [truncated(sum(pi[x][a] * Q[x][a] for a in actions) - penalty[x], H) for x in states]

        # V_k = (T_k)^m V_{k-1}: the first sweep is in Q_k
        V = evaluated(Q)
        if sweeps:
            for _ in range(sweeps - 1):
                V = evaluated(backed_up(V))
        else:
            change = 1.0
            while change > 1e-13:
                following = evaluated(backed_up(V))
                change = max(abs(one - other) for one, other in zip(V, following, strict=True))
                V = following
        # Q_{k+1}
        Q = backed_up(V)
        triples = []
        while True:
            a_t = draw(pi[x_t], uniform(key, t, 1))
            y_t = draw(P[x_t][a_t], uniform(key, t, 2))
            M[x_t][a_t][y_t] += 1
            N[x_t][a_t] += 1
            triples.append((x_t, a_t, y_t))
            reset = uniform(key, t, 0) < 1 - gamma
            x_t = draw(nu0, uniform(key, t, 3)) if reset else y_t
            t += 1
            if reset or t > T:
                break
        yield T_k, V, pi, None, Q, triples


def root(beta):
    """CB = beta / sqrt(N)."""
    return lambda N: beta / sqrt(N)


def unplayed(H):
    """A pair that was never played is worth H."""
    return lambda n: H if n == 0 else 0.0
