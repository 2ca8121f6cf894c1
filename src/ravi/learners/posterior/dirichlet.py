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

import math

import numpy as np

from ravi.compiled import compiled
from ravi.random import block
from ravi.teams import alone, each, first, sync

TINY = 60.0  # entries below e^-TINY are 0 ...
SMALL = math.exp(-20.0)  # ... in a row whose greatest entry is above this
AHEAD = (33, 10)  # blocks that a team looks at together, and one before; what it finds of each (`_look_ahead`)
LEAST = -2.4494  # of z, above which a candidate of any shape above one is positive: -3 sqrt(2 / 3) is less


@compiled
def normal(u, w):  # type: ignore[no-untyped-def]
    """A normal variate from two uniform ones."""
    return math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w)


@compiled
def above_one(shape, z):  # type: ignore[no-untyped-def]
    """The candidate of Marsaglia and Tsang from a normal z, for shape > 1; not positive where it is none."""
    d = shape - 1.0 / 3.0
    v = 1.0 + 1.0 / math.sqrt(9.0 * d) * z
    return d * (v * v * v)


@compiled
def squeezed(z, accept):  # type: ignore[no-untyped-def]
    """Whether the candidate from z is accepted, where it is positive: told from z alone, in 90 % of cases."""
    return accept < 1.0 - 0.0331 * z**4


@compiled
def accepted_above_one(shape, z, accept):  # type: ignore[no-untyped-def]
    """Whether `accept`, a uniform number, accepts the candidate from z."""
    d = shape - 1.0 / 3.0
    v = 1.0 + 1.0 / math.sqrt(9.0 * d) * z
    if v <= 0.0:
        return False
    v = v * v * v
    return squeezed(z, accept) or math.log(accept) < 0.5 * z * z + d * (1.0 - v + math.log(v))


