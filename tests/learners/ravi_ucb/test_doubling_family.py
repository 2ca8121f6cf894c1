"""Doubling around every learner of the family: each phase is its base on all data; the price is `theory.doubling`."""

from math import log, sqrt

import numpy as np
import pytest

from ravi import ids
from ravi.learners.ravi_ucb import plus as ravi_ucb_plus
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.runtime import tree
from ravi.runtime.api import run
from ravi.theory import doubling as theory
from ravi.theory import mixture, tabular
from ravi.validation import InputError
from tests.helpers import script, spy

RIVER, ENSEMBLE = "riverswim/mixture/4,discount=0.8", "ensemble/2,4,2,2,discount=0.75"
BASES = {
    "ravi-ucb": ("scale=0.003,step_scale=30", ravi_ucb.tabular),
    "ravi-ucb/mixture": ("scale=0.05,step_scale=30", ravi_ucb.linear_mixture),
    "ravi-ucb+": ("scale=0.3,inner=3,step_scale=5", ravi_ucb_plus.tabular),
    "ravi-ucb+/mixture": ("scale=0.3,inner=3,step_scale=5", ravi_ucb_plus.linear_mixture),
}
MORE = {
    "ravi-ucb+": "scale=0.3,inner=2,fresh=off,centre=off,span=off,gamma=off,balance=off",
    "ravi-ucb+/mixture": "scale=0.3,inner=2,fresh=off,span=off,radius=off,regularization=2",
}
CASES = [(name, options) for name, (options, _) in BASES.items()] + list(MORE.items())
FIELDS = ("V", "Q", "log_policy", "policy")


@pytest.mark.parametrize(("name", "options"), CASES)
def test_in_its_first_phase_it_is_the_base_bit_for_bit(name, options):
    T = 300
    told = run(f"{name},{options}", RIVER, T, 4, record=["stream"])
    untold = run(f"{name}/doubling,first={T},{options}", RIVER, T, 4, record=["stream"])
    for field in FIELDS:
        assert getattr(told.state, field).tobytes() == getattr(untold.state, field).tobytes()
    assert told.results["stream_action"].tobytes() == untold.results["stream_action"].tobytes()
    assert np.ptp(told.state.policy, axis=-1).max() > 0.1


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_phase_is_the_base_begun_anew_on_the_data_of_all_phases_before(name, options):
    """The base of every phase is built and led by hand, on the paths of the run."""
    world, first, T, seen = ids.mdp(ENSEMBLE), 11, 300, []
    made = run(f"{name}/doubling,first={first},{options}", world, T, [5], measures=[spy(seen)])
    step_scale = ids.learner_options(f"{name},{options}")["step_scale"]
    state, phase, phases = None, -1, []
    for k, (after, path) in enumerate(seen):
        t = int(made.T_k[0][k])  # its first play
        now = max(i for i in range(20) if (2**i - 1) * first < t)
        if now != phase:
            l, S = 2**now * first, (2 ** (now + 1) - 1) * first
            eta = ids.learner(f"{name},{options},delta={1 / l!r}", world, l).parts.eta / step_scale
            base = ids.learner(f"{name},{options},delta={1 / l!r},eta={eta!r}", world, S)
            data, state = (None if state is None else state.data), base.init(made.batch.walkers.key)
            state = state if data is None else state._replace(data=data)
            state = state._replace(time=np.array([t])) if hasattr(state, "time") else state
            phase = now
            phases.append(now)
        state = base.plan(state)
        assert after.phase[0] == phase
        for field in FIELDS:
            np.testing.assert_allclose(getattr(after, field), getattr(state, field), rtol=0, atol=1e-12)
        state = base.add(state, path)
    assert phases == list(range(theory.phases(T, first)))
    for (_, one), (_, other) in zip(tree.leaves(state.data), tree.leaves(made.state.data), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_length_of_a_run_is_not_known(name, options):
    short, long = (run(f"{name}/doubling,{options}", RIVER, T, 3, record=["stream"]) for T in (200, 500))
    assert short.settings == long.settings
    assert not {"eta", "beta", "delta"} & set(short.settings)
    for field in ("stream_state", "stream_action", "stream_successor"):
        assert short.results[field].tobytes() == np.ascontiguousarray(long.results[field][:, :200]).tobytes()


def test_the_longest_run_there_is_has_its_phases():
    """Counts are 32-bit: the union bound of the last phase is over no more plays than can be made."""
    phases = ids.learner("ravi-ucb+/doubling", ids.mdp("riverswim/4"), 10).plan
    last = phases.learner(theory.phases(2**31 - 2) - 1)
    assert last.parts.eta > 0
    with pytest.raises(InputError, match="first is 4294967296"):
        ids.learner("ravi-ucb+/doubling,first=4294967296", ids.mdp("riverswim/4"), 10)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("ravi-ucb+/doubling,first=0", "first is 0"),
        ("ravi-ucb/mixture/doubling,first=0", "first is 0"),
        ("ravi-ucb/mixture/doubling", "has no features"),
        ("ravi-ucb+/mixture/doubling", "has no features"),
        ("ravi-ucb+/mixture/doubling,weights=variance", "no option 'weights'"),
        ("ravi-ucb+/doubling,eta=0.1", "no option 'eta'"),
        ("ravi-ucb/mixture/doubling,regularization=0", "regularization is 0"),
        ("ravi-ucb+/doubling,centre=off", "span=on needs centre=on"),
    ],
)
def test_what_cannot_be_is_refused(learner, message):
    with pytest.raises(InputError, match=message):
        run(learner, "riverswim/4", 10)


