"""Settings of a learner in one batch: each comes out as by itself, to the bit and to the byte of its file."""

import io
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi._jit import teams
from ravi.estimators.counts import counts
from ravi.optimism.bonuses import multiple_of_width
from ravi.runtime import api as engine
from ravi.runtime import gpu as device
from ravi.runtime import seedwise, tree
from ravi.runtime.api import resume_settings, run, run_settings
from ravi.validation import InputError
from tests.support.pretended_gpu import pretend

T = 600
TABLE, MIXTURE = ravi.mdp("riverswim/5,discount=0.9"), ravi.mdp("riverswim/mixture/5,discount=0.9")
OPTIONS = ("scale=0.003", "scale=0.1,step_scale=30", "eta=0.4,scale=0.02", "scale=0,step_scale=7")
WITH_ROWS = {
    "ravi-ucb": TABLE, "ravi-ucb,beta=0.2": TABLE, "ravi-ucb+": TABLE, "ravi-ucb+,centre=off,span=off,inner=2": TABLE,
    "ravi-ucb/mixture": MIXTURE, "ravi-ucb+/mixture": MIXTURE, "ravi-ucb+/mixture,radius=off,inner=2": MIXTURE,
    "ravi-ucb/unknown-rewards": TABLE, "ravi-ucb+/unknown-rewards,inner=3": TABLE, "ravi-ucb/known": TABLE,
    "ravi-ucb/linear": ravi.mdp("linear/5,2,3,discount=0.9"),
}  # fmt: skip


def settings(name, world, steps=T):
    given = ("step_scale=1", "step_scale=30", "eta=0.4", "eta=0.1,step_scale=2") if name.endswith("known") else OPTIONS
    return [ids.learner(f"{name},{options}", world, steps) for options in given]


def content(made):
    file = io.BytesIO()
    replace(made, seconds=0.0).save(file)
    return file.getvalue()


@pytest.mark.parametrize("name", WITH_ROWS)
def test_every_setting_of_a_batch_is_the_run_alone(name):
    world, options = WITH_ROWS[name], {"record": ("stream",), "points": 7, "pad": True}
    learners = settings(name, world)
    assert seedwise.alike(learners)
    alone = [run(learner, world, T, [4, 9, 2], **options) for learner in learners]
    assert len({made.regret.tobytes() for made in alone}) >= 3  # large bonuses are all cut to H
    several = run_settings(learners, world, T, [4, 9, 2], threads=5, **options)  # whose seeds are of several settings
    for one, made in zip(alone, several, strict=True):
        assert content(one) == content(made)


