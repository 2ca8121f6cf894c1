"""Words: every number in them is computed again from the runs, and nothing is said that no interval supports."""

import math
import re

import numpy as np
import pytest

import ravi
from ravi.lab.report.page import words
from ravi.lab.report.page.analysis import LEVEL, studied
from ravi.lab.report.page.content import content
from ravi.lab.report.page.data import parts
from ravi.lab.report.page.numbers import Name, Number, range_of, written
from ravi.statistics import growth, interval
from ravi.statistics.intervals import Interval
from ravi.statistics.rates import Exponent, Measured, Rate
from tests.lab.report.folders import drawn, made, text_of

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
FIXED = {"0", "1", "2", "95"}  # in words: an interval that includes 0, 1/2, 95 %


def close(entry, seed):
    """PSRL and UCRL2 nearly the same when tuned; RAVI-UCB as uniform when published."""
    if entry.label == "ravi-ucb" and entry.column == "theory":
        return 2000.0 + 1e-9 * seed
    if entry.label == "uniform":
        return 2000.0
    if entry.label == "psrl" or (entry.label == "ucrl2" and entry.column == "tuned"):
        return 100.0 + 10 * math.sin(7 * seed + len(entry.label))
    if entry.label == "mbie-eb":  # tuning changes nothing that can be told
        return 500.0 + 100 * math.sin(5 * seed + len(entry.column))
    return drawn(entry, seed)


def power(entry, seed):
    """With intervals below 1/2, on both sides of 1, and between."""
    return {"psrl": 0.3, "mbie-eb": 1 + 0.3 * math.sin(3 * seed)}.get(entry.label, 0.6)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return ravi.results(made(tmp_path_factory.mktemp("words"), SUITE, regret=close, power=power))


@pytest.fixture(scope="module")
def told(found):
    return content(found, None)


def said(told):
    """Every sentence of the page."""
    sentences = [*told["complete"], *told["seeds"], *told["scaling"], *told["edges"]]
    for head, each in told["summaries"].values():
        sentences += [*head, *each]
    return sentences


