"""Results in a notebook: a title, facts and a table, in the colours of the page around them, light or dark.

Whatever an object shows is text: it is escaped, and what a terminal would obey is spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ravi.display.printable import printable

if TYPE_CHECKING:
    from ravi.core import Floats, Problem
    from ravi.live.policies import Policy
    from ravi.planning.solver import Solution
    from ravi.runtime.result import Run

LINES = 12  # of a table, at most: what is left out is said
COLUMNS = 8  # actions that have a column of their own, at most
BLUE = "#2b8cd8"  # to be seen on white and on black
RULE = "border-bottom:1px solid rgba(128,128,128,.35);"
CELL = f"padding:.15em .8em .15em 0;background:none;vertical-align:top;{RULE}"
WIDTH, HEIGHT = 340, 80  # of a curve, in pixels


def text(value: object) -> str:
    return escape(printable(str(value)))


def summary(title: str, facts: Iterable[tuple[str, object]] = (), *more: str) -> str:
    """A title, facts by name, and whatever else of HTML."""
    rows = "".join(_row(("th", "td"), ("left", "left"), pair) for pair in facts)
    table = f"<table style='border-collapse:collapse;margin:.3em 0'>{rows}</table>" if rows else ""
    return f"<div style='color:inherit'><strong>{text(title)}</strong>{table}{''.join(more)}</div>"


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], names: int = 1, title: str = "", most: int = LINES
) -> str:
    """Rows under a head; the first `names` columns are words, the others numbers. At most so many of them."""
    aligned = ["left" if place < names else "right" for place in range(len(head))]
    lines = list(rows)
    shown = "".join(_row(["td"] * len(head), aligned, row) for row in lines[:most])
    left = f"<div style='opacity:.7'>and {len(lines) - most:,} more</div>" if len(lines) > most else ""
    caption = f"<div style='margin-top:.5em'>{text(title)}</div>" if title else ""
    top = _row(["th"] * len(head), aligned, head)
    return (
        f"{caption}<div style='overflow-x:auto'><table style='border-collapse:collapse;margin:.3em 0;"
        f"font-variant-numeric:tabular-nums'><thead>{top}</thead><tbody>{shown}</tbody></table></div>{left}"
    )


def _row(tags: Sequence[str], aligned: Sequence[str], cells: Sequence[object]) -> str:
    filled = zip(tags, aligned, cells, strict=True)
    inside = (f"<{tag} style='{CELL}text-align:{side}'>{text(cell)}</{tag}>" for tag, side, cell in filled)
    return f"<tr style='background:none'>{''.join(inside)}</tr>"


def curve(times: Any, values: Floats, name: str) -> str:
    """Curves of seeds (n, P) as a picture: their mean, and from the least to the largest."""
    there = np.isfinite(values).all(0)
    x, low, mean, high = (
        np.asarray(part, float)[there] for part in (times, values.min(0), values.mean(0), values.max(0))
    )
    if len(x) < 2 or not high.max() > 0:
        return ""
    at = np.linspace(0, len(x) - 1, min(len(x), 120)).astype(int)  # more than that no eye can see
    right, least = WIDTH * x[at] / x[-1], min(float(low.min()), 0.0)

    def points(curve: Floats) -> list[str]:
        down = HEIGHT * (1 - (curve[at] - least) / (high.max() - least))
        return [f"{a:.1f},{b:.1f}" for a, b in zip(right, down, strict=True)]

    band = " ".join([*points(low), *reversed(points(high))])
    return (
        f"<svg width='{WIDTH}' height='{HEIGHT + 18}' viewBox='0 -2 {WIDTH} {HEIGHT + 20}' style='max-width:100%' "
        f"role='img' aria-label='{text(name)} over time'><polygon points='{band}' fill='{BLUE}' fill-opacity='.25'/>"
        f"<polyline points='{' '.join(points(mean))}' fill='none' stroke='{BLUE}' stroke-width='1.8'/>"
        f"<line x1='0' y1='{HEIGHT}' x2='{WIDTH}' y2='{HEIGHT}' stroke='currentColor' stroke-opacity='.4'/>"
        f"<text x='0' y='{HEIGHT + 14}' fill='currentColor' font-size='11'>{text(name)}, to {high.max():,.4g}</text>"
        f"<text x='{WIDTH}' y='{HEIGHT + 14}' fill='currentColor' font-size='11' text-anchor='end'>t = {int(x[-1]):,}"
        "</text></svg>"
    )


def of_run(run: Run) -> str:
    """Its facts, and how its regret (or what it earned) grew."""
    name = next((name for name in ("regret", "reward") if name in run.results), None)
    drawn = "" if name is None else curve(run.times, run.results[name], name)
    return summary(run.title, run.facts(), drawn)


def of_problem(problem: Problem) -> str:
    """Sizes and discount; of a small MDP, where every action leads."""
    X, A, (low, high) = problem.states, problem.actions, problem.units
    starts = np.flatnonzero(problem.initial)
    facts = [
        ("states X", f"{X:,}"),
        ("actions A", f"{A:,}"),
        ("successors of a pair", f"{problem.branching:,} at most"),
        ("discount", f"{problem.discount:g}, H = {problem.horizon:.6g}"),
        ("rewards", f"{problem.in_units(problem.rewards.min()):g} to {problem.in_units(problem.rewards.max()):g}"),
        ("starts in", f"state {starts[0]}" if len(starts) == 1 else f"{len(starts):,} states"),
    ]
    facts += [("features d", f"{problem.dimension:,}")] if problem.dimension else []
    facts += [] if (low, high) == (0.0, 1.0) else [("units of rewards", f"0 is {low:g}, 1 is {high:g}")]
    P = getattr(problem, "transitions", None)
    if P is None or X * A > 2 * LINES:
        return summary(f"{type(problem).__name__} {problem.name}", facts)

    def leads(x: int, a: int) -> str:
        moves = zip(problem.successors[x, a], P[x, a], strict=True)
        return ", ".join(f"{y} ({p:.3g})" for y, p in moves if p > 0)

    rows = [
        (x, "; ".join(f"{a}: {leads(x, a)}" for a in range(A)), ", ".join(f"{r:g}" for r in problem.rewards[x]))
        for x in range(X)
    ]
    head = ("state", "action: leads to (with probability)", "rewards by action")
    return summary(f"{type(problem).__name__} {problem.name}", facts, table(head, rows, 2))


def of_solution(found: Solution) -> str:
    facts = [
        ("optimum rho*", f"{found.optimum:.12g} ± {found.optimum_error:.1g} (certified)"),
        ("V*, Q*", f"± {found.error:.1g}"),
        ("policy", f"within {found.policy_error:.1g} of optimal"),
        ("method", f"{found.method}, {found.sweeps:,} sweeps"),
    ]
    facts += [("tolerance", found.missed)] if found.missed else []
    A = found.Q.shape[1]
    more = [f"Q*(x, {a})" for a in range(A)] if A <= COLUMNS else []
    rows = [
        (x, found.policy[x].argmax(), f"{found.V[x]:.6g}", *(f"{q:.6g}" for q in found.Q[x, : len(more)]))
        for x in range(len(found.V))
    ]
    return summary(f"Solution of {found.name}", facts, table(("state", "action", "V*", *more), rows, 2))


def of_policy(policy: Policy) -> str:
    """Which learner made it, and what it plays in the first states; if it depends on the age, right after a reset."""
    X, A = policy.table.shape[-2:]
    facts = [("states, actions", f"{X:,}, {A:,}"), ("discount", f"{policy.discount:.10g}")]
    facts += [("stages", f"{policy.stages:,}, by age")] if policy.table.ndim == 3 else []
    return summary(f"Policy {policy.origin}", facts, probabilities(policy.table))


def probabilities(policy: Floats) -> str:
    """pi(a | x), or the most probable action where there are many."""
    rows = policy[0] if policy.ndim == 3 else policy
    A = rows.shape[1]
    if A <= COLUMNS:
        head = ("state", *(f"action {a}" for a in range(A)))
        return table(head, ((x, *(f"{p:.3g}" for p in row)) for x, row in enumerate(rows)))
    head = ("state", "most probable action", "its probability")
    return table(head, ((x, row.argmax(), f"{row.max():.3g}") for x, row in enumerate(rows)))
