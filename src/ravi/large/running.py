"""How does a run go where X is large? By one compiled loop over what was met: the steps of a table, bit for bit.

Under the same key and the same id it plays the steps of the run in its MDP: the same numbers, the same policies (bit
for bit, unless unvisited states are filled in by the closed form), the same rewards. It does not score every epoch; two
policies are kept, the last one and the output policy of a uniform time (`ravi.large.snapshot`), whose exact returns can
be asked for.

A world of functions is not in the file of a run. It is given again, and its answers in the states that were met are
compared: all rewards, and a hash of successors and starts at a few draws.
"""

from collections.abc import Sequence
from math import inf
from typing import Annotated, Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi.core import Array, Learner, Measure, Walkers
from ravi.large.memory import KINDS, NONE, ROWS, SLOTS, TABLES, Memory, empty, grown, rehash
from ravi.large.playing import AT_GOAL, BAD_REWARD, BAD_START, BAD_SUCCESSOR, NO_ROOM, Clock, Rule, advance
from ravi.large.probes import hash_of, rewards_of
from ravi.large.rules import rule_of
from ravi.large.worlds import World
from ravi.measures.curve import cursor_into, grid
from ravi.random import OUTPUT, uniform
from ravi.runtime import tree
from ravi.runtime.python import Batch, Task
from ravi.runtime.ranges import Facts, Next, NumberOrNan, Place, Policy, Positive, Range, Whole, check, index_of
from ravi.runtime.result import Options, Run
from ravi.runtime.tree import Ragged
from ravi.runtime.world import COPIES, Scores, to_run
from ravi.schedules import at_reset
from ravi.validation import require_memory

SLICE = 2**14  # plays between which Ctrl-C is heard


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


class Kept(NamedTuple):
    """The policy of an epoch, as arrays; epoch 0 where there is none yet."""

    epoch: Next  # k                                                     (n,)
    mirror_steps: Whole  # that an unvisited state has made              (n,)
    met: Annotated[Place, MET]  # states that were met, ascending     (S,)
    row: Annotated[Array, index_of("policy", "a row of the policy, or -1", NONE)]  # of each, or -1: pi_0   (S,)
    policy: Policy  # pi_k                                               (R, A)


class Recorded(NamedTuple):
    """What was earned, how much is known, and the output policy."""

    earned: Positive  # sum of rewards                                   (n,)
    point: Annotated[Array, cursor_into("curve")]  # points of the curve that are written   (n,)
    curve: NumberOrNan  # what was earned by its times, nan where it has not come to   (n, P)
    epochs: Next  # K                                                    (n,)
    met: Whole  # states that were visited or seen as successors         (n,)
    visited: Whole  #                                                    (n,)
    unsettled: Whole  # that plans work on                               (n,)
    output: Kept

    def tell(self, now: Clock, memory: Memory) -> None:
        """How much of one seed is known now."""
        met, A = int(memory.used[SLOTS]), memory.visits.shape[1]
        self.epochs[:], self.met[:], self.unsettled[:] = now.epoch, met, memory.used[ROWS]
        self.visited[:] = (memory.visits[:met].sum(-1) > A).sum()


