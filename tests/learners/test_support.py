"""Learners that are told the successors (support=on): pseudo-code, limits, constants, optimism."""

from math import e, exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

import ravi
from ravi import ids
from ravi.core import MDP, Problem
from ravi.learners.pac.core import backups
from ravi.learners.ucrl import ucrl
from ravi.mdps import garnet, one_state_of, riverswim
from ravi.planning.solver import solve
from ravi.runtime.api import run
from ravi.statistics import THEORY
from ravi.statistics.rates import proved
from ravi.validation import InputError, StreamError
from tests.helpers import dense, drawn_rows, spy
from tests.learners.pac.test_core import TIGHT, lists, step_by_step, without_ties
from tests.literal import extended as literal
from tests.literal import model_based as by_hand

SETS = ["ucrl2", "ucrl2b", "kl-ucrl", "scal"]
FORMS = [f"ravi-kl,{form}" for form in ("plan=greedy", "slack=0.3", "candidate=posterior", "plan=mirror,inner=2")]
TOLD = [*SETS, "scal+", "mbie", "mbie-eb", "ucbvi-gamma", "psrl"]


def rows(mdp):
    """The support of every pair."""
    pairs = np.ndindex(mdp.states, mdp.actions)
    supports = [mdp.successors[pair][mdp.transitions[pair] > 0].tolist() for pair in pairs]
    return [supports[x * mdp.actions : (x + 1) * mdp.actions] for x in range(mdp.states)]


def literal_set(name, mdp, T, scale):
    X, A, B = mdp.successors.shape
    if name == "ucrl2":
        return literal.ucrl2_set(B, A, T, 1 / T, scale)  # its X is the number of outcomes alone
    if name == "kl-ucrl":
        return literal.kl_ucrl_set(X, A, T, 1 / T, scale, B)
    return literal.ucrl2b_set(sqrt(X * B), A, T, 1 / T, scale)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_a_run_of_sets_is_the_literal_one(name, scale):
    T, compared = 250, 0
    scale = scale**2 if name == "kl-ucrl" else scale
    for seed, mdp in enumerate([without_ties(garnet(5, 2, 2, 1, 0.8)), ids.mdp("riverswim/4,discount=0.8")]):
        c = 0.3 if name == "scal" else np.inf
        learner = ids.learner(f"{name},scale={scale},support=on{',span=0.3' if name == 'scal' else ''}", mdp, T)
        seen = []
        made = run(learner, mdp, T, [seed], measures=[spy(seen)])
        told = list(literal.learn(*lists(mdp), T, seed, literal_set(name, mdp, T, scale), c, rows(mdp)))
        assert [phase[0] for phase in told] == list(made.T_k[0])
        for (state, path), (_, u, _, pi, gap, triples) in zip(seen, told, strict=True):
            np.testing.assert_allclose(state.u[0], u, rtol=0, atol=1e-7)
            np.testing.assert_array_equal(path.action[0, : path.length[0]], [a for _, a, _ in triples])
            if gap > 1e-6:
                np.testing.assert_allclose(state.policy[0], pi, rtol=0, atol=1e-7)
                compared += 1
    assert compared > 20


STEPS = {
    "mbie,scale=0.3": lambda mdp, T, key: by_hand.mbie(*lists(mdp), T, T, 1 / T, 0.3, key, rows(mdp)),
    "mbie-eb,scale=0.1": lambda mdp, T, key: by_hand.mbie_eb(*lists(mdp), T, T, 1 / T, 0.1, key, rows(mdp)),
    "ucbvi-gamma,scale=0.002": lambda mdp, T, key: by_hand.ucbvi_gamma(
        *lists(mdp), T, 1 / T, 0.002, True, None, key, rows(mdp)
    ),
    "ucbvi-gamma": lambda mdp, T, key: by_hand.ucbvi_gamma(*lists(mdp), T, 1 / T, 1, True, None, key, rows(mdp)),
}


