"""PSRL: draws have the posterior's distribution, policies are optimal for them, epochs end as stated."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ravi import ids
from ravi.core import MDP
from ravi.learners.posterior.draws import gamma, log_gamma
from ravi.mdps import garnet, riverswim
from ravi.planning.average import evaluate_average, solve_average
from ravi.planning.evaluation import evaluate
from ravi.planning.solver import solve
from ravi.runtime.api import run
from tests.helpers import drawn_rows, spy

KEY = np.uint64(7)


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.3, 0.9, 1.0, 1.001, 1.5, 4.0, 300.0])
def test_variates_are_gamma(shape):
    """Kolmogorov-Smirnov on 50,000 draws, in logarithms, which a shape of 0.001 needs; p < 1e-5 has chance 1e-5."""
    draws = [log_gamma(shape, KEY, t, 1)[0] for t in range(50_000)]
    assert stats.kstest(draws, stats.loggamma(shape).cdf).pvalue > 1e-5
    assert stats.kstest(draws, stats.loggamma(shape * 1.1).cdf).pvalue < 1e-5
    np.testing.assert_allclose(
        [gamma(shape, KEY, t, 1)[0] for t in range(200)], np.exp(draws[:200]), rtol=1e-12, atol=1e-300
    )


def rows_on_all_states(prior, counts, to, X, many):
    """A prior of 1 / X is one of theta = 1."""
    counts, to, theta = np.array(counts, np.int32), np.array(to, np.int32), 1.0 if prior * X == 1 else prior * X
    return np.array([drawn_rows(theta, 0.0, counts[None, None], to[None, None], X, KEY, t)[0, 0] for t in range(many)])


def rows_on_the_support(prior, counts, to, X, many):
    """All states are in it, and its first two places are padding."""
    row, met = np.array([0, 0, *range(X)], np.int32), np.zeros(X + 2, np.int32)
    met[2 + np.array(to)] = counts
    return np.array([drawn_rows(0.0, prior, met[None, None], row[None, None], X, KEY, t)[0, 0] for t in range(many)])


@pytest.mark.parametrize("rows", [rows_on_all_states, rows_on_the_support])
@pytest.mark.parametrize(
    ("prior", "counts"), [(0.2, [0, 0]), (0.2, [3, 0]), (0.01, [1, 40]), (1.0, [2, 5]), (2.5, [0, 1])]
)
def test_rows_have_the_moments_and_margins_of_their_posterior(prior, counts, rows):
    """Means to five standard errors, and KS of every margin at 1e-6: chance of a false alarm below 1e-4 in all."""
    X, to, many = 5, [1, 3], 20_000
    alpha = np.full(X, prior)
    alpha[to] += counts
    drawn, exact = rows(prior, counts, to, X, many), stats.dirichlet(alpha)
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=0, atol=1e-12)
    assert (drawn >= 0).all()
    error = np.sqrt(exact.var() / many)
    assert (np.abs(drawn.mean(0) - exact.mean()) <= 5 * error).all()
    for x in range(X):
        seen = np.maximum(drawn[:, x], 1e-12)  # the mass below, which the draw cuts to 0, as one atom
        margin = stats.beta(alpha[x], alpha.sum() - alpha[x])
        below = np.mean(drawn[:, x] < 1e-12), margin.cdf(1e-12)
        assert abs(below[0] - below[1]) <= 5 * np.sqrt(below[1] * (1 - below[1]) / many) + 1e-9
        above = seen[seen > 1e-12]
        conditional = lambda q, m=margin, b=below[1]: (m.cdf(q) - b) / (1 - b)  # noqa: E731
        assert stats.kstest(above, conditional).pvalue > 1e-6
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] - exact.cov()[0, 1] / np.sqrt(exact.var()[:2].prod())) < 0.05


@pytest.mark.parametrize("rows", [rows_on_all_states, rows_on_the_support])
def test_a_tiny_prior_gives_one_state_all_the_mass(rows):
    """Each with chance 1/X: chi-square over 4,000 rows, p < 1e-5 is a false alarm of chance 1e-5."""
    drawn = rows(1e-7, [0, 0], [1, 3], 5, 4000)
    assert np.isfinite(drawn).all()
    assert (drawn.max(-1) > 1 - 1e-9).mean() > 0.999
    assert stats.chisquare(np.bincount(drawn.argmax(-1), minlength=5)).pvalue > 1e-5


@pytest.mark.parametrize(
    "option",
    ["", ",prior=1", ",prior=0.3", ",schedule=doubling", ",schedule=reset"],
)
def test_every_policy_is_optimal_for_its_draw(option):
    mdp, T, seen = garnet(8, 3, 3, 0, 0.9), 300, []
    learner = ids.learner(f"psrl,tolerance=1e-6{option}", mdp, T)
    run(learner, mdp, T, [11], measures=[spy(seen)])
    X, r, gamma = 8, mdp.rewards, mdp.discount
    for k, (state, path) in enumerate(seen):
        t = int(path.time[0])
        assert t == state.began[0]
        prior, moves = learner.settings["prior"], state.data.moves[0]
        theta = 1.0 if prior == 1 / X else prior * X  # all of every row, however little of it the plan has drawn
        P = drawn_rows(theta, 0.0, moves, mdp.successors, X, np.uint64(11), t)
        pi = state.policy[0].argmax(-1)
        value = np.linalg.solve(np.eye(X) - gamma * P[np.arange(X), pi], r[np.arange(X), pi])
        assert (r + gamma * P @ value <= value[:, None] + 1e-6).all()
        np.testing.assert_allclose(state.u[0], value - value.min(), rtol=0, atol=3e-6)
        assert state.data.moves[0].sum() == t - 1, k


@pytest.mark.parametrize("option", ["", ",prior=0.3", ",schedule=reset-or-doubling", ",support=on"])
def test_in_the_average_reward_every_gain_is_nearly_that_of_the_draw(option):
    """Within span(h) / (t + 1) + tolerance / sqrt(t), from every start."""
    mdp, T, seen = replace(garnet(6, 2, 3, 0, 0.9), discount=1.0), 400, []
    learner = ids.learner(f"psrl{option}", mdp, T)
    run(learner, mdp, T, [11], measures=[spy(seen)])
    told = learner.settings.get("support") == "on"
    for state, path in seen:
        t, prior = int(path.time[0]), learner.settings["prior"]
        theta = 0.0 if told else 1.0 if prior == 1 / 6 else prior * 6
        P = drawn_rows(theta, prior if told else 0.0, state.data.moves[0], mdp.successors, 6, np.uint64(11), t)
        sample = MDP.from_dense(P, mdp.rewards, initial=np.full(6, 1 / 6), criterion="average", renormalise=True)
        best, own = solve_average(sample), evaluate_average(sample, state.policy[0])
        less = np.ptp(best.bias) / (t + 1) + learner.settings["tolerance"] / np.sqrt(t)
        assert own.gain.min() >= best.gain - less - best.gain_error - own.gain_error
    assert len(seen) > 5


@pytest.mark.parametrize("option", ["", ",prior=0.3", ",support=on"])
def test_in_episodes_every_policy_is_optimal_for_its_draw(option):
    mdp, T, seen = garnet(6, 2, 3, 0, 0.9).in_episodes(5), 200, []
    learner = ids.learner(f"psrl,tolerance=1e-7{option}", mdp, T)
    run(learner, mdp, T, [11], measures=[spy(seen)])
    told = learner.settings.get("support") == "on"
    for k, (state, path) in enumerate(seen):
        t, prior = int(path.time[0]), learner.settings["prior"]
        theta = 0.0 if told else 1.0 if prior == 1 / 6 else prior * 6
        P = drawn_rows(theta, prior if told else 0.0, state.data.moves[0], mdp.successors, 6, np.uint64(11), t)
        given = {"criterion": "episodic", "episode": 5, "renormalise": True}
        sample = MDP.from_dense(P, mdp.rewards, initial=np.full(6, 1 / 6), **given)
        assert (evaluate(sample, state.policy[0]).V >= solve(sample).V - 1e-7).all()
        assert t == 5 * k + 1
        assert state.data.moves[0].sum() == t - 1


def test_epochs_are_those_of_tsde():
    """pi_k is played while t <= t_k + (t_k - t_{k-1}) and n_t <= 2 n_{t_k}, t_0 = 0: by the book, from the stream."""
    mdp, T = garnet(5, 2, 2, 0, 0.8), 2000
    made = run("psrl,schedule=doubling", mdp, T, [5], record=["stream"])
    x, a = made.results["stream_state"][0], made.results["stream_action"][0]
    t, before, begins = 1, 0, []
    n = np.zeros((5, 2), int)
    while t <= T:
        begin, at_begin = t, n.copy()
        begins.append(begin)
        while t <= begin + (begin - before) and (n <= 2 * at_begin).all():
            if t <= T:
                n[x[t - 1], a[t - 1]] += 1
            t += 1
            if t > T:
                break
        before = begin
    assert list(made.T_k[0]) == begins
    assert 30 < len(begins) < 300


def test_the_recorded_tolerance_is_the_one_asked_unless_rounding_forbids_it():
    for asked in (1e-3, 1e-7):
        made = ids.learner(f"psrl,tolerance={asked}", riverswim(4, 0.9), 100).settings["tolerance"]
        assert made == pytest.approx(asked, rel=1e-12)
    raised = ids.learner("psrl,tolerance=1e-12", riverswim(4, 0.9999), 100).settings["tolerance"]
    assert raised == pytest.approx(2.0**-44 * 0.9999 * 1e8, rel=1e-9)
