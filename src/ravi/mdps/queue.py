"""What is the queue? Customers arrive, one of several speeds serves them, and neither rate is known.

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

import numpy as np

from ravi import validation
from ravi.core import MDP
from ravi.mdps.names import named
from ravi.mdps.tables import mixture_of
from ravi.validation import require_table


def queue(
    size: int = 20, speeds: int = 2, discount: float = 0.95, arrival: float = 0.3, service: float = 0.6,
    cost: float = 0.2,
) -> MDP:  # fmt: skip
    """At most N customers wait, and A speeds can serve them; `service` is the highest rate, `cost` its price."""
    N, A = validation.whole(size, "size", 1), validation.whole(speeds, "speeds", 1)
    arrival, service = validation.probability(arrival, "arrival"), validation.probability(service, "service")
    if arrival + service > 1:
        raise validation.InputError(f"arrival + service is {arrival + service:g}; one event per step needs at most 1")
    cost = validation.nonnegative(cost, "cost")
    name = named("queue", N, A, arrival=(arrival, 0.3), service=(service, 0.6), cost=(cost, 0.2))
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
