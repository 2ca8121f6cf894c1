"""Suites as data: what they mean, and that every mistake is told, all at once, each with its place."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ravi import ids, validation
from ravi.ids import allow_imports
from ravi.lab.experiments.mistakes import lines
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.suite import FIRST_TUNING_SEED, Section, Suite, Tuning, differences
from ravi.validation import InputError

SECTION = {"name": "s", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "uniform"], "steps": 1e3, "seeds": 4}


def suite_of(**changes):
    """A suite of one section, with these changes to it."""
    return {"name": "mine", "sections": [SECTION | changes]}


def told(source, **options):
    """The mistakes, line by line."""
    with pytest.raises(InputError) as caught:
        specify(source, **options)
    return str(caught.value).split("\n")


def put(folder, text, name="mine.toml"):
    path = folder / name
    path.write_text(text)
    return path


# What a suite means.


def test_a_file_gives_what_it_says(tmp_path):
    path = put(
        tmp_path,
        """
        title = "A title"
        steps = 1e3
        seeds = 4
        columns = ["theory", "tuned"]
        [tuning]
        budget = 3
        seeds = 2
        scale = [1e-3, 1]
        sampler = "optuna"
        [[sections]]
        name = "one"
        remark = "why"
        mdps = ["riverswim/4"]
        learners = ["ravi-ucb", { id = "ucrl2", label = "UCRL2" }]
        [[sections]]
        name = "two"
        mdps = ["trap"]
        learners = ["psrl"]
        steps = [10, 20]
        seeds = "5-8"
        points = 7
        record = ["trajectory"]
        columns = ["given"]
        """,
    )
    one = Section(
        "one",
        ("riverswim/4",),
        {"ravi-ucb": "ravi-ucb", "UCRL2": "ucrl2"},
        (1000,),
        (0, 1, 2, 3),
        ("theory", "tuned"),
        remark="why",
    )
    two = Section("two", ("trap",), {"psrl": "psrl"}, (10, 20), (5, 6, 7, 8), ("given",), 7, ("trajectory",))
    tuning = Tuning(3, (FIRST_TUNING_SEED, FIRST_TUNING_SEED + 1), (1e-3, 1.0), Tuning.step_scale, "optuna")
    assert specify(path) == Suite("mine", (one, two), "A title", tuning)
    assert specify(str(path)) == specify(path)


def test_a_table_of_options_is_a_grid():
    made = specify(
        suite_of(
            mdps=[{"id": "garnet/5,2,2", "options": {"seed": [0, 1], "discount": [0.9, 0.99]}}],
            learners=["ucrl2b", {"id": "ucrl2", "label": "UCRL2", "options": {"mode": ["aware", "blind"]}}],
            options={"delta": [0.1, 1e-5]},
        )
    ).sections[0]
    assert made.mdps == tuple(f"garnet/5,2,2,seed={s},discount={g}" for s in (0, 1) for g in (0.9, 0.99))
    assert made.learners == {
        "ucrl2b,delta=0.1": "ucrl2b,delta=0.1",
        "ucrl2b,delta=1e-05": "ucrl2b,delta=1e-05",
        "UCRL2, mode=aware, delta=0.1": "ucrl2,mode=aware,delta=0.1",
        "UCRL2, mode=aware, delta=1e-05": "ucrl2,mode=aware,delta=1e-05",
        "UCRL2, mode=blind, delta=0.1": "ucrl2,mode=blind,delta=0.1",
        "UCRL2, mode=blind, delta=1e-05": "ucrl2,mode=blind,delta=1e-05",
    }


def test_one_value_is_a_list_of_one_and_leaves_a_label_alone():
    made = specify(suite_of(learners=[{"id": "ucrl2", "label": "mine", "options": {"delta": 0.1, "mode": ["blind"]}}]))
    assert made.sections[0].learners == {"mine": "ucrl2,delta=0.1,mode=blind"}


def test_entries_are_all_combinations_in_order():
    made = specify(suite_of(mdps=["trap", "bandit"], steps=[10, 20], columns=["theory", "given"]))
    wanted = [
        (m, T, l, c)
        for m in ("trap", "bandit")
        for T in (10, 20)
        for l in ("ravi-ucb", "uniform")
        for c in ("theory", "given")
    ]
    assert [(e.mdp, e.steps, e.learner, e.column) for e in made.entries] == wanted
    assert sum(len(entry.seeds) for entry in made.entries) == len(wanted) * 4


@pytest.mark.parametrize(
    ("seeds", "wanted"),
    [
        (3, (0, 1, 2)),
        ("3", (0, 1, 2)),
        ("5-7", (5, 6, 7)),
        ("1,7,9-10", (1, 7, 9, 10)),
        ([4, 2], (4, 2)),
        (2.0, (0, 1)),
    ],
)
def test_seeds_can_be_said_in_many_ways(seeds, wanted):
    assert specify(suite_of(seeds=seeds)).sections[0].seeds == wanted
    assert specify(suite_of(), seeds=seeds).sections[0].seeds == wanted
    assert validation.seeds(seeds) == list(wanted)


def test_tuning_seeds_are_counted_from_a_million_unless_listed():
    for said, wanted in ((2, (10**6, 10**6 + 1)), ("2", (10**6, 10**6 + 1)), ("7-8", (7, 8)), ([9], (9,))):
        assert specify(suite_of() | {"tuning": {"seeds": said}}).tuning.seeds == wanted


def test_learners_with_nothing_to_tune_may_be_tuned():
    learners = ["psrl", "uniform", "optimum", "certainty-equivalent"]
    assert list(specify(suite_of(learners=learners, columns=["tuned"])).sections[0].learners) == learners


def test_ids_are_taken_as_they_are_in_the_column_given():
    assert specify(suite_of(learners=["ravi-ucb,scale=0.1,eta=1", "r-max,m=3"], columns=["given"]))


# Round trip.


def test_a_suite_comes_back_from_json(tmp_path):
    made = specify(
        suite_of(
            mdps=[{"id": "garnet/5,2,2", "options": {"seed": [0, 1]}}],
            learners=["ravi-ucb", {"id": "ucrl2", "label": "U", "options": {"mode": ["aware", "blind"]}}],
            record=["reward"],
            columns=["theory", "tuned"],
            remark="why",
            seeds="3-5",
        )
        | {"title": "t", "tuning": {"budget": 3, "scale": [1e-5, 0.3], "seeds": [77]}}
    )
    again = specify(json.loads(json.dumps(made.plain())))
    assert again == made
    assert again.plain() == made.plain()


def test_a_file_and_the_same_python_data_are_the_same_suite(tmp_path):
    path = put(tmp_path, 'steps = 10\nseeds = 2\n[[sections]]\nname = "s"\nmdps = ["trap"]\nlearners = ["psrl"]')
    section = {"name": "s", "mdps": ("trap",), "learners": ("psrl",)}
    assert specify(path) == specify({"name": "mine", "steps": 10, "seeds": range(2), "sections": (section,)})


def test_what_differs_is_said_line_by_line():
    old = specify(suite_of()).plain()
    assert differences(old, old) == []
    new = specify(suite_of(steps=2e3, learners=["ravi-ucb", "psrl"], seeds=8) | {"tuning": {"budget": 5}}).plain()
    assert differences(old, new) == [
        "tuning: budget is 5; it was 20",
        "section 's': steps is [2000]; it was [1000]",
        "section 's': seeds is 8 numbers from 0 to 7; it was 4 numbers from 0 to 3",
        "section 's': learner 'uniform' is gone",
        "section 's': learner 'psrl' is new",
    ]


def test_an_order_that_differs_is_a_difference():
    old, new = (specify(suite_of(learners=l)).plain() for l in (["psrl", "uniform"], ["uniform", "psrl"]))
    assert differences(old, new) == ["the order of sections or learners is another"]


def test_a_section_more_is_one_difference():
    more = suite_of()
    more["sections"].append(SECTION | {"name": "t"})
    assert differences(specify(suite_of()).plain(), specify(more).plain()) == ["section 't' is new"]


# Mistakes. Each of these is the only one of its suite.

MISTAKES = [  # what is changed in the section
    ("stepz = 3", "sections[0].stepz: there is no key 'stepz'. Did you mean steps"),
    ("name = 3", "sections[0].name: 3 is not a text"),
    ("remark = 3", "sections[0].remark: 3 is not a text"),
    ("steps = 0", "sections[0].steps[0]: steps (T) is 0; it must be at least 1"),
    ('steps = "many"', "sections[0].steps[0]: steps (T) is 'many', not a number"),
    ("steps = [10, 10.5]", "sections[0].steps[1]: steps (T) is 10.5, not a whole number"),
    ("steps = [10, 20, 10.0]", "sections[0].steps[2]: 10.0 stands in the list twice"),
    ("steps = []", "sections[0].steps: the list is empty"),
    ("steps = true", "sections[0].steps[0]: steps (T) is True, not a number"),
    ('seeds = "1,7,1"', "sections[0].seeds: seeds names seed 1 twice"),
    ("seeds = [1, 2, 1]", "sections[0].seeds: seeds names seed 1 twice"),
    ('seeds = "7-5"', "sections[0].seeds: seeds is '7-5'; a range goes upwards: 5-7"),
    ("seeds = []", "sections[0].seeds: seeds is empty"),
    ("seeds = [-1]", "sections[0].seeds: seeds[0] is -1; it must be at least 0"),
    ("seeds = {a = 1}", "sections[0].seeds: seeds is {'a': 1}, not a number of seeds, a text"),
    ("seeds = [true]", "sections[0].seeds: seeds[0] is True, not a number"),
    ("points = 0", "sections[0].points: points is 0; it must be at least 1"),
    ('record = ["rewards"]', "sections[0].record[0]: record is 'rewards', not one of reward, trajectory. Did you mean"),
    ('record = "reward"', "sections[0].record: 'reward' is not a list"),
    ('record = ["reward", "reward"]', "sections[0].record[1]: 'reward' stands in the list twice"),
    (
        'columns = ["tunde"]',
        "sections[0].columns[0]: a column is 'tunde', not one of theory, tuned, given. Did you mean",
    ),
    ("columns = []", "sections[0].columns: the list is empty"),
    ('columns = ["given", "given"]', "sections[0].columns[1]: 'given' stands in the list twice"),
    ("mdps = []", "sections[0].mdps: the list is empty"),
    ('mdps = "trap"', "sections[0].mdps: 'trap' is not a list"),
    ('mdps = ["trap", 3]', "sections[0].mdps[1]: 3 is neither an id nor a table with id, options"),
    ("mdps = [{options = {seed = 1}}]", "sections[0].mdps[0]: id missing"),
    ('mdps = [{id = "trap", label = "x"}]', "sections[0].mdps[0].label: there is no key 'label'. Known: id, options"),
    ('mdps = ["trap", "trap"]', "sections[0].mdps[1]: trap stands in the list twice"),
    ('mdps = ["trap", "trap,discount=0.95"]', "sections[0].mdps[1]: trap,discount=0.95 is the same MDP as trap"),
    ('mdps = ["riverswm/6"]', "sections[0].mdps[0]: there is no MDP 'riverswm/6', and no such file in"),
    ('mdps = ["riverswm/6,discount=0.95"]', "Did you mean riverswim or riverswim/mixture?"),
    ('mdps = ["garnet/5,2,9"]', "sections[0].mdps[0]: branching is 9; it must be at most 5"),
    ('mdps = ["garnet/5,2"]', "sections[0].mdps[0]: garnet/5,2: branching missing; it takes states"),
    (
        'mdps = [{id = "garnet/5,2,2", options = {seed = [0, 1], discont = 0.9}}]',
        "sections[0].mdps[0]: garnet/5,2,2,seed=0,discont=0.9: there is no option 'discont'; it takes states",
    ),
    ("learners = []", "sections[0].learners: the list is empty"),
    ("learners = [3]", "sections[0].learners[0]: 3 is neither an id nor a table with id, label, options"),
    ("learners = [{id = 3}]", "sections[0].learners[0].id: 3 is not a text"),
    ('learners = [{id = "psrl", lable = "x"}]', "learners[0].lable: there is no key 'lable'. Did you mean label?"),
    ('learners = ["psrl", "psrl"]', "sections[0].learners[1]: there are two learners with the label 'psrl'"),
    (
        'learners = ["psrl", {id = "ucrl2", label = "psrl"}]',
        "sections[0].learners[1]: there are two learners with the label 'psrl'",
    ),
    (
        'learners = ["ucrl2", {id = "ucrl2,mode=aware", label = "U"}]',
        "sections[0].learners[1]: ucrl2,mode=aware is the same learner as 'ucrl2'",
    ),
    (
        'learners = ["uniform", "ravi-ucbb"]',
        "sections[0].learners[1]: there is no learner 'ravi-ucbb'. Did you mean ravi-ucb",
    ),
    ('learners = ["ravi-ucb,scal=1"]', "sections[0].learners[0]: ravi-ucb,scal=1: there is no option 'scal'; it takes"),
    ('learners = ["ravi-ucb,scale=x"]', "sections[0].learners[0]: ravi-ucb,scale=x: scale is 'x', not a number"),
    ('learners = ["ravi-ucb,scale=-1"]', "learners[0]: ravi-ucb,scale=-1 cannot run on riverswim/4: scale is -1"),
    (
        'mdps = ["trap", "riverswim/4"], learners = ["ravi-ucb/mixture"]',
        "sections[0].learners[0]: ravi-ucb/mixture cannot run on trap and riverswim/4: the MDP has no features",
    ),
    (
        'learners = [{id = "ucrl2", options = {mode = ["aware", "blnd"]}}]',
        "learners[0]: ucrl2,mode=blnd cannot run on riverswim/4: mode is 'blnd', not one of aware, blind. Did you",
    ),
    (
        'learners = ["uniform"], options = {delta = [0.1, 0.2]}',
        "sections[0].learners[0]: uniform,delta=0.1: there is no option 'delta'; it takes no options",
    ),
    (
        'learners = ["ucrl2,delta=0.1"], options = {delta = [0.2]}',
        "sections[0].learners[0]: ucrl2,delta=0.1,delta=0.2: delta is given twice",
    ),
    ("options = 3", "sections[0].options: 3 is not a table"),
    ('learners = ["ucrl2"], options = {delta = []}', "sections[0].options.delta: the list is empty"),
    (
        'learners = ["ucrl2"], options = {delta = [0.1, 0.1]}',
        "sections[0].options.delta[1]: 0.1 stands in the list twice",
    ),
    ('learners = ["ucrl2"], options = {delta = [true]}', "sections[0].options.delta[0]: True is neither a number nor"),
    (
        'learners = ["ucrl2"], options = {mode = "aware,delta=1"}',
        "sections[0].options.mode: 'aware,delta=1' cannot stand",
    ),
    (
        'seeds = [3, 1000000], columns = ["tuned"]',
        "sections[0].seeds: seed 1000000 is a tuning seed too; what was tuned on it must not report it",
    ),
]
ABOVE = [  # what is added above it
    ("zebra = 3", "zebra: there is no key 'zebra'. Known: name, title"),
    ("tuning = {budgt = 3}", "tuning.budgt: there is no key 'budgt'. Did you mean budget?"),
    ("tuning = 3", "tuning: 3 is not a table"),
    ("tuning = {budget = 0}", "tuning.budget: budget is 0; it must be at least 1"),
    ("tuning = {budget = true}", "tuning.budget: budget is True, not a number"),
    ("tuning = {scale = [1, 0.1]}", "tuning.scale: scale goes from 1 to 0.1; the smaller one comes"),
    ("tuning = {scale = [0, 1]}", "tuning.scale: scale is 0; it must be positive"),
    ("tuning = {step_scale = 3}", "tuning.step_scale: 3 is not a range [low, high]"),
    ('tuning = {sampler = "latice"}', "tuning.sampler: sampler is 'latice', not one of lattice, optuna. Did"),
    ("tuning = {seeds = 0}", "tuning.seeds: seeds is 0; it must be at least 1"),
    ("name = 3", "name: 3 is not a text"),
    ('name = ""', "name: the text is empty"),
    ('title = ["x"]', "title: ['x'] is not a text"),
    ("sections = []", "sections: the list is empty"),
    ("sections = {}", "sections: {} is not a list"),
    ("sections = [3]", "sections[0]: 3 is not a table"),
]
MISSING = [
    ("name", "sections[0]: name missing"),
    ("mdps", "sections[0]: mdps missing"),
    ("seeds", "sections[0]: seeds missing: give them here, or"),
    ("steps", "sections[0]: steps missing: give them here, or"),
]
DECIDED = ["ravi-ucb,scale=1", "politex,step_scale=2", "npg,eta=1", "ucbvi-gamma,beta=1", "r-max,m=3"]


def toml(text):
    return tomllib.loads(f"x = {{{text}}}")["x"]


ALONE = [
    *((suite_of(**toml(text)), wanted) for text, wanted in MISTAKES),
    *((suite_of() | toml(text), wanted) for text, wanted in ABOVE),
    *(({"sections": [{k: v for k, v in SECTION.items() if k != key}]}, wanted) for key, wanted in MISSING),
    ({"name": "x"}, "sections missing"),
    ({"sections": [SECTION, SECTION]}, "sections[1].name: there are two sections 's'"),
    (
        suite_of(columns=["tuned"]) | {"tuning": {"seeds": "2-9"}},
        "sections[0].seeds: seed 2 (and 1 more) is a tuning seed too",
    ),
    *(
        (
            suite_of(learners=[learner], columns=[column]),
            f'{learner} gives {re.split("[,=]", learner)[1]}: column "{column}" decides that; column "given" takes ids',
        )
        for column in ("theory", "tuned")
        for learner in DECIDED
    ),
]


@pytest.mark.parametrize(("suite", "wanted"), ALONE, ids=[wanted[:60] for _, wanted in ALONE])
def test_a_mistake_is_told_with_its_place(suite, wanted):
    (line,) = told(suite)
    assert wanted in line


def test_a_mistake_in_the_seeds_asked_for_is_told():
    assert told(suite_of(), seeds="x") == ["seeds: seeds is 'x', not a number"]
    assert told(suite_of(columns=["tuned"]), seeds=[10**6])[0].startswith("seeds: seed 1000000 is a tuning seed too")


FILE = """\
title = "many"            # 1
stepz = 3
seeds = 4

