"""The theory: constants, bounds and what they ask for, as functions of plain numbers.

| statement | printed | corrected | sharp | in |
|---|---|---|---|---|
| Lemma 4.3, one run | `per_run.printed` | | `per_run.sharp` | `generic` |
| Theorem 4.1 | `generic.printed` | `generic.corrected` | `generic.sharp` | `generic` |
| rewards that change | | | `changing_rewards.sharp` | `generic` |
| Lemmas 5.1 and 5.2 | `tabular.printed` | `tabular.corrected` | `tabular.sharp` | `tabular` |
| rewards that are not known | | `unknown_rewards.corrected` | `unknown_rewards.sharp` | `tabular` |
| Lemmas A.2 to A.4 | `mixture.largest_factor` | `mixture.padded_log` | `mixture.largest_factor_sharp` | `mixture` |
| Lemma 5.5 | `mixture.bonus_sum_printed` | `mixture.bonus_sum_corrected` | `mixture.clipped_bonus_sum` | `mixture` |
| Theorem 5.6 | `mixture.printed` | `mixture.corrected` | `mixture.sharp` | `mixture` |
| sampled features | | `sampled.corrected` | | `mixture` |
| linear MDPs with X states | | `linear.corrected` | | `mixture` |
| episodes | `episodes.ucbvi` | | `episodes.ravi_ucb`, `episodes.ravi_kl` | `episodes` |
| T that is not known | | `doubling.tabular`, `doubling.linear_mixture` | `doubling.sharp` | `doubling` |

`constants` has eta, beta, kappa and E K, which a learner is set to; `kl` the theorems of docs/explanation/kl.md, with
what no learner can be below (`lower`); `search` the steps that a bound asks for (Corollary 5.7) and the best-policy
selection of the Discussion (`selection`).

`printed` is the paper's. `corrected` keeps the paper's constants and repairs its proofs: E K, the padding to T+, the
failure event. `sharp` uses what the same proofs give with more care; it asks for other settings of the learner, which
its docstring names. H = 1/(1 - gamma) and gamma H = H - 1 throughout.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ravi.theory import kl as lower
    from ravi.theory import mixture as elliptical
    from ravi.theory import search as selection
    from ravi.theory.generic import Bound, changing_rewards, per_run
    from ravi.theory.mixture import linear, sampled
    from ravi.theory.search import first_useful, smallest_steps
    from ravi.theory.tabular import unknown_rewards

_HOMES = {
    "Bound": "generic", "changing_rewards": "generic", "per_run": "generic", "unknown_rewards": "tabular",
    "linear": "mixture", "sampled": "mixture", "first_useful": "search", "smallest_steps": "search",
}  # fmt: skip
_SECTIONS = {"elliptical": "mixture", "lower": "kl", "selection": "search"}  # names of parts of a module
__all__ = [
    "Bound", "changing_rewards", "constants", "doubling", "elliptical", "episodes", "first_useful", "generic", "kl",
    "linear",    "lower", "mixture", "per_run", "sampled", "selection", "smallest_steps", "tabular", "unknown_rewards",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Modules are loaded when they are first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return import_module(f"{__name__}.{_SECTIONS.get(name, name)}")
