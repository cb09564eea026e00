"""Social metrics in what a writer of programs reads: efficiency, equality, sustainability and peace.

A program plays all seats of a game for several players, and its writer is told how the players did together, beside
the return: dense feedback in arXiv 2603.19453 (policy synthesis in sequential social dilemmas). A game's own figures
of these names hold; of other games they follow from the rewards.
"""

from collections.abc import Sequence

import numpy as np

from agents import Episode

METRICS = {
    "efficiency": "rewards of all players in a round",
    "equality": "1 if all get the same, 0 if one gets all of very many",
    "sustainability": "the mean number of the rounds that paid, from 0: high if there is something left late",
    "peace": "players in a round who weren't put out of the way",
}


def social_metrics(records: Sequence[Episode]) -> dict[str, float]:
    """Return the mean over episodes of each metric that any of them has, in the order of :data:`METRICS`."""
    told = [{**_computed(record), **next(iter(record.metrics.values()), {})} for record in records]
    found = {name: [each[name] for each in told if name in each] for name in METRICS}
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def _computed(record: Episode) -> dict[str, float]:
    """Return what rewards alone say, without what is undefined: Perolat et al. (NeurIPS 2017, section 2.3)."""
    returns = np.array([*record.returns.values()])
    rounds = 1 + max(step.index for step in record.steps)
    found = {"efficiency": float(returns.sum() / rounds)}
    if returns.sum() > 0:
        apart = np.abs(returns[:, None] - returns).sum()
        found["equality"] = float(1 - apart / (2 * len(returns) * returns.sum()))
    paid = [[step.index for step in record.steps_of(player) if step.reward > 0] for player in record.returns]
    if any(paid):
        found["sustainability"] = float(np.mean([np.mean(own) for own in paid if own]))
    return found


def told_together(records: Sequence[Episode]) -> str:
    """Return the metrics as a writer reads them, a line each; empty for one player."""
    if len(records[0].returns) < 2:
        return ""
    lines = [f"- {name} {value:.3f} ({METRICS[name]})" for name, value in social_metrics(records).items()]
    return "\n".join(["The program played all seats at once. Together the players had:", *lines])