[tuning]
budget = "x"

[[sections]]
name = "a"
steps = 100
columns = ["theory"]
mdps = [
  "riverswim/4",
  "riverswm/4",
]
learners = [
  "uniform",
  "ravi-ucbb",            # 18
  "ravi-ucb,scale=0.1", "ravi-ucb/mixture",
  { id = "ucrl2", options = { mode = ["aware",
      "blnd"] } },
]

[[sections]]
name = "a"
mdps = ["trap"]
learners = ["psrl"]
record = ["reward",
  "rewards"]
"""


def test_all_mistakes_are_told_at_once_by_line(tmp_path):
    path = put(tmp_path, FILE)
    places = [re.match(rf"{re.escape(str(path))}:(\d+): ([^:]+): ", line) for line in told(path)]
    assert [(int(place[1]), place[2]) for place in places] == [
        (2, "stepz"),
        (6, "tuning.budget"),
        (14, "sections[0].mdps[1]"),
        (18, "sections[0].learners[1]"),
        (19, "sections[0].learners[2]"),
        (19, "sections[0].learners[3]"),
        (20, "sections[0].learners[4]"),
        (24, "sections[1]"),  # no steps
        (25, "sections[1].name"),
        (29, "sections[1].record[1]"),
    ]


def test_a_value_that_should_be_a_list_has_the_line_of_its_key(tmp_path):
    path = put(tmp_path, BESIDE.format(mdps='"trap"', learners='"psrl"').replace("steps = 10", "steps = 0"))
    assert told(path) == [f"{path}:2: steps[0]: steps (T) is 0; it must be at least 1"]


def test_what_is_known_is_listed_only_where_nothing_is_near():
    near, far = (told(suite_of(learners=[learner]))[0] for learner in ("ravi-ucbb", "zzzzzz"))
    assert near.endswith("?")
    assert "Known: ravi-ucb" in far


def test_tuning_seeds_may_be_reported_where_nothing_is_tuned():
    assert specify(suite_of(columns=["theory", "given"], seeds=[10**6]))


def test_python_data_has_the_same_mistakes_without_lines(tmp_path):
    path = put(tmp_path, FILE)
    here = [re.sub(rf"{re.escape(str(path))}:\d+: ", "", line).replace(str(tmp_path), "") for line in told(path)]
    there = [line.replace(os.getcwd(), "") for line in told(tomllib.loads(FILE))]
    assert sorted(there) == sorted(here)


def test_bad_toml_is_told_with_its_line(tmp_path):
    path = put(tmp_path, 'title = "x"\nsteps = = 3\n')
    assert told(path) == [f"{path}:2: Invalid value (column 9)"]
    assert told(put(tmp_path, "a = 1\na = 2\n"))[0].startswith(f"{path}:2: ")


def test_a_file_that_is_not_text_is_told(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"title = '\xff'")
    assert told(path)[0].startswith(f"cannot read {path}: ")


def test_an_unknown_suite_is_told_with_what_is_near(tmp_path):
    assert told("quik") == ["there is no suite 'quik'. Did you mean quick? A suite may also be a TOML file."]
    assert "there is no suite" in told(tmp_path)[0]
    assert "there is no suite" in told(tmp_path / "none.toml")[0]


def test_without_building_ids_are_taken_as_they_are():
    made = specify(suite_of(mdps=["nowhere/3"], learners=["nobody"]), build=False)
    assert made.sections[0].mdps == ("nowhere/3",)
    assert told(suite_of(mdps=["nowhere/3"], steps=0), build=False) == [
        "sections[0].steps[0]: steps (T) is 0; it must be at least 1"
    ]


# Lines of TOML: every value that `tomllib` finds is found, on the line that it begins on.

TEXT = '''# [[sections]]  a comment
name = "a # b"            # = [ {
"quoted key".inner = 1
dotted.key = [1,
  2, # [
  3]
long = """
[[sections]]
name = "no"
\\""" still"""
raw = \'\'\'
x = "
\'\'\'
empty = []
none = {}

