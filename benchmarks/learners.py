"""The speed of every learner: steps per second, compared with those of the uniform policy, in one run of this script.

python benchmarks/learners.py [--quick] [--only PREFIX] [--write benchmarks/learners.md]
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

from timing import least, opening  # first: it keeps BLAS to one thread

# isort: split
import numpy as np

from ravi import ids
from ravi._jit.functions import bound
from ravi._jit.teams import allocate
from ravi.core import MDP
from ravi.estimators.counts import tallies
from ravi.mdps import garnet, riverswim
from ravi.optimism import sets
from ravi.optimism.extended_value_iteration import MOST, _iterate, given
from ravi.runtime.api import run

ABOUT = """
How many steps per second does each learner make, and does a step cost more as the run gets longer? For those who plan
experiments. "Ratio" is the time of a step relative to a step of the uniform policy, which plans nothing. One extended
value iteration is compared with one in NumPy, and UCBVI-gamma with the UCBVI of rlberry-scool, if that is installed.

All figures are from one run of the script: 64 seeds unless stated otherwise, one core, CPU time including planning,
with functions compiled beforehand. "theory" are the constants of the theory; the other row of a learner has constants
with which its policies change.
"""
SEEDS = 64
TABULAR = ("riverswim/6,discount=0.95", "garnet/20,4,5,discount=0.95", "garnet/100,4,5,discount=0.95")
MOVING = {
    "ravi-ucb": "scale=0.001,step_scale=30",
    "ucrl2": "scale=0.03",
    "ucrl2b": "scale=0.03",
    "kl-ucrl": "scale=0.003",
    "scal": "scale=0.03,span=5",
    "scal+": "scale=0.03",
    "r-max": "m=10",
    "mbie": "scale=0.1",
    "mbie-eb": "scale=0.03",
    "ucbvi-gamma": "scale=0.005,third_term=off",
    "delayed-q": "m=10",
    "ucb-q": "scale=0.0003",
    "liu-su": "scale=0.0003",
    "q-learning": "initial=optimistic",
    "md-mpi": "scale=0.001,step_scale=30,sweeps=0",
    "politex": "step_scale=30",
    "npg": "scale=0.001",
    "mdp-e": "step_scale=10",
    "o-reps": "step_scale=10",
    "ravi-ucb/known": "step_scale=30",
    "ravi-ucb/mixture": "scale=0.02,step_scale=30",
    "ucrl-vtr": "scale=0.06",
    "oppo": "scale=0.06,step_scale=30",
    "uclk": "scale=0.01,inner=null-space",
    "uclk+": "scale=0.001,inner=null-space",
    "uclk-c": "scale=0.001,inner=null-space",
    "threshold": "scale=0.001",
    "lsvi-ucb": "scale=0.01",
    "olsvi-fh": "scale=0.00025",
    "gamma-lscvi-ucb": "scale=0.001",
    "rlsvi": "scale=0.01",
    "fixed-point-lsvi": "scale=0.0003",
    "fopo": "scale=0.0001",
    "mdp-exp2": "phase=5,step_scale=1000",
    "rmax-ravi-ucb": "scale=0.0003,step_scale=3000",
}
SLOW = {"o-reps": 20, "psrl": 10, "mbie": 10, "mbie-eb": 5, "certainty-equivalent": 5}  # fewer steps, so many times
LINEAR = {"lsvi-ucb", "olsvi-fh", "gamma-lscvi-ucb", "rlsvi", "fixed-point-lsvi", "fopo", "mdp-exp2", "rmax-ravi-ucb"}
MIXTURE = {"ravi-ucb/mixture", "ucrl-vtr", "oppo", "uclk", "uclk+", "uclk-c", "threshold"}


def rate(learner, mdp, T, seeds=SEEDS, **options):
    """Steps per CPU second, after a short run that compiles."""
    made = ids.learner(learner, mdp, T)
    run(made, mdp, min(T, 100), 2, **options)
    return seeds * T / least(lambda: run(made, mdp, T, seeds, **options), 1)


def tabular(rows, quick, only):
    rows.append("### Tabular learners, steps per second, 64 seeds\n")
    heads = (f"{name}: plain | ratio | with exact regret" for name in TABULAR)
    rows.append("| learner | setting | " + " | ".join(heads) + " |")
    rows.append("|---" * (2 + 3 * len(TABULAR)) + "|")
    mdps = [ids.mdp(text) for text in TABULAR]
    walk = [rate("uniform", mdp, 100_000, measured=False) for mdp in mdps]
    for name in ids.LEARNERS:
        if name in LINEAR | MIXTURE or not name.startswith(only):
            continue
        for setting in ["", *([MOVING[name]] if name in MOVING else [])]:
            cells = []
            for mdp, base in zip(mdps, walk, strict=True):
                T = (10_000 if quick else 50_000) // (SLOW.get(name, 1) if setting or name not in MOVING else 1)
                learner = f"{name},{setting}" if setting else name
                plain = rate(learner, mdp, T, measured=False)
                scored = rate(learner, mdp, T // 5, keep_epochs=False)
                cells += [f"{plain:,.0f}", f"{base / plain:.1f}", f"{scored:,.0f}"]
            rows.append(f"| {name} | {setting or 'theory'} | " + " | ".join(cells) + " |")
            print(rows[-1], flush=True)
    rows.append("")


def one_hot(X):
    """RiverSwim as a mixture of d = X A X indicators."""
    mdp = riverswim(X, 0.95)
    A, B = mdp.actions, mdp.branching
    psi = np.zeros((X, A, B, X * A * X))
    x, a, j = np.indices((X, A, B))
    psi[x, a, j, (x * A + a) * X + mdp.successors] = 1.0
    theta = np.zeros(X * A * X)
    np.add.at(theta, (x * A + a) * X + mdp.successors, mdp.transitions)
    return MDP.from_features(psi, theta, mdp.successors, mdp.rewards, 0.95, 0, name=f"one-hot riverswim/{X}")


def linear(rows, quick, only):
    rows.append("### Linear mixtures and linear MDPs, steps per second, 64 seeds\n")
    rows.append("| learner | setting | MDP | d | plain | with exact regret |")
    rows.append("|---|---|---|---|---|---|")
    ensemble, small = ids.mdp("ensemble/10,20,4,3,discount=0.9"), ids.mdp("linear/50,4,5")
    river = ids.mdp("riverswim/6,discount=0.95")
    cases = [("ravi-ucb/mixture", "scale=0.02,step_scale=30", mdp, 20_000) for mdp in (one_hot(6), ensemble)]
    cases += [("ucrl-vtr", s, one_hot(X), 10_000) for X in (4, 6, 10) for s in ("", "scale=0.06")]
    cases += [("oppo", "scale=0.06,step_scale=30", one_hot(6), 10_000)]
    cases += [
        (name, s, ensemble, 4_000) for name in ("uclk", "uclk+", "uclk-c", "threshold") for s in ("", "scale=0.01")
    ]
    cases += [(name, s, river, 20_000) for name in ("lsvi-ucb", "rlsvi") for s in ("", "scale=0.01")]
    cases += [(name, "scale=0.01", small, 10_000) for name in ("lsvi-ucb", "gamma-lscvi-ucb", "rlsvi")]
    cases += [
        ("olsvi-fh", "scale=0.00025", small, 10_000),
        ("fixed-point-lsvi", "scale=0.0003", small, 10_000),
        ("fopo", "scale=0.0001", river, 5_000),
    ]
    cases += [("mdp-exp2", "phase=5,step_scale=1000", small, 20_000)]
    cases += [("rmax-ravi-ucb", "scale=0.0003,step_scale=3000", small, 10_000)]
    for name, setting, mdp, T in cases:
        if not name.startswith(only):
            continue
        learner, T = f"{name},{setting}" if setting else name, T // (5 if quick else 1)
        d = mdp.dimension or (mdp.states * mdp.actions if mdp.pair_features is None else mdp.pair_features.shape[2])
        plain, scored = rate(learner, mdp, T, measured=False), rate(learner, mdp, T // 4, keep_epochs=False)
        rows.append(f"| {name} | {setting or 'theory'} | {mdp.name} | {d} | {plain:,.0f} | {scored:,.0f} |")
        print(rows[-1], flush=True)
    rows.append("")


def growth(rows, quick, only):
    rows.append("### Growth of the cost of a step with T: steps per second at 4 T divided by those at T, 16 seeds\n")
    rows.append("| learner | MDP | T | ratio |")
    rows.append("|---|---|---|---|")
    river, mixture = ids.mdp("riverswim/6,discount=0.95"), ids.mdp("riverswim/mixture/6,discount=0.95")
    for name in ids.LEARNERS:
        if not name.startswith(only):
            continue
        T = (2_000 if quick else 10_000) // (4 if name in SLOW else 1)
        mdp = mixture if name in MIXTURE else river
        setting = MOVING.get(name, "")
        learner = f"{name},{setting}" if setting else name
        long, short = (rate(learner, mdp, t, 16, measured=False) for t in (4 * T, T))
        rows.append(f"| {learner} | {mdp.name} | {T:,} | {long / short:.2f} |")
        print(rows[-1], flush=True)
    rows.append("")


def numpy_extended_value_iteration(r, p_hat, radius, gamma, tol):
    """As it is usually written: dense rows, one sort a sweep, arrays for all pairs."""
    X = p_hat.shape[-1]
    u, sweeps = np.zeros(X), 0
    while True:
        order = np.argsort(u)
        p = p_hat.copy()
        p[..., order[-1]] = np.minimum(1, p[..., order[-1]] + radius / 2)
        for l in order:
            excess = p.sum(-1) - 1
            if (excess <= 1e-12).all():
                break
            p[..., l] -= np.minimum(p[..., l], np.maximum(excess, 0))
        fresh = (r + gamma * (p @ u)).max(-1)
        sweeps += 1
        if np.ptp(fresh - u) <= tol:
            return fresh, sweeps
        u = fresh - fresh.min()


def planned(kind, radius, constant, r, successors, gamma, D, tol):
    """The sweeps (n,) of extended value iteration from u = 0 over these sets, of all seeds."""
    (n, X, A), loop = D.visits.shape, bound(_iterate, most=kind.most)
    own, u, before, Q, Lu = allocate(given(r, successors, gamma, D, n)), np.zeros((n, X)), *np.empty((3, X * A))
    own.radius[:], own.constant[:] = radius.reshape(n, -1), constant.reshape(n, -1)
    sweeps = []
    for i in range(n):
        kind.prepare(own, i, i)
        sweeps.append(loop(own, i, i, u[i], before[:X], Lu[:X], Q, tol[i], np.inf, 1.0, MOST)[3])
    return np.array(sweeps)


def extended(rows, quick, only):
    rows.append("### One extended value iteration from u = 0, X = 100, A = 4, gamma .95, ms per seed, 64 seeds\n")
    rows.append("| successors stored | visits per pair | set | sweeps | ms | NumPy, dense, L1 | ratio |")
    rows.append("|---|---|---|---|---|---|---|")
    for B in (5, 100):
        mdp = garnet(100, 4, B, 0, 0.95)
        for plays in (50, 5000):
            rng = np.random.default_rng(plays)
            D = tallies(mdp.problem, SEEDS)
            D.visits[:] = plays
            D.moves[:] = rng.multinomial(
                plays, mdp.transitions / mdp.transitions.sum(-1, keepdims=True), (SEEDS, 100, 4)
            )
            radius = np.full(D.visits.shape, 2.0 / plays**0.5)
            r, tol = mdp.rewards[None], np.full(SEEDS, 1e-3)
            known = r, mdp.successors, mdp.discount, D
            kinds = {
                "L1": (sets.l1, radius, radius),
                "Bernstein": (sets.bernstein, radius, radius**2),
                "KL": (sets.kl, radius**2, radius),
            }
            p_hat = np.zeros((100, 4, 100))
            np.put_along_axis(p_hat, mdp.successors.astype(np.int64), D.moves[0] / plays, axis=2)
            usual = least(lambda: numpy_extended_value_iteration(r[0], p_hat, radius[0], 0.95, 1e-3), 3)  # noqa: B023
            for name, kind in kinds.items():
                sweeps = planned(*kind, *known, tol)
                ours = least(lambda: planned(*kind, *known, tol), 3) / SEEDS  # noqa: B023
                rows.append(
                    f"| {B} | {plays:,} | {name} | {sweeps.mean():.0f} | {ours * 1e3:.2f} | {usual * 1e3:.0f} "
                    f"| {usual / ours:,.0f} |"
                )
                print(rows[-1], flush=True)
    rows.append("")


def peers(rows, quick, only):
    if find_spec("rlberry_scool") is None:
        print("rlberry-scool is not installed: its UCBVI is not measured")
        return
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents import UCBVIAgent

    rows.append("### rlberry's UCBVI and this library's UCBVI-gamma, steps per second, measured in the same run\n")
    rows.append("| MDP | rlberry UCBVI, horizon 20 | ucbvi-gamma, 64 seeds | ratio | ucbvi-gamma, 1 seed | ratio |")
    rows.append("|---|---|---|---|---|---|")
    for text, episodes in zip(TABULAR, (500, 100, 5), strict=True):
        mdp = ids.mdp(text)
        P = np.zeros((mdp.states, mdp.actions, mdp.states))
        np.put_along_axis(P, mdp.successors.astype(np.int64), mdp.transitions, axis=2)
        world = FiniteMDP(mdp.rewards, P, mdp.initial)
        agent = UCBVIAgent(world, gamma=0.95, horizon=20, bonus_scale_factor=0.1, seeder=0)
        agent.fit(2)
        began = time.process_time()
        agent.fit(episodes)
        theirs = 20 * episodes / (time.process_time() - began)
        ours = [rate(f"ucbvi-gamma,{MOVING['ucbvi-gamma']}", mdp, 20_000, n, measured=False) for n in (SEEDS, 1)]
        cells = [f"{theirs:,.0f}", *(f"{our:,.0f} | {our / theirs:,.0f}" for our in ours)]
        rows.append(f"| {text} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    rows.append("")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--only", default="", help="learners whose id begins so")
    parser.add_argument("--parts", default="tabular,linear,growth,extended,peers", help="which tables")
    parser.add_argument("--write", type=Path, help="write the tables to this file")
    wanted = parser.parse_args()
    rows: list[str] = []
    for part in wanted.parts.split(","):
        globals()[part](rows, wanted.quick, wanted.only)
    if wanted.write is not None:
        wanted.write.write_text("\n".join([*opening("How fast is every learner?", ABOUT, "learners.py"), *rows]))


if __name__ == "__main__":
    main()
