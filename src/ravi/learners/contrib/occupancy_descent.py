"""Mirror descent on occupancies: one step of O-REPS, by Newton's method on its dual.

J. Peters, K. Muelling, Y. Altun, "Relative entropy policy search", AAAI 2010; A. Zimin, G. Neu, "Online learning in
episodic Markovian decision processes by relative entropy policy search", NIPS 2013. Over the occupancies of the MDP,

    mu_{k+1} = argmax_mu <mu, r> - KL(mu || mu_k) / eta,      E^T mu = gamma P^T mu + (1 - gamma) nu_0,

where KL is that of two distributions of pairs: of states too, not of actions only. The dual, over V in R^X, is convex:

    phi(V) = (1/eta) ln sum_{x,a} mu_k(x, a) exp(eta A_V(x, a)) + (1 - gamma) <nu_0, V>,     A_V = r + gamma P V - E V,

and at its minimum mu_{k+1}(x, a) ~ mu_k(x, a) exp(eta A_V(x, a)), so pi_{k+1} ~ pi_k exp(eta (r + gamma P V)). The
gradient of phi is how far that mu is from an occupancy (the flow). A constant added to V changes nothing: V is given
with the sum equal to one, and then (1 - gamma) <nu_0, V> is the optimum. For every V, phi(V) is at least the optimum,
and every policy gives at most that: the difference is a certificate.

Two steps with eta are one step with 2 eta: the exponents add up, and the conditions of optimality are the same. So k
steps from a policy maximise <mu, r> - KL(mu || mu_0) / (k eta), and with k the return tends to rho*. And a step that
Newton's method cannot do at once is done in halves.

With the *conditional* relative entropy <nu, KL(pi || pi_k)> in place of KL(mu || mu_k), the optimum is
(1 - gamma) <nu_0, V> for the V that solves V(x) = (1/eta) ln sum_a pi_k(a|x) exp(eta (r + gamma P V)(x, a)), at the
policy pi_k exp(eta (r + gamma P V - E V)): soft dynamic programming (Neu, Jonsson, Gomez 2017). RAVI-UCB does one sweep
of that per epoch, and then moves on from pi_k.

In episodes of S steps a state is a state at a stage, P leads to the next stage and nowhere from the last, mu sums to
one over all stages, and

    E^T mu = P^T mu + nu_0 / S,      phi(V) = (1/eta) ln sum mu_k exp(eta A_V) + <nu_0, V> / S,    A_V = r + P V - E V.

The mass of a stage is 1 / S, so KL is the mean of those of the stages: this is O-REPS as published, with <mu, r> in
parts of S. What lowers A_V everywhere by one is e = 1 / (1 - gamma) with a discount, e_h = S - h in episodes.

Newton's method. With w ~ mu_k exp(eta A_V), M = gamma P - E and u = M^T w, the Hessian is eta (M^T diag(w) M - u u^T).
It is singular along e; but d = -(eta M^T diag(w) M)^{-1} gradient solves its equations too, because M e = -1 and <e,
gradient> = 0. States that pi_k does not reach, or with an occupancy below
1e-30, where Newton's equations degenerate, have no weight: their policy stays.
"""

import math
from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.planning.certificates import EPS
from ravi.planning.chains import eliminated_occupancy

FLOW = 1e-11  # largest residual of the flow, in L1, of a step that counts as made
PRECISION = 1e-8  # eta times the last Newton step: after it, by quadratic convergence, rounding is left
QUIET = 1e-14, 4  # a flow this small for so many Newton steps is the minimum too, but for states of as little mass
LEAP = 8.0  # eta times the longest Newton step
NEWTON = 60  # Newton steps before a step is halved
ATTEMPTS = 100  # of Newton's method, on parts of one step; then the rest of the step is left out
REACHED = 1e-30  # occupancy from which on a state counts


class Model(NamedTuple):
    """What the compiled step reads."""

    rewards: Array  # (X, A)
    successors: Array  # (X, A, B)
    transitions: Array  # (X, A, B)
    initial: Array  # (X,)
    discount: float  # 1 in episodes
    share: float  # 1 - gamma, or 1 / S
    rate: Array  # 1 / e   (X,)


