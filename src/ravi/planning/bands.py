"""How is a chain solved whose states lead to near ones only? By elimination within a band, exactly, in one pass.

Rivers, queues, inventories and corridors have a numbering in which a step goes back by at most `low` places and forth
by at most `up`. States are taken out one by one, last first, by sums of nonnegative numbers only, as in
`chains.eliminate`, and what that fills in stays in the band: X low up multiplications and X (low + up + 1) numbers,
whatever gamma is. Sweeps of such a chain are slow: what is far away is many steps away.

The numbering is that of the states if its band is narrow, else that of Cuthill and McKee (1969): breadth first from a
state at the rim, neighbours of few neighbours first. Where steps spread, as in random MDPs and in grids, the levels of
breadth first are soon too wide, and the search is over before it has cost anything.
"""

from typing import NamedTuple

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.planning.chains import transpose

LONG = 5000  # states from which on a band is looked for: below, sweeps take milliseconds
ROOM = 8


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
    band = measured(chain, state, state, most, widest)
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
    return measured(chain, order, place, most, widest)


@compiled
def measured(chain, state, place, most, widest):  # type: ignore[no-untyped-def]
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
        end = joined(chain, x, degree, order, opened, end, seen, mark)
        end = joined(back, x, degree, order, opened, end, seen, mark)
    return end


@compiled
def joined(arcs, x, degree, order, opened, end, seen, mark):  # type: ignore[no-untyped-def]
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
def taken_out(G, source, gamma, low, up):  # type: ignore[no-untyped-def]
    """Take out the places of a chain, last first; G[i, low + j - i] is gamma K from place i to place j. In place:

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
    put_back(G, W, gamma, low, up)
    for i in range(X):
        V[band.state[i]] = W[i]
    return V


@compiled
def put_back(G, W, gamma, low, up):  # type: ignore[no-untyped-def]
    """Take out all places and put them back: W goes from the source to V - V(first place). Gives V(first place)."""
    leak, leave = taken_out(G, W, gamma, low, up)
    first = W[0] / leak[0]
    W[0] = 0.0
    for k in range(1, W.shape[0]):
        total = W[k] - leak[k] * first
        for j in range(max(k - low, 0), k):
            total += G[k, low + j - k] * W[j]
        W[k] = total / leave[k]
    return first
