"""`verify` on RAVI-KL for mixtures: its page, its model and its levels (`mutations.mixtures` has its mistakes)."""

from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi.verify import MIXTURES, verify
from ravi.verify.mixtures import model_of

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "verify.md"


def test_every_claim_is_documented():
    page = PAGE.read_text()
    for claim in MIXTURES:
        statement = claim.statement.replace("|", "\\|")
        assert f"| {claim.id} | {statement} |" in page


@pytest.mark.parametrize("id", ["riverswim/mixture/4", "terrain/3,2", "ensemble/3,4,2,2"])
def test_the_truth_is_a_mixture_of_the_kernels(id):
    mdp = ravi.mdp(id)
    model = model_of(mdp)
    assert (model.theta >= 0).all()
    np.testing.assert_allclose(model.psi @ model.theta, mdp.transitions, atol=1e-8)


def test_the_levels_hold_in_runs():
    """E plays under invalid plans against the sum of the levels, on 12 seeds."""
    found = verify("ravi-kl/mixture,plan=greedy", "fork/2,discount=0.5", 200, 12, only=["KM7", "KM8", "K11"])
    assert [row.verdict for row in found.rows] == ["holds"] * 3
