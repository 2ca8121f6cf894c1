"""Chains and MDPs whose states lead to near ones only: elimination, and policy iteration, within a band.

Rivers, queues, inventories and corridors have a numbering in which a step goes back by at most `low` places and forth
by at most `up`. States are taken out one by one, last first, by sums of nonnegative numbers only, as in
`chains.eliminate`, and what that fills in stays in the band: X low up multiplications and X (low + up + 1) numbers,
whatever gamma is. Sweeps of such a chain are slow: what is far away is many steps away.

The numbering is that of the states if its band is narrow, else that of Cuthill and McKee (1969): breadth first from a
state at the rim, neighbours of few neighbours first. Where steps spread, as in random MDPs and in grids, the levels of
breadth first are soon too wide, and the search is over before it has cost anything.

Policies are improved as states are put back into the chain (`improve`), first place first. With what is
below place k decided and known, and what is above it played by the old policy and taken out of the chain,

    V(y) = alpha(y) + (1 - escape(y)) V(k)   for y > k,

so that the value of playing a at k, now and whenever k comes up again, is at hand for each a,

    V_a(k) (1 - gamma + gamma (sum_{y < k} P(y) + sum_{y > k} P(y) escape(y)))
        = r + gamma (sum_{y < k} P(y) V(y) + sum_{y > k} P(y) alpha(y)),

and the best one is taken. What comes after k sees at once what k gains: a better action spreads in one pass as far as
it pays while what lies ahead is still played as before, where Howard's policy iteration moves such a front by one band.
The next pass may go the other way. Passes never lose value. All is relative to V(first place).

The result is the start of modified policy iteration; nothing is certified here.
"""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.planning.certificates import Tables, centre, sweep_limit
from ravi.planning.chains import Chain, transpose

LONG = 5000  # states from which on a band is looked for: below, sweeps take milliseconds
ROOM = 8
WORTH = 64  # sweeps of all actions that a pass may take the time of, and no more than H of them
FEW = 8  # actions, each of which is tried everywhere


class Band(NamedTuple):
    """A numbering of states, and how far a step leads in it. Where `low` is negative, none was found."""

    state: Array  # the state at each place   (X,)
    place: Array  # the place of each state   (X,)
    low: int  # places that a step goes back, at most
    up: int  # and forth


@compiled
def band_of(chain, worth):  # type: ignore[no-untyped-def]
    """A numbering in which elimination takes the time of `worth` sweeps and the memory of ROOM chains at most, if one
    of the two is such."""
    X = chain.source.shape[0]
    entries = chain.state.shape[0] / X
    most, widest = worth * entries, int(ROOM * entries)
    state = np.arange(X).astype(np.uint32)
    band = measure_band(chain, state, state, most, widest)
    if band.low >= 0:
        return band
    order, place = np.empty(X, np.uint32), np.empty(X, np.uint32)
    degree, seen = np.zeros(X, np.int64), np.zeros(X, np.int64)
    if breadth_first(chain, chain, degree, np.uint32(0), order, 0, seen, 1, widest) < 0:
        return band  # forth is enough to see that it is wide: `transpose` would cost more than that
    back = transpose(chain, chain.source)
    for x in range(X):
        degree[x] = chain.start[x + 1] - chain.start[x] + back.start[x + 1] - back.start[x]
    mark, filled = 1, 0
    for x in range(X):
        if seen[x] >= 0:  # has no place yet
            root = np.uint32(x)
            for _ in range(3):  # to a state that is furthest, and so on: a rim is soon found
                mark += 1
                end = breadth_first(chain, back, degree, root, order, filled, seen, mark, widest)
                if end < 0:
                    return band
                root = order[end - 1]
            filled = breadth_first(chain, back, degree, root, order, filled, seen, -1, widest)
            if filled < 0:
                return band
    for i in range(X):
        place[order[i]] = i
    return measure_band(chain, order, place, most, widest)


@compiled
def measure_band(chain, state, place, most, widest):  # type: ignore[no-untyped-def]
    """How far steps lead in a numbering; none, if low * up > most or low + up > widest."""
    low, up = np.int64(0), np.int64(0)
    for x in range(place.shape[0]):
        here = np.int64(place[x])
        for j in range(chain.start[x], chain.start[x + 1]):
            if chain.weight[j] > 0.0:  # what pads a row may lie anywhere
                step = np.int64(place[chain.state[j]]) - here
                low, up = max(low, -step), max(up, step)
        if low * up > most or low + up > widest:
            return Band(state, place, -1, -1)
    return Band(state, place, int(low), int(up))


