"""Bars where someone looks, gone at the end; and callbacks that are told what the run then holds."""

import io
import logging
import sys
import types

import numpy as np
import pytest

import ravi
from ravi._jit.functions import effort
from ravi.display import progress
from ravi.validation import InputError


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook was shown, one after the other."""
    shown = []
    page = types.ModuleType("IPython.display")
    page.HTML = lambda text: text
    page.display = lambda text, display_id: shown.append(text) or types.SimpleNamespace(update=shown.append)
    there = types.ModuleType("IPython")
    there.display, there.get_ipython = page, lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", there)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shown


def test_a_bar_says_that_functions_are_compiled(monkeypatch):
    there = terminal(monkeypatch)
    with progress.telling(None, "it", patience=0):
        monkeypatch.setattr(progress, "PACE", 0.0)
        effort.tell()
    assert "compiling, once" in there.getvalue()
    assert effort.tell is None


def test_a_notebook_has_a_bar_and_keeps_nothing_of_it(notebook):
    with progress.telling(None, "<it>", patience=0) as tell:
        tell(1, 4)
        tell(4, 4)
    assert any("&lt;it&gt; <progress value='4' max='4'></progress> 100%" in text for text in notebook)
    assert notebook[-1] == ""


def test_runs_and_suites_may_be_asked_for_a_bar(tmp_path, monkeypatch):
    asked = []
    whole = progress.bar
    monkeypatch.setattr(progress, "bar", lambda *given: asked.append(given) or whole(*given))
    ravi.run("psrl", "riverswim/3", 100, progress=False)
    ravi.learn("FrozenLake-v1", steps=50, progress=True)
    section = {"name": "a", "mdps": ["riverswim/3"], "learners": ["psrl"]}
    ravi.run_suite({"name": "s", "steps": 50, "seeds": 1, "sections": [section]}, tmp_path / "there", workers=1)
    assert [given[:2] for given in asked] == [
        (False, "psrl on riverswim/3"), (True, "psrl/pooled in FrozenLake-v1"), (None, "s"),
    ]  # fmt: skip


@pytest.mark.parametrize("asked", [ravi.run, ravi.run_settings])
def test_progress_is_a_function_or_a_choice(asked):
    learner = "psrl" if asked is ravi.run else ["psrl"]
    with pytest.raises(InputError, match="progress is 3, not a function, True or False"):
        asked(learner, "riverswim/3", 100, progress=3)
    told = []
    asked(learner, "riverswim/3", 100, seeds=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (200, 200)


@pytest.mark.parametrize("mdp", ["riverswim/3", "large/grid,9", "tides/6,block=50"])
def test_the_last_looks_are_what_the_run_holds(mdp):
    looks = []
    run = ravi.run("ravi-ucb", mdp, 300, seeds=[4, 7], callback=looks.append)
    last = {int(seed): (look, i) for look in looks for i, seed in enumerate(look.seeds)}
    assert sorted(last) == [4, 7]
    for row, seed in enumerate(run.seeds):
        look, i = last[seed]
        assert look.time[i] == 300
        for name, values in look.numbers.items():
            np.testing.assert_array_equal(values[i], run.results[name][row])
    assert "reward_total" in look.numbers or "regret_total" in look.numbers


def test_looks_on_the_way_grow_and_change_no_bit(monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr("ravi.runtime.compiled.time", types.SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    looks = []
    run = ravi.run("psrl", "riverswim/3", 500, 1, callback=looks.append)
    times = [int(look.time[0]) for look in looks]
    assert times == sorted(times)
    assert len(set(times)) > 5
    at = dict(zip(run.times.tolist(), run.regret_curve[0].tolist(), strict=True))
    for look in looks:
        assert look.numbers["regret_total"][0] == pytest.approx(at[int(look.time[0])], rel=1e-12)
    assert (run.regret_curve == ravi.run("psrl", "riverswim/3", 500, 1).regret_curve).all()


def test_a_terminal_has_a_bar_and_keeps_nothing_of_it(monkeypatch):
    """None of what is quick, where nobody looks, or where none is wanted."""
    for asked, patience, isatty in ((None, 60, True), (False, 0, True), (None, 0, False), (None, 0, True)):
        there = terminal(monkeypatch) if isatty else io.StringIO()
        monkeypatch.setattr(sys, "stderr", there)
        with progress.telling(asked, "it", patience) as tell:
            for done in (1, 4) if tell else ():
                tell(done, 4)
        shown = there.getvalue()
        assert bool(shown) == (asked is not False and not patience and isatty)
    assert "it" in shown
    assert "100%" in shown
    assert shown.endswith("\x1b[2K")  # the line is cleared


def test_runs_and_streams_tell_callbacks_and_the_logger_and_show_no_bar(monkeypatch, caplog):
    looks, there = [], terminal(monkeypatch)
    with caplog.at_level(logging.INFO, logger="ravi"):
        run = ravi.run("psrl", "riverswim/3", 100)
        found = ravi.learn("FrozenLake-v1", steps=400, callback=looks.append)
    assert [record.getMessage().rpartition(", in")[0] for record in caplog.records] == [run.title, found.title]
    assert (looks[-1].seeds, looks[-1].time) == (0, 400)
    assert looks[-1].numbers["earned"][0] == found.earned.value
    assert there.getvalue() == ""
