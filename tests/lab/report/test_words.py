"""The sentences and numbers of the page: what an interval supports is said, what may be 0 is a tie, nothing else."""

import math
import re
from html import unescape

import pytest

import ravi
from ravi.lab.report.page import words
from ravi.lab.report.page.content import content, sections
from ravi.lab.report.summary import LEVEL, summary
from ravi.statistics.intervals import Interval
from tests.lab.report.folders import drawn, made

LEARNERS = ["ravi-ucb", "ucrl2", "psrl", "mbie-eb", "ravi-ucb/known", "uniform"]
SUITE = {
    "name": "words",
    "steps": 1000,
    "seeds": 12,
    "points": 40,
    "columns": ["theory", "tuned"],
    "sections": [
        {"name": "two", "mdps": ["riverswim/6", "deep-sea/5"], "learners": LEARNERS},
        {"name": "one", "mdps": ["trap"], "learners": ["ravi-ucb", "psrl", "uniform"]},
    ],
}


def close(entry, seed):
    """PSRL and UCRL2 nearly the same when tuned; RAVI-UCB as uniform when published."""
    if entry.label == "ravi-ucb" and entry.column == "theory":
        return 2000.0 + 1e-9 * seed
    if entry.label == "uniform":
        return 2000.0
    if entry.label == "psrl" or (entry.label == "ucrl2" and entry.column == "tuned"):
        return 100.0 + 10 * math.sin(7 * seed + len(entry.label))
    return drawn(entry, seed)


def read(folder):
    held = ravi.results(folder)
    return sections(held, summary(held))


def row_of(panel, label, column="given"):
    (row,) = [row for row in panel.of(column) if row.line.label == label]
    return row


def plain(sentences):
    return [unescape(re.sub("<[^>]*>", "", sentence)) for sentence in sentences]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return content(ravi.results(made(tmp_path_factory.mktemp("words"), SUITE, regret=close)), None)


def test_the_headline_says_who_is_best_where_how_surely_and_over_which_seeds(found):
    psrl = row_of(found["sections"][1].sheets[0].panel, "psrl", "tuned").mean
    numbers = re.sub("<[^>]*>", "", words.estimate(psrl))
    assert plain(found["headline"]) == [
        "In two, with tuned multipliers, psrl has the smallest mean regret on 2 of 2 MDPs.",
        f"In one, on trap, psrl has the smallest mean regret of the 3 learners with tuned multipliers: {numbers}. "
        f"Every other learner has significantly more regret (simultaneous 95 % intervals of paired differences).",
        "Means are over 12 seeds.",
    ]


def test_the_findings_are_the_best_and_its_ties(found):
    """PSRL and UCRL2 were made alike when tuned, and differ otherwise."""
    section = found["sections"][0]
    said = plain(found["findings"][section.anchor])
    assert said[:2] == [
        "With the theory's constants, psrl has the smallest mean regret on 2 of 2 MDPs.",
        "On 2 of these 2 every other learner has significantly more regret (simultaneous 95 % intervals of paired "
        "differences).",
    ]
    assert said[3].startswith("On 0 of these 2 every other")
    assert [line for line in said if "not significantly" in line] == [
        f"On {mdp} with tuned multipliers, psrl is not significantly better than ucrl2: the interval of the difference "
        "includes 0."
        for mdp in ("riverswim/6", "deep-sea/5")
    ]


def test_rounding_is_no_difference(found):
    """RAVI-UCB with published constants plays uniformly here; 1e-9 apart is within the certified error."""
    section = found["sections"][0]
    assert section.standings[0].matrix["ravi-ucb", "uniform"].estimate == 0.5
    costs = {(cost.task, cost.theory.line.label): cost for cost in section.costs}
    assert costs["riverswim/6", "ravi-ucb"].uniform[:3] == (0, 0, 0)
    assert costs["riverswim/6", "ravi-ucb"].more.low > 0


def test_who_knows_the_kernel_is_not_ranked(found):
    section = found["sections"][0]
    for sheet in section.sheets:
        row = row_of(sheet.panel, "ravi-ucb/known", "tuned")
        assert (row.oracle, row.rank, row.place, row.behind) == (True, "", 0, None)
    assert "ravi-ucb/known" not in section.standings[0].rivals


FOUR = ["ucrl2", "psrl", "mbie-eb", "uniform"]


def alone(tmp_path, learners, regret=None, **how):
    """The section of one MDP with constants as given."""
    section = {"name": "one", "mdps": ["trap"], "learners": learners}
    suite = {**SUITE, "columns": ["given"], "sections": [section]}
    (held,) = read(made(tmp_path, suite, regret=regret, **how))
    return held.sheets[0].panel


def test_who_agrees_to_the_certified_error_shares_a_place_and_the_best_comes_first(tmp_path):
    """PSRL has the least mean, by rounding; UCRL2, the first of those that agree, is the best."""
    less = {"ucrl2": 100 + 1e-8, "psrl": 100.0, "mbie-eb": 200.0, "uniform": 300.0}
    panel = alone(tmp_path, FOUR, lambda entry, seed: less[entry.label])
    rows = {row.line.label: row for row in panel.of("given")}
    places = {"ucrl2": 1, "psrl": 1, "mbie-eb": 3, "uniform": 4}
    assert {label: row.place for label, row in rows.items()} == places
    assert [row.line.label for row in panel.ordered("given")] == FOUR
    assert rows["ucrl2"].rank == "best"
    assert rows["ucrl2"].front  # psrl is faster, but has not less regret
    assert not rows["uniform"].front
    (line,) = plain(words.ties(panel, "given"))
    assert "ucrl2 is not significantly better than psrl:" in line
    assert "ucrl2 has the smallest mean regret" in plain(words.standing([panel], "given"))[0]


