"""What do the numbers say, in words? Pure functions from statistics to sentences, each of which carries its numbers.

Nothing is said that an interval does not support: what may be 0 is called a tie, one seed supports no comparison, few
are called few.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ravi.lab.report.page.numbers import Name, Number, Sentence, count, estimate, joined, written

if TYPE_CHECKING:
    from ravi.lab.report.page.analysis import Cost, Studied, Told
    from ravi.lab.report.page.data import Panel, Part
    from ravi.statistics.intervals import Interval
    from ravi.statistics.rates import Measured

FEW = 10  # fewer seeds than this are called few
EDGE = 1e-9  # an exponent that is this close to another is the same
NAMED = 3  # ties that are named; the others are counted
CONSTANTS = {"theory": "the theory's constants", "tuned": "tuned multipliers", "given": "constants as given"}


def _regret(told: Told, *what: str | int) -> Sentence:
    """Its mean regret; 0 where it is not larger than what it may be off."""
    if told.line.nothing:
        return (Number(told.mean.estimate, "0", ("estimate", "regret", *what)), " (to its certified error)")
    return estimate(told.mean, "regret", *what)


# What is there.


def completeness(planned: int, done: int, failed: int, untuned: int) -> list[Sentence]:
    """How much of the suite has been run."""
    if not planned:
        return [("The suite asks for no runs.",)]
    missing = planned - done - failed
    all_done = done == planned
    made: list[Sentence] = [
        (
            "All " if all_done else "",
            Number(done, f"{done:,}", ("done",)),
            *(() if all_done else (" of ", Number(planned, f"{planned:,}", ("planned",)))),
            " runs are done." if all_done else " run is done." if planned == 1 else " runs are done.",
        )
    ]
    if failed:
        made.append((Number(failed, f"{failed:,}", ("failed",)), " run" if failed == 1 else " runs", " failed."))
    if missing:
        made.append((Number(missing, f"{missing:,}", ("missing",)), " are missing: what follows is about the rest."))
    if untuned:
        wait = "line waits" if untuned == 1 else "lines wait"
        made.append((Number(untuned, f"{untuned:,}", ("untuned",)), f" {wait} for tuning."))
    return made


def seeds(parts: Iterable[Part]) -> list[Sentence]:
    """How many seeds the means are over, and what that number supports."""
    numbers = [len(line.seeds) for part in parts for panel in part.panels for line in panel.lines if len(line.seeds)]
    if not numbers:
        return [("No run is finished: there is nothing to say about regret.",)]
    least, most = min(numbers), max(numbers)
    low, high = count(least, "least seeds"), count(most, "most seeds")
    between: Sentence = (low,) if least == most else (low, " to ", high)
    told: Sentence = ("Means are over ", *between, " seed." if most == 1 else " seeds.")
    if most == 1:
        return [(*told, " One seed gives no interval, and supports no comparison.")]
    if least < FEW:
        return [(*told, " These are few: intervals are rough, and a tie may only mean that there are too few.")]
    return [told]


# Who has the smallest regret.


def headline(studies: Sequence[Studied], parts: Iterable[Part]) -> list[Sentence]:
    """Three sentences: who has the smallest regret, how surely if there is only one section, and over which seeds."""
    found = [standing(study, study.part.columns[-1]) for study in studies]
    if len(studies) > 1:  # whose MDPs may be the same
        found = [[_within(study.part, each) for each in told] for study, told in zip(studies, found, strict=True)]
    first = [sentences[0] for sentences in found if sentences]
    more = [sentence for sentences in found for sentence in sentences[1:]]
    more += [sentence for study in studies for sentence in costs(study)[1:2]]
    return [*first, *more][:2] + seeds(parts)


def _within(part: Part, sentence: Sentence) -> Sentence:
    """In which section that is so."""
    first, *rest = sentence
    assert isinstance(first, str)
    return ("In ", Name(part.name), f", {first[0].lower()}{first[1:]}", *rest)


def standing(study: Studied, column: str) -> list[Sentence]:
    """Who has the smallest mean regret on how many MDPs of a section, and how surely."""
    part = study.part
    held = [(panel, _leaders(study, panel, column)) for panel in part.panels]
    contested = [(panel, leaders) for panel, leaders in held if len(leaders) > 1]
    if not contested:
        return []
    m = len(contested)
    if m == 1:
        made: list[Sentence] = [_winner(part, *contested[0], column)]
    else:
        made = [_winners(part, contested, column)]
    if all(len(told.line.seeds) < 2 for _, leaders in contested for told in leaders):
        return [*made, ("With one seed each, no difference between learners is supported.",)]
    clear = sum(all(told.rank == "behind" for told in leaders[1:]) for _, leaders in contested)
    clearly = "every other learner has significantly more regret (simultaneous 95 % intervals of paired differences)."
    if m == 1:
        return [(*made[0], f" {clearly.capitalize()}")] if clear else made
    number = count(clear, "clear", part.name, column)
    of = count(m, "contested", part.name, column)
    return [*made, ("On ", number, " of these ", of, f" {clearly}")]


def _winner(part: Part, panel: Panel, leaders: list[Told], column: str) -> Sentence:
    first = leaders[0]
    mean = _regret(first, part.name, column, panel.task, first.line.label)
    n = count(len(leaders), "rivals", part.name, column, panel.task)
    head = ("On ", Name(panel.task), ", ", Name(first.line.label), " has the smallest mean regret of the ")
    return (*head, n, f" learners with {CONSTANTS[column]}: ", *mean, ".")


def _winners(part: Part, contested: list[tuple[Panel, list[Told]]], column: str) -> Sentence:
    m = len(contested)
    thing = "pairs of an MDP and a T" if several_steps(part) else "MDPs"
    wins = Counter(leaders[0].line.label for _, leaders in contested)
    claims: list[Sentence] = []
    for label, n in sorted(wins.items(), key=lambda item: -item[1]):
        verb = " on " if claims else " has the smallest mean regret on "
        of: Sentence = () if claims else (" of ", count(m, "contested", part.name, column), f" {thing}")
        claims.append((Name(label), verb, count(n, "wins", part.name, column, label), *of))
    first, *rest = claims
    return (f"With {CONSTANTS[column]}, ", *first, *(("; ", *joined(rest)) if rest else ()), ".")


def on(study: Studied, panel: Panel, column: str) -> list[Sentence]:
    """The learners not distinguishable from the best on one MDP, the place of RAVI-UCB, and those not compared."""
    part, leaders = study.part, _leaders(study, panel, column)
    if len(leaders) < 2 or all(len(told.line.seeds) < 2 for told in leaders):
        return []
    made = [*_closely(part, panel, column, leaders), *_ours(part, panel, column, leaders)]
    unranked = sum(told.rank == "" for told in leaders)
    if unranked:
        n = count(unranked, "unranked", part.name, column, panel.task)
        made.append(("On ", Name(panel.task), ", ", n, " have no seed in common with the best."))
    return made


def _closely(part: Part, panel: Panel, column: str, leaders: list[Told]) -> list[Sentence]:
    """The learners not distinguishable from the best."""
    ties = [told for told in leaders if told.rank == "tie" and told.behind is not None]
    if not ties:
        return []
    key = (part.name, column, panel.task)
    first = leaders[0]
    named: list[Sentence] = [
        (Name(told.line.label), " (", *_signed(told.behind.difference, "behind", *key, told.line.label), ")")
        for told in ties[:NAMED]
        if told.behind is not None
    ]
    if len(ties) > NAMED:
        n = len(ties) - NAMED
        named.append((count(n, "more ties", *key), " more"))
    mean = _regret(first, *key, first.line.label)
    return [
        (
            "On ", Name(panel.task), f" with {CONSTANTS[column]}, ", Name(first.line.label), " (mean regret ", *mean,
            ") is not significantly better than ", *joined(named), ": the interval of the difference includes 0.",
        )
    ]  # fmt: skip


def _signed(found: Interval, *what: str | int) -> Sentence:
    return (*estimate(found, *what), " more")


def _ours(part: Part, panel: Panel, column: str, leaders: list[Told]) -> list[Sentence]:
    """Where RAVI-UCB stands when it is clearly behind."""
    made: list[Sentence] = []
    for told in leaders[1:]:
        if told.line.ours and told.rank == "behind" and told.behind is not None:
            key = (part.name, column, panel.task)
            place = count(told.place, "place", *key, told.line.label)
            n = count(len(leaders), "rivals", *key)
            made.append(
                (
                    "On ", Name(panel.task), f" with {CONSTANTS[column]}, ", Name(told.line.label), " comes in place ",
                    place, " of ", n, ": its mean regret is ", *_regret(told, *key, told.line.label),
                    ", ", *_signed(told.behind.difference, "behind", *key, told.line.label), " than ",
                    Name(leaders[0].line.label), ".",
                )
            )  # fmt: skip
    return made


def _leaders(study: Studied, panel: Panel, column: str) -> list[Told]:
    """The rivals of a column on a panel by mean regret, the best first."""
    rivals = [told for told in study.of(panel, column) if told.place]
    return sorted(rivals, key=lambda told: (told.place, told.rank != "best"))


def absent(study: Studied, column: str) -> list[Sentence]:
    """The learners without a successful run on an MDP where others have one."""
    part = study.part
    held: dict[str, list[str]] = {}
    for panel in part.panels:
        for line in panel.lines if study.told[panel.anchor] else ():
            if line.column == column and line.without:
                held.setdefault(line.label, []).append(panel.task)
    thing = "pairs of an MDP and a T" if several_steps(part) else "MDPs"
    named: list[Sentence] = []
    for label, tasks in held.items():
        n = len(tasks)
        where: Sentence = (Name(tasks[0]),) if n == 1 else (count(n, "absent", part.name, column, label), f" {thing}")
        named.append((Name(label), " on ", *where))
    return [(f"With {CONSTANTS[column]}, there is no finished run of ", *joined(named), ".")] if named else []


def out_of_competition(study: Studied) -> list[Sentence]:
    """The learners that are not ranked because they know the kernel."""
    names = dict.fromkeys(line.label for panel in study.part.panels for line in panel.lines if line.oracle)
    if not names:
        return []
    listed = joined([(Name(name),) for name in names])
    told = " knows the kernel, and is not ranked." if len(names) == 1 else " know the kernel, and are not ranked."
    return [(*listed, told)]


# What the theory's constants cost.


def costs(study: Studied) -> list[Sentence]:
    """The theory's constants against tuned multipliers and uniform actions, by pairs of a learner and an MDP."""
    part = study.part
    held = [cost for cost in study.costs if cost.more is not None and math.isfinite(cost.more.difference.low)]
    more = [cost.more.difference for cost in held if cost.more is not None]
    if not held:
        return []
    n = count(len(held), "costs", part.name)

    made: list[Sentence] = [
        (
            "Of ", n, " pairs of a learner with a multiplier and an MDP, tuned multipliers end with less regret than "
            "the theory's constants in ", count(sum(found.low > 0 for found in more), "cheaper", part.name),
            ", with more in ", count(sum(found.high < 0 for found in more), "dearer", part.name),
            ", and in ", count(sum(found.low <= 0 <= found.high for found in more), "unclear", part.name),
            " the 95 % interval of the difference includes 0.",
        )
    ]  # fmt: skip
    ratios = [cost.ratio for cost in held if math.isfinite(cost.ratio)]
    if len(ratios) > 1:
        middle = statistics.median(ratios)
        made.append(
            (
                "The regret with the theory's constants is ",
                Number(middle, written(middle), ("median ratio", part.name)),
                " times that with tuned ones in the median (from ",
                Number(min(ratios), written(min(ratios)), ("least ratio", part.name)), " to ",
                Number(max(ratios), written(max(ratios)), ("largest ratio", part.name)), ").",
            )
        )  # fmt: skip
    compared = [cost.uniform.difference for cost in held if cost.uniform is not None]
    if compared:
        made.append(
            (
                "With the theory's constants, ",
                count(sum(found.low > 0 for found in compared), "below uniform", part.name), " of ",
                count(len(compared), "against uniform", part.name),
                " end with less regret than uniform actions (the interval of the difference is above 0).",
            )
        )  # fmt: skip
    return made


