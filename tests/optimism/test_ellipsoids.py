"""Maxima over ellipsoids are what generic solvers and duality say they are."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from ravi import ids
from ravi.core import MDP
from ravi.optimism.ellipsoids import chosen, kernels, null_space, unit_mass
from ravi.optimism.simplex import Ball, ball, maximum
from ravi.validation import InputError


def instance(rng, d, *, noise, features, beta, collinear=False, ridge=1.0, rounded=False):
    """Lambda of some features, a centre near the simplex, a radius and phi."""
    F = rng.uniform(0, features, (int(rng.integers(1, 40)), d))
    if collinear:
        F = F[:, :1] + 1e-3 * rng.normal(size=F.shape)
    phi = rng.uniform(0, 10, d)
    centre = rng.dirichlet(np.ones(d)) + noise * rng.normal(size=d)
    return ridge * np.eye(d) + F.T @ F, centre, beta, np.round(phi / 4) * 4 if rounded else phi


def solved(Lam, centre, beta, phi):
    B = ball(Lam[None], centre[None], np.array([float(beta)]))
    value, theta, gap = (each[0] for each in maximum(B, phi[None]))
    return value, theta, gap, np.hypot(B.radius[0], B.away[0])


def distance(Lam, centre, theta):
    return np.sqrt(max((theta - centre) @ Lam @ (theta - centre), 0))


def bound(Lam, centre, beta, phi, theta):
    """min over mu >= 0 of max_i (phi - mu Lam v)_i + mu (v Lam centre + beta ||v||): above every feasible value."""
    pull = Lam @ (theta - centre)
    slope = pull @ centre + beta * distance(Lam, centre, theta)
    rows = np.column_stack([-np.ones(len(phi)), -pull])
    found = linprog([1, slope], A_ub=rows, b_ub=-phi, bounds=[(None, None), (0, None)], method="highs")
    return found.fun if found.status == 0 else phi.max()


def assert_maximum(case):
    """Feasible, and no feasible point is better: by a linear programme in the multiplier, independent of the solver."""
    Lam, centre, beta, phi = case
    value, theta, gap, radius = solved(*case)
    width = max(np.ptp(phi), 1e-3)
    noise = 1e-13 * Lam.max() * max(1.0, np.abs(theta - centre).max()) ** 2  # rounding in squared distances
    assert theta.min() >= 0
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    assert distance(Lam, centre, theta) ** 2 <= radius**2 * (1 + 1e-7) + noise
    assert value == pytest.approx(theta @ phi, abs=1e-7 * width)
    assert gap <= 1e-7 * width
    pull = Lam @ (theta - centre)
    if beta == 0 or ball(Lam[None], centre[None], np.array([beta])).empty[0]:  # one point: no vertex lies downhill
        assert pull.min() >= pull @ theta - 1e-9 * Lam.max()
    elif distance(Lam, centre, theta) > 0.999 * radius:
        assert bound(Lam, centre, radius, phi, theta) - theta @ phi <= 1e-6 * width
    else:
        assert theta @ phi >= phi.max() - 1e-6 * width


@pytest.mark.parametrize("beta", [0.0, 0.01, 0.3, 3.0, 1000.0])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 30])
def test_maxima_are_certified(d, beta):
    rng = np.random.default_rng(100 * d + int(beta))
    for k in range(25):
        assert_maximum(instance(rng, d, noise=(0, 0.01, 0.3)[k % 3], features=(1, 20)[k % 2], beta=beta))


def test_maxima_are_certified_where_phi_has_ties():
    rng = np.random.default_rng(8)
    for k in range(150):
        assert_maximum(instance(rng, 2 + k % 7, noise=0.1, features=3, beta=(0.2, 1, 5)[k % 3], rounded=True))


def by_supports(Lam, centre, beta, phi):
    """The maximum by enumeration: on the plane of every face, the top of the ellipse there, if it lies in the face."""
    d, top = len(phi), -np.inf
    for face in itertools.chain.from_iterable(itertools.combinations(range(d), m) for m in range(1, d + 1)):
        corner, along = np.eye(d)[face[0]], np.eye(d)[list(face[1:])] - np.eye(d)[face[0]]
        inner, lean = along @ Lam @ along.T, along @ (phi - phi.max())
        middle = corner + np.linalg.solve(inner, along @ Lam @ (centre - corner)) @ along
        room, rise = beta**2 - (middle - centre) @ Lam @ (middle - centre), np.linalg.solve(inner, lean)
        if room >= -1e-12 * Lam.max():
            far = np.sqrt(max(room, 0.0) / (rise @ lean)) if rise @ lean > 0 else 0.0
            for theta in (middle, middle + far * rise @ along):
                if theta.min() >= -1e-10:
                    top = max(top, theta @ (phi - phi.max()))
    return phi.max() + top


def nearly_tied(rng, d):
    """The centre on a face of the simplex, where phi is the same up to rounding; elsewhere another value, or two."""
    F = rng.uniform(0, 3, (int(rng.integers(1, 20)), d))
    F[:, 1] = F[:, 0]  # two that the past cannot tell apart
    support = rng.permutation(d)[: int(rng.integers(2, d))]
    centre = np.zeros(d)
    centre[support] = rng.dirichlet(np.ones(len(support)))
    phi = rng.uniform(0, 10, d) if rng.integers(2) else np.full(d, rng.uniform(0, 10))
    phi[support] = rng.uniform(0, 10)
    phi *= 1 + rng.integers(-3, 4, d) * 2.0**-52 * 10.0 ** rng.integers(0, 7)
    return 10.0 ** rng.integers(-4, 1) * np.eye(d) + F.T @ F, centre, 10.0 ** rng.uniform(-2, 1), phi


@pytest.mark.parametrize("d", [3, 4, 5])
def test_where_phi_is_tied_up_to_rounding_the_maximum_is_that_over_all_supports(d):
    rng = np.random.default_rng(d)
    for _ in range(150):
        Lam, centre, beta, phi = nearly_tied(rng, d)
        value, theta, gap, radius = solved(Lam, centre, beta, phi)
        width = np.ptp(phi)
        assert value == pytest.approx(by_supports(Lam, centre, radius, phi), abs=1e-7 * max(width, 1e-3))
        assert value == pytest.approx(theta @ phi, abs=1e-7 * max(width, 1e-3))
        assert gap <= 1e-7 * width
        assert distance(Lam, centre, theta) <= radius * (1 + 1e-7)


def test_a_tie_on_the_support_of_the_nearest_point_gives_no_nan():
    """Found in play: two pairs of simulators that the past hardly tells apart, the centre between two with one phi.

    Rounding gave theta(s) a speed of 1e-16 where it stands still, and s began at 4e16: s phi drowned all else.
    """
    a, b, c, e = 4.403094626433102, 4.393094626433102, 0.00499999999999989, 0.00499999999999901
    one_pair = [[a, b, c, e], [b, a, c, e]]
    Lam = np.array([[*one_pair, [c, c, 4.403094626433103, b], [e, e, b, 4.403094626433101]]])
    centre = np.array([[0.0, 0.0, 0.4999999575717598, 0.5000000424282401]])
    nearest = np.array([[0.0, 0.0, 0.4999999575717637, 0.5000000424282363]])
    corners = np.array([[8.791189252866204, 8.791189252866204, 5.000000848564718e-03, 4.999999151435140e-03]])
    least, none = np.array([5.495323605393168e-16]), np.zeros(1)
    B = Ball(Lam, centre, np.array([2.827523331540501]), nearest, least, corners, none, none > 0)
    tied = float.fromhex("0x1.ed06f69446738p+0")
    phi = np.array([[float.fromhex("0x1.75632be20a348p+1"), float.fromhex("0x1.7d4c2f837b49cp+1"), tied, tied]])
    (value,), (theta,), (gap,) = maximum(B, phi)
    assert value == pytest.approx(by_supports(Lam[0], centre[0], B.radius[0], phi[0]), abs=1e-12)
    assert distance(Lam[0], centre[0], theta) == pytest.approx(B.radius[0], rel=1e-9)
    assert gap <= 1e-12


def test_an_ellipsoid_that_misses_the_simplex_is_enlarged_until_it_touches():
    rng = np.random.default_rng(10)
    for k in range(50):
        Lam, centre, _, phi = instance(rng, 2 + k % 6, noise=1.0, features=2, beta=0.0)
        value, theta, _, radius = solved(Lam, centre, 0.0, phi)
        assert radius == pytest.approx(distance(Lam, centre, theta), abs=1e-9)
        pull = Lam @ (theta - centre)  # nearest: no vertex lies downhill
        assert pull.min() >= pull @ theta - 1e-8 * np.abs(Lam).max()
        wider = solved(Lam, centre, radius * (1 + 1e-9), phi)[0]
        assert value <= wider + 1e-12
        assert wider <= value + 1e-3 * np.ptp(phi) + 1e-12  # and the maximum is continuous there


@pytest.mark.parametrize("mdp", ["hypercube/4,discount=0.9", "ensemble/4,6,2,2", "riverswim/mixture/5"])
def test_the_null_space_is_that_of_a_generic_solver(mdp):
    problem = ids.mdp(mdp).problem
    d, rng = problem.dimension, np.random.default_rng(13)
    space = unit_mass(problem)
    rows = problem.features.sum(2).reshape(-1, d)
    np.testing.assert_allclose(space.basis.T @ space.basis, np.eye(space.basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(rows @ space.basis, 0, atol=1e-12)
    for _ in range(30):
        F = rng.normal(size=(10, d))
        Lam, centre = np.eye(d) + F.T @ F, ids.mdp(mdp).parameter + 0.3 * rng.normal(size=d)
        beta, phi = rng.uniform(1, 4), rng.uniform(0, 10, d)
        flat = null_space(space, Lam[None], centre[None], np.array([beta]))
        theta, M = flat.centre[0], flat.shape[0]
        np.testing.assert_allclose(rows @ theta, 1, atol=1e-9)  # mass 1
        least = distance(Lam, centre, theta)
        assert flat.empty[0] == (least > beta)
        lean = M @ phi
        theta = theta + flat.radius[0] * lean / max(np.sqrt(phi @ lean), 1e-12)  # where the maximum is
        np.testing.assert_allclose(rows @ theta, 1, atol=1e-9)
        radius = max(beta, least)
        assert distance(Lam, centre, theta) == pytest.approx(radius, rel=1e-7)
        pull = Lam @ (theta - centre)  # phi = mu pull + sum of rows, mu >= 0: no feasible direction rises
        fit = np.linalg.lstsq(np.column_stack([pull, rows.T]), phi, rcond=None)[0]
        if not flat.empty[0]:
            np.testing.assert_allclose(np.column_stack([pull, rows.T]) @ fit, phi, atol=1e-7)
            assert fit[0] >= 0


def test_features_that_are_no_kernels_are_named():
    with pytest.raises(InputError, match=r"features\[0, 0, :, 0\] is negative"):
        kernels(ids.mdp("hypercube/4").problem)
    whole = ids.mdp("ensemble/3,5,2,2")
    psi = whole.features.copy()
    psi[3, 1, :, 2] *= 0.5
    theta = np.array([0.5, 0.5, 0.0])
    half = MDP.from_features(psi, theta, whole.successors, whole.rewards, 0.9, whole.initial)
    with pytest.raises(InputError, match=r"features\[3, 1, :, 2\] sums to 0\.5"):
        chosen("exact-simplex", half.problem)
    assert chosen("auto", half.problem) == "null-space"
    assert chosen("auto", whole.problem) == "exact-simplex"
    with pytest.raises(InputError, match="no features"):
        chosen("auto", ids.mdp("riverswim/5").problem)
    with pytest.raises(InputError, match="inner is 'exact', not one of"):
        chosen("exact", whole.problem)
