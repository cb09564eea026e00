"""Write the rows of ``textbench check-credit`` from any trainer: a file to copy, which needs no package."""

import json
from collections.abc import Iterable, Mapping
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
