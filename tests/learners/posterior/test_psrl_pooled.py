"""PSRL whose prior is learned: what is drawn and planned, what is new, usual and earned, and worlds without chance."""

import numpy as np
import pytest
from scipy.stats import t

import ravi
from ravi import ids
from ravi.core import Path
from ravi.learners.posterior import pooled as pooled_draws
from ravi.learners.posterior.pooled import BINS, KINDS, WEIGHTS
from ravi.learners.posterior.psrl_pooled import SCALE
from ravi.learners.posterior.sparse import scratch
from ravi.random import block

WORLD = "garnet/6,3,2,discount=0.9"


def drawn(state, problem, end=-1):
    """r_k and P_k of seed 0, as the learner draws them."""
    X, A, B = problem.successors.shape
    r, rows, *_ = scratch(X, A, B)
    paid, _, squares, terms = state.earned
    arrays = (each[0] for each in (*state.data, *state.novelty, *state.usual, paid, squares, terms))
    pooled_draws.draw(problem.rewards, problem.successors, *arrays, state.key[0], end, r, rows)
    P, (first, to, mass) = np.zeros((X, A, B + 1)), rows
    for p in range(X * A):
        x, a = divmod(p, A)
        for e in range(first[p], first[p + 1]):
            if x != end:
                P[x, a, B if to[e] == X else list(problem.successors[x, a]).index(to[e])] = mass[e]
    return r.copy(), P


@pytest.mark.parametrize("largest", [1, 100])
def test_the_policy_is_optimal_for_the_draw(largest):
    """Q = r_k + gamma {(1 - u) <P_k, V> + u W} and Q = W + M - 1 where n = 0, with W = 1 + gamma max V_0, written out
    with one more state, which is worth W, or 0 for V_0."""
    world, name = ids.mdp(WORLD), f"psrl/pooled,tolerance=1e-9,largest={largest}"
    made = ravi.run(name, world, 30, [3])
    learner = ids.learner(name, world, 30)
    state = learner.plan(made.batch.state)
    r, P = drawn(state, world.problem)
    X, A, B = world.successors.shape
    dense = np.zeros((X, A, X + 1))
    for x in range(X):
        for a in range(A):
            dense[x, a, world.successors[x, a]] = P[x, a, :B]
            dense[x, a, X] = P[x, a, B]
    np.testing.assert_allclose(dense.sum(-1), 1)
    fresh = state.data.visits[0] == 0
    assert 0 < fresh.sum() < X * A

    M = largest ** (2 * block(np.uint64(3), state.plays[0], SCALE)[0] - 1)
    assert (M == 1) == (largest == 1)

    def solved(W, M=1):
        V = np.zeros(X)
        for _ in range(1000):
            Q = np.where(fresh, W + M - 1, r + 0.9 * dense @ np.append(V, W))
            V = Q.max(-1)
        return Q, V

    Q, V = solved(1 + 0.9 * solved(0.0)[1].max(), M)
    best = state.policy[0].argmax(-1)
    np.testing.assert_allclose(Q[np.arange(X), best], V, atol=1e-6)


def test_what_is_new_is_counted_over_all_pairs():
    world = ids.mdp(WORLD)
    made = ravi.run("psrl/pooled", world, 200, [5], record=["stream"])
    x, a, y = (made.results[f"stream_{name}"][0] for name in ("state", "action", "successor"))
    tries, new, seen = np.zeros((BINS, KINDS)), np.zeros((BINS, KINDS)), {}
    for triple in zip(x.tolist(), a.tolist(), y.tolist(), strict=True):
        before = seen.setdefault(triple[:2], [])
        if before:
            place = min(int(np.ceil(np.log2(len(before)))), BINS - 1), len(set(before))
            tries[place] += 1
            new[place] += triple[2] not in before
        before.append(triple[2])
    assert (made.batch.state.novelty.tries[0] == tries).all()
    assert (made.batch.state.novelty.new[0] == new).all()


def ranked(counts):
    """Of each of some counts, the ranks that it shares with those that are equal."""
    return [[sum(other > one for other in counts) + i for i in range(counts.count(one))] for one in counts]


