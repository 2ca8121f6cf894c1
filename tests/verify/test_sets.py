"""`verify` on Algorithm 1 with the sets of RAVI-KL, and the bounds of RAVI-KL; its claims are in test_mutations.py."""

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.optimism.relative_entropy import ends
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


def test_a_ladder_whose_charges_are_no_number_prints():
    """Of a broken learner: its report is printed, not refused."""
    labels = ("measured regret", "what K5 charges its plays with", "explicit bound")
    found = Ladder(2.0, np.nan, np.nan, np.nan, np.inf, 3.0, labels)
    assert [label for label, _ in found.rungs()] == list(labels)
    assert "what K5 charges its plays with" in str(found)
