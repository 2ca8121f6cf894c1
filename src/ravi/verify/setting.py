"""The setting of a run, or of a phase of it: the MDP, its optimum, and the learner's constants beside the theorem's."""

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


class RunSetting(NamedTuple):
    mdp: MDP
    parts: Parts
    side: SideInformation
    steps: int  # T; of a phase, the S_{i+1} that its beta allows for
    solution: Solution
    mu_star: Array  # mu*        (X, A)
    P: Array  # the kernel as one array   (X, A, X)
    against: Comparators
    sets: Any = None  # the `KernelSets` of plans on sets of kernels
    phase: int = 0  # i, where T is not known
    length: int = 0  # l_i, likewise
    first: int = 0  # l, likewise
    of: Callable[[int], RunSetting] | None = None  # phase i as a setting, likewise
    average: Any = None  # an `average.Truth` in the average reward
    episodes: Any = None  # an `episodes.Truth` in episodes
    world: Any = None  # the `Changing` where rewards change: those of `mdp`, and the optimum, are of the mean table

    @property
    def undiscounted(self) -> bool:
        return self.average is not None or self.episodes is not None

    @property
    def H(self) -> float:
        return self.mdp.largest_value

    @property
    def gamma(self) -> float:
        return self.mdp.discount

    @property
    def atol(self) -> float:
        values = self.H if self.average is None else 1 + float(np.ptp(self.solution.bias))  # type: ignore[attr-defined]
        return 1e-9 * values  # of an identity in float64

    @property
    def entropy(self) -> float:
        """H(pi* || pi_0), pi* optimal for `mdp`."""
        star = occupancy(self.mdp, self.solution.policy)
        return float(star.nu @ relative_entropy(self.solution.policy, self.parts.initial_policy))

    @property
    def unknown_rewards(self) -> bool:
        return self.side.rewards is not None

    @property
    def stated(self) -> TheoryConstants:
        return self.parts.stated

    @property
    def kind(self) -> str:
        """Which data the learner keeps: of a "mixture", "tabular", or of another ("generic") estimator."""
        return self.stated.kind if self.stated.kind in ("tabular", "mixture") else "generic"

    @property
    def dimension(self) -> int:
        """d of a linear mixture, 0 where the learner does not use it."""
        return self.mdp.dimension if self.kind == "mixture" else 0

    @property
    def eta(self) -> float:
        return self.parts.eta

    @property
    def delta(self) -> float:
        return 1 / self.steps if self.stated.delta is None else float(self.stated.delta)

    @property
    def log_inverse_delta(self) -> float:
        """log(1 / delta)."""
        return -float(np.log(self.delta))

    @property
    def beta(self) -> float:
        """beta of the learner, where it states one."""
        assert self.stated.beta is not None
        return float(self.stated.beta)

    @property
    def B(self) -> float:
        """B, as the learner takes it."""
        assert self.stated.bound is not None
        return float(self.stated.bound)

    @property
    def theta(self) -> Array:
        """theta of a linear mixture   (d,)."""
        assert self.mdp.parameter is not None
        return self.mdp.parameter

    @property
    def B_theta(self) -> float:
        assert self.mdp.parameter_bound is not None
        return self.mdp.parameter_bound

    @property
    def B_phi(self) -> float:
        assert self.mdp.feature_bound is not None
        return self.mdp.feature_bound

    @property
    def lam(self) -> float:
        """lambda; 1 where there is no regression."""
        return 1.0 if self.stated.regularization is None else float(self.stated.regularization)

    @property
    def phases(self) -> list[RunSetting]:
        """All that T reaches into; the run itself where T is known."""
        return [self.of(i) for i in range(doubling.phases(self.steps, self.first))] if self.of else [self]

    @property
    def uniform(self) -> bool:
        """Whether pi_0 is: then H(pi* || pi_0) <= log A."""
        return bool(np.ptp(self.parts.initial_policy) <= 1e-12)

    @property
    def plain(self) -> bool:
        """Whether pi_0 is uniform and V_0 constant: then the ends of the sums are worth log A and one H."""
        return self.uniform and bool(np.ptp(self.parts.initial_value) == 0)

    def has(self, part: str) -> bool:
        """Whether the learner says that it has this part of RAVI-UCB+."""
        return part in (self.stated.on or ())

    def stating(self, **constants: Any) -> RunSetting:
        """With these constants in place of the learner's."""
        return self._replace(parts=self.parts._replace(stated=self.stated._replace(**constants)))

    def phi(self, V: Array) -> Array:
        """phi_V(x, a) = sum_x' psi(x, a, x') V(x'), from the definition   (n, X, A, d)."""
        psi: Any = self.mdp.features
        return np.einsum("xajd,nxaj->nxad", psi, V[:, self.mdp.successors])


def setting_of(learner: Learner, mdp: MDP, steps: int, solution: Solution) -> RunSetting:
    """Without a discount nothing is held against fixed policies."""
    nothing: Any = None  # plans on sets of kernels have no parts, and begin nowhere
    uniform = np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    parts = learner.parts or Parts(nothing, nothing, nothing, np.zeros(mdp.states), uniform)
    side, P = learner.side_information, dense(mdp, mdp.transitions)
    made = RunSetting(mdp, parts, side, steps, solution, nothing, P, nothing, learner.sets)
    if mdp.criterion != "discounted":
        return made
    star, rho = occupancy(mdp, solution.policy), np.array([[solution.optimum]])
    return made._replace(mu_star=star.mu, against=Comparators(star.nu[None], rho, np.array([made.entropy])))


def dense(mdp: MDP, values: Array) -> Array:
    """What is of successors (..., X, A, B), of all states   (..., X, A, X)."""
    found = np.zeros((*values.shape[:-1], mdp.states))
    np.put_along_axis(found, np.broadcast_to(mdp.successors.astype(np.int64), values.shape), values, axis=-1)
    return found


# ---- the theorem's constants


def of_theorem_4_1(setting: RunSetting, rtol: float = 1e-9) -> bool:
    """Whether eta and pi_0 are the theorem's."""
    eta = constants.eta(setting.H, setting.mdp.actions, setting.steps)
    return setting.uniform and bool(np.isclose(setting.eta, eta, rtol=rtol))


def papers_beta(setting: RunSetting) -> float:
    """beta of Lemma 5.1, or of Lemma 5.4."""
    if setting.dimension:
        return mixture_beta(setting, setting.B)
    mdp = setting.mdp
    return constants.beta_tabular(setting.H, mdp.states, mdp.actions, setting.steps, setting.delta)


def mixture_beta(setting: RunSetting, B: float) -> float:
    """beta of Lemma 5.4, for ||theta|| and ||phi_V|| / H of at most B."""
    given = {"parameter_bound": B, "feature_bound": B, "regularization": setting.lam}
    return constants.beta_mixture(setting.H, setting.mdp.dimension, setting.steps, setting.delta, **given)


def papers_bound(setting: RunSetting) -> float:
    """The corrected explicit bound; infinite where the constants are not the paper's."""
    mdp, T, H, delta = setting.mdp, setting.steps, setting.H, setting.delta
    if setting.kind == "generic" or not np.isclose(setting.beta, papers_beta(setting)):
        return np.inf
    if not of_theorem_4_1(setting, rtol=1e-5):
        return np.inf
    if setting.dimension:
        d, A, B = mdp.dimension, mdp.actions, setting.B
        return mixture.corrected(H, d, A, T, bound=B, regularization=setting.lam, delta=delta).total
    return tabular.corrected(H, mdp.states, mdp.actions, T, delta=delta).total
