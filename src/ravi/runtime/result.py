"""The result of a run: exact regret and its error, curves, epochs, policies, and what made it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, get_type_hints

import numba
import numpy as np
import scipy

import ravi
from ravi import validation
from ravi.core import Array, Floats, Ints
from ravi.display import printable
from ravi.measures.curve import grid
from ravi.runtime import tree
from ravi.validation import require_pandas

if TYPE_CHECKING:
    from pandas import DataFrame

    from ravi.display.style import Drawn
    from ravi.runtime.archive import Place


def versions() -> dict[str, str]:
    """The versions that bits may depend on."""
    packages = {module.__name__: module.__version__ for module in (ravi, numba, np, scipy)}
    return packages | {
        "source": source(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
    }


# What no bit of a run depends on: an edit there does not make results those of another version.
APART = {"cli", "display", "lab", "live", "statistics", "verify"}
FILES_APART = {"__init__.py", "comparison.py", "kit.py", "testing.py"}


@cache
def source() -> str:
    """A hash of every file that a bit may depend on: a changed learner does not go under an unchanged version."""
    hashed, package = sha256(), Path(ravi.__file__).parent
    for inside in counted():
        hashed.update(inside.encode() + b"\0" + (package / inside).read_bytes())
    return hashed.hexdigest()[:16]


def counted() -> list[str]:
    """The files that `source` reads."""
    package = Path(ravi.__file__).parent
    inside = [file.relative_to(package) for file in sorted(package.rglob("*.py"))]
    return [file.as_posix() for file in inside if file.parts[0] not in APART | FILES_APART]


REGRET = ("regret", "regret_total", "regret_error")
SCORED = (*REGRET, "gap", "T_k", "gap_k", "reward", "reward_total")
RESULTS = {  # what a run records, by the kind of its world
    "tabular": (*SCORED, "output_policy"),
    "continuous": ("regret", "regret_total", "gap", "T_k", "gap_k", "reward_total"),
    "large": ("reward", "reward_total", "epochs", "met", "visited", "unsettled"),
    "average": (*REGRET, "reward", "reward_total", "boundary", "realised", "output_policy"),
    "episodic": (*SCORED, "realised", "output_policy"),
    "changing": (*REGRET, "optimum", "optimum_by_program", "comparator"),
}
ALONG = {kind: tuple(f"{kind}_{name}" for name in REGRET) for kind in ("trajectory", "gain")}  # what `record` names
CURVES = ("regret", "reward", *(f"{kind}_regret" for kind in ALONG))
AXES = (  # of arrays by name; all others have one entry for each seed
    dict.fromkeys(CURVES, ("seeds", "times"))
    | dict.fromkeys(("T_k", "gap_k"), ("epochs", "seeds"))
    | dict.fromkeys(("state.policy", "output_policy", "comparator"), ("seeds", "..."))
)


class Options(TypedDict):
    """How `run` was called."""

    record: list[str]
    points: int
    pad: bool
    keep_epochs: bool
    measured: bool


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run:
    """The result of a run: learner, MDP, what was recorded, and the state of every seed. Made by `ravi.run`.

    Attributes
    ----------
    mdp
        The name of the MDP.
    mdp_digest
        A hash of all numbers of the MDP.
    learner
        The name of the learner.
    settings
        The learner's constants.
    discount
        gamma; 1 in the average reward, and in episodes.
    steps
        T.
    seeds
        The seeds, in the order of all arrays.
    optimum
        rho* = <mu*, r>, in the average reward g*, in episodes <nu_0, V*> by their length; None where there is no one
        optimum, or in a run that is not measured.
    optimum_error
        A certified bound on the error of the optimum.
    options
        How `ravi.run` was called.
    seconds
        The seconds that the run took.
    versions
        The versions that bits may depend on.
    batch
        Where each seed stands, from which `ravi.resume` goes on.
    results
        What the measures recorded, seeds first.
    units
        What the rewards 0 and 1 of the MDP stand for.
    world
        The kind of world: "tabular", "average" (the average reward), "episodic", "large", "continuous" or
        "changing".

    Examples
    --------
    >>> import tempfile
    >>> import ravi
    >>> made = ravi.run("psrl", "riverswim/3", 100, seeds=2)
    >>> made.complete, sorted(made.results)[:3]
    (True, ['T_k', 'gap', 'gap_k'])
    >>> with tempfile.NamedTemporaryFile(suffix=".run") as file:
    ...     made.save(file.name)
    ...     ravi.Run.load(file.name).steps
    100
    """

    mdp: str
    mdp_digest: str
    learner: str
    settings: dict[str, Any]
    discount: float
    steps: int
    seeds: list[int]
    optimum: float | None
    optimum_error: float | None
    options: Options
    seconds: float
    versions: dict[str, str]
    batch: Any
    results: dict[str, Array]
    units: tuple[float, float] = (0.0, 1.0)
    world: str = "tabular"

    @property
    def plays(self) -> Ints:
        """How many of the T steps each seed has made   (n,)."""
        return np.minimum(self._at("walkers.time"), self.steps)

    @property
    def complete(self) -> bool:
        """Whether every seed has made its T steps; a run that was stopped can be resumed."""
        return bool((self.plays == self.steps).all())

    @property
    def padding(self) -> Ints:
        """T+ - T for each seed, in a run with pad=True   (n,)."""
        return np.maximum(self._at("walkers.time") - self.steps, 0)

    @property
    def times(self) -> Ints:
        """The times of the curves   (P,)."""
        return grid(self.steps, self.options["points"])

    @property
    def regret_curve(self) -> Floats:
        """sum_{i <= t} <mu* - mu^{pi_i}, r> at `times`   (n, P)."""
        return self._measured("regret")

    @property
    def regret(self) -> Floats:
        """The regret so far, at T when complete   (n,)."""
        return self._measured("regret_total")

    @property
    def regret_error(self) -> Floats:
        """A certified bound on the error of `regret`   (n,)."""
        return self._measured("regret_error")

    @property
    def gap(self) -> Floats:
        """<mu* - mu^pi, r> of each seed's last policy   (n,)."""
        return self._measured("gap")

    @property
    def reward_curve(self) -> Floats:
        """sum_{i <= t} r(x_i, a_i) at `times`   (n, P)."""
        return self._measured("reward")

    @property
    def T_k(self) -> list[Ints]:
        """For each seed the first step of every epoch."""
        return [starts[starts > 0] for starts in self._kept("T_k").T]

    @property
    def gap_k(self) -> list[Floats]:
        """For each seed the gap of every epoch's policy."""
        return [gaps[starts > 0] for gaps, starts in zip(self._kept("gap_k").T, self._kept("T_k").T, strict=True)]

    @property
    def output_policy(self) -> Floats:
        """pi_I with I uniform on {1, ..., T}: E[gap] = regret / T   (n, X, A)."""
        return self._measured("output_policy")

    @property
    def last_policy(self) -> Floats:
        """The policy of the last epoch   (n, X, A)."""
        return self._at("state.policy")

    @property
    def state(self) -> Any:
        """The learner's last state; for a run read from a file, its arrays by dotted name."""
        if isinstance(self.batch, dict):
            return {name[6:]: array for name, array in self.batch.items() if name.startswith("state.")}
        return self.batch.state

    @property
    def steps_per_second(self) -> float:
        """Steps of all seeds together, by the wall-clock seconds that the run took."""
        return float(self.plays.sum()) / max(self.seconds, 1e-9)

    def save(self, path: Place) -> None:
        """Write the run to one file (a path, or an open one), from which it can be read and resumed."""
        from ravi.runtime import archive

        header = {field.name: getattr(self, field.name) for field in fields(self)}
        held, results = header.pop("batch"), header.pop("results")
        batch = held if isinstance(held, dict) else tree.stored(held)
        arrays = {f"batch.{name}": array for name, array in batch.items()}
        archive.write(path, "run", header, arrays | {f"results.{name}": array for name, array in results.items()})

    @staticmethod
    def load(path: Place) -> Run:
        """The run that `save` wrote to `path` (or an open file), the same numbers bit for bit: to look at it, or to
        `ravi.resume` it."""
        from ravi.runtime import archive

        header, arrays = archive.read(path, "run")
        parts: dict[str, dict[str, Array]] = {"batch": {}, "results": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = array
        try:
            return check_shapes(Run(**header_fields(header), batch=parts["batch"], results=parts["results"]))
        except validation.InputError as error:
            raise validation.InputError(f"{archive.name_of(path)} is damaged: {error}") from None

    def _measured(self, name: str) -> Array:
        if name not in self.results:
            why = f"its world is {self.world}" if self.options["measured"] else "it was made with measured=False"
            raise AttributeError(f"this run did not record {name!r} ({why})")
        return self.results[name]

    def _kept(self, name: str) -> Array:
        if not self.options["keep_epochs"]:
            raise AttributeError(f"this run did not keep {name} (it was made with keep_epochs=False)")
        return self._measured(name)

    def _at(self, name: str) -> Array:
        return self.batch[name] if isinstance(self.batch, dict) else attrgetter(name)(self.batch)

    def _optimum(self) -> str:
        if self.optimum is not None:
            error = f"error at most {self.optimum_error:.1e}" if self.optimum_error is not None else "on the nodes"
            return f"{self.optimum:.6f}  ({error})"
        if "optimum" not in self.results:
            return "not asked for"
        best = self.results["optimum"]
        return f"{best.mean():.6f}  (of the best fixed policy; seeds from {best.min():.6f} to {best.max():.6f})"

    def _in_units(self, regret: float, earned: float) -> str:
        low, high = self.units
        optimum, earned = (low + (high - low) * value for value in (self.optimum or 0.0, earned))
        return (
            f"optimum {optimum:.6g}, regret {(high - low) * regret:,.2f}, "
            f"{earned:.6g} per step realised (rewards from {low:g} to {high:g})"
        )

    @property
    def title(self) -> str:
        """The learner, and the `setup`."""
        return f"{self.learner} on {self.setup}"

    @property
    def setup(self) -> str:
        """The MDP, its criterion, and the numbers of steps and seeds."""
        n = len(self.seeds)
        state = "" if self.complete else f", stopped after {int(self.plays.min()):,} to {int(self.plays.max()):,} steps"
        steps, seeds = printable.counted(self.steps, "step"), printable.counted(n, "seed")
        criteria = {"average": "average reward", "episodic": "episodes"}
        criterion = criteria.get(self.world, f"gamma {self.discount:.10g}")
        return f"{self.mdp} ({criterion}): {steps}, {seeds}{state}"

    def facts(self) -> list[tuple[str, str]]:
        """The results by name, as text."""
        found = list[tuple[str, str]]()
        T = max(float(self.plays.mean()), 1.0)
        earned = self.results["reward_total"].mean() / T if "reward_total" in self.results else 0.0
        if "regret_total" in self.results:
            mean, low, high = self.regret.mean(), self.regret.min(), self.regret.max()
            spread = f"seeds from {low:,.2f} to {high:,.2f}; " if len(self.seeds) > 1 else ""
            found += [
                ("gain g*" if self.world == "average" else "optimum rho*", self._optimum()),
                ("regret", f"{mean:,.2f}  ({spread}{mean / T:.6f} per step)"),
            ]
            if "regret_error" in self.results:
                found.append(("its error", f"at most {self.regret_error.max():.1e} (certified)"))
        if "gap" in self.results:
            found.append(("reward per step", f"{earned:.6f} realised; gap of the last policy {self.gap.mean():.6f}"))
            if self.units != (0.0, 1.0):
                found.append(("in its units", self._in_units(self.regret.mean(), earned)))
        if self.world == "episodic":
            found.append(("realised", f"T rho* - sum r = {self.results['realised'].mean():,.2f}"))
        if "boundary" in self.results:
            off, along = self.results["realised"], self.results["boundary"]
            found += [
                ("reward per step", f"{earned:.6f} realised; T g* - sum r = {off.mean():,.2f}"),
                ("boundary", f"h at the end less h at the start: {along.mean():.4g}"),
            ]
        if "met" in self.results:
            met, visited, unsettled = (self.results[name].mean() for name in ("met", "visited", "unsettled"))
            found += [
                ("reward per step", f"{earned:.6f} realised"),
                ("states", f"{met:,.0f} met, {visited:,.0f} visited; plans work on {unsettled:,.0f}"),
            ]
        for kind, what in (("trajectory", "along the states met"), ("gain", "by the gains of the policies")):
            if f"{kind}_regret_total" in self.results:
                along, error = self.results[f"{kind}_regret_total"], self.results[f"{kind}_regret_error"]
                found.append((kind, f"regret {along.mean():,.2f} {what} (error at most {error.max():.1e})"))
        if self.options["pad"]:
            found.append(("padding", f"{self.padding.mean():.2f} steps beyond T in the mean"))
        settings = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.settings.items())
        found.append(("made in", f"{self.seconds:.2f} s, {self.steps_per_second:,.0f} steps per second"))
        return found + ([("settings", settings)] if settings else [])

    def plot(self, *, axes: Any = None, label: str | None = None, log: bool = False) -> Drawn:
        """The regret of all seeds over time, on axes of one's own where given; needs matplotlib. label: of the curve;
        log: both axes are logarithmic.

        `run.plot().save("regret")` writes regret.pdf and regret.png; `axes=drawn.figure.axes[0]` adds another run.
        """
        from ravi.display.pictures import of_run

        return of_run(self, axes=axes, label=label, log=log)

    def to_pandas(self) -> DataFrame:
        """The curves as a pandas DataFrame: a row for every seed and time; a column for every curve, the learner, the
        MDP, and every setting of the learner."""
        pandas = require_pandas("run.to_pandas()", "run.regret_curve")
        times, seeds = self.times, np.array(self.seeds)
        curves = [name for name in CURVES if name in self.results]
        columns = {"seed": np.repeat(seeds, len(times)), "time": np.tile(times, len(seeds))}
        columns |= {name: self.results[name].ravel() for name in curves}
        frame = pandas.DataFrame(columns).assign(learner=self.learner, mdp=self.mdp)
        return frame.assign(**setting_columns(self.settings, frame.columns))

    def _repr_html_(self) -> str:  # what a notebook shows
        from ravi.display.html import of_run

        return of_run(self)

    def __repr__(self) -> str:
        mean = f"; mean regret {self.regret.mean():,.2f}" if "regret_total" in self.results else ""
        return f"<Run of {self.title}{mean}>"

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {name:16} {words}" for name, words in self.facts())])


