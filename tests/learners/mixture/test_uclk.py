"""UCLK and its kin do what their papers say; they cover, are optimistic, and settle where they must."""

import numpy as np
import pytest
from scipy.optimize import linprog

from ravi import ids
from ravi.core import MDP
from ravi.estimators.ridge import embedding_of
from ravi.learners.linear.fixed_point_lsvi import fixed_point_lsvi
from ravi.learners.mixture.ellipsoid import on_flat, on_simplex
from ravi.learners.mixture.ellipsoid import rounds as rounds_of
from ravi.learners.mixture.known_pairs import threshold
from ravi.learners.mixture.uclk import uclk, uclk_c, uclk_plus
from ravi.mdps.mixtures import ensemble
from ravi.mdps.small import two_cycle
from ravi.optimism.ellipsoids import encloses, relaxed
from ravi.optimism.simplex import ball, maximum
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step
from ravi.planning.solver import solve
from ravi.runtime import tree
from ravi.runtime.api import run
from ravi.validation import InputError
from tests.helpers import dense
from tests.literal import uclk as literal

SMALL = ids.mdp("ensemble/3,5,2,2,discount=0.6")


def phases_of(learner, mdp, T, seeds=1):
    """The states as they are planned (walks write into them), the run, and (x, a, y) of every seed."""
    seen = []

    def plan(s):
        s = learner.plan(s)
        seen.append(tree.copy(s))
        return s

    made = run(learner._replace(plan=plan), mdp, T, seeds, record=["stream"])
    streams = [
        list(
            zip(*(made.results[f"stream_{name}"][i].tolist() for name in ("state", "action", "successor")), strict=True)
        )
        for i in range(len(made.seeds))
    ]
    return seen, made, streams


# The algorithms, line by line


FLAT = {"null-space": literal.best_of_plane, "relaxed": literal.best_of_all}
ROWS = [
    *((uclk, scale, {}) for scale in (1.0, 0.05, 0.01)),
    *((uclk_plus, scale, {}) for scale in (1.0, 0.01, 0.001)),
    *((uclk_c, scale, {"span": span}) for scale, span in ((1.0, None), (0.001, None), (0.001, 0.4))),
    *((uclk, scale, {"inner": inner}) for inner in FLAT for scale in (0.0, 0.003, 0.03)),
    *((uclk_c, scale, {"inner": inner}) for inner in FLAT for scale in (0.0001, 0.001)),
]


@pytest.mark.parametrize(("make", "scale", "options"), ROWS)
def test_a_run_is_the_paper(make, scale, options):
    """On sets of kernels to the fixed point (gamma^60 H < 1e-12); where rounds need not converge, by as many as the
    paper makes from H, without a cut."""
    inner, span = options.get("inner"), options.get("span")
    T, H = (60 if inner else 150), SMALL.horizon
    learner = make(SMALL.problem, T, scale=scale, **options)
    seen, made, streams = phases_of(learner, SMALL, T)
    given = SMALL, streams[0], T, scale, 1 / T, 1.0, rounds_of(H, T) if inner else 60
    best = {"best": FLAT[inner]} if inner else {}
    if make is uclk:
        phases = literal.uclk(*given, **best)
    else:
        more = {} if make is uclk_plus else {"centred": True} | ({} if inner else {"span": span or H})
        phases, sigmas, Sigma = literal.uclk_plus(*given, span or H, 1.0, SMALL.feature_bound, **more, **best)
        np.testing.assert_allclose(made.state.first.covariance[0], Sigma, rtol=1e-5)
        assert make is not uclk_plus or scale != 0.01 or len(set(sigmas)) == T  # no two weights are the same
    assert [t for t, *_ in phases] == made.T_k[0].tolist()
    assert len(phases) > 3 or scale == 1.0
    for (_, _, Q, V), state in zip(phases, seen, strict=True):
        np.testing.assert_allclose(state.Q[0], Q, atol=1e-7 if inner else 2e-6)
        np.testing.assert_allclose(state.V[0], V, atol=1e-7 if inner else 2e-6)
    if span is not None:
        assert any(np.ptp(Q.max(1)) > span + 1e-3 for _, _, Q, _ in phases)  # the cut is made
        assert all(np.ptp(state.V[0]) <= span + 1e-9 for state in seen)


