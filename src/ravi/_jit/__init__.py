"""Compilation by Numba: compiled functions, the cache of machine code, threads and GPUs."""
