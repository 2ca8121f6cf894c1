"""RMAX-RAVI-UCB: regularised backups without truncation; where little is known, the way leads to heaven.

Paper: A. Moulin, G. Neu, L. Viano, "Optimistically optimistic exploration for provably efficient infinite-horizon
reinforcement and imitation learning", 2025, arXiv 2502.13900.
Setting: discounted with resets, linear MDP of dimension d.
Trust: RECON: a reconstruction. The idea (bonuses, an absorbing state of maximal value that is reached where
uncertainty is large, regularised backups) is CHECKED against the abstract and a public summary; the paper's pseudo-code
and constants were not to be had. The equations and constants below are DERIVED here.

A phase begins when det Lambda has doubled. It freezes Lambda and M = sum phi e_y^T, as they are then, and with them

    CB(x, a)  = beta ||phi(x, a)||_{Lambda^-1}
    p+(x, a)  = 1{CB > omega}                   ascension=hard
              = sigmoid((CB / omega - 1) l)     ascension=sigmoid, l = max(1, ln T)

and restarts mirror descent, from pi = uniform and V = 0. In epoch k of the phase

    V_k(x)    = (1/eta) log sum_a pi_{k-1}(a|x) exp(eta Q_k(x, a))
    pi_k(a|x) = pi_{k-1}(a|x) exp(eta (Q_k(x, a) - V_k(x)))
    theta_k   = Lambda^{-1} M V_k
    Q_{k+1}   = (1 - p+)(r + CB + gamma <phi, theta_k>) + p+ H

pi_k is played until a reset, or until the phase ends. Samples of a phase wait for the next one: Lambda^{-1} with
moves that Lambda has not seen would give kernels of mass above one.

Why it works. Let M+ be the MDP with reward (1 - p+) r + p+ that goes on as P with probability 1 - p+ and with p+ to
heaven, where the reward is 1 for ever: since H = 1 + gamma H, its backup of V is (1 - p+)(r + gamma P V) + p+ H. As r
<= 1, no policy is worse in M+ than in the true MDP. Say that bonuses are valid: |gamma <phi, theta_k> - gamma P V_k|
<= CB. Then

    (1 - p+)(r + gamma P V_k) + p+ H  <=  Q_{k+1}  <=  the same + 2 (1 - p+) CB.

The left is optimism: Q_{k+1} is at least the backup in M+, which is the same MDP throughout the phase, so that the
telescoping sums of RAVI-UCB hold phase by phase. The right bounds values without truncation. Write w = max (1 - p+)
CB. If V_k <= (1 + 2 w) H then

    Q_{k+1} <= (1 - p+)(1 + gamma H) + p+ H + 2 w (gamma H + 1) = (1 + 2 w) H,

and V_{k+1}, an average of Q_{k+1} in the exponent, is no more. With the hard threshold w <= omega at once. With the
sigmoid, c / (1 + exp(l (c / omega - 1))) is largest at c = omega (1 + z / l), where exp(-z) = l + z - 1, and is there
omega exp(-z) / l = omega (l + z - 1) / l <= omega, because z < 1 as soon as l > 1 / e. So V <= (1 + 2 omega) H in
both, 2 H by default. Heaven costs at most H for every visit with CB > omega, and there are few of these; the sigmoid
is smooth, and leaves p+ < 1 / T where nothing is uncertain, which costs H in all.

Constants: omega = 1/2. beta = (1 + 2 omega) H d sqrt(ln(2 d T / delta)), delta = 1/T: the order of a union bound over
value functions that d^2 + d numbers describe (Lambda and the sum of theta_k), for values in [0, (1 + 2 omega) H]; the
absolute constant is taken to be 1. eta minimises E ln A / eta + eta (1 + 2 omega)^2 H^2 T / 2, Theorem 4.1 of RAVI-UCB
with E restarts and this range: eta = sqrt(2 E ln A / T) / ((1 + 2 omega) H), E = 1 + (d / ln 2) ln(1 + T / (lambda d)).
lambda = 1. `scale` multiplies beta, `step_scale` eta; `threshold` is omega.
Guarantee: of order sqrt(d^3 H^(7/2) T) up to logarithms (the paper's, for its constants), with E restarts.
Composition: regression on all moves x beta ||phi||_{Lambda^-1} and ascension x one mirror step and one backup x at
resets, in phases of doubled determinants.
Cost: O(d^2) per step; d X + X A d per plan, T / H + E of them; d^2 X + X A d^2 per phase.
Deviations: rewards are known; adversarial rewards and imitation are left out. The first epoch of a phase plays the
uniform policy.
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.estimators.gram import Gram, gram, gram_walk, reopen, row
from ravi.estimators.linear import features_of, measures, width
from ravi.learners.options import Regression, takes
from ravi.planning.mirror import mirror_step
from ravi.runtime.ranges import LogPolicy, Number, Policy, Positive, Probability, Whole
from ravi.runtime.walk import keep
from ravi.schedules import at_reset


class State(NamedTuple):
    data: Gram  # all that was seen; what a phase works with is frozen:
    m_hat: Number  # Lambda^{-1} M       (n, d, X)
    CB: Positive  # bonus                (n, X, A)
    ascent: Probability  # p+            (n, X, A)
    V_up: Positive  # V_k, in [0, (1 + 2 omega) H]       (n, X)
    Q_up: Number  # Q_{k+1}              (n, X, A)
    log_policy: LogPolicy  # log pi_k    (n, X, A)
    policy: Policy  # pi_k               (n, X, A)
    phases: Whole  # begun so far        (n,)


@takes()
def rmax_ravi_ucb(
    problem: Problem, T: int, o: Regression, step_scale: float = 1.0, threshold: float = 0.5, ascension: str = "hard"
) -> Learner:
    """RMAX-RAVI-UCB; `threshold` is omega, the bonus above which a pair leads to heaven."""
    scale, delta, lam = o
    hard = validation.one_of(ascension, ("hard", "sigmoid"), "ascension") == "hard"
    omega = validation.nonnegative(threshold, "threshold") if hard else validation.positive(threshold, "threshold")
    r, gamma, H, X, A = problem.rewards, problem.discount, problem.horizon, problem.states, problem.actions
    phi = features_of(problem)
    d = phi.shape[-1]
    top = (1 + 2 * omega) * H  # values end here
    E = 1 + d / log(2) * log(1 + T / (lam * d))  # phases, at most
    beta = top * d * sqrt(log(2 * d * T / delta)) * scale
    validation.nonnegative(beta * top * max(1.0, lam**-0.5), "the bonus of scale, threshold and regularization")
    eta = sqrt(2 * E * log(max(A, 2)) / T) / top * validation.positive(step_scale, "step_scale")
    steepness = max(1.0, log(T))

    def ascend(CB: Array) -> Array:
        if hard:
            return np.where(omega < CB, 1.0, 0.0)
        return 0.5 + 0.5 * np.tanh(0.5 * steepness * (CB / omega - 1))  # the sigmoid, without overflow

    def init(keys: Array) -> State:
        n = len(keys)
        CB, p, Q = np.zeros((n, X, A)), np.zeros((n, X, A)), np.zeros((n, X, A))
        uniform = np.full((n, X, A), 1 / A)
        data = gram(n, d, lam, X, moves=True)
        return State(data, np.zeros((n, d, X)), CB, p, np.zeros((n, X)), Q, np.log(uniform), uniform, np.zeros(n, int))

    def plan(s: State) -> State:
        for i in reopen(s.data, s.phases == 0):
            one = row(s.data, i)
            s.m_hat[i], s.CB[i] = measures(one)[0], beta * width(one, phi)[0]
            s.ascent[i] = ascend(s.CB[i])
            s.policy[i], s.log_policy[i], s.Q_up[i] = 1 / A, np.log(1 / A), 0.0  # so that V = 0
            s.phases[i] += 1
        V, log_policy, policy = mirror_step(s.log_policy, s.policy, s.Q_up, eta, in_place=True)  # V_k, pi_k
        _backup(r, s.CB, s.ascent, gamma, H, phi, s.m_hat, V, s.Q_up)  # Q_{k+1}
        return s._replace(V_up=V, log_policy=log_policy, policy=policy)

    settings = {
        "beta": beta, "eta": eta, "threshold": omega, "ascension": ascension, "scale": scale, "step_scale": step_scale,
        "delta": delta, "regularization": lam, "phases": E,
    }  # fmt: skip
    return Learner(
        "rmax-ravi-ucb", init, plan, keep, at_reset(), settings,
        walk=gram_walk(lambda s: (s.data, phi, None)),
    )  # fmt: skip


@compiled
def _backup(r, CB, ascent, gamma, H, phi, m_hat, V, Q):  # type: ignore[no-untyped-def]
    """Q <- (1 - p+)(r + CB + gamma <phi, m_hat V>) + p+ H."""
    n, d, X = m_hat.shape
    A = r.shape[1]
    theta = np.empty(d)
    for i in range(n):
        for j in range(d):
            total = 0.0
            for y in range(X):
                total += m_hat[i, j, y] * V[i, y]
            theta[j] = total
        for x in range(X):
            for a in range(A):
                p = ascent[i, x, a]
                PV = 0.0
                for j in range(d):
                    if phi[0, x, a, j] != 0.0:
                        PV += phi[0, x, a, j] * theta[j]
                Q[i, x, a] = (1.0 - p) * (r[x, a] + CB[i, x, a] + gamma * PV) + p * H
