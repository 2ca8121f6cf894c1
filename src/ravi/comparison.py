"""`ravi.compare`: learners side by side on the same MDPs and seeds, with exact regret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi import validation
from ravi.core import Learner
from ravi.display import html
from ravi.display.numbers import DECIMALS, estimate_and_interval, number, percent
from ravi.display.printable import columns, counted, room
from ravi.display.progress import Progress
from ravi.runtime.api import SEEDS, run_settings
from ravi.runtime.result import Run, setting_columns
from ravi.runtime.world import Named
from ravi.statistics import Best, Interval, Scores, best, from_table, interval
from ravi.validation import InputError, require_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

    from ravi.display.style import Drawn

UPPER = 0.9  # the quantile over seeds that tables show: a mean hides seeds that went badly
TIE = "\N{ALMOST EQUAL TO}"
A_LIST = "a list of learners or their ids"
NOTE = (
    f"{percent(UPPER)}: this quantile over seeds. behind: by how much more than the learner with the\n"
    "least mean, seed by seed; each interval by itself, at Holm's levels for these\n"
    f"learners; {TIE}: the seeds do not show that it is more"
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Runs of several learners on the same MDPs and seeds; printed, a table with intervals. Made by `ravi.compare`.

    Attributes
    ----------
    runs
        The `Run` of each learner on each MDP, by (learner, mdp).
    level
        The nominal level of the interval of a mean by itself; those of differences have Holm's levels, at least this.

    Examples
    --------
    >>> import ravi
    >>> found = ravi.compare(["psrl", "uniform"], "riverswim/3", steps=500, seeds=4)
    >>> found.best["riverswim/3"].learner
    'psrl'
    >>> found.runs["psrl", "riverswim/3"].regret.shape
    (4,)
    """

    runs: dict[tuple[str, str], Run]
    level: float = 0.95

    @property
    def learners(self) -> tuple[str, ...]:
        """Their names, in the order in which they were given."""
        return tuple(dict.fromkeys(learner for learner, _ in self.runs))

    @property
    def mdps(self) -> tuple[str, ...]:
        """The ids of the MDPs, or the names of those that were given themselves."""
        return tuple(dict.fromkeys(mdp for _, mdp in self.runs))

    @cached_property
    def scores(self) -> Scores:
        """The regret by learner, MDP and seed, with its certified errors: what `ravi.statistics` works on."""
        rows = [
            {"learner": learner, "mdp": mdp, "seed": seed, "regret": regret, "error": error}
            for (learner, mdp), run in self.runs.items()
            for seed, regret, error in zip(run.seeds, run.regret.tolist(), _errors(run).tolist(), strict=True)
        ]
        return from_table(rows, error="error")

    @cached_property
    def best(self) -> dict[str, Best]:
        """By MDP the learner with the least regret, those that the seeds do not tell from it, and by how much each is
        behind: paired differences, their levels corrected for the number of learners (`ravi.statistics.best`)."""
        return {mdp: best(self.scores, mdp, level=self.level) for mdp in self.mdps}

    def plot(self, *, log: bool = False) -> Drawn:
        """Regret over time: the mean of each learner with a band of this level at every time; needs matplotlib. log:
        both axes are logarithmic. Of several MDPs, each has a panel."""
        from ravi.display.pictures import of_comparison

        return of_comparison(self, log=log)

    def to_pandas(self) -> DataFrame:
        """A tidy pandas DataFrame: a row for every learner, MDP and seed, with the columns learner, mdp, seed, steps,
        regret, regret_error and one for every setting of the learners (`scale`, ...)."""
        pandas = require_pandas("comparison.to_pandas()", "run.regret, of each of comparison.runs,")
        frames = []
        for (learner, mdp), run in self.runs.items():
            columns = {"learner": learner, "mdp": mdp, "seed": run.seeds, "steps": run.steps, "regret": run.regret}
            columns |= {"regret_error": _errors(run)}
            frames.append(pandas.DataFrame(columns | setting_columns(run.settings, columns)))
        return pandas.concat(frames, ignore_index=True)

    def json(self) -> dict[str, Any]:
        """All numbers of the table and the regret of every seed, as JSON holds them."""
        scores, found = self.scores, list[dict[str, Any]]()
        for (learner, mdp), run in self.runs.items():
            seeds, regret = scores.of(learner, mdp)
            behind = self.best[mdp].behind.get(learner)
            found.append({
                "learner": learner, "mdp": mdp, "regret": interval(regret, level=self.level)._asdict(),
                "upper_quantile": float(np.quantile(regret, UPPER)), "largest": float(regret.max()),
                "behind": None if behind is None else behind._asdict(), "settings": run.settings,
                "seeds": seeds.tolist(), "regret_by_seed": regret.tolist(),
                "regret_error": float(scores.error(learner, mdp).max()),
            })  # fmt: skip
        best = {mdp: {"learner": one.learner, "ties": list(one.ties)} for mdp, one in self.best.items()}
        steps = next(iter(self.runs.values())).steps
        return {"steps": steps, "level": self.level, "best": best, "results": found}

    def rows(self, mdp: str) -> list[tuple[str, ...]]:
        """The table of one MDP of the `mdps`, as text: a head, and a row for every learner, the best first."""
        found, held, share = self.best[mdp], self.scores.values, percent(self.level)
        rows: list[tuple[str, ...]] = [("learner", f"mean regret [{share}]", percent(UPPER), "max", "behind")]
        for name in sorted(self.learners, key=lambda name: (name != found.learner, held[name][mdp].mean())):
            values, behind = held[name][mdp], found.behind.get(name)
            above = "best" if name == found.learner and len(self.learners) > 1 else ""
            if behind is not None:
                above = f"{TIE} " * (name in found.ties) + _shown(behind)
            highest = (_plain(value) for value in (np.quantile(values, UPPER), values.max()))
            rows.append((name, _shown(interval(values, level=self.level)), *highest, above))
        return rows

    def title(self, mdp: str) -> str:
        """What was compared on one MDP of the `mdps`."""
        run = next(run for (_, one), run in self.runs.items() if one == mdp)
        scale = run.units[1] - run.units[0]
        return f"{run.setup}" + ("" if scale == 1 else f"; in its units regret is {scale:g} times as much")

    def _repr_html_(self) -> str:  # what a notebook shows
        tables = []
        for mdp in self.mdps:
            head, *rows = self.rows(mdp)
            tables.append(html.table(head, rows, title=self.title(mdp), most=len(rows)))
        return html.summary(repr(self)[1:-1], (), *tables)

    def __str__(self) -> str:
        parts = ["\n".join([self.title(mdp), *columns(self.rows(mdp), "lrrrr", room(), lead=1)]) for mdp in self.mdps]
        if len(self.learners) > 1:
            parts.append(NOTE)
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        learners, mdps = counted(len(self.learners), "learner"), ", ".join(self.mdps)
        winners = ", ".join(dict.fromkeys(found.learner for found in self.best.values()))
        return f"<Comparison of {learners} on {mdps}: least regret {winners}>"


