"""Bonuses and confidence sets: how a learner is optimistic."""
