"""The steps of an environment that a learner needs: `python benchmarks/environments.py [--write FILE]`."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from timing import opening  # first: it keeps BLAS to one thread

# isort: split
import gymnasium
import numpy as np

import ravi
import worlds
from blackjack import blackjack
from ravi.live import choices
from ravi.live.encoders import Labels, encoder_of
from ravi.live.environment import Environment

ABOUT = """
How many steps of FrozenLake, CliffWalking, Taxi and Blackjack does a learner need that knows nothing about them? For
those who choose between the default of `ravi learn` and other learners. To lose at most 10 or 1 % of the optimum, the
default needs the fewest steps, or at most 1.13 times as many as the fastest. The columns 90 %, 99 % and 99.9 % are the
numbers of steps from which on the policy loses at most 10, 1 and 0.1 % of the optimum, up to the end of the run. A run
ends at its largest number of steps, or when the policy has lost at most 0.1 % five times in a row. Entries are medians
over the seeds, with 95 % intervals from order statistics for six seeds or more; the brackets count the seeds that
reached the level, if not all did. A seed that did not reach it counts as one that never does. Learners and environments
that are missing were not measured. CartPole, MountainCar and Acrobot are in `benchmarks/grids.md`.

**Protocol.** Each learner plays in a Gymnasium environment as `ravi.learn` would, with unknown rewards. Whenever its
number of steps has grown by 15 %, its planned policy is evaluated exactly on the table of the environment (gamma =
0.99, terminations absorbed). Steps of the environment are counted, not those in the absorbing state. Two tables are
computed: that of Blackjack, from an infinite deck (`benchmarks/blackjack.py`), and that of Taxi with a fickle
passenger, from its documentation in Gymnasium, with one additional bit that says whether the passenger has moved yet.
The learner does not observe this bit, but the optimal policy does not need it.

**Blackjack.** Its optimum is close to 0, -0.043 of a bet (-0.046 with sab=False), so 1 % of it is 0.0004. An episode
has 1.6 steps, and steps after its end are left out for all learners of the library. Hands are dealt at random and have
two actions: no way of playing leads to better data, and even play of both is close to the best. A draw of the posterior
leaves alone what seems worse: without its rivals, the default needed 128,226 steps for 10 % in the median, and came
within 1 % in 3 of 6 seeds in 10^6 steps. With them it is as fast as uniform play. The table of two million steps has
seeds from 200 on; `everyone` was stopped after 10^6 there. `python benchmarks/blackjack.py` samples the counts of
uniform play: of 24 samples it loses 17.7 % in the median after 50,000 steps, 9.8 after 100,000, 3.5 after 200,000, 1.2
after 450,000, 0.8 after 10^6 (at most 1 % in 15 samples) and 0.2 after 2 x 10^6 (at most 1 % in all). PSRL, whose plans
take 30 ms per step there, was not measured.

**Rewards that nobody knows beforehand.** In the last table neither the range of rewards nor a table is known to the
default (`ravi.learn(env, steps=...)`, which plays what it never tried whatever the way to it costs), and entries are
exact discounted returns of the policy after the steps. Deep sea costs .01 / n for every step towards what pays. These
environments are look-alikes, written anew from the rules of bsuite, MO-Gymnasium (weights in `benchmarks/worlds.py`)
and MiniGrid (seen from above); in tic-tac-toe the other player plays at random, and a square that is taken loses.

