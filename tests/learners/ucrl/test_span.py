"""SCAL and SCAL+ against a literal transcription on whole runs, limits, and theory."""

from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.estimators.counts import Counts
from ravi.learners.ucrl.scal import scal, scal_plus, width
from ravi.learners.ucrl.ucrl import ucrl2b
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, dense, spy
from tests.learners.ucrl.test_core import exact, random_mdp, rational_mdp, within
from tests.literal import extended as literal

MAKE = {"scal": scal, "scal+": scal_plus}


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.02])
def test_a_run_of_scal_is_the_literal_one(scale):
    T, mixed = 250, 0
    for seed, mdp in enumerate([random_mdp(1), random_mdp(2, X=3, A=3, spread=0.2)]):
        c = 0.3
        seen = []
        made = run(scal(mdp.problem, T, scale=scale, span=c), mdp, T, [seed], measures=[spy(seen)])
        inner = literal.ucrl2b_set(mdp.states, mdp.actions, T, 1 / T, scale)
        P, r, nu0 = dense(mdp).tolist(), mdp.rewards.tolist(), mdp.initial.tolist()
        told = list(literal.learn(P, r, mdp.discount, nu0, T, seed, inner, c))
        assert [phase[0] for phase in told] == list(made.T_k[0])
        for (state, path), (_, u, (low, high), pi, _, triples) in zip(seen, told, strict=True):
            np.testing.assert_allclose(state.u[0], u, rtol=0, atol=1e-9)
            np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-8)
            np.testing.assert_array_equal(path.action[0, : path.length[0]], [a for _, a, _ in triples])
            np.testing.assert_array_equal(path.successor[0, : path.length[0]], [y for _, _, y in triples])
            assert low - 1e-9 <= state.gain[0] <= high + 1e-9
            mixed += int(((state.policy[0] > 0) & (state.policy[0] < 1)).any())
    assert mixed > 10


@pytest.mark.parametrize("mode", ["aware", "blind"])
@pytest.mark.parametrize("mdp", ["riverswim/4,discount=0.9", "garnet/5,2,3,discount=0.8"])
def test_scal_without_a_bound_is_ucrl2b(mdp, mode):
    world, T = ids.mdp(mdp), 800
    for scale in (1.0, 0.05):
        options = {"scale": scale, "mode": mode}
        one = run(scal(world.problem, T, span=inf, **options), world, T, 3, record=["stream"])
        two = run(ucrl2b(world.problem, T, **options), world, T, 3, record=["stream"])
        for row in range(3):
            assert_same_bits(bits(one, row), bits(two, row))


def test_the_horizon_bounds_nothing_that_an_aware_learner_can_plan():
    """Optimistic values lie in [0, H]: SCAL with its default span is UCRL2B."""
    world, T = ids.mdp("riverswim/5,discount=0.8"), 800
    one, two = (
        run(scal(world.problem, T, scale=0.05), world, T, 3),
        run(ucrl2b(world.problem, T, scale=0.05), world, T, 3),
    )
    for row in range(3):
        assert_same_bits(bits(one, row), bits(two, row))
    other = run(scal(world.problem, T, scale=0.05, span=0.5), world, T, 3)
    assert (other.batch.state.policy != one.batch.state.policy).any()


@pytest.mark.parametrize("planning", ["average", "discounted"])
def test_scal_plus_with_the_kernel_known_and_no_bonus_is_relative_value_iteration(planning):
    mdp, plays = rational_mdp(4), 10**8
    best = solve(mdp)
    learner = scal_plus(mdp.problem, 1000, scale=0.0, planning=planning)
    s = learner.init(np.zeros(1, np.uint64))._replace(data=exact(mdp, plays))
    s = learner.plan(s)
    t = 1 + s.data.visits.sum(dtype=np.int64)
    assert abs(s.gain[0] - best.optimum) <= 1 / np.sqrt(t) + mdp.horizon / plays
    np.testing.assert_array_equal(s.policy[0], best.policy)
    np.testing.assert_allclose(s.u[0], best.V - best.V.min(), rtol=0, atol=mdp.horizon / np.sqrt(t) + 1e-6)


def test_the_kernel_of_scal_plus_puts_one_play_on_the_mode_of_the_first_state():
    """With no plays P_bar leads to x_bar surely: Q = r + b + gamma u(x_bar), b = 2 c, whatever u is."""
    mdp = random_mdp(3, X=5)
    learner = scal_plus(mdp.problem, 1000, span=0.7)
    assert learner.settings["reference"] == mdp.initial.argmax()
    s = learner.plan(learner.plan(learner.init(np.zeros(1, np.uint64))))  # the second from the fixed point
    best = mdp.rewards.max(-1)
    want = np.minimum(best, best.min() + 0.7)
    np.testing.assert_allclose(s.u[0], want - want.min(), rtol=0, atol=1e-12)
    x_bar = int(mdp.initial.argmax())
    V = want + 1.4 + mdp.discount * mdp.horizon * (want[x_bar] + 1.4)
    assert s.gain[0] == pytest.approx((1 - mdp.discount) * mdp.initial @ V, rel=1e-12)


