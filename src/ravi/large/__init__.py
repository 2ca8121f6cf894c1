"""How is a world with millions of states learned in? With memory and time set by what was met, not by X."""

from ravi.large.running import Large, Snapshot, run_large
from ravi.large.worlds import World, of_mdp, procedural

__all__ = ["Large", "Snapshot", "World", "of_mdp", "procedural", "run_large"]
