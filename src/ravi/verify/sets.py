"""What do the optimistic plans of RAVI-KL claim? The lemmas of docs/explanation/kl.md, on every plan (greedy, slack).

An observer keeps its own counts, makes the radii by their formulas, finds the fixed points by plain value iteration,
and holds what was played against them. Phases are the epochs of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, rel_entr

from ravi.core import Array, Measure, Path
from ravi.estimators.counts import Counts
from ravi.optimism.relative_entropy import highest_rewards, largest
from ravi.theory import kl as theory
from ravi.verify.books import Scene, Worst
from ravi.verify.claim import Claim, Registry
from ravi.verify.distance import worst
from ravi.verify.driver import Observer
from ravi.verify.evidence import Evidence
from ravi.verify.expected import by_dual
from ravi.verify.ladder import Ladder

CLOSE = 1e-11  # of H: value iteration ends at moves of this size

registry = Registry()
claim = registry.claim


class Seen(NamedTuple):
    """A plan of every seed, when it is made; seeds first."""

    scene: Scene
    data: Counts  # of the learner
    moves: Array  # of the observer, on the stored successors           (n, X, A, B)
    time: Array  # t                                                    (n,)
    rho: Array  # radii by their formula                                (n, X, A)
    rewards: Array  # r, or their upper bounds                          (n, X, A)
    earned: Array  # plays whose rewards were counted                   (n, X, A)
    policy: Array  # that is played                                     (n, X, A)
    V: Array  # of the fixed point of L_C                               (n, X)
    own: Array  # V_k, of the played policy with its best kernels       (n, X)
    U: Array  # (1 - gamma) <nu_0, V>                                   (n,)
    U_own: Array  #                                                     (n,)
    gap: Array  # of the played policy                                  (n,)
    valid: Array  # max_C <q, V*> >= P V* at (x, pi*(x)), for all x     (n,)
    near: Array  # n KL(p_hat || P) <= ln(X A T) + C_B(n), all pairs    (n,)
    g: Array  # V_k - r - gamma P V_k at the played action              (n, X)
    variance: Array  # of V_k under P there                             (n, X)
    plays: Array  # n there                                             (n, X)
    eps: Array  # slack                                                 (n,)
    tol: Array  # gamma tol_t: what the plan's tolerance costs          (n,)
    more: Any = ()  # of other sets: what their claims need besides


class Sums(NamedTuple):
    """Along the steps t <= T   (n,)."""

    invalid: Array  # plays under invalid plans
    lead: Array  # sum (1 - gamma) <nu_0, V_k - V^{pi_k}>
    g: Array  # sum g(x_t, a_t)
    size: Array  # sum |g(x_t, a_t)|
    variance: Array  # sum Var_P(V_k)(x_t, a_t)
    roots: Array  # sum n^{-1/2} over steps with n >= 1
    inverse: Array  # sum 1 / n over them
    first: Array  # plays with n = 0
    doublings: Array  # phases that end without a reset, before T
    irregular: Array  # phases that do not begin and end at resets
    certified: Array  # sum of what Theorem 1 charges a play with before anything is bounded
    age: Array  # max of t - (2 s + X A - 1), t in the phase that began at s


class Books(NamedTuple):
    moves: Array  # (n, X, A, B)
    time: Array  # t of the phase's beginning                 (n,)
    phase: Array  # its number                                (n,)
    invalid_at: Array  # the first phase with an invalid plan, 0 for none   (n,)
    invalid: Array  # of the plan in force                    (n,)
    near: Array  # whether P was near p_hat in all plans      (n,)
    lead: Array  # (n,)
    charge: Array  # (n,)
    g: Array  # (n, X)
    variance: Array  # (n, X)
    plays: Array  # (n, X)
    began: Array  # whether the phase began after a reset, or at x_1   (n,)
    reset: Array  # whether its last step so far was followed by one   (n,)
    sums: Sums
    worst: Worst
    more: Any = ()  # see Seen


class Kind(NamedTuple):
    """Of sets: how an observer sees a plan (scene, state, books, its first steps), what it begins with (of n seeds),
    and what it adds up along the steps (books, path), in place."""

    look: Callable[[Scene, Any, Books, Path], Seen]
    start: Callable[[int], Any]
    follow: Callable[[Books, Path], None]


# ---- every plan


def nil(s: Seen) -> Array:
    return np.zeros(len(s.U))


@claim(
    "K1", "n and N' are of what was played, and so are the visits whose rewards were counted", "docs/explanation/kl.md"
)
def counts(s: Seen) -> tuple[Array, Array]:
    n = s.moves.sum(-1)
    return worst(np.abs(s.data.moves - s.moves), np.abs(s.data.visits - n), np.abs(s.earned - n)), nil(s)


@claim("K2", "max_C <q, V> is the minimum of its dual", "docs/explanation/kl.md")
def duality(s: Seen) -> tuple[Array, Array]:
    mdp, support = s.scene.mdp, s.scene.told.support
    found = largest(mdp.successors, Counts(s.moves.sum(-1), s.moves), s.rho, support, s.V)
    return worst(np.abs(found - by_dual(mdp, s.moves, s.rho, support, s.V))), nil(s)


@claim("K3", "r <= their upper confidence bounds at pi*, and P V* <= max_C <q, V*>, where valid: V >= V*", "Lemma 4")
def optimism(s: Seen) -> tuple[Array, Array]:
    below = (s.scene.solution.V - s.V).max(-1)
    return np.where(s.valid, below, -np.inf), nil(s) + s.scene.solution.error


@claim("K4", "the played policy's own optimistic return >= U - eps_t - gamma tol_t", "Theorem 1")
def nearly_the_most_optimistic(s: Seen) -> tuple[Array, Array]:
    return s.U - s.U_own, s.eps + s.tol


@claim("K5", "gap(pi_k) <= 1{invalid} + eps_t + gamma tol_t + (1 - gamma) <nu_0, V_k - V^{pi_k}>", "Theorem 1")
def certificate(s: Seen) -> tuple[Array, Array]:
    return s.gap, charge(s)


def charge(s: Seen) -> Array:
    """What Theorem 1 charges a step under this plan with."""
    lead = s.U_own - (s.scene.solution.optimum - s.gap)
    return ~s.valid + s.eps + s.tol + lead


@claim("K6", "n KL(p_hat || P) <= ln(X A T) + C_B(n), for all pairs", "Lemma 2", kind="P")
def near(s: Seen) -> tuple[Array, Array]:
    return (~s.near).astype(float), nil(s)


def _radii(s: Seen) -> tuple[Array, Array]:
    """rho / n and rho_G / n at the played actions, where n >= 1   (n, X) each."""
    mdp, T = s.scene.mdp, s.scene.steps
    n = np.maximum(s.plays, 1)
    chosen = s.policy.argmax(-1)[..., None]
    rho = np.take_along_axis(s.rho, chosen, 2)[..., 0]
    pairs = mdp.states * mdp.actions * (2 if s.scene.told.rewards else 1)
    rho_G = log(pairs * T) + _worst_redundancy(n, mdp.branching)
    return rho / n, rho_G / n


def _deviation(s: Seen) -> Array:
    """gamma (q_k - P) V_k = V_k - r_up - gamma P V_k, at the played actions   (n, X)."""
    chosen = s.policy.argmax(-1)[..., None]
    return s.g - np.take_along_axis(s.rewards - s.scene.mdp.rewards, chosen, 2)[..., 0]


@claim("K7", "gamma (q_k - P) V_k <= gamma H (sqrt(rho / 2n) + sqrt(rho_G / 2n)), where P is near p_hat", "Theorem 1")
def by_range(s: Seen) -> tuple[Array, Array]:
    rho, rho_G = _radii(s)
    over = _deviation(s) - s.scene.mdp.discount * s.scene.H * (np.sqrt(rho / 2) + np.sqrt(rho_G / 2))
    return np.where(s.near, np.where(s.plays > 0, over, -np.inf).max(-1), -np.inf), nil(s)


@claim(
    "K8", "gamma |(q_k - P) V_k| <= gamma (a sqrt(rho Var_P(V_k) / n) + b H rho / n), where P is near p_hat",
    "Theorem 2",
)  # fmt: skip
def by_variance(s: Seen) -> tuple[Array, Array]:
    rho = np.maximum(*_radii(s))
    a, b, gamma = sqrt(2) + sqrt(6), 2 / 3 + sqrt(32 / 3), s.scene.mdp.discount
    over = np.abs(_deviation(s)) - gamma * (a * np.sqrt(rho * s.variance) + b * s.scene.H * rho)
    return np.where(s.near, np.where(s.plays > 0, over, -np.inf).max(-1), -np.inf), nil(s)


# ---- the whole run


@claim("K9a", "a plan in force at t was made at s >= (t - X A + 1) / 2", "Theorem 1", phase="run")
def plans_are_young(e: Evidence) -> tuple[Array, Array]:
    return e.audit.sums.age, np.zeros(e.n)


@claim("K9b", "sum n^{-1/2} <= (1 + sqrt 2) sqrt(X A T), over steps with n >= 1", "Theorem 1", phase="run")
def roots(e: Evidence) -> tuple[Array, Array]:
    X, A = e.scene.mdp.states, e.scene.mdp.actions
    return e.audit.sums.roots, np.full(e.n, (1 + sqrt(2)) * sqrt(X * A * e.run.steps))


@claim(
    "K9c", "sum 1 / n <= 2 X A ln(1 + T / X A) over them, and at most X A steps have n = 0", "Theorem 2", phase="run"
)
def inverses(e: Evidence) -> tuple[Array, Array]:
    pairs = e.scene.mdp.states * e.scene.mdp.actions
    over = np.maximum(e.audit.sums.inverse - 2 * pairs * log(1 + e.run.steps / pairs), e.audit.sums.first - pairs)
    return over, np.zeros(e.n)


@claim("K9d", "at most X A (1 + log2(T / X A)) phases end by doubling", "Theorem 1", phase="run")
def doublings(e: Evidence) -> tuple[Array, Array]:
    return e.audit.sums.doublings, np.full(e.n, theory.doublings(e.scene.mdp.states, e.scene.mdp.actions, e.run.steps))


@claim("K10", "E steps under invalid plans <= sum of the levels that allow for them", "Lemma 1", kind="E", phase="run")
def invalid(e: Evidence) -> tuple[Array, Array]:
    """At each t the plan in force was made at (t - X A + 1) / 2 or later: that level bounds the chance of t."""
    T, mdp = e.run.steps, e.scene.mdp
    s = np.maximum((np.arange(1, T + 1) - mdp.states * mdp.actions + 1) / 2, 1)
    return e.audit.sums.invalid, np.array(theory.levels(mdp.horizon, mdp.states, mdp.actions, theory.stage(s)).sum())


@claim(
    "K11", "E sum ((1 - gamma) <nu_0, V_k - V^{pi_k}> - g_t) <= 2 H E phases that do not begin and end at resets",
    "Theorem 1", kind="E", phase="run",
)  # fmt: skip
def telescoped(e: Evidence) -> tuple[Array, Array]:
    return e.audit.sums.lead - e.audit.sums.g - 2 * e.scene.H * e.audit.sums.irregular, np.array(0.0)


@claim(
    "K12", "gamma E sum Var_P(V_k) <= E (2 H T + 2 H sum |g_t| + H^2 phases as in K11)", "Theorem 2", kind="E",
    phase="run",
)  # fmt: skip
def variances(e: Evidence) -> tuple[Array, Array]:
    H, T, s = e.scene.H, e.run.steps, e.audit.sums
    return e.scene.mdp.discount * s.variance - 2 * H * T - 2 * H * s.size - H**2 * s.irregular, np.array(0.0)


@claim("K13", "R_T <= the bound of Theorem 1", "Theorem 1", kind="E", phase="run")
def theorem_1(e: Evidence) -> tuple[Array, Array]:
    return e.run.regret, np.array(regret_bound(e.scene, theory.optimism))


@claim("K14", "R_T <= the bound of Theorem 2", "Theorem 2", kind="E", phase="run")
def theorem_2(e: Evidence) -> tuple[Array, Array]:
    return e.run.regret, np.array(regret_bound(e.scene, theory.variance))


def regret_bound(scene: Scene, form: Any = theory.regret) -> float:
    """Infinite where the radii are not the theorem's."""
    mdp, given = scene.mdp, scene.sets
    assert given is not None
    if given.scale != 1 or scene.told.reward_scale != 1:
        return np.inf
    made = form(
        scene.H, mdp.states, mdp.actions, mdp.branching, scene.steps, slack=given.slack,
        tolerance=theory.TOLERANCE, unknown_rewards=scene.told.rewards is not None,
    )  # fmt: skip
    return float(made)


