"""Episodes of a fixed length: the criterion of an MDP, its optimum by stage, its runs and their regret."""

from fractions import Fraction

import numpy as np
import pytest

import ravi
from ravi.cli.advice import advise
from ravi.core import MDP, Measure
from ravi.learners.contrib import occupancy_descent
from ravi.live.agent import agent
from ravi.mdps import garnet
from ravi.runtime.result import Run
from ravi.validation import InputError
from tests.helpers import assert_same_bits, bits, dense
from tests.support.learners import EPISODES
from tests.support.pretended_gpu import pretend

RIVER = "riverswim/4,criterion=episodic,episode=7"
COMPILED = [
    "ravi-kl,plan=greedy",
    "ravi-kl,support=off",
    "ravi-ucb,scale=0.003,step_scale=0.1",
    "psrl",
    "psrl,support=on",
    "uniform",
    "optimum",
    "optimistic-q,scale=0.01",
    "optimistic-q,scale=0.01,bonus=bernstein",
    "ucbvi,scale=0.05",
    "ucbvi,scale=0.05,bonus=hoeffding",
]
NOTHING = Measure("nothing", lambda keys: (), lambda m, state, path, opening: m, lambda m: {})


def exact(mdp, choose):
    """V by stage, in rational arithmetic; choose: of Q_h (X, A), V_h."""
    P = [[[Fraction(p) for p in row] for row in rows] for rows in mdp.transitions.tolist()]
    P = [[[p / sum(row) for p in row] for row in rows] for rows in P]
    V, found = [Fraction(0)] * mdp.states, []
    for h in range(mdp.episode - 1, -1, -1):
        Q = [
            [
                Fraction(mdp.rewards[x, a].item())
                + sum(p * V[y] for p, y in zip(P[x][a], mdp.successors[x, a].tolist(), strict=True))
                for a in range(mdp.actions)
            ]
            for x in range(mdp.states)
        ]
        V = [choose(h, x, row) for x, row in enumerate(Q)]
        found.append(V)
    return found[::-1]


@pytest.mark.parametrize("seed", range(25))
def test_values_by_stage_are_within_their_error_of_rational_arithmetic(seed):
    mdp = garnet(2 + seed % 4, 1 + seed % 3, 1 + seed % 2, seed, 0.9).in_episodes(1 + seed % 7)
    best, policy = (
        ravi.solve(mdp),
        np.random.default_rng(seed).dirichlet(np.ones(mdp.actions), (mdp.episode, mdp.states)),
    )
    rows = [[[Fraction(p) / sum(map(Fraction, row)) for p in row] for row in stage] for stage in policy.tolist()]
    found = ravi.evaluate(mdp, policy)
    for made, true in (
        (best, exact(mdp, lambda h, x, Q: max(Q))),
        (found, exact(mdp, lambda h, x, Q: sum(p * q for p, q in zip(rows[h][x], Q, strict=True)))),
    ):
        off = max(
            abs(Fraction(v) - w) for V, W in zip(made.V.tolist(), true, strict=True) for v, w in zip(V, W, strict=True)
        )
        assert off <= made.error <= 1e-12
    assert ravi.evaluate(mdp, best.policy).value >= best.value - best.policy_error * mdp.episode
    assert best.optimum == best.value / mdp.episode
    assert ravi.return_of(mdp, policy) == found.returns
    mu = ravi.occupancy(mdp, policy)
    assert mu.mu.shape == (mdp.episode, mdp.states, mdp.actions)
    assert np.abs(mu.nu.sum(-1) - 1).max() <= mu.error
    assert abs((mu.mu * mdp.rewards).sum() - found.value) <= mdp.episode * mu.error + found.error


def test_deep_sea_is_swum_in_one_episode():
    """V*_h of the diagonal is the treasure; one policy for all stages is the same by stage."""
    mdp = ravi.mdp("deep-sea/6,criterion=episodic,episode=6")
    best = ravi.solve(mdp)
    assert best.value == pytest.approx(1.0, abs=best.error)
    one = np.full((36, 2), 0.5)
    assert np.array_equal(ravi.evaluate(mdp, one).V, ravi.evaluate(mdp, np.tile(one, (6, 1, 1))).V)


