"""V^pi, Q^pi and rho(pi) of a policy, certified; also of a policy that depends on the number of steps since the reset.

Of pi_0, ..., pi_{S-1}, one for each number of steps since the reset, the last serves for all later ages, so with
W_{S-1} = V^{pi_{S-1}} and, backwards,

    W_j(x) = sum_a pi_j(a | x) (r(x, a) + gamma (P W_{j+1})(x, a)),        rho = (1 - gamma) <nu_0, W_0>

exactly: nothing is cut off. W_j is the value from age j on.

Rounding. W_{S-1} is certified to an error e (`evaluate`); a sweep passes on gamma of what came before and adds at most
grain (1 + H), with its grain; so W_0 is known to gamma^{S-1} e + H grain (1 + H), and rho to 1 - gamma of it, with
4 eps for the last sum.

A learner that plans backwards chooses S by what it may leave out: `effective_horizon`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ravi import validation
from ravi._jit.functions import bound, compiled
from ravi.core import MDP, AnyMDP, Array, Floats, Problem, an_mdp
from ravi.planning.bands import LONG, band_of, banded_values
from ravi.planning.certificates import (
    EPS,
    Tables,
    centre,
    distributions,
    half_width,
    mean,
    miss,
    span_goal,
    tables,
)
from ravi.planning.chains import ELIMINATED, eliminated_values, policy_chain, relative_values
from ravi.planning.sweeps import policy_sweep
from ravi.runtime.walk import normalised
from ravi.validation import policy_table


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """V^pi, Q^pi and rho(pi) of one policy, or of a batch with the batch first.

    Attributes
    ----------
    V
        V^pi(x), of shape (..., X).
    Q
        Q^pi(x, a), of shape (..., X, A).
    returns
        rho(pi) = (1 - gamma) <nu_0, V^pi>, of shape (...).
    error
        At least ||V - V^pi|| and ||Q - Q^pi||; (1 - gamma) error + 1e-15 bounds that of returns, of shape (...).
    """

    V: Floats
    Q: Floats
    returns: Floats | np.float64
    # error >= ||V - V^pi||, ||Q - Q^pi||; (1 - gamma) error + 1e-15 bounds that of returns   (...)
    error: Floats | np.float64

    def __repr__(self) -> str:
        policies = f"{np.size(self.returns)} policies" if np.ndim(self.returns) else f"return {self.returns:.12g}"
        return f"<Evaluation: {policies}, V and Q ± {np.max(self.error, initial=0.0):.1g}>"


def evaluate(mdp: AnyMDP, policy: ArrayLike, tol: float = 1e-10) -> Evaluation:
    """Evaluate one policy (X, A), or a batch (n, X, A), until ||V - V^pi|| <= tol or as closely as float64 can tell.

    Few states are eliminated exactly, and so are many within a narrow band; others are swept, with a Krylov method
    where sweeps are slow. One more sweep, of T_pi, certifies the answer by the formula of `solve`, with 2^-52 A and the
    largest |row sum - 1| of the policy more in front of (1 + max |W|). A policy has the same answer, bit for bit, alone
    and in a batch.

    Parameters
    ----------
    mdp
        The MDP that the policy is played in, its id or its file.
    policy
        pi(a | x), (X, A); or several, (n, X, A).
    tol
        The error of V that is aimed at.

    Returns
    -------
    Evaluation
        V^pi, Q^pi, the normalised return rho(pi), and a certified bound on their errors. In the average reward an
        `AverageEvaluation`: gain and bias by state. In episodes, for a policy (X, A) or (S, X, A), an
        `EpisodicEvaluation`: V and Q by stage.

    Examples
    --------
    >>> import numpy as np
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> ravi.evaluate(mdp, np.full((6, 2), 0.5))
    <Evaluation: return 0.00..., V and Q ± ...>
    """
    mdp = an_mdp(mdp)
    if mdp.criterion != "discounted":
        found: Any  # what the criterion has
        if mdp.criterion == "episodic":
            from ravi.planning.episodes import evaluate_episodes

            found = evaluate_episodes(mdp, policy)
        else:
            from ravi.planning.average import evaluate_average

            found = evaluate_average(mdp, policy)
        return found
    batch = policy_table(policy, mdp)
    tol = validation.positive(tol, "tol")
    single = batch.ndim == 2
    batch = distributions(batch[None] if single else batch)
    arrays = tables(mdp)
    V, Q, returns, error = _evaluate(arrays, batch, mdp.initial, tol, starting_values(arrays, batch))
    return Evaluation(V[0], Q[0], returns[0], error[0]) if single else Evaluation(V, Q, returns, error)


def return_of(mdp: AnyMDP, policy: ArrayLike, tol: float = 1e-10) -> float | Floats:
    """rho(pi), of one policy or of each of a batch, to within (1 - gamma) tol where float64 can tell.

    Parameters
    ----------
    mdp
        The MDP that the policy is played in, its id or its file.
    policy
        pi(a | x), (X, A); or several, (n, X, A).
    tol
        The error of V that is aimed at.

    Returns
    -------
    float, or an array (n,)
        The normalised return (1 - gamma) <nu_0, V^pi>, in episodes <nu_0, V^pi> / length, in [0, 1].

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> best = ravi.solve(mdp)
    >>> abs(ravi.return_of(mdp, best.policy) - best.optimum) < 1e-9
    True
    """
    mdp = an_mdp(mdp)
    tables(mdp, average=mdp.episode is not None)  # an error in the average reward
    returns = evaluate(mdp, policy, tol).returns
    return returns if np.ndim(returns) else float(returns)


def starting_values(tables: Tables, batch: Array) -> Array:
    """Where to start from: 0, or V^pi up to rounding and a constant if the chain is long and narrow   (n, X)."""
    start = np.zeros(batch.shape[:2])
    if batch.shape[1] >= LONG:
        for policy, W in zip(batch, start, strict=True):
            chain = policy_chain(tables, policy)
            band = band_of(chain, 1 / (1 - tables.discount))
            if band.low >= 0:
                W[:] = banded_values(chain, tables.discount, band, chain.source)
                centre(W)
    return start


@compiled
def _evaluate(tables, batch, initial, tol, start):  # type: ignore[no-untyped-def]
    gamma = tables.discount
    n, X, A = batch.shape
    V, Q = np.empty((n, X)), np.empty((n, X, A))
    returns, error = np.empty(n), np.empty(n)
    for i in range(n):
        policy = batch[i]
        grain = tables.grain + EPS * A + miss(policy)
        W, size = start[i], 0.0
        for _ in range(3):  # the goal depends on max |W|, which is known afterwards
            W, _ = relative_values(tables, policy, W, span_goal(tol, size, gamma, grain) / 2)
            low, high, size = policy_sweep(tables, policy, W, Q[i], V[i])
            if high - low <= span_goal(tol, size, gamma, grain):
                break
        shift = gamma / (1.0 - gamma) * (low + high) / 2  # to the middle of the bounds
        for x in range(X):
            V[i, x] += shift
            for a in range(A):
                Q[i, x, a] += shift
        returns[i] = (1.0 - gamma) * mean(initial, V[i])
        error[i] = half_width(low, high, size, gamma, grain)
    return V, Q, returns, error


MOST = 200_000  # stages of a plan


def effective_horizon(problem: Problem, truncation: float) -> int:
    """The least S >= 1 with gamma^S H <= truncation: what comes after S stages is worth no more than that. In episodes
    their length."""
    eps = validation.positive(truncation, "truncation")
    if problem.episode is not None:
        return problem.episode
    S = max(1, math.ceil(math.log(problem.horizon / eps) / math.log(1 / problem.discount)))
    if S > MOST:
        raise validation.InputError(
            f"discount {problem.discount!r} and truncation {eps:g} make {S:,} stages, more than {MOST:,}: "
            "lower the discount, or raise the truncation"
        )
    return S


def staged_values(mdp: MDP, policy: Array, tol: float = 1e-10) -> tuple[Array, Array, Array]:
    """W (n, S, X), rho (n,) and a bound on the error of rho (n,), of the policies that rows (n, S, X, A) play."""
    rows = distributions(normalised(policy))
    n, S, X, _ = rows.shape
    W, returns, error = np.empty((n, S, X)), np.empty(n), np.empty(n)
    loop = bound(_staged_values, values_of=_of_few if X <= ELIMINATED else _of_many)
    loop(tables(mdp), mdp.initial, rows, tol, W, returns, error)
    return W, returns, error


def _staged_values(tables, nu0, policy, tol, W, returns, error):  # type: ignore[no-untyped-def]
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    n, S, X, A = policy.shape
    B, H = P.shape[2], 1 / (1 - gamma)
    Q = np.empty((X, A))
    for i in range(n):
        grain = tables.grain + EPS * A + miss(policy[i])
        tail, size = np.zeros(X), 0.0
        for _ in range(3):  # the goal depends on max |W|, which is known afterwards
            tail = values_of(tables, policy[i, S - 1], tail, span_goal(tol, size, gamma, grain) / 2)
            low, high, size = policy_sweep(tables, policy[i, S - 1], tail, Q, W[i, S - 1])
            if high - low <= span_goal(tol, size, gamma, grain):
                break
        for x in range(X):
            W[i, S - 1, x] += gamma * H * (low + high) / 2
        for j in range(S - 2, -1, -1):
            for x in range(X):
                total = 0.0
                for a in range(A):
                    p = policy[i, j, x, a]
                    if p > 0.0:
                        future = 0.0
                        for b in range(B):
                            future += P[x, a, b] * W[i, j + 1, successors[x, a, b]]
                        total += p * (r[x, a] + gamma * future)
                W[i, j, x] = total
        returns[i] = (1 - gamma) * mean(nu0, W[i, 0])
        error[i] = (
            (1 - gamma) * gamma ** (S - 1) * half_width(low, high, size, gamma, grain) + grain * (1 + H) + 4 * EPS
        )


@compiled
def _of_many(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """V^pi up to a constant, centred, to the goal of `relative_values`."""
    return relative_values(tables, policy, W, goal)[0]


@compiled
def _of_few(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """The same of few states, without what many need, which takes as long to compile as all the rest."""
    W = eliminated_values(tables, policy)
    centre(W)
    return W


values_of = _of_many  # the function that is bound to the loop
