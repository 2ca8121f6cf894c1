"""Claims about the optimistic plans of RAVI-KL (greedy, slack): the lemmas of docs/explanation/kl.md, on every plan.

When a plan is made, a keeper makes the radii from the observer's counts by their formulas, finds the fixed points by
plain value iteration, and holds what is played against them. Phases are the epochs of the run. No padding is played.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, rel_entr

from ravi.core import MDP, Array, Path
from ravi.estimators.counts import Counts
from ravi.optimism.relative_entropy import highest_rewards, largest
from ravi.optimism.supported import known, outcomes
from ravi.theory import kl as theory
from ravi.verify import lemmas
from ravi.verify.books import Audit, Evidence, Keeper, Seen
from ravi.verify.claim import Registry
from ravi.verify.distance import nil, worst
from ravi.verify.expected import by_dual
from ravi.verify.scene import Scene
from ravi.verify.walks import values

CLOSE = 1e-11  # of H: value iteration ends at moves of this size

registry = Registry()
claim = registry.claim


class Plan(NamedTuple):
    """A plan of every seed, recorded when it is made; seeds first."""

    time: Array  # t                                                    (n,)
    earned: Array  # plays whose rewards were counted                   (n, X, A)
    V: Array  # of the fixed point of L_C                               (n, X)
    own: Array  # V_k, of the played policy with its best kernels       (n, X)
    U: Array  # (1 - gamma) <nu_0, V>                                   (n,)
    U_own: Array  # of V_k                                              (n,)
    gap: Array  # of the played policy                                  (n,)
    valid: Array  # max_C <q, V*> >= P V* at (x, pi*(x)), for all x     (n,)
    g: Array  # V_k - r - gamma P V_k at the played action              (n, X)
    variance: Array  # of V_k under P there                             (n, X)
    plays: Array  # n there                                             (n, X)
    eps: Array  # slack (U(rho) - U(rho / 2)); of a mixture eps_t        (n,)
    tol: Array  # what the plan's tolerance costs                       (n,)
    made: Any  # what else its sets are made of: `Radii`; of a mixture `mixtures.Likely`


class Radii(NamedTuple):
    rho: Array  # by their formula                                      (n, X, A)
    rewards: Array  # r, or their upper bounds                          (n, X, A)
    near: Array  # n KL(p_hat || P) <= ln(X A T) + C_B(n), all pairs    (n,)


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
    irregular: Array  # phases before the last that do not begin and end at resets
    certified: Array  # sum of what Theorem 1 charges a play with before anything is bounded
    age: Array  # max of t - (2 s - 1), t in the phase that began at s


class Kept(NamedTuple):
    """What is kept of the plans of a run."""

    plan: Any  # the Plan in force; () before the first
    began: Array  # whether its phase began after a reset, or at x_1   (n,)
    sums: Sums
    steps: Any = ()  # what a mixture adds up along the steps besides


# ---- every plan


@claim("K1", "n and N' are of what was played, and so are the visits whose rewards were counted",
       "docs/explanation/kl.md")  # fmt: skip
def counts(s: Seen) -> tuple[Array, Array]:
    moves, n = s.scene.stored(s.books.moves), s.books.moves.sum(-1)
    return worst(np.abs(s.data.moves - moves), np.abs(s.data.visits - n), np.abs(s.own.plan.earned - n)), nil(s)


@claim("K2", "max_C <q, V> is the minimum of its dual", "docs/explanation/kl.md")
def duality(s: Seen) -> tuple[Array, Array]:
    mdp, support, p, moves = s.scene.mdp, s.scene.told.support, s.own.plan, s.scene.stored(s.books.moves)
    found = largest(known(mdp, support).successors, Counts(moves.sum(-1), moves), p.made.rho, support, p.V)
    return worst(np.abs(found - by_dual(mdp, moves, p.made.rho, support, p.V))), nil(s)


@claim("K3", "r <= their upper confidence bounds at pi*, and P V* <= max_C <q, V*>, where valid: V >= V*", "Lemma 4")
def optimism(s: Seen) -> tuple[Array, Array]:
    below = (s.scene.solution.V - s.own.plan.V).max(-1)
    return np.where(s.own.plan.valid, below, -np.inf), nil(s) + s.scene.solution.error


@claim("K4", "the played policy's own optimistic return >= U - eps - (1 + slack) gamma tol_t", "Corollary")
def nearly_the_most_optimistic(s: Seen) -> tuple[Array, Array]:
    p = s.own.plan
    return p.U - p.U_own, p.eps + p.tol


@claim(
    "K5", "gap(pi_k) <= 1{invalid} + eps + (1 + slack) gamma tol_t + (1 - gamma) <nu_0, V_k - V^{pi_k}>", "Theorem 1"
)
def certificate(s: Seen) -> tuple[Array, Array]:
    return s.own.plan.gap, charge(s.scene, s.own.plan)


def lead(scene: Scene, p: Plan) -> Array:
    """(1 - gamma) <nu_0, V_k - V^{pi_k}>."""
    return p.U_own - (scene.solution.optimum - p.gap)


def charge(scene: Scene, p: Plan) -> Array:
    """What Theorem 1 charges a step under this plan with."""
    return ~p.valid + p.eps + p.tol + lead(scene, p)


@claim("K6", "n KL(p_hat || P) <= ln(X A T) + C_B(n), for all pairs", "Lemma 2", kind="P")
def near(s: Seen) -> tuple[Array, Array]:
    return (~s.own.plan.made.near).astype(float), nil(s)


def _deviation(s: Seen) -> tuple[Array, Array, Array]:
    """gamma (q_k - P) V_k = V_k - r_up - gamma P V_k, rho / n and rho_G / n, at the played actions   (n, X) each."""
    mdp, p, chosen = s.scene.mdp, s.own.plan, s.after.policy.argmax(-1)[..., None]
    rho, surplus = (np.take_along_axis(part, chosen, 2)[..., 0] for part in (p.made.rho, p.made.rewards - mdp.rewards))
    n = np.maximum(p.plays, 1)
    return p.g - surplus, rho / n, _near(s.scene, n) / n


def _where_near(s: Seen, over: Array) -> tuple[Array, Array]:
    p = s.own.plan
    return np.where(p.made.near, np.where(p.plays > 0, over, -np.inf).max(-1), -np.inf), nil(s)


@claim("K7", "gamma (q_k - P) V_k <= gamma H (sqrt(rho / 2n) + sqrt(rho_G / 2n)), where P is near p_hat", "Theorem 1")
def by_range(s: Seen) -> tuple[Array, Array]:
    off, rho, rho_G = _deviation(s)
    return _where_near(s, off - s.scene.mdp.discount * s.scene.H * (np.sqrt(rho / 2) + np.sqrt(rho_G / 2)))


@claim("K8", "gamma |(q_k - P) V_k| <= gamma (a sqrt(rho Var_P(V_k) / n) + b H rho / n), where P is near p_hat",
       "Theorem 2")  # fmt: skip
def by_variance(s: Seen) -> tuple[Array, Array]:
    off, *radii = _deviation(s)
    rho, a, b = np.maximum(*radii), sqrt(2) + sqrt(6), 2 / 3 + sqrt(32 / 3)
    limit = s.scene.mdp.discount * (a * np.sqrt(rho * s.own.plan.variance) + b * s.scene.H * rho)
    return _where_near(s, np.abs(off) - limit)


# ---- the whole run


@claim("K9a", "a plan in force at t was made at s >= (t + 1) / 2", "Theorem 1", phase="run")
def plans_are_young(e: Evidence) -> tuple[Array, Array]:
    return e.audit.own.sums.age, np.zeros(e.n)


@claim("K9b", "sum n^{-1/2} <= (1 + sqrt 2) sqrt(X A T), over steps with n >= 1", "Theorem 1", phase="run")
def roots(e: Evidence) -> tuple[Array, Array]:
    X, A = e.scene.mdp.states, e.scene.mdp.actions
    return e.audit.own.sums.roots, np.full(e.n, (1 + sqrt(2)) * sqrt(X * A * e.run.steps))


@claim("K9c", "sum 1 / n <= 2 X A ln(1 + T / X A) over them, and at most X A steps have n = 0", "Theorem 2",
       phase="run")  # fmt: skip
def inverses(e: Evidence) -> tuple[Array, Array]:
    pairs, s = e.scene.mdp.states * e.scene.mdp.actions, e.audit.own.sums
    return np.maximum(s.inverse - 2 * pairs * log(1 + e.run.steps / pairs), s.first - pairs), np.zeros(e.n)


@claim("K9d", "at most D = min{T, X A (1 + log2 max{1, T / X A})} phases end by doubling", "Theorem 1", phase="run")
def doublings(e: Evidence) -> tuple[Array, Array]:
    most = theory.doublings(e.scene.mdp.states, e.scene.mdp.actions, e.run.steps)
    return e.audit.own.sums.doublings, np.full(e.n, most)


@claim("K10", "E steps under invalid plans <= sum of the levels that allow for them", "Lemma 1", kind="E")
def invalid(e: Evidence) -> tuple[Array, Array]:
    mdp = e.scene.mdp
    levels = theory.levels(mdp.horizon, mdp.states, mdp.actions, theory.stage(made_at(e)))
    return e.audit.own.sums.invalid, np.array(levels.sum())


def made_at(e: Evidence) -> Array:
    """The earliest time at which the plan in force at t may have been made, for t = 1, ..., T (K9a): the chance that
    it is invalid is at most the level of that time."""
    return np.arange(2, e.run.steps + 2) / 2


def irregular(e: Evidence) -> Array:
    """Phases that do not begin and end at resets: those before the last, and the one in which T falls."""
    return e.audit.own.sums.irregular + 1


@claim("K11", "E sum ((1 - gamma) <nu_0, V_k - V^{pi_k}> - g_t) <= 2 H E phases that do not begin and end at resets",
       "Theorem 1", kind="E")  # fmt: skip
def telescoped(e: Evidence) -> tuple[Array, Array]:
    return e.audit.own.sums.lead - e.audit.own.sums.g - 2 * e.scene.H * irregular(e), np.array(0.0)


@claim("K12", "gamma E sum Var_P(V_k) <= E (2 H T + 2 H sum |g_t| + H^2 phases as in K11)", "Theorem 2", kind="E")
def variances(e: Evidence) -> tuple[Array, Array]:
    H, T, s = e.scene.H, e.run.steps, e.audit.own.sums
    return e.scene.mdp.discount * s.variance - 2 * H * T - 2 * H * s.size - H**2 * irregular(e), np.array(0.0)


def explicit(scene: Scene, form: Any = theory.regret) -> float:
    """Infinite where the radii are not the theorem's."""
    mdp, given = scene.mdp, scene.sets
    if given.scale != 1 or scene.told.reward_scale != 1:
        return np.inf
    X, A, unknown = mdp.states, mdp.actions, scene.told.rewards is not None
    more = {"slack": given.slack, "tolerance": theory.TOLERANCE, "unknown_rewards": unknown}
    return float(form(scene.H, X, A, outcomes(mdp, True), scene.steps, **more))


