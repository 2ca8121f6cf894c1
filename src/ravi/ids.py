"""What does an id stand for? `riverswim/6,discount=0.9` for an MDP, `ravi-ucb,scale=0.03` for a learner.

An id is a name from a table, then, after a slash or a comma, the builder's arguments: values in their order, and
`key=value`. What a builder takes, and as what, is read from its signature. A builder of one's own is named by where it
is: `package.module:function,key=value`.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from ravi import checks, foreign
from ravi.checks import InputError
from ravi.core import MDP, Learner, Problem, a_problem
from ravi.learners import LEARNERS as LEARNERS
from ravi.learners import Known

if typing.TYPE_CHECKING:
    from ravi.mdps.changing_rewards import Changing


# Worlds of other kinds; `large/` before the id of an MDP is another.
LARGE, OF_MDP = "large/", Known("ravi.large.worlds", "of_mdp", "an MDP of which only what was met is kept")
WORLDS = {
    "tides": Known("ravi.mdps.changing_rewards", "tides", "RiverSwim whose rewards change"),
    "large/grid": Known("ravi.large.worlds", "grid", "a grid of any size, in memory set by what was met"),
    "continuous/level": Known("ravi.continuous.running", "level_box", "a level in [0, 1], on continuous states"),
    "continuous/pendulum": Known("ravi.continuous.running", "pendulum_box", "a pendulum, on continuous states"),
}


def mdp(source: str | os.PathLike[str] | MDP | Any, *, discount: float | None = None) -> MDP:
    """The MDP of an id, of a file, or, with a discount, of a Gymnasium environment with a table.

    An MDP is returned as it is. A file was written by `MDP.save`, or has another format (docs/guides/import.md); if it
    has no discount, give one, or write `model.tra,discount=0.95`. An environment is an object, or its id:
    `ravi.mdp("FrozenLake-v1", discount=0.99)`. `ravi.gymnasium.mdp` has more options for environments.

    Parameters
    ----------
    source : an id (`ravi list` has them), the path of a file, an MDP, or an environment
    discount : gamma, if the source does not have it

    Returns
    -------
    MDP

    Examples
    --------
    >>> import ravi
    >>> ravi.mdp("garnet/10,3,2,discount=0.9")
    <MDP garnet/10,3,2: X=10, A=3, B=2, gamma=0.9>
    """
    from ravi.mdps import MDPS

    if hasattr(source, "observation_space") or (isinstance(source, str) and _names_an_environment(source)):
        return _table_of(source, discount)
    text = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    named = _name_of(text, MDPS) is not None or foreign.name_in(text) is not None
    if not named and text and (found := _of_file(text, discount)) is not None:
        return found
    if discount is not None:
        raise InputError("discount goes with an environment; an id says its own: riverswim/6,discount=0.9")
    if isinstance(source, MDP):
        return source
    if not isinstance(source, (str, os.PathLike)):
        taken = "an id such as 'riverswim/6', the path of a file, an MDP, or (with discount=0.99) an environment"
        raise InputError(f"mdp is {checks.shown(source)}, not {taken}")
    if not named:
        other = _name_of(text, WORLDS)
        if other is not None or text.startswith(LARGE):
            why = (WORLDS[other] if other is not None else OF_MDP).summary
            raise InputError(f"{text} is no MDP, but a problem of another kind: {why}. `ravi.run` and suites take it")
        raise InputError(_unknown("MDP", text, MDPS, " An MDP may also be a file."))
    name, given = _split(text, MDPS)
    builder = MDPS[name] if name in MDPS else foreign.function(text, name, MDP)
    args, kwargs = _arguments(text, given, builder, skip=0)
    _takes(text, builder, *args, **kwargs)
    made = builder(*args, **kwargs)
    if not isinstance(made, MDP):
        raise InputError(f"{text}: {name} gave {type(made).__name__}, not an MDP")
    return made


def _of_file(text: str, discount: float | None) -> MDP | None:
    """The MDP of a file, of ravi or of others; None where there is no file."""
    from ravi.importers import files

    path, options = _file_in(text)
    if not is_file(text):
        return None
    if files.is_foreign(path):
        return files.read(path, **options if discount is None else {"discount": discount}).mdp
    if os.path.exists(path) and (options or discount is not None):
        raise InputError(f"{path} is a file of ravi's own, which says its discount")
    found = MDP.load(path)
    return replace(found, name=os.path.basename(path)) if found.name == MDP.name else found  # which nobody named


def _table_of(env: Any, discount: float | None) -> MDP:
    from ravi import gymnasium

    if discount is None:
        name, given = (env, repr(env)) if isinstance(env, str) else (gymnasium.name_of(env), "env")
        raise InputError(
            f"{name} is an environment, which has no discount: its table is read by "
            f"ravi.mdp({given}, discount=0.99), and one without a table is learned from by ravi.learn"
        )
    return gymnasium.by_id(env, discount, "absorb", "") if isinstance(env, str) else gymnasium.mdp(env, discount)


def _names_an_environment(text: str) -> bool:
    """Whether Gymnasium has an environment of this id, and nothing here that it would hide."""
    if not re.fullmatch(r"[\w/.-]*-v\d+", text) or names_an_mdp(text):
        return False
    from ravi import gymnasium

    return text in gymnasium.imported().registry


def world(text: str) -> Any:
    """What an id names to run in: an MDP, or what is of another kind, `tides/6,block=50` or `large/grid,1000`."""
    name = _name_of(text, WORLDS)
    if name is not None:
        return built(text, {name: builder_of(WORLDS[name])}, "world")
    if text.startswith(LARGE):
        return builder_of(OF_MDP)(mdp(text.removeprefix(LARGE)))
    return mdp(text)


def spelled(text: str) -> tuple[str, dict[str, Any]]:
    """What the id of a world of another kind says: its name and all its arguments; those of an MDP are the MDP's."""
    name = _name_of(text, WORLDS)
    if name is None:
        return LARGE, {}
    return name, _all_arguments(text, WORLDS, builder_of(WORLDS[name]))