@pytest.mark.parametrize("mdp", [garnet(5, 2, 3, 1, 0.8), riverswim(4, 0.8)], ids=["garnet", "riverswim"])
@pytest.mark.parametrize("learner", STEPS)
def test_a_run_is_its_pseudo_code_at_every_step(learner, mdp):
    mdp, T = without_ties(mdp), 120
    tight = "" if learner.startswith("ucbvi") else f",{TIGHT}"
    x, a, states = step_by_step(f"{learner},support=on{tight}", mdp, T, 4)
    for (t, x_t, a_t, Q), state in zip(STEPS[learner](mdp, T, 4), states, strict=True):
        assert (x[t - 1], a[t - 1]) == (x_t, a_t), t
        np.testing.assert_allclose(state.Q[0], Q, rtol=0, atol=1e-9)
    assert np.min(Q) < mdp.horizon - 0.1


@pytest.mark.parametrize("option", ["", ",prior=0.3", ",schedule=doubling"])
def test_every_policy_of_psrl_is_optimal_for_its_draw_on_the_stored_successors(option):
    mdp, T, seen = garnet(8, 3, 3, 0, 0.9), 300, []
    learner = ids.learner(f"psrl,support=on{option}", mdp, T)
    assert learner.settings["prior"] == (0.3 if "prior" in option else 1.0)
    run(learner, mdp, T, [11], measures=[spy(seen)])
    X, r, gamma = mdp.states, mdp.rewards, mdp.discount
    for state, path in seen:
        prior, t = learner.settings["prior"], int(path.time[0])
        P = drawn_rows(0.0, prior, state.data.moves[0], mdp.successors, X, np.uint64(11), t)
        pi = state.policy[0].argmax(-1)
        value = np.linalg.solve(np.eye(X) - gamma * P[np.arange(X), pi], r[np.arange(X), pi])
        assert (r + gamma * P @ value <= value[:, None] + 1e-6).all()


# Limits.

DENSE = without_ties(garnet(6, 2, 6, 3, 0.8))


@pytest.mark.parametrize("learner", ["ucrl2,scale=0.1", "ucrl2b,scale=0.1", "kl-ucrl,scale=0.01", "scal,scale=0.1"])
def test_where_all_states_are_stored_there_is_nothing_to_tell(learner):
    learner = f"{learner},span=0.5" if learner.startswith("scal") else learner
    one, two = (run(f"{learner}{told}", DENSE, 600, 3, record=["stream"]) for told in ("", ",support=on"))
    np.testing.assert_array_equal(one.results["stream_action"], two.results["stream_action"])
    np.testing.assert_allclose(one.batch.state.u, two.batch.state.u, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.regret, two.regret, rtol=1e-10)


