"""The maximum of <p, V> over the kernels with KL(p_hat || p) <= d, of one pair.

The dual (Filippi, Cappe, Garivier 2010) is a minimum over one number,

    max <p, V> = min_{nu >= max V} {nu - exp(sum p_hat ln(nu - V) - d)},

convex in nu; its slope is 1 - exp(f(nu) - d), f(nu) = sum p_hat ln(nu - V) + ln sum p_hat / (nu - V), so that
nu = max V if f(max V) <= d (mass goes to a best state that was never seen), and f(nu) = d otherwise: Newton in
ln(nu - max V), kept inside a bracket. An error in nu enters the value squared.
"""

import math

import numpy as np

from ravi._jit.functions import compiled

CERTAIN = 40.0  # radii from which max <p, V> is max V: exp(-40) of the span is less than rounding
FAR = 100.0  # spans from max V to nu, beyond which ln(1 + .) would lose digits
NARROW = 1e-4  # sqrt(2 d / variance) below which the maximum is its series, to 1e-12 of the span


@compiled
def shortfall(K, to, p, d, v, top, z, y):  # type: ignore[no-untyped-def]
    """max V - max {<p, V> : KL(p_hat || p) <= d}, and z = ln t, to start from next time.

    With V = top - s y, s the span and y in [0, 1], and nu = top + s t: s max_t {t exp(L - d) - t}, where
    L = sum p_hat ln(1 + y / t); and f = L + ln sum p_hat / (1 + y / t).
    """
    s, nearest = 0.0, np.inf
    for j in range(K):
        y[j] = top - v[np.uint32(to[j])]
        s = max(s, y[j])
        nearest = min(nearest, y[j])
    if s == 0.0:
        return 0.0, z
    if K == 1:  # then p_hat = 1, and nu = max V
        return s * math.exp(-d), z
    mean, square, cube = 0.0, 0.0, 0.0
    for j in range(K):
        y[j] /= s
        mean += p[j] * y[j]
    for j in range(K):
        off = mean - y[j]
        square += p[j] * off * off
        cube += p[j] * off * off * off
    if 2 * d < NARROW * NARROW * square:  # the series in sqrt(d), nu far away
        return s * (mean - math.sqrt(2 * d * square) - 2 * d / 3 * cube / square), z
    if nearest > 0.0:  # the best state was not seen: t = 0, unless f(0) > d
        logs, Z = 0.0, 0.0
        for j in range(K):
            logs += p[j] * math.log(y[j])
            Z += p[j] / y[j]
        if logs + math.log(Z) <= d or square == 0.0:
            return s * math.exp(logs - d), z
    if not math.isfinite(z):
        z = 0.5 * math.log(square / (2 * d))
    low, high = -np.inf, np.inf
    below = 0.0
    for _ in range(100):
        t = math.exp(z)
        L, Z, ZZ = _tilted(K, p, y, t)
        f = L + math.log(Z)
        slope = Z - ZZ / Z  # of f, in z
        below = t * math.expm1(L - d)
        if f > d:
            low = z
        else:
            high = z
        step = (d - f) / slope if f > 1.0 or f <= 0.0 else f * math.log(d / f) / slope
        if abs(math.expm1(f - d) * step) * t <= 1e-15 or not low < high:
            break
        z += step
        if not low < z < high:  # also where step is nan
            if low == -np.inf:
                z = high - 4.0
            elif high == np.inf:
                z = low + 4.0
            else:
                z = (low + high) / 2
    return s * max(below, 0.0), z


@compiled
def _tilted(K, p, y, t):  # type: ignore[no-untyped-def]
    """sum p ln(1 + y / t), sum p / (1 + y / t) and sum p / (1 + y / t)^2."""
    L, Z, ZZ, inverse = 0.0, 0.0, 0.0, 1.0 / t
    for j in range(K):
        gap = 1.0 + y[j] * inverse
        share = p[j] / gap
        L += p[j] * math.log(gap)
        Z += share
        ZZ += share / gap
    if t > FAR:
        L = 0.0
        for j in range(K):
            L += p[j] * math.log1p(y[j] * inverse)
    return L, Z, ZZ
