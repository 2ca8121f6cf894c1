"""`ravi.hardness`: how hard an MDP is to learn without resets: diameter, span of the bias, value norm, smallest gap.

    diameter      max_{x != y} min_pi E[steps from x to y]                      (Jaksch, Ortner, Auer 2010)
    span          max h* - min h*, of the bias h* with g* + h* = L h*
    value norm    max_{x,a} sqrt(Var_{P(.|x,a)} h*)                             (Maillard, Mann, Mannor 2014)
    smallest gap  the least positive g* + h*(x) - r(x, a) - (P h*)(x, a)

all over the states that nu_0 leads to. Each comes with a bound on its error.

Diameter. T(x) = 1 + min_a (P T)(x, a) off the target y, T(y) = 0, by policy iteration from a policy that approaches y.
With |1 + min_a P T - T| <= d < 1, as computed and with its rounding, T / (1 + d) is below the least expected time and
T / (1 - d) above that of the policy.

Bias. Let h be as solved, lo <= L h - h <= hi, Delta = h + hi - r - P h >= 0, s a state that the policy pi found is
always led to, and u = h* - h with u(s) = 0. Then u >= -(hi - lo) max_x E^pi[steps to s]; and u <= w for every w with
w(s) = 0, w >= hi - lo - Delta + P w for all actions off s. Such a w exists if all policies that are optimal up to
hi - lo lead to s; it is found by policy iteration with 2 (hi - lo) in place of hi - lo, and checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from ravi.core import AnyMDP, Array, Floats, Ints, an_mdp
from ravi.planning.average import AverageSolution, evaluate_chains, expected, expected_sum, reachable, solve_average
from ravi.planning.certificates import Tables, tables

MOST = 1000  # states, up to which the diameter is computed
ROUNDS = 100  # of policy iteration, at most


@dataclass(frozen=True, eq=False, repr=False)
class Hardness:
    """Measures of how hard an MDP is to learn without resets; nan, with an infinite error, where one is not known.

    Attributes
    ----------
    diameter
        The largest least expected number of steps from a state to another; infinite where one cannot be reached.
    diameter_error
        At least |diameter - the true one|.
    bias_span
        max h* - min h*.
    bias_span_error
        At least |bias_span - the true one|.
    value_norm
        The largest standard deviation of h* at the next state.
    value_norm_error
        At least |value_norm - the true one|.
    smallest_gap
        The ends of an interval that holds the least positive gap of an action; (0, .) where ties cannot be told from
        gaps.
    notes
        Why something is not known, or infinite.
    name
        The name of the MDP.

    Examples
    --------
    >>> import ravi
    >>> round(ravi.hardness(ravi.mdp("riverswim/6")).diameter, 3)
    14.722
    """

    diameter: float
    diameter_error: float
    bias_span: float
    bias_span_error: float
    value_norm: float
    value_norm_error: float
    smallest_gap: tuple[float, float]
    notes: tuple[str, ...]
    name: str

    def __repr__(self) -> str:
        diameter, span = _number(self.diameter, self.diameter_error), _number(self.bias_span, self.bias_span_error)
        return f"<Hardness of {self.name}: diameter {diameter}, span of h* {span}>"

    def __str__(self) -> str:
        low, high = self.smallest_gap
        lines = [
            f"Hardness of {self.name}",
            f"  diameter      {_number(self.diameter, self.diameter_error)}",
            f"  span of h*    {_number(self.bias_span, self.bias_span_error)}",
            f"  value norm    {_number(self.value_norm, self.value_norm_error)}",
            f"  smallest gap  {f'from {low:.6g} to {high:.6g}' if low > 0 else f'at most {high:.6g}'}",
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _number(value: float, error: float) -> str:
    if value != value:
        return "not known"
    return f"{value:.9g}" + (f" ± {error:.1g}" if value < inf else "")


def hardness(mdp: AnyMDP) -> Hardness:
    """The diameter, the span of the bias, the value norm and the smallest gap of `mdp`, without its resets.

    Parameters
    ----------
    mdp
        The MDP, its id or its file; its discount is not used. The diameter is for 1,000 states at most.

    Returns
    -------
    Hardness

    Examples
    --------
    >>> import ravi
    >>> print(ravi.hardness("riverswim/3"))
    Hardness of riverswim/3
      diameter      4.76190476 ± ...
      span of h*    2.12765957 ± ...
      value norm    0.705344019 ± ...
      smallest gap  from 0.441809 to 0.441809
    """
    mdp = an_mdp(mdp)
    arrays = tables(mdp, average=True)._replace(discount=1.0)
    starts, solution, notes = reachable(arrays, mdp.initial), solve_average(mdp), list[str]()
    diameter, error, note = _diameter(arrays, np.flatnonzero(starts))
    notes += [note] * bool(note)
    off, note = _bias_error(arrays, solution, starts)
    notes += [note] * bool(note)
    h = solution.bias
    ahead = expected(arrays, h)
    spread = (arrays.transitions * (h[arrays.successors] - ahead[..., None]) ** 2).sum(-1)[starts]
    gaps = (solution.gain + h[:, None] - arrays.rewards - ahead)[starts]
    rounding = arrays.grain * (1 + float(np.abs(h).max()))
    known = off < inf
    return Hardness(
        diameter=diameter, diameter_error=error,
        bias_span=float(np.ptp(h[starts])) if known else nan, bias_span_error=off + rounding,
        value_norm=float(np.sqrt(spread.max())) if known else nan, value_norm_error=off + 2 * rounding,
        smallest_gap=_smallest_gap(gaps, 2 * off + solution.gain_error + 2 * rounding),
        notes=tuple(notes), name=mdp.name,
    )  # fmt: skip


def _smallest_gap(gaps: Array, error: float) -> tuple[float, float]:
    """The interval of the least positive gap, of gaps (X, A) that are known up to `error`; the least of each state
    is 0."""
    others = np.sort(gaps, -1)[:, 1:].ravel()
    sure = others[others > error]
    if not len(sure):
        return 0.0, inf
    low, high = float(sure.min() - error), float(sure.min() + error)
    return (low if len(sure) == len(others) else 0.0), high


# The diameter.


def _diameter(arrays: Tables, states: Ints) -> tuple[float, float, str]:
    """The diameter, its error, and what there is to say."""
    if len(states) > MOST:
        return nan, inf, f"the diameter is not computed: {len(states):,} states, more than {MOST:,}"
    P = _dense(arrays, states)  # (X, A, X)
    longest, low, high = 0.0, 0.0, 0.0
    for y in range(len(states)):
        actions, far = _approach(P, y)
        if far is not None:
            return inf, 0.0, f"state {states[y]} cannot be reached from state {states[far]}"
        T, off = _least_times(P, y, actions, arrays.grain)
        if off >= 1:
            return nan, inf, f"the diameter is not known: times to state {states[y]} are beyond rounding"
        most = float(T.max())
        longest, low, high = max(longest, most), max(low, most / (1 + off)), max(high, most / (1 - off))
    return longest, max(high - longest, longest - low), ""


def _dense(arrays: Tables, states: Ints) -> Floats:
    place = np.zeros(len(arrays.rewards), np.int64)
    place[states] = np.arange(len(states))
    X, A = len(states), arrays.transitions.shape[1]
    P = np.zeros((X, A, X))
    to = place[arrays.successors[states]]
    np.add.at(P, (np.arange(X)[:, None, None], np.arange(A)[None, :, None], to), arrays.transitions[states])
    return P


def _approach(P: Array, y: int) -> tuple[Ints, int | None]:
    """Actions (X,) that lead nearer to y, as likely as can be; a state from where none does, or None."""
    X = len(P)
    near, actions = np.arange(X) == y, np.zeros(X, np.int64)
    while True:
        leads = P[:, :, near].sum(-1)
        new = (leads.max(-1) > 0) & ~near
        if not new.any():
            return actions, None if near.all() else int(np.flatnonzero(~near)[0])
        actions[new] = leads[new].argmax(-1)
        near |= new


def _least_times(P: Array, y: int, actions: Ints, grain: float) -> tuple[Floats, float]:
    """T(x), and d: the largest |1 + min_a P T - T|, with rounding."""
    X = len(P)
    others, rows = np.arange(X) != y, np.arange(X)
    T, off = np.zeros(X), inf
    for _ in range(ROUNDS):
        system = np.eye(X - 1) - P[rows, actions][others][:, others]
        T[others] = np.linalg.solve(system, np.ones(X - 1))
        Q = 1 + P @ T
        best = Q.min(-1)
        better = (best < Q[rows, actions] - 1e-12 * (1 + T)) & others
        off = float(np.abs(best - T)[others].max(initial=0.0)) + grain * (1 + float(T.max()))
        if not better.any():
            break
        actions = np.where(better, Q.argmin(-1), actions)
    return T, off


# The bias.


def _bias_error(arrays: Tables, solution: AverageSolution, starts: Array) -> tuple[float, str]:
    """How far the bias is from h*, up to a constant, on the states that are reached: an upper bound on the span of the
    difference; and why there is none."""
    X, A, _ = arrays.transitions.shape
    actions = solution.policy.argmax(-1)
    found = evaluate_chains(arrays, solution.policy)
    classes = np.unique(found.recurrent[starts & (found.recurrent >= 0)])
    if solution.undetermined or len(classes) > 1:
        why = solution.undetermined or f"the policy has {len(classes)} recurrent classes, as good as one another"
        return inf, f"the bias is not known: {why}"
    h, width = solution.bias, 2 * solution.gain_error
    Delta = solution.gain + solution.gain_error + h[:, None] - arrays.rewards
    Delta = np.maximum(Delta - expected(arrays, h), 0.0)
    s = _center(arrays, found.recurrent == classes[0], actions)
    steps, most = expected_sum(arrays, actions, s, np.ones(X)), np.zeros(X)
    below = width * float(steps[starts].max())
    for _ in range(ROUNDS):
        gain = 2 * width - Delta
        gain[s] = 0.0
        most = expected_sum(arrays, actions, s, gain[np.arange(X), actions])
        if not most.max() <= 1 + np.ptp(h):
            break
        Q = gain + expected(arrays, most)
        Q[s] = 0.0
        best = Q.max(-1)
        if (best - most)[starts].max() <= width:
            return below + float(most[starts].max()), ""
        actions = np.where(best > most + width / 2, Q.argmax(-1), actions)
    return inf, "the bias is not known: policies that are as good, up to rounding, lead elsewhere"


def _center(arrays: Tables, own: Array, actions: Ints) -> int:
    """The state of a recurrent class that is entered most, by one step from everywhere."""
    rows = np.arange(len(actions))
    into = np.bincount(
        arrays.successors[rows, actions][own].ravel().astype(np.int64),
        arrays.transitions[rows, actions][own].ravel(), len(actions),
    )  # fmt: skip
    return int(np.where(own, into, -1).argmax())
