"""R-MAX, MBIE, MBIE-EB and the certainty-equivalent learner, by the equations of `ravi.learners.pac.core`."""

from math import ceil, inf, log, log1p, sqrt

from ravi import validation
from ravi.core import Learner, Problem
from ravi.learners.options import takes
from ravi.learners.pac.core import UNLIMITED, Options, optimistic


@takes()
def r_max(problem: Problem, T: int, o: Options) -> Learner:
    """R-MAX: what was not played m times is worth H.

    Paper: R. I. Brafman, M. Tennenholtz, "R-MAX: a general polynomial time algorithm for near-optimal reinforcement
    learning", JMLR 3, 2002; in the discounted form of A. L. Strehl, L. Li, M. L. Littman, "Reinforcement learning in
    finite MDPs: PAC analysis", JMLR 10, 2009.
    Setting: discounted, tabular, PAC.
    Trust: CHECKED for the algorithm, the order of m and the bound, against the second paper (Algorithm 1, Theorem 11);
    DERIVED for the constant of m, which it leaves open.

    A pair is known once it was played m times, and is then counted no more:

        Q(x, a) = H                                      where n < max(m, 1)
        Q(x, a) = r(x, a) + gamma <p_hat, V>             elsewhere,      V(x) = max_a Q(x, a)
        a_t     = argmax_a Q(x_t, a)                     the first of the best

    Constants: m = ceil(scale^2 2 (X ln 2 + ln(X A / delta)) H^4 / eps^2) with eps = `accuracy` H, so that `accuracy` is
    a target for the gap (0.1 unless given), and delta = 1/T. By Weissman et al. (2003), after m visits ||p_hat - p||_1
    <= eps / H^2 for every pair with probability 1 - delta; then every policy's value is within eps / 2 of its value
    under p_hat. An explicit `m` is taken as it is. With m = 0 nothing is unknown but what was never played, and nothing
    is frozen: that is the certainty-equivalent learner, bit for bit.
    Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta. m exceeds T in most
    runs; then R-MAX plays the first action of every state for ever.
    Composition: counts from 0, frozen at m x H where unknown x value iteration x when a pair becomes known.
    Cost: O(1) per step; a plan costs A B per backup, for what the new pair has changed; at most X A plans (m > 0).
    Deviations: rewards are known. V is accurate to `tolerance` (`ravi.learners.pac.core`).

    R-MAX with m visits until a pair is known; `scale` multiplies the radius, and so m by its square.
    """
    scale, delta = o.scale, o.delta
    X, A, H = problem.states, problem.actions, problem.horizon
    eps = o.accuracy * H
    theory = lambda: scale**2 * 2 * (X * log(2) + log(X * A / delta)) * H**4 / eps**2  # noqa: E731
    if o.m is None:
        m = ceil(validation.finite_result(theory, "m", scale=scale, accuracy=o.accuracy))
    else:
        m = validation.whole(o.m, "m", 0)
    settings = {"scale": scale, "delta": delta, "accuracy": o.accuracy, "m": m}
    return optimistic("r-max", problem, o, settings, least=max(m, 1), most=m or UNLIMITED)


