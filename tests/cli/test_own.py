"""An environment of one's own, as a user types it: learn, evaluate, play."""

import json
import os
import re
import signal
import sys

import numpy as np
import pytest

import ravi
from ravi.live.policies import Policy
from tests.support import command

gymnasium = pytest.importorskip("gymnasium")

LAKE = 0.5420259320004729  # <nu_0, V*> of FrozenLake-v1, 4x4, slippery, absorb, gamma = 0.99


@pytest.fixture
def typed(monkeypatch, tmp_path):
    """What a command prints, what it complains of, and its status; in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def typed(*words):
        done = command.typed(*words)
        return done.stdout, done.stderr, done.returncode

    return typed


@pytest.fixture
def lake(tmp_path):
    """The optimal policy of FrozenLake-v1, in a file."""
    mdp = ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99")
    environment = {"name": "FrozenLake-v1", "id": "FrozenLake-v1", "options": {}, "termination": "absorb"}
    made = Policy(table=ravi.solve(mdp).policy, discount=0.99, learner="optimum", environment=environment)
    made.save(tmp_path / "lake.policy")
    return made


class Lake(gymnasium.Env):
    """A lake of four states in a row, whose last one earns 1 and ends; sends signals and raises on demand."""

    at: dict = {}  # noqa: RUF012 - step of the process -> what happens there
    steps = 0

    def __init__(self, length=4, render_mode=None):
        self.length, self.render_mode = length, render_mode
        self.observation_space = gymnasium.spaces.Discrete(length)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0
        return 0, {}

    def step(self, a):
        Lake.steps += 1
        Lake.at.get(Lake.steps, lambda: None)()
        self.x = max(0, min(self.length - 1, self.x + (1 if a and self.np_random.random() < 0.8 else -1)))
        return self.x, float(self.x == self.length - 1), self.x == self.length - 1, False, {}


@pytest.fixture
def own(monkeypatch):
    """An environment of one's own, by its id."""
    monkeypatch.setattr(Lake, "at", {})
    monkeypatch.setattr(Lake, "steps", 0)
    gymnasium.register("Lake-v0", entry_point=Lake, max_episode_steps=7)
    yield Lake
    del gymnasium.registry["Lake-v0"]


LEARN = ("learn", "Lake-v0", "--learner", "ravi-ucb,scale=0.01,eta=0.5", "--discount", 0.9, "--steps", "3e3")
RANGE = ("--reward-range", 0, 1, "--reward-scale", 0.1)


# learn


def test_a_box_of_which_nothing_is_known_needs_no_word(typed):
    out, err, status = typed("learn", "Pendulum-v1", "--steps", 300)
    assert (err, status) == ("", 0)
    assert re.search(r"  grid +60 x 60 cells from \[-3.14, ", out)
    assert re.search(r"  actions +5 levels from \[-2\] to \[2\] of a Box; a wrapper can set others", out)
    assert "to 0 (those observed, and 0)" in out
    assert "levels" not in typed("learn", "FrozenLake-v1", "--steps", 20)[0]


def test_a_gap_that_is_not_reached_is_told(typed):
    words = ("learn", "FrozenLake-v1", "--steps", 3000, "--until-gap")
    assert ", until_gap = 0.01 not reached\n" in typed(*words, 0.01)[0]
    assert json.loads(typed(*words, 0.01, "--json")[0])["gap_missed"] == 0.01
    assert json.loads(typed(*words, 100, "--json")[0])["gap_missed"] is None


def test_rewards_of_which_none_but_0_was_observed_have_no_range(typed, own):
    words = ("learn", "Lake-v0", "--option", "length=40", "--steps", 20)
    assert json.loads(typed(*words, "--json")[0])["reward_range"] == [0, 0]
    assert re.search("\n  rewards +none but 0 was observed\n", typed(*words)[0])


def test_the_help_says_how_a_range_is_typed(typed):
    assert "LOW HIGH" in (said := " ".join(typed("learn", "--help")[0].replace("│", " ").split()))
    assert "such as --reward-range -1 1;" in said


