"""Which constants does a run have, and are they the theorem's?"""

from __future__ import annotations

import numpy as np

from ravi.theory import constants, mixture, tabular
from ravi.verify.books import Scene


def delta_of(scene: Scene) -> float:
    return 1 / scene.steps if scene.stated.delta is None else float(scene.stated.delta)


def beta_of(scene: Scene) -> float:
    assert scene.stated.beta is not None
    return float(scene.stated.beta)


def bound_of(scene: Scene) -> float:
    """B, as the learner takes it."""
    assert scene.stated.bound is not None
    return float(scene.stated.bound)


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
    """lambda; 1 where there is no regression."""
    return 1.0 if scene.stated.regularization is None else float(scene.stated.regularization)


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
            regularization=lam(scene),
            delta=delta,
        ).total
    return tabular.corrected(H, mdp.states, mdp.actions, T, delta=delta).total
