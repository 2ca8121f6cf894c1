"""Least-squares value iteration in linear MDPs: learners are their literal transcriptions, and do what theory says."""

from math import ceil, log, sqrt

import numpy as np
import pytest
from scipy.stats import binom, chi2

from ravi import ids
from ravi.core import MDP
from ravi.estimators.gram import gram, renew
from ravi.estimators.linear import features_of, width
from ravi.learners.linear.least_squares import Backups, backward, lists
from ravi.learners.linear.lsvi import block_length, gamma_lscvi_ucb, gaussians, lsvi_ucb, olsvi_fh, rlsvi
from ravi.planning.evaluation import effective_horizon, staged_values
from ravi.planning.solver import solve
from ravi.runtime.api import resume, run
from ravi.runtime.result import Run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, dense, spy
from tests.literal import lsvi as literal

LEARNERS = {
    "lsvi-ucb": (lsvi_ucb, {}),
    "lsvi-ucb moving": (lsvi_ucb, {"scale": 0.01}),
    "lsvi-ucb determinant": (lsvi_ucb, {"scale": 0.01, "replan": "determinant"}),
    "olsvi-fh": (olsvi_fh, {}),
    "olsvi-fh moving": (olsvi_fh, {"scale": 0.00025}),
    "olsvi-fh undiscounted": (olsvi_fh, {"scale": 0.00025, "stage": "undiscounted", "span": 1.5}),
    "gamma-lscvi-ucb": (gamma_lscvi_ucb, {}),
    "gamma-lscvi-ucb moving": (gamma_lscvi_ucb, {"scale": 0.01}),
    "gamma-lscvi-ucb staged": (gamma_lscvi_ucb, {"scale": 0.01, "variant": "staged", "span": 0.8}),
    "rlsvi": (rlsvi, {}),
    "rlsvi moving": (rlsvi, {"scale": 0.02}),
}
SHORT = ("linear/7,3,3,discount=0.6", "riverswim/3,discount=0.6", "hypercube/linear/3,discount=0.7,margin=0.2")


def told(name, mdp, steps, seeds=(3,)):
    """A run with its stream, and (state, path) of every epoch."""
    world, seen = ids.mdp(mdp), []
    function, options = LEARNERS[name]
    learner = function(world.problem, steps, **options)
    made = run(learner, world, steps, list(seeds), record=["stream"], measures=[spy(seen)])
    return world, learner, made, seen


def follow(name, world, made, steps):
    x, a, y, resets = (made.results[f"stream_{part}"][0].tolist() for part in ("state", "action", "successor", "reset"))
    stream = list(zip(x, a, y, strict=True))
    r, phi, gamma, H = world.rewards.tolist(), features_of(world)[0].tolist(), world.discount, world.horizon
    given = LEARNERS[name][1]
    common = (r, phi, gamma, steps, 1 / steps, given.get("scale", 1.0), 1.0)
    match name.split()[0]:
        case "lsvi-ucb":
            return literal.lsvi_ucb(stream, resets, *common, given.get("replan", "reset"))
        case "olsvi-fh":
            return literal.olsvi_fh(stream, resets, *common, given.get("span", H), "stage" not in given)
        case "gamma-lscvi-ucb":
            return literal.gamma_lscvi_ucb(stream, resets, *common, given.get("span", H / 2), "variant" in given)
    return literal.rlsvi(stream, resets, made.seeds[0], r, phi, gamma, given.get("scale", 1.0), 1.0)


@pytest.mark.parametrize("mdp", SHORT)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_is_its_literal_transcription_step_by_step(name, mdp):
    """Plans at the same times, V_h and greedy policies of all stages, and the action of every step."""
    steps = 150
    world, learner, made, seen = told(name, mdp, steps)
    followed = list(follow(name, world, made, steps))
    plans = [t for t, (*_, due) in enumerate(followed, start=1) if due]
    assert plans == made.T_k[0].tolist()
    for (state, _), t in zip(seen, plans, strict=True):
        Q, V, *_ = followed[t - 1]
        S = len(V)
        np.testing.assert_allclose(state.values[0], V, rtol=1e-9, atol=1e-9)
        policy = state.policy[0] if learner.stages else state.policy
        for age, table in enumerate(policy):
            chosen = (table * np.array(Q[age % S])).sum(-1)
            np.testing.assert_allclose(chosen, np.max(Q[age % S], axis=-1), rtol=1e-9, atol=1e-9)
            assert ((table == 0) | (table == 1)).all()
    for t, (Q, _, stage, _) in enumerate(followed):
        x, a = (made.results[f"stream_{part}"][0, t] for part in ("state", "action"))
        assert Q[stage][x][a] >= max(Q[stage][x]) - 1e-9
    assert len(plans) > 5
    if "moving" in name and mdp.startswith("linear"):
        assert len({state.policy.tobytes() for state, _ in seen}) > 1


