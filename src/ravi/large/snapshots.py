"""What is a policy of a run in a large world? Rows of the states that have one, and a rule for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ravi import ids, validation
from ravi._jit.functions import compiled
from ravi.core import MDP, Array, an_mdp
from ravi.large.memory import NONE
from ravi.large.playing import Rule, bonus, cut, mirror_rows, tilted
from ravi.large.rules import rule_of
from ravi.large.running import Met, kept, output_index
from ravi.large.worlds import World, of_mdp, reward_of
from ravi.runtime import tree
from ravi.runtime.result import Run
from ravi.runtime.world import taken_up


def large(world: World | MDP | str) -> World:
    """A large world: itself, that of an MDP, or that of an id, `large/grid,1000` or `riverswim/6`."""
    made = ids.world(world) if isinstance(world, str) else world
    return made if isinstance(made, World) else of_mdp(an_mdp(made, "world"))


def snapshot(run: Run, world: World | MDP | str, row: int = 0, *, output: bool = False) -> Snapshot:
    """The policy of the last epoch of seed `row` of a run; or the output policy, that of step I, uniform on 1, ..., T,
    whose expected gap is regret / T. `world` is the one that the run was made in."""
    validation.instance(run, Run, "run", "a run in a large world")
    if run.world != "large":
        raise validation.InputError(f"the run was made in a world that is {run.world}: its last_policy is a table")
    here = Met(large(world))
    learner = here.learner(run.learner, run.steps)
    if (run.mdp, run.mdp_digest) != (here.name, here.digest):
        raise validation.InputError(
            f"the run was made in {run.mdp} of digest {run.mdp_digest}, not {here.name} of {here.digest}"
        )
    batch = run.batch
    if isinstance(batch, dict):
        batch = taken_up(here, run, learner, here.scores(learner, run.steps, run.options).measures)
    row = validation.whole(row, "row", 0, len(run.seeds) - 1)
    walkers, state, (recorded,) = tree.seed(batch, row)
    of = recorded.output if output else kept(state.epoch, state.steps[0, 1:], state.memory)
    if output and not of.epoch[0]:
        raise validation.InputError(
            f"the output policy is that of play {output_index(walkers.key[0], run.steps):,}, and the run was stopped "
            f"after {walkers.time[0]:,}"
        )
    rule = rule_of(run.learner, here.world, run.steps)
    return Snapshot(here.world, rule, int(of.epoch[0]), int(of.mirror_steps[0]), *of[2:])


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
        out = np.full((len(x), self.world.actions), 1 / self.world.actions)
        at, known = np.searchsorted(self.met, x), np.isin(x, self.met)
        own = np.nonzero(known)[0]
        own = own[self.row[at[own]] != NONE]
        out[own] = self.policy[self.row[at[own]]]
        if not known.all():
            out[~known] = _unvisited(self.world, self.rule, x[~known], self.mirror_steps)
        return out

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


def _unvisited(world: World, rule: Rule, states: Array, steps: int) -> Array:
    """The policy of states that were never met, after so many mirror steps with q   (n, A)."""
    q = _unplayed(world.source, rule, states, world.actions)
    distinct, which = np.unique(q, axis=0, return_inverse=True)
    log_policy = np.full(distinct.shape, np.log(1 / world.actions))
    policy = np.full(distinct.shape, 1 / world.actions)
    if rule.closed:
        _tilted(distinct, rule.eta, steps, log_policy, policy)
    else:
        moves = np.ascontiguousarray(distinct[distinct.min(-1) < distinct.max(-1)])
        log_moved, moved = np.full(moves.shape, np.log(1 / world.actions)), np.full(moves.shape, 1 / world.actions)
        for _ in range(steps if len(moves) else 0):
            mirror_rows(log_moved, moved, moves, rule.eta)
        policy[distinct.min(-1) < distinct.max(-1)] = moved
    return policy[which.reshape(-1)]


@compiled
def _unplayed(source, rule, states, actions):  # type: ignore[no-untyped-def]
    """q of these states."""
    q = np.empty((states.shape[0], actions))
    for i in range(states.shape[0]):
        for a in range(actions):
            q[i, a] = cut(rule, reward_of(source, states[i], np.int64(a)) + bonus(rule, 1))
    return q


@compiled
def _tilted(q, eta, steps, log_policy, policy):  # type: ignore[no-untyped-def]
    for i in range(q.shape[0]):
        if q[i].min() < q[i].max():
            tilted(q[i], eta, steps, log_policy[i], policy[i])
