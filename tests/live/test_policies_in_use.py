"""A policy that one can use: asked with observations, played in the environment's episodes, shown as a frame."""

import sys

import numpy as np
import pytest

import ravi
from ravi.live.environment import Environment, world_of
from ravi.live.grid import Grid
from ravi.live.policies import Policy
from ravi.live.policies.playing import origin_of
from ravi.validation import InputError
from tests.helpers import refuses

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces


class Walk(gymnasium.Env):
    """A walk over three places, seen through `space`, that ends at the last; actions are `actions`."""

    metadata = {"render_modes": ["ansi", "rgb_array"]}  # noqa: RUF012

    def __init__(self, space, see, actions=None, ends=True, render_mode=None):
        self.observation_space, self.see, self.ends, self.render_mode = space, see, ends, render_mode
        self.action_space = actions or spaces.Discrete(2)
        self.closed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.taken = 0, []
        return self.see(0), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(action)
        self.x = min(self.x + int(np.ravel(action)[0]) - self._first, 2)
        return self.see(self.x), float(self.x == 2), self.ends and self.x == 2, False, {}

    @property
    def _first(self):
        return int(np.ravel(getattr(self.action_space, "start", 0))[0])

    def render(self):
        return f"at {self.x}" if self.render_mode == "ansi" else np.full((8, 8, 3), self.x, np.uint8)

    def close(self):
        self.closed = True


def policy_of(env, grid=None, table=None, **facts):
    """Right everywhere, unless a table is given."""
    stream = Environment(env, grid=grid)
    made = np.eye(2)[[1] * stream.states] if table is None else table
    return Policy(table=made, discount=0.9, environment=stream.plain(), **facts)


