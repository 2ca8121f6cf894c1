"""Pictures of one object: what they draw is what it holds, and what they need is said in one line."""

import sys

import numpy as np
import pytest

import ravi
from ravi.display.maps import layout
from ravi.validation import InputError

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def run():
    return ravi.run("psrl", "riverswim/4", 400, seeds=3)


def test_a_run_is_drawn_with_all_its_seeds(run):
    drawn = run.plot()
    (axes,) = drawn.figure.axes
    (line,) = axes.get_lines()
    assert (line.get_ydata() == run.regret_curve.mean(0)).all()
    assert (line.get_xdata() == run.times).all()
    assert drawn._repr_png_().startswith(PNG)


def test_runs_go_on_the_same_axes(run, tmp_path):
    drawn = run.plot(log=True)
    ravi.run("uniform", "riverswim/4", 400, seeds=3).plot(axes=drawn.figure.axes[0], label="it")
    axes = drawn.figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["psrl", "it"]
    assert len({line.get_color() for line in axes.get_lines()}) == 2
    assert axes.get_yscale() == "log"
    assert [file.suffix for file in drawn.save(tmp_path / "both")] == [".pdf", ".png"]


def test_a_run_without_regret_shows_what_was_earned():
    run = ravi.run("ravi-ucb", "large/grid,9", 200)
    assert (run.plot().data["reward"] == run.reward_curve).all()
    with pytest.raises(InputError, match="neither regret nor reward"):
        ravi.run("uniform", "riverswim/3", 50, measured=False).plot()


@pytest.mark.parametrize("id", ["riverswim/4", "garnet/5,2,2", "trap", "one-state/2"])
def test_a_graph_has_every_move(id):
    mdp = ravi.mdp(id)
    drawn = mdp.draw()
    held = {(x, a, mdp.successors[x, a, j]): p for (x, a, j), p in np.ndenumerate(mdp.transitions) if p > 0}
    assert {move[:3]: move[3] for move in drawn.data["moves"]} == held
    patches = [type(patch).__name__ for patch in drawn.figure.axes[0].patches]
    assert (patches.count("Circle"), patches.count("FancyArrowPatch")) == (mdp.states, len(held))
    assert drawn._repr_png_().startswith(PNG)


@pytest.mark.parametrize("id", ["deep-sea/5", "queue/40", "gymnasium/FrozenLake-v1,discount=0.9"])
def test_grids_and_large_mdps_are_maps_of_rewards(id):
    mdp = ravi.mdp(id)
    grid = mdp.draw().data["fields"]["largest reward"]
    assert (grid.ravel() == mdp.rewards.max(-1)[: grid.size]).all()
    assert grid.size in (mdp.states, mdp.states - 1)  # a lake has an end beyond its tiles


@pytest.mark.parametrize(("id", "shape"), [("FrozenLake-v1", (4, 4)), ("CliffWalking-v1", (4, 12))])
def test_actions_of_known_environments_lead_where_arrows_point(id, shape):
    options = ",options=is_slippery:false" if id == "FrozenLake-v1" else ""
    mdp = ravi.mdp(f"gymnasium/{id},discount=0.9{options}")
    where = layout(mdp.name, mdp.states, mdp.actions)
    assert where[:2] == shape
    tile = 6 if id == "FrozenLake-v1" else 15
    for a, (right, up) in enumerate(where.moves):
        (reached,) = mdp.successors[tile, a][mdp.transitions[tile, a] > 0]
        assert reached in (tile + right - up * where.columns, mdp.states - 1)  # or a hole, which is an end


def test_an_optimum_and_what_was_learned_are_maps():
    best = ravi.solve(ravi.mdp("deep-sea/5"))
    assert (best.plot().data["best"].ravel() == best.policy.argmax(-1)).all()
    found = ravi.learn("FrozenLake-v1", steps=300)
    drawn = found.plot("planned")
    assert drawn.data["fields"]["visits"].sum() == found.agent.visits[:16].sum()
    assert (drawn.data["best"].ravel() == found.table("planned")[:16].argmax(-1)).all()


def test_what_was_learned_is_drawn_in_the_units_of_the_environment_without_its_end():
    found = ravi.learn("Taxi-v4", steps=3000)
    drawn, model = found.plot(), found.agent.model()
    (values,) = drawn.data["fields"]["value V"]
    assert values.shape == (500,)
    kernel = np.zeros((501, 501))
    pairs = np.arange(501), found.table().argmax(-1)
    np.add.at(kernel, (pairs[0][:, None], model.successors[pairs]), model.transitions[pairs])
    earned = -10 + 30 * model.rewards[pairs]  # rewards are from -10 to 20
    np.testing.assert_allclose(values, np.linalg.solve(np.eye(501) - 0.99 * kernel, earned)[:500], atol=1e-6)


def test_curves_are_a_frame(run):
    pandas = pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns)[:6] == ["seed", "time", "regret", "reward", "learner", "mdp"]
    assert (frame.pivot(index="seed", columns="time", values="regret").to_numpy() == run.regret_curve).all()


@pytest.mark.parametrize(
    ("absent", "asked", "said"),
    [
        ("matplotlib", lambda run: run.plot(), "figures need matplotlib: pip install 'ravi[figures]'"),
        ("matplotlib", lambda run: ravi.mdp("trap").draw(), "figures need matplotlib: pip install 'ravi[figures]'"),
        ("pandas", lambda run: run.to_pandas(), "run.to_pandas() needs pandas: pip install pandas"),
    ],
)
def test_what_is_missing_is_said_in_one_line(run, monkeypatch, absent, asked, said):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(InputError) as told:
        asked(run)
    assert str(told.value).startswith(said)
    assert "\n" not in str(told.value)
