"""The speed of `solve`, next to value iteration in SciPy and to QuantEcon's and mdpsolver's modified policy iteration.

python benchmarks/solve.py [--write FILE] [--repeats N]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from importlib import import_module, metadata
from math import inf, isnan, nan
from pathlib import Path

import numpy as np
from scipy import sparse

from ravi.core import MDP
from ravi.mdps import garnet, riverswim, terrain
from ravi.planning import solve

TOL = 1e-6
MINUTE = 60.0


def scipy_value_iteration(mdp: MDP) -> Callable[[], np.ndarray]:
    """V <- max_a r + gamma P V with P in CSR form, stopped and corrected by MacQueen's bounds."""
    X, A, gamma = mdp.states, mdp.actions, mdp.discount
    P, r = kernel(mdp), mdp.rewards.ravel()

    def run() -> np.ndarray:
        V, began = np.zeros(X), time.process_time()
        while True:
            TV = (r + gamma * (P @ V)).reshape(X, A).max(-1)
            delta = TV - V
            low, high = delta.min(), delta.max()
            if gamma * mdp.horizon * (high - low) / 2 <= TOL:
                return TV + gamma * mdp.horizon * (low + high) / 2
            V = TV
            if time.process_time() - began > MINUTE:
                raise TimeoutError

    return run


def quantecon_modified_policy_iteration(mdp: MDP) -> Callable[[], np.ndarray]:
    from quantecon.markov import DiscreteDP

    pairs = np.arange(mdp.states * mdp.actions)
    x, a = np.divmod(pairs, mdp.actions)
    model = DiscreteDP(mdp.rewards.ravel(), sparse.csr_matrix(kernel(mdp)), mdp.discount, x, a)

    def run() -> np.ndarray:
        return model.solve(method="mpi", epsilon=TOL, max_iter=10**6).v

    return run


def mdpsolver_modified_policy_iteration(mdp: MDP) -> Callable[[], np.ndarray]:
    import mdpsolver

    model = mdpsolver.model()
    model.mdp(
        discount=mdp.discount,
        rewards=mdp.rewards.tolist(),
        tranMatProbs=mdp.transitions.tolist(),
        tranMatColumns=mdp.successors.tolist(),
    )
    first, zero = [0] * mdp.states, [0.0] * mdp.states  # it would go on from its last answer

    def run() -> np.ndarray:
        model.solve(algorithm="mpi", tolerance=TOL, parallel=False, initPolicy=first, initValueVector=zero)
        return np.array(model.getValueVector())

    return run


def corridor(X: int, A: int, reach: int, gamma: float) -> MDP:
    """Every action leads to states at most `reach` away, at random."""
    rng, B = np.random.default_rng(0), 2 * reach + 1
    first = np.clip(np.arange(X) - reach, 0, X - B)
    successors = np.broadcast_to((first[:, None] + np.arange(B))[:, None], (X, A, B))
    P, r = rng.dirichlet(np.ones(B), (X, A)), rng.uniform(size=(X, A))
    return MDP(rewards=r, successors=successors, transitions=P, initial=0, discount=gamma)


def ours(mdp: MDP) -> Callable[[], np.ndarray]:
    return lambda: solve(mdp, tol=TOL).V


def kernel(mdp: MDP) -> sparse.csr_array:
    """P of shape (X A, X), without the zeros that pad its rows."""
    X, A, B = mdp.transitions.shape
    rows = np.arange(X * A + 1) * B
    P = sparse.csr_array((mdp.transitions.ravel(), mdp.successors.ravel(), rows), shape=(X * A, X), copy=True)
    P.eliminate_zeros()
    return P


