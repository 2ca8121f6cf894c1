"""What does an audit keep? The scene, one epoch, its sums and books, and the worst case of every claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Parts, Path, Sets, Stated, Told
from ravi.planning.solver import Solution


class Scene(NamedTuple):
    """What does not change in a run: the truth, the optimum, the constants."""

    mdp: MDP
    parts: Parts
    told: Told
    steps: int
    solution: Solution
    mu_star: Array  # mu*        (X, A)
    pi_star: Array  # pi*        (X, A)
    entropy: float  # H(pi* || pi_0)
    P: Array  # the kernel as one array   (X, A, X)
    sets: Sets | None = None  # of plans on sets of kernels
    phase: int = 0  # i, where T is not known
    length: int = 0  # l_i, likewise

    @property
    def H(self) -> float:
        return self.mdp.horizon

    @property
    def atol(self) -> float:
        return 1e-9 * self.mdp.horizon  # of an identity in float64

    @property
    def setting(self) -> str:
        """Which data the learner keeps: of a "mixture", "tabular", or of another ("generic") estimator."""
        return self.stated.kind if self.stated.kind in ("tabular", "mixture") else "generic"

    @property
    def stated(self) -> Stated:
        return self.parts.stated

    def stating(self, **constants: Any) -> Scene:
        """With these constants in place of the learner's."""
        return self._replace(parts=self.parts._replace(stated=self.stated._replace(**constants)))

    @property
    def dimension(self) -> int:
        """d of a linear mixture, 0 where the learner does not use it."""
        return self.mdp.dimension if self.setting == "mixture" else 0

    def phi(self, V: Array) -> Array:
        """phi_V(x, a) = sum_x' psi(x, a, x') V(x'), from the definition   (n, X, A, d)."""
        psi: Array = self.mdp.features
        return np.einsum("xajd,nxaj->nxad", psi, V[:, self.mdp.successors])


class Epoch(NamedTuple):
    """Epoch k of every seed, seeds first. Q is Q_{k+1}; the rest has index k."""

    V: Array  # (n, X)
    Q: Array  # (n, X, A)
    policy: Array  # (n, X, A)
    nu: Array  # (n, X)
    mu: Array  # (n, X, A)
    PV: Array  # P V_k, the truth          (n, X, A)
    PV_hat: Array  # P_hat_k V_k           (n, X, A)
    CB: Array  # (n, X, A)
    width: Array  # N^{-1/2} or ||phi_k||  (n, X, A)
    improper: Array  # how far the learner's pi_k is from a policy; `policy` is one   (n,)


class Sums(NamedTuple):
    """Over the epochs closed so far, all before the first invalid one   (n,)."""

    epochs: Array  # K
    gaps: Array  # sum gap_k
    above: Array  # sum Delta*_k = rho* - (1 - gamma) <nu_0, V_k>
    below: Array  # sum Delta_k = (1 - gamma) <nu_0, V_k> - rho(pi_k)
    bonuses: Array  # sum <mu^{pi_k}, CB_k>
    capped: Array  # sum <mu^{pi_k}, min(2 CB_k, H)>
    moves: Array  # sum <mu^{pi_{k+1}} - mu^{pi_k}, Q_{k+1}> - H(pi_{k+1} || pi_k) / eta


