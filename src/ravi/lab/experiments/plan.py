"""The plan of a suite: the setting of every entry, and what must be tuned before.

A run is a setting (MDP, learner, T, what is kept) and a seed. Its id is a hash of that content.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from ravi import ids
from ravi.lab.experiments.suite import Entry, Suite, Tuning
from ravi.runtime import archive
from ravi.runtime.seedwise import VARIED
from ravi.runtime.world import World, find_world
from ravi.validation import InputError

MULTIPLIERS = ("scale", "step_scale")  # of the bonus, of the step size: all that is ever tuned


@dataclass(frozen=True)
class Setting:
    """All that decides the bits of a run, but for its seed and the versions of what computes it."""

    mdp: str  # its id, or the path of its file
    mdp_digest: str  # a hash of all its numbers
    learner: str  # its canonical id (`ravi.ids.canonical`)
    source: str  # a hash of the learner's file, where it is not this library's own (`ravi.ids.source_of`)
    steps: int  # T
    points: int  # at how many times curves are kept
    record: tuple[str, ...] = ()  # which of CURVES are kept too

    @cached_property
    def digest(self) -> str:
        """The id of the setting. How the MDP is called does not enter, only what it is."""
        content = {
            "mdp": self.mdp_digest, "learner": self.learner, "source": self.source,
            "steps": self.steps, "points": self.points, "record": sorted(self.record),
        }  # fmt: skip
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """A key that settings share if they differ only in multipliers of one learner, and so can run as one batch."""
        name, *options = self.learner.split(",")
        fixed = [option for option in options if option.partition("=")[0] not in VARIED]
        return self.mdp_digest, name, *fixed, self.source, self.steps, self.points, self.record


class Facts(NamedTuple):
    """What the ids of a suite stood for when it was frozen, so that no later version can change a folder's meaning."""

    mdps: dict[str, str]  # id or path -> digest
    learners: dict[str, dict[str, Any]]  # id -> canonical id, source, which multipliers it has

    def plain(self) -> dict[str, Any]:
        return {"mdps": self.mdps, "learners": self.learners}


class Subject(NamedTuple):
    """What is tuned: one learner on one MDP for T steps."""

    digest: str
    base: Setting  # with the multipliers as published
    multipliers: tuple[str, ...]


def digest_of(text: str, world: World) -> str:
    """By what settings know a world: an MDP by its numbers, one of another kind also by all that its id says."""
    if world.kind == "tabular":
        return world.digest
    return sha256(repr((world.kind, ids.name_and_arguments(text), world.digest)).encode()).hexdigest()


def facts_of(suite: Suite, mdps: dict[str, World]) -> Facts:
    """Look up every id of a suite; `mdps` collects the worlds themselves."""
    for entry in suite.entries:
        if entry.mdp not in mdps:
            mdps[entry.mdp] = find_world(entry.mdp)
    learners = {}
    for learner in dict.fromkeys(entry.learner for entry in suite.entries):
        options = ids.learner_options(learner)
        learners[learner] = {
            "id": ids.canonical(learner),
            "source": ids.source_of(learner),
            "multipliers": [name for name in MULTIPLIERS if name in options],
        }
    return Facts({name: digest_of(name, world) for name, world in mdps.items()}, learners)


def setting_of(entry: Entry, facts: Facts) -> Setting:
    """The setting of an entry as its id says, that is, with published multipliers unless it gives others."""
    learner = facts.learners[entry.learner]
    return Setting(
        entry.mdp, facts.mdps[entry.mdp], learner["id"], learner["source"], entry.steps, entry.points, entry.record
    )


def subject_of(entry: Entry, facts: Facts, tuning: Tuning) -> Subject | None:
    """What must be tuned before an entry can be run; None where there is nothing to tune."""
    multipliers = tuple(facts.learners[entry.learner]["multipliers"])
    if entry.column != "tuned" or not multipliers:
        return None
    base = setting_of(entry, facts)
    content = [base.mdp_digest, base.learner, base.source, base.steps]
    content += [tuning.budget, tuning.seeds, tuning.scale, tuning.step_scale, tuning.sampler]
    return Subject(sha256(json.dumps(content).encode()).hexdigest()[:20], base, multipliers)


def with_multipliers(base: Setting, given: Mapping[str, float | None], **changes: Any) -> Setting:
    """A setting with these multipliers; `changes` are of its other fields."""
    options = "".join(f",{name}={value!r}" for name, value in given.items() if value is not None)
    return replace(base, learner=ids.canonical(base.learner + options), **changes)


class Planned(NamedTuple):
    """An entry, what must be tuned before it can be run, and the setting that scores it: None until tuning chooses."""

    entry: Entry
    subject: Subject | None
    setting: Setting | None


def planned(suite: Suite, facts: Facts, records: Mapping[str, Mapping[str, Any]]) -> list[Planned]:
    """The entries of a suite, in their order. records: of tuning, by subject."""
    found = []
    for entry in suite.entries:
        for name, known in ((entry.mdp, facts.mdps), (entry.learner, facts.learners)):
            if name not in known:
                raise InputError(f"specification.json is damaged: it does not say what {name} stood for")
        subject, setting = subject_of(entry, facts, suite.tuning), setting_of(entry, facts)
        if subject is not None:
            record = records.get(subject.digest, {})
            chosen = record.get("chosen")
            learner = None if chosen is None else str(record["configurations"][chosen]["learner"])
            found.append(Planned(entry, subject, None if learner is None else replace(setting, learner=learner)))
        else:
            found.append(Planned(entry, None, setting))
    return found


def asked(entries: Iterable[Planned]) -> tuple[set[tuple[str, int]], int]:
    """The runs that entries report, each once, those of tuning left out: settings and seeds, and how many must wait.

    What two entries share, or nothing tunes, is one run; those that wait are one if they will have the same setting.
    """
    known: set[tuple[str, int]] = set()
    waiting: set[tuple[Any, ...]] = set()
    for entry, subject, setting in entries:
        if setting is not None:
            known.update((setting.digest, seed) for seed in entry.seeds)
        elif subject is not None:
            waiting.update((subject.digest, entry.points, entry.record, seed) for seed in entry.seeds)
    return known, len(waiting)


def facts_from(held: Mapping[str, Any]) -> Facts:
    """The facts that a frozen specification holds."""
    try:
        found = Facts(**archive.typed(held, {"mdps": dict[str, str], "learners": dict[str, dict[str, Any]]}))
        for name, fact in found.learners.items():
            archive.typed(fact, {"id": str, "source": str, "multipliers": list[str]}, within=f"learners.{name}")
        odd = [digest for digest in found.mdps.values() if not digest.isalnum()]
        if odd:
            raise InputError(f"{odd[0]!r} is no digest of an MDP")
    except InputError as error:
        raise InputError(f"specification.json is damaged: it does not say what its ids stood for ({error})") from None
    return found


def changed(was: Facts, now: Facts) -> list[str]:
    """The ids of a frozen suite that now mean something else."""
    return [
        f"{name} is another {what} than when the folder was made"
        for what, old, new in (("MDP", was.mdps, now.mdps), ("learner", was.learners, now.learners))
        for name in old
        if name in new and new[name] != old[name]
    ]
