"""A recorded run, seed by seed: what was planned, played and learned, as arrays whose rows are epochs or backups.

Let V_0, pi_0 be where a learner begins, and V_i, pi_i what its i-th mirror step makes; backup i leads from V_i to
Q_{i+1}, which makes V_{i+1} and pi_{i+1}. RAVI-UCB makes one backup an epoch: there i is k. Where M are made, they are
made again from where the plan before ended. Where Q is fresh, the sequence begins with V_0, else with V_1; it ends with
a mirror step more than was planned, for a fresh Q after a backup with the data of the end.

`run_recorded` keeps the learner's state as every epoch opens, and the stream of steps. All else is made of these when a
claim asks for it, by the definitions of the paper; only P_hat V, CB and the width are by the learner's own parts.

Where T is not known, each phase is a sequence of its own, from V_0 and pi_0, with a setting of its own. Which phase an
epoch is in is found from T_k alone. Its last backup is made with the data with which its last epoch began: that is what
the proof sums; at the data of the next phase there would be more steps than beta_i allows for. Where rewards change,
Q_{k+1} is made when epoch k + 1 is planned, from r_k, the table of epoch k's last step (or of epoch k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ravi.core import MDP, Array, Learner, Measure, Path
from ravi.display.progress import Progress
from ravi.planning.bellman import expect
from ravi.planning.mirror import mirror_step
from ravi.planning.occupancies import divergence, of_batch
from ravi.random import PICK, uniform
from ravi.runtime import tree
from ravi.runtime.api import run
from ravi.runtime.result import Run
from ravi.theory import doubling
from ravi.validation import require_memory
from ravi.verify.setting import Comparators, RunSetting

Same = TypeVar("Same", bound="Estimates")
Made = TypeVar("Made")
CHAINS = 2**22  # entries of the matrices (rows, X, X) that are solved together


class Iterates(NamedTuple):
    """Values and policies, in rows."""

    V: Array  # (rows, X)
    policy: Array  # (rows, X, A)
    nu: Array  # its occupancies   (rows, X)
    mu: Array  # (rows, X, A)
    improper: Array  # how far the learner's is from a policy; `policy` is one   (rows,)

    def rows(self, which: slice) -> Iterates:
        return Iterates(*(part[which] for part in self))


class Books(NamedTuple):
    """What was played before each row; d = 0 where there is no regression."""

    moves: Array  # N', on the stored successors, of all steps t <= T   (rows, X, A, B)
    covariance: Array  # Lambda, with the V that was played      (rows, d, d)
    response: Array  # b, likewise                               (rows, d)
    noise: Array  # sum phi_t (V_t(y_t) - P V_t)                 (rows, d)

    @property
    def visits(self) -> Array:
        return self.moves.sum(-1)


class Plans(NamedTuple):
    """The M backups of each epoch, made again."""

    V: Array  # (epochs, M, X)
    policy: Array  # (epochs, M, X, A)
    Q: Array  # of the last (epochs, X, A)
    chosen: Array  # m - 1  (epochs,)


class Estimates:
    """The V and the data of each row, and what the learner's own estimator and bonus make of them."""

    phases: list[tuple[RunSetting, slice]]  # settings, and the rows of each
    V: Any  # (rows, X)
    data: Any  # D, as the learner holds it
    books: Any  # what it should hold: `Books`

    def __init__(self, setting: RunSetting, **known: Any) -> None:
        self.setting = setting
        self.__dict__.update({"phases": [(setting, slice(None))]} | known)

    def replaced(self: Same, **known: Any) -> Same:
        """The same record with other numbers in it."""
        other = copy(self)
        other.__dict__.update(known)
        return other

    # What formulas name.

    @property
    def mdp(self) -> MDP:
        return self.setting.mdp

    @property
    def P(self) -> Array:
        return self.setting.P

    @property
    def T(self) -> int:
        return self.setting.steps

    @property
    def H(self) -> float:
        return self.setting.H

    @property
    def gamma(self) -> float:
        return self.setting.gamma

    @property
    def eta(self) -> float:
        return self.setting.eta

    @property
    def lam(self) -> float:
        return self.setting.lam

    @property
    def theta(self) -> Array:
        return self.setting.theta

    @cached_property
    def PV(self) -> Array:
        """P V, the truth   (rows, X, A)."""
        return expect(self.mdp, self.V)

    @cached_property
    def phi(self) -> Array:
        """phi_V of a linear mixture   (rows, X, A, d)."""
        return self.setting.phi(self.V)

    @cached_property
    def PV_hat(self) -> Array:
        return self._estimates[0]

    @cached_property
    def CB(self) -> Array:
        return self._estimates[1]

    @cached_property
    def width(self) -> Array:
        """N^{-1/2} or ||phi||."""
        return self._estimates[2]

    @cached_property
    def _estimates(self) -> Array:
        found = []
        for setting, rows in self.phases:
            D, (estimator, bonus, *_) = tree.take(self.data, np.arange(len(self.V))[rows]), setting.parts
            phi = estimator.embed(self.V[rows])
            made = np.empty((3, len(self.V[rows]), *setting.mdp.rewards.shape))
            for part, value in zip(
                made, (estimator.expect(D, phi), bonus(D, phi), estimator.width(D, phi)), strict=True
            ):
                part[...] = value
            found.append(made)
        return np.concatenate(found, axis=1)


