"""Memory is reckoned before it is taken: an error says how much is needed, how much is free, and what to lower."""

import tracemalloc
from itertools import count, repeat

import numpy as np
import pytest
import scipy.sparse as sp

import ravi
from ravi import machine, validation
from ravi.core import MDP
from ravi.live.grid import _told_apart
from ravi.machine import _of_limit, free_memory, readable_size
from ravi.mdps import MDPS
from ravi.mdps.changing_rewards import changing, tides
from ravi.mdps.simulators import sampled
from ravi.validation import InputError, TooLarge, require_memory

FREE = 20e9


@pytest.fixture
def room(monkeypatch):
    """20 GB are free, whatever the machine has; and nobody takes any of it."""
    monkeypatch.setattr(machine, "free_memory", lambda: int(FREE))
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26


TOO_LARGE = {
    "riverswim/1e9": "the tables of riverswim/1000000000 would need 620 GB; 20 GB are free: lower n",
    "riverswim/mixture/1e9": "would need 1.34 TB; 20 GB are free: lower n",
    "deep-sea/2e4": "would need 60.8 GB; 20 GB are free: lower n",
    "bandit/1e6": "would need 240 TB; 20 GB are free: lower arms",
    "one-state/1e10": "would need 760 GB; 20 GB are free: lower actions",
    "garnet/1e9,4,4": "would need 736 GB; 20 GB are free: lower states, actions or branching",
    "garnet/3e5,1000,1000": "would need 10.8 TB; 20 GB are free: lower states, actions or branching",
    "ensemble/1e6,1e6,3,4": "would need 118 EB; 20 GB are free: lower simulators, states, actions or branching",
    "ensemble/1e9,2,2,1": "would need 320 GB; 20 GB are free: lower simulators",
    "terrain/4e4": "would need 4.29 TB; 20 GB are free: lower width or types",
    "terrain/5,1e9": "would need 12 TB; 20 GB are free: lower width or types",
    "queue/1e9": "would need 1.58 TB; 20 GB are free: lower size or speeds",
    "queue/10,1e6": "would need 1.32 PB; 20 GB are free: lower size or speeds",
    "two-ends/1e9": "TB; 20 GB are free: lower n",
    "winds/4e4": "TB; 20 GB are free: lower width",
    "fork/1e6": "TB; 20 GB are free: lower simulators",
    "ring/1e9": "would need 880 GB; 20 GB are free: lower gadgets or actions",
    "linear/1e5,3,5": "the tables of linear/100000,3,5 would need 2.7 TB; 20 GB are free: lower states or actions",
    "linear/20,3,1e9": "would need 3.2 TB; 20 GB are free: lower states, actions or dimension",
    "linear/aggregated/1000,1000,1000": "would need 90 GB; 20 GB are free: lower states or actions",
    "linear/aggregated/200,200,200": "the features of linear/aggregated/200,200,200 would need 64.3 GB",
}


@pytest.mark.parametrize("text", TOO_LARGE)
def test_an_mdp_that_is_too_large_is_refused_before_it_is_made(text, room):
    with pytest.raises(TooLarge) as error:
        ravi.mdp(text)
    assert TOO_LARGE[text] in str(error.value)


def test_every_family_whose_size_is_a_number_is_refused():
    """And none was forgotten above."""
    sizeless = {"trap", "six-arms", "two-cycle", "gymnasium"} | {
        "hypercube",
        "hypercube/linear",
    }  # at most 2^19 actions
    assert {max((name for name in MDPS if text.startswith(name)), key=len) for text in TOO_LARGE} == {*MDPS} - sizeless


