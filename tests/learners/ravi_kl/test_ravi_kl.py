"""RAVI-KL: what it plays is what its definition says, in every plan; limits, regrets, refusals."""

import math

import numpy as np
import pytest

import ravi
from ravi import ids, validation
from ravi.core import Measure
from ravi.learners.ravi_kl.plausible import Sets
from ravi.optimism.relative_entropy import ends
from ravi.runtime import tree
from tests.learners.ravi_kl.test_plausible import swept


def observed(learner, mdp, steps, seeds):
    """The learner's state at every plan, as copies."""
    seen = []

    def record(m, state, path, opening):
        if opening and path.length.any():
            seen.append((ravi.runtime.tree.copy(state), path.time.copy()))
        return m

    look = Measure("look", lambda keys: (), record, lambda m: {})
    run = ravi.run(learner, mdp, steps, seeds, measures=[look])
    return run, seen


@pytest.mark.parametrize("options", ["plan=greedy", "", "support=off", "slack=0.05", "candidate=posterior"])
def test_every_plan_is_what_the_definition_says(options):
    mdp = ravi.mdp("garnet/5,3,3,discount=0.8")
    X, A, H = mdp.states, mdp.actions, mdp.horizon
    id = f"ravi-kl,{options}" if options else "ravi-kl"
    learner = ids.learner(id, mdp, 400)
    run, seen = observed(learner, mdp, 400, 1)
    slack = {"plan=greedy": 0.0, "slack=0.05": 0.05}.get(options, 0.5)
    candidates = 0
    for state, time in seen:
        t = int(time[0])
        assert 1 + state.data.visits.sum() == t
        level = min(1.0, math.sqrt(H * X * A / 2 ** math.ceil(math.log2(t))))
        sets = Sets(mdp.rewards[None], *state.data, math.log(X / level), 1.0, "support=off" not in options)
        tol = 0.1 / math.sqrt(t)
        V, _ = swept(mdp, sets)
        best = (1 - mdp.discount) * float(V[0] @ mdp.initial)
        choice = state.policy.argmax(-1)
        assert (state.policy.max(-1) == 1.0).all()
        own, _ = swept(mdp, sets, choice)
        own = (1 - mdp.discount) * float(own[0] @ mdp.initial)
        half, _ = swept(mdp, sets._replace(scale=0.5))
        eps = slack * (best - (1 - mdp.discount) * float(half[0] @ mdp.initial))
        candidates += own < best - tol
        assert own >= best - eps - (1 + slack) * mdp.discount * tol - 1e-9
        own_half, _ = swept(mdp, sets._replace(scale=0.5), choice)  # the corollary, with c = slack / (1 - slack)
        c, cost = slack / (1 - slack), own - (1 - mdp.discount) * float(own_half[0] @ mdp.initial)
        assert best - own <= c * cost + (1 + 2 * c) * mdp.discount * tol + 1e-9
    assert (slack < 0.1) == (candidates == 0)  # candidates that are less optimistic are played


def test_the_candidate_is_the_greedy_policy_at_half_the_radius():
    mdp = ravi.mdp("garnet/5,3,3,discount=0.8")
    _, seen = observed(ids.learner("ravi-kl,slack=100", mdp, 300), mdp, 300, 1)  # every candidate is taken
    _, half = observed(ids.learner("ravi-kl,plan=greedy,scale=0.5", mdp, 300), mdp, 300, 1)
    assert len(seen) == len(half)
    for (one, _), (other, _) in zip(seen, half, strict=True):
        np.testing.assert_array_equal(one.policy, other.policy)


def test_a_posterior_candidate_is_what_psrl_draws():
    """With room for every candidate it is PSRL from the second plan on. At the first one nothing was observed, both
    radii allow for everything, and a candidate must be as optimistic as any policy."""
    mdp = ravi.mdp("garnet/5,3,3,discount=0.8")
    _, seen = observed(ids.learner("ravi-kl,slack=100,candidate=posterior", mdp, 300), mdp, 300, 1)
    _, drawn = observed(ids.learner("psrl,support=on", mdp, 300), mdp, 300, 1)
    assert [begun for _, begun in seen] == [begun for _, begun in drawn]
    for (one, _), (other, _) in zip(seen[1:], drawn[1:], strict=True):
        np.testing.assert_array_equal(one.policy, other.policy)