# Plans


def common(mdp):
    from ravi.estimators.ridge import nonzeros

    return (mdp.rewards, mdp.successors, mdp.features, *nonzeros(mdp.successors, mdp.features), mdp.discount)


@pytest.mark.parametrize("span", [np.inf, 1.5])
def test_a_plan_on_the_simplex_is_the_fixed_point_from_above(span):
    mdp = ids.mdp("ensemble/6,15,3,3,discount=0.9")
    rng = np.random.default_rng(3)
    n, d, tol = 6, 6, 1e-6
    F = rng.uniform(0, 10, (n, 30, d))
    Lam = np.eye(d) + np.einsum("nij,nik->njk", F, F)
    theta = rng.dirichlet(np.ones(d), n) + 0.02 * rng.normal(size=(n, d))
    beta = np.array([0.0, 0.1, 1.0, 3.0, 10.0, 1000.0])
    B = ball(Lam, theta, beta)
    everyone = np.ones(n, np.bool_)
    for start in (0.0, mdp.horizon):
        found = on_simplex(common(mdp), B, np.full((n, mdp.states), start), everyone, span, tol)
        assert (found.period == 1).all()
        V = found.V
        for _ in range(300):  # plain rounds from there, each pair on its own: gamma^300 H < 1e-12
            phi = embedding_of(mdp.successors, mdp.features)(V)
            Q = np.stack([[maximum(Ball1(B, i), phi[i, x])[0] for x in range(mdp.states)] for i in range(n)])
            Q = mdp.rewards + mdp.discount * Q
            last, V = V, np.minimum(Q.max(-1), Q.max(-1).min(-1, keepdims=True) + span)
            if np.abs(V - last).max() < 1e-9:
                break
        assert (found.V >= V - 1e-7).all()
        assert (V + tol + 1e-7 >= found.V).all()


def Ball1(B, i):
    """The ellipsoid of seed i, for all actions."""
    return type(B)(*(np.repeat(leaf[i : i + 1], 3, 0) for leaf in B))


def test_relaxed_plans_cycle_where_plans_over_kernels_and_regularised_ones_settle():
    """theta_hat = (2, -1) on the two-cycle, from V = (0, 0, 10)."""
    mdp = two_cycle()
    H, gamma, r = mdp.horizon, mdp.discount, mdp.rewards
    Lam, theta, beta = np.eye(2)[None], np.array([[2.0, -1.0]]), np.array([0.001])
    V0, one = np.array([[0.0, 0.0, 10.0]]), np.ones(1, np.bool_)
    for U in (300, 301):
        found = on_flat(common(mdp), relaxed(Lam, theta, beta), V0, one, np.inf, U, 1e-6, False)
        plain = V0[0]
        for _ in range(U):  # round by round
            phi = embedding_of(mdp.successors, mdp.features)(plain[None])[0]
            top = np.clip(phi @ theta[0] + beta * np.linalg.norm(phi, axis=-1), plain.min(), plain.max())
            plain = (r + gamma * top).max(-1)
        assert found.period == [2]  # not 1: reported as not converged
        np.testing.assert_allclose(found.V[0], plain, atol=1e-8)
        greedy = found.Q[0].argmax(-1).tolist()
        assert greedy == ([1, 1, 0] if U == 300 else [1, 0, 0])
    # over kernels
    found = on_simplex(common(mdp), ball(Lam, theta, beta), V0, one, np.inf, 1e-8)
    assert found.period == [1]
    assert found.empty == [True]
    alone = ensemble([mdp], 0)  # theta_hat is nearest to the first simulator
    first = MDP(
        rewards=r, successors=mdp.successors, transitions=mdp.features[..., 0], initial=mdp.initial, discount=gamma
    )
    assert alone.dimension == 1
    np.testing.assert_allclose(found.V[0], solve(first).V, atol=1e-7)
    # regularised
    log_policy, policy, Q = np.log(np.full((1, 3, 2), 0.5)), np.full((1, 3, 2), 0.5), np.repeat(V0[..., None], 2, -1)
    gaps = []
    P = dense(mdp)
    for _ in range(600):
        V, log_policy, policy = mirror_step(log_policy, policy, Q, 0.5)
        Q = backup(r, np.zeros((1, 3, 2)), gamma, embedding_of(mdp.successors, mdp.features)(V) @ theta[0], H)
        value = np.linalg.solve(np.eye(3) - gamma * np.einsum("xa,xay->xy", policy[0], P), (policy[0] * r).sum(-1))
        gaps.append(31 / 33 - (1 - gamma) * mdp.initial @ value)
    assert max(gaps[-100:]) < 1e-6


