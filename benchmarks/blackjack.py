"""The exact table of Gymnasium's Blackjack-v1, from a deck without end; and what uniform play shows of it.

A card is 1 (the ace), 2, ..., 9 with probability 1/13 each and 10 with 4/13. The dealer, one of whose two cards is
seen, draws below 17. A state is the number of an observation (hand, dealer's card, usable ace); then comes the end;
then the naturals, an ace and a ten, by the dealer's card. A natural is observed as any 21 with a usable ace, and where
sab=True it wins unless the dealer has one too. The best policy does not need what the observation misses: it sticks.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import product

import gymnasium
import numpy as np

import ravi
from ravi.live.encoders import encoder_of

CARDS = {**dict.fromkeys(range(1, 10), 1 / 13), 10: 4 / 13}
STICK, HIT = 0, 1


def blackjack(env, discount):
    """The table of Blackjack-v1, natural=False, and the number of the observation of each of its states."""
    space = encoder_of(env.observation_space)
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


def of_uniform_play(env, discount, steps, rng):
    """What of the optimum is lost by the best policy for the counts of so many steps of uniform play."""
    mdp, sees = blackjack(env, discount)
    (X, A, _), end, r = mdp.successors.shape, env.observation_space[0].n * 11 * 2, 2 * mdp.rewards - 1
    P, pairs = np.zeros((X, A, X)), np.indices(mdp.successors.shape)[:2]
    np.add.at(P, (*pairs, mdp.successors), mdp.transitions)
    r[end], going = 0, P.copy()
    going[..., end] = 0
    visits = np.linalg.solve(np.eye(X) - going.mean(1).T, mdp.initial)  # in an episode
    n = rng.poisson(steps / visits.sum() * visits[:, None] / A * np.ones(A))
    n[end] = 0
    counts, earned, plays = np.zeros((end + 1, end + 1)), np.zeros(end + 1), np.zeros(end + 1)
    for x in np.flatnonzero(n.sum(1)):
        hand, dealer, _ = np.unravel_index(sees[x], (end // 22, 11, 2))
        ends = dealt(int(dealer), dealer == 1)
        lost = 0.0 if x > end else sum(q for other, q in ends.items() if other > hand)
        won = lost + r[x, STICK]
        wins, losses, _ = rng.multinomial(n[x, STICK], [won, lost, max(0.0, 1 - won - lost)])
        earned[sees[x]] += wins - losses
        plays[sees[x]] += n[x, STICK]
        np.add.at(counts[sees[x]], sees, rng.multinomial(n[x, HIT], P[x, HIT]))
    V, hits = np.zeros(end + 1), counts.sum(1)
    for _ in range(30):  # no hand is hit as often
        stick = np.where(plays > 0, earned / np.maximum(plays, 1), -1)
        more = np.where(hits > 0, (discount * counts @ V - counts[:, end]) / np.maximum(hits, 1), -1)
        V = np.maximum(stick, more)
        V[end] = 0
    values = []
    for policy in (np.eye(A)[(more > stick).astype(int)][sees], ravi.solve(mdp).policy):
        chain, reward = np.einsum("xay,xa->xy", P, policy), (r * policy).sum(1)
        values.append(mdp.initial @ np.linalg.solve(np.eye(X) - discount * chain, reward))
    return (values[1] - values[0]) / abs(values[1])


if __name__ == "__main__":
    env = gymnasium.make("Blackjack-v1")
    for steps in (50_000, 100_000, 200_000, 450_000, 10**6, 2 * 10**6):
        lost = [100 * of_uniform_play(env, 0.99, steps, np.random.default_rng(1000 + i)) for i in range(24)]
        print(
            f"{steps:,} steps: {np.median(lost):.1f} % of the optimum are lost in the median, {max(lost):.1f} % at "
            f"most; {sum(part <= 1 for part in lost)} of {len(lost)} samples lose at most 1 %"
        )