claim("K13", "R_T <= the bound of Theorem 1", "Theorem 1",
      kind="E")(lemmas.regret(lambda scene: explicit(scene, theory.optimism)))  # fmt: skip
claim("K14", "R_T <= the bound of Theorem 2", "Theorem 2",
      kind="E")(lemmas.regret(lambda scene: explicit(scene, theory.variance)))  # fmt: skip

# ---- what is kept


def keeper(scene: Scene) -> Keeper:
    return keeping(scene, partial(seen, scene))


def keeping(
    scene: Scene,
    see: Callable[[Audit, Any, Path], Plan],
    steps: Callable[[int], Any] = lambda n: (),
    step: Callable[[Kept, Path], None] = lambda kept, path: None,
) -> Keeper:
    """`see`: what there is to see of a plan; `steps`, `step`: what a mixture adds up besides, and how (in place)."""

    def init(keys: Array) -> Kept:
        n = len(keys)
        sums = Sums(*(np.zeros(n) for _ in Sums._fields))._replace(age=np.full(n, -np.inf))
        return Kept((), np.ones(n, bool), sums, steps(n))

    def look(m: Audit, state: Any, path: Path) -> Kept:
        kept, plan, reset = m.own, see(m, state, path), m.state < 0
        ended, s = m.seen > 0, kept.sums  # a phase before this one
        doublings, irregular = s.doublings + (ended & ~reset), s.irregular + (ended & ~(kept.began & reset))
        return kept._replace(plan=plan, began=reset, sums=s._replace(doublings=doublings, irregular=irregular))

    def follow(m: Audit, path: Path, learned: Array) -> None:
        p, s = m.own.plan, m.own.sums
        leads, charges = lead(scene, p), charge(scene, p)
        step(m.own, path)
        for i in np.flatnonzero(path.length):
            L = path.length[i]
            x = path.state[i, :L]
            n, g = p.plays[i, x], p.g[i, x]
            some = n > 0
            for total, term in (
                (s.invalid, L * ~p.valid[i]), (s.lead, L * leads[i]), (s.certified, L * charges[i]), (s.g, g.sum()),
                (s.size, np.abs(g).sum()), (s.variance, p.variance[i, x].sum()),
                (s.roots, (1 / np.sqrt(n[some])).sum()), (s.inverse, (1 / n[some]).sum()), (s.first, (~some).sum()),
            ):  # fmt: skip
                total[i] += term
            s.age[i] = max(s.age[i], path.time[i] + L - 2 * p.time[i])

    return Keeper(init, follow, look)