# Confidence


@pytest.mark.parametrize(("make", "name"), [(uclk, "data"), (uclk_plus, "first"), (uclk_c, "first")])
def test_the_ellipsoid_covers_theta(make, name):
    """delta = 0.1, 200 seeds: more than 45 failures would come by chance with probability below 1e-6."""
    T, mdp = 200, ids.mdp("ensemble/3,8,2,2,discount=0.7")
    failures = {}
    for scale in (1.0, 0.002):
        learner, missed = make(mdp.problem, T, delta=0.1, scale=scale), np.zeros((10, 20), np.bool_)
        for block, wrong in enumerate(missed):
            for state in phases_of(learner, mdp, T, range(20 * block, 20 * block + 20))[0]:
                D = getattr(state, name)
                off = np.einsum("ijk,ik->ij", D.inverse, D.response) - mdp.parameter
                square = np.einsum("ij,ijk,ik->i", off, D.covariance, off)
                wrong |= (np.sqrt(square) > scale * beta_of(make, mdp, 1 + state.plays)) & (state.plays < T)
        failures[scale] = missed.sum()
    assert failures[1.0] <= 45
    assert failures[0.002] > 45  # so the test can fail


def beta_of(make, mdp, t):
    d, delta = mdp.dimension, 0.1
    if make is uclk:
        least = (1 - mdp.discount) ** 2
        return mdp.horizon * np.sqrt(d * np.log((least + t * d) / (delta * least))) + np.sqrt(d)
    log1, log2 = np.log(1 + t * d), np.log(4 * t**2 / delta)  # B_phi^2 = d, lambda = B = 1
    return 8 * np.sqrt(d * log1 * log2) + 4 * np.sqrt(d) * log2 + 1


# Known and unknown


def test_what_is_unknown_is_worth_H_and_what_is_known_is_planned():
    T, mdp = 300, ids.mdp("ensemble/3,8,2,3,discount=0.8")
    seen, _, _ = phases_of(threshold(mdp.problem, T, accuracy=0.8, scale=0.1), mdp, T, 4)
    mixed = 0
    for state in seen:
        for i in range(4):
            PV = embedding_of(mdp.successors, mdp.features)(state.V)[i] @ state.theta[i]
            Q = np.where(state.unknown[i], mdp.horizon, mdp.rewards + mdp.discount * PV)
            np.testing.assert_allclose(state.Q[i], Q, atol=1e-5)
            mixed += 0 < state.unknown[i].sum() < state.unknown[i].size
    assert mixed > 0
    nothing = run(threshold(mdp.problem, T, accuracy=1e-300), mdp, T, 2)
    assert (mdp.horizon == nothing.state.Q).all()
    assert (nothing.state.policy[:, :, 0] == 1).all()
    everything = run(threshold(mdp.problem, T, accuracy=1e9), mdp, T, 2).state
    for i in range(2):
        here = MDP(
            rewards=mdp.rewards, successors=mdp.successors, transitions=mdp.features @ everything.theta[i],
            initial=mdp.initial, discount=mdp.discount,
        )  # fmt: skip
        np.testing.assert_allclose(everything.V[i], solve(here).V, atol=1e-5)


