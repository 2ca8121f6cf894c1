"""What code by others computed, once, on small inputs; ours computes the same (docs/explanation/trust.md).

The counts are four states, two actions; the outside code is statisticalrl_learners 2.2507 (UCRL2, KL-UCRL), the library
of the authors of UCRL2B and SCAL at commit 607748c of 2019, rlberry-scool 0.7.3 (LSVI-UCB without its bonus).
"""

from math import log, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ravi import ids
from ravi.estimators.counts import Counts, all_states
from ravi.learners.mixture import uclk
from ravi.learners.q import ucb_q
from ravi.learners.ucrl import ucrl
from ravi.optimism.extended_value_iteration import greedy
from ravi.optimism.sets import bernstein, kl, l1
from ravi.runtime.api import run
from tests.helpers import spy
from tests.support.plans import backup_of, iterate, least, truncated

MOVES = np.array(
    [
        [[6, 3, 0, 1], [0, 2, 2, 0]],
        [[1, 0, 4, 5], [9, 1, 0, 0]],
        [[0, 0, 7, 3], [2, 2, 2, 2]],
        [[0, 0, 0, 12], [0, 5, 0, 0]],
    ]
)
DATA = Counts(MOVES.sum(-1)[None].astype(float), MOVES[None].astype(float))
REWARDS = np.array([[[0.1, 0.0], [0.3, 0.2], [0.0, 0.5], [1.0, 0.4]]])
V = np.array([[0.0, 1.7, 3.2, 2.5]])
FREE, TIME, DELTA = np.zeros((1, 4, 2)), np.array([1000]), 0.05
GIVEN = (all_states(4, 2), 1.0, DATA)


def maxima(backup):
    Q = np.empty((1, 4, 2))
    backup(V, np.ones(1, np.bool_), Q)
    return Q[0]


def box(rewards, scale):
    """The radii 2 sqrt(p (1 - p) l / n) + 6 l / n, l = ln(6 X A n / delta), times `scale`."""
    n = DATA.visits
    l = np.log(6 * 8 * n / DELTA)
    return backup_of(bernstein, rewards, *GIVEN, 2 * scale * np.sqrt(l / n), 6 * scale * l / n)


def test_radii_maxima_and_extended_value_iteration_of_ucrl2():
    d = ucrl.l1_radius(DATA.visits, TIME, DELTA)
    outside = [7.951275288686319, 12.572070107630815, 7.951275288686319, 7.951275288686319]
    np.testing.assert_allclose(d.ravel()[:4], outside, rtol=1e-14)
    outside = [
        [2.032204046189811, 3.2],
        [3.058294635104021, 1.4422040461898111],
        [3.2, 2.941734701999383],
        [2.7540470821319025, 2.5433601013566682],
    ]
    np.testing.assert_allclose(maxima(backup_of(l1, FREE, *GIVEN, d / 10)), outside, rtol=1e-14)
    plan = iterate(backup_of(l1, REWARDS, *GIVEN, d / 10), np.zeros((1, 4)), 2, 1e-13)
    outside = [0.0, 0.49471782812381826, 0.5449130300885465, 1.2688780828052209]
    np.testing.assert_allclose(plan.u[0], outside, rtol=0, atol=1e-12)
    assert greedy(plan.Q)[0].argmax(-1).tolist() == [1, 0, 1, 0]


