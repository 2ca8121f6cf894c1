"""What does a live stream cost, and what does it learn? `python benchmarks/live.py [--write benchmarks/live.md]`.

(a) The protocol: microseconds per play beyond the time that the world itself takes, in a world that takes next to none.
(b) FrozenLake 8x8, by the command: how many seeds come within 1 % of the optimum, in how many CPU seconds. With
--write, this table is also put into docs/guides/gymnasium.md.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import least, measured_by  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

import ravi
from ravi.live.policies import Policy, evaluate

STATES, ACTIONS, DISCOUNT = 16, 4, 0.99
LEARNERS = {
    "uniform": "nothing is learned",
    "ravi-ucb": "a plan at every reset",
    "q-learning": "a walk of its own, at every play",
}
LAKE = (
    "ravi learn FrozenLake8x8-v1 --learner {learner} --discount 0.99 --steps {steps} --reward-scale {scale} "
    "--policy planned"
)
SETTINGS = (  # learner, plays, multiplier of the bonus of rewards
    ("certainty-equivalent", "3e5", "0.1"),
    ("psrl", "3e5", "0"),
    ("ravi-ucb+,scale=1e-4", "3e5", "0"),
)
CLOSE = 0.01
GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "gymnasium.md"


def env_class():
    import gymnasium

    class Ring(gymnasium.Env):
        """Goes a + 1 states on; earns nothing."""

        observation_space = gymnasium.spaces.Discrete(STATES)
        action_space = gymnasium.spaces.Discrete(ACTIONS)

        def reset(self, *, seed=None, options=None):
            self.x = 0
            return 0, {}

        def step(self, action):
            self.x = (self.x + action + 1) % STATES
            return self.x, 0.0, False, False, {}

    return Ring


def acts(learner, steps):
    """The loop of a user, by act and observe."""
    live = ravi.agent(learner, states=STATES, actions=ACTIONS, discount=DISCOUNT, steps=steps)
    x = 0
    while not live.done:
        a = live.act(x)
        y = (x + a + 1) % STATES
        x = 0 if live.observe(x, a, y, 0.0) else y
    live.end()


def alone(steps):
    """The same world, without an agent."""
    x, done, u = 0, 0, np.random.default_rng(0).random(steps).tolist()
    while done < steps:
        a = done % ACTIONS
        y = (x + a + 1) % STATES
        x = 0 if u[done] < 1 - DISCOUNT else y
        done += 1


def env_alone(env, steps):
    u = np.random.default_rng(0).random(steps).tolist()
    env.reset(seed=0)
    for t in range(steps):
        env.step(t % ACTIONS)
        if u[t] < 1 - DISCOUNT:
            env.reset(seed=t)


def protocol(steps, repeats):
    env = env_class()()
    acts("uniform", 100)  # compiled
    yield "| learner | what it does | act and observe, us per play | `ravi.learn`, us per play |"
    yield "|---|---|---|---|"
    world, own = least(lambda: alone(steps), repeats), least(lambda: env_alone(env, steps), repeats)
    for learner, what in LEARNERS.items():
        acts(learner, 1000)
        by_hand = least(lambda learner=learner: acts(learner, steps), repeats) - world
        learned = least(
            lambda learner=learner: ravi.learn(
                env, learner, steps, discount=DISCOUNT, termination="restart", reward_range=(0, 1)
            ),
            repeats,
        ) - own  # fmt: skip
        yield f"| {learner} | {what} | {1e6 * by_hand / steps:.1f} | {1e6 * learned / steps:.1f} |"
    yield ""
    yield f"The world itself takes {1e6 * world / steps:.2f} us, the environment {1e6 * own / steps:.2f} us per play."


def lake(settings, seeds):
    mdp = ravi.mdp("gymnasium/FrozenLake8x8-v1,discount=0.99")
    yield f"| learner | steps | seeds within {CLOSE:.0%} | median lost | most lost | CPU seconds, median | most |"
    yield "|---|---|---|---|---|---|---|"
    for learner, steps, scale in settings:
        found = [lake_run(mdp, learner, steps, scale, seed) for seed in range(seeds)]
        lost, seconds = np.array(found).T
        yield (
            f"| `{learner}`, reward scale {scale} | {float(steps):,.0f} | {(lost <= CLOSE).sum()} of {seeds} | "
            f"{np.median(lost):.2%} | {lost.max():.2%} | {np.median(seconds):.0f} | {seconds.max():.0f} |"
        )


def lake_run(mdp, learner, steps, scale, seed):
    """What the policy of the command loses, in parts of the optimum, and the CPU seconds that the command takes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lake.policy"
        words = shlex.split(LAKE.format(learner=learner, steps=steps, scale=scale))[1:]
        began = spent()
        done = subprocess.run(
            [sys.executable, "-m", "ravi.cli", *words, "--seed", str(seed), "--save", str(file), "--json"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        seconds = spent() - began
        found = evaluate(Policy.load(file), mdp)
    told = {"learner": learner, "steps": steps, "seed": seed, "seconds": round(seconds, 1)}
    told |= {"lost": found.gap / found.optimum, "earned": json.loads(done.stdout)["earned"]}
    print(json.dumps(told), file=sys.stderr)
    return found.gap / found.optimum, seconds


def spent():
    """CPU seconds of the commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--steps", type=lambda text: int(float(text)), default=200_000, help="of the protocol's runs")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--part", choices=("protocol", "lake"))
    given = parser.parse_args()
    parts = [measured_by("live.py"), ""]
    if given.part != "lake":
        parts += [f"### (a) Beyond the time of the world: {STATES} states, gamma {DISCOUNT}, {given.steps:,} plays", ""]
        parts += [*protocol(given.steps, given.repeats), ""]
    if given.part != "protocol":
        table = list(lake(SETTINGS, given.seeds))
        parts += ["### (b) FrozenLake 8x8, gamma .99, by the command, its start included", "", *table, ""]
        if given.write is not None:
            page = GUIDE.read_text()
            shown = "<!-- measured -->\n" + "\n".join(table) + "\n<!-- end -->"
            GUIDE.write_text(re.sub(r"<!-- measured -->.*?<!-- end -->", lambda _: shown, page, flags=re.DOTALL))
    text = "\n".join(parts)
    if given.write is None:
        print(text)
    else:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
