"""Whatever stands in the arrays of a file is refused by name, or gives an answer: no index leaves its array."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi._jit.cache import cache_folder
from ravi.core import Array, Learner
from ravi.lab.experiments.work import work
from ravi.mdps import riverswim
from ravi.measures.hindsight import hindsight
from ravi.runtime import archive, ranges
from ravi.runtime.ranges import Action, Facts, Place
from ravi.runtime.world import Tabular
from ravi.schedules import at_reset
from ravi.validation import InputError
from tests.lab.experiments.tasks import bits, task
from tests.support.mutants import INDICES, LARGE, REFUSED, run_file
from tests.test_contract import undeclared

ROOT = Path(__file__).parents[2]
MUTATED = (  # counts and draws, a regression, a table that learns at every step, a policy by age
    ("run", "psrl", "ravi-ucb/mixture", "ravi-ucb+/unknown-rewards,scale=0.1,inner=3", "ucb-q", "ucrl-vtr"),
    ("agent", "ravi-ucb", "ucb-q"),
    ("large", LARGE),
)


def with_bounds(*words):
    """A Python process whose compiled code raises an IndexError where an index is out of range; its lines.

    Such code is kept apart from that of other processes, which does not look.
    """
    apart = {"NUMBA_BOUNDSCHECK": "1", "RAVI_CACHE_DIR": str(cache_folder().parent / "bounds")}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=os.environ | apart)
    assert done.returncode == 0, done.stdout.splitlines()[-1:] + done.stderr.splitlines()[-1:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("chosen", MUTATED, ids=lambda chosen: chosen[0])
def test_no_change_of_a_file_ends_the_process_or_reaches_other_memory(chosen):
    """In a process of its own, which says what it tries (`python -m tests.support.mutants KIND LEARNER ...`)."""
    kind, *learners = chosen
    lines = with_bounds("-m", "tests.support.mutants", kind, "few", *learners)
    wrong = [line for line in lines if not re.search(r" \.\.\. (refused|same|other) ", line)]
    assert not wrong
    assert len(lines) > 40 * len(learners)
    assert sum(" ... refused " in line for line in lines) > 0.8 * len(lines)


def test_without_the_ranges_an_index_would_leave_its_array():
    """So the mutants can tell, and each of these ranges is needed."""
    lines = with_bounds("-m", "tests.support.mutants", "unchecked")
    assert len(lines) == len(INDICES)
    assert [line for line in lines if not line.endswith(" ... IndexError")] == []


def test_every_array_of_every_measure_declares_what_it_may_hold():
    """Those of learners are in the contract."""
    keys = np.arange(2, dtype=np.uint64)
    options = {"record": ["trajectory", "stream"], "points": 5, "pad": False, "keep_epochs": True, "measured": True}
    mdp, bare = riverswim(4), []
    for stages in (0, 3):
        uniform = ids.learner("uniform", mdp, 100)._replace(stages=stages)
        records = tuple(each.init(keys) for each in Tabular(mdp).scores(uniform, 100, options).measures)
        bare += undeclared(records)
    assert set(bare) == {"0.gaps"}  # a log of numbers, as long as that of starts
    assert list(undeclared(hindsight(ids.changing("tides/4"), 100, 5).init(keys))) == []


FACTS = Facts(4, 2, 10.0, 100, np.array([7, 9]), np.array([7, 9]), 100)
RIGHT_AND_WRONG = {
    "Number": ([0.0, -1e99], [np.nan, np.inf, -np.inf, 1e101]),
    "NumberOrNan": ([0.0, np.nan], [np.inf, -1e101]),
    "NumberOrNone": ([0.0, -np.inf], [np.nan, 1e101]),
    "Positive": ([0.0, 1e99], [-1e-9, np.nan, np.inf]),
    "Probability": ([0.0, 1.0], [-0.1, 1.1, np.nan]),
    "Value": ([0.0, 10.0], [-0.1, 10.1, np.nan, 1e300]),
    "LogPolicy": ([0.0, -900.0], [0.1, np.nan, -np.inf]),
    "Action": ([0, 1], [-1, 2]),
    "ActionOrNone": ([-1, 1], [-2, 2]),
    "Place": ([0, 3], [-1, 4]),
    "PlaceOrNone": ([-1, 3], [-2, 4]),
    "Flag": ([0, 1], [-1, 2]),
    "Walked": ([0, 100], [-1, 101]),
    "Whole": ([0, 2**62], [-1, -(2**63)]),
    "Count": ([7, 0], [-1, 8]),
    "CountOrNone": ([7, -1], [-2, 8]),
    "Past": ([0, 9], [-1, 8]),
    "Next": ([8, 10], [-1, 9]),
    "Age": ([0, 100], [-1, 101]),
    "Plays": ([7, 9], [8, 6]),
    "NextPlay": ([8, 10], [7, 9]),
}


@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_a_range_holds_what_it_says_and_names_what_it_does_not(name):
    right, wrong = RIGHT_AND_WRONG[name]
    (rule,) = getattr(ranges, name).__metadata__
    ranges.check_array(rule, np.array(right), FACTS, "field")
    for value in wrong:
        array = np.array([value, right[1]])
        with pytest.raises(InputError, match=r"^field\[0\] is .*, not "):
            ranges.check_array(rule, array, FACTS, "field")


def test_a_policy_is_rows_that_sum_to_one_or_nan_while_there_is_none():
    (rule,), (or_nan,) = ranges.Policy.__metadata__, ranges.PolicyOrNan.__metadata__
    good, none = np.full((2, 3, 2), 0.5), np.full((2, 3, 2), np.nan)
    for array in (good, good.astype(np.float32), np.eye(2)[None]):
        ranges.check_array(rule, array, FACTS, "policy")
    ranges.check_array(or_nan, none, FACTS, "policy")
    for value in (np.nan, -0.5, 0.6, np.inf, 1e308):
        for one in (rule, or_nan):
            bad = good.copy()
            bad[1, 2, 0] = value
            with pytest.raises(InputError, match=r"policy\[1, 2\] is \[.*\], not a row of probabilities"):
                ranges.check_array(one, bad, FACTS, "policy")
    with pytest.raises(InputError):
        ranges.check_array(rule, none, FACTS, "policy")


def test_every_kind_of_range_is_tried_here():
    kinds = {name for name, kind in vars(ranges).items() if hasattr(kind, "__metadata__")}
    assert kinds == {*RIGHT_AND_WRONG, "Policy", "PolicyOrNan", "Fixed"}


@pytest.fixture(scope="module")
def stopped():
    return run_file("ravi-ucb", record=["trajectory", "stream"])


OF_MANY = "ravi-ucb"
WRONG = [  # learner, array, what it holds instead, the error
    (OF_MANY, "walkers.state", lambda a: a + 10**6, r"walkers\.state\[0\] is 10000\d\d, not one of 5 states, from 0"),
    (OF_MANY, "walkers.time", lambda a: a * 0 - 5, r"walkers\.time\[0\] is -5, not a number of plays that can be made"),
    (OF_MANY, "walkers.time", lambda a: a * 0 + 10**8, r"walkers\.time\[0\] is 100000000, not a number of plays"),
    (OF_MANY, "walkers.time", lambda a: a - 20, "not the place of the first time that is still to come"),
    (OF_MANY, "walkers.key", lambda a: a + np.uint64(1), r"walkers\.key are not the seeds of the run"),
    (OF_MANY, "records.1.curve.cursor", lambda a: a + 10**6, r"cursor\[0\] is \d+, not the place of the first time"),
    (OF_MANY, "records.1.curve.cursor", lambda a: a + 1, r"cursor\[0\] is \d+, not the place of the first time"),
    (OF_MANY, "records.2.index", lambda a: a + 1, r"index\[0\] is \d+, not what a run of its seed begins with"),
    (OF_MANY, "records.0.starts", lambda a: np.roll(a, 1, 0), r"starts\[1, 1\] is not the first play of an ep"),
    (OF_MANY, "records.0.gaps", lambda a: a[1:], "starts is not the first play of an epoch"),
    (OF_MANY, "records.4.state", lambda a: a + 5, "not one of 5 states, or -1"),
    (OF_MANY, "state.data.moves", lambda a: a + 1, "not the number of moves that were counted from the pair"),
    (OF_MANY, "state.data.moves", lambda a: a - 1, "not the number of moves that were counted from the pair"),
    (OF_MANY, "state.log_policy", lambda a: a + 9, "not the logarithm of a probability"),
    ("ravi-kl", "state.best.choice", 2, "not one of 2 actions"),
    ("ravi-kl", "state.half.visits", 500, "not a count of plays, or -1"),
    ("ravi-kl", "state.best.dual", 1e99, "not ln t from -500 to 100"),  # a loop without end
    ("ravi-kl", "state.best.bound", -1.0, "not a bound on what is not negative"),
    ("ravi-kl", "state.stage", 9, "not a stage that has begun"),
    ("ravi-kl,candidate=posterior", "state.drawn.u", 11.0, "not a value from 0 to 10"),
    ("ravi-kl/mixture", "state.theta", 0.9, "not a row of probabilities"),
    ("ravi-kl/mixture", "state.candidate", 11.0, "not a value from 0 to 10"),
    ("psrl/mixture", "state.drawn.theta", 0.9, "not a row of probabilities"),
    (
        "ravi-ucb/unknown-rewards",
        "state.data.inner.moves",
        1,
        "not the number of moves that were counted from the pair",
    ),
    ("ucbvi-gamma", "state.many", 6, "not a number of states, or -1"),
    ("ucbvi-gamma", "state.changed", 5, "not one of 5 states"),
    ("ravi-ucb/mixture", "state.data.covariance", np.nan, "not a number"),
]


@pytest.mark.parametrize(("learner", "name", "change", "message"), WRONG)
def test_an_array_that_is_out_of_its_range_is_named(stopped, learner, name, change, message):
    file, name = stopped if learner == OF_MANY else run_file(learner), f"batch.{name}"
    array = file.arrays[name]
    other = change(array).astype(array.dtype) if callable(change) else np.full_like(array, change)
    what, why = file.outcome(file.arrays | {name: other})
    assert what == REFUSED
    assert re.search(message, why), why


@pytest.mark.parametrize("seeds", [[3], [3, 5, 7], [5, 3]])
def test_a_run_has_its_arrays_with_an_entry_for_each_of_its_seeds_and_no_others(stopped, seeds):
    what, why = stopped.outcome(stopped.arrays, stopped.header | {"seeds": seeds})
    assert what == REFUSED
    assert "not the seeds of the run" in why if len(seeds) == 2 else f"not numbers of {len(seeds)} seeds" in why
    what, why = stopped.outcome(stopped.arrays | {"batch.records.5.total": np.zeros(2)})
    assert what == REFUSED
    assert "there is no place for records.5.total" in why


def test_truth_values_that_are_neither_are_refused(stopped):
    name = "batch.records.4.reset"
    content = io.BytesIO()
    archive.write(content, "run", stopped.header, stopped.arrays)
    raw, flags = bytearray(content.getvalue()), stopped.arrays[name].tobytes()
    place = raw.index(flags)
    raw[place : place + 8] = b"\2" * 8
    with pytest.raises(InputError, match=r"is damaged"):  # the archive's checksum
        ravi.Run.load(io.BytesIO(raw))
    odd = np.frombuffer(bytes(raw[place : place + len(flags)]), np.bool_).reshape(stopped.arrays[name].shape)
    what, why = stopped.outcome(stopped.arrays | {name: odd})
    assert what == REFUSED
    assert "truth values that are neither" in why


@pytest.mark.parametrize("options", [{"pad": True}, {"keep_epochs": False}, {"measured": False}, {"points": 7}])
@pytest.mark.parametrize("pause", [0, 150, 299, 300])
def test_what_a_run_has_written_is_never_refused(options, pause, tmp_path):
    """Before the first play, in the middle, with some seeds at their end, and padded beyond it."""
    for learner in ("ravi-ucb", "q-learning"):
        ravi.run(learner, "riverswim/5,discount=0.8", 300, 5, pause=pause, **options).save(tmp_path / "run")
        again = ravi.resume(ravi.Run.load(tmp_path / "run"), learner, "riverswim/5,discount=0.8")
        assert again.complete


def test_a_search_that_has_failed_is_no_reason_to_refuse_the_run():
    learner, mdp = "o-reps,step_scale=1000", ids.mdp("linear/6,3,4,discount=0.98")
    stopped, content = ravi.run(learner, mdp, 3000, 2, pause=1700), io.BytesIO()
    assert np.isnan(stopped.batch.state.dual[0]).all()  # and the next begins where it stands
    stopped.save(content)
    content.seek(0)
    again, whole = ravi.resume(ravi.Run.load(content), learner, mdp), ravi.run(learner, mdp, 3000, 2)
    assert again.regret.tobytes() == whole.regret.tobytes()


class Bare(NamedTuple):
    policy: Array  # (n, X, A)
    best: Array  # (n, X)


class Said(NamedTuple):
    policy: Array  # (n, X, A)
    best: Action  # (n, X)
    at: Annotated[Array, "no range"]


def own(kind):
    """A learner of one's own, which always plays the last action."""

    def init(keys):
        n = len(keys)
        policy = np.zeros((n, 4, 2))
        policy[..., 1] = 1
        parts = [policy, np.ones((n, 4), np.int64), np.zeros(n)]
        return kind(*parts[: len(kind._fields)])

    return Learner("own", init, lambda s: s, lambda s, path: s, at_reset(), {})


