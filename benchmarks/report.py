"""The cost of a page: CPU seconds, peak memory and bytes of `ravi report`, for many learners and for many runs.

python benchmarks/report.py [--quick] [--before CHECKOUT] [--write benchmarks/report.md]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import opening

# isort: split
import numpy as np
import pyarrow as pa

HERE = Path(__file__).resolve().parent.parent
FOLDERS = {  # learners, MDPs, seeds, points
    "one learner on one MDP": (1, 1, 16, 200),
    "60 learners x 30 MDPs": (60, 30, 32, 200),
    "100,000 runs": (10, 10, 1000, 200),
    "100,000 runs, few a line": (50, 50, 40, 200),
}


def suite_of(learners, mdps, seeds, points):
    names = ["uniform", *(f"mbie-eb,scale={0.01 * (i + 1):g}" for i in range(learners - 1))]
    worlds = [f"garnet/{5 + i % 4},2,2,seed={i}" for i in range(mdps)]
    section = {"name": "all", "mdps": worlds, "learners": names}
    return {"name": "made up", "steps": 100_000, "seeds": seeds, "points": points, "sections": [section]}


ABOUT = """
How much time, memory and disk does `ravi report` take, for many learners and for many runs? For those with large
folders of results. "Opened" is a process that only opens the folder, with every byte compared with its hash; "page" is
one that writes the page; "before" is the same page by an earlier version.

The folders are synthetic, in the format of the store. Each page is made by its own process, so its peak memory is its
own; CPU seconds are those of that process, all threads, from after the import of ravi to the end. Everything is
measured in one run of the script, folder by folder; on a busy machine, compare the ratios.
"""


def folder_of(place, learners, mdps, seeds, points):
    """A folder of made-up runs: regret that grows as a power of t, with noise by seed."""
    from ravi.lab.experiments import plan
    from ravi.lab.experiments.reading import specify
    from ravi.lab.experiments.rows import SCHEMA
    from ravi.lab.experiments.store import Store
    from ravi.measures.curve import grid

    suite = specify(suite_of(learners, mdps, seeds, points), build=False)
    facts, worlds = plan.facts_of(suite, {}), {}
    store = Store(Path(place))
    store.create()
    store.freeze({"suite": suite.plain(), **facts.plain()})
    rng = np.random.default_rng(0)
    with store.launch({"versions": {}}) as launch:
        waiting = []
        for i, entry in enumerate(suite.entries):
            setting = plan.setting_of(entry, facts)
            n, times = len(entry.seeds), grid(entry.steps, entry.points)
            total = (
                (100 + 7 * (i % learners))
                * np.exp(0.3 * rng.normal(size=n))
                * (1 + worlds.setdefault(entry.mdp, len(worlds)))
            )
            power = 0.6 + 0.05 * rng.normal(size=n)
            curves = total[:, None] * (times / entry.steps) ** power[:, None]
            given = {
                "setting": setting.digest, "mdp": entry.mdp, "mdp_digest": setting.mdp_digest,
                "learner": setting.learner, "steps": entry.steps, "points": entry.points, "launch": launch,
                "discount": 0.95, "states": 5 + i % 4, "actions": 2, "dimension": 0, "optimum": 0.5,
                "optimum_error": 1e-9, "regret_error": 1e-8, "gap": 0.1, "reward": 1.0, "constants": "{}",
                "seconds": 0.01 * (1 + i % learners),
            }  # fmt: skip
            columns = {name: pa.array([value] * n, SCHEMA.field(name).type) for name, value in given.items()}
            columns["seed"] = pa.array(entry.seeds, pa.int64())
            columns["regret"] = pa.array(total)
            columns["regret_curve"] = pa.ListArray.from_arrays(
                np.arange(n + 1, dtype=np.int32) * len(times), curves.ravel()
            )
            columns["digest"] = pa.array([f"{setting.digest}{seed}" for seed in entry.seeds])
            made = [columns.get(name, pa.nulls(n, SCHEMA.field(name).type)) for name in SCHEMA.names]
            waiting.append(pa.Table.from_arrays(made, schema=SCHEMA))
            if sum(map(len, waiting)) >= 2000:
                store.write(waiting)
                waiting = []
        if waiting:
            store.write(waiting)


def child(place, what):
    """CPU seconds and peak MB of this process, to open a folder or to make its page."""
    from ravi.lab.experiments.results import results
    from ravi.lab.report.page import report

    began = time.process_time()
    if what == "open":
        results(place)
        size = 0
    else:
        size = report(place, Path(place) / "page.html").stat().st_size
    spent, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": spent, "peak": peak, "bytes": size}))


def measured(place, what, checkout=HERE):
    words = [sys.executable, __file__, "--child", what, str(place)]
    where = os.environ | {"PYTHONPATH": str(checkout / "src")}
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env=where).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the seeds")
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(Path(options.child[1]), options.child[0])
    lines = opening("What a report page costs", ABOUT, "report.py")
    head = ["folder", "runs", "opened (s)", "memory (MB)", "page (s)", "page / opened", "memory (MB)", "page (MB)"]
    head += ["before (s)", "before / now", "memory before (MB)"] if options.before else []
    lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, (learners, mdps, seeds, points) in FOLDERS.items():
        few = max(2, seeds // 10) if options.quick else seeds
        with tempfile.TemporaryDirectory() as place:
            folder_of(place, learners, mdps, few, points)
            opened, made = measured(place, "open"), measured(place, "page")
            row = [
                name, f"{learners * mdps * few:,}", f"{opened['seconds']:.2f}", f"{opened['peak']:.0f}",
                f"{made['seconds']:.1f}", f"{made['seconds'] / opened['seconds']:.1f}", f"{made['peak']:.0f}",
                f"{made['bytes'] / 1e6:.1f}",
            ]  # fmt: skip
            if options.before:
                old = measured(place, "page", options.before.resolve())
                row += [f"{old['seconds']:.1f}", f"{old['seconds'] / made['seconds']:.1f}", f"{old['peak']:.0f}"]
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    lines += ["", f"The load of the machine was {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores (15 minutes)."]
    text = "\n".join(lines) + "\n"
    if options.write:
        options.write.write_text(text)
    return None


if __name__ == "__main__":
    main()
