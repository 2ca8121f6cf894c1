"""Learners at the edge: one state, action or coordinate, discounts near 0 and 1, T of 1 or 2, extreme and wrong
options."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from ravi import ids, validation
from ravi.core import MDP
from ravi.mdps import garnet, riverswim
from ravi.runtime import tree
from ravi.runtime.api import resume, run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, drawn_rows, spy
from tests.support.learners import OPTIONS

pytestmark = pytest.mark.filterwarnings("error")
OF_TABLES = ("ucrl", "pac", "q", "regularised", "contrib")  # others of their families are tried there
MIXTURES = ("uclk", "uclk+", "uclk-c", "threshold", "ucrl-vtr", "oppo")
PAIRS = (*(name for name, known in ids.LEARNERS.items() if ".linear." in known.module), "mdp-exp2", "rmax-ravi-ucb")
TABULAR = (
    "ravi-ucb", "ravi-ucb/known", "psrl",
    *(name for name, known in ids.LEARNERS.items()
      if known.module.split(".")[2] in OF_TABLES and name not in (*MIXTURES, *PAIRS)),
)  # fmt: skip
ODD = (
    "one-state,discount=0.01", "garnet/1,1,1,discount=0.01", "garnet/3,1,2,discount=0.01",
    "garnet/1,1,1,discount=0.9999", "bandit,discount=0.9999", "trap,discount=0.9999", "deep-sea/3,discount=0.9999",
)  # fmt: skip
KERNELS = ("two-cycle", "ensemble/1,5,2,2", "ensemble/3,5,1,2", "ensemble/2,1,1,1")  # every coordinate is a kernel
OTHERS = ("hypercube/3,margin=0.005", "terrain/3", "queue/4", "bandit/1", "hypercube/linear/2,margin=0.005")
LINEAR = ("linear/1,1,1", "linear/4,1,1", "linear/6,2,3", "linear/aggregated/5,2,2", "one-state/1", "one-state")
UNBOUNDED = ("data.opened", "J", "raw")  # -inf: no plan; nan: no gain; a bonus may carry `raw` anywhere


def tried(names):
    return [text for name in names for text in (name, *(f"{name},{option}" for option in OPTIONS.get(name, [])))]


def sound(learner, world, T, **options):
    """A run whose policies are policies, whose numbers are finite, and whose regret is not negative."""
    seen = []
    made = run(learner, world, T, 2, measures=[spy(seen)], **options)
    assert (made.plays == T).all()
    for state, _ in seen:
        assert (state.policy >= 0).all()
        assert (np.abs(state.policy.sum(-1) - 1) <= 1e-12).all()
        for name, leaf in tree.leaves(state):
            assert name in UNBOUNDED or not isinstance(leaf, np.ndarray) or np.isfinite(leaf).all(), name
    total, error = made.results["regret_total"], made.results["regret_error"]
    assert (total >= -error).all()
    assert (total <= T + error).all()
    return made


def at_both_discounts(texts):
    return [f"{text},discount={discount}" for text in texts for discount in (0.01, 0.99)]


@pytest.mark.parametrize(
    ("learner", "worlds"),
    [*((one, ODD) for one in tried(TABULAR)),
     *((one, at_both_discounts(KERNELS if "threshold" in one else KERNELS + OTHERS)) for one in tried(MIXTURES)),
     *((one, at_both_discounts(KERNELS + OTHERS + LINEAR)) for one in tried(PAIRS))],
)  # fmt: skip
def test_odd_mdps_and_few_plays_give_policies_and_finite_values(learner, worlds):
    for world in map(ids.mdp, worlds):
        for T in (1, 2, 50):
            sound(learner, world, T)


EXTREMES = {
    "riverswim/4": (
        "ucrl2,scale=0", "ucrl2,scale=1e100", "ucrl2b,scale=1e-300", "ucrl2b,scale=0", "kl-ucrl,scale=1e-300",
        "kl-ucrl,scale=1e-20", "kl-ucrl,scale=0", "kl-ucrl,scale=1e308", "scal,scale=0.01,span=1e-300",
        "scal,span=1e308", "scal+,scale=0", "scal+,scale=1e20", "r-max,m=4611686018427387904", "r-max,scale=0",
        "r-max,accuracy=1e6", "mbie,scale=1e308", "mbie,m=1", "mbie-eb,scale=1e308", "mbie-eb,m=1",
        "certainty-equivalent,tolerance=1e-300", "ucbvi-gamma,scale=0", "ucbvi-gamma,scale=1e308",
        "ucbvi-gamma,beta=1e308", "psrl,prior=1e-300", "psrl,support=on,prior=1e300", "psrl,tolerance=1e-300",
        "delayed-q,scale=0", "delayed-q,m=4611686018427387904", "ucb-q,scale=0", "ucb-q,scale=1e308",
        "ucb-q,accuracy=1e-200", "liu-su,scale=0", "q-learning,scale=0", "q-learning,scale=1e308",
        "politex,step_scale=1e308", "politex,phase=4611686018427387904", "md-mpi,step_scale=1e300",
        "md-mpi,scale=0,sweeps=0", "npg,step_scale=1e300", "mdp-e,step_scale=1e300", "o-reps,step_scale=1e-300",
    ),
    "ensemble/3,5,2,2,discount=0.9": (
        "uclk,scale=0", "uclk,scale=1e100", "uclk,regularization=1e100", "uclk,inner=relaxed,scale=1e300",
        "uclk+,scale=0", "uclk+,scale=1e100", "uclk-c,span=1e-100", "uclk-c,span=1e200", "threshold,scale=0",
        "threshold,scale=1e300", "threshold,alpha=0", "threshold,accuracy=1e300", "ucrl-vtr,scale=0",
        "ucrl-vtr,scale=1e300", "ucrl-vtr,truncation=1e300", "ucrl-vtr,regularization=1e300", "oppo,scale=1e300",
        "oppo,step_scale=1e300", "oppo,step_scale=0", "lsvi-ucb,scale=0", "lsvi-ucb,scale=1e300",
        "lsvi-ucb,regularization=1e300", "lsvi-ucb,truncation=1e300", "olsvi-fh,span=1e-200", "olsvi-fh,span=1e200",
        "olsvi-fh,stage=undiscounted,truncation=1e-12", "gamma-lscvi-ucb,span=1e-200", "gamma-lscvi-ucb,span=1e200",
        "rlsvi,scale=0", "rlsvi,scale=1e300", "fixed-point-lsvi,scale=1e300", "fopo,scale=0", "fopo,scale=1e300",
        "fopo,span=1e-200", "mdp-exp2,phase=1,step_scale=1e300", "mdp-exp2,phase=1,coverage=1e300",
        "rmax-ravi-ucb,scale=0", "rmax-ravi-ucb,scale=1e300", "rmax-ravi-ucb,threshold=0",
        "rmax-ravi-ucb,ascension=sigmoid,threshold=1e-5", "rmax-ravi-ucb,step_scale=1e100",
    ),
    "ensemble/3,4,2,2,discount=0.999": tried(MIXTURES + PAIRS),
}  # fmt: skip


@pytest.mark.parametrize(("learner", "world"), [(one, world) for world, some in EXTREMES.items() for one in some])
def test_options_as_small_or_large_as_they_come_do_no_harm(learner, world):
    sound(learner, ids.mdp(world), 100)


@pytest.mark.parametrize("learner", tried(MIXTURES))
def test_what_is_no_mixture_is_refused_by_name(learner):
    for text in LINEAR:
        with pytest.raises(InputError, match=rf"^{text.split(',')[0]}.* has no features"):
            run(learner, text, 10)
    for text in OTHERS[:4] if learner.startswith("threshold") else ():
        with pytest.raises(InputError, match=r"features\[\d+, \d+, :, \d+\] is negative"):
            run(learner, f"{text},discount=0.9", 10)


def rewritten(world):
    """The same features in other coordinates: useless, doubled, in other units; of mixtures with their theta."""
    mixture = world.features is not None
    f, theta = (world.features, world.parameter) if mixture else (world.pair_features, np.zeros(3))
    none = np.zeros((*f.shape[:-1], 1))
    for features, parameter in (
        (np.concatenate([f, none], -1), np.append(theta, 0)),
        (np.concatenate([none, f], -1), np.append(0.3, theta)),
        (np.concatenate([f, f], -1) / (1 if mixture else 2), np.append(theta, theta) / 2),
        (1e-6 * f, 1e6 * theta),
        *([(world.transitions[..., None], np.ones(1))] if mixture else []),
    ):
        if mixture:
            yield MDP.from_features(features, parameter, world.successors, world.rewards, 0.9, world.initial)
        else:
            yield replace(world, pair_features=features)


@pytest.mark.parametrize(
    ("learner", "text"),
    [*((one, text) for one in tried(MIXTURES) if "threshold" not in one for text in ("two-cycle", "hypercube/3")),
     *((one, "linear/5,2,3,discount=0.9") for one in tried(PAIRS))],
)  # fmt: skip
def test_coordinates_may_be_useless_doubled_alone_or_tiny(learner, text):
    for world in rewritten(ids.mdp(text)):
        sound(learner, world, 150)


@pytest.mark.parametrize("learner", ["psrl", "o-reps,step_scale=10", "mbie,scale=0.01", "scal,scale=0.01,span=0.1"])
def test_a_batch_does_not_change_a_seed_where_the_horizon_is_long(learner):
    mdp = garnet(6, 2, 1, discount=0.9999)
    batch = run(learner, mdp, 300, [8, 2, 5])
    assert_same_bits(bits(run(learner, mdp, 300, [2])), bits(batch, 1))


@pytest.mark.parametrize("learner", tried(MIXTURES + PAIRS))
def test_the_shortest_runs_do_not_depend_on_their_batch_nor_on_stops(learner):
    for T in (1, 2, 3, 37):
        given = {"pad": True, "record": ["trajectory"]}
        whole = run(learner, "two-cycle,discount=0.5", T, [3, 1], **given)
        assert_same_bits(bits(run(learner, "two-cycle,discount=0.5", T, [1], **given)), bits(whole, 1))
        for pause in (0, 1, T - 1):
            half = run(learner, "two-cycle,discount=0.5", T, [3, 1], pause=pause, **given)
            again = resume(half, learner, "two-cycle,discount=0.5")
            for row in range(2):
                assert_same_bits(bits(whole, row), bits(again, row))


NUMBERS = ("nan", "inf", "-inf", "-1", "1e400", "word", "")
VALUES = (float("nan"), float("inf"), -1, "word", [1], object(), 1j)


@pytest.mark.parametrize("name", TABULAR + MIXTURES + PAIRS)
def test_wrong_options_raise_an_error_that_names_them(name):
    known = ids.LEARNERS[name]
    mdp, builder = ids.mdp("two-cycle"), ids.builder_of(known)
    told = mdp if known.oracle else mdp.problem
    for option, default in ids.options_of(builder, 2).items():
        for text in ("1", "", "nan") if isinstance(default, str) else NUMBERS:
            if (name, option) == ("scal", "span") and text in ("inf", "1e400"):
                continue  # no bound
            with pytest.raises(InputError, match=option):
                ids.learner(f"{name},{option}={text}", mdp, 100)
        for value in VALUES:
            if (name, option, value) == ("scal", "span", float("inf")):
                continue
            with pytest.raises(InputError, match=option):
                builder(told, 100, **{option: value})
    for T in (0, -1, 1.5, "word", 2**31, float("nan"), None):
        with pytest.raises(InputError, match=r"steps \(T\)"):
            builder(told, T)
    with pytest.raises(InputError, match="there is no option 'nothing'"):
        ids.learner(f"{name},nothing=1", mdp, 60)


ABSURD = ("1e100", "1e-100", "1e50", "1e-50", "1e308", "1e-300")


@pytest.mark.parametrize("mdp", ["riverswim/4", "garnet/5,16,3,discount=0.999"])
@pytest.mark.parametrize("name", TABULAR)
def test_absurd_numbers_are_refused_by_name_or_do_no_harm(name, mdp):
    """Alone and in pairs; warnings are errors here."""
    world = ids.mdp(mdp)
    options = ids.options_of(ids.builder_of(ids.LEARNERS[name]), 2)
    numbers = [option for option, default in options.items() if not isinstance(default, str)]
    alone = [f"{option}={value}" for option in numbers for value in ABSURD]
    pairs = (f"{one},{two}" for one, two in combinations(alone, 2) if one.split("=")[0] != two.split("=")[0])
    for given in [*alone, *pairs]:
        refusal = ""
        try:
            learner = ids.learner(f"{name},{given}", world, 20)
        except InputError as error:
            refusal = str(error)
        else:
            sound(learner, world, 20)
        assert not refusal or any(option.split("=")[0] in refusal for option in given.split(",")), (given, refusal)


@pytest.mark.parametrize("prior", [1e-300, 1e-3, 1e15, 1e300])
def test_a_row_of_any_prior_is_a_distribution(prior):
    counts, to = np.array([[[3, 0], [0, 0]]], np.int32), np.array([[[1, 2], [1, 2]]], np.int32)
    for t in range(20):
        P = drawn_rows(0.0, prior, counts, to, 4, np.uint64(1), t)
        assert (P >= 0).all()
        assert P.sum(-1) == pytest.approx(1, abs=1e-12)


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
        ("delayed-q,m=0", "m is 0"),
        ("mbie,m=0", "m is 0"),
        ("mbie,delta=1", "delta is 1"),
        ("mbie-eb,tolerance=0", "tolerance is 0"),
        ("ucb-q,accuracy=1", "accuracy is 1"),
        ("ucb-q,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("liu-su,accuracy=1e-306", "H_q is not a finite number with accuracy = 1e-306"),
        ("q-learning,power=0.5", "power is 0.5; it must be more than 1/2, or Q does not converge"),
        ("q-learning,power=1", "power is 1"),
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
        *((f"{name},mode=blind,support=on", "support=on needs mode=aware") for name in ("ucrl2", "scal+")),
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
