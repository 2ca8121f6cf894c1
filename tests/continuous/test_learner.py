"""RAVI-UCB on continuous states: on the nodes the finite learner, elsewhere its literal transcription."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

import ravi
from ravi.continuous import box, grid, level, pendulum, planner_of, quadrature, ravi_ucb, ravi_ucb_plus, reference
from ravi.continuous.planner import Planner
from ravi.continuous.running import score
from ravi.core import Path
from ravi.learners.ravi_ucb import plus as finite_plus
from ravi.learners.ravi_ucb import ravi_ucb as finite
from ravi.random import uniform
from ravi.runtime import tree
from ravi.validation import InputError

LEVEL = level()
P = LEVEL.problem


def run(learner, mdp, seeds, scored=None, every=1):
    """A run to its end, and what its seeds know."""
    made = ravi.run(learner, box(mdp, scored=scored, every=every), learner.parts.steps, seeds)
    return made, [planner_of(made, learner, row) for row in range(len(made.seeds))]


def fresh(learner, key=0):
    """A seed that has made no step."""
    return Planner(learner.parts, learner.init(np.array([key], np.uint64)))


def on_nodes(m):
    """The mixture of the nodes as a finite MDP."""
    on = grid(P, m)
    rows, _ = quadrature.rows(P, on, on.nodes)
    features = rows.reshape(m, 3, 3, m).transpose(0, 1, 3, 2)  # (X, A, B, d)
    successors = np.broadcast_to(np.arange(m), (m, 3, m))
    nu0, _ = quadrature.initial(P, on)
    return ravi.MDP.from_features(
        features, LEVEL.parameter, successors, quadrature.rewards(P, on.nodes), 0.9, nu0 / nu0.sum(),
        parameter_bound=1.0, feature_bound=sqrt(3),
    )  # fmt: skip


def path_of(x, a, y, t):
    rows = [np.array([part], np.int32) for part in (x, a, y, y)]
    none, many = np.zeros((1, len(x)), bool), np.array([len(x)])
    return Path(*rows, none, many, np.array([t]), np.array([0], np.int32))


def add(planner, x, a, y):
    """ADD at nodes."""
    rows = planner.rows.reshape(planner.m, planner.A, planner.d, planner.m)
    for one in zip(x, a, y, strict=True):
        phi, target = rows[one[0], one[1]] @ planner.played.U, planner.played.U[one[2]]
        planner.own.covariance[0] += np.outer(phi, phi)
        planner.own.response[0] += phi * target


@pytest.mark.parametrize(
    ("mine", "theirs", "options"),
    [
        (ravi_ucb, finite.linear_mixture, {"scale": 0.01, "eta": 0.2}),
        (ravi_ucb_plus, finite_plus.linear_mixture, {"scale": 0.3, "inner": 3}),
    ],
    ids=["ravi-ucb", "ravi-ucb+"],
)
def test_on_the_nodes_it_is_the_learner_of_finite_mixtures(mine, theirs, options):
    key, m = 5, 16
    learner, other = mine(P, grid(P, m), 500, **options), theirs(on_nodes(m).problem, 500, **options)
    planner, state = fresh(learner, key), other.init(np.array([key], np.uint64))
    assert learner.parts.eta == pytest.approx(other.settings["eta"], rel=1e-12)
    draw, t = np.random.default_rng(1), 1
    for _ in range(30):
        planner.plan(t)
        state = other.plan(state)
        np.testing.assert_allclose(planner.played.V, state.V[0], atol=1e-9)
        np.testing.assert_allclose(planner.own.policy[0], state.policy[0], atol=1e-9)
        x, a, y = draw.integers(m, size=9), draw.integers(3, size=9), draw.integers(m, size=9)
        add(planner, x, a, y)
        state = other.add(state, path_of(x, a, y, t))
        t += 9
    assert np.ptp(planner.own.policy[0]) > 0.3  # so that the comparison says something
    assert np.ptp(planner.played.V) > 0.1


def play(mdp, key, T, plan, policy, learn):
    """The walk: `plan` before the first step of an epoch, `learn` after every step. Gives the first steps."""
    problem, starts, opening, x = mdp.problem, [], True, np.empty(1)
    problem.begin(problem.constants, np.uint64(key), 0, 1 << 20, x)
    for t in range(1, T + 1):
        if opening:
            starts.append(t)
            plan(t)
        a = int(np.searchsorted(np.cumsum(policy(x)), uniform(key, t, 1), side="right"))
        i = int(np.searchsorted(np.cumsum(mdp.parameter), uniform(key, t, 2), side="right"))
        y = np.empty(1)
        problem.draw(problem.constants, i, x, a, np.uint64(key), t, 8, y)
        learn(x, a, y)
        opening, x = uniform(key, t, 0) < 1 - problem.discount, y
        if opening:
            x = np.empty(1)
            problem.begin(problem.constants, np.uint64(key), t, 1 << 20, x)
    return starts


def transcribed(mdp, m, T, beta, eta, key):
    """Algorithm 3 with on-demand Q, as it is printed: everything from the history, nothing kept."""
    problem, on = mdp.problem, grid(mdp.problem, m)
    gamma, H, A, d = problem.discount, problem.horizon, problem.actions, problem.dimension
    history = []  # (theta_hat_i, Lambda_i^-1, V_i on the nodes)

    def features(x, V):
        return (quadrature.rows(problem, on, x)[0] @ V).reshape(len(x), A, d)

    def Q_at(x, i):
        theta, inverse, V = history[i]
        phi = features(x, V)
        CB = beta * np.sqrt(np.einsum("nai,ij,naj->na", phi, inverse, phi))
        return np.clip(quadrature.rewards(problem, x) + CB + gamma * phi @ theta, 0, H)

    def V_and_policy(x):
        x = np.atleast_2d(x)
        log_pi, V = np.full((len(x), A), -log(A)), np.zeros(len(x))
        for i in range(len(history)):
            Q = Q_at(x, i)
            V = np.log((np.exp(log_pi + eta * Q)).sum(-1)) / eta
            log_pi += eta * (Q - V[:, None])
        return V, np.exp(log_pi)

    Lam, b, new = np.eye(d), np.zeros(d), []  # of the epoch that goes on

    def plan(t):
        history.extend(new)
        inverse = np.linalg.inv(Lam)
        new[:] = [(inverse @ b, inverse, V_and_policy(on.nodes)[0])]  # V_k

    def learn(x, a, y):
        phi = features(x[None], new[0][2])[0, a]
        Lam[:] += np.outer(phi, phi)
        b[:] += phi * V_and_policy(y)[0][0]

    return play(mdp, key, T, plan, lambda x: V_and_policy(x)[1][0], learn), Lam, b


def test_a_run_is_algorithm_3_with_everything_on_demand():
    T, m, key = 80, 16, 3
    learner = ravi_ucb(P, grid(P, m), T, scale=0.02, eta=1.0)
    starts, Lam, b = transcribed(LEVEL, m, T, 0.02 * learner.parts.beta, 1.0, key)
    found, (last,) = run(learner, LEVEL, [key])
    assert found.T_k[0].tolist() == starts
    np.testing.assert_allclose(last.own.covariance[0], Lam, rtol=1e-8)
    np.testing.assert_allclose(last.own.response[0], b, rtol=1e-8)
    assert np.ptp(last.own.policy[0]) > 0.3


def test_the_walk_of_ravi_ucb_plus_adds_values_in_parts_of_their_span():
    T, key = 60, 2
    learner = ravi_ucb_plus(P, grid(P, 16), T, scale=0.1, inner=2)
    planner = fresh(learner, key)

    def learn(x, a, y):
        (V, _, (middle, sigma, low, high)), rows = planner.played, quadrature.rows(P, planner.rule.grid, x)[0][0]
        phi = rows[3 * a : 3 * a + 3] @ (V - middle) / sigma
        planner.own.covariance[0] += np.outer(phi, phi)
        planner.own.response[0] += phi * (np.clip(planner.at(y)[1][0], low, high) - middle) / sigma

    play(LEVEL, key, T, planner.plan, lambda x: planner.at(x)[0], learn)
    _, (found,) = run(learner, LEVEL, [key])
    np.testing.assert_allclose(found.own.covariance[0], planner.own.covariance[0], rtol=1e-9)
    np.testing.assert_allclose(found.own.response[0], planner.own.response[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [ravi_ucb, ravi_ucb_plus])
def test_on_demand_at_a_node_is_what_is_kept_there(make):
    _, (found,) = run(make(P, grid(P, 24), 400, scale=0.02, eta=0.3), LEVEL, [0])
    pi, V = found.at(found.rule.grid.nodes)
    np.testing.assert_allclose(pi, found.own.policy[0], atol=1e-9)
    np.testing.assert_allclose(V, found.played.V, atol=1e-9)
    assert np.ptp(pi) > 0.3


def test_the_scored_policy_is_the_one_on_demand_at_the_nodes_of_the_reference():
    ref, learner = reference(LEVEL, 48), ravi_ucb_plus(P, grid(P, 24), 200, scale=0.1, inner=4)
    planner, world = fresh(learner, 1), box(LEVEL, scored=ref)
    scoring = quadrature.rows(P, planner.rule.grid, ref.grid.nodes)[0].reshape(-1, 24)
    options = {"record": [], "points": 5, "pad": False, "keep_epochs": True, "measured": True}
    (measure,) = world.scores(learner, 200, options).measures
    scored, draw = measure.init(np.ones(1, np.uint64)), np.random.default_rng(0)
    for epoch in range(12):
        planner.plan(1 + 9 * epoch)
        score(scored, 0, planner, ref, scoring)
        np.testing.assert_allclose(scored.played[0], planner.at(ref.grid.nodes)[0], atol=1e-9)
        add(planner, draw.integers(24, size=9), draw.integers(3, size=9), draw.integers(24, size=9))
    assert np.ptp(scored.played) > 0.1


def test_a_batch_does_not_change_a_seed():
    learner, ref = ravi_ucb_plus(P, grid(P, 16), 150, inner=2), reference(LEVEL, 32)
    (both, _), (alone, _) = run(learner, LEVEL, [4, 9], scored=ref), run(learner, LEVEL, [9], scored=ref)
    np.testing.assert_array_equal(both.T_k[1], alone.T_k[0])
    np.testing.assert_array_equal(both.gap_k[1], alone.gap_k[0])
    assert both.regret[1] == alone.regret[0] != both.regret[0]


@pytest.mark.parametrize(("mdp", "m", "scored"), [(LEVEL, 32, 64), (pendulum(), 18, 20)], ids=["level", "pendulum"])
def test_it_learns(mdp, m, scored):
    """Deterministic: these seeds. The uniform policy loses a third and more of the optimum."""
    learner = ravi_ucb_plus(mdp.problem, grid(mdp.problem, m), 800, scale=0.1, inner=3)
    found, _ = run(learner, mdp, 2, scored=reference(mdp, scored), every=5)
    for gaps in found.gap_k:
        assert gaps[0] > 0.3 * found.optimum
        assert gaps[-1] < 0.05 * found.optimum
        assert gaps.min() > -1e-9


def test_the_error_of_the_quadrature_falls_with_nodes():
    finer, x = grid(P, 256), np.linspace(0.01, 0.99, 25)
    errors = [
        run(ravi_ucb_plus(P, grid(P, m), 200, scale=0.1, inner=2), LEVEL, [0])[1][0].quadrature_error(finer, x)
        for m in (16, 64)
    ]
    assert 1e-8 < errors[1] < errors[0] / 4
    assert errors[0] < 0.02


@pytest.mark.parametrize("make", [ravi_ucb, ravi_ucb_plus])
def test_a_backup_has_the_bonus_of_a_misspecified_mixture_literally(make):
    """CB = sigma beta ||R^T phi_U|| + extra with beta = eps sqrt(T) and extra = eps, in parts of half the range: small
    enough here for nothing to be cut."""
    T, eps = 100, 1e-4
    planner = fresh(make(P, grid(P, 16), T, scale=0, misspecification=eps))
    nodes, draw = 16, np.random.default_rng(0)
    add(planner, draw.integers(nodes, size=30), draw.integers(P.actions, size=30), draw.integers(nodes, size=30))
    planner.plan(1)  # what was added is in R now
    V = np.linspace(1, 3, nodes)
    Q, half = planner.record(V), 1.0 if make is ravi_ucb_plus else P.horizon / 2
    last = planner.own.filled[0] - 1
    theta, R, U = planner.records.theta[last], planner.records.root[last], planner.standard(V).U
    c, sigma = (2.0, 1.0) if make is ravi_ucb_plus else (0.0, 1.0)
    phi = (planner.rows @ U).reshape(nodes, P.actions, P.dimension)
    width = np.linalg.norm(phi @ R, axis=-1)
    share = P.discount if make is ravi_ucb_plus else 1.0
    PV = c + sigma * phi @ theta
    if make is ravi_ucb_plus:
        PV = np.clip(PV, 1, 3)
    np.testing.assert_allclose(
        Q, planner.r + share * (eps * half * sqrt(T) * width + eps * half) + P.discount * PV, rtol=1e-12
    )
    assert Q.max() < P.horizon


def bits(made):
    return {name: array.tobytes() for name, array in (made.results | {"policy": made.last_policy}).items()}


@pytest.mark.parametrize("make", [ravi_ucb, ravi_ucb_plus])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(make, tmp_path):
    learner, world = make(P, grid(P, 16), 120, scale=0.1, eta=0.3), box(LEVEL, scored=24, every=2)
    whole = ravi.run(learner, world, 120, [4, 9], points=10)
    assert np.isfinite(whole.regret).all()
    np.testing.assert_allclose(whole.regret_curve[:, -1], whole.regret, rtol=1e-12)
    for pause in (0, 1, 40, 119):
        half = ravi.run(learner, world, 120, [4, 9], points=10, pause=pause)
        half.save(tmp_path / "half.run")
        for stopped in (half, ravi.Run.load(tmp_path / "half.run")):
            assert bits(ravi.resume(stopped, learner, world)) == bits(whole)
    steps = ravi.run(learner, world, 120, [4, 9], points=10, pause=5)
    while not steps.complete:
        steps = ravi.resume(steps, learner, world, pause=int(steps.plays.min()) + 20)
    assert bits(steps) == bits(whole)


def test_an_id_names_a_world_and_its_learner():
    made = ravi.run("ravi-ucb+,inner=2,scale=0.1", "continuous/level,16,24", 60, [3])
    learner = ravi_ucb_plus(P, grid(P, 16), 60, inner=2, scale=0.1)
    assert bits(made) == bits(ravi.run(learner, box(LEVEL, scored=24), 60, [3]))
    assert (made.world, made.mdp, made.learner) == ("continuous", "level", "ravi-ucb+/continuous")
    assert "on the nodes" in str(made)


@pytest.fixture(scope="module")
def stopped():
    learner, world = ravi_ucb(P, grid(P, 16), 80, scale=0.1, eta=0.3), box(LEVEL, scored=24)
    half = ravi.run(learner, world, 80, [4, 9], pause=30)
    return learner, world, half, tree.stored(half.batch)


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("walkers.state", lambda a: a + 2, r"walkers\.state\[0, 0\] is outside of the box"),
        ("walkers.key", lambda a: a + np.uint64(1), "are not the seeds of the run"),
        ("walkers.time", lambda a: a + 1, r"time\[0\] is \d+, not the number of plays made"),
        ("state.covariance", lambda a: a * np.nan, "not a number"),
        ("state.policy", lambda a: 2 * a, "not a row of probabilities"),
        ("state.active", lambda a: a + 10**6, "not a number of the records made"),
        ("state.taken", lambda a: a - 10**6, "not a number of the records made"),
        ("state.filled", lambda a: a + 10**6, "their rooms do not agree"),
        ("state.records.U", lambda a: a * np.nan, r"records\.U\[0\] is nan, not a number"),
        ("state.records.U.lengths", lambda a: a[::-1] - [1, -1], "their rooms do not agree"),
        ("state.records.theta", lambda a: a[:-1], "its lengths are"),
        ("state.key", lambda a: a + np.uint64(1), "not what a run of its seed begins with"),
        ("records.0.starts", lambda a: a + 10**6, "not the first play of an epoch"),
        ("records.0.gaps", lambda a: a[1:], "not the first play of an epoch"),
        ("records.0.played", lambda a: a * 0, "not a row of probabilities"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named(stopped, name, change, told):
    learner, world, half, held = stopped
    array = held[name]
    other = replace(half, batch=held | {name: np.asarray(change(array)).astype(array.dtype)})
    with pytest.raises(InputError, match=told):
        ravi.resume(other, learner, world)
    if name.startswith("state."):
        with pytest.raises(InputError, match=told):
            planner_of(other, learner)


def test_mistakes_are_named(stopped):
    learner, world, half, _ = stopped
    for call, told in (
        (lambda: ravi.run(learner, level(), 80), "ravi-ucb/continuous was made for another problem than level"),
        (lambda: ravi.run(learner, world, 90), "was made for steps=80, not 90"),
        (lambda: ravi_ucb(P, grid(P, 6), 10), "take more nodes"),
        (lambda: ravi.run("ravi-ucb", LEVEL, 10), "without nodes it is made by ravi.continuous"),
        (lambda: ravi.run("ucrl2", "continuous/level,16,24", 10), "there is no learner on continuous states 'ucrl2'"),
        (lambda: ravi.run("ravi-ucb,beta=1", "continuous/level,16,24", 10), "there is no option 'beta'"),
        (lambda: ravi.run(finite.tabular(ravi.mdp("riverswim/4"), 10), world, 10), "is a learner of tables"),
        (lambda: ravi.run(learner, world, 80, record=["stream"]), "record names 'stream': on continuous states"),
        (lambda: ravi.run(learner, world, 80, pad=True), "pad is true: on continuous states"),
        (lambda: ravi.run(learner, world, 80, device="gpu"), "does not run there"),
        (lambda: box(LEVEL, scored=reference(pendulum(), 20)), "scored is a reference of another problem"),
        (lambda: ravi.mdp("continuous/level"), "continuous/level is no MDP, but a problem of another kind"),
        (lambda: ravi.resume(half, learner, box(LEVEL, scored=32)), "made with an MDP of digest"),
        (lambda: planner_of(ravi.run("uniform", "riverswim/4", 5), learner), "is no run on continuous states"),
    ):
        with pytest.raises(InputError, match=told):
            call()
