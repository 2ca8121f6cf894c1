"""Small stores, made of real runs."""

from functools import lru_cache

import pyarrow as pa

import ravi
from ravi.ids import canonical
from ravi.lab.experiments import plan
from ravi.lab.experiments.plan import Setting
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.rows import failed_rows, rows_of
from ravi.lab.experiments.store import Store

STEPS, POINTS = 20, 5
SUITE = {
    "name": "tiny",
    "sections": [
        {
            "name": "first", "mdps": ["riverswim/4"], "learners": ["uniform", {"id": "ravi-ucb", "label": "ours"}],
            "steps": [STEPS], "seeds": 3, "points": POINTS,
        },
        {
            "name": "second", "mdps": ["riverswim/4"], "learners": [{"id": "ravi-ucb", "label": "ours"}],
            "columns": ["theory", "tuned"], "steps": [STEPS], "seeds": [0, 1], "points": POINTS,
        },
    ],
}  # fmt: skip


def setting(learner="uniform", steps=STEPS, points=POINTS):
    return Setting("riverswim/4", ravi.mdp("riverswim/4").digest, canonical(learner), "", steps, points)


@lru_cache
def made(learner="uniform", seeds=(0, 1, 2), steps=STEPS, points=POINTS):
    return ravi.run(learner, "riverswim/4", steps=steps, seeds=list(seeds), points=points)


def rows(launch, learner="uniform", seeds=(0, 1, 2), **changed):
    """The rows of real runs; `changed` columns are as given."""
    table = rows_of(made(learner, tuple(seeds)), setting(learner), ravi.mdp("riverswim/4"), launch)
    for name, values in changed.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return table


def failed(launch, learner="uniform", seeds=(0,), failure="learner"):
    return failed_rows(setting(learner), seeds, launch, failure, "ValueError: no", "Traceback ...")


def created(folder, suite=SUITE):
    """A store with its frozen suite."""
    store = Store(folder)
    store.create()
    if suite is not None:
        specified = specify(suite)
        store.freeze({"suite": specified.plain(), **plan.facts_of(specified, {}).plain()})
    return store


def subject(suite=SUITE):
    """What is tuned in the suite."""
    specified = specify(suite)
    facts = plan.facts_of(specified, {})
    found = [plan.subject_of(entry, facts, specified.tuning) for entry in specified.entries]
    return next(one for one in found if one is not None)
