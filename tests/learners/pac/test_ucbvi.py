"""UCBVI-gamma: its pseudo-code at every step, full sweeps to the bit, and optimism."""

from itertools import pairwise
from math import log

import numpy as np
import pytest

from ravi import ids
from ravi.core import Until
from ravi.learners.pac.ucbvi_gamma import ALL
from ravi.mdps import garnet, riverswim
from ravi.planning.bellman import predecessors
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, spy
from tests.learners.pac.test_core import lists, step_by_step, without_ties
from tests.literal import model_based as literal

SETTINGS = [  # text, scale, third, beta
    ("scale=0.005,third_term=off", 0.005, False, None),
    ("scale=0.005", 0.005, True, None),
    ("scale=0.005,beta=0.0003", 0.005, True, 0.0003),  # 100 B_t falls below H^2 as n(x') grows
    ("", 1.0, True, None),
]


@pytest.mark.parametrize("mdp", [garnet(5, 2, 3, 1, 0.8), garnet(6, 3, 6, 2, 0.7)], ids=["sparse", "dense"])
@pytest.mark.parametrize(("text", "scale", "third", "beta"), SETTINGS)
def test_a_run_is_its_pseudo_code_at_every_step(text, scale, third, beta, mdp):
    mdp, T = without_ties(mdp), 300
    x, a, states = step_by_step(f"ucbvi-gamma,{text}" if text else "ucbvi-gamma", mdp, T, 4)
    by_hand = literal.ucbvi_gamma(*lists(mdp), T, 1 / T, scale, third, beta, 4)
    for (t, x_t, a_t, Q), state in zip(by_hand, states, strict=True):
        assert (x[t - 1], a[t - 1]) == (x_t, a_t), t
        np.testing.assert_allclose(state.Q[0], Q, rtol=0, atol=1e-9)
    assert (np.min(Q) < mdp.horizon - 0.1) == (scale < 1)


@pytest.mark.parametrize(
    "option",
    [
        "scale=0.004,third_term=off",
        *(f"{option},support={on}" for option in ("scale=0.002", "scale=0.005,beta=0.0003") for on in ("off", "on")),
    ],
)
@pytest.mark.parametrize("mdp", [garnet(40, 3, 3, 0, 0.8), riverswim(20, 0.9)], ids=["garnet", "riverswim"])
def test_what_is_left_out_of_a_sweep_changes_no_bit(option, mdp):
    T = 4000
    learner = ids.learner(f"ucbvi-gamma,{option}", mdp, T)

    def all_stale(state):
        state.many[:] = ALL
        return learner.plan(state)

    full = learner._replace(plan=all_stale, until=lambda s, time: Until(reset=False, deadline=time + 1))
    short, long = run(learner, mdp, T, 2, measured=False), run(full, mdp, T, 2, measured=False)
    for name in ("Q", "V", "best", "spread", "many"):
        np.testing.assert_array_equal(getattr(short.batch.state, name), getattr(long.batch.state, name), name)
    np.testing.assert_array_equal(short.batch.state.data.moves, long.batch.state.data.moves)
    assert (mdp.horizon > short.batch.state.V).any()


def test_q_never_grows_and_epochs_end_when_the_policy_changes():
    mdp, seen = garnet(10, 3, 3, 0, 0.8), []
    run("ucbvi-gamma,scale=0.003", mdp, 5000, [0], measures=[spy(seen)])
    for (before, _), (after, _) in pairwise(seen):
        assert (after.Q <= before.Q).all()
        assert (after.policy != before.policy).any()
    assert len(seen) > 50


@pytest.mark.parametrize("option", ["", ",third_term=off"])
@pytest.mark.parametrize("mdp", [garnet(4, 2, 2, 3, 0.5), riverswim(4, 0.6)], ids=["garnet", "riverswim"])
def test_values_are_optimistic_and_not_without_a_bonus(option, mdp):
    """V_t >= V* at all t with probability 1 - 1/T in each of 8 runs: a false alarm has chance below 3e-4."""
    T, best = 30_000, solve(mdp).V

    def lowest(name):
        seen = []
        run(name, mdp, T, 8, measures=[spy(seen)])
        return min((state.V - best).min() for state, _ in seen), seen[-1][0].V

    gap, V = lowest(f"ucbvi-gamma{option}")
    assert gap >= -1e-9
    assert (0.9 * mdp.horizon > V).any()
    wrong, _ = lowest(f"ucbvi-gamma,scale=0.001{option}")
    assert wrong < -0.01


def test_constants_are_the_papers():
    mdp, T = garnet(6, 2, 3, 0, 0.9), 10_000
    made = ids.learner("ucbvi-gamma,delta=0.1", mdp, T).settings
    assert made["U"] == pytest.approx(log(40 * 12 * T**3 * log(T) ** 2 / (0.1 * 0.1**2)), rel=1e-12)
    assert made["beta"] == pytest.approx(144 * made["U"] ** 5, rel=1e-12)
    assert np.isfinite(ids.learner("ucbvi-gamma", mdp, 1).settings["U"])


def test_a_run_in_one_stretch_is_the_run_in_many():
    mdp = riverswim(6, 0.95)
    one, many = run("ucbvi-gamma", mdp, 3000, [2]), run("ucbvi-gamma", mdp, 3000, range(3))
    assert_same_bits(bits(one), bits(many, 2))


@pytest.mark.parametrize("wrong", ["third_term=maybe", "scale=-1", "beta=-1", "delta=0"])
def test_errors_name_the_argument(wrong):
    with pytest.raises(InputError, match=wrong.split("=")[0]):
        ids.learner(f"ucbvi-gamma,{wrong}", riverswim(4, 0.8), 100)


def test_predecessors_are_the_pairs_that_store_a_state():
    successors = garnet(9, 2, 4, 0, 0.9).successors
    start, pair, slot = predecessors(successors)
    for y in range(9):
        found = [(int(p) // 2, int(p) % 2, int(j)) for p, j in zip(pair, slot, strict=True)][start[y] : start[y + 1]]
        assert found == [tuple(map(int, place)) for place in np.argwhere(successors == y)]


@pytest.mark.parametrize("T", [1, 2])
def test_the_logarithm_of_fewer_than_three_steps_counts_as_one(T):
    made = ids.learner("ucbvi-gamma,delta=0.1", garnet(6, 2, 3, 0, 0.9), T).settings
    assert made["U"] == pytest.approx(log(40 * 12 * T**3 / (0.1 * 0.1**2)), rel=1e-12)