def once(make: Callable[[Same], Made]) -> Callable[[Same], Made]:
    """Above a function of a record: what it makes is kept there."""
    name = f"{make.__module__}.{make.__qualname__}"

    def found(s: Same) -> Made:
        if name not in s.__dict__:
            s.__dict__[name] = make(s)
        return s.__dict__[name]

    return found


class Played(Estimates):
    """What one seed played: epoch k in row k - 1. `at` is of epoch k, `after` of epoch k + 1."""

    seed: int
    states: Any  # of the learner, as each epoch opened    (K, ...)
    last: Any  # after the run                             (1, ...)
    starts: Array  # T_k                                   (K,)
    x: Array  # x_t, and a_t, y_t, whether a reset followed   (T+,)
    a: Array
    y: Array
    reset: Array
    regret: float  # R_T, as the run says; likewise what follows
    gap_k: Array  # (K,)
    plays: int  # T where it says how many steps it made
    padding: int  # T+ - T
    output_policy: Array  # pi_I   (X, A)
    walked: Sequence[int]  # steps of each epoch that its state may know of already   (K,)
    plan_of: Callable[[Played], Any]  # where plans are on sets of kernels

    @cached_property
    def plan(self) -> Any:
        """The plans on sets of kernels: a `sets.Plan`."""
        return self.plan_of(self)

    @property
    def invalid_steps(self) -> float:
        """Steps under plans on sets that do not hold."""
        return float((self.lengths * ~self.plan.valid).sum())

    @cached_property
    def V(self) -> Any:
        return self.states.V if self.setting.sets is None else self.plan.own

    # ---- epochs

    @property
    def K(self) -> int:
        return len(self.starts)

    @cached_property
    def at(self) -> Iterates:
        return iterates(self.setting, self.V, self.states.policy)

    @cached_property
    def after(self) -> Iterates:
        one_more = self.sequences[-1].after.rows(slice(-1, None))
        return Iterates(*(np.concatenate(parts) for parts in zip(self.at.rows(slice(1, None)), one_more, strict=True)))

    @cached_property
    def sequences(self) -> list[Backups]:
        """The backups of every phase; of the run, where T is known."""
        return [sequence(self, setting, rows.start, rows.stop) for setting, rows in self.phases]

    @cached_property
    def gap(self) -> Array:
        """rho* - rho(pi_k)   (K,)."""
        setting = self.setting
        return setting.solution.optimum - under(self.at.mu, setting.mdp.rewards)

    @cached_property
    def learned(self) -> Estimates:
        """The data as each epoch opens, and at the end with V_K: K + 1 rows."""
        V = self.V[np.minimum(np.arange(self.K + 1), self.K - 1)]
        return Estimates(self.setting, V=V, data=tree.join([self.states.data, self.last.data]), books=self.all_books)

    @cached_property
    def books(self) -> Books:
        return tree.take(self.all_books, np.arange(self.K))

    @cached_property
    def all_books(self) -> Books:
        """Those of `learned`."""
        setting, mdp = self.setting, self.mdp
        e, x, a, y = (part[self.t <= setting.steps] for part in (self.epoch, self.x, self.a, self.y))
        moves = np.zeros((self.K, *mdp.successors.shape))
        np.add.at(moves, (e, x, a, (mdp.successors[x, a] == y[:, None]).argmax(-1)), 1.0)
        d = setting.dimension
        if not d:
            return Books(before(moves), *(np.zeros((self.K + 1, *shape)) for shape in ((0, 0), (0,), (0,))))
        middle, sigma = standardised(setting, self.V)
        U = (self.V - middle[:, None]) / sigma[:, None]
        phi, PU = setting.phi(U), expect(mdp, U)
        targets, residual = np.zeros_like(PU), np.zeros_like(PU)
        np.add.at(targets, (e, x, a), U[e, y])
        np.add.at(residual, (e, x, a), U[e, y] - PU[e, x, a])
        added = np.einsum("nxa,nxad,nxae->nde", moves.sum(-1), phi, phi)
        sums = (before(np.einsum("nxa,nxad->nd", part, phi)) for part in (targets, residual))
        return Books(before(moves), setting.lam * np.eye(d) + before(added), *sums)

    # ---- steps

    @cached_property
    def t(self) -> Array:
        return np.arange(1, len(self.x) + 1)

    @cached_property
    def epoch(self) -> Array:
        """The row of each step   (T+,)."""
        return np.searchsorted(self.starts, self.t, side="right") - 1

    def along(self, f: Array) -> Array:
        """f_k(x_t, a_t) of f (K, X, A), step by step   (T+,)."""
        return f[self.epoch, self.x, self.a]

    def by_epoch(self, values: Array) -> Array:
        """The sum of values (T+,) over each epoch   (K,)."""
        return np.bincount(self.epoch, weights=values, minlength=self.K)

    @cached_property
    def lengths(self) -> Array:
        """L_k, padding included   (K,)."""
        return self.by_epoch(np.ones(len(self.x)))

    @cached_property
    def in_time(self) -> Array:
        """How many steps of each epoch are t <= T   (K,)."""
        return self.by_epoch((self.t <= self.setting.steps).astype(float))

    @cached_property
    def visits(self) -> Array:
        """Of each pair in each epoch   (K, X, A)."""
        shape = (self.K, *self.mdp.rewards.shape)
        return np.bincount(np.ravel_multi_index((self.epoch, self.x, self.a), shape), minlength=np.prod(shape)).reshape(
            shape
        )

    @cached_property
    def total(self) -> Array:
        """Visits of each pair   (X, A)."""
        return self.visits.sum(0)

    @cached_property
    def table(self) -> Array:
        """The number of the table of rewards that is in force at each step, where they change   (T+,)."""
        world = self.setting.world
        return world.number(self.t if world.clock == "plays" else self.epoch + 1)

    @cached_property
    def lost(self) -> Array:
        """<mu* - mu^{pi_t}, r_t>, for every pi*, where rewards change   (T+, C)."""
        earned = np.einsum("kxa,jxa->kj", self.at.mu, self.setting.world.tables)[self.epoch, self.table]
        return self.setting.against.rho[:, self.table].T - earned[:, None]

    @cached_property
    def capped(self) -> Array:
        """min(2 CB_t(x_t, a_t), H)   (T+,)."""
        return np.minimum(2 * self.along(self.CB), self.H)


