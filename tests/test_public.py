"""The docstrings of public names: parameters, returns, attributes, and an example that is run here.

Methods and properties of public classes have docstrings too; those that take arguments name each.
"""

import doctest
import inspect
import re

import pytest

import ravi

NAMES = sorted(set(ravi.__all__) - {"__version__"})
MODULES = ("gymnasium", "importers")  # whose functions have docstrings of their own


def members(kind):
    """Public methods and properties of a class, by name, as the functions that they are made of."""
    for name in (name for name in dir(kind) if not name.startswith("_")):
        given = inspect.getattr_static(kind, name)
        given = getattr(given, "fget", None) or getattr(given, "func", None) or getattr(given, "__func__", given)
        if inspect.isfunction(given) and given.__module__.startswith("ravi"):
            yield name, given


CLASSES = [name for name in NAMES if inspect.isclass(getattr(ravi, name))]
MEMBERS = {f"{name}.{own}": given for name in CLASSES for own, given in members(getattr(ravi, name))}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_public_method_is_told(name):
    text = inspect.getdoc(MEMBERS[name]) or ""
    assert text
    taken = [one for one in inspect.signature(MEMBERS[name]).parameters if one not in ("self", "cls")]
    assert [one for one in taken if one not in text] == []


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(MODULES)))
def test_a_public_name_is_told_and_shown(name):
    thing = getattr(ravi, name)
    text = inspect.getdoc(thing) or ""
    sections = dict(zip(*[iter(re.split(r"^(\w+)\n---+\n", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    assert "Examples" in sections
    if inspect.isfunction(thing):
        assert "Returns" in sections
        assert [one for one in inspect.signature(thing).parameters if one not in sections["Parameters"]] == []
    elif not issubclass(thing, Exception):
        fields = inspect.get_annotations(thing) or getattr(thing, "__slots__", ())
        entries = re.findall(r"^\w.*$", sections["Attributes"], flags=re.MULTILINE)
        assert [one for one in fields if one not in ", ".join(entries).split(", ")] == []


SHOWN = [name for name, given in MEMBERS.items() if ">>>" in (given.__doc__ or "")]


@pytest.mark.parametrize("name", [*sorted(set(NAMES) - set(MODULES)), *SHOWN])
def test_the_example_of_a_public_name_runs(name):
    tests = doctest.DocTestFinder(recurse=False).find(MEMBERS.get(name) or getattr(ravi, name), name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said = []
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert runner.tries > 0
