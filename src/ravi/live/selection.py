"""Best-policy selection: a policy of a run that is a good one with high probability, by rollouts from resets.

The Discussion names it and omits the details; `ravi.theory.selection` derives them. J policies of uniform times are
kept as the run goes on (`candidates`). Each is then played W times from a reset to the next, and judged by the reward
of the last step before the reset, whose pair has the law mu^pi: its mean is the normalised return, and it is in [0, 1].
The best by these means has, with probability 1 - delta over times and rollouts, given the run,

    gap <= 2 regret / T + epsilon.

Policies of one's own are judged alike: the chosen one is within epsilon of the best of them.

A rollout is a cycle of `ravi.live.policies.playing`: rollout w of every candidate has the same resets and the same
numbers for actions. The bound does not mind, and differences are less noisy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi.core import MDP, Array, Floats, Ints, Measure, Path, Problem, a_problem
from ravi.planning.certificates import tables
from ravi.random import CYCLE, block, uniform
from ravi.runtime.result import Run
from ravi.runtime.walk import draw, find, world_of
from ravi.theory import selection as theory
from ravi.validation import InputError, StreamError, policy_table

FIRST = 4  # numbers FIRST, FIRST + 1, ... of step 0 draw the times of the candidates
BEGIN = 4  # the number of a rollout's first block that draws where it begins


class Candidates(NamedTuple):
    index: Any  # I_j            (n, J)
    policy: Array  # pi_{I_j}    (n, J, X, A), or (n, J, S, X, A)


def candidates(problem: Problem, steps: int, delta: float = 0.05, *, stages: int = 0) -> Measure:
    """A measure that keeps the policies of J = ceil(log2(2 / delta)) uniform times; `select` takes the run.

    Parameters
    ----------
    problem : Problem
        Of the run, for the shapes of its policies.
    steps
        T.
    delta
        The probability with which the guarantee of the selected policy may fail.
    stages
        S of a learner whose policy is by age.

    Returns
    -------
    Measure
        For `measures` of `ravi.run`.

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/3")
    >>> made = ravi.run("psrl", mdp, 200, seeds=1, measures=[ravi.candidates(mdp.problem, 200)])
    >>> made.results["candidate_policy"].shape  # seeds, candidates, X, A
    (1, 6, 3, 2)
    """
    J = theory.candidates(validation.probability(delta, "delta"))
    problem = a_problem(problem)
    S = validation.whole(stages, "stages", 0)
    T, shape = validation.steps(steps), ((S,) if S else ()) + (problem.states, problem.actions)

    def init(keys: Array) -> Candidates:
        index = [[1 + int(T * uniform(key, 0, FIRST + j)) for j in range(J)] for key in keys]
        return Candidates(np.array(index, np.int64), np.full((len(keys), J, *shape), np.nan))

    def record(m: Candidates, state: Any, path: Path, opening: bool) -> Candidates:
        first, after = path.time[:, None], (path.time + path.length)[:, None]
        for i, j in np.argwhere((first <= m.index) & (m.index < after)):
            m.policy[i, j] = state.policy[i]
        return m

    def results(m: Candidates) -> dict[str, Array]:
        return {"candidate_index": m.index, "candidate_policy": m.policy}

    return Measure("candidates", init, record, results)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Selected:
    """The candidate with the largest mean.

    Attributes
    ----------
    policy
        As it was given: a table of shape (X, A) or (S, X, A), or a `Policy`.
    index
        The place of the policy among the candidates.
    estimates
        Estimates of normalised returns, in [0, 1], of shape (J,).
    times
        The times of the candidates, for a run, of shape (J,).
    epsilon
        How far below the best candidate it may be.
    delta
        The probability with which it may be further below.
    rollouts
        W, the rollouts of each candidate.
    plays
        The number of plays in all.
    claim
        What holds with probability 1 - delta.

    Examples
    --------
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/3")
    >>> ravi.select([ravi.solve(mdp).policy], mdp, epsilon=0.5).claim
    'within 0.5 of the best of them'
    """

    policy: Any
    index: int
    estimates: Floats
    times: Ints | None
    epsilon: float
    delta: float
    rollouts: int
    plays: int
    claim: str

    def __repr__(self) -> str:
        return (
            f"<Selected candidate {self.index} of {len(self.estimates)}: estimate {self.estimates[self.index]:.6g}, "
            f"{self.rollouts:,} rollouts each, {self.plays:,} steps in all; {self.claim} with probability "
            f"{1 - self.delta:g}>"
        )


def select(
    policies: Run | Sequence[Any] | Array,
    world: MDP | Any,
    epsilon: float,
    delta: float = 0.05,
    *,
    which: int = 0,
    seed: int | None = None,
    discount: float | None = None,
    reward_range: tuple[float, float] | None = None,
    termination: str | None = None,
) -> Selected:
    """The best of the candidates of a run, or of `policies` (tables or `Policy`), by rollouts in `world`.

    Parameters
    ----------
    policies
        A run that recorded `ravi.candidates`, or tables (X, A), or `Policy` objects.
    world
        An MDP or its id, or an environment, given as for `ravi.live.policies.evaluate`.
    epsilon
        How far below the best candidate the selected one may be, as a normalised return.
    delta
        The probability with which it may be further.
    which
        The index of the run's seed.
    seed
        Of the rollouts; a run's own unless given (their numbers are beyond those that it used).
    discount, reward_range, termination
        For tables in an environment; a run or a `Policy` has its own.

    Returns
    -------
    Selected
        The policy, its place among the candidates, and the estimates of all.

    Examples
    --------
    >>> import numpy as np
    >>> import ravi
    >>> mdp = ravi.mdp("riverswim/3")
    >>> policies = [ravi.solve(mdp).policy, np.full((3, 2), 0.5)]
    >>> ravi.select(policies, mdp, epsilon=0.1).index
    0
    """
    eps, delta = validation.positive(epsilon, "epsilon"), validation.probability(delta, "delta")
    tables, times, failing, origin = _candidates_of(policies, which, delta)
    seed = validation.whole(origin.get("seed", 0) if seed is None else seed, "seed", 0, 2**63 - 1)
    J = len(tables)
    W = theory.rollouts_of(J, eps, failing)
    mdp = _mdp_of(world)
    if mdp is not None:
        found = [_on_mdp(_table(one), mdp, W, seed) for one in tables]
    else:
        units = None if reward_range is None else validation.units(reward_range, "reward_range")
        given = {"discount": discount, "units": units}
        facts = {name: origin.get(name) if value is None else value for name, value in given.items()}
        found = [_on_stream(one, world, W, seed, termination, facts) for one in tables]
    estimates = np.array([mean for mean, _ in found])
    best = int(np.argmax(estimates))
    claim = f"gap <= 2 regret / T + {eps:g}" if times is not None else f"within {eps:g} of the best of them"
    return Selected(
        policy=tables[best], index=best, estimates=estimates, times=times, epsilon=eps, delta=delta, rollouts=W,
        plays=sum(plays for _, plays in found), claim=claim,
    )  # fmt: skip


def _candidates_of(policies: Any, which: int, delta: float) -> tuple[list[Any], Array | None, float, dict[str, Any]]:
    """The candidates, their times, what may fail of their rollouts, and what a run says of itself."""
    if not isinstance(policies, Run):
        validation.instance(policies, Iterable, "policies", "a run, or a list of policies")
        tables = list(policies)
        if not tables:
            raise InputError("policies is empty; there must be at least one")
        return tables, None, delta, {}
    if "candidate_policy" not in policies.results:
        raise InputError("the run kept no candidates: make it with measures=[ravi.candidates(problem, steps, delta)]")
    if not policies.complete:
        raise InputError("the run is not complete: its candidates are policies of all its times")
    row = validation.whole(which, "which", 0, len(policies.seeds) - 1)
    kept, J = policies.results["candidate_policy"][row], theory.candidates(delta)
    if len(kept) < J:
        raise InputError(f"the run kept {len(kept)} candidates; delta = {delta:g} needs {J}")
    origin = {"seed": policies.seeds[row], "discount": policies.discount, "units": policies.units}
    return list(kept), policies.results["candidate_index"][row], delta / 2, origin


def _mdp_of(world: Any) -> MDP | None:
    if isinstance(world, str):
        from ravi import ids

        return ids.mdp(world) if ids.names_an_mdp(world) else None
    return world if isinstance(world, MDP) else None


def _table(policy: Any) -> Array:
    return validation.finite(getattr(policy, "table", policy), "policy")


def _on_mdp(table: Array, mdp: MDP, rollouts: int, seed: int) -> tuple[float, int]:
    """The mean of the last rewards of rollouts, and their steps."""
    stages = policy_table(table, mdp)  # (X, A), or by age
    stages = np.ascontiguousarray(stages if stages.ndim == 3 else stages[None])
    tables(mdp)  # an error where there is no discount
    world = world_of(mdp)
    of = world.successors, world.cumulative, world.initial, world.restart
    total, plays = _rollouts(*of, stages, mdp.rewards, np.uint64(seed), rollouts)
    return total / rollouts, int(plays)


@compiled
def _rollouts(successors, cumulative, initial, restart, policy, rewards, key, rollouts):  # type: ignore[no-untyped-def]
    total, plays, last = 0.0, 0, policy.shape[0] - 1
    for w in range(rollouts):
        t, age = (w + 1) * CYCLE, 0
        x = find(initial, uniform(key, t, BEGIN))
        while True:
            u_reset, u_action, u_successor, _ = block(key, t + age, 0)
            a = draw(policy[min(age, last), x], u_action)
            plays += 1
            if u_reset < restart:
                total += rewards[x, a]
                break
            x = successors[x, a, find(cumulative[x, a], u_successor)]
            age += 1
    return total, plays


def _on_stream(
    policy: Any, env: Any, rollouts: int, seed: int, termination: str | None, facts: dict[str, Any]
) -> tuple[float, int]:
    """The same in an environment. What terminates goes on earning 0 until its reset."""
    from ravi.live.policies import Policy, play
    from ravi.live.rewards import RewardRange

    if not isinstance(policy, Policy):
        if facts["discount"] is None or facts["units"] is None:
            raise InputError("tables in an environment need discount and reward_range; a Policy has its own")
        policy = Policy(table=policy, discount=facts["discount"], units=facts["units"])
    units, total, plays = RewardRange(*policy.units), 0.0, 0
    for each in play(policy, env, rollouts, seed=seed, termination=termination):
        plays += 1
        if each.end == "truncated":
            raise StreamError(f"rollout {each.cycle + 1} was truncated: give an environment without a time limit")
        if each.end:
            try:
                total += units.part(each.reward if each.end == "reset" else 0.0)
            except InputError as error:
                raise StreamError(f"rollout {each.cycle + 1}: the reward {error}") from None
    return total / rollouts, plays
