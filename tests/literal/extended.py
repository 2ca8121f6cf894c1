"""UCRL2 and its kin, line by line, in scalars and lists: slow, plain, and independent of the library.

The average-reward algorithms on the reset chain gamma P + (1 - gamma) 1 nu_0^T: kernels are dense, u is never shifted
within a phase, and each set has its own maximum, as printed. Two departures from the papers, both the library's: a
phase starts from the u of the last one, and rewards are known. A learner that is told where a pair may lead has sets of
rows on those states alone, as if there were no others. Random numbers as in `tests.literal.algorithms`.
"""

from math import e, exp, inf, log, sqrt

from tests.literal.algorithms import draw
from tests.literal.philox import uniform


def inner_l1(p, d, u):
    """Jaksch, Ortner, Auer (2010), Figure 2: the best state gains d / 2, the worst lose until the sum is one."""
    states = sorted(range(len(u)), key=lambda x: -u[x])
    q = list(p)
    q[states[0]] = min(1.0, p[states[0]] + d / 2)
    last = len(u) - 1
    while sum(q) > 1 + 1e-15 and last > 0:
        q[states[last]] = max(0.0, 1 - (sum(q) - q[states[last]]))
        last -= 1
    return q


def inner_box(p, beta, u):
    """Every state its least; the rest of the mass to the best states, each up to its most."""
    q = [max(0.0, p[x] - beta[x]) for x in range(len(u))]
    for x in sorted(range(len(u)), key=lambda x: -u[x]):
        rest = 1 - sum(q)
        q[x] = min(q[x] + rest, 1.0, p[x] + beta[x])
    return q


def inner_kl(p, d, u):
    """Filippi, Cappe, Garivier (2010), MaxKL, with a bisection for the Newton step."""
    seen = [x for x in range(len(u)) if p[x] > 0]
    top = max(u)
    if all(u[x] == top for x in seen):
        return list(p)

    def f(above):  # nu = top + above
        gap = [above + (top - v) for v in u]
        return sum(p[x] * log(gap[x]) for x in seen) + log(sum(p[x] / gap[x] for x in seen))

    def tilted(above, rest):
        weights = [p[x] / (above + (top - u[x])) if p[x] > 0 else 0.0 for x in range(len(u))]
        return [(1 - rest) * w / sum(weights) for w in weights]

    unseen = [x for x in range(len(u)) if p[x] == 0 and u[x] == top]
    if unseen and all(u[x] < top for x in seen) and f(0.0) < d:
        rest = 1 - exp(f(0.0) - d)
        q = tilted(0.0, rest)
        q[unseen[0]] += rest
        return q
    span = top - min(u[x] for x in seen)
    low, high = -300.0, 20.0
    while high - low > 1e-13:
        z = (low + high) / 2
        if f(span * exp(z)) > d:
            low = z
        else:
            high = z
    return tilted(span * exp(high), 0.0)


def ucrl2_set(X, A, T, delta, scale):
    def inner(p, n, t, u):
        return inner_l1(p, scale * sqrt(14 * X * log(2 * A * t / delta) / max(1, n)), u)

    return inner


def ucrl2b_set(X, A, T, delta, scale):
    def inner(p, n, t, u):
        l, m = log(6 * X * A * max(1, n) / delta), max(1, n)
        return inner_box(p, [scale * (2 * sqrt(q * (1 - q) * l / m) + 6 * l / m) for q in p], u)

    return inner


def kl_ucrl_set(X, A, T, delta, scale, m=None):
    m = m or X  # outcomes of a row
    B = log(2 * e * m * X * A * log(T) / delta)
    C = m * (B + log(B + 1 / log(T)) * (1 + 1 / (B + 1 / log(T))))

    def inner(p, n, t, u):
        return inner_kl(p, scale * C / max(1, n), u)

    return inner


def learn(P, r, gamma, nu0, T, key, inner, c=inf, rows=None, mixing=1.0):
    """Yields (t_k, u, low and high of the gain, pi, the nearest two actions come, the plays of the phase).

    rows[x][a]: where (x, a) may lead, for a learner that is told so. mixing: of L u with u, against periods."""
    X, A = len(r), len(r[0])
    states, actions = range(X), range(A)
    # Initialise: t = 1, no plays
    t = 1
    plays = [[0] * A for _ in states]
    moves = [[[0] * X for _ in actions] for _ in states]
    u = [0.0] * X
    x_t = draw(nu0, uniform(key, 0, 3))
    # for phases k = 1, 2, ...
    while t <= T:
        # t_k = t; n_k = plays before it
        t_k, before = t, [list(row) for row in plays]

        def most(x, a, u, t_k=t_k, before=before, sign=1):
            """max (or, with sign -1, min) of <p, u> over the plausible p."""
            n = before[x][a]
            row = states if rows is None else rows[x][a]
            value = [sign * u[y] for y in row]
            if n == 0:  # nothing is known
                return sign * max(value)
            q = inner([moves[x][a][y] / n for y in row], n, t_k, value)
            assert abs(sum(q) - 1) < 1e-9
            assert min(q) > -1e-12
            return sign * sum(w * v for w, v in zip(q, value, strict=True))

        # extended value iteration on the reset chain, until span(u' - u) <= 1 / sqrt(t_k)
        while True:
            resets = (1 - gamma) * sum(nu0[y] * u[y] for y in states)
            Q = [[r[x][a] + gamma * most(x, a, u) + resets for a in actions] for x in states]
            L = [max(row) for row in Q]
            ceiling = min(L) + c
            new = [mixing * min(value, ceiling) + (1 - mixing) * u[x] for x, value in enumerate(L)]
            delta = [new[x] - u[x] for x in states]
            last, u = u, new
            if max(delta) - min(delta) <= 1 / sqrt(t_k):
                break
        # pi_k greedy; where L u was cut, mixed with the action that is worth least when it earns nothing
        pi, gap = [], inf
        for x in states:
            best = max(Q[x])
            gap = min([gap, *[best - q for q in Q[x] if best - q > 0]])
            row = [0.0] * A
            row[Q[x].index(best)] = 1.0
            if best > ceiling:
                idle = [gamma * most(x, a, last, sign=-1) + resets for a in actions]
                a_least = idle.index(min(idle))
                w = (ceiling - min(idle)) / (best - min(idle))
                assert 0 <= w < 1
                row[Q[x].index(best)] = w
                row[a_least] += 1 - w
            pi.append(row)
        triples = []
        # while v_k(x_t, a_t) < max(1, n_k(x_t, a_t)): play
        while True:
            a_t = draw(pi[x_t], uniform(key, t, 1))
            y_t = draw(P[x_t][a_t], uniform(key, t, 2))
            triples.append((x_t, a_t, y_t))
            plays[x_t][a_t] += 1
            moves[x_t][a_t][y_t] += 1
            full = plays[x_t][a_t] - before[x_t][a_t] >= max(1, before[x_t][a_t])
            x_t = draw(nu0, uniform(key, t, 3)) if uniform(key, t, 0) < 1 - gamma else y_t
            t += 1
            if full or t > T:
                break
        u = [v - min(u) for v in u]
        yield t_k, u, (min(delta) / mixing, max(delta) / mixing), pi, gap, triples
