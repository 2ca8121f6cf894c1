"""Each claim found again in plain loops, from the stream and from the states that were met.

Of a run this takes the seeds' (x_t, a_t, y_t, reset) and (V_k, Q_{k+1}, pi_k); counts, regressions, bonuses,
occupancies, sums and bounds are made here, by the formulas of the paper. Nothing of `ravi.verify`, `ravi.theory`,
`ravi.verify.audit` or `ravi.planning` is used.
"""

from itertools import pairwise, product
from math import log, log1p, log2, sqrt
from typing import NamedTuple

import numpy as np

from ravi.runtime.api import run
from tests.helpers import dense, spy
from tests.literal.philox import uniform

SLACK = 1e-9  # times H: bonuses that are invalid by less are valid


class Epoch(NamedTuple):
    """Epoch k; the one after the last has k = 0 and only V, pi, nu, mu and the data of the end."""

    k: int
    V: np.ndarray
    pi: np.ndarray
    nu: np.ndarray
    mu: np.ndarray
    Q: np.ndarray | None = None  # Q_{k+1}
    start: int = 0  # T_k
    steps: tuple = ()  # (x_t, a_t, y_t), to the reset
    PV: np.ndarray | None = None
    PV_hat: np.ndarray | None = None
    CB: np.ndarray | None = None
    width: np.ndarray | None = None
    N: np.ndarray | None = None  # tabular: N_{T_k}, N'_{T_k}
    moves: np.ndarray | None = None
    phi: np.ndarray | None = None  # mixture: phi_k, Lambda_{T_k}, b_{T_k}, sum phi_i (V_i(y) - P V_i)
    Lam: np.ndarray | None = None
    b: np.ndarray | None = None
    noise: np.ndarray | None = None
    data: tuple = ()  # what the learner holds: N, N' on the successors; or Lambda, b


class Seed(NamedTuple):
    key: int
    epochs: list
    after: Epoch  # V_{K+1}, pi_{K+1}
    sound: int  # epochs before the first with an invalid bonus
    plays: int  # T+

    def following(self, k):
        """Epoch k + 1, or what stands in its place after the last."""
        return self.epochs[k] if k < len(self.epochs) else self.after


class Case(NamedTuple):
    mdp: object
    T: int
    P: np.ndarray
    r: np.ndarray
    nu0: np.ndarray
    gamma: float
    H: float
    X: int
    A: int
    eta: float
    V0: np.ndarray
    pi0: np.ndarray
    beta: float
    delta: float
    lam: float | None  # None for a tabular learner
    B: float | None
    V_star: np.ndarray
    Q_star: np.ndarray
    pi_star: np.ndarray
    mu_star: np.ndarray
    optimum: float
    entropy: float
    seeds: list

    @property
    def d(self):
        return len(self.mdp.parameter)

    def under(self, mu, f):
        return sum(mu[x, a] * f[x, a] for x in range(self.X) for a in range(self.A))

    def gap(self, e):
        return self.optimum - self.under(e.mu, self.r)

    def optimistic(self, e):
        """(1 - gamma) <nu_0, V_k>"""
        return (1 - self.gamma) * sum(self.nu0[x] * e.V[x] for x in range(self.X))

    def backup(self, e):
        return self.r + self.gamma * e.PV


def kl(p, q):
    return sum(u * log(u / v) for u, v in zip(np.ravel(p), np.ravel(q), strict=True) if u > 0)


def conditional(nu, pi, other):
    """H(pi || pi')"""
    return sum(nu[x] * kl(pi[x], other[x]) for x in range(len(nu)))


def occupancies(P, nu0, gamma, pi):
    chain = np.array([[pi[x] @ P[x, :, y] for y in range(len(nu0))] for x in range(len(nu0))])
    nu = (1 - gamma) * np.linalg.solve((np.eye(len(nu0)) - gamma * chain).T, nu0)
    return nu, nu[:, None] * pi


def values(P, r, gamma, pi):
    chain = np.einsum("xa,xay->xy", pi, P)
    V = np.linalg.solve(np.eye(len(P)) - gamma * chain, (pi * r).sum(-1))
    return V, r + gamma * P @ V


def mirror(pi, Q, eta):
    """V and pi' of one step."""
    V, new = np.zeros(len(pi)), np.zeros_like(pi)
    for x in range(len(pi)):
        top = max(Q[x])
        weights = [p * np.exp(eta * (q - top)) for p, q in zip(pi[x], Q[x], strict=True)]
        V[x] = top + log(sum(weights)) / eta
        new[x] = [w / sum(weights) for w in weights]
    return V, new


def best(P, r, gamma, nu0):
    """An optimal deterministic policy, by trying all."""
    X, A = r.shape
    policies = [np.eye(A)[list(choice)] for choice in product(range(A), repeat=X)]
    return max(policies, key=lambda pi: (values(P, r, gamma, pi)[0].sum(), nu0 @ values(P, r, gamma, pi)[0]))


