"""What must one run satisfy? Lemma 4.3, for K epochs with valid bonuses, whatever happened in them."""

from ravi.theory import constants, inputs
from ravi.theory.parts import Bound, bound


def printed(horizon: float, epochs: int, bonus: float, entropy: float, eta: float) -> Bound:
    """Lemma 4.3: sum_{k <= K} gap(pi_k) <= 2 sum_{k <= K} <mu^{pi_k}, CB_k> + 2 H + H(pi* || pi_0) / eta + eta H^3 K/2.

    `bonus` is the sum of <mu^{pi_k}, CB_k>, `entropy` is H(pi* || pi_0): log A at most for a uniform pi_0. It holds for
    every V_0 in [0, H]^X, not for V_0 = 0 only: <mu^{pi_1} - mu*, E V_1> then joins the boundary, still 2 H at most.
    """
    H, K, eta = inputs.horizon(horizon), inputs.whole(epochs, "epochs", 0), inputs.positive(eta, "eta")
    S, entropy = inputs.nonnegative(bonus, "bonus"), inputs.nonnegative(entropy, "entropy")
    return bound(bonus=2 * S, optimisation=entropy / eta + eta * H**3 * K / 2, boundary=2 * H)


def sharp(horizon: float, epochs: int, clipped_bonus: float, entropy: float, eta: float) -> Bound:
    """sum_{k <= K} gap(pi_k) <= sum_{k <= K} <mu^{pi_k}, min(2 CB_k, H)> + H + H(pi* || pi_0) / eta + eta kappa K.

    For a constant V_0, such as 0. `clipped_bonus` is the first sum. Reasons: `generic.sharp`. With M backups per epoch,
    K counts backups.
    """
    H, K, eta = inputs.horizon(horizon), inputs.whole(epochs, "epochs", 0), inputs.positive(eta, "eta")
    S, entropy = inputs.nonnegative(clipped_bonus, "clipped_bonus"), inputs.nonnegative(entropy, "entropy")
    return bound(bonus=S, optimisation=entropy / eta + eta * constants.kappa(H) * K, boundary=H)
