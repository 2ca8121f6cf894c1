"""Several settings of a learner as one batch, whose leading axis is (setting, seed), settings first.

Numbers of bonus and step size (what `scale`, `step_scale`, `eta` and `beta` make) may be one of every row; a row is the
same alone and in a batch, so every setting comes out as by itself. Learners are built one by one, each with all checks
of its own; what they have in common is built once more, by `SettingsBatch.of`, with those numbers as arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import Array, Learner, SettingsBatch

VARIED = ("scale", "step_scale", "eta", "beta")  # options that may be another in every row


def of_rows(build: Callable[..., Learner], numbers: tuple[float, ...], *same: Any) -> Learner:
    """The learner `build(*numbers)`, which can go with others. build: takes each as a number, or as one of every row
    (n,); nothing but `plan` and `seedwise` may depend on them. same: see `ravi.core.SettingsBatch`."""
    made = build(*numbers)
    return made._replace(rows=SettingsBatch(made, numbers, same, build))


def alike(learners: Sequence[Learner]) -> bool:
    """Whether they go as one batch."""
    said = [_common(one) for one in learners]
    return said[0] is not None and all(other == said[0] for other in said)


def learner_of(learners: Sequence[Learner], n: int, rows: Array | None = None) -> Learner:
    """The learner of these rows (or of all) of a batch with n seeds of each setting."""
    if len(learners) == 1:
        return learners[0]
    numbers = np.array([one.rows.numbers for one in learners if one.rows is not None], np.float64)
    by_row = np.repeat(numbers, n, axis=0)
    made = learners[0].rows
    assert made is not None
    return made.of(*np.ascontiguousarray((by_row if rows is None else by_row[rows]).T))


def positive(number: float | Array, name: str) -> Any:
    """A positive number; those of rows were checked one by one."""
    return number if isinstance(number, np.ndarray) else validation.positive(number, name)


def by_pair(number: float | Array) -> float | Array:
    """A number as it multiplies arrays (n, X, A): itself, or one of every row as (n, 1, 1)."""
    return number[:, None, None] if isinstance(number, np.ndarray) else number


def _common(learner: Learner) -> tuple[Any, ...] | None:
    """What a learner must share with those that go with it; None where it goes alone."""
    rows = learner.rows
    if rows is None or any(now is not built for now, built in zip(learner[:-1], rows.built[:-1], strict=True)):
        return None
    of = learner.parts
    assert of is not None
    stated = of.stated._replace(beta=None, scale=1.0, step_scale=1.0)  # which may be another in every row, like eta
    begins = of.initial_value.tobytes(), of.initial_policy.tobytes()
    return learner.name, rows.same, learner.side_information, stated, (of.inner, of.fresh, of.pick), begins
