"""The worth of a policy in the units of the rewards: computed where that can be done, sampled everywhere.

The worth of a policy is <nu_0, V^pi>, the expected sum of discounted rewards from a reset, in the units of the rewards.
Two ways to it:

computed   where the kernel is known, an MDP or an environment with a transition table: with a bound on its error, and
           beside it the optimum, so that what the policy loses is computed too
sampled    in every environment, by cycles. A cycle goes from a reset to the next, which follows each play with
           probability 1 - gamma; play j of it (j = 0, 1, ...) is reached with probability gamma^j, so the plain sum of
           a cycle's rewards has the expectation sum_j gamma^j E[r_j] = <nu_0, V^pi>, and nothing is cut off
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import ceil, isfinite, log
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi import validation
from ravi.core import MDP, Array, Playable
from ravi.live.estimates import Estimate, of_episodes, student_estimate
from ravi.live.policies.playing import check_size, labels_of, play_cycles, stream_of
from ravi.live.policies.policy import Policy
from ravi.live.rewards import RewardRange
from ravi.validation import OF_CRITERION, InputError, StreamError

if TYPE_CHECKING:
    from ravi.live.environment import Environment

Progress = Callable[[int, int], None]  # cycles done, cycles in all
REST = 0.01  # of a return, after which an episode is cut
TOLERANCE = 1e-12  # of V, in the learner's units, where rounding allows
ROUNDING = 2.0**-50  # of a value in units: a product and a sum, each to 2^-53 of what they handle, and H to spare


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """<nu_0, V^pi> of a policy in the units of the rewards: computed, sampled, or both.

    Attributes
    ----------
    policy
        The name of the policy.
    on
        The name of the environment, or of the MDP.
    discount
        gamma.
    exact
        The return, computed.
    exact_error
        At least |exact - <nu_0, V^pi>|.
    optimum
        <nu_0, V*>, computed.
    optimum_error
        A bound on its error.
    no_table
        Why nothing could be computed.
    mean
        The mean of the cycles that were not truncated.
    low
        The lower end of the interval around the mean.
    high
        The upper end of that interval.
    confidence
        The probability with which the interval holds.
    cycles
        The number of cycles that were played.
    truncated
        The number of cycles that the environment cut, which are left out.
    unknown
        The number of plays in states that the policy has no row for.
    plays
        The number of plays.
    seed
        The seed of the environment.
    """

    policy: str
    on: str
    discount: float
    exact: float | None = None
    exact_error: float | None = None
    optimum: float | None = None
    optimum_error: float | None = None
    no_table: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    cycles: int = 0
    truncated: int = 0
    unknown: int = 0
    plays: int = 0
    seed: int | None = None

    @property
    def gap(self) -> float | None:
        """What the policy loses, computed; at most the sum of both errors off."""
        return None if self.exact is None or self.optimum is None else self.optimum - self.exact

    def json(self) -> dict[str, Any]:
        """Numbers only; an interval without ends has none."""
        found = asdict(self) | {"gap": self.gap}
        return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in found.items()}

    def __repr__(self) -> str:
        computed = "" if self.exact is None else f"; value {self.exact:.6g} ± {self.exact_error:.1g}"
        sampled = "" if self.mean is None else f"; sampled {self.mean:.6g}"
        where = "" if f" on {self.on}" in self.policy else f" on {self.on}"
        return f"<Evaluation of policy {self.policy}{where}{computed}{sampled}>"

    def __str__(self) -> str:
        return "\n".join(
            [f"policy {self.policy}", f"  on               {self.on} (gamma {self.discount:.10g})", *self._lines()]
        )

    def _lost(self) -> str:
        gap, error = self.gap or 0.0, (self.exact_error or 0.0) + (self.optimum_error or 0.0)
        return f"{gap:.6g}" if gap > error else f"at most {max(gap, 0.0) + error:.1e}"

    def _lines(self) -> Iterator[str]:
        if self.exact is not None:
            yield f"  value, computed  {self.exact:.9g}  (error at most {self.exact_error:.1e})"
        if self.optimum is not None:
            yield f"  optimum          {self.optimum:.9g}  (error at most {self.optimum_error:.1e})"
            yield f"  lost             {self._lost()}"
        if self.no_table:
            yield f"  not computed     {self.no_table}"
        if self.mean is not None and self.low is not None and self.high is not None:
            ends = f"(approximate {100 * (self.confidence or 0):.6g} % interval {self.low:.6g} to {self.high:.6g})"
            if not isfinite(self.low):
                ends = "(no interval: cycles without spread)" if self.cycles > 1 else "(no interval: one cycle)"
            yield f"  value, sampled   {self.mean:.6g}  {ends}"
        if self.cycles:
            yield f"  from             {self.cycles:,} cycles, {self.plays:,} steps"
        if self.truncated:
            yield (
                f"  truncated        {self.truncated:,} cycles, left out: long cycles are cut more often, "
                "so what is left is not a fair sample"
            )
        if self.unknown:
            yield f"  unknown states   {self.unknown:,} steps, by uniform actions"


def evaluate(
    policy: Policy,
    env: Playable | MDP | str | None = None,
    *,
    cycles: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    termination: str | None = None,
    allow_code: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """The return of `policy` on `env`: an MDP or its id, a Gymnasium environment or its id, or an `Environment`.

    None is the environment that it was learned in. On an MDP the answer is computed. An environment is sampled, and
    computed too where it has a transition table. `termination` is the policy's own unless given. allow_code: the policy
    may name a module, `module:Env-v0`, for the environment that it was learned in, whose code is then run
    (docs/guides/security.md).

    Sampling is a pure function of the seed where the environment is one of its own; the numbers are others than those
    of a learner with the same seed, so that a policy is not judged by the luck it was learned from. The interval is
    Student's t on the cycles' sums. It is asymptotic: a cycle's length is geometric, so a sum has a finite variance but
    no bound, and where few cycles earn most of the reward, few cycles say little. An interval for any number of cycles
    comes from Hoeffding's bound on H times the last reward of each cycle (unbiased too): its half-width
    H (high - low) sqrt(log(2 / (1 - confidence)) / (2 cycles)) is 4.3 for a thousand cycles, rewards in [0, 1] and
    gamma = 0.99, more than most policies earn. So it is not given. Cycles all of the same sum give no interval.

    Truncated cycles are counted and left out, which favours short cycles: an environment without a time limit is what
    should be given (one made from an id has none).
    """
    validation.instance(policy, Policy, "policy", "a Policy: ravi.load_policy reads one, and learned.policy() is one")
    n, level = validation.whole(cycles, "cycles"), validation.probability(confidence, "confidence")
    if isinstance(env, str):
        from ravi import ids

        env = ids.mdp(env) if ids.names_an_mdp(env) else env
    if isinstance(env, MDP):
        if env.criterion != "discounted":
            raise InputError(
                f"{env.name} is {OF_CRITERION[env.criterion]}, and this evaluation is for a discount: "
                "ravi.evaluate(policy, mdp) is for every criterion"
            )
        computed = _computed(policy, env, policy.environment.get("termination") == "absorb")
        return Evaluation(policy=policy.origin, on=env.name, discount=env.discount, **computed)
    with stream_of(policy, env, termination=termination, seed=seed, allow_code=allow_code) as stream:
        computed = _from_table(policy, stream)
        sampled = _sampled(policy, stream, n, seed, level, progress)
    return Evaluation(policy=policy.origin, on=stream.name, discount=policy.discount, **computed, **sampled)


def _sampled(
    policy: Policy, stream: Environment, cycles: int, seed: int, level: float, progress: Progress | None
) -> dict[str, Any]:
    sums: list[float] = []
    total, made, unknown, truncated = 0.0, 0, 0, 0
    for each in play_cycles(policy, stream, cycles, seed):
        total, made, unknown = total + each.reward, made + 1, unknown + (not each.known)
        if not each.end:
            continue
        if each.end == "truncated":
            truncated += 1
        else:
            sums.append(total)
        total = 0.0
        if progress is not None and (each.cycle + 1) % max(1, cycles // 100) == 0:
            progress(each.cycle + 1, cycles)
    counted = {"cycles": cycles, "truncated": truncated, "unknown": unknown, "plays": made, "seed": seed}
    if not sums:
        return counted
    mean, low, high, *_ = student_estimate(np.array(sums), "cycle", level)
    return counted | {"mean": mean, "low": low, "high": high, "confidence": level}


def estimate_by_episodes(policy: Policy, env: Any, steps: int, limits: tuple[float, float] | None) -> Estimate | None:
    """The return of a policy, from episodes of about so many steps in all; the last one is played to its end.

    They are cut where what follows weighs less than `REST`. limits: the range of rewards, if it is known; a reward
    outside of it is an error, since the interval rests on it.
    """
    units = None if limits is None else RewardRange(*limits)
    returns: list[float] = []
    rest: list[float] = []
    total, made, gamma = 0.0, 0, policy.discount
    length = ceil(log(REST) / log(gamma))
    with stream_of(policy, env, seed=policy.seed) as stream:
        for each in play_cycles(policy, stream, max(steps, 0), policy.seed, length):
            total, made = total + gamma**each.age * each.reward, made + 1
            if units is not None:
                try:
                    units.part(each.reward)
                except InputError as error:
                    raise StreamError(f"{stream.name}, step {made}: the reward {error}") from None
            if each.end:
                returns.append(total)
                rest.append(0.0 if each.end == "terminated" else gamma ** (each.age + 1))
                total = 0.0
                if made >= steps:
                    break
    return of_episodes(returns, rest, gamma, limits)


def _computed(policy: Policy, mdp: MDP, absorb: bool) -> dict[str, Any]:
    """The value and the optimum, in the MDP's units, and bounds on their errors."""
    from ravi.planning.evaluation import staged_values
    from ravi.planning.solver import solve

    table = _table_on(policy, mdp, absorb)  # (S, X, A)
    _, (rho,), (error,) = staged_values(mdp, table[None], TOLERANCE)
    solution, (low, high), H = solve(mdp, tol=TOLERANCE), mdp.units, mdp.horizon
    slack = ROUNDING * H * max(abs(low), abs(high))
    return {
        "exact": H * mdp.in_units(float(rho)),
        "exact_error": H * (high - low) * float(error) + slack,
        "optimum": H * mdp.in_units(solution.optimum),
        "optimum_error": H * (high - low) * solution.optimum_error + slack,
    }


