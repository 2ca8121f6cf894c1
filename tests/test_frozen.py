"""Runs, resumed runs and streams keep their bits, those of `tests/frozen.json` (`tests.support.frozen` renews it)."""

import json

import pytest

from ravi import ids
from tests.support.frozen import FILE, digests, every, machine, texts, worlds

FROZEN = json.loads(FILE.read_text())


@pytest.mark.skipif(machine() != FROZEN["machine"], reason="another processor has other last digits")
@pytest.mark.parametrize("name", ids.LEARNERS)
def test_a_learner_keeps_its_bits(name):
    for text in texts(name):
        for world in worlds(text):
            assert digests(text, world) == FROZEN["digests"][f"{text} {world}"], (text, world)


def test_every_frozen_run_is_made():
    assert {f"{text} {world}" for text, world in every()} == FROZEN["digests"].keys()
