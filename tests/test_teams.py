"""What a GPU would do, on a machine that has none: teams of several threads, and kernels as PTX."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ravi import ids
from ravi.runtime import compiled as compiled_driver

ROOT = Path(__file__).parent.parent
IDS = [
    "ravi-ucb,scale=0.01,step_scale=30", "ravi-ucb+,inner=2,scale=0.1", "ravi-ucb+,inner=2,fresh=off",
    "ravi-ucb/known,step_scale=30",
    "ravi-ucb/unknown-rewards,scale=0.003,step_scale=30", "ravi-ucb+/unknown-rewards,scale=0.1,inner=3",
    "ravi-ucb/doubling,scale=0.003,step_scale=30", "ravi-ucb+/doubling,scale=0.1,inner=3",
    "ravi-kl", "ravi-kl,plan=greedy,support=off", "ravi-kl,candidate=posterior", "ravi-kl,plan=mirror,inner=2",
    "ravi-kl/unknown-rewards", "psrl", "psrl,support=on,schedule=doubling", "ucrl2,scale=0.1",
    "ucrl2,scale=0.1,support=on", "ucrl2b,scale=0.1", "kl-ucrl,scale=0.01", "scal,scale=0.03,span=0.3",
    "scal+,scale=0.02,span=0.5", "ucrl2,scale=0.1,mode=blind", "ucrl2b,scale=0.1,mode=blind",
    "kl-ucrl,scale=0.01,mode=blind", "scal,scale=0.03,span=0.3,mode=blind", "scal+,scale=0.02,span=0.5,mode=blind",
    "mbie,scale=0.1", "mbie-eb,scale=0.03", "r-max,m=3", "certainty-equivalent",
    "ucbvi-gamma,scale=0.005", "q-learning", "ucb-q,scale=0.0003", "liu-su,scale=0.0003", "delayed-q,m=1",
    "md-mpi,scale=0.01,step_scale=30", "politex,phase=2", "uniform", "optimum", "psrl,support=on",
    "ucbvi,scale=0.03", "ucbvi,scale=0.03,bonus=hoeffding", "optimistic-q,scale=0.01",
    "optimistic-q/average,scale=0.01,span=0.5",
]  # fmt: skip
# Of those whose seeds plan together.
MIXTURES = [
    "ravi-ucb/mixture,scale=0.02,step_scale=30", "ravi-ucb+/mixture,scale=0.1,inner=3",
    "ravi-ucb/mixture/doubling,scale=0.02,step_scale=30", "ravi-ucb+/mixture/doubling,scale=0.1,inner=3",
    "ravi-ucb+/mixture,scale=0.001,inner=3,weights=variance",
    "ravi-ucb/mixture-sampled,scale=0.02,step_scale=30,samples=2",
]  # fmt: skip
# Kernels to compile, the first with every measure; on a GPU all are (tests/test_gpu.py).
FORMS = [
    "ravi-ucb+", "ravi-ucb", "ravi-kl", "psrl", "ucrl2,mode=blind", "certainty-equivalent",
    "ucbvi-gamma", "q-learning", "uniform", "politex", "ravi-ucb+/mixture/doubling",
    "ravi-ucb+/mixture,weights=variance", "ravi-ucb/mixture-sampled,samples=2",
]  # fmt: skip
# sync() that are needed: function -> which of its own.
NEEDED = {
    "ravi.learners.ravi_ucb.inner_counts:_centred": [0],
    "ravi.learners.ravi_ucb.inner_counts:_backed_up": [0],
    "ravi.learners.ravi_ucb.inner_counts:_into_columns": [0, 1],
    "ravi.learners.ravi_ucb.inner_counts:_put_aside": [0],
    "ravi.learners.ravi_ucb.inner_counts:_out_of_columns": [0],
    "ravi.learners.ravi_ucb.inner:inner_plan": [0],
    "ravi.planning.chains:eliminate": [0, 1],
    "ravi.runtime.compiled:_advance": [2],
    "ravi.estimators.ridge:_add": [0, 1],
    "ravi.estimators.variance_weighted:_add": [0],
    "ravi.estimators.gram:add_feature": [0, 1],
    "ravi.estimators.ridge:root_of": [0, 1, 2, 3, 4, 5],
}


def lines_of(module, *arguments, **environment):
    words = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"PYTHONPATH": path} | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_learner_that_runs_on_a_gpu_is_here():
    named = {text.split(",")[0] for text in [*IDS, *MIXTURES]}
    for name in ids.LEARNERS:
        mdp = ids.mdp("ensemble/3,6,2,2" if "mixture" in name or name == "ravi-ucb/linear" else "riverswim/6")
        try:
            learner = ids.learner(name, mdp, 100)
        except ValueError:
            continue  # of another kind of problem
        assert name in named or learner.seedwise is None


def test_teams_of_three_threads_do_what_one_does():
    for text, found in lines_of("tests.support.teams_played", *IDS, NUMBA_DISABLE_JIT="1"):
        assert all(not arrays for arrays in found.values()), (text, found)


def test_a_sync_that_is_missing_is_found():
    for name, which, found in lines_of(
        "tests.support.teams_played", "--without", json.dumps(NEEDED), NUMBA_DISABLE_JIT="1"
    ):
        assert found, f"{name} without its sync() number {which} does the same"


def test_kernels_compile_to_ptx_for_hopper():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    for text, length, by_threads in lines_of("tests.support.kernels", *FORMS):
        assert length > 0, (text, by_threads)
        assert by_threads is True, f"{text}: no loop of its kernel is shared among threads"


def test_the_words_of_a_cpu_do_not_reach_a_kernel():
    """They did where they were inlined, once a CPU had compiled a body. Afterwards, numba-cuda is as it was."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    code = (
        "from ravi import run; run('uniform', 'riverswim/6', 50, 1)\n"
        "import numpy as np\n"
        "from ravi._jit.teams import each\n"
        "from ravi._jit.cuda import compiling, cuda_words\n"
        "from numba import njit, types\n"
        "from types import SimpleNamespace\n"
        "def shared(a):\n    for x in each(a.shape[0]):\n        a[x] += 1.0\n"
        "njit(shared)(np.zeros(3))\n"
        "kind = types.Array(types.float64, 1, 'C')\n"
        "cuda = cuda_words()\n"
        "from numba.cuda import dispatcher\n"
        "dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))\n"
        "with compiling(32):\n"
        "    print('ntid.x' in cuda.compile_ptx(shared, (kind,), cc=(9, 0))[0])\n"
        "from numba.cuda import target\n"
        "from numba.cuda.np import arrayobj\n"
        "context = target.CUDATypingContext\n"
        "print(arrayobj.fix_integer_index.__module__, context.resolve_value_type.__module__)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["True", "numba.cuda.np.arrayobj", "numba.cuda.target"], done.stderr[-1000:]


def test_what_does_not_run_there_is_refused_by_name():
    mdp = ids.mdp("riverswim/6")
    assert compiled_driver.why_not(ids.learner("o-reps", mdp, 100), [], []) == "o-reps does not run there"
    psrl = ids.learner("psrl", mdp, 100)
    assert compiled_driver.why_not(psrl, [], []) is None
    assert "another plan" in compiled_driver.why_not(psrl._replace(add=lambda s, path: s), [], [])