def _from_table(policy: Policy, stream: Environment) -> dict[str, Any]:
    """What is computed for an environment, where it has a transition table; where not, why."""
    from ravi import gymnasium
    from ravi.mdps.environments import inner_of

    if not hasattr(inner_of(stream.env), "P"):
        return {"no_table": f"{stream.name} has no transition table"}
    try:
        mdp = gymnasium.mdp(stream.env, policy.discount, termination=stream.termination)
    except InputError as error:
        return {"no_table": str(error)}
    return _computed(policy, mdp, stream.terminal is not None)


def _table_on(policy: Policy, mdp: MDP, absorb: bool) -> Array:
    """The policy on the states of an MDP, uniform where it has no row   (S, X, A).

    absorb: its last row may be that of an absorbing state, which an MDP in which nothing terminates has not.
    """
    table, X, A = policy.table if policy.table.ndim == 3 else policy.table[None], mdp.states, mdp.actions
    labels = labels_of(policy)
    if labels is None:
        check_size(policy, X + (absorb and table.shape[1] == X + 1), A, mdp.name)
        return np.ascontiguousarray(table[:, :X])
    check_size(policy, X, A, mdp.name)
    full = np.full((len(table), X, A), 1 / A)
    for row, label in enumerate(labels):
        if type(label) is int and 0 <= label < X:
            full[:, label] = table[:, row]
    return full
