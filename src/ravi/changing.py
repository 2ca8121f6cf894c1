"""How does a run go where rewards change? As any other; its regret is against the best fixed policy in hindsight.

    R_t = max_pi sum_{i <= t} <mu^pi, r_i> - sum_{i <= t} <mu^{pi_i}, r_i>

Both sums are computed: the second from the occupancies of the policies played, the first from the optimum under the
mean of the tables that were in force, by value iteration with its certificate, and at T by linear program beside it.
R_t may be negative: a learner that follows the changes does better than every fixed policy.

Where tables change with epochs, how long each is in force depends on the seed's resets, and so does the best policy;
the theorem bounds the expected regret against any one policy, which is no larger.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ravi import checks, ids
from ravi.core import Array, Learner
from ravi.engine import run
from ravi.learners.changing import changing
from ravi.mdps.changing import Changing
from ravi.measures.hindsight import hindsight
from ravi.planning.entropy import conditional_relative_entropy
from ravi.planning.linear_program import optimal_occupancy
from ravi.planning.solver import solve
from ravi.runs import Run
from ravi.theory import constants

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
    """What a run under changing rewards gives; seeds first."""

    world: Changing
    run: Run  # not measured against any one table
    times: Array  # (P,)
    earned_curve: Array  # sum_{i <= t} <mu^{pi_i}, r_i>     (n, P)
    regret_curve: Array  # R_t, against the best policy for t plays   (n, P)
    regret: Array  # R_T                                     (n,)
    regret_error: Array  # certified                         (n,)
    plays: Array  # under each table                         (n, J)
    comparator: Array  # the best fixed policy               (n, X, A)
    optimum: Array  # what it earns a play                   (n,)
    optimum_by_program: Array  # the same, by linear program   (n,)
    lemma: Lemma

    def __repr__(self) -> str:
        r, n = self.regret, len(self.regret)
        return (
            f"<{self.run.learner} on {self.world!r}: {self.run.steps:,} steps, {n} seed{'s' if n > 1 else ''}, regret "
            f"{r.mean():,.2f} (from {r.min():,.2f} to {r.max():,.2f}; error at most {self.regret_error.max():.1e})>"
        )


def run_changing(
    learner: Learner | str, world: Changing, steps: int, seeds: int | Iterable[int] = 1, *, points: int = 50
) -> ChangingRun:
    """Run RAVI-UCB (`ravi-ucb` or `ravi-ucb/mixture`, with its options) where rewards change, and score it exactly."""
    T = checks.steps(steps)
    base = ids.learner(learner, world.mdp, T) if isinstance(learner, str) else learner
    measure = hindsight(world, T, checks.whole(points, "points"))
    made = run(changing(base, world), world.mdp, T, seeds, points=points, measures=[measure], measured=False)
    found: dict[str, Any] = made.results
    known: dict[bytes, Best] = {}

    def best(counts: Array) -> Best:
        if counts.tobytes() not in known:
            known[counts.tobytes()] = best_fixed(world, counts)
        return known[counts.tobytes()]

    at = found["plays_at"]  # (n, P, J)
    most = np.array([[best(counts).rho * counts.sum() for counts in seed] for seed in at])
    ends = [best(counts) for counts in found["plays"]]
    error = found["error"] + T * (np.array([end.error for end in ends]) + T * EPS)  # and T roundings of the sum
    return ChangingRun(
        world=world,
        run=made,
        times=made.times,
        earned_curve=found["earned_at"],
        regret_curve=most - found["earned_at"],
        regret=np.array([T * end.rho for end in ends]) - found["earned"],
        regret_error=error,
        plays=found["plays"],
        comparator=np.array([end.policy for end in ends]),
        optimum=np.array([end.rho for end in ends]),
        optimum_by_program=np.array([_agrees(world, row, end) for row, end in zip(found["plays"], ends, strict=True)]),
        lemma=_lemma(world, base, found),
    )


def best_fixed(world: Changing, counts: Array) -> Best:
    """The best fixed policy where table j is in force counts[j] times."""
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
