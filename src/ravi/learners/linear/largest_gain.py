"""The largest gain that a regression allows: FOPO's maximum of J over (w, b, J), for small problems.

    w = m_hat v + b,   v(x) = max_a {r(x, a) - J + gamma <phi(x, a), w>},   <nu_0, v> = 0,
    ||b||_Lambda <= beta,   J <= 1,   ||w|| <= a bound.

Given a policy the equations are linear. With K = <phi, m_hat> and y = (I - gamma K_pi)^{-T} nu_0 / <that, 1>,

    J_pi(b) = <y, r_pi> + gamma <phi_pi^T y, b>,   at most   F(pi) = <y, r_pi> + beta gamma ||phi_pi^T y||_{Lambda^-1},

attained at b = beta Lambda^{-1} g / ||g||_{Lambda^-1}, g = phi_pi^T y.

Where K is a kernel, perhaps of mass below one, the maximum is known. That is so when features are one coordinate per
pair, or per group of pairs. What mass is missing counts as v = 0 = <nu_0, v>, as if it were reset; so for every b there
is one solution, and its J is max_pi J_pi(b). Hence the largest J is max_pi F(pi), over the deterministic policies: y is
a stationary distribution, with one coordinate per pair ||g||^2 = sum_x y(x)^2 / Lambda(x, pi(x)), and F is convex in
it. The ball couples the pairs: a bonus of beta / sqrt(Lambda) for each pair, as in optimistic value iteration, solves
the larger problem |b| <= beta / sqrt(Lambda) entry by entry, whose J is larger too. Up to 4096 policies are
compared one by one, and the J found is the maximum. Beyond, and where K is no kernel, the search is a heuristic:
from several policies, b <- the best b for pi, pi <- a solution for b by policy iteration, and again, while J rises. For
a kernel J cannot fall on the way. Where J would exceed 1, or ||w|| its bound, b is shortened until it does not: J = 1
is a maximum anyway, and the one that the published beta gives until very much has been seen; if it is the norm that
binds, the maximum is not certified. Every J that is reported solves the equations to rounding, which is checked.
"""

import numpy as np

from ravi._jit.functions import compiled

COMPARED = 4096  # policies, at most, that are compared one by one
ROUNDS, SWEEPS, HALVINGS = 20, 50, 40  # of an ascent, of policy iteration, of a search for the length of b
TIE, EXACT = 1e-11, 1e-8  # what is no improvement; what is no error, both relative


@compiled
def largest_gain(r, gamma, nu0, phi, m_hat, inverse, beta, bound):  # type: ignore[no-untyped-def]
    """Whether anything feasible was found, whether J is certified to be the maximum, w, b and J; of one seed."""
    X, A, d = phi.shape
    K = np.zeros((X, A, X))
    for x in range(X):
        for a in range(A):
            for j in range(d):
                f = phi[x, a, j]
                if f != 0.0:
                    for y in range(X):
                        K[x, a, y] += f * m_hat[j, y]
    kernel = True
    for x in range(X):
        for a in range(A):
            mass = 0.0
            for y in range(X):
                kernel = kernel and K[x, a, y] >= 0.0
                mass += K[x, a, y]
            kernel = kernel and mass <= 1.0 + 1e-12
    policies = 1
    for _ in range(X):
        policies = min(policies * A, COMPARED + 1)
    compare = kernel and policies <= COMPARED

    found, whole, best_J = False, False, -np.inf
    best_w, best_b = np.zeros(d), np.zeros(d)
    policy = np.zeros(X, np.int64)
    starts = 1 if compare else A + 3
    for start in range(starts):
        if best_J >= 1.0 - EXACT:
            break
        if compare:
            _best_policy(r, gamma, nu0, phi, K, inverse, beta, policies, policy)
        elif start < A:
            policy[:] = start
        else:  # greedy for r, for r and the width, and what solves b = 0
            for x in range(X):
                top = -np.inf
                for a in range(A):
                    value = r[x, a]
                    if start == A + 1:
                        value += beta * np.sqrt(max(_square(inverse, phi[x, a]), 0.0))
                    if value > top:
                        policy[x], top = a, value
            if start == A + 2:
                _solution(r, gamma, nu0, phi, K, m_hat, np.zeros(d), policy)
        last = -np.inf
        for _ in range(ROUNDS):
            ok, b = _best_b(gamma, nu0, phi, K, inverse, beta, policy)
            if not ok:
                break
            free, ok, w, used, J = _shortened(r, gamma, nu0, phi, K, m_hat, b, bound, policy)
            if not ok:
                break
            if best_J < J:
                found, whole, best_J = True, free, J
                best_w[:], best_b[:] = w, used
            if last + TIE >= J or J >= 1.0 - EXACT:
                break
            last = J
    certified = found and ((compare and whole) or best_J >= 1.0 - EXACT)
    return found, certified, best_w, best_b, best_J


