"""What the tests share."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from ravi.contract import bits, spy
from ravi.learners.posterior.dirichlet import AHEAD, draw_gammas, normalise
from ravi.learners.posterior.sticks import _four_sticks, _met

__all__ = ["COMMAND", "assert_same_bits", "bits", "dense", "draw_rows", "script", "spy"]

COMMAND = str(Path(sys.executable).with_name("ravi"))  # as it is installed: it does not look in the current folder


def dense(mdp):
    """P[x, a, x'] as one array."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


def draw_rows(prior, counts, to, key, t, P):
    """P (X, A, entries) ~ Dirichlet(prior + counts), the counts being of the entries `to`."""
    draw_gammas(prior, counts, to, key, t, np.empty(AHEAD), np.empty(P.size), P)
    for row in P.reshape(-1, P.shape[-1]):
        normalise(prior, row)


def whole_rows(theta, counts, to, X, key, t, many=400):
    """P (X', A, X) as `draw_rows`, by sticks: so many of every row, and what is left after them on the last."""
    pairs, B = counts.shape[:2], counts.shape[2]
    P, states, mass = np.zeros((*pairs, X)), np.empty(B + many, np.int32), np.empty(B + many)
    for x, a in np.ndindex(pairs):
        at, left, part = _met(theta, 0, x, a, to, counts[None], key, t, 0, states, mass)
        while left > 0.0:
            left = _four_sticks(theta, X, key, t, part, left, at, B + many, states, mass)
            at, part = at + 4, part + 1
        np.add.at(P[x, a], states[:at], mass[:at])
    return P


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


def script(name):
    """A script of docs, by its path there, as a module."""
    path = Path(__file__).parent.parent / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
