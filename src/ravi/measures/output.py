"""Which policy is returned? pi_I with I uniform on {1, ..., T} (Section 2): its expected gap is regret / T.

Corollary 5.7 draws an epoch index instead; with a random number of epochs that is another expectation, so time is the
default here, and the policy of a uniform epoch can be had from T_k and gap_k. I is fixed by the key before the run.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Array, Measure, Path, Problem, Recorder
from ravi.random import OUTPUT, uniforms
from ravi.runtime.ranges import Fixed, PolicyOrNan


class Output(NamedTuple):
    index: Fixed  # I            (n,)
    policy: PolicyOrNan  # pi_I        (n, X, A), or (n, S, X, A)


def output(problem: Problem, steps: int, stages: int = 0) -> Measure:
    shape = ((stages,) if stages else ()) + (problem.states, problem.actions)

    def init(keys: Array) -> Output:
        index = 1 + (steps * uniforms(keys, 0, OUTPUT)).astype(np.int64)
        return Output(index, np.full((len(keys), *shape), np.nan))

    def record(m: Output, state: Any, path: Path, opening: bool) -> Output:
        _keep(m.index, m.policy, state.policy, path.time, path.length)
        return m

    def results(m: Output) -> dict[str, Array]:
        return {"output_index": m.index, "output_policy": m.policy}

    recorder = Recorder(record_output, lambda m, teams, rows: tuple(m), reads=0)
    return Measure("output", init, record, results, None if stages else recorder)


@compiled
def record_output(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """`record`, of one seed; a team's."""
    index, kept = own
    _, _, _, _, _, lengths, firsts, _ = path
    if firsts[i] <= index[i] < firsts[i] + lengths[i]:
        for x in each(policy.shape[1]):
            for a in range(policy.shape[2]):
                kept[i, x, a] = policy[i, x, a]


@compiled
def _keep(index, kept, policy, first, length):  # type: ignore[no-untyped-def]
    for i in range(index.shape[0]):
        if first[i] <= index[i] < first[i] + length[i]:
            kept[i] = policy[i]