@compiled
def _best_policy(r, gamma, nu0, phi, K, inverse, beta, policies, best):  # type: ignore[no-untyped-def]
    """The first policy of the largest F, into `best`."""
    X, A, d = phi.shape
    policy, top = np.zeros(X, np.int64), -np.inf
    g = np.empty(d)
    for index in range(policies):
        rest = index
        for x in range(X - 1, -1, -1):
            policy[x] = rest % A
            rest //= A
        ok, y = _stationary(gamma, nu0, K, policy)
        if not ok:
            continue
        F = 0.0
        g[:] = 0.0
        for x in range(X):
            F += y[x] * r[x, policy[x]]
            for j in range(d):
                g[j] += y[x] * phi[x, policy[x], j]
        F += beta * gamma * np.sqrt(max(_square(inverse, g), 0.0))
        if top < F:
            best[:], top = policy, F


@compiled
def _best_b(gamma, nu0, phi, K, inverse, beta, policy):  # type: ignore[no-untyped-def]
    """Whether there is one, and b = beta Lambda^{-1} g / ||g||, g = phi_pi^T y."""
    X, _, d = phi.shape
    b, g = np.zeros(d), np.zeros(d)
    ok, y = _stationary(gamma, nu0, K, policy)
    if ok:
        for x in range(X):
            for j in range(d):
                g[j] += y[x] * phi[x, policy[x], j]
        size = np.sqrt(max(_square(inverse, g), 0.0))
        if size > 0.0:
            for j in range(d):
                for c in range(d):
                    b[j] += beta * inverse[j, c] * g[c] / size
    return ok, b


@compiled
def _shortened(r, gamma, nu0, phi, K, m_hat, b, bound, policy):  # type: ignore[no-untyped-def]
    """The solution for the longest multiple of b, at most b itself, that is found to be feasible.

    Whether that is b, whether there is one, w, the multiple and J; `policy` becomes the solution's.
    """
    start = policy.copy()
    ok, w, J = _solution(r, gamma, nu0, phi, K, m_hat, b, policy)
    if ok and J <= 1.0 and _norm(w) <= bound:
        return True, True, w, b, J
    best, any_, best_w, best_J = policy.copy(), False, w.copy(), J
    low, high, kept = 0.0, 1.0, 0.0
    for half in range(HALVINGS):
        share = 0.0 if half == 0 else (low + high) / 2
        policy[:] = start
        ok, w, J = _solution(r, gamma, nu0, phi, K, m_hat, share * b, policy)
        if ok and J <= 1.0 and _norm(w) <= bound:
            low = share
            if not any_ or best_J <= J:
                any_, best_J, kept = True, J, share
                best[:], best_w[:] = policy, w
            if J >= 1.0 - EXACT:
                break
        elif half == 0:
            break
        else:
            high = share
    policy[:] = best
    return False, any_, best_w, kept * b, best_J