def test_learn_tells_what_it_did_and_keeps_the_policy(typed, own):
    out, err, status = typed(*LEARN, *RANGE, "--save", "it.policy", "--evaluate", 0, "--json")
    assert (err, status) == ("", 0)
    found = json.loads(out)
    assert (found["plays"], found["complete"], found["truncations"]) == (3000, True, 0)
    assert found["time_limit_taken_off"] == 7
    assert found["reward_range"] == [0, 1]
    assert own.steps == found["steps"] < 3000  # a play in the absorbing state is no step
    assert found["resets"] == pytest.approx(300, rel=0.2)
    kept = Policy.load("it.policy")
    assert (kept.learner, kept.steps, kept.seed, kept.discount) == ("ravi-ucb,scale=0.01,eta=0.5", 3000, 0, 0.9)
    assert (kept.environment["id"], kept.environment["options"]) == ("Lake-v0", {})
    assert 0 < found["earned"] < found["optimistic"] <= 10
    assert 0 < json.loads(typed("evaluate", "it.policy", "--json")[0])["mean"] <= 1


def test_what_was_earned_is_in_the_units_that_evaluate_has(typed, own):
    words = (*LEARN, "--learner", "uniform", "--reward-range", 0, 4, "--steps", "1e4", "--save", "it.policy", "--json")
    found = json.loads(typed(*words)[0])
    up, down = np.diag([0.4, 0.4], 1), np.array([[0.6, 0, 0], [0.6, 0, 0], [0, 0.6, 0]])
    truth = np.linalg.solve(np.eye(3) - 0.9 * (up + down), [0, 0, 0.4])[0]
    worth = json.loads(typed("evaluate", "it.policy", "--json")[0])
    for low, high in ((found["earned_low"], found["earned_high"]), (worth["low"], worth["high"])):
        assert low < truth < high  # false alarm: one in twenty each, and the seeds are fixed
        assert high - low < truth
    assert found["earned"] == pytest.approx((found["earned_low"] + found["earned_high"]) / 2)


def test_learn_prints_for_people_too(typed, own):
    out, err, status = typed(*LEARN, *RANGE, "--save", "it.policy", "--option", "length=5")
    assert (err, status) == ("", 0)
    assert out.startswith("ravi-ucb on Lake-v0, gamma = 0.9: 3,000 steps of 3,000 in ")
    for line in ("terminations (absorb)", "of 7 steps, removed", "from 0 to 1 (given)", "optimistic value ",
                 "length=5", "earned, later half", "policy earns  ", "policy is worth  ", "steps per second",
                 "the last one, in it.policy", "ravi evaluate it.policy; ravi play it.policy"):  # fmt: skip
        assert line in out, line
    assert Policy.load("it.policy").table.shape == (6, 2)
    assert "step 1: state 0" in typed("play", "it.policy")[0]  # in the lake of five


def test_a_table_has_the_range_of_rewards(typed):
    words = ("learn", "CliffWalking-v1", "--learner", "uniform", "--discount", 0.9, "--steps", 200)
    found = json.loads(typed(*words, "--json")[0])
    assert found["reward_range"] == [-100, 0]
    assert found["reward_range_from"] == "its transition table"
    known = json.loads(typed(*words, "--rewards", "known", "--json")[0])
    assert known["reward_range"] == [-100, 0]


@pytest.mark.parametrize("which", ["last", "output", "planned"])
def test_which_policy_is_kept(typed, own, which):
    from ravi.live.environment import world_of
    from ravi.live.learning import learn

    typed(*LEARN, *RANGE, "--save", "it.policy", "--policy", which)
    same = learn(world_of("Lake-v0"), LEARN[3], 3000, discount=0.9, reward_range=(0, 1), reward_scale=0.1)
    assert (Policy.load("it.policy").table == same.table(which)).all()


def test_a_grid_is_cut_and_goes_into_the_file(typed):
    words = ("learn", "MountainCar-v0", "--learner", "uniform", "--discount", 0.9, "--steps", 500)
    out, err, status = typed(*words, "--reward-range", -1, 0, "--bins", "6,5", "--save", "car.policy", "--json")
    assert (err, status) == ("", 0)
    cut = Policy.load("car.policy").environment["observations"]
    assert (cut["bins"], cut["outside"]) == ([6, 5], "error")
    assert cut["low"] == pytest.approx([-1.2, -0.07])
    ends = ("--bins", "6", "--low", "-1,-0.05", "--high", "0.5,0.05", "--outside", "clip")
    typed(*words, "--reward-range", -1, 0, *ends, "--save", "car.policy")
    cut = Policy.load("car.policy").environment["observations"]
    assert (cut["bins"], cut["low"], cut["high"]) == ([6, 6], [-1, -0.05], [0.5, 0.05])
    assert "value, sampled   -" in typed("evaluate", "car.policy", "--cycles", 20)[0]


