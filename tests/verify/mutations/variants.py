"""Mistakes of RAVI-UCB+: each a small change, with the claims that must catch it.

As in `paper.py`; the parts of the learner are broken where it finds them (the names in
`ravi.learners.ravi_ucb.plus`), in its estimator and bonus and in the compiled loop alike, or in one of them only.
"""

from dataclasses import replace

import numpy as np

from ravi import ids
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.optimism import bonuses
from ravi.runtime import tree
from ravi.runtime.seedwise import over_all_seeds
from ravi.theory import tabular
from tests.verify.mutations import Mistakes, Setting, around, by, changed, in_millionths, put, replaced

COUNTS = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb+,inner=3,eta=0.5", 300, 6)
COUNTS_OF_H = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb+,inner=3,eta=0.5,span=off,clip=off", 300, 6, moves=0)
REGRESSION = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture,inner=3,eta=0.5", 250, 6)
REGRESSION_UNCUT = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture,inner=3,eta=0.5,clip=off", 250, 6)
OLDER_Q = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb+,inner=3,eta=0.5,fresh=off", 120, 6, moves=0)
ONE_STATE = Setting("one-state/2,discount=0.5", "ravi-ucb+,inner=4,eta=0.5,scale=0.01", 20, 300, moves=0)
SHORT = Setting("trap,discount=0.5", "ravi-ucb+,inner=2", 60, 6, moves=0)
NAMES = {
    COUNTS: "counts", COUNTS_OF_H: "counts of H", REGRESSION: "regression", REGRESSION_UNCUT: "uncut",
    OLDER_Q: "older Q", ONE_STATE: "one state", SHORT: "short",
}  # fmt: skip


def in_loop(patch, change):
    """The compiled form with `change` of what it is made of, and of nothing that the learner says."""
    patch.setattr(
        ravi_ucb_plus, "over_all_seeds", lambda learner, form: over_all_seeds(learner, change(form.own).seedwise)
    )


# ---- the bonus


def no_union(patch, setting):
    for module in (bonuses, ravi_ucb_plus):
        patch.setattr(module, "log_term", lambda X, A, T, delta: np.log(X * A * T / delta))
    return setting.build()


def halved(patch, setting):
    of_span = ravi_ucb_plus.of_span

    def half(*given, **more):
        whole = of_span(*given, **more)
        return lambda D, phi: whole(D, phi) / 2

    patch.setattr(ravi_ucb_plus, "of_span", half)
    return setting.build()


def too_small(patch, setting):
    of_span = ravi_ucb_plus.of_span

    def small(*given, **more):
        whole = of_span(*given, **more)
        return lambda D, phi: whole(D, phi) / 50

    patch.setattr(ravi_ucb_plus, "of_span", small)
    return setting.build()


def at_half_the_span(bonus):
    return lambda D, phi: np.minimum(bonus(D, phi), (phi.high - phi.low) / 2)


# ---- the estimate


def estimated(patch, change):
    """A learner whose estimator is change(sound)."""
    standard = ravi_ucb_plus.standard
    patch.setattr(ravi_ucb_plus, "standard", lambda *given, **more: change(standard(*given, **more)))


def late_estimate(patch, setting):
    def change(sound):
        kept = {}

        def expect(D, phi):
            before = kept.get("phi", phi)
            kept["phi"] = phi
            return sound.expect(D, before if len(before.low) == len(phi.low) else phi)

        return sound._replace(expect=expect)

    estimated(patch, change)
    return setting.build()


def raw_samples(patch, setting):
    from ravi.estimators.ridge import ridge

    problem = ids.mdp(setting.mdp).problem
    estimated(patch, lambda sound: sound._replace(add=ridge(problem, 1.0).add))
    return setting.build()


def counted_twice(learner, state, path):
    learner.parts.estimator.add(state.data, state.V, path)
    return learner.add(state, path)


# ---- the steps


def unweighted(patch, setting):
    sound = ravi_ucb.mirror_step

    def rule(log_pi, pi, Q, eta, in_place):
        V, log_pi, pi = sound(log_pi, pi, Q, eta)
        return V + np.log(Q.shape[-1]) / eta, log_pi, pi

    patch.setattr(ravi_ucb, "mirror_step", rule)
    return setting.build()


def no_mirror_step(patch, setting):
    sound = ravi_ucb.mirror_step

    def greedy(log_pi, pi, Q, eta, in_place):
        made = np.where(Q.max(-1, keepdims=True) == Q, 1.0, 1e-12)
        made /= made.sum(-1, keepdims=True)
        return sound(log_pi, pi, Q, eta)[0], np.log(made), made

    patch.setattr(ravi_ucb, "mirror_step", greedy)
    return setting.build()


def one_less(learner, s):
    *_, before, _ = (tree.copy(one) for one in learner.parts.backups(s))
    done = learner.plan(s)
    return done._replace(V_last=before.V_last, Q=before.Q, log_policy=before.log_policy, last_policy=before.last_policy)


def stale(patch, setting):
    learner, kept = setting.build(), {}

    def plan(s):
        now = tree.copy(s.data)
        data = kept.get("data", now)
        kept["data"] = now
        return learner.plan(s._replace(data=data))._replace(data=s.data)

    return learner._replace(plan=plan)


# ---- what is played


def undrawn(learner, s):
    done = learner.plan(s)
    return done._replace(V=done.V_last.copy(), policy=done.last_policy.copy())


def the_first(learner, s):
    first = tree.copy(next(iter(learner.parts.backups(s))))
    return learner.plan(s)._replace(V=first.V_last, policy=first.last_policy)


