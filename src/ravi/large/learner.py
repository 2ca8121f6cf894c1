"""Tabular RAVI-UCB and RAVI-UCB+ on the states that were met: constants, plan and step, with the bits of a table.

A pair that was never played has N = 1 and an empty row of P_hat, so that

    Q(x, a) = q(x, a) = Pi_H[r(x, a) + CB(1)]        at every backup, whatever V is:

a state without visits depends on nothing but its own rewards. After g mirror steps with q,

    pi(a|x) ~ pi_0(a|x) exp(g eta q(x, a)),    V(x) = (1/eta) log (sum pi_0 exp(g eta q) / sum pi_0 exp((g-1) eta q)),

so a state that is first met late is filled in: by the closed form, or step by step, with the bits that a table would
hold; then the steps are made once for each distinct row q, by its *shadow*, which is moved on when it is asked for.

Where q is the same for all actions the row stays constant and pi = pi_0. It stays so while plays only lead to pairs
with r + CB(N) >= H, since P_hat V >= 0 and Q is cut at H. Such a state is *settled*: V = q, nothing is computed, and
nothing is kept but its counts. So a plan costs what is known, not what was met, and that much less than X.

The loop over epochs is `advance`, called by the compiled driver (`ravi.runtime.compiled.advance`) in place of its own,
because memory grows in the middle of an epoch, and compiled code cannot replace an array by a larger one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.large.memory import MOVES, NONE, ROWS, SHADOWS, SLOTS, bucket_of, bucket_of_row, is_short
from ravi.large.sources import reward_of, start_of, successor_of
from ravi.learners.options import Options
from ravi.learners.ravi_ucb.ravi_ucb import radius, theorem_step
from ravi.planning.mirror import step_in_place
from ravi.random import PICK, block, uniform
from ravi.runtime.walk import draw
from ravi.theory import constants
from ravi.theory import tabular as of_tables

LEARNERS = ("ravi-ucb", "ravi-ucb+")
NEED_ALL = ("centre", "span", "clip")  # parts of RAVI-UCB+ that ask for the least and the largest V of all states
AT_GOAL, NO_ROOM, BAD_REWARD, BAD_SUCCESSOR, BAD_START = 0, 1, 2, 3, 4  # why `advance` came back


class Rule(NamedTuple):
    """The constants of RAVI-UCB and RAVI-UCB+, as compiled code reads them."""

    states: int  # X
    steps: int  # T
    gamma: float
    H: float
    eta: float
    beta: float
    factor: float  # CB = factor * beta / sqrt(N)
    inner: int  # M
    fresh: bool  # Q is made before the mirror step, not after it
    pick: bool  # which of the M policies is played is drawn, else the last one
    V0: float
    closed: bool  # unvisited states by the closed form


def rule_of(learner: str, world: Any, T: int) -> Rule:
    """The constants of the learner of an id, as `ravi.learners.ravi_ucb` sets them."""
    name = learner.split(",")[0]  # may be what a file says: only these are looked up
    if name not in LEARNERS:
        raise validation.InputError(f"a large world has {' and '.join(LEARNERS)}, not {name!r}")
    options = ids.learner_options(learner)
    if name == "ravi-ucb" and options.pop("span") is not None:
        raise validation.InputError("span is given, and it is for the average reward: a large world has a discount")
    o = Options(**options).checked(T)
    H, closed = world.horizon, world.unvisited == "closed"
    if name == "ravi-ucb":
        V0 = float(validation.between(validation.finite(o.initial_value, "initial_value"), 0, H, "initial_value"))
        eta, beta = theorem_step(o, world, T), radius(o, world, T)  # which ask for H, X and A
        return Rule(world.states, T, world.discount, H, eta, beta, 1.0, 1, False, False, V0, closed)
    on = [part for part in NEED_ALL if getattr(o, part) != "off"]
    if on:
        raise validation.InputError(
            f"ravi-ucb+ in a large world needs {','.join(f'{part}=off' for part in on)}: "
            "these parts ask for the least and the largest V of all states, also of those never met"
        )
    inner = constants.inner_steps(H) if o.inner is None else o.inner
    beta = constants.beta_tabular_l1(H, world.states, world.actions, T, o.delta)
    factor = world.discount if o.gamma == "on" else 1.0
    S = of_tables.clipped_bonus_sum(H, world.states, world.actions, T, factor * beta) if o.balance == "on" else 0.0
    eta = o.step(constants.eta_balanced(H, world.actions, T, S, inner))
    return Rule(
        world.states, T, world.discount, H, eta, o.scale * beta, factor, inner, o.fresh == "on", o.pick == "uniform",
        0.0, closed,
    )  # fmt: skip


class Clock(NamedTuple):
    """Where a seed is in its run: views of the run's arrays, written in place."""

    time: Array  # steps made                                         (1,)
    epoch: Array  # k                                                 (1,)
    inside: Array  # whether the epoch goes on                        (1,)
    state: Array  # x to act in                                       (1,)
    steps: Array  # mirror steps with q that an unvisited state has made, the last and the played one   (2,)
    earned: Array  # sum of rewards                                   (1,)
    point: Array  # points of the curve that are written              (1,)
    curve: Array  # what was earned by its times                      (P,)
    bad: Array  # x, a and what was answered, where that is no answer (3,)


