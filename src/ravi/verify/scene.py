"""The setting of a run, or of a phase of it: the truth, the optimum, and constants, compared with the theorem's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ravi.core import MDP, Array, Learner, Parts, SideInformation, TheoryConstants
from ravi.planning.occupancies import occupancy, relative_entropy
from ravi.planning.solver import Solution
from ravi.theory import constants, doubling, mixture, tabular


class Comparators(NamedTuple):
    """Fixed policies that a run is held against, each for pi*; one optimal policy unless rewards change."""

    nu: Array  # nu*                    (C, X)
    rho: Array  # <mu*, r_j>            (C, J)
    entropy: Array  # H(pi* || pi_0)    (C,)


class Scene(NamedTuple):
    mdp: MDP
    parts: Parts
    told: SideInformation
    steps: int  # T; of a phase, the S_{i+1} that its beta allows for
    solution: Solution
    mu_star: Array  # mu*        (X, A)
    entropy: float  # H(pi* || pi_0)
    P: Array  # the kernel as one array   (X, A, X)
    against: Comparators
    sets: Any = None  # the `Sets` of plans on sets of kernels
    phase: int = 0  # i, where T is not known
    length: int = 0  # l_i, likewise
    first: int = 0  # l, likewise
    of: Callable[[int], Scene] | None = None  # phase i as a scene, likewise
    world: Any = None  # the `Changing` where rewards change: those of `mdp`, and the optimum, are of the mean table

    @property
    def H(self) -> float:
        return self.mdp.horizon

    @property
    def atol(self) -> float:
        return 1e-9 * self.mdp.horizon  # of an identity in float64

    @property
    def setting(self) -> str:
        """Which data the learner keeps: of a "mixture", "tabular", or of another ("generic") estimator."""
        return self.stated.kind if self.stated.kind in ("tabular", "mixture") else "generic"

    @property
    def stated(self) -> TheoryConstants:
        return self.parts.stated

    def stating(self, **constants: Any) -> Scene:
        """With these constants in place of the learner's."""
        return self._replace(parts=self.parts._replace(stated=self.stated._replace(**constants)))

    @property
    def dimension(self) -> int:
        """d of a linear mixture, 0 where the learner does not use it."""
        return self.mdp.dimension if self.setting == "mixture" else 0

    @property
    def phases(self) -> list[Scene]:
        """All that T reaches into; the run itself where T is known."""
        return [self.of(i) for i in range(doubling.phases(self.steps, self.first))] if self.of else [self]

    def stored(self, moves: Array) -> Array:
        """Moves to all states (n, X, A, X), on the stored successors   (n, X, A, B)."""
        there = np.broadcast_to(self.mdp.successors.astype(np.int64), (len(moves), *self.mdp.successors.shape))
        return np.take_along_axis(moves, there, axis=-1)

    def phi(self, V: Array) -> Array:
        """phi_V(x, a) = sum_x' psi(x, a, x') V(x'), from the definition   (n, X, A, d)."""
        psi: Any = self.mdp.features
        return np.einsum("xajd,nxaj->nxad", psi, V[:, self.mdp.successors])


def scene_of(learner: Learner, mdp: MDP, steps: int, solution: Solution) -> Scene:
    nothing: Any = None  # plans on sets of kernels have no parts, and begin nowhere
    uniform = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    parts = learner.parts or Parts(nothing, nothing, nothing, np.zeros(mdp.states), uniform)
    star = occupancy(mdp, solution.policy)
    entropy = float(star.nu @ relative_entropy(solution.policy, parts.initial_policy))
    best = Comparators(star.nu[None], np.array([[solution.optimum]]), np.array([entropy]))
    return Scene(
        mdp, parts, learner.side_information, steps, solution, star.mu, entropy, kernel_of(mdp), best, learner.sets
    )


def kernel_of(mdp: MDP) -> Array:
    """P as one array   (X, A, X)."""
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


# ---- constants


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
    return mixture_beta(scene, bound_of(scene))


def mixture_beta(scene: Scene, B: float) -> float:
    """beta of Lemma 5.4, for ||theta|| and ||phi_V|| / H of at most B."""
    given = {"parameter_bound": B, "feature_bound": B, "regularization": lam(scene)}
    return constants.beta_mixture(scene.H, scene.mdp.dimension, scene.steps, delta_of(scene), **given)


def lam(scene: Scene) -> float:
    """lambda; 1 where there is no regression."""
    return 1.0 if scene.stated.regularization is None else float(scene.stated.regularization)


def papers_bound(scene: Scene) -> float:
    """The corrected explicit bound; infinite where the constants are not the paper's."""
    mdp, T, H, delta = scene.mdp, scene.steps, scene.H, delta_of(scene)
    if scene.setting == "generic" or not np.isclose(beta_of(scene), papers_beta(scene)):
        return np.inf
    if not of_theorem_4_1(scene, rtol=1e-5):
        return np.inf
    if scene.dimension:
        d, B = mdp.dimension, bound_of(scene)
        return mixture.corrected(H, d, mdp.actions, T, bound=B, regularization=lam(scene), delta=delta).total
    return tabular.corrected(H, mdp.states, mdp.actions, T, delta=delta).total
