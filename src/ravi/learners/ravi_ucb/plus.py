"""RAVI-UCB+: RAVI-UCB with every improvement that keeps its guarantee, each a part of its own.

Paper: A. Moulin, G. Neu, "Optimistic Planning by Regularized Dynamic Programming", ICML 2023: Algorithm 1, and the
Discussion's several regularised steps per policy update.
Trust: DERIVED: the improvements are this library's, from the paper's own proof; each is argued below, and `ravi verify`
measures the inequalities on runs. With all parts off and M = 1 it is Algorithm 1, bit for bit, with the sharper beta
and eta of `theory.constants`.

In epoch k, with the data D at its start, M regularised backups go on with the same sequence of policies,

    Q_j = Pi_H[r + CB(D, V_{j-1}) + gamma P_hat(D) V_{j-1}]
    V_j(x) = (1/eta) log sum_a pi_{j-1}(a|x) exp(eta Q_j(x, a)),    pi_j = pi_{j-1} exp(eta (Q_j - V_j))

and one of them, drawn uniformly before, is played: pi_m, whose V_m goes with the samples into ADD.

    inner      M backups an epoch. Lemma 4.3 holds for all M K of them, if bonuses are valid for every V at once (those
               of Lemmas 5.1 and 5.4 are); a uniform one has the mean of their gaps. The optimisation term loses
               sqrt(M).
    fresh      Q is made with the data at hand, not with those of the epoch before. A bonus at more data is no larger
               than its envelope at fewer (beta / sqrt(N) falls; of a determinant, take the closed form of beta), which
               is known when the epoch starts: the sum of bonuses has the bound that it had.
    discount   gamma CB for CB: what must be covered is gamma (P - P_hat) V.
    eta        `theory.constants.eta_balanced`: kappa in place of H^3/2, and steps as large as the bonuses allow.
    centre     P V = c + P (V - c): `ravi.estimators.centred`. A constant V is backed up exactly.
    span       the bonus scales with sp(V_j), not with H.
    clip       P_hat V is cut to [min V, max V], and CB to sp(V).
    radius     mixture: the determinant at hand in place of its bound. (The noise is H/2, or 1, with or without.)
    weights    mixture: of samples by the span of V_m, or by UCLK+'s bound on the variance of V_m(y_t)
               (`ravi.estimators.variance_weighted`). Its published radii are so large that policies hardly move: on
               riverswim/mixture/6, gamma .97, M = 10, T = 10^4, regret 5,390 where weights by the span have 54.

Where Q is fresh, the sum of Lemma 4.3 begins with Q_1 = Pi_H[r + CB + gamma P_hat V_0] in place of E V_0. With V_0 = 0
and no data, CB and P_hat V_0 are the same for all pairs, so that <mu^{pi_1}, E V_1> - <mu*, Q_1> <= 1 joins its
boundary: the regret bound has H / M more. And the bonus of the last of the M policies is taken when the next epoch
starts: what is summed is its envelope at the data before. Where the sum ends, at T or before the first epoch with
invalid data, the backup at the data before takes its place: no policy comes of it, and whether it is valid is known
when the epoch starts.
"""

from collections.abc import Iterator
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import first, over_seeds
from ravi.core import Array, Bonus, Data, Estimator, Learner, Path, Problem, TheoryConstants
from ravi.estimators.centred import standard
from ravi.estimators.counts import counts
from ravi.estimators.ridge import ridge
from ravi.estimators.variance_weighted import Constants, of_variances, radii, variance_weighted
from ravi.learners.options import PICKS, Options, record, takes
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.learners.ravi_ucb.inner import Counted, Work
from ravi.learners.ravi_ucb.inner_counts import OfCounts
from ravi.optimism.bonuses import (
    confidence_term,
    discounted,
    log_term,
    multiple_of_width,
    of_determinant,
    of_span,
    within_span,
)
from ravi.random import PICK, uniform
from ravi.runtime.ranges import Fixed, LogPolicy, NextPlay, Policy, Value
from ravi.runtime.seedwise import of_rows, over_all_seeds
from ravi.runtime.walk import JOINT
from ravi.theory import constants, mixture
from ravi.theory import tabular as of_tables


