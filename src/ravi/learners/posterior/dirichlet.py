"""How is a kernel drawn from its posterior? Rows ~ Dirichlet(alpha_0 + N'), by gamma variates.

The entries of a row are those of all X states, or of the stored successors of its pair.

    G(x') ~ Gamma(alpha_0 + N'(x, a, x')),        P(x' | x, a) = G(x') / sum G

    shape > 1    Marsaglia and Tsang (2000): d (1 + c Z)^3, Z normal by Box and Muller, accepted in 95 % and more
    shape <= 1   Ahrens and Dieter (1974), GS: with b = 1 + shape / e and p = b u, the candidate is
                 g = p^(1 / shape) for p <= 1, accepted with probability exp(-g),
                 g = -ln((b - p) / shape) otherwise, accepted with probability g^(shape - 1)

Both are exact. With a small shape most variates are far below the sum of the row: p^(1 / shape) < e^-60 is told from p
alone, and such an entry is 0 (it would not change the sum in double precision). Only where all entries of a row are
below e^-20, as with a tiny alpha_0 in a row without visits, is the row computed in logarithms.

The uniforms are the blocks 1, 2, ... of step t under the learner's key (`ravi.random`), in the order of use.
"""

from __future__ import annotations

import math

import numpy as np

from ravi.compiled import compiled
from ravi.random import block

TINY = 60.0  # entries below e^-TINY are 0 ...
SMALL = math.exp(-20.0)  # ... in a row whose greatest entry is above this


@compiled
def gamma_above_one(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of shape > 1, and the first block that was not used."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        u, w, accept, _ = block(key, t, part)
        part += 1
        z = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)
        v = 1.0 + c * z
        if v > 0.0:
            v = v * v * v
            if accept < 1.0 - 0.0331 * z**4 or math.log(accept) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return d * v, part


@compiled
def gamma_up_to_one(shape, u, w):  # type: ignore[no-untyped-def]
    """The candidate of GS from u, and whether w accepts it. A candidate p^(1 / shape) below e^-TINY comes as -p."""
    p = (1.0 + shape / math.e) * u
    if p <= 1.0:
        if p < math.exp(-TINY * shape):
            return -p, True
        g = math.exp(math.log(p) / shape)
        return g, w < 1.0 - g or w < math.exp(-g)
    g = -math.log((1.0 + shape / math.e - p) / shape)
    return g, w < g ** (shape - 1.0)


@compiled
def draw_gammas(prior, counts, to, key, t, part, row):  # type: ignore[no-untyped-def]
    """row ~ Gamma(prior + counts), the counts being of the entries `to`; the first block that was not used. What is too
    small to be told from 0 comes as in `gamma_up_to_one`. One thread's, since blocks follow one another."""
    X = row.shape[0]
    for x in range(X):
        row[x] = 0.0
    for j in range(to.shape[0]):
        row[to[j]] = counts[j]
    unseen = math.exp(-TINY * prior) / (1.0 + prior / math.e)  # u below which a state without visits gets nothing
    spare, left = (0.0, 0.0, 0.0, 0.0), 0
    for x in range(X):
        shape = prior + row[x]
        if shape > 1.0:
            row[x], part = gamma_above_one(shape, key, t, part)
        else:
            while True:
                if left < 1:
                    spare, left, part = block(key, t, part), 4, part + 1
                u, left = spare[4 - left], left - 1
                if u < unseen:
                    row[x] = -(1.0 + prior / math.e) * u
                    break
                if left < 1:
                    spare, left, part = block(key, t, part), 4, part + 1
                w, left = spare[4 - left], left - 1
                g, accepted = gamma_up_to_one(shape, u, w)
                if accepted:
                    row[x] = g
                    break
    return part


@compiled
def normalise(prior, row):  # type: ignore[no-untyped-def]
    """What `draw_gammas` left, as a row of Dirichlet(prior + counts)."""
    X = row.shape[0]
    top = 0.0
    for x in range(X):
        top = max(top, row[x])
    if top < SMALL:
        _by_logarithms(prior, row)
    total = 0.0
    for x in range(X):
        row[x] = max(row[x], 0.0)
        total += row[x]
    for x in range(X):
        row[x] /= total


@compiled
def _by_logarithms(shape, row):  # type: ignore[no-untyped-def]
    """A row of small variates of one shape in units of its greatest; -p stands for p^(1 / shape)."""
    top = -np.inf
    for x in range(row.shape[0]):
        row[x] = math.log(row[x]) if row[x] > 0.0 else math.log(-row[x]) / shape
        top = max(top, row[x])
    for x in range(row.shape[0]):
        row[x] = math.exp(row[x] - top)
