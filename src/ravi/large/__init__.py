"""How is a world with millions of states learned in? With memory and time set by what was met, not by X."""

from ravi.large.running import Stopped, resume, run_large
from ravi.large.runs import Large, Snapshot
from ravi.large.worlds import World, of_mdp, procedural

__all__ = ["Large", "Snapshot", "Stopped", "World", "of_mdp", "procedural", "resume", "run_large"]
