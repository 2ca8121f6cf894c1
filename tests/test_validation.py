"""The border: what is right goes through as the number that it is, and an error names the entry that is wrong.

What only looks like a number, a flag or an array is refused too: taken, it would be a silent other answer.
"""

import dataclasses
import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp

import ravi
from ravi import ids, validation
from ravi.core import MDP
from ravi.learners.fixed import fixed
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import MDPS, riverswim, riverswim_mixture
from ravi.validation import InputError, policy_table

NAN, INF, HALF = float("nan"), float("inf"), np.full((4, 2), 0.5)
RIVER, MIX = riverswim(4, 0.9), riverswim_mixture(4, 0.9)


class Unwilling:
    def __float__(self):
        raise RuntimeError

    __array__ = __repr__ = __float__


# Numbers.

NO_NUMBERS = {
    "a flag": True, "NumPy's flag": np.True_, "a flag without axes": np.array(True), "bytes": b"5",
    "a complex number": np.complex128(5), "a date": np.datetime64("2023-01-01"),
    "a span of time": np.timedelta64(5, "D"), "a span of Python's": datetime.timedelta(5),
    "an array of one": np.array([5]), "a masked number": np.ma.array(5, mask=True),
    "a record": np.zeros((), [("a", int)]), "a list": [5], "None": None, "an empty text": "", "an object": object(),
    "an object that raises": Unwilling(), "a text": "ten",
}  # fmt: skip


@pytest.mark.parametrize("what", NO_NUMBERS)
@pytest.mark.parametrize("check", [validation.number, validation.whole, validation.positive, validation.nonnegative])
def test_what_is_no_number_is_refused(what, check):
    with pytest.raises(InputError, match=r"^T is .*, not a number"):
        check(NO_NUMBERS[what], "T")


@pytest.mark.parametrize("value", [5, 5.0, "5", " 5e0", np.int8(5), np.array(5), Decimal(5), Fraction(5)])
def test_what_is_a_number_is_taken(value):
    assert validation.whole(value, "T") == validation.number(value, "T") == 5


def test_numbers_keep_their_last_digit_and_minus_zero_is_zero():
    for value in (2**60 + 1, str(2**60 + 1), np.int64(2**60 + 1), np.array(2**60 + 1)):
        assert validation.whole(value, "T") == 2**60 + 1
    assert validation.whole("1e6", "n") == 10**6
    assert str(validation.nonnegative(-0.0, "scale")) == "0.0"


def test_numbers_out_of_reach_are_refused_with_their_limit():
    for check in (validation.positive, validation.nonnegative):
        assert check(1e308, "scale") == 1e308
        with pytest.raises(InputError, match=r"scale is 1\.5e\+308; it must be at most 1e\+308"):
            check(1.5e308, "scale")
    for check in (validation.positive, validation.probability):
        assert check(1e-307, "eta") == 1e-307
        with pytest.raises(InputError, match="eta is 1e-308; it must be at least 1e-307"):
            check(1e-308, "eta")
    assert validation.nonnegative(1e-308, "scale") == 1e-308
    assert validation.delta(1e-100, 5) == 1e-100
    with pytest.raises(InputError, match="delta is 1e-101; it must be at least 1e-100"):
        validation.delta(1e-101, 5)


@pytest.mark.parametrize("value", [10**5000, "9" * 5000, -(10**5000), [0] * 10**6], ids=["int", "text", "-", "list"])
def test_a_message_has_an_end(value):
    """Numbers of more digits than Python writes, and long lists."""
    with pytest.raises(InputError) as error:
        validation.whole(value, "T")
    assert len(str(error.value)) < 300


def test_near_words_are_offered_and_values_of_any_kind_shown():
    assert validation.did_you_mean("ravi-ubc", ["ravi-ucb", "psrl"]) == " Did you mean ravi-ucb?"
    assert validation.did_you_mean("xyz", ["psrl"]) == ""
    assert "\n" not in validation.shown("a\nb")
    assert len(validation.shown("x" * 10**5)) < 100
    assert "Unwilling" in validation.shown(Unwilling())


