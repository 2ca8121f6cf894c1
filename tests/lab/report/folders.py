"""Folders of made-up runs, in the store's own format: any suite, any numbers, thousands of runs in a second."""

import json

import numpy as np
import pyarrow as pa

from ravi.lab.experiments import plan
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.rows import SCHEMA
from ravi.lab.experiments.store import Store
from ravi.measures.curve import grid

PUBLISHED = {"scale": None, "step_scale": None}


MANIFEST = {"format": 1, "started": "2026-01-02T03:04:05+00:00", "versions": {"ravi": "0.1.0"}}


def made(folder, suite, *, regret=None, power=None, fails=None, skips=None):
    """A folder of the suite, of which some runs may be skipped and some fail, with an error.

    The regret at T is `regret(entry, seed)`, or drawn; it grows as t to `power(entry, seed)`, or 0.6.
    """
    suite = specify(suite, build=False)
    facts = plan.facts_of(suite, {})
    store = Store(folder)
    store.create()
    store.freeze({"suite": suite.plain(), **facts.plain()})
    _tune(store, suite, facts)
    planned = plan.planned(suite, facts, store.tuning())
    seen, rows = set(), []
    with store.launch(MANIFEST) as launch:
        for entry, _, setting in planned:
            for seed in entry.seeds:
                if (setting.digest, seed) in seen or (skips and skips(entry, seed)):
                    continue
                seen.add((setting.digest, seed))
                error = fails(entry, seed) if fails else None
                grows = power(entry, seed) if power else 0.6
                rows.append(_row(entry, setting, seed, launch, error, (regret or drawn)(entry, seed), grows))
        if rows:
            store.write([pa.Table.from_pylist(rows, schema=SCHEMA)])
    return folder


def drawn(entry, seed):
    """A number that depends on the entry and the seed, and on nothing else."""
    place = sum(map(ord, entry.label + entry.mdp)) % 97
    noise = np.random.Generator(np.random.PCG64(1000 * place + seed)).normal()
    scale = {"theory": 10.0, "tuned": 1.0, "given": 1.0}[entry.column] if entry.label != "uniform" else 15.0
    return float(scale * (100 + 5 * place) * np.exp(0.1 * noise * (entry.label != "uniform")))


def _row(entry, setting, seed, launch, error, total, power):
    row = dict.fromkeys(SCHEMA.names)
    row |= {
        "setting": setting.digest, "seed": seed, "mdp": entry.mdp, "mdp_digest": setting.mdp_digest,
        "learner": setting.learner, "steps": entry.steps, "points": entry.points, "launch": launch,
    }  # fmt: skip
    if error is not None:
        return row | {"failure": "learner", "error": error, "traceback": f"Traceback ...\n{error}"}
    curve = total * (grid(entry.steps, entry.points) / entry.steps) ** power
    return row | {
        "discount": 0.9, "states": 6, "actions": 2, "dimension": 0, "optimum": 0.5, "optimum_error": 1e-9,
        "regret": total, "regret_error": 1e-8, "gap": 0.1, "reward": 1.0, "regret_curve": curve, "constants": "{}",
        "digest": f"{setting.digest}{seed}", "seconds": 0.01 + 0.001 * len(entry.label),
    }  # fmt: skip


def _tune(store, suite, facts):
    """A record that chose the second of three configurations, for everything that is tuned."""
    for entry in suite.entries:
        subject = plan.subject_of(entry, facts, suite.tuning)
        if subject is None:
            continue
        tried = []
        for number, value in enumerate((None, 0.1, 0.01)):
            given = PUBLISHED | (dict.fromkeys(subject.multipliers, value) if value else {})
            setting = plan.with_multipliers(subject.base, given, points=1, record=())
            tried.append(
                given | {"learner": setting.learner, "setting": setting.digest, "regret": 30.0 - 10 * (number == 1)}
                | {"standard_error": 1.0, "failed": 0}
            )  # fmt: skip
        record = {
            "subject": subject.digest, "mdp": subject.base.mdp, "mdp_digest": subject.base.mdp_digest,
            "learner": subject.base.learner, "steps": subject.base.steps, "sampler": "lattice", "budget": 3,
            "seeds": [10**6], "ranges": {"scale": [1e-4, 1], "step_scale": [0.1, 100]},
            "configurations": tried, "chosen": 1,
        }  # fmt: skip
        store.keep_tuning(subject.digest, json.loads(json.dumps(record)))
