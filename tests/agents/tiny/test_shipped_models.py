"""The tiny models that ship with the package still read the prompts that the package writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents import EpisodeTask, PromptMap, TurnRequest, load_agent, request_in
from agents.baselines.random import RandomPlayer
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.models.embedded import CONTEXT_LENGTH, READS, embedded_agents
from agents.prompt import as_text
from agents.turn import Turn
from textgames.scenarios import SCENARIOS

pytest.importorskip("torch")
pytest.importorskip("transformers")

FOLDER = Path(agents.__file__).parent / "tiny" / "weights"
READERS = [(name, scenario) for name in embedded_agents() for scenario in READS[name]]


@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_is_small_and_has_its_card(name):
    files = list((FOLDER / name).iterdir())
    assert sum(file.stat().st_size for file in files) < 5_000_000
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= {file.name for file in files}
    assert "## Limits" in (FOLDER / name / "README.md").read_text()


@pytest.mark.parametrize(("name", "scenario"), READERS)
def test_a_shipped_model_knows_the_wording_of_the_prompts(name, scenario):
    """Its tokenizer has whole blocks of prompts as tokens: if this fails, a text was changed and the models must be
    made anew.
    """
    policy: Any = load_agent(name)
    game = SCENARIOS[scenario].game()
    state = game.initial_state(np.random.default_rng(0))
    prompt = policy.prompt_map(request_in(game, state, "player_0", 8))
    (ids,) = policy.model.encode([prompt])
    assert policy.model.tokenizer.decode(ids) == as_text(prompt)
    assert len(ids) <= 110


@pytest.mark.slow
@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_answers_in_form(name):
    scenario = "snake" if name.endswith("snake") else "frozen-lake"  # what it was trained on
    tasks = [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(episode)) for episode in range(20)]
    steps = [step for episode in rollout(load_agent(name), tasks) for step in episode.steps]
    assert sum(step.valid for step in steps) / len(steps) > 0.95


@pytest.fixture(scope="module")
def tiny() -> Any:
    return load_agent("tiny")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenarios_prompts_fit_into_the_embedded_models(tiny, scenario):
    """Also of games that they don't know."""
    asked: list[TurnRequest] = []

    class Reading(RandomPlayer):
        def act(self, requests: Sequence[Any]) -> list[Turn]:
            asked.extend(requests)
            return super().act(requests)

    (episode,) = rollout(Reading(), [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(0))])
    assert episode.error is None
    longest = max(map(PromptMap(), asked), key=lambda prompt: len(as_text(prompt)))
    assert len(tiny.model.encode([longest])[0]) + Decoding().max_tokens <= CONTEXT_LENGTH
