"""Learning histories, weighed by how much and how steadily they improve (LHF, arXiv 2505.15143).

A history has one seed's episodes of one player in the order of the run folders, such as those of a learner's
checkpoints. Its curve is that of their returns; with a single episode, which in a bandit is a history, of its rewards.

Our reading: a curve's *improvement* is the mean of its later half less that of its earlier one, as a share of what its
scenario's curves span, and at least 0. Its *stability* is the share of rises in all its rises and falls, 1 for a flat
one. Both are of at most ``PARTS`` means of consecutive parts, since single rewards are noise. A history's weight is the
product of those that are named.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmark import UsageError

if TYPE_CHECKING:
    from research.improve.methods.imitating.offline import RecordedEpisode

PARTS = 4
MEASURES = ("improvement", "stability")


def check_measures(names: Sequence[str]) -> None:
    """Raise a UsageError for a measure that there isn't."""
    if wrong := [name for name in names if name not in MEASURES]:
        raise UsageError(f"weigh has {wrong[0]!r}; histories are weighed by {' and '.join(MEASURES)}")


def measured(curve: Sequence[float], span: float) -> dict[str, float]:
    """Return ``{measure: value from 0 to 1}`` of a curve in a scenario whose curves span so much."""
    points = np.array([part.mean() for part in np.array_split(np.array(curve, dtype=float), min(PARTS, len(curve)))])
    early, late = points[: (len(points) + 1) // 2], points[len(points) // 2 :]
    steps = np.diff(points)
    moved = float(np.abs(steps).sum())
    return {
        "improvement": max(0.0, float(late.mean() - early.mean()) / span) if span > 0 else 0.0,
        "stability": float(steps[steps > 0].sum()) / moved if moved > 0 else 1.0,
    }


def weights(episodes: Sequence["RecordedEpisode"], names: Sequence[str], top: float) -> list[float]:
    """Return each episode's weight, that of its history.

    It is 0 beyond the ``top`` share of the histories of a scenario, and of mean 1 over the decisions that are left.
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


def _curve(episodes: Sequence["RecordedEpisode"]) -> list[float]:
    if len(episodes) > 1:
        return [one.result for one in episodes]
    return [each.reward for each in episodes[0].decisions] or [episodes[0].result]


def _product(values: Mapping[str, float], names: Sequence[str]) -> float:
    return float(np.prod([values[name] for name in names]))
