"""Citations: BibTeX of the paper, of this software, and of the papers of learners.

`references.toml` has every work once, with the learners that are cited by it, each perhaps with what it is cited for.
The docstring of a learner that is not of this library may say its paper by the label `Paper:`.
"""

import inspect
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ravi import __version__
from ravi.validation import InputError

TITLE = "ravi: optimistic planning and exploration in Markov decision processes"
AUTHOR = "The ravi developers"
RELEASED = "2026-11-15"
REFERENCES = Path(__file__).with_name("references.toml")


def cite(names: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ()) -> str:
    """BibTeX for learners by their ids, and for all learners of folders of results; for nothing: the paper and ravi."""
    given = [names] if isinstance(names, (str, os.PathLike)) else list(names)
    if not given:
        return "\n".join([*(entry for entry, _ in works("ravi-ucb")), software()])
    learners: dict[str, bool] = {}  # id -> whether it was typed
    entries: dict[str, list[str]] = {}  # entry -> what it is cited for
    for name in given:
        if os.path.isdir(name):
            entries[software()] = []
            learners = dict.fromkeys(_learners_in(name), False) | learners
        else:
            learners[os.fspath(name)] = True
    for learner, allow_typed_modules in learners.items():
        for entry, why in _works_of(learner, allow_typed_modules):
            cited = entries.setdefault(entry, [])
            cited += [why] if why and why not in cited else []
    return "\n".join(f"% {', '.join(cited)}\n{entry}" if cited else entry for entry, cited in entries.items())


def software() -> str:
    """BibTeX of this version of ravi."""
    return _entry("misc", "ravi", author=f"{{{AUTHOR}}}", title=TITLE, year=RELEASED[:4], note=f"Version {__version__}")


def _entry(kind: str, key: str, **fields: Any) -> str:
    """BibTeX of one work; a title keeps its capitals."""
    lines = [f"  {name} = {{{f'{{{text}}}' if name == 'title' else text}}},\n" for name, text in fields.items()]
    return f"@{kind}{{{key},\n{''.join(lines)}}}\n"


def works(learner: str) -> list[tuple[str, str]]:
    """The entries of a learner of this library by its name, each with what it is cited for."""
    found = []
    for key, fields in tomllib.loads(REFERENCES.read_text(encoding="utf-8")).items():
        kind, learners = fields.pop("kind"), fields.pop("learners")
        found += [(_entry(kind, key, **fields), one) for one in learners if one.partition(" (")[0] == learner]
    return found


def _learners_in(folder: str | os.PathLike[str]) -> list[str]:
    from ravi.lab.experiments.results import results

    found = results(folder).runs["learner"].unique().to_pylist()
    if not found:
        raise InputError(f"{os.fspath(folder)} holds no runs yet: there is no learner to cite")
    return sorted(found)


def _works_of(learner: str, allow_typed_modules: bool) -> list[tuple[str, str]]:
    """The entries of a learner by its id; one that is not of this library has what its docstring says as a note.

    A module that a folder names is not imported for that.
    """
    from ravi import ids
    from ravi.core import Learner
    from ravi.ids import foreign_function, foreign_name
    from ravi.learners.cards import labelled

    own = foreign_name(learner)
    if own is not None and not allow_typed_modules:
        reason = f"none is known, since its module is not imported for a folder; ravi cite {own} does that."
        return [(f"% {own} has no paper: {reason}\n", "")]
    try:
        head = ids.canonical(learner).split(",")[0]
        wrapped = ids.learner_named(head)
        head = wrapped.name if works(wrapped.name) else wrapped.base  # of a learner that is wrapped, its own papers
    except InputError as error:
        raise InputError(f"{error} A folder of results may be named as well.") from None
    known = works(head)
    if known:
        return known
    builder = ids.builder_of(ids.LEARNERS[head]) if head in ids.LEARNERS else foreign_function(head, head, Learner)
    facts = labelled(inspect.getdoc(sys.modules[builder.__module__]) or "") | labelled(inspect.getdoc(builder) or "")
    paper = facts.get("Paper", "none is named in its docstring.")
    if paper.startswith("none"):
        return [(f"% {head} has no paper: {paper}\n", "")]
    key, note = re.sub(r"[^a-z0-9-]+", "-", head.lower()).strip("-"), re.sub(r"([&%$#_])", r"\\\1", paper)
    return [(_entry("misc", key, note=note), head)]
