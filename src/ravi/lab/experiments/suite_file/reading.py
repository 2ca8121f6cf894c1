"""Is this a suite? From what TOML gives, or Python, to the types of a suite."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ravi import validation
from ravi.ids import WORLDS, file_in, foreign_name
from ravi.lab.experiments.schedule.settings import CURVES
from ravi.lab.experiments.suite_file.mistakes import Mistakes
from ravi.lab.experiments.suite_file.specification import (
    COLUMNS,
    FIRST_TUNING_SEED,
    MOST,
    SAMPLERS,
    Section,
    Suite,
    Tuning,
)
from ravi.lab.experiments.suite_file.toml_lines import Path as Place
from ravi.runtime.gpu import DEVICES
from ravi.validation import InputError, require_memory

T = TypeVar("T")
Options: TypeAlias = tuple[tuple[str, str, bool], ...]  # key, value, and whether there are several values

SHARED = ("steps", "seeds", "points", "record", "columns")  # keys of a section that the top may give for all
SUITE = ("name", "title", "folder", "device", "tuning", "sections", *SHARED)
SECTION = ("name", "remark", "mdps", "learners", "options", *SHARED)
RUN = 200  # bytes that a driver, or who reads the results, has for every run


class Places(NamedTuple):
    """The places in the file of the parts of a section."""

    shared: dict[str, Place]  # the keys that the top may give, by name
    mdps: dict[str, Place]
    learners: dict[str, Place]  # by label


class Reader:
    """From what TOML gives to a suite. What is wrong is noted and left out, so that all of it is found."""

    def __init__(self, told: Mistakes, base: Path) -> None:
        self.told, self.base = told, base
        self.places: list[Places] = []

    def suite(self, data: Mapping[str, Any], name: str, seeds: Any) -> Suite:
        self._known((), data, SUITE)
        tuning = self._tuning(data.get("tuning", {}))
        defaults = self._shared((), data)
        if seeds is not None:
            wanted, seeds = seeds, ()
            with self.told.at(("seeds",)):
                seeds = tuple(validation.seeds(wanted, "seeds"))
        given = self._list((), data, "sections")
        sections: list[Section] = []
        names: set[str] = set()
        entries = runs = 0
        for i, one in enumerate(given):
            section = self._section(("sections", i), one, defaults, seeds, tuning)
            if section is None:
                continue
            if section.name in names:
                self.told.add(("sections", i, "name"), f"there are two sections {section.name!r}")
            sections.append(section)
            names.add(section.name)
            entries, runs = entries + section.entries, runs + _runs(section, tuning)
            self._plannable(("sections", i), entries, runs)
        found, device = tuple(sections), "cpu"
        with self.told.at(("device",)):
            device = validation.one_of(data.get("device", "cpu"), DEVICES, "device")
        own = any(foreign_name(one) for section in found for one in (*section.mdps, *section.learners.values()))
        folder = self._text((), data, "folder", str(self.base) if self.told.file else "")
        return Suite(
            name=self._text((), data, "name", name), sections=found,
            title=self._text((), data, "title", "", empty=True), tuning=tuning,
            folder=os.path.abspath(self.base / folder) if own and folder else "", device=device,
        )  # fmt: skip

    def _section(
        self, path: Place, data: Any, defaults: Mapping[str, Any], seeds: Any, tuning: Tuning
    ) -> Section | None:
        if not self._table(path, data):
            return None
        self._known(path, data, SECTION)
        shared = {**defaults, **self._shared(path, data)} | ({"seeds": seeds} if seeds is not None else {})
        for key in ("steps", "seeds"):
            if key not in shared:
                self.told.add(path, f"{key} missing: give them here, or for all sections at the top")
        if "name" not in data:
            self.told.add(path, "name missing")
        mdps: dict[str, Place] = {}
        for i, one in enumerate(self._list(path, data, "mdps")):
            if not self._few((*path, "mdps", i), len(mdps)):
                break
            for text in self._mdp((*path, "mdps", i), one):
                if text in mdps:
                    self.told.add((*path, "mdps", i), f"{text} stands in the list twice")
                mdps[text] = (*path, "mdps", i)
        options = self._grid((*path, "options"), data.get("options", {}))
        learners: dict[str, str] = {}
        labels: dict[str, Place] = {}
        for i, one in enumerate(self._list(path, data, "learners")):
            if not self._few((*path, "learners", i), len(learners)):
                break
            for label, text in self._learner((*path, "learners", i), one, options):
                if label in learners:
                    self.told.add((*path, "learners", i), f"there are two learners with the label {label!r}")
                learners[label], labels[label] = text, (*path, "learners", i)
        said: dict[str, Place] = {key: (*path, key) if key in data else (key,) for key in SHARED}
        self.places.append(Places(said, mdps, labels))
        chosen = tuple(shared.get("seeds", ()))
        columns = tuple(shared.get("columns", ("given",)))
        common = sorted(set(chosen) & set(tuning.seeds)) if "tuned" in columns else []
        if common:
            where = (*path, "seeds") if "seeds" in data and seeds is None else ("seeds",)
            also = f" (and {len(common) - 1} more)" if len(common) > 1 else ""
            self.told.add(
                where, f"seed {common[0]}{also} is a tuning seed too; what was tuned on it must not report it"
            )
        return Section(
            name=self._text(path, data, "name", ""), mdps=tuple(mdps), learners=learners, steps=shared.get("steps", ()),
            seeds=chosen, columns=columns, points=shared.get("points", Section.points), record=shared.get("record", ()),
            remark=self._text(path, data, "remark", "", empty=True),
        )  # fmt: skip

    def _shared(self, path: Place, data: Mapping[str, Any]) -> dict[str, Any]:
        """The values that a section may set itself, or take from the top level."""
        read: dict[str, Callable[[Place, Any], Any]] = {
            "steps": lambda p, v: self._each(p, v if _is_list(v) else [v], lambda one: validation.steps(one)),
            "seeds": lambda p, v: tuple(validation.seeds(v)),
            "points": lambda p, v: validation.whole(v, "points", 1, 10**6),
            "record": lambda p, v: self._each(p, v, lambda one: validation.one_of(one, CURVES, "record"), empty=True),
            "columns": lambda p, v: self._each(p, v, lambda one: validation.one_of(one, COLUMNS, "a column")),
        }
        found = {}
        for key in (key for key in read if key in data):
            found[key] = () if key != "points" else Section.points  # where it is wrong
            with self.told.at((*path, key)):
                found[key] = read[key]((*path, key), data[key])
        return found

    def _tuning(self, data: Any) -> Tuning:
        path: Place = ("tuning",)
        if not self._table(path, data):
            return Tuning()
        self._known(path, data, [one.name for one in fields(Tuning)])
        read: dict[str, Callable[[Any], Any]] = {
            "budget": lambda v: validation.whole(v, "budget", 1, 10**6),
            "seeds": _tuning_seeds,
            "scale": lambda v: _range(v, "scale"),
            "step_scale": lambda v: _range(v, "step_scale"),
            "sampler": lambda v: validation.one_of(v, SAMPLERS, "sampler"),
        }
        found = {}
        for key in (key for key in read if key in data):
            with self.told.at((*path, key)):
                found[key] = read[key](data[key])
        return Tuning(**found)

    def _mdp(self, path: Place, data: Any) -> list[str]:
        """The ids of an entry; a file's path is made absolute."""
        text, _, grid = self._entry(path, data, ("id", "options"))
        if not text:
            return []
        whole = str(self.base / text)
        file, _ = file_in(whole)  # options may follow
        if not is_id(text) and os.path.isfile(file):
            text = os.path.abspath(file) + whole[len(file) :]
        return [_with(text, options) for options in grid]

    def _learner(self, path: Place, data: Any, more: list[Options]) -> list[tuple[str, str]]:
        """The labels and ids of an entry."""
        text, label, grid = self._entry(path, data, ("id", "label", "options"))
        found: list[tuple[str, str]] = []
        if not text or not self._few(path, len(grid) * len(more)):
            return found
        for options in (own + others for own in grid for others in more):
            varied = [f"{key}={value}" for key, value, several in options if several]
            made = _with(text, options)
            found.append((", ".join([label, *varied]) if label else made, made))
        return found

    def _entry(self, path: Place, data: Any, keys: Sequence[str]) -> tuple[str, str, list[Options]]:
        if isinstance(data, str):
            data = {"id": data}
        elif not isinstance(data, Mapping):
            self.told.add(path, f"{data!r} is neither an id nor a table with {', '.join(keys)}")
            return "", "", []
        self._known(path, data, keys)
        if "id" not in data:
            self.told.add(path, "id missing")
        grid = self._grid((*path, "options"), data.get("options", {}))
        return self._text(path, data, "id", ""), self._text(path, data, "label", ""), grid

    def _grid(self, path: Place, data: Any) -> list[Options]:
        """Every combination of options; of one that is wrong there is none."""
        if not self._table(path, data):
            return []
        choices: list[dict[tuple[str, str, bool], None]] = []
        for key, value in data.items():
            values = self._values((*path, key), value) if _is_list(value) else [value]
            choice: dict[tuple[str, str, bool], None] = {}
            for i, one in enumerate(values):
                where = (*path, key, i) if _is_list(value) else (*path, key)
                with self.told.at(where):
                    made = (key, _written(one), len(values) > 1)
                    if made in choice:
                        raise InputError(f"{one!r} stands in the list twice")
                    choice[made] = None
            choices.append(choice)
        if not self._few(path, prod(map(len, choices))):
            return []
        return [tuple(chosen) for chosen in product(*choices)]

    # What many of these share.

    def _known(self, path: Place, data: Mapping[str, Any], keys: Sequence[str]) -> None:
        for key in data:
            if key not in keys:
                near = validation.did_you_mean(str(key), keys) or f" Known: {', '.join(keys)}."
                self.told.add((*path, key), f"there is no key {key!r}.{near}")

    def _table(self, path: Place, data: Any) -> bool:
        if not isinstance(data, Mapping):
            self.told.add(path, f"{data!r} is not a table")
        return isinstance(data, Mapping)

    def _text(self, path: Place, data: Mapping[str, Any], key: str, default: str, empty: bool = False) -> str:
        value = data.get(key, default)
        if not isinstance(value, str):
            self.told.add((*path, key), f"{value!r} is not a text")
            return default
        if key in data and not value and not empty:
            self.told.add((*path, key), "the text is empty")
        return value

    def _list(self, path: Place, data: Mapping[str, Any], key: str) -> Sequence[Any]:
        if key not in data:
            self.told.add(path, f"{key} missing")
            return []
        value = data[key]
        if not _is_list(value):
            self.told.add((*path, key), f"{value!r} is not a list")
            return []
        return self._values((*path, key), value)

    def _values(self, path: Place, value: Sequence[Any]) -> Sequence[Any]:
        """The entries of a list, if there are any, and not too many."""
        if not value:
            self.told.add(path, "the list is empty")
        return list(value) if self._few(path, len(value)) else []

    def _plannable(self, path: Place, entries: int, runs: int) -> None:
        """An error, before anything is built, if there are more entries or runs than can be planned."""
        with self.told.at(path):
            if entries > MOST:
                counted = f"up to here there would be {entries} entries, MDPs x learners x T x columns"
                raise InputError(f"{counted}, and {MOST} are the most")
            what = f"to keep account of {runs} runs up to here, tuning among them,"
            require_memory(RUN * runs, what, "seeds or entries")
            return
        self.told.tell()

    def _few(self, path: Place, count: int) -> bool:
        if count > MOST:
            self.told.add(path, f"there would be {validation.shown(count)} of these, and {MOST} are the most")
        return count <= MOST

    def _each(self, path: Place, value: Any, read: Callable[[Any], T], empty: bool = False) -> tuple[T, ...]:
        if not _is_list(value):
            raise InputError(f"{value!r} is not a list")
        if not value and not empty:
            raise InputError("the list is empty")
        if not self._few(path, len(value)):
            return ()
        found: dict[T, None] = {}
        for i, one in enumerate(value):
            with self.told.at((*path, i)):
                made = read(one)
                if made in found:
                    raise InputError(f"{one!r} stands in the list twice")
                found[made] = None
        return tuple(found)


def _runs(section: Section, tuning: Tuning) -> int:
    """How many a section asks for; those of tuning as if every learner were tuned for it alone."""
    tuned = section.entries // len(section.columns) if "tuned" in section.columns else 0
    return section.entries * len(section.seeds) + tuned * tuning.budget * len(tuning.seeds)


def is_id(text: str) -> bool:
    """Whether an MDP, or a world of another kind, is named by an id; else by a file."""
    from ravi.mdps import MDPS

    heads = {name.split("/")[0] for name in (*MDPS, *WORLDS)}
    return foreign_name(text) is not None or re.split("[/,]", text)[0] in heads


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, range))


def _with(text: str, options: Options) -> str:
    return ",".join([text, *(f"{key}={value}" for key, value, _ in options)])


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
    if not _is_list(value) or len(value) != 2:
        raise InputError(f"{value!r} is not a range [low, high]")
    low, high = (validation.positive(one, name) for one in value)
    if low > high:
        raise InputError(f"{name} goes from {low:g} to {high:g}; the smaller one comes first")
    return low, high
