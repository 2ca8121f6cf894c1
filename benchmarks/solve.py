"""How fast is `solve`, next to value iteration in SciPy and to QuantEcon's modified policy iteration?

    python benchmarks/solve.py [--write FILE] [--repeats N]

Each solver gets the same MDPs and is asked for V* to 1e-6. Times are medians of CPU milliseconds of one run on one
machine, without building the MDP or compiling; ratios are what to compare across machines. All answers are held against
a solution by `solve` that is certified to 1e-9, in the same run. QuantEcon is measured where it is installed.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from ravi.core import MDP
from ravi.mdps import garnet, terrain
from ravi.planning import solve

TOL = 1e-6


def scipy_value_iteration(mdp: MDP) -> Callable[[], np.ndarray]:
    """V <- max_a r + gamma P V with P in CSR form, stopped and corrected by MacQueen's bounds."""
    X, A, gamma = mdp.states, mdp.actions, mdp.discount
    P, r = kernel(mdp), mdp.rewards.ravel()

    def run() -> np.ndarray:
        V = np.zeros(X)
        while True:
            TV = (r + gamma * (P @ V)).reshape(X, A).max(-1)
            delta = TV - V
            low, high = delta.min(), delta.max()
            if gamma * mdp.horizon * (high - low) / 2 <= TOL:
                return TV + gamma * mdp.horizon * (low + high) / 2
            V = TV

    return run


def quantecon_modified_policy_iteration(mdp: MDP) -> Callable[[], np.ndarray]:
    from quantecon.markov import DiscreteDP

    pairs = np.arange(mdp.states * mdp.actions)
    x, a = np.divmod(pairs, mdp.actions)
    model = DiscreteDP(mdp.rewards.ravel(), sparse.csr_matrix(kernel(mdp)), mdp.discount, x, a)

    def run() -> np.ndarray:
        return model.solve(method="mpi", epsilon=TOL, max_iter=10**6).v

    return run


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
    V = run()  # compiles
    times = []
    for _ in range(repeats):
        start = time.process_time()
        V = run()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times), V


def main() -> None:
    parser = argparse.ArgumentParser(description="solve against SciPy and QuantEcon, CPU ms to 1e-6")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the table there as well")
    parser.add_argument("--repeats", metavar="N", type=int, default=5, help="of the larger MDPs (default 5)")
    arguments = parser.parse_args()

    solvers = {"ravi": ours, "SciPy value iteration": scipy_value_iteration}
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    try:
        import quantecon
    except ImportError as reason:
        print(f"QuantEcon is left out: {reason}\n")
    else:
        solvers["QuantEcon DiscreteDP"] = quantecon_modified_policy_iteration
        versions += f", QuantEcon {quantecon.__version__}"

    problems = [
        ("Garnet(1e3, 4, 5)", lambda gamma: garnet(1000, 4, 5, 0, gamma), (0.9, 0.99)),
        ("Garnet(1e5, 4, 5)", lambda gamma: garnet(100_000, 4, 5, 0, gamma), (0.9, 0.99)),
        ("terrain grid, 316 x 316", lambda gamma: terrain(316, 2, gamma), (0.99,)),
    ]
    others = [name for name in solvers if name != "ravi"]
    lines = [
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
            assert truth.error <= 1e-9, f"{name}: certified to {truth.error:.1g} only"
            ms = {}
            for solver, prepare in solvers.items():
                ms[solver], V = median_ms(prepare(mdp), arguments.repeats * (20 if mdp.states < 10_000 else 1))
                error = np.abs(V - truth.V).max()
                assert error <= TOL + truth.error, f"{solver} is {error:.1e} off on {name}"
            row = [
                name,
                f"{gamma:g}",
                *(f"{t:.2f}" if t < 10 else f"{t:.0f}" for t in ms.values()),
                *(f"{ms[o] / ms['ravi']:.1f}" for o in others),
            ]
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    lines.append("")
    lines.append(
        f"Medians of CPU time; all answers within 1e-6 of one certified to 1e-9. {platform.machine()}, {versions}."
    )
    print("\n" + "\n".join(lines))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
