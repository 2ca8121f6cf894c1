"""What is earned where rewards change, and what one policy would have earned; all computed, from occupancies.

    R_t = max_pi sum_{i <= t} <mu^pi, r_i> - sum_{i <= t} <mu^{pi_i}, r_i>

A step t under pi_k with table j in force adds <mu^{pi_k}, r_j> to the second sum. The first is the optimum under the
mean of the tables that were in force, by value iteration with its certificate, and at T by linear program beside it.
R_t may be negative: a learner that follows the changes does better than every fixed policy. Where tables change with
epochs, how long each is in force depends on the seed's resets, and so does the best policy; the theorem bounds the
expected regret against any one policy, which is no larger.

For Lemma 4.3, sharp and as printed, epoch k adds <mu^{pi_k}, r_k>, r_k the table that was revealed after it, and the
bonuses under mu^{pi_k}:

    sum_k <mu* - mu^{pi_k}, r_k> <= sum_k <mu^{pi_k}, min{2 CB_k, H}> + H(pi* || pi_0) / eta + K eta kappa + H
                                 <= 2 sum_k <mu^{pi_k}, CB_k> + H(pi* || pi_0) / eta + K eta H^3/2 + 2 H

where bonuses were valid; a V_0 that is not constant adds H to the first.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Measure, Parts, Path
from ravi.mdps.changing_rewards import Changing
from ravi.measures.curve import cursor_into, grid
from ravi.planning.bellman import expect
from ravi.planning.certificates import EPS
from ravi.planning.methods import optimal_occupancy
from ravi.planning.occupancies import conditional_relative_entropy, occupancy
from ravi.planning.solver import solve
from ravi.runtime.ranges import Count, Flag, Next, Number, NumberOrNan, Positive, Range
from ravi.runtime.walk import normalised
from ravi.theory import constants

ROUNDING = 1e-12  # of gamma (P - P_hat) V against CB, in parts of H
TOLERANCE = 1e-12  # of V*, where rounding allows
AGREE = 1e-7  # between the certified optimum and that of the linear program


class Best(NamedTuple):
    """The best fixed policy for tables that were in force for so long."""

    rho: float  # what it earns a step
    error: float  # certified
    policy: Array  # (X, A)


def best_fixed(world: Changing, counts: Array) -> Best:
    """The best fixed policy where table j is in force counts[j] times (all alike, where none is)."""
    mdp = world.average(counts)
    solution = solve(mdp, "value_iteration", TOLERANCE)
    return Best(solution.optimum, solution.optimum_error + (len(counts) + 4) * EPS, solution.policy)


def by_program(world: Changing, counts: Array) -> float:
    """What it earns a step, by linear program: <mu*, r>."""
    mdp = world.average(counts)
    return float((optimal_occupancy(mdp) * mdp.rewards).sum())


TABLE = Range(lambda j, f, _, held: (j >= -1) & (j < held.rho.shape[1]), "a table, or -1 for none")


class Hindsight(NamedTuple):
    rho: Number  # <mu^{pi_k}, r_j>                         (n, J)
    loose: Positive  # certified bound on the error of rho  (n,)
    charge: Positive  # <mu^{pi_k}, CB_k> and <mu^{pi_k}, min{2 CB_k, H}>   (n, 2)
    earned: Positive  # sum_t <mu^{pi_t}, r_t>              (n,)
    error: Positive  # of it                                (n,)
    plays: Count  # under each table                        (n, J)
    cursor: Annotated[Array, cursor_into("earned_at")]  # the next grid time to fill   (n,)
    earned_at: NumberOrNan  # at grid times                 (n, P)
    plays_at: Count  # likewise                             (n, P, J)
    last: Annotated[Array, TABLE]  # of the last step, or of the epoch; -1 before the first   (n,)
    by_epoch: Positive  # sum_k <mu^{pi_k}, r_k>            (n,)
    epochs: Next  # with r_k = r_j                          (n, J)
    bonuses: Positive  # sums of `charge`                   (n, 2)
    valid: Flag  # whether every bonus was                  (n,)


def hindsight(world: Changing, steps: int, points: int, parts: Parts | None = None) -> Measure:
    """The regret in hindsight; with the parts of the learner Lemma 4.3 too."""
    times, J, mdp = grid(steps, points), len(world.tables), world.mdp
    by_play = world.clock == "plays"

    def init(keys: Array) -> Hindsight:
        n, P = len(keys), len(times)
        whole = np.int64
        return Hindsight(
            np.zeros((n, J)), np.zeros(n), np.zeros((n, 2)), np.zeros(n), np.zeros(n), np.zeros((n, J), whole),
            np.zeros(n, whole), np.full((n, P), np.nan), np.zeros((n, P, J), whole), np.full(n, -1, whole),
            np.zeros(n), np.zeros((n, J), whole), np.zeros((n, 2)), np.ones(n, bool),
        )  # fmt: skip

    def opened(m: Hindsight, state: Any, rows: Array) -> None:
        """Close the epoch before, and score the one that begins; in place."""
        _close_epoch(m, rows)
        mu = occupancy(mdp, normalised(state.policy[rows]))
        CB = state.CB[rows]
        m.rho[rows] = np.einsum("nxa,jxa->nj", mu.mu, world.tables, optimize=False)
        m.loose[rows] = mu.error
        m.charge[rows, 0] = (mu.mu * CB).sum((1, 2))
        m.charge[rows, 1] = (mu.mu * np.minimum(2 * CB, mdp.horizon)).sum((1, 2))
        off = mdp.discount * np.abs(expect(mdp, state.V[rows]) - state.PV[rows])
        m.valid[rows] &= (off <= CB + ROUNDING * mdp.horizon).all((1, 2))

    def record(m: Hindsight, state: Any, path: Path, opening: bool) -> Hindsight:
        if opening:
            opened(m, state, np.flatnonzero(path.length))
        epoch = np.zeros(0, np.int64) if by_play else state.epoch
        _charge(m, times, world.block, epoch, path.time, path.length)
        return m

    def results(m: Hindsight) -> dict[str, Array]:
        m = m._replace(by_epoch=m.by_epoch.copy(), epochs=m.epochs.copy(), bonuses=m.bonuses.copy())
        _close_epoch(m, np.flatnonzero(m.last >= 0))
        kept = ("earned", "error", "plays", "earned_at", "plays_at", "by_epoch", "epochs", "bonuses", "valid")
        found = {name: getattr(m, name) for name in kept} | _score(world, m)
        return found if parts is None else found | _lemma(world, parts, m)

    return Measure("hindsight", init, record, results)


def _score(world: Changing, m: Hindsight) -> dict[str, Array]:
    """Against the best fixed policy, at every time and at the last."""
    known: dict[bytes, Best] = {}

    def best(counts: Array) -> Best:
        if counts.tobytes() not in known:
            known[counts.tobytes()] = best_fixed(world, counts)
        return known[counts.tobytes()]

    most = np.array([[best(counts).rho * counts.sum() for counts in seed] for seed in m.plays_at])
    ends, t = [best(counts) for counts in m.plays], m.plays.sum(-1)
    rho = np.array([end.rho for end in ends])
    return {
        "regret": most - m.earned_at,
        "regret_total": t * rho - m.earned,
        "regret_error": m.error + t * (np.array([end.error for end in ends]) + t * EPS),  # and t roundings of the sum
        "comparator": np.array([end.policy for end in ends]),
        "optimum": rho,
        "optimum_by_program": np.array(
            [_check_by_program(world, row, end) for row, end in zip(m.plays, ends, strict=True)]
        ),
    }


def _check_by_program(world: Changing, counts: Array, best: Best) -> float:
    rho = by_program(world, counts)
    if abs(rho - best.rho) > AGREE:
        raise RuntimeError(f"the linear program finds {rho}, value iteration {best.rho}")
    return rho


def _lemma(world: Changing, of: Parts, m: Hindsight) -> dict[str, Array]:
    """Both sides of Lemma 4.3 with r_k   (n,)."""
    H, eta, K = world.mdp.horizon, of.eta, m.epochs.sum(-1)
    ends = [best_fixed(world, counts) for counts in m.epochs]
    entropy = np.array([conditional_relative_entropy(world.mdp, end.policy, of.initial_policy) for end in ends])
    boundary = H if np.ptp(of.initial_value) == 0 else 2 * H  # <mu^{pi_1} - mu*, E V_0> is 0 for a constant
    return {
        "lemma_measured": K * np.array([end.rho for end in ends]) - m.by_epoch,
        "lemma_bound": m.bonuses[:, 1] + entropy / eta + K * eta * constants.kappa(H) + boundary,
        "lemma_printed": 2 * m.bonuses[:, 0] + entropy / eta + K * eta * H**3 / 2 + 2 * H,
    }


def _close_epoch(m: Hindsight, rows: Array) -> None:
    """Epoch k has ended, and its table is the last one."""
    rows = rows[m.last[rows] >= 0]
    j = m.last[rows]
    m.by_epoch[rows] += m.rho[rows, j]
    m.epochs[rows, j] += 1
    m.bonuses[rows] += m.charge[rows]


@compiled
def _charge(m, times, block, epoch, first, length):  # type: ignore[no-untyped-def]
    for i in range(first.shape[0]):
        for l in range(length[i]):
            t = first[i] + l
            clock = t if epoch.shape[0] == 0 else epoch[i]
            j = (clock - 1) // block % m.rho.shape[1]
            m.earned[i] += m.rho[i, j]
            m.error[i] += m.loose[i]
            m.plays[i, j] += 1
            m.last[i] = j
            if times[m.cursor[i]] == t:
                m.earned_at[i, m.cursor[i]] = m.earned[i]
                m.plays_at[i, m.cursor[i]] = m.plays[i]
                m.cursor[i] += 1