def test_what_is_usual_is_learned_from_all_pairs():
    """s(n, k, i), and the likelihood of every c, play by play; then what is expected of a pair, over all c."""
    world = ids.mdp("garnet/6,3,4,discount=0.9")
    made = ravi.run("psrl/pooled", world, 300, [5], record=["stream"])
    share, likely, seen = np.zeros((BINS, KINDS, KINDS)), np.zeros((BINS, KINDS, len(WEIGHTS))), {}

    def base(place, ranks):
        return np.mean([(share[place][i] + 1) / (share[place].sum() + place[1]) for i in ranks])

    def place_of(counts):
        return min(int(np.ceil(np.log2(sum(counts)))), BINS - 1), len(counts)

    stream = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor"))
    for x, a, y in zip(*stream, strict=True):
        before = seen.setdefault((x, a), {})
        if y in before and len(before) > 1:
            counts = list(before.values())
            place, ranks = place_of(counts), ranked(counts)[list(before).index(y)]
            b = base(place, ranks)
            likely[place] += [np.log((before[y] + c * b) / (sum(counts) + c)) for c in WEIGHTS]
            share[place][ranks] += 1 / len(ranks)
        before[y] = before.get(y, 0) + 1
    state = made.batch.state
    np.testing.assert_allclose(state.usual.share[0], share, atol=1e-9)
    np.testing.assert_allclose(state.usual.likely[0], likely, atol=1e-9)
    moves, rewards = state.data.moves[0], world.rewards
    P, r = state.expected(moves, rewards)
    np.testing.assert_allclose(r, rewards, atol=1e-12)  # every successor pays the same
    np.testing.assert_allclose(P.sum(-1), moves.sum(-1), atol=1e-9)
    x, a = next(pair for pair, counts in seen.items() if len(counts) > 2)
    met = np.flatnonzero(moves[x, a])
    counts = moves[x, a, met].tolist()
    n, place = sum(counts), place_of(counts)
    weight = np.exp(likely[place] - likely[place].max())
    mean = sum(
        w * np.array([(N + c * base(place, ranks)) / (n + c) for N, ranks in zip(counts, ranked(counts), strict=True)])
        for w, c in zip(weight / weight.sum(), WEIGHTS, strict=True)
    )
    np.testing.assert_allclose(P[x, a, met], n * mean, rtol=1e-9)


def test_what_a_successor_pays_is_known_when_it_was_met():
    """One pair, three successors that pay 0, 1/2 and 1: no noise is seen, and the reward expected is that of the
    chances expected."""
    agent = ravi.agent("psrl/pooled", states=3, actions=1, discount=0.5, steps=3000, reward_scale=0.0)
    rng = np.random.default_rng(0)
    while not agent.done:
        y = int(rng.integers(3))
        agent.observe(0, agent.act(0), y, y / 2, cut=True)
    agent.end()
    assert (agent.state.earned.squares == 0).all()
    np.testing.assert_allclose(agent.state.earned.paid[0, 0, 0], [0, 0.5, 1], atol=1e-9)
    made = agent.model()
    np.testing.assert_allclose(made.rewards[0, 0], made.transitions[0, 0] @ [0, 0.5, 1], atol=1e-9)


def test_what_is_missing_is_pooled_by_plays_and_successors():
    """Of pairs with 3-4 plays: 5 of 10 that had shown two successors were new, none of 30 that had shown three; of
    pairs with 5-8 plays 2 of 4. 4,000 draws; each bound is five standard errors: false alarms 1e-6."""
    tries, new = np.zeros((BINS, KINDS), np.int64), np.zeros((BINS, KINDS), np.int64)
    tries[2, 2], new[2, 2], tries[2, 3], tries[3, 2], new[3, 2] = 10, 5, 30, 4, 2
    for b, k, f, rest in (
        (2, 2, 5.5, 6.0),
        (2, 3, 0.5, 31.0),
        (1, 1, 0.5, 1.0),
        (4, 2, 1 / 44, 1.0),
    ):  # m is 1/2, or 1/44
        pooled = pooled_draws.rates(tries, new)[b], tries[b, k], new[b, k]
        found = [pooled_draws.missing(*pooled, np.uint64(key), 1, 1)[0] for key in range(4000)]
        mean = f / (f + rest)
        variance = mean * (1 - mean) / (f + rest + 1)
        assert abs(np.mean(found) - mean) < 5 * np.sqrt(variance / 4000)
        assert abs(np.var(found) / variance - 1) < 0.3
    assert not pooled_draws.rates(tries, 0 * new).any()  # nothing was new


