"""The paper's slips, shown: what is printed fails or is loose, and what docs/explanation/errata.md says is right.

Numbers are those of that page. Examples are exact (enumerated, or in closed form) unless a test says otherwise.
"""

import re
from itertools import count, product
from math import cosh, exp, inf, log, sqrt
from pathlib import Path

import numpy as np
import pytest

from ravi.core import MDP
from ravi.estimators.counts import Counts, counts, known
from ravi.estimators.ridge import ridge
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import (
    bandit,
    bandit_of,
    garnet,
    garnets,
    hypercube,
    one_state,
    one_state_of,
    queue,
    riverswim_mixture,
    terrain,
)
from ravi.optimism.bonuses import multiple_of_width
from ravi.planning.bellman import backup
from ravi.planning.evaluation import return_of
from ravi.planning.mirror import mirror_step
from ravi.planning.mirror_descent import md_mpi
from ravi.planning.occupancies import conditional_relative_entropy, occupancy, relative_entropy
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.theory import constants, elliptical, generic, mixture, tabular
from ravi.validation import InputError
from ravi.verify import CLAIMS, regression, verify
from ravi.verify.record import run_recorded
from ravi.verify.setting import setting_of

GAMMAS = [0.3, 0.5, 0.9]


def histories(T, gamma):
    """Which of the steps 1, ..., T a reset follows, with its probability."""
    for flags in product([False, True], repeat=T):
        resets = sum(flags)
        yield flags, (1 - gamma) ** resets * gamma ** (T - resets)


def lengths(flags):
    """Of the epochs that have begun by step T, the last one cut at T."""
    ends = [t for t, reset in enumerate(flags[:-1], start=1) if reset] + [len(flags)]
    return np.diff([0, *ends]).tolist()


def slope(f, low, high):
    """The exponent of f between two points."""
    return log(f(high) / f(low)) / log(high / low)


# ---- the protocol


def test_e1_the_first_state_is_drawn_from_nu_0():
    """E1: X_0 is drawn but rounds begin at t = 1; if X_1 followed from X_0 it would be state 1 here, but x_1 ~ nu_0."""
    mdp = MDP.from_dense([[[0, 1]], [[0, 1]]], [[0], [1]], 0.5, 0)
    made = run("uniform", mdp, 4, 20, record=["stream"])
    assert (made.results["stream_state"][:, 0] == 0).all()
    assert (made.results["stream_successor"] == 1).all()


def printed_loops(T, flags, limit):
    """The plays t of the printed loops, if the run is meant to end where `until t = T` holds; at most `limit`."""
    t, plays = 1, []
    for _k in count(1):
        while True:  # repeat
            if len(plays) == limit:
                return plays
            plays.append(t)
            reset = flags[t - 1]
            t = t + 1
            if reset:
                break
            if t == T:  # until t = T
                return plays
    return None


@pytest.mark.parametrize("T", [1, 2, 3, 6])
def test_e2_the_printed_loops_make_one_play_too_few_or_never_stop(T):
    """E2: `until t = T` ends after T - 1 plays, and is jumped over when a reset follows play T - 1."""
    limit, gamma = T + 3, 0.7
    past = 0.0
    for flags, p in histories(limit, gamma):
        plays = printed_loops(T, flags, limit)
        assert len(plays) in (T - 1, limit)  # never T
        past += p * (len(plays) == limit)
    assert past == pytest.approx(1.0 if T == 1 else 1 - gamma)
    made = run("uniform", garnet(2, 2, 2, 0, gamma), T, 50, record=["stream"])
    assert (made.plays == T).all()
    assert (made.results["stream_state"][:, :T] >= 0).all()


def test_e3_a_sample_keeps_the_successor_that_a_reset_overwrites():
    """E3: with x_{t+1} as it stands after a reset, counts would estimate gamma P + (1 - gamma) nu_0."""
    mdp, T = MDP.from_dense([[[0, 1]], [[0, 1]]], [[0], [1]], 0.5, 0), 400
    made = run(ravi_ucb.tabular(mdp.problem, T), mdp, T, 5, record=["stream"])
    x, reset = made.results["stream_state"], made.results["stream_reset"]
    moves = np.zeros((5, 2, 2))
    np.put_along_axis(
        moves, np.broadcast_to(mdp.successors[:, 0], (5, 2, mdp.branching)), made.state.data.moves[:, :, 0], 2
    )
    assert (moves[:, 0, 0] == 0).all()  # P(0 | 0) = 0: y_t was stored
    overwritten = ((x[:, :-1] == 0) & (x[:, 1:] == 0)).sum(1) / (x[:, :-1] == 0).sum(1)
    assert (overwritten > 0.3).all()  # x_{t+1} = 0 in a share of about 1 - gamma
    assert reset[:, :-1][(x[:, :-1] == 0) & (x[:, 1:] == 0)].all()


# ---- the algorithm


def boundary(mdp, V_last, pi_last, V_first, pi_first):
    """<mu* - mu_{K+1}, E V_{K+1}> - <mu* - mu_1, E V_1>"""
    star = occupancy(mdp, solve(mdp).policy).nu
    last, first = occupancy(mdp, pi_last).nu, occupancy(mdp, pi_first).nu
    return (star - last) @ V_last - (star - first) @ V_first


