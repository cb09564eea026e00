"""Which recorded decisions are imitated, and how much: by a critic, by whole histories, and by tables of advantages."""

from collections.abc import Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from agents import SearchPlayer
from agents.analysis import TIE
from benchmark import UsageError
from benchmark.show import RecordedDecision


class RecordedEpisode(NamedTuple):
    """One player's part of an episode."""

    scenario: str
    seed: int
    result: float  # its return
    decisions: list[RecordedDecision]  # that were valid
    player: str = "player_0"


MOST_WEIGHT = 20.0


def criticised(episodes: Sequence[RecordedEpisode], critic: SearchPlayer, *, advantages: bool) -> list[RecordedEpisode]:
    """Return every decision as an episode of its own, whose result is its advantage, or its value, by a critic.

    ``A(s, a) = Q(s, a) - max_b Q(s, b)`` over the legal actions, 0 at best: decisions are judged by what their actions
    are worth, not by how episodes ended, which may have been lost later. Our reading of a critic beside a decision
    transformer (arXiv 2106.01345), whose returns join no two episodes.
    """
    found = []
    for one in episodes:
        for decision in one.decisions:
            if advantages and not decision.request.legal_actions:
                raise UsageError(f"{one.scenario} lists no legal actions, which a critic compares: --set method=return")
            values = critic.values_with(decision.request, decision.request.legal_actions or (decision.action,))
            baseline = max(values.values()) if advantages else 0.0
            found.append(one._replace(decisions=[decision], result=values[decision.action] - baseline))
    return found


def weights_of(advantages: Sequence[float], beta: float) -> list[float]:
    """Return ``exp(A / (beta sd(A)))``, at most 20, of mean 1."""
    return exponential(advantages, beta * (float(np.std(advantages)) or 1.0))


def exponential(advantages: Sequence[float], beta: float, decisions: Sequence[int] | None = None) -> list[float]:
    """Return ``exp(A / beta)``, at most 20, of mean 1 over the decisions of each; equally many when not given."""
    weights = np.exp(np.minimum(np.asarray(advantages, float) / beta, log(MOST_WEIGHT)))
    return [float(weight) for weight in weights / np.average(weights, weights=decisions)]


PARTS = 4
MEASURES = ("improvement", "stability")


def check_measures(names: Sequence[str]) -> None:
    """Raise a UsageError for a measure that there isn't."""
    if wrong := [name for name in names if name not in MEASURES]:
        raise UsageError(f"weigh has {wrong[0]!r}; histories are weighed by {' and '.join(MEASURES)}")


def measured(curve: Sequence[float], span: float) -> dict[str, float]:
    """Return ``{measure: value from 0 to 1}`` of a curve in a scenario whose curves span so much.

    Learning histories are weighed by how much and how steadily they improve (LHF, arXiv 2505.15143). Our reading: a
    curve's *improvement* is the mean of its later half less that of its earlier one, as a share of the span, and at
    least 0. Its *stability* is the share of rises in all its rises and falls, 1 for a flat one. Both are of at most
    ``PARTS`` means of consecutive parts, since single rewards are noise.
    """
    points = np.array([part.mean() for part in np.array_split(np.array(curve, dtype=float), min(PARTS, len(curve)))])
    early, late = points[: (len(points) + 1) // 2], points[len(points) // 2 :]
    steps = np.diff(points)
    moved = float(np.abs(steps).sum())
    return {
        "improvement": max(0.0, float(late.mean() - early.mean()) / span) if span > 0 else 0.0,
        "stability": float(steps[steps > 0].sum()) / moved if moved > 0 else 1.0,
    }


def history_weights(episodes: Sequence[RecordedEpisode], names: Sequence[str], top: float) -> list[float]:
    """Return each episode's weight, the product of the named measures of its history.

    A history has one seed's episodes of one player in the order of the run folders, and its curve is that of their
    returns; with a single episode, which in a bandit is a history, of its rewards. The weight is 0 beyond the ``top``
    share of the histories of a scenario, and of mean 1 over the decisions that are left.
    """
    histories: dict[tuple[str, int, str], list[int]] = {}
    for place, one in enumerate(episodes):
        histories.setdefault((one.scenario, one.seed, one.player), []).append(place)
    curves = {key: _curve([episodes[place] for place in places]) for key, places in histories.items()}
    found = np.zeros(len(episodes))
    for scenario in dict.fromkeys(one.scenario for one in episodes):
        own = {key: curve for key, curve in curves.items() if key[0] == scenario}
        span = max(map(max, own.values())) - min(map(min, own.values()))
        of_history = {key: _product(measured(curve, span), names) for key, curve in own.items()}
        least = float(np.quantile([*of_history.values()], 1 - top, method="higher"))
        for key, weight in of_history.items():
            found[histories[key]] = weight if weight >= least else 0.0
    decisions = np.array([len(one.decisions) if weight else 0 for one, weight in zip(episodes, found, strict=True)])
    if not decisions.any():
        return [0.0] * len(episodes)
    return [float(weight) for weight in found / np.average(found, weights=decisions)]


def _curve(episodes: Sequence[RecordedEpisode]) -> list[float]:
    if len(episodes) > 1:
        return [one.result for one in episodes]
    return [each.reward for each in episodes[0].decisions] or [episodes[0].result]


def _product(values: Mapping[str, float], names: Sequence[str]) -> float:
    return float(np.prod([values[name] for name in names]))


STILL, MOST_SWEEPS = 1e-6, 1000  # V moves by less, or so many times


def regularised(
    episodes: Sequence[RecordedEpisode], discount: float, rng: np.random.Generator
) -> list[RecordedEpisode]:
    """Return what is imitated of recorded episodes; empty if no state has an action that is better than others.

    A2PR (arXiv 2405.19909) holds a policy to the better one of the recorded action and one that a generative model of
    behaviour proposes, and only if that has an advantage; the model is fitted to actions of high advantage. Here a
    state is what a player reads, ``beta(a|s)`` is the share of a's recorded decisions there, and until V stands still::

        Q(s, a) = mean over recorded rounds of (r + discount V(s')),   A(s, a) = Q(s, a) - sum_a beta(a|s) Q(s, a)
        beta+(a|s) ~ beta(a|s) if A(s, a) > 0, and beta(a|s) in a state without such actions
        V(s) = sum_a beta+(a|s) Q(s, a)

    Each decision is imitated with the better one, by A, of its own action and a draw of beta+, and left out if that
    one has no advantage. Our reading: the critic and the generative model are tables, so a proposal is an action that
    was recorded in the state, and the policy learns by imitation alone, where the paper's also climbs Q.
    """
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
