"""What does the tour show? Writes docs/tutorials/tour.ipynb and runs it: `python docs/make_tour.py [FILE]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

words, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
NOTEBOOK = Path(__file__).parent / "tutorials" / "tour.ipynb"
LANGUAGE = {"language_info": {"name": "python"}}
CELLS = (
    words(
        """# A tour of ravi
A problem, an optimum, learners with exact regret, and a world that is played."""
    ),
    code(
        """%matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

import ravi

mdp = ravi.mdp("riverswim/6,discount=0.9")
best = ravi.solve(mdp)
print(mdp)
print(f"optimum {best.optimum:.6f}, V* {best.V.round(3)}")"""
    ),
    words(
        """Four learners on the same seeds. Regret is computed from the policies that were played, so curves have no
noise of rewards, and differences between learners are taken seed by seed."""
    ),
    code(
        """learners = {
    "RAVI-UCB, its constants": "ravi-ucb",
    "RAVI-UCB, tuned": "ravi-ucb,scale=0.003,step_scale=100",
    "UCRL2, tuned": "ucrl2,scale=0.1",
    "PSRL": "psrl",
}
runs = {name: ravi.run(learner, mdp, steps=20_000, seeds=8) for name, learner in learners.items()}
for name, run in runs.items():
    print(f"{name:24}{run.regret.mean():8.1f}   certified to {run.regret_error.max():.0e}")"""
    ),
    code(
        """figure, axes = plt.subplots(figsize=(6, 3.2))
for name, run in runs.items():
    axes.plot(run.times, run.regret_curve.mean(0), label=name)
axes.set(xlabel="plays", ylabel="regret", yscale="log", ylim=(1, 5000))
axes.legend(frameon=False);"""
    ),
    words(
        """With its theory's constants RAVI-UCB is still uniform; the bonus is valid, and large. How much of the bound
is given away where? [The guarantee](../explanation/guarantee.md) says how to read this."""
    ),
    code(
        """from ravi.verify import verify

report = verify("ravi-ucb", "riverswim/3,discount=0.7", steps=2000, seeds=4)
print(report.summary())"""
    ),
    words(
        """A world that is played: FrozenLake slips two times in three. A fall is an end, after which nothing is
earned."""
    ),
    code(
        """from ravi.live.policies import evaluate

learned = ravi.learn("FrozenLake-v1", "psrl", 50_000, discount=0.99, reward_scale=0)
found = evaluate(learned.policy("planned"), "gymnasium/FrozenLake-v1,discount=0.99")
print(learned)
print(f"the planned policy is worth {found.exact:.4f}; the best {found.optimum:.4f}")
print(np.array(list("<v>^"))[learned.table("planned")[:16].argmax(-1)].reshape(4, 4))"""
    ),
)


def notebook() -> nbformat.NotebookNode:
    """The tour, not yet run."""
    cells = [nbformat.from_dict({**cell, "id": f"cell-{number}"}) for number, cell in enumerate(CELLS)]
    return nbformat.v4.new_notebook(cells=cells, metadata=LANGUAGE)


def run(made: nbformat.NotebookNode, folder: Path | str) -> nbformat.NotebookNode:
    """Run it in a folder, in a kernel of its own; times are not kept."""
    NotebookClient(made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    for cell in made.cells:
        cell.metadata.clear()
    made.metadata = nbformat.from_dict(LANGUAGE)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(run(notebook(), folder), sys.argv[1] if sys.argv[1:] else NOTEBOOK)
