"""The bonus of unknown rewards: Hoeffding's width, for all pairs and numbers of visits at once.

    b(x, a) = sqrt(ln(2 X A T / delta) / (2 n(x, a))),  at most 1;  1 where n = 0

The mean r_hat of n rewards in [0, 1] is off by more than b with probability at most delta / (X A T), so that
|r - r_hat| <= b for all pairs and all n <= T with probability 1 - delta. Then

    r <= min{r_hat + b, 1} <= r + 2 b,

where n = 0 too: 1 <= r + 2. Since r is in [0, 1], the event says no less than lo <= r <= hi,

    lo = max{r_hat - b, 0},   hi = min{r_hat + b, 1},

an interval of half-width h = (hi - lo) / 2 <= b; where n = 0 it is [0, 1], which holds r on any event.
"""

import numpy as np

from ravi.core import Array
from ravi.theory.constants import reward_spread as reward_spread


def reward_bonus(plays: Array, spread: float) -> Array:
    """b = spread / sqrt(n), at most 1; n may be a weight; 1 where nothing was seen, whatever the spread."""
    width = np.divide(spread, np.sqrt(plays), out=np.ones(plays.shape), where=plays > 0)
    return np.minimum(width, 1.0)


def optimistic_rewards(plays: Array, total: Array, spread: float) -> Array:
    """hi = min{r_hat + b, 1}, r_hat = total / n."""
    mean = np.divide(total, plays, out=np.zeros(total.shape), where=plays > 0)
    return np.minimum(mean + reward_bonus(plays, spread), 1.0)


def middle_rewards(plays: Array, total: Array, spread: float) -> Array:
    """(lo + hi) / 2: off by at most h on the event; 1/2 where nothing was seen."""
    mean = np.divide(total, plays, out=np.zeros(total.shape), where=plays > 0)
    low = np.maximum(mean - reward_bonus(plays, spread), 0.0)
    return (low + optimistic_rewards(plays, total, spread)) / 2
