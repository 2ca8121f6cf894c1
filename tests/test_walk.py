"""The walk: successors, actions, resets and first states have their laws; nothing of probability zero happens."""

import numpy as np
import pytest

from ravi.core import MDP
from ravi.learners.fixed import fixed
from ravi.mdps import garnet, riverswim
from ravi.random import block
from ravi.runtime.api import run
from ravi.runtime.walk import _cumulative, draw, find, world_of


def z_scores(counts, probabilities):
    n = counts.sum()
    deviation = np.sqrt(n * probabilities * (1 - probabilities))
    return np.abs(counts - n * probabilities)[deviation > 0] / deviation[deviation > 0]


def test_the_stream_has_the_laws_of_the_protocol():
    """Every count is within 5 standard deviations of its mean, on fixed keys (about 60 counts: chance 4e-5)."""
    mdp = garnet(3, 2, 3, 5, 0.9)
    pi = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    made = run(fixed(mdp.problem, pi), mdp, 40_000, 4, record=["stream"])
    x, a, y, reset = (made.results[f"stream_{name}"].ravel() for name in ("state", "action", "successor", "reset"))
    assert z_scores(np.bincount(reset.astype(int)), np.array([0.9, 0.1])).max() < 5
    for s in range(3):
        assert z_scores(np.bincount(a[x == s], minlength=2), pi[s]).max() < 5
        for b in range(2):
            law = np.zeros(3)
            law[mdp.successors[s, b]] = mdp.transitions[s, b]
            assert z_scores(np.bincount(y[(x == s) & (a == b)], minlength=3), law).max() < 5
    states = made.results["stream_state"]
    after = states[:, 1:][made.results["stream_reset"][:, :-1]]
    assert z_scores(np.bincount(after, minlength=3), mdp.initial).max() < 5


SPREAD = MDP.from_dense([[[0.2, 0.3, 0.5]] * 2] * 3, np.zeros((3, 2)), 0.5, [0.5, 0.2, 0.3])


def joint_z_scores(a, y, after):
    """Of the counts of (a_t, y_t, x_{t+1}) at resets on SPREAD under the uniform policy, where all three are drawn
    apart: 18 of them, each within 5 standard deviations of its mean but for a chance of 1e-5 in all."""
    law = np.einsum("a,y,z->ayz", [0.5, 0.5], [0.2, 0.3, 0.5], SPREAD.initial)
    return z_scores(np.bincount((a * 3 + y) * 3 + after, minlength=18), law.ravel())


def test_where_a_reset_leads_depends_on_nothing_that_was_drawn_before_it():
    made = run(fixed(SPREAD.problem, np.full((3, 2), 0.5)), SPREAD, 20_000, 4, record=["stream"])
    x, a, y, reset = (made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset"))
    at = reset[:, :-1]
    assert joint_z_scores(a[:, :-1][at], y[:, :-1][at], x[:, 1:][at]).max() < 5
    assert z_scores(np.bincount(at.ravel().astype(int)), np.array([0.5, 0.5])).max() < 5


def test_the_walk_is_what_it_says_step_by_step():
    """Written out: its joint law at resets, and the stream of a run bit for bit."""
    policy, world, key = np.full((3, 2), 0.5), world_of(SPREAD), np.uint64(7)
    stream = run(fixed(SPREAD.problem, policy), SPREAD, 20_000, [7], record=["stream"]).results
    x, rows = int(stream["stream_state"][0, 0]), []
    for t in range(1, 20_001):
        u_reset, u_action, u_successor, u_initial = block(key, t, 0)
        a = draw(policy[x], u_action)
        y = world.successors[x, a, find(world.cumulative[x, a], u_successor)]
        reset = u_reset < world.restart
        after = find(world.initial, u_initial) if reset else y
        rows.append((x, a, y, reset, after))
        x = after
    columns = np.array(rows).T
    for name, column in zip(("state", "action", "successor", "reset"), columns, strict=False):
        np.testing.assert_array_equal(stream[f"stream_{name}"][0], column)
    _, a, y, reset, after = columns[:, columns[3] == 1]
    assert joint_z_scores(a, y, after).max() < 5


def test_epochs_have_geometric_lengths_and_end_at_resets():
    """The mean length is within 5 standard errors of H; the number of epochs is 1 + Bin(T - 1, 1 - gamma)."""
    mdp, T, n = riverswim(4, 0.9), 20_000, 4
    made = run("ravi-ucb", mdp, T, n, record=["stream"])
    for row in range(n):
        starts = made.T_k[row]
        resets = np.flatnonzero(made.results["stream_reset"][row][: T - 1]) + 2  # the step after a reset
        assert starts.tolist() == [1, *resets.tolist()]
        lengths = np.diff(starts)
        H, gamma = mdp.horizon, mdp.discount
        assert abs(lengths.mean() - H) < 5 * np.sqrt(gamma) * H / np.sqrt(len(lengths))
        assert abs(len(starts) - 1 - (T - 1) * (1 - gamma)) < 5 * np.sqrt((T - 1) * gamma * (1 - gamma))


@pytest.mark.parametrize(
    "row", [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.1] * 10, [0.0] * 7 + [0.25] * 4 + [0.0], [1.0], [0.1] * 10 + [0.0] * 2]
)
def test_a_draw_never_has_probability_zero(row):
    cumulative = _cumulative(np.array(row))
    for u in [0.0, 2.0**-53, 0.1, 0.25, 0.5, 0.75, 0.9, 1 - 2.0**-53]:
        assert row[find(cumulative, u)] > 0
        assert find(cumulative, u) == min(j for j in range(len(row)) if u < cumulative[j])


