"""What is a mixture of simulators? P = sum_i theta_i P_i, with the P_i known and theta hidden.

The linear combinations of Modi, Jiang, Tewari and Singh (2020), Sample complexity of reinforcement learning using
linearly combined model ensembles: psi_i = P_i on the union of the supports, theta on the simplex. ||theta|| <= 1 and
phi_V(x, a) = ((P_1 V)(x, a), ..., (P_d V)(x, a)) lies in [0, H]^d: B_theta = 1, B_phi = sqrt(d), attained at V = H.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ravi import checks
from ravi.checks import InputError
from ravi.core import MDP
from ravi.mdps.draws import uniforms
from ravi.mdps.garnet import garnet_kernel, garnet_rewards, sizes
from ravi.mdps.names import named
from ravi.mdps.tables import from_features, support


def ensemble(mdps: Sequence[MDP], weights: Any, *, name: str = "ensemble") -> MDP:
    """The mixture of MDPs that differ in nothing but their kernels; `weights` is theta, or the one that is right."""
    mdps = list(mdps)
    if not mdps:
        raise InputError("mdps is empty; a mixture needs at least one")
    told = mdps[0]
    for i, other in enumerate(mdps):
        _same(other, told, f"mdps[{i}]")
    d, X, A = len(mdps), told.states, told.actions
    theta = checks.distribution(weights, d, "weights")

    where = [np.nonzero(mdp.transitions.reshape(X * A, -1)) for mdp in mdps]  # pairs and slots of the non-zeros
    targets = [mdp.successors.reshape(X * A, -1)[at] for mdp, at in zip(mdps, where, strict=True)]
    successors, place = support(np.concatenate([pair for pair, _ in where]), np.concatenate(targets), X * A, X)
    psi = np.zeros((successors.size, d))
    begin = 0
    for i, (mdp, at) in enumerate(zip(mdps, where, strict=True)):
        end = begin + at[0].size
        psi[place[begin:end], i] = mdp.transitions.reshape(X * A, -1)[at]
        begin = end
    return from_features(
        psi.reshape(X, A, -1, d),
        theta,
        successors.reshape(X, A, -1),
        told.rewards,
        told.discount,
        told.initial,
        parameter_bound=1.0,
        feature_bound=float(np.sqrt(d)),
        name=name,
    )


def garnets(simulators: int, states: int, actions: int, branching: int, seed: int = 0, discount: float = 0.95) -> MDP:
    """The mixture of d Garnet(X, A, b) kernels with theta from Dirichlet(1, ..., 1); one reward table, uniform start.

    theta is d exponentials, -log of uniforms, normalised: the last digit of a logarithm may differ between machines.
    """
    d = checks.whole(simulators, "simulators", 1)
    X, A, b = sizes(states, actions, branching)
    draw = uniforms(seed)
    exponentials = -np.log1p(-draw(d))  # of 1 - u, which is never 0
    r = garnet_rewards(draw, X, A)
    mdps = []
    for _ in range(d):
        successors, P = garnet_kernel(draw, X, A, b)
        nu0 = np.full(X, 1 / X)
        mdps.append(MDP(rewards=r, successors=successors, transitions=P, initial=nu0, discount=discount))
    name = named("ensemble", d, X, A, b, seed=(int(seed), 0))
    return ensemble(mdps, exponentials / exponentials.sum(), name=name)


def _same(other: Any, told: MDP, label: str) -> None:
    """The same states, actions, rewards, discount and start, or an error that names the first difference."""
    if not isinstance(other, MDP):
        raise InputError(f"{label} is {type(other).__name__}, not an MDP")
    if other.rewards.shape != told.rewards.shape:
        raise InputError(f"{label} has (X, A) = {other.rewards.shape}, but mdps[0] has {told.rewards.shape}")
    if other.discount != told.discount:
        raise InputError(f"{label} has discount {other.discount:g}, but mdps[0] has {told.discount:g}")
    for field in ("rewards", "initial"):
        mine, theirs = getattr(other, field), getattr(told, field)
        if not np.array_equal(mine, theirs):
            index = checks.first(mine != theirs)
            where = checks.at(field, index)
            raise InputError(f"{label} has {where} = {mine[index]:g}, but mdps[0] has {theirs[index]:g}")
