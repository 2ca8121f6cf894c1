"""The command `ravi`: it parses and prints; the library does the work.

`run` has the commands about one run or one MDP, `suite` those about suites and folders of results, `show` those that
show what was found, `learn` and `play` those about an environment of one's own, `info` those about the library itself;
`common` is what they share.
"""

from __future__ import annotations

import errno
import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from ravi import __version__, validation
from ravi.cli import completion, info, learn, play, run, show, suite
from ravi.cli.common import declared, say
from ravi.validation import InputError


class Commands(TyperGroup):
    """The commands; an empty value, such as --steps "", is an error and does not mean the default."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        before = ""
        for word in args:
            option, equals, value = word.partition("=")
            if word.startswith("--") and equals and not value.strip():
                raise InputError(f"{option} is empty; leave it out")
            if not word.strip():
                raise InputError(f"{before if before.startswith('--') else 'an argument'} is empty; leave it out")
            before = word
        return super().parse_args(ctx, args if ctx.resilient_parsing else self.suite_run(args))

    def suite_run(self, words: list[str]) -> list[str]:
        """`ravi run SUITE ...` is `ravi suite run SUITE ...`; an option that only the other one has is an error."""
        if words[:1] != ["run"]:
            return words
        one, many = self.commands["run"], self.commands["suite"].commands["run"]  # type: ignore[attr-defined]
        takes = {name: not getattr(p, "is_flag", False) for c in (one, many) for p in c.params for name in p.opts}
        named = [word.partition("=")[0] for word in words]
        values = {at + 1 for at, word in enumerate(words) if takes.get(word) and word.startswith("--")}
        given = [at for at, word in enumerate(words) if not word.startswith("--") and at not in values]
        suite = len(given) == 2
        of_one, of_many = ({name for p in c.params for name in p.opts if name.startswith("--")} for c in (one, many))
        wrong = next((name for name in named if name in (of_one - of_many if suite else of_many - of_one)), None)
        if wrong and len(given) > 1:
            meaning = "one run of a learner on an MDP, and this is a suite" if suite else "a suite, and this is one run"
            raise InputError(f"{wrong} is for {meaning}")
        return ["suite", *words] if suite and "--help" not in words else words


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Optimistic planning and exploration in Markov decision processes, with exact regret.",
)
suites = typer.Typer(no_args_is_help=True, help="Run suites: many learners on many MDPs, with a folder of results.")
suites.command(name="run")(declared(suite.run))
suites.command(name="submit")(declared(suite.submit))
suites.command(name="list")(declared(suite.suites))
COMMANDS = {
    "MDPs and learners": (suite.demo, run.run, run.compare, run.solve, run.hardness, run.verify, info.advise),
    "Your own environment": (learn.learn, play.evaluate, play.play),
    "Suites and their results": (
        suite.suites, suite.results, suite.reproduce, show.watch, show.report, show.figures, show.table,
    ),
    "About the library": (info.list_, info.doctor, info.cite, completion.completion),
}  # fmt: skip
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(name=command.__name__.rstrip("_"), rich_help_panel=panel)(declared(command))
app.add_typer(suites, name="suite", rich_help_panel="Suites and their results")


def main() -> None:
    """The entry point: bad input is one line and exit status 2, Ctrl-C is 130."""
    try:
        completion.answers()
        app(prog_name="ravi")
    except InputError as error:
        say(f"ravi: {error}", error=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        say(f"ravi: {validation.shown(error.filename)} is too long for a path", error=True)
        sys.exit(2)
    except MemoryError as error:
        say(f"ravi: {': '.join(filter(None, ['there is not enough memory', str(error)]))}", error=True)
        sys.exit(2)
    except KeyboardInterrupt:
        say("ravi: stopped", error=True)
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"ravi {__version__}")
        raise typer.Exit


@app.callback()
def ravi(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Optimistic planning and exploration in Markov decision processes, with exact regret."""
