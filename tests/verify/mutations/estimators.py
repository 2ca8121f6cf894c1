"""Mistakes with sampled features, weights by variance and linear MDPs, and the claims that catch each.

As in `paper.py`: a mistake is put where the learner finds its parts; observers have their own and stay sound.
"""

from functools import partial

import numpy as np

from ravi.estimators import sampled, variance_weighted
from ravi.learners.ravi_ucb import features as mixture_sampled
from ravi.learners.ravi_ucb import features as ravi_ucb_linear
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.theory import mixture
from ravi.verify import KINDS
from tests.verify import mutations
from tests.verify.mutations import Mistakes, by, changed, in_millionths, made, put
from tests.verify.mutations.paper import for_another_action, walked, with_next_states

WORLD = "ensemble/3,8,2,6,discount=0.75"
Setting = partial(mutations.Setting, moves=0.1, only=(*(claim.id for claim in KINDS), "S4", "A1", "V3"))
SAMPLED = Setting(WORLD, "ravi-ucb/mixture-sampled,samples=3,scale=0.1,step_scale=30", 300, 6)
CENTRED = Setting(WORLD, "ravi-ucb/mixture-sampled,samples=3,centre=on,scale=0.1,step_scale=30", 300, 6)
SPARSE = Setting("riverswim/mixture/4,discount=0.75", "ravi-ucb/mixture-sampled,samples=2,scale=0.3,eta=0.3", 200, 4)
LONG = Setting("ensemble/2,4,2,2,discount=0.5", "ravi-ucb/mixture-sampled,samples=4", 700, 6)  # nothing is sampled
SHIFTED = Setting("terrain/3,discount=0.75", "ravi-ucb/mixture-sampled,samples=9,scale=0.1,step_scale=30", 1000, 4)
LINEAR = Setting("linear/8,2,3,discount=0.75", "ravi-ucb/linear,scale=0.1,step_scale=30", 300, 6)
ONE_HOT = Setting("garnet/3,2,3,discount=0.5", "ravi-ucb/linear", 1500, 6, moves=0)  # all Q are at H
WEIGHTED = Setting(WORLD, "ravi-ucb+/mixture,weights=variance,inner=3,eta=0.5,scale=0.01", 200, 5)
WHOLE = Setting(
    "terrain/3,discount=0.75", "ravi-ucb+/mixture,weights=variance,inner=3,eta=0.5,regularization=1e-6", 150, 5
)
# Where H is next to 1, bounds are low enough for a mistake to exceed them.
SHORT_SAMPLED = Setting("fork/2,discount=0.1", "ravi-ucb/mixture-sampled,samples=1", 30, 6, moves=0)
SHORT_LINEAR = Setting("one-state/2,discount=0.1", "ravi-ucb/linear", 60, 6, moves=0)
SHORT_WEIGHTED = Setting("fork/2,discount=0.1", "ravi-ucb+/mixture,weights=variance,inner=2", 60, 6, moves=0)
NAMES = {
    SAMPLED: "sampled", CENTRED: "centred", SPARSE: "sparse", LONG: "long", SHIFTED: "shifted", LINEAR: "linear",
    ONE_HOT: "one-hot", WEIGHTED: "weighted", WHOLE: "whole", SHORT_SAMPLED: "short, sampled",
    SHORT_LINEAR: "short, linear", SHORT_WEIGHTED: "short, weighted",
}  # fmt: skip


# ---- sampled features


def estimated(patch, setting, module=mixture_sampled, name="sampled", **changes):
    """A learner whose estimator has other functions; each is given the sound estimator first."""
    build = getattr(module, name)

    def broken(*given, **more):
        sound = build(*given, **more)
        return sound._replace(**{part: change(sound) for part, change in changes.items()})

    patch.setattr(module, name, broken)
    return setting.build()


def drawn_again(patch, setting):
    draw, build = mixture_sampled.draw, mixture_sampled.sampled
    patch.setattr(mixture_sampled, "draw", lambda problem, m, seed, centre: kept(problem, m, seed, centre))
    again = []

    def kept(problem, m, seed, centre):
        again.append(draw(problem, m, seed + 1, centre=centre))
        return draw(problem, m, seed, centre=centre)

    patch.setattr(mixture_sampled, "sampled", lambda made, lam: build(made, lam)._replace(add=build(again[0], lam).add))
    return setting.build()


