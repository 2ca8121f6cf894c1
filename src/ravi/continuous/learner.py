"""RAVI-UCB for linear mixtures on continuous states: V on fixed nodes, Q and policies wherever they are asked for.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: Algorithm 3, which "needs
an integral" where states are many; here that is a sum over nodes (`ravi.continuous.quadrature`).
Trust: DERIVED. On the nodes it is the learner of finite mixtures, which the tests compare it with.

A backup leaves a record: V_j on the nodes as U_j = (V_j - c) / sigma, and the theta_hat, the root R of Lambda^{-1} and
the beta that it used. At any x,

    Q_{j+1}(x, a) = Pi_H[r(x, a) + CB + gamma (c + sigma <phi_U(x, a), theta_hat>)]
    CB = sigma beta ||R^T phi_U(x, a)||
    pi_p(a|x) ~ exp(eta sum_{j <= p} Q_j(x, a)),   V_p(x) = (1/eta) log sum_a pi_{p-1}(a|x) exp(eta Q_p(x, a))

so that the records are all there is to keep. On the nodes V, log pi and pi are kept up, backup by backup. Elsewhere a
state is met once (densities have no atoms), so nothing is gained by keeping what is known of it: it is evaluated when
it is met, over all records, which costs A d m densities and A d (m + d) for each record. A step is thus as dear as the
run is long; memory is m + d^2 + d a record. (Writing the U in a basis of their own gains little: cuts leave kinks in V,
and 1,500 records on 64 nodes have rank 61 to ten digits.)

    ravi_ucb        c = 0, sigma = 1: Algorithm 3, with the lag of an epoch
    ravi_ucb_plus   fresh data, M inner backups, V less its middle and in parts of its span, P_hat V cut to the
                    range of V, gamma CB, the radius of the determinant at hand, the balanced step:
                    `ravi.learners.ravi_ucb.plus`

What carries over, and what does not. Lemma 4.3 is a statement state by state and holds as it is. Lemma 5.4 asks for
(P V)(x, a) = <theta, phi_V(x, a)>, which quadrature breaks: let |P U - <theta, phi_U>| <= eps for the U of a run. Then
theta_hat has one more error, ||sum phi_i e_i||_{Lambda^{-1}} <= eps sqrt(T), by Cauchy and Schwarz, and P_hat V one
more, sigma eps: beta becomes beta + eps sqrt(T), CB becomes CB + sigma eps. `misspecification` is eps (in parts of half
the range, where sigma = 1: of H/2); `Planner.quadrature_error` measures it on a finer grid. With eps = 0, the default,
the guarantee is that of exact integrals, not of this learner. The extremes of V, for c, sigma and the cut, are those on
the nodes. In RAVI-UCB+, targets V(y) are cut to them, so that their noise lies in an interval of length 2 sigma, as it
must; what the cut takes away is part of eps.
"""

import math
from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np

from ravi import core, validation
from ravi._jit.functions import compiled
from ravi.continuous import quadrature
from ravi.continuous.core import BEGIN_LANE, SUCCESSOR_LANE, ContinuousProblem
from ravi.continuous.planner import NONE, Planner, Rule, State, at_state, initial_state, node_rows
from ravi.continuous.quadrature import Grid
from ravi.core import Array
from ravi.random import block
from ravi.runtime import tree
from ravi.runtime.ranges import Facts, check
from ravi.runtime.result import Run
from ravi.runtime.walk import draw, find, keep
from ravi.schedules import at_reset
from ravi.theory import constants, mixture