# ---- the observer


def _worst_redundancy(n: Array, B: int) -> Array:
    """C_B(n)."""
    return gammaln(0.5) + gammaln(n + B / 2) - gammaln(B / 2) - gammaln(n + 0.5)


def _fixed_point(scene: Scene, r: Array, D: Counts, rho: Array, V: Array, policy: Array | None = None) -> Array:
    """V = max_a {r + gamma max_C <q, V>}, or of the actions of a policy, by value iteration from V   (n, X)."""
    mdp, support = scene.mdp, scene.told.support
    while True:
        Q = r + mdp.discount * largest(mdp.successors, D, rho, support, V)
        new = Q.max(-1) if policy is None else (policy * Q).sum(-1)
        if np.abs(new - V).max() <= CLOSE * mdp.horizon:
            return new
        V = new


def seen(scene: Scene, state: Any, m: Books, path: Path) -> Seen:
    mdp, given, T, moves, time = scene.mdp, scene.sets, scene.steps, m.moves, path.time.astype(float)
    assert given is not None
    X, A, H, gamma = mdp.states, mdp.actions, mdp.horizon, mdp.discount
    n = moves.sum(-1)
    D = Counts(n.astype(np.int32), moves.astype(np.int32))
    unknown = scene.told.rewards is not None
    level = np.log((2 * X if unknown else X) / theory.levels(H, X, A, theory.stage(np.maximum(time, 1))))
    rho = given.scale * (level[:, None, None] + _worst_redundancy(n, 2))
    r, earned = np.broadcast_to(mdp.rewards, n.shape), n
    if unknown:
        r = highest_rewards(state.earned.plays, state.earned.total, level, scene.told.reward_scale)
        earned = state.earned.plays
    policy = state.policy
    V = _fixed_point(scene, r, D, rho, np.full((len(time), X), H))
    own = _fixed_point(scene, r, D, rho, V, policy)
    star = scene.solution.policy.argmax(-1)
    V_star = np.broadcast_to(scene.solution.V, V.shape)
    most = largest(mdp.successors, D, rho, scene.told.support, V_star)[:, np.arange(X), star]
    PV_star = (scene.P @ scene.solution.V)[np.arange(X), star]
    valid = (most >= PV_star - scene.atol).all(-1)
    valid &= (r[:, np.arange(X), star] >= mdp.rewards[np.arange(X), star] - scene.atol).all(-1)
    P_hat = moves / np.maximum(n, 1)[..., None]
    pairs = X * A * (2 if unknown else 1)
    close = n * rel_entr(P_hat, mdp.transitions).sum(-1) <= log(pairs * T) + _worst_redundancy(n, mdp.branching)
    return at_truth(
        scene, policy, own, data=state.data, moves=moves, time=time, rho=rho, rewards=r, earned=earned, V=V,
        valid=valid, near=close.all((1, 2)), plays=(policy * n).sum(-1),
        eps=given.slack * np.sqrt(H * X * A / time), tol=gamma * theory.TOLERANCE / np.sqrt(time),
    )  # fmt: skip


