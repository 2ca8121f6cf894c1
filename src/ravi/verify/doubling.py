"""Claims of learners that do not know T: of every phase those of its learner, of the phases their order and sum.

Phase i is a run of its own, from V_0 and pi_0, with the eta of l_i plays and the beta of S_{i+1} plays at
delta_i = 1 / l_i (`ravi.learners.ravi_ucb.doubling`). The claims of `variants` are held against each with these
constants, which are found anew here; that its data are kept is what V2a and V2b say, whose books are of the whole run.
Claims of probability are judged phase by phase (`judge.in_phases`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from ravi.core import MDP, Learner
from ravi.learners.ravi_ucb.doubling import Phases
from ravi.planning.solver import Solution
from ravi.theory import Bound, constants
from ravi.theory import doubling as theory
from ravi.verify import expected, lemmas, variants
from ravi.verify import setting as settings
from ravi.verify.claim import Claim, Measured, Registry
from ravi.verify.record import Backups
from ravi.verify.setting import RunSetting, papers_beta

REPLACED = ("V8", "V9", "V9s")  # of `variants`: bounds for T known

registry = Registry()
claim = registry.claim


def claims_of(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The claims of a variant that stand where T is not known, and those of this file."""
    return (*(one for one in claims if one.id not in REPLACED), *registry.claims)


def setting_of(learner: Learner, mdp: MDP, steps: int, solution: Solution) -> RunSetting:
    """The run, and every phase with the constants that it must have, whatever the learner says of them."""
    assert isinstance(learner.plan, Phases)
    plan = learner.plan

    @cache
    def of(i: int) -> RunSetting:
        made, l = plan.learner(i), theory.length(i, plan.first)
        setting = settings.setting_of(made, mdp, theory.end(i, plan.first), solution)._replace(phase=i, length=l)
        setting = setting.stating(delta=1 / l)
        if setting.stated.beta is None:
            return setting
        return setting.stating(beta=float(setting.stated.scale) * papers_beta(setting))

    return of(0)._replace(steps=steps, first=plan.first, of=of).stating(delta=1 / steps)


# ---- the phases


@claim("B1", "the phase of epoch k is the one that T_k is in", "doubling", per="plan")
def in_force(s: Backups) -> Measured:
    return np.abs(s.played.states.phase[s.epochs] - s.setting.phase).astype(float), 0.0


@claim("B2", "V and pi begin anew with a phase: its first plan is made from V_0, pi_0", "doubling", per="plan")
def begun_anew(s: Backups) -> Measured:
    return variants.planned(s)[0][: s.epochs.start > 0], 0.0


@claim("B3", "eta_i is that of l_i steps", "doubling", per="plan")
def own_step(s: Backups) -> Measured:
    right = s.setting.stated.step_scale * published_eta(s.setting)
    return np.array([abs(s.eta / right - 1)]), 0.0


def published_eta(setting: RunSetting) -> float:
    """eta for l_i steps: that of Theorem 4.1, or the balanced one, with the beta of as many steps."""
    H, A, l, M = setting.H, setting.mdp.actions, setting.length, setting.parts.inner
    if setting.stated.beta is not None:
        return constants.eta(H, A, l)
    alone = setting._replace(steps=l).stating(scale=1.0)
    return constants.eta_balanced(H, A, l, expected.bonus_sum(alone) if setting.has("balance") else 0.0, M)


# ---- the bounds


def bonuses(setting: RunSetting) -> list[float]:
    """S_i of every phase: the beta of S_{i+1} plays, in a sum over l_i."""
    return [expected.bonus_sum(phase, phase.length) for phase in setting.phases]


def sharp(setting: RunSetting) -> Bound | None:
    """With the eta of every phase; None where the constants are not the theorem's. `start` is 0 where Q is not fresh,
    else 1, or H where CB is not 0 at V_0."""
    parts, phases = setting.parts, setting.phases
    if (parts.pick != "uniform" and parts.inner > 1) or not all(expected.valid(phase) for phase in phases):
        return None
    alike = bool(setting.dimension) or setting.has("span") or setting.has("clip")  # CB = 0 at V_0 = 0
    return theory.sharp(
        setting.H, setting.mdp.actions, bonuses(setting), etas=[phase.eta for phase in phases],
        inner_steps=parts.inner, first=setting.first, start=(1.0 if alike else setting.H) if parts.fresh else 0.0,
    )  # fmt: skip


def published(setting: RunSetting) -> float:
    """The closed form of `theory.doubling`; infinite where scale or step_scale are not 1."""
    mdp, made, H, T, l = setting.mdp, sharp(setting), setting.H, setting.steps, setting.first
    if made is None or setting.stated.scale != 1 or setting.stated.step_scale != 1:
        return np.inf
    if setting.stated.beta is None:
        return doubled(setting, made) if setting.has("balance") else np.inf
    if setting.dimension:
        d, B = mdp.dimension, setting.B
        return theory.linear_mixture(H, d, mdp.actions, T, bound=B, regularization=setting.lam, first=l).total
    return theory.tabular(H, mdp.states, mdp.actions, T, first=l).total


def doubled(setting: RunSetting, made: Bound) -> float:
    """sum_i [S_i + max(S_i, s_i) + s_i + ...]."""
    total = made.bonus + made.boundary + made.failure
    for phase, S in zip(setting.phases, bonuses(setting), strict=True):
        s = expected.slow(setting, phase.length)
        total += max(S, s) + s
    return total


claim("B4", "E sum_{t<=T+} min(2 CB_t, H) <= sum_i S_i", "Lemmas 5.2, 5.5",
      kind="E")(lemmas.capped_bonus_sum(lambda setting: sum(bonuses(setting))))  # fmt: skip
claim("B5", "R_T <= sum_i [S_i + H (log A / (M eta_i) + eta_i kappa E K(l_i)) + H^2 / M + H start / M + 1] + gamma H m",
      "Theorem 4.1", kind="E")(lemmas.regret(lambda setting: expected.total(sharp(setting))))  # fmt: skip
claim("B5s", "R_T <= the bound of the published constants, or that in which each balanced eta_i at most doubles S_i",
      "theory.doubling", kind="E")(lemmas.regret(published))  # fmt: skip
