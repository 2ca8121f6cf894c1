"""RAVI-UCB+: Algorithm 1 where its parts are off, the literal transcription where they are on, and each part alone."""

from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.estimators.centred import standard
from ravi.estimators.counts import Counts, counts
from ravi.learners.ravi_ucb import inner_counts, ravi_ucb
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.mdps import garnet, riverswim, riverswim_mixture
from ravi.optimism.bonuses import (
    log_term,
    of_span,
)
from ravi.random import uniform
from ravi.runtime import tree
from ravi.runtime.api import run
from ravi.theory import constants, generic
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, spy

T = 400
OFF = {"inner": 1, **dict.fromkeys(("fresh", "centre", "span", "clip", "gamma", "balance"), "off")}
TABULAR_PARTS = ("fresh", "centre", "span", "clip", "gamma")


def switches(names, on):
    return {name: "on" if name in on else "off" for name in names}


def without(names, part):
    """Every part but one, and what needs it."""
    return [name for name in names if name != part and not (part == "centre" and name == "span")]


# ---- where parts are off, it is Algorithm 1


def same_run(one, other, mdp, steps=T):
    made, again = (run(learner, mdp, steps, 3, record=["stream"]) for learner in (one, other))
    streams = [{n: a for n, a in m.results.items() if n.startswith("stream")} for m in (made, again)]
    assert_same_bits(*streams)
    assert (made.regret == again.regret).all()
    for name in ("V", "Q", "log_policy", "policy"):
        kept = getattr(again.state, {"V": "V_last", "policy": "last_policy"}.get(name, name))
        assert (getattr(made.state, name) == kept).all(), name
    assert (made.state.policy == again.state.policy).all()
    assert np.ptp(made.state.policy, axis=-1).max() > 0.1  # policies that moved


def test_counts_with_every_part_off_are_algorithm_2_bit_for_bit():
    mdp = riverswim(6, 0.9)
    beta = constants.beta_tabular_l1(mdp.horizon, 6, 2, T, 1 / T)
    one = ravi_ucb.tabular(mdp.problem, T, beta=beta, scale=0.1, eta=0.3)
    same_run(one, ravi_ucb_plus.tabular(mdp.problem, T, scale=0.1, eta=0.3, **OFF), mdp)


def test_regressions_with_every_part_off_are_algorithm_3_bit_for_bit():
    mdp = riverswim_mixture(5, 0.9)
    problem = mdp.problem
    given = {"parameter_bound": problem.parameter_bound, "feature_bound": problem.feature_bound}
    beta = constants.beta_mixture_half(mdp.horizon, mdp.dimension, T, 1 / T, **given)
    other = ravi_ucb_plus.linear_mixture(problem, T, scale=0.05, eta=0.3, radius="off", **OFF)
    same_run(ravi_ucb.linear_mixture(problem, T, beta=beta, scale=0.05, eta=0.3), other, mdp)


# ---- the compiled loop, and what an observer sees


@pytest.mark.parametrize("part", ["", *TABULAR_PARTS])
@pytest.mark.parametrize("states", [9, inner_counts.MANY + 5])
def test_the_compiled_loop_is_its_parts_one_after_another_bit_for_bit(part, states):
    """Where it works in rows, and where it works in columns."""
    mdp = garnet(states, 3, 4, 0, 0.9)
    options = switches(TABULAR_PARTS, without(TABULAR_PARTS, part))
    fused = ravi_ucb_plus.tabular(mdp.problem, T, inner=5, scale=0.3, **options)
    parts, fresh = fused.parts, fused.settings["fresh"]
    plain = ravi_ucb_plus.generic(mdp.problem, parts.estimator, parts.bonus, parts.eta, inner=5, fresh=fresh)
    made, again = (run(learner, mdp, T, 5, measured=False) for learner in (fused, plain))
    for name, leaf in tree.leaves(made.state):
        assert leaf.tobytes() == dict(tree.leaves(again.state))[name].tobytes(), name
    assert np.ptp(made.state.last_policy, axis=-1).max() > 0.3