def test_ctrl_c_keeps_the_checkpoint_and_the_same_command_goes_on(typed, own):
    words = (*LEARN, *RANGE, "--save", "it.policy", "--json")
    once = json.loads(typed(*words)[0])
    whole = Policy.load("it.policy")
    own.steps, own.at = 0, {900: lambda: os.kill(os.getpid(), signal.SIGINT)}
    out, err, status = typed(*words, "--checkpoint", "it.agent")
    assert status == 130
    assert err == "ravi: stopped before the end; the same command goes on from it.agent\n"
    found = json.loads(out)
    assert 900 <= found["plays"] < 3000
    assert not found["complete"]
    assert Policy.load("it.policy").steps == found["plays"]
    then = json.loads(typed(*words, "--checkpoint", "it.agent")[0])
    assert then["plays_before"] == found["plays"]
    for fact in ("plays", "complete", "steps", "resets", "terminations", "optimistic", "earned", "earned_low"):
        assert then[fact] == once[fact], fact
    assert Policy.load("it.policy").table.tobytes() == whole.table.tobytes()
    again, _, status = typed(*words[:-1], "--checkpoint", "it.agent")
    assert status == 0
    assert "no time: the checkpoint has all steps" in again


def test_an_output_policy_that_is_still_to_come_is_not_kept(typed, own):
    own.at = {1: lambda: os.kill(os.getpid(), signal.SIGINT)}
    out, _, status = typed(*LEARN, *RANGE, "--policy", "output", "--save", "it.policy")
    assert status == 130
    assert re.search("\n  policy +not saved: the step that draws it is not reached", out)
    assert not os.path.exists("it.policy")


def test_an_environment_that_breaks_is_told_in_a_line(typed, own):
    def broken():
        raise RuntimeError("the ice broke")

    own.at = {500: broken}
    out, err, status = typed(*LEARN, *RANGE)
    assert (out, status) == ("", 2)
    assert "the ice broke; with --save FILE the policy is kept, with --checkpoint FILE the same command goes on" in err
    own.steps = 0
    out, err, status = typed(*LEARN, *RANGE, "--save", "it.policy")
    kept = Policy.load("it.policy")
    assert (out, status) == ("", 2)
    assert f"the ice broke; the policy of the {kept.steps} steps before is in it.policy\n" in err
    assert kept.steps >= 499  # some of them in the absorbing state
    own.steps, own.at = 0, {1: broken}
    assert typed(*LEARN, *RANGE, "--save", "none.policy")[1].endswith("the ice broke\n")
    assert not os.path.exists("none.policy")
    own.steps, own.at = 0, {500: broken}
    out, err, status = typed(*LEARN, *RANGE, "--checkpoint", "it.agent")
    assert (out, status) == ("", 2)
    assert "RuntimeError: the ice broke" in err
    assert "goes on from it.agent" in err
    own.at = {}
    assert json.loads(typed(*LEARN, *RANGE, "--checkpoint", "it.agent", "--json")[0])["complete"]


# evaluate


def test_evaluate_computes_and_samples(typed, lake):
    out, err, status = typed("evaluate", "lake.policy", "--cycles", "2e3", "--json")
    assert (err, status) == ("", 0)
    found = json.loads(out)
    assert abs(found["exact"] - LAKE) <= found["exact_error"] < 1e-9
    assert abs(found["optimum"] - LAKE) <= found["optimum_error"] < 1e-9
    assert abs(found["gap"]) <= found["exact_error"] + found["optimum_error"]
    assert found["low"] < LAKE < found["high"]  # false alarm: one in twenty, and the seed is fixed
    assert 0.02 < found["high"] - found["low"] < 0.08
    assert (found["cycles"], found["truncated"], found["confidence"]) == (2000, 0, 0.95)
    assert found["file"] == "lake.policy"


def test_evaluate_prints_for_people_too(typed, lake):
    out, _, status = typed("evaluate", "lake.policy", "--cycles", 100)
    assert status == 0
    assert "policy of optimum on FrozenLake-v1" in out
    assert "value, computed  0.542025932" in out
    assert "95 % interval" in out
    assert "lost             at most" in out


