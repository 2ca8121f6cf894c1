"""Ids: `riverswim/6,discount=0.9` stands for an MDP, `ravi-ucb,scale=0.03` for a learner.

An id is a name from a table and the arguments of the builder of that name. A builder of
one's own is named by where it is: `package.module:function,key=value`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ravi import core, validation
from ravi.core import MDP, AnyMDP, Learner, Playable, Problem, a_problem
from ravi.learners import LEARNERS as LEARNERS
from ravi.learners import WRAPPERS as WRAPPERS
from ravi.learners import Known
from ravi.validation import CRITERIA, LEARNERS_OF, InputError

if typing.TYPE_CHECKING:
    from ravi.importers.imported import Imported
    from ravi.mdps.changing_rewards import Changing


Builder: typing.TypeAlias = Callable[[MDP | Problem, int], Learner]  # problem, T -> a learner

# Worlds of other kinds; `large/` before the id of an MDP is another.
LARGE, OF_MDP = "large/", Known("ravi.large.worlds", "of_mdp", "an MDP of which only what was met is kept")
WORLDS = {
    "tides": Known("ravi.mdps.changing_rewards", "tides", "RiverSwim whose rewards change"),
    "large/grid": Known("ravi.large.worlds", "grid", "a grid of any size, in memory set by what was met"),
    "continuous/level": Known("ravi.continuous.running", "level_box", "a level in [0, 1], on continuous states"),
    "continuous/pendulum": Known("ravi.continuous.running", "pendulum_box", "a pendulum, on continuous states"),
}
FILE = re.compile(rf".*{re.escape(os.sep)}.*\.[A-Za-z]\w*|.*\.(?:csv|tra|mdp|pomdp|npz)", re.IGNORECASE | re.DOTALL)
ORDER = "in Python the learner comes first, ravi.run(learner, mdp), in the shell the MDP, ravi run MDP LEARNER"
FLAGS = {"on": True, "true": True, "off": False, "false": False}


def mdp(
    source: AnyMDP | Playable, *, discount: float | None = None, criterion: str | None = None,
    episode: int | None = None, rewards: str | None = None,
) -> MDP:  # fmt: skip
    """The MDP of an id, of a file, or, with a discount, of a Gymnasium environment with a table.

    An MDP is returned as it is; a function of no arguments is called. A file was written by `MDP.save`, or has another
    format (docs/guides/import.md); if it has no discount, give one, or write `model.tra,discount=0.95`; `initial=LABEL`
    and `renormalise=on` may follow too. An environment is an object, or its id: `ravi.mdp("FrozenLake-v1",
    discount=0.99)`. `ravi.gymnasium.mdp` has more options for environments.

    Parameters
    ----------
    source
        An id (`ravi list` has them), the path of a file, an MDP, an environment, or a function that gives one.
    discount
        gamma, if the source does not say it.
    criterion
        "average" for the average reward without resets, "episodic" for episodes of a fixed length, whatever discount
        the source has; ids say `riverswim/6,criterion=average`, `deep-sea/10,criterion=episodic,episode=10`.
    episode
        The length of an episode in steps, where the criterion is "episodic".
    rewards
        How a play earns, the reward of the source being the mean: "bernoulli", "beta" or "deterministic"
        (`Problem.reward_law`); ids say `riverswim/6,rewards=beta`.

    Returns
    -------
    MDP

    Examples
    --------
    >>> import ravi
    >>> ravi.mdp("garnet/10,3,2,discount=0.9")
    <MDP garnet/10,3,2: X=10, A=3, B=2, gamma=0.9>
    >>> ravi.mdp("riverswim/6,criterion=average")
    <MDP riverswim/6,criterion=average: X=6, A=2, B=3, average reward>
    >>> ravi.mdp("deep-sea/4,criterion=episodic,episode=4")
    <MDP deep-sea/4,criterion=episodic,episode=4: X=16, A=2, B=1, episodes of 4>
    >>> ravi.mdp("riverswim/6,rewards=beta")
    <MDP riverswim/6,rewards=beta: X=6, A=2, B=3, gamma=0.95, beta rewards>
    """
    from ravi.mdps import MDPS

    source = called(source)
    if isinstance(source, str):
        source, said = _criterion_in(source)
        for key, value in (("criterion", criterion), ("episode", episode), ("rewards", rewards)):
            if key in said and value is not None:
                raise InputError(f"the {key} is given twice: {said[key]} in the id, and as {value}")
        criterion, episode = said.get("criterion", criterion), said.get("episode", episode)  # type: ignore[assignment]
        rewards = said.get("rewards", rewards)
    if rewards is not None:
        whole = mdp(source, discount=discount, criterion=criterion, episode=episode)
        return _with_name(replace(whole, reward_law=validation.one_of(rewards, validation.LAWS, "rewards")))
    kind = validation.one_of("discounted" if criterion is None else criterion, CRITERIA, "criterion")
    if kind != "discounted" or episode is not None:
        two = re.search(r",discount=([^,]*)", source) if isinstance(source, str) else None
        _, length = validation.criterion_of(kind, discount if two is None else two[1], episode)
        whole = _of_any_discount(source)
        if (whole.criterion, whole.episode) == (kind, length):
            return whole
        return _with_name(replace(whole, discount=1.0, episode=length))

    if hasattr(source, "observation_space") or (isinstance(source, str) and names_an_environment(source)):
        return _table_of(source, discount)
    text = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    if names_an_environment(text.partition(",")[0]):
        text = f"gymnasium/{text}"
    named = _is_named(text)
    if not named and is_file(text):
        found = model_of_file(text, discount=discount)
        return found.mdp if found is not None else _own_file(text, discount)
    if discount is not None and isinstance(source, MDP):
        raise InputError(f"discount goes with an id, a file or an environment; {source.name} has its own")
    if discount is not None and named:
        if ",discount=" in text:
            raise InputError(f"the discount is given twice: in {text}, and as {discount}")
        text += f",discount={validation.number(discount, 'discount')!r}"
    if isinstance(source, MDP):
        return source
    if isinstance(source, Learner) or (not named and name_of(text, LEARNERS) is not None):
        raise InputError(f"{getattr(source, 'name', text)} is a learner, not an MDP: {ORDER}")
    if not isinstance(source, (str, os.PathLike)):
        taken = "an id such as 'riverswim/6', the path of a file, an MDP, or (with discount=0.99) an environment"
        raise InputError(f"mdp is {validation.shown(source)}, not {taken}")
    if not named:
        if is_world(text):
            other = name_of(text, WORLDS)
            why = (WORLDS[other] if other is not None else OF_MDP).summary
            raise InputError(f"{text} is no MDP, but a problem of another kind: {why}. `ravi.run` and suites take it")
        raise unknown("MDP", text, MDPS, " An MDP may also be a file.")
    name, given = split(text, MDPS)
    builder = MDPS[name] if name in MDPS else foreign_function(text, name, MDP)
    args, kwargs = arguments(text, given, builder, skip=0)
    takes(text, builder, *args, **kwargs)
    made = builder(*args, **kwargs)
    if not isinstance(made, MDP):
        raise InputError(f"{text}: {name} gave {type(made).__name__}, not an MDP")
    if made.discount == 1 and name in MDPS:
        raise InputError("discount is 1; it must lie strictly between 0 and 1 (criterion=average has none)")
    return made


def called(source: Any) -> Any:
    """What a function of no arguments, or the class of an environment, gives; anything else as it is."""
    if not (inspect.isroutine(source) or inspect.isclass(source) or isinstance(source, partial)):
        return source
    try:
        inspect.signature(source).bind()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{getattr(source, '__name__', source)} stands for an MDP or an environment, and cannot be called without "
            f"arguments: {error}. If it is a learner: {ORDER}"
        ) from None
    return source()


ANY = 0.5  # the discount of a source that has none, where the criterion has none


def _of_any_discount(source: Any) -> MDP:
    """The MDP of a source whose discount, if it has one, plays no part."""
    if hasattr(source, "observation_space") or (isinstance(source, str) and names_an_environment(source)):
        return _table_of(source, ANY)
    text = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    found = model_of_file(text, discount=ANY) if is_file(text) and not _is_named(text) else None
    return mdp(source) if found is None else found.mdp


CRITERION = re.compile(r",(criterion|episode|rewards)=([^,]*)")


def _criterion_in(text: str) -> tuple[str, dict[str, str]]:
    """An id without its criterion, the length of its episodes and the law of its rewards, and those that it says."""
    return CRITERION.sub("", text), dict(CRITERION.findall(text))


def _with_name(mdp: MDP) -> MDP:
    """The same, its name with what ids say of its criterion and of its rewards."""
    words = "" if mdp.criterion == "discounted" else f",criterion={mdp.criterion}"
    words += "" if mdp.episode is None else f",episode={mdp.episode}"
    words += "" if mdp.reward_law is None else f",rewards={mdp.reward_law}"
    return replace(mdp, name=CRITERION.sub("", mdp.name) + words)


def model_of_file(text: str, *, discount: float | None = None) -> Imported | None:
    """The model of a file of another format than ravi's own, with its labels; None where the text is no such file."""
    if _is_named(text):
        return None
    from ravi.importers import files

    text, said = _criterion_in(text)
    path, given = file_in(text)
    if not files.is_foreign(path):
        return None
    args, kwargs = arguments(text, given, _options_of_a_file, skip=0)
    own, initial, renormalise = _options_of_a_file(*args, **kwargs)
    if discount is not None and own is not None:
        raise InputError(f"the discount is given twice: in {text}, and as {discount}")
    discount = ANY if said and own is None else own if discount is None else discount
    found = files.read(path, discount, renormalise=renormalise)
    found = found if initial is None else _with_initial(found, initial)
    return replace(found, mdp=mdp(found.mdp, **said)) if said else found  # type: ignore[arg-type]