def embed(mdp, V):
    """phi_V(x, a) = sum_y psi(x, a, y) V(y)"""
    phi = np.zeros((mdp.states, mdp.actions, mdp.dimension))
    for x, a, j in product(range(mdp.states), range(mdp.actions), range(mdp.branching)):
        phi[x, a] += mdp.features[x, a, j] * V[mdp.successors[x, a, j]]
    return phi


def case_of(mdp, learner, T, seeds):
    """A run with its last epoch played to the end, seen by a spy, and all that the claims speak of."""
    seen = []
    made = run(learner, mdp, T, seeds, record=["stream"], measures=[spy(seen)], pad=True)
    P, r, gamma, settings = dense(mdp), np.array(mdp.rewards), mdp.discount, learner.settings
    H, nu0 = 1 / (1 - gamma), np.array(mdp.initial)
    pi_star = best(P, r, gamma, nu0)
    V_star, Q_star = values(P, r, gamma, pi_star)
    nu_star, mu_star = occupancies(P, nu0, gamma, pi_star)
    parts = learner.parts
    case = Case(
        mdp, T, P, r, nu0, gamma, H, mdp.states, mdp.actions, parts.eta, np.array(parts.initial_value),
        np.array(parts.initial_policy), settings["beta"], settings["delta"], settings.get("regularization"),
        settings.get("bound"), V_star, Q_star, pi_star, mu_star, (mu_star * r).sum(),
        conditional(nu_star, pi_star, parts.initial_policy), [],
    )  # fmt: skip
    for row, key in enumerate(made.seeds):
        case.seeds.append(_seed(case, made, seen, row, key))
    return case


def _seed(c, made, seen, row, key):
    x, a, y, reset = (made.results[f"stream_{name}"][row] for name in ("state", "action", "successor", "reset"))
    plays = next(t for t in range(c.T, len(x) + 1) if reset[t - 1])  # T+: the first reset at T or later
    starts = [t for t in range(1, c.T + 1) if t == 1 or reset[t - 2]]
    ends = [*(t - 1 for t in starts[1:]), plays]
    N, moves = np.ones((c.X, c.A)), np.zeros((c.X, c.A, c.X))
    if c.lam is not None:
        Lam, b, noise = c.lam * np.eye(c.d), np.zeros(c.d), np.zeros(c.d)
    epochs = []
    for k, (first, last) in enumerate(zip(starts, ends, strict=True), start=1):
        state = seen[k - 1][0]
        V, Q, pi = state.V[row], state.Q[row], state.policy[row]
        nu, mu = occupancies(c.P, c.nu0, c.gamma, pi)
        PV = np.array([[c.P[i, j] @ V for j in range(c.A)] for i in range(c.X)])
        steps = tuple((int(x[t - 1]), int(a[t - 1]), int(y[t - 1])) for t in range(first, last + 1))
        if c.lam is None:
            width = 1 / np.sqrt(N)
            PV_hat = np.array([[moves[i, j] @ V / N[i, j] for j in range(c.A)] for i in range(c.X)])
            data = {"N": N.copy(), "moves": moves.copy()}
        else:
            phi, inverse = embed(c.mdp, V), np.linalg.inv(Lam)
            width = np.array([[sqrt(phi[i, j] @ inverse @ phi[i, j]) for j in range(c.A)] for i in range(c.X)])
            PV_hat = np.array([[phi[i, j] @ inverse @ b for j in range(c.A)] for i in range(c.X)])
            data = {"phi": phi, "Lam": Lam.copy(), "b": b.copy(), "noise": noise.copy()}
        data["data"] = tuple(part[row] for part in state.data)
        epochs.append(Epoch(k, V, pi, nu, mu, Q, first, steps, PV, PV_hat, c.beta * width, width, **data))
        for t, (i, j, l) in enumerate(steps, start=first):
            if t > c.T:
                break  # padding is not learned from
            N[i, j] += 1
            moves[i, j, l] += 1
            if c.lam is not None:
                f = phi[i, j]
                Lam, b, noise = Lam + np.outer(f, f), b + f * V[l], noise + f * (V[l] - PV[i, j])
    V, pi = mirror(epochs[-1].pi, epochs[-1].Q, c.eta)
    data = {"N": N, "moves": moves} if c.lam is None else {"Lam": Lam, "b": b}
    data["data"] = tuple(part[row] for part in made.state.data)
    after = Epoch(0, V, pi, *occupancies(c.P, c.nu0, c.gamma, pi), **data)
    sound = 0
    for e in epochs:
        if (c.gamma * abs(e.PV - e.PV_hat) > e.CB + SLACK * c.H).any():
            break
        sound += 1
    return Seed(key, epochs, after, sound, plays)


# ---- which claims are measured where

RECOMPUTED = {}  # id -> (form, conditional, function)


def _form(form):
    def of(*ids, conditional=False):
        def add(function):
            for id in ids:
                RECOMPUTED[id] = (form, conditional, function)
            return function

        return add

    return of