class Met(NamedTuple):
    """A large world, as `ravi.runtime.api` runs learners in it."""

    world: World
    kind: str = "large"
    units: tuple[float, float] = (0.0, 1.0)

    @property
    def name(self) -> str:
        return self.world.name

    @property
    def digest(self) -> str:
        """The digest of its MDP; X and A if it is given by functions, whose values are compared (`_same`)."""
        return self.world.digest or f"X={self.world.states}, A={self.world.actions}"

    @property
    def discount(self) -> float:
        return self.world.discount

    @property
    def sizes(self) -> tuple[int | None, int, int]:
        return self.world.states, self.world.actions, 0

    @property
    def answers(self) -> Any:
        return self.world.source

    def learner(self, given: Learner | str, steps: int) -> Learner:
        """RAVI-UCB or RAVI-UCB+; its name is its id, from which its constants come again."""
        if isinstance(given, Learner):
            if given.walk is not advance:
                raise validation.InputError(
                    f"{given.name} is a learner of tables: in a large world it is named by its id"
                )
            return given
        validation.instance(given, str, "learner", "an id such as 'ravi-ucb,beta=3'")
        rule = rule_of(given, self.world, steps)
        settings: dict[str, Any] = {"eta": rule.eta, "beta": rule.beta, "inner": rule.inner, "fresh": bool(rule.fresh)}
        settings |= {"unvisited": "closed"} if rule.closed else {}

        def init(keys: Array) -> State:
            n, each = len(keys), [empty(self.world.actions) for _ in keys]
            memory = Memory._make(Ragged(parts) for parts in zip(*each, strict=True))
            return State(np.zeros(n, np.int64), np.zeros((n, 2), np.int64), np.zeros(n, np.uint64), memory)

        return Learner(ids.canonical(given), init, _alone, _alone, at_reset(), settings, walk=advance)

    def scores(self, learner: Learner, steps: int, options: Options) -> Scores:
        if options["record"] or options["pad"]:
            what = f"record names {options['record'][0]!r}" if options["record"] else "pad is true"
            raise validation.InputError(
                f"{what}: in a large world what is earned and two policies are recorded, up to T"
            )
        return Scores(None, None, [_recorded(self.world.actions, len(grid(steps, options["points"])))])

    def room(self, learner: Learner, steps: int, options: Options, n: int) -> None:
        require_memory(8 * n * min(options["points"], steps), f"{learner.name} on {self.name}", "seeds or points")

    def begin(self, learner: Learner, keys: Array, measures: Sequence[Measure]) -> Batch:
        one = learner.init(keys[:1]), tuple(measure.init(keys[:1]) for measure in measures)
        require_memory(COPIES * len(keys) * tree.size(one), f"{learner.name} on {self.name}", "seeds or points")
        walkers = Walkers(np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64), keys.copy())
        return Batch(walkers, learner.init(keys), tuple(each.init(keys) for each in measures))

    def size(self, batch: Batch) -> float:
        return tree.size(batch) / len(batch.walkers.key)

    def sound(self, batch: Batch, begun: Batch, learner: Learner, stopped: Run) -> None:
        """Every array is held against what is declared of it, and what is looked up is found."""
        rule = rule_of(learner.name, self.world, stopped.steps)
        for i in range(len(stopped.seeds)):
            _sound(tree.seed(batch, i), tree.seed(begun, i), rule)

    def run(self, tasks: Sequence[Task], batches: Sequence[Batch], device: str) -> list[Batch]:
        """Play on, one seed after the other; what the batch holds is written to."""
        (task,), (batch,) = tasks, batches
        if len(task.measures) > 1:
            raise validation.InputError(
                f"measures: {self.name} is a large world, walked by a loop that no measure sees"
            )
        rule = rule_of(task.learner.name, self.world, task.T)
        for i in range(len(batch.walkers.key)):
            self._one(task, rule, batch, i)
        return [batch]

    def _one(self, task: Task, rule: Rule, batch: Batch, i: int) -> None:
        T, world, (walkers, state, (to,)) = task.T, self.world, tree.seed(batch, i)
        now = Clock(
            walkers.time, state.epoch, np.zeros(1, np.bool_), walkers.state, state.steps[0], to.earned, to.point,
            np.zeros(3),
        )  # fmt: skip
        key, memory, output, curve = walkers.key[0], state.memory, to.output, to.curve[0]
        times, index, pause = grid(T, len(curve)), output_index(key, T), T if task.pause is None else task.pause
        if 0 < now.time[0] < T:
            _same(world, memory, state.answers[0])
        while now.time[0] < T:
            if not now.inside[0] and (now.time[0] >= pause or task.stopped()):
                break
            goal = min(int(now.time[0]) + SLICE, pause, T if output.epoch[0] else index)
            why = advance(world.source, rule, key, now, memory, goal, times, curve)
            if why == NO_ROOM:
                memory = grown(memory)
            elif why != AT_GOAL:
                raise validation.InputError(_mistake(world, why, now))
            elif not output.epoch[0] and now.time[0] >= index:
                output = kept(now.epoch, now.steps[1:], memory)
            if task.tell is not None:
                to.tell(now, memory)
                task.tell([batch])
        for leaf, array in zip([*batch.state.memory, *batch.records[0].output], [*memory, *output], strict=True):
            if isinstance(leaf, Ragged):
                leaf.parts[i] = array
            else:
                leaf[i] = array[0]
        to.tell(now, memory)
        state.answers[:] = hash_of(world, memory.ids[: to.met[0]]) if now.time[0] < T else 0


