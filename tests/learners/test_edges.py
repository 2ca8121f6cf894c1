"""Tabular learners at the edge: one state or action, discounts near 0 and 1, T of 1 or 2, extreme and wrong options."""

from itertools import combinations

import numpy as np
import pytest

from ravi import ids, validation
from ravi.mdps import garnet, riverswim
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, drawn_rows, spy
from tests.support.learners import OPTIONS

NAMES = (
    "ravi-ucb", "ravi-ucb/known", "ucrl2", "ucrl2b", "kl-ucrl", "scal", "scal+", "r-max", "mbie", "mbie-eb",
    "certainty-equivalent", "ucbvi-gamma", "psrl", "delayed-q", "ucb-q", "liu-su", "q-learning", "politex", "md-mpi",
    "npg", "mdp-e", "o-reps",
)  # fmt: skip
LEARNERS = [text for name in NAMES for text in (name, *(f"{name},{option}" for option in OPTIONS.get(name, [])))]
ODD = (
    "one-state,discount=0.01",
    "garnet/1,1,1,discount=0.01",
    "garnet/3,1,2,discount=0.01",
    "garnet/1,1,1,discount=0.9999",
    "bandit,discount=0.9999",
    "trap,discount=0.9999",
    "deep-sea/3,discount=0.9999",
)
TABLES = ("Q", "V", "u", "known", "gain", "raw", "Q_hat", "total", "dual")
EXTREMES = (
    "ucrl2,scale=0", "ucrl2,scale=1e100", "ucrl2b,scale=1e-300", "ucrl2b,scale=0", "kl-ucrl,scale=1e-300",
    "kl-ucrl,scale=1e-20", "kl-ucrl,scale=0", "kl-ucrl,scale=1e308", "scal,scale=0.01,span=1e-300", "scal,span=1e308",
    "scal+,scale=0", "scal+,scale=1e20", "r-max,m=4611686018427387904", "r-max,scale=0", "r-max,accuracy=1e6",
    "mbie,scale=1e308", "mbie,m=1", "mbie-eb,scale=1e308", "mbie-eb,m=1", "certainty-equivalent,tolerance=1e-300",
    "ucbvi-gamma,scale=0", "ucbvi-gamma,scale=1e308", "ucbvi-gamma,beta=1e308", "psrl,prior=1e-300",
    "psrl,support=on,prior=1e300", "psrl,tolerance=1e-300", "delayed-q,scale=0", "delayed-q,m=4611686018427387904",
    "ucb-q,scale=0", "ucb-q,scale=1e308", "ucb-q,accuracy=1e-200", "liu-su,scale=0", "q-learning,scale=0",
    "q-learning,scale=1e308", "politex,step_scale=1e308", "politex,phase=4611686018427387904",
    "md-mpi,step_scale=1e300", "md-mpi,scale=0,sweeps=0", "npg,step_scale=1e300", "mdp-e,step_scale=1e300",
    "o-reps,step_scale=1e-300",
)  # fmt: skip
ABSURD = ("1e100", "1e-100", "1e50", "1e-50", "1e308", "1e-300")
NUMBERS = ("nan", "inf", "-inf", "-1", "1e400", "word", "")
VALUES = (float("nan"), float("inf"), -1, "word", [1], object(), 1j)


def assert_sound(learner, mdp, T):
    """A run of T plays that gives policies, finite tables and a finite regret."""
    seen: list = []
    made = run(learner, mdp, T, 2, measures=[spy(seen)])
    assert (made.plays == T).all()
    assert np.isfinite(made.regret).all()
    for state, _ in seen:
        assert (state.policy >= 0).all()
        assert (np.abs(state.policy.sum(-1) - 1) <= 1e-12).all()
        for name in TABLES:
            values = getattr(state, name, np.zeros(1))
            assert not np.isnan(values).any(), name
            assert name == "raw" or np.isfinite(values).all(), name  # a bonus may carry `raw` anywhere


@pytest.mark.parametrize("learner", LEARNERS)
def test_odd_mdps_and_few_plays_give_policies_and_finite_values(learner):
    for mdp in map(ids.mdp, ODD):
        for T in (1, 2, 40):
            assert_sound(learner, mdp, T)


@pytest.mark.parametrize("learner", EXTREMES)
def test_options_as_small_or_large_as_they_come_do_no_harm(learner):
    assert_sound(learner, riverswim(4), 100)


@pytest.mark.parametrize("learner", ["psrl", "o-reps,step_scale=10", "mbie,scale=0.01", "scal,scale=0.01,span=0.1"])
def test_a_batch_does_not_change_a_seed_where_the_horizon_is_long(learner):
    mdp = garnet(6, 2, 1, discount=0.9999)
    batch = run(learner, mdp, 300, [8, 2, 5])
    assert_same_bits(bits(run(learner, mdp, 300, [2])), bits(batch, 1))


