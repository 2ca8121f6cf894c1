"""How does an agent play an environment? Step by step where something is decided, many steps in a row elsewhere.

After most steps nothing is decided: no reset follows, the epoch goes on (or ends with a plan that needs no more than
this step), and the pair led to that successor before. `Stretch.ahead` makes these steps in one loop, with the bits of
`Agent.act` and `Agent.observe`, and hands over the first step that is another.
"""

from __future__ import annotations

from bisect import bisect_right

from ravi.live.agent import Agent
from ravi.live.environment import Environment
from ravi.live.keeping import BUFFER


class Stretch:
    """The steps of an agent in an environment, between two resets, and who has the word in them."""

    def __init__(self, live: Agent, stream: Environment, *, single: bool) -> None:
        self.live, self.stream = live, stream
        self.single = single  # whether the caller has to see every step
        self.abroad = False  # whether others have the word: there an interruption leaves the agent whole
        self.hurried = False  # by a second Ctrl-C

    def at_once(self, count: int) -> bool:
        """Whether Ctrl-C number `count` interrupts at once, wherever that is."""
        self.hurried = count > 1
        return count > (1 if self.abroad else 2)

    def ahead(self, x: int) -> tuple[int, int, int, float, bool]:
        """Play from state x on, until a step that is to be observed: its state, action, successor, reward and whether
        the stream is cut."""
        live, step = self.live, self.stream.step
        while True:
            a = live.act(x)
            self.abroad = True
            y, reward, cut = step(a)
            self.abroad = False
            if self.single or live.learner.stages:
                return x, a, y, reward, cut
            learned, known, left = live._walk is not None and live._learned, live.table.known, live._left
            states, actions, successors, slots, resets, rewards = live._columns
            t, n, cycle, to_reset, over = live.time, live._waiting, live.cycle, live._to_reset, False
            first, restart, only, rows = n, live._restart, live._actions, live._rows
            X, A, low, width = live.table.states, live.table.actions, live.range.low, live.range.high - live.range.low
            last = min(live._deadline, t + BUFFER - n, live.index if live.index > t else live.steps)
            try:
                for following, to_act in live._numbers.ahead(t + 2, last - t - 1):
                    if cut or y >= X or to_reset < restart or self.hurried:
                        break
                    slot, part = known.get((x * A + a) * X + y), (reward - low) / width
                    if slot is None or not 0.0 <= part <= 1.0:
                        break
                    if left is not None:
                        remaining = left[0, x, a] - 1
                        if remaining <= 0:
                            break
                        left[0, x, a] = remaining
                    states[n], actions[n], successors[n], slots[n], resets[n], rewards[n] = x, a, y, slot, False, part
                    t, n, cycle, to_reset = t + 1, n + 1, cycle + part, following
                    over = learned and learned(t, x, a, y, slot, False, y, part)
                    x = y
                    if over:
                        live._over[0] = 1
                        if not live._light:
                            break
                        live.time = t
                        live._plan()
                        over = False
                    a = only[x]
                    if a < 0:
                        a = bisect_right(rows.get(x) or live._row(x), to_act)
                    self.abroad = True
                    y, reward, cut = step(a)
                    self.abroad = False
            finally:
                if n > first:
                    live.time, live._waiting, live._after = t, n, x
                    live.cycle, live.length = cycle, live.length + n - first
                    live._acted, live._to_reset = None if over else (x, a), to_reset
            if not over:
                return x, a, y, reward, cut
