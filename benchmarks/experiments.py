"""The cost of an experiment besides its runs: overhead, memory, size of the store, rate of the driver.

    python benchmarks/experiments.py [--quick] [--ray] [--write benchmarks/experiments.md]

Compute is the time that workers spend in `ravi.runtime.api.run` as they measure it themselves; overhead is all other
time of all workers, from the first moment of the driver to its last: starting, loading functions, idling, travelling,
storing. Functions are compiled beforehand. Everything is taken in one run of this script.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

from timing import opening

# isort: split
import pyarrow as pa

import ravi
from ravi.lab.experiments import agenda as jobs
from ravi.lab.experiments.agenda import Agenda, Shard
from ravi.lab.experiments.driver import Driver
from ravi.lab.experiments.freezing import freeze
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.rows import rows_of
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.work import Outcome, Task, work
from ravi.runtime.result import versions

LEARNERS = ["ravi-ucb,scale=0.01,step_scale=30", "ucrl2,scale=0.1", "psrl", "mbie-eb,scale=0.03", "ucb-q,scale=0.001"]
MDPS = ["riverswim/6", "garnet/20,3,4"]

ABOUT = """
How much does the runner add to the computing time of an experiment, how many runs can one driver handle, and how large
and fast is a store? For those who plan large experiments; [How far it goes](../docs/explanation/scale.md) draws the
conclusions.
"""


def suite_of(seeds, steps, points=100):
    section = {"name": "load", "mdps": MDPS, "learners": LEARNERS}
    return {"name": "load", "steps": steps, "seeds": seeds, "points": points, "sections": [section]}


def resident():
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def overhead(seeds, steps, workers=2, cluster=None):
    """All runs of a suite through the runner: wall time, compute, and the driver's own time and memory."""
    run_suite(suite_of(2, 100), tempfile.mkdtemp(), workers=workers)  # compiles
    memory, began, spent = [], time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as place:
        held = run_suite(
            suite_of(seeds, steps), place, workers=workers, cluster=cluster,
            progress=lambda status: memory.append((status.done, resident())),
        )  # fmt: skip
        wall, driver = time.perf_counter() - began, time.process_time() - spent
        runs, compute = len(held.runs), sum(held.runs["seconds"].to_pylist())
        parts = len(os.listdir(Path(place) / "parts"))
    half = [size for done, size in memory if done >= runs / 10]
    return {
        "runs": runs, "wall": wall, "compute": compute, "overhead": workers * wall / compute - 1, "driver": driver,
        "parts": parts, "first": half[0] / 2**20, "last": memory[-1][1] / 2**20,
    }  # fmt: skip


def tasks_of(count):
    """As many tasks as small as can be."""
    mdp = ravi.mdp("riverswim/6")
    setting = Setting("riverswim/6", mdp.digest, "uniform", "", 1, 1)
    return [Task(((setting, (seed,)),), "benchmark") for seed in range(count)]


def per_task(pool, count):
    """Seconds a task, of tasks that do next to nothing, through a pool that is warm."""
    tasks = tasks_of(count)
    for repeat in range(2):
        began, done, given = time.perf_counter(), 0, 0
        while done < count:
            while given < count and pool.free() > 0:
                pool.submit(repeat * count + given, tasks[given])
                given += 1
            done += len(pool.collect(1.0))
    return (time.perf_counter() - began) / count


class Instant:
    """Workers that take no time: what is left is the driver."""

    workers = 2

    def __init__(self, made):
        self.made, self.tasks = made, []

    def free(self):
        return 2 - len(self.tasks)

    def submit(self, number, task):
        self.tasks.append((number, task))

    def collect(self, seconds):
        back, self.tasks = self.tasks, []
        return [(number, self._outcome(task)) for number, task in back]

    def _outcome(self, task):
        ((setting, seeds),) = task.runs
        batch = self.made[setting.digest].slice(0, len(seeds))
        place = batch.schema.get_field_index("seed")
        batch = batch.set_column(place, "seed", pa.array(seeds, pa.int64()))
        return Outcome(batch, {}, 1.0, len(seeds) * setting.steps, versions(), "here")

    def interrupt(self):
        pass


def driver_rate(seeds, points):
    """Runs a second that a driver can hand out, take back and store, and what they take on disk."""
    wanted = specify(suite_of(seeds, 2000, points))
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place))
        facts = freeze(wanted, store).facts
        with store.launch({"versions": versions()}) as launch:
            agenda = Agenda(wanted, facts, Shard(), store.keep_tuning, workers=2)
            made = {}
            for digest, runs in agenda.runs.items():
                rows = work(Task(((runs.setting, tuple(range(jobs.MOST))),), launch, slice=600)).rows
                made[digest] = rows
            driver = Driver(store, launch, Instant(made), agenda)
            began = time.perf_counter()
            driver.drive(lambda: False)
            seconds = time.perf_counter() - began
        size = sum(file.stat().st_size for file in Path(place).rglob("*.parquet"))
        return agenda.done / seconds, size / agenda.done


def long_runs(seeds, steps, most):
    """Steps a second of RAVI-UCB on RiverSwim(6) through two workers, at least so many seeds in a job."""
    section = {"name": "long", "mdps": ["riverswim/6"], "learners": ["ravi-ucb"]}
    suite = {"name": "long", "steps": steps, "seeds": seeds, "points": 100, "sections": [section]}
    before, jobs.FEW = jobs.FEW, most
    try:
        with tempfile.TemporaryDirectory() as place:
            began = time.perf_counter()
            held = run_suite(suite, place, workers=2)
            return seeds * steps / (time.perf_counter() - began), seeds * steps / sum(held.runs["seconds"].to_pylist())
    finally:
        jobs.FEW = before


