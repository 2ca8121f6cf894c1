"""How is a run made where X is large? `run_large`: the stream of `ravi.run`, and what it costs is what was met.

Under the same key and the same id, `run_large` plays the plays of `ravi.run`: the same numbers, the same policies (bit
for bit, unless unvisited states are filled in by the closed form), the same rewards. It does not score every epoch;
it keeps two policies, the last one and the output policy of a uniform time, whose exact returns can be asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi import checks, ids
from ravi.compiled import compiled
from ravi.core import MDP, Array
from ravi.large.memory import NONE, ROWS, SLOTS, Memory, empty, grown
from ravi.large.playing import (
    AT_GOAL,
    BAD_REWARD,
    BAD_START,
    BAD_SUCCESSOR,
    NO_ROOM,
    Clock,
    Rule,
    advance,
    bonus,
    clock,
    cut,
    mirror_rows,
    tilted,
)
from ravi.large.worlds import World, of_mdp, reward_of
from ravi.measures.curve import grid
from ravi.random import OUTPUT, uniform
from ravi.theory import constants
from ravi.theory import tabular as of_tables

SLICE = 2**17  # plays between which Ctrl-C is heard
LEARNERS = ("ravi-ucb", "ravi-ucb+")
NEED_ALL = ("centre", "span", "clip")  # parts of RAVI-UCB+ that ask for the least and the largest V of all states
UNVISITED = ("iterated", "closed")


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
        at = np.minimum(np.searchsorted(self.met, x), len(self.met) - 1)
        known = self.met[at] == x
        own = known & (self.row[at] != NONE)
        out[own] = self.policy[self.row[at[own]]]
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


@dataclass(frozen=True, eq=False, repr=False)
class Large:
    """What a run in a large world gives."""

    world: World
    learner: str
    settings: dict[str, Any]
    steps: int
    seed: int
    epochs: int
    earned: float  # sum of r(x_t, a_t)
    times: Array  # t                                                 (P,)
    reward: Array  # what was earned by then                          (P,)
    output_index: int  # I, uniform on 1, ..., T
    last: Snapshot  # the policy of the last epoch
    output: Snapshot  # the policy of play I: its expected gap is regret / T
    met: int  # states that were visited or seen as successors
    visited: int
    unsettled: int  # states that plans work on
    nbytes: int  # of all that the learner keeps
    seconds: float

    def __repr__(self) -> str:
        return (
            f"<Large {self.learner} on {self.world.name}, X={self.world.states:,}: {self.steps:,} plays, earned "
            f"{self.earned:.6g}; met {self.met:,}, visited {self.visited:,}, plans on {self.unsettled:,} states; "
            f"{self.nbytes / 1e6:.1f} MB, {self.seconds:.1f} s>"
        )


def run_large(
    world: World | MDP | str,
    steps: int,
    seed: int = 0,
    *,
    learner: str = "ravi-ucb",
    unvisited: str = "iterated",
    points: int = 500,
) -> Large:
    """Play `steps` plays of a learner in a world, an MDP or the id of one.

    learner: an id of ravi-ucb, or of ravi-ucb+ with centre=off,span=off,clip=off. unvisited: how states that are met
    late are filled in, "iterated" (the bits of `ravi.run`; O(k A) for each distinct row of rewards) or "closed" (O(A),
    and the policy to rounding).
    """
    world = of_mdp(ids.mdp(world) if isinstance(world, str) else world) if not isinstance(world, World) else world
    T, key = checks.steps(steps), checks.whole(seed, "seed", 0, 2**63 - 1)
    checks.one_of(unvisited, UNVISITED, "unvisited")
    rule = _rule(learner, world, T, unvisited == "closed")
    index = 1 + int(T * uniform(np.uint64(key), 0, OUTPUT))
    times = grid(T, checks.whole(points, "points"))
    curve, now, memory, output = np.full(len(times), np.nan), clock(), empty(world.actions), None
    began = time.perf_counter()
    while now.time[0] < T or now.inside[0]:
        goal = min(T, int(now.time[0]) + SLICE, index if output is None else T)
        why = advance(world.source, rule, np.uint64(key), now, memory, goal, times, curve)
        if why == NO_ROOM:
            memory = grown(memory)
        elif why != AT_GOAL:
            raise checks.InputError(_mistake(world, why, now))
        elif output is None and now.time[0] >= index:
            output = _snapshot(world, rule, now, memory)
    seconds = time.perf_counter() - began
    assert output is not None
    S, A = int(memory.used[SLOTS]), world.actions
    return Large(
        world=world,
        learner=ids.canonical(learner),
        settings={"eta": rule.eta, "beta": rule.beta, "inner": rule.inner, "fresh": bool(rule.fresh)},
        steps=T,
        seed=key,
        epochs=int(now.epoch[0]),
        earned=float(now.earned[0]),
        times=times,
        reward=curve,
        output_index=index,
        last=_snapshot(world, rule, now, memory),
        output=output,
        met=S,
        visited=int((memory.visits[:S].sum(-1) > A).sum()),
        unsettled=int(memory.used[ROWS]),
        nbytes=memory.nbytes,
        seconds=seconds,
    )


def _rule(learner: str, world: World, T: int, closed: bool) -> Rule:
    """The constants of the learner, as `ravi.learners.ravi_ucb` and `ravi_ucb_plus` set them."""
    name = ids.canonical(learner).split(",")[0]
    if name not in LEARNERS:
        raise checks.InputError(f"run_large runs {' and '.join(LEARNERS)}, not {name!r}")
    given = ids.learner_options(learner)
    H, X, A = world.horizon, world.states, world.actions
    delta, scale = checks.delta(given["delta"], T), checks.nonnegative(given["scale"], "scale")
    if name == "ravi-ucb":
        beta = constants.beta_tabular(H, X, A, T, delta) if given["beta"] is None else given["beta"]
        published = constants.eta(H, A, T)
        start = checks.finite(given.get("initial_value", 0.0), "initial_value")
        V0 = float(checks.between(start, 0, H, "initial_value"))
        beta = checks.nonnegative(beta, "beta") * scale
        inner, fresh, pick, factor = 1, False, False, 1.0
    else:
        _without(given)
        on = {part: checks.one_of(given[part], ("on", "off"), part) == "on" for part in ("fresh", "gamma", "balance")}
        inner = constants.inner_steps(H) if given["inner"] is None else checks.whole(given["inner"], "inner")
        whole = constants.beta_tabular_l1(H, X, A, T, delta)
        factor = world.discount if on["gamma"] else 1.0
        S = of_tables.clipped_bonus_sum(H, X, A, T, factor * whole) if on["balance"] else 0.0
        published = constants.eta_balanced(H, A, T, S, inner)
        beta, V0 = scale * whole, 0.0
        fresh = on["fresh"]
        pick = checks.one_of(given["pick"], ("uniform", "last"), "pick") == "uniform"
    eta = checks.step_size(given["eta"], given["step_scale"], published)
    return Rule(X, T, world.discount, H, eta, float(beta), factor, inner, fresh, pick, V0, closed)


def _without(given: dict[str, Any]) -> None:
    on = [part for part in NEED_ALL if given[part] != "off"]
    if on:
        raise checks.InputError(
            f"ravi-ucb+ in a large world needs {','.join(f'{part}=off' for part in on)}: "
            "these parts ask for the least and the largest V of all states, also of those never met"
        )


def _mistake(world: World, why: int, now: Clock) -> str:
    x, a, value = (float(part) for part in now.bad)
    if why == BAD_START:
        return f"{world.name}: initial gives {x:.0f}, but states are 0 to {world.states - 1}"
    if why == BAD_SUCCESSOR:
        return f"{world.name}: successor({x:.0f}, {a:.0f}, u) gives {value:.0f}; states are 0 to {world.states - 1}"
    assert why == BAD_REWARD
    return f"{world.name}: reward({x:.0f}, {a:.0f}) is {value:g}, not in [0, 1]"


def _snapshot(world: World, rule: Rule, now: Clock, memory: Memory) -> Snapshot:
    S, R = int(memory.used[SLOTS]), int(memory.used[ROWS])
    order = np.argsort(memory.ids[:S])
    met, row = memory.ids[:S][order], memory.row[:S][order]
    return Snapshot(world, rule, int(now.epoch[0]), int(now.steps[1]), met, row, memory.policy[:R].copy())


def _unvisited(world: World, rule: Rule, states: Array, steps: int) -> Array:
    """The policy of states that were never met, after so many mirror steps with q   (n, A)."""
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
