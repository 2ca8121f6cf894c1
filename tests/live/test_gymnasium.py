"""Gymnasium's environments as MDPs, against the Bellman equations of their own tables; and MDPs as environments."""

import subprocess
import sys
import warnings
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.utils.env_checker import check_env

import ravi
from ravi import InputError
from ravi.core import MDP
from ravi.gymnasium import TimeLimitDropped, make, mdp
from ravi.mdps import environments
from ravi.mdps.environments import open_environment, options_of
from tests.helpers import dense, refuses

TOL = 1e-12


def bare(id, **options):
    return gym.make(id, max_episode_steps=-1, **options)


def best(env, discount=0.99, **options):
    """<nu_0, V*> of its MDP in the environment's units."""
    made = mdp(env, discount, **options)
    return made.horizon * made.in_units(ravi.solve(made, tol=1e-13).optimum)


def by_hand(env, discount, termination):
    """<nu_0, V*> straight from the table: V = max_a sum p (r + gamma V'), V' of a terminated transition by choice."""
    P, nu0 = env.unwrapped.P, env.unwrapped.initial_state_distrib
    X, A = len(P), len(P[0])
    rows = [(x, a, *entry) for x in range(X) for a in range(A) for entry in P[x][a]]
    x, a, p, y, r, ends = (np.array(column) for column in zip(*rows, strict=True))
    pair, V = x * A + a, np.zeros(X)
    while True:
        after = {"absorb": 0.0, "restart": nu0 @ V}[termination]
        Q = np.bincount(pair, p * (r + discount * np.where(ends, after, V[y])), X * A).reshape(X, A)
        if np.abs(Q.max(1) - V).max() < 1e-13 * (1 - discount) * max(1, np.abs(V).max()):
            return float(nu0 @ V)
        V = Q.max(1)


REFERENCES = [
    ("FrozenLake-v1", {}, 0.9, "absorb", float(Fraction(4348890, 63127201))),
    ("FrozenLake-v1", {}, 0.95, "absorb", 0.18047157839720174),
    ("FrozenLake-v1", {}, 0.99, "absorb", 0.5420259320004729),
    ("FrozenLake-v1", {}, 0.99, "restart", 1.6455789564839274),
    ("FrozenLake-v1", {"map_name": "8x8"}, 0.99, "absorb", 0.41464036179998787),
    ("CliffWalking-v1", {}, 0.99, "absorb", -(1 - 0.99**13) / 0.01),  # 13 steps of -1: up, along and down
    ("Taxi-v4", {}, 0.99, "absorb", 6.327464314919364),
]


@pytest.mark.parametrize(("id", "options", "discount", "termination", "value"), REFERENCES)
def test_known_environments_have_their_known_optima(id, options, discount, termination, value):
    assert best(bare(id, **options), discount, termination=termination) == pytest.approx(value, abs=TOL, rel=TOL)


@pytest.mark.parametrize("termination", ["absorb", "restart"])
@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("FrozenLake-v1", {"is_slippery": False}),
        ("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.7}),
        ("FrozenLake-v1", {"reward_schedule": (5, -3, -0.1)}),
        ("CliffWalkingSlippery-v1", {}),
        ("Taxi-v4", {"is_rainy": True}),
    ],
)
def test_the_optimum_solves_the_bellman_equations_of_the_table(id, options, termination):
    env = bare(id, **options)
    assert best(env, 0.9, termination=termination) == pytest.approx(by_hand(env, 0.9, termination), abs=TOL, rel=TOL)


def test_every_terminated_transition_enters_the_one_state_more():
    env = bare("Taxi-v4")
    made = mdp(env, 0.9)
    P = dense(made)
    assert made.states == 501
    ends = {(x, a) for x in range(500) for a in range(6) if env.unwrapped.P[x][a][0][3]}
    assert ends == set(zip(*np.nonzero(P[:500, :, 500]), strict=True))
    assert len(ends) == 4  # at each of the four places, with the passenger inside and its destination there
    assert (P[500, :, 500] == 1).all()
    assert made.initial[500] == 0
    np.testing.assert_allclose(made.in_units(made.rewards[500]), 0, atol=1e-14)