# ---- the theory


def test_the_bounds_of_plus_are_sums_over_phases_with_the_beta_of_all_data():
    H, gamma, X, A, d, T, M, first = 5.0, 0.8, 4, 2, 3, 700, 3, 10
    kappa, lam, B_theta, B_phi = H**2.5 / 4 - H**2 / 8, 0.5, 1.3, 1.1
    found = {
        "counts": theory.plus(H, X, A, T, inner_steps=M, first=first).total,
        "regression": theory.plus_linear_mixture(
            H, d, A, T, parameter_bound=B_theta, feature_bound=B_phi, regularization=lam, inner_steps=M, first=first
        ).total,
    }
    for name, total in found.items():
        right = -gamma * H  # m changes between m + 1 phases
        i = 0
        while (2**i - 1) * first < T:
            l, K = 2**i * first, 2**i * first / H + gamma
            S = []
            for plays in (l, (2 ** (i + 1) - 1) * first):
                if name == "counts":
                    beta = H * (sqrt((X * log(2) + log(X * A * plays * l)) / 2) + 1)
                    S.append(tabular.clipped_bonus_sum(H, X, A, l, gamma * beta))
                else:
                    beta = sqrt(d * log(1 + plays * (2 * B_phi) ** 2 / (lam * d)) + 2 * log(l)) + sqrt(lam) * B_theta
                    more = {"bound": 2 * B_phi / H, "regularization": lam}
                    S.append(mixture.clipped_bonus_sum(H, d, l, gamma * beta * H / 2, **more))
            eta = max(sqrt(log(A) / (kappa * M * K)), S[0] / (H * kappa * K))
            right += S[1] + H * (log(A) / (M * eta) + eta * kappa * K) + H**2 / M + 1 + H / M + gamma * H
            i += 1
        assert total == pytest.approx(right, rel=1e-12)


def test_a_first_q_of_counts_is_alike_for_all_pairs_only_with_span_or_clip():
    """What `start` is for: with data, and without span and clip, CB at V_0 = 0 differs between pairs."""
    world = ids.mdp("garnet/3,2,3,discount=0.75")
    for parts, alike in (("", True), (",span=off", True), (",clip=off", True), (",span=off,clip=off", False)):
        made = run(f"ravi-ucb+/doubling,inner=2{parts}", world, 50, 1)
        base = ids.learner(f"ravi-ucb+/doubling,inner=2{parts}", world, 50).plan.learner(3)
        zero = base.parts.estimator.embed(np.zeros((1, 3)))
        assert (np.ptp(base.parts.bonus(made.state.data, zero)) < 1e-12) == alike


@pytest.mark.parametrize("base", ["ravi-ucb", "ravi-ucb/mixture"])
def test_the_page_has_what_it_costs_each_of_them(base):
    make = script("figures/beyond")
    options = next(options for name, options in make.FAMILY if name == base)
    assert make.family(base, options) in make.PAGE.read_text()
