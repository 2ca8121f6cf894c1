"""UCRL2, UCRL2B, KL-UCRL, SCAL and SCAL+: their sets hold the truth, plans are optimistic, and their limits.

Whole runs are compared with transcriptions in `tests.learners.test_literal`, constants with formulas in
`tests.learners.test_constants`.
"""

from math import inf

import numpy as np
import pytest
from scipy.stats import binom

from ravi import ids
from ravi.core import MDP
from ravi.estimators.counts import Counts
from ravi.learners.ucrl.scal import width
from ravi.learners.ucrl.ucrl import box_radius, constant, l1_radius, ucrl2
from ravi.planning.solver import solve
from ravi.runtime.api import run
from tests.helpers import assert_same_bits, bits, dense, spy

SETS = ("ucrl2", "ucrl2b", "kl-ucrl", "scal", "scal+")
ONE = np.zeros(1, np.uint64)


def random_mdp(seed, X=4, A=2, discount=0.8, spread=0.5):
    rng = np.random.default_rng(seed)
    P, r = rng.dirichlet(np.full(X, spread), (X, A)), rng.random((X, A))
    return MDP.from_dense(P, r, discount, rng.dirichlet(np.ones(X)), renormalise=True)


def rational_mdp(seed, X=6, A=3, B=3, plays=1000, discount=0.9):
    """A kernel of multiples of 1 / plays."""
    rng = np.random.default_rng(seed)
    successors = np.stack([np.sort(rng.choice(X, B, replace=False)) for _ in range(X * A)]).reshape(X, A, B)
    counts = 1 + rng.multinomial(plays - B, rng.dirichlet(np.ones(B), X * A)).reshape(X, A, B)
    P = np.zeros((X, A, X))
    np.put_along_axis(P, successors, counts / plays, axis=2)
    return MDP.from_dense(P, rng.random((X, A)), discount, rng.dirichlet(np.ones(X)), renormalise=True)


def exact(P, plays):
    """Counts that are the kernel itself."""
    moves = np.rint(P * plays).astype(np.int32)[None]
    return Counts(moves.sum(-1, dtype=np.int32), moves)


def planned(text, mdp, data, steps=1000):
    learner = ids.learner(text, mdp, steps)
    return learner.plan(learner.init(ONE)._replace(data=data))


def within(name, mdp, D, T, delta, m, shrink=1):
    """Of each seed, whether the true kernel is plausible at every pair, for sets of rows of m outcomes."""
    P, n = mdp.transitions, D.visits
    p, t = D.moves / np.maximum(n, 1)[..., None], 1 + n.sum((1, 2))
    if name == "ucrl2":
        inside = np.abs(p - P).sum(-1) <= l1_radius(n, t, delta, m) / shrink
    elif name == "kl-ucrl":
        ratio = np.where(p > 0, p / np.where(P > 0, P, 1), 1)
        inside = (p * np.log(ratio)).sum(-1) <= constant(mdp.states, mdp.actions, T, delta, m) / np.maximum(
            n, 1
        ) / shrink
    elif name == "scal+":  # of the bias alone; a pair that was never played: the bonus 2 c pays for anything
        V = solve(mdp).V
        bar = ((D.moves * V[mdp.successors]).sum(-1) + V[mdp.initial.argmax()]) / (n + 1)
        least = -np.ptp(V) * np.minimum(width(n, t, delta), 2) / shrink
        return (bar - dense(mdp) @ V >= least - 1e-9).all((1, 2))
    else:
        factor, rest = (f[..., None] for f in box_radius(n, delta, m))
        inside = (np.abs(p - P) <= (factor * np.sqrt(p * (1 - p)) + rest) / shrink).all(-1)
    return (inside | (n == 0)).all((1, 2))


