"""Worlds with millions of states: memory and time are set by the states that were met, not by X."""

from ravi.large.snapshots import Snapshot, snapshot
from ravi.large.worlds import World, grid, of_mdp, procedural

__all__ = ["Snapshot", "World", "grid", "of_mdp", "procedural", "snapshot"]
