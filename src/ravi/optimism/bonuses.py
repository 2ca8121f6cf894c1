"""How much is added for what is not known? BONUS, as a multiple of an estimator's width.

tabular:          CB_k(x, a) = beta / sqrt(N_{T_k}(x, a))                     (Section 5.1)
linear mixture:   CB_k(x, a) = beta ||phi_k(x, a)||_{Lambda_{T_k}^{-1}}        (Section 5.2)
"""

from __future__ import annotations

from ravi.core import Array, Bonus, Data, Embedding, Estimator


def multiple_of_width(beta: float, estimator: Estimator) -> Bonus:
    """CB = beta * width: both bonuses of the paper."""

    def bonus(D: Data, phi: Embedding) -> Array:
        CB = estimator.width(D, phi)
        CB *= beta  # in the memory of the width
        return CB

    return bonus