def test_what_is_computed_from_options_is_finite_or_names_them():
    assert validation.finite_result(lambda: 2.0, "beta", scale=1.0) == 2
    with pytest.raises(InputError, match=r"beta is not a finite number with scale = 1e\+300 and delta = 0.1"):
        validation.finite_result(lambda: 1e300 * 1e300, "beta", scale=1e300, delta=0.1)
    assert validation.step_size(None, 3.0, published=0.5) == 1.5
    assert validation.step_size(2.0, 3.0, published=0.5) == 6
    assert validation.delta(None, 50) == 1 / 50


# Arrays.


@pytest.mark.parametrize(
    "r",
    [
        [[0, 1], [1, 0]], np.eye(2, dtype=bool)[::-1], np.matrix([[0, 1], [1, 0]]), np.ma.array([[0, 1], [1, 0]]),
        [[Fraction(0), Decimal(1)], [1, 0]], np.array([[0, 1], [1, 0]], np.longdouble),
    ],
    ids=["lists", "flags", "a matrix", "nothing masked", "fractions", "long doubles"],
)  # fmt: skip
def test_what_is_an_array_of_numbers_is_taken(r):
    P = np.broadcast_to(np.eye(2)[:, None], (2, 2, 2))
    assert np.array_equal(MDP.from_dense(P, r, 0.9, 0).rewards, [[0, 1], [1, 0]])


def test_a_view_is_read_once_however_often_it_repeats():
    """10^12 entries of one number take no memory, neither before nor after."""
    once = validation.finite(np.broadcast_to(np.float32(0.5), (10**6, 10**6)), "r")
    assert (once.shape, once[3, 5], once.strides) == ((10**6, 10**6), 0.5, (0, 0))
    with pytest.raises(InputError, match=r"r\[0, 1\] is nan"):
        validation.finite(np.broadcast_to(np.array([0.0, np.nan]), (10**6, 2)), "r")


def test_an_array_that_is_sealed_is_its_own_and_cannot_be_written():
    given = np.arange(6.0).reshape(2, 3).T
    kept = validation.read_only_copy(given)
    given[:] = -1
    assert kept.flags.c_contiguous
    assert kept.min() == 0
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 1


def test_rows_are_distributions_to_the_tolerance_and_no_further():
    row = np.array([[0.5, 0.5], [0.5, 0.5 + 0.9 * validation.SUM_TOLERANCE]])
    assert validation.sums_to_one(row, "p") is row
    np.testing.assert_array_equal(validation.distribution(1, 3), [0, 1, 0])


def test_seeds_are_the_same_however_they_are_given():
    for given in (3, "0-2", "0,1,2", [0, 1, 2], np.arange(3)):
        assert validation.seeds(given) == ravi.run("uniform", RIVER, 5, given).seeds == [0, 1, 2]
    assert validation.seeds("1,7,9-10") == [1, 7, 9, 10]
    assert validation.seeds([4, 2]) == [4, 2]
    assert validation.seeds([validation.LAST_SEED]) == [validation.LAST_SEED]


# What is refused: a call, and what its error says.


def river(**options):
    return lambda: ravi.run(**{"learner": "uniform", "mdp": RIVER, "steps": 10, "seeds": 1, **options})


def table(r):
    return lambda: MDP.from_dense(np.broadcast_to(np.eye(2)[:, None], (2, 2, 2)), r, 0.9, 0)


def one_state(**fields):
    given = {"rewards": [[0]], "successors": [[[0]]], "transitions": [[[1]]], "initial": 0, "discount": 0.9}
    return lambda: MDP(**given | fields)


def tabular(**options):
    return lambda: ravi_ucb.tabular(RIVER.problem, 10, **options)


def check(name, *given):
    return lambda: getattr(validation, name)(*given, "n")


def world(text):
    return lambda: ids.mdp(text)


