"""Whether an entry's token counts are possible: most tokenizers aren't known here, but a token is a piece of a text.

Counts decide what a score cost, so a player that reports one token, or a thousand million, looks cheap or makes sums
useless. They are held against the texts: over a whole entry a token of any tokenizer has some three or four letters.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.runs.record import Record, answers_of
from benchmark.runs.replay import Replay

MOST_LETTERS = (24, 12)
"""Of a token of prompts and of responses, in the mean over an entry: boards have runs of equal signs."""
MOST_REASONING = 10**6  # tokens of one response whose reasoning isn't shown
MOST_PROMPT = 2 * 10**6  # tokens of one prompt: more than models read
LOCAL = ("hf", "vllm")
"""Kinds whose responses are all of what was generated: never more than ``max_tokens``."""


class TokenTally:
    """Adds up the tokens of an entry's episodes, and the letters that they stand for."""

    def __init__(self) -> None:
        self._tokens, self._letters = [0, 0], [0, 0]  # of prompts and completions
        self._most = [0, 0]
        self._places = ["", ""]

    def add(self, record: Record, played: Replay) -> None:
        """Count one episode; steps that give no tokens don't matter."""
        answers = (
            (index, asked, answer)
            for index, (step, asked) in enumerate(zip(record["steps"], played.steps, strict=False))
            for answer in answers_of(step)
        )
        for index, asked, answer in answers:
            if "tokens" not in answer:
                continue
            written = "".join(answer.get(name, "") for name in ("response", "reasoning", "tool_calls", "cut"))
            for i, text in enumerate((asked.observation, written)):
                self._tokens[i] += answer["tokens"][i]
                self._letters[i] += len(text)
                if answer["tokens"][i] > self._most[i]:
                    self._most[i] = answer["tokens"][i]
                    self._places[i] = f"{record['scenario']}, seed {record['seed']}, step {index}"

    def problems(self, card: Mapping[str, Any]) -> Iterator[str]:
        """Yield what can't be true of the counted tokens, as sentences."""
        limit = card["settings"].get("max_tokens")
        longest = limit if card["kind"] in LOCAL and isinstance(limit, int) else MOST_REASONING
        for i, (what, most) in enumerate((("prompt", MOST_PROMPT), ("response", longest))):
            if self._most[i] > most:
                yield f"{self._places[i]}: a {what} of {self._most[i]:,} tokens, at most {most:,} are possible"
            if self._letters[i] > MOST_LETTERS[i] * self._tokens[i] > 0:
                yield (
                    f"all {what}s have {self._tokens[i]:,} tokens for {self._letters[i]:,} letters; no tokenizer has "
                    f"so few, a token is at most {MOST_LETTERS[i]} letters long in the mean"
                )