def built(text: str, builders: Mapping[str, Callable[..., Any]], what: str, *told: Any) -> Any:
    """What the id names of these builders, each of which is given `told` first."""
    if _name_of(text, builders) is None:
        raise InputError(_unknown(what, text, builders))
    name, given = _split(text, builders)
    args, kwargs = _arguments(text, given, builders[name], skip=len(told))
    return builders[name](*told, *args, **kwargs)


def changing(text: str) -> Changing | None:
    """The world of an id in which rewards change; None for any other id."""
    name = _name_of(text, WORLDS)
    return world(text) if name is not None and WORLDS[name].module == "ravi.mdps.changing_rewards" else None


def learner(text: str, mdp: MDP | Problem, steps: int) -> Learner:
    """The learner of an id, for this MDP (of which it knows the problem only) or problem, and this T.

    Parameters
    ----------
    text : an id with its options, such as "ravi-ucb,scale=0.1"; `ravi list` has them
    mdp : MDP or Problem
    steps : T, on which constants of the theory depend

    Returns
    -------
    Learner

    Examples
    --------
    >>> import ravi
    >>> ravi.learner("ravi-ucb,scale=0.1", ravi.mdp("riverswim/6"), 1000).settings["scale"]
    0.1
    """
    return maker(text)(mdp, steps)


def maker(text: str) -> Callable[[MDP | Problem, int], Learner]:
    """`learner` of an id, which is read once, for any number of problems."""
    name, known, builder, args, kwargs = _built_by(text)
    _takes(text, builder, None, None, *args, **kwargs)

    def make(mdp: MDP | Problem, steps: int) -> Learner:
        a_problem(mdp, "mdp")
        if known is not None and known.oracle and not isinstance(mdp, MDP):
            raise InputError(f"{text} is given the MDP itself; {mdp.name} is a problem whose kernel nobody knows")
        told = mdp if (known is not None and known.oracle) or not isinstance(mdp, MDP) else mdp.problem
        made = builder(told, steps, *args, **kwargs)
        if not isinstance(made, Learner):
            raise InputError(f"{text}: {name} gave {type(made).__name__}, not a Learner")
        return made

    return make


