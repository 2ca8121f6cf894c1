"""Runs, resumed runs and streams keep their bits, those of `tests/frozen.json` (`tests.support.frozen` renews it)."""

import pytest

from ravi import ids
from tests.support.frozen import digests, every, frozen, machine, texts, worlds

FROZEN = frozen()
pytestmark = pytest.mark.skipif(FROZEN is None, reason=f"no digests of this processor, {machine()}")


@pytest.mark.parametrize("name", ids.LEARNERS)
def test_a_learner_keeps_its_bits(name):
    for text in texts(name):
        for world in worlds(text):
            assert digests(text, world) == FROZEN[f"{text} {world}"], (text, world)


def test_every_frozen_run_is_made():
    assert {f"{text} {world}" for text, world in every()} == FROZEN.keys()
