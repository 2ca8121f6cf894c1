"""SixArms: six arms that are the harder to enter the more they pay.

Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision processes, discounted;
rewards are in parts of the largest, 6,000. State 0 is the start. There action i - 1 leads to state i with probability
p_i, and otherwise stays, without reward. In state i the same action stays and pays r_i, every other one leads back to
state 0 without reward, except that in state 1 all actions but 4 stay and pay.

    i             1    2    3    4    5      6
    p_i           1    .15  .1   .05  .03    .01
    6,000 r_i     50   133  300  800  1,660  6,000

The table is a reconstruction of a figure of the paper from implementations that agree on it. A policy that takes action
i - 1 everywhere has V(i) = r_i H and the return

    rho_i = r_i gamma p_i / (1 - gamma + gamma p_i).

rho* is the largest of them, that of arm 6 for every gamma; for gamma = .95 it is .1597, and arm 5 has .1004.

>>> from ravi.mdps import six_arms
>>> six_arms().rewards[6].tolist()
[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
"""

import numpy as np

from ravi.core import MDP
from ravi.mdps.tables import table_of

ENTER = np.array([1.0, 0.15, 0.1, 0.05, 0.03, 0.01])  # p_i
PAY = np.array([50.0, 133, 300, 800, 1660, 6000]) / 6000  # r_i
LEAVE = 4  # the action that leads out of state 1


def six_arms(discount: float = 0.95) -> MDP:
    """Six arms that are the harder to enter the more they pay."""
    action = np.arange(6)
    stays = np.eye(6, dtype=bool)  # [i - 1, a]
    stays[0] = action != LEAVE
    arm, kept = np.nonzero(stays)
    other, left = np.nonzero(~stays)
    entries = [
        (0, action, action + 1, ENTER),
        (0, action[1:], 0, 1 - ENTER[1:]),
        (arm + 1, kept, arm + 1, 1.0),
        (other + 1, left, 0, 1.0),
    ]
    rewards = np.concatenate([np.zeros((1, 6)), stays * PAY[:, None]])
    return table_of(entries, rewards, discount, np.eye(7)[0], name="six-arms")
