"""The suites that come with the library: TOML files beside this one, each by its name."""

from importlib.resources import files

SUITES = ("quick", "tabular", "mixture", "linear", "paper", "plus", "scaling", "lead")


def text(name: str) -> str:
    """The TOML of a shipped suite."""
    return files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