[tuning]
scale = [1e-4, 1]

[[sections]]
name = "one"
learners = [
  "a]",
  { id = "b", options = { mode = ["x", "y"], n = 3 } },
  { id = "c" }, { id = "d" },
]
[sections.options]
delta = 0.1

  [[sections]]
  name = 'two'
  [[sections.learners]]
  id = "e"
  [[sections.learners]]
  id = "f"
  options.mode = [
    "x",

    "y",
  ]
last = 1979-05-27T07:32:00Z'''

PLACED = {
    ("name",): 2,
    ("quoted key", "inner"): 3,
    ("dotted", "key"): 4,
    ("dotted", "key", 0): 4,
    ("dotted", "key", 2): 6,
    ("long",): 7,
    ("raw",): 11,
    ("none",): 15,
    ("tuning",): 17,
    ("tuning", "scale", 1): 18,
    ("sections", 0): 20,
    ("sections", 0, "learners", 0): 23,
    ("sections", 0, "learners", 1, "options", "mode", 1): 24,
    ("sections", 0, "learners", 3): 25,
    ("sections", 0, "options", "delta"): 28,
    ("sections", 1): 30,
    ("sections", 1, "learners", 0, "id"): 33,
    ("sections", 1, "learners", 1): 34,
    ("sections", 1, "learners", 1, "options", "mode", 1): 39,
    ("sections", 1, "learners", 1, "last"): 41,
}


def paths(value, path=()):
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from paths(one, (*path, key))


@pytest.mark.parametrize("text", [TEXT, TEXT + "\n", TEXT.replace("\n", "\r\n")], ids=["", "newline", "crlf"])
def test_every_value_is_found_on_its_line(text):
    found = lines(text)
    assert {path: found[path] for path in PLACED} == PLACED


def test_what_is_found_is_what_tomllib_finds():
    assert set(lines(TEXT)) == set(paths(tomllib.loads(TEXT)))


def test_an_empty_text_has_no_values():
    assert lines("") == lines("# nothing\n\n") == {}


# Files and modules beside the suite.

BESIDE = """
steps = 10
seeds = 2
[[sections]]
name = "s"
mdps = [{mdps}]
learners = [{learners}]
"""
MODULE = """
from ravi import MDP, Learner
from ravi.learners.ucrl.ucrl import ucrl2
from ravi.mdps import riverswim


def river(n: int = 3) -> MDP:
    return riverswim(n)


def mine(problem, steps: int, scale: float = 1.0) -> Learner:
    return ucrl2(problem, steps, scale=scale)


def broken(problem, steps: int) -> Learner:
    raise RuntimeError("not\\ntoday")


def number(problem, steps: int) -> Learner:
    return 3


def short(problem, steps: int) -> Learner:
    assert steps <= 20, "too long"
    return mine(problem, steps)
"""


def test_a_file_is_looked_for_beside_the_suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    ids.mdp("riverswim/3").save(tmp_path / "inner" / "river.mdp")
    path = put(tmp_path / "inner", BESIDE.format(mdps='"river.mdp"', learners='"psrl"'))
    made = specify(Path("inner/mine.toml"))
    assert made.sections[0].mdps == (str(tmp_path / "inner" / "river.mdp"),)
    assert specify(made.plain()) == made
    assert specify(path, build=False) == made


def test_a_file_elsewhere_is_not_taken_for_one_beside_the_suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids.mdp("riverswim/3").save(tmp_path / "river.mdp")
    (tmp_path / "inner").mkdir()
    path = put(tmp_path / "inner", BESIDE.format(mdps='"river.mdp"', learners='"psrl"'))
    assert f"there is no MDP 'river.mdp', and no such file in {tmp_path / 'inner'}" in told(path)[0]


def test_an_id_is_not_taken_for_a_file_of_its_name(tmp_path):
    ids.mdp("riverswim/3").save(tmp_path / "trap")
    made = specify(put(tmp_path, BESIDE.format(mdps='"trap"', learners='"psrl"')))
    assert made.sections[0].mdps == ("trap",)


def test_a_damaged_file_is_told(tmp_path):
    (tmp_path / "river.mdp").write_text("nothing")
    assert f"{tmp_path / 'river.mdp'}" in told(put(tmp_path, BESIDE.format(mdps='"river.mdp"', learners='"psrl"')))[0]


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A folder with a module of one's own, under a name that no other test has imported."""
    name = f"own_{abs(hash(str(tmp_path)))}"
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / f"{name}.py").write_text(MODULE)
    return tmp_path, name


def test_modules_are_imported_from_beside_the_suite(beside):
    folder, name = beside
    path = put(folder, BESIDE.format(mdps=f'"{name}:river,4"', learners=f'"{name}:mine,scale=0.1", "psrl"'))
    made = specify(path)
    assert made.folder == str(folder)
    assert specify(json.loads(json.dumps(made.plain()))) == made


def test_python_data_names_no_folder_unless_it_is_given(beside):
    folder, name = beside
    allow_imports(str(folder))
    assert specify(suite_of(learners=[f"{name}:mine"])).folder == ""
    assert specify(suite_of(learners=[f"{name}:mine"]) | {"folder": str(folder)}).folder == str(folder)


def test_a_learner_is_built_for_every_length_of_run(beside):
    folder, name = beside
    source = BESIDE.format(mdps='"trap"', learners=f'"{name}:short"')
    assert specify(put(folder, source))
    (line,) = told(put(folder, source.replace("steps = 10", "steps = [10, 20, 30]")))
    assert line.endswith(f"{name}:short cannot run on trap: AssertionError: too long")


def test_a_suite_without_modules_of_its_own_does_not_depend_on_its_folder(tmp_path):
    assert specify(put(tmp_path, BESIDE.format(mdps='"trap"', learners='"psrl"'))).folder == ""


def test_a_worker_can_import_what_the_suite_names(beside):
    folder, name = beside
    made = specify(put(folder, BESIDE.format(mdps='"trap"', learners=f'"{name}:mine"')))
    code = "import sys; from ravi import ids; "
    code += "ids.allow_imports(sys.argv[1]); print(ids.canonical(sys.argv[2]))"
    words = [sys.executable, "-c", code, made.folder, made.sections[0].learners[f"{name}:mine"]]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() == f"{name}:mine"


def test_a_folder_is_last_on_the_path_and_there_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    allow_imports(str(tmp_path))
    allow_imports(str(tmp_path))
    allow_imports("")
    assert sys.path[-1] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def test_what_is_wrong_with_builders_of_ones_own_is_told(beside):
    folder, name = beside
    learners = f'"{name}:broken", "{name}:number", "{name}:none", "no_such_module:f", "{name}:mine,scal=1"'
    lines = told(put(folder, BESIDE.format(mdps='"trap"', learners=learners)))
    assert [line.split(": ", 2)[2] for line in lines] == [
        f"{name}:broken cannot run on trap: RuntimeError: not",
        f"{name}:number cannot run on trap: {name}:number: {name}:number gave int, not a Learner",
        f"{name}:none: module '{name}' has no attribute 'none'",
        "no_such_module:f: No module named 'no_such_module'",
        f"{name}:mine,scal=1: there is no option 'scal'; it takes scale. Did you mean scale?",
    ]


def test_an_option_given_by_its_place_is_given(beside):
    folder, name = beside
    source = BESIDE.replace("seeds = 2", 'seeds = 2\ncolumns = ["theory"]')
    (line,) = told(put(folder, source.format(mdps='"trap"', learners=f'"{name}:mine,1.0"')))
    assert f'{name}:mine,1.0 gives scale: column "theory" decides that' in line


def test_a_module_that_another_hides_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "json.py").write_text(MODULE)
    (line,) = told(put(tmp_path, BESIDE.format(mdps='"trap"', learners='"json:mine"')))
    assert f"the module json is {json.__file__}, not {tmp_path / 'json.py'}; give it another name" in line
