"""The operators of Section 2 and the backup: against dense products."""

import numpy as np

from ravi.mdps import garnet
from ravi.planning.bellman import backup, expect, expect_with, extend, flow, marginal, truncate
from ravi.planning.mirror import mirror_step
from tests.helpers import dense

MDP = garnet(7, 3, 2, 0, 0.9)
RNG = np.random.default_rng(0)


def test_expect_and_flow_are_dense_products_for_one_and_for_a_batch():
    P = dense(MDP)
    f, g = RNG.normal(size=(4, 7)), RNG.normal(size=(4, 7, 3))
    np.testing.assert_allclose(expect(MDP, f), np.einsum("xay,ny->nxa", P, f), atol=1e-14)
    np.testing.assert_allclose(expect(MDP, f[0]), P @ f[0], atol=1e-14)
    np.testing.assert_allclose(flow(MDP, g), np.einsum("xay,nxa->ny", P, g), atol=1e-14)
    np.testing.assert_allclose(flow(MDP, g[0]), np.einsum("xay,xa->y", P, g[0]), atol=1e-14)
    np.testing.assert_allclose(expect_with(MDP.successors, MDP.transitions, f), expect(MDP, f), atol=1e-14)
    assert (extend(f, 3) == f[..., None]).all()
    np.testing.assert_allclose(marginal(g), g.sum(-1))


def test_the_backup_is_cut_at_both_ends():
    """r + CB + gamma PV below 0 becomes 0, above H becomes H: a regression's PV can be anything."""
    r, H = np.array([[0.0, 1.0, 0.5]]), 10.0
    PV, CB = np.array([[[-50.0, 100.0, 2.0]]]), np.array([[[1.0, 0.0, 0.25]]])
    Q = backup(r, CB, 0.9, PV, H)
    assert Q is PV
    np.testing.assert_allclose(Q, [[[0.0, 10.0, 2.55]]], rtol=1e-15)
    assert truncate(np.array([-1.0, 0.0, 5.0, 11.0]), H).tolist() == [0.0, 0.0, 5.0, 10.0]


def test_a_policy_stays_normalised_over_many_steps():
    """After 30,000 steps the rows sum to one, and log pi is the logarithm of pi, to a few units of rounding."""
    pi = np.full((1, 3, 4), 0.25)
    log_pi = np.log(pi)
    for _ in range(30_000):
        Q = RNG.uniform(0, 10, (1, 3, 4))
        _, log_pi, pi = mirror_step(log_pi, pi, Q, 0.01, in_place=True)
    np.testing.assert_allclose(pi.sum(-1), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.exp(log_pi).sum(-1), 1, rtol=0, atol=2e-15)
    np.testing.assert_allclose(np.exp(log_pi), pi, rtol=1e-13)
