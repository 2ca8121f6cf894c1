"""What are expm1 and log1p of small numbers, without a call? Polynomials, to less than two units in the last place.

They have the same bits on every machine, and LLVM works on several numbers at once.
"""

from ravi._jit.functions import compiled

STEEP = -0.69  # the least argument of expm1. More than -ln 2: a mean of expm1 is more than -1/2

# expm1(z) = z + z^2 sum_i E_i z^i for STEEP <= z <= 0, and log1p(s) = 2 u + u^3 sum_i L_i u^2i for -1/2 <= s <= 0 with
# u = s / (2 + s): interpolation at Chebyshev's nodes, whose error is below 1e-17 of the result.
E0, E1, E2, E3 = 0.5, 0.16666666666666632, 0.041666666666646555, 0.008333333332877804
E4, E5, E6 = 0.0013888888835912152, 0.00019841266242192937, 2.480143457004929e-05
E7, E8, E9, E10 = 2.7553143985942928e-06, 2.748360505769863e-07, 2.4235379994127273e-08, 1.5627905722427964e-09
L0, L1, L2, L3 = 0.6666666666666666, 0.40000000000014585, 0.2857142856710876, 0.22222222717427864
L4, L5, L6 = 0.18181789436132859, 0.15385570064958623, 0.13314144209654935
L7, L8, L9 = 0.12001072809590713, 0.08800738486144674, 0.1616404561194353


@compiled
def near_expm1(z):  # type: ignore[no-untyped-def]
    """expm1 for STEEP <= z <= 0."""
    z = float(z)  # Python is slow with numbers of NumPy
    y = z * z
    even = (((E10 * y + E8) * y + E6) * y + E4) * y + E2
    odd = (((E9 * y + E7) * y + E5) * y + E3) * y + E1
    return z + y * (E0 + (z * odd + y * even))


@compiled
def near_log1p(s):  # type: ignore[no-untyped-def]
    """log1p for -1/2 <= s <= 0. With h = s^2 / 2, 2 u = s - h + u h, of which the first term has all its digits."""
    s = float(s)
    u, h = s / (2 + s), s * s / 2
    w = u * u
    y = w * w
    even = (((L8 * y + L6) * y + L4) * y + L2) * y + L0
    odd = (((L9 * y + L7) * y + L5) * y + L3) * y + L1
    return s - (h - u * (h + w * (even + w * odd)))
