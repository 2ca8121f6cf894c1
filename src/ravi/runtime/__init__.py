"""Runs: their start, drivers, worlds, results and files."""
