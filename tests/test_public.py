"""The docstrings of public names: parameters, returns, attributes, and an example that is run here.

Public are the names of `ravi` and those of `ravi.kit`. Methods and properties of public classes have docstrings too;
those that take arguments name each.
"""

import doctest
import inspect
import re
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import ravi
from ravi import kit

MODULES = ("gymnasium", "importers", "ranges", "validation")  # whose functions have docstrings of their own
BY_PAGE = {"Array", "NEVER", "Buffer", "compiled", "compiled_learner", "each", "team"}  # which explains them
PAGE, GUIDE = (Path(__file__).parents[1] / "docs" / name for name in ("reference/kit.md", "guides/add_a_learner.md"))


def plain(thing):
    return getattr(thing, "py_func", thing)


THINGS = {
    name: plain(getattr(place, name))
    for place, left_out in ((kit, BY_PAGE), (ravi, {"__version__"}))
    for name in place.__all__
    if name not in MODULES and name not in left_out
}


def members(kind):
    """Public methods and properties of a class, by name, as the functions that they are made of."""
    for name in (name for name in dir(kind) if not name.startswith("_")):
        given = inspect.getattr_static(kind, name)
        given = getattr(given, "fget", None) or getattr(given, "func", None) or getattr(given, "__func__", given)
        if inspect.isfunction(given) and given.__module__.startswith("ravi"):
            yield name, given


CLASSES = [name for name, thing in THINGS.items() if inspect.isclass(thing)]
MEMBERS = {f"{name}.{own}": given for name in CLASSES for own, given in members(THINGS[name])}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_public_method_is_documented(name):
    text = inspect.getdoc(MEMBERS[name]) or ""
    assert text
    taken = [one for one in inspect.signature(MEMBERS[name]).parameters if one not in ("self", "cls")]
    assert [one for one in taken if one not in text] == []


@pytest.mark.parametrize("name", THINGS)
def test_a_public_name_is_documented_and_has_an_example(name):
    thing = THINGS[name]
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


@pytest.mark.parametrize("name", [*THINGS, *SHOWN])
def test_the_example_of_a_public_name_runs(name):
    tests = doctest.DocTestFinder(recurse=False).find(MEMBERS.get(name) or THINGS[name], name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    output = []
    for test in tests:
        runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    assert runner.tries > 0


def test_the_page_of_the_kit_has_its_names_and_the_guide_uses_those_that_it_explains():
    """By name, by the words of every range, and by the arguments of every check."""
    page, code = PAGE.read_text(), "".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S))
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| [^`|]+ \| (`.*) \|$", page, re.M)))
    assert sorted(listed) == sorted(kit.__all__)
    assert [name for name in BY_PAGE - {"each"} if not re.search(rf"import[^#]*\b{name}\b", code)] == []
    described = set(re.findall(r"^\.\. auto\w+:: ravi\.kit\.(\w+)", page, re.M))
    assert described == set(kit.__all__) - BY_PAGE - {*ravi.__all__, *MODULES}
    for name, words in re.findall(r"^\| `ranges\.(\w+)` \| (.*) \|$", page, re.M):
        assert getattr(kit.ranges, name).__metadata__[0].words == words, name
    for name, arguments in re.findall(r"^\| `validation\.(\w+)\((.*?)\)` ", page, re.M):
        taken = inspect.signature(getattr(kit.validation, name)).parameters
        assert [re.sub(r"=.*", "", one) for one in arguments.split(", ")] == list(taken), name


def test_the_repr_of_every_result_is_one_line_and_its_print_has_more(tmp_path):
    """In a list, a debugger or a notebook's cell of several names, an object takes one line."""
    mdp = ravi.mdp("riverswim/3")
    run, solution = ravi.run("psrl", mdp, 20, 2), ravi.solve(mdp)
    policy = ravi.Policy(table=solution.policy, discount=0.95)
    long = [run, ravi.hardness(mdp), ravi.evaluate(policy, mdp), ravi.compare(["psrl"], mdp, 20, 2)]
    short = [mdp, mdp.problem, solution, policy, ravi.evaluate(mdp, solution), ravi.occupancy(mdp, solution)]
    short += [ravi.Grid([0.0], [1.0], [3]), ravi.solve("riverswim/3,criterion=average"), ravi.md_mpi(mdp, 1.0, 2)]
    short += [ravi.learner("psrl", mdp, 20), ravi.agent("psrl", mdp, 20), ravi.discover("psrl", 20, discount=0.9)]
    short += [ravi.candidates(mdp, 20)]
    assert [type(one).__name__ for one in (*long, *short) if len(repr(one).splitlines()) > 1] == []
    assert all(len(str(one).splitlines()) > 1 for one in long)
    assert not any(" at 0x" in repr(one) for one in (*long, *short))


def lake():
    return gymnasium.make("FrozenLake-v1").unwrapped


@pytest.mark.parametrize("source", ["object", "id", "text", "path", "function", "partial"])
def test_an_mdp_is_named_in_any_way_wherever_one_is_taken(source, tmp_path):
    mdp, text = ravi.mdp("riverswim/3"), str(tmp_path / "river.npz")
    mdp.save(text)
    forms = {"object": mdp, "id": "riverswim/3", "text": text, "path": Path(text), "function": lambda: mdp}
    forms["partial"] = partial(ravi.mdp, "riverswim/3")
    where, table = forms[source], np.full((3, 2), 0.5)
    returns = ravi.return_of(mdp, table)
    assert ravi.mdp(where).digest == mdp.digest
    assert ravi.solve(where).optimum == ravi.solve(mdp).optimum
    assert ravi.return_of(where, table) == returns
    assert ravi.evaluate(table, where).returns == ravi.evaluate(where, table).returns
    assert (ravi.run("psrl", where, 20, 2).regret == ravi.run("psrl", mdp, 20, 2).regret).all()
    assert len(ravi.compare(["psrl", "uniform"], where, 20, 2).runs) == 2
    assert ravi.learn(where, "psrl", 20).plays == ravi.agent("psrl", where, 20).steps == 20
    assert ravi.learner("psrl", where, 20).name == "psrl"


@pytest.mark.parametrize("where", ["FrozenLake-v1", lake(), lake])
def test_an_environment_is_named_in_any_way(where):
    assert ravi.mdp(where, discount=0.9).states == 17
    assert ravi.learn(where, "psrl", 20).plays == 20
    left = [0] * 16  # the state after the end may be left out
    assert ravi.evaluate(where, left, discount=0.9, cycles=5).exact == 0
    assert ravi.evaluate([*left, 0], where, discount=0.9, cycles=5).exact == 0
    with pytest.raises(ravi.InputError, match="table is for 3 states and 4 actions, but FrozenLake-v1 has 17 states, "):
        ravi.evaluate([1] * 3, where, discount=0.9)


def test_what_is_called_needs_no_arguments():
    with pytest.raises(ravi.InputError, match=r"missing a required argument: 'problem'\. If it is a learner"):
        ravi.run("riverswim/3", lambda problem, steps: None, 20)
