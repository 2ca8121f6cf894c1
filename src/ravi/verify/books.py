"""What an audit keeps: a backup and the policies about it, sums and books, and the worst of every claim.

Let V_0, pi_0 be where a learner begins, and V_i, pi_i what its i-th mirror step makes; backup i leads from V_i to
Q_{i+1}, which makes V_{i+1} and pi_{i+1}. RAVI-UCB makes one backup an epoch: there i is k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi.core import Array, Path
from ravi.planning.occupancies import of_batch
from ravi.runtime import tree
from ravi.runtime.result import Run
from ravi.verify.scene import Scene, lam


class Iterate(NamedTuple):
    V: Array  # V_i               (n, X)
    policy: Array  # pi_i         (n, X, A)
    nu: Array  # of pi_i          (n, X)
    mu: Array  # of pi_i          (n, X, A)
    improper: Array  # how far the learner's pi_i is from a policy; `policy` is one   (n,)


class Backup(NamedTuple):
    """From V_i to Q_{i+1}   (n, X, A)."""

    Q: Array  # Q_{i+1}
    r: Array  # the rewards in it; where they change, known when Q is
    PV: Array  # P V_i, the truth
    PV_hat: Array  # its estimate
    CB: Array
    width: Array  # N^{-1/2} or ||phi||


class Books(NamedTuple):
    """What was played before an epoch, by the observer; d = 0 where there is no regression."""

    moves: Array  # (x_t, a_t, y_t) of all steps t <= T        (n, X, A, X)
    covariance: Array  # Lambda, with the V that was played    (n, d, d)
    response: Array  # b, likewise                             (n, d)
    noise: Array  # sum phi_t (V_t(y_t) - P V_t)               (n, d)


class Totals(NamedTuple):
    """Over backups up to i, all before the first invalid one, of a phase where there are phases."""

    tables: Array  # how often r_i was each table            (n, J)
    earned: Array  # sum <mu^{pi_i}, r_i>                    (n,)
    hoped: Array  # sum (1 - gamma) <nu_0, V_i>              (n,)
    bonuses: Array  # sum <mu^{pi_i}, CB_i>                  (n,)
    capped: Array  # sum <mu^{pi_i}, min(2 CB_i, H)>         (n,)
    moves: Array  # sum <mu^{pi_{i+1}} - mu^{pi_i}, Q_{i+1}> - H(pi_{i+1} || pi_i) / eta   (n,)
    first: Array  # <mu, E V> of the first V_i and pi_i      (n,)
    end: Array  # <mu* - mu^{pi_{i+1}}, E V_{i+1}>, no sum   (n, C)

    @property
    def backups(self) -> Array:
        return self.tables.sum(-1)


class Walked(NamedTuple):
    """Along the steps of the current epoch, and totals over epochs, padding included."""

    visits: Array  # of each pair in this epoch               (n, X, A)
    total: Array  # of each pair in all closed epochs         (n, X, A)
    resets: Array  # how often a reset followed each pair     (n, X, A)
    starts: Array  # x_1 and states after resets              (n, X)
    chosen: Array  # visits less their mean sum_t pi_t(a | x_t)   (n, X, A)
    choice: Array  # their conditional variance               (n, X, A)
    doublings: Array  # epochs with more than N_k visits, in a tabular run   (n, X, A)
    bad: Array  # whether a step of this epoch had width >= 1  (n,)
    after_bad: Array  # steps from the first such step on      (n,)
    drift: Array  # sum of Z, see lemma 4.4                    (n,)
    variance: Array  # of Z                                    (n,)
    spread: Array  # the same for CB_k - <mu^{pi_k}, CB_k>     (n,)
    largest: Array  # max CB_k(x, a)                           (n,)
    bonus: Array  # sum_{t <= T+} CB_t(x_t, a_t)               (n,)
    capped: Array  # sum_{t <= T+} min(2 CB_t(x_t, a_t), H)    (n,)
    good: Array  # sum over visits j < N_k of 1 / sqrt(N_k), in a tabular run   (n,)
    plain: Array  # sum_{t <= T+} width_t(x_t, a_t)            (n,)
    under_mu: Array  # sum_{t <= T} <mu^{pi_t}, CB_t>          (n,)
    gap_steps: Array  # sum_{t <= T+} gap_t                    (n,)
    gap_epochs: Array  # sum_{k <= K(T)} gap_k                 (n,)
    gap_squares: Array  # sum_{k <= K(T)} gap_k^2              (n,)
    regret: Array  # sum_{t <= T} gap_t                        (n,)
    epochs: Array  # K(T)                                      (n,)
    bad_epochs: Array  # (n,)
    bad_length: Array  # steps in bad epochs (erratum 19)      (n,)
    bad_rest: Array  # steps of bad epochs from the first bad step on   (n,)
    longest: Array  # max_k L_k                                (n,)
    visited: Array  # plays, padding included                  (n,)
    shortfall: Array  # steps where x_{t+1} != y_t without a reset   (n,)


class Matrices(NamedTuple):
    """The matrices of a linear mixture; d = 0 for other learners."""

    G: Array  # lambda I + sum of phi phi^T over bad steps        (n, d, d)
    full: Array  # Lambda with the padding too                    (n, d, d)
    potential: Array  # sum_k (1 / L_k) sum_t ln(1 + L_k ||phi||^2)   (n,)
    clipped: Array  # sum_t (1 and ||phi||^2)                     (n,)


class Drawn(NamedTuple):
    """Which of the M policies of an epoch are played."""

    times: Array  # how often each of the M    (n, M)
    lead: Array  # sum of gap(pi_m) less the mean gap of the M   (n,)
    variance: Array  # of that, given the M    (n,)


class Turned(NamedTuple):
    """Sums where rewards change, with f_t = <mu* - mu^{pi_t}, r_t> for each of the C comparators."""

    last: Array  # the table of the last step, or of the epoch                  (n,)
    rho: Array  # <mu^{pi_k}, r_j>                                              (n, J)
    regret: Array  # sum_{t <= T} f_t                                           (n, C)
    drift: Array  # sum_{t <= T+} f_t - H sum_k <mu* - mu^{pi_k}, r_k>          (n, C)
    variance: Array  # of it: sum_{t <= T+} gamma H f_t^2                       (n, C)
    lead: Array  # sum f_t over t <= T+, before the first invalid epoch         (n, C)
    paid: Array  # sum min(2 CB_t(x_t, a_t), H) over the same                   (n,)


class Worst(NamedTuple):
    """The worst case of each claim   (n, phases, claims)."""

    margin: Array
    measured: Array
    bound: Array
    epoch: Array


class Audit(NamedTuple):
    seen: Array  # epochs opened        (n,)
    phase: Array  # in force, -1 before the first   (n,)
    valid: Array  # no invalid bonus yet, in this phase   (n,)
    invalid_at: Array  # the first invalid epoch, 0 for none   (n,)
    at: Iterate  # V_i, pi_i
    backup: Backup  # the last that was made
    log_policy: Array  # log pi_i, as the learner holds it   (n, X, A)
    totals: Totals
    total_V: Array  # sum V_i           (n, X)
    total_Q: Array  # sum Q_i           (n, X, A)
    books: Books
    older: Books  # when the epoch before began
    played: Iterate  # V and pi of this epoch
    there: Backup  # what that V and the data make
    length: Array  # of this epoch      (n,)
    state: Array  # where the walker must be, -1 for anywhere   (n,)
    walked: Walked
    matrices: Matrices
    drawn: Drawn
    turned: Turned
    own: Any  # what a `Keeper` keeps
    data: Any  # D when the epoch began, where there are phases
    ended: Array  # which phases have; where T is known there is one   (n, phases)
    past: Totals  # of each that has   (n, phases, ...)
    worst: Worst


class Planned(NamedTuple):
    """What one backup and one mirror step leave in a state."""

    V: Array
    Q: Array
    log_policy: Array
    policy: Array


class Plan(NamedTuple):
    """An epoch's, by the learner and by the observer."""

    state: Any  # after the learner's own
    made: Planned  # by the learner
    planned: Planned  # by the observer, the last of M
    V: Array  # V_m and pi_m, by the observer
    policy: Array