**Learners.** `everyone` is Q-learning as it is usually written: alpha = 0.1, epsilon = 0.1, Q = 0, episodes of at most
200 steps, with its greedy policy evaluated. QL, SARSA (alpha = 0.1, epsilon = 0.1, ties to the first action) and UCBVI
(horizon 100) of rlberry-scool, gamma = 0.99, run in their own Python (`--rlberry PYTHON`), by
`benchmarks/rlberry_agents.py`. The default was developed on these environments, which favours it: at first on these
seeds, its prior on others, from 100 on, the distribution of noisy rewards on Blackjack, seed 202, and its rivals on
seeds from 400 on and a simulation of Blackjack. On FrozenLake 8x8, seeds 100 to 163, it loses at most 1 % from 16,519
steps on in the median [15,041, 20,302], and 18,616 [15,661, 21,973] without rivals. Since these runs were made, plans
of `psrl` on Taxi, of `certainty-equivalent` and `mbie-eb` from 64 states on and of RAVI-KL have become quicker; their
policies are the same only within the tolerance of a plan.
"""
ROOM = 10_000  # observations that Q-learning has room for
DISCOUNT, FIRST, MORE, STAYS = 0.99, 200, 1.15, 5
LOST = (0.1, 0.01, 0.001)
WORLDS = {  # name -> id, options, most steps
    "FrozenLake 4x4": ("FrozenLake-v1", {}, 60_000),
    "FrozenLake 4x4, not slippery": ("FrozenLake-v1", {"is_slippery": False}, 20_000),
    "FrozenLake 8x8": ("FrozenLake8x8-v1", {}, 120_000),
    "FrozenLake 8x8, not slippery": ("FrozenLake8x8-v1", {"is_slippery": False}, 20_000),
    "CliffWalking": ("CliffWalking-v1", {}, 20_000),
    "CliffWalking, slippery": ("CliffWalkingSlippery-v1", {}, 120_000),
    "Taxi": ("Taxi-v4", {}, 60_000),
    "Taxi, rainy": ("Taxi-v4", {"is_rainy": True}, 500_000),
    "Taxi, fickle": ("Taxi-v4", {"fickle_passenger": True}, 120_000),
    "Blackjack": ("Blackjack-v1", {}, 200_000),
    "Blackjack, naturals draw": ("Blackjack-v1", {"sab": False}, 200_000),
    "Blackjack, longer": ("Blackjack-v1", {}, 2_000_000),
}
LEARNERS = {  # id -> multiplier of the bonus of rewards; None is the default
    None: 0.0,
    "certainty-equivalent": 0.0,
    "psrl": 0.0,
    "mbie-eb,scale=1e-4": 0.0,
    "ucbvi-gamma,scale=1e-3": 0.0,
    "ravi-ucb+,scale=1e-4": 0.0,
    "ravi-kl,support=off,scale=1e-3": 0.0,
    "q-learning": 0.0,
    "everyone": 0.0,
    "uniform": 0.0,
}
RULED = {  # name -> what makes it, steps
    "deep sea 5": (lambda: worlds.deep_sea(5), 3_000),
    "deep sea 10": (lambda: worlds.deep_sea(10), 10_000),
    "deep sea 20": (lambda: worlds.deep_sea(20), 50_000),
    "deep-sea-treasure": (worlds.deep_sea_treasure, 20_000),
    "resource-gathering": (worlds.resource_gathering, 50_000),
    "Dynamic-Obstacles": (worlds.dynamic_obstacles, 100_000),
    "tic-tac-toe": (worlds.tic_tac_toe, 100_000),
    "inventory": (worlds.inventory, 100_000),
    "queue": (worlds.queue, 50_000),
}
RLBERRY, RLBERRY_WORLDS = ("QL", "SARSA", "UCBVI"), ("FrozenLake 4x4", "Blackjack")


class World:
    """An environment, and its table."""

    def __init__(self, name):
        identity, options, self.most = WORLDS[name]
        self.env = gymnasium.make(identity, max_episode_steps=-1, **options)
        self.short = identity == "Blackjack-v1"  # episodes of a step or two
        self._solve(*TABLES.get(name, shipped)(self.env))

    def _solve(self, mdp, sees):
        self.mdp, self.sees, (X, A, _) = mdp, sees, mdp.successors.shape
        self.space = encoder_of(self.env.observation_space)
        self.P = np.zeros((X, A, X))
        np.add.at(
            self.P, (np.arange(X)[:, None, None], np.arange(A)[:, None], self.mdp.successors), self.mdp.transitions
        )
        self.optimum = self.value(ravi.solve(self.mdp).policy)

    def value(self, policy):
        """The discounted return of a policy, in the environment's units."""
        policy = policy[self.sees] if len(policy) != len(self.sees) else policy
        P, r = np.einsum("xay,xa->xy", self.P, policy), (self.mdp.rewards * policy).sum(1)
        V = np.linalg.solve(np.eye(len(r)) - DISCOUNT * P, r)
        return self.mdp.horizon * self.mdp.in_units((1 - DISCOUNT) * self.mdp.initial @ V)

    def lost(self, policy):
        return (self.optimum - self.value(policy)) / abs(self.optimum)


