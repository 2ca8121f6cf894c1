"""The average reward without resets: gain and bias of a policy and of the best one, each with a certified error.

A stationary policy has a gain g and a bias h, by state: with P* the limit of the averages of the powers of P_pi,

    g = P_pi g,      g + h = r_pi + P_pi h,      P* h = 0.

g is constant on a recurrent class, and a policy may have several. Where the best gain g* does not depend on the start,
as in every weakly communicating MDP, g* + h = L h for some h, with L h = max_a {r + P h}.

Certificates. For any h let delta = L h - h. Then, for every start among states that no action leaves together,

    min delta <= g of the greedy policy <= g* <= max delta                     (Puterman 2005, Theorem 8.5.5)

since a policy has g = P*_pi r_pi = P*_pi (r_pi + P_pi h - h). For one policy the same holds on each of its recurrent
classes with T_pi in place of L. An entry of delta is computed to within rho = grain (1 + max |h|), as in
`ravi.planning.certificates`, and rho is part of every error.

The optimum is found by modified policy iteration on the lazy chain (P + I) / 2, which has the same biases, half the
gain and no period, with a discount so close to one that it is not seen in the digits; where that does not settle, or
where there are few states, by policy iteration for gain, bias, and the next term of the Laurent series, which makes the
bias that of a bias-optimal policy (Puterman 2005, Sections 9.2 and 10.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Floats, Ints, an_mdp
from ravi.planning.bellman import deterministic, expect_with
from ravi.planning.certificates import EPS, Tables, centre, tables
from ravi.planning.methods import last_sweep
from ravi.planning.sweeps import bellman_sweep
from ravi.validation import policy_table

NEAR = 1 - 2.0**-40  # the discount of the lazy chain
FEW = 400  # states, up to which policies are solved for at once
TIE = 1e-10  # of what values differ by: actions that differ by less are as good
ROUNDS = 200  # of policy iteration, at most


@dataclass(frozen=True, eq=False, repr=False)
class AverageSolution:
    """The best gain, a bias and a policy, each with a bound on its error that rounding does not break.

    Attributes
    ----------
    gain
        g*, the best average reward a step from every start that nu_0 leads to.
    gain_error
        At least |gain - g*|, for all these starts.
    bias
        h with g* + h = L h: that of a bias-optimal policy where policies were solved for, of shape (X,).
    policy
        A deterministic policy, of shape (X, A).
    policy_error
        At least g* less the gain of the policy.
    undetermined
        Why the error is large, where it is; nothing where it is not.
    name
        The name of the MDP.
    """

    gain: float
    gain_error: float
    bias: Floats
    policy: Floats
    policy_error: float
    undetermined: str
    name: str

    def __repr__(self) -> str:
        words = f"gain {self.gain:.12g} ± {self.gain_error:.1g}, policy within {self.policy_error:.1g} of optimal"
        return f"<AverageSolution of {self.name}: {words}{'; ' * bool(self.undetermined)}{self.undetermined}>"


@dataclass(frozen=True, eq=False, repr=False)
class AverageEvaluation:
    """The gain and the bias of a policy, by state.

    Attributes
    ----------
    gain
        g(x), of shape (X,).
    gain_error
        At least ||gain - g||, in sup norm.
    bias
        h(x), with P* h = 0, of shape (X,).
    recurrent
        The number of the recurrent class of each state, -1 where it is transient, of shape (X,).
    """

    gain: Floats
    gain_error: float
    bias: Floats
    recurrent: Ints

    def __repr__(self) -> str:
        low, high = self.gain.min(), self.gain.max()
        words = f"gain {low:.12g}" if high - low <= 2 * self.gain_error else f"gain from {low:.6g} to {high:.6g}"
        return f"<AverageEvaluation: {words} ± {self.gain_error:.1g}, {self.recurrent.max() + 1} recurrent classes>"


def solve_average(mdp: MDP, tol: float = 1e-10) -> AverageSolution:
    """The best average reward of `mdp` without resets, as closely as `tol` or float64 allow.

    Parameters
    ----------
    mdp : MDP
        The MDP; its discount is not used.
    tol
        The error of the gain that is aimed at.

    Returns
    -------
    AverageSolution

    Examples
    --------
    >>> import ravi
    >>> from ravi.planning.average import solve_average
    >>> round(solve_average(ravi.mdp("riverswim/6")).gain, 6)
    0.428622
    """
    mdp = an_mdp(mdp)
    arrays = tables(mdp, average=True)._replace(discount=1.0)
    tol = validation.positive(tol, "tol")
    starts = reachable(arrays, mdp.initial)
    sweep = last_sweep(_lazy(arrays), tol / (2 * (1 - NEAR)), "modified_policy_iteration", most=ROUNDS)
    W, actions = sweep.TW.copy(), sweep.greedy.copy()
    centre(W)
    Q, low, high, rho = _backup(arrays, W, starts)
    if mdp.states <= FEW or (high - low) / 2 + rho > max(tol, 2 * rho):
        actions, W = _iterate_policies(arrays, actions)
        Q, low, high, rho = _backup(arrays, W, starts)
    policy, error, why = deterministic(actions, mdp.actions), (high - low) / 2 + rho, ""
    if error > tol:
        gain, where = evaluate_chains(arrays, policy).gain, np.flatnonzero(starts)
        first, last = where[gain[where].argmin()], where[gain[where].argmax()]
        if gain[last] - gain[first] > error / 2:
            why = f"the gain depends on the start: {gain[first]:.6g} from state {first}, {gain[last]:.6g} from {last}"
        else:
            why = f"tolerance {tol:.1g} is not met; rounding alone makes {rho:.1e}"
    played = (Q[np.arange(len(Q)), actions] - W)[starts].min()
    return AverageSolution(
        gain=(low + high) / 2, gain_error=error, bias=W, policy=policy,
        policy_error=high - float(played) + 2 * rho, undetermined=why, name=mdp.name,
    )  # fmt: skip


def evaluate_average(mdp: MDP, policy: Any) -> AverageEvaluation:
    """The gain and the bias of one policy (X, A), by state; it may have several recurrent classes.

    Parameters
    ----------
    mdp : MDP
        The MDP; its discount is not used.
    policy
        pi(a | x), of shape (X, A).

    Returns
    -------
    AverageEvaluation

    Examples
    --------
    >>> import numpy as np
    >>> import ravi
    >>> from ravi.planning.average import evaluate_average
    >>> evaluate_average(ravi.mdp("riverswim/6"), np.full((6, 2), 0.5))
    <AverageEvaluation: gain 0.00..., 1 recurrent classes>
    """
    mdp = an_mdp(mdp)
    table = policy_table(policy, mdp)
    if table.ndim != 2:
        raise validation.InputError(f"policy has shape {table.shape}; in the average reward it is one table (X, A)")
    return evaluate_chains(tables(mdp, average=True)._replace(discount=1.0), table)


# The chain of a policy.


class Chains(NamedTuple):
    """A policy's chain as a sparse matrix, and its recurrent classes."""

    P: Any  # (X, X), csr
    labels: Ints  # of the recurrent class, -1 where a state is transient   (X,)


