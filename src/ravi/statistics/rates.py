"""Exponents of the growth of regret in T, H, d, X and A, with intervals, beside those of the theory.

An exponent is the slope of the logarithm of the mean regret against the logarithm of the size, by plain least squares:
regret is no exact power law, and weights would let the sizes with the least noise decide which part of it is fitted.
The interval is bootstrap-t over seeds: it tells the noise of the seeds, not whether the law is a power.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ravi.statistics.intervals import finite, resampled, student, studentised
from ravi.statistics.resampling import drawn, enough_resamples, product
from ravi.statistics.scores import Line, lines
from ravi.validation import InputError, flag, number, several

if TYPE_CHECKING:
    from ravi.lab.experiments.results import Results

LEAST_SEEDS = 8  # for bootstrap-t; with fewer, Student's t
QUANTITIES = ("T", "H", "d", "X", "A")


class Rate(NamedTuple):
    """A fitted exponent with its interval.

    Attributes
    ----------
    exponent, low, high, level
        As of an `Interval`.
    points
        The number of times, or sizes, of the fit.
    """

    exponent: float
    low: float
    high: float
    level: float
    points: int


class Exponent(NamedTuple):
    """An exponent of a proved bound, up to logarithms: an upper bound on the worst case, not what a run must show.

    Attributes
    ----------
    exponent, terms
        The largest, and those of the bound's terms in their order.
    source
        The bound, and where it is proved.
    """

    exponent: float
    terms: tuple[float, ...]
    source: str


class Measured(NamedTuple):
    """A row of `rates`: how the regret of a learner grows with one quantity.

    Attributes
    ----------
    section, column, label, learner, mdp
        The entry; `mdp` is the family.
    quantity, sizes
        T, H, d, X or A, and its values.
    along, fixed
        The quantities that change with it, and those that do not, with their values.
    seeds, paired
        The fewest at any size, and whether all sizes have the same.
    rate, why
        The exponent; None where there is none, and why.
    theory
        What is proved of the learner; None where nothing is.
    """

    section: str
    column: str
    label: str
    learner: str
    mdp: str
    quantity: str
    along: tuple[str, ...]
    fixed: dict[str, float]
    sizes: tuple[float, ...]
    seeds: int
    paired: bool
    rate: Rate | None
    theory: Exponent | None
    why: str = ""


def _of(source: str, **exponents: float | tuple[float, ...]) -> dict[str, Exponent]:
    terms = {name: power if isinstance(power, tuple) else (power,) for name, power in exponents.items()}
    return {name: Exponent(max(powers), powers, source) for name, powers in terms.items()}


_HALF = (0.5, 0.5)
# By learner: the exponents of what is proved of it. B and the diameter D are taken as given, ln A as 1.
THEORY: dict[str, dict[str, Exponent]] = {
    "ravi-ucb": _of(
        "X H sqrt(A T) + H^2 sqrt(T ln A): Theorem 4.1 with Lemmas 5.1 and 5.2",
        T=_HALF, H=(1, 2), d=(0, 0), X=(1, 0), A=(0.5, 0),
    ),
    "ravi-ucb/mixture": _of(
        "d H^1.5 sqrt(T) + B sqrt(d H T) + H^2 sqrt(T ln A): Theorem 5.6",
        T=(0.5, 0.5, 0.5), H=(1.5, 0.5, 2), d=(1, 0.5, 0), X=(0, 0, 0), A=(0, 0, 0),
    ),
    "ravi-ucb/known": _of(
        "H^2 sqrt(2 T ln A) + 2 H^2: Theorem 4.1 without bonuses",
        T=(0.5, 0), H=(2, 2), d=(0, 0), X=(0, 0), A=(0, 0),
    ),
    "ucrl2": _of("D X sqrt(A T): Jaksch, Ortner, Auer 2010, D the diameter", T=0.5, X=1, A=0.5),
    "ucrl2b": _of("sqrt(D Gamma X A T): Fruit, Pirotta, Lazaric 2020, D the diameter", T=0.5, X=0.5, A=0.5),
    "kl-ucrl": _of("D X sqrt(A T): Filippi, Cappe, Garivier 2010, D the diameter", T=0.5, X=1, A=0.5),
    "psrl": _of("H X sqrt(A T), averaged over the prior: Osband, Russo, Van Roy 2013", T=0.5, H=1, X=1, A=0.5),
    "psrl/mixture": _of("d H sqrt(T), averaged over the prior: its docstring", T=0.5, H=1, d=1, X=0, A=0),
    "ravi-kl/mixture": _of(
        "d H sqrt(T) + H X A: docs/explanation/kl.md, Theorem 4", T=(0.5, 0), H=(1, 1), d=(1, 0), X=(0, 1), A=(0, 1)
    ),
    "ucbvi-gamma": _of("H^1.5 sqrt(X A T), along the trajectory: He, Zhou, Gu 2021", T=0.5, H=1.5, X=0.5, A=0.5),
    "uclk": _of("d H^2 sqrt(T), along the trajectory: Zhou, He, Gu 2021", T=0.5, H=2, d=1, X=0, A=0),
    "uclk+": _of("d H^1.5 sqrt(T), along the trajectory: Zhou, Gu, Szepesvari 2021", T=0.5, H=1.5, d=1, X=0, A=0),
    "uniform": _of("gap T, exactly", T=1),
}  # fmt: skip

# By learner: the same where it is told the support (support=on).
TOLD: dict[str, dict[str, Exponent]] = {
    "ucrl2": _of("D sqrt(B X A T): Jaksch, Ortner, Auer 2010 with B for X", T=0.5, X=0.5, A=0.5),
    "kl-ucrl": _of("D sqrt(B X A T): Filippi, Cappe, Garivier 2010 with B for X", T=0.5, X=0.5, A=0.5),
    "psrl": _of("H sqrt(B X A T): Osband, Russo, Van Roy 2013 with B for X", T=0.5, H=1, X=0.5, A=0.5),
}


def proved(learner: str) -> dict[str, Exponent]:
    """The proved exponents of the learner of an id: quantity -> exponent."""
    name, *options = learner.split(",")
    return TOLD[name] if "support=on" in options and name in TOLD else THEORY.get(name, {})


def growth(times: Any, curves: Any, *, share: float = 0.5, level: float = 0.95, resamples: int = 2000) -> Rate:
    """The slope of log mean regret against log t over the last share of the times (P,); curves (n, P), one per seed."""
    t, x = finite(times, "times", 1), finite(curves, "curves", 2)
    if x.shape[1] != len(t):
        raise InputError(f"curves has shape {x.shape}, times {t.shape}: one column per time")
    if (t <= 0).any() or (np.diff(t) <= 0).any():
        raise InputError("times must be positive and ascending")
    share = number(share, "share")
    if not 0 < share <= 1:
        raise InputError(f"share is {share:g}; it must be in (0, 1]")
    last = t >= (1 - share) * t[-1]
    return _slope(t[last], [x[:, last]], level, resamples, "time")


def scaling(
    sizes: Any, values: Sequence[Any], *, paired: bool = False, level: float = 0.95, resamples: int = 2000
) -> Rate:
    """The slope of log mean value against log size; values: one array (n,) per size, of T, H, d, X or A.

    paired: entry i belongs to the same seed at every size, so that seeds are resampled for all sizes together.
    """
    s = finite(sizes, "sizes", 1)
    each_size = several(values, "values", "arrays of numbers, one for each size")
    x = [finite(each, f"values[{place}]", 1) for place, each in enumerate(each_size)]
    if len(x) != len(s):
        raise InputError(f"there are {len(s)} sizes and {len(x)} arrays of values")
    if (s <= 0).any():
        raise InputError("sizes must be positive")
    if flag(paired, "paired") and len({len(each) for each in x}) > 1:
        raise InputError(f"paired values must be equally many at every size, not {[len(each) for each in x]}")
    held = [np.stack(x, axis=1)] if paired else [each[:, None] for each in x]
    return _slope(s, held, level, resamples, "size")


def _slope(s: np.ndarray, x: list[np.ndarray], level: float, resamples: int, kind: str) -> Rate:
    """Least squares of log means against log s (P,); x: blocks (n, P_b) of columns, each resampled by itself.

    slope = sum_p c_p log m_p, so a seed's part in it is sum_p c_p x_ip / m_p, and the variance of that is the error.
    """
    level, resamples = resampled(level, resamples)
    if len(np.unique(s)) < 2:
        raise InputError(f"a slope needs at least two {kind}s, not {len(np.unique(s))}")
    means = np.concatenate([block.mean(axis=0) for block in x])
    if (means <= 0).any():
        place = int(np.argmax(means <= 0))
        raise InputError(f"the mean at {kind} {s[place]:g} is {means[place]:g}: a power law needs positive means")
    c = np.log(s) - np.log(s).mean()
    c = c / (c @ c)
    slope = float(c @ np.log(means))
    freedom = sum(len(block) - 1 for block in x)
    fewest = min(map(len, x))
    if fewest == 1:
        return Rate(slope, -np.inf, np.inf, level, len(s))

    edges = np.cumsum([0, *(block.shape[1] for block in x)])
    parts = [(block, c[a:b], means[a:b]) for block, a, b in zip(x, edges, edges[1:], strict=False)]
    variance = sum(float((block @ (cb / m)).var(ddof=1)) / len(block) for block, cb, m in parts)
    error = np.sqrt(variance)
    if error <= 1e-14 * max(1.0, abs(slope)):
        return Rate(slope, slope, slope, level, len(s))
    if fewest < LEAST_SEEDS:
        low, high = student(slope, error, level, freedom)
        return Rate(slope, float(low), float(high), level, len(s))
    moved: Any = -slope
    spread: Any = 0.0
    for place, (block, cb, _) in enumerate(parts):
        moves, spreads = [], []
        for u in drawn(len(block), enough_resamples(resamples, level), place, len(cb)):
            m = product(u, block)  # (R, P_b)
            with np.errstate(divide="ignore", invalid="ignore"):
                z = product(cb / m, block.T)  # (R, n)
                moves.append(np.log(m, out=m) @ cb)
                spreads.append((np.einsum("rn,rn->r", u * z, z) - cb.sum() ** 2) / (len(block) - 1))
        moved, spread = moved + np.concatenate(moves), spread + np.concatenate(spreads)
    low, high = studentised(
        np.array([slope]), np.array([error]), moved[:, None] / error, spread[:, None] / variance, level, freedom
    )
    return Rate(slope, float(low[0]), float(high[0]), level, len(s))


def rates(results: Results, *, level: float = 0.95, resamples: int = 2000) -> list[Measured]:
    """How regret grows with T, H, d, X and A in a folder of results: a row for each that a section varies.

    MDPs of one family are compared (`garnet/...`), with everything else fixed; where other quantities change with this
    one, as A does with d in the hypercube, they are named in `along`. MDPs of the same size are averaged by seed. A
    line whose mean regret is not above its certified error at every size has no rate: it would be that of rounding.
    """
    level, resamples = resampled(level, resamples)
    families: dict[tuple[str, ...], list[tuple[dict[str, float], Line]]] = {}
    for line in lines(results):
        if len(line.rows):
            family = (line.section, line.column, line.label, line.learner, _family(line.mdp))
            families.setdefault(family, []).append((_sizes(results.runs, int(line.rows[0])), line))
    return [_measured(where, varied, level, resamples) for where, held in families.items() for varied in _varied(held)]


def _sizes(runs: Any, row: int) -> dict[str, float]:
    """T, H (0 without a discount), d, X (0 where states are continuous) and A of a run."""
    T, gamma, d, X, A = (runs[name][row].as_py() for name in ("steps", "discount", "dimension", "states", "actions"))
    H = 1 / (1 - gamma) if gamma < 1 else 0
    return {name: round(float(size), 9) for name, size in zip(QUANTITIES, (T, H, d, X or 0, A), strict=True)}


class _Varied(NamedTuple):
    quantity: str
    along: tuple[str, ...]
    fixed: dict[str, float]
    by_size: dict[float, list[Line]]  # size -> the runs on each MDP


def _family(mdp: str) -> str:
    """`riverswim/mixture` of `riverswim/mixture/6,discount=0.9`."""
    return "/".join(word for word in mdp.split(",")[0].split("/") if not word.replace(".", "", 1).isdigit())


def _varied(runs: list[tuple[dict[str, float], Line]]) -> list[_Varied]:
    """What goes through several sizes while the rest stands still; or, where that is nowhere, what changes with it."""
    varies = [name for name in QUANTITIES if len({sizes[name] for sizes, _ in runs}) > 1]
    rows = []
    for name in varies:
        others = [other for other in QUANTITIES if other != name]
        still: dict[tuple[float, ...], dict[float, list[Line]]] = {}
        for sizes, held in runs:
            still.setdefault(tuple(sizes[other] for other in others), {}).setdefault(sizes[name], []).append(held)
        alone = {rest: by_size for rest, by_size in still.items() if len(by_size) > 1}
        for rest, by_size in alone.items():
            rows.append(_Varied(name, (), dict(zip(others, rest, strict=True)), by_size))
        settled = {sizes[name]: tuple(sizes[other] for other in others) for sizes, _ in runs}
        if not alone and len(settled) == len(still):  # one size of this, one of all that go along
            by_size = {}
            for sizes, held in runs:
                by_size.setdefault(sizes[name], []).append(held)
            along = tuple(other for other in varies if other != name)
            fixed = {other: size for other, size in runs[0][0].items() if other not in varies}
            rows.append(_Varied(name, along, fixed, by_size))
    return [row for row in rows if min(row.by_size) > 0]


def _measured(line: tuple[str, ...], varied: _Varied, level: float, resamples: int) -> Measured:
    quantity, along, fixed, by_size = varied
    section, column, label, learner, family = line
    sizes = sorted(by_size)
    seeds: list[np.ndarray] = []  # that all MDPs of a size have
    values: list[np.ndarray] = []  # of the regret, the mean over those MDPs
    why = ""
    for size in sizes:
        common = reduce(np.intersect1d, (held.seeds for held in by_size[size]))
        regret, error = (
            np.mean([getattr(held, name)[np.isin(held.seeds, common)] for held in by_size[size]], axis=0)
            for name in ("values", "errors")
        )
        seeds.append(common)
        values.append(regret)
        if not len(common):
            why = why or f"no common seed at {quantity} = {size:,.6g}"
        elif regret.mean() <= error.mean():
            why = why or f"no regret beyond its certified error at {quantity} = {size:,.6g}"
    paired = all(np.array_equal(each, seeds[0]) for each in seeds)
    rate = None
    if not why:
        rate = scaling(sizes, values, paired=paired, level=level, resamples=resamples)
    theory = proved(learner).get(quantity)
    return Measured(
        section, column, label, learner, family, quantity, along, fixed, tuple(sizes), min(map(len, values)), paired,
        rate, theory, why,
    )  # fmt: skip
