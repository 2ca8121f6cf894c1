"""The generator: known answers, agreement with NumPy's and with a plain one, uniformity."""

import numpy as np
import pytest

from ravi.random import block, earned, philox, uniform, uniforms
from ravi.validation import LAWS
from tests.literal import philox as plain

ONES = 2**64 - 1
# Published with the generator's reference implementation (Random123, philox4x64, 10 rounds): counter, key, words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)),
    ((ONES,) * 4, (ONES,) * 2, (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        (0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_gives_the_published_answers(counter, key, words):
    ours = philox(*(np.uint64(w) for w in (*counter, *key)))
    assert tuple(int(w) for w in ours) == words
    assert tuple(plain.philox(counter, key)) == words


def test_philox_is_numpys():
    theirs = np.random.Philox(key=987654321, counter=41).random_raw(4)  # NumPy counts up before a block
    ours = philox(np.uint64(42), *(np.uint64(0),) * 3, np.uint64(987654321), np.uint64(0))
    assert tuple(theirs.tolist()) == tuple(int(w) for w in ours)


@pytest.mark.parametrize("key", [0, 1, 2**63 - 1])
@pytest.mark.parametrize("t", [0, 1, 10**9])
def test_uniform_is_a_pure_function_of_key_step_and_index(key, t):
    for i in range(9):
        assert uniform(key, t, i) == plain.uniform(key, t, i)
        assert uniform(key, t, i) == block(key, t, i // 4)[i % 4]


def test_numbers_are_uniform_and_uncorrelated_between_lanes_steps_and_keys():
    """Each statistic is within 5 standard deviations: a false alarm in about 1 of 50,000 sets of keys (fixed here)."""
    n = 20_000
    u = np.array([block(7, t, 0) for t in range(n)])
    v = np.array([block(8, t, 0) for t in range(n)])
    assert (np.abs(u.mean(0) - 0.5) < 5 / np.sqrt(12 * n)).all()
    pairs = [(u[:, i], u[:, j]) for i in range(4) for j in range(i)]
    pairs += [(u[1:, i], u[:-1, i]) for i in range(4)] + [(u[:, i], v[:, i]) for i in range(4)]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(n)


def test_numbers_of_many_keys_are_those_of_each():
    few = np.array([0, 1, 7, 2**63, ONES], np.uint64)
    for keys in (few, np.concatenate([few, np.arange(40, dtype=np.uint64)])):
        for t, i in ((0, 0), (0, 3), (17, 5), (2**40, 2)):
            assert uniforms(keys, t, i).tolist() == [uniform(key, t, i) for key in keys]


@pytest.mark.parametrize("r", [0.02, 0.5, 0.9])
@pytest.mark.parametrize(("law", "share"), [("deterministic", 0.0), ("bernoulli", 1.0), ("beta", 1 / 3)])
def test_a_law_of_rewards_has_its_mean_and_variance(law, share, r):
    """Off by 5 standard errors, of the variance at most, with probability below 1e-5 under these keys."""
    n = 10_000
    drawn = np.array([earned(LAWS[law], 3, t, r) for t in range(1, n + 1)])
    assert abs(drawn.mean() - r) <= 5 * np.sqrt(share * r * (1 - r) / n) + 1e-12
    spread = np.sqrt(((drawn - r) ** 4).mean() / n)  # of the squares
    assert abs(((drawn - r) ** 2).mean() - share * r * (1 - r)) <= 5 * spread + 1e-12
    assert ((drawn >= 0) & (drawn <= 1)).all()


def test_a_beta_variate_of_mean_one_half_is_uniform():
    drawn = np.sort([earned(LAWS["beta"], 8, t, 0.5) for t in range(1, 4001)])
    off = np.abs(drawn - (np.arange(4000) + 0.5) / 4000).max()
    assert off <= 1.95 / np.sqrt(4000)  # Kolmogorov and Smirnov: exceeded with probability 1e-3


def test_rewards_that_are_certain_are_not_drawn():
    assert [earned(law, 1, 1, r) for law in LAWS.values() for r in (0.0, 1.0)] == [0.0, 1.0] * len(LAWS)
