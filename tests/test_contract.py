"""What every learner must do, now and later. A learner joins by having an id."""

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.engine import resume, run
from ravi.runs import Run
from tests.helpers import assert_same_bits, bits, dense, spy

T = 400
MDPS = ("riverswim/mixture/5,discount=0.9", "ensemble/3,12,2,2,discount=0.8")
OPTIONS = {
    "ravi-ucb": ["scale=0.003,step_scale=30"],
    "ravi-ucb/mixture": ["scale=0.02,step_scale=30"],
    "ucrl2": ["scale=0.1", "scale=0.1,mode=blind", "scale=0.1,planning=discounted"],
    "ucrl2b": ["scale=0.1"],
    "kl-ucrl": ["scale=0.01", "scale=0.01,planning=discounted"],
    "scal": ["scale=0.03,span=0.3", "scale=0.03,span=0.3,mode=blind"],
    "scal+": ["scale=0.02,span=0.5"],
    "r-max": ["m=3", "m=0"],
    "mbie": ["scale=0.1"],
    "mbie-eb": ["scale=0.03"],
    "ucbvi-gamma": ["scale=0.005", "scale=0.005,third_term=off"],
    "psrl": ["schedule=doubling"],
    "delayed-q": ["m=1"],
    "ucb-q": ["scale=0.0003"],
    "liu-su": ["scale=0.0003"],
    "q-learning": ["initial=optimistic"],
    "politex": ["step_scale=30"],
    "md-mpi": ["scale=0.003,step_scale=30,sweeps=3", "scale=0.003,step_scale=30,sweeps=0,evaluation=plain"],
    "npg": ["scale=0.003,step_scale=3"],
    "mdp-e": ["step_scale=10"],
    "o-reps": ["step_scale=10"],
    "ravi-ucb/known": ["step_scale=30"],
    "uclk": ["scale=0.01", "scale=0.01,inner=null-space", "scale=0.01,inner=relaxed"],
    "uclk+": ["scale=0.001"],
    "uclk-c": ["scale=0.001,span=2"],
    "threshold": ["scale=0.01"],
    "ucrl-vtr": ["scale=0.03", "scale=0.03,replan=determinant"],
    "oppo": ["scale=0.03,step_scale=30"],
    "lsvi-ucb": ["scale=0.01", "scale=0.01,replan=determinant"],
    "olsvi-fh": ["scale=0.01"],
    "gamma-lscvi-ucb": ["scale=0.01", "scale=0.01,variant=staged"],
    "rlsvi": ["scale=0.1"],
    "fixed-point-lsvi": ["scale=0.003"],
    "fopo": ["scale=0.0001"],
    "mdp-exp2": ["phase=2,step_scale=3000"],
    "rmax-ravi-ucb": ["scale=0.001,step_scale=300", "scale=0.001,step_scale=300,ascension=sigmoid"],
}  # ones that move
LEARNERS = [
    f"{name}{',' + option if option else ''}" for name in ids.LEARNERS for option in ["", *OPTIONS.get(name, [])]
]

pytestmark = [pytest.mark.parametrize("mdp", MDPS), pytest.mark.parametrize("learner", LEARNERS)]


def test_the_same_key_gives_the_same_run(learner, mdp):
    assert_same_bits(bits(run(learner, mdp, T, [3])), bits(run(learner, mdp, T, [3])))


def test_a_batch_does_not_change_a_seed(learner, mdp):
    batch = run(learner, mdp, T, [5, 3, 11, 4], record=["stream"])
    for row, seed in enumerate(batch.seeds):
        assert_same_bits(bits(run(learner, mdp, T, [seed], record=["stream"])), bits(batch, row))


def test_different_keys_give_different_runs(learner, mdp):
    made = run(learner, mdp, T, 2, record=["stream"])
    assert any(
        (made.results[f"stream_{name}"][0] != made.results[f"stream_{name}"][1]).any()
        for name in ("state", "action", "successor", "reset")
    )


