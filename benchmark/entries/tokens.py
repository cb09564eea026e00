"""Whether an entry's token counts are possible: most tokenizers aren't known here, but a token is a piece of a text.

Counts decide what a score cost. Over a whole entry a token of any tokenizer has some three or four letters.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.episode import Episode

MOST_LETTERS = (24, 12)
"""In a token of prompts and of responses, in the mean over an entry: boards have runs of equal signs."""
MOST_REASONING = 10**6  # tokens of one response whose reasoning isn't shown
MOST_PROMPT = 2 * 10**6  # tokens of one prompt: more than models read
LOCAL = ("hf", "vllm")
"""Kinds whose responses are all of what was generated: never more than ``max_tokens``."""


class TokenTally:
    """Adds up the tokens of an entry's episodes, and the letters that they stand for, of prompts and completions."""

    def __init__(self) -> None:
        self._tokens, self._letters = [0, 0], [0, 0]
        self._most = [(0, ""), (0, "")]  # of one answer, and its place

    def add(self, episode: Episode) -> None:
        """Count one episode that was played again; answers that give no tokens don't matter."""
        for index, step in enumerate(episode.steps):
            place = f"{episode.scenario}, seed {episode.seed}, step {index}"
            for turn in step.turns:
                written = turn.response + turn.reasoning + turn.tool_calls + turn.cut
                for i, text in enumerate((step.observation, written) if any(turn.usage[:2]) else ()):
                    self._tokens[i] += turn.usage[i]
                    self._letters[i] += len(text)
                    self._most[i] = max(self._most[i], (turn.usage[i], place), key=lambda one: one[0])

    def problems(self, card: Mapping[str, Any]) -> Iterator[str]:
        limit = card["settings"].get("max_tokens")
        longest = limit if card["kind"] in LOCAL and isinstance(limit, int) else MOST_REASONING
        for i, (what, most) in enumerate((("prompt", MOST_PROMPT), ("response", longest))):
            count, place = self._most[i]
            if count > most:
                yield f"{place}: a {what} of {count:,} tokens, at most {most:,} are possible"
            if self._letters[i] > MOST_LETTERS[i] * self._tokens[i] > 0:
                yield (
                    f"all {what}s have {self._tokens[i]:,} tokens for {self._letters[i]:,} letters; no tokenizer has "
                    f"so few, a token is at most {MOST_LETTERS[i]} letters long in the mean"
                )
