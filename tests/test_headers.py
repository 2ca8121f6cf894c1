"""The header of a file: whatever stands in one of its fields, it is right or an error that names it."""

import dataclasses
import json
import typing
from typing import Any

import numpy as np
import pytest

import ravi
from ravi.live.agent import Agent
from ravi.live.policies import Policy, evaluate
from ravi.mdps import riverswim, riverswim_mixture
from ravi.runtime import archive
from ravi.runtime.result import Options, Run
from ravi.validation import InputError

NUMBERS = (True, -1, 1.5, float("nan"), float("inf"), 10**400)
WRONG = (*NUMBERS, None, "text", "", [], [1, 2, 3], {}, {"a": 1}, [[]], [None])


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (3, str, "a text"),
        (True, int, "a whole number"),
        (1.0, int, "a whole number"),
        (float("inf"), float, "a number"),
        (1, bool, "true or false"),
        ("no", float | None, "a number or null"),
        ([1, "2"], list[int], "a list of which each entry is a whole number"),
        (3, list[Any], "a list"),
        ({"a": 1}, dict[str, str], "an object of which each value is a text"),
        ([], dict[str, Any], "an object"),
        ([1.0], tuple[float, float], "[a number, a number]"),
        ("x" * 100, int, "a whole number"),
    ],
)
def test_what_is_not_of_its_type_is_named(value, kind, said):
    with pytest.raises(InputError) as error:
        archive.typed({"key": value}, {"key": kind})
    assert str(error.value).startswith("its key is ")
    assert str(error.value).endswith(f", not {said}")
    assert len(str(error.value)) < 150


def test_what_is_of_its_type_is_given_back():
    types = {"a": float, "b": float | None, "c": list[int], "d": dict[str, Any], "e": tuple[float, float], "f": bool}
    held = {"a": 1, "b": None, "c": [], "d": {"x": []}, "e": [0, 1.5], "f": False}
    assert archive.typed(held | {"more": 1}, types) == held
    with pytest.raises(InputError, match="it has no a, f"):
        archive.typed({name: held[name] for name in "bcde"}, types)
    assert archive.typed({"a": 2}, types, partial=True) == {"a": 2}


def stored(kind):
    """The header and the arrays of a file, and who reads it."""
    mdp = riverswim(4, 0.9)
    if kind == "mdp":
        return riverswim_mixture(4, 0.9), ravi.MDP.load
    if kind == "run":
        return ravi.run("ravi-ucb", mdp, 200, [3, 4], pause=50, record=["trajectory"]), Run.load
    if kind == "policy":
        table = np.full((4, 2), 0.5)
        at = {"name": "x", "id": "x", "options": {}, "termination": "absorb", "observations": {"kind": "discrete"}}
        return Policy(table=table, discount=0.9, environment=at | {"actions": {}, "seed": 1}), Policy.load
    if kind == "large":
        return ravi.run("ravi-ucb", "large/riverswim/4", 200, [3], pause=50), Run.load
    live = ravi.agent("ravi-ucb", states=4, actions=2, discount=0.9, steps=100)
    live.observe(0, live.act(0), 1, 0.5)
    return live, Agent.load


KINDS = ("mdp", "run", "policy", "large", "agent")
KIND_OF = {"large": "run"}  # of the file


@pytest.fixture(scope="module", params=KINDS)
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "file"
    thing, load = stored(request.param)
    thing.save(path)
    header, arrays = archive.read(path, KIND_OF.get(request.param, request.param))
    return (
        path,
        KIND_OF.get(request.param, request.param),
        {k: v for k, v in header.items() if k not in archive.RESERVED},
        arrays,
        load,
    )


def places(header):
    """Every key, and those of the objects in it."""
    for key, value in header.items():
        yield (key,)
        if isinstance(value, dict) and key != "settings":
            yield from ((key, inner) for inner in value)


def put(header, place, value):
    key, *inner = place
    return header | {key: put(header[key], inner, value) if inner else value}


def looked_at(thing):
    """What anyone does first."""
    repr(thing)
    if isinstance(thing, Run):
        assert thing.times[-1] == thing.steps
        assert not thing.complete


def test_a_header_says_what_can_be_or_which_key_is_wrong(file, monkeypatch):
    """Every key, also of inner objects, in turn is each of many things that it should not be: read from one file that
    others may have written, then, since packing is most of the time, handed over as it would be read."""
    path, kind, header, arrays, load = file
    load(path)
    dumps = json.dumps
    with monkeypatch.context() as others:
        others.setattr(archive.json, "dumps", lambda full, allow_nan=True: dumps(full))
        archive.write(path, kind, put(header, next(iter(places(header))), float("nan")), arrays)
    with pytest.raises(InputError, match=path.name):
        load(path)
    refused = []
    for place in places(header):
        for wrong in WRONG:
            told = json.loads(json.dumps(put(header, place, wrong)))
            monkeypatch.setattr(archive, "read", lambda *_, told=told: (told, dict(arrays)))
            try:
                thing = load(path)
            except InputError as error:
                refused.append((place, str(error)))
                continue
            looked_at(thing)
    assert len(refused) > 5 * len(header)
    assert all(str(path) in told for _, told in refused)
    assert kind != "run" or all(any(key in told for key in place) for place, told in refused)


SPACES = (
    {}, {"kind": "parts"}, {"kind": "labels"}, {"kind": "grid"}, {"kind": "grid", "low": 1}, {"kind": 3},
    {"kind": "parts", "keys": ["a"], "spaces": []}, {"kind": "parts", "keys": None, "spaces": [{"kind": "grid"}]},
    {"kind": "parts", "keys": None, "spaces": [3]}, {"kind": "labels", "labels": [0.5]},
    {"kind": "labels", "labels": 3},
    {"kind": "parts", "keys": [[]], "spaces": [{"kind": "discrete", "n": 16, "start": 0}]},
)  # fmt: skip


@pytest.mark.parametrize("name", ["observations", "actions"])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_a_policy_whose_file_says_what_is_no_space_is_not_played(name, space):
    pytest.importorskip("gymnasium")
    where = {"name": "it", "id": "FrozenLake-v1", "options": {}, "termination": "absorb", name: space}
    with pytest.raises(InputError):
        evaluate(Policy(table=np.full((17, 4), 0.25), discount=0.9, environment=where), cycles=1)


def test_every_field_of_a_run_is_declared():
    fields = {field.name for field in dataclasses.fields(Run)}
    assert fields == set(typing.get_type_hints(Run))
    made = ravi.run("uniform", riverswim(3, 0.9), 5)
    assert set(made.options) == set(typing.get_type_hints(Options))
