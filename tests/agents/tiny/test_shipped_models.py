"""The tiny models that ship with the package still read the prompts that the package writes."""

from pathlib import Path

import numpy as np
import pytest

import agents
from agents import EpisodeTask, PromptMap, TurnRequest, load_agent
from agents.loop.rollout import rollout
from agents.models.embedded import embedded_agents
from agents.prompt import as_text
from textgames.scenarios import SCENARIOS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

FOLDER = Path(agents.__file__).parent / "tiny" / "weights"
pytestmark = pytest.mark.skipif(not embedded_agents(), reason="this version ships no models")


@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_is_small_and_has_its_card(name: str) -> None:
    files = list((FOLDER / name).iterdir())
    assert sum(file.stat().st_size for file in files) < 5_000_000
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= {file.name for file in files}
    assert "## Limits" in (FOLDER / name / "README.md").read_text()


@pytest.mark.parametrize("scenario", [name for name, one in SCENARIOS.items() if one.training])
@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_knows_the_wording_of_the_prompts(name: str, scenario: str) -> None:
    """Its tokenizer has whole blocks of prompts as tokens: if this fails, a text was changed and the models must be
    made anew.
    """
    policy = load_agent(name)
    game = SCENARIOS[scenario].game()
    state = game.initial_state(np.random.default_rng(0))
    request = TurnRequest(game.observe(state, "player_0"), game.instructions("player_0"), game.actions)
    prompt = PromptMap()(request)
    ids = policy.model.encode([prompt])[0]  # type: ignore[attr-defined]
    assert policy.model.tokenizer.decode(ids) == as_text(prompt)  # type: ignore[attr-defined]
    assert len(ids) <= 110


@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_answers_in_form(name: str) -> None:
    scenario = "snake" if name.endswith("snake") else "frozen-lake"
    tasks = [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(episode)) for episode in range(20)]
    steps = [step for episode in rollout(load_agent(name), tasks) for step in episode.steps]
    assert sum(step.valid for step in steps) / len(steps) > 0.95