def _options_of_a_file(
    discount: float | None = None, initial: str | None = None, renormalise: str = "off"
) -> tuple[float | None, str | None, bool]:
    """What may follow a path: the discount, the initial state, and whether rows that nearly sum to one are rescaled."""
    if discount is not None:
        validation.probability(discount, "discount")
    return discount, initial, FLAGS[validation.one_of(renormalise.lower(), FLAGS, "renormalise")]


def _with_initial(model: Imported, initial: str) -> Imported:
    """The model with another initial state: by its label or, where labels are no numbers, by its number."""
    labels = [str(each) for each in (range(model.mdp.states) if model.states is None else model.states)]
    numbers = [] if any(label.isdecimal() for label in labels) else [str(x) for x in range(len(labels))]
    for names in (labels, numbers):
        if initial in names:
            return replace(model, mdp=replace(model.mdp, initial=np.eye(1, len(labels), names.index(initial))[0]))
    near = validation.did_you_mean(initial, labels) or f" It has {validation.shown(labels)}."
    raise InputError(f"initial is {initial!r}, which is no state of {model.mdp.name}.{near}")


def _own_file(text: str, discount: float | None) -> MDP:
    path, given = file_in(text)
    if os.path.exists(path) and (given or discount is not None):
        raise InputError(f"{path} is a file of ravi's own, which says its discount")
    found = MDP.load(path)
    return replace(found, name=os.path.basename(path)) if found.name == MDP.name else found  # which nobody named


