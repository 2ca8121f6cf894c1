"""What does a seed know on continuous states, and how does it plan? Records of backups, V on the nodes, Q anywhere.

The equations are those of `ravi.continuous.learner`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import log, sqrt
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.continuous import quadrature
from ravi.continuous.core import ContinuousProblem
from ravi.continuous.quadrature import Grid, row
from ravi.core import Array
from ravi.estimators.centred import LEAST
from ravi.estimators.ridge import invert_root
from ravi.optimism.bonuses import confidence_term, log_det_radius
from ravi.planning.mirror import mirror_step
from ravi.random import PICK, uniform
from ravi.runtime import ranges
from ravi.runtime.ranges import Fixed, LogPolicy, Number, Plays, Policy, Positive, Range, Whole
from ravi.runtime.tree import Ragged

NONE = np.zeros(0)  # for what a planner that does not plan does not need


class Rule(NamedTuple):
    """What a learner is made of: its constants, and which parts are on. The `parts` of the learner."""

    name: str
    problem: ContinuousProblem
    grid: Grid
    normalisation: float  # the largest |Z - 1| on the grid
    eta: float
    inner: int  # M
    beta: float  # in the closed form; nan where it is of the determinant at hand
    scale: float  # of beta
    noise: float  # of the targets: H or H/2, or 1 in parts of the span
    delta: float
    regularization: float  # lambda
    bound: float  # B_theta, or the one B of the paper
    eps: float  # of the quadrature, in parts of half the range of V
    steps: int  # T
    fresh: bool
    centre: bool
    span: bool
    clip: bool
    gamma: bool  # gamma CB for CB


class Records(NamedTuple):
    """What backups leave behind; there is room for P, of which `filled` are in use. A state has those of each seed."""

    U: Number  # V, standardised, on the nodes    (m, P); in a state end to end (m P,)
    stats: ranges.NumberOrNone  # c, sigma, low, high, beta, extra   (P, 6)
    theta: Number  # theta_hat                    (P, d)
    root: Number  # R                             (P, d, d)


MADE = Range(lambda a, f, _, held: (a >= 0) & (a <= held.filled), "a number of the records made")


class State(NamedTuple):
    """What a learner knows, seeds first."""

    covariance: Number  # Lambda                              (n, d, d)
    response: Number  # b                                         (n, d)
    root: Number  # R of the last plan                            (n, d, d)
    last: Number  # V of the last backup, on the nodes            (n, m)
    log_policy: LogPolicy  # of the last mirror step              (n, m, A)
    last_policy: Policy  # likewise                               (n, m, A)
    Q: Number  # of the next mirror step, where data lag          (n, m, A)
    V: Number  # of the policy that is played                     (n, m)
    policy: Policy  # that is played                              (n, m, A)
    filled: Whole  # records made                                 (n,)
    taken: Annotated[Array, MADE]  # that the last policy is of   (n,)
    active: Annotated[Array, MADE]  # that the played one is of   (n,)
    earned: Positive  # sum of rewards                            (n,)
    time: Plays  # steps made                                     (n,)
    key: Fixed  #                                                 (n,)
    records: Records


class Values(NamedTuple):
    """V, its standard form, and what was known when it was made."""

    V: Array  # on the nodes   (m,)
    U: Array  # (m,)
    stats: Array  # c, sigma, low, high    (4,)


def planner_at(rule: Rule, s: State, i: int, rows: Array | None = None, r: Array | None = None) -> Planner:
    """The planner of seed i, which works on the arrays of the state."""
    planner = Planner(rule, s.key[i], rows, r)
    planner.covariance, planner.response, planner.root = s.covariance[i], s.response[i], s.root[i]
    planner.last, planner.log_policy, planner.policy = s.last[i], s.log_policy[i : i + 1], s.last_policy[i : i + 1]
    planner.filled, planner.taken, planner.active = int(s.filled[i]), int(s.taken[i]), int(s.active[i])
    planner.Q = s.Q[i] if planner.filled and not rule.fresh else None
    planner.records = Records(s.records.U.parts[i].reshape(planner.m, -1), *(part.parts[i] for part in s.records[1:]))
    planner.played, planner.played_policy = planner.standard(s.V[i]), s.policy[i]
    return planner


def stored(planners: Sequence[Planner]) -> State:
    """The state of seeds that have not played."""
    n, one = len(planners), planners[0]

    def each(part: Array) -> Array:
        return np.array([part] * n)

    none, keys = np.zeros(n, np.int64), np.array([planner.key for planner in planners], np.uint64)
    records = Records(*(Ragged(parts) for parts in zip(*(planner.flat() for planner in planners), strict=True)))
    return State(
        each(one.covariance), each(one.response), each(one.root), each(one.last), each(one.log_policy[0]),
        each(one.policy[0]), each(np.zeros((one.m, one.A))), each(one.played.V), each(one.played_policy),
        none, none.copy(), none.copy(), np.zeros(n), none.copy(), keys, records,
    )  # fmt: skip


class Planner:
    """What a learner knows, for one seed: `plan` once per epoch; the walk adds to Lambda and b, in place."""

    def __init__(self, learner: Rule, key: Any, rows: Array | None = None, r: Array | None = None) -> None:
        self.learner, self.key = learner, np.uint64(key)
        problem, m = learner.problem, learner.grid.size
        self.A, self.d, self.m = problem.actions, problem.dimension, m
        if rows is None:
            rows = node_rows(learner)
        self.rows = rows  # p_i(x_l | x_j, a)    (m A d, m)
        self.r = quadrature.rewards(problem, learner.grid.nodes) if r is None else r
        lam = learner.regularization
        self.covariance, self.response = lam * np.eye(self.d), np.zeros(self.d)
        self.root = np.eye(self.d) / sqrt(lam)
        self.last = np.zeros(m)  # V of the last backup
        self.log_policy = np.full((1, m, self.A), -log(self.A))
        self.policy = np.full((1, m, self.A), 1 / self.A)
        self.Q: Array | None = None  # of the next mirror step, where data lag
        room, d = 16, self.d
        self.records = Records(np.zeros((m, room)), np.zeros((room, 6)), np.zeros((room, d)), np.zeros((room, d, d)))
        self.filled = 0  # records made
        self.taken = 0  # records that the last policy is of
        self.active = 0  # records that the played one is of
        self.played = self.standard(self.last)
        self.played_policy = self.policy[0].copy()

    def flat(self) -> tuple[Array, ...]:
        """The records as a state has them."""
        return self.records.U.reshape(-1), *self.records[1:]

    def store(self, s: State, i: int) -> None:
        """Into a state, whose arrays are those of `planner_at`, what was not written there in place."""
        s.last[i], s.V[i], s.log_policy[i], s.last_policy[i] = self.last, self.played.V, self.log_policy, self.policy
        s.filled[i], s.taken[i], s.active[i] = self.filled, self.taken, self.active
        if self.Q is not None:
            s.Q[i] = self.Q
        for leaf, array in zip(s.records, self.flat(), strict=True):
            leaf.parts[i] = array

    def standard(self, V: Array) -> Values:
        """V less its middle, in parts of its span, as far as these are on."""
        how, low, high = self.learner, float(V.min()), float(V.max())
        c = (low + high) / 2 if how.centre else 0.0
        sigma = max((high - low) / 2, LEAST) if how.span else 1.0
        ends = (low, high) if how.clip else (-np.inf, np.inf)
        return Values(V, (V - c) / sigma, np.array([c, sigma, *ends]))

    def radius(self) -> float:
        """beta, with what quadrature adds to it."""
        how = self.learner
        beta = how.beta
        if math.isnan(beta):
            beta = float(
                log_det_radius(
                    self.root[None],
                    self.d,
                    confidence_term(how.delta),
                    noise=how.noise,
                    regularization=how.regularization,
                    bound=how.bound,
                )[0]
            )
        unit = 1.0 if how.span else how.problem.horizon / 2
        return how.scale * beta + unit * how.eps * sqrt(how.steps)

    def record(self, V: Array) -> Array:
        """A backup of V with the data at hand: its record is kept; Q on the nodes   (m, A)."""
        how, problem = self.learner, self.learner.problem
        if self.filled == len(self.records.stats):
            more = (doubled(part, axis=int(k == 0)) for k, part in enumerate(self.records))
            self.records = Records(*more)
        values, n = self.standard(V), self.filled
        extra = how.eps * (values.stats[1] if how.span else problem.horizon / 2)
        to = self.records
        to.stats[n] = (*values.stats, self.radius(), extra)
        to.U[:, n], to.theta[n], to.root[n] = values.U, self.root @ (self.root.T @ self.response), self.root
        self.filled = n + 1
        phi = (self.rows @ values.U).reshape(self.m, self.A * self.d)
        Q = np.empty((self.m, self.A))
        backed_up_all(phi, self.r, to.stats[n], to.theta[n], to.root[n], *self.numbers, Q)
        return Q

    @property
    def numbers(self) -> tuple[float, float, float]:
        """gamma, H, and the factor of the bonus."""
        problem = self.learner.problem
        return problem.discount, problem.horizon, share_of(self.learner)

    def mirror(self, Q: Array) -> None:
        V, self.log_policy, self.policy = mirror_step(
            self.log_policy, self.policy, Q[None], self.learner.eta, in_place=True
        )
        self.last = V[0]

    def plan(self, t: int) -> None:
        """An epoch whose first step is t."""
        how, chosen = self.learner, 0
        if not invert_root(self.covariance, self.root):
            raise validation.InputError(
                f"{how.problem.name}: Lambda is no longer positive definite to working precision"
            )
        if how.inner > 1:
            chosen = int(how.inner * uniform(self.key, t, PICK))
        for j in range(how.inner):
            if how.fresh:
                self.mirror(self.record(self.last))
                self.taken += 1
            else:
                if self.Q is not None:  # the first is Q_1 = E V_0, which changes nothing
                    self.mirror(self.Q)
                    self.taken += 1
                self.Q = self.record(self.last)
            if j == chosen:
                self.active, self.played = self.taken, self.standard(self.last)
                self.played_policy[:] = self.policy[0]

    def parameter(self) -> Array:
        """theta_hat of all data   (d,)."""
        return np.linalg.solve(self.covariance, self.response)

    def at(self, x: Any) -> tuple[Array, Array]:
        """pi and V of the played policy at any states: (N, A) and (N,)."""
        problem, on = self.learner.problem, self.learner.grid
        where = quadrature.states(problem, x)
        V, pi = np.empty(len(where)), np.empty((len(where), self.A))
        _at_all(
            problem.functions.factor, problem.functions.reward, problem.constants, where, *on[:3],
            *self.records, self.active, self.learner.eta, *self.numbers, V, pi,
        )  # fmt: skip
        return pi, V

    def quadrature_error(self, finer: Grid, x: Any) -> float:
        """|P_i V - sum_j p_ij V(x_j)| of the played V, the largest over simulators, actions and these x, in parts of
        half the range of V; P_i V is taken on the finer grid."""
        problem = self.learner.problem
        _, V = self.at(finer.nodes)
        near = quadrature.rows(problem, self.learner.grid, x)[0] @ self.played.V
        far = quadrature.rows(problem, finer, x)[0] @ V
        half = max(np.ptp(self.played.V) / 2, LEAST)
        return float(np.abs(near - far).max() / half)


def share_of(rule: Rule) -> float:
    """The factor of the bonus."""
    return rule.problem.discount if rule.gamma else 1.0


def doubled(array: Array, axis: int) -> Array:
    """With as much room again."""
    return np.concatenate([array, np.zeros_like(array)], axis=axis)


def node_rows(learner: Rule) -> Array:
    """The rows of the nodes themselves   (m A d, m): the same for all seeds."""
    rows, _ = quadrature.rows(learner.problem, learner.grid, learner.grid.nodes)
    return rows.reshape(-1, learner.grid.size)


@compiled
def backed_up(phi, r, stats, theta, root, gamma, H, share, Q):  # type: ignore[no-untyped-def]
    """Q(x, .) of a record. phi: phi_U(x, .), (A d,), the action slowest."""
    c, sigma, low, high, beta, extra = stats[0], stats[1], stats[2], stats[3], stats[4], stats[5]
    d = theta.shape[0]
    for a in range(Q.shape[0]):
        mean, square = 0.0, 0.0
        for i in range(d):
            mean += phi[a * d + i] * theta[i]
            half = 0.0
            for j in range(i + 1):  # R is upper triangular
                half += phi[a * d + j] * root[j, i]
            square += half * half
        PV = min(max(c + sigma * mean, low), high)
        CB = min(sigma * beta * math.sqrt(square) + extra, high - low)
        Q[a] = max(min(r[a] + share * CB + gamma * PV, H), 0.0)


@compiled
def backed_up_all(phi, r, stats, theta, root, gamma, H, share, Q):  # type: ignore[no-untyped-def]
    for j in range(phi.shape[0]):
        backed_up(phi[j], r[j], stats, theta, root, gamma, H, share, Q[j])


@compiled
def embedded(rows, U, active):  # type: ignore[no-untyped-def]
    """phi_U of the first `active` records   (A d, active). Inner loops run along rows, and are no sums."""
    phi = np.zeros((rows.shape[0], active))
    for e in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            weight = rows[e, j]
            if weight != 0.0:
                for p in range(active):
                    phi[e, p] += weight * U[j, p]
    return phi


@compiled
def at_state(  # type: ignore[no-untyped-def]
    factor, reward, constants, x, points, weights, start, U, stats, theta, root, active,
    eta, gamma, H, share, rows, pi,
):  # fmt: skip
    """V(x) and r(x, .) of the policy of the first `active` records; pi(.|x) and the rows of densities in place."""
    A, d = pi.shape[0], theta.shape[1]
    r, Q, S = np.empty(A), np.zeros(A), np.zeros(A)
    for a in range(A):
        r[a] = reward(constants, x, a)
        for i in range(d):
            row(factor, constants, i, x, a, points, weights, start, rows[a * d + i])
    if active == 0:
        pi[:] = 1.0 / A
        return 0.0, r
    phi, one = embedded(rows, U, active), np.empty(A * d)
    for p in range(active):
        S += Q
        one[:] = phi[:, p]
        backed_up(one, r, stats[p], theta[p], root[p], gamma, H, share, Q)
    log_pi = eta * (S - S.max())  # of pi_{p-1}, but for a constant
    top, m = -np.inf, Q.max()
    norm, mass = 0.0, 0.0
    for a in range(A):
        norm += math.exp(log_pi[a])
        top = max(top, log_pi[a] + eta * (Q[a] - m))
    for a in range(A):
        pi[a] = math.exp(log_pi[a] + eta * (Q[a] - m) - top)
        mass += pi[a]
    pi /= mass
    s = 0.0  # sum_a pi_{p-1}(a) expm1(eta (Q(a) - m)), as in `ravi.planning.mirror`
    for a in range(A):
        s += math.exp(log_pi[a]) / norm * math.expm1(eta * (Q[a] - m))
    log_mean = math.log1p(s) if s > -0.5 else top + math.log(mass) - math.log(norm)
    return m + log_mean / eta, r


@compiled
def _at_all(  # type: ignore[no-untyped-def]
    factor, reward, constants, xs, points, weights, start, U, stats, theta, root, active,
    eta, gamma, H, share, V, pi,
):  # fmt: skip
    rows = np.empty((pi.shape[1] * theta.shape[1], U.shape[0]))
    for n in range(xs.shape[0]):
        V[n], _ = at_state(
            factor, reward, constants, xs[n], points, weights, start, U, stats, theta, root, active,
            eta, gamma, H, share, rows, pi[n],
        )  # fmt: skip
