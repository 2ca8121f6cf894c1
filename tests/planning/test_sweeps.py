"""The compiled loops against arrays, chains against matrices, and modules that load when they are needed."""

import subprocess
import sys

import numpy as np
import pytest

from ravi.planning.bellman import expect_with
from ravi.planning.certificates import tables
from ravi.planning.chains import (
    apply,
    approach,
    bicgstab,
    eliminated_occupancy,
    eliminated_values,
    policy_chain,
    transpose,
)
from ravi.planning.methods import follow
from ravi.planning.sweeps import bellman_sweep, chain_sweep, policy_sweep
from tests.helpers import dense
from tests.planning.exact import cycle, random_mdp, random_policies


@pytest.fixture(params=[0, 1, 2])
def mdp(request):
    return random_mdp(request.param, 30, 3, 5, 0.95)


def matrix_of(chain):
    K = np.zeros((len(chain.source),) * 2)
    for x in range(len(K)):
        for j in range(chain.start[x], chain.start[x + 1]):
            K[x, chain.state[j]] += chain.weight[j]
    return K


def test_sweeps_are_their_array_form(mdp):
    X, A = mdp.rewards.shape
    W = np.random.default_rng(0).normal(size=X)
    policy = random_policies(0, mdp)
    array_form = mdp.rewards + 0.95 * expect_with(mdp.successors, mdp.transitions, W)
    Q, TW, greedy = np.empty((X, A)), np.empty(X), np.empty(X, np.int64)

    low, high, size = bellman_sweep(0, len(W), tables(mdp), W, Q, TW, greedy)
    np.testing.assert_allclose(Q, array_form, rtol=1e-13, atol=1e-13)
    assert (Q.max(-1) == TW).all()
    assert (greedy == Q.argmax(-1)).all()
    assert (low, high, size) == ((TW - W).min(), (TW - W).max(), np.abs(W).max())

    low, high, size = policy_sweep(tables(mdp), policy, W, Q, TW)
    np.testing.assert_allclose(Q, array_form, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(TW, (policy * Q).sum(-1), rtol=1e-13, atol=1e-13)
    assert (low, high, size) == ((TW - W).min(), (TW - W).max(), np.abs(W).max())

    chain = policy_chain(tables(mdp), policy)
    swept = np.empty(X)
    chain_sweep(0, len(W), chain, 0.95, 0.25, W, swept)
    np.testing.assert_allclose(swept, TW - 0.25, rtol=1e-12, atol=1e-13)


def test_a_chain_is_the_matrix_of_its_policy(mdp):
    policy = random_policies(1, mdp)
    chain = policy_chain(tables(mdp), policy)
    P = np.einsum("xa,xay->xy", policy, dense(mdp))
    np.testing.assert_allclose(matrix_of(chain), P, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(chain.source, (policy * mdp.rewards).sum(-1), rtol=1e-14)
    assert chain.state.size == (P > 0).sum()  # one entry per successor, however many actions lead there
    turned = transpose(chain, mdp.initial)
    np.testing.assert_allclose(matrix_of(turned), P.T, rtol=1e-14, atol=1e-16)
    assert (turned.source == mdp.initial).all()


def test_elimination_solves_both_equations(mdp):
    policy = random_policies(2, mdp)
    chain = policy_chain(tables(mdp), policy)
    M = np.eye(30) - 0.95 * matrix_of(chain)
    V = np.linalg.solve(M, chain.source)
    np.testing.assert_allclose(eliminated_values(tables(mdp), policy), V - V[0], rtol=0, atol=1e-12)
    nu = np.linalg.solve(M.T, mdp.initial)
    np.testing.assert_allclose(eliminated_occupancy(tables(mdp), policy, mdp.initial), nu, rtol=1e-12)


def test_bicgstab_solves_and_stops_where_it_breaks_down(mdp):
    chain = policy_chain(tables(mdp), random_policies(3, mdp))
    b = np.random.default_rng(0).normal(size=30)
    x, y = bicgstab(chain, 0.95, b, 1e-10, 200), np.empty(30)
    apply(chain, 0.95, x, y)
    np.testing.assert_allclose(y, b, rtol=0, atol=1e-9)
    assert (bicgstab(chain, 0.95, np.zeros(30), 1e-10, 200) == 0).all()
    assert np.isfinite(bicgstab(chain, 0.95, b, 0.0, 10_000)).all()


@pytest.mark.parametrize("gamma", [0.9, 0.9999])
def test_approach_reaches_its_goal_or_its_limit(gamma):
    mdp = cycle(300, gamma)
    chain = policy_chain(tables(mdp), np.ones((300, 1)))
    W, sweeps = approach(chain, gamma, np.zeros(300), 1e-10, 10**6)
    TW = np.empty(300)
    low, high = chain_sweep(0, len(W), chain, gamma, 0.0, W, TW)
    assert high - low <= 2e-10
    assert sweeps < 1000
    _, sweeps = approach(chain, gamma, np.zeros(300), 1e-10, 7)
    assert sweeps == 7


def test_a_chain_that_follows_a_policy_is_its_chain(mdp):
    X, A = mdp.rewards.shape
    arrays = tables(mdp)
    rng = np.random.default_rng(0)
    chain = policy_chain(arrays, np.full((X, A), 1 / A))._replace(
        start=np.arange(0, 5 * X + 1, 5).astype(np.uint32), state=np.empty(5 * X, np.uint32), weight=np.empty(5 * X)
    )
    followed = np.full(X, -1)
    for _ in range(3):
        greedy = rng.integers(A, size=X)
        follow(0, len(greedy), arrays, greedy, followed, chain)
        np.testing.assert_allclose(matrix_of(chain), dense(mdp)[np.arange(X), greedy], rtol=1e-15)
        assert (chain.source == mdp.rewards[np.arange(X), greedy]).all()


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_neither_numba_nor_scipy():
    heavy = "{'numba', 'scipy', 'matplotlib'}"
    assert python(f"import ravi.planning, sys; print({heavy} & set(sys.modules))") == "set()"
    assert (
        python("import ravi.planning as p; print(sorted(p.__all__) == [n for n in dir(p) if n in p.__all__])") == "True"
    )
    assert (
        python("from ravi.planning.solver import solve as s; from ravi.planning import solve; print(s is solve)")
        == "True"
    )
    solved = "from ravi.planning import solve; from ravi.mdps import trap; solve(trap(0.9))"
    assert python(f"import sys; {solved}; print('scipy.optimize' in sys.modules)") == "False"


def test_an_unknown_name_is_an_attribute_error():
    import ravi.planning

    with pytest.raises(AttributeError, match="solver_of"):
        ravi.planning.solver_of  # noqa: B018


def test_a_second_process_finds_every_loop_compiled():
    code = """
import numpy as np
from ravi.mdps import garnet
from ravi.planning import evaluate, occupancy, solve
from ravi.planning import certificates, chains, evaluation, methods, occupancies, sweeps
mdp = garnet(200, 2, 2, 0, 0.9)
for method in ("modified_policy_iteration", "policy_iteration"):
    solve(mdp, method)
evaluate(mdp, np.full((200, 2), 0.5))
occupancy(mdp, np.full((200, 2), 0.5))
modules = (certificates, chains, evaluation, methods, occupancies, sweeps)
loops = {f for m in modules for f in vars(m).values() if hasattr(f, "py_func")}
print(sum(sum(f.stats.cache_misses.values()) for f in loops))
"""
    python(code)
    assert python(code) == "0"