def long_section():
    """The lines about long runs. Each way is measured twice, in turns: the machine may be shared."""
    seen = {most: [] for most in (1, 32)}
    for _ in range(2):
        for most, seeds in ((1, 4), (32, 64)):
            seen[most].append(long_runs(seeds, 10**6, most))
    best = {most: [max(values) for values in zip(*found, strict=True)] for most, found in seen.items()}
    return [
        "## Long runs",
        "",
        "RAVI-UCB on RiverSwim(6), T = 10^6, two workers: 64 seeds in batches as large as two workers allow, and 4 "
        "seeds one at a time. Entries are the better of two alternating measurements; the first column includes the "
        "start.",
        "",
        "| seeds per batch | steps per second, both workers | steps per second of a worker's computing time |",
        "|---|---|---|",
        *(f"| {most} | {wall:,.0f} | {own:,.0f} |" for most, (wall, own) in best.items()),
        "",
        f"Ratio: {best[32][0] / best[1][0]:.1f} and {best[32][1] / best[1][1]:.1f}.",
    ]


def store_of(runs, points, place):
    """A store of real curves."""
    store = Store(Path(place))
    suite = suite_of(runs // (len(LEARNERS) * len(MDPS)), 20_000, points)
    wanted = specify(suite)
    freeze(wanted, store)
    with store.launch({"versions": versions()}) as launch:
        for mdp in MDPS:
            world = ravi.mdp(mdp)
            for learner in LEARNERS:
                made = ravi.run(learner, world, 20_000, runs // (len(LEARNERS) * len(MDPS)), points=points)
                setting = Setting(mdp, world.digest, ravi.ids.canonical(learner), "", 20_000, points)
                batch = rows_of(made, setting, world, launch)
                for first in range(0, len(made.seeds), 500):
                    store.write([batch.slice(first, 500)])
    return store


def stored(runs, points):
    with tempfile.TemporaryDirectory() as place:
        store_of(runs, points, place)
        size = sum(file.stat().st_size for file in Path(place).rglob("*.parquet"))
        times = []
        for _ in range(5):
            began = time.perf_counter()
            held = ravi.results(place)
            opened = time.perf_counter() - began
            answer = held.sql("SELECT learner, median(regret) FROM runs GROUP BY learner")
            times.append((time.perf_counter() - began, opened))
            assert answer.num_rows == len(LEARNERS)
            assert len(held.runs) == runs
        began = time.perf_counter()
        held.sql("SELECT learner, i, median(regret_curve[i]) FROM runs, range(1, 1001, 100) t(i) GROUP BY ALL")
        return size, *min(times), time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--ray", action="store_true", help="through a local Ray, too")
    parser.add_argument("--write", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    few = 10 if options.quick else 1
    lines = opening("Experiments", ABOUT, "experiments.py")

    lines += [
        f"## {10_000 // few:,} runs through the runner, two workers",
        "",
        "Five tabular learners on RiverSwim(6) and Garnet(20, 3, 4), T = 20,000, 100 points each. Memory is that of "
        "the driver when a tenth of the runs is done, and at the end.",
        "",
        "| workers | wall (s) | compute (s) | overhead | driver's CPU (s) | parts | memory (MB) |",
        "|---|---|---|---|---|---|---|",
    ]
    ways = [("2 processes", None)] + ([("Ray, 2 CPUs", "local")] if options.ray else [])
    for name, cluster in ways:
        seen = overhead(1000 // few, 20_000, cluster=cluster)
        lines.append(
            f"| {name} | {seen['wall']:.1f} | {seen['compute']:.1f} | {seen['overhead']:.1%} | "
            f"{seen['driver']:.1f} | {seen['parts']} | {seen['first']:.0f}, {seen['last']:.0f} |"
        )
        print(lines[-1], flush=True)

    from ravi.lab.experiments.executors import Processes

    with Processes(2) as pool:
        local = per_task(pool, 4000 // few)
    lines += ["", f"A task of one step through a warm pool of two processes: {1e3 * local:.2f} ms."]
    if options.ray:
        from ravi.lab.experiments.cluster import Cluster

        with Cluster("local", 2) as pool:
            lines.append(f"Through Ray on the same machine: {1e3 * per_task(pool, 1000 // few):.2f} ms.")
    print(lines[-1], flush=True)

    lines += [
        "",
        "## What one driver can handle",
        "",
        "Workers that take no time return stored rows; each part is on disk before its runs count.",
        "",
        "| points | runs per second | bytes per run |",
        "|---|---|---|",
    ]
    for points in (1, 100, 1000):
        rate, size = driver_rate(2000 // few, points)
        lines.append(f"| {points:,} | {rate:,.0f} | {size:,.0f} |")
        print(lines[-1], flush=True)

    lines += ["", *long_section()]
    size, answer, opened, curves = stored(10_000 // few, 1000)
    lines += [
        "",
        f"## {10_000 // few:,} runs of 1,000 points in a store",
        "",
        f"{size / 1e6:.1f} MB on disk ({size / (10_000 // few) / 8000:.0%} of the uncompressed numbers). Opening takes "
        f"{opened:.2f} s, with every byte compared with its hash, and {answer:.2f} s together with the median final "
        f"regret of every learner. The median curve of every learner at ten times takes another {curves:.2f} s.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
