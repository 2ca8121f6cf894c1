"""Learners of linear MDPs, and UCRL-VTR and OPPO of mixtures, from their pseudo-code, in plain NumPy: slow, and
independent of the library. What they give is said in `tests.literal.tabular`; of stages, `values` and `greedy` have one
row each.

All samples are stored; at every plan Lambda and all targets are summed up anew. That a determinant has more than
doubled is said with a margin of 1e-10, since one-hot features double exactly.
"""

from itertools import product
from math import ceil, cos, log, pi, sin, sqrt

import numpy as np

from tests.literal.philox import uniform


class Samples:
    """All that was seen, and the ridge regression on what had been seen at the last plan."""

    def __init__(self, c):
        self.phi, self.lam, self.pairs, self.after = c.phi, c.settings["regularization"], [], []

    def gram(self):
        """lambda I + sum phi phi^T, and sum phi e_y^T."""
        d, X = self.phi.shape[-1], len(self.phi)
        F = np.array([self.phi[pair] for pair in self.pairs]).reshape(-1, d)
        return self.lam * np.eye(d) + F.T @ F, F.T @ np.eye(X)[self.after]

    def plan(self):
        self.Lam, moves = self.gram()
        self.m = np.linalg.solve(self.Lam, moves)  # Lambda^{-1} sum phi e_y^T
        inverse, self.determinant = np.linalg.inv(self.Lam), np.linalg.det(self.Lam)
        self.width = np.sqrt(np.maximum(np.einsum("xai,ij,xaj->xa", self.phi, inverse, self.phi), 0))

    def add(self, x, a, y):
        """Whether the determinant has doubled since the last plan."""
        self.pairs.append((x, a))
        self.after.append(y)
        return np.linalg.det(self.gram()[0]) > 2 * self.determinant * (1 + 1e-10)


def stages(c):
    if c.mdp.episode:
        return c.mdp.episode
    return ceil(log(c.H / c.settings["truncation"]) / log(1 / c.gamma))


def passes(c, plan, replans):
    """Plans by `plan`, from the samples and t, where `replans` says so: of doubled, reset and the plays since."""
    D, since, due = Samples(c), 0, True
    for t, (x, a, y, reset) in enumerate(c.stream, start=1):
        if due:
            D.plan()
            Q, V = plan(D, t)
            yield {"t": t, "greedy": np.array(Q[::-1]), "values": V[::-1]}
            since = 0
        since += 1
        due = replans(D.add(x, a, y), reset, since)


def optimistic(c, S, cap):
    """LSVI-UCB: Q_{S-1}, ..., Q_0, and V."""

    def plan(D, t):
        V, Qs, Vs = np.zeros(c.X), [], []
        for _ in range(S):
            Q = np.clip(c.r + c.gamma * c.phi @ (D.m @ V) + c.settings["beta"] * D.width, 0, cap)
            V = Q.max(-1)
            Qs.append(Q)
            Vs.append(V)
        return Qs, Vs

    return plan


def lsvi_ucb(c):
    by_reset = c.settings["replan"] == "reset"
    return passes(c, optimistic(c, stages(c), c.H), lambda doubled, reset, _: reset if by_reset else doubled)


def olsvi_fh(c):
    s, d = c.settings, c.phi.shape[-1]
    B = ceil(max(s["span"] ** 0.5 * c.T**0.25 * d**-0.75, (s["span"] * c.T / d / d) ** (1 / 3)))
    B = min(B, stages(c))
    plan = optimistic(c, B, (1 - c.gamma**B) / (1 - c.gamma))
    return passes(c, plan, lambda _, reset, since: reset or since == B)


def gamma_lscvi_ucb(c):
    def plan(D, t):
        V, Qs, Vs = np.full(c.X, c.H), [], []
        for _ in range(stages(c)):
            m = V.min()
            PV = c.phi @ (D.m @ (V - m)) + m
            Q = np.clip(c.r + c.gamma * (PV + c.settings["beta"] * D.width), 0, c.H)
            V = np.minimum(Q.max(-1), Q.max(-1).min() + 2 * c.settings["span"])
            Qs.append(Q)
            Vs.append(V)
        return Qs, Vs

    return passes(c, plan, lambda doubled, *_: doubled)


