"""Which environment of Gymnasium is an MDP?"""

from functools import cache, cached_property
from operator import index
from typing import Any

import numpy as np

from ravi.core import MDP, an_mdp
from ravi.mdps.environments import imported
from ravi.validation import InputError


def make(mdp: MDP) -> Any:
    """A Gymnasium environment that is this MDP: it never terminates, for the discount is the learner's.

    Rewards are r(x, a) in the MDP's units. Its table `P`, `initial_state_distrib` and `reward_range` are those of the
    MDP, so that `ravi.gymnasium.mdp(make(m), m.discount)` is m again (without features).
    """
    return _environment()(an_mdp(mdp))


@cache
def _environment() -> Any:
    """The class of the environments that `make` makes: Gymnasium is imported when it is needed."""
    gymnasium = imported()

    class Simulated(gymnasium.Env):  # type: ignore[misc, name-defined]
        """An MDP as an environment."""

        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

        def __init__(self, mdp: MDP) -> None:
            from ravi.runtime.walk import world_of

            self.mdp, self.name = mdp, mdp.name
            self.observation_space = gymnasium.spaces.Discrete(mdp.states)
            self.action_space = gymnasium.spaces.Discrete(mdp.actions)
            self.initial_state_distrib = mdp.initial
            self.reward_range = mdp.units
            self.render_mode = None
            self._world, self._rewards = world_of(mdp), mdp.in_units(mdp.rewards)
            self._state: int | None = None

        @cached_property
        def P(self) -> dict[int, dict[int, list[tuple[float, int, float, bool]]]]:
            X, A, _ = self.mdp.transitions.shape
            return {x: {a: self._row(x, a) for a in range(A)} for x in range(X)}

        def _row(self, x: int, a: int) -> list[tuple[float, int, float, bool]]:
            r = float(self._rewards[x, a])
            row = zip(self.mdp.transitions[x, a].tolist(), self.mdp.successors[x, a].tolist(), strict=True)
            return [(p, y, r, False) for p, y in row]

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self._state = int(np.searchsorted(self._world.initial, self.np_random.random(), side="right"))
            return self._state, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            x, a = self._state, index(action)
            if x is None:
                raise InputError(f"{self.name} must be reset before its first step")
            if not 0 <= a < self.mdp.actions:
                raise InputError(f"action is {a}, but actions are 0 to {self.mdp.actions - 1}")
            slot = np.searchsorted(self._world.cumulative[x, a], self.np_random.random(), side="right")
            self._state = int(self._world.successors[x, a, slot])
            return self._state, float(self._rewards[x, a]), False, False, {}

    return Simulated
