"""The MDPs of the library, and their ids. A family is loaded when it is first asked for."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ravi.core import MDP

if TYPE_CHECKING:
    from ravi.gymnasium import gymnasium
    from ravi.mdps.chains import queue, riverswim, riverswim_mixture, two_ends
    from ravi.mdps.grids import deep_sea, terrain, winds
    from ravi.mdps.linear_mdps import aggregated, hypercube, hypercube_linear, linear
    from ravi.mdps.mixtures import ensemble, garnet, garnets
    from ravi.mdps.small import bandit, bandit_of, fork, one_state, one_state_of, ring, six_arms, trap, two_cycle
    from ravi.mdps.tables import from_dense, from_features, from_sparse

__all__ = [
    "MDPS", "aggregated", "bandit", "bandit_of", "deep_sea", "ensemble", "fork", "from_dense", "from_features",
    "from_sparse", "garnet", "garnets", "gymnasium", "hypercube", "hypercube_linear", "linear", "one_state",
    "one_state_of", "queue", "ring", "riverswim", "riverswim_mixture", "six_arms", "terrain", "trap", "two_cycle",
    "two_ends", "winds",
]  # fmt: skip

_FAMILIES = {  # id: the module of its builder, which is called as the id is, with _, or as it says
    "riverswim": "chains", "riverswim/mixture": "chains", "six-arms": "small", "deep-sea": "grids", "trap": "small",
    "bandit": "small", "one-state": "small", "garnet": "mixtures", "hypercube": "linear_mdps",
    "ensemble": "mixtures:garnets", "terrain": "grids", "queue": "chains", "two-cycle": "small", "two-ends": "chains",
    "winds": "grids", "fork": "small", "ring": "small", "linear": "linear_mdps",
    "linear/aggregated": "linear_mdps:aggregated", "hypercube/linear": "linear_mdps", "gymnasium": ".gymnasium",
}  # fmt: skip
_WITHOUT_ID = {
    "bandit_of": "small", "ensemble": "mixtures", "from_dense": "tables", "from_features": "tables",
    "from_sparse": "tables", "one_state_of": "small",
}  # fmt: skip


def _row(name: str) -> tuple[str, str]:
    """The builder of an id, and its module."""
    module, _, builder = _FAMILIES[name].partition(":")
    return builder or name.replace("-", "_").replace("/", "_"), module


_MODULES = dict(map(_row, _FAMILIES)) | _WITHOUT_ID  # no module has the name of a function: it would hide the function


class _Builders(Mapping[str, Callable[..., MDP]]):
    """An id is a name from here and the builder's arguments: `garnet/100,4,4,seed=3`."""

    def __getitem__(self, name: str) -> Callable[..., MDP]:
        builder: Callable[..., MDP] = __getattr__(_row(name)[0])
        return builder

    def __iter__(self) -> Iterator[str]:
        return iter(_FAMILIES)

    def __len__(self) -> int:
        return len(_FAMILIES)


MDPS = _Builders()


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
