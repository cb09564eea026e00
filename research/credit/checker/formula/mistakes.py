"""Mistakes that trainers make with advantages: episodes taken for something else, and advantages at other places."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from research.credit.checker.formula.matching import Given, Match, close
from research.credit.checker.formula.played import Played, trajectory_of
from research.credit.checker.rows import most_common, place


def mistaken(shown: Played) -> Iterator[tuple[str, Played]]:
    """Yield what a trainer may have taken the first episodes for, each with the sentence that says so."""
    sizes, places = Counter(one.group for one in shown.trajectories), range(len(shown.trajectories))
    size = most_common(list(sizes.values()))
    orders = {"n in a row": [i // size for i in places], "every nth": [i % len(sizes) for i in places]}
    for order, others in orders.items():
        said = f"the advantages are those of other groups, {order} of the file's episodes: labels and rows part"
        columns = zip(shown.trajectories, shown.rows, others, strict=True)
        apart = [replace(one, group=(own[0].update, other)) for one, own, other in columns]
        yield said, shown._replace(trajectories=apart).excerpt()
    shown = shown.excerpt()
    each, rows = shown.trajectories, shown.rows
    said = "the advantages are those of returns without the reward {}: it arrives too late"
    answered = [trajectory_of(own, np.array([row.reward for row in own])) for own in rows]
    yield said.format("after the last response"), shown._replace(trajectories=answered)
    cut = [replace(one, rewards=np.append(one.rewards[:-1], 0.0)) for one in each]
    yield said.format("of the last turn"), shown._replace(trajectories=cut)
    ending = [replace(one, rewards=np.append(np.zeros(len(one) - 1), one.rewards[-1])) for one in each]
    yield (
        "the advantages are those of the last turn's reward: what earlier turns were paid is left out",
        shown._replace(trajectories=ending),
    )
    costs = [replace(one, rewards=-one.rewards) for one in each]
    yield (
        "the advantages have the opposite sign: they are those of the negative rewards",
        shown._replace(trajectories=costs),
    )
    samples = [(one, own[t], t) for one, own in zip(each, rows, strict=True) for t in range(len(own))]
    alone = [[row] for _, row, _ in samples]
    said = "each turn was compared as a sample of its own, {}"
    whole = [trajectory_of([row], np.array([one.returned()])) for one, row, _ in samples]
    differ = len({len(own) for own in rows}) > 1
    counted = (
        "so that a longer episode counts more often" if differ else "so that the deviation has each return repeated"
    )
    yield said.format(counted), Played(whole, alone, shown.tolerance)
    turns = [trajectory_of([row], one.rewards[t : t + 1]) for one, row, t in samples]
    own_reward = "by its own reward: what follows a turn isn't credited to it"
    yield said.format(own_reward), Played(turns, alone, shown.tolerance)


def displaced(shown: Played, given: Given, one: Match) -> str:
    """Return the sentence for advantages of a formula that stand at other places; empty if they don't."""
    e, lengths = np.concatenate(one.expected), np.array([len(own) for own in shown.rows])
    begins = np.cumsum(lengths) - lengths
    if close(e, np.zeros_like(e)).all():
        return ""
    first, last = np.zeros(len(e), bool), np.zeros(len(e), bool)
    first[begins] = last[begins + lengths - 1] = True
    at_place = given.close(e)
    if not at_place[~last].all() and given.close(np.where(last, given.advantage, np.roll(e, -1))).all():
        return f"each turn has the advantage that {one.name} assigns to the turn after it"
    if not at_place[~first].all() and given.close(np.where(first, given.advantage, np.roll(e, 1))).all():
        return f"each turn has the advantage that {one.name} assigns to the turn before it"
    if at_place[last].all() and not last.all() and at_place[~last].mean() < 0.5:
        carried = "0" if given.close(np.where(last, given.advantage, 0.0)).all() else "others"
        turns = f"{(~last).sum()} of {len(e)} turns"
        return f"only the last turn of each episode has the advantage of {one.name}; {turns} carry {carried}"
    groups = defaultdict[Any, list[int]](list)
    for i, trajectory in enumerate(shown.trajectories):
        groups[trajectory.group].append(i)
    means = np.array([np.add.reduceat(each, begins) / lengths for each in (given.advantage, e)])  # NaN if not trained
    trained = [[i for i in own if np.isfinite(means[0, i])] for own in groups.values()]
    ordered = [np.sort(means[:, own]) for own in trained if own]
    if ordered and all(close(d, e, given.tolerance).all() for d, e in ordered):
        return f"advantages of {one.name} stand at other episodes of the same group"
    return ""


def differing(shown: Played, given: Given, nearest: Match) -> str:
    """Say where the file differs from the nearest formula."""
    expected = np.concatenate(nearest.expected)
    at = int(np.argmin(given.close(expected)))
    row = [row for own in shown.rows for row in own][at]
    return (
        f"no known formula has these advantages; the nearest, {nearest.name}, has {nearest.share:.0%} of them and "
        f"differs at {place(row)}: {given.advantage[at]:.6g} in the file, {expected[at]:.6g} by the formula"
    )