def test_a_pair_that_lost_its_first_plays_may_be_noisy_like_the_others():
    """Of seven actions six paid 0 and 1 in turn and one 0 three times: with q = 6/7, v = 1/4 and (1 - 2 v)^2 = 1/4 it
    is noisy with probability (6/28) / (1/7 + 6/28) = 0.6, and then drawn above 0 every other time. 4,000 draws; the
    bound is five standard errors: false alarms 1e-6. Where no other is noisy, nor is it."""
    visits, terms = np.array([[100] * 6 + [3]]), np.array([[99] * 6 + [2]])
    rewards, squares = np.array([[0.5] * 6 + [0.0]]), np.array([[99 / 4] * 6 + [0.0]])
    usual = np.zeros((BINS, KINDS, KINDS)), np.zeros((BINS, KINDS, len(WEIGHTS)))
    novelty = np.zeros((BINS, KINDS), np.int64), np.zeros((BINS, KINDS), np.int64)
    (r, rows, *_), paid, successors = scratch(1, 7, 1), rewards[..., None], np.zeros((1, 7, 1), np.int32)

    def draws(squares):
        for key in range(4000):
            earned = paid, squares, terms
            pooled_draws.draw(
                rewards, successors, visits, visits[..., None], *novelty, *usual, *earned, np.uint64(key), -1, r, rows
            )  # fmt: skip
            yield r[0, 6]

    found = np.array(list(draws(squares)))
    assert abs((found > 0).mean() - 0.3) < 5 * np.sqrt(0.21 / 4000)
    assert not any(draws(0 * squares))


def test_a_noisy_reward_has_the_distribution_of_student():
    """One pair that paid 0, 1/2 and 1: sum of squares 1/2, two terms and v = 1/4 make three degrees of freedom. 4,000
    draws; the bound is five standard errors: false alarms 2e-6."""
    rewards, visits, squares = np.array([[0.5]]), np.array([[3]]), np.array([[0.5]])
    usual = np.zeros((BINS, KINDS, KINDS)), np.zeros((BINS, KINDS, len(WEIGHTS)))
    novelty = np.zeros((BINS, KINDS), np.int64), np.zeros((BINS, KINDS), np.int64)
    (r, rows, *_), found = scratch(1, 1, 1), []
    for key in range(4000):
        earned = rewards[..., None], squares, np.array([[2]])
        pooled_draws.draw(
            rewards, np.zeros((1, 1, 1), np.int32), visits, visits[..., None], *novelty, *usual, *earned,
            np.uint64(key), -1, r, rows,
        )  # fmt: skip
        found.append(r[0, 0])
    for far in (0.1, 0.3, 0.45):
        chance = 2 * t.sf(far / np.sqrt(0.75 / 3 / 3), 3)
        share = (abs(np.array(found) - 0.5) > far).mean()
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 4000)


def test_what_is_expected_is_the_mean_of_what_is_drawn():
    """A pair that was played 67 times, and of whose like nothing is known but two plays, which led to its second and
    third successor: c is 0, and the counts alone decide. After one that led to the first, c is not."""
    agent = ravi.agent("psrl/pooled", states=4, actions=1, discount=0.9, steps=100, reward_scale=0.0)
    moves, rewards = np.zeros((4, 1, 4), np.int64), np.zeros((4, 1))
    moves[0, 0], place = (50, 7, 6, 4), (0, BINS - 1, 4)
    share = agent.state.usual.share
    share[place][1:3] = 1
    assert (agent.state.expected(moves, rewards)[0] == moves).all()
    share[place][0] = 1
    assert (agent.state.expected(moves, rewards)[0][0, 0] != moves[0, 0]).all()
    data = agent.state.data
    data.visits[0, 0, 0], data.moves[0, 0, 0] = 67, moves[0, 0]
    for first, alone in ((1, False), (0, True)):
        share[place][0] = first
        P = []
        for key in range(1000):
            agent.state.key[0] = key
            P.append(drawn(agent.state, agent.problem)[1][0, 0, :4])
        error = np.std(P, 0) / np.sqrt(1000)
        assert (abs(np.mean(P, 0) - agent.state.expected(moves, rewards)[0][0, 0] / 67) < 5 * error).all()
        assert (abs(np.mean(P, 0) - moves[0, 0] / 67) < 5 * error).all() == alone


