"""What a learner or a measure declares of itself, beyond the functions of all seeds by which it runs.

`Stated`, `Told` and `Sets` are what `ravi verify` checks a learner by. `Seedwise` and `Recorder` are the epoch of a
learner, and the record of a measure, as compiled functions of one seed: for a GPU, and for all epochs in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray


class Stated(NamedTuple):
    """The constants that statements about a learner of RAVI-UCB's form are made of; None where it has none."""

    kind: str = "generic"  # of its data: "tabular", "mixture", or what names claims of its own (`verify.OWN`)
    beta: float | NDArray[Any] | None = None  # of a bonus beta * width; `scale` is part of it
    scale: float | NDArray[Any] = 1.0  # multiplies the bonus
    step_scale: float = 1.0  # multiplies eta
    delta: float | None = None
    regularization: float | None = None  # lambda
    bound: float | None = None  # B
    on: tuple[str, ...] | None = None  # which parts of RAVI-UCB+
    samples: int = 0  # drawn of every pair, where phi is sampled
    draws: int = 0  # the seed by which they are drawn

    def record(self) -> dict[str, Any]:
        """The constants as `Learner.settings` keep them."""
        names = ("beta", "scale", "step_scale", "delta", "regularization", "bound")
        kept = {name: value for name in names if (value := getattr(self, name)) is not None}
        kept |= {} if self.on is None else {"parts": list(self.on)}
        return kept if self.kind in ("generic", "tabular", "mixture") else kept | {"estimator": self.kind}


class Told(NamedTuple):
    """What a learner is told besides the problem, and what of the problem it does not use."""

    support: bool = False  # the support of every pair
    rewards: str | None = None  # "bernoulli", "deterministic": how it draws those that it is not told; None: it knows r
    reward_scale: float = 1.0  # multiplies their radius
    reads_anew: bool = False  # the stored successors, at every plan: it keeps nothing that is made of them
    world: Any = None  # the `ravi.mdps.changing_rewards.Changing` whose tables are revealed to it


class Sets(NamedTuple):
    """What plans on sets of kernels are made of, for those who check them (`ravi verify`)."""

    scale: float  # multiplies rho
    slack: float = 0.0  # of eps; 0 for the most optimistic policy
    kernels: int = 0  # d of a mixture; 0 for a table


class Seedwise(NamedTuple):
    """A compiled learner, but for its `init`: functions of one seed, on either target (`ravi._jit.teams`), from which
    `ravi.runtime.seedwise` derives those of all seeds.

    Attributes
    ----------
    plan : own, i, t -> the step that ends the epoch of seed i at the latest; t is its first step. A team runs it.
    learn : own, i, t, x, a, y, slot, reset, x_{t+1} -> whether the epoch ends, at every step. One thread runs it.
    own : State, number of teams (and keys (n,) where `keyed`) -> the arrays and numbers that both are given, with a
        `ravi._jit.teams.Room` for each scratch array.
    reset : whether a reset ends an epoch.
    changes : whether `learn` changes what is planned, and ends the epoch where the policy is another one.
    left : own -> the visits that are left in the epoch, which `learn` counts down.
    time : State -> t of the next step (n,), where `plan` asks for it.
    keyed : whether `own` needs the keys of the seeds, which the State does not keep.
    together : whether all seeds plan and learn at once, by the learner's own plan and add, on arrays there.
    derived : plan, add, until and walk that were derived from it.
    """

    plan: Callable[..., Any]
    learn: Callable[..., Any]
    own: Callable[..., tuple[Any, ...]]
    reset: bool = True
    changes: bool = False
    left: Callable[[Any], Any] | None = None
    time: Callable[[Any], Any] | None = None
    keyed: bool = False
    together: bool = False
    derived: tuple[Any, ...] = ()

    def of(self, state: Any, teams: int, keys: Any) -> tuple[Any, ...]:
        """What `plan` and `learn` are given."""
        return self.own(state, teams, keys) if self.keyed else self.own(state, teams)


class Recorder(NamedTuple):
    """What a measure records, as a compiled function of one seed, on either target."""

    record: Callable[..., Any]  # own, i, row, opening, policy, path (the fields of `Path`); a team's
    own: Callable[[Any, int, int], tuple[Any, ...]]  # M, number of teams, rows -> what it is given
    rows: Callable[[tuple[Any, ...]], tuple[NDArray[Any], ...]] = lambda own: ()  # own -> of epochs since the last look
    log: Callable[[Any, tuple[NDArray[Any], ...]], None] | None = None  # M, those of some epochs: appends them
    reads: int = 2  # what it reads of the path. 0: lengths; 1: states and actions, too; 2: all
    exact: bool = True  # whether it gives the bits of the measure's own `record` on a CPU
    here: Recorder | None = None  # another one that does, where it does not