class Again:
    """Numbers of the words, computed from the runs without the page's code."""

    def __init__(self, found):
        self.found = found
        self.lines = found.entries.to_pylist()

    def runs(self, section, column, task, label):
        seeds, regret = self.found.regret(section=section, column=column, mdp=task, label=label)
        return dict(zip(seeds.tolist(), regret.tolist(), strict=True))

    def tasks(self, section):
        return list(dict.fromkeys(row["mdp"] for row in self.lines if row["section"] == section))

    def rivals(self, section, column, task):
        """Labels by mean regret, without those that are told the kernel."""
        labels = [
            row["label"] for row in self.lines
            if (row["section"], row["column"], row["mdp"]) == (section, column, task) and "known" not in row["learner"]
        ]  # fmt: skip
        return sorted(labels, key=lambda label: np.mean(list(self.runs(section, column, task, label).values())))

    def difference(self, one, two, level=0.95):
        """Two minus one by seed, 0 where it is rounding."""
        shared = sorted(set(one) & set(two))
        gaps = np.array([two[seed] - one[seed] for seed in shared])
        return interval(np.where(np.abs(gaps) < 1e-7, 0.0, gaps), level=level)

    def behind(self, section, column, task, label):
        """Holm: all are looked at together; who is worse leaves, and the rest is looked at again."""
        first, *left = self.rivals(section, column, task)
        runs = {name: self.runs(section, column, task, name) for name in (first, *left)}
        found = {}
        while left:
            level = 1 - 0.05 / len(left)
            found |= {name: self.difference(runs[first], runs[name], level=level) for name in left}
            stay = [name for name in left if found[name].low <= 0]
            left = [] if len(stay) == len(left) else stay
        return found[label]

    def costs(self, section):
        """(task, label): tuned runs, published runs, of every learner that has a multiplier."""
        tunable = {(record["mdp"], record["learner"]) for record in self.found.tuning.values()}
        labels = {row["label"] for row in self.lines if row["section"] == section}
        return {
            (task, label): tuple(self.runs(section, column, task, label) for column in ("tuned", "theory"))
            for task in self.tasks(section) for label in labels if (task, label) in tunable
        }  # fmt: skip

    def rates(self, section, column):
        made = []
        for task in self.tasks(section):
            for label in self.rivals(section, column, task):
                if label != "uniform":
                    times, _, curves = self.found.curves(section=section, column=column, mdp=task, label=label)
                    made.append(growth(times, curves))
        return made

    def number(self, what):
        kind, *of = what
        counts = self.found.counts
        if kind in ("estimate", "low", "high"):
            return getattr(self.interval(*of), kind)
        if kind in ("done", "planned", "failed"):
            return getattr(counts, kind)
        if kind in ("tuned", "at the edge"):  # step_scale was chosen at the edge of its range
            chosen = [record["configurations"][record["chosen"]] for record in self.found.tuning.values()]
            return sum(kind == "tuned" or one["step_scale"] is not None for one in chosen)
        if kind in ("least seeds", "most seeds"):
            return 12
        if kind in ("contested", "wins", "clear"):
            section, column, *label = of
            orders = [self.rivals(section, column, task) for task in self.tasks(section)]
            if kind == "contested":
                return len(orders)
            if kind == "wins":
                return sum(order[0] == label[0] for order in orders)
            return sum(
                all(self.behind(section, column, task, name).low > 0 for name in order[1:])
                for task, order in zip(self.tasks(section), orders, strict=True)
            )
        if kind in ("place", "rivals", "more ties"):
            section, column, task, *label = of
            order = self.rivals(section, column, task)
            if kind == "more ties":
                return sum(self.behind(section, column, task, name).low <= 0 for name in order[1:]) - words.NAMED
            means = {name: np.mean(list(self.runs(section, column, task, name).values())) for name in order}
            return len(order) if kind == "rivals" else 1 + sum(m < means[label[0]] - 1e-7 for m in means.values())
        if kind in ("sublinear", "grown", "root", "above root"):
            rates = self.rates(*of)
            test = {
                "sublinear": lambda r: r.high < 1,
                "root": lambda r: r.high < 0.5,
                "above root": lambda r: r.low > 0.5,
            }
            return sum(map(test.get(kind, lambda r: True), rates))
        return self.cost(kind, *of)

    def interval(self, kind, *of):
        if kind == "regret":
            section, column, task, label = of
            return interval(np.array(list(self.runs(section, column, task, label).values())))
        if kind == "behind":
            return self.behind(*of)
        section, task, label = of
        tuned, published = self.costs(section)[task, label]
        uniform = self.runs(section, "theory", task, "uniform")
        if kind == "cost":
            return self.difference(tuned, published)
        return self.difference(*((published, uniform) if kind == "uniform" else (uniform, published)))

    def cost(self, kind, section, *of):
        held = self.costs(section)
        ratios = {key: np.mean([*p.values()]) / np.mean([*t.values()]) for key, (t, p) in held.items()}
        if kind == "ratio":
            return ratios[tuple(of)]
        if kind in ("median ratio", "least ratio", "largest ratio"):
            return {"median": np.median, "least": min, "largest": max}[kind.split()[0]](list(ratios.values()))
        if kind in ("cheaper", "dearer", "unclear", "costs"):
            ends = [self.difference(*pair) for pair in held.values()]
            test = {"cheaper": lambda i: i.low > 0, "dearer": lambda i: i.high < 0, "costs": lambda i: True}
            return sum(map(test.get(kind, lambda i: i.low <= 0 <= i.high), ends))
        against = [
            self.difference(p, self.runs(section, "theory", task, "uniform")) for (task, _), (_, p) in held.items()
        ]
        return {"below uniform": sum(i.low > 0 for i in against), "against uniform": len(against)}[kind]


def test_every_number_in_the_words_is_computed_again_from_the_runs(found, told):
    again, seen = Again(found), set()
    for sentence in said(told):
        for part in sentence:
            if isinstance(part, Number):
                assert part.value == pytest.approx(again.number(part.what), rel=1e-9, abs=1e-7), part
                seen.add(part.what[0] if part.what[0] not in ("estimate", "low", "high") else part.what[1])
    assert seen >= {"at the edge", "root", "unclear"}
    assert seen >= {"regret", "behind", "cost", "wins", "contested", "clear", "place", "ratio", "cheaper", "sublinear"}


def test_words_hold_no_number_that_they_do_not_carry(told):
    for sentence in said(told):
        for part in sentence:
            if isinstance(part, str):
                assert set(re.findall(r"\d+", part)) <= FIXED, part
            elif isinstance(part, Number):
                assert part.shown in (written(part.value), f"{int(part.value):,}") or part.what[0] in ("low", "high")


def test_what_may_be_zero_is_called_a_tie_and_what_is_not_is_not(found, told):
    (study, _) = told["studies"]
    lines = [text_of(sentence) for sentence in told["summaries"][study.part.anchor][1]]
    again = Again(found)
    for task in again.tasks("two"):
        order = again.rivals("two", "tuned", task)
        ties = {name for name in order[1:] if again.behind("two", "tuned", task, name).low <= 0}
        assert ties  # psrl and ucrl2 were made alike
        line = next(line for line in lines if f"On {task} with tuned" in line and "not significantly better" in line)
        assert {name for name in order[1:] if re.search(rf"\b{name} \(", line)} == ties


