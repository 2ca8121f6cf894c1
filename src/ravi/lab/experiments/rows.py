"""The row of a run: what it was, its exact regret with the error, its curves, or how it failed."""

import json
import traceback
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from ravi.lab.experiments.plan import Setting
from ravi.runtime.result import Run
from ravi.runtime.world import Named, find_world

FORMAT = "1"  # of the rows; in the metadata of every part
LINE, TEXT_MOST = 1000, 50_000  # letters that are kept of an error, and of its traceback
LEARNER, LOST = "learner", "lost"  # kinds of failure: the learner's own, which will come again; its worker died

TEXT, WHOLE, NUMBER = pa.string(), pa.int64(), pa.float64()
CURVE = pa.list_(pa.float64())
SCHEMA = pa.schema(
    [
        ("setting", TEXT),  # the id of the setting; with the seed, that of the run
        ("seed", WHOLE),
        ("mdp", TEXT),  # its id, or the path of its file
        ("mdp_digest", TEXT),
        ("learner", TEXT),  # its canonical id
        ("discount", NUMBER),
        ("states", WHOLE),  # X; null where they are continuous
        ("actions", WHOLE),  # A
        ("dimension", WHOLE),  # d of a mixture or a linear MDP, else 0
        ("steps", WHOLE),  # T
        ("points", WHOLE),
        ("optimum", NUMBER),  # rho*, or of the best fixed policy where rewards change; null in a large world
        ("optimum_error", NUMBER),
        ("regret", NUMBER),  # at T
        ("regret_error", NUMBER),  # certified
        ("gap", NUMBER),  # of the last policy
        ("reward", NUMBER),  # the sum of all
        ("trajectory_regret", NUMBER),  # at T; null unless recorded
        ("trajectory_regret_error", NUMBER),
        ("regret_curve", CURVE),  # at `ravi.measures.curve.grid(steps, points)`
        ("reward_curve", CURVE),  # null unless recorded
        ("trajectory_curve", CURVE),  # null unless recorded
        ("constants", TEXT),  # the learner's own, as JSON
        ("digest", TEXT),  # a hash of the bits of all results: two rows of one run must agree in it
        ("seconds", NUMBER),  # of computing: its share of the batch
        ("failure", TEXT),  # LEARNER or LOST; null for a run that succeeded
        ("error", TEXT),
        ("traceback", TEXT),
        ("launch", TEXT),  # which launch made it: the name of a manifest
    ],
    metadata={"ravi.format": FORMAT},
)
RESULTS = {  # column -> name in `Run.results`
    "regret": "regret_total", "regret_error": "regret_error", "gap": "gap", "reward": "reward_total",
    "trajectory_regret": "trajectory_regret_total", "trajectory_regret_error": "trajectory_regret_error",
}  # fmt: skip
CURVES = {"regret_curve": "regret", "reward_curve": "reward", "trajectory_curve": "trajectory_regret"}
SCALARS = [name for name in SCHEMA.names if name not in CURVES]


def rows_of(run: Run, setting: Setting, mdp: Named, launch: str) -> pa.Table:
    """The rows of a complete run, one per seed; what runs of its world do not have is null."""
    found = {column: run.results[name] for column, name in (RESULTS | CURVES).items() if name in run.results}
    if "reward" not in setting.record:
        found.pop("reward_curve", None)
    found |= {"optimum": run.results["optimum"]} if run.world == "changing" else {}
    X, A, d = find_world(mdp).sizes
    rows = _table(
        setting, run.seeds, launch, found, discount=run.discount, states=X, actions=A, dimension=d,
        optimum=run.optimum, optimum_error=run.optimum_error, constants=json.dumps(run.settings, sort_keys=True),
        seconds=run.seconds / len(run.seeds),
    )  # fmt: skip
    place = SCHEMA.get_field_index("digest")
    return rows.set_column(place, SCHEMA.field(place), pa.array(digests(rows), TEXT))


def failed_rows(
    setting: Setting, seeds: Sequence[int], launch: str, failure: str, error: str, trace: str = ""
) -> pa.Table:
    """The rows of runs that gave no result."""
    return _table(setting, seeds, launch, {}, failure=failure, error=error, traceback=trace)


def _table(setting: Setting, seeds: Sequence[int], launch: str, columns: dict[str, Any], **same: Any) -> pa.Table:
    """A row for every seed; `same` are the values that all of them share."""
    same |= {name: getattr(setting, name) for name in ("mdp", "mdp_digest", "learner", "steps", "points")}
    same |= {"setting": setting.digest, "launch": launch}
    columns = {"seed": seeds} | {name: list(array) if array.ndim == 2 else array for name, array in columns.items()}
    return pa.table({name: columns.get(name, [same.get(name)] * len(seeds)) for name in SCHEMA.names}, SCHEMA)


def digests(table: pa.Table) -> list[str | None]:
    """The hash that every row of these columns should have; None for runs that failed."""
    found: list[str | None] = []
    for row in table.select(["optimum", "optimum_error", "constants", "failure", *RESULTS, *CURVES]).to_pylist():
        hashed = sha256(repr((row["optimum"], row["optimum_error"], row["constants"])).encode())
        for name in (*RESULTS, *CURVES):
            if row[name] is not None:
                hashed.update(name.encode() + np.array(row[name], np.float64).tobytes())
        found.append(hashed.hexdigest()[:20] if row["failure"] is None else None)
    return found


def error_texts(error: BaseException) -> tuple[str, str]:
    """An error in one line, and in full; as much of both as is of use, in letters that can be stored."""
    try:
        lines = str(error).strip().splitlines()
        full = "".join(traceback.format_exception(error))
    except Exception as other:
        lines, full = (
            [f"(its text cannot be had: {type(other).__name__})"],
            "".join(traceback.format_tb(error.__traceback__)),
        )
    short = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return _stored(short[:LINE]), _stored(full[-TEXT_MOST:])


def _stored(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
