"""What stands between this package and Numba: a cache keyed by the code in memory, and deferred machine code."""
