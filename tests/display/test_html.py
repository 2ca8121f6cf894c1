"""What notebooks show: the numbers of the object, as HTML that is whole, and nothing that runs."""

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import ravi
from ravi.display import html
from ravi.verify import verify

EVIL = "<script>alert('x')</script>&\x1b[2J"


@pytest.fixture(scope="module")
def mdp():
    P = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]])
    return ravi.MDP.from_dense(P, [[0.0, 0.25], [1.0, 0.5]], 0.9, 0, name=EVIL)


def texts(shown):
    """Every text of it, if it is whole; no element that runs or fetches."""
    tree = ElementTree.fromstring(shown)
    assert not {"script", "link", "img", "iframe"} & {element.tag for element in tree.iter()}
    assert not any("http" in value or "url(" in value for element in tree.iter() for value in element.attrib.values())
    assert "\x1b" not in shown
    return [text for element in tree.iter() for text in (element.text,) if text]


def test_an_mdp_shows_where_actions_lead(mdp):
    said = texts(mdp._repr_html_())
    assert said[0] == r"MDP <script>alert('x')</script>&\x1b[2J"
    assert "0: 0 (0.9), 1 (0.1); 1: 0 (0.2), 1 (0.8)" in said
    assert "0, 0.25" in said
    assert "action: leads to (with probability)" not in texts(ravi.mdp("garnet/50,3,2")._repr_html_())
    assert "0: 0" not in " ".join(texts(mdp.problem._repr_html_()))  # a learner is not told


def test_a_solution_shows_values_and_actions(mdp):
    best = ravi.solve(mdp)
    said = texts(best._repr_html_())
    assert f"{best.V[1]:.6g}" in said
    assert f"{best.Q[0, 1]:.6g}" in said
    assert f"{best.optimum:.12g} ± {best.optimum_error:.1g} (certified)" in said


def test_a_run_shows_what_it_prints_and_its_curve(mdp):
    run = ravi.run("psrl", mdp, 300, seeds=3)
    said = texts(run._repr_html_())
    assert [value for _, value in run.facts()] == [text for text in said if text in dict(run.facts()).values()]
    tree = ElementTree.fromstring(run._repr_html_())
    points = tree.find(".//polyline").attrib["points"].split()
    assert len(points) == 120
    heights = [float(point.split(",")[1]) for point in points]
    high, low = run.regret_curve.max(), min(run.regret_curve.min(), 0.0)
    assert heights[-1] == pytest.approx(html.HEIGHT * (1 - (run.regret.mean() - low) / (high - low)), abs=0.06)


def test_runs_without_curves_show_their_facts(mdp):
    for more in ({"measured": False}, {"pause": 0}):
        assert "svg" not in ravi.run("uniform", mdp, 50, **more)._repr_html_()
    assert "earned" not in texts(ravi.run("ravi-ucb", "large/grid,9", 50)._repr_html_())


def test_policies_show_probabilities(mdp):
    policy = ravi.Policy(table=[[0.25, 0.75], [1, 0]], discount=0.9, learner=EVIL)
    said = texts(policy._repr_html_())
    assert [text for text in said if text.startswith("0.") and text != "0.9"] == ["0.25", "0.75"]
    many = ravi.Policy(table=np.eye(40), discount=0.9)
    assert "and 28 more" in texts(many._repr_html_())
    assert "most probable action" in texts(many._repr_html_())


def test_what_was_learned_shows_what_it_prints():
    found = ravi.learn("FrozenLake-v1", steps=300)
    said = texts(found._repr_html_())
    assert found.title in said
    assert all(words in said for _, words in found.facts())
    assert str(found).splitlines()[0] == found.title


@pytest.mark.usefixtures("in_this_process")
def test_results_and_tables_show_every_row(tmp_path):
    from ravi.lab.report.tables import table

    learners = ["psrl", "uniform"]
    suite = {"steps": 100, "seeds": 2, "sections": [{"name": EVIL, "mdps": ["riverswim/3"], "learners": learners}]}
    ravi.run_suite(suite, tmp_path / "there", workers=1)
    found = ravi.results(tmp_path / "there")
    said = texts(found._repr_html_())
    assert said.count("2 of 2") == 2
    assert f"{found.regret(learner='uniform')[1].mean():,.2f}" in said
    assert said[0] == str(found).splitlines()[0]
    made = table(found)
    assert any(made.panels[0].rows[0][-1].text in text for text in texts(made._repr_html_()))


def test_verify_shows_every_claim():
    report = verify("ravi-ucb", "riverswim/3,discount=0.7", steps=200, seeds=2)
    said = texts(report._repr_html_())
    assert [row.id for row in report.rows] == [text for text in said if text in {row.id for row in report.rows}]
    assert said[0] == report.summary()


def test_nothing_heavy_is_loaded_before_it_is_asked_for():
    code = (
        "import sys, ravi; ravi.run('psrl', 'riverswim/3', 50)._repr_html_(); ravi.mdp('trap')._repr_html_(); "
        "print([name for name in ('matplotlib', 'pandas', 'IPython') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
