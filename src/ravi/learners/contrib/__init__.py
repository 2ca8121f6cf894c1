"""Reconstructions, and methods that are given from memory: see the label Trust of each."""
