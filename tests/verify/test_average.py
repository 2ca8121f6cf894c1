"""Claims in the average reward hold of what is there, and each fails with a mistake."""

from dataclasses import replace

import numpy as np
import pytest

from ravi.verify import AVERAGE, OPTIMISTIC, average, form_of, verify

GARNET, RIVER = "garnet/3,2,3,criterion=average", "riverswim/4,criterion=average"
CASES = [
    ("ravi-kl", GARNET), ("ravi-kl,plan=greedy,support=off", RIVER), ("ravi-kl/unknown-rewards", GARNET),
    ("ucrl2", GARNET), ("ucrl2,support=on", GARNET), ("psrl", RIVER), ("optimistic-q/average,span=2,scale=0.01", RIVER),
]  # fmt: skip


@pytest.mark.parametrize(("learner", "mdp"), CASES)
def test_every_claim_holds(learner, mdp):
    report = verify(learner, mdp, 300, 6)
    assert report.holds, str(report)
    assert len(report.rows) == (len(OPTIMISTIC) if "kl" in learner else 2 if learner == "ucrl2" else 1)


def another_action(form):
    """It plays, in every state, the action after the one that it planned."""

    def plan(state):
        state = form.learner.plan(state)
        state.policy[:] = np.roll(state.policy, 1, axis=-1)
        return state

    return form._replace(learner=form.learner._replace(plan=plan))


def with_setting(form, **wrong):
    return form._replace(setting=form.setting._replace(**wrong))


def wrong_truth(form, **wrong):
    return with_setting(form, average=form.setting.average._replace(**wrong))


def large_gain(form):
    best = form.setting.solution
    return with_setting(form, solution=replace(best, gain=best.gain + 0.3))


MISTAKES = {  # of RAVI-KL, and the claim that notices each
    "another action": ("G5", another_action),
    "another optimum": ("G3", large_gain),
    "another identity": ("G1", large_gain),
    "another diameter": ("G4", lambda form: wrong_truth(form, diameter=0.1)),
    "another kernel": ("G6", lambda form: with_setting(form, P=np.roll(form.setting.P, 1, axis=0))),
    "a small bound": ("G8", lambda form: wrong_truth(form, diameter=-1e3)),
}


@pytest.mark.parametrize(("id", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_noticed(id, mistake, monkeypatch):
    if id == "G8":  # the theorem's bound, with nothing in it: any regret is more
        monkeypatch.setattr(average.theory, "average", lambda *given, **more: 0.0)
    form = mistake(form_of("ravi-kl,plan=greedy", GARNET, 300))
    (claim,) = (claim for claim in OPTIMISTIC if claim.id == id)
    assert not form.report([claim], 4, None).holds


def test_radii_that_are_too_small_are_noticed():
    """A millionth of them: plans are invalid at more steps than the levels allow for."""
    form = form_of("ravi-kl,plan=greedy,scale=0.000001", GARNET, 600)
    (claim,) = (claim for claim in OPTIMISTIC if claim.id == "G7")
    assert not form.report([claim], 12, None).holds


def test_a_regret_above_that_of_ucrl2_is_noticed():
    form = wrong_truth(form_of("ucrl2", GARNET, 300), ucrl2=0.5)
    assert not form.report([AVERAGE[1]], 4, None).holds
