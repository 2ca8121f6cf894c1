"""Every builder can be called by an id, and refuses what it cannot build."""

import inspect
import subprocess
import sys
import types
import typing

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.mdps import (
    MDPS,
    aggregated,
    bandit_of,
    ensemble,
    fork,
    garnet,
    garnets,
    hypercube,
    hypercube_linear,
    one_state_of,
    queue,
    ring,
    riverswim,
    trap,
)
from ravi.validation import InputError

NAN = float("nan")

BY_DEFAULT = {
    "riverswim": "riverswim/6", "bandit": "bandit/5", "one-state": "one-state/2", "hypercube": "hypercube/5",
    "terrain": "terrain/5,2", "queue": "queue/20,2", "two-ends": "two-ends/9", "winds": "winds/5", "fork": "fork/4",
    "ring": "ring/4", "linear": "linear/50,4,5", "hypercube/linear": "hypercube/linear/5",
}  # fmt: skip
NAMES = [
    "riverswim/4", "riverswim/mixture/5", "deep-sea/3", "six-arms", "trap", "trap/leave=0.1", "bandit/3,best=0.8",
    "garnet/100,4,4", "garnet/100,4,4,seed=3", "garnet/9,2,2,start=first", "hypercube/4,margin=0.05,seed=1",
    "ensemble/2,5,2,3", "ensemble/2,5,2,3,seed=8", "ensemble/4,5,2,3,border=2", "queue/10,3,arrival=0.2", "two-cycle",
    "two-ends/7,left=0.6", "fork/3,best=2", "fork/3,weight=0.5,high=0.8,low=0.2", "ring/6,gap=0.01,actions=3",
    "linear/8,2,3,seed=7", "linear/aggregated/50,4,5", "linear/aggregated/8,2,2,seed=1",
    "hypercube/linear/4,margin=0.05,seed=1",
]  # fmt: skip


def test_an_mdp_is_named_by_its_id_but_for_the_discount():
    for text, name in (BY_DEFAULT | dict(zip(NAMES, NAMES, strict=True))).items():
        assert ids.mdp(text).name == name
        assert ids.mdp(f"{name}{',' if '/' in name else '/'}discount=0.5").name == name
    assert (bandit_of((0.1, 0.2)).name, one_state_of((0.1, 0.2)).name) == ("bandit", "one-state")


@pytest.mark.parametrize("family", MDPS)
def test_an_id_can_be_read_off_the_signature(family):
    """Every parameter is an int, a float or a str, by position or name, and what has no default is a size."""
    hints = typing.get_type_hints(MDPS[family])
    assert hints.pop("return") is MDP
    for name, parameter in inspect.signature(MDPS[family]).parameters.items():
        hint = hints[name]
        kinds = set(typing.get_args(hint)) - {types.NoneType} if isinstance(hint, types.UnionType) else {hint}
        assert kinds in ({int}, {float}, {str})
        assert parameter.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert parameter.default is not inspect.Parameter.empty or kinds == {int}
    assert "discount" in hints


@pytest.mark.parametrize("family", MDPS)
def test_every_builder_makes_a_valid_mdp_and_makes_it_again(family):
    sizes = SIZES.get(family, ())
    one, two = MDPS[family](*sizes), MDPS[family](*sizes)
    assert one.name.startswith(family)
    for field in ("rewards", "successors", "transitions", "initial", "features", "parameter"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    assert MDPS[family](*sizes, discount=0.75).discount == 0.75


SIZES = {"garnet": (12, 3, 4), "ensemble": (2, 8, 2, 3)}
# of which the first size is at least two
TWO = ["riverswim", "riverswim/mixture", "two-ends", "hypercube", "hypercube/linear", "terrain", "winds", "fork"]


@pytest.mark.parametrize("family", [one for one in MDPS if one != "gymnasium"])
def test_every_builder_refuses_by_naming_the_parameter(family):
    """Every number that is none, is negative or, of sizes, is broken or too small."""
    signature = inspect.signature(MDPS[family])
    given = signature.bind(*SIZES.get(family, ()))
    given.apply_defaults()
    for place, (name, value) in enumerate(given.arguments.items()):
        wrong = ["word"] if isinstance(value, str) else ["word", NAN, -1]
        if isinstance(value, int) and not isinstance(value, bool):
            wrong += [2.5] + [int(place == 0 and family in TWO)] * (name not in ("seed", "best", "border"))
        for one in wrong:
            with pytest.raises(InputError, match=f"{name} is "):
                MDPS[family](**given.arguments | {name: one})
    for discount in (0, 2.0):
        with pytest.raises(InputError, match=f"discount is {discount:g}"):
            MDPS[family](**given.arguments | {"discount": discount})


BAD = [
    (lambda: bandit_of([0.1, 1.2]), r"probabilities\[1\] is 1.2, outside \[0, 1\]"),
    (lambda: bandit_of([]), r"probabilities has shape \(0,\)"),
    (lambda: bandit_of(0.5), r"probabilities has shape \(\)"),
    (lambda: one_state_of([0.1, -0.2]), r"rewards\[1\] is -0.2, outside \[0, 1\]"),
    (lambda: one_state_of([[0.1]]), r"rewards has shape \(1, 1\), not \(A,\)"),
    (lambda: garnet(5, 2, 6), "branching is 6; it must be at most 5"),
    (lambda: garnet(5, 2, 2, start="unifrom"), "start is 'unifrom', not one of uniform, first. Did you mean uniform"),
    (lambda: hypercube(40), "dimension is 40; it must be at most 20"),
    (lambda: hypercube(3, 0.9, 0.2), "margin is 0.2; with discount 0.9 it must be at most"),
    (lambda: hypercube(3, 0.2, 0.3), "margin is 0.3; with discount 0.2 it must be at most"),
    (lambda: queue(5, 2, arrival=0.5, service=0.6), r"arrival \+ service is 1.1; one event per step needs at most 1"),
    (lambda: garnets(3, 5, 2, 2, border=3), "border is 3; it must be at most 2"),
    (lambda: fork(3, best=3), "best is 3; it must be at most 2"),
    (lambda: aggregated(3, 2, 4), "groups is 4; there are only 3 states"),
    (lambda: hypercube_linear(margin=0.5), "margin is 0.5"),
    (lambda: ring(3, 0.95, 0.9), "gap is 0.95; with discount 0.9 it must be at most gamma"),
    (lambda: ensemble([trap(), trap()], (0.5, 0.6)), "weights sums to 1.1, not 1"),
    (lambda: ensemble([trap(), trap()], (1.5, -0.5)), r"weights\[1\] is -0.5, a negative probability"),
    (lambda: ensemble([trap()], (0.5, 0.5)), r"weights has shape \(2,\)"),
]


@pytest.mark.parametrize(("build", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_a_builder_refuses_by_naming_the_parameter(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_the_ring_may_leave_a_low_state_for_certain():
    assert ring(3, 0.95, 0.95).transitions.min() == 0


def test_whole_numbers_may_come_as_floats():
    assert riverswim(6.0).name == "riverswim/6"
    assert garnet(1e2, 4.0, 4.0, seed=3.0).name == "garnet/100,4,4,seed=3"


def test_importing_the_builders_is_light():
    code = "import sys, ravi.mdps; sys.exit(any(name in sys.modules for name in ('numba', 'scipy', 'hypothesis')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