@pytest.mark.parametrize("mdp", [ids.mdp("riverswim/4,discount=0.9"), random_mdp(9, X=3)], ids=["river", "random"])
@pytest.mark.parametrize(("name", "support"), [*((name, "off") for name in SETS), *((name, "on") for name in SETS[:3])])
def test_the_true_kernel_is_plausible_and_then_the_plan_is_optimistic(name, support, mdp):
    """At published constants and delta = 0.2, SCAL's c being the span of V*: runs in which the kernel is ever
    implausible are at most the stated fraction delta (false alarm below 1e-6, keys fixed), and in all others every
    planned gain is >= rho* - accuracy. A set a fiftieth as wide loses the kernel."""
    T, seeds, delta, best, seen = 1500, 50, 0.2, solve(mdp), []
    span = f",span={np.ptp(best.V) * (1 + 1e-9)}" if "scal" in name else ""
    learner = ids.learner(f"{name},delta={delta}{',support=on' * (support == 'on')}{span}", mdp, T)
    run(learner, mdp, T, seeds, measures=[spy(seen)], measured=False)
    good, narrow, m = (
        np.ones((2, seeds), bool)[0],
        np.ones(seeds, bool),
        mdp.branching if support == "on" else mdp.states,
    )
    for state, path in seen:
        good &= within(name, mdp, state.data, T, delta, m) | (path.length == 0)
        narrow &= within(name, mdp, state.data, T, delta, m, 2500 if name == "kl-ucrl" else 50)
    assert (~good).sum() <= binom.isf(1e-6, seeds, delta)
    assert narrow.mean() < 0.5
    for state, path in seen:
        t = 1 + state.data.visits.sum((1, 2))
        assert (state.gain >= best.optimum - 0.5 / np.sqrt(t) - 1e-9)[good & (path.length > 0)].all()


def test_the_gain_of_the_reset_chain_is_the_return():
    """(1 - gamma) <nu_0, V> of an aware plan, against the average reward of a blind one on the reset chain itself."""
    mdp, plays = rational_mdp(5, X=4, A=2, B=4, plays=100), 10**7
    chain = mdp.discount * dense(mdp) + (1 - mdp.discount) * mdp.initial
    one = planned("ucrl2,scale=0", mdp, exact(mdp.transitions, plays))
    two = planned("ucrl2,scale=0,mode=blind", mdp, exact(chain, plays))
    accuracy = 1 / np.sqrt(plays * 8)
    assert one.gain[0] == pytest.approx(solve(mdp).optimum, abs=accuracy)
    assert two.gain[0] == pytest.approx(solve(mdp).optimum, abs=2 * accuracy)
    assert two.unfinished[0] == 0


@pytest.mark.parametrize("learner", ["ucrl2,scale=0.05", "ucrl2b,scale=0.05", "kl-ucrl,scale=0.005"])
def test_a_blind_learner_counts_the_reset_chain_and_learns(learner):
    mdp, T, seen = ids.mdp("riverswim/4,discount=0.8"), 3000, []
    made = run(f"{learner},mode=blind", mdp, T, 4, measures=[spy(seen)], record=["stream"])
    state, _ = seen[-1]
    assert (state.unfinished == 0).all()
    t = state.data.visits.sum((1, 2))
    for i in range(4):  # moves are from x_t to x_{t+1}, wherever that is
        x, a = np.r_[made.results["stream_state"][i], made.batch.walkers.state[i]], made.results["stream_action"][i]
        want = np.zeros((4, 2, 4), np.int32)
        np.add.at(want, (x[: t[i]], a[: t[i]], x[1 : t[i] + 1]), 1)
        np.testing.assert_array_equal(state.data.moves[i], want)
    assert made.regret.mean() < 0.7 * run("uniform", mdp, T, 4).regret.mean()


@pytest.mark.parametrize(("mode", "span"), [("aware", inf), ("blind", inf), ("aware", None)])
def test_scal_without_a_bound_is_ucrl2b(mode, span):
    """Nor does H bound anything that an aware learner can plan: optimistic values lie in [0, H]."""
    for mdp in map(ids.mdp, ("riverswim/5,discount=0.8", "garnet/5,2,3,discount=0.8")):
        scal, ucrl2b = (ids.builder_of(ids.LEARNERS[name]) for name in ("scal", "ucrl2b"))
        for scale in (1.0, 0.05):
            options = {"scale": scale, "mode": mode}
            one = run(scal(mdp.problem, 800, span=span, **options), mdp, 800, 3, record=["stream"])
            two = run(ucrl2b(mdp.problem, 800, **options), mdp, 800, 3, record=["stream"])
            for row in range(3):
                assert_same_bits(bits(one, row), bits(two, row))


def test_plans_that_do_not_come_to_their_accuracy_are_counted():
    """Near gamma = 1 a plan may need more sweeps than it is given: here two plans, of which the first is soon over."""
    mdp = ids.mdp("deep-sea/4,discount=0.99999")
    learner = ucrl2(mdp.problem, 20, scale=0.0)
    s = learner.plan(learner.init(np.zeros(2, np.uint64)))
    np.testing.assert_array_equal(s.unfinished, [0, 0])
    s.data.visits[1], s.data.moves[1, ..., 0] = 10**6, 10**6  # the second seed has to plan to 4e-4, a long way
    s = learner.plan(s)
    np.testing.assert_array_equal(s.unfinished, [0, 1])
    np.testing.assert_array_equal(run("ucrl2,scale=0", mdp, 60, [0]).state.unfinished, [1])