def _table_of(env: Any, discount: float | None) -> MDP:
    from ravi import gymnasium
    from ravi.mdps import environments

    if discount is None:
        if isinstance(env, str):
            name, given, shell = env, repr(env), f" or the id gymnasium/{env},discount=0.99"
        else:
            name, given, shell = environments.name_of(environments.open_environment(env)), "env", ""
        raise InputError(
            f"{name} is an environment, which has no discount: its table is read with one, by "
            f"ravi.mdp({given}, discount=0.99){shell}, in the shell with --discount 0.99; where there is no table, "
            "ravi.learn learns by playing"
        )
    return gymnasium.by_id(env, discount, "absorb", "") if isinstance(env, str) else gymnasium.mdp(env, discount)


def names_an_environment(text: str) -> bool:
    """Whether Gymnasium has an environment of this id, and nothing here that it would hide."""
    if not re.fullmatch(r"[\w/.-]*-v\d+", text) or names_an_mdp(text):
        return False
    from ravi.mdps import environments

    return text in environments.gymnasium_module().registry


def world(text: str) -> Any:
    """The world that an id names: an MDP, or one of another kind, such as `tides/6,block=50` or `large/grid,1000`."""
    name = name_of(text, WORLDS)
    if name is not None:
        return build(text, {name: builder_of(WORLDS[name])}, "world")
    if text.startswith(LARGE):
        return builder_of(OF_MDP)(mdp(text.removeprefix(LARGE)))
    return mdp(text)


