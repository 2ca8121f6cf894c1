"""An agent on a stream: what `ravi.engine` does, turned inside out."""

import numpy as np
import pytest

from ravi import ids, tree
from ravi.engine import run
from ravi.live.agent import Agent, StreamError, agent
from tests.test_contract import LEARNERS, MDPS

T = 400


def fed(learner, world, made, upto=T, live=None):
    """An agent that was fed the stream of a run."""
    x, a, y, reset = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    live = live or agent(learner, world, T, seed=made.seeds[0])
    for t in range(live.plays, upto):
        assert live.act(x[t]) == a[t], t
        assert live.observe(x[t], a[t], y[t], world.rewards[x[t], a[t]]) == reset[t], t
    if upto == T:
        live.end(int(made.batch.walkers.state[0]))
    return live


def same(live, made):
    wanted, found = dict(tree.leaves(made.batch.state)), dict(tree.leaves(live.state))
    for name, leaf in wanted.items():
        assert leaf.tobytes() == found[name].tobytes(), name


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_fed_the_stream_of_a_simulated_run_a_learner_comes_to_the_same_state(learner, mdp):
    world = ids.mdp(mdp)
    made = run(learner, world, T, [3], record=["stream"])
    live = fed(learner, world if ids.LEARNERS[learner.split(",")[0]].oracle else world.problem, made)
    same(live, made)
    assert (live.output == made.results["output_policy"][0]).all()
