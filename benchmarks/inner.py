"""The cost of M inner steps: the plan of RAVI-UCB+ against M plans of RAVI-UCB, and against one matrix product each.

python benchmarks/inner.py [--quick] [--write benchmarks/inner.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from timing import least, opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

from ravi import ids
from ravi.learners.ravi_ucb.plus import generic
from ravi.mdps import garnet, garnets, riverswim
from ravi.runtime import tree
from ravi.runtime.api import run

M = 20


ABOUT = """
How much time do the M backups per epoch of RAVI-UCB+ take? For those who choose `inner`. On counts, a backup of
RAVI-UCB+ is compared with a plan of RAVI-UCB, which makes one; on regressions, with one matrix product.

Times are CPU times of one core (BLAS on one thread), with functions compiled beforehand, and the least of several
repeats. A plan is timed on copies of the state at the end of a run of 2,000 steps. RAVI-UCB has beta = 1 and eta =
0.05, with which its policy changes in most states at every epoch; a row of Q that is at H would cost less.
"""
NOTES = """\
(a) One compiled loop makes all M backups of a seed. The quantities that depend only on the data (the bonus of each
pair, in units of the span of V) are computed once per epoch, and no array of all seeds is made in between. "Part by
part" is the form with which it is compared in tests, bit for bit. With few seeds and few states, the plan of RAVI-UCB
consists mostly of function calls. (b) A backup is one product phi R, one of phi with theta_hat, and the sparse sums
that make phi, for eight seeds at a time; at d = 10 these and the arrays of the parts take most of the time.
"""


def per_plan(learner, mdp, seeds, repeats, steps=2000):
    """Microseconds of a plan, all seeds together."""
    state = run(learner, mdp, steps, seeds, measured=False).state
    count = max(3, min(100, 20_000 // (seeds * mdp.states)))
    best = np.inf
    for _ in range(repeats):
        states = [tree.copy(state) for _ in range(count)]
        best = min(best, least(lambda states=states: [learner.plan(s) for s in states], 1))
    return best * 1e6 / count


def on_counts(rows, repeats):
    rows.append(f"### (a) Counts: us per seed and backup, M = {M}\n")
    rows.append("| MDP | seeds | RAVI-UCB | RAVI-UCB+ | ratio | the same, part by part | ratio |")
    rows.append("|---|---|---|---|---|---|---|")
    for mdp in (riverswim(6, 0.9), garnet(100, 4, 4, 0, 0.99), garnet(1000, 4, 5, 0, 0.99)):
        plain, plus = (
            ids.learner("ravi-ucb,beta=1,eta=0.05", mdp, 10**5),
            ids.learner(f"ravi-ucb+,inner={M}", mdp, 10**5),
        )
        parts = generic(mdp.problem, plus.parts.estimator, plus.parts.bonus, plus.parts.eta, inner=M)
        for seeds in (1, 4, 64):
            one = per_plan(plain, mdp, seeds, repeats) / seeds
            fused, apart = (per_plan(learner, mdp, seeds, repeats) / (seeds * M) for learner in (plus, parts))
            rows.append(
                f"| {mdp.name}, gamma {mdp.discount:g} | {seeds} | {one:.2f} | {fused:.2f} | **{fused / one:.2f}** "
                f"| {apart:.2f} | {apart / one:.2f} |"
            )
            print(rows[-1], flush=True)
    rows.append("")


def on_regressions(rows, repeats):
    rows.append("### (b) Regressions: X = 100, A = 4, 64 seeds, us per seed and backup\n")
    rows.append("| d | one product phi R | RAVI-UCB | RAVI-UCB+ | over the product |")
    rows.append("|---|---|---|---|---|")
    for d in (10, 72):
        mdp, few = garnets(d, 100, 4, 4, 0, 0.95), 5
        plain = ids.learner("ravi-ucb/mixture,beta=1,eta=0.05", mdp, 1000)
        plus = ids.learner(f"ravi-ucb+/mixture,inner={few}", mdp, 1000)
        phi, root = np.random.default_rng(0).normal(size=(64, 400, d)), np.zeros((64, d, d))
        product = least(lambda phi=phi, root=root: phi @ root, 5 * repeats) * 1e6 / 64
        one = per_plan(plain, mdp, 64, repeats, 200) / 64
        several = per_plan(plus, mdp, 64, repeats, 200) / (64 * few)
        rows.append(f"| {d} | {product:.0f} | {one:.0f} | {several:.0f} | **{several / product:.2f}** |")
        print(rows[-1], flush=True)
    rows.append("")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    rows = opening("What M inner steps cost", ABOUT, "inner.py")
    repeats = 3 if given.quick else 9
    on_counts(rows, repeats)
    on_regressions(rows, repeats)
    rows.append(NOTES)
    if given.write:
        given.write.write_text("\n".join(rows))


if __name__ == "__main__":
    main()
