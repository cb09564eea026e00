"""Recorded decisions with better actions in the place of theirs: advantage-guided policy regularisation, in tables.

A2PR (arXiv 2405.19909) holds a policy to the better one of the recorded action and one that a generative model of
behaviour proposes, and only if that has an advantage; the model (a VAE) is fitted to actions of high advantage. Here a
state is what a player reads, ``beta(a|s)`` is the share of a's recorded decisions there, and: ::

    Q(s, a) = mean over recorded rounds of (r + discount V(s')),   A(s, a) = Q(s, a) - sum_a beta(a|s) Q(s, a)
    beta+(a|s) ~ beta(a|s) if A(s, a) > 0, and beta(a|s) in a state without such actions
    V(s) = sum_a beta+(a|s) Q(s, a)

until V stands still. Each decision is imitated with the better one, by A, of its own action and a draw of beta+, and
left out if that one has no advantage. Our reading: the critic and the generative model are tables, so that a proposal
is an action that was recorded in the state, with the response that said it; the policy is the language model, which
learns by imitation alone, where the paper's also climbs Q.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.analysis import TIE

STILL, MOST_SWEEPS = 1e-6, 1000  # V moves by less, or so many times


def regularised(episodes: Sequence[Any], discount: float, rng: np.random.Generator) -> list[Any]:
    """Return what is imitated of recorded episodes; empty if no state has an action that is better than others."""
    decisions = [each for one in episodes for each in one.decisions]
    states: dict[tuple[str, str, str], int] = {}
    pairs: dict[tuple[int, str], int] = {}
    here, taken = [], []
    for each in decisions:
        place = each.origin["scenario"], each.origin["player"], each.request.observation
        here.append(states.setdefault(place, len(states)))
        taken.append(pairs.setdefault((here[-1], each.action), len(pairs)))
    of_state, pair = np.array([state for state, _ in pairs]), np.array(taken)
    after = np.array([*here[1:], 0])
    after[np.cumsum([len(one.decisions) for one in episodes]) - 1] = len(states)  # the end, of value 0
    paid = np.array([each.reward for each in decisions])
    counts = np.bincount(pair)
    values = np.zeros(len(states) + 1)
    for _ in range(MOST_SWEEPS):
        worth = np.bincount(pair, paid + discount * values[after]) / counts
        advantage = worth - (np.bincount(of_state, counts * worth) / np.bincount(of_state, counts))[of_state]
        better = np.bincount(of_state, advantage > TIE)[of_state] > 0
        guided = counts * ((advantage > TIE) | ~better)
        new = np.append(np.bincount(of_state, guided * worth) / np.bincount(of_state, guided), 0.0)
        values, moved = new, np.abs(new - values).max()
        if moved < STILL:
            break
    recorded = [np.flatnonzero(pair == number) for number in range(len(pairs))]
    found, at = [], 0
    for one in episodes:
        kept = []
        for own in range(at, at + len(one.decisions)):
            rivals = np.flatnonzero(of_state == here[own])
            drawn = int(rng.choice(rivals, p=guided[rivals] / guided[rivals].sum()))
            best = drawn if advantage[drawn] > advantage[pair[own]] else int(pair[own])
            if advantage[best] > TIE:
                said = decisions[own if best == pair[own] else int(rng.choice(recorded[best]))]
                kept.append(decisions[own]._replace(response=said.response, origin=said.origin))
        at += len(one.decisions)
        if kept:
            found.append(one._replace(decisions=kept))
    return found
