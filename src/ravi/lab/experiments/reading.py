"""The reader of a suite: that of a name, of a TOML file, or of Python data of the same shape, with every mistake."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ravi import validation
from ravi.ids import file_in, foreign_name
from ravi.lab import suites
from ravi.lab.experiments.building import Builder, is_id
from ravi.lab.experiments.mistakes import Mistakes, Place, Places, lines
from ravi.lab.experiments.suite import (
    COLUMNS,
    CURVES,
    FIRST_TUNING_SEED,
    MOST,
    SAMPLERS,
    Section,
    Suite,
    Tuning,
)
from ravi.validation import InputError, require_memory

T = TypeVar("T")
Fields: TypeAlias = Mapping[str, Callable[[Place, Any], Any]]  # how the value of a key is read
Options: TypeAlias = tuple[tuple[str, str, bool], ...]  # key, value, and whether there are several values

SHARED = ("steps", "seeds", "points", "record", "columns")  # keys of a section that the top may give for all
RUN = 200  # bytes that a driver, or who reads the results, has for every run


def specify(source: str | os.PathLike[str] | Mapping[str, Any], *, seeds: Any = None, build: bool = True) -> Suite:
    """The suite of a name (`ravi.lab.suites`), of a TOML file, or of Python data of the same shape.

    seeds: these, in place of those of every section: how many, a text such as 5-8 or 1,7,9, or a list.
    build: every MDP is built, and every learner for every MDP and T, so that what cannot be is told now. Without it
    ids are taken as they are: for a suite that was specified before.
    """
    if isinstance(source, Mapping):
        data, mistakes, base, name = dict(source), Mistakes("", {}), Path.cwd(), "suite"
    else:
        text, file, base, name = _source(source)
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(_syntax(file, error)) from None
        except RecursionError:
            raise InputError(f"{file}: its lists and tables are nested too deep") from None
        mistakes = Mistakes(file, lines(text))
    read = Reader(mistakes, base)
    suite = read.suite(data, name, seeds)
    if validation.flag(build, "build"):
        Builder(mistakes, base).check(suite, read.places)
    mistakes.tell()
    return suite


def shipped() -> dict[str, Suite]:
    """The suites that come with the library, by name; nothing is built."""
    return {name: specify(name, build=False) for name in suites.SUITES}


def _source(source: str | os.PathLike[str]) -> tuple[str, str, Path, str]:
    """The TOML of a suite, how its file is called in messages, its folder, and the name that it has by default."""
    if isinstance(source, str) and source in suites.SUITES:
        return suites.text(source), f"{source}.toml", Path.cwd(), source
    path = validation.path(source, "suite")
    if not path.is_file():
        near = validation.did_you_mean(os.fspath(source), suites.SUITES) or f" Known: {', '.join(suites.SUITES)}."
        raise InputError(f"there is no suite {os.fspath(source)!r}.{near} A suite may also be a TOML file.")
    try:
        return path.read_bytes().decode(), str(path), path.absolute().parent, path.stem
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _syntax(file: str, error: tomllib.TOMLDecodeError) -> str:
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    return f"{file}:{found[2]}: {found[1]} (column {found[3]})" if found else f"{file}: {error}"


class Reader:
    """From what TOML gives to a suite. A mistake is noted and left out, so that all of them are found."""

    def __init__(self, mistakes: Mistakes, base: Path) -> None:
        self.mistakes, self.base = mistakes, base
        self.places: list[Places] = []
        self.shared: Fields = {
            "steps": lambda p, v: self._values(p, v if is_list(v) else [v], validation.steps),
            "seeds": lambda p, v: tuple(validation.seeds(v)),
            "points": lambda p, v: validation.whole(v, "points", 1, 10**6),
            "record": lambda p, v: self._values(p, v, lambda one: validation.one_of(one, CURVES, "record"), empty=True),
            "columns": lambda p, v: self._values(p, v, lambda one: validation.one_of(one, COLUMNS, "a column")),
        }

    def suite(self, data: Mapping[str, Any], name: str, seeds: Any) -> Suite:
        fields: Fields = {
            "name": _text,
            "title": _any_text,
            "folder": _text,
            "device": lambda p, v: validation.one_of(v, validation.DEVICES, "device"),
            "tuning": lambda p, v: Tuning(**{k: one for k, one in self._table(p, v, TUNING).items() if one != ()}),
            "sections": self._list,
            **self.shared,
        }
        top = self._table((), data, fields, required=("sections",))
        tuning = top.get("tuning", Tuning())
        if seeds is not None:
            wanted, seeds = seeds, ()
            with self.mistakes.at(("seeds",)):
                seeds = tuple(validation.seeds(wanted, "seeds"))
        sections: list[Section] = []
        names: set[str] = set()
        entries = runs = 0
        for i, one in enumerate(top.get("sections", ())):
            section = self._section(("sections", i), one, top, seeds, tuning)
            if section is None:
                continue
            if section.name in names:
                self.mistakes.add(("sections", i, "name"), f"there are two sections {section.name!r}")
            sections.append(section)
            names.add(section.name)
            entries, runs = entries + section.entries, runs + _runs(section, tuning)
            self._plannable(("sections", i), entries, runs)
        own = any(foreign_name(one) for section in sections for one in (*section.mdps, *section.learners.values()))
        folder = top.get("folder", str(self.base) if self.mistakes.file else "")
        return Suite(
            name=top.get("name", name), sections=tuple(sections), title=top.get("title", ""), tuning=tuning,
            folder=os.path.abspath(self.base / folder) if own and folder else "", device=top.get("device", "cpu"),
        )  # fmt: skip

    def _section(self, path: Place, data: Any, top: Mapping[str, Any], seeds: Any, tuning: Tuning) -> Section | None:
        fields: Fields = {
            "name": _text, "remark": _any_text, "mdps": self._list, "learners": self._list, "options": self._grid,
            **self.shared,
        }  # fmt: skip
        own = self._table(path, data, fields, required=("name", "mdps", "learners"))
        if not isinstance(data, Mapping):
            return None
        shared = {key: found[key] for found in (top, own) for key in SHARED if key in found}
        shared |= {"seeds": seeds} if seeds is not None else {}
        for key in ("steps", "seeds"):
            if key not in shared:
                self.mistakes.add(path, f"{key} missing: give them here, or for all sections at the top")
        mdps: dict[str, Place] = {}
        for i, one in enumerate(own.get("mdps", ())):
            where = (*path, "mdps", i)
            if not self._few(where, len(mdps)):
                break
            for text in self._mdp(where, one):
                if text in mdps:
                    self.mistakes.add(where, f"{text} stands in the list twice")
                mdps[text] = where
        learners: dict[str, str] = {}
        labels: dict[str, Place] = {}
        for i, one in enumerate(own.get("learners", ())):
            where = (*path, "learners", i)
            if not self._few(where, len(learners)):
                break
            for label, text in self._learner(where, one, own.get("options", [()])):
                if label in learners:
                    self.mistakes.add(where, f"there are two learners with the label {label!r}")
                learners[label], labels[label] = text, where
        places: dict[str, Place] = {key: (*path, key) if key in data else (key,) for key in SHARED}
        self.places.append(Places(places, mdps, labels))
        columns = tuple(shared.get("columns", ("given",)))
        common = sorted(set(shared.get("seeds", ())) & set(tuning.seeds)) if "tuned" in columns else []
        if common:
            also = f" (and {len(common) - 1} more)" if len(common) > 1 else ""
            wrong = f"seed {common[0]}{also} is a tuning seed too; what was tuned on it must not report it"
            self.mistakes.add(places["seeds"] if seeds is None else ("seeds",), wrong)
        return Section(
            name=own.get("name", ""), mdps=tuple(mdps), learners=learners, steps=shared.get("steps", ()),
            seeds=shared.get("seeds", ()), columns=columns, points=shared.get("points", Section.points),
            record=shared.get("record", ()), remark=own.get("remark", ""),
        )  # fmt: skip

    def _mdp(self, path: Place, data: Any) -> list[str]:
        """The ids of an entry; a file's path is made absolute."""
        text, _, grid = self._entry(path, data, "id", "options")
        whole = str(self.base / text)
        file, _ = file_in(whole)  # options may follow
        if text and not is_id(text) and os.path.isfile(file):
            text = os.path.abspath(file) + whole[len(file) :]
        return [_with(text, options) for options in grid if text]

    def _learner(self, path: Place, data: Any, more: list[Options]) -> list[tuple[str, str]]:
        """The labels and ids of an entry."""
        text, label, grid = self._entry(path, data, "id", "label", "options")
        found: list[tuple[str, str]] = []
        if text and self._few(path, len(grid) * len(more)):
            for options in (own + others for own in grid for others in more):
                varied = [f"{key}={value}" for key, value, several in options if several]
                id = _with(text, options)
                found.append((", ".join([label, *varied]) if label else id, id))
        return found

    def _entry(self, path: Place, data: Any, *keys: str) -> tuple[str, str, list[Options]]:
        fields: Fields = {"id": _text, "label": _text, "options": self._grid}
        if not isinstance(data, str | Mapping):
            self.mistakes.add(path, f"{data!r} is neither an id nor a table with {', '.join(keys)}")
            return "", "", []
        table = {"id": data} if isinstance(data, str) else data
        found = self._table(path, table, {key: fields[key] for key in keys}, required=("id",))
        return found.get("id") or "", found.get("label") or "", found.get("options", [()])

    def _grid(self, path: Place, data: Any) -> list[Options]:
        """Every combination of options; of one that is wrong there is none."""
        choices: list[list[tuple[str, str, bool]]] = []
        each: Fields = {}
        if isinstance(data, Mapping):
            each = {key: lambda p, v: self._values(p, v, _written) if is_list(v) else (_written(v),) for key in data}
        for key, values in self._table(path, data, each).items():
            several = is_list(data[key]) and len(data[key]) > 1
            choices.append([(key, value, several) for value in values])
        fits = isinstance(data, Mapping) and self._few(path, prod(map(len, choices)))
        return list(product(*choices)) if fits else []

    # What many of these share.

    def _table(self, path: Place, data: Any, fields: Fields, required: Iterable[str] = ()) -> dict[str, Any]:
        """The values of a table by key; that of a key whose value is wrong is empty."""
        found: dict[str, Any] = {}
        if not isinstance(data, Mapping):
            self.mistakes.add(path, f"{data!r} is not a table")
            return found
        for key in data:
            if key not in fields:
                near = validation.did_you_mean(str(key), fields) or f" Known: {', '.join(fields)}."
                self.mistakes.add((*path, key), f"there is no key {key!r}.{near}")
        for key in required:
            if key not in data:
                self.mistakes.add(path, f"{key} missing")
        for key in (key for key in fields if key in data):
            found[key] = ()
            with self.mistakes.at((*path, key)):
                found[key] = fields[key]((*path, key), data[key])
        return found

    def _list(self, path: Place, value: Any, empty: bool = False) -> Sequence[Any]:
        """The entries of a list, if there are any, and not too many."""
        if not is_list(value):
            raise InputError(f"{value!r} is not a list")
        if not value and not empty:
            raise InputError("the list is empty")
        return list(value) if self._few(path, len(value)) else []

    def _values(self, path: Place, value: Any, read: Callable[[Any], T], empty: bool = False) -> tuple[T, ...]:
        """The values of a list, none of them twice."""
        found: dict[T, None] = {}
        for i, one in enumerate(self._list(path, value, empty)):
            with self.mistakes.at((*path, i)):
                entry = read(one)
                if entry in found:
                    raise InputError(f"{one!r} stands in the list twice")
                found[entry] = None
        return tuple(found)

    def _plannable(self, path: Place, entries: int, runs: int) -> None:
        """An error, before anything is built, if there are more entries or runs than can be planned."""
        with self.mistakes.at(path):
            if entries > MOST:
                counted = f"up to here there would be {entries} entries, MDPs x learners x T x columns"
                raise InputError(f"{counted}, and {MOST} are the most")
            what = f"to keep account of {runs} runs up to here, tuning among them,"
            require_memory(RUN * runs, what, "seeds or entries")
            return
        self.mistakes.tell()

    def _few(self, path: Place, count: int) -> bool:
        if count > MOST:
            self.mistakes.add(path, f"there would be {validation.shown(count)} of these, and {MOST} are the most")
        return count <= MOST