@compiled
def bonus(rule, visits):  # type: ignore[no-untyped-def]
    return rule.factor * ((1.0 / np.sqrt(np.float64(visits))) * rule.beta)


@compiled
def cut(rule, q):  # type: ignore[no-untyped-def]
    return max(min(q, rule.H), 0.0)


@compiled
def tilt(q, eta, steps, log_policy, policy):  # type: ignore[no-untyped-def]
    """pi_0 exp(steps eta q), normalised, in place; pi_0 is uniform."""
    top, total = q.max(), 0.0
    for a in range(q.shape[0]):
        log_policy[a] = steps * eta * (q[a] - top)
        total += math.exp(log_policy[a])
    for a in range(q.shape[0]):
        log_policy[a] -= math.log(total)
        policy[a] = math.exp(log_policy[a])


@compiled
def mirror_rows(log_policy, policy, Q, eta):  # type: ignore[no-untyped-def]
    """`mirror_step` on rows (R, A), in place; V (R,)."""
    shape, V = (1, *Q.shape), np.empty((1, Q.shape[0]))
    step_in_place(0, 1, log_policy.reshape(shape), policy.reshape(shape), Q.reshape(shape), np.full(1, eta), V)
    return V[0]


@compiled
def _shadow(rule, steps, m, q):  # type: ignore[no-untyped-def]
    """The shadow of unvisited states with this q, brought to the steps that they have made."""
    A = q.shape[0]
    i = bucket_of_row(m.shadow_place, m.shadow_Q, q)
    if m.shadow_place[i] == 0:
        g = m.used[SHADOWS]
        m.used[SHADOWS] += 1
        m.shadow_place[i] = g + 1
        m.shadow_Q[g] = q
        m.shadow_log_policy[g] = math.log(1.0 / A)
        m.shadow_last[g] = 1.0 / A
        m.shadow_policy[g] = 1.0 / A
        m.shadow_V[g] = rule.V0
        m.shadow_steps[g] = 0
    g = m.shadow_place[i] - 1
    row = slice(g, g + 1)
    for step in range(m.shadow_steps[g] + 1, steps[0] + 1):
        m.shadow_V[g] = mirror_rows(m.shadow_log_policy[row], m.shadow_last[row], m.shadow_Q[row], rule.eta)[0]
        if step == steps[1]:
            m.shadow_policy[g] = m.shadow_last[g]
    m.shadow_steps[g] = steps[0]
    return g


