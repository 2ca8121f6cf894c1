"""Curves are read part by part, few at a time, and are the runs' own whatever the order in which they were stored."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import ravi
from ravi.lab.experiments import parts
from ravi.validation import InputError
from tests.lab.experiments.stores import created, failed, made, rows

SEEDS = tuple(range(6))


@pytest.fixture
def found(tmp_path):
    """Two settings in four parts, each of which holds some runs of both; one run failed."""
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        for seeds in ((4, 1), (0,), (5, 3, 2)):
            store.write([rows(launch, "ravi-ucb", seeds), rows(launch, "uniform", seeds)])
        store.write([failed(launch, "uniform", (6,))])
    return ravi.results(tmp_path)


def lines_of(found):
    succeeded = found.runs["failure"].is_null().to_numpy()
    return [held[succeeded[held]] for held in found.by_setting.values()]


def learner_of(found, line):
    return found.runs["learner"][int(line[0])].as_py()


@pytest.mark.parametrize(("block", "at_a_time"), [(parts.BLOCK, [12]), (60, [12]), (59, [6, 6]), (1, [6, 6])])
def test_curves_are_the_runs_own_however_few_are_held(found, block, at_a_time, monkeypatch):
    """Two lines of 6 runs, 5 points each: 60 numbers."""
    opened, most = [], []
    original, read = pq.ParquetFile, parts._read
    monkeypatch.setattr(parts, "BLOCK", block)
    monkeypatch.setattr(parts.pq, "ParquetFile", lambda path: opened.append(path) or original(path))
    monkeypatch.setattr(
        parts,
        "_read",
        lambda paths, lines, name: most.append(sum(map(len, lines.values()))) or read(paths, lines, name),
    )
    lines = lines_of(found)
    curves = dict(found.curves_of(lines))
    assert sorted(curves) == [0, 1]
    for number, held in curves.items():
        run = made(learner_of(found, lines[number]), SEEDS)
        assert held.tobytes() == run.regret_curve.tobytes()
    assert most == at_a_time
    assert len(opened) == 3 * len(most)  # every part with curves once, as long as all lines fit
    assert len(set(opened)) == 3


def test_a_part_of_a_line_a_line_twice_and_none(found):
    (one, other) = lines_of(found)
    whole = dict(found.curves_of([one, other]))
    curves = dict(found.curves_of([one[[4, 0]], np.zeros(0, int), other, other[:1]]))
    assert sorted(curves) == [0, 2, 3]
    np.testing.assert_array_equal(curves[0], whole[0][[4, 0]])
    np.testing.assert_array_equal(curves[2], whole[1])
    np.testing.assert_array_equal(curves[3], whole[1][:1])
    assert list(found.curves_of([])) == []


def test_rows_of_a_setting_come_by_seed_failures_too(found):
    for held in found.by_setting.values():
        assert len({found.runs["setting"][int(row)].as_py() for row in held}) == 1
        assert (np.diff(found.runs["seed"].to_numpy()[held]) > 0).all()
    assert sorted(map(len, found.by_setting.values())) == [6, 7]
    assert sum(map(len, found.by_setting.values())) == found.runs.num_rows


def test_curves_that_were_not_recorded_are_an_error_that_names_the_part(found):
    with pytest.raises(InputError, match=r"parts/.*reward_curve was not recorded for all runs of a line alike"):
        list(found.curves_of(lines_of(found), "reward"))
    every = found.by_setting.values()
    with pytest.raises(InputError, match="regret_curve was not recorded"):
        list(found.curves_of(list(every)))  # of a run that failed