at_epochs = _form("epochs")  # (c, e) -> measured, bound
at_first = _form("first")  # of the first epoch
at_pairs = _form("pairs")  # (c, e, f), f after e
at_prefixes = _form("prefixes")  # (c, the first K epochs, f after them)
at_end = _form("end")  # (c, seed)
once = _form("once")  # (c) -> list of measured, bound
in_mean = _form("mean")  # (c, seed) -> value, bound of the mean; the bound may be inf


def found(c, id):
    """Of a D or P claim every (measured, bound, k), seed by seed; of an E claim (value, bound)."""
    form, conditional, function = RECOMPUTED[id]
    if form == "once":
        return [[(*pair, None)] for pair in function(c)]
    if form == "end":
        return [[(*function(c, s), None)] for s in c.seeds]
    if form == "mean":
        return [function(c, s) for s in c.seeds]
    rows = []
    for s in c.seeds:
        epochs = s.epochs[: s.sound] if conditional else s.epochs
        row = []
        for e in epochs[:1] if form == "first" else epochs:
            f = s.following(e.k)
            if form in ("epochs", "first"):
                row.append((*function(c, e), e.k))
            elif form == "pairs":
                row.append((*function(c, e, f), f.k))
            else:
                row.append((*function(c, s.epochs[: e.k], f), f.k))
        rows.append(row)
    return rows


# ---- Section 2


@at_pairs("P1")
def bellman_equations(c, e, f):
    V, Q = values(c.P, c.r, c.gamma, f.pi)
    off = [abs(V[x] - f.pi[x] @ Q[x]) for x in range(c.X)]
    off += [abs(Q[x, a] - c.r[x, a] - c.gamma * c.P[x, a] @ V) for x in range(c.X) for a in range(c.A)]
    return max(off), 0.0


@once("P2")
def adjoints(c):
    rng = np.random.default_rng(5)
    f, g = rng.normal(size=c.X), rng.normal(size=(c.X, c.A))
    P = sum(c.P[x, a] @ f * g[x, a] for x in range(c.X) for a in range(c.A))
    P -= sum(f[y] * c.under(c.P[:, :, y], g) for y in range(c.X))
    E = sum(f[x] * g[x, a] for x in range(c.X) for a in range(c.A)) - sum(f[x] * sum(g[x]) for x in range(c.X))
    return [(abs(P), 0.0), (abs(E), 0.0)]


@at_epochs("P3")
def bellman_flow(c, e):
    inflow = [c.gamma * c.under(e.mu, c.P[:, :, y]) + (1 - c.gamma) * c.nu0[y] for y in range(c.X)]
    return max(abs(sum(e.mu[y]) - inflow[y]) for y in range(c.X)), 0.0


@at_end("P4")
def occupancy_is_a_sum(c, s):
    e = s.epochs[-1]
    u, nu, weight = c.nu0.copy(), np.zeros(c.X), 1 - c.gamma
    for _ in range(int(40 * c.H)):
        nu, weight = nu + weight * u, weight * c.gamma
        u = sum(u[x] * e.pi[x, a] * c.P[x, a] for x in range(c.X) for a in range(c.A))
    return max(abs(nu - e.nu).max(), abs(e.nu.sum() - 1), -e.nu.min()), 1e-11


@at_pairs("P5")
def returns(c, e, f):
    V, _ = values(c.P, c.r, c.gamma, f.pi)
    loss = c.under(f.mu, c.V_star[:, None] - c.Q_star)
    return max(abs(c.under(f.mu, c.r) - (1 - c.gamma) * c.nu0 @ V), abs(c.gap(f) - loss)), 0.0


@at_pairs("P6")
def chain_rule(c, e, f):
    return abs(kl(f.mu, e.mu) - kl(f.nu, e.nu) - conditional(f.nu, f.pi, e.pi)), 0.0


@once("P7")
def reset_chain(c):
    P = c.gamma * c.P + (1 - c.gamma) * c.nu0
    off = [max(abs(c.optimum + c.V_star[x] - max(c.r[x] + P[x] @ c.V_star)) for x in range(c.X))]
    for s in c.seeds:
        e = s.epochs[-1]
        off.append(max(abs(c.under(e.mu, P[:, :, y]) - e.nu[y]) for y in range(c.X)))
    return [(value, 0.0) for value in off]


def regret(c, s):
    return sum(c.gap(e) for e in s.epochs for t in range(e.start, e.start + len(e.steps)) if t <= c.T)


@at_end("P8")
def online_to_batch(c, s):
    gaps = [c.gap(e) for e in s.epochs for t in range(e.start, e.start + len(e.steps)) if t <= c.T]
    assert len(gaps) == c.T
    return abs(sum(gaps) / c.T - regret(c, s) / c.T), 0.0


# ---- Section 3


@at_first("S1")
def first_epoch(c, e):
    return max(abs(e.V - c.V0).max(), abs(e.pi - c.pi0).max()), 0.0


@at_pairs("S2")
def both_updates(c, e, f):
    _, by_product = mirror(e.pi, e.Q, c.eta)
    by_value = e.pi * np.exp(c.eta * (e.Q - f.V[:, None]))
    return max(abs(f.pi - by_product).max(), abs(f.pi - by_value).max(), abs(f.pi.sum(-1) - 1).max()), 0.0