def test_e4_any_constant_V_0_has_the_boundary_H_and_any_V_0_has_2_H():
    """E4: V_1 = V_0, so V_0 = 0 is not needed: a constant leaves the boundary at H, an arbitrary V_0 at 2 H."""
    mdp = bandit_of([1.0, 0.0], 0.95)  # arm 0 to state 1 for good, arm 1 to state 2
    H, gamma = mdp.horizon, mdp.discount
    wrong = np.tile([0.0, 1.0], (3, 1))
    good, bad = H * np.array([0, 1, 0]), H * np.array([0, 0, 1])
    for constant in (0.0, 1.7, H):
        assert boundary(mdp, good, wrong, np.full(3, constant), wrong) == pytest.approx(gamma * H)
    assert H < boundary(mdp, good, wrong, bad, wrong) == pytest.approx(2 * gamma * H)
    rng = np.random.default_rng(0)
    mdp = garnet(4, 2, 2, 1, 0.8)
    for _ in range(60):
        V, W = rng.choice([0, mdp.horizon], size=(2, 4))
        pi, rho = rng.dirichlet([0.2, 0.2], size=(2, 4))
        assert boundary(mdp, V, pi, W, rho) <= 2 * mdp.horizon
        assert boundary(mdp, V, pi, np.full(4, W[0]), rho) <= mdp.horizon
    for V0 in (3.0, [4.0, 0.0, 1.0, 5.0]):  # and Lemma 4.3 holds on runs that start elsewhere
        learner = ravi_ucb.tabular(mdp.problem, 200, beta=3 * mdp.horizon, eta=0.3, initial_value=V0)
        report = verify(learner, mdp, 200, 3, only=["S1", "S4", "A5", "A13", "A15"])
        assert report.holds
        assert not report.invalid_at.any()


def test_e5_theorem_4_1_needs_a_uniform_first_policy():
    """E5: the theorem allows any pi_0, but with little mass on the best action the regret exceeds its bound."""
    mdp, T = one_state_of([0.0, 1.0], 0.5), 2000
    estimator = known(mdp)
    nothing = multiple_of_width(0.0, estimator)  # P is known: zero bonuses are valid
    pi0 = np.array([[1 - 1e-300, 1e-300]])
    step = constants.eta(mdp.horizon, 2, T)
    made = run(ravi_ucb.generic(mdp.problem, estimator, nothing, step, initial_policy=pi0), mdp, T)
    printed = generic.printed(mdp.horizon, 2, T, 0.0).total
    assert made.regret[0] > 8 * printed
    assert run(ravi_ucb.generic(mdp.problem, estimator, nothing, step), mdp, T).regret[0] < printed
    best = np.array([[0.0, 1.0]])
    assert conditional_relative_entropy(mdp, best, pi0) > 600 > log(2)  # what stands in the place of log A
    assert conditional_relative_entropy(mdp, best, np.array([[0.5, 0.5]])) == pytest.approx(log(2))
    assert conditional_relative_entropy(mdp, best, np.array([[1.0, 0.0]])) == inf
    with pytest.raises(InputError, match="initial_policy"):
        ravi_ucb.tabular(mdp.problem, T, initial_policy=[[1.0, 0.0]])


def test_e6_the_data_of_an_epoch_enter_the_policy_after_the_next():
    """E6: pi_k does not depend on what was seen in epoch k - 1; pi_{k+1} does."""
    mdp, T = garnet(3, 2, 2, 0, 0.8), 50
    learner = ravi_ucb.tabular(mdp.problem, T, beta=2.0, eta=0.5)
    policies = []
    for x, a, slot in ((0, 0, 0), (2, 1, 1)):
        state = learner.plan(learner.init(np.zeros(1, np.uint64)))  # epoch 1
        state.data.visits[0, x, a] += 5  # what is seen in it
        state.data.moves[0, x, a, slot] += 5
        state = learner.plan(state)
        second = state.policy.copy()
        policies.append((second, learner.plan(state).policy.copy()))
    (second, third), (second_too, third_too) = policies
    np.testing.assert_array_equal(second, second_too)
    assert abs(third - third_too).max() > 0.01


@pytest.mark.parametrize("gamma", GAMMAS)
def test_e31_V_0_outside_its_range_breaks_optimism(gamma):
    """E31: V_1 = V_0. With P known and no bonus, r + gamma P V_1 <= Q_2 fails for V_0 > H, Q_2 <= ... for V_0 < 0."""
    mdp = one_state_of([1.0, 0.0], gamma)
    H = mdp.horizon
    for V0, low, high in ((1.1 * H, False, True), (H, True, True), (0.0, True, True), (-0.1 * H, True, False)):
        PV = np.full((1, 1, 2), V0)
        Q = backup(mdp.rewards, np.zeros((1, 1, 2)), gamma, PV.copy(), H)
        right = mdp.rewards + gamma * PV
        assert ((right <= Q + 1e-12).all(), (right >= Q - 1e-12).all()) == (low, high)
        if not (low and high):
            with pytest.raises(InputError, match="initial_value"):
                ravi_ucb.tabular(mdp.problem, 10, initial_value=V0)


def test_e31_the_response_is_bounded_where_V_is():
    """E31: ||b_t|| <= (t - 1) B H^2, by ||phi|| <= B H and V <= H."""
    mdp, T = garnets(2, 3, 2, 2, 0, 0.8), 60
    made = run(ravi_ucb.linear_mixture(mdp.problem, T, initial_value=mdp.horizon), mdp, T, 5)
    assert (np.linalg.norm(made.state.data.response, axis=1) <= T * mdp.bound * mdp.horizon**2).all()


def test_e33_the_constants_need_to_know_T():
    """E33: eta and beta are functions of T; a learner that is set for another T is not the theorem's."""
    mdp = garnet(2, 2, 2, 0, 0.8)
    report = verify(ravi_ucb.tabular(mdp.problem, 100), mdp, 50, 3, only=["A20", "T5"])
    assert {row.verdict for row in report.rows} == {"not applicable"}


