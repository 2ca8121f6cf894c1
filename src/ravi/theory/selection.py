"""What does it cost to pick a good policy with high probability? The best-policy selection of the Discussion.

The paper omits the details; these are ours. After a run of T steps, draw J times I_j uniform on {1, ..., T}. Given the
run, gap(pi_{I_j}) has mean regret / T and exceeds twice that with probability at most 1/2 (Markov), so that some
candidate has gap <= 2 regret / T with probability 1 - 2^{-J} >= 1 - delta/2. Play each for W epochs and average the
reward of the last pair before each reset, whose law is mu^pi: all averages are within eps/2 of their returns with
probability 1 - delta/2 (Hoeffding). The candidate with the largest average has

    gap <= 2 regret / T + eps     with probability 1 - delta.
"""

from math import ceil, log, log2

from ravi.theory import inputs


def candidates(delta: float) -> int:
    """J = ceil(log2(2 / delta))."""
    return ceil(log2(2 / inputs.delta(delta, 1)))


def rollouts(eps: float, delta: float) -> int:
    """W = ceil((2 / eps^2) log(4 J / delta)) for each candidate."""
    return rollouts_of(candidates(delta), eps, delta / 2)


def rollouts_of(policies: int, eps: float, delta: float) -> int:
    """The least W with 2 J exp(-W eps^2 / 2) <= delta: with probability 1 - delta all J averages are within eps/2."""
    J, eps, delta = inputs.whole(policies, "policies"), inputs.positive(eps, "eps"), inputs.delta(delta, 1)
    return ceil(2 / eps**2 * log(2 * J / delta))


def expected_steps(horizon: float, eps: float, delta: float) -> float:
    """J W H steps on average, beyond the T of the run."""
    return inputs.horizon(horizon) * candidates(delta) * rollouts(eps, delta)