class Simulated(World):
    """An MDP of the library as an environment, which never ends."""

    def __init__(self, name):
        mdp = ravi.mdp(f"{name},discount={DISCOUNT}")
        self.env, self.short = ravi.gymnasium.make(mdp), False
        self._solve(mdp, np.arange(mdp.states))


def shipped(env):
    """The table that an environment comes with, and the number of the observation of each state."""
    mdp = ravi.mdp(env, discount=DISCOUNT)
    return mdp, np.arange(mdp.states)


def fickle(env):
    """The table of Taxi with a fickle passenger: once an episode, on the first move of the taxi with the passenger in
    it, another destination is chosen with probability 0.3. States are those of Taxi before that move, then after."""
    plain = ravi.mdp(gymnasium.make("Taxi-v4", max_episode_steps=-1), discount=DISCOUNT)
    (X, A, _), chance = plain.successors.shape, env.unwrapped.fickle_probability
    P, end = np.zeros((2 * X, A, 2 * X)), X - 1
    for x, a in np.ndindex(X, A):
        y = int(plain.successors[x, a, plain.transitions[x, a].argmax()])
        P[X + x, a, X + y] = 1
        if x != end != y and x // 20 != y // 20 and x // 4 % 5 == 4:  # it moves, and the passenger is in it
            other = [y - y % 4 + d for d in range(4) if d != x % 4]
            P[x, a, X + y], P[x, a, [X + z for z in other]] = 1 - chance, chance / len(other)
        else:
            P[x, a, y] = 1
    initial = np.concatenate([plain.initial, np.zeros(X)])
    made = ravi.MDP.from_dense(P, np.tile(plain.rewards, (2, 1)), DISCOUNT, initial)
    return dataclasses.replace(made, units=plain.units), np.arange(2 * X) % X


TABLES = {
    "Taxi, fickle": fickle,
    "Blackjack": lambda env: blackjack(env, DISCOUNT),
    "Blackjack, naturals draw": lambda env: blackjack(env, DISCOUNT),
    "Blackjack, longer": lambda env: blackjack(env, DISCOUNT),
}


def by_agent(world, learner, scale, seed):
    """Steps so far, and the policy, of a learner of the library."""
    stream = Environment(world.env, seed=seed, skip=learner is None or world.short)
    if learner is None:
        learner = choices.default_learner(stream.observation_space, stream.terminal, bounded=True)
    live = ravi.agent(
        learner, None, 50 * world.most, states=stream.states, actions=stream.actions, discount=DISCOUNT,
        reward_range=world.mdp.units, reward_scale=scale, seed=seed,
    )  # fmt: skip
    while True:
        x, reset = stream.reset(), False
        while not reset:
            a = live.act(x)
            y, reward, cut = stream.step(a)
            reset, x = live.observe(x, a, y, reward, cut=cut), y
        yield stream.steps, lambda: ravi.solve(live.model()).policy


def by_everyone(world, seed):
    """Tabular Q-learning, in ten lines."""
    rng, env, space = np.random.default_rng(seed), world.env, world.space
    A = env.action_space.n
    Q, steps = np.zeros((max(space.size + 1, ROOM), A)), 0
    while True:
        x = space.number(env.reset(seed=int(rng.integers(2**31)))[0])
        for _ in range(200):
            best = np.flatnonzero(Q[x] == Q[x].max())
            a = int(rng.integers(A)) if rng.random() < 0.1 else int(rng.choice(best))
            observation, reward, terminated, _, _ = env.step(a)
            y = space.number(observation)
            Q[x, a] += 0.1 * (reward + DISCOUNT * Q[y].max() * (not terminated) - Q[x, a])
            x, steps = y, steps + 1
            if terminated:
                break
        yield steps, lambda: np.eye(A)[Q.argmax(1)]