def test_a_stopped_batch_goes_on_as_one_or_as_single_runs():
    learners = settings("ravi-ucb+", TABLE)
    alone = [run(learner, TABLE, T, 3, keep_epochs=False) for learner in learners]
    stopped = run_settings(learners, TABLE, T, 3, keep_epochs=False, pause=T // 3)
    assert not any(made.complete for made in stopped)
    files = [ravi.Run.load(io.BytesIO(content(made))) for made in stopped]
    for held in (stopped, files):
        for one, made in zip(alone, resume_settings(held, learners, TABLE), strict=True):
            assert content(one) == content(made)
    assert content(ravi.resume(files[1], learners[1], TABLE)) == content(alone[1])


def test_ctrl_c_gives_the_runs_of_all_settings(monkeypatch):
    monkeypatch.setattr(engine, "interrupts", lambda: nullcontext(lambda: True))
    for name in ("ravi-ucb", "q-learning"):
        with pytest.raises(ravi.Stopped) as stopped:
            run_settings([name, name], TABLE, T, 2)
        assert [made.learner for made in stopped.value.runs] == [name, name]
        assert stopped.value.run is stopped.value.runs[0]


def test_what_cannot_be_one_batch_goes_one_after_the_other():
    """Other learners, another T, another constant than those that may differ, and one that was changed since."""
    plain, other = ids.learner("ravi-ucb", TABLE, T), ids.learner("ravi-ucb,scale=0.1", TABLE, T)
    changed = other._replace(add=lambda state, path: state)
    apart = {
        "learner": ids.learner("ravi-ucb+", TABLE, T),
        "T": ids.learner("ravi-ucb,delta=0.1", TABLE, 2 * T),
        "delta": ids.learner("ravi-ucb,delta=0.1", TABLE, T),
        "problem": ids.learner("ravi-ucb", ravi.mdp("riverswim/5,discount=0.9"), T),
        "change": changed,
        "form": ids.learner("q-learning", TABLE, T),
    }
    assert seedwise.alike([plain, other])
    assert not seedwise.alike([apart["delta"], apart["T"]])
    for one in apart.values():
        assert not seedwise.alike([plain, one])
    told = []
    made = run_settings([other, changed, apart["form"]], TABLE, T, 2, progress=lambda *at: told.append(at))
    for one, learner in zip(made, [other, changed, apart["form"]], strict=True):
        assert content(one) == content(run(learner, TABLE, T, 2))
    assert told[-1] == (6 * T, 6 * T)
    assert told == sorted(told)


def test_seeds_by_themselves_plan_with_the_numbers_of_their_rows():
    """What a GPU is given (`Seedwise`) of a batch of settings is what the CPU plans with."""
    for name in ("ravi-ucb", "ravi-ucb+"):
        learner = seedwise.learner_of(settings(name, TABLE), 2)
        keys = np.tile(np.arange(2, dtype=np.uint64), len(OPTIONS))
        here, there = learner.init(keys), learner.init(keys)
        for state in (here, there):
            state.data.visits[:] += 3
            state.data.moves[..., 1] += 3
        for _ in range(3):
            own = teams.allocate(learner.seedwise.own(there, 1))
            for i in range(len(keys)):
                learner.seedwise.plan(own, i, 1)
            here = learner.plan(here)
        assert len({row.tobytes() for row in here.policy}) > 2
        for (leaf, one), (_, other) in zip(tree.leaves(here), tree.leaves(there), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=leaf)


def test_a_list_of_settings_is_checked():
    with pytest.raises(InputError, match="learners is empty"):
        run_settings([], TABLE, T)
    with pytest.raises(InputError, match="learners is 'ravi-ucb', not a list"):
        run_settings("ravi-ucb", TABLE, T)
    made = run_settings(["ravi-ucb", "ravi-ucb+"], TABLE, T, 1, pause=10)
    with pytest.raises(InputError, match="learners are 1, and there are 2 stopped runs"):
        resume_settings(made, ["ravi-ucb"], TABLE)
    with pytest.raises(InputError, match="made with learner ravi-ucb"):
        resume_settings(made, ["ravi-ucb+", "ravi-ucb"], TABLE)


@pytest.mark.parametrize("name", ["ravi-ucb", "ravi-ucb+", "ravi-ucb/mixture", "ravi-ucb+/mixture"])
def test_a_batch_of_settings_goes_to_a_gpu_as_one(name, monkeypatch):
    """Here the GPU is this machine, and so the bits are those of the CPU."""
    pretend(monkeypatch)
    world, true, batches = WITH_ROWS[name], device.run, []
    monkeypatch.setattr(device, "run", lambda task, batch: (batches.append(len(batch.walkers.key)), true(task, batch)))
    learners = settings(name, world)
    made = run_settings(learners, world, T, 2, device="gpu")
    assert batches == [2 * len(learners)]
    for one, learner in zip(made, learners, strict=True):
        np.testing.assert_array_equal(one.regret, run(learner, world, T, 2).regret)
        assert [len(starts) for starts in one.T_k] == [len(starts) for starts in run(learner, world, T, 2).T_k]


class There(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a GPU, which takes no array of this machine beside it."""

    def __init__(self, array):
        self.array = array

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **more):
        if any(isinstance(one, np.ndarray) and one.ndim for one in inputs):
            return NotImplemented
        return There(getattr(ufunc, method)(*(one.array if isinstance(one, There) else one for one in inputs)))


def test_multipliers_of_rows_are_where_the_widths_are(monkeypatch):
    monkeypatch.setattr(device, "_current", [SimpleNamespace(of=There)])
    beta, width = np.array([2.0, 3.0]), np.arange(4.0).reshape(2, 1, 2)
    for number in (beta, 2.0):
        here = multiple_of_width(number, counts(TABLE.problem)._replace(width=lambda D, phi: width.copy()))
        there = multiple_of_width(number, counts(TABLE.problem)._replace(width=lambda D, phi: There(width)))
        np.testing.assert_array_equal(here(None, None), there(None, None).array)
    np.testing.assert_array_equal(here(None, None), 2 * width)
