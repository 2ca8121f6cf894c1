"""Draws the gallery of figures beside this file: `python docs/figures/draw.py` (a minute)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import ravi
from ravi.lab.report.curves import gap_curves, gap_of, regret_curves
from ravi.lab.report.figures import groups, theory
from ravi.lab.report.grids import maps
from ravi.lab.report.learning import policy_steps, validity, watched
from ravi.lab.report.matrix import differences, improvements, profile_figure
from ravi.lab.report.parameters import ellipsoids, parameter_figure
from ravi.lab.report.scatter import pareto, ranks, tuning
from ravi.statistics.scores import scores

HERE = Path(__file__).parent
SUITE = {
    "name": "gallery",
    "steps": 20_000,
    "seeds": 8,
    "points": 200,
    "columns": ["theory", "tuned"],
    "tuning": {"budget": 10, "seeds": 2},
    "sections": [
        {
            "name": "rivers",
            "mdps": ["riverswim/4", "riverswim/6"],
            "learners": ["ravi-ucb", "ucrl2", "mbie-eb", "psrl", "uniform"],
        }
    ],
}


def of_results(found: ravi.Results) -> None:
    held = {(group.panel.mdp, group.column): group for group in groups(found)}
    for column, logarithmic in (("tuned", False), ("theory", True)):
        group, name = held["riverswim/6", column], f"regret-log-{column}" if logarithmic else f"regret-{column}"
        drawn = regret_curves(group.curves, logarithmic=logarithmic, bounds=theory(group), title=group.title)
        drawn.save(HERE / name, ["png"])
    tuned = held["riverswim/6", "tuned"]
    means = {label: row.mean for label, row in tuned.rows.items()}
    ranks(means, remarks=tuned.remarks, title="riverswim/6, tuned").save(HERE / "ranks", ["png"])
    spent = {label: (row.seconds, row.mean) for label, row in tuned.rows.items()}
    pareto(spent, title="riverswim/6, tuned").save(HERE / "pareto", ["png"])
    rows = found.sql("SELECT * FROM tuning WHERE mdp = 'riverswim/6' ORDER BY learner, configuration").to_pylist()
    tuning(rows, order=SUITE["sections"][0]["learners"], title="riverswim/6").save(HERE / "tuning", ["png"])
    compared = scores(found, column="tuned")
    improvements(compared).save(HERE / "improvement", ["png"])
    differences(compared, "riverswim/6").save(HERE / "differences", ["png"])
    profile_figure(compared, title="two rivers, tuned").save(HERE / "profiles", ["png"])


def of_runs() -> None:
    learner, mdp = "ravi-ucb/mixture,scale=0.03,step_scale=30", ravi.mdp("riverswim/mixture/6")
    run = ravi.run(learner, mdp, 20_000, 8)
    gap_curves({"ravi-ucb/mixture": gap_of(run)}, title=mdp.name).save(HERE / "gap", ["png"])
    found = ellipsoids(learner, mdp, 20_000, (100, 1000, 20_000))
    parameter_figure(found, mdp.parameter, title="parameters, riverswim/mixture/6").save(HERE / "theta", ["png"])
    seen = watched("ravi-ucb,scale=0.01,step_scale=30", "riverswim/6", 20_000, 8)
    policy_steps(seen, title=f"{seen.learner} on {seen.mdp}").save(HERE / "steps", ["png"])
    validity(seen, title=f"{seen.learner} on {seen.mdp}").save(HERE / "validity", ["png"])
    for name, id, agent in (
        ("deep-sea", "deep-sea/8", "ravi-ucb,scale=0.003,step_scale=100"),
        ("terrain", "terrain/6", "ravi-ucb/mixture,scale=0.03,step_scale=30"),
        ("queue", "queue/20,3", "ravi-ucb/mixture,scale=0.01,step_scale=100"),
    ):
        world = ravi.mdp(id)
        run = ravi.run(agent, world, 20_000, 1)
        maps(run, world, title=f"{run.learner} on {world.name}, t = 20,000").save(HERE / f"maps-{name}", ["png"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        of_results(ravi.run_suite(SUITE, folder))
    of_runs()
