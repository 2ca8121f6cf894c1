"""The regret, sum_t <mu* - mu^{pi_t}, r>: computed from the policies, not sampled (Section 2).

Every epoch's policy is scored by `gap`, to a certified error; a step of the epoch costs its gap. The regret of a seed
is then known to within T (error of rho*) + sum_t (error of rho(pi_t)), and 2^-51 of the sum for each of its terms: that
is part of the result. No Monte Carlo. A policy by age is scored stage by stage.

In episodes rho(pi) is <nu_0, V^pi> / S, S their length: the steps of an episode cost <nu_0, V* - V^pi> together, and a
part of one its share of that (`ravi.measures.episodes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled
from ravi._jit.teams import first
from ravi.core import MDP, Array, Measure, Path, Recorder
from ravi.measures.curve import Curve, curve, grid
from ravi.measures.episodes import Episodes, initial_episodes, score_episodes, scoring_tables
from ravi.measures.gap import FOLLOW, FOLLOW_SMALL, FOLLOW_SWEEPING, SMALL, Target, Tracked, scratch, target_of, track
from ravi.measures.recording import compiled_measure, take_over
from ravi.planning.certificates import EPS, sweep_limit
from ravi.planning.evaluation import staged_values
from ravi.planning.solver import Solution
from ravi.runtime.ranges import Facts, Number, Past, PolicyOrNan, Positive, Range
from ravi.runtime.tree import Log

TOLERANCE = 1e-10  # of rho(pi), per policy


def _of_epochs(starts: Log, facts: Facts, begun: Log, held: Any) -> Array | bool:
    """Which T_k are plays that were made, and later than those before; as many as gap_k."""
    T_k = starts.table
    before = np.maximum.accumulate(np.vstack([np.zeros_like(T_k[:1]), T_k[:-1]]))
    return T_k.shape == held.gaps.table.shape and ((T_k == 0) | ((T_k > before) & (T_k <= facts.time)))


STARTS = Range(_of_epochs, "the first play of an epoch, after those before, or 0")


class Regret(NamedTuple):
    tracked: Tracked | Staged | Episodes
    regret: Curve
    error: Positive  # certified bound on the error of the regret so far   (n,)
    opened: Past  # the step before the epoch     (n,)
    base: Number  # the regret then               (n,)
    base_error: Positive  # and its error         (n,)
    starts: Annotated[Log, STARTS]  # T_k, 0 where a seed has ended
    gaps: Log  # gap_k

    def epochs(self) -> tuple[Array, Array]:
        """T_k and gap_k (K, n), in row k those of every seed's epoch k. In the logs, epochs of seeds that stopped after
        fewer than others and went on with them come later, after zeros."""
        starts, gaps = self.starts.table, self.gaps.table
        there = starts > 0
        if (there[:-1] | ~there[1:]).all():
            return starts, gaps
        order = np.argsort(~there, axis=0, kind="stable")[: there.sum(0).max()]
        return np.take_along_axis(starts, order, 0), np.take_along_axis(gaps, order, 0)


def regret(
    mdp: MDP, steps: int, points: int, solution: Solution, *, keep_epochs: bool, stages: int = 0, tol: float = TOLERANCE
) -> Measure:
    """The curve of the regret, its error, and the gap of every epoch. stages: S of policies by age."""
    times, episodic = grid(steps, points), mdp.criterion == "episodic"
    optimum, optimum_error = solution.optimum, solution.optimum_error

    def init(keys: Array) -> Regret:
        n = len(keys)
        opened, base, error, base_error = np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(n)
        logs = Log(n, np.int64), Log(n, np.float64)
        if episodic:
            tracked: Tracked | Staged | Episodes = initial_episodes(mdp, stages, n)
        else:
            tracked = initial_stages(mdp, stages, n) if stages else track(mdp, n)
        return Regret(tracked, curve(n, times), error, opened, base, base_error, *logs)

    def results(m: Regret) -> dict[str, Array]:
        T_k, gap_k = m.epochs()
        return {
            "regret": m.regret.values,
            "regret_total": m.regret.total,
            "regret_error": m.error,
            "gap": optimum - m.tracked.returns,
            "T_k": T_k,
            "gap_k": gap_k,
        }

    def own(scored: tuple[Any, ...], m: Regret, rows: int) -> tuple[Any, ...]:
        n, rows = len(m.error), rows if keep_epochs else 0
        charged = (times, m.regret, (m.error, m.opened, m.base, m.base_error), optimum, optimum_error)
        starts, gaps = np.zeros((max(rows, 1), n), np.int64), np.zeros((max(rows, 1), n))
        return scored, m.tracked.returns, m.tracked.error, charged, rows, starts, gaps

    def own_of(against: Target) -> Callable[[Regret, int, int], tuple[Any, ...]]:
        def of(m: Regret, teams: int, rows: int) -> tuple[Any, ...]:
            return own((tuple(against), tuple(m.tracked), scratch(mdp.states, mdp.actions, teams)), m, rows)

        return of

    def log(m: Regret, rows: tuple[Array, ...]) -> None:
        m.starts.append(rows[0])
        m.gaps.append(rows[1])

    def bring(m: Regret, state: Any, path: Path, opening: bool) -> None:
        held: Any = m.tracked
        if opening and (changed := take_over(held.policy, state.policy, path)).any():
            _, held.returns[changed], held.error[changed] = staged_values(mdp, state.policy[changed], tol)

    some = Recorder(_RECORD_SCORED, lambda m, teams, rows: own((), m, rows), _rows_of(keep_epochs), log, reads=0)
    if episodic:
        against = scoring_tables(mdp)
        of = lambda m, teams, rows: own((against, tuple(m.tracked)), m, rows)  # noqa: E731
        return compiled_measure("regret", init, results, some._replace(record=_RECORD_EPISODES, own=of))
    if stages:
        return compiled_measure("regret", init, results, some, before=bring)._replace(recorder=None)
    scored = _RECORD_SMALL if mdp.states <= SMALL else _RECORD_HERE
    here = some._replace(record=scored, own=own_of(target_of(mdp, tol)))

    def own_there(*arguments: Any) -> tuple[Any, ...]:
        return own_of(target_of(mdp, tol, sweep_limit(mdp.discount, EPS), shared=True))(*arguments)

    return compiled_measure("regret", init, results, Recorder(_RECORD, own_there, here.rows, log, 0, False, here))


def _rows_of(keep_epochs: bool) -> Callable[[tuple[Any, ...]], tuple[Array, ...]]:
    return lambda own: own[-2:] if keep_epochs else ()


class Staged(NamedTuple):
    """What is kept of a policy by age (`ravi.planning.evaluation`)."""

    policy: PolicyOrNan  # (n, S, X, A)
    returns: Number  # its rho                (n,)
    error: Positive  # certified bound on the error of rho   (n,)


def initial_stages(mdp: MDP, stages: int, n: int) -> Staged:
    """Before any policy."""
    return Staged(np.full((n, stages, mdp.states, mdp.actions), np.nan), np.zeros(n), np.zeros(n))


def _score(scored, i, policy, lengths):  # type: ignore[no-untyped-def]
    (tables, into, nu0, tol, patience), tracked, room = scored
    value, dual, value_step, dual_step, before, returns, returns_error = tracked
    follow_policy(
        i, i + 1, tables, into, nu0, tol, patience, policy, lengths, value, dual, value_step, dual_step, before,
        returns, returns_error, room[0], room[1], room[2], room[3], room[4], room[5],
    )  # fmt: skip


@compiled
def _keep_score(scored, i, policy, lengths):  # type: ignore[no-untyped-def]
    """In place of `_score`, where Python has done so."""


def _record(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """An epoch of one seed; a team's."""
    scored, returns, returns_error, charged, rows, starts, gaps = own
    _, _, _, _, _, lengths, firsts, _ = path
    if opening:
        score(scored, i, policy, lengths)
    if first():
        times, curve, sums, optimum, optimum_error = charged
        gap = optimum - returns[i]
        if opening and rows > 0:  # 0 where a seed has ended
            starts[row, i] = firsts[i] if lengths[i] > 0 else 0
            gaps[row, i] = gap if lengths[i] > 0 else 0.0
        charge(i, times, curve, sums, firsts[i] - 1, lengths[i], gap, optimum_error + returns_error[i], opening)


