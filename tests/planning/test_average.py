"""Gain, bias and hardness in the average reward: certificates hold against exact arithmetic."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import ravi
from ravi.core import MDP
from ravi.planning.average import evaluate_average, solve_average
from ravi.planning.hardness import hardness
from ravi.planning.solver import solve
from tests.planning import colosseum
from tests.planning.exact import chain_of, cycle, fractions, random_mdp, random_policies, solve_linear

KINDS = ["random", "tied", "deterministic", "nearly"]


def small_mdp(seed):
    """Up to four states: random rows, rewards that tie, periodic and multichain ones, and chains that nearly are."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    X, A = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    mdp = random_mdp(seed, X, A, int(rng.integers(1, X + 1)), 0.5, tied=kind != "random")
    P = np.zeros((X, A, X))
    np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, -1)
    if kind in ("deterministic", "nearly"):
        P = np.eye(X)[rng.integers(X, size=(X, A))]
    if kind == "nearly":
        P = (1 - 1e-5) * P + 1e-5 * np.eye(X)[rng.integers(X, size=(X, A))]
    return MDP.from_dense(P, mdp.rewards, 0.5, initial=np.full(X, 1 / X), renormalise=True)


def closed_classes(P):
    X = len(P)
    leads = [[x == y or P[x][y] > 0 for y in range(X)] for x in range(X)]
    for z, x, y in product(range(X), repeat=3):
        leads[x][y] |= leads[x][z] and leads[z][y]
    reached = [{y for y in range(X) if leads[x][y]} for x in range(X)]
    return [
        set(c) for c in {frozenset(reached[x]) for x in range(X) if all(reached[y] == reached[x] for y in reached[x])}
    ]


def exact_gains(r, P):
    """The gain of a chain from each state."""
    X, classes, gain = len(r), closed_classes(P), {}
    for own in classes:
        states = sorted(own)
        rows = [[(x == y) - P[y][x] for y in states] for x in states]
        mu = solve_linear([*rows[:-1], [Fraction(1)] * len(states)], [Fraction(0)] * (len(states) - 1) + [Fraction(1)])
        gain |= dict.fromkeys(states, sum(m * r[x] for m, x in zip(mu, states, strict=True)))
    others = [x for x in range(X) if x not in gain]
    rows = [[(x == y) - P[x][y] for y in others] for x in others]
    ahead = [sum(P[x][y] * gain[y] for y in range(X) if y in gain) for x in others]
    gain |= dict(zip(others, solve_linear(rows, ahead), strict=True))
    return [gain[x] for x in range(X)]


def deterministic_policies(mdp):
    for actions in product(range(mdp.actions), repeat=mdp.states):
        yield actions, np.eye(mdp.actions)[list(actions)]


def exact_times(P, y):
    """Expected steps to y; None from states that may never get there."""
    X = len(P)
    into = {y}
    for _ in range(X):
        into |= {x for x in range(X) if any(P[x][z] > 0 for z in into)}
    lost = set(range(X)) - into
    for _ in range(X):
        lost |= {x for x in range(X) if x != y and any(P[x][z] > 0 for z in lost)}
    others = [x for x in range(X) if x != y and x not in lost]
    rows = [[(x == z) - P[x][z] for z in others] for x in others]
    times = dict(zip(others, solve_linear(rows, [Fraction(1)] * len(others)), strict=True))
    return [Fraction(0) if x == y else times.get(x) for x in range(X)]


def exact_diameter(mdp):
    """The diameter over all states; None where it is infinite."""
    _, P, _, _ = fractions(mdp)
    X, worst = mdp.states, Fraction(0)
    chains = [[P[x][a] for x, a in enumerate(actions)] for actions, _ in deterministic_policies(mdp)]
    for y in range(X):
        times = [exact_times(chain, y) for chain in chains]
        for x in range(X):
            there = [each[x] for each in times if each[x] is not None]
            if not there:
                return None
            worst = max(worst, min(there))
    return worst


def optimal_bias(mdp, gain):
    """A solution h of g + h = L h that some policy with one recurrent class has; None where there is none."""
    r, P, _, _ = fractions(mdp)
    X = mdp.states
    for actions, _ in deterministic_policies(mdp):
        chain = [P[x][a] for x, a in enumerate(actions)]
        if len(closed_classes(chain)) > 1:
            continue
        s = min(closed_classes(chain)[0])
        own = [r[x][a] for x, a in enumerate(actions)]
        rows = [[(x == y) - chain[x][y] + (y == s) * 0 for y in range(X) if y != s] + [Fraction(1)] for x in range(X)]
        found = solve_linear(rows, own)
        h = [*found[:s], Fraction(0), *found[s:-1]]
        if found[-1] == gain and all(
            r[x][a] + sum(p * v for p, v in zip(P[x][a], h, strict=True)) <= gain + h[x]
            for x in range(X) for a in range(mdp.actions)
        ):  # fmt: skip
            return h
    return None


