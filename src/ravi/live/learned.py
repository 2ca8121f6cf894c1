"""The result of learning on a stream: a policy, what it earns, how good it is known to be, and the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ravi import validation
from ravi._jit.functions import sparing
from ravi.core import Array, Floats
from ravi.display.printable import counted, with_rows
from ravi.live.agent import Agent
from ravi.live.choices import OF_TABLE, Choices, no_interval
from ravi.live.estimates import Estimate
from ravi.live.intervals import CONFIDENCE, UNBOUNDED, Interval, interval, look
from ravi.live.local_linear import LocalLinear
from ravi.validation import InputError

if TYPE_CHECKING:
    from ravi.display.style import Drawn
    from ravi.live.policies import Policy

POLICIES = ("last", "output", "planned")
CUT = "not estimated: {:,} times the environment cut a stretch short"
LEARN_MORE = "; until_gap=GAP goes on until it is known to be within GAP of the best"
PLAY_MORE = "; evaluate=STEPS with more steps narrows it"
COMPUTE = "; ravi.evaluate(learned.policy(), ENV) computes it by the transition table"
WIDE = 0.1  # of all that a return may be: an interval that says little
NOT_PLAYED = "not estimated: evaluate=STEPS plays it for that many steps without learning"


@dataclass(frozen=True, repr=False)
class Learned:
    """The result of learning in an environment: policies, bounds on them, the agent. Made by `ravi.learn`.

    Attributes
    ----------
    agent
        The agent, which can go on.
    environment
        What the stream was, and its counters.
    seconds
        Those of this call, without compilation.
    choices
        What was given, and what was chosen.
    missed
        `until_gap`, where all steps were made before the policy was known to be so good; else None.
    assume
        What bounds rest on besides the range of rewards.
    estimate
        The return of the usual policy, from plays that were not learned from; None without such plays.

    Examples
    --------
    >>> import ravi
    >>> found = ravi.learn("FrozenLake-v1", steps=200)
    >>> found.policy().table.shape  # X, A
    (17, 4)
    """

    agent: Agent
    environment: dict[str, Any]
    seconds: float
    choices: Choices
    missed: float | None = None
    assume: str = "nothing"
    estimate: Estimate | None = None

    @property
    def usual(self) -> str:
        """The policy that is meant where none is named."""
        return "planned" if self.choices.default else "last"

    @property
    def plays(self) -> int:
        """How many steps of the environment were learned from."""
        return self.agent.plays + self._looked

    @property
    def _looked(self) -> int:
        """Steps of the warm-up."""
        return int(self.environment.get("looked", 0))

    @property
    def optimistic(self) -> float | None:
        """(1 - gamma) <nu_0, V_k> of the last plan, in the environment's units."""
        return self.agent.optimistic

    @property
    def earned(self) -> Estimate | None:
        """The return of the policies played in the later half, estimated, in the environment's units; None where the
        environment cut stretches short: those that it left whole are the short ones."""
        return None if self.environment["truncations"] else self.agent.earned

    def interval(
        self, which: str | None = None, *, confidence: float = CONFIDENCE, assume: str | None = None
    ) -> Interval | None:
        """Bounds on the discounted return of a policy, and on how far it is below the best (`ravi.live.intervals`).

        Parameters
        ----------
        which
            As for `table`.
        confidence
            The probability with which they hold.
        assume
            "nothing" but the range of rewards and the Markov property, or "seen" (`ravi.live.confidence_sets`); unless
            given, what `ravi.learn` was given.

        Returns
        -------
        Interval or None
            None where nothing is claimed: `no_interval` says why.
        """
        if self.no_interval:
            return None
        end = end_of(self.agent, self.environment)
        with sparing():  # asked for once
            return interval(self.agent, self.table(which), confidence=confidence, assume=assume or self.assume, end=end)

    def look(self) -> tuple[Interval, list[Array]]:
        """The interval of the usual policy, and actions of every state to shorten it by."""
        return look(self.agent, self.table(), self.assume, end_of(self.agent, self.environment))

    @property
    def no_interval(self) -> str:
        """Why no interval is given for the policy; nothing where one is."""
        discovered = self.environment["observations"].get("kind") == "labels"
        return no_interval(self.agent, discovered=discovered, cells=isinstance(self.agent.source, LocalLinear))

    def table(self, which: str | None = None) -> Floats:
        """A policy, (X, A) or (S, X, A) by age: the planned one of the default learner, else the last, unless
        `which` names another.

        last: what is played now. output: that of a time drawn uniformly beforehand, whose expected gap is the regret
        over T (Section 2); known once that time has come. planned: optimal in the MDP of what was seen.
        """
        which = self.usual if which is None else validation.one_of(which, POLICIES, "policy")
        if which == "last":
            return self.agent.policy
        if which == "planned":
            from ravi.planning.solver import solve

            with sparing():
                return solve(self.agent.model()).policy
        if self.agent.output is None:
            raise InputError(f"the output policy is that of step {self.agent.index}, and {self.plays} were made")
        return self.agent.output

    def policy(self, which: str | None = None) -> Policy:
        """A policy, to save, play and evaluate; `which` as for `table`."""
        from ravi.live.policies import Policy

        problem = self.agent.table.problem
        return Policy(
            table=self.table(which), discount=problem.discount, units=problem.units, learner=self.learner,
            steps=self.plays, seed=self.agent.seed, environment=self.environment,
        )  # fmt: skip

    @property
    def learner(self) -> str:
        """The learner's id, or its name where it has none."""
        return self.agent.name

    @property
    def title(self) -> str:
        """The learner, the environment and the number of steps."""
        problem, steps = self.agent.table.problem, self.agent.steps + self._looked
        made = f"{self.plays:,} steps of {steps:,} in {self.agent.plans:,} epochs"
        if self.missed is not None:
            made += f", until_gap = {self.missed:g} not reached"
        return f"{self.agent.learner.name} on {self.environment['name']}, gamma = {problem.discount:g}: {made}"

    def facts(self, which: str | None = None) -> list[tuple[str, str]]:
        """The results by name, as text. `which`: as for `table`."""
        H, chosen = self.agent.table.problem.horizon, dict(self._choices())
        found = [("the environment", self._counters())]
        found += [(what, chosen[what]) for what in ("grid", "actions", "rewards") if what in chosen]
        if self.optimistic is not None:
            words = f"{self.optimistic:.6g} per step, {H * self.optimistic:.6g} discounted"
            found.append(("optimistic value", words))
        if (earned := self.earned) is not None:
            found.append(("earned, later half", f"{earned.value:.6g} per step, discounted {earned.times(H)}"))
        elif self.environment["truncations"]:
            found.append(("earned", CUT.format(self.environment["truncations"])))
        return found + self.claims(which)

    def _choices(self) -> list[tuple[str, str]]:
        return self.choices.words(self.environment, self.agent)

    def _counters(self) -> str:
        at = self.environment
        words = [counted(at[f"{what}s"], what) for what in ("step", "reset", "termination", "truncation")]
        words[2] += f" ({at['termination']})"
        return ", ".join(words)

    def claims(self, which: str | None = None) -> list[tuple[str, str]]:
        """What is known of a policy, by name, as text: what it earns, and how far it is below the best. `which`: as for
        `table`."""
        return self._claims(self.interval(which), which)

    def _claims(self, known: Interval | None, which: str | None = None) -> list[tuple[str, str]]:
        estimate = self.estimate if which in (None, self.usual) else None
        words = f"not bounded: {self.no_interval}" if known is None else str(known)
        if estimate is None:
            return [("the policy is worth", words)]
        if known is not None and not known.informative and known.low <= estimate.low:
            words = UNBOUNDED
        assumes = f", if {estimate.assumes}" if estimate.assumes else ""
        return [("the policy earns", f"{estimate}{assumes}"), ("the policy is worth", words)]

    def plot(self, which: str | None = None) -> Drawn:
        """A policy (`which`, as for `table`), its value by what was seen, in the environment's units, and how often
        states were visited, where they lie; needs matplotlib."""
        from ravi.display.pictures import of_policy
        from ravi.planning.evaluation import evaluate

        policy, visits = self.table(which), self.agent.visits.sum(-1)
        fields = {"visits": visits}
        if policy.ndim == 2:
            problem = self.agent.table.problem
            fields |= {
                "value V": problem.horizon * problem.in_units(evaluate(self.agent.model(), policy).V / problem.horizon)
            }
        end = end_of(self.agent, self.environment) is not None
        return of_policy(self.environment["name"], policy, fields, end=end)

    def _repr_html_(self) -> str:  # what a notebook shows
        from ravi.display import html

        return html.summary(self.title, self.facts(), html.probabilities(self.table()))

    def __str__(self) -> str:
        """Five lines: what was learned with, what happened, what the policy earns, what bounds it, what tells more."""
        given, known = self.choices.given, self.interval()
        claims = dict(self._claims(known))
        made = (f"{what} {words.partition('; ')[0]}{' (given)' * (what in given)}" for what, words in self._choices())
        earns, worth = claims.get("the policy earns", NOT_PLAYED), claims["the policy is worth"]
        H, of = self.agent.table.problem.horizon, self.estimate
        if of is not None and not of.high - of.low <= WIDE * H * self.agent.range.width:
            earns += COMPUTE if self.choices.range_from == OF_TABLE else PLAY_MORE
        if known is not None and not known.informative:
            worth += LEARN_MORE
        lines = [
            ("learned with", f"{'; '.join(made)}; policy {self.usual}"),
            ("the environment", self._counters()),
            ("the policy earns", earns),
            ("the policy is worth", worth),
        ]
        return with_rows(self.title, lines)

    def __repr__(self) -> str:
        return f"<Learned {self.title}>"


def end_of(agent: Agent, stream: Mapping[str, Any]) -> int | None:
    """The state that is never left, if there is one."""
    return agent.table.states - 1 if stream["termination"] == "absorb" else None
