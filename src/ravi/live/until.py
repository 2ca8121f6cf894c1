"""When is a policy known to be good enough? When its interval, looked at now and then, says so: `until_gap`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.core import Floats
from ravi.live.agent import Agent
from ravi.live.learned import Learned, no_interval
from ravi.live.plausible import ASSUMED

SMALL = 100  # states, up to which intervals cost so little that they are asked for more often


def bounded(*, discovered: bool, cells: bool) -> None:
    """An error, before the first step, if no interval will say how far below the best the policy is."""
    if why := no_interval(discovered=discovered, cells=cells):
        raise InputError(
            f"until_gap asks for an interval, but {why}; leave it out, and ask evaluate what the policy is worth"
        )


class Until:
    """Whether the usual policy is known to be within `gap` of the best; asked whenever plays have grown by a part.

    A learner that loses little leaves alone what it holds to be bad, and never learns how bad. So where the world has
    shown chance, the default learner takes turns, from reset to reset, with the policies that shorten the interval:
    that of the upper bound, and that which makes the gap fall fastest. As the gap becomes less than what is not known
    of values, the learner leaves, and then the policy of the upper bound.
    """

    def __init__(self, live: Agent, gap: float | None, assume: str, *, explore: bool) -> None:
        self.live, self.assume, self.explore = live, checks.one_of(assume, ASSUMED, "assume"), explore
        self.gap = None if gap is None else checks.positive(gap, "until_gap")
        self.due = 1
        self.turns: list[Floats | None] = [None]
        if gap is not None and "looked" in live.extra:
            self.due, turns = live.extra["looked"]
            if all(type(turn) is int for turn in turns):  # of a file from before
                turns = [None, turns] if turns else [None]
            self.turns = [self._table(actions) for actions in turns]

    def policy(self, resets: int) -> Floats | None:
        """What is played after so many resets; None: what the learner plays."""
        return self.turns[resets % len(self.turns)]

    def enough(self, learned: Callable[[], Learned]) -> bool:
        if self.gap is None or self.live.plays < self.due or self.live.range.unseen:
            return False
        found = learned()
        known, actions = found.look(self.assume)
        chance, small = self.explore and self.live.table.late.any(), self.live.table.states <= SMALL
        self.due = 1 + int((1.05 if chance and small else 1.2) * found.plays)
        if chance:
            left = sum(known.gap < part * (known.best - known.low) for part in (0.9, 0.5)[: len(actions)])
            self.turns = [self._table(turn) for turn in [None, *actions][left:]]
        return known.gap <= self.gap

    def missed(self, learned: Callable[[], Learned]) -> float | None:
        """The gap, if all steps were made and the policy is not known to be within it; else None."""
        if self.gap is None or not self.live.done:
            return None
        with suppress(InputError):  # nothing bounds rewards of which none but 0 was seen
            if learned().interval(assume=self.assume).gap <= self.gap:
                return None
        return self.gap

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
