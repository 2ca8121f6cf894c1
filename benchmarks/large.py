"""What does a large world cost? X = 10^6 and T = 10^6 on one core, and the ordinary run where that can be had.

    python benchmarks/large.py [--quick] [--write benchmarks/large.md]

CPU seconds of one run of one seed, functions compiled beforehand; memory is the peak of what the run allocates, the
world not counted. beta and eta are given, but for one row: with the theory's beta, at this X, the value of a pair is
cut at H until it was played about 3 x 10^9 times.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from pathlib import Path

from timing import measured_by  # first: it keeps BLAS to one thread

# isort: split
from ravi.engine import run
from ravi.large import of_mdp, procedural, run_large
from ravi.mdps import garnet
from ravi.planning.solver import solve

W = 1000
START, GOAL = 500 * W + 500, 500 * W + 504


def grid(gamma):
    """A square of W x W cells by functions: four moves that slip aside with probability .2; a goal near the start."""

    def reward(x, a):
        return 1.0 if x == GOAL else 0.0

    def successor(x, a, u):
        move = (a + 1) % 4 if u < 0.1 else (a + 3) % 4 if u < 0.2 else a
        i, j = x // W, x % W
        if move == 0:
            i = max(i - 1, 0)
        elif move == 1:
            j = min(j + 1, W - 1)
        elif move == 2:
            i = min(i + 1, W - 1)
        else:
            j = max(j - 1, 0)
        return i * W + j

    def initial(u):
        return START

    return procedural(
        reward, successor, initial, states=W * W, actions=4, discount=gamma, name=f"grid {W} x {W}, gamma {gamma:g}"
    )


def measured(task):
    """What a task gives, its CPU seconds, and the MB that it had at its peak."""
    tracemalloc.start()
    began = time.process_time()
    made = task()
    seconds = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return made, seconds, peak


def large(rows, quick):
    rows.append("### (b) X = 1,000,000, A = 4, one seed, one core\n")
    rows.append(
        "| world | constants | T | CPU s | us a play | epochs | met | visited | planned on | peak MB | kept MB "
        "| earned a play | return of the last policy |"
    )
    rows.append("|---" * 13 + "|")
    mdp = garnet(W * W, 4, 3, 0, 0.99)
    world = of_mdp(mdp)
    best = solve(mdp, tol=1e-6).optimum
    cases = [
        (grid(0.9), "ravi-ucb,beta=3,eta=2", "iterated"),
        (grid(0.95), "ravi-ucb,beta=2,eta=0.1", "iterated"),
        (grid(0.99), "ravi-ucb,beta=100,eta=1", "iterated"),
        (world, "ravi-ucb", "iterated"),
        (world, "ravi-ucb,beta=150,eta=1", "iterated"),
        (world, "ravi-ucb,beta=1,eta=0.05", "closed"),
    ]
    for place, learner, unvisited in cases:
        T = 50_000 if quick else 200_000 if unvisited == "closed" else 1_000_000
        run_large(place, 10, learner=learner, unvisited=unvisited)
        made, seconds, peak = measured(
            lambda place=place, T=T, learner=learner, unvisited=unvisited: run_large(
                place, T, learner=learner, unvisited=unvisited
            )
        )
        name = place.name if place.mdp is None else f"{place.name}, gamma {place.discount:g}"
        scored = "" if place.mdp is None else f"{made.last.return_of(tol=1e-6):.4f} of {best:.4f}"
        rows.append(
            f"| {name} | {learner.partition(',')[2] or 'theory'}{', closed' if unvisited == 'closed' else ''} "
            f"| {T:,} | **{seconds:.1f}** | {1e6 * seconds / T:.1f} | {made.epochs:,} | {made.met:,} "
            f"| {made.visited:,} | {made.unsettled:,} | {peak:.1f} | {made.nbytes / 1e6:.1f} "
            f"| {made.earned / T:.4f} | {scored} |"
        )
        print(rows[-1], flush=True)
    rows.append("")


def against_tables(rows, quick):
    learner = "ravi-ucb,beta=150,eta=1"
    rows.append(f"### (a) The same run by a table and by what was met: Garnet(X, 4, 3), gamma .99, {learner}\n")
    rows.append("| X | T | table, CPU s | peak MB | met only, CPU s | peak MB | time, ratio | memory, ratio |")
    rows.append("|---" * 8 + "|")
    for X in (1_000, 10_000, 100_000, 1_000_000):
        T = 5_000 if quick else 20_000
        mdp = garnet(X, 4, 3, 0, 0.99)
        world = of_mdp(mdp)
        run(learner, mdp, 10, 1, measured=False)
        run_large(world, 10, learner=learner)
        table, dense_s, dense_mb = measured(lambda mdp=mdp, T=T: run(learner, mdp, T, 1, measured=False))
        made, large_s, large_mb = measured(lambda world=world, T=T: run_large(world, T, learner=learner))
        assert (made.last.table() == table.batch.state.policy[0]).all()
        rows.append(
            f"| {X:,} | {T:,} | {dense_s:.2f} | {dense_mb:.1f} | {large_s:.2f} | {large_mb:.1f} "
            f"| **{dense_s / large_s:.1f}** | **{dense_mb / large_mb:.1f}** |"
        )
        print(rows[-1], flush=True)
    rows.append("\nBoth give the same last policy, bit for bit, in every state: checked in the same run.\n")


def main():
    parser = argparse.ArgumentParser(description="RAVI-UCB in large worlds: seconds and memory")
    parser.add_argument("--quick", action="store_true", help="fewer plays")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the tables there as well")
    arguments = parser.parse_args()
    rows = [measured_by("large.py"), ""]
    against_tables(rows, arguments.quick)
    large(rows, arguments.quick)
    if arguments.write:
        arguments.write.write_text("\n".join(rows).rstrip() + "\n")


if __name__ == "__main__":
    main()
