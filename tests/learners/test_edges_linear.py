"""Linear learners at the edge: one state, action or coordinate, discounts near 0 and 1, T of 1 or 2, wrong options."""

from dataclasses import replace

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.runtime import tree
from ravi.runtime.api import resume, run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, spy
from tests.support.learners import OPTIONS

MIXTURES = ("uclk", "uclk+", "uclk-c", "threshold", "ucrl-vtr", "oppo")
PAIRS = ("lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi", "fixed-point-lsvi", "fopo", "mdp-exp2", "rmax-ravi-ucb")
KERNELS = ("two-cycle", "ensemble/1,5,2,2", "ensemble/3,5,1,2", "ensemble/2,1,1,1")  # every coordinate is a kernel
OTHERS = ("hypercube/3,margin=0.005", "terrain/3", "queue/4", "bandit/1", "hypercube/linear/2,margin=0.005")
LINEAR = ("linear/1,1,1", "linear/4,1,1", "linear/6,2,3", "linear/aggregated/5,2,2", "one-state/1", "one-state")

pytestmark = pytest.mark.filterwarnings("error")


def tried(names):
    return [text for name in names for text in (name, *(f"{name},{option}" for option in OPTIONS[name]))]


def sound(learner, world, T, **options):
    """A run whose policies are policies, whose numbers are finite, and whose regret is not negative."""
    seen = []
    made = run(learner, world, T, 2, measures=[spy(seen)], **options)
    assert (made.plays == T).all()
    assert seen
    for state, _ in seen:
        assert (state.policy >= 0).all()
        assert (np.abs(state.policy.sum(-1) - 1) <= 1e-12).all()
        for name, leaf in tree.leaves(state):
            if isinstance(leaf, np.ndarray) and name not in ("data.opened", "J"):  # -inf: no plan; nan: no gain
                assert np.isfinite(leaf).all(), name
    total, error = made.results["regret_total"], made.results["regret_error"]
    assert (total >= -error).all()
    assert (total <= T + error).all()
    return made


def worlds(texts):
    return [ids.mdp(f"{text},discount={discount}") for text in texts for discount in (0.01, 0.99)]


@pytest.mark.parametrize("learner", tried(MIXTURES))
def test_mixtures_of_any_shape_are_run_from_the_first_step(learner):
    fitting = KERNELS if learner.startswith("threshold") else KERNELS + OTHERS
    for world in worlds(fitting):
        for T in (1, 2, 60):
            sound(learner, world, T, pad=True, record=["trajectory"])


@pytest.mark.parametrize("learner", tried(PAIRS))
def test_features_of_pairs_of_any_shape_are_run_from_the_first_step(learner):
    for world in worlds((*KERNELS, *OTHERS, *LINEAR)):
        for T in (1, 2, 60):
            sound(learner, world, T, pad=True, record=["trajectory"])


@pytest.mark.parametrize("learner", tried(MIXTURES))
def test_what_is_no_mixture_is_refused_by_name(learner):
    for text in LINEAR:
        with pytest.raises(InputError, match=rf"^{text.split(',')[0]}.* has no features"):
            run(learner, text, 10)


def test_the_threshold_refuses_features_that_are_no_kernels():
    for text in OTHERS[:4]:
        with pytest.raises(InputError, match=r"features\[\d+, \d+, :, \d+\] is negative"):
            run("threshold", f"{text},discount=0.9", 10)


def rewritten(text):
    """The same mixture in other coordinates: useless, doubled, one only, in other units."""
    world = ids.mdp(text)
    psi, theta = world.features, world.parameter
    none = np.zeros((*psi.shape[:3], 1))
    for features, parameter in (
        (np.concatenate([psi, none], -1), np.append(theta, 0)),
        (np.concatenate([none, psi], -1), np.append(0.3, theta)),
        (np.concatenate([psi, psi], -1), np.append(theta, theta) / 2),
        (world.transitions[..., None], np.ones(1)),
        (1e-6 * psi, 1e6 * theta),
    ):
        yield MDP.from_features(features, parameter, world.successors, world.rewards, 0.9, world.initial)


@pytest.mark.parametrize("learner", tried([name for name in MIXTURES if name != "threshold"]))
def test_coordinates_of_a_mixture_may_be_useless_doubled_alone_or_tiny(learner):
    for text in ("two-cycle", "hypercube/3"):
        for world in rewritten(text):
            sound(learner, world, 150)