def test_rounding_is_no_difference(told):
    """RAVI-UCB with published constants plays uniformly here; 1e-9 apart is within the certified error."""
    lines = [text_of(sentence) for _, each in told["summaries"].values() for sentence in each]
    assert any("it is that of uniform actions, to the certified error" in line for line in lines)
    assert not any("10⁻" in line for line in lines)
    study = told["studies"][0]
    standing = study.standings[0]
    assert standing.matrix["ravi-ucb", "uniform"].estimate == 0.5


FOUR = ["ucrl2", "psrl", "mbie-eb", "uniform"]


def alone(tmp_path, learners, regret=None, **how):
    """The study of one MDP with constants as given."""
    section = {"name": "one", "mdps": ["trap"], "learners": learners}
    suite = {**SUITE, "columns": ["given"], "sections": [section]}
    (part,) = parts(ravi.results(made(tmp_path, suite, regret=regret, **how)))
    return studied(part), part.panels[0]


def test_who_agrees_to_the_certified_error_shares_a_place_and_the_best_comes_first(tmp_path):
    """PSRL has the least mean, by rounding; UCRL2, the first of those that agree, is the best."""
    less = {"ucrl2": 100 + 1e-8, "psrl": 100.0, "mbie-eb": 200.0, "uniform": 300.0}
    study, panel = alone(tmp_path, FOUR, lambda entry, seed: less[entry.label])
    told = {one.line.label: one for one in study.of(panel, "given")}
    assert {label: one.place for label, one in told.items()} == {"ucrl2": 1, "psrl": 1, "mbie-eb": 3, "uniform": 4}
    assert [one.line.label for one in study.ordered(panel, "given")] == FOUR
    assert told["ucrl2"].rank == "best"
    assert told["ucrl2"].front  # psrl is faster, but has not less regret
    assert not told["uniform"].front
    (line,) = [text_of(one) for one in words.on(study, panel, "given") if "not significantly better" in text_of(one)]
    assert "ucrl2 (mean regret 100.0 [100.0, 100.0]) is not significantly better than psrl (0" in line
    assert "ucrl2 has the smallest mean regret" in text_of(words.standing(study, "given")[0])


def test_places_count_from_the_best_and_not_from_the_least(tmp_path):
    """MBIE-EB agrees with UCRL2, the best, though not with PSRL, which agrees with UCRL2 too."""
    less = {"ucrl2": 100 + 1.5e-8, "psrl": 100.0, "mbie-eb": 100 + 3e-8, "uniform": 300.0}
    study, panel = alone(tmp_path, FOUR, lambda entry, seed: less[entry.label])
    assert [(one.rank, one.place) for one in study.of(panel, "given")] == [
        ("best", 1), ("tie", 1), ("tie", 1), ("behind", 4),
    ]  # fmt: skip


def test_nothing_is_divided_by_a_regret_of_0(tmp_path):
    def regret(entry, seed):
        return 1.6e-11 if entry.column == "tuned" else 10.0

    suite = {**SUITE, "sections": [SUITE["sections"][1]]}
    found = content(ravi.results(made(tmp_path, suite, regret=regret)), None)
    costs = found["studies"][0].costs
    assert costs
    assert all(math.isnan(cost.ratio) for cost in costs)


def test_who_has_no_rival_is_not_the_best(tmp_path):
    study, panel = alone(tmp_path, ["psrl", "ravi-ucb/known"])
    assert [one.rank for one in study.of(panel, "given")] == ["", ""]
    study, panel = alone(tmp_path / "two", ["psrl", "ucrl2"], skips=lambda entry, seed: entry.label == "ucrl2")
    assert [one.rank for one in study.of(panel, "given")] == [""]


def test_who_has_no_finished_run_is_named(tmp_path):
    study, panel = alone(
        tmp_path, FOUR, skips=lambda entry, seed: entry.label == "psrl" or (entry.label == "uniform" and seed > 4),
        fails=lambda entry, seed: "Error" if entry.label in ("mbie-eb", "uniform") else None,
    )  # fmt: skip
    (line,) = words.absent(study, "given")
    named = "psrl on trap, mbie-eb on trap and uniform on trap"
    assert text_of(line) == f"With constants as given, there is no finished run of {named}."
    why = ["", "not run yet", "failed (12 of 12)", "failed (5 of 12), 7 not run yet"]
    assert [line.without for line in panel.lines] == why
    assert not words.absent(alone(tmp_path / "all", FOUR)[0], "given")


def test_regret_within_its_certified_error_is_0(tmp_path):
    study, panel = alone(tmp_path, FOUR, lambda entry, seed: 1.6e-11 if entry.label == "psrl" else 10.0)
    assert [line.nothing for line in panel.lines] == [False, True, False, False]
    said = "psrl has the smallest mean regret of the 4 learners with constants as given: 0 (to its certified error)."
    assert said in text_of(words.standing(study, "given")[0])