follow_policy, score = FOLLOW_SWEEPING, _keep_score  # `bound` puts those of a target here


@compiled
def charge(i, times, curve, sums, t, length, gap, gap_error, opening):  # type: ignore[no-untyped-def]
    """Steps t + 1, ..., t + length of seed i cost the gap of their policy; those beyond T (padding) cost nothing.

    An epoch is charged as a whole, so that rounding does not depend on the stretches that it comes in.
    """
    (total, cursor, values), (error, opened, base, base_error) = curve, sums
    if opening:
        opened[i], base[i], base_error[i] = t, total[i], error[i]
    last = min(t + length, times[times.shape[0] - 1])
    if last > t:
        while cursor[i] < times.shape[0] and times[cursor[i]] <= last:
            values[i, cursor[i]] = base[i] + gap * (times[cursor[i]] - opened[i])
            cursor[i] += 1
        total[i] = base[i] + gap * (last - opened[i])
        error[i] = base_error[i] + gap_error * (last - opened[i]) + 2 * EPS * abs(total[i])


_RECORD, _RECORD_HERE, _RECORD_SMALL = (
    bound(_record, score=bound(_score, follow_policy=one)) for one in (FOLLOW_SWEEPING, FOLLOW, FOLLOW_SMALL)
)
_RECORD_SCORED, _RECORD_EPISODES = bound(_record, score=_keep_score), bound(_record, score=score_episodes)
