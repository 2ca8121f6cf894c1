"""Mistakes that verify must find: each a small change of a learner, with the claims that it must violate; by learner.

A mutation takes a monkeypatch and a setting, and gives a learner with one thing wrong. Mistakes are put where the
learner finds its parts (the names in its module), so that the audit, which has its own, stays sound.
`test_mutations.py` runs them all, and docs/explanation/verify.md has their tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
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
    says: str
    claims: tuple[str, ...]  # that must be violated
    setting: Any
    make: Callable  # monkeypatch, setting -> learner


class Mistakes:
    """The rows of a table of mistakes, and the table as docs/explanation/verify.md has it.

    A row says what is wrong, which claims must find it, where, and how it is made: patch, setting -> learner.
    """

    def __init__(self, names: Mapping[Any, str], rows: Sequence[tuple], where: str = "") -> None:
        self.names, self.where = names, where  # of settings
        self.all = [Mutation(says, tuple(claims.split()), setting, make) for says, claims, setting, make in rows]

    def caught(self) -> set[str]:
        """The claims that find a mistake."""
        return {id for mutation in self.all for id in mutation.claims}

    def documented(self, page: str) -> None:
        """That a page has the table, and a row for every setting."""
        assert f"{self.table()}\n\n" in f"{page}\n"  # and nothing else follows
        assert len({m.says for m in self.all}) == len(self.all)
        for setting, name in self.names.items():
            assert setting.row(name) in page, name

    def table(self) -> str:
        lines = [f"| the mistake{self.where} | must be violated | on |", "|---|---|---|"]
        lines += [f"| {m.says} | {', '.join(m.claims)} | {self.names[m.setting]} |" for m in self.all]
        return "\n".join(lines)


# ---- how a mistake is made: patch, setting -> learner


def by(break_parts, *given, **more):
    """The learner, where its parts were broken: break_parts(patch, ...)."""

    def make(patch, setting):
        break_parts(patch, *given, **more)
        return setting.build()

    return make


def put(module, name, value):
    """The learner, with something else under this name of a module."""
    return by(lambda patch: patch.setattr(module, name, value))


def changed(module, name, rule):
    """The same, with a function that is given what is there first."""
    return by(lambda patch: patch.setattr(module, name, partial(rule, getattr(module, name))))


def made(make, *given, **more):
    """make(patch, setting, ...)."""
    return lambda patch, setting: make(patch, setting, *given, **more)


def around(change):
    """change(learner)."""
    return lambda patch, setting: change(setting.build())


def given(sound, rules):
    """A record of functions with others in it, each of which is given the sound record first."""
    return sound._replace(**{name: partial(rule, sound) for name, rule in rules.items()})


def replaced(**rules):
    """The learner with other functions."""
    return lambda patch, setting: given(setting.build(), rules)


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
