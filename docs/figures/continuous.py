"""Learning on continuous states: the figures and numbers of docs/guides/continuous.md (two minutes).

python docs/figures/continuous.py
"""

from __future__ import annotations

import os

for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(library, "1")  # before NumPy: threads for matrices this small cost more than they save

import re  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402

import ravi  # noqa: E402
from ravi.continuous import box, exact, grid, level, pendulum, planner_of, ravi_ucb, ravi_ucb_plus, reference  # noqa: E402
from ravi.display.style import DOUBLE, GREY, MAP, Drawn, legend_below, line, looks, panels, styled  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parent / "guides" / "continuous.md"
TABLE = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end -->)", re.DOTALL)
SEEDS = 4


class World(NamedTuple):
    mdp: Any
    nodes: int  # of the learner, on each axis
    scored: int  # of the grid of the scores, likewise
    every: int  # epochs that share a score
    fine: int  # of the reference
    tried: tuple[int, ...]  # whose error is measured
    steps: int
    inner: int  # M of RAVI-UCB+


WORLDS = (
    World(level(), 64, 128, 1, 4096, (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512), 2000, 10),
    World(pendulum(), 24, 32, 5, 80, (10, 12, 14, 16, 20, 24, 28, 32, 40, 48), 1200, 5),
)
BEST = "RAVI-UCB+, a tenth of beta, eta 0.3"
SMALL = {"scale": 0.1, "eta": 0.3}  # beta of the theory times 0.1; it is not tuned


def learners(world: World) -> dict[str, Any]:
    problem, on = world.mdp.problem, grid(world.mdp.problem, world.nodes)
    return {
        "RAVI-UCB": ravi_ucb(problem, on, world.steps),
        "RAVI-UCB+": ravi_ucb_plus(problem, on, world.steps, inner=world.inner),
        "RAVI-UCB, a tenth of beta, eta 0.3": ravi_ucb(problem, on, world.steps, **SMALL),
        "RAVI-UCB+, a tenth of beta, eta 0.3": ravi_ucb_plus(problem, on, world.steps, inner=world.inner, **SMALL),
    }


class Found(NamedTuple):
    run: ravi.Run
    planners: list[Any]  # as they are after the last step

    def gap(self, times: Any) -> Any:
        """The gap of the policy of time t   (n, times)."""
        pairs = zip(self.run.T_k, self.run.gap_k, strict=True)
        return np.array([gaps[np.searchsorted(starts, times, "right") - 1] for starts, gaps in pairs])


def ran(world: World, learner: ravi.Learner, scored: exact.Reference) -> Found:
    made = ravi.run(learner, box(world.mdp, scored=scored, every=world.every), world.steps, SEEDS)
    return Found(made, [planner_of(made, learner, row) for row in range(SEEDS)])


class Fine(NamedTuple):
    reference: exact.Reference
    best: exact.Optimum
    errors: list[tuple[int, float, float]]  # nodes on an axis, |V - V*|, |Z - 1|


