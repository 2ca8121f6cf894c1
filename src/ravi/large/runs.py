"""What does a run in a large world give? `Large`: what was earned, two policies, and where it stands.

All that a run carries on is one tree of arrays (`Batch`): it is what a file holds, and what `resume` goes on from. A
world of functions is not in the file. It is given again, and its answers in the states that were met are compared: all
rewards, and a hash of successors and starts at a few draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ravi import checks, files, ids, tree
from ravi.compiled import compiled
from ravi.core import MDP, Array
from ravi.curve import grid, passed
from ravi.large.memory import NONE, ROWS, SLOTS, Memory, empty, mixed
from ravi.large.playing import Clock, Rule, bonus, clock, cut, mirror_rows, tilted
from ravi.large.rules import rule_of
from ravi.large.worlds import World, of_mdp, reward_of, start_of, successor_of
from ravi.random import OUTPUT, uniform
from ravi.ranges import Facts, Next, NumberOrNan, Place, Policy, Whole

KIND = "large"  # of the file
UNVISITED = ("iterated", "closed")  # how states that are met late are filled in
STARTS, MOVES_EACH = 1000, 8  # draws at which functions are compared: of starts, and of successors of each pair
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, fill [0, 1) evenly


class Kept(NamedTuple):
    """The policy of an epoch, as arrays; epoch 0 where there is none yet."""

    epoch: Next  # k                                                  (1,)
    mirror_steps: Whole  # that an unvisited state has made           (1,)
    met: Place  # states that were met, ascending                     (S,)
    row: Array  # the row of each, or -1: pi_0                        (S,)
    policy: Policy  # pi_k                                            (R, A)

    def agrees(self, facts: Facts) -> dict[str, Array | bool]:
        return {
            "every state that was met has a row, or none": len(self.met) == len(self.row),
            "states ascend": self.met[1:] > self.met[:-1],
            "row leads to rows": (self.row >= NONE) & (self.row < len(self.policy)),
        }


class Batch(NamedTuple):
    """All that a run carries from one epoch to the next."""

    clock: Clock
    memory: Memory
    curve: NumberOrNan  # what was earned by the times of the curve, nan where it has not come to   (P,)
    output: Kept

    def agrees(self, facts: Facts) -> dict[str, Array | bool]:
        times, now = grid(facts.steps, len(self.curve)), self.clock
        return {
            "the point is the first time that is still to come": now.point == passed(times, now.time),
            "the curve goes to the point": np.isnan(self.curve) == (times > now.time),
            "the output policy is of an epoch that was played": self.output.epoch <= now.epoch,
            "it has made as many mirror steps, at most": self.output.mirror_steps <= now.steps[0],
            "no shadow is ahead": self.memory.shadow_steps <= now.steps[0],
        }


def begun(world: World, times: Array) -> Batch:
    """Nothing played yet."""
    whole = np.zeros(1, np.int64)
    none = Kept(whole, whole.copy(), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, world.actions)))
    return Batch(clock(), empty(world.actions), np.full(len(times), np.nan), none)


def kept(now: Clock, memory: Memory) -> Kept:
    """The policy that is played."""
    S, R = int(memory.used[SLOTS]), int(memory.used[ROWS])
    order = np.argsort(memory.ids[:S])
    met, row = memory.ids[:S][order], memory.row[:S][order]
    return Kept(now.epoch.copy(), now.steps[1:].copy(), met, row, memory.policy[:R].copy())


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """A policy: rows of the states that have one of their own, and the rule for all others."""

    world: World
    rule: Rule
    epoch: int  # k
    mirror_steps: int  # that an unvisited state has made
    met: Array  # states that were met, ascending                     (S,)
    row: Array  # the row of each, or -1: pi_0                        (S,)
    policy: Array  # pi_k                                             (R, A)

    def rows(self, states: Any) -> Array:
        """pi_k(. | x) of these states   (n, A)."""
        x = np.atleast_1d(np.asarray(states, np.int64))
        if len(x) and not (x.min() >= 0 and x.max() < self.world.states):
            raise checks.InputError(f"states are 0 to {self.world.states - 1}, not {x.min()} to {x.max()}")
        out = np.full((len(x), self.world.actions), 1 / self.world.actions)
        at, known = np.searchsorted(self.met, x), np.isin(x, self.met)
        own = np.nonzero(known)[0]
        own = own[self.row[at[own]] != NONE]
        out[own] = self.policy[self.row[at[own]]]
        if not known.all():
            out[~known] = _unvisited(self.world, self.rule, x[~known], self.mirror_steps)
        return out

    def table(self) -> Array:
        """pi_k of every state   (X, A)."""
        return self.rows(np.arange(self.world.states))

    def return_of(self, mdp: MDP | None = None, tol: float = 1e-10) -> float:
        """rho(pi_k), exactly to (1 - gamma) tol, in the MDP of this world, or in one that is given."""
        from ravi.planning.evaluation import return_of

        mdp = self.world.mdp if mdp is None else mdp
        if mdp is None:
            raise checks.InputError(f"{self.world.name} is given by functions: a return needs its MDP")
        return float(return_of(mdp, self.table(), tol))

    def __repr__(self) -> str:
        return f"<Snapshot of epoch {self.epoch}: {len(self.policy):,} rows, X={self.world.states:,}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Large:
    world: World
    learner: str
    settings: dict[str, Any]
    steps: int  # T
    seed: int
    options: dict[str, Any]  # how `run_large` was called
    seconds: float
    versions: dict[str, str]
    batch: Batch  # where it stands: what `resume` goes on from
    answers: str = ""  # of the functions of its world, in a run from a file

    @property
    def plays(self) -> int:
        """How many of the T plays it has made."""
        return int(self.batch.clock.time[0])

    @property
    def complete(self) -> bool:
        return self.plays == self.steps

    @property
    def epochs(self) -> int:
        return int(self.batch.clock.epoch[0])

    @property
    def earned(self) -> float:
        """sum of r(x_t, a_t), so far."""
        return float(self.batch.clock.earned[0])

    @property
    def times(self) -> Array:
        """The times of the curve   (P,)."""
        return grid(self.steps, self.options["points"])

    @property
    def reward(self) -> Array:
        """What was earned by then; nan where a stopped run has not come to   (P,)."""
        return self.batch.curve

    @property
    def output_index(self) -> int:
        """I, uniform on 1, ..., T."""
        return index_of(self.seed, self.steps)

    @cached_property
    def rule(self) -> Rule:
        return rule_of(self.learner, self.world, self.steps, self.options["unvisited"] == "closed")

    @cached_property
    def last(self) -> Snapshot:
        """The policy of the last epoch."""
        return self._snapshot(kept(self.batch.clock, self.batch.memory))

    @property
    def output(self) -> Snapshot:
        """The policy of play I: its expected gap is regret / T."""
        if not self.batch.output.epoch[0]:
            raise checks.InputError(
                f"the output policy is that of play {self.output_index:,}, and the run was stopped after {self.plays:,}"
            )
        return self._snapshot(self.batch.output)

    def _snapshot(self, of: Kept) -> Snapshot:
        return Snapshot(self.world, self.rule, int(of.epoch[0]), int(of.mirror_steps[0]), *of[2:])

    @property
    def met(self) -> int:
        """States that were visited or seen as successors."""
        return int(self.batch.memory.used[SLOTS])

    @property
    def visited(self) -> int:
        return int((self.batch.memory.visits[: self.met].sum(-1) > self.world.actions).sum())

    @property
    def unsettled(self) -> int:
        """States that plans work on."""
        return int(self.batch.memory.used[ROWS])

    @property
    def nbytes(self) -> int:
        """Of all that the learner keeps."""
        return self.batch.memory.nbytes

    def save(self, path: files.Place) -> None:
        """Write the run to one file (a path, or an open one), from which it can be read and resumed."""
        w = self.world
        header = {
            "world": {"name": w.name, "states": w.states, "actions": w.actions, "discount": w.discount},
            "digest": w.digest, "learner": self.learner, "settings": self.settings, "steps": self.steps,
            "seed": self.seed, "options": self.options, "seconds": self.seconds, "versions": self.versions,
            "answers": _answers(self, w),
        }  # fmt: skip
        files.write(path, KIND, header, dict(tree.leaves(self.batch)))

    @staticmethod
    def load(path: files.Place, world: World | MDP | str | None = None) -> Large:
        """Read a run. Without its world, policies of states that were never met cannot be had, all else can."""
        from ravi.large.loading import load

        return load(path, world)

    def __repr__(self) -> str:
        state = "" if self.complete else f", stopped after {self.plays:,}"
        return (
            f"<Large {self.learner} on {self.world.name}, X={self.world.states:,}: {self.steps:,} plays{state}, earned "
            f"{self.earned:.6g}; met {self.met:,}, visited {self.visited:,}, plans on {self.unsettled:,} states; "
            f"{self.nbytes / 1e6:.1f} MB, {self.seconds:.1f} s>"
        )


def index_of(key: int, T: int) -> int:
    """I, uniform on 1, ..., T."""
    return 1 + int(T * uniform(np.uint64(key), 0, OUTPUT))


def settings_of(rule: Rule) -> dict[str, Any]:
    return {"eta": rule.eta, "beta": rule.beta, "inner": rule.inner, "fresh": bool(rule.fresh)}


def world_named(world: World | MDP | str) -> World:
    """A world as it is, or that of an MDP or of its id."""
    if isinstance(world, World):
        return world
    made = ids.mdp(world) if isinstance(world, str) else world
    if not isinstance(made, MDP):
        raise checks.InputError(f"the world is {made!r}: it must be one of ravi.large, an MDP or the id of one")
    return of_mdp(made)


def in_world(run: Large, world: World | MDP | str) -> Large:
    """The run in the world that it was made in, which is given again."""
    given = world_named(world)
    for what, was, now in (
        ("world", run.world.name, given.name),
        ("X", run.world.states, given.states),
        ("A", run.world.actions, given.actions),
        ("discount", run.world.discount, given.discount),
        ("an MDP of digest", run.world.digest or "none", given.digest or "none"),
    ):
        if was != now:
            raise checks.InputError(f"the stopped run was made with {what} {was}, not {now}")
    memory, S = run.batch.memory, run.met
    if S:
        wrong = np.argwhere(_rewards(given.source, memory.ids[:S], given.actions) != memory.rewards[:S])
        if len(wrong):
            s, a = (int(part) for part in wrong[0])
            raise checks.InputError(
                f"the stopped run was made with a {given.name} whose reward({memory.ids[s]}, {a}) is "
                f"{memory.rewards[s, a]:g}; that of this one is another"
            )
    if _answers(run, run.world) != _answers(run, given):
        raise checks.InputError(
            f"the stopped run was made with a {given.name} of other successors or another initial: "
            f"{given.name} answers otherwise in states that were met"
        )
    return replace(run, world=given, answers="")


def _answers(run: Large, world: World) -> str:
    """A hash of what functions say of successors in the states that were met, and of starts; nothing for an MDP."""
    if world.digest:
        return ""
    if world.source is None:
        return run.answers
    return f"{int(_probed(world.source, run.batch.memory.ids[: run.met], world.actions)):016x}"


def _unvisited(world: World, rule: Rule, states: Array, steps: int) -> Array:
    """The policy of states that were never met, after so many mirror steps with q   (n, A)."""
    if world.source is None:
        raise checks.InputError(f"state {int(states[0])} was never met: its policy needs the world {world.name}")
    q = _unplayed(world.source, rule, states, world.actions)
    distinct, which = np.unique(q, axis=0, return_inverse=True)
    log_policy = np.full(distinct.shape, np.log(1 / world.actions))
    policy = np.full(distinct.shape, 1 / world.actions)
    if rule.closed:
        _tilted(distinct, rule.eta, steps, log_policy, policy)
    else:
        moves = np.ascontiguousarray(distinct[distinct.min(-1) < distinct.max(-1)])
        log_moved, moved = np.full(moves.shape, np.log(1 / world.actions)), np.full(moves.shape, 1 / world.actions)
        for _ in range(steps if len(moves) else 0):
            mirror_rows(log_moved, moved, moves, rule.eta)
        policy[distinct.min(-1) < distinct.max(-1)] = moved
    return policy[which.reshape(-1)]


@compiled
def _rewards(source, states, actions):  # type: ignore[no-untyped-def]
    r = np.empty((states.shape[0], actions))
    for i in range(states.shape[0]):
        for a in range(actions):
            r[i, a] = reward_of(source, states[i], np.int64(a))
    return r


@compiled
def _probed(source, states, actions):  # type: ignore[no-untyped-def]
    """A hash of starts, and of successors of every pair, at draws that no two pairs share."""
    word, n = np.uint64(0), 0
    for k in range(STARTS):
        word = mixed(word ^ np.uint64(start_of(source, (k + 1) * GOLDEN % 1.0)))
    for i in range(states.shape[0]):
        for a in range(actions):
            for _ in range(MOVES_EACH):
                n += 1
                word = mixed(word ^ np.uint64(successor_of(source, states[i], np.int64(a), n * GOLDEN % 1.0)))
    return word


@compiled
def _unplayed(source, rule, states, actions):  # type: ignore[no-untyped-def]
    """q of these states."""
    q = np.empty((states.shape[0], actions))
    for i in range(states.shape[0]):
        for a in range(actions):
            q[i, a] = cut(rule, reward_of(source, states[i], np.int64(a)) + bonus(rule, 1))
    return q


@compiled
def _tilted(q, eta, steps, log_policy, policy):  # type: ignore[no-untyped-def]
    for i in range(q.shape[0]):
        if q[i].min() < q[i].max():
            tilted(q[i], eta, steps, log_policy[i], policy[i])