def test_terminated_transitions_restart_at_the_beginning():
    class Ring(Table):
        initial_state_distrib = np.array([0.25, 0.0, 0.75])

    P = {0: [[(1.0, 1, 0, False)]], 1: [[(0.5, 2, 1, True), (0.5, 2, 0, False)]], 2: [[(1.0, 0, 0, True)]]}
    made = mdp(Ring(P), 0.9, termination="restart")
    np.testing.assert_array_equal(dense(made)[:, 0], [[0, 1, 0], [0.125, 0, 0.5 + 0.375], [0.25, 0, 0.75]])
    np.testing.assert_array_equal(made.rewards[:, 0], [0, 0.5, 0])


def test_rewards_are_scaled_by_the_range_of_single_rewards_and_the_zero_of_the_end():
    assert mdp(bare("CliffWalking-v1"), 0.9).units == (-100, 0)
    assert mdp(bare("CliffWalking-v1"), 0.9, termination="restart").units == (-100, -1)  # nothing earns 0
    assert mdp(bare("Taxi-v4"), 0.9).units == (-10, 20)
    slippery = mdp(bare("FrozenLake-v1"), 0.9)
    assert (slippery.units, slippery.rewards.max()) == ((0, 1), pytest.approx(1 / 3))  # of single rewards, not of r
    flat = mdp(Table({0: [[(1.0, 0, 3.0, False)]]}), 0.9)
    assert (flat.units, flat.rewards.tolist()) == ((3, 4), [[0]])  # a range has a width


class Table(gym.Env):
    """An environment of one action, or more, with this table."""

    def __init__(self, P, initial=0):
        self.P = P
        self.observation_space, self.action_space = spaces.Discrete(len(P)), spaces.Discrete(len(P[0]))
        if not hasattr(self, "initial_state_distrib"):
            self.initial_state_distrib = np.eye(1, len(P), initial)[0]


def test_successors_that_come_twice_are_added_up():
    twice = [(0.25, 1, 1.0, False), (0.5, 0, 0.0, False), (0.25, 1, 0.0, False)]
    made = mdp(Table([[twice], [[(1.0, 1, 0.0, False)]]]), 0.9)
    np.testing.assert_array_equal(dense(made)[0, 0], [0.5, 0.5])
    assert made.rewards[0, 0] == 0.25
    assert made.states == 2  # nothing terminates: there is no state more


def test_what_never_happens_changes_nothing():
    never = [(1.0, 0, 1.0, False), (0.0, 0, 99.0, False), (0.0, 0, -99.0, True)]
    made = mdp(Table({0: [[(1.0, 0, 0.0, False)], never]}), 0.9)
    assert (made.states, made.units, made.rewards.tolist()) == (1, (0, 1), [[0, 1]])


STAY = [(1.0, 0, 0.0, False)]
BAD = [
    ({0: [[(0.5, 0, 0.0, False)]]}, r"P\[0\]\[0\] has probabilities that sum to 0.5, not 1"),
    ({0: [STAY], 1: [[(0.6, 0, 0.0, False), (0.6, 0, 0.0, False)]]}, r"P\[1\]\[0\] has probabilities that sum to 1.2"),
    ({0: [[]]}, r"P\[0\]\[0\] has probabilities that sum to 0, not 1"),
    ({0: [STAY], 1: [[(1.0, 2, 0.0, False)]]}, r"P\[1\]\[0\]\[0\] leads to 2, but states are 0 to 1"),
    ({0: [[(1.0, -1, 0.0, True)]]}, r"P\[0\]\[0\]\[0\] leads to -1, but states are 0 to 0"),
    ({0: [[(1.0, 0.5, 0.0, True)]]}, r"P\[0\]\[0\]\[0\] leads to 0.5, not to a state"),
    ({0: [[(1.0, 0, np.nan, False)]]}, r"the reward of P\[0\]\[0\]\[0\] is nan"),
    ({0: [[(1.0, 0, None, False)]]}, r"the reward of P\[0\]\[0\]\[0\] is None, not a number"),
    ({0: [[(np.nan, 0, 0.0, False)]]}, r"the probability of P\[0\]\[0\]\[0\] is nan"),
    ({0: [[(1.5, 0, 0.0, False), (-0.5, 0, 0.0, False)]]}, r"the probability of P\[0\]\[0\]\[1\] is -0.5"),
    ({0: [[(1.0, 0, 0.0)]]}, r"P\[0\]\[0\]\[0\] is \(1.0, 0, 0.0\), not \(probability"),
    ({0: [None]}, r"P\[0\]\[0\] is None, not a list"),
    ({0: [STAY, STAY], 1: [STAY]}, r"P\[1\] has no entry 1, though entries 0 to 1 are needed"),
    ({0: [STAY], 1: [STAY, STAY]}, r"P\[1\] has 2 entries, but there are 1 actions"),
    ({0: [STAY], 2: [STAY]}, r"P has no entry 1, though entries 0 to 1 are needed"),
]


