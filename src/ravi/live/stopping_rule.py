"""The stopping rule `until_gap`: learning ends once the interval of the policy, looked at now and then, is short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ravi import validation
from ravi.core import Floats
from ravi.live.agent import Agent
from ravi.live.confidence_sets import ASSUMED
from ravi.live.learned import Learned, end_of
from ravi.validation import InputError

SMALL = 100  # states, up to which intervals cost so little that they are asked for more often


def has_unplayed_pairs(agent: Agent, end: int | None) -> bool:
    """Whether a pair was never played whose state the observed moves lead to, from where the observed resets do."""
    table, _ = agent._counted()
    reached, before = agent.starts > 0, -1
    while reached.sum() > before:
        before = int(reached.sum())
        reached[table.successors[reached][table.moves[reached] > 0]] = True
    if end is not None:
        reached[end] = False
    return bool((table.moves[reached].sum(-1) == 0).any())


class StoppingRule:
    """Whether the usual policy is known to be within `gap` of the best; asked whenever plays have grown by a part.

    Learning goes on while a pair is unplayed that the observed moves lead to. A learner that loses little leaves alone
    what it holds to be bad, and never learns how bad. So the default learner takes turns, from reset to reset, with the
    policies that shorten the interval (with assume="seen", where the world has shown chance): that of the upper bound,
    and that which makes the gap fall fastest. As the gap becomes less than what is not known of values, the learner
    leaves, and then the policy of the upper bound.
    """

    def __init__(self, live: Agent, gap: float | None, assume: str, *, explore: bool) -> None:
        self.live, self.assume, self.explore = live, validation.one_of(assume, ASSUMED, "assume"), explore
        self.gap = None if gap is None else validation.positive(gap, "until_gap")
        self.due, self.turns = 1, list[Floats | None]([None])
        if gap is not None and "looked" in live.extra:
            self.due, turns = live.extra["looked"]
            self.turns = [self._table(actions) for actions in turns]

    def policy(self, resets: int) -> Floats | None:
        """What is played after so many resets; None: what the learner plays."""
        return self.turns[resets % len(self.turns)]

    def enough(self, learned: Callable[[], Learned]) -> bool:
        """Whether learning may stop."""
        live = self.live
        if self.gap is None or live.plays < self.due:
            return False
        found = learned()
        known, actions = found.look()
        turns, small = self.explore and (self.assume == "nothing" or live.table.late.any()), live.table.states <= SMALL
        self.due = 1 + int((1.05 if turns and small else 1.2) * found.plays)
        if turns:
            left = sum(known.gap < part * (known.best - known.low) for part in (0.9, 0.5)[: len(actions)])
            self.turns = [self._table(turn) for turn in [None, *actions][left:]]
        return known.gap <= self.gap and not has_unplayed_pairs(live, end_of(live, found.environment))

    def missed(self, found: Learned) -> float | None:
        """The gap, if all steps were made and the policy is not known to be within it; else None."""
        if self.gap is None or not self.live.done:
            return None
        unplayed, known = has_unplayed_pairs(self.live, end_of(self.live, found.environment)), found.interval()
        return self.gap if unplayed or known is None or known.gap > self.gap else None

    def plain(self) -> dict[str, Any]:
        """What goes into the checkpoint."""
        turns = [None if turn is None else turn.argmax(-1).tolist() for turn in self.turns]
        return {} if self.gap is None else {"looked": [self.due, turns]}

    def _table(self, actions: Any) -> Floats | None:
        if actions is None:
            return None
        (X, A, _), turn = self.live.table.sizes, np.array(actions, np.int64)
        if turn.shape != (X,) or not 0 <= turn.min() <= turn.max() < A:
            raise InputError(f"a policy to explore by has {X} actions below {A}")
        return np.eye(A)[turn]