@takes(without=("accuracy",))
def mbie(problem: Problem, T: int, o: Options) -> Learner:
    """MBIE: model-based interval estimation, discounted optimism over L1 balls.

    Paper: A. L. Strehl, M. L. Littman, "An analysis of model-based interval estimation for Markov decision processes",
    JCSS 74, 2008.
    Setting: discounted, tabular, PAC.
    Trust: CHECKED: the radius against A. L. Strehl, L. Li, M. L. Littman, JMLR 10, 2009 (Lemma 14), which restates it,
    the inner maximum against Jaksch et al. 2010 (Figure 2), who take it from here, delta_T and the recursion against
    public notes and code. The paper itself was not at hand. The coverage of the radius is tested.

    With n the visits of (x, a) before step t, of which the first m count:

        d(x, a) = sqrt(2 (ln(2^X - 2) + ln(1 / delta_T)) / n),                 delta_T = delta / (2 X A m)
        Q(x, a) = H                                                            where n = 0
        Q(x, a) = r(x, a) + gamma max {<p, V> : ||p - p_hat(. | x, a)||_1 <= d}     elsewhere,   V(x) = max_a Q(x, a)
        a_t     = argmax_a Q(x_t, a)                                           the first of the best

    Constants: the paper's, with delta = 1/T; `scale` multiplies d. The paper proves its bound for some m of order (X +
    ln(X A m / delta)) H^4 / eps^2, after which more samples are not needed; m only bounds the sample sizes that the
    balls hold for. m = T does so for any eps, and freezes nothing; it is the default. An explicit `m` is taken as it
    is. Rewards are known: the delta / 2 that the paper spends on them is kept back, so the balls hold with probability
    1 - delta / 2.
    Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta.
    Composition: counts from 0, frozen at m x L1 ball x the fixed point after every step x epochs end when the policy
    changes.
    Cost: O(1) per step, and B^2 at most per backup of what the step has changed by more than the tolerance allows: all
    X A pairs where max V has (`ravi.learners.pac.core`).
    Deviations: rewards are known, so the paper's reward radius is 0. V is accurate to `tolerance`. With one outcome d =
    0.

    MBIE with its published radii; `scale` multiplies them.
    """
    X, A, m = problem.states, problem.actions, T if o.m is None else validation.whole(o.m, "m")
    subsets = log_subsets(X)
    radius = o.scale * sqrt(max(0.0, 2 * (subsets - log(o.delta / (2 * X * A * m)))))
    settings = {"scale": o.scale, "delta": o.delta, "m": m, "radius": radius}
    return optimistic("mbie", problem, o, settings, radius=radius, most=m)


def log_subsets(X: int) -> float:
    """ln(2^X - 2), without 2^X."""
    return X * log(2) + log1p(-(2.0 ** (1 - X))) if X > 1 else -inf


@takes(without=("accuracy",))
def mbie_eb(problem: Problem, T: int, o: Options) -> Learner:
    """MBIE-EB: model-based interval estimation with an exploration bonus beta / sqrt(n).

    Paper: A. L. Strehl, M. L. Littman, "An analysis of model-based interval estimation for Markov decision processes",
    JCSS 74, 2008.
    Setting: discounted, tabular, PAC.
    Trust: CHECKED: recursion, start and beta against public notes of a course that writes out the algorithm. The paper
    itself was not at hand. Compared with an independent transcription on whole runs.

    With n the visits of (x, a) before step t, of which the first m count:

        Q(x, a) = H                                                              where n = 0
        Q(x, a) = min{H, r(x, a) + gamma <p_hat(. | x, a), V> + beta / sqrt(n)}  elsewhere,      V(x) = max_a Q(x, a)
        a_t     = argmax_a Q(x_t, a)                                             the first of the best

    Constants: beta = H sqrt(ln(2 X A m / delta) / 2), by Hoeffding for r + gamma V*(y) in [0, H] at every n <= m, with
    delta = 1/T; `scale` multiplies it. As for MBIE, the paper proves its bound for some m of order (X + ln(X A m /
    delta)) H^4 / eps^2; m = T holds for any eps, freezes nothing, and is the default. An explicit `m` is taken as it
    is.
    Guarantee: all but O~(X^2 A H^6 / eps^3) steps are eps-optimal, with probability 1 - delta. V >= V* at every step
    with probability 1 - delta (up to the tolerance).
    Composition: counts from 0, frozen at m x beta / sqrt(n) x the fixed point after every step x epochs end when the
    policy changes.
    Cost: O(1) per step, and A B per backup of what the step has changed by more than the tolerance allows
    (`ravi.learners.pac.core`); at most one plan per step.
    Deviations: rewards are known. Q is cut at H, which the paper leaves out: V* <= H, so V stays optimistic. V is
    accurate to `tolerance`. With scale = 0 this is the certainty-equivalent learner, bit for bit, where m exceeds the
    visits.

    MBIE-EB with its published beta; `scale` multiplies it.
    """
    X, A, H, m = problem.states, problem.actions, problem.horizon, T if o.m is None else validation.whole(o.m, "m")
    beta = o.scale * H * sqrt(log(2 * X * A * m / o.delta) / 2)
    settings = {"scale": o.scale, "delta": o.delta, "m": m, "beta": beta}
    return optimistic("mbie-eb", problem, o, settings, beta=beta, most=m)


@takes("tolerance")
def certainty_equivalent(problem: Problem, T: int, o: Options) -> Learner:
    """The certainty-equivalent learner: the optimal policy of p_hat, after every step; what was never played is
    worth H.

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

    The optimal policy of p_hat, with V to within `tolerance`.
    """
    return optimistic("certainty-equivalent", problem, o, {})