def test_T_is_not_used_by_greedy_and_slack():
    mdp = ravi.mdp("riverswim/6")
    for id in ("ravi-kl", "ravi-kl,plan=greedy"):
        short, long = ravi.run(id, mdp, 1000, 3), ravi.run(id, mdp, 4000, 3, points=4)
        np.testing.assert_allclose(long.regret_curve[:, long.times == 1000][:, 0], short.regret, rtol=1e-12)


@pytest.mark.parametrize("support", ["on", "off"])
def test_mirror_is_algorithm_1_with_the_parts_that_it_names(support):
    """The compiled backups against estimator and bonus, one after another: Q = Pi_H[r + gamma U]."""
    mdp = ravi.mdp("garnet/5,3,3,discount=0.8")
    learner = ids.learner(f"ravi-kl,plan=mirror,inner=4,support={support}", mdp, 500)
    state = ravi.run(learner, mdp, 500, 3).state
    *_, slow = learner.parts.backups(state)
    planned = learner.plan(tree.copy(state))
    for name in ("V_last", "Q", "last_policy"):
        np.testing.assert_allclose(getattr(planned, name), getattr(slow, name), atol=1e-10)
    n = state.data._replace(visits=state.data.visits - 1)
    rho = np.array(
        [[[_redundancy(m, 3 if support == "on" else 5) for m in row] for row in seed] for seed in n.moves]
    ) + math.log(15 * 500)
    low, high = ends(mdp.successors, n, rho, support == "on", state.V_last)
    np.testing.assert_allclose(learner.parts.estimator.expect(state.data, state.V_last), (low + high) / 2, atol=1e-10)
    np.testing.assert_allclose(learner.parts.bonus(state.data, state.V_last), 0.8 * (high - low) / 2, atol=1e-10)


def _redundancy(moves, symbols):
    n = int(moves.sum())
    best = sum(m * math.log(m / n) for m in moves if m)
    mixture = sum(math.lgamma(m + 0.5) - math.lgamma(0.5) for m in moves)
    return best - mixture + math.lgamma(n + symbols / 2) - math.lgamma(symbols / 2)


def test_known_rewards_are_the_limit_of_unknown_ones():
    """With deterministic rewards and no radius, what is not known is only what a pair earns before its first play; and
    an unplayed pair is worth the most that there is either way."""
    mdp = ravi.mdp("garnet/5,3,3,discount=0.8")
    learner = ids.learner("ravi-kl/unknown-rewards,plan=greedy,rewards=deterministic,reward_scale=0", mdp, 2000)
    state = ravi.run(learner, mdp, 2000, 2).state
    some = state.earned.plays > 0
    np.testing.assert_array_equal(state.earned.plays, state.data.visits)
    mean = state.earned.total[some] / state.earned.plays[some]
    np.testing.assert_allclose(mean, np.broadcast_to(mdp.rewards, some.shape)[some], atol=1e-12)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("ravi-kl,plan=soft", "plan is 'soft', not one of mirror, greedy, slack"),
        ("ravi-kl,plan=greedy,slack=0.1", "slack is an option of plan=slack, not of plan=greedy"),
        ("ravi-kl,inner=3", "inner is an option of plan=mirror, not of plan=slack"),
        ("ravi-kl,support=yes", "support is 'yes'"),
        ("ravi-kl,slack=-1", "slack is -1"),
        ("ravi-kl,candidate=best", "candidate is 'best'"),
        ("ravi-kl,scale=-1", "scale is -1"),
        ("ravi-kl,plan=mirror,fresh=no", "fresh is 'no'"),
        ("ravi-kl/unknown-rewards,rewards=normal", "rewards is 'normal'"),
    ],
)
def test_what_is_refused(id, said):
    with pytest.raises(validation.InputError, match=said.replace("(", r"\(")):
        ids.learner(id, ids.mdp("riverswim/4"), 100)