def test_an_action_of_probability_zero_is_never_played():
    mdp = MDP.from_dense([[[1.0]] * 4], [[0.0] * 4], 0.9, 0)
    pi = np.array([[0.3, 0.7 - 1e-10, 0.0, 0.0]])  # sums to a little less than one
    made = run(fixed(mdp.problem, pi), mdp, 1000, 8, record=["stream"])
    assert set(np.unique(made.results["stream_action"])) == {0, 1}


def test_padding_plays_the_last_epoch_to_its_reset_without_learning():
    mdp, T = riverswim(5, 0.9), 333
    plain = run("ravi-ucb,scale=0.01,eta=0.5", mdp, T, 6, record=["stream"])
    padded = run("ravi-ucb,scale=0.01,eta=0.5", mdp, T, 6, record=["stream"], pad=True)
    assert (plain.padding == 0).all()
    assert (padded.regret == plain.regret).all()
    assert (padded.results["reward_total"] == plain.results["reward_total"]).all()
    assert (padded.state.data.visits == plain.state.data.visits).all()
    resets = padded.results["stream_reset"]
    assert (padded.results["stream_state"][:, :T] == plain.results["stream_state"]).all()
    for row in range(6):
        extra = padded.padding[row]
        assert (padded.results["stream_state"][row, : T + extra] >= 0).all()
        assert (padded.results["stream_state"][row, T + extra :] == -1).all()
        assert resets[row, T + extra - 1]  # the last step played is followed by a reset
        assert not resets[row, T - 1 : T + extra - 1].any()  # and it is the first from T on
    assert padded.padding.max() > 0


def test_the_length_of_padding_is_geometric():
    """E[T+ - T] = gamma H, Var = gamma H^2: the mean over 2,000 keys is within 5 standard errors."""
    mdp = riverswim(3, 0.9)
    padding = run("uniform", mdp, 5, 2000, pad=True).padding
    H, gamma = mdp.horizon, mdp.discount
    assert abs(padding.mean() - gamma * H) < 5 * np.sqrt(gamma) * H / np.sqrt(2000)


def test_the_world_holds_no_square_array():
    world = world_of(garnet(5000, 2, 3))
    assert sum(np.asarray(part).nbytes for part in world) < 5000 * 2 * 3 * 12 + 5000 * 8 + 100


@pytest.mark.parametrize("size", [1, 2, 8, 9, 10, 17, 65, 73, 100, 511, 512, 513, 600])
def test_a_row_of_any_length_is_searched_as_by_bisection(size):
    rng = np.random.default_rng(size)
    row = rng.dirichlet(np.full(size, 0.3)) * (rng.random(size) < 0.8)
    cumulative = _cumulative(row / row.sum() if row.sum() > 0 else np.full(size, 1 / size))
    u = np.concatenate([rng.random(200), cumulative, np.nextafter(cumulative, 0)])
    u = u[u < 1]
    np.testing.assert_array_equal([find(cumulative, one) for one in u], np.searchsorted(cumulative, u, side="right"))
