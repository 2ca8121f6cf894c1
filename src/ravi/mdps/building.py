"""Names and random numbers of instances.

An instance is made of raw words of Philox4x64-10, so that it never changes. NumPy keeps the stream of a bit generator
for ever, but not what `Generator.choice` or `dirichlet` make of it. So the words are turned into doubles here, by
(word >> 11) * 2**-53, and into everything else by exact arithmetic where that is possible.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi import validation


def uniforms(seed: Any) -> Callable[..., np.ndarray]:
    """A function of a shape that gives the next numbers of the seed's stream, in [0, 1)."""
    words = np.random.Philox(key=validation.whole(seed, "seed", 0))

    def draw(*shape: int) -> np.ndarray:
        raw = np.asarray(words.random_raw(int(np.prod(shape, dtype=np.int64))), dtype=np.uint64)
        return ((raw >> np.uint64(11)) * 2.0**-53).reshape(shape)

    return draw


def instance_name(family: str, *sizes: Any, **options: tuple[Any, Any]) -> str:
    """The family, its sizes, then each option (value, default) that is not at its default.

    The discount stays out: the same construction at two discounts has one name.
    """
    parts = [str(size) for size in sizes]
    parts += [f"{option}={value}" for option, (value, default) in options.items() if value != default]
    return f"{family}/{','.join(parts)}" if parts else family
