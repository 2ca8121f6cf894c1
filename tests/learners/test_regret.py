"""Every learner learns: under fixed keys a tuned setting keeps its regret below a fraction of the uniform policy's.

T = 20,000 and 8 seeds; only `scale`, `step_scale`, m, known spans and optimistic starts are set. The fractions are
about 1.5 times what was measured when the learner was written, so that a change of the last bit does not matter and a
change of the algorithm does. The certainty-equivalent learner does not explore, and RiverSwim shows it: its fraction
there is 1.1.
"""

from functools import cache

import pytest

from ravi.engine import run

RIVER, GARNET = "riverswim/6,discount=0.95", "garnet/20,3,4,discount=0.9"
T, SEEDS = 20_000, 8

FRACTIONS = {  # learner: RiverSwim, Garnet
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
    "politex,step_scale=200": (0.51, None),
    "politex,step_scale=5": (None, 0.55),
    "md-mpi,scale=0.001,step_scale=30,sweeps=0": (0.47, 0.09),
    "npg,scale=0.001": (0.45, 0.12),
    "mdp-e,step_scale=10": (0.17, 0.085),
    "o-reps,step_scale=10": (0.025, 0.035),
    "certainty-equivalent": (1.1, 0.05),
}


@cache
def uniform(mdp):
    return run("uniform", mdp, T, SEEDS, keep_epochs=False).regret.mean()


CASES = [
    pytest.param(learner, mdp, fraction, id=f"{learner} on {mdp.split('/')[0]}")
    for learner, fractions in FRACTIONS.items()
    for mdp, fraction in zip((RIVER, GARNET), fractions, strict=True)
    if fraction is not None
]


@pytest.mark.parametrize(("learner", "mdp", "fraction"), CASES)
def test_a_tuned_learner_learns(learner, mdp, fraction):
    assert run(learner, mdp, T, SEEDS, keep_epochs=False).regret.mean() <= fraction * uniform(mdp)
