"""Learners that keep a table of Q and no model."""
