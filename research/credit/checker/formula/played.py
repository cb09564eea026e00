"""The episodes of a file of rows as methods of credit take them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from agents.msgrpo.credit import Floats, Trajectory
from research.credit.checker.rows import Dump, Row

TOLERANCE = 1e-6
"""Relative, and absolute below 1: what an advantage may differ from a formula's."""

EXCERPT = 300
"""Turns after which no further group is looked at for a mistake."""


class Played(NamedTuple):
    """The episodes of a file as they are, or as a trainer may have mistaken them, and the rows of their turns."""

    trajectories: Sequence[Trajectory]
    rows: Sequence[Sequence[Row]]
    tolerance: float = TOLERANCE

    def by_update(self) -> Iterator[list[int]]:
        updates = [rows[0].update for rows in self.rows]
        for update in sorted(set(updates)):
            yield [i for i, own in enumerate(updates) if own == update]

    def excerpt(self) -> Self:
        """Return the first groups, until they have enough turns to tell formulas apart."""
        turns, kept, enough = Counter[Any](), set[Any](), 0
        for each in self.trajectories:
            turns[each.group] += len(each)
        for group, own in turns.items():
            if enough < EXCERPT:
                kept.add(group)
                enough += own
        places = [i for i, each in enumerate(self.trajectories) if each.group in kept]
        chosen = [self.trajectories[i] for i in places]
        return self._replace(trajectories=chosen, rows=[self.rows[i] for i in places])


def played(dump: Dump) -> Played:
    """Return the episodes of a file; what a prompt or observation was paid counts for the response before it."""
    paid: dict[tuple[int, Any], list[tuple[int, float]]] = {}
    for row in dump.rows:
        paid.setdefault((row.update, row.episode), []).append((row.turn, row.reward))
    trajectories = []
    for key, rows in dump.episodes.items():
        turns, rewards = [row.turn for row in rows], np.zeros(len(rows))
        for turn, reward in paid[key]:
            rewards[max(0, int(np.searchsorted(turns, turn, side="right")) - 1)] += reward
        trajectories.append(trajectory_of(rows, rewards))
    return Played(trajectories, list(dump.episodes.values()))


def trajectory_of(rows: Sequence[Row], rewards: Floats) -> Trajectory:
    """Return the trajectory of the rows of one episode that was paid ``rewards``, (T,)."""
    states = tuple(row.state for row in rows)
    logprobs = [row.old_logprobs or row.sampler_logprobs for row in rows]
    return Trajectory(
        group=(rows[0].update, rows[0].group),
        rewards=rewards,
        states=states if None not in states else (),
        actions=tuple(str(row.token_ids) for row in rows),
        valid=np.ones(len(rows), dtype=np.bool_),
        steps_left=(None,) * len(rows),
        cut_off=np.array([row.cut_off for row in rows]),
        response_ids=tuple(row.token_ids or tuple(range(row.length)) for row in rows),
        old_logprobs=None if None in logprobs else tuple(np.array(each) for each in logprobs),
        rounds=tuple(row.turn for row in rows),
        values=np.array([row.each("value")[0] for row in rows]) if all(row.value is not None for row in rows) else None,
    )
