"""The cost of a large state space: X = 10^6 and T = 10^6 on one core, and the ordinary run where that can be had.

python benchmarks/large.py [--quick] [--write benchmarks/large.md]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from pathlib import Path

from timing import opening  # first: it keeps BLAS to one thread

# isort: split
from ravi.large import grid, of_mdp, snapshot
from ravi.mdps import garnet
from ravi.planning.solver import solve
from ravi.runtime import tree
from ravi.runtime.api import run

W = 1000


def measured(task):
    """What a task gives, its CPU seconds, and the MB that it had at its peak."""
    tracemalloc.start()
    began = time.process_time()
    made = task()
    seconds = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return made, seconds, peak


ABOUT = """
How much time and memory does RAVI-UCB take with a million states? For those whose state space does not fit into a
table. Time and memory depend on the states that were visited, not on X: (a) compares such a run with the ordinary run
of a table, (b) has X = 10^6 and T = 10^6 on one core.

Times are CPU seconds of one run of one seed, with functions compiled beforehand. Memory is the peak that the run
allocates, without the MDP. beta and eta are given, except in one row: with the beta of the theory, at this X, the
value of a pair is cut at H until it was played about 3 x 10^9 times.
"""


def large(rows, quick):
    rows.append("### (b) X = 1,000,000, A = 4, one seed, one core\n")
    rows.append(
        "| problem | constants | T | CPU s | us per step | epochs | encountered | visited | planned on | peak MB "
        "| stored MB | reward per step | return of the last policy |"
    )
    rows.append("|---" * 13 + "|")
    mdp = garnet(W * W, 4, 3, 0, 0.99)
    world = of_mdp(mdp)
    best = solve(mdp, tol=1e-6).optimum
    cases = [
        (grid(W, 0.9), "ravi-ucb,beta=3,eta=2"),
        (grid(W, 0.95), "ravi-ucb,beta=2,eta=0.1"),
        (grid(W, 0.99), "ravi-ucb,beta=100,eta=1"),
        (world, "ravi-ucb"),
        (world, "ravi-ucb,beta=150,eta=1"),
        (of_mdp(mdp, unvisited="closed"), "ravi-ucb,beta=1,eta=0.05"),
    ]
    for place, learner in cases:
        closed = place.unvisited == "closed"
        T = 50_000 if quick else 200_000 if closed else 1_000_000
        run(learner, place, 10, 1)
        made, seconds, peak = measured(lambda place=place, T=T, learner=learner: run(learner, place, T, 1))
        name = f"{place.name}, gamma {place.discount:g}"
        last = "" if place.mdp is None else f"{snapshot(made, place).return_of(tol=1e-6):.4f} of {best:.4f}"
        epochs, met, visited, unsettled = (made.results[part][0] for part in ("epochs", "met", "visited", "unsettled"))
        rows.append(
            f"| {name} | {learner.partition(',')[2] or 'theory'}{', closed' if closed else ''} "
            f"| {T:,} | **{seconds:.1f}** | {1e6 * seconds / T:.1f} | {epochs:,} | {met:,} "
            f"| {visited:,} | {unsettled:,} | {peak:.1f} | {tree.size(made.state.memory) / 1e6:.1f} "
            f"| {made.results['reward_total'][0] / T:.4f} | {last} |"
        )
        print(rows[-1], flush=True)
    rows.append("")


def against_tables(rows, quick):
    learner = "ravi-ucb,beta=150,eta=1"
    rows.append(
        f"### (a) The same run with a table and with visited states only: Garnet(X, 4, 3), gamma .99, {learner}\n"
    )
    rows.append("| X | T | table, CPU s | peak MB | visited only, CPU s | peak MB | time, ratio | memory, ratio |")
    rows.append("|---" * 8 + "|")
    for X in (1_000, 10_000, 100_000, 1_000_000):
        T = 5_000 if quick else 20_000
        mdp = garnet(X, 4, 3, 0, 0.99)
        world = of_mdp(mdp)
        run(learner, mdp, 10, 1, measured=False)
        run(learner, world, 10, 1)
        table, dense_s, dense_mb = measured(lambda mdp=mdp, T=T: run(learner, mdp, T, 1, measured=False))
        made, large_s, large_mb = measured(lambda world=world, T=T: run(learner, world, T, 1))
        assert (snapshot(made, world).table() == table.last_policy[0]).all()
        rows.append(
            f"| {X:,} | {T:,} | {dense_s:.2f} | {dense_mb:.1f} | {large_s:.2f} | {large_mb:.1f} "
            f"| **{dense_s / large_s:.1f}** | **{dense_mb / large_mb:.1f}** |"
        )
        print(rows[-1], flush=True)
    rows.append("\nBoth give the same last policy in every state, bit for bit, which is checked in the same run.\n")


def main():
    parser = argparse.ArgumentParser(description="RAVI-UCB in large state spaces: seconds and memory")
    parser.add_argument("--quick", action="store_true", help="fewer plays")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the tables there as well")
    arguments = parser.parse_args()
    rows = opening("What a large state space costs", ABOUT, "large.py")
    against_tables(rows, arguments.quick)
    large(rows, arguments.quick)
    if arguments.write:
        arguments.write.write_text("\n".join(rows).rstrip() + "\n")


if __name__ == "__main__":
    main()
