"""How far below the best a policy is at most: no plausible kernel says more, the worst says nearly as much."""

import numpy as np
import pytest

import ravi
from ravi.live import suboptimality
from ravi.live.confidence_sets import confidence_sets, fixed_points
from ravi.live.intervals import bounds
from tests.live.test_intervals import DELTA, world_of


class Kernel:
    """One law of outcomes for every pair: q (X A, 2 B)."""

    def __init__(self, of, q):
        self.of, self.q, (X, A) = of, q, of.shape
        self.P, self.r = np.zeros((X * A, X)), (q * of.low[0].reward).sum(-1).reshape(X, A)
        np.add.at(self.P, (np.arange(X * A)[:, None], of.low[0].to), q)
        self.P = self.P.reshape(X, A, X)

    def visits(self, policy):
        P = np.einsum("xay,xa->xy", self.P, policy)
        return np.linalg.inv(np.eye(len(P)) - self.of.discount * P)

    def value(self, policy):
        V = self.visits(policy) @ (policy * self.r).sum(-1)
        return V, self.r + self.of.discount * self.P @ V

    def best(self):
        """By policy iteration, which ends where the policy stays, or after 100 rounds."""
        actions = self.r.argmax(-1)
        for _ in range(100):
            before, actions = actions, self.value(np.eye(self.of.shape[1])[actions])[1].argmax(-1)
            if (actions == before).all():
                break
        return np.eye(self.of.shape[1])[actions]


def farthest(p, d, f):
    """In every row, argmax {<q, f> : KL(p || q) <= d} on the support of p: q is p / (nu - f), in parts."""
    on, d = p > 0, d[:, None]
    most = np.where(on, f, -np.inf).max(-1, keepdims=True)
    least = np.where(on, f, np.inf).min(-1, keepdims=True)
    below, flat = np.where(on, most - f, 1.0), most - least < 1e-12
    span = np.where(flat, 1.0, most - least)

    def at(z):
        q = p / (np.exp(z) * span + below)
        return q / q.sum(-1, keepdims=True)

    low, high = np.full(d.shape, -30.0), np.full(d.shape, 30.0)  # of ln((nu - max f) / span)
    for _ in range(60):
        middle = (low + high) / 2
        over = (p * np.log(np.where(on, p, 1.0) / np.where(on, at(middle), 1.0))).sum(-1, keepdims=True) > d
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.where(flat, p, at(high))


def plausible_kernels(of, policy, rng, climbs=12):
    """Kernels in the product of the sets: from a random one on, by the gradient of the gap at the start."""
    pairs, (X, A) = of.low[0], of.shape
    total = pairs.weight.sum(-1)
    p, d = pairs.weight / total[:, None], pairs.radius / total
    parts, ways = zip(*[(rng.random(), rng.normal(size=p.shape[1])) for _ in range(X * A)], strict=True)
    q = farthest(p, d * parts, np.array(ways))
    for _ in range(climbs):
        yield (kernel := Kernel(of, q))
        rival = kernel.best()
        (V_best, _), (V, _) = kernel.value(rival), kernel.value(policy)
        nu = of.low[1].weight[0, ::2] / of.low[1].weight.sum()
        up, down = (nu @ kernel.visits(rival))[:, None] * rival, (nu @ kernel.visits(policy))[:, None] * policy
        f = up.reshape(-1, 1) * _worth(of, V_best) - down.reshape(-1, 1) * _worth(of, V)
        q = farthest(p, d, f)


def _worth(of, V):
    return of.low[0].reward + of.discount * V[of.low[0].to]


def known(seed, assume="seen", scale=1.0, coins=True, steps=400):
    """What uniform play shows of a small random MDP, whose rewards are coins or depend on the successor alone: sets
    that speak of kernels only (`best` too is over those of `low`), and all pairs of which were played."""
    world, rng = world_of(seed), np.random.default_rng(seed)
    agent, x = ravi.agent("uniform", states=4, actions=2, discount=0.7, steps=steps, seed=seed), 0
    while not agent.done:
        a = agent.act(x)
        y = int(rng.choice(world.successors[x, a], p=world.transitions[x, a]))
        agent.observe(x, a, y, float(rng.random() < world.rewards[x, a]) if coins else y / 3, cut=True)
        x = int(rng.integers(4))
    of = confidence_sets(agent, DELTA, assume, scale=scale)
    assert (of.low[0].weight.sum(-1) > 0).all()
    return of._replace(best=(of.high, of.low[1]))


def policies(rng):
    yield np.eye(2)[rng.integers(2, size=4)]
    yield rng.dirichlet(np.ones(2), size=4)


