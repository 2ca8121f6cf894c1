"""`Discovery`: a learner on a stream whose states and actions are not known beforehand, and get numbers as they occur.

    found = ravi.discover("ravi-ucb,scale=0.01", steps=100_000, discount=0.95)
    a = found.act(x, ["left", "right"])               # a state is any label, its actions are those that it has
    reset = found.observe(x, a, y, reward)

A state has the actions that it was first met with; a set that varies is an error. States differ in how many they have:
where a state has fewer than the table, the numbers beyond stand for its actions once more, which changes nothing but
the number of ways to play them. The table begins small and doubles its states; the learner is then built for the larger
one, so that constants that depend on X and A grow with what was met.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from ravi import validation
from ravi.live.agent import Agent, agent
from ravi.live.encoders import Labels, json_of, label_of
from ravi.validation import InputError, StreamError

FIRST = 16  # states that the table begins with


class Discovery:
    """A learner on a stream whose states and actions are numbered as they occur. Made by `ravi.discover`.

    Attributes
    ----------
    agent
        The `ravi.Agent`, on the numbers of states and actions.
    states
        The labels of the states, by number.
    actions
        The labels of the actions of each state.

    Examples
    --------
    >>> import ravi
    >>> learner = ravi.discover("uniform", 10, discount=0.9)
    >>> learner.act("lobby", actions=["left", "right"]) in ("left", "right")
    True
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.states, self.actions = Labels(), list[list[Any]]()
        self._chosen: tuple[Any, Any, int] | None = None  # the state, the action and its number, of the step under way

    def __repr__(self) -> str:
        return f"<Discovery {self.agent.learner.name}: {self.agent.plays:,} of {self.agent.steps:,} steps>"

    @property
    def done(self) -> bool:
        """Whether the agent has made all its steps."""
        return self.agent.done

    def act(self, x: Any, actions: Sequence[Any]) -> Any:
        """The action to take in state x, one of `actions`."""
        offered = [label_of(action) for action in actions]
        if not offered:
            raise StreamError(f"step {self.agent.plays + 1}: state {x!r} has no actions")
        if len(set(offered)) < len(offered):
            raise StreamError(f"step {self.agent.plays + 1}: the actions {offered} of state {x!r} are not distinct")
        number = self._number(x)
        known = self.actions[number]
        if not known:
            self.agent.reserve(number + 1, len(offered))
            self.actions[number] = known = offered
        elif set(known) != set(offered):
            raise StreamError(
                f"step {self.agent.plays + 1}: the actions of state {x!r} were {known}, and now are {offered}"
            )
        j = self.agent.act(number)
        self._chosen = (label_of(x), known[j % len(known)], j)
        return self._chosen[1]

    def observe(self, x: Any, a: Any, y: Any, reward: float, *, cut: bool = False) -> bool:
        """(x, a) led to y and earned `reward`: whether to reset now. cut: the stream itself ends here."""
        if self._chosen is None:
            raise StreamError(
                f"step {self.agent.plays + 1}: observe was called, but there is no step under way: act comes first"
            )
        state, action, j = self._chosen
        if (label_of(x), label_of(a)) != (state, action):
            raise StreamError(
                f"step {self.agent.plays + 1}: observed state {x!r} and action {a!r}, but the agent chose {action!r} "
                f"in state {state!r}"
            )
        self.agent.range.part(reward)  # before y gets a number
        validation.flag(cut, "cut")
        successor = self._number(y)
        self.agent.reserve(successor + 1)
        reset = self.agent.observe(self.states.number(state), j, successor, reward, cut=cut)
        self._chosen = None
        return reset

    def probabilities(self, x: Any) -> dict[Any, float]:
        """What is played in state x: action -> probability. A state that was not met has none."""
        if x not in self.states or not (known := self.actions[self.states.number(x)]):
            return {}
        row = self.agent.policy.reshape(-1, *self.agent.table.rewards.shape)[0, self.states.number(x)]
        return {action: float(row[i :: len(known)].sum()) for i, action in enumerate(known)}

    def _number(self, x: Any) -> int:
        number = self.states.number(x)
        while len(self.actions) <= number:
            self.actions.append([])
        return number

    def save(self, path: str | PathLike[str]) -> None:
        """Write one file to `path` from which `Discovery.load` goes on, bit for bit."""
        labels = {"states": self.states.plain()["labels"], "actions": [json_of(tuple(each)) for each in self.actions]}
        self.agent.save(path, {"discovery": labels})

    @staticmethod
    def load(path: str | PathLike[str], *, allow_code: bool = False) -> Discovery:
        """Go on from the file at `path`; allow_code: as for `Agent.load`."""
        kept = Agent.load(path, allow_code=allow_code)
        labels = kept.extra.get("discovery")
        if labels is None:
            raise InputError(f"{path} holds an agent whose states have numbers, not labels: Agent.load opens it")
        found = Discovery(kept)
        found.states = Labels([label_of(label) for label in labels["states"]])
        found.actions = [[label_of(action) for action in each] for each in labels["actions"]]
        return found


def discover(
    learner: str,
    steps: int,
    *,
    discount: float,
    reward_range: tuple[float, float] = (0.0, 1.0),
    rewards: str = "unknown",
    reward_scale: float = 1.0,
    memory: float | None = None,
    seed: int = 0,
) -> Discovery:
    """A learner at the start of a stream of which nothing is known but the discount and the range of rewards.

    Parameters
    ----------
    learner
        Its id.
    steps
        T.
    discount
        gamma.
    reward_range
        The least and the largest reward, in your units.
    rewards, reward_scale, memory, seed
        As for `ravi.agent`.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import ravi
    >>> learner = ravi.discover("psrl", 10, discount=0.9)
    >>> action = learner.act("home", actions=["stay", "go"])
    >>> reset = learner.observe("home", action, "shop", reward=0.0)
    >>> reset in (True, False)
    True
    """
    given: dict[str, Any] = {"rewards": rewards, "reward_scale": reward_scale, "memory": memory, "seed": seed}
    return Discovery(
        agent(learner, None, steps, states=FIRST, actions=1, discount=discount, reward_range=reward_range, **given)
    )
