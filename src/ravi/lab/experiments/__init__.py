"""Experiments: suites as data, a driver with its workers, a store of results."""
