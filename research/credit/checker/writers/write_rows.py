"""Write the rows of ``textbench check-credit`` from any trainer: a file to copy, which needs no package."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO


def write_episode(
    stream: TextIO, group: int | str, episode: int | str, turns: Iterable[Mapping[str, Any]], update: int = 0
) -> None:
    """Write the rows of one episode.

    Write all episodes of a group, also those that aren't drawn or that a filter leaves out.

    Args:
        stream: a text file; a line is a row.
        group: a label that the episodes have in common which are compared with each other.
        episode: a label of its own.
        turns: of each turn ``prompt_ids``, the tokens before its response that aren't in an earlier row, and
            ``response_ids``; and what there is of ``reward``, ``advantage``, ``mask``, ``weight``,
            ``sampler_logprobs``, ``old_logprobs``, ``new_logprobs``, ``state`` and ``cut_off``.
        update: the iteration.
    """
    for number, given in enumerate(turns):
        turn = dict(given)
        place = {"group": group, "episode": episode, "update": update, "turn": number}
        before, response = turn.pop("prompt_ids", ()), turn.pop("response_ids")
        if before:
            kind = "observation" if number else "prompt"
            stream.write(json.dumps({**place, "kind": kind, "token_ids": list(before)}) + "\n")
        stream.write(json.dumps({**place, "token_ids": list(response), **turn}) + "\n")


def turns_of(
    prompt_ids: Sequence[int], ids: Sequence[int], sampled: Sequence[int], **by_token: Sequence[float]
) -> list[dict[str, Any]]:
    """Cut a conversation into the turns that :func:`write_episode` takes.

    Args:
        prompt_ids: the tokens before the first response.
        ids: all tokens after them, without padding.
        sampled: for each of ``ids``, whether the model sampled it; the others are what the environment answered.
        by_token: ``name=values`` of a row, one for each of ``ids``.
    """
    turns, before = list[dict[str, Any]](), list(prompt_ids)
    for own, group in groupby(range(len(ids)), lambda place: bool(sampled[place])):
        places = list(group)
        if not own:
            before += [ids[place] for place in places]
            continue
        columns = {name: [values[place] for place in places] for name, values in by_token.items()}
        turns.append({"prompt_ids": before, "response_ids": [ids[place] for place in places], **columns})
        before = []
    return turns