def canonical(text: str) -> str:
    """The one way to write a learner's id: options in their order, by name, without those at their defaults."""
    name, options, values = _given(text)
    written = [f"{key}={values[key]}" for key, default in options.items() if key in values and values[key] != default]
    return ",".join([name, *written])


def learner_options(text: str) -> dict[str, Any]:
    """What the learner of an id takes: option -> its value in the id, or its default."""
    _, options, values = _given(text)
    return options | values


def given_options(text: str) -> dict[str, Any]:
    """The options that the id itself gives, also where they are at their defaults."""
    return _given(text)[2]


def source_of(text: str) -> str:
    """A hash of the file of a learner that is not this library's own; nothing for one that is."""
    name, _, known = _learner(text)
    if known is not None:
        return ""
    foreign.function(text, name, Learner)
    file = getattr(sys.modules[name.split(":")[0]], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file is not None else ""


def code_in(text: str) -> str | None:
    """What an id would run that is not this library's: `module:function`, or `module:Env-v0` of Gymnasium, or None."""
    from ravi.mdps import MDPS

    text = text.removeprefix(LARGE)
    if _name_of(text, MDPS) != "gymnasium":
        return foreign.name_in(text)
    from ravi import gymnasium

    given = _all_arguments(text, MDPS, MDPS["gymnasium"])
    return gymnasium.code_in(given["env"], gymnasium.options_of(given["options"]))


def trusted(text: str, where: str, allow_code: bool = False) -> str:
    """An id that a file said: it may run no code but this library's, unless the user allows it."""
    code = None if allow_code else code_in(text)
    if code is not None:
        raise refused(code, text, where)
    return text


def refused(code: str, text: str, where: str) -> InputError:
    """The error where a file names code that the user has not allowed."""
    return InputError(
        f"{where} names {text!r}: {code} is code that does not come with ravi, and is not run. If you trust it as you "
        "would a program, say so: --allow-code, or allow_code=True in Python (docs/guides/security.md)"
    )


def is_file(text: str) -> bool:
    """Whether what stands for an MDP is a path, which may say a discount: `model.tra,discount=0.95`."""
    path = _file_in(text)[0]
    return os.path.exists(path) or (os.sep in path and bool(re.search(r"\.[A-Za-z]\w*$", path)))


def _file_in(text: str) -> tuple[str, dict[str, Any]]:
    """The path, and the discount that follows it."""
    path, comma, given = text.partition(",discount=")
    if not comma or "," in given or os.path.exists(text):  # of an id, options may follow
        return text, {}
    return path, {"discount": checks.probability(checks.number(given, "discount"), "discount")}


def names_an_mdp(text: str) -> bool:
    """Whether a text is the id or the file of an MDP, and not the id of an environment."""
    from ravi.mdps import MDPS

    return _name_of(text, MDPS) is not None or foreign.name_in(text) is not None or is_file(text)


def builder_of(known: Known) -> Callable[..., Any]:
    return getattr(importlib.import_module(known.module), known.function)


def options_of(builder: Callable[..., Any], skip: int = 0) -> dict[str, Any]:
    """The arguments that an id may give: name -> default, or `inspect.Parameter.empty`."""
    return {name: p.default for name, (p, _) in _parameters(builder, skip).items()}


def _parameters(builder: Callable[..., Any], skip: int) -> dict[str, tuple[inspect.Parameter, Any]]:
    """The arguments that an id may give, by name, each with its type."""
    hints = _hints(builder) if isinstance(builder, FunctionType) else typing.get_type_hints(builder)
    parameters = list(inspect.signature(builder).parameters.values())[skip:]
    return {p.name: (p, hints[p.name]) for p in parameters if _kind(hints.get(p.name)) is not None}


@cache
def _hints(builder: FunctionType) -> dict[str, Any]:
    return typing.get_type_hints(builder)


def _learner(text: str) -> tuple[str, list[str], Known | None]:
    """The name, the arguments after it, and the entry of the table; None for a learner of one's own."""
    checks.instance(text, str, "learner", "an id such as 'ravi-ucb,scale=0.03', or a ravi.Learner")
    if _name_of(text, LEARNERS) is None and foreign.name_in(text) is None:
        raise InputError(_unknown("learner", text, LEARNERS, " One of your own is package.module:function."))
    name, given = _split(text, LEARNERS)
    return name, given, LEARNERS.get(name)


def _built_by(text: str) -> tuple[str, Known | None, Callable[..., Any], list[Any], dict[str, Any]]:
    """The name of a learner, its entry of the table, its builder, and the arguments that the id gives that."""
    name, given, known = _learner(text)
    builder = builder_of(known) if known is not None else foreign.function(text, name, Learner)
    return name, known, builder, *_arguments(text, given, builder, skip=2)


def _given(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name of a learner, its options with their defaults, and those that the id gives."""
    name, _, builder, args, kwargs = _built_by(text)
    options = options_of(builder, skip=2)
    return name, options, dict(zip(options, args, strict=False)) | kwargs


def _name_of(text: str, table: Mapping[str, Any]) -> str | None:
    """The longest name that `text` begins with, up to a slash, a comma or its end."""
    ends = [len(text), *(mark.start() for mark in reversed([*re.finditer("[/,]", text)]))]
    return next((text[:end] for end in ends if text[:end] in table), None)


def _split(text: str, table: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The name, and the arguments after it."""
    name = _name_of(text, table) or foreign.name_in(text)
    assert name is not None
    return name, text[len(name) + 1 :].split(",") if text != name else []


def _arguments(text: str, given: list[str], builder: Callable[..., Any], skip: int) -> tuple[list[Any], dict[str, Any]]:
    parameters = _parameters(builder, skip)
    places = [name for name, (p, _) in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for part in given:
        key, equals, value = part.partition("=")
        if not equals:
            if kwargs:
                raise InputError(f"{text}: {part!r} stands after key=value; give it a key too")
            if len(args) == len(places):
                raise InputError(f"{text}: {part!r} is one value too many; it takes {_listed(parameters)}")
            key, value = places[len(args)], part
            args.append(_converted(text, key, value, parameters[key][1]))
            continue
        if key not in parameters:
            raise InputError(
                f"{text}: there is no option {key!r}; it takes {_listed(parameters)}."
                + checks.did_you_mean(key, parameters)
            )
        if key in kwargs or key in places[: len(args)]:
            raise InputError(f"{text}: {key} is given twice")
        kwargs[key] = _converted(text, key, value, parameters[key][1])
    needed = [name for name in places[len(args) :] if parameters[name][0].default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in kwargs]:
        raise InputError(f"{text}: {', '.join(missing)} missing; it takes {_listed(parameters)}")
    return args, kwargs


def _all_arguments(text: str, table: Mapping[str, Any], builder: Callable[..., Any]) -> dict[str, Any]:
    """What the id gives its builder, with the defaults of what it leaves out."""
    args, kwargs = _arguments(text, _split(text, table)[1], builder, skip=0)
    given = inspect.signature(builder).bind(*args, **kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def _takes(text: str, builder: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A builder of one's own takes what it is given: problem and steps where it builds a learner, and its options."""
    try:
        inspect.signature(builder).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InputError(f"{text}: its function cannot be called as a builder is: {error}") from None


def _kind(hint: Any) -> type | None:
    """What a value in an id is read as: int, float or str; None for an argument that no id can give."""
    for kind in (int, float, str):
        if hint is kind or kind in typing.get_args(hint):
            return kind
    return None


def _converted(text: str, key: str, value: str, hint: Any) -> Any:
    kind = _kind(hint)
    if kind is str:
        return value
    try:
        return checks.whole(value, key, -(2**62)) if kind is int else checks.number(value, key)
    except InputError as error:
        raise InputError(f"{text}: {error}") from None


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(parameters) or "no options"


def _unknown(what: str, text: str, table: Mapping[str, Any], other: str = "") -> str:
    """What was probably meant; where nothing is near, all that is known."""
    head = text.split(",")[0].split("/")[0]
    near = checks.did_you_mean(head, table) or f" Known: {', '.join(table)}.{other}"
    return f"there is no {what} {checks.shown(text)}.{near}"
