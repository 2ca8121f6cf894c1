"""Value-targeted ridge regression on values by age, one for all stages.

    Lambda_1 = lambda I,  b_1 = 0
    phi_h(x, a) = sum_x' psi(x, a, x') V_{h+1}(x')
    Lambda += phi_h(x, a) phi_h(x, a)^T,   b += phi_h(x, a) V_{h+1}(y)     after a step of (x, a) at age h that led to y
    theta_hat = Lambda^{-1} b

with V_0, ..., V_S of the plan that was being played; ages beyond S - 1 count as S - 1, and V_S = 0 teaches nothing.
theta lies in {||theta - theta_hat||_Lambda <= beta} at all times, with probability 1 - delta, where

    beta = (H / 2) sqrt(ln det Lambda - d ln lambda + 2 ln(1 / delta)) + sqrt(lambda) B_theta

(Abbasi-Yadkori, Pal, Szepesvari 2011, Theorem 2, for noise that is H/2-sub-Gaussian: V(y) - (P V)(x, a) is, by
Hoeffding's lemma, since V lies in [0, H]).

The inverse goes on by Sherman and Morrison's formula, and is computed anew after every RENEWAL steps of a seed. Before
every plan it is tried on one vector, Lambda^{-1} Lambda 1 = 1, and computed anew where that is off by more than OFF
(`checked`). A Lambda whose inverse is then off by more than LOST still is refused. The data are a `Gram` whose `opened`
is ln det Lambda of the last plan.
"""

import math

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array, Path
from ravi.estimators.gram import Gram, add_feature, growth, indefinite
from ravi.estimators.ridge import invert_root
from ravi.planning.backward import Lists

RENEWAL = 1000  # plays after which the inverse and the determinant are computed anew
OFF = 1e-7  # error of the inverse on a vector of ones above which it is computed anew
LOST = 1e-2  # and above which, computed anew, it is of no use


def learn(psi: Lists, D: Gram, plays: Array, V: Array, began: Array, path: Path) -> None:
    """Add a path that began at these ages (n,), under the values V (n, S + 1, X); D and plays (n,) in place."""
    if not _learn(psi, *D[:3], D.response, plays, V, began, *path[:3], path.reset, path.length):
        raise indefinite()


def checked(D: Gram) -> Gram:
    """The data with inverses that are right to working precision, in place."""
    if not _checked(*D[:3]):
        raise indefinite()
    return D


def radius(D: Gram, horizon: float, delta: float, regularization: float, parameter_bound: float) -> Array:
    """beta   (n,)."""
    d = D.response.shape[1]
    grown = np.maximum(D.log_det - d * math.log(regularization), 0.0)
    return horizon / 2 * np.sqrt(grown + 2 * math.log(1 / delta)) + math.sqrt(regularization) * parameter_bound


@compiled
def _learn(  # type: ignore[no-untyped-def]
    psi, covariance, inverse, log_det, response, plays, V, began, states, actions, targets, resets, length
):
    """Whether every Lambda that was renewed is positive definite."""
    n, d = response.shape
    A, last = psi.pair.shape[0] // V.shape[2], V.shape[1] - 2
    phi, g = np.zeros(d), np.empty(d)
    for i in range(n):
        age = began[i]
        for l in range(length[i]):
            v = V[i, min(age, last) + 1]
            q, target = psi.rank[states[i, l] * A + actions[i, l]], v[targets[i, l]]
            some, m = False, 0
            while m < psi.count.shape[0] and q < psi.count[m]:
                total = 0.0
                for e in range(psi.start[m, q], psi.start[m, q + 1]):
                    total += psi.value[e] * v[psi.successor[e]]
                c = psi.coordinate[m, q]
                phi[c] = total
                response[i, c] += total * target
                some = some or total != 0.0
                m += 1
            if some:
                log_det[i] += growth(add_feature(covariance[i], inverse[i], phi, g))
            for j in range(m):
                phi[psi.coordinate[j, q]] = 0.0
            age = 0 if resets[i, l] else age + 1
            plays[i] += 1
            if plays[i] % RENEWAL == 0 and not _renew(covariance[i], inverse[i], log_det, i):
                return False
    return True


@compiled
def _checked(covariance, inverse, log_det):  # type: ignore[no-untyped-def]
    """Whether every inverse is right, some of them after a renewal."""
    n, d, _ = covariance.shape
    ones, image = np.empty(d), np.empty(d)
    for i in range(n):
        if not (math.isfinite(log_det[i]) and _miss(covariance[i], inverse[i], ones, image) <= OFF):
            if not _renew(covariance[i], inverse[i], log_det, i):
                return False
            if not (math.isfinite(log_det[i]) and _miss(covariance[i], inverse[i], ones, image) <= LOST):
                return False
    return True


@compiled
def _miss(Lam, inverse, ones, image):  # type: ignore[no-untyped-def]
    """max |Lambda^{-1} Lambda 1 - 1|, or inf where that is not finite; `ones` and `image` are scratch."""
    d = image.shape[0]
    ones[:] = 0.0
    image[:] = 0.0
    for j in range(d):  # both are symmetric: rows for columns
        for c in range(d):
            image[c] += Lam[j, c]
    for j in range(d):
        f = image[j]
        for c in range(d):
            ones[c] += f * inverse[j, c]
    worst = 0.0
    for c in range(d):
        if not abs(ones[c] - 1.0) <= worst:
            worst = abs(ones[c] - 1.0)
            if not math.isfinite(worst):
                return math.inf
    return worst


@compiled
def _renew(Lam, inverse, log_det, i):  # type: ignore[no-untyped-def]
    """Lambda^{-1} = R R^T and ln det Lambda from Lambda itself; zeros are passed over. Whether it is definite."""
    d = Lam.shape[0]
    R, column = np.empty((d, d)), np.empty(d)
    if not invert_root(Lam, R):
        return False
    inverse[:] = 0.0
    total = 0.0
    for c in range(d):
        total -= 2.0 * math.log(R[c, c])
        for k in range(c + 1):
            column[k] = R[k, c]
        for j in range(c + 1):
            f = column[j]
            if f != 0.0:
                for k in range(c + 1):
                    inverse[j, k] += f * column[k]
    log_det[i] = total
    return True