# ---- the analysis


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("T", [1, 2, 5, 9])
def test_e7_the_expected_number_of_epochs(gamma, T):
    """E7: E K(T) = (1 - gamma) T + gamma, not (1 - gamma) T; the theorem has to pay for it. E8: H E K(T) = E T+,
    which is T + gamma H, where T is displayed."""
    H = 1 / (1 - gamma)
    exact = sum(p * len(lengths(flags)) for flags, p in histories(T, gamma))
    to_T_plus = sum(p * (T if flags[-1] else T + H) for flags, p in histories(T, gamma))
    assert exact == pytest.approx((1 - gamma) * T + gamma)
    assert constants.expected_epochs(H, T) == pytest.approx(exact)
    assert to_T_plus == pytest.approx(H * exact) == T + constants.expected_padding(H)
    extra = generic.corrected(H, 2, T, 0.0).optimisation - generic.printed(H, 2, T, 0.0).optimisation
    assert extra == pytest.approx(gamma * H**3 * sqrt(log(2) / (2 * T)))


def test_e9_invalid_bonuses_may_cost_every_step():
    """E9: where bonuses are invalid the regret may be as large as T; an event of probability delta adds delta T."""
    mdp, T = bandit_of([1.0, 0.0], 0.5), 2000
    wrong = known(bandit_of([0.0, 1.0], 0.5))  # the arms are taken for each other, and no bonus makes up for it
    H, step = mdp.horizon, constants.eta(mdp.horizon, 2, T)
    learner = ravi_ucb.generic(mdp.problem, wrong, multiple_of_width(0.0, wrong), step)
    made = run(learner, mdp, T)
    printed = generic.printed(H, 2, T, 0.0).total
    assert made.regret[0] > 3 * printed
    assert made.regret[0] < generic.corrected(H, 2, T, 0.0, delta=1.0).total  # the event is certain here
    report = verify(learner, mdp, T, 3, only=["S4", "A15"])
    assert (report.invalid_at == 2).all()  # V_2 is the first that tells states apart
    assert report["A15"].holds  # which is measured up to there
    assert generic.corrected(H, 2, T, 0.0).failure == pytest.approx(1)  # delta = 1/T


@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_e10_the_boundary_of_lemma_4_3_is_H(gamma):
    """E10: <mu* - mu, E V> <= H for V in [0, H], not 2 H; gamma H is attained."""
    mdp = bandit_of([1.0, 0.0], gamma)
    H, wrong = mdp.horizon, np.tile([0.0, 1.0], (3, 1))
    assert boundary(mdp, H * np.array([0, 1, 0]), wrong, np.zeros(3), wrong) == pytest.approx(gamma * H)
    report = verify("ravi-ucb", garnet(3, 2, 2, 0, gamma), 50, 3, only=["A14"])
    assert report["A14"].bound == pytest.approx(H)
    assert report.holds


def test_e11_pinsker_with_a_centred_Q_has_half_the_constant():
    """E11: <p - q, Q> <= (H/2) sqrt(2 KL(p || q)), which cannot be improved; so eta H^3 / 8 for eta H^3 / 2."""
    H, rng = 7.0, np.random.default_rng(1)
    for _ in range(500):
        p, q = rng.dirichlet(np.ones(4), size=2)
        Q = rng.choice([0, H], size=4)
        assert (p - q) @ Q <= H / 2 * sqrt(2 * relative_entropy(p, q)) + 1e-12
    for e in (1e-1, 1e-2, 1e-3):
        p, q, Q = np.array([0.5 + e, 0.5 - e]), np.array([0.5, 0.5]), np.array([H, 0.0])
        ratio = (p - q) @ Q / (H / 2 * sqrt(2 * relative_entropy(p, q)))
        assert 1 - e**2 <= ratio <= 1
    z, eta = np.linspace(0, 10, 400_001), 0.3
    for c, least in ((sqrt(2 * H**3), eta * H**3 / 2), (H / 2 * sqrt(2 * H), eta * H**3 / 8)):
        assert (c * z - z**2 / eta).max() == pytest.approx(least, rel=1e-6)


def tilted(q, step):
    """KL(p || (q, 1 - q)) for p proportional to q e^{step}, 1 - q."""
    p = q * exp(step) / (q * exp(step) + 1 - q)
    return float(relative_entropy(np.array([p, 1 - p]), np.array([q, 1 - q])))


def test_e12_the_maximiser_of_fenchel_young_is_out_of_reach():
    """E12: KL(pi_{k+1} || pi_k) <= eta^2 H^2 / 8, below the maximiser eta^2 H^3 / 8: kappa takes the place of H^3 / 8.

    At A = 2 with Q = (H, 0) the first bound is approached as eta H falls, and attained by no eta > 0.
    """
    worst = {
        step: max(tilted(q, step) for q in np.linspace(0.001, 0.999, 999)) / (step**2 / 8) for step in (2, 0.3, 0.01)
    }
    assert worst[2] < worst[0.3] < worst[0.01] < 1
    assert worst[0.01] > 1 - 1e-5
    T = 10**15
    assert slope(lambda H: generic.sharp(H, 2, T, 0.0).optimisation, 1e3, 1e4) == pytest.approx(7 / 4, abs=0.01)
    assert slope(lambda H: generic.printed(H, 2, T, 0.0).optimisation, 1e3, 1e4) == pytest.approx(2)


