"""The radii of `ravi.live.confidence_sets` by their formulas, for counts that the test keeps itself."""

from collections import Counter, defaultdict
from fractions import Fraction
from math import factorial, log, prod

import numpy as np
import pytest

import ravi
from ravi.live.confidence_sets import confidence_sets

X, A, DELTA = 3, 2, Fraction(1, 20)


def outcome(x, a, k):
    """Where the k-th play of a pair leads, and its reward: of two pairs 0 or 1 in turns, else one half."""
    return (x + a + (k % 3 == 2)) % X, float(k // 3 % 2) if (x, a) in ((0, 0), (2, 1)) else 0.5


def played(steps):
    """An agent, the outcomes of its plays by pair, and how often it started where."""
    agent = ravi.agent("uniform", states=X, actions=A, discount=0.6, steps=steps)
    plays, starts, x, fresh = defaultdict(list), Counter(), 0, True
    while not agent.done:
        starts[x] += fresh
        a = agent.act(x)
        plays[x, a].append(outcome(x, a, len(plays[x, a])))
        fresh = agent.observe(x, a, *plays[x, a][-1])
        x = len(plays[x, a]) % 2 if fresh else plays[x, a][-1][0]
    agent.end()
    return agent, plays, starts


def kt(*counts):
    """The Dirichlet(1/2, ..., 1/2) mixture of a sequence with these counts, exactly."""
    ways = prod(Fraction(2 * i + 1, 2) for n in counts for i in range(n))
    return ways / prod(Fraction(2 * i + len(counts), 2) for i in range(sum(counts)))


def radius_best(plays):
    return log(Fraction(2 * (X + 1)) / DELTA / kt(plays, 0))


def radius_low(outcomes, closed):
    """Of (y, r) of every play: ln(2 (X A + 1) / delta) + ln 1/Q, less the entropy of w'."""
    n, K = Counter(y for y, _ in outcomes), len({y for y, _ in outcomes})
    price, weights = 1 / kt(*n.values()), []
    for y, n_y in n.items():
        rewards = [r for z, r in outcomes if z == y]
        parts = [n_y]
        if len(set(rewards)) > 1:
            parts = [rewards.count(0.0), rewards.count(1.0)]
            price /= kt(*parts)
        weights += [w * Fraction(1 if closed else n_y - 1, 1 if closed else n_y) for w in parts]
    if not closed:
        price *= Fraction(4**K, factorial(K))
    of_w = sum(float(w) * log(w) for w in (*weights,) if w) - (float(W) * log(W) if (W := sum(weights)) else 0.0)
    return max(log(Fraction(2 * (X * A + 1)) / DELTA * price) + of_w, 0.0)


@pytest.mark.parametrize("assume", ["nothing", "seen"])
@pytest.mark.parametrize("steps", [1, 4, 30, 200])
def test_radii_are_their_formulas(steps, assume):
    agent, plays, starts = played(steps)
    found = confidence_sets(agent, float(DELTA), assume)
    (best, best_start), (low, low_start) = found.best, found.low
    pairs = [(x, a) for x in range(X) for a in range(A)]
    at_start = [(x, 0.0) for x in starts.elements()]
    np.testing.assert_allclose(best.radius, [radius_best(len(plays[pair])) for pair in pairs], rtol=1e-12)
    np.testing.assert_allclose(best_start.radius, radius_best(len(at_start)), rtol=1e-12)
    wanted = [radius_low(plays[pair], closed) for pair, closed in zip(pairs, low.closed, strict=True)]
    np.testing.assert_allclose(low.radius, wanted, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(low_start.radius, radius_low(at_start, low_start.closed[0]), rtol=1e-11)
    assert assume == "seen" or not (low.closed.any() or low_start.closed.any())
    assert assume == "nothing" or steps < 200 or low.closed.any()


def test_a_radius_by_hand():
    """Nothing was played: the levels alone. One state, one action, three plays that all stayed and earned the same:
    n = 3, K = 1, KT over one symbol is 1, and w' = 2 is all of W."""
    best, low = (
        of[0].radius
        for of in confidence_sets(ravi.agent("uniform", states=2, actions=3, discount=0.5, steps=9), 0.1)[:2]
    )
    np.testing.assert_allclose(best, log(60), rtol=1e-14)  # 2 (2 + 1) / 0.1
    np.testing.assert_allclose(low, log(140), rtol=1e-14)  # 2 (6 + 1) / 0.1
    agent = ravi.agent("uniform", states=1, actions=1, discount=0.5, steps=3)
    while not agent.done:
        agent.observe(0, agent.act(0), 0, 0.25)
    agent.end()
    best, low = (of[0].radius for of in confidence_sets(agent, 0.1)[:2])
    np.testing.assert_allclose(best, log(40 * 16 / 5), rtol=1e-14)  # kappa(3) = ln 1 / (1/2 3/4 5/6) = ln 16/5
    np.testing.assert_allclose(low, log(40 * 4), rtol=1e-14)  # 2 K ln 2 - ln K! = ln 4
