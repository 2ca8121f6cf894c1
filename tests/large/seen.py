"""A run of one seed in a large world, with what it shows by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import ravi
from ravi.large.snapshots import large, snapshot
from ravi.large.worlds import output_index
from ravi.runtime import tree


def world_of(world, unvisited="iterated"):
    """A large world, also that of an MDP or of its id, whose unvisited states are filled in this way."""
    return replace(large(world), unvisited=unvisited)


class Seen:
    def __init__(self, run, world):
        self.run, self.world = run, world
        self.plays, self.complete = int(run.plays[0]), run.complete
        self.reward, self.earned = run.results["reward"][0], run.results["reward_total"][0]
        self.epochs, self.met, self.visited, self.unsettled = (
            int(run.results[name][0]) for name in ("epochs", "met", "visited", "unsettled")
        )
        self.output_index = output_index(run.seeds[0], run.steps)

    @property
    def nbytes(self):
        return tree.size(self.run.state.memory)

    @cached_property
    def last(self):
        return snapshot(self.run, self.world)

    @cached_property
    def output(self):
        return snapshot(self.run, self.world, output=True)


def run_large(world, steps, seed=0, *, learner="ravi-ucb", unvisited="iterated", **options):
    given = world_of(world, unvisited)
    return Seen(ravi.run(learner, given, steps, [seed], **options), given)
