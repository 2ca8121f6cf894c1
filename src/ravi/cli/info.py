"""The commands about the library itself: `list`, `advise`, `doctor`, `cite`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ravi.cli import completion
from ravi.cli.common import CRITERION, JSON, SEEDS, allow_typed_modules, say, say_json, with_options
from ravi.validation import InputError


class Kind(StrEnum):
    """What `ravi list` can list: the words of the command, and the keys of its JSON."""

    mdps = "mdps"
    worlds = "problems"
    learners = "learners"


def list_(
    kind: Kind | None = None,
    *,
    as_json: JSON = False,
) -> None:
    """List the ids of all MDPs, other problems and learners, with their options.

    Parameters
    ----------
    kind
        List only these; by default all.
    """
    import inspect

    from ravi import ids
    from ravi.mdps import MDPS

    def shown(options: dict[str, Any]) -> dict[str, Any]:
        return {name: None if value is inspect.Parameter.empty else value for name, value in options.items()}

    def listed(builders: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {
            name: {"summary": str(inspect.getdoc(builder)).splitlines()[0], "options": shown(ids.options_of(builder))}
            for name, builder in builders.items()
        }

    mdps, worlds = listed(MDPS), listed({name: ids.builder_of(known) for name, known in ids.WORLDS.items()})
    learners = {
        name: {"summary": known.summary, "options": shown(ids.options_of(ids.builder_of(known), skip=2))}
        for name, known in ids.LEARNERS.items()
    }
    learners |= {
        f"NAME/{name}": {"summary": known.summary, "options": shown(ids.options_of(ids.builder_of(known).wrap, skip=3))}
        for name, known in ids.WRAPPERS.items()
    }
    tables = {"mdps": mdps, "worlds": worlds, "learners": learners}
    if kind:
        tables = {kind.name: tables[kind.name]}
    if as_json:
        say_json(tables)
        return
    titles = {"mdps": "MDPs", "worlds": "Other problems", "learners": "Learners"}
    for key, table in tables.items():
        say(titles[key])
        for name, entry in table.items():
            options = ", ".join(k if v is None else f"{k}={v}" for k, v in entry["options"].items())
            lead = f"{name:18} " if len(name) < 18 else f"{name}\n{'':21}"
            say(f"  {lead}{entry['summary']}\n{'':21}{options or 'no options'}")


def advise(
    source: Annotated[str, typer.Argument(autocompletion=completion.mdps)],
    *,
    steps: str = "1e5",
    seeds: Annotated[str, SEEDS] = "1",
    discount: float | None = None,
    criterion: CRITERION = None,
    as_json: JSON = False,
) -> None:
    """Recommend learners for a problem: the command, its guarantee, and an estimate of its time.

    Parameters
    ----------
    source
        An MDP (an id or a file), or the id of a Gymnasium environment.
    steps
        T, the number of steps.
    discount
        gamma of an environment (default 0.99, for a Box 0.998), or of an MDP whose id or file does not say it.
    """
    from ravi import ids
    from ravi.cli.advice import advise

    allow_typed_modules(source)
    if criterion is not None and ids.names_an_environment(source):
        raise InputError(f"--criterion is for an MDP; {source} is an environment, which is learned for a discount")
    source = with_options(source, None, criterion)
    found = advise(source, steps, seeds=seeds, discount=discount)
    say_json(found.json()) if as_json else say(found.text())


def doctor(
    folder: Path | None = None,
    *,
    as_json: JSON = False,
) -> None:
    """Check the installation: versions, cache, cores, extras, GPU. Exit status 1 if something is broken.

    Parameters
    ----------
    folder
        Also check this folder of results.
    """
    from ravi.cli.doctor import doctor

    report = doctor(folder)
    say_json(report.json()) if as_json else say(report.text())
    raise typer.Exit(report.status)


def cite(
    names: Annotated[list[str] | None, typer.Argument(autocompletion=completion.learners)] = None,
) -> None:
    """Print BibTeX entries for the paper and this library, or for the papers of the given learners.

    Parameters
    ----------
    names
        Learners, or a folder of results; by default ravi itself.
    """
    from ravi.cli.citations import cite

    allow_typed_modules(*(names or []))
    say(cite(names or []))
