"""The worth of candidate simulators: the figure and the table of docs/guides/simulators.md (two minutes).

python docs/figures/simulators.py         runs every learner, draws, and writes the table
python docs/figures/simulators.py tune    finds the learners' constants again, on seeds of its own
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ravi
from ravi.display.style import DOUBLE, GREY, Drawn, legend_below, line, looks, panels, styled

HERE = Path(__file__).parent
PAGE = HERE.parent / "guides" / "simulators.md"
TABLE = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)
CLOSE = 0.05  # of the optimum
SEEN = 3 / 4  # of a run: who comes close later has not been observed to stay there
REPORTED, TUNED_ON = range(16), range(1000, 1008)  # seeds
SCALES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # tried in tuning, by all learners alike
ETAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # likewise, by those that have a step size


# A queue: 0 to 100 customers wait, 0 to 4 servers are open. In a period each open server serves three customers (one,
# when the system is in trouble), and of sixteen that might come each does with probability `load`. Promised is that at
# most 20 wait: that is worth 1, the servers cost up to 1/2, and from a long queue it may not be worth the way.
ROOM, SERVERS, CUSTOMERS, PROMISE = 100, 4, 16, 20


def queue(load: float, served: int, x: int, a: int) -> dict[int, float]:
    left, row = max(x - served * a, 0), dict.fromkeys(range(ROOM + 1), 0.0)
    for come in range(CUSTOMERS + 1):
        row[min(left + come, ROOM)] += comb(CUSTOMERS, come) * load**come * (1 - load) ** (CUSTOMERS - come)
    return row


def service(x: int, a: int) -> float:
    return ((x <= PROMISE) + (1 - a / SERVERS) / 2) / 1.5


def the_queue(weights: Any = (0.5, 0.35, 0.15)) -> ravi.MDP:
    calm, rush, trouble = partial(queue, 0.1, 3), partial(queue, 0.7, 3), partial(queue, 0.7, 1)
    return ravi.ensemble(
        [calm, rush, trouble],
        weights,
        rewards=service,
        discount=0.95,
        initial=np.full(ROOM + 1, 1 / (ROOM + 1)),
        states=ROOM + 1,
        actions=SERVERS + 1,
        name="queue, unknown load",
    )


# A slope: from any cell of a square to the corner (11, 11), over ice and gravel, past pits that lead back to (0, 0).
# Where the ground slips, a step goes to either side with probability 0.4 each.
SIDE = 12
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left: the sides of a are a - 1 and a + 1
MAP = (
    "....#...,,,,",
    "..,,...#,,..",
    "#.,,,.....#.",
    "...,,..#..,,",
    ".#....,,..,,",
    "...#..,,#...",
    ",,.....,....",
    ",,,.#....#..",
    ".,,...#...,,",
    "#....,,..#,,",
    "..,#.,,...,,",
    "..,,...#....",
)  # . gravel   , ice   # pit


def walk(slips: str, x: int, a: int) -> dict[int, float]:
    row: dict[int, float] = {}
    slip = 0.8 if MAP[x // SIDE][x % SIDE] in slips else 0.0
    for turn, p in ((0, 1 - slip), (-1, slip / 2), (1, slip / 2)):
        i, j = (min(max(at + by, 0), SIDE - 1) for at, by in zip(divmod(x, SIDE), MOVES[(a + turn) % 4], strict=True))
        y = 0 if MAP[i][j] == "#" else i * SIDE + j
        row[y] = row.get(y, 0.0) + p
    return row


def the_slope(weights: Any = (0.3, 0.55, 0.15)) -> ravi.MDP:
    firm, icy, loose = partial(walk, ""), partial(walk, ","), partial(walk, ".")
    return ravi.ensemble(
        [firm, icy, loose],
        weights,
        rewards=lambda x, a: float(x == SIDE * SIDE - 1),
        discount=0.95,
        initial=np.full(SIDE * SIDE, 1 / SIDE**2),
        states=SIDE * SIDE,
        actions=4,
        name="slope, unknown slip",
    )


class Player(NamedTuple):
    learner: str  # its id
    steps: int


class World(NamedTuple):
    build: Callable[..., ravi.MDP]  # by its weights; without, the truth
    simulators: tuple[str, ...]
    players: dict[str, Player]


WORLDS = (
    World(
        the_queue,
        ("calm", "rush", "trouble"),
        {
            "RAVI-UCB, simulators": Player("ravi-ucb/mixture,scale=0.01,eta=1", 20_000),
            "RAVI-UCB, tabular": Player("ravi-ucb,scale=0.0001,eta=0.003", 300_000),
            "MBIE-EB, tabular": Player("mbie-eb,scale=0.01,tolerance=0.01", 200_000),
        },
    ),
    World(
        the_slope,
        ("firm", "icy", "loose"),
        {
            "RAVI-UCB, simulators": Player("ravi-ucb/mixture,scale=0.01,eta=1", 20_000),
            "RAVI-UCB, tabular": Player("ravi-ucb,scale=1e-05,eta=0.003", 200_000),
            "MBIE-EB, tabular": Player("mbie-eb,scale=0.01,tolerance=0.01", 300_000),
        },
    ),
)


def settled(run: ravi.Run) -> np.ndarray:
    """The step from which on every policy is within 5 % of the optimum; inf where that is not seen   (n,)."""
    assert run.optimum is not None
    found = np.full(len(run.T_k), np.inf)
    for i, (starts, gaps) in enumerate(zip(run.T_k, run.gap_k, strict=True)):
        far = np.flatnonzero(gaps > CLOSE * run.optimum)
        begin = far[-1] + 1 if far.size else 0
        if begin < len(starts) and starts[begin] <= SEEN * run.steps:
            found[i] = starts[begin]
    return found


def quartiles(values: np.ndarray) -> np.ndarray:
    """Of values that may be infinite: three of them, not means of two."""
    return np.quantile(values, (0.25, 0.5, 0.75), axis=0, method="higher")


def tune() -> None:
    for world in WORLDS:
        mdp = world.build()
        for player in world.players.values():
            name, *_, last = player.learner.split(",")
            more = [f",eta={eta:g}" for eta in ETAS] if name.startswith("ravi") else [f",{last}"]
            for scale, options in product(SCALES, more):
                run = ravi.run(f"{name},scale={scale:g}{options}", mdp, player.steps, TUNED_ON)
                found, gap = quartiles(settled(run))[1], np.median(run.gap) / run.optimum
                print(f"{mdp.name}: {name},scale={scale:g}{options}: {found:g} steps; {gap:.3f} in the end", flush=True)


def relative_gaps(run: ravi.Run, times: np.ndarray) -> np.ndarray:
    """The exact gap of the policy of time t, in parts of the optimum   (n, times)."""
    rows = zip(run.T_k, run.gap_k, strict=True)
    return np.array([gaps[np.searchsorted(starts, times, "right") - 1] for starts, gaps in rows]) / run.optimum


def drawn(found: dict[str, dict[str, ravi.Run]]) -> Drawn:
    figure, axes = panels(1, len(found), width=DOUBLE, height=2.5, sharey=True)
    styles = looks(next(iter(found.values())))
    data = {}
    with styled():
        for ax, (world, runs) in zip(axes[0], found.items(), strict=True):
            ax.axhline(100 * CLOSE, color=GREY, linewidth=0.8, zorder=1)
            for label, run in runs.items():
                times = np.unique(np.geomspace(10, run.steps, 200).astype(np.int64))
                low, median, high = 100 * quartiles(relative_gaps(run, times))
                line(ax, times, median, label, styles[label], low=low, high=high)
                data[f"{world}: {label}"] = (times, low, median, high)
            ax.set(xscale="log", yscale="log", xlim=(10, None), ylim=(0.3, 120), xlabel="step t", title=world)
            ax.set_yticks([1, 5, 10, 100], ["1 %", "5 %", "10 %", "100 %"])
            ax.minorticks_off()
        axes[0, 0].set_ylabel("gap / optimum")
        legend_below(figure, axes)
    return Drawn(figure, data)


def losses(world: World) -> str:
    """A row of the table of what the simulators' own best policies lose, in Markdown."""
    truth, d = world.build(), len(world.simulators)
    optimum = ravi.solve(truth).optimum
    lost = [
        1 - ravi.return_of(truth, ravi.solve(world.build(one)).policy) / optimum for one in (*range(d), [1 / d] * d)
    ]
    words = " · ".join(f"{name} {100 * loss:.0f} %" for name, loss in zip(world.simulators, lost, strict=False))
    return f"| {truth.name} | {truth.states} | {truth.actions} | {words} | {100 * lost[-1]:.0f} % |"


