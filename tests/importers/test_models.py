"""Models of others come in as they are: the values are those that the source's own solver finds.

The numbers of QuantEcon and pymdptoolbox are those of quantecon 0.11.4 (`DiscreteDP.solve(method="policy_iteration")`)
and pymdptoolbox 4.0b3 (`mdptoolbox.mdp.PolicyIteration`), for the models that are built here as in their tutorials.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import ravi
from ravi import importers
from ravi.live.policies import Policy
from tests.helpers import refuses


def values(model):
    """V* in the units of the source."""
    low, high = model.mdp.units
    return low * model.mdp.horizon + (high - low) * ravi.solve(model.mdp, tol=1e-12).V


def best(model):
    return Policy.of(model, ravi.solve(model.mdp).policy).table.argmax(1).tolist()


# QuantEcon: the optimal growth model of its lecture on discrete dynamic programs.

GROWTH = [
    19.01740221695992, 20.017402216959916, 20.431615779333015, 20.749453024528794, 21.040780991093484,
    21.30873018352461, 21.544798161024403, 21.76928181079986, 21.982703576083246, 22.1882432282385,
    22.384504796519916, 22.578077363861723, 22.761091269771118, 22.943767083452716, 23.115339958706524,
    23.277617618874903,
]  # fmt: skip
STORED = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 5]


def growth(B=10, M=5):
    R, Q = np.full((B + M + 1, M + 1), -np.inf), np.zeros((B + M + 1, M + 1, B + M + 1))
    for s in range(B + M + 1):
        for a in range(M + 1):
            Q[s, a, a : a + B + 1] = 1 / (B + 1)
            if a <= s:
                R[s, a] = (s - a) ** 0.5
    return R, Q


@pytest.mark.parametrize("form", ["product", "pairs", "sparse pairs"])
def test_quantecon_has_the_values_of_its_own_solver(form):
    R, Q = growth()
    ddp = SimpleNamespace(R=R, Q=Q, beta=0.9)
    if form != "product":
        s, a = np.nonzero(np.isfinite(R))
        rows = sparse.csr_array(Q[s, a]) if form == "sparse pairs" else Q[s, a]
        ddp = SimpleNamespace(R=R[s, a], Q=rows, beta=0.9, s_indices=s, a_indices=a)
    model = importers.quantecon(ddp)
    np.testing.assert_allclose(values(model), GROWTH, rtol=1e-11)
    assert best(model) == STORED
    assert model.mdp.actions == 6
    assert model.stands_for[0].tolist() == [0] * 6  # nothing can be stored where nothing is there
    uniform = Policy.of(model, np.full((16, 6), 1 / 6)).table
    assert uniform[2].tolist() == pytest.approx([1 / 6, 1 / 6, 4 / 6, 0, 0, 0])


def test_quantecon_says_what_is_wrong():
    refuses("is not a DiscreteDP: it has no Q, beta", importers.quantecon, SimpleNamespace(R=1))
    R, Q = growth()
    R[3, 1] = np.nan
    refuses(
        "R of state 3, action 1 is nan; it is a number, or -inf",
        importers.quantecon,
        SimpleNamespace(R=R, Q=Q, beta=0.9),
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"Q": np.ones((2, 3, 2)) / 2}, r"R has shape \(2, 2\) and Q \(2, 3, 2\), not \(S, A\) and \(S, A, S\), nor"),
        ({"R": np.ones(4)}, r"R has shape \(4,\) and Q \(2, 2, 2\), not \(S, A\) and \(S, A, S\), nor \(L,\) and"),
        ({"R": [1], "Q": [[1]]}, r"R has shape \(1,\), an entry for each pair, but the model has no s_indices"),
        ({"R": [1], "Q": [[1]], "s_indices": [0], "a_indices": None}, "but the model has no a_indices"),
        ({"R": [1], "Q": [[1]], "s_indices": [1], "a_indices": [0]}, r"s_indices\[0\] is 1, not a whole number from"),
        ({"R": [1], "Q": [[1]], "s_indices": [0, 0], "a_indices": [0]}, r"s_indices has shape \(2,\), not \(L,\)"),
        ({"Q": np.full((2, 2, 2), np.nan)}, "state 0, action 0: the probability of a move to state 0 is nan"),
        ({"Q": np.zeros((2, 2, 2))}, "state 0, action 0: the probabilities sum to 0, not 1"),
    ],
)  # fmt: skip
def test_quantecon_says_the_shapes_and_probabilities_that_it_takes(changed, told):
    ddp = {"R": np.ones((2, 2)), "Q": np.full((2, 2, 2), 0.5), "beta": 0.9}
    refuses(told, importers.quantecon, SimpleNamespace(**ddp | changed))


# pymdptoolbox: the forest, and the small example.


def forest(S=5, r1=4.0, r2=2.0, p=0.1):
    """As `mdptoolbox.example.forest` makes it."""
    P = np.zeros((2, S, S))
    P[0] = (1 - p) * np.diag(np.ones(S - 1), 1)
    P[0, :, 0] = p
    P[0, S - 1, S - 1] = 1 - p
    P[1, :, 0] = 1
    R = np.zeros((S, 2))
    R[S - 1, 0] = r1
    R[:, 1] = 1
    R[0, 1] = 0
    R[S - 1, 1] = r2
    return P, R


FOREST = [55.72562780159999, 58.30551797759999, 61.29150197759999, 64.7475019776, 68.7475019776]


@pytest.mark.parametrize("form", ["dense", "lists", "sparse", "by transition", "sparse by transition", "objects"])
def test_pymdptoolbox_has_the_values_of_its_own_solver(form):
    P, R = forest()
    moved = np.repeat(R.T[:, :, None], 5, 2)  # (A, S, S)
    given = {
        "dense": (P, R), "lists": (P.tolist(), R.tolist()), "sparse": ([sparse.csr_matrix(each) for each in P], R),
        "by transition": (P, moved),
        "sparse by transition": ([sparse.csr_matrix(each) for each in P], [sparse.csr_matrix(each) for each in moved]),
        "objects": (tuple(P), list(moved)),
    }  # fmt: skip
    model = importers.mdptoolbox(*given[form], 0.96)
    np.testing.assert_allclose(values(model), FOREST, rtol=1e-11)
    assert best(model) == [0] * 5
    assert model.mdp.units == (0, 4)


def test_costs_and_rewards_of_states_are_taken_as_they_are():
    P = [[[0.5, 0.5], [0.8, 0.2]], [[0.0, 1.0], [0.1, 0.9]]]
    model = importers.mdptoolbox(P, [[5, 10], [-1, 2]], 0.9)
    np.testing.assert_allclose(values(model), [42.44186046511632, 36.04651162790702], rtol=1e-11)
    assert best(model) == [1, 0]
    assert model.mdp.units == (-1, 10)


@pytest.mark.parametrize("r", [(0.5, 0.25), (1.0, 0.5), (0.0, 0.5), (0.0, 1.0)])
def test_rewards_from_0_to_1_are_taken_as_they_are_the_ends_included(r):
    of_states = importers.mdptoolbox([[[0.5, 0.5], [0.8, 0.2]]], r, 0.9)
    assert of_states.mdp.units == (0, 1)
    assert of_states.mdp.rewards.tolist() == [[r[0]], [r[1]]]


@pytest.mark.parametrize("r", [np.nextafter(1.0, 2), np.nextafter(0.0, -1)])
def test_a_reward_just_outside_is_scaled_here_and_refused_by_an_mdp(r):
    low, high = min(0.5, r), max(0.5, r)
    assert importers.mdptoolbox([[[0.5, 0.5], [0.8, 0.2]]], (0.5, r), 0.9).mdp.units == (low, high)
    refuses(
        "outside",
        ravi.MDP,
        rewards=[[r]],
        successors=np.zeros((1, 1, 1), int),
        transitions=[[[1.0]]],
        initial=0,
        discount=0.9,
    )


@pytest.mark.parametrize(
    ("P", "R", "told"),
    [
        ([[[1.0]], [[0.9]]], [0], r"state 0, action 1: the probabilities sum to 0.9, not 1"),
        ([[[1.0]], [[1 - 1e-6]]], [0], r"renormalise=True rescales"),
        ([[[1.0, 0.0]]], [0], r"P\[0\] has shape \(1, 2\), not \(S, S\)"),
        ([[[2.0, -1.0], [0, 1]]], [0, 0], r"state 0, action 0: the probability of a move to state 1 is -1, not"),
        ([[[1.0, 0.0], [0, 0]]], [0, 0], r"state 1, action 0: the probabilities sum to 0, not 1"),
        ([sparse.csr_array([[np.nan]])], [0], r"state 0, action 0: the probability of a move to state 0 is nan"),
        ([[[1.0]]], [sparse.csr_array([[np.nan]])], r"state 0, action 0: the reward of a move to state 0 is nan"),
        ([[[1.0]]], [[1, 2]], r"R has shape \(1, 2\), not \(S,\) = \(1,\), \(S, A\) = \(1, 1\)"),
        ([], [0], "P has no matrices"),
    ],
)
def test_what_is_no_model_is_told(P, R, told):
    refuses(told, importers.mdptoolbox, P, R, 0.9)


# Tables by state, action and successor.


def test_tables_are_those_of_from_dense_in_any_units():
    mdp = ravi.mdp("garnet/7,3,3,seed=2")
    T = np.zeros((7, 3, 7))
    np.put_along_axis(T, mdp.successors.astype(int), mdp.transitions, 2)
    same = importers.tables(T, mdp.rewards, mdp.discount, initial=mdp.initial).mdp
    np.testing.assert_array_equal(same.rewards, mdp.rewards)
    assert ravi.solve(same).optimum == pytest.approx(ravi.solve(mdp).optimum, abs=1e-12)
    cost = importers.tables(T, np.broadcast_to((-5 * mdp.rewards)[..., None], T.shape), mdp.discount)
    worst = importers.tables(T, 1 - mdp.rewards, mdp.discount)  # -5 r = 5 (1 - r) - 5
    np.testing.assert_allclose(values(cost), 5 * values(worst) - 5 * mdp.horizon, rtol=1e-10)
    of_colosseum = SimpleNamespace(
        transition_matrix_and_rewards=(T.astype(np.float32), mdp.rewards.astype(np.float32)),
        starting_state_distribution=mdp.initial,
    )
    found = importers.colosseum(of_colosseum, mdp.discount).mdp
    assert ravi.solve(found).optimum == pytest.approx(ravi.solve(mdp).optimum, abs=1e-5)
    refuses("is not an MDP of Colosseum", importers.colosseum, T, 0.9)
    refuses(r"T has shape \(3, 7, 7\), not \(S, A, S\)", importers.tables, np.moveaxis(T, 0, 1), mdp.rewards, 0.9)


class Sea:
    """Deep Sea as bsuite has it: a square of one-hot observations, an action that is right by cell, an end below."""

    def __init__(self, size=4, slips=False, places=1):
        self.size, self.slips, self.places = size, slips, places
        self.right, self.rng = np.random.RandomState(3).binomial(1, 0.5, (size, size)), np.random.RandomState(0)

    def action_spec(self):
        return SimpleNamespace(num_values=2)

    def reset(self):
        self.row, self.column = 0, self.rng.randint(self.places)
        return self.seen(None, False)

    def step(self, action):
        right, reward = action == self.right[self.row, self.column], 0.0
        if self.slips and self.rng.random_sample() < 0.5:
            right = False
        if right:
            reward = 1.0 - 0.01 / self.size if self.column == self.size - 1 else -0.01 / self.size
        self.column = min(self.column + 1, self.size - 1) if right else max(self.column - 1, 0)
        self.row += 1
        return self.seen(reward, self.row == self.size)

    def seen(self, reward, last):
        board = np.zeros((self.size, self.size), np.float32)
        if self.row < self.size:
            board[self.row, self.column] = 1
        return SimpleNamespace(observation=board, reward=reward, last=lambda: last)


def test_a_deterministic_environment_of_bsuite_has_its_table():
    model = importers.bsuite(Sea(), 0.9)
    assert (model.mdp.states, model.mdp.actions) == (4 * 5 // 2 + 1, 2)
    right = sum(0.9**t * (-0.01 / 4) for t in range(3)) + 0.9**3 * (1 - 0.01 / 4)
    assert values(model)[0] == pytest.approx(right, abs=1e-10)
    assert ravi.solve(importers.bsuite(Sea(places=2), 0.9, resets=50).mdp).optimum > 0
    refuses(r"Sea is not a function of its observation: action . in state", importers.bsuite, Sea(slips=True), 0.9)
    refuses("more than 5 states: most= allows more", importers.bsuite, Sea(), 0.9, most=5)
    refuses("is not an environment of dm_env: it has no reset, step, action_spec", importers.bsuite, 5, 0.9)


class Walk:
    """States 0 to 3, in a row: action 1 goes on, and the last step is to state 3."""

    def __init__(self, inner=1.0, last=0.0, seen=lambda x: x, actions=2):
        self.inner, self.last, self.seen, self.actions = inner, last, seen, actions

    def action_spec(self):
        return SimpleNamespace(num_values=self.actions) if self.actions else SimpleNamespace(shape=(2,))

    def reset(self):
        self.x = 0
        return SimpleNamespace(observation=self.seen(0), reward=None, discount=None, last=lambda: False)

    def step(self, action):
        self.x += action
        over = self.x == 3
        seen, discount = self.seen(self.x), np.float32(self.last if over else self.inner)
        return SimpleNamespace(observation=seen, reward=float(over), discount=discount, last=lambda: over)


def test_steps_of_bsuite_have_the_discount_of_the_table():
    assert values(importers.bsuite(Walk(), 0.9))[0] == pytest.approx(0.81, abs=1e-9)
    refuses(r"Walk has a step of discount 0.5: a step of discount 1 is read", importers.bsuite, Walk(inner=0.5), 0.9)
    refuses(r"Walk has a last step of discount 1: it cuts the episode", importers.bsuite, Walk(last=1.0), 0.9)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (Walk, r"Walk is a class, not an environment: Walk\(\) is one"),
        (Walk(actions=None), r"the actions of Walk are namespace\(shape=\(2,\)\), without num_values"),
        (Walk(seen=lambda x: (x, np.array([1, 2]))), "the observation of Walk is not an array of numbers"),
        (Walk(seen=lambda x: {"x": x}), "the observation of Walk is not an array of numbers: .* is {'x': 0}"),
        (Walk(seen=lambda x: np.array([object()])), "the observation of Walk is not an array of numbers"),
    ],
)
def test_what_is_no_table_in_bsuite_is_told(environment, told):
    refuses(told, importers.bsuite, environment, 0.9)
