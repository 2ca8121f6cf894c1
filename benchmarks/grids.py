"""The default of `ravi learn` on boxes: `python benchmarks/grids.py [--write benchmarks/grids.md]`.

--rows FILE keeps what was measured, as one line of JSON each, and a second call continues from there. Rows of the page
whose runs are not made again stay.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

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
observations. Those with a word behind it have other physics (`HELD_OUT` in the script). The value at which Gymnasium
calls an environment solved is for its own physics, and may be out of reach for others: the grid that is built in for
MountainCar earns -121 of the heavy one in 20,000 steps.
"""
UNKNOWN = {"CartPole-v1": (5_000,), "MountainCar-v0": (10_000, 5_000),
           "Acrobot-v1": (10_000,), "Pendulum-v1": (2_000,)}  # fmt: skip
HELD_OUT = {  # other physics, by which nothing was chosen
    "CartPole-v1": {
        "short": {"length": 0.25, "polemass_length": 0.025}, "long": {"length": 1.0, "polemass_length": 0.1},
        "light": {"gravity": 5.0}, "heavy": {"gravity": 20.0},
        "weak": {"force_mag": 5.0}, "strong": {"force_mag": 20.0},
    },
    "MountainCar-v0": {"light": {"gravity": 0.002}, "heavy": {"gravity": 0.003}},
    "Acrobot-v1": {"nips": {"book_or_nips": "nips"}, "long": {"LINK_LENGTH_2": 1.5, "LINK_COM_POS_2": 0.75}},
    "Pendulum-v1": {"light": {"g": 5.0}},
}  # fmt: skip


CHOSEN = """\
## How an unknown Box is learned: before and after
Before, exploration was as fine as the cells from the first step on and kept to the box of the warm-up; the last grid
was laid around the states that the model over cells visits, and the edge of a grid was a wall. Now exploration begins
coarse and leads out of the box (`ravi.live.local_linear`), and the last grid lies where the policy goes in simulation,
with an edge that is not trusted (`ravi.live.grid_choice`). That was decided on seeds 100 to 104 of the four
environments as they are. Of the other physics nothing was chosen, but an intermediate version had played seed 0 of
MountainCar, as it is, light and heavy. Then seeds 6 and 7 of Pendulum and 4 of MountainCar, as they are, and 1 of the
heavy MountainCar failed, and two things were changed: steps of the warm-up are remembered, and a grid must be better by
1 % of the horizon to be taken. Rows of Acrobot long, Acrobot nips, CartPole heavy, CartPole light, CartPole long,
CartPole short are, but for some seeds, of the version before these two changes. Mean returns of seeds 0 and 1, with as
many steps as above (5,000 of MountainCar):

| environment | before | after |
|---|--:|--:|
| UnknownCartPole-v1 | 210.3, 500.0 | 500.0, 500.0 |
| UnknownCartPole-short-v1 | 500.0, 498.5 | 500.0, 490.1 |
| UnknownCartPole-long-v1 | 215.7, 500.0 | 500.0, 500.0 |
| UnknownCartPole-light-v1 | 500.0, 428.7 | 500.0, 500.0 |
| UnknownCartPole-heavy-v1 | 500.0, 500.0 | 500.0, 500.0 |
| UnknownCartPole-weak-v1 | 145.2, 236.2 | 497.1, 500.0 |
| UnknownCartPole-strong-v1 | 326.5, 72.4 | 500.0, 500.0 |
| UnknownMountainCar-v0 | -103.5, -99.9 | -99.5, -97.9 |
| UnknownMountainCar-light-v0 | -90.0, -200.0 | -87.5, -86.3 |
| UnknownMountainCar-heavy-v0 | -200.0, -120.5 | -119.0, -122.0 |
| UnknownAcrobot-v1 | -100.7, -111.8 | -88.8, -97.0 |
| UnknownAcrobot-nips-v1 | -500.0, -159.2 | -104.0, -114.9 |
| UnknownAcrobot-long-v1 | -107.8, -123.5 | -115.8, -113.7 |
| UnknownPendulum-v1 | -152.8, -163.6 | -148.8, -146.7 |
| UnknownPendulum-light-v1 | -480.1, -272.8 | -104.5, -91.5 |"""


def unknown(name: str, variant: str, physics: dict[str, Any]) -> None:
    """Register an environment, with other physics, under a name of which nothing is known."""
    known = gymnasium.spec(name)
    stem, _, version = name.rpartition("-v")
    called = f"Unknown{stem}{variant and '-' + variant}-v{version}"

    def made(**options: Any) -> gymnasium.Env:
        env = gymnasium.make(name, max_episode_steps=-1, **options).unwrapped
        for attribute, value in physics.items():
            assert hasattr(env, attribute)
            setattr(env, attribute, value)
        return env

    gymnasium.register(called, made, max_episode_steps=known.max_episode_steps)
    SOLVED[called], STEPS[called] = SOLVED.get(name), UNKNOWN[name][-1:] if variant else UNKNOWN[name]


for base in UNKNOWN:
    for variant, physics in ({"": {}} | HELD_OUT[base]).items():
        unknown(base, variant, physics)


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


def rows_of(path: Path | None, seeds: int, only: list[str] | None) -> dict[tuple[str, int, int], dict[str, float]]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    found = {tuple(key): row for key, row in map(json.loads, lines)}
    for name in only or SOLVED:
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
        asked = "-" if goal is None else f"{goal}"
        for steps in sorted(STEPS[name]):
            of = [row for (n, T, _), row in sorted(rows.items()) if (n, T) == (name, steps)]
            if of:
                mean, lost, seconds = ([row[what] for row in of] for what in ("mean", "lost", "seconds"))
                solved = "-" if goal is None else f"{sum(value >= goal for value in mean)} of {len(of)}"
                lines.append(
                    f"| {name} | {asked} | {of[0]['cells']:,} | {steps:,} | {np.mean(mean):.1f} ({min(mean):.1f}) "
                    f"| {solved} | {100 * max(0.0, *lost):.4f} % "
                    f"| {np.mean(seconds):.1f} |"
                )
            else:  # as it was measured before
                called = f"| {name} | {asked} | "
                lines += [row for row in before.splitlines() if row.startswith(called) and f"| {steps:,} |" in row]
    return "\n".join([*lines, "", CHOSEN]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", choices=SOLVED, nargs="+")
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