def test_with_all_states_stored_the_ball_of_mbie_is_that_of_all_states():
    rng, (X, A, B) = np.random.default_rng(0), DENSE.successors.shape
    for _ in range(20):
        moves = rng.integers(0, 4, (X * A, B)).astype(np.int32)
        moves[:, 0] += moves.sum(-1) == 0
        V, Q = rng.uniform(0, 3, X), np.empty((2, X * A))
        given = moves.sum(-1).astype(np.int32), moves, V, np.arange(X * A, dtype=np.int32)
        flat = DENSE.rewards.reshape(-1), DENSE.successors.reshape(-1, B), 0.8, 5.0, 0.0, rng.uniform(0, 4), 1
        for told in (0, 1):
            backups(*flat, *given, Q[told], bool(told))
        np.testing.assert_allclose(Q[0], Q[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("learner", TOLD)
def test_a_kernel_that_is_deterministic_is_known(learner):
    """One stored successor each: whatever the radii, a plan is optimal as soon as it is accurate enough."""
    mdp = ids.mdp("deep-sea/5")
    assert mdp.branching == 1
    made = run(f"{learner},support=on", mdp, 300, 2)
    assert (made.gap <= 1e-9).all()
    assert (made.regret < 1).all()
    assert (run(learner, mdp, 300, 2).regret > 1.5).all()


# Constants.


def test_the_radius_of_ucrl2_is_weissmans_for_rows_of_B_outcomes():
    """2 ln(2^B 20 X A t^7 / delta) <= 14 B ln(2 A t / delta), where X <= 204 (A / delta)^13; equality is not far."""
    visits = np.ones((1, 50, 2), np.int32)
    for B in (2, 3, 10, 50):
        for A, t, delta in [(1, 1, 0.7), (2, 1, 0.99), (2, 10**6, 1e-6)]:
            X = min(204 * (A / delta) ** 13, 1e300)
            assert 2 * log(2**B * 20 * X * A * t**7 / delta) <= 14 * B * log(2 * A * t / delta) * (1 + 1e-12)
        d = ucrl.l1_radius(visits, np.array([7]), 0.1, B)
        np.testing.assert_allclose(d, sqrt(14 * B * log(2 * 2 * 7 / 0.1)), rtol=1e-14)
    assert 2 * log(2**2 * 20 * 205 * 0.7**-13 / 0.7) > 28 * log(2 / 0.7)


def test_the_boxes_of_ucrl2b_fail_as_rarely_on_fewer_entries():
    X, A, B, delta = 50, 3, 4, 0.1
    visits = np.full((1, X, A), 9, np.int32)
    factor, rest = ucrl.box_radius(visits, delta, B)
    d = 3 * np.exp(-rest * 9 / 3)  # 3 ln(3 / d) / n is the constant
    np.testing.assert_allclose(factor, np.sqrt(2 * np.log(3 / d) / 9), rtol=1e-14)
    all_states = 3 * np.exp(-ucrl.box_radius(visits, delta)[1] * 9 / 3)
    np.testing.assert_allclose(X * B * A * d, X * X * A * all_states, rtol=1e-12)


@pytest.mark.parametrize("T", [3, 100, 10**6])
def test_the_constant_of_kl_ucrl_makes_the_deviation_of_B_entries_rare(T):
    """2 e (C ln T + m) exp(-C / m) <= delta / (X A): the paper's inequality for a row of m outcomes."""
    for X, A, delta in [(6, 2, 1 / T), (20, 3, 0.2), (1000, 4, 1e-6)]:
        for m in (2, 4, X):
            C = ucrl.constant(X, A, T, delta, m)
            failure = 2 * e * (C * log(T) + m) * exp(-C / m)
            assert failure <= delta / (X * A)
            assert 2 * e * (0.9 * C * log(T) + m) * exp(-0.9 * C / m) > delta / (X * A)
        assert ucrl.constant(X, A, T, delta, X) == ucrl.constant(X, A, T, delta)


def test_the_radius_of_mbie_counts_B_outcomes():
    mdp, T = garnet(20, 3, 4, 0, 0.9), 1000
    radius = ids.learner("mbie,support=on", mdp, T).settings["radius"]
    assert radius == pytest.approx(sqrt(2 * (log(2**4 - 2) + log(2 * 60 * T * T))), rel=1e-12)
    assert ids.learner("mbie,support=on", one_state_of([0.1, 0.2], 0.9), T).settings["radius"] == 0


# Optimism.


def within(name, mdp, D, delta, T):
    """Of each seed, whether the true kernel is plausible at every pair."""
    P, n, B = mdp.transitions, D.visits, mdp.branching
    p, played = D.moves / np.maximum(n, 1)[..., None], n > 0
    if name == "ucrl2":
        inside = np.abs(p - P).sum(-1) <= ucrl.l1_radius(n, 1 + n.sum((1, 2)), delta, B)
    elif name == "kl-ucrl":
        C = ucrl.constant(mdp.states, mdp.actions, T, delta, B)
        inside = (p * np.log(np.where(p > 0, p / np.where(P > 0, P, 1), 1))).sum(-1) <= C / np.maximum(n, 1)
    else:
        factor, rest = (f[..., None] for f in ucrl.box_radius(n, delta, B))
        inside = (np.abs(p - P) <= factor * np.sqrt(p * (1 - p)) + rest).all(-1)
    return (inside | ~played).all((1, 2))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("mdp", ["riverswim/4,discount=0.9", "garnet/5,2,3,discount=0.8"])
def test_the_true_kernel_is_plausible_and_then_the_plan_is_optimistic(name, mdp):
    """At published constants and delta = 0.2: runs in which the kernel is ever implausible are at most the stated
    fraction delta (false alarm below 1e-6, keys fixed), and in all others every planned gain is >= rho* - accuracy."""
    world, T, seeds, delta = ids.mdp(mdp), 1500, 50, 0.2
    best, seen = solve(world).optimum, []
    run(
        ids.learner(f"{name},delta={delta},support=on", world, T), world, T, seeds, measures=[spy(seen)], measured=False
    )
    good = np.ones(seeds, bool)
    for state, path in seen:
        good &= within(name, world, state.data, delta, T) | (path.length == 0)
    assert (~good).sum() <= stats.binom.isf(1e-6, seeds, delta)
    assert good.sum() > seeds / 2
    for state, path in seen:
        t = 1 + state.data.visits.sum((1, 2))
        assert (state.gain >= best - 0.5 / np.sqrt(t) - 1e-9)[good & (path.length > 0)].all()


@pytest.mark.parametrize("learner", ["mbie", "mbie-eb", "ucbvi-gamma"])
@pytest.mark.parametrize("mdp", [garnet(4, 2, 2, 3, 0.5), riverswim(4, 0.6)], ids=["garnet", "riverswim"])
def test_values_are_optimistic_and_promise_no_more_than_the_successors(learner, mdp):
    """V_t >= V* at all t with probability 1 - 1/T in each of 4 runs: a false alarm has chance below 3e-4."""
    T, best = 15_000, solve(mdp).V

    def seen_by(name):
        seen = []
        run(name, mdp, T, 4, measures=[spy(seen)])
        return [state for state, _ in seen]

    states = seen_by(f"{learner},support=on")
    assert min((state.V - best).min() for state in states) >= -1e-4
    assert states[-1].V.max() <= solve(certain(mdp)).V.max() + 1e-4  # all that a kernel on the successors can promise
    assert min((state.V - best).min() for state in seen_by(f"{learner},support=on,scale=0.0003")) < -0.01


def certain(mdp):
    """As many actions as successors, each of which leads to its own for certain."""
    X, A, B = mdp.successors.shape
    first = mdp.transitions.argmax(-1, keepdims=True)
    row = np.where(mdp.transitions > 0, mdp.successors, np.take_along_axis(mdp.successors, first, axis=-1))
    P = np.eye(X)[row.reshape(X, A * B)]
    return MDP.from_dense(P, np.repeat(mdp.rewards, B, axis=1), mdp.discount, mdp.initial)


def test_a_pair_that_was_never_played_is_worth_its_best_stored_successor():
    mdp, T = garnet(12, 3, 2, 0, 0.9), 100
    best = solve(certain(mdp)).V
    for name in SETS:
        s = ids.learner(f"{name},support=on,planning=discounted", mdp, T)
        s = s.plan(s.init(np.zeros(1, np.uint64)))
        np.testing.assert_allclose(s.u[0] - s.u[0].min(), best - best.min(), rtol=0, atol=1.0)  # planned to 1 / sqrt(t)
        assert s.gain[0] == pytest.approx((1 - mdp.discount) * mdp.initial @ best, abs=(1 - mdp.discount))
    for name in ("mbie", "mbie-eb"):
        s = ids.learner(f"{name},support=on", mdp, T).init(np.zeros(2, np.uint64))
        np.testing.assert_allclose(s.V, np.tile(best, (2, 1)), rtol=0, atol=1e-4)


def padded(mdp):
    """The same MDP, with two states of probability 0 in every row: one before those of its support, one after, or where
    there are such."""
    X, A, B = mdp.successors.shape
    wide = np.empty((X, A, B + 2), np.int32)
    for x, a in np.ndindex(X, A):
        row = mdp.successors[x, a].tolist()
        others = [y for y in range(X) if y not in row]
        wide[x, a] = sorted([*row, others[0], others[-1]])
    P = np.take_along_axis(dense(mdp), wide.astype(np.int64), axis=2)
    return MDP(successors=wide, transitions=P, rewards=mdp.rewards, initial=mdp.initial, discount=mdp.discount)


SHORT = {"ucbvi-gamma": "scale=0.005", "mbie": "scale=0.1", "mbie-eb": "scale=0.03", "scal": "scale=0.03,span=0.3"}
EXACT = [*(f"{name},{SHORT.get(name, '')}{',' * (name in SHORT)}support=on" for name in TOLD), *FORMS]


@pytest.mark.parametrize("learner", EXACT)
def test_padding_of_the_storage_changes_nothing(learner):
    mdp = garnet(12, 3, 3, 0, 0.9)
    one, two = (run(learner, world, 500, 3, record=["stream"]) for world in (mdp, padded(mdp)))
    for name in ("stream_state", "stream_action"):
        np.testing.assert_array_equal(one.results[name], two.results[name])
    np.testing.assert_allclose(one.regret, two.regret, rtol=1e-9)


def test_the_support_of_a_problem_is_checked_and_that_of_an_mdp_is_its_own():
    mdp = riverswim(4, 0.8)
    np.testing.assert_array_equal(mdp.support, mdp.transitions > 0)
    assert not mdp.support.all()
    np.testing.assert_array_equal(mdp.problem.support, mdp.support)
    given = {name: getattr(mdp, name) for name in ("rewards", "successors", "initial", "discount")}
    assert Problem(**given).support.all()
    with pytest.raises(InputError, match=r"support has shape \(4, 2\)"):
        Problem(**given, support=np.ones((4, 2), bool))
    with pytest.raises(InputError, match=r"support\[0, 0\] has no successor"):
        Problem(**given, support=np.zeros(mdp.successors.shape, bool))
    with pytest.raises(InputError, match="support holds float64"):
        Problem(**given, support=mdp.transitions)


# The option.


@pytest.mark.parametrize("learner", TOLD)
def test_the_option_is_recorded_where_it_is_on_and_mistakes_are_named(learner):
    mdp = riverswim(4, 0.8)
    assert ids.learner(f"{learner},support=on", mdp, 100).settings["support"] == "on"
    assert "support" not in ids.learner(f"{learner},support=off", mdp, 100).settings  # as in runs from before
    with pytest.raises(InputError, match="support is 'maybe'"):
        ids.learner(f"{learner},support=maybe", mdp, 100)
    assert ids.canonical(f"{learner},support=off") == learner


@pytest.mark.parametrize("learner", [*SETS, "scal+"])
def test_a_blind_learner_cannot_be_told(learner):
    with pytest.raises(InputError, match="support=on needs mode=aware"):
        ids.learner(f"{learner},mode=blind,support=on", riverswim(4, 0.8), 100)


@pytest.mark.parametrize("learner", ["psrl", "mbie", "ucrl2"])
def test_on_a_stream_it_needs_a_problem_and_holds_the_stream_to_it(learner):
    with pytest.raises(InputError, match=r"support=on.*give a problem"):
        ravi.agent(f"{learner},support=on", states=4, actions=2, discount=0.9, steps=50)
    problem = riverswim(4, 0.8).problem
    live = ravi.agent(f"{learner},support=on", problem, 50)
    a = live.act(0)
    with pytest.raises(StreamError, match="led to 3, which riverswim/4 rules out"):
        live.observe(0, a, 3, problem.rewards[0, a])
    live.observe(0, a, 0, problem.rewards[0, a])
    with pytest.raises(InputError, match="those of new states"):
        live.grow(6, 2)
    assert ravi.agent(learner, problem, 50).table.closed is False


def test_on_a_stream_a_stored_successor_of_probability_0_is_ruled_out_too(tmp_path):
    problem = riverswim(4, 0.8).problem
    assert problem.successors[0, 0].tolist() == [0, 1, 2]  # of which action 0 leads to 0 only
    for learner in ("psrl,support=on", "psrl"):
        ravi.agent(learner, problem, 50, seed=1).save(tmp_path / "agent")
        live = ravi.Agent.load(tmp_path / "agent")
        while live.act(0) != 0:
            live.observe(0, 1, 0, problem.rewards[0, 1])
        if learner == "psrl":
            live.observe(0, 0, 2, problem.rewards[0, 0])
        else:
            with pytest.raises(StreamError, match="led to 2, which riverswim/4 rules out"):
                live.observe(0, 0, 2, problem.rewards[0, 0])


def test_the_support_of_an_mdp_is_no_part_of_its_file(tmp_path):
    mdp = riverswim(4, 0.8)
    mdp.save(tmp_path / "a.mdp")
    assert "support" not in np.load(tmp_path / "a.mdp").files
    np.testing.assert_array_equal(MDP.load(tmp_path / "a.mdp").support, mdp.support)


def test_what_is_proved_has_B_for_X():
    for name in ("ucrl2", "kl-ucrl", "psrl"):
        assert THEORY[name]["X"].exponent == proved(name)["X"].exponent == 1
        assert proved(f"{name},scale=2,support=on")["X"].exponent == 0.5
        assert proved(f"{name},support=on")["T"] == proved(name)["T"]._replace(
            source=proved(f"{name},support=on")["T"].source
        )
    assert proved("ucrl2b,support=on") == THEORY["ucrl2b"]
    assert proved("mine:own,support=on") == {}
