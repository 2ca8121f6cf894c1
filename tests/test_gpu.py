"""Runs on a GPU: on one where there is one (marker gpu), and on a pretended one, which is this machine, everywhere."""

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.mdps import garnet
from ravi.planning.solver import solve
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as device
from ravi.validation import InputError
from tests.support.pretended_gpu import pretend
from tests.test_teams import IDS, MIXTURES

LEARNER = "ravi-ucb,scale=0.003,step_scale=30"
GIVEN = {"record": ["stream"], "pad": True}  # one kernel for all: a second takes seconds to compile


@pytest.fixture
def pretended(monkeypatch):
    pretend(monkeypatch)


def there_is_one():
    try:
        device.target()
    except InputError:
        return False
    return True


def world_of(text):
    return "ensemble/4,20,3,3,discount=0.9" if "mixture" in text else "garnet/40,3,3,discount=0.9"


def equal(one, other):
    return all(np.array_equal(one.results[k], other.results[k], equal_nan=True) for k in one.results)


@pytest.mark.parametrize("text", [LEARNER, "ravi-ucb+,scale=0.1,inner=3", "ucrl2,scale=0.1,mode=blind", *MIXTURES])
def test_a_run_there_is_the_run_here(text, pretended):
    here, there = (ravi.run(text, world_of(text), 300, 3, device=on, **GIVEN) for on in ("cpu", "gpu"))
    assert equal(here, there)


@pytest.mark.parametrize(
    "text", ["ucrl2", "psrl", "ravi-kl", "politex,span=3,phase=20", "mdp-e,span=3", "ravi-ucb,span=3,scale=0.003"]
)
def test_a_run_without_resets_is_the_run_here(text, pretended):
    world, given = "riverswim/4,criterion=average", {"record": ["gain"]}
    here, there = (ravi.run(text, world, 300, 3, device=on, **given) for on in ("cpu", "gpu"))
    assert equal(here, there)


@pytest.mark.parametrize("text", MIXTURES)
def test_seeds_that_plan_together_do_so_on_arrays_of_the_gpu(text, monkeypatch):
    """It is never asked what they hold, and no array of the host is beside one of them."""
    pretend(monkeypatch, apart=True)
    here, there = (
        ravi.run(text, world_of(text), 300, 3, device=on, record=["stream"]).results for on in ("cpu", "gpu")
    )
    for name, array in here.items():
        np.testing.assert_allclose(there[name], array, rtol=1e-7, atol=0 if array.dtype.kind in "iub" else 1e-7)


@pytest.mark.parametrize("text", [LEARNER, MIXTURES[0]])
def test_a_run_goes_on_on_another_device(text, pretended, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_driver, "MOST", 3)  # epochs between two looks
    world = world_of(text)
    whole = ravi.run(text, world, 300, 3, **GIVEN)
    for first, second in (("cpu", "gpu"), ("gpu", "cpu")):
        part = ravi.run(text, world, 300, 3, pause=100, device=first, **GIVEN)
        assert part.batch.walkers.time.min() < 300
        part.save(tmp_path / first)
        assert equal(ravi.resume(ravi.Run.load(tmp_path / first), text, world, device=second), whole)


def test_progress_is_told_and_a_stop_is_heard_in_between(pretended, monkeypatch):
    monkeypatch.setattr(compiled_driver, "MOST", 3)
    told, answers = [], iter([False, False, True])
    stop = lambda: next(answers)  # noqa: E731
    run = ravi.run(
        LEARNER, world_of(LEARNER), 300, 2, device="gpu", stop=stop, progress=lambda *now: told.append(now), **GIVEN
    )
    assert 0 < run.batch.walkers.time.min() < 300
    assert told[-1] == (int(run.batch.walkers.time.sum()), 600)


def test_a_callback_is_told_how_it_ended(pretended):
    looks = []
    run = ravi.run(LEARNER, world_of(LEARNER), 300, 2, device="gpu", callback=looks.append, **GIVEN)
    (look,) = looks[-1:]
    assert (look.numbers["regret_total"] == run.regret).all()
    assert (look.time == 300).all()


def test_a_policy_that_is_none_is_refused(pretended):
    world = ids.mdp(world_of(LEARNER))
    learner, shape = ids.learner(LEARNER, world, 50), (world.states, world.actions)
    broken = lambda keys: learner.init(keys)._replace(policy=np.full((len(keys), *shape), np.nan))  # noqa: E731
    with pytest.raises(InputError, match="no policy"):
        ravi.run(learner._replace(init=broken, rows=None), world, 50, 2, device="gpu", **GIVEN)


@pytest.mark.parametrize("method", ["modified_policy_iteration", "value_iteration"])
def test_solving_there_is_certified(method, pretended):
    mdp = garnet(60, 3, 4, 1, 0.95)
    here, there = solve(mdp), solve(mdp, method, device="gpu")
    assert there.error <= 1e-10
    assert np.abs(here.V - there.V).max() <= here.error + there.error


def test_other_methods_are_refused_by_name(pretended):
    with pytest.raises(InputError, match="policy_iteration does not run there"):
        solve(garnet(10, 2, 2), "policy_iteration", device="gpu")


@pytest.mark.skipif(there_is_one(), reason="there is a GPU")
def test_without_a_gpu_it_is_said():
    for call in (
        lambda: ravi.run(LEARNER, "riverswim/6", 10, device="gpu"),
        lambda: solve(garnet(10, 2, 2), device="gpu"),
    ):
        with pytest.raises(InputError, match="device=gpu needs"):
            call()
    with pytest.raises(InputError, match="device"):
        ravi.run(LEARNER, "riverswim/6", 10, device="tpu")
    with pytest.raises(InputError, match="o-reps does not run there"):
        ravi.run("o-reps", "riverswim/6", 10, device="gpu")


@pytest.mark.gpu
@pytest.mark.skipif(not there_is_one(), reason="there is no GPU")
@pytest.mark.parametrize("text", [*IDS, *MIXTURES])
def test_the_same_epochs_and_regret_within_both_certificates(text):
    here, there = (ravi.run(text, world_of(text), 2_000, 48, device=on).results for on in ("cpu", "gpu"))
    assert np.array_equal(here["T_k"], there["T_k"])
    off = np.abs(here["regret_total"] - there["regret_total"])
    assert (off <= here["regret_error"] + there["regret_error"]).all()
