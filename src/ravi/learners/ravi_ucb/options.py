"""What may be said of a learner of RAVI-UCB's family? One record of options, checked once, that ids and calls name."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, Protocol, get_type_hints

from ravi import checks
from ravi.core import Array, Learner

KEYWORD = Parameter.KEYWORD_ONLY
SWITCHES = ("fresh", "centre", "span", "clip", "gamma", "radius", "balance")  # parts of RAVI-UCB+, "on" or "off"
PICKS = ("uniform", "last")
WEIGHTS = ("span", "variance")


class Options(NamedTuple):
    """Every learner takes some of them, in this order (`takes`)."""

    inner: int | None = None  # M, backups an epoch; by default H rounded up
    fresh: str = "on"
    centre: str = "on"
    span: str = "on"
    clip: str = "on"
    gamma: str = "on"
    radius: str = "on"
    balance: str = "on"
    weights: str = "span"  # of samples
    pick: str = "uniform"  # which of the M policies is played; "last" has no guarantee
    scale: float = 1.0  # of the bonus
    step_scale: float = 1.0  # of eta
    eta: float | None = None  # by default that of a theorem
    beta: float | None = None  # by default that of a lemma
    delta: float = None  # type: ignore[assignment]  # 1/T unless given: a number once it is checked
    regularization: float = 1.0  # lambda
    bound: float | None = None  # B
    initial_value: float | Array = 0.0  # V_0
    initial_policy: Array | None = None  # pi_0, by default uniform

    def on(self, *names: str) -> dict[str, bool]:
        """Which of these parts are on."""
        return {name: getattr(self, name) == "on" for name in names}

    def step(self, published: float) -> float:
        """eta, `published` unless given, times `step_scale`."""
        return checks.step_size(self.eta, self.step_scale, published)

    def scaled(self, beta: float) -> float:
        """beta times `scale`."""
        return checks.nonnegative(checks.nonnegative(beta, "beta") * self.scale, "scale * beta")


ALL = Options()  # at their defaults


def checked(o: Options, T: int) -> Options:
    """Options that are what they claim to be; V_0 and pi_0 are held against the problem where they are used."""

    def unless_none(check: Callable[[Any, str], Any], name: str) -> Any:
        return None if getattr(o, name) is None else check(getattr(o, name), name)

    for name in SWITCHES:
        checks.one_of(getattr(o, name), ("on", "off"), name)
    checks.one_of(o.pick, PICKS, "pick")
    checks.one_of(o.weights, WEIGHTS, "weights")
    return o._replace(
        inner=unless_none(checks.whole, "inner"),
        scale=checks.nonnegative(o.scale, "scale"),
        step_scale=checks.positive(o.step_scale, "step_scale"),
        eta=unless_none(checks.positive, "eta"),
        beta=unless_none(checks.nonnegative, "beta"),
        delta=checks.delta(o.delta, T),
        regularization=checks.positive(o.regularization, "regularization"),
        bound=unless_none(checks.positive, "bound"),
    )


class Builder(Protocol):
    """Builds a learner from a problem and T, options by name; `of`: from their record, which is checked already."""

    of: Callable[..., Learner]  # problem, T, Options
    names: tuple[str, ...]  # of these options

    def __call__(self, problem: Any, steps: int, **options: Any) -> Learner: ...


def takes(*those: str, without: Container[str] = ()) -> Callable[[Callable[..., Learner]], Builder]:
    """Of a function (problem, T, ..., o: Options, ...) the builder to which these options are given one by one, in the
    place of the record; those of its own are named too. Its signature says so, which is what ids are read by."""
    hints, names = get_type_hints(Options), tuple(name for name in those if name not in without)

    def named(build: Callable[..., Learner]) -> Builder:
        types, (problem, T, *own) = get_type_hints(build), signature(build).parameters.values()
        flat = [problem.replace(annotation=types[problem.name]), T.replace(name="steps", annotation=int)]
        for one in own:
            if types[one.name] is Options:
                record, default = one.name, Options._field_defaults
                flat += [Parameter(name, KEYWORD, default=default[name], annotation=hints[name]) for name in names]
            else:
                flat.append(one.replace(kind=KEYWORD, annotation=types[one.name]))
        shape = signature(build).replace(parameters=flat, return_annotation=Learner)

        @wraps(build)
        def builder(*given: Any, **options: Any) -> Learner:
            bound = shape.bind(*given, **options)
            (problem, steps), own = bound.args, bound.kwargs
            T, o = checks.steps(steps), Options(**{name: own.pop(name) for name in names if name in own})
            return build(problem, T, **own, **{record: checked(o, T)})

        builder.__annotations__ = {one.name: one.annotation for one in flat} | {"return": Learner}
        vars(builder).update(__signature__=shape, of=build, names=names)
        return builder  # type: ignore[return-value]

    return named
