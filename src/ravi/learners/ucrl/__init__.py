"""Optimism over sets of kernels, planned to the end by extended value iteration."""
