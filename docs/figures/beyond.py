"""The cost of the variants of docs/explanation/beyond.md: its figure and its tables (two minutes).

python docs/figures/beyond.py
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import ravi
from ravi.display.style import DOUBLE, GREY, Drawn, legend_below, line, looks, panels, styled
from ravi.mdps.changing_rewards import Changing, tides
from ravi.theory import doubling

HERE = Path(__file__).parent
PAGE = HERE.parent / "explanation" / "beyond.md"
SEEDS = 16
RIVER = "riverswim/6,discount=0.9"

TOLD, UNTOLD, STEPS = "ravi-ucb,scale=0.003,eta=0.5", "ravi-ucb/unknown-rewards,scale=0.003,eta=0.5", 20_000
REWARDS = {
    "known": TOLD,
    "unknown": UNTOLD,
    "unknown, a tenth of its bonus": f"{UNTOLD},reward_scale=0.1",
    "unknown, no noise": f"{UNTOLD},rewards=deterministic",
    "known, RAVI-UCB+": "ravi-ucb+",
    "unknown, RAVI-UCB+": "ravi-ucb+/unknown-rewards",
}

CHANGING, LENGTHS = "ravi-ucb,scale=0.001,step_scale=30", (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
WORLDS = {"every 50 steps": tides(), "every 50 epochs": tides(clock="epochs")}

TUNED = "scale=0.003,step_scale=30"
HORIZONS = (1024, 2047, 4096, 8191, 16_384, 32_767)  # just after a phase has begun, and where one ends
MIXTURE = "riverswim/mixture/6,discount=0.9"
FAMILY = {
    ("ravi-ucb", TUNED): RIVER,
    ("ravi-ucb/mixture", "scale=0.02,step_scale=30"): MIXTURE,
    ("ravi-ucb+", ""): RIVER,
    ("ravi-ucb+/mixture", ""): MIXTURE,
}  # each with T known, and in phases

SELECTED, EPSILON, DELTA, RUNS = ("riverswim/4,discount=0.9", 1500), 0.08, 0.2, 1000


def marked(name: str, table: str) -> None:
    """Write a table between its marks on the page."""
    place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
    PAGE.write_text(place.sub(lambda _: table, PAGE.read_text(), count=1))


def unknown_rewards() -> str:
    rows = ["| rewards | id | regret, mean of 16 seeds | from | to |", "|---|---|---|---|---|"]
    for label, learner in REWARDS.items():
        regret = ravi.run(learner, RIVER, STEPS, SEEDS).regret
        rows.append(f"| {label} | `{learner}` | {regret.mean():,.0f} | {regret.min():,.0f} | {regret.max():,.0f} |")
    return "\n".join(rows) + "\n"


def idle(world: Changing, steps: int) -> float:
    """The regret of the uniform policy, where the rewards change with steps."""
    counts = np.bincount(world.number(np.arange(1, steps + 1)), minlength=len(world.tables))
    mdp = world.average(counts)
    return steps * (ravi.solve(mdp).optimum - ravi.return_of(mdp, np.full((mdp.states, mdp.actions), 1 / mdp.actions)))


def exponent(T: tuple[int, ...], regret: list[float]) -> float:
    """The slope of log regret on log T."""
    return float(np.polyfit(np.log(T), np.log(regret), 1)[0])


def changing(found: dict[str, list[ravi.Run]]) -> str:
    rows = [f"| rewards change | {' | '.join(f'T = {T:,}' for T in LENGTHS)} | exponent |"]
    rows.append("|---" * (len(LENGTHS) + 2) + "|")
    for label, runs in found.items():
        means = [float(run.regret.mean()) for run in runs]
        rows.append(f"| {label} | {' | '.join(f'{r:,.0f}' for r in means)} | {exponent(LENGTHS, means):.2f} |")
    never = [idle(WORLDS["every 50 steps"], T) for T in LENGTHS]
    rows.append(f"| (uniform policy) | {' | '.join(f'{r:,.0f}' for r in never)} | {exponent(LENGTHS, never):.2f} |")
    return "\n".join(rows) + "\n"


def lemma() -> str:
    """Lemma 4.3 with r_k where bonuses are the theory's."""
    rows = ["| rewards change | valid | measured / sharp bound, at most | / printed bound |", "|---|---|---|---|"]
    for label, world in WORLDS.items():
        found = ravi.run("ravi-ucb,step_scale=10", world, 8000, SEEDS, points=1).results
        sharp, printed = ((found["lemma_measured"] / found[f"lemma_{form}"]).max() for form in ("bound", "printed"))
        rows.append(f"| {label} | {found['valid'].sum()} of {SEEDS} seeds | {sharp:.4f} | {printed:.4f} |")
    return "\n".join(rows) + "\n"


