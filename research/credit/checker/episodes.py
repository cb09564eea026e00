"""Checks of episodes: their labels, starts and rewards."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from research.credit.checker.finding import MissingError, Stated
from research.credit.checker.rows import Dump, place

RARE = 7.0
"""Nats beyond those of all pairs of episodes: an equal pair is then a coincidence in one file of a thousand."""


def labels(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that an episode is in one group, with others if any group has some, and has each of its turns once."""
    members = defaultdict(set)
    for (update, episode), rows in dump.episodes.items():
        groups, turns = {row.group for row in rows}, [row.turn for row in rows]
        if len(groups) > 1:
            yield f"episode {episode!r} is in several groups, {', '.join(sorted(map(repr, groups)))}: accepted is one"
        if len(set(turns)) < len(turns):
            yield f"episode {episode!r} has {len(turns)} rows for {len(set(turns))} turns: a row is there twice"
        elif turns != list(range(len(turns))):
            missing = next(t for t, turn in enumerate(turns) if t != turn)
            yield f"episode {episode!r} has {len(turns)} turns and none numbered {missing}: a turn is left out"
        members[update, rows[0].group].add(episode)
    compared = {update for (update, _), episodes in members.items() if len(episodes) > 1}
    for (update, group), episodes in members.items():
        if len(episodes) == 1 and update in compared:  # if all are alone, the trainer compares no groups
            yield f"group {group!r} has a single episode: nothing is compared with it"


def starts(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that the episodes of a group begin in one state."""
    begins: dict[Any, tuple[Any, ...]] = defaultdict(tuple)
    for row in dump.rows:
        if row.kind == "prompt" and row.turn == 0 and row.token_ids:  # a prompt may be several spans
            begins[row.update, row.group, row.episode] += row.token_ids
    states = {(row.update, row.group, row.episode): (row.state,) for row in dump.responses if row.turn == 0}
    begins = begins or {key: state for key, state in states.items() if state != (None,)}
    if not begins:
        raise MissingError("rows have neither states nor token_ids of the first prompts")
    first: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for (update, group, episode), start in begins.items():
        first[update, group].setdefault(start, episode)
    for (_, group), different in first.items():
        if len(different) > 1:
            one, other, *_ = different.values()
            yield (
                f"group {group!r} has {len(different)} starts, such as those of the episodes {one!r} and {other!r}: "
                "returns from different starts can't be compared"
            )


def repeats(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that no episode is trained in two updates: none with equal tokens, and an equal label or probabilities.

    Episodes that are likely by the sampler's own probabilities may well be played twice, and are left out.
    """
    seen: dict[Any, int] = {}
    for (update, episode), rows in dump.episodes.items():
        played = tuple((row.token_ids, row.length, row.state, row.action, row.reward) for row in rows)
        logprobs = tuple(row.sampler_logprobs for row in rows)
        keys: list[Any] = [(episode, played)]
        surprise = -sum(sum(own or ()) for own in logprobs)
        if None not in logprobs and surprise > RARE + 2 * np.log(len(dump.episodes)):
            keys.append((played, logprobs))
        earlier = [seen[key] for key in keys if seen.setdefault(key, update) != update]
        if earlier:
            yield f"episode {episode!r} of update {update} was there in update {earlier[0]}: it is trained again"


def rewards(dump: Dump, stated: Stated) -> Iterator[str]:
    """Check that there is a trained response for each reward."""
    for row in dump.rows:
        if row.reward and (row.update, row.episode) not in dump.episodes:
            yield f"a span of kind {row.kind} is paid {row.reward:g} in an episode without responses ({place(row)})"
    for rows in dump.episodes.values():
        counted, last = [row.trained.any() for row in rows], rows[-1]
        if any(counted) and not counted[-1] and last.reward and not last.cut_off:  # overlong responses are left out
            yield f"the last turn is paid {last.reward:g} and isn't trained ({place(last)})"
