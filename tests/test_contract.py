"""The one sweep over learners: the claims of `ravi.testing`, odd problems, few steps, odd options.

A learner joins by having an id (`tests/support/learners.py`). A user's own learner calls `ravi.testing.check`.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP
from ravi.runtime import ranges, tree
from ravi.runtime.api import resume, run
from ravi.runtime.result import Run
from ravi.testing import MDPS, check
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, spy
from tests.support.learners import AVERAGE, EPISODES, EPISODIC, LEARNERS, WRAPPED, takes

MIXTURE, LINEAR = "riverswim/mixture/5,discount=0.9", "linear/5,2,3,discount=0.9"
RIVER = "riverswim/mixture/4,criterion=average"
OF_PAIRS = {
    "ravi-ucb/linear", "lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi", "fixed-point-lsvi", "fopo", "mdp-exp2",
    "rmax-ravi-ucb",
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("error")


def named(text):
    return text.split(",")[0]


def claimed():
    """Learner, MDP and T of every check; fopo compares A^X policies in every plan."""
    for text in LEARNERS:
        for mdp in MDPS:
            yield text, mdp.replace("ensemble/3,12", "ensemble/3,8") if text.startswith("fopo") else mdp, 400
    yield from ((text, mdp, 400) for text in EPISODIC for mdp in EPISODES if takes(text, mdp))
    yield from ((text, RIVER, 400) for text in AVERAGE if takes(text, RIVER))
    yield from ((text, MDPS[0], 400) for text in WRAPPED)
    yield from ((one, "linear/6,3,3,discount=0.8", 300) for one in LEARNERS if named(one) in OF_PAIRS and "," in one)


@pytest.mark.parametrize(("learner", "mdp", "steps"), list(claimed()))
def test_every_learner_keeps_every_claim(learner, mdp, steps):
    check(learner, [mdp], steps)


# Odd problems, and few steps.

TABLES = (
    "one-state,discount=0.01", "garnet/1,1,1,discount=0.01", "garnet/3,1,2,discount=0.01",
    "garnet/1,1,1,discount=0.9999", "bandit,discount=0.9999", "trap,discount=0.9999", "deep-sea/3,discount=0.9999",
)  # fmt: skip
KERNELS = ("two-cycle", "ensemble/1,5,2,2", "ensemble/3,5,1,2", "ensemble/2,1,1,1")  # every coordinate is a kernel
OTHERS = ("hypercube/3,margin=0.005", "terrain/3", "queue/4", "bandit/1", "hypercube/linear/2,margin=0.005")
PAIRS = ("linear/1,1,1", "linear/4,1,1", "linear/6,2,3", "linear/aggregated/5,2,2", "one-state/1", "one-state")
MAY_BE_INFINITE = {"data.opened", "J", "best.dual", "half.dual", "raw"}  # no plan, gain or search yet; a raw bonus


def odd_worlds(text):
    """Those that a learner takes: one state, action or coordinate, discounts near 0 and 1."""
    if takes(text, "riverswim/4") and named(text) not in OF_PAIRS:
        return TABLES
    of_mixtures = KERNELS if text.startswith("threshold") else KERNELS + OTHERS
    shapes = of_mixtures + (PAIRS if named(text) in OF_PAIRS else ())
    return *(f"{one},discount={d}" for one in shapes for d in (0.01, 0.99)), "ensemble/3,4,2,2,discount=0.999"


def sound(learner, world, T, infinite=MAY_BE_INFINITE, **options):
    """A run whose policies are policies, whose numbers are finite, and whose regret lies between 0 and T."""
    seen = []
    made = run(learner, world, T, 2, measures=[spy(seen)], **options)
    assert (made.plays == T).all()
    assert seen
    for state, _ in seen:
        assert (state.policy >= 0).all()
        assert (np.abs(state.policy.sum(-1) - 1) <= 1e-12).all()
        for name, leaf in tree.leaves(state):
            if isinstance(leaf, np.ndarray) and name.removeprefix("learner.") not in infinite:  # of a wrapper
                assert np.isfinite(leaf).all(), name
    total, error = made.results["regret_total"], made.results["regret_error"]
    assert (total >= -error).all()
    assert (total <= T + error).all()


@pytest.mark.parametrize("learner", LEARNERS)
def test_odd_problems_are_run_for_few_steps(learner):
    for text in odd_worlds(learner):
        for T in (2, 40) if "plan=mirror" in learner else (1, 2, 40):  # its delta = 1/T lies below 1
            sound(learner, ids.mdp(text), T, pad=True, record=["trajectory"])


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_shortest_runs_do_not_depend_on_their_batch_nor_on_stops(learner):
    world, options = "two-cycle,discount=0.5", {"pad": True, "record": ["trajectory"]}
    for T in (2, 37) if "plan=mirror" in learner else (1, 2, 37):
        whole = run(learner, world, T, [3, 1], **options)
        assert_same_bits(bits(run(learner, world, T, [1], **options)), bits(whole, 1))
        for pause in {0, 1, T - 1}:
            again = resume(run(learner, world, T, [3, 1], **options, pause=pause), learner, world)
            for row in range(2):
                assert_same_bits(bits(whole, row), bits(again, row))


@pytest.mark.parametrize("learner", ["psrl", "o-reps,step_scale=10", "mbie,scale=0.01", "scal,scale=0.01,span=0.1"])
def test_a_batch_does_not_change_a_seed_where_the_horizon_is_long(learner):
    mdp = ids.mdp("garnet/6,2,1,discount=0.9999")
    assert_same_bits(bits(run(learner, mdp, 300, [2])), bits(run(learner, mdp, 300, [8, 2, 5]), 1))


def rewritten():
    """Learners and a mixture, or features of pairs, in other coordinates: useless, doubled, one only, tiny."""
    for text in ("two-cycle", "hypercube/3"):
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


def rewritten_pairs():
    world = ids.mdp(LINEAR)
    phi, none = world.pair_features, np.zeros((*world.pair_features.shape[:2], 1))
    both = ([phi, none], [none, phi], [phi / 2, phi / 2], [1e-8 * phi])
    yield from (replace(world, pair_features=np.concatenate(features, -1)) for features in both)


OF_MIXTURES = {"uclk", "uclk+", "uclk-c", "ucrl-vtr", "oppo"}  # the threshold takes kernels only


@pytest.mark.parametrize("learner", [one for one in LEARNERS if named(one) in OF_MIXTURES | OF_PAIRS])
def test_coordinates_may_be_useless_doubled_alone_or_tiny(learner):
    for world in rewritten_pairs() if named(learner) in OF_PAIRS else rewritten():
        sound(learner, world, 150)


# Options.

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
    "o-reps,step_scale=1e-300", "uclk,scale=0", "uclk,scale=1e100", "uclk,regularization=1e100",
    "uclk,inner=relaxed,scale=1e300", "uclk+,scale=0", "uclk+,scale=1e100", "uclk-c,span=1e-100", "uclk-c,span=1e200",
    "threshold,scale=0", "threshold,scale=1e300", "threshold,accuracy=1e-300", "threshold,accuracy=1e300",
    "ucrl-vtr,scale=0", "ucrl-vtr,scale=1e300", "ucrl-vtr,truncation=1e300", "ucrl-vtr,regularization=1e300",
    "oppo,scale=1e300",
    "oppo,step_scale=1e300", "oppo,step_scale=0", "lsvi-ucb,scale=0", "lsvi-ucb,scale=1e300",
    "lsvi-ucb,regularization=1e300", "lsvi-ucb,truncation=1e300", "olsvi-fh,span=1e-200", "olsvi-fh,span=1e200",
    "olsvi-fh,truncation=1e-12", "gamma-lscvi-ucb,span=1e-200", "gamma-lscvi-ucb,span=1e200",
    "rlsvi,scale=0", "rlsvi,scale=1e300", "fixed-point-lsvi,scale=1e300", "fopo,scale=0", "fopo,scale=1e300",
    "fopo,span=1e-200", "mdp-exp2,phase=1,step_scale=1e300", "mdp-exp2,phase=1,coverage=1e300", "rmax-ravi-ucb,scale=0",
    "rmax-ravi-ucb,scale=1e300", "rmax-ravi-ucb,threshold=0", "rmax-ravi-ucb,ascension=sigmoid,threshold=1e-5",
    "rmax-ravi-ucb,step_scale=1e100",
)  # fmt: skip


@pytest.mark.parametrize("learner", EXTREMES)
def test_options_as_small_or_large_as_they_come_do_no_harm(learner):
    sound(learner, ids.mdp("riverswim/4" if takes(learner, "riverswim/4") else "ensemble/3,5,2,2,discount=0.9"), 100)


def builder_of(name):
    """How a learner is built from (T, options), and those options that an id gives, with their defaults."""
    known, world = ids.LEARNERS[name], ids.mdp(next(one for one in (MIXTURE, LINEAR, *EPISODES) if takes(name, one)))
    builder = ids.builder_of(known)
    given = world if known.oracle else world.problem
    return lambda T, **options: builder(given, T, **options), ids.options_of(builder, 2), world


CALLED = {"draws": "draws|seed"}  # by errors, where not only by its own name
NONE = [("span", float("inf")), ("candidate", "")]  # values that stand for none


@pytest.mark.parametrize("name", ids.LEARNERS)
def test_wrong_options_are_errors_that_name_them(name):
    build, options, world = builder_of(name)
    for option, default in options.items():
        texts = ("1", "", "nan") if isinstance(default, str) else ("nan", "inf", "-inf", "-1", "1e400", "word", "")
        for text in texts:
            if (option, text) not in NONE:
                with pytest.raises(InputError, match=CALLED.get(option, option)):
                    ids.learner(f"{name},{option}={text}", world, 100)
        for value in (float("nan"), float("inf"), -1, "word", "", [1], object(), 1j):
            if (option, value) not in NONE:
                with pytest.raises(InputError, match=CALLED.get(option, option)):
                    build(100, **{option: value})
    for T in (0, -1, 1.5, "word", 2**31, float("nan"), None):
        with pytest.raises(InputError, match=r"steps \(T\)"):
            build(T)
    with pytest.raises(InputError, match="there is no option 'nothing'"):
        ids.learner(f"{name},nothing=1", world, 60)


@pytest.mark.parametrize("mdp", ["riverswim/4", "garnet/5,16,3,discount=0.999", EPISODES[0]])
@pytest.mark.parametrize("name", ids.LEARNERS)
def test_absurd_numbers_are_refused_by_name_or_do_no_harm(name, mdp):
    """Alone and in pairs; warnings are errors here."""
    world, options = ids.mdp(mdp), builder_of(name)[1] if takes(name, mdp) else {}
    numbers = [option for option, default in options.items() if not isinstance(default, str)]
    alone = [f"{one}={value}" for one in numbers for value in ("1e100", "1e-100", "1e50", "1e-50", "1e308", "1e-300")]
    pairs = [f"{one},{two}" for one, two in combinations(alone, 2) if one.split("=")[0] != two.split("=")[0]]
    for given in alone + pairs:
        message = given
        try:
            sound(ids.learner(f"{name},{given}", world, 20), world, 20, MAY_BE_INFINITE | {"CB", "log_policy"})
        except InputError as refusal:  # of a learner, or of one of its phases
            message = str(refusal)
            assert "no policy" not in message, given
        assert any(option.split("=")[0] in message for option in given.split(",")), (given, message)


@pytest.mark.parametrize("name", ids.LEARNERS)
def test_an_id_is_canonical_and_options_that_are_numpy_numbers_are_saved_and_resumed(name, tmp_path):
    build, options, mdp = builder_of(name)
    assert (ids.canonical(name), ids.source_of(name), ids.code_in(name)) == (name, "", None)
    given = {one: np.float32(0.5) for one in ("scale", "step_scale", "accuracy") if one in options}
    learner = build(30, **given)
    whole, stopped = run(learner, mdp, 30, 2), run(learner, mdp, 30, 2, pause=10)
    stopped.save(tmp_path / "half.run")
    again = resume(Run.load(tmp_path / "half.run"), learner, mdp)
    again.save(tmp_path / "whole.run")
    assert Run.load(tmp_path / "whole.run").settings == whole.settings
    for option in given:
        value = whole.settings.get(option, 0.5)
        assert (value, type(value)) == (0.5, float), option
    for row in range(2):
        assert_same_bits(bits(whole, row), bits(again, row))


def undeclared(values, name=""):
    """The arrays of a state, by dotted name, whose fields declare no range."""
    declared = ranges._declared(type(values))
    for label, part in zip(getattr(values, "_fields", map(str, range(len(values)))), values, strict=True):
        if isinstance(part, tuple):
            yield from undeclared(part, f"{name}{label}.")
        elif label not in declared:
            yield name + label


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_array_of_a_learner_declares_what_it_may_hold(learner):
    state = ids.learner(learner, builder_of(named(learner))[2], 100).init(np.arange(2, dtype=np.uint64))
    assert list(undeclared(state)) == []
    assert "policy" in state._fields  # what `Run.last_policy` shows, also of a file


@pytest.mark.parametrize("learner", [one for one in LEARNERS if named(one) in OF_MIXTURES | {"threshold"}])
def test_what_is_no_mixture_is_refused_by_name(learner):
    for text in PAIRS:
        with pytest.raises(InputError, match=rf"^{text.split(',')[0]}.* has no features"):
            run(learner, text, 10)
    if learner.startswith("threshold"):
        for text in OTHERS[:4]:
            with pytest.raises(InputError, match=r"features\[\d+, \d+, :, \d+\] is negative"):
                run(learner, f"{text},discount=0.9", 10)
