"""The cost of a command before anything is compiled: CPU seconds with an empty cache, and again with a full one.

python benchmarks/cold_start.py [--write FILE]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ravi import ids
from timing import opening

ABOUT = """
How long does a command take when nothing has been compiled yet, and how long the second time? For those who install
`ravi`, or start it often. Times are CPU seconds of the whole process, including the start of Python, with an empty
cache and again with what the first call left in it; "functions kept" is the number of compiled functions in the cache.
The second table has the first run of every learner, with one seed, slowest first; what it takes again is the work
itself, and the start of Python.
"""
COMMANDS = [
    "solve riverswim/6", "solve garnet/2000,4,4",
    "learn CliffWalking-v1 --steps 1000", "learn FrozenLake-v1", "learn CliffWalking-v1", "learn Taxi-v4",
    *(f"run {mdp} {learner} --steps {steps}"
      for steps in ("1000", "100000")
      for mdp, learner in (("riverswim/6", "ravi-ucb"), ("riverswim/6", "ravi-ucb+"), ("riverswim/6", "ravi-kl"),
                           ("riverswim/6", "psrl"), ("riverswim/6", "q-learning"), ("garnet/200,4,4", "ravi-ucb"))),
]  # fmt: skip
WORLDS = ("riverswim/6,discount=0.9", "riverswim/mixture,discount=0.9")  # of every learner, the first that it takes
SHORT, LONG = 1_000, 100_000


def seconds(command: str, cache: str) -> float:
    """CPU seconds of a process that starts, does this and ends."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    began = spent()
    words = [sys.executable, "-m", "ravi", *command.split()]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"RAVI_CACHE_DIR": cache})
    return spent() - began


def twice(command: str) -> tuple[float, float, int]:
    """With an empty cache, and again; how many functions are in it then."""
    with tempfile.TemporaryDirectory() as cache:
        return seconds(command, cache), seconds(command, cache), len(list(Path(cache).rglob("*.nbc")))


def world_of(learner: str) -> str:
    """The first of `WORLDS` that a learner takes."""
    for world in WORLDS:
        with suppress(ValueError):  # of another kind of problem
            ids.learner(learner, ids.mdp(world), LONG)
            return world
    raise ValueError(f"{learner} takes none of {WORLDS}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="put the tables into this file, in place of those there")
    options = parser.parse_args()
    lines = opening("What the first call costs", ABOUT, "cold_start.py")
    lines += ["| `ravi ...` | empty cache (s) | again (s) | functions kept |", "|---|---|---|---|"]
    for command in COMMANDS:
        new, again, kept = twice(command)
        lines.append(f"| {command} | {new:.1f} | {again:.1f} | {kept} |")
    found = []
    for learner in ids.LEARNERS:
        run = f"run {world_of(learner)} {learner} --seeds 1 --steps"
        found.append((*twice(f"{run} {LONG}")[:2], twice(f"{run} {SHORT}")[0], learner))
    lines += ["", f"| learner | {SHORT:,} steps (s) | {LONG:,} steps (s) | {LONG:,} steps again (s) |"]
    lines += ["|---|---|---|---|"]
    for long, again, short, learner in sorted(found, reverse=True):
        lines.append(f"| {learner} | {short:.1f} | {long:.1f} | {again:.1f} |")
    told = "\n".join(lines) + "\n"
    print(told, end="")
    if options.write is not None:
        rest = options.write.read_text().split("\n## ", 1)[1:] if options.write.exists() else []
        options.write.write_text("\n## ".join([told, *rest]))


if __name__ == "__main__":
    main()
