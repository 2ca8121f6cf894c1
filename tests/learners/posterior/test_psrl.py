"""PSRL: draws have the posterior's distribution, policies are optimal for them, epochs end as stated."""

import numpy as np
import pytest
from scipy import stats

from ravi import ids
from ravi.checks import InputError
from ravi.engine import run
from ravi.learners.posterior.dirichlet import chance_up_to_one, gamma_above_one, up_to_one
from ravi.mdps import garnet, riverswim
from ravi.random import block
from tests.helpers import draw_rows, spy, whole_rows

KEY = np.uint64(7)


@pytest.mark.parametrize("shape", [1.001, 1.5, 4.0, 300.0])
def test_variates_of_shape_above_one_are_gamma(shape):
    """Kolmogorov-Smirnov on 20,000 draws; p < 1e-5 is a false alarm of chance 1e-5."""
    draws = [gamma_above_one(shape, KEY, t, 1)[0] for t in range(20_000)]
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-5
    assert stats.kstest(draws, stats.gamma(shape * 1.05).cdf).pvalue < 1e-5


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.3, 0.9, 1.0])
def test_variates_of_shape_up_to_one_are_gamma(shape):
    """100,000 candidates, in logarithms, which a shape of 0.001 needs; p < 1e-5 has chance 1e-5."""
    draws = []
    for t in range(100_000):
        u, w, _, _ = block(KEY, t, 1)
        g, small = up_to_one(shape, u)
        if w < chance_up_to_one(shape, g, small):
            draws.append(np.log(g) if g > 0 else np.log(-g) / shape)
    assert len(draws) > 70_000
    assert stats.kstest(draws, stats.loggamma(shape).cdf).pvalue > 1e-5
    assert stats.kstest(draws, stats.loggamma(shape * 1.1).cdf).pvalue < 1e-5


def rows(prior, counts, to, X, many):
    out, counts, to = np.empty((many, 1, 1, X)), np.array(counts, np.int32), np.array(to, np.int32)
    for t in range(many):
        draw_rows(prior, counts[None, None], to[None, None], KEY, t, out[t])
    return out[:, 0, 0]


def rows_of_sticks(prior, counts, to, X, many):
    """The same, by sticks; a prior of 1 / X is one of theta = 1."""
    counts, to, theta = np.array(counts, np.int32), np.array(to, np.int32), 1.0 if prior * X == 1 else prior * X
    return np.array([whole_rows(theta, counts[None, None], to[None, None], X, KEY, t)[0, 0] for t in range(many)])


@pytest.mark.parametrize("rows", [rows, rows_of_sticks])
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


def test_a_tiny_prior_gives_one_state_all_the_mass():
    """Each with chance 1/X: chi-square over 4,000 rows, p < 1e-5 is a false alarm of chance 1e-5."""
    drawn = rows(1e-7, [0, 0], [1, 3], 5, 4000)
    assert np.isfinite(drawn).all()
    assert (drawn.max(-1) > 1 - 1e-9).mean() > 0.999
    assert stats.chisquare(np.bincount(drawn.argmax(-1), minlength=5)).pvalue > 1e-5


@pytest.mark.parametrize(
    "option",
    ["", ",prior=1", ",schedule=doubling", ",draws=sticks,tolerance=1e-6", ",draws=sticks,prior=0.3,tolerance=1e-6"],
)
def test_every_policy_is_optimal_for_its_draw(option):
    mdp, T, seen = garnet(8, 3, 3, 0, 0.9), 300, []
    learner = ids.learner(f"psrl{option}", mdp, T)
    run(learner, mdp, T, [11], measures=[spy(seen)])
    X, A, r, gamma = 8, 3, mdp.rewards, mdp.discount
    for k, (state, path) in enumerate(seen):
        t, P = int(path.time[0]), np.empty((X, A, X))
        assert t == state.began[0]
        prior, moves = learner.settings["prior"], state.data.moves[0]
        if "sticks" in option:  # all of every row, however little of it the plan has drawn
            P = whole_rows(1.0 if prior == 1 / X else prior * X, moves, mdp.successors, X, np.uint64(11), t)
        else:
            draw_rows(prior, moves, mdp.successors, np.uint64(11), t, P)
        pi = state.policy[0].argmax(-1)
        value = np.linalg.solve(np.eye(X) - gamma * P[np.arange(X), pi], r[np.arange(X), pi])
        assert (r + gamma * P @ value <= value[:, None] + 1e-6).all()
        np.testing.assert_allclose(state.u[0], value - value.min(), rtol=0, atol=3e-6)
        assert state.data.moves[0].sum() == t - 1, k


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


def test_it_finds_the_optimum():
    made = run("psrl", riverswim(6, 0.95), 20_000, 8)
    assert np.median(made.gap) < 0.01


def test_rows_of_many_states_are_drawn_by_sticks():
    for X, draws in ((100, None), (200, "sticks")):
        mdp = garnet(X, 2, 2, 0, 0.9)
        assert ids.learner("psrl", mdp, 100).settings.get("draws") == draws
        assert "draws" not in ids.learner("psrl,prior=1", mdp, 100).settings
        assert "draws" not in ids.learner("psrl,support=on", mdp, 100).settings


def test_how_kernels_are_drawn_does_not_change_what_is_learned():
    """Regret by entries and by sticks, 64 seeds each: means within four standard errors, a false alarm of 6e-5."""
    found = [run(f"psrl,draws={draws}", riverswim(6, 0.9), 5000, 64).regret for draws in ("entries", "sticks")]
    off = abs(found[0].mean() - found[1].mean())
    assert off <= 4 * np.sqrt((found[0].var(ddof=1) + found[1].var(ddof=1)) / 64)


@pytest.mark.parametrize(
    "wrong",
    ["prior=0", "schedule=weekly", "tolerance=-1", "draws=straws", "draws=sticks,support=on", "draws=sticks,prior=1e4"],
)
def test_errors_name_the_argument(wrong):
    with pytest.raises(InputError, match=wrong.split("=")[0]):
        ids.learner(f"psrl,{wrong}", riverswim(4, 0.8), 100)


def test_the_recorded_tolerance_is_the_one_asked_unless_rounding_forbids_it():
    for asked in (1e-3, 1e-7):
        made = ids.learner(f"psrl,tolerance={asked}", riverswim(4, 0.9), 100).settings["tolerance"]
        assert made == pytest.approx(asked, rel=1e-12)
    raised = ids.learner("psrl,tolerance=1e-12", riverswim(4, 0.9999), 100).settings["tolerance"]
    assert raised == pytest.approx(2.0**-44 * 0.9999 * 1e8, rel=1e-9)
