"""Q-learning with epsilon-greedy exploration: the baseline that explores without a reason.

Paper: C. Watkins, P. Dayan, "Q-learning", Machine Learning 8, 1992; step sizes: E. Even-Dar, Y. Mansour, "Learning
rates for Q-learning", JMLR 5, 2003.
Setting: discounted, tabular; no guarantee of regret.
Trust: CHECKED: the update, step sizes, and the power 4/5 against the second paper, which finds it best for
the dependence on H where all pairs are updated at once (0.77 where they are visited one by one).

Q = 0 and n = 0 for all pairs. At step t, with k = n(x, a) before this step:

    pi_t          = (1 - eps_t) greedy(Q) + eps_t uniform,    eps_t = min(1, c / t^(1/3))
    Q(x, a)       = (1 - alpha_k) Q(x, a) + alpha_k (r(x, a) + gamma max Q(y, .)),    alpha_k = 1 / (k + 1)^(4/5)

Constants: c = 1, which `scale` multiplies. initial=optimistic starts with Q = H.
Guarantee: Q converges to Q* where every pair is played for ever. No bound on the regret: exploration does not know
where to go, and where reward is many steps away (RiverSwim) uniform actions need exponentially many steps to find it.
Composition: no model x uniform exploration x one averaging update per step x at resets, and whenever a greedy action
changes.
Cost: O(A) per step; O(X A) per plan after a reset, else O(A); plans: T / H, and as greedy actions change.
Deviations: eps_t is set at resets and kept until the next one, so that the policy is constant in an epoch. The policy
that is scored is the one played, with its exploration. Targets take the true successor y_t where a reset follows.
"""

from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import each, first, sync
from ravi.core import Array, Learner, Problem, Seedwise
from ravi.learners.q.core import NONE, best
from ravi.planning.sweeps import highest
from ravi.runtime.ranges import Action, Count, Next, Number, PlaceOrNone, Policy, Value
from ravi.runtime.seedwise import compiled_learner
from ravi.schedules import seed_never

POWER = 0.8  # of the step size


class State(NamedTuple):
    Q: Value  # (n, X, A)
    visits: Count  # (n, X, A)
    greedy: Action  # the greedy action of the policy   (n, X)
    epsilon: Number  # of the policy   (n,)
    since: Next  # the first step after the last reset   (n,)
    policy: Policy  # (n, X, A)
    stale: PlaceOrNone  # (n,)


def q_learning(problem: Problem, steps: int, *, scale: float = 1.0, initial: str = "zero") -> Learner:
    """Epsilon-greedy Q-learning; `scale` multiplies epsilon."""
    validation.steps(steps)
    scale = validation.nonnegative(scale, "scale")
    validation.one_of(initial, ("zero", "optimistic"), "initial")
    r, gamma, X, A = problem.rewards, problem.discount, problem.states, problem.actions
    start = 0.0 if initial == "zero" else problem.horizon

    def init(keys: Array) -> State:
        n = len(keys)
        greedy, epsilon, since = np.zeros((n, X), np.int32), np.full(n, -1.0), np.ones(n, np.int64)
        policy, stale = np.full((n, X, A), 1 / A), np.full(n, NONE, np.int32)
        return State(np.full((n, X, A), start), np.zeros((n, X, A), np.int32), greedy, epsilon, since, policy, stale)

    def own(s: State, teams: int) -> tuple[Any, ...]:
        return *s, scale, r, gamma

    form = Seedwise(_plan, _learn, own, reset=False, changes=True)
    return compiled_learner("q-learning", init, form, {"scale": scale, "initial": initial})


@compiled
def _plan(own, i, t):  # type: ignore[no-untyped-def]
    """(1 - eps) greedy + eps uniform: all rows where eps is new, else the stale one; a team's."""
    Q, _, greedy, epsilon, since, policy, stale, c, _, _ = own
    _, X, A = Q.shape
    x, last = stale[i], epsilon[i]
    eps = min(1.0, c / since[i] ** (1.0 / 3.0))
    sync()  # all have read what is written now
    if first():
        if x >= 0:
            greedy[i, x] = best(Q[i, x])
            stale[i] = NONE
        epsilon[i] = eps
    sync()
    begin, rows = (0, X) if eps != last else (x, 1) if x >= 0 else (0, 0)
    for z in each(rows):
        row = policy[i, begin + z]
        for a in range(A):
            row[a] = eps / A
        row[greedy[i, begin + z]] += 1.0 - eps
    return seed_never(own, i, t)


@compiled
def _learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    Q, visits, greedy, _, since, _, stale, _, r, gamma = own
    alpha = (visits[i, x, a] + 1.0) ** -POWER
    visits[i, x, a] += 1
    Q[i, x, a] = (1.0 - alpha) * Q[i, x, a] + alpha * (r[x, a] + gamma * highest(Q[i, y]))
    if best(Q[i, x]) != greedy[i, x]:
        stale[i] = x
    if reset:
        since[i] = t + 1
    return reset or stale[i] != NONE