@pytest.mark.parametrize(("P", "message"), BAD)
def test_a_table_that_is_wrong_is_an_error_that_names_the_entry(P, message):
    refuses(message, mdp, Table(P), 0.9)


def test_an_environment_that_does_not_say_where_it_begins_needs_to_be_told():
    env = Table({0: [STAY], 1: [STAY]})
    assert mdp(env, 0.9, initial=1).initial.tolist() == [0, 1]
    assert mdp(env, 0.9, initial=[0.5, 0.5]).initial.tolist() == [0.5, 0.5]
    del env.initial_state_distrib
    refuses(r"Table does not say where it begins .*give initial=", mdp, env, 0.9)
    env.initial_state_distrib = [0.5, 0.6]
    refuses(r"initial_state_distrib sums to 1.1, not 1", mdp, env, 0.9)


def test_a_table_is_read_where_states_and_actions_count_from_zero():
    for space, what in (("observation_space", "observation"), ("action_space", "action")):
        for other in (spaces.Discrete(1, start=1), spaces.MultiBinary(1)):
            env = Table({0: [STAY]})
            setattr(env, space, other)
            refuses(f"the {what} space is .*; a table is read where it is Discrete", mdp, env, 0.9)


def test_an_environment_without_a_table_is_refused():
    for id in ("CartPole-v1", "Blackjack-v1"):
        refuses(f"{id} has no table P to be read. Learn from it by playing: ravi.learn", mdp, bare(id), 0.9)


def test_a_fickle_passenger_is_refused_for_the_table_does_not_describe_it():
    env = bare("Taxi-v4", fickle_passenger=True, fickle_probability=1.0)
    refuses("Taxi-v4 with fickle_passenger ships a table that does not describe it", mdp, env, 0.9)
    # Indeed: from taxi and passenger at the first place, a move after the pickup changes the destination.
    env.reset(seed=0)
    inner = env.unwrapped
    inner.s = inner.encode(0, 0, 0, 1)
    env.step(4)
    before = inner.s
    after = env.step(0)[0]
    assert after not in [y for _, y, _, _ in inner.P[before][0]]


def test_a_time_limit_is_dropped_and_that_is_said():
    with pytest.warns(TimeLimitDropped, match="FrozenLake-v1 is cut off after 100 steps; its MDP has no time limit"):
        limited = mdp(gym.make("FrozenLake-v1"), 0.9)
    with pytest.warns(TimeLimitDropped, match="after 7 steps"):
        mdp(wrappers.TimeLimit(gym.make("FrozenLake-v1"), 7), 0.9)
    with pytest.warns(TimeLimitDropped):
        assert mdp("FrozenLake-v1", 0.9).digest == limited.digest
    assert mdp(bare("FrozenLake-v1"), 0.9).digest == limited.digest  # no limit, no warning: one would be an error


class Quiet(gym.Wrapper):
    """Changes nothing."""

    def greet(self):
        return "hello"


class Doubling(gym.Wrapper):
    def step(self, action):
        y, reward, *rest = self.env.step(action)
        return y, 2 * reward, *rest