def test_e13_the_optimisation_error_is_before_the_factor_H_and_equal_only_for_the_printed_K():
    """E13: log A / eta + eta H^3 K / 2 = sqrt(2 H^2 T log A) at K = (1 - gamma) T; times H it is the theorem's."""
    H, A, T = 10.0, 4, 500
    eta = constants.eta(H, A, T)
    displayed = sqrt(2 * H**2 * T * log(A))
    assert log(A) / eta + eta * H**3 / 2 * (T / H) == pytest.approx(displayed)
    assert log(A) / eta + eta * H**3 / 2 * constants.expected_epochs(H, T) > displayed
    assert displayed * H == pytest.approx(generic.printed(H, A, T, 0.0).optimisation)


@pytest.mark.parametrize("setting", ["tabular", "mixture"])
def test_e14_a_bonus_times_gamma_is_valid(setting):
    """E14: Lemmas 5.1 and 5.4 bound |(P - P_hat) V|, but validity asks for gamma |(P - P_hat) V| <= CB only."""
    mdp = garnet(3, 2, 2, 0, 0.6) if setting == "tabular" else garnets(2, 3, 2, 2, 0, 0.6)
    build = ravi_ucb.tabular if setting == "tabular" else ravi_ucb.linear_mixture
    report = verify(build(mdp.problem, 100, scale=mdp.discount), mdp, 100, 3, only=["S4", "T1", "M7", "A1", "A15c"])
    assert report.holds
    assert not report.invalid_at.any()


@pytest.mark.parametrize("p", [0.5, 0.1, 0.9])
def test_e15_noise_in_an_interval_of_length_H_is_half_H_sub_gaussian(p):
    """E15: E e^{u X} <= e^{u^2 H^2 / 8} for X = V(y) - P V with V in {0, H}; at p = 1/2 no smaller constant serves."""
    H = 5.0
    for u in np.linspace(-3, 3, 121):
        moment = p * exp(u * (1 - p) * H) + (1 - p) * exp(-u * p * H)
        assert moment <= exp(u**2 * H**2 / 8) * (1 + 1e-12) <= exp(u**2 * H**2 / 2) * (1 + 1e-12)
    u = 0.01 / H
    assert log(cosh(u * H / 2)) / (u**2 * H**2 / 8) > 1 - 1e-5


def test_e16_the_bias_is_bounded_by_the_norm_of_theta_not_of_the_features():
    """E16: lambda ||theta||_{Lambda^-1} <= sqrt(lambda) ||theta||, attained in epoch 1, above the features' bound."""
    mdp, lam = hypercube(3, 0.8), 0.7
    D = ridge(mdp.problem, lam).init(1)
    bias = lam * sqrt(mdp.parameter @ np.linalg.solve(D.covariance[0], mdp.parameter))
    assert bias == pytest.approx(sqrt(lam) * mdp.parameter_bound)
    assert bias > sqrt(lam) * mdp.feature_bound * 1.05


def test_e17_there_are_T_k_minus_one_samples_before_epoch_k():
    """E17: with T_k - 1 the bound on det Lambda_{T_k} is attained at k = 1, where there is no sample yet."""
    mdp = garnets(2, 3, 2, 2, 0, 0.8)
    row = verify(ravi_ucb.linear_mixture(mdp.problem, 30, regularization=0.5), mdp, 30, 3, only=["M6"])["M6"]
    assert row.note == "epoch 1"
    assert row.measured == pytest.approx(2 * log(0.5))
    assert row.bound == pytest.approx(2 * log(0.5))


@pytest.mark.parametrize("gamma", GAMMAS)
def test_e18_wald_holds_for_the_sum_though_the_last_epoch_is_longer(gamma):
    """E18: {K(T) >= k} is known when epoch k begins, so E T+ = H E K(T); yet the epoch of step T is longer than H.

    An auxiliary sequence that is independent of the realised one has the same law, which is all that is used.
    """
    T, H = 8, 1 / (1 - gamma)
    last = sum(p * (lengths(flags)[-1] + (0 if flags[-1] else H)) for flags, p in histories(T, gamma))
    assert last == pytest.approx((1 - gamma**T) * H + gamma * H)
    assert last > H
    mdp = garnet(3, 2, 2, 0, gamma)
    f, pi = np.random.default_rng(0).uniform(size=(3, 2)), np.full((3, 2), 0.5)
    chain = np.einsum("xa,xay->xy", pi, dense(mdp))
    u, total = mdp.initial, 0.0
    for i in range(400):  # P(L > i) = gamma^i, whatever the states are
        total += gamma**i * u @ (pi * f).sum(-1)
        u = u @ chain
    assert total == pytest.approx(H * (occupancy(mdp, pi).mu * f).sum())


def dense(mdp):
    P = np.zeros((mdp.states, mdp.actions, mdp.states))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
    return P


def test_e25_the_flow_bounds_the_entropy_of_states_not_of_policies():
    """E25: it is KL(nu || nu') <= gamma KL(mu || mu'); for the other term of the chain rule that is false."""
    rng = np.random.default_rng(0)
    mdp = garnet(4, 2, 3, 0, 0.8)
    for _ in range(50):
        one, two = (occupancy(mdp, pi) for pi in rng.dirichlet([1, 1], size=(2, 4)))
        joint = relative_entropy(one.mu.ravel(), two.mu.ravel())
        assert relative_entropy(one.nu, two.nu) <= mdp.discount * joint
    mdp = one_state(2, 0.8)  # the chain rule has one term here
    pi, other = np.array([[0.3, 0.7]]), np.array([[0.6, 0.4]])
    joint = relative_entropy(occupancy(mdp, pi).mu.ravel(), occupancy(mdp, other).mu.ravel())
    assert conditional_relative_entropy(mdp, pi, other) == pytest.approx(float(joint))
    assert conditional_relative_entropy(mdp, pi, other) > mdp.discount * joint


