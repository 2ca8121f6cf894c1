"""Every learner learns: under fixed keys a tuned setting keeps its regret below a fraction of the uniform policy's.

T = 20,000; 8 seeds on MDPs of few states, 4 on the others, where a step takes longer. Only `scale`, `step_scale`, m,
known spans and optimistic starts are set. The fractions are about 1.5 times what was measured under 8 seeds when the
learner was written, and at least 1.3 times what 4 seeds give, so that a change of the last bit does not matter and a
change of the algorithm does. The certainty-equivalent learner and MDP-EXP2 do not explore, and RiverSwim shows it:
their fraction there is 1.1.
"""

from functools import cache

import pytest

from ravi import ids
from ravi.runtime.api import run

T, FEW = 20_000, 16  # states

TABULAR = {
    "ravi-ucb,scale=0.001,step_scale=30": (0.47, 0.09),
    "ravi-ucb/known,step_scale=100": (0.13, 0.025),
    "ucrl2,scale=0.03": (0.03, 0.02),
    "ucrl2b,scale=0.01": (0.02, 0.015),
    "kl-ucrl,scale=0.003": (0.01, 0.02),
    "scal,scale=0.01,span=5": (0.02, 0.015),
    "scal+,scale=0.03": (0.48, 0.11),
    "r-max,m=10": (0.03, 0.08),
    "mbie,scale=0.1": (0.035, 0.02),
    "mbie-eb,scale=0.01": (0.01, 0.025),
    "ucbvi-gamma,scale=0.005,third_term=off": (0.13, 0.18),
    "psrl": (0.035, 0.015),
    "delayed-q,m=5": (0.15, 0.19),
    "ucb-q,scale=0.0001": (0.35, 0.09),
    "liu-su,scale=0.0001": (0.6, 0.11),
    "q-learning,initial=optimistic,scale=0.1": (0.6, 0.085),
    "politex,step_scale=100": (0.51, None),
    "politex,step_scale=2.5": (None, 0.55),
    "md-mpi,scale=0.001,step_scale=30,sweeps=0": (0.47, 0.09),
    "npg,scale=0.001": (0.45, 0.12),
    "mdp-e,step_scale=10": (0.17, 0.085),
    "o-reps,step_scale=10": (0.025, 0.035),
    "certainty-equivalent": (1.1, 0.05),
}
MIXTURE = {
    "ravi-ucb/mixture,scale=0.02,step_scale=30": (0.06, 0.3),
    "uclk,scale=0.01": (0.001, 0.09),
    "uclk+,scale=0.001": (0.001, 0.14),
    "uclk-c,scale=0.001": (0.001, 0.14),
    "threshold,scale=0.001": (0.001, None),
    "ucrl-vtr,scale=0.06": (0.002, 0.09),
    "oppo,scale=0.02,step_scale=30": (0.02, 0.13),
}
LINEAR = {
    "lsvi-ucb,scale=0.001": (0.32, 0.003),
    "olsvi-fh,scale=0.000025": (0.37, 0.002),
    "gamma-lscvi-ucb,scale=0.001": (0.01, 0.001),
    "rlsvi,scale=0.01": (0.1, 0.005),
    "fixed-point-lsvi,scale=0.0001": (0.06, 0.006),
    "fopo,scale=0.0001": (0.06, 0.002),
    "mdp-exp2,phase=5,step_scale=10000": (1.1, 0.8),
    "rmax-ravi-ucb,scale=0.0003,step_scale=10000": (0.42, 0.035),
}
FAMILIES = [
    (("riverswim/6,discount=0.95", "garnet/20,3,4,discount=0.9"), TABULAR),
    (("ensemble/4,20,3,4,discount=0.9", "hypercube/4,discount=0.9"), MIXTURE),
    (("riverswim/6,discount=0.95", "linear/50,4,5"), LINEAR),
]
CASES = [
    pytest.param(learner, mdp, fraction, id=f"{learner} on {mdp.split('/')[0]}")
    for mdps, fractions in FAMILIES
    for learner, stated in fractions.items()
    for mdp, fraction in zip(mdps, stated, strict=True)
    if fraction is not None
]


def regret(learner, mdp):
    return run(learner, mdp, T, 8 if ids.mdp(mdp).states <= FEW else 4, keep_epochs=False).regret.mean()


@cache
def uniform(mdp):
    return regret("uniform", mdp)


@pytest.mark.parametrize(("learner", "mdp", "fraction"), CASES)
def test_a_tuned_learner_learns(learner, mdp, fraction):
    assert regret(learner, mdp) <= fraction * uniform(mdp)