def compare(
    learners: Mapping[str, Learner | str] | Sequence[Learner | str],
    mdp: Named | Sequence[Named],
    steps: int,
    seeds: int | Iterable[int] = SEEDS,
    *,
    level: float = 0.95,
    progress: Progress | bool | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> Comparison:
    """Run several learners on the same MDP under the same seeds, and compare their exact regret.

    Under the same seed all learners meet the same resets, and the same random numbers decide where actions lead: so
    differences are taken by seed, and much of the noise cancels.

    Parameters
    ----------
    learners
        Several, each as `ravi.run` takes it; or a dict of them by the names that the table is to show.
    mdp
        What `ravi.run` takes; or a list of such.
    steps
        T, the number of steps of each seed.
    seeds
        How many (0, 1, ...), or a list of them.
    level
        Of the intervals.
    progress, device, threads
        As for `ravi.run`.

    Returns
    -------
    Comparison
        Printed, a table: the mean regret of each learner with an interval, an upper quantile and the largest over
        seeds, and by how much it is behind the best. `.plot()` draws the curves, `.to_pandas()` has the numbers.

    Examples
    --------
    >>> import ravi
    >>> found = ravi.compare(["psrl", "ravi-ucb,scale=0.01", "uniform"], "riverswim/3", steps=500, seeds=8)
    >>> print(found)
    riverswim/3 (gamma 0.95): 500 steps, 8 seeds
    learner ...
    >>> ravi.compare({"untuned": "ravi-ucb", "tuned": "ravi-ucb,scale=0.01"}, "riverswim/3", 500, 4).learners
    ('untuned', 'tuned')
    """
    chosen, level = _named(learners), validation.probability(level, "level")
    keys = validation.seeds(seeds)
    places: list[Any] = list(mdp) if isinstance(mdp, (list, tuple)) else [mdp]
    runs: dict[tuple[str, str], Run] = {}
    for place in places:
        made = run_settings(
            list(chosen.values()), place, steps, keys, keep_epochs=False, progress=progress, device=device,
            threads=threads,
        )  # fmt: skip
        for name, run in zip(chosen, made, strict=True):
            if "regret_total" not in run.results:
                raise InputError(
                    f"{run.mdp} has no regret (its world is {run.world}), so learners are not compared on it"
                )
            where = place if isinstance(place, str) else run.mdp
            if (name, where) in runs:
                raise InputError(f"two of the MDPs have the name {where}")
            runs[name, where] = run
    return Comparison(runs, level)


def _named(learners: Any) -> dict[str, Any]:
    """Learners by name: that of a dict, else the id, or the name of a learner."""
    if isinstance(learners, Mapping):
        chosen = dict(learners)
        for name in chosen:
            validation.instance(name, str, "the name of a learner", "a text")
    else:
        alone = isinstance(learners, (str, Learner)) or callable(learners)
        given = (
            [learners] if alone else list(validation.several(learners, "learners", f"{A_LIST}; the MDP comes after it"))
        )
        names = [one if isinstance(one, str) else getattr(one, "name", getattr(one, "__name__", "?")) for one in given]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InputError(
                f"two learners have the name {twice}; give a dict of names: {{'first': ..., 'second': ...}}"
            )
        chosen = dict(zip(names, given, strict=True))
    if not chosen:
        raise InputError(f"learners is empty, not {A_LIST}")
    return chosen


def _errors(run: Run) -> Any:
    """How far the regret of each seed may be off, 0 where that is not known."""
    return run.results.get("regret_error", np.zeros(len(run.seeds)))


def _shown(found: Interval) -> str:
    text, ends = estimate_and_interval(found.estimate, found.low, found.high, DECIMALS["regret"])
    return f"{text} {ends}" if ends else _plain(found.estimate)


def _plain(value: float) -> str:
    return number(round(float(value), DECIMALS["regret"]) + 0.0)  # 0, not -0
