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
from ravi.verify.books import Evidence
from ravi.verify.claim import Registry
from ravi.verify.scene import delta_of

registry = Registry()
claim = registry.claim


def certified(e: Evidence, backups: int, rewards: Array, eta: float) -> tuple[float, float]:
    """sum_k <mu* - mu^{pi_k}, r_k> and the exact certificate of Lemma 4.3 for that many backups; rewards (k, X, A)."""
    mdp, gamma, H = e.scene.mdp, e.scene.mdp.discount, e.scene.H
    other = np.random.default_rng(0).dirichlet(np.ones(mdp.states), size=(mdp.states, mdp.actions))
    off = 0.7 * e.scene.P + 0.3 * other
    V, pi0 = np.zeros((1, mdp.states)), np.full((1, mdp.states, mdp.actions), 1 / mdp.actions)
    log_pi, pi, Q = np.log(pi0), pi0, np.zeros((1, mdp.states, mdp.actions))
    rows = []
    for r in rewards[:backups]:
        V, log_pi, pi = mirror_step(log_pi, pi, Q, eta)
        CB = gamma * np.abs(np.einsum("xay,ny->nxa", e.scene.P - off, V))
        Q = np.clip(r + CB + gamma * np.einsum("xay,ny->nxa", off, V), 0, H)
        rows.append((pi[0], V[0], CB[0], Q[0]))
    V, _, pi = mirror_step(log_pi, pi, Q, eta)
    policies, values, bonus, Qs = zip(*rows, (pi[0], V[0], CB[0], Q[0]), strict=True)
    mu, star = occupancy(mdp, np.array(policies)).mu, _best_fixed(e, rewards[:backups].mean(0))
    nu, mu_star = mu.sum(-1), occupancy(mdp, star).mu
    regret = sum(((mu_star - mu[k]) * rewards[k]).sum() for k in range(backups))
    moves = sum(
        ((mu[k + 1] - mu[k]) * Qs[k]).sum() - nu[k + 1] @ relative_entropy(policies[k + 1], policies[k]) / eta
        for k in range(backups)
    )
    bonuses = sum(2 * (mu[k] * bonus[k]).sum() for k in range(backups))
    ends = (mu_star.sum(-1) - nu[-1]) @ values[-1] - (mu_star.sum(-1) - nu[0]) @ values[0]
    return regret, bonuses + ends + mu_star.sum(-1) @ relative_entropy(star, pi0[0]) / eta + moves


def _best_fixed(e: Evidence, r: Array) -> Array:
    """An optimal policy for the rewards r."""
    V = np.zeros(e.scene.mdp.states)
    for _ in range(int(60 * e.scene.H) + 50):
        Q = r + e.scene.mdp.discount * e.scene.P @ V
        V = Q.max(-1)
    return np.eye(e.scene.mdp.actions)[Q.argmax(-1)]


@claim("D1", "Lemma 4.3 holds for all K M backups of a planner with M inner steps", "Discussion", phase="run")
def inner_steps(e: Evidence) -> tuple[Array, Array]:
    r = np.broadcast_to(e.scene.mdp.rewards, (200, *e.scene.mdp.rewards.shape))
    rows = [certified(e, K * M, r, eta) for K, M in ((40, 1), (40, 5)) for eta in (0.05, 1.0)]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


@claim("D2", "exact planning: k ||Q* - Q^{pi_k}|| <= 8 H^2 (1 + log A / eta)", "Discussion", phase="run")
def exact_rate(e: Evidence) -> tuple[Array, Array]:
    mdp, rows = e.scene.mdp, []
    for eta in (0.1, 2.0):
        for k, iterate in enumerate(islice(md_mpi_iterates(mdp, eta), 60), start=1):
            loss = np.abs(e.scene.solution.Q - evaluate(mdp, iterate.policy).Q).max()
            rows.append((k * loss, 8 * e.scene.H**2 * (1 + np.log(mdp.actions) / eta)))
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


@claim("D3", "a policy that falls into the trap with probability eps has gap eps / (1 - gamma + gamma eps)",
       "Discussion", phase="run")  # fmt: skip
def trap_state(e: Evidence) -> tuple[Array, Array]:
    mdp, off = trap(e.scene.mdp.discount), []
    stay = int(mdp.rewards[0].argmax())
    for eps in (0.01, 0.1, 0.5, 1.0):
        pi = np.full(mdp.rewards.shape, 1 / mdp.actions)
        pi[0] = np.where(np.arange(mdp.actions) == stay, 1 - eps, eps)
        off.append(abs(1.0 - return_of(mdp, pi) - eps / (1 - mdp.discount + mdp.discount * eps)))
    return np.array(off), np.zeros(len(off))


@claim("D4", "Lemma 4.3 holds for rewards that change with k, against the best fixed policy", "Discussion", phase="run")
def changing_rewards(e: Evidence) -> tuple[Array, Array]:
    rewards = np.random.default_rng(1).uniform(size=(150, *e.scene.mdp.rewards.shape))
    rewards[::2] *= e.scene.mdp.rewards  # blocks that favour different policies
    rows = [certified(e, 150, rewards, eta) for eta in (0.05, 1.0)]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


@claim("C3", "self-normalised sums exceed their bound with probability at most delta", "Theorem C.2", kind="P",
       phase="run")  # fmt: skip
def self_normalised_sums(e: Evidence) -> tuple[Array, Array]:
    """Sequences in R^3 with signs as noise, one for each seed, at the delta of the run."""
    measured, bound = np.zeros(e.n), np.zeros(e.n)
    for i, seed in enumerate(e.run.seeds):
        rng = np.random.default_rng([seed, 3])
        phi, noise = rng.normal(size=(100, 3)), rng.choice([-1.0, 1.0], size=100)
        covariance = np.eye(3) + np.cumsum(phi[:, :, None] * phi[:, None, :], axis=0)
        total = np.cumsum(phi * noise[:, None], axis=0)
        norms = np.einsum("td,td->t", total, np.linalg.solve(covariance, total[..., None])[..., 0])
        limits = np.linalg.slogdet(covariance)[1] - 2 * np.log(delta_of(e.scene))
        worst = int((norms - limits).argmax())
        measured[i], bound[i] = norms[worst], limits[worst]
    return measured, bound