def at_truth(scene: Scene, policy: Array, own: Array, *, V: Array, **rest: Any) -> Seen:
    """What is seen of a plan, with what the truth makes of its policy and V_k."""
    mdp, gamma = scene.mdp, scene.mdp.discount
    P_pi = np.einsum("nxa,xay->nxy", policy, scene.P)
    r_pi = (policy * mdp.rewards).sum(-1)
    value = np.linalg.solve(np.eye(mdp.states) - gamma * P_pi, r_pi[..., None])[..., 0]
    mean = (P_pi @ own[..., None])[..., 0]
    return Seen(
        scene, policy=policy, V=V, own=own, U=(1 - gamma) * V @ mdp.initial, U_own=(1 - gamma) * own @ mdp.initial,
        gap=scene.solution.optimum - (1 - gamma) * value @ mdp.initial, g=own - r_pi - gamma * mean,
        variance=np.maximum((P_pi @ (own**2)[..., None])[..., 0] - mean**2, 0.0), **rest,
    )  # fmt: skip


PLAIN = Kind(seen, lambda n: (), lambda m, path: None)


def observer(scene: Scene, claims: Sequence[Claim], kind: Kind = PLAIN) -> Measure:
    mdp = scene.mdp
    X, A, B = mdp.states, mdp.actions, mdp.branching

    def init(keys: Array) -> Books:
        n, C = len(keys), len(claims)
        zeros = [np.zeros(n) for _ in Sums._fields]
        zeros[-1] -= np.inf
        no, zero = np.zeros(n, bool), np.zeros(n, np.int64)
        return Books(
            np.zeros((n, X, A, B)), np.zeros(n), zero, zero, no, ~no, np.zeros(n), np.zeros(n), np.zeros((n, X)),
            np.zeros((n, X)), np.zeros((n, X)), ~no, ~no, Sums(*zeros),
            Worst(np.full((n, 1, C), np.inf), *(np.zeros((n, 1, C)) for _ in range(3))), kind.start(n),
        )  # fmt: skip

    def record(m: Books, state: Any, path: Path, opening: bool) -> Books:
        active = path.length > 0
        if opening:
            m = merged(active, _opened(scene, claims, m, kind.look(scene, state, m, path)), m)
        kind.follow(m, path)
        _followed(m, path)
        return m

    return Measure("sets", init, record, lambda m: {})