def ruled(name, learner, seed):
    """The return of the policy of the default or of Q-learning after the steps of an environment by rules, the optimum,
    and CPU microseconds per step."""
    make, steps = RULED[name]
    table, began = worlds.Table(make(), DISCOUNT), time.process_time()
    if learner is None:
        policy = ravi.learn(table.env, steps=steps, seed=seed, evaluate=0, progress=False).policy()

        def action(observation):
            return int(policy(observation, deterministic=True))

    else:
        space = table.env.observation_space
        space = Labels() if choices.needs_discovery(space) else encoder_of(space)
        plays = by_everyone(SimpleNamespace(env=table.env, space=space), seed)
        greedy = next(policy() for made, policy in plays if made >= steps).argmax(1)

        def action(observation):
            return greedy[space.number(observation)]

    micros = 1e6 * (time.process_time() - began) / steps
    return float(table.value(action)), float(table.optimum), micros


def by_rlberry(python, name, agent, seed):
    """An agent of rlberry-scool, which plays in a Python of its own."""
    identity, options, _ = WORLDS[name]
    of = (agent, identity, json.dumps(options), str(seed))
    script = Path(__file__).with_name("rlberry_agents.py")
    with subprocess.Popen([python, str(script), *of], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as playing:
        try:
            for line in playing.stdout:
                found = json.loads(line)
                policy = np.eye(found["many"])[[*found["actions"], 0]]  # and of the end
                yield found["steps"], lambda policy=policy: policy
        finally:
            playing.kill()
    raise SystemExit(f"{agent} of rlberry-scool stopped: run `{python} {script} {' '.join(of)}` to see why")


def run(name, learner, scale, seed, rlberry=None):
    """The steps from which on at most each part is lost (None: not within the run), and CPU seconds."""
    world, found, due, judged = World(name), [], FIRST, 0.0
    began = time.process_time()
    if rlberry is not None:
        plays = by_rlberry(rlberry, name, learner, seed)
    else:
        plays = by_everyone(world, seed) if learner == "everyone" else by_agent(world, learner, scale, seed)
    for steps, policy in plays:
        if steps >= due:
            paused = time.process_time()
            found.append((steps, world.lost(policy())))
            due = steps * MORE
            judged += time.process_time() - paused
            if steps >= world.most or (len(found) >= STAYS and max(lost for _, lost in found[-STAYS:]) <= LOST[-1]):
                break
    seconds = time.process_time() - began - judged
    return [_since(found, part) for part in LOST], seconds, found[-1]


def _since(found, part):
    since = None
    for steps, lost in found:
        since = None if lost > part else since or steps
    return since


def cell(reached):
    """The median with its 95 % interval, from order statistics (six seeds or more), and how many seeds of all came."""
    there = sorted(np.inf if steps is None else steps for steps in reached)
    N, count = len(there), int(np.isfinite(there).sum())
    shown = ["-" if np.isinf(steps) else f"{steps:,.0f}" for steps in there]
    few = max((k for k in range(N) if 2 * sum(math.comb(N, i) for i in range(k + 1)) <= 0.05 * 2**N), default=None)
    between = "" if few is None or there[few] == np.inf else f" [{shown[few]}, {shown[N - 1 - few]}]"
    return shown[(N - 1) // 2] + between + ("" if count == N else f" ({count}/{N})")


def rows_of(page):
    """Rows that were measured before: (name of the world, learner as it is called) -> row."""
    found, name = {}, ""
    for line in page.splitlines():
        if line.startswith("### "):
            name = line[4:].rpartition(":")[0]
        elif line.startswith("| "):
            found[name, line.split(" | ")[0][2:]] = line
    return found


def table(name, kept, seeds, before):
    yield "| learner | seeds | 90 % | 99 % | 99.9 % | largest loss at the end | median CPU seconds |"
    yield "|---|---|---|---|---|---|---|"
    for learner in (*LEARNERS, *(f"rlberry-scool: {agent}" for agent in RLBERRY)):
        rows = [kept[key] for seed in seeds if (key := f"{name}|{learner}|{seed}") in kept]
        called = "the default" if learner is None else f"`{learner}`"
        if not rows:
            yield from [before[name, called]] if (name, called) in before else []
            continue
        cells = [cell([row["reached"][i] for row in rows]) for i in range(len(LOST))]
        lost, times = max(row["end"][1] for row in rows), [row["seconds"] for row in rows]
        seconds = "" if None in times else f"{float(np.median(times)):.1f}"
        yield f"| {called} | {len(rows)} | {' | '.join(cells)} | {100 * lost:.2f} % | {seconds} |"


def table_ruled(kept, seeds, page):
    """Rows of the environments by rules: those that were measured, else those of the page."""
    yield "| environment | steps | learner | seeds | optimum | mean return | least | CPU us per step |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, (_, steps) in RULED.items():
        for learner in (None, "everyone"):
            begins = f"| {name} | {steps:,} | {'the default' if learner is None else f'`{learner}`'} |"
            rows = [kept[key] for seed in seeds if (key := f"{name}|{learner}|{seed}") in kept]
            if not rows:
                yield from [line for line in page.splitlines() if line.startswith(begins)]
                continue
            returns, optima, micros = zip(*rows, strict=True)
            found = f"{optima[0]:.4g} | {np.mean(returns):.4g} | {min(returns):.4g} | {np.median(micros):.0f}"
            yield f"{begins} {len(rows)} | {found} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path, help="a page; rows of it that are not of runs that are made stay")
    parser.add_argument("--keep", type=Path, default=Path("environments.json"), help="runs that are made already")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="of the seeds")
    parser.add_argument("--worlds", default=",".join(str(i) for i in range(len(WORLDS))), help="by number, from 0")
    parser.add_argument("--learners", default=",".join(str(i) for i in range(len(LEARNERS))), help="by number, from 0")
    parser.add_argument("--ruled", default=",".join(str(i) for i in range(len(RULED))), help="by number, from 0")
    parser.add_argument(
        "--rlberry", metavar="PYTHON", help="a Python with rlberry-scool: its agents, on FrozenLake 4x4 and Blackjack"
    )
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    kept = json.loads(given.keep.read_text()) if given.keep.exists() else {}
    worlds = [list(WORLDS)[int(i)] for i in (given.worlds.split(",") if given.worlds else [])]
    of = [name for name in worlds if name in RLBERRY_WORLDS and given.rlberry]
    for seed, agent, name in itertools.product(seeds, RLBERRY, of):
        key = f"{name}|rlberry-scool: {agent}|{seed}"
        if key not in kept:
            reached, seconds, end = run(name, agent, 0.0, seed, given.rlberry)
            kept[key] = {"reached": reached, "seconds": None, "end": end}
            given.keep.write_text(json.dumps(kept))
    for seed in seeds:
        for name in worlds:
            for j in map(int, given.learners.split(",") if given.learners else []):
                learner = list(LEARNERS)[j]
                key = f"{name}|{learner}|{seed}"
                if key in kept:
                    continue
                reached, seconds, end = run(name, learner, LEARNERS[learner], seed)
                kept[key] = {"reached": reached, "seconds": seconds, "end": end}
                print(key, json.dumps(kept[key]), file=sys.stderr, flush=True)
                given.keep.write_text(json.dumps(kept))
    for seed, j, learner in itertools.product(seeds, given.ruled.split(",") if given.ruled else [], (None, "everyone")):
        name = list(RULED)[int(j)]
        if (key := f"{name}|{learner}|{seed}") not in kept:
            kept[key] = ruled(name, learner, seed)
            print(key, json.dumps(kept[key]), file=sys.stderr, flush=True)
            given.keep.write_text(json.dumps(kept))
    parts = opening("How many steps does an environment need?", ABOUT, "environments.py")
    page = given.write.read_text() if given.write is not None and given.write.is_file() else ""
    before = rows_of(page)
    for name, (_, _, most) in WORLDS.items():
        rows = list(table(name, kept, seeds, before))
        parts += [f"### {name}: at most {most:,} steps", "", *rows, ""] if len(rows) > 2 else []
    parts += ["### Rewards that nobody knows beforehand", "", *table_ruled(kept, seeds, page), ""]
    text = "\n".join(parts)
    if given.write is None:
        print(text)
    else:
        given.write.write_text(text)


if __name__ == "__main__":
    main()