class Backups(Estimates):
    """The backups of one seed, in one phase: V_i and Q_{i+1} in row i. `at` is of V_i, `after` of V_{i+1}."""

    played: Played
    epochs: slice  # the rows of `played` that they are of
    iterates: Iterates  # one row more
    Q: Array  # Q_{i+1}                                          (rows, X, A)
    k: Array  # in which epoch they are made, 0 after the last   (rows,)
    k_after: Array  # in which epoch the mirror step is
    learned: Array  # the rows of `Played.learned` with the data of each
    opened: Array  # with the data of the epoch of pi_i, as it opened
    plans: Plans  # where several are made

    @property
    def at(self) -> Iterates:
        return self.iterates.rows(slice(-1))

    @property
    def after(self) -> Iterates:
        return self.iterates.rows(slice(1, None))

    @cached_property
    def books(self) -> Books:
        return tree.take(self.played.all_books, self.learned)

    @cached_property
    def older(self) -> Books:
        """When the epoch of pi_i began."""
        return tree.take(self.played.all_books, self.opened)

    @cached_property
    def table(self) -> Array:
        """The number of r_i; 0 where there is but one   (rows,)."""
        played, world = self.played, self.setting.world
        if world is None:
            return np.zeros(len(self.Q), int)
        return played.table[np.cumsum(played.lengths).astype(int) - 1]

    @cached_property
    def r(self) -> Array:
        """The rewards in Q_{i+1}."""
        world, mdp = self.setting.world, self.mdp
        return mdp.rewards if world is None else world.tables[self.table]

    @cached_property
    def exact(self) -> Array:
        """r_i + gamma P V_i."""
        return self.r + self.gamma * self.PV

    @cached_property
    def valid(self) -> Array:
        """Whether all bonuses up to CB_i are (S4)   (rows,)."""
        off = self.gamma * np.abs(self.PV - self.PV_hat)
        return np.logical_and.accumulate((off <= self.CB + self.setting.atol).all((1, 2)))

    @cached_property
    def moved(self) -> Array:
        """<mu_{i+1} - mu_i, Q_{i+1}> - H(pi_{i+1} || pi_i) / eta   (rows,)."""
        return under(self.after.mu - self.at.mu, self.Q) - self.entropy / self.eta

    @cached_property
    def entropy(self) -> Array:
        """H(pi_{i+1} || pi_i)   (rows,)."""
        return (self.after.nu * divergence(self.after.policy, self.at.policy)).sum(-1)

    # Sums over the first 0, 1, ... backups: one row more.

    @cached_property
    def count(self) -> Array:
        return np.arange(len(self.Q) + 1)

    @cached_property
    def hoped(self) -> Array:
        """Sum (1 - gamma) <nu_0, V_i>."""
        return before((1 - self.gamma) * self.V @ self.mdp.initial)

    @cached_property
    def earned(self) -> Array:
        """Sum <mu^{pi_i}, r_i>."""
        return before(under(self.at.mu, self.r))

    @cached_property
    def bonuses(self) -> Array:
        """Sum <mu^{pi_i}, CB_i>."""
        return before(under(self.at.mu, self.CB))

    @cached_property
    def capped(self) -> Array:
        """Sum <mu^{pi_i}, min(2 CB_i, H)>."""
        return before(under(self.at.mu, np.minimum(2 * self.CB, self.H)))

    @cached_property
    def ends(self) -> Array:
        """<mu_i, E V_i>, of every iterate."""
        return (self.iterates.nu * self.iterates.V).sum(-1)

    def optimal(self, against: Comparators) -> Array:
        """Sum <mu*, r_i>, for every pi*   (rows + 1, C)."""
        return before(against.rho[:, self.table].T)


