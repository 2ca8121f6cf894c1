"""What does a suite say? MDPs x learners x options x T x seeds, in sections; from TOML or the same as Python data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

COLUMNS = ("theory", "tuned", "given")  # published constants; multipliers tuned on other seeds; as the id says
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


@dataclass(frozen=True)
class Suite:
    name: str
    sections: tuple[Section, ...]
    title: str = ""
    tuning: Tuning = field(default_factory=Tuning)

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
