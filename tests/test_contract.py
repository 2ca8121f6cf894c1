"""What every learner must do, now and later. A learner joins by having an id; one's own calls `ravi.testing.check`."""

import pytest

from ravi.testing import MDPS, check
from tests.support.learners import LEARNERS, WRAPPED


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_keeps_every_claim(learner, mdp):
    fewer = mdp.replace("ensemble/3,12", "ensemble/3,8")  # fopo compares A^X policies in every plan
    check(learner, [fewer if learner.startswith("fopo") else mdp])


@pytest.mark.parametrize("learner", WRAPPED)
def test_every_learner_in_a_wrapper_keeps_every_claim(learner):
    check(learner, MDPS[:1])


FOR_LINEAR_MDPS = {
    "ravi-ucb/linear", "lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi", "fixed-point-lsvi", "fopo", "mdp-exp2",
    "rmax-ravi-ucb",
}  # fmt: skip


@pytest.mark.parametrize("learner", [one for one in LEARNERS if one.split(",")[0] in FOR_LINEAR_MDPS and "," in one])
def test_those_for_linear_mdps_keep_every_claim_on_one_too(learner):
    check(learner, ["linear/6,3,3,discount=0.8"], 300)
