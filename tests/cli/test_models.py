"""Files of other formats, as a user types them: their options, and what states and actions are called there."""

import json
import shlex
import sys

import pytest

from tests.support.command import typed

SHOP = """state,action,next,probability,reward
full,wait,full,0.6,0
full,wait,low,0.4,5
low,wait,low,0.5,0
low,wait,empty,0.5,5
low,order,full,1,-2
empty,order,full,1,-3
"""
ONE = "state,action,next,probability,reward\n0,a,0,1,1\n0,b,0,1,0\n1,c,0,1,0\n"  # c stands for no action of state 0
NEARLY = "state,action,next,probability,reward\nx,go,x,0.3333,1\nx,go,y,0.6666,0\ny,go,x,1,0\n"
SHOP_CLASS = """
import gymnasium

class Shop(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)
"""
FILES = {
    "shop.csv": SHOP, "my shop,2.csv": SHOP, "one.csv": ONE, "nearly.csv": NEARLY, "shops.py": SHOP_CLASS,
    "log.csv": "state,action,reward,next\na,x,1,b\nb,x,2,a\n",
}  # fmt: skip


@pytest.fixture
def ravi(tmp_path):
    """What a command prints, or complains of, in a folder with models."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    def ravi(line):
        done = typed(*shlex.split(line), cwd=tmp_path)
        return done.stdout if done.returncode == 0 else done.stderr.removeprefix("ravi: ").rstrip("\n")

    return ravi


def test_a_policy_has_the_actions_of_the_file_and_their_names(ravi):
    found = json.loads(ravi("solve shop.csv,discount=0.9 --json"))
    assert found["policy"] == [0, 0, 1]
    assert found["state_labels"] == ["full", "low", "empty"]
    assert found["action_labels"] == ["wait", "order"]
    rows = [line.split()[:2] for line in ravi("solve shop.csv,discount=0.9").splitlines()[-4:]]
    assert rows == [["state", "action"], ["full", "wait"], ["low", "wait"], ["empty", "order"]]
    assert json.loads(ravi("solve riverswim/3 --json"))["state_labels"] is None


def test_the_uniform_policy_is_uniform_over_the_actions_that_a_state_has(ravi):
    """Of ONE, state 0 has two actions, of which one earns 1: half of the steps, though there are three numbers."""
    for command in ("solve one.csv,discount=0.9", "run one.csv,discount=0.9 uniform --steps 10 --seeds 1"):
        assert json.loads(ravi(f"{command} --json"))["uniform"] == pytest.approx(0.5)


def test_options_follow_a_path(ravi):
    for name in (
        "shop.csv,discount=0.9",
        "'my shop,2.csv,discount=0.9'",
        "shop.csv,0.9",
        "shop.csv,discount=.9,initial=0",
    ):
        assert json.loads(ravi(f"solve {name} --json"))["return_in_units"] == pytest.approx(14.1231343283)
    assert json.loads(ravi("solve shop.csv,discount=0.9,initial=low --json"))["return_in_units"] == pytest.approx(
        12.4906716
    )
    for flag in ("on", "True"):
        assert "optimum rho*" in ravi(f"solve nearly.csv,discount=0.9,renormalise={flag}")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("solve shop.csv,discont=.9", "there is no option 'discont'; it takes discount, initial, renormalise. Did"),
        ("solve shop.csv,gamma=0.9", "there is no option 'gamma'; it takes discount, initial, renormalise."),
        ("solve shop.csv,discount=0.9,renormalise=yes", "renormalise is 'yes', not one of on"),
        ("solve shop.csv,discount=0.9,initial=lwo", "'lwo', which is no state of shop.csv. Did you mean low?"),
        ("solve one.csv,discount=0.9,initial=2", "initial is '2', which is no state of one.csv. It has ['0', '1']."),
        ("solve nearly.csv,discount=0.9", "renormalise=True rescales such rows"),
        ("solve nofile.csv,discount=0.9", "there is no file nofile.csv"),
        ("solve nofile.csv", "there is no file nofile.csv"),
        ("run nofile.csv", "there is no file nofile.csv"),
        ("run 'my shop,2.csv,discount=0.9'", "ravi run 'my shop,2.csv,discount=0.9' psrl runs PSRL there"),
        ("learn nofile.csv", "there is no file nofile.csv"),
        ("learn log.csv,discount=0.9", "log.csv has no column probability (or prob, p); it has state, action,"),
        ("learn log.csv --discount 0.9", "A log of plays is read by ravi.importers.plays"),
        ("learn 'my shop,2.csv'", "my shop,2.csv has no discount: write my shop,2.csv,discount=0.95"),
        ("learn shop.csv,discount=2", "discount is 2; it must lie strictly between 0 and 1"),
        ("advise nofile.csv", "there is no file nofile.csv"),
        ("advise shop.csv", "shop.csv has no discount"),
        ("advise shop.csv,discount=0.9 --discount 0.8", "given twice: in shop.csv,discount=0.9, and as 0.8"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_told(ravi, line, says):
    assert says in ravi(line)


def test_advice_on_a_file_can_be_pasted(ravi):
    said = ravi("advise 'my shop,2.csv' --discount 0.9 --steps 10 --seeds 5-8")
    assert "  ravi solve 'my shop,2.csv,discount=0.9'\n" in said
    assert "  ravi run 'my shop,2.csv,discount=0.9' psrl --steps 10 --seeds 5-8  (about" in said


def test_the_class_of_an_environment_is_told_from_an_mdp(ravi, monkeypatch):
    pytest.importorskip("gymnasium")
    for command in ("advise", "learn", "solve"):
        said = ravi(f"{command} shops:Shop")
        assert "shops:Shop is the class of an environment" in said
        assert 'write gymnasium.register("Shop-v0", "shops:Shop") in shops and give shops:Shop-v0' in said
    monkeypatch.delitem(sys.modules, "shops")