@pytest.mark.parametrize("learner", ["ravi-ucb+,inner=6", "ravi-ucb+,inner=6,fresh=off", "ravi-ucb+/mixture,inner=6"])
def test_backups_one_by_one_are_the_plan_and_leave_the_state_alone(learner):
    mdp = riverswim_mixture(5, 0.9)
    made = ids.learner(learner, mdp, T)
    state = run(made, mdp, 200, 4, measured=False).state
    before = tree.copy(state)
    steps = [tree.copy(s) for s in made.parts.backups(state)]
    for name, leaf in tree.leaves(before):
        assert leaf.tobytes() == dict(tree.leaves(state))[name].tobytes(), name
    planned = made.plan(state)
    assert len(steps) == 6
    for name, leaf in tree.leaves(planned):
        assert leaf.tobytes() == dict(tree.leaves(steps[-1]))[name].tobytes(), name
    chosen = [int(6 * uniform(key, t, 4)) for key, t in zip(before.key, before.time, strict=True)]
    for row, m in enumerate(chosen):
        assert (planned.policy[row] == steps[m].last_policy[row]).all()
        assert (planned.V[row] == steps[m].V_last[row]).all()
    assert len({step.V_last.tobytes() for step in steps}) == 6


# ---- which policy is played


def test_the_pick_is_uniform_reproducible_and_the_same_alone_as_in_a_batch():
    """Of 3,000 epochs each of 5 policies is played 600 times, give or take 5 deviations: false alarms below 3e-6."""
    mdp, M, seen = riverswim(4, 0.5), 5, []
    learner = ravi_ucb_plus.tabular(mdp.problem, 1000, inner=M)
    made = run(learner, mdp, 1000, 6, measures=[spy(seen)])
    picks = [
        int(M * uniform(int(seed), int(t), 4))
        for seed, starts in zip(made.seeds, made.T_k, strict=True)
        for t in starts
    ]
    times = np.bincount(picks, minlength=M)
    assert (np.abs(times - len(picks) / M) < 5 * sqrt(len(picks) / M * (1 - 1 / M))).all()
    alone = run(learner, mdp, 1000, [made.seeds[4]])
    assert_same_bits(bits(alone), bits(made, 4))
    last = run(ravi_ucb_plus.tabular(mdp.problem, 1000, inner=M, pick="last"), mdp, 1000, 2)
    assert (last.state.policy == last.state.last_policy).all()
    assert (last.state.V_last == last.state.V).all()
    assert not (made.state.policy == made.state.last_policy).all()


def test_options_are_checked():
    problem = riverswim_mixture(4, 0.9).problem
    for make in (ravi_ucb_plus.tabular, ravi_ucb_plus.linear_mixture):
        with pytest.raises(InputError, match="span=on needs centre=on"):
            make(problem, T, centre="off")
        with pytest.raises(InputError, match="pick"):
            make(problem, T, pick="first")
        with pytest.raises(InputError, match="inner"):
            make(problem, T, inner=0)
        with pytest.raises(InputError, match="fresh"):
            make(problem, T, fresh="maybe")


# ---- the bonuses


def test_the_bonus_by_span_is_valid_on_the_l1_event_exhaustively():
    """Three successors, every n up to 6, every outcome of n draws, kernels on a grid, corners of V: and it is tight."""
    X = 3
    L = X * log(2) + log(X * 1 * 10 / 0.9)
    corners = [np.array(v, float) for v in product((0.0, 4.0), (0.0, 1.0, 4.0), (0.0, 4.0)) if np.ptp(v) > 0]
    kernels = [np.array((i, j, 8 - i - j)) / 8 for i in range(9) for j in range(9 - i)]
    bonus, tightest, checked = of_span(log_term(X, 1, 10, 0.9)), np.inf, 0
    estimator = standard(counts(garnet(3, 1, 3, 0, 0.75).problem), span=False, clip=False)
    successors = garnet(3, 1, 3, 0, 0.75).successors
    assert (successors == np.arange(3)).all()
    for n in range(7):
        for moves in ((i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)):
            D = Counts(np.full((1, 3, 1), n + 1, np.int32), np.tile(np.array(moves, np.int32), (1, 3, 1, 1)))
            for V in corners:
                phi = estimator.embed(V[None])
                PV_hat, CB = estimator.expect(D, phi)[0, 0, 0], bonus(D, phi)[0, 0, 0]
                for P in kernels:
                    if n == 0 or np.abs(np.array(moves) / n - P).sum() <= sqrt(2 * L / n):
                        room = CB - abs(P @ V - PV_hat)
                        assert room >= -1e-12, (n, moves, V, P)
                        tightest, checked = min(tightest, room), checked + 1
    assert checked > 20_000
    assert tightest < 1e-12  # no smaller factor would do