@pytest.mark.parametrize("name", LEARNERS)
def test_a_batch_does_not_change_a_seed_nor_does_a_stop(name, tmp_path):
    steps, mdp = 300, "linear/6,2,3,discount=0.8"
    world, learner, whole, _ = told(name, mdp, steps, (5, 3, 11))
    for row, seed in enumerate(whole.seeds):
        assert_same_bits(bits(told(name, mdp, steps, (seed,))[2]), bits(whole, row))
    stopped = run(learner, world, steps, whole.seeds, record=["stream"], pause=100)
    stopped.save(tmp_path / "run")
    again = resume(Run.load(tmp_path / "run"), learner, world)
    for row in range(3):
        assert_same_bits(bits(whole, row), bits(again, row))


@pytest.mark.parametrize("name", LEARNERS)
def test_policies_are_policies_values_are_in_range_and_regret_is_theirs(name):
    steps = 300
    world, learner, made, seen = told(name, "linear/aggregated/6,2,3,discount=0.8", steps)
    cap = world.horizon if "undiscounted" not in name else learner.settings["stages"]
    lengths, total = np.diff([*made.T_k[0], steps + 1]), 0.0
    for (state, _), length in zip(seen, lengths, strict=True):
        assert (state.policy.sum(-1) == 1).all()
        assert (state.values >= 0).all()
        assert (state.values <= cap * (1 + 1e-12)).all()
        policy = state.policy if learner.stages else state.policy[:, None]
        W, returns, _ = staged_values(world, policy)
        total += length * (made.optimum - returns[0])
    assert made.regret[0] == pytest.approx(total, abs=made.regret_error[0] + 1e-8)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_learner_sees_the_transitions(name):
    rng = np.random.default_rng(3)
    phi, theta = rng.dirichlet(np.ones(3), (5, 2)), rng.uniform(size=3)
    worlds = [MDP.from_linear(phi, m, theta, 0.8, 0, name="same") for m in rng.dirichlet(np.ones(5), (2, 3))]
    function, options = LEARNERS[name]
    here, there = (function(world.problem, 200, **options) for world in worlds)
    assert here.settings == there.settings
    assert_same_bits(bits(run(here, worlds[0], 200, 1)), bits(run(there, worlds[0], 200, 1)))


