"""Parts of responses by tokens: a word tokenizer, the tiny model's, and a byte-level BPE whose tokens straddle tags."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
from agents.msgrpo import ConfigError, needed_segmenter
from agents.msgrpo.credit import METHODS, Segment
from agents.msgrpo.segments import segmenter
from agents.prompt import PromptMap
from tests.tiny_models import byte_level_bpe, word_tokenizer

NAMES = ("think", "plan", "action")
SUBGOALS = Path(agents.__file__).parent / "prompts" / "subgoals.toml"


@cache
def words() -> Any:
    r"""Tokens that are tags, and some that aren't: "\n<" begins before a tag, "n></think><action>u" is across two."""
    return word_tokenizer(
        ("<think>", "</think>", "<action>", "</action>", "</", ">", "<", "think", "action", "up", "\n<",
         "n></think><action>u", "a", "p")
    )  # fmt: skip


@cache
def byte_level() -> Any:
    """A BPE over bytes with 400 tokens, some of them across tags, and characters of several tokens."""
    from transformers import PreTrainedTokenizerFast

    texts = ["<think>go 😀 up</think>\n<plan>é up, ü</plan>\n<action>up</action>", "</plan><action>", "x</think><plan>"]
    tokenizer = byte_level_bpe(texts * 3, 400, ["<eos>"], use_regex=False)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")
    assert any("><" in piece for piece in made.get_vocab())
    return made


def ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # eight tokens with the end: <think> a a </think> <action> up </action> <eos>
        ("<think>aa</think><action>up</action><eos>", [Segment("think", 0, 4, "aa"), Segment("action", 4, 7, "up")]),
        # <think> a n></think><action>u p </action>: the third token ends one part and begins the next
        ("<think>an></think><action>up</action>", [Segment("think", 0, 3, "an>"), Segment("action", 3, 5, "up")]),
        # a, "\n<", think, >, up: the second token is the newline and the first character of the tag
        ("a\n<think>up", [Segment("think", 1, 5, "up")]),
        # what isn't closed reaches to the end, and a tag inside of a part is text
        ("<think>a<action>up<eos>", [Segment("think", 0, 5, "a<action>up<eos>")]),
        ("<action>up</action><action>a", [Segment("action", 0, 3, "up"), Segment("action", 3, 5, "a")]),
        ("up</think>", []),
    ],
)
def test_a_token_belongs_to_the_part_that_it_begins_in_or_reaches(text, found):
    assert list(segmenter(words(), NAMES)(ids(words(), text))) == found
    assert segmenter(words(), ())(ids(words(), text)) == ()


def plain(text: str, offsets: list[tuple[int, int]]) -> list[tuple[str, int, int, str]]:
    """Token by token, from the offsets that the tokenizer itself tells of a text that it encodes."""
    parts = [
        (match.group(1), match.start(), match.end(), match.group(2))
        for match in re.finditer(r"<(think|plan|action)>(.*?)(?:</\1>|\Z)", text, re.DOTALL)
    ]
    owners = []
    for begin, end in offsets:
        inside = [n for n, (_, start, stop, _) in enumerate(parts) if start <= begin < stop]
        reached = [n for n, (_, start, stop, _) in enumerate(parts) if begin < stop and start < end]
        owners.append((inside or reached or [None])[0])
    result = []
    for number, (name, _, _, content) in enumerate(parts):
        mine = [k for k, owner in enumerate(owners) if owner == number]
        result.append((name, min(mine, default=-1), max(mine, default=-2) + 1, content))
    return result


TAGS = [f"<{slash}{name}>" for name in NAMES for slash in ("", "/")]
PIECES = [*TAGS, "up", " ", "\n", "é", "😀", "<", ">", "x", "/"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_byte_level_tokens_against_the_tokenizer_s_own_offsets(pieces):
    text, tokenizer = "".join(pieces), byte_level()
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    wanted = plain(text, encoded["offset_mapping"])
    found = segmenter(tokenizer, NAMES)(encoded["input_ids"])
    assert [(each.name, each.text) for each in found] == [(name, content) for name, _, _, content in wanted]
    for each, (_, start, stop, _) in zip(found, wanted, strict=True):
        assert (each.start, each.stop) == (start, stop) or (each.start == each.stop and start == -1)


def test_a_method_that_needs_parts_gets_prompts_that_have_them_or_is_refused():
    hiper = SimpleNamespace(needs={"segments"}, parts=("switch", "subgoal", "action"))
    assert needed_segmenter(METHODS.make("msgrpo"), PromptMap(), words()) is None
    assert needed_segmenter(hiper, PromptMap.from_file(SUBGOALS), words()) is not None
    prefixed = PromptMap.from_file("prefixed", "direct")
    find = needed_segmenter(SimpleNamespace(needs={"segments"}, parts=()), prefixed, words())
    assert find is not None
    assert find(ids(words(), "up</action>")) == (Segment("action", 0, 2, "up"),)
    with pytest.raises(
        ConfigError,
        match="SimpleNamespace needs responses with <switch>, <subgoal>, <action>, but the prompts ask for <think>, "
        "<plan>, <action> and not for <switch>, <subgoal>: set prompt_file to prompts that do, such as subgoals",
    ):
        needed_segmenter(hiper, PromptMap(), words())


def test_a_part_may_begin_in_the_prefix_of_the_response():
    """up </action> <eos> go on from <think>a</think><action>: the part is of the tokens that were sampled."""
    response = [*ids(words(), "up</action>"), words().eos_token_id]
    assert segmenter(words(), NAMES, "<think>a</think><action>")(response) == (
        Segment("think", 0, 0, "a"),
        Segment("action", 0, 2, "up"),
    )
    assert segmenter(words(), NAMES, "<action>")(ids(words(), "up")) == (Segment("action", 0, 1, "up"),)
