"""Mistakes that verify must find: each a small change of a learner, with the claims that it must violate; by learner.

A mutation takes a monkeypatch and a setting, and gives a learner with one thing wrong. Mistakes are put where the
learner finds its parts (the names in its module), so that the audit, which has its own, stays sound.
`test_mutations.py` runs them all, and docs/explanation/verify.md has their tables.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import pytest

import ravi.verify
from ravi import ids
from ravi.core import Learner
from ravi.learners.ravi_ucb import doubling as _doubling
from ravi.learners.ravi_ucb import plus as _plus
from ravi.learners.ravi_ucb import ravi_ucb as _ravi_ucb
from ravi.learners.ravi_ucb import unknown_rewards as _unknown_rewards
from ravi.planning import solver
from ravi.runtime import world as worlds
from ravi.verify import verify


class Setting(NamedTuple):
    """A learner on an MDP: short, with valid bonuses and with policies that move."""

    mdp: str
    learner: str
    steps: int
    seeds: int
    violated: tuple[str, ...] = ()  # what the sound learner violates already
    moves: float = 0.3  # how far its policies move at least; 0 where they need not
    only: tuple[str, ...] = ()  # the claims that it is for, where not all

    def build(self, world: Any = None) -> Learner:
        return ids.learner(self.learner, world or ids.mdp(self.mdp), self.steps)

    def place(self) -> Any:
        return self.mdp

    def row(self, name: str) -> str:
        return f"| {name} | `{self.mdp}` | `{self.learner}` | {self.steps} | {self.seeds} |"


class Mutation(NamedTuple):
    name: str
    says: str  # for the table
    claims: tuple[str, ...]  # that must be violated
    setting: Any
    make: Callable  # monkeypatch, setting -> learner


class Mistakes:
    """A decorator that collects mutations, and writes their table for docs/explanation/verify.md."""

    def __init__(self, names: Mapping[Any, str], where: str = "") -> None:
        self.names, self.where = names, where  # of settings, the usual one first
        self.all: list[Mutation] = []

    def __call__(self, says: str, *claims: str, setting: Any = None) -> Callable:
        def add(make: Callable) -> Callable:
            self.all.append(Mutation(make.__name__, says, claims, setting or next(iter(self.names)), make))
            return make

        return add

    def caught(self) -> set[str]:
        """The claims that find a mistake."""
        return {id for mutation in self.all for id in mutation.claims}

    def documented(self, page: str) -> None:
        """That a page has the table, and a row for every setting."""
        assert f"{self.table()}\n\n" in f"{page}\n"  # and nothing else follows
        assert len({m.name for m in self.all}) == len({m.says for m in self.all}) == len(self.all)
        for setting, name in self.names.items():
            assert setting.row(name) in page, name

    def table(self) -> str:
        lines = [f"| the mistake{self.where} | must be violated | on |", "|---|---|---|"]
        lines += [f"| {m.says} | {', '.join(m.claims)} | {self.names[m.setting]} |" for m in self.all]
        return "\n".join(lines)


def on_arrays(patch):
    """RAVI-UCB's family as its array operators say, which mistakes change; it is compiled from other functions."""
    for module in (_ravi_ucb, _plus, _unknown_rewards):
        patch.setattr(module, "over_all_seeds", lambda learner, form: learner)
    patch.setattr(_doubling, "counted_by", lambda learner: None)


@cache
def sound(setting):
    return verify(setting.build(), setting.place(), setting.steps, setting.seeds, only=setting.only)


@cache
def broken(mutation, *, only=()):
    """What is found of a mistake."""
    setting = mutation.setting
    with pytest.MonkeyPatch.context() as patch:
        on_arrays(patch)
        return verify(mutation.make(patch, setting), setting.place(), setting.steps, setting.seeds, only=only)


def in_millionths(patch, setting):
    """A sound learner whose regret is measured against an optimum in other units than the rewards."""
    regret = worlds.regret

    def of(found):
        return replace(found, optimum=1e6 * found.optimum)

    patch.setattr(worlds, "regret", lambda mdp, T, points, found, **more: regret(mdp, T, points, of(found), **more))
    patch.setattr(ravi.verify, "solve", lambda mdp, **more: of(solver.solve(mdp, **more)))
    return setting.build()
