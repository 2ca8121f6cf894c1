"""Learners of tables from their papers' pseudo-code, in plain NumPy: slow, and independent of the library.

Each follows the stream of a run (`tests.learners.test_literal.Case`): the plays x_t, a_t, y_t and whether a reset
followed. It gives, for every epoch, t of its first step and the fields of the learner's state by their names; those of
learners that learn at every step are the fields after that step. `greedy` is a table in which the policy is greedy,
and a pair (low, high) bounds a field.
"""

from math import log, sqrt

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from tests.literal.extended import inner_l1
from tests.literal.philox import uniform


def counts(c):
    """n and N'."""
    return np.zeros((c.X, c.A)), np.zeros((c.X, c.A, c.X))


def fixed_point(c, backup):
    """Value iteration from H until nothing moves by more than 1e-13 / H."""
    V = np.full(c.X, c.H)
    while True:
        Q = backup(V)
        if np.abs(Q.max(-1) - V).max() <= 1e-13 / c.H:
            return Q
        V = Q.max(-1)


def at_every_step(c, Q, learn):
    """a_t is greedy in Q_t; Q_{t+1} = learn(x_t, a_t, y_t, Q_t)."""
    for t, (x, a, y, _) in enumerate(c.stream, start=1):
        before, Q = Q, learn(x, a, y, Q)
        yield {"t": t, "greedy": before, "Q": Q}


def r_max(c):
    (n, N), m = counts(c), c.settings["m"]

    def backup(V):
        # U(s,a) = Vmax where n < m; otherwise R + gamma sum_s' T_hat U
        return np.where(n < m, c.H, c.r + c.gamma * N @ V / np.maximum(n, 1))

    def learn(x, a, y, Q):
        # if n(s,a) < m: count; if n(s,a) = m: solve
        if n[x, a] < m:
            n[x, a] += 1
            N[x, a, y] += 1
            return fixed_point(c, backup) if n[x, a] == m else Q
        return Q

    return at_every_step(c, np.full((c.X, c.A), c.H), learn)


def planned_at_every_step(c, n, N, backup):
    m = c.settings.get("m", c.T)

    def learn(x, a, y, Q):
        if n[x, a] < m:
            n[x, a] += 1
            N[x, a, y] += 1
        return fixed_point(c, backup)

    return at_every_step(c, fixed_point(c, backup), learn)


def mbie(c):
    n, N = counts(c)

    def backup(V):
        # the distribution of the L1 ball that maximises sum_s' T(s') V(s')
        Q = np.full((c.X, c.A), c.H)
        for x, a in np.argwhere(n > 0):
            Q[x, a] = c.r[x, a] + c.gamma * inner_l1(N[x, a] / n[x, a], c.settings["radius"] / sqrt(n[x, a]), V) @ V
        return Q

    return planned_at_every_step(c, n, N, backup)


def mbie_eb(c):
    n, N = counts(c)
    beta = c.settings.get("beta", 0.0)  # 0 for the certainty-equivalent learner

    def backup(V):
        # Q(s,a) = R_hat + gamma sum_s' T_hat max Q + beta / sqrt(n)
        m = np.maximum(n, 1)
        return np.where(n == 0, c.H, np.minimum(c.H, c.r + c.gamma * N @ V / m + beta / np.sqrt(m)))

    return planned_at_every_step(c, n, N, backup)


def ucbvi_gamma(c):
    (n, N), s = counts(c), c.settings
    U = s["U"]

    def learn(x, a, y, Q):
        n[x, a] += 1
        N[x, a, y] += 1
        V, k = Q.max(-1), np.maximum(n, 1)
        p = N / k[..., None]
        PV = p @ V
        variance = (p * (V - PV[..., None]) ** 2).sum(-1)
        UCB = np.sqrt(8 * U * variance / k) + 8 * U * c.H / k
        if s["third_term"] == "on":
            B = s["beta"] * c.H**5 / np.maximum(n.sum(-1), 1)
            UCB += np.sqrt(8 * p @ np.minimum(100 * B, c.H**2) / k)
        return np.minimum(Q, c.r + c.gamma * PV + c.gamma * s["scale"] * UCB)

    return at_every_step(c, np.full((c.X, c.A), c.H), learn)


