"""Algorithm 2 (RAVI-UCB for tables) on RiverSwim(6), from the start to the exact regret, in NumPy alone.

Moulin and Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023. A test holds that it is the run
ravi.run("ravi-ucb,scale=0.003,step_scale=100", "riverswim/6,discount=0.9", steps=5000, seeds=1).
"""

import numpy as np

X, A, GAMMA, H = 6, 2, 0.9, 10.0
T, SCALE, STEP_SCALE, KEY = 5000, 0.003, 100, 0  # with both scales 1, its constants are those of the theory


def riverswim():
    """P(y | x, a), r(x, a) and nu_0: left is sure, right swims against the current."""
    P, r, nu0 = np.zeros((X, A, X)), np.zeros((X, A)), np.eye(X)[0]
    for x in range(X):
        P[x, 0, max(x - 1, 0)] = 1
    P[0, 1, :2], P[X - 1, 1, X - 2 :] = (0.4, 0.6), (0.4, 0.6)
    for x in range(1, X - 1):
        P[x, 1, x - 1 : x + 2] = 0.05, 0.6, 0.35
    r[0, 0], r[X - 1, 1] = 0.005, 1
    return P, r, nu0


def uniforms(t):
    """The four random numbers of step t: reset, action, successor, state after a reset (Philox4x64-10)."""
    words = np.random.Philox(counter=(t - 1) % 2**256, key=KEY).random_raw(4)  # it counts on before it draws
    return (words >> np.uint64(11)) * 2.0**-53


def draw(p, u):
    """An index of a distribution p: the first at which the partial sums exceed u."""
    return int(np.flatnonzero((p > 0) & (u >= np.cumsum(p) - p))[-1])


def value(P, r, policy):
    """V^pi: the solution of V = r_pi + gamma P_pi V."""
    return np.linalg.solve(np.eye(X) - GAMMA * np.einsum("xa,xay->xy", policy, P), (policy * r).sum(1))


def optimum(P, r):
    """V* by policy iteration."""
    V, before = np.zeros(X), None
    while before is None or (before < V).any():
        V, before = value(P, r, np.eye(A)[(r + GAMMA * P @ V).argmax(1)]), V
    return V


def ravi_ucb():
    """Algorithm 2. Returns the first step and the policy of each epoch, and the regret."""
    P, r, nu0 = riverswim()
    eta = STEP_SCALE * np.sqrt(2 * np.log(A) / (H**2 * T))  # Theorem 4.1
    beta = SCALE * 8 * H * np.sqrt(X * np.log(X * A * T * T))  # Lemma 5.1 with delta = 1 / T
    M, N = np.zeros((X, A, X)), np.ones((X, A))  # N', N
    pi, Q = np.full((X, A), 1 / A), np.zeros((X, A))  # pi_0, Q_1 = E V_0
    best, regret, epochs, t = (1 - GAMMA) * nu0 @ optimum(P, r), 0.0, [], 1
    x = draw(nu0, uniforms(0)[3])
    while t <= T:
        T_k = t
        V = np.log((pi * np.exp(eta * Q)).sum(1)) / eta  # V_k
        pi = pi * np.exp(eta * (Q - V[:, None]))  # pi_k
        CB = beta / np.sqrt(N)  # BONUS
        Q = np.clip(r + CB + GAMMA * (M / N[..., None]) @ V, 0, H)  # Q_{k+1}
        reset = False
        while not reset and t <= T:
            u_reset, u_action, u_successor, u_initial = uniforms(t)
            a = draw(pi[x], u_action)
            y = draw(P[x, a], u_successor)
            M[x, a, y], N[x, a] = M[x, a, y] + 1, N[x, a] + 1  # ADD
            reset = u_reset < 1 - GAMMA
            x, t = draw(nu0, u_initial) if reset else y, t + 1
        regret += (t - T_k) * (best - (1 - GAMMA) * nu0 @ value(P, r, pi))
        epochs.append((T_k, pi))
    return epochs, regret


if __name__ == "__main__":
    epochs, regret = ravi_ucb()
    print(f"regret {regret:.6f} after {T:,} steps in {len(epochs)} epochs")
