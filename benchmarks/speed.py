"""The speed of a run: ratios to a hand-written compiled function for the whole run, taken in one run of this script.

    python benchmarks/speed.py [--quick] [--before CHECKOUT] [--write benchmarks/speed.md]

With --before, runs of many learners are timed alternately with those of another checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

from timing import least, opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import garnet, garnets, riverswim
from ravi.runtime.api import run
from ravi.runtime.walk import world_of
from yardstick import whole_run

ABOUT = """
For those who plan runs, or change the step loop. A run of 64 seeds is compared with `benchmarks/yardstick.py`, in which
the whole run of one seed is a single hand-written compiled function; the column "ratio" is the time of the library
relative to it. The other columns say what exact regret adds, what a single seed costs, what a linear mixture costs, and
how the time grows with X.

Times are CPU times of one core (BLAS on one thread), with functions compiled beforehand, and the least of several
repeats, because these machines are shared. "theory" are the paper's constants, with which most rows of Q stay at H;
"moving" is beta = 1 and eta = 0.05, with which the policy changes in most states at every epoch. Runs have one
thread.
"""
SETTINGS = {"theory": {}, "moving": {"beta": 1.0, "eta": 0.05}}


def learner_of(mdp, T, setting, make=ravi_ucb.tabular):
    return make(mdp.problem, T, **SETTINGS[setting])


def tabular(rows, repeats, quick):
    rows.append("### (a, b) Tabular RAVI-UCB, us per seed and epoch\n")
    rows.append(
        "| MDP | setting | hand-written | 64 seeds | ratio | with exact regret | regret adds | 1 seed | with regret |"
    )
    rows.append("|---|---|---|---|---|---|---|---|---|")
    cases = [(riverswim(6, 0.9), 100_000), (garnet(100, 4, 4, 0, 0.99), 100_000), (garnet(1000, 4, 5, 0, 0.99), 50_000)]
    for mdp, T in cases:
        T = T // 5 if quick else T
        world = world_of(mdp)
        for setting in SETTINGS:
            learner = learner_of(mdp, T, setting)
            constants = (learner.settings["eta"], learner.settings["beta"])
            arrays = (world.successors, world.cumulative, world.initial, mdp.rewards, mdp.discount)
            whole_run(*arrays, 10, *constants, 0)
            run(learner, mdp, 10, 2)
            counted = [0]

            def yard(arrays=arrays, T=T, constants=constants, counted=counted):
                counted[0] = sum(whole_run(*arrays, T, *constants, seed)[0] for seed in range(16))

            yardstick = least(yard, repeats)
            yardstick *= 1e6 / counted[0]
            K = 1 + (T - 1) * (1 - mdp.discount)  # expected number of epochs
            ours = {}
            for measured, seeds in product((False, True), (64, 1)):
                seconds = least(
                    lambda measured=measured, seeds=seeds, T=T, learner=learner, mdp=mdp: run(
                        learner, mdp, T, seeds, measured=measured, keep_epochs=False, threads=1
                    ),
                    repeats if seeds > 1 else 3 * repeats,
                )
                ours[seeds, measured] = seconds * 1e6 / (seeds * K)
            rows.append(
                f"| {mdp.name}, gamma {mdp.discount:g} | {setting} | {yardstick:.2f} | {ours[64, False]:.2f} "
                f"| **{ours[64, False] / yardstick:.2f}** | {ours[64, True]:.2f} "
                f"| **{ours[64, True] / ours[64, False] - 1:.0%}** | {ours[1, False]:.1f} | {ours[1, True]:.1f} |"
            )
            print(rows[-1], flush=True)
    rows.append("")


def mixture(rows, repeats, quick):
    rows.append("### (c) Linear mixture RAVI-UCB, X = 100, A = 4, gamma .95, 64 seeds\n")
    rows.append("| d | setting | us per seed and epoch | one product phi R | steps per second | with exact regret |")
    rows.append("|---|---|---|---|---|---|")
    for d in (10, 72):
        mdp, T = garnets(d, 100, 4, 4, 0, 0.95), 1000 if quick or d > 20 else 4000
        for setting in SETTINGS:
            learner = learner_of(mdp, T, setting, ravi_ucb.linear_mixture)
            run(learner, mdp, 10, 2)
            phi, root = np.random.default_rng(0).normal(size=(64, 400, d)), np.zeros((64, d, d))
            multiplied = least(lambda phi=phi, root=root: phi @ root, 3 * repeats) * 1e6 / 64
            plain = least(lambda T=T, learner=learner, mdp=mdp: run(learner, mdp, T, 64, measured=False), repeats)
            scored = least(lambda T=T, learner=learner, mdp=mdp: run(learner, mdp, T, 64, keep_epochs=False), repeats)
            K = 1 + (T - 1) * (1 - mdp.discount)
            rows.append(
                f"| {d} | {setting} | {plain * 1e6 / (64 * K):.0f} | {multiplied:.0f} "
                f"| {64 * T / plain:,.0f} | {64 * T / scored:,.0f} |"
            )
            print(rows[-1], flush=True)
    rows.append("")


MEMORY = """
import re, sys
from pathlib import Path
from ravi.runtime.api import run
from ravi.mdps import garnet

def peak():  # MB since the last reset (Linux)
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

