"""One seed on continuous states: records of backups, V on the nodes, Q anywhere, and the plan of an epoch.

The equations are those of `ravi.continuous.learner`.
"""

from __future__ import annotations

import math
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
from ravi.learners.ravi_ucb.inner_counts import optimistic_Q
from ravi.optimism.bonuses import confidence_term, log_det_radius
from ravi.planning.mirror import mirror_step
from ravi.random import PICK, uniform
from ravi.runtime import ranges
from ravi.runtime.ranges import Fixed, LogPolicy, Number, Plays, Policy, Positive, Range, Whole
from ravi.runtime.tree import Ragged

ROOM = 16  # records of a seed that there is room for when it begins
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

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Numbers that compiled functions are given: eta, gamma, H, and the factor of the bonus."""
        of = self.problem
        return self.eta, of.discount, of.horizon, of.discount if self.gamma else 1.0


class Records(NamedTuple):
    """What backups leave behind; there is room for P, of which `filled` are in use. A state has those of each seed."""

    U: Number  # V, standardised, on the nodes    (m, P); in a state end to end (m P,)
    stats: ranges.NumberOrNone  # c, sigma, low, high, beta, extra   (P, 6)
    theta: Number  # theta_hat                    (P, d)
    root: Number  # R                             (P, d, d)


RECORD_NUMBER = Range(lambda a, f, _, held: (a >= 0) & (a <= held.filled), "a number of the records made")


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
    taken: Annotated[Array, RECORD_NUMBER]  # that the last policy is of   (n,)
    active: Annotated[Array, RECORD_NUMBER]  # that the played one is of   (n,)
    earned: Positive  # sum of rewards                            (n,)
    time: Plays  # steps made                                     (n,)
    key: Fixed  #                                                 (n,)
    records: Records


class Values(NamedTuple):
    """V, its standard form, and what was known when it was made."""

    V: Array  # on the nodes   (m,)
    U: Array  # (m,)
    stats: Array  # c, sigma, low, high    (4,)


def initial_state(rule: Rule, keys: Array) -> State:
    """The state of seeds that have made no step."""
    n, m, A, d, lam = len(keys), rule.grid.size, rule.problem.actions, rule.problem.dimension, rule.regularization

    def none() -> Array:
        return np.zeros(n, np.int64)

    shapes = (m * ROOM,), (ROOM, 6), (ROOM, d), (ROOM, d, d)
    return State(
        np.tile(lam * np.eye(d), (n, 1, 1)), np.zeros((n, d)), np.tile(np.eye(d) / sqrt(lam), (n, 1, 1)),
        np.zeros((n, m)), np.full((n, m, A), -log(A)), np.full((n, m, A), 1 / A), np.zeros((n, m, A)),
        np.zeros((n, m)), np.full((n, m, A), 1 / A), none(), none(), none(), np.zeros(n), none(),
        np.array(keys, np.uint64), Records(*(Ragged([np.zeros(shape) for _ in keys]) for shape in shapes)),
    )  # fmt: skip


class Planner:
    """One seed, whose arrays are those of a state: `plan` once per epoch; the walk adds to Lambda and b.

    Parameters
    ----------
    rule : the learner's
    state : of all seeds, written in place
    seed : which of them
    rows, r : p_i(x_l | x_j, a), (m A d, m), and r of the nodes, which are the same for all seeds
    """

    def __init__(self, rule: Rule, state: State, seed: int = 0, rows: Any = None, r: Any = None) -> None:
        one = (part[seed : seed + 1] for part in state[:-1])
        self.rule, self.seed, self.own = rule, seed, State._make([*one, state.records])
        self.A, self.d, self.m = rule.problem.actions, rule.problem.dimension, rule.grid.size
        self.rows = node_rows(rule) if rows is None else rows
        self.r = quadrature.rewards(rule.problem, rule.grid.nodes) if r is None else r

    @property
    def records(self) -> Records:
        """The records, with room for more."""
        U, *others = (leaf.parts[self.seed] for leaf in self.own.records)
        return Records(U.reshape(self.m, -1), *others)

    @property
    def active(self) -> int:
        """How many records the policy that is played is of."""
        return int(self.own.active[0])

    @property
    def played(self) -> Values:
        """V of the policy that is played."""
        return self.standard(self.own.V[0])

    def standard(self, V: Array) -> Values:
        """V less its middle, in parts of its span, as far as these are on."""
        rule, low, high = self.rule, float(V.min()), float(V.max())
        c = (low + high) / 2 if rule.centre else 0.0
        sigma = max((high - low) / 2, LEAST) if rule.span else 1.0
        ends = (low, high) if rule.clip else (-np.inf, np.inf)
        return Values(V, (V - c) / sigma, np.array([c, sigma, *ends]))

    def radius(self) -> float:
        """beta, with what quadrature adds to it."""
        rule = self.rule
        beta = rule.beta
        if math.isnan(beta):
            term = confidence_term(rule.delta)
            found = log_det_radius(
                self.own.root, self.d, term, noise=rule.noise, regularization=rule.regularization, bound=rule.bound
            )
            beta = float(found[0])
        unit = 1.0 if rule.span else rule.problem.horizon / 2
        return rule.scale * beta + unit * rule.eps * sqrt(rule.steps)

    def record(self, V: Array) -> Array:
        """A backup of V with the data at hand: its record is kept; Q on the nodes   (m, A)."""
        rule, own, n = self.rule, self.own, int(self.own.filled[0])
        if n == len(self.records.stats):
            for k, (leaf, part) in enumerate(zip(self.own.records, self.records, strict=True)):
                more = np.concatenate([part, np.zeros_like(part)], axis=int(k == 0))
                leaf.parts[self.seed] = more.reshape(-1) if k == 0 else more
        values, root, to = self.standard(V), own.root[0], self.records
        extra = rule.eps * (values.stats[1] if rule.span else rule.problem.horizon / 2)
        to.stats[n] = (*values.stats, self.radius(), extra)
        to.U[:, n], to.theta[n], to.root[n] = values.U, root @ (root.T @ own.response[0]), root
        own.filled[0] = n + 1
        phi = (self.rows @ values.U).reshape(self.m, self.A * self.d)
        Q = np.empty((self.m, self.A))
        back_up_all(phi, self.r, to, n, rule.numbers, Q)
        return Q

    def plan(self, t: int) -> None:
        """An epoch whose first step is t."""
        rule, own, chosen = self.rule, self.own, 0
        if not invert_root(own.covariance[0], own.root[0]):
            raise validation.InputError(
                f"{rule.problem.name}: Lambda is no longer positive definite to working precision"
            )
        if rule.inner > 1:
            chosen = int(rule.inner * uniform(own.key[0], t, PICK))
        for j in range(rule.inner):
            Q = self.record(own.last[0])[None] if rule.fresh else own.Q
            if own.filled[0]:  # else Q is Q_1 = E V_0, which changes nothing
                V, _, _ = mirror_step(own.log_policy, own.last_policy, Q, rule.eta, in_place=True)
                own.last[0] = V[0]
                own.taken[0] += 1
            if not rule.fresh:
                own.Q[0] = self.record(own.last[0])
            if j == chosen:
                own.active[0], own.V[0], own.policy[0] = own.taken[0], own.last[0], own.last_policy[0]

    def parameter(self) -> Array:
        """theta_hat of all data   (d,)."""
        return np.linalg.solve(self.own.covariance[0], self.own.response[0])

    def at(self, x: Any) -> tuple[Array, Array]:
        """pi and V of the played policy at any states: (N, A) and (N,)."""
        problem = self.rule.problem
        where = quadrature.states(problem, x)
        V, pi = np.empty(len(where)), np.empty((len(where), self.A))
        _at_all(
            problem.functions, problem.constants, self.rule.grid, self.records, self.active, self.rule.numbers,
            where, V, pi,
        )  # fmt: skip
        return pi, V

    def quadrature_error(self, finer: Grid, x: Any) -> float:
        """|P_i V - sum_j p_ij V(x_j)| of the played V, the largest over simulators, actions and these x, in parts of
        half the range of V; P_i V is taken on the finer grid."""
        problem = self.rule.problem
        _, V = self.at(finer.nodes)
        near = quadrature.rows(problem, self.rule.grid, x)[0] @ self.played.V
        far = quadrature.rows(problem, finer, x)[0] @ V
        half = max(np.ptp(self.played.V) / 2, LEAST)
        return float(np.abs(near - far).max() / half)


def node_rows(rule: Rule) -> Array:
    """The rows of the nodes themselves   (m A d, m): the same for all seeds."""
    rows, _ = quadrature.rows(rule.problem, rule.grid, rule.grid.nodes)
    return rows.reshape(-1, rule.grid.size)


@compiled
def back_up(phi, r, records, p, numbers, Q):  # type: ignore[no-untyped-def]
    """Q(x, .) of record p. phi: phi_U(x, .), (A d,), the action slowest."""
    stats, theta, root = records.stats[p], records.theta[p], records.root[p]
    c, sigma, low, high, beta, extra = stats[0], stats[1], stats[2], stats[3], stats[4], stats[5]
    _, gamma, H, share = numbers
    d = theta.shape[0]
    for a in range(Q.shape[0]):
        mean, square = 0.0, 0.0
        for i in range(d):
            mean += phi[a * d + i] * theta[i]
            half = 0.0
            for j in range(i + 1):  # R is upper triangular
                half += phi[a * d + j] * root[j, i]
            square += half * half
        width = sigma * beta * math.sqrt(square) + extra
        Q[a] = optimistic_Q(r[a], width, sigma * mean, (c, 1.0, low, high, high - low), share, gamma, H)


@compiled
def back_up_all(phi, r, records, p, numbers, Q):  # type: ignore[no-untyped-def]
    for j in range(phi.shape[0]):
        back_up(phi[j], r[j], records, p, numbers, Q[j])


@compiled
def embed(rows, U, active):  # type: ignore[no-untyped-def]
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
def at_state(functions, constants, on, records, active, numbers, x, rows, pi):  # type: ignore[no-untyped-def]
    """V(x) and r(x, .) of the policy of the first `active` records; pi(.|x) and the rows of densities in place."""
    A, d, eta = pi.shape[0], records.theta.shape[1], numbers[0]
    r, Q, S = np.empty(A), np.zeros(A), np.zeros(A)
    for a in range(A):
        r[a] = functions.reward(constants, x, a)
        for i in range(d):
            row(functions.factor, constants, i, x, a, on, rows[a * d + i])
    if active == 0:
        pi[:] = 1.0 / A
        return 0.0, r
    phi, one = embed(rows, records.U, active), np.empty(A * d)
    for p in range(active):
        S += Q
        one[:] = phi[:, p]
        back_up(one, r, records, p, numbers, Q)
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
def _at_all(functions, constants, on, records, active, numbers, xs, V, pi):  # type: ignore[no-untyped-def]
    rows = np.empty((pi.shape[1] * records.theta.shape[1], records.U.shape[0]))
    for n in range(xs.shape[0]):
        V[n], _ = at_state(functions, constants, on, records, active, numbers, xs[n], rows, pi[n])
