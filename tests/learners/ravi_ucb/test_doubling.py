"""RAVI-UCB without T: RAVI-UCB in its first phase, its own constants on all data in every other, and its price."""

from math import log, sqrt

import pytest

from ravi.learners.ravi_kl import ravi_kl
from ravi.learners.ravi_ucb.doubling import LONGEST
from ravi.learners.ravi_ucb.doubling import doubling as doubling_of
from ravi.learners.ravi_ucb.doubling import tabular as doubling
from ravi.mdps import riverswim
from ravi.runtime.api import run
from ravi.theory import doubling as theory
from ravi.theory import tabular
from tests.helpers import spy


def test_an_epoch_may_pass_over_phases():
    mdp = riverswim(4, 0.99)
    seen = []
    run(doubling(mdp.problem, 2000), mdp, 2000, 1, measures=[spy(seen)])
    phases = [int(state.phase[0]) for state, _ in seen]
    assert phases == sorted(phases)
    assert len(set(phases)) < phases[-1] + 1


@pytest.mark.parametrize("first", [1, 7])
def test_phases_are_those_that_T_reaches_into(first):
    for T in range(1, 300):
        covered, i = 0, 0
        while covered < T:
            covered += first * 2**i
            i += 1
        assert theory.phases(T, first) == i
        assert theory.end(i - 1, first) == covered
        assert theory.length(i - 1, first) == first * 2 ** (i - 1)


def test_the_sum_of_roots_is_within_the_factor_and_comes_close():
    assert pytest.approx(3.41421356, abs=1e-8) == theory.FACTOR
    worst = 0.0
    for T in range(1, 20_000):
        ratio = sum(sqrt(theory.length(i, 1)) for i in range(theory.phases(T))) / sqrt(T)
        assert ratio <= theory.FACTOR
        worst = max(worst, ratio)
    assert worst > 0.99 * theory.FACTOR


def test_the_bound_costs_the_factor():
    """At T = 2^k, where it is worst: each part in sqrt(T) within the factor, but for what logarithms and lower orders
    add, which is computed."""
    H, X, A = 10.0, 6, 2
    for k in range(10, 50, 5):
        T = 2**k
        whole, known = theory.tabular(H, X, A, T), tabular.corrected(H, X, A, T)
        logs = sqrt(log(X * A * 2 * T * T) / log(X * A * T * T))
        m = theory.phases(T)
        late = 2 * (2 + sqrt(2)) * H * X * A * 8 * H * sqrt(X * log(X * A * 2 * T * T))  # of a phase, at most
        padding = 2 * 2 * sqrt(2) * sqrt(X * A * H) * 8 * H * sqrt(X * log(X * A * 2 * T * T))
        assert whole.bonus <= theory.FACTOR * logs * known.bonus + m * (late + padding)
        epochs = sum(sqrt(log(A) / (2 * 2**i)) * H**3 for i in range(m))  # gamma H^3 sqrt(ln A / (2 T)) of each
        assert whole.optimisation <= theory.FACTOR * known.optimisation + epochs
        assert whole.failure == pytest.approx(m)
        if k >= 30:
            assert 0.97 * theory.FACTOR < whole.total / known.total < 1.03 * theory.FACTOR


def test_sets_go_in_phases_too():
    """In the first phase it is the learner that knows T."""
    problem, T = riverswim(4, 0.8).problem, 200

    def build(first):
        def phase(i):
            end, delta = min(theory.end(i, first), LONGEST), 1 / theory.length(i, first)
            return ravi_kl.tabular(problem, end, plan="mirror", inner=2, delta=delta)

        return doubling_of("of sets", first, phase)

    untold, known = (run(one, riverswim(4, 0.8), T, 2) for one in (build(T), build(T).plan.learner(0)))
    assert untold.regret.tobytes() == known.regret.tobytes()
    assert run(build(10), riverswim(4, 0.8), T, 2).state.phase.tolist() == [theory.phases(T, 10) - 1] * 2
