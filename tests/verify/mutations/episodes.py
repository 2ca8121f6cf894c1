"""Mistakes that learners in episodes could make, with the claims that must catch them."""

from dataclasses import replace

import numpy as np

from ravi import ids
from ravi.runtime import world as worlds
from ravi.theory import episodes as theory
from ravi.verify import sets
from tests.verify.mutations import Mistakes, Setting, around, changed, put
from tests.verify.mutations.sets import another_action

GARNET, SEA = "garnet/3,2,3,criterion=episodic,episode=4", "deep-sea/4,criterion=episodic,episode=4"
KL = Setting(GARNET, "ravi-kl,support=off", 400, 4)
KL_GREEDY = Setting(GARNET, "ravi-kl,plan=greedy,support=off", 400, 4)
UCB = Setting(GARNET, "ravi-ucb", 400, 4, moves=0)
UCBVI = Setting(GARNET, "ucbvi", 400, 4, moves=0)
BEST = Setting(SEA, "optimum", 400, 4)
LONG = Setting("garnet/5,3,3,criterion=episodic,episode=3", "ravi-kl,plan=greedy", 1600, 8)
NAMES = {
    KL: "episodes, slack", KL_GREEDY: "episodes, greedy", UCB: "episodes, RAVI-UCB", UCBVI: "episodes, UCBVI",
    BEST: "episodes, optimum", LONG: "episodes, long",
}  # fmt: skip


def after(change):
    """A learner whose plan is followed by change(state)."""

    def of(learner):
        def plan(state):
            state = learner.plan(state)
            change(state)
            return state

        return learner._replace(plan=plan)

    return around(of)


def times(factor, stages=None):
    """V is so many times as large, at the first stages or at all."""

    def change(state):
        state.V[:, :stages] *= factor

    return after(change)


def frozen(state):
    state.data.visits[:] = np.minimum(state.data.visits, 1)


def one_stage_ahead(state):
    state.age[:] = 1


def another_optimum(patch, setting):
    """The regret is measured against a larger one."""
    was = worlds.regret

    def regret(mdp, T, points, found, **more):
        return was(mdp, T, points, replace(found, optimum=found.optimum + 0.1), **more)

    patch.setattr(worlds, "regret", regret)
    return setting.build()


def narrow(patch, setting):
    """The learner with radii of a millionth."""
    return ids.learner(f"{setting.learner},scale=0.000001", ids.mdp(setting.mdp), setting.steps)


def nothing(*given):
    return 0.0


ROWS = [
    ("the optimum is a tenth larger", "E1", KL, another_optimum),
    ("the policy of the stage after is played", "E2", BEST, after(one_stage_ahead)),
    ("plays after the first are not counted", "E3", KL, after(frozen)),
    ("the same, in the sum of widths", "E4", KL, after(frozen)),
    ("V is half as large", "E10", KL, times(0.5)),
    ("another action is played", "E11", KL_GREEDY, around(another_action)),
    ("the sets allow for twice as much", "E12", KL,
     changed(sets, "largest", lambda was, *given: 2 * was(*given))),
    ("the bound of RAVI-KL has the other sign", "E14", KL,
     changed(theory, "ravi_kl", lambda was, *given: -was(*given))),
    ("radii are a millionth", "E13", LONG, narrow),
    ("V is a tenth", "E7", UCB, times(0.1)),
    ("V_0 is a thousand times as large", "E8", UCB, times(1e3, stages=1)),
    ("the bound of RAVI-UCB has no parts", "E9", UCB, put(theory, "ravi_ucb", nothing)),
    ("V of UCBVI is a tenth", "E5", UCBVI, times(0.1)),
    ("the bound of UCBVI has no parts", "E6", UCBVI, put(theory, "ucbvi", nothing)),
]  # fmt: skip
mutation = Mistakes(NAMES, ROWS, ", in episodes")
