"""Which constants does a run have, and are they the theorem's?"""

from __future__ import annotations

from typing import Any

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


def theta_of(scene: Scene) -> Any:
    """The true theta of a linear mixture   (d,)."""
    return scene.mdp.parameter


def B_theta(scene: Scene) -> float:
    assert scene.mdp.parameter_bound is not None
    return scene.mdp.parameter_bound


def B_phi(scene: Scene) -> float:
    assert scene.mdp.feature_bound is not None
    return scene.mdp.feature_bound


def uniform(scene: Scene) -> bool:
    """Whether pi_0 is: then H(pi* || pi_0) <= log A."""
    return bool(np.ptp(scene.parts.initial_policy) <= 1e-12)


def plain(scene: Scene) -> bool:
    """Whether pi_0 is uniform and V_0 constant: then the ends of the sums are worth log A and one H."""
    return uniform(scene) and bool(np.ptp(scene.parts.initial_value) == 0)


def of_theorem_4_1(scene: Scene, rtol: float = 1e-9) -> bool:
    """Whether eta and pi_0 are the theorem's."""
    theirs = constants.eta(scene.H, scene.mdp.actions, scene.steps)
    return uniform(scene) and bool(np.isclose(scene.parts.eta, theirs, rtol=rtol))


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
    if scene.setting == "generic" or not np.isclose(beta_of(scene), papers_beta(scene)):
        return np.inf
    if not of_theorem_4_1(scene, rtol=1e-5):
        return np.inf
    if scene.dimension:
        given = {"bound": bound_of(scene), "regularization": lam(scene), "delta": delta}
        return mixture.corrected(H, mdp.dimension, mdp.actions, T, **given).total
    return tabular.corrected(H, mdp.states, mdp.actions, T, delta=delta).total
