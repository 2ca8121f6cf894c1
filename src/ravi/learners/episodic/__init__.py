"""Learners for episodes of a fixed length, with a policy for every stage."""