@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0])
def test_e26_the_entropy_of_the_softmax_has_a_factor_eta(eta):
    """E26: KL(p* || p') = eta <p*, Q - V*>; the display leaves eta out, and the line after it needs it."""
    p = np.array([[[0.2, 0.3, 0.5]]])
    Q = np.array([[[1.0, 0.4, 2.0]]])
    V, _, best = mirror_step(np.log(p), p, Q, eta)
    entropy, loss = float(relative_entropy(best[0, 0], p[0, 0])), float(best[0, 0] @ (Q[0, 0] - V[0, 0]))
    assert entropy == pytest.approx(eta * loss)
    assert (entropy == pytest.approx(loss)) == (eta == 1)
    assert best[0, 0] @ Q[0, 0] - entropy / eta == pytest.approx(V[0, 0])


def test_e27_the_rate_of_exact_planning_needs_eta():
    """E27: (H + H(pi* || pi_K)) / K holds for no constant if eta may be small; 8 H^2 (1 + log A / eta) / K does."""
    mdp, K = one_state_of([0.0, 1.0], 0.5), 2000
    best = np.array([[0.0, 1.0]])
    for eta in (1e-6, 1e-9):
        last = md_mpi(mdp, eta, K).policy
        assert last[0, 1] == pytest.approx(1 / (1 + exp(-eta * (K - 1))))  # in one state pi_k is known
        gap = 1 - return_of(mdp, last)
        assert gap > 300 * (mdp.horizon + conditional_relative_entropy(mdp, best, last)) / K
        assert gap <= 8 * mdp.horizon**2 * (1 + log(2) / eta) / K


# ---- tabular


@pytest.mark.parametrize("visits", [0, 1, 2, 9])
def test_e24_the_rows_of_the_estimate_sum_to_n_over_n_plus_one(visits):
    """E24: with N_1 = 1 the estimate is shrunk, not of maximum likelihood; N'/N is meant where N/N is printed."""
    mdp = garnet(3, 2, 2, 0, 0.8)
    estimator = counts(mdp.problem)
    N, moves = np.ones((1, 3, 2), np.int32), np.zeros((1, 3, 2, 2), np.int32)
    N[0, 1, 0] += visits
    moves[0, 1, 0, 0] = visits
    sums = estimator.expect(Counts(N, moves), np.ones((1, 3)))[0]
    assert sums[1, 0] == pytest.approx(visits / (visits + 1))
    assert np.count_nonzero(sums) == (visits > 0)


def test_e23_the_optimisation_term_dominates_for_long_horizons():
    """E23: H^2 sqrt(T log A) outgrows the printed X H sqrt(A T) from H = X sqrt(A / (2 log A)) on."""
    X, A, T = 3, 2, 10**14

    def ratio(H):
        return tabular.printed(H, X, A, T).optimisation / (X * H * sqrt(A * T))

    turn = X * sqrt(A / (2 * log(A)))
    assert ratio(turn) == pytest.approx(1)
    assert slope(ratio, 10, 1000) == pytest.approx(1)
    small, large = tabular.printed(10, X, A, T), tabular.printed(2000, X, A, T)  # with all constants and logarithms
    assert small.optimisation < small.bonus
    assert large.optimisation > large.bonus


# ---- linear mixtures


def chain(gamma, q):
    """State 0 turns into state 1 with probability q, for good; psi = P, theta = 1."""
    psi = np.array([[[[1 - q], [q]]], [[[0.0], [1.0]]]])
    return MDP.from_features(psi, [1.0], [[[0, 1]], [[0, 1]]], [[0], [1]], gamma, 0)


def recorded(mdp, T, n, build=ravi_ucb.linear_mixture, **options):
    """The records of n padded runs."""
    learner = build(mdp.problem, T, **options)
    return list(run_recorded(setting_of(learner, mdp, T, solve(mdp)), learner, n, False)[1])


def bad_epochs(records):
    """Their number, their steps, and their steps from the first bad one on; seeds first."""
    found = []
    for s in records:
        bad = np.unique(s.epoch[regression.bad_steps(s)])
        found.append((len(bad), s.lengths[bad].sum(), regression.memorylessness(s)[0] + s.H * len(bad)))
    return np.array(found).T


def measured(claim, records):
    """What a claim of the regression measures, seed by seed."""
    return np.array([claim(s)[0] for s in records])


def test_e19_bad_epochs_are_longer_than_H():
    """E19: E[L | bad] = H + 1 / (1 - gamma (1 - q)), not H; from the first bad step on it is H.

    Exactly, and on 4,000 runs to within six standard errors (the seeds are fixed). State 1 is bad and state 0 is not.
    """
    gamma, q = 0.8, 0.25
    H = 1 / (1 - gamma)
    law = [(l, (1 - gamma) * gamma ** (l - 1)) for l in range(1, 400)]
    bad = sum(p * (1 - (1 - q) ** (l - 1)) for l, p in law)
    mean = sum(p * l * (1 - (1 - q) ** (l - 1)) for l, p in law) / bad
    rest = sum(p * q * (1 - q) ** (first - 2) * (l - first + 1) for l, p in law for first in range(2, l + 1)) / bad
    assert mean == pytest.approx(H + 1 / (1 - gamma * (1 - q)))
    assert mean > 1.4 * H
    assert rest == pytest.approx(H)
    records = recorded(chain(gamma, q), 1, 4000, initial_value=[0.0, 2.0])  # ||phi|| = 2 q < 1 <= 2
    count, length, left = bad_epochs(records)
    some = count > 0
    assert some.mean() == pytest.approx(bad, abs=6 * sqrt(bad * (1 - bad) / 4000))
    for values, right in ((length[some], mean), (left[some], H)):
        assert values.mean() == pytest.approx(right, abs=6 * values.std() / sqrt(some.sum()))
    assert length.mean() > H * count.mean() + 6 * length.std() / sqrt(4000)  # the printed step


