"""Which MDPs come with the library, and under which ids?"""

from __future__ import annotations

from collections.abc import Callable

from ravi.core import MDP
from ravi.mdps.bandit import bandit, bandit_of
from ravi.mdps.deep_sea import deep_sea
from ravi.mdps.ensemble import ensemble, garnets
from ravi.mdps.fork import fork
from ravi.mdps.from_gymnasium import gymnasium
from ravi.mdps.garnet import garnet
from ravi.mdps.hypercube import hypercube
from ravi.mdps.linear import aggregated, hypercube_linear, linear
from ravi.mdps.one_state import one_state, one_state_of
from ravi.mdps.queue import queue
from ravi.mdps.ring import ring
from ravi.mdps.riverswim import riverswim, riverswim_mixture
from ravi.mdps.tables import from_dense, from_features, from_sparse
from ravi.mdps.terrain import terrain
from ravi.mdps.trap import trap
from ravi.mdps.two_cycle import two_cycle
from ravi.mdps.two_ends import two_ends
from ravi.mdps.winds import winds

# An id is a name from here and the builder's arguments: `garnet/100,4,4,seed=3`.
MDPS: dict[str, Callable[..., MDP]] = {
    "riverswim": riverswim,
    "riverswim/mixture": riverswim_mixture,
    "deep-sea": deep_sea,
    "trap": trap,
    "bandit": bandit,
    "one-state": one_state,
    "garnet": garnet,
    "hypercube": hypercube,
    "ensemble": garnets,
    "terrain": terrain,
    "queue": queue,
    "two-cycle": two_cycle,
    "two-ends": two_ends,
    "winds": winds,
    "fork": fork,
    "ring": ring,
    "linear": linear,
    "linear/aggregated": aggregated,
    "hypercube/linear": hypercube_linear,
    "gymnasium": gymnasium,
}

__all__ = [
    "MDPS",
    "aggregated",
    "bandit",
    "bandit_of",
    "deep_sea",
    "ensemble",
    "fork",
    "from_dense",
    "from_features",
    "from_sparse",
    "garnet",
    "garnets",
    "gymnasium",
    "hypercube",
    "hypercube_linear",
    "linear",
    "one_state",
    "one_state_of",
    "queue",
    "ring",
    "riverswim",
    "riverswim_mixture",
    "terrain",
    "trap",
    "two_cycle",
    "two_ends",
    "winds",
]
