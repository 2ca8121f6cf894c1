"""What does the average-reward world see? The reset chain, on which the return of a policy is a gain.

    P~ = gamma P + (1 - gamma) 1 nu_0^T                                                         `reset_kernel`

is the kernel of x_{t+1} given x_t and a_t, resets included. For every policy pi

    nu = P~_pi^T nu,  sum nu = 1                    its stationary law is the occupancy nu^pi
    g + h = r_pi + P~_pi h                          its gain is g = rho(pi), its bias h = V^pi + constant    `gain_of`
    g* + h = max_a {r + P~ h}                       the best gain is rho*, with h = V* + constant

because P~_pi V = gamma P_pi V + (1 - gamma) <nu_0, V>, and (1 - gamma) <nu_0, V^pi> = rho(pi). So the regret of the
average-reward literature, on the chain that is played, is the regret that is scored here, policy by policy. What its
assumptions ask for is there: every chain resets with probability 1 - gamma, whatever was played (Doeblin), so that
||nu' P~_pi^n - nu^pi||_1 <= 2 gamma^n for every law nu': to 1/2 within ln 4 / ln(1 / gamma) < 1.39 H steps. And the
span of the best bias is that of V*, at most H.

`gain_of` takes any unichain kernel, and knows neither gamma nor nu_0: what it finds is found as an average-reward
planner finds it, by dense linear systems. It is for checks, and for X up to about a thousand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ravi import checks
from ravi.core import MDP, Array


class Gain(NamedTuple):
    """A policy on a chain that never ends."""

    gain: float  # g, its average reward
    bias: Array  # h with <nu, h> = 0          (X,)
    stationary: Array  # nu                    (X,)
    policy: Array  # of which all this is      (X, A)


def reset_kernel(mdp: MDP) -> Array:
    """P~ as one array (X, A, X)."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return mdp.discount * P + (1 - mdp.discount) * mdp.initial


def gain_of(P: Array, r: Array, policy: Array) -> Gain:
    """Gain, bias and stationary law of a policy (X, A) under the kernel P (X, A, X) and the rewards r (X, A).

    The stationary law solves (I - P_pi^T + 1 1^T) nu = 1 and the bias (I - P_pi + 1 nu^T) h = r_pi - g: both matrices
    are regular if, and only if, P_pi has one recurrent class.
    """
    P, r, pi = _tables(P, r, policy)
    X = len(r)
    P_pi, r_pi = np.einsum("xa,xay->xy", pi, P), (pi * r).sum(-1)
    nu = np.linalg.solve(np.eye(X) - P_pi.T + 1, np.ones(X))
    g = float(nu @ r_pi)
    h = np.linalg.solve(np.eye(X) - P_pi + nu, r_pi - g)  # Poisson's equation
    return Gain(g, h, nu, pi)


def _tables(P: Array, r: Array, policy: Array) -> tuple[Array, Array, Array]:
    P, r, pi = checks.finite(P, "P"), checks.finite(r, "r"), checks.finite(policy, "policy")
    X, A = r.shape if r.ndim == 2 else (0, 0)
    checks.shaped(P, (X, A, X), "P", "(X, A, X)")
    checks.shaped(pi, (X, A), "policy", "(X, A)")
    return checks.sums_to_one(P, "P"), r, checks.sums_to_one(pi, "policy")