@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_raise_an_error_that_names_them(name):
    mdp, known = riverswim(4), ids.LEARNERS[name]
    builder = ids.builder_of(known)
    told = mdp if known.oracle else mdp.problem
    for option, default in ids.options_of(builder, 2).items():
        for text in ("1", "", "nan") if isinstance(default, str) else NUMBERS:
            with pytest.raises(InputError, match=option):
                ids.learner(f"{name},{option}={text}", mdp, 100)
        for value in VALUES:
            if (name, option, value) == ("scal", "span", float("inf")):
                continue  # no bound
            with pytest.raises(InputError, match=option):
                builder(told, 100, **{option: value})
    for T in (0, -1, 1.5, "word", 2**31, float("nan"), None):
        with pytest.raises(InputError, match=r"steps \(T\)"):
            builder(told, T)


@pytest.mark.parametrize("mdp", ["riverswim/4", "garnet/5,16,3,discount=0.999"])
@pytest.mark.parametrize("name", NAMES)
def test_absurd_numbers_are_refused_by_name_or_do_no_harm(name, mdp):
    """Alone and in pairs; warnings are errors here."""
    world = ids.mdp(mdp)
    options = ids.options_of(ids.builder_of(ids.LEARNERS[name]), 2)
    numbers = [option for option, default in options.items() if not isinstance(default, str)]
    alone = [f"{option}={value}" for option in numbers for value in ABSURD]
    for given in [
        *alone,
        *(f"{one},{two}" for one, two in combinations(alone, 2) if one.split("=")[0] != two.split("=")[0]),
    ]:
        try:
            learner = ids.learner(f"{name},{given}", world, 20)
        except InputError as refusal:
            said = str(refusal)
        else:
            said = given
            assert_sound(learner, world, 20)
        assert any(option.split("=")[0] in said for option in given.split(",")), (given, said)


@pytest.mark.parametrize("prior", [1e-300, 1e-3, 1e15, 1e300])
def test_a_row_of_any_prior_is_a_distribution(prior):
    counts, to = np.array([[[3, 0], [0, 0]]], np.int32), np.array([[[1, 2], [1, 2]]], np.int32)
    for t in range(20):
        P = drawn_rows(0.0, prior, counts, to, 4, np.uint64(1), t)
        assert (P >= 0).all()
        assert P.sum(-1) == pytest.approx(1, abs=1e-12)
    with pytest.raises(InputError, match="prior"):
        ids.learner("psrl,prior=1e308", riverswim(4), 20)


def test_numbers_out_of_reach_are_refused_with_their_limit():
    for check in (validation.positive, validation.nonnegative):
        assert check(1e308, "scale") == 1e308
        with pytest.raises(InputError, match=r"scale is 1\.5e\+308; it must be at most 1e\+308"):
            check(1.5e308, "scale")
    for check in (validation.positive, validation.probability):
        assert check(1e-307, "eta") == 1e-307
        with pytest.raises(InputError, match="eta is 1e-308; it must be at least 1e-307"):
            check(1e-308, "eta")
    assert validation.nonnegative(1e-308, "scale") == 1e-308
    assert validation.delta(1e-100, 5) == 1e-100
    with pytest.raises(InputError, match="delta is 1e-101; it must be at least 1e-100"):
        validation.delta(1e-101, 5)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("r-max,scale=1e200", "m is not a finite number with scale = 1e+200 and accuracy = 0.1"),
        ("r-max,accuracy=1e-200", "m is not a finite number with scale = 1 and accuracy = 1e-200"),
        ("delayed-q,scale=1e20", "m is .* with scale = 1e+20 and accuracy = 0.1; it must be at most 4611"),
        ("ucb-q,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("liu-su,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("ucrl2,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("ucrl2b,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("scal,scale=1e307", "the radius is not a finite number with scale = 1e+307"),
        ("scal+,scale=1e200,span=1e200", "the bonus is not a finite number with scale = 1e+200 and span = 1e+200"),
        ("o-reps,eta=1e305", "eta V is not a finite number with step_scale = 1 and eta = 1e+305"),
        ("npg,eta=1e200,step_scale=1e200", "step_scale * eta is inf"),
    ],
)
def test_a_constant_that_is_not_finite_is_laid_to_its_options(learner, message):
    with pytest.raises(InputError, match=message.replace("+", r"\+").replace(" * ", r" \* ")):
        ids.learner(learner, riverswim(4), 100)


def test_an_explicit_m_needs_no_other_constant():
    for name in ("r-max", "delayed-q"):
        assert ids.learner(f"{name},m=3,scale=1e200,accuracy=1e-200", riverswim(4), 100).settings["m"] == 3