def merged(active: Array, new: Any, old: Any) -> Any:
    """Rows of seeds that go on from `new`, of seeds that have ended from `old`."""
    if isinstance(new, tuple):
        return type(new)(*(merged(active, a, b) for a, b in zip(new, old, strict=True)))
    return np.where(active.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def _opened(scene: Scene, claims: Sequence[Claim], m: Books, s: Seen) -> Books:
    worst = Worst(*(array.copy() for array in m.worst))
    for j, one in enumerate(claims):
        measured, limit = (np.asarray(part, float) + np.zeros(len(s.U)) for part in one.measure(s))
        margin = np.where(measured == -np.inf, np.inf, limit - measured)
        worse = ~(margin >= worst.margin[:, 0, j])
        for kept, new in zip(worst, (margin, measured, limit, m.phase + 1), strict=True):
            kept[:, 0, j] = np.where(worse, new, kept[:, 0, j])
    ended = m.time > 0  # a phase before this one
    doubled = ended & ~m.reset
    irregular = ended & ~(m.began & m.reset)
    sums = m.sums._replace(doublings=m.sums.doublings + doubled, irregular=m.sums.irregular + irregular)
    lead = s.U_own - (scene.solution.optimum - s.gap)
    phase = m.phase + 1
    invalid_at = np.where((m.invalid_at == 0) & ~s.valid, phase, m.invalid_at)
    return m._replace(
        time=s.time, phase=phase, invalid_at=invalid_at, invalid=~s.valid, near=m.near & s.near, lead=lead,
        charge=charge(s), g=s.g, variance=s.variance, plays=s.plays, began=m.reset, reset=np.zeros(len(lead), bool),
        sums=sums, worst=worst, more=s.more,
    )  # fmt: skip


def _followed(m: Books, path: Path) -> None:
    """Sums along the steps, in place."""
    X, A = m.moves.shape[1:3]
    for i in np.flatnonzero(path.length):
        L = path.length[i]
        x, a, slot = path.state[i, :L], path.action[i, :L], path.slot[i, :L]
        np.add.at(m.moves[i], (x, a, slot), 1.0)
        n, g = m.plays[i, x], m.g[i, x]
        some = n > 0
        s = m.sums
        s.invalid[i] += L * m.invalid[i]
        s.lead[i] += L * m.lead[i]
        s.certified[i] += L * m.charge[i]
        s.g[i] += g.sum()
        s.size[i] += np.abs(g).sum()
        s.variance[i] += m.variance[i, x].sum()
        s.roots[i] += (1 / np.sqrt(n[some])).sum()
        s.inverse[i] += (1 / n[some]).sum()
        s.first[i] += (~some).sum()
        s.age[i] = max(s.age[i], path.time[i] + L - 1 - (2 * m.time[i] + X * A - 1))
        m.reset[i] = path.reset[i, L - 1]


def observed(scene: Scene, kind: Kind = PLAIN) -> Observer:
    """Who watches a run; padding is not played."""

    def finish(along: Sequence[Claim], m: Books, state: Any) -> Books:
        return m._replace(sums=m.sums._replace(irregular=m.sums.irregular + 1))  # the phase in which T falls

    return Observer(lambda along: [observer(scene, along, kind)], finish, pad=False)


def ladder(e: Evidence, bound: float) -> Ladder:
    regret, certified = float(e.run.regret.mean()), float(e.audit.sums.certified.mean())
    labels = ("measured regret", "what K5 charges its plays with", "explicit bound")
    T, rho = e.run.steps, e.scene.solution.optimum
    return Ladder(regret, np.nan, certified, np.nan, bound, float(T * rho), labels)