def step(
    rewards: Array, successors: Array, P: Array, gamma: float, nu0: Array, eta: float, V: Array, log_policy: Array,
    policy: Array, stages: int = 0,
) -> tuple[Array, Array]:  # fmt: skip
    """V (n, X), log pi and pi (n, X, A) go from k to k + 1 in place; mu_{k+1} (n, X, A) and its flow residual (n,).

    rewards: (n or 1, X, A); P: on the successors, (n or 1, X, A, B). stages: S in episodes, where X is that of all
    stages, the first ones first.
    """
    mu, flow, X = np.zeros(policy.shape), np.zeros(len(policy)), V.shape[1]
    share, rate = 1.0 - gamma, np.full(X, 1.0 - gamma)
    if stages:
        share, rate = 1 / stages, 1 / np.repeat(np.arange(stages, 0.0, -1.0), X // stages)
    _steps(rewards, successors, P, nu0, gamma, share, rate, eta, V, log_policy, policy, mu, flow)
    return mu, flow


@compiled
def _steps(rewards, successors, P, nu0, gamma, share, rate, eta, V, log_policy, policy, mu, flow):  # type: ignore[no-untyped-def]
    for i in range(policy.shape[0]):
        r, kernel = rewards[i if rewards.shape[0] > 1 else 0], P[i if P.shape[0] > 1 else 0]
        model = Model(r, successors, kernel, nu0, gamma, share, rate)
        flow[i] = _step(model, eta, V[i], log_policy[i], policy[i], mu[i])


@compiled
def _step(model, eta, V, log_policy, policy, mu):  # type: ignore[no-untyped-def]
    """All of eta, in as few parts as Newton's method can do; the residual of the flow, inf where some was left out."""
    X, A = policy.shape
    if model.discount == 1.0:
        nu = _occupancy_by_stage(model, policy)
    else:
        nu = eliminated_occupancy(model, policy, model.share * model.initial)
    log_mu = np.empty((X, A))
    for x in range(X):
        for a in range(A):
            log_mu[x, a] = math.log(nu[x]) + log_policy[x, a] if nu[x] >= REACHED else -np.inf
    guess, total = V.copy(), np.zeros(X)
    done, part, flow = 0.0, eta, np.inf
    A_V, g = np.empty((X, A)), np.empty(X)
    for _ in range(ATTEMPTS):
        trial = guess.copy()
        made, log_sum, residual = _newton(model, part, log_mu, trial, A_V, g, mu)
        if not made:
            part /= 2
            continue
        flow = residual
        for x in range(X):
            guess[x] = trial[x] + log_sum / (part * model.rate[x])  # to a sum of one
            total[x] += part * guess[x]
            if nu[x] >= REACHED:
                _tilt(log_policy[x], policy[x], A_V[x], part)
            for a in range(A):
                log_mu[x, a] += part * A_V[x, a] - log_sum
        if part >= eta - done:
            for x in range(X):
                V[x] = total[x] / eta
            return flow
        done += part
        part = min(2 * part, eta - done)
    V[:] = guess
    return np.inf


@compiled
def _occupancy_by_stage(model, policy):  # type: ignore[no-untyped-def]
    """nu = nu_0 / S + P_pi^T nu, where states lead to later ones only."""
    nu = model.share * model.initial
    for x in range(nu.shape[0]):
        for a in range(policy.shape[1]):
            for j in range(model.transitions.shape[2]):
                nu[model.successors[x, a, j]] += nu[x] * policy[x, a] * model.transitions[x, a, j]
    return nu


@compiled
def _tilt(log_pi, pi, advantage, eta):  # type: ignore[no-untyped-def]
    """pi <- pi exp(eta advantage) / sum."""
    A = pi.shape[0]
    top = -np.inf
    for a in range(A):
        log_pi[a] += eta * advantage[a]
        top = max(top, log_pi[a])
    total = 0.0
    for a in range(A):
        total += math.exp(log_pi[a] - top)
    drift = math.log(total)
    for a in range(A):
        log_pi[a] = (log_pi[a] - top) - drift  # in this order: top may be large
        pi[a] = math.exp(log_pi[a])


@compiled
def _newton(model, eta, log_mu, V, A_V, g, w):  # type: ignore[no-untyped-def]
    """Minimise phi from V, in place, with A_V, gradient g and w of the V found; whether it was, ln sum, ||g||_1."""
    X = V.shape[0]
    S, d, trial = np.empty((X, X)), np.empty(X), np.empty(X)
    phi, log_sum = _phi(model, eta, log_mu, V, A_V, w)
    last, quiet = False, 0
    for _ in range(NEWTON):
        residual = _gradient(model, w, g)
        quiet = quiet + 1 if residual <= QUIET[0] else 0
        if last or quiet > QUIET[1]:
            return residual <= FLOW, log_sum, residual
        _direction(model, eta, w, g, S, d)
        slope, longest = 0.0, 0.0
        for x in range(X):
            slope += g[x] * d[x]
            longest = max(longest, abs(d[x]))
        last = eta * longest <= PRECISION
        t = min(1.0, LEAP / (eta * longest)) if longest > 0.0 else 1.0
        while True:
            for x in range(X):
                trial[x] = V[x] + t * d[x]
            value, log_sum = _phi(model, eta, log_mu, trial, A_V, w)
            if last or value <= phi + 1e-4 * t * slope + 8 * EPS * (1.0 + abs(phi)) or t < 1e-10:
                break
            t /= 2
        V[:] = trial
        phi = value
    return False, log_sum, residual


@compiled
def _phi(model, eta, log_mu, V, A_V, w):  # type: ignore[no-untyped-def]
    """phi(V) and the logarithm of the sum in it; A_V and w, of sum one."""
    r, successors, P, nu0, gamma, share, _ = model
    X, A, B = P.shape
    top = -np.inf
    for x in range(X):
        for a in range(A):
            total = 0.0
            for j in range(B):
                total += P[x, a, j] * V[successors[x, a, j]]
            A_V[x, a] = r[x, a] + gamma * total - V[x]
            w[x, a] = log_mu[x, a] + eta * A_V[x, a]
            top = max(top, w[x, a])
    mass = 0.0
    for x in range(X):
        for a in range(A):
            w[x, a] = math.exp(w[x, a] - top)
            mass += w[x, a]
    start = 0.0
    for x in range(X):
        start += nu0[x] * V[x]
        for a in range(A):
            w[x, a] /= mass
    log_sum = top + math.log(mass)
    return log_sum / eta + share * start, log_sum


@compiled
def _gradient(model, w, g):  # type: ignore[no-untyped-def]
    """g = gamma P^T w - E^T w + share nu_0, and ||g||_1."""
    r, successors, P, nu0, gamma, share, _ = model
    X, A, B = P.shape
    for x in range(X):
        g[x] = share * nu0[x]
    for x in range(X):
        for a in range(A):
            if w[x, a] > 0.0:
                g[x] -= w[x, a]
                for j in range(B):
                    g[successors[x, a, j]] += gamma * P[x, a, j] * w[x, a]
    norm = 0.0
    for x in range(X):
        norm += abs(g[x])
    return norm


@compiled
def _direction(model, eta, w, g, S, d):  # type: ignore[no-untyped-def]
    """d = -(eta M^T diag(w) M)^{-1} g by Cholesky; 0 where no weight is."""
    _, successors, P, _, gamma, _, _ = model
    X, A, B = P.shape
    S[:] = 0.0
    for x in range(X):
        for a in range(A):
            weight = eta * w[x, a]
            if weight > 0.0:
                S[x, x] += weight
                for j in range(B):
                    y, p = successors[x, a, j], gamma * P[x, a, j]
                    if p > 0.0:
                        S[max(x, y), min(x, y)] -= weight * p * (2.0 if x == y else 1.0)
                        for i in range(B):
                            z = successors[x, a, i]
                            if z <= y:
                                S[y, z] += weight * p * gamma * P[x, a, i]
    for k in range(X):  # S = L L^T, in its lower half
        left = S[k, k]
        for j in range(k):
            left -= S[k, j] ** 2
        void = left <= 16 * EPS * S[k, k]
        S[k, k] = 0.0 if void else math.sqrt(left)
        for i in range(k + 1, X):
            total = S[i, k]
            for j in range(k):
                total -= S[i, j] * S[k, j]
            S[i, k] = 0.0 if void else total / S[k, k]
    for k in range(X):
        total = -g[k]
        for j in range(k):
            total -= S[k, j] * d[j]
        d[k] = total / S[k, k] if S[k, k] > 0.0 else 0.0
    for k in range(X - 1, -1, -1):
        total = d[k]
        for j in range(k + 1, X):
            total -= S[j, k] * d[j]
        d[k] = total / S[k, k] if S[k, k] > 0.0 else 0.0
