"""What does the theory promise? Constants, bounds and what they ask for, as functions of plain numbers.

| where | which statement |
|---|---|
| `constants` | eta, beta, kappa, E K: what a learner is set to |
| `generic` | Theorem 4.1 |
| `per_run` | Lemma 4.3: what one run must satisfy |
| `tabular` | Lemmas 5.1 and 5.2, and the regret that they give |
| `mixture` | Lemmas 5.4 and 5.5, Theorem 5.6 |
| `elliptical` | Lemmas A.2 to A.4 |
| `sampled`, `linear` | Theorem 5.6 with sampled features; linear MDPs with X states |
| `unknown_rewards`, `changing_rewards`, `doubling` | rewards that are not known; that change; T that is not known |
| `kl` | RAVI-KL: the theorems of docs/explanation/kl.md |
| `lower` | what no learner can be below |
| `search` | Corollary 5.7: how many steps a bound asks for |
| `selection` | the best-policy selection of the Discussion |

Every bound comes in up to three forms. `printed` is the paper's. `corrected` keeps the paper's constants and repairs
its proofs: E K, the padding to T+, the failure event. `sharp` uses what the same proofs give with more care; it asks
for other settings of the learner, which its docstring names. H = 1/(1 - gamma) and gamma H = H - 1 throughout.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ravi.theory import constants, elliptical, generic, mixture, per_run, selection, tabular
    from ravi.theory.parts import Bound
    from ravi.theory.search import first_useful, smallest_steps

__all__ = [
    "Bound", "constants", "elliptical", "first_useful", "generic", "mixture", "per_run", "selection", "smallest_steps",
    "tabular",
]  # fmt: skip

_HOMES = {"Bound": "parts", "first_useful": "search", "smallest_steps": "search"}


def __getattr__(name: str) -> Any:
    """Modules are loaded when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    return getattr(home, name) if name in _HOMES else home