def test_the_criterion_is_part_of_the_mdp(tmp_path):
    mdp = ravi.mdp(RIVER)
    assert (mdp.criterion, mdp.episode, mdp.problem.episode, mdp.discount) == ("episodic", 7, 7, 1.0)
    assert len({mdp.digest, ravi.mdp("riverswim/4").digest, ravi.mdp("riverswim/4,criterion=average").digest}) == 3
    assert mdp.digest != ravi.mdp(mdp, criterion="episodic", episode=8).digest
    mdp.save(tmp_path / "mine.mdp")
    assert MDP.load(tmp_path / "mine.mdp").digest == ravi.mdp(f"{tmp_path / 'mine.mdp'}").digest == mdp.digest
    assert ravi.mdp(mdp, criterion="average").name == "riverswim/4,criterion=average"
    assert ravi.mdp(mdp, criterion="episodic", episode=7) is mdp
    assert ravi.mdp("riverswim/4", criterion="episodic", episode=7).name == RIVER
    P, r, given = [[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], {"initial": 0, "criterion": "episodic", "episode": 3}
    assert MDP.from_dense(P, r, **given).episode == 3
    psi, to = [[[[1, 0], [0, 1]]], [[[1, 0], [0, 1]]]], [[[0, 1]], [[0, 1]]]
    assert MDP.from_features(psi, [0.3, 0.7], to, [[0], [1]], **given).episode == 3
    assert MDP.from_linear([[[1, 0]], [[0, 1]]], [[0.5, 0.5], [0, 1]], [0, 1], **given).episode == 3


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ravi.mdp("riverswim/4,criterion=episodic,episode=0"), "episode is 0; it must be at least 1"),
        (lambda: ravi.mdp("riverswim/4,criterion=episodic,episode=2.5"), "episode is 2.5, not a whole number"),
        (lambda: ravi.mdp("riverswim/4,criterion=episodic"), "episode is missing: criterion='episodic' goes with"),
        (lambda: ravi.mdp("riverswim/4,episode=5"), "criterion='discounted' has none: say criterion='episodic'"),
        (lambda: ravi.mdp("riverswim/4,criterion=average,episode=5"), "criterion='average' has none: say criterion"),
        (lambda: ravi.mdp("riverswim/4,discount=.9,criterion=episodic,episode=5"), "discount is '.9', but criterion"),
        (lambda: ravi.mdp(RIVER, episode=3), "the episode is given twice: 7 in the id, and as 3"),
        (lambda: MDP.from_dense([[[1]]], [[1]], 0.9, 0, episode=3), "episode is 3, but criterion='discounted'"),
        (lambda: MDP.from_dense([[[1]]], [[1]], 0.9, 0, criterion="episodic", episode=3), "discount is 0.9, but"),
        (lambda: ravi.run("ravi-kl,plan=mirror", RIVER, 100), "plan is mirror, .* in episodes take greedy or slack"),
        (lambda: ravi.run("ravi-kl,candidate=posterior", RIVER, 100), "candidate is posterior, which is of the disc"),
        (
            lambda: ravi.run("ucrl2", RIVER, 100),
            "riverswim/4.* has the episodic one: docs/guides/episodes.md lists its",
        ),
        (lambda: ravi.learn(RIVER, steps=100), "in episodes, and ravi.learn is for a discount"),
        (lambda: advise(RIVER, 100), "advice is for a discount: docs/guides/episodes.md lists"),
        (lambda: ravi.run("ucbvi", "riverswim/4", 100), "ucbvi is for the episodic criterion, .* the discounted one"),
        (lambda: ravi.run("ucbvi/doubling", RIVER, 100), "for the discounted criterion"),
        (lambda: ravi.run("ucbvi", RIVER, 100, pad=True), "pad is true, which is of the discounted .* in episodes"),
        (lambda: ravi.run("ucbvi", RIVER, 100, record=["trajectory"]), "'trajectory', which is of the discounted"),
        (lambda: ravi.solve(ravi.mdp(RIVER), "value_iteration"), "in episodes: there is one method"),
        (lambda: ravi.evaluate(ravi.mdp(RIVER), np.full((6, 4, 2), 0.5)), r"policy has shape \(6, 4, 2\); in episodes"),
        (lambda: ravi.run("ravi-ucb", "large/riverswim/4,criterion=episodic,episode=5", 9), "and a large world has"),
        (lambda: agent("ucrl2", ravi.mdp(RIVER).problem, 10), "criterion"),
    ],
)
def test_what_the_criterion_does_not_allow_is_refused_by_name(call, says):
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize("learner", COMPILED)
def test_runs_are_the_same_alone_in_parts_in_python_and_on_a_gpu(learner, tmp_path, monkeypatch):
    T, seeds = 300, [3, 8, 1]
    batch = ravi.run(learner, RIVER, T, seeds, record=["stream"])
    for row, seed in enumerate(seeds):
        assert_same_bits(bits(ravi.run(learner, RIVER, T, [seed], record=["stream"])), bits(batch, row))
    half = ravi.run(learner, RIVER, T, seeds, record=["stream"], pause=100)
    half.save(tmp_path / "half.run")
    again = ravi.resume(Run.load(tmp_path / "half.run"), learner, RIVER)
    by_python = ravi.run(learner, RIVER, T, seeds, record=["stream"], measures=[NOTHING])
    pretend(monkeypatch)
    there = ravi.run(learner, RIVER, T, seeds, record=["stream"], device="gpu")
    for other in (again, by_python, there):
        assert all(np.array_equal(array, other.results[name]) for name, array in batch.results.items())
        assert np.array_equal(other.last_policy, batch.last_policy)


