"""What must be installed if an optional package is missing: one line, the same everywhere."""

from importlib.util import find_spec
from typing import Any

from ravi.validation import InputError


def install(extra: str) -> str:
    """The command that installs an extra of ravi, for an installed package and for a clone.

    >>> install("gymnasium")
    "pip install 'ravi[gymnasium]', or in a clone pip install -e '.[gymnasium]'"
    """
    return f"pip install 'ravi[{extra}]', or in a clone pip install -e '.[{extra}]'"


def needed(what: str, extra: str, *modules: str) -> None:
    """An error that names the extra, unless these modules, which come with it, are installed."""
    for module in modules:
        if find_spec(module) is None:
            raise InputError(f"{what} {module}: {install(extra)}")


def pandas(whose: str, instead: str) -> Any:
    """pandas, for what gives a frame; or an error that says how to have it, and which array serves without it."""
    try:
        import pandas
    except ImportError:
        raise InputError(f"{whose} needs pandas: pip install pandas; {instead} is a NumPy array") from None
    return pandas
