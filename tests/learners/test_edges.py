"""Constants that cannot be, problems that are too large, and priors of any size. (Odd problems and options: the
contract, `tests/test_contract.py`.)"""

import numpy as np
import pytest

from ravi import ids
from ravi.mdps import riverswim
from ravi.validation import InputError
from tests.helpers import drawn_rows


@pytest.mark.parametrize("prior", [1e-300, 1e-3, 1e15, 1e300])
def test_a_row_of_any_prior_is_a_distribution(prior):
    counts, to = np.array([[[3, 0], [0, 0]]], np.int32), np.array([[[1, 2], [1, 2]]], np.int32)
    for t in range(20):
        P = drawn_rows(0.0, prior, counts, to, 4, np.uint64(1), t)
        assert (P >= 0).all()
        assert P.sum(-1) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("r-max,scale=1e200", "m is not a finite number with scale = 1e+200 and accuracy = 0.1"),
        ("r-max,accuracy=1e-200", "m is not a finite number with scale = 1 and accuracy = 1e-200"),
        ("delayed-q,scale=1e20", "m is .* with scale = 1e+20 and accuracy = 0.1; it must be at most 4611"),
        ("delayed-q,m=0", "m is 0"),
        ("mbie,m=0", "m is 0"),
        ("mbie,delta=1", "delta is 1"),
        ("mbie-eb,tolerance=0", "tolerance is 0"),
        ("ucb-q,accuracy=1", "accuracy is 1"),
        ("ucb-q,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("liu-su,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("ucrl2,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("ucrl2b,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("scal,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("scal,span=0", "span is 0"),
        ("scal+,scale=1e200,span=1e200", "the bonus is not a finite number with scale = 1e+200 and span = 1e+200"),
        ("npg,eta=1e200,step_scale=1e200", "step_scale * eta is inf"),
        ("o-reps,step_scale=1e305", "eta V is not a finite number with step_scale = 1e+305"),
        ("politex,phase=0", "phase is 0"),
        ("mdp-exp2,coverage=0", "coverage is 0"),
        ("fopo,span=0", "span is 0"),
        ("rmax-ravi-ucb,ascension=sigmoid,threshold=0", "threshold is 0"),
        ("lsvi-ucb,truncation=0", "truncation is 0"),
        ("ucrl2,mode=blind,support=on", "support=on needs mode=aware"),
    ],
)
def test_a_wrong_or_infinite_constant_is_laid_to_its_options(learner, message):
    with pytest.raises(InputError, match=message.replace("+", r"\+").replace(" * ", r" \* ")):
        ids.learner(learner, riverswim(4), 100)


def test_an_explicit_m_needs_no_other_constant():
    for name in ("r-max", "delayed-q"):
        assert ids.learner(f"{name},m=3,scale=1e200,accuracy=1e-200", riverswim(4), 100).settings["m"] == 3


@pytest.mark.parametrize(
    ("learner", "mdp", "message"),
    [
        ("fopo", "garnet/101,1,2", "X <= 100"),
        ("fopo", "garnet/60,4,2", "d <= 200"),
        *((f"{name},truncation=1e-6", "riverswim/3,discount=0.9999", r"discount 0\.9999 and truncation 1e-06 make")
          for name in ("lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi")),
        *((f"{name},truncation=1e-6", "riverswim/mixture/3,discount=0.9999", r"make .* stages")
          for name in ("ucrl-vtr", "oppo")),
    ],
)  # fmt: skip
def test_problems_that_are_too_large_are_refused(learner, mdp, message):
    with pytest.raises(InputError, match=message):
        ids.learner(learner, ids.mdp(mdp), 100)
