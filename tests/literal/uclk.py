"""UCLK, UCLK+ and UCLK-C, line by line: one run, dense arrays, no compiled code, nothing of the library.

Each reads a stream of (x_t, a_t, y_t), checks its actions, plans where its own determinant doubles, and gives the
phases: (t_k, theta_hat, Q_k, V_k). The inner maximum goes over all supports, each by linear algebra: slow, and exact
for small d.
"""

from itertools import product

import numpy as np


def best_of_simplex(Lam, centre, beta, phi):
    """max <theta, phi> of each row phi, over the simplex within beta of the centre; at the nearest point where there is
    none."""
    d, square = len(centre), beta**2
    on = np.array([*product([0.0, 1.0], repeat=d)])[1:]  # every support
    K = np.zeros((len(on), d + 1, d + 1))  # off the support, theta = 0
    K[:, :d, :d] = Lam * on[:, :, None] * on[:, None] + np.eye(d) * (1 - on)[:, :, None]
    K[:, :d, d] = K[:, d, :d] = on
    # the point of the affine hull that is nearest to the centre, and the way in which <theta, phi> rises
    near = np.linalg.solve(K, np.column_stack([on * (Lam @ centre), np.ones(len(on))])[..., None])[:, :d, 0]
    right = np.zeros((len(on), d + 1, len(phi)))
    right[:, :d] = on[:, :, None] * phi.T
    way = np.linalg.solve(K, right)[:, :d].swapaxes(1, 2)  # (supports, rows, d)
    distance, speed = ((near - centre) @ Lam * (near - centre)).sum(-1)[:, None], (way @ Lam * way).sum(-1)
    rises = (distance < square) & (speed > 1e-14)
    far = np.sqrt(np.where(rises, square - distance, 0) / np.where(rises, speed, 1))
    ends = near[:, None] + far[..., None] * way
    theta = np.concatenate([np.broadcast_to(near[:, None], ends.shape), ends])
    squares = np.concatenate([np.broadcast_to(distance, rises.shape), np.where(rises, square, distance)])
    worth = (theta * phi).sum(-1)
    squares[theta.min(-1) < -1e-10] = np.inf  # not allowed
    inside = squares <= square * (1 + 1e-12)
    nearest = np.take_along_axis(worth, squares.argmin(0)[None], 0)[0]
    return np.where(inside.any(0), np.where(inside, worth, -np.inf).max(0), nearest)


def best_of_all(Lam, centre, beta, phi):
    """max <theta, phi> over the ellipsoid."""
    return centre @ phi + beta * np.sqrt(phi @ np.linalg.solve(Lam, phi))


def best_of_plane(Lam, centre, beta, phi):
    """max <theta, phi> over the part of the ellipsoid where theta sums to 1: for kernels, where all mass is 1."""
    d = len(phi)
    K = np.ones((d + 1, d + 1))
    K[:d, :d], K[d, d] = Lam, 0
    near, way = np.linalg.solve(K, [*(Lam @ centre), 1])[:d], np.linalg.solve(K, [*phi, 0])[:d]
    left, speed = beta**2 - (near - centre) @ Lam @ (near - centre), way @ Lam @ way
    return near @ phi + np.sqrt(max(left, 0) * max(speed, 0))


def backups(mdp, psi, Lam, centre, beta, rounds, best, centred=False):
    """Q = H, then `rounds` backups, with `best` cut to what averages of V can be."""
    X, A, gamma = mdp.states, mdp.actions, mdp.discount
    V = np.full(X, 1 / (1 - gamma))
    for _ in range(rounds):
        Q = np.empty((X, A))
        low = V.min() if centred else 0.0
        for x in range(X):
            for a in range(A):
                future = low + best(Lam, centre, beta, (V - low) @ psi[x, a])
                Q[x, a] = mdp.rewards[x, a] + gamma * min(max(future, V.min()), V.max())
        V = Q.max(1)
    return Q, V


def extended_value_iteration(mdp, psi, Lam, centre, beta, rounds, span=np.inf):
    """psi: (X, A, X, d). Q = H, then `rounds` backups."""
    X, A, gamma = mdp.states, mdp.actions, mdp.discount
    Q = np.full((X, A), 1 / (1 - gamma))
    V = np.full(X, 1 / (1 - gamma))
    for _ in range(rounds):
        best = best_of_simplex(Lam, centre, beta, np.einsum("y,xayi->xai", V, psi).reshape(X * A, -1))
        Q = mdp.rewards + gamma * best.reshape(X, A)
        V = Q.max(1)
        V = np.minimum(V, V.min() + span)
    return Q, V


