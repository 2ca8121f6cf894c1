"""Worlds: what a learner is there, where seeds begin, what they are scored by. MDPs are worlds.

`ravi.runtime.api` runs, stops, resumes and keeps runs of whatever answers to `World`; nothing of it is about tables.
"""

import os
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ravi import ids, validation
from ravi.core import MDP, Array, Learner, Measure
from ravi.mdps.changing_rewards import Changing
from ravi.measures.average import average_regret
from ravi.measures.gain import gain_regret
from ravi.measures.regret import regret
from ravi.measures.stream import output, rewards, stream
from ravi.measures.trajectory import trajectory
from ravi.planning.solver import Solution, solve
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import gpu as gpu
from ravi.runtime import python as python_driver
from ravi.runtime import tree
from ravi.runtime.python import Batch, Task
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
    def name(self) -> str: ...
    @property
    def digest(self) -> str:
        """A hash of all that its answers depend on."""

    @property
    def discount(self) -> float: ...
    @property
    def sizes(self) -> tuple[int | None, int, int]:
        """X (None where states are continuous), A, and d of a mixture or a linear MDP, else 0."""

    @property
    def units(self) -> tuple[float, float]: ...
    @property
    def answers(self) -> Any:
        """What the walk is given to simulate it."""

    def learner(self, given: Learner | str, steps: int) -> Learner:
        """A learner, itself or by its id, here."""

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        """The scores of such runs."""

    def check_memory(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        """An error where n seeds are too large for what every run keeps."""

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        """All seeds as they begin."""

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        """An error where a file holds what cannot be; `begun` is a batch that begins."""

    def size(self, batch: Batch) -> float:
        """Bytes that a seed works on."""

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        """Each batch from where its seeds stand to where they stop; the batches may be written to. There are several
        only where learner and measures are compiled."""


def against_optimum(mdp: MDP, learner: Learner, steps: int, options: Options) -> Scores:
    """Regret, rewards, the output policy, and what `record` names."""
    no_gains(options, mdp.name)
    T, points, stages, solution = steps, options["points"], learner.stages, solved(mdp)
    chosen = [
        regret(mdp, T, points, solution, keep_epochs=options["keep_epochs"], stages=stages),
        rewards(mdp, T, points),
        output(mdp.problem, T, stages),
    ]
    if "trajectory" in options["record"]:
        chosen.append(trajectory(mdp, T, points, solution, stages))
    if "stream" in options["record"]:
        chosen.append(stream(mdp.problem, T, pad=options["pad"]))
    return Scores(solution.optimum, solution.optimum_error, chosen)


def no_gains(options: Options, name: str) -> None:
    """An error where gains are asked for, and nothing has one."""
    if "gain" in options["record"]:
        raise validation.InputError(f"record names 'gain', which is of the average reward, and {name} is not")


def against_gain(mdp: MDP, learner: Learner, steps: int, options: Options) -> Scores:
    """The regret in the average reward, and the output policy."""
    only_discounted(mdp, options)
    solution: Any = solved(mdp)
    points = options["points"]
    chosen = [
        average_regret(mdp, steps, points, solution),
        rewards(mdp, steps, points, solution.gain),
        output(mdp.problem, steps, learner.stages),
    ]
    chosen += [gain_regret(mdp, steps, points, solution)] if "gain" in options["record"] else []
    chosen += [stream(mdp.problem, steps)] if "stream" in options["record"] else []
    return Scores(solution.gain, solution.gain_error, chosen)


def against_episodes(mdp: MDP, learner: Learner, steps: int, options: Options) -> Scores:
    """The regret of episodes, what was earned, and the output policy."""
    only_discounted(mdp, options)
    no_gains(options, mdp.name)
    solution: Any = solved(mdp)
    T, points, stages = steps, options["points"], learner.stages
    chosen = [
        regret(mdp, T, points, solution, keep_epochs=options["keep_epochs"], stages=stages),
        rewards(mdp, T, points, solution.optimum),
        output(mdp.problem, T, stages),
    ]
    chosen += [stream(mdp.problem, steps)] if "stream" in options["record"] else []
    return Scores(solution.optimum, solution.optimum_error, chosen)


def only_discounted(mdp: MDP, options: Options) -> None:
    """An error where options ask for what belongs to a discount."""
    if "trajectory" in options["record"] or options["pad"]:
        what = "pad is true" if options["pad"] else "record names 'trajectory'"
        raise validation.InputError(
            f"{what}, which is of the discounted criterion; {mdp.name} is {validation.OF_CRITERION[mdp.criterion]}"
        )


class Tabular(NamedTuple):
    """The world of an MDP, or of its kernel where rewards change (`turning`)."""

    mdp: MDP
    kind: str = "tabular"
    adapted: Callable[[Learner], Learner] = lambda learner: learner  # a learner of the MDP -> the same, here
    scored: Callable[[MDP, Learner, int, Options], Scores] = against_optimum

    @property
    def name(self) -> str:
        return self.mdp.name

    @property
    def digest(self) -> str:
        return self.mdp.digest

    @property
    def discount(self) -> float:
        return self.mdp.discount

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        of, pairs = self.mdp, self.mdp.pair_features
        return of.states, of.actions, of.dimension or (0 if pairs is None else int(pairs.shape[2]))

    @property
    def units(self) -> tuple[float, float]:
        return self.mdp.units

    @property
    def answers(self) -> Any:
        return world_of(self.mdp)

    def learner(self, given: Learner | str, steps: int) -> Learner:
        return self.adapted(given if isinstance(given, Learner) else ids.learner(given, self.mdp, steps))

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        """Nothing in a run that is not measured."""
        return self.scored(self.mdp, learner, steps, options) if options["measured"] else Scores(None, None, [])

    def check_memory(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        """An error if n seeds need more memory for policies, curves and streams than there is."""
        what, lower = self._asked(learner, n)
        points = min(options["points"], steps)
        policy = 8 * max(learner.stages, 1) * self.mdp.states * self.mdp.actions
        stream = 13 * steps if "stream" in options["record"] else 0
        require_memory(n * (3 * policy + 16 * points + stream) + 40 * points, what, lower)

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        """All seeds as they begin; one of them first, which says how much they need together."""
        n, (what, lower) = len(keys), self._asked(learner, len(keys))
        with memory_errors(what, lower):
            state, records = learner.init(keys[:1]), tuple(measure.init(keys[:1]) for measure in measures)
            told, wanted = tuple(state.policy.shape[-2:]), (self.mdp.states, self.mdp.actions)
            if told != wanted:
                raise validation.InputError(
                    f"{learner.name} was built for {told[0]} states and {told[1]} actions, "
                    f"but {self.name} has {wanted[0]} and {wanted[1]}"
                )
            require_memory(COPIES * n * tree.size((state, records)), what, lower)
            if n > 1:
                state, records = learner.init(keys), tuple(measure.init(keys) for measure in measures)
        return Batch(start(self.answers, keys), state, records)

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        mdp, T, walkers = self.mdp, stopped.steps, batch.walkers
        most = T + (padding(mdp.horizon) if stopped.options["pad"] else 0)
        facts = Facts(mdp.states, mdp.actions, mdp.largest_value, T, np.minimum(walkers.time, T), walkers.time, most)
        check(batch, begun, facts, "batch")

    def size(self, batch: Batch) -> float:
        """Bytes that a seed works on."""
        working = 2 * 8 * self.mdp.states * self.mdp.actions * self.mdp.dimension  # phi_V and R^T phi_V of a plan
        return tree.size(batch) / len(batch.walkers.key) + working

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        if device == "gpu":
            gpu.run(tasks[0], batches[0])
        elif compiled_driver.is_compiled(tasks[0].learner, tasks[0].measures):
            compiled_driver.run(tasks, batches)
        else:
            return [python_driver.run(tasks[0], batches[0])]
        return list(batches)

    def _asked(self, learner: Learner, n: int) -> tuple[str, str]:
        """What needs memory, and which numbers would need less of it."""
        others = "points, the length of a stream or the size of the MDP"
        what = f"{learner.name} on {self.name}"
        return (f"{what} under {n:,} seeds", f"seeds, {others}") if n > 1 else (what, others)


def begun(
    world: World, learner: Learner, keys: Array, measures: Sequence[Measure], walkers: Any, lower: str
) -> Batch:  # fmt: skip
    """All seeds as they begin; one of them first, which says how much they need together."""
    one = learner.init(keys[:1]), tuple(measure.init(keys[:1]) for measure in measures)
    require_memory(COPIES * len(keys) * tree.size(one), f"{learner.name} on {world.name}", lower)
    return Batch(walkers, learner.init(keys), tuple(measure.init(keys) for measure in measures))


def curves_fit(world: World, learner: Learner, steps: int, options: Options, n: int) -> None:
    """An error where the curves of n seeds need more memory than there is."""
    require_memory(8 * n * min(options["points"], steps), f"{learner.name} on {world.name}", "seeds or points")


def no_streams(options: Options, recorded: str) -> None:
    """An error where options ask for more than what is recorded."""
    if options["record"] or options["pad"]:
        asked = f"record names {options['record'][0]!r}" if options["record"] else "pad is true"
        raise validation.InputError(f"{asked}: {recorded} recorded, up to T")


def taken_up(world: World, stopped: Run, learner: Learner, measures: Sequence[Measure]) -> Batch:
    """Where the run of a file stands, held against all that is declared of its arrays: compiled loops believe them."""
    held, keys = stopped.batch, np.asarray(stopped.seeds, np.uint64)
    if not np.array_equal(held.get("walkers.key", ()), keys):  # asked first: there is one of each array per seed
        raise validation.InputError("batch.walkers.key are not the seeds of the run")
    begun = world.begin(learner, keys, measures)
    batch: Batch = tree.fill(begun, held)
    world.sound(batch, begun, learner, stopped)
    return batch


_solutions: WeakKeyDictionary[MDP, Solution] = WeakKeyDictionary()


def solved(mdp: MDP) -> Solution:
    """The optimum that a run is scored against, found once for an MDP that is used again, as by `resume`."""
    if mdp not in _solutions:
        _solutions[mdp] = solve(mdp, tol=TOLERANCE)
    return _solutions[mdp]


def turning(world: Changing) -> Tabular:
    """The world of an MDP whose rewards change: the regret is against the best fixed policy in hindsight."""
    from ravi.learners.ravi_ucb.changing_rewards import changing
    from ravi.measures.hindsight import hindsight

    def scored(mdp: MDP, learner: Learner, steps: int, options: Options) -> Scores:
        no_gains(options, mdp.name)
        if "trajectory" in options["record"]:
            raise validation.InputError("record names 'trajectory', which is against one V*; here rewards change")
        if options["pad"]:
            raise validation.InputError("pad is true: where rewards change, nothing is played beyond T")
        more = [stream(mdp.problem, steps, pad=False)] if "stream" in options["record"] else []
        return Scores(None, None, [hindsight(world, steps, options["points"], learner.parts), *more])

    def adapted(learner: Learner) -> Learner:
        return learner if learner.side_information.world is world else changing(learner, world)

    return Tabular(world.mdp, "changing", adapted, scored)


class AnyProblem(Protocol):
    """What an MDP, a large or a continuous one, and a world have in common."""

    @property
    def name(self) -> str: ...
    @property
    def discount(self) -> float: ...


# What `ravi.run` takes for a world: an MDP of any kind, one whose rewards change, an id or a file.
Named: TypeAlias = AnyProblem | Changing | str | os.PathLike[str] | Callable[[], Any]


def world_named(world: Named) -> World:
    """A world: itself, that of an MDP, of one whose rewards change, of a large one, or of the id of any."""
    made: Any = ids.called(world)
    made = ids.world(made) if isinstance(made, str) else made
    return made if hasattr(made, "run") else to_run(made)


@singledispatch
def to_run(made: Any) -> World:
    """As the engine runs learners in it; `ravi.large` and `ravi.continuous` say how theirs are."""
    mdp = ids.mdp(made)
    if mdp.criterion == "discounted":
        return Tabular(mdp)
    return Tabular(mdp, mdp.criterion, scored=against_gain if mdp.criterion == "average" else against_episodes)


to_run.register(Changing, turning)