def test_maxima_and_minima_over_bernstein_boxes():
    for scale, most, smallest in (
        (
            0.1,
            [[2.885119771853149, 3.2], [3.2, 2.1541839317587126], [3.2, 3.2], [2.827314397698746, 3.2]],
            [[0.0, 0.0], [0.4970363712642167, 0.0], [0.8578075334055257, 0.0], [1.3310200082187644, 0.0]],
        ),
        (
            0.02,
            [
                [1.2412293998814232, 2.8644878909907208],
                [2.8701591611748722, 0.6296714329649401],
                [3.0793108152621045, 2.460047930914918],
                [2.565462879539749, 2.0051493630882553],
            ],
            [
                [0.4610420371467395, 1.6145974990846095],
                [2.0480006304204386, 0.0],
                [2.537576256990642, 1.2399520690850814],
                [2.266204001643753, 1.3541640551666438],
            ],
        ),
    ):
        np.testing.assert_allclose(maxima(box(FREE, scale)), most, rtol=1e-14)
        np.testing.assert_allclose(maxima(least(box(FREE, scale))), smallest, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("span", "gain", "u", "weight"),
    [
        (
            1.0,
            0.6354745510511643,
            [0.0, 0.5433647809274772, 0.5852499170855608, 1.1111111111111112],
            0.7736508072137257,
        ),
        (
            0.6,
            0.4877175046643795,
            [0.0, 0.4107416621143905, 0.5389747071064316, 0.6666666666666666],
            0.6076072411661462,
        ),
    ],
)
def test_gains_values_and_mixtures_of_scopt(span, gain, u, weight):
    """Their u is in units of the mixing, 0.9; in state 3 the greedy action 0 is mixed with action 1, without reward."""
    plan = iterate(box(REWARDS, 0.02), np.zeros((1, 4)), 2, 1e-13, span=span, mixing=0.9)
    assert (plan.low + plan.high)[0] / 1.8 == pytest.approx(gain, abs=1e-11)
    np.testing.assert_allclose(plan.u[0] / 0.9, u, rtol=0, atol=1e-11)
    policy = truncated(plan, span, least(box(FREE, 0.02)))[0]
    np.testing.assert_allclose(policy, [[0, 1], [1, 0], [0, 1], [weight, 1 - weight]], rtol=0, atol=1e-10)


def test_kl_maxima_where_the_outside_code_is_right_and_where_it_is_not():
    """Right where mass goes to a best state that was not seen, a closed form; else its search for nu ends at p_hat."""
    radius = 0.1 * ucrl.constant(4, 2, 1000, DELTA) / DATA.visits
    assert radius[0, 0, 0] == pytest.approx(0.50560245622115694, rel=1e-14)
    found = maxima(backup_of(kl, FREE, *GIVEN, radius))
    outside = np.array(
        [
            [1.8791703423220705, 2.450000056249996],
            [2.5300000820099795, 1.4107799772402279],
            [2.9900000102899997, 1.850000142249972],
            [2.740681001338961, 2.6543294121886105],
        ]
    )
    p = MOVES / MOVES.sum(-1, keepdims=True)
    off = np.abs(outside - p @ V[0]) < 1e-6
    assert off.tolist() == [[False, True], [True, False], [True, True], [False, False]]
    np.testing.assert_allclose(found[~off], outside[~off], rtol=1e-9)
    for x, a in np.argwhere(off):
        seen, d = p[x, a] > 0, radius[0, x, a]

        def dual(z, seen=seen, d=d, x=x, a=a):  # nu - exp(sum p ln(nu - V) - d), nu = max V + e^z
            nu = 3.2 + np.exp(z)
            return nu - np.exp(p[x, a, seen] @ np.log(nu - V[0, seen]) - d)

        best = minimize_scalar(dual, bounds=(-40, 20), method="bounded", options={"xatol": 1e-10}).fun
        assert found[x, a] == pytest.approx(best, abs=1e-8)
        assert found[x, a] > outside[x, a] + 0.1


