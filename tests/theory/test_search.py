"""How many steps bounds ask for: the table of first useful T, minimality by brute force, bounds that first rise."""

from math import log, sqrt

import pytest

from ravi.theory import first_useful, generic, mixture, smallest_steps
from ravi.validation import InputError


def by_hand(holds, most):
    """The smallest T from which on `holds` is true up to `most`."""
    return max((T for T in range(1, most + 1) if not holds(T)), default=0) + 1


def hump(T):
    """Useful at T = 1 to 3, not at 4 to 40, useful from 41 on."""
    return 0.2 * T if T <= 3 or T > 40 else 2 * T


CHEAP = {
    "root": lambda T: 37 * sqrt(T),
    "root and log": lambda T: 3 * sqrt(T) * log(T + 1),
    "zero": lambda T: 0.0,
    "hump": hump,
    "rises first": lambda T: 2 * sqrt(T) * log(T),
    "generic": lambda T: generic.corrected(3.0, 2, T, sqrt(T)),
}


@pytest.mark.parametrize("name", CHEAP)
def test_answers_are_minimal(name):
    bound, most = CHEAP[name], 20_000
    assert first_useful(bound, limit=most) == by_hand(lambda T: float(bound(T)) < T, most)
    for eps in (0.9, 0.5, 0.3):
        assert smallest_steps(bound, eps, limit=most) == by_hand(lambda T, eps=eps: float(bound(T)) / T <= eps, most)


def test_a_ratio_that_rises_far_out_is_followed_to_where_it_falls():
    """A large lambda makes log(1 + c T) nearly c T up to 1/c = 1e10: the ratio rises to there, and only then falls."""
    bound = lambda T: mixture.printed(10, 1, 1, T, bound=1, regularization=1e12)  # noqa: E731
    ratio = lambda T: bound(T).total / T  # noqa: E731
    assert ratio(10**6) < ratio(10**8)
    eps = 1.1 * ratio(10**18)
    T = smallest_steps(bound, eps)
    assert ratio(T) <= eps < ratio(T - 1)
    assert all(ratio(T * 10**i // 10**3) > eps for i in range(3))
    assert all(ratio(2**i) <= eps for i in range(T.bit_length(), 62))


def test_errors_say_what_is_wrong():
    with pytest.raises(InputError, match=r"bound\(T\) < T does not hold at the limit, T = 1000"):
        first_useful(lambda T: 1000.0, limit=1000)
    with pytest.raises(InputError, match=r"bound\(T\) / T <= 0.01 does not hold at the limit"):
        smallest_steps(lambda T: 0.02 * T, 0.01)
    for eps in (0, float("nan")):
        with pytest.raises(InputError, match=f"eps is {eps}"):
            smallest_steps(lambda T: 1.0, eps)
    with pytest.raises(InputError, match="limit is 0"):
        first_useful(lambda T: 1.0, limit=0)
    with pytest.raises(InputError, match=r"bound\(4611686018427387904\) is nan"):
        first_useful(lambda T: float("nan"))