def ravi_ucb(
    problem: ContinuousProblem, grid: Grid, steps: int, *, scale: float = 1.0, step_scale: float = 1.0,
    eta: float | None = None, delta: float | None = None, regularization: float = 1.0, misspecification: float = 0.0,
) -> core.Learner:  # fmt: skip
    """Algorithm 3. `scale` multiplies beta, `step_scale` eta; `regularization` is lambda; `misspecification` is eps.

    Setting: discounted with resets, a mixture of d densities on a box.
    Guarantee: that of Theorem 5.6, if eps bounds the error of the quadrature; beta grows by eps sqrt(T).
    Composition: ridge regression on values x beta ||phi||_{Lambda^-1} x one mirror step and one backup x at resets.
    Cost: A d m + p A d (m + d) per step, p the epochs so far; m A d m per plan; T / H plans; in all
    about T^2 A d (m + d) / (2 H).
    """
    T = validation.steps(steps)
    delta, lam = validation.delta(delta, T), validation.positive(regularization, "regularization")
    H, d = problem.horizon, problem.dimension
    B = sqrt(d)  # the larger of B_theta = 1 and B_phi
    beta = constants.beta_mixture(H, d, T, delta, parameter_bound=B, feature_bound=B, regularization=lam)
    eta = validation.step_size(eta, step_scale, constants.eta(H, problem.actions, T))
    rule = Rule(
        "ravi-ucb/continuous", problem, grid, quadrature.check_grid(problem, grid), eta, 1, beta,
        validation.nonnegative(scale, "scale"), H, delta, lam, B,
        validation.nonnegative(misspecification, "misspecification"), T,
        fresh=False, centre=False, span=False, clip=False, gamma=False,
    )  # fmt: skip
    return _learner(rule)


def ravi_ucb_plus(
    problem: ContinuousProblem, grid: Grid, steps: int, *, inner: int | None = None, scale: float = 1.0,
    step_scale: float = 1.0, eta: float | None = None, delta: float | None = None, regularization: float = 1.0,
    misspecification: float = 0.0,
) -> core.Learner:  # fmt: skip
    """RAVI-UCB+ with all its parts. `inner` is M, by default H rounded up; `scale` multiplies beta, `step_scale` eta;
    `regularization` is lambda; `misspecification` is eps.

    Setting: discounted with resets, a mixture of d densities on a box.
    Guarantee: that of RAVI-UCB+ for mixtures, if eps bounds the error of the quadrature; beta grows by eps sqrt(T).
    Composition: ridge regression on values in parts of their span x the determinant's radius x M mirror steps and
    backups x at resets.
    Cost: A d m + p A d (m + d) per step, p the backups so far; M m A d m per plan; T / H plans; in
    all about M T^2 A d (m + d) / (2 H).
    """
    T = validation.steps(steps)
    delta, lam = validation.delta(delta, T), validation.positive(regularization, "regularization")
    gamma, H, A, d = problem.discount, problem.horizon, problem.actions, problem.dimension
    M = constants.inner_steps(H) if inner is None else validation.whole(inner, "inner")
    size = 2 * sqrt(d)  # ||phi_U|| at most, as in `ravi_ucb_plus.linear_mixture`
    beta = sqrt(d * log(1 + T * size**2 / (lam * d)) + 2 * log(1 / delta)) + sqrt(lam)
    S = mixture.clipped_bonus_sum(H, d, T, gamma * H / 2 * beta, bound=size / H, regularization=lam)
    eta = validation.step_size(eta, step_scale, constants.eta_balanced(H, A, T, S, M))
    rule = Rule(
        "ravi-ucb+/continuous", problem, grid, quadrature.check_grid(problem, grid), eta, M, math.nan,
        validation.nonnegative(scale, "scale"), 1.0, delta, lam, 1.0,
        validation.nonnegative(misspecification, "misspecification"), T,
        fresh=True, centre=True, span=True, clip=True, gamma=True,
    )  # fmt: skip
    return _learner(rule)


def _learner(rule: Rule) -> core.Learner:
    """The learner of these constants: it plans one seed after the other, and learns as it walks."""
    rows, r = node_rows(rule), quadrature.rewards(rule.problem, rule.grid.nodes)

    def plan(s: State) -> State:
        for i in range(len(s.key)):
            Planner(rule, s, i, rows, r).plan(int(s.time[i]) + 1)
        return s

    kept = {name: value for name, value in rule._asdict().items() if name not in ("name", "problem", "grid")}
    settings = {name: value for name, value in kept.items() if value == value} | {"nodes": rule.grid.size}
    parts: Any = rule
    return core.Learner(
        rule.name, partial(initial_state, rule), plan, keep, at_reset(), settings, parts, walk=partial(walk, rule)
    )