@pytest.mark.parametrize("learner", tried(PAIRS))
def test_coordinates_of_pairs_may_be_useless_doubled_or_tiny(learner):
    world = ids.mdp("linear/5,2,3,discount=0.9")
    phi = world.pair_features
    none = np.zeros((*phi.shape[:2], 1))
    for features in (
        np.concatenate([phi, none], -1),
        np.concatenate([none, phi], -1),
        np.concatenate([phi, phi], -1) / 2,
        1e-8 * phi,
    ):
        sound(learner, replace(world, pair_features=features), 150)


@pytest.mark.parametrize("learner", tried(MIXTURES + PAIRS))
def test_a_discount_of_three_nines_is_run(learner):
    sound(learner, ids.mdp("ensemble/3,4,2,2,discount=0.999"), 60)


@pytest.mark.parametrize("learner", tried(MIXTURES + PAIRS))
def test_the_shortest_runs_do_not_depend_on_their_batch_nor_on_stops(learner):
    for T in (1, 2, 3, 37):
        whole = run(learner, "two-cycle,discount=0.5", T, [3, 1], pad=True, record=["trajectory"])
        alone = run(learner, "two-cycle,discount=0.5", T, [1], pad=True, record=["trajectory"])
        assert_same_bits(bits(alone), bits(whole, 1))
        for pause in (0, 1, T - 1):
            half = run(learner, "two-cycle,discount=0.5", T, [3, 1], pad=True, record=["trajectory"], pause=pause)
            again = resume(half, learner, "two-cycle,discount=0.5")
            for row in range(2):
                assert_same_bits(bits(whole, row), bits(again, row))


@pytest.mark.parametrize("name", MIXTURES + PAIRS)
def test_every_wrong_option_is_named(name):
    builder = ids.builder_of(ids.LEARNERS[name])
    world = ids.mdp("two-cycle")
    for option in ids.options_of(builder, 2):
        for value in (-1, float("nan"), float("inf"), -float("inf"), "word", "", [1]):
            with pytest.raises(InputError, match=option):
                builder(world.problem, 60, **{option: value})
        for value in ("-1", "nan", "inf", "word", ""):
            with pytest.raises(InputError, match=option):
                ids.learner(f"{name},{option}={value}", world, 60)
    for T in (0, -1, 1.5, "word", None, float("nan"), 2**31):
        with pytest.raises(InputError, match="steps"):
            builder(world.problem, T)
    with pytest.raises(InputError, match="there is no option 'nothing'"):
        ids.learner(f"{name},nothing=1", world, 60)


@pytest.mark.parametrize(
    "learner",
    [
        "uclk,scale=0", "uclk,scale=1e100", "uclk,regularization=1e100", "uclk,inner=relaxed,scale=1e300",
        "uclk+,scale=0", "uclk+,scale=1e100", "uclk-c,span=1e-100", "uclk-c,span=1e200", "threshold,scale=0",
        "threshold,scale=1e300", "threshold,alpha=0", "threshold,accuracy=1e300", "ucrl-vtr,scale=0",
        "ucrl-vtr,scale=1e300", "ucrl-vtr,truncation=1e300", "ucrl-vtr,regularization=1e300", "oppo,scale=1e300",
        "oppo,step_scale=1e300", "oppo,step_scale=0", "lsvi-ucb,scale=0", "lsvi-ucb,scale=1e300",
        "lsvi-ucb,regularization=1e300", "lsvi-ucb,truncation=1e300", "olsvi-fh,span=1e-200", "olsvi-fh,span=1e200",
        "olsvi-fh,stage=undiscounted,truncation=1e-12", "gamma-lscvi-ucb,span=1e-200", "gamma-lscvi-ucb,span=1e200",
        "rlsvi,scale=0", "rlsvi,scale=1e300", "fixed-point-lsvi,scale=1e300", "fixed-point-lsvi,tolerance=1e300",
        "fixed-point-lsvi,rounds=1", "fopo,scale=0", "fopo,scale=1e300", "fopo,span=1e-200",
        "mdp-exp2,phase=1,step_scale=1e300", "mdp-exp2,phase=1,coverage=1e300", "rmax-ravi-ucb,scale=0",
        "rmax-ravi-ucb,scale=1e300", "rmax-ravi-ucb,threshold=0", "rmax-ravi-ucb,ascension=sigmoid,threshold=1e-5",
        "rmax-ravi-ucb,step_scale=1e100",
    ],
)  # fmt: skip
def test_extreme_options_are_run(learner):
    sound(learner, ids.mdp("ensemble/3,5,2,2,discount=0.9"), 200)
