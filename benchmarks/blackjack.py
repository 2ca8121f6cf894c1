"""What is Blackjack-v1 of Gymnasium, exactly? Its table, from a deck without end.

A card is 1 (the ace), 2, ..., 9 with probability 1/13 each and 10 with 4/13. The dealer, one of whose two cards is
seen, draws below 17. A state is the number of an observation (hand, dealer's card, usable ace); then comes the end;
then the naturals, an ace and a ten, by the dealer's card. A natural is observed as any 21 with a usable ace, and where
sab=True it wins unless the dealer has one too. The best policy does not need what the observation misses: it sticks.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import product

import numpy as np

import ravi
from ravi.live.spaces import space_of

CARDS = {**dict.fromkeys(range(1, 10), 1 / 13), 10: 4 / 13}
STICK, HIT = 0, 1


def blackjack(env, discount):
    """The table of Blackjack-v1, natural=False, and the number of the observation of each of its states."""
    space = space_of(env.observation_space)
    end, number = space.size, space.number
    X = end + 1 + len(CARDS)
    P, r, initial = np.zeros((X, 2, X)), np.zeros((X, 2)), np.zeros(X)
    P[:, :, end] = 1  # also of observations that there are not
    hands = [(hard, ace) for hard in range(2, 22) for ace in (False, True) if not ace or hard + 10 <= 21]
    for dealer, chance in CARDS.items():

        def observed(hard, ace, dealer=dealer):
            """The number of a hand whose aces count 1, `ace` saying whether one of them is usable."""
            return number((hard + 10 * ace, dealer, int(ace)))

        for hard, ace in hands:
            x = observed(hard, ace)
            r[x, STICK] = stuck(hard + 10 * ace, dealer)
            P[x, HIT], r[x, HIT] = hit(hard, ace, observed, end, X)
        natural = end + dealer
        P[natural], r[natural] = P[observed(11, True)], r[observed(11, True)]
        if env.unwrapped.sab:
            r[natural, STICK] = 1 - {1: CARDS[10], 10: CARDS[1]}.get(dealer, 0.0)
        for (one, p), (two, q) in product(CARDS.items(), CARDS.items()):
            ace = 1 in (one, two)
            start = natural if ace and one + two == 11 else observed(one + two, ace)
            initial[start] += chance * p * q
    made = ravi.MDP.from_dense(P, (r + 1) / 2, discount, initial)
    sees = np.concatenate([np.arange(end + 1), [number((21, dealer, 1)) for dealer in CARDS]])
    return dataclasses.replace(made, units=(-1, 1)), sees


def stuck(hand, dealer):
    """What sticking earns: 1, 0 or -1, in the mean."""
    return sum(q * ((hand > end) - (hand < end)) for end, q in dealt(dealer, dealer == 1).items())


def hit(hard, ace, observed, end, X):
    """Where one more card leads, (X,), and what it earns."""
    row, earned = np.zeros(X), 0.0
    for card, p in CARDS.items():
        total = hard + card
        usable = (ace or card == 1) and total + 10 <= 21
        row[end if total > 21 else observed(total, usable)] += p
        earned -= p * (total > 21)
    return row, earned


@cache
def dealt(total, ace):
    """What a dealer with these cards, aces counting 1, comes to, with which probability; 0 is bust."""
    best = total + 10 * (ace and total + 10 <= 21)
    if best >= 17:
        return {best if best <= 21 else 0: 1.0}
    found = {}
    for card, p in CARDS.items():
        for end, q in dealt(total + card, ace or card == 1).items():
            found[end] = found.get(end, 0.0) + p * q
    return found
