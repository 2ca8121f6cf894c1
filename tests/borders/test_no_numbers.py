"""What only looks like a number, a flag or an array is refused by name: taken, it would be a silent other answer."""

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp

import ravi
from ravi import validation
from ravi.core import MDP
from ravi.validation import InputError


class Unwilling:
    def __float__(self):
        raise RuntimeError

    __array__ = __repr__ = __float__


NO_NUMBERS = {
    "a flag": True,
    "NumPy's flag": np.True_,
    "a flag without axes": np.array(True),
    "bytes": b"5",
    "a complex number": np.complex128(5),
    "a date": np.datetime64("2023-01-01"),
    "a span of time": np.timedelta64(5, "D"),
    "a span of Python's": datetime.timedelta(5),
    "an array of one": np.array([5]),
    "a masked number": np.ma.array(5, mask=True),
    "a record": np.zeros((), [("a", int)]),
    "a list": [5],
    "nothing": None,
    "an empty text": "",
    "an object": object(),
    "an object that will not be one": Unwilling(),
}


@pytest.mark.parametrize("what", NO_NUMBERS)
@pytest.mark.parametrize("check", [validation.number, validation.whole, validation.positive, validation.nonnegative])
def test_what_is_no_number_is_refused(what, check):
    with pytest.raises(InputError, match=r"^T is .*, not a number"):
        check(NO_NUMBERS[what], "T")


@pytest.mark.parametrize("value", [5, 5.0, "5", " 5e0", np.int8(5), np.array(5), Decimal(5), Fraction(5)])
def test_what_is_a_number_is_taken(value):
    assert validation.whole(value, "T") == validation.number(value, "T") == 5


def test_whole_numbers_are_exact_however_they_are_given():
    for value in (2**60 + 1, str(2**60 + 1), np.int64(2**60 + 1), np.array(2**60 + 1)):
        assert validation.whole(value, "T") == 2**60 + 1


@pytest.mark.parametrize("value", [10**5000, "9" * 5000, -(10**5000), [0] * 10**6], ids=["int", "text", "-", "list"])
def test_a_message_has_an_end(value):
    """Numbers of more digits than Python writes, and long lists."""
    with pytest.raises(InputError) as error:
        validation.whole(value, "T")
    assert len(str(error.value)) < 300


def test_minus_zero_is_zero():
    assert str(validation.nonnegative(-0.0, "scale")) == "0.0"


HIDDEN = np.ma.array(np.full((2, 2), 0.5), mask=[[0, 0], [1, 0]])
NO_ARRAYS = {
    "a masked array": (HIDDEN, r"r is a masked array, and what its mask hides is no number: r\.filled"),
    "rows that are masked": ([HIDDEN[0], HIDDEN[1]], "r is a masked array"),
    "masked records": (np.ma.zeros((2, 2), [("a", float)]), "r is a masked array"),
    "dates": (np.zeros((2, 2), "datetime64[s]"), "r is not an array of numbers: it holds dates"),
    "spans of time": (np.zeros((2, 2), "timedelta64[s]"), "r is not an array of numbers: it holds spans of time"),
    "records": (np.zeros((2, 2), [("a", float)]), "r is not an array of numbers: it holds records"),
    "texts": (np.full((2, 2), "0.5"), "r is not an array of numbers: it holds texts"),
    "bytes": (np.full((2, 2), b"0.5"), "r is not an array of numbers: it holds bytes"),
    "texts as objects": (np.full((2, 2), "0.5", object), r"r is not an array of numbers: r\[0, 0\] is '0.5'"),
    "one nothing": ([[0, 1], [None, 0]], r"r is not an array of numbers: r\[1, 0\] is None"),
    "one flag among objects": (np.array([[0, Fraction(1)], [True, 0]]), r"numbers: r\[1, 0\] is True"),
    "complex numbers": (np.zeros((2, 2), complex), "r holds complex numbers"),
    "a sparse matrix": (sp.eye_array(2), r"r is a sparse matrix, not an array of numbers: r\.toarray\(\) is one"),
    "a dictionary": ({0: [0, 1]}, "r is not an array of numbers: r is {0: "),
    "an object": (Unwilling(), "r is not an array of numbers"),
    "a range without end": (range(10**9), r"r is range\(0, 1000000000\), not an array"),
    "numbers beyond float64": (np.full((2, 2), np.longdouble("1e4000")), r"r\[0, 0\] is inf"),
}


@pytest.mark.parametrize("what", NO_ARRAYS)
def test_what_is_no_array_of_numbers_is_refused(what):
    value, message = NO_ARRAYS[what]
    P = np.broadcast_to(np.eye(2)[:, None], (2, 2, 2))
    with pytest.raises(InputError, match=message):
        MDP.from_dense(P, value, 0.9, 0)


@pytest.mark.parametrize(
    "r",
    [
        [[0, 1], [1, 0]],
        np.eye(2, dtype=bool)[::-1],
        np.matrix([[0, 1], [1, 0]]),
        np.ma.array([[0, 1], [1, 0]]),
        [[Fraction(0), Decimal(1)], [1, 0]],
        np.array([[0, 1], [1, 0]], np.longdouble),
    ],
    ids=["lists", "flags", "a matrix", "nothing masked", "fractions", "long doubles"],
)
def test_what_is_an_array_of_numbers_is_taken(r):
    P = np.broadcast_to(np.eye(2)[:, None], (2, 2, 2))
    assert np.array_equal(MDP.from_dense(P, r, 0.9, 0).rewards, [[0, 1], [1, 0]])