def steps_needed(world: World, runs: dict[str, ravi.Run]) -> list[str]:
    """The rows of the table of steps, in Markdown."""
    rows, fewest = [], quartiles(settled(next(iter(runs.values()))))[1]
    for label, run in runs.items():
        found = quartiles(settled(run))
        low, median, high = (f"{p:,.0f}" if np.isfinite(p) else f"> {SEEN * run.steps:,.0f}" for p in found)
        times = f"{found[1] / fewest:.0f}" if np.isfinite(found[1]) else f"> {SEEN * run.steps / fewest:.0f}"
        id = world.players[label].learner
        rows.append(f"| {world.build().name} | {label} | `{id}` | {median} | {low} to {high} | {times} |")
    return rows


def tables(found: dict[str, dict[str, ravi.Run]]) -> str:
    lines = ["| MDP | X | A | lost by the best policy of | of their even mixture |", "|---|---|---|---|---|"]
    lines += [losses(world) for world in WORLDS]
    lines += ["", "Steps until the policy is, and stays, within 5 % of the optimum:", ""]
    lines += ["| MDP | learner | id | median | quartiles | times the first |", "|---|---|---|---|---|---|"]
    lines += [row for world in WORLDS for row in steps_needed(world, found[world.build().name])]
    return "\n".join(lines) + "\n"


def main() -> None:
    found = {}
    for world in WORLDS:
        mdp = world.build()
        players = world.players.items()
        found[mdp.name] = {label: ravi.run(one.learner, mdp, one.steps, REPORTED) for label, one in players}
    drawn(found).save(HERE / "simulators", ["png"])
    PAGE.write_text(TABLE.sub(lambda _: tables(found), PAGE.read_text()))


if __name__ == "__main__":
    tune() if sys.argv[1:] == ["tune"] else main()
