"""What is known after a run? Everything that a claim about a whole run, or about all seeds, may look at."""

from __future__ import annotations

from typing import Any, NamedTuple

from ravi.core import Array
from ravi.runs import Run
from ravi.verify.books import Scene


class Evidence(NamedTuple):
    scene: Scene
    audit: Any  # the `books.Audit` after `finish`; of plans on sets of kernels their `sets.Books`
    run: Run  # with pad=True

    @property
    def n(self) -> int:
        return len(self.run.seeds)

    @property
    def plays(self) -> Array:
        """T+ of each seed."""
        return self.run.steps + self.run.padding