def setting_columns(settings: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Any]:
    """Settings as columns of one value; lists as text. One that has the name of another column has `setting_` before
    it."""
    named = {f"setting_{name}" if name in taken else name: value for name, value in settings.items()}
    return {name: str(value) if isinstance(value, (list, dict)) else value for name, value in named.items()}


def check_shapes(run: Run) -> Run:
    """A run from a file, if every array that it shows has an entry for each seed, time or epoch."""
    scored = run.options["measured"] and (run.results or run.world == "tabular")
    names = list(RESULTS[run.world] if scored else ())
    for kind in run.options["record"]:
        names += ALONG.get(kind, ())
    arrays = {"batch.walkers.time": run.batch.get("walkers.time")}
    if "state.policy" in run.batch:  # a learner of one's own may keep it elsewhere
        arrays["batch.state.policy"] = run.batch["state.policy"]
    arrays |= {f"results.{name}": run.results.get(name) for name in names}
    sizes = {"seeds": len(run.seeds), "times": min(run.options["points"], run.steps)}
    for name, array in arrays.items():
        axes = AXES.get(name.partition(".")[2], ("seeds",))
        if array is None:
            raise validation.InputError(f"it has no array {name}")
        known = tuple(axis for axis in axes if axis != "...")
        sized = all(sizes.setdefault(axis, size) == size for axis, size in zip(known, array.shape, strict=False))
        long = array.ndim == len(known) or (array.ndim > len(known) and known != axes)
        if not (sized and long) or array.dtype.kind not in "iuf":
            said = " x ".join(f"{sizes[axis]} {axis}" if axis in sizes else axis for axis in axes)
            raise validation.InputError(f"its array {name} is {array.dtype} {array.shape}, not numbers of {said}")
    return run


def header_fields(header: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a run that the header of its file holds; each is of its type, and what numbers say can be."""
    from ravi.runtime import archive

    types = {name: kind for name, kind in get_type_hints(Run).items() if name not in ("batch", "results")}
    held = archive.typed(header, types | {"options": dict[str, Any]})
    options = archive.typed(held["options"], get_type_hints(Options), within="options")
    validation.steps(held["steps"])
    if held["world"] not in ("average", "episodic"):
        validation.probability(held["discount"], "discount")
    elif held["discount"] != 1:
        raise validation.InputError(f"its discount is {held['discount']}, and its world, {held['world']}, has 1")
    validation.nonnegative(held["seconds"], "seconds")
    validation.whole(options["points"], "points")
    for i, seed in enumerate(held["seeds"]):
        validation.whole(seed, validation.at("seeds", [i]), 0, 2**63 - 1)
    if not held["seeds"]:
        raise validation.InputError("seeds is empty")
    validation.one_of(held["world"], tuple(RESULTS), "world")
    for name in ("optimum", "optimum_error"):
        if options["measured"] and held["world"] in ("tabular", "average", "episodic") and held[name] is None:
            raise validation.InputError(f"it is measured, but its {name} is null")
    return held | {"units": validation.units(held["units"])}
