"""A run: what it shows is what its measures recorded, whoever holds its arrays; its versions name what made it."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi.runtime import result as runs

MDP, T, SEEDS = "riverswim/5,discount=0.9", 300, [2, 7]


@pytest.fixture(scope="module")
def made():
    return ravi.run("ravi-ucb,scale=0.01,step_scale=30", MDP, T, SEEDS, points=20)


def test_the_regret_is_the_sum_of_the_gaps_of_its_epochs(made):
    for row, (starts, gaps) in enumerate(zip(made.T_k, made.gap_k, strict=True)):
        lengths = [b - a for a, b in pairwise([*starts, T + 1])]
        assert starts[0] == 1
        assert made.regret[row] == pytest.approx(np.dot(gaps, lengths), abs=made.regret_error[row] + 1e-12)
        assert made.gap[row] == gaps[-1]


def test_curves_end_at_the_totals_and_never_fall(made):
    assert made.times[-1] == T
    assert len(made.times) == made.regret_curve.shape[1]
    np.testing.assert_array_equal(made.regret_curve[:, -1], made.regret)
    assert (np.diff(made.regret_curve) >= -made.regret_error[:, None]).all()
    assert (np.diff(made.reward_curve) >= 0).all()


def test_a_run_from_a_file_shows_the_same(made, tmp_path):
    made.save(tmp_path / "one.run")
    again = ravi.Run.load(tmp_path / "one.run")
    for name in (
        "regret",
        "regret_error",
        "regret_curve",
        "reward_curve",
        "gap",
        "last_policy",
        "output_policy",
        "plays",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(made, name), err_msg=name)
    assert again.complete
    assert again.versions == made.versions
    np.testing.assert_array_equal(again.state["policy"], made.state.policy)
    for one, other in zip(again.T_k, made.T_k, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_run_that_stopped_says_how_far_it_came():
    part = ravi.run("uniform", MDP, T, SEEDS, pause=100)
    assert (part.plays == T).all()  # one epoch: it ends with the run
    part = ravi.run("ravi-ucb", MDP, T, SEEDS, pause=100)
    assert not part.complete
    assert (part.plays >= 100).all()
    assert (part.plays < T).all()


def test_padding_is_what_was_played_beyond_T():
    padded = ravi.run("ravi-ucb", MDP, T, SEEDS, pad=True)
    assert (padded.plays == T).all()
    assert (padded.padding >= 0).all()
    assert padded.padding.any()


def test_what_was_not_recorded_is_said_to_be_so():
    unkept = ravi.run("uniform", MDP, 50, 1, keep_epochs=False)
    with pytest.raises(AttributeError, match=r"did not keep T_k \(it was made with keep_epochs=False\)"):
        _ = unkept.T_k
    assert unkept.regret.shape == (1,)


def test_versions_cover_every_file_that_a_bit_may_depend_on():
    """What is apart is named, and exists; what is counted is the rest."""
    package = Path(ravi.__file__).parent
    everything = {file.relative_to(package).as_posix() for file in package.rglob("*.py")}
    counted = set(runs.counted())
    assert counted < everything
    assert {"core.py", "runtime/api.py", "runtime/walk.py", "random.py", "planning/mirror.py"} <= counted
    assert not {file.split("/")[0] for file in counted} & (runs.APART | runs.FILES_APART)
    assert all((package / name).exists() for name in runs.APART | runs.FILES_APART)
    assert set(runs.versions()) == {"ravi", "numba", "numpy", "scipy", "source", "python", "machine", "system"}
    assert runs.versions()["source"] == runs.source()
    assert len(runs.source()) == 16