def is_world(text: str) -> bool:
    """Whether an id names a world of another kind."""
    return name_of(text, WORLDS) is not None or text.startswith(LARGE)


def name_and_arguments(text: str) -> tuple[str, dict[str, Any]]:
    """The name and all arguments in the id of a world of another kind; none for `large/` before the id of an MDP."""
    name = name_of(text, WORLDS)
    if name is None:
        return LARGE, {}
    return name, all_arguments(text, WORLDS, builder_of(WORLDS[name]))


def build(text: str, builders: Mapping[str, Callable[..., Any]], what: str, *first: Any) -> Any:
    """What the builder that the id names returns; its first arguments are `first`."""
    if name_of(text, builders) is None:
        raise unknown(what, text, builders)
    name, given = split(text, builders)
    args, kwargs = arguments(text, given, builders[name], skip=len(first))
    return builders[name](*first, *args, **kwargs)


def changing(text: str) -> Changing | None:
    """The world of an id in which rewards change; None for any other id."""
    name = name_of(text, WORLDS)
    return world(text) if name is not None and WORLDS[name].module == "ravi.mdps.changing_rewards" else None


def learner(text: str | Builder, mdp: AnyMDP | Problem, steps: int) -> Learner:
    """The learner of an id or of a function, for this MDP (of which it knows the problem only) or problem, and this T.

    Parameters
    ----------
    text
        An id with its options, such as "ravi-ucb,scale=0.1"; `ravi list` has them. Or a function of problem and steps.
    mdp
        What the learner is built for: an MDP, its id or its file, or a problem.
    steps
        T, on which constants of the theory depend.

    Returns
    -------
    Learner

    Examples
    --------
    >>> import ravi
    >>> ravi.learner("ravi-ucb,scale=0.1", "riverswim/6", 1000).settings["scale"]
    0.1
    """
    return learner_builder(text)(a_problem(mdp), steps)


def learner_builder(text: str | Builder) -> Builder:
    """`learner` of an id, which is read once, for any number of problems."""
    if not isinstance(text, str) and callable(text):
        return lambda mdp, steps: _a_learner(text(_known(mdp), steps), getattr(text, "__name__", "the function"))
    named, builder, args, kwargs = _builder_of_id(text)
    takes(text, builder, None, None, *args, **kwargs)

    allowed = CRITERIA if named.known is None else named.known.criteria
    allowed = CRITERIA[:1] if "doubling" in named.wrappers else allowed  # its phases end at resets

    def make(mdp: MDP | Problem, steps: int) -> Learner:
        if named.oracle and not isinstance(mdp, MDP):
            raise InputError(f"{text} is given the MDP itself; {mdp.name} is a problem whose kernel nobody knows")
        if mdp.criterion not in allowed:
            its = " and the ".join(allowed)
            listed = f"{LEARNERS_OF[mdp.criterion]} lists its learners"
            raise InputError(f"{text} is for the {its} criterion, and {mdp.name} has the {mdp.criterion} one: {listed}")
        visible = mdp if named.oracle else _known(mdp)
        return _a_learner(builder(visible, steps, *args, **kwargs), f"{text}: {named.name}")

    return make


def _known(mdp: MDP | Problem) -> Problem:
    """What a learner knows of an MDP."""
    return mdp.problem if isinstance(mdp, MDP) else mdp


def _a_learner(made: Any, builder: str) -> Learner:
    if not isinstance(made, Learner):
        raise InputError(f"{builder} gave {type(made).__name__}, not a Learner")
    return made


def canonical(text: str) -> str:
    """The one way to write a learner's id: options in their order, by name, without those at their defaults."""
    name, options, values = _given(text)
    written = [f"{key}={values[key]}" for key, default in options.items() if key in values and values[key] != default]
    return ",".join([name, *written])


def learner_options(text: str) -> dict[str, Any]:
    """The options of the learner of an id: name -> value in the id, or else the default."""
    _, options, values = _given(text)
    return options | values


