"""What happens in a run on continuous states? Epochs of plan and walk, one seed after the other, and exact scores.

The walk is one compiled loop with the library's random numbers: reset, action and simulator of step t by its first
block, the successor by numbers from lane 8 on, the state after a reset by its own lanes. A run is a pure function of
its key. Policies are scored on a reference grid of their own (`ravi.continuous.exact`): they are asked for at its
nodes, epoch by epoch, and their return there is computed, not sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ravi import checks
from ravi.compiled import compiled
from ravi.continuous import quadrature
from ravi.continuous.core import BEGIN_LANE, SUCCESSOR_LANE, ContinuousMDP
from ravi.continuous.exact import Reference, optimal, return_of
from ravi.continuous.learner import Learner, Planner, at_state, backed_up_all, node_rows
from ravi.core import Array
from ravi.planning.mirror import mirror_step
from ravi.random import block
from ravi.walk import draw, find


class Run(NamedTuple):
    """Of n seeds, first in everything."""

    learner: Learner
    seeds: list[int]
    optimum: float  # (1 - gamma) <nu_0, V*>, on the grid of the scores; nan where there is none
    T_k: list[Array]  # the first play of each epoch
    gap_k: list[Array]  # of each epoch's policy; nan where it is not scored
    regret: Array  # sum of the gaps of all plays   (n,)
    earned: Array  # the mean reward of a play       (n,)
    planners: list[Planner]  # as they are after the last play

    def gap(self, times: Any) -> Array:
        """The gap of the policy of time t   (n, times)."""
        pairs = zip(self.T_k, self.gap_k, strict=True)
        return np.array([gaps[np.searchsorted(starts, times, "right") - 1] for starts, gaps in pairs])


class Scorer:
    """The policies of a planner on the nodes of a reference, kept up record by record."""

    def __init__(self, learner: Learner, reference: Reference, rows: Array) -> None:
        self.learner, self.reference, self.rows = learner, reference, rows
        self.log_policy = np.full((1, *reference.rewards.shape), -np.log(learner.problem.actions))
        self.policy = np.exp(self.log_policy)
        self.played = self.policy[0].copy()
        self.seen = 0

    def score(self, planner: Planner) -> float:
        """The return of the policy that is played now."""
        F, A = self.reference.rewards.shape
        new = planner.records.U[:, self.seen : planner.taken]
        phi = (self.rows @ new).reshape(F, A * planner.d, new.shape[1])
        Q = np.empty((1, F, A))
        for p in range(self.seen, planner.taken):
            of_record = (part[p] for part in planner.records[1:4])
            here = np.ascontiguousarray(phi[:, :, p - self.seen])
            backed_up_all(here, self.reference.rewards, *of_record, *planner.numbers, Q[0])
            _, self.log_policy, self.policy = mirror_step(
                self.log_policy, self.policy, Q, self.learner.eta, in_place=True
            )
            if p + 1 == planner.active:
                self.played[:] = self.policy[0]
        self.seen = planner.taken
        return return_of(self.reference, self.played)


def run(
    learner: Learner,
    mdp: ContinuousMDP,
    seeds: int | Iterable[int] = 1,
    *,
    scored: Reference | None = None,
    every: int = 1,
) -> Run:
    """T plays of every seed. scored: where the policies are valued; every: how many epochs share a score (the regret
    is then that of the scored policies, each charged until the next)."""
    chosen = checks.seeds(seeds)
    every = checks.whole(every, "every")
    if mdp.problem is not learner.problem:
        raise checks.InputError(f"{learner.name} was made for another problem than {mdp.problem.name}")
    rows, best, scoring = node_rows(learner), float("nan"), None
    if scored is not None:
        if scored.mdp.problem is not mdp.problem:
            raise checks.InputError("scored is a reference of another problem")
        best = optimal(scored).optimum
        scoring = quadrature.rows(mdp.problem, learner.grid, scored.grid.nodes)[0].reshape(-1, learner.grid.size)
    outcomes = []
    for seed in chosen:
        scorer = None if scored is None or scoring is None else Scorer(learner, scored, scoring)
        outcomes.append(_run(Planner(learner, seed, rows), mdp, scorer, best, every))
    T_k, gap_k, earned, planners = (list(part) for part in zip(*outcomes, strict=True))
    lengths = [np.diff(np.append(starts, learner.steps + 1)) for starts in T_k]
    regret = np.array([float(L @ gaps) for L, gaps in zip(lengths, gap_k, strict=True)])
    return Run(learner, chosen, best, T_k, gap_k, regret, np.array(earned), planners)


def _run(
    planner: Planner, mdp: ContinuousMDP, scorer: Scorer | None, best: float, every: int
) -> tuple[Array, Array, float, Planner]:
    learner, problem = planner.learner, mdp.problem
    functions, T = problem.functions, learner.steps
    x = np.empty(problem.axes)
    _first(functions.begin, problem.constants, planner.key, x)
    theta = np.cumsum(mdp.parameter)
    theta[np.flatnonzero(mdp.parameter)[-1] :] = 1.0
    t, earned, starts, gaps, gap = 0, 0.0, [], [], float("nan")
    while t < T:
        starts.append(t + 1)
        planner.plan(t + 1)
        if scorer is not None and (len(starts) - 1) % every == 0:
            gap = best - scorer.score(planner)
        gaps.append(gap)
        t, more = _walk(
            functions.factor, functions.draw, functions.reward, functions.begin, problem.constants, *learner.grid[:3],
            problem.actions, theta, *planner.records, planner.active, planner.played.U, planner.played.stats,
            learner.eta, *planner.numbers, 1 - problem.discount, planner.key, t, T, x,
            planner.covariance, planner.response,
        )  # fmt: skip
        earned += more
    return np.array(starts), np.array(gaps), earned / T, planner


@compiled
def _first(begin, constants, key, x):  # type: ignore[no-untyped-def]
    begin(constants, key, 0, BEGIN_LANE, x)


@compiled
def _walk(  # type: ignore[no-untyped-def]
    factor, draw_from, reward, begin, constants, points, weights, start, A, theta_sums, Us, stats, theta,
    root, active, U, standard, eta, gamma, H, share, restart, key, t, T, x, Lam, b,
):  # fmt: skip
    """Play until a reset or T; x, Lambda and b in place. The last t, and the rewards earned."""
    d, m = theta.shape[1], Us.shape[0]
    c, sigma, low, high = standard[0], standard[1], standard[2], standard[3]
    rows, rows_y = np.empty((A * d, m)), np.empty((A * d, m))
    pi, pi_y, y, phi = np.empty(A), np.empty(A), np.empty(x.shape[0]), np.empty(d)
    earned = 0.0
    _, r = at_state(
        factor, reward, constants, x, points, weights, start, Us, stats, theta, root, active,
        eta, gamma, H, share, rows, pi,
    )  # fmt: skip
    while True:
        t += 1
        u_reset, u_action, u_simulator, _ = block(key, t, 0)
        a = draw(pi, u_action)
        draw_from(constants, find(theta_sums, u_simulator), x, a, key, t, SUCCESSOR_LANE, y)
        earned += r[a]
        V, r = at_state(
            factor, reward, constants, y, points, weights, start, Us, stats, theta, root, active,
            eta, gamma, H, share, rows_y, pi_y,
        )  # fmt: skip
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
            begin(constants, key, t, BEGIN_LANE, x)
            break
        x[:] = y
        rows, rows_y, pi, pi_y = rows_y, rows, pi_y, pi
        if t >= T:
            break
    return t, earned
