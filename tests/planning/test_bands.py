"""Chains and MDPs within a band: against exact fractions, whatever the numbering; long ones take few passes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi.core import MDP
from ravi.mdps import riverswim
from ravi.planning import solve
from ravi.planning.bands import (
    LONG,
    band_of,
    banded_values,
    chain_of_all_actions,
    improve,
    measure_band,
    values,
)
from ravi.planning.certificates import tables
from ravi.planning.chains import policy_chain
from tests.planning.exact import cycle, distance, exact_optimum, exact_values, random_mdp, random_policies


def numbered(chain, seed):
    """A band of a numbering at random."""
    state = np.random.default_rng(seed).permutation(len(chain.source)).astype(np.uint32)
    return measure_band(chain, state, np.argsort(state).astype(np.uint32), 1e9, 10**9)


def renumbered(mdp, seed):
    """The same MDP with other numbers for its states; and which state has which number."""
    X, A, B = mdp.transitions.shape
    new = np.random.default_rng(seed).permutation(X)
    old = np.argsort(new)
    successors = new[mdp.successors[old]]
    order = np.argsort(successors, axis=-1)
    return MDP(
        rewards=mdp.rewards[old], successors=np.take_along_axis(successors, order, -1),
        transitions=np.take_along_axis(mdp.transitions[old], order, -1), initial=mdp.initial[old],
        discount=mdp.discount,
    ), new  # fmt: skip


def corridor(X, A, reach, discount, seed=0):
    """Every action leads up to `reach` states back or forth, at random."""
    rng, B = np.random.default_rng(seed), 2 * reach + 1
    first = np.clip(np.arange(X) - reach, 0, X - B)
    successors = np.broadcast_to((first[:, None] + np.arange(B))[:, None], (X, A, B))
    P, r = rng.dirichlet(np.ones(B), (X, A)), rng.uniform(size=(X, A))
    return MDP(rewards=r, successors=successors, transitions=P, initial=0, discount=discount)


small = {
    "X": st.integers(1, 6),
    "A": st.integers(1, 3),
    "gamma": st.sampled_from([0.01, 0.5, 0.9, 0.999]),
    "seed": st.integers(0, 10**6),
    "tied": st.booleans(),
}


@settings(deadline=None, derandomize=True, max_examples=60)
@given(**small)
def test_values_within_a_band_are_exact_in_every_numbering(X, A, gamma, seed, tied):
    mdp = random_mdp(seed, X, A, min(3, X), gamma, tied=tied)
    policy = random_policies(seed, mdp)
    V = exact_values(mdp, policy)
    chain = policy_chain(tables(mdp), policy)
    for band in (measure_band(chain, *[np.arange(X, dtype=np.uint32)] * 2, 1e9, 10**9), numbered(chain, seed)):
        found, first = banded_values(chain, gamma, band, chain.source), int(band.state[0])
        assert distance(found, [v - V[first] for v in V]) <= 1e-13 * Fraction(mdp.horizon)
    greedy = np.eye(A)[mdp.rewards.argmax(-1)]
    V, band = exact_values(mdp, greedy), numbered(chain_of_all_actions(tables(mdp)), seed)
    assert distance(values(tables(mdp), band, mdp.rewards.argmax(-1)), V) <= 1e-13 * Fraction(mdp.horizon)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(X=st.integers(1, 6), A=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_a_pass_loses_no_value_in_any_state_and_ends_where_nothing_can_be_improved(X, A, seed):
    mdp = random_mdp(seed, X, A, min(3, X), 0.9)
    arrays, band = tables(mdp), numbered(chain_of_all_actions(tables(mdp)), seed)
    action, W = np.zeros(X, np.int64), np.zeros(X)
    before = values(arrays, band, action)
    for _ in range(50):
        changed = improve(arrays, band, action, W)
        after = values(arrays, band, action)
        assert (after >= before - 1e-12).all()
        if changed == 0:
            break
        before = after
    assert changed == 0
    assert distance(before, exact_optimum(mdp)[0]) <= 1e-11


def test_what_one_state_gains_the_next_one_sees():
    """A front that Howard's policy iteration moves by one state a pass goes all the way in one."""
    X = 50
    P, r = np.zeros((X, 2, X)), np.zeros((X, 2))
    P[np.arange(X), 0, np.arange(X)] = 1  # stay, for a little
    P[np.arange(X), 1, np.maximum(np.arange(X) - 1, 0)] = 1  # or go to state 0, where all is
    r[:, 0], r[0, 0] = 0.01, 1.0
    mdp = MDP.from_dense(P, r, 0.99, 0)
    chain, action, W = chain_of_all_actions(tables(mdp)), np.zeros(X, np.int64), np.zeros(X)
    band = measure_band(chain, *[np.arange(X, dtype=np.uint32)] * 2, 1e9, 10**9)
    assert improve(tables(mdp), band, action, W) == X - 1
    assert (action == [0] + [1] * (X - 1)).all()
    assert improve(tables(mdp), band, action, W) == 0


def test_bands_are_found_where_there_are_some():
    for mdp in (riverswim(LONG, 0.99), corridor(LONG, 2, 2, 0.99)):
        chain = chain_of_all_actions(tables(mdp))
        plain = band_of(chain, 64.0)
        assert 0 < plain.low <= 4
        assert (plain.state == np.arange(LONG)).all()
        other, _ = renumbered(mdp, 1)
        found = band_of(chain_of_all_actions(tables(other)), 64.0)
        assert 0 < found.low + found.up <= 2 * (plain.low + plain.up)
        assert sorted(found.state) == list(range(LONG))
        assert (found.state[found.place] == np.arange(LONG)).all()
    ring = band_of(chain_of_all_actions(tables(cycle(LONG, 0.99))), 64.0)
    assert ring.low + ring.up <= 4
    islands = MDP(
        rewards=np.zeros((LONG, 1)), successors=((np.arange(LONG) + LONG // 2) % LONG)[:, None, None],
        transitions=np.ones((LONG, 1, 1)), initial=0, discount=0.9,
    )  # fmt: skip
    pairs = band_of(chain_of_all_actions(tables(islands)), 64.0)
    assert (pairs.low, pairs.up) == (1, 1)


@pytest.mark.parametrize("make", [lambda: riverswim(6000, 0.99), lambda: corridor(6000, 3, 2, 0.99)])
def test_long_mdps_are_solved_within_their_band_as_by_sweeps(make):
    mdp = make()
    one, other = solve(mdp), solve(mdp, "value_iteration")
    assert one.sweeps < 100 < other.sweeps
    assert max(one.error, other.error) <= 1e-9
    assert np.abs(one.V - other.V).max() <= one.error + other.error
    assert one.optimum == pytest.approx(other.optimum, abs=one.optimum_error + other.optimum_error)
    shuffled, new = renumbered(mdp, 3)
    again = solve(shuffled)
    assert again.sweeps < 100
    assert np.abs(again.V[new] - one.V).max() <= one.error + again.error
