"""Figures of what a learner has learned: ellipsoids, maps, steps of the policy, margins of validity."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import ravi
from ravi.display import maps as layouts
from ravi.display import style
from ravi.lab.report import grids, learning, parameters
from ravi.runtime.api import resolved
from ravi.validation import InputError
from ravi.verify import verify

matplotlib = pytest.importorskip("matplotlib")


def lines(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.get_lines()}


# Parameters.


@pytest.fixture(scope="module")
def found():
    return parameters.ellipsoids(
        "ravi-ucb/mixture,scale=0.03,step_scale=30", "riverswim/mixture/4", 3000, (50, 400, 3000)
    )


def test_the_shadow_is_the_set_of_extreme_points_of_the_ellipsoid():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    one = parameters.Ellipsoid(1, rng.normal(size=4), root @ root.T + np.eye(4), 2.5)
    shadow = one.shadow((3, 1))
    # its reach in direction u is beta ||u||_{Lambda^-1}
    for angle in (0.0, 0.7, 2.0, 4.0):
        u = np.zeros(4)
        u[[3, 1]] = np.cos(angle), np.sin(angle)
        reach = u @ one.centre + 2.5 * np.sqrt(u @ np.linalg.solve(one.covariance, u))
        assert (shadow @ u[[3, 1]]).max() == pytest.approx(reach, rel=1e-3)
        furthest = one.centre + 2.5 * np.linalg.solve(one.covariance, u) / np.sqrt(
            u @ np.linalg.solve(one.covariance, u)
        )
        assert one.holds(one.centre + 0.999 * (furthest - one.centre))
        assert not one.holds(one.centre + 1.001 * (furthest - one.centre))


def test_ellipsoids_are_those_of_an_uninterrupted_run(found):
    assert [one.time >= asked for one, asked in zip(found, (50, 400, 3000), strict=True)] == [True] * 3
    run = ravi.run("ravi-ucb/mixture,scale=0.03,step_scale=30", "riverswim/mixture/4", 3000, 1)
    whole = parameters.ellipsoid_of(run)
    assert np.array_equal(whole.covariance, found[-1].covariance)
    assert np.allclose(found[-1].centre, ravi.estimators.ridge.parameter(run.state.data)[0])
    assert whole.radius == run.settings["beta"]


def test_the_figure_of_parameters_shows_shadows_centres_and_theta(found, tmp_path):
    theta = ravi.mdp("riverswim/mixture/4").parameter
    drawn = parameters.parameter_figure(found, theta, coordinates=(2, 0), title="it")
    ax = drawn.figure.axes[0]
    for place, one in enumerate(found):
        line, centre = ax.get_lines()[2 * place : 2 * place + 2]
        assert np.array_equal(np.stack(line.get_data(), 1), one.shadow((2, 0)))
        assert np.allclose(np.ravel(centre.get_data()), one.centre[[2, 0]])
        assert line.get_label().startswith(f"t = {one.time:,}")
        assert ("outside" in line.get_label()) == (not one.holds(theta))
    assert np.allclose(np.ravel(lines(ax)["true θ"].get_data()), theta[[2, 0]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("θ[2]", "θ[0]")
    drawn.save(tmp_path / "it", ["png"])


# Maps.


@pytest.mark.parametrize("id", ["deep-sea/5", "terrain/4", "winds/3", "riverswim/5", "riverswim/mixture/5", "queue/6"])
def test_actions_lead_where_the_layout_says(id):
    mdp = ravi.mdp(id)
    where = layouts.layout(mdp.name, mdp.states, mdp.actions)
    assert where.rows * where.columns == mdp.states
    assert len(where.actions) == mdp.actions
    if where.moves is None:
        return
    row, column = where.rows // 2, where.columns // 2  # away from the borders
    x = row * where.columns + column
    for a, (right, up) in enumerate(where.moves):
        y = (row - int(up)) * where.columns + column + int(right)
        reached = mdp.successors[x, a][mdp.transitions[x, a] > 0]
        assert y in reached


def test_maps_show_the_state_of_the_run(tmp_path):
    mdp = ravi.mdp("terrain/4")
    run = ravi.run("ravi-ucb,scale=0.01,step_scale=30", mdp, 800, 2)
    drawn = grids.maps(run, mdp, seed=1, title="it")
    images = [ax.images[0].get_array() for ax in drawn.figure.axes if ax.images]
    assert np.array_equal(images[0].ravel(), run.state.V[1])
    assert np.allclose(images[1].ravel(), run.settings["beta"] / np.sqrt(run.state.data.visits[1].min(-1)))
    assert np.array_equal(images[2].ravel(), run.state.data.visits[1].sum(-1) - 4)
    assert images[2].sum() == 800
    arrows = next(ax for ax in drawn.figure.axes if ax.get_title() == "most probable action").collections[0]
    best = run.last_policy[1].argmax(-1)
    moves = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])[best]
    assert np.array_equal(np.stack([arrows.U, arrows.V], 1), moves)
    assert np.array_equal(drawn.data["best"].ravel(), best)
    assert all("(" in ax.get_title() for ax in drawn.figure.axes if ax.images and "action" not in ax.get_title())
    assert drawn.figure.get_size_inches()[0] == style.DOUBLE
    drawn.save(tmp_path / "it", ["pdf"])


def test_the_bonus_of_a_mixture_learner_is_that_of_its_own_parts():
    mdp = ravi.mdp("riverswim/mixture/5")
    mdp, learner = resolved(mdp, "ravi-ucb/mixture,scale=0.1,step_scale=30", 500)
    run = ravi.run(learner, mdp, 500, 2)
    shown = grids.fields_of(run, mdp, 1)["largest bonus"]
    parts = learner.parts
    expected = parts.bonus(run.state.data, parts.estimator.embed(run.state.V))[1].max(-1)
    assert np.allclose(shown, expected)
    assert "largest bonus" not in grids.fields_of(run)  # without features


def test_actions_without_a_direction_are_numbers_and_colours():
    where = layouts.layout("queue/4,2", 5, 2)
    policy = np.eye(2)[[0, 1, 1, 0, 1]]
    drawn = layouts.map_figure(where, {}, policy)
    ax = drawn.figure.axes[0]
    assert np.array_equal(ax.images[0].get_array().ravel(), [0, 1, 1, 0, 1])
    assert [text.get_text() for text in ax.texts] == ["0", "1", "1", "0", "1"]
    many = layouts.map_figure(layouts.layout("garnet", 60, 12), {"value V": np.arange(60.0)}, np.full((60, 12), 1 / 12))
    assert (many.data["best"] == 0).all()


# Epochs.

AGENT = "ravi-ucb,scale=0.01,step_scale=30"


@pytest.fixture(scope="module")
def seen():
    return learning.watched(AGENT, "riverswim/4", 1500, 3)


def test_what_is_watched_is_what_the_run_did(seen):
    run = ravi.run(AGENT, "riverswim/4", 1500, 3)
    for row, starts in zip(seen.start, run.T_k, strict=True):
        assert np.array_equal(row, starts[: seen.epochs])
    assert seen.epochs == min(len(starts) for starts in run.T_k)


def test_policies_move_by_no_more_than_the_step_allows(seen):
    assert (seen.step <= seen.eta * seen.horizon * (1 + 1e-9)).all()
    assert (seen.largest <= seen.step**2 / 8 * (1 + 1e-6) + 1e-15).all()
    assert (seen.entropy <= seen.largest * (1 + 1e-9)).all()
    assert seen.largest.max() > 0
    assert (seen.entropy[:, 0] == 0).all()  # pi_1 = pi_0


def test_margins_agree_with_verification(seen):
    """The paper's constants are valid here; a tiny bonus is not, from the epoch that the audit names."""
    invalid_at = verify(AGENT, "riverswim/4", 1500, 3, only=["S4"]).invalid_at
    for row, at in zip(seen.margin, invalid_at, strict=True):
        bad = np.flatnonzero(row < -1e-9 * seen.horizon)
        assert (bad[0] + 1 if len(bad) else 0) == at
    assert (invalid_at > 0).any()  # so that both sides are seen
    assert (learning.watched("ravi-ucb", "riverswim/4", 300, 2).margin >= 0).all()