@at_pairs("S3")
def ranges(c, e, f):
    Q, V = e.Q, f.V
    return max([-Q.min(), Q.max() - c.H, *(min(Q[x]) - V[x] for x in range(c.X)), *(V - Q.max(-1))]), 0.0


@at_epochs("S4")
def validity(c, e):
    return (c.gamma * abs(e.PV - e.PV_hat) - e.CB).max(), 0.0


@in_mean("S5")
def epochs_are_binomial(c, s):
    p = 1 - c.gamma
    return (len(s.epochs) - 1 - (c.T - 1) * p) ** 2, (c.T - 1) * p * (1 - p)


@in_mean("S6a")
def expected_epochs(c, s):
    return len(s.epochs), (1 - c.gamma) * c.T + c.gamma


@in_mean("S6b")
def expected_padding(c, s):
    return s.plays - c.T, c.gamma * c.H


@at_end("S7")
def plays(c, s):
    steps = [step for e in s.epochs for step in e.steps]
    jumps = sum(before[2] != after[0] for e in s.epochs for before, after in pairwise(e.steps))
    return abs(len(steps) - s.plays) + jumps, 0.0


@at_epochs("S8")
def backup(c, e):
    Q = [[min(max(c.r[x, a] + e.CB[x, a] + c.gamma * e.PV_hat[x, a], 0), c.H) for a in range(c.A)] for x in range(c.X)]
    return abs(e.Q - Q).max(), 0.0


@in_mean("S9a")
def actions_are_drawn(c, s):
    off = np.zeros((c.X, c.A))
    for e in s.epochs:
        for x, a, _ in e.steps:
            off[x, a] += 1
            off[x] -= e.pi[x]
    return off.ravel(), 0.0


@in_mean("S9b")
def successors_are_drawn(c, s):
    off = np.zeros((c.X, c.A, c.X))
    for e in s.epochs:
        for x, a, y in e.steps[: max(c.T + 1 - e.start, 0)]:
            off[x, a, y] += 1
            off[x, a] -= c.P[x, a]
    return off.ravel(), 0.0


@in_mean("S9c")
def starts_are_drawn(c, s):
    off = np.zeros(c.X)
    for e in s.epochs:
        off[e.steps[0][0]] += 1
        off -= c.nu0
    return off, 0.0


@in_mean("S10")
def resets_are_drawn(c, s):
    off = np.zeros((c.X, c.A))
    for e in s.epochs:
        for x, a, _ in e.steps:
            off[x, a] -= 1 - c.gamma
        off[e.steps[-1][:2]] += 1
    return off.ravel(), 0.0


# ---- Section 4


@at_epochs("A1a", conditional=True)
def optimistic(c, e):
    return (c.backup(e) - e.Q).max(), 0.0


@at_epochs("A1b", conditional=True)
def not_too_optimistic(c, e):
    return max(e.Q[x, a] - c.backup(e)[x, a] - min(2 * e.CB[x, a], c.H) for x in range(c.X) for a in range(c.A)), 0.0


@at_epochs("A1")
def lemma_4_2(c, e):
    return max((c.backup(e) - e.Q).max(), (e.Q - c.r - 2 * e.CB - c.gamma * e.PV).max()), 0.0


@once("A2")
def truncation(c):
    return [(abs(1 + c.gamma / (1 - c.gamma) - 1 / (1 - c.gamma)), 0.0)]


@at_epochs("A3")
def above_is_a_residual(c, e):
    return abs(c.optimum - c.optimistic(e) - c.under(c.mu_star, c.backup(e) - e.V[:, None])), 0.0


@at_epochs("A4", conditional=True)
def above_is_small(c, e):
    return c.optimum - c.optimistic(e), c.under(c.mu_star, e.Q - e.V[:, None])


@at_prefixes("A5", conditional=True)
def sum_above(c, epochs, f):
    total = sum(c.optimum - c.optimistic(e) for e in epochs)
    return total, c.entropy / c.eta + c.mu_star.sum(-1) @ (f.V - c.V0)


@at_epochs("A6", conditional=True)
def below_is_small(c, e):
    return c.optimistic(e) - c.under(e.mu, c.r), c.under(e.mu, e.V[:, None] - e.Q) + 2 * c.under(e.mu, e.CB)


@at_pairs("A7")
def regularised_value(c, e, f):
    right = sum(f.nu[x] * (f.V[x] + kl(f.pi[x], e.pi[x]) / c.eta) for x in range(c.X))
    return abs(c.under(f.mu, e.Q) - right), 0.0


def move(c, e, f):
    """<mu_{k+1} - mu_k, Q_{k+1}> - H(pi_{k+1} || pi_k) / eta"""
    return c.under(f.mu - e.mu, e.Q) - conditional(f.nu, f.pi, e.pi) / c.eta


@at_pairs("A8", conditional=True)
def below_telescopes(c, e, f):
    ends = e.nu @ e.V - f.nu @ f.V
    return c.optimistic(e) - c.under(e.mu, c.r), ends + move(c, e, f) + 2 * c.under(e.mu, e.CB)


