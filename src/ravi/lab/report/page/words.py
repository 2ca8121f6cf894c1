"""The sentences of the page, and its numbers as HTML.

The sentences say how complete the results are, who has the smallest regret, and who ties with it. A difference whose
interval includes 0 is called a tie, one seed supports no comparison, few seeds are called few. Names come from the
folder, and are escaped. A page of many learners has a hundred thousand numbers: macros of the template would take most
of its time, so functions write them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from ravi.display import numbers
from ravi.display.numbers import DECIMALS, NONE, estimate_and_interval
from ravi.display.printable import counted

if TYPE_CHECKING:
    from ravi.lab.report.page.charts import Shape
    from ravi.lab.report.page.content import Chapter
    from ravi.lab.report.summary import Panel, Row
    from ravi.statistics import Interval, Rate

FEW = 10  # fewer seeds than this are called few
NAMED = 3  # ties that are named; the others are counted
CONSTANTS = {"theory": "the theory's constants", "tuned": "tuned multipliers", "given": "constants as given"}
CLEARLY = "every other learner has significantly more regret (simultaneous 95 % intervals of paired differences)."
ZERO = Markup('<span class="value">0</span> <span class="range">(to its certified error)</span>')


def completeness(planned: int, done: int, failed: int, untuned: int) -> list[str]:
    """How much of the suite has been run."""
    if not planned:
        return ["The suite asks for no runs."]
    missing = planned - done - failed
    verb = "is" if planned == 1 else "are"
    some = f"{done:,} of {counted(planned, 'run')} {verb} done."
    sentences = [f"All {done:,} runs are done." if done == planned else some]
    sentences += [f"{counted(failed, 'run')} failed."] if failed else []
    sentences += [f"{missing:,} are missing: what follows is about the rest."] if missing else []
    sentences += [f"{counted(untuned, 'line')} {'waits' if untuned == 1 else 'wait'} for tuning."] if untuned else []
    return sentences


def seeds(numbers: Sequence[int]) -> str:
    """How many seeds the means are over, by the number of every line, and what that supports."""
    if not numbers:
        return "No run is finished: there is nothing to say about regret."
    least, most = min(numbers), max(numbers)
    between = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    sentence = f"Means are over {between} seed{'s' * (most > 1)}."
    if most == 1:
        return f"{sentence} One seed gives no interval, and supports no comparison."
    few = " These are few: intervals are rough, and a tie may only mean that there are too few."
    return sentence + few * (least < FEW)


def headline(sections: Sequence[Chapter], numbers: Sequence[int]) -> list[str]:
    """Three sentences: who has the smallest regret, how surely if there is only one section, and over which seeds."""
    found = [standing([sheet.panel for sheet in section.sheets], section.columns[-1]) for section in sections]
    if len(sections) > 1:  # whose MDPs may be the same
        within = Markup("In {}, {}{}")
        found = [
            [within.format(_name(section.name), each[0].lower(), each[1:]) for each in sentences]
            for section, sentences in zip(sections, found, strict=True)
        ]
    first = [sentences[0] for sentences in found if sentences]
    rest = [sentence for sentences in found for sentence in sentences[1:]]
    return [*[*first, *rest][:2], seeds(numbers)]


def standing(panels: Sequence[Panel], column: str) -> list[Markup]:
    """Who has the smallest mean regret on how many MDPs of a section, and how surely."""
    contested = [(panel, ranked) for panel in panels if len(ranked := _rivals(panel, column)) > 1]
    if not contested:
        return []
    m, constants = len(contested), CONSTANTS[column]
    if m == 1:
        ((panel, ranked),) = contested
        sentence = Markup("On {}, {} has the smallest mean regret of the {} learners with {}: {}.").format(
            _name(panel.task), _name(ranked[0].line.label), len(ranked), constants, regret(ranked[0])
        )
    else:
        wins = Counter(ranked[0].line.label for _, ranked in contested).most_common()
        thing = "pairs of an MDP and a T" if len({panel.steps for panel in panels}) > 1 else "MDPs"
        sentence = Markup("With {}, {} has the smallest mean regret on {} of {} {}").format(
            constants, _name(wins[0][0]), wins[0][1], m, thing
        )
        others = [Markup("{} on {}").format(_name(label), n) for label, n in wins[1:]]
        sentence += (Markup("; ") + _joined(others) if others else "") + "."
    if all(len(row.line.seeds) < 2 for _, ranked in contested for row in ranked):
        return [sentence, Markup("With one seed each, no difference between learners is supported.")]
    clear = sum(all(row.rank == "behind" for row in ranked[1:]) for _, ranked in contested)
    if m == 1:
        return [sentence + f" {CLEARLY.capitalize()}"] if clear else [sentence]
    return [sentence, Markup(f"On {clear} of these {m} {CLEARLY}")]


def ties(panel: Panel, column: str) -> list[Markup]:
    """The learners that are not distinguishable from the best on one MDP."""
    ranked = _rivals(panel, column)
    tied = [row for row in ranked if row.rank == "tie"]
    if not tied or len(ranked[0].line.seeds) < 2:
        return []
    named = [_name(row.line.label) for row in tied[:NAMED]]
    named += [Markup(f"{len(tied) - NAMED} more")] if len(tied) > NAMED else []
    sentence = "On {} with {}, {} is not significantly better than {}: the interval of the difference includes 0."
    best = _name(ranked[0].line.label)
    return [Markup(sentence).format(_name(panel.task), CONSTANTS[column], best, _joined(named))]


def _rivals(panel: Panel, column: str) -> list[Row]:
    """The rivals of a column by mean regret, the best first."""
    return [row for row in panel.ordered(column) if row.place]


def _name(text: str) -> Markup:
    return Markup('<b class="name">{}</b>').format(text)


def _joined(parts: Iterable[Markup]) -> Markup:
    *first, last = parts
    return Markup(", ").join(first) + " and " + last if first else last


# Numbers.


def number(value: float | None) -> str:
    """A number with a true minus; a dash where there is none."""
    return NONE if value is None else numbers.number(value).replace("-", "\N{MINUS SIGN}")


def estimate(found: Interval | tuple[float, ...] | None, most: int = DECIMALS["regret"]) -> Markup:
    """An estimate with its interval."""
    if found is None:
        return Markup(NONE)
    middle, low, high = found[:3]
    value, ends = (text.replace("-", "\N{MINUS SIGN}") for text in estimate_and_interval(middle, low, high, most))
    return Markup(f'<span class="value">{value}</span>' + (f' <span class="range">{ends}</span>' if ends else ""))


def regret(row: Row) -> Markup:
    """A mean regret; 0 where it is not larger than what it may be off."""
    return ZERO if row.zero else estimate(row.mean)


def rate(found: Rate | None) -> Markup:
    """An exponent with its interval."""
    return estimate(None if found is None else found[:3], 3)


def curve(row: Row, shape: Shape) -> Markup:
    """Means at the times that are listed with their intervals, as the cells of a line of a table."""
    listed = zip(*(edge[shape.listed].tolist() for edge in shape.band), strict=True)
    return Markup("".join(f'<td class="right">{"0" if row.zero else estimate(each)}</td>' for each in listed))


def chance(found: Interval) -> Markup:
    """A probability in per cent, as a cell that is the darker the larger it is, and bold where 50 is excluded."""
    middle, low, high = (f"{100 * share:.0f}" for share in found[:3])
    sure = "sure" if found.low > 0.5 or found.high < 0.5 else ""
    return Markup(
        f'<td class="heat {sure}" style="--heat: {found.estimate:.2f}"><span class="value">{middle}</span>'
        f'<span class="range">[{low}, {high}]</span></td>'
    )


def tail(row: Row) -> Markup:
    """The upper quantiles over seeds, with the decimals of the mean."""
    if row.zero or row.mean is None:
        return Markup("0")
    places = numbers.decimals(row.mean.estimate, (row.mean.high - row.mean.low) / 2, DECIMALS["regret"])
    q90, q99, most = (numbers.number(value, places).replace("-", "\N{MINUS SIGN}") for value in row.upper.values())
    more = "" if q90 == q99 == most else f' <br><span class="range">{q99}, max {most}</span>'
    return Markup(f'<span class="value">{q90}</span>{more}')