# Which theta make a kernel


def shared():
    """Two kernels that have all moves in common: theta = (1.5, -.5) makes a kernel too."""
    first = [[[0.6, 0.4], [0.7, 0.3]], [[0.5, 0.5], [0.5, 0.5]]]
    second = [[[0.2, 0.8], [0.7, 0.3]], [[0.5, 0.5], [0.5, 0.5]]]
    everywhere = np.broadcast_to(np.arange(2), (2, 2, 2))
    return MDP.from_features(
        np.stack([first, second], -1), [1.5, -0.5], everywhere, [[1.0, 1.0], [0.0, 0.0]], 0.9, [1.0, 0.0]
    )


@pytest.mark.parametrize("make", [uclk, uclk_plus, uclk_c])
def test_auto_does_not_look_on_the_simplex_for_a_theta_that_may_be_elsewhere(make):
    mdp, T = shared(), 5000
    V = solve(mdp).V
    learner = make(mdp.problem, T)
    assert learner.settings["inner"] == "null-space"
    seen, found, _ = phases_of(learner, mdp, T, 2)
    assert all((state.V >= V - 1e-9)[state.plays < T].all() for state in seen)  # beta is that of theta
    seen, forced, _ = phases_of(make(mdp.problem, T, inner="exact-simplex"), mdp, T, 2)
    assert any((state.V < V - 0.01).any() for state in seen)  # and never finds the better action
    assert found.regret.max() < 0.3 * forced.regret.min()


def test_weights_outside_of_the_simplex_make_a_kernel_unless_each_kernel_has_a_move_of_its_own():
    """Against d linear programmes, on kernels with few moves."""
    rng, answers = np.random.default_rng(5), []
    for _ in range(150):
        d, X, A = int(rng.integers(1, 5)), 4, 2
        psi = rng.dirichlet(np.ones(X), (X, A, d)) * (rng.uniform(size=(X, A, d, X)) < rng.uniform(0.5, 1))
        psi[psi.sum(-1) == 0] = 1 / X
        psi = np.moveaxis(psi / psi.sum(-1, keepdims=True), 2, -1)
        everywhere = np.broadcast_to(np.arange(X), (X, A, X))
        mdp = MDP.from_features(psi, np.full(d, 1 / d), everywhere, np.zeros((X, A)), 0.9, 0)
        rows = psi.reshape(-1, d)
        least = [
            linprog(e, A_ub=-rows, b_ub=np.zeros(len(rows)), A_eq=np.ones((1, d)), b_eq=[1], bounds=(None, None))
            for e in np.eye(d)
        ]
        on_simplex = all(each.status == 0 and each.fun > -1e-9 for each in least)
        assert encloses(mdp.problem) == on_simplex
        answers.append((d > 1, on_simplex))
    assert min(answers.count(kind) for kind in [(True, True), (True, False)]) > 20
    assert (False, False) not in answers


# Rounding


@pytest.mark.parametrize(
    ("make", "options", "spoilt"),
    [
        (uclk, {"scale": 0.01}, "data"),
        (uclk_plus, {"scale": 0.001}, "first"),
        (uclk_plus, {"scale": 0.001}, "second"),
        (threshold, {"scale": 0.01}, "data"),
        (fixed_point_lsvi, {}, "data"),
    ],
)
@pytest.mark.parametrize("factor", [-1e6, np.nan])
def test_an_inverse_that_has_become_nonsense_is_refused_at_the_next_plan(make, options, spoilt, factor):
    mdp, T = ids.mdp("ensemble/3,5,2,2,discount=0.9"), 300
    learner, plans = make(mdp.problem, T, **options), []

    def plan(s):
        s = learner.plan(s)
        plans.append(1)
        if len(plans) == 3:
            getattr(s, spoilt).inverse[:] *= factor
        return s

    with pytest.raises(InputError, match="positive definite"):
        run(learner._replace(plan=plan), mdp, T, 1)
    assert len(plans) == 3
