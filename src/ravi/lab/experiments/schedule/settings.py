"""A run is a setting (MDP, learner, T, what is kept) and a seed. Its id is a hash of that content."""

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from ravi.runtime.settings import VARIED

CURVES = ("reward", "trajectory")  # what `record` may name, besides the regret, which is always kept


@dataclass(frozen=True)
class Setting:
    """All that decides the bits of a run, but for its seed and the versions of what computes it."""

    mdp: str  # its id, or the path of its file
    mdp_digest: str  # a hash of all its numbers
    learner: str  # its canonical id (`ravi.ids.canonical`)
    source: str  # a hash of the learner's file, where it is not this library's own (`ravi.ids.source_of`)
    steps: int  # T
    points: int  # at how many times curves are kept
    record: tuple[str, ...] = ()  # which of CURVES are kept too

    @cached_property
    def digest(self) -> str:
        """The id of the setting. How the MDP is called does not enter, only what it is."""
        content = {
            "mdp": self.mdp_digest, "learner": self.learner, "source": self.source,
            "steps": self.steps, "points": self.points, "record": sorted(self.record),
        }  # fmt: skip
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """A key that settings share if they differ only in multipliers of one learner, and so can run as one batch."""
        name, *options = self.learner.split(",")
        fixed = [option for option in options if option.partition("=")[0] not in VARIED]
        return self.mdp_digest, name, *fixed, self.source, self.steps, self.points, self.record