def drawn_once(learner, s):
    time = s.time.copy()
    return learner.plan(s._replace(time=0 * time + 1))._replace(time=time)


def another_value(learner, s):
    done = learner.plan(s)
    return done._replace(V=done.V_last.copy())


def another_target(learner, s, path):
    V = s.V.copy()
    done = learner.add(s._replace(V=s.V_last), path)
    return done._replace(V=V)


ROWS = [
    # the bonus
    ("the event is for one V only: no X ln 2", "V2d", COUNTS, no_union),
    ("the bonus is halved", "V2d", COUNTS, halved),
    ("the bonus is a fiftieth", "V2d V3 V4", COUNTS, too_small),
    (
        "the bonus scales with sp(V), not half of it",
        "V2d V2e",
        COUNTS_OF_H,
        changed(
            ravi_ucb_plus,
            "of_span",
            lambda of_span, *given, span, **more: of_span(*given, span=2 * span, **more),
        ),
    ),
    (
        "the bonus of a regression is for a noise of 1/2",
        "V2d",
        REGRESSION_UNCUT,
        changed(
            bonuses,
            "log_det_radius",
            lambda radius, *given, noise, **more: radius(*given, noise=noise / 2, **more),
        ),
    ),
    (
        "the determinant is that of the root",
        "V2d",
        REGRESSION_UNCUT,
        changed(bonuses, "log_det_radius", lambda radius, root, *given, **more: radius(root**0.5, *given, **more)),
    ),
    ("the bonus is not discounted", "V2d", COUNTS, put(ravi_ucb_plus, "discounted", lambda bonus, discount: bonus)),
    ("the bonus is cut at half the span", "V2d", COUNTS, put(ravi_ucb_plus, "within_span", at_half_the_span)),
    (
        "only the compiled loop does not discount the bonus",
        "V1b",
        COUNTS,
        by(in_loop, lambda made: replace(made, constants=made.constants._replace(discount=1.0))),
    ),
    (
        "P_hat V is not centred",
        "V2c",
        COUNTS,
        changed(ravi_ucb_plus, "standard", lambda standard, base, **more: standard(base, **more | {"centre": False})),
    ),
    (
        "P_hat V is not cut",
        "V2c",
        REGRESSION,
        changed(ravi_ucb_plus, "standard", lambda standard, base, **more: standard(base, **more | {"clip": False})),
    ),
    ("P_hat V is that of V_{i-1}", "V1b", COUNTS, late_estimate),
    ("samples are added with V, not with V in parts of its span", "V2b", REGRESSION, raw_samples),
    ("counts are updated twice", "V2a", COUNTS, replaced(add=counted_twice)),
    # the steps
    (
        "eta is another than the learner says",
        "V1c",
        COUNTS,
        by(in_loop, lambda made: replace(made, eta=1.01 * made.eta)),
    ),
    (
        "V is greedy",
        "V1c",
        REGRESSION,
        changed(
            ravi_ucb,
            "mirror_step",
            lambda sound, log_pi, pi, Q, eta, in_place: (Q.max(-1), *sound(log_pi, pi, Q, eta)[1:]),
        ),
    ),
    (
        "Q is truncated at H + 1",
        "V1b V1d",
        COUNTS_OF_H,
        changed(ravi_ucb, "backup", lambda sound, r, CB, gamma, PV, H: sound(r, CB, gamma, PV, H + 1)),
    ),
    (
        "the backup has no bonus",
        "V1b V6a",
        COUNTS,
        changed(ravi_ucb, "backup", lambda sound, r, CB, gamma, PV, H: sound(r, 0 * CB, gamma, PV, H)),
    ),
    (
        "rewards count a hundred times, and Q is not truncated",
        "V1b V4b V5b V6b",
        COUNTS,
        put(ravi_ucb, "backup", lambda r, CB, gamma, PV, H: 100 * r + CB + gamma * PV),
    ),
    ("V is the logarithm of a sum, not of a mean", "V1a V6c", OLDER_Q, unweighted),
    ("pi is greedy for Q: no mirror step", "V1c V5a", COUNTS, no_mirror_step),
    ("the plan makes M - 1 backups", "V7a", COUNTS, replaced(plan=one_less)),
    ("the plan is made with the data of the epoch before", "V7a", COUNTS, stale),
    (
        "policies begin anew with every epoch",
        "V7a V4a",
        COUNTS,
        around(
            lambda learner: learner._replace(
                plan=lambda s: learner.plan(
                    s._replace(last_policy=0 * s.last_policy + 0.5, log_policy=0 * s.last_policy + np.log(0.5))
                )
            )
        ),
    ),
    # what is played
    ("the last policy is played, not one that is drawn", "V7b V7c", COUNTS, replaced(plan=undrawn)),
    ("the first of the M policies is played", "V7b V7c V7d", ONE_STATE, replaced(plan=the_first)),
    ("the draw is the same in every epoch", "V7b", COUNTS, replaced(plan=drawn_once)),
    ("pi_m is played, and V of the last backup goes into ADD", "V7b", REGRESSION, replaced(plan=another_value)),
    ("ADD is given V of the last backup behind the back of the state", "V2b", REGRESSION, replaced(add=another_target)),
    # the bounds
    (
        "S, what bonuses may sum to, is a thousandth",
        "V8",
        SHORT,
        changed(tabular, "clipped_bonus_sum", lambda sound, *given: sound(*given) / 1000),
    ),
    ("rho* is in millionths", "V6 V9 V9s", SHORT, in_millionths),
]
mutation = Mistakes(NAMES, ROWS, ", in RAVI-UCB+")