@at_pairs("A9")
def pinsker(c, e, f):
    return c.under(f.mu - e.mu, e.Q), c.H / 2 * sqrt(max(2 * kl(f.mu, e.mu), 0.0))


@at_pairs("A10")
def occupancies_follow_policies(c, e, f):
    return kl(f.mu, e.mu), c.H * conditional(f.nu, f.pi, e.pi)


def kappa(H):
    return H**2.5 / 4 - H**2 / 8


@at_pairs("A11")
def fenchel_young(c, e, f):
    return move(c, e, f), c.eta * c.H**3 / 2


@at_pairs("A11s")
def fenchel_young_sharp(c, e, f):
    return move(c, e, f), c.eta * kappa(c.H)


@at_pairs("A12a")
def small_steps(c, e, f):
    return max(kl(f.pi[x], e.pi[x]) for x in range(c.X)), c.eta**2 * c.H**2 / 8


@at_pairs("A12b")
def small_moves(c, e, f):
    return max(abs(f.pi[x] - e.pi[x]).sum() for x in range(c.X)), c.eta * c.H / 2


def sum_below(c, epochs, f, per_epoch):
    total = sum(c.optimistic(e) - c.under(e.mu, c.r) for e in epochs)
    ends = epochs[0].nu @ epochs[0].V - f.nu @ f.V
    return total, ends + c.eta * per_epoch * len(epochs) + 2 * sum(c.under(e.mu, e.CB) for e in epochs)


@at_prefixes("A13", conditional=True)
def equation_7(c, epochs, f):
    return sum_below(c, epochs, f, c.H**3 / 2)


@at_prefixes("A13s", conditional=True)
def equation_7_sharp(c, epochs, f):
    return sum_below(c, epochs, f, kappa(c.H))


@at_pairs("A14")
def boundary(c, e, f):
    return (c.mu_star.sum(-1) - f.nu) @ f.V, c.H


@at_prefixes("A15", conditional=True)
def lemma_4_3(c, epochs, f):
    bonuses = sum(c.under(e.mu, e.CB) for e in epochs)
    bound = 2 * bonuses + 2 * c.H + c.entropy / c.eta + c.eta * c.H**3 * len(epochs) / 2
    return sum(c.gap(e) for e in epochs), bound


@at_prefixes("A15c", conditional=True)
def certificate(c, epochs, f):
    bound = 2 * sum(c.under(e.mu, e.CB) for e in epochs) + c.entropy / c.eta
    bound += (c.mu_star.sum(-1) - f.nu) @ f.V - (c.mu_star.sum(-1) - epochs[0].nu) @ c.V0
    bound += sum(move(c, e, g) for e, g in pairwise([*epochs, f]))
    return sum(c.gap(e) for e in epochs), bound


def uniform_start(c):
    return np.allclose(c.pi0, 1 / c.A, rtol=0, atol=1e-12)


@once("A16")
def entropy_of_the_uniform(c):
    return [(c.entropy, log(c.A) if uniform_start(c) else np.inf)]


def bonuses_met(c, s):
    return sum(e.CB[x, a] for e in s.epochs for x, a, _ in e.steps)


@in_mean("A17")
def bonuses_of_an_epoch(c, s):
    return bonuses_met(c, s) - c.H * sum(c.under(e.mu, e.CB) for e in s.epochs), 0.0


@in_mean("A18")
def lemma_4_4(c, s):
    to_T = sum(
        c.under(e.mu, e.CB) for e in s.epochs for t in range(e.start, e.start + len(e.steps)) if t <= c.T
    )  # fmt: skip
    return to_T - bonuses_met(c, s), 0.0


@in_mean("A19")
def wald(c, s):
    return sum(c.gap(e) * len(e.steps) for e in s.epochs) - c.H * sum(c.gap(e) for e in s.epochs), 0.0


def papers_eta(c):
    return uniform_start(c) and np.isclose(c.eta, sqrt(2 * log(max(c.A, 2)) / (c.H**2 * c.T)) if c.A > 1 else c.eta)


@in_mean("A20")
def theorem_4_1(c, s):
    rest = sqrt(2 * c.H**4 * c.T * log(c.A)) + 2 * c.H**2
    return regret(c, s) - 2 * bonuses_met(c, s), rest if papers_eta(c) else np.inf


@in_mean("A20c")
def theorem_4_1_corrected(c, s):
    value, rest = theorem_4_1(c, s)
    return value, rest + c.gamma * c.H**3 * sqrt(log(c.A) / (2 * c.T)) + c.delta * c.T


@at_pairs("C1")
def variational(c, e, f):
    """Of a strictly concave function on the simplex only the maximiser matters: value(pi_k) = V_k."""
    return max(abs(f.pi[x] @ e.Q[x] - kl(f.pi[x], e.pi[x]) / c.eta - f.V[x]) for x in range(c.X)), 0.0


