"""One step of O-REPS in an MDP that is known, from any policy, with the certificate of its optimality."""

from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi.core import MDP, Array
from ravi.learners.contrib.occupancy_descent import step
from ravi.planning.bellman import expect
from ravi.planning.certificates import distributions
from ravi.planning.entropy import relative_entropy
from ravi.planning.occupancies import occupancy
from ravi.validation import policy_table


class Step(NamedTuple):
    """One step of O-REPS; batches first."""

    policy: Array  # pi_{k+1}                                                     (..., X, A)
    mu: Array  # mu_{k+1}, a distribution                                         (..., X, A)
    V: Array  # of the dual, with sum mu_k exp(eta A_V) = 1                       (..., X)
    flow: Array  # ||E^T mu - gamma P^T mu - (1 - gamma) nu_0||_1                 (...)
    gap: Array  # phi(V) less what the occupancy of the policy reaches: >= 0 but for rounding   (...)


def o_reps_step(mdp: MDP, policy: Array, eta: float, *, value: Array | None = None) -> Step:
    """The step from mu_k = mu^policy, of one policy (X, A) or of a batch (n, X, A); `value` is a guess of V."""
    given = policy_table(policy, mdp)
    eta = validation.positive(eta, "eta")
    batch = distributions(given.reshape(-1, mdp.states, mdp.actions)).copy()
    before = batch.copy()
    V = np.zeros(batch.shape[:2]) if value is None else validation.finite(value, "value") + np.zeros(batch.shape[:2])
    with np.errstate(divide="ignore"):
        log_policy = np.log(batch)
    # Tables that can be written, as a learner's can: both are compiled once.
    r, successors, P = mdp.rewards[None].copy(), mdp.successors.copy(), mdp.transitions[None].copy()
    mu, flow = step(r, successors, P, mdp.discount, mdp.initial, eta, V, log_policy, batch)
    gap = _dual(mdp, before, eta, V) - _primal(mdp, before, eta, batch)
    shape = given.shape
    return Step(
        batch.reshape(shape),
        mu.reshape(shape),
        V.reshape(shape[:-1]),
        flow.reshape(shape[:-2]),
        gap.reshape(shape[:-2]),
    )


def _dual(mdp: MDP, policy: Array, eta: float, V: Array) -> Array:
    """phi(V) of each of a batch."""
    mu = occupancy(mdp, policy, 1e-14).mu
    z = eta * (mdp.rewards + mdp.discount * expect(mdp, V) - V[..., None])
    top = np.where(mu > 0, z, -np.inf).max((1, 2))
    mass = np.where(mu > 0, mu * np.exp(np.minimum(z - top[:, None, None], 0)), 0.0).sum((1, 2))
    return (top + np.log(mass)) / eta + (1 - mdp.discount) * V @ mdp.initial


def _primal(mdp: MDP, policy: Array, eta: float, other: Array) -> Array:
    """<mu, r> - KL(mu || mu_k) / eta of each of a batch, for the occupancy mu of `other`."""
    one, two = occupancy(mdp, policy, 1e-14).mu, occupancy(mdp, other, 1e-14).mu
    apart = relative_entropy(two.reshape(len(two), -1), one.reshape(len(one), -1))
    return (two * mdp.rewards).sum((1, 2)) - apart / eta
