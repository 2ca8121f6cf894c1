"""What every learner must do, now and later. A learner joins by having an id; one's own calls `ravi.contract.check`."""

from functools import lru_cache

import pytest

from ravi.contract import CLAIMS, MDPS, Case
from tests.support.learners import LEARNERS

case_of = lru_cache(maxsize=1)(Case)  # the claims about a case follow one another, and share its runs


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_keeps_every_claim(learner, mdp, claim):
    claim(case_of(learner, mdp))