def median_ms(run: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    times = []
    for _ in range(1 + repeats):
        start = time.process_time()
        try:
            V = run()
        except TimeoutError:
            return inf, np.array(nan)
        times.append(1e3 * (time.process_time() - start))
        if times[0] > 15_000:  # too slow to repeat
            return times[0], V
    return statistics.median(times[1:]), V  # the first may have compiled


ABOUT = """\
How fast is `ravi.solve`, compared with value iteration in SciPy and the modified policy iteration of QuantEcon and
mdpsolver? For those who solve large known MDPs. The columns on the right are the times of the others relative to ravi.

Each solver gets the same MDPs and is asked for V* to 1e-6. Times are medians of CPU milliseconds of one run on one
machine, without building the MDP or compiling; compare ratios across machines. All answers are compared with a solution
by `solve` that is certified to 1e-9 (1e-7 at 0.9999), or as closely as rounding allows, in the same run; a solver that
misses the tolerance is shown with its error. QuantEcon and mdpsolver are measured if they are installed. Long and
narrow MDPs, at gamma = .9999, are solved by `solve` and SciPy only, and SciPy is given a minute.
"""
LONG = (0.9999,)  # the discount of long and narrow MDPs
PEERS = {
    "quantecon": ("QuantEcon DiscreteDP", quantecon_modified_policy_iteration),
    "mdpsolver": ("mdpsolver (C++)", mdpsolver_modified_policy_iteration),
}


def shown(ms: float, error: float) -> str:
    if isnan(ms):
        return "-"
    if ms == inf:
        return f"over {1e3 * MINUTE:.0f}"
    return (f"{ms:.2f}" if ms < 10 else f"{ms:.0f}") + ("" if error <= 1.01 * TOL else f" (off by {error:.0e})")


def ratio(ms: float, ours: float) -> str:
    if isnan(ms):
        return "-"
    return f"over {1e3 * MINUTE / ours:.0f}" if ms == inf else f"{ms / ours:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="solve against SciPy and QuantEcon, CPU ms to 1e-6")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the table there as well")
    parser.add_argument("--repeats", metavar="N", type=int, default=5, help="of the larger MDPs (default 5)")
    arguments = parser.parse_args()

    solvers = {"ravi": ours, "SciPy value iteration": scipy_value_iteration}
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    for package, (name, prepare) in PEERS.items():
        try:
            found = import_module(package)
        except ImportError as reason:
            print(f"{name} is left out: {reason}\n")
        else:
            solvers[name] = prepare
            versions += f", {package} {getattr(found, '__version__', '') or metadata.version(package)}"

    problems = [
        ("Garnet(1e3, 4, 5)", lambda gamma: garnet(1000, 4, 5, 0, gamma), (0.9, 0.99)),
        ("Garnet(1e5, 4, 5)", lambda gamma: garnet(100_000, 4, 5, 0, gamma), (0.9, 0.99)),
        ("terrain grid, 316 x 316", lambda gamma: terrain(316, 2, gamma), (0.99,)),
        ("RiverSwim(1e5)", lambda gamma: riverswim(100_000, gamma), LONG),
        ("corridor, 1e5 states, A = 3, B = 5", lambda gamma: corridor(100_000, 3, 2, gamma), LONG),
    ]
    others = [name for name in solvers if name != "ravi"]
    lines = [
        "# How fast is solve?",
        "",
        ABOUT,
        "| MDP | gamma | "
        + " | ".join(f"{name} (ms)" for name in solvers)
        + " | "
        + " | ".join(f"{name} / ravi" for name in others)
        + " |",
        "|---" * (2 + len(solvers) + len(others)) + "|",
    ]
    for name, build, discounts in problems:
        for gamma in discounts:
            mdp = build(gamma)
            truth = solve(mdp, tol=1e-9)
            assert truth.error <= max(1e-9, 1.5 * truth.rounding), f"{name}: certified to {truth.error:.1g} only"
            ms, errors = dict.fromkeys(solvers, nan), dict.fromkeys(solvers, 0.0)
            for solver, prepare in solvers.items():
                if discounts == LONG and prepare not in (ours, scipy_value_iteration):
                    continue
                ms[solver], V = median_ms(prepare(mdp), arguments.repeats * (20 if mdp.states < 10_000 else 1))
                errors[solver] = np.abs(V - truth.V).max()
            assert errors["ravi"] <= TOL + truth.error, f"{name}: {errors['ravi']:.1e} off"
            row = [
                name,
                f"{gamma:g}",
                *(shown(ms[solver], errors[solver]) for solver in solvers),
                *(ratio(ms[o], ms["ravi"]) for o in others),
            ]
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    lines.append("")
    lines.append(f"Measured by `benchmarks/solve.py` on {platform.machine()}, {versions}.")
    print("\n" + "\n".join(lines))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
