"""Double Q-learning with upper confidence bounds: two optimistic tables that learn from one another.

Paper: S. Liu, H. Su, "Regret bounds for discounted MDPs", arXiv 2002.05138, 2020.
Setting: discounted, tabular; regret along the trajectory, sum_t (V* - V^{pi_t})(x_t).
Trust: RECON: a reconstruction. Their abstract says that a modified double Q-learning with UCB has the regret below;
their pseudo-code was not at hand. The update, the coin, the action rule and the constants here are those of `ucb-q`,
made double.

Q_j = Q_hat_j = H and n_j = 0 for all pairs and j = 0, 1. At step t, a = argmax min(Q_hat_0, Q_hat_1)(x, .), y
follows, a fair coin shows j, and with k = n_j(x, a) after this step:

    Q_j(x, a)     = (1 - alpha_k) Q_j(x, a) + alpha_k (r(x, a) + b_k + gamma Q_hat_{1-j}(y, a')),
                    a' = argmax min(Q_hat_0, Q_hat_1)(y, .)
    Q_hat_j(x, a) = min(Q_hat_j(x, a), Q_j(x, a))

with alpha_k, b_k, H_q of `ucb-q`. As in double Q-learning, one criterion chooses a' and the other table values it.
The plainer max Q_hat_{1-j}(y, .) would not do: an action that one table has seen fail is not played again, and keeps
its H in the other table for ever, where that max finds it.

Constants: those of `ucb-q`, delta = 1/T. `scale` multiplies c_2.
Guarantee: regret O(sqrt(X A T) H^2.5) up to logarithms is theirs, for their version. Of this one: both Q_hat_j >= Q*
at all times with probability 1 - delta already at c_2 = gamma; the proof is that of `ucb-q`, since Q_hat_{1-j}(y, a')
>= max min(Q_hat_0, Q_hat_1)(y, .) >= V*(y); two tables, thus twice the failures.
Composition: no model x bonus on the target x one averaging update per step, tables crossed x whenever the policy
changes.
Cost: O(A) per step, and a second block of random numbers; O(A) per plan; plans as the policy changes.
Deviations: all that the reconstruction may have wrong. Targets take the true successor y_t where a reset follows. The
tables that a bonus may carry above H are `raw`; `Q` is the lower of the two Q_hat. The coin is number 4 of step t.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Learner, Problem
from ravi.learners.options import Confidence, takes
from ravi.learners.q.core import NONE, best, first_action, greedy_in_a_table
from ravi.learners.q.ucb_q import C2, bonus, constants, rate
from ravi.random import uniform
from ravi.runtime.ranges import Count, Number, PlaceOrNone, Policy, Value

COIN = 4  # its number in a step


class State(NamedTuple):
    raw: Number  # Q_0 and Q_1, not truncated   (n, 2, X, A)
    Q_hat: Value  # the least of each so far   (n, 2, X, A)
    Q: Value  # the lower of these two, in [0, H]   (n, X, A)
    visits: Count  # (n, 2, X, A)
    policy: Policy  # (n, X, A)
    stale: PlaceOrNone  # (n,)


@takes()
def liu_su(problem: Problem, T: int, o: Confidence, accuracy: float = 0.1) -> Learner:
    """Double Q-learning with UCB, reconstructed; `scale` multiplies the bonus."""
    scale, delta = o
    r, gamma, H, X, A = problem.rewards, problem.discount, problem.horizon, problem.states, problem.actions
    c = constants(problem, delta, scale, accuracy)

    def init(keys: Array) -> State:
        n = len(keys)
        raw, Q_hat, Q = np.full((n, 2, X, A), H), np.full((n, 2, X, A), H), np.full((n, X, A), H)
        return State(raw, Q_hat, Q, np.zeros((n, 2, X, A), np.int32), first_action(n, X, A), np.full(n, NONE, np.int32))

    def own(s: State, teams: int, key: Array) -> tuple[Any, ...]:
        return (s.policy, s.Q, s.stale), key, s.raw, s.Q_hat, s.visits, r, gamma, c.H_q, c.width, c.pairs

    settings: dict[str, Any] = {"scale": scale, "delta": delta, "accuracy": accuracy, "c2": C2 * scale} | c._asdict()
    return greedy_in_a_table("liu-su", init, _learn, own, settings, keyed=True)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    (_, Q, stale), key, raw, Q_hat, visits, r, gamma, H_q, width, pairs = own
    j = 1 if uniform(key[i], t, COIN) < 0.5 else 0
    visits[i, j, x, a] += 1
    k = visits[i, j, x, a]
    alpha = rate(k, H_q)
    target = r[x, a] + bonus(k, width, pairs) + gamma * Q_hat[i, 1 - j, y, best(Q[i, y])]
    raw[i, j, x, a] = (1.0 - alpha) * raw[i, j, x, a] + alpha * target
    Q_hat[i, j, x, a] = min(Q_hat[i, j, x, a], raw[i, j, x, a])
    Q[i, x, a] = min(Q[i, x, a], Q_hat[i, j, x, a])
    if best(Q[i, x]) == a:
        return False
    stale[i] = x
    return True
