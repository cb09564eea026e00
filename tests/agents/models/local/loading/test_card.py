"""What stands beside a trained model's weights: its response mode, and a template for chat servers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
from agents.models.embedded import embedded_agents
from agents.models.local.loading.card import (
    PLAIN_TEMPLATE,
    TEMPLATE_NAME,
    Card,
    read_card,
    write_card,
    write_chat_template,
)
from agents.prompt import PromptMap, as_text
from agents.prompt_texts import CARD_NAME, PromptTexts
from agents.turn import Message, TurnRequest
from textgames.scenarios import SCENARIOS

transformers = pytest.importorskip("transformers")

WEIGHTS = Path(agents.__file__).parent / "tiny" / "weights"


OWN = PromptTexts("Be brief.", "$instructions", "You see: $observation", {"terse": "Move:"}, "any", "none")


def test_a_card_is_read_back(tmp_path):
    assert read_card(str(tmp_path)) is read_card("nobody/no-such-model") is None
    for texts in (PromptTexts.default(), OWN):
        write_card(tmp_path, modes=["direct"], texts=texts)
        assert read_card(str(tmp_path)) == Card(("direct",), texts)
    write_card(tmp_path, modes=["think", "direct"], texts=OWN)
    assert read_card(str(tmp_path)) == Card(("think", "direct"), OWN)
    assert Card(("think", "direct"), OWN).mode == "think"
    (tmp_path / CARD_NAME).write_text('{"mode": "direct"}')  # from before the clock
    assert read_card(str(tmp_path)) == Card(("direct",), PromptTexts.from_file("without-clock"))


def test_prompts_are_read_from_a_models_folder_where_another_program_asks_it(tmp_path):
    write_card(tmp_path, modes=["direct"], texts=PromptTexts.from_file("without-clock"))
    kept = tmp_path / "prompts.toml"  # as a run keeps it
    kept.write_text((tmp_path / CARD_NAME).read_text())
    for place in (tmp_path, tmp_path / CARD_NAME, kept):
        assert PromptTexts.from_file(place) == PromptTexts.from_file("without-clock")
    (tmp_path / CARD_NAME).write_text('{"prompts": {"system": "x"}}')
    with pytest.raises(ValueError, match=r"prompts without opening"):
        PromptTexts.from_file(tmp_path)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"mode": "think", "prompts": {"system": ""}}', '{"mode": "a", "prompts": 3}']
)
def test_a_broken_card_is_named(text, tmp_path):
    (tmp_path / CARD_NAME).write_text(text)
    with pytest.raises(ValueError, match=r"textbench\.json should hold"):
        read_card(str(tmp_path))


def test_a_card_says_what_contradicts_it():
    default = PromptTexts.default()
    card = Card(("think",), default)
    assert card.contradiction(PromptMap()) == ""
    assert card.contradiction(PromptMap("direct")) == "mode"
    assert card.contradiction(PromptMap(texts=PromptTexts.from_file("without-clock"))) == "texts"
    elsewhere = replace(default, response={**default.response, "direct": "Another mode's wording."})
    assert card.contradiction(PromptMap(texts=elsewhere)) == ""  # which a prompt of this mode doesn't show


@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_is_asked_as_it_was_trained(name):
    assert agents.load_agent(name).prompt_map.texts == PromptTexts.from_file("without-clock")
    about = " ".join((WEIGHTS / name / "README.md").read_text().split())
    assert "how many moves are left" in about  # and what that costs


def as_messages(prompt: Any) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt]


@pytest.fixture(scope="module")
def shipped_tokenizer():
    return transformers.AutoTokenizer.from_pretrained(WEIGHTS / "tiny")


@pytest.mark.slow
@given(
    st.lists(st.builds(Message, st.sampled_from(("system", "user", "assistant")), st.text()), min_size=1, max_size=5)
)
@settings(max_examples=200, deadline=None)
def test_the_plain_template_is_the_plain_text(shipped_tokenizer, prompt):
    for generation_prompt in (False, True):
        rendered = shipped_tokenizer.apply_chat_template(
            as_messages(prompt), tokenize=False, add_generation_prompt=generation_prompt
        )
        assert rendered == as_text(tuple(prompt))


@pytest.mark.parametrize("name", embedded_agents())
def test_a_chat_server_gives_a_shipped_model_the_tokens_that_it_gets_here(name):
    from agents.models.local.transformers import TransformersModel

    player = TransformersModel.from_pretrained(WEIGHTS / name)
    assert player.tokenizer.chat_template == PLAIN_TEMPLATE
    game = SCENARIOS["snake"].game()
    request = TurnRequest("Board: 4 wide, 4 high\n(1, 2)\n", game.instructions("player_0"), game.actions)
    for mode in ("think", "direct"):
        prompt = PromptMap(mode=mode, texts=PromptTexts.from_file("without-clock"))(request)
        served = player.tokenizer.apply_chat_template(
            as_messages(prompt), tokenize=True, add_generation_prompt=True, return_dict=False
        )
        player.tokenizer.chat_template = None  # as before there was one
        assert list(player.encode([prompt])[0]) == served == player.tokenizer(as_text(prompt))["input_ids"]
        player.tokenizer.chat_template = PLAIN_TEMPLATE


def make_tokenizer(*, begins_with: str = "", ends_with: str = "") -> Any:
    """A tokenizer of single characters that adds special tokens to every text."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    special = [token for token in (begins_with, ends_with) if token]
    words = {word: number for number, word in enumerate(["?", *special, *map(chr, range(32, 127)), "\n"])}
    words["?"] = 0
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(filter(None, (begins_with, "$A", ends_with))),
        special_tokens=[(token, words[token]) for token in special],
    )
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    made.add_special_tokens({"additional_special_tokens": special})
    return made


@pytest.mark.parametrize(("begins_with", "ends_with"), [("", ""), ("<s>", ""), ("<s>", "</s>"), ("", "</s>")])
def test_a_template_writes_the_special_tokens_that_a_text_begins_with(begins_with, ends_with, tmp_path):
    tokenizer = make_tokenizer(begins_with=begins_with, ends_with=ends_with)
    tokenizer.save_pretrained(tmp_path)
    write_chat_template(tmp_path, tokenizer)
    served = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    prompt = (Message("system", "Be brief."), Message("user", "Where?\n"))
    ids = served.apply_chat_template(as_messages(prompt), tokenize=True, return_dict=False)
    wanted = tokenizer(as_text(prompt))["input_ids"]
    assert ids == (wanted[:-1] if ends_with else wanted)  # a server generates after it, as we do
    assert (ids[0] == served.convert_tokens_to_ids("<s>")) is bool(begins_with)
    (tmp_path / TEMPLATE_NAME).unlink()
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    write_chat_template(tmp_path, tokenizer)  # one's own stays
    assert not (tmp_path / TEMPLATE_NAME).exists()