@compiled
def _by_form(rule, steps, m, q, row):  # type: ignore[no-untyped-def]
    """V, pi and the policy played of an unvisited state, in closed form but for the last step."""
    tilt(q, rule.eta, steps[1], m.log_policy[row], m.policy[row])
    tilt(q, rule.eta, max(steps[0] - 1, 0), m.log_policy[row], m.last[row])
    if steps[0] == 0:
        return rule.V0
    one = slice(row, row + 1)
    return mirror_rows(m.log_policy[one], m.last[one], q.reshape(1, q.shape[0]), rule.eta)[0]


@compiled
def _new_row(rule, m, slot):  # type: ignore[no-untyped-def]
    row = m.used[ROWS]
    for a in range(m.base.shape[1]):
        m.base[row, a] = m.rewards[slot, a] + bonus(rule, m.visits[slot, a])
    m.used[ROWS] += 1
    m.owner[row] = slot
    m.row[slot] = row
    return row


@compiled
def slot_of(source, rule, steps, bad, m, x):  # type: ignore[no-untyped-def]
    """The slot of state x, which is filled in if it is new; NONE if a reward is not in [0, 1]."""
    i = bucket_of(m.place, m.ids, x)
    if m.place[i] != 0:
        return np.int64(m.place[i] - 1)
    s, A = m.used[SLOTS], m.rewards.shape[1]
    q = np.empty(A)
    for a in range(A):
        r = reward_of(source, x, np.int64(a))
        if not 0.0 <= r <= 1.0:
            bad[0], bad[1], bad[2] = x, a, r
            return np.int64(NONE)
        m.rewards[s, a] = r
        m.visits[s, a] = 1
        m.first[s, a] = NONE
        q[a] = cut(rule, r + bonus(rule, 1))
    m.used[SLOTS] += 1
    m.place[i] = s + 1
    m.ids[s] = x
    m.row[s] = NONE
    if q.min() == q.max():
        m.V[s] = q[0] if steps[0] > 0 else rule.V0
        return s
    row = _new_row(rule, m, s)
    m.Q[row] = q
    if rule.closed:
        m.V[s] = _by_form(rule, steps, m, q, row)
        return s
    g = _shadow(rule, steps, m, q)
    m.V[s] = m.shadow_V[g]
    m.log_policy[row], m.last[row], m.policy[row] = m.shadow_log_policy[g], m.shadow_last[g], m.shadow_policy[g]
    return s


@compiled
def _add(rule, m, s, a, to):  # type: ignore[no-untyped-def]
    """ADD: a visit of the pair (s, a) that led to `to`; a state that it unsettles gets its row."""
    A = m.rewards.shape[1]
    m.visits[s, a] += 1
    before, e = NONE, m.first[s, a]
    while e != NONE and m.ids[m.to[e]] < m.ids[to]:
        before, e = e, m.after[e]
    if e != NONE and m.to[e] == to:
        m.moves[e] += 1
    else:
        new = m.used[MOVES]
        m.used[MOVES] += 1
        m.to[new], m.moves[new], m.after[new] = to, 1, e
        if before == NONE:
            m.first[s, a] = new
        else:
            m.after[before] = new
    base = m.rewards[s, a] + bonus(rule, m.visits[s, a])
    if m.row[s] != NONE:
        m.base[m.row[s], a] = base
    elif base < rule.H:
        row = _new_row(rule, m, s)
        m.Q[row] = cut(rule, m.rewards[s, 0] + bonus(rule, 1))
        m.log_policy[row] = math.log(1.0 / A)
        m.last[row] = 1.0 / A
        m.policy[row] = 1.0 / A


@compiled
def _backup(rule, m):  # type: ignore[no-untyped-def]
    """Q = Pi_H[r + CB + gamma P_hat V] in the rows; where r + CB >= H, the rest does not matter."""
    A = m.rewards.shape[1]
    for row in range(m.used[ROWS]):
        s = m.owner[row]
        for a in range(A):
            base, PV = m.base[row, a], 0.0
            if base < rule.H:
                e = m.first[s, a]
                if e != NONE:
                    while e != NONE:
                        PV += m.moves[e] * m.V[m.to[e]]
                        e = m.after[e]
                    PV /= m.visits[s, a]
            m.Q[row, a] = cut(rule, base + rule.gamma * PV)