class Seen(NamedTuple):
    """What a claim is given: a backup with the policies before and after it, or those that two epochs played."""

    scene: Scene
    k: int  # 0 after the last epoch
    at: Iterate  # V_i, pi_i; of "epoch" and "pair" those of epoch k - 1
    backup: Backup  # from there; of "epoch", "pair" and "data" at the V of epoch k
    after: Iterate  # V_{i+1}, pi_{i+1}, the same as `at` where they are not made yet; or those of epoch k
    audit: Audit
    data: Any  # D
    plan: Any = None  # the Plan of epoch k, from "data" to "pair"
    anew: bool = False  # whether the sequence began with this epoch, and not with the run

    @property
    def totals(self) -> Totals:
        return self.audit.totals

    @property
    def books(self) -> Books:
        return self.audit.books

    @property
    def own(self) -> Any:
        return self.audit.own


class Keeper(NamedTuple):
    """What an observer keeps besides for the claims of one kind of learner: `Audit.own`, a NamedTuple of arrays, seeds
    first."""

    init: Callable[[Array], Any]  # keys of the seeds -> what is kept before the first step
    follow: Callable[[Audit, Path, Array], None]  # a stretch of steps, those that are learned from (n, L); in place
    look: Callable[[Audit, Any, Path], Any] | None = None  # an epoch opens: state, its first stretch -> what is kept