def test_evaluate_elsewhere(typed, lake):
    """On an MDP, computed alone; with another termination; with other options."""
    found = json.loads(typed("evaluate", "lake.policy", "gymnasium/FrozenLake-v1,discount=0.9", "--json")[0])
    assert found["exact"] == pytest.approx(4348890 / 63127201, rel=0.05)  # the policy is that of another discount
    assert found["optimum"] == pytest.approx(4348890 / 63127201, abs=1e-10)
    assert found["discount"] == 0.9
    assert found["mean"] is None
    dry = json.loads(typed("evaluate", "lake.policy", "--cycles", 10, "--option", "is_slippery=false", "--json")[0])
    assert dry["optimum"] == pytest.approx(0.99**5)
    Policy(table=lake.table[:16], discount=0.99).save("short.policy")
    again = json.loads(
        typed("evaluate", "short.policy", "FrozenLake-v1", "--cycles", 10, "--termination", "restart", "--json")[0]
    )
    assert again["exact"] == pytest.approx(1.56418, abs=1e-5)
    assert again["optimum"] == pytest.approx(1.6455789564839274)


@pytest.mark.parametrize(("criterion", "number"), [("average", "bias"), ("episodic,episode=5", "value")])
def test_a_policy_is_evaluated_in_every_criterion(typed, tmp_path, criterion, number):
    mdp, policy = ravi.mdp(f"riverswim/4,criterion={criterion}"), ravi.Policy(table=[[0.2, 0.8]] * 4, discount=0.9)
    policy.save(tmp_path / "it.policy")
    found = ravi.evaluate(policy, mdp)
    assert repr(found) == repr(ravi.evaluate(policy.table, mdp))
    words = ("evaluate", str(tmp_path / "it.policy"), "riverswim/4", "--criterion", criterion)
    assert repr(found)[1:-1] in typed(*words)[0]
    assert json.loads(typed(*words, "--json")[0])[number] == np.asarray(getattr(found, number)).tolist()


def test_an_environment_without_a_table_is_sampled_alone(typed):
    Policy(table=np.full((4 * 5 + 1, 3), 1 / 3), discount=0.9, environment={
        "name": "MountainCar-v0", "id": "MountainCar-v0", "options": {}, "termination": "absorb",
        "observations": {"kind": "grid", "low": [-1.2, -0.07], "high": [0.6, 0.07], "bins": [4, 5],
                         "outside": "clip", "shape": [2], "dtype": "float32"},
    }).save("car.policy")  # fmt: skip
    out, err, status = typed("evaluate", "car.policy", "--cycles", 30)
    assert (err, status) == ("", 0)
    assert "not computed     MountainCar-v0 has no transition table" in out
    assert "value, sampled   -" in out


# play


def test_play_is_what_evaluate_sums(typed, lake):
    plays = json.loads(typed("play", "lake.policy", "--cycles", 40, "--seed", 5, "--json")[0])["plays"]
    worth = json.loads(typed("evaluate", "lake.policy", "--cycles", 40, "--seed", 5, "--json")[0])
    assert sum(each["reward"] for each in plays) / 40 == pytest.approx(worth["mean"])
    assert len(plays) == worth["plays"]
    assert sum(each["end"] != "" for each in plays) == 40
    for each in plays:
        assert lake.table[each["state"], each["action"]] == 1


def test_play_shows_plays_and_cycles(typed, lake):
    out, err, status = typed("play", "lake.policy", "--cycles", 2)
    assert (err, status) == ("", 0)
    assert out.startswith("cycle 1\n  step 1: state 0, action ")
    assert "cycle 2\n" in out
    assert out.count("which earned") == 2


def test_play_renders_every_state(typed, lake):
    out, _, status = typed("play", "lake.policy", "--render", "ansi", "--cycles", 3)
    assert status == 0
    assert out.startswith("cycle 1\n\x1b[41mS\x1b[0mFFF\nFHFH\nFFFH\nHFFG\n  step 1: state 0")
    assert out.count("\x1b[41m") == out.count("  step ") + 3  # where it stands, at first and after every play


# mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("learn Lake-v0 HOW RANGE --discount 1.5", "discount is 1.5"),
        ("learn Lake-v0 HOW --learner ravi-ubc", "Did you mean ravi-ucb"),
        ("learn Lake-v0 HOW --learner ravi-ucb,scal=1", "Did you mean scale"),
        ("learn Lake-v0 HOW --learner optimum RANGE", "optimum is given the MDP itself"),
        (
            "learn Lake-v0 HOW --learner psrl",
            "reward_range is missing: Lake-v0 has no table to take it from; say",
        ),
        ("learn Lake-v0 HOW --reward-range 1 0", "reward_range is 1 to 0: the least reward must be below"),
        ("learn Lake-v0 HOW --reward-range 1 2", "leaves out 0, which is earned after a termination"),
        ("learn Lake-v0 HOW --reward-range 0 0.5 --steps 1e4", "is 1, outside its range from 0 to 0.5"),
        ("learn Lake-v0 HOW RANGE --rewards known", "Lake-v0 has no table P to be read"),
        ("learn Lake-v0 HOW RANGE --rewards knwn", "rewards is 'knwn', not one of"),
        ("learn Lake-v0 HOW RANGE --termination stop", "termination is 'stop', not one of absorb, restart"),
        ("learn Lake-v0 HOW RANGE --policy best", "--policy is 'best', not one of last, output, planned"),
        ("learn Lake-v0 HOW RANGE --bins 3", "--bins is for a continuous observation space, and this is Discrete(4)"),
        ("learn Lake-v0 HOW RANGE --outside clip", "give --bins"),
        ("learn Lake-v0 HOW RANGE --save no/such/file", "there is no folder no/such"),
        ("learn Lake-v0 HOW RANGE --checkpoint lake.policy", "lake.policy holds 'policy', not 'agent'"),
        ("learn Lak-v0 HOW", "Lake"),
        ("learn riverswim/6 --option a=1", "riverswim/6 is an MDP, and options are for an environment"),
        ("learn psrl", "psrl is a learner, not an environment; the environment comes first"),
        ("learn MountainCar-v0 HOW RANGE", "is continuous: say into how many cells"),
        ("learn MountainCar-v0 HOW RANGE --bins 3,3,3", "--bins has 3 numbers, but"),
        ("learn MountainCar-v0 HOW RANGE --bins 3,x", "--bins is 'x', not a number"),
        ("learn CartPole-v1 HOW RANGE --bins 3", "coordinate 1 of Box"),
        (
            "learn Pendulum-v1 HOW RANGE --bins 3",
            "the actions of Pendulum-v1: Box(-2.0, 2.0, (1,), float32) is continuous",
        ),
        ("evaluate none.policy", "there is no file none.policy"),
        ("evaluate lake.policy FrozenLak-v1", "FrozenLake"),
        ("evaluate lake.policy riverswim/6", "the policy has 17 states and 4 actions, but riverswim/6 has 6"),
        (
            "evaluate lake.policy Taxi-v4",
            "the policy has 17 states and 4 actions, but Taxi-v4 has 501 and 6",
        ),
        ("evaluate lake.policy --cycles 0", "--cycles is 0"),
        ("evaluate lake.policy --confidence 1", "confidence is 1"),
        ("evaluate lake.policy --termination stop", "termination is 'stop', not one of absorb, restart"),
        ("evaluate lake.policy --option map_name", "--option is 'map_name', not key=value"),
        ("evaluate lake.policy --option map_name=8x8 --option map_name=4x4", "gives map_name twice"),
        ("evaluate lake.policy --option mapname=8x8", "mapname"),
        ("evaluate lake.policy riverswim/6 --option a=1", "an MDP's options are in its id"),
        ("play lake.policy --render ansi --json", "do not go together"),
        ("play lake.policy --render film", "--render is 'film'; FrozenLake-v1 offers human and ansi"),
        ("play lake.policy --render film --episodes 1", "render is 'film'; FrozenLake-v1 offers human"),
        ("play lake.policy --seed -1", "seed is -1"),
        ("solve FrozenLake-v1", "in the shell with --discount 0.99"),
        ("learn riverswim/3 --criterion average", "is of the average reward, and ravi.learn is for a discount: take"),
        ("learn FrozenLake-v1 --criterion average", "FrozenLake-v1 is an environment, which is learned for a discount"),
        ("learn psrl riverswim/3", "psrl is a learner, not an environment; the environment comes first"),
        ("learn riverswim/3 psrl --learner scal", "the learner is given twice: psrl and --learner scal"),
    ],
)
def test_mistakes_are_one_line_and_status_2(typed, lake, own, line, message):
    shared = {"HOW": LEARN[2:], "RANGE": RANGE}
    out, err, status = typed(*(one for word in line.split() for one in shared.get(word, [word])))
    assert status == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_without_gymnasium_the_extra_is_named(typed, lake, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for words in (LEARN, ("evaluate", "lake.policy"), ("play", "lake.policy")):
        out, err, status = typed(*words)
        assert (out, status) == ("", 2)
        assert err.startswith("ravi: environments need Gymnasium: pip install 'ravi[gymnasium]', or in a clone")
    Policy(table=np.eye(2)[[1] * 6], discount=0.9).save("swim.policy")
    assert json.loads(typed("evaluate", "swim.policy", "riverswim/6", "--json")[0])["exact"] > 0  # an MDP needs none