def given_options(text: str) -> dict[str, Any]:
    """The options that the id itself gives, also where they are at their defaults."""
    return _given(text)[2]


def source_of(text: str) -> str:
    """A hash of the file of a learner that is not this library's own; nothing for one that is."""
    named = learner_named(text)
    if named.known is not None:
        return ""
    foreign_function(text, named.base, Learner)
    file = getattr(sys.modules[named.base.split(":")[0]], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file is not None else ""


def code_in(text: str) -> str | None:
    """The code outside this library that an id would run: `module:function`, Gymnasium's `module:Env-v0`, or None."""
    from ravi.mdps import MDPS, environments

    text = _criterion_in(text.removeprefix(LARGE))[0]
    if name_of(text, MDPS) != "gymnasium":
        return foreign_name(text)
    given = all_arguments(text, MDPS, MDPS["gymnasium"])
    return environments.code_in(given["env"], environments.options_of(given["options"]))


def check_trust(text: str, where: str, allow_code: bool = False) -> str:
    """An id that was read from a file; an error if it names code outside this library that is not allowed."""
    code = None if allow_code else code_in(text)
    if code is not None:
        raise untrusted_code(code, text, where)
    return text


def untrusted_code(code: str, text: str, where: str) -> InputError:
    """The error where a file names code that the user has not allowed."""
    return InputError(
        f"{where} names {text!r}: {code} is code that does not come with ravi, and is not run. If you trust it as you "
        "would a program, say so: --allow-code, or allow_code=True in Python (docs/guides/security.md)"
    )


def is_file(text: str) -> bool:
    """Whether a text is the path of a file, or like one; options may follow: `model.tra,discount=0.95`."""
    path = file_in(text)[0]
    return os.path.exists(path) or FILE.fullmatch(path) is not None


def file_in(text: str) -> tuple[str, list[str]]:
    """The longest path of a file that the text begins with, and the options after it; of no file, by the first `=`."""
    if os.path.exists(text):
        return text, []
    ends = [mark.start() for mark in reversed([*re.finditer(",", text)])]
    end = next((end for end in ends if os.path.isfile(text[:end])), None)
    if end is None:
        end = next((mark.start() for mark in re.finditer(r",\w+=", text)), len(text))
    return text[:end], text[end + 1 :].split(",") if end < len(text) else []


def names_an_mdp(text: str) -> bool:
    """Whether a text is the id or the file of an MDP, and not the id of an environment."""
    return _is_named(text) or is_file(text)


def _is_named(text: str) -> bool:
    """Whether an id begins with the name of an MDP, or with that of a function of one's own."""
    from ravi.mdps import MDPS

    return name_of(text, MDPS) is not None or foreign_name(text) is not None


def builder_of(known: Known) -> Any:
    return getattr(importlib.import_module(known.module), known.function)


def options_of(builder: Callable[..., Any], skip: int = 0) -> dict[str, Any]:
    """The arguments that an id may give: name -> default, or `inspect.Parameter.empty`."""
    return {name: p.default for name, (p, _) in parameters_of(builder, skip).items()}


class Named(NamedTuple):
    """A learner's id."""

    base: str  # the learner that is wrapped, or the learner itself
    wrappers: tuple[str, ...]
    given: list[str]  # the arguments after the name

    @property
    def name(self) -> str:
        return "/".join([self.base, *self.wrappers])

    @property
    def known(self) -> Known | None:
        """The entry of the table; None for a learner of one's own."""
        return LEARNERS.get(self.base)

    @property
    def oracle(self) -> bool:
        """Whether it is given the MDP itself."""
        return self.known is not None and self.known.oracle

    def builder(self) -> Callable[..., Any]:
        known = self.known
        if known is None:
            found = foreign_function(self.name, self.base, Learner)
        elif known.oracle and self.wrappers:
            raise InputError(f"there is no {self.name}: {self.base} is given the MDP itself, its rewards with it")
        else:
            found = builder_of(known)
        for name in self.wrappers:
            if self.name.split("/").count(name) > 1:
                raise InputError(f"there is no {self.name}: it would have {name} twice")
            found = builder_of(WRAPPERS[name])(found)
        return found


def learner_named(text: str) -> Named:
    """What the id of a learner says: `NAME/WRAPPER,key=value`."""
    if isinstance(text, MDP):
        raise InputError(f"{text.name} is an MDP, not a learner: {ORDER}")
    validation.instance(text, str, "learner", "an id such as 'ravi-ucb,scale=0.03', or a ravi.Learner")
    base = name_of(text, LEARNERS) or foreign_name(text)
    if base is None and (names_an_mdp(text) or is_world(text)):
        raise InputError(f"{validation.shown(text)} is an MDP, not a learner: {ORDER}")
    if base is None:
        raise unknown("learner", text, LEARNERS, " One of your own is package.module:function.")
    rest, wrappers = text[len(base) :], list[str]()
    while rest.startswith("/") and (found := name_of(rest[1:], WRAPPERS)) is not None:
        wrappers.append(found)
        rest = rest[1 + len(found) :]
    return Named(base, tuple(wrappers), rest[1:].split(",") if rest else [])


def learner_names() -> list[str]:
    """The names of the table, and those with one wrapper."""
    open_ones = [name for name, known in LEARNERS.items() if not known.oracle and "discounted" in known.criteria]
    wrapped = [f"{name}/{one}" for name in open_ones for one in WRAPPERS if one not in name.split("/")]
    return list(dict.fromkeys([*LEARNERS, *wrapped]))


def _builder_of_id(text: str) -> tuple[Named, Callable[..., Any], list[Any], dict[str, Any]]:
    """What an id of a learner says, its builder, and the arguments that the id gives that."""
    named = learner_named(text)
    builder = named.builder()
    return named, builder, *arguments(text, named.given, builder, skip=2)


def _given(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name of a learner, its options with their defaults, and those that the id gives."""
    named, builder, args, kwargs = _builder_of_id(text)
    options = options_of(builder, skip=2)
    return named.name, options, dict(zip(options, args, strict=False)) | kwargs


# Arguments in the text of an id: after the name, and a slash or a comma, values in their order, and `key=value`. What a
# builder takes, and of which type, is read from its signature; skip: arguments that no id gives.


def name_of(text: str, table: Mapping[str, Any]) -> str | None:
    """The longest name that `text` begins with, up to a slash, a comma or its end."""
    ends = [len(text), *(mark.start() for mark in reversed([*re.finditer("[/,]", text)]))]
    return next((text[:end] for end in ends if text[:end] in table), None)


def split(text: str, table: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The name, and the arguments after it."""
    name = name_of(text, table) or foreign_name(text)
    assert name is not None
    return name, text[len(name) + 1 :].split(",") if text != name else []


def arguments(text: str, given: list[str], builder: Callable[..., Any], skip: int) -> tuple[list[Any], dict[str, Any]]:
    """What the id gives its builder, in order and by name."""
    parameters = parameters_of(builder, skip)
    taken = ", ".join(parameters) or "no options"
    places = [name for name, (p, _) in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for part in given:
        key, equals, value = part.partition("=")
        if not equals:
            if kwargs:
                raise InputError(f"{text}: {part!r} stands after key=value; give it a key too")
            if len(args) == len(places):
                raise InputError(f"{text}: {part!r} is one value too many; it takes {taken}")
            key = places[len(args)]
            args.append(_convert(text, key, part, parameters[key][1]))
            continue
        if key not in parameters:
            raise InputError(
                f"{text}: there is no option {key!r}; it takes {taken}." + validation.did_you_mean(key, parameters)
            )
        if key in kwargs or key in places[: len(args)]:
            raise InputError(f"{text}: {key} is given twice")
        kwargs[key] = _convert(text, key, value, parameters[key][1])
    needed = [name for name in places[len(args) :] if parameters[name][0].default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in kwargs]:
        raise InputError(f"{text}: {', '.join(missing)} missing; it takes {taken}")
    return args, kwargs


def all_arguments(text: str, table: Mapping[str, Any], builder: Callable[..., Any]) -> dict[str, Any]:
    """What the id gives its builder, with the defaults of what it leaves out."""
    args, kwargs = arguments(text, split(text, table)[1], builder, skip=0)
    given = inspect.signature(builder).bind(*args, **kwargs)
    given.apply_defaults()
    return dict(given.arguments)


def parameters_of(builder: Callable[..., Any], skip: int) -> dict[str, tuple[inspect.Parameter, type]]:
    """The arguments that an id may give, by name, each with the type that its value is read as: int, float or str."""
    hints = _hints(builder) if isinstance(builder, FunctionType) else typing.get_type_hints(builder)
    parameters = list(inspect.signature(builder).parameters.values())[skip:]
    return {p.name: (p, kind) for p in parameters if (kind := _kind(hints.get(p.name))) is not None}


@cache
def _hints(builder: FunctionType) -> dict[str, Any]:
    return typing.get_type_hints(builder)


def _kind(hint: Any) -> type | None:
    return next((kind for kind in (int, float, str) if hint is kind or kind in typing.get_args(hint)), None)


def _convert(text: str, key: str, value: str, kind: type) -> Any:
    if kind is str:
        return value
    try:
        return validation.whole(value, key, -(2**62)) if kind is int else validation.number(value, key)
    except InputError as error:
        raise InputError(f"{text}: {error}") from None


def takes(text: str, builder: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """An error unless the builder, which may be a user's, can be called with these arguments."""
    try:
        inspect.signature(builder).bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InputError(f"{text}: its function cannot be called as a builder is: {error}") from None


def unknown(what: str, text: str, table: Mapping[str, Any], other: str = "") -> InputError:
    """The error of an unknown name: with the nearest known one, or where none is near, with all of them."""
    head = text.split(",")[0].split("/")[0]
    near = validation.did_you_mean(head, table) or f" Known: {', '.join(table)}.{other}"
    return InputError(f"there is no {what} {validation.shown(text)}.{near}")


# Code of a user, named as `package.module:function`. Two rules keep it from running by itself, of which
# docs/guides/security.md tells users:
# 1. What the user types is imported; an id that a file holds is passed through `check_trust`, which refuses it unless
#    the user allows code.
# 2. A function is called only if its return annotation is `Learner` or `MDP`.

NAME = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*(?=[,/]|$)")


def foreign_name(text: str) -> str | None:
    """`package.module:function` at the head of an id; None for an id of this library's own."""
    found = NAME.match(text)
    return None if found is None else found[0]


def foreign_function(text: str, name: str, kind: type) -> Callable[..., Any]:
    """The function that an id names. Its module is imported; it must declare that it makes a `kind`."""
    module, attribute = name.split(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{text}: {error}") from None
    if not callable(found):
        raise InputError(f"{text}: {name} is {type(found).__name__}, not a function")
    if isinstance(found, type) and hasattr(found, "reset") and hasattr(found, "step"):
        raise InputError(
            f"{text}: {name} is the class of an environment, and an id is taken: write gymnasium.register"
            f'("{attribute}-v0", "{name}") in {module} and give {module}:{attribute}-v0, or in Python use '
            f"ravi.learn({attribute}())"
        )
    try:
        made = typing.get_type_hints(found).get("return")
    except Exception as error:  # annotations are code too
        raise InputError(f"{text}: the annotations of {name} cannot be read: {type(error).__name__}: {error}") from None
    if not (isinstance(made, type) and issubclass(made, kind)):
        raise InputError(
            f"{text}: {name} does not declare that it makes a {kind.__name__}, so it is not called; one of your own "
            f"does by its return annotation: def {attribute}(...) -> ravi.{kind.__name__}"
        )
    return found


def allow_imports(folder: str) -> None:
    """Let modules be imported from a folder that the user chose: that of a suite's file, or the current one.

    It comes last on the path, so that it hides nothing, and stays there. Workers are given the path of their driver.
    """
    if folder and folder not in sys.path:
        sys.path.append(folder)


def check_origin(text: str, module: str, folder: str) -> None:
    """An error if a module that is in this folder would be imported from elsewhere."""
    inside = Path(folder, *module.split("."))
    there = [path for path in (inside.with_suffix(".py"), inside / "__init__.py") if path.is_file()]
    if not there:
        return
    found = getattr(sys.modules.get(module), "__file__", None)
    if module not in sys.modules:
        with suppress(ImportError):  # of a package around it
            found = getattr(importlib.util.find_spec(module), "origin", None)
    if found is None or not there[0].samefile(found):
        raise InputError(f"{text}: the module {module} is {found}, not {there[0]}; give it another name")


core.by_name = mdp
