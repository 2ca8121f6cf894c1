"""Tasks of a suite in this process, where a test is not about processes: a worker takes a second to start."""

from contextlib import contextmanager

import pytest

from ravi.lab.experiments import runner
from ravi.lab.experiments.executors import Executor, Lost
from ravi.lab.experiments.work import work


class Here(Executor):
    """An executor that does tasks in this process, and can be told to fail at them."""

    workers = 1

    def __init__(self, loses=lambda number, task: False):
        self.tasks, self.loses, self.made = [], loses, []

    def free(self):
        return 1 - len(self.tasks)

    def submit(self, number, task):
        self.tasks.append((number, task))
        self.made.append(task)

    def collect(self, seconds):
        if not self.tasks:
            return []
        (number, task), *self.tasks = self.tasks
        return [(number, Lost(True, "it was told to") if self.loses(number, task) else work(task))]

    def interrupt(self):
        pass

    def close(self):
        pass


@contextmanager
def in_this_process():
    """A suite that asks for no number of workers, or for one, is done here; two workers are two processes."""
    plain = runner.executor_of

    def executor_of(workers, cluster, modules=()):
        return Here() if workers in (None, 1) and cluster is None else plain(workers, cluster, modules)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "executor_of", executor_of)
        yield