def test_places_count_from_the_best_and_not_from_the_least(tmp_path):
    """MBIE-EB agrees with UCRL2, the best, though not with PSRL, which agrees with UCRL2 too."""
    less = {"ucrl2": 100 + 1.5e-8, "psrl": 100.0, "mbie-eb": 100 + 3e-8, "uniform": 300.0}
    panel = alone(tmp_path, FOUR, lambda entry, seed: less[entry.label])
    ranked = [(row.rank, row.place) for row in panel.of("given")]
    assert ranked == [("best", 1), ("tie", 1), ("tie", 1), ("behind", 4)]


def test_many_ties_are_counted_and_names_are_escaped(tmp_path):
    learners = [{"id": f"ravi-ucb,scale={k}.5", "label": f"<{k}>"} for k in range(6)]
    panel = alone(tmp_path, learners, lambda entry, seed: 100.0)
    (line,) = words.ties(panel, "given")
    assert "&lt;1&gt;</b>, <b" in line
    assert line.endswith("</b> and 2 more: the interval of the difference includes 0.")


def test_nothing_is_divided_by_a_regret_of_0(tmp_path):
    suite = {**SUITE, "sections": [SUITE["sections"][1]]}
    tiny = {"regret": lambda entry, seed: 1.6e-11 if entry.column == "tuned" else 10.0}
    (section,) = read(made(tmp_path, suite, **tiny))
    assert section.costs
    assert all(math.isnan(cost.ratio) for cost in section.costs)


def test_who_has_no_rival_is_not_the_best(tmp_path):
    panel = alone(tmp_path, ["psrl", "ravi-ucb/known"])
    assert [row.rank for row in panel.of("given")] == ["", ""]
    panel = alone(tmp_path / "two", ["psrl", "ucrl2"], skips=lambda entry, seed: entry.label == "ucrl2")
    assert [row.rank for row in panel.of("given")] == [""]


def test_who_has_no_finished_run_says_why(tmp_path):
    panel = alone(
        tmp_path, FOUR, skips=lambda entry, seed: entry.label == "psrl" or (entry.label == "uniform" and seed > 4),
        fails=lambda entry, seed: "Error" if entry.label in ("mbie-eb", "uniform") else None,
    )  # fmt: skip
    why = ["", "not run yet (0 of 12 seeds)", "failed (12 of 12 seeds)", "0 of 12 seeds, 5 failed"]
    assert [row.why for row in panel.rows] == why


def test_regret_within_its_certified_error_is_0(tmp_path):
    panel = alone(tmp_path, FOUR, lambda entry, seed: 1.6e-11 if entry.label == "psrl" else 10.0)
    assert [row.zero for row in panel.rows] == [False, True, False, False]
    best = "psrl has the smallest mean regret of the 4 learners with constants as given: 0 (to its certified error)."
    assert best in plain(words.standing([panel], "given"))[0]


@pytest.mark.parametrize(("seeds", "word"), [(1, "supports no comparison"), (4, "few"), (12, "")])
def test_few_seeds_are_said_to_be_few(tmp_path, seeds, word):
    sentence = words.seeds([seeds])
    assert f"over {seeds} seed" in sentence
    assert word in sentence if word else sentence == "Means are over 12 seeds."
    suite = {**SUITE, "seeds": seeds, "columns": ["theory"], "sections": [SUITE["sections"][1]]}
    (section,) = read(made(tmp_path, suite))
    spoken = " ".join(plain(words.standing([section.sheets[0].panel], "theory")))
    assert ("no difference between learners is supported" in spoken) == (seeds == 1)
    assert not words.ties(section.sheets[0].panel, "theory") or seeds > 1


COMPLETE = {
    (0, 0, 0, 0): "The suite asks for no runs.",
    (4, 4, 0, 0): "All 4 runs are done.",
    (1, 0, 0, 0): "0 of 1 run is done. 1 are missing: what follows is about the rest.",
    (10, 6, 1, 2): (
        "6 of 10 runs are done. 1 run failed. 3 are missing: what follows is about the rest. 2 lines wait for tuning."
    ),
}


@pytest.mark.parametrize("numbers", COMPLETE)
def test_incomplete_folders_say_so(numbers):
    assert " ".join(words.completeness(*numbers)) == COMPLETE[numbers]


def test_numbers_of_the_page_have_a_true_minus_and_an_interval_where_it_has_ends():
    def shown(*found):
        return re.sub("<[^>]*>", "", words.estimate(Interval(*found, LEVEL)))

    assert shown(100.0, 90.04, 111.0) == "100 [90, 111]"
    assert shown(0.0, -50.0, 50.0) == "0 [−50, 50]"
    assert shown(1.0, -math.inf, math.inf) == "1.000"
    assert (words.estimate(None), words.number(None), words.number(-2.5)) == ("–", "–", "−2.5")
