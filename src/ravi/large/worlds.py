"""Large worlds, which answer to draws: a reward, a successor, a state after a reset; and the runs in them.

An MDP stored on its support is one. So are three functions, compiled here, of which only the values are used:

    reward(x, a) -> r in [0, 1]      successor(x, a, u) -> y      initial(u) -> x,      u uniform on [0, 1)

No array has a row for every state: X may be 10^12.

Under the same key and the same id a run makes the steps of the run in its MDP: the same numbers, the same policies (bit
for bit, unless unvisited states are filled in by the closed form), the same rewards. It does not score every epoch; two
policies are kept, the last one and the output policy of a uniform time (`ravi.large.snapshot`), whose exact returns can
be asked for.

A world of functions is not in the file of a run. It is given again, and its answers in the states that were met are
compared: all rewards, and a hash of successors and starts at a few draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np

from ravi import ids, validation
from ravi.core import MDP, Array, Learner, Measure, Walkers
from ravi.large.learner import AT_GOAL, BAD_START, BAD_SUCCESSOR, NO_ROOM, Clock, Rule, advance, rule_of
from ravi.large.memory import KINDS, NONE, ROWS, SLOTS, TABLES, Memory, empty_memory, rehash, with_room
from ravi.large.sources import Procedure, Table, hash_answers, rewards_of
from ravi.measures.curve import cursor_into
from ravi.measures.curve import grid as times_of
from ravi.random import OUTPUT, uniform
from ravi.runtime import compiled as compiled_driver
from ravi.runtime import tree
from ravi.runtime.compiled import Batch, Task
from ravi.runtime.ranges import Facts, Next, NumberOrNan, Place, Policy, Positive, Range, Whole, check, index_of
from ravi.runtime.result import Options, Run
from ravi.runtime.tree import Ragged
from ravi.runtime.walk import keep, world_of
from ravi.runtime.world import Scores, refuse_streams, start_batch
from ravi.schedules import at_reset

MOST_STATES = 2**62
UNVISITED = ("iterated", "closed")  # the bits of a table, O(k A) for each distinct row of rewards; or O(A), to rounding


class State(NamedTuple):
    """What the learner knows; a seed has arrays of its own where these grow."""

    epoch: Next  # k                                                     (n,)
    steps: Whole  # mirror steps with q that an unvisited state has made, the last and the played one   (n, 2)
    answers: Array  # a hash of what functions said in the states met, where it stopped   (n,)
    memory: Memory


MET = Range(
    lambda met, f, _, held: len(met) == len(held.row) and np.diff(met, prepend=-1) > 0,
    "a state after those before, with a row or -1",
)


class PolicyRecord(NamedTuple):
    """The policy of an epoch, as arrays; epoch 0 where there is none yet."""

    epoch: Next  # k                                                     (n,)
    mirror_steps: Whole  # that an unvisited state has made              (n,)
    met: Annotated[Place, MET]  # states that were met, ascending     (S,)
    row: Annotated[Array, index_of("policy", "a row of the policy, or -1", NONE)]  # of each, or -1: pi_0   (S,)
    policy: Policy  # pi_k                                               (R, A)


class Record(NamedTuple):
    """What was earned, how much is known, and the output policy."""

    earned: Positive  # sum of rewards                                   (n,)
    point: Annotated[Array, cursor_into("curve")]  # points of the curve that are written   (n,)
    curve: NumberOrNan  # what was earned by its times, nan where it has not come to   (n, P)
    epochs: Next  # K                                                    (n,)
    met: Whole  # states that were visited or seen as successors         (n,)
    visited: Whole  #                                                    (n,)
    unsettled: Whole  # that plans work on                               (n,)
    output: PolicyRecord

    def look(self, epoch: Array, memory: Memory) -> None:
        """How much of one seed is known now."""
        met, A = int(memory.used[SLOTS]), memory.visits.shape[1]
        self.epochs[:], self.met[:], self.unsettled[:] = epoch, met, memory.used[ROWS]
        self.visited[:] = (memory.visits[:met].sum(-1) > A).sum()


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """X, A, gamma and where answers come from: a world of `ravi.run`."""

    name: str
    states: int
    actions: int
    discount: float
    source: Table | Procedure
    mdp: MDP | None = None  # whose world this is
    unvisited: str = "iterated"  # how states that are met late are filled in: see `UNVISITED`
    kind: str = "large"
    units: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        validation.one_of(self.unvisited, UNVISITED, "unvisited")

    @property
    def problem(self) -> Any:
        return self

    @property
    def horizon(self) -> float:
        return 1 / (1 - self.discount)  # H

    @property
    def digest(self) -> str:
        """The digest of its MDP; X and A if it is given by functions, whose values are compared (`_check_world`)."""
        return f"X={self.states}, A={self.actions}" if self.mdp is None else self.mdp.digest

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        return self.states, self.actions, 0

    @property
    def answers(self) -> Any:
        return self.source

    def learner(self, given: Learner | str, steps: int) -> Learner:
        """RAVI-UCB or RAVI-UCB+; its name is its id, from which its constants come again."""
        if isinstance(given, Learner) and not isinstance(given.parts, Rule):
            raise validation.InputError(f"{given.name} is a learner of tables: in a large world it is named by its id")
        text = given.name if isinstance(given, Learner) else given
        validation.instance(text, str, "learner", "an id such as 'ravi-ucb,beta=3'")
        rule = rule_of(text, self, steps)
        settings: dict[str, Any] = {"eta": rule.eta, "beta": rule.beta, "inner": rule.inner, "fresh": rule.fresh}
        settings |= {"unvisited": "closed"} if rule.closed else {}

        def init(keys: Array) -> State:
            n, each = len(keys), [empty_memory(self.actions) for _ in keys]
            memory = Memory._make(Ragged(parts) for parts in zip(*each, strict=True))
            return State(np.zeros(n, np.int64), np.zeros((n, 2), np.int64), np.zeros(n, np.uint64), memory)

        return Learner(ids.canonical(text), init, keep, keep, at_reset(), settings, rule)  # type: ignore[arg-type]

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        refuse_streams(options, "in a large world what is earned and two policies are")
        return Scores(None, None, [_record(self.actions, len(times_of(steps, options["points"])))])

    def hash_of(self, states: Array) -> int:
        """A hash of the starts and the successors that functions give for these states; 0 for an MDP (it has a
        digest)."""
        return 0 if self.mdp is not None else int(hash_answers(self.source, states, self.actions))

    def check_memory(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        curves = 8 * n * min(options["points"], steps)
        validation.require_memory(curves, f"{learner.name} on {self.name}", "seeds or points")

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        walkers = Walkers(np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64), keys.copy())
        return start_batch(learner, keys, measures, walkers, f"{learner.name} on {self.name}", "seeds or points")

    def size(self, batch: Batch) -> float:
        return tree.size(batch) / len(batch.walkers.key)

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        """Every array is held against what is declared of it, and what is looked up is found."""
        rule: Any = learner.parts
        for i in range(len(stopped.seeds)):
            _check_seed(tree.seed(batch, i), tree.seed(begun, i), rule)

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        (task,), (batch,) = tasks, batches
        if len(task.measures) > 1:
            raise validation.InputError(
                f"measures: {self.name} is a large world, walked by a loop that no measure sees"
            )
        seeds = Seeds(self, task, batch)
        compiled_driver.advance([seeds], seeds.run, task, batches, compiled_driver.MOST)
        return [batch]

    def __repr__(self) -> str:
        return f"<World {self.name}: X={self.states:,}, A={self.actions}, gamma={self.discount:g}>"


def of_mdp(mdp: MDP, *, unvisited: str = "iterated") -> World:
    """The world of an MDP: the draws of `ravi.run`, number for number. As an id: `large/` and that of the MDP."""
    if mdp.discount == 1:
        raise validation.InputError(f"{mdp.name} is of the average reward, and a large world has a discount")
    world = world_of(mdp)
    source = Table(mdp.rewards, world.successors, world.cumulative, world.initial)
    return World(mdp.name, mdp.states, mdp.actions, mdp.discount, source, mdp, unvisited)


def procedural(
    reward: Callable[[int, int], float], successor: Callable[[int, int, float], int], initial: Callable[[float], int],
    *, states: int, actions: int, discount: float, name: str = "world", unvisited: str = "iterated",
) -> World:  # fmt: skip
    """A world of three functions that Numba can compile: of whole numbers and u, using constants and nothing else."""
    source = Procedure(
        numba.cfunc("float64(int64, int64)")(reward),
        numba.cfunc("int64(int64, int64, float64)")(successor),
        numba.cfunc("int64(float64)")(initial),
    )
    return World(
        name, validation.whole(states, "states", 1, MOST_STATES), validation.whole(actions, "actions"),
        validation.probability(discount, "discount"), source, unvisited=unvisited,
    )  # fmt: skip


def grid(width: int = 1000, discount: float = 0.9, *, unvisited: str = "iterated") -> World:
    """Moves in a square of W^2 cells slip aside with probability .2; only visited cells are stored.

    The goal is four cells from the start.
    """
    W = validation.whole(width, "width", 9, 2**30)
    start = W // 2 * W + W // 2

    def reward(x: int, a: int) -> float:
        return 1.0 if x == start + 4 else 0.0

    def successor(x: int, a: int, u: float) -> int:
        move = (a + 1) % 4 if u < 0.1 else (a + 3) % 4 if u < 0.2 else a
        i, j = x // W, x % W
        if move == 0:
            i = max(i - 1, 0)
        elif move == 1:
            j = min(j + 1, W - 1)
        elif move == 2:
            i = min(i + 1, W - 1)
        else:
            j = max(j - 1, 0)
        return i * W + j

    def initial(u: float) -> int:
        return start

    return procedural(
        reward, successor, initial, states=W * W, actions=4, discount=discount, name=f"grid/{W}", unvisited=unvisited
    )


class Seeds:
    """The seeds of a run in a large world, as a target of `ravi.runtime.compiled.advance`; what the batch holds is
    written to."""

    def __init__(self, world: World, task: Task, batch: Batch) -> None:
        self.world, self.task, self.batch = world, task, batch
        for i, time in enumerate(batch.walkers.time):
            if 0 < time < task.T:
                _check_world(world, tree.seed(batch.state.memory, i), batch.state.answers[i])

    def run(self, epochs: int) -> None:
        for i in range(len(self.batch.walkers.key)):
            self._advance(i, epochs)

    def _advance(self, i: int, epochs: int) -> None:
        """Take seed i through so many epochs, with more memory where it is short."""
        world, last, rule = self.world, self.task.last, self.task.learner.parts
        walkers, state, (to,) = tree.seed(self.batch, i)
        inside, bad = np.zeros(1, np.bool_), np.zeros(3)
        clock = Clock(
            walkers.time, state.epoch, inside, walkers.state, state.steps[0], to.earned, to.point, to.curve[0], bad
        )
        key, memory, end = walkers.key[0], state.memory, int(state.epoch[0]) + epochs
        times, index = times_of(self.task.T, to.curve.shape[1]), output_index(key, self.task.T)
        while inside[0] or (clock.time[0] < last and clock.epoch[0] < end):
            goal = last if to.output.epoch[0] else min(index, last)
            why = advance(world.source, rule, key, clock, memory, end, goal, times)
            if why == NO_ROOM:
                memory = with_room(memory)
            elif why != AT_GOAL:
                raise validation.InputError(mistake_of(world, why, bad))
            elif not to.output.epoch[0] and clock.time[0] >= index:
                _store(self.batch.records[0].output, i, policy_record(state.epoch, state.steps[0, 1:], memory))
        _store(self.batch.state.memory, i, memory)

    def look(self, epochs: int = 0) -> None:
        for i in range(len(self.batch.walkers.key)):
            _, state, (to,) = tree.seed(self.batch, i)
            to.look(state.epoch, state.memory)

    def finish(self) -> None:
        """The answers so far, by which the world is known again."""
        self.look()
        for i, time in enumerate(self.batch.walkers.time):
            memory = tree.seed(self.batch.state.memory, i)
            met = memory.ids[: memory.used[SLOTS]]
            self.batch.state.answers[i] = self.world.hash_of(met) if time < self.task.T else 0


def _store(held: Any, i: int, arrays: Any) -> None:
    """These arrays in the place of those of seed i."""
    for leaf, array in zip(held, arrays, strict=True):
        if isinstance(leaf, Ragged):
            leaf.parts[i] = array
        else:
            leaf[i] = array[0]


def _record(A: int, P: int) -> Measure:
    def init(keys: Array) -> Record:
        def whole() -> Array:
            return np.zeros(len(keys), np.int64)

        each = [(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, A))) for _ in keys]
        output = PolicyRecord._make([whole(), whole(), *(Ragged(parts) for parts in zip(*each, strict=True))])
        curve = np.full((len(keys), P), np.nan)
        return Record(np.zeros(len(keys)), whole(), curve, whole(), whole(), whole(), whole(), output)

    def results(m: Record) -> dict[str, Array]:
        known = {"epochs": m.epochs, "met": m.met, "visited": m.visited, "unsettled": m.unsettled}
        return {"reward": m.curve, "reward_total": m.earned} | known

    return Measure("large", init, lambda m, state, path, opening: m, results)


def policy_record(epoch: Array, mirror_steps: Array, memory: Memory) -> PolicyRecord:
    """The policy that is played."""
    S, R = int(memory.used[SLOTS]), int(memory.used[ROWS])
    order = np.argsort(memory.ids[:S])
    met, row = memory.ids[:S][order], memory.row[:S][order]
    return PolicyRecord(epoch.copy(), mirror_steps.copy(), met, row, memory.policy[:R].copy())


def output_index(key: Any, T: int) -> int:
    """I, uniform on 1, ..., T."""
    return 1 + int(T * uniform(np.uint64(key), 0, OUTPUT))


def _check_world(world: World, memory: Memory, answers: Any) -> None:
    """Check that the world is the one whose states were met."""
    met = memory.ids[: memory.used[SLOTS]]
    wrong = np.argwhere(rewards_of(world.source, met, world.actions) != memory.rewards[: len(met)])
    if len(wrong):
        s, a = (int(part) for part in wrong[0])
        raise validation.InputError(
            f"the stopped run was made with a {world.name} whose reward({met[s]}, {a}) is "
            f"{memory.rewards[s, a]:g}; that of this one is another"
        )
    if world.hash_of(met) != answers:
        raise validation.InputError(
            f"the stopped run was made with a {world.name} of other successors or another initial: "
            f"{world.name} answers otherwise in states that were met"
        )


def _check_seed(one: Batch, begun: Batch, rule: Rule) -> None:
    """Check one seed: indices are in range, the hash tables find every key, and loops end."""
    walkers, state, (to,) = one
    memory, T, time = state.memory, rule.steps, walkers.time
    if memory.used.shape != (len(KINDS),):
        raise validation.InputError(f"batch.state.memory.used has {len(memory.used)} entries, not {len(KINDS)}")
    for kind, names in KINDS.items():
        rooms = {len(getattr(memory, name)) for name in names}
        table = len(getattr(memory, TABLES[kind][0])) if kind in TABLES else inf
        if len(rooms) > 1 or not 0 <= memory.used[kind] <= min(rooms) < table:
            raise validation.InputError(f"batch.state.memory: the rooms of {names[0]} do not agree")
    used = {name: getattr(memory, name)[: memory.used[kind]] for kind, names in KINDS.items() for name in names}
    cut = one._replace(state=state._replace(memory=memory._replace(**used)))
    facts = Facts(rule.states, memory.rewards.shape[1], rule.H, T, time, time, T)
    check(cut, begun, facts, "batch")
    if not all(_is_table_of(getattr(memory, place), used[keys]) for place, keys in TABLES.values()):
        raise validation.InputError("batch.state.memory: states and moves cannot be found in it")
    if state.steps[0, 0] > rule.inner * state.epoch[0]:
        raise validation.InputError(f"batch.state.steps is {state.steps[0, 0]}, more than {state.epoch[0]} epochs make")
    if to.output.mirror_steps[0] > state.steps[0, 0]:
        raise validation.InputError("batch.records: the output policy is of more mirror steps than were made")


def _is_table_of(place: Array, keys: Array) -> bool:
    """Whether the hash table is the one of these keys."""
    if len(place) & (len(place) - 1):
        return False
    table = np.zeros_like(place)
    rehash(table, keys, len(keys))
    return np.array_equal(table, place)


def mistake_of(world: World, why: int, bad: Array) -> str:
    x, a, value = (float(part) for part in bad)
    if why == BAD_START:
        return f"{world.name}: initial gives {x:.0f}, but states are 0 to {world.states - 1}"
    if why == BAD_SUCCESSOR:
        return f"{world.name}: successor({x:.0f}, {a:.0f}, u) gives {value:.0f}; states are 0 to {world.states - 1}"
    return f"{world.name}: reward({x:.0f}, {a:.0f}) is {value:g}, not in [0, 1]"
