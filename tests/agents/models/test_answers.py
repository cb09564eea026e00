"""Which tokens may follow: held to a brute force over the texts, in direct mode and behind reasoning."""

from typing import Any

import numpy as np
import pytest

from agents.models.answers import Guide, LegalAnswers, Vocabulary, sets_of, token_texts
from agents.turn import TokenSet
from textgames.texts.actions import ActionNames, parse_action

NAMES = ("up", "upper", "left")
TEXTS = ("<", "a", "<act", "action", "<action>", "ction", "ion", ">", ">u", "p", "up", "upp", "per", "l", "left", "e",
         "f", "r", "u", "t", "c", "i", "o", "n", "/", "</", "</action>", "k", "h", "think", "<think>", "</think>", " ",
         "\n", "><", "x<action>le", "<action>no", "hm", ">\n", "left</action>", "s")  # fmt: skip
END = len(TEXTS)
VOCABULARY = Vocabulary([text.encode() for text in TEXTS] + [b"<end>"], [END])


def legal(text: str) -> bool:
    """Whether a whole direct answer begins with a text."""
    return any(f"<action>{name}</action>".startswith(text) for name in NAMES)


def played(answers: LegalAnswers, limit: int, seed: int) -> tuple[str, list[int]]:
    """A response whose tokens are drawn with equal chances from those that are allowed."""
    rng = np.random.default_rng(seed)
    rules = VOCABULARY.rules(answers)
    guide, text, tokens = Guide(rules, limit), answers.begun, list[int]()
    while "</action>" not in text:
        allowed = guide.allowed()
        if allowed is None or allowed.others:
            ruled_out = () if allowed is None else allowed.ids
            choices = [token for token in range(len(TEXTS) + 1) if token not in ruled_out]
        else:
            choices = list(allowed.ids)
        tokens.append(int(rng.choice(choices)))
        guide.take(tokens[-1])
        text += "<end>" if tokens[-1] == END else TEXTS[tokens[-1]]
        assert len(tokens) <= limit
    return text, tokens


@pytest.mark.parametrize("begun", ["", "<act", "I take <action>u"])
def test_in_direct_mode_exactly_those_tokens_whose_text_goes_on_with_an_answer(begun):
    rules = VOCABULARY.rules(LegalAnswers(NAMES, begun=begun))
    seen = set()
    for seed in range(30):
        guide, text = Guide(rules, 100), begun.removeprefix("I take ")
        rng = np.random.default_rng(seed)
        while not text.endswith("</action>"):
            allowed = guide.allowed()
            assert allowed == TokenSet(tuple(i for i, piece in enumerate(TEXTS) if legal(text + piece)))
            token = int(rng.choice(allowed.ids))
            guide.take(token)
            text += TEXTS[token]
        seen.add(text)
    assert seen == {f"<action>{name}</action>" for name in NAMES if begun.endswith("u") <= name.startswith("u")}


@pytest.mark.parametrize(("begun", "limit"), [("", 8), ("<think>", 9), ("hm <acti", 20), ("", 60)])
def test_whatever_the_reasoning_and_however_few_tokens_the_answer_is_legal(begun, limit):
    answers = LegalAnswers(NAMES, reasons=True, begun=begun)
    limit = max(limit, VOCABULARY.rules(answers).reserve)
    read = [played(answers, limit, seed) for seed in range(150)]
    for text, tokens in read:
        assert parse_action(text, ActionNames(NAMES)) in NAMES, text
        before = text.partition("<action>")[0]
        assert before.count("<think>") <= before.count("</think>") or before.rfind("</think>") > before.rfind("<think>")
        assert len(sets_of(VOCABULARY.rules(answers), tokens, limit)) == len(tokens)
    assert {parse_action(text, ActionNames(NAMES)) for text, _ in read} == set(NAMES)