def error_of_the_span(patch, setting):
    def embed(sound):
        def made(V):
            phi = sound.embed(V)
            return phi._replace(error=phi.error * (np.ptp(V, axis=-1) / np.maximum(2 * V.max(-1), 1e-9))[:, None, None])

        return made

    return estimated(patch, setting, embed=embed)


def no_bias(patch, setting):
    def add(sound):
        def add(D, V, path):
            sound.add(D, V, path)
            D.bias[:] = 0
            return D

        return add

    return estimated(patch, setting, add=add)


def no_error_of_the_pair(patch, setting):
    learner = setting.build()
    bonus = learner.parts.bonus

    def less(D, phi):
        return bonus(D, phi._replace(error=0 * phi.error))

    return learner._replace(parts=learner.parts._replace(bonus=less))


def old_root(sound):
    def add(D, V, path):
        root = D.root.copy()
        sound.add(D, V, path)
        D.root[:] = root
        return D

    return add


# ---- linear MDPs


def of_linear(patch, setting, **changes):
    return estimated(patch, setting, ravi_ucb_linear, "linear", **changes)


def old_inverse(patch, setting):
    def add(sound):
        def add(D, V, path):
            inverse = D.inverse.copy()
            sound.add(D, V, path)
            D.inverse[:] = inverse
            return D

        return add

    return of_linear(patch, setting, add=add)


# ---- samples weighted by their variance


def of_weights(patch, setting, **changes):
    return estimated(patch, setting, ravi_ucb_plus, "variance_weighted", **changes)


def adding(patch, change):
    """`_add` of the estimator with other arguments: change(its arguments up to W)."""
    add = variance_weighted._add
    patch.setattr(variance_weighted, "_add", lambda *given: add(*change(given[:13]), *given[13:]))


def not_weighted(patch, setting):
    def add(sound):
        base = {}

        def add(D, V, path):
            W = V - V.min(-1, keepdims=True)
            phi = sound.embed(V).inner
            base["plays"] = D.plays.copy()
            kept = D.covariance.copy(), D.response.copy()
            sound.add(D, V, path)
            D.covariance[:], D.response[:] = kept
            for i in range(len(path.length)):
                for l in range(path.length[i]):
                    f = phi[i, path.state[i, l], path.action[i, l]]
                    D.covariance[i] += np.outer(f, f)
                    D.response[i] += f * W[i, path.successor[i, l]]
            return D

        return add

    return of_weights(patch, setting, add=add)


def frozen(name):
    """ADD that leaves this matrix as it was."""

    def change(sound):
        def add(D, V, path):
            before = getattr(D, name).copy()
            sound.add(D, V, path)
            getattr(D, name)[:] = before
            return D

        return add

    return change


