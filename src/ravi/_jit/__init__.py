"""What surrounds Numba: a cache that is keyed by the code in memory, and machine code that is made when it is needed."""