@pytest.mark.parametrize("successors", [np.ma.zeros((1, 1, 1), int), np.zeros((1, 1, 1), bool), [[["0"]]], [[[None]]]])
def test_successors_are_whole_numbers(successors):
    if isinstance(successors, np.ma.MaskedArray):
        successors[0, 0, 0] = np.ma.masked
    with pytest.raises(InputError, match="successors"):
        MDP(rewards=[[0]], successors=successors, transitions=[[[1]]], initial=0, discount=0.9)


@pytest.mark.parametrize("initial", [np.timedelta64(0), 10**5000, -1, True], ids=["time", "large", "-1", "flag"])
def test_a_first_state_is_a_number_of_a_state(initial):
    with pytest.raises(InputError, match=r"^initial (is state|is not an array|has shape)"):
        MDP(rewards=[[0]], successors=[[[0]]], transitions=[[[1]]], initial=initial, discount=0.9)


RUNS = {
    "steps that are a flag": ({"steps": True}, r"steps \(T\) is True, not a number"),
    "a seed twice": ({"seeds": [0, 0]}, "seeds names seed 0 twice"),
    "a seed that is a flag": ({"seeds": [True]}, r"seeds\[0\] is True, not a number"),
    "a seed that is not whole": ({"seeds": [0, 1.5]}, r"seeds\[1\] is 1.5, not a whole number"),
    "seeds that are a flag": ({"seeds": True}, "seeds is True, not a number"),
    "seeds that are bytes": ({"seeds": b"ab"}, "seeds is b'ab', not a number of seeds, a text such"),
    "seeds that are a table": ({"seeds": {0: 1}}, "seeds is {0: 1}, not a number of seeds, a text such"),
    "seeds that are a sparse matrix": ({"seeds": sp.eye_array(2)}, r"seeds is .*, not a number of seeds"),
    "a record without axes": ({"record": np.array(1)}, r"record is .*, not a list of names"),
    "measures without axes": ({"measures": np.array(1)}, r"measures is .*, not a list of ravi.Measure"),
    "measures without end": ({"measures": count()}, r"measures\[0\] is 0, not a ravi.Measure"),
    "seeds of two axes": ({"seeds": [[0, 1]]}, r"seeds\[0\] is \[0, 1\], not a number"),
    "seeds without end": ({"seeds": count()}, "seeds names more than 1,000,000 seeds"),
    "too many seeds": ({"seeds": 10**7}, "seeds is 10000000; it must be at most 1000000"),
    "too many in parts": ({"seeds": "0-999999,1000000-1999999"}, "seeds names more than 1,000,000 seeds"),
    "pad that is a text": ({"pad": "no"}, "pad is 'no', neither True nor False"),
    "keep_epochs that is a number": ({"keep_epochs": 0}, "keep_epochs is 0, neither True nor False"),
    "measured that is nothing": ({"measured": None}, "measured is None, neither True nor False"),
    "a record that is a number": ({"record": 1}, "record is 1, not a list of names among"),
    "records without end": ({"record": count()}, "record names 0, not one of trajectory, stream, each once"),
}


@pytest.mark.parametrize("what", RUNS)
def test_a_run_refuses(what):
    given, message = RUNS[what]
    with pytest.raises(InputError, match=message):
        ravi.run(**{"learner": "uniform", "mdp": "riverswim/4", "steps": 10} | given)


def test_seeds_are_the_same_however_they_are_given():
    given = (3, "0-2", "0,1,2", [0, 1, 2], np.arange(3))
    kept = [ravi.run("uniform", "riverswim/4", 5, seeds).seeds for seeds in given]
    assert all(one == [0, 1, 2] for one in kept)
    last = ravi.run("uniform", "riverswim/4", 5, [validation.LAST_SEED])
    assert last.seeds == [validation.LAST_SEED]


def test_renormalise_is_a_flag():
    with pytest.raises(InputError, match="renormalise is 'no', neither True nor False"):
        MDP.from_dense(np.ones((1, 1, 1)), [[0]], 0.9, 0, renormalise="no")


@pytest.mark.parametrize("terminated", ["no", "", 1, None, [False]])
def test_a_table_of_gymnasium_says_whether_a_transition_terminates(terminated):
    gymnasium = pytest.importorskip("gymnasium")

    class Tiny(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(1)
        action_space = gymnasium.spaces.Discrete(1)
        initial_state_distrib = np.ones(1)
        P = {0: {0: [(1.0, 0, 0.5, terminated)]}}  # noqa: RUF012

    with pytest.raises(InputError, match=r"whether P\[0\]\[0\]\[0\] terminates is .*, neither True nor False"):
        ravi.gymnasium.mdp(Tiny(), 0.9)


@pytest.mark.parametrize("which", ["terminated", "truncated"])
def test_an_environment_says_whether_it_ends(which):
    gymnasium = pytest.importorskip("gymnasium")

    class Vague(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 0, 0.0, *("no" if name == which else np.False_ for name in ("terminated", "truncated")), {}

    with pytest.raises(InputError, match=f"step 1: {which} is 'no', neither True nor False"):
        ravi.learn(Vague(), "uniform", 10, discount=0.9, reward_range=(0, 1))


@pytest.mark.parametrize("reward", [True, np.True_, "0.5", b"1", None, np.array([0.5]), np.datetime64("2023-01-01")])
def test_a_reward_that_is_no_number_leaves_the_agent_as_it_was(reward):
    live = ravi.agent("uniform", steps=5, states=2, actions=2, discount=0.9)
    a = live.act(0)
    with pytest.raises(InputError, match=r"step 1: the reward of state 0 and action . is .*, not a number"):
        live.observe(0, a, 0, reward)
    with pytest.raises(InputError, match="cut is 'no', neither True nor False"):
        live.observe(0, a, 0, 0.5, cut="no")
    live.observe(0, a, 0, np.float32(0.5))
    assert live.plays == 1