@pytest.mark.parametrize(
    ("gamma", "eps", "delta", "pairs", "k", "outside"),
    [
        (0.95, 2.0, 1 / 20000, 12, 17, (69, 29, 1.3901724166888811e-05, 276.4343785594735, 1947.5514077576627)),
        (0.9, 0.1, 0.1, 12, 5, (58, 33, 9.454338251115722e-07, 153.51298285332052, 915.195436996676)),
        (0.99, 30.0, 0.05, 20, 100, (231, 30, 3.916797275462229e-05, 1467.893368710258, 8458.520495333454)),
    ],
)
def test_constants_of_ucb_q(gamma, eps, delta, pairs, k, outside):
    """R, M, eps1, H and b_k by the formulas of a public implementation, for S A pairs."""
    problem = ids.mdp(f"garnet/{pairs // 2},2,2,discount={gamma}").problem
    c = ucb_q.constants(problem, delta, 1.0, eps * (1 - gamma))
    made = c.R, c.M, c.eps1, c.H_q, ucb_q.bonus(k, c.width, c.pairs)
    assert made == pytest.approx(outside, rel=1e-12)


def test_the_radius_of_uclk_is_that_of_self_normalised_bounds():
    """Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 2: noise H, ||phi|| <= sqrt(d) H, ||theta|| <= sqrt(d)."""
    problem, t, delta, lam = ids.mdp("ensemble/4,6,2,2,discount=0.8").problem, 700, 0.01, 0.5
    d, H = 4, 5.0
    theorem = H * sqrt(d * log((1 + t * d * H**2 / lam) / delta)) + sqrt(lam) * sqrt(d)
    assert uclk.radius(problem, np.array([t]), delta, lam)[0] == pytest.approx(theorem, rel=1e-12)


def test_the_regression_of_lsvi_ucb():
    """397 samples of a linear MDP, 17 stages, no bonus, a ridge of 1e-9 (outside, rewards are regressed too)."""
    seen, world = [], ids.mdp("linear/6,2,3,discount=0.7")
    run("lsvi-ucb,scale=0,regularization=1e-9", world, 400, [3], measures=[spy(seen)])
    state, path = seen[-1]
    assert path.time[0] == 398
    outside = [
        1.2229992697942693, 1.2308048521882908, 0.9895111698227816, 1.057180090730776, 0.9575602521326748,
        1.1000772975193556,
    ]  # fmt: skip
    np.testing.assert_allclose(state.values[0, 0], outside, rtol=0, atol=1e-10)


def test_politex_estimates_as_the_public_code_that_compares_with_it():
    """bahh723/model-free-rl-algos at 980a3f7: lambda is the mean reward, v solves (diag(n_x) - n_xy) v = sum (r -
    lambda) by a pseudo-inverse, q is the mean of r - lambda + v(y). Its ridge is 0 here; where a stream ends in the
    state in which it began, the equations have a solution, and ours is that one but for a constant."""
    mdp, T = ids.mdp("riverswim/4,criterion=average"), 300
    made = run("politex,span=1000,phase=300", mdp, T, [7], record=["stream"])
    x, a, y = (made.results[f"stream_{name}"][0] for name in ("state", "action", "successor"))
    J = int(np.flatnonzero(y == x[0])[-1]) + 1
    seen = []
    run(f"politex,span=1000,phase={J}", mdp, J + 1, [7], measures=[spy(seen)])
    n, n_xy, earned = np.zeros((4, 2)), np.zeros((4, 4)), np.zeros(4)
    for x_t, a_t, y_t in zip(x[:J], a[:J], y[:J], strict=True):
        n[x_t, a_t] += 1
        n_xy[x_t, y_t] += 1
    gain = (n * mdp.rewards).sum() / J
    earned = (n * (mdp.rewards - gain)).sum(-1)
    v = np.linalg.pinv(np.diag(n.sum(-1)) - n_xy) @ earned
    q = np.zeros((4, 2))
    for x_t, a_t, y_t in zip(x[:J], a[:J], y[:J], strict=True):
        q[x_t, a_t] += (mdp.rewards[x_t, a_t] - gain + v[y_t]) / n[x_t, a_t]
    found = np.array(seen[1][0].total[0])
    np.testing.assert_allclose(found[n > 0], (q - v[:, None])[n > 0], rtol=0, atol=1e-10)
    assert not found[n == 0].any()