def test_points_stand_for_all_epochs_and_the_least_margin_is_kept(seen):
    edges = learning._edges(1000)
    assert (edges[0], edges[-1]) == (1, 1001)
    assert len(edges) <= learning.POINTS + 1
    drawn = learning.validity(seen)
    assert drawn.data["margin"].min() == seen.margin.min()
    assert drawn.data["invalid"] == (seen.margin < 0).mean()
    right = drawn.figure.axes[1]
    assert np.array_equal(lines(right)["least margin, all pairs and seeds"].get_ydata(), drawn.data["margin"])
    left = lines(drawn.figure.axes[0])
    edges = learning._edges(seen.epochs)
    pooled = [seen.bonus[:, a - 1 : b - 1].mean() for a, b in pairwise(edges)]
    assert np.allclose(left["bonus, mean under the policy"].get_ydata(), pooled)


def test_the_figure_of_steps_shows_entropies_and_their_ceiling(seen, tmp_path):
    drawn = learning.policy_steps(seen, title="it")
    left, right = (lines(ax) for ax in drawn.figure.axes)
    ceiling = left["(ηH)²/8: never above"].get_ydata()[0]
    assert ceiling == pytest.approx((seen.eta * seen.horizon) ** 2 / 8)
    assert np.nanmax(left["largest of a state"].get_ydata()) <= ceiling
    assert right["ηH: never above"].get_ydata()[0] == pytest.approx(seen.eta * seen.horizon)
    mean = drawn.data["curves"]["effective step"][0]
    assert np.allclose(right["effective step sₖ"].get_ydata(), np.where(mean > 0, mean, np.nan), equal_nan=True)
    assert all("(" in ax.get_ylabel() and ax.get_xlabel() == "epoch k" for ax in drawn.figure.axes)
    drawn.save(tmp_path / "it", ["svg"])


STRIP = layouts.layout("riverswim/4", 4, 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: layouts.map_figure(STRIP, {"visits": np.zeros(5)}), r"visits has shape \(5,\), not \(4,\)"),
        (lambda: layouts.map_figure(STRIP, {}), "nothing to draw"),
        (lambda: parameters.ellipsoid_of(ravi.run("psrl", "riverswim/4", 20, 1)), "keeps no ellipsoid"),
        (lambda: parameters.ellipsoids("ravi-ucb/mixture", "riverswim/mixture/4", 100, (101,)), "times must be among"),
        (lambda: parameters.parameter_figure([parameters.Ellipsoid(1, np.zeros(2), np.eye(2), 1.0)],
                                             coordinates=(0, 2)), "two different ones of 0, "),
        (lambda: learning.watched("psrl", "riverswim/4", 10), "psrl has no parts"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_told(asked, said):
    with pytest.raises(InputError, match=said):
        asked()


def test_other_mdps_are_strips():
    assert layouts.layout("garnet/25,3,4", 25, 3)[:2] == (1, 25)
    assert layouts.layout("mine", 9, 2).moves is None
    assert layouts.layout("deep-sea/3", 10, 2).strip  # not a square: someone else's MDP of that name
