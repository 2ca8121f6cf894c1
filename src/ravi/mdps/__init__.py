"""Which MDPs come with the library, and under which ids? A family is loaded when it is first asked for."""

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ravi.core import MDP

if TYPE_CHECKING:
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
    from ravi.mdps.six_arms import six_arms
    from ravi.mdps.tables import from_dense, from_features, from_sparse
    from ravi.mdps.terrain import terrain
    from ravi.mdps.trap import trap
    from ravi.mdps.two_cycle import two_cycle
    from ravi.mdps.two_ends import two_ends
    from ravi.mdps.winds import winds

__all__ = [
    "MDPS", "aggregated", "bandit", "bandit_of", "deep_sea", "ensemble", "fork", "from_dense", "from_features",
    "from_sparse", "garnet", "garnets", "gymnasium", "hypercube", "hypercube_linear", "linear", "one_state",
    "one_state_of", "queue", "ring", "riverswim", "riverswim_mixture", "six_arms", "terrain", "trap", "two_cycle",
    "two_ends", "winds",
]  # fmt: skip

_HOMES = {  # of functions that are not alone in a file of their name
    "aggregated": "linear", "bandit_of": "bandit", "from_dense": "tables", "from_features": "tables",
    "from_sparse": "tables", "garnets": "ensemble", "gymnasium": "from_gymnasium", "hypercube_linear": "linear",
    "one_state_of": "one_state", "riverswim_mixture": "riverswim",
}  # fmt: skip
_IDS = {
    "riverswim": "riverswim", "riverswim/mixture": "riverswim_mixture", "six-arms": "six_arms", "deep-sea": "deep_sea",
    "trap": "trap", "bandit": "bandit", "one-state": "one_state", "garnet": "garnet", "hypercube": "hypercube",
    "ensemble": "garnets", "terrain": "terrain", "queue": "queue", "two-cycle": "two_cycle", "two-ends": "two_ends",
    "winds": "winds", "fork": "fork", "ring": "ring", "linear": "linear", "linear/aggregated": "aggregated",
    "hypercube/linear": "hypercube_linear", "gymnasium": "gymnasium",
}  # fmt: skip


class _Builders(Mapping[str, Callable[..., MDP]]):
    """An id is a name from here and the builder's arguments: `garnet/100,4,4,seed=3`."""

    def __getitem__(self, name: str) -> Callable[..., MDP]:
        return _function(_IDS[name])

    def __contains__(self, name: object) -> bool:
        return name in _IDS

    def __iter__(self) -> Iterator[str]:
        return iter(_IDS)

    def __len__(self) -> int:
        return len(_IDS)


MDPS = _Builders()


def _function(name: str) -> Any:
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, name)}"), name)


class _Package(ModuleType):
    """`ravi.mdps.garnet` is the function, also once the file of that name is loaded."""

    def __getattr__(self, name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _function(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
