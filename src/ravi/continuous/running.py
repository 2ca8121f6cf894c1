"""Runs on continuous states: a box as a world of `ravi.run`, where seeds begin, and how policies are scored.

The Python driver runs them, because a plan multiplies matrices by BLAS. The walk of an epoch is one compiled loop with
the library's random numbers: reset, action and simulator of step t by its first block, the successor by numbers from
lane 8 on, the state after a reset by its own lanes. A run is a pure function of its key. Policies are scored on a
reference grid of their own (`ravi.continuous.exact`): they are asked for at its nodes, epoch by epoch, and their return
there is computed, not sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import compiled
from ravi.continuous import quadrature
from ravi.continuous.beta import level
from ravi.continuous.core import BEGIN_LANE, ContinuousMDP
from ravi.continuous.exact import Reference, optimal, reference, return_of
from ravi.continuous.learner import check_state, ravi_ucb, ravi_ucb_plus
from ravi.continuous.planner import NONE, Planner, Rule, back_up_all
from ravi.continuous.quadrature import Grid
from ravi.continuous.swing_up import pendulum
from ravi.core import Array, Learner, Measure, Path
from ravi.measures.curve import grid as times_of
from ravi.measures.regret import STARTS
from ravi.planning.mirror import mirror_step
from ravi.runtime import python as python_driver
from ravi.runtime.compiled import Batch, Task
from ravi.runtime.ranges import Facts, Fixed, LogPolicy, Number, NumberOrNan, Plays, Policy, Positive, Walked, Whole
from ravi.runtime.result import Options, Run
from ravi.runtime.tree import Log
from ravi.runtime.world import Scores, World, refuse_streams, start_batch, to_run

LEARNERS = {"ravi-ucb": ravi_ucb, "ravi-ucb+": ravi_ucb_plus}


class Walkers(NamedTuple):
    """Where each seed stands."""

    state: Number  # x    (n, D)
    time: Walked  # steps made so far    (n,)
    key: Fixed  # (n,)


@dataclass(frozen=True, eq=False)
class Box(World):
    """A continuous MDP, as `ravi.runtime.api` runs learners in it."""

    mdp: ContinuousMDP
    grid: Grid | None = None  # the nodes of learners that are named by their ids
    scored: Reference | None = None  # where policies are valued
    every: int = 1  # epochs that share a score, each charged until the next
    kind = "continuous"

    @property
    def problem(self) -> Any:
        return self.mdp.problem

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        return None, self.mdp.problem.actions, self.mdp.problem.simulators

    @property
    def digest(self) -> str:
        """A hash of its numbers and of how it is scored, but not of its functions."""
        of = self.mdp.problem
        said = (of.name, of.low.tolist(), of.high.tolist(), of.periodic, of.actions, of.simulators, of.discount)
        grid = 0 if self.scored is None else self.scored.grid.size
        numbers = of.constants.tobytes() + self.mdp.parameter.tobytes()
        return sha256(repr((*said, grid, self.every)).encode() + numbers).hexdigest()

    @property
    def answers(self) -> Array:
        """theta, summed up."""
        theta = np.cumsum(self.mdp.parameter)
        theta[np.flatnonzero(self.mdp.parameter)[-1] :] = 1.0
        return theta

    def learner(self, given: Learner | str, steps: int) -> Learner:
        if isinstance(given, str):
            if self.grid is None:
                raise validation.InputError(
                    f"learner is {given!r}: without nodes it is made by ravi.continuous, not by its id"
                )
            given = ids.build(given, LEARNERS, "learner on continuous states", self.mdp.problem, self.grid, steps)
        made: Learner = validation.instance(
            given, Learner, "learner", "an id such as 'ravi-ucb+,inner=2', or a ravi.Learner"
        )
        rule: Any = made.parts
        if not isinstance(rule, Rule):
            raise validation.InputError(
                f"{made.name} is a learner of tables: on continuous states ravi.continuous makes one"
            )
        if rule.problem is not self.mdp.problem:
            raise validation.InputError(f"{made.name} was made for another problem than {self.name}")
        if rule.steps != steps:
            raise validation.InputError(f"{made.name} was made for steps={rule.steps}, not {steps}")
        return made

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        refuse_streams(options, "on continuous states the regret and what is earned are")
        assert isinstance(learner.parts, Rule)
        best = None if self.scored is None else optimal(self.scored).optimum
        return Scores(best, None, [_score_measure(learner.parts, self, best, options["points"])])

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        x, problem = np.empty((len(keys), self.mdp.problem.axes)), self.mdp.problem
        for i, key in enumerate(keys):
            _first(problem.functions.begin, problem.constants, key, x[i])
        walkers = Walkers(x, np.zeros(len(keys), np.int64), keys.copy())
        what = f"{learner.name} on {self.name}"
        return start_batch(learner, keys, measures, walkers, what, "seeds, points or nodes")

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        problem, T, (x, time, _) = self.mdp.problem, stopped.steps, batch.walkers
        facts = Facts(1, problem.actions, problem.horizon, T, time, time, T)
        check_state(batch.state, batch, begun, facts, "batch")
        outside = (x < problem.low) | (x > problem.high)
        if outside.any():
            raise validation.InputError(
                f"{validation.at('batch.walkers.state', validation.first(outside))} is outside of the box"
            )

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        return [python_driver.run(tasks[0], batches[0])]


def box(mdp: ContinuousMDP, *, nodes: int | None = None, scored: Reference | int | None = None, every: int = 1) -> Box:
    """A continuous MDP to run in. nodes: of learners that are named by their ids, along every axis. scored: where
    policies are valued, a reference or its nodes along every axis. every: how many epochs share a score (the regret is
    then that of the scored policies, each charged until the next)."""
    on = None if nodes is None else quadrature.grid(mdp.problem, nodes)
    ref = reference(mdp, scored) if isinstance(scored, int) else scored
    if ref is not None and ref.mdp.problem is not mdp.problem:
        raise validation.InputError("scored is a reference of another problem")
    return Box(mdp, on, ref, validation.whole(every, "every"))


def level_box(nodes: int = 32, scored: int = 64, *, every: int = 1) -> Box:
    """A level in [0, 1] moves by an unknown mixture of three simulators, which are Beta densities."""
    return box(level(), nodes=nodes, scored=scored, every=every)


def pendulum_box(nodes: int = 24, scored: int = 32, *, every: int = 5) -> Box:
    """A pendulum, which is light, heavy or sticky at random in each step, is to be swung up."""
    return box(pendulum(), nodes=nodes, scored=scored, every=every)


class PolicyScores(NamedTuple):
    """The policies of planners on the nodes of a reference, kept up record by record, and what they lose."""

    log_policy: LogPolicy  # (n, F, A)
    policy: Policy  # (n, F, A)
    played: Policy  # (n, F, A)
    seen: Whole  # records   (n,)
    epoch: Whole  # epochs begun   (n,)
    gap: NumberOrNan  # of the policy that was scored last   (n,)
    earned: Positive  # (n,)
    plays: Plays  # (n,)
    starts: Annotated[Log, STARTS]  # T_k
    gaps: Log


def _score_measure(rule: Rule, world: Box, best: float | None, points: int) -> Measure:
    ref, A = world.scored, rule.problem.actions
    F = 0 if ref is None else len(ref.rewards)
    rows: Any = (
        None if ref is None else quadrature.rows(rule.problem, rule.grid, ref.grid.nodes)[0].reshape(-1, rule.grid.size)
    )

    def init(keys: Array) -> PolicyScores:
        n = len(keys)
        log_policy = np.full((n, F, A), -np.log(A))
        policy = np.exp(log_policy)
        none, nan, logs = np.zeros(n, np.int64), np.full(n, np.nan), (Log(n, np.int64), Log(n, np.float64))
        return PolicyScores(log_policy, policy, policy.copy(), none, none.copy(), nan, np.zeros(n), none.copy(), *logs)

    def record(m: PolicyScores, state: Any, path: Path, opening: bool) -> PolicyScores:
        played = np.flatnonzero(path.length)
        for i in played.tolist():
            if ref is not None and best is not None and m.epoch[i] % world.every == 0:
                m.gap[i] = best - score(m, i, Planner(rule, state, i, NONE, NONE), ref, rows)
        m.epoch[played] += 1
        m.earned[played], m.plays[played] = state.earned[played], state.time[played]
        m.starts.append(np.where(path.length > 0, path.time, 0))
        m.gaps.append(np.where(path.length > 0, m.gap, 0.0))
        return m

    def results(m: PolicyScores) -> dict[str, Array]:
        T_k, gap_k, times = m.starts.table, m.gaps.table, times_of(rule.steps, points)
        curves, totals = np.full((len(m.gap), len(times)), np.nan), np.zeros(len(m.gap))
        for i, t in enumerate(m.plays):
            there = T_k[:, i] > 0
            lengths = np.diff(np.append(T_k[there, i], t + 1))
            totals[i] = float(lengths @ gap_k[there, i])
            curves[i, times <= t] = np.repeat(gap_k[there, i], lengths).cumsum()[times[times <= t] - 1]
        found = {"regret": curves, "regret_total": totals, "gap": m.gap, "T_k": T_k, "gap_k": gap_k}
        return found | {"reward_total": m.earned}

    return Measure("continuous", init, record, results)


def score(m: PolicyScores, i: int, planner: Planner, ref: Reference, rows: Array) -> float:
    """The return of the policy that seed i plays now; what is kept of it in place."""
    F, A = ref.rewards.shape
    seen, taken, records, rule = int(m.seen[i]), int(planner.own.taken[0]), planner.records, planner.rule
    new = records.U[:, seen:taken]
    phi = (rows @ new).reshape(F, A * planner.d, new.shape[1])
    Q = np.empty((1, F, A))
    one = slice(i, i + 1)
    for p in range(seen, taken):
        back_up_all(np.ascontiguousarray(phi[:, :, p - seen]), ref.rewards, records, p, rule.numbers, Q[0])
        mirror_step(m.log_policy[one], m.policy[one], Q, rule.eta, in_place=True)
        if p + 1 == planner.active:
            m.played[i] = m.policy[i]
    m.seen[i] = taken
    return return_of(ref, m.played[i])


@compiled
def _first(begin, constants, key, x):  # type: ignore[no-untyped-def]
    begin(constants, key, 0, BEGIN_LANE, x)


to_run.register(ContinuousMDP, Box)  # nothing is scored: see `box`
