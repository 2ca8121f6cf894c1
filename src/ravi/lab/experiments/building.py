"""The builder of a suite: every world, and every learner for every world and T, is built once, without a run."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ravi import ids, validation
from ravi.ids import allow_imports, check_origin, foreign_name
from ravi.lab.experiments.mistakes import Mistakes, Place, Places, first_line
from ravi.lab.experiments.plan import digest_of
from ravi.lab.experiments.suite import DECIDED, Section, Suite
from ravi.mdps import MDPS
from ravi.runtime.result import RESULTS
from ravi.runtime.world import Tabular, World, find_world
from ravi.validation import InputError, require_memory, table_size


class Builder:
    """Builds each MDP once, and each learner once for every MDP and T; what cannot be built is a mistake."""

    def __init__(self, mistakes: Mistakes, base: Path) -> None:
        self.mistakes, self.base = mistakes, base
        self._worlds: dict[str, World | str] = {}  # or what is wrong
        self._size = 0  # bytes of the worlds
        self._learners: dict[tuple[str, str, int], str] = {}

    def check(self, suite: Suite, places: Sequence[Places]) -> None:
        allow_imports(suite.folder)
        for section, place in zip(suite.sections, places, strict=True):
            worlds = self._mdps(section, place, suite.folder)
            for text, world in worlds.items():
                for key, wrong in _beyond(world, section, suite.device):
                    self.mistakes.add(place.shared.get(key, (key,)), f"{wrong}, and {text} is no MDP ({world.kind})")
            same: dict[str, str] = {}  # canonical id -> label
            known: set[tuple[Place, str]] = set()
            for label, text in section.learners.items():
                for wrong in self._wrong(text, label, section, worlds, same, suite.folder):
                    self._once(known, place.learners[label], text, wrong)

    def _once(self, known: set[tuple[Place, str]], where: Place, text: str, wrong: str) -> None:
        if (where, wrong.replace(text, "")) not in known:
            known.add((where, wrong.replace(text, "")))
            self.mistakes.add(where, wrong)

    def _mdps(self, section: Section, place: Places, folder: str) -> dict[str, World]:
        worlds: dict[str, World] = {}
        digests: dict[str, str] = {}
        known: set[tuple[Place, str]] = set()  # a grid repeats what is wrong with its id
        for text in section.mdps:
            world = self._mdp(text, folder)
            if isinstance(world, str):
                self._once(known, place.mdps[text], text, world)
                continue
            worlds[text] = world
            digest = digest_of(text, world)
            if digest in digests:
                self.mistakes.add(place.mdps[text], f"{text} is the same MDP as {digests[digest]}")
            digests[digest] = text
        return worlds

    def _mdp(self, text: str, folder: str) -> World | str:
        if text not in self._worlds:
            try:
                if not is_id(text) and not os.path.isabs(text):
                    known = [*MDPS, *ids.WORLDS]
                    near = validation.did_you_mean(re.split("[/,]", text)[0], known) or f" Known: {', '.join(known)}."
                    raise InputError(f"there is no MDP {text!r}, and no such file in {self.base}.{near}")
                _from_here(text, folder)
                inner = text.removeprefix(ids.LARGE)
                if inner != text and (ids.is_file(inner) or ids.code_in(inner) is not None):
                    raise InputError(f"{text}: in a suite, {ids.LARGE} stands before an id of ravi's own")
                world = self._worlds[text] = find_world(text)
                self._size += table_size(world.mdp) if isinstance(world, Tabular) else 0
            except Exception as error:  # a builder of one's own may raise anything
                self._worlds[text] = first_line(error)
            require_memory(self._size, f"{len(self._worlds):,} MDPs of the suite", "their number or their sizes")
        return self._worlds[text]

    def _wrong(
        self, text: str, label: str, section: Section, worlds: Mapping[str, World], same: dict[str, str], folder: str
    ) -> Iterator[str]:
        try:
            _from_here(text, folder)
            name, given = ids.canonical(text), ids.given_options(text)
        except Exception as error:
            yield first_line(error)
            return
        if name in same:
            yield f"{text} is the same learner as {same[name]!r}"
        same[name] = label
        for column in ("theory", "tuned"):
            decided = [option for option in DECIDED if option in given]
            if column in section.columns and decided:
                yield f'{text} gives {decided[0]}: column "{column}" decides that; column "given" takes ids as they are'
                break
        refused: dict[str, list[str]] = {}
        for mdp, world in worlds.items():
            for why in {self._learner(name, text, mdp, world, T): None for T in section.steps}:
                if why:
                    same_for_all = "the MDP" + why[len(world.name) :] if why.startswith(world.name) else why
                    refused.setdefault(same_for_all, []).append(mdp)
        for why, where in refused.items():
            yield f"{text} cannot run on {' and '.join(where)}: {why}"

    def _learner(self, name: str, text: str, mdp: str, world: World, T: int) -> str:
        """Why the learner cannot be built; nothing where it can."""
        if (name, mdp, T) not in self._learners:
            try:
                world.learner(text, T)
                self._learners[name, mdp, T] = ""
            except Exception as error:
                self._learners[name, mdp, T] = first_line(error)
        return self._learners[name, mdp, T]


def is_id(text: str) -> bool:
    """Whether an MDP, or a world of another kind, is named by an id; else by a file."""
    heads = {name.split("/")[0] for name in (*MDPS, *ids.WORLDS)}
    return foreign_name(text) is not None or re.split("[/,]", text)[0] in heads


def _beyond(world: World, section: Section, device: str) -> Iterator[tuple[str, str]]:
    """What a section asks for that runs in a world of another kind do not have: the key, and why."""
    if world.kind == "tabular":
        return
    for name in section.record:
        if name not in RESULTS[world.kind]:
            yield "record", f"{name} is not recorded there"
    if "tuned" in section.columns and "regret" not in RESULTS[world.kind]:
        yield "columns", "tuning chooses by the regret, of which there is none there"
    if device != "cpu":
        yield "device", f"{device} runs MDPs only"


def _from_here(text: str, folder: str) -> None:
    """An error if a user's module is not the one beside the suite, but another of the same name."""
    name = foreign_name(text)
    if name is not None and folder:
        check_origin(text, name.split(":")[0], folder)
