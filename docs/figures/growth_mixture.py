"""The growth of RAVI-KL's regret on linear mixtures: a figure, and a table in docs/explanation/kl.md.

python docs/figures/growth_mixture.py    runs, fits, draws and writes

One of d and T moves at a time: on ensembles, each seed on one of its own, and on forks, where the weight of the best
simulator is such that it is ahead by what T plays hardly tell: at every size the one of several multiples of
sqrt(d / T) at which the learner's regret is largest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
from growth import logarithmic

import ravi
from ravi import mdps
from ravi.display.style import DOUBLE, Drawn, legend_below, line, looks, panels, styled
from ravi.statistics import scaling
from ravi.theory import kl

HERE = Path(__file__).parent
PAGE, FIGURE = HERE.parent / "explanation" / "kl.md", HERE / "kl-growth-mixture"
BEGIN, END = "<!-- growth of mixtures -->\n", "<!-- end of growth -->"
SEEDS, GAMMA = 12, 0.95
LEARNERS = {
    "ravi-kl/mixture": "ravi-kl/mixture",
    "posterior": "ravi-kl/mixture,candidate=posterior",
    "psrl/mixture": "psrl/mixture",
}
BASE = {"d": 4, "T": 10_000}
GRIDS = {"d": (2, 4, 8, 16), "T": (2_500, 10_000, 40_000)}
AHEAD = (1.0, 3.0)  # multiples of sqrt(d / T)


def ensemble(learner: str, d: int, T: int) -> np.ndarray:
    """Regrets (seeds,)."""
    worlds = [mdps.garnets(d, 20, 4, 2, seed=seed, discount=GAMMA) for seed in range(SEEDS)]
    return np.concatenate([ravi.run(learner, world, T, [seed]).regret for seed, world in enumerate(worlds)])


def fork(learner: str, d: int, T: int) -> np.ndarray:
    """Regrets (seeds,), with best actions that take turns."""

    def at(multiple: float) -> np.ndarray:
        ahead = min(multiple * sqrt(d / T) / 0.8, 1.0)  # of p, .8 times as much
        worlds = [mdps.fork(d, GAMMA, weight=1 / d + (1 - 1 / d) * ahead, best=(seed + 1) % d) for seed in range(SEEDS)]
        return np.concatenate([ravi.run(learner, world, T, [seed]).regret for seed, world in enumerate(worlds)])

    return max((at(multiple) for multiple in AHEAD), key=lambda regrets: float(regrets.mean()))


Kind = Callable[[str, int, int], np.ndarray]
Made = dict[str, dict[str, list[np.ndarray]]]  # quantity -> learner -> regrets at each size
KINDS: dict[str, Kind] = {"ensemble": ensemble, "fork": fork}


def measured(kind: Kind) -> Made:
    made: Made = {}
    for name, grid in GRIDS.items():
        sizes = [BASE | {name: value} for value in grid]
        made[name] = {label: [kind(id, **size) for size in sizes] for label, id in LEARNERS.items()}
        means = {label: [round(float(x.mean()), 2) for x in each] for label, each in made[name].items()}
        print(kind.__name__, name, means, flush=True)
    return made


def bounds(name: str) -> list[np.ndarray]:
    """Theorem 4 at each size: of X = 20, A = 4, slack."""
    sizes = [BASE | {name: value} for value in GRIDS[name]]
    return [np.array([kl.mixture(1 / (1 - GAMMA), s["d"], 20, 4, s["T"], slack=0.3).total] * 2) for s in sizes]


def table(found: dict[str, Made]) -> str:
    head = f"| | moves | {' | '.join(LEARNERS)} | Theorem 4 at these sizes | its order |"
    lines = [head, "|---|---|" + "--:|" * (len(LEARNERS) + 2)]
    for kind, made in found.items():
        for name, grid in GRIDS.items():
            fits = [scaling(grid, made[name][label]) for label in LEARNERS]
            cells = [f"{fit.exponent:.2f} \\[{fit.low:.2f}, {fit.high:.2f}\\]" for fit in fits]
            bound = np.polyfit(np.log(grid), np.log([x.mean() for x in bounds(name)]), 1)[0]
            where = f"{name} = {', '.join(f'{value:,}' for value in grid)}"
            lines.append(f"| {kind} | {where} | {' | '.join(cells)} | {bound:.2f} | {1 if name == 'd' else 0.5} |")
    return "\n".join(lines)


def figure(found: dict[str, Made]) -> Drawn:
    styles, numbers = looks(LEARNERS), {}
    with styled():
        drawn, axes = panels(1, 4, width=DOUBLE, height=2.1)
        places = iter(axes[0])
        for kind, made in found.items():
            for name, grid in GRIDS.items():
                place = next(places)
                for label in LEARNERS:
                    means = np.array([float(x.mean()) for x in made[name][label]])
                    numbers[f"{kind} {name} {label}"] = means
                    line(place, grid, means, label, styles[label])
                logarithmic(place, grid, f"{name}, {kind}")
        axes[0][0].set_ylabel("regret")
        legend_below(drawn, axes[0][0])
    return Drawn(drawn, numbers)


def main() -> None:
    found = {name: measured(kind) for name, kind in KINDS.items()}
    figure(found).save(FIGURE, ("png",))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
