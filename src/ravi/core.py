"""The types of this library: the MDP, what a learner knows of it, a learner and its parts, a measure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ravi import validation
from ravi.runtime.ranges import Fixed, Place, Walked
from ravi.validation import kernel_fields, problem_fields

if TYPE_CHECKING:
    from ravi.display.style import Drawn
    from ravi.runtime.archive import Place as FilePlace

Array: TypeAlias = NDArray[Any]  # comments carry shapes
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Data: TypeAlias = Any  # D, what an estimator keeps: a NamedTuple of arrays, seeds first
Embedding: TypeAlias = Any  # what an estimator makes of V: V itself, or phi_V


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Problem:
    """What a learner knows: everything of the MDP except its kernel.

    Attributes
    ----------
    rewards
        r(x, a), in [0, 1], of shape (X, A).
    successors
        The x' that are stored of (x, a), ascending; B = X when dense, of shape (X, A, B).
    support
        Whether P(x' | x, a) > 0 on them, a bool of shape (X, A, B); everywhere unless given.
    initial
        nu_0(x), of shape (X,).
    discount
        gamma, in (0, 1); 1 where there is none: in the average reward, and in episodes.
    episode
        The length of an episode in steps, after which the world begins again in nu_0; None without episodes.
    features
        psi(x, a, x') on the successors, of shape (X, A, B, D); None without features.
    parameter_bound
        B_theta >= ||theta||_2.
    feature_bound
        B_phi >= ||phi_V(x, a)||_2 / H for every V in [0, H]^X.
    pair_features
        phi(x, a) of a linear MDP: P(x' | x, a) = <phi(x, a), m(x')>, of shape (X, A, D).
    name
        What results and messages call it.
    units
        What the rewards 0 and 1 stand for, in the user's units.
    reward_law
        How a play earns, r(x, a) being the mean: "deterministic", "bernoulli", or "beta" (Beta(2 r, 2 (1 - r)));
        None where nothing is said: it earns r(x, a), but for learners that do not know r, and choose a law.

    Examples
    --------
    >>> import ravi
    >>> problem = ravi.mdp("riverswim/6").problem
    >>> problem.states, problem.actions, problem.discount
    (6, 2, 0.95)
    >>> hasattr(problem, "transitions")
    False
    """

    rewards: Floats
    successors: NDArray[np.int32]
    support: Any = None
    initial: Floats
    discount: float
    episode: int | None = None
    features: Floats | None = None
    parameter_bound: float | None = None
    feature_bound: float | None = None
    pair_features: Floats | None = None
    name: str = "mdp"
    units: tuple[float, float] = (0.0, 1.0)
    reward_law: str | None = None

    def __post_init__(self) -> None:
        for name, value in problem_fields(self).items():
            object.__setattr__(self, name, value)

    @property
    def states(self) -> int:
        """X, the number of states."""
        return int(self.rewards.shape[0])

    @property
    def actions(self) -> int:
        """A, the number of actions."""
        return int(self.rewards.shape[1])

    @property
    def branching(self) -> int:
        """B, the successors that are stored of every pair of a state and an action."""
        return int(self.successors.shape[2])

    @property
    def dimension(self) -> int:
        """d, the number of features of a linear mixture; 0 without features."""
        return 0 if self.features is None else int(self.features.shape[3])

    @property
    def criterion(self) -> str:
        """What counts: "discounted", with resets, "average", the reward per step without resets, or "episodic"."""
        return "discounted" if self.discount < 1 else "average" if self.episode is None else "episodic"

    @property
    def horizon(self) -> float:
        """H = 1 / (1 - gamma), the effective horizon: the expected number of steps between resets."""
        return 1 / (1 - self.discount) if self.discount < 1 else inf

    @property
    def largest_value(self) -> float:
        """What a value is at most: H, or the length of an episode."""
        return self.horizon if self.episode is None else self.episode

    @property
    def bound(self) -> float:
        """The single B of Assumption 5.3, for ||theta|| and for ||phi_V|| / H."""
        if self.parameter_bound is None or self.feature_bound is None:
            raise validation.InputError(f"{self.name} has no features: this needs a linear mixture MDP")
        return max(self.parameter_bound, self.feature_bound)

    def in_units(self, value: Any) -> Any:
        """`value`, a reward or a normalised return (1 - gamma) <nu_0, V>, in the user's units."""
        low, high = self.units
        return low + (high - low) * value

    def _repr_html_(self) -> str:  # what a notebook shows
        from ravi.display.html import of_problem

        return of_problem(self)

    def __repr__(self) -> str:
        mixture = f", d={self.dimension}" if self.dimension else ""
        units = "" if self.units == (0.0, 1.0) else f", rewards from {self.units[0]:g} to {self.units[1]:g}"
        units += "" if self.reward_law is None else f", {self.reward_law} rewards"
        criteria = {"discounted": f"gamma={self.discount:g}", "average": "average reward"}
        criteria["episodic"] = f"episodes of {self.episode}"
        return (
            f"<{type(self).__name__} {self.name}: X={self.states}, A={self.actions}, B={self.branching}{mixture}, "
            f"{criteria[self.criterion]}{units}>"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MDP(Problem):
    """M = (X, A, r, P, gamma, nu_0), with P(. | x, a) stored on its support: memory X * A * B, never X^2.

    Made by `MDP.from_dense`, `from_sparse`, `from_features`, `from_linear`, or by id: `ravi.mdp("riverswim/6")`.
    Its arrays are read-only, and were checked: every row of P is a distribution, rewards are in [0, 1].

    Attributes
    ----------
    transitions
        P(x' | x, a) on the successors, of shape (X, A, B).
    support
        Whether that is positive, a bool of shape (X, A, B).
    parameter
        theta, with P = <theta, psi>, of shape (D,); None without features.
    rewards, successors, initial, discount, episode, features, pair_features, name, units,
    reward_law
        Those of a `Problem`.

    Examples
    --------
    >>> import ravi
    >>> P = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.0, 1.0]]]  # P[x][a][x']
    >>> mdp = ravi.MDP.from_dense(P, r=[[0.0, 0.1], [1.0, 0.5]], discount=0.9, initial=0)
    >>> mdp
    <MDP mdp: X=2, A=2, B=2, gamma=0.9>
    >>> mdp.horizon  # H = 1 / (1 - gamma), up to rounding
    10.000000000000002
    """

    transitions: Floats
    support: Any = field(init=False)
    parameter: Floats | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in kernel_fields(self).items():
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, or one that was pickled, is as read-only as the original."""
        for name, value in state.items():
            if hasattr(value, "setflags"):
                value.setflags(write=False)
            self.__dict__[name] = value

    @cached_property
    def problem(self) -> Problem:
        """What a learner knows: the MDP without its kernel, and without theta."""
        return restrict(self, Problem)

    @cached_property
    def digest(self) -> str:
        """A hash of every number of the MDP but its units: two MDPs with the same digest are the same."""
        hashed = sha256(repr(self.discount).encode())
        hashed.update((self.reward_law or "").encode())
        hashed.update(repr((self.parameter_bound, self.feature_bound)).encode())
        if self.episode is not None:
            hashed.update(f"episode {self.episode}".encode())
        arrays = (self.rewards, self.successors, self.transitions, self.initial)
        for array in (*arrays, self.features, self.parameter, self.pair_features):
            if array is not None:
                hashed.update(repr(array.shape).encode() + array.tobytes())
        return hashed.hexdigest()

    @staticmethod
    def from_dense(
        P: Any, r: Any, discount: float | None = None, initial: Any = None, *, criterion: str = "discounted",
        episode: int | None = None, reward_range: Any = None, renormalise: bool = False, name: str = "mdp",
    ) -> MDP:  # fmt: skip
        """An MDP from arrays P[x, a, x'] and r[x, a]. `initial` is nu_0 (X,), or the one state to start in. The
        `criterion` is "discounted", with a `discount`, "average", without one, or "episodic", with the length of an
        `episode` in steps. Rewards may also be r[x], or r[x, a, x']; where they are not in [0, 1] they are shifted and
        scaled, and `units` has what 0 and 1 stand for: the `reward_range`, by default the least and the largest.
        Sparse matrices are taken as by `from_sparse`, data frames and nested lists as arrays. Rows of P must sum to
        one within 1e-9; `renormalise` rescales those that do within 1e-3, as files with printed decimals have them.
        `name` is what messages and files call it.

        >>> P, r = [[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[0, 0], [1, 0]]
        >>> MDP.from_dense(P, r, discount=0.9, initial=0).states
        2
        >>> MDP.from_dense(P, [[-1, 0], [5, 0]], discount=0.9, initial=0).units
        (-1.0, 5.0)
        """
        from ravi.mdps.tables import from_dense

        gamma, length = validation.criterion_of(criterion, discount, episode)
        made = from_dense(P, r, gamma, initial, reward_range=reward_range, renormalise=renormalise, name=name)
        return made.in_episodes(length)

    @staticmethod
    def from_sparse(
        P: Any, r: Any, discount: float | None = None, initial: Any = None, *, criterion: str = "discounted",
        episode: int | None = None, reward_range: Any = None, renormalise: bool = False, name: str = "mdp",
    ) -> MDP:  # fmt: skip
        """An MDP from a SciPy sparse matrix P with row x * A + a, or A sparse X-by-X matrices, one per action; `r`,
        `discount`, `initial`, `criterion`, `episode`, `reward_range`, `renormalise` and `name` are as for `from_dense`.

        >>> from scipy.sparse import eye_array
        >>> MDP.from_sparse([eye_array(3), eye_array(3)], [[0, 1]] * 3, discount=0.9, initial=0).branching
        1
        """
        from ravi.mdps.tables import from_sparse

        gamma, length = validation.criterion_of(criterion, discount, episode)
        made = from_sparse(P, r, gamma, initial, reward_range=reward_range, renormalise=renormalise, name=name)
        return made.in_episodes(length)

    @staticmethod
    def from_features(
        features: Any, parameter: Any, successors: Any, rewards: Any, discount: float | None = None,
        initial: Any = None, *, criterion: str = "discounted", episode: int | None = None,
        parameter_bound: float | None = None, feature_bound: float | None = None, name: str = "mdp",
    ) -> MDP:  # fmt: skip
        """A linear mixture MDP: P(x' | x, a) = <theta, psi(x, a, x')>. `features` are psi (X, A, B, D) on the
        `successors` (X, A, B), `parameter` is theta (D,), `rewards` are (X, A); `discount`, `initial`, `criterion`,
        `episode` and `name` are as for `from_dense`. `parameter_bound` and `feature_bound` are B_theta >= ||theta|| and
        B_phi >= ||phi_V|| / H of Assumption 5.3, computed unless given.

        >>> psi, to = [[[[1, 0], [0, 1]]], [[[1, 0], [0, 1]]]], [[[0, 1]], [[0, 1]]]
        >>> MDP.from_features(psi, [0.3, 0.7], to, [[0], [1]], discount=0.9, initial=0).dimension
        2
        """
        from ravi.mdps.tables import from_features

        bounds = {"parameter_bound": parameter_bound, "feature_bound": feature_bound}
        gamma, length = validation.criterion_of(criterion, discount, episode)
        made = from_features(features, parameter, successors, rewards, gamma, initial, **bounds, name=name)
        return made.in_episodes(length)

    @staticmethod
    def from_linear(
        pair_features: Any, measures: Any, rewards: Any, discount: float | None = None, initial: Any = None, *,
        criterion: str = "discounted", episode: int | None = None, name: str = "mdp",
    ) -> MDP:  # fmt: skip
        """A linear MDP: P(x' | x, a) = <phi(x, a), m(x')>, with `pair_features` phi (X, A, D) and `measures` m (D, X).
        `rewards` are (X, A), or (D,) for r(x, a) = <phi(x, a), rewards>; `discount`, `initial`, `criterion`, `episode`
        and `name` are as for `from_dense`.

        >>> phi, m = [[[1, 0]], [[0, 1]]], [[0.5, 0.5], [0, 1]]
        >>> MDP.from_linear(phi, m, [0, 1], discount=0.9, initial=0).rewards.tolist()
        [[0.0], [1.0]]
        """
        from ravi.mdps.tables import from_linear

        gamma, length = validation.criterion_of(criterion, discount, episode)
        return from_linear(pair_features, measures, rewards, gamma, initial, name=name).in_episodes(length)

    def in_episodes(self, length: int | None) -> MDP:
        """The same in episodes of this length, without a discount; itself for None.

        >>> MDP.from_dense([[[1]]], [[1]], discount=0.9, initial=0).in_episodes(10).criterion
        'episodic'
        """
        return self if length is None else replace(self, discount=1.0, episode=length)

    def draw(self) -> Drawn:
        """A picture: rewards on the grid where it has one or is large, else a graph of its moves. Needs matplotlib."""
        from ravi.display.pictures import of_mdp

        return of_mdp(self)

    def save(self, path: FilePlace) -> None:
        """Write one portable file to `path` (or an open file); `MDP.load` gives the same arrays back, bit for bit."""
        from ravi.runtime import archive

        archive.write_fields(path, "mdp", self)

    @staticmethod
    def load(path: FilePlace) -> MDP:
        """The MDP that `save` wrote to `path` (or an open file), checked as if it had just been made.

        >>> from tempfile import NamedTemporaryFile
        >>> mdp = MDP.from_dense([[[1]]], [[1]], discount=0.9, initial=0)
        >>> with NamedTemporaryFile(suffix=".mdp") as file:
        ...     mdp.save(file.name)
        ...     MDP.load(file.name).digest == mdp.digest
        True
        """
        from ravi.runtime import archive

        return archive.read_fields(path, "mdp", MDP)


def restrict(problem: Problem, kind: type[Problem], **parts: Any) -> Problem:
    """`problem` as what `kind` knows of it, with these parts in place of its own. Nothing is checked or copied."""
    part = object.__new__(kind)
    for name in (entry.name for entry in fields(kind)):
        object.__setattr__(part, name, parts.get(name, getattr(problem, name)))
    return part


class Walkers(NamedTuple):
    """Where each seed stands. Written in place by `walk`."""

    state: Place  # x, the state to act in                   (n,)
    time: Walked  # steps made so far; the next one is t = time + 1   (n,)
    key: Fixed  # of the seed's random numbers               (n,)


class Path(NamedTuple):
    """A stretch of experience: rows of (x_t, a_t, y_t), y_t the true successor even where a reset follows.

    Attributes
    ----------
    state
        x_t, of shape (n, L).
    action
        a_t, of shape (n, L).
    successor
        y_t, of shape (n, L).
    slot
        The place of y_t among the successors of (x_t, a_t), of shape (n, L).
    reset
        Whether a reset followed, of shape (n, L).
    length
        How many entries of each row are in use, of shape (n,).
    time
        t of the first entry, of shape (n,).
    after
        x_{t+1} after the last entry: y_t, or where a reset led, of shape (n,).

    Examples
    --------
    The steps of each seed that led from state 0 back to it:

    >>> def stays(path):
    ...     used = np.arange(path.state.shape[1]) < path.length[:, None]
    ...     return (used & (path.state == 0) & (path.successor == 0)).sum(-1)
    """

    state: Array
    action: Array
    successor: Array
    slot: Array
    reset: Array
    length: Array
    time: Array
    after: Array


class Until(NamedTuple):
    """The end of an epoch: the first of these events.

    Attributes
    ----------
    reset
        Whether a reset ends it.
    deadline
        The step t that ends it, of shape (n,); None for no such step.
    visits
        The visits of each pair that are left: the one that brings it to 0 ends the epoch. Counted down in place, of
        shape (n, X, A); None for no such end.

    Examples
    --------
    A schedule by which each epoch has seven steps:

    >>> seven_steps = lambda state, time: Until(reset=False, deadline=time + 7)
    >>> seven_steps(None, np.array([0, 7])).deadline
    array([ 7, 14])
    """

    reset: bool
    deadline: Array | None = None
    visits: Array | None = None


class Estimator(NamedTuple):
    """The data D with ADD and TRANSITION-ESTIMATE of Algorithm 1, and the width of the estimate.

    Attributes
    ----------
    init
        n -> D_1, the data of n seeds without any steps.
    embed
        V -> phi_V, or V itself for counts.
    expect
        D, phi -> (P_hat V)(x, a), of shape (n, X, A).
    width
        D, phi -> w(x, a): beta * w is a valid bonus for some beta, of shape (n, X, A).
    add
        D, V_k, path -> D, in place.

    Examples
    --------
    >>> import numpy as np
    >>> from ravi.estimators.counts import counts
    >>> import ravi
    >>> problem = ravi.mdp("riverswim/3").problem
    >>> estimator = counts(problem)
    >>> V = np.ones((1, problem.states))  # of one seed
    >>> estimator.expect(estimator.init(1), estimator.embed(V)).max()  # without data P_hat is 0
    np.float64(0.0)
    """

    init: Callable[[int], Data]
    embed: Callable[[Array], Embedding]
    expect: Callable[[Data, Embedding], Array]
    width: Callable[[Data, Embedding], Array]
    add: Callable[[Data, Array, Path], Data]


Bonus: TypeAlias = Callable[[Data, Embedding], Array]  # D, phi -> CB(x, a)    (n, X, A)
Schedule: TypeAlias = Callable[[Any, Array], Until]  # state, time -> Until
Walk: TypeAlias = Callable[
    ..., tuple[int, int]
]  # world, state, walkers, path, over, until, T -> see `ravi.runtime.walk.walk`


class TheoryConstants(NamedTuple):
    """The constants that statements about a learner of RAVI-UCB's form are made of; None where it has none."""

    kind: str = "generic"  # of its data: "tabular", "mixture", or what names claims of its own (`verify.OWN`)
    beta: float | Array | None = None  # of a bonus beta * width; `scale` is part of it
    scale: float | Array = 1.0  # multiplies the bonus
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


class SideInformation(NamedTuple):
    """What a learner knows besides the problem, and what of the problem it does not use."""

    support: bool = False  # the support of every pair
    rewards: str | None = None  # "bernoulli", "deterministic": how it draws unknown ones; None: it knows r
    reward_scale: float = 1.0  # multiplies their radius
    reads_anew: bool = False  # the stored successors, at every plan: it keeps nothing that is made of them
    world: Any = None  # the `ravi.mdps.changing_rewards.Changing` whose tables are revealed to it


class KernelSets(NamedTuple):
    """What plans on sets of kernels are made of, for those who check them (`ravi verify`)."""

    scale: float  # multiplies rho
    slack: float = 0.0  # of eps; 0 for the most optimistic policy
    kernels: int = 0  # d of a mixture; 0 for a table
    delta: float | None = None  # of the L1 balls of UCRL2, in place of sets in relative entropy


class Seedwise(NamedTuple):
    """A compiled learner, but for its `init`: functions of one seed, on either target (`ravi._jit.teams`), from which
    `ravi.runtime.seedwise` derives those of all seeds.

    Attributes
    ----------
    plan
        own, i, t -> the step that ends the epoch of seed i at the latest; t is its first step. A team runs it.
    learn
        own, i, t, x, a, y, slot, reset, x_{t+1} -> whether the epoch ends, at every step. One thread runs it.
    own
        State, number of teams (and keys (n,) where `keyed`) -> the arrays and numbers that both are given, with a
        `ravi.kit.Buffer` for each array that nothing keeps.
    reset
        Whether a reset ends an epoch.
    changes
        Whether `learn` changes what is planned, and ends the epoch where the policy is another one.
    left
        own -> the visits that are left in the epoch, which `learn` counts down.
    time
        State -> t of the next step (n,), where `plan` asks for it.
    keyed
        Whether `own` needs the keys of the seeds, which the State does not keep.
    joint
        Whether all seeds plan and learn at once, by the learner's own plan and add, on arrays of the device.
    derived
        plan, add, until and walk that were derived from it.

    Examples
    --------
    The uniform policy, whose epochs end at resets; docs/guides/add_a_learner.md has a learner that plans.

    >>> from ravi.kit import NEVER, Seedwise
    >>> form = Seedwise(
    ...     plan=lambda own, i, t: NEVER,
    ...     learn=lambda own, i, t, x, a, y, slot, reset, after: False,
    ...     own=lambda state, teams: (state.policy,),
    ... )
    >>> form.reset
    True
    """

    plan: Callable[..., Any]
    learn: Callable[..., Any]
    own: Callable[..., tuple[Any, ...]]
    reset: bool = True
    changes: bool = False
    left: Callable[[Any], Any] | None = None
    time: Callable[[Any], Any] | None = None
    keyed: bool = False
    joint: bool = False
    derived: tuple[Any, ...] = ()

    def of(self, state: Any, teams: int, keys: Any) -> tuple[Any, ...]:
        """What `plan` and `learn` are given: of a `state`, the number of `teams` and the `keys` of the seeds."""
        return self.own(state, teams, keys) if self.keyed else self.own(state, teams)


class Recorder(NamedTuple):
    """What a measure records, as a compiled function of one seed, on either target."""

    record: Callable[..., Any]  # own, i, row, opening, policy, path (the fields of `Path`); a team's
    own: Callable[[Any, int, int], tuple[Any, ...]]  # M, number of teams, rows -> what it is given
    rows: Callable[[tuple[Any, ...]], tuple[Array, ...]] = lambda own: ()  # own -> of epochs since the last look
    log: Callable[[Any, tuple[Array, ...]], None] | None = None  # M, those of some epochs: appends them
    reads: int = 2  # what it reads of the path. 0: lengths; 1: states and actions, too; 2: all
    exact: bool = True  # whether it gives the bits of the measure's own `record` on a CPU
    here: Recorder | None = None  # another one that does, where it does not


class Parts(NamedTuple):
    """What a learner of RAVI-UCB's form is made of, for those who check what it does (`ravi verify`) or build on it."""

    estimator: Estimator
    bonus: Bonus
    eta: Any  # a number; of settings in one batch, a number of every row
    initial_value: Array  # V_0    (X,)
    initial_policy: Array  # pi_0  (X, A)
    backups: Callable[[Any], Iterator[Any]] | None = None  # of several backups an epoch: State -> State after each
    inner: int = 1  # M, backups an epoch
    fresh: bool = False  # whether Q is made with the data at hand
    pick: str = "uniform"  # which of the M policies is played: "uniform", "last"
    stated: TheoryConstants = TheoryConstants()


class SettingsBatch(NamedTuple):
    """A learner as one of several settings that differ in numbers only, which run as rows of one batch
    (`ravi.runtime.seedwise`).

    Attributes
    ----------
    built
        The learner as it was built; one that was changed since runs alone.
    numbers
        What differs from row to row, of bonus and step size.
    same
        What else the learner depends on, and `parts` do not say: problem and T.
    of
        The same numbers, each one of every row (n,) -> the learner of those rows.
    """

    built: Learner
    numbers: tuple[float, ...]
    same: tuple[Any, ...]
    of: Callable[..., Learner]


class Learner(NamedTuple):
    """A learner is one record of functions: nothing to inherit, nothing hidden. `ravi.learner` makes one by its id.

    The first six fields are all that a learner in NumPy needs: functions of all seeds. A compiled learner gives `init`
    and a `Seedwise`, functions of one seed, to `ravi.runtime.seedwise.compiled_learner`, which derives plan, add, until
    and walk. The policy is constant within an epoch. A learner that learns at every step ends the epoch at the step
    after which the policy is another one.

    Attributes
    ----------
    name
        What results and messages call it.
    init
        keys (n,) -> State, a NamedTuple of arrays, seeds first, with a field `policy`: (n, X, A), or staged by age.
    plan
        State -> State, once per epoch; it may write into the State that it is given.
    add
        State, path -> State, as experience arrives; likewise.
    until
        State, time -> when the epoch ends (`ravi.schedules`).
    settings
        The constants that make it: a record for reports and files, which nothing else reads.
    walk
        Of one that learns at every step, in place of `ravi.runtime.walk.walk` (`ravi.runtime.walk.walking`).
    stages
        S where the policy is (n, S, X, A), a stage for every age; else 0.
    seedwise
        The epoch as compiled functions of one seed, which `ravi.runtime.compiled` runs on a CPU or a GPU.
    rows
        Of those whose settings go in one batch.
    side_information
        What it knows besides the problem.
    parts, sets
        What it is made of, for `ravi verify` and for learners built on it.

    Examples
    --------
    A learner that always plays action 0, and so never plans:

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> import ravi
    >>> from ravi.schedules import at_reset
    >>> class State(NamedTuple):
    ...     policy: np.ndarray
    >>> def first_action(problem, steps):
    ...     always = np.eye(problem.actions)[np.zeros(problem.states, int)]
    ...     init = lambda keys: State(np.tile(always, (len(keys), 1, 1)))
    ...     return ravi.Learner("first", init, lambda s: s, lambda s, path: s, at_reset(), {})
    >>> mdp = ravi.mdp("riverswim/3")
    >>> made = ravi.run(first_action(mdp.problem, 100), mdp, steps=100, seeds=1)
    >>> made.results["gap"]
    array([...])
    """

    name: str
    init: Callable[[Array], Any]
    plan: Callable[[Any], Any]
    add: Callable[[Any, Path], Any]
    until: Schedule
    settings: dict[str, Any]
    parts: Parts | None = None
    walk: Walk | None = None
    stages: int = 0
    seedwise: Seedwise | None = None
    side_information: SideInformation = SideInformation()
    sets: KernelSets | None = None
    rows: SettingsBatch | None = None

    def __repr__(self) -> str:
        return f"<Learner {self.name}>"

    def derived_from(self, seedwise: Seedwise) -> Learner:
        """The same learner, whose plan, add, until and walk were derived from `seedwise`."""
        return self._replace(seedwise=seedwise._replace(derived=(self.plan, self.add, self.until, self.walk)))

    @property
    def compiled(self) -> Seedwise | None:
        """Its epoch as compiled functions; None where it has none, or where what was derived was replaced since."""
        functions = self.plan, self.add, self.until, self.walk
        return self.seedwise if self.seedwise is not None and self.seedwise.derived == functions else None


class Measure(NamedTuple):
    """What a run records, epoch by epoch. Its state is a NamedTuple of arrays, seeds first, like a learner's.

    Attributes
    ----------
    name
        What a run calls it.
    init
        keys (n,) -> M, its state.
    record
        M, the learner's state before ADD, path, whether an epoch opens -> M.
    results
        M -> named arrays, seeds first.
    recorder
        The same as compiled functions of one seed, for compiled runs (`ravi.measures.recording`).

    Examples
    --------
    How many epochs each seed began:

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> import ravi
    >>> class Begun(NamedTuple):
    ...     epochs: np.ndarray
    >>> count = ravi.Measure(
    ...     "begun",
    ...     lambda keys: Begun(np.zeros(len(keys), np.int64)),
    ...     lambda m, state, path, opening: Begun(m.epochs + (path.length > 0) * opening),
    ...     lambda m: {"begun": m.epochs},
    ... )
    >>> made = ravi.run("ravi-ucb", "riverswim/3", 100, seeds=2, measures=[count])
    >>> made.results["begun"].shape
    (2,)
    """

    name: str
    init: Callable[[Array], Any]
    record: Callable[[Any, Any, Path, bool], Any]
    results: Callable[[Any], dict[str, Array]]
    recorder: Recorder | None = None

    def __repr__(self) -> str:
        return f"<Measure {self.name}>"


# Itself, its id, its file, or a function of no arguments that gives one of these.
AnyMDP: TypeAlias = MDP | str | os.PathLike[str] | Callable[[], Any]


class Playable(Protocol):
    """An environment with Gymnasium's interface; what its methods take and give is what its spaces say."""

    @property
    def observation_space(self) -> Any: ...
    @property
    def action_space(self) -> Any: ...
    @property
    def reset(self) -> Callable[..., Any]: ...
    @property
    def step(self) -> Callable[..., Any]: ...


def _not_named(source: Any) -> MDP:
    return validation.instance(source, MDP, "mdp", "an MDP: ravi.mdp('riverswim/6') makes one")


by_name: Callable[[Any], MDP] = _not_named  # the MDP of an id or a file: `ravi.ids` puts its `mdp` here


def an_mdp(value: Any) -> MDP:
    """An MDP: itself, or what stands for one."""
    return value if isinstance(value, MDP) else by_name(value)


def a_problem(value: Any) -> Problem:
    """A problem, or an MDP, which is one, or what stands for an MDP."""
    return value if isinstance(value, Problem) else by_name(value)
