"""A small suite that has everything: theory, tuning, a mixture; and how two folders of it are compared."""

import ravi

SMALL = {
    "name": "small",
    "steps": 2000,
    "seeds": 6,
    "points": 20,
    "tuning": {"budget": 3, "seeds": 2},
    "sections": [
        {
            "name": "tabular",
            "mdps": ["riverswim/4"],
            "learners": ["ravi-ucb", "psrl"],
            "columns": ["theory", "tuned"],
        },
        {"name": "mixture", "mdps": ["riverswim/mixture/4"], "learners": ["ravi-ucb/mixture,scale=0.1"]},
    ],
}


def bits(folder):
    """Every run with the hash of its results, and what tuning chose."""
    held = ravi.results(folder)
    assert not held.troubles
    assert not held.conflicts
    runs = held.table(["run", "digest"])
    chosen = {subject: record["chosen"] for subject, record in held.tuning.items()}
    return dict(zip(runs["run"].to_pylist(), runs["digest"].to_pylist(), strict=True)), chosen