def evaluate_chains(arrays: Tables, policy: Array) -> AverageEvaluation:
    """`evaluate_average` of the tables of an MDP."""
    chains = _chains(arrays, policy)
    r = (policy * arrays.rewards).sum(-1)
    gain, bias = _values(chains, r)
    grain = arrays.grain + EPS * policy.shape[1] + float(np.abs(policy.sum(-1) - 1).max())
    rho = grain * (1 + float(np.abs(bias).max()))
    moved, error = r + chains.P @ bias - bias, 0.0
    for k in range(chains.labels.max() + 1):
        own = moved[chains.labels == k]
        middle = (own.min() + own.max()) / 2
        gain[chains.labels == k] = middle
        error = max(error, (own.max() - own.min()) / 2 + rho)
    there = chains.labels < 0
    if there.any():
        ahead = _transient_solver(chains.P, there)(np.ones(there.sum()))  # steps until a class is reached, about
        less = ahead - chains.P[there][:, there] @ ahead  # at least 1, but for rounding
        off = np.abs(chains.P @ gain - gain)[there].max() + grain
        error += off * ahead.max() / max(float(less.min()) - grain * (1 + ahead.max()), 1e-300)
    return AverageEvaluation(gain, float(error), bias, chains.labels)


def _chains(arrays: Tables, policy: Array) -> Chains:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    X = len(arrays.rewards)
    rows, columns, weights = _moves(arrays, policy[..., None] * arrays.transitions)
    P = sparse.csr_array((weights, (rows, columns)), (X, X))
    _, component = connected_components(P, directed=True, connection="strong")
    leaves = np.zeros(component.max() + 1, np.bool_)
    leaves[component[rows[component[rows] != component[columns]]]] = True
    number = np.where(leaves, -1, np.cumsum(~leaves) - 1)
    return Chains(P, number[component].astype(np.int64))


def _moves(arrays: Tables, weights: Array) -> tuple[Ints, Ints, Floats]:
    """From where, to where and with what weight, for the weights (X, A, B) that are positive."""
    flat, rows = weights.ravel(), np.repeat(np.arange(len(weights)), weights[0].size)
    there = flat > 0
    return rows[there], arrays.successors.ravel().astype(np.int64)[there], flat[there]


