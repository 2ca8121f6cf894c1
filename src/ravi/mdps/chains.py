"""Chains: RiverSwim, as a table and as a mixture, the chain with two ends, and the queue."""

import math

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.building import instance_name
from ravi.mdps.tables import mixture_of, table_of
from ravi.validation import require_table

LEFT, RIGHT = 0, 1
CRUMB = 0.005  # r(0, left)


def riverswim(n: int = 6, discount: float = 0.95) -> MDP:
    """A current drives the swimmer left in a chain of n states; the large reward is at the right end.

    A crumb lies at the left end.

    Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision processes, with the
    numbers of Osband, Russo and Van Roy (2013), (More) efficient reinforcement learning via posterior sampling,
    discounted. States 0, ..., n - 1, start 0.

        left    to max(x - 1, 0)
        right   at 0: stay .4, right .6;  inside: left .05, stay .6, right .35;  at n - 1: left .4, stay .6
        r       .005 for left at 0, 1 for right at n - 1, 0 elsewhere

    Always left: rho = .005. Right everywhere is optimal from state 0 once gamma exceeds .3498, .5068, .6143, .7403,
    .8077 for n = 4, 5, 6, 8, 10. For n = 6 and gamma = .9, <nu_0, V*> = 425329947 / 326053817.
    """
    n = validation.whole(n, "n", 2)
    name = instance_name("riverswim", n)
    require_table(name, "n", n, 2, 3)
    x, inside = np.arange(n), np.arange(1, n - 1)
    entries = [
        (x, LEFT, np.maximum(x - 1, 0), 1.0),
        (0, RIGHT, 0, 0.4),
        (0, RIGHT, 1, 0.6),
        (inside, RIGHT, inside - 1, 0.05),
        (inside, RIGHT, inside, 0.6),
        (inside, RIGHT, inside + 1, 0.35),
        (n - 1, RIGHT, n - 2, 0.4),
        (n - 1, RIGHT, n - 1, 0.6),
    ]
    return table_of(entries, _rewards(n), discount, np.eye(1, n)[0], name=name)


def riverswim_mixture(n: int = 6, discount: float = 0.95) -> MDP:
    """RiverSwim as a linear mixture: right, stay and left have the same unknown weights in every state.

    theta = (.35, .6, .05). psi(x, left, max(x - 1, 0)) = (1, 1, 1); for right, e_1 at min(x + 1, n - 1), e_2 at x, e_3
    at max(x - 1, 0), which add up at the borders. d = 3; theta is a distribution, so B_theta = 1; B_phi = sqrt(3),
    attained by left. The ends differ from those of RiverSwim: for n = 6 and gamma = .9, rho* = .201982.
    """
    n = validation.whole(n, "n", 2)
    name = instance_name("riverswim/mixture", n)
    require_table(name, "n", n, 2, 3, 3)
    x = np.arange(n)
    entries = [
        (x, LEFT, np.maximum(x - 1, 0), (1, 1, 1)),
        (x, RIGHT, np.minimum(x + 1, n - 1), (1, 0, 0)),
        (x, RIGHT, x, (0, 1, 0)),
        (x, RIGHT, np.maximum(x - 1, 0), (0, 0, 1)),
    ]
    return mixture_of(entries, (0.35, 0.6, 0.05), _rewards(n), discount, 0, parameter_bound=1.0, name=name)


def _rewards(n: int) -> np.ndarray:
    r = np.zeros((n, 2))
    r[0, LEFT] = CRUMB
    r[n - 1, RIGHT] = 1
    return r


THETA = (0.35, 0.4, 0.25)
SAID, OTHER = 0.9, 0.05  # where the simulator says that action 1 leads, and to each other place


