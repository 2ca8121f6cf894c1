"""The constants that the theory sets: step sizes and confidence radii, each by the statement that derives it."""

from math import ceil, log, log1p, sqrt

from ravi.theory import inputs


def eta(horizon: float, actions: int, steps: int) -> float:
    """Theorem 4.1: eta = sqrt(2 log A / (H^2 T)). With one action every policy is the same and any eta > 0 serves."""
    H, A, T = inputs.choices(horizon, actions, steps)
    return sqrt(2 * log(A) / (H**2 * T)) if A > 1 else sqrt(2 / (H**2 * T))


def eta_sharp(horizon: float, actions: int, steps: int, inner_steps: int = 1) -> float:
    """eta = sqrt(log A / (kappa M E K)), which minimises H (log A / (eta M) + eta kappa E K): see `generic.sharp`."""
    H, A, M = inputs.horizon(horizon), inputs.whole(actions, "actions"), inputs.whole(inner_steps, "inner_steps")
    return sqrt((log(A) if A > 1 else 1.0) / (kappa(H) * M * expected_epochs(H, steps)))


def eta_balanced(horizon: float, actions: int, steps: int, bonus: float, inner_steps: int = 1) -> float:
    """eta = max{eta_sharp, S / (H kappa E K)}, S the bound on E[sum min(2 CB, H)]: the largest whose part of the bound,
    H eta kappa E K, is no larger than that of the bonuses. The bound of `generic.sharp` is then at most doubled, and of
    the same order, whatever S is; and where S is large, as it is for counts, policies need not crawl."""
    H, S = inputs.horizon(horizon), inputs.nonnegative(bonus, "bonus")
    return max(eta_sharp(H, actions, steps, inner_steps), S / (H * kappa(H) * expected_epochs(H, steps)))


def inner_steps(horizon: float) -> int:
    """M of RAVI-UCB+ unless it is given: H rounded up, but for the rounding of 1 / (1 - gamma)."""
    return ceil(inputs.horizon(horizon) * (1 - 1e-12))


def kappa(horizon: float) -> float:
    """kappa = H^{5/2}/4 - H^2/8 <= H^3/8: eta kappa per epoch replaces the eta H^3/2 of Lemma 4.3.

    Its proof bounds <mu^{pi_{k+1}} - mu^{pi_k}, Q_{k+1}> - h/eta, h = H(pi_{k+1} || pi_k), by sqrt(2 H^3 h) - h/eta,
    and takes the maximum over all h >= 0. Two things are lost. Q - H/2 lies in [-H/2, H/2], so Pinsker gives half the
    root; and h <= eta^2 H^2/8 (the relative entropy of an exponential tilt: its derivative in eta is eta times a
    variance, at most eta H^2/4), which for H > 1 is short of the maximiser eta^2 H^3/8. At that end the value is
    (H/2) sqrt(2 H) (eta H / (2 sqrt 2)) - eta H^2/8 = eta kappa.
    """
    H = inputs.horizon(horizon)
    return H**2.5 / 4 - H**2 / 8


def expected_epochs(horizon: float, steps: int) -> float:
    """E K(T) = (1 - gamma) T + gamma: K(T) = 1 + Binomial(T - 1, 1 - gamma). The paper has (1 - gamma) T."""
    H, T = inputs.horizon(horizon), inputs.whole(steps, "steps")
    return T / H + (1 - 1 / H)


def expected_padding(horizon: float) -> float:
    """E[T+ - T] = gamma H: after step T the last epoch goes on for a geometric number of steps, 0 included."""
    return inputs.horizon(horizon) - 1


def epoch_factor(length: float) -> float:
    """C_k = f(L_k), f(x) = x / log(1 + x), of Lemma A.4: concave and increasing, with f(0) = 1."""
    x = inputs.positive(length, "length")
    return x / log1p(x)


def beta_tabular(horizon: float, states: int, actions: int, steps: int, delta: float) -> float:
    """Lemma 5.1: beta = 8 H sqrt(X log(X A T / delta))."""
    H, X, A, T, delta = _tabular(horizon, states, actions, steps, delta)
    return 8 * H * sqrt(X * log(X * A * T / delta))