def gaussian(key, t, i):
    """Number i of the Gaussians of time t: Box and Muller on the uniform numbers 4, 5, ..., two by two."""
    u, v = uniform(key, t, 4 + i - i % 2), uniform(key, t, 5 + i - i % 2)
    return sqrt(-2 * log(1 - u)) * (cos, sin)[i % 2](2 * pi * v)


def rlsvi(c):
    d, S = c.phi.shape[-1], stages(c)

    def plan(D, t):
        U = np.linalg.cholesky(D.Lam).T  # Lambda = U^T U, and U xi = z
        V, Qs, Vs = np.zeros(c.X), [], []
        for h in range(S - 1, -1, -1):
            z = [c.settings["sigma"] * gaussian(c.key, t, h * d + j) for j in range(d)]
            w = c.gamma * D.m @ V + np.linalg.solve(U, z)
            Q = np.clip(c.r + c.phi @ w, 0, c.H)
            V = Q.max(-1)
            Qs.append(Q)
            Vs.append(V)
        return Qs, Vs

    return passes(c, plan, lambda _, reset, since: reset)


def in_phases(c, plan):
    """A plan from the samples as every phase of a doubled determinant begins."""
    D, doubled = Samples(c), True
    for t, (x, a, y, _) in enumerate(c.stream, start=1):
        if doubled:
            D.plan()
            yield {"t": t} | plan(D)
        doubled = D.add(x, a, y)


def fixed_point_lsvi(c):
    """The policy and V of the rounds that settle."""
    unsettled = 0

    def plan(D):
        nonlocal unsettled
        J, settled, u = np.zeros(c.X), False, 0
        while not settled and u < c.settings["rounds"]:
            G = 1 - c.r + c.gamma * c.phi @ (D.m @ J) - c.settings["alpha"] * D.width
            then = np.clip(G.min(-1), 0, c.H)
            settled = np.abs(then - J).max() <= c.settings["tolerance"]
            J, u = then, u + 1
        unsettled += not settled
        return {"unsettled": unsettled} | ({"greedy": -G, "V": c.H - J} if settled else {})

    return in_phases(c, plan)


def fopo(c):
    """The largest gain of all policies, and what solves the equations at its b."""
    beta, every, s = c.settings["beta"], np.arange(c.X), np.eye(c.X)

    def plan(D):
        K, top, b = c.phi @ D.m, -1.0, None
        for policy in product(range(c.A), repeat=c.X):  # F(pi) = <y, r_pi> + beta gamma ||phi_pi^T y||
            y = np.linalg.solve((s - c.gamma * K[every, policy]).T, c.nu0)
            y /= y.sum()
            g = y @ c.phi[every, policy]
            size = sqrt(g @ np.linalg.solve(D.Lam, g))
            F = y @ c.r[every, policy] + beta * c.gamma * size
            if top + 1e-12 < F:
                top, b = F, beta * np.linalg.solve(D.Lam, g) / size
        v = np.zeros(c.X)
        for _ in range(2000):  # relative value iteration
            Q = c.r + c.gamma * (K @ v + c.phi @ b)
            J = c.nu0 @ Q.max(-1)
            v = Q.max(-1) - J
        assert abs(J - top) < 1e-9
        return {"greedy": Q, "J": J, "w": D.m @ v + b, "b": b}

    return in_phases(c, plan)


def rmax_ravi_ucb(c):
    """pi_k, V_k and Q_{k+1} as every epoch begins."""
    s, omega, D, doubled, last = c.settings, c.settings["threshold"], Samples(c), True, True
    for t, (x, a, y, reset) in enumerate(c.stream, start=1):
        if doubled:  # a phase: freeze Lambda and M; pi = uniform, V = 0
            D.plan()
            CB = s["beta"] * D.width
            hard = s["ascension"] == "hard"
            up = 1.0 * (omega < CB) if hard else 1 / (1 + np.exp(-max(1.0, log(c.T)) * (CB / omega - 1)))
            policy, Q = np.full((c.X, c.A), 1 / c.A), np.zeros((c.X, c.A))
        if doubled or last:  # an epoch
            V = np.log((policy * np.exp(s["eta"] * Q)).sum(-1)) / s["eta"]
            policy = policy * np.exp(s["eta"] * (Q - V[:, None]))
            Q = (1 - up) * (c.r + CB + c.gamma * c.phi @ (D.m @ V)) + up * c.H
            yield {"t": t, "policy": policy, "V_up": V, "Q_up": Q, "ascent": up}
        doubled, last = D.add(x, a, y), reset