def check_state(s: State, held: Any, initial: Any, facts: Facts, name: str) -> None:
    """An error where what a file holds, `s` among it, cannot be: compiled loops believe it."""
    rooms = [np.array([len(one) for one in part.parts]) for part in s.records]
    even = (rooms[0] == s.V.shape[1] * rooms[1]).all() and all((room == rooms[1]).all() for room in rooms[2:])
    if not (even and (s.filled <= rooms[1]).all()):
        raise validation.InputError("batch.state.records: their rooms do not agree")
    flat, first = (tree.map_leaves(lambda leaf: getattr(leaf, "end_to_end", leaf), each) for each in (held, initial))
    check(flat, first, facts, name)


def planner_of(run: Run, learner: core.Learner, row: int = 0) -> Planner:
    """What seed `row` of a run on continuous states knows; `learner` is the one that it was made with."""
    validation.instance(run, Run, "run", "a run on continuous states")
    if run.world != "continuous" or not isinstance(learner.parts, Rule):
        raise validation.InputError(f"{run.learner} on {run.mdp} with {learner.name} is no run on continuous states")
    state, of = run.state, learner.parts.problem
    if isinstance(state, dict):
        initial = learner.init(np.array(run.seeds, np.uint64))
        state = tree.fill(initial, state)
        facts = Facts(1, of.actions, of.horizon, run.steps, run.plays, run.plays, run.steps)
        check_state(state, state, initial, facts, "batch.state")
    return Planner(learner.parts, state, validation.whole(row, "row", 0, len(run.seeds) - 1))


def walk(
    rule: Rule, theta: Array, s: State, walkers: Any, path: core.Path, over: Array, until: Any, T: int
) -> tuple[int, int]:
    """An epoch of every seed that is not over, as `ravi.runtime.walk.walk` does it; rewards are summed in the state."""
    problem = rule.problem
    path.length[:], ended = 0, 0
    for i in np.flatnonzero(over == 0).tolist():
        planner, before = Planner(rule, s, i, NONE, NONE), int(walkers.time[i])
        t, more = _walk(
            problem.functions, problem.constants, rule.grid, planner.records, planner.active, rule.numbers,
            tuple(planner.played), problem.actions, theta, s.key[i], before, T, walkers.state[i], s.covariance[i],
            s.response[i],
        )  # fmt: skip
        walkers.time[i] = s.time[i] = t
        s.earned[i] += more
        path.time[i], path.length[i], over[i], ended = before + 1, t - before, 1, ended + 1
    return 0, ended


@compiled
def _walk(  # type: ignore[no-untyped-def]
    functions, constants, on, records, active, numbers, played, A, theta_sums, key, t, T, x, Lam, b
):  # fmt: skip
    """Play until a reset or T; x, Lambda and b in place. The last t, and the rewards earned."""
    (_, U, standard), restart = played, 1 - numbers[1]
    d, m = b.shape[0], U.shape[0]
    c, sigma, low, high = standard[0], standard[1], standard[2], standard[3]
    rows, rows_y = np.empty((A * d, m)), np.empty((A * d, m))
    pi, pi_y, y, phi = np.empty(A), np.empty(A), np.empty(x.shape[0]), np.empty(d)
    earned = 0.0
    _, r = at_state(functions, constants, on, records, active, numbers, x, rows, pi)
    while True:
        t += 1
        u_reset, u_action, u_simulator, _ = block(key, t, 0)
        a = draw(pi, u_action)
        functions.draw(constants, find(theta_sums, u_simulator), x, a, key, t, SUCCESSOR_LANE, y)
        earned += r[a]
        V, r = at_state(functions, constants, on, records, active, numbers, y, rows_y, pi_y)
        target = (min(max(V, low), high) - c) / sigma
        for i in range(d):
            phi[i] = 0.0
            for j in range(m):
                phi[i] += rows[a * d + i, j] * U[j]
        for i in range(d):
            b[i] += phi[i] * target
            for j in range(d):
                Lam[i, j] += phi[i] * phi[j]
        if u_reset < restart:
            functions.begin(constants, key, t, BEGIN_LANE, x)
            break
        x[:] = y
        rows, rows_y, pi, pi_y = rows_y, rows, pi_y, pi
        if t >= T:
            break
    return t, earned