def beta_tabular_l1(horizon: float, states: int, actions: int, steps: int, delta: float) -> float:
    """beta' = H (sqrt((X log 2 + l) / 2) + 1), l = log(X A T / delta): at most beta / 3.6, and valid in its place.

    The frequencies p_n of n visits have ||p_n - P||_1 <= sqrt(2 (X log 2 + l) / n) for all pairs and all n <= T at
    once, with probability 1 - delta (Weissman et al. 2003, and a union bound). Since P_hat = n/(n+1) p_n, every V in
    [0, H]^X has

        |(P - P_hat) V| <= n/(n+1) (H/2) ||p_n - P||_1 + H/(n+1) <= beta' / sqrt(n+1).

    This proves Lemma 5.1 as well: where l >= log 2, that is unless X = A = T = 1, beta' <= 2.202 H sqrt(X l).
    """
    H, X, A, T, delta = _tabular(horizon, states, actions, steps, delta)
    return H * (sqrt((X * log(2) + log(X * A * T / delta)) / 2) + 1)


def beta_mixture(
    horizon: float, dimension: int, steps: int, delta: float, *, parameter_bound: float, feature_bound: float,
    regularization: float = 1.0,
) -> float:  # fmt: skip
    """Lemma 5.4: beta = H sqrt(2 ((d/2) log(1 + T B^2 H^2 / (lambda d)) + log(1/delta))) + sqrt(lambda) B.

    The first B bounds ||phi_V|| / H, the second ||theta||; the paper takes one B for both.
    """
    radius, bias = _mixture(horizon, dimension, steps, delta, parameter_bound, feature_bound, regularization)
    return radius + bias


def beta_mixture_half(
    horizon: float, dimension: int, steps: int, delta: float, *, parameter_bound: float, feature_bound: float,
    regularization: float = 1.0,
) -> float:  # fmt: skip
    """Lemma 5.4 with H/2 in place of the first H: given the past, the noise V_i(y) - (P V_i)(x, a) lies in an interval
    of length at most H, so it is H/2-sub-Gaussian (Hoeffding); the paper takes it in [-H, H]."""
    radius, bias = _mixture(horizon, dimension, steps, delta, parameter_bound, feature_bound, regularization)
    return radius / 2 + bias


def beta_linear(
    horizon: float, states: int, dimension: int, steps: int, *, feature_bound: float, weight_bound: float,
    regularization: float = 1.0, delta: float | None = None,
) -> float:  # fmt: skip
    """beta_X: (H/2) sqrt(d log(1 + T b^2 / (lambda d)) + 2 log(1/delta) + 2 X log 2) + sqrt(lambda) W.

    Of linear MDPs with X states (`ravi.theory.mixture`); `feature_bound` is b >= ||phi||, `weight_bound` W >= ||m V||
    for V in [0, H]^X.
    """
    H, X, d = inputs.horizon(horizon), inputs.whole(states, "states"), inputs.whole(dimension, "dimension")
    T, b = inputs.whole(steps, "steps"), inputs.positive(feature_bound, "feature_bound")
    lam, delta = inputs.positive(regularization, "regularization"), inputs.delta(delta, T)
    spread = d * log(1 + T * b**2 / (lam * d)) + 2 * log(1 / delta) + 2 * X * log(2)
    return H / 2 * sqrt(spread) + sqrt(lam) * inputs.nonnegative(weight_bound, "weight_bound")


def reward_spread(states: int, actions: int, steps: int, delta: float) -> float:
    """s = b sqrt(n) = sqrt(ln(2 X A T / delta) / 2): Hoeffding, for X A pairs, T numbers of visits and both signs."""
    _, X, A, T = inputs.table(1, states, actions, steps)
    return sqrt(log(2 * X * A * T / inputs.delta(delta, T)) / 2)


def _tabular(horizon: float, states: int, actions: int, steps: int, delta: float) -> tuple[float, int, int, int, float]:
    H, X, A, T = inputs.table(horizon, states, actions, steps)
    return H, X, A, T, inputs.delta(delta, T)


def _mixture(
    horizon: float, dimension: int, steps: int, delta: float, B_theta: float, B_phi: float, regularization: float
) -> tuple[float, float]:
    """The two terms of Lemma 5.4: for the noise, and for theta itself."""
    H, d, T = inputs.horizon(horizon), inputs.whole(dimension, "dimension"), inputs.whole(steps, "steps")
    B_theta, B_phi = inputs.positive(B_theta, "parameter_bound"), inputs.positive(B_phi, "feature_bound")
    delta, lam = inputs.delta(delta, T), inputs.positive(regularization, "regularization")
    spread = d / 2 * log(1 + T * B_phi**2 * H**2 / (lam * d)) + log(1 / delta)
    return H * sqrt(2 * spread), sqrt(lam) * B_theta
