"""The cost of not knowing T: falling levels against phases of doubling length, for docs/explanation/kl.md.

python docs/figures/levels.py    runs, and writes the table
"""

from __future__ import annotations

import re
from pathlib import Path

import ravi
from ravi.core import MDP, Learner
from ravi.learners.ravi_kl import ravi_kl
from ravi.learners.ravi_ucb.doubling import LONGEST, doubling
from ravi.theory import doubling as phases

PAGE = Path(__file__).parent.parent / "explanation" / "kl.md"
STEPS, SEEDS, FIRST = 20_000, 16, 2
MDPS = ("riverswim/6,discount=0.95", "riverswim/6,discount=0.99", "garnet/20,3,4,discount=0.9", "ring")


def in_phases(mdp: MDP) -> Learner:
    """Algorithm 1 with sets whose phase i is the learner for 2^(i + 1) plays, on all data."""

    def build(i: int) -> Learner:
        end = min(phases.end(i, FIRST), LONGEST)
        return ravi_kl.tabular(mdp.problem, end, plan="mirror", delta=1 / phases.length(i, FIRST))

    return doubling("ravi-kl, mirror in phases", FIRST, build)


def table() -> str:
    lines = [
        "| | mirror, T known | mirror, phases | greedy, levels | slack, levels |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in MDPS:
        mdp = ravi.mdp(name)
        learners = ("ravi-kl,plan=mirror", in_phases(mdp), "ravi-kl,plan=greedy", "ravi-kl")
        regrets = [ravi.run(learner, mdp, STEPS, SEEDS).regret for learner in learners]
        cells = (f"{regret.mean():,.1f} ({regret.max():,.1f})" for regret in regrets)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    place = re.compile(r"(?<=<!-- levels -->\n).*?(?=<!-- end -->)", re.DOTALL)
    PAGE.write_text(place.sub(lambda _: table(), page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