PLACES = {
    "discrete": (spaces.Discrete(3, start=5), lambda x: 5 + x, None),
    "box": (spaces.Box(0, 3, (1,)), lambda x: np.array([x + 0.5], np.float32), Grid(0.0, 3.0, [3])),
    "digits": (spaces.MultiDiscrete([2, 2]), lambda x: np.array([x // 2, x % 2]), None),
    "dict": (
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(2)}), lambda x: {"a": x // 2, "b": x % 2}, None,
    ),
    "tuple": (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), lambda x: (x // 2, x % 2), None),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_a_policy_answers_to_the_observations_of_its_environment(name, tmp_path):
    space, see, grid = PLACES[name]
    env = Walk(space, see)
    policy = policy_of(env, grid)
    policy.save(tmp_path / "it")
    for each in (policy, ravi.load_policy(tmp_path / "it")):
        assert [each(see(x)) for x in range(3)] == [1, 1, 1]
        assert each.predict(see(1), deterministic=True) == (1, None)
        assert type(each(see(1))) is int
        assert each.predict(see(1))[0].item() == 1  # NumPy's, as Stable-Baselines3 has it
        (episode,) = each.play(env)
        assert (episode.total, episode.steps, episode.end, episode.unknown) == (1.0, 2, "terminated", 0)
        assert episode.discounted == pytest.approx(0.9)
    assert not env.closed
    assert policy.frame().shape == policy.table.shape
    assert policy.frame().index[-1] == "terminal" or policy.frame().index[-1][0] == "terminal"


@pytest.mark.parametrize(
    ("space", "first"),
    [(spaces.Discrete(2, start=-4), -4), (spaces.MultiDiscrete([2, 1]), np.array([0, 0])),
     (spaces.MultiBinary(1), np.array([0]))],
)  # fmt: skip
def test_actions_are_those_of_the_environment(space, first):
    env = Walk(*PLACES["discrete"][:2], actions=space)
    left = policy_of(env, table=np.eye(2)[[0] * 4])
    assert np.array_equal(left(5), first)
    assert left.play(env, limit=3)[0].end == "cut"
    assert len(env.taken) == 3


def test_a_vector_of_environments_gets_a_vector_of_actions():
    for name in PLACES:
        space, see, grid = PLACES[name]
        policy = policy_of(Walk(space, see), grid)
        each = [see(x) for x in (0, 2, 1)]
        batch = {key: np.array([one[key] for one in each]) for key in each[0]} if name == "dict" else np.array(each)
        batch = tuple(batch.T) if name == "tuple" else batch
        actions, state = policy.predict(batch)
        assert actions.tolist() == [1, 1, 1]
        assert state is None
    vector = gymnasium.make_vec("FrozenLake-v1", 3)
    with pytest.raises(InputError, match="not among whole numbers from 0 to 1"):
        policy.predict((np.zeros(3, int), np.zeros(2, int)))  # parts of two lengths are no vector
    lake = Policy.of("FrozenLake-v1", np.full((17, 4), 0.25), 0.9)
    observations, _ = vector.reset(seed=0)
    for _ in range(20):
        observations, *_ = vector.step(lake.predict(observations)[0])
    vector.close()


def test_a_policy_by_age_keeps_its_age_as_its_state():
    table = np.zeros((3, 4, 2))
    for age in range(3):
        table[age, :, age % 2] = 1
    policy = policy_of(Walk(*PLACES["discrete"][:2]), table=table)
    state, taken = None, []
    for _ in range(5):
        action, state = policy.predict(5, state)
        taken.append(action)
    assert taken == [0, 1, 0, 0, 0]  # the last stage serves on
    assert state == 5
    actions, state = policy.predict(np.array([5, 6]), np.array([1, 1]), episode_start=np.array([False, True]))
    assert (actions.tolist(), state.tolist()) == ([1, 0], [2, 1])
    assert policy.frame().index.names[0] == "age"


def test_draws_follow_from_the_seed_and_have_the_probabilities(tmp_path):
    table = np.array([[0.2, 0.8]] * 4)
    policy = policy_of(Walk(*PLACES["discrete"][:2]), table=table, seed=3)
    policy.save(tmp_path / "it")
    drawn = policy.predict(np.full(10_000, 5))[0]
    assert np.array_equal(drawn, ravi.load_policy(tmp_path / "it").predict(np.full(10_000, 5))[0])
    assert abs(drawn.mean() - 0.8) < 5 * 0.4 / 100  # five standard deviations; the seed is fixed
    assert set(policy.predict(np.full(100, 5), deterministic=True)[0].tolist()) == {1}


def test_what_was_learned_answers_whether_cut_into_cells_or_discovered():
    pole = ravi.learn("CartPole-v1", "psrl", 500, discount=0.9, reward_range=(0, 1), reward_scale=0,
                      grid=Grid(-2, 2, [2, 2, 2, 2], "clip", shape=(4,)))  # fmt: skip
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=0)
    assert env.action_space.contains(pole.policy()(observation))
    assert pole.policy().play(env, 2)[1].end == "terminated"
    jack = ravi.learn("Blackjack-v1", "psrl", 500, discount=0.9, discover=True, reward_range=(-1, 1)).policy()
    met = [tuple(each) for each in jack.environment["observations"]["labels"] if each != ["terminal"]]
    assert {jack(each) for each in met} <= {0, 1}
    assert jack.observations.row(met[0]) == 1
    assert jack.observations.row((99, 99, 0)) is None
    assert jack((99, 99, 0)) in (0, 1)
    frame = jack.frame()
    assert len(frame) == min(len(met) + 1, jack.table.shape[0])
    assert set(frame.index) <= {*met, ("terminal", "", "")}


def test_the_policy_of_a_solved_table_plays_as_well_as_it_is_worth():
    mdp = ravi.mdp("FrozenLake-v1", discount=0.99)
    assert mdp.digest == ravi.mdp("gymnasium/FrozenLake-v1,discount=0.99").digest
    lake = Policy.of("FrozenLake-v1", ravi.solve(mdp).policy, 0.99, learner="optimum")
    found = lake.play(episodes=400, seed=1)
    wins = np.array([each.total for each in found])
    assert {each.end for each in found} == {"terminated", "truncated"}  # it has its time limit of 100 steps
    at, won = mdp.initial, 0.0  # forward induction over 100 steps
    for _ in range(100):
        flow = at[:, None] * lake.table
        at, won = np.zeros(17), won + float((flow * mdp.rewards).sum())
        np.add.at(at, mdp.successors.ravel(), (flow[..., None] * mdp.transitions).ravel())
    assert abs(wins.mean() - won) < 5 * 0.44 / 20  # five standard deviations; the seed is fixed
    assert found == lake.play("FrozenLake-v1", 400, seed=1)
    assert lake.frame().loc[0, 0] == 1
    refuses(
        r"table is for 3 states and 4 actions, but FrozenLake-v1 has 17 states",
        Policy.of,
        "FrozenLake-v1",
        np.full((3, 4), 0.25),
        0.9,
    )


def test_text_is_printed_and_an_environment_shows_itself_as_it_was_made(capsys):
    env = Walk(*PLACES["discrete"][:2], render_mode="ansi")
    policy = policy_of(env)
    policy.play(env)
    assert capsys.readouterr().out == "at 0\nat 1\nat 2\n"
    refuses("was made with render_mode='ansi': make it with render_mode='human'", policy.play, env, render="human")
    lake = Policy.of("FrozenLake-v1", np.full((17, 4), 0.25), 0.9)
    lake.play(render="ansi")
    assert "SFFF" in capsys.readouterr().out.replace("\x1b[41m", "").replace("\x1b[0m", "")
    for mode in ("text", "rgb_array"):  # neither would show anything
        refuses(f"render is '{mode}'; FrozenLake-v1 offers human and ansi", lake.play, render=mode)


def test_videos_are_recorded_where_they_can_be(monkeypatch, tmp_path):
    env = Walk(*PLACES["discrete"][:2], render_mode="rgb_array")
    policy = policy_of(env)
    monkeypatch.setattr("ravi.live.policies.playing.find_spec", lambda name: None)
    refuses("videos are written by MoviePy: pip install moviepy", policy.play, env, video=tmp_path)
    recorded = []

    class Recorder(gymnasium.Wrapper):
        def __init__(self, world, folder, episode_trigger, disable_logger):
            super().__init__(world)
            recorded.append((folder, episode_trigger(7)))

    monkeypatch.setattr("ravi.live.policies.playing.find_spec", lambda name: object())
    monkeypatch.setattr(gymnasium.wrappers, "RecordVideo", Recorder)
    policy.play(env, 2, video=tmp_path)
    assert recorded == [(str(tmp_path), True)]
    refuses("make it with render_mode='rgb_array'", policy.play, Walk(*PLACES["discrete"][:2]), video=tmp_path)


def test_what_does_not_fit_is_told(monkeypatch):
    policy = policy_of(Walk(*PLACES["discrete"][:2]))
    refuses("9 is not among whole numbers from 5 to 7", policy, 9)
    refuses("in Walk, and FrozenLake-v1 has other observations: whole numbers from 0", policy.play, "FrozenLake-v1")
    refuses(r"CartPole-v1 has other observations: Box.*, not whole numbers from 5 to 7", policy.play, "CartPole-v1")
    box = Walk(*PLACES["discrete"][:2], actions=spaces.Box(-1, 1, (1,)))
    refuses(r"Walk has other actions: Box\(.*, not whole numbers from 0 to 1", policy.play, box)
    refuses(r"options Walk was made: give the environment, as in policy\.play\(env\)", policy.play)
    refuses(r"state has shape \(3,\), but there are 1 observations", policy.predict, 5, np.zeros(3))
    refuses("deterministic is 'yes', neither True nor False", policy.predict, 5, deterministic="yes")
    refuses("options is 5, not a dict", policy.play, options=5)
    refuses("episodes is 0", policy.play, episodes=0)
    with pytest.raises(InputError, match="does not say where it was learned"):
        Policy(table=np.eye(2), discount=0.9).play()
    monkeypatch.setitem(sys.modules, "pandas", None)
    refuses(r"policy\.frame\(\) needs pandas: pip install pandas", policy.frame)


def test_a_policy_of_an_mdp_is_asked_by_number():
    swim = Policy(table=np.eye(2)[[1] * 6], discount=0.9)
    assert swim(3) == 1
    assert swim.predict([0, 5])[0].tolist() == [1, 1]
    labelled = Policy(table=np.eye(2), discount=0.9, states=["hall", [1, 2]], actions=["stay", "go"])
    assert (labelled("hall"), labelled([1, 2])) == ("stay", "go")
    assert labelled.frame().loc["hall", "stay"].item() == 1


def test_an_environments_id_is_an_mdp_once_it_has_a_discount():
    refuses(r"FrozenLake-v1 is an environment, .* ravi\.mdp\('FrozenLake-v1', disc", ravi.mdp, "FrozenLake-v1")
    refuses(r"or the id gymnasium/FrozenLake-v1,discount=0\.99", ravi.mdp, "FrozenLake-v1")
    refuses(
        r"Walk is an environment, .* ravi\.mdp\(env, discount=0\.99\), in the shell", ravi.mdp, Walk(*PLACES["box"][:2])
    )
    refuses(r"CartPole-v1 has no table P to be read", ravi.mdp, "CartPole-v1", discount=0.9)
    refuses("there is no MDP 'FrozenLake-v99'", ravi.mdp, "FrozenLake-v99")


def test_a_policy_of_another_environment_says_where_it_was_learned():
    from ravi.live.policies import evaluate

    policy = ravi.learn("FrozenLake-v1", "uniform", 200, discount=0.9).policy("last")
    refuses(
        "the policy was learned in FrozenLake-v1, and CartPole-v1 has other observations: Box",
        evaluate,
        policy,
        "CartPole-v1",
        cycles=1,
    )
    refuses(
        r"policy is 'it\.policy', not a Policy: ravi\.load_policy reads one", evaluate, "it.policy", "FrozenLake-v1"
    )


def test_a_policy_keeps_the_module_of_its_environment(tmp_path, monkeypatch):
    """Gymnasium forgets `module:`, without which nobody can make the environment again, with its options."""
    (tmp_path / "kept_world.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.toy_text import FrozenLakeEnv\n"
        "gymnasium.register('Kept-v0', entry_point=FrozenLakeEnv)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = world_of("kept_world:Kept-v0", {"is_slippery": False})
    kept = ravi.learn(env, steps=300).policy().environment
    assert kept["id"] == "kept_world:Kept-v0"
    assert origin_of(kept, allow_code=True) == ("kept_world:Kept-v0", {"is_slippery": False})
    refuses("kept_world", origin_of, kept)
    for name in ("kept_world:Kept-v0", "Kept-v0"):
        assert origin_of(kept, name) == (name, {"is_slippery": False})
    assert origin_of(kept, "kept_world:Other-v0")[1] == {}
