"""docs/index.md and docs/explanation/plus.md claim of RAVI-UCB+ what that page's recorded tables show, and no more."""

import re
from pathlib import Path

import numpy as np
import pytest

import ravi
from ravi.lab.experiments.reading import specify
from tests.helpers import script

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "explanation" / "plus.md").read_text()
HOME = " ".join((ROOT / "docs" / "index.md").read_text().split())
MAKE = script("figures/plus")
PROVABLE = {section: MAKE.means(TEXT, section) for section in MAKE.PROVABLE}


def places(section):
    """The MDP and column of every cell, and the learners, as the suite has them."""
    entries = [entry for entry in specify("plus", build=False).entries if entry.section == section]
    return {(entry.mdp, entry.column) for entry in entries}, {entry.label for entry in entries}


@pytest.mark.parametrize("section", MAKE.SECTIONS)
def test_the_page_has_every_cell_of_the_suite(section):
    columns, learners = places(section)
    found = MAKE.means(TEXT, section)
    assert set(found) == columns
    assert {frozenset(cells) for cells in found.values()} == {frozenset(learners)}


def test_who_has_the_smallest_regret_is_said_by_the_tables():
    assert MAKE.held(TEXT, "smallest") == MAKE.smallest(TEXT) + "\n"
    told = MAKE.held(TEXT, "smallest").splitlines()
    for section, found in PROVABLE.items():
        for (mdp, _), cells in found.items():
            others = [cells[name].value for name in MAKE.BOUNDED if name in cells and name != MAKE.PLUS]
            yes, no = told[0].split(" It does not on ")
            assert f"`{mdp}`" in (yes if cells[MAKE.PLUS].value < min(others) else no), (section, mdp)


def test_the_factors_over_ravi_ucb_are_those_of_the_tables():
    assert MAKE.held(TEXT, "gains") == MAKE.gains(TEXT) + "\n"
    ratios = []
    for section, suffix in (("tuned", ""), ("tuned-mixture", "/mixture")):
        for (_, column), cells in MAKE.means(TEXT, section).items():
            if column == "tuned":
                ratios.append(cells[f"ravi-ucb{suffix}"].value / cells[f"ravi-ucb+{suffix}"].value)
    low, high = re.search(r"a factor of ([\d.]+) to ([\d.]+) over", TEXT).groups()
    assert (float(low), float(high)) == (round(min(ratios), 1), round(max(ratios)))


def test_a_table_that_tells_otherwise_changes_what_is_said():
    """The sentences are made of the tables: neither can be changed alone."""
    worse = TEXT.replace("| ravi-ucb+ | 911 ", "| ravi-ucb+ | 2,911 ", 1)
    assert worse != TEXT
    assert "It does not on `riverswim/6,discount=0.95`" in MAKE.smallest(worse.replace("| 2,407 ", "| 99,407 "))
    with pytest.raises(SystemExit, match="changes with T"):
        MAKE.smallest(worse)
    assert MAKE.gains(TEXT.replace("| 0.39 ", "| 0.78 ")) != MAKE.gains(TEXT)


def test_psrl_has_less_on_all_mdps_and_o_reps_is_not_significantly_different_at_95():
    for found in PROVABLE.values():
        for cells in found.values():
            assert cells["psrl"].value < cells[MAKE.PLUS].value
    paired = MAKE.held(TEXT, "provable, paired")
    found = re.findall(r"discount=([\d.]+) \| o-reps .*\| ([\w ]+) \|\n", paired)
    assert found == [("0.95", MAKE.SAME), ("0.99", MAKE.LARGER)]


def test_the_home_page_has_the_numbers_of_the_tables():
    for section, mdp, other, said in (
        ("provable", "riverswim/6,discount=0.99", "ravi-ucb", "its regret is {0} where that of RAVI-UCB is {1}"),
        ("provable-elsewhere", "garnet/10,5,2", "mbie", "MBIE has {1} against its {0}"),
        ("provable-elsewhere", "trap", "ucrl2", "UCRL2 has {1} against its {0}"),
    ):
        cells = PROVABLE[section][mdp, "theory"]
        numbers = (f"{cells[name].value:,.0f}" for name in (MAKE.PLUS, other))
        assert f"{said.format(*numbers)} (`{mdp}`)" in HOME
    assert "T = 20,000" in MAKE.held(TEXT, "provable")
    assert "T = 20,000" in HOME


@pytest.mark.parametrize(
    ("learner", "mdp"), [("ucrl2", "trap"), ("ravi-ucb+", "trap"), ("mbie", "garnet/20,3,4,discount=0.9")]
)
def test_the_counterexamples_come_out_again(learner, mdp):
    entry = next(e for e in specify("plus", build=False).entries if (e.section, e.mdp) == ("provable-elsewhere", mdp))
    regret = ravi.run(learner, mdp, entry.steps, entry.seeds).regret.mean()
    cell = PROVABLE["provable-elsewhere"][mdp, "theory"][learner]
    digits = len(cell.text.partition(".")[2])
    assert round(float(regret), digits) == cell.value


def test_on_the_trap_the_zero_of_ucrl2_is_no_luck_and_that_of_r_max_is():
    """With the actions exchanged, UCRL2 has no regret still; R-MAX, which plays the first action, has all there is."""
    trap, T = ravi.mdp("trap"), 20_000
    P = np.zeros((trap.states, trap.actions, trap.states))
    np.put_along_axis(P, trap.successors.astype(np.int64), trap.transitions, axis=2)
    turned = ravi.MDP.from_dense(P[:, ::-1], trap.rewards[:, ::-1], trap.discount, trap.initial)
    for learner in ("ucrl2", "ucrl2b", "kl-ucrl"):
        assert abs(ravi.run(learner, turned, T, 4).regret).max() < 1e-6
    assert ravi.run("r-max", turned, T, 4).regret.min() == pytest.approx(T)
    assert ravi.run("r-max", trap, T, 4).regret.max() == pytest.approx(0, abs=1e-6)
