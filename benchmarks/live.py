"""The cost of a live stream, and what it learns: `python benchmarks/live.py [--write benchmarks/live.md]`.

With --write, table (b) is also put into docs/guides/gymnasium.md. With --before FOLDER, table (c) also has the times of
another checkout of this repository; both versions run alternately, each in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import least, opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

import ravi
from ravi.live.policies import Policy, evaluate

ABOUT = """
How much time does the library add to each step of an environment, and how good is the policy that `ravi learn` finds on
FrozenLake 8x8? For those who learn by playing. (a) is the time per step of the protocol beyond that of the simulation
itself, which takes almost none. (b) is the command: how many seeds come within 1 % of the optimum, and in how many
CPU seconds. (c) is the time per step of `ravi.learn`, environment included, with hundreds of states; "before" is
another version of the library.
"""
STATES, ACTIONS, DISCOUNT = 16, 4, 0.99
LEARNERS = {
    "uniform": "learns nothing",
    "ravi-ucb": "plans at every reset",
    "q-learning": "updates at every step",
}
LAKE = "ravi learn FrozenLake8x8-v1 --steps {steps}"
NAMED = " --learner {learner} --discount 0.99 --reward-scale {scale} --policy planned"
SETTINGS = (  # learner (None is the default), plays, multiplier of the bonus of rewards
    (None, "3e4", None),
    (None, "3e5", None),
    ("certainty-equivalent", "3e5", "0.1"),
    ("psrl", "3e5", "0"),
    ("ravi-ucb+,scale=1e-4", "3e5", "0"),
)
WORLDS = {  # name -> id, options, steps, learners; None is the default
    "Taxi-v4": ("Taxi-v4", {}, 100_000, (
        None, "certainty-equivalent", "r-max", "mbie-eb", "mbie-eb,scale=1e-4", "ravi-kl,support=off,scale=1e-3",
        "ravi-ucb", "ravi-ucb+,scale=1e-4", "ucbvi-gamma,scale=1e-3", "q-learning", "psrl", "uniform",
    )),
    "Taxi-v4, rainy": ("Taxi-v4", {"is_rainy": True}, 100_000, (None,)),
    "Blackjack-v1": ("Blackjack-v1", {}, 50_000, (None,)),
}  # fmt: skip
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
    yield "| learner | what it does | act and observe, us per step | `ravi.learn`, us per step |"
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
    yield f"The simulation takes {1e6 * world / steps:.2f} us per step, the environment {1e6 * own / steps:.2f} us."


def lake(settings, seeds):
    mdp = ravi.mdp("gymnasium/FrozenLake8x8-v1,discount=0.99")
    yield f"| learner | steps | seeds within {CLOSE:.0%} | median lost | most lost | CPU seconds, median | most |"
    yield "|---|---|---|---|---|---|---|"
    for learner, steps, scale in settings:
        found = [lake_run(mdp, learner, steps, scale, seed) for seed in range(seeds)]
        lost, seconds = np.array(found).T
        called = "the default" if learner is None else f"`{learner}`, reward scale {scale}"
        yield (
            f"| {called} | {float(steps):,.0f} | {(lost <= CLOSE).sum()} of {seeds} | "
            f"{np.median(lost):.2%} | {lost.max():.2%} | {np.median(seconds):.0f} | {seconds.max():.0f} |"
        )


def lake_run(mdp, learner, steps, scale, seed):
    """What the policy of the command loses, in parts of the optimum, and the CPU seconds that the command takes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lake.policy"
        command = LAKE if learner is None else LAKE + NAMED
        words = shlex.split(command.format(learner=learner, steps=steps, scale=scale))[1:]
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


def hundreds(repeats, before, only):
    """Microseconds of CPU per step, the least of several processes of each version in turns; only: of these."""
    yield "| environment | learner | steps | the environment alone, us | us per step | before |"
    yield "|---|---|---|---|---|---|"
    sources = [Path(__file__).parent.parent / "src", *([] if before is None else [before / "src"])]
    for name, (_, _, steps, learners) in WORLDS.items():
        for learner in learners:
            if only is not None and (learner or "") not in only:
                continue
            found = [[apart(source, name, learner) for source in sources] for _ in range(repeats)]
            alone = min(run[0][1] for run in found)
            took, *was = (f"{min(run[i][0] for run in found):.1f}" for i in range(len(sources)))
            called = "the default" if learner is None else f"`{learner}`"
            yield f"| {name} | {called} | {steps:,} | {alone:.1f} | {took} | {''.join(was)} |"


def apart(source, name, learner):
    """`in_world` of the library at `source`."""
    words = [sys.executable, __file__, "--part", "world", "--world", name, "--learner", learner or ""]
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(source)}
    )
    print(source.parent.name, name, learner, done.stdout.strip(), file=sys.stderr, flush=True)
    return json.loads(done.stdout)


def in_world(name, learner):
    """Microseconds per step of `ravi.learn`, and of the environment alone, by actions at random."""
    import gymnasium

    identity, options, steps, _ = WORLDS[name]
    given = {"learner": learner, "discount": DISCOUNT, "reward_scale": 0.0} if learner else {}

    def made():
        return gymnasium.make(identity, max_episode_steps=-1, **options)

    def random():
        env, actions = made(), np.random.default_rng(0).integers(made().action_space.n, size=steps).tolist()
        env.reset(seed=0)
        began = time.process_time()
        for a in actions:
            if env.step(a)[2]:
                env.reset()
        return time.process_time() - began

    ravi.learn(made(), steps=1000, **given)  # compiled
    took = least(lambda: ravi.learn(made(), steps=steps, **given), 1)
    return [1e6 * took / steps, 1e6 * min(random() for _ in range(3)) / steps]


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
    parser.add_argument("--part", choices=("protocol", "lake", "hundreds", "world"))
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, to compare with")
    parser.add_argument("--only", nargs="+", metavar="LEARNER", help="rows of table (c); '' is the default")
    parser.add_argument("--world", choices=WORLDS, help="of --part world")
    parser.add_argument("--learner", help="of --part world; none is the default")
    given = parser.parse_args()
    if given.part == "world":
        print(json.dumps(in_world(given.world, given.learner)))
        return
    parts = opening("What learning from an environment costs", ABOUT, "live.py")
    if given.part in (None, "protocol"):
        size = f"{STATES} states, gamma {DISCOUNT}, {given.steps:,} steps"
        parts += [
            f"### (a) The protocol, without the time of the simulation: {size}",
            "",
            *protocol(given.steps, given.repeats),
            "",
        ]
    if given.part in (None, "lake"):
        table = list(lake(SETTINGS, given.seeds))
        parts += ["### (b) FrozenLake 8x8 from the shell, gamma .99, start of the command included", "", *table, ""]
        if given.write is not None:
            page = GUIDE.read_text()
            shown = "<!-- measured -->\n" + "\n".join(table) + "\n<!-- end -->"
            GUIDE.write_text(re.sub(r"<!-- measured -->.*?<!-- end -->", lambda _: shown, page, flags=re.DOTALL))
    if given.part in (None, "hundreds"):
        parts += ["### (c) Environments with hundreds of states, gamma .99, rewards unknown", ""]
        parts += [*hundreds(given.repeats, given.before, given.only), ""]
    text = "\n".join(parts)
    if given.write is None:
        print(text)
    else:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
