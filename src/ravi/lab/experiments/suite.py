"""The types of a suite: MDPs x learners x options x T x seeds, in sections.

docs/guides/experiments.md shows a file with all keys. A table of options is a grid: every combination of its values
gives an id with `,key=value` appended; a label of one's own gets those options appended that have several values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

COLUMNS = ("theory", "tuned", "given")  # published constants; multipliers tuned on other seeds; as the id says
DECIDED = ("scale", "step_scale", "eta", "beta", "m")  # options that the columns theory and tuned decide themselves
CURVES = ("reward", "trajectory")  # what `record` may name, besides the regret, which is always kept
SAMPLERS = ("lattice", "optuna")
MOST = 10**5  # entries of a suite; values in a list; combinations of a grid
FIRST_TUNING_SEED = 10**6  # tuning seeds are counted from here, unless they are listed


@dataclass(frozen=True)
class Tuning:
    """How the column `tuned` is made: the same list of configurations, and the same seeds, for every learner."""

    budget: int = 20  # configurations for every learner on every MDP
    seeds: tuple[int, ...] = tuple(range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + 4))
    scale: tuple[float, float] = (1e-4, 1.0)  # the range of the bonus multiplier
    step_scale: tuple[float, float] = (1.0, 100.0)  # the range of the step-size multiplier, where there is one
    sampler: str = "lattice"  # or "optuna"


@dataclass(frozen=True)
class Section:
    """Every MDP x every learner x every column x every T x every seed."""

    name: str
    mdps: tuple[str, ...]
    learners: dict[str, str]  # label -> id
    steps: tuple[int, ...]
    seeds: tuple[int, ...]
    columns: tuple[str, ...] = ("given",)
    points: int = 200
    record: tuple[str, ...] = ()
    remark: str = ""  # what the section is for

    @property
    def entries(self) -> int:
        """How many lines it has in a comparison."""
        return len(self.mdps) * len(self.learners) * len(self.steps) * len(self.columns)


@dataclass(frozen=True)
class Suite:
    name: str
    sections: tuple[Section, ...]
    title: str = ""
    tuning: Tuning = field(default_factory=Tuning)
    folder: str = ""  # where modules of one's own are, if an id names one: see `ravi.runtime.foreign`
    device: str = "cpu"  # where runs are made

    @property
    def entries(self) -> list[Entry]:
        """Every line of every section, in order."""
        return [
            Entry(section.name, column, label, mdp, learner, T, section.seeds, section.points, section.record)
            for section in self.sections
            for mdp in section.mdps
            for T in section.steps
            for label, learner in section.learners.items()
            for column in section.columns
        ]

    def plain(self) -> dict[str, Any]:
        """The suite as JSON can hold it; `specify` makes the same suite of it."""
        sections = []
        for section in self.sections:
            learners = [{"id": learner, "label": label} for label, learner in section.learners.items()]
            sections.append(_listed(asdict(section)) | {"learners": learners})
        plain = {"name": self.name, "title": self.title, "tuning": _listed(asdict(self.tuning)), "sections": sections}
        plain |= {"device": self.device} if self.device != "cpu" else {}
        return plain | ({"folder": self.folder} if self.folder else {})


class Entry(NamedTuple):
    """One line of a comparison: a learner on an MDP for T steps, under some seeds."""

    section: str
    column: str
    label: str
    mdp: str
    learner: str
    steps: int
    seeds: tuple[int, ...]
    points: int
    record: tuple[str, ...]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two suites as `Suite.plain` gives them, line by line; nothing where they are the same."""
    found = list(_differences("", _by_name(old), _by_name(new)))
    return found or ([] if old == new else ["the order of sections or learners is another"])


def _by_name(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Sections by their names and learners by their labels, so that one more is one difference."""
    sections = {}
    for section in plain["sections"]:
        learners = {f"learner {one['label']!r}": one["id"] for one in section["learners"]}
        inside = {key: value for key, value in section.items() if key not in ("name", "learners")}
        sections[f"section {section['name']!r}"] = inside | learners
    return {key: value for key, value in plain.items() if key != "sections"} | sections


def _differences(place: str, old: Any, new: Any) -> Iterator[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield f"{place} is {_short(new)}; it was {_short(old)}"
        return
    for key in [*old, *(key for key in new if key not in old)]:
        inner = f"{place}: {key}" if place else key
        if key not in new:
            yield f"{inner} is gone"
        elif key not in old:
            yield f"{inner} is new"
        else:
            yield from _differences(inner, old[key], new[key])


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 3 and all(isinstance(one, int) for one in value):
        return f"{len(value)} numbers from {value[0]} to {value[-1]}"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _listed(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}
