"""Experiments and their reports: suites, stores, pages. Tables are Arrow's, queries DuckDB's (extra `lab`)."""

from ravi.validation import require_extra

require_extra("suites, stores and reports need", "lab", "pyarrow", "duckdb")
