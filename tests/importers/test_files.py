"""Files of others: what they say is what is read, and what is wrong in them is told by file, line and remedy."""

import json
import sys

import numpy as np
import pytest

import ravi
from ravi import cli, importers
from ravi.live.policies import Policy
from tests.helpers import refuses
from tests.importers.test_models import values

TRA = """3 5 7
0 0 0 0.5 wait
0 0 1 0.5 wait
0 1 2 1 go
1 0 0 0.25
1 0 1 0.75
1 1 2 1
2 0 2 1
"""
LAB = '0="init" 1="deadlock" 2="goal"\n0: 0\n1: 0\n2: 2\n'
SREW = "3 2\n0 1\n1 3\n"
TREW = "3 5 1\n0 1 2 10\n"
STA = "(x,y)\n0:(0,0)\n1:(0,1)\n2:(1,0)\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_text(text)

    write(model_tra=TRA, model_lab=LAB, model_srew=SREW, model_trew=TREW, model_sta=STA)
    return write


def by_hand(P, r, gamma):
    """V* by value iteration on dense arrays."""
    V = np.zeros(len(P))
    for _ in range(5000):
        V = (r + gamma * P @ V).max(1)
    return V


P = np.array([[[0.5, 0.5, 0], [0, 0, 1]], [[0.25, 0.75, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]]])
R = np.array([[1.0, 11.0], [3.0, 3.0], [0.0, 0.0]])


def test_prisms_files_are_read(here):
    model = importers.prism("model.tra", 0.9)
    np.testing.assert_allclose(values(model), by_hand(P, R, 0.9), atol=1e-9)
    assert model.mdp.initial.tolist() == [0.5, 0.5, 0]
    assert model.states == ["(0,0)", "(0,1)", "(1,0)"]
    policy = Policy.of(model, ravi.solve(model.mdp).policy)
    assert policy("(1,0)") == 0  # it has one choice alone
    assert importers.prism("model.tra", 0.9, initial=1).mdp.initial.tolist() == [0, 1, 0]


def test_storms_files_are_read_and_a_deadlock_stays(here):
    lines = TRA.splitlines()[1:-1]  # without the loop of state 2
    here(model_tra="mdp\n" + "\n".join(lines) + "\n", model_srew="0 1\n1 3\n2 0\n",
         model_lab="#DECLARATION\ninit goal\n#END\n0 init\n1 init\n2 goal\n")  # fmt: skip
    again = importers.prism("model.tra", 0.9)
    np.testing.assert_allclose(values(again), by_hand(P, R, 0.9), atol=1e-9)
    assert again.mdp.initial.tolist() == [0.5, 0.5, 0]
    here(chain_tra="2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n", chain_srew="2 1\n0 1\n")
    np.testing.assert_allclose(values(importers.prism("chain.tra", 0.9))[0], 1 / (1 - 0.45), atol=1e-9)


def test_rewards_without_a_line_of_counts_keep_their_first_line(here):
    """Its last number may be how many follow: the first number of counts is that of states, which no state has."""
    here(storm_tra="mdp\n0 0 1 1\n0 1 0 1\n1 0 0 1\n", storm_srew="0 1\n1 5\n")
    np.testing.assert_allclose(values(importers.prism("storm.tra", 0.9)), np.array([5.5, 5.9]) / 0.19, atol=1e-9)
    for counts in ("", "3 3\n"):
        here(chain_tra="dtmc\n0 1 1\n1 2 1\n2 0 1\n", chain_trew=counts + "0 1 2\n1 2 5\n2 0 6\n")
        once = 2 + 0.9 * 5 + 0.81 * 6
        np.testing.assert_allclose(values(importers.prism("chain.tra", 0.9))[0], once / (1 - 0.9**3), atol=1e-9)


