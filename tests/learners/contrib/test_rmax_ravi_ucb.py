"""RMAX-RAVI-UCB: its literal transcription, the bound on its values, its phases and its limits."""

from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.estimators.gram import Gram, gram, renew
from ravi.estimators.linear import features_of
from ravi.learners.contrib.rmax_ravi_ucb import rmax_ravi_ucb
from ravi.planning.mirror import mirror_step
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense, spy
from tests.literal import linear_learners as literal


def small(seed=3, X=6, A=3, d=3, discount=0.8):
    """A linear MDP of simplex features."""
    rng = np.random.default_rng(seed)
    phi, m = rng.dirichlet(np.ones(d), (X, A)), rng.dirichlet(np.ones(X) / 2, d)
    return MDP.from_linear(phi, m, rng.uniform(size=d), discount, np.full(X, 1 / X), name="small")


WORLDS = {"linear": small(), "pairs": ids.mdp("riverswim/4,discount=0.9")}


def exact(world, per_pair, lam):
    """Data as if every pair had been played `per_pair` times, with successors as likely as they are."""
    phi = features_of(world.problem)[0]
    D = gram(1, phi.shape[-1], lam, world.states, moves=True)
    D.covariance[0] += per_pair * np.einsum("xaj,xak->jk", phi, phi)
    D.moves[0] = per_pair * np.einsum("xaj,xay->jy", phi, dense(world))
    return renew(D)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("ascension", ["hard", "sigmoid"])
