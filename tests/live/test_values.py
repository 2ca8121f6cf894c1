"""`ravi.evaluate`: every form of a policy has the value of its table, and MDPs have the names of `ravi.mdp`."""

import numpy as np
import pytest

import ravi
from ravi.live.policies import evaluate as of_policy
from ravi.planning.evaluation import evaluate as of_table

ID = "riverswim/3,discount=0.9"
MDP = ravi.mdp(ID)
BEST = ravi.solve(MDP)
FORMS = {
    "table": BEST.policy, "lists": BEST.policy.tolist(), "actions": BEST.policy.argmax(-1), "solution": BEST,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("on", [MDP, ID], ids=["mdp", "id"])
def test_every_form_of_a_policy_has_the_same_value_in_either_order(form, on):
    wanted = of_table(MDP, BEST.policy)
    for found in (
        ravi.evaluate(FORMS[form], on),
        ravi.evaluate(on, FORMS[form]),
        ravi.evaluate(mdp=on, policy=FORMS[form]),
    ):
        assert found.V.tobytes() == wanted.V.tobytes()
        assert found.returns == wanted.returns


def test_a_policy_has_its_value_in_units_itself_or_as_its_file(tmp_path):
    policy = ravi.Policy(table=BEST.policy, discount=0.9)
    policy.save(tmp_path / "it.policy")
    wanted = of_policy(policy, MDP).exact
    assert wanted == ravi.evaluate(policy, ID).exact == ravi.evaluate(tmp_path / "it.policy", MDP).exact
    assert wanted == pytest.approx(MDP.horizon * BEST.optimum, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ("criterion=average", lambda mdp, found: mdp.initial @ found.gain),
        ("criterion=episodic,episode=5", lambda mdp, found: found.value),
    ],
)
def test_a_policy_has_the_value_of_its_table_in_every_criterion(options, value):
    mdp = ravi.mdp(f"riverswim/3,{options}")
    uniform, best = np.full((3, 2), 0.5), ravi.solve(mdp).policy
    for table in (uniform, best):
        found = ravi.evaluate(ravi.Policy(table=table, discount=0.9), mdp)
        assert value(mdp, found) == value(mdp, ravi.evaluate(mdp, table))


def test_numbers_are_played_in_an_environment_like_a_policy_of_them():
    best = ravi.solve("FrozenLake-v1,discount=0.9")
    policy = ravi.Policy.of("FrozenLake-v1", best.policy, 0.9)
    wanted = of_policy(policy, "FrozenLake-v1", cycles=20).json()
    for numbers in (best, best.policy, best.policy.argmax(-1)):
        assert ravi.evaluate(numbers, "FrozenLake-v1", discount=0.9, cycles=20).json() == wanted


def test_what_was_learned_is_evaluated_where_it_was_learned():
    learned = ravi.learn("FrozenLake-v1", steps=200, evaluate=0)
    assert ravi.evaluate(learned, cycles=20).json() == of_policy(learned.policy(), cycles=20).json()


def test_planning_takes_the_names_of_mdps(tmp_path):
    MDP.save(tmp_path / "it.mdp")
    for name in (ID, tmp_path / "it.mdp"):
        assert ravi.solve(name).V.tobytes() == BEST.V.tobytes()
        assert ravi.return_of(name, BEST) == ravi.return_of(MDP, BEST.policy)
        assert (ravi.occupancy(name, BEST.policy.argmax(-1)).mu == ravi.occupancy(MDP, BEST.policy).mu).all()
        assert ravi.hardness(name).diameter == ravi.hardness(MDP).diameter
        assert (ravi.md_mpi(name, eta=1.0, iterations=2).policy == ravi.md_mpi(MDP, eta=1.0, iterations=2).policy).all()


def test_an_id_takes_its_discount_apart_and_an_environment_takes_its_options():
    assert ravi.mdp("riverswim/3", discount=0.9).digest == MDP.digest
    table = ravi.mdp("FrozenLake-v1,discount=0.9,options=map_name:8x8")
    assert table.digest == ravi.mdp("gymnasium/FrozenLake-v1,discount=0.9,options=map_name:8x8").digest
    assert np.isclose(ravi.mdp("FrozenLake-v1", discount=0.9).discount, 0.9)


def test_a_learner_is_a_function_too():
    def mine(problem, steps):
        assert not hasattr(problem, "transitions")
        return ravi.learner("psrl", problem, steps)

    assert ravi.run(mine, MDP, 100, 2).regret.tobytes() == ravi.run("psrl", MDP, 100, 2).regret.tobytes()


def test_gymnasium_is_a_module():
    import ravi.gymnasium

    assert ravi.gymnasium.mdp(ravi.gymnasium.make(MDP), discount=0.9).digest == MDP.digest


def test_a_command_takes_discount_and_criterion_apart():
    from tests.support.command import typed

    solved = typed("solve", ID, "--json").stdout
    assert (
        typed("solve", "riverswim/3", "--discount", "0.9", "--json").stdout.split('"seconds"')[0]
        == solved.split('"seconds"')[0]
    )
    average = typed("solve", "riverswim/3,criterion=average", "--json").stdout
    assert typed("solve", "riverswim/3", "--criterion", "average", "--json").stdout == average
    assert "--discount 0.8: riverswim/3,discount=0.9 says its own" in typed("solve", ID, "--discount", "0.8").stderr
