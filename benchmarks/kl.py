"""The cost of RAVI-KL: a plan, the parts of a run that are plans, and slack against greedy, beside PSRL.

python benchmarks/kl.py [--quick] [--write benchmarks/kl.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from timing import least, opening  # first: it keeps BLAS to one thread

# isort: split
from ravi import ids
from ravi.mdps import garnet, riverswim
from ravi.runtime.api import run

ABOUT = """
How much time does RAVI-KL take, and how much more than its greedy form and PSRL? For those who choose a learner by its
time. All learners are told the supports. The time per plan is that of a run of many seeds minus that of the same steps
by `uniform`, divided by the number of plans, so plans start from the previous solution as in a real run.

Times are CPU times of one core (BLAS on one thread), with functions compiled beforehand, and the least of several
repeats.
"""
LEARNERS = ("ravi-kl,plan=greedy", "ravi-kl", "ravi-kl,candidate=posterior", "psrl,support=on")


def measured(name, mdp, steps, seeds, repeats):
    """CPU seconds of a run without measures, and how many epochs it had, all seeds together."""
    learner = ids.learner(name, mdp, steps)
    made = run(learner, mdp, steps, seeds)
    return least(lambda: run(learner, mdp, steps, seeds, measured=False), repeats), sum(map(len, made.T_k))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    repeats, seeds = (1, 4) if given.quick else (2, 4)
    rows = [
        *opening("What RAVI-KL costs", ABOUT, "kl.py"),
        "| MDP | T | learner | plans per seed | us per plan | relative to greedy | us per step in all |",
        "|---|---|---|---|---|---|---|",
    ]
    for mdp, steps in (
        (riverswim(6, 0.95), 10**6),
        (garnet(20, 3, 4, 0, 0.9), 10**5),
        (garnet(100, 4, 5, 0, 0.9), 10**5),
        (garnet(100, 4, 5, 0, 0.99), 10**5),
    ):
        steps = steps // 10 if given.quick else steps
        plays, _ = measured("uniform", mdp, steps, seeds, repeats)
        greedy = None
        for name in LEARNERS:
            total, plans = measured(name, mdp, steps, seeds, repeats)
            one = (total - plays) / plans * 1e6
            greedy = greedy or one
            rows.append(
                f"| {mdp.name}, gamma {mdp.discount:g} | {steps:,} | `{name}` | {plans / seeds:,.0f} | **{one:.1f}** "
                f"| {one / greedy:.2f} | {total / (steps * seeds) * 1e6:.2f} |"
            )
            print(rows[-1], flush=True)
    if given.write:
        given.write.write_text("\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
