"""`ravi.evaluate`: the value of a policy of any form, in an MDP or in an environment."""

from __future__ import annotations

import os
from typing import Any, overload

from numpy.typing import ArrayLike

from ravi import ids
from ravi.core import MDP, AnyMDP, Playable
from ravi.live.environment import is_an_mdp, opened_world
from ravi.live.learned import Learned
from ravi.live.policies import Policy
from ravi.live.policies import evaluation as of_policies
from ravi.live.policies.evaluation import Progress
from ravi.planning import evaluation as of_tables
from ravi.planning.average import AverageSolution
from ravi.planning.solver import Solution
from ravi.validation import InputError

Numbers = ArrayLike | Solution | AverageSolution
TOLERANCE = 1e-10


@overload
def evaluate(policy: MDP, on: Numbers, tol: float = TOLERANCE) -> of_tables.Evaluation: ...
@overload
def evaluate(
    policy: Policy | Learned, on: Playable | AnyMDP | None = None, tol: float = TOLERANCE, *,
    discount: float | None = None, cycles: int = 1000, seed: int = 0, confidence: float = 0.95,
    termination: str | None = None, allow_code: bool = False, progress: Progress | None = None,
) -> of_policies.Evaluation: ...  # fmt: skip
@overload
def evaluate(policy: Numbers, on: MDP, tol: float = TOLERANCE) -> of_tables.Evaluation: ...
@overload
def evaluate(
    policy: Any = None, on: Any = None, tol: float = TOLERANCE, *, discount: float | None = None,
    cycles: int = 1000, seed: int = 0, confidence: float = 0.95, termination: str | None = None,
    allow_code: bool = False, progress: Progress | None = None,
    mdp: Any = None,
) -> Any: ...  # fmt: skip


def evaluate(
    policy: Any = None,
    on: Any = None,
    tol: float = TOLERANCE,
    *,
    discount: float | None = None,
    cycles: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    termination: str | None = None,
    allow_code: bool = False,
    progress: Progress | None = None,
    mdp: Any = None,
) -> Any:
    """The value of a policy: computed and certified in an MDP, sampled in an environment.

    Numbers in an MDP give numbers: V, Q and the normalised return, until ||V - V^pi|| <= tol or as closely as float64
    can tell. Few states are eliminated exactly, and so are many within a narrow band; others are swept, with a Krylov
    method where sweeps are slow. One more sweep, of T_pi, certifies the answer by the formula of `ravi.solve`, with
    2^-52 A and the largest |row sum - 1| of the policy more in front of (1 + max |W|). A policy has the same answer,
    bit for bit, alone and in a batch.

    A `Policy`, and whatever is evaluated in an environment, gives the expected discounted return in the units of the
    rewards, and the optimum beside it where there is a transition table (`ravi.live.policies.evaluate`).

    Parameters
    ----------
    policy
        pi(a | x), (X, A), or several, (n, X, A); the number of an action for each state, (X,); what `ravi.solve` or
        `ravi.learn` returns; a `Policy`, or its file. It may also come second, after the MDP.
    on
        An MDP, its id or its file; an environment or its id; a function of no arguments that gives one. A
        `Policy` knows where it was learned, unless given.
    tol
        The error of V that is aimed at, for numbers in an MDP.
    discount
        gamma, for numbers in an environment, or for an MDP in a file that has none.
    cycles, seed, confidence
        Of an environment: how many cycles are played, from reset to reset, by which random numbers, and the level of
        their interval.
    termination
        What an environment's end stands for, "absorb" or "restart"; as the policy was learned, unless given.
    allow_code
        A policy from a file may name a module for its environment, whose code is then run.
    progress
        Called with the number of cycles played, and in all.
    mdp
        Another word for `on`.

    Returns
    -------
    Evaluation
        Of numbers in an MDP: V^pi, Q^pi, the normalised return rho(pi), and a certified bound on their errors; in the
        average reward, of a `Policy` too, gain and bias by state; in episodes V^pi and Q^pi by stage. Else the
        return in the units of the rewards, computed and sampled.

    Examples
    --------
    >>> import ravi
    >>> ravi.evaluate([1, 1, 1, 1, 1, 1], "riverswim/6")  # one action per state
    <Evaluation: return 0.233..., V and Q ± ...>
    >>> best = ravi.solve("riverswim/6")
    >>> bool(abs(ravi.evaluate(best, "riverswim/6").returns - best.optimum) < 1e-9)
    True
    >>> print(ravi.evaluate(ravi.Policy(table=best.policy, discount=0.95), "riverswim/6"))
    policy of one's own
      on               riverswim/6 (gamma 0.95)
      value, computed  ...
    """
    policy, on = ids.called(policy), ids.called(mdp if on is None else on)
    if (is_an_mdp(policy) or _is_an_environment(policy)) and not _is_a_file(policy):
        policy, on = on, policy
    if _is_a_file(policy):
        policy = Policy.load(policy)
    if isinstance(policy, Learned):
        policy = policy.policy()
    sampling: dict[str, Any] = {"cycles": cycles, "seed": seed, "confidence": confidence, "termination": termination}
    sampling |= {"allow_code": allow_code, "progress": progress}
    if isinstance(policy, Policy):
        if is_an_mdp(on) and ids.mdp(on, discount=discount).criterion != "discounted":
            return of_tables.evaluate(ids.mdp(on, discount=discount), policy.table, tol)
        return of_policies.evaluate(policy, ids.mdp(on, discount=discount) if is_an_mdp(on) else on, **sampling)
    if policy is None:
        raise InputError("policy is None: give an array, a Policy, or what ravi.solve or ravi.learn returns")
    if on is None:
        raise InputError("on is None: an array does not say where it is played; name an MDP or an environment")
    if not _is_an_environment(on):
        return of_tables.evaluate(ids.mdp(on, discount=discount), policy, tol)
    if discount is None:
        raise InputError("discount is None: an environment has none, so give it, such as discount=0.99")
    with opened_world(on) as world:
        numbers = Policy.of(world, policy, discount, termination=termination or "absorb")
        return of_policies.evaluate(numbers, world, **sampling)


def _is_a_file(policy: Any) -> bool:
    return isinstance(policy, (str, os.PathLike)) and os.fspath(policy).endswith(".policy")


def _is_an_environment(on: Any) -> bool:
    """Whether this is an environment, or the id of one."""
    return hasattr(on, "observation_space") or (isinstance(on, str) and ids.names_an_environment(on))