# ---- the step size


@pytest.mark.parametrize("S", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("M", [1, 10])
def test_balanced_steps_are_the_largest_whose_cost_is_that_of_the_bonuses(S, M):
    H, A, steps = 10.0, 3, 5000
    eta, sharp = constants.eta_balanced(H, A, steps, S, M), constants.eta_sharp(H, A, steps, M)
    K, kappa = steps / H + 0.9, H**2.5 / 4 - H**2 / 8
    cost = H * kappa * K
    assert eta == max(sharp, S / cost)
    bound = generic.sharp(H, A, steps, S, eta=eta, inner_steps=M, delta=0.1)
    s = H * sqrt(kappa * log(A) * K / M)
    assert bound.total <= S + max(S, s) + s + H**2 / M + 0.1 * steps + 1e-6
    assert bound.total <= 2 * generic.sharp(H, A, steps, S, inner_steps=M, delta=0.1).total


# ---- samples weighed by their variance


def test_variance_weights_are_the_formulas_in_plain_loops():
    """sigma, both regressions, the estimate and the bonus, along the stream of a run."""
    mdp, steps, scale = riverswim_mixture(4, 0.8), 120, 0.02
    learner, seen = ids.learner(f"ravi-ucb+/mixture,weights=variance,inner=2,scale={scale}", mdp, steps), []
    made = run(learner, mdp, steps, [3, 4], record=["stream"], measures=[spy(seen)])
    d, R, B, B_phi, delta = mdp.dimension, mdp.horizon, mdp.parameter_bound, mdp.feature_bound, 1 / steps / 3
    psi = np.zeros((4, 2, 4, d))
    np.put_along_axis(psi, mdp.successors.astype(np.int64)[..., None], mdp.features, axis=2)

    def radii(t):
        l, m, m2 = log(4 * t * t / delta), log(1 + t * B_phi**2), log(1 + t * B_phi**2 * R**4 / d)
        hat = 8 * sqrt(d * m * l) + 4 * sqrt(d) * l + B
        check = 8 * d * sqrt(m * l) + 4 * sqrt(d) * l + B
        return scale * hat, scale * check, scale * (8 * R**2 * sqrt(d * m2 * l) + 4 * R**2 * l + B)

    first, second, b, b2, sigmas = np.eye(d), np.eye(d), np.zeros(d), np.zeros(d), []
    x, a, y = (made.results[f"stream_{name}"][0] for name in ("state", "action", "successor"))
    ends = [*made.T_k[0][1:], steps + 1]
    for (state, _), start, end in zip(seen, made.T_k[0], ends, strict=False):
        V = state.V[0]
        W = V - V.min()
        phi = learner.parts.estimator.embed(state.V)
        np.testing.assert_allclose(state.data.covariance[0], first, rtol=1e-9)
        features = np.einsum("xayd,y->xad", psi, W)
        right = np.clip(V.min() + features @ np.linalg.solve(first, b), V.min(), V.max())
        np.testing.assert_allclose(learner.parts.estimator.expect(state.data, phi)[0], right, atol=1e-9)
        norms = np.sqrt(np.einsum("xad,de,xae->xa", features, np.linalg.inv(first), features))
        CB = 0.8 * np.minimum(radii(start)[0] * norms, np.ptp(V))
        np.testing.assert_allclose(learner.parts.bonus(state.data, phi)[0], CB, rtol=1e-9, atol=1e-12)
        for t in range(start, end):
            f, g, w = features[x[t - 1], a[t - 1]], psi[x[t - 1], a[t - 1]].T @ W**2, W[y[t - 1]]
            _, check, tilde = radii(t)
            mean = min(max(f @ np.linalg.solve(first, b), 0), R)
            square = min(max(g @ np.linalg.solve(second, b2), 0), R**2)
            E = min(R**2, 2 * R * check * sqrt(f @ np.linalg.solve(first, f)))
            E += min(R**2, tilde * sqrt(g @ np.linalg.solve(second, g)))
            variance = max(R**2 / d, square - mean**2 + E)
            sigmas.append(variance)
            first, b = first + np.outer(f, f) / variance, b + f * w / variance
            second, b2 = second + np.outer(g, g), b2 + g * w**2
    assert len(set(sigmas)) > 20
    assert max(sigmas) <= 3 * R**2
