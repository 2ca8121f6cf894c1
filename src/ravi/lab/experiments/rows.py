"""The row of a run: what it was, its exact regret with the error, its curves, or how it failed."""

import json
import traceback
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from ravi.lab.experiments.schedule.settings import Setting
from ravi.runtime.result import Run
from ravi.runtime.world import Named, world_named

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
RESULTS = ("regret", "regret_error", "gap", "reward", "trajectory_regret", "trajectory_regret_error")
CURVES = ("regret_curve", "reward_curve", "trajectory_curve")
NAMES = {"reward": "reward_total", "trajectory_regret": "trajectory_regret_total"}  # in `Run.results`
NAMES |= {"regret": "regret_total", "regret_curve": "regret"}
NAMES |= {"reward_curve": "reward", "trajectory_curve": "trajectory_regret"}


def rows_of(run: Run, setting: Setting, mdp: Named, launch: str) -> pa.RecordBatch:
    """The rows of a complete run, one per seed; what runs of its world do not have is null."""
    n = len(run.seeds)
    found = {name: run.results.get(NAMES.get(name, name)) for name in (*RESULTS, *CURVES)}
    if "reward" not in setting.record:
        found["reward_curve"] = None
    constants = json.dumps(run.settings, sort_keys=True)
    X, A, d = world_named(mdp).sizes
    optima = run.results["optimum"].tolist() if run.world == "changing" else [run.optimum] * n
    heads = [repr((optimum, run.optimum_error, constants)).encode() for optimum in optima]
    columns: dict[str, Any] = _columns(setting, run.seeds, launch) | {
        "discount": [run.discount] * n, "states": [X] * n, "actions": [A] * n, "dimension": [d] * n, "optimum": optima,
        "optimum_error": [run.optimum_error] * n, "constants": [constants] * n, "seconds": [run.seconds / n] * n,
        "digest": [_digest(heads[i], found, i) for i in range(n)],
    }  # fmt: skip
    for name, array in found.items():
        if array is not None:
            columns[name] = _lists(array) if name in CURVES else np.ascontiguousarray(array, np.float64)
    return _batch(columns, n)


def digests(table: pa.Table) -> list[str | None]:
    """The hash that every row of these columns should have; None for runs that failed."""
    columns = {name: table[name].to_pylist() for name in ("optimum", "optimum_error", "constants", "failure", *RESULTS)}
    curves = {name: table[name].combine_chunks() for name in CURVES}
    found: list[str | None] = []
    for i in range(table.num_rows):
        if columns["failure"][i] is not None:
            found.append(None)
            continue
        head = repr((columns["optimum"][i], columns["optimum_error"][i], columns["constants"][i])).encode()
        held: dict[str, Any] = {name: columns[name][i] for name in RESULTS}
        held |= {
            name: None if curve[i].as_py() is None else curve[i].values.to_numpy() for name, curve in curves.items()
        }
        found.append(_digest(head, {name: None if v is None else [v] for name, v in held.items()}, 0))
    return found


def failed_rows(
    setting: Setting, seeds: Sequence[int], launch: str, failure: str, error: str, trace: str = ""
) -> pa.RecordBatch:
    """The rows of runs that gave no result."""
    n = len(seeds)
    columns = _columns(setting, seeds, launch) | {
        "failure": [failure] * n, "error": [error] * n, "traceback": [trace] * n,
    }  # fmt: skip
    return _batch(columns, n)


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


def packed(batch: pa.RecordBatch) -> bytes:
    """How rows travel from a worker to the driver: as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpacked(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def _columns(setting: Setting, seeds: Sequence[int], launch: str) -> dict[str, Any]:
    n = len(seeds)
    same = {
        "setting": setting.digest, "mdp": setting.mdp, "mdp_digest": setting.mdp_digest, "learner": setting.learner,
        "steps": setting.steps, "points": setting.points, "launch": launch,
    }  # fmt: skip
    return {"seed": list(seeds)} | {name: [value] * n for name, value in same.items()}


def _batch(columns: dict[str, Any], n: int) -> pa.RecordBatch:
    arrays = [
        pa.nulls(n, field.type) if field.name not in columns else _array(columns[field.name], field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _lists(curves: np.ndarray) -> pa.Array:
    n, P = curves.shape
    offsets = np.arange(0, (n + 1) * P, P, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(curves, np.float64).ravel()))


def _digest(head: bytes, found: dict[str, Any], seed: int) -> str:
    hashed = sha256(head)
    for name, array in found.items():
        if array is not None:
            hashed.update(name.encode() + np.ascontiguousarray(array[seed], np.float64).tobytes())
    return hashed.hexdigest()[:20]