def our_costs(study: Studied) -> list[Sentence]:
    """What the theory's constants cost RAVI-UCB, MDP by MDP."""
    held = [cost for cost in study.costs if cost.theory.ours]
    return [
        _our_cost(study.part, cost)
        for cost in held
        if cost.more is not None and math.isfinite(cost.more.difference.low) and math.isfinite(cost.ratio)
    ]


def _our_cost(part: Part, cost: Cost) -> Sentence:
    key = (part.name, cost.panel.task, cost.theory.label)
    assert cost.more is not None
    told: Sentence = (
        "On ", Name(cost.panel.task), ", ", Name(cost.theory.label), " with the theory's constants has ",
        Number(cost.ratio, written(cost.ratio), ("ratio", *key)),
        " times the regret that it has with tuned multipliers: ", *_signed(cost.more.difference, "cost", *key),
    )  # fmt: skip
    if cost.uniform is None:
        return (*told, ".")
    found = cost.uniform.difference
    if found.low > 0:
        return (*told, ", though less than uniform actions, which have ", *_signed(found, "uniform", *key), " still.")
    if found.low == found.high == 0:
        return (*told, "; it is that of uniform actions, to the certified error.")
    if found.high < 0:
        over = found._replace(estimate=-found.estimate, low=-found.high, high=-found.low)
        return (*told, "; and more than uniform actions, by ", *estimate(over, "over uniform", *key), ".")
    alike = "; it is not significantly different from that of uniform actions (difference "
    return (*told, alike, *estimate(found, "uniform", *key), ").")


