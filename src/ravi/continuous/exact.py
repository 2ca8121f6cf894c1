"""The optimum and the values of policies: the equations of the nodes, solved to a stated error.

    V(x_j) = max_a r(x_j, a) + gamma sum_l P(x_l | x_j, a) V(x_l)

An MDP on the nodes; its solution at every other x is one more backup (Nystrom's extension). What is left is the error
of the quadrature, which falls with the number of nodes: compare a grid with a finer one.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.continuous import quadrature
from ravi.continuous.core import ContinuousMDP
from ravi.continuous.quadrature import Grid
from ravi.core import Array

DIRECT = 1500  # nodes up to which a policy's equations are solved by elimination
TOLERANCE = 1e-10  # of values, in parts of H
MOST_ITERATIONS = 100  # of policy iteration, which takes about ten


class Reference(NamedTuple):
    mdp: ContinuousMDP
    grid: Grid
    transitions: Array  # P(x_l | x_j, a)   (m, A, m)
    rewards: Array  # (m, A)
    initial: Array  # nu_0                  (m,)
    normalisation: float  # the largest |Z - 1|


class Optimum(NamedTuple):
    V: Array  # (m,)
    policy: Array  # greedy   (m, A)
    optimum: float  # (1 - gamma) <nu_0, V>
    error: float  # of every V(x_j), at most


def reference(mdp: ContinuousMDP, *sizes: int, tolerance: float = quadrature.TOLERANCE) -> Reference:
    """The truth on a grid of these sizes."""
    on = quadrature.grid(mdp.problem, *sizes)
    P, off = quadrature.kernel(mdp, on, on.nodes)
    nu0, off_initial = quadrature.initial(mdp.problem, on)
    worst = quadrature.require_resolution(mdp.problem, on, max(off, off_initial), tolerance)
    return Reference(mdp, on, P, quadrature.rewards(mdp.problem, on.nodes), nu0, worst)


def backup(ref: Reference, V: Array) -> Array:
    """r + gamma P V at the nodes   (m, A)."""
    m, A = ref.rewards.shape
    return ref.rewards + ref.mdp.problem.discount * (ref.transitions.reshape(m * A, m) @ V).reshape(m, A)


def extend(ref: Reference, V: Array, x: Any) -> Array:
    """r + gamma P V at any states   (N, A)."""
    problem = ref.mdp.problem
    parts = np.array_split(quadrature.states(problem, x), 1 + len(x) // 512)
    PV = [quadrature.kernel(ref.mdp, ref.grid, one)[0] @ V for one in parts if len(one)]
    return quadrature.rewards(problem, x) + problem.discount * np.concatenate(PV)


def value_of(ref: Reference, policy: Array, guess: Array | None = None) -> Array:
    """V^pi at the nodes   (m,)."""
    gamma, (m, A) = ref.mdp.problem.discount, ref.rewards.shape
    validation.check_shape(np.asarray(policy), (m, A), "policy", "(m, A)")
    r = (policy * ref.rewards).sum(-1)
    P = np.einsum("ja,jal->jl", policy, ref.transitions, optimize=False)
    if m <= DIRECT:
        return np.linalg.solve(np.eye(m) - gamma * P, r)
    V = np.zeros(m) if guess is None else np.array(guess)
    most = TOLERANCE * (1 - gamma) * ref.mdp.problem.horizon
    return _krylov(P, r, gamma, V, most)


def _krylov(P: Array, r: Array, gamma: float, V: Array, most: float) -> Array:
    """V = r + gamma P V by GMRES, until every residual is at most `most`."""
    from scipy.sparse.linalg import LinearOperator, gmres

    operator = LinearOperator(P.shape, matvec=lambda v: v - gamma * (P @ v), dtype=np.float64)
    for _ in range(50):
        residual = r + gamma * (P @ V) - V
        if np.abs(residual).max() <= most:
            break
        step, _ = gmres(operator, residual, rtol=1e-6, restart=30, maxiter=5)
        V = V + step
    return V


def return_of(ref: Reference, policy: Array) -> float:
    """(1 - gamma) <nu_0, V^pi>."""
    return float((1 - ref.mdp.problem.discount) * ref.initial @ value_of(ref, policy))


def optimal(ref: Reference) -> Optimum:
    """By policy iteration, until the greedy policy is the one that was evaluated."""
    gamma, H = ref.mdp.problem.discount, ref.mdp.problem.horizon
    V, played = np.zeros(len(ref.rewards)), None
    for _ in range(MOST_ITERATIONS):
        Q = backup(ref, V)
        error = float(np.abs(Q.max(-1) - V).max()) * H  # |V - V*| <= H |V - T V|
        greedy = Q.argmax(-1)
        if error <= 4 * TOLERANCE * H or (played is not None and (greedy == played).all()):
            break
        V, played = value_of(ref, np.eye(Q.shape[1])[greedy], V), greedy
    return Optimum(V, np.eye(Q.shape[1])[greedy], float((1 - gamma) * ref.initial @ V), error)
