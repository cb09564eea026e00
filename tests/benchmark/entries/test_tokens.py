"""Token counts of an entry that no tokenizer could have made of its texts."""

import pytest

from agents import Episode, Step, Turn, Usage
from benchmark.entries.tokens import TokenTally

CARD = {"kind": "openai", "settings": {"max_tokens": 256}}


def problems(tokens: int, **answer: str) -> list[str]:
    turn = Turn("<action>right</action>", usage=Usage(20, tokens), **answer)
    step = Step(0, "player_0", "The player is at row 0, column 0.", turn, "right", True, None, 0.0)
    tally = TokenTally()
    tally.add(Episode("frozen-lake", 10_000, None, {"player_0": "me"}, (step,), {}, {}, True, False))
    return [*tally.problems(CARD)]


@pytest.mark.parametrize(("tokens", "possible"), [(400, True), (8, False)])
def test_reasoning_that_is_shown_counts_among_the_letters_of_a_response(tokens, possible):
    """8 tokens are enough for the response alone, and too few for the 1,200 letters of reasoning before it."""
    assert problems(8) == []
    found = problems(tokens, reasoning="right or " * 133 + "up.")
    assert (found == []) == possible
    assert possible or "all responses have 8 tokens for 1,222 letters" in found[0]