def learner(text):
    return lambda: ids.learner(text, MIX, 10)


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


MASKED = np.ma.array(HALF[:2], mask=[[0, 0], [1, 0]])
PHI, M, THETA = (
    np.random.default_rng(3).dirichlet(np.ones(3), (5, 2)), np.random.default_rng(4).dirichlet(np.ones(5), 3),
    np.random.default_rng(5).uniform(size=3),
)  # fmt: skip


def linear(**fields):
    return lambda: dataclasses.replace(MDP.from_linear(PHI, M, THETA, 0.9, 0), **fields)


REFUSED = [
    (check("whole", 2.5), "n is 2.5, not a whole number"),
    (check("whole", 0), "n is 0; it must be at least 1"),
    (check("number", INF), "n is inf, not a finite number"),
    (check("positive", 0), "n is 0; it must be positive"),
    (check("positive", 1e-320), "n is 9.99989e-321; it must be at least 1e-307"),
    (check("nonnegative", -1), "n is -1; it must not be negative"),
    (check("probability", 1), "n is 1; it must lie strictly between 0 and 1"),
    (check("chance", 1.5), "n is 1.5, outside [0, 1]"),
    (check("flag", "no"), "n is 'no', neither True nor False"),
    (check("path", "a\0b"), r"n is 'a\x00b', not a path"),
    (check("function", 3), "n is 3, not a function"),
    (check("finite", [[0, 1], [2, NAN]]), "n[1, 1] is nan, not a finite number"),
    (check("units", (2, 1)), "n is 2 to 1: the least reward must be below the largest"),
    (check("distribution", 3, 3), "n is state 3, but states are 0 to 2"),
    (check("sums_to_one", np.array([[0.5, 0.5], [0.5, 0.500000002]])), "n[1] sums to 1.000000002, not 1"),
    (check("sums_to_one", np.array([[1.5, -0.5]])), "n[0, 1] is -0.5, a negative probability"),
    (lambda: policy_table(np.full((3, 3), 1 / 3), RIVER), "policy has shape (3, 3), not (X, A) = (4, 2)"),
    (lambda: policy_table(changed(HALF, 2, [0, 1]), RIVER, interior=True), "policy[2, 0] is 0; every action needs"),
    # arrays of numbers
    (table(MASKED), "r is a masked array, and what its mask hides is no number: r.filled"),
    (table([MASKED[0], MASKED[1]]), "r is a masked array"),
    (table(np.ma.zeros((2, 2), [("a", float)])), "r is a masked array"),
    (table(np.zeros((2, 2), "datetime64[s]")), "r is not an array of numbers: it holds dates"),
    (table(np.zeros((2, 2), "timedelta64[s]")), "r is not an array of numbers: it holds spans of time"),
    (table(np.zeros((2, 2), [("a", float)])), "r is not an array of numbers: it holds records"),
    (table(np.full((2, 2), "0.5")), "r is not an array of numbers: it holds texts"),
    (table(np.full((2, 2), b"0.5")), "r is not an array of numbers: it holds bytes"),
    (table(np.full((2, 2), "0.5", object)), "r is not an array of numbers: r[0, 0] is '0.5'"),
    (table([[0, 1], [None, 0]]), "r is not an array of numbers: r[1, 0] is None"),
    (table(np.array([[0, Fraction(1)], [True, 0]])), "numbers: r[1, 0] is True"),
    (table(np.zeros((2, 2), complex)), "r holds complex numbers"),
    (table({0: [0, 1]}), "r is not an array of numbers: r is {0: "),
    (table(Unwilling()), "r is not an array of numbers"),
    (table(range(10**9)), "r is range(0, 1000000000), not an array"),
    (table(np.full((2, 2), np.longdouble("1e4000"))), "r[0, 0] is inf"),
    (one_state(successors=np.ma.masked_all((1, 1, 1), int)), "successors"),
    (one_state(successors=np.zeros((1, 1, 1), bool)), "successors"),
    (one_state(successors=[[["0"]]]), "successors"),
    (one_state(successors=[[[None]]]), "successors"),
    (one_state(initial=np.timedelta64(0)), "initial is not an array"),
    (one_state(initial=10**5000), "initial is state"),
    (one_state(initial=-1), "initial is state -1"),
    (one_state(initial=True), "initial has shape"),
    (lambda: MDP.from_dense(np.ones((1, 1, 1)), [[0]], 0.9, 0, renormalise="no"), "renormalise is 'no', neither"),
    # features of pairs that do not make the MDP
    (linear(pair_features=changed(PHI, (3, 1), [1, 0, 0])), "pair_features do not make this MDP linear: at pair_feat"),
    (linear(pair_features=changed(PHI, (2, 0), 2 * PHI[2, 0] / np.linalg.norm(PHI[2, 0]))), "[2, 0] has norm 2"),
    (linear(pair_features=PHI.reshape(5, 3, 2)), "pair_features has shape (5, 3, 2)"),
    (linear(pair_features=changed(PHI, (4, 1, 2), NAN)), "pair_features[4, 1, 2]"),
    (lambda: MDP.from_linear(PHI, M - (np.arange(5) == 2), THETA, 0.9, 0), "negative probability"),
    (lambda: MDP.from_linear(PHI, M.T, THETA, 0.9, 0), "measures has shape"),
    # runs
    (river(steps=0), "steps (T) is 0"),
    (river(steps=True), "steps (T) is True, not a number"),
    (river(seeds=[]), "seeds is empty"),
    (river(seeds=0), "seeds is 0"),
    (river(seeds=[1, -2]), "seeds[1] is -2; it must be at least 0"),
    (river(seeds=[3, 1, 3]), "seeds names seed 3 twice"),
    (river(seeds="7-5"), "seeds is '7-5'; a range goes upwards: 5-7"),
    (river(seeds=[True]), "seeds[0] is True, not a number"),
    (river(seeds=[0, 1.5]), "seeds[1] is 1.5, not a whole number"),
    (river(seeds=True), "seeds is True, not a number"),
    (river(seeds=b"ab"), "seeds is b'ab', not a number of seeds, a text such"),
    (river(seeds={0: 1}), "seeds is {0: 1}, not a number of seeds, a text such"),
    (river(seeds=sp.eye_array(2)), "not a number of seeds"),
    (river(seeds=[[0, 1]]), "seeds[0] is [0, 1], not a number"),
    (river(seeds=count()), "seeds names more than 1,000,000 seeds"),
    (river(seeds=10**7), "seeds is 10000000; it must be at most 1000000"),
    (river(seeds="0-999999,1000000"), "seeds names more than 1,000,000 seeds"),
    (river(record=["nothing"]), "record names 'nothing'"),
    (river(record=1), "record is 1, not a list of names among"),
    (river(record=np.array(1)), "not a list of names"),
    (river(record=count()), "record names 0, not one of trajectory, gain, stream, each once"),
    (river(measures=np.array(1)), "not a list of ravi.Measure"),
    (river(measures=count()), "measures[0] is 0, not a ravi.Measure"),
    (river(points=0), "points is 0"),
    (river(pad="no"), "pad is 'no', neither True nor False"),
    (river(keep_epochs=0), "keep_epochs is 0, neither True nor False"),
    (river(measured=None), "measured is None, neither True nor False"),
    # learners
    (tabular(eta=0), "eta is 0"),
    (tabular(step_scale=0), "step_scale is 0"),
    (tabular(delta=1), "delta is 1"),
    (tabular(initial_policy=changed(HALF, 2, [0, 1])), "initial_policy[2, 0] is 0"),
    (tabular(initial_policy=changed(HALF, (1, 0), 0.6)), "initial_policy[1] sums to 1.1"),
    (tabular(initial_policy=HALF[:3]), "initial_policy has shape (3, 2)"),
    (tabular(initial_value=10.1), "initial_value is 10.1"),
    (tabular(initial_value=[0, 0, -1, 0]), "initial_value[2] is -1"),
    (tabular(initial_value=[0, 0]), "initial_value has shape"),
    (lambda: ravi_ucb.linear_mixture(MIX.problem, 10, regularization=0), "regularization is 0"),
    (lambda: ravi_ucb.linear_mixture(MIX.problem, 10, bound=0), "bound is 0"),
    (lambda: ravi_ucb.linear_mixture(RIVER.problem, 10), "riverswim/4 has no features"),
    (lambda: fixed(RIVER.problem, changed(HALF, (3, 1), 0.4)), "policy[3] sums to 0.9"),
    (lambda: fixed(RIVER.problem, changed(HALF, (3, 1), NAN)), "policy[3, 1] is nan"),
    # ids
    (world("riverswm/6"), "there is no MDP 'riverswm/6'. Did you mean riverswim"),
    (world("riverswim/6,7,8"), "'8' is one value too many; it takes n, discount"),
    (world("riverswim/six"), "n is 'six', not a number"),
    (world("riverswim/6.5"), "n is 6.5, not a whole number"),
    (world("riverswim/1e400"), "n is inf"),
    (world("riverswim/6,discont=0.9"), "Did you mean discount?"),
    (world("riverswim/6,discount=0.9,0.5"), "'0.5' stands after key=value; give it a key too"),
    (world("riverswim/6,n=5"), "n is given twice"),
    (world("riverswim/6,discount=1"), "discount is 1"),
    (world("riverswim/"), "n is '', not a number"),
    (world("garnet/10"), "actions, branching missing"),
    (world("no/such/file.npz"), "there is no file no/such/file.npz"),
    (world(""), "there is no MDP ''"),
    (world("tides/6"), "tides/6 is no MDP, but a problem of another kind: RiverSwim whose rewards change"),
    (world(7), "mdp is 7, not an id such as"),
    (learner("ravi-ubc"), "there is no learner 'ravi-ubc'. Did you mean ravi-ucb"),
    (learner("ravi-ucb,sclae=2"), "there is no option 'sclae'; it takes "),
    (learner("ravi-ucb,scal=2"), "Did you mean scale"),
    (learner("ravi-ucb,scale=2,scale=3"), "scale is given twice"),
    (learner("ravi-ucb,scale=big"), "scale is 'big', not a number"),
    (learner("ravi-ucb,initial_policy=3"), "there is no option 'initial_policy'"),
    (learner("ravi-ucb,0.3"), "'0.3' is one value too many"),
    (learner("ravi-ucb/mixtre"), "'mixtre' is one value too many"),
    (learner("uniform,eta=1"), "it takes no options"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_what_is_wrong_is_refused_by_name(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)


def test_resume_refuses_another_learner_mdp_or_file(tmp_path):
    stopped = ravi.run("ravi-ucb,eta=0.1", RIVER, 200, 2, pause=20)
    for given, mdp, message in [
        ("ravi-ucb,eta=0.2", RIVER, "settings"),
        ("uniform", RIVER, "learner ravi-ucb, not uniform"),
        ("ravi-ucb,eta=0.1", riverswim(5, 0.9), "MDP riverswim/4, not riverswim/5"),
        ("ravi-ucb,eta=0.1", riverswim(4, 0.8), "discount"),
    ]:
        with pytest.raises(InputError, match=message):
            ravi.resume(stopped, given, mdp)
    RIVER.save(tmp_path / "mdp")
    with pytest.raises(InputError, match="holds 'mdp', not 'run'"):
        ravi.Run.load(tmp_path / "mdp")


def test_every_name_of_an_mdp_is_an_id_that_builds_it():
    needed = {"garnet": "/5,2,2", "ensemble": "/2,5,2,2"}
    for name in MDPS:
        mdp = ids.mdp(name + needed.get(name, ""))
        assert ids.mdp(f"{mdp.name},discount={mdp.discount!r}").digest == mdp.digest, name


# Environments.


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
