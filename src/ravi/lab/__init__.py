"""Experiments and their reports: suites, stores, pages. Tables are Arrow's, queries DuckDB's (extra `lab`)."""

from ravi.runtime.extras import needed

needed("suites, stores and reports need", "lab", "pyarrow", "duckdb")
