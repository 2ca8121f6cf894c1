"""Runs of learners are their literal transcriptions (`tests.literal`): epochs, policies and tables of every epoch."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from ravi import ids
from ravi.core import MDP, Until
from ravi.estimators.linear import features_of
from ravi.mdps import garnet, riverswim
from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.literal import algorithms, average, episodic, extended, linear, plus, tabular
from tests.literal.algorithms import draw
from tests.literal.philox import uniform


class Case:
    """A run of one seed, and what a transcription knows of it."""

    def __init__(self, text, mdp, T, key, *, every_step=False):
        self.mdp, self.T, self.key, self.seen = mdp, T, key, []
        learner = ids.learner(text, mdp, T)
        if every_step:  # an epoch each, so that all states are seen
            learner = learner._replace(until=lambda s, time: Until(reset=False, deadline=time + 1))
        made = run(learner, mdp, T, [key], record=["stream"], measures=[spy(self.seen)])
        self.settings, self.r, self.nu0 = made.settings, mdp.rewards, mdp.initial
        self.gamma = made.settings.get("discount", mdp.discount)  # of plans, where the average reward has none
        (self.X, self.A), self.H = mdp.rewards.shape, mdp.largest_value
        if self.gamma != mdp.discount:
            self.H = 1 / (1 - self.gamma)
        parts = (made.results[f"stream_{part}"][0].tolist() for part in ("state", "action", "successor", "reset"))
        self.stream = list(zip(*parts, strict=True))
        self.phi = features_of(mdp.problem)[0]
        if mdp.features is not None:
            self.psi = np.zeros((self.X, self.A, self.X, mdp.dimension))
            np.put_along_axis(self.psi, mdp.successors[..., None].astype(np.int64), mdp.features, axis=2)
        self.knows_support = made.settings.get("support") == "on"  # the rows:
        self.rows = [[mdp.successors[x, a][mdp.transitions[x, a] > 0] for a in range(self.A)] for x in range(self.X)]

    def epochs(self):
        """The first step and the plays of every stretch between resets."""
        start = 0
        for t, (_, _, _, reset) in enumerate(self.stream, start=1):
            if reset or t == self.T:
                yield start + 1, self.stream[start:t]
                start = t

    def follows(self, transcription, tolerance):
        """Hold every epoch against the transcription; how many policies there were."""
        age = 0
        for (state, path), told in zip(self.seen, transcription(self), strict=True):
            t, policy = int(path.time[0]), state.policy[0]
            assert told.pop("t") == t
            staged = policy if policy.ndim == 3 else policy[None]
            if (Q := told.pop("greedy", None)) is not None:
                Q = np.array(Q)
                Q = Q if Q.ndim == 3 else Q[None]
                stage = Q[np.arange(len(staged)) % len(Q)]
                assert ((staged == 0) | (staged == 1)).all()
                assert ((staged * stage).sum(-1) >= stage.max(-1) - 1e-9).all(), t
            if (triples := told.pop("triples", None)) is not None:
                assert triples == [step[:3] for step in self.stream[t - 1 : t - 1 + len(triples)]]
            for name, value in told.items():
                found = np.asarray(getattr(state, name)[0])
                if isinstance(value, tuple):
                    assert value[0] <= found <= value[1], (name, t)
                else:
                    np.testing.assert_allclose(found, value, rtol=tolerance, atol=tolerance, err_msg=f"{name} at {t}")
            for step in range(t, t + int(path.length[0])):
                x, a, _, reset = self.stream[step - 1]
                assert a == draw(staged[min(age, len(staged) - 1), x], uniform(self.key, step, 1)), step
                age = 0 if reset else age + 1
        return len({state.policy.tobytes() for state, _ in self.seen})


def without_ties(mdp):
    """The same kernel with rewards that leave no two actions equal: rounding would choose between them."""
    return replace(mdp, rewards=np.random.default_rng(0).uniform(size=mdp.rewards.shape))


def dirichlet(seed, X, A, spread):
    rng = np.random.default_rng(seed)
    P, r = rng.dirichlet(np.full(X, spread), (X, A)), rng.random((X, A))
    return MDP.from_dense(P, r, 0.8, rng.dirichlet(np.ones(X)), renormalise=True)


def small(seed=3, X=6, A=3, d=3, discount=0.8):
    """A linear MDP of simplex features."""
    rng = np.random.default_rng(seed)
    phi, m = rng.dirichlet(np.ones(d), (X, A)), rng.dirichlet(np.ones(X) / 2, d)
    return MDP.from_linear(phi, m, rng.uniform(size=d), discount, np.full(X, 1 / X), name="small")


def algorithm_1(epochs):
    """What the transcriptions of Algorithm 1 say of every epoch."""
    for start, V, pi, _, Q, triples in epochs:
        yield {"t": start, "V": V, "policy": pi, "Q": Q, "triples": triples}


def given(case):
    """MDP, T and constants of Algorithms 2 and 3, and where they begin."""
    nu0, T, of = case.nu0.tolist(), case.T, case.settings
    begin = [0.0] * case.X, [[1 / case.A] * case.A] * case.X, case.key
    return (case.r.tolist(), case.gamma, nu0, T, of["eta"], of["beta"]), begin


def algorithm_2(case):
    constants, begin = given(case)
    return algorithm_1(algorithms.tabular(dense(case.mdp).tolist(), *constants, *begin))


def algorithm_3(case):
    constants, begin = given(case)
    lam, theta = case.settings["regularization"], case.mdp.parameter.tolist()
    return algorithm_1(algorithms.linear_mixture(case.psi.tolist(), theta, *constants, lam, *begin))


def of_pairs(case):
    """Algorithm 1 with targets of the V at hand; D is the list of all samples."""
    (r, gamma, nu0, T, eta, beta), begin = given(case)
    phi, X, A, d = case.phi.tolist(), case.X, case.A, case.phi.shape[-1]

    def gram(D):
        rows = [[case.settings["regularization"] * (i == j) for j in range(d)] for i in range(d)]
        for x, a, _ in D:
            rows = [[rows[i][j] + phi[x][a][i] * phi[x][a][j] for j in range(d)] for i in range(d)]
        return rows

    def estimate(D, V):
        theta = algorithms.solve(gram(D), [sum(phi[x][a][i] * V[y] for x, a, y in D) for i in range(d)])
        return [[algorithms.dot(phi[x][a], theta) for a in range(A)] for x in range(X)]

    def bonus(D, V):
        Lam = gram(D)
        return [[beta * algorithms.norm(Lam, phi[x][a]) for a in range(A)] for x in range(X)]

    def add(D, V, x, a, y):
        return [*D, (x, a, y)]

    P = dense(case.mdp).tolist()
    return algorithm_1(algorithms.ravi_ucb(P, r, gamma, nu0, T, eta, *begin, estimate, bonus, add, []))


def several_backups(epochs):
    """What the transcriptions of RAVI-UCB+ say of every epoch."""
    for start, V, pi, values, triples in epochs:
        yield {"t": start, "V": V, "policy": pi, "V_last": values[-1], "triples": triples}


def plus_of_counts(case):
    of, world = case.settings, (case.r.tolist(), case.gamma, case.nu0.tolist(), case.T)
    made = plus.tabular(dense(case.mdp).tolist(), *world, of["eta"], of["inner"], of["parts"], of["delta"], case.key)
    return several_backups(made)


def plus_of_regressions(case):
    of, mdp = case.settings, case.mdp
    world = case.psi.tolist(), mdp.parameter.tolist(), case.r.tolist(), case.gamma, case.nu0.tolist(), case.T
    numbers = of["eta"], of["inner"], of["parts"], of["delta"], of["regularization"]
    return several_backups(plus.linear_mixture(*world, *numbers, mdp.parameter_bound, mdp.feature_bound, case.key))


def without_one(*parts):
    """With all parts, and without each of them."""
    return ("", *(f",{part}=off{',span=off' * (part == 'centre')}" for part in parts))


SETS = (without_ties(garnet(5, 2, 2, 1, 0.8)), ids.mdp("riverswim/4,discount=0.8"), dirichlet(2, 3, 3, 0.2))
AVERAGE = replace(SETS[0], discount=1.0, name="average")
COUNTED = tuple(map(without_ties, (garnet(5, 2, 3, 1, 0.8), garnet(4, 3, 4, 2, 0.7, "first"), riverswim(4, 0.8))))
PLAYED = ("riverswim/6,discount=0.9", "garnet/7,3,3,seed=4,discount=0.8")
REGULARISED = (riverswim(5, 0.9), garnet(8, 3, 3, 1, 0.85), riverswim(4, 0.97))
STAGED = ("linear/7,3,3,discount=0.6", "riverswim/3,discount=0.6", "hypercube/linear/3,discount=0.7,margin=0.2")
LINEAR = (small(), "riverswim/4,discount=0.9")
MIXTURES = ("riverswim/mixture/4,discount=0.8", "ensemble/3,6,3,3,seed=2,discount=0.8")
EPISODES = tuple(mdp.in_episodes(S) for mdp, S in zip(COUNTED, (4, 1, 7), strict=True))
OF_PAIRS = tuple(ids.mdp(one).in_episodes(6) for one in STAGED)
OF_MIXTURES = tuple(without_ties(ids.mdp(one).in_episodes(S)) for one, S in zip(MIXTURES, (9, 5), strict=True))
STEPS = {"every_step": True}


class Row(NamedTuple):
    """Learners on MDPs, which do what the transcription says; the last of them on the first has several policies."""

    transcription: object
    learners: tuple
    mdps: tuple
    T: int
    tolerance: float = 1e-9
    options: dict = {}  # noqa: RUF012


def sets(rows, name, *scales):
    """Without the support, and with it."""
    learners = tuple(f"{name},scale={scale}{told}" for told in ("", ",support=on") for scale in scales)
    return Row(partial(extended.phases, rows=rows), learners, (*SETS, AVERAGE), 250, 1e-7)


TIGHT = ",tolerance=1e-11"
OPTIMISTIC_Q = tuple(f"optimistic-q,scale={how}" for how in (1, 0.01, "0.02,bonus=bernstein"))
RAVI_KL = tuple(f"ravi-kl,{of}" for of in ("plan=greedy,support=off", "support=off", "slack=0.9", "scale=0.1"))
UCBVI = tuple(f"ucbvi,scale={how}" for how in (0.001, 0.02, "0.03,bonus=hoeffding"))
RIVERS = tuple(f"{one},discount=0.9" for one in ("riverswim/6", "garnet/15,3,4,seed=1", "riverswim/4", "bandit"))
MIXED = ("riverswim/mixture/6", "hypercube/4", "ensemble/4,8,3,3,seed=2", "terrain/3,2", "queue/6,2", "two-cycle")
PARTS = ("gamma", "clip", "span", "centre", "fresh")
CONTINUING = ("riverswim/5,criterion=average", "garnet/6,3,2,criterion=average", "garnet/4,1,2,criterion=average")
ROWS = [
    Row(
        average.politex, ("politex,span=3", "politex,span=0.3,phase=7", "politex,span=2,step_scale=9"), CONTINUING, 900,
    ),
    Row(average.mdp_e, ("mdp-e,span=5", "mdp-e,span=5,phase=8", "mdp-e,span=5,step_scale=9"), CONTINUING, 400, 1e-7),
    Row(
        average.ravi_ucb,
        ("ravi-ucb,span=2", "ravi-ucb,span=0.1,scale=0.2", "ravi-ucb,span=2,scale=0.003,step_scale=9"),
        CONTINUING, 300, 1e-8,
    ),
    Row(episodic.ucbvi, UCBVI, EPISODES, 300, 1e-7),
    Row(episodic.optimistic_q, OPTIMISTIC_Q, EPISODES, 400),
    Row(episodic.ravi_kl, RAVI_KL, EPISODES, 150, 1e-7),
    Row(episodic.ravi_ucb, ("ravi-ucb", "ravi-ucb,scale=0.003,step_scale=0.1"), EPISODES, 300, 1e-8),
    Row(
        episodic.ravi_ucb_mixture, ("ravi-ucb/mixture", "ravi-ucb/mixture,scale=0.02,step_scale=0.1"), OF_MIXTURES, 150,
        1e-8,
    ),
    Row(linear.lsvi_ucb, ("lsvi-ucb", "lsvi-ucb,scale=0.01"), OF_PAIRS, 150),
    Row(linear.rlsvi, ("rlsvi", "rlsvi,scale=0.02"), OF_PAIRS, 150),
    Row(linear.oppo, ("oppo", "oppo,scale=0.03,step_scale=20,regularization=0.5"), OF_MIXTURES, 150, 1e-8),
    Row(
        linear.ucrl_vtr, ("ucrl-vtr,scale=0.06", "ucrl-vtr,scale=0.1,replan=determinant", "ucrl-vtr,scale=0.03"),
        OF_MIXTURES, 150, 1e-8,
    ),
    Row(plus_of_counts, tuple(f"ravi-ucb+,inner=3,eta=0.4{off}" for off in without_one(*PARTS)),
        ("riverswim/5,discount=0.9", "garnet/8,3,3,seed=1,discount=0.8"), 400, 1e-11),
    Row(plus_of_regressions,
        tuple(f"ravi-ucb+/mixture,inner=3,eta=0.4,regularization=0.5{off}" for off in without_one("radius", *PARTS)),
        ("riverswim/mixture/4,discount=0.9", "terrain/3,2,discount=0.8"), 100, 1e-11),
    Row(algorithm_2, ("ravi-ucb", "ravi-ucb,scale=0.003,eta=0.2"), (*RIVERS, "riverswim/4,discount=0.98"), 600, 1e-10),
    Row(algorithm_3, ("ravi-ucb/mixture", "ravi-ucb/mixture,scale=0.02,eta=0.2,regularization=0.5"),
        tuple(f"{one},discount=0.9" for one in MIXED), 300, 1e-10),
    Row(of_pairs, ("ravi-ucb/linear,eta=0.2", "ravi-ucb/linear,scale=0.02,eta=0.2,regularization=0.5"),
        ("linear/7,3,3,discount=0.85",), 150, 1e-10),
    sets(extended.ucrl2, "ucrl2", 1, 0.2, 0.02),
    sets(extended.ucrl2b, "ucrl2b", 1, 0.2, 0.02),
    sets(extended.kl_ucrl, "kl-ucrl", 1, 0.04, 0.0004),
    Row(partial(extended.phases, rows=extended.ucrl2b), tuple(f"scal,span=0.3,scale={how}" for how in (1, 0.1, 0.02)),
        (*SETS, AVERAGE), 250, 1e-7),
    Row(partial(extended.phases, rows=extended.scal_plus), tuple(f"scal+,span={how}" for how in (0.7, "0.5,scale=0.1")),
        (*SETS, AVERAGE), 250, 1e-7),
    Row(tabular.r_max, (f"r-max,m=3{TIGHT}",), COUNTED, 120, options=STEPS),
    Row(
        tabular.mbie,
        (f"mbie,scale=0.3{TIGHT}", f"mbie,scale=0.1,m=6,delta=0.2{TIGHT}"),
        COUNTED, 120, options=STEPS,
    ),
    Row(
        tabular.mbie_eb,
        (*(f"mbie-eb,{more}{TIGHT}" for more in ("scale=0.1", "scale=0.05,m=6,delta=0.2")),
         f"certainty-equivalent{TIGHT}"),
        COUNTED, 120, options=STEPS,
    ),
    Row(
        tabular.ucbvi_gamma,
        ("ucbvi-gamma", "ucbvi-gamma,scale=0.002", "ucbvi-gamma,scale=0.005,third_term=off", "ucbvi-gamma,scale=0.005",
         "ucbvi-gamma,scale=0.005,beta=0.0003"),  # 100 B_t falls below H^2 as n(x') grows
        (*COUNTED[::2], without_ties(garnet(6, 3, 6, 2, 0.7))), 250, options=STEPS,
    ),
    Row(tabular.delayed_q, ("delayed-q,m=7,accuracy=0.05", "delayed-q,m=1,accuracy=0.3"), PLAYED, 1500, options=STEPS),
    Row(tabular.ucb_q, ("ucb-q,scale=0.001,accuracy=0.3,delta=0.2", "ucb-q,scale=0"), PLAYED, 1500, options=STEPS),
    Row(
        tabular.optimistic_q,
        ("optimistic-q/average,span=2", "optimistic-q/average,span=0.4,scale=0.1,horizon=9",
         "optimistic-q/average,span=1,scale=0"),
        (*PLAYED, "riverswim/5,criterion=average"), 1500, options=STEPS,
    ),
    Row(tabular.liu_su, ("liu-su,scale=0.001,accuracy=0.3", "liu-su,scale=0"), PLAYED, 1500, options=STEPS),
    Row(
        tabular.q_learning,
        ("q-learning", "q-learning,scale=3", "q-learning,scale=0.5,initial=optimistic"),
        PLAYED, 1500, options=STEPS,
    ),
    Row(tabular.politex, ("politex", "politex,phase=7,step_scale=5", "politex,phase=1,step_scale=20"), PLAYED, 3000),
    Row(
        tabular.md_mpi,
        tuple(f"md-mpi,sweeps={m},evaluation={kind},{size}" for m in (1, 2, 5, 0) for kind in ("plain", "regularised")
              for size in ("beta=1000,eta=0.01", "beta=4,eta=0.2", "beta=6,eta=2")),
        REGULARISED, 300, 1e-8,
    ),
    Row(tabular.md_mpi, ("npg,beta=1000,eta=0.05", "npg,beta=3,eta=0.3"), REGULARISED, 300, 1e-8),
    Row(tabular.mdp_e, tuple(f"mdp-e,eta={eta}" for eta in (5, 0.02, 0.5)), REGULARISED, 300, 1e-8),
    Row(tabular.o_reps, ("o-reps,step_scale=0.25", "o-reps,step_scale=1.5"), REGULARISED[:2], 250, 1e-5),
    Row(linear.lsvi_ucb, ("lsvi-ucb", "lsvi-ucb,scale=0.01,replan=determinant", "lsvi-ucb,scale=0.01"), STAGED, 150),
    Row(
        linear.olsvi_fh,
        ("olsvi-fh", "olsvi-fh,scale=0.00025,span=1.5", "olsvi-fh,scale=0.00025"), STAGED, 150,
    ),
    Row(
        linear.gamma_lscvi_ucb,
        ("gamma-lscvi-ucb", "gamma-lscvi-ucb,scale=0.01,span=0.2", "gamma-lscvi-ucb,scale=0.01"),
        STAGED, 150,
    ),
    Row(
        linear.gamma_lscvi_ucb, ("gamma-lscvi-ucb,span=2", "gamma-lscvi-ucb,span=2,scale=0.01"),
        ("garnet/5,3,3,criterion=average", "linear/7,3,3,criterion=average"), 150,
    ),
    Row(linear.rlsvi, ("rlsvi", "rlsvi,scale=0.02"), STAGED, 150),
    Row(
        linear.fixed_point_lsvi, tuple(f"fixed-point-lsvi,scale={scale},regularization=0.3" for scale in (1, 0, 0.02)),
        LINEAR, 600,
    ),
    Row(linear.fopo, ("fopo,scale=0.00005,regularization=0.8",), ("riverswim/3,discount=0.9",), 300, 1e-6),
    Row(
        linear.fopo, ("fopo,span=1,scale=0.0005,regularization=0.8",), ("riverswim/3,criterion=average",), 300, 1e-6,
    ),
    Row(
        linear.rmax_ravi_ucb,
        tuple(f"rmax-ravi-ucb,scale=0.005,step_scale=100,regularization=0.7{p}" for p in ("", ",ascension=sigmoid")),
        LINEAR, 1500,
    ),
    Row(
        linear.mdp_exp2, tuple(f"mdp-exp2,phase={L},step_scale={3000 * L},regularization=0.6" for L in (1, 4)),
        LINEAR, 1500,
    ),
    Row(
        linear.ucrl_vtr,
        ("ucrl-vtr,truncation=0.1", "ucrl-vtr,scale=0.03,regularization=2,truncation=0.1,replan=determinant",
         "ucrl-vtr,scale=0.03,regularization=0.5,truncation=0.1"),
        tuple(without_ties(ids.mdp(one)) for one in (*MIXTURES, "hypercube/4,discount=0.8", "queue/5,2,discount=0.8")),
        250, 1e-7,
    ),
    Row(
        linear.oppo, ("oppo,truncation=0.1", "oppo,scale=0.03,step_scale=20,regularization=0.5,truncation=0.1"),
        MIXTURES, 250, 1e-7,
    ),
]  # fmt: skip
CASES = [
    pytest.param(row, learner, mdp, id=f"{learner} on {mdp if isinstance(mdp, str) else f'{mdp.name} {number}'}")
    for row in ROWS for learner in row.learners for number, mdp in enumerate(row.mdps)
]  # fmt: skip


@pytest.mark.parametrize(("row", "learner", "mdp"), CASES)
def test_a_run_is_its_literal_transcription(row, learner, mdp):
    case = Case(learner, ids.mdp(mdp), row.T, 3, **row.options)
    policies = case.follows(row.transcription, row.tolerance)
    assert policies > 1 or (learner, mdp) != (row.learners[-1], row.mdps[0])
