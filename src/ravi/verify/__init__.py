"""`ravi verify`: every equation, lemma, theorem and corollary as a claim that is measured on a run.

    from ravi.verify import verify
    report = verify("ravi-ucb", "riverswim/4,discount=0.8", steps=5000, seeds=16)
    print(report)            # claim, where, kind, measured, bound, margin, verdict
    report.holds             # whether claims were measured, and all of them hold

Deterministic claims (D) must hold in every epoch of every seed, up to rounding: 1e-9 H for an identity, 1e-8 K for a
sum over K epochs. A claim of probability 1 - delta (P) is rejected when the number of seeds that fail has, under
Binomial(n, delta), an upper tail below 1e-6. A claim in expectation (E) is rejected when the mean of the seeds leaves
an interval that chance keeps it in with probability 1 - 1e-6: by Chernoff's or Bernstein's bound for the laws of resets
and draws, for every equality and for Lemma 4.4; by Student's t for the other inequalities, which hold with much room.
With fewer than fifty statistical claims, a whole table raises a false alarm with probability below 1e-4. Claims that
are conditional on valid bonuses are measured up to the first epoch with an invalid one. docs/explanation/verify.md has
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ravi import ids, validation
from ravi.core import MDP, Learner
from ravi.display.progress import Progress
from ravi.learners.ravi_ucb.doubling import Phases
from ravi.mdps.changing_rewards import Changing
from ravi.planning.solver import solve
from ravi.runtime.api import resolved
from ravi.verify import (
    analysis,
    average,
    changing_rewards,
    discussion,
    doubling,
    episodes,
    expected,
    linear,
    mixtures,
    preliminaries,
    regression,
    sampled,
    sets,
    tables,
    unknown_rewards,
    variance,
    variants,
)
from ravi.verify.claim import Claim
from ravi.verify.judge import Form
from ravi.verify.report import Report, Row
from ravi.verify.setting import RunSetting, papers_bound, setting_of

# What `ravi verify` runs when nothing is named: small, with the paper's constants. Under these every tabular Q_k is at
# H and policies stay uniform, so that many a mistake would not show: hence also a tenth of the bonus, which is valid
# too (beta' of T1s is smaller), and larger steps.
DEFAULT = (
    ("garnet/2,2,2,discount=0.8", "ravi-ucb", 20_000),
    ("garnet/2,2,2,discount=0.8", "ravi-ucb,scale=0.1,step_scale=30", 5_000),
    ("ensemble/2,4,2,2,discount=0.8", "ravi-ucb/mixture", 10_000),
)
# What `ravi verify --variants` runs: every variant that has a guarantee, with constants under which its policies move.
EVERY = (
    ("garnet/3,2,3,discount=0.75", "ravi-ucb,scale=0.03,step_scale=60", 600),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture,scale=0.1,step_scale=30", 500),
    ("garnet/3,2,3,discount=0.75", "ravi-ucb+,inner=3,eta=0.5", 300),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture,inner=3,eta=0.5", 250),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture,inner=3,eta=0.5,weights=variance", 250),
    ("garnet/3,2,3,discount=0.75", "ravi-ucb/unknown-rewards,scale=0.03,step_scale=60", 500),
    ("garnet/3,2,3,discount=0.75", "ravi-ucb+/unknown-rewards,inner=3,eta=0.5", 250),
    ("garnet/3,2,3,discount=0.75", "ravi-ucb/doubling,scale=0.03,step_scale=30", 400),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture/doubling,scale=0.1,step_scale=10", 300),
    ("garnet/3,2,3,discount=0.75", "ravi-ucb+/doubling,inner=3,step_scale=10", 250),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb+/mixture/doubling,inner=3,step_scale=10", 250),
    ("tides/4,block=20,discount=0.75", "ravi-ucb,scale=0.03,step_scale=60", 600),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture-sampled,samples=2,scale=0.3,step_scale=30", 300),
    ("linear/8,2,3,discount=0.75", "ravi-ucb/linear,scale=0.1,step_scale=30", 300),
    ("garnet/3,2,3,discount=0.75", "ravi-kl,plan=mirror,inner=3,eta=0.5", 300),
    ("garnet/3,2,3,discount=0.75", "ravi-kl,plan=greedy", 300),
    ("garnet/3,2,3,discount=0.75", "ravi-kl", 300),
    ("garnet/3,2,3,discount=0.75", "ravi-kl/unknown-rewards", 300),
    ("ensemble/2,4,2,2,discount=0.75", "ravi-kl/mixture", 150),
)
MOST_STATES = 400  # an audit solves dense systems at every epoch

# Estimators of kinds of their own, by the name that a learner gives them: each with claims and a regret bound.
OWN: dict[str, Any] = {"sampled": sampled, "linear": linear, "variance": variance}

PAPER = (preliminaries, analysis, tables, regression, discussion)
CLAIMS: tuple[Claim, ...] = tuple(claim for part in PAPER for claim in part.registry.claims)
ANY = tuple(claim for claim in CLAIMS if claim.id in variants.SHARED)  # about any policies that are played
VARIANTS: tuple[Claim, ...] = (*ANY, *variants.registry.claims)  # of learners with several backups an epoch
CHANGING: tuple[Claim, ...] = (*ANY, *changing_rewards.registry.claims)  # where rewards change
UNKNOWN: tuple[Claim, ...] = unknown_rewards.claims_of(VARIANTS)  # of those that are not told their rewards
DOUBLING: tuple[Claim, ...] = doubling.claims_of(VARIANTS)  # of those that do not know T
KINDS: tuple[Claim, ...] = tuple(claim for kind in OWN.values() for claim in kind.registry.claims)
SETS: tuple[Claim, ...] = tuple(sets.registry.claims)  # of optimistic plans, RAVI-KL's
AVERAGE: tuple[Claim, ...] = tuple(average.registry.claims)  # of any learner in the average reward
OPTIMISTIC: tuple[Claim, ...] = (  # of RAVI-KL there
    *AVERAGE[:1], *(claim for claim in SETS if claim.id in average.SHARED), *average.of_sets.claims,
)  # fmt: skip
EPISODES: tuple[Claim, ...] = tuple(
    claim
    for part in (
        episodes.registry, episodes.of_counts, episodes.of_ucbvi, episodes.of_ravi_ucb, episodes.of_sets
    )
    for claim in part.claims
)  # fmt: skip
MIXTURES: tuple[Claim, ...] = (*(claim for claim in SETS if claim.id in mixtures.SHARED), *mixtures.registry.claims)


def verify(
    learner: Learner | str,
    mdp: MDP | Changing | str,
    steps: int,
    seeds: int | Iterable[int] = 16,
    *,
    only: Sequence[str] = (),
    progress: Progress | bool | None = None,
) -> Report:
    """Run `learner` on `mdp`, with the last epoch played to its end, and hold every claim against it."""
    form = form_of(learner, mdp, validation.steps(steps))
    chosen = [claim for claim in form.claims if wanted(claim, only)]
    if not chosen:
        raise validation.InputError(f"{', '.join(only)} is not about {form.learner.name}")
    return form.report(chosen, seeds, progress)


def form_of(learner: Learner | str, mdp: MDP | Changing | str, steps: int) -> Form:
    """Rewards that change; phases of unknown T; plans on sets of kernels; several backups an epoch; or Algorithm 1."""
    world = (ids.changing(mdp) or mdp) if isinstance(mdp, str) else mdp
    mdp, learner = resolved(world.mdp if isinstance(world, Changing) else world, learner, steps)
    if mdp.criterion == "episodic":
        setting = episodes.setting_of(learner, mdp, steps)
        plan_of = None if learner.sets is None else episodes.plan_of
        return Form(learner, setting, episodes.claims_of(learner), episodes.explicit(setting), plan_of=plan_of)
    if mdp.criterion == "average":
        setting = average.setting_of(learner, mdp, steps)
        if setting.sets is None:
            many = len(AVERAGE) if setting.average.ucrl2 < float("inf") else 1  # the last is about UCRL2
            return Form(learner, setting, list(AVERAGE[:many]), setting.average.ucrl2)
        return Form(learner, setting, list(OPTIMISTIC), average.explicit(setting), plan_of=average.plan_of)
    if learner.sets is not None and learner.sets.delta is not None:  # UCRL2's, with a discount
        learner = learner._replace(sets=None)
    if not (learner.parts or learner.sets or isinstance(learner.plan, Phases) or isinstance(world, Changing)):
        raise validation.InputError(f"{learner.name} is not of RAVI-UCB's form: no claim is about it (take ravi-ucb)")
    if mdp.states > MOST_STATES:
        raise validation.InputError(f"{mdp.name} has {mdp.states} states; verify takes at most {MOST_STATES}")
    if isinstance(world, Changing):
        learner, setting = changing_rewards.setting_of(learner, world, steps)
        return Form(learner, setting, _about(CHANGING, setting), expected.total(changing_rewards.regret(setting)))
    if isinstance(learner.plan, Phases):
        setting = doubling.setting_of(learner, mdp, steps, solve(mdp, tol=1e-12))
        return Form(learner, setting, _about(DOUBLING, setting), expected.total(doubling.sharp(setting)))
    setting = setting_of(learner, mdp, steps, solve(mdp, tol=1e-12))
    if learner.sets is not None:
        of, claims = (mixtures, MIXTURES) if learner.sets.kernels else (sets, SETS)
        return Form(learner, setting, list(claims), of.explicit(setting), plan_of=of.plan_of)
    own: Any = OWN.get(setting.stated.kind)
    theirs = own.registry.claims if own else []
    if learner.parts is not None and learner.parts.backups is None:
        bound, rungs = (own.explicit if own else papers_bound)(setting), (analysis.certificate, analysis.printed)
        return Form(learner, setting, [*_about(CLAIMS, setting), *theirs], bound, rungs)
    if setting.unknown_rewards:
        return Form(learner, setting, _about(UNKNOWN, setting), expected.explicit(setting))
    return Form(learner, setting, [*_about(VARIANTS, setting), *theirs], (own or expected).explicit(setting))


def _about(claims: Sequence[Claim], setting: RunSetting) -> list[Claim]:
    """The claims of this setting."""
    about = ("any", setting.kind) if setting.kind == "generic" else ("any", setting.kind, "parts")
    return [claim for claim in claims if claim.about in about]


def wanted(claim: Claim, only: Sequence[str]) -> bool:
    for name in only:
        _known(name)
    return not only or any(_names(claim, name) for name in only)


@cache
def _known(name: str) -> None:
    """An error unless a claim has this name."""
    plans = (*SETS, *AVERAGE, *OPTIMISTIC, *MIXTURES, *EPISODES)
    every = (*CLAIMS, *VARIANTS, *UNKNOWN, *CHANGING, *KINDS, *plans, *doubling.registry.claims)
    if not any(_names(claim, name) for claim in every):
        near = validation.did_you_mean(name, list(dict.fromkeys(claim.id for claim in every)))
        hint = near or " Ids are P1, A15 or T5, say; `ravi verify MDP LEARNER` prints all that apply."
        raise validation.InputError(f"there is no claim {name!r}.{hint}")


def _names(claim: Claim, name: str) -> bool:
    """A1 names A1a and A1b too."""
    return claim.id == name or (claim.id.startswith(name) and claim.id[len(name) :] in ("a", "b", "c", "d", "e", "s"))


__all__ = [
    "CHANGING", "CLAIMS", "DEFAULT", "DOUBLING", "EPISODES", "EVERY", "KINDS", "MIXTURES", "SETS", "UNKNOWN",
    "VARIANTS", "Claim", "Report", "Row", "verify",
]  # fmt: skip
