"""The page docs/explanation/lead.md, RAVI-KL compared with other learners, from the suite `lead`.

python docs/figures/lead.py FOLDER [--as-it-is]    runs what FOLDER lacks of the suite, or nothing, and writes the page

A folder may hold some sections of the suite only: the others stay on the page as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import fill

import numpy as np

import ravi
from ravi.statistics import compare, scores

PAGE = Path(__file__).parent.parent / "explanation" / "lead.md"
SECTIONS = {
    "told": "All learners know the supports",
    "not-told": "No learner knows the supports",
    "longer": "100,000 steps, with the supports",
    "long": "1,000,000 steps, with the supports",
    "tuned": "Tuned learners, with the supports",
    "mixtures": "Linear mixtures",
    "mixtures-30": "Linear mixtures of 30 kernels",
}
OURS = ("ravi-kl", "ravi-kl,support=off", "ravi-kl/mixture")
NOTES: dict[str, str] = {
    "told": """\
The MDPs on which RAVI-KL has more regret than PSRL are those in which many pairs must be tried that turn out to matter
little. Optimism tries each such pair until its upper bound is low; PSRL tries it only as long as its posterior samples
favour it. A larger slack does not change that: in the geometric mean over these MDPs the regret is 77.3 with the slack
of 1/2, 76.0 with 2/3, 74.5 with 9/10, 99.4 with `plan=greedy`, and 69.1 with `psrl,support=on`. Without supports
DeepSea is a problem of the same kind (next section).""",
    "mixtures": """\
`psrl/mixture` samples theta from its posterior under a uniform prior. Its guarantee is an average over that prior,
which is the distribution of theta in the ensembles without a border. On `fork` and `two-ends` it has less regret
because of the radius of RAVI-KL. A step from the fork informs about one weight only, so every other action has to be
excluded separately, with a radius that holds for all theta and all times at once, ln(2 / delta_t) + C_d(m), which is 12
to 17 here; a posterior sample needs no such radius. With a smaller radius, and without a guarantee, the regret of
RAVI-KL (8 seeds) is 156, 104, 73, 58 on `fork/4,best=3` and 64, 38, 20, 3 on `two-ends/9` at `scale=` 1, 0.5, 0.25,
0.1. With a posterior sample as its candidate it is never significantly worse than without, but it waits for the same
radius on these two. With the constants of the theory, the confidence sets of UCLK and UCLK+ exclude nothing in so few
steps: they play one policy throughout (on the fork the first action, which is why another action is best in this fork),
and RAVI-UCB is nearly uniform.""",
    "mixtures-30": """\
There are few seeds because a plan with 30 kernels takes about 20 ms. C_d(m) is large for so many kernels. On the
border, where half of them have weight 0, this increases the regret of RAVI-KL, but not with a posterior sample as its
candidate. In the interior, the one policy that UCLK plays is nearly optimal.""",
}  # what to know about a section
HEAD = """# RAVI-KL compared with other learners

How does the regret of RAVI-KL compare with that of other learners, with the options named below? For those who choose
a learner. On how many MDPs the mean regret is significantly smaller, not significantly different, and larger:"""
ANSWERS = {
    "told": "- of {many} tabular MDPs, where learners know the supports, `ravi-kl` compared with",
    "not-told": "- of {many} tabular MDPs, where none does, `ravi-kl,support=off` compared with",
    "mixtures": "- of {many} linear mixture MDPs, `ravi-kl/mixture` compared with",
}
METHOD = """\
Regret is exact. Cells are the mean over seeds, with the smallest in bold, and in parentheses the 90th percentile and
the largest. A mean over so few seeds does not show what happens once in some hundred runs, and nor do these two.
Options are those in the heads of the tables; one section tunes them.

**Supports.** A learner with `support=on` (the default of `ravi-kl`) is told the successors that have a positive
probability, for every pair. The rows of an MDP are stored at one length, and padded with states of probability 0, of
which it is told nothing. Its radii count as many successors as the largest support has; the prior of `psrl` is on the
support of each pair. A learner without supports allows for a move from any state to any other. `ravi-ucb+` and
`uniform` have no such option; mixtures know their kernels. With supports RAVI-KL has no regret on RiverSwim, DeepSea
and Taxi: these are compared without supports only, or not at all. (PSRL has none on DeepSea and Taxi, 1 on riverswim/6
and, with gamma = 0.99, 2,141 on riverswim/20, where `schedule=reset` has 202.)

