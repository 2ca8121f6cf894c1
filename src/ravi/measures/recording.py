"""Measures that are declared once: as a compiled function of one seed, which the Python driver calls for all seeds."""

from collections.abc import Callable
from typing import Any

from ravi._jit.functions import bound, uncounted
from ravi._jit.teams import allocate
from ravi.core import Array, Measure, Path, Recorder
from ravi.runtime.compiled import no_record


def take_over(kept: Array, policy: Array, path: Path) -> Array:
    """Which seeds that played have another policy than the one kept (n,); it is kept from now on."""
    changed = (path.length > 0) & (kept != policy).reshape(len(kept), -1).any(1)
    kept[changed] = policy[changed]
    return changed


record_seed = no_record  # `bound` puts that of a measure here


def _record_all(own, opening, policy, path):  # type: ignore[no-untyped-def]
    lengths = path[5]
    for i in range(lengths.shape[0]):
        if lengths[i] > 0:
            record_seed(own, i, 0, opening, policy, path)


def compiled_measure(
    name: str, init: Callable[[Array], Any], results: Callable[[Any], dict[str, Array]], recorder: Recorder, *,
    before: Callable[[Any, Any, Path, bool], None] | None = None,
) -> Measure:  # fmt: skip
    """The measure of a recorder.

    Parameters
    ----------
    name, init, results
        Those of the measure.
    recorder
        Its function of one seed; `recorder.here` where a CPU has another one.
    before
        What is computed in Python before it: of the measure's state, the learner's, the path, and whether an epoch
        opens.

    Returns
    -------
    Measure
    """
    scoring = recorder.here or recorder
    loop = uncounted(bound(_record_all, record_seed=scoring.record))
    last: tuple[Any, Any] = (None, None)  # the state of the measure, and what the function is given for it

    def record(m: Any, state: Any, path: Path, opening: bool) -> Any:
        nonlocal last
        if last[0] is not m:
            last = m, allocate(scoring.own(m, 1, 1))
        if before is not None:
            before(m, state, path, opening)
        policy = state.policy
        if policy.ndim == 4:
            policy = policy.reshape(len(policy), -1, policy.shape[-1])
        loop(last[1], opening, policy, tuple(path))
        rows = scoring.rows(last[1]) if opening else ()
        if rows and scoring.log is not None:
            scoring.log(m, rows)
            for row in rows:
                row[:] = 0
        return m

    return Measure(name, init, record, results, recorder)
