"""What does it look like at work? RAVI-UCB on RiverSwim: the paper's constants, tuned ones, and both yardsticks."""

from __future__ import annotations

from pathlib import Path

from ravi import ids
from ravi.checks import InputError
from ravi.engine import Progress, run

MDP = "riverswim/mixture/6"
RUNS = {
    "uniform policy": "uniform",
    "RAVI-UCB, paper's constants": "ravi-ucb",
    "RAVI-UCB mixture, paper's constants": "ravi-ucb/mixture",
    "RAVI-UCB, tuned": "ravi-ucb,scale=0.01,step_scale=30",
    "RAVI-UCB mixture, tuned": "ravi-ucb/mixture,scale=0.03,step_scale=30",
    "optimum": "optimum",
}
YARDSTICKS = ("uniform policy", "optimum")


def demo(folder: Path, steps: int, seeds: int, progress: Progress | None = None) -> str:
    """Run everything, draw `regret.png` into the folder, and return the table."""
    mdp = ids.mdp(MDP)
    made = {}
    for index, (label, learner) in enumerate(RUNS.items()):

        def tell(done: int, total: int, before: int = index) -> None:
            if progress is not None:
                progress(before * total + done, len(RUNS) * total)

        run(learner, mdp, 1, 1)  # compiles, so that the speed is that of the run
        made[label] = run(learner, mdp, steps, seeds, progress=tell)
    first = next(iter(made.values()))
    lines = [
        f"{mdp.name}, gamma {mdp.discount:g}, {steps:,} steps, {seeds} seeds; optimum {first.optimum:.6f} a step",
        "",
        f"{'learner':36} {'regret':>12} {'last gap':>10} {'steps/s':>12}",
    ]
    for label, one in made.items():
        lines.append(
            f"{label:36} {round(one.regret.mean(), 1) + 0.0:12,.1f} {round(one.gap.mean(), 6) + 0.0:10.6f} "
            f"{one.steps_per_second:12,.0f}"
        )
    worst = max(one.regret_error.max() for one in made.values())
    lines += ["", f"Regret is computed, not sampled: every entry is exact to within {worst:.1e}, certified."]
    try:
        from ravi.report.figures import regret_figure

        folder.mkdir(parents=True, exist_ok=True)
        title = f"RiverSwim(6) as a linear mixture, γ = {mdp.discount:g}, {seeds} seeds"
        regret_figure(made, folder / "regret.png", title=title, yardsticks=YARDSTICKS)
        lines.append(f"Figure: {folder / 'regret.png'}")
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror}") from None
    except InputError as error:
        lines.append(f"No figure: {error}")
    return "\n".join(lines)
