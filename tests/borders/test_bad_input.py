"""Bad input gets an error that names what is wrong, never a wrong answer. (MDPs and files: tests/mdps, test_files.)"""

import dataclasses

import numpy as np
import pytest

import ravi
from ravi import ids
from ravi.learners.fixed import fixed
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps import riverswim, riverswim_mixture
from ravi.validation import InputError

MDP = riverswim(4, 0.9)
MIX = riverswim_mixture(4, 0.9)
HALF = np.full((4, 2), 0.5)


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


LEARNERS = {
    "T below 1": (lambda: ravi_ucb.tabular(MDP.problem, 0), "steps (T) is 0"),
    "T not whole": (lambda: ravi_ucb.tabular(MDP.problem, 1.5), "steps (T) is 1.5"),
    "T nan": (lambda: ravi_ucb.tabular(MDP.problem, float("nan")), "steps (T) is nan"),
    "T too large for the counts": (lambda: ravi_ucb.tabular(MDP.problem, 2**31), "steps (T) is 2147483648"),
    "eta zero": (lambda: ravi_ucb.tabular(MDP.problem, 10, eta=0), "eta is 0"),
    "eta negative": (lambda: ravi_ucb.tabular(MDP.problem, 10, eta=-1), "eta is -1"),
    "eta inf": (lambda: ravi_ucb.tabular(MDP.problem, 10, eta=float("inf")), "eta is inf"),
    "step_scale zero": (lambda: ravi_ucb.tabular(MDP.problem, 10, step_scale=0), "step_scale is 0"),
    "beta negative": (lambda: ravi_ucb.tabular(MDP.problem, 10, beta=-1), "beta is -1"),
    "scale negative": (lambda: ravi_ucb.tabular(MDP.problem, 10, scale=-1), "scale is -1"),
    "delta one": (lambda: ravi_ucb.tabular(MDP.problem, 10, delta=1), "delta is 1"),
    "pi_0 with a zero": (
        lambda: ravi_ucb.tabular(MDP.problem, 10, initial_policy=changed(HALF, 2, [0, 1])),
        "initial_policy[2, 0] is 0",
    ),
    "pi_0 that does not sum to one": (
        lambda: ravi_ucb.tabular(MDP.problem, 10, initial_policy=changed(HALF, (1, 0), 0.6)),
        "initial_policy[1] sums to 1.1",
    ),
    "pi_0 of the wrong shape": (
        lambda: ravi_ucb.tabular(MDP.problem, 10, initial_policy=HALF[:3]),
        "initial_policy has shape (3, 2)",
    ),
    "V_0 above H": (lambda: ravi_ucb.tabular(MDP.problem, 10, initial_value=10.1), "initial_value is 10.1"),
    "V_0 negative": (
        lambda: ravi_ucb.tabular(MDP.problem, 10, initial_value=[0, 0, -1, 0]),
        "initial_value[2] is -1",
    ),
    "V_0 of the wrong shape": (
        lambda: ravi_ucb.tabular(MDP.problem, 10, initial_value=[0, 0]),
        "initial_value has shape",
    ),
    "lambda zero": (lambda: ravi_ucb.linear_mixture(MIX.problem, 10, regularization=0), "regularization is 0"),
    "B zero": (lambda: ravi_ucb.linear_mixture(MIX.problem, 10, bound=0), "bound is 0"),
    "no features": (lambda: ravi_ucb.linear_mixture(MDP.problem, 10), "riverswim/4 has no features"),
    "fixed policy off": (lambda: fixed(MDP.problem, changed(HALF, (3, 1), 0.4)), "policy[3] sums to 0.9"),
    "fixed policy nan": (lambda: fixed(MDP.problem, changed(HALF, (3, 1), np.nan)), "policy[3, 1] is nan"),
}


@pytest.mark.parametrize("case", LEARNERS)
def test_learners_refuse(case):
    make, message = LEARNERS[case]
    with pytest.raises(InputError) as error:
        make()
    assert message in str(error.value)


