"""A log of plays: its interval holds what its policy is worth, and its policy keeps to what was played."""

import numpy as np
import pytest

import ravi
from ravi import importers
from ravi.live.policies import evaluate
from tests.helpers import refuses


def log_of(mdp, n, seed, policy=None):
    """n plays of a policy, uniform unless given, with rewards that are coins, and resets."""
    rng, rows, x, episode = np.random.default_rng(seed), [], 0, 0
    rows_of = np.full((mdp.states, mdp.actions), 1 / mdp.actions) if policy is None else policy
    for _ in range(n):
        a = int(np.searchsorted(np.cumsum(rows_of[x]), rng.random()))
        y = int(mdp.successors[x, a, np.searchsorted(np.cumsum(mdp.transitions[x, a]), rng.random())])
        rows.append((x, a, float(rng.random() < mdp.rewards[x, a]), y, episode))
        x, episode = (y, episode) if rng.random() < mdp.discount else (0, episode + 1)
    return of_rows(rows, "episode")


def of_rows(rows, *more):
    names = ("state", "action", "reward", "next", *more)
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("known_start", [True, False])
def test_the_interval_holds_what_the_policy_is_worth(known_start):
    mdp = ravi.mdp("garnet/5,3,2,seed=1,discount=0.8")
    start = np.eye(5)[0]
    mdp = ravi.MDP(**{name: getattr(mdp, name) for name in ("rewards", "successors", "transitions", "discount")},
                   initial=start)  # fmt: skip
    widths = []
    for n in (300, 10_000):
        for seed in range(10):
            found = importers.plays(log_of(mdp, n, seed), 0.8, initial=0 if known_start else None, reward_range=(0, 1))
            worth = evaluate(found.policy, mdp).exact
            assert found.low <= worth <= found.high  # false alarm: at most 0.05 each, and the seeds are fixed
        widths.append(found.high - found.low)
    assert widths[1] < 0.4 * widths[0]


def cut(seed, n=2000):
    """n episodes of 5 steps that begin in 0 or 1, as often; both lead to 0, and 0 earns 1: worth 9.5 at gamma 0.9."""
    starts = np.random.default_rng(seed).integers(2, size=n).tolist()
    return [(x, 0, 1.0 - x, 0, i) for i, start in enumerate(starts) for x in (start, 0, 0, 0, 0)]


def test_resets_are_where_the_log_says_so_and_nowhere_else():
    """A reset that leads to where the episode was cut cannot be seen: of the others alone, nu_0 would be (0, 1)."""
    for seed in range(3):
        found = importers.plays(of_rows(cut(seed), "episode"), 0.9, reward_range=(0, 1))
        assert found.low <= 9.5 <= found.high  # false alarm: at most 0.05 each, and the seeds are fixed
    rows = [row[:4] for row in cut(0)]
    told = r"row 5: the state is 1, but the row before leads to 0, and neither an end nor another episode is between"
    refuses(told + r".* a column `episode`, or give the first state as initial=", importers.plays, of_rows(rows), 0.9)
    assert importers.plays(of_rows(rows), 0.9, initial={0: 0.5, 1: 0.5}, reward_range=(0, 1)).low < 9.5


@pytest.mark.parametrize("name", ["end", "terminated", "done"])
def test_after_an_end_comes_a_reset(name):
    rows = [(x, 0, 1.0, 1, x) for x in (0, 1, 0, 1, 1)]
    found = importers.plays(of_rows(rows, name), 0.9)
    assert found.model.states == [0, 1, "terminal"]
    assert found.model.mdp.initial.tolist() == [2 / 3, 1 / 3, 0]


def test_rows_that_are_not_in_order_are_told():
    rows = cut(0, 3)
    refuses(
        r"row 2: episode 0 comes again after another; the rows of an episode stand",
        importers.plays,
        of_rows([rows[0], rows[5], rows[1]], "episode"),
        0.9,
    )
    back = [(x, 0, 0.0, x + 1, 0) for x in (2, 1, 0)]
    refuses(
        r"row 1: the state is 1, but the row before leads to 3.* Rows must be",
        importers.plays,
        of_rows(back, "episode"),
        0.9,
    )


def test_with_many_plays_the_pessimistic_policy_is_a_good_one():
    mdp = ravi.mdp("riverswim/4,discount=0.8")
    found = importers.plays(log_of(mdp, 30_000, 0), 0.8, initial=0, reward_range=(0, 1))
    assert evaluate(found.policy, mdp).gap < 1e-9
    assert found.unplayed == 0
    model = found.model.mdp
    P, Q = np.zeros((2, 4, 2, 4))
    np.put_along_axis(P, model.successors.astype(int), model.transitions, 2)
    np.put_along_axis(Q, mdp.successors.astype(int), mdp.transitions, 2)
    np.testing.assert_allclose(P, Q, atol=0.06)
    np.testing.assert_allclose(model.rewards, mdp.rewards, atol=0.06)