@pytest.mark.parametrize(
    ("low", "high", "tally"), [(0.5 + 1e-12, 0.9, (0, 0, 1)), (0.2, 0.5 - 1e-12, (0, 0, 1)), (0.2, 0.4, (1, 0, 0)),
                               (0.6, 0.9, (0, 1, 0))],
)  # fmt: skip
def test_an_exponent_that_an_end_touches_is_included(tmp_path, low, high, tally):
    rate = Rate(0.5, low, high, LEVEL, 5)
    theory = Exponent(0.5, (0.5,), "a theorem")
    one = Measured(*({"rate": rate, "theory": theory}.get(name) for name in Measured._fields))
    (line,) = words.scaling([one])
    assert tuple(part.value for part in line if isinstance(part, Number))[1:] == tally
    study, panel = alone(tmp_path, FOUR[:1])
    ((key, told),) = study.told[panel.anchor].items()
    grown = told._replace(shape=told.shape._replace(growth=rate))
    (line,) = words.growth(study._replace(told={panel.anchor: {key: grown}}), "given")
    _, _, below, above = (part.value for part in line if isinstance(part, Number))
    assert (below, above) == tally[:2]


def test_an_exponent_of_1_is_not_below_1(tmp_path):
    study, panel = alone(tmp_path, FOUR[:1])
    ((key, told),) = study.told[panel.anchor].items()
    rate = Rate(1.0, 0.9, 1 - 1e-12, LEVEL, 5)
    grown = told._replace(shape=told.shape._replace(growth=rate))
    (line,) = words.growth(study._replace(told={panel.anchor: {key: grown}}), "given")
    assert next(part.value for part in line if isinstance(part, Number)) == 0


def test_who_is_told_the_kernel_is_not_ranked(told):
    study = told["studies"][0]
    assert "ravi-ucb/known knows the kernel, and is not ranked." in map(text_of, words.out_of_competition(study))
    for panel in study.part.panels:
        oracle = study.told[panel.anchor]["ravi-ucb/known", "tuned"]
        assert (oracle.rank, oracle.place, oracle.behind) == ("", 0, None)
    assert "ravi-ucb/known" not in study.standings[0].rivals


@pytest.mark.parametrize(("seeds", "word"), [(1, "supports no comparison"), (4, "few"), (12, "")])
def test_few_seeds_are_said_to_be_few(tmp_path, seeds, word):
    suite = {**SUITE, "seeds": seeds, "columns": ["theory"], "sections": [SUITE["sections"][1]]}
    held = parts(ravi.results(made(tmp_path, suite)))
    (sentence,) = words.seeds(held)
    text = text_of(sentence)
    assert f"over {seeds} seed" in text
    assert word in text if word else text == "Means are over 12 seeds."
    spoken = [text_of(one) for one in words.standing(studied(held[0]), "theory")]
    assert ("no difference between learners is supported" in " ".join(spoken)) == (seeds == 1)
    assert not words.on(studied(held[0]), held[0].panels[0], "theory") or seeds > 1


def test_incomplete_folders_say_so():
    text = " ".join(map(text_of, words.completeness(10, 6, 1, 2)))
    assert text == (
        "6 of 10 runs are done. 1 run failed. 3 are missing: what follows is about the rest. 2 lines wait for tuning."
    )
    assert text_of(words.completeness(4, 4, 0, 0)[0]) == "All 4 runs are done."
    assert text_of(words.completeness(1, 0, 0, 0)[0]) == "0 of 1 run is done."


@pytest.mark.parametrize(
    ("value", "text"),
    [(12345.6, "12,346"), (-123.45, "−123.5"), (12.346, "12.35"), (1.5, "1.500"), (0, "0"), (math.nan, "–"),
     (math.inf, "∞"), (2.5e-7, "2.5 × 10⁻⁷"), (-0.0001, "−1.0 × 10⁻⁴")],
)  # fmt: skip
def test_numbers_are_written_with_four_digits(value, text):
    assert written(value) == text


def test_an_interval_has_the_decimals_of_its_estimate_and_none_without_ends():
    assert range_of(Interval(100.0, 90.04, 111.0, LEVEL)) == "[90.0, 111.0]"
    assert range_of(Interval(0.0, -50.0, 50.0, LEVEL)) == "[−50.00, 50.00]"
    assert range_of(Interval(1.0, -math.inf, math.inf, LEVEL)) == ""


def test_names_are_kept_apart_from_words(told):
    names = {part.text for sentence in said(told) for part in sentence if isinstance(part, Name)}
    assert names <= {*LEARNERS, "riverswim/6", "deep-sea/5", "trap"}