def delayed_q_samples(X, A, gamma, accuracy, delta):
    """eps1 and m of the theorem, for eps-optimality with eps = accuracy / (1 - gamma)."""
    epsilon = accuracy / (1 - gamma)
    eps1 = epsilon * (1 - gamma) / 9
    m = log(3 * X * A * (1 + X * A / (eps1 * (1 - gamma))) / delta) / (2 * eps1**2 * (1 - gamma) ** 2)
    return eps1, int(np.ceil(m))


def delayed_q(c):
    """Strehl et al. 2006."""
    m, eps1 = c.settings["m"], c.settings["eps1"]
    # for all (s, a): Q = 1 / (1 - gamma), U = 0, l = 0, t(s, a) = 0, LEARN = true; t* = 0
    Q, (U, l, attempt), LEARN = np.full((c.X, c.A), c.H), np.zeros((3, c.X, c.A)), np.ones((c.X, c.A), bool)
    last_change = 0
    # for t = 1, 2, 3, ...
    for t, (s, a, s_next, _) in enumerate(c.stream, start=1):
        # choose action a = argmax Q(s, a'); let r be the reward and s' the next state
        before = Q.copy()
        # if LEARN(s, a) = true
        if LEARN[s, a]:
            # U(s, a) = U(s, a) + r + gamma max Q(s', a'); l(s, a) = l(s, a) + 1
            U[s, a] += c.r[s, a] + c.gamma * Q[s_next].max()
            l[s, a] += 1
            # if l(s, a) = m
            if l[s, a] == m:
                # if Q(s, a) - U(s, a) / m >= 2 eps1 then Q(s, a) = U(s, a) / m + eps1 and t* = t
                if Q[s, a] - U[s, a] / m >= 2 * eps1:
                    Q[s, a] = U[s, a] / m + eps1
                    last_change = t
                # else if t(s, a) >= t* then LEARN(s, a) = false
                elif attempt[s, a] >= last_change:
                    LEARN[s, a] = False
                # t(s, a) = t, U(s, a) = 0, l(s, a) = 0
                attempt[s, a], U[s, a], l[s, a] = t, 0.0, 0
        # else if t(s, a) < t* then LEARN(s, a) = true
        elif attempt[s, a] < last_change:
            LEARN[s, a] = True
        yield {"t": t, "greedy": before, "Q": Q, "U": U, "plays": l, "attempt": attempt, "learn": LEARN}


def ucb_q_constants(gamma, accuracy):
    """H_q of the paper for eps = accuracy / (1 - gamma)."""
    epsilon = accuracy / (1 - gamma)
    R = np.ceil(log(3 / (epsilon * (1 - gamma))) / (1 - gamma))
    L = np.floor(np.log2(R))
    xi_L = epsilon / (3 * 2 ** (L + 2) * log(1 / (1 - gamma)))
    M = max(np.ceil(2 * np.log2(1 / (xi_L * (1 - gamma)))), 10)
    eps1 = epsilon / (24 * R * M * log(1 / (1 - gamma)))
    return log(1 / ((1 - gamma) * eps1)) / log(1 / gamma)


