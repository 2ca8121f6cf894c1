"""How large can the regret be where rewards change? Theorem 4.1 against every fixed policy, and gamma H more.

Let the tables be fixed in advance, r_t in force at step t, and f_t = <mu* - mu^{pi_k}, r_t> for a fixed policy pi*.
What is known when epoch k begins settles pi_k, T_k, whether k <= K(T), and whether k < tau, the first invalid epoch;
how long the epoch lasts is up to resets. Write r_k for the table that is revealed after it.

Clock "plays": r_k is the table of the epoch's last step. The epoch reaches its i-th step (i = 0, 1, ...) with
probability gamma^i, and ends with it with probability (1 - gamma) gamma^i, so that

    E[sum_{t in epoch k} f_t] = sum_i gamma^i f_{T_k + i} = H E[<mu* - mu^{pi_k}, r_k>].

Clock "epochs": r_t = r_k in all of the epoch, whose length has the mean H: the same identity. How many plays a table is
in force for is then random. What is bounded is max_pi E[sum_{t <= T} <mu^pi - mu^{pi_t}, r_t>], one policy for all
seeds, and not E[max_pi ...], each seed against the best policy for its own resets (which `ravi.run` reports,
and which is no smaller). By plays both are the same.

Lemma 4.3 with r_k, in the epochs before tau, and Lemma 4.4 give

    E[sum_{t <= T+, before tau} f_t] <= E[sum_{t <= T+} min(2 CB_t, H)] + H (log A / eta + eta kappa E K) + H^2.

From tau on f_t <= 1, which costs delta T. And f_t may be negative, -1 at least, where a gap is not: the steps after T,
gamma H on average, may have lowered the sum, and are taken out of it for gamma H.
"""

from ravi.theory import constants, generic
from ravi.theory.parts import Bound


def sharp(
    horizon: float, actions: int, steps: int, clipped_bonus: float, *, delta: float | None = None,
    eta: float | None = None,
) -> Bound:  # fmt: skip
    """`generic.sharp`, and gamma H more: pi_0 uniform, V_0 constant, `clipped_bonus` >= E[sum min(2 CB_t, H)]."""
    made = generic.sharp(horizon, actions, steps, clipped_bonus, delta=delta, eta=eta)
    more = constants.expected_padding(horizon)
    return made._replace(total=made.total + more, boundary=made.boundary + more)
