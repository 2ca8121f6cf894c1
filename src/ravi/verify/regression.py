"""Claims of Section 5.2 and Appendix A: regressions, and how long they stay uncertain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ravi.core import Array
from ravi.estimators.ridge import parameter
from ravi.theory import elliptical, mixture
from ravi.verify import lemmas
from ravi.verify.books import Evidence, Seen, proper
from ravi.verify.chance import Interval, bernstein
from ravi.verify.claim import Registry
from ravi.verify.distance import growth, in_norm, nil, solved, worst
from ravi.verify.scene import Scene, beta_of, bound_of, delta_of, lam, papers_beta, papers_bound, theta_of

registry = Registry("mixture")
claim = registry.claim


claim("M0a", "Lambda_{T_k} = lambda I + sum phi_i phi_i^T, b_{T_k} = sum phi_i V_i(y_i), over t < T_k", "Algorithm 3",
      phase="step")(lemmas.regression)  # fmt: skip
claim("M0b", "CB_k = beta ||phi_k||_{Lambda^-1}", "Equation (9)", phase="backup")(lemmas.bonus)


@claim("M1a", "P = <theta, psi>, ||theta|| <= B", "Assumption 5.3", phase="run")
def kernel_is_linear(e: Evidence) -> tuple[Array, Array]:
    mdp, theta = e.scene.mdp, theta_of(e.scene)
    psi: Any = mdp.features
    wrong = np.abs(np.einsum("xajd,d->xaj", psi, theta) - mdp.transitions).max()
    return np.array([wrong, np.linalg.norm(theta) - bound_of(e.scene)]), np.zeros(2)


@claim("M1b", "||phi_V|| <= B H for V in [0, H]^X", "Assumption 5.3", phase="backup")
def features_are_bounded(s: Seen) -> tuple[Array, Array]:
    phi = np.linalg.norm(s.scene.phi(s.at.V), axis=-1)
    corner = np.random.default_rng(s.k).integers(0, 2, size=s.scene.mdp.states) * s.scene.H  # the same for all seeds
    other = np.linalg.norm(s.scene.phi(corner[None]), axis=-1)
    return np.maximum(worst(phi), worst(other)), nil(s) + bound_of(s.scene) * s.scene.H


@claim("M2", "P_hat_k V_k = <phi_k, theta_hat_k>,  P V_k = <phi_k, theta>", "Appendix A.2", phase="backup")
def expectations_are_linear(s: Seen) -> tuple[Array, Array]:
    b, phi = s.backup, s.scene.phi(s.at.V)
    estimate = np.einsum("nxad,nd->nxa", phi, solved(s.data.covariance, s.data.response))
    return worst(np.abs(estimate - b.PV_hat), np.abs(phi @ theta_of(s.scene) - b.PV)), nil(s)


@claim("M3", "P_hat_k V_k - P V_k = <phi_k, Lambda^-1 (sum phi_i (V_i(y_i) - P V_i) - lambda theta)>", "Appendix A.2",
       phase="backup")  # fmt: skip
def error_identity(s: Seen) -> tuple[Array, Array]:
    by = solved(s.data.covariance, s.books.noise - lam(s.scene) * theta_of(s.scene))
    return lemmas.error(s, np.einsum("nxad,nd->nxa", s.scene.phi(s.at.V), by))


@claim("M4", "||theta_hat_k - theta||_Lambda <= xi_k + sqrt(lambda) B", "Appendix A.2", phase="backup")
def ellipsoid(s: Seen) -> tuple[Array, Array]:
    off = parameter(s.data) - theta_of(s.scene)
    norm = np.sqrt(np.einsum("nd,nde,ne->n", off, s.data.covariance, off))
    xi = in_norm(s.data.covariance, s.books.noise)  # ||sum phi_i (V_i(y_i) - P V_i)||
    return norm, xi + np.sqrt(lam(s.scene)) * bound_of(s.scene)


@claim("M5", "xi_k <= H sqrt(2 log(det(Lambda)^(1/2) lambda^(-d/2) / delta))", "Theorem C.2", kind="P", phase="backup")
def self_normalised(s: Seen) -> tuple[Array, Array]:
    return lemmas.self_normalised(s, s.data.covariance, s.books.noise)


@claim("M6", "log det Lambda_{T_k} <= d log(lambda + (T_k - 1) B^2 H^2 / d)", "Appendix A.2", phase="backup")
def determinant(s: Seen) -> tuple[Array, Array]:
    mdp, H = s.scene.mdp, s.scene.H
    before = np.minimum(s.audit.walked.visited, s.scene.steps)
    bound = mdp.dimension * np.log(lam(s.scene) + before * bound_of(s.scene) ** 2 * H**2 / mdp.dimension)
    return np.linalg.slogdet(s.data.covariance)[1], bound


@claim("M7", "|(P - P_hat_k) V_k| <= beta ||phi_k||_{Lambda^-1}, beta of Equation (10)", "Lemma 5.4", kind="P",
       phase="backup")  # fmt: skip
def mixture_validity(s: Seen) -> tuple[Array, Array]:
    return lemmas.within(s, papers_beta(s.scene) * s.backup.width)


@claim("M8a", "sum_k (1 / L_k) sum_t log(1 + L_k ||phi||^2) <= log det Lambda_{K+1} - d log lambda", "Lemma A.2",
       phase="run")  # fmt: skip
def potential(e: Evidence) -> tuple[Array, Array]:
    return e.audit.matrices.potential, growth(e.audit.matrices.full, lam(e.scene))


@claim("M8b", "... <= d log(1 + B^2 H^2 T+ / (lambda d))", "Lemma A.2", phase="run")
def potential_is_bounded(e: Evidence) -> tuple[Array, Array]:
    return growth(e.audit.matrices.full, lam(e.scene)), _cap(e)


def _cap(e: Evidence) -> Array:
    H, d, given = e.scene.H, e.scene.mdp.dimension, {"bound": bound_of(e.scene), "regularization": lam(e.scene)}
    return np.array([elliptical.log_determinant(H, d, float(plays), **given) for plays in e.plays])


@claim("M9", "#{k: some ||phi|| >= 1} <= (log det G - d log lambda) / log 2 <= (d / log 2) log(...)", "Lemma A.3",
       phase="run")  # fmt: skip
def bad_epochs(e: Evidence) -> tuple[Array, Array]:
    sharp = growth(e.audit.matrices.G, lam(e.scene)) / np.log(2)
    return e.audit.walked.bad_epochs, np.minimum(sharp, _cap(e) / np.log(2))


@claim("M10", "min(x, n) <= (n / log(1 + n)) log(1 + x)", "Appendix A.4", phase="run")
def concavity(e: Evidence) -> tuple[Array, Array]:
    n = np.arange(1.0, 200.0)[:, None]
    x = np.concatenate([np.linspace(0, 5, 400), np.geomspace(5, 1e6, 400)])
    return (np.minimum(x, n) - n / np.log1p(n) * np.log1p(x)).max(1), np.zeros(len(n))


@claim("M11", "sum_t min(1, ||phi||^2) <= max_k C_k (log det Lambda_{K+1} - d log lambda)", "Lemma 5.5", phase="run")
def clipped_norms(e: Evidence) -> tuple[Array, Array]:
    longest = e.audit.walked.longest
    return e.audit.matrices.clipped, longest / np.log1p(longest) * growth(e.audit.matrices.full, lam(e.scene))


@claim("M12", "E max_k C_k <= f((2 + log T) H),  f(x) = x / log(1 + x)   (printed: (4 + 2 log T) H)", "Lemma A.4",
       kind="E", setting="any")  # fmt: skip
def longest_epoch(e: Evidence) -> tuple[Array, Array]:
    longest = e.audit.walked.longest
    return longest / np.log1p(longest), np.array(elliptical.largest_factor_sharp(e.scene.H, e.run.steps))


@claim("M13", "from the first bad step of an epoch on, H steps are left in the mean", "Lemma 5.5, repaired", kind="E",
       equality=True)  # fmt: skip
def memorylessness(e: Evidence) -> tuple[Array, Array, Interval]:
    w, H = e.audit.walked, e.scene.H
    law = bernstein((H - 1) * H * w.bad_epochs.sum(), H, e.n)
    return w.bad_rest - H * w.bad_epochs, np.array(0.0), law


@claim("M14", "E sum_{t<=T+} CB_t <= C_1(T) + sqrt(T) C_2(T), corrected", "Lemma 5.5", kind="E")
@lemmas.bonus_sum
def lemma_5_5(scene: Scene) -> float:
    if beta_of(scene) > papers_beta(scene) * (1 + 1e-9):  # smaller bonuses have a smaller sum
        return np.inf
    given = {"bound": bound_of(scene), "regularization": lam(scene), "delta": delta_of(scene)}
    return mixture.bonus_sum_corrected(scene.H, scene.mdp.dimension, scene.steps, **given)


claim("M15", "R_T <= the explicit linear-mixture bound, corrected", "Theorem 5.6",
      kind="E")(lemmas.regret(papers_bound))  # fmt: skip


@claim("M16", "E gap(pi_I) <= bound(T) / T, I uniform in time", "Corollary 5.7", kind="E", setting="any")
def corollary_5_7(e: Evidence) -> tuple[Array, Array]:
    from ravi.planning.evaluation import return_of

    gaps = e.scene.solution.optimum - return_of(e.scene.mdp, proper(e.run.output_policy)[0])
    return np.asarray(gaps), np.array(min(papers_bound(e.scene) / e.run.steps, 1.0))