class Evidence(NamedTuple):
    """What is known after a run: all that a claim about a whole run, or about all seeds, may look at."""

    scene: Scene
    audit: Audit  # after `finish`
    run: Run  # with pad=True; of plans on sets of kernels without

    @property
    def n(self) -> int:
        return len(self.run.seeds)

    @property
    def plays(self) -> Array:
        """T+ of each seed."""
        return self.run.steps + self.run.padding


# ---- what a run, or a phase, begins with


def begin(scene: Scene, n: int, claims: int) -> Audit:
    """The books of n seeds before the first epoch."""
    X, A, d, parts = scene.mdp.states, scene.mdp.actions, scene.dimension, scene.parts
    C, J = scene.against.rho.shape
    phases = len(scene.phases)

    def zeros(*shape: int) -> Array:
        return np.zeros((n, *shape))

    def whole(value: int = 0) -> Array:
        return np.full(n, value, np.int64)

    V = parts.initial_value + zeros(X)
    at = iterate(scene, V, parts.initial_policy + zeros(X, A))
    backup = Backup(np.repeat(V[..., None], A, -1), *(zeros(X, A) for _ in range(5)))  # Q_1 = E V_0
    totals = Totals(zeros(J), zeros(), zeros(), zeros(), zeros(), zeros(), *ends(scene, at))
    eye = lam(scene) * np.tile(np.eye(d), (n, 1, 1))
    books = Books(zeros(X, A, X), eye, zeros(d), zeros(d))
    pairs = *(zeros(X, A) for _ in range(3)), zeros(X), *(zeros(X, A) for _ in range(3)), np.zeros(n, bool)
    walked = Walked(*pairs, *(zeros() for _ in Walked._fields[len(pairs) :]))
    past = tree.mapped(lambda part: np.repeat(0 * part[:, None], phases, 1), totals)
    return Audit(
        whole(), whole(-1), np.ones(n, bool), whole(), at, backup, np.log(at.policy), totals, zeros(X), zeros(X, A),
        books, tree.copy(books), tree.copy(at), tree.copy(backup), whole(), whole(-1), walked,
        Matrices(eye.copy(), eye.copy(), zeros(), zeros()), Drawn(zeros(parts.inner), zeros(), zeros()),
        Turned(whole(), zeros(J), zeros(C), zeros(C), zeros(C), zeros(C), zeros()), (),
        parts.estimator.init(n) if scene.of else (), np.zeros((n, phases), bool), past,
        Worst(np.full((n, phases, claims), np.inf), *(zeros(phases, claims) for _ in range(3))),
    )  # fmt: skip


def iterate(scene: Scene, V: Array, policy: Array) -> Iterate:
    made, improper = proper(policy)
    mu, nu, _ = of_batch(scene.mdp, made)
    return Iterate(V.copy(), made, nu, mu, improper)


def proper(policy: Array) -> tuple[Array, Array]:
    """A broken learner's policy made a policy, and the largest change (n,): so that it is reported, not refused."""
    total = policy.sum(-1, keepdims=True)
    if (policy >= 0).all() and (np.abs(total - 1) < 1e-12).all():
        return policy.copy(), np.zeros(len(policy))
    weights = np.where(policy >= 0, policy, 0.0)  # a nan counts as 0
    weights = np.where(weights.sum(-1, keepdims=True) > 0, weights, 1.0)
    made = weights / weights.sum(-1, keepdims=True)
    return made, np.abs(made - policy).reshape(len(policy), -1).max(-1)


def ends(scene: Scene, at: Iterate) -> tuple[Array, Array]:
    """<mu, E V> (n,), and <mu* - mu, E V> (n, C)."""
    own = (at.nu * at.V).sum(-1)
    return own, at.V @ scene.against.nu.T - own[:, None]
