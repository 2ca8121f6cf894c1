"""Learners without a model, line by line, in scalars and lists: slow, plain, and independent of the library.

Each follows a stream that a run has recorded, (x_t, a_t, y_t) and whether a reset followed, and says at every step what
it would have played and what it holds afterwards. Ties go to the first action. A coin is uniform(key, t, 4), an action
that is drawn uniform(key, t, 1).
"""

from copy import deepcopy
from math import ceil, exp, floor, log, log2, sqrt

from tests.literal.algorithms import draw
from tests.literal.philox import uniform


def table(X, A, value):
    return [[value] * A for _ in range(X)]


def greedy(row):
    return row.index(max(row))


def one_hot(rows):
    """The greedy policy."""
    return [[1.0 if a == greedy(row) else 0.0 for a in range(len(row))] for row in rows]


def delayed_q_samples(X, A, gamma, accuracy, delta):
    """eps1 and m of the theorem, for eps-optimality with eps = accuracy / (1 - gamma)."""
    epsilon = accuracy / (1 - gamma)
    eps1 = epsilon * (1 - gamma) / 9
    m = log(3 * X * A * (1 + X * A / (eps1 * (1 - gamma))) / delta) / (2 * eps1**2 * (1 - gamma) ** 2)
    return eps1, ceil(m)


def delayed_q(stream, r, gamma, m, eps1):
    """Strehl et al. 2006. Yields the policy at t, and Q, U, l after t."""
    X, A = len(r), len(r[0])
    # for all (s, a): Q = 1 / (1 - gamma), U = 0, l = 0, t(s, a) = 0, LEARN = true; t* = 0
    Q = table(X, A, 1 / (1 - gamma))
    U, l, attempt, LEARN = table(X, A, 0.0), table(X, A, 0), table(X, A, 0), table(X, A, True)
    last_change = 0
    # for t = 1, 2, 3, ...
    for t, (s, played, s_next) in enumerate(stream, start=1):
        policy = one_hot(Q)
        # choose action a = argmax Q(s, a'); let r be the reward and s' the next state
        a = greedy(Q[s])
        assert a == played, t
        # if LEARN(s, a) = true
        if LEARN[s][a]:
            # U(s, a) = U(s, a) + r + gamma max Q(s', a'); l(s, a) = l(s, a) + 1
            U[s][a] = U[s][a] + (r[s][a] + gamma * max(Q[s_next]))
            l[s][a] = l[s][a] + 1
            # if l(s, a) = m
            if l[s][a] == m:
                # if Q(s, a) - U(s, a) / m >= 2 eps1 then Q(s, a) = U(s, a) / m + eps1 and t* = t
                if Q[s][a] - U[s][a] / m >= 2 * eps1:
                    Q[s][a] = U[s][a] / m + eps1
                    last_change = t
                # else if t(s, a) >= t* then LEARN(s, a) = false
                elif attempt[s][a] >= last_change:
                    LEARN[s][a] = False
                # t(s, a) = t, U(s, a) = 0, l(s, a) = 0
                attempt[s][a], U[s][a], l[s][a] = t, 0.0, 0
        # else if t(s, a) < t* then LEARN(s, a) = true
        elif attempt[s][a] < last_change:
            LEARN[s][a] = True
        yield policy, deepcopy({"Q": Q, "U": U, "plays": l, "attempt": attempt, "learn": LEARN})


def ucb_q_constants(gamma, accuracy):
    """H_q of the paper for eps = accuracy / (1 - gamma)."""
    epsilon = accuracy / (1 - gamma)
    R = ceil(log(3 / (epsilon * (1 - gamma))) / (1 - gamma))
    L = floor(log2(R))
    xi_L = epsilon / (3 * 2 ** (L + 2) * log(1 / (1 - gamma)))
    M = max(ceil(2 * log2(1 / (xi_L * (1 - gamma)))), 10)
    eps1 = epsilon / (24 * R * M * log(1 / (1 - gamma)))
    return log(1 / ((1 - gamma) * eps1)) / log(1 / gamma)


def ucb_q(stream, r, gamma, accuracy, delta, scale):
    """Dong et al. 2020. Yields the policy at t, and Q, Q_hat, N after t."""
    X, A = len(r), len(r[0])
    # parameters; Q = Q_hat = 1 / (1 - gamma), N = 0; iota(k) = ln(S A (k + 1)(k + 2) / delta), c2 = 4 sqrt 2
    H, c2 = ucb_q_constants(gamma, accuracy), 4 * sqrt(2) * scale
    Q, Q_hat, N = table(X, A, 1 / (1 - gamma)), table(X, A, 1 / (1 - gamma)), table(X, A, 0)
    for t, (s, played, s_next) in enumerate(stream, start=1):
        policy = one_hot(Q_hat)
        # take action a = argmax Q_hat(s, a')
        a = greedy(Q_hat[s])
        assert a == played, t
        # N(s, a) = N(s, a) + 1; k = N(s, a), b_k = c2 / (1 - gamma) sqrt(H iota(k) / k)
        N[s][a] += 1
        k = N[s][a]
        b = c2 / (1 - gamma) * sqrt(H * log(X * A * (k + 1) * (k + 2) / delta) / k)
        # V_hat(s') = max Q_hat(s', a)
        V = max(Q_hat[s_next])
        # Q(s, a) = (1 - alpha_k) Q(s, a) + alpha_k (r + b_k + gamma V_hat(s')), alpha_k = (H + 1) / (H + k)
        alpha = (H + 1) / (H + k)
        Q[s][a] = (1 - alpha) * Q[s][a] + alpha * (r[s][a] + b + gamma * V)
        # Q_hat(s, a) = min(Q_hat(s, a), Q(s, a))
        Q_hat[s][a] = min(Q_hat[s][a], Q[s][a])
        yield policy, deepcopy({"raw": Q, "Q_hat": Q_hat, "visits": N})


