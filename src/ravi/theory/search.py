"""The steps that a bound asks for (Corollary 5.7), and the best-policy selection of the Discussion.

    smallest_steps(lambda T: mixture.sharp(10, 3, 2, T, bound=1.8), 0.1)
    first_useful(lambda T: tabular.corrected(5, 2, 2, T))

`bound` is any function of T. Its ratio to T must fall in the end, and may do anything before: with delta = 1/T, beta
starts at log T = 0 and rises fast, and a large lambda makes log(1 + c T) nearly linear up to T = 1/c. The answer is the
smallest T from which on the claim stays true. Powers of two are tried from the top down; above the first that fails,
bisection finds the answer; if none fails down to TRIED, every T below is tried. So the answer is exact if beyond TRIED
the claim changes at most once between neighbouring powers of two: for a ratio that falls from there on, always.

Selection of a good policy with high probability. The paper omits the details; these are ours. After a run of T steps,
draw J times I_j uniform on {1, ..., T}. Given the run, gap(pi_{I_j}) has mean regret / T and exceeds twice that with
probability at most 1/2 (Markov), so that some candidate has gap <= 2 regret / T with probability 1 - 2^{-J} >= 1 -
delta/2. Play each for W epochs and average the reward of the last pair before each reset, whose law is mu^pi: all
averages are within eps/2 of their returns with probability 1 - delta/2 (Hoeffding). The candidate with the largest
average has

    gap <= 2 regret / T + eps     with probability 1 - delta.
"""

from collections.abc import Callable
from math import ceil, log, log2

from ravi.theory import inputs
from ravi.theory.generic import Bound

TRIED = 1024  # up to here every T is tried


def smallest_steps(bound: Callable[[int], Bound | float], eps: float, *, limit: int = inputs.MOST) -> int:
    """Corollary 5.7: the smallest T with bound(T) / T <= eps, then and for every larger T up to `limit`.

    After so many steps the policy of a uniform time has an expected gap of at most eps. (The corollary draws a uniform
    epoch, which is another expectation, as the number of epochs is random.)
    """
    eps, limit = inputs.positive(eps, "eps"), inputs.whole(limit, "limit")
    return _smallest(lambda T: _value(bound, T) / T <= eps, limit, f"bound(T) / T <= {eps:g}")


def first_useful(bound: Callable[[int], Bound | float], *, limit: int = inputs.MOST) -> int:
    """The smallest T with bound(T) < T, then and for every larger T up to `limit`: no regret exceeds T anyway."""
    return _smallest(lambda T: _value(bound, T) < T, inputs.whole(limit, "limit"), "bound(T) < T")


def _smallest(holds: Callable[[int], bool], limit: int, claim: str) -> int:
    if not holds(limit):
        inputs.refuse(f"{claim} does not hold at the limit, T = {limit}")
    high, low = limit, 1 << ((limit - 1).bit_length() - 1) if limit > 1 else 0  # low: the last power of two below high
    while low >= TRIED and holds(low):
        high, low = low, low // 2
    if low < TRIED:
        while high > 1 and holds(high - 1):
            high -= 1
        return high
    while high - low > 1:  # holds at high, fails at low
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _value(bound: Callable[[int], Bound | float], T: int) -> float:
    return inputs.nonnegative(float(bound(T)), f"bound({T})")


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
