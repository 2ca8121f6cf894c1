"""What is a mistake that verify must find? A small change of a learner, and the claims that it must violate."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Mutation(NamedTuple):
    name: str
    says: str  # for the table
    claims: tuple[str, ...]  # that must be violated
    setting: Any
    make: Callable  # monkeypatch, setting -> learner


class Mistakes:
    """A decorator that collects mutations, and writes their table for docs/verify.md."""

    def __init__(self, names: Mapping[Any, str], where: str = "") -> None:
        self.names, self.where = names, where  # of settings, the usual one first
        self.all: list[Mutation] = []

    def __call__(self, says: str, *claims: str, setting: Any = None) -> Callable:
        def add(make: Callable) -> Callable:
            self.all.append(Mutation(make.__name__, says, claims, setting or next(iter(self.names)), make))
            return make

        return add

    def documented(self, page: str) -> None:
        """That a page has the table, and a row for every setting."""
        assert self.table() in page
        assert len({m.name for m in self.all}) == len({m.says for m in self.all}) == len(self.all)
        for setting, name in self.names.items():
            row = f"| {name} | `{setting.mdp}` | `{setting.learner}` | {setting.steps} | {setting.seeds} |"
            assert row in page, row

    def table(self) -> str:
        lines = [f"| the mistake{self.where} | must be violated | on |", "|---|---|---|"]
        lines += [f"| {m.says} | {', '.join(m.claims)} | {self.names[m.setting]} |" for m in self.all]
        return "\n".join(lines)