@at_prefixes("C2")
def telescoping(c, epochs, f):
    total_V = sum(e.V for e in epochs) + f.V
    total_Q = c.V0[:, None] + sum(e.Q for e in epochs)
    V, _ = mirror(c.pi0, total_Q, c.eta)
    return abs(total_V - V).max(), 0.0


# ---- Section 5.1


@at_pairs("T0a")
def counts_are_of_what_was_played(c, e, f):
    N, moves = f.data
    there = [[[f.moves[x, a, y] for y in c.mdp.successors[x, a]] for a in range(c.A)] for x in range(c.X)]
    return max(abs(N - f.N).max(), abs(moves - there).max()), 0.0


@at_epochs("T0b")
def estimate_is_of_counts(c, e):
    """The estimate is the learner's where S8 finds the Q that it made; here it was made by loops."""
    return abs(
        e.PV_hat - np.array([[e.moves[x, a] @ e.V / e.N[x, a] for a in range(c.A)] for x in range(c.X)])
    ).max(), 0


@at_epochs("T0c")
def bonus_is_of_counts(c, e):
    return max(abs(e.CB[x, a] - c.beta / sqrt(e.N[x, a])) for x in range(c.X) for a in range(c.A)), 0.0


def beta_tabular(c):
    return 8 * c.H * sqrt(c.X * log(c.X * c.A * c.T / c.delta))


@at_epochs("T1")
def lemma_5_1(c, e):
    return (abs(e.PV - e.PV_hat) * np.sqrt(e.N)).max(), beta_tabular(c)


@at_epochs("T1s")
def lemma_5_1_sharp(c, e):
    beta = c.H * (sqrt((c.X * log(2) + log(c.X * c.A * c.T / c.delta)) / 2) + 1)
    return (abs(e.PV - e.PV_hat) * np.sqrt(e.N)).max(), beta


@at_epochs("T2")
def l1_event(c, e):
    excess = [-np.inf]
    for x, a in product(range(c.X), range(c.A)):
        n = e.N[x, a] - 1
        if n > 0:
            radius = sqrt(2 * (c.X * log(2) + log(c.X * c.A * c.T / c.delta)) / n)
            excess.append(abs(e.moves[x, a] / n - c.P[x, a]).sum() - radius)
    return max(excess), 0.0


def visits(c, s):
    n = np.zeros((c.X, c.A))
    for e in s.epochs:
        for x, a, _ in e.steps:
            n[x, a] += 1
    return n


@at_end("T3a")
def good_visits(c, s):
    total = 0.0
    for e in s.epochs:
        seen = np.zeros((c.X, c.A))
        for x, a, _ in e.steps:
            if seen[x, a] < e.N[x, a]:
                total += 1 / sqrt(e.N[x, a])
            seen[x, a] += 1
    return total, 2 * sqrt(2) * sum(sqrt(n) for n in visits(c, s).flat)


@at_end("T3b")
def doubling_epochs(c, s):
    doubled = np.zeros((c.X, c.A))
    for e in s.epochs:
        for x, a in product(range(c.X), range(c.A)):
            doubled[x, a] += sum((i, j) == (x, a) for i, j, _ in e.steps) > e.N[x, a]
    n = visits(c, s)
    return max(doubled[x, a] - log2(n[x, a] + 1) for x in range(c.X) for a in range(c.A)), 0.0


@in_mean("T4")
def lemma_5_2(c, s):
    value = sum(1 / sqrt(e.N[x, a]) for e in s.epochs for x, a, _ in e.steps)
    return value, 2 * sqrt(2) * sqrt(c.X * c.A * (c.T + c.gamma * c.H)) + (2 + sqrt(2)) * c.H * c.X * c.A


def explicit(c):
    """The corrected explicit bound, where the learner has the paper's constants; inf elsewhere."""
    beta = beta_tabular(c) if c.lam is None else beta_mixture(c)
    if not papers_eta(c) or not np.isclose(c.beta, beta):
        return np.inf
    plays = c.T + c.gamma * c.H
    if c.lam is None:
        bonus = 2 * sqrt(2) * sqrt(c.X * c.A * plays) + (2 + sqrt(2)) * c.H * c.X * c.A
    else:
        bonus = lemma_5_5_sum(c)
    rest = sqrt(2 * c.H**4 * c.T * log(c.A)) + c.gamma * c.H**3 * sqrt(log(c.A) / (2 * c.T))
    return 2 * beta * bonus + rest + 2 * c.H**2 + c.delta * c.T


@in_mean("T5", "M15")
def explicit_regret(c, s):
    return regret(c, s), explicit(c)


# ---- Section 5.2


def rate(c, B):
    return B**2 * c.H**2 / (c.lam * c.d)


def beta_mixture(c):
    return c.H * sqrt(c.d * log(1 + c.T * rate(c, c.B)) + 2 * log(1 / c.delta)) + sqrt(c.lam) * c.B


@at_pairs("M0a")
def regression_is_of_what_was_played(c, e, f):
    Lam, b = f.data[:2]
    return max(abs(Lam - f.Lam).max() / max(abs(f.Lam).max(), 1), abs(b - f.b).max() / max(abs(f.b).max(), 1)), 0.0