def _values(chains: Chains, r: Array) -> tuple[Floats, Floats]:
    """g and h of a chain with rewards r: each recurrent class by itself, then the transient states."""
    P, labels = chains
    gain, bias = np.zeros((2, len(r)))
    for k in range(labels.max() + 1):
        own = np.flatnonzero(labels == k)
        gain[own], bias[own] = _class_values(P[own][:, own], r[own])
    there = labels < 0
    if there.any():
        solve, out = _transient_solver(P, there), P[there][:, ~there]
        gain[there] = solve(out @ gain[~there])
        bias[there] = solve(r[there] - gain[there] + out @ bias[~there])
    return gain, bias


def _class_values(P: Any, r: Array) -> tuple[float, Floats]:
    """g and h of one recurrent class, with mu h = 0. Few states are taken out one by one; of many, a factorisation of
    h - P h + g = r, h(0) = 0."""
    from scipy import sparse

    n = len(r)
    if n <= FEW:
        mu = _stationary(P.toarray())
        order = np.argsort(-mu)  # h is 0 where the chain is most: what it takes to get there is short, and cancels less
        G, h, steps = P.toarray()[np.ix_(order, order)], r[order], np.ones(n)
        leave = _eliminate(G, np.zeros(n))
        for k in range(n - 1, 0, -1):  # what is earned, and how long it takes, among the states that are left
            h[:k] += G[:k, k] * h[k]
            steps[:k] += G[:k, k] * steps[k]
        gain, h[0] = h[0] / steps[0], 0.0
        for k in range(1, n):
            h[k] = (h[k] - steps[k] * gain + G[k, 1:k] @ h[1:k]) / leave[k]
        h[order] = h.copy()
    else:
        one, first = np.ones((n, 1)), np.zeros((1, n))
        first[0, 0] = 1.0
        solve = _solver(sparse.block_array([[sparse.eye_array(n) - P, one], [first, None]]).tocsc())
        *h, gain = solve(np.append(r, 0.0))
        mu = solve(np.append(np.zeros(n), 1.0), "T")[:n]
    return float(gain), np.array(h) - mu @ h / mu.sum()


def _stationary(G: Array) -> Floats:
    """The stationary distribution of a recurrent class, up to its sum; G is written to."""
    mu = np.ones(len(G))
    _eliminate(G, np.zeros(len(G)))
    for k in range(1, len(G)):
        mu[k] = mu[:k] @ G[:k, k]
    return mu


def _transient_solver(P: Any, there: Array) -> Any:
    """What solves (I - P) v = b on the transient states, `there`."""
    from scipy import sparse

    Q, n = P[there][:, there], int(there.sum())
    if n > FEW:
        return _solver((sparse.eye_array(n) - Q).tocsc())
    G = Q.toarray()
    leave = _eliminate(G, P[there][:, ~there].sum(-1))

    def solve(b: Array) -> Any:
        v = b.copy()
        for k in range(n - 1, 0, -1):
            v[:k] += G[:k, k] * v[k]
        for k in range(n):
            v[k] = (v[k] + G[k, :k] @ v[:k]) / leave[k]
        return v

    return solve


def _eliminate(G: Array, leak: Array) -> Array:
    """States are taken out of the chain G one by one, last first, by sums of nonnegative numbers only (Grassmann,
    Taksar and Heyman 1985), in place: the probability not to return, among the states that are left   (n,)."""
    leave = np.empty(len(G))
    for k in range(len(G) - 1, -1, -1):
        leave[k] = leak[k] + G[k, :k].sum()
        if k:
            G[:k, k] /= leave[k]
            leak[:k] += G[:k, k] * leak[k]
            G[:k, :k] += np.outer(G[:k, k], G[k, :k])
    return leave


def _solver(system: Any) -> Any:
    """What solves a sparse system, with one step of refinement."""
    from scipy.sparse.linalg import splu

    factors = splu(system)

    def solve(b: Array, trans: str = "N") -> Any:
        found, matrix = factors.solve(b, trans=trans), system if trans == "N" else system.T
        return found + factors.solve(b - matrix @ found, trans=trans)

    return solve


def expected_sum(arrays: Tables, actions: Ints, s: int, r: Array) -> Floats:
    """The expected sum of r (X,) until state s is reached, by actions (X,) from which it is, or infinite   (X,)."""
    chains = _chains(arrays, deterministic(actions, arrays.transitions.shape[1]))
    others, ends = np.arange(len(r)) != s, np.arange(len(r)) == s
    labels = chains.labels
    total = np.zeros(len(r))
    if (labels[others] == labels[s]).all() or (labels[labels >= 0] == labels[s]).all():
        total[others] = _transient_solver(chains.P, others)(r[others])
    else:
        total[~ends] = np.inf
    return total