def test_reasoning_is_free_but_for_what_would_end_it_wrongly():
    rules = VOCABULARY.rules(LegalAnswers(NAMES, reasons=True))
    ruled_out = {"</action>", "<action>no", "left</action>"}
    wanted = tuple(sorted([END, *(TEXTS.index(text) for text in ruled_out)]))
    assert Guide(rules, 100).allowed() == TokenSet(wanted, others=True)
    guide: Any = Guide(rules, 100)
    guide.take(TEXTS.index("<think>"))  # no action is read in there
    assert TEXTS.index("<action>") in guide.allowed().ids
    guide.take(TEXTS.index("</think>"))
    assert guide.allowed().ids == wanted


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="needs the list of legal actions"):
        LegalAnswers(())
    with pytest.raises(ValueError, match="no legal answer continues the response prefix '<action>right'"):
        VOCABULARY.rules(LegalAnswers(NAMES, begun="<action>right"))
    with pytest.raises(ValueError, match="no tokens for the answer '<action>zoo</action>'"):
        VOCABULARY.rules(LegalAnswers(("zoo",)))


def test_a_token_after_which_the_tokenizer_can_write_no_answer_is_not_allowed():
    vocabulary = Vocabulary([b"<action>", b"<act", b"up", b"</action>", b"u"], [])
    rules = vocabulary.rules(LegalAnswers(("up",)))
    first: Any = Guide(rules, 9)
    assert first.allowed().ids == (0,)
    guide: Any = Guide(rules, 9)
    guide.take(0)
    assert guide.allowed().ids == (2,)
    assert rules.reserve == 3


@pytest.fixture
def sentencepiece_like():
    """Pieces with spaces in front and bytes for what has none, as in Llama 2's tokenizer."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁<", "<", "action", ">", "▁left"]
    model = models.BPE({piece: i for i, piece in enumerate(pieces)}, [], byte_fallback=True, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


def test_texts_of_tokens_whatever_the_tokenizer(sentencepiece_like):
    from tests.agents.models.local.test_transformers import make_tokenizer

    texts = token_texts(sentencepiece_like, len(sentencepiece_like))
    assert texts[2 : 2 + 256] == [bytes([byte]) for byte in range(256)]
    assert texts[258:] == [b" ", b"a", b" <", b"<", b"action", b">", b" left"]
    bytewise = make_tokenizer()
    texts = token_texts(bytewise, len(bytewise))
    for text in ("<action>left</action>", "é ü 漢字\n\t~"):
        assert b"".join(texts[token] for token in bytewise(text)["input_ids"]) == text.encode()


def test_whole_endings_and_their_grammar_for_engines_that_are_told_them():
    answers = LegalAnswers(("up", "upper", 'say "hi"'))
    assert answers.endings() == ["<action>up</action>", "<action>upper</action>", '<action>say "hi"</action>']
    assert answers.gbnf() == (
        'root ::= "<action>up</action>" | "<action>upper</action>" | "<action>say \\"hi\\"</action>"'
    )
    assert LegalAnswers(NAMES, begun="Then <action>up").endings() == ["</action>", "per</action>"]
    assert LegalAnswers(NAMES, begun="so: <act").endings() == [f"ion>{name}</action>" for name in NAMES]
    for begun in ("<think>", "<think>or <action>up"):  # in which no action would be read
        read = [parse_action(begun + text, ActionNames(NAMES)) for text in LegalAnswers(NAMES, begun=begun).endings()]
        assert read == list(NAMES)
    assert LegalAnswers(NAMES, begun="<action>x</think><act").endings() == [f"ion>{name}</action>" for name in NAMES]
    with pytest.raises(ValueError, match="no legal answer continues"):
        LegalAnswers(NAMES, begun="<action>x").endings()


def test_a_draft_is_what_the_tokenizer_would_write_up_to_a_choice():
    texts = [b"<", b"<a", b"action>", b"ction>", b"up</", b"up", b"</", b"down</"]
    written = {"<action>up</action>": [0, 2, 4, 2], "<action>down</action>": [0, 2, 7, 2]}
    vocabulary = Vocabulary(texts, [], lambda answers: [written[answer] for answer in answers])
    guide = Guide(vocabulary.rules(LegalAnswers(("up", "down"))), 9)
    tokens, sets = guide.draft()
    assert (tokens, [each.ids for each in sets]) == ((0, 2), [(0, 1), (2,), (4, 5, 7)])
    for token in (1, 3, 5):  # another way to write it
        guide.take(token)
    assert guide.draft()[0] == (6, 2)