@at_epochs("M0b")
def bonus_is_of_the_regression(c, e):
    norms = [[sqrt(f @ np.linalg.solve(e.Lam, f)) for f in row] for row in e.phi]
    return abs(e.CB - c.beta * np.array(norms)).max(), 0.0


@once("M1a")
def kernel_is_linear(c):
    rows = c.mdp.features @ c.mdp.parameter
    norm = sqrt(sum(theta**2 for theta in c.mdp.parameter))
    return [(abs(rows - c.mdp.transitions).max(), 0.0), (norm - c.B, 0.0)]


@at_epochs("M1b")
def features_are_bounded(c, e):
    """V_k, and the corner of [0, H]^X that epoch k tries."""
    corner = np.random.default_rng(e.k).integers(0, 2, size=c.X) * c.H
    norms = [np.linalg.norm(phi[x, a]) for phi in (e.phi, embed(c.mdp, corner)) for x in range(c.X) for a in range(c.A)]
    return max(norms), c.B * c.H


@at_epochs("M2")
def expectations_are_linear(c, e):
    theta_hat = np.linalg.solve(e.Lam, e.b)
    off = [abs(e.phi[x, a] @ c.mdp.parameter - e.PV[x, a]) for x in range(c.X) for a in range(c.A)]
    off += [abs(e.phi[x, a] @ theta_hat - e.PV_hat[x, a]) for x in range(c.X) for a in range(c.A)]
    return max(off), 0.0


@at_epochs("M3")
def error_identity(c, e):
    error = e.phi @ np.linalg.solve(e.Lam, e.noise - c.lam * c.mdp.parameter)
    return abs(e.PV_hat - e.PV - error).max(), 0.0


def xi(e):
    return sqrt(e.noise @ np.linalg.inv(e.Lam) @ e.noise)


@at_epochs("M4")
def ellipsoid(c, e):
    off = np.linalg.solve(e.Lam, e.b) - c.mdp.parameter
    return sqrt(off @ e.Lam @ off), xi(e) + sqrt(c.lam) * c.B


def growth(c, Lam):
    return log(np.linalg.det(Lam)) - c.d * log(c.lam)


@at_epochs("M5")
def self_normalised(c, e):
    return xi(e), c.H * sqrt(max(growth(c, e.Lam) - 2 * log(c.delta), 0.0))


@at_epochs("M6")
def determinant(c, e):
    trace = c.lam + (e.start - 1) * c.B**2 * c.H**2 / c.d
    return log(np.linalg.det(e.Lam)), c.d * log(trace)


@at_epochs("M7")
def lemma_5_4(c, e):
    return (abs(e.PV - e.PV_hat) - beta_mixture(c) * e.width).max(), 0.0


def final_Lambda(c, s, bad_only=False):
    """lambda I and phi phi^T of every step to T+, or of those of norm 1 at least."""
    Lam = c.lam * np.eye(c.d)
    for e in s.epochs:
        for x, a, _ in e.steps:
            if not bad_only or e.width[x, a] >= 1:
                Lam = Lam + np.outer(e.phi[x, a], e.phi[x, a])
    return Lam


@at_end("M8a")
def potential(c, s):
    total = sum(log1p(len(e.steps) * e.width[x, a] ** 2) / len(e.steps) for e in s.epochs for x, a, _ in e.steps)
    return total, growth(c, final_Lambda(c, s))


@at_end("M8b")
def potential_is_bounded(c, s):
    return growth(c, final_Lambda(c, s)), c.d * log(1 + rate(c, c.B) * s.plays)


def is_bad(e):
    return any(e.width[x, a] >= 1 for x, a, _ in e.steps)


@at_end("M9")
def bad_epochs(c, s):
    bounds = growth(c, final_Lambda(c, s, bad_only=True)), c.d * log(1 + rate(c, c.B) * s.plays)
    return sum(is_bad(e) for e in s.epochs), min(bounds) / log(2)


@once("M10")
def concavity(c):
    """min(x, n) is concave up to its kink at n, where the chord-like right side meets it; so the worst is 0."""
    worst = max(min(x, n) - n / log(1 + n) * log(1 + x) for n in (1, 2, 7, 199) for x in (0.0, 0.5, 1, n, 3 * n))
    return [(worst, 0.0)]


@at_end("M11")
def clipped_norms(c, s):
    total = sum(min(1, e.width[x, a] ** 2) for e in s.epochs for x, a, _ in e.steps)
    return total, max(len(e.steps) / log(1 + len(e.steps)) for e in s.epochs) * growth(c, final_Lambda(c, s))


@in_mean("M12")
def longest_epoch(c, s):
    x = (2 + log(c.T)) * c.H
    return max(len(e.steps) / log(1 + len(e.steps)) for e in s.epochs), x / log(1 + x)


