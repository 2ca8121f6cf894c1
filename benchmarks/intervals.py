"""Steps until a policy is known to be good: `python benchmarks/intervals.py [--write FILE]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from timing import opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

import ravi
from environments import WORLDS, Simulated, World
from ravi.live.learned import Learned, end_of
from ravi.live.stopping_rule import has_unplayed_pairs

ABOUT = """
How many steps does it take until the data prove that a policy is good? For those who use `until_gap`. Without an
assumption, the default, none of these environments is settled within the allowed steps. With `assume="seen"` a
deterministic environment needs little more than to be learned, and a slippery one of 16 states some 200,000 steps for
10 %; that assumption is false where events are rare.

The default learner plays (`ravi.learn`, gamma = 0.99) until its policy is known to be within 10, 5 and 1 % of the
optimum, with probability 0.95 (`until_gap`), under either assumption. Its true loss at that time is computed from the
table of the environment. Entries are medians over {SEEDS} seeds of the steps of the environment; - means not within the
allowed steps, which are what a few minutes have room for. The last column is the bound on the loss at the end of the
run, relative to the optimum. Environments of the script that are not in the table were not measured.

The assumption "seen" takes an environment for deterministic once twenty plays of pairs that had been played before have
shown nothing new.
"""
PARTS, SEEDS = (0.1, 0.05, 0.01), 3
MOST = {  # steps, by assumption
    "FrozenLake 4x4": {"seen": 2_500_000, "nothing": 100_000},
    "FrozenLake 4x4, not slippery": {"seen": 60_000, "nothing": 100_000},
    "FrozenLake 8x8": {"seen": 3_000_000},
    "CliffWalking": {"seen": 60_000, "nothing": 100_000},
    "CliffWalking, slippery": {"seen": 3_000_000},
    "Taxi": {"seen": 120_000, "nothing": 60_000},
    "riverswim/6": {"seen": 1_000_000},
    "garnet/20,3,4": {"seen": 1_000_000},
}


class Looks:
    """A goal does not change what is played: a run to the smallest passes the others where it would have stopped."""

    def __init__(self, world, assume):
        self.world, self.assume, self.reached, self.lost, self.gap = world, assume, {}, [], np.inf
        self.look = Learned.look

    def __enter__(self):
        Learned.look = lambda learned: self.at(learned, *self.look(learned))
        return self

    def __exit__(self, *_):
        Learned.look = self.look

    def at(self, learned, known, actions):
        self.gap = known.gap / abs(self.world.optimum)
        goes_on = has_unplayed_pairs(learned.agent, end_of(learned.agent, learned.environment))
        for part in PARTS:
            if self.gap <= part and not goes_on and part not in self.reached:
                self.reached[part] = learned.environment["steps"]
                self.lost.append(self.world.lost(learned.table()))
        return known, actions


def row(name: str, assume: str, most: int) -> str:
    world, looks = World(name) if name in WORLDS else Simulated(name), []
    for seed in range(SEEDS):
        with Looks(world, assume) as seen:
            goal = PARTS[-1] * abs(world.optimum)
            made = ravi.learn(world.env, steps=most, seed=seed, until_gap=goal, assume=assume, progress=False)
            made.look()
        looks.append(seen)
    there = [[seen.reached.get(part, np.inf) for seen in looks] for part in PARTS]
    cells = ["-" if np.isinf(steps).any() else f"{int(np.median(steps)):,}" for steps in there]
    lost = [part for seen in looks for part in seen.lost]
    gap = float(f"{100 * np.median([seen.gap for seen in looks]):.2g}")
    cells += [f"{100 * max(lost):.2f} %" if lost else "-", f"{gap:,.0f} %" if gap >= 10 else f"{gap:.2f} %"]
    return f"| {name} | {assume} | {most:,} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", type=Path, help="put the table into this file; rows of it that are not made anew stay"
    )
    parser.add_argument("--worlds", default=",".join(map(str, range(len(MOST)))), help="by number, from 0")
    options = parser.parse_args()
    before = options.write.read_text().splitlines() if options.write is not None and options.write.exists() else []
    lines = [
        *opening("Steps until a policy is known to be good", ABOUT.format(SEEDS=SEEDS), "intervals.py"),
        "| environment | assume | steps allowed | 10 % | 5 % | 1 % | largest loss at the stop | bound at the end |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for i, (name, steps) in enumerate(MOST.items()):
        for assume, most in steps.items():
            if str(i) in options.worlds.split(","):
                lines.append(row(name, assume, most))
                print(lines[-1], flush=True)
            else:
                lines += [line for line in before if line.startswith(f"| {name} | {assume} |")]
    if options.write is not None:
        options.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
