"""What is to be cited? BibTeX of the paper, of this software, and of the papers of learners, from their own docstrings.

A docstring cites as people do: A. Moulin, G. Neu, "Title", ICML 2023. What can be split into fields without guessing
is split; all else goes into a note as it stands. No field is made up.
"""

import inspect
import os
import re
import sys
import unicodedata
from collections.abc import Iterable

from ravi import __version__
from ravi.validation import InputError

TITLE = "ravi: optimistic planning and exploration in infinite-horizon discounted MDPs"
AUTHOR = "The ravi developers"
RELEASED = "2026-11-15"
PAPER = {
    "author": "Moulin, Antoine and Neu, Gergely",
    "title": "Optimistic Planning by Regularized Dynamic Programming",
    "booktitle": "Proceedings of the 40th International Conference on Machine Learning (ICML)",
    "year": "2023",
}

INITIALS, SURNAME = r"(?:[A-Z]\.(?:-[A-Z]\.)? ?)+", r"(?:Van )?[A-Z][\w'-]+"  # C.-Y. Wei, B. Van Roy
NAME = INITIALS + SURNAME
WORK = re.compile(rf'(?P<before>.*?)(?P<authors>{NAME}(?:, {NAME})*), "(?P<title>[^"]+)", (?P<where>.*?)\.?', re.DOTALL)
ARXIV = re.compile(r",? ?\(?arXiv (\d{4}\.\d{4,5})\)?")


def cite(names: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ()) -> str:
    """BibTeX for learners by their ids, and for all learners of folders of results; for nothing: the paper and ravi."""
    given = [names] if isinstance(names, (str, os.PathLike)) else list(names)
    if not given:
        return "\n".join([_entry("inproceedings", "moulin2023optimistic", PAPER), software()])
    learners: dict[str, bool] = {}  # id -> whether it was typed
    entries: dict[str, list[str]] = {}  # entry -> what it is cited for
    for name in given:
        if os.path.isdir(name):
            entries[software()] = []
            learners = dict.fromkeys(_learners_in(name), False) | learners
        else:
            learners[os.fspath(name)] = True
    for learner, typed in learners.items():
        head, text = _paper(learner, typed)
        for entry, why in _entries(head, text):
            cited = entries.setdefault(entry, [])
            cited += [why] if why and why not in cited else []
    return "\n".join(f"% {', '.join(cited)}\n{entry}" if cited else entry for entry, cited in entries.items())


def software() -> str:
    """BibTeX of this version of ravi."""
    fields = {"author": f"{{{AUTHOR}}}", "title": TITLE, "year": RELEASED[:4], "note": f"Version {__version__}"}
    return _entry("misc", "ravi", fields)


def _learners_in(folder: str | os.PathLike[str]) -> list[str]:
    from ravi.lab.experiments.results import results

    found = results(folder).runs["learner"].unique().to_pylist()
    if not found:
        raise InputError(f"{os.fspath(folder)} holds no runs yet: there is no learner to cite")
    return sorted(found)


def _paper(learner: str, typed: bool) -> tuple[str, str]:
    """The name of a learner, and what its docstring, or that of its file, says after `Paper:`.

    A module that a folder names is not imported for that.
    """
    from ravi import ids
    from ravi.core import Learner
    from ravi.ids import foreign_function, foreign_name
    from ravi.learners.cards import labelled

    own = foreign_name(learner)
    if own is not None and not typed:
        return own, f"none is known, since its module is not imported for a folder; ravi cite {own} does that."
    try:
        head = ids.canonical(learner).split(",")[0]
    except InputError as error:
        raise InputError(f"{error} A folder of results may be named as well.") from None
    if head in ids.LEARNERS:
        builder = ids.builder_of(ids.LEARNERS[head])
    else:
        builder = foreign_function(head, head, Learner)
    facts = labelled(inspect.getdoc(sys.modules[builder.__module__]) or "") | labelled(inspect.getdoc(builder) or "")
    return head, facts.get("Paper", "none is named in its docstring.")


def _entries(learner: str, text: str) -> list[tuple[str, str]]:
    """The entries of a citation, which may name several works, each with what it is cited for."""
    if re.match(r"none\b", text):
        return [(f"% {learner} has no paper: {text}\n", "")]
    pieces = re.split(r";\s+(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", text)  # at semicolons outside quotes
    return [_work(piece.strip(), learner, number) for number, piece in enumerate(pieces, start=1)]


def _work(text: str, learner: str, number: int) -> tuple[str, str]:
    """The entry of one work, and what it is cited for: the learner, and words that stand before the authors."""
    found = WORK.fullmatch(text)
    fields = None if found is None else _where(found["where"])
    if found is None or fields is None:
        return _entry("misc", f"{_plain(learner)}-{number}", {"note": text}), learner
    before = found["before"].strip(" ,:")
    why = f"{learner} ({before})" if before else learner
    title = " ".join(found["title"].split())
    if title.casefold() == PAPER["title"].casefold():
        return _entry("inproceedings", "moulin2023optimistic", PAPER), why
    kind = "article" if "journal" in fields else "inproceedings" if "booktitle" in fields else "misc"
    authors = re.findall(f"({INITIALS})({SURNAME})", found["authors"])
    names = " and ".join(f"{surname}, {initials.strip()}" for initials, surname in authors)
    word = next((word for word in re.findall(r"[a-z]+", title.lower()) if len(word) > 3), "")
    return _entry(kind, _plain(authors[0][1]) + fields["year"] + word, {"author": names, "title": title, **fields}), why


def _where(text: str) -> dict[str, str] | None:
    """The fields of `JMLR 11, 2010`, `ICML 2019, Section 5`, `arXiv 2002.05138, 2020`; None for what is like none."""
    fields = {}
    number = ARXIV.search(text)
    if number is not None:
        fields = {"eprint": number[1], "archivePrefix": "arXiv"}
        text = text[: number.start()] + text[number.end() :]
    text = text.strip(" ,")
    for form, kind in (
        (r"(?P<name>[A-Z][\w. ]*?) (?P<volume>\d+), (?P<year>\d{4})(?:,? (?P<note>.+))?", "journal"),
        (r"(?P<name>[A-Z][\w.]*) (?P<year>\d{4})(?:,? (?P<note>.+))?", "booktitle"),
        (r"(?P<name>[a-z ]+), (?P<year>\d{4})", "howpublished"),
        (r"(?P<name>)(?P<year>\d{4})", ""),
    ):
        found = re.fullmatch(form, " ".join(text.split()))
        if found is not None:
            told = {name: value for name, value in found.groupdict().items() if value and name != "name"}
            told |= {"note": told["note"].strip("()")} if "note" in told else {}
            return ({kind: found["name"]} if kind else {}) | told | fields
    return None


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    told = {name: f"{{{value}}}" if name == "title" else value for name, value in fields.items()}  # capitals stay
    lines = [f"  {name} = {{{_escaped(value)}}}," for name, value in told.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])


def _escaped(text: str) -> str:
    return re.sub(r"([&%$#_])", r"\\\1", text)


def _plain(text: str) -> str:
    """A text in the characters that a BibTeX key may have."""
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9-]+", "-", ascii_only.lower()).strip("-")
