"""Small MDPs with closed forms: one state, the trap, bandits, the fork, the two-cycle, SixArms, the ring of gadgets."""

import math
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import instance_name, uniforms
from ravi.mdps.mixtures import ensemble
from ravi.mdps.tables import mixture_of, table_of
from ravi.validation import require_table


def one_state(actions: int = 2, discount: float = 0.95) -> MDP:
    """The A actions of a single state earn 1 / A, 2 / A, ..., 1, so that iterates have a closed form.

    There is nothing to learn here, so that the trajectory of the algorithm has a closed form.

    X = 1 with rewards r(a): rho(pi) = sum_a pi(a) r(a). With P known, CB = 0 and V_0 = 0 the iterates of RAVI-UCB are

        pi_k(a) proportional to exp(eta (k - 1) r(a)),
        V_1 + ... + V_k = (1 / eta) log mean_a exp(eta S_k(a)),  S_{k+1} = S_k + r + gamma V_k,  S_1 = 0,

    and nothing is truncated: an index that is off by one shows at once.
    """
    A = validation.whole(actions, "actions", 1)
    name = instance_name("one-state", A)
    require_table(name, "actions", 1, A, 1, scattered=False)
    return one_state_of(np.arange(1, A + 1) / A, discount, name=name)


def one_state_of(rewards: Any, discount: float = 0.95, *, name: str = "one-state") -> MDP:
    """One state with these rewards."""
    r = validation.finite(rewards, "rewards")
    if r.ndim != 1 or r.size < 1:
        raise validation.InputError(f"rewards has shape {r.shape}, not (A,) with A at least 1")
    validation.between(r, 0, 1, "rewards")
    shape = (1, r.size, 1)
    return MDP(
        rewards=r[None], successors=np.zeros(shape, np.int32), transitions=np.ones(shape), initial=np.ones(1),
        discount=discount, name=name,
    )  # fmt: skip


STAY, JUMP = 0, 1


def trap(discount: float = 0.95, leave: float = 0.0) -> MDP:
    """One wrong action leads to a state without rewards, which is left with probability `leave` per step.

    The trap of the paper's discussion: only a reset leads out of it.

    Moulin and Neu (2023), Optimistic planning by regularized dynamic programming, Section 6. State 0 is the start: stay
    (action 0) earns 1, jump (action 1) earns nothing and leads to state 1, the trap, where r = 0. The trap is left with
    probability q (0: only by a reset). A policy that jumps with probability eps has

        gap = eps (1 + gamma q) / (1 - gamma + gamma (eps + q)),

    that is eps / (1 - gamma + gamma eps) for q = 0. rho* = 1. A learner that always jumps has gap 1 in every round;
    along a trajectory without resets it would be charged H once and nothing after.
    """
    q = validation.chance(leave, "leave")
    entries = [(0, STAY, 0, 1.0), (0, JUMP, 1, 1.0), (1, [STAY, JUMP], 1, 1 - q)]
    if q > 0:
        entries.append((1, [STAY, JUMP], 0, q))
    rewards = np.array([[1.0, 0.0], [0.0, 0.0]])
    return table_of(entries, rewards, discount, np.eye(2)[0], name=instance_name("trap", leave=(q, 0.0)))


CHOICE, GOOD, BAD = 0, 1, 2


def bandit(arms: int = 5, best: float = 0.9, other: float = 0.5, discount: float = 0.95) -> MDP:
    """Each arm succeeds with probability `other` and the last with `best`; the outcome lasts until a reset.

    The best arm is the last one, so that breaking ties towards action 0 does not find it.

    One choice between resets, whose outcome lasts until the next.

    State 0 (the start, r = 0): arm a leads to state 1 (good, r = 1) with probability p_a, else to state 2 (bad, r = 0);
    both are absorbing. For every policy

        rho(pi) = gamma sum_a pi(a | 0) p_a,      gap(pi) = gamma (max p - sum_a pi(a | 0) p_a).

    T steps make about T / H pulls; without resets no learner could pull twice. As a linear mixture, d = A + 1 and theta
    = (p_1, ..., p_A, 1): psi(0, a, good) = e_a, psi(0, a, bad) = e_{A+1} - e_a, and absorbing rows e_{A+1}. ||theta||^2
    = 1 + sum_a p_a^2; ||phi_V||^2 = (V(good) - V(bad))^2 + V(bad)^2 at state 0, so B_phi = sqrt(2).
    """
    A = validation.whole(arms, "arms", 1)
    best, other = validation.chance(best, "best"), validation.chance(other, "other")
    name = instance_name("bandit", A, best=(best, 0.9), other=(other, 0.5))
    require_table(name, "arms", 3, A, 2, A + 1)
    return bandit_of([other] * (A - 1) + [best], discount, name=name)