@compiled
def _plan(rule, clock, m, chosen):  # type: ignore[no-untyped-def]
    """M backups and mirror steps; the policy of step `chosen`, from 0, is the one that is played."""
    R = m.used[ROWS]
    for j in range(rule.inner):
        if rule.fresh:
            _backup(rule, m)
        V = mirror_rows(m.log_policy[:R], m.last[:R], m.Q[:R], rule.eta)
        for row in range(R):
            m.V[m.owner[row]] = V[row]
        if rule.fresh or clock.epoch[0] > 1 or j > 0:  # else Q was Q_1 = E V_0
            clock.steps[0] += 1
            if clock.steps[0] == 1:
                for s in range(m.used[SLOTS]):
                    if m.row[s] == NONE:
                        m.V[s] = cut(rule, m.rewards[s, 0] + bonus(rule, 1))
        if not rule.fresh:
            _backup(rule, m)
        if j == chosen:
            clock.steps[1] = clock.steps[0]
            m.policy[:R] = m.last[:R]


@compiled
def advance(source, rule, key, clock, m, epochs, goal, times):  # type: ignore[no-untyped-def]
    """Play up to epoch `epochs`, or to the first one that ends at time `goal` or later; or until there is no room. Says
    why it came back."""
    A = m.rewards.shape[1]
    uniform_row = np.full(A, 1.0 / A)
    restart = 1 - rule.gamma
    if clock.time[0] == 0 and not clock.inside[0] and clock.epoch[0] == 0:
        clock.state[0] = start_of(source, uniform(key, 0, 3))
    while clock.inside[0] or (clock.time[0] < goal and clock.epoch[0] < epochs):
        if not clock.inside[0]:
            clock.epoch[0] += 1
            chosen = rule.inner - 1
            if rule.pick and rule.inner > 1:
                chosen = int(rule.inner * uniform(key, clock.time[0] + 1, PICK))
            _plan(rule, clock, m, chosen)
            clock.inside[0] = True
        while clock.inside[0]:
            if is_short(m):
                return NO_ROOM
            x = clock.state[0]
            if not 0 <= x < rule.states:
                clock.bad[0] = x
                return BAD_START
            s = slot_of(source, rule, clock.steps, clock.bad, m, x)
            if s == NONE:
                return BAD_REWARD
            t = clock.time[0] + 1
            u_reset, u_action, u_successor, u_initial = block(key, t, 0)
            a = np.int64(draw(uniform_row if m.row[s] == NONE else m.policy[m.row[s]], u_action))
            y = np.int64(successor_of(source, x, a, u_successor))
            if not 0 <= y < rule.states:
                clock.bad[0], clock.bad[1], clock.bad[2] = x, a, y
                return BAD_SUCCESSOR
            to = slot_of(source, rule, clock.steps, clock.bad, m, y)
            if to == NONE:
                return BAD_REWARD
            _add(rule, m, s, a, to)
            clock.time[0] = t
            clock.earned[0] += m.rewards[s, a]
            while clock.point[0] < times.shape[0] and times[clock.point[0]] <= t:
                clock.curve[clock.point[0]] = clock.earned[0]
                clock.point[0] += 1
            reset = u_reset < restart
            clock.state[0] = start_of(source, u_initial) if reset else y
            clock.inside[0] = not reset and t < rule.steps
    return AT_GOAL


@compiled
def meet(source, rule, steps, bad, m, states, slots, begin):  # type: ignore[no-untyped-def]
    """The slots of these states from number `begin` on, while there is room. The number of the next one, and whether
    all rewards are in [0, 1]."""
    for i in range(begin, states.shape[0]):
        if is_short(m):
            return i, True
        slots[i] = slot_of(source, rule, steps, bad, m, states[i])
        if slots[i] == NONE:
            return i, False
    return states.shape[0], True