def test_the_bonus_of_scal_plus_is_published():
    visits, t, delta, c = np.array([[[0, 1], [9, 400]]], np.int32), np.array([411]), 0.1, 3.0
    beta = np.sqrt(7 * np.log(2 * 2 * 2 * 411 / delta) / np.array([[1, 1], [9, 400]])) + 1 / np.array(
        [[1, 2], [10, 401]]
    )
    np.testing.assert_allclose(width(visits, t, delta)[0], beta, rtol=1e-14)
    mdp = random_mdp(5, X=2)
    moves = np.zeros((1, 2, 2, 2), np.int32)
    moves[..., 0] = visits
    D = Counts(visits, moves)
    # a bonus b in every pair raises the gain by b: compare two scales at equal counts
    same = Counts(np.full_like(visits, 50), np.full_like(moves, 25))
    gains = []
    for scale in (0.0, 1.0):
        learner = scal_plus(mdp.problem, 1000, scale=scale, delta=delta, span=c)
        gains.append(learner.plan(learner.init(np.zeros(1, np.uint64))._replace(data=same)).gain[0])
    b = c * min(2.0, np.sqrt(7 * np.log(2 * 2 * 2 * 201 / delta) / 50) + 1 / 51)
    assert gains[1] - gains[0] == pytest.approx(b, abs=1e-12)
    assert D.visits.sum() == 410


@pytest.mark.parametrize("name", MAKE)
def test_spans_are_bounded_and_mixtures_are_policies(name):
    mdp, T = ids.mdp("riverswim/5,discount=0.9"), 2000
    for mode in ("aware", "blind"):
        seen = []
        run(MAKE[name](mdp.problem, T, scale=0.05, span=0.8, mode=mode), mdp, T, 4, measures=[spy(seen)])
        mixed = 0
        for state, _ in seen:
            assert (np.ptp(state.u, axis=1) <= 0.8 * (1 + 1e-12)).all()
            mixed += int(((state.policy > 0) & (state.policy < 1)).any())
        assert mixed > 0
        assert (state.unfinished == 0).all()


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("mdp", ["riverswim/4,discount=0.9", "garnet/5,2,3,discount=0.8"])
def test_with_a_span_that_is_known_plans_are_optimistic(name, mdp):
    """c = span(V*), published constants, delta = 0.2. In runs whose confidence holds at all phase starts (at least the
    stated fraction: false alarm below 1e-6, keys fixed) every planned gain is >= rho* - accuracy."""
    world, T, seeds, delta = ids.mdp(mdp), 1500, 100, 0.2
    best = solve(world)
    c = float(np.ptp(best.V)) * (1 + 1e-9)
    seen = []
    run(MAKE[name](world.problem, T, delta=delta, span=c), world, T, seeds, measures=[spy(seen)], measured=False)
    good, PV = np.ones(seeds, bool), dense(world) @ best.V
    for state, path in seen:
        D = state.data
        if name == "scal":
            for i in np.nonzero(path.length > 0)[0]:
                good[i] &= within("ucrl2b", world, Counts(D.visits[i : i + 1], D.moves[i : i + 1]), T, delta)
        else:
            t = 1 + D.visits.sum((1, 2))
            V = best.V[world.successors]
            bar = ((D.moves * V).sum(-1) + best.V[world.initial.argmax()]) / (D.visits + 1)
            # a pair that was never played: the bonus 2 c pays for anything
            good &= (
                (bar - PV >= -c * np.minimum(width(D.visits, t, delta), 2) - 1e-12) | (path.length == 0)[:, None, None]
            ).all((1, 2))
    assert (~good).sum() <= binom.isf(1e-6, seeds, delta)
    assert good.sum() > seeds / 2
    for state, path in seen:
        t = 1 + state.data.visits.sum((1, 2))
        assert (state.gain >= best.optimum - 0.5 / np.sqrt(t) - 1e-9)[good & (path.length > 0)].all()


@pytest.mark.parametrize("name", MAKE)
def test_a_bound_that_is_too_small_is_not_optimistic(name):
    """What c >= span(V*) is for: with a tenth of it, and the kernel known, the planned gain falls below rho*."""
    mdp = rational_mdp(4)
    best = solve(mdp)
    learner = MAKE[name](mdp.problem, 1000, scale=0.0, span=float(np.ptp(best.V)) / 10)
    s = learner.plan(learner.init(np.zeros(1, np.uint64))._replace(data=exact(mdp, 10**8)))
    assert s.gain[0] < best.optimum - 1e-3


def test_wrong_spans_are_named():
    problem = random_mdp(0).problem
    for make, span in [(scal, 0.0), (scal, -1.0), (scal, float("nan")), (scal_plus, 0.0), (scal_plus, inf)]:
        with pytest.raises(InputError, match="span"):
            make(problem, 100, span=span)


def test_where_scal_plus_cuts_it_mixes_with_an_action_that_earns_nothing():
    """Without plays all pairs lead to x_bar: the best is worth max_a r + b there, b = 2 c scale, the idle 0, and the
    ceiling is c above the least of the best, all up to gamma u(x_bar)."""
    mdp, c, scale = random_mdp(3, X=5, A=3), 0.2, 0.7
    s = scal_plus(mdp.problem, 1000, scale=scale, span=c).plan(
        scal_plus(mdp.problem, 1000).init(np.zeros(1, np.uint64))
    )
    high = mdp.rewards.max(-1) + 2 * c * scale
    weight = np.minimum((high.min() + c) / high, 1.0)
    assert 0 < (weight < 1).sum() < 5
    want = np.eye(3)[mdp.rewards.argmax(-1)] * weight[:, None]
    want[:, 0] += 1 - weight  # the first of the idle actions, which are all alike
    np.testing.assert_allclose(s.policy[0], want, rtol=0, atol=1e-12)