class State(NamedTuple):
    data: Data  # D
    V: Value  # V_m, of the policy that is played   (n, X)
    policy: Policy  # pi_m                          (n, X, A)
    V_last: Value  # V_j of the last backup         (n, X)
    Q: Value  # Q of the next, where it is not fresh   (n, X, A)
    log_policy: LogPolicy  # log pi_j               (n, X, A)
    last_policy: Policy  # pi_j                     (n, X, A)
    key: Fixed  #                                   (n,)
    time: NextPlay  # t of the next step            (n,)


def generic(
    problem: Problem, estimator: Estimator, bonus: Bonus, eta: float | Array, *, inner: int = 1, fresh: bool = True,
    pick: str = "uniform", initial_value: float | Array = 0.0, initial_policy: Array | None = None,
    name: str = "ravi-ucb+/generic", stated: TheoryConstants | None = None, settings: dict[str, Any] | None = None,
    numbers: Any = None,
) -> Learner:  # fmt: skip
    """Algorithm 1 with `inner` backups an epoch. pick: which of their policies is played; "last" has no guarantee.
    eta and numbers: as in RAVI-UCB."""
    M = validation.whole(inner, "inner")
    own = {"inner": M, "fresh": fresh, "pick": validation.one_of(pick, PICKS, "pick")}
    base = ravi_ucb.generic(
        problem, estimator, bonus, eta, initial_value=initial_value, initial_policy=initial_policy, name=name,
        stated=stated, settings=own | record(stated, settings),
    )  # fmt: skip
    assert base.parts is not None
    one = ravi_ucb.plan_of(problem, estimator, bonus, eta, fresh=fresh)

    def init(keys: Array) -> State:
        D, V, Q, log_policy, policy = base.init(keys)
        last, keys = policy.copy(), np.array(keys, np.uint64)
        return State(D, V, policy, V.copy(), Q, log_policy, last, keys, np.ones(len(keys), np.int64))

    def picked(s: State) -> Array:
        """m - 1 of every seed, for this epoch."""
        if M == 1 or pick == "last":
            return 0 * s.time + M - 1
        chosen = 0 * s.time
        over_seeds(_pick, s.key, s.key, s.time, M, chosen)
        return chosen

    def go_on(s: State, count: int, chosen: Array) -> State:
        """`count` backups more; seeds whose policy is not among them keep the one that they play."""
        V, policy, at = s.V.copy(), s.policy, ravi_ucb.State(s.data, s.V_last, s.Q, s.log_policy, s.last_policy)
        for j in range(count):
            at = one(at)
            now = chosen == j
            if not isinstance(now, np.ndarray) or now.any():  # a GPU is not asked
                np.copyto(V, at.V, where=now[:, None])
                np.copyto(policy, at.policy, where=now[:, None, None])
        return State(s.data, V, policy, *at[1:], s.key, s.time)

    def plan(s: State) -> State:
        return go_on(s, M, picked(s))

    def one_by_one(s: State) -> Iterator[State]:
        """The M backups of an epoch, one after the other, for observers. `s` is not written to."""
        chosen = picked(s)
        for j in range(M):
            s = go_on(
                s._replace(policy=s.policy.copy(), log_policy=s.log_policy.copy(), last_policy=s.last_policy.copy()),
                1,
                chosen - j,
            )
            yield s

    def add(s: State, path: Path) -> State:
        s.time[:] += path.length
        return base.add(s, path)

    parts = base.parts._replace(backups=one_by_one, inner=M, fresh=fresh, pick=pick)
    learner = base._replace(init=init, plan=plan, add=add, parts=parts)
    if numbers is None:
        return learner
    return over_all_seeds(learner, Counted(problem, numbers, np.atleast_1d(eta), fresh, M, pick, work).seedwise)