def test_a_transition_that_stands_twice_is_paid_twice_and_a_deadlock_earns_what_its_state_does(here):
    here(twice_tra="2 2 3\n0 0 1 0.5\n0 0 1 0.5\n1 0 0 1\n", twice_trew="2 2 1\n0 0 1 10\n")
    np.testing.assert_allclose(values(importers.prism("twice.tra", 0.9))[0], 10 / (1 - 0.81), atol=1e-9)
    here(stuck_tra="2 1 1\n0 0 1 1\n", stuck_srew="2 2\n0 1\n1 2\n")
    np.testing.assert_allclose(values(importers.prism("stuck.tra", 0.9)), [19, 20], atol=1e-9)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"model_tra": TRA.replace("2 1 go", "2 0.9 go")}, r"model.tra, line 4, choice 1 of state 0: .* 0.9, not 1"),
        ({"model_tra": TRA.replace("2 1 go", "7 1 go")}, r"line 4: the successor is 7; it must be at most 2"),
        ({"model_tra": TRA.replace("0 1 2 1 go", "0 1")}, r"line 4: '0 1' is not `state choice successor probability`"),
        ({"model_tra": TRA.replace("0 1 2 1 go", "0 1 2 1.5")}, r"line 4: the probability is 1.5, not between 0 and 1"),
        ({"model_tra": TRA.replace("0 1 2 1 go", "0 1 2 one")}, r"line 4: the probability is 'one', not a number"),
        ({"model_tra": TRA.replace("3 5 7", "3 5 9")}, r"line 1: it says 9 transitions, but 7 lines follow"),
        ({"model_tra": "ctmc\n0 0 1\n"}, r"line 1: 'ctmc' is not the numbers of states choices transitions, nor"),
        ({"model_tra": "² 2 2\n0 0 1 1\n1 0 0 1\n"}, r"line 1: '² 2 2' is not the numbers of states"),
        ({"model_tra": ""}, r"model.tra is empty; its first line"),
        ({"model_srew": "3 2\n0 1\n5 3\n"}, r"model.srew, line 3: the state is 5; it must be at most 2"),
        ({"model_srew": "3 1\n0 1 2\n"}, r"model.srew, line 2: '0 1 2' is not `state reward`"),
        ({"model_trew": "3 5 1\n0 1 1 10\n"}, "choice 1 of state 0 to 1, a transition that model.tra does not have"),
        ({"model_lab": "init\n"}, r"model.lab, line 1: 'init' is not"),
        ({"model_lab": LAB + "1: 7\n"}, r"model.lab, line 5: there is no label 7; line 1 declares 0, 1, 2"),
        ({"model_sta": "(x,y)\n0:(0,0)\n"}, r"model.sta has no state 1, though there are 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_prisms_files_is_told_by_line(here, files, told):
    here(**files)
    refuses(told, importers.prism, "model.tra", 0.9)


def test_rewards_must_be_there(here, tmp_path):
    (tmp_path / "model.srew").unlink()
    (tmp_path / "model.trew").unlink()
    refuses(
        r"there is no model.srew and no model.trew: rewards of states or of trans", importers.prism, "model.tra", 0.9
    )


# pomdp.org

POMDP = """# the same model, in Cassandra's format
discount: 0.9
values: reward
states: low high done
actions: wait go
start: 0.5 0.5 0
T: wait
0.5 0.5 0
0.25 0.75 0
0 0 1
T: go : * : done 1.0
R: wait : low : * 1
R: * : high : * 3
R: go : low : done 11
"""


@pytest.mark.parametrize(
    "text",
    [
        POMDP,
        POMDP.replace("low high done", "3").replace("low", "0").replace("high", "1").replace("done", "2"),
        POMDP.replace("reward", "cost").replace("* 1", "* -1").replace("* 3", "* -3").replace(" 11", " -11"),
        POMDP.replace("start: 0.5 0.5 0", "start include: low high"),
        POMDP.replace("start: 0.5 0.5 0", "start exclude: done"),
        POMDP + "observations: 2\nO: * uniform\n",
        POMDP.replace("R: wait : low : * 1", "observations: 2\nR: wait : low : * : * 1"),
        POMDP.replace("T: go : * : done 1.0", "T: go : low 0 0 1 T: go : high 0 0 1 T: go : done\n0 0 1"),
    ],
)  # fmt: skip
def test_pomdp_orgs_files_are_read(here, text):
    here(m_pomdp=text)
    model = importers.pomdp("m.pomdp")
    np.testing.assert_allclose(values(model), by_hand(P, R, 0.9), atol=1e-9)
    assert model.mdp.initial.tolist() == [0.5, 0.5, 0]
    assert model.actions == ["wait", "go"]
    assert importers.pomdp("m.pomdp", discount=0.5).mdp.discount == 0.5


def test_words_of_pomdp_org(here):
    text = "discount: 0.9\nvalues: reward\nstates: 2\nactions: 2\nT: 0 identity\nT: 1 uniform\nR: 1 : 0 0 4\n"
    here(m_mdp=text)
    model = importers.pomdp("m.mdp")
    assert model.mdp.initial.tolist() == [0.5, 0.5]  # without start, all states
    dense = np.array([[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]])
    np.testing.assert_allclose(values(model), by_hand(dense, np.array([[0, 2.0], [0, 0]]), 0.9), atol=1e-9)
    here(n_mdp=text + "start: 1\n")
    assert importers.pomdp("n.mdp").mdp.initial.tolist() == [0, 1]


def test_a_row_of_pomdp_org_that_is_reset_is_the_start(here):
    text = POMDP.replace("T: go : * : done 1.0", "T: go : * reset")
    here(m_mdp=text, n_mdp=text.replace("reset", "0.5 0.5 0"), u_mdp=text.replace("start: 0.5 0.5 0\n", ""))
    np.testing.assert_allclose(values(importers.pomdp("m.mdp")), values(importers.pomdp("n.mdp")), atol=1e-12)
    here(n_mdp=text.replace("reset", "uniform"))
    np.testing.assert_allclose(values(importers.pomdp("u.mdp")), values(importers.pomdp("n.mdp")), atol=1e-12)


def test_another_discount_may_be_given_than_a_file_has(here):
    here(m_mdp=POMDP.replace("0.9", "1.0", 1))
    assert importers.pomdp("m.mdp", discount=0.5).mdp.discount == 0.5


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("discount: 0.9\n", "", r"m.mdp has no line `discount: 0.95`"),
        ("discount: 0.9", "discount: 1.0", r"m.mdp, line 2: discount is 1; it must lie strictly between 0 and 1"),
        ("states: low high done\n", "", r"m.mdp, line 5: start stands before states are declared"),
        ("discount: 0.9", "discount: 0.9 start: uniform", r"m.mdp, line 2: start stands before states are declared"),
        ("discount: 0.9", "discount: 0.9 start include: 0", r"m.mdp, line 2: start stands before states are declared"),
        ("R: wait : low : * 1", "states: 4", r"m.mdp, line 12: states are declared a second time"),
        ("R: wait : low : * 1", "actions: 1", r"m.mdp, line 12: actions are declared a second time"),
        ("start: 0.5 0.5 0", "start: 0.5 0.6 0", r"m.mdp, line 6: start sums to 1.1, not 1"),
        ("start: 0.5 0.5 0", "start: ²", r"m.mdp, line 6: start is '²', not a number"),
        ("T: go : * : done 1.0", "T: go : ² : done 1.0", r"m.mdp, line 11: there is no state '²'; there are low"),
        ("T: go : * : done 1.0", "T: go : low : done 1.0", r"m.mdp: T: go : high: the probabilities sum to 0, not 1"),
        ("T: go : * : done 1.0", "T: go : * 0 -0.5 1.5", r"T: go : low: the probability of a move to state 'high' is"),
        ("T: go : * : done 1.0", "T: go : * reset start: 0", r"line 11: start stands after a row of T that is `reset`"),
        ("R: wait : low : * 1", "observations: 2 R: wait : low : done\n-1 -1",
         r"line 12: R of a transition has more than one number; rewards by observation are not read, but `R: action"),
        ("R: wait : low : * 1", "observations: 2 R: wait : low\n1 1\n1 1\n1 1",
         r"line 12: a row of R has 6 numbers, not 3; rewards by observation are not read"),
        ("values: reward", "values: profit", r"m.mdp, line 3: values is 'profit', not reward or cost"),
        ("T: go : * : done 1.0", "T: run : * : done 1.0", r"line 11: there is no action 'run'; there are wait, go"),
        ("T: go : * : done 1.0", "T: go : * : done 0.5", r"m.mdp: T: go : low: the probabilities sum to 0.5, not 1"),
        ("T: go : * : done 1.0", "T: go : * : done 2", r"line 11: the probability is 2, not between"),
        ("0.25 0.75 0\n", "0.25 0.75\n", r"m.mdp, line 7: a matrix of T has 8 numbers, not 9"),
        ("R: go : low : done 11", "R: go : low : done", r"line 14: the file ends in the middle of an entry"),
        ("values: reward", "valuse: reward", r"line 3: 'valuse' begins no entry; .* Did you mean"),
        ("actions: wait go", "actions: wait wait", r"line 5: actions has the same name twice"),
        ("R: wait : low : * 1", "R: wait : low : * : seen 1", r"line 12: the reward depends on observation 'seen'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_pomdp_orgs_files_is_told_by_line(here, old, new, told):
    here(m_mdp=POMDP.replace(old, new, 1))
    refuses(told, importers.pomdp, "m.mdp")


# A table of transitions.

CSV = """state,action,next,probability,reward
low,wait,low,0.5,1
low,wait,high,0.5,1
low,go,done,1,11
high,wait,low,0.25,3
high,wait,high,0.75,3
high,go,done,1,3
"""


def test_a_table_of_transitions_is_read(here):
    here(m_csv=CSV)
    model = importers.table("m.csv", 0.9)
    np.testing.assert_allclose(values(model), by_hand(P, R, 0.9), atol=1e-9)
    assert (model.states, model.actions) == (["low", "high", "done"], ["wait", "go"])
    assert model.mdp.initial.tolist() == [1, 0, 0]
    assert Policy.of(model, ravi.solve(model.mdp).policy)("low") == "wait"
    there = importers.table("m.csv", 0.9, initial={"low": 0.25, "high": 0.75})
    assert there.mdp.initial.tolist() == [0.25, 0.75, 0]
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv("m.csv").rename(columns={"next": "next_state", "probability": "prob"})
    same = importers.table(frame.sample(frac=1, random_state=0), 0.9, initial="low")
    assert ravi.solve(same.mdp).optimum == pytest.approx(ravi.solve(model.mdp).optimum, abs=1e-12)
    numbers = importers.table({"s": [0, 1], "a": [0, 0], "y": [1, 0], "p": [1, 1], "r": [0, 1]}, 0.5)
    assert numbers.states == [0, 1]
    assert values(numbers)[0] == pytest.approx(0.5 / 0.75)


def test_a_label_is_a_whole_number_where_all_of_a_column_are(here):
    def states(*rows):
        here(m_csv="\n".join(["state,action,next,probability,reward", *rows]))
        return importers.table("m.csv", 0.9).states

    assert states("1.0,0,2.0,1,1", "2,0,1,1,0") == [1, 2]
    assert states("-1,0,1,1,1", "1,0,-1,1,0") == [-1, 1]
    assert states("01,0,1,1,1", "1,0,01,1,0") == ["01", "1"]
    assert states("²,0,1,1,1", "1,0,²,1,0") == ["²", "1"]
    for wrong, place in ((",0,1,1,1", "state"), ("1,,1,1,1", "action"), ("1,0, ,1,1", "next")):
        refuses(rf"m.csv, line 3: {place} is empty, not a text or a whole number", states, "1,0,1,1,1", wrong)
    refuses(
        "row 1: state is nan, not a text or a whole number",
        importers.table,
        {"s": ["a", np.nan], "a": [0, 0], "y": ["a", "a"], "p": [1, 1], "r": [0, 1]},
        0.5,
    )


def test_tables_of_pyarrow_and_numbers_of_numpy_are_taken():
    columns = {"s": [0, 1], "a": [0, 0], "y": [1, 0], "p": [1, 1], "r": [0, 1]}
    assert importers.table(columns, 0.5, initial=np.int64(1)).mdp.initial.tolist() == [0, 1]
    pyarrow = pytest.importorskip("pyarrow")
    assert importers.table(pyarrow.table(columns), 0.5).mdp.digest == importers.table(columns, 0.5).mdp.digest


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("low,go,done,1,11", "low,go,done,0.9,11", r"m.csv, line 4, state 'low' and action 'go': .* sum to 0.9, not 1"),
        ("low,go,done,1,11", "low,go,done,1", r"m.csv, line 4: 'low,go,done,1' has 4 values, but there are 5 columns"),
        ("low,go,done,1,11", "low,go,done,1,much", r"m.csv, line 4: the reward is 'much', not a number"),
        ("low,go,done,1,11", "low,go,done,-1,1", r"m.csv, line 4: the probability is -1, not between 0 and 1"),
        (
            "probability",
            "chance",
            r"m.csv has no column probability \(or prob, p\); it has state, action, next, chance",
        ),
        ("reward\n", "p\n", r"has the columns probability and p, which both mean probability"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_by_line(here, old, new, told):
    here(m_csv=CSV.replace(old, new, 1))
    refuses(told, importers.table, "m.csv", 0.9)


def test_what_is_no_table_is_told(here):
    here(m_csv="")
    refuses(r"m.csv is empty; its first line has the names", importers.table, "m.csv", 0.9)
    here(m_csv=CSV)
    refuses(r"initial is 'nowhere', which is no state of", importers.table, "m.csv", 0.9, initial="nowhere")
    refuses("the table is 5, not the path of a CSV file, a DataFrame or a dict", importers.table, 5, 0.9)
    refuses(r"there is no file none.csv", importers.table, "none.csv", 0.9)


# Where ids and files are resolved.


def test_commands_and_ravi_mdp_take_them_all(here, monkeypatch, capsys):
    here(m_csv=CSV, m_mdp=POMDP)
    worth = by_hand(P, R, 0.9)
    for text, at in (("model.tra,discount=0.9", worth[:2].mean()), ("m.csv,discount=0.9", worth[0]),
                     ("m.mdp", worth[:2].mean())):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["ravi", "solve", text, "--json"])
        with pytest.raises(SystemExit):
            cli.main()
        assert json.loads(capsys.readouterr().out)["return_in_units"] == pytest.approx(at, rel=1e-9)
    assert ravi.mdp("model.tra", discount=0.9).digest == ravi.mdp("model.tra,discount=0.9").digest
    assert ravi.mdp("m.mdp", discount=0.5).discount == 0.5
    refuses(r"model.tra has no discount: write model.tra,discount=0.95", ravi.mdp, "model.tra")
    refuses(r"model.lab belongs to a model; give model.tra", ravi.mdp, "model.lab")
    ravi.mdp("riverswim/3").save("swim.mdp")
    assert ravi.mdp("swim.mdp").states == 3
    refuses(r"swim.mdp is a file of ravi's own, which says its discount", ravi.mdp, "swim.mdp,discount=0.9")
    refuses(r"there is no file none.tra$", ravi.mdp, "none.tra,discount=0.9")
    refuses("has none of the formats that ravi reads", importers.read, "m.xlsx", 0.9)


@pytest.mark.parametrize("path", ["model.drn", "model.drn,discount=0.9"])
def test_a_file_of_an_unknown_format_is_not_called_ravis_own(here, path):
    """Storm's DRN, say."""
    here(model_drn="// Exported by storm\n@type: MDP\n@parameters\n\n@nr_states\n1\n@model\nstate 0 init\n")
    refuses(r"^model.drn has none of the formats that ravi reads: .tra, .csv, .mdp, .pomdp, and its", ravi.mdp, path)


@pytest.mark.usefixtures("in_this_process")
def test_a_suite_takes_them_too(here):
    here(m_csv=CSV)
    suite = {"name": "it", "steps": 100, "seeds": 2,
             "sections": [{"name": "it", "mdps": ["m.csv,discount=0.9"], "learners": ["uniform"]}]}  # fmt: skip
    found = ravi.run_suite(suite, "out", workers=1)
    assert found.table().num_rows == 2
