"""The tabular agents of rlberry-scool in an environment of Gymnasium, in a Python that has them and not ravi.

`python rlberry_agents.py AGENT ID OPTIONS SEED` prints, after every 100 steps or a twentieth of those so far, a line of
JSON: the steps, and the action of the agent's policy at every state. `environments.py --rlberry PYTHON` reads them
until it has enough.
"""

import json
import math
import sys

import gymnasium
import rlberry
import rlberry.spaces
from rlberry_scool.agents import QLAgent, SARSAAgent, UCBVIAgent

EXPLORE = {"exploration_type": "epsilon", "exploration_rate": 0.1}
AGENTS = {  # class, its options, steps of what `fit` counts
    "QL": (QLAgent, {"gamma": 0.99, "alpha": 0.1, **EXPLORE}, 1),
    "SARSA": (SARSAAgent, {"gamma": 0.99, "alpha": 0.1, **EXPLORE}, 1),
    "UCBVI": (UCBVIAgent, {"gamma": 0.99, "horizon": 100}, 100),  # episodes
}


class Numbered(gymnasium.ObservationWrapper):
    """Observations of several parts by number, the last part fastest."""

    def __init__(self, env):
        super().__init__(env)
        self.sizes = [int(part.n) for part in env.observation_space]
        self.observation_space = gymnasium.spaces.Discrete(math.prod(self.sizes))

    def observation(self, parts):
        number = 0
        for part, size in zip(parts, self.sizes, strict=True):
            number = number * size + int(part)
        return number


class Counted(gymnasium.Wrapper):
    """Counts the steps."""

    steps = 0

    def step(self, action):
        self.steps += 1
        return self.env.step(action)


def main(name, identity, options, seed):
    rlberry.utils.logging.set_level("ERROR")
    kind, settings, size = AGENTS[name]
    env = gymnasium.make(identity, **json.loads(options))
    env = Counted(Numbered(env) if isinstance(env.observation_space, gymnasium.spaces.Tuple) else env)
    env.observation_space, env.action_space = (
        rlberry.spaces.Discrete(int(space.n)) for space in (env.observation_space, env.action_space)
    )  # UCBVI takes no others
    env.reset(seed=int(seed))
    agent = kind(env, copy_env=False, seeder=int(seed), **settings)
    while True:
        agent.fit(max(100, env.steps // 20) // size)
        actions = [int(agent.policy(x)) for x in range(env.observation_space.n)]
        print(json.dumps({"steps": env.steps, "actions": actions, "many": int(env.action_space.n)}), flush=True)


main(*sys.argv[1:])
