"""What is an MDP called? By the id that builds it: `garnet/100,4,4,seed=3`."""

from typing import Any


def named(family: str, *sizes: Any, **options: tuple[Any, Any]) -> str:
    """The family, its sizes, then each option (value, default) that is not at its default.

    The discount stays out: the same construction at two discounts has one name.
    """
    parts = [str(size) for size in sizes]
    parts += [f"{option}={value}" for option, (value, default) in options.items() if value != default]
    return f"{family}/{','.join(parts)}" if parts else family