@compiled
def breadth_first(chain, back, degree, root, order, first, seen, mark, widest):  # type: ignore[no-untyped-def]
    """Put the states that can be reached from root, by both chains, into `order` from `first` on, and mark them in
    `seen`. Gives where they end; -1 where a level has more than `widest`."""
    order[first] = root
    seen[root] = mark
    at, end, level = first, first + 1, first + 1
    while at < end:
        if at == level:
            if end - level > widest:
                return -1
            level = end
        x, opened = order[at], end
        at += 1
        end = add_neighbours(chain, x, degree, order, opened, end, seen, mark)
        end = add_neighbours(back, x, degree, order, opened, end, seen, mark)
    return end


@compiled
def add_neighbours(arcs, x, degree, order, opened, end, seen, mark):  # type: ignore[no-untyped-def]
    """Put the neighbours of x that are new behind the others, those of the least degree first."""
    for j in range(arcs.start[x], arcs.start[x + 1]):
        y = arcs.state[j]
        if arcs.weight[j] > 0.0 and seen[y] >= 0 and seen[y] != mark:
            seen[y] = mark
            i = end
            while i > opened and degree[order[i - 1]] > degree[y]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = y
            end += 1
    return end


@compiled
def eliminate(G, source, gamma, low, up):  # type: ignore[no-untyped-def]
    """Take out the places of a chain, last first; G[i, low + j - i] is gamma K from place i to place j.

    In place:

        V(k) leave(k) = source(k) + sum_{j < k} G(k, j) V(j),   leave(k) = leak(k) + sum_{j < k} G(k, j).

    Gives leak and leave.
    """
    X = source.shape[0]
    leak, leave = np.full(X, 1.0 - gamma), np.empty(X)
    for k in range(X - 1, -1, -1):
        total, reach = leak[k], min(low, k)
        row = G[k, low - reach : low]  # to the places k - reach, ..., k - 1
        for j in range(reach):
            total += row[j]
        leave[k] = total
        for i in range(max(k - up, 0), k):
            flow = G[i, low + k - i]
            if flow != 0.0:
                factor = flow / total
                leak[i] += factor * leak[k]
                source[i] += factor * source[k]
                into = G[i, low + k - reach - i : low + k - i]
                for j in range(reach):
                    into[j] += factor * row[j]
    return leak, leave


@compiled
def banded_values(chain, gamma, band, b):  # type: ignore[no-untyped-def]
    """V - V(first place) for V = b + gamma K V."""
    X, low, up = b.shape[0], band.low, band.up
    G, W, V = np.zeros((X, low + up + 1)), np.empty(X), np.empty(X)
    for i in range(X):
        x = band.state[i]
        W[i] = b[x]
        for j in range(chain.start[x], chain.start[x + 1]):
            if chain.weight[j] > 0.0:
                G[i, low + np.int64(band.place[chain.state[j]]) - i] += gamma * chain.weight[j]
    solve_in_band(G, W, gamma, low, up)
    for i in range(X):
        V[band.state[i]] = W[i]
    return V


@compiled
def solve_in_band(G, W, gamma, low, up):  # type: ignore[no-untyped-def]
    """Take out all places and put them back: W goes from the source to V - V(first place). Gives V(first place)."""
    leak, leave = eliminate(G, W, gamma, low, up)
    first = W[0] / leak[0]
    W[0] = 0.0
    for k in range(1, W.shape[0]):
        total = W[k] - leak[k] * first
        for j in range(max(k - low, 0), k):
            total += G[k, low + j - k] * W[j]
        W[k] = total / leave[k]
    return first


def start_of(tables: Tables) -> tuple[Array, int]:
    """A W to start from, centred, and how many passes it took: T 0, or V* up to rounding where there is a band."""
    W, passes = tables.rewards.max(-1), 0
    if len(W) >= LONG:
        band = band_of(chain_of_all_actions(tables), min(WORTH, 1 / (1 - tables.discount)))
        if band.low >= 0:
            passes = iterate_in_band(tables, band, W)
    centre(W)
    return W, passes


def chain_of_all_actions(tables: Tables) -> Chain:
    """Which state leads to which, by any action."""
    X, A, B = tables.transitions.shape
    start = np.arange(0, X * A * B + 1, A * B).astype(np.uint32)
    return Chain(start, tables.successors.reshape(-1), tables.transitions.reshape(-1), np.zeros(X))


