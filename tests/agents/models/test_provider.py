"""A provider of one's own: one class and one registered name, and everything else knows it."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agents import LanguageAgentPolicy, Turn, load_agent
from agents.load import known_options, options_taken
from agents.models import provider
from agents.models.base import Decoding
from agents.models.local.loading.card import write_card
from agents.models.provider import Provider, find_model, providers, register_provider
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import Prompt
from benchmark.play.agents.catalogue import agent_kinds

ROOT = Path(__file__).parents[3]


class Echo:
    """A model that repeats itself.

    Args:
        name: what it says.
        times: how often.
    """

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
    other = load_agent("openai:m", base_url="http://127.0.0.1:9/v1", times=2)  # another agent's option is ignored
    assert other.name == "openai:m"


def test_a_name_is_given_once(echo):
    register_provider("echo", ECHO)  # the same line run again
    with pytest.raises(ValueError, match="there is a provider 'echo' already"):
        register_provider("echo", replace(ECHO, example="down"))
    with pytest.raises(ValueError, match="one word, as in NAME:MODEL, got 'my echo'"):
        register_provider("my echo", ECHO)


def test_providers_of_installed_packages(tmp_path, monkeypatch):
    (tmp_path / "loud_models.py").write_text(
        "from tests.agents.models.test_provider import Echo\n"
        "from agents.models.provider import Provider\n"
        "LOUD = Provider(Echo, 'loud', example='UP')\n"
        "NUMBER = 3\n"
    )
    folder = tmp_path / "loud_models-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: loud-models\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[textbench.providers]\nloud = loud_models:LOUD\nbroken = loud_models:NOBODY\nnumber = loud_models:NUMBER\n"
    )
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


@pytest.mark.slow
def test_lists_of_agents_import_neither_torch_nor_clients():
    code = (
        "import sys; from benchmark.play.agents.catalogue import agent_kinds; from agents.load import known_options\n"
        "agent_kinds(), known_options()\n"
        "print([m for m in ('torch', 'transformers', 'openai', 'aiohttp', 'vllm', 'rich') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out == "[]\n"


# ---------------------------------------------------------------- how a trained model wants to be asked


@pytest.fixture
def trained(tmp_path):
    pytest.importorskip("transformers")
    from tests.agents.models.local.test_transformers import make_tokenizer
    from tests.tiny_models import tiny_llama

    tokenizer = make_tokenizer()
    tiny_llama(len(tokenizer), hidden=16, layers=1).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    write_card(tmp_path, modes=["direct"], texts=PromptTexts.from_file("without-clock"))
    return str(tmp_path)


def test_a_trained_folder_is_asked_in_the_mode_it_was_trained_in(trained):
    policy = load_agent(f"hf:{trained}", max_tokens=2)
    assert isinstance(policy, LanguageAgentPolicy)
    assert policy.prompt_map == PromptMap("direct", texts=PromptTexts.from_file("without-clock"))
    assert load_agent(f"hf:{trained}", prompts="default").prompt_map == PromptMap("direct")
    assert policy.act(["obs"])[0].finish_reason == "length"
    assert "mode='think'" in repr(load_agent(f"hf:{trained}", mode="think"))  # what a person says goes first
    (Path(trained) / "textbench.json").unlink()
    assert "mode='think'" in repr(load_agent(f"hf:{trained}"))


def test_an_adapters_mode_goes_before_its_base_models(tmp_path):
    for name, mode in (("base", "think"), ("adapter", "direct")):
        (tmp_path / name).mkdir()
        write_card(tmp_path / name, modes=[mode], texts=PromptTexts.default())
    card = providers()["hf"].card
    assert card(str(tmp_path / "base")).mode == "think"
    assert card(str(tmp_path / "base"), adapter=str(tmp_path / "adapter")).mode == "direct"
    assert card("org/some-model") is None


def test_every_provider_here_says_what_a_person_needs():
    """Types of options can be read, also where a module imports what it is about for type checkers alone."""
    for name, one in providers().items():
        assert one.description, name
        assert find_model(f"{name}:{one.example}") == (one, one.example)
        taken, _ = options_taken(f"{name}:{one.example}")
        assert {"temperature", "mode", "history", *one.options} <= taken.keys()
        assert all(re.fullmatch(r"[a-z_]+", option) for option in one.options)