def liu_su(stream, key, r, gamma, accuracy, delta, scale):
    """The library's reconstruction. Yields the policy at t, and both Q, Q_hat, N after t."""
    X, A = len(r), len(r[0])
    H, c2 = ucb_q_constants(gamma, accuracy), 4 * sqrt(2) * scale
    Q = [table(X, A, 1 / (1 - gamma)) for _ in range(2)]
    Q_hat = [table(X, A, 1 / (1 - gamma)) for _ in range(2)]
    N = [table(X, A, 0) for _ in range(2)]
    for t, (s, played, s_next) in enumerate(stream, start=1):
        lower = [[min(Q_hat[0][x][b], Q_hat[1][x][b]) for b in range(A)] for x in range(X)]
        policy = one_hot(lower)
        # act greedily on the lower of the two; flip a coin
        a = greedy(lower[s])
        assert a == played, t
        i = 1 if uniform(key, t, 4) < 1 / 2 else 0
        # one table learns from the other
        N[i][s][a] += 1
        k = N[i][s][a]
        alpha = (H + 1) / (H + k)
        b = c2 / (1 - gamma) * sqrt(H * log(X * A * (k + 1) * (k + 2) / delta) / k)
        value = Q_hat[1 - i][s_next][greedy(lower[s_next])]
        Q[i][s][a] = (1 - alpha) * Q[i][s][a] + alpha * (r[s][a] + b + gamma * value)
        Q_hat[i][s][a] = min(Q_hat[i][s][a], Q[i][s][a])
        yield policy, deepcopy({"raw": Q, "Q_hat": Q_hat, "visits": N})


def q_learning(stream, resets, key, r, gamma, c, omega, initial):
    """Watkins; Even-Dar and Mansour's rates. Yields the policy at t, and Q, n after t."""
    X, A = len(r), len(r[0])
    Q, n = table(X, A, initial), table(X, A, 0)
    # epsilon is set at t = 1 and at the first step after each reset
    epsilon = min(1, c)
    for t, (s, played, s_next) in enumerate(stream, start=1):
        if t > 1 and resets[t - 2]:
            epsilon = min(1, c / t ** (1 / 3))
        # with probability epsilon any action, else the greedy one
        policy = [[epsilon / A + (1 - epsilon if b == greedy(Q[x]) else 0) for b in range(A)] for x in range(X)]
        a = draw(policy[s], uniform(key, t, 1))
        assert a == played, t
        # alpha = 1 / (1 + updates before)^omega
        alpha = 1 / (1 + n[s][a]) ** omega
        n[s][a] += 1
        Q[s][a] = (1 - alpha) * Q[s][a] + alpha * (r[s][a] + gamma * max(Q[s_next]))
        yield policy, deepcopy({"Q": Q, "visits": n})


def politex(stream, resets, r, gamma, J, eta, unvisited):
    """Yields, for each reset epoch (the last may be cut), the policy in it and sum_j q_hat_j before it."""
    X, A, H = len(r), len(r[0]), 1 / (1 - gamma)
    total = table(X, A, 0.0)
    returns, epochs, epoch = [[[] for _ in range(A)] for _ in range(X)], 0, []
    policy = table(X, A, 1 / A)
    for (x, a, _), reset in zip(stream, resets, strict=True):
        if not epoch:
            yield deepcopy(policy), deepcopy(total)
        epoch.append((x, a))
        if not reset:
            continue
        # an epoch has ended: what was earned from each of its steps on
        for step, (z, b) in enumerate(epoch):
            returns[z][b].append(sum(r[w][c] for w, c in epoch[step:]))
        epoch, epochs = [], epochs + 1
        if epochs % J == 0:
            # q_hat is the mean return, truncated to [0, H]
            for z in range(X):
                for b in range(A):
                    q = sum(returns[z][b]) / len(returns[z][b]) if returns[z][b] else unvisited
                    total[z][b] += max(min(q, H), 0)
            # pi(a | s) ~ exp(eta sum_j q_hat_j(s, a))
            weights = [[exp(eta * (total[z][b] - max(total[z]))) for b in range(A)] for z in range(X)]
            policy = [[w / sum(row) for w in row] for row in weights]
            returns = [[[] for _ in range(A)] for _ in range(X)]
