"""Loading a model's folder: its card and template, what is refused, and small Llamas without transformers' own code."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import agents
from agents.models.base import Decoding
from agents.models.embedded import FOLDER, READS, embedded_agents
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

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402
from tokenizers import processors  # noqa: E402

from agents.models.local.loading.adapters import put_on  # noqa: E402
from agents.models.local.loading.load import load_model  # noqa: E402
from agents.models.local.loading.plain_llama import read_plain_llama  # noqa: E402
from agents.models.local.transformers import TransformersModel  # noqa: E402
from tests.agents.models.local.test_transformers import OLD_NAME  # noqa: E402
from tests.tiny_models import tiny_llama, word_tokenizer  # noqa: E402

OWN = PromptTexts("Be brief.", "$instructions", "You see: $observation", {"terse": "Move:"}, "any", "none")


def test_a_card_is_read_back(tmp_path):
    assert read_card(str(tmp_path)) is read_card("nobody/no-such-model") is None
    for texts in (PromptTexts.default(), OWN):
        write_card(tmp_path, modes=["direct"], texts=texts)
        assert read_card(str(tmp_path)) == Card(("direct",), texts)
    write_card(tmp_path, modes=["think", "direct"], texts=OWN)
    assert read_card(str(tmp_path)) == Card(("think", "direct"), OWN)
    assert Card(("think", "direct"), OWN).mode == "think"
    kept = tmp_path / "prompts.toml"  # as a run keeps it; another program may be asked with these prompts
    kept.write_text((tmp_path / CARD_NAME).read_text())
    assert [PromptTexts.from_file(place) for place in (tmp_path, tmp_path / CARD_NAME, kept)] == [OWN] * 3
    (tmp_path / CARD_NAME).write_text('{"mode": "direct"}')  # from before the clock
    assert read_card(str(tmp_path)) == Card(("direct",), PromptTexts.from_file("without-clock"))
    for broken in ("[]", "{}", '{"mode": "think", "prompts": {"system": ""}}'):
        (tmp_path / CARD_NAME).write_text(broken)
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


def test_shipped_models_are_asked_as_they_were_trained():
    for name in embedded_agents():
        assert agents.load_agent(name).prompt_map.texts == PromptTexts.from_file("without-clock")
        assert agents.load_agent(name, prompts="default").prompt_map.texts == PromptTexts.default()
        assert agents.load_agent(name, mode="think").prompt_map.mode == "think"  # what a person says goes first
        about = " ".join((FOLDER / name / "README.md").read_text().split())
        assert "how many moves are left" in about  # and what that costs


def as_messages(prompt: Any) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt]


def test_a_chat_server_gives_a_shipped_model_the_tokens_that_it_gets_here():
    player = TransformersModel.from_pretrained(FOLDER / "tiny-snake")
    assert player.tokenizer.chat_template == PLAIN_TEMPLATE
    game = SCENARIOS["snake"].game()
    request = TurnRequest("Board: 4 wide, 4 high\n(1, 2)\n", game.instructions("player_0"), game.actions)
    prompt = PromptMap(texts=PromptTexts.from_file("without-clock"))(request)
    for asked in (prompt, (*prompt, Message("assistant", "{{ 'x' }} <action>")), (Message("user", "\n"),)):
        end = {"add_generation_prompt": True} if asked[-1].role == "user" else {"continue_final_message": True}
        served = player.tokenizer.apply_chat_template(as_messages(asked), return_dict=False, **end)
        assert list(player.encode([asked])[0]) == served == player.tokenizer(as_text(asked))["input_ids"]


@pytest.mark.parametrize("special", [("", ""), ("<s>", "</s>")])
def test_a_template_writes_the_special_tokens_that_a_text_begins_with(special, tmp_path):
    begins_with, ends_with = special
    tokenizer = word_tokenizer([*"Bebrifw.W?\n ", "<s>", "</s>"])
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in special if token}
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=" ".join(filter(None, (begins_with, "$A", ends_with))), special_tokens=[*ids.items()]
    )
    tokenizer.save_pretrained(tmp_path)
    write_chat_template(tmp_path, tokenizer)
    served = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    prompt = (Message("system", "Be brief."), Message("user", "Where?\n"))
    found = served.apply_chat_template(as_messages(prompt), tokenize=True, return_dict=False)
    wanted = tokenizer(as_text(prompt))["input_ids"]
    assert found == (wanted[:-1] if ends_with else wanted)  # a server generates after it, as we do
    assert (found[0] == tokenizer.convert_tokens_to_ids("<s>")) is bool(begins_with)
    (tmp_path / TEMPLATE_NAME).unlink()
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    write_chat_template(tmp_path, tokenizer)  # one's own stays
    assert not (tmp_path / TEMPLATE_NAME).exists()


def shipped(folder: Path, **changes: Any) -> Path:
    shutil.copytree(FOLDER / "tiny", folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | changes))
    return folder


@OLD_NAME
def test_pickled_weights_are_refused_of_models_and_of_adapters(tmp_path):
    peft = pytest.importorskip("peft")
    folder = shipped(tmp_path / "model")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    refused = partial(pytest.raises, ValueError, match=r"no weights as safetensors.*save_pretrained\(FOLDER\)")
    with refused():
        TransformersModel.from_pretrained(folder)
    adapted = peft.get_peft_model(tiny_llama(40, hidden=16), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    adapted.save_pretrained(tmp_path)
    torch.save(peft.get_peft_model_state_dict(adapted), tmp_path / "adapter_model.bin")
    (tmp_path / "adapter_model.safetensors").unlink()
    with refused():
        put_on(tiny_llama(40, hidden=16), str(tmp_path))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "../model.safetensors", "/etc/hosts"])
def test_an_index_leads_to_no_other_files_than_safetensors_of_the_folder(name, tmp_path):
    folder = shipped(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=rf"model.safetensors.index.json names {name!r} as a file of weights"):
        TransformersModel.from_pretrained(folder)


def test_attention_is_never_code_that_a_folder_names(tmp_path):
    """Such a name is fetched from a hub and run, with the package kernels; without it, transformers asks for it."""
    name = "kernels-community/flash-attn2@refs/pr/1"
    folder = shipped(tmp_path / "model", attn_implementation=name, tie_word_embeddings=True, hidden_act="gelu")
    model = TransformersModel.from_pretrained(folder)
    assert model.model.config._attn_implementation == "sdpa"


@pytest.mark.skipif(torch.cuda.is_available(), reason="models go to the GPU")
@pytest.mark.slow
def test_embedded_models_play_without_importing_the_modelling_code():
    # all of them in one process, as importing torch takes most of the time
    names = [name for name, scenarios in READS.items() if "frozen-lake" in scenarios]
    code = (
        "import sys\n"
        "from agents import EpisodeTask, load_agent, rollout\n"
        f"policies = [load_agent(name) for name in {names!r}]\n"
        "for policy in policies:\n"
        "    (episode,) = rollout(policy, [EpisodeTask.of('frozen-lake', 10_000)])\n"
        "    assert all(step.valid for step in episode.steps)\n"
        "slow = {'transformers.modeling_utils', 'torch._dynamo', 'sympy'} & set(sys.modules)\n"
        "print(slow or 'none', *{type(policy.model.model).__module__ for policy in policies})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["none", "transformers.models.llama.modeling_llama"], done.stderr


def test_responses_tokens_and_settings_are_the_same_whichever_way_it_is_loaded(tmp_path):
    tiny = str(FOLDER / "tiny")
    plain = TransformersModel.from_pretrained(tiny, device="cpu")
    usual = TransformersModel(*load_model(tiny, dtype="float32", device="cpu"), name=tiny)
    prompts = [(Message("user", text),) for text in ("Player: (0, 3)\n", "Actions: left, right.\n\nGrid:\nS F\nH G")]
    seeds = [(1,), (2,)]
    decoding = Decoding(temperature=1.0, max_tokens=20)
    assert plain.encode(prompts) == usual.encode(prompts)
    before = plain.generate(prompts, decoding, seeds)
    for a, b in zip(before, usual.generate(prompts, decoding, seeds), strict=True):
        assert replace(a, seconds=0.0) == replace(b, seconds=0.0)
    assert plain.settings.items() >= usual.settings.items()
    assert plain.context_length == usual.context_length == 2048

    model = plain.model  # transformers' own from here on, and what it learns shows
    assert type(model) is transformers.LlamaForCausalLM
    assert plain.model is model
    assert [one.response for one in plain.generate(prompts, decoding, seeds)] == [one.response for one in before]
    with torch.no_grad():
        model.model.norm.weight.mul_(-1)
    assert [one.response for one in plain.generate(prompts, decoding, seeds)] != [one.response for one in before]
    model.save_pretrained(tmp_path)
    assert read_plain_llama(tmp_path) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"attention_bias": True},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}},
        {"tie_word_embeddings": False},
        {"num_hidden_layers": 1},
        {"head_dim": "8"},
        *("bfloat16", "broken", "missing"),
    ],
)
def test_any_other_model_is_left_to_transformers(change, tmp_path):
    folder = tmp_path / "model"
    assert read_plain_llama(shipped(folder)) is not None
    weights = folder / "model.safetensors"
    if isinstance(change, dict):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | change))
    elif change == "bfloat16":
        save_file({name: tensor.bfloat16() for name, tensor in load_file(weights).items()}, weights)
    else:
        weights.unlink() if change == "missing" else weights.write_bytes(b"nonsense")
    assert read_plain_llama(folder) is None
