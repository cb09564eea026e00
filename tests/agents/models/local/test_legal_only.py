"""Legal-only decoding: which tokens may follow, and draws among them of a model."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.models.answers import Guide, LegalAnswers, Vocabulary, sets_of, token_texts
from agents.models.base import Decoding
from agents.models.local.decoding.sampler import choose, choose_allowed
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import TokenSet, TurnRequest
from tests.agents.models.local.test_thinking import ALWAYS, HYBRID, tokenizer_with
from tests.agents.models.local.test_transformers import make_model, make_tokenizer
from textgames import SCENARIOS
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


def test_texts_of_tokens_whatever_the_tokenizer():
    """Of pieces with spaces in front and bytes for what has none, as in Llama 2's tokenizer, and of bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = [
        "<unk>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "▁<",
        "<",
        "action",
        ">",
        "▁left",
        "<0xZZ>",
    ]
    model = models.BPE({piece: i for i, piece in enumerate(pieces)}, [], byte_fallback=True, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    make: Any = PreTrainedTokenizerFast
    made = make(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")
    texts = token_texts(made, len(made))
    assert texts[2 : 2 + 256] == [bytes([byte]) for byte in range(256)]
    assert texts[258:] == [b" ", b"a", b" <", b"<", b"action", b">", b" left", b"<0xZZ>"]
    usual = type(made)
    own = {"_decode": lambda *args, **how: usual._decode(*args, **how)}  # a class that may decode in a way of its own
    made.__class__ = type("Decoding", (usual,), own)
    assert token_texts(made, len(made)) == texts
    bytewise = make_tokenizer()
    texts = token_texts(bytewise, len(bytewise))
    for text in ("<action>left</action>", "é ü 漢字\n\t~"):
        assert b"".join(texts[token] for token in bytewise(text)["input_ids"]) == text.encode()


def test_whole_endings_and_their_grammar_for_engines_that_are_told_them():
    answers = LegalAnswers(("up", "upper", 'say "hi"'))
    assert answers.endings() == ["<action>up</action>", "<action>upper</action>", '<action>say "hi"</action>']
    said = 'root ::= "<action>up</action>" | "<action>upper</action>" | "<action>say \\"hi\\"</action>"'
    assert answers.gbnf() == said
    assert LegalAnswers(NAMES, begun="Then <action>up").endings() == ["</action>", "per</action>"]
    assert LegalAnswers(NAMES, begun="so: <act").endings() == [f"ion>{name}</action>" for name in NAMES]
    for begun in ("<think>", "<think>or <action>up"):  # in which no action would be read
        read = [parse_action(begun + text, ActionNames(NAMES)) for text in LegalAnswers(NAMES, begun=begun).endings()]
        assert read == list(NAMES)
    assert LegalAnswers(NAMES, begun="<action>x</think><act").endings() == [f"ion>{name}</action>" for name in NAMES]
    with pytest.raises(ValueError, match="no legal answer continues"):
        LegalAnswers(NAMES, begun="<action>x").endings()


@pytest.fixture(scope="module")
def player():
    """Makes legal-only players with a random model, whose context is long enough for any prompt."""
    tokenizer = make_tokenizer()
    model = make_model("llama", tokenizer)
    model.config.max_position_embeddings = 8192
    local = TransformersModel(model, tokenizer, name="untrained")

    def make(mode: str, tokens: int, temperature: float = 1.0, **settings: Any) -> Any:
        decoding = Decoding(temperature, max_tokens=tokens, **settings)
        return LanguageAgentPolicy(local, PromptMap(mode), decoding, legal_only=True)

    return make


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_the_draw_is_that_of_the_softmax_over_what_is_allowed(temperature, top_p):
    torch.manual_seed(0)
    logits, uniform = torch.randn(5, 12) * 2, torch.rand(5, dtype=torch.float64)
    sets = [TokenSet((3,)), None, TokenSet((1, 4, 11)), TokenSet((0, 5), others=True), TokenSet((2, 7))]
    masked = logits.clone()
    for row, each in enumerate(sets):
        if each is not None:
            named = torch.zeros(12, dtype=torch.bool)
            named[list(each.ids)] = True
            masked[row, named if each.others else ~named] = float("-inf")
    decoding = Decoding(temperature, top_p)
    uniform[-1] = np.nextafter(1.0, 0.0)  # which reaches the last token, and never beyond
    tokens, logprobs = choose_allowed(logits.clone(), decoding, uniform, sets)
    wanted, scores = choose(masked, decoding, uniform)
    assert tokens.tolist() == wanted.tolist()
    torch.testing.assert_close(logprobs, scores)
    assert logprobs[0] == 0.0


def test_logprobs_are_those_of_the_models_own_forward_renormalised(player):
    policy = player("think", 60, temperature=0.8)
    (turn,) = policy.act([TurnRequest("somewhere", "rules", ("left", "right"), seed=(5,))])
    model = policy.model.model
    with torch.no_grad():
        logits = model(torch.tensor([turn.prompt_ids + turn.response_ids])).logits[0].double() / 0.8
    for t, (token, allowed) in enumerate(zip(turn.response_ids, turn.allowed, strict=True)):
        row = logits[len(turn.prompt_ids) - 1 + t]
        named = torch.zeros(len(row), dtype=torch.bool)
        named[list(allowed.ids)] = True
        row[named if allowed.others else ~named] = float("-inf")
        assert turn.logprobs[t] == pytest.approx(row.log_softmax(-1)[token].item(), abs=1e-5)


def test_no_room_is_said_and_decisions_that_list_no_actions_are_free(player):
    listed = (("a very long name of an action indeed",), ("up",), ())
    requests = [TurnRequest("x", "", names, seed=(0,)) for names in listed]
    refused, played, talk = player("direct", 20).act(requests)
    assert "a legal answer may need" in refused.error
    assert "there is room for 20: raise max_tokens" in refused.error
    assert played.response == "<action>up</action>"
    assert talk.allowed is None
    assert len(talk.response_ids) == 20 or talk.finish_reason == "stop"


def test_what_cannot_be_played_so_is_refused(player):
    with pytest.raises(ValueError, match="responses end at </action> and nowhere else"):
        player("direct", 20, stop=("\n",))
    policy = player("direct", 20)
    with pytest.raises(ValueError, match="doesn't list its legal actions"):
        policy.check_game(SCENARIOS["guess-number"].game())
    policy.check_game(SCENARIOS["frozen-lake"].game())
    assert policy.settings["legal_only"] is True
    assert "legal_only" not in LanguageAgentPolicy(policy.model, PromptMap("direct"), Decoding(max_tokens=8)).settings


@pytest.mark.parametrize(("template", "arguments"), [(HYBRID, {}), (ALWAYS, {}), (HYBRID, {"enable_thinking": False})])
def test_models_that_reason_by_themselves_do_so_freely_and_then_answer_legally(template, arguments):
    tokenizer = tokenizer_with(template)
    model = make_model("qwen3", tokenizer)
    model.config.max_position_embeddings = 4096
    local = TransformersModel(model, tokenizer, chat_template_kwargs=arguments)
    policy = LanguageAgentPolicy(local, PromptMap("direct"), Decoding(1.0, max_tokens=80), legal_only=True)
    for turn in policy.act([TurnRequest("here", "rules", ("left", "up"), seed=(seed,)) for seed in range(12)]):
        assert turn.error is None
        assert parse_action(turn.response, ActionNames(("left", "up"))) in ("left", "up")
        assert turn.response.endswith("</action>")
        assert turn.reasoning or template is not ALWAYS  # which the template opens, so that it has to be closed
        assert not arguments or turn.response in ("<action>left</action>", "<action>up</action>")
    with pytest.raises(ValueError, match="can't be played legal-only: its thinking_budget closes"):
        LanguageAgentPolicy(TransformersModel(model, tokenizer, thinking_budget=9), legal_only=True)
