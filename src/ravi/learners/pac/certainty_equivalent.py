"""The certainty-equivalent learner: the optimal policy of p_hat, after every step; what was never played is worth H.

Paper: none; the baseline of adaptive control (P. R. Kumar and P. Varaiya, "Stochastic systems", 1986), started
optimistically.
Setting: discounted, tabular.
Trust: DERIVED: the definition is the algorithm; compared with an independent transcription on whole runs.

With n the visits of (x, a) before step t and p_hat = N' / n:

    Q(x, a) = H                                      where n = 0
    Q(x, a) = min{H, r(x, a) + gamma <p_hat, V>}     elsewhere,      V(x) = max_a Q(x, a)
    a_t     = argmax_a Q(x_t, a)                     the first of the best

Constants: none. `tolerance` is the accuracy of V, at every state, after every step.
Guarantee: none: a pair whose first samples are unlucky may never be played again.
Composition: counts from 0 x H where n = 0 x the fixed point after every step x epochs end when the policy changes.
Cost: O(1) per step, and A B per backup of what the step has changed by more than the tolerance allows
(`ravi.learners.pac.core`); at most one plan per step.
Deviations: none.
"""

from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.pac.core import Options, optimistic


@takes("tolerance")
def certainty_equivalent(problem: Problem, T: int, o: Options) -> Learner:
    """The optimal policy of p_hat, with V to within `tolerance`."""
    return optimistic("certainty-equivalent", problem, o, {})
