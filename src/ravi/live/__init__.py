"""Learners on streams that are not simulated: agents that act and observe, and adapters of environments."""
