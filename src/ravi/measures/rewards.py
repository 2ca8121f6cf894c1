"""What was earned? The realised reward sum_t r(x_t, a_t), for the record; the headline is the exact regret."""

from typing import Any

from ravi._jit.functions import compiled
from ravi._jit.teams import first
from ravi.core import MDP, Array, Measure, Path, Recorder
from ravi.measures.curve import Curve, add_steps, curve, grid


def rewards(mdp: MDP, steps: int, points: int) -> Measure:
    times = grid(steps, points)

    def record(m: Curve, state: Any, path: Path, opening: bool) -> Curve:
        add_steps(0, len(m.total), times, *m, mdp.rewards, path.time, path.length, path.state, path.action)
        return m

    def results(m: Curve) -> dict[str, Array]:
        return {"reward": m.values, "reward_total": m.total}

    recorder = Recorder(record_rewards, lambda m, teams, rows: (times, *m, mdp.rewards), reads=1)
    return Measure("rewards", lambda keys: curve(len(keys), times), record, results, recorder)


@compiled
def record_rewards(own, i, row, opening, policy, path):  # type: ignore[no-untyped-def]
    """`record`, of one seed."""
    if first():
        times, total, cursor, values, table = own
        xs, actions, _, _, _, lengths, firsts, _ = path
        add_steps(i, i + 1, times, total, cursor, values, table, firsts, lengths, xs, actions)