@takes(
    "inner", "fresh", "centre", "span", "clip", "gamma", "balance", "pick", "scale", "step_scale", "eta", "delta"
)  # fmt: skip
def tabular(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-UCB+ on counts. `inner` is M, by default H rounded up; `scale` multiplies the bonus, `step_scale` eta; the
    other parts are on or off.

    Setting: discounted with resets, tabular.
    Guarantee: that of RAVI-UCB, with the bonus of the L1 event and the step size of
    `theory.constants.eta_balanced`: expected regret O(X H sqrt(A T) + H^(7/4) sqrt(T ln A / M)) up to logarithms.
    Composition: counts from 1, centred x a bonus by the span of V x M mirror steps and backups x at resets.
    Cost: O(A) per step; M X A B per plan, B the successors stored per pair; T / H plans.
    """
    H, X, A, M = problem.horizon, problem.states, problem.actions, _inner(o, problem)
    on = _parts(o, "fresh", "centre", "span", "clip", "gamma", "balance")
    counted = counts(problem)  # whose ADD needs no V
    estimator = standard(counted, centre=on["centre"], span=False, clip=on["clip"])._replace(add=counted.add)
    times, delta = problem.discount if on["gamma"] else 1.0, o.delta
    beta = constants.beta_tabular_l1(H, X, A, T, delta)  # CB is at most beta / sqrt(N), times gamma
    S = of_tables.clipped_bonus_sum(H, X, A, T, times * beta)

    def build(step: float | Array, far: float | Array, scale: float | Array) -> Learner:
        if on["centre"]:
            bonus, span = of_span(far, scale=scale, span=None if on["span"] else H), 0.0 if on["span"] else H
        else:
            bonus, span = multiple_of_width(scale * far, estimator), 0.0
        numbers = OfCounts(np.atleast_1d(far), np.atleast_1d(scale), span, on["centre"], on["clip"], times)
        return generic(
            problem, estimator, _finished(bonus, problem, on), step, inner=M, fresh=on["fresh"], pick=o.pick,
            name="ravi-ucb+", stated=TheoryConstants("tabular", None, scale, o.step_scale, delta, on=_named(on)),
            numbers=numbers,
        )  # fmt: skip

    far = log_term(X, A, T, delta) if on["centre"] else beta
    return of_rows(build, (_eta(o, problem, T, M, S if on["balance"] else 0.0), far, o.scale), problem, T)


@compiled
def _pick(low, high, key, time, M, chosen):  # type: ignore[no-untyped-def]
    """m - 1 of seeds low, ..., high - 1: uniform, number PICK of the next step."""
    for i in range(low, high):
        if first():
            chosen[i] = int(M * uniform(key[i], time[i], PICK))


def work(s: State) -> Work:
    """What a plan of each seed works on."""
    return Work(s.data, s.V_last, s.Q, s.log_policy, s.last_policy, s.V, s.policy, s.key, s.time)


@takes(
    "inner", "fresh", "centre", "span", "clip", "gamma", "radius", "balance", "weights", "pick", "scale", "step_scale",
    "eta", "delta", "regularization",
)  # fmt: skip
def linear_mixture(problem: Problem, T: int, o: Options) -> Learner:
    """RAVI-UCB+ on a regression. `inner` is M, by default H rounded up; `scale` multiplies the bonus, `step_scale` eta;
    `regularization` is lambda; the other parts are on or off. `weights` may be "variance", in place of centre, span and
    radius.

    Setting: discounted with resets, linear mixture of dimension d.
    Guarantee: expected regret O(sqrt((d^2 H^3 + B^2 d H^3 + H^(7/2) ln A / M) T)) up to logarithms, B >= ||theta||:
    that of RAVI-UCB (Theorem 5.6) where B is of order sqrt(d). Samples in parts of their span make lambda one in parts
    of it: with lambda = 1/H^2, or span=off, it is B^2 d H, as it is there. With weights=variance too, with larger
    constants: that the variances of V_k(y_t) add up to less than H^2 T is not proven here.
    Composition: ridge regression on values in parts of their span x the determinant's radius x M mirror steps and
    backups x at resets.
    Cost: O(d^2) per step; M X A (B d + d^2) per plan; T / H plans.
    """
    H, d, M, lam, delta = problem.horizon, problem.dimension, _inner(o, problem), o.regularization, o.delta
    on = _parts(o, "fresh", "centre", "span", "clip", "gamma", "radius", "balance")
    base = ridge(problem, lam)
    assert problem.parameter_bound is not None
    assert problem.feature_bound is not None
    if o.weights == "variance":
        return _variance_weighted(problem, T, o, M)
    estimator = standard(base, centre=on["centre"], span=on["span"], clip=on["clip"])
    noise = 1.0 if on["span"] else H / 2
    B = problem.parameter_bound
    size = 2 * problem.feature_bound if on["span"] else problem.feature_bound * H  # ||phi|| at most
    beta = noise * sqrt(d * log(1 + T * size**2 / (lam * d)) + 2 * log(1 / delta)) + sqrt(lam) * B  # of a determinant
    unit = H / 2 if on["span"] else 1.0  # sigma at most
    times = problem.discount if on["gamma"] else 1.0
    S = mixture.clipped_bonus_sum(H, d, T, times * unit * beta, bound=size / H, regularization=lam)

    def build(step: float | Array, far: float | Array, scale: float | Array = 1.0) -> Learner:
        if on["radius"]:
            bonus = of_determinant(estimator, d, far, noise=noise, regularization=lam, bound=B, scale=scale)
        else:
            bonus = multiple_of_width(far, estimator)
        made = generic(
            problem, estimator, _finished(bonus, problem, on), step, inner=M, fresh=on["fresh"], pick=o.pick,
            name="ravi-ucb+/mixture",
            stated=TheoryConstants("mixture", None, o.scale, o.step_scale, delta, lam, on=_named(on)),
        )  # fmt: skip
        return made._replace(seedwise=JOINT)

    numbers = (confidence_term(delta), o.scale) if on["radius"] else (o.scale * beta,)
    return of_rows(build, (_eta(o, problem, T, M, S if on["balance"] else 0.0), *numbers), problem, T)


def _variance_weighted(problem: Problem, T: int, o: Options, M: int) -> Learner:
    """sigma^2 is at most R^2 + 2 R^2, and at least R^2 / d. Three events must hold: hence delta / 3."""
    H, d, lam, delta = problem.horizon, problem.dimension, o.regularization, o.delta
    assert problem.parameter_bound is not None
    assert problem.feature_bound is not None
    numbers = Constants(H, d, lam, problem.parameter_bound, problem.feature_bound, delta / 3, o.scale)
    on = o.on("fresh", "clip", "gamma", "balance") | {"variance": True}
    estimator = variance_weighted(problem, numbers, clip=on["clip"])
    beta = (problem.discount if on["gamma"] else 1.0) * sqrt(3) * H * float(radii(np.array([T]), numbers)[0])
    S = mixture.clipped_bonus_sum(H, d, T, beta, bound=sqrt(d) * numbers.B_phi / H, regularization=lam)
    made = generic(
        problem, estimator, _finished(of_variances(estimator, numbers), problem, on),
        _eta(o, problem, T, M, S if on["balance"] else 0.0), inner=M, fresh=on["fresh"], pick=o.pick,
        name="ravi-ucb+/mixture",
        stated=TheoryConstants("variance", None, o.scale, o.step_scale, delta, lam, on=_named(on)),
    )  # fmt: skip
    return made._replace(seedwise=JOINT)


def _parts(o: Options, *names: str) -> dict[str, bool]:
    """Which of the parts of this learner are on."""
    if (o.span, o.centre) == ("on", "off"):
        raise validation.InputError("span=on needs centre=on: only V less its middle is within its span")
    return o.on(*names)


def _inner(o: Options, problem: Problem) -> int:
    """M, by default H rounded up."""
    return constants.inner_steps(problem.horizon) if o.inner is None else o.inner


def _named(on: dict[str, bool]) -> tuple[str, ...]:
    return tuple(name for name, is_on in on.items() if is_on)


def _finished(bonus: Bonus, problem: Problem, on: dict[str, bool]) -> Bonus:
    """With the parts that apply to any bonus."""
    if on["clip"]:
        bonus = within_span(bonus)
    return discounted(bonus, problem.discount) if on["gamma"] else bonus


def _eta(o: Options, problem: Problem, T: int, M: int, S: float) -> float:
    return o.step(constants.eta_balanced(problem.horizon, problem.actions, T, S, M))