def one_direction(gamma):
    """One state, one action, d = 1 and B = 1: with V_0 = H every feature is H."""
    return MDP.from_features(np.ones((1, 1, 1, 1)), [1.0], [[[0]]], [[0.5]], gamma, 0)


def test_e20_the_sums_of_the_elliptical_lemmas_run_to_T_plus():
    """E20: at T = 1 Lemma A.2 reads log(1 + H^2 T+) <= log(1 + H^2 T), and Cauchy-Schwarz T+ <= sqrt(T T+)."""
    mdp = one_direction(0.8)
    H = mdp.horizon
    records = recorded(mdp, 1, 50, initial_value=H)
    plays, potential = np.array([len(s.x) for s in records]), measured(regression.potential, records)
    clipped = measured(regression.clipped_norms, records)
    assert plays.max() > 5
    np.testing.assert_allclose(potential, np.log(1 + H**2 * plays))
    printed, right = (elliptical.log_determinant(H, 1, float(n), bound=1.0) for n in (1, plays.max()))
    assert potential.max() == pytest.approx(right)
    assert potential.max() > printed * 1.2
    np.testing.assert_array_equal(clipped, plays)  # sum_t min(1, ||phi||^2), here sum_t min(1, ||phi||)
    assert (plays > np.sqrt(1 * clipped)).any()
    learner = ravi_ucb.linear_mixture(mdp.problem, 1, initial_value=H)
    assert verify(learner, mdp, 1, 50, only=["M8a", "M8b", "M9", "M11"]).holds


def test_e20_T_plus_and_the_longest_epoch_are_not_independent():
    """E20: at T = 1 both are of L, and E sqrt(T+ max C_k) > sqrt(T E max C_k); it is below sqrt(E T+ E max C_k)."""
    gamma = 0.9
    law = [((1 - gamma) * gamma ** (l - 1), l, l / log(1 + l)) for l in range(1, 600)]
    mean = sum(p * sqrt(l * C) for p, l, C in law)
    factor = sum(p * C for p, _, C in law)
    assert mean > sqrt(factor)
    assert mean <= sqrt(sum(p * l for p, l, _ in law) * factor)


def test_e20_with_V_0_zero_nothing_is_wrong_at_T_1_but_later():
    """E20: bad steps are collected up to T but bad epochs to T+, so that an epoch may be bad without a bad step. V_0 =
    0 makes all features of epoch 1 zero: at T = 1 the printed lemmas hold; A.3 has an epoch that is bad after T only
    at T = 2 already, and A.2 is false on some paths at T = 3."""
    mdp = one_direction(0.8)
    for T, fails in ((1, False), (3, True)):
        records = recorded(mdp, T, 400)
        longest, potential = max(len(s.x) for s in records), measured(regression.potential, records)
        printed, right = (elliptical.log_determinant(mdp.horizon, 1, float(n), bound=1.0) for n in (T, longest))
        assert potential.max() <= right
        assert (potential > printed * 1.01).any() == fails
        assert (potential == 0).all() == (T == 1)
    for T, V, some in ((1, 2.0, True), (1, 0.0, False), (2, 0.0, True)):  # V_0 = (0, V)
        records = recorded(chain(0.8, 0.25), T, 400, initial_value=[0.0, V])
        in_zero = [s for s in records if (s.x[:T] == 0).all()]  # state 0 is never bad: no bad step up to T
        assert (bad_epochs(in_zero)[0] > 0).any() == some


@pytest.mark.parametrize(("V0", "T"), [(1.0, 1), (0.0, 2)])
def test_e21_the_sum_over_K_epochs_bounds_the_matrix_after_them(V0, T):
    """E21: Lambda_{K(T)} is that before the last epoch: at K = 1 it is lambda I, and log det has not grown. With V_0 =
    0 the features of epoch 1 are 0, so Lambda_2 = Lambda_1: at K = 1 nothing is wrong, and at K = 2 as with V_0 = 1."""
    records = recorded(one_direction(0.8), T, 100, initial_value=V0)
    K, potential = np.array([s.K for s in records]), measured(regression.potential, records)
    after = np.array([regression.grown(s) for s in records])
    first = K == T  # the printed matrix has not grown
    assert set(K) == set(range(1, T + 1))
    assert (potential[first] > 0.2).all()
    assert (potential <= after + 1e-12).all()
    np.testing.assert_array_equal(potential[~first], 0)
    np.testing.assert_array_equal(after[~first], 0)


def test_e22_C_1_grows_like_H_cubed():
    """E22: C_1 + C_2 is not of order B H^{3/2} d log^{3/2} T: C_1 is of order B d^{3/2} H^3; C_2 alone fits."""
    T, given = 10**9, {"bound": 1.5}

    def logs(H, d=4):
        return log(1 + 1.5**2 * H**2 * T / d)

    assert slope(lambda H: mixture.C_1(H, 4, T, **given) / logs(H) ** 1.5, 1e4, 1e5) == pytest.approx(3, abs=0.05)
    assert slope(lambda H: mixture.C_2(H, 4, T, **given) / logs(H), 1e4, 1e5) == pytest.approx(1.5, abs=0.05)
    assert slope(lambda d: mixture.C_1(1e4, d, T, **given) / logs(1e4, d) ** 1.5, 200, 2000) == pytest.approx(
        1.5, abs=0.02
    )
    ratio = [(mixture.C_1(H, 4, T, **given) + mixture.C_2(H, 4, T, **given)) / H**1.5 for H in (10.0, 1e3, 1e5)]
    assert ratio[2] > 100 * ratio[1] > 10_000 * ratio[0]
    rare = mixture.clipped_bonus_sum(1e4, 4, T, 0.0, **given)  # where a step costs H at most: H^2
    assert rare == pytest.approx(1e8 * 4 / log(2) * logs(1e4), rel=1e-3)


