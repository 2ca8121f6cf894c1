"""Experiments and what is said of them: suites, stores, report."""