def test_the_regret_is_the_sum_over_episodes_and_a_part_of_one_counts_by_its_share():
    mdp, T = ravi.mdp(RIVER), 100  # 14 episodes and two steps
    policies = []
    spy = Measure(
        "spy", lambda keys: (), lambda m, s, path, opening: (policies.append(s.policy[0].copy()), m)[1], lambda m: {}
    )
    made = ravi.run("ucbvi,scale=0.05", mdp, T, [4], points=T, measures=[spy], record=["stream"])
    best = ravi.solve(mdp).value
    gaps = [best - ravi.evaluate(mdp, policy).value for policy in policies]
    assert len(gaps) == 15
    assert made.regret[0] == pytest.approx(sum(gaps[:14]) + gaps[14] * 2 / 7, abs=made.regret_error[0])
    assert made.regret_curve[0, 6::7] == pytest.approx(np.cumsum(gaps[:14]), abs=made.regret_error[0])
    assert made.gap_k[0] * 7 == pytest.approx(gaps, abs=1e-12)
    reset = made.results["stream_reset"][0]
    assert np.array_equal(np.flatnonzero(reset) + 1, np.arange(7, T + 1, 7))
    earned = mdp.rewards[made.results["stream_state"][0], made.results["stream_action"][0]].sum()
    assert made.results["realised"][0] == pytest.approx(T * best / 7 - earned, abs=1e-9)
    assert made.regret_error[0] < 1e-9


def test_in_the_mean_the_regret_is_what_was_lost():
    """Of whole episodes: within five standard errors, by chance not once in a million."""
    made = ravi.run("uniform", RIVER, 140, seeds=4000)
    off = made.results["realised"] - made.regret
    assert abs(off.mean()) <= 5 * off.std() / np.sqrt(len(off)) + made.regret_error.max()


def test_an_optimal_policy_has_no_regret():
    made = ravi.run("optimum", EPISODES[0], 500, seeds=3)
    assert (made.regret <= made.regret_error).all()
    assert "episodes" in str(made)
    assert "optimum rho*" in str(made)


@pytest.mark.parametrize("eta", [0.01, 1.0, 30.0])
def test_a_step_of_o_reps_in_episodes_is_optimal(eta):
    """It is an occupancy, and the dual is what it reaches: a certificate, by sums over stages of its own."""
    mdp, rng = garnet(4, 3, 2, 1, 0.9).in_episodes(5), np.random.default_rng(0)
    S, X, P = 5, 4, dense(mdp)
    before = rng.dirichlet(np.ones(3), (S, X))
    policy, V = before.reshape(1, S * X, 3).copy(), np.zeros((1, S * X))
    kernel = np.tile(mdp.transitions, (S, 1, 1))[None].copy()
    kernel[:, -X:] = 0
    to = np.concatenate([mdp.successors + min(h + 1, S - 1) * X for h in range(S)]).astype(np.int32)
    nu0 = np.concatenate([mdp.initial, np.zeros((S - 1) * X)])
    r, log_policy = np.tile(mdp.rewards, (S, 1))[None].copy(), np.log(policy)
    made, flow = occupancy_descent.step(r, to, kernel, 1.0, nu0, eta, V, log_policy, policy, S)
    one, two = (ravi.occupancy(mdp, pi.reshape(S, X, 3)).mu / S for pi in (before, policy))
    np.testing.assert_allclose(made.reshape(two.shape), two, atol=1e-12)
    assert flow <= 1e-12
    later = np.concatenate([V.reshape(S, X)[1:], np.zeros((1, X))])
    z = eta * (mdp.rewards + np.einsum("xay,hy->hxa", P, later) - V.reshape(S, X, 1))
    dual = np.log((one * np.exp(z)).sum()) / eta + mdp.initial @ V[0, :X] / S
    primal = (two * mdp.rewards).sum() - (two * np.log(two / one))[two > 0].sum() / eta
    assert dual == pytest.approx(primal, abs=1e-10)


