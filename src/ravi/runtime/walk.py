"""The loop over steps: play a_t, observe y_t, reset with probability 1 - gamma. One compiled loop for all learners.

In episodes a reset follows every step t that their length divides, and in the average reward none does.

The loop is `_walk`. A learner that learns at every step gives it a function `learn` of its own (`walking`).

Step t uses the four numbers of block t: whether a reset follows, the action, the successor, and the state after a
reset. Reset flags are thus the same for every learner under the same key: comparisons are paired.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ravi._jit.functions import bound, compiled, uncounted
from ravi._jit.teams import NEVER, alone, each, first, sync, team
from ravi.core import MDP, Array, Path, Seedwise, Until, Walkers
from ravi.planning.certificates import EPS, miss
from ravi.random import INITIAL, block, uniforms
from ravi.runtime.ranges import PLAYABLE
from ravi.validation import InputError

PARTS, MANY = 8, 512  # of `find`


class World(NamedTuple):
    """The MDP as the walk reads it: cumulative probabilities."""

    successors: Array  # (X, A, B)
    cumulative: Array  # P(first j successors | x, a)    (X, A, B)
    initial: Array  # nu_0(first x states)               (X,)
    restart: float  # 1 - gamma
    episode: int = 0  # its length in steps; 0 without episodes


def world_of(mdp: MDP) -> World:
    cumulative, initial = _cumulative(mdp.transitions), _cumulative(mdp.initial)
    return World(mdp.successors, cumulative, initial, 1 - mdp.discount, mdp.episode or 0)


def _cumulative(probabilities: Array) -> Array:
    """Partial sums that reach 1 exactly at the last entry of positive probability, so that u < 1 finds an entry and
    never one of probability 0."""
    sums = np.cumsum(probabilities, axis=-1)
    positive = probabilities > 0
    after: Array = np.cumsum(positive[..., ::-1], axis=-1)[..., ::-1] - positive  # positive entries beyond this one
    sums[after == 0] = 1.0
    return sums


def start(world: World, keys: Array) -> Walkers:
    """Every seed at its first state x_1 ~ nu_0, before any step."""
    states = np.searchsorted(world.initial, uniforms(keys, 0, INITIAL), side="right").astype(np.int32)
    return Walkers(states, np.zeros(len(keys), np.int64), np.asarray(keys, np.uint64))


def empty_path(n: int, length: int) -> Path:
    """An empty path with room for `length` steps of each seed."""
    state, action, successor, slot = (np.zeros((n, length), np.int32) for _ in range(4))
    reset = np.zeros((n, length), np.bool_)
    lengths, first, after = np.zeros(n, np.int64), np.ones(n, np.int64), np.zeros(n, np.int32)
    return Path(state, action, successor, slot, reset, lengths, first, after)


def padding(horizon: float) -> int:
    """Steps that there is room for beyond T: T+ - T exceeds 50 H with probability below e^-50."""
    return ceil(50 * horizon) + 1


NO_VISITS = np.zeros((0, 0, 0), np.int32)
NO_AGES = np.zeros(0, np.int32)
NONE_AHEAD = np.zeros((1, 1, 4))


@compiled
def find(cumulative, u):  # type: ignore[no-untyped-def]
    """The first j with u < cumulative[j]: in eight parts, without a branch, which would wait for what it reads."""
    low, high = 0, cumulative.shape[0] - 1
    if high < PARTS:
        for j in range(high):
            low += u >= cumulative[j]
        return low
    while high - low >= MANY:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    while high - low >= PARTS:
        size, part = (high - low) // PARTS + 1, 0
        for k in range(1, PARTS):
            part += u >= cumulative[min(low + k * size - 1, high)]
        low, high = low + part * size, min(low + (part + 1) * size - 1, high)
    for j in range(low, high):
        low += u >= cumulative[j]
    return low


@compiled
def draw(probabilities, u):  # type: ignore[no-untyped-def]
    """An action of these probabilities. What rounding leaves goes to the last one of positive probability."""
    a, mass = 0, 0.0
    for b in range(probabilities.shape[0]):
        p = probabilities[b]
        if p > 0.0 and u >= mass:
            a = b
        mass += p
    return a


def _walk(  # type: ignore[no-untyped-def]
    low, high, world, policy, walkers, path, over, reset_ends, deadline, visits, ages, T, ahead, written, learning, own
):
    """Seeds low, ..., high - 1. Steps follow one another, and are one thread's; of several, all draw its numbers ahead,
    into `ahead` (teams, as many, 4). written: what of the path is (`Recorder.reads`)."""
    successors, cumulative, initial, restart, episode = world
    state, time, key = walkers
    xs, actions, ys, slots, resets, lengths, firsts, after = path
    longest, k = xs.shape[1], team()
    counted, staged, last = visits.shape[0] > 0, ages.shape[0] > 0, policy.shape[1] - 1
    unfinished, ended = 0, 0
    for seed in range(low, high):
        i = np.uint32(seed)  # unsigned: no test for negative indices
        if first():
            firsts[i], lengths[i], after[i] = time[i] + 1, 0, state[i]
        sync()
        going = over[i] == 0
        while going:
            if not alone():
                for b in each(ahead.shape[1]):
                    ahead[k, b, 0], ahead[k, b, 1], ahead[k, b, 2], ahead[k, b, 3] = block(key[i], time[i] + 1 + b, 0)
                sync()
            if first():
                length, age, stage, done, drawn = lengths[i], 0, 0, False, 0
                until = longest if alone() else min(longest, length + ahead.shape[1])
                if staged:
                    age = ages[i]
                    stage = min(age, last)
                x, t, most, word = state[i], time[i], deadline[i], key[i]
                while not done and length < until:
                    t += 1
                    if alone():
                        u_reset, u_action, u_successor, u_initial = block(word, t, 0)
                    else:
                        u_reset, u_action = ahead[k, drawn, 0], ahead[k, drawn, 1]
                        u_successor, u_initial = ahead[k, drawn, 2], ahead[k, drawn, 3]
                        drawn += 1
                    a = draw(policy[i, stage, x], u_action)
                    slot = find(cumulative[x, a], u_successor)
                    y = successors[x, a, slot]
                    reset = u_reset < restart or (episode > 0 and t % episode == 0)
                    if written > 0:
                        xs[i, length], actions[i, length] = x, a
                    if written > 1:
                        ys[i, length], slots[i, length], resets[i, length] = y, slot, reset
                    length += 1
                    if staged:
                        age = 0 if reset else age + 1
                        stage = min(age, last)
                    if counted:
                        visits[i, x, a] -= 1
                        if visits[i, x, a] <= 0:
                            done = True
                    to = np.int32(find(initial, u_initial)) if reset else y
                    if learning and learn(own, i, t, x, a, y, slot, reset, to):
                        done = True
                    x = to
                    if (reset and reset_ends) or t >= most:
                        done = True
                state[i], time[i], after[i], lengths[i] = x, t, x, length
                if done:
                    over[i] = 1
                if staged:
                    ages[i] = age
            sync()
            going = over[i] == 0 and lengths[i] < longest
        unfinished += over[i] == 0
        ended += lengths[i] > 0 and time[i] >= T
    return unfinished, ended


@compiled
def learn(own, i, t, x, a, y, slot, reset, after):  # type: ignore[no-untyped-def]
    """What a learner that learns from paths does at a step: nothing."""
    return False


def steps_with(learn: Callable[..., Any]) -> Callable[..., Any]:
    """The loop over steps with this `learn` (see `walking`), compiled."""
    return bound(_walk, learn=learn)


@dataclass(frozen=True, eq=False)
class Walking:
    """The walk of a learner that learns at every step; made by `walking`."""

    learn: Callable[..., Any]
    own: Callable[[Any, Walkers], tuple[Any, ...]]
    loop: Callable[..., Any]

    def __call__(
        self, world: World, state: Any, walkers: Walkers, path: Path, over: Array, until: Until, steps: int
    ) -> tuple[int, int]:
        """Walk every seed that is not `over` until it is, or until its path is full; all in place. How many are not
        over then, and how many came to their last step T. `until` has a deadline.

        A policy (n, X, A) is stationary. One of (n, S, X, A) has a stage for every age, the steps since the last reset;
        the last serves for all later ages. Its state holds `age` (n,), which is written here.
        """
        visits = NO_VISITS if until.visits is None else until.visits
        policy, ages = (state.policy, state.age) if state.policy.ndim == 4 else (state.policy[:, None], NO_AGES)
        done: tuple[int, int] = self.loop(
            0, len(over), tuple(world), policy, tuple(walkers), tuple(path), over, until.reset, until.deadline, visits,
            ages, steps, NONE_AHEAD, 2, True, self.own(state, walkers),
        )  # fmt: skip
        return done


def walking(learn: Callable[..., Any], own: Callable[[Any, Walkers], tuple[Any, ...]]) -> Walking:
    """The walk of a learner that learns at every step, for `Learner.walk`; a stream calls its `learn` step by step.

    Parameters
    ----------
    learn
        A compiled function (own, i, t, x, a, y, slot, reset, after) -> bool: what seed i learns from step t, in place,
        and whether the epoch ends with it, which it must where the policy is another one. after: x_{t+1}.
    own
        (state, walkers) -> the arrays and numbers that `learn` is given as `own`.
    """
    return Walking(learn, own, uncounted(steps_with(learn)))


def keep(state: Any, path: Path) -> Any:
    """ADD of a learner whose walk has learned already. A stream need not call it at every plan."""
    return state


walk = walking(learn, lambda state, walkers: ())  # of all others


@compiled
def _no_plan(own, i, t):  # type: ignore[no-untyped-def]
    """The plan of one seed where all seeds plan together: nothing."""
    return NEVER


JOINT = Seedwise(_no_plan, learn, lambda state, teams: (), joint=True)


# Policies as they are played.

TYPES = "fdbBhHiIlLqQ?"  # float32, float64 and whole numbers, as NumPy codes them


def normalised(policy: Array) -> Array:
    """The policy that is played by rows (..., A); the rows themselves where only rounding keeps them from one."""
    rows = np.ascontiguousarray(policy, dtype=np.float64)
    A = rows.shape[-1]
    if miss(rows) <= EPS * A:
        return rows
    drawn = np.empty_like(rows)
    for row, found in zip(rows.reshape(-1, A), drawn.reshape(-1, A), strict=True):
        normalise_row(row, found)
    return drawn


@compiled
def normalise_row(row, drawn):  # type: ignore[no-untyped-def]
    A = row.shape[0]
    total, last = 0.0, 0
    for b in range(A):
        total += row[b]
        drawn[b] = row[b]
        if row[b] > 0.0:
            last = b
    if abs(total - 1.0) > EPS * A:
        mass = 0.0
        for b in range(last + 1):
            below = min(mass, 1.0)
            mass += row[b]
            drawn[b] = (min(mass, 1.0) if b < last else 1.0) - below


def check_policies(name: str, policy: Array, keys: Array, over: Array) -> None:
    """An error where rows (n, X, A) or (n, S, X, A) of a learner, of the seeds that are not over, are no policy."""
    if policy.dtype.char not in TYPES:
        raise InputError(f"{name} has a policy of {policy.dtype}; it must be of float64 or float32")
    rows = policy if policy.ndim == 3 else policy.reshape(len(keys), -1, policy.shape[-1])
    i, place = _no_policy(rows, over)
    if i < 0:
        return
    row, (stage, x) = rows[i, place].astype(np.float64), divmod(place, policy.shape[-2])
    wrong = "has a negative probability" if (row < 0).any() else f"sums to {row.sum():.10g}, not 1"
    raise InputError(
        f"{name} planned what is no policy: seed {int(keys[i])}, state {x}{f' at age {stage}' * (policy.ndim == 4)}: "
        f"the row {np.array2string(row, threshold=8)} {wrong} (to within {PLAYABLE:g})"
    )


@compiled
def _no_policy(rows, over):  # type: ignore[no-untyped-def]
    """The first seed and the first of its rows that is no distribution; -1 where all are."""
    n, N, A = rows.shape
    for i in range(n):
        if over[i] == 0:
            for k in range(N):
                mass, least = 0.0, 0.0
                for b in range(A):
                    p = np.float64(rows[i, k, b])
                    mass += p
                    least = min(least, p)
                if not (abs(mass - 1.0) <= PLAYABLE and least >= 0.0):  # a nan neither
                    return i, k
    return -1, -1
