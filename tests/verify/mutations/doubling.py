"""Mistakes of a learner that does not know T: each a small change, with the claims that must catch it.

As in `paper.py`; phases are broken where the learner finds them (the names in `ravi.learners.ravi_ucb.doubling`): the
claims find constants and phases anew, and stay sound.
"""

from types import SimpleNamespace

import numpy as np

from ravi.learners.ravi_ucb import doubling, ravi_ucb
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb.doubling import Phases
from ravi.runtime import tree
from ravi.theory import constants
from tests.verify.mutations import Mistakes, Setting, by, changed, put

PHASES = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb/doubling,first=20,scale=0.03,step_scale=60", 160, 6)
SEVERAL = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb+/doubling,inner=3,step_scale=5", 100, 6)
REGRESSION = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture/doubling,inner=3,step_scale=5", 90, 6)
PAPERS = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture/doubling,scale=0.1,step_scale=30", 100, 6)
RING = Setting("ring/1,discount=0.8", "ravi-ucb+/doubling,inner=3", 150, 6)
# Two states and next to no discount: here the bounds are below T.
SHORT = Setting("trap,discount=0.01", "ravi-ucb+/doubling,first=30,inner=2", 100, 6)
NAMES = {
    PHASES: "phases", SEVERAL: "several backups", REGRESSION: "regression in phases", PAPERS: "Algorithm 3 in phases",
    RING: "ring in phases", SHORT: "short",
}  # fmt: skip


class Theory:
    """`theory.doubling` as the learner sees it, with something else in it."""

    def __init__(self, **broken):
        self.__dict__.update(broken)

    def __getattr__(self, name):
        from ravi.theory import doubling as sound

        return getattr(sound, name)


# ---- which phase it is


def late(patch, setting):
    sound = doubling.begin

    def begin(phases, s):
        shifted = s._replace(time=s.time - 10)
        sound(phases, shifted)  # writes to all other arrays in place

    patch.setattr(doubling, "begin", begin)
    return setting.build()


def one_by_one(patch, setting):
    sound = doubling.begin

    def begin(phases, s):
        before = s.phase.copy()
        sound(phases, s)
        s.phase[:] = np.minimum(s.phase, before + 1)

    patch.setattr(doubling, "begin", begin)
    return setting.build()


# ---- how a phase begins


def kept(patch, *names):
    """What a phase ends with goes on in the next."""
    sound = doubling.begin

    def begin(phases, s):
        before = {name: getattr(s, name).copy() for name in names}
        sound(phases, s)
        for name, array in before.items():
            getattr(s, name)[:] = array

    patch.setattr(doubling, "begin", begin)


def forgotten(patch):
    """Data begin anew with a phase."""
    sound = doubling.begin

    def begin(phases, s):
        before = s.phase.copy()
        sound(phases, s)
        now = before != s.phase
        fresh = phases.learner(0).init(s.key).data
        tree.put(s.data, fresh, now)

    patch.setattr(doubling, "begin", begin)


# ---- the constants of a phase


def first_beta(patch, setting):
    beta = constants.beta_mixture
    broken = {"beta_mixture": lambda H, d, T, delta, **bounds: beta(H, d, 1, 1, **bounds)}
    patch.setattr(ravi_ucb, "constants", SimpleNamespace(**(vars(constants) | broken)))
    return setting.build()


# ---- plans of several phases at once


def planned(patch, change):
    """Plans in which the learner of a phase is another's."""
    sound = Phases.__call__
    patch.setattr(Phases, "__call__", lambda self, s: change(sound, self, s))


def latest(patch, setting):
    def change(sound, self, s):
        doubling.begin(self, s)
        phase = s.phase.copy()
        return sound(self, s._replace(phase=np.full_like(phase, phase.max())))._replace(phase=phase)

    planned(patch, change)
    return setting.build()


