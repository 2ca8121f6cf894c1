"""Policies of a run in a large world: rows of the states that have one, and a rule for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi import ids, validation
from ravi.core import MDP, Array, an_mdp
from ravi.large.learner import BAD_REWARD, Rule, meet
from ravi.large.memory import NONE, empty_memory, with_room
from ravi.large.worlds import World, mistake_of, of_mdp, output_index, policy_record
from ravi.runtime import tree
from ravi.runtime.result import Run
from ravi.runtime.world import stored_batch


def large(world: World | MDP | str) -> World:
    """A large world: itself, that of an MDP, or that of an id, `large/grid,1000` or `riverswim/6`."""
    made = ids.world(world) if isinstance(world, str) else world
    return made if isinstance(made, World) else of_mdp(an_mdp(made))


def snapshot(run: Run, world: World | MDP | str, row: int = 0, *, output: bool = False) -> Snapshot:
    """The policy of the last epoch of seed `row` of a run; or the output policy, that of step I, uniform on 1, ..., T,
    whose expected gap is regret / T. `world` is the one that the run was made in."""
    validation.instance(run, Run, "run", "a run in a large world")
    if run.world != "large":
        raise validation.InputError(f"the run was made in a world that is {run.world}: its last_policy is a table")
    here = large(world)
    learner = here.learner(run.learner, run.steps)
    if (run.mdp, run.mdp_digest) != (here.name, here.digest):
        raise validation.InputError(
            f"the run was made in {run.mdp} of digest {run.mdp_digest}, not {here.name} of {here.digest}"
        )
    batch = run.batch
    if isinstance(batch, dict):
        batch = stored_batch(here, run, learner, here.scores(learner, run.steps, run.options).measures)
    row = validation.whole(row, "row", 0, len(run.seeds) - 1)
    walkers, state, (recorded,) = tree.seed(batch, row)
    of = recorded.output if output else policy_record(state.epoch, state.steps[0, 1:], state.memory)
    if output and not of.epoch[0]:
        raise validation.InputError(
            f"the output policy is that of play {output_index(walkers.key[0], run.steps):,}, and the run was stopped "
            f"after {walkers.time[0]:,}"
        )
    rule: Any = learner.parts
    return Snapshot(here, rule, int(of.epoch[0]), int(of.mirror_steps[0]), *of[2:])


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """A policy: rows of the states that have one of their own, and the rule for all others."""

    world: World
    rule: Rule
    epoch: int  # k
    mirror_steps: int  # that an unvisited state has made
    met: Array  # states that were met, ascending                     (S,)
    row: Array  # the row of each, or -1: pi_0                        (S,)
    policy: Array  # pi_k                                             (R, A)

    def rows(self, states: Any) -> Array:
        """pi_k(. | x) of these states   (n, A)."""
        x = np.atleast_1d(np.asarray(states, np.int64))
        if len(x) and not (x.min() >= 0 and x.max() < self.world.states):
            raise validation.InputError(f"states are 0 to {self.world.states - 1}, not {x.min()} to {x.max()}")
        known = np.isin(x, self.met)
        own = self.row[np.searchsorted(self.met, x[known])]
        out = np.empty((len(x), self.world.actions))
        out[known] = _policy_of(own, self.policy)
        out[~known] = self._unvisited(x[~known])
        return out

    def _unvisited(self, states: Array) -> Array:
        """The policy of states that were never met   (n, A): they are met in a memory of their own."""
        memory, slots, bad = empty_memory(self.world.actions), np.empty(len(states), np.int64), np.zeros(3)
        steps, begin = np.full(2, self.mirror_steps), 0
        while begin < len(states):
            begin, right = meet(self.world.source, self.rule, steps, bad, memory, states, slots, begin)
            if not right:
                raise validation.InputError(mistake_of(self.world, BAD_REWARD, bad))
            memory = with_room(memory)
        return _policy_of(memory.row[slots], memory.policy)

    def table(self) -> Array:
        """pi_k of every state   (X, A)."""
        return self.rows(np.arange(self.world.states))

    def return_of(self, mdp: MDP | None = None, tol: float = 1e-10) -> float:
        """rho(pi_k), exactly to (1 - gamma) tol, in the MDP of this world, or in one that is given."""
        from ravi.planning.evaluation import return_of

        mdp = self.world.mdp if mdp is None else mdp
        if mdp is None:
            raise validation.InputError(f"{self.world.name} is given by functions: a return needs its MDP")
        return float(return_of(mdp, self.table(), tol))

    def __repr__(self) -> str:
        return f"<Snapshot of epoch {self.epoch}: {len(self.policy):,} rows, X={self.world.states:,}>"


def _policy_of(rows: Array, policy: Array) -> Array:
    """The policy of these rows, which is uniform where there is none."""
    out = np.full((len(rows), policy.shape[1]), 1 / policy.shape[1])
    out[rows != NONE] = policy[rows[rows != NONE]]
    return out