@pytest.mark.parametrize("seed", range(100))
def test_no_certificate_is_violated(seed):
    mdp = small_mdp(seed)
    gains = {actions: exact_gains(*chain_of(mdp, policy)[:2]) for actions, policy in deterministic_policies(mdp)}
    best = [max(gain[x] for gain in gains.values()) for x in range(mdp.states)]
    solution = solve_average(mdp)
    for x in range(mdp.states):
        assert abs(Fraction(solution.gain) - best[x]) <= Fraction(solution.gain_error)
        played = gains[tuple(solution.policy.argmax(-1).tolist())][x]
        assert best[x] - played <= Fraction(solution.policy_error)
    constant = len(set(best)) == 1
    assert (solution.gain_error <= 1e-8) == constant  # a bias of 1e5, where chains are nearly apart
    assert constant or "gain depends on the start" in solution.undetermined

    policy = random_policies(seed, mdp)
    for one in (policy, solution.policy):
        found, exact = evaluate_average(mdp, one), exact_gains(*chain_of(mdp, one)[:2])
        assert all(
            abs(Fraction(float(g)) - e) <= Fraction(found.gain_error) for g, e in zip(found.gain, exact, strict=True)
        )
        assert found.gain_error <= 1e-9

    hard, exact = hardness(mdp), exact_diameter(mdp)
    if exact is None:
        assert hard.diameter == np.inf
    else:
        assert abs(Fraction(hard.diameter) - exact) <= Fraction(hard.diameter_error)
        assert hard.diameter_error <= 1e-3 * hard.diameter  # of 2e10 steps, where chains are nearly apart
    if hard.bias_span_error < np.inf:
        h = optimal_bias(mdp, best[0])
        assert h is not None
        assert abs(Fraction(hard.bias_span) - (max(h) - min(h))) <= Fraction(hard.bias_span_error)
        r, P, _, _ = fractions(mdp)
        pairs = list(product(range(mdp.states), range(mdp.actions)))
        ahead = {(x, a): sum(p * v for p, v in zip(P[x][a], h, strict=True)) for x, a in pairs}
        gaps = [best[0] + h[x] - r[x][a] - ahead[x, a] for x, a in pairs]
        low, high = hard.smallest_gap
        positive = [gap for gap in gaps if gap > 0]
        assert not positive or Fraction(low) <= min(positive)
        assert high == np.inf or min(positive) <= Fraction(high)
        norm = max(sum(p * (v - ahead[x, a]) ** 2 for p, v in zip(P[x][a], h, strict=True)) for x, a in pairs)
        assert abs(hard.value_norm - float(norm) ** 0.5) <= hard.value_norm_error + 1e-15


def test_the_gain_of_riverswim_is_three_sevenths_far_from_the_left():
    for X in (20, 50):
        solution = solve_average(ravi.mdp(f"riverswim/{X}"))
        assert abs(solution.gain - 3 / 7) <= 1e-9
        assert solution.gain_error <= 1e-12


def test_a_periodic_chain_has_its_gain_and_bias():
    solution = solve_average(cycle(5, 0.9))
    assert abs(solution.gain - 0.2) <= solution.gain_error <= 1e-13
    assert np.ptp(solution.bias) == pytest.approx(0.8, abs=1e-12)


def test_the_bias_is_the_optimal_one_where_several_are_solutions():
    """Staying pays 1 and moving 0: every |h(0) - h(1)| <= 1 solves the equation, and 0 is that of the best policies."""
    P = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    mdp = MDP.from_dense(P, [[1, 0], [1, 0]], 0.9, initial=0)
    solution = solve_average(mdp)
    assert solution.gain == 1.0
    assert np.ptp(solution.bias) == 0.0
    assert hardness(mdp).bias_span_error == np.inf
    assert "2 recurrent classes" in str(hardness(mdp))


def test_an_mdp_whose_gain_depends_on_the_start_says_so():
    P = [[[1, 0, 0]], [[0.5, 0, 0.5]], [[0, 0, 1]]]
    mdp = MDP.from_dense(P, [[0.2], [0.0], [0.7]], 0.9, initial=1)
    solution = solve_average(mdp)
    assert "0.2 from state 0, 0.7 from 2" in solution.undetermined
    found = evaluate_average(mdp, np.ones((3, 1)))
    assert np.abs(found.gain - [0.2, 0.45, 0.7]).max() <= found.gain_error <= 1e-13
    assert found.recurrent.tolist() == [0, -1, 1]
    away = MDP.from_dense(P, [[0.2], [0.0], [0.7]], 0.9, initial=2)
    assert solve_average(away).gain == pytest.approx(0.7, abs=1e-13)


def test_many_states_are_solved_by_sweeps():
    mdp = ravi.mdp("garnet/3000,3,5,seed=1")
    solution = solve_average(mdp)
    assert solution.gain_error <= 1e-10
    assert abs(evaluate_average(mdp, solution.policy).gain[0] - solution.gain) <= solution.policy_error


@pytest.mark.parametrize("row", colosseum.PUBLISHED, ids=lambda row: f"{row[0].__name__} {row[1:4]}")
def test_diameters_and_value_norms_are_those_that_colosseum_published(row):
    """All that its parameters determine; it computed them in single precision to 1e-3. Its value norm is no
    standard deviation (`colosseum.their_value_norm`). Diameters of up to 100 states are the certified ones."""
    family, sizes, lazy, random, stochastic, diameter, value_norm = row
    P, r, states = family(*sizes, lazy, random, stochastic)
    mdp = MDP.from_dense(P, r, 0.99, initial=0, renormalise=True)
    if len(P) <= 100:
        hard = hardness(mdp)
        assert hard.diameter_error <= 1e-8
        assert hard.diameter == pytest.approx(diameter, rel=1e-3)
    else:
        assert colosseum.diameter(P, states) == pytest.approx(diameter, rel=1e-3)
    if value_norm is not None:
        certain = ((P == 0) | (P == 1)).all() and not stochastic
        theirs = 0.0 if certain else colosseum.their_value_norm(P, solve(mdp).V)
        assert theirs == pytest.approx(value_norm, rel=2e-3)
