"""The named parts of responses by their tokens: ``<think>...</think>``, ``<action>...</action>`` and the like.

A part reaches from the first character of its opening tag to the last one of its closing tag, or to the end of the
response if it isn't closed. Parts don't overlap: what stands inside one is read as its text, tags included.

Tokens needn't end where parts do. A token belongs to the part that its first character is in; one that begins outside
of all parts belongs to the first part that it reaches into. So every token belongs to one part or to none.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from os.path import commonprefix
from typing import Any

from agents.msgrpo.credit.batch import Segment
from agents.msgrpo.errors import ConfigError
from agents.prompt import PromptMap

_TAG = re.compile(r"<([A-Za-z][\w-]*)>")

Segmenter = Callable[[Sequence[int]], tuple[Segment, ...]]
"""``token ids of a response -> its parts``."""


def needed_segmenter(method: Any, prompt_map: PromptMap, tokenizer: Any) -> Segmenter | None:
    """Return the segmenter for the parts that the prompts ask for, or ``None`` if the method needs no ``segments``."""
    if "segments" not in method.needs:
        return None
    texts, mode, wanted = prompt_map.texts, prompt_map.mode, method.parts
    templates = (texts.response[mode], texts.open_response.get(mode, ""))
    tags = tuple(dict.fromkeys(_TAG.findall("\n".join(templates))))
    if missing := [name for name in wanted if name not in tags]:
        needed, asked, lacking = (", ".join(f"<{name}>" for name in names) for names in (wanted, tags, missing))
        raise ConfigError(
            f"{type(method).__name__} needs responses with {needed}, but the prompts ask for {asked or 'no tags'} and "
            f"not for {lacking}: set prompt_file to prompts that do, such as subgoals with "
            "response_mode = 'think'"
        )
    return segmenter(tokenizer, tags, prompt_map.prefix)


def segmenter(tokenizer: Any, names: Sequence[str], prefix: str = "") -> Segmenter:
    """Return what finds the parts of these names in responses of a tokenizer, whatever kind it is, in order.

    The text is what the tokenizer decodes, special tokens included, as the player's response was. It stands behind the
    prefix that the response was made to continue, in which a part may begin. Equal responses are looked at once. A part
    without a token of its own has ``start == stop``.
    """

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    @lru_cache(100_000)
    def find(ids: tuple[int, ...]) -> tuple[Segment, ...]:
        text, before, found = decode(ids), len(prefix), list[Segment]()

        @cache
        def characters(count: int) -> int:
            """Return how many characters the first tokens give for certain: one may end within a character of bytes."""
            return len(commonprefix([decode(ids[:count]), text]))  # noqa: RUF071 - letters are meant

        def tokens_to(place: int) -> int:
            return bisect_left(range(len(ids) + 1), place, key=characters)

        for name, begun, ended, inside in _parts(prefix + text, names):
            begin, end = max(0, begun - before), max(0, ended - before)
            # the token that holds the first character; if it belongs to the part before, the next one
            first = max(tokens_to(begin + 1) - 1, found[-1].stop if found else 0)
            stop = len(ids) if end == len(text) else tokens_to(end)
            found.append(Segment(name, first, max(first, stop), inside))
        return tuple(found)

    return lambda ids: find(tuple(ids))


def _parts(text: str, names: Sequence[str]) -> list[tuple[str, int, int, str]]:
    if not names:
        return []
    opening = re.compile("|".join(f"<{re.escape(name)}>" for name in names))
    parts, place = [], 0
    while (match := opening.search(text, place)) is not None:
        name = match.group()[1:-1]
        closing = f"</{name}>"
        close = text.find(closing, match.end())
        place = len(text) if close < 0 else close + len(closing)
        parts.append((name, match.start(), place, text[match.end() : len(text) if close < 0 else close]))
    return parts