def mixed_up(patch, setting):
    def change(sound, self, s):
        done = sound(self, s)
        if len(np.unique(done.phase)) > 1:
            for name in ("V", "policy", "V_last", "Q", "log_policy", "last_policy"):
                array = getattr(done, name)
                array[:] = array[::-1].copy()
        return done

    planned(patch, change)
    return setting.build()


def drawn_anew(patch, setting):
    def change(sound, self, s):
        doubling.begin(self, s)
        time = s.time.copy()
        return sound(self, s._replace(time=time - (1 << s.phase) + 1))._replace(time=time)

    planned(patch, change)
    return setting.build()


# ---- the lemmas and the bounds


def too_small(patch, setting):
    of_span = ravi_ucb_plus.of_span

    def small(*given, **more):
        whole = of_span(*given, **more)
        return lambda D, phi: whole(D, phi) / 50

    patch.setattr(ravi_ucb_plus, "of_span", small)
    return setting.build()


ROWS = [
    # which phase it is
    ("a phase goes on for ten steps too long", "B1", PHASES, late),
    ("phases that an epoch passes over are not skipped", "B1", SEVERAL, one_by_one),
    (
        "there is one phase only, which goes on for ever",
        "B1 B2",
        PHASES,
        put(doubling, "begin", lambda phases, s: None),
    ),
    (
        "V and pi go on from one phase to the next",
        "B2 V7a",
        PHASES,
        by(kept, "V_last", "Q", "log_policy", "last_policy"),
    ),
    ("pi goes on from one phase to the next, V does not", "B2 V7a", REGRESSION, by(kept, "log_policy", "last_policy")),
    ("V goes on from one phase to the next, pi does not", "B2 V7a", SEVERAL, by(kept, "V_last")),
    ("counts begin anew with a phase", "V2a V2c V2e", PHASES, by(forgotten)),
    ("Lambda and b begin anew with a phase", "V2b", REGRESSION, by(forgotten)),
    # the constants of a phase
    (
        "the union bound is over the steps of the phase, not over all",
        "V2d",
        PHASES,
        put(doubling, "theory", Theory(end=lambda i, l: l << i)),
    ),
    (
        "the determinant is bounded for the steps of the phase, not for all",
        "V2d",
        PAPERS,
        put(doubling, "theory", Theory(end=lambda i, l: l << i)),
    ),
    (
        "delta is 1 / (2 l_i)",
        "V2d",
        REGRESSION,
        changed(ravi_ucb_plus.linear_mixture, "of", lambda sound, p, T, o: sound(p, T, o._replace(delta=o.delta / 2))),
    ),
    ("beta is that of phase 0 for ever", "V2d", PAPERS, first_beta),
    (
        "eta is that of phase 0 for ever",
        "B3",
        PHASES,
        changed(ravi_ucb, "theorem_step", lambda sound, o, problem, T: sound(o, problem, 20)),
    ),
    (
        "eta is that of S_{i+1} steps",
        "B3",
        SEVERAL,
        put(doubling, "theory", Theory(length=lambda i, l: (l << i + 1) - l)),
    ),
    ("all seeds are planned by the learner of the latest phase", "V7a", PHASES, latest),
    ("seeds of two phases are mixed up", "V7a V7b", PHASES, mixed_up),
    ("m is drawn by the step of the phase, not by that of the run", "V7b", SEVERAL, drawn_anew),
    # the lemmas and the bounds
    ("the bonus is a fiftieth", "V2d V3 V4", RING, too_small),
    (
        "the bonus is H, whatever was seen",
        "V2d B4 B5 B5s",
        SHORT,
        put(ravi_ucb_plus, "_finished", lambda bonus, problem, on: lambda D, phi: 0.0 * D.visits + problem.horizon),
    ),
    (
        "Q is made for 1 - r",
        "V1b B5 B5s V4a V4b V6b V6 V6c",
        SHORT,
        changed(ravi_ucb, "backup", lambda sound, r, CB, gamma, PV, H: sound(1 - r, CB, gamma, PV, H)),
    ),
]
mutation = Mistakes(NAMES, ROWS, ", in phases")