def finest(world: World) -> Fine:
    mdp = world.mdp
    ref, coarse = reference(mdp, world.fine), reference(mdp, world.scored)
    best = exact.optimal(ref, exact.extend(coarse, exact.optimal(coarse).V, ref.grid.nodes).max(-1))
    some = slice(None, None, max(1, ref.grid.size // 1024))  # of the nodes, to compare at
    errors = []
    for m in world.tried:
        one = reference(mdp, m, tolerance=10)
        V = exact.extend(one, exact.optimal(one).V, ref.grid.nodes[some]).max(-1)
        errors.append((m, float(np.abs(V - best.V[some]).max()), one.normalisation))
    return Fine(ref, best, errors)


def convergence(found: dict[str, Fine]) -> Drawn:
    figure, axes = panels(1, len(found), width=DOUBLE, height=2.3)
    data = {}
    with styled():
        for ax, (name, fine) in zip(axes[0], found.items(), strict=True):
            m, off, normal = (np.array(part) for part in zip(*fine.errors, strict=True))
            styles = looks(["error of V*", "error of normalisation"])
            line(ax, m, off, "error of V*", styles["error of V*"])
            line(ax, m, normal, "error of normalisation", styles["error of normalisation"])
            ax.plot(m, off[-1] * (m[-1] / m) ** 2.0, color=GREY, linewidth=0.8, label="order 2", zorder=1)
            ax.set(xscale="log", yscale="log", xlabel="nodes on an axis", title=name, ylim=(1e-14, 3))
            ticks = [one for one in (8, 16, 32, 64, 128, 256, 512) if one <= m[-1]]
            ax.set_xticks(ticks, [str(one) for one in ticks])
            ax.minorticks_off()
            data[name] = (m, off, normal)
        legend_below(figure, axes)
    return Drawn(figure, data)


def curves(found: dict[str, dict[str, Found]]) -> Drawn:
    figure, axes = panels(1, len(found), width=DOUBLE, height=2.5, sharey=True)
    data = {}
    with styled():
        for ax, (name, runs) in zip(axes[0], found.items(), strict=True):
            for (label, one), style in zip(runs.items(), looks(runs).values(), strict=True):
                times = np.unique(np.geomspace(1, one.run.steps, 150).astype(int))
                low, median, high = np.quantile(100 * one.gap(times) / one.run.optimum, (0.25, 0.5, 0.75), axis=0)
                line(ax, times, median, label, style, low=low, high=high)
                data[f"{name}: {label}"] = (times, low, median, high)
            ax.set(xscale="log", yscale="log", xlabel="step t", title=name, ylim=(0.03, 120))
            ax.set_yticks([0.1, 1, 10, 100], ["0.1 %", "1 %", "10 %", "100 %"])
            ax.minorticks_off()
        axes[0, 0].set_ylabel("gap / optimum")
        legend_below(figure, axes, columns=2)
    return Drawn(figure, data)


def values(fine: dict[str, Fine], found: dict[str, dict[str, Found]], last: dict[str, Any]) -> Drawn:
    """V* and the V of the last policies of the first seed: lines in one dimension, maps in two."""
    figure, axes = panels(1, 3, width=DOUBLE, height=2.1)
    shown = ("RAVI-UCB+", BEST)
    data: dict[str, Any] = {}
    with styled():
        x = np.linspace(0.001, 0.999, 300)
        level_fine = fine["level"]
        V = exact.extend(level_fine.reference, level_fine.best.V, x[:, None]).max(-1)
        styles, ax = looks(["V*", "learned", "learned, a tenth of beta"]), axes[0, 0]
        line(ax, x, V, "V*", styles["V*"])
        for label, name in zip(("learned", "learned, a tenth of beta"), shown, strict=True):
            learned = found["level"][name].planners[0].at(x[:, None])[1]
            line(ax, x, learned, label, styles[label])
            data[label] = (x, learned)
        ax.set(xlabel="x", ylabel="V", title="level", ylim=(0, None))
        legend = ax.legend(loc="lower right", fontsize=6.5, labelspacing=0.2)
        legend.set_zorder(5)
        ref, best = fine["pendulum"].reference, fine["pendulum"].best
        learned = last["pendulum"][1]
        least, most = min(best.V.min(), learned.min()), max(best.V.max(), learned.max())
        for ax, V, title in ((axes[0, 1], best.V, "pendulum, V*"), (axes[0, 2], learned, "learned, a tenth of beta")):
            angle, speed = (np.unique(ref.grid.nodes[:, c]) for c in range(2))
            image = ax.pcolormesh(
                angle, speed, V.reshape(ref.grid.shape).T, cmap=MAP, vmin=least, vmax=most, rasterized=True
            )
            ax.set(xlabel="angle", title=title, xticks=[-3, 0, 3])
            data[title] = V
        axes[0, 1].set_ylabel("speed")
        figure.colorbar(image, ax=axes[0, 2])
    return Drawn(figure, data)


def order(errors: list[tuple[int, float, float]]) -> float:
    """The measured order, from the grids whose densities integrate to 1 within 1e-3."""
    m, off = zip(*[(m, off) for m, off, normal in errors if normal < 1e-3], strict=True)
    return float(-np.polyfit(np.log(m), np.log(off), 1)[0])


def tables(fine: dict[str, Fine], found: dict[str, dict[str, Found]], last: dict[str, Any]) -> str:
    lines = ["| MDP | nodes of the learner | densities integrate to 1 within | error of V* on them | measured order |"]
    lines += ["|---|---|---|---|---|"]
    for world in WORLDS:
        name = world.mdp.problem.name
        _, off, normal = next(one for one in fine[name].errors if one[0] == world.nodes)
        shape = " x ".join([str(world.nodes)] * world.mdp.problem.axes)
        lines.append(f"| {name} | {shape} | {normal:.1e} | {off:.1e} | {order(fine[name].errors):.1f} |")
    lines += [
        "",
        "The gap, in percent of the optimum, of the last scored policy of the first seed (RAVI-UCB+, a tenth of beta):",
        "",
    ]
    lines += ["| MDP | on the scoring grid | the last policy, on the reference grid |", "|---|---|---|"]
    for world in WORLDS:
        name = world.mdp.problem.name
        ref, best = fine[name].reference, fine[name].best
        there = 1 - exact.return_of(ref, last[name][0], best.V) / best.optimum
        here = found[name][BEST].run.gap[0] / found[name][BEST].run.optimum
        lines.append(f"| {name} | {100 * here:.3f} % | {100 * there:.3f} % |")
    lines += ["", f"Over {SEEDS} seeds; the regret of T steps, and the error eps of the quadrature for the last V:", ""]
    lines += ["| MDP | T | learner | regret, median | quartiles | gap of the last policy, median | eps, largest |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for world in WORLDS:
        problem = world.mdp.problem
        finer, at = grid(problem, 2 * world.nodes), grid(problem, 24 // problem.axes).nodes
        for label, one in found[problem.name].items():
            low, median, high = np.quantile(one.run.regret, (0.25, 0.5, 0.75))
            lost = np.median(one.run.gap) / one.run.optimum
            eps = max(planner.quadrature_error(finer, at) for planner in one.planners)
            lines.append(
                f"| {problem.name} | {world.steps:,} | {label} | {median:.0f} | {low:.0f} to {high:.0f} | "
                f"{100 * lost:.1f} % | {eps:.1e} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    fine, found = {}, {}
    for world in WORLDS:
        name = world.mdp.problem.name
        fine[name] = finest(world)
        scored = reference(world.mdp, world.scored)
        found[name] = {label: ran(world, one, scored) for label, one in learners(world).items()}
    last = {name: found[name][BEST].planners[0].at(fine[name].reference.grid.nodes) for name in fine}  # pi, V
    convergence(fine).save(HERE / "continuous-nodes", ["png"])
    curves(found).save(HERE / "continuous-gap", ["png"])
    values(fine, found, last).save(HERE / "continuous-values", ["png"])
    PAGE.write_text(TABLE.sub(lambda _: tables(fine, found, last), PAGE.read_text()))


if __name__ == "__main__":
    main()