@pytest.mark.parametrize("kind", [Bare, Said])
def test_a_learner_of_ones_own_goes_on_from_a_file_and_is_held_against_what_it_declares(kind, tmp_path):
    mdp, learner = ids.mdp("riverswim/4"), own(kind)
    ravi.run(learner, mdp, 200, 2, pause=100).save(tmp_path / "run")
    assert ravi.resume(ravi.Run.load(tmp_path / "run"), learner, mdp).complete
    run = ravi.Run.load(tmp_path / "run")
    run.batch["state.best"][0, 0] = 7
    if kind is Bare:  # nothing is said of it
        assert ravi.resume(run, learner, mdp).complete
    else:
        with pytest.raises(InputError, match=r"state\.best\[0, 0\] is 7, not one of 2 actions, from 0"):
            ravi.resume(run, learner, mdp)
    run.batch["walkers.state"][0] = 99  # which belongs to the library, and is checked in any case
    with pytest.raises(InputError, match=r"walkers\.state\[0\] is 99"):
        ravi.resume(run, learner, mdp)


def test_a_field_whose_type_cannot_be_read_declares_nothing():
    class Odd(NamedTuple):
        place: Place
        other: "Nowhere"  # noqa: F821

    ranges.check(Odd(np.array([-5]), np.zeros(1)), Odd(np.zeros(1), np.zeros(1)), FACTS)


def test_a_checkpoint_that_says_what_cannot_be_begins_anew():
    whole, one = task(steps=300), task(steps=300, slice=0.0)
    ((name, content),) = work(one).checkpoints.items()
    header, arrays = archive.read(io.BytesIO(content), "run")
    header = {key: value for key, value in header.items() if key not in archive.RESERVED}
    for changes, more in (
        ({"batch.walkers.state": arrays["batch.walkers.state"] + 1000}, {}),
        ({"batch.walkers.time": arrays["batch.walkers.time"] * 0 + 10**8}, {}),
        ({"batch.records.1.curve.cursor": arrays["batch.records.1.curve.cursor"] - 5}, {}),
        ({}, {"options": header["options"] | {"points": 7}}),
        ({}, {"options": header["options"] | {"pad": True}}),
    ):
        forged = io.BytesIO()
        archive.write(forged, "run", header | more, arrays | changes)
        assert bits(work(whole._replace(checkpoints={name: forged.getvalue()})).rows) == bits(work(whole).rows)