def ucb_q(c, tables=1):
    """Dong et al. 2020; with two tables the library's reconstruction of Liu and Su, where one learns from the other."""
    # parameters; Q = Q_hat = 1 / (1 - gamma), N = 0; iota(k) = ln(S A (k + 1)(k + 2) / delta), c2 = 4 sqrt 2
    s, H = c.settings, ucb_q_constants(c.gamma, c.settings["accuracy"])
    Q, Q_hat, N = np.full((2, tables, c.X, c.A), c.H)[0], np.full((tables, c.X, c.A), c.H), np.zeros((tables, c.X, c.A))
    for t, (x, a, s_next, _) in enumerate(c.stream, start=1):
        # take action a = argmax Q_hat(s, a'), the lower of two
        lower = Q_hat.min(0)
        i = int(uniform(c.key, t, 4) < 1 / 2) if tables == 2 else 0
        # N(s, a) = N(s, a) + 1; k = N(s, a), b_k = c2 / (1 - gamma) sqrt(H iota(k) / k)
        N[i, x, a] += 1
        k = N[i, x, a]
        b = 4 * sqrt(2) * s["scale"] * c.H * sqrt(H * log(c.X * c.A * (k + 1) * (k + 2) / s["delta"]) / k)
        # V_hat(s') = max Q_hat(s', a), of the other table at the action that is best in both
        V = Q_hat[tables - 1 - i, s_next, lower[s_next].argmax()]
        # Q(s, a) = (1 - alpha_k) Q(s, a) + alpha_k (r + b_k + gamma V_hat(s')), alpha_k = (H + 1) / (H + k)
        alpha = (H + 1) / (H + k)
        Q[i, x, a] = (1 - alpha) * Q[i, x, a] + alpha * (c.r[x, a] + b + c.gamma * V)
        # Q_hat(s, a) = min(Q_hat(s, a), Q(s, a))
        Q_hat[i, x, a] = min(Q_hat[i, x, a], Q[i, x, a])
        shape = (2, c.X, c.A) if tables == 2 else (c.X, c.A)
        fields = {"raw": Q.reshape(shape), "Q_hat": Q_hat.reshape(shape), "visits": N.reshape(shape)}
        yield {"t": t, "greedy": lower, **fields} | ({"Q": Q_hat.min(0)} if tables == 2 else {})


def optimistic_q(c):
    """Wei et al. 2020, Algorithm 1, on the stream of x_t."""
    s = c.settings
    H, span = s["horizon"], s["span"]
    gamma = 1 - 1 / H
    Q, Q_hat, n = np.full((c.X, c.A), H), np.full((c.X, c.A), H), np.zeros((c.X, c.A))
    states = [x for x, *_ in c.stream]
    for t, (x, a, *_) in enumerate(c.stream, start=1):
        greedy = Q_hat.copy()
        if t < len(states):
            n[x, a] += 1
            tau = n[x, a]
            alpha, b = (H + 1) / (H + tau), 4 * s["scale"] * span * sqrt(H / tau * log(2 * c.T / s["delta"]))
            V = Q_hat[states[t]].max()
            Q[x, a] = (1 - alpha) * Q[x, a] + alpha * (c.r[x, a] + gamma * V + b)
            Q_hat[x, a] = min(Q_hat[x, a], Q[x, a])
            yield {"t": t, "greedy": greedy, "raw": Q.copy(), "Q_hat": Q_hat.copy(), "visits": n.copy()}
        else:
            yield {"t": t, "greedy": greedy}


def liu_su(c):
    return ucb_q(c, 2)


def q_learning(c):
    """Watkins; Even-Dar and Mansour's rates."""
    s = c.settings
    Q, n = np.full((c.X, c.A), c.H if s["initial"] == "optimistic" else 0.0), np.zeros((c.X, c.A))
    # epsilon is set at t = 1 and at the first step after each reset
    epsilon, last = min(1, s["scale"]), False
    for t, (x, a, y, reset) in enumerate(c.stream, start=1):
        if last:
            epsilon = min(1, s["scale"] / t ** (1 / 3))
        # with probability epsilon any action, else the greedy one
        policy = epsilon / c.A + (1 - epsilon) * np.eye(c.A)[Q.argmax(-1)]
        # alpha = 1 / (1 + updates before)^(4/5)
        alpha = 1 / (1 + n[x, a]) ** 0.8
        n[x, a] += 1
        Q[x, a] = (1 - alpha) * Q[x, a] + alpha * (c.r[x, a] + c.gamma * Q[y].max())
        last = reset
        yield {"t": t, "policy": policy, "Q": Q, "visits": n, "epsilon": epsilon}


def politex(c):
    """In every reset epoch (the last may be cut) the policy, and sum_j q_hat_j before it."""
    total, policy = np.zeros((c.X, c.A)), np.full((c.X, c.A), 1 / c.A)
    returns = {}
    for epochs, (t, epoch) in enumerate(c.epochs(), start=1):
        yield {"t": t, "policy": policy, "total": total}
        # an epoch has ended: what was earned from each of its steps on
        for step, (z, b, _, _) in enumerate(epoch):
            returns.setdefault((z, b), []).append(sum(c.r[x, a] for x, a, _, _ in epoch[step:]))
        if epochs % c.settings["phase"] == 0:
            # q_hat is the mean return, truncated to [0, H]
            for pair, found in returns.items():
                total[pair] += np.clip(np.mean(found), 0, c.H)
            # pi(a | s) ~ exp(eta sum_j q_hat_j(s, a))
            weights = np.exp(c.settings["eta"] * (total - total.max(-1, keepdims=True)))
            policy, returns = weights / weights.sum(-1, keepdims=True), {}