def horizons(found: dict[int, tuple[float, float]]) -> str:
    rows = ["| T | phases | T known | T unknown | ratio |", "|---|---|---|---|---|"]
    for T, (told, untold) in found.items():
        rows.append(f"| {T:,} | {doubling.phases(T)} | {told:,.0f} | {untold:,.0f} | {untold / told:.2f} |")
    return "\n".join(rows) + "\n"


def family(base: str, options: str, steps: int = 8191) -> str:
    """A learner that knows T beside the same one in phases: a row."""
    more = f",{options}" if options else ""
    told, untold = (
        float(ravi.run(f"{name}{more}", FAMILY[base, options], steps, SEEDS).regret.mean())
        for name in (base, f"{base}/doubling")
    )
    return f"| `{base}/doubling{more}` | {told:,.0f} | {untold:,.0f} | {untold / told:.2f} |"


def selected() -> str:
    """Failures, and the gap of the policy of a uniform time beside that of the one selected."""
    name, T = SELECTED
    mdp = ravi.mdp(name)
    run = ravi.run(TOLD, mdp, T, RUNS, measures=[ravi.candidates(mdp.problem, T, DELTA)])
    assert run.optimum is not None
    made = [ravi.select(run, mdp, EPSILON, DELTA, which=row) for row in range(RUNS)]
    gaps = run.optimum - np.array([ravi.return_of(mdp, one.policy) for one in made])
    drawn = run.optimum - np.array([ravi.return_of(mdp, policy) for policy in run.output_policy])
    failures = int((gaps > 2 * run.regret / T + EPSILON).sum())
    rows = ["| policy | mean gap | largest gap | steps beyond T |", "|---|---|---|---|"]
    rows.append(f"| of a uniform time | {drawn.mean():.4f} | {drawn.max():.4f} | 0 |")
    plays = np.mean([one.plays for one in made])
    rows.append(f"| selected from {len(made[0].estimates)} | {gaps.mean():.4f} | {gaps.max():.4f} | {plays:,.0f} |")
    rows += ["", f"Failures, gap > 2 regret / T + {EPSILON:g}: {failures} of {RUNS:,} runs (allowed: {DELTA:.0%})."]
    return "\n".join(rows) + "\n"


def drawn(turns: dict[str, list[ravi.Run]], told: dict[int, tuple[float, float]], whole: ravi.Run) -> Drawn:
    figure, axes = panels(1, 2, width=DOUBLE, height=2.6)
    styles = looks([*turns, "T unknown", "T known"])
    data = {}
    with styled():
        left, right = axes[0]
        for label, runs in turns.items():
            regret = np.array([run.regret for run in runs])
            low, mean, high = regret.min(1), regret.mean(1), regret.max(1)
            line(left, np.array(LENGTHS), mean, label, styles[label], low=low, high=high)
            data[label] = (LENGTHS, low, mean, high)
        never = [idle(WORLDS["every 50 steps"], T) for T in LENGTHS]
        left.plot(LENGTHS, never, color=GREY, linewidth=0.8, label="uniform policy")
        left.set(xscale="log", yscale="log", xlabel="T", ylabel="regret in hindsight", title="changing rewards")
        curve = whole.regret_curve
        line(right, whole.times, curve.mean(0), "T unknown", styles["T unknown"], low=curve.min(0), high=curve.max(0))
        right.plot(list(told), [one for one, _ in told.values()], "s", color=styles["T known"].colour, label="T known")
        right.set(xlabel="step t", ylabel="regret", title="unknown T")
        data["T unknown"] = (whole.times, curve.min(0), curve.mean(0), curve.max(0))
        legend_below(figure, axes)
    return Drawn(figure, data)


def main() -> None:
    marked("unknown", unknown_rewards())
    turns = {label: [ravi.run(CHANGING, world, T, SEEDS, points=1) for T in LENGTHS] for label, world in WORLDS.items()}
    marked("changing", changing(turns))
    marked("lemma", lemma())
    whole = ravi.run(f"ravi-ucb/doubling,{TUNED}", RIVER, max(HORIZONS), SEEDS)
    told = {}
    for T in HORIZONS:
        known = ravi.run(f"ravi-ucb,{TUNED}", RIVER, T, SEEDS).regret.mean()
        unknown = ravi.run(f"ravi-ucb/doubling,{TUNED}", RIVER, T, SEEDS).regret.mean()
        told[T] = (float(known), float(unknown))
    marked("horizons", horizons(told))
    head = ["| id | T known | T unknown | ratio |", "|---|---|---|---|"]
    marked("family", "\n".join([*head, *(family(*one) for one in FAMILY)]) + "\n")
    marked("selected", selected())
    drawn(turns, told, whole).save(HERE / "beyond", ["png"])


if __name__ == "__main__":
    main()