@in_mean("M13")
def memorylessness(c, s):
    value = 0.0
    for e in s.epochs:
        bad = [i for i, (x, a, _) in enumerate(e.steps) if e.width[x, a] >= 1]
        if bad:
            value += len(e.steps) - bad[0] - c.H
    return value, 0.0


def lemma_5_5_sum(c):
    """E sum_{t <= T+} CB_t / beta."""
    cc, T, g, H = rate(c, c.B), c.T, c.gamma, c.H
    padded = (T + g * H) * log(1 + cc * T) + g * H + g * (1 + g) * H**2 / T
    usual = sqrt(c.d * padded * (4 + 2 * log(T)) * H)
    return c.B * H**2 / sqrt(c.lam) * c.d / log(2) * log(1 + cc * (T + g * H)) + usual


@in_mean("M14")
def lemma_5_5(c, s):
    beta = beta_mixture(c)
    return bonuses_met(c, s), beta * lemma_5_5_sum(c) if c.beta <= beta * (1 + 1e-9) else np.inf


@in_mean("M16")
def corollary_5_7(c, s):
    index = 1 + int(c.T * uniform(s.key, 0, 0))
    e = max((e for e in s.epochs if e.start <= index), key=lambda e: e.start)
    return c.gap(e), min(explicit(c) / c.T, 1.0)


# ---- the Discussion and Appendix C: claims about planning, on the run's MDP


def planned(c, rewards, eta):
    """sum_k <mu* - mu_k, r_k> and the certificate of Lemma 4.3, with P_hat 30 percent off and the smallest bonus."""
    other = np.random.default_rng(0).dirichlet(np.ones(c.X), size=(c.X, c.A))
    P_hat = 0.7 * c.P + 0.3 * other
    star = best(c.P, sum(rewards) / len(rewards), c.gamma, c.nu0)
    nu_star, mu_star = occupancies(c.P, c.nu0, c.gamma, star)
    pi0 = np.full((c.X, c.A), 1 / c.A)
    pi, Q, epochs, regret, bound = pi0, np.zeros((c.X, c.A)), [], 0.0, 0.0
    for k, r in enumerate(rewards, start=1):
        V, pi = mirror(pi, Q, eta)
        CB = c.gamma * abs((c.P - P_hat) @ V)
        Q = np.clip(r + CB + c.gamma * P_hat @ V, 0, c.H)
        e = Epoch(k, V, pi, *occupancies(c.P, c.nu0, c.gamma, pi), Q)
        epochs.append(e)
        regret += c.under(mu_star - e.mu, r)
        bound += 2 * c.under(e.mu, CB)
    V, pi = mirror(pi, Q, eta)
    epochs.append(Epoch(0, V, pi, *occupancies(c.P, c.nu0, c.gamma, pi)))
    for e, f in pairwise(epochs):
        bound += c.under(f.mu - e.mu, e.Q) - conditional(f.nu, f.pi, e.pi) / eta
    bound += (nu_star - epochs[-1].nu) @ epochs[-1].V + conditional(nu_star, star, pi0) / eta
    return regret, bound


@once("D1")
def inner_steps(c):
    return [planned(c, [c.r] * backups, eta) for backups in (40, 200) for eta in (0.05, 1.0)]


@once("D2")
def exact_rate(c):
    rows = []
    for eta in (0.1, 2.0):
        V, pi = np.zeros(c.X), np.full((c.X, c.A), 1 / c.A)
        for k in range(1, 61):
            loss = abs(c.Q_star - values(c.P, c.r, c.gamma, pi)[1]).max()
            rows.append((k * loss, 8 * c.H**2 * (1 + log(c.A) / eta)))
            V, pi = mirror(pi, c.r + c.gamma * c.P @ V, eta)
    return rows


@once("D3")
def trap_state(c):
    """Two states: rho = (1 - gamma) (1 - eps) sum_t (gamma (1 - eps))^t."""
    rows = []
    for eps in (0.01, 0.1, 0.5, 1.0):
        rho = (1 - c.gamma) * (1 - eps) / (1 - c.gamma * (1 - eps))
        rows.append((abs(1 - rho - eps / (1 - c.gamma + c.gamma * eps)), 0.0))
    return rows


@once("D4")
def changing_rewards(c):
    rewards = np.random.default_rng(1).uniform(size=(150, c.X, c.A))
    rewards[::2] *= c.r
    return [planned(c, list(rewards), eta) for eta in (0.05, 1.0)]


@once("C3")
def self_normalised_sums(c):
    rows = []
    for s in c.seeds:
        rng = np.random.default_rng([s.key, 3])
        phi, noise = rng.normal(size=(100, 3)), rng.choice([-1.0, 1.0], size=100)
        Lam, total, worst = np.eye(3), np.zeros(3), (0.0, np.inf)
        for f, e in zip(phi, noise, strict=True):
            Lam, total = Lam + np.outer(f, f), total + e * f
            measured = total @ np.linalg.inv(Lam) @ total
            bound = 2 * log(sqrt(np.linalg.det(Lam)) / c.delta)
            worst = min(worst, (measured, bound), key=lambda pair: pair[1] - pair[0])
        rows.append(worst)
    return rows