def law_of_the_longest(T, gamma, most):
    """P(max_{k <= K(T)} L_k <= m) for m = 1, ..., most: epochs begin at t <= T and last to their reset."""
    law = (1 - gamma) * gamma ** np.arange(most)
    for m in range(1, most + 1):
        after = np.ones(T + m + 1)  # all epochs that begin at t or later are short enough
        for t in range(T, 0, -1):
            after[t] = law[:m] @ after[t + 1 : t + m + 1]
        yield after[1]


def test_e32_three_forms_of_lemma_a_4():
    """E32: at T = 500 and H = 10, E max C_k = 11.5 < 18.6 (Jensen) < (2 + log T) H / log 2 = 119 < 164 (printed)."""
    gamma, H, T = 0.9, 10.0, 500
    below = np.array([0.0, *law_of_the_longest(T, gamma, 250)])
    m = np.arange(1, 251)
    true = (np.diff(below) * m / np.log1p(m)).sum()
    jensen, printed = elliptical.largest_factor_sharp(H, T), elliptical.largest_factor(H, T)
    between = elliptical.longest_epoch(H, T) / log(2)
    assert below[-1] > 1 - 1e-8
    assert (round(true, 1), round(jensen, 1), round(between), round(printed)) == (11.5, 18.6, 119, 164)


def test_e30_one_B_for_both_bounds_is_at_least_one():
    """E30: <theta, sum psi> = 1, so B_theta B_phi >= 1; the two may differ, and scaling psi evens them out."""
    mdps = [hypercube(4, 0.9), riverswim_mixture(4, 0.9), bandit(3), terrain(3), queue(4), garnets(3, 4, 2, 2)]
    for mdp in mdps:
        mass = np.linalg.norm(mdp.features.sum(2), axis=-1)
        assert (np.linalg.norm(mdp.parameter) * mass >= 1 - 1e-12).all()
        assert mass.max() <= mdp.feature_bound + 1e-9
        assert mdp.parameter_bound * mdp.feature_bound >= 1 - 1e-9
        assert mdp.bound >= 1 - 1e-9
        c = sqrt(mdp.feature_bound / mdp.parameter_bound)
        given = mdp.successors, mdp.rewards, mdp.discount, mdp.initial
        even = MDP.from_features(mdp.features / c, mdp.parameter * c, *given)
        assert even.bound <= mdp.bound + 1e-9
        np.testing.assert_allclose(even.transitions, mdp.transitions, atol=1e-12)


# ---- what is returned


def test_e28_a_uniform_epoch_is_not_a_uniform_time():
    """E28: where a gap depends on how long epochs were, the mean over epochs is not regret / T; for gaps that depend on
    k alone it is, as given K(T) lengths are exchangeable. So Theorem 5.6 / T does not bound it."""
    T, gamma = 4, 0.6

    def means(gap):
        by_time = by_epoch = 0.0
        for flags, p in histories(T, gamma):
            L = lengths(flags)
            gaps = [gap(k, L) for k in range(1, len(L) + 1)]
            by_time += p * sum(g * l for g, l in zip(gaps, L, strict=True)) / T
            by_epoch += p * sum(gaps) / len(gaps)
        return by_time, by_epoch

    time, epoch = means(lambda k, L: 1 / k)
    assert time == pytest.approx(epoch)
    time, epoch = means(lambda k, L: float(k > 1 and L[0] >= 2))  # worse after a long first epoch
    assert epoch > time * 1.1
    time, epoch = means(lambda k, L: float(k == 1 or L[0] == 1))  # better after one
    assert epoch < time * 0.99
    made = run("ravi-ucb,eta=3,beta=1", garnet(3, 2, 2, 0, 0.8), 60, 20)
    for gaps, starts, regret in zip(made.gap_k, made.T_k, made.regret, strict=True):
        assert (gaps * np.diff([*starts, 61])).sum() / 60 == pytest.approx(regret / 60)
        assert gaps.mean() != pytest.approx(regret / 60, rel=1e-4)


def test_e29_a_policy_update_is_one_backup():
    """E29: not poly(d, H, T) iterations of dynamic programming: one estimate, one bonus and one backup per epoch."""
    mdp, calls = garnet(3, 2, 2, 0, 0.8), []
    estimator = counts(mdp.problem)
    watched = estimator._replace(expect=lambda D, V: calls.append(1) or estimator.expect(D, V))
    made = run(ravi_ucb.generic(mdp.problem, watched, multiple_of_width(2.0, watched), 0.3), mdp, 100, 1)
    assert len(calls) == len(made.T_k[0])


# ---- what is said of extensions