def test_an_end_is_worth_what_it_was_seen_to_earn():
    world = ids.mdp(WORLD)
    learner = ids.learner("psrl/pooled,end=2", world, 10)
    state = learner.plan(learner.init(np.arange(1, dtype=np.uint64)))
    r, P = drawn(state, world.problem, end=2)
    assert (r[2] == world.rewards[2].min()).all()
    assert (P[2] == 0).all()
    assert (np.delete(P, 2, 0)[..., -1] == 1).all()  # nothing else was played


def test_a_plan_is_made_when_a_pair_was_played_first_or_plays_have_grown():
    """The values, set to nonsense, stay, or are found anew."""

    def planned(world, name="psrl/pooled", steps=20_000, **changes):
        learner, state = ids.learner(name, ids.mdp(world), steps), ravi.run(name, world, steps, [1]).batch.state
        state = learner.plan(state)._replace(
            pairs=(state.data.visits > 0).sum((1, 2)), plays=state.data.visits.sum((1, 2))
        )
        for name, less in changes.items():
            getattr(state, name)[:] -= less
        state.u[:] = 7.0
        return (learner.plan(state).u != 7.0).any()

    assert not planned("deep-sea/4")
    assert not planned("deep-sea/4", plays=9999)  # nothing is drawn
    assert planned("deep-sea/4", plays=10_000)
    assert planned("deep-sea/4", pairs=1)
    for less, due in ((952, False), (953, True)):  # of 20,000, of 20 pairs: 20,000 / 21
        assert planned("deep-sea/4", "psrl/pooled,largest=2", plays=less) == due
    large = "garnet/100,8,8,discount=0.9"
    assert planned(large, steps=400, pairs=1, plays=1)
    for less in (1, 5):  # of some 300 pairs, where half of what is played again is new
        assert planned(large, "psrl/pooled,largest=2", 400, pairs=1, plays=less) == (less == 5)
    assert not planned(WORLD)
    assert not planned(WORLD, plays=1052)  # of 20,000, of 18 pairs: 20,000 / 19
    assert planned(WORLD, plays=1053)
    assert planned(WORLD, pairs=1)


def test_rivals_are_played_in_a_step_of_an_episode():
    """epsilon = min {1/2, max {1 - gamma, e / t}}, for what a draw since t / 2 chose, or was played less than
    sqrt(N(x)) times; before anything was new 1 - gamma, and log2 N(x); written out from plan to plan."""
    world = ids.mdp("garnet/6,3,2,discount=0.9,seed=4")
    learner = ids.learner("psrl/pooled,end=5", world, 400)
    state, rng = learner.init(np.arange(1, dtype=np.uint64)), np.random.default_rng(1)
    chosen, rivalled = np.zeros((6, 3)), 0
    for _ in range(400):
        state = learner.plan(state)
        visits, moves, policy = state.data.visits[0], state.data.moves[0], state.policy[0]
        t = visits.sum()
        if state.plays[0] == t:
            chance = state.novelty.new.sum() > 0
            epsilon = min(0.5, max(0.1, (moves * (world.successors == 5))[:5].sum() / max(t, 1) * chance))
            for x in range(6):
                best = int(policy[x].argmax())
                chosen[x, best] = t
                N = max(visits[x].sum(), 1)
                few, late = (N**0.5, 2 * chosen[x] > t) if chance else (np.log2(N), np.zeros(3))
                rivals = [a for a in range(3) if a != best and (late[a] or visits[x, a] < few)]
                due = np.eye(3)[best] * (1 - epsilon * bool(rivals))
                due[rivals] = epsilon / max(len(rivals), 1)
                np.testing.assert_allclose(policy[x], due, atol=1e-12)
                rivalled += bool(rivals)
        x = int(rng.integers(6))
        a = int(rng.choice(3, p=policy[x]))
        j = int(rng.choice(2, p=world.transitions[x, a]))
        row = (np.array([[each]], np.int32) for each in (x, a, world.successors[x, a, j], j, 0))
        state = learner.add(state, Path(*row, *(np.array([each]) for each in (1, t + 1, 0))))
    assert 100 < rivalled < 2000
