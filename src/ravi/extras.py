"""What is to be typed where an optional package is missing? One line, the same everywhere."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command that installs an extra of ravi, for an installed package and for a clone.

    >>> install("gymnasium")
    "pip install 'ravi[gymnasium]', or in a clone pip install -e '.[gymnasium]'"
    """
    return f"pip install 'ravi[{extra}]', or in a clone pip install -e '.[{extra}]'"