ROWS = [
    (
        "successors are drawn by another seed than the learner says",
        "N1a N2a N2d",
        SAMPLED,
        changed(
            mixture_sampled,
            "draw",
            lambda draw, problem, m, seed, centre: draw(problem, m, seed + 1, centre=centre),
        ),
    ),
    ("successors are drawn anew for the regression", "N2a N3", SAMPLED, drawn_again),
    (
        "psi~ is c / q psi: not divided by m",
        "N1a N1c N7",
        SAMPLED,
        changed(sampled, "_weights", lambda weights, q, support, u: weights(q, support, u) * u.shape[1] ** 2),
    ),
    (
        "of a small support the first m columns are kept, not the support",
        "N1a N1b N2a",
        SPARSE,
        changed(
            sampled,
            "_weights",
            lambda weights, q, support, u: np.where(
                support.sum(-1, keepdims=True) <= u.shape[1], 1.0, weights(q, support, u)
            ),
        ),
    ),
    (
        "the error is that of one coordinate",
        "N1b N2b N2d",
        SAMPLED,
        put(sampled, "_largest", lambda D, centre: np.abs(np.maximum(D, 0).sum(1)).min(-1)),
    ),
    ("the error scales with V less its middle, the features with V", "N1b N2d", SAMPLED, error_of_the_span),
    ("the bias of past targets is forgotten", "N2b N2d N4", SAMPLED, no_bias),
    (
        "the bias adds errors, not their squares",
        "N2b",
        SAMPLED,
        changed(sampled, "_add_squares", lambda add, e, size, *rest: add(np.sqrt(e), np.sqrt(size), *rest)),
    ),
    ("regressions use x_{t+1} after a reset, not y_t", "N2a N3", SAMPLED, with_next_states),
    (
        "P_hat V is not given its middle back",
        "N2c N3",
        CENTRED,
        made(estimated, expect=lambda sound: lambda D, phi: sound.expect(D, phi) - phi.middle),
    ),
    ("the bonus does not pay for the pair that is backed up", "N2d S4 S8", SAMPLED, no_error_of_the_pair),
    (
        "y_t is always the first successor",
        "N5 A17 A18",
        SHIFTED,
        by(walked, lambda world, policy: (world._replace(cumulative=0 * world.cumulative + 1), policy)),
    ),
    ("the root of Lambda^-1 is never renewed", "N2c N2d N6 N8", LONG, made(estimated, add=old_root)),
    (
        "steps are added twice",
        "L1a",
        LINEAR,
        made(of_linear, add=lambda sound: lambda D, V, path: sound.add(sound.add(D, V, path), V, path)),
    ),
    ("M holds x_{t+1} after a reset, not y_t", "L1a L1b", LINEAR, with_next_states),
    (
        "P_hat V is cut to [min V, max V] behind one's back",
        "L1b L2",
        LINEAR,
        made(
            of_linear,
            expect=lambda sound: (
                lambda D, V: np.clip(sound.expect(D, V), *(part(-1)[:, None, None] for part in (V.min, V.max)))
            ),
        ),
    ),
    (
        "beta has sqrt(d) in place of d",
        "L1c",
        LINEAR,
        changed(ravi_ucb_linear, "bonus_factor", lambda factor, H, d, T, delta: factor(H, d, T, delta) / d**0.5),
    ),
    (
        "the bonus is beta times the squared norm of phi",
        "L1c A1",
        LINEAR,
        made(of_linear, width=lambda sound: lambda D, V: sound.width(D, V) ** 2),
    ),
    ("the inverse of Lambda is never renewed", "L1b L1c L2 L4 L5", ONE_HOT, old_inverse),
    ("y_t is drawn for another action, in a linear MDP", "L3 S9b", ONE_HOT, for_another_action),
    (
        "the second regression is of W, not of its square",
        "W1b",
        WEIGHTED,
        by(adding, lambda given: (*given[:11], given[10], given[12])),
    ),
    ("targets are V, not V - min V", "W1a", WEIGHTED, by(adding, lambda given: (*given[:12], given[12] + 1.0))),
    (
        "radii are for delta, not for delta / 3",
        "W1d",
        WEIGHTED,
        changed(ravi_ucb_plus, "of_variances", lambda build, e, c: build(e, c._replace(delta=3 * c.delta))),
    ),
    (
        "P_hat V starts from the middle of V, not from min V",
        "W1c",
        WEIGHTED,
        made(of_weights, expect=lambda sound: lambda D, phi: sound.expect(D, phi) + (phi.high - phi.low) / 2),
    ),
    ("samples have weight 1", "W1a W2c", WHOLE, not_weighted),
    ("Sigma_tilde never grows", "W1b W2a", WHOLE, made(of_weights, add=frozen("second_covariance"))),
    ("Sigma_hat never grows", "W1a W2b W2d", WHOLE, made(of_weights, add=frozen("covariance"))),
    # the bounds
    ("rho* is in millionths (sampled features)", "N9", SHORT_SAMPLED, in_millionths),
    ("rho* is in millionths (a linear MDP)", "L6", SHORT_LINEAR, in_millionths),
    ("rho* is in millionths (weights by variance)", "W4", SHORT_WEIGHTED, in_millionths),
    (
        "S, what bonuses may sum to, is a thousandth",
        "W3",
        SHORT_WEIGHTED,
        changed(mixture, "clipped_bonus_sum", lambda sound, *given, **more: sound(*given, **more) / 1000),
    ),
]
mutation = Mistakes(NAMES, ROWS, ", in a regression of another kind")