def dense_features(mdp):
    psi = np.zeros((mdp.states, mdp.actions, mdp.states, mdp.dimension))
    for x in range(mdp.states):
        for a in range(mdp.actions):
            for j, y in enumerate(mdp.successors[x, a]):
                psi[x, a, y] = mdp.features[x, a, j]
    return psi


def uclk(mdp, stream, T, scale, delta, lam, rounds, best=None):
    psi, d, H = dense_features(mdp), mdp.dimension, 1 / (1 - mdp.discount)
    Sigma, b, phases = lam * np.eye(d), np.zeros(d), []
    doubled = True
    for t, (x, a, y) in enumerate(stream, start=1):
        if doubled:
            start = np.linalg.det(Sigma)
            theta = np.linalg.solve(Sigma, b)
            least = lam * (1 - mdp.discount) ** 2
            beta = H * np.sqrt(d * np.log((least + t * d) / (delta * least))) + np.sqrt(lam * d)
            if best is None:
                Q, V = extended_value_iteration(mdp, psi, Sigma, theta, scale * beta, rounds)
            else:
                Q, V = backups(mdp, psi, Sigma, theta, scale * beta, rounds, best)
            phases.append((t, theta, Q, V))
        assert a == Q[x].argmax(), t
        phi = V @ psi[x, a]
        Sigma = Sigma + np.outer(phi, phi)
        b = b + phi * V[y]
        doubled = np.linalg.det(Sigma) > 2 * start
    return phases


def uclk_plus(mdp, stream, T, scale, delta, lam, rounds, R, B, B_phi, span=np.inf, centred=False, best=None):
    psi, d = dense_features(mdp), mdp.dimension
    Sigma, b = lam * np.eye(d), np.zeros(d)  # hat
    Sigma2, b2 = lam * np.eye(d), np.zeros(d)  # tilde
    phases, doubled, sigmas = [], True, []
    for t, (x, a, y) in enumerate(stream, start=1):
        log1, log2 = np.log(1 + t * B_phi**2 / lam), np.log(4 * t**2 / delta)
        theta, theta2 = np.linalg.solve(Sigma, b), np.linalg.solve(Sigma2, b2)
        if doubled:
            start = np.linalg.det(Sigma)
            beta_hat = 8 * np.sqrt(d * log1 * log2) + 4 * np.sqrt(d) * log2 + np.sqrt(lam) * B
            if best is None:
                Q, V = extended_value_iteration(mdp, psi, Sigma, theta, scale * beta_hat, rounds, span)
            else:
                Q, V = backups(mdp, psi, Sigma, theta, scale * beta_hat, rounds, best, centred)
            phases.append((t, theta, Q, V))
        assert a == Q[x].argmax(), t
        W = V - V.min() if centred else V
        f, g = W @ psi[x, a], W**2 @ psi[x, a]
        beta_check = 8 * d * np.sqrt(log1 * log2) + 4 * np.sqrt(d) * log2 + np.sqrt(lam) * B
        wide = np.log(1 + t * B_phi**2 * R**4 / (d * lam))
        beta_tilde = 8 * R**2 * np.sqrt(d * wide * log2) + 4 * R**2 * log2 + np.sqrt(lam) * B
        E1 = min(R**2, 2 * R * scale * beta_check * np.sqrt(f @ np.linalg.solve(Sigma, f)))
        E2 = min(R**2, scale * beta_tilde * np.sqrt(g @ np.linalg.solve(Sigma2, g)))
        variance = np.clip(g @ theta2, 0, R**2) - np.clip(f @ theta, 0, R) ** 2
        sigma2 = max(R**2 / d, variance + E1 + E2)
        sigmas.append(sigma2)
        Sigma, b = Sigma + np.outer(f, f) / sigma2, b + f * W[y] / sigma2
        Sigma2, b2 = Sigma2 + np.outer(g, g), b2 + g * W[y] ** 2
        doubled = np.linalg.det(Sigma) > 2 * start
    return phases, sigmas, Sigma
