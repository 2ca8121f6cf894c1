"""BONUS: what is added for what is not known, a multiple of an estimator's width.

tabular:          CB_k(x, a) = beta / sqrt(N_{T_k}(x, a))                     (Section 5.1)
linear mixture:   CB_k(x, a) = beta ||phi_k(x, a)||_{Lambda_{T_k}^{-1}}        (Section 5.2)

Beyond the paper, for estimators of V less its middle, in parts of its span (`ravi.estimators.centred`):

counts        CB = (sp(V)/2) min{1 + n/(n+1), (sqrt(2 L n) + 1) / (n+1)},  L = X ln 2 + ln(X A T / delta)
regression    CB = (s sqrt(ln det Lambda - d ln lambda + 2 ln(1/delta)) + sqrt(lambda) B) ||phi||_{Lambda^{-1}}

The first: on the event ||p_n - P||_1 <= sqrt(2 L / n) of `theory.constants.beta_tabular_l1`, and with |V - c| <= sp/2,

    |P V - c - n/(n+1) p_n (V - c)| <= n/(n+1) (sp/2) ||p_n - P||_1 + (sp/2) / (n+1),

and both P V and its estimate are within sp/2 and (n/(n+1)) sp/2 of c. The second is the self-normalised bound itself,
of which Lemma 5.4 bounds the determinant; s is the noise, H/2 for V, 1 for V in parts of half its span.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from ravi._jit.teams import beside
from ravi.core import Array, Bonus, Data, Embedding, Estimator
from ravi.runtime.seedwise import by_pair

if TYPE_CHECKING:
    from ravi.estimators.centred import Standard


def multiple_of_width(beta: float | Array, estimator: Estimator) -> Bonus:
    """CB = beta * width: both bonuses of the paper. beta: one number, or one of every row (n,), as are scales below."""
    factor = by_pair(beta)

    def bonus(D: Data, phi: Embedding) -> Array:
        CB = estimator.width(D, phi)
        CB *= beside(factor, CB)  # in the memory of the width
        return CB

    return bonus


def log_term(states: int, actions: int, steps: int, delta: float) -> float:
    """L = X ln 2 + ln(X A T / delta)."""
    return states * log(2) + log(states * actions * steps / delta)


def of_span(term: float | Array, *, scale: float | Array = 1.0, span: float | None = None) -> Bonus:
    """The bonus of counts from one, for V less its middle. term: `log_term`, one number or one of every row; span: in
    place of sp(V), where it is not to be used."""
    L, factor = by_pair(term), by_pair(scale)

    def bonus(D: Data, phi: Standard) -> Array:
        n = D.visits - 1.0
        spread = phi.high - phi.low if span is None else span
        return (spread / 2) * np.minimum(1 + n / (n + 1), factor * (np.sqrt(2 * L * n) + 1) / (n + 1))

    return bonus


def of_determinant(
    estimator: Estimator, dimension: int, confidence: float | Array, *, noise: float, regularization: float,
    bound: float, scale: float | Array = 1.0,
) -> Bonus:  # fmt: skip
    """The self-normalised radius of the data at hand, times the width: see `log_det_radius`."""
    factor = by_pair(scale)

    def bonus(D: Data, phi: Embedding) -> Array:
        beta = log_det_radius(D.root, dimension, confidence, noise=noise, regularization=regularization, bound=bound)
        return beside(factor, beta) * beta[:, None, None] * estimator.width(D, phi)

    return bonus


def confidence_term(delta: float) -> float:
    """2 ln(1/delta)."""
    return 2 * log(1 / delta)


def log_det_radius(
    root: Array, dimension: int, confidence: float | Array, *, noise: float, regularization: float, bound: float
) -> Array:
    """s sqrt(ln det Lambda - d ln lambda + 2 ln(1/delta)) + sqrt(lambda) B   (n,); root: R, Lambda^{-1} = R R^T.
    `confidence` is 2 ln(1/delta), one number or one of every row; `noise` is s, `bound` is B."""
    log_det = -2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(-1)
    grown = np.maximum(log_det - dimension * log(regularization), 0.0)
    return noise * np.sqrt(grown + beside(confidence, grown)) + regularization**0.5 * bound


def discounted(bonus: Bonus, discount: float) -> Bonus:
    """gamma CB: validity asks for gamma |(P - P_hat) V| <= CB."""

    def times(D: Data, phi: Embedding) -> Array:
        return discount * bonus(D, phi)

    return times


def within_span(bonus: Bonus) -> Bonus:
    """min{CB, sp(V)}: an estimate that is cut to [min V, max V] is never off by more than sp(V)."""

    def cut(D: Data, phi: Standard) -> Array:
        return np.minimum(bonus(D, phi), phi.high - phi.low)

    return cut