@compiled
def iterate_in_band(tables, band, W):  # type: ignore[no-untyped-def]
    """Policy iteration within a band: W, relative, in place. Gives the number of passes.

    It starts from the policy that takes what has the largest reward, and, where actions are few, from the best of that
    and of one action everywhere, state by state. A pass goes the way that has changed more lately. Where nothing
    changes, nothing can be improved. Passes take no more time in all than value iteration might.
    """
    X, A, B = tables.transitions.shape
    forth, back = band, Band(band.state[::-1].copy(), np.uint32(X - 1) - band.place, band.up, band.low)
    action, one = np.empty(X, np.int64), np.empty(X, np.int64)
    for x in range(X):
        action[x] = np.argmax(tables.rewards[x])
    best = values(tables, band, action)
    for a in range(A if A <= FEW else 0):
        one[:] = a
        V = values(tables, band, one)
        for x in range(X):
            if V[x] > best[x]:
                best[x], action[x] = V[x], a
    limit = sweep_limit(tables.discount, tables.grain) / (1 + 2 * band.low * band.up / (A * B))
    passes, changed = 0, np.full(2, X)  # forth and back, lately
    while passes < limit:
        way = 0 if changed[0] >= changed[1] else 1
        changed[way] = improve(tables, forth if way == 0 else back, action, W)
        passes += 1
        if changed[way] == 0:
            break
    return passes


@compiled
def policy_in_band(tables, band, action):  # type: ignore[no-untyped-def]
    """gamma K and the source of the chain of a policy, in a band."""
    r, successors, P = tables.rewards, tables.successors, tables.transitions
    X, low = action.shape[0], band.low
    G, source = np.zeros((X, low + band.up + 1)), np.empty(X)
    for i in range(X):
        x = band.state[i]
        a = action[x]
        source[i] = r[x, a]
        for j in range(P.shape[2]):
            if P[x, a, j] > 0.0:
                G[i, low + np.int64(band.place[successors[x, a, j]]) - i] = tables.discount * P[x, a, j]
    return G, source


@compiled
def values(tables, band, action):  # type: ignore[no-untyped-def]
    """V^pi of a policy."""
    G, W = policy_in_band(tables, band, action)
    first = solve_in_band(G, W, tables.discount, band.low, band.up)
    V = np.empty(action.shape[0])
    for i in range(V.shape[0]):
        V[band.state[i]] = W[i] + first
    return V


@compiled
def improve(tables, band, action, V):  # type: ignore[no-untyped-def]
    """One pass: `action` and V, relative, in place. Gives how many actions were changed."""
    r, successors, P, gamma = tables.rewards, tables.successors, tables.transitions, tables.discount
    X, A, B = P.shape
    state, place, low, up = band.state, band.place, band.low, band.up
    G, source = policy_in_band(tables, band, action)
    leak, leave = eliminate(G, source, gamma, low, up)
    W, alpha, escape = np.zeros(X), np.zeros(up + 1), np.zeros(up + 1)  # of the places k, ..., k + up
    first, changed = 0.0, 0
    for k in range(X):
        for u in range(1, min(up, X - 1 - k) + 1):
            y = k + u
            value, out = source[y] - leak[y] * first, leak[y]
            for j in range(max(y - low, 0), k):
                value += G[y, low + j - y] * W[j]
                out += G[y, low + j - y]
            for j in range(max(y - low, k + 1), y):
                value += G[y, low + j - y] * alpha[j - k]
                out += G[y, low + j - y] * escape[j - k]
            alpha[u], escape[u] = value / leave[y], out / leave[y]
        x = state[k]
        best, kept, chosen = -np.inf, -np.inf, action[x]
        for a in range(A):
            value, out = 0.0, 0.0
            for j in range(B):
                p = P[x, a, j]
                if p > 0.0:
                    step = np.int64(place[successors[x, a, j]]) - k
                    if step < 0:
                        value += p * W[k + step]
                        out += p
                    elif step > 0:
                        value += p * alpha[step]
                        out += p * escape[step]
            value = (r[x, a] - (1.0 - gamma) * first + gamma * value) / (1.0 - gamma + gamma * out)
            if value > best:
                best, chosen = value, a
            if a == action[x]:
                kept = value
        if best > kept + tables.grain * (1.0 + abs(first) + abs(best)):
            action[x] = chosen
            changed += 1
        else:
            best = kept
        if k == 0:
            first, best = best, 0.0
        W[k] = best
    for k in range(X):
        V[state[k]] = W[k]
    return changed
