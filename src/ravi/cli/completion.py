"""Completion of a command line: ids, their options and suites; `ravi completion` sets it up in a shell.

Files are the shell's own business: where nothing fits, it offers them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from ravi.cli.common import say

VARIABLE = "_RAVI_COMPLETE"  # by which a shell asks


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Which shell the script is for.")]) -> None:
    """Print a shell completion script for commands, options, ids of MDPs and learners, and suites.

    bash: eval "$(ravi completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc, after compinit;
    fish: ravi completion fish > ~/.config/fish/completions/ravi.fish
    """
    say(get_completion_script(prog_name="ravi", complete_var=VARIABLE, shell=shell).rstrip(), whole=True)


def answers() -> None:
    """Let the command answer a shell that asks, if one does."""
    if VARIABLE in os.environ:
        completion_init()


def mdps(incomplete: str) -> list[str]:
    """Ids of MDPs and of other worlds."""
    from ravi import ids
    from ravi.mdps import MDPS

    return _fitting(incomplete, {**MDPS, **ids.WORLDS}, lambda name: MDPS.get(name) or ids.builder_of(ids.WORLDS[name]))


def learners(incomplete: str) -> list[str]:
    """Ids of learners."""
    from ravi import ids

    names = ids.learner_names() if "/" in incomplete else list(ids.LEARNERS)
    return _fitting(incomplete, names, lambda name: ids.learner_named(name).builder(), skip=2)


def suites(incomplete: str) -> list[str]:
    """Suites that come along."""
    from ravi.lab.suites import SUITES

    return [name for name in SUITES if name.startswith(incomplete)]


def _fitting(incomplete: str, known: Iterable[str], builder: Callable[[str], Any], skip: int = 0) -> list[str]:
    """Names that begin so; behind a comma, options of the name that are not given yet."""
    from ravi import ids

    given, comma, begun = incomplete.rpartition(",")
    if not comma:
        return [name for name in known if name.startswith(incomplete)]
    named = max((name for name in known if f"{given},".startswith((f"{name},", f"{name}/"))), key=len, default=None)
    if named is None:
        return []
    options = ids.options_of(builder(named), skip=skip)
    return [f"{given},{name}=" for name in options if name.startswith(begun) and f",{name}=" not in given]
