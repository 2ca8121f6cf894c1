"""Every learner on a GPU against the CPU, then steps per second: one call, one machine.

    python benchmarks/gpu.py FOLDER     on a machine with a GPU: writes FOLDER/gpu.jsonl, line by line, in ten minutes

Each line is a process of its own, with a limit: one that hangs costs no more. Checks run side by side, timings alone.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
warnings.simplefilter("ignore")

TABULAR = "garnet/30,3,3,discount=0.9"
LARGER = "garnet/70,3,3,discount=0.9"  # for what is done in another way where states are many
MIXED = "ensemble/4,20,3,3,discount=0.9"
CHECKED = [
    ("ravi-ucb,scale=0.003,step_scale=30", TABULAR), ("ravi-ucb,scale=0.003,step_scale=30", "riverswim/6"),
    ("ravi-ucb+,scale=0.1,inner=3", TABULAR), ("ravi-ucb/known,step_scale=30", TABULAR),
    ("ravi-ucb/unknown-rewards,scale=0.003,step_scale=30", TABULAR),
    ("ravi-ucb+/unknown-rewards,scale=0.1,inner=3", TABULAR),
    ("ravi-ucb/doubling,scale=0.003,step_scale=30", TABULAR), ("ravi-ucb+/doubling,scale=0.1,inner=3", TABULAR),
    ("ravi-kl", TABULAR), ("ravi-kl,plan=greedy,support=off", TABULAR), ("ravi-kl,candidate=posterior", TABULAR),
    ("ravi-kl,plan=mirror,inner=3", TABULAR), ("ravi-kl/unknown-rewards", TABULAR),
    ("psrl", TABULAR), ("psrl,support=on,schedule=doubling", TABULAR),
    ("ravi-ucb+,scale=0.1,inner=3", LARGER), ("ravi-ucb+,scale=0.1,inner=3,fresh=off", LARGER),
    ("mbie-eb,scale=0.03", LARGER),
    ("ucrl2,scale=0.1", TABULAR), ("ucrl2,scale=0.1,support=on", TABULAR), ("ucrl2b,scale=0.1", TABULAR),
    ("kl-ucrl,scale=0.01", TABULAR), ("scal,scale=0.03,span=0.3", TABULAR), ("scal+,scale=0.02,span=0.5", TABULAR),
    ("ucrl2,scale=0.1,mode=blind", TABULAR), ("ucrl2b,scale=0.1,mode=blind", TABULAR),
    ("kl-ucrl,scale=0.01,mode=blind", TABULAR), ("scal,scale=0.03,span=0.3,mode=blind", TABULAR),
    ("scal+,scale=0.02,span=0.5,mode=blind", TABULAR),
    ("mbie,scale=0.1", TABULAR), ("mbie-eb,scale=0.03", TABULAR), ("r-max,m=3", TABULAR),
    ("certainty-equivalent", TABULAR), ("ucbvi-gamma,scale=0.005", TABULAR), ("q-learning", TABULAR),
    ("ucb-q,scale=0.0003", TABULAR), ("liu-su,scale=0.0003", TABULAR), ("delayed-q,m=1", TABULAR),
    ("md-mpi,scale=0.003,step_scale=30", TABULAR), ("politex,phase=2", TABULAR),
    ("uniform", TABULAR), ("optimum", TABULAR),
    ("ravi-ucb/mixture,scale=0.02,step_scale=30", MIXED), ("ravi-ucb+/mixture,scale=0.1,inner=3", MIXED),
    ("ravi-ucb/mixture/doubling,scale=0.02,step_scale=30", MIXED),
    ("ravi-ucb+/mixture/doubling,scale=0.1,inner=3", MIXED),
    ("ravi-ucb+/mixture,scale=0.001,inner=3,weights=variance", MIXED),
    ("ravi-ucb/mixture-sampled,scale=0.02,step_scale=30,samples=2", MIXED),
]  # fmt: skip
GARNET = "garnet/100,4,4,discount=0.99"
TIMED = {  # learner -> MDP, seeds there, plays there, seeds on a core, plays on a core
    "ravi-ucb,beta=0.5,eta=0.2": [
        ("riverswim/6,discount=0.9", 65_536, 200_000, 64, 20_000),
        (GARNET, 4_096, 1_000_000, 64, 20_000),
        (GARNET, 256, 400_000, 64, 20_000),
        ("riverswim/6,discount=0.9", 1_000_000, 10_000, 64, 20_000),
    ],
    "ravi-ucb/mixture,beta=1,eta=0.05": [
        ("ensemble/10,100,4,4,discount=0.95", 1_024, 200_000, 4, 200_000),
        ("ensemble/72,100,4,4,discount=0.95", 1_024, 40_000, 4, 40_000),
    ],
    "psrl,support=on": [(GARNET, 4_096, 100_000, 4, 100_000)],
    "ucrl2,scale=0.1": [(GARNET, 4_096, 100_000, 16, 100_000)],
    "ravi-kl": [(GARNET, 4_096, 20_000, 4, 20_000)],
}


def check(text, mdp, seeds=48, plays=2_000):
    """The same epochs, and regret within both certificates; what was compiled takes the first run."""
    import numpy as np

    from ravi import run

    here = run(text, mdp, plays, seeds)
    began = time.perf_counter()
    there = run(text, mdp, plays, seeds, device="gpu")
    first = time.perf_counter() - began
    began = time.perf_counter()
    again = run(text, mdp, plays, seeds, device="gpu")
    second = time.perf_counter() - began
    a, b = here.results, there.results
    same = a["T_k"].shape == b["T_k"].shape and bool((a["T_k"] == b["T_k"]).all())
    off, allowed = np.abs(a["regret_total"] - b["regret_total"]), a["regret_error"] + b["regret_error"]
    return {
        "same epochs": same, "regret within both certificates": bool((off <= allowed).all()), "off": float(off.max()),
        "allowed": float(allowed.max()), "bits again": bool((again.results["regret_total"] == b["regret_total"]).all()),
        "first": first, "second": second,
    }  # fmt: skip


def timed(text, plain=False):
    """Steps per second there and on a core, with exact regret, and without it where `plain`."""
    from ravi import ids, run
    from ravi.runtime.gpu import target

    found, cupy = [], target().cupy
    for mdp, seeds, plays, few, short in TIMED[text]:
        world = ids.mdp(mdp)
        for measured in (False, True) if plain else (True,):
            given = {"measured": measured, "keep_epochs": False, "points": 10}
            core = 0.0
            for _ in range(2):  # the first may compile
                began = time.process_time()
                run(text, world, short, few, **given)
                core = max(core, few * short / (time.process_time() - began))
            began = time.perf_counter()
            run(text, world, 200, seeds, device="gpu", **given)
            first = time.perf_counter() - began
            held = cupy.get_default_memory_pool().total_bytes()
            began = time.perf_counter()
            run(text, world, plays, seeds, device="gpu", **given)
            seconds = time.perf_counter() - began
            found.append({
                "mdp": mdp, "seeds": seeds, "plays": plays, "regret": measured, "there": seeds * plays / seconds,
                "core": core, "ratio": seeds * plays / seconds / core, "first": first, "bytes a seed": held / seeds,
            })  # fmt: skip
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
            cupy.get_default_memory_pool().free_all_blocks()
    return found


def products(d, seeds=1_024, pairs=400):
    """The product of a regression, of all seeds, against cuBLAS: on the same matrices, and at its best."""
    from ravi._jit import teams
    from ravi.runtime.gpu import Memory, here_is, target

    cupy = target().cupy

    def rate(product, a, b, flops):
        product(a, b)
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        best = 0.0
        for _ in range(10):
            start.record()
            product(a, b)
            end.record()
            end.synchronize()
            best = max(best, flops / cupy.cuda.get_elapsed_time(start, end) * 1e3)
        return best

    size = 8_192
    big = cupy.random.standard_normal((size, size))
    peak = rate(cupy.matmul, big, big, 2 * size**3)
    phi, root = cupy.random.standard_normal((seeds, pairs, d)), cupy.random.standard_normal((seeds, d, d))
    cublas = rate(cupy.matmul, phi, root, 2 * seeds * pairs * d * d)
    with here_is(Memory(*target())):
        ours = rate(teams.product, phi, root, 2 * seeds * pairs * d * d)
    return {"peak": peak, "cuBLAS": cublas, "ours": ours, "share": ours / peak}


def solved(states):
    from ravi.mdps import garnet
    from ravi.planning.solver import solve

    solve(garnet(1_000, 4, 5, 0, 0.99))  # compiles
    mdp, found = garnet(states, 4, 5, 0, 0.99), {}
    began = time.process_time()
    one = solve(mdp)
    found["core"] = time.process_time() - began
    for method in ("modified_policy_iteration", "value_iteration"):
        solve(mdp, device="gpu", method=method)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            there = solve(mdp, device="gpu", method=method)
            times.append(time.perf_counter() - began)
        within = abs(one.V - there.V).max() <= one.error + there.error
        found[method] = {"seconds": min(times), "ratio": found["core"] / min(times), "error": there.error,
                         "core's error": one.error, "within both": bool(within), "sweeps": there.sweeps}  # fmt: skip
    return found


def grid(device, half=None, seeds=64, plays=100_000):
    """12 x 12 settings of RAVI-UCB on RiverSwim(6), as one batch; `half` of them, for one of two cores."""
    from ravi import run_settings

    sizes = [0.001 * 2**k for k in range(12)]
    ids = [f"ravi-ucb,scale={a:g},step_scale={30 * 2**-k:g}" for a in sizes for k in range(12)]
    ids = ids if half is None else ids[half::2]
    run_settings(ids, "riverswim/6", 200, seeds, device=device, keep_epochs=False, points=1)  # compiles
    began = time.perf_counter()
    found = run_settings(ids, "riverswim/6", plays, seeds, device=device, keep_epochs=False, points=1)
    return {"seconds": time.perf_counter() - began, "best": min(float(r.results["regret_total"].mean()) for r in found)}


JOBS = {"check": check, "timed": timed, "products": products, "solved": solved, "grid": grid}


def main(folder):
    def do(limit, job, *given):
        began = time.perf_counter()
        command = [sys.executable, __file__, "--job", json.dumps([job, *given])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            failed = {"failed": done.stderr[-800:]}
            answer = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else failed
        except subprocess.TimeoutExpired as late:
            answer = {"failed": f"no answer in {limit} s", "so far": (late.stderr or b"").decode()[-1500:]}
        line = json.dumps([job, list(given), answer, round(time.perf_counter() - began, 1)])
        with open(folder / "gpu.jsonl", "a") as lines:
            lines.write(line + "\n")
        print(line[:600], flush=True)

    do(120, "timed", "ravi-ucb,beta=0.5,eta=0.2", True)
    for text in list(TIMED)[1:]:
        do(100, "timed", text)
    do(40, "solved", 10**6)
    do(150, "solved", 10**7)
    do(40, "grid", "gpu")
    for d in (72, 10):
        do(25, "products", d)
    with ThreadPoolExecutor(16) as pool:
        halves = [pool.submit(do, 110, "grid", "cpu", half) for half in (0, 1)]
        list(pool.map(lambda given: do(110, "check", *given), CHECKED))
        [half.result() for half in halves]


if __name__ == "__main__":
    if sys.argv[1] == "--job":
        name, *given = json.loads(sys.argv[2])
        print(json.dumps(JOBS[name](*given)))
    else:
        main(Path(sys.argv[1]))