class Walked(NamedTuple):
    """Along the steps of the current epoch, and totals over epochs, padding included."""

    visits: Array  # of each pair in this epoch               (n, X, A)
    total: Array  # of each pair in all closed epochs         (n, X, A)
    moves: Array  # (x_t, a_t, y_t) of all steps t <= T so far    (n, X, A, X)
    resets: Array  # how often a reset followed each pair     (n, X, A)
    starts: Array  # x_1 and states after resets              (n, X)
    chosen: Array  # visits less their mean sum_t pi_t(a | x_t)   (n, X, A)
    choice: Array  # their conditional variance               (n, X, A)
    bad: Array  # whether a step of this epoch had width >= 1  (n,)
    after_bad: Array  # steps from the first such step on      (n,)
    drift: Array  # sum of Z, see lemma 4.4                    (n,)
    variance: Array  # of Z                                    (n,)
    spread: Array  # the same for CB_k - <mu^{pi_k}, CB_k>     (n,)
    largest: Array  # max CB_k(x, a)                           (n,)
    bonus: Array  # sum_{t <= T+} CB_t(x_t, a_t)               (n,)
    plain: Array  # sum_{t <= T+} width_t(x_t, a_t)            (n,)
    under_mu: Array  # sum_{t <= T} <mu^{pi_t}, CB_t>          (n,)
    gap_steps: Array  # sum_{t <= T+} gap_t                    (n,)
    gap_epochs: Array  # sum_{k <= K(T)} gap_k                 (n,)
    gap_squares: Array  # sum_{k <= K(T)} gap_k^2              (n,)
    regret: Array  # sum_{t <= T} gap_t                        (n,)
    epochs: Array  # K(T)                                      (n,)
    bad_epochs: Array  # (n,)
    bad_length: Array  # steps in bad epochs                   (n,)
    bad_rest: Array  # steps of bad epochs from the first bad step on   (n,)
    longest: Array  # max_k L_k                                (n,)
    visited: Array  # plays, padding included                  (n,)
    shortfall: Array  # steps where x_{t+1} != y_t without a reset   (n,)


class Matrices(NamedTuple):
    """Of a linear mixture; d = 0 elsewhere."""

    noise: Array  # sum phi_i (V_i(y_i) - P V_i)                  (n, d)
    covariance: Array  # Lambda, of all steps t <= T so far       (n, d, d)
    response: Array  # b, likewise                                (n, d)
    G: Array  # lambda I + sum of phi phi^T over bad steps        (n, d, d)
    full: Array  # Lambda with the padding too                    (n, d, d)
    potential: Array  # sum_k (1 / L_k) sum_t ln(1 + L_k ||phi||^2)   (n,)
    clipped: Array  # sum_t (1 and ||phi||^2)                     (n,)


class Tables(NamedTuple):
    """Of a tabular run."""

    good: Array  # sum over visits j < N_k of 1 / sqrt(N_k)       (n,)
    doublings: Array  # epochs in which a pair is visited more than N_k times   (n, X, A)


class Worst(NamedTuple):
    """The worst case of each claim   (n, claims)."""

    margin: Array
    measured: Array
    bound: Array
    epoch: Array


class Audit(NamedTuple):
    seen: Array  # epochs opened        (n,)
    length: Array  # of the current one (n,)
    valid: Array  # no invalid bonus yet   (n,)
    invalid_at: Array  # the first invalid epoch, 0 for none   (n,)
    epoch: Epoch
    sums: Sums
    walked: Walked
    matrices: Matrices
    tables: Tables
    first: Array  # <mu^{pi_1}, E V_1>  (n,)
    last_V: Array  # V_{K+1}, K the epochs of `sums`; after `finish`   (n, X)
    last_value: Array  # <mu^{pi_{K+1}}, E V_{K+1}>, likewise   (n,)
    total_V: Array  # sum V_i           (n, X)
    total_Q: Array  # sum Q_i           (n, X, A)
    state: Array  # where the walker must be, -1 for anywhere   (n,)
    worst: Worst


class Check(NamedTuple):
    """A claim about every epoch (or pair of neighbours, or prefix): (scene, ...) -> measured, bound, both (n,)."""

    phase: str  # "epoch", "pair" or "prefix"
    conditional: bool  # on valid bonuses so far
    measure: Callable[..., tuple[Array, Array]]


class Seen(NamedTuple):
    """What a check is given."""

    scene: Scene
    k: int
    before: Epoch  # epoch k - 1 (zeros when k = 1)
    epoch: Epoch  # epoch k
    sums: Sums  # over the epochs before k
    audit: Audit
    data: Any  # D_{T_k}
    path: Path | None
