"""When a run with ``--until`` may look at its intervals, and how wide those must be for the looks that it takes.

Looks are at few, planned numbers of episodes (50, 100, 200, ..., doubling to the most that it may play), and every
interval is at the level ``1 - 0.05 / number of looks``: by Bonferroni's inequality all of these cover the truth
together, whichever one is chosen.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agents.common.intervals import CONFIDENCE
from benchmark.score.document import EstimateView, ScoreView

FIRST_LOOK = 50  # episodes; what an entry of the leaderboard has at least
MOST = 1600  # episodes of each agent and scenario, if no number is given


def looks(most: int, before: Iterable[int] = ()) -> list[int]:
    """Return the numbers of episodes after which a run of ``most`` looks, also at the ``before`` of its extensions."""
    numbers = {most, *before}
    count = FIRST_LOOK
    while count < most:
        numbers.add(count)
        count *= 2
    return sorted(numbers)


def confidence_of(settings: Mapping[str, Any], before: Iterable[int] = ()) -> float:
    """Return the level of the intervals of a run with these settings, so that all looks together have 95%."""
    if settings.get("until") is None:
        return CONFIDENCE
    return 1 - (1 - CONFIDENCE) / len(looks(settings["episodes"], before))


def half_width(row: ScoreView) -> float:
    """Return half the interval that ``--until`` is about: of the normalised score, or of the mean without a scale.

    The part of a normalised score below 0 doesn't count. 0 without an interval, which more episodes wouldn't narrow.
    """
    judged: EstimateView | None = row["normalized"] or row["luck_free_return"] or row["mean_return"]
    if judged is None or judged["low"] is None or judged["high"] is None:
        return 0.0
    floor = 0.0 if row["normalized"] else float("-inf")
    return (max(floor, judged["high"]) - max(floor, judged["low"])) / 2