def _alone(*_: Any) -> Any:
    raise NotImplementedError("the loop of a large world plans and learns itself")


def _recorded(A: int, P: int) -> Measure:
    def init(keys: Array) -> Recorded:
        def whole() -> Array:
            return np.zeros(len(keys), np.int64)

        each = [(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, A))) for _ in keys]
        output = Kept._make([whole(), whole(), *(Ragged(parts) for parts in zip(*each, strict=True))])
        curve = np.full((len(keys), P), np.nan)
        return Recorded(np.zeros(len(keys)), whole(), curve, whole(), whole(), whole(), whole(), output)

    def results(m: Recorded) -> dict[str, Array]:
        known = {"epochs": m.epochs, "met": m.met, "visited": m.visited, "unsettled": m.unsettled}
        return {"reward": m.curve, "reward_total": m.earned} | known

    return Measure("large", init, _alone, results)


def kept(epoch: Array, mirror_steps: Array, memory: Memory) -> Kept:
    """The policy that is played."""
    S, R = int(memory.used[SLOTS]), int(memory.used[ROWS])
    order = np.argsort(memory.ids[:S])
    met, row = memory.ids[:S][order], memory.row[:S][order]
    return Kept(epoch.copy(), mirror_steps.copy(), met, row, memory.policy[:R].copy())


def output_index(key: Any, T: int) -> int:
    """I, uniform on 1, ..., T."""
    return 1 + int(T * uniform(np.uint64(key), 0, OUTPUT))


def _same(world: World, memory: Memory, answers: Any) -> None:
    """Check that the world is the one whose states were met."""
    met = memory.ids[: memory.used[SLOTS]]
    wrong = np.argwhere(rewards_of(world, met) != memory.rewards[: len(met)])
    if len(wrong):
        s, a = (int(part) for part in wrong[0])
        raise validation.InputError(
            f"the stopped run was made with a {world.name} whose reward({met[s]}, {a}) is "
            f"{memory.rewards[s, a]:g}; that of this one is another"
        )
    if hash_of(world, met) != answers:
        raise validation.InputError(
            f"the stopped run was made with a {world.name} of other successors or another initial: "
            f"{world.name} answers otherwise in states that were met"
        )


def _sound(one: Batch, begun: Batch, rule: Rule) -> None:
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
    if not all(_found(getattr(memory, place), used[keys]) for place, keys in TABLES.values()):
        raise validation.InputError("batch.state.memory: states and moves cannot be found in it")
    if state.steps[0, 0] > rule.inner * state.epoch[0]:
        raise validation.InputError(f"batch.state.steps is {state.steps[0, 0]}, more than {state.epoch[0]} epochs make")
    if to.output.mirror_steps[0] > state.steps[0, 0]:
        raise validation.InputError("batch.records: the output policy is of more mirror steps than were made")


def _found(place: Array, keys: Array) -> bool:
    """Whether the hash table is the one of these keys."""
    if len(place) & (len(place) - 1):
        return False
    table = np.zeros_like(place)
    rehash(table, keys, len(keys))
    return np.array_equal(table, place)


def _mistake(world: World, why: int, now: Clock) -> str:
    x, a, value = (float(part) for part in now.bad)
    if why == BAD_START:
        return f"{world.name}: initial gives {x:.0f}, but states are 0 to {world.states - 1}"
    if why == BAD_SUCCESSOR:
        return f"{world.name}: successor({x:.0f}, {a:.0f}, u) gives {value:.0f}; states are 0 to {world.states - 1}"
    assert why == BAD_REWARD
    return f"{world.name}: reward({x:.0f}, {a:.0f}) is {value:g}, not in [0, 1]"


to_run.register(World, Met)