def test_a_run_is_its_literal_transcription_epoch_by_epoch(world, ascension):
    T, seen = 1500, []
    learner = rmax_ravi_ucb(world.problem, T, scale=0.005, step_scale=100.0, ascension=ascension, regularization=0.7)
    made = run(learner, world, T, [4], record=["stream"], measures=[spy(seen)])
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    s, phi = made.settings, features_of(world.problem)[0].tolist()
    followed = literal.rmax_ravi_ucb(
        list(zip(x, a, y, strict=True)), reset, world.rewards.tolist(), world.discount, phi, 0.7,
        s["beta"], s["eta"], s["threshold"], None if ascension == "hard" else log(T),
    )  # fmt: skip
    between, moved = set(), 0.0
    for (state, _), (policy, V, Q) in zip(seen, followed, strict=True):
        np.testing.assert_allclose(state.policy[0], policy, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.V_up[0], V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(state.Q_up[0], Q, rtol=1e-9, atol=1e-9)
        between.add(round(float(state.ascent[0].mean()), 3))
        moved = max(moved, np.ptp(state.policy[0], axis=-1).max())
    assert len(between) > 3  # some pairs went to heaven, some no more
    assert moved > 0.1


def test_the_constants():
    world, T = WORLDS["linear"], 1000
    H, d = 5.0, 3
    s = rmax_ravi_ucb(world.problem, T, scale=0.5, step_scale=3.0, threshold=0.25).settings
    assert s["beta"] == pytest.approx(0.5 * 1.5 * H * d * sqrt(log(2 * d * T * T)))
    E = 1 + d / log(2) * log(1 + T / d)
    assert s["phases"] == pytest.approx(E)
    assert s["eta"] == pytest.approx(3 * sqrt(2 * E * log(3) / T) / (1.5 * H))
    assert (s["threshold"], s["ascension"], s["delta"]) == (0.25, "hard", 1 / T)


def rich(pairs):
    """An MDP of rewards close to 1, where optimism has no room below H."""
    rng = np.random.default_rng(8)
    phi, m = rng.dirichlet(np.ones(3), (5, 2)), rng.dirichlet(np.ones(5), 3)
    if pairs:
        return MDP.from_dense(phi @ m, rng.uniform(0.9, 1, (5, 2)), 0.8, 0, name="rich")
    return MDP.from_linear(phi, m, rng.uniform(0.9, 1, 3), 0.8, 0, name="rich")


@pytest.mark.parametrize("ascension", ["hard", "sigmoid"])
@pytest.mark.parametrize("pairs", [False, True])
def test_values_end_at_twice_the_horizon_while_bonuses_are_valid(pairs, ascension):
    """In every phase, up to the first epoch whose bonus does not cover the error of P_hat V_k. V exceeds H in it."""
    world, T, seen, above, checked = rich(pairs), 4000, [], 0.0, 0
    learner = rmax_ravi_ucb(world.problem, T, scale=0.02, step_scale=30.0, ascension=ascension)
    run(learner, world, T, [1], measures=[spy(seen)])
    P, H, phi = dense(world), world.horizon, features_of(world.problem)[0]
    phase, valid = 0, True
    for state, _ in seen:
        valid, phase = valid or state.phases[0] > phase, state.phases[0]
        V, CB, p = state.V_up[0], state.CB[0], state.ascent[0]
        if not valid:
            continue
        assert (V >= 0).all()
        assert V.max() <= 2 * H + 1e-9
        above = max(above, V.max() / H)
        error = world.discount * np.abs(phi @ (state.m_hat[0] @ V) - P @ V)
        valid = bool((error <= CB + 1e-12).all())
        if valid:
            checked += 1
            backup = (1 - p) * (world.rewards + world.discount * P @ V) + p * H
            assert (state.Q_up[0] >= backup - 1e-9).all()
            assert (state.Q_up[0] <= backup + 2 * (1 - p) * CB + 1e-9).all()
    assert checked > 0.9 * len(seen)
    assert above > 1.05


def test_the_sigmoid_leaves_no_more_bonus_than_the_threshold():
    """max over CB of (1 - p+) CB <= omega, for every T."""
    for T in (1, 2, 3, 10, 1000, 10**6):
        omega, steep = 0.5, max(1.0, log(T))
        CB = np.linspace(0, 40, 400_001)
        assert (CB / (1 + np.exp(np.minimum(steep * (CB / omega - 1), 700)))).max() <= omega


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_a_phase_begins_where_the_determinant_has_doubled(world):
    T, seen, lam = 2000, [], 0.5
    learner = rmax_ravi_ucb(world.problem, T, scale=0.01, step_scale=30.0, regularization=lam)
    made = run(learner, world, T, [2], record=["stream"], measures=[spy(seen)])
    phi = features_of(world.problem)[0][made.results["stream_state"][0], made.results["stream_action"][0]]
    reset, Lam = made.results["stream_reset"][0], lam * np.eye(phi.shape[1])
    base, starts, phases = np.linalg.slogdet(Lam)[1], [1], [1]
    for t in range(1, T):
        Lam = Lam + np.outer(phi[t - 1], phi[t - 1])
        now = np.linalg.slogdet(Lam)[1]
        doubled = now > base + log(2)
        if doubled or reset[t - 1]:
            starts.append(t + 1)
            phases.append(phases[-1] + doubled)
            base = now if doubled else base
    assert made.T_k[0].tolist() == starts
    assert [int(state.phases[0]) for state, _ in seen] == phases
    assert 5 < phases[-1] <= learner.settings["phases"]
    for (state, _), before, after in zip(seen, [0, *phases], phases, strict=False):
        if after > before:
            assert (state.policy == 1 / world.actions).all()
            assert not state.V_up.any()


def test_with_every_pair_in_heaven_all_is_worth_the_horizon():
    seen, world = [], WORLDS["linear"]
    run(rmax_ravi_ucb(world.problem, 300, threshold=0.0), world, 300, 2, measures=[spy(seen)])
    for state, _ in seen:
        assert (state.Q_up == world.horizon).all()
        assert (state.policy == 1 / world.actions).all()


def backups(learner, D, epochs):
    """The policies and values of `epochs` plans in one phase with data D."""
    state = learner.init(np.zeros(1, np.uint64))
    for mine, given in zip(state.data, D, strict=True):
        mine[...] = given
    for _ in range(epochs):
        state = learner.plan(state)
    return state


def test_without_ascension_it_is_regularised_value_iteration_without_truncation():
    world, eta, beta = WORLDS["linear"], 0.3, 5.0
    D = exact(world, 5, 1.0)
    state = backups(rmax_ravi_ucb(world.problem, 100, threshold=1e9, eta=eta, beta=beta), D, 40)
    phi = features_of(world.problem)[0]
    w = beta * np.sqrt(np.einsum("xaj,jk,xak->xa", phi, np.linalg.inv(D.covariance[0]), phi))
    P_hat = np.einsum("xaj,jk,ky->xay", phi, np.linalg.inv(D.covariance[0]), D.moves[0])
    pi, Q = np.full((world.states, world.actions), 1 / world.actions), np.zeros((world.states, world.actions))
    for _ in range(40):
        V, log_pi, pi = (value[0] for value in mirror_step(np.log(pi)[None], pi[None], Q[None], eta))
        Q = world.rewards + w + world.discount * P_hat @ V
    np.testing.assert_allclose(state.Q_up[0], Q, rtol=1e-9)
    np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-9)
    assert Q.max() > world.horizon  # it is not truncated


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_with_much_data_it_finds_the_optimal_policy(world):
    D = exact(world, 10**9, 1.0)
    state = backups(rmax_ravi_ucb(world.problem, 100, scale=1.0, step_scale=1.0, eta=1.0, beta=1.0), D, 600)
    assert not state.ascent.any()
    P, r, gamma = dense(world), world.rewards, world.discount
    V = np.zeros(world.states)
    for _ in range(2000):
        V = (r + gamma * P @ V).max(-1)
    np.testing.assert_allclose(state.V_up[0], V, atol=0.02 * world.horizon)
    Q = r + gamma * P @ V
    assert ((state.policy[0] * Q).sum(-1) >= V - 0.02).all()


def test_a_seed_that_does_not_begin_a_phase_keeps_what_it_froze():
    world = WORLDS["linear"]
    seen = []
    run(rmax_ravi_ucb(world.problem, 800, scale=0.01), world, 800, [1], measures=[spy(seen)])
    kept = 0
    for (one, _), (two, _) in pairwise(seen):
        if one.phases[0] == two.phases[0]:
            kept += 1
            for name in ("m_hat", "CB", "ascent"):
                assert (getattr(one, name) == getattr(two, name)).all()
            assert (one.data.moves != two.data.moves).any()  # though more was seen
    assert kept > 10
    assert isinstance(seen[0][0].data, Gram)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"threshold": -1}, "threshold"),
        ({"ascension": "soft"}, "ascension"),
        ({"ascension": "sigmoid", "threshold": 0}, "threshold"),
        ({"regularization": 0}, "regularization"),
        ({"scale": -1}, "scale"),
        ({"step_scale": 0}, "step_scale"),
        ({"eta": 0}, "eta"),
    ],
)
def test_bad_arguments_are_named(options, match):
    with pytest.raises(InputError, match=match):
        rmax_ravi_ucb(WORLDS["linear"].problem, 100, **options)