run("ravi-ucb", garnet(10, 4, 5), 10, 1)
Path("/proc/self/clear_refs").write_text("5")
before = peak()
mdp = garnet(int(sys.argv[1]), 4, 5, 0, 0.99)
Path("/proc/self/clear_refs").write_text("5")
built = peak()
run("ravi-ucb", mdp, 300, 1)
print(built - before, peak() - before)
"""


def growth(rows, repeats, quick):
    rows.append("### (d) Growth with X: Garnet(X, 4, 5), gamma .99, one seed, moving\n")
    rows.append("| X | us per epoch | ns per epoch and pair | with exact regret | MDP, MB | peak of a run, MB |")
    rows.append("|---|---|---|---|---|---|")
    for X in (100, 1000, 10_000, 100_000):
        mdp, T = garnet(X, 4, 5, 0, 0.99), max(2000, 2_000_000 // X)
        learner = learner_of(mdp, T, "moving")
        K = 1 + (T - 1) * 0.01
        plain, scored = (
            least(lambda m=m, T=T, to=learner, mdp=mdp: run(to, mdp, T, 1, measured=m, keep_epochs=False), repeats)
            for m in (False, True)
        )
        used = subprocess.run([sys.executable, "-c", MEMORY, str(X)], capture_output=True, text=True, check=True)
        built, peak = (float(word) for word in used.stdout.split())
        rows.append(
            f"| {X:,} | {plain * 1e6 / K:,.0f} | {plain * 1e9 / K / (4 * X):.1f} | {scored * 1e6 / K:,.0f} "
            f"| {built:,.1f} | {peak:,.1f} |"
        )
        print(rows[-1], flush=True)
    rows.append("")


CASES = """
ravi-ucb,scale=0.01  riverswim/6  200000  1
ravi-ucb,scale=0.01  riverswim/6  20000  32
ravi-ucb,scale=0.01  garnet/100,4,4  100000  1
ravi-ucb,scale=0.01  garnet/100,4,4  10000  32
ravi-ucb,scale=0.01  garnet/1000,4,5  20000  4
ravi-ucb+,scale=0.01  riverswim/6  20000  16
ravi-ucb/mixture,scale=0.01  riverswim/mixture/20  20000  1
ravi-ucb/mixture,scale=0.01  riverswim/mixture/20  5000  16
ravi-ucb/unknown-rewards,scale=0.01  riverswim/6  20000  16
ucrl2,scale=0.1  riverswim/6  20000  16
ucrl2,scale=0.1  garnet/100,4,4  20000  4
kl-ucrl,scale=0.1  riverswim/6  20000  16
ucbvi-gamma,scale=0.1  riverswim/6  50000  16
r-max,scale=0.1  riverswim/6  50000  16
mbie-eb,scale=0.1  riverswim/6  50000  16
certainty-equivalent  riverswim/6  50000  16
certainty-equivalent  garnet/100,4,4  50000  1
q-learning  riverswim/6  200000  1
q-learning  garnet/100,4,4  50000  16
ucb-q,scale=0.1  riverswim/6  50000  16
uclk  riverswim/mixture/6  50000  4
uniform  garnet/100,4,4  100000  16
"""  # learner, MDP, steps, seeds
WORKER = """
import inspect, json, sys, time
import ravi

one_thread = {"threads": 1} if "threads" in inspect.signature(ravi.run).parameters else {}
for line in sys.stdin:
    learner, mdp, steps, seeds = line.split()
    began = time.process_time()
    run = ravi.run(learner, mdp, int(steps), int(seeds), progress=False, **one_thread)
    print(json.dumps([time.process_time() - began, run.regret.tolist()]), flush=True)
"""


def against(before, rounds):
    """Rows that set another checkout's CPU times beside these: runs in turns, the least of each."""
    rows = [
        f"### Against an earlier version, runs in turns, the least of {rounds}\n",
        "| learner | MDP | steps | seeds | before, ms | after, ms | before / after | regret |",
        "|---|---|---|---|---|---|---|---|",
    ]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env={**os.environ, "PYTHONPATH": str(checkout / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout in (before, Path(__file__).parents[1])
    ]
    ratios = []
    for case in CASES.split("\n")[1:-1]:
        found = []
        for _ in range(rounds + 1):  # the first compiles
            for worker in workers:
                print(case, file=worker.stdin, flush=True)
                found.append(json.loads(worker.stdout.readline()))
        (old, regret), (new, same) = (min(found[which + 2 :: 2]) for which in (0, 1))
        alike = "same bits" if regret == same else f"{np.mean(regret):.4g}, {np.mean(same):.4g}"
        ratios += [old / new] if regret == same else []
        rows.append(
            f"| {' | '.join(case.split())} | {old * 1e3:.1f} | {new * 1e3:.1f} | **{old / new:.2f}** | {alike} |"
        )
        print(rows[-1], flush=True)
    rows.append(f"\nRuns of equal regret: {np.exp(np.mean(np.log(ratios))):.2f} in the geometric mean.\n")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter runs, fewer repeats")
    parser.add_argument("--write", type=Path, help="write the tables to this file")
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="how often both are run in turns (default: 5)")
    wanted = parser.parse_args()
    repeats = 1 if wanted.quick else 3
    rows: list[str] = []
    for part in (tabular, mixture, growth):
        part(rows, repeats, wanted.quick)
    if wanted.before is not None:
        rows += against(wanted.before, wanted.rounds)
    if wanted.write is not None:
        wanted.write.write_text("\n".join([*opening("How fast is a run of RAVI-UCB?", ABOUT, "speed.py"), *rows]))


if __name__ == "__main__":
    main()
