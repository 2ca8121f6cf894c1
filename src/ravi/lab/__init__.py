"""Experiments and their reports: suites, stores, pages. Tables are Arrow's, queries DuckDB's (extra `lab`)."""

from importlib.util import find_spec

from ravi.checks import InputError
from ravi.extras import install

for _package in ("pyarrow", "duckdb"):
    if find_spec(_package) is None:
        raise InputError(f"suites, stores and reports need {_package}: {install('lab')}")
