"""What happened: the rewards of the steps, the stream of experience, and the policy that is returned.

`rewards` is the sum of what the steps earned, for the record; the headline is the exact regret. `realised` is T rho*
less that sum, what was lost along the path. `stream` is every
(x_t, a_t, y_t) and reset flag: memory n T, for short runs and tests. `output` is pi_I with I uniform on {1, ..., T}
(Section 2), whose expected gap is regret / T; Corollary 5.7 draws an epoch index instead, which is another expectation
where the number of epochs is random, and the policy of a uniform epoch can be had from T_k and gap_k. I is fixed by the
key before the run.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each, first
from ravi.core import MDP, Array, Measure, Problem, Recorder
from ravi.measures.curve import Curve, add_steps, curve, grid
from ravi.measures.recording import compiled_measure
from ravi.random import OUTPUT, uniforms
from ravi.runtime.ranges import ActionOrNone, Fixed, Flag, Past, PlaceOrNone, PolicyOrNan
from ravi.runtime.walk import padding
from ravi.validation import LAWS


class Earnings(NamedTuple):
    curve: Curve
    key: Fixed  # of the seed's random numbers   (n,)
    plays: Past  # t                             (n,)


def rewards(mdp: MDP, steps: int, points: int, optimum: float | None = None) -> Measure:
    """The curve of the rewards, and their sum; with the optimum of a step, T rho* less that sum."""
    times, law = grid(steps, points), LAWS[mdp.reward_law or "deterministic"]

    def init(keys: Array) -> Earnings:
        return Earnings(curve(len(keys), times), np.array(keys, np.uint64), np.zeros(len(keys), np.int64))

    def results(m: Earnings) -> dict[str, Array]:
        found = {"reward": m.curve.values, "reward_total": m.curve.total}
        return found if optimum is None else found | {"realised": m.plays * optimum - m.curve.total}

    def own(m: Earnings, teams: int, rows: int) -> tuple[Any, ...]:
        return m, times, mdp.rewards, law

    return compiled_measure("rewards", init, results, Recorder(_record_rewards, own, reads=1))


@compiled
def _record_rewards(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    if first():
        (kept, key, plays), times, table, law = own
        _, _, _, _, _, lengths, firsts, _ = path
        plays[i] = min(max(plays[i], firsts[i] + lengths[i] - 1), times[times.shape[0] - 1])
        add_steps(i, times, kept, table, law, key, path)


class Output(NamedTuple):
    index: Fixed  # I            (n,)
    policy: PolicyOrNan  # pi_I        (n, X, A), or (n, S, X, A)


def output(problem: Problem, steps: int, stages: int = 0) -> Measure:
    """The policy of a uniform time."""
    shape = ((stages,) if stages else ()) + (problem.states, problem.actions)

    def init(keys: Array) -> Output:
        index = 1 + (steps * uniforms(keys, 0, OUTPUT)).astype(np.int64)
        return Output(index, np.full((len(keys), *shape), np.nan))

    def results(m: Output) -> dict[str, Array]:
        return {"output_index": m.index, "output_policy": m.policy}

    def own(m: Output, teams: int, rows: int) -> tuple[Array, Array]:
        return m.index, m.policy.reshape(len(m.index), -1, problem.actions)

    return compiled_measure("output", init, results, Recorder(_record_output, own, reads=0))


@compiled
def _record_output(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    index, kept = own
    _, _, _, _, _, lengths, firsts, _ = path
    if firsts[i] <= index[i] < firsts[i] + lengths[i]:
        for x in each(policy.shape[1]):
            for a in range(policy.shape[2]):
                kept[i, x, a] = policy[i, x, a]


class Stream(NamedTuple):
    state: PlaceOrNone  # x_t, -1 where nothing was played    (n, T + room for padding)
    action: ActionOrNone  # a_t
    successor: PlaceOrNone  # y_t
    reset: Flag  # whether a reset followed


def stream(problem: Problem, steps: int, *, pad: bool = False) -> Measure:
    """Every step."""
    beyond = padding(problem.horizon) if pad else 0

    def init(keys: Array) -> Stream:
        shape = (len(keys), steps + beyond)
        state, action, successor = (np.full(shape, -1, np.int32) for _ in range(3))
        return Stream(state, action, successor, np.zeros(shape, np.bool_))

    def results(m: Stream) -> dict[str, Array]:
        return {f"stream_{name}": array for name, array in m._asdict().items()}

    return compiled_measure("stream", init, results, Recorder(_record_stream, lambda m, teams, rows: tuple(m)))


@compiled
def _record_stream(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """The steps of a seed, where they belong; a team's."""
    state, action, successor, reset = own
    xs, actions, ys, _, resets, lengths, firsts, _ = path
    begin = firsts[i] - 1
    for l in each(lengths[i]):
        state[i, begin + l], action[i, begin + l], successor[i, begin + l] = xs[i, l], actions[i, l], ys[i, l]
        reset[i, begin + l] = resets[i, l]
