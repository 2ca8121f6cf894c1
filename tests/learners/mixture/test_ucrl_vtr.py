"""UCRL-VTR against its literal transcription, a tabular one, closed forms, and what its radius promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.estimators.by_age import checked, learn
from ravi.estimators.gram import gram
from ravi.learners.mixture.ucrl_vtr import ucrl_vtr
from ravi.mdps import garnets, hypercube, queue, riverswim_mixture, terrain
from ravi.planning.backward import greedy_pass, lists
from ravi.planning.evaluation import effective_horizon, staged_values
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.runtime.walk import empty_path
from ravi.validation import InputError
from tests.helpers import spy
from tests.literal import staged


def untied(mdp):
    """Other rewards, so that no two actions are alike: rounding must not choose between them."""
    r = np.random.default_rng(0).uniform(size=mdp.rewards.shape)
    return replace(mdp, rewards=0.9 * mdp.rewards + 0.1 * r)


MDPS = {
    "riverswim": lambda: riverswim_mixture(5, 0.9),
    "riverswim, short epochs": lambda: riverswim_mixture(4, 0.6),
    "hypercube": lambda: untied(hypercube(4, 0.8)),
    "ensemble": lambda: garnets(3, 6, 3, 3, 2, 0.8),
    "terrain": lambda: untied(terrain(3, 2, 0.8)),
    "queue": lambda: queue(5, 2, 0.8),
}


def literal_arguments(mdp):
    psi = np.zeros((mdp.states, mdp.actions, mdp.states, mdp.dimension))
    np.put_along_axis(psi, mdp.successors.astype(np.int64)[..., None], mdp.features, axis=2)
    return psi.tolist(), mdp.parameter.tolist(), mdp.rewards.tolist(), mdp.discount, mdp.initial.tolist()


def compared(mdp, learner, T, seed, epochs):
    """A run and its literal twin, epoch by epoch: (state, what the literal yields) pairs."""
    seen = []
    made = run(learner, mdp, T, [seed], record=["stream"], measures=[spy(seen)])
    stream = list(zip(*(made.results[f"stream_{name}"][0] for name in ("state", "action", "successor")), strict=True))
    epochs = list(epochs)
    assert made.T_k[0].tolist() == [epoch[0] for epoch in epochs]
    assert stream == [triple for epoch in epochs for triple in epoch[5]]
    assert len(stream) == T
    for (state, _), (_, theta, beta, V, pi, *_) in zip(seen, epochs, strict=True):
        np.testing.assert_allclose(state.theta[0], theta, rtol=0, atol=1e-8)
        np.testing.assert_allclose(state.beta[0], beta, rtol=1e-10)
        np.testing.assert_allclose(state.V[0], V, rtol=0, atol=1e-7)
        np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-7)
    return [(state, epoch) for (state, _), epoch in zip(seen, epochs, strict=True)]


@pytest.mark.parametrize("name", MDPS)
@pytest.mark.parametrize(
    ("scale", "lam", "replan"), [(1.0, 1.0, "reset"), (0.03, 0.5, "reset"), (0.03, 2.0, "determinant")]
)
def test_a_run_is_the_literal_algorithm(name, scale, lam, replan):
    mdp, T, seed = MDPS[name](), 250, 7
    learner = ucrl_vtr(mdp.problem, T, scale=scale, regularization=lam, truncation=0.1, replan=replan)
    made = learner.settings
    assert made["delta"] == 1 / T
    assert learner.stages == effective_horizon(mdp.problem, 0.1) == made["stages"]
    epochs = staged.ucrl_vtr(
        *literal_arguments(mdp), T, learner.stages, scale, 1 / T, lam, mdp.parameter_bound, seed, replan != "reset"
    )
    pairs = compared(mdp, learner, T, seed, epochs)
    plans = {epoch[2] for _, epoch in pairs}  # beta grows with Lambda
    if replan == "reset":
        assert len(plans) == len(pairs)
    else:
        assert len(plans) < len(pairs)
    if scale < 0.1:
        assert (pairs[-1][0].V[0, 0] < 0.99 * mdp.horizon).any()  # the comparison is not of truncated values alone


@pytest.mark.parametrize("name", MDPS)
@pytest.mark.parametrize("truncation", [1.0, 0.01])
def test_with_theta_known_the_plan_is_optimal_up_to_what_lies_beyond_the_stages(name, truncation):
    mdp = MDPS[name]()
    S = effective_horizon(mdp.problem, truncation)
    beyond = mdp.discount**S * mdp.horizon
    assert beyond <= truncation < beyond / mdp.discount
    V, policy = np.zeros((1, S + 1, mdp.states)), np.zeros((1, S, mdp.states, mdp.actions))
    theta, inverse = mdp.parameter[None], np.eye(mdp.dimension)[None]
    given = mdp.rewards, mdp.discount, mdp.horizon, theta, inverse, np.zeros(1), np.ones(1, bool)
    greedy_pass(lists(mdp.problem), *given, V, policy)
    best = solve(mdp, tol=1e-12).V
    assert (V[0, 0] <= best + 1e-9).all()
    assert (V[0, 0] >= best - beyond - 1e-9).all()
    W, _, _ = staged_values(mdp, policy)
    assert (W[0, 0] >= best - beyond - 1e-9).all()
    assert (W[0, 0] <= best + 1e-9).all()
    assert (policy[0, S - 1].argmax(-1) == mdp.rewards.argmax(-1)).all()  # the last stage is greedy in r


def test_the_lists_hold_the_features():
    for make in MDPS.values():
        mdp = make()
        psi, d = lists(mdp.problem), mdp.dimension
        again = np.zeros((mdp.states * mdp.actions, mdp.states, d))
        for j, many in enumerate(psi.count):
            for q in range(many):
                for e in range(psi.start[j, q], psi.start[j, q + 1]):
                    again[psi.pair[q], psi.successor[e], psi.coordinate[j, q]] += psi.value[e]
        full = np.zeros((mdp.states, mdp.actions, mdp.states, d))
        np.put_along_axis(full, mdp.successors.astype(np.int64)[..., None], mdp.features, axis=2)
        assert (again == full.reshape(again.shape)).all()
        assert (psi.pair[psi.rank] == np.arange(psi.pair.size)).all()


def violations(scale, delta, seeds, T=1500):
    """Seeds of which theta leaves the ellipsoid of some plan."""
    mdp, total = riverswim_mixture(4, 0.8), 0
    learner = ucrl_vtr(mdp.problem, T, scale=scale, delta=delta, truncation=0.5)
    for first in range(0, seeds, 50):  # few enough to be run side by side
        seen = []
        run(learner, mdp, T, range(first, first + 50), measures=[spy(seen)])
        out = np.zeros(50, bool)
        for state, _ in seen:
            error = mdp.parameter - state.theta
            out |= np.sqrt(np.einsum("ni,nij,nj->n", error, state.data.covariance, error)) > state.beta
        total += out.sum()
    return total


def test_the_ellipsoid_covers_theta_as_often_as_promised():
    """At all plans at once with probability 1 - delta. If it were so, more than `most` of 200 seeds would be out with
    probability below 1e-6; an ellipsoid of a sixteenth of the radius is caught."""
    delta, seeds = 0.1, 200
    most = binom.isf(1e-6, seeds, delta)
    assert violations(1.0, delta, seeds) <= most
    assert violations(1 / 16, delta, seeds) > most


def test_ages_go_on_along_a_path_and_start_anew_after_a_reset():
    mdp, S, began = riverswim_mixture(4, 0.8), 3, 1
    rng = np.random.default_rng(2)
    V, path, data = rng.uniform(0, 5, (1, S + 1, 4)), empty_path(1, 8), gram(1, 3, 1.0, 4, moves=False)
    path.state[:], path.action[:], path.successor[:] = (rng.integers(0, k, (1, 8)) for k in (4, 2, 4))
    path.reset[0, [4, 5]] = True
    path.length[:] = 8
    learn(lists(mdp.problem), data, np.zeros(1, np.int64), V, np.full(1, began, np.int32), path)
    psi, Lam, b = np.array(literal_arguments(mdp)[0]), np.eye(3), np.zeros(3)
    for l, stage in enumerate([1, 2, 2, 2, 2, 0, 0, 1]):  # ages 1, 2, 3, 4, 5, reset, 0, reset, 0, 1
        v = V[0, stage + 1]
        phi = v @ psi[path.state[0, l], path.action[0, l]]
        Lam, b = Lam + np.outer(phi, phi), b + phi * v[path.successor[0, l]]
    np.testing.assert_allclose(data.covariance[0], Lam, rtol=1e-12)
    np.testing.assert_allclose(data.response[0], b, rtol=1e-12)


def test_a_wrong_determinant_is_put_right_at_the_next_renewal():
    """And an inverse that is wrong by less than is seen at a plan."""
    mdp = riverswim_mixture(4, 0.8)
    learner = ucrl_vtr(mdp.problem, 3000)

    def init(keys):
        state = learner.init(keys)
        state.data.inverse[:] *= 1 + 1e-8
        state.data.log_det[:] += 1.0
        return state

    for T, right in ((999, False), (1000, True), (2500, True)):
        data = run(learner._replace(init=init), mdp, T, 1, measured=False).state.data
        np.testing.assert_allclose(data.inverse[0], np.linalg.inv(data.covariance[0]), rtol=1e-6)
        assert (abs(data.log_det[0] - np.linalg.slogdet(data.covariance[0])[1]) < 1e-9) == right


# Rounding


def drifted(d=4, n=3):
    """Lambda of 50 features, and its inverse."""
    rng, D = np.random.default_rng(2), gram(n, d, 0.5, 5, moves=False)
    F = rng.uniform(0, 3, (n, 50, d))
    D.covariance[:] += np.einsum("ntj,ntk->njk", F, F)
    D.inverse[:] = np.linalg.inv(D.covariance)
    D.log_det[:] = np.linalg.slogdet(D.covariance)[1]
    return D


@pytest.mark.parametrize("spoil", [1 + 1e-6, -1.0, 0.0, np.nan])
def test_an_inverse_that_has_drifted_is_computed_anew_for_its_seed_alone(spoil):
    D, right = drifted(), drifted()
    checked(D)
    assert all((one == other).all() for one, other in zip(D, right, strict=True))  # nothing to do
    D.inverse[1, :, 2] *= spoil
    D.inverse[1, 2] = D.inverse[1, :, 2]
    D.log_det[1] = 7.0
    checked(D)
    np.testing.assert_allclose(D.inverse[1], right.inverse[1], rtol=1e-10)
    np.testing.assert_allclose(D.log_det, right.log_det, rtol=1e-12)
    for i in (0, 2):
        assert (D.inverse[i] == right.inverse[i]).all()
    D.log_det[2] = np.nan
    np.testing.assert_allclose(checked(D).log_det, right.log_det, rtol=1e-12)


@pytest.mark.parametrize("covariance", [np.ones((4, 4)), np.full((4, 4), np.nan), 1e16 * np.ones((4, 4)) + np.eye(4)])
def test_a_matrix_without_an_inverse_in_working_precision_is_refused(covariance):
    D = drifted()
    D.covariance[1] = covariance
    with pytest.raises(InputError, match="positive definite"):
        checked(D)


@pytest.mark.parametrize("learner", ["ucrl-vtr", "oppo"])
def test_with_little_regularization_plans_are_made_with_the_inverse(learner):
    """Where Sherman and Morrison's formula, which goes on for 900 plays, is off by 16 percent."""
    mdp, seen = ids.mdp("ensemble/3,5,2,2,discount=0.9"), []
    run(f"{learner},regularization=1e-8", mdp, 900, 2, measures=[spy(seen)])
    for state, _ in seen:
        np.testing.assert_allclose(state.data.inverse @ state.data.covariance.sum(-1)[..., None], 1, atol=1e-2)
        assert np.isfinite(state.policy).all()
