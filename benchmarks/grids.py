"""What does the default of `ravi learn` make of a Box? `python benchmarks/grids.py [--write benchmarks/grids.md]`.

--rows FILE keeps what was measured, as one line of JSON each, and a second call continues from there. Rows of the page
whose runs are not made again stay.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from timing import opening  # first: it keeps BLAS to one thread

# isort: split
import gymnasium
import numpy as np

import ravi
from ravi.live.policies import evaluate

SOLVED = {"CartPole-v1": 475, "MountainCar-v0": -110, "Acrobot-v1": -100}  # the mean return of 100 episodes
STEPS = {"CartPole-v1": (5_000, 2_000), "MountainCar-v0": (10_000, 5_000), "Acrobot-v1": (10_000,)}
EPISODES = 100
ABOUT = """
How good is the policy that `ravi.learn(ID, steps=T)` finds, without any option, if observations are a Box? For those
with such an environment. The policy is played for {EPISODES} episodes of the environment itself, with its time limit,
on seeds that were not used for learning. *Mean return* is the mean over learning seeds of the mean over episodes, with
the worst seed in brackets. *Solved* counts the seeds whose mean return is at least the value at which Gymnasium calls
the environment solved. *Loss* is the largest loss of the policy relative to the optimum of the model over cells in
which it was planned. CPU seconds are those of one seed, including its last plan, on one core. *Unknown* is the same
environment under a name for which the library has no defaults: its grid and its rewards are chosen from the
observations.
"""
UNKNOWN = {"CartPole-v1": (5_000,), "MountainCar-v0": (10_000, 5_000)}  # steps
for name, steps in UNKNOWN.items():  # the same under names of which nothing is known
    known = gymnasium.spec(name)
    gymnasium.register(f"Unknown{name}", known.entry_point, max_episode_steps=known.max_episode_steps)
    SOLVED[f"Unknown{name}"], STEPS[f"Unknown{name}"] = SOLVED[name], steps


def measured(name: str, steps: int, seed: int) -> dict[str, float]:
    began = time.process_time()
    learned = ravi.learn(name, steps=steps, seed=seed, progress=False)
    policy = learned.policy()
    seconds = time.process_time() - began
    returns = [each.total for each in policy.play(episodes=EPISODES, seed=seed, deterministic=True)]
    own = evaluate(policy, learned.agent.model())  # in the MDP that it was planned in
    lost = own.gap / max(abs(own.optimum), 1e-12)
    cells = len(learned.agent.visits) - 1
    return {"mean": float(np.mean(returns)), "worst": min(returns), "seconds": seconds, "lost": lost, "cells": cells}


def rows_of(path: Path | None, seeds: int, only: str | None) -> dict[tuple[str, int, int], dict[str, float]]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    found = {tuple(key): row for key, row in map(json.loads, lines)}
    for name in SOLVED if only is None else [only]:
        for steps in STEPS[name]:
            for key in ((name, steps, seed) for seed in range(seeds)):
                if key not in found:
                    found[key] = measured(*key)
                    print(*key, found[key], flush=True)
                    if path is not None:
                        with path.open("a") as file:
                            file.write(json.dumps([key, found[key]]) + "\n")
    return found


def page(rows: dict[tuple[str, int, int], dict[str, float]], before: str) -> str:
    lines = [
        *opening("Continuous observations with the default learner", ABOUT.format(EPISODES=EPISODES), "grids.py"),
        "| environment | solved at | cells | T | mean return | solved | loss | CPU s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, goal in SOLVED.items():
        for steps in sorted(STEPS[name]):
            of = [row for (n, T, _), row in sorted(rows.items()) if (n, T) == (name, steps)]
            if of:
                mean, lost, seconds = ([row[what] for row in of] for what in ("mean", "lost", "seconds"))
                lines.append(
                    f"| {name} | {goal} | {of[0]['cells']:,} | {steps:,} | {np.mean(mean):.1f} ({min(mean):.1f}) "
                    f"| {sum(value >= goal for value in mean)} of {len(of)} | {100 * max(0.0, *lost):.4f} % "
                    f"| {np.mean(seconds):.1f} |"
                )
            else:  # as it was measured before
                called = f"| {name} | {goal} | "
                lines += [row for row in before.splitlines() if row.startswith(called) and f"| {steps:,} |" in row]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", choices=SOLVED)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    before = given.write.read_text() if given.write is not None and given.write.is_file() else ""
    text = page(rows_of(given.rows, given.seeds, given.only), before)
    print(text)
    if given.write is not None:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