def _runs(section: Section, tuning: Tuning) -> int:
    """How many a section asks for; those of tuning as if every learner were tuned for it alone."""
    tuned = section.entries // len(section.columns) if "tuned" in section.columns else 0
    return section.entries * len(section.seeds) + tuned * tuning.budget * len(tuning.seeds)


def is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | range)


def _with(text: str, options: Options) -> str:
    return ",".join([text, *(f"{key}={value}" for key, value, _ in options)])


def _any_text(path: Place, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{value!r} is not a text")
    return value


def _text(path: Place, value: Any) -> str:
    if value == "":
        raise InputError("the text is empty")
    return _any_text(path, value)


def _written(value: Any) -> str:
    """An option as an id has it."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f"{value!r} is neither a number nor a text")
    if value == "" or "," in str(value):
        raise InputError(f"{value!r} cannot stand in an id")
    return str(value)


def _tuning_seeds(value: Any) -> tuple[int, ...]:
    chosen = validation.seeds(value)
    counted = isinstance(value, (int, float)) or (isinstance(value, str) and value.isdigit())
    return tuple(FIRST_TUNING_SEED + seed for seed in chosen) if counted else tuple(chosen)


def _range(value: Any, name: str) -> tuple[float, float]:
    if not is_list(value) or len(value) != 2:
        raise InputError(f"{value!r} is not a range [low, high]")
    low, high = (validation.positive(one, name) for one in value)
    if low > high:
        raise InputError(f"{name} goes from {low:g} to {high:g}; the smaller one comes first")
    return low, high


TUNING: Fields = {
    "budget": lambda p, v: validation.whole(v, "budget", 1, 10**6),
    "seeds": lambda p, v: _tuning_seeds(v),
    "scale": lambda p, v: _range(v, "scale"),
    "step_scale": lambda p, v: _range(v, "step_scale"),
    "sampler": lambda p, v: validation.one_of(v, SAMPLERS, "sampler"),
}
