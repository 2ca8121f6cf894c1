"""A policy is what its file says, and is worth what `evaluate` says."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.live.environment import Environment, world_of
from ravi.live.estimates import student_estimate
from ravi.live.policies import Policy, evaluate, play
from ravi.mdps import garnet, riverswim
from ravi.planning.evaluation import return_of, staged_values
from ravi.runtime.walk import draw
from ravi.validation import InputError
from tests.helpers import refuses

gymnasium = pytest.importorskip("gymnasium")

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "policies.md"


def some(S=None, X=5, A=3, seed=0, **facts):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(A, 0.5), size=(X,) if S is None else (S, X))
    return Policy(table=table, discount=0.9, **facts)


class Coin(gymnasium.Env):
    """State 0 or 1. Action 1 moves from 0 to 1 with probability 1/2 and earns 3 there; action 0 earns 1 and ends."""

    def __init__(self, limit=None, ends=True):
        self.observation_space = gymnasium.spaces.Discrete(2)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.limit, self.ends, self.closed = limit, ends, False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0, 0
        return 0, {}

    def step(self, a):
        self.t += 1
        cut = self.limit is not None and self.t >= self.limit
        if a == 0:
            return self.x, 1.0, self.ends, cut, {}
        self.x = int(self.np_random.random() < 0.5)
        return self.x, 3.0 * self.x, False, cut, {}

    def close(self):
        self.closed = True


# The file.


@pytest.mark.parametrize("S", [None, 1, 4])
def test_a_policy_comes_back_bit_for_bit(S, tmp_path):
    made = some(S, units=(-2, 3), learner="ravi-ucb,scale=0.1", steps=700, seed=2**63 - 1,
                environment={"name": "Coin", "options": {"a": [1, 2]}}, states=[3, 1, [0, 1], "four", None],
                actions=["left", "stay", "right"])  # fmt: skip
    made.save(tmp_path / "it")
    back = Policy.load(tmp_path / "it")
    assert back.table.tobytes() == made.table.tobytes()
    assert back.table.shape == made.table.shape
    for name in ("discount", "units", "learner", "steps", "seed", "environment", "states", "actions"):
        assert getattr(back, name) == getattr(made, name), name
    assert back.units == (-2.0, 3.0)
    assert not back.table.flags.writeable
    stored = io.BytesIO()
    back.save(stored)
    assert stored.getvalue() == (tmp_path / "it").read_bytes()
    assert len(stored.getvalue()) < 2000 + made.table.nbytes


def test_the_file_is_read_without_ravi_as_the_page_shows(tmp_path):
    [code] = re.findall(r"```python without ravi\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    assert "import ravi" not in code
    made = some(3, learner="mine")
    made.save(tmp_path / "swim.policy")
    more = "print(json.dumps([action(x, age, u / 97) for x in range(5) for age in range(5) for u in range(97)]))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.modules['ravi'] = None\n{code}\n{more}"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said, drawn = done.stdout.splitlines()
    assert said.startswith("mine 0.9")
    assert json.loads(drawn) == [made.action(x, age, u / 97) for x in range(5) for age in range(5) for u in range(97)]


def test_actions_are_drawn_as_a_run_draws_them():
    made = some(3)
    for u in np.linspace(0, 1, 50, endpoint=False):
        for age in range(5):
            assert made.action(2, age, u) == draw(made.table[min(age, 2), 2], u)
    flat = Policy(table=[[0.0, 0.25, 0.75, 0.0]], discount=0.5)
    assert [flat.action(0, 9, u) for u in (0.0, 0.2499, 0.25, 1 - 2**-53)] == [1, 1, 2, 2]
    refuses("x is -1, but the policy's states are 0 to 0", flat.action, -1, 0, 0.5)


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"table": [[0.5, 0.4], [0.5, 0.5]]}, r"table\[0\] sums to 0.9, not 1"),
        ({"table": np.stack([HALF, HALF * [1, 1.5]])}, r"table\[1, 0\] sums to 1.25"),
        ({"table": [[1.5, -0.5]]}, r"table\[0, 1\] is -0.5, a negative probability"),
        ({"table": [[np.nan, 1.0]]}, r"table\[0, 0\] is nan"),
        ({"table": [0.5, 0.5]}, r"table has shape \(2,\)"),
        ({"table": np.ones((3, 0))}, r"table has shape \(3, 0\)"),
        ({"table": "up"}, "table is not an array of numbers"),
        ({"discount": 1.0}, "discount is 1"),
        ({"units": (1, 1)}, "units is 1 to 1: the least reward must be below"),
        ({"units": (0, np.inf)}, r"units\[1\] is inf"),
        ({"units": 3.0}, r"units has shape \(\), not \(low, high\)"),
        ({"learner": 3}, "learner is 3, not a text"),
        ({"steps": -1}, "steps is -1"),
        ({"seed": 0.5}, "seed is 0.5, not a whole number"),
        ({"environment": ["FrozenLake-v1"]}, "environment is .* not what"),
        ({"environment": {"low": np.inf}}, "environment is not JSON"),
        ({"states": [1]}, "states is .* not a list of 2 labels"),
        ({"states": [1, 1]}, r"states\[1\] is 1, as is states\[0\]"),
        ({"actions": [1, {2}]}, r"actions\[1\] is not JSON"),
    ],
)
def test_what_is_no_policy_is_refused_by_name(facts, message):
    refuses(message, Policy, **{"table": HALF, "discount": 0.9} | facts)


def test_foreign_and_wrong_files_say_what_they_are(tmp_path):
    path = tmp_path / "it"
    riverswim(3).save(path)
    refuses("holds 'mdp', not 'policy'", Policy.load, path)
    some().save(path)
    refuses("holds 'policy', not 'mdp'", ravi.MDP.load, path)
    from ravi.runtime.archive import write

    write(path, "policy", {"discount": 0.9}, {"table": HALF})
    refuses("it is damaged: it has no units, learner", Policy.load, path)
    header = {"discount": 0.9, "units": [0, 1], "learner": "", "steps": 0, "seed": 0, "environment": {}}
    write(path, "policy", header | {"states": None, "actions": None}, {"table": HALF * 3})
    refuses(r"it is damaged: table\[0\] sums to 3", Policy.load, path)


# What it is worth: computed.


def in_units(mdp, units):
    return ravi.MDP(**{f: getattr(mdp, f) for f in ("rewards", "successors", "transitions", "initial", "discount")},
                    units=units)  # fmt: skip


def test_on_an_mdp_the_worth_is_computed_in_its_units():
    mdp = in_units(garnet(5, 3, 2, seed=4), (-7.0, 5.0))
    made, H = some(), mdp.horizon
    found = evaluate(made, mdp)
    assert abs(found.exact - H * (-7 + 12 * return_of(mdp, made.table))) <= found.exact_error < 1e-9
    best = ravi.solve(mdp)
    assert abs(found.optimum - H * (-7 + 12 * best.optimum)) <= found.optimum_error + 12 * H * best.optimum_error
    assert found.gap == found.optimum - found.exact > 0
    assert found.mean is None
    # the same as that of a Bellman equation in units
    P = np.zeros((5, 3, 5))
    np.put_along_axis(P, mdp.successors.astype(int), mdp.transitions, 2)
    r = (made.table * (-7 + 12 * mdp.rewards)).sum(-1)
    V = np.linalg.solve(np.eye(5) - mdp.discount * np.einsum("xa,xay->xy", made.table, P), r)
    assert found.exact == pytest.approx(mdp.initial @ V, abs=1e-9)
    optimal = Policy(table=best.policy, discount=mdp.discount)
    assert abs(evaluate(optimal, mdp).gap) <= 2e-10 * 12 * H


def test_a_policy_by_age_is_worth_what_its_stages_are():
    mdp, made = garnet(5, 3, 2, seed=4), some(4)
    assert evaluate(made, mdp).exact == pytest.approx(
        mdp.horizon * staged_values(mdp, made.table[None])[1][0], abs=1e-9
    )
    same = Policy(table=np.stack([some().table] * 3), discount=0.9)
    assert evaluate(same, mdp).exact == pytest.approx(evaluate(some(), mdp).exact, abs=1e-10)


def test_states_that_were_discovered_have_their_rows():
    mdp, whole = garnet(5, 3, 2, seed=4), some()
    order = [4, 0, 2]
    part = Policy(table=whole.table[order], discount=0.9, states=order)
    full = np.full((5, 3), 1 / 3)
    full[order] = whole.table[order]
    assert evaluate(part, mdp).exact == pytest.approx(mdp.horizon * return_of(mdp, full), abs=1e-9)


def test_a_policy_of_another_size_is_refused():
    refuses("the policy has 5 states and 3 actions, but riverswim/6 has 6 and 2", evaluate, some(), "riverswim/6")
    refuses("5 states and 3 actions, but Coin has 3 and 2", evaluate, some(), Coin())


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("riverswim/6", True), ("riverswim", True), ("mine.module:build,3", True), ("some/where/it.mdp", True),
     ("FrozenLake-v1", False), ("ALE/Pong-v5", False), ("module:Mine-v0", False)],
)  # fmt: skip
def test_ids_of_mdps_are_told_from_those_of_environments(text, is_one):
    assert ids.names_an_mdp(text) is is_one


# What it is worth: sampled.


def worth_of_coin(p, gamma, restart=False):
    """Of action 1 with probability p in both states: V = p (3/2 + gamma V) + (1 - p) (1 + gamma V if it restarts)."""
    return (p * 1.5 + (1 - p)) / (1 - gamma * (1 if restart else p))


@pytest.mark.parametrize("termination", ["absorb", "restart"])
def test_the_mean_of_cycles_is_the_worth(termination):
    p, gamma, n = 0.8, 0.9, 20_000
    table = np.array([[1 - p, p]] * (3 if termination == "absorb" else 2))
    found = evaluate(Policy(table=table, discount=gamma), Coin(), cycles=n, termination=termination, confidence=0.9999)
    truth = worth_of_coin(p, gamma, termination == "restart")
    assert found.low < truth < found.high  # false alarm: one in 10,000, and the seed is fixed
    assert (found.high - found.low) / truth < 0.07
    assert (found.cycles, found.truncated, found.unknown) == (n, 0, 0)
    assert found.no_table == "Coin has no transition table"
    # cycles that end by absorption alone would have p in place of gamma p
    plays = n / (1 - gamma * (p if termination == "absorb" else 1))
    assert found.plays == pytest.approx(plays, rel=0.05)


def test_a_policy_by_age_is_sampled_by_age():
    gamma = 0.5
    table = np.zeros((2, 3, 2))
    table[0, :, 1] = 1  # first a coin, then the end
    table[1, :, 0] = 1
    found = evaluate(Policy(table=table, discount=gamma), Coin(), cycles=4000, confidence=0.9999)
    assert found.low < 1.5 + gamma * 1 < found.high
    assert found.high - found.low < 0.3
    ages = {(each.age, each.action) for each in play(Policy(table=table, discount=gamma), Coin(), 50)}
    assert ages == {(0, 1), (1, 0)}


def test_intervals_cover_as_often_as_they_say():
    p, gamma = 0.8, 0.9
    made = Policy(table=np.array([[1 - p, p]] * 3), discount=gamma)
    truth = worth_of_coin(p, gamma)
    hits = 0
    for seed in range(200):
        found = evaluate(made, Coin(), cycles=100, seed=seed, confidence=0.8)
        hits += found.low < truth < found.high
    assert 137 <= hits <= 181  # Binomial(200, 0.8) leaves this with probability 2e-4; the seeds are fixed


def test_sampling_is_a_pure_function_of_the_seed():
    made = Policy(table=np.full((3, 2), 0.5), discount=0.9)
    one, two = (evaluate(made, Coin(), cycles=50, seed=3).json() for _ in range(2))
    assert one == two
    assert evaluate(made, Coin(), cycles=50, seed=4).mean != one["mean"]
    first = [each for each in play(made, Coin(), 20, seed=3) if each.cycle < 10]
    assert first == list(play(made, Coin(), 10, seed=3))
    assert sum(each.reward for each in play(made, Coin(), 50, seed=3)) == pytest.approx(50 * one["mean"])


def test_cycles_end_at_the_same_resets_for_every_policy():
    stay, walk = (Policy(table=np.array([[1 - p, p]] * 2), discount=0.9) for p in (0.0, 1.0))
    lengths = [
        np.bincount([each.cycle for each in play(made, Coin(ends=False), 30, termination="restart")])
        for made in (stay, walk)
    ]
    assert (lengths[0] == lengths[1]).all()
    assert len(set(lengths[0])) > 5


def test_no_play_has_the_numbers_of_another_or_of_a_learner(monkeypatch):
    from ravi import random

    asked, block = [], random.block
    monkeypatch.setattr(
        "ravi.live.policies.playing.block", lambda key, t, part: asked.append((int(key), t)) or block(key, t, part)
    )
    plays = list(
        play(Policy(table=np.full((2, 2), 0.5), discount=0.99), Coin(ends=False), 40, seed=9, termination="restart")
    )
    assert len(asked) == len(plays) == len(set(asked))
    assert {key for key, _ in asked} == {9}
    assert min(t for _, t in asked) > 2**31 - 2  # the steps that a learner can make


def test_a_policy_is_not_judged_by_the_luck_that_it_was_learned_from():
    learned = Environment(Coin(), seed=0)
    learned.reset()
    seen = [learned.step(1)[0] for _ in range(64)]
    made = Policy(table=np.array([[0.0, 1.0]] * 2), discount=1 - 1e-9)
    again = play(made, Coin(), 1, seed=0, termination="restart")
    assert [next(again).successor for _ in range(64)] != seen


def test_truncated_cycles_are_counted_and_left_out():
    made = Policy(table=np.array([[0.0, 1.0]] * 3), discount=0.9)
    found = evaluate(made, Coin(limit=10), cycles=500)
    ends = [each.end for each in play(made, Coin(limit=10), 500) if each.end]
    assert found.truncated == ends.count("truncated") > 100
    assert len(ends) == found.cycles == 500
    sums = np.zeros(500)
    for each in play(made, Coin(limit=10), 500):
        sums[each.cycle] += each.reward
    kept = sums[np.array(ends) == "reset"]
    assert found.mean == pytest.approx(kept.mean())
    assert "not a fair sample" in str(found)
    none = evaluate(made, Coin(limit=1), cycles=1, seed=1)
    assert none.truncated == 1
    assert none.mean is None


def test_without_spread_there_is_no_interval():
    ends = Policy(table=np.array([[1.0, 0.0]] * 3), discount=0.9)
    found = evaluate(ends, Coin(), cycles=20)
    assert (found.mean, found.low, found.high) == (1.0, -np.inf, np.inf)
    assert found.json()["low"] is None
    json.dumps(found.json(), allow_nan=False)
    assert "no interval: cycles without spread" in str(found)


def test_students_interval_is_the_textbooks():
    values = np.array([1.0, 2.0, 3.0, 6.0])  # t_{3, 0.975} = 3.182446, s^2 = 14/3
    mean, low, high, *_ = student_estimate(values, "cycle", 0.95)
    assert mean == 3
    assert high - mean == mean - low == pytest.approx(3.182446305 * (14 / 3) ** 0.5 / 2, rel=1e-9)


def test_unknown_states_are_played_uniformly_and_counted():
    made = Policy(table=np.array([[0.0, 1.0]]), discount=0.9, states=[0])
    steps = list(play(made, Coin(), 300))
    assert {each.action for each in steps if each.state == 0} == {1}
    assert {each.action for each in steps if each.state == 1} == {0, 1}
    assert all(each.known == (each.state == 0) for each in steps)
    found = evaluate(made, Coin(), cycles=300)
    assert found.unknown == sum(not each.known for each in steps) > 0


def test_an_environment_that_is_given_stays_open_and_one_that_is_made_is_closed(monkeypatch):
    given = Coin()
    made = Policy(table=np.full((3, 2), 0.5), discount=0.9)
    evaluate(made, given, cycles=2)
    assert not given.closed
    from ravi.live.policies import playing

    monkeypatch.setattr(playing, "world_of", lambda name, options=None, render=None: given)
    evaluate(made, "Coin-v0", cycles=2)
    assert given.closed
    given.closed = False
    list(play(made, "Coin-v0", 2))
    assert given.closed


# Where it was learned.


def test_the_environment_is_made_again_as_the_policy_was_learned():
    lake = Environment(world_of("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}), termination="restart")
    policy = Policy(
        table=np.full((64, 4), 0.25), discount=0.9,
        environment=lake.plain(),
    )  # fmt: skip
    found = evaluate(policy, cycles=5)
    assert found.on == "FrozenLake-v1"
    moved = list(play(policy, cycles=30))
    assert {abs(each.successor - each.state) for each in moved if each.successor != 0} <= {0, 1, 8}  # not slippery
    refuses(
        "observations: whole numbers from 0 to 15, not whole numbers from 0 to 63",
        evaluate,
        policy,
        gymnasium.make("FrozenLake-v1"),
        cycles=5,
    )
    with pytest.raises(InputError, match="does not say with which options FrozenLake-v1 was made"):
        evaluate(Policy(table=policy.table, discount=0.9, environment=lake.plain() | {"options": None}))
    refuses("does not say where it was learned", evaluate, Policy(table=policy.table, discount=0.9))
    refuses("termination is 'absorb', but the stream", evaluate, policy, lake, termination="absorb")


def test_a_grid_is_cut_again():
    from ravi.live.grid import Grid

    car = Environment(world_of("MountainCar-v0"), grid=Grid([-1.2, -0.07], [0.6, 0.07], [4, 3], "clip"))
    policy = Policy(table=np.full((13, 3), 1 / 3), discount=0.9, environment=car.plain())
    found = evaluate(policy, cycles=5)
    assert found.exact is None
    assert found.truncated == 0
    assert found.mean < 0


def test_states_that_a_stream_discovered_are_met_again_by_their_labels():
    """Of learning itself this needs numbers and labels only: a policy on the states that were met, in their order."""
    best = ravi.solve(ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99")).policy
    stream = Environment(world_of("FrozenLake-v1"), discover=True)
    stream.reset()
    for t in range(40):
        if stream.step(t % 4)[0] == stream.terminal:
            stream.reset()
    labels = stream.plain()["observations"]["labels"]
    seen = [label for label in labels if isinstance(label, int)]
    assert 3 < len(seen) < 15
    table = np.full((32, 4), 0.25)  # with room to spare
    for row, label in enumerate(labels):
        if isinstance(label, int):
            table[row] = best[label]
    policy = Policy(table=table, discount=0.99, environment=stream.plain() | {"options": {}})
    found = evaluate(policy, cycles=2000, confidence=0.9999)
    full = np.full((17, 4), 0.25)
    full[seen] = best[seen]
    truth = evaluate(Policy(table=full, discount=0.99), ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99")).exact
    assert found.exact == pytest.approx(truth, abs=1e-12)
    assert found.low < truth < found.high
    assert found.unknown > 0
    refuses("discovered with termination 'absorb'", evaluate, policy, termination="restart")


def test_an_environment_in_which_nothing_terminates_has_a_row_to_spare():
    from ravi.gymnasium import make

    mdp = riverswim(4, 0.9)
    swim = Policy(table=np.eye(2)[[1] * 5], discount=0.9)
    found = evaluate(swim, make(mdp), cycles=2000, confidence=0.9999)
    assert found.exact == pytest.approx(mdp.horizon * return_of(mdp, swim.table[:4]), abs=1e-10)
    assert found.low < found.exact < found.high
    learned = Policy(table=swim.table, discount=0.9, environment={"termination": "absorb"})
    assert evaluate(learned, mdp).exact == found.exact
    refuses("5 states and 2 actions, but riverswim/4 has 4 and 2", evaluate, swim, mdp)


def test_an_unknown_environment_names_the_nearest():
    refuses("FrozenLake", evaluate, some(), "FrozenLak-v1")
    refuses("nomodule", evaluate, some(), "nomodule:Thing-v0")
    refuses("mapname", world_of, "FrozenLake-v1", {"mapname": "8x8"})
