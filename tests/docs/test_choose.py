"""The figures of docs/guides/choose.md come out again, and `ravi advise` says what fits."""

import re
from pathlib import Path

import pytest

import ravi
from ravi.cli.advice import RULES, advise
from ravi.ids import LEARNERS
from ravi.validation import InputError

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "choose.md").read_text()
ROWS = re.findall(r"^\|[^|]*\| `(\S+)` \| `(\S+)` \|[^|]*\| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
LONG = ("ravi-kl/mixture", "ravi-kl/unknown-rewards", "lsvi-ucb,scale=0.01")


@pytest.mark.parametrize(
    ("learner", "mdp", "regret", "uniform"),
    [pytest.param(*row, id=f"{row[1]} {row[0]}", marks=[pytest.mark.slow] * (row[0] in LONG)) for row in ROWS],
)
def test_a_figure_of_the_page_comes_out_again(learner, mdp, regret, uniform):
    world = ravi.mdp(mdp)
    assert f"{ravi.run(learner, world, 10_000, 4).regret.mean():.1f}" == regret
    assert f"{ravi.run('uniform', world, 10_000, 4).regret.mean():.1f}" == uniform


def test_the_page_has_every_learner_that_is_advised_and_no_other():
    assert [rule.learner for rule in RULES] == [learner for learner, *_ in ROWS]
    assert {learner.partition(",")[0] for learner, *_ in ROWS} <= set(LEARNERS)


def test_advice_fits_what_is_known():
    plain = [choice.command for choice in advise("riverswim/6,discount=0.9", "1e4", seeds=2, timed=False).choices]
    assert plain[:2] == [
        "ravi solve riverswim/6,discount=0.9",
        "ravi run riverswim/6,discount=0.9 ravi-kl --steps 10000 --seeds 2",
    ]
    mixture = advise("riverswim/mixture/6", 1000, timed=False).choices
    assert mixture[1].command == "ravi run riverswim/mixture/6 ravi-kl/mixture --steps 1000 --seeds 1"
    assert mixture[1].guarantee == "expected regret O~(d H sqrt(T) + H X A) for T >= X A, with no T to know"
    linear = advise("linear/aggregated", 1000, seeds=[3, 5], timed=False).choices[1]
    assert linear.command == "ravi run linear/aggregated lsvi-ucb,scale=0.01 --steps 1000 --seeds 3,5"
    assert linear.guarantee.startswith("none; with scale=1, regret O(sqrt(d^3 H^3 T))")
    found = advise("riverswim/3", 1000)
    assert all(choice.seconds > 0 for choice in found.choices[1:])
    assert "ravi run riverswim/3 psrl --steps 1000 --seeds 1  (about" in found.text()


def test_advice_on_environments(monkeypatch):
    pytest.importorskip("gymnasium")
    lake = advise("FrozenLake-v1", 1e5, discount=0.9, timed=False)
    assert [choice.command.split()[:2] for choice in lake.choices] == [["ravi", "solve"], ["ravi", "learn"]]
    assert lake.choices[1].command == "ravi learn FrozenLake-v1 --discount 0.9 --steps 100000 --save it.policy"
    car = advise("MountainCar-v0", 1e5, timed=False)
    assert car.choices[0].command == "ravi learn MountainCar-v0 --steps 100000 --save it.policy"
    assert car.json()["choices"][0]["guarantee"].startswith("none")
    pole = advise("CartPole-v1", 10, discount=0.99, timed=False).choices[0].command
    assert pole == "ravi learn CartPole-v1 --discount 0.99 --steps 10 --save it.policy"
    monkeypatch.setattr("ravi.live.choices.BOXES", {})
    monkeypatch.setattr("ravi.live.choices.RANGES", {})
    unknown = advise("MountainCar-v0", 1e5, timed=False).choices[0].command
    assert unknown == car.choices[0].command
    assert advise("Pendulum-v1", 1e5).choices[0].command == "ravi learn Pendulum-v1 --steps 100000 --save it.policy"
    with pytest.raises(InputError, match="Gymnasium makes no environment of"):
        advise("Nowhere-v9", 1e5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("riverswin/6", "there is no MDP, and no environment, 'riverswin/6'. Did you mean riverswim"),
        ("riverswim6", "there is no MDP, and no environment, 'riverswim6'. Did you mean riverswim"),
        ("FrozenLak", "there is no MDP, and no environment, 'FrozenLak'. Did you mean FrozenLake-v1"),
        ("tides", "tides is no MDP, but a problem of another kind: RiverSwim whose rewards change"),
        ("large/grid", "large/grid is no MDP, but a problem of another kind"),
        ("continuous/level", "continuous/level is no MDP, but a problem of another kind"),
        ("Taxi-v3", "Environment version v3 for `Taxi` is deprecated"),
    ],
)
def test_a_name_that_is_neither_is_told_from_those_that_are(name, says):
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match=re.escape(says)):
        advise(name, 100)


def test_the_discount_of_an_mdp_is_given_once():
    found = advise("riverswim/6", 100, discount=0.5, timed=False)
    assert found.choices[0].command == "ravi solve riverswim/6,discount=0.5"
    with pytest.raises(InputError, match=r"the discount is given twice: in riverswim/6,discount=0.9, and as 0.5"):
        advise("riverswim/6,discount=0.9", 100, discount=0.5)
