"""RAVI with sets of kernels in place of bonuses."""
