"""A log of steps as a model, and two policies of it: one that is safe to follow, and one that takes it at its word.

    state,action,reward,next,end
    low,wait,2,low,0
    low,wait,-1,empty,1

The model is that of frequencies. Its best policy is that of certainty equivalence. The pessimistic policy is, with
C(x, a) the kernels near the frequencies in relative entropy and r_low(x, a) a lower bound on the mean reward, greedy
for the fixed point of

    V(x) = max_a {r_low(x, a) + gamma min_{q in C(x, a)} <q, V>},

so that what was never played is worth the least there is. The bounds on a policy are the worst and the best that the
same sets allow for it. With probability 1 - delta all kernels, mean rewards and the first states are in their sets at
once (docs/explanation/kl.md, Lemmas 1 and 2, with delta / 4 for each of kernels, first states, and the two sides of
rewards), whoever chose the actions and when to stop. Then the bounds hold for every policy, and none with this data has
a better lower bound than the pessimistic one. `Batch.assumes` states what they rest on. Without a range of rewards
nothing bounds a mean, and no bounds are given; the pessimistic policy then takes the least reward of the log for the
least there is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.core import Array
from ravi.estimators.counts import Counts
from ravi.importers.imported import Imported, mdp_of_entries
from ravi.importers.table import TableRows, number_labels, read_rows, start_of
from ravi.live.policies import Policy
from ravi.mdps.tables import scatter
from ravi.planning.evaluation import return_of
from ravi.planning.solver import solve
from ravi.validation import InputError

END = "terminal"  # the state that steps which end lead to
TOLERANCE = 1e-7  # of H: how far a bound may be from the best that the sets allow
MOST = 100_000  # sweeps


class PolicyBounds(NamedTuple):
    """A policy by a log, and its return from the first state, in the units of the rewards.

    Attributes
    ----------
    policy
        The policy, asked by label.
    estimate
        Its return in the model of frequencies.
    low, high
        Bounds on its return; None where the range of rewards is not known.
    """

    policy: Policy
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Batch:
    """The steps of a log: their model, and what they say of two policies.

    Attributes
    ----------
    model
        Certainty equivalence: the frequencies. A pair that was never played earns the least, and stays.
    pessimistic
        The policy with the best lower bound.
    greedy
        The best policy of the model.
    delta
        The probability with which the bounds may fail, all together.
    plays
        The number of steps.
    unplayed
        The number of pairs that were never played.
    assumes
        What the bounds rest on, as a clause.

    Examples
    --------
    >>> import ravi
    >>> log = {"state": ["s"] * 3, "action": ["a", "b", "a"], "reward": [1, 0, 1], "next": ["s"] * 3}
    >>> found = ravi.importers.plays(log, discount=0.5, reward_range=(0, 1))
    >>> found.plays, found.unplayed, found.low <= found.greedy.estimate <= found.high
    (3, 0, True)
    """

    model: Imported
    pessimistic: PolicyBounds
    greedy: PolicyBounds
    delta: float
    plays: int
    unplayed: int
    assumes: str

    @property
    def policy(self) -> Policy:
        """The pessimistic policy."""
        return self.pessimistic.policy

    @property
    def low(self) -> float | None:
        """The lower bound on the return of the pessimistic policy."""
        return self.pessimistic.low

    @property
    def high(self) -> float | None:
        """The upper bound on the return of the pessimistic policy."""
        return self.pessimistic.high

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {str(self).splitlines()[0]}>"

    def __str__(self) -> str:
        X, A = self.policy.table.shape
        lines = [
            f"{self.plays:,} steps, {self.policy.learner}: {X} states, {A} actions, "
            f"{self.unplayed:,} pairs never played"
        ]
        for name, one in (("pessimistic", self.pessimistic), ("greedy", self.greedy)):
            bounds = "" if one.low is None else f", {one.low:.6g} to {one.high:.6g} with probability {1 - self.delta:g}"
            lines.append(f"  the {name} policy is worth {one.estimate:.6g} by the frequencies{bounds}")
        return "\n".join([*lines, f"  {self.assumes if self.low is None else f'if {self.assumes}'}"])


def plays(
    source: Any,
    discount: float,
    *,
    initial: Any = None,
    reward_range: tuple[float, float] | None = None,
    delta: float = 0.05,
    name: str | None = None,
) -> Batch:
    """The model and two policies of the steps in a CSV file or a DataFrame.

    Its columns are state (or observation), action, reward and next (or next_state, next_observation); end, terminal,
    terminated or done (0 or 1) where some steps lead to an end; episode (a text or a number) where episodes are cut
    without one.

    Parameters
    ----------
    source
        The file, or the DataFrame, or a dict of columns.
    discount
        gamma.
    initial
        The state that a policy begins in, or {label: probability}. Unless given, nu_0 is learned from where episodes
        begin: in the first row, after an end, and where `episode` changes. Then rows must be in the order in which they
        were played, those of an episode together; without an end or another episode, each goes on where the row before
        it led.
    reward_range
        The least and the largest reward of a step; without it there are no bounds.
    delta
        The probability with which the bounds may fail.
    name
        What the log is called.

    Returns
    -------
    Batch

    Examples
    --------
    >>> import ravi
    >>> log = {"state": ["s"] * 3, "action": ["a", "b", "a"], "reward": [1, 0, 1], "next": ["s"] * 3}
    >>> ravi.importers.plays(log, discount=0.5).policy("s")
    'a'
    """
    gamma, level = validation.probability(discount, "discount"), validation.probability(delta, "delta")
    validation.instance(name, (str, type(None)), "name", "a text")
    rows = read_rows(source, ("state", "action", "reward", "next"), ("end", "episode"))
    log_ = _log(rows, learned=initial is None)
    low, high = _range(log_, reward_range, rows)
    X, A = len(log_.states), len(log_.actions)
    sets = _LogSets(log_, X, A, low, high, level / 4, log_.states.index(END) if log_.ends else None)
    nu0 = None if initial is None else validation.distribution(start_of(initial, log_.states, rows.name), X)
    model = _model(log_, X, A, gamma, sets.first if nu0 is None else nu0, low, name or rows.name)

    def bounds_of(actions: Array, least: Array | None = None) -> PolicyBounds:
        """What is known of a policy by its actions (X,); `least`: its least values, where they are known."""
        own, table = (np.arange(X), actions), np.eye(A)[actions]
        policy = Policy(
            table=table, discount=gamma, units=(low, high), learner=name or rows.name, steps=len(log_.x),
            states=log_.states, actions=log_.actions,
        )  # fmt: skip
        worth = float(model.mdp.in_units(return_of(model.mdp, table))) / (1 - gamma)
        if reward_range is None:
            return PolicyBounds(policy, worth, None, None)
        least = _fixed_point(lambda V: sets.least(V, gamma)[own], np.zeros(X), gamma) if least is None else least
        most = _fixed_point(lambda V: sets.most(V, gamma)[own], np.full(X, 1 / (1 - gamma)), gamma)
        ends = sets.from_start(least, most) if nu0 is None else (nu0 @ least, nu0 @ most)
        return PolicyBounds(policy, worth, *(low / (1 - gamma) + (high - low) * float(end) for end in ends))

    V = _fixed_point(lambda V: sets.least(V, gamma).max(1), np.zeros(X), gamma)  # from below: all are lower bounds
    best = V[:, None] - 1e-12 / (1 - gamma) <= sets.least(V, gamma)
    pessimistic = bounds_of(np.where(best, 1 + sets.visits, 0).argmax(1), V)  # ties: what was played most
    greedy = bounds_of(solve(model.mdp).policy.argmax(1))
    unplayed = int((sets.visits == 0).sum())
    return Batch(model, pessimistic, greedy, level, len(log_.x), unplayed, _assumes(reward_range, initial is None))


def _fixed_point(backup: Callable[[Array], Array], V: Array, gamma: float) -> Array:
    """The limit of a monotone backup, from the side of V."""
    for _ in range(MOST):
        V, before = backup(V), V
        if np.abs(V - before).max() * gamma <= TOLERANCE:
            break
    return V


def _assumes(reward_range: tuple[float, float] | None, learned: bool) -> str:
    """What bounds rest on, or why there are none."""
    if reward_range is None:
        return "no bounds: the range of rewards is not known; reward_range=(least, largest) of a step gives them"
    low, high = reward_range
    assumed = [
        "every state is in the log", "the environment is Markov in them", f"rewards lie between {low:g} and {high:g}"
    ]  # fmt: skip
    assumed += ["the log marks every reset"] if learned else []
    return f"{', '.join(assumed[:-1])} and {assumed[-1]}"


@dataclass(frozen=True)
class _Log:
    x: Array
    a: Array
    y: Array
    r: Array
    firsts: Array  # the states that resets led to, where nu_0 is learned from them
    states: list[Any]
    actions: list[Any]
    ends: bool


def _log(rows: TableRows, learned: bool) -> _Log:
    of, n = rows.columns, len(rows.columns["state"])
    r = [rows.number(i, value, "the reward") for i, value in enumerate(of["reward"])]
    end = np.array([_flag(rows, i, value) for i, value in enumerate(of.get("end", [0] * n))])
    states, both = number_labels(rows, "state", "next")
    if end.any() and END in states:
        raise InputError(f"{rows.name} has a state {END!r}, which is the name of the state that an end leads to")
    x, y = np.array(both[:n]), np.where(end, len(states), both[n:])
    actions, a = number_labels(rows, "action")
    firsts = x[_begins(rows, x, y, end)] if learned else x[:1]
    known = [*states, END] if end.any() else states
    return _Log(x, np.array(a), y, np.array(r), firsts, known, actions, bool(end.any()))


def _begins(rows: TableRows, x: Array, y: Array, end: Array) -> Array:
    """The rows that a reset led to, as the log says; an error where one is there that it does not say."""
    of = rows.columns
    anew = np.append(True, end[:-1])
    if "episode" in of:
        names, episode = number_labels(rows, "episode")
        changes = np.append(True, np.diff(episode) != 0)
        anew |= changes
        changes[np.unique(episode, return_index=True)[1]] = False
        if changes.any():
            i = int(changes.argmax())
            raise rows.wrong(
                i,
                f"episode {names[episode[i]]!r} comes again after another; the rows of an episode "
                "stand together, in the order in which they were played",
            )
    broken = ~anew
    broken[1:] &= x[1:] != y[:-1]
    if broken.any():
        i = int(broken.argmax())
        raise rows.wrong(
            i,
            f"the state is {of['state'][i]!r}, but the row before leads to {of['next'][i - 1]!r}, and "
            "neither an end nor another episode is between them. Rows must be in order; name episodes in a column "
            "`episode`, or give the first state as initial=",
        )
    return anew


def _flag(rows: TableRows, i: int, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("0", "1", "true", "false", "0.0", "1.0"):
        raise rows.wrong(i, f"end is {value!r}, not 0 or 1")
    return text in ("1", "true", "1.0")


def _range(log_: _Log, given: tuple[float, float] | None, rows: TableRows) -> tuple[float, float]:
    low, high = float(log_.r.min()), float(log_.r.max())
    if given is None:
        low, high = (min(low, 0.0), max(high, 0.0)) if log_.ends else (low, high)
        return (low, high) if low < high else (low, low + 1.0)
    least, most = validation.units(given, "reward_range")
    outside = (log_.r < least) | (log_.r > most)
    if outside.any():
        i = int(outside.argmax())
        raise rows.wrong(i, f"the reward is {log_.r[i]:g}, outside reward_range {least:g} to {most:g}")
    if log_.ends and not least <= 0 <= most:
        raise InputError(f"reward_range {least:g} to {most:g} leaves out 0, which is earned after an end")
    return least, most


class _LogSets:
    """Confidence sets by the steps: kernels, mean rewards in [0, 1], and first states."""

    def __init__(self, log_: _Log, X: int, A: int, low: float, high: float, level: float, end: int | None) -> None:
        from ravi.optimism import relative_entropy as sets

        self.sets, self.end = sets, end
        self.successors, moves = scatter([(log_.x, log_.a, log_.y, 1.0)], X, A)
        self.D = Counts(moves.sum(-1)[None].astype(np.int32), moves[None].astype(np.int32))
        self.visits = self.D.visits[0].astype(np.int64)
        self.rho = sets.of_all_values(self.D, log(X * A / level), X)
        total = np.zeros((1, X, A))
        np.add.at(total[0], (log_.x, log_.a), (log_.r - low) / (high - low))
        sides = np.array([log(X * A / level)])
        self.r_most = sets.highest_rewards(self.D.visits, total, sides, 1.0)[0]
        self.r_least = 1 - sets.highest_rewards(self.D.visits, self.D.visits - total, sides, 1.0)[0]
        if end is not None:  # known: it stays, and earns 0
            self.r_most[end] = self.r_least[end] = -low / (high - low)
            self.visits[end] = 1
        self.first = np.bincount(log_.firsts, minlength=X) / len(log_.firsts)
        states, many = np.unique(log_.firsts, return_counts=True)  # as the successors of one pair
        self.start = states[None, None].astype(np.int32)
        self.D0 = Counts(np.array([[[len(log_.firsts)]]], np.int32), many[None, None, None].astype(np.int32))
        self.rho0 = sets.of_all_values(self.D0, log(1 / level), X)

    def least(self, V: Array, gamma: float) -> Array:
        """r_low + gamma min_C <q, V>   (X, A)."""
        return self.r_least + gamma * -self._best(-V)

    def most(self, V: Array, gamma: float) -> Array:
        return self.r_most + gamma * self._best(V)

    def _best(self, V: Array) -> Array:
        found = self.sets.largest(self.successors, self.D, self.rho, False, V[None])[0]
        if self.end is not None:
            found[self.end] = V[self.end]
        return found

    def from_start(self, V: Array, top: Array) -> tuple[float, float]:
        """The least of <nu_0, V> and the most of <nu_0, top> over the plausible nu_0."""
        low = -self.sets.largest(self.start, self.D0, self.rho0, False, -V[None])
        high = self.sets.largest(self.start, self.D0, self.rho0, False, top[None])
        return float(low[0, 0, 0]), float(high[0, 0, 0])


def _model(log_: _Log, X: int, A: int, gamma: float, nu0: Array, low: float, name: str) -> Imported:
    visits = np.zeros((X, A))
    np.add.at(visits, (log_.x, log_.a), 1)
    x, a = np.nonzero(visits == 0)
    if log_.ends:
        x, a = x[x < X - 1], a[x < X - 1]  # the end stays an end, and earns 0
    played = (log_.x, log_.a, log_.y, 1 / visits[log_.x, log_.a], log_.r)
    others = (x, a, x, np.ones(len(x)), np.full(len(x), low))
    entries = [np.concatenate(both) for both in zip(played, others, strict=True)]
    return mdp_of_entries(
        entries, X, A, gamma, nu0, name=name, states=log_.states, actions=log_.actions, renormalise=True
    )