def edges(tuned: int, at_edge: int) -> list[Sentence]:
    """Whether the ranges of tuning were wide enough."""
    if not at_edge:
        return []
    n, m = count(at_edge, "at the edge"), count(tuned, "tuned")
    return [("For ", n, " of ", m, " the choice lies at the edge of its range, so that others might do better.")]


# How regret grows.


def growth(study: Studied, column: str) -> list[Sentence]:
    """How the exponents of the late regret lie to 1/2 and to 1; uniform, whose exponent is 1, is left out."""
    part = study.part
    found = [
        told.shape.growth
        for panel in part.panels
        for told in study.of(panel, column)
        if told.shape.growth is not None and told.place and not told.line.uniform and len(told.line.seeds) > 1
    ]
    if not found:
        return []

    key = (part.name, column)
    return [
        (
            f"With {CONSTANTS[column]}, regret over the last half of the run grows as a power of t whose 95 % interval "
            "is below 1 for ", count(sum(rate.high < 1 - EDGE for rate in found), "sublinear", *key), " of ",
            count(len(found), "grown", *key), " lines, below 1/2 for ",
            count(sum(rate.high < 0.5 - EDGE for rate in found), "root", *key), ", and above 1/2 for ",
            count(sum(rate.low > 0.5 + EDGE for rate in found), "above root", *key), ".",
        )
    ]  # fmt: skip


def scaling(measured: Sequence[Measured]) -> list[Sentence]:
    """How measured exponents lie to those of the bounds."""
    held = [(one.rate, one.theory) for one in measured if one.rate is not None and one.theory is not None]
    held = [(rate, theory) for rate, theory in held if math.isfinite(rate.high)]
    if not held:
        return []
    above = sum(rate.low > theory.exponent + EDGE for rate, theory in held)
    below = sum(rate.high < theory.exponent - EDGE for rate, theory in held)
    inside = len(held) - above - below
    return [
        (
            "Of ", count(len(held), "exponents"),
            " fitted exponents that a bound speaks of, the 95 % interval is below the bound's for ",
            count(below, "below bound"), ", above it for ", count(above, "above bound"),
            ", and includes it for ", count(inside, "at bound"), ".",
        )
    ]  # fmt: skip


def several_steps(part: Part) -> bool:
    return len({panel.steps for panel in part.panels}) > 1
