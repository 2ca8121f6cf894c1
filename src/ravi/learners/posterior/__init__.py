"""Posterior sampling."""
