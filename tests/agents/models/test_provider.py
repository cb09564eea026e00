"""A provider of one's own: one class and one registered name, and everything else knows it."""

from dataclasses import replace
from pathlib import Path

import pytest

from agents import Turn, load_agent
from agents.load import known_options
from agents.models import provider
from agents.models.base import Decoding
from agents.models.local.loading.card import write_card
from agents.models.provider import Provider, model_folder, providers, register_provider
from agents.prompt_texts import PromptTexts
from agents.turn import Prompt
from benchmark.play.agents.catalogue import agent_kinds
from tests.agents.helpers import install

ROOT = Path(__file__).parents[3]


class Echo:
    """A model that repeats its name."""

    def __init__(self, name: str, *, times: int = 1) -> None:
        self.name = name
        self.times = times

    def generate(self, prompts: list[Prompt], decoding: Decoding, seeds: list[tuple[int, ...]]) -> list[Turn]:
        return [Turn(self.name * self.times) for _ in prompts]


ECHO = Provider(Echo, "says what it is called", example="up", missing=lambda: None)


@pytest.fixture
def echo():
    register_provider("echo", ECHO)
    yield
    provider._PROVIDERS.pop("echo")


def test_a_registered_provider_is_known_everywhere(echo):
    policy = load_agent("echo:up", times=2, temperature=0.0, timeout=3.0)
    assert (policy.name, policy.act(["obs"])[0].response) == ("echo:up", "upup")
    assert "times" in known_options()
    with pytest.raises(TypeError, match=r"no agent has an option 'tims' \(did you mean 'times'\?\)"):
        load_agent("random", tims=2)
    with pytest.raises(ValueError, match="'echo:' names no model; write echo:up"):
        load_agent("echo:")
    with pytest.raises(ValueError, match=r"unknown agent 'ehco'.*echo:up"):
        load_agent("ehco")
    assert ("echo:MODEL", "says what it is called", None) in agent_kinds()
    with pytest.raises(ValueError, match="there is a provider 'echo' already"):
        register_provider("echo", replace(ECHO, example="down"))
    with pytest.raises(ValueError, match="one word, as in NAME:MODEL, got 'my echo'"):
        register_provider("my echo", ECHO)
    other = load_agent("openai:m", base_url="http://127.0.0.1:9/v1", times=2)  # another agent's option is ignored
    assert other.name == "openai:m"


def test_one_way_from_a_name_to_a_folder():
    assert model_folder("hf:org/model") == model_folder("org/model") == "org/model"
    assert model_folder("tiny") == model_folder("embedded:tiny")
    assert (Path(model_folder("tiny-msgrpo")) / "config.json").is_file(), "an alias"
    assert model_folder("./tiny") == "./tiny"
    assert model_folder("openai:gpt") == "openai:gpt"
    with pytest.raises(ValueError, match=r"'gguf:' names no model; write gguf:\./model\.gguf"):
        model_folder("gguf:")


def test_providers_of_installed_packages(tmp_path, monkeypatch):
    (tmp_path / "loud_models.py").write_text(
        "from tests.agents.models.test_provider import Echo\n"
        "from agents.models.provider import Provider\n"
        "LOUD = Provider(Echo, 'loud', example='UP')\n"
        "NUMBER = 3\n"
    )
    points = "loud = loud_models:LOUD\nbroken = loud_models:NOBODY\nnumber = loud_models:NUMBER\n"
    install(tmp_path, f"[textbench.providers]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ROOT)
    assert load_agent("loud:up", times=3).act(["obs"])[0].response == "upupup"
    kinds = {kind.spec: kind for kind in agent_kinds()}
    assert kinds["loud:MODEL"].missing is None
    assert "can't be imported" in (kinds["broken:MODEL"].missing or "")  # and the others play on
    with pytest.raises(ValueError, match=r"provider 'broken' \(loud_models:NOBODY\) doesn't work: it can't be"):
        load_agent("broken:x")
    with pytest.raises(ValueError, match=r"'number' .* doesn't work: it is a int and no Provider"):
        load_agent("number:x")


def test_an_adapters_mode_goes_before_its_base_models(tmp_path):
    for name, mode in (("base", "think"), ("adapter", "direct")):
        (tmp_path / name).mkdir()
        write_card(tmp_path / name, modes=[mode], texts=PromptTexts.default())
    card = providers()["hf"].card
    assert card(str(tmp_path / "base")).mode == "think"
    assert card(str(tmp_path / "base"), adapter=str(tmp_path / "adapter")).mode == "direct"
    assert card("org/some-model") is None