**What was chosen.** The radii of RAVI-KL are those of its proofs. Its candidate (half of them) and its slack (1/2) are
not: any value is covered by the proofs. The candidate was in the learner's first version, of which no runs were
recorded; RiverSwim and Garnets of this suite were at hand then. The slack was chosen on six problems that are not in
this suite ([kl.md](kl.md#the-tail-of-the-regret)), for the tail of the regret on `six-arms`. The prior of `psrl` with
supports (1) was chosen on riverswim/6 and Garnets, and its schedule, that of RAVI-KL, by the geometric mean over this
suite; `schedule=doubling` is the rule of TSDE.

[kl.md](kl.md) describes the learner and proves its bounds. The page is generated by `docs/figures/lead.py` from the
suite `lead` (`ravi suite run lead --out FOLDER`).

Bayes-UCBVI and OPSRL, which plan with posteriors as PSRL does and have bounds for every MDP, are for episodes and are
not among the learners compared ([kl.md](kl.md#posteriors-with-bounds-for-every-mdp)).
"""


def complete(results: ravi.Results, section: str) -> tuple[list[str], list[str], list[str]]:
    """The learners of a section, the MDPs on which all their runs are there, and the others."""
    entries = [row for row in results.entries.to_pylist() if row["section"] == section]
    learners, mdps = (list(dict.fromkeys(row[name] for row in entries)) for name in ("label", "mdp"))
    try:
        found = scores(results, section=section)
    except ravi.InputError:  # no run yet
        return learners, [], mdps
    there = [(mdp, min(len(found.values.get(one, {}).get(mdp, ())) for one in learners)) for mdp in mdps]
    short = {mdp for mdp, runs in there if runs < max(1, max(runs for _, runs in there))}
    return learners, [mdp for mdp in mdps if mdp not in short], [mdp for mdp in mdps if mdp in short]


def table(results: ravi.Results, section: str, learners: list[str], mdps: list[str]) -> str:
    """A row for every MDP: mean regrets, the smallest in bold, with their 90th percentiles and largest."""
    found = scores(results, section=section)
    lines = [f"| | {' | '.join(learners)} |", "|---|" + "--:|" * len(learners)]
    for mdp in mdps:
        runs = [found.values[learner][mdp] for learner in learners]
        best = min(each.mean() for each in runs)
        cells = [cell(each, each.mean() <= best + 0.05) for each in runs]
        lines.append(f"| {mdp} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(runs: np.ndarray, best: bool) -> str:
    """The mean of some runs, their 90th percentile and the largest."""
    mean, high, most = (
        f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
        for value in (runs.mean(), np.quantile(runs, 0.9), runs.max())
    )
    return f"{f'**{mean}**' if best else mean} ({high}, {most})"


def verdicts(results: ravi.Results, section: str, learners: list[str], mdps: list[str]) -> str:
    """For every other learner, on how many MDPs the regret of RAVI-KL is significantly smaller, not significantly
    different, or significantly larger: paired by seed, with simultaneous intervals for the section (Bonferroni)."""
    found = scores(results, section=section)
    ours = next(name for name in OURS if name in learners)
    others = [name for name in learners if name not in (ours, "uniform")]
    many = len(others) * len(mdps)
    rows, larger = [], []
    for other in others:
        counts = {"smaller": 0, "neither": 0, "larger": 0}
        for mdp in mdps:
            gap = compare(found, ours, other, mdp, level=1 - 0.05 / many, resamples=20_000).difference
            verdict = "smaller" if gap.low > 0 else "larger" if gap.high < 0 else "neither"
            counts[verdict] += 1
            if verdict == "larger":
                larger.append(f"`{mdp}` ({other}, by {-gap.estimate:,.1f})")
        rows.append(f"| {other} | {counts['smaller']} | {counts['neither']} | {counts['larger']} |")
    said = f"On how many MDPs the regret differs significantly ({many} simultaneous 95 % intervals, paired by seed):"
    head = f"| {ours} compared with | smaller | no significant difference | larger |\n|---|--:|--:|--:|"
    where = f"Larger on {'; '.join(larger)}." if larger else "It is larger on none."
    return "\n".join([said, "", head, *rows, "", where])


def part(results: ravi.Results, section: str) -> str | None:
    """A section of the page; None where nothing of it was run to the end."""
    learners, mdps, short = complete(results, section)
    if not mdps:
        return None
    entry = next(row for row in results.entries.to_pylist() if row["section"] == section)
    seeds = len(scores(results, section=section).values[learners[0]][mdps[0]])
    lines = [
        f"T = {entry['steps']:,}, {seeds} seeds.\n",
        table(results, section, learners, mdps) + "\n",
        verdicts(results, section, learners, mdps) + "\n",
    ]
    if section in NOTES:
        lines.append(NOTES[section] + "\n")
    if short:
        lines.append(f"In the suite, but not finished yet: {', '.join(f'`{mdp}`' for mdp in short)}.\n")
    return "\n".join(lines)


def answer(section: str, text: str) -> str:
    """A line on a section, from the table of its verdicts."""
    verdicts = text.partition(" compared with |")[2]
    found = re.findall(r"^\| (\S.*) \| (\d+) \| (\d+) \| (\d+) \|$", verdicts, flags=re.MULTILINE)
    others = [row for row in found if not row[0].startswith("ravi-kl")]
    counts = "; ".join(f"`{other}` {a}, {b}, {c}" for other, a, b, c in others)
    said = f"{ANSWERS[section].format(many=sum(int(count) for count in others[0][1:]))} {counts}"
    return fill(said, 120, subsequent_indent="  ", break_on_hyphens=False)


def head(parts: dict[str, str]) -> str:
    """The page's beginning: what came out, by the tables below, and what the cells are."""
    there = [section for section, title in SECTIONS.items() if title in parts and section in ANSWERS]
    return "\n\n".join([HEAD, "\n".join(answer(section, parts[SECTIONS[section]]) for section in there), METHOD])


def made(results: ravi.Results, page: str) -> str:
    """The page anew: sections that the results have, and what it has of the others."""
    before = re.split(r"^## (.+)\n", page.partition("\nSections of the suite that")[0], flags=re.MULTILINE)[1:]
    kept = dict(zip(before[::2], before[1::2], strict=True))
    texts = {title: text for title in SECTIONS.values() if (text := kept.get(title)) is not None}
    texts |= {SECTIONS[section]: f"\n{text}" for section in SECTIONS if (text := part(results, section)) is not None}
    parts = [head(texts), *(f"## {title}\n{texts[title].rstrip()}\n" for title in SECTIONS.values() if title in texts)]
    if left := [title for title in SECTIONS.values() if title not in texts]:
        parts.append(f"Sections of the suite that were not run yet: {'; '.join(left)}.\n")
    return "\n".join(parts)


def main() -> None:
    folder, *how = sys.argv[1:]
    results = ravi.results(folder) if how == ["--as-it-is"] else ravi.run_suite("lead", folder)
    PAGE.write_text(made(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
