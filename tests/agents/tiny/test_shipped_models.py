"""The tiny models that ship with the package still read the prompts that the package writes."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import agents
from agents import EpisodeTask, LanguageAgentPolicy, PromptMap, TurnRequest, load_agent
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.models.embedded import CONTEXT_LENGTH, READS, embedded_agents
from agents.prompt import as_text
from agents.turn import Turn
from textgames.scenarios import SCENARIOS

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.models.local.transformers import TransformersModel  # noqa: E402 - needs torch

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
    policy = load_agent(name)
    game = SCENARIOS[scenario].game()
    state = game.initial_state(np.random.default_rng(0))
    observation, instructions = game.observe(state, "player_0"), game.instructions("player_0")
    request = TurnRequest(observation, instructions, game.actions, steps_left=8)
    prompt = cast(LanguageAgentPolicy, policy).prompt_map(request)
    ids = policy.model.encode([prompt])[0]  # type: ignore[attr-defined]
    assert policy.model.tokenizer.decode(ids) == as_text(prompt)  # type: ignore[attr-defined]
    assert len(ids) <= 110


@pytest.mark.slow
@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_answers_in_form(name):
    scenario = "snake" if name.endswith("snake") else "frozen-lake"  # what it was trained on
    tasks = [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(episode)) for episode in range(20)]
    steps = [step for episode in rollout(load_agent(name), tasks) for step in episode.steps]
    assert sum(step.valid for step in steps) / len(steps) > 0.95


class Reading:
    """The random player, which keeps what a language model would have been asked in its place."""

    name = "random"

    def __init__(self) -> None:
        self.player, self.requests = load_agent("random"), list[TurnRequest]()

    def act(self, requests: Sequence[TurnRequest]) -> list[Turn]:
        self.requests += requests
        return self.player.act(requests)


@pytest.fixture(scope="module")
def tiny():
    model = cast(LanguageAgentPolicy, load_agent("tiny")).model
    assert isinstance(model, TransformersModel)
    return model


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenarios_prompts_fit_into_the_embedded_models(tiny, scenario):
    reading = Reading()
    (episode,) = rollout(reading, [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(0))])
    assert episode.error is None
    longest = max((PromptMap()(request) for request in reading.requests), key=lambda prompt: len(as_text(prompt)))
    assert len(tiny.encode([longest])[0]) + Decoding().max_tokens <= CONTEXT_LENGTH


def test_a_prompt_of_a_game_that_they_dont_know_is_answered_all_the_same():
    story = "There are five buttons: red, blue, green, white and black. You pressed red and won. " * 40
    request = TurnRequest(story, "Press a button each round.", ("red", "blue"), seed=(1,))
    (turn,) = load_agent("tiny", max_tokens=4).act([request])
    assert turn.error is None
    assert turn.usage.prompt_tokens > 2048 < len(story)
