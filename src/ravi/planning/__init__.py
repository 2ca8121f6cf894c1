"""Planning in a known MDP. The names below load their modules, and Numba with them, when they are first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ravi.planning.evaluation import evaluate, return_of
    from ravi.planning.mirror_descent import md_mpi
    from ravi.planning.occupancies import occupancy
    from ravi.planning.solver import solve

__all__ = ["evaluate", "md_mpi", "occupancy", "return_of", "solve"]

_HOMES = {
    "evaluate": "evaluation",
    "md_mpi": "mirror_descent",
    "occupancy": "occupancies",
    "return_of": "evaluation",
    "solve": "solver",
}  # no module has the name of its function: an imported submodule would hide the function of that name


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
