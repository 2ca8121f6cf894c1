"""The command `ravi demo`: a small suite on RiverSwim, its table, its figure and its page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ravi.display.printable import room
from ravi.lab.experiments.driver import Status
from ravi.lab.experiments.results import Results
from ravi.lab.experiments.runner import run_suite
from ravi.runtime.result import source
from ravi.validation import InputError

MDP = "riverswim/mixture/6"
LEARNERS = {
    "RAVI-UCB": "ravi-ucb",
    "RAVI-UCB, mixture": "ravi-ucb/mixture",
    "UCRL2": "ucrl2",
    "PSRL": "psrl",
    "uniform policy": "uniform",
}
# Beyond the paper, with the constants of their proofs. Told the successors, RAVI-KL would have no regret here.
UNTUNED = {"RAVI-UCB+": "ravi-ucb+", "RAVI-KL": "ravi-kl,support=off"}
TUNED = ("ravi-ucb", "ravi-ucb/mixture", "ucrl2")


def suite(steps: int, seeds: int) -> dict[str, Any]:
    return {
        "name": "demo",
        "title": "RAVI-UCB on RiverSwim",
        "steps": steps,
        "seeds": seeds,
        "columns": ["theory", "tuned"],
        "tuning": {"scale": [1e-3, 1], "step_scale": [1, 100]},
        "sections": [
            {
                "name": "river",
                "remark": "A river of six states as a linear mixture: the tabular learners learn every pair of a state "
                "and an action on its own, the mixture form three numbers for all of them.",
                "mdps": [MDP],
                "learners": [{"id": id, "label": label} for label, id in LEARNERS.items()],
            },
            {
                "name": "beyond",
                "remark": "What RAVI-UCB becomes with everything that keeps its guarantee, and with sets of kernels in "
                "place of bonuses. Neither is tuned, and RAVI-KL is not told the successors.",
                "columns": ["theory"],
                "mdps": [MDP],
                "learners": [{"id": id, "label": label} for label, id in UNTUNED.items()],
            },
        ],
    }


def demo(folder: Path, steps: int, seeds: int, progress: Callable[[Status], None] | None = None) -> str:
    """Run the suite into `results-...` in the folder, draw `regret.png`, write `report.html`; return the table.

    The results' folder is named by the state of the source, so that a newer ravi runs the demo anew.
    """
    from ravi.lab.report.tables import table

    found = run_suite(suite(steps, seeds), folder / f"results-{source()[:8]}", progress=progress, adopt=True)
    worst = found.sql("SELECT max(regret_error) AS worst FROM all_runs").to_pylist()[0]["worst"]
    speed = found.sql("SELECT sum(steps) / sum(seconds) AS speed FROM all_runs").to_pylist()[0]["speed"]
    lines = [
        table(found).text(room()),
        "",
        f"Regret is computed, not sampled: every number is exact to within {worst:.1e}, certified. "
        f"{found.runs.num_rows:,} runs at {speed:,.0f} steps a second and core.",
    ]
    for what, make in (("Figure", _figure), ("Page", _page)):
        try:
            lines.append(f"{what}: {make(found, folder)}")
        except InputError as error:
            lines.append(f"No {what.lower()}: {error}")
    return "\n".join(lines)


def _figure(found: Results, folder: Path) -> Path:
    from ravi.display.style import DASHES, DOUBLE, looks
    from ravi.lab.report.curves import Curves, regret_curves

    curves, styles = {}, {}
    colours = looks(LEARNERS | UNTUNED)
    for label, id in (UNTUNED | LEARNERS).items():
        for column in ("theory", "tuned") if id in TUNED else ("theory",):
            times, _, values = found.curves(label=label, column=column)
            name = f"{label}, {column}" if id in TUNED else label
            curves[name] = Curves(times, values)
            styles[name] = colours[label]._replace(dash=DASHES[0 if column == "theory" else 1])  # tuned: dashed
    uniform = curves.pop("uniform policy")
    drawn = regret_curves(
        curves, bounds={"uniform policy": (uniform.times, uniform.values.mean(0))}, width=DOUBLE, logarithmic=True,
        named=True, styles=styles, title="RiverSwim(6) as a linear mixture, γ = 0.95: exact regret",
    )  # fmt: skip
    return drawn.save(folder / "regret", ("png",))[0]


def _page(found: Results, folder: Path) -> Path:
    from ravi.lab.report.page import report

    return report(found.folder, folder / "report.html")