def _worst_redundancy(n: Array, B: int) -> Array:
    """C_B(n)."""
    return gammaln(0.5) + gammaln(n + B / 2) - gammaln(B / 2) - gammaln(n + 0.5)


def _near(scene: Scene, n: Array) -> Array:
    """rho_G: what n KL(p_hat || P) is at most, for all pairs at all times with probability 1 - 1 / T."""
    mdp = scene.mdp
    pairs = mdp.states * mdp.actions * (2 if scene.told.rewards else 1)
    return log(pairs * scene.steps) + _worst_redundancy(n, outcomes(mdp, True))


def fixed_point(
    mdp: MDP, r: Array, most: Callable[[Array], Array], V: Array, policy: Array | None = None, close: float = CLOSE
) -> Array:
    """V = max_a {r + gamma most(V)}, or of the actions of a policy, by value iteration from V   (..., X)."""
    for _ in range(int(50 * mdp.horizon) + 50):  # moves shrink by gamma in each
        Q = r + mdp.discount * most(V)
        new = Q.max(-1) if policy is None else (policy * Q).sum(-1)
        moved, V = np.abs(new - V).max(), new
        if moved <= close * mdp.horizon:
            break
    return V


def seen(scene: Scene, m: Audit, state: Any, path: Path) -> Plan:
    mdp, given, moves, time = scene.mdp, scene.sets, scene.stored(m.books.moves), path.time.astype(float)
    X, A, H, n = mdp.states, mdp.actions, mdp.horizon, moves.sum(-1)
    D = Counts(n.astype(np.int32), moves.astype(np.int32))
    unknown, successors = scene.told.rewards is not None, known(mdp, scene.told.support).successors
    level = np.log((2 * X if unknown else X) / theory.levels(H, X, A, theory.stage(np.maximum(time, 1))))
    rho = given.scale * (level[:, None, None] + _worst_redundancy(n, 2))
    r, earned = np.repeat(mdp.rewards[None], len(n), 0), n
    if unknown:
        r = highest_rewards(state.earned.plays, state.earned.total, level, scene.told.reward_scale)
        earned = state.earned.plays

    def most(V: Array, share: float = 1.0) -> Array:
        return largest(successors, D, share * rho, scene.told.support, V)

    V = fixed_point(mdp, r, most, np.full((len(time), X), H))
    excess = V - fixed_point(mdp, r, partial(most, share=0.5), V) if given.slack > 0 else np.zeros_like(V)
    own = fixed_point(mdp, r, most, V, state.policy)
    x, star = np.arange(X), scene.solution.policy.argmax(-1)
    hoped = most(np.broadcast_to(scene.solution.V, V.shape))[:, x, star]
    valid = (hoped >= (scene.P @ scene.solution.V)[x, star] - scene.atol).all(-1)
    valid &= (r[:, x, star] >= mdp.rewards[x, star] - scene.atol).all(-1)
    far = n * rel_entr(moves / np.maximum(n, 1)[..., None], mdp.transitions).sum(-1)
    return at_truth(
        scene, state.policy, own, time=time, earned=earned, V=V, valid=valid, plays=(state.policy * n).sum(-1),
        eps=given.slack * (1 - mdp.discount) * excess @ mdp.initial,
        tol=(1 + given.slack) * mdp.discount * theory.TOLERANCE / np.sqrt(time),
        made=Radii(rho, r, (far <= _near(scene, n)).all((1, 2))),
    )  # fmt: skip


def at_truth(scene: Scene, policy: Array, own: Array, *, V: Array, **rest: Any) -> Plan:
    """What is seen of a plan, with what the truth makes of its policy and V_k."""
    mdp, gamma = scene.mdp, scene.mdp.discount
    P_pi = np.einsum("nxa,xay->nxy", policy, scene.P)
    r_pi = (policy * mdp.rewards).sum(-1)
    mean = (P_pi @ own[..., None])[..., 0]
    return Plan(
        V=V, own=own, U=(1 - gamma) * V @ mdp.initial, U_own=(1 - gamma) * own @ mdp.initial,
        gap=scene.solution.optimum - (1 - gamma) * values(scene, policy, r_pi) @ mdp.initial,
        g=own - r_pi - gamma * mean,
        variance=np.maximum((P_pi @ (own**2)[..., None])[..., 0] - mean**2, 0.0), **rest,
    )  # fmt: skip
