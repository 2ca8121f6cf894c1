"""What the tests share."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from ravi.learners.posterior.draws import OWN, _four_sticks, atoms
from ravi.testing import bits, spy
from ravi.validation import InputError

__all__ = ["COMMAND", "assert_same_bits", "bits", "dense", "drawn_rows", "refuses", "script", "spy"]

COMMAND = str(Path(sys.executable).with_name("ravi"))  # as it is installed: it does not look in the current folder


def dense(mdp):
    """P[x, a, x'] as one array."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


def drawn_rows(theta, prior, counts, to, X, key, t, many=400):
    """P (X', A, X) as `ravi.learners.posterior.draws` draws it: all of every row, `many` sticks at most."""
    pairs, B = counts.shape[:2], counts.shape[2]
    P, states, mass = np.zeros((*pairs, X)), np.empty(B + many, np.int32), np.empty(B + many)
    for p, (x, a) in enumerate(np.ndindex(pairs)):
        at, left, part = atoms(prior, theta, to[x, a], counts[x, a], key, t, (p + 1) * OWN, 0, states, mass)
        while left > 0.0:
            left = _four_sticks(theta, X, key, t, part, left, at, B + many, states, mass)
            at, part = at + 4, part + 1
        np.add.at(P[x, a], states[:at], mass[:at])
    return P


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


def refuses(message, call, *arguments, by=InputError, **options):
    """The call ends in an error of the user that says this."""
    with pytest.raises(by, match=message):
        call(*arguments, **options)


def script(name):
    """A script of docs, by its path there, as a module."""
    path = Path(__file__).parent.parent / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