def before(values: Array) -> Array:
    """The sums of all rows before each, and of all: one row more."""
    return np.concatenate([0.0 * values[:1], np.cumsum(values, axis=0)])


def under(mu: Array, f: Array) -> Array:
    """<mu, f> in every row."""
    return (mu * f).sum((-2, -1))


def iterates(setting: RunSetting, V: Array, policy: Array) -> Iterates:
    made, improper = proper(policy)
    mu, nu, _ = of_batch(setting.mdp, made)
    return Iterates(V, made, nu, mu, improper)


def proper(policy: Array) -> tuple[Array, Array]:
    """A broken learner's policies made policies, and the largest change (rows,): reported, not refused."""
    total = policy.sum(-1, keepdims=True)
    if (policy >= 0).all() and (np.abs(total - 1) < 1e-12).all():
        return policy, np.zeros(len(policy))
    weights = np.where(policy >= 0, policy, 0.0)  # a nan counts as 0
    weights = np.where(weights.sum(-1, keepdims=True) > 0, weights, 1.0)
    made = weights / weights.sum(-1, keepdims=True)
    return made, np.abs(made - policy).reshape(len(policy), -1).max(-1)


def standardised(setting: RunSetting, V: Array) -> tuple[Array, Array]:
    """c and sigma of every row, by the parts that the learner says it has: its targets are (V - c) / sigma."""
    low, high = V.min(-1), V.max(-1)
    middle = (low + high) / 2 if setting.has("centre") else np.zeros(len(V))
    return middle, np.maximum((high - low) / 2, 1e-6) if setting.has("span") and setting.dimension else np.ones(len(V))


