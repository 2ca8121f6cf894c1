"""What is typed and makes no sense is one line and status 2: nothing is run, hung on, or taken for a default."""

import shlex

import pytest

import ravi
from ravi import ids, machine, validation
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.runner import shard_of
from ravi.lab.experiments.suite import MOST
from ravi.validation import InputError
from tests.support.command import typed


def refused(*words):
    """What is said of these words."""
    done = typed(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ravi: ")
    return done.stderr.removeprefix("ravi: ").rstrip("\n")


EMPTY = [
    ("run riverswim/6 uniform --steps ''", "--steps"),
    ("run riverswim/6 uniform --steps=", "--steps"),
    ("run riverswim/6 uniform --seeds ' '", "--seeds"),
    ("run riverswim/6 uniform --save ''", "--save"),
    ("run riverswim/6 uniform --figure ''", "--figure"),
    ("run riverswim/6 uniform --points ''", "--points"),
    ("run riverswim/6 ''", "an argument"),
    ("run '' uniform", "an argument"),
    ("run quick --out ''", "--out"),
    ("run quick --shard ''", "--shard"),
    ("run quick --cluster ''", "--cluster"),
    ("results '' --json", "an argument"),
    ("results folder --sql ''", "--sql"),
    ("verify riverswim/4 --steps ''", "--steps"),
    ("verify riverswim/4 --only ''", "--only"),
    ("learn FrozenLake-v1 --learner '' --discount 0.9", "--learner"),
    ("learn FrozenLake-v1 --option ''", "--option"),
    ("report folder --verify ''", "--verify"),
    ("figures folder --formats ''", "--formats"),
    ("figures folder --kinds ''", "--kinds"),
    ("table folder --section ''", "--section"),
    ("solve ''", "an argument"),
]


@pytest.mark.parametrize(("line", "what"), EMPTY)
def test_what_is_empty_is_told(line, what):
    assert refused(*shlex.split(line)) == f"{what} is empty; leave it out"


def test_an_mdp_that_is_too_large_is_one_line(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 20 * 10**9)
    said = refused("run", "garnet/3e5,1000,1000", "ravi-ucb")
    assert said == (
        "the tables of garnet/300000,1000,1000 would need 10.8 TB; 20 GB are free: lower states, actions or branching"
    )


@pytest.mark.parametrize(
    "words", [("run", "x" * 5000), ("results", "y" * 5000), ("run", "riverswim/4", "uniform", "--save", "z" * 5000)]
)
def test_a_path_that_is_too_long_is_one_line(words):
    assert len(refused(*words)) < 300


SHARDS = {
    "a number of shard is .*(at most 1000000|not a finite number)": [
        "1/" + "9" * 23,
        "1/" + "9" * 5000,
        "1000001/1000001",
    ],
    "the first number must be from 1 to": ["0/0", "2/1", "0/3", "1/0"],
    "not like 1/4": [5, ["1/2"], "1", "", "a/b", "1/2/3", "-1/3"],
}


@pytest.mark.parametrize(("says", "shard"), [(says, shard) for says, shards in SHARDS.items() for shard in shards])
def test_a_shard_is_one_of_its_parts(says, shard):
    with pytest.raises(InputError, match=says):
        shard_of(shard)
    assert shard_of("1000000/1000000") == (10**6, 10**6)


def suite(**section):
    given = {"name": "s", "mdps": ["riverswim/4"], "learners": ["ucrl2"], "steps": 10, "seeds": 2} | section
    return {"name": "mine", "sections": [given]}


MANY = list(range(1000))
TOO_MANY = {
    "2000 x 2000 MDPs": (
        suite(mdps=[{"id": "garnet/5,2,2", "options": {"seed": list(range(2000)), "discount": list(range(2000))}}]),
        "sections[0].mdps[0].options: there would be 4000000 of these, and 100000 are the most",
    ),
    "2^26 options": (
        suite(options={f"option{i}": [1, 2] for i in range(26)}),
        "sections[0].options: there would be 67108864 of these, and 100000 are the most",
    ),
    "2^5000 options": (
        suite(options={f"option{i}": [1, 2] for i in range(5000)}),
        "sections[0].options: there would be 1412467032139426036",
    ),
    "a learner's options and all learners'": (
        suite(learners=[{"id": "ucrl2", "options": {"scale": MANY}}], options={"delta": MANY}),
        "sections[0].learners[0]: there would be 1000000 of these, and 100000 are the most",
    ),
    "values of an option": (
        suite(mdps=[{"id": "garnet/5,2,2", "options": {"seed": range(10**12)}}]),
        "sections[0].mdps[0].options.seed: there would be 1000000000000 of these",
    ),
    "MDPs": (suite(mdps=range(10**12)), "sections[0].mdps: there would be 1000000000000 of these"),
    "T": (suite(steps=range(1, 10**12)), "sections[0].steps: there would be 999999999999 of these"),
    "MDPs in several grids": (
        suite(mdps=[{"id": f"garnet/{n},2,2", "options": {"seed": list(range(60000))}} for n in (5, 6, 7)]),
        "sections[0].mdps[2]: there would be 120000 of these",
    ),
    "entries": (
        suite(mdps=[{"id": "garnet/5,2,2", "options": {"seed": MANY}}], steps=list(range(1, 102))),
        "sections[0]: up to here there would be 101000 entries, MDPs x learners x T x columns, and 100000 are the most",
    ),
    "seeds": (suite(seeds=10**7), "sections[0].seeds: seeds is 10000000; it must be at most 1000000"),
    "runs": (
        suite(mdps=[{"id": "garnet/5,2,2", "options": {"seed": MANY}}], seeds=10**6),
        "sections[0]: to keep account of 1000000000 runs up to here, tuning among them, would need 200 GB; 20 GB are "
        "free: lower seeds or entries",
    ),
    "runs of tuning": (
        suite(columns=["tuned"]) | {"tuning": {"budget": 10**6, "seeds": 10**6}},
        "sections[0]: to keep account of 1000000000002 runs",
    ),
}


@pytest.mark.parametrize("what", TOO_MANY)
def test_a_suite_is_counted_before_it_is_expanded(what, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 20 * 10**9)
    built, mdp = [], ids.mdp
    monkeypatch.setattr(ids, "mdp", lambda one: built.append(getattr(one, "name", one)) or mdp(one))
    asked, message = TOO_MANY[what]
    with pytest.raises(InputError) as error:
        specify(asked)
    assert message in str(error.value)
    assert set(built) <= {"riverswim/4"}  # the one that is needed, by its id and then itself


def test_the_mdps_of_a_suite_are_reckoned_together(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 10**4)
    monkeypatch.setattr(validation, "SMALL", 10**4)
    grid = {"id": "garnet/10,4,4", "options": {"seed": list(range(9))}}
    with pytest.raises(InputError, match=r"5 MDPs of the suite would need 12.4 kB; 10 kB are free: lower"):
        specify(suite(mdps=[grid]))


def test_long_lists_are_read_in_the_time_of_their_length():
    """A look for what stands twice that goes through the list for each value would take hours."""
    given = suite(steps=list(range(1, MOST + 1)), mdps=["riverswim/4"])
    assert len(specify(given, build=False).sections[0].steps) == MOST
    sections = [suite()["sections"][0] | {"name": str(i)} for i in range(3000)]
    assert len(specify({"name": "mine", "sections": sections}, build=False).sections) == 3000


@pytest.mark.parametrize(
    "query", ["select date '290000-01-01' as d", "select timestamp 'infinity' as d", "select [date '290000-1-1'] as d"]
)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_date_that_python_has_not_is_told(query, more, tmp_path):
    (tmp_path / "parts").mkdir()
    said = refused("results", str(tmp_path), "--sql", query, *more)
    assert said.startswith("--sql: d holds a date or a time that Python cannot represent (")
    assert said.endswith('CAST("d" AS VARCHAR) is a text')


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("advise riverswim/4 --criterion average", "advice is for a discount: docs/guides/average_reward.md lists the"),
        (
            "advise riverswim/4 --criterion episodic,episode=5",
            "advice is for a discount: docs/guides/episodes.md lists",
        ),
        ("advise riverswim/4,criterion=average --criterion average", "says its own"),
        (
            "advise FrozenLake-v1 --criterion average",
            "FrozenLake-v1 is an environment, which is learned for a discount",
        ),
        ("evaluate it.policy --criterion average", "--criterion is for an MDP; in an environment the discount"),
        ("verify riverswim/4 r-max --criterion episodic,episode=5", "docs/guides/episodes.md lists its learners"),
        ("verify riverswim/4 --criterion average", "span is missing; in the average reward it is a bound on"),
    ],
)
def test_a_criterion_that_is_not_served_is_named(line, says, tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    ravi.Policy(table=[[0.5, 0.5]] * 4, discount=0.9).save("it.policy")
    assert says in refused(*shlex.split(line))
