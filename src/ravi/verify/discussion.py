"""Claims of the Discussion and Appendix C: many planning steps, exact planning, traps, changing rewards.

These are claims about planning, not about a run: each is put to the test on the run's MDP with an estimate that is off
by a known amount, so that the tightest valid bonus, CB_k = gamma |(P - P_hat) V_k|, can be used.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from ravi.core import Array
from ravi.mdps.small import trap
from ravi.planning.evaluation import evaluate, return_of
from ravi.planning.mirror import mirror_step
from ravi.planning.mirror_descent import md_mpi_iterates
from ravi.planning.occupancies import occupancy, relative_entropy
from ravi.verify import lemmas
from ravi.verify.claim import Measured, Registry
from ravi.verify.record import Backups, Played, iterates
from ravi.verify.setting import Comparators, RunSetting

registry = Registry()
claim = registry.claim


def certified(setting: RunSetting, rewards: Array, eta: float) -> tuple[float, float]:
    """sum_k <mu* - mu^{pi_k}, r_k> and the exact certificate of Lemma 4.3; a backup for each of the rewards."""
    mdp, gamma = setting.mdp, setting.gamma
    other = np.random.default_rng(0).dirichlet(np.ones(mdp.states), size=(mdp.states, mdp.actions))
    P_hat = 0.7 * setting.P + 0.3 * other
    V_0, pi_0 = np.zeros(mdp.states), np.full((mdp.states, mdp.actions), 1 / mdp.actions)
    V, log_pi, pi = V_0[None], np.log(pi_0)[None], pi_0[None]
    Qs, Vs, policies = [np.zeros((1, *pi_0.shape))], [], []
    for r in rewards:
        V, log_pi, pi = mirror_step(log_pi, pi, Qs[-1], eta)
        CB = gamma * np.abs(np.einsum("xay,ny->nxa", setting.P - P_hat, V))
        Qs.append(np.clip(r + CB + gamma * np.einsum("xay,ny->nxa", P_hat, V), 0, setting.H))
        Vs.append(V[0])
        policies.append(pi[0])
    V, _, pi = mirror_step(log_pi, pi, Qs[-1], eta)
    star = best_fixed(setting, rewards.mean(0))
    found = occupancy(mdp, star)
    apart = found.nu @ relative_entropy(star, pi_0)
    best = Comparators(found.nu[None], np.einsum("xa,jxa->j", found.mu, rewards)[None], np.array([apart]))
    parts = setting.parts._replace(eta=eta, initial_value=V_0, initial_policy=pi_0)
    s = Backups(
        setting._replace(against=best, parts=parts), V=np.array(Vs), Q=np.concatenate(Qs[1:]), r=rewards,
        table=np.arange(len(rewards)), iterates=iterates(setting, np.array([*Vs, V[0]]), np.array([*policies, pi[0]])),
    )  # fmt: skip
    s = s.replaced(CB=gamma * np.abs(np.einsum("xay,ny->nxa", setting.P - P_hat, s.V)))
    return float(lemmas.gaps(s)[-1, 0]), float(lemmas.certificate(s, 2 * s.bonuses)[-1, 0])


def best_fixed(setting: RunSetting, r: Array) -> Array:
    """An optimal policy for the rewards r."""
    V = np.zeros(setting.mdp.states)
    for _ in range(int(60 * setting.H) + 50):
        Q = r + setting.gamma * setting.P @ V
        V = Q.max(-1)
    return np.eye(setting.mdp.actions)[Q.argmax(-1)]


def both(rows: list[tuple[float, float]]) -> Measured:
    measured, bound = np.array(rows).T
    return measured, bound


@claim("D1", "Lemma 4.3 holds for all K M backups of a planner with M inner steps", "Discussion", per="once")
def inner_steps(setting: RunSetting) -> Measured:
    r = np.broadcast_to(setting.mdp.rewards, (200, *setting.mdp.rewards.shape))
    return both([certified(setting, r[: 40 * M], eta) for M in (1, 5) for eta in (0.05, 1.0)])


@claim("D2", "exact planning: k ||Q* - Q^{pi_k}|| <= 8 H^2 (1 + log A / eta)", "Discussion", per="once")
def exact_rate(setting: RunSetting) -> Measured:
    mdp, rows = setting.mdp, []
    for eta in (0.1, 2.0):
        for k, iterate in enumerate(islice(md_mpi_iterates(mdp, eta), 60), start=1):
            loss = np.abs(setting.solution.Q - evaluate(mdp, iterate.policy).Q).max()
            rows.append((k * loss, 8 * setting.H**2 * (1 + np.log(mdp.actions) / eta)))
    return both(rows)


@claim("D3", "a policy that falls into the trap with probability eps has gap eps / (1 - gamma + gamma eps)",
       "Discussion", per="once")  # fmt: skip
def trap_state(setting: RunSetting) -> Measured:
    mdp, off = trap(setting.gamma), []
    stay = int(mdp.rewards[0].argmax())
    for eps in (0.01, 0.1, 0.5, 1.0):
        pi = np.full(mdp.rewards.shape, 1 / mdp.actions)
        pi[0] = np.where(np.arange(mdp.actions) == stay, 1 - eps, eps)
        off.append(abs(1.0 - return_of(mdp, pi) - eps / (1 - mdp.discount + mdp.discount * eps)))
    return np.array(off), 0.0


@claim("D4", "Lemma 4.3 holds for rewards that change with k, against the best fixed policy", "Discussion", per="once")
def changing_rewards(setting: RunSetting) -> Measured:
    rewards = np.random.default_rng(1).uniform(size=(150, *setting.mdp.rewards.shape))
    rewards[::2] *= setting.mdp.rewards  # blocks that favour different policies
    return both([certified(setting, rewards, eta) for eta in (0.05, 1.0)])


@claim("C3", "self-normalised sums exceed their bound with probability at most delta", "Theorem C.2", kind="P",
       per="run")  # fmt: skip
def self_normalised_sums(s: Played) -> Measured:
    """A sequence in R^3 with signs as noise, at the delta of the run."""
    rng = np.random.default_rng([s.seed, 3])
    phi, noise = rng.normal(size=(100, 3)), rng.choice([-1.0, 1.0], size=100)
    covariance = np.eye(3) + np.cumsum(phi[:, :, None] * phi[:, None, :], axis=0)
    total = np.cumsum(phi * noise[:, None], axis=0)
    norms = np.einsum("td,td->t", total, np.linalg.solve(covariance, total[..., None])[..., 0])
    return norms, np.linalg.slogdet(covariance)[1] + 2 * s.setting.log_inverse_delta
