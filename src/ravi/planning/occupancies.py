"""The discounted occupancy measures of a policy, with a bound on their error; and relative entropies of policies.

    nu = (1 - gamma) nu_0 + gamma P_pi^T nu,   mu(x, a) = nu(x) pi(a | x),   both of sum one

With the residual rho = (1 - gamma) nu_0 + gamma P_pi^T nu - nu of any nu, the true occupancy is at most H ||rho||_1
away in L1, because P_pi^T increases no L1 norm.

Rounding. Of the flow into y, a sum of n(y) terms, at most 2^-53 (n(y) + A + 4) goes wrong, in relative terms, and rows
that miss the sum one by d move a flow by d. With a factor of two to spare, and `grain` as in `certificates`,

    error = H (||rho||_1 + sum_y 2^-52 (n(y) + A + 4) flow(y) + grain of T_pi).

Relative entropies, in nats:

    KL(p || q)   = sum_a p(a) log(p(a) / q(a))                           `relative_entropy`
    H(pi || pi') = <nu^pi, KL(pi(. | x) || pi'(. | x))>                  `conditional_relative_entropy`

Neighbouring policies differ by as little as eta = 1e-5, and their entropy by the square of that. So the sum is taken of
p log(p / q) - p + q = p (t - log(1 + t)), t = q / p - 1: no term is negative, nothing cancels between actions, and for
small t the term is summed as t^2 / 2 - t^3 / 3 + ...
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, AnyMDP, Array, Floats, an_mdp
from ravi.planning.certificates import EPS, distributions, miss, sweep_limit, tables
from ravi.planning.chains import (
    ELIMINATED,
    KRYLOV_TRIALS,
    STRETCH,
    bicgstab,
    eliminated_occupancy,
    krylov_iterations,
    policy_chain,
    transpose,
)
from ravi.planning.episodes import occupancy_by_stage
from ravi.validation import policy_table


@dataclass(frozen=True, eq=False, repr=False)
class Occupancy:
    """mu^pi and nu^pi of one policy, or of a batch with the batch first.

    Attributes
    ----------
    mu
        Mu(x, a) = (1 - gamma) sum_t gamma^t P(x_t = x, a_t = a), of shape (..., X, A).
    nu
        Nu(x) = sum_a mu(x, a), of shape (..., X).
    error
        At least ||nu - nu^pi||_1 and ||mu - mu^pi||_1, of shape (...).
    """

    mu: Floats
    nu: Floats
    error: Floats | np.float64

    def __repr__(self) -> str:
        policies = f"of {np.size(self.error)} policies" if np.ndim(self.error) else "of one policy"
        return f"<Occupancy {policies}: mu and nu ± {np.max(self.error, initial=0.0):.1g} in L1>"


def occupancy(mdp: AnyMDP, policy: ArrayLike, tol: float = 1e-10) -> Occupancy:
    """The normalised discounted occupancies of one policy (X, A), or of a batch (n, X, A).

    To within `tol` in L1, or as closely as float64 can tell: `error` says. A policy has the same answer, bit for bit,
    alone and in a batch.

    Parameters
    ----------
    mdp
        The MDP that the policy is played in, its id or its file.
    policy
        pi(a | x), (X, A); or several, (n, X, A).
    tol
        The error in L1 that is aimed at.

    Returns
    -------
    Occupancy
        mu^pi(x, a), nu^pi(x), and a certified bound on their errors. In episodes by stage, mu (S, X, A) and nu (S, X),
        the error being that of each stage.

    Examples
    --------
    The return of a policy is the reward under its occupancy:

    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> best = ravi.solve(mdp)
    >>> mu = ravi.occupancy(mdp, best.policy).mu
    >>> abs((mu * mdp.rewards).sum() - best.optimum) < 1e-9
    np.True_
    """
    mdp = an_mdp(mdp)
    if mdp.criterion == "episodic":
        by_stage, each = occupancy_by_stage(mdp, policy)
        return Occupancy(by_stage, by_stage.sum(-1), np.float64(each))
    batch = policy_table(policy, mdp)
    tol = validation.positive(tol, "tol")
    single = batch.ndim == 2
    mu, nu, error = of_batch(mdp, batch[None] if single else batch, tol)
    return Occupancy(mu[0], nu[0], error[0]) if single else Occupancy(mu, nu, error)


def of_batch(mdp: MDP, policies: Floats, tol: float = 1e-10) -> tuple[Floats, Floats, Floats]:
    """mu, nu and error of an array (n, X, A) that is known to be policies."""
    initial = mdp.initial / math.fsum(mdp.initial)
    found: tuple[Floats, Floats, Floats] = _occupancy(tables(mdp), distributions(policies), initial, tol)
    return found


@compiled
def _occupancy(tables, batch, initial, tol):  # type: ignore[no-untyped-def]
    gamma = tables.discount
    n, X, A = batch.shape
    mu, nu, error = np.empty((n, X, A)), np.empty((n, X)), np.empty(n)
    for i in range(n):
        policy = batch[i]
        grain = tables.grain + EPS * A + miss(policy)
        chain = transpose(policy_chain(tables, policy), (1.0 - gamma) * initial)
        if X <= ELIMINATED:
            start, limit = eliminated_occupancy(tables, policy, chain.source), 1
        else:
            start, limit = initial, sweep_limit(gamma, grain)
        nu[i], error[i] = settle(chain, gamma, A, start, grain, tol, limit)
        for x in range(X):
            for a in range(A):
                mu[i, x, a] = nu[i, x] * policy[x, a]
    return mu, nu, error


@compiled
def settle(chain, gamma, A, start, grain, tol, limit):  # type: ignore[no-untyped-def]
    """Sweep nu until its error is at most tol, or rounding stops it, or `limit` sweeps are made.

    As `chains.approach` does, but in L1: what a sweep moves sums to zero, so there is no gain to take out.
    """
    X = start.shape[0]
    nu, following = start.copy(), np.empty(X)
    before = np.inf
    trials = KRYLOV_TRIALS
    sweeps = 0
    while True:
        norm, rounding = flow_sweep(chain, gamma, A, nu, following)
        rounding += grain
        sweeps += 1
        goal = max(tol * (1.0 - gamma) - rounding, rounding)
        if norm <= goal or sweeps >= limit:
            return following, (norm + rounding) / (1.0 - gamma)
        if sweeps % STRETCH == 0:
            if norm > before * gamma ** (STRETCH / 2):  # less than is certain, but for rounding
                return following, (norm + rounding) / (1.0 - gamma)
            iterations = krylov_iterations(before, norm, goal) if trials > 0 else 0.0
            before = norm
            if iterations > 0:
                trials -= 1
                candidate = bicgstab(chain, gamma, following - nu, goal / X, iterations)
                total = 0.0
                for x in range(X):
                    candidate[x] = max(candidate[x] + nu[x], 0.0)
                    total += candidate[x]
                norm, _ = flow_sweep(chain, gamma, A, candidate, following)
                sweeps += 1
                if norm < before and total < np.inf:
                    nu = candidate
                    before = norm
                else:
                    flow_sweep(chain, gamma, A, nu, following)
        nu, following = following, nu


@compiled
def flow_sweep(chain, gamma, A, nu, following):  # type: ignore[no-untyped-def]
    """(1 - gamma) nu_0 + gamma P_pi^T nu, the L1 norm of what it changes, and what rounding may have changed."""
    start, state, weight, source = chain.start, chain.state, chain.weight, chain.source
    norm, rounding = 0.0, 0.0
    for x in range(nu.shape[0]):
        total = 0.0
        for j in range(start[x], start[x + 1]):
            total += weight[j] * nu[state[j]]
        following[x] = source[x] + gamma * total
        norm += abs(following[x] - nu[x])
        rounding += (start[x + 1] - start[x] + A + 4) * following[x]
    return norm, EPS * rounding


def relative_entropy(p: Array, q: Array) -> Array:
    """KL(p || q) along the last axis; infinite where p has mass and q has none."""
    p, q = validation.finite(p, "p"), validation.finite(q, "q")
    validation.sums_to_one(p, "p")
    validation.sums_to_one(q, "q")
    return divergence(p, q)


def divergence(p: Array, q: Array) -> Array:
    """`relative_entropy` of arrays that are known to be distributions."""
    some = p > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(some, (q - p) / p, 0.0)  # >= -1
        ratio = np.where(np.abs(t) < 0.5, np.log1p(t), np.log(q) - np.log(p))  # log(q / p); -inf where q = 0
        terms = np.where(np.abs(t) < 0.01, p * _series(t), q - p - p * ratio)
    return np.where(some, terms, q).sum(-1)


def _series(t: np.ndarray) -> np.ndarray:
    """t - log(1 + t) for |t| < 0.01, and anything elsewhere."""
    s = np.clip(t, -0.01, 0.01)
    return s**2 * (1 / 2 - s * (1 / 3 - s * (1 / 4 - s * (1 / 5 - s * (1 / 6 - s * (1 / 7 - s * (1 / 8 - s / 9)))))))


def conditional_relative_entropy(mdp: MDP, policy: Array, other: Array) -> Array:
    """H(pi || pi'), of two policies or of two batches. States that pi never visits do not count."""
    pi, pi_other = policy_table(policy, mdp), policy_table(other, mdp, "other")
    if pi.shape != pi_other.shape:
        raise validation.InputError(f"policy has shape {pi.shape}, but other has {pi_other.shape}")
    nu = occupancy(mdp, pi).nu  # (..., X)
    apart = relative_entropy(pi, pi_other)
    return np.multiply(nu, apart, out=np.zeros(nu.shape), where=nu > 0).sum(-1)
