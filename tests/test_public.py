"""Every public name says what it takes, what it gives and shows it: its docstring has an example that is run here."""

import doctest
import inspect

import pytest

import ravi

NAMES = sorted(set(ravi.__all__) - {"__version__"})
MODULES = ("gymnasium", "importers")  # whose functions have docstrings of their own
LATER = ("Learned", "Run", "Stopped", "learn", "resume", "resume_settings", "run", "run_settings")


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(MODULES)))
def test_a_public_name_is_told_and_shown(name):
    thing = getattr(ravi, name)
    text = inspect.getdoc(thing) or ""
    wanted = ["Examples\n--------"] + ["Parameters\n----------", "Returns\n-------"] * inspect.isfunction(thing)
    assert [part for part in wanted if part not in text] == []
    told = text.partition("Parameters\n")[2].partition("Returns\n")[0]
    if inspect.isfunction(thing):
        assert [one for one in inspect.signature(thing).parameters if one not in told] == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(MODULES)))
def test_the_example_of_a_public_name_runs(name):
    tests = doctest.DocTestFinder(recurse=False).find(getattr(ravi, name), name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said = []
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert runner.tries > 0
