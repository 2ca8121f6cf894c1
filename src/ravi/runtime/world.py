"""Worlds: what a learner is there, where seeds begin, what they are scored by. MDPs are worlds.

`ravi.runtime.api` runs, stops, resumes and keeps runs of whatever answers to `World`; nothing of it is about tables.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ravi import ids, validation
from ravi.core import MDP, Array, Learner, Measure
from ravi.mdps.changing_rewards import Changing
from ravi.measures.regret import regret
from ravi.measures.stream import output, rewards, stream
from ravi.planning.solver import solve
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import tree
from ravi.runtime.compiled import Batch, Task
from ravi.runtime.ranges import Facts, check
from ravi.runtime.result import Options, Run
from ravi.runtime.walk import padding, start, world_of
from ravi.validation import memory_errors, require_memory

COPIES = 3  # of the seeds: as they begin, as those of each thread end, and together again
TOLERANCE = 1e-12  # of V*, where rounding allows


class Scores(NamedTuple):
    """The optimum that runs are compared with, and the measures that score them."""

    optimum: float | None  # rho*; None where it is not asked for
    error: float | None  # of it, certified
    measures: list[Measure]


class World(Protocol):
    """What `ravi.run` runs a learner in."""

    @property
    def kind(self) -> str:
        """Which results its runs have: a key of `ravi.runtime.result.RESULTS`."""

    @property
    def problem(self) -> Any:
        """What has its name, its discount and its units."""

    @property
    def name(self) -> str:
        return str(self.problem.name)

    @property
    def discount(self) -> float:
        return float(self.problem.discount)

    @property
    def units(self) -> tuple[float, float]:
        return getattr(self.problem, "units", (0.0, 1.0))

    @property
    def digest(self) -> str:
        """A hash of all that its answers depend on."""

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        """X (None where states are continuous), A, and d of a mixture or a linear MDP, else 0."""

    @property
    def answers(self) -> Any:
        """What the walk is given to simulate it."""

    def learner(self, given: Learner | str, steps: int) -> Learner:
        """A learner, itself or by its id, here."""

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        """The scores of such runs."""

    def check_memory(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        """An error where n seeds are too large for what every run keeps: curves."""
        require_memory(8 * n * min(options["points"], steps), f"{learner.name} on {self.name}", "seeds or points")

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        """All seeds as they begin."""

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        """An error where a file holds what cannot be; `begun` is a batch that begins."""

    def size(self, batch: Batch) -> float:
        """Bytes that a seed works on."""
        return tree.size(batch) / len(batch.walkers.key)

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        """Each batch from where its seeds stand to where they stop; the batches may be written to. There are several
        only where learner and measures are compiled."""


def scores_of(mdp: MDP, learner: Learner, steps: int, options: Options) -> Scores:
    """Regret, what was earned, the output policy, and what `record` names, by the criterion."""
    record, pad, of = options["record"], options["pad"], validation.OF_CRITERION.get(mdp.criterion)
    if of is not None and ("trajectory" in record or pad):
        what = "pad is true" if pad else "record names 'trajectory'"
        raise validation.InputError(f"{what}, which is of the discounted criterion; {mdp.name} is {of}")
    if mdp.criterion != "average":
        refuse_gains(options, mdp.name)
    T, points, stages, solution = steps, options["points"], learner.stages, solution_of(mdp)
    if mdp.criterion == "average":
        from ravi.measures.average import average_regret

        optimum, error = solution.gain, solution.gain_error
        scored = average_regret(mdp, T, points, solution)
    else:
        optimum, error = solution.optimum, solution.optimum_error
        scored = regret(mdp, T, points, solution, keep_epochs=options["keep_epochs"], stages=stages)
    earned = rewards(mdp, T, points) if of is None else rewards(mdp, T, points, optimum)
    measures = [scored, earned, output(mdp.problem, T, stages)]
    if "trajectory" in record:
        from ravi.measures.trajectory import trajectory

        measures.append(trajectory(mdp, T, points, solution, stages))
    if "gain" in record:
        from ravi.measures.gain import gain_regret

        measures.append(gain_regret(mdp, T, points, solution))
    if "stream" in record:
        measures.append(stream(mdp.problem, T, pad=pad))
    return Scores(optimum, error, measures)


def refuse_gains(options: Options, name: str) -> None:
    """An error where gains are asked for, and nothing has one."""
    if "gain" in options["record"]:
        raise validation.InputError(f"record names 'gain', which is of the average reward, and {name} is not")


@dataclass(frozen=True, eq=False)
class Tabular(World):
    """The world of an MDP."""

    mdp: MDP

    @property
    def kind(self) -> str:
        return "tabular" if self.mdp.criterion == "discounted" else self.mdp.criterion

    @property
    def problem(self) -> MDP:
        return self.mdp

    @property
    def digest(self) -> str:
        return self.mdp.digest

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        of, pairs = self.mdp, self.mdp.pair_features
        return of.states, of.actions, of.dimension or (0 if pairs is None else int(pairs.shape[2]))

    @property
    def answers(self) -> Any:
        return world_of(self.mdp)

    def learner(self, given: Learner | str, steps: int) -> Learner:
        return given if isinstance(given, Learner) else ids.learner(given, self.mdp, steps)

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        """Nothing in a run that is not measured."""
        return scores_of(self.mdp, learner, steps, options) if options["measured"] else Scores(None, None, [])

    def check_memory(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        """An error if n seeds need more memory for policies, curves and streams than there is."""
        what, lower = self._asked(learner, n)
        points = min(options["points"], steps)
        policy = 8 * max(learner.stages, 1) * self.mdp.states * self.mdp.actions
        stream = 13 * steps if "stream" in options["record"] else 0
        require_memory(n * (3 * policy + 16 * points + stream) + 40 * points, what, lower)

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        def check_shape(state: Any) -> None:
            (X, A), wanted = state.policy.shape[-2:], (self.mdp.states, self.mdp.actions)
            if wanted != (X, A):
                raise validation.InputError(
                    f"{learner.name} was built for {X} states and {A} actions, "
                    f"but {self.name} has {wanted[0]} and {wanted[1]}"
                )

        return start_batch(
            learner, keys, measures, start(self.answers, keys), *self._asked(learner, len(keys)), check_shape
        )

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        mdp, T, walkers = self.mdp, stopped.steps, batch.walkers
        most = T + (padding(mdp.horizon) if stopped.options["pad"] else 0)
        facts = Facts(mdp.states, mdp.actions, mdp.largest_value, T, np.minimum(walkers.time, T), walkers.time, most)
        check(batch, begun, facts, "batch")

    def size(self, batch: Batch) -> float:
        working = 2 * 8 * self.mdp.states * self.mdp.actions * self.mdp.dimension  # phi_V and R^T phi_V of a plan
        return super().size(batch) + working

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        if device == "gpu":
            from ravi.runtime import gpu

            gpu.run(tasks[0], batches[0])
        elif compiled_driver.is_compiled(tasks[0].learner, tasks[0].measures):
            compiled_driver.run(tasks, batches)
        else:
            from ravi.runtime import python as python_driver

            return [python_driver.run(tasks[0], batches[0])]
        return list(batches)

    def _asked(self, learner: Learner, n: int) -> tuple[str, str]:
        """What needs memory, and which numbers would need less of it."""
        others = "points, the length of a stream or the size of the MDP"
        what = f"{learner.name} on {self.name}"
        return (f"{what} under {n:,} seeds", f"seeds, {others}") if n > 1 else (what, others)


def start_batch(
    learner: Learner, keys: Array, measures: Sequence[Measure], walkers: Any, what: str, lower: str,
    check: Callable[[Any], None] = lambda state: None,
) -> Batch:  # fmt: skip
    """All seeds as they begin; one of them first, which says how much they need together. what, lower: for an error,
    what needs memory, and what would need less of it; check: of the state of one seed."""
    with memory_errors(what, lower):
        state, records = learner.init(keys[:1]), tuple(measure.init(keys[:1]) for measure in measures)
        check(state)
        require_memory(COPIES * len(keys) * tree.size((state, records)), what, lower)
        if len(keys) > 1:
            state, records = learner.init(keys), tuple(measure.init(keys) for measure in measures)
    return Batch(walkers, state, records)


def refuse_streams(options: Options, recorded: str) -> None:
    """An error where options ask for more than what is recorded."""
    if options["record"] or options["pad"]:
        asked = f"record names {options['record'][0]!r}" if options["record"] else "pad is true"
        raise validation.InputError(f"{asked}: {recorded} recorded, up to T")


def stored_batch(world: World, stopped: Run, learner: Learner, measures: Sequence[Measure]) -> Batch:
    """Where the run of a file stands, held against all that is declared of its arrays: compiled loops believe them."""
    held, keys = stopped.batch, np.asarray(stopped.seeds, np.uint64)
    if not np.array_equal(held.get("walkers.key", ()), keys):  # asked first: there is one of each array per seed
        raise validation.InputError("batch.walkers.key are not the seeds of the run")
    begun = world.begin(learner, keys, measures)
    batch: Batch = tree.fill(begun, held)
    world.sound(batch, begun, learner, stopped)
    return batch


_solutions: WeakKeyDictionary[MDP, Any] = WeakKeyDictionary()


def solution_of(mdp: MDP) -> Any:
    """The optimum that a run is scored against, found once for an MDP that is used again, as by `resume`."""
    if mdp not in _solutions:
        _solutions[mdp] = solve(mdp, tol=TOLERANCE)
    return _solutions[mdp]


@dataclass(frozen=True, eq=False)
class ChangingRewards(Tabular):
    """The world of an MDP whose rewards change: the regret is against the best fixed policy in hindsight."""

    tables: Changing
    kind = "changing"

    def learner(self, given: Learner | str, steps: int) -> Learner:
        from ravi.learners.ravi_ucb.changing_rewards import changing

        learner = super().learner(given, steps)
        return learner if learner.side_information.world is self.tables else changing(learner, self.tables)

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        from ravi.measures.hindsight import hindsight

        if not options["measured"]:
            return Scores(None, None, [])
        refuse_gains(options, self.name)
        if "trajectory" in options["record"]:
            raise validation.InputError("record names 'trajectory', which is against one V*; here rewards change")
        if options["pad"]:
            raise validation.InputError("pad is true: where rewards change, nothing is played beyond T")
        more = [stream(self.mdp.problem, steps, pad=False)] if "stream" in options["record"] else []
        return Scores(None, None, [hindsight(self.tables, steps, options["points"], learner.parts), *more])


class AnyProblem(Protocol):
    """What an MDP, a large or a continuous one, and a world have in common."""

    @property
    def name(self) -> str: ...
    @property
    def discount(self) -> float: ...


# What `ravi.run` takes for a world: an MDP of any kind, one whose rewards change, an id or a file.
Named: TypeAlias = AnyProblem | Changing | str | os.PathLike[str] | Callable[[], Any]


def find_world(world: Named) -> World:
    """A world: itself, that of an MDP, of one whose rewards change, of a large one, or of the id of any."""
    made: Any = ids.called(world)
    made = ids.world(made) if isinstance(made, str) else made
    return made if hasattr(made, "run") else to_run(made)


@singledispatch
def to_run(made: Any) -> World:
    """As the engine runs learners in it; `ravi.large` and `ravi.continuous` say how theirs are."""
    return Tabular(ids.mdp(made))


to_run.register(Changing, lambda world: ChangingRewards(world.mdp, world))