def test_what_was_never_played_is_not_chosen_and_certainty_equivalence_alone_would_gamble():
    """Action b was played once in the only state, and won; action a won nine times of ten in a thousand plays."""
    rewards = [1.0] + [float(i % 10 > 0) for i in range(1000)]
    log = {"state": ["s"] * 1001, "action": ["b"] + ["a"] * 1000, "reward": rewards, "next": ["s"] * 1001}
    found = importers.plays(log, 0.9, reward_range=(0, 1))
    assert found.policy("s") == "a"
    assert ravi.Policy.of(found.model, ravi.solve(found.model.mdp).policy)("s") == "b"
    assert found.low < 9.0 < found.high  # worth 0.9 / (1 - 0.9)
    assert found.low > 8.0
    both = log["action"] + ["c"]  # never earned anything
    more = {"state": ["s"] * 1002, "action": both, "reward": [*rewards, 0.0], "next": ["s"] * 1002}
    assert importers.plays(more, 0.9, reward_range=(0, 1)).policy("s") == "a"


def test_plays_that_end_lead_to_an_end(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("state,action,reward,next,end\n" + "s,go,-2,s,1\ns,stay,-1,s,0\n" * 200)
    found = importers.plays(path, 0.9, reward_range=(-2, 0))
    assert found.model.states == ["s", "terminal"]
    assert found.policy.units == (-2.0, 0.0)
    assert found.policy("s") == "go"
    assert found.low < -2.0 <= found.high + 1e-9
    assert ravi.solve(found.model.mdp).optimum == pytest.approx((10 - 1) / 10, abs=1e-9)  # -2 once, then 0
    assert "400 steps, log.csv: 2 states, 2 actions, 0 pairs never played" in str(found)


def test_bounds_are_given_with_a_range_only_and_say_what_they_rest_on():
    """A reward of 100 with probability 0.01 that no row has is within no range that the rows have."""
    log = of_rows([("s", a, 1.0, "s") for a in "ab" * 50])
    found = importers.plays(log, 0.9)
    assert (found.low, found.high, found.greedy.low) == (None, None, None)
    assert found.pessimistic.estimate == found.greedy.estimate == pytest.approx(10)
    assert "from 1 to 2" not in str(found)
    assert "with probability" not in str(found)
    assert "no bounds: the range of rewards is not known; reward_range=(least, largest) of a step gives" in str(found)
    told = importers.plays(log, 0.9, reward_range=(0, 100), initial="s")
    assert str(told).endswith(
        "  if every state is in the log, the environment is Markov in them and rewards lie between 0 and 100"
    )
    assert "the log marks every reset" not in told.assumes
    assert importers.plays(log, 0.9, reward_range=(0, 1)).assumes.endswith(" and the log marks every reset")


def test_both_policies_are_judged_and_the_pessimistic_one_has_the_better_lower_bound():
    mdp = ravi.mdp("garnet/5,3,2,seed=1,discount=0.8")
    apart = 0
    for seed in range(10):
        found = importers.plays(log_of(mdp, 1000, seed), 0.8, reward_range=(0, 1))
        assert found.pessimistic.low >= found.greedy.low - 1e-6
        assert found.pessimistic.estimate <= found.greedy.estimate + 1e-9
        for one in (found.pessimistic, found.greedy):
            assert one.low <= evaluate(one.policy, mdp).exact <= one.high  # false alarm: at most 0.05 for each seed
        apart += found.pessimistic.estimate < found.greedy.estimate
    assert apart


def test_columns_may_have_the_names_that_logs_of_environments_use():
    rows = [(0, 1, 0.5, 1, False), (1, 0, 1.0, 0, True)] * 40
    names = [
        ("state", "action", "reward", "next", "end"),
        ("observation", "action", "reward", "next_observation", "terminal"),
        ("observations", "actions", "rewards", "next_observations", "terminals"),
        ("obs", "action", "reward", "next_obs", "terminated"),
    ]
    logs = [dict(zip(columns, zip(*rows, strict=True), strict=True)) for columns in names]
    found = [importers.plays(log, 0.9, reward_range=(0, 1)) for log in logs]
    assert len({(batch.low, batch.high, batch.policy.table.tobytes(), batch.model.mdp.digest) for batch in found}) == 1
    assert found[0].model.states == [0, 1, "terminal"]


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("state,action,reward\ns,a,1\n", {}, r"log.csv has no column next \(or next_state, .*\); it has state, act"),
        ("state,action,reward,next\ns,a,much,s\n", {}, r"log.csv, line 2: the reward is 'much', not a number"),
        ("state,action,reward,next,end\ns,a,1,s,maybe\n", {}, r"log.csv, line 2: end is 'maybe', not 0 or 1"),
        ("state,action,reward,next\ns,a,1,s\ns,a,3,s\n", {"reward_range": (0, 2)},
         r"log.csv, line 3: the reward is 3, outside reward_range 0 to 2"),
        ("state,action,reward,next,end\ns,a,1,s,1\n", {"reward_range": (1, 2)}, "leaves out 0, which is earned after"),
        ("state,action,reward,next\ns,a,1,s\n", {"initial": "t"}, r"initial is 't', which is no state of log.csv"),
        ("state,action,reward,next\ns,a,1,s\n", {"delta": 2}, "delta is 2"),
        ("state,action,reward,next,end\nterminal,a,1,s,1\n", {}, "has a state 'terminal', which is"),
        ("state,action,reward,next\n", {}, "log.csv has no rows"),
    ],
)  # fmt: skip
def test_what_is_no_log_is_told(tmp_path, text, options, told):
    (tmp_path / "log.csv").write_text(text)
    refuses(told, importers.plays, tmp_path / "log.csv", 0.9, **options)