def bandit_of(probabilities: Any, discount: float = 0.95, *, name: str = "bandit") -> MDP:
    """The bandit whose arms succeed with these probabilities."""
    p = validation.finite(probabilities, "probabilities")
    if p.ndim != 1 or p.size < 1:
        raise validation.InputError(f"probabilities has shape {p.shape}, not (A,) with A at least 1")
    validation.between(p, 0, 1, "probabilities")
    A = p.size
    require_table(name, "arms", 3, A, 2, A + 1)
    a, e = np.arange(A), np.eye(A + 1)
    entries = [
        (CHOICE, a, GOOD, e[:A]),
        (CHOICE, a, BAD, e[A] - e[:A]),
        (GOOD, a, GOOD, e[A]),
        (BAD, a, BAD, e[A]),
    ]
    r = np.zeros((3, A))
    r[GOOD] = 1
    return mixture_of(entries, [*p, 1.0], r, discount, CHOICE, name=name)


def fork(
    simulators: int = 4, discount: float = 0.9, weight: float = 0.32, high: float = 0.9, low: float = 0.1, best: int = 0
) -> MDP:
    """Each of d simulators recommends another first action; simulator `best` has the largest `weight`.

    The others share the rest of the weight.

    One choice, for which every simulator recommends another action.

    X = 3, A = d, from state 0. In simulator i, action i leads from 0 to state 1 with probability `high` and every other
    one with `low`, else to state 2. In 1 and 2 all actions do the same: stay with 1/2, else go back to 0. State 1 pays
    1. So action a leads to 1 with p_a = low + (high - low) theta_a, the best action is that of the largest weight, and
    what p is worth at 0 is, with c = 1 - gamma / 2,

        V(0) = gamma p / (c - gamma^2 / 2).

    theta is `weight` for the simulator `best` and (1 - weight) / (d - 1) for each other one: .32 and .227 at the
    defaults, p = .356 against .281. A move from 0 by action a tells of theta_a only: a bandit whose arms are .075
    apart, where no mixture helps. Ties go to the first action in greedy learners: where the best one is not to be a
    gift, it is another.

    >>> from ravi.mdps import fork
    >>> fork().transitions[0, :, 0].round(3).tolist()  # to state 1, by action
    [0.356, 0.281, 0.281, 0.281]
    """
    d = validation.whole(simulators, "simulators", 2)
    best = validation.whole(best, "best", 0, d - 1)
    weight, high, low = (
        validation.chance(weight, "weight"),
        validation.chance(high, "high"),
        validation.chance(low, "low"),
    )
    name = instance_name("fork", d, weight=(weight, 0.32), high=(high, 0.9), low=(low, 0.1), best=(best, 0))
    require_table(name, "simulators", 3, d, 2, d)
    p = np.where(np.eye(d, dtype=bool), high, low)  # to state 1, by action and simulator
    half, a = np.full(d, 0.5), np.arange(d)
    entries = [(0, a, 1, p), (0, a, 2, 1 - p), *((x, a, y, half) for x in (1, 2) for y in (0, x))]
    r = np.zeros((3, d))
    r[1] = 1
    theta = np.full(d, (1 - weight) / (d - 1))
    theta[best] = weight
    return mixture_of(entries, theta, r, discount, 0, parameter_bound=1.0, feature_bound=math.sqrt(d), name=name)


FOLLOWING = (((1, 2), (2, 0), (0, 1)), ((1, 0), (1, 1), (0, 2)))  # next states of the simulators, (d, X, A)
REWARDS = ((0, 1), (0, 0), (1, 0.5))


def two_cycle(discount: float = 0.9) -> MDP:
    """Greedy planning with an estimated mixture of two simulators alternates between two policies.

    Two simulators whose estimated mixture is no kernel.

    X = 3, A = 2, nu_0 uniform, r = [[0, 1], [0, 0], [1, .5]]. Two deterministic simulators, next states by state (row)
    and action (column):

        P_1: [[1, 2], [2, 0], [0, 1]]      P_2: [[1, 0], [1, 1], [0, 2]]

    and theta = (1/2, 1/2). At gamma = .9 the optimal policy is (1, 0, 0), V* = (10, 90 / 11, 10), rho* = .939394.

    A least-squares estimate may leave the simplex. With theta_hat = (2, -1) the rows of P_hat still sum to one but have
    negative entries, and truncated greedy value iteration V <- max_a clip(r + gamma P_hat V, 0, H) ends, from most
    starts, in the 2-cycle (10, 9.4737, 8.6737), (8.5263, 9.4737, 10), whose greedy policies alternate between (0, 1,
    0), with gap .90606, and (1, 0, 0), with gap 0: a planner that iterates to convergence never stops, and half of its
    answers are terrible. (From a constant V it happens to find the fixed point (10, 9.4737, 10); from (0, 0, 10) it
    cycles.) Regularised value iteration keeps moving too, but its policies settle at gap 0.
    """
    simulators = [
        MDP(
            rewards=np.array(REWARDS),
            successors=np.array(following)[:, :, None],
            transitions=np.ones((3, 2, 1)),
            initial=np.full(3, 1 / 3),
            discount=discount,
        )
        for following in FOLLOWING
    ]
    return ensemble(simulators, (0.5, 0.5), name="two-cycle")


