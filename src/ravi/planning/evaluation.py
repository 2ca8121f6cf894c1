"""What are V^pi, Q^pi and rho(pi) of a policy, and how far off can the answer be?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, Array, Floats, an_mdp
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
    sweep_limit,
    tables,
)
from ravi.planning.chains import ELIMINATED, approach, eliminated_values, policy_chain
from ravi.planning.sweeps import policy_sweep
from ravi.validation import policy_table


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """V^pi, Q^pi and rho(pi) of one policy, or of a batch with the batch first."""

    V: Floats  # V^pi(x)                                       (..., X)
    Q: Floats  # Q^pi(x, a)                                    (..., X, A)
    returns: Floats | np.float64  # rho(pi) = (1 - gamma) <nu_0, V^pi>      (...)
    # error >= ||V - V^pi||, ||Q - Q^pi||; (1 - gamma) error + 1e-15 bounds that of returns   (...)
    error: Floats | np.float64

    def __repr__(self) -> str:
        policies = f"{np.size(self.returns)} policies" if np.ndim(self.returns) else f"return {self.returns:.12g}"
        return f"<Evaluation: {policies}, V and Q ± {np.max(self.error, initial=0.0):.1g}>"


def evaluate(mdp: MDP, policy: ArrayLike, tol: float = 1e-10) -> Evaluation:
    """Evaluate one policy (X, A), or a batch (n, X, A), until ||V - V^pi|| <= tol or as closely as float64 can tell.

    Few states are eliminated exactly, and so are many within a narrow band; others are swept, with a Krylov method
    where sweeps are slow. One more sweep, of T_pi, certifies the answer by the formula of `solve`, with 2^-52 A and the
    largest |row sum - 1| of the policy more in front of (1 + max |W|). A policy has the same answer, bit for bit, alone
    and in a batch.

    Parameters
    ----------
    mdp : MDP
    policy : pi(a | x), (X, A); or several, (n, X, A)
    tol : the error of V that is aimed at

    Returns
    -------
    Evaluation
        V^pi, Q^pi, the normalised return rho(pi), and a certified bound on their errors.

    Examples
    --------
    >>> import numpy as np
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> ravi.evaluate(mdp, np.full((6, 2), 0.5))
    <Evaluation: return 0.00..., V and Q ± ...>
    """
    batch = policy_table(policy, an_mdp(mdp))
    tol = validation.positive(tol, "tol")
    single = batch.ndim == 2
    batch = distributions(batch[None] if single else batch)
    arrays = tables(mdp)
    V, Q, returns, error = _evaluate(arrays, batch, mdp.initial, tol, started(arrays, batch))
    return Evaluation(V[0], Q[0], returns[0], error[0]) if single else Evaluation(V, Q, returns, error)


def return_of(mdp: MDP, policy: ArrayLike, tol: float = 1e-10) -> float | Floats:
    """rho(pi), of one policy or of each of a batch, to within (1 - gamma) tol where float64 can tell.

    Parameters
    ----------
    mdp : MDP
    policy : pi(a | x), (X, A); or several, (n, X, A)
    tol : the error of V that is aimed at

    Returns
    -------
    float, or an array (n,)
        The normalised return (1 - gamma) <nu_0, V^pi>, in [0, 1].

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> best = ravi.solve(mdp)
    >>> abs(ravi.return_of(mdp, best.policy) - best.optimum) < 1e-9
    True
    """
    returns = evaluate(mdp, policy, tol).returns
    return returns if np.ndim(returns) else float(returns)


def started(tables: Tables, batch: Array) -> Array:
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


@compiled
def relative_values(tables, policy, W, goal):  # type: ignore[no-untyped-def]
    """V^pi up to a constant, centred, and the number of sweeps; swept from W until span(T_pi W - W) <= goal."""
    gamma = tables.discount
    chain = policy_chain(tables, policy)
    if chain.source.shape[0] <= ELIMINATED:
        W, sweeps = eliminated_values(chain, gamma), 0
    else:
        W, sweeps = approach(chain, gamma, W, goal, sweep_limit(gamma, tables.grain))
    centre(W)
    return W, sweeps
