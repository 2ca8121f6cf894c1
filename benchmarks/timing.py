"""The clock of all benchmarks: CPU time of one core, the least of several repeats, and what machine it was."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is imported


def least(task, repeats):
    """The least CPU seconds of a task."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        task()
        times.append(time.process_time() - began)
    return min(times)


def cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def measured_by(script):
    import numpy

    return (
        f"Measured by `benchmarks/{script}` on {cpu()}, Python {platform.python_version()}, NumPy {numpy.__version__}."
    )


def opening(title, about, script):
    """The first lines of a page: its title, what it answers and how, and who measured it where."""
    return [f"# {title}", "", about.strip(), "", measured_by(script), ""]