RUNS = {
    "no seeds": ({"seeds": []}, "seeds is empty"),
    "a negative seed": ({"seeds": [1, -2]}, "seeds[1] is -2"),
    "zero seeds": ({"seeds": 0}, "seeds is 0"),
    "no steps": ({"steps": 0}, "steps (T) is 0"),
    "an unknown record": ({"record": ["nothing"]}, "record names 'nothing'"),
    "no points": ({"points": 0}, "points is 0"),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs_refuse(case):
    options, message = RUNS[case]
    with pytest.raises(InputError) as error:
        ravi.run(**{"learner": "uniform", "mdp": MDP, "steps": 10, "seeds": 1, **options})
    assert message in str(error.value)


IDS = {
    "riverswm/6": "Did you mean riverswim",
    "riverswim/6,7,8": "'8' is one value too many; it takes n, discount",
    "riverswim/six": "n is 'six', not a number",
    "riverswim/6.5": "n is 6.5, not a whole number",
    "riverswim/1e400": "n is inf",
    "riverswim/6,discont=0.9": "Did you mean discount?",
    "riverswim/6,discount=0.9,0.5": "'0.5' stands after key=value",
    "riverswim/6,n=5": "n is given twice",
    "riverswim/6,discount=1": "discount is 1",
    "riverswim/": "n is '', not a number",
    "garnet/10": "actions, branching missing",
    "no/such/file.npz": "there is no file no/such/file.npz",
    "": "there is no MDP ''",
}


@pytest.mark.parametrize("text", IDS)
def test_ids_of_mdps_refuse(text):
    with pytest.raises(InputError) as error:
        ids.mdp(text)
    assert IDS[text] in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ravi-ubc", "Did you mean ravi-ucb"),
        ("ravi-ucb,scal=2", "Did you mean scale"),
        ("ravi-ucb,initial_policy=3", "there is no option 'initial_policy'"),
        ("ravi-ucb,0.3", "'0.3' is one value too many"),
        ("ravi-ucb/mixtre", "'mixtre' is one value too many"),
        ("uniform,eta=1", "it takes no options"),
    ],
)
def test_ids_of_learners_refuse(text, message):
    with pytest.raises(InputError) as error:
        ids.learner(text, MDP, 10)
    assert message in str(error.value)


def test_ids_build_what_they_say():
    mdp = ids.mdp("garnet/12,3,2,seed=5,discount=0.8")
    assert (mdp.states, mdp.actions, mdp.branching, mdp.discount) == (12, 3, 2, 0.8)
    assert mdp.name == "garnet/12,3,2,seed=5"
    assert ids.mdp("riverswim/mixture").dimension == 3
    assert ids.mdp("riverswim").dimension == 0
    learner = ids.learner("ravi-ucb/mixture,scale=0.5,bound=2", MIX, 10)
    assert (learner.name, learner.settings["bound"]) == ("ravi-ucb/mixture", 2)


def test_an_id_may_be_a_file(tmp_path):
    file = tmp_path / "mine.mdp"
    MIX.save(file)
    again = ids.mdp(str(file))
    assert again.digest == MIX.digest


def test_every_name_of_an_mdp_is_an_id_that_builds_it():
    from ravi.mdps import MDPS

    needed = {"garnet": "/5,2,2", "ensemble": "/2,5,2,2"}
    for name in MDPS:
        mdp = ids.mdp(name + needed.get(name, ""))
        assert ids.mdp(f"{mdp.name},discount={mdp.discount!r}").digest == mdp.digest, name


def test_resume_refuses_another_learner_mdp_or_file(tmp_path):
    stopped = ravi.run("ravi-ucb,eta=0.1", MDP, 200, 2, pause=20)
    for learner, mdp, message in [
        ("ravi-ucb,eta=0.2", MDP, "settings"),
        ("uniform", MDP, "learner ravi-ucb, not uniform"),
        ("ravi-ucb,eta=0.1", riverswim(5, 0.9), "MDP riverswim/4, not riverswim/5"),
        ("ravi-ucb,eta=0.1", riverswim(4, 0.8), "discount"),
    ]:
        with pytest.raises(InputError) as error:
            ravi.resume(stopped, learner, mdp)
        assert message in str(error.value)
    MDP.save(tmp_path / "mdp")
    with pytest.raises(InputError, match="holds 'mdp', not 'run'"):
        ravi.Run.load(tmp_path / "mdp")


def linear_parts():
    rng = np.random.default_rng(3)
    return rng.dirichlet(np.ones(3), (5, 2)), rng.dirichlet(np.ones(5), 3), rng.uniform(size=3)


def test_features_of_pairs_that_do_not_make_the_mdp_are_refused():
    phi, m, theta = linear_parts()
    mdp = ravi.MDP.from_linear(phi, m, theta, 0.9, 0)
    wrong = phi.copy()
    wrong[3, 1] = [1.0, 0, 0]
    with pytest.raises(InputError, match=r"pair_features do not make this MDP linear: at pair_features\[\d, \d\]"):
        dataclasses.replace(mdp, pair_features=wrong)
    long = phi.copy()
    long[2, 0] *= 2 / np.linalg.norm(long[2, 0])
    with pytest.raises(InputError, match=r"pair_features\[2, 0\] has norm 2"):
        dataclasses.replace(mdp, pair_features=long)
    with pytest.raises(InputError, match=r"pair_features has shape \(5, 3, 2\)"):
        dataclasses.replace(mdp, pair_features=phi.reshape(5, 3, 2))
    with pytest.raises(InputError, match=r"pair_features\[4, 1, 2\]"):
        dataclasses.replace(mdp, pair_features=np.where(np.arange(30).reshape(5, 2, 3) == 29, np.nan, phi))
    with pytest.raises(InputError, match=r"gives P\[0, 0, \d\] = -.*negative probability"):
        ravi.MDP.from_linear(phi, m - 1.0 * (np.arange(5) == 2), theta, 0.9, 0)
    with pytest.raises(InputError, match=r"measures has shape"):
        ravi.MDP.from_linear(phi, m.T, theta, 0.9, 0)