def two_ends(n: int = 9, discount: float = 0.95, left: float = 0.55) -> MDP:
    """Which end of a chain is better depends on where action 1 leads; the left end pays `left`, the right 1.

    Simulators disagree on where action 1 leads.

    States 0, ..., n - 1 in a line, from the middle. The left end pays `left`, the right one 1. Action 0 goes left with
    .9, else it stays. Action 1 goes right, stays or goes left: with .9 the one that the simulator says (the first
    right, the second stay, the third left), with .05 each of the others; a step over an end stays there. theta = (.35,
    .4, .25), so that action 1 goes right with .3475 and left with .2625: from the middle the left end is better, at the
    defaults. In the first simulator the right one is.

    >>> from ravi.mdps import two_ends
    >>> mdp = two_ends()
    >>> mdp.transitions[4, 1].round(4).tolist()  # to 3, 4, 5, by action 1
    [0.2625, 0.39, 0.3475]
    """
    n = validation.whole(n, "n", 2)
    left = validation.chance(left, "left")
    name = instance_name("two-ends", n, left=(left, 0.55))
    require_table(name, "n", n, 2, 3, 3)
    x, one = np.arange(n), np.ones(3)
    down, up = np.maximum(x - 1, 0), np.minimum(x + 1, n - 1)
    entries = [(x, 0, down, 0.9 * one), (x, 0, x, 0.1 * one)]
    entries += [(x, 1, y, np.where(np.arange(3) == i, SAID, OTHER)) for i, y in enumerate((up, x, down))]
    r = np.zeros((n, 2))
    r[0], r[-1] = left, 1
    bounds = {"parameter_bound": 1.0, "feature_bound": math.sqrt(3)}
    return mixture_of(entries, THETA, r, discount, n // 2, **bounds, name=name)


def queue(
    size: int = 20, speeds: int = 2, discount: float = 0.95, arrival: float = 0.3, service: float = 0.6,
    cost: float = 0.2,
) -> MDP:  # fmt: skip
    """At most N customers wait, and A speeds can serve them; `service` is the highest rate, `cost` its price.

    Neither the rate of arrivals nor that of services is known.

    A linear mixture with tri-diagonal support. The length x of the queue is 0, ..., N. At each step at most one thing
    happens: an arrival with probability lambda (none at x = N), a service with probability mu_a (none at x = 0), else
    nothing; mu_a = (a + 1) / A times the fastest rate. Waiting customers and speed cost:

        r(x, a) = (1 - x / N + cost (1 - a / (A - 1))) / (1 + cost),

    which is 1 - x / N - cost a / (A - 1) scaled to [0, 1]. nu_0 is uniform, so that long queues matter too. With the
    default rates and cost it is optimal to serve slowly while the queue is short (x < 4 of 20) and fast beyond.

    theta = (lambda, mu_1, ..., mu_A, 1), d = A + 2:

        psi(x, a, x + 1) = e_lambda  (x < N),    psi(x, a, x - 1) = e_{mu_a}  (x > 0),    psi(x, a, x) = e_1 - both.

    phi_V = e_lambda (V(x + 1) - V(x)) + e_{mu_a} (V(x - 1) - V(x)) + e_1 V(x), so B_phi = sqrt(3) for N > 1.
    """
    N, A = validation.whole(size, "size", 1), validation.whole(speeds, "speeds", 1)
    arrival, service = validation.probability(arrival, "arrival"), validation.probability(service, "service")
    if arrival + service > 1:
        raise validation.InputError(f"arrival + service is {arrival + service:g}; one event per step needs at most 1")
    cost = validation.nonnegative(cost, "cost")
    name = instance_name("queue", N, A, arrival=(arrival, 0.3), service=(service, 0.6), cost=(cost, 0.2))
    require_table(name, "size or speeds", N + 1, A, 3, A + 2)
    x, a = np.arange(N + 1)[:, None], np.arange(A)  # (X, 1), (A,)
    e = np.eye(A + 2)
    come, serve, nothing = e[0], np.tile(e[1 : A + 1], (N, 1)), e[A + 1]  # `serve` by (x, a), for N states
    entries = [
        (x, a, x, nothing),
        (x[:-1], a, x[:-1] + 1, come),
        (x[:-1], a, x[:-1], -come),
        (x[1:], a, x[1:] - 1, serve),
        (x[1:], a, x[1:], -serve),
    ]
    r = (1 - x / N + cost * (1 - a / max(A - 1, 1))) / (1 + cost)
    mu = service * (a + 1) / A
    return mixture_of(entries, [arrival, *mu, 1.0], r, discount, np.full(N + 1, 1 / (N + 1)), name=name)
