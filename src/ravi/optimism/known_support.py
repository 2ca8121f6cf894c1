"""What a plausible kernel on a known support promises at most: `support=on`.

    Q(x, a) = rewards(x, a) + gamma max_{p in C(x, a)} <p, V>,       p(x') = 0 beyond the support S(x, a)

for the sets of `ravi.optimism.sets`, by the same names. A learner under support=off takes `successors` for storage, and
allows for every state; under support=on it is told S(x, a), the states of positive probability, which does not depend
on how rows are padded (`on_support`). A pair that was never played is worth the best state of its support.

The rows of a seed lie in the order of V, the best first, so that the best p is chosen by one walk, and stays while the
order does: then a sweep costs a product p V.

    l1          the worst states lose half the radius, the best gains what they lose
    bernstein   all have their least, and what is left of the mass goes to the best, each up to its most
    kl          as in `sets`, with the best of S(x, a) for the best of all states

What becomes of a constant: where X is the number of outcomes of a row, it is B = |S(x, a)|; where X A counts pairs, it
stays. Each learner says so in its own words, with what it is then guaranteed.
"""

import math
from typing import Any

import numpy as np

from ravi import validation
from ravi._jit.functions import compiled
from ravi._jit.teams import each
from ravi.core import Problem, restrict
from ravi.optimism.extended_value_iteration import Sets
from ravi.optimism.sets import _product, arrange, most_stored_kl, prepare_kl, reranked, unranked


def uses_support(support: str) -> bool:
    """Whether a learner is told the successors: the option `support`, which all of them share."""
    return validation.one_of(support, ("off", "on"), "support") == "on"


def on_support(problem: Problem, support: bool) -> Problem:
    """The problem as it is used. With support=on it is rid of padding: a place of a row whose state has probability 0
    repeats the state before it that has more, or the first one; so the rows still ascend, and places are those of the
    counts."""
    if not support or problem.support.all():
        return problem
    places = np.where(problem.support, np.arange(problem.branching), problem.support.argmax(-1, keepdims=True))
    rows = np.take_along_axis(problem.successors, np.maximum.accumulate(places, axis=-1), axis=-1)
    rows.setflags(write=False)  # as those of a problem are: both are compiled once
    return restrict(problem, Problem, successors=rows)


def outcomes(problem: Problem, support: bool) -> int:
    """How many states a pair may lead to, for all that a learner knows: those of the largest support, or X."""
    return int(problem.support.sum(-1).max()) if support else problem.states


def support_setting(support: bool) -> dict[str, Any]:
    """The setting as a run records it; one that is off is not there, as in runs from before it was."""
    return {"support": "on"} if support else {}


@compiled
def prepare_stored(own, i, k):  # type: ignore[no-untyped-def]
    """The support of each pair, each state once, and p_hat on it, 0 without visits."""
    successors, visits, moves, to, p = own.successors, own.visits[i], own.moves[i], own.to[k], own.p[k]
    constant, size = own.constant[k], own.size[k]
    for q in each(successors.shape[0]):
        many = 0
        for j in range(moves.shape[1]):
            share = moves[q, j] / max(visits[q], 1)
            if many > 0 and to[q, many - 1] == successors[q, j]:
                p[q, many - 1] += share
            else:
                to[q, many], p[q, many] = successors[q, j], share
                many += 1
        size[q] = many
        if visits[q] == 0:
            constant[q] = 1.0  # nothing is known where nothing was played
    unranked(own, k)


@compiled
def most_stored_l1(own, i, k, v, out):  # type: ignore[no-untyped-def]
    anew, order, rank = reranked(own, k, v), own.order[k], own.rank[k]
    scratch = own.scratch[k]
    radius, size, to, p, w = own.radius[k], own.size[k], own.to[k], own.p[k], own.w[k]
    for q in each(out.shape[0]):
        K = size[q]
        if anew:
            arrange(order, rank, K, to[q], p[q], scratch)
            mass, rest = radius[q] / 2, 1.0
            for j in range(K - 1, 0, -1):  # from the worst
                moved = min(mass, p[q, j])
                w[q, j] = p[q, j] - moved
                mass -= moved
                rest -= w[q, j]
            w[q, 0] = rest
        out[q] = _product(K, to[q], w[q], v)


@compiled
def most_in_stored_box(own, i, k, v, out):  # type: ignore[no-untyped-def]
    anew, order, rank = reranked(own, k, v), own.order[k], own.rank[k]
    scratch = own.scratch[k]
    factor, constant, size, to, p, w = own.radius[k], own.constant[k], own.size[k], own.to[k], own.p[k], own.w[k]
    for q in each(out.shape[0]):
        K = size[q]
        if anew:
            arrange(order, rank, K, to[q], p[q], scratch)
            mass = 1.0
            for j in range(K):
                w[q, j] = max(0.0, p[q, j] - (factor[q] * math.sqrt(p[q, j] * (1.0 - p[q, j])) + constant[q]))
                mass -= w[q, j]
            for j in range(K):  # from the best
                most = min(1.0, p[q, j] + (factor[q] * math.sqrt(p[q, j] * (1.0 - p[q, j])) + constant[q]))
                taken = min(mass, most - w[q, j])
                w[q, j] += taken
                mass -= taken
        out[q] = _product(K, to[q], w[q], v)


l1 = Sets(prepare_stored, most_stored_l1)
bernstein = Sets(prepare_stored, most_in_stored_box)
kl = Sets(prepare_kl, most_stored_kl)
