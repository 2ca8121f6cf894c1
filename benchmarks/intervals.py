"""How many steps until a policy is known to be good? `python benchmarks/intervals.py [--write FILE]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from timing import opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

import ravi
from environments import World

ABOUT = """
How many steps does it take until the data prove that a policy is good? For those who use `until_gap`. Under the default
assumption ("seen") a deterministic environment needs little more than to be learned; without an assumption, none of
these environments is settled within the allowed steps.

The default learner plays (`ravi.learn`, gamma = 0.99) until its policy is known to be within 10, 5 and 1 % of the
optimum, with probability 0.95 (`until_gap`), under either assumption. Its true loss at that time is computed from the
table of the environment. Entries are medians over {SEEDS} seeds of the steps of the environment; - means not within the
allowed steps. The last column is the bound on the loss at the end of the run, relative to the optimum.
"""
PARTS, SEEDS = (0.1, 0.05, 0.01), 3
MOST = {  # steps, by assumption
    "FrozenLake 4x4": {"seen": 500_000, "nothing": 100_000},
    "FrozenLake 4x4, not slippery": {"seen": 60_000, "nothing": 100_000},
    "CliffWalking": {"seen": 60_000, "nothing": 100_000},
    "Taxi": {"seen": 120_000, "nothing": 60_000},
}


def row(name: str, assume: str, most: int) -> str:
    world, cells, lost, gaps = World(name), [], [], []
    for part in PARTS:
        steps = []
        for seed in range(SEEDS):
            goal = part * abs(world.optimum)
            made = ravi.learn(world.env, steps=most, seed=seed, until_gap=goal, assume=assume, progress=False)
            gap = made.interval(assume=assume).gap
            steps.append(made.environment["steps"] if gap <= goal else np.inf)
            lost += [world.lost(made.table())] if gap <= goal else []
            gaps.append(gap / abs(world.optimum))
        cells.append("-" if np.isinf(steps).any() else f"{int(np.median(steps)):,}")
        if np.isinf(steps).any():
            break
    cells += ["-"] * (len(PARTS) - len(cells))
    cells += [f"{100 * max(lost):.2f} %" if lost else "-", f"{100 * np.median(gaps[-SEEDS:]):.0f} %"]
    return f"| {name} | {assume} | {most:,} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="put the table into this file")
    options = parser.parse_args()
    lines = [
        *opening("Steps until a policy is known to be good", ABOUT.format(SEEDS=SEEDS), "intervals.py"),
        "| environment | assume | steps allowed | 10 % | 5 % | 1 % | largest loss at the stop | bound at the end |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, steps in MOST.items():
        for assume, most in steps.items():
            lines.append(row(name, assume, most))
            print(lines[-1], flush=True)
    if options.write is not None:
        options.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