@pytest.mark.parametrize("text", ["riverswim/1e10", "terrain/1e6", "deep-sea/1e6", "ring/2e9", "garnet/3e9,1,1"])
def test_states_are_32_bit(text, monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    with pytest.raises(InputError, match="states, and 2147483647 are the most: lower"):
        ravi.mdp(text)


@pytest.mark.parametrize(
    "text",
    ["riverswim/3e4", "riverswim/mixture/2e4", "garnet/2e4,4,4", "garnet/100,10,100", "bandit/300", "deep-sea/150",
     "hypercube/13", "ensemble/20,200,3,4", "ensemble/200,20,2,3", "terrain/60", "terrain/40,20", "queue/1e4",
     "queue/100,30", "two-ends/2e4", "winds/60", "fork/100", "ring/1e4",
     "linear/150,4,5", "linear/30,4,2000", "linear/aggregated/100,4,80"],
)  # fmt: skip
def test_the_reckoning_is_about_what_is_taken(text, monkeypatch):
    """Of tables of megabytes: between half and three times the peak."""
    reckoned = []
    monkeypatch.setattr(validation, "require_memory", lambda size, what, lower: reckoned.append(size))
    tracemalloc.start()
    ravi.mdp(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 * peak < max(reckoned) < 3 * peak


def test_copies_of_what_is_given_are_reckoned(room, monkeypatch):
    many = np.broadcast_to(0.5, (10**6, 10**6))
    with pytest.raises(TooLarge, match=r"rewards of shape \(1000000, 1000000\) would need 40 TB"):
        MDP(rewards=many, successors=[[[0]]], transitions=[[[1]]], initial=0, discount=0.9)
    monkeypatch.setattr(machine, "free_memory", lambda: 17 * 10**6)
    one, all_ = np.zeros((100, 1)), np.broadcast_to(np.arange(100, dtype=np.int32), (100, 1, 100))
    psi = np.broadcast_to(0.0, (100, 1, 100, 100))
    with pytest.raises(TooLarge, match=r"a copy of the tables of mdp would need 20.2 MB"):
        MDP(rewards=one, successors=all_, transitions=None, initial=0, discount=0.9, features=psi)


def full_row(n=30000):
    """A sparse matrix of which one row has all entries."""
    rows, columns = np.r_[np.zeros(n, int), np.arange(1, n)], np.r_[np.arange(n), np.zeros(n - 1, int)]
    return sp.coo_array((np.r_[np.full(n, 1 / n), np.ones(n - 1)], (rows, columns)), shape=(n, n))


def with_pair_features(mdp, phi):
    parts = ("rewards", "successors", "transitions", "initial", "discount")
    return MDP(**{name: getattr(mdp, name) for name in parts}, pair_features=phi)


VAST = {"rewards": lambda x, a: 0, "discount": 0.9, "initial": 0, "states": 10**10, "actions": 2}
RECKONED = [
    (
        lambda: ravi.evaluate(ravi.mdp("riverswim/4"), np.broadcast_to(0.5, (10**9, 4, 2))),
        r"policy of shape \(1000000000, 4, 2\) would need 256 GB",
    ),
    (
        lambda: MDP.from_dense(np.broadcast_to(0.5, (30000, 100, 30000)), np.broadcast_to(0.5, (30000, 100)), 0.9, 0),
        r"P of shape \(30000, 100, 30000\) would need 90 GB",
    ),
    (
        lambda: MDP.from_sparse(full_row(), np.zeros((30000, 1)), 0.9, 0),
        "a table of 30,000 pairs, of which one has 30,000 successors, would need 36 GB",
    ),
    (
        lambda: ravi.ensemble([lambda x, a: {0: 1}], **VAST),
        r"simulators\[0\] on 10,000,000,000 states and 2 actions would need 4 TB",
    ),
    (lambda: sampled(lambda x, a, u: 0, 10**10, 2, 5), "states, 2 actions and 5 draws would need"),
    (lambda: sampled(lambda x, a, u: 0, 2, 2, 10**10), "2 states, 2 actions and 10,000,000,000 draws would need 1 TB"),
    (lambda: tides(block=2**31).expected(2**31 - 2), "lower block or steps"),
    (
        lambda: changing(ravi.mdp("riverswim/4"), np.broadcast_to(0.5, (10**9, 4, 2))),
        r"tables of shape \(1000000000, 4, 2\) would need 192 GB",
    ),
    (
        lambda: with_pair_features(ravi.mdp("riverswim/2e4"), np.zeros((20000, 2, 1))),
        r"to hold pair_features \(20000, 2, 1\) against .* would need 25.6 GB",
    ),
]


@pytest.mark.parametrize(("call", "message"), RECKONED, ids=[message for _, message in RECKONED])
def test_what_is_given_is_reckoned_before_it_is_copied_or_called(call, message, room):
    with pytest.raises(TooLarge, match=message):
        call()


WRONG = [
    (lambda: ravi.ensemble(count()), "simulators are more than 1000000"),
    (lambda: ravi.ensemble(range(10**9)), "simulators are more than 1000000"),
    (lambda: sampled(5, 2, 2, 5), "simulator is 5, not a function"),
    (lambda: changing(5, np.zeros((1, 4, 2))), "mdp is 5, not an id"),
    (lambda: tides(left="much"), "left is 'much', not a number"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=range(len(WRONG)))
def test_what_has_no_end_or_is_no_number_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_as_many_actions_as_a_hypercube_has_are_solved_and_played():
    """No array of A x A."""
    mdp = ravi.mdp("one-state/1e5")
    for method in ("modified_policy_iteration", "policy_iteration"):
        ravi.solve(ravi.mdp("one-state/2"), method=method)  # compiles
        tracemalloc.start()
        solution = ravi.solve(mdp, method=method)
        assert solution.policy[0].argmax() == 10**5 - 1
        assert tracemalloc.get_traced_memory()[1] < 2**26
        tracemalloc.stop()


RUNS = {
    "seeds": ({"seeds": 10**6}, "under 1,000,000 seeds would need .* GB; 1 GB are free: lower seeds"),
    "points": (
        {"steps": 2**31 - 2, "points": 10**10, "seeds": 1}, "uniform on riverswim/6 would need 120 GB.*: lower points",
    ),
    "streams": ({"steps": 2**31 - 2, "record": "stream", "seeds": 1}, "uniform on riverswim/6 would need 27.9 GB"),
}  # fmt: skip


@pytest.mark.parametrize("what", RUNS)
def test_a_run_is_reckoned_before_it_begins(what, monkeypatch):
    given, message = RUNS[what]
    monkeypatch.setattr(machine, "free_memory", lambda: 10**9)
    with pytest.raises(TooLarge, match=message):
        ravi.run(**{"learner": "uniform", "mdp": "riverswim/6", "steps": 1000} | given)


def test_what_a_learner_keeps_is_reckoned_from_one_seed(monkeypatch):
    """d^2 numbers for each seed, which only the learner knows of."""
    mdp = ravi.mdp("ensemble/1000,2,2,1")
    learner = ravi.learner("ravi-ucb/mixture", mdp, 100)
    monkeypatch.setattr(machine, "free_memory", lambda: 10**9)
    begun = []
    counting = learner._replace(init=lambda keys: begun.append(len(keys)) or learner.init(keys))
    with pytest.raises(TooLarge, match="ravi-ucb/mixture on ensemble/1000,2,2,1 under 100 seeds would need"):
        ravi.run(counting, mdp, 100, 100)
    assert begun == [1]


def test_memory_that_runs_out_unreckoned_is_told(monkeypatch):
    mdp = ravi.mdp("riverswim/4")
    learner = ravi.learner("uniform", mdp, 10)

    def init(keys):
        raise MemoryError("Unable to allocate 298. GiB")

    with pytest.raises(TooLarge, match=r"uniform on riverswim/4 needs more memory than there is \(Unable to"):
        ravi.run(learner._replace(init=init), mdp, 10, 1)


def test_a_log_of_epochs_that_outgrows_memory_is_told(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 10**5)
    monkeypatch.setattr(validation, "SMALL", 10**5)
    with pytest.raises(TooLarge, match=r"a log of .* epochs of 8 seeds would need .*: lower seeds, or keep no epochs"):
        ravi.run("ravi-ucb", "riverswim/4,discount=0.5", 10**4, 8, points=1)
    assert ravi.run("ravi-ucb", "riverswim/4,discount=0.5", 10**4, 8, points=1, keep_epochs=False).complete


def test_a_vast_space_is_told(room):
    gymnasium = pytest.importorskip("gymnasium")

    class Vast(gymnasium.Env):
        observation_space = gymnasium.spaces.MultiDiscrete([1000] * 6)
        action_space = gymnasium.spaces.Discrete(2)

    class Binary(Vast):
        observation_space = gymnasium.spaces.MultiBinary(20000)

    class Busy(Vast):
        observation_space = gymnasium.spaces.Discrete(1000)
        action_space = gymnasium.spaces.MultiDiscrete([1000] * 3)

    given = {"discount": 0.9, "reward_range": (0, 1)}
    for vast, message in ((Vast, "Vast would have 1000000000000000001 states"), (Binary, "would have .* states")):
        with pytest.raises(InputError, match=message + r".*: lower their number .*; discover=True has room"):
            ravi.learn(vast(), "uniform", 10, **given)
    with pytest.raises(TooLarge, match="the tables of Busy would need 400 TB"):
        ravi.learn(Busy(), "uniform", 10, **given)
    with pytest.raises(TooLarge, match=r"the tables of stream would need 80 TB; .*: lower states or actions"):
        ravi.agent("uniform", steps=10, states=10**9, actions=200, discount=0.9)


def test_cells_of_whole_numbers_are_looked_at_quickly():
    vast = ravi.Grid(0, 2**24, 2**21, shape=(), dtype="int64")
    assert (vast.size, vast.number(12345)) == (2**21, 12345 // 8)
    with pytest.raises(InputError, match=r"bins\[0\] is 3000000000: cells are narrower"):
        ravi.Grid(0, 2**40, 3 * 10**9, shape=(1,), dtype="int64")


@pytest.mark.parametrize("seed", range(5))
def test_cells_of_whole_numbers_are_told_apart_if_the_centre_of_each_is_in_it(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        low = float(rng.integers(-20, 20))
        high, n = low + float(rng.integers(1, 30)), int(rng.integers(1, 20))
        middle = [int(low + (high - low) * ((k + 0.5) / n)) for k in range(n)]
        apart = all(min(int((x - low) / (high - low) * n), n - 1) == k for k, x in enumerate(middle))
        wanted = n <= high - low + 1 and apart
        assert _told_apart(low, high, n, np.dtype(np.int32)) == wanted


WRONG_GRIDS = [
    ({"low": np.broadcast_to(0.0, (10**6, 10**6))}, "a grid over 1000000000000 coordinates would need 200 TB"),
    ({"bins": [[1], [1, 2]]}, "bins is not an array of numbers"),
    ({"bins": range(10**9)}, r"bins is range\(0, 1000000000\), not an array"),
    ({"bins": [True]}, r"bins is \[True\], not whole numbers"),
    ({"shape": 1}, "shape is 1, not a list of whole numbers"),
    ({"shape": "1"}, "shape is '1', not a list of whole numbers"),
    ({"shape": [1.5]}, r"shape\[0\] is 1.5, not a whole number"),
    ({"shape": repeat(1)}, "shape has more axes than an array can have, 64"),
    ({"dtype": 5}, "dtype is 5, not a type of real numbers"),
    ({"dtype": "complex64"}, "dtype is 'complex64', not a type of real numbers"),
    ({"dtype": "no such"}, "dtype is 'no such', not a type of real numbers"),
]


@pytest.mark.parametrize(("given", "message"), WRONG_GRIDS, ids=[message for _, message in WRONG_GRIDS])
def test_a_grid_refuses(given, message, room):
    with pytest.raises(InputError, match=message):
        ravi.Grid(**{"low": [0.0], "high": [1.0], "bins": [3]} | given)


# What is free.


def test_small_things_are_not_asked_for(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: 1 / 0)
    require_memory(validation.SMALL, "this", "that")


def test_where_nothing_is_known_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    require_memory(1e30, "this", "that")


def test_what_is_free_is_the_least_of_machine_groups_and_limit(monkeypatch, tmp_path):
    assert free_memory() is None or 0 <= free_memory() <= 2**60
    monkeypatch.setattr(machine, "_of_machine", lambda: 50 * 10**9)
    monkeypatch.setattr(machine, "_of_limit", lambda: None)
    monkeypatch.setattr(machine, "_groups", lambda: (tmp_path, tmp_path / "above", tmp_path / "old", tmp_path / "none"))
    (tmp_path / "above").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("123\n")
    assert free_memory() == 50 * 10**9
    (tmp_path / "above" / "memory.max").write_text(f"{10**10}\n")
    (tmp_path / "above" / "memory.current").write_text(f"{4 * 10**9}\n")
    (tmp_path / "above" / "memory.stat").write_text(f"anon 5\ninactive_file {10**9}\nfile 7\n")
    assert free_memory() == 7 * 10**9
    (tmp_path / "old" / "memory.limit_in_bytes").write_text(f"{2 * 10**9}\n")
    (tmp_path / "old" / "memory.usage_in_bytes").write_text(f"{3 * 10**9}\n")
    assert free_memory() == 0
    monkeypatch.setattr(machine, "_groups", lambda: ())
    monkeypatch.setattr(machine, "_of_limit", lambda: 10**8)
    assert free_memory() == 10**8


def test_a_limit_of_address_space_counts(monkeypatch):
    resource = pytest.importorskip("resource")
    assert _of_limit() is None or _of_limit() > 0
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**60, 2**60))
    left = _of_limit()
    assert left is None or 2**59 < left < 2**60  # less what the process has


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999 bytes"), (72e9, "72 GB"), (999.7e6, "1 GB"), (1.5e13, "15 TB"), (1e24, "1e+06 EB")]
)
def test_sizes_are_written_as_people_read_them(size, text):
    assert readable_size(size) == text
