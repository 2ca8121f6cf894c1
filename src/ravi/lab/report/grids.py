"""Maps of the last state of a run: values, bonuses, visits and the policy, drawn where the states are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.core import MDP
from ravi.display.maps import layout, map_figure
from ravi.display.style import Drawn
from ravi.lab.report.parameters import leaves

if TYPE_CHECKING:
    from ravi.runtime.result import Run


def fields_of(run: Run, mdp: MDP | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """What the last state of a run holds about states, each (X,): value, visits and bonus as far as it has them.

    The bonus is what the next epoch would begin with, of the action for which it is largest; it needs the MDP where the
    learner is a mixture learner.
    """
    held = leaves(run)
    found: dict[str, np.ndarray] = {}
    X = run.last_policy.shape[-2]
    if "V" in held and held["V"].shape[1:] == (X,):
        found["value V"] = np.array(held["V"][seed], float)
    bonus = _bonus(run, held, mdp, seed)
    if bonus is not None:
        found["largest bonus"] = bonus.max(-1)
    moves = held.get("data.moves")  # N', which starts at zero wherever N does
    if moves is not None and moves.ndim == 4 and moves.shape[1] == X:
        found["visits"] = np.array(moves[seed], float).sum((1, 2))
    return found


def _bonus(run: Run, held: Mapping[str, Any], mdp: MDP | None, seed: int) -> np.ndarray | None:
    """CB(x, a) of RAVI-UCB's two forms   (X, A)."""
    if run.learner == "ravi-ucb":
        return np.asarray(run.settings["beta"] / np.sqrt(held["data.visits"][seed].astype(float)))
    if run.learner == "ravi-ucb/mixture" and mdp is not None and mdp.features is not None:
        from ravi.estimators.ridge import embedding_of

        phi = embedding_of(mdp.successors, mdp.features)(held["V"][seed][None])[0]  # (X, A, d)
        return np.asarray(run.settings["beta"] * np.linalg.norm(phi @ held["data.root"][seed], axis=-1))
    return None


def maps(run: Run, mdp: MDP | None = None, *, seed: int = 0, title: str = "") -> Drawn:
    """The last state of one seed of a run; `seed` counts the run's seeds from 0."""
    policy = run.last_policy[seed]
    policy = policy[0] if policy.ndim == 3 else policy  # by age: what is played right after a reset
    where = layout(run.mdp, *policy.shape)
    return map_figure(where, fields_of(run, mdp, seed), policy, title=title)
