"""Reconstructions, and methods written without the paper's text at hand: see the label Trust of each."""