@compiled
def gamma_above_one(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of shape > 1, and the first block that was not used."""
    while True:
        u, w, accept, _ = block(key, t, part)
        z, part = normal(u, w), part + 1
        if accepted_above_one(shape, z, accept):
            return above_one(shape, z), part


@compiled
def gamma(shape, key, t, part):  # type: ignore[no-untyped-def]
    """A gamma variate of any shape above 0, and the first block that was not used."""
    if shape > 1.0:
        return gamma_above_one(shape, key, t, part)
    u, _, _, _ = block(key, t, part)
    if shape == 1.0:
        return -math.log(1.0 - u), part + 1
    drawn, part = gamma_above_one(shape + 1.0, key, t, part + 1)
    return drawn * (1.0 - u) ** (1.0 / shape), part


@compiled
def up_to_one(shape, u):  # type: ignore[no-untyped-def]
    """The candidate of GS from u, and whether it is one of p <= 1. One below e^-TINY comes as -p."""
    p = (1.0 + shape / math.e) * u
    if p <= 1.0:
        return -p if p < math.exp(-TINY * shape) else math.exp(math.log(p) / shape), True
    return -math.log((1.0 + shape / math.e - p) / shape), False


@compiled
def chance_up_to_one(shape, g, small):  # type: ignore[no-untyped-def]
    """With which chance the candidate is accepted; one that comes as -p always is."""
    if small:
        return math.exp(-g)
    return 1.0 if shape == 1.0 else g ** (shape - 1.0)  # a power takes long on a GPU


@compiled
def draw_gammas(prior, counts, to, key, t, ahead, shapes, G):  # type: ignore[no-untyped-def]
    """G (X, A, entries) ~ Gamma(prior + counts), the counts (X, A, B) being of the entries `to` (X, A, B). What is too
    small to be told from 0 comes as in `up_to_one`. A team's; `ahead` and `shapes` (X A entries,) are scratch."""
    X, A, entries = G.shape
    for x in each(X):
        for a in range(A):
            for j in range(entries):
                G[x, a, j] = 0.0
            for j in range(counts.shape[2]):
                G[x, a, to[x, a, j]] = counts[x, a, j]
    sync()
    unseen = math.exp(-TINY * prior) / (1.0 + prior / math.e)  # u below which a state without visits gets nothing
    if alone():
        _one_by_one(prior, unseen, key, t, G)
    else:
        _side_by_side(prior, unseen, key, t, ahead, shapes, G)


@compiled
def _one_by_one(prior, unseen, key, t, G):  # type: ignore[no-untyped-def]
    """From counts to variates, in place; one thread's."""
    X, A, entries = G.shape
    part = 1  # the next block
    for x in range(X):
        for a in range(A):
            spare, left = (0.0, 0.0, 0.0, 0.0), 0  # numbers of a block, and how many are not used
            for j in range(entries):
                shape = prior + G[x, a, j]
                if shape > 1.0:
                    G[x, a, j], part = gamma_above_one(shape, key, t, part)
                    continue
                while True:
                    if left < 1:
                        spare, left, part = block(key, t, part), 4, part + 1
                    u, left = spare[4 - left], left - 1
                    if u < unseen:
                        G[x, a, j] = -(1.0 + prior / math.e) * u
                        break
                    if left < 1:
                        spare, left, part = block(key, t, part), 4, part + 1
                    w, left = spare[4 - left], left - 1
                    g, small = up_to_one(shape, u)
                    if (small and w < 1.0 - g) or w < chance_up_to_one(shape, g, small):
                        G[x, a, j] = g
                        break


@compiled
def _side_by_side(prior, unseen, key, t, ahead, shapes, G):  # type: ignore[no-untyped-def]
    """The same, of a team. Which numbers a variate is made of depends on all candidates before it, so all threads go
    through the candidates one after another, which costs no more than if one did. What becomes of the candidates in the
    next blocks was found side by side (`_look_ahead`), and the variates are made side by side at last, of what was
    accepted, a normal z or a uniform u, which G holds until then."""
    X, A, entries = G.shape
    for x in each(X):
        for a in range(A):
            for j in range(entries):
                shapes[(x * A + a) * entries + j] = prior + G[x, a, j]
    blocks, part, begun, end, e = ahead.shape[0] - 1, 1, 1, 1, 0  # the next block, and those ahead
    for x in range(X):
        for a in range(A):
            left, row = 0, 0  # how many numbers of the block in this row of `ahead` are not used
            for j in range(entries):
                accepted, value = False, 0.0
                while not accepted:  # a candidate takes at most one block
                    if part == end:
                        begun, end = part, part + blocks
                        sync()  # what was ahead is used, but for one block
                        for c in each(ahead.shape[1] if left > 0 else 0):
                            ahead[blocks, c] = ahead[row, c]
                        row = blocks
                        sync()
                        _look_ahead(prior, unseen, key, t, begun, blocks, ahead)
                        sync()
                    if shapes[e] > 1.0:
                        value, accept, part = ahead[part - begun, 4], ahead[part - begun, 5], part + 1
                        accepted = accept < 0.0 or accepted_above_one(shapes[e], value, accept)
                        continue
                    if left < 1:
                        row, left, part = part - begun, 4, part + 1
                    value, verdict, left = ahead[row, 4 - left], ahead[row, 10 - left], left - 1
                    if verdict <= 1.0:  # it takes a second number
                        if left < 1:
                            row, left, part = part - begun, 4, part + 1
                            verdict = 1.0 if ahead[row, 0] < verdict else 0.0
                        left -= 1
                    accepted = verdict > 0.0
                if first():
                    G[x, a, j] = value
                e += 1
    sync()
    for x in each(X):
        for a in range(A):
            for j in range(entries):
                shape = shapes[(x * A + a) * entries + j]
                G[x, a, j] = above_one(shape, G[x, a, j]) if shape > 1.0 else up_to_one(shape, G[x, a, j])[0]


@compiled
def _look_ahead(prior, unseen, key, t, begun, blocks, ahead):  # type: ignore[no-untyped-def]
    """Of the blocks from `begun` on, in a row each: their numbers (0 to 3); the normal z (4), and the number that may
    accept it (5), or -1 where it is accepted whatever the shape, above one, is; and what becomes of the candidate for a
    state without visits that begins at each number (6 to 9): 2 where it is accepted as it is, else 1 or 0 as the second
    number accepts it or not, and of the last, whose second number is in another block, the chance. A team's."""
    for b in each(blocks):
        ahead[b, 0], ahead[b, 1], ahead[b, 2], ahead[b, 3] = block(key, t, begun + b)
        z, accept = normal(ahead[b, 0], ahead[b, 1]), ahead[b, 2]
        ahead[b, 4], ahead[b, 5] = z, -1.0 if z > LEAST and squeezed(z, accept) else accept
        for l in range(4 if prior <= 1.0 else 0):
            verdict = 2.0
            if ahead[b, l] >= unseen:
                g, small = up_to_one(prior, ahead[b, l])
                verdict = min(chance_up_to_one(prior, g, small), 1.0)
                if l < 3:
                    verdict = 1.0 if ahead[b, l + 1] < verdict else 0.0
            ahead[b, 6 + l] = verdict


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