def values(setting: RunSetting, policy: Array, source: Array) -> Array:
    """(I - gamma P_pi)^{-1} source, for every policy   (rows, X)."""
    X, found = setting.mdp.states, np.empty_like(source)
    size = max(1, CHAINS // X**2)
    for i in range(0, len(source), size):
        rows = slice(i, i + size)
        chain = np.eye(X) - setting.gamma * np.einsum("nxa,xay->nxy", policy[rows], setting.P)
        found[rows] = np.linalg.solve(chain, source[rows, :, None])[..., 0]
    return found


# ---- recording


def run_recorded(
    setting: RunSetting,
    learner: Learner,
    seeds: int | Iterable[int],
    progress: Progress | bool | None,
    plan_of: Any = None,
) -> tuple[Run, Iterator[Played]]:
    """The run, padded where learners are of RAVI-UCB's form, and the record of each seed, one after the other.
    plan_of: of a record with plans on sets of kernels, those plans."""
    kept: list[tuple[Any, Array, Array]] = []  # states, T_k and how many steps were walked already, as epochs open

    def record(m: Any, state: Any, path: Path, opening: bool) -> Any:
        if opening:
            if not kept:
                size = (1 - setting.gamma) * setting.steps * tree.size(state)
                require_memory(size, f"the record of {len(path.time)} seeds", "seeds or steps")
            kept.append((tree.copy(state), path.time.copy(), path.length.copy()))
        return m

    states = Measure("states", lambda keys: (), record, lambda m: {})
    made = run(
        learner, setting.mdp, setting.steps, seeds, record=["stream"], measures=[states],
        pad=setting.sets is None and not setting.undiscounted, progress=progress,
    )  # fmt: skip
    return made, (_seed(setting, made, kept, i, plan_of) for i in range(len(made.seeds)))


def _seed(setting: RunSetting, made: Run, kept: list[tuple[Any, Array, Array]], i: int, plan_of: Any) -> Played:
    mine = [(tree.seed(state, i), times[i], lengths[i]) for state, times, lengths in kept if lengths[i]]
    states, starts, walked = zip(*mine, strict=True)
    x, a, y, reset = (made.results[f"stream_{name}"][i] for name in ("state", "action", "successor", "reset"))
    some, joined = x >= 0, tree.join(states)
    gaps: Any = made.gap_k[i] if setting.average is None else None
    return Played(
        setting, phases=_phases(setting, starts), seed=made.seeds[i], states=joined, last=tree.seed(made.state, i),
        data=getattr(joined, "data", None), starts=np.array(starts), walked=walked, plan_of=plan_of, x=x[some],
        a=a[some], y=y[some], reset=reset[some], regret=made.regret[i], gap_k=gaps, plays=made.plays[i],
        padding=made.padding[i], output_policy=made.output_policy[i],
    )  # fmt: skip


def _phases(setting: RunSetting, starts: Sequence[int]) -> list[tuple[RunSetting, slice]]:
    """The settings of the phases, and the epochs that are in each."""
    if setting.of is None:
        return [(setting, slice(0, len(starts)))]
    number = np.array([doubling.phases(int(t), setting.first) - 1 for t in starts])
    return [(setting.of(int(i)), slice(*np.searchsorted(number, (i, i + 1)).tolist())) for i in np.unique(number)]


def sequence(played: Played, setting: RunSetting, low: int, high: int) -> Backups:
    """The backups of the epochs in rows low, ..., high - 1, and a mirror step more."""
    parts, n, M = setting.parts, high - low, setting.parts.inner
    states = tree.take(played.states, np.arange(low, high))
    end = high - 1 if setting.length else high  # the row of `learned` with the data of the last backup
    plans = None
    if parts.backups is None:
        V, policy, Q = _as_recorded(played, setting, states)
    else:
        data = tree.take(played.learned.data, np.append(np.arange(low, high), end))
        plans, (V, policy, Q) = _made_again(setting, states, data, played.starts[low:high])
    epoch = np.repeat(np.arange(low, high), M)  # of every mirror step but the last
    before_first = np.arange(n * M) % M == 0  # pi_i is of the epoch before
    rows, older = epoch, np.maximum(epoch - before_first, 0)
    made_in = np.append(epoch + 1, 0 if high == played.K else high)
    k, k_after = made_in[:-1], made_in[1:]
    if parts.fresh:
        V, policy = np.concatenate([parts.initial_value[None], V]), np.concatenate([parts.initial_policy[None], policy])
        rows, older, k, k_after = np.append(epoch, end), np.append(older, high - 1), made_in, made_in
    return Backups(
        setting, played=played, epochs=slice(low, high), V=V[:-1], Q=Q[: len(rows)], k=k, k_after=k_after, plans=plans,
        iterates=iterates(setting, V, policy), data=tree.take(played.learned.data, rows), learned=rows, opened=older,
    )  # fmt: skip


def _as_recorded(played: Played, setting: RunSetting, states: Any) -> tuple[Array, Array, Array]:
    """V_1, ..., V_{K+1}, pi_1, ..., pi_{K+1} and Q_2, ..., Q_{K+1} of a learner whose state has them."""
    Q, world = states.Q, setting.world
    if world is not None:  # Q_k is in the state of epoch k; no learner makes the last
        r = world.tables[played.table[-1]]
        last = np.clip(r + played.CB[-1] + setting.gamma * played.PV_hat[-1], 0, setting.H)
        Q = np.concatenate([Q[1:], last[None]])
    V, _, policy = mirror_step(states.log_policy[-1:], states.policy[-1:], Q[-1:], setting.eta)
    return np.concatenate([states.V, V]), np.concatenate([states.policy, policy]), Q


def _made_again(setting: RunSetting, states: Any, data: Any, starts: Array) -> tuple[Plans, list[Array]]:
    """The backups of all epochs at once, each from where the one before ended; V, pi, Q after each, and after one more
    with the data of the end."""
    parts, n, M = setting.parts, len(starts), setting.parts.inner
    V_0, pi_0 = parts.initial_value, parts.initial_policy
    began = {"V_last": V_0, "Q": V_0[:, None] + 0 * pi_0, "log_policy": np.log(pi_0), "last_policy": pi_0}
    standing = {name: np.concatenate([first[None], getattr(states, name)]) for name, first in began.items()}
    batch = tree.take(states, np.append(np.arange(n), n - 1))._replace(data=data, **standing)
    made = [(s.V_last.copy(), s.last_policy.copy(), s.Q.copy()) for s in parts.backups(batch)]  # type: ignore[misc]
    stacked = [np.array(part).swapaxes(0, 1) for part in zip(*made, strict=True)]  # (n + 1, M, ...)
    V, policy, Q = (part[:n] for part in stacked)
    chosen = np.full(n, M - 1)
    if parts.pick != "last" and M > 1:
        chosen = np.array([int(M * uniform(key, t, PICK)) for key, t in zip(states.key, starts, strict=True)])
    flat = [np.concatenate([*part[:n], part[n, :1]]) for part in stacked]
    return Plans(V, policy, Q[:, -1], chosen), flat