ENTER = np.array([1.0, 0.15, 0.1, 0.05, 0.03, 0.01])  # p_i
PAY = np.array([50.0, 133, 300, 800, 1660, 6000]) / 6000  # r_i
LEAVE = 4  # the action that leads out of state 1


def six_arms(discount: float = 0.95) -> MDP:
    """Six arms that are the harder to enter the more they pay.

    Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision processes, discounted;
    rewards are in parts of the largest, 6,000. State 0 is the start. There action i - 1 leads to state i with
    probability p_i, and otherwise stays, without reward. In state i the same action stays and pays r_i, every other one
    leads back to state 0 without reward, except that in state 1 all actions but 4 stay and pay.

        i             1    2    3    4    5      6
        p_i           1    .15  .1   .05  .03    .01
        6,000 r_i     50   133  300  800  1,660  6,000

    The table is a reconstruction of a figure of the paper from implementations that agree on it. A policy that takes
    action i - 1 everywhere has V(i) = r_i H and the return

        rho_i = r_i gamma p_i / (1 - gamma + gamma p_i).

    rho* is the largest of them, that of arm 6 for every gamma; for gamma = .95 it is .1597, and arm 5 has .1004.

    >>> from ravi.mdps import six_arms
    >>> six_arms().rewards[6].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    action = np.arange(6)
    stays = np.eye(6, dtype=bool)  # [i - 1, a]
    stays[0] = action != LEAVE
    arm, kept = np.nonzero(stays)
    other, left = np.nonzero(~stays)
    entries = [
        (0, action, action + 1, ENTER),
        (0, action[1:], 0, 1 - ENTER[1:]),
        (arm + 1, kept, arm + 1, 1.0),
        (other + 1, left, 0, 1.0),
    ]
    rewards = np.concatenate([np.zeros((1, 6)), stays * PAY[:, None]])
    return table_of(entries, rewards, discount, np.eye(7)[0], name="six-arms")


def ring(gadgets: int = 4, gap: float | None = None, discount: float = 0.95, actions: int = 2, seed: int = 0) -> MDP:
    """One action is better by `gap` in each of S two-state gadgets: a lower-bound instance for tables.

    `gap` is eps, by default (1 - gamma) / 2; the seed draws the best actions.

    What is hard for a table: a ring of gadgets, in each of which one action is a little better.

    After the lower bound of He, Zhou and Gu (2021), Nearly minimax optimal reinforcement learning for discounted MDPs.
    Gadget i has states 2 i (r = 0) and 2 i + 1 (r = 1). From 2 i an action leads up to 2 i + 1 with probability 1 -
    gamma, the gadget's own best action with eps more, else stays; from 2 i + 1 every action stays with probability
    gamma and goes on to the next gadget's lower state with 1 - gamma. nu_0 is uniform over the lower states, so that
    every gadget matters. By symmetry all gadgets have the same values: with p = 1 - gamma + eps,

        rho* = gamma p / ((1 - gamma) (1 + gamma) + gamma p),

    and the same with p = 1 - gamma + eps m for a policy that gives the best actions probability m.
    """
    S, A = validation.whole(gadgets, "gadgets", 1), validation.whole(actions, "actions", 1)
    gamma = validation.probability(discount, "discount")
    eps = (1 - gamma) / 2 if gap is None else validation.nonnegative(gap, "gap")
    if eps > gamma:
        raise validation.InputError(f"gap is {eps:g}; with discount {gamma:g} it must be at most gamma")
    seed = validation.whole(seed, "seed", 0)
    name = instance_name("ring", S, gap=(gap, None), actions=(A, 2), seed=(seed, 0))
    require_table(name, "gadgets or actions", 2 * S, A, 2)
    best = (A * uniforms(seed)(S)).astype(np.int64)  # a*_i
    low, a = 2 * np.arange(S)[:, None], np.arange(A)  # (S, 1), (A,)
    stay = (gamma - eps * (best[:, None] == a)).ravel()  # (S * A,)
    entries = [
        (low, a, low + 1, 1 - stay),
        (low, a, low, stay),
        (low + 1, a, low + 1, gamma),
        (low + 1, a, (low + 2) % (2 * S), 1 - gamma),
    ]
    r = np.zeros((2 * S, A))
    r[1::2] = 1
    return table_of(entries, r, gamma, np.tile([1 / S, 0], S), name=name)