def test_e34_gaps_per_step_are_H_times_gaps_per_epoch_in_the_mean_only():
    """E34: sum_t gap_t = H sum_k gap_k in expectation; on a path it is sum_k L_k gap_k.

    A learner that is right after its first epoch has gap_1 = 1 and no other: L_1 against H, at least c H with a
    probability of about e^{-c}, for every c. And so on 400 padded runs of RAVI-UCB, where sum_k (L_k - H) gap_k has
    mean 0 and the variance of gamma H^2 sum_k gap_k^2 <= gamma H (T + gamma H), to within six standard errors.
    """
    gamma, H = 0.9, 10
    law = [(l, (1 - gamma) * gamma ** (l - 1)) for l in range(1, 1000)]
    assert sum(p * l for l, p in law) == pytest.approx(H)
    for c in (2, 4):
        long = sum(p for l, p in law if l >= c * H)
        assert long == pytest.approx(gamma ** (c * H - 1))
        assert long > 0.8 * exp(-c)
    mdp, T = garnet(3, 2, 2, 0, 0.8), 200
    gamma, H = mdp.discount, mdp.horizon
    records = recorded(mdp, T, 400, build=ravi_ucb.tabular, eta=3.0, beta=1.0)
    ratio = np.array([(s.gap * s.lengths).sum() / (s.H * s.gap.sum()) for s in records])
    assert ratio.min() < 0.7
    assert ratio.max() > 1.3
    left = np.array([(s.gap * (s.lengths - H)).sum() for s in records])
    variance = np.array([gamma * H**2 * (s.gap**2).sum() for s in records])
    assert abs(left.mean()) < 6 * left.std() / 20
    assert abs((left**2 - variance).mean()) < 6 * (left**2 - variance).std() / 20
    assert left.std() > 0.5  # it is there
    assert variance.mean() <= gamma * H * (T + gamma * H)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_e34_the_number_of_epochs_exceeds_its_mean_often(gamma):
    """E34: K(T) = 1 + Binomial(T - 1, 1 - gamma); on a path eta H^3 K(T) / 2 may be more than its mean."""
    T = 12
    mean = constants.expected_epochs(1 / (1 - gamma), T)
    more = sum(p for flags, p in histories(T, gamma) if len(lengths(flags)) > mean)
    assert 0.2 < more < 0.6


def test_e35_only_the_table_of_the_last_play_stands_for_an_epoch():
    """E35: one state, two arms, gamma = .8. An epoch's first play earns (1, 0), every other (0, 1/2). A fifth of the
    plays are first ones, so arm 1 is better: .4 a play against .2. P is known, and no bonus is needed.

    Planned with the first table of each epoch, or with the mean of its tables, Lemma 4.3 holds and the regret is .2 T;
    planned with the last it is small. The weight of the first table in the mean is E[1 / L] = .402, not .2.
    """
    gamma, eta, T = 0.8, 0.3, 10_000
    H, first, rest = 1 / (1 - gamma), np.array([1.0, 0.0]), np.array([0.0, 0.5])
    law = [(l, (1 - gamma) * gamma ** (l - 1)) for l in range(1, 400)]
    by_plays, in_means = 1 / H, sum(p / l for l, p in law)
    assert (by_plays, in_means) == pytest.approx((1 - gamma, (1 - gamma) / gamma * log(H)))
    assert by_plays * first[0] < (1 - by_plays) * rest[1]  # arm 1 is better, by plays
    assert in_means * first[0] > (1 - in_means) * rest[1]  # arm 0, by mean tables
    reset = np.random.default_rng(0).random(T) < 1 - gamma
    L = np.diff([0, *(np.flatnonzero(reset) + 1)])
    regret = {}
    for name, table in {
        "first": lambda l: first,
        "mean": lambda l: (first + (l - 1) * rest) / l,
        "last": lambda l: first if l == 1 else rest,
    }.items():
        pi = np.full((1, 1, 2), 0.5)
        log_pi, V, lost, against = np.log(pi), np.zeros((1, 1)), 0.0, np.zeros(2)
        for l in L:
            lost += ((first + (l - 1) * rest) * ([0, 1] - pi[0, 0])).sum()
            against += table(l) - table(l) @ pi[0, 0]  # sum_k <mu* - mu_k, r_k>, for both arms
            Q = backup(table(l)[None], np.zeros((1, 1, 2)), gamma, np.tile(V[..., None], 2), H)
            V, log_pi, pi = mirror_step(log_pi, pi, Q, eta)
        assert (against <= log(2) / eta + len(L) * eta * constants.kappa(H) + H).all()  # Lemma 4.3, with r_k
        regret[name] = lost / L.sum()
    assert regret["first"] > 0.19
    assert regret["mean"] > 0.15
    assert regret["last"] < 0.02


# ---- the page


def test_every_erratum_is_on_the_page_with_a_check():
    """The page has E1 to E35 once each; each names a test, a claim or a function, and what it names exists."""
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "errata.md").read_text()
    entries = re.findall(r"^\*\*E(\d+)[^\n]*\n(.*?)(?=^\*\*E|^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    assert sorted(int(number) for number, _ in entries) == list(range(1, 36))
    tests = set(re.findall(r"def (test_e\d+\w+)", Path(__file__).read_text()))
    assert tests == set(re.findall(r"`(test_e\d+_\w+)`", text))
    ids = {claim.id for claim in CLAIMS}
    for number, entry in entries:
        assert re.search(r"`(test_\w+|ravi\.\w[\w.]+|[A-Z]\d+[a-z]?)`", entry), number
        for name in re.findall(r"`(test_e\d+)_", entry):
            assert name == f"test_e{number}"
    for id in re.findall(r"`([A-Z]\d+[a-z]?)`", text):
        assert id in ids, id


def test_the_page_is_sorted_by_weight():
    """Errors first, remarks last; in each part by number, so that an entry is found."""
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "errata.md").read_text()
    parts = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    assert [name for name, _ in parts] == ["Errors", "Gaps", "Loose constants", "Remarks"]
    for name, part in parts:
        numbers = [int(number) for number in re.findall(r"^\*\*E(\d+)\.", part, flags=re.MULTILINE)]
        assert numbers == sorted(numbers), name
