"""The figure of the front page: `python docs/figures/front.py` draws docs/front.png from a run of a few seconds."""

import re
from pathlib import Path

import ravi
from ravi.display.style import DOUBLE, written
from ravi.lab.report.curves import regret_curves, regret_of

MDP, STEPS, SEEDS = "riverswim/6,discount=0.9", 20_000, 32
LEARNERS = {
    "plays at random": "uniform",
    "RAVI-UCB+": "ravi-ucb+",
    "RAVI-KL": "ravi-kl,support=off",
    "PSRL": "psrl",
}  # none is tuned, none knows where actions may lead


def main() -> None:
    found = ravi.compare(LEARNERS, MDP, STEPS, SEEDS)
    curves = {name: regret_of(found.runs[name, MDP]) for name in found.learners}
    drawn = regret_curves(curves, named=True, width=0.6 * DOUBLE)
    axes = drawn.figure.axes[0]
    axes.set(xlabel="steps", ylabel="reward lost", title="")
    for label in axes.texts:  # whole numbers
        label.set_text(re.sub(r"[\d.]+$", lambda value: f"{float(value[0]):.0f}", label.get_text()))
    drawn.figure.set_size_inches(0.6 * DOUBLE, 0.36 * DOUBLE)
    written(drawn.figure, Path(__file__).parents[1] / "front.png")
    print(found)


if __name__ == "__main__":
    main()