@pytest.mark.parametrize("assume", ["seen", "nothing"])
def test_no_plausible_kernel_has_more_of_a_gap_or_an_advantage(assume):
    """In 24 hill climbs, from kernels inside of the sets."""
    for seed in range(12):
        rng, of = np.random.default_rng(seed), known(seed, assume, scale=[1.0, 0.1][seed % 2], coins=seed % 4 < 2)
        for policy in policies(rng):
            low = fixed_points(of, of.low[0], policy, -1.0)
            found, by = bounds(of, policy).by, suboptimality.advantage_bounds(of, policy, low)
            for kernel in plausible_kernels(of, policy, rng):
                (best, _), (V, Q) = kernel.value(kernel.best()), kernel.value(policy)
                assert (best - V <= found.D + 1e-9).all()
                worth = by.reward + of.discount * by.V[of.low[0].to]
                backed = (kernel.q * worth).sum(-1).reshape(of.shape)
                assert (Q - V[:, None] <= by.sure + by.share * backed + 1e-9).all()


def test_a_gap_that_is_a_quarter_too_small_is_found_out():
    """By the same climbs, in one of four worlds: there is a plausible kernel with nearly the gap that is told."""
    ratios = []
    for seed in (8, 9, 10, 11):
        rng, of = np.random.default_rng(seed), known(seed, steps=1500)
        policy = Kernel(of, of.low[0].weight / of.low[0].weight.sum(-1, keepdims=True)).best()
        nu = of.low[1].weight[0, ::2] / of.low[1].weight.sum()
        climbs = [kernel for _ in range(3) for kernel in plausible_kernels(of, policy, rng)]
        worst = max(nu @ (k.value(k.best())[0] - k.value(policy)[0]) for k in climbs)
        ratios.append((1 - of.discount) * worst / bounds(of, policy).gap)
    assert 0.8 < max(ratios) < 1


def test_advantages_make_the_gap_smaller(monkeypatch):
    sets = [known(seed, steps=2000) for seed in range(12)]
    policies = [Kernel(of, of.low[0].weight / of.low[0].weight.sum(-1, keepdims=True)).best() for of in sets]
    found = [bounds(of, policy).gap for of, policy in zip(sets, policies, strict=True)]
    monkeypatch.setattr(suboptimality, "DENSE", 0)
    without = [bounds(of, policy).gap for of, policy in zip(sets, policies, strict=True)]
    assert (np.array(found) <= np.array(without) + 1e-9).all()
    assert np.median(found) < 2 / 3 * np.median(without)


def test_sets_of_one_kernel_have_its_gap():
    for seed in range(5):
        rng, of = np.random.default_rng(seed), known(seed, scale=0.0)
        kernel = Kernel(of, of.low[0].weight / of.low[0].weight.sum(-1, keepdims=True))
        for policy in policies(rng):
            gap = kernel.value(kernel.best())[0] - kernel.value(policy)[0]
            np.testing.assert_allclose(bounds(of, policy).by.D, gap, atol=1e-4)


def wells(steps):
    """Both actions of state 0 lead to state 1, the second for a tenth less; there a coin pays; then all begins anew."""
    rng, agent = np.random.default_rng(0), ravi.agent("uniform", states=2, actions=2, discount=0.9, steps=steps)
    x = 0
    while not agent.done:
        a = agent.act(x)
        reward = 0.5 - a / 10 if x == 0 else float(rng.random() < 0.5)
        agent.observe(x, a, 1 - x, reward, cut=True)
        x = 1 - x
    return agent


def test_what_both_actions_lead_to_is_no_reason_to_doubt_which_is_better(monkeypatch):
    """In state 0; what state 1 pays is in doubt, and of its two actions which is better."""
    of, policy = confidence_sets(wells(200), DELTA, "seen"), np.array([[1.0, 0.0], [0.5, 0.5]])
    doubt = bounds(of, policy).by
    assert doubt.rivals[0] == 0
    monkeypatch.setattr(suboptimality, "DENSE", 0)
    without = bounds(of, policy).by
    assert without.rivals[0] == 1
    assert (doubt.D < without.D).all()


def test_plays_go_where_the_gap_comes_from():
    """Of three coins one pays least for sure: exploring tosses the two others, the one that was tossed less."""
    pays = (0.5, 0.5, 0.0)
    rng, agent = np.random.default_rng(0), ravi.agent("uniform", states=1, actions=3, discount=0.5, steps=600)
    while not agent.done:
        a = agent.act(0)
        agent.observe(0, a, 0, float(rng.random() < pays[a]))
    of = confidence_sets(agent, DELTA, "seen")
    policy = np.array([[1.0, 0.0, 0.0]])
    found = bounds(of, policy).by
    for plays, action in (([10, 20, 1], 0), ([20, 10, 1], 1)):
        assert suboptimality.exploring_actions(of, policy, found, np.array([plays])) == action