# Policy iteration.


def _iterate_policies(arrays: Tables, actions: Ints) -> tuple[Ints, Floats]:
    """The actions (X,) and the bias of a policy that is best in gain, then in bias; or where rounding ends it."""
    (X, A, _), states = arrays.transitions.shape, np.arange(len(actions))
    actions = actions.copy()
    for _ in range(ROUNDS):
        policy = deterministic(actions, A)
        chains, r = _chains(arrays, policy), arrays.rewards[states, actions]
        gain, bias = _values(chains, r)
        better = _improve(arrays, actions, gain, np.zeros((X, A)), np.ones((X, A), np.bool_))
        if better is None:
            ties = _ties(arrays, actions, gain, np.zeros((X, A)))
            better = _improve(arrays, actions, bias, arrays.rewards, ties)
        if better is None:
            ties &= _ties(arrays, actions, bias, arrays.rewards)
            _, next_term = _values(chains, -bias)
            better = _improve(arrays, actions, next_term, np.zeros((X, A)), ties)
        if better is None:
            break
        actions = better
    return actions, bias


def expected(arrays: Tables, V: Array) -> Array:
    """P V   (X, A)."""
    return expect_with(arrays.successors, arrays.transitions, V)


def _ties(arrays: Tables, actions: Ints, V: Array, r: Array) -> Array:
    """Which actions are as good as those at hand by r + P V, but for rounding: (X, A)."""
    Q = r + expected(arrays, V)
    own = Q[np.arange(len(Q)), actions]
    close: Array = own[:, None] - Q <= TIE * _scale(arrays, V)[:, None]
    return close


def _improve(arrays: Tables, actions: Ints, V: Array, r: Array, among: Array) -> Ints | None:
    """The best of these actions by r + P V, where it is better than that at hand; None where it is nowhere."""
    ahead = r + expected(arrays, V)
    Q, rows = np.where(among, ahead, -np.inf), np.arange(len(ahead))
    moved = Q.max(-1) > ahead[rows, actions] + TIE * _scale(arrays, V)
    return np.where(moved, Q.argmax(-1), actions) if moved.any() else None


def _scale(arrays: Tables, V: Array) -> Array:
    """How much values differ where a state leads, and 1: what rounding is compared with   (X,)."""
    ahead = np.where(arrays.transitions > 0, V[arrays.successors] - V[:, None, None], 0.0)
    found: Array = 1 + np.abs(ahead).max((1, 2))
    return found


# Backups.


def _backup(arrays: Tables, W: Array, starts: Array) -> tuple[Array, float, float, float]:
    """Q = r + P W; min and max of L W - W over the starts, and rho."""
    X, A, _ = arrays.transitions.shape
    Q, TW, greedy = np.empty((X, A)), np.empty(X), np.empty(X, np.int64)
    _, _, size = bellman_sweep(0, X, arrays, W, Q, TW, greedy)
    delta = (TW - W)[starts]
    return Q, float(delta.min()), float(delta.max()), arrays.grain * (1 + float(size))


def _lazy(arrays: Tables) -> Tables:
    """Half of the moves stay: the same biases and half the gain."""
    X, A, _ = arrays.transitions.shape
    own = np.broadcast_to(np.arange(X, dtype=np.uint32)[:, None, None], (X, A, 1))
    weights = np.concatenate([arrays.transitions / 2, np.full((X, A, 1), 0.5)], -1)
    successors = np.ascontiguousarray(np.concatenate([arrays.successors, own], -1))
    return Tables(arrays.rewards / 2, successors, weights, NEAR, arrays.grain + EPS)


def reachable(arrays: Tables, initial: Array) -> Array:
    """The states that some policy reaches from nu_0: no action leaves them   (X,)."""
    from scipy import sparse
    from scipy.sparse.csgraph import breadth_first_order

    X, begin = len(initial), np.flatnonzero(initial > 0)
    if len(begin) == X:
        return np.ones(X, np.bool_)
    rows, columns, _ = _moves(arrays, arrays.transitions)
    rows, columns = np.append(rows, np.full(len(begin), X)), np.append(columns, begin)
    graph = sparse.csr_array((np.ones(len(rows), np.int8), (rows, columns)), (X + 1, X + 1))
    found = np.zeros(X + 1, np.bool_)
    found[breadth_first_order(graph, X, return_predecessors=False)] = True
    return found[:X]