def mdp_exp2(c):
    """The policy as every epoch begins."""
    s, total, epochs, samples = c.settings, np.zeros(c.phi.shape[-1]), 0, []
    for t, epoch in c.epochs():
        if epochs == s["phase"]:
            F, G = map(np.array, zip(*samples, strict=True))
            total = total + np.linalg.solve(s["regularization"] * np.eye(len(total)) + F.T @ F, F.T @ G)
            epochs, samples = 0, []
        z = s["eta"] * c.phi @ total
        weights = np.exp(z - z.max(-1, keepdims=True))
        yield {"t": t, "policy": weights / weights.sum(-1, keepdims=True)}
        rewards = [c.r[x, a] for x, a, _, _ in epoch]
        samples += [(c.phi[x, a], sum(rewards[i:])) for i, (x, a, _, _) in enumerate(epoch)]
        epochs += 1


class Targets:
    """M and w of the regression on values. With a discount, episodes are epochs between resets, and ages beyond the
    stages count as the last one. One regression serves all stages."""

    def __init__(self, c):
        self.c, self.S, self.lam, d = c, c.settings["stages"], c.settings["regularization"], c.psi.shape[-1]
        self.M, self.w = self.lam * np.eye(d), np.zeros(d)

    def estimate(self):
        """theta, beta, and ln det M."""
        s, log_det = self.c.settings, np.linalg.slogdet(self.M)[1]
        grown = log_det - len(self.w) * log(self.lam)
        beta = self.c.H / 2 * sqrt(grown + 2 * log(1 / s["delta"])) + sqrt(self.lam) * s["parameter_bound"]
        return np.linalg.solve(self.M, self.w), s["scale"] * beta, log_det

    def backward(self, theta, beta, value, most):
        """For h = S - 1, ..., 0: Q_h, at most most(h), and V_h = value(h, Q_h); V_S = 0."""
        c = self.c
        V, Q = np.zeros((self.S + 1, c.X)), np.empty((self.S, c.X, c.A))
        for h in range(self.S - 1, -1, -1):
            X_h = np.einsum("xayj,y->xaj", c.psi, V[h + 1])
            wide = np.sqrt(np.maximum(np.einsum("xai,ij,xaj->xa", X_h, np.linalg.inv(self.M), X_h), 0))
            Q[h] = np.clip(c.r + c.gamma * (X_h @ theta + beta * wide), 0, most(h))
            V[h] = value(h, Q[h])
        return V, Q

    def add(self, V, epoch):
        for age, (x, a, y, _) in enumerate(epoch):
            v = V[min(age, self.S - 1) + 1]
            f = v @ self.c.psi[x, a]
            self.M, self.w = self.M + np.outer(f, f), self.w + v[y] * f


def ucrl_vtr(c):
    D, planned = Targets(c), -np.inf
    for t, epoch in c.epochs():
        theta, beta, log_det = D.estimate()
        if c.settings["replan"] == "reset" or log_det > planned + log(2):
            planned, kept = log_det, {"theta": theta, "beta": beta}
            V, Q = D.backward(theta, beta, lambda h, Q: Q.max(-1), lambda h: c.H)
        yield {"t": t, "greedy": Q, "V": V} | kept
        D.add(V, epoch)


def oppo(c):
    D = Targets(c)
    Q = np.zeros((D.S, c.X, c.A))
    log_pi = np.full(Q.shape, -log(c.A))
    for t, epoch in c.epochs():
        # pi_h^k(.|x) proportional to pi_h^{k-1}(.|x) exp(alpha Q_h^{k-1}(x, .))
        log_pi = log_pi + c.settings["alpha"] * Q
        policy = np.exp(log_pi - log_pi.max(-1, keepdims=True))
        policy /= policy.sum(-1, keepdims=True)
        # Lambda, w from the episodes before k;  for h = H, ..., 1:  Gamma, Q_h^k, V_h^k = <Q_h^k, pi_h^k>
        theta, beta, _ = D.estimate()
        value, most = lambda h, Q, pi=policy: (pi[h] * Q).sum(-1), lambda h: D.S - h if c.mdp.episode else c.H
        V, Q = D.backward(theta, beta, value, most)
        yield {"t": t, "theta": theta, "beta": beta, "V": V, "Q": Q, "policy": policy}
        D.add(V, epoch)
