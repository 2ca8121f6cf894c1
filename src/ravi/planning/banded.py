"""What is optimal where states lead to near ones only? Policy iteration within a band: what one state gains, the next
one sees.

Policies are improved as states are put back into the chain (`ravi.planning.bands`), first place first. With what is
below place k decided and known, and what is above it played by the old policy and taken out of the chain,

    V(y) = alpha(y) + (1 - escape(y)) V(k)   for y > k,

so that the value of playing a at k, now and whenever k comes up again, is at hand for each a,

    V_a(k) (1 - gamma + gamma (sum_{y < k} P(y) + sum_{y > k} P(y) escape(y)))
        = r + gamma (sum_{y < k} P(y) V(y) + sum_{y > k} P(y) alpha(y)),

and the best one is taken. What comes after k sees at once what k gains: a better action spreads in one pass as far as
it pays while what lies ahead is still played as before, where Howard's policy iteration moves such a front by one band.
The next pass may go the other way. Passes never lose value. All is relative to V(first place).

What comes out is where `modified_policy_iteration` starts; nothing is certified here.
"""

import numpy as np

from ravi._jit.functions import compiled
from ravi.core import Array
from ravi.planning.bands import LONG, Band, band_of, put_back, taken_out
from ravi.planning.certificates import Tables, centre, sweep_limit
from ravi.planning.chains import Chain

WORTH = 64  # sweeps of all actions that a pass may take the time of, and no more than H of them
FEW = 8  # actions, each of which is tried everywhere


def start_of(tables: Tables) -> tuple[Array, int]:
    """A W to start from, centred, and how many passes it took: T 0, or V* up to rounding where there is a band."""
    W, passes = tables.rewards.max(-1), 0
    if len(W) >= LONG:
        band = band_of(whole(tables), min(WORTH, 1 / (1 - tables.discount)))
        if band.low >= 0:
            passes = iterate(tables, band, W)
    centre(W)
    return W, passes


def whole(tables: Tables) -> Chain:
    """Which state leads to which, by any action."""
    X, A, B = tables.transitions.shape
    start = np.arange(0, X * A * B + 1, A * B).astype(np.uint32)
    return Chain(start, tables.successors.reshape(-1), tables.transitions.reshape(-1), np.zeros(X))


@compiled
def iterate(tables, band, W):  # type: ignore[no-untyped-def]
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
def followed(tables, band, action):  # type: ignore[no-untyped-def]
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
    G, W = followed(tables, band, action)
    first = put_back(G, W, tables.discount, band.low, band.up)
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
    G, source = followed(tables, band, action)
    leak, leave = taken_out(G, source, gamma, low, up)
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
