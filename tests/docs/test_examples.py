"""The example that writes RAVI-UCB from scratch is the library's learner."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import ravi

EXAMPLE = Path(__file__).parents[2] / "examples" / "ravi_ucb_from_scratch.py"


def test_algorithm_2_from_scratch_is_the_learner_of_the_library():
    epochs, regret = runpy.run_path(str(EXAMPLE))["ravi_ucb"]()
    run = ravi.run("ravi-ucb,scale=0.003,step_scale=100", "riverswim/6,discount=0.9", steps=5000, seeds=1)
    assert [first for first, _ in epochs] == run.T_k[0].tolist()
    np.testing.assert_allclose(epochs[-1][1], run.last_policy[0], rtol=1e-9)
    assert regret == pytest.approx(run.regret[0], abs=1e-8 + run.regret_error[0])
    assert len(EXAMPLE.read_text().splitlines()) <= 80