def test_a_resumed_run_equals_an_uninterrupted_one(learner, mdp, tmp_path):
    whole = run(learner, mdp, T, 3, pad=True, record=["trajectory"])
    stopped = run(learner, mdp, T, 3, pad=True, record=["trajectory"], pause=100)
    assert (stopped.plays >= 100).all()
    last = max(next(k for k, t in enumerate([*starts[1:], T + 1]) if t > 100) for starts in whole.T_k)  # epoch, from 0
    assert stopped.complete == all(len(starts) <= last + 1 for starts in whole.T_k)
    file = tmp_path / "stopped.run"
    stopped.save(file)
    for half in (stopped, Run.load(file)):
        again = resume(resume(half, learner, mdp, pause=250), learner, mdp)
        assert again.complete
        for row in range(3):
            assert_same_bits(bits(whole, row), bits(again, row))


def test_policies_are_policies_and_values_stay_in_range(learner, mdp):
    seen = []
    world = ids.mdp(mdp)
    run(learner, world, T, 3, measures=[spy(seen)])
    H = world.horizon
    for state, _ in seen:
        assert (state.policy >= 0).all()
        np.testing.assert_allclose(state.policy.sum(-1), 1, rtol=0, atol=1e-12)
        for name in ("Q", "V"):
            values = getattr(state, name, np.zeros(1))
            assert (values >= 0).all()
            assert (values <= H * (1 + 1e-12)).all()


def test_exactly_T_plays_that_follow_one_another(learner, mdp):
    world = ids.mdp(mdp)
    made = run(learner, world, T, 3, record=["stream"])
    assert (made.plays == T).all()
    x, a, y, reset = (made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset"))
    assert x.shape == (3, T)
    assert (x >= 0).all()
    assert (x[:, 1:] == np.where(reset[:, :-1], x[:, 1:], y[:, :-1])).all()  # x_{t+1} = y_t unless a reset follows
    assert (world.initial[x[:, 1:][reset[:, :-1]]] > 0).all()  # and then it is drawn from nu_0
    slots = (world.successors[x, a] == y[..., None]).argmax(-1)
    assert (world.transitions[x, a, slots] > 0).all()  # y_t is a true successor, also where a reset follows


def test_resets_are_common_to_all_learners(learner, mdp):
    made = run(learner, mdp, T, 3, record=["stream"])
    other = run("uniform", mdp, T, 3, record=["stream"])
    assert (made.results["stream_reset"] == other.results["stream_reset"]).all()


def test_no_learner_sees_the_transitions(learner, mdp):
    world = ids.mdp(mdp)
    assert not hasattr(world.problem, "transitions")
    assert not hasattr(world.problem, "parameter")
    if ids.LEARNERS[learner.split(",")[0]].oracle:
        return
    weights = np.roll(world.parameter, 1)  # another truth behind the same problem
    other = MDP.from_features(
        world.features, weights, world.successors, world.rewards, world.discount, world.initial,
        parameter_bound=world.parameter_bound, feature_bound=world.feature_bound, name=world.name,
    )  # fmt: skip
    built_there, built_here = ids.learner(learner, other, T), ids.learner(learner, world, T)
    assert built_there.settings == built_here.settings
    assert_same_bits(bits(run(built_there, world, T, 1)), bits(run(built_here, world, T, 1)))


def value(world, pi):
    """V^pi at age 0, by dense algebra; pi is (X, A), or (S, X, A) by age."""
    P, stages = dense(world), pi if pi.ndim == 3 else pi[None]
    M = np.eye(world.states) - world.discount * np.einsum("xa,xay->xy", stages[-1], P)
    V = np.linalg.solve(M, (stages[-1] * world.rewards).sum(-1))
    for stage in stages[-2::-1]:
        V = (stage * (world.rewards + world.discount * P @ V)).sum(-1)
    return V


def test_regret_is_that_of_the_policies_played(learner, mdp):
    world = ids.mdp(mdp)
    seen = []
    made = run(learner, world, T, [7], measures=[spy(seen)])
    lengths = np.diff([*made.T_k[0], T + 1])
    total = 0.0
    for (state, _), length in zip(seen, lengths, strict=True):
        total += length * (made.optimum - (1 - world.discount) * world.initial @ value(world, state.policy[0]))
    assert abs(made.regret[0] - total) <= made.regret_error[0] + 1e-9
    assert made.regret_error[0] < 1e-6
    assert made.regret_curve[0, -1] == pytest.approx(made.regret[0], abs=1e-9)