def test_one_hot_features_are_the_tabular_bonus_method():
    """P_hat = N' / (n + lambda) and a bonus beta / sqrt(n + lambda), in an independent tabular form."""
    world, steps, lam = ids.mdp("garnet/5,3,2,discount=0.8"), 1500, 0.7
    learner, seen = lsvi_ucb(world.problem, steps, scale=0.02, regularization=lam), []
    made = run(learner, world, steps, [4], record=["stream"], measures=[spy(seen)])
    x, a, y = (made.results[f"stream_{part}"][0] for part in ("state", "action", "successor"))
    X, A, gamma, H = world.states, world.actions, world.discount, world.horizon
    beta = 0.02 * X * A * H * sqrt(log(2 * X * A * steps * steps))
    for (state, _), t in list(zip(seen, made.T_k[0], strict=True))[:: len(seen) // 40]:
        moves = np.zeros((X, A, X))
        np.add.at(moves, (x[: t - 1], a[: t - 1], y[: t - 1]), 1)
        n, V = moves.sum(-1), np.zeros(X)
        for h in reversed(range(learner.stages)):
            Q = np.clip(world.rewards + gamma * moves @ V / (n + lam) + beta / np.sqrt(n + lam), 0, H)
            V = Q.max(-1)
            np.testing.assert_allclose(state.values[0, h], V, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose((state.policy[0, h] * Q).sum(-1), V, rtol=1e-10, atol=1e-10)
    assert (n > 0).sum() > 12
    assert (n > 100).sum() > 5


def known(world):
    """Data in which every pair was seen once, with all of its successors in proportion."""
    phi = features_of(world.problem)
    d = phi.shape[-1]
    D = gram(1, d, 1.0, world.states, moves=True)
    D.covariance[0] = np.einsum("xaj,xak->jk", phi[0], phi[0])
    D.moves[0] = np.einsum("xaj,xay->jy", phi[0], dense(world))
    return renew(D), phi


@pytest.mark.parametrize("mdp", ["linear/20,3,4", "garnet/6,2,3,discount=0.9", "linear/aggregated/12,3,4,discount=0.8"])
def test_with_the_kernel_known_a_pass_is_backward_induction(mdp):
    world = ids.mdp(mdp)
    D, phi = known(world)
    P, gamma, H, S = dense(world), world.discount, world.horizon, effective_horizon(world.problem, 1e-6)
    zero = np.zeros((1, world.states, world.actions))
    for last, span, centred in ((0.0, np.inf, False), (H, H, True)):
        values, policy = np.empty((1, S, world.states)), np.empty((1, S, world.states, world.actions))
        backward(world.rewards, lists(phi), D, zero, Backups(gamma, H, last, span, centred), values, policy)
        V = np.full(world.states, last)
        for h in reversed(range(S)):
            V = (world.rewards + gamma * P @ V).max(-1)
            np.testing.assert_allclose(values[0, h], V, atol=1e-9)
        best = solve(world)
        assert np.abs(values[0, 0] - best.V).max() < 2e-6
        assert best.optimum - staged_values(world, policy)[1][0] < 1e-5


def test_a_pass_ends_where_values_repeat_and_repeats_a_plan_beyond_its_stages():
    world = ids.mdp("riverswim/8,discount=0.9")
    D, phi = known(world)
    shape, H = (1, world.states, world.actions), world.horizon
    values, policy = np.empty((1, 5, 8)), np.empty((1, 15, 8, 2))
    backward(world.rewards, lists(phi), D, np.full(shape, 2 * H), Backups(0.9, H, 0.0), values, policy)
    assert (values == H).all()
    assert (policy[..., 0] == 1).all()  # ties go to the first action
    assert (policy[..., 1:] == 0).all()
    backward(world.rewards, lists(phi), D, np.zeros(shape), Backups(0.9, H, 0.0), values, policy)
    assert (policy[0, :5] == policy[0, 5:10]).all()
    assert (policy[0, :5] == policy[0, 10:]).all()
    assert (policy[0, 0] != policy[0, 4]).any()
    first = np.empty((1, 8, 2))
    backward(world.rewards, lists(phi), D, np.zeros(shape), Backups(0.9, H, 0.0), values, first)
    assert (first[0] == policy[0, 0]).all()


def test_the_span_of_clipped_values_is_what_it_was_clipped_to():
    seen = []
    world = ids.mdp("riverswim/6,discount=0.95")
    run(gamma_lscvi_ucb(world.problem, 3000, scale=0.001, span=1.0), world, 3000, 2, measures=[spy(seen)])
    spans = np.concatenate([np.ptp(state.values, axis=-1).ravel() for state, _ in seen])
    assert spans.max() == pytest.approx(2.0, abs=1e-12)
    assert (spans > 1.999).mean() > 0.01


def test_the_stages_miss_at_most_the_truncation():
    problem = ids.mdp("riverswim/6,discount=0.95").problem
    for epsilon in (0.01, 0.5, 3.0):
        S = effective_horizon(problem, epsilon)
        assert 0.95**S * 20 <= epsilon < 0.95 ** (S - 1) * 20
    assert lsvi_ucb(problem, 100).stages == 149
    assert effective_horizon(problem, 50.0) == 1


@pytest.mark.parametrize("name", ["lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi", "ucrl-vtr", "oppo"])
def test_stages_without_end_are_refused(name):
    mixture = "mixture/" if name in ("ucrl-vtr", "oppo") else ""
    near = ids.mdp(f"riverswim/{mixture}3,discount=0.9999")
    assert effective_horizon(near.problem, 0.01) == 138_149
    with pytest.raises(InputError, match=r"discount 0\.9999 and truncation 1e-06 make .* stages"):
        ids.learner(f"{name},truncation=1e-6", near, 100)


def test_the_published_constants():
    problem, T = ids.mdp("riverswim/6,discount=0.95").problem, 20_000
    d, H, L = 12, 20.0, log(T**2)
    assert lsvi_ucb(problem, T).settings["beta"] == pytest.approx(d * H * sqrt(L + log(2 * d)), rel=1e-12)
    assert gamma_lscvi_ucb(problem, T).settings["beta"] == pytest.approx(H * d * sqrt(L + log(d)), rel=1e-12)
    assert gamma_lscvi_ucb(problem, T, span=3.0).settings["beta"] == pytest.approx(6 * d * sqrt(L + log(d)), rel=1e-12)
    assert rlsvi(problem, T).settings["sigma"] == pytest.approx(H * sqrt(d), rel=1e-12)
    assert block_length(20.0, 12, T) == ceil((20 * T / 144) ** (1 / 3)) == 15
    assert block_length(1.0, 2, 16) == ceil(max(2 / 2**0.75, 4 ** (1 / 3)))
    made = olsvi_fh(problem, T)
    assert (made.settings["stages"], made.stages) == (15, 150)
    most = (1 - 0.95**15) * 20
    assert made.settings["beta"] == pytest.approx(40 * d * most * sqrt(L), rel=1e-12)
    assert olsvi_fh(problem, 10**9).settings["stages"] == 149  # no block is longer than the stages that matter


@pytest.mark.parametrize("function", [lsvi_ucb, gamma_lscvi_ucb])
def test_the_determinant_doubles_seldom(function):
    world, T = ids.mdp("linear/20,3,4"), 20_000
    options = {"replan": "determinant"} if function is lsvi_ucb else {}
    made = run(function(world.problem, T, scale=0.01, **options), world, T, 4)
    most = 4 / log(2) * log(1 + T / 4)
    for starts in made.T_k:
        assert 10 < len(starts) <= 1 + most


def test_a_reset_plan_is_made_at_every_reset_and_a_block_plan_within():
    world, T = ids.mdp("linear/6,2,3,discount=0.95"), 600
    for function, B in ((lsvi_ucb, None), (olsvi_fh, 4)):
        options = {} if B is None else {"span": 0.8}
        learner = function(world.problem, T, scale=0.01, **options)
        made = run(learner, world, T, [2], record=["stream"])
        starts, age = [], 0
        for t in range(T):
            if age == 0 or (B and age % learner.settings["stages"] == 0):
                starts.append(t + 1)
            age = 0 if made.results["stream_reset"][0, t] else age + 1
        assert starts == made.T_k[0].tolist()
        assert learner.settings["stages"] == (B or learner.stages)


def test_without_noise_or_bonus_all_is_least_squares():
    world, T = ids.mdp("linear/10,3,4"), 2000
    one, other = (run(function(world.problem, T, scale=0.0), world, T, 2) for function in (lsvi_ucb, rlsvi))
    assert_same_bits({"values": one.state.values}, {"values": other.state.values})
    assert (one.regret == other.regret).all()


def test_the_ellipsoid_covers_the_weights():
    """For one f with values in [0, 1], fixed beforehand, at all times with probability 0.8 at least:

    ||w_hat - w||_Lambda <= sqrt(2 ln(1 / 0.2) + ln det Lambda - d ln lambda) / 2 + sqrt(lambda) ||w||

    (Abbasi-Yadkori et al. 2011; f(y) is 1/2-sub-Gaussian). At the end of 300 runs with a data-dependent policy, more
    than 83 misses have a probability below 1e-3. Of radii divided by 10 most miss.
    """
    world, T, n, lam = ids.mdp("linear/20,3,4"), 400, 300, 1.0
    made = run(lsvi_ucb(world.problem, T, scale=0.02), world, T, n, measured=False)
    D, phi = renew(made.state.data), features_of(world.problem)
    f = np.random.default_rng(1).integers(0, 2, world.states).astype(float)
    rows = phi.reshape(-1, 4)
    w = np.linalg.lstsq(rows, (dense(world) @ f).ravel(), rcond=None)[0]
    np.testing.assert_allclose(rows @ w, (dense(world) @ f).ravel(), atol=1e-12)
    missed = np.einsum("ijk,ik->ij", D.inverse, D.moves @ f) - w
    error = np.sqrt(np.einsum("ij,ijk,ik->i", missed, D.covariance, missed))
    radius = np.sqrt(2 * log(5) + D.log_det - 4 * log(lam)) / 2 + sqrt(lam) * np.linalg.norm(w)
    assert binom.sf(83, n, 0.2) < 1e-3
    assert (error > radius).sum() <= 83
    assert (error > radius / 10).mean() > 0.5


def test_values_are_optimistic_wherever_the_bonus_is_valid():
    """With CB >= gamma |P_hat V_{h+1} - P V_{h+1}| at every stage, V_h >= V*_h, the optimum of the stages left.

    With these bonuses that is the case at most plans, not at all; and values come well below H.
    """
    world, T = ids.mdp("linear/10,3,3,discount=0.5"), 3000
    P, gamma, H = dense(world), world.discount, world.horizon
    seen = []
    learner = lsvi_ucb(world.problem, T, scale=0.012)
    run(learner, world, T, 8, measures=[spy(seen)])
    phi, S = features_of(world.problem), learner.stages
    optimum, V = np.zeros((S + 1, world.states)), np.zeros(world.states)
    for h in reversed(range(S)):
        V = optimum[h] = (world.rewards + gamma * P @ V).max(-1)
    valid, low, optimistic = 0, [], 0
    for state, path in seen[::20]:
        data = state.data
        CB = learner.settings["beta"] * width(data, phi)
        for i in np.flatnonzero(path.length):
            K = data.inverse[i] @ data.moves[i]
            after = np.vstack([state.values[i, 1:], np.zeros(world.states)])
            miss = np.array([gamma * np.abs(phi[0] @ (K @ v) - P @ v) for v in after])
            above = (state.values[i] >= optimum[:S] - 1e-9).all()
            optimistic += above
            if (miss <= CB[i]).all():
                valid += 1
                assert above
                low.append(state.values[i, 0].min())
    plans = sum(int((path.length > 0).sum()) for _, path in seen[::20])
    assert 0.3 * plans < valid < plans
    assert optimistic < plans
    assert np.mean(low) < 0.9 * H


def test_noise_has_the_covariance_that_it_should():
    """R^{-1} xi / sigma is standard normal: its squares, and those of its projections, are chi-square.

    Twelve two-sided tests, each with false alarm 1e-4.
    """
    rng, d, S, n, sigma = np.random.default_rng(0), 3, 50, 200, 2.5
    root = rng.normal(size=(d, d))
    Lam = root @ root.T + 0.2 * np.eye(d)
    xi = gaussians(np.tile(Lam, (n, 1, 1)), sigma, S, np.arange(n, dtype=np.uint64), np.arange(7, 7 + n))
    assert len(np.unique(xi)) == xi.size
    sample = xi.reshape(-1, d)
    whole = np.einsum("ij,jk,ik->i", sample, Lam, sample).sum() / sigma**2
    assert chi2.ppf(5e-5, n * S * d) < whole < chi2.ppf(1 - 5e-5, n * S * d)
    inverse = np.linalg.inv(Lam)
    for direction in np.vstack([np.eye(d), rng.normal(size=(4, d))]):
        one = (sample @ direction) ** 2 / (sigma**2 * direction @ inverse @ direction)
        assert chi2.ppf(5e-5, n * S) < one.sum() < chi2.ppf(1 - 5e-5, n * S)
    white = sample @ np.linalg.cholesky(Lam) / sigma
    lagged = (white[:-1] * white[1:]).sum(0) / sqrt(len(white) - 1)  # from stage to stage: standard normal
    crossed = (white[:, 0] * white[:, 1]).sum() / sqrt(len(white))
    for z in (*lagged, crossed):
        assert abs(z) < 3.89


def test_noise_is_new_at_every_plan():
    world, seen = ids.mdp("linear/10,3,4"), []
    run(rlsvi(world.problem, 200, scale=0.02), world, 200, 2, measures=[spy(seen)])
    assert len({state.values[0].tobytes() for state, _ in seen}) == len([path for _, path in seen if path.length[0]])
    assert (seen[0][0].values[0] != seen[0][0].values[1]).any()


@pytest.mark.parametrize(
    ("function", "options", "linear", "river"),
    [
        (lsvi_ucb, {"scale": 0.001}, 0.1, 0.5),
        (olsvi_fh, {"scale": 0.000025}, 0.1, 0.5),
        (gamma_lscvi_ucb, {"scale": 0.001}, 0.1, 0.5),
        (rlsvi, {"scale": 0.01}, 0.1, 0.5),
    ],
)
def test_tuned_learners_learn(function, options, linear, river):
    """Fractions of the uniform policy's regret."""
    for text, most in (("linear/50,4,5", linear), ("riverswim/6,discount=0.95", river)):
        world, T = ids.mdp(text), 10_000
        made = run(function(world.problem, T, **options), world, T, 4, keep_epochs=False)
        assert made.regret.mean() < most * run("uniform", world, T, 1).regret.mean(), text


@pytest.mark.parametrize(
    ("function", "options", "word"),
    [
        (lsvi_ucb, {"scale": -1}, "scale"),
        (lsvi_ucb, {"delta": 2}, "delta"),
        (lsvi_ucb, {"regularization": 0}, "regularization"),
        (lsvi_ucb, {"truncation": 0}, "truncation"),
        (lsvi_ucb, {"replan": "never"}, "replan"),
        (olsvi_fh, {"span": 0}, "span"),
        (olsvi_fh, {"stage": "both"}, "stage"),
        (gamma_lscvi_ucb, {"span": -1}, "span"),
        (gamma_lscvi_ucb, {"variant": "last"}, "variant"),
        (rlsvi, {"scale": float("nan")}, "scale"),
    ],
)
def test_bad_options_are_named(function, options, word):
    with pytest.raises(InputError, match=word):
        function(ids.mdp("linear/6,2,3").problem, 100, **options)
