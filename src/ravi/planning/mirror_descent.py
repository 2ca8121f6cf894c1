"""Mirror descent modified policy iteration, MD-MPI: what RAVI-UCB does where it knows P.

Geist, Scherrer, Pietquin 2019, "A theory of regularized Markov decision processes", Section 5. For k = 2, 3, ...

    Q_k  = r + gamma P V_{k-1}
    pi_k = argmax_p <p, Q_k> - KL(p || pi_{k-1}) / eta
    V_k  = (T_k)^m V_{k-1}

with, for type 1 (regularised evaluation) and type 2,

    T_k V = <pi_k, r + gamma P V> - KL(pi_k || pi_{k-1}) / eta,      T_k V = <pi_k, r + gamma P V>.

Type 1 with m = 1 is Algorithm 1 of the RAVI-UCB paper with P_hat = P and no bonus: V_k is then the log-sum-exp of
`mirror_step`. The index k is that algorithm's. It starts with Q_1 = E V_0, which moves nothing: V_1 = V_0, pi_1 = pi_0,
and (V_K, pi_K) is what K mirror steps and K - 1 backups have made. The truncation to [0, H] is idle for V_0 in [0, H].
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ravi import validation
from ravi.core import MDP, AnyMDP, Floats, an_mdp
from ravi.planning.bellman import expect
from ravi.planning.mirror import mirror_step
from ravi.validation import policy_table


class Iterate(NamedTuple):
    """V_k and pi_k, and the Q_k that they were made of; batches first.

    Attributes
    ----------
    V
        V_k(x), of shape (..., X).
    Q
        Q_k(x, a), of shape (..., X, A).
    log_policy
        Log pi_k(a | x), of shape (..., X, A).
    policy
        Pi_k(a | x), of shape (..., X, A).
    """

    V: Floats
    Q: Floats
    log_policy: Floats
    policy: Floats

    def __repr__(self) -> str:
        return f"<Iterate: V of shape {self.V.shape}, Q and policy of shape {self.Q.shape}>"


def md_mpi(
    mdp: AnyMDP,
    eta: float,
    iterations: int,
    *,
    sweeps: int = 1,
    regularised_evaluation: bool = True,
    initial_value: ArrayLike = 0.0,
    initial_policy: ArrayLike | None = None,
) -> Iterate:
    """The iterate k = `iterations` of MD-MPI with m = `sweeps`; k = 1 is the start.

    Parameters
    ----------
    mdp : MDP
        Whose kernel is known.
    eta
        The step size of the mirror step.
    iterations
        k, the number of iterations.
    sweeps
        m, the number of applications of the Bellman operator per policy.
    regularised_evaluation
        Whether those include the entropy term, as in RAVI-UCB.
    initial_value
        V_0, a number or (X,).
    initial_policy
        pi_0, uniform unless given, (X, A).

    Returns
    -------
    Iterate
        V_k, Q_k, log pi_k and pi_k.

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/6")
    >>> late = ravi.md_mpi(mdp, eta=1.0, iterations=500)
    >>> ravi.solve(mdp).optimum - ravi.return_of(mdp, late.policy) < 0.01
    True
    """
    K = validation.whole(iterations, "iterations")
    iterates = md_mpi_iterates(
        mdp, eta, sweeps=sweeps, regularised_evaluation=regularised_evaluation, initial_value=initial_value,
        initial_policy=initial_policy,
    )  # fmt: skip
    return next(islice(iterates, K - 1, None))


def md_mpi_iterates(
    mdp: AnyMDP, eta: float, *, sweeps: int = 1, regularised_evaluation: bool = True, initial_value: ArrayLike = 0.0,
    initial_policy: ArrayLike | None = None,
) -> Iterator[Iterate]:  # fmt: skip
    """The iterates k = 1, 2, ... of MD-MPI, without end.

    `initial_value` is V_0, a number or (X,). `initial_policy` is pi_0, uniform unless given, (X, A) or a batch
    (n, X, A); it needs every action, because mirror descent gives no mass to an action that has none.
    """
    mdp = an_mdp(mdp)
    validation.flag(regularised_evaluation, "regularised_evaluation")
    eta, m = validation.positive(eta, "eta"), validation.whole(sweeps, "sweeps")
    V0 = validation.finite(initial_value, "initial_value")
    if V0.shape not in ((), (mdp.states,)):
        raise validation.InputError(
            f"initial_value has shape {V0.shape}; it must be a number or (X,) = ({mdp.states},)"
        )
    if initial_policy is None:
        initial_policy = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    policy = policy_table(initial_policy, mdp, "initial_policy", interior=True)
    return _iterates(mdp, eta, m, regularised_evaluation, V0, policy)


def _iterates(mdp: MDP, eta: float, m: int, regularised: bool, V0: np.ndarray, pi0: np.ndarray) -> Iterator[Iterate]:
    r, gamma = mdp.rewards, mdp.discount
    shape = pi0.shape
    policy = np.ascontiguousarray(pi0.reshape(-1, mdp.states, mdp.actions))  # (n, X, A)
    log_policy = np.log(policy)
    V = np.broadcast_to(V0, policy.shape[:2]).copy()  # (n, X)
    Q = np.broadcast_to(V[..., None], policy.shape).copy()  # Q_1 = E V_0
    while True:
        yield Iterate(V.reshape(shape[:-1]), Q.reshape(shape), log_policy.reshape(shape), policy.reshape(shape))
        Q = r + gamma * expect(mdp, V)
        soft, log_policy, policy = mirror_step(log_policy, policy, Q, eta)
        V = (policy * Q).sum(-1)
        penalty = V - soft if regularised else np.zeros(V.shape)  # KL(pi_k || pi_{k-1}) / eta  (Lemma C.1)
        V = soft if regularised else V
        for _ in range(m - 1):
            V = (policy * (r + gamma * expect(mdp, V))).sum(-1) - penalty
