"""How does a run continue? On a CPU epoch by epoch, until one function of each whole seed pays; on a GPU by that."""

from collections.abc import Callable

import numpy as np

from ravi import device as devices
from ravi import flights, tree
from ravi.epochs import Batch, Leg, stretch_of, together
from ravi.measures.stream import padding
from ravi.played import refuse


def here(leg: Leg, batch: Batch) -> Batch:
    """Go on from `batch`, which is written to, on a CPU."""
    every = leg.each or leg.pause is not None
    change = None if every else flights.Change(leg.learner, leg.measures, batch.walkers.time, leg.T)
    batch, alone = together(leg, batch, change)
    if not alone:
        return batch
    batch = tree.copy(batch)  # learners may give out what is their own
    length = min(leg.T, stretch_of(len(batch.walkers.time), leg.H, True))
    flight = flights.Here(leg.learner, leg.world, leg.T, leg.pad, leg.measures, batch, length)
    flights.advance(flight, batch.walkers.time, leg.T, _looking(leg, batch), flights.OFTEN, asked=True)
    return _landed(leg, batch)


def there(leg: Leg, batch: Batch) -> Batch:
    """The same on a GPU."""
    learner, T = leg.learner, leg.T
    assert learner.seedwise is not None
    length = stretch_of(len(batch.walkers.time), leg.H, learner.seedwise.reset)
    if learner.seedwise.together:
        length = padding(leg.H)  # an epoch comes as a whole: one is longer with probability below e^-50
    looked = _looking(leg, batch)
    devices.advance(learner, leg.world, T, leg.pad, leg.measures, batch, min(T, length), looked)
    return _landed(leg, batch)


def _looking(leg: Leg, batch: Batch) -> Callable[[], bool]:
    """The function that says whether to stop, called between epochs of seeds that run by themselves."""

    def looked() -> bool:
        if leg.tell is not None:
            leg.tell(batch)
        return leg.stopped() or (leg.pause is not None and int(batch.walkers.time.min()) >= leg.pause)

    return looked


def _landed(leg: Leg, batch: Batch) -> Batch:
    """What seeds that went by themselves ended with, looked at once."""
    refuse(leg.learner.name, batch.state.policy, batch.walkers.key, np.zeros(len(batch.walkers.key), np.bool_))
    if leg.tell is not None:
        leg.tell(batch)
    return batch