class Shorter(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.action_space = spaces.Discrete(2)


class Limit(wrappers.TimeLimit):
    def step(self, action):
        return super().step(0)


class Noisy(gym.RewardWrapper):
    def reward(self, reward):
        return -reward


def patched(env):
    env = Quiet(env)
    env.step = lambda action: (0, 0.0, False, False, {})
    return env


@pytest.mark.parametrize("wrap", [wrappers.RecordEpisodeStatistics, wrappers.OrderEnforcing, Quiet])
def test_wrappers_that_change_nothing_are_passed_through(wrap):
    env = bare("FrozenLake-v1")
    assert mdp(wrap(wrap(env)), 0.9).digest == mdp(env, 0.9).digest


@pytest.mark.parametrize(
    ("wrap", "name"),
    [
        (lambda env: wrappers.TransformObservation(env, lambda y: 15 - y, None), "TransformObservation"),
        (lambda env: wrappers.TransformReward(env, lambda r: -r), "TransformReward"),
        (lambda env: wrappers.TransformAction(env, lambda a: 3 - a, None), "TransformAction"),
        (lambda env: wrappers.StickyAction(env, 0.5), "StickyAction"),
        (lambda env: wrappers.TimeAwareObservation(wrappers.TimeLimit(env, 9)), "TimeAwareObservation"),
        (lambda env: wrappers.OrderEnforcing(Doubling(env)), "Doubling"),
        (Shorter, "Shorter"),
        (lambda env: Limit(env, 5), "Limit"),
        (Noisy, "Noisy"),
        (patched, "Quiet"),
    ],
)  # fmt: skip
def test_wrappers_that_may_change_the_problem_are_refused_by_name(wrap, name):
    with pytest.raises(InputError, match=f"the wrapper {name} may change observations, actions or rewards"):
        mdp(wrap(bare("FrozenLake-v1")), 0.9)


def test_an_automatic_reset_is_refused_for_it_takes_a_step():
    with pytest.raises(InputError, match=r"Autoreset begins anew by a step of its own; .*termination='restart'"):
        mdp(wrappers.Autoreset(bare("FrozenLake-v1")), 0.9)


TABULAR = ["riverswim/6", "deep-sea/4", "garnet/6,3,2,seed=1", "ring/5", "trap", "gymnasium/FrozenLake-v1,discount=0.9",
           "gymnasium/CliffWalkingSlippery-v1,termination=restart", "gymnasium/Taxi-v4"]  # fmt: skip


@pytest.mark.parametrize("id", TABULAR)
def test_an_mdp_made_an_environment_and_read_again_is_itself(id):
    made = ravi.mdp(id)
    again = mdp(make(made), made.discount)
    assert again.digest == made.digest
    assert (again.units, again.name) == (made.units, made.name)


def test_a_mixture_made_an_environment_and_read_again_is_itself_without_features():
    made = ravi.mdp("riverswim/mixture/4")
    again = mdp(make(made), made.discount)
    assert again.features is None
    for field in ("rewards", "successors", "transitions", "initial"):
        np.testing.assert_array_equal(getattr(again, field), getattr(made, field))


@pytest.mark.parametrize("id", ["garnet/6,3,2,seed=1", "gymnasium/CliffWalking-v1"])
def test_an_mdp_is_a_valid_environment(id):
    check_env(make(ravi.mdp(id)), skip_render_check=True)


def test_an_environment_is_determined_by_its_seed():
    def path(seed):
        env = make(ravi.mdp("garnet/20,2,5,seed=1"))
        return [env.reset(seed=seed)[0]] + [env.step(t % 2)[:2] for t in range(50)] + [env.reset()[0]]

    assert path(1) == path(1)
    assert path(1) != path(2)


def test_an_environment_earns_in_the_units_of_its_mdp_and_never_ends():
    env = make(ravi.mdp("gymnasium/CliffWalking-v1"))
    assert env.reset(seed=0)[0] == 36
    assert env.step(1) == (36, -100.0, False, False, {})  # into the cliff
    steps = [env.step(a) for a in [0, *[1] * 11, 2, 0, 1]]
    assert [y for y, *_ in steps[-3:]] == [48, 48, 48]
    np.testing.assert_allclose([r for _, r, *_ in steps], [-1] * 13 + [0, 0], atol=1e-12)
    assert not any(ends or cut for _, _, ends, cut, _ in steps)


def test_an_environment_draws_from_its_mdp():
    """Frequencies of successors and first states: within five standard deviations."""
    made, n = ravi.mdp("garnet/6,2,4,seed=2"), 4000
    env = make(made)
    env.reset(seed=5)
    counts, starts = np.zeros(6), np.zeros(6)
    for _ in range(n):
        env._state = 3
        counts[env.step(1)[0]] += 1
        starts[env.reset()[0]] += 1
    for seen, p in ((counts, dense(made)[3, 1]), (starts, made.initial)):
        assert (np.abs(seen - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


def test_an_environment_refuses_what_it_cannot_play():
    env = make(ravi.mdp("riverswim/3"))
    refuses("must be reset before its first step", env.step, 0)
    env.reset()
    refuses("action is 2, but actions are 0 to 1", env.step, 2)


def test_an_environment_has_an_id_among_mdps():
    made = ravi.mdp("gymnasium/FrozenLake-v1,discount=0.95,options=map_name:8x8;is_slippery:false")
    assert (made.states, made.discount) == (65, 0.95)
    assert made.digest == mdp(bare("FrozenLake-v1", map_name="8x8", is_slippery=False), 0.95).digest
    assert ravi.mdp(f"{made.name},discount=0.95").digest == made.digest
    assert ravi.mdp("gymnasium/FrozenLake-v1,termination=restart").states == 16
    assert isinstance(ravi.mdp("gymnasium/FrozenLake8x8-v1"), MDP)


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("gymnasium/Nowhere-v1", "Gymnasium makes no environment of 'Nowhere-v1'"),
        ("gymnasium/FrozenLake-v1,options=colour:red", "Gymnasium makes no environment of 'FrozenLake-v1': .*'colour'"),
        ("gymnasium/FrozenLake-v1,options=slippery", "'slippery' is no option of an environment; write key:value"),
        ("gymnasium/FrozenLake-v1,options=map_name:4x4;map_name:8x8", "map_name is given twice"),
        ("gymnasium/FrozenLake-v1,termination=stop", "termination is 'stop', not one of absorb, restart"),
        ("gymnasium/CartPole-v1", "has no table P"),
    ],
)
def test_an_id_that_is_wrong_says_why(id, message):
    refuses(message, ravi.mdp, id)


def test_options_are_read_as_what_they_look_like():
    options = options_of("a:1;b:0.5;c:true;d:False;e:none;f:8x8;g:1e-3")
    assert options == {"a": 1, "b": 0.5, "c": True, "d": False, "e": None, "f": "8x8", "g": 0.001}
    assert [type(options[key]) for key in "abcd"] == [int, float, bool, bool]
    assert options_of("") == {}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "gymnasium/FrozenLake-v1"),
        ({"map_name": "4x4"}, "gymnasium/FrozenLake-v1"),  # as it is registered
        ({"is_slippery": False}, "gymnasium/FrozenLake-v1,options=is_slippery:false"),
        ({"desc": ["SF", "FG"]}, "gymnasium/FrozenLake-v1,options=desc:..."),
    ],
)
def test_an_environment_is_named_by_the_id_that_builds_its_mdp(options, name):
    assert mdp(bare("FrozenLake-v1", **options), 0.9).name == name
    assert mdp(bare("FrozenLake-v1", **options), 0.9, name="lake").name == "lake"


def test_what_is_no_single_environment_is_refused():
    refuses("many environments at once", mdp, gym.make_vec("FrozenLake-v1", 2, vectorization_mode="sync"), 0.9)
    refuses("3 is no Gymnasium environment", mdp, 3, 0.9)
    refuses("options go with an environment's id", open_environment, bare("FrozenLake-v1"), {"map_name": "8x8"})


def test_without_gymnasium_it_is_said_which_extra_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for use in (lambda: mdp("FrozenLake-v1", 0.9), lambda: ravi.mdp("gymnasium/FrozenLake-v1")):
        refuses(r"environments need Gymnasium: pip install 'ravi\[gymnasium\]'", use)
    environments._environment.cache_clear()
    with pytest.raises(InputError, match="environments need Gymnasium"):
        make(ravi.mdp("riverswim/3"))


def test_gymnasium_is_imported_by_those_who_use_it_only():
    code = (
        "import sys, ravi, ravi.gymnasium, ravi.mdps, ravi.live.environment\n"
        "from ravi.cli.info import list_\n"
        "list_()\n"
        "assert 'gymnasium' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "gymnasium" in done.stdout


def test_an_id_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ravi.mdp("gymnasium/FrozenLake-v1")