@compiled
def _solution(r, gamma, nu0, phi, K, m_hat, b, policy):  # type: ignore[no-untyped-def]
    """Policy iteration for v = max_a {r - J + gamma (K v + <phi, b>)}, <nu_0, v> = 0, from `policy`, in place.

    Whether it ended in a solution, checked; w = m_hat v + b, and J.
    """
    X, A, d = phi.shape
    bonus = np.zeros((X, A))
    for x in range(X):
        for a in range(A):
            for j in range(d):
                bonus[x, a] += gamma * phi[x, a, j] * b[j]
    w, v, J = np.zeros(d), np.zeros(X), 0.0
    matrix, sides = np.empty((X, X)), np.empty((X, 2))
    settled = False
    for _ in range(SWEEPS):
        for x in range(X):
            for y in range(X):
                matrix[x, y] = (1.0 if x == y else 0.0) - gamma * K[x, policy[x], y]
            sides[x, 0], sides[x, 1] = r[x, policy[x]] + bonus[x, policy[x]], 1.0
        if not _eliminate(matrix, sides):
            return False, w, J
        top, bottom = 0.0, 0.0
        for x in range(X):
            top += nu0[x] * sides[x, 0]
            bottom += nu0[x] * sides[x, 1]
        if abs(bottom) < 1e-12:
            return False, w, J
        J = top / bottom
        for x in range(X):
            v[x] = sides[x, 0] - J * sides[x, 1]
        settled = True
        for x in range(X):
            best, a_best = -np.inf, 0
            now = 0.0
            for a in range(A):
                q = r[x, a] + bonus[x, a] - J
                for y in range(X):
                    q += gamma * K[x, a, y] * v[y]
                if q > best:
                    best, a_best = q, a
                if a == policy[x]:
                    now = q
            if best > now + TIE * (1.0 + abs(now)):
                policy[x] = a_best
                settled = False
        if settled:
            break
    if not settled:
        return False, w, J
    for j in range(d):
        w[j] = b[j]
        for y in range(X):
            w[j] += m_hat[j, y] * v[y]
    mean, error, size = 0.0, 0.0, 1.0
    for x in range(X):  # v = max_a {r - J + gamma <phi, w>}?
        best = -np.inf
        for a in range(A):
            q = r[x, a] - J
            for j in range(d):
                q += gamma * phi[x, a, j] * w[j]
            best = max(best, q)
        mean += nu0[x] * v[x]
        error, size = max(error, abs(best - v[x])), max(size, abs(v[x]))
    return error <= EXACT * size and abs(mean) <= EXACT * size, w, J


@compiled
def _stationary(gamma, nu0, K, policy):  # type: ignore[no-untyped-def]
    """Whether there is one, and y = (I - gamma K_pi)^{-T} nu_0, with sum 1."""
    X = nu0.shape[0]
    matrix, side = np.empty((X, X)), np.empty((X, 1))
    for x in range(X):
        for z in range(X):
            matrix[x, z] = (1.0 if x == z else 0.0) - gamma * K[z, policy[z], x]
        side[x, 0] = nu0[x]
    ok = _eliminate(matrix, side)
    y = side[:, 0].copy()
    total = 0.0
    for x in range(X):
        total += y[x]
    if not ok or abs(total) < 1e-12:
        return False, y
    for x in range(X):
        y[x] /= total
    return True, y


@compiled
def _eliminate(M, B):  # type: ignore[no-untyped-def]
    """B <- M^{-1} B, M overwritten; whether M is regular to working precision."""
    n, k = B.shape
    for c in range(n):
        pivot = c
        for j in range(c + 1, n):
            if abs(M[j, c]) > abs(M[pivot, c]):
                pivot = j
        if not abs(M[pivot, c]) > 1e-12:
            return False
        if pivot != c:
            for e in range(n):
                M[c, e], M[pivot, e] = M[pivot, e], M[c, e]
            for e in range(k):
                B[c, e], B[pivot, e] = B[pivot, e], B[c, e]
        for j in range(c + 1, n):
            f = M[j, c] / M[c, c]
            if f != 0.0:
                for e in range(c + 1, n):
                    M[j, e] -= f * M[c, e]
                for e in range(k):
                    B[j, e] -= f * B[c, e]
    for c in range(n - 1, -1, -1):
        for e in range(k):
            for j in range(c + 1, n):
                B[c, e] -= M[c, j] * B[j, e]
            B[c, e] /= M[c, c]
    return True


@compiled
def _square(inverse, g):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(g.shape[0]):
        if g[j] != 0.0:
            for c in range(g.shape[0]):
                total += g[j] * inverse[j, c] * g[c]
    return total


@compiled
def _norm(w):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(w.shape[0]):
        total += w[j] * w[j]
    return np.sqrt(total)