def mdp_e(c):
    """A pair that was never played is worth H."""
    return md_mpi(c, lambda n: np.where(n == 0, c.H, 0.0), first_count=0)


def md_mpi(c, bonus=None, first_count=1):
    """V_k = (T_k)^m V_{k-1}; sweeps=0 sweeps until nothing changes. first_count is N_1; bonus(N) is CB."""
    (n, N), eta, sweeps = counts(c), c.settings["eta"], c.settings.get("sweeps", 0)
    bonus = bonus or (lambda n: c.settings["beta"] / np.sqrt(n))
    regularised = c.settings.get("evaluation") == "regularised"
    n += first_count
    Q, log_pi = np.zeros((c.X, c.A)), np.full((c.X, c.A), -log(c.A))

    def backed_up(V):
        """Pi_H[r + CB + gamma P_hat V], with the data at hand."""
        return np.clip(c.r + bonus(n) + c.gamma * N @ V / np.maximum(n, 1), 0, c.H)

    for t, epoch in c.epochs():
        # pi_k ~ pi_{k-1} exp(eta Q_k)
        before, tilted = log_pi, log_pi + eta * Q
        log_pi = tilted - logsumexp(tilted, axis=-1, keepdims=True)
        pi = np.exp(log_pi)
        penalty = (pi * (log_pi - before)).sum(-1) / eta if regularised else 0.0

        def evaluated(Q, pi=pi, penalty=penalty):
            return np.clip((pi * Q).sum(-1) - penalty, 0, c.H)

        # V_k = (T_k)^m V_{k-1}: the first sweep is in Q_k
        V = evaluated(Q)
        left, change = sweeps - 1, 1.0
        while left > 0 or (sweeps == 0 and change > 1e-13):
            following = evaluated(backed_up(V))
            change, V, left = np.abs(following - V).max(), following, left - 1
        # Q_{k+1}
        Q = backed_up(V)
        yield {"t": t, "policy": pi, "V": V, "Q": Q}
        for x, a, y, _ in epoch:
            n[x, a] += 1
            N[x, a, y] += 1


def o_reps(c):
    """Epoch by epoch: estimate, and minimise the dual by a generic solver."""
    (n, M), pi, eta = counts(c), np.full((c.X, c.A), 1 / c.A), c.settings["eta"]
    for t, epoch in c.epochs():
        # P_hat = N' / n; a pair that was never played stays where it is, with reward 1
        P_hat = np.where(n[..., None] > 0, M / np.maximum(n, 1)[..., None], np.eye(c.X)[:, None])
        reward = np.where(n > 0, c.r, 1.0)
        # mu' = the occupancy of pi_{k-1} under P_hat
        start = (1 - c.gamma) * c.nu0
        nu = np.linalg.solve(np.eye(c.X) - c.gamma * np.einsum("xa,xay->yx", pi, P_hat), start)
        some = nu > 1e-15
        log_mu = np.log(nu[some])[:, None] + np.log(pi[some])

        def dual(V, log_mu=log_mu, reward=reward, P_hat=P_hat, some=some, start=start):
            z = log_mu + eta * (reward + c.gamma * P_hat @ V - V[:, None])[some]
            w = np.zeros((c.X, c.A))
            w[some] = np.exp(z - logsumexp(z))
            flow = c.gamma * np.einsum("xa,xay->y", w, P_hat) - w.sum(-1) + start
            return logsumexp(z) / eta + start @ V, flow

        found = minimize(dual, np.zeros(c.X), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 5000})
        # pi_k ~ mu_k, where mu' reaches
        tilted = np.log(pi) + eta * (reward + c.gamma * P_hat @ found.x)
        pi = np.where(some[:, None], np.exp(tilted - logsumexp(tilted, axis=-1, keepdims=True)), pi)
        yield {"t": t, "policy": pi}
        for x, a, y, _ in epoch:
            n[x, a] += 1
            M[x, a, y] += 1
