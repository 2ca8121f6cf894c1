"""Options of learners: records that ids and calls name, checked once."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import wraps
from hashlib import sha256
from inspect import Parameter, signature
from typing import Any, NamedTuple, Protocol, get_type_hints

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, Problem, TheoryConstants, restrict
from ravi.validation import policy_table

KEYWORD = Parameter.KEYWORD_ONLY
SWITCHES = ("fresh", "centre", "span", "clip", "gamma", "radius", "balance")  # parts of RAVI-UCB+, "on" or "off"
PICKS = ("uniform", "last")
WEIGHTS = ("span", "variance")


class Confidence(NamedTuple):
    """Options of confidence sets."""

    scale: float = 1.0  # of their radii
    delta: float = None  # type: ignore[assignment]  # 1/T unless given: a number once it is checked

    def checked(self, T: int) -> Confidence:
        return Confidence(validation.nonnegative(self.scale, "scale"), validation.delta(self.delta, T))


class Regression(NamedTuple):
    """The same of a ridge regression."""

    scale: float = 1.0
    delta: float = None  # type: ignore[assignment]
    regularization: float = 1.0  # lambda

    def checked(self, T: int) -> Regression:
        of = Confidence(self.scale, self.delta).checked(T)
        return Regression(*of, validation.positive(self.regularization, "regularization"))


class Options(NamedTuple):
    """Options of RAVI-UCB's family: every learner takes some of them, in this order."""

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
        return validation.step_size(self.eta, self.step_scale, published)

    def scaled(self, beta: float) -> float:
        """beta times `scale`."""
        return validation.nonnegative(validation.nonnegative(beta, "beta") * self.scale, "scale * beta")

    def checked(self, T: int) -> Options:
        """Options that are what they claim to be; V_0 and pi_0 are held against the problem where they are used."""

        def unless_none(check: Callable[[Any, str], Any], name: str) -> Any:
            return None if getattr(self, name) is None else check(getattr(self, name), name)

        for name in SWITCHES:
            validation.one_of(getattr(self, name), ("on", "off"), name)
        validation.one_of(self.pick, PICKS, "pick")
        validation.one_of(self.weights, WEIGHTS, "weights")
        scale, delta, lam = Regression(self.scale, self.delta, self.regularization).checked(T)
        return self._replace(
            inner=unless_none(validation.whole, "inner"), scale=scale,
            step_scale=validation.positive(self.step_scale, "step_scale"), eta=unless_none(validation.positive, "eta"),
            beta=unless_none(validation.nonnegative, "beta"), delta=delta, regularization=lam,
            bound=unless_none(validation.positive, "bound"),
        )  # fmt: skip


ALL = Options()  # at their defaults


def record(stated: TheoryConstants | None, settings: dict[str, Any] | None) -> dict[str, Any]:
    """The settings of a learner: its stated constants, unless it gives another record of them."""
    if settings is not None:
        return settings
    return {} if stated is None else stated.record()


def begun(V0: Array, pi0: Array, given: Array | None) -> dict[str, float | str]:
    """V_0 and pi_0, for the record."""
    return {"initial_value": recorded(V0), "initial_policy": "uniform" if given is None else recorded(pi0)}


def recorded(array: Array) -> float | str:
    """A number, or a hash of an array, for the record."""
    return float(array) if array.ndim == 0 else sha256(array.tobytes()).hexdigest()[:16]


def value_to_begin(value: float | Array, problem: Problem) -> Array:
    """V_0 in [0, H]^X: only then is every V_k (Lemma 4.2 and the martingales of Lemma 5.4 need it)."""
    array = validation.finite(value, "initial_value")
    if array.ndim:
        validation.check_shape(array, (problem.states,), "initial_value", "(X,)")
    return validation.between(array, 0, problem.horizon, "initial_value")


def policy_to_begin(policy: Array | None, problem: Problem) -> Array:
    """pi_0 without zeros: a zero would stay for ever, and H(pi* || pi_0) would be infinite."""
    shape = (problem.states, problem.actions)
    if policy is None:
        return np.full(shape, 1 / problem.actions)
    array = policy_table(policy, problem, "initial_policy", interior=True)
    return validation.check_shape(array, shape, "initial_policy", "(X, A)")


def bias_span(problem: Problem, span: float | None, default: float | None = None) -> float:
    """A bound on the span of the bias: `span`, or where it is not given H or `default`; the average reward has none."""
    if span is not None:
        return validation.positive(span, "span")
    if problem.criterion == "average":
        raise validation.InputError(
            "span is missing; in the average reward it is a bound on the span of the optimal bias, as `ravi hardness` "
            "computes it: add span=8 to the id, say"
        )
    return problem.horizon if default is None else default


def nearly_average(problem: Problem, rate: float) -> Problem:
    """A problem of the average reward with the discount 1 - `rate`, but at least 1/2; others as they are. A policy that
    is optimal there has a gain within `rate` span(h) of the best."""
    if problem.criterion != "average":
        return problem
    return restrict(problem, Problem, discount=max(1.0 - rate, 0.5))


class Builder(Protocol):
    """Builds a learner from a problem and T, options by name; `of`: from their record, which is checked already."""

    of: Callable[..., Learner]  # problem, T, the record
    names: tuple[str, ...]  # of these options

    def __call__(self, problem: Any, steps: int, **options: Any) -> Learner: ...


def takes(*those: str, without: Container[str] = ()) -> Callable[[Callable[..., Learner]], Builder]:
    """Make a builder of a function (problem, T, ..., o: a record, ...): it takes the options of the record one by one
    as keyword arguments, all of them or `those`, beside the function's own. Ids are parsed by its signature."""

    def named(build: Callable[..., Learner]) -> Builder:
        types, (problem, T, *own) = get_type_hints(build), signature(build).parameters.values()
        (record,) = (one.name for one in own if hasattr(types[one.name], "checked"))
        Record, hints = types[record], get_type_hints(types[record])
        names = tuple(name for name in those or Record._fields if name not in without)
        flat = [problem.replace(annotation=types[problem.name]), T.replace(name="steps", annotation=int)]
        for one in own:
            if one.name == record:
                for name in names:
                    default = Record._field_defaults[name]
                    kind = hints[name] if default is not None else hints[name] | None
                    flat.append(Parameter(name, KEYWORD, default=default, annotation=kind))
            else:
                flat.append(one.replace(kind=KEYWORD, annotation=types[one.name]))
        shape = signature(build).replace(parameters=flat, return_annotation=Learner)

        @wraps(build)
        def builder(*given: Any, **options: Any) -> Learner:
            bound = shape.bind(*given, **options)
            (problem, steps), own = bound.args, bound.kwargs
            T, o = validation.steps(steps), Record(**{name: own.pop(name) for name in names if name in own})
            return build(problem, T, **own, **{record: o.checked(T)})

        builder.__annotations__ = {one.name: one.annotation for one in flat} | {"return": Learner}
        vars(builder).update(__signature__=shape, of=build, names=names)
        return builder  # type: ignore[return-value]

    return named
