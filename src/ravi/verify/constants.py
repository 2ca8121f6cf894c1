"""Which constants does a run have, and are they the theorem's?"""

from __future__ import annotations

import numpy as np

from ravi.theory import constants, mixture, tabular
from ravi.verify.books import Scene


def delta_of(scene: Scene) -> float:
    return float(scene.settings.get("delta", 1 / scene.steps))


def beta_of(scene: Scene) -> float:
    return float(scene.settings["beta"])


def bound_of(scene: Scene) -> float:
    """B, as the learner takes it."""
    return float(scene.settings["bound"])


def papers_beta(scene: Scene) -> float:
    """beta of Lemma 5.1, or of Lemma 5.4."""
    mdp, T, delta = scene.mdp, scene.steps, delta_of(scene)
    if not scene.dimension:
        return constants.beta_tabular(scene.H, mdp.states, mdp.actions, T, delta)
    B = bound_of(scene)
    return constants.beta_mixture(
        scene.H, mdp.dimension, T, delta, parameter_bound=B, feature_bound=B, regularization=lam(scene)
    )


def lam(scene: Scene) -> float:
    return float(scene.settings["regularization"])


def explicit(scene: Scene) -> float:
    """The corrected explicit bound; infinite where the constants are not the paper's."""
    mdp, T, H, delta = scene.mdp, scene.steps, scene.H, delta_of(scene)
    if (
        scene.setting == "generic"
        or not np.isclose(beta_of(scene), papers_beta(scene))
        or not np.isclose(scene.parts.eta, constants.eta(H, mdp.actions, T))
        or np.ptp(scene.parts.initial_policy) > 1e-12  # log A is for a uniform pi_0
    ):
        return np.inf
    if scene.dimension:
        return mixture.corrected(
            H,
            mdp.dimension,
            mdp.actions,
            T,
            bound=bound_of(scene),
            regularization=scene.settings["regularization"],
            delta=delta,
        ).total
    return tabular.corrected(H, mdp.states, mdp.actions, T, delta=delta).total
