"""Numbers of observations and actions: one for each, the same after JSON, and an error for what is none."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from ravi.live.encoders import encoder_from, encoder_of
from ravi.live.grid import Grid
from ravi.validation import InputError
from tests.helpers import refuses

BOX = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 10], np.float32))
SPACES = {
    "discrete": (spaces.Discrete(5), None, 5),
    "started": (spaces.Discrete(4, start=-2), None, 4),
    "one": (spaces.Discrete(1, start=7), None, 1),
    "multi": (spaces.MultiDiscrete([3, 1, 4]), None, 12),
    "multi, started": (spaces.MultiDiscrete([2, 3], start=[5, -1]), None, 6),
    "multi, two axes": (spaces.MultiDiscrete([[2, 3], [1, 2]]), None, 12),
    "binary": (spaces.MultiBinary(4), None, 16),
    "binary, two axes": (spaces.MultiBinary([2, 2]), None, 16),
    "tuple": (spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2), spaces.Discrete(2, start=1))), None, 24),
    "dict": (spaces.Dict({"b": spaces.Discrete(3), "a": spaces.MultiDiscrete([2, 2])}), None, 12),
    "nested": (spaces.Dict({"t": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))), "u": spaces.Discrete(2)}),
               None, 12),
    "box": (BOX, Grid([-1, 0], [1, 10], [4, 5]), 20),
    "box of scalars": (spaces.Box(-1, 1, (2, 2), np.float64), Grid(-1, 1, 2), 16),
    "box of whole numbers": (spaces.Box(0, 11, (2,), np.int16), Grid(0, 12, [12, 5]), 60),
    "box without axes": (spaces.Box(0, 1, (), np.float32), Grid(0, 1, 3), 3),
    "unbounded box": (spaces.Box(-np.inf, np.inf, (1,)), Grid(-2, 2, 8, "clip"), 8),
    "dict with a box": (spaces.Dict({"x": BOX, "m": spaces.Discrete(2)}), {"x": Grid([-1, 0], [1, 10], 3)}, 18),
    "tuple with a box": (spaces.Tuple((spaces.Discrete(2), BOX)), {1: Grid([-1, 0], [1, 10], 3)}, 18),
}  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
def test_every_number_has_one_observation_of_the_space_and_comes_back_also_after_json(name):
    given, grid, size = SPACES[name]
    space = encoder_of(given, grid)
    again = encoder_from(json.loads(json.dumps(space.plain())))
    assert again.plain() == space.plain()
    assert space.size == size
    for number in range(size):
        for one, other in ((space, again), (again, space)):
            observation = one.observation(number)
            assert observation in given
            assert other.number(observation) == one.number(observation) == number


@pytest.mark.parametrize("name", SPACES)
def test_every_sample_has_a_number(name):
    given, grid, size = SPACES[name]
    given.seed(3)
    space = encoder_of(given, grid)
    seen = {space.number(given.sample()) for _ in range(400)}
    assert seen <= set(range(size))
    assert len(seen) > size // 2


def test_the_last_part_counts_fastest():
    assert encoder_of(spaces.MultiDiscrete([3, 4])).number(np.array([2, 1])) == 2 * 4 + 1
    assert encoder_of(spaces.Tuple((spaces.Discrete(3), spaces.Discrete(4)))).number((2, 1)) == 2 * 4 + 1
    assert encoder_of(spaces.Discrete(4, start=-2)).number(1) == 3
    assert encoder_of(spaces.MultiBinary(3)).number(np.array([1, 0, 0], np.int8)) == 4
    keyed = encoder_of(spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Discrete(4)}))
    assert keyed.number({"b": 1, "a": 2}) == 2 * 4 + 1  # by key, whatever the order in the observation


def test_a_space_may_be_larger_than_any_machine_number():
    space = encoder_of(spaces.MultiBinary(100))
    assert space.size == 2**100
    assert space.number(np.ones(100, np.int8)) == 2**100 - 1
    np.testing.assert_array_equal(space.observation(1), np.eye(1, 100, 99)[0])


@pytest.mark.parametrize("observation", [3, np.int32(3), np.uint8(3), np.array(3), True + 2])
def test_whole_numbers_of_any_type_are_observations(observation):
    assert encoder_of(spaces.Discrete(4)).number(observation) == 3


@pytest.mark.parametrize(
    ("name", "observation"),
    [
        ("discrete", 5), ("discrete", -1), ("discrete", 1.0), ("discrete", "1"), ("discrete", None),
        ("discrete", np.array([1, 2])), ("started", 2), ("started", -3),
        ("multi", [3, 0, 0]), ("multi", [0, 1, 0]), ("multi", [0, 0]), ("multi", [0, 0, -1]),
        ("multi", [0.0, 0.0, 0.0]),
        ("multi", [[0, 0, 0]]), ("multi, started", [0, 0]), ("binary", [0, 0, 0, 2]), ("binary", 3),
        ("multi", [[0], [0, 0]]),
        ("tuple", (0, [0, 0])), ("tuple", 3), ("tuple", (3, [0, 0], 1)), ("tuple", (0, [0, 0], 0)),
        ("dict", {"a": [0, 0]}), ("dict", {"a": [0, 0], "b": 3}), ("dict", {"a": [0, 0], "b": 0, "c": 0}),
        ("dict", (0, 0)),
        ("box", [2.0, 5.0]), ("box", [0.0, -0.1]), ("box", [np.nan, 5.0]), ("box", [0.0]), ("box", ["a", "b"]),
        ("unbounded box", [np.nan]),
    ],
)  # fmt: skip
def test_what_is_none_of_the_space_is_an_error_that_shows_it(name, observation):
    given, grid, _ = SPACES[name]
    with pytest.raises(InputError, match="is not among"):
        encoder_of(given, grid).number(observation)


def test_a_cell_contains_its_lower_edge_and_the_last_its_upper_too():
    grid = Grid(0.0, 1.0, 4)
    assert [grid.number(np.float64(x)) for x in (0, 0.2, 0.25, 0.49, 0.5, 0.75, 1.0)] == [0, 0, 1, 1, 2, 3, 3]
    assert [float(grid.observation(k)) for k in range(4)] == [0.125, 0.375, 0.625, 0.875]


def test_a_grid_clips_where_it_is_asked_to():
    clipping, strict = Grid(0, 1, 4, "clip"), Grid(0, 1, 4)
    assert [clipping.number(np.float64(x)) for x in (-5, -np.inf, 1.1, np.inf)] == [0, 0, 3, 3]
    for x in (-5, 1.1, np.inf):
        refuses("is not among", strict.number, np.float64(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 2), r"low\[0\] is 0, not below high\[0\] = 0"),
        (([0, 1], [1, 0], 2), r"low\[1\] is 1, not below high\[1\] = 0"),
        ((0, np.inf, 2), "high is inf"),
        ((np.nan, 1, 2), "low is nan"),
        ((-1e308, 1e308, 2), "not a finite number"),
        ((0, 1, 0), r"bins\[0\] is 0; it must be at least 1"),
        ((0, 1, 2.5), "bins is 2.5, not whole numbers"),
        (([0, 0], [1, 1, 1], 2), "do not go together"),
        ((0, 1, 2, "drop"), "outside is 'drop', not one of error, clip"),
        ((1e16, 1e16 + 8, 10**6), "narrower than float64 can tell"),
    ],
)
def test_a_grid_says_what_is_wrong_with_it(arguments, message):
    refuses(message, Grid, *arguments)


def test_a_grid_must_fit_its_box():
    refuses(r"do not go together in a box of shape \(2,\)", encoder_of, BOX, Grid([0, 0, 0], 1, 2))
    refuses(
        "narrower than float32 can tell", encoder_of, spaces.Box(0, 2e6, (1,), np.float32), Grid(1e6, 1e6 + 1, 1000)
    )
    refuses("narrower than int16 can tell", encoder_of, spaces.Box(0, 11, (1,), np.int16), Grid(0, 12, 24))


@pytest.mark.parametrize(
    ("space", "grid", "message"),
    [
        (BOX, None, "is continuous: say into how many cells"),
        (spaces.Dict({"x": BOX}), None, "is continuous: say into how many cells"),
        (spaces.Discrete(3), Grid(0, 1, 2), "a grid is given, but Discrete\\(3\\) is no Box"),
        (spaces.Dict({"x": BOX}), Grid(0, 1, 2), "give the grids of its boxes by key"),
        (spaces.Dict({"x": BOX}), {"y": Grid(0, 1, 2)}, "grid names 'y', but the parts of .* are 'x'"),
        (spaces.Text(3), None, r"has no numbering here.* with discover=True \(--discover\)"),
        (spaces.Sequence(spaces.Discrete(2)), None, "has no numbering here"),
        ("text", None, "has no numbering here"),
        (spaces.Tuple(()), None, "without parts"),
    ],
)
def test_what_has_no_numbering_is_refused(space, grid, message):
    refuses(message, encoder_of, space, grid)


@pytest.mark.parametrize(
    "plain",
    [{}, {"kind": "box"}, {"kind": "discrete"}, {"kind": "discrete", "size": 0, "start": 0}, {"kind": "parts"},
     {"kind": "digits", "sizes": [2], "starts": [0, 0], "shape": [1], "dtype": "int8"},
     {"kind": "grid", "low": [0], "high": [1], "bins": [2], "outside": "error", "shape": [2], "dtype": "float64"}],
)  # fmt: skip
def test_a_description_of_no_space_is_an_error(plain):
    refuses("describes no space", encoder_from, plain)
