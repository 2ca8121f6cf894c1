"""`verify` on Algorithm 1 with the sets of RAVI-KL, and the bounds of RAVI-KL; its claims are in test_mutations.py."""

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.optimism.relative_entropy import ends
from ravi.theory import kl as theory
from ravi.verify import verify
from ravi.verify.expected import by_dual
from ravi.verify.report import Ladder


@pytest.mark.parametrize(
    ("learner", "mdp"),
    [
        ("ravi-kl,plan=mirror,inner=3,eta=0.5", "garnet/3,2,3,discount=0.75"),
        ("ravi-kl,plan=mirror,inner=2,eta=0.5,support=off,fresh=off", "riverswim/3,discount=0.75"),
        ("ravi-kl/unknown-rewards,plan=mirror,inner=2,eta=0.5", "garnet/3,2,3,discount=0.75"),
        ("ravi-kl,plan=mirror,inner=1,fresh=off,eta=0.5", "tides/3,discount=0.75,block=5"),
    ],
)
def test_algorithm_1_with_sets_obeys_the_paper(learner, mdp):
    found = verify(learner, mdp, 120, 3)
    assert found.holds, found.summary()
    assert not (found.invalid_at > 0).any()


def test_half_the_radius_of_algorithm_1_is_found():
    learner = ids.learner("ravi-kl,plan=mirror,inner=2,eta=0.5", ids.mdp("garnet/3,2,3,discount=0.75"), 120)
    other = ids.learner("ravi-kl,plan=mirror,inner=2,eta=0.5,scale=0.5", ids.mdp("garnet/3,2,3,discount=0.75"), 120)
    mixed = learner._replace(plan=other.plan, parts=other.parts._replace(stated=learner.parts.stated))
    found = verify(mixed, "garnet/3,2,3,discount=0.75", 120, 3)
    assert {"V2c", "V2d"} <= {row.id for row in found.failed()}


def test_the_dual_is_the_maximum():
    """The observer's search against the learner's Newton method, over random rows."""
    mdp = ravi.mdp("garnet/9,3,4")
    rng = np.random.default_rng(0)
    moves = np.array([[[rng.multinomial(rng.integers(0, 50), row) for row in pair] for pair in mdp.transitions]])
    D = ravi.estimators.counts.Counts(moves.sum(-1, dtype=np.int32), moves.astype(np.int32))
    rho, V = rng.exponential(4.0, D.visits.shape), rng.random((1, 9))
    for support in (True, False):
        low, high = ends(mdp.successors, D, rho, support, V)
        np.testing.assert_allclose(by_dual(mdp, moves, rho, support, V), high, atol=1e-10)
        np.testing.assert_allclose(-by_dual(mdp, moves, rho, support, -V), low, atol=1e-10)


def test_the_bounds_are_their_formulas():
    H, X, A, B, T, c = 10.0, 5, 3, 2, 10_000, 0.3
    rho = np.log(X / min(1, np.sqrt(H * X * A / 2**14))) + theory.kappa(T)
    rho_G = np.log(X * A * T) + theory.kappa(T)
    D = X * A * (1 + np.log2(T / (X * A)))
    invalid = 2 * np.sqrt(2) * np.sqrt(H * X * A * T) + 1
    rest = H * X * A + 0.2 * np.sqrt(2 * T) + 2 * H * (2 * D + 1) + H
    times = (1 + c) / (1 - c)  # 1 + 2 c / (1 - c)
    first = (1 + np.sqrt(2)) * H * np.sqrt(X * A * T / 2) * (np.sqrt(rho) + np.sqrt(rho_G))
    assert theory.optimism(H, X, A, B, T, slack=c).total == pytest.approx(times * (first + rest) + invalid)
    L, a, b, r = 2 * X * A * np.log(1 + T / (X * A)), 2**0.5 + 6**0.5, 2 / 3 + (32 / 3) ** 0.5, max(rho, rho_G)
    alpha = a * np.sqrt(0.9 * r * L)
    second = 2 * (alpha * np.sqrt(2 * H * T + H**2 * (2 * D + 1)) + b * H * r * L) + 2 * H * alpha**2 + H * X * A + H
    assert theory.variance(H, X, A, B, T, slack=c).total == pytest.approx(times * (second + rest) + invalid)
    assert theory.regret(H, X, A, B, T, slack=c).total == pytest.approx(times * (min(first, second) + rest) + invalid)
    assert theory.optimism(H, X, A, B, T).total == pytest.approx(first + rest + invalid)
    assert theory.optimism(H, X, A, B, T, slack=1).total == np.inf


def test_the_variance_form_wins_where_the_horizon_is_long():
    for H in (1e3, 1e4):
        assert theory.variance(H, 10, 2, 3, 10**14) < theory.optimism(H, 10, 2, 3, 10**14)


def test_a_ladder_whose_charges_are_no_number_prints():
    """Of a broken learner: its report is printed, not refused."""
    labels = ("measured regret", "what K5 charges its plays with", "explicit bound")
    found = Ladder(2.0, np.nan, np.nan, np.nan, np.inf, 3.0, labels)
    assert [label for label, _ in found.rungs()] == list(labels)
    assert "what K5 charges its plays with" in str(found)