def test_ucbvi_learns_and_hoeffding_is_the_wider_bonus():
    fine, wide, none = (
        ravi.run(f"{one}", "deep-sea/4,criterion=episodic,episode=4", 20_000, 8).regret.mean()
        for one in ("ucbvi,scale=0.02", "ucbvi,scale=0.02,bonus=hoeffding", "uniform")
    )
    assert fine < wide < none


def test_the_bound_of_ravi_ucb_holds_at_every_step_size():
    """Its first term and the bonuses along the path bound the regret, whatever eta; here the bonuses are valid."""
    mdp, T = garnet(4, 2, 2, 0, 0.9).in_episodes(4), 4000
    for step in (0.01, 0.1, 100):
        bonuses = []

        def record(m, s, path, opening, bonuses=bonuses):
            x, a = path.state[0, : path.length[0]], path.action[0, : path.length[0]]
            bonuses.append((1 / np.sqrt(s.data.visits[0][x, a])).sum())
            return m

        made = ravi.run(
            f"ravi-ucb,step_scale={step}", mdp, T, [1], measures=[NOTHING._replace(record=record)], progress=False
        )
        eta, beta = made.settings["eta"], made.settings["beta"]
        assert made.regret[0] <= 4 * np.log(2) / eta + 2 * beta * sum(bonuses)
        assert sum(bonuses) <= 2 * (np.sqrt(2 * 8 * (T + 8)) + 4 * 8)


def test_ravi_ucb_learns_with_a_large_eta():
    """No price for a large eta: the regret of an episode falls to 0."""
    mdp = garnet(5, 3, 2, 1, 0.9).in_episodes(6)
    made = ravi.run("ravi-ucb,beta=6,step_scale=100", mdp, 60_000, 4)
    assert (made.gap <= 0.01).all()


def test_an_agent_begins_again_after_every_episode_and_estimates_what_a_step_earns():
    mdp, resets, x = ravi.mdp("deep-sea/3,criterion=episodic,episode=3"), [], 0
    live = agent("ucbvi,scale=0.02", mdp.problem, 60)
    for _ in range(60):
        a = live.act(x)
        y = int(mdp.successors[x, a][mdp.transitions[x, a].argmax()])
        resets.append(live.observe(x, a, y, float(mdp.rewards[x, a])))
        x = 0 if resets[-1] else y
    live.end(0)
    assert [t for t, reset in enumerate(resets, 1) if reset] == list(range(3, 61, 3))
    assert live.earned.value == pytest.approx(np.mean(live.cycles[len(live.cycles) // 2 :]) / 3)
    assert 1 / 3 <= live.optimistic <= 1


def test_an_environment_of_episodes_is_truncated():
    pytest.importorskip("gymnasium")
    env = ravi.gymnasium.make(ravi.mdp(RIVER))
    for _ in range(2):
        env.reset(seed=1)
        assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]
    assert ravi.mdp("FrozenLake-v1", criterion="episodic", episode=100).episode == 100


def test_a_model_of_a_file_needs_no_discount(tmp_path):
    rows = ["state,action,next_state,probability,reward", "a,go,b,1,0", "a,stay,a,1,0.1", "b,go,a,1,1", "b,stay,b,1,0"]
    (tmp_path / "m.csv").write_text("\n".join(rows))
    made = ravi.mdp(f"{tmp_path}/m.csv,initial=a,criterion=episodic,episode=3")
    assert ravi.solve(made).value == pytest.approx(1.1, abs=1e-12)  # go, go, stay
    assert ravi.mdp(f"{tmp_path}/m.csv", criterion="average").criterion == "average"
