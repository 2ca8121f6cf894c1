"""How does a run go where rewards change? As any other; its regret is against the best fixed policy in hindsight.

    R_t = max_pi sum_{i <= t} <mu^pi, r_i> - sum_{i <= t} <mu^{pi_i}, r_i>

Both sums are computed: the second from the occupancies of the policies played, the first from the optimum under the
mean of the tables that were in force, by value iteration with its certificate, and at T by linear program beside it.
R_t may be negative: a learner that follows the changes does better than every fixed policy.

Where tables change with epochs, how long each is in force depends on the seed's resets, and so does the best policy;
the theorem bounds the expected regret against any one policy, which is no larger.

It stops as any other run does, at a pause or by Ctrl-C (`ravi.Stopped`, whose `.run` holds what was computed), is saved
and read by the same functions, and `resume_changing` takes it up, with the same bits as if it had never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi import checks, ids
from ravi.core import Array, Learner
from ravi.engine import Progress, resume, run
from ravi.learners.changing import changing
from ravi.mdps.changing import WORLDS, Changing
from ravi.measures.hindsight import hindsight
from ravi.planning.entropy import conditional_relative_entropy
from ravi.planning.linear_program import optimal_occupancy
from ravi.planning.solver import solve
from ravi.runs import Run
from ravi.theory import constants

if TYPE_CHECKING:
    from ravi.files import Place

TOLERANCE = 1e-12  # of V*, where rounding allows
EPS = 2.0**-52
AGREE = 1e-7  # between the certified optimum and that of the linear program


class Best(NamedTuple):
    """The best fixed policy for tables that were in force for so long."""

    rho: float  # what it earns a play
    error: float  # certified
    policy: Array  # (X, A)


class Lemma(NamedTuple):
    """Lemma 4.3 with r_k, sharp: measured <= bound where bonuses were valid. A V_0 that is not constant adds H."""

    measured: Array  # sum_k <mu* - mu^{pi_k}, r_k>, for the best pi*   (n,)
    bound: Array  # sum_k <mu^{pi_k}, min{2 CB_k, H}> + H(pi* || pi_0) / eta + K eta kappa + H   (n,)
    printed: Array  # 2 sum_k <mu^{pi_k}, CB_k> + H(pi* || pi_0) / eta + K eta H^3/2 + 2 H       (n,)
    valid: Array  # whether they were   (n,)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ChangingRun:
    """What a run under changing rewards gives; seeds first. Of one that was stopped, up to there."""

    world: Changing
    run: Run  # not measured against any one table
    times: Array  # (P,)
    earned_curve: Array  # sum_{i <= t} <mu^{pi_i}, r_i>     (n, P)
    regret_curve: Array  # R_t, against the best policy for t plays; nan where not reached   (n, P)
    regret: Array  # R_T, or so far                          (n,)
    regret_error: Array  # certified                         (n,)
    plays: Array  # under each table                         (n, J)
    comparator: Array  # the best fixed policy               (n, X, A)
    optimum: Array  # what it earns a play                   (n,)
    optimum_by_program: Array  # the same, by linear program   (n,)
    lemma: Lemma

    def save(self, path: Place) -> None:
        """Write the run to one file. `ravi.Run.load` reads it, and `resume_changing` goes on, or scores it again."""
        self.run.save(path)

    def __repr__(self) -> str:
        r, n, plays = self.regret, len(self.regret), self.run.plays
        stopped = "" if self.run.complete else f", stopped after {int(plays.min()):,} to {int(plays.max()):,} plays"
        seeds = f"{n} seed{'s' if n > 1 else ''}{stopped}"
        return (
            f"<{self.run.learner} on {self.world!r}: {self.run.steps:,} steps, {seeds}, "
            f"regret {r.mean():,.2f} (from {r.min():,.2f} to {r.max():,.2f}; "
            f"error at most {self.regret_error.max():.1e})>"
        )


def run_changing(
    learner: Learner | str,
    world: Changing | str,
    steps: int,
    seeds: int | Iterable[int] = 1,
    *,
    points: int = 50,
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
) -> ChangingRun:
    """Run RAVI-UCB (`ravi-ucb` or `ravi-ucb/mixture`, with its options) where rewards change, and score it exactly.

    `world` may be an id, `tides/6,block=50`. pause, stop, progress: as in `ravi.run`.
    """
    T, world = checks.steps(steps), _world(world)
    base, measure = _base(learner, world, T), hindsight(world, T, checks.whole(points, "points"))
    made = run(
        changing(base, world), world.mdp, T, seeds, points=points, measures=[measure], measured=False, pause=pause,
        stop=stop, progress=progress,
    )  # fmt: skip
    return _scored(made, base, world)


def resume_changing(
    stopped: ChangingRun | Run,
    learner: Learner | str,
    world: Changing | str,
    *,
    pause: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
) -> ChangingRun:
    """Take up a stopped run (also that of `ravi.Stopped`, or of `ravi.Run.load`); `learner` and `world` must be those
    that it was made with. One that is complete is only scored again."""
    before, world = stopped.run if isinstance(stopped, ChangingRun) else stopped, _world(world)
    if not isinstance(before, Run):
        raise checks.InputError(f"a {type(before).__name__} is not a run of run_changing, which this takes up")
    if "plays_at" not in before.results:
        raise checks.InputError(f"the run is of {before.learner}, whose rewards do not change: ravi.resume takes it up")
    T = before.steps
    base, measure = _base(learner, world, T), hindsight(world, T, before.options["points"])
    made = resume(
        before, changing(base, world), world.mdp, measures=[measure], pause=pause, stop=stop, progress=progress
    )  # fmt: skip
    return _scored(made, base, world)


def _world(world: Changing | str) -> Changing:
    made = ids.changing(world) if isinstance(world, str) else world
    if not isinstance(made, Changing):
        raise checks.InputError(
            f"there is no world {checks.shown(world)} whose rewards change. Known: {', '.join(WORLDS)}."
        )
    return made


def _base(learner: Learner | str, world: Changing, steps: int) -> Learner:
    return learner if isinstance(learner, Learner) else ids.learner(learner, world.mdp, steps)


def _scored(made: Run, base: Learner, world: Changing) -> ChangingRun:
    """A run, complete or not, against the best policy in hindsight."""
    found: dict[str, Any] = made.results
    known: dict[bytes, Best] = {}

    def best(counts: Array) -> Best:
        if counts.tobytes() not in known:
            known[counts.tobytes()] = best_fixed(world, counts)
        return known[counts.tobytes()]

    at, t = found["plays_at"], made.plays  # (n, P, J), (n,)
    most = np.array([[best(counts).rho * counts.sum() for counts in seed] for seed in at])
    ends = [best(counts) for counts in found["plays"]]
    error = found["error"] + t * (np.array([end.error for end in ends]) + t * EPS)  # and t roundings of the sum
    return ChangingRun(
        world=world,
        run=made,
        times=made.times,
        earned_curve=found["earned_at"],
        regret_curve=most - found["earned_at"],
        regret=t * np.array([end.rho for end in ends]) - found["earned"],
        regret_error=error,
        plays=found["plays"],
        comparator=np.array([end.policy for end in ends]),
        optimum=np.array([end.rho for end in ends]),
        optimum_by_program=np.array([_agrees(world, row, end) for row, end in zip(found["plays"], ends, strict=True)]),
        lemma=_lemma(world, base, found),
    )


def best_fixed(world: Changing, counts: Array) -> Best:
    """The best fixed policy where table j is in force counts[j] times (all alike, where none is)."""
    mdp = world.average(counts)
    solution = solve(mdp, "value_iteration", TOLERANCE)
    return Best(solution.optimum, solution.optimum_error + (len(counts) + 4) * EPS, solution.policy)


def by_program(world: Changing, counts: Array) -> float:
    """What it earns a play, by linear program: <mu*, r>."""
    mdp = world.average(counts)
    return float((optimal_occupancy(mdp) * mdp.rewards).sum())


def _agrees(world: Changing, counts: Array, best: Best) -> float:
    rho = by_program(world, counts)
    if abs(rho - best.rho) > AGREE:
        raise RuntimeError(f"the linear program finds {rho}, value iteration {best.rho}")
    return rho


def _lemma(world: Changing, base: Learner, found: dict[str, Array]) -> Lemma:
    assert base.parts is not None
    H, eta, pi0 = world.mdp.horizon, base.parts.eta, base.parts.initial_policy
    K = found["epochs"].sum(-1)
    ends = [best_fixed(world, counts) for counts in found["epochs"]]
    entropy = np.array([conditional_relative_entropy(world.mdp, end.policy, pi0) for end in ends])
    measured = K * np.array([end.rho for end in ends]) - found["by_epoch"]
    boundary = H if np.ptp(base.parts.initial_value) == 0 else 2 * H  # <mu^{pi_1} - mu*, E V_0> is 0 for a constant
    bound = found["bonuses"][:, 1] + entropy / eta + K * eta * constants.kappa(H) + boundary
    printed = 2 * found["bonuses"][:, 0] + entropy / eta + K * eta * H**3 / 2 + 2 * H
    return Lemma(measured, bound, printed, found["valid"])
